"""The references of regression against scikit-learn."""

import math

import numpy as np
import polars as pl
import pytest
import sklearn.metrics as sk
from scipy import special, stats

from tests.laws.agreement import OF_NUMBERS, Table, agree, several
from tests.laws.oracle import expected


@pytest.fixture(params=several(8, quick=2), ids=str)
def table(request: pytest.FixtureRequest) -> Table:
    return Table(*request.param)


@pytest.mark.parametrize("average", ["micro", "macro"])
@pytest.mark.parametrize("name", OF_NUMBERS)
def test_of_numbers(table: Table, name: str, average: str) -> None:
    """scikit-learn's outputs are our labels."""
    table.truth = np.random.default_rng(2).normal(size=table.score.shape).round(1)
    truth, score, weight = table.cells if average == "micro" else (table.truth, table.score, table.weight)
    agree(table.expected(name, average=average), OF_NUMBERS[name](truth, score, sample_weight=weight))


def test_of_numbers_of_other_names(table: Table) -> None:
    table.truth = np.random.default_rng(3).normal(size=table.score.shape)
    (truth, score, weight), ours = table.cells, table.expected
    agree(ours("max_error"), sk.max_error(truth, score))
    agree(ours("bias"), np.average(score - truth, weights=weight))
    agree(ours("relative_squared_error"), 1 - sk.r2_score(truth, score, sample_weight=weight))
    near, apart = np.abs(truth - score), np.abs(truth - np.average(truth, weights=weight))
    agree(ours("relative_absolute_error"), np.average(near, weights=weight) / np.average(apart, weights=weight))
    agree(ours("smape"), np.average(2 * np.abs(score - truth) / (np.abs(score) + np.abs(truth)), weights=weight))
    for alpha in (0.0, 0.3, 1.0):
        agree(ours("pinball", alpha=alpha), sk.mean_pinball_loss(truth, score, sample_weight=weight, alpha=alpha))
    agree(ours("huber", delta=100.0), sk.mean_squared_error(truth, score, sample_weight=weight) / 2)
    agree(ours("huber", delta=1e-9), 1e-9 * (sk.mean_absolute_error(truth, score, sample_weight=weight) - 1e-9 / 2))
    squares = sk.mean_squared_error(truth, score, sample_weight=weight)
    agree(ours("expectile", alpha=0.5), squares / 2)
    high = np.where(score > truth, 0.2, 0.8)
    agree(ours("expectile", alpha=0.8), np.average(high * (score - truth) ** 2, weights=weight))
    agree(ours("mae", scale=0.8), sk.mean_absolute_error(truth, score, sample_weight=weight) / 0.8)
    agree(ours("rmse", scale=0.8), math.sqrt(squares) / 0.8)
    agree(ours("bias_ratio"), np.average(score, weights=weight) / np.average(truth, weights=weight))
    agree(ours("log_cosh"), np.average(np.log(np.cosh(score - truth)), weights=weight))
    agree(ours("wape"), np.average(near, weights=weight) / np.average(np.abs(truth), weights=weight))
    floored = near / np.maximum(np.abs(truth), 0.25)
    agree(ours("mape", floor=0.25), np.average(floored, weights=weight))
    covariance = np.cov(score, truth, aweights=weight, ddof=0)
    apart = np.average(score, weights=weight) - np.average(truth, weights=weight)
    agree(ours("concordance"), 2 * covariance[0, 1] / (covariance[0, 0] + covariance[1, 1] + apart**2))
    agree(ours("pearson"), covariance[0, 1] / math.sqrt(covariance[0, 0] * covariance[1, 1]))
    if weight is None:
        agree(ours("pearson"), stats.pearsonr(score, truth).statistic)
        agree(ours("spearman"), stats.spearmanr(score, truth).statistic)


def test_parts_of_what_a_constant_loses(table: Table) -> None:
    """The quantile of scikit-learn is one of the truths where rows have weights; without, it may lie between two."""
    table.truth = np.random.default_rng(2).normal(size=table.score.shape).round(1)
    (truth, score, weight), ours = table.cells, table.expected
    agree(ours("d2_absolute_error"), sk.d2_absolute_error_score(truth, score, sample_weight=weight))
    agree(ours("d2_pinball"), sk.d2_pinball_score(truth, score, sample_weight=weight))
    weight = np.ones(len(truth)) if weight is None else weight
    for alpha in (0.1, 0.25, 0.8):
        agree(ours("d2_pinball", alpha=alpha), sk.d2_pinball_score(truth, score, sample_weight=weight, alpha=alpha))


