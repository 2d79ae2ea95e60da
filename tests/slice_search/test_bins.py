"""Ranges of a column as the groups of a key."""

from collections import Counter
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from math import nan
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm

ROWS = 600


def log() -> pl.DataFrame:
    row = pl.int_range(pl.len())
    return pl.DataFrame({"sample": range(ROWS)}).with_columns(
        score=(row * 7919 % 1009) / 1009,
        truth=(row * 104729 % 13) % 2,
        age=15 + row * 31 % 75,
        amount=pl.when(row % 10 == 0).then(None).when(row % 10 == 1).then(nan).otherwise((row * 13 % 97) / 4),
        mostly=pl.when(row % 3 < 2).then(0.0).otherwise(row / 100),
        day=pl.lit(date(2024, 1, 1)) + pl.duration(days=row * 7 % 500),
        model=pl.lit("a"),
    )


def range_of(value: Any, edges: list[Any]) -> str:
    """The range of a value, by comparing it with one edge after the other."""
    low, high = "(-inf", "inf"
    for edge in edges:
        if value >= edge:
            low = f"[{edge}"
        elif high == "inf":
            high = str(edge)
    return f"{low}, {high})"


@pytest.mark.parametrize("dtype", [pl.Int64, pl.UInt8, pl.Float32, pl.Decimal(10, 2)])
def test_edges_are_those_that_are_given(dtype: Any) -> None:
    frame = log().with_columns(pl.col("age").cast(dtype))
    found = frame.select(mlm.bins("age", [18, 30, 65])).to_series()
    assert found.cast(pl.String).to_list() == [range_of(age, [18, 30, 65]) for age in log()["age"]]
    assert found.dtype == pl.Enum(["(-inf, 18)", "[18, 30)", "[30, 65)", "[65, inf)", "NaN"])


def test_a_null_stays_null_and_nan_is_a_value() -> None:
    frame = pl.DataFrame({"x": [None, nan, -1.0, 0.0, 5.0, float("inf")]})
    found = frame.select(mlm.bins("x", [0, 2.5])).to_series().cast(pl.String)
    assert found.to_list() == [None, "NaN", "(-inf, 0)", "[0, 2.5)", "[2.5, inf)", "[2.5, inf)"]


def test_edges_of_dates() -> None:
    edges = [date(2024, 3, 1), date(2024, 9, 1)]
    found = log().select(mlm.bins("day", edges)).to_series().cast(pl.String)
    assert found.to_list() == [range_of(day, edges) for day in log()["day"]]


@pytest.mark.parametrize("column", ["age", "amount", "mostly", "day"])
@pytest.mark.parametrize("n", [2, 4])
def test_ranges_have_about_as_many_rows_each(column: str, n: int) -> None:
    """A value that fills a range alone is one by itself."""
    counts = log().group_by(mlm.bins(column, n, of=log())).len().drop_nulls().filter(pl.col(column) != "NaN")
    of_ranges = counts.filter(pl.col(column) != "0")
    assert of_ranges.height == n
    rows = of_ranges["len"].sum()
    assert all(rows / n * 0.6 < count < rows / n * 1.4 for count in of_ranges["len"])
    assert (counts.height > n) == (column == "mostly")


VERBS: dict[str, Callable[[Any, Any], Any]] = {
    "by": lambda rows, key: mlm.evaluate(rows, mlm.f1(), mlm.roc_auc(), by=key),
    "slices": lambda rows, key: mlm.evaluate(rows, mlm.f1(), slices=[key, [key, "model"]], ci=0.95, tidy=True),
    "cube": lambda rows, key: mlm.evaluate(rows, mlm.f1(), slices=mlm.cube(key, "model")),
    "gap": lambda rows, key: mlm.gap(rows, mlm.f1(), over=key),
    "worst": lambda rows, key: mlm.worst(rows, mlm.log_loss(), by=key, k=2),
    "confusion": lambda rows, key: mlm.confusion(rows, by=key, threshold=0.5),
    "compare": lambda rows, key: mlm.compare(twice(rows), mlm.f1(), between="model", baseline="a", slices=[key]),
    "finish": lambda rows, key: mlm.finish(mlm.state(rows, mlm.f1(), by=key), mlm.f1(), by="age"),
    "find_slices": lambda rows, key: mlm.evaluate(rows, mlm.f1(), by=[key, "model"]),
}


