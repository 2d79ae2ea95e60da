"""Scores and calibration beside model-diagnostics, which works them out another way."""

from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_mlmetrics as mlm

pytestmark = pytest.mark.filterwarnings("ignore:the string cache:DeprecationWarning")  # of its own code
weighted = pytest.mark.parametrize("weight", [None, "weight"])
CLOSE = 1e-12
"""Sums of 2,000 rows, added up in another order."""


@pytest.fixture
def scoring() -> Any:
    """Its scores: each a class, whose object is called."""
    from model_diagnostics import scoring

    return scoring


@pytest.fixture
def compute_bias() -> Any:
    """What it says of how far predictions are off, in all or by the values of a feature."""
    from model_diagnostics.calibration import compute_bias

    return compute_bias


def probabilities() -> pl.DataFrame:
    random = np.random.default_rng(3)
    score = random.uniform(0.001, 0.999, 2000)
    weight = random.integers(1, 5, 2000).astype(float)
    return pl.DataFrame({"score": score, "truth": (random.random(2000) < score**2).astype(float), "weight": weight})


def amounts() -> pl.DataFrame:
    random = np.random.default_rng(4)
    columns = {"score": random.gamma(2, 1, 2000) + 0.1, "truth": random.gamma(2, 1, 2000) + 1e-3}
    return pl.DataFrame({**columns, "weight": random.integers(1, 5, 2000).astype(float)})


def arrays(log: pl.DataFrame, weight: str | None) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    return log["truth"].to_numpy(), log["score"].to_numpy(), log[weight].to_numpy() if weight else None


@weighted
def test_scores_of_probabilities(weight: str | None, scoring: Any, compute_bias: Any) -> None:
    log = probabilities()
    truth, score, weights = arrays(log, weight)
    base = np.full(len(truth), np.average(truth, weights=weights))
    expected = [
        scoring.LogLoss()(truth, score, weights),
        scoring.SquaredError()(truth, score, weights),
        1 - scoring.LogLoss()(truth, score, weights) / scoring.LogLoss()(truth, base, weights),
        1 - scoring.SquaredError()(truth, score, weights) / scoring.SquaredError()(truth, base, weights),
        compute_bias(truth, score, weights=weights)["bias_mean"].item(),
    ]
    metrics = [mlm.log_loss(), mlm.brier_score(), mlm.d2_log_loss(), mlm.d2_brier(), mlm.calibration_bias()]
    assert mlm.evaluate(log, metrics, weight=weight).row(0) == pytest.approx(expected, rel=CLOSE)


@weighted
def test_parts_of_the_brier_score(weight: str | None, scoring: Any, compute_bias: Any) -> None:
    """Of 15 bins: how far each is off, and what it would score if it promised the share of its true rows."""
    log = probabilities()
    truth, score, weights = arrays(log, weight)
    numbers = np.minimum(np.floor(score * 15), 14)
    bins = compute_bias(
        truth, score, feature=pl.Series("cell", numbers).cast(pl.Int64).cast(pl.String), weights=weights, n_bins=15
    )
    assert bins.height == 15
    reliability = np.average(bins["bias_mean"].to_numpy() ** 2, weights=bins["bias_weights"].to_numpy())
    own = np.ones(len(truth)) if weights is None else weights
    held = {number: np.average(truth[numbers == number], weights=own[numbers == number]) for number in range(15)}
    parts = scoring.decompose(
        truth, np.array([held[number] for number in numbers]), own, scoring_function=scoring.SquaredError()
    )
    expected = [reliability, parts["discrimination"].item(), parts["uncertainty"].item()]
    metrics = [mlm.brier_reliability(), mlm.brier_resolution(), mlm.brier_uncertainty()]
    assert mlm.evaluate(log, metrics, weight=weight).row(0) == pytest.approx(expected, rel=1e-10)  # differences of sums


@weighted
@pytest.mark.parametrize("power", [0, 1, 1.5, 2, 3])
def test_deviances(power: float, weight: str | None, scoring: Any) -> None:
    log = amounts()
    scores = {0: scoring.SquaredError(), 1: scoring.PoissonDeviance(), 2: scoring.GammaDeviance()}
    expected = scores.get(power, scoring.HomogeneousExpectileScore(degree=2 - power))(*arrays(log, weight))
    assert mlm.evaluate(log, mlm.tweedie_deviance(power), weight=weight).item() == pytest.approx(expected, rel=CLOSE)


@weighted
def test_bins_of_a_calibration_curve(weight: str | None, compute_bias: Any) -> None:
    log = probabilities()
    truth, score, weights = arrays(log, weight)
    numbers = pl.Series("cell", np.minimum(np.floor(score * 10), 9)).cast(pl.Int64).cast(pl.String)
    expected = compute_bias(truth, score, feature=numbers, weights=weights, n_bins=10).sort("cell")
    found = mlm.curve(log, "calibration", bins=10, weight=weight).sort("bin")
    assert found["n_rows"].to_list() == expected["bias_count"].to_list()
    gaps = (found["score"] - found["truth"]).to_list()
    assert gaps == pytest.approx(expected["bias_mean"].to_list(), rel=1e-10)  # differences of sums
