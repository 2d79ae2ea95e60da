"""The references against scikit-learn where the two mean the same, and against numbers worked by hand where not."""

import math
import warnings
from typing import Any

import numpy as np
import polars as pl
import pytest
import sklearn.metrics as sk

from tests import references
from tests.oracle import DECLARED, expected, expected_counts, expected_units, long, same

AGREE = 1e-12  # both sides sum a few dozen float64 numbers
SEEDS = range(8)
AVERAGES = ("micro", "macro", "weighted", "samples")

Matrix = np.ndarray[Any, Any]


class Table:
    """A small random table with tied scores, weights, and samples of no positive and of positives only."""

    def __init__(self, seed: int, weighted: bool) -> None:
        rng = np.random.default_rng(seed)
        self.samples, self.labels = int(rng.integers(4, 9)), int(rng.integers(2, 6))
        shape = (self.samples, self.labels)
        self.truth: Matrix = rng.integers(0, 2, shape)
        self.score: Matrix = rng.choice([0.0, 0.1, 0.3, 0.5, 0.5, 0.6, 0.8, 1.0], shape)
        self.truth[0], self.truth[1] = 0, 1
        self.truth[2, 0], self.truth[2, 1] = 1, 0
        self.weight: Matrix | None = rng.choice([0.5, 1.0, 2.0, 3.25], self.samples) if weighted else None
        self.frame = long(self.truth, self.score, self.weight)
        self.roles = {"weight": "weight"} if weighted else {}

    @property
    def said(self) -> Matrix:
        return (self.score > 0.5).astype(int)

    @property
    def cell_weight(self) -> Matrix | None:
        """The weights of the cells, for scores that know nothing of labels."""
        return None if self.weight is None else np.repeat(self.weight, self.labels)

    def expected(self, name: str, **params: Any) -> float | None:
        return expected(name, self.frame, params, self.roles)


@pytest.fixture(params=[(seed, weighted) for seed in SEEDS for weighted in (False, True)], ids=str)
def table(request: pytest.FixtureRequest) -> Table:
    return Table(*request.param)


def agree(ours: float | None, theirs: float) -> None:
    assert same(ours, float(theirs), AGREE), f"{ours} is not {theirs}"


@pytest.mark.parametrize("zero", [0.0, 1.0])
@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize(
    ("name", "theirs", "params"),
    [
        ("precision", sk.precision_score, {}),
        ("recall", sk.recall_score, {}),
        ("f1", sk.f1_score, {}),
        ("fbeta", sk.fbeta_score, {"beta": 2.0}),
        ("fbeta", sk.fbeta_score, {"beta": 0.5}),
        ("jaccard", sk.jaccard_score, {}),
    ],
)
def test_decisions(table: Table, name: str, theirs: Any, params: dict[str, float], average: str, zero: float) -> None:
    value = theirs(table.truth, table.said, average=average, sample_weight=table.weight, zero_division=zero, **params)
    agree(table.expected(name, average=average, undefined=zero, **params), value)


def test_decisions_of_cells(table: Table) -> None:
    truth, said, weight = table.truth.reshape(-1), table.said.reshape(-1), table.cell_weight
    agree(table.expected("accuracy"), sk.accuracy_score(truth, said, sample_weight=weight))
    agree(table.expected("balanced_accuracy"), sk.balanced_accuracy_score(truth, said, sample_weight=weight))
    agree(table.expected("mcc", undefined=0.0), sk.matthews_corrcoef(truth, said, sample_weight=weight))
    agree(table.expected("cohen_kappa", undefined=0.0), sk.cohen_kappa_score(truth, said, sample_weight=weight))
    (tn, fp), (fn, tp) = sk.confusion_matrix(truth, said, sample_weight=weight, labels=[0, 1])
    agree(table.expected("true_positives"), tp)
    agree(table.expected("false_positives"), fp)
    agree(table.expected("false_negatives"), fn)
    agree(table.expected("true_negatives"), tn)
    agree(table.expected("specificity", undefined=0.0), sk.recall_score(truth, said, pos_label=0, sample_weight=weight))
    agree(
        table.expected("negative_predictive_value", undefined=0.0),
        sk.precision_score(truth, said, pos_label=0, sample_weight=weight, zero_division=0),
    )
    agree(table.expected("false_positive_rate"), fp / (fp + tn))
    agree(table.expected("false_negative_rate"), fn / (fn + tp))
    agree(table.expected("informedness"), tp / (tp + fn) + tn / (tn + fp) - 1)
    agree(table.expected("prevalence"), (tp + fn) / (tp + fp + fn + tn))
    agree(table.expected("predicted_rate"), (tp + fp) / (tp + fp + fn + tn))
    agree(table.expected("support"), tp + fn)


