"""Truths that are not in yet, and lists that nothing was returned for: what they do to the numbers."""

import random
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from polars_mlmetrics.adapters.truths import with_truths

NEVER = float("-inf")
LABELS = list("abcdef")

# Ten searches a day; whoever buys what was found does so on that day or on one of the three after it.
RANDOM = random.Random(5)
SEARCHES = pl.DataFrame({"sample": range(100)}).with_columns(day=pl.col("sample") // 10)
RETURNED = SEARCHES.with_columns(label=pl.Series([RANDOM.sample(LABELS, 3) for _ in range(100)])).explode("label")
RETURNED = RETURNED.with_columns(score=pl.Series([RANDOM.random() for _ in range(300)]))
SALES = SEARCHES.select(
    "sample",
    label=pl.Series(RANDOM.choices(LABELS, k=100)),
    sold=pl.col("day") + pl.Series([RANDOM.randrange(4) for _ in range(100)]),
)


def sold_until(today: int) -> pl.DataFrame:
    return SALES.filter(pl.col("sold") <= today).drop("sold")


def hits(log: pl.DataFrame) -> dict[int, float | None]:
    table = mlm.evaluate(log, mlm.hit_at(2), by="day")
    return dict(table.select("day", "hit_at_2").iter_rows())


FINAL = hits(with_truths(RETURNED, SALES.drop("sold"), of_sample="day"))


def test_a_day_has_its_final_value_or_none() -> None:
    """With the sales until day 9, those of day 7 and later are not all in."""
    log = with_truths(RETURNED, sold_until(9), of_sample="day", known=pl.col("day") <= 9 - 3)
    assert hits(log) == {day: value if day <= 6 else None for day, value in FINAL.items()}


def test_without_it_late_days_look_worse_than_they_are() -> None:
    told = hits(with_truths(RETURNED, sold_until(9), of_sample="day"))
    found = {day: sum(1 for row in SALES.iter_rows() if row[0] // 10 == day and row[2] <= 9) for day in (0, 9)}
    assert found[9] < found[0] == 10
    assert {day: told[day] for day in range(7)} == {day: FINAL[day] for day in range(7)}
    assert told != FINAL


def test_what_is_not_known_is_counted() -> None:
    log = with_truths(RETURNED, sold_until(9), of_sample="day", known=pl.col("day") <= 6)
    table = mlm.evaluate(log, mlm.hit_at(2), by="day", tidy=True)
    late = table.filter(pl.col("day") > 6)
    rows = log.filter(pl.col("day") > 6).group_by("day").len().sort("day")["len"]
    assert late["n_excluded"].to_list() == rows.to_list()
    assert late["n_rows"].to_list() == [0, 0, 0]
    assert mlm.check(log, progress=False).filter(problem="truth_null")["count"].to_list() == [rows.sum()]


@pytest.mark.parametrize(
    "known",
    [
        pl.col("day") <= 6, "is_in", SEARCHES.filter(pl.col("day") <= 6), pl.DataFrame({"sample": range(70)}),
        SEARCHES.filter(pl.col("day") <= 6).lazy(),
    ],
    ids=["condition", "column", "table", "samples", "LazyFrame"],
)  # fmt: skip
@pytest.mark.parametrize("n_labels", [None, 6])
def test_a_condition_a_column_and_a_table_say_the_same(known: Any, n_labels: int | None) -> None:
    returned = RETURNED.with_columns(is_in=pl.col("day") <= 6)
    table = with_truths(returned, sold_until(9), of_sample=["day", "is_in"], known=known, n_labels=n_labels)
    table = table.lazy().collect()
    whole = with_truths(returned, sold_until(9), of_sample=["day", "is_in"], n_labels=n_labels)
    expected = whole.with_columns(truth=pl.when(pl.col("day") <= 6).then("truth"))
    assert_frame_equal(table, expected, check_row_order=not isinstance(known, pl.LazyFrame))


def test_a_list_is_known_where_all_its_rows_are() -> None:
    returned = pl.DataFrame(
        {"sample": [1, 1, 2, 2, 3], "label": list("ababa"), "score": 0.5, "is_in": [True, True, True, None, False]}
    )
    truths = pl.DataFrame({"sample": [1, 2, 3], "label": ["c", "a", "a"]})
    log = with_truths(returned, truths, known="is_in")
    assert log.select("sample", "label", "truth").rows() == [
        (1, "a", False), (1, "b", False), (2, "a", None), (2, "b", None), (3, "a", None), (1, "c", True),
    ]  # fmt: skip


def test_each_list_of_a_sample_is_known_by_itself() -> None:
    """A user is asked every day, and what was bought on a day is of that day."""
    returned = pl.DataFrame({"day": [1, 2, 3], "user": 7, "label": "a", "score": 0.5})
    truths = pl.DataFrame({"day": [1, 2], "user": 7, "label": ["a", "b"]})
    log = with_truths(returned, truths, by="day", sample="user", known=pl.col("day") < 3)
    rows = log.select("day", "label", "truth").rows()
    assert rows == [(1, "a", True), (2, "a", False), (3, "a", None), (2, "b", True)]


# -- lists that nothing was returned for -------------------------------------------------------------------------------


def test_a_model_that_returned_nothing_has_missed_all() -> None:
    """Model n was asked about both samples and answered for one."""
    returned = pl.DataFrame({"model": ["m", "m", "n"], "sample": [1, 2, 1], "label": "a", "score": 0.5})
    truths = pl.DataFrame({"sample": [1, 2], "label": "a"})
    asked = pl.DataFrame({"model": ["m", "m", "n", "n"], "sample": [1, 2, 1, 2]})
    unasked = with_truths(returned, truths, by="model")
    assert mlm.evaluate(unasked, mlm.recall_at(1), mlm.n_samples(), by="model").rows() == [("m", 1.0, 2), ("n", 1.0, 1)]
    log = with_truths(returned, truths, by="model", asked=asked)
    assert mlm.evaluate(log, mlm.recall_at(1), mlm.n_samples(), by="model").rows() == [("m", 1.0, 2), ("n", 0.5, 2)]
    assert log["model"].null_count() == 0


def test_an_empty_list_is_filled_too() -> None:
    returned = pl.DataFrame({"sample": [1], "label": ["a"], "score": [0.9]})
    truths = pl.DataFrame({"sample": [1], "label": ["a"]})
    log = with_truths(returned, truths, asked=pl.DataFrame({"sample": [2, 1, 2]}), n_labels=2)
    assert log.rows() == [
        (1, "a", 0.9, True, "returned"),
        (1, None, NEVER, False, "filled in"),
        (2, None, NEVER, False, "filled in"),
        (2, None, NEVER, False, "filled in"),
    ]


def test_the_columns_of_an_empty_list_are_those_that_it_was_asked_with() -> None:
    returned = pl.DataFrame(
        {"sample": [1, 3, 3], "label": ["a", "a", "b"], "score": 0.9, "country": ["DE", "FR", "FR"]}
    )
    truths = pl.DataFrame({"sample": [1, 2, 3], "label": "c"})
    asked = pl.DataFrame({"sample": [1, 2, 3], "country": ["DE", "IT", "ES"]})
    log = with_truths(returned, truths, of_sample="country", asked=asked)
    assert log.filter(listed="not returned").select("sample", "country").rows() == [(1, "DE"), (2, "IT"), (3, None)]
