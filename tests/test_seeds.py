"""The worked numbers of the systems the library grew from, to the last printed digit, by both readings.

Where a system names a thing otherwise, the call here is how its number is had.
"""

import math
from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.oracle import Value, both, both_by_label, long

EXACT = 1e-12  # numbers that are known to all their digits, up to the order of a sum


def printed(value: Value, digits: str) -> bool:
    """Whether a value is the number that was printed: equal when rounded to as many decimals."""
    assert value is not None
    return f"{value:.{len(digits.partition('.')[2])}f}" == digits


def close(value: Value, known: float) -> bool:
    return value == pytest.approx(known, rel=EXACT, abs=EXACT)


def all_close(values: dict[str, Value], known: list[float | None]) -> bool:
    return list(values.values()) == [None if k is None else pytest.approx(k, rel=EXACT, abs=EXACT) for k in known]


# --- 1. LTN: rankings of four film genres, truth Action and Comedy ---------------------------------------------------

PREDICTIONS = [
    [0.9238, 0.1234, 0.5801, 0.0025],
    [0.3355, 0.2486, 0.8824, 0.1870],
    [0.7658, 0.8203, 0.5484, 0.1185],
    [0.7658, 0.5484, 0.8203, 0.1185],
]
LTN_RANKING_LOSS: dict[str, Any] = {"pairs": "all", "ties": "right", "undefined": 0.0}


def of_each_label(frame: pl.DataFrame) -> dict[str, Value]:
    """By evaluate alone: a group of one label has no other labels for a true one to be above."""
    return dict(sorted(mlm.evaluate(frame, mlm.labelwise_precision(), per="label").lazy().collect().rows()))


@pytest.mark.parametrize(
    ("metric", "numbers"),
    [
        (mlm.one_error(), [0, 1, 0, 1]),
        (mlm.coverage_error(), [3, 3, 2, 3]),
        (mlm.ranking_loss(**LTN_RANKING_LOSS), [1 / 6, 1 / 3, 0, 1 / 3]),
        (mlm.ranking_loss(ties="right"), [1 / 4, 1 / 2, 0, 1 / 2]),
        (mlm.exact_match_prefix(), [0, 0, 1, 0]),
        (mlm.labelwise_precision(average="min"), [0, 0, 1, 0]),
        (mlm.labelwise_precision(), [0.5, 0, 1, 0]),
    ],
)
def test_ltn(metric: mlm.Metric, numbers: list[float]) -> None:
    for score, number in zip(PREDICTIONS, numbers, strict=True):
        assert close(both(long([[1, 1, 0, 0]], [score]), metric), number)


@pytest.mark.parametrize(
    ("metric", "numbers"),
    [
        (mlm.label_ranking_average_precision(), ["0.8333", "0.5833", "1.0000", "0.5833"]),
        (mlm.multilabel_cross_entropy(base=2), ["4.388427", "6.970430", "1.999587", "3.909965"]),
        (mlm.multilabel_cross_entropy(), ["3.041826", "4.831534", "1.386008", "2.710181"]),
    ],
)
def test_ltn_printed(metric: mlm.Metric, numbers: list[str]) -> None:
    for score, number in zip(PREDICTIONS, numbers, strict=True):
        assert printed(both(long([[1, 1, 0, 0]], [score]), metric), number)


def test_ltn_labelwise_precision() -> None:
    for score, (action, comedy) in zip(PREDICTIONS, [(1, 0), (0, 0), (1, 1), (0, 0)], strict=True):
        assert all_close(of_each_label(long([[1, 1, 0, 0]], [score])), [action, comedy, None, None])


@pytest.mark.parametrize(
    ("metric", "number"),
    [
        (mlm.one_error(), 0.5),
        (mlm.coverage_error(), 3),
        (mlm.ranking_loss(ties="right"), 1 / 4),
        (mlm.ranking_loss(**LTN_RANKING_LOSS), 1 / 6),
        (mlm.ranking_loss(), 1 / 2),
        (mlm.label_ranking_average_precision(), 7 / 12),
        (mlm.exact_match_prefix(), 0),
        (mlm.labelwise_precision(), 0),
    ],
)
def test_ltn_ties(metric: mlm.Metric, number: float) -> None:
    assert close(both(long([[1, 0, 1, 0]], [[0.5, 0.5, 0.2, 0.1]]), metric), number)


