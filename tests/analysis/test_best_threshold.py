"""`best_threshold`: the best of all thresholds, by trying them one by one."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.curves.thresholds import by_trying, cost_at, log_of

METRICS: dict[str, Callable[..., mlm.Metric]] = {
    "f1": mlm.f1,
    "inclusive": lambda **t: mlm.f1(inclusive=True, **t),
    "macro": lambda **t: mlm.f1(average="macro", **t),
    "loss": mlm.hamming_loss,
    "cost": cost_at,
    "flat": lambda **t: mlm.specificity(undefined=0.0, **t),
    "filtered": lambda **t: mlm.mcc(**t).filter(pl.col("amount") > 3),
}


def best_of_all(rows: pl.DataFrame, made: Callable[..., mlm.Metric]) -> tuple[float, float]:
    return by_trying(rows, made, [-math.inf, *rows["score"].drop_nulls().unique()])


@pytest.mark.parametrize("name", METRICS)
def test_it_is_the_best_of_all(name: str) -> None:
    log = log_of(150)
    found = mlm.best_threshold(log, METRICS[name](), by="model")
    assert found.columns == ["model", "threshold", "value", "n_rows"]
    for model, threshold, value, _ in found.rows():
        rows = log.filter(pl.col("model").eq_missing(pl.lit(model)))
        # The scores of the rows that it reads are tried.
        (measure,) = METRICS[name]().tree.measures()
        expected = best_of_all(rows.filter(*measure.predicates), METRICS[name])
        assert (threshold, value) == pytest.approx(expected, rel=1e-12)


OPERATING = [
    mlm.recall_at_precision(0.45),
    mlm.recall_at_precision(0.999),
    mlm.precision_at_recall(0.3),
    mlm.recall_at_fpr(0.2),
    mlm.recall_at_fpr(0),
    mlm.ks().alias("distance"),
    mlm.recall_at_precision(0.4).filter(pl.col("amount") > 3).on(weight="w"),
]


@pytest.mark.parametrize("metric", OPERATING, ids=repr)
def test_the_point_of_a_metric_has_its_value(metric: mlm.Metric) -> None:
    log = log_of(200).filter(pl.col("score") >= 0)
    found = mlm.best_threshold(log, metric, per="label")
    for label, threshold, value, _ in found.rows():
        rows = log.filter(label=label)
        assert value == pytest.approx(rows.select(metric).item(), rel=1e-12)
        (measure,) = metric.tree.measures()
        rows = rows.filter(*measure.predicates)
        weight = {"weight": "w"} if "weight" in measure.roles else {}
        asked = [mlm.recall, mlm.precision, mlm.false_positive_rate]
        recall, precision, fpr = mlm.evaluate(rows, [one(threshold=threshold) for one in asked], **weight).row(0)
        told = {"precision_at_recall": precision, "ks": abs(recall - fpr)}
        assert told.get(measure.declaration.name, recall) == pytest.approx(value, rel=1e-12)
        if measure.declaration.name == "recall_at_precision" and value > 0:
            assert precision >= measure.parameters["p"] * (1 - 1e-12)
        if measure.declaration.name == "recall_at_fpr":
            assert fpr <= measure.parameters["f"] * (1 + 1e-12)


@pytest.mark.parametrize("options", [{}, {"undefined": 0.25}, {"labels": ["x", "y"]}], ids=str)
@pytest.mark.parametrize("average", ["macro", "weighted"])
def test_an_average_over_labels_is_that_of_the_one_label(average: Any, options: Any) -> None:
    log = log_of(60).filter(pl.col("score") >= 0)
    metric = partial(mlm.precision, average=average, **options)
    found = mlm.best_threshold(log, metric(), per="label").sort("label")
    assert found["label"].to_list() == sorted(log["label"].drop_nulls().unique())
    for label, threshold, value, _ in found.rows():
        rows = log.filter(label=label)
        tried = [-math.inf, *rows["score"].unique()]
        values = [(rows.select(metric(threshold=each)).item(), each) for each in tried]
        best = max(((value, each) for value, each in values if value is not None), default=(None, None))
        assert (value, threshold) == best
    folded = mlm.best_threshold(log, metric(), per="label", folds=3).sort("label")
    assert folded.select(found.columns).equals(found)


def test_a_group_is_not_taken_for_rows_of_the_one_before_it() -> None:
    """In each group all rows are true, so the lowest threshold is the best one: that of -inf."""
    rows = pl.DataFrame({"group": pl.int_range(200, eager=True) // 2, "truth": 1})
    rows = rows.with_columns(score=pl.int_range(200) * 37 % 101 / 101).sample(fraction=1, shuffle=True, seed=1)
    table = mlm.best_threshold(rows, mlm.f1(), by="group")
    assert table.select("threshold", "value").unique().rows() == [(-math.inf, 1.0)]


def test_rows_of_minus_infinity_are_above_no_threshold() -> None:
    scores = [[-math.inf, -math.inf], [0.5, -math.inf], [0.5, 0.2]]
    rows = pl.DataFrame({"group": [0, 1, 2], "score": scores}).explode("score").with_columns(truth=1)
    table = mlm.best_threshold(rows, mlm.f1(), by="group")
    assert table.select("threshold", "value").rows() == [(-math.inf, 0.0), (-math.inf, 2 / 3), (-math.inf, 1.0)]


def test_thresholds_of_labels_are_what_a_metric_takes() -> None:
    log = log_of()
    part = pl.col("sample") < 100
    best = mlm.best_threshold(log, mlm.f1(), per="label", where=part)
    assert best.columns == ["label", "threshold", "value", "n_rows"]
    table = best.select("label", "threshold")
    mapping = dict(table.rows())
    for label, threshold, value, n_rows in best.rows():
        rows = log.filter(part, label=label)
        assert (threshold, value) == pytest.approx(best_of_all(rows, mlm.f1))
        assert n_rows == rows["score"].count()
    for average in ("micro", "macro"):
        taken, named = (mlm.f1(threshold=each, average=average) for each in (table, mapping))  # type: ignore[arg-type]
        rest = log.filter(~part)
        assert mlm.evaluate(rest, taken).equals(mlm.evaluate(rest, named))
        assert taken == named


def test_thresholds_by_group_are_joined() -> None:
    log = log_of()
    best = mlm.best_threshold(log, mlm.f1(), per="label", by="model")
    joined = log.join(best, on=["model", "label"], nulls_equal=True, how="left")
    found = mlm.evaluate(joined, mlm.f1(threshold=pl.col("threshold")), by=["model", "label"])
    expected = best.select("model", "label", f1="value").sort("model", "label")
    assert found["f1"].to_list() == pytest.approx(expected["f1"].to_list())


def test_a_group_without_values_has_no_threshold() -> None:
    nan = float("nan")
    log = pl.DataFrame(
        {"model": ["bad", "none", "one"], "score": [nan, None, 0.5], "truth": [True, True, False], "label": ["x"] * 3}
    )
    found = mlm.best_threshold(log, mlm.recall(), by="model")
    assert str(found.rows()) == str([("bad", None, nan, 1), ("none", None, None, 0), ("one", None, None, 1)])
    one_class = mlm.best_threshold(log.filter(model="one"), mlm.recall_at_fpr(0.1))
    assert one_class.rows() == [(None, None, 1)]
    assert mlm.best_threshold(log.lazy(), mlm.f1()).collect().height == 1
    assert mlm.best_threshold(log.with_columns(label=None), mlm.f1(), per="label").is_empty()


ENDS: tuple[Literal["max", "min"], ...] = ("max", "min")


def test_which_end_is_best_may_be_asked_for() -> None:
    log = log_of(60)
    difference = (mlm.f1() - mlm.recall()).alias("difference")
    thresholds = [*log["score"].drop_nulls().drop_nans(), -math.inf]
    tried = [(mlm.f1(threshold=t) - mlm.recall(threshold=t)).alias(str(place)) for place, t in enumerate(thresholds)]
    values = [value for value in mlm.evaluate(log, tried).row(0) if value is not None]
    highest, lowest = (mlm.best_threshold(log, difference, best=best) for best in ENDS)
    assert highest["value"].item() == pytest.approx(max(values), rel=1e-12)
    assert lowest["value"].item() == pytest.approx(min(values), rel=1e-12)
    least = mlm.best_threshold(log, mlm.f1(), best="min")["value"].item()
    assert least == min(mlm.evaluate(log, mlm.f1(threshold=threshold)).item() for threshold in thresholds)


TABLE = pl.DataFrame({"label": ["x", "y"], "threshold": [0.4, 0.5]})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda log: mlm.best_threshold(log, mlm.prevalence()), "prevalence has no worst values"),
        (lambda log: mlm.best_threshold(log, mlm.predicted_rate()), "Pass best='max' or best='min'"),
        (lambda log: mlm.best_threshold(log, mlm.prevalence(), best="max"), "prevalence has no threshold="),
        (lambda log: mlm.best_threshold(log, mlm.log_loss()), "best_threshold: log_loss has no threshold="),
        (lambda log: mlm.best_threshold(log, mlm.net_benefit(0.5)), "means something else at each threshold"),
        (lambda log: mlm.best_threshold(log, mlm.f1(), per="sample"), "per must be 'label' or None, not 'sample'"),
        (lambda log: mlm.best_threshold(log, mlm.f1(), where="w"), "where takes a condition"),
        (lambda log: mlm.best_threshold(log, mlm.f1(), where=pl.col("v") > 1), "column 'v' is not in the table"),
        (lambda log: mlm.best_threshold(log, mlm.ks(average="macro")), "ks_macro is an average of several points"),
        (lambda log: mlm.f1(threshold=TABLE.with_columns(n=1)), r"two columns, the label and 'threshold'"),
        (lambda log: mlm.f1(threshold=TABLE.lazy()), r"not a LazyFrame. Call .collect\(\) first"),
        (lambda log: mlm.f1(threshold=pl.concat([TABLE, TABLE])), "has a label twice"),
        (lambda log: mlm.f1(threshold=TABLE.with_columns(threshold=None)), "has a null"),
    ],
)
def test_what_is_refused(call: Callable[[pl.DataFrame], Any], message: str) -> None:
    with pytest.raises(mlm.MetricError, match=message):
        call(log_of(60))


def test_an_infinite_value_is_not_as_good_as_a_finite_one() -> None:
    """Below all scores no row is predicted as negative, and the value there is that of `undefined=`."""
    log = pl.DataFrame({"score": [0.5, 0.2], "truth": [0, 1]})
    metric = mlm.negative_predictive_value(undefined=math.inf)
    best = mlm.best_threshold(log, metric)
    assert best.select("threshold", "value").row(0) == (-math.inf, math.inf)


def test_a_broken_row_leaves_no_threshold_whatever_an_average_over_labels_uses() -> None:
    """Its label is none that the mapping names: no value of `evaluate` is NaN, but the scores to try are not known."""
    rows = pl.DataFrame(
        {"label": ["a", "a", "b", "c"], "score": [0.2, 0.7, 0.4, float("nan")], "truth": [0, 1, 0, 1], "group": 1}
    )
    metric = mlm.false_positives(average={"a": 1.0, "b": 2.0})
    for log in (rows, rows.with_columns(pl.when(pl.col("label") != "c").then("label"))):
        best = mlm.best_threshold(log, metric, by="group")
        assert best.select("threshold", pl.col("value").is_nan()).row(0) == (None, True)
        assert mlm.best_threshold(log.head(3), metric)["value"].item() == 0
