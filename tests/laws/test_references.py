"""The references of decisions, probabilities, rankings and separation against scikit-learn."""

import math
import warnings
from typing import Any

import numpy as np
import polars as pl
import pytest
import sklearn.metrics as sk
from scipy import stats

from tests.laws import references
from tests.laws.agreement import AVERAGES, EvenTable, Table, agree, several
from tests.laws.oracle import expected, expected_units
from tests.support.readings import long

SEVERAL = several(8, quick=2)


@pytest.fixture(params=SEVERAL, ids=str)
def table(request: pytest.FixtureRequest) -> Table:
    return Table(*request.param)


@pytest.fixture(params=SEVERAL, ids=str)
def even(request: pytest.FixtureRequest) -> Table:
    return EvenTable(*request.param)


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
    (truth, _, weight), said = table.cells, table.said.reshape(-1)
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


def test_hinge_loss(table: Table) -> None:
    table.score = 4 * table.score - 2
    truth, margin, weight = table.cells
    agree(table.expected("hinge_loss"), sk.hinge_loss(truth, margin, sample_weight=weight))


def test_decisions_of_samples(table: Table) -> None:
    agree(table.expected("hamming_loss"), sk.hamming_loss(table.truth, table.said, sample_weight=table.weight))
    loss = sk.zero_one_loss(table.truth, table.said, sample_weight=table.weight)
    agree(table.expected("subset_accuracy"), 1 - loss)


def test_probabilities(table: Table) -> None:
    truth, p, weight = table.cells
    agree(table.expected("log_loss", eps="dtype"), sk.log_loss(truth, p, sample_weight=weight))
    agree(table.expected("brier_score"), sk.brier_score_loss(truth, p, sample_weight=weight))
    table.score = np.random.default_rng(1).normal(size=table.score.shape) * 3
    p = 1 / (1 + np.exp(-table.score.reshape(-1)))
    agree(table.expected("log_loss", logits=True), sk.log_loss(truth, p, sample_weight=weight))
    agree(table.expected("brier_score", logits=True), sk.brier_score_loss(truth, p, sample_weight=weight))


def test_probabilities_of_classes(table: Table) -> None:
    given = {"sample_weight": table.weight, "labels": range(table.labels)}
    classes, p = table.of_classes(), table.as_shares()
    agree(table.expected("multiclass_log_loss"), sk.log_loss(classes, p, **given))
    agree(table.expected("multiclass_brier_score"), sk.brier_score_loss(classes, p, scale_by_half=False, **given))


def test_calibration_of_the_whole(table: Table) -> None:
    truth, p, weight = table.cells
    mean_p, mean_t = np.average(p, weights=weight), np.average(truth, weights=weight)
    agree(table.expected("calibration_bias"), mean_p - mean_t)
    agree(table.expected("calibration_ratio"), mean_p / mean_t)
    loss = sk.log_loss(truth, p, sample_weight=weight) / stats.entropy([mean_t, 1 - mean_t])
    agree(table.expected("normalized_entropy", eps="dtype"), loss)
    agree(table.expected("d2_log_loss", eps="dtype"), sk.d2_log_loss_score(truth, p, sample_weight=weight))
    agree(table.expected("d2_brier"), sk.d2_brier_score(truth, p, sample_weight=weight))
    agree(table.expected("brier_uncertainty"), np.average((truth - mean_t) ** 2, weights=weight))
    # Whoever always says how often it is true knows nothing more.
    agree(expected("normalized_entropy", table.frame.with_columns(score=pl.lit(mean_t)), {}, table.roles), 1.0)


