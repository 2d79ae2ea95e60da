"""scikit-learn against the public names, by both readings: the same numbers, with `undefined=` where it has one."""

from typing import Any

import numpy as np
import polars as pl
import pytest
import sklearn.metrics as sk
from scipy import stats

import polars_mlmetrics as mlm
from tests.laws.agreement import OF_NUMBERS
from tests.support.readings import both, long, same

AGREE = 1e-12  # both sides sum a few dozen float64 numbers
AVERAGES = ("micro", "macro", "weighted", "samples")


def agree(ours: float | None, theirs: Any) -> None:
    assert same(ours, float(theirs), AGREE), f"{ours} is not {theirs}"


class Table:
    """A small random table with tied scores. With weights, or without."""

    def __init__(self, seed: int, weighted: bool) -> None:
        rng = np.random.default_rng(1000 + seed)
        shape = self.samples, self.labels = int(rng.integers(5, 12)), int(rng.integers(2, 6))
        self.truth = rng.integers(0, 2, shape)
        self.score = rng.choice([0.0, 0.1, 0.3, 0.5, 0.5, 0.6, 0.8, 1.0], shape)
        self.weight = rng.choice([0.5, 1.0, 2.0, 3.25], self.samples) if weighted else None
        self.arrange()

    def arrange(self) -> None:
        """A sample of no positive, one of positives only, and a label that nothing predicts."""
        self.truth[0], self.truth[1] = 0, 1
        self.score[:, 0] = np.minimum(self.score[:, 0], 0.5)

    def both(self, metric: mlm.Metric) -> float | None:
        return both(self.frame, metric, **({} if self.weight is None else {"weight": "weight"}))

    @property
    def frame(self) -> pl.DataFrame:
        return long(self.truth, self.score, self.weight)

    @property
    def said(self) -> np.ndarray[Any, Any]:
        return (self.score > 0.5).astype(int)

    @property
    def cells(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any] | None]:
        """Truths, scores and weights as flat lists, for scores that know nothing of labels."""
        weight = None if self.weight is None else np.repeat(self.weight, self.labels)
        return self.truth.reshape(-1), self.score.reshape(-1), weight


class EvenTable(Table):
    """Both classes in every label and in every sample: what scikit-learn needs for the area under a curve."""

    def arrange(self) -> None:
        self.truth[:, 0] = np.arange(self.samples) % 2
        self.truth[:, 1] = 1 - self.truth[:, 0]


CASES = [
    pytest.param((seed, weighted), marks=[pytest.mark.proof] if seed > 1 else [])
    for seed in range(4)
    for weighted in (False, True)
]


@pytest.fixture(params=CASES, ids=str)
def table(request: pytest.FixtureRequest) -> Table:
    return Table(*request.param)


@pytest.fixture(params=CASES, ids=str)
def even(request: pytest.FixtureRequest) -> Table:
    return EvenTable(*request.param)


@pytest.mark.parametrize("zero", [0.0, 1.0])
@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("name", ["precision", "recall", "f1", "jaccard"])
def test_decisions(table: Table, name: str, average: str, zero: float) -> None:
    theirs = getattr(sk, f"{name}_score")
    value = theirs(table.truth, table.said, average=average, sample_weight=table.weight, zero_division=zero)
    agree(table.both(mlm.CATALOGUE[name](average=average, undefined=zero)), value)


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("beta", [0.5, 2.0])
def test_fbeta(table: Table, beta: float, average: str) -> None:
    value = sk.fbeta_score(
        table.truth, table.said, beta=beta, average=average, sample_weight=table.weight, zero_division=0
    )
    agree(table.both(mlm.fbeta(beta=beta, average=average, undefined=0.0)), value)


@pytest.mark.parametrize(
    ("metric", "theirs"),
    [
        (mlm.accuracy(), sk.accuracy_score),
        (mlm.balanced_accuracy(), sk.balanced_accuracy_score),
        (mlm.mcc(undefined=0.0), sk.matthews_corrcoef),
        (mlm.cohen_kappa(undefined=0.0), sk.cohen_kappa_score),
    ],
)
def test_decisions_of_cells(table: Table, metric: mlm.Metric, theirs: Any) -> None:
    truth, _, weight = table.cells
    agree(table.both(metric), theirs(truth, table.said.reshape(-1), sample_weight=weight))


