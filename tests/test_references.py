"""The references against scikit-learn where the two mean the same, and against numbers worked by hand where not."""

import math
import warnings
from typing import Any

import numpy as np
import polars as pl
import pytest
import sklearn.metrics as sk
from scipy import stats

from tests import oracle, references
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


def test_multiclass_brier_score(table: Table) -> None:
    p = (table.score + 0.1) / (table.score + 0.1).sum(axis=1, keepdims=True)
    classes = np.arange(table.samples) % table.labels
    frame = long(np.eye(table.labels, dtype=int)[classes], p, table.weight)
    value = sk.brier_score_loss(classes, p, sample_weight=table.weight, labels=range(table.labels), scale_by_half=False)
    agree(expected("multiclass_brier_score", frame, {}, table.roles), value)


def test_calibration_of_the_whole(table: Table) -> None:
    truth, p, weight = table.truth.reshape(-1), table.score.reshape(-1), table.cell_weight
    mean_p, mean_t = np.average(p, weights=weight), np.average(truth, weights=weight)
    agree(table.expected("calibration_bias"), mean_p - mean_t)
    agree(table.expected("calibration_ratio"), mean_p / mean_t)
    loss = sk.log_loss(truth, p, sample_weight=weight) / stats.entropy([mean_t, 1 - mean_t])
    agree(table.expected("normalized_entropy", eps="dtype"), loss)
    # Whoever always says how often it is true knows nothing more.
    agree(expected("normalized_entropy", table.frame.with_columns(score=pl.lit(mean_t)), {}, table.roles), 1.0)


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


def two_classes(table: Table) -> Matrix:
    """The truth, changed so that no label and no sample has one class only."""
    truth = table.truth.copy()
    truth[:, 0] = np.arange(table.samples) % 2
    truth[:, 1] = 1 - truth[:, 0]
    return truth


@pytest.mark.parametrize("average", AVERAGES)
def test_separation(table: Table, average: str) -> None:
    """scikit-learn on whole tables where no unit has one class only."""
    truth = two_classes(table)
    frame = long(truth, table.score, table.weight)
    for name, theirs in (("roc_auc", sk.roc_auc_score), ("average_precision", sk.average_precision_score)):
        value = theirs(truth, table.score, average=average, sample_weight=table.weight)
        agree(expected(name, frame, {"average": average}, table.roles), value)
    area = sk.roc_auc_score(truth, table.score, average=average, sample_weight=table.weight)
    agree(expected("gini", frame, {"average": average}, table.roles), 2 * area - 1)


@pytest.mark.parametrize("max_fpr", [0.05, 0.3, 0.5, 0.75, 1.0])
def test_area_up_to_a_false_positive_rate(table: Table, max_fpr: float) -> None:
    truth, score, weight = table.truth.reshape(-1), table.score.reshape(-1), table.cell_weight
    value = sk.roc_auc_score(truth, score, sample_weight=weight, max_fpr=max_fpr)
    agree(table.expected("roc_auc", max_fpr=max_fpr), value)


@pytest.mark.parametrize("bound", [0.0, 0.2, 0.4, 0.5, 0.75, 1.0])
def test_points_of_curves(table: Table, bound: float) -> None:
    """The best of scikit-learn's points that keep to a bound."""
    truth, score, weight = table.truth.reshape(-1), table.score.reshape(-1), table.cell_weight
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


