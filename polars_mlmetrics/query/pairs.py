"""The rows of samples that every model has: a state of these knows the pairs of any two models."""

from __future__ import annotations

import polars as pl

from polars_mlmetrics.data.door import check_columns
from polars_mlmetrics.data.expressions import check_no_pattern
from polars_mlmetrics.engine.folds import fold, matched
from polars_mlmetrics.errors import INTERNAL, ParameterError, unknown
from polars_mlmetrics.formula.measure import Measure
from polars_mlmetrics.metrics.decisions import n_samples
from polars_mlmetrics.query.query import Query

_HERE, _ALL = f"{INTERNAL}models", f"{INTERNAL}all_models"


def rows_of_pairs(query: Query, between: str) -> pl.LazyFrame:
    """The rows of a query of samples that all models of their group have, with a known score and truth."""
    names = [key.name for key in query.by]
    check_no_pattern([between], what="between column")
    if between not in names:
        raise ParameterError(unknown("between=", between, names, of="a by column of the state"))
    model, sample = query.by[names.index(between)].column, query.roles.sample
    check_columns(sample, query.schema, what="sample column")
    rows = query.with_keys(query.frame)
    read = [*map(pl.col, sample), query.roles.score, query.roles.truth]
    known = rows.filter(column.is_not_null() for column in read)
    groups = [key.column for key in query.by if key.column != model]
    keys, models = list(dict.fromkeys([*groups, *sample])), pl.col(model).n_unique()
    samples = matched(fold(known, keys, [models.alias(_HERE)]), fold(known, groups, [models.alias(_ALL)]), groups)
    whole = samples.filter(pl.col(_HERE) == pl.col(_ALL)).select(keys)
    kept = rows.join(whole, on=keys, how="semi", nulls_equal=True)
    return kept.drop(column.meta.output_name() for column in query.added)


def count_of_samples(query: Query) -> Measure:
    """How many samples there are, by the roles of a query."""
    (measure,) = n_samples().tree.on_the_rest(query.bound).measures()
    return measure