def test_decisions_of_samples(table: Table) -> None:
    agree(table.expected("hamming_loss"), sk.hamming_loss(table.truth, table.said, sample_weight=table.weight))
    loss = sk.zero_one_loss(table.truth, table.said, sample_weight=table.weight)
    agree(table.expected("subset_accuracy"), 1 - loss)


def test_probabilities(table: Table) -> None:
    truth, p, weight = table.truth.reshape(-1), table.score.reshape(-1), table.cell_weight
    agree(table.expected("log_loss", eps="dtype"), sk.log_loss(truth, p, sample_weight=weight))
    agree(table.expected("brier_score"), sk.brier_score_loss(truth, p, sample_weight=weight))
    logits = np.random.default_rng(1).normal(size=table.score.shape) * 3
    frame = long(table.truth, logits, table.weight)
    p = 1 / (1 + np.exp(-logits.reshape(-1)))
    agree(expected("log_loss", frame, {"logits": True}, table.roles), sk.log_loss(truth, p, sample_weight=weight))
    agree(
        expected("brier_score", frame, {"logits": True}, table.roles),
        sk.brier_score_loss(truth, p, sample_weight=weight),
    )


def test_multiclass_log_loss(table: Table) -> None:
    p = (table.score + 0.1) / (table.score + 0.1).sum(axis=1, keepdims=True)
    classes = np.arange(table.samples) % table.labels
    frame = long(np.eye(table.labels, dtype=int)[classes], p, table.weight)
    value = sk.log_loss(classes, p, sample_weight=table.weight, labels=range(table.labels))
    agree(expected("multiclass_log_loss", frame, {}, table.roles), value)


@pytest.mark.parametrize("average", AVERAGES)
def test_argmax(average: str) -> None:
    rng = np.random.default_rng(5)
    classes, score = rng.integers(0, 4, 30), rng.random((30, 4))
    frame = long(np.eye(4, dtype=int)[classes], score)
    said = np.eye(4, dtype=int)[score.argmax(axis=1)]
    value = sk.f1_score(np.eye(4, dtype=int)[classes], said, average=average, zero_division=0)
    agree(expected("f1", frame, {"threshold": "argmax", "average": average, "undefined": 0.0}), value)
    right = sk.accuracy_score(classes, score.argmax(axis=1))
    agree(expected("subset_accuracy", frame, {"threshold": "argmax"}), right)
    agree(expected("f1", frame, {"threshold": "argmax"}), right)


@pytest.mark.parametrize("average", AVERAGES)
def test_separation(table: Table, average: str) -> None:
    """scikit-learn on whole tables where no unit has one class only."""
    truth = table.truth.copy()
    truth[:, 0] = np.arange(table.samples) % 2
    truth[:, 1] = 1 - truth[:, 0]
    frame = long(truth, table.score, table.weight)
    for name, theirs in (("roc_auc", sk.roc_auc_score), ("average_precision", sk.average_precision_score)):
        value = theirs(truth, table.score, average=average, sample_weight=table.weight)
        agree(expected(name, frame, {"average": average}, table.roles), value)


def test_separation_of_one_class() -> None:
    frame = long([[0, 1], [0, 1]], [[0.2, 0.3], [0.4, 0.1]])
    assert expected_units("roc_auc", frame) == {"A": None, "B": None}
    assert expected_units("average_precision", frame) == {"A": None, "B": 1.0}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "No positive class found", UserWarning)
        value = sk.average_precision_score([[0, 1], [0, 1]], [[0.2, 0.3], [0.4, 0.1]], average="macro")
    agree(expected("average_precision", frame, {"average": "macro", "undefined": 0.0}), value)


def test_rankings(table: Table) -> None:
    truth, score, weight = table.truth, table.score, table.weight
    coverage = sk.coverage_error(truth, score, sample_weight=weight)
    agree(table.expected("coverage_error", undefined=0.0), coverage)
    loss = sk.label_ranking_loss(truth, score, sample_weight=weight)
    agree(table.expected("ranking_loss", undefined=0.0), loss)
    precision = sk.label_ranking_average_precision_score(truth, score, sample_weight=weight)
    agree(table.expected("label_ranking_average_precision", undefined=1.0), precision)


