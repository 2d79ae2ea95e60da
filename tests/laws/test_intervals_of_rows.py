"""Intervals that stand in two columns, against numpy: as expressions, in plans and in states."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
import sklearn.metrics as sk

import polars_mlmetrics as mlm
from polars_mlmetrics.testing import check_metric
from tests.support.readings import both

Array = np.ndarray[Any, Any]


def log_of(n: int = 90) -> pl.DataFrame:
    random = np.random.default_rng(3)
    low = -abs(random.normal(size=n)).round(1)  # and 0 lies in each interval
    return pl.DataFrame(
        {
            "sample": np.arange(n) // 3,
            "label": ["a", "b", "c"] * (n // 3),
            "score": random.normal(size=n),
            "truth": random.normal(size=n).round(1),
            "weight": random.choice([0.0, 1.0, 3.0], n // 3).repeat(3),
            "low": low,
            "high": random.choice([0.0, 0.5, 1.0], n),
        }
    )


def score_of(truth: Array, low: Array, high: Array, level: float) -> Array:
    """As Gneiting and Raftery have it: each side by itself."""
    alpha = 1 - level
    below, above = 2 / alpha * (low - truth) * (truth < low), 2 / alpha * (truth - high) * (truth > high)
    return (high - low) + below + above


OF_ROWS: dict[str, tuple[mlm.Metric, Callable[[Array, Array, Array], Array]]] = {
    "coverage": (mlm.interval_coverage("low", "high"), lambda t, low, high: (low <= t) & (t <= high)),
    "width": (mlm.interval_width("low", "high"), lambda t, low, high: high - low),
    "score": (mlm.interval_score("low", "high"), lambda t, low, high: score_of(t, low, high, 0.9)),
    "of a level": (mlm.interval_score("low", "high", level=0.5), lambda t, low, high: score_of(t, low, high, 0.5)),
    "expressions": (
        mlm.interval_score(pl.col("low") - 0.5, pl.col("high") * 1.0),
        lambda t, low, high: score_of(t, low - 0.5, high, 0.9),
    ),
}


@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("name", OF_ROWS)
def test_intervals_of_columns(name: str, weight: str | None) -> None:
    log, (metric, of_rows) = log_of(), OF_ROWS[name]
    columns = (log[each].to_numpy() for each in ("truth", "low", "high"))
    expected = np.average(of_rows(*columns), weights=None if weight is None else log[weight].to_numpy())
    assert both(log, metric if weight is None else metric.on(weight=weight)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", OF_ROWS)
def test_intervals_of_columns_keep_the_laws(name: str) -> None:
    metric = OF_ROWS[name][0]
    check_metric(metric, frame=log_of())
    state = pl.concat([mlm.state(part, metric) for part in log_of().partition_by("label")])
    assert mlm.finish(state, metric).item() == pytest.approx(log_of().select(metric).item(), rel=1e-12)


def test_a_score_is_that_of_the_quantiles_that_the_ends_are() -> None:
    log = log_of()
    theirs = [sk.mean_pinball_loss(log["truth"], log[end], alpha=alpha) for end, alpha in (("low", 0.1), ("high", 0.9))]
    assert both(log, mlm.interval_score("low", "high", level=0.8)) == pytest.approx(sum(theirs) / 0.1, rel=1e-12)


def test_rows_without_an_end_are_left_out_and_those_the_wrong_way_round_are_broken() -> None:
    log = log_of().with_columns(pl.when(pl.int_range(pl.len()) != 4).then("low").alias("low"))
    row = mlm.evaluate(log, mlm.interval_coverage("low", "high"), tidy=True).row(0, named=True)
    assert (row["n_rows"], row["n_excluded"]) == (89, 1)
    for metric, _ in OF_ROWS.values():
        assert math.isnan(both(log.rename({"low": "high", "high": "low"}), metric) or 0)
    one_sided = mlm.interval_coverage("low", math.inf)
    assert both(log.drop_nulls("low"), one_sided) == log.select((pl.col("truth") >= pl.col("low")).mean()).item()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda log: mlm.interval_score("low", "high", level=1), "level must be a number greater than 0 and below 1"),
        (lambda log: mlm.interval_width("low"), "missing a required argument: 'high'"),
        (lambda log: mlm.evaluate(log, mlm.interval_width("lo", "high")), "'lo' is not in the table"),
        (lambda log: mlm.evaluate(log, mlm.interval_width("label", "high")), "low is String"),
        (lambda log: mlm.interval_width(pl.col("low").min(), "high"), "low must be computed row by row"),
    ],
)
def test_what_is_refused(call: Callable[[pl.DataFrame], Any], message: str) -> None:
    with pytest.raises(mlm.MetricError, match=message):
        call(log_of())
