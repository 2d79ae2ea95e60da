"""Intervals of 95 % hold the true value about as often as they say, in logs drawn at random."""

from functools import cache
from math import sqrt

import pytest

import polars_mlmetrics as mlm
from tests.simulated import COMPARED, METRICS, compared, covered, one_to_nine

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
    """Samples of a user that are taken for independent ones, and a metric that is too high on average."""
    assert outside(covered([mlm.f1()], RUNS // 4, 100, one_to_nine, cluster=None), 100) != {}
    assert outside(covered([mlm.calibration_error()], RUNS // 4, 100), 100) != {}
