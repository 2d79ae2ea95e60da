"""Calibration: `calibration_error` has no interval, and a debiased reliability one that is made before the cut at 0."""

from math import sqrt
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import stats

import polars_mlmetrics as mlm
from polars_mlmetrics.engine.buckets import bucket_of
from tests.intervals.users import users
from tests.support.degrees import degrees_of_freedom

DEBIASED = mlm.brier_reliability(debiased=True)
ERRORS = [
    mlm.calibration_error(),
    mlm.calibration_error(norm="max", bins=5).alias("largest"),
    mlm.calibration_error(average="macro"),
    mlm.calibration_error().round(3).alias("rounded"),
    (mlm.calibration_error() + mlm.f1()).alias("sum"),
    (mlm.calibration_error() / mlm.support()).alias("ratio"),
    mlm.average_score(mlm.calibration_error()),
]


@pytest.mark.parametrize("ci", [0.95, "bootstrap"])
def test_a_calibration_error_has_no_interval(ci: Any) -> None:
    tidy = mlm.evaluate(users(), ERRORS, ci=ci, tidy=True)
    facts = tidy.select("se", "low", "high", "n_buckets", "ci_method", "ci_flag").unique()
    assert facts.rows() == [(None, None, None, None, "none", "biased")]
    wide = mlm.evaluate(users(), ERRORS, by="country", ci=ci)
    assert wide.select(pl.col("^.*_(low|high)$").is_null().all()).row(0) == (True,) * 2 * len(ERRORS)
    assert_frame_equal(wide.drop("^.*_(low|high)$"), mlm.evaluate(users(), ERRORS, by="country"))


def test_a_state_says_the_same() -> None:
    state = mlm.state(users(), ERRORS[:4])
    facts = ["metric", "value", "se", "low", "high", "n_buckets", "ci_method", "ci_flag"]
    ours, theirs = (
        mlm.finish(state, ERRORS[:4], ci=0.95, tidy=True),
        mlm.evaluate(users(), ERRORS[:4], ci=0.95, tidy=True),
    )
    assert_frame_equal(ours.select(facts), theirs.select(facts))


def of_two() -> pl.DataFrame:
    """Two models of the same samples."""
    other = pl.col("score") ** 2
    return pl.concat(
        [users().with_columns(other.alias("score") if m == "b" else "score", model=pl.lit(m)) for m in "ab"]
    )


def test_a_difference_of_them_is_not_judged() -> None:
    table = mlm.compare(of_two(), mlm.calibration_error(), DEBIASED, baseline="a")
    assert table["difference"].null_count() == 0
    row = table.row(0, named=True)
    assert [row[name] for name in ("low", "high", "p", "p_adjusted", "mde", "verdict")] == [None] * 6
    assert table["ci_flag"].to_list() == ["biased", "ok"]
    assert table["verdict"][1] is not None


def test_nor_is_a_gap_between_slices() -> None:
    row = mlm.gap(users(), mlm.calibration_error(), over="label").row(0, named=True)
    assert (row["low"], row["high"], row["ci_flag"]) == (None, None, "biased")
    assert mlm.gap(users(), DEBIASED, over="label").row(0, named=True)["low"] == 0


def test_several_models_in_one_value_come_first() -> None:
    """As with other flags of this place: it is the value that is wrong then."""
    table = mlm.evaluate(of_two(), mlm.calibration_error(), mlm.support(), ci=0.95, tidy=True)
    assert table["ci_flag"].to_list() == ["pooled", "totals"]
    assert mlm.gap(of_two(), mlm.calibration_error(), over="label")["ci_flag"].item() == "pooled"


# --- a debiased reliability -------------------------------------------------------------------------------------------


def calibrated(rows: int = 900, seed: int = 0) -> pl.DataFrame:
    score, drawn = np.random.default_rng(seed).uniform(size=(2, rows))
    return pl.DataFrame({"sample": range(rows), "score": score, "truth": drawn < score})


def uncut(rows: pl.DataFrame, bins: int = 15) -> float:
    """By numpy and scipy: of each bin the squared gap, less the squared standard error of its mean."""
    surplus, place = rows["score"].to_numpy() - rows["truth"].to_numpy(), (rows["score"] * bins).cast(int).to_numpy()
    of_bins = [surplus[place == b] for b in range(bins)]
    parts = [len(each) * (each.mean() ** 2 - stats.sem(each) ** 2) for each in of_bins if len(each) > 1]
    return float(sum(parts) / len(surplus))


