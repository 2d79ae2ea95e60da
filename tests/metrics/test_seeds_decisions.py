"""The decisions of CatBoost and AllenNLP, to the last printed digit, by both readings."""

import math
from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.metrics.printed import binary, exact, of_labels, printed
from tests.support.at_once import each
from tests.support.readings import both, long

# --- 2. CatBoost: several labels, raw logits -------------------------------------------------------------------------

CATBOOST = long([[1, 0], [0, 1], [1, 1]], [[2.0, -1.0], [0.0, 3.0], [-1.0, 0.5]], [1.0, 2.0, 3.0])
PRECISION = mlm.precision(threshold=0.0, undefined=0.0)
RECALL = mlm.recall(threshold=0.0, undefined=1.0)
F1 = mlm.f1(threshold=0.0, undefined=1.0)
PER_CLASS = mlm.accuracy(threshold=0.0)
CLASSIC = mlm.subset_accuracy(threshold=0.0)
HAMMING = mlm.hamming_loss(threshold=0.0)
MULTI_LOGLOSS = mlm.log_loss(logits=True)


def test_catboost() -> None:
    metrics = [MULTI_LOGLOSS, CLASSIC, HAMMING]
    assert each(CATBOOST, metrics) == exact([0.49487715039886854, 2 / 3, 1 / 6])
    assert each(CATBOOST, metrics, weight="weight") == exact([0.6071395648269634, 1 / 2, 1 / 4])


@pytest.mark.parametrize(
    ("metric", "unweighted", "weighted", "nothing_over_nothing"),
    [
        (PRECISION, [1, 1], [1, 1], [0, 0, 0]),
        (RECALL, [1 / 2, 1], [1 / 4, 1], [1, 0, 1]),
        (F1, [2 / 3, 1], [2 / 5, 1], [1, 0, 0]),
        (PER_CLASS, [2 / 3, 1], [1 / 2, 1], [1, 0.5, 0]),
    ],
)
def test_catboost_of_each_label(
    metric: mlm.Metric, unweighted: list[float], weighted: list[float], nothing_over_nothing: list[float]
) -> None:
    assert of_labels(CATBOOST, metric) == exact(unweighted)
    assert of_labels(CATBOOST, metric, weight="weight") == exact(weighted)
    frame = long([[0, 1, 0], [0, 0, 0]], [[-1.0, -1.0, 1.0], [-1.0, -1.0, 1.0]])
    assert of_labels(frame, metric) == exact(nothing_over_nothing)
    assert both(frame, HAMMING) == exact(0.5)


def test_catboost_all_weights_zero() -> None:
    """Undefined here, a number there."""
    numbers = {
        mlm.log_loss(logits=True, undefined=0.0): 0,
        mlm.subset_accuracy(threshold=0.0, undefined=0.0): 0,
        mlm.hamming_loss(threshold=0.0, undefined=0.0): 0,
        PRECISION: 0,
        RECALL: 1,
        F1: 1,
    }
    assert each(CATBOOST.with_columns(weight=0.0), numbers, weight="weight") == list(numbers.values())


def test_catboost_soft_truth() -> None:
    """Soft truths are read as float32, and positive from above a half."""
    frame = long([[0.3, 0.7], [0.5, 0.50001], [1.0, 0.0]], [[1.0, 1.0], [1.0, 1.0], [1.0, -1.0]])
    frame = frame.with_columns(pl.col("truth").cast(pl.Float32))
    hard = {"truth": pl.col("truth") > 0.5}
    assert both(frame, MULTI_LOGLOSS) == exact(0.6465933519215025)
    assert of_labels(frame, PRECISION, **hard) == exact([1 / 3, 1])
    assert of_labels(frame, RECALL, **hard) == exact([1, 1])
    assert of_labels(frame, F1, **hard) == exact([0.5, 1])
    assert each(frame, [CLASSIC, HAMMING], **hard) == exact([1 / 3, 1 / 3])


@pytest.mark.parametrize(("dtype", "number"), [(pl.Float32, 1.1632616852830486), (pl.Float64, 1.1632616875182227)])
def test_catboost_truth_of_both_widths(dtype: Any, number: float) -> None:
    frame = pl.DataFrame({"score": [1.0, 1.0], "truth": pl.Series([0.1, 0.2], dtype=dtype)})
    assert both(frame, MULTI_LOGLOSS) == exact(number)


# --- 5. AllenNLP: a score equal to the threshold is predicted ---------------------------------------------------------