AUTHORS_TEST = long(
    [[1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 1, 0]],
    [[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 1.0, 0.0]],
)


@pytest.mark.parametrize(
    ("metric", "number"),
    [
        (mlm.one_error(), 0.5),
        (mlm.coverage_error(), 3),
        (mlm.ranking_loss(ties="right"), 7 / 36),
        (mlm.label_ranking_average_precision(), 7 / 12),
        (mlm.exact_match_prefix(), 1 / 3),
        (mlm.multilabel_cross_entropy(base=2, log_of_zero=-1000.0), 4000 / 3),
        (mlm.multilabel_cross_entropy(base=2), math.inf),
        (mlm.labelwise_precision(average="min"), 0),
        (mlm.labelwise_precision(average="macro"), 1 / 6),
    ],
)
def test_ltn_authors_test(metric: mlm.Metric, number: float) -> None:
    assert close(both(AUTHORS_TEST, metric), number)


def test_ltn_authors_test_of_each_label() -> None:
    assert all_close(of_each_label(AUTHORS_TEST), [0.5, 0, 0, None])


@pytest.mark.parametrize("truth", [[0, 0], [1, 1]])
def test_ltn_nothing_to_rank(truth: list[int]) -> None:
    """The text counts such a sample as 0, the author's code skips it, as we do where not told otherwise."""
    frame = long([truth, [1, 0]], [[0.5, 0.4], [0.3, 0.6]])
    assert close(both(frame, mlm.ranking_loss(**LTN_RANKING_LOSS)), 0.5)
    assert close(both(frame, mlm.ranking_loss(ties="right")), 1)
    assert close(both(frame, mlm.exact_match_prefix()), 0.5)


# --- 2. CatBoost: several labels, raw logits -------------------------------------------------------------------------

CATBOOST = long([[1, 0], [0, 1], [1, 1]], [[2.0, -1.0], [0.0, 3.0], [-1.0, 0.5]], [1.0, 2.0, 3.0])
PRECISION = mlm.precision(threshold=0.0, undefined=0.0)
RECALL = mlm.recall(threshold=0.0, undefined=1.0)
F1 = mlm.f1(threshold=0.0, undefined=1.0)
PER_CLASS = mlm.accuracy(threshold=0.0)
CLASSIC = mlm.subset_accuracy(threshold=0.0)
HAMMING = mlm.hamming_loss(threshold=0.0)
MULTI_LOGLOSS = mlm.log_loss(logits=True)


@pytest.mark.parametrize(
    ("metric", "unweighted", "weighted"),
    [
        (MULTI_LOGLOSS, 0.49487715039886854, 0.6071395648269634),
        (CLASSIC, 2 / 3, 1 / 2),
        (HAMMING, 1 / 6, 1 / 4),
    ],
)
def test_catboost(metric: mlm.Metric, unweighted: float, weighted: float) -> None:
    assert close(both(CATBOOST, metric), unweighted)
    assert close(both(CATBOOST, metric, weight="weight"), weighted)


@pytest.mark.parametrize(
    ("metric", "unweighted", "weighted"),
    [
        (PRECISION, [1, 1], [1, 1]),
        (RECALL, [1 / 2, 1], [1 / 4, 1]),
        (F1, [2 / 3, 1], [2 / 5, 1]),
        (PER_CLASS, [2 / 3, 1], [1 / 2, 1]),
    ],
)
def test_catboost_of_each_label(
    metric: mlm.Metric, unweighted: list[float | None], weighted: list[float | None]
) -> None:
    assert all_close(both_by_label(CATBOOST, metric), unweighted)
    assert all_close(both_by_label(CATBOOST, metric, weight="weight"), weighted)


@pytest.mark.parametrize(
    ("metric", "numbers"),
    [(PRECISION, [0, 0, 0]), (RECALL, [1, 0, 1]), (F1, [1, 0, 0]), (PER_CLASS, [1, 0.5, 0])],
)
def test_catboost_nothing_over_nothing(metric: mlm.Metric, numbers: list[float | None]) -> None:
    frame = long([[0, 1, 0], [0, 0, 0]], [[-1.0, -1.0, 1.0], [-1.0, -1.0, 1.0]])
    assert all_close(both_by_label(frame, metric), numbers)
    assert close(both(frame, HAMMING), 0.5)


