"""Draws: the values of each draw are those of the log in which every bucket is there as often as it was drawn."""

from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from polars_mlmetrics.analysis.evaluate import evaluate
from polars_mlmetrics.data.roles import Table
from polars_mlmetrics.engine import draws
from polars_mlmetrics.engine.draws import DRAW, Draws
from polars_mlmetrics.engine.plan import Plan, ReadFormulas
from polars_mlmetrics.engine.replicates import WITHOUT
from polars_mlmetrics.engine.sources import LogSource
from tests.intervals.buckets import BUCKET_OF, BUCKETS, METRICS, Values, differing, times
from tests.support.frames import KEYS, worlds

FEW_DRAWS = 4


def test_every_draw_has_as_many_buckets_as_there_are() -> None:
    drawn = times(64)
    assert drawn.shape == (200, 64)
    assert set(drawn.sum(axis=1)) == {64}
    assert np.array_equal(drawn, times(64))
    # With replacement: a bucket is drawn once on average, and so often as chance has it.
    assert abs(drawn.mean(axis=0) - 1).max() < 0.35
    assert drawn.var() == pytest.approx(1 - 1 / 64, abs=0.05)


def drawn_rows(log: pl.DataFrame, drawn: NDArray[Any]) -> pl.DataFrame:
    """The rows of the buckets that were drawn, in copies that are samples of their own."""
    often = pl.DataFrame({WITHOUT: np.arange(len(drawn)), "times": drawn})
    rows = log.join(often, on=WITHOUT).with_columns(copy=pl.int_ranges("times")).filter(pl.col("times") > 0)
    return rows.explode("copy").with_columns(sample=pl.col("sample") * 100 + pl.col("copy")).drop("copy", "times")


@cache
def expected(by: tuple[str, ...]) -> Values:
    log = worlds().with_columns(BUCKET_OF.alias(WITHOUT))
    groups = log.select(by).unique().rows() if by else [()]
    found: Values = {}
    for draw, rows in enumerate([*(drawn_rows(log, each) for each in times(BUCKETS)), log]):
        table = evaluate(rows, list(METRICS.values()), by=list(by))
        left = {tuple(row.pop(key) for key in by): row for row in table.to_dicts()}
        nothing = evaluate(log.clear(), list(METRICS.values())).to_dicts()[0]
        for group in groups:
            found[*group, draw if draw < FEW_DRAWS else None] = left.get(group, nothing)
    return found


def values(by: list[str]) -> Values:
    rows = worlds().lazy().with_columns(BUCKET_OF.alias(WITHOUT))
    source = Draws(LogSource(rows, "label", rows.collect_schema()), by, BUCKETS)
    plan = Plan(source, [*by, DRAW], ReadFormulas(source.schema, Table.of({})))
    columns = [plan.value(metric.tree).alias(name) for name, metric in METRICS.items()]
    table = plan.groups().select(*by, DRAW, *columns).collect()
    return {tuple(row.pop(key) for key in [*by, DRAW]): row for row in table.to_dicts()}


@pytest.mark.proof
@pytest.mark.parametrize("by", [["fold"], [], KEYS], ids=str)
def test_each_draw(by: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draws, "DRAWS", FEW_DRAWS)
    assert differing(values(by), expected(tuple(by))) == []
