"""All rows of both sides: a bucket leaves both sides at once, and each side has an error of its own."""

from collections.abc import Callable
from datetime import date, timedelta
from functools import cache
from math import sqrt
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import stats

import polars_mlmetrics as mlm
from polars_mlmetrics.engine.buckets import BUCKETS, bucket_of
from tests.contrasts.months import compared, log
from tests.support.degrees import degrees_of_freedom, welch
from tests.support.readings import same

pytestmark = pytest.mark.usefixtures("buckets_of_states")

LEVEL = 0.9
Rows = list[dict[str, Any]]
OfBoth = Callable[[Rows, Rows], list[float | None]]
"""The values of a metric on both sides."""


def test_it_is_about_all_rows() -> None:
    table = compared(log(), mlm.accuracy(), mlm.n_rows())
    values = mlm.evaluate(log(), mlm.accuracy(), mlm.n_rows(), by="month").sort("month")
    assert table["value"].to_list() == pytest.approx(values.row(0)[1:], rel=1e-12)
    assert table["baseline_value"].to_list() == pytest.approx(values.row(1)[1:], rel=1e-12)
    assert table.select("n_pairs", "n_unpaired").null_count().row(0) == (2, 2)


# -- the definition ----------------------------------------------------------------------------------------------------


def mean(of: Callable[[dict[str, Any]], float], weight: Callable[[dict[str, Any]], float] = lambda _: 1) -> OfBoth:
    def value(rows: Rows) -> float | None:
        return sum(weight(row) * of(row) for row in rows) / sum(map(weight, rows)) if rows else None

    return lambda *sides: [value(rows) for rows in sides]


def precision(rows: Rows) -> float | None:
    chosen = [row["truth"] for row in rows if row["score"] >= 0.5]
    return sum(chosen) / len(chosen) if chosen else None


def of_labels(*sides: Rows) -> list[float | None]:
    """The mean precision of the labels that have one on both sides."""
    found = [{label: precision([r for r in rows if r["label"] == label]) for label in "abc"} for rows in sides]
    in_both = [label for label in "abc" if None not in (found[0][label], found[1][label])]
    return [sum(side[label] or 0.0 for label in in_both) / len(in_both) if in_both else None for side in found]


def square(row: dict[str, Any]) -> float:
    return float((row["score"] - row["truth"]) ** 2)


METRICS: dict[str, tuple[mlm.Metric, OfBoth]] = {
    "accuracy": (mlm.accuracy(), mean(lambda row: (row["score"] >= 0.5) == row["truth"])),
    "brier": (mlm.brier_score(), mean(square)),
    "weighted": (mlm.brier_score().on(weight="weight"), mean(square, lambda row: row["weight"])),
    "precision": (mlm.precision(), lambda *sides: [precision(rows) for rows in sides]),
    "macro": (mlm.precision(average="macro"), of_labels),
}


def by_hand(rows: pl.DataFrame, of_both: OfBoth, cluster: str = "sample") -> dict[str, float]:
    """The joint jackknife by its definition."""
    known = rows.with_columns(bucket_of([cluster], rows.schema, BUCKETS)[0].alias("bucket")).to_dicts()
    sides = [[row for row in known if row["month"] == month] for month in ("new", "old")]
    each = sorted({row["bucket"] for row in known})
    left = [of_both(*([row for row in side if row["bucket"] != g] for side in sides)) for g in each]
    # A label is in both where it is in both in that bucket.
    alone = [of_both(*([row for row in side if row["bucket"] == g] for side in sides)) for g in each]
    whole = of_both(*sides)
    moved = np.array(left, dtype=float) - np.array(whole, dtype=float)
    difference = moved[:, 0] - moved[:, 1]
    has = np.array([[value is not None for value in values] for values in alone])
    informative = (has | (moved != 0)).sum(axis=0)
    together = int((has.any(axis=1) | (difference != 0)).sum())
    errors = [sqrt((n - 1) / n * (moved[:, side] ** 2).sum()) for side, n in enumerate(informative)]
    df = min(
        degrees_of_freedom(together, difference),
        welch((error, int(n) - 1) for error, n in zip(errors, informative, strict=True)) or 0.0,
    )
    se, t = sqrt((together - 1) / together * (difference**2).sum()), float(stats.t.ppf((1 + LEVEL) / 2, df))
    value = (whole[0] or 0.0) - (whole[1] or 0.0)
    return {
        "value": whole[0] or 0.0,
        "baseline_value": whole[1] or 0.0,
        "difference": value,
        "low": value - t * se,
        "high": value + t * se,
        "p": float(2 * stats.t.sf(abs(value) / se, df)),
        "mde": (t + float(stats.t.ppf(0.8, df))) * se,
    }