def test_the_best_constant_lies_not_between_two_truths() -> None:
    """Of four truths the lowest is the .1 quantile that loses least; the one of numpy is beside it, and loses more."""
    truth = pl.Series([1.0, 3.0, 5.0, 7.0])
    lowest, beside = (
        pl.DataFrame({"score": [score] * 4, "truth": truth}) for score in (1.0, truth.quantile(0.1, "linear"))
    )
    assert expected("d2_pinball", lowest, {"alpha": 0.1}) == 0
    assert expected("d2_pinball", beside, {"alpha": 0.1}) < 0


def test_icc() -> None:
    """ICC(A,1) of McGraw and Wong, by hand."""
    frame = pl.DataFrame({"score": [1.0, 2.0, 4.0], "truth": [2.0, 3.0, 4.0]})
    # The means of rows are 1.5, 2.5 and 4, of all 8/3; of raters 7/3 and 3. What is left is ±1/6, ±1/6 and ∓1/3.
    of_rows = 2 * ((7 / 6) ** 2 + (1 / 6) ** 2 + (4 / 3) ** 2) / 2
    of_raters, left = 3 * 2 * (1 / 3) ** 2, 2 * (2 * (1 / 6) ** 2 + (1 / 3) ** 2) / 2
    agree(expected("icc", frame), (of_rows - left) / (of_rows + left + 2 / 3 * (of_raters - left)))
    assert expected("icc", frame.head(1)) is None


def test_of_numbers_above_0(table: Table) -> None:
    table.truth = np.random.default_rng(4).choice([0.5, 1.0, 2.5], table.score.shape)
    table.score = table.score + 0.25
    truth, score, weight = table.cells
    agree(table.expected("gamma_deviance"), sk.mean_gamma_deviance(truth, score, sample_weight=weight))
    agree(table.expected("msle"), sk.mean_squared_log_error(truth, score, sample_weight=weight))
    powers: list[float] = [-1.5, 0, 1, 1.5]
    for power in (*powers, 2, 3):
        theirs = sk.mean_tweedie_deviance(truth, score, power=power, sample_weight=weight)
        agree(table.expected("tweedie_deviance", power=power), theirs)
        of_mean = sk.d2_tweedie_score(truth, score, power=power, sample_weight=weight)
        agree(table.expected("d2_tweedie", power=power), of_mean)
    waiting = -stats.expon.logpdf(truth, scale=score)
    agree(table.expected("gamma_nll"), np.average(waiting, weights=weight))
    table.truth = table.truth - 0.5
    counts, *_ = table.cells
    agree(table.expected("poisson_deviance"), sk.mean_poisson_deviance(counts, score, sample_weight=weight))
    for power in powers:
        theirs = sk.mean_tweedie_deviance(counts, score, power=power, sample_weight=weight)
        agree(table.expected("tweedie_deviance", power=power), theirs)
    # As XGBoost's tweedie-nloglik@1.5 works it out, and poisson-nloglik but for its ln t!.
    a, b = counts * np.exp((1 - 1.5) * np.log(score)) / (1 - 1.5), np.exp((2 - 1.5) * np.log(score)) / (2 - 1.5)
    agree(table.expected("tweedie_nll", power=1.5), np.average(-a + b, weights=weight))
    table.truth = np.ceil(table.truth)
    counts, *_ = table.cells
    likely = -stats.poisson.logpmf(counts, score) - special.gammaln(counts + 1)
    agree(table.expected("poisson_nll"), np.average(likely, weights=weight))


def test_weights_of_places_are_repetitions() -> None:
    """Spearman and the median with whole weights are scipy's and numpy's of repeated rows."""
    rng = np.random.default_rng(6)
    score, truth, weight = rng.integers(0, 6, 30), rng.integers(0, 5, 30), rng.integers(0, 4, 30)
    frame = pl.DataFrame({"score": score, "truth": truth, "weight": weight})
    many = np.repeat(score, weight), np.repeat(truth, weight)
    agree(expected("spearman", frame, {}, {"weight": "weight"}), stats.spearmanr(*many).statistic)
    agree(expected("median_absolute_error", frame, {}, {"weight": "weight"}), np.median(np.abs(many[0] - many[1])))


@pytest.mark.parametrize(
    "name", ["r2", "explained_variance", "pearson", "concordance", "spearman", "relative_absolute_error", "bias"]
)
def test_numbers_far_from_0(name: str) -> None:
    """Moved by a billion, which whole numbers bear without rounding, they are what they were."""
    rng = np.random.default_rng(8)
    score, truth, weight = rng.integers(0, 9, 20) / 8, rng.integers(0, 9, 20) / 8, rng.integers(1, 4, 20)
    near = pl.DataFrame({"score": score, "truth": truth, "weight": weight})
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