@pytest.mark.parametrize("said", [0.0, 1.0])
@pytest.mark.parametrize("name", ["mcc", "cohen_kappa"])
def test_one_answer_only(name: str, said: float) -> None:
    """A margin of 0 is undefined; scikit-learn says 0."""
    frame = pl.DataFrame({"score": [said] * 3, "truth": [1, 0, 1]})
    theirs = {"mcc": sk.matthews_corrcoef, "cohen_kappa": sk.cohen_kappa_score}[name]
    assert both(frame, mlm.CATALOGUE[name]()) is None
    agree(both(frame, mlm.CATALOGUE[name](undefined=0.0)), theirs(frame["truth"], frame["score"].cast(pl.Int64)))


def test_whole_samples(table: Table) -> None:
    agree(table.both(mlm.hamming_loss()), sk.hamming_loss(table.truth, table.said, sample_weight=table.weight))
    loss = sk.zero_one_loss(table.truth, table.said, sample_weight=table.weight)
    agree(table.both(1 - mlm.subset_accuracy()), loss)


def test_probabilities(table: Table) -> None:
    truth, p, weight = table.cells
    agree(table.both(mlm.log_loss(eps="dtype")), sk.log_loss(truth, p, sample_weight=weight))
    agree(table.both(mlm.brier_score()), sk.brier_score_loss(truth, p, sample_weight=weight))


def test_probabilities_of_labels(table: Table) -> None:
    labels = list(zip(table.truth.T, table.score.T, strict=True))
    losses = [sk.log_loss(truth, p, sample_weight=table.weight, labels=[0, 1]) for truth, p in labels]
    agree(table.both(mlm.log_loss(eps="dtype", average="macro")), np.mean(losses))
    scores = [sk.brier_score_loss(truth, p, sample_weight=table.weight) for truth, p in labels]
    agree(table.both(mlm.brier_score(average="macro")), np.mean(scores))


def test_multiclass_log_loss(table: Table) -> None:
    classes = np.arange(table.samples) % table.labels
    table.truth = np.eye(table.labels, dtype=int)[classes]
    table.score = (table.score + 0.1) / (table.score + 0.1).sum(axis=1, keepdims=True)
    value = sk.log_loss(classes, table.score, sample_weight=table.weight, labels=range(table.labels))
    agree(table.both(mlm.multiclass_log_loss()), value)


def test_multiclass_brier_score(table: Table) -> None:
    classes = np.arange(table.samples) % table.labels
    table.truth = np.eye(table.labels, dtype=int)[classes]
    table.score = (table.score + 0.1) / (table.score + 0.1).sum(axis=1, keepdims=True)
    value = sk.brier_score_loss(
        classes, table.score, sample_weight=table.weight, labels=range(table.labels), scale_by_half=False
    )
    agree(table.both(mlm.multiclass_brier_score()), value)


def test_normalized_entropy(table: Table) -> None:
    """The loss as a share of the loss of the base rate."""
    truth, p, weight = table.cells
    rate = np.average(truth, weights=weight)
    base = sk.log_loss(truth, np.full_like(p, rate), sample_weight=weight)
    agree(table.both(mlm.normalized_entropy(eps="dtype")), sk.log_loss(truth, p, sample_weight=weight) / base)
    agree(table.both(mlm.d2_log_loss(eps="dtype")), sk.d2_log_loss_score(truth, p, sample_weight=weight))
    agree(table.both(mlm.d2_brier()), sk.d2_brier_score(truth, p, sample_weight=weight))


@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize(
    ("name", "theirs"), [("roc_auc", sk.roc_auc_score), ("average_precision", sk.average_precision_score)]
)
def test_separation(even: Table, name: str, theirs: Any, average: str) -> None:
    value = theirs(even.truth, even.score, average=average, sample_weight=even.weight)
    agree(even.both(mlm.CATALOGUE[name](average=average)), value)


@pytest.mark.parametrize("max_fpr", [0.05, 0.5, 0.75, 1.0])
def test_area_up_to_a_false_positive_rate(table: Table, max_fpr: float) -> None:
    truth, score, weight = table.cells
    value = sk.roc_auc_score(truth, score, sample_weight=weight, max_fpr=max_fpr)
    agree(table.both(mlm.roc_auc(max_fpr=max_fpr)), value)