ALLEN = long(
    [[1, 1, 0, 0, 0], [0, 1, 0, 1, 0], [1, 1, 0, 1, 0], [1, 1, 1, 1, 0], [1, 1, 1, 1, 0], [0, 0, 0, 0, 0]],
    np.array(
        [
            [0.55, 0.25, 0.10, 0.10, 0.20],
            [0.10, 0.60, 0.10, 0.95, 0.00],
            [0.90, 0.80, 0.75, 0.80, 0.00],
            [0.49, 0.50, 0.95, 0.55, 0.00],
            [0.60, 0.49, 0.60, 0.65, 0.85],
            [0.85, 0.40, 0.10, 0.20, 0.00],
        ],
        dtype=np.float32,
    ),
)
AS_ALLEN: dict[str, Any] = {"inclusive": True, "undefined": 0.0}


@pytest.mark.parametrize(
    ("metric", "numbers"),
    [
        (mlm.support(), [4, 5, 2, 4, 0]),
        (mlm.true_positives(inclusive=True) + mlm.false_positives(inclusive=True), [4, 3, 3, 4, 1]),
        (mlm.true_positives(inclusive=True), [3, 3, 2, 4, 0]),
        (mlm.true_negatives(inclusive=True), [1, 1, 3, 2, 5]),
        (mlm.precision(**AS_ALLEN), [3 / 4, 1, 2 / 3, 1, 0]),
        (mlm.recall(**AS_ALLEN), [3 / 4, 3 / 5, 1, 1, 0]),
        (mlm.f1(**AS_ALLEN), [0.75, 0.75, 0.8, 1, 0]),
    ],
)
def test_allennlp_of_each_label(metric: mlm.Metric, numbers: list[float]) -> None:
    assert of_labels(ALLEN, metric) == exact(numbers)


@pytest.mark.parametrize(
    ("params", "digits"),
    [
        ({"average": "micro"}, ["0.8", "0.8", "0.8"]),
        ({"average": "macro"}, ["0.683333", "0.67", "0.66"]),
        ({"average": "weighted"}, ["0.888889", "0.8", "0.823333"]),
        ({"average": "macro", "labels": ["A", "B"]}, ["0.875", "0.675", "0.75"]),
        ({"average": "micro", "labels": ["B", "D"]}, ["1", "0.777778", "0.875"]),
    ],
)
def test_allennlp_averages(params: dict[str, Any], digits: list[str]) -> None:
    values = each(ALLEN, [make(**AS_ALLEN, **params) for make in (mlm.precision, mlm.recall, mlm.f1)])
    assert list(map(printed, values, digits)) == [True] * 3, values


def test_allennlp_fbeta() -> None:
    assert printed(both(ALLEN, mlm.fbeta(beta=2.0, average="macro", **AS_ALLEN)), "0.662253")


@pytest.mark.parametrize(
    ("metric", "numbers"),
    [(mlm.precision(**AS_ALLEN), [1, 1, 2 / 3, 1, 0]), (mlm.f1(**AS_ALLEN), [6 / 7, 0.75, 0.8, 1, 0])],
)
def test_allennlp_without_the_last_row(metric: mlm.Metric, numbers: list[float]) -> None:
    kept = pl.col("sample") < 5
    assert of_labels(ALLEN, metric.filter(kept)) == exact(numbers)
    assert of_labels(ALLEN.with_columns(truth=pl.when(kept).then("truth")), metric) == exact(numbers)


def test_allennlp_scores_that_sum_to_zero() -> None:
    """There such a sample predicts nothing. Here the score says so: it was not returned."""
    frame = long([[1, 0], [1, 0]], [[1.0, -1.0], [1.0, -2.0]])
    silent = pl.col("score").sum().over("sample") == 0
    frame = frame.with_columns(score=pl.when(silent).then(-math.inf).otherwise("score"))
    assert of_labels(frame, mlm.precision(threshold=0.0, **AS_ALLEN)) == exact([1, 0])
    assert of_labels(frame, mlm.recall(threshold=0.0, **AS_ALLEN)) == exact([0.5, 0])


@pytest.mark.parametrize("inclusive", [False, True])
def test_allennlp_threshold_of_the_type_of_the_score(inclusive: bool) -> None:
    """0.7 as float32 is not 0.7 as float64, and still it is at the threshold: neither above nor below."""
    frame = binary([1], [0.7], pl.Float32)
    assert both(frame, mlm.recall(threshold=0.7, inclusive=inclusive)) == float(inclusive)


def test_allennlp_label_that_is_not_in_the_data() -> None:
    assert both(ALLEN, mlm.f1(average="macro", labels=["A", "B", "Z"], **AS_ALLEN)) == exact(1.5 / 3)