@pytest.mark.parametrize("cluster", ["sample", "user"])
@pytest.mark.parametrize("keys", [{"by": "country"}, {"slices": ["country"]}], ids=["by", "slices"])
def test_a_difference_is_that_of_the_joint_jackknife(keys: dict[str, Any], cluster: str) -> None:
    asked = [metric.alias(name) for name, (metric, _) in METRICS.items()]
    table = compared(log(), asked, ci=LEVEL, cluster=cluster, **keys)
    assert table.height == len(METRICS) * (2 if "by" in keys else 3)
    wrong = []
    for row in table.iter_rows(named=True):
        needed = ["score", "truth", *(["weight"] if row["metric"] == "weighted" else [])]
        group = log() if row["country"] is None else log().filter(country=row["country"])
        rows = group.drop_nulls(needed)
        right = by_hand(rows, METRICS[row["metric"]][1], cluster)
        if not all(same(row[fact], value, 1e-9) for fact, value in right.items()):
            wrong.append((row["country"], row["metric"], {fact: row[fact] for fact in right}, right))
    assert wrong == []


def in_own_buckets(count: int) -> list[int]:
    """So many samples of which no two share a bucket."""
    ids = pl.DataFrame({"sample": range(2000)})
    ids = ids.with_columns(bucket_of(["sample"], ids.schema, BUCKETS)[0].alias("bucket")).unique("bucket", keep="first")
    return ids.sort("sample")["sample"].head(count).to_list()


@pytest.mark.parametrize("n", [8, 20])
def test_it_is_the_test_of_welch_where_each_row_is_a_bucket(n: int) -> None:
    random = np.random.default_rng(n)
    months = {"month": ["old"] * n + ["new"] * n, "sample": in_own_buckets(2 * n)}
    score = np.concatenate([random.uniform(0, 0.6, n), random.uniform(0.1, 1.0, n)])
    rows = pl.DataFrame({**months, "score": score, "truth": 0.0})
    row = compared(rows, mlm.mae(), ci=LEVEL).row(0, named=True)
    right = stats.ttest_ind(score[n:], score[:n], equal_var=False)
    ends = right.confidence_interval(LEVEL)
    half = (ends.high - ends.low) / 2
    assert row["difference"] == pytest.approx(score[n:].mean() - score[:n].mean(), rel=1e-12)
    assert (row["high"] - row["low"]) / 2 == pytest.approx(half, rel=1 / (2 * n))
    assert row["p"] == pytest.approx(right.pvalue, rel=0.3)


# -- laws --------------------------------------------------------------------------------------------------------------