def test_points_of_curves(table: Table) -> None:
    """The best of scikit-learn's points that keep to a bound, to a rounding."""
    truth, score, weight = table.cells
    precision, recall, _ = sk.precision_recall_curve(truth, score, sample_weight=weight)
    precision, recall = precision[:-1], recall[:-1]  # the last point is at no threshold
    fpr, tpr, _ = sk.roc_curve(truth, score, sample_weight=weight, drop_intermediate=False)
    agree(table.both(mlm.ks()), np.abs(tpr - fpr).max())
    agree(table.both(mlm.gini()), 2 * sk.auc(fpr, tpr) - 1)
    for bound in (0.3, 0.6, 1.0):
        low, high = bound - 1e-12, bound + 1e-12
        agree(table.both(mlm.recall_at_precision(bound)), recall[precision >= low].max(initial=0.0))
        agree(table.both(mlm.precision_at_recall(bound)), precision[recall >= low].max())
        agree(table.both(mlm.recall_at_fpr(bound)), tpr[fpr <= high].max())


@pytest.mark.parametrize("unknown", ["score", "truth"])
@pytest.mark.parametrize(
    ("metric", "theirs"),
    [
        (mlm.roc_auc(), sk.roc_auc_score),
        (mlm.average_precision(), sk.average_precision_score),
        (mlm.brier_score(), sk.brier_score_loss),
        (mlm.log_loss(eps="dtype"), sk.log_loss),
    ],
)
def test_rows_that_are_not_known(even: Table, metric: mlm.Metric, theirs: Any, unknown: str) -> None:
    """They are as if they were not there."""
    frame = even.frame.with_columns(pl.when(pl.int_range(pl.len()) % 5 != 3).then(unknown).alias(unknown))
    known = frame.drop_nulls()
    weight = None if even.weight is None else known["weight"].to_numpy()
    value = theirs(known["truth"].to_numpy(), known["score"].to_numpy(), sample_weight=weight)
    agree(both(frame, metric, **({} if even.weight is None else {"weight": "weight"})), value)


@pytest.mark.filterwarnings("ignore:No positive class found:UserWarning")
@pytest.mark.parametrize("average", AVERAGES)
def test_average_precision_of_no_positives(table: Table, average: str) -> None:
    value = sk.average_precision_score(table.truth, table.score, average=average, sample_weight=table.weight)
    agree(table.both(mlm.average_precision(average=average, undefined=0.0)), value)


@pytest.mark.parametrize(
    ("metric", "theirs"),
    [
        (mlm.coverage_error(undefined=0.0), sk.coverage_error),
        (mlm.ranking_loss(undefined=0.0), sk.label_ranking_loss),
        (mlm.label_ranking_average_precision(undefined=1.0), sk.label_ranking_average_precision_score),
    ],
)
def test_rankings(table: Table, metric: mlm.Metric, theirs: Any) -> None:
    agree(table.both(metric), theirs(table.truth, table.score, sample_weight=table.weight))


@pytest.mark.parametrize("k", [None, 1, 3])
@pytest.mark.parametrize("ties", ["average", "ignore"])
def test_gains(table: Table, ties: str, k: int | None) -> None:
    """A sample of no gain is 0 to scikit-learn. Where it ignores ties, it gives tied labels no certain order."""
    table.truth = table.truth * np.random.default_rng(table.samples).integers(0, 4, table.truth.shape)
    if ties == "ignore":
        table.score = table.score - np.arange(table.labels) * 1e-9
    theirs = {"k": k, "ignore_ties": ties == "ignore", "sample_weight": table.weight}
    ours = {"k": k, "ties": ties}
    agree(table.both(mlm.CATALOGUE["dcg"](**ours)), sk.dcg_score(table.truth, table.score, **theirs))
    agree(table.both(mlm.CATALOGUE["ndcg"](**ours, undefined=0.0)), sk.ndcg_score(table.truth, table.score, **theirs))
    value = sk.dcg_score(2.0**table.truth - 1, table.score, **theirs)
    agree(table.both(mlm.CATALOGUE["dcg"](**ours, gain="exponential")), value)


@pytest.mark.parametrize("k", [1, 2])
def test_top_k_accuracy(table: Table, k: int) -> None:
    """Without ties: of tied classes scikit-learn takes the later one."""
    classes = np.arange(table.samples) % table.labels
    table.truth = np.eye(table.labels, dtype=int)[classes]
    table.score = np.random.default_rng(table.samples).random(table.truth.shape)
    if table.labels == 2:  # scikit-learn then asks for one column
        value = (
            float(np.average(table.score.argsort(axis=1)[:, -1] == classes, weights=table.weight)) if k == 1 else 1.0
        )
    else:
        value = sk.top_k_accuracy_score(
            classes, table.score, k=k, sample_weight=table.weight, labels=range(table.labels)
        )
    agree(table.both(mlm.top_k_accuracy(k)), value)