@pytest.mark.parametrize(
    ("metric", "number"),
    [
        (mlm.log_loss(logits=True, undefined=0.0), 0),
        (mlm.subset_accuracy(threshold=0.0, undefined=0.0), 0),
        (mlm.hamming_loss(threshold=0.0, undefined=0.0), 0),
        (PRECISION, 0),
        (RECALL, 1),
        (F1, 1),
    ],
)
def test_catboost_all_weights_zero(metric: mlm.Metric, number: float) -> None:
    """Undefined here, a number there."""
    assert both(CATBOOST.with_columns(weight=0.0), metric, weight="weight") == number


def test_catboost_soft_truth() -> None:
    """Soft truths are read as float32, and positive from above a half."""
    frame = long([[0.3, 0.7], [0.5, 0.50001], [1.0, 0.0]], [[1.0, 1.0], [1.0, 1.0], [1.0, -1.0]])
    frame = frame.with_columns(pl.col("truth").cast(pl.Float32))
    hard = {"truth": pl.col("truth") > 0.5}
    assert close(both(frame, MULTI_LOGLOSS), 0.6465933519215025)
    assert all_close(both_by_label(frame, PRECISION, **hard), [1 / 3, 1])
    assert all_close(both_by_label(frame, RECALL, **hard), [1, 1])
    assert all_close(both_by_label(frame, F1, **hard), [0.5, 1])
    assert close(both(frame, CLASSIC, **hard), 1 / 3)
    assert close(both(frame, HAMMING, **hard), 1 / 3)


@pytest.mark.parametrize(("truth", "logit", "number"), [(0, 50.0, 50.0), (1, 50.0, 0.0), (0, 1e4, 1e4), (1, 1e4, 0.0)])
def test_catboost_log_loss_is_stable(truth: int, logit: float, number: float) -> None:
    assert close(both(binary([truth], [logit]), MULTI_LOGLOSS), number)


@pytest.mark.parametrize(("dtype", "number"), [(pl.Float32, 1.1632616852830486), (pl.Float64, 1.1632616875182227)])
def test_catboost_truth_of_both_widths(dtype: Any, number: float) -> None:
    frame = pl.DataFrame({"score": [1.0, 1.0], "truth": pl.Series([0.1, 0.2], dtype=dtype)})
    assert close(both(frame, MULTI_LOGLOSS), number)


# --- 3. Log loss -----------------------------------------------------------------------------------------------------


def binary(truth: list[int], score: list[float], dtype: Any = pl.Float64) -> pl.DataFrame:
    """No sample, no label: a group is one unit."""
    return pl.DataFrame({"score": pl.Series(score, dtype=dtype), "truth": truth})


@pytest.mark.parametrize(("score", "digits"), [(0.5, "0.69315"), (0.9, "0.10536"), (0.1, "2.3026")])
def test_log_loss_printed(score: float, digits: str) -> None:
    assert printed(both(binary([1], [score]), mlm.log_loss()), digits)


@pytest.mark.parametrize(
    ("truth", "score", "number"),
    [
        ([1, 0, 1], [0.9, 0.2, 0.7], 0.22839300363692283),
        ([1], [0.0], 34.538776394910684),
        ([0], [1.0], 34.53957599234088),  # 1 - (1 - 1e-15) is not 1e-15
    ],
)
def test_log_loss(truth: list[int], score: list[float], number: float) -> None:
    assert close(both(binary(truth, score), mlm.log_loss()), number)


def test_log_loss_of_a_sure_and_right_score_is_not_zero() -> None:
    assert both(binary([1], [1.0]), mlm.log_loss()) == pytest.approx(9.992007221626415e-16, rel=EXACT, abs=0)


@pytest.mark.parametrize(
    ("eps", "truth", "score", "number"),
    [
        (0.0, [1, 0], [1.0, 0.0], 0.0),
        (0.0, [1, 0], [0.0, 0.0], math.inf),
        (2.220446e-16, [1], [0.0], -math.log(2.220446e-16)),
    ],
)
def test_log_loss_eps(eps: float, truth: list[int], score: list[float], number: float) -> None:
    assert close(both(binary(truth, score), mlm.log_loss(eps=eps)), number)


