"""Both sides of a change in one table: the rows of each candidate, and beside them those of the baseline.

Each pair is a group, in which `IS_BASELINE` says of a row which side it is of. So what looks for groups of rows, such
as the search for slices, looks for those of changes too, with a `PairPlan` in place of a plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import polars as pl

from polars_mlmetrics.contrasts.comparison import has_pairs_alone
from polars_mlmetrics.contrasts.pairing import candidates_of, nothing_paired, only_pairs
from polars_mlmetrics.contrasts.sides import IS_BASELINE, PAIR, Pairs, beside_baseline
from polars_mlmetrics.data.expressions import all_of
from polars_mlmetrics.engine.folds import matched
from polars_mlmetrics.engine.ranking import code_of
from polars_mlmetrics.engine.sources import LogSource, Source
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.over_targets import samples_of_all
from polars_mlmetrics.query.complete_samples import CompleteSamples
from polars_mlmetrics.query.keys import KeyColumn
from polars_mlmetrics.query.query import Query
from polars_mlmetrics.query.question import Question

FEATURES = f"{INTERNAL}features"


class Change(NamedTuple):
    """Candidates beside their baseline."""

    question: Question
    """A question whose last by column is that of the candidates; of a log, its rows are those of both sides."""
    source: Source | None = None
    """Both sides of a state; None of a log."""
    left_out: pl.DataFrame | None = None
    """The by columns of each sample that is left out; None where it is not known which are."""
    is_known: bool = True
    """Whether both sides have the samples that they are to have."""

    @classmethod
    def of(cls, question: Question, baseline: Any, features: Sequence[str], *, pairs: bool) -> Change:
        """The sides of a question whose last by column tells them apart.

        A sample of a log is a pair where both sides have rows of it that count, with the same features.
        """
        query, sample = question.query, question.query.roles.sample
        *by, model = query.by
        # A row without a sample is in no pair.
        needed = sample if pairs and not question.is_of_state else []
        is_known = all_of([pl.lit(True), *(pl.col(column).is_not_null() for column in needed)])
        candidates = candidates_of(query.rows.filter(is_known).select(model.column), baseline, model.name)
        schema = pl.Schema({**query.schema, PAIR: candidates.dtype, IS_BASELINE: pl.Boolean()})
        query = replace(query, by=[*by, KeyColumn(model.name, PAIR)], schema=schema)
        if question.is_of_state:
            are_pairs = has_pairs_alone(question, model.name)
            if are_pairs and not pairs:
                raise only_pairs(model.name)
            source = Pairs(question.source, [key.column for key in by], model.column, baseline, candidates)
            return cls(replace(question, query=query), source, is_known=are_pairs or not pairs)
        beside = beside_baseline(model.column, baseline, candidates)

        def of_both(rows: pl.LazyFrame) -> pl.LazyFrame:
            return matched(rows.filter(is_known), beside, [model.column])

        query = replace(query, n_rows=None, holds_rows=False, with_sides=of_both)
        if not pairs:
            return cls(replace(question, query=query))
        odd = _odd_samples(query, features)
        if odd.is_empty():
            return cls(replace(question, query=query))

        def of_pairs(rows: pl.LazyFrame) -> pl.LazyFrame:
            return _coded(of_both(rows), features).join(odd.lazy(), on=odd.columns, how="anti", nulls_equal=True)

        query = replace(query, with_sides=of_pairs)
        if query.rows.head(1).collect().is_empty():
            raise nothing_paired(sample, model.name, baseline)
        return cls(replace(question, query=query), left_out=odd.select(key.column for key in query.by))


def _odd_samples(query: Query, features: Sequence[str]) -> pl.DataFrame:
    """The samples, each with its features, that count on one side alone."""
    rows, by = _coded(query.rows, features), [key.column for key in query.by]
    unit, counts = [*query.roles.sample, FEATURES], samples_of_all(query.metrics)
    log = LogSource(rows, query.roles.label, query.schema)
    return CompleteSamples(log, by, IS_BASELINE, unit, counts).odd()


def _coded(rows: pl.LazyFrame, features: Sequence[str]) -> pl.LazyFrame:
    return rows.with_columns(code_of(features).alias(FEATURES))