def test_best_label_is_predicted(even: Table) -> None:
    """Several classes, one true: the accuracy is the share of samples whose best label is the true one."""
    classes = np.arange(even.samples) % even.labels
    even.truth = np.eye(even.labels, dtype=int)[classes]
    even.score = np.random.default_rng(even.samples).random(even.truth.shape)
    said = even.score.argmax(axis=1)
    right = sk.accuracy_score(classes, said, sample_weight=even.weight)
    agree(even.both(mlm.subset_accuracy(threshold="argmax")), right)
    for average in AVERAGES[:3]:
        value = sk.f1_score(
            classes, said, average=average, sample_weight=even.weight, labels=range(even.labels), zero_division=0
        )
        agree(even.both(mlm.f1(threshold="argmax", average=average, undefined=0.0)), value)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("average", AVERAGES[:3])
@pytest.mark.parametrize("name", ["precision", "recall", "f1"])
def test_best_label_among_all_of_some_labels(table: Table, name: str, average: str) -> None:
    """`labels=` of classes: what is predicted is the best of all of them, whichever are asked about."""
    rng = np.random.default_rng(table.samples)
    classes = np.arange(table.samples) % table.labels
    table.truth, table.score = np.eye(table.labels, dtype=int)[classes], rng.random(table.truth.shape)
    said = table.score.argmax(axis=1)
    theirs = getattr(sk, f"{name}_score")
    for some in ([0], [1, 0], [table.labels - 1, 1]):
        given = {"labels": some, "sample_weight": table.weight, "zero_division": 0}
        ours = {"threshold": "argmax", "labels": [chr(ord("A") + c) for c in some], "undefined": 0.0}
        value = theirs(classes, said, average=average, **given)
        agree(table.both(mlm.CATALOGUE[name](average=average, **ours)), value)
        # The labels that are left, one by one.
        metric, weight = mlm.CATALOGUE[name](**ours), {} if table.weight is None else {"weight": "weight"}
        of_label = dict(mlm.evaluate(table.frame, metric, per="label", **weight).rows())
        for label, one in zip(ours["labels"], theirs(classes, said, average=None, **given), strict=True):
            agree(of_label[label], one)


@pytest.mark.parametrize("average", ["micro", "macro"])
@pytest.mark.parametrize("name", OF_NUMBERS)
def test_of_numbers(table: Table, name: str, average: str) -> None:
    """scikit-learn's outputs are our labels."""
    table.truth = np.random.default_rng(7).normal(size=table.score.shape)
    truth, score, weight = table.cells
    if average == "macro":
        truth, score, weight = table.truth, table.score, table.weight
    agree(table.both(mlm.CATALOGUE[name](average=average)), OF_NUMBERS[name](truth, score, sample_weight=weight))


def test_of_numbers_of_other_names(table: Table) -> None:
    table.truth = np.random.default_rng(8).normal(size=table.score.shape)
    truth, score, weight = table.cells
    agree(table.both(mlm.max_error()), sk.max_error(truth, score))
    agree(table.both(mlm.relative_squared_error()), 1 - sk.r2_score(truth, score, sample_weight=weight))
    agree(table.both(mlm.bias()), np.average(score - truth, weights=weight))
    for alpha in (0.0, 0.3, 1.0):
        value = sk.mean_pinball_loss(truth, score, sample_weight=weight, alpha=alpha)
        agree(table.both(mlm.pinball(alpha)), value)
    covariance = np.cov(score, truth, aweights=weight)
    agree(table.both(mlm.pearson()), covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]))
    if weight is None:
        agree(table.both(mlm.pearson()), stats.pearsonr(score, truth).statistic)
        agree(table.both(mlm.spearman()), stats.spearmanr(score, truth).statistic)


def test_of_numbers_above_0(table: Table) -> None:
    random = np.random.default_rng(9)
    table.truth, table.score = random.choice([0.5, 1.0, 2.5], table.score.shape), table.score + 0.25
    truth, score, weight = table.cells
    agree(table.both(mlm.gamma_deviance()), sk.mean_gamma_deviance(truth, score, sample_weight=weight))
    for power in (-1.5, 0, 1, 1.5, 2, 3):
        theirs = sk.mean_tweedie_deviance(truth, score, power=power, sample_weight=weight)
        agree(table.both(mlm.tweedie_deviance(power)), theirs)
    agree(table.both(mlm.msle()), sk.mean_squared_log_error(truth, score, sample_weight=weight))
    table.truth = table.truth - 0.5
    agree(table.both(mlm.poisson_deviance()), sk.mean_poisson_deviance(truth - 0.5, score, sample_weight=weight))