@pytest.mark.parametrize(("dtype", "digits"), [("Float64", "36.0437"), ("Float32", "15.9424"), ("Float16", "6.9315")])
def test_log_loss_eps_of_the_type(dtype: str, digits: str) -> None:
    """Of float16 scikit-learn prints 6.9297: it takes the logarithm in float16 too."""
    frame = binary([1], [0.0], getattr(pl, dtype))
    assert printed(both(frame, mlm.log_loss(eps="dtype")), digits)


@pytest.mark.parametrize(
    ("params", "number"),
    [({"eps": 0.0}, math.log(2) / 2), ({}, (math.log(2) - math.log(1 - 1e-15)) / 2)],
)
def test_multiclass_log_loss(params: dict[str, float], number: float) -> None:
    frame = long([[0, 1, 0], [1, 0, 0]], [[0.2, 0.5, 0.3], [1.0, 0.0, 0.0]])
    assert close(both(frame, mlm.multiclass_log_loss(**params)), number)


def test_multiclass_log_loss_of_an_impossible_class() -> None:
    frame = long([[1, 0]], [[0.0, 1.0]])
    assert both(frame, mlm.multiclass_log_loss(eps=0.0)) == math.inf
    assert close(both(frame, mlm.multiclass_log_loss(eps=0.0, max_loss=math.log(3))), math.log(3))


# --- 4. Orange: three examples, two targets of two classes each -------------------------------------------------------


def orange(first: float = 0.9) -> pl.DataFrame:
    """A row for each example, target and class; `first` is what the true class of the first row is given."""
    return pl.DataFrame(
        {
            "example": [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3],
            "target": ["one", "one", "two", "two"] * 3,
            "class": [0, 1, 0, 1] * 3,
            "score": [first, 1 - first, 0.4, 0.6, 0.6, 0.4, 0.2, 0.8, 1.0, 0.0, 0.7, 0.3],
            "truth": [1, 0, 0, 1, 0, 1, 0, 1, 1, 0, 1, 0],
            "predicted": [0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0],
            "actual": [0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0],
            "weight": [1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 3.0, 3.0, 3.0, 3.0],
        }
    )


ORANGE_ROLES: dict[str, Any] = {"sample": ["example", "target"], "label": "class"}
CA = mlm.classification_accuracy().on(score="predicted", truth="actual")
BRIER = mlm.multiclass_brier_score()
IS = mlm.information_score()
LOGLOSS = mlm.multiclass_log_loss(eps=1e-20, max_loss=math.log(3))


@pytest.mark.parametrize(
    ("metric", "number"),
    [
        (mlm.average_score(CA, target="target"), 0.8333333333333333),
        (mlm.average_score(BRIER), 0.22),
        (mlm.average_score(IS), 0.3918909402870758),
        (mlm.average_score(LOGLOSS), 0.3520492277584857),
        (mlm.flattened(CA), 0.8333333333333334),
        (mlm.average_score({"one": CA, "two": BRIER}, weights=[0.5, -1]), -0.28),
    ],
)
def test_orange(metric: mlm.Metric, number: float) -> None:
    assert close(both(orange(), metric, **ORANGE_ROLES), number)


def test_orange_of_whole_examples() -> None:
    assert close(both(orange(), mlm.global_accuracy(), sample="example", score="predicted", truth="actual"), 2 / 3)


def test_orange_weights_that_sum_to_zero() -> None:
    with pytest.raises(mlm.ParameterError, match="must not sum to 0"):
        mlm.average_score({"one": CA, "two": CA}, weights=[1, -1])


@pytest.mark.parametrize(
    ("metric", "number"),
    [
        (mlm.average_score(CA, target="target"), 0.8333333333333333),
        (mlm.average_score(IS), 0.48244786822307983),
    ],
)
def test_orange_with_weights_of_the_examples(metric: mlm.Metric, number: float) -> None:
    assert close(both(orange(), metric, weight="weight", **ORANGE_ROLES), number)


def test_orange_brier_with_weights() -> None:
    """Theirs is 0.9733333333333333: only a part of the sum is weighted. By the definition it is this."""
    by_hand = ((0.02 + 2 * 0.72 + 3 * 0.0) / 6 + (0.32 + 2 * 0.08 + 3 * 0.18) / 6) / 2
    assert close(both(orange(), mlm.average_score(BRIER), weight="weight", **ORANGE_ROLES), by_hand)