def test_curve_by_hand() -> None:
    """Four scores, of which the second holds a true and a false row; weights 1 and 2."""
    frame = pl.DataFrame({
        "score": [0.9, 0.6, 0.6, 0.3, 0.1], "truth": [0, 1, 0, 1, 0], "weight": [1.0, 2.0, 1.0, 1.0, 1.0],
    })  # fmt: skip

    def of(name: str, **params: Any) -> float | None:
        return expected(name, frame, params, {"weight": "weight"})

    # Points (recall, FPR, precision): (0, 0, -), (0, 1/3, 0), (2/3, 2/3, 1/2), (1, 2/3, 3/5), (1, 1, 1/2).
    assert of("ks") == pytest.approx(1 / 3)
    assert of("recall_at_precision", p=0.5) == 1.0
    assert of("recall_at_precision", p=0.61) == 0.0
    assert of("precision_at_recall", r=0.7) == 0.6
    assert of("precision_at_recall", r=0.0) == 0.6
    assert of("recall_at_fpr", f=0.66) == 0.0
    assert of("recall_at_fpr", f=2 / 3) == 1.0
    # The best third weighs 2: the first row, and 1 of the 3 at 0.6, of which 2/3 is true. Of all, 1/2 is true.
    assert of("lift_at", q=1 / 3) == pytest.approx((2 / 3 / 2) / (1 / 2))
    assert of("lift_at", q=1.0) == pytest.approx(1.0)
    assert expected("lift_at", frame.filter(truth=1), {"q": 0.5}) is None


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
    truth, score = table.truth.reshape(-1), table.score.reshape(-1)
    weight = np.ones(truth.size) if table.cell_weight is None else table.cell_weight
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
    ("p", "cell"),
    [(0.0, 0), (5e-324, 0), (0.5, 32), (0.4999999, 31), (1 / (1 + math.exp(-1.1)), 34), (1.0, 63)],
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
    grades = table.truth * np.random.default_rng(table.samples).integers(0, 4, table.truth.shape)
    frame = long(grades, table.score, table.weight)
    score = table.score - np.arange(table.labels) * 1e-9 if ties == "ignore" else table.score
    params, theirs = {"k": k, "ties": ties}, {"k": k, "ignore_ties": ties == "ignore", "sample_weight": table.weight}
    agree(expected("dcg", frame, params, table.roles), sk.dcg_score(grades, score, **theirs))
    agree(expected("ndcg", frame, {**params, "undefined": 0.0}, table.roles), sk.ndcg_score(grades, score, **theirs))
    exponential = {**params, "gain": "exponential"}
    agree(expected("dcg", frame, exponential, table.roles), sk.dcg_score(2.0**grades - 1, score, **theirs))


@pytest.mark.parametrize("k", [1, 2, 3])
def test_top_k_accuracy(k: int) -> None:
    """Without ties; scikit-learn prefers the later of tied classes, here each has its fraction."""
    rng = np.random.default_rng(k)
    classes, score, weight = rng.integers(0, 5, 20), rng.random((20, 5)), rng.choice([0.5, 1.0, 3.0], 20)
    frame = long(np.eye(5, dtype=int)[classes], score, weight)
    value = sk.top_k_accuracy_score(classes, score, k=k, sample_weight=weight, labels=range(5))
    agree(expected("top_k_accuracy", frame, {"k": k}, {"weight": "weight"}), value)


OF_NUMBERS = {
    "mse": sk.mean_squared_error,
    "mae": sk.mean_absolute_error,
    "rmse": sk.root_mean_squared_error,
    "mape": sk.mean_absolute_percentage_error,
    "r2": sk.r2_score,
    "explained_variance": sk.explained_variance_score,
    "median_absolute_error": sk.median_absolute_error,
}


@pytest.mark.parametrize("average", ["micro", "macro"])
@pytest.mark.parametrize("name", OF_NUMBERS)
def test_of_numbers(table: Table, name: str, average: str) -> None:
    truth = np.random.default_rng(2).normal(size=table.score.shape).round(1)
    frame = long(truth, table.score, table.weight)
    if average == "macro":  # scikit-learn's outputs are our labels
        value = OF_NUMBERS[name](truth, table.score, sample_weight=table.weight)
    else:
        value = OF_NUMBERS[name](truth.reshape(-1), table.score.reshape(-1), sample_weight=table.cell_weight)
    agree(expected(name, frame, {"average": average}, table.roles), value)


