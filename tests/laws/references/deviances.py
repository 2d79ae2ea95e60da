"""The references of amounts and counts: deviances and likelihoods."""

import math
from collections.abc import Sequence

from tests.laws.references.regression import mse, r2
from tests.laws.references.rows import Row, mean, reference, weight_of


@reference(score="positive", truth="gain")
def poisson_deviance(rows: Sequence[Row]) -> float | None:
    def of(s: float, t: float) -> float:
        return 2 * ((t * math.log(t / s) if t > 0 else 0.0) - t + s)

    return mean(rows, [of(row.score, row.truth) for row in rows])


@reference(score="positive", truth="positive")
def gamma_deviance(rows: Sequence[Row]) -> float | None:
    return mean(rows, [2 * (math.log(row.score / row.truth) + row.truth / row.score - 1) for row in rows])


@reference(score="positive", truth="gain")
def tweedie_deviance(rows: Sequence[Row], *, power: float) -> float | None:
    """By the integral that it is: 2·∫ (t - u) / u^p du from s to t; in closed form for the powers that are asked."""
    if power == 0:
        return mse(rows)
    if power == 1:
        return poisson_deviance(rows)
    if power == 2:
        return gamma_deviance(rows)

    def primitive(t: float, u: float) -> float:
        return (t * u ** (1 - power) / (1 - power) if t else 0.0) - u ** (2 - power) / (2 - power)

    def of(s: float, t: float) -> float:
        upper = max(t, 0.0)
        at_truth = primitive(t, upper) if upper > 0 else 0.0
        return 2 * (at_truth - primitive(t, s))

    return mean(rows, [of(row.score, row.truth) for row in rows])


@reference(score="positive", truth="gain")
def d2_tweedie(rows: Sequence[Row], *, power: float) -> float | None:
    """By the deviance of each truth from their mean."""
    rows = [row for row in rows if row.weight > 0]
    if power == 0:
        return r2(rows)
    if len({row.truth for row in rows}) < 2:
        return None
    middle = math.fsum(row.weight * row.truth for row in rows) / weight_of(rows)
    lost, whole = (
        tweedie_deviance(rows, power=power),
        tweedie_deviance([row._replace(score=middle) for row in rows], power=power),
    )
    return None if lost is None or not whole else 1 - lost / whole


@reference(score="positive", truth="gain")
def poisson_nll(rows: Sequence[Row]) -> float | None:
    """Less the logarithm of the probability of a count, and of ln t! that stands in it."""
    return mean(rows, [-(row.truth * math.log(row.score) - row.score) for row in rows])


@reference(score="positive", truth="positive")
def gamma_nll(rows: Sequence[Row]) -> float | None:
    """Less the logarithm of the density of an exponential waiting time, e^(-t/s) / s."""
    return mean(rows, [row.truth / row.score - math.log(1 / row.score) for row in rows])


@reference(score="positive", truth="gain")
def tweedie_nll(rows: Sequence[Row], *, power: float) -> float | None:
    """Less t·theta - kappa, with the theta and the kappa of an exponential family (Jorgensen 1987)."""

    def of(s: float, t: float) -> float:
        theta, kappa = s ** (1 - power) / (1 - power), s ** (2 - power) / (2 - power)
        return kappa - t * theta

    return mean(rows, [of(row.score, row.truth) for row in rows])
