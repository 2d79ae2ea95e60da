"""scikit-learn against the public names, by both readings: the same numbers, with `undefined=` where it has one."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
import pytest
import sklearn.metrics as sk
from scipy import stats

import polars_mlmetrics as mlm
from tests.laws.agreement import AVERAGES, OF_NUMBERS, EvenTable, Table, agree, several
from tests.support.at_once import each

SEVERAL = several(4, quick=1)


@pytest.fixture(params=SEVERAL, ids=str)
def table(request: pytest.FixtureRequest) -> Table:
    return Table(*request.param)


@pytest.fixture(params=SEVERAL, ids=str)
def even(request: pytest.FixtureRequest) -> Table:
    return EvenTable(*request.param)


def check(table: Table, theirs: Mapping[mlm.Metric, Any]) -> None:
    """Hold each metric of the table against what they say."""
    found = zip(theirs, each(table.frame, theirs, **table.roles), theirs.values(), strict=True)
    assert {repr(metric): ours for metric, ours, _ in found} == {
        repr(metric): pytest.approx(float(value), rel=1e-12, abs=1e-12) for metric, value in theirs.items()
    }


@pytest.mark.parametrize("average", AVERAGES)
def test_decisions(table: Table, average: Any) -> None:
    """Each with both values of what is undefined."""
    given = {"average": average, "sample_weight": table.weight}
    theirs = {
        mlm.CATALOGUE[name](average=average, undefined=zero): getattr(sk, f"{name}_score")(
            table.truth, table.said, zero_division=zero, **given
        )
        for name in ("precision", "recall", "f1", "jaccard")
        for zero in (0.0, 1.0)
    }
    of_beta = {
        mlm.fbeta(beta=beta, average=average, undefined=0.0): sk.fbeta_score(
            table.truth, table.said, beta=beta, zero_division=0, **given
        )
        for beta in (0.5, 2.0)
    }
    check(table, theirs | of_beta)


def test_decisions_of_cells(table: Table) -> None:
    truth, _, weight = table.cells
    theirs = {
        mlm.accuracy(): sk.accuracy_score,
        mlm.balanced_accuracy(): sk.balanced_accuracy_score,
        mlm.mcc(undefined=0.0): sk.matthews_corrcoef,
        mlm.cohen_kappa(undefined=0.0): sk.cohen_kappa_score,
    }
    check(table, {metric: of(truth, table.said.reshape(-1), sample_weight=weight) for metric, of in theirs.items()})


@pytest.mark.parametrize("said", [0, 1])
def test_one_answer_only(said: int) -> None:
    """A margin of 0 is undefined; scikit-learn says 0."""
    truth, answers = [1, 0, 1], [said] * 3
    frame = pl.DataFrame({"score": [float(said)] * 3, "truth": truth})
    assert each(frame, [mlm.mcc(), mlm.cohen_kappa()]) == [None, None]
    theirs = [sk.matthews_corrcoef(truth, answers), sk.cohen_kappa_score(truth, answers)]
    assert each(frame, [mlm.mcc(undefined=0.0), mlm.cohen_kappa(undefined=0.0)]) == pytest.approx(theirs, abs=1e-12)


def test_margins(table: Table) -> None:
    table.score = 4 * table.score - 2
    truth, margin, weight = table.cells
    of_numbers = {mlm.cost(1, 1): sk.zero_one_loss(truth, margin > 0.5, sample_weight=weight)}
    check(table, {mlm.hinge_loss(): sk.hinge_loss(truth, margin, sample_weight=weight), **of_numbers})


def test_whole_samples(table: Table) -> None:
    theirs = {mlm.hamming_loss(): sk.hamming_loss, 1 - mlm.subset_accuracy(): sk.zero_one_loss}
    check(table, {metric: of(table.truth, table.said, sample_weight=table.weight) for metric, of in theirs.items()})


def test_probabilities(table: Table) -> None:
    truth, p, weight = table.cells
    loss = sk.log_loss(truth, p, sample_weight=weight)
    rate = np.full_like(p, np.average(truth, weights=weight))
    labels = list(zip(table.truth.T, table.score.T, strict=True))
    losses = [sk.log_loss(truth, p, sample_weight=table.weight, labels=[0, 1]) for truth, p in labels]
    scores = [sk.brier_score_loss(truth, p, sample_weight=table.weight) for truth, p in labels]
    theirs = {
        mlm.log_loss(eps="dtype"): loss,
        mlm.log_loss(eps="dtype", average="macro"): np.mean(losses),
        mlm.brier_score(): sk.brier_score_loss(truth, p, sample_weight=weight),
        mlm.brier_score(average="macro"): np.mean(scores),
        # The loss as a share of the loss of the base rate.
        mlm.normalized_entropy(eps="dtype"): loss / sk.log_loss(truth, rate, sample_weight=weight),
        mlm.d2_log_loss(eps="dtype"): sk.d2_log_loss_score(truth, p, sample_weight=weight),
        mlm.d2_brier(): sk.d2_brier_score(truth, p, sample_weight=weight),
    }
    check(table, theirs)


def test_probabilities_of_classes(table: Table) -> None:
    given = {"sample_weight": table.weight, "labels": range(table.labels)}
    classes, p = table.of_classes(), table.as_shares()
    theirs = {
        mlm.multiclass_log_loss(): sk.log_loss(classes, p, **given),
        mlm.multiclass_brier_score(): sk.brier_score_loss(classes, p, scale_by_half=False, **given),
    }
    check(table, theirs)


@pytest.mark.parametrize("average", AVERAGES)
def test_separation(even: Table, average: Any) -> None:
    theirs = {
        mlm.roc_auc(average=average): sk.roc_auc_score,
        mlm.average_precision(average=average): sk.average_precision_score,
    }
    given = {"average": average, "sample_weight": even.weight}
    check(even, {metric: of(even.truth, even.score, **given) for metric, of in theirs.items()})


def test_area_up_to_a_false_positive_rate(table: Table) -> None:
    truth, score, weight = table.cells
    theirs = {
        mlm.roc_auc(max_fpr=max_fpr): sk.roc_auc_score(truth, score, sample_weight=weight, max_fpr=max_fpr)
        for max_fpr in (0.05, 0.5, 0.75, 1.0)
    }
    check(table, theirs)


def test_points_of_curves(table: Table) -> None:
    """The best of scikit-learn's points that keep to a bound, to a rounding."""
    truth, score, weight = table.cells
    precision, recall, _ = sk.precision_recall_curve(truth, score, sample_weight=weight)
    precision, recall = precision[:-1], recall[:-1]  # the last point is at no threshold
    fpr, tpr, _ = sk.roc_curve(truth, score, sample_weight=weight, drop_intermediate=False)
    theirs = {mlm.ks(): np.abs(tpr - fpr).max(), mlm.gini(): 2 * sk.auc(fpr, tpr) - 1}
    for bound in (0.3, 0.6, 1.0):
        low, high = bound - 1e-12, bound + 1e-12
        theirs[mlm.recall_at_precision(bound)] = recall[precision >= low].max(initial=0.0)
        theirs[mlm.precision_at_recall(bound)] = precision[recall >= low].max()
        theirs[mlm.recall_at_fpr(bound)] = tpr[fpr <= high].max()
    check(table, theirs)