SUITE = [
    mlm.accuracy(),
    mlm.log_loss(),
    mlm.f1(average="macro"),
    mlm.ndcg(),
    mlm.roc_auc(bins=64),
    mlm.mse(),
    mlm.recall(undefined=0.0),
    mlm.labelwise_precision(undefined=0.0),
    mlm.brier_score().on(weight="weight").alias("weighted"),
    (mlm.f1() - mlm.recall()).alias("derived"),
    mlm.recall().round(1).alias("rounded"),
    mlm.true_positives(),
    mlm.calibration_error(),
    mlm.brier_reliability(debiased=True),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("cluster", [None, "user"])
@pytest.mark.parametrize("keys", [{"by": "country"}, {"slices": ["country"]}], ids=["by", "slices"])
def test_a_state_of_the_same_buckets_says_the_same(keys: dict[str, Any], cluster: str | None) -> None:
    made = mlm.state(log(), SUITE, by=["month", "country"], cluster=cluster, buckets=BUCKETS)
    of_log, of_state = compared(log(), SUITE, cluster=cluster, **keys), compared(made, SUITE, **keys)
    # How many users there are no state counts.
    facts = of_log.columns if cluster is None else [name for name in of_log.columns if name != "ci_flag"]
    assert_frame_equal(of_log.select(facts), of_state.select(facts), rel_tol=1e-9, abs_tol=1e-12)
    assert not of_state["ci_flag"].str.contains("pairs").any()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("metric", SUITE, ids=lambda metric: metric.output_name)
def test_turned_round_it_says_the_same(metric: mlm.Metric) -> None:
    ours = compared(log(), metric, slices=["country"])
    theirs = compared(log(), metric, slices=["country"], baseline="new")
    turned = theirs.select(
        value="baseline_value", baseline_value="value", difference=0 - pl.col("difference"), low=0 - pl.col("high"),
        high=0 - pl.col("low"), p="p", mde="mde", ci_flag="ci_flag", n_undefined="n_undefined_baseline",
    )  # fmt: skip
    assert_frame_equal(ours.select(turned.columns), turned, rel_tol=1e-9, abs_tol=1e-12)


def test_a_lazy_frame_says_the_same() -> None:
    lazy = compared(log().lazy(), SUITE[:3], slices=["country"])
    assert_frame_equal(lazy.lazy().collect(), compared(log(), SUITE[:3], slices=["country"]), rel_tol=1e-12)


def test_a_slice_is_what_a_filter_leaves() -> None:
    of_slices = compared(log(), SUITE[:6], slices=["country"], adjust=None).filter(pl.col("slice") != "")
    of_filters = [compared(log().filter(country=each), SUITE[:6], adjust=None) for each in ("DE", "FR")]
    keys = ["sliced_by", "slice", "country"]
    assert_frame_equal(of_slices.drop(keys), pl.concat(of_filters), rel_tol=1e-9, abs_tol=1e-12)


def test_samples_under_other_ids_differ_by_as_much() -> None:
    old = log().filter(month="old")
    other = pl.int_range(pl.len()) * 7919 % 10 / 100
    new = old.with_columns(month=pl.lit("new"), score=pl.col("score") * 0.9 + other)
    paired = compared(pl.concat([old, new]), SUITE[:6], pairs=True)
    others = compared(pl.concat([old, new.with_columns(pl.col("sample") + 1000)]), SUITE[:6])
    facts = ["metric", "value", "baseline_value", "difference"]
    assert_frame_equal(paired.select(facts), others.select(facts), rel_tol=1e-12)
    # What both sides share takes no part in the error, where it is known to be shared: then it is that of the pairs.
    alike = compared(pl.concat([old, new]), SUITE[:6])
    ends = ["metric", "low", "high", "p", "mde"]
    assert_frame_equal(paired.select(ends), alike.select(ends), rel_tol=1e-9, abs_tol=1e-12)
    of_alike, of_others = (
        dict(each.select("metric", pl.col("high") - pl.col("low")).rows()) for each in (alike, others)
    )
    assert of_alike["mse"] < 0.2 * of_others["mse"]


def test_metrics_may_read_other_scores() -> None:
    rows = log().with_columns(other=pl.col("score") ** 2)
    metrics = [mlm.brier_score(), mlm.brier_score().on(score="other").alias("of other")]
    with pytest.raises(mlm.MetricError, match="one sample, score and truth"):
        compared(rows, metrics, pairs=True)
    alone = compared(rows, mlm.brier_score(), score="other")
    assert compared(rows, metrics)["difference"][1] == pytest.approx(alone["difference"].item(), rel=1e-12)


# -- what stands between -----------------------------------------------------------------------------------------------


@cache
def of_days() -> pl.DataFrame:
    """Rows of three months, one without a day."""
    days = [date(2026, 8, 3) + timedelta(days=n % 90) for n in range(300)]
    rows = pl.DataFrame({"sample": range(300), "ts": [None, *days[1:]]})
    row = pl.col("sample") * 7919
    return rows.with_columns(score=(row % 997) / 997, truth=row % 5 < 2, month=pl.col("ts").dt.strftime("%Y-%m"))


def test_sides_may_be_expressions() -> None:
    month = pl.col("ts").dt.truncate("1mo").alias("month")
    of_dates = compared(of_days(), mlm.accuracy(), between=month, baseline=date(2026, 8, 1))
    of_texts = compared(of_days(), mlm.accuracy(), baseline="2026-08")
    assert of_texts["month"].to_list() == ["2026-09", "2026-10", None]
    assert of_dates["month"].to_list() == [date(2026, 9, 1), date(2026, 10, 1), None]
    assert_frame_equal(of_dates.drop("month"), of_texts.drop("month"), rel_tol=1e-12)


def test_a_baseline_that_is_not_there_is_an_error() -> None:
    with pytest.raises(mlm.ParameterError, match="baseline='2026-01' is no value of 'month'"):
        compared(of_days(), mlm.accuracy(), baseline="2026-01")
    with pytest.raises(mlm.ParameterError, match="no other value"):
        compared(of_days().filter(month="2026-08"), mlm.accuracy(), baseline="2026-08")
    with pytest.raises(mlm.ParameterError, match="pairs must be"):
        compared(of_days(), mlm.accuracy(), pairs="no")


def test_rows_of_several_models_are_pooled() -> None:
    rows = log().with_columns(model=pl.col("sample") % 2)
    assert compared(rows, mlm.accuracy())["ci_flag"].to_list() == ["pooled"]
    assert compared(rows, mlm.accuracy(), by="model")["ci_flag"].to_list() == ["ok", "ok"]
