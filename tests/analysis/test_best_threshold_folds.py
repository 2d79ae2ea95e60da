"""`best_threshold(folds=)`: the value on samples that had no part in the choice, by hand and in simulated worlds."""

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from polars_mlmetrics.engine.buckets import BUCKETS, bucket_of
from polars_mlmetrics.formula.cells import ends_of_cells
from tests.curves.thresholds import cost_at, log_of

FOLDS = 5
Array = NDArray[Any]
Value = Callable[[pl.DataFrame, Array], float]
"""The value of a metric, from rows and whether each is predicted."""


def f1_of(rows: pl.DataFrame, predicted: Array) -> float:
    truth, weight = rows["truth"].to_numpy(), rows["w"].to_numpy()
    tp, predictions, positives = ((weight * each).sum() for each in (truth & predicted, predicted, truth))
    return 2 * tp / (predictions + positives) if predictions + positives else math.nan


def unweighted(rows: pl.DataFrame, predicted: Array) -> float:
    return f1_of(rows.with_columns(w=1.0), predicted)


def by_label(rows: pl.DataFrame, predicted: Array) -> float:
    places = [(rows["label"] == label).to_numpy() for label in rows["label"].unique()]
    return float(np.mean([unweighted(rows.filter(place), predicted[place]) for place in places]))


def cost_of(rows: pl.DataFrame, predicted: Array) -> float:
    return float(np.where(predicted, rows["amount"], rows["truth"] * 3.0).mean())


def loss_of(rows: pl.DataFrame, predicted: Array) -> float:
    return float((predicted != rows["truth"].to_numpy()).mean())


METRICS: dict[str, tuple[mlm.Metric, Value]] = {
    "f1": (mlm.f1(), unweighted),
    "inclusive": (mlm.f1(inclusive=True), unweighted),
    "macro": (mlm.f1(average="macro"), by_label),
    "weights": (mlm.f1().on(weight="w"), f1_of),
    "loss": (mlm.hamming_loss(), loss_of),
    "cost": (cost_at(), cost_of),
    "targets": (mlm.average_score(mlm.f1()), by_label),
}


def predicted_at(rows: pl.DataFrame, threshold: float, name: str) -> Array:
    score = rows["score"].to_numpy()
    # A score of -inf is predicted at no threshold.
    return (score >= threshold) & (score > -math.inf) if name == "inclusive" else score > threshold


def chosen_on(rows: pl.DataFrame, name: str) -> float:
    """The highest of the thresholds that are best on some rows."""
    metric, value_of = METRICS[name]
    tried = [-math.inf, *rows["score"].unique()]
    values = {threshold: value_of(rows, predicted_at(rows, threshold, name)) for threshold in tried}
    best = (max if metric.best == "max" else min)(values.values())
    return max(threshold for threshold, value in values.items() if math.isclose(value, best, rel_tol=1e-12))


def elsewhere(rows: pl.DataFrame, name: str, folds: int) -> float:
    """The value of rows that are each predicted by the threshold chosen on the other folds."""
    bucket, _ = bucket_of(["sample"], rows.schema, BUCKETS)
    fold, predicted = rows.select(bucket % folds).to_series().to_numpy(), np.zeros(rows.height, dtype=bool)
    for each in np.unique(fold):
        threshold = chosen_on(rows.filter(fold != each), name)
        predicted[fold == each] = predicted_at(rows.filter(fold == each), threshold, name)
    return METRICS[name][1](rows, predicted)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("folds", [2, FOLDS])
def test_each_fold_is_measured_at_the_threshold_of_the_others(name: str, folds: int) -> None:
    log = log_of(240)
    metric, _ = METRICS[name]
    found = mlm.best_threshold(log, metric, by="model", folds=folds)
    assert found.columns == ["model", "threshold", "value", "n_rows", "value_elsewhere"]
    assert_frame_equal(found.drop("value_elsewhere"), mlm.best_threshold(log, metric, by="model"))
    for model, value in found.select("model", "value_elsewhere").rows():
        rows = log.filter(pl.col("model").eq_missing(pl.lit(model)), pl.col("score").is_not_null())
        assert value == pytest.approx(elsewhere(rows, name, folds), rel=1e-12)