@pytest.mark.parametrize("unknown", ["score", "truth"])
def test_rows_that_are_not_known(even: Table, unknown: str) -> None:
    """They are as if they were not there."""
    frame = even.frame.with_columns(pl.when(pl.int_range(pl.len()) % 5 != 3).then(unknown).alias(unknown))
    known = frame.drop_nulls()
    weight = None if even.weight is None else known["weight"].to_numpy()
    theirs = {
        mlm.roc_auc(): sk.roc_auc_score,
        mlm.average_precision(): sk.average_precision_score,
        mlm.brier_score(): sk.brier_score_loss,
        mlm.log_loss(eps="dtype"): sk.log_loss,
    }
    for ours, of in zip(each(frame, theirs, **even.roles), theirs.values(), strict=True):
        agree(ours, of(known["truth"].to_numpy(), known["score"].to_numpy(), sample_weight=weight))


@pytest.mark.filterwarnings("ignore:No positive class found:UserWarning")
def test_average_precision_of_no_positives(table: Table) -> None:
    theirs = {
        mlm.average_precision(average=average, undefined=0.0): sk.average_precision_score(
            table.truth, table.score, average=average, sample_weight=table.weight
        )
        for average in AVERAGES
    }
    check(table, theirs)


def test_rankings(table: Table) -> None:
    theirs = {
        mlm.coverage_error(undefined=0.0): sk.coverage_error,
        mlm.ranking_loss(undefined=0.0): sk.label_ranking_loss,
        mlm.label_ranking_average_precision(undefined=1.0): sk.label_ranking_average_precision_score,
    }
    check(table, {metric: of(table.truth, table.score, sample_weight=table.weight) for metric, of in theirs.items()})


@pytest.mark.parametrize("k", [None, 1, 3])
@pytest.mark.parametrize("ties", ["average", "ignore"])
def test_gains(table: Table, ties: Any, k: int | None) -> None:
    """A sample of no gain is 0 to scikit-learn. Where it ignores ties, it gives tied labels no certain order."""
    table.truth = table.truth * np.random.default_rng(table.samples).integers(0, 4, table.truth.shape)
    if ties == "ignore":
        table.score = table.score - np.arange(table.labels) * 1e-9
    given = {"k": k, "ignore_ties": ties == "ignore", "sample_weight": table.weight}
    theirs = {
        mlm.dcg(k=k, ties=ties): sk.dcg_score(table.truth, table.score, **given),
        mlm.ndcg(k=k, ties=ties, undefined=0.0): sk.ndcg_score(table.truth, table.score, **given),
        mlm.dcg(k=k, ties=ties, gain="exponential"): sk.dcg_score(2.0**table.truth - 1, table.score, **given),
    }
    check(table, theirs)


