"""Curves of a ranking: roc, pr, det and gain, from the order of the rows or from their runs."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from polars_mlmetrics.curves.stored_bins import cells_of
from polars_mlmetrics.engine.folds import fold
from polars_mlmetrics.engine.plan import Plan, Runs
from polars_mlmetrics.engine.thinning import (
    ALL_OTHER,
    ALL_TRUE,
    NEXT,
    OTHER,
    PLACE,
    POINT,
    RUNS,
    SCORE,
    THRESHOLD,
    TRUE,
    ThinnedRanking,
    Thinning,
    points_of_kept,
)
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.formula.cells import end_of_cell
from polars_mlmetrics.formula.curve import ORDERED, Bins, Cells
from polars_mlmetrics.formula.declaration import CATALOGUE
from polars_mlmetrics.formula.measure import Measure, of_rows_of
from polars_mlmetrics.query.query import Query
from polars_mlmetrics.query.question import Question
from polars_mlmetrics.query.results import ResultColumns

N_ROWS, BROKEN, STEPS = (f"{INTERNAL}{name}" for name in ("rows_of_curve", "broken_curve", "steps"))
NAN = float("nan")

COUNTS = {"tp": TRUE, "fp": OTHER, "positives": ALL_TRUE, "negatives": ALL_OTHER}
"""The counts of a point by their names in a result."""

_TP, _FP, _TRUE, _OTHER = map(pl.col, COUNTS.values())
_RECALL, _SHARE, _FPR = ratio(_TP, _TRUE), ratio(_TP + _FP, _TRUE + _OTHER), ratio(_FP, _OTHER)

KINDS: Mapping[str, Mapping[str, pl.Expr]] = {
    "roc": {"fpr": _FPR, "tpr": _RECALL},
    "pr": {"recall": _RECALL, "precision": ratio(_TP, _TP + _FP)},
    "det": {"fpr": _FPR, "fnr": ratio(_TRUE - _TP, _TRUE)},
    "gain": {"share": _SHARE, "recall": _RECALL, "lift": ratio(_RECALL, _SHARE)},
}
"""The columns of each kind, from those of the points."""


def columns_of(kind: str) -> ResultColumns:
    """The columns of a curve, after its keys."""
    return ResultColumns.of((pl.Float64, *("threshold", *KINDS[kind], *COUNTS)), (pl.Int64, "n_rows"))


def curve_of_kind(question: Question, by: list[str], kind: str, bins: Bins, n: int) -> pl.LazyFrame:
    """The points of every group of a grouping, in the columns of a kind."""
    like = question.query.measures[0]
    table = points_of(question, by, like, cells_of(question, like, bins), Thinning(n, is_stretched=kind == "det"))
    if kind == "pr":
        # Where nothing is predicted, there is no precision. A group that weighs nothing keeps its points all the same.
        table = table.filter((_TP + _FP != 0) | (_TRUE + _OTHER == 0) | pl.col(THRESHOLD).is_null())
    columns = {"threshold": pl.col(THRESHOLD), **KINDS[kind], **{name: pl.col(c) for name, c in COUNTS.items()}}
    return table.select(*by, *(column.alias(name) for name, column in columns.items()), pl.col(N_ROWS).alias("n_rows"))


def points_of(question: Question, by: list[str], like: Measure, cells: Cells, thinning: Thinning) -> pl.LazyFrame:
    """The rows above each kept threshold, best first, with the counts of the group: of a measure's own rows.

    A group without a curve has one row without a threshold: null where it has no rows, NaN where one is broken.
    """
    plan = Plan(question.source, by, question.query.readings)
    ranking = _ranking(question.query, by, like, thinning) if cells.bins is None else None
    if ranking is None:
        points = _points_of_runs(plan.runs(of_rows_of(cells.in_runs(), like)), by, thinning)
    else:
        weight, n_rows = (plan.value(of_rows_of(of, like)) for of in (ORDERED, Measure(CATALOGUE["n_rows"], {})))
        facts = n_rows.alias(N_ROWS), weight.is_nan().fill_null(False).alias(BROKEN)
        points = ranking.join_to(plan.groups().select(*by, *facts), question.query.rows)
    if cells.bins is not None:
        points = points.with_columns(end_of_cell(pl.col(THRESHOLD), cells).alias(THRESHOLD))
    broken = pl.col(BROKEN)
    points = points.filter(~broken | (pl.col(POINT) == 0) | _TP.is_null())
    counts = (pl.when(broken).then(NAN).otherwise(pl.col(name)).alias(name) for name in COUNTS.values())
    points = points.select(*by, pl.when(~broken).then(THRESHOLD).alias(THRESHOLD), *counts, N_ROWS)
    order = [*by, THRESHOLD, TRUE, OTHER]
    return points.sort(order, descending=[name == THRESHOLD for name in order], nulls_last=False)


def _ranking(query: Query, by: list[str], like: Measure, thinning: Thinning) -> ThinnedRanking | None:
    """The order of the rows, where it gives the points: of plain rows with keys that have codes."""
    # One zero inside a list may not be the other, so such keys have no code.
    if like.table.weight is not None or any(query.schema[key].is_nested() for key in by):
        return None
    area = of_rows_of(Measure(CATALOGUE["roc_auc"], {}), like)
    reader = query.readings.of(area, in_runs=False, ranks=True)
    return ThinnedRanking(reader.ranked[0].order, by, thinning=thinning) if reader.ranked else None


def _points_of_runs(runs: Runs, by: list[str], thinning: Thinning) -> pl.LazyFrame:
    """The points of each group from its runs, cumulated from the highest score down."""
    key, *sums = (column.filter(runs.key.is_not_null()) for column in (runs.key, *runs.sums))
    score, upto = key.cast(pl.Float64), [each.cum_sum().cast(pl.Float64) for each in sums]
    columns = {
        SCORE: score,
        NEXT: score.shift(-1, fill_value=float("-inf")),
        TRUE: upto[0],
        OTHER: upto[1],
        # The sums by run end where those of the group do: a curve ends in its corner, whatever was rounded.
        ALL_TRUE: upto[0].max(),
        ALL_OTHER: upto[1].max(),
        PLACE: pl.int_range(1, key.len() + 1),
        RUNS: key.len().cast(pl.Int64),
    }
    steps = pl.struct(column.alias(name) for name, column in columns.items()).implode().alias(STEPS)
    facts = runs.n_rows.sum().alias(N_ROWS), runs.is_broken.any().alias(BROKEN)
    in_order = runs.table.sort(runs.key, descending=True, nulls_last=True)
    groups = fold(in_order, by, [*facts, steps], in_order=True)
    # Of a broken group one row is left, as of one without runs.
    known = (
        groups.with_columns(pl.when(~pl.col(BROKEN)).then(STEPS).alias(STEPS))
        .explode(STEPS, empty_as_null=True)
        .unnest(STEPS)
    )
    return points_of_kept(thinning.kept(known), [*by, ALL_TRUE, ALL_OTHER, N_ROWS, BROKEN])
