"""Intervals are about those of the bootstrap, and each metric has one of its kind."""

from collections.abc import Callable
from functools import cache
from math import isfinite
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import stats

import polars_mlmetrics as mlm
from tests.laws.cases import Case, plain_cases
from tests.support.frames import TRUTHS, null_rows, plain
from tests.support.readings import same
from tests.support.simulated import drawn

SAMPLES, COPIES, RESAMPLES = 300, 20, 2_000
METRICS = [mlm.f1(), mlm.log_loss()]


@cache
def one_log() -> pl.DataFrame:
    return drawn(7, 1, SAMPLES).rename({"new": "score"})


@cache
def bootstrap(metric: str) -> Any:
    """Samples drawn again, with all of their rows: a sample is in the two sums that the metric is a ratio of."""
    score, truth, is_predicted = pl.col("score"), pl.col("truth"), pl.col("score") > 0.5
    sums = {
        "f1": [2.0 * (is_predicted & truth), is_predicted.cast(pl.Float64) + truth],
        "log_loss": [-pl.when("truth").then(score).otherwise(1 - score).log(), score.is_not_null()],
    }[metric]
    by_sample = one_log().group_by("sample").agg(each.sum().alias(str(i)) for i, each in enumerate(sums))
    columns = by_sample.drop("sample").cast(pl.Float64).to_numpy().T
    rng, asked = np.random.default_rng(1), {"n_resamples": RESAMPLES, "method": "percentile"}
    return stats.bootstrap(columns, lambda up, down, axis: up.sum(axis) / down.sum(axis), paired=True, rng=rng, **asked)


@cache
def intervals() -> pl.DataFrame:
    """Those of the same log under other ids: which samples share a bucket is chance, and this takes the mean of it."""
    copies = pl.DataFrame({"copy": range(COPIES)})
    log = one_log().join(copies, how="cross").with_columns(sample=pl.col("sample") + SAMPLES * pl.col("copy"))
    table = mlm.evaluate(log, METRICS, by="copy", ci=0.95, tidy=True)
    return table.group_by("metric").agg(pl.col("low", "high").mean(), se=(pl.col("se") ** 2).mean().sqrt())


@pytest.mark.parametrize("metric", ["f1", "log_loss"])
def test_intervals_are_about_those_of_the_bootstrap(metric: str) -> None:
    theirs, ours = bootstrap(metric), intervals().filter(metric=metric).row(0, named=True)
    # Chance: 1 / sqrt(2 * 63 * 20) = 2 % of ours, by buckets; 1 / sqrt(2 * 2000) = 1.6 % of theirs. Three times both.
    assert ours["se"] == pytest.approx(theirs.standard_error, rel=0.08)
    # Two standard errors away, that is 0.15 of one; and an end of theirs, a quantile of 2,000, is 0.06 off by chance.
    ends = theirs.confidence_interval
    assert [ours["low"], ours["high"]] == pytest.approx(list(ends), abs=0.3 * theirs.standard_error)


# --- which kind a metric has ------------------------------------------------------------------------------------------

# Means over samples of counts are no totals, and "min" and "max" are extremes, whatever of.
CASES = [case for average in ("micro", "none", "macro", "weighted") for case in plain_cases(average)]


def kind(case: Case) -> str:
    return case.metric().tree.interval_kind


@cache
def values() -> list[tuple[Any, Any]]:
    """Of each metric: of some samples, and of these and as many like them. Some rows have an unknown truth."""
    log = null_rows(pl.concat([plain("multi"), plain("single").with_columns(pl.col("sample") + 100)]), TRUTHS)
    logs = [log.with_columns(pl.col("sample") + 1_000 * place, times=pl.lit(min(place + 1, 2))) for place in range(3)]
    _, *values = mlm.evaluate(pl.concat(logs), [case.metric() for case in CASES], by="times").get_columns()
    return [(each[0], each[1]) for each in values]


def test_a_total_is_what_grows_with_the_log() -> None:
    """And what counts pairs of ratings, as each row twice has more of them."""
    assert {case.name for case in CASES} == set(mlm.CATALOGUE)
    assert all(value is not None for value, _ in values())
    grow = {str(case) for case, (value, other) in zip(CASES, values(), strict=True) if not same(value, other, 1e-12)}
    assert grow == {str(case) for case in CASES if kind(case) == "total" or case.counts_pairs}


def test_a_range_has_ends_where_a_share_is_made_of_it() -> None:
    kinds = {case.name: kind(case) for case in CASES}
    shares = {name for name, kind in kinds.items() if kind == "kg_wilson"}
    bounded = {name for name, metric in mlm.CATALOGUE.items() if all(map(isfinite, metric.range))}
    biased = {"calibration_error", "calibration_ks", "calibration_kuiper", "brier_reliability", "brier_resolution"}
    of_points = {"ks", "precision_at_recall", "recall_at_fpr", "recall_at_precision"}
    assert shares == bounded - biased - of_points - {"exposure_gini", "label_coverage"}