def test_the_parts_of_a_brier_score_are_the_score_where_bins_hold_one_probability(table: Table) -> None:
    table.score = np.floor(table.score * 8).clip(0, 7) * 0.125 + 0.0625
    binned = (table.expected(f"brier_{part}", bins=8) for part in ("reliability", "resolution"))
    reliability, resolution, uncertainty = (float(part or 0) for part in (*binned, table.expected("brier_uncertainty")))
    agree(table.expected("brier_score"), reliability - resolution + uncertainty)


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
def test_separation(even: Table, average: str) -> None:
    given = {"average": average, "sample_weight": even.weight}
    area = sk.roc_auc_score(even.truth, even.score, **given)
    agree(even.expected("roc_auc", average=average), area)
    agree(even.expected("gini", average=average), 2 * area - 1)
    precision = sk.average_precision_score(even.truth, even.score, **given)
    agree(even.expected("average_precision", average=average), precision)


@pytest.mark.parametrize("max_fpr", [0.05, 0.3, 0.5, 0.75, 1.0])
def test_area_up_to_a_false_positive_rate(table: Table, max_fpr: float) -> None:
    truth, score, weight = table.cells
    value = sk.roc_auc_score(truth, score, sample_weight=weight, max_fpr=max_fpr)
    agree(table.expected("roc_auc", max_fpr=max_fpr), value)


@pytest.mark.parametrize("bound", [0.0, 0.2, 0.4, 0.5, 0.75, 1.0])
def test_points_of_curves(table: Table, bound: float) -> None:
    """The best of scikit-learn's points that keep to a bound."""
    truth, score, weight = table.cells
    precision, recall, _ = sk.precision_recall_curve(truth, score, sample_weight=weight)
    precision, recall = precision[:-1], recall[:-1]  # the last point is at no threshold
    low, high = bound - 1e-12, bound + 1e-12
    agree(table.expected("recall_at_precision", p=bound), recall[precision >= low].max(initial=0.0))
    agree(table.expected("precision_at_recall", r=bound), precision[recall >= low].max())
    fpr, tpr, _ = sk.roc_curve(truth, score, sample_weight=weight, drop_intermediate=False)
    agree(table.expected("recall_at_fpr", f=bound), tpr[fpr <= high].max())
    agree(table.expected("ks"), np.abs(tpr - fpr).max())
    if weight is None:
        agree(table.expected("ks"), stats.ks_2samp(score[truth == 1], score[truth == 0]).statistic)


def test_bins_tie_what_is_in_one_cell() -> None:
    """Two cells of the logit are p < 1/2 and the rest; three of the float grid have 0 in the middle one."""
    frame = pl.DataFrame({"score": [0.1, 0.3, 0.5, 0.9], "truth": [1, 0, 1, 0]})
    assert expected("roc_auc", frame) == 0.25
    assert expected("roc_auc", frame, {"bins": 2}) == 0.5
    assert expected("roc_auc", frame, {"bins": 1}) == 0.5
    wide = frame.with_columns(score=pl.Series([-1000.0, -1e-7, 1e-7, 1000.0]))
    assert expected("roc_auc", wide, {"bins": 3, "grid": "float"}) == (0 + 0.5 + 0 + 0) / 4
    assert math.isnan(expected("roc_auc", wide, {"bins": 3}) or 0)


@pytest.mark.parametrize("bins", [1, 2, 7, 32, 64, 4096])
@pytest.mark.parametrize("grid", ["logit", "float"])
def test_bins_miss_by_no_more_than_half_of_their_ties(table: Table, grid: str, bins: int) -> None:
    """|error| <= Σ p_b·n_b / (2·P·N) over the cells, of positives and negatives by weight."""
    cell = {"logit": references.logit_cell, "float": references.float_cell}[grid]
    truth, score, weight = table.cells
    weight = np.ones(truth.size) if weight is None else weight
    cells = np.array([cell(s, bins) for s in score])
    ties = sum(
        weight[(cells == one) & (truth == 1)].sum() * weight[(cells == one) & (truth == 0)].sum() for one in set(cells)
    )
    bound = ties / (2 * weight[truth == 1].sum() * weight[truth == 0].sum())
    exact, binned = table.expected("roc_auc"), table.expected("roc_auc", bins=bins, grid=grid)
    assert exact is not None
    assert binned is not None
    assert abs(exact - binned) <= bound + 1e-12  # sums are rounded