def twice(rows: Any) -> Any:
    other = rows.with_columns(model=pl.lit("b"), score=(pl.col("score") + 0.1).clip(0, 1))
    return pl.concat([rows, other])


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_groups_by_bins_as_by_a_column(verb: str) -> None:
    """Which ranges there are is decided by the DataFrame, by a log that is named, or by edges: all the same here."""
    of_rows = mlm.bins("age", 3, of=log())
    column = log().with_columns(of_rows)
    right = VERBS[verb](column, "age")
    for key in (mlm.bins("age", 3), of_rows, mlm.bins("age", 3, of=log().lazy())):
        assert_frame_equal(VERBS[verb](log(), key), right, check_row_order=False)


def test_a_lazy_log_and_passes_take_edges() -> None:
    right = mlm.evaluate(log(), mlm.f1(), by=mlm.bins("age", [30, 50]))
    lazy = mlm.evaluate(log().lazy(), mlm.f1(), by=mlm.bins("age", [30, 50]), passes=3, progress=False)
    assert_frame_equal(lazy.collect(), right)


def test_a_page_takes_bins() -> None:
    page = mlm.report(log(), mlm.f1(), slices=[mlm.bins("age", [30, 50]), mlm.bins("amount", 2)]).html
    assert "[30, 50)" in page


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: mlm.evaluate(log().lazy(), mlm.f1(), by=mlm.bins("age", 4)), r"bins\('age', 4, of=log\)"),
        (lambda: mlm.bins("age", 1), "at least 2 ranges, not 1"),
        (lambda: mlm.bins("age", [3, 1]), "in ascending order"),
        (lambda: mlm.bins("age", [1, 1]), r"not \[1, 1\]"),
        (lambda: mlm.bins("age", []), r"not \[\]"),
        (lambda: mlm.bins("age", ["a", "b"]), "all numbers, dates or times"),
        (lambda: mlm.bins("age", [1, date(2024, 1, 1)]), r"not \[1, datetime"),
        (lambda: mlm.bins("age", [30], of=log()), "pass it with a number of ranges"),
        (lambda: mlm.bins(pl.col("age"), 3), "the name of a column"),  # type: ignore[arg-type]
        (lambda: mlm.bins("model", 3, of=log()), "'model' is String"),
        (lambda: mlm.bins("nothing", 3, of=log()), "'nothing' is not in the table"),
        (lambda: mlm.evaluate(log(), mlm.f1(), slices=mlm.bins("age", 4)), "slices takes a list"),  # type: ignore[arg-type]
        (lambda: mlm.evaluate(log(), mlm.f1(), by=mlm.bins("age", 3), slices=[mlm.bins("age", 3)]), "already in by="),
    ],
)
def test_refusals(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(mlm.MetricError, match=words):
        call()


def test_numbers_of_every_size_are_in_the_range_that_their_text_says() -> None:
    frame = pl.DataFrame({"x": [Decimal("0.10"), Decimal("0.20"), Decimal("0.30")]}, schema={"x": pl.Decimal(4, 2)})
    found = frame.select(mlm.bins("x", [0.2, 0.3])).to_series().cast(pl.String)
    assert found.to_list() == ["(-inf, 0.2)", "[0.2, 0.3)", "[0.3, inf)"]
    day = date(2024, 1, 1) + timedelta(days=1)
    assert pl.DataFrame({"d": [day]}).select(mlm.bins("d", [day])).item() == "[2024-01-02, inf)"


def test_a_number_of_ranges_in_what_looks_at_a_log() -> None:
    """They are the groups of `profile`, and slices and groups of `check` and `dedupe`."""
    ranges = mlm.bins("age", 4)
    rows = mlm.profile(log(), by=ranges).filter(what="rows of group")
    counts = Counter(f"age={range_of(age, [35, 50, 70])}" for age in log()["age"])
    assert dict(rows.select("where", "value").iter_rows()) == counts
    assert mlm.check(log(), by=ranges, slices=[ranges])["problem"].to_list()[:3] == ["rows", "groups", "samples"]
    doubled = pl.concat([log(), log()])
    assert_frame_equal(mlm.dedupe(doubled, by=ranges, keep="first"), log(), check_row_order=False)