def test_top_k_accuracy(table: Table) -> None:
    """Without ties: of tied classes scikit-learn takes the later one."""
    classes = table.of_classes()
    table.score = np.random.default_rng(table.samples).random(table.truth.shape)
    if table.labels == 2:  # scikit-learn then asks for one column
        right = table.score.argsort(axis=1)[:, -1] == classes
        theirs = {mlm.top_k_accuracy(1): np.average(right, weights=table.weight), mlm.top_k_accuracy(2): 1.0}
    else:
        given = {"sample_weight": table.weight, "labels": range(table.labels)}
        theirs = {mlm.top_k_accuracy(k): sk.top_k_accuracy_score(classes, table.score, k=k, **given) for k in (1, 2)}
    check(table, theirs)


def test_best_label_is_predicted(even: Table) -> None:
    """Several classes, one true: the accuracy is the share of samples whose best label is the true one."""
    classes = even.of_classes()
    even.score = np.random.default_rng(even.samples).random(even.truth.shape)
    said, of_argmax = even.score.argmax(axis=1), mlm.subset_accuracy(threshold="argmax")
    theirs = {of_argmax: sk.accuracy_score(classes, said, sample_weight=even.weight)}
    given = {"sample_weight": even.weight, "labels": range(even.labels), "zero_division": 0}
    for average in ("micro", "macro", "weighted"):
        metric = mlm.f1(threshold="argmax", average=average, undefined=0.0)  # type: ignore[arg-type]
        theirs[metric] = sk.f1_score(classes, said, average=average, **given)
    check(even, theirs)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("average", ["micro", "macro", "weighted"])
@pytest.mark.parametrize("name", ["precision", "recall", "f1"])
def test_best_label_among_all_of_some_labels(table: Table, name: str, average: str) -> None:
    """`labels=` of classes: what is predicted is the best of all of them, whichever are asked about."""
    classes = table.of_classes()
    table.score = np.random.default_rng(table.samples).random(table.truth.shape)
    said, of = table.score.argmax(axis=1), getattr(sk, f"{name}_score")
    theirs = {}
    for some in ([0], [1, 0], [table.labels - 1, 1]):
        given = {"labels": some, "sample_weight": table.weight, "zero_division": 0}
        ours = {"threshold": "argmax", "labels": [chr(ord("A") + c) for c in some], "undefined": 0.0}
        theirs[mlm.CATALOGUE[name](average=average, **ours)] = of(classes, said, average=average, **given)
        # The labels that are left, one by one.
        of_label = dict(mlm.evaluate(table.frame, mlm.CATALOGUE[name](**ours), per="label", **table.roles).rows())
        for label, one in zip(ours["labels"], of(classes, said, average=None, **given), strict=True):
            agree(of_label[label], one)
    check(table, theirs)


@pytest.mark.parametrize("average", ["micro", "macro"])
def test_of_numbers(table: Table, average: str) -> None:
    """scikit-learn's outputs are our labels."""
    table.truth = np.random.default_rng(7).normal(size=table.score.shape)
    truth, score, weight = table.cells if average == "micro" else (table.truth, table.score, table.weight)
    theirs = {
        mlm.CATALOGUE[name](average=average): of(truth, score, sample_weight=weight) for name, of in OF_NUMBERS.items()
    }
    check(table, theirs)


def test_of_numbers_of_other_names(table: Table) -> None:
    table.truth = np.random.default_rng(8).normal(size=table.score.shape)
    truth, score, weight = table.cells
    covariance = np.cov(score, truth, aweights=weight)
    theirs = {
        mlm.max_error(): sk.max_error(truth, score),
        mlm.relative_squared_error(): 1 - sk.r2_score(truth, score, sample_weight=weight),
        mlm.bias(): np.average(score - truth, weights=weight),
        mlm.pearson(): covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]),
    }
    for alpha in (0.0, 0.3, 1.0):
        theirs[mlm.pinball(alpha)] = sk.mean_pinball_loss(truth, score, sample_weight=weight, alpha=alpha)
    if weight is None:
        agree(theirs[mlm.pearson()], stats.pearsonr(score, truth).statistic)
        theirs[mlm.spearman()] = stats.spearmanr(score, truth).statistic
    check(table, theirs)


def test_of_numbers_above_0(table: Table) -> None:
    random = np.random.default_rng(9)
    table.truth, table.score = random.choice([0.5, 1.0, 2.5], table.score.shape), table.score + 0.25
    truth, score, weight = table.cells
    theirs = {
        mlm.gamma_deviance(): sk.mean_gamma_deviance(truth, score, sample_weight=weight),
        mlm.msle(): sk.mean_squared_log_error(truth, score, sample_weight=weight),
    }
    for power in (-1.5, 0, 1, 1.5, 2, 3):
        deviance = sk.mean_tweedie_deviance(truth, score, power=power, sample_weight=weight)
        theirs[mlm.tweedie_deviance(power)] = deviance
    check(table, theirs)
    table.truth = table.truth - 0.5
    check(table, {mlm.poisson_deviance(): sk.mean_poisson_deviance(truth - 0.5, score, sample_weight=weight)})
