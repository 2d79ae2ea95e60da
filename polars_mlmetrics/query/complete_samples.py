"""The rows of samples that every model has: a state of these knows the pairs of any two models."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polars_mlmetrics.data.door import check_key_columns
from polars_mlmetrics.data.expressions import any_of, check_no_pattern
from polars_mlmetrics.engine.folds import fold, matched
from polars_mlmetrics.errors import INTERNAL, ParameterError, unknown
from polars_mlmetrics.formula.measure import Measure
from polars_mlmetrics.formula.over_targets import samples_of_all
from polars_mlmetrics.query.query import Query

_HERE, _ALL = f"{INTERNAL}models", f"{INTERNAL}all_models"


def rows_of_pairs(query: Query, between: str) -> pl.LazyFrame:
    """The rows of a query without the samples that count to a metric for some models of their group, and not for all.

    A model is one of a group where a sample of it counts there.
    """
    names = [key.name for key in query.by]
    check_no_pattern([between], what="between column")
    if between not in names:
        raise ParameterError(unknown("between=", between, names, of="a by column of the state"))
    model, sample = query.by[names.index(between)].column, query.roles.sample
    check_key_columns(sample, query.schema, what="sample column")
    rows = query.with_keys(query.frame).filter(pl.col(column).is_not_null() for column in sample)
    groups = [key.column for key in query.by if key.column != model]
    kept, _ = complete_rows(rows, groups, model, sample, samples_of_all(query.metrics))
    return kept.drop(column.meta.output_name() for column in query.added)


def complete_rows(
    rows: pl.LazyFrame, groups: Sequence[str], model: str, sample: Sequence[str], counts: Sequence[Measure]
) -> tuple[pl.LazyFrame, pl.LazyFrame]:
    """The rows of the samples that count for all models of their group or for none, and the other samples."""
    keys = list(dict.fromkeys([*groups, *sample]))
    ways = [count.door().included(count.grain) for count in counts]
    counting = rows.filter(any_of(ways))
    here, of_all = (_models(counting, columns, model, ways, name) for columns, name in ((keys, _HERE), (groups, _ALL)))
    is_odd = [pl.col(f"{_HERE}_{way}").is_between(1, pl.col(f"{_ALL}_{way}") - 1) for way in range(len(ways))]
    odd = matched(here, of_all, groups).filter(any_of(is_odd)).select(keys)
    return rows.join(odd, on=keys, how="anti", nulls_equal=True), odd


def are_complete(
    rows: pl.LazyFrame, groups: Sequence[str], model: str, sample: Sequence[str], counts: Sequence[Measure]
) -> bool:
    """Whether the same samples count for all models of each group, with as many rows: then every sample is complete.

    Two sums of hashes tell sets of samples apart, so that no sample is looked up. Others may be complete too.
    """
    ways = [count.door().included(count.grain) for count in counts]
    seeds = [range(len(sample)), range(len(sample), 2 * len(sample))]
    codes = [pl.sum_horizontal(pl.col(c).hash(s) for c, s in zip(sample, each, strict=True)) for each in seeds]
    sums = [pl.when(way).then(code).sum() for way in ways for code in codes]
    names = [f"{_HERE}_{place}" for place in range(len(sums))]
    by_model = fold(rows, [*groups, model], [total.alias(name) for name, total in zip(names, sums, strict=True)])
    # A model without a row that counts is none of its group: the sum of nothing is 0.
    known = [pl.col(name).filter(pl.col(name) != 0) for name in names]
    groups_alike = fold(
        by_model,
        groups,
        [pl.all_horizontal((total.min() == total.max()).fill_null(True) for total in known).alias(_ALL)],
    )
    found: bool = groups_alike.select(pl.col(_ALL).all()).collect().item()
    return found


def _models(
    counting: pl.LazyFrame, keys: Sequence[str], model: str, ways: Sequence[pl.Expr], name: str
) -> pl.LazyFrame:
    """How many models have rows that count, in each way."""
    if not ways[1:]:
        return fold(counting, keys, [pl.col(model).n_unique().alias(f"{name}_0")])
    return fold(
        counting, keys, [pl.col(model).filter(counts).n_unique().alias(f"{name}_{w}") for w, counts in enumerate(ways)]
    )
