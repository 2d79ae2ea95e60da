"""Several targets: the mean of a score of each, of one metric or of one for each target, and all of them pooled."""

import copy
import pickle
from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.support.readings import READINGS, both, same
from tests.support.refusals import raised

RNG = np.random.default_rng(9)
ROWS = 60
PRICES = pl.DataFrame(
    {
        "model": RNG.choice(["a", "b"], ROWS),
        "sample": np.arange(ROWS),
        "label": RNG.choice(["x", "y", "z"], ROWS),
        "score": RNG.normal(size=ROWS),
        "truth": RNG.normal(size=ROWS),
        "w": RNG.choice([0.0, 1.0, 2.0], ROWS),
    }
)
# Targets of unequal numbers of samples, each sample with one true class of two.
CLASSES = pl.DataFrame(
    [
        (s, target, c, 0.3 + 0.4 * ((s + c) % 2), int(c == s % 2 % (s % 3 + 1)))
        for target, samples in (("one", 3), ("two", 5), ("three", 2))
        for s in range(samples)
        for c in (0, 1)
    ],
    schema=["sample", "target", "class", "score", "truth"],
    orient="row",
)
ROLES: dict[str, Any] = {"sample": ["sample", "target"], "label": "class"}
EACH = {"one": 2.0, "two": 1.0, "three": -1.0}


def of_target(metric: mlm.Metric, frame: pl.DataFrame, column: str, name: str, **roles: Any) -> float:
    value = both(frame.filter(pl.col(column) == name), metric, **roles)
    assert value is not None
    return value


@pytest.mark.parametrize("weights", [None, EACH], ids=["plain", "weighted"])
@pytest.mark.parametrize(
    "metric", [mlm.multiclass_log_loss(), mlm.information_score(), mlm.roc_auc(), mlm.n_rows()], ids=repr
)
def test_one_metric_of_the_column_of_targets(metric: mlm.Metric, weights: dict[str, float] | None) -> None:
    shares = weights or dict.fromkeys(EACH, 1.0)
    values = {name: of_target(metric, CLASSES, "target", name, **ROLES) for name in EACH}
    expected = sum(shares[name] * values[name] for name in EACH) / sum(shares.values())
    assert same(both(CLASSES, mlm.average_score(metric, weights, target="target"), **ROLES), expected)


def test_the_targets_of_metrics_of_samples_are_in_the_column_target() -> None:
    metric = mlm.multiclass_brier_score()
    assert mlm.average_score(metric) == mlm.average_score(metric, target="target")


@pytest.mark.parametrize("weights", [None, {"x": 1, "z": 3}], ids=["plain", "weighted"])
@pytest.mark.parametrize("metric", [mlm.mae(), mlm.r2(), mlm.median_absolute_error()], ids=repr)
def test_one_metric_of_labels(metric: mlm.Metric, weights: dict[str, float] | None) -> None:
    """Where labels are the targets it is the metric's own average of them."""
    shares = weights or {"x": 1, "y": 1, "z": 1}
    values = {name: of_target(metric, PRICES, "label", name) for name in shares}
    expected = sum(shares[name] * values[name] for name in shares) / sum(shares.values())
    assert same(both(PRICES, mlm.average_score(metric, weights)), expected)
    assert same(both(PRICES, mlm.average_score(metric, weights, target="label")), expected)


def test_one_metric_each() -> None:
    metrics = {"x": mlm.mae(), "y": mlm.rmse(), "z": mlm.bias()}
    values = {name: of_target(metric, PRICES, "label", name) for name, metric in metrics.items()}
    expected = (0.5 * values["x"] - values["y"] + 2 * values["z"]) / 1.5
    for weights in ([0.5, -1, 2], {"z": 2, "x": 0.5, "y": -1}):
        assert same(both(PRICES, mlm.average_score(metrics, weights)), expected)
    assert same(both(PRICES, mlm.average_score(metrics)), sum(values.values()) / 3)


def test_one_metric_each_of_the_column_of_targets() -> None:
    metrics = {"one": mlm.multiclass_log_loss(), "two": mlm.subset_accuracy(threshold="argmax")}
    values = {name: of_target(metric, CLASSES, "target", name, **ROLES) for name, metric in metrics.items()}
    assert same(both(CLASSES, mlm.average_score(metrics), **ROLES), sum(values.values()) / 2)


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_by_group_it_is_that_of_the_group(engine: str) -> None:
    metrics = [
        mlm.average_score(mlm.mae()).alias("labels"),
        mlm.average_score(mlm.mae(), target="w").alias("column"),
        mlm.average_score({"x": mlm.mae(), "y": mlm.rmse()}).alias("each"),
        mlm.mae(),
    ]
    table = mlm.evaluate(PRICES.lazy(), metrics, by="model", slices=["label"]).collect(engine=engine)
    inline = PRICES.lazy().group_by("model").agg(metrics).sort("model").collect(engine=engine)
    for row in table.filter(sliced_by="").iter_rows(named=True):
        rows = PRICES.filter(model=row["model"])
        for metric in metrics:
            assert same(row[metric.output_name], both(rows, metric))
            assert same(inline.filter(model=row["model"])[metric.output_name].item(), row[metric.output_name])


