"""Agreement of raters, held to published values and to the definition as mean squared differences of pairs."""

from collections.abc import Callable
from itertools import combinations
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm

# The worked example of Krippendorff's alpha: three raters, fifteen units, "*" where a rater gave none.
RATINGS = {
    "a": "* * * * * 3 4 1 2 1 1 3 3 * 3",
    "b": "1 * 2 1 3 3 4 3 * * * * * * *",
    "c": "* * 2 1 3 4 4 * 2 1 1 3 3 * 4",
}


def ratings() -> pl.DataFrame:
    cells = [
        {"rater": rater, "sample": unit, "score": float(mark)}
        for rater, marks in RATINGS.items()
        for unit, mark in enumerate(marks.split())
        if mark != "*"
    ]
    return pl.DataFrame(cells)


def alpha_of_pairs(frame: pl.DataFrame) -> float:
    """1 - D_o / D_e, over pairs of ratings, of the units with two ratings or more."""
    units: dict[Any, list[float]] = {}
    for sample, score in frame.select("sample", "score").iter_rows():
        units.setdefault(sample, []).append(score)
    paired = [marks for marks in units.values() if len(marks) > 1]
    marks = [mark for unit in paired for mark in unit]
    n = len(marks)
    observed = sum(2 * sum((a - b) ** 2 for a, b in combinations(unit, 2)) / (len(unit) - 1) for unit in paired) / n
    expected = 2 * sum((a - b) ** 2 for a, b in combinations(marks, 2)) / (n * (n - 1))
    return 1 - observed / expected


def test_worked_example() -> None:
    """The published value of the interval scale is 0.811, of three digits."""
    value = mlm.evaluate(ratings(), mlm.krippendorff_alpha())["krippendorff_alpha"].item()
    assert value == pytest.approx(0.811, abs=5e-4)
    assert value == pytest.approx(alpha_of_pairs(ratings()), rel=1e-12)


def test_nominal_alpha_of_two_classes() -> None:
    """Of 0 and 1 the difference of intervals is that of names: the published nominal alpha of two classes."""
    first = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0]
    second = [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]
    pairs = [{"sample": s, "score": x} for s, both in enumerate(zip(first, second, strict=True)) for x in both]
    value = mlm.evaluate(pl.DataFrame(pairs), mlm.krippendorff_alpha())["krippendorff_alpha"].item()
    assert value == pytest.approx(0.095, abs=5e-4)  # Krippendorff 2011, section A


@pytest.mark.parametrize(
    ("samples", "scores"),
    [([1, 2, 3], [0.1, 0.5, 0.9]), ([1, 1, 2, 2], [0.3, 0.3, 0.3, 0.3])],
    ids=["one rating each", "all equal"],
)
def test_no_value(samples: list[int], scores: list[float]) -> None:
    frame = pl.DataFrame({"sample": samples, "score": scores})
    assert mlm.evaluate(frame, mlm.krippendorff_alpha())["krippendorff_alpha"].item() is None


def test_a_slice_without_raters_that_agree() -> None:
    frame = ratings().with_columns(half=pl.col("sample") < 7)
    table = mlm.evaluate(frame, mlm.krippendorff_alpha(), by="half")
    for half, value in table.select("half", "krippendorff_alpha").iter_rows():
        assert value == pytest.approx(alpha_of_pairs(frame.filter(pl.col("half") == half)), rel=1e-12)


@pytest.mark.parametrize("metric", [mlm.icc, mlm.concordance], ids=["icc", "concordance"])
def test_a_constant_agrees_with_nothing(metric: Callable[[], mlm.Metric]) -> None:
    """Exactly: the sums of deviations from a rounded mean of 0.1 are not 0."""
    for n in range(3, 200):
        log = pl.DataFrame({"score": [(i * 37 % 101) / 101 for i in range(n)], "truth": [0.1] * n})
        assert mlm.evaluate(log, metric()).item() == 0.0
        assert mlm.evaluate(log.select(score="truth", truth="score"), metric()).item() == 0.0