def test_it_is_of_each_label_and_of_chosen_rows() -> None:
    log = log_of(240)
    found = mlm.best_threshold(log, mlm.f1(), per="label", where=pl.col("g") > 0, folds=FOLDS)
    for label, value in found.select("label", "value_elsewhere").rows():
        rows = log.filter(pl.col("score").is_not_null(), pl.col("g") > 0, label=label)
        assert value == pytest.approx(elsewhere(rows, "f1", FOLDS), rel=1e-12)


def test_as_many_folds_as_buckets_are_each_bucket_by_itself() -> None:
    log = log_of(240).filter(pl.col("score").is_not_null())
    found = mlm.best_threshold(log.lazy(), mlm.f1(), folds=BUCKETS).collect()
    assert found["value_elsewhere"].item() == pytest.approx(elsewhere(log, "f1", BUCKETS), rel=1e-12)


def test_every_score_alike_leaves_nothing_to_choose() -> None:
    log = log_of(60).with_columns(score=pl.lit(0.3))
    value, of_folds = mlm.best_threshold(log, mlm.f1(), folds=FOLDS).select("value", "value_elsewhere").row(0)
    assert of_folds == value


STATED = {
    "f1": mlm.f1(),
    "macro": mlm.f1(average="macro"),
    "loss": mlm.hamming_loss(),
    "flat": mlm.specificity(undefined=0.0),
}


@pytest.mark.parametrize("name", STATED)
@pytest.mark.parametrize("options", [{"by": "model"}, {"per": "label", "where": pl.col("g") > 0}], ids=["by", "per"])
def test_of_a_state_and_of_cells_it_is_that_of_every_score(name: str, options: dict[str, Any]) -> None:
    """Where every score is the end of a cell, the cells are the scores."""
    if "per" in options and name == "macro":
        options = {"by": ["model", "g"]}
    ends = ends_of_cells(32, "logit")
    log = log_of(300).with_columns(score=pl.lit(ends).gather(pl.int_range(300) * 7 % 31))
    parts = [log.filter(pl.col("sample") < 70), log.filter(pl.col("sample") >= 70)]
    held = mlm.roc_auc(bins=32, average="macro")
    state = pl.concat(mlm.state(part, held, by=["model", "g"]) for part in parts)
    expected = mlm.best_threshold(log, STATED[name], folds=FOLDS, **options)
    assert expected["value_elsewhere"].is_not_null().all()
    found = mlm.best_threshold(state, STATED[name], folds=FOLDS, **options)
    assert_frame_equal(found, expected, rel_tol=1e-12)
    for split in ({}, {"passes": 3, "progress": False}):
        in_cells = mlm.best_threshold(log, STATED[name], folds=FOLDS, bins=32, **options, **split)
        assert_frame_equal(in_cells, expected, rel_tol=1e-12)


@pytest.mark.parametrize("bins", [None, 16])
def test_where_no_row_counts_there_is_no_value(bins: int | None) -> None:
    """Labels that are absent have a value by undefined=, and no threshold by which that could be had."""
    log = pl.DataFrame({"sample": [1, 2], "label": ["a", "a"], "score": [0.3, 0.4], "truth": [1, 0]})
    of_others = mlm.recall(average="macro", labels=["b"], undefined=0.0)
    table = mlm.best_threshold(log, of_others, folds=2, bins=bins)
    assert table.row(0) == (None, None, 0, None)