def test_regression(table: Table) -> None:
    truth = np.random.default_rng(2).normal(size=table.score.shape)
    frame = long(truth, table.score, table.weight)
    pooled = sk.root_mean_squared_error(truth.reshape(-1), table.score.reshape(-1), sample_weight=table.cell_weight)
    agree(expected("rmse", frame, {}, table.roles), pooled)
    each = sk.root_mean_squared_error(truth, table.score, sample_weight=table.weight)
    agree(expected("rmse", frame, {"average": "macro"}, table.roles), each)
    agree(expected("rmse", frame, {"average": "weighted"}, table.roles), each)


def test_classification_accuracy() -> None:
    frame = pl.DataFrame(
        {
            "sample": [1, 1, 2, 2],
            "score": ["x", "y", "x", "z"],
            "truth": ["x", "z", "x", "z"],
            "weight": [1.0, 1.0, 2.0, 2.0],
        }
    )
    weighted = {"weight": "weight"}
    agree(expected("classification_accuracy", frame), sk.accuracy_score(frame["truth"], frame["score"]))
    value = sk.accuracy_score(frame["truth"], frame["score"], sample_weight=frame["weight"])
    agree(expected("classification_accuracy", frame, {}, weighted), value)
    assert expected("global_accuracy", frame) == 0.5
    agree(expected("global_accuracy", frame, {}, weighted), 2 / 3)


# --- worked by hand -------------------------------------------------------------------------------------------------

ONE_SAMPLE = long([[1, 0, 1, 0]], [[0.5, 0.5, 0.2, 0.1]])


@pytest.mark.parametrize(
    ("name", "params", "value"),
    [
        ("one_error", {}, 0.5),
        ("coverage_error", {}, 3),
        ("coverage_error", {"base": 0}, 2),
        ("ranking_loss", {}, 1 / 2),
        ("ranking_loss", {"ties": "half"}, 3 / 8),
        ("ranking_loss", {"ties": "right"}, 1 / 4),
        ("ranking_loss", {"ties": "right", "pairs": "all"}, 1 / 6),
        ("label_ranking_average_precision", {}, (1 / 2 + 2 / 3) / 2),
        ("exact_match_prefix", {}, 0),
        ("labelwise_precision", {}, 0),
        ("subset_accuracy", {"threshold": "argmax"}, 0),
        ("true_positives", {"threshold": "argmax"}, 0.5),
        ("false_negatives", {"threshold": "argmax"}, 1.5),
        ("true_negatives", {"threshold": "argmax"}, 1.5),
        ("precision", {"inclusive": True}, 0.5),
        ("precision", {}, None),
        ("precision", {"undefined": 0.0}, 0),
        ("multiclass_log_loss", {}, math.nan),
        ("multilabel_cross_entropy", {"base": 2, "negatives": False}, 1 + math.log2(5)),
    ],
)
def test_one_sample(name: str, params: dict[str, Any], value: float | None) -> None:
    assert same(expected(name, ONE_SAMPLE, params), value, AGREE)


@pytest.mark.parametrize(
    ("norm", "value"),
    [
        ("l1", 0.25 * 0.5 + 0.5 * 0.275),
        ("l2", math.sqrt(0.25 * 0.5**2 + 0.5 * 0.275**2)),
        ("max", 0.5),
    ],
)
def test_calibration_error(norm: str, value: float) -> None:
    """Four bins: 0.5 (gap 0.5) begins the third, 0.25 and 0.30 (gap 0.275) are in the second, 1 (gap 0) in the last."""
    frame = pl.DataFrame({"score": [0.5, 0.25, 0.30, 1.0], "truth": [1, 0, 0, 1]})
    agree(expected("calibration_error", frame, {"bins": 4, "norm": norm}), value)


def test_labelwise_precision() -> None:
    """A is above every false label once in two, B never, C has no false label beside it, D is never true."""
    truth = [[1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0]]
    score = [[0.9, 0.1, 0.5, 0.2], [0.5, 0.5, 0.1, 0.1], [0.1, 0.2, 0.9, 0.3]]
    frame = long(truth, score)
    assert expected_units("labelwise_precision", frame) == {"A": 0.5, "B": 0.0, "C": 1.0, "D": None}
    assert expected("labelwise_precision", frame) == 0.5
    assert expected("labelwise_precision", frame, {"average": "min"}) == 0.0