def test_what_is_undefined_leaves_both_sums() -> None:
    frame = pl.DataFrame({"label": ["x", "x", "y"], "score": [1.0, 2.0, 1.0], "truth": [1.0, 3.0, 1.0]})
    assert both(frame, mlm.r2(undefined=None)) is not None
    only_x = both(frame.filter(label="x"), mlm.r2())
    each = {"x": mlm.r2(), "y": mlm.r2(), "absent": mlm.r2()}
    for metric in (mlm.average_score(mlm.r2()), mlm.average_score(mlm.r2(), target="label"), mlm.average_score(each)):
        assert same(both(frame, metric), only_x)
    assert both(frame, mlm.average_score({"y": mlm.r2(), "absent": mlm.r2()})) is None


def test_rows_without_a_target_are_of_none() -> None:
    frame = pl.DataFrame({"target": ["x", "y", None], "score": [1.0, 2.0, 9.0], "truth": [1.0, 1.0, 1.0]})
    assert both(frame, mlm.average_score(mlm.mae(), target="target")) == 0.5
    assert both(frame.filter(pl.col("target").is_null()), mlm.average_score(mlm.mae(), target="target")) is None


def test_the_order_of_metrics_is_no_matter() -> None:
    metrics = {"one": mlm.multiclass_log_loss(), "two": mlm.subset_accuracy(threshold="argmax")}
    turned = dict(reversed(metrics.items()))
    for asked in ({"tidy": True}, {"min_samples": 4, "tidy": True}):
        tables = [mlm.evaluate(CLASSES, mlm.average_score(each), **asked, **ROLES) for each in (metrics, turned)]
        assert tables[0].drop("reason").equals(tables[1].drop("reason"))


def test_one_label_column_tells_targets_apart() -> None:
    metric = mlm.average_score(mlm.mae() - mlm.mae().on(label="model"))
    with pytest.raises(mlm.MetricError, match="the targets are labels, but labels are in both 'label' and 'model'"):
        mlm.evaluate(PRICES, metric)


@pytest.mark.parametrize("target", [None, "t"])
def test_means_over_targets_are_not_averaged_over_more(target: str | None) -> None:
    inner = mlm.average_score(mlm.mae(), target="u")
    for metric in (inner, 1 - inner, inner.round(2), mlm.average_score({"x": mlm.mae()})):
        for given in (metric, {"x": metric}):
            message = raised(mlm.ParameterError, mlm.average_score, given, target=target)
            assert "is already a mean over targets, and cannot be averaged again" in message


@pytest.mark.parametrize("per", ["label", "sample"])
def test_per_unit_there_is_nothing_to_average(per: Any) -> None:
    metric = mlm.mae() if per == "label" else mlm.mae(average="samples")
    table = mlm.evaluate(PRICES, mlm.average_score(metric, target="model"), 1 - mlm.mae(), per=per).sort(per)
    expected = mlm.evaluate(PRICES, metric, per=per).sort(per)
    assert table.columns == [per, "average_score", "mae"]
    # Two plans add up in orders of their own.
    assert table["average_score"].to_list() == pytest.approx(expected["mae"].to_list(), rel=READINGS)


def test_a_broken_target_is_not_hidden() -> None:
    frame = pl.DataFrame({"label": ["x", "y"], "score": [1.0, float("nan")], "truth": [1.0, 1.0]})
    for metric in (
        mlm.average_score(mlm.mae()),
        mlm.average_score(mlm.mae(), target="label"),
        mlm.average_score({"x": mlm.mae(), "y": mlm.mae()}),
    ):
        assert same(both(frame, metric), float("nan"))


def test_tidy_tells_of_targets() -> None:
    frame = pl.DataFrame({"target": ["x", "y"], "score": [1.0, 1.0], "truth": [1.0, 1.0]})
    (row,) = mlm.evaluate(frame, mlm.average_score(mlm.r2(), target="target"), tidy=True).to_dicts()
    assert row["value"] is None
    assert (row["n_rows"], row["n_undefined"]) == (2, 2)
    assert row["reason"] == "undefined in 2 targets: constant truth"