@pytest.mark.parametrize(("first", "number"), [(0.9, 0.3520492277584857), (0.0, 0.5175911899268663)])
def test_orange_log_loss(first: float, number: float) -> None:
    """No example costs more than ln n."""
    assert close(both(orange(first), mlm.average_score(LOGLOSS), **ORANGE_ROLES), number)


def test_orange_prior_of_a_class_that_is_always_true() -> None:
    """A prior of 1 is an error there. Here a probability below it costs all the bits there are, and 1 costs none."""
    frame = pl.DataFrame({"sample": [1, 1], "label": ["a", "b"], "score": [0.5, 0.5], "truth": [1, 0]})
    assert both(frame, mlm.information_score()) == -math.inf
    assert both(frame.with_columns(score=pl.col("truth") * 1.0), mlm.information_score()) == 0


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
def test_allennlp_of_each_label(metric: mlm.Metric, numbers: list[float | None]) -> None:
    assert all_close(both_by_label(ALLEN, metric), numbers)


@pytest.mark.parametrize(
    ("params", "precision", "recall", "f1"),
    [
        ({"average": "micro"}, "0.8", "0.8", "0.8"),
        ({"average": "macro"}, "0.683333", "0.67", "0.66"),
        ({"average": "weighted"}, "0.888889", "0.8", "0.823333"),
        ({"average": "macro", "labels": ["A", "B"]}, "0.875", "0.675", "0.75"),
        ({"average": "micro", "labels": ["B", "D"]}, "1", "0.777778", "0.875"),
    ],
)
def test_allennlp_averages(params: dict[str, Any], precision: str, recall: str, f1: str) -> None:
    assert printed(both(ALLEN, mlm.precision(**AS_ALLEN, **params)), precision)
    assert printed(both(ALLEN, mlm.recall(**AS_ALLEN, **params)), recall)
    assert printed(both(ALLEN, mlm.f1(**AS_ALLEN, **params)), f1)


def test_allennlp_fbeta() -> None:
    assert printed(both(ALLEN, mlm.fbeta(beta=2.0, average="macro", **AS_ALLEN)), "0.662253")


@pytest.mark.parametrize("mask", ["filter", "null truth"])
@pytest.mark.parametrize(
    ("metric", "numbers"),
    [(mlm.precision(**AS_ALLEN), [1, 1, 2 / 3, 1, 0]), (mlm.f1(**AS_ALLEN), [6 / 7, 0.75, 0.8, 1, 0])],
)
def test_allennlp_without_the_last_row(mask: str, metric: mlm.Metric, numbers: list[float | None]) -> None:
    kept = pl.col("sample") < 5
    if mask == "filter":
        assert all_close(both_by_label(ALLEN, metric.filter(kept)), numbers)
    else:
        assert all_close(both_by_label(ALLEN.with_columns(truth=pl.when(kept).then("truth")), metric), numbers)


def test_allennlp_scores_that_sum_to_zero() -> None:
    """There such a sample predicts nothing. Here the score says so: it was not returned."""
    frame = long([[1, 0], [1, 0]], [[1.0, -1.0], [1.0, -2.0]])
    silent = pl.col("score").sum().over("sample") == 0
    frame = frame.with_columns(score=pl.when(silent).then(-math.inf).otherwise("score"))
    assert all_close(both_by_label(frame, mlm.precision(threshold=0.0, **AS_ALLEN)), [1, 0])
    assert all_close(both_by_label(frame, mlm.recall(threshold=0.0, **AS_ALLEN)), [0.5, 0])


@pytest.mark.parametrize("inclusive", [False, True])
def test_allennlp_threshold_of_the_type_of_the_score(inclusive: bool) -> None:
    """0.7 as float32 is not 0.7 as float64, and still it is at the threshold: neither above nor below."""
    frame = binary([1], [0.7], pl.Float32)
    assert both(frame, mlm.recall(threshold=0.7, inclusive=inclusive)) == float(inclusive)


def test_allennlp_label_that_is_not_in_the_data() -> None:
    assert close(both(ALLEN, mlm.f1(average="macro", labels=["A", "B", "Z"], **AS_ALLEN)), 1.5 / 3)


