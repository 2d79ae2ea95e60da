"""Rank correlation by pairs and the kappa with linear weights, held to SciPy and scikit-learn."""

import math
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import kendalltau
from sklearn.metrics import cohen_kappa_score

import polars_mlmetrics as mlm


def grades(n: int, seed: int, of: int = 5) -> pl.DataFrame:
    """Grades with ties on both sides; each grade occurs, as scikit-learn counts steps along those that do."""
    random = np.random.default_rng(seed)
    truth = np.concatenate([np.arange(of), random.integers(0, of, n)])
    score = np.concatenate([np.arange(of), np.clip(truth[of:] + random.integers(-2, 3, n), 0, of - 1)])
    return pl.DataFrame(
        {"score": score * 1.0, "truth": truth * 1.0, "weight": random.integers(0, 4, n + of), "part": truth % 2}
    )


def value_of(frame: pl.DataFrame, metric: mlm.Metric) -> Any:
    """The value, which an expression gives too."""
    value = mlm.evaluate(frame, metric).item()
    assert frame.select(metric).item() == (value if value is None else pytest.approx(value, rel=1e-12, nan_ok=True))
    return value


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n", [3, 50, 900])
def test_tau_of_scipy(n: int, seed: int) -> None:
    frame = grades(n, seed)
    assert value_of(frame, mlm.kendall()) == pytest.approx(kendalltau(frame["score"], frame["truth"])[0], rel=1e-12)
    by_part = mlm.evaluate(frame, mlm.kendall(), by="part")
    for part, value in by_part.iter_rows():
        rows = frame.filter(part=part)
        assert value == pytest.approx(kendalltau(rows["score"], rows["truth"])[0], rel=1e-12, abs=1e-14)


def test_a_weight_is_a_number_of_copies() -> None:
    frame = grades(60, 7)
    copies = frame.select(pl.col("score", "truth").repeat_by("weight").explode(empty_as_null=False))
    weighted = value_of(frame, mlm.kendall().on(weight="weight"))
    assert weighted == pytest.approx(kendalltau(copies["score"], copies["truth"])[0], rel=1e-12)


def test_light_rows_are_not_lost_beside_a_heavy_one() -> None:
    """Nearly all weight is that of one row, so pairs of rows that differ have little of it. Whole numbers are exact."""
    rows = [(0, 0, 10**12), (1, 0, 1), (1, 2, 1), (2, 2, 1)]
    frame = pl.DataFrame(rows, schema=["score", "truth", "weight"], orient="row").cast(pl.Float64)
    pairs = [(s - r, t - u, v * w) for (s, t, v), (r, u, w) in product(rows, repeat=2)]
    in_order = sum(weight * ((s * t > 0) - (s * t < 0)) for s, t, weight in pairs)
    apart = [sum(pair[2] for pair in pairs if pair[side] != 0) for side in (0, 1)]
    tau = value_of(frame, mlm.kendall().on(weight="weight"))
    assert tau == pytest.approx(in_order / math.sqrt(apart[0] * apart[1]), rel=1e-12)
    gaps = sum(abs(s - u) * v * w for (s, _, v), (_, u, w) in product(rows, repeat=2))
    errors = sum(abs(s - t) * w for s, t, w in rows) * sum(w for *_, w in rows)
    kappa = value_of(frame, mlm.linear_kappa().on(weight="weight"))
    assert kappa == pytest.approx((gaps - errors) / gaps, rel=1e-12)


@pytest.mark.parametrize("infinity", [math.inf, -math.inf])
def test_an_infinite_score_is_the_first_or_the_last(infinity: float) -> None:
    frame = grades(30, 3).with_columns(score=pl.when(pl.int_range(pl.len()) == 4).then(infinity).otherwise("score"))
    ranks = frame.with_columns(pl.col("score").rank())
    assert value_of(frame, mlm.kendall()) == pytest.approx(kendalltau(ranks["score"], ranks["truth"])[0], rel=1e-12)
    weighted = mlm.kendall().on(weight="weight")
    assert value_of(frame, weighted) == pytest.approx(value_of(ranks, weighted), rel=1e-12)


@pytest.mark.parametrize("metric", [mlm.kendall(), mlm.kendall().on(weight="weight")], ids=["rows", "weights"])
@pytest.mark.parametrize(("score", "truth"), [([1.0], [2.0]), ([1.0, 1.0], [0.1, 0.7]), ([0.3, 0.1], [0.1, 0.1])])
def test_a_constant_has_no_tau(score: list[float], truth: list[float], metric: mlm.Metric) -> None:
    frame = pl.DataFrame({"score": score, "truth": truth, "weight": [0.1] * len(score)})
    assert value_of(frame, metric) is None


@pytest.mark.parametrize("seed", range(4))
def test_linear_kappa_of_scikit_learn(seed: int) -> None:
    frame = grades(80, seed)
    sides = frame["score"].cast(pl.Int64), frame["truth"].cast(pl.Int64)
    assert value_of(frame, mlm.linear_kappa()) == pytest.approx(cohen_kappa_score(*sides, weights="linear"), rel=1e-12)
    quadratic = cohen_kappa_score(*sides, weights="quadratic")
    assert value_of(frame, mlm.concordance()) == pytest.approx(quadratic, rel=1e-12)
    weighted = cohen_kappa_score(*sides, weights="linear", sample_weight=frame["weight"].to_numpy())
    assert value_of(frame, mlm.linear_kappa().on(weight="weight")) == pytest.approx(weighted, rel=1e-12)


def test_linear_kappa_of_one_grade() -> None:
    same = pl.DataFrame({"score": [2.0, 2.0], "truth": [2.0, 2.0]})
    assert value_of(same, mlm.linear_kappa()) is None
    assert value_of(same.with_columns(truth=pl.lit(3.0)), mlm.linear_kappa()) == 0
    assert math.isnan(value_of(same.with_columns(score=pl.lit(math.inf)), mlm.linear_kappa()))
