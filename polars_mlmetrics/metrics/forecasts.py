"""Metrics of a forecast that is more than one number: an interval, several quantiles, an ensemble."""

from typing import NamedTuple, Unpack

import polars as pl

from polars_mlmetrics.data.expressions import text_of
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.formula.averages import Average
from polars_mlmetrics.formula.declare import metric
from polars_mlmetrics.formula.parameters import Averaged, BetweenZeroAndOne, Options
from polars_mlmetrics.formula.unit import Unit

INFINITY = float("inf")
End = float | str | pl.Expr
"""An end of an interval: a column or a row-wise expression, or a number for all rows."""


@metric(range=(0, 1), best=None, reads=("truth",))
def interval_coverage(
    u: Unit, low: End, high: End, *, average: Average = "micro", **options: Unpack[Averaged]
) -> pl.Expr:
    """The share of truths that lie within their interval: Σw·[low <= t <= high] / Σw.

    The ends are columns or expressions of each row (or numbers); a row whose ends are the wrong way round is broken.
    The share is to be near the level
    that the intervals promise: above it they are too wide. Wide enough they cover all, so look at `interval_width`
    beside it, or at `interval_score` for both.
    """
    interval = _interval_of(u, low, high)
    covered = u.real.is_between(interval.low, interval.high)
    return u.per_row(u.sum(f"covered@{interval.name}", covered))


@metric(range=(0, INFINITY), best="min", reads=("truth",))
def interval_width(u: Unit, low: End, high: End, *, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """The mean width of the intervals of the rows whose truth is known: Σw·(high - low) / Σw.

    Ends as in `interval_coverage`, without which a width says nothing: an interval of no width is the best.
    """
    _ = u.real
    interval = _interval_of(u, low, high)
    return u.per_row(u.sum(f"width@{interval.name}", interval.high - interval.low))


@metric(range=(0, INFINITY), best="min", reads=("truth",))
def interval_score(
    u: Unit,
    low: End,
    high: End,
    *,
    level: BetweenZeroAndOne = 0.9,
    average: Average = "micro",
    **options: Unpack[Averaged],
) -> pl.Expr:
    """The mean width of intervals, and 2/(1-level) times how far a truth is outside of its own.

    It is lowest for the quantiles (1-level)/2 and (1+level)/2 (Gneiting and Raftery 2007, also called the Winkler
    score), and in the unit of the truth. It is 2/(1-level) times the `pinball` losses of the two ends together. Ends
    as in `interval_coverage`.
    """
    interval, truth = _interval_of(u, low, high), u.real
    outside = (interval.low - truth).clip(lower_bound=0) + (truth - interval.high).clip(lower_bound=0)
    score = interval.high - interval.low + 2 * (1 - level) ** -1 * outside
    return u.per_row(u.sum(f"interval_score@{level},{interval.name}", score))


class Interval(NamedTuple):
    """The ends of a row's interval, and a name that no other has."""

    low: pl.Expr
    high: pl.Expr
    name: str


def _interval_of(u: Unit, low: End, high: End) -> Interval:
    ends = u.of_row("low", low), u.of_row("high", high)
    name = ",".join(map(text_of, ends))
    u.breaks_on(f"interval@{name}", ends[0] > ends[1])
    return Interval(*ends, name)


@metric(range=(0, INFINITY), best="min")
def wis(u: Unit, quantile: str | pl.Expr, *, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """The weighted interval score of quantiles: twice the mean `pinball` loss, each row at its own quantile.

    A row is one quantile: its score, the truth, and in the column `quantile` (or an expression) which one it is. Of a
    median and K central intervals this is Σ (α_k/2)·interval score_k and half the error of the median, divided
    by K + 1/2 (Bracher et al. 2021). Of ever more of them it comes to the `crps`. A sample with more quantiles
    counts more: compare models that give the same ones. A quantile outside (0, 1) is broken.
    """
    of_row = u.of_row("quantile", quantile)
    name = text_of(of_row)
    u.breaks_on(f"quantile@{name}", ~of_row.is_between(0, 1, closed="none"))
    error = u.real - u.score
    return u.per_row(u.sum(f"wis@{name}", 2 * pl.max_horizontal(of_row * error, (of_row - 1) * error)))


@metric(grain="sample", range=(0, INFINITY), best="min", undefined_when="fair, and a sample has a single member")
def crps(u: Unit, *, fair: bool = False, **options: Unpack[Options]) -> pl.Expr:
    """The continuous ranked probability score of an ensemble: mean |x_i - t| - Σ|x_i - x_j| / (2m²), of m members.

    A row is one member: its score is a forecast of the truth of its sample, which all its rows have. Of a single member
    it is the absolute error, and it is in the unit of the truth (Gneiting and Raftery 2007). `fair=True` divides by
    2m·(m-1) instead: what a larger ensemble of the same kind would get on average (Ferro 2014), so compare ensembles of
    two sizes by that. It may be below 0 in a sample. Of quantiles use `wis`. A sample with two truths is broken.
    """
    error = u.score - u.real
    u.breaks_on("infinite_error", ~error.is_finite())
    members = u.rows()
    # Each pair counts once for its higher member, and is taken off once for its lower one.
    apart = members * u.sum("error", error) - u.sum("ranked_error", error * (u.rank + u.above))
    pairs = members * (members - 1) if fair else members**2
    value = ratio(u.sum("absolute_error", error.abs()), members) - ratio(apart, pairs)
    return pl.when(u.has_several("truth_of_sample", u.real)).then(float("nan")).otherwise(value)
