"""The flags of all rows, and of few pairs: the side of which less is known decides."""

from collections.abc import Sequence
from math import isfinite
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from tests.contrasts.months import compared, log

pytestmark = pytest.mark.usefixtures("buckets_of_states")


def test_a_group_that_one_side_lacks_says_so() -> None:
    """Its one value is there; a metric may have a value of no rows, and is no difference for it."""
    rows = log().with_columns(
        country=pl.when(month="new", country="DE").then(pl.lit("AT")).otherwise("country"),
    )
    metrics = [mlm.accuracy(), mlm.n_rows(), mlm.f1(undefined=0.0), mlm.ks()]
    for keys in ({"by": "country"}, {"slices": ["country"]}):
        table = compared(rows, metrics, **keys).filter(pl.col("country") != "FR")
        assert table["ci_flag"].to_list() == ["one_side"] * 8
        known = table.select(pl.col("value", "baseline_value").is_not_null()).rows()
        assert known == [(True, False)] * 4 + [(False, True)] * 4
        nothing = ["difference", "low", "high", "p", "p_adjusted", "verdict", "n_pairs", "n_unpaired", "mde"]
        assert table.select(nothing).null_count().row(0) == (8,) * len(nothing)
    made = mlm.state(rows, metrics[:3], by=["month", "country"])
    of_log, of_state = compared(rows, metrics[:3], by="country"), compared(made, metrics[:3], by="country")
    assert_frame_equal(of_log, of_state, rel_tol=1e-9, abs_tol=1e-12)


RULES = {"difference": pl.col("difference") >= -1, "any null will do": pl.col("verdict").ne_missing("worse")}


@pytest.mark.parametrize(("on_undefined", "status"), [("fail", "fail"), ("pass", "skip"), ("skip", "skip")])
def test_a_gate_passes_nothing_that_one_side_lacks(on_undefined: Any, status: str) -> None:
    rows = log().filter((pl.col("month") == "old") | (pl.col("country") == "FR"))
    table = compared(rows, mlm.accuracy(), by="country").filter(country="DE")
    found = mlm.gate(table, RULES, on_undefined=on_undefined)
    assert found["status"].to_list() == [status] * 2
    assert found["reason"].to_list() == [f"one side has no rows: {name} is null" for name in ("difference", "verdict")]


def test_a_table_says_why_there_is_no_verdict() -> None:
    rows = log().filter((pl.col("month") == "old") | (pl.col("country") == "FR"))
    page = mlm.table(compared(rows, mlm.accuracy(), mlm.ks(), slices=["country"])).as_raw_html()
    assert (page.count(">one side<"), page.count(">no interval<")) == (2, 2)


def two_sides(few: Sequence[bool], many: Sequence[bool]) -> pl.DataFrame:
    """Rows that are right or wrong, of other samples on each side."""
    right = [*few, *many]
    months = ["new"] * len(few) + ["old"] * len(many)
    rows = pl.DataFrame({"sample": range(len(right)), "month": months, "right": right})
    return rows.with_columns(score=0.9, truth=pl.col("right").cast(pl.Int64))


def test_a_side_that_does_not_vary_tells_nothing() -> None:
    many = [n % 5 > 0 for n in range(1000)]
    for few in (3, 40):
        table = compared(two_sides([True] * few, many), mlm.accuracy(), margin=0.9)
        row = table.select("difference", "low", "high", "p", "mde", "verdict", "ci_flag").row(0)
        assert row[1:] == (None, None, None, None, None, "degenerate")
    # Nor do two: equal they may be by chance.
    table = compared(two_sides([True] * 3, [True] * 1000), mlm.accuracy(), margin=0.9)
    assert table.select("difference", "verdict", "ci_flag").row(0) == (0.0, None, "degenerate")


