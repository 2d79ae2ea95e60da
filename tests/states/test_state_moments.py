"""Sums about a mean merge as NumPy has them, however the rows were cut."""

from functools import reduce
from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.support.folded_log import LOG, check, folded, merged
from tests.support.readings import same

ABOUT_MEANS = [mlm.r2(), mlm.pearson(), mlm.explained_variance(), mlm.relative_squared_error()]


def by_numpy(rows: pl.DataFrame) -> dict[str, float]:
    s, t, w = (rows[name].to_numpy() for name in ("score", "truth", "weight"))

    def about_mean(one: Any, other: Any) -> float:
        return float(np.sum(w * (one - np.average(one, weights=w)) * (other - np.average(other, weights=w))))

    of_truth = about_mean(t, t)
    squared_error = float(np.sum(w * (s - t) ** 2))
    return {
        "r2": 1 - squared_error / of_truth,
        "pearson": about_mean(s, t) / np.sqrt(about_mean(s, s) * of_truth),
        "explained_variance": 1 - about_mean(t - s, t - s) / of_truth,
        "relative_squared_error": squared_error / of_truth,
    }


def drawn(center: float, rows: int, seed: int, spread: float = 1.0) -> pl.DataFrame:
    """Truths about a center, and scores that are off by as much again."""
    random = np.random.default_rng(seed)
    truth = center + spread * random.normal(size=rows)
    columns = {"score": truth + spread * random.normal(size=rows), "truth": truth, "weight": random.random(rows)}
    return pl.DataFrame(columns)


MOMENTS: dict[str, list[pl.DataFrame]] = {
    "one part": [drawn(1e6, 50, 0)],
    "means far from 0": [drawn(1e6, 30, seed) for seed in range(4)],
    "means far apart": [drawn(center, 30, seed) for seed, center in enumerate([0, 1e6, -3e6, 1e6 + 1])],
    "one of them far off": [drawn(0, 300, 1), drawn(1e6, 1, 2), drawn(0, 300, 3)],
    "rows one by one": [drawn(1e6, 1, seed) for seed in range(15)],
    "empty parts": [drawn(0, 0, 0), drawn(5, 20, 1), drawn(0, 0, 2), drawn(1e6, 20, 3), drawn(0, 0, 4)],
    "constant parts": [drawn(center, 7, 1, spread=0.0).with_columns(score=center + 0.5) for center in (1, 2, 1e6)],
    "constant and other parts": [drawn(3, 9, 1, spread=0.0), drawn(3, 40, 2), drawn(0.1, 3, 3, spread=0.0)],
    "very different sizes": [drawn(1e3, 5000, 1), drawn(-1e3, 2, 2), drawn(0, 40, 3)],
}  # fmt: skip


@pytest.mark.one_in(5)
@pytest.mark.parametrize("is_weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("name", MOMENTS)
def test_sums_about_a_mean_merge_as_numpy_has_them(name: str, is_weighted: bool) -> None:
    parts = MOMENTS[name] if is_weighted else [part.with_columns(weight=pl.lit(1.0)) for part in MOMENTS[name]]
    roles: dict[str, Any] = {"weight": "weight"} if is_weighted else {}
    state = pl.concat(folded(part, ABOUT_MEANS, buckets=0, **roles) for part in parts)
    expected = by_numpy(pl.concat(parts))
    one_by_one = reduce(merged, [state[place] for place in range(state.height)])
    for merging in (state, mlm.compact(state), one_by_one):
        answer = mlm.finish(merging, ABOUT_MEANS).row(0, named=True)
        assert {metric: value for metric, value in answer.items() if not same(value, expected[metric])} == {}


@pytest.mark.parametrize("value", [0.1, 1e6 + 0.1, -3.3])
def test_values_that_are_all_equal_have_no_spread_in_any_parts(value: float) -> None:
    parts = [pl.DataFrame({"score": [0.1 * rows] * rows, "truth": [value] * rows}) for rows in (1, 3, 7)]
    state = pl.concat(folded(part, ABOUT_MEANS) for part in parts)
    assert mlm.finish(state, ABOUT_MEANS).row(0) == (None,) * 4


def test_sums_about_a_mean_by_group_and_by_label() -> None:
    centers = pl.DataFrame({"label": list("abcde"), "center": [0.0, 1e6, -1e6, 1.0, 1e3]})
    log = LOG.join(centers, on="label", how="left", maintain_order="left")
    log = log.with_columns(truth=pl.col("center") + pl.col("other"), score=pl.col("center") + pl.col("score"))
    metrics = [*ABOUT_MEANS, mlm.r2(average="macro"), mlm.pearson(average="min")]
    check(log, metrics, ["model", "day"], parts=5, by="model", slices=["day"])
    check(log, metrics, ["model", "day"], parts=5, roles={"weight": "own"})


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_a_broken_or_infinite_row_is_seen_in_any_part(wrong: float) -> None:
    log = LOG.with_columns(amount=pl.when(pl.int_range(pl.len()) == 40).then(wrong).otherwise("amount"))
    check(log, [metric.on(truth="amount") for metric in ABOUT_MEANS], "day", parts=3, slices=["day"])
