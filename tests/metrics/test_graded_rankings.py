"""Expected reciprocal rank, held to the chance that a reader stops: by hand, and over all orders of ties."""

import math
from collections.abc import Sequence
from itertools import permutations

import polars as pl
import pytest

import polars_mlmetrics as mlm


def err_in_order(grades: Sequence[float], max_grade: float, k: int | None = None) -> float:
    """A reader who goes down a list without ties."""
    value, left = 0.0, 1.0
    for place, grade in enumerate(grades[:k], 1):
        stop = (2**grade - 1) / 2**max_grade
        value += left * stop / place
        left *= 1 - stop
    return value


def value_of(scores: Sequence[float], grades: Sequence[float], max_grade: float, k: int | None = None) -> float:
    log = pl.DataFrame({"sample": 1, "label": range(len(scores)), "score": scores, "truth": grades})
    value: float = mlm.evaluate(log, mlm.err(max_grade, k=k)).item()
    assert log.select(mlm.err(max_grade, k=k)).item() == pytest.approx(value, rel=1e-12)
    return value


@pytest.mark.parametrize("k", [None, 1, 2, 9])
def test_without_ties(k: int | None) -> None:
    grades = [3.0, 2.0, 4.0, 0.0, 1.0]
    assert value_of([0.9, 0.7, 0.5, 0.3, 0.1], grades, 4, k) == pytest.approx(err_in_order(grades, 4, k), rel=1e-12)


def test_by_hand() -> None:
    """Of the highest grade alone, a reader stops at it by 15/16."""
    assert value_of([0.9], [4], 4) == 15 / 16
    assert value_of([0.9, 0.1], [0, 4], 4) == pytest.approx(15 / 32)


@pytest.mark.parametrize("k", [None, 2])
@pytest.mark.parametrize("grades", [[3, 0, 1, 0], [2, 2, 2], [0, 4]])
def test_a_tie_is_the_worst_of_its_orders(grades: Sequence[float], k: int | None) -> None:
    worst = min(err_in_order(order, 4, k) for order in permutations(grades))
    assert value_of([0.5] * len(grades), grades, 4, k) == pytest.approx(worst, rel=1e-12)


def test_what_was_not_returned_has_no_place() -> None:
    assert value_of([0.5, -math.inf], [1, 3], 3) == pytest.approx(err_in_order([1], 3))


def test_a_grade_above_the_highest_is_broken() -> None:
    log = pl.DataFrame({"sample": [1, 1, 2], "label": [1, 2, 1], "score": [0.5, 0.4, 0.5], "truth": [1, 5, 4]})
    assert math.isnan(mlm.evaluate(log, mlm.err(4)).item())
    assert mlm.evaluate(log, mlm.err(4), per="sample").sort("sample")["err"][1] == 15 / 16


def test_nothing_relevant_is_0() -> None:
    assert value_of([0.5, 0.4], [0, 0], 4) == 0