# --- the rules of the oracle ----------------------------------------------------------------------------------------

RULES = pl.DataFrame(
    {
        "sample": [1, 1, 1, 2, 2, 2, 3, None],
        "label": ["a", "b", "c", "a", "b", "c", "a", "a"],
        "score": [0.9, 0.2, 0.7, 0.8, 0.6, None, 0.1, 0.9],
        "truth": [1, 0, 0, 0, 1, 1, 1, 1],
        "weight": [1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 4.0, 1.0],
    }
)


@pytest.mark.parametrize(
    ("params", "value"),
    [
        ({}, 3 / 5),
        ({"average": "macro"}, (2 / 3 + 1 + 0) / 3),
        ({"average": "weighted"}, (3 * 2 / 3 + 1 * 1 + 0 * 0) / 4),
        ({"average": "samples"}, (1 / 2 + 1 / 2) / 2),
        ({"average": "min"}, 0.0),
        ({"average": "max"}, 1.0),
        ({"average": {"a": 1, "b": 3}}, (2 / 3 + 3 * 1) / 4),
        ({"labels": ["b", "d"], "average": "macro"}, 1.0),
        ({"labels": ["b", "d"], "average": "macro", "undefined": 0.0}, 0.5),
        ({"labels": ["b", "d"], "average": "weighted", "undefined": 0.0}, 1.0),
        ({"labels": ["b", "d"], "average": {"b": 1, "d": 3}, "undefined": 0.0}, 0.25),
        ({"average": {"b": 1, "d": 3}, "undefined": 0.0}, 1.0),
        ({"labels": ["d"], "average": "macro"}, None),
    ],
)
def test_averages_of_precision(params: dict[str, Any], value: float | None) -> None:
    """Predicted: a in 1, 2 and the sample without a key, b in 2, c in 1. Right: a in 1, b in 2, and the last."""
    assert same(expected("precision", RULES, params), value, AGREE)


def test_counts() -> None:
    counts = expected_counts("precision", RULES, {"average": "samples"}, {"weight": "weight"})
    assert counts == {"n_rows": 6, "n_samples": 3, "n_excluded": 2, "support": 7.0, "n_undefined": 1}
    assert expected("n_rows", RULES) == 7
    assert expected("n_samples", RULES) == 3
    assert expected("n_excluded", RULES) == 1


@pytest.mark.parametrize("average", ["micro", "macro", "weighted", "samples", "min", "max"])
def test_a_broken_row_breaks_its_unit_and_every_average(average: str) -> None:
    for broken in (
        RULES.with_columns(score=pl.when(pl.col("score") == 0.2).then(math.nan).otherwise("score")),
        RULES.with_columns(truth=pl.when(pl.col("score") == 0.2).then(2).otherwise("truth")),
        RULES.with_columns(weight=pl.when(pl.col("score") == 0.2).then(-1.0).otherwise("weight")),
    ):
        value = expected("f1", broken, {"average": average, "undefined": 0.0}, {"weight": "weight"})
        assert value is not None
        assert math.isnan(value)
        assert expected("f1", broken, {"average": {"a": 1.0}}, {"weight": "weight"}) == pytest.approx(2 / (2 + 6 / 2))


def test_a_threshold_is_rounded_to_the_type_of_the_score() -> None:
    frame = pl.DataFrame({"score": [0.7], "truth": [1]})
    narrow = frame.with_columns(pl.col("score").cast(pl.Float32))
    for table in (frame, narrow):
        assert expected("recall", table, {"threshold": 0.7}) == 0
        assert expected("recall", table, {"threshold": 0.7, "inclusive": True}) == 1


@pytest.mark.parametrize(
    ("threshold", "value"),
    [
        ({"a": 0.85, None: 0.5}, 3 / 4),  # a of sample 2 is not predicted any more
        ({"a": 0.85}, None),  # nobody knows of b
        (pl.col("weight") / 3, 2 / 4),  # 2/3 in sample 2: b is not predicted any more
        (pl.lit(0.5), 3 / 5),
    ],
)
def test_thresholds(threshold: Any, value: float | None) -> None:
    assert same(expected("precision", RULES, {"threshold": threshold}), value, AGREE)


def test_every_declared_metric_has_a_reference() -> None:
    for name in DECLARED:
        assert callable(getattr(references, name))