def test_flattened_is_all_targets_as_one() -> None:
    assert mlm.flattened(mlm.mae(average="macro")) == mlm.mae()
    assert mlm.flattened(mlm.multiclass_log_loss()) == mlm.multiclass_log_loss()
    assert mlm.flattened(mlm.average_score(mlm.multiclass_log_loss())) == mlm.multiclass_log_loss()
    bound = mlm.average_score(mlm.mae()).on(score="p")  # it has the name of the mean no more, wherever that was kept
    assert mlm.flattened(bound).output_name == "mae"
    for target in (None, "t"):
        assert mlm.flattened(mlm.average_score(mlm.mae(), target=target)) == mlm.mae()
        assert mlm.flattened(mlm.average_score(mlm.mae().alias("m"), target=target)) == mlm.mae().alias("m")
        assert mlm.flattened(1 - mlm.average_score(mlm.mae() / mlm.rmse(), target=target)) == 1 - mlm.mae() / mlm.rmse()


def test_it_is_a_metric_like_others() -> None:
    for metric in (
        mlm.average_score(mlm.mae(), target="t"),
        mlm.average_score({"x": mlm.mae(), "y": -mlm.r2()}, [1, -2]),
    ):
        assert metric.output_name == "average_score"
        assert copy.copy(metric) == metric
        assert pickle.loads(pickle.dumps(metric)) == metric
        assert metric.alias("other").output_name == "other"
        assert metric != metric.alias("other")
        assert metric != mlm.average_score(mlm.mae())
    assert mlm.average_score(mlm.mae()).best == "min"
    assert mlm.average_score({"x": mlm.mae(), "y": mlm.r2()}, [1, -0.5]).best == "min"
    assert mlm.average_score({"x": mlm.mae(), "y": mlm.r2()}).best is None
    assert mlm.average_score({"x": mlm.mae(), "y": mlm.mae()}, [-1, -2]).best == "min"  # the sum is negative too
    assert repr(mlm.average_score({"x": mlm.mae()})) == "average_score({'x': mae()})"
    shown = "average_score(n_rows(), weights={'a': 2}, target='t').alias('m')"
    assert repr(mlm.average_score(mlm.n_rows(), {"a": 2}, target="t").alias("m")) == shown


SUM_TO_0 = "the weights of an average must not sum to 0: {'x': 1, 'y': -1}."
AVERAGED = "mae(average='macro') is already an average over labels. Name the column of the targets."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((mlm.mae(), {"x": 1, "y": -1}), SUM_TO_0),
        (({"x": mlm.mae(), "y": mlm.mae()}, [1, -1]), SUM_TO_0),
        (({"x": mlm.mae()}, [1, 2]), "one weight for each of ['x'] is needed, not [1, 2]."),
        (({"x": mlm.mae()}, {"y": 1}), "one weight for each of ['x'] is needed, not {'y': 1}."),
        (({},), "{target: metric} is empty."),
        ((mlm.mae(), [1, 2]), "a list of weights needs {target: metric}, so that each weight has a target."),
        ((mlm.mae(average="macro"),), AVERAGED),
    ],
)
def test_what_cannot_be_averaged(arguments: tuple[Any, ...], message: str) -> None:
    assert raised(mlm.ParameterError, mlm.average_score, *arguments) == f"average_score: {message}"


@pytest.mark.parametrize(
    "given", [mlm.mae, "mae", pl.col("x").sum(), {"x": mlm.mae}], ids=lambda given: type(given).__name__
)
def test_what_is_no_metric(given: Any) -> None:
    with pytest.raises(mlm.ParameterError, match=r"^average_score takes a metric or \{target: metric\}, not "):
        mlm.average_score(given)


NOT_THERE = "is not in the table (model, sample, label, score, truth, w)."
NO_TEXT = "average_score: target 1 is int, and the target column is String."


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (mlm.average_score(mlm.n_rows()), f"target column 'target' {NOT_THERE}"),
        (mlm.average_score(mlm.n_rows(), {1: 1.0}, target="label"), NO_TEXT),
        (mlm.average_score({1: mlm.mae(), "x": mlm.mae()}), NO_TEXT),
        (
            mlm.average_score({"x": mlm.mae()}, target="targt"),
            f"target column 'targt' {NOT_THERE} Did you mean 'truth'?",
        ),
    ],
)
def test_what_the_table_lacks(metric: mlm.Metric, message: str) -> None:
    assert raised(mlm.ColumnError, mlm.evaluate, PRICES.lazy(), metric) == message