@pytest.mark.parametrize(("few", "flag"), [(5, "few_buckets"), (20, "low_n"), (200, "ok")])
def test_the_smaller_side_is_flagged(few: int, flag: str) -> None:
    rows = two_sides([n % 2 > 0 for n in range(few)], [n % 5 > 0 for n in range(1000)])
    for baseline in ("old", "new"):
        assert compared(rows, mlm.accuracy(), baseline=baseline)["ci_flag"].item() == flag


def test_few_positives_on_one_side_are_flagged() -> None:
    """With one positive of 100 rows against 100 of 10,000 a third of equal months differ, as by Welch's test."""
    random = np.random.default_rng(0)
    months = {"month": ["new"] * 100 + ["old"] * 10_000, "sample": range(10_100)}
    truth = np.arange(10_100) % 100 == 0
    rows = pl.DataFrame({**months, "truth": truth, "score": random.uniform(0.001, 0.02, 10_100)})
    for baseline in ("old", "new"):
        table = compared(rows, mlm.log_loss(), mlm.brier_score(), baseline=baseline)
        assert set(table["ci_flag"]) <= {"few_decide", "few_positives"}
        gate = mlm.gate(table, {"unless worse": pl.col("verdict") != "worse"})
        assert gate["status"].to_list() == ["insufficient"] * 2


def test_one_large_cluster_on_one_side_is_flagged() -> None:
    rows = two_sides([n % 3 > 0 for n in range(600)], [n % 5 > 0 for n in range(900)])
    is_large = (pl.col("month") == "new") & (pl.col("sample") < 200)
    rows = rows.with_columns(user=pl.when(is_large).then(0).otherwise(pl.col("sample") + 1))
    for baseline in ("old", "new"):
        table = compared(rows, mlm.accuracy(), cluster="user", baseline=baseline)
        assert table["ci_flag"].item() in ("few_decide", "dominant_cluster")


# -- a state -----------------------------------------------------------------------------------------------------------


def test_a_state_of_pairs_has_not_all_rows() -> None:
    made = mlm.state(log(), mlm.accuracy(), by="month", between="month")
    with pytest.raises(mlm.StateError, match="make it without between="):
        compared(made, mlm.accuracy())


def test_rows_without_a_sample_count() -> None:
    rows = log().with_columns(sample=pl.when(pl.col("sample") != 100).then("sample"))
    table = compared(rows, mlm.accuracy())
    assert table["value"].item() == pytest.approx(compared(log(), mlm.accuracy())["value"].item(), rel=1e-12)
    assert isfinite(table["low"].item())


# -- pairs -------------------------------------------------------------------------------------------------------------


def test_few_pairs_are_flagged() -> None:
    """60 samples of the one month and 120 of the other are not in both; in half of that none lacks."""
    table = compared(log(), mlm.accuracy(), mlm.ks(), pairs=True, slices=["country"])
    flags = dict.fromkeys(table.filter(metric="accuracy")["ci_flag"])
    assert set(flags) <= {"few_pairs", "few_buckets"}
    assert table.filter(metric="accuracy")["ci_flag"][0] == "few_pairs"
    # What says that there is no interval, or that nobody may believe it, comes first.
    assert table.filter(metric="ks")["ci_flag"].to_list() == ["no_state"] * 3
    more = log().filter(pl.col("sample").is_between(45, 105))
    assert compared(more, mlm.accuracy(), pairs=True).select("n_pairs", "n_unpaired", "ci_flag").row(0) == (
        30,
        31,
        "few_pairs",
    )
    more = log().filter(pl.col("sample").is_between(46, 105))
    assert compared(more, mlm.accuracy(), pairs=True).select("n_pairs", "n_unpaired", "ci_flag").row(0) == (
        30,
        30,
        "ok",
    )


def test_no_pairs_name_the_remedy() -> None:
    rows = log().filter((pl.col("month") == "old") | (pl.col("sample") >= 90))
    with pytest.raises(mlm.TableError, match="Pass pairs=False if the two sides are meant to have other samples"):
        compared(rows, mlm.accuracy(), pairs=True)
    assert compared(rows, mlm.accuracy())["difference"].null_count() == 0