@pytest.mark.parametrize("seed", range(8))
def test_its_interval_is_the_jackknife_before_the_cut(seed: int) -> None:
    log = calibrated(seed=seed)
    buckets = log.with_columns(bucket_of(["sample"], log.schema, 64)[0].alias("bucket"))
    value = uncut(log)
    without = [uncut(buckets.filter(pl.col("bucket") != bucket)) for bucket in range(64)]
    moved = [each - value for each in without]
    se, t = sqrt(63 / 64 * sum(each**2 for each in moved)), stats.t.ppf(0.975, degrees_of_freedom(64, moved))
    row = mlm.evaluate(log, DEBIASED, ci=0.95, tidy=True).row(0, named=True)
    value = max(0.0, value)
    found = [row[name] for name in ("value", "se", "low", "high")]
    assert found == pytest.approx([value, se, max(0.0, value - t * se), value + t * se], rel=1e-9)
    assert (row["ci_method"], row["ci_flag"], row["n_buckets"]) == ("t", "ok", 64)


def test_some_of_these_are_cut_and_others_not() -> None:
    values = [uncut(calibrated(seed=seed)) for seed in range(8)]
    assert 2 <= sum(value < 0 for value in values) <= 6


def test_it_is_that_of_a_rounded_one_and_of_a_label_too() -> None:
    log = calibrated().with_columns(label=pl.col("sample") % 2)
    low, high = mlm.evaluate(log, DEBIASED, ci=0.95).row(0)[1:]
    rounded = mlm.evaluate(log, DEBIASED.round(4).alias("rounded"), ci=0.95).row(0)[1:]
    assert rounded == (round(low, 4), round(high, 4))
    by, per = (mlm.evaluate(log, DEBIASED, ci=0.95, **{key: "label"}).sort("label") for key in ("by", "per"))
    assert_frame_equal(by, per.select(by.columns), rel_tol=1e-9)
    state = mlm.state(log, mlm.brier_reliability(debiased=True, average="macro"))
    assert_frame_equal(mlm.finish(state, DEBIASED, per="label", ci=0.95).sort("label"), per, rel_tol=1e-9)


def test_a_mean_of_values_that_are_cut_is_biased() -> None:
    log = calibrated().with_columns(label=pl.col("sample") % 2)
    means = [mlm.brier_reliability(debiased=True, average="macro"), mlm.average_score(DEBIASED)]
    table = mlm.evaluate(log, means, ci=0.95, tidy=True)
    assert table["ci_flag"].to_list() == ["biased", "biased"]
    assert table["low"].null_count() == 0


def test_draws_have_rows_several_times_which_it_would_take_for_more_rows() -> None:
    row = mlm.evaluate(calibrated(), DEBIASED, ci="bootstrap", tidy=True).row(0, named=True)
    assert (row["low"], row["high"], row["ci_method"], row["ci_flag"]) == (None, None, "none", "biased")


# --- its value in states ----------------------------------------------------------------------------------------------


def test_states_merge() -> None:
    log = calibrated().with_columns(part=pl.col("sample") % 3, weight=pl.col("sample") % 4)
    states = [mlm.state(part, DEBIASED, weight="weight") for part in log.partition_by("part")]
    expected = mlm.evaluate(log, DEBIASED, ci=0.95, weight="weight")
    assert_frame_equal(mlm.finish(pl.concat(states), DEBIASED, ci=0.95), expected, rel_tol=1e-9)
    copies = log.select(pl.all().repeat_by("weight")).explode(pl.all())
    assert mlm.evaluate(copies, DEBIASED).item() == pytest.approx(expected["brier_reliability"].item(), rel=1e-9)


def test_a_state_that_lacks_the_sum_says_so() -> None:
    state = mlm.state(calibrated(), mlm.brier_reliability(), mlm.calibration_error())
    with pytest.raises(mlm.StateError, match="needs 'squared_surplus by bin@15', which this state does not hold"):
        mlm.finish(state, DEBIASED)
    assert mlm.finish(mlm.state(calibrated(), DEBIASED), mlm.calibration_error()).item() > 0
