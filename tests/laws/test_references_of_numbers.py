"""The references of regression against scikit-learn."""

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
import sklearn.metrics as sk
from scipy import stats

from tests.laws.agreement import OF_NUMBERS, SEVERAL, Matrix, Table, agree
from tests.laws.oracle import expected
from tests.support.readings import long


@pytest.fixture(params=SEVERAL, ids=str)
def table(request: pytest.FixtureRequest) -> Table:
    return Table(*request.param)


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
    for power in (-1.5, 0, 1, 1.5, 2, 3):
        for cases, numbers in ((frame, truth), *([(of_counts, counts)] if power < 2 else [])):
            theirs = sk.mean_tweedie_deviance(cells(numbers), cells(score), power=power, **weight)
            agree(expected("tweedie_deviance", cases, {"power": power}, table.roles), theirs)
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
