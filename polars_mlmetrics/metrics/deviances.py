"""Metrics of amounts and counts: deviances, and the likelihoods that models of them are trained by."""

from typing import Annotated, Unpack

import polars as pl

from polars_mlmetrics.formula.arithmetic import ratio, times_log, unless_rounding
from polars_mlmetrics.formula.averages import Average
from polars_mlmetrics.formula.declare import metric
from polars_mlmetrics.formula.parameters import Above, AtLeastOne, AtMostZero, Averaged
from polars_mlmetrics.formula.unit import Unit

INFINITY = float("inf")
BetweenOneAndTwo = Annotated[float, Above(1, strictly=True, below=2)]


@metric(range=(0, INFINITY), best="min")
def poisson_deviance(u: Unit, *, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """The mean deviance of counts: 2·Σw·(t·ln(t/s) - t + s) / Σw.

    A score of 0 or less and a truth below 0 are broken, and so is what is infinite.
    """
    return _poisson_deviance(u)


def _poisson_deviance(u: Unit) -> pl.Expr:
    _breaks_on_no_count(u)
    deviance = times_log(u.real, ratio(u.real, u.score)) - u.real + u.score
    return u.per_row(2 * u.sum("poisson_deviance", deviance))


def _breaks_on_no_count(u: Unit) -> None:
    u.breaks_on("poisson", (u.score <= 0) | (u.real < 0) | u.score.is_infinite() | u.real.is_infinite())


@metric(range=(0, INFINITY), best="min")
def gamma_deviance(u: Unit, *, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """The mean deviance of positive amounts: 2·Σw·(ln(s/t) + t/s - 1) / Σw.

    A score or truth of 0 or less is broken, and so is what is infinite.
    """
    return _gamma_deviance(u)


def _gamma_deviance(u: Unit) -> pl.Expr:
    _breaks_on_no_amount(u)
    relative = ratio(u.real, u.score)
    return u.per_row(2 * u.sum("gamma_deviance", relative - 1 - relative.log()))


def _breaks_on_no_amount(u: Unit) -> None:
    u.breaks_on("gamma", (u.score <= 0) | (u.real <= 0) | u.score.is_infinite() | u.real.is_infinite())


@metric(range=(0, INFINITY), best="min")
def tweedie_deviance(
    u: Unit, power: AtLeastOne | AtMostZero, *, average: Average = "micro", **options: Unpack[Averaged]
) -> pl.Expr:
    """The mean Tweedie deviance: 2·Σw·(t^(2-p)/((1-p)(2-p)) - t·s^(1-p)/(1-p) + s^(2-p)/(2-p)) / Σw for a power p.

    0 is `mse`, 1 `poisson_deviance`, 2 `gamma_deviance`; between 1 and 2 it is of amounts that are often 0. Below 0 a
    negative truth counts as 0 in t^(2-p). Unless the power is 0, a score of 0 or less is broken, and so is what is
    infinite. From a power of 1 on a truth below 0 is broken too, and from 2 on a truth of 0.
    """
    return _tweedie_deviance(u, power)


def _tweedie_deviance(u: Unit, power: float) -> pl.Expr:
    if power == 0:
        return u.per_row(u.sum("squared_error", (u.score - u.real) ** 2))
    if power == 1:
        return _poisson_deviance(u)
    if power == 2:
        return _gamma_deviance(u)
    is_broken = (u.score <= 0) | u.score.is_infinite() | u.real.is_infinite()
    if power > 0:
        is_broken = is_broken | (u.real < 0 if power < 2 else u.real <= 0)
    u.breaks_on(f"tweedie@{power}", is_broken)
    above, below = (1 - power) ** -1, (2 - power) ** -1
    of_truth = above * below * u.real.clip(lower_bound=0) ** (2 - power)
    of_both, of_score = above * u.real * u.score ** (1 - power), below * u.score ** (2 - power)
    # What is left of numbers that are level may be below 0 by rounding.
    deviance = (of_truth - of_both + of_score).clip(lower_bound=0)
    return u.per_row(2 * u.sum(f"tweedie_deviance@{power}", deviance))


@metric(range=(-INFINITY, 1), best="max", undefined_when="constant truth")
def d2_tweedie(
    u: Unit, power: AtLeastOne | AtMostZero, *, average: Average = "micro", **options: Unpack[Averaged]
) -> pl.Expr:
    """The share of the mean truth's deviance that is not lost: 1 - `tweedie_deviance(power)` / that of the mean truth.

    0 is `r2`. It is what the generalised linear models call the share of deviance explained, and of counts (1) or
    amounts (1.5, 2) fairer than `r2`, where few large rows decide (Hastie, Tibshirani and Wainwright 2015). Broken are
    the rows that are broken to `tweedie_deviance`, and for a power below 0 a truth of 0 or less too. Truths so near to
    each other that their deviance is rounding, 1e-12 of its terms, are constant.
    """
    if power == 0:
        return 1 - ratio(u.sum("squared_error", (u.score - u.real) ** 2), u.variation("truth", u.real))
    return 1 - ratio(_tweedie_deviance(u, power), u.per_row(_deviance_of_mean(u, power)))


def _deviance_of_mean(u: Unit, power: float) -> pl.Expr:
    """The deviance of the truths from their mean, by sums that merge: a function of them less that of their mean."""
    total, n = u.sum("truth", u.real), u.rows()
    mean = ratio(total, n)
    if power == 1:
        of_rows, of_mean = u.sum("truth_times_log", times_log(u.real, u.real)), times_log(total, mean)
        size = total + of_mean.abs()
    elif power == 2:
        of_rows, of_mean = -u.sum("log_truth", u.real.log()), -n * mean.log()
        size = n + of_mean.abs()
    else:
        if power < 0:
            u.breaks_on("truth_above_0", u.real <= 0)
        sign = ((1 - power) * (2 - power)) ** -1
        of_rows, of_mean = sign * u.sum(f"truth^{2 - power}", u.real ** (2 - power)), sign * n * mean ** (2 - power)
        size = of_mean.abs()
    return 2 * unless_rounding(of_rows - of_mean, size)


@metric(range=(-INFINITY, INFINITY), best="min")
def poisson_nll(u: Unit, *, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """The negative log likelihood of counts, without ln t!, which no model can change: Σw·(s - t·ln s) / Σw.

    The score is the expected count, not its logarithm. XGBoost's poisson-nloglik is this and the mean of ln t!. Two
    models differ by it as they do by half of `poisson_deviance`; use that to read a single value, as 0 is the best.
    What is broken there is broken here.
    """
    _breaks_on_no_count(u)
    return u.per_row(u.sum("poisson_nll", u.score - u.real * u.score.log()))


@metric(range=(-INFINITY, INFINITY), best="min")
def gamma_nll(u: Unit, *, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """The negative log likelihood of positive amounts, of a shape of 1: Σw·(t/s + ln s) / Σw.

    It is XGBoost's gamma-nloglik, and the likelihood of waiting times that are exponential. Two models differ by it as
    they do by half of `gamma_deviance`; use that to read a single value, as 0 is the best. What is broken there is
    broken here.
    """
    _breaks_on_no_amount(u)
    return u.per_row(u.sum("gamma_nll", ratio(u.real, u.score) + u.score.log()))


@metric(range=(0, INFINITY), best="min")
def tweedie_nll(
    u: Unit, power: BetweenOneAndTwo, *, average: Average = "micro", **options: Unpack[Averaged]
) -> pl.Expr:
    """The negative log likelihood of amounts that are often 0, but for a constant: the mean of what a row loses.

    That is s^(2-p)/(2-p) - t·s^(1-p)/(1-p), for a power p between 1 and 2 and a dispersion of 1 (Jorgensen 1987). It is
    XGBoost's tweedie-nloglik@p. Two models differ by it as they do by half of `tweedie_deviance(p)`; use that to read a
    single value, as 0 is the best. What is broken there is broken here. Values of two powers are on two scales.
    """
    _breaks_on_no_count(u)
    above, below = (1 - power) ** -1, (2 - power) ** -1
    lost = below * u.score ** (2 - power) - above * u.real * u.score ** (1 - power)
    return u.per_row(u.sum(f"tweedie_nll@{power}", lost))
