"""A slice against the rest of its group: both sides, without each bucket, are what their rows give."""

import numpy as np
import polars as pl
import pytest
from scipy import stats

import polars_mlmetrics as mlm
from polars_mlmetrics.analysis.evaluate import EVALUATE
from polars_mlmetrics.contrasts.rest import against_rest, sides_of, with_tests
from polars_mlmetrics.engine.plan import Plan
from polars_mlmetrics.engine.replicates import WITHOUT
from polars_mlmetrics.engine.sources import LogSource
from polars_mlmetrics.formula.measure import Node
from polars_mlmetrics.query.question import Question

BUCKETS = 4


def rows() -> pl.DataFrame:
    """Two groups of two slices; one group lacks a bucket, and one slice is without an error."""
    random = np.random.default_rng(0)
    found = pl.DataFrame({"sample": range(256), "truth": random.integers(0, 2, 256), "score": random.random(256)})
    number = pl.col("sample")
    found = found.with_columns((number % BUCKETS).alias("bucket"), group=number // 4 % 2, slice=number // 8 % 2)
    is_right = (pl.col("group") == 0) & (pl.col("slice") == 1)
    found = found.with_columns(score=pl.when(is_right).then("truth").otherwise("score"))
    return found.filter((pl.col("group") == 0) | (pl.col("bucket") > 0))


def planned(log: pl.DataFrame, metric: mlm.Metric) -> tuple[Plan, Node]:
    """A plan of a metric by group, slice and bucket."""
    query = Question.read(EVALUATE, log, [metric], roles={}).query
    with_bucket = query.rows.with_columns(pl.col("bucket").alias(WITHOUT))
    schema = pl.Schema({**query.schema, WITHOUT: pl.Int64()})
    plan = Plan(LogSource(with_bucket, "label", schema), ["group", "slice", WITHOUT], query.readings)
    plan.value(query.metrics[0])
    return plan, query.metrics[0]


@pytest.mark.parametrize("metric", [mlm.accuracy(), mlm.pearson()], ids=str)
def test_both_sides_are_what_their_rows_give(metric: mlm.Metric) -> None:
    log = rows()
    plan, core = planned(log, metric)
    slices = log.select("group", "slice").unique().sort("group", "slice")
    sides = sides_of(plan, core, plan.source, slices, BUCKETS)
    for place, (group, own) in enumerate(slices.iter_rows()):
        for bucket in range(BUCKETS + 1):
            left = log.filter((pl.col("group") == group) & (pl.col("bucket") != bucket))
            values = [
                mlm.evaluate(left.filter((pl.col("slice") == own) == side), metric).item() for side in (True, False)
            ]
            assert [sides.value[place, bucket], sides.rest[place, bucket]] == pytest.approx(values, rel=1e-9)
    table = against_rest(sides, np.array([BUCKETS, BUCKETS, BUCKETS - 1, BUCKETS - 1]), core, 1)
    assert table["gap"].to_list() == pytest.approx((table["rest"] - table["value"]).to_list())
    assert table["t"].to_list() == pytest.approx((table["gap"] / table["se"]).to_list())


def test_a_side_that_no_bucket_moves_has_the_error_of_its_buckets() -> None:
    log = rows().filter(pl.col("group") == 0)
    plan, core = planned(log, mlm.accuracy())
    slices = pl.DataFrame({"group": [0, 0], "slice": [0, 1]})
    sides = sides_of(plan, core, plan.source, slices, BUCKETS)
    assert np.array_equal(sides.value_alone, [np.nan, BUCKETS], equal_nan=True)
    assert np.array_equal(sides.rest_alone, [BUCKETS, np.nan], equal_nan=True)


def test_p_is_the_chance_of_as_large_a_gap_in_the_worse_direction() -> None:
    """The interval has two sides. Where nothing varies, nothing tells how sure a gap is."""
    gaps = [0.3, 0.05, 0.0, -0.05, -0.3, 0.2, 0.2, None, 9.0]
    errors = [0.1, 0.1, 0.1, 0.1, 0.1, 0.0, None, 0.1, 1e-9]
    buckets, deciding = [32, 5, 32, 5, 32, 32, 32, 32, 32], [20.0, 5.0, 4.5, 1.0, 7.5, 9.0, 9.0, 9.0, None]
    types = {"gap": pl.Float64, "se": pl.Float64, "n_buckets": pl.Int64, "deciding": pl.Float64}
    table = pl.DataFrame(list(zip(gaps, errors, buckets, deciding, strict=True)), schema=types, orient="row")
    question = Question.read(EVALUATE, rows(), [mlm.rmse()], ci=0.95, roles={})
    assert question.confidence is not None
    found = with_tests(table, question.query.metrics[0], question.confidence)
    for gap, error, count, few, low, high, p in found.select(*types, "low", "high", "p").iter_rows():
        if gap is None or not error:
            assert (low, high, p) == (None, None, None)
            continue
        df = count - 1 if few is None else min(count - 1, max(3, 3 * few - 2))
        assert p == pytest.approx(stats.t.sf(gap / error, df), abs=1e-10)
        away = stats.t.ppf(0.975, df) * error
        assert (low, high) == pytest.approx((gap - away, gap + away), rel=1e-9)