def test_of_numbers_of_other_names(table: Table) -> None:
    truth, score, weight = (
        np.random.default_rng(3).normal(size=table.score.size),
        table.score.reshape(-1),
        table.cell_weight,
    )
    frame = long(truth.reshape(table.score.shape), table.score, table.weight)

    def ours(name: str, **params: Any) -> float | None:
        return expected(name, frame, params, table.roles)

    agree(ours("max_error"), sk.max_error(truth, score))
    agree(ours("bias"), np.average(score - truth, weights=weight))
    agree(ours("relative_squared_error"), 1 - sk.r2_score(truth, score, sample_weight=weight))
    apart = np.abs(truth - np.average(truth, weights=weight))
    agree(
        ours("relative_absolute_error"),
        np.average(np.abs(truth - score), weights=weight) / np.average(apart, weights=weight),
    )
    agree(ours("smape"), np.average(2 * np.abs(score - truth) / (np.abs(score) + np.abs(truth)), weights=weight))
    for alpha in (0.0, 0.3, 1.0):
        agree(ours("pinball", alpha=alpha), sk.mean_pinball_loss(truth, score, sample_weight=weight, alpha=alpha))
    agree(ours("huber", delta=100.0), sk.mean_squared_error(truth, score, sample_weight=weight) / 2)
    agree(ours("huber", delta=1e-9), 1e-9 * (sk.mean_absolute_error(truth, score, sample_weight=weight) - 1e-9 / 2))
    covariance = np.cov(score, truth, aweights=weight)
    agree(ours("pearson"), covariance[0, 1] / math.sqrt(covariance[0, 0] * covariance[1, 1]))
    if weight is None:
        agree(ours("pearson"), stats.pearsonr(score, truth).statistic)
        agree(ours("spearman"), stats.spearmanr(score, truth).statistic)


def test_of_numbers_above_0(table: Table) -> None:
    truth, score = np.random.default_rng(4).choice([0.5, 1.0, 2.5], table.score.shape), table.score + 0.25
    counts = truth - 0.5

    def cells(matrix: Matrix) -> Matrix:
        return matrix.reshape(-1)

    frame, of_counts = long(truth, score, table.weight), long(counts, score, table.weight)
    weight = {"sample_weight": table.cell_weight}
    agree(
        expected("gamma_deviance", frame, {}, table.roles), sk.mean_gamma_deviance(cells(truth), cells(score), **weight)
    )
    value = sk.mean_poisson_deviance(cells(counts), cells(score), **weight)
    agree(expected("poisson_deviance", of_counts, {}, table.roles), value)
    agree(expected("msle", frame, {}, table.roles), sk.mean_squared_log_error(cells(truth), cells(score), **weight))


def test_weights_of_places_are_repetitions() -> None:
    """Spearman and the median with whole weights are scipy's and numpy's of repeated rows."""
    rng = np.random.default_rng(6)
    score, truth, weight = rng.integers(0, 6, 30), rng.integers(0, 5, 30), rng.integers(0, 4, 30)
    frame = pl.DataFrame({"score": score, "truth": truth, "weight": weight})
    many = np.repeat(score, weight), np.repeat(truth, weight)
    agree(expected("spearman", frame, {}, {"weight": "weight"}), stats.spearmanr(*many).statistic)
    agree(expected("median_absolute_error", frame, {}, {"weight": "weight"}), np.median(np.abs(many[0] - many[1])))


@pytest.mark.parametrize("name", ["r2", "explained_variance", "pearson", "spearman", "relative_absolute_error", "bias"])
def test_numbers_far_from_0(name: str) -> None:
    """Moved by a billion, which whole numbers bear without rounding, they are what they were."""
    rng = np.random.default_rng(8)
    columns = {
        "score": rng.integers(0, 9, 20) / 8,
        "truth": rng.integers(0, 9, 20) / 8,
        "weight": rng.integers(1, 4, 20),
    }
    near = pl.DataFrame(columns)
    far = near.with_columns(pl.col("score", "truth") + 1e9)
    for roles in ({}, {"weight": "weight"}):
        assert expected(name, far, {}, roles) == expected(name, near, {}, roles)


