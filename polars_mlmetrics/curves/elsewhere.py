"""The value of a chosen threshold elsewhere: of samples that had no part in the choice.

The samples are cut into folds. The threshold of a fold is chosen on all other folds, and the statistics of the fold at
it are added to those of the others at theirs. The value is that of the sums, not a mean of the values of the folds: of
a few positive rows, the mean of f1 over folds is too low.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import polars as pl

from polars_mlmetrics.curves.metric_thresholds import decisions_of
from polars_mlmetrics.curves.threshold_curves import MetricCurve
from polars_mlmetrics.engine.buckets import BUCKETS, buckets_of
from polars_mlmetrics.engine.folds import BUCKET
from polars_mlmetrics.engine.packing import modulo
from polars_mlmetrics.engine.state_rows import StateSource
from polars_mlmetrics.engine.thinning import Thinning
from polars_mlmetrics.errors import INTERNAL, ColumnError, MetricError, StateError, typed
from polars_mlmetrics.formula.measure import Node
from polars_mlmetrics.query.query import Query
from polars_mlmetrics.query.question import Question

FOLD, _LEFT_OUT = f"{INTERNAL}fold", f"{INTERNAL}left_out"

BestOf = Callable[[MetricCurve, list[str]], pl.LazyFrame]
"""A function that chooses a threshold of a curve for each group."""


def value_elsewhere(
    question: Question, by: list[str], metric: Node, folds: int, every: Thinning, best_of: BestOf, bins: int | None
) -> pl.LazyFrame:
    """One row a group: `value`, from the sums over folds, each at the threshold that is best without it."""
    if not any(decisions_of(metric)):
        raise MetricError(
            f"folds= needs a metric with threshold=, and {metric.output_name} is the value of a point of the curve. "
            "Choose on one part of the log with where=, and evaluate on the other."
        )
    cut, keys = _in_folds(question, folds), [*by, FOLD]
    curve = MetricCurve(cut, keys, metric, Thinning(2), bins)
    if curve.is_of_cells(metric):
        others = curve.without_each(FOLD, every)
    else:
        others = MetricCurve(_without_each(cut, folds), keys, metric, every, bins)
    return curve.pooled(metric, best_of(others, keys), by)


def _in_folds(question: Question, folds: int) -> Question:
    """The question with the fold of each sample as a key."""
    query, schema = question.query, pl.Schema({**question.source.schema, FOLD: pl.Int64()})
    if not question.is_of_state:
        fold = modulo(_bucket_of_log(query), folds).alias(FOLD)
        passes = question.passes and question.passes.changed(lambda rows: rows.with_columns(fold))
        return replace(question, query=replace(query, added=[*query.added, fold], schema=schema), passes=passes)
    state = _state_with_buckets(question, folds)
    table = state.table.with_columns(modulo(pl.col(BUCKET), folds).alias(FOLD))
    state = replace(state, table=table, by=[*state.by, FOLD], schema=schema)
    return replace(question, query=replace(query, schema=schema), state=state)


def _without_each(question: Question, folds: int) -> Question:
    """The question about a copy of the rows without each fold, whose key is the fold that is left out."""
    query, state = question.query, question.state
    if state is not None:
        return replace(question, state=replace(state, table=_copies(state.table, folds)))
    passes = question.passes and question.passes.changed(lambda rows: _copies(rows, folds))
    query = replace(query, frame=_copies(query.rows, folds), added=[], n_rows=None)
    return replace(question, query=query, passes=passes)


def _copies(rows: pl.LazyFrame, folds: int) -> pl.LazyFrame:
    left_out = pl.LazyFrame({_LEFT_OUT: pl.Series(range(folds), dtype=pl.Int64)})
    copies = rows.join(left_out, how="cross").filter(pl.col(FOLD) != pl.col(_LEFT_OUT))
    return copies.drop(FOLD).rename({_LEFT_OUT: FOLD})


def _bucket_of_log(query: Query) -> pl.Expr:
    """The bucket of a row of a log, that of its sample."""
    found = buckets_of(query.schema, query.roles.sample, None, BUCKETS)
    if found is None:
        lacking = next(column for column in query.roles.sample if column not in query.schema)
        raise ColumnError(
            f"folds= needs samples, and there is no sample column {lacking!r}: pass {typed('sample')}. If each row is "
            "a sample of its own, add a column: .with_row_index('sample')."
        )
    return found.bucket


def _state_with_buckets(question: Question, folds: int) -> StateSource:
    """A state that has a bucket for each fold. Raise if it has not."""
    contents, state = question.contents, question.state
    assert contents is not None
    assert state is not None
    if contents.buckets is None:
        raise StateError("this state has no buckets, so it has no folds: make it with buckets=64 and its samples.")
    if contents.buckets["count"] < folds:
        raise StateError(f"this state has {contents.buckets['count']} buckets, so it has no {folds} folds: take fewer.")
    if not contents.has_whole_clusters:
        raise StateError("this state has buckets of several versions of Polars, so it has no folds: use the log.")
    return state
