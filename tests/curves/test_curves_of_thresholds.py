"""Metrics along the threshold: at each that is returned, what `evaluate` gives with it, by literal thresholds."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.curves.thresholds import METRICS, is_close, log_of


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("dtype", [pl.Float64, pl.Float32])
def test_the_value_at_a_threshold_is_that_of_the_metric_with_it(name: str, dtype: pl.DataType) -> None:
    log = log_of().with_columns(pl.col("score").cast(dtype))
    made = METRICS[name]
    found = mlm.curve(log, "threshold", made().alias("m"), by="model", points=6)
    assert found.columns == ["model", "threshold", "metric", "value"]
    assert found["model"].n_unique() == 3
    for (model,), rows in found.group_by("model"):
        group = log.filter(pl.col("model").eq_missing(pl.lit(model)))
        thresholds = rows["threshold"].to_list()
        asked = [made(threshold=threshold).alias(str(place)) for place, threshold in enumerate(thresholds)]
        expected = mlm.evaluate(group, asked).row(0)
        assert all(map(is_close, rows["value"].cast(pl.Float64), expected)), (rows, expected)
        assert thresholds == sorted(set(thresholds), reverse=True)


def test_what_breaks_another_part_of_a_metric_breaks_its_curve() -> None:
    log = log_of(40).filter(pl.col("score") >= 0).with_columns(pl.col("score") * 2)
    found = mlm.curve(log, "threshold", (mlm.f1() - mlm.brier_uncertainty()).alias("m"))
    assert log.select(mlm.brier_uncertainty().is_nan()).item()
    assert found["value"].is_nan().all()


def test_thresholds_of_bins_are_exact_too() -> None:
    log = log_of().filter(pl.col("score") >= 0)
    found = mlm.curve(log, "threshold", mlm.f1(), bins=32)
    asked = [mlm.f1(threshold=threshold).alias(str(place)) for place, threshold in enumerate(found["threshold"])]
    assert found["value"].to_list() == pytest.approx(mlm.evaluate(log, asked).row(0))
    assert 10 < found.height <= 33


@pytest.mark.parametrize("average", ["micro", "macro"])
def test_a_decision_curve_has_the_odds_of_each_threshold(average: Any) -> None:
    """Those of the end of a range are none."""
    log = log_of().filter(pl.col("score") >= 0)
    found = mlm.curve(log, "threshold", mlm.net_benefit(0.5, average=average), points=12)
    inside = found.filter(pl.col("threshold").is_between(0, 1, closed="none"))
    assert inside.height > 8
    asked = [mlm.net_benefit(each, average=average).alias(str(each)) for each in inside["threshold"]]
    assert inside["value"].to_list() == pytest.approx(mlm.evaluate(log, asked).row(0), rel=1e-12)
    assert found.filter(threshold=-math.inf)["value"].to_list() == [None]


def test_a_decision_curve_of_a_state() -> None:
    log = log_of().filter(pl.col("score") >= 0)
    found = mlm.curve(mlm.state(log, mlm.roc_auc(bins=64)), "threshold", mlm.net_benefit(0.5), points=12)
    inside = found.filter(pl.col("threshold").is_between(0, 1, closed="none"))
    asked = [mlm.net_benefit(each).alias(str(each)) for each in inside["threshold"]]
    assert inside["value"].to_list() == pytest.approx(mlm.evaluate(log, asked).row(0), rel=1e-12)


def test_several_metrics_stand_one_under_the_other_in_every_slice() -> None:
    log = log_of()
    found = mlm.curve(log, "threshold", mlm.recall(), mlm.f1(average="macro"), by="model", slices=["label"], points=5)
    assert found.columns == ["model", "sliced_by", "slice", "label", "threshold", "metric", "value"]
    of_slice = found.filter(slice="label=y", model="a")[:, 4:]
    rows = log.filter(label="y", model="a")
    assert of_slice.equals(mlm.curve(rows, "threshold", mlm.recall(), mlm.f1(average="macro"), points=5))
    assert of_slice["metric"].unique(maintain_order=True).to_list() == ["recall", "f1_macro"]


@pytest.mark.parametrize("metric", [mlm.f1, lambda **t: mlm.f1(average="macro", **t)], ids=["micro", "macro"])
def test_intervals_are_those_of_evaluate(metric: Callable[..., mlm.Metric]) -> None:
    log = log_of()
    found = mlm.curve(log, "threshold", metric(), by="model", points=4, ci=0.9)
    for model, threshold, *told in found.select("model", "threshold", "value", "low", "high").rows():
        group = log.filter(pl.col("model").eq_missing(pl.lit(model)))
        expected = mlm.evaluate(group, metric(threshold=threshold), ci=0.9).row(0)
        assert told == pytest.approx(expected, rel=1e-9), (model, threshold)


def test_a_group_without_a_curve_has_a_row_for_each_metric() -> None:
    nan = float("nan")
    log = pl.DataFrame({"model": ["bad", "none"], "score": [nan, None], "truth": [True, True]})
    found = mlm.curve(log, "threshold", mlm.f1(), mlm.recall(), by="model")
    expected = [(m, None, name, value) for m, value in (("bad", nan), ("none", None)) for name in ("f1", "recall")]
    assert str(found.rows()) == str(expected)


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ([], r"needs metrics: curve\(log, 'threshold', mlm.f1\(\)\)"),
        ([mlm.roc_auc()], "roc_auc has no threshold="),
        ([mlm.f1(threshold="argmax")], "f1 has a threshold of its own, argmax"),
        ([mlm.f1(threshold=pl.col("w"))], "f1 has a threshold of its own"),
        ([mlm.subset_accuracy()], "subset_accuracy is a value of each sample"),
        ([mlm.f1(average="samples")], "f1_samples is a value of each sample"),
        ([mlm.f1() - mlm.recall(inclusive=True)], "compared with thresholds in several ways"),
        ([mlm.f1() - mlm.f1().on(score="w")], "compared with thresholds in several ways"),
        ([mlm.f1() - mlm.ks()], "ks needs more of the rows than sums"),
        ([mlm.f1(), mlm.f1()], "two columns of the result would have the name 'f1'"),
        ([pl.col("score").mean()], "is a plain expression"),
        (["f1"], r"Did you mean f1\(\)"),
    ],
)
def test_what_is_refused(metrics: list[Any], message: str) -> None:
    with pytest.raises(mlm.MetricError, match=message):
        mlm.curve(log_of(), "threshold", *metrics)


@pytest.mark.parametrize("is_state", [False, True])
def test_few_rows_of_a_class_are_flagged_as_by_evaluate(is_state: bool) -> None:
    """A tenth of 160 rows is true: too few for mcc, and for a label that is averaged over."""
    rows = pl.DataFrame({"sample": range(160)}).with_columns(label=pl.lit("a"), truth=pl.col("sample") % 10 == 0)
    log = rows.with_columns(score=(pl.col("sample") * 7 % 11 + pl.col("truth") * 3) / 14)
    made = {"few_positives": mlm.mcc, "rare_labels": partial(mlm.f1, average="macro")}
    metrics = [metric().alias(flag) for flag, metric in made.items()]
    source, bins = (mlm.state(log, mlm.roc_auc(bins=64, average="macro")), None) if is_state else (log, 64)
    table = mlm.curve(source, "threshold", metrics, ci=0.9, points=5, bins=bins)
    of_middle = table.filter(pl.col("threshold").is_between(0.3, 0.6))
    assert of_middle.height >= len(made)
    for name, threshold, flag in of_middle.select("metric", "threshold", "ci_flag").rows():
        told = mlm.evaluate(log, made[name](threshold=threshold), ci=0.9, tidy=True)
        assert flag == told["ci_flag"].item() == name


@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize(
    ("flag", "changes"),
    [
        ("pooled", {"model": pl.col("sample") % 2}),
        ("dominant_cluster", {"user": pl.when(pl.col("sample") % 7 > 1).then("user").otherwise(0)}),
        ("low_n", {"user": pl.col("user") % 29}),
        # Two of 31 users have no true row. They count as clusters, though a recall alone does not vary with them.
        ("ok", {"user": pl.when(~pl.col("truth")).then(pl.col("sample") % 31).otherwise(pl.col("sample") % 29)}),
    ],
)
def test_whose_rows_they_are_is_flagged_as_by_evaluate(flag: str, changes: Any, weight: str | None) -> None:
    number = pl.col("sample")
    log = pl.DataFrame({"sample": range(1200)}).with_columns(user=number % 100, label=number % 3)
    log = log.with_columns(truth=number * 7 % 13 < 5)
    log = log.with_columns(score=(number * 31 % 101 + pl.col("truth") * 30) / 140, weight=1 + number % 2)
    log = log.with_columns(**changes)
    asked: dict[str, Any] = {"ci": 0.9, "cluster": "user", "weight": weight}
    made = {"recall": mlm.recall, "macro": partial(mlm.recall, average="macro")}
    metrics = [metric().alias(name) for name, metric in made.items()]
    points = mlm.curve(log, "threshold", metrics, points=8, **asked).filter(pl.col("threshold").is_between(0.3, 0.6))
    for name, threshold, told in points.select("metric", "threshold", "ci_flag").rows():
        of_metric = mlm.evaluate(log, made[name](threshold=threshold), tidy=True, **asked)
        assert told == of_metric["ci_flag"].item() == flag