def test_constant_numbers_explain_nothing() -> None:
    """Where only rows without weight differ, too."""
    frame = pl.DataFrame({"score": [0.1, 0.2, 0.3, 0.7], "truth": [0.1, 0.1, 0.1, 5.0], "weight": [1.0, 0.1, 0.7, 0.0]})
    turned = frame.rename({"score": "truth", "truth": "score"})
    of_truth = ["r2", "explained_variance", "relative_squared_error", "relative_absolute_error"]
    for name in (*of_truth, "pearson", "spearman"):
        assert expected(name, frame, {}, {"weight": "weight"}) is None
        assert (expected(name, turned, {}, {"weight": "weight"}) is None) == (name not in of_truth)
    agree(expected("max_error", frame, {}, {"weight": "weight"}), 0.2)


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
    ("truth", "score", "name", "params", "value"),
    [  # what scikit-learn gives is told with each number
        ([1, 0, 1, 0], [0.5, 0.5, 0.2, 0.1], "ndcg", {}, 0.806574),
        ([1, 0, 1, 0], [0.5, 0.5, 0.2, 0.1], "ndcg", {"ties": "ignore"}, 0.919721),
        ([1, 0, 1, 0], [0.5, 0.5, 0.2, 0.1], "dcg", {}, 1.315465),
        ([1, 0, 1, 0], [0.5, 0.5, 0.2, 0.1], "ndcg", {"k": 2}, 0.5),
        ([0, 1, 0, 0], [0.3, 0.3, 0.3, 0.1], "ndcg", {}, 0.710310),
        ([0, 1, 0, 0], [0.3, 0.3, 0.3, 0.1], "ndcg", {"k": 2}, 0.543643),
        ([0, 0, 0, 0], [0.4, 0.3, 0.2, 0.1], "ndcg", {"undefined": 0.0}, 0),
        ([1, 1, 1, 1], [0.4, 0.3, 0.2, 0.1], "ndcg", {}, 1),
    ],
)
def test_gains_of_one_sample(
    truth: list[int], score: list[float], name: str, params: dict[str, Any], value: float
) -> None:
    found = expected(name, long([truth], [score]), params)
    assert same(found, value, 1e-6), found  # six digits are printed


LISTED = long([[1, 0, 1, 1, 0, 1]], [[0.9, 0.8, 0.7, 0.4, 0.3, 0.2]])  # true at 1, 3, 4, 6
TIED = long([[0, 1, 1, 0, 1]], [[0.9, 0.5, 0.5, 0.5, 0.1]])
MISSED = long([[0, 1, 1, 0, 1]], [[0.9, 0.5, -math.inf, -math.inf, -math.inf]])  # three were not returned
LATE = long([[0, 0, 1, 0]], [[0.9, 0.8, -math.inf, -math.inf]])
NOTHING = long([[0, 0]], [[0.4, 0.3]])