# --- 6. scikit-learn: samples with ties, without positives, without negatives -----------------------------------------

SKLEARN_RANKINGS = {
    "coverage": mlm.coverage_error(undefined=0.0),
    "loss": mlm.ranking_loss(undefined=0.0),
    "lrap": mlm.label_ranking_average_precision(undefined=1.0),
    "ndcg": mlm.ndcg(undefined=0.0),
    "ndcg at 2": mlm.ndcg(k=2, undefined=0.0),
    "ndcg in order": mlm.ndcg(ties="ignore", undefined=0.0),
    "dcg": mlm.dcg(),
}


@pytest.mark.parametrize(
    ("truth", "score", "numbers"),
    [
        (
            [1, 0, 1, 0],
            [0.5, 0.5, 0.2, 0.1],
            {"coverage": "3", "loss": "0.5", "lrap": "0.583333", "ndcg": "0.806574", "ndcg at 2": "0.5",
             "ndcg in order": "0.919721", "dcg": "1.315465"},
        ),
        (
            [0, 1, 0, 0],
            [0.3, 0.3, 0.3, 0.1],
            {"coverage": "3", "loss": "0.666667", "lrap": "0.333333", "ndcg": "0.710310", "ndcg at 2": "0.543643"},
        ),
        ([0, 0, 0, 0], [0.4, 0.3, 0.2, 0.1], {"coverage": "0", "loss": "0", "lrap": "1", "ndcg": "0"}),
        ([1, 1, 1, 1], [0.4, 0.3, 0.2, 0.1], {"coverage": "4", "loss": "0", "lrap": "1", "ndcg": "1"}),
        ([1, 0, 0], [0.5, 0.5, 0.5], {"loss": "1"}),
    ],
)  # fmt: skip
def test_sklearn_rankings(truth: list[int], score: list[float], numbers: dict[str, str]) -> None:
    for name, digits in numbers.items():
        assert printed(both(long([truth], [score]), SKLEARN_RANKINGS[name]), digits), name


def test_sklearn_top_k_at_a_tied_border() -> None:
    """Theirs takes the later class: 1 for class 1, 0 for class 0. Here each has half of the place."""
    for true in ([1, 0, 0], [0, 1, 0]):
        assert both(long([true], [[0.4, 0.4, 0.2]]), mlm.top_k_accuracy(1)) == 0.5


# --- 7. ranx: queries and documents, in the order of the scores -------------------------------------------------------

QUERY = long([[1, 0, 1, 0, 1]], [[0.9, 0.8, 0.7, 0.6, 0.5]])
GRADED = long([[3, 0, 2, 0, 1]], [[0.9, 0.8, 0.7, 0.6, 0.5]])


@pytest.mark.parametrize(
    ("metric", "number"),
    [
        (mlm.precision_at(2), 1 / 2),
        (mlm.precision_at(10), 3 / 10),
        (mlm.recall_at(2), 1 / 3),
        (mlm.f1_at(2), 2 * (1 / 2) * (1 / 3) / (1 / 2 + 1 / 3)),
        (mlm.r_precision(), 2 / 3),
        (mlm.reciprocal_rank(), 1),
        (mlm.average_precision_at(k=3, denominator="positives"), (1 + 2 / 3) / 3),
        (mlm.average_precision_at(denominator="positives"), (1 + 2 / 3 + 3 / 5) / 3),
        (mlm.hit_at(1), 1),
    ],
)
def test_ranx(metric: mlm.Metric, number: float) -> None:
    assert close(both(QUERY, metric), number)


def discounted(gains: list[float]) -> float:
    return sum(gain / math.log2(place + 2) for place, gain in enumerate(gains))


@pytest.mark.parametrize(
    ("metric", "number"),
    [
        (mlm.dcg(), discounted([3, 0, 2, 0, 1])),
        (mlm.ndcg(k=2), discounted([3, 0]) / discounted([3, 2])),
        (mlm.ndcg(gain="exponential"), discounted([7, 0, 3, 0, 1]) / discounted([7, 3, 1])),
    ],
)
def test_ranx_graded(metric: mlm.Metric, number: float) -> None:
    assert close(both(GRADED, metric), number)
