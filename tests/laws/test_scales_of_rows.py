"""Scales of errors that stand in a column, against numpy: as expressions, in plans and in states."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.support.readings import both

Array = np.ndarray[Any, Any]
CALLS: dict[str, Callable[..., mlm.Metric]] = {"mae": mlm.mae, "rmse": mlm.rmse}
SCALES: dict[str, Any] = {"column": "size", "expression": pl.col("size") + 1, "number": 2.5}


def log_of(n: int = 60) -> pl.DataFrame:
    random = np.random.default_rng(5)
    return pl.DataFrame(
        {
            "sample": np.arange(n) // 3,
            "label": ["a", "b", "c"] * (n // 3),
            "score": random.normal(size=n),
            "truth": random.normal(size=n).round(1),
            "weight": random.choice([0.0, 1.0, 3.0], n // 3).repeat(3),
            "size": random.choice([0.5, 1.0, 7.0], n),
        }
    )


def by_numpy(name: str, log: pl.DataFrame, size: Array, weight: Array | None) -> float:
    parts = (log["score"].to_numpy() - log["truth"].to_numpy()) / size
    if name == "mae":
        return float(np.average(abs(parts), weights=weight))
    return math.sqrt(np.average(parts**2, weights=weight))


@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", CALLS)
def test_errors_in_parts_of_their_scale(name: str, scale: str, weight: str | None) -> None:
    log, metric = log_of(), CALLS[name](scale=SCALES[scale])
    sizes = {"column": log["size"], "expression": log["size"] + 1, "number": pl.Series([2.5] * log.height)}
    expected = by_numpy(name, log, sizes[scale].to_numpy(), None if weight is None else log[weight].to_numpy())
    assert both(log, metric if weight is None else metric.on(weight=weight)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", CALLS)
def test_scales_of_rows_in_states(name: str) -> None:
    metric = CALLS[name](scale="size")
    state = pl.concat([mlm.state(part, metric) for part in log_of().partition_by("label")])
    assert mlm.finish(state, metric).item() == pytest.approx(log_of().select(metric).item(), rel=1e-12)


def test_mase_and_rmsse_of_one_series() -> None:
    """By hand: the steps of the training rows 1, 4, 2, 4 are 3, 2 and 2, and those of their squares 9, 4 and 4."""
    training = pl.Series([1.0, 4.0, 2.0, 4.0])
    log = pl.DataFrame({"score": [5.0, 3.0], "truth": [4.0, 6.0]})
    naive = training.diff().abs().mean()
    assert both(log, mlm.mae(scale=naive)) == pytest.approx((1 + 3) / 2 / (7 / 3), rel=1e-12)
    steps = math.sqrt((training.diff() ** 2).mean())
    assert both(log, mlm.rmse(scale=steps)) == pytest.approx(math.sqrt((1 + 9) / 2 / (17 / 3)), rel=1e-12)


def test_rows_without_a_scale_are_left_out_and_those_of_none_that_an_error_has_are_broken() -> None:
    log = log_of()
    without = log.with_columns(size=pl.when(pl.int_range(pl.len()) != 4).then("size"))
    row = mlm.evaluate(without, mlm.mae(scale="size"), tidy=True).row(0, named=True)
    assert (row["n_rows"], row["n_excluded"]) == (59, 1)
    kept = log.filter(pl.int_range(pl.len()) != 4)
    assert row["value"] == pytest.approx(by_numpy("mae", kept, kept["size"].to_numpy(), None), rel=1e-12)
    for size in (0.0, -1.0, math.inf, math.nan):
        broken = log.with_columns(size=pl.when(pl.int_range(pl.len()) != 4).then("size").otherwise(size))
        for call in CALLS.values():
            assert math.isnan(both(broken, call(scale="size")) or 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda log: mlm.mae(scale=0), "scale must be a number greater than 0 .* not 0"),
        (lambda log: mlm.rmse(scale=-1.0), "scale must be a number greater than 0 .* not -1"),
        (lambda log: mlm.evaluate(log, mlm.mae(scale="sizes")), "'sizes' is not in the table"),
        (lambda log: mlm.evaluate(log, mlm.rmse(scale="label")), "scale is String"),
        (lambda log: mlm.mae(scale=pl.col("size").mean()), "scale must be computed row by row"),
    ],
)
def test_what_is_refused(call: Callable[[pl.DataFrame], Any], message: str) -> None:
    with pytest.raises(mlm.MetricError, match=message):
        call(log_of())