@pytest.mark.parametrize(
    ("frame", "name", "params", "value"),
    [
        (LISTED, "precision_at", {"k": 3}, 2 / 3),
        (LISTED, "precision_at", {"k": 10}, 4 / 10),
        (LISTED, "recall_at", {"k": 3}, 2 / 4),
        (LISTED, "hit_at", {"k": 1}, 1),
        (LISTED, "f1_at", {"k": 3}, 2 * (2 / 3) * (1 / 2) / (2 / 3 + 1 / 2)),
        (LISTED, "r_precision", {}, 3 / 4),
        (LISTED, "reciprocal_rank", {}, 1),
        (LISTED, "average_precision_at", {"k": 3}, (1 + 2 / 3) / 3),
        (LISTED, "average_precision_at", {"k": 3, "denominator": "positives"}, (1 + 2 / 3) / 4),
        (LISTED, "average_precision_at", {}, (1 + 2 / 3 + 3 / 4 + 4 / 6) / 4),
        (LISTED, "ndcg", {"k": 3}, (1 + 1 / 2) / (1 + 1 / math.log2(3) + 1 / 2)),
        # One of three tied labels is in, of which two are true.
        (TIED, "precision_at", {"k": 2}, (2 / 3) / 2),
        (TIED, "recall_at", {"k": 2}, (2 / 3) / 3),
        (TIED, "hit_at", {"k": 2}, 1 / 3),
        (TIED, "f1_at", {"k": 2}, 2 * (2 / 3) / (2 + 3)),
        (TIED, "r_precision", {}, (4 / 3) / 3),
        (TIED, "reciprocal_rank", {}, 1 / 3),
        (TIED, "reciprocal_rank", {"k": 2}, 0),
        (TIED, "average_precision_at", {"k": 2}, 2 * (1 / 3) * (2 / 4) / 2),
        (TIED, "average_precision_at", {}, (2 * 2 / 4 + 3 / 5) / 3),
        (TIED, "dcg", {"k": 2}, 2 / 3 / math.log2(3)),
        (TIED, "dcg", {"k": 2, "ties": "ignore"}, 1 / math.log2(3)),
        # What was not returned is no hit, but it is a positive.
        (MISSED, "precision_at", {"k": 5}, 1 / 5),
        (MISSED, "recall_at", {"k": 5}, 1 / 3),
        (MISSED, "r_precision", {}, 1 / 3),
        (MISSED, "average_precision_at", {}, (1 / 2) / 3),
        (MISSED, "label_ranking_average_precision", {}, (1 / 2 + 2 * 3 / 5) / 3),
        (MISSED, "ndcg", {}, (1 / math.log2(3)) / (1 + 1 / math.log2(3) + 1 / 2)),
        (MISSED, "ndcg", {"ties": "ignore"}, (1 / math.log2(3)) / (1 + 1 / math.log2(3) + 1 / 2)),
        (LATE, "reciprocal_rank", {}, 0),
        (LATE, "hit_at", {"k": 4}, 0),
        (LATE, "top_k_accuracy", {"k": 4}, 0),
        (LATE, "top_k_accuracy", {"k": 1, "undefined": 1.0}, 0),
        (TIED, "top_k_accuracy", {"k": 2}, math.nan),
        (NOTHING, "precision_at", {"k": 1}, 0),
        (NOTHING, "hit_at", {"k": 1}, 0),
        (NOTHING, "f1_at", {"k": 1}, 0),
        (NOTHING, "dcg", {}, 0),
        *((NOTHING, name, {}, None) for name in ("r_precision", "reciprocal_rank", "average_precision_at", "ndcg")),
        *((NOTHING, name, {"k": 1}, None) for name in ("recall_at", "top_k_accuracy")),
    ],
)
def test_returned_lists(frame: pl.DataFrame, name: str, params: dict[str, Any], value: float | None) -> None:
    found = expected(name, frame, params)
    assert same(found, value, AGREE), found


def test_tied_labels_stand_in_the_order_of_their_names() -> None:
    frame = pl.DataFrame({"label": ["c", "a", "b", "b", None], "score": 0.5, "truth": [3, 1, 0, 2, 9], "sample": 1})
    value = 1 + 2 / math.log2(3) + 0 / 2 + 3 / math.log2(5)
    agree(expected("dcg", frame, {"ties": "ignore"}), value)
    agree(expected("dcg", frame.reverse(), {"ties": "ignore"}), value)
    assert expected_counts("dcg", frame, {"ties": "ignore"})["n_excluded"] == 1
    assert expected_counts("dcg", frame)["n_excluded"] == 0


# Three examples and two targets with the classes 0 and 1, as Orange reports them.
TARGETS = [
    long([[1, 0], [0, 1], [1, 0]], [[0.9, 0.1], [0.6, 0.4], [1.0, 0.0]], [1.0, 2.0, 3.0]),
    long([[0, 1], [0, 1], [1, 0]], [[0.4, 0.6], [0.2, 0.8], [0.7, 0.3]], [1.0, 2.0, 3.0]),
]


@pytest.mark.parametrize(
    ("name", "roles", "value"),
    [
        ("multiclass_brier_score", {}, 0.22),
        ("information_score", {}, 0.3918909402870758),
        ("information_score", {"weight": "weight"}, 0.48244786822307983),
        ("multiclass_log_loss", {}, 0.3520492277584857),
    ],
)
def test_targets_of_orange(name: str, roles: dict[str, str], value: float) -> None:
    one, two = (expected(name, target, {}, roles) for target in TARGETS)
    assert one is not None
    assert two is not None
    agree((one + two) / 2, value)