def test_where_the_other_folds_have_no_threshold_there_is_no_value() -> None:
    """One sample is one fold; a broken row breaks all that it is pooled with; and recall needs a true row to choose."""
    nan = float("nan")
    log = pl.DataFrame(
        {
            "model": ["alone", "alone", "bad", "bad", "bad", "one", "one", "one", "none"],
            "sample": [1, 1, 1, 2, 3, 1, 2, 3, 1],
            "score": [0.2, 0.7, nan, 0.4, 0.9, 0.2, 0.3, 0.4, None],
            "truth": [0, 1, 1, 0, 1, 1, 0, 0, 1],
        }
    )
    found = mlm.best_threshold(log, mlm.recall(), by="model", folds=4)
    values = dict(found.select("model", "value_elsewhere").rows())
    assert str(values) == str({"alone": None, "bad": nan, "none": None, "one": None})
    assert found.filter(model="one")["value"].item() == 1
    assert mlm.best_threshold(log.clear(), mlm.f1(), folds=2)["value_elsewhere"].to_list() == [None]
    assert mlm.best_threshold(log.clear(), mlm.f1(), by="model", folds=2).is_empty()


HELD = mlm.ks(bins=8)
SCORED = log_of(60).filter(pl.col("score") >= 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mlm.best_threshold(SCORED, mlm.f1(), folds=1), "at least 2 and at most 64 or None, not 1"),
        (lambda: mlm.best_threshold(SCORED, mlm.f1(), folds=65), "at least 2 and at most 64 or None, not 65"),
        (lambda: mlm.best_threshold(SCORED, mlm.f1(), folds=2.0), "folds must be a whole number .*not 2.0"),  # type: ignore[arg-type]
        (lambda: mlm.best_threshold(SCORED, mlm.f1(), folds=True), "folds must be a whole number .*not True"),
        (lambda: mlm.best_threshold(SCORED, mlm.ks(), folds=2), "folds= needs a metric with threshold=, and ks is"),
        (lambda: mlm.best_threshold(SCORED.drop("sample"), mlm.f1(), folds=2), "folds= needs samples, and there is no"),
        (
            lambda: mlm.best_threshold(SCORED.with_columns(value_elsewhere=1), mlm.f1(), by="value_elsewhere", folds=2),
            "two columns of the result would have the name 'value_elsewhere'",
        ),
        (lambda: mlm.best_threshold(mlm.state(SCORED, HELD, buckets=0), mlm.f1(), folds=2), "state has no buckets"),
        (lambda: mlm.best_threshold(mlm.state(SCORED, HELD, buckets=4), mlm.f1(), folds=5), "has 4 buckets, so it has"),
    ],
)
def test_what_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(mlm.MetricError, match=message):
        call()


DISTANCE, SHARE = 1.5, 0.05
"""How far the scores of true rows lie above those of the others, in standard deviations; and how many are true."""


def true_f1(threshold: float) -> float:
    """The f1 of all rows that there could be."""
    tp, fp = SHARE * (1 - NormalDist(DISTANCE).cdf(threshold)), (1 - SHARE) * (1 - NormalDist().cdf(threshold))
    return 2 * tp / (tp + fp + SHARE)


@pytest.mark.proof
@pytest.mark.parametrize(("n", "worlds", "too_high"), [(100, 6000, 0.170), (1000, 1500, 0.043)])
def test_what_is_chosen_on_few_rows_is_too_good_and_what_is_measured_elsewhere_is_not(
    n: int, worlds: int, too_high: float
) -> None:
    """The Monte Carlo error of each mean is its standard error: below .0025."""
    random = np.random.default_rng(n)
    truth = random.random(n * worlds) < SHARE
    log = pl.DataFrame(
        {
            "world": np.repeat(np.arange(worlds), n),
            "sample": np.arange(n * worlds),
            "score": random.normal(0, 1, n * worlds) + DISTANCE * truth,
            "truth": truth,
        }
    )
    best = mlm.best_threshold(log, mlm.f1(), by="world", folds=FOLDS)
    truths = np.array([true_f1(threshold) for threshold in best["threshold"]])
    errors = [best[name].to_numpy() - truths for name in ("value", "value_elsewhere")]
    on_these, of_others = (error.mean() for error in errors)
    assert max(error.std() / math.sqrt(worlds) for error in errors) < 0.0025
    assert on_these == pytest.approx(too_high, abs=0.01)
    assert abs(of_others) < 0.016