@pytest.mark.parametrize("share", [0, 1])
def test_an_interval_does_not_leave_the_range_by_rounding(share: int) -> None:
    """Of a share of 0 or 1, for any number of samples."""
    rows = [(n, sample) for n in range(2, 80) for sample in range(n)]
    log = pl.DataFrame(rows, schema=["n", "sample"], orient="row").with_columns(truth=1, score=pl.lit(float(share)))
    table = mlm.evaluate(log, mlm.recall(), by="n", ci=0.95)
    assert table.select(pl.col("recall_low", "recall_high").is_between(0, 1).all()).row(0) == (True, True)


@pytest.mark.parametrize("slices", [None, ["part"]])
def test_a_cluster_that_lies_in_several_passes_is_counted_once(slices: Any) -> None:
    log = pl.DataFrame({"sample": range(400)}).with_columns(
        user=pl.col("sample") % 10, part=pl.col("sample") % 2, score=pl.col("sample") * 7919 % 101 / 101
    )
    log = log.with_columns(truth=pl.col("sample") * 104729 % 3 == 0)
    asked = {"ci": 0.95, "cluster": "user", "tidy": True, "slices": slices}
    whole = mlm.evaluate(log, mlm.f1(), mlm.one_error(), **asked)
    assert whole["n_clusters"].to_list() == [10, 10, *([5] * 4 if slices else [])]
    parts = mlm.evaluate(log, mlm.f1(), mlm.one_error(), **asked, passes=3, progress=False)
    assert_frame_equal(parts, whole, rel_tol=1e-12)


def test_rows_without_a_sample_do_not_cut_a_cluster() -> None:
    log = pl.DataFrame({"sample": [1, 1, 2, 2, None, None], "label": ["a", "b"] * 3, "user": [1, 1, 2, 2, 3, 4]})
    log = log.with_columns(score=pl.Series([0.9, 0.2, 0.4, 0.8, 0.5, 0.6]), truth=pl.Series([1, 0, 1, 0, 0, 1]))
    row = mlm.evaluate(log, mlm.subset_accuracy(), ci=0.9, cluster="user")
    assert_frame_equal(row, mlm.evaluate(log.drop_nulls("sample"), mlm.subset_accuracy(), ci=0.9, cluster="user"))
    with pytest.raises(mlm.TableError, match="cluster= has several values in one sample"):
        mlm.evaluate(log.with_columns(sample=1), mlm.subset_accuracy(), ci=0.9, cluster="user")


@pytest.mark.parametrize("name", ["evaluate", "gap", "compare", "decompose", "worst", "confusion", "report"])
def test_no_verb_takes_a_cluster_that_cuts_a_sample(name: str) -> None:
    log = pl.DataFrame({"sample": [1, 1, 2, 2], "label": ["a", "b"] * 2, "user": [1, 2, 3, 3], "score": [0.9, 0.2] * 2})
    sides = pl.DataFrame({"model": ["old", "new"] * 2, "country": ["DE", "DE", "FR", "FR"]})
    log = log.with_columns(truth=1).join(sides, how="cross")
    one_true = log.with_columns(truth=pl.col("label") == "a")
    looks, by = mlm.subset_accuracy(), ["model", "country"]
    calls: dict[str, Callable[[str], object]] = {
        "evaluate": lambda user: mlm.evaluate(log, looks, by=by, ci=0.9, cluster=user),
        "gap": lambda user: mlm.gap(log, looks, over="country", by="model", cluster=user),
        "compare": lambda user: mlm.compare(log, looks, baseline="old", by="country", cluster=user),
        "decompose": lambda user: mlm.decompose(log, looks, "country", between="model", baseline="old", cluster=user),
        "worst": lambda user: mlm.worst(log, mlm.f1(average="macro", threshold="argmax"), by=by, ci=0.9, cluster=user),
    }
    calls["confusion"] = lambda user: mlm.confusion(one_true, by=by, ci=0.9, cluster=user)
    in_germany = log.lazy().filter(country="DE")
    calls["report"] = lambda user: mlm.report(in_germany, [mlm.log_loss(), mlm.ndcg()], baseline="old", cluster=user)
    calls[name]("sample")
    with pytest.raises(mlm.TableError, match="cluster= has several values in one sample"):
        calls[name]("user")


def test_an_interval_holds_its_value_and_stays_in_the_range() -> None:
    """Seven tied labels share the discounts of seven places: sums in another order may pass that of the ideal."""
    log = pl.DataFrame({"sample": [number // 7 for number in range(350)], "score": [0.5] * 350, "truth": [1] * 350})
    value, low, high = mlm.evaluate(log, mlm.ndcg(), ci=0.95).row(0)
    assert (value, high) == (1.0, 1.0)
    assert low < 1