@pytest.mark.parametrize(
    ("p", "prior", "value"),
    [
        (0.5, 0.5, 0.0), (0.0, 0.0, 0.0), (1.0, 1.0, 0.0),
        (1.0, 0.25, 2.0), (0.5, 0.25, 1.0), (0.25, 0.5, -math.log2(1.5)), (0.0, 0.5, -1.0),
        (0.5, 0.0, math.inf), (0.5, 1.0, -math.inf), (0.0, 1.0, -math.inf),
        (0.5, None, None), (0.5, 1.5, math.nan), (0.5, math.nan, math.nan),
    ],
)  # fmt: skip
def test_information_in_bits(p: float, prior: float | None, value: float | None) -> None:
    frame = pl.DataFrame({
        "sample": 1, "label": ["a", "b"], "score": [p, 0.5], "truth": [1, 0], "prior": [prior, None],
    }, schema_overrides={"prior": pl.Float64})  # fmt: skip
    for given in ("prior", pl.col("prior"), {"a": prior} if prior is not None else {"b": 0.5}):
        assert same(expected("information_score", frame, {"prior": given, "undefined": 7.0}), value)


def test_shares_of_labels_as_priors() -> None:
    """Of the true rows a has 3 of 4 by weight; a row without a label has no share, and a broken row breaks all."""
    frame = pl.DataFrame({
        "sample": [1, 1, 2, 2, 3], "label": ["a", "b", "a", "b", None], "score": [0.75, 0.9, 0.5, 0.5, 0.5],
        "truth": [1, 0, 0, 1, 1], "weight": [3.0, 3.0, 1.0, 1.0, 9.0],
    })  # fmt: skip
    roles = {"weight": "weight"}
    found = expected_units("information_score", frame, {}, roles, per="sample")
    assert found == {1: 0.0, 2: 1.0}
    broken = frame.with_columns(score=pl.when(pl.col("score") == 0.9).then(1.5).otherwise("score"))
    values = expected_units("information_score", broken, {}, roles, per="sample").values()
    assert [math.isnan(value or 0) for value in values] == [True, True]
    values = expected_units("information_score", broken, {"prior": {"a": 0.75, "b": 0.25}}, roles, per="sample")
    assert math.isnan(values[1] or 0)
    assert values[2] == 1.0
    lone = frame.with_columns(weight=pl.when(pl.col("truth") == 0).then(1.0).otherwise(0.0))
    assert expected("information_score", lone, {}, roles) is None  # shares of nothing
    assert expected("information_score", lone, {"undefined": 0.5}, roles) == 0.5


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


@pytest.mark.parametrize(
    ("kind", "fine", "broken"),
    [
        ("any", ["x", -5, math.inf], [math.nan]),
        ("real", [-math.inf, -5.0, 0.3], [math.nan]),
        ("probability", [0.0, 1.0, 0.3], [-0.1, 1.1, math.inf, math.nan]),
        ("logit", [-5.0, 800.0], [math.inf, -math.inf, math.nan]),
        ("binary", [0.0, 1.0, True], [0.5, -1.0, 2.0, math.nan]),
        ("soft", [0.0, 1.0, 0.5], [-0.1, 1.1, math.nan]),
        ("gain", [0.0, 2.5], [-0.1, math.inf, math.nan]),
        ("positive", [5e-324, 2.5], [0.0, -0.0, -1.0, math.nan]),
        ("above -1", [-0.999, 0.0, 3.0], [-1.0, -2.0, math.nan]),
    ],
)
def test_what_is_broken(kind: str, fine: list[Any], broken: list[float]) -> None:
    assert [value for value in fine if oracle.value_is_broken(value, kind)] == []
    assert [value for value in broken if not oracle.value_is_broken(value, kind)] == []


def test_kinds_have_a_rule() -> None:
    kinds = {kind for declared in DECLARED.values() for kind in (declared.score, declared.truth)}
    assert kinds | {"logit"} == oracle.MAY_BE.keys()


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
