"""What is searched for slices: a log or a state, read into codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from polars_mlmetrics.analysis.coded import (
    N_ROWS,
    N_SAMPLES,
    Chunk,
    Coded,
    again,
    code_column,
    in_groups,
    numbered,
    statistics_of,
    with_sums,
)
from polars_mlmetrics.analysis.coded_rows import Asked, CodedRows
from polars_mlmetrics.analysis.contrasts import Kind, Numbers
from polars_mlmetrics.analysis.features import COUNT, VALUE, Feature, counts_of, type_of
from polars_mlmetrics.data.frames import Names
from polars_mlmetrics.engine.plan import Plan
from polars_mlmetrics.engine.replicates import WITHOUT
from polars_mlmetrics.engine.state_rows import StateRows
from polars_mlmetrics.errors import ParameterError, StateError, warn_at_callers_line
from polars_mlmetrics.formula.arithmetic import whole_times
from polars_mlmetrics.metrics.decisions import n_rows, n_samples
from polars_mlmetrics.query.query import Query

FEWEST, THOUSANDTH = 60, 0.001
"""How many samples a slice has at least, where nothing is asked for: so many, or this share of its group."""

MANY, LOOKED = 100_000, 2_000_000
"""Of a column of more numbers than MANY, in a log of more rows than LOOKED, about so many rows give the ranges."""


def read_log(
    query: Query, names: Sequence[str], top: int, bins: int, cluster: Names, buckets: int, passes: Asked
) -> tuple[Coded, str]:
    """A log, read into codes, and how it is read."""
    # One by one: together they would hold all these columns.
    counts = [_counts(query, name).collect(engine="streaming") for name in names]
    features = _features(query.schema, dict(zip(names, counts, strict=True)), top, bins)
    return CodedRows(query, features, passes, buckets, cluster).read()


def read_state(
    query: Query, source: StateRows, names: Sequence[str], top: int, bins: int, buckets: int
) -> tuple[Coded, str]:
    """A state, read into codes, and how it is read."""
    by, columns = [key.column for key in query.by], {key.column: key.name for key in query.slice_keys}
    keys = [*by, *columns, WITHOUT]
    (metric,) = query.metrics
    counts = _counts_of_state(query, source, by, keys).rename(columns)
    plan = Plan(source, keys, query.readings)
    plan.value(metric)
    asked = {Kind.of(each, keys): each for each in plan.asked}
    tables = pl.collect_all([table for table, _ in source.partials(list(asked.values()), keys)])
    counted = {name: counts_of(counts.lazy(), name, pl.col(N_ROWS)).collect() for name in names}
    features, groups = _features(counts.schema, counted, top, bins), numbered(counts, by)
    codes = [each.code().cast(pl.Int32).alias(code_column(place)) for place, each in enumerate(features)]

    def coded(table: pl.DataFrame) -> pl.DataFrame:
        return in_groups(table.lazy(), groups, by).with_columns(codes).drop(*names, *by).collect()

    found = {kind: coded(table.rename(columns)) for kind, table in zip(asked, tables, strict=True)}
    statistics = {kind: statistics_of(each) for kind, each in asked.items()}
    chunk = Chunk(coded(counts), {kind: with_sums(table, statistics[kind]) for kind, table in found.items()})
    return Coded(again([chunk]), groups, features, statistics, plan, metric, buckets), "a state"


def _counts_of_state(query: Query, source: StateRows, by: list[str], keys: list[str]) -> pl.DataFrame:
    """How many rows and samples a state has at its keys. Samples must be whole in every group, so in every slice."""
    (metric,) = query.metrics
    samples, rows = (each.tree.on_the_rest(query.bound) for each in (n_samples(), n_rows()))
    whole = Plan(source, by, query.readings)
    parts = [whole.add(measure) for node in (metric, samples) for measure in node.measures()]
    reasons = whole.reasons_of(parts)
    if reasons:
        why = whole.groups().select(pl.coalesce(reasons).drop_nulls().first()).collect().item()
        if why is not None:
            raise StateError(f"{why}: a slice of this state may hold a part of a sample. Use find_slices on the log.")
    plan = Plan(source, keys, query.readings)
    sizes = [plan.value(samples).alias(N_SAMPLES), plan.value(rows).alias(N_ROWS)]
    return plan.groups().select(*keys, *sizes).collect()


def least_of(coded: Coded, least: int | None) -> Numbers:
    """How many samples a slice of each group must have."""
    samples = coded.totals.samples
    if least is None:
        wanted: Numbers = np.maximum(float(FEWEST), samples * THOUSANDTH)
        return wanted
    return np.full(len(samples), float(least))


def without_small(coded: Coded, least: float) -> list[int]:
    """The places of the features with a value that is in enough rows and not in all; a warning names the others."""
    total = coded.totals.rows.sum()
    places, large = [], set()
    for place, feature in enumerate(coded.features):
        counts = coded.totals.by_code[place][: len(feature.conditions)]
        if ((counts >= least) & (counts < total)).any():
            places.append(place)
            large.add(feature.name)
    small = [feature.name for feature in coded.features if feature.name not in large]
    _warn(list(dict.fromkeys(small)), "have no value with enough samples, and are left out")
    return places


def _counts(query: Query, name: str) -> pl.LazyFrame:
    """The values of a column, and how many rows have each."""
    rows, dtype = query.rows, query.schema[name]
    kind = type_of(name, dtype)
    if isinstance(dtype, pl.List) or kind in ("text", "boolean"):
        return counts_of(rows, name)
    n_rows, n_values = rows.select(pl.len(), pl.col(name).approx_n_unique()).collect().row(0)
    if n_rows <= LOOKED or n_values <= MANY:
        return counts_of(rows, name)
    # Some rows give the ranges, into which any other value falls. What lies in none is counted in all.
    some = counts_of(rows.gather_every(whole_times(LOOKED, n_rows)), name)
    is_number = (
        pl.col(name).is_not_null() if kind != "number" else pl.col(name).is_not_nan() & pl.col(name).is_not_null()
    )
    lacking = counts_of(rows.filter(~is_number.fill_null(False)), name)
    return pl.concat([some, lacking]).group_by(VALUE).agg(pl.col(COUNT).sum())


def _features(schema: Mapping[str, Any], counted: Mapping[str, pl.DataFrame], top: int, bins: int) -> list[Feature]:
    """The features of more than one value; of the others a warning says that they are left out."""
    features: list[Feature] = []
    constant: list[str] = []
    for name, counts in counted.items():
        dtype = schema[name]
        is_list = isinstance(dtype, pl.List)
        found = Feature.of_lists(name, dtype, counts, top) if is_list else Feature.of(name, dtype, counts, top, bins)
        if sum(each.size for each in found) < 2:
            constant.append(name)
        else:
            features += found
    if not features:
        raise ParameterError(f"no feature has two values to compare: {', '.join(constant)}.")
    _warn(constant, "have one value only, and are left out")
    return features


def _warn(names: Sequence[str], what: str) -> None:
    if names:
        warn_at_callers_line(f"these features {what}: {', '.join(names)}.")
