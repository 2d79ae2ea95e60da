"""Replicates: the values without each bucket are those of the log without the rows of that bucket."""

from dataclasses import replace
from functools import cache
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.data.roles import Table
from polars_mlmetrics.engine.folds import BUCKET
from polars_mlmetrics.engine.plan import Plan, Readings
from polars_mlmetrics.engine.replicates import WITHOUT, Replicates
from polars_mlmetrics.engine.sources import Rows, Source
from polars_mlmetrics.engine.state import Contents
from polars_mlmetrics.engine.state_table import bucket_of
from tests.laws.cases import AVERAGES, NO_AVERAGE, plain_cases
from tests.states.test_states import has_no_state
from tests.support.frames import KEYS, worlds
from tests.support.readings import same

BUCKETS = 5
DIGITS = 1e-9  # a difference of two sums has lost some of their digits, and a root or a deviation of it more
CASES = [case for average in (*AVERAGES, NO_AVERAGE) for case in plain_cases(average) if not has_no_state(case)]
METRICS = {str(case): case.metric(weighted=True) for case in CASES}
BUCKET_OF, _ = bucket_of(["sample"], worlds().schema, BUCKETS)

Values = dict[tuple[Any, ...], dict[str, Any]]


def some(every: int) -> dict[str, mlm.Metric]:
    """Every so manieth metric."""
    return dict(list(METRICS.items())[::every])


def values(source: Source, by: list[str], every: int) -> Values:
    """The values by group and by the bucket that is left out."""
    plan = Plan(Replicates(source, by), [*by, WITHOUT], Readings(source.schema, Table.of({})))
    columns = [plan.value(metric.tree).alias(name) for name, metric in some(every).items()]
    table = plan.groups().select(*by, WITHOUT, *columns).collect()
    return {tuple(row.pop(key) for key in [*by, WITHOUT]): row for row in table.to_dicts()}


def of_rows(log: pl.DataFrame, by: list[str], every: int) -> Values:
    rows = log.lazy().with_columns(BUCKET_OF.alias(WITHOUT))
    return values(Rows(rows, "label", rows.collect_schema()), by, every)


def of_state(log: pl.DataFrame, by: list[str], every: int) -> Values:
    state = mlm.state(log, list(some(every).values()), by=by, buckets=BUCKETS)
    held = Contents.of(state.schema).held(state.lazy())
    schema = pl.Schema({**log.schema, WITHOUT: pl.Int64()})
    return values(replace(held, schema=schema, added=[pl.col(BUCKET).alias(WITHOUT)]), by, every)


@cache
def expected(by: tuple[str, ...], every: int) -> Values:
    """The values of the rows that are left, bucket after bucket."""
    log = worlds().with_columns(BUCKET_OF.alias(WITHOUT))
    found: Values = {}
    for bucket in (None, *range(BUCKETS)):
        rows = log if bucket is None else log.filter(pl.col(WITHOUT) != bucket)
        there = log if bucket is None else log.filter(pl.col(WITHOUT) == bucket)
        table = mlm.evaluate(rows, list(some(every).values()), by=list(by))
        left = {tuple(row.pop(key) for key in by): row for row in table.to_dicts()}
        nothing = mlm.evaluate(log.clear(), list(some(every).values())).to_dicts()[0]
        for group in there.select(by).unique().rows() if by else [()]:
            found[*group, bucket] = left.get(group, nothing)
    return found


def differing(got: Values, right: Values) -> list[Any]:
    assert got.keys() == right.keys()
    return [
        (key, name, row[name], right[key][name])
        for key, row in got.items()
        for name in row
        if not same(row[name], right[key][name], DIGITS)
    ]


LONG = pytest.mark.proof


@pytest.mark.parametrize(
    ("by", "every"), [(["fold"], 7), *(pytest.param(by, 1, marks=LONG) for by in (["fold"], [], KEYS))], ids=str
)
@pytest.mark.parametrize("values_of", [of_rows, of_state])
def test_each_bucket_left_out(values_of: Any, by: list[str], every: int) -> None:
    assert differing(values_of(worlds(), by, every), expected(tuple(by), every)) == []
