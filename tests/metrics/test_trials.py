"""Trials of a task: of any number of them, against the counts of ways to draw, and against `hit_at` of equal scores."""

from fractions import Fraction
from math import comb
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.support.at_once import each
from tests.support.readings import same

COUNTS = [(1, 1), (3, 0), (3, 2), (5, 5), (16, 1), (17, 3), (40, 2), (40, 39), (64, 32), (300, 7), (3000, 1200)]
"""Trials and successes of each task."""

DRAWN = [1, 2, 5, 16, 17, 20, 64, 500]


def trials(counts: list[tuple[int, int]]) -> pl.DataFrame:
    rows = [(task, float(trial < right)) for task, (many, right) in enumerate(counts) for trial in range(many)]
    return pl.DataFrame(rows, schema=["sample", "truth"], orient="row").with_columns(score=pl.lit(0.5))


def some_succeed(many: int, right: int, k: int) -> Fraction:
    """One less the chance that k failures are drawn, one after the other."""
    chance = Fraction(1)
    for drawn in range(k):
        chance *= Fraction(max(many - right - drawn, 0), many - drawn)
    return 1 - chance


def all_succeed(many: int, right: int, k: int) -> Fraction:
    return Fraction(comb(right, k), comb(many, k))


@pytest.mark.parametrize(("name", "chance"), [("pass_at", some_succeed), ("pass_all", all_succeed)])
@pytest.mark.parametrize("k", DRAWN)
def test_a_chance_is_right_for_any_number_of_trials(name: str, chance: Any, k: int) -> None:
    log, metric = trials(COUNTS), getattr(mlm, name)(k).alias("chance")
    values = mlm.evaluate(log, metric, per="sample").sort("sample")["chance"].to_list()
    expected = [float(chance(*counts, k)) if counts[0] >= k else None for counts in COUNTS]
    assert all(same(one, other, 1e-13) for one, other in zip(values, expected, strict=True)), values
    known = [value for value in expected if value is not None]
    assert same(each(log, [metric])[0], sum(known) / len(known), 1e-13)
    assert same(mlm.finish(mlm.state(log, metric), metric)["chance"].item(), sum(known) / len(known), 1e-13)


@pytest.mark.parametrize("k", [1, 3, 20])
def test_without_scores_a_hit_is_a_pass(k: int) -> None:
    log = trials([counts for counts in COUNTS if counts[0] >= k])
    hit, passed = mlm.evaluate(log, mlm.hit_at(k), mlm.pass_at(k)).row(0)
    assert same(hit, passed, 1e-13)


def test_the_table_of_the_paper_in_small() -> None:
    """Of two tasks with five trials each, one and three right: by hand."""
    log = trials([(5, 1), (5, 3)])
    metrics = [mlm.pass_at(1), mlm.pass_at(2), mlm.pass_all(2), mlm.pass_all(3), mlm.pass_at(6)]
    assert each(log, metrics) == [0.4, pytest.approx((0.4 + 0.9) / 2), pytest.approx(0.15), pytest.approx(0.05), None]


def test_scores_may_be_any_column_without_nulls() -> None:
    log = trials([(5, 1), (5, 3)])
    assert mlm.evaluate(log.drop("score"), mlm.pass_at(2)).item() == pytest.approx(0.65)
