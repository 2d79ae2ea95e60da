"""Differences of other samples on each side, in logs drawn at random: how often one is found where there is none."""

from collections.abc import Sequence
from math import sqrt

import numpy as np
import polars as pl
import pytest
from scipy import stats

import polars_mlmetrics as mlm
from tests.support.simulated import LEVEL
from tests.support.two_sides import METRICS, RUNS, differences, found_in, held, of_two_classes, two_draws, two_months


def by_chance(share: float, runs: int = RUNS) -> float:
    """How far the share of so many runs may be off: three standard deviations of a binomial. The seeds are fixed."""
    return 3 * sqrt(share * (1 - share) / runs)


@pytest.mark.parametrize(("old", "new"), [(100, 100), (300, 50)])
def test_two_draws_of_the_same_seldom_differ(old: int, new: int) -> None:
    shares = found_in(differences(two_draws(old, new), METRICS))
    assert len(shares) == len(METRICS)
    assert min(shares.values()) >= 0.03 - by_chance(0.03)
    assert max(shares.values()) <= 0.07 + by_chance(0.07)


def test_users_of_both_months_are_known_again() -> None:
    shares = found_in(differences(two_months(), METRICS[:4]))
    assert min(shares.values()) >= 0.03 - by_chance(0.03)
    assert max(shares.values()) <= 0.07 + by_chance(0.07)


def test_intervals_hold_the_true_difference() -> None:
    shares = held(100, 150)
    assert min(shares.values()) >= 0.93 - by_chance(0.93)
    assert max(shares.values()) <= 0.975 + by_chance(0.975)


HARD = {
    "log_loss": -pl.when("truth").then(pl.col("score").log()).otherwise((1 - pl.col("score")).log()),
    "brier_score": (pl.col("score") - pl.col("truth").cast(pl.Float64)) ** 2,
}
"""The losses of rows. A log that lacks its few hard rows is another one, and no test of means knows that."""


def of_welch(logs: Sequence[pl.DataFrame]) -> dict[str, float]:
    """How often Welch's test of the losses of rows finds a difference."""
    runs = [run.partition_by("side") for log in logs for run in log.partition_by("run")]
    finds = {
        name: [stats.ttest_ind(*(side.select(loss).to_series() for side in run), equal_var=False) for run in runs]
        for name, loss in HARD.items()
    }
    return {name: float(np.mean([test.pvalue < 1 - LEVEL for test in tests])) for name, tests in finds.items()}


def test_three_rows_against_a_thousand_seldom_differ() -> None:
    logs = [*of_two_classes(1_000, 1_000, 3, 0.3)]
    table = differences(logs, [mlm.accuracy(), mlm.f1(), mlm.bias(), mlm.log_loss(), mlm.brier_score()])
    shares = found_in(table)
    assert max(shares[name] for name in ("accuracy", "f1", "bias")) <= 0.06 + by_chance(0.06, 1_000)
    # Three losses are too skewed for any test of means.
    assert all(shares[name] <= share + 0.01 for name, share in of_welch(logs).items())
    assert set(table["ci_flag"].drop_nulls()) <= {"few_buckets", "undefined_replicates", "degenerate"}


def test_one_positive_against_a_hundred_differs_too_often_and_is_flagged() -> None:
    logs = [*of_two_classes(200, 10_000, 100, 0.01)]
    table = differences(logs, [mlm.log_loss(), mlm.brier_score()])
    for name, share in of_welch(logs).items():
        assert share > 0.25
        assert abs(found_in(table)[name] - share) <= 0.02
    assert set(table["ci_flag"]) <= {"few_decide", "few_positives"}
