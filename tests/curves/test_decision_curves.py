"""Decision curves, held to their definition in plain Python: hits less false alarms at the odds of the threshold."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_mlmetrics as mlm

COLUMNS = ["threshold", "net_benefit", "treat_all", "treat_none"]


def log_of(n: int = 300, seed: int = 5) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    score = random.choice(np.linspace(0, 1, 21), n)
    return pl.DataFrame(
        {
            "sample": range(n),
            "model": random.choice(["a", "b"], n),
            "score": score,
            "truth": random.random(n) < score,
            "weight": random.choice([0.0, 1.0, 2.5], n),
        }
    )


def by_hand(rows: pl.DataFrame, threshold: float, weight: str | None) -> list[float] | None:
    """The three net benefits at a threshold; None where it has no odds."""
    if not 0 < threshold < 1:
        return None
    odds, weights = threshold / (1 - threshold), rows[weight] if weight else pl.Series([1.0] * rows.height)
    gains = [w * (1.0 if true else -odds) for true, w in zip(rows["truth"], weights, strict=True)]
    acted = math.fsum(gain for gain, score in zip(gains, rows["score"], strict=True) if score > threshold)
    return [acted / weights.sum(), math.fsum(gains) / weights.sum(), 0.0]


def check(found: pl.DataFrame, rows: pl.DataFrame, weight: str | None = None) -> None:
    for threshold, *values in found.select(COLUMNS).iter_rows():
        expected = by_hand(rows, threshold, weight)
        assert values == ([None] * 3 if expected is None else pytest.approx(expected, rel=1e-12, abs=1e-12))


@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("is_lazy", [False, True])
def test_every_point_is_that_of_the_definition(weight: str | None, *, is_lazy: bool) -> None:
    log = log_of()
    named: Mapping[str, Any] = {} if weight is None else {"weight": weight}
    found = mlm.curve(log.lazy() if is_lazy else log, "decision", by="model", **named).lazy().collect()
    assert found.columns == ["model", *COLUMNS]
    for (model,), points in found.group_by("model"):
        assert points["threshold"].is_sorted(descending=True)
        assert points.height == log.filter(model=model)["score"].n_unique() + 1  # and -inf
        check(points, log.filter(model=model), weight)


def test_slices_and_cells() -> None:
    log = log_of()
    found = mlm.curve(log, "decision", slices=["model"], bins=64)
    check(found.filter(slice=""), log)
    check(found.filter(model="a"), log.filter(model="a"))


def test_a_state_has_it_at_its_cells() -> None:
    log = log_of()
    state = mlm.state(log, mlm.roc_auc(bins=64), by="model")
    found = mlm.curve(state, "decision", by="model")
    assert found.equals(mlm.curve(log, "decision", by="model", bins=64))


def test_intervals_are_those_of_the_metric() -> None:
    log = log_of()
    found = mlm.curve(log, "decision", points=4, ci=0.9)
    assert found.columns[-3:] == ["low", "high", "ci_flag"]
    thresholds = [threshold for threshold in found["threshold"] if 0 < threshold < 1]
    assert thresholds
    for threshold in thresholds:
        expected = mlm.evaluate(log, mlm.net_benefit(threshold), ci=0.9).row(0)
        point = found.filter(threshold=threshold).select("net_benefit", "low", "high")
        assert point.row(0) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("options", [{}, {"bins": 64}, {"weight": "weight"}], ids=["rows", "bins", "weights"])
def test_a_score_that_is_no_probability_breaks_its_group(options: Mapping[str, Any]) -> None:
    log = log_of().with_columns(score=pl.when(model="a").then(pl.col("score") * 2).otherwise("score"))
    found = mlm.curve(log, "decision", by="model", **options)
    broken = found.filter(model="a").select(COLUMNS[1:])
    assert broken.select(pl.all().is_nan().all()).row(0) == (True,) * 3
    assert found.filter(model="b")["net_benefit"].is_nan().sum() == 0


def test_along_the_threshold_it_breaks_too() -> None:
    """At each threshold a metric has the value that `evaluate` gives."""
    log = log_of().with_columns(pl.col("score") * 2)
    assert mlm.evaluate(log, mlm.net_benefit(0.5))["net_benefit"].is_nan().item()
    beside = mlm.curve(log, "threshold", mlm.f1(), mlm.net_benefit(0.5))
    of_metric = beside.group_by("metric").agg(pl.col("value").is_nan().all()).sort("metric")
    assert of_metric.rows() == [("f1", False), ("net_benefit", True)]


def test_no_rows() -> None:
    none = mlm.curve(log_of(0), "decision")
    assert none.rows() == [(None, None, None, None)]


def test_it_takes_no_metrics() -> None:
    with pytest.raises(mlm.ParameterError, match="a curve of kind 'decision' takes no metrics"):
        mlm.curve(log_of(), "decision", mlm.f1())
