"""Intervals of 95 % hold the true value about as often as they say, in logs drawn at random."""

from functools import cache
from math import sqrt

import pytest

import polars_mlmetrics as mlm
from tests.support.simulated import COMPARED, METRICS, compared, covered, covered_of_calibrated, one_to_nine

RUNS = 2_000
BARS = {30: (0.93, 0.985), 100: (0.93, 0.975), 300: (0.93, 0.975)}
"""Between which shares an interval of so many samples should hold the true value."""
FALSE = 0.065
"""How often p may be below .05 where there is no difference."""


def by_chance(share: float) -> float:
    """How far the share of so many runs may be off: three standard deviations of a binomial. The seeds are fixed."""
    return 3 * sqrt(share * (1 - share) / RUNS)


held = cache(lambda samples: covered(METRICS, RUNS, samples))
differences = cache(lambda samples: compared(RUNS, samples))


def outside(shares: dict[str, float], samples: int) -> dict[str, float]:
    low, high = BARS[samples]
    low, high = low - by_chance(low), high + by_chance(high)
    return {name: share for name, share in shares.items() if not low <= share <= high}


@pytest.mark.parametrize("samples", BARS)
def test_intervals_hold_the_true_value(samples: int) -> None:
    assert len(held(samples)) == len(METRICS)
    assert outside(held(samples), samples) == {}


@pytest.mark.parametrize("samples", BARS)
def test_intervals_of_differences_hold_the_true_difference(samples: int) -> None:
    shares = {name: share for name, (share, _) in differences(samples).items()}
    assert len(shares) == len(COMPARED)
    assert outside(shares, samples) == {}


@pytest.mark.parametrize("samples", BARS)
def test_no_difference_is_seldom_found(samples: int) -> None:
    found = {name: share for name, (_, share) in differences(samples).items()}
    assert max(found.values()) <= FALSE + by_chance(FALSE)


def test_too_narrow_an_interval_is_seen() -> None:
    """Samples of a user that are taken for independent ones, and metrics that are too high on average."""
    assert outside(covered([mlm.f1()], RUNS // 4, 100, one_to_nine, cluster=None), 100) != {}
    assert outside(covered([mlm.brier_reliability()], RUNS // 4, 100), 100) != {}


DEBIASED = mlm.brier_reliability(debiased=True)


@pytest.mark.parametrize("off", [0.0, 0.02, 0.05])
@pytest.mark.parametrize("rows", [100, 300, 1_000])
def test_a_debiased_reliability_holds_the_true_one(rows: int, off: float) -> None:
    """Of a model that is calibrated, and of some that are not. The cut at 0 makes the intervals hold more, not less."""
    share, _ = covered_of_calibrated(DEBIASED, RUNS, rows, off)
    assert share >= 0.95 - by_chance(0.95)


def test_the_reliability_of_a_calibrated_model_is_next_to_0() -> None:
    """Half of the values are cut at 0, and their mean is about .00002, where that of the biased ones is .0001."""
    share, mean = covered_of_calibrated(DEBIASED, 500, 20_000)
    assert share >= 0.95 - 2 * by_chance(0.95)  # of a quarter of the runs
    assert mean < 0.00003
    assert covered_of_calibrated(mlm.brier_reliability(), 500, 20_000)[1] > 0.0001
