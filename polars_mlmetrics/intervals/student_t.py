"""The arithmetic of intervals: quantiles, standard errors and ends. What is divided by here is never 0."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import atan, cos, inf, isfinite, log, pi, sin, sqrt
from statistics import NormalDist

import polars as pl

EXACT = 200
"""Up to so many degrees of freedom the quantile is found from the distribution itself, above by its expansion."""


def normal_quantile(level: float) -> float:
    """Between which values, minus and plus, the share `level` of a normal distribution lies."""
    return NormalDist().inv_cdf((1 + level) / 2)


def share_within(t: float, df: int) -> float:
    """Which share of Student's t with so many degrees of freedom lies between -t and t."""
    angle = atan(t / sqrt(df))
    step, sine = cos(angle) ** 2, sin(angle)
    term = total = 1.0
    if df % 2 == 0:
        for k in range(1, df // 2):
            term *= step * (2 * k - 1) / (2 * k)
            total += term
        return sine * total
    if df == 1:
        return 2 / pi * angle
    for k in range(1, (df - 1) // 2):
        term *= step * 2 * k / (2 * k + 1)
        total += term
    return 2 / pi * (angle + sine * cos(angle) * total)


@cache
def t_quantile(level: float, df: int) -> float:
    """Between which values, minus and plus, the share `level` of Student's t lies."""
    z = normal_quantile(level)
    if df > EXACT:
        return _expanded(z, df)
    low = high = z
    while high < inf and share_within(high, df) < level:
        high *= 2
    while True:
        middle = (low + high) / 2
        if not low < middle < high:
            return middle
        low, high = (middle, high) if share_within(middle, df) < level else (low, middle)


def t_at(buckets: pl.Expr, level: float, most: int) -> pl.Expr:
    """The quantile of Student's t by the number of usable buckets, at most so many; null below two."""
    quantiles = [t_quantile(level, df) for df in range(1, most)]
    return pl.lit(pl.Series([None, None, *quantiles], dtype=pl.Float64)).gather(buckets, null_on_oob=True)


def bonferroni(level: float, tests: int, df: int) -> float:
    """The quantile with which so many intervals hold together."""
    return t_quantile(1 - (1 - level) / tests, df)


def _expanded(z: float, df: int) -> float:
    """The quantile by its expansion in 1 / df, right to 2e-8 from 200 degrees of freedom on, up to a level of 0.999."""
    terms: tuple[float, ...] = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + sum(term / float(df) ** (power + 1) for power, term in enumerate(terms))


def jackknife(value: pl.Expr, moved: pl.Expr, has_value: pl.Expr) -> dict[str, pl.Expr]:
    """Sums over the replicates of a group, from which `standard_error` makes that of its value.

    `value` is the value without a bucket, `moved` how far it is from the value of all, and `has_value` whether the
    bucket alone has one. A usable bucket has one, or moves the value.
    """
    return {
        "buckets": (has_value | (moved != 0).fill_null(False)).sum().cast(pl.Int64),
        "squares": (moved * moved).sum(),
        "is_known": value.is_finite().fill_null(False).all(),
    }


def standard_error(buckets: pl.Expr, squares: pl.Expr) -> pl.Expr:
    """That of the jackknife: from the squares of how far the value moves without each of so many buckets."""
    return ((buckets - 1) / buckets * squares).sqrt()


def error_of_parts(buckets: pl.Expr, squares: pl.Expr) -> pl.Expr:
    """That of a value which the rows of so many buckets move, from the squares of how far each moves it."""
    return (buckets / (buckets - 1) * squares).sqrt()


def benjamini_hochberg(family: Sequence[str | pl.Expr]) -> pl.Expr:
    """The column p, adjusted for how many there are in each family."""
    p = pl.col("p")
    scaled = p * p.count().over(family) / p.rank("max").over(family)
    return scaled.cum_min().over(family, order_by="p", descending=True).clip(upper_bound=1.0)


def units_behind(share: pl.Expr, error: pl.Expr) -> pl.Expr:
    """How many independent units a share between 0 and 1 of this standard error is made of."""
    return share * (1 - share) / error**2


def units_in(occupied: pl.Expr, buckets: int) -> pl.Expr:
    """How many units there are, about, where they fall into so many of the buckets."""
    occupied = pl.min_horizontal(occupied.cast(pl.Float64), pl.lit(buckets - 0.5))
    return (1 - occupied / buckets).log() / log(1 - 1 / max(buckets, 2))


def wilson(share: pl.Expr, units: pl.Expr, z: float) -> tuple[pl.Expr, pl.Expr]:
    """The ends of Wilson's interval for a share of so many units; of a share of 0, rounding would put one below 0."""
    center = (share + z**2 / (2 * units)) / (1 + z**2 / units)
    half = z / (1 + z**2 / units) * (share * (1 - share) / units + z**2 / (4 * units**2)).sqrt()
    return (center - half).clip(0, 1), (center + half).clip(0, 1)


CONSTANT_Z = 1.96
"""How many standard errors an end of Wilson's interval is away, for `error_of_constant`."""


def error_of_constant(value: pl.Expr, occupied: pl.Expr, buckets: int, range_: tuple[float, float]) -> pl.Expr:
    """The standard error of a value that no bucket moves, by the units that so many buckets stand for.

    Replicates show no error then, however few units there are. A value without bounds has no such error.
    """
    low, high = range_
    if not isfinite(low) or not isfinite(high):
        return pl.lit(0.0)
    share = ((value - low) / (high - low)).clip(0, 1)
    ends = wilson(share, units_in(occupied.clip(1), buckets), CONSTANT_Z)
    away = pl.max_horizontal(share - ends[0], ends[1] - share)
    return away * ((high - low) / CONSTANT_Z)


def p_value(t: pl.Expr, df: pl.Expr, most: int) -> pl.Expr:
    """The chance of a value of Student's t as far from 0, on either side, with at most so many degrees of freedom."""
    angle = (t.abs() / df.sqrt()).arctan()
    sine, cosine = angle.sin(), angle.cos()
    exact = min(most, EXACT)
    of_odd = angle + pl.when(df > 1).then(sine * cosine * _series(cosine**2, df, exact, is_odd=True)).otherwise(0.0)
    within = pl.when(df % 2 == 0).then(sine * _series(cosine**2, df, exact, is_odd=False)).otherwise(2 / pi * of_odd)
    if most > EXACT:
        within = pl.when(df <= EXACT).then(within).otherwise(1 - _normal_tails(_as_normal(t, df)))
    return (1 - within).clip(0, 1)


def _series(step: pl.Expr, df: pl.Expr, most: int, *, is_odd: bool) -> pl.Expr:
    """The sum in `share_within`, from its last term to its first: each degree of freedom has its number of terms."""
    total = pl.lit(1.0)
    for k in range(most // 2, 0, -1):
        more = pl.when(df >= 2 * k + 2 + is_odd).then(step * ((2 * k - 1 + is_odd) / (2 * k + is_odd)) * total)
        total = 1.0 + more.otherwise(0.0)
    return total


def _as_normal(t: pl.Expr, df: pl.Expr) -> pl.Expr:
    """The value of a normal distribution beyond which as much lies (Hill 1970): from 200 degrees of freedom on."""
    square = (df - 0.5) * (1 + t**2 / df).log()
    return square.sqrt() * (1 + (square + 3) / (48 * (df - 0.5) ** 2))


def _normal_tails(z: pl.Expr) -> pl.Expr:
    """How much of a normal distribution lies beyond -z and z, right to 2e-7 (Abramowitz and Stegun 7.1.26)."""
    x = z / sqrt(2)
    share = 1 / (1 + 0.3275911 * x)
    terms = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
    total = pl.lit(0.0)
    for term in terms:
        total = (total + term) * share
    return total * (-(x**2)).exp()
