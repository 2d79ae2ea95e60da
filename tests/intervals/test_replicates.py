"""Replicates: the values without each bucket are those of the log without the rows of that bucket."""

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.data.roles import Table
from polars_mlmetrics.engine.contents import Contents
from polars_mlmetrics.engine.folds import BUCKET
from polars_mlmetrics.engine.plan import Plan, ReadFormulas
from polars_mlmetrics.engine.replicates import WITHOUT, Replicates
from polars_mlmetrics.engine.sources import LogSource, Source
from tests.intervals.buckets import BUCKET_OF, BUCKETS, Values, differing, expected, some
from tests.support.frames import KEYS, worlds


def values(source: Source, by: list[str], every: int) -> Values:
    """The values by group and by the bucket that is left out."""
    plan = Plan(Replicates(source, by), [*by, WITHOUT], ReadFormulas(source.schema, Table.of({})))
    columns = [plan.value(metric.tree).alias(name) for name, metric in some(every).items()]
    table = plan.groups().select(*by, WITHOUT, *columns).collect()
    return {tuple(row.pop(key) for key in [*by, WITHOUT]): row for row in table.to_dicts()}


def of_rows(log: pl.DataFrame, by: list[str], every: int) -> Values:
    rows = log.lazy().with_columns(BUCKET_OF.alias(WITHOUT))
    return values(LogSource(rows, "label", rows.collect_schema()), by, every)


def of_state(log: pl.DataFrame, by: list[str], every: int) -> Values:
    state = mlm.state(log, list(some(every).values()), by=by, buckets=BUCKETS)
    held = Contents.of(state.schema).rows_of(state.lazy())
    schema = pl.Schema({**log.schema, WITHOUT: pl.Int64()})
    return values(replace(held, schema=schema, added=[pl.col(BUCKET).alias(WITHOUT)]), by, every)


@pytest.mark.parametrize(
    ("by", "every"),
    [(["fold"], 13), *(pytest.param(by, 1, marks=pytest.mark.proof) for by in (["fold"], [], KEYS))],
    ids=str,
)
@pytest.mark.parametrize("values_of", [of_rows, of_state])
def test_each_bucket_left_out(values_of: Any, by: list[str], every: int) -> None:
    assert differing(values_of(worlds(), by, every), expected(tuple(by), every)) == []
