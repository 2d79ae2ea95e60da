"""Intervals of `anytime=` are right at every look at all rows so far, in logs drawn at random."""

from collections.abc import Mapping
from functools import cache
from math import sqrt
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.support.simulated import TwoClasses, at_looks, ever_wrong, log_at_looks, one_to_nine

RUNS = 300
FIRST, ALL, A_YEAR = 30, 100, 365
TIGHTEST = 100 * FIRST
METRICS = [mlm.accuracy(), mlm.f1(), mlm.log_loss()]
AREA, OF_FEW_BINS = [mlm.roc_auc(bins=20)], [mlm.roc_auc(bins=10)]

PLAIN, GOOD = TwoClasses(100, 0.3), TwoClasses(100, 0.5, 4.0)
"""So many rows are new at each look. The good model is right in .977 of them."""
SMALL_STEPS, OF_USERS = TwoClasses(50, 0.5, 4.0), TwoClasses(20, 0.3, sizes=one_to_nine)
LOOKED_AT = [
    ("accuracy, f1, log_loss", PLAIN, METRICS, ALL),
    ("accuracy, f1, log_loss of a good model", GOOD, METRICS, ALL),
    ("accuracy, f1, log_loss of a good model, in small steps", SMALL_STEPS, METRICS, FIRST),
    ("accuracy, f1, log_loss of users with 1 to 9 samples", OF_USERS, METRICS, FIRST),
    ("roc_auc", PLAIN, AREA, FIRST),
    ("roc_auc of a good model", GOOD, AREA, FIRST),
    ("roc_auc of a good model, in few bins", GOOD, OF_FEW_BINS, FIRST),
]

ANYTIME: Mapping[str, Mapping[str, Any]] = {"anytime": {"anytime": TIGHTEST}}
ONE_LOOK: Mapping[str, Mapping[str, Any]] = {"one look": {}}
FARTHER: Mapping[str, Mapping[str, Any]] = {
    "a tenth": {"anytime": TIGHTEST // 10},
    "ten times": {"anytime": TIGHTEST * 10},
}
"""Numbers of rows that are wrong."""


@cache
def looked_at(place: int) -> pl.DataFrame:
    _, logs, metrics, looks = LOOKED_AT[place]
    return at_looks(logs, metrics, RUNS, looks, ANYTIME)


def assert_honest(table: pl.DataFrame, looks: int, runs: int = RUNS) -> None:
    """At most .05 of the runs are ever wrong, and by chance two standard deviations of a binomial more."""
    found = ever_wrong(table, looks)
    assert max(found.values()) <= 0.05 + 2 * sqrt(0.05 * 0.95 / runs), found


@pytest.mark.parametrize("place", range(len(LOOKED_AT)), ids=[name for name, *_ in LOOKED_AT])
def test_few_runs_are_ever_wrong(place: int) -> None:
    assert_honest(looked_at(place), FIRST)
    assert_honest(looked_at(place), LOOKED_AT[place][-1])


def test_few_of_all_runs_are_ever_wrong() -> None:
    shares = [share for place in range(len(LOOKED_AT)) for share in ever_wrong(looked_at(place), FIRST).values()]
    assert sum(shares) / len(shares) <= 0.05, shares


@pytest.mark.parametrize("logs", [PLAIN, OF_USERS], ids=["rows", "users"])
def test_few_runs_are_ever_wrong_in_a_year_of_a_state(logs: TwoClasses) -> None:
    table = at_looks(logs, METRICS, RUNS, A_YEAR, ANYTIME)
    assert table["look"].max() == A_YEAR
    assert_honest(table, A_YEAR)


def test_few_runs_are_ever_wrong_in_a_year_of_a_log() -> None:
    """Ten rows are new each night."""
    runs = RUNS // 2
    table = log_at_looks(TwoClasses(10, 0.3), METRICS[::2], runs, A_YEAR, anytime=10 * FIRST)
    last = table.filter(pl.col("look") == A_YEAR)
    assert last["n_rows"].to_list() == [10 * A_YEAR] * last.height
    assert last["low"].null_count() == 0
    assert_honest(table, A_YEAR, runs)


@pytest.mark.parametrize(("place", "look"), [(0, 10), (1, FIRST)])
def test_most_runs_have_an_interval_before_long(place: int, look: int) -> None:
    """Of a good model later than of others, as few of its rows are wrong."""
    of_look = looked_at(place).filter(pl.col("look") == look)
    assert of_look["low"].null_count() <= 0.1 * of_look.height


def test_intervals_of_one_look_are_often_wrong() -> None:
    found = ever_wrong(at_looks(PLAIN, METRICS, RUNS, FIRST, ONE_LOOK), FIRST)
    assert all(0.2 < share < 0.48 for share in found.values()), found


def test_another_number_of_rows_is_as_honest_and_wider() -> None:
    table = at_looks(PLAIN, METRICS, RUNS // 2, FIRST, {**ANYTIME, **FARTHER, **ONE_LOOK})
    assert_honest(table.filter(pl.col("way") != "one look"), FIRST, RUNS // 2)
    last = table.filter(pl.col("look") == FIRST)
    widths = dict(last.group_by("way").agg((pl.col("high") - pl.col("low")).mean()).rows())
    times = {way: width / widths["one look"] for way, width in widths.items()}
    assert 1.45 <= times["anytime"] <= 1.7, times
    assert times["anytime"] < times["a tenth"] < times["ten times"] < 2, times