@pytest.mark.parametrize(
    ("p", "cell"), [(0.0, 0), (5e-324, 0), (0.5, 32), (0.4999999, 31), (1 / (1 + math.exp(-1.1)), 34), (1.0, 63)]
)
def test_cell_of_a_probability(p: float, cell: int) -> None:
    """64 cells, each half a unit of the logit wide."""
    assert references.logit_cell(p, 64) == cell


@pytest.mark.parametrize(
    ("score", "cell"),
    [(-math.inf, 0), (0.0, 40), (-0.0, 40), (-1e-9, 39), (1.0, 56), (-1.0, 23), (2.0**30, 79), (math.inf, 79)],
)
def test_cell_of_any_number(score: float, cell: int) -> None:
    """80 cells, each one unit of log2(1 + 2^16 |s|) wide: of 1 it is a little over 16."""
    assert references.float_cell(score, 80) == cell


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


@pytest.mark.parametrize("k", [None, 1, 2, 3, 9])
@pytest.mark.parametrize("ties", ["average", "ignore"])
def test_gains(table: Table, ties: str, k: int | None) -> None:
    """A sample without any gain is 0 to scikit-learn; its order of ties, where it ignores them, is of no rule."""
    grades = table.truth = table.truth * np.random.default_rng(table.samples).integers(0, 4, table.truth.shape)
    score = table.score - np.arange(table.labels) * 1e-9 if ties == "ignore" else table.score
    theirs = {"k": k, "ignore_ties": ties == "ignore", "sample_weight": table.weight}
    agree(table.expected("dcg", k=k, ties=ties), sk.dcg_score(grades, score, **theirs))
    agree(table.expected("ndcg", k=k, ties=ties, undefined=0.0), sk.ndcg_score(grades, score, **theirs))
    exponential = table.expected("dcg", k=k, ties=ties, gain="exponential")
    agree(exponential, sk.dcg_score(2.0**grades - 1, score, **theirs))


@pytest.mark.parametrize("k", [1, 2, 3])
def test_top_k_accuracy(k: int) -> None:
    """Without ties; scikit-learn prefers the later of tied classes, here each has its fraction."""
    rng = np.random.default_rng(k)
    classes, score, weight = rng.integers(0, 5, 20), rng.random((20, 5)), rng.choice([0.5, 1.0, 3.0], 20)
    frame = long(np.eye(5, dtype=int)[classes], score, weight)
    value = sk.top_k_accuracy_score(classes, score, k=k, sample_weight=weight, labels=range(5))
    agree(expected("top_k_accuracy", frame, {"k": k}, {"weight": "weight"}), value)


def test_regression_is_weighted_by_its_rows(table: Table) -> None:
    table.truth = np.random.default_rng(2).normal(size=table.score.shape)
    each = sk.root_mean_squared_error(table.truth, table.score, sample_weight=table.weight)
    agree(table.expected("rmse", average="weighted"), each)


def test_classification_accuracy() -> None:
    answers = {"score": ["x", "y", "x", "z"], "truth": ["x", "z", "x", "z"], "weight": [1.0, 1.0, 2.0, 2.0]}
    frame = pl.DataFrame({"sample": [1, 1, 2, 2], **answers})
    weighted = {"weight": "weight"}
    agree(expected("classification_accuracy", frame), sk.accuracy_score(frame["truth"], frame["score"]))
    value = sk.accuracy_score(frame["truth"], frame["score"], sample_weight=frame["weight"])
    agree(expected("classification_accuracy", frame, {}, weighted), value)
    assert expected("global_accuracy", frame) == 0.5
    agree(expected("global_accuracy", frame, {}, weighted), 2 / 3)
