"""The arithmetic of intervals: quantiles, standard errors and ends. What is divided by here is never 0."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from math import isfinite, lgamma, log, log1p, pi, sqrt
from statistics import NormalDist

import polars as pl

from polars_mlmetrics.data.numpy_later import Numbers, np
from polars_mlmetrics.formula.arithmetic import ratio, reaches

DEGREE = 20
"""That of polynomials in 1 / df. Quantiles of levels up to 0.999 are right to 2e-10."""

CUT = 40.0
"""A tail ends where the logarithm of the density is so much lower than where it begins."""


def normal_quantile(level: float) -> float:
    """Between which values, minus and plus, the share `level` of a normal distribution lies."""
    return NormalDist().inv_cdf((1 + level) / 2)


def t_at(df: pl.Expr, level: float) -> pl.Expr:
    """Between which values, minus and plus, the share `level` of Student's t lies. `df` is 1 or more, whole or not."""
    return _polynomial(_log_quantiles(level), df).exp()


def shared_level(level: float, tests: int) -> float:
    """The level of each of so many intervals with which all hold together (Bonferroni)."""
    return 1 - (1 - level) / tests


def p_value(t: pl.Expr, df: pl.Expr) -> pl.Expr:
    """The chance of a value of Student's t as far from 0, on either side. `df` is 1 or more, whole or not."""
    # With t = √df · tan(angle), the density is cos(angle) ** (df - 1).
    angle = (t.abs() / df.sqrt()).arctan()
    end = (angle.cos() * (-CUT / (df - 1)).exp()).arccos()
    width, steps = end - angle, zip(*(numbers.tolist() for numbers in _steps()), strict=True)
    tail = pl.sum_horizontal(weight * (end - width * node).cos() ** (df - 1) for node, weight in steps)
    of_all = df.sqrt() * _polynomial(_in_inverse(_share_per_tail), df)
    return (width * tail * of_all).clip(0, 1)


def at_every_look(rows: pl.Expr, level: float, tightest: int) -> pl.Expr:
    """How many standard errors an end is away that is right at every look at all rows so far.

    `rows` is 1 or more. After Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas, "Time-uniform central limit theory and
    asymptotic confidence sequences" (2024): at so many rows as `tightest` says, it is as near as it can be.
    """
    x = _looked_at(rows, level, tightest)
    return (2 * (x + 1) / x * (0.5 * (x + 1).log() - log1p(-level))).sqrt()


def p_at_every_look(t: pl.Expr, rows: pl.Expr, level: float, tightest: int) -> pl.Expr:
    """The p that belongs to it: below 1 - level where a value that is t standard errors from 0 is further than that."""
    x = _looked_at(rows, level, tightest)
    return (0.5 * (x + 1).log() - 0.5 * t**2 * x / (x + 1)).exp().clip(upper_bound=1.0)


def _looked_at(rows: pl.Expr, level: float, tightest: int) -> pl.Expr:
    """The rows so far, in units with which an interval is tightest at about `tightest` of them."""
    surprise = -2 * log1p(-level)
    # Any unit above 0 is honest; this is nearly the best one, but for levels below .17.
    return rows * (max(surprise + log(surprise) + 1, surprise) / tightest)


@cache
def _steps() -> tuple[Numbers, Numbers]:
    """Where a tail of Student's t is looked at, from its end (0) to its beginning (1), and with which weight.

    By Gauss's rule, it is right to 2e-10 of itself. Third powers, since near its end a density of few degrees of
    freedom is steep.
    """
    nodes, weights = (0.5 * numbers for numbers in np.polynomial.legendre.leggauss(32))
    return (0.5 + nodes) ** 3, 3 * (0.5 + nodes) ** 2 * weights


def _share_per_tail(inverse: Numbers) -> Numbers:
    """By how much, over √df, a tail is multiplied to make all tails 1."""
    gammas = [lgamma(0.5 / each + 0.5) - lgamma(0.5 / each) for each in inverse.tolist()]
    return np.sqrt(inverse * (4 / pi)) * np.exp(gammas)


@cache
def _log_quantiles(level: float) -> tuple[float, ...]:
    """The polynomial that gives the logarithm of the quantile: Newton's steps on logarithms, from the normal one."""
    nodes, weights = _steps()

    def quantiles(inverse: Numbers) -> Numbers:
        df, scale = 1 / inverse, _share_per_tail(inverse)
        t = np.full_like(df, normal_quantile(level))
        for _ in range(20):
            angle = np.arctan(t / np.sqrt(df))
            end = np.arccos(np.cos(angle) * np.exp(-CUT / np.maximum(df - 1, 1e-9)))
            points = end - (end - angle) * nodes[:, None]
            beyond = np.sqrt(df) * scale * (end - angle) * (weights[:, None] * np.cos(points) ** (df - 1)).sum(axis=0)
            slope = scale * np.cos(angle) ** (df + 1) * t / beyond
            t *= np.exp(np.log(beyond / (1 - level)) / slope)
        return np.log(t)

    return _in_inverse(quantiles)


@cache
def _in_inverse(function: Callable[[Numbers], Numbers]) -> tuple[float, ...]:
    """The coefficients of the polynomial in 2 / df - 1 that is a function of 1 / df, for df from 1 on."""
    chebyshev = np.polynomial.chebyshev
    points = chebyshev.chebpts1(DEGREE + 1)
    found = chebyshev.chebfit(points, function(0.5 * (points + 1)), DEGREE)
    return tuple(chebyshev.cheb2poly(found).tolist())


def _polynomial(coefficients: Sequence[float], df: pl.Expr) -> pl.Expr:
    x, value = 2 / df - 1, pl.lit(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value = value * x + coefficient
    return value


def degrees_of_freedom(buckets: pl.Expr, deciding: pl.Expr | None) -> pl.Expr:
    """Those of a standard error of so many buckets, of which about as many decide it as `deciding` says; null below 1.

    Where the buckets move the value by normal deviations, a third of them decides.
    """
    most = (buckets - 1).cast(pl.Float64)
    if deciding is not None:
        most = pl.min_horizontal(most, (3 * deciding - 2).clip(lower_bound=3))
    return pl.when(buckets >= 2).then(most)


def welch(errors: Sequence[pl.Expr], df: Sequence[pl.Expr]) -> pl.Expr:
    """Those of a difference, from the errors and degrees of freedom of both sides (Welch and Satterthwaite).

    They are null where neither side varies.
    """
    larger = pl.max_horizontal(errors)
    one, other = (ratio(error, larger) ** 2 for error in errors)
    return ratio((one + other) ** 2, ratio(one**2, df[0]) + ratio(other**2, df[1]))


def jackknife(value: pl.Expr, moved: pl.Expr, size: pl.Expr, has_value: pl.Expr) -> dict[str, pl.Expr]:
    """Sums over the replicates of a group, from which `standard_error` makes that of its value.

    `value` is the value without a bucket, `moved` how far it is from the value of all, `size` how large what it is
    made of is, and `has_value` whether the bucket alone has one. A usable bucket has one, or moves the value.
    """
    return {
        "buckets": (has_value | (moved != 0).fill_null(False)).sum().cast(pl.Int64),
        **powers(moved, size),
        "is_known": value.is_finite().fill_null(False).all(),
    }


def powers(moved: pl.Expr, size: pl.Expr) -> dict[str, pl.Expr]:
    """The sums of the squares and of the fourth powers of how far each bucket moves a value, in units of `scale`.

    So they are numbers whatever the unit of the value is.
    """
    scale = pl.when(size > 0, size.is_finite()).then(size).otherwise(1.0)
    squares = (moved / scale) ** 2
    return {"scale": scale.first(), "squares": squares.sum(), "fourths": (squares * squares).sum()}


def powers_of_rows(moved: Numbers, size: Numbers) -> dict[str, Numbers]:
    """The same of the rows of an array."""
    scale = np.where((size > 0) & np.isfinite(size), size, 1.0)
    squares = (moved / scale[:, None]) ** 2
    return {"scale": scale, "squares": squares.sum(axis=1), "fourths": (squares * squares).sum(axis=1)}


def deciding(squares: pl.Expr, fourths: pl.Expr) -> pl.Expr:
    """About how many buckets decide a standard error; null where none moves the value."""
    return pl.when(fourths > 0).then((squares * squares / fourths).fill_nan(None))


def standard_error(buckets: pl.Expr, squares: pl.Expr, scale: pl.Expr) -> pl.Expr:
    """That of the jackknife: from the squares of how far the value moves without each of so many buckets."""
    return ((buckets - 1) / buckets * squares).sqrt() * scale


def benjamini_hochberg(family: Sequence[str | pl.Expr]) -> pl.Expr:
    """The column p, adjusted for how many there are in each family."""
    p = pl.col("p")
    scaled = p * p.count().over(family) / p.rank("max").over(family)
    return scaled.cum_min().over(family, order_by="p", descending=True).clip(upper_bound=1.0)


def holm(family: Sequence[str]) -> pl.Expr:
    """The column p, adjusted for how many there are in each family (also of those that are null), by Holm's method."""
    p = pl.col("p")
    scaled = p * (pl.len().over(family) - p.rank("min").over(family) + 1)
    return scaled.cum_max().over(family, order_by="p").clip(upper_bound=1.0)


def units_behind(share: pl.Expr, error: pl.Expr) -> pl.Expr:
    """How many independent units a share between 0 and 1 of this standard error is made of."""
    return share * (1 - share) / error**2


def has_few_errors(share: pl.Expr, error: pl.Expr, fewest: int) -> pl.Expr:
    """Whether a share of this standard error is as skewed as one near 1 whose units have fewer errors than these.

    The skewness of a share p of n units is (1 - 2p) / √(n p (1 - p)); with those of `units_behind` for n this is
    (1 - 2p) · error / (p (1 - p)).
    """
    return ~reaches(share * (1 - share), sqrt(fewest) * (1 - 2 * share).abs() * error)


def units_in(occupied: pl.Expr, buckets: int) -> pl.Expr:
    """How many units there are, about, where they fall into so many of the buckets."""
    occupied = pl.min_horizontal(occupied.cast(pl.Float64), pl.lit(buckets - 0.5))
    return (1 - occupied / buckets).log() / log(1 - 1 / max(buckets, 2))


def clusters_in(occupied: pl.Expr, buckets: int, is_numbered: pl.Expr) -> pl.Expr:
    """How many clusters there are, about: as many as buckets where each has its own."""
    return pl.when(is_numbered).then(occupied.cast(pl.Float64)).otherwise(units_in(occupied, buckets))


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


STEPS, TINY = 400, 1e-300
"""How many steps a continued fraction takes at most, and what stands for a 0 in it."""


def beyond_f(value: Numbers, df: Numbers, df_below: Numbers) -> Numbers:
    """The chance of a larger value of Fisher's F. The degrees of freedom are above 0, whole or not; NaN gives NaN."""
    share = df_below / (df_below + df * value)
    a, b = 0.5 * df_below, 0.5 * df
    # The fraction converges fast on one side of the mean.
    turned = share > (a + 1) / (a + b + 2)
    share, a, b = np.where(turned, 1 - share, share), np.where(turned, b, a), np.where(turned, a, b)
    with np.errstate(divide="ignore"):  # of a value of 0, or without end, there is a logarithm of 0
        powers_of_share = a * np.log(share) + b * np.log1p(-share)
    found = np.exp(powers_of_share - _log_beta(a, b)) / a * _fraction_of_beta(share, a, b)
    chance: Numbers = np.where(turned, 1 - found, found).clip(0, 1)
    return chance


def _log_beta(a: Numbers, b: Numbers) -> Numbers:
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    return np.array([lgamma(one) + lgamma(other) - lgamma(one + other) for one, other in pairs])


def _fraction_of_beta(share: Numbers, a: Numbers, b: Numbers) -> Numbers:
    """The continued fraction of the incomplete beta function, by Lentz's algorithm."""

    def no_zero(number: Numbers) -> Numbers:
        return np.where(np.abs(number) < TINY, TINY, number)

    upper, lower = np.ones_like(share), 1 / no_zero(1 - (a + b) * share / (a + 1))
    fraction = lower
    for m in range(1, STEPS):
        even = m * (b - m) * share / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * share / ((a + 2 * m) * (a + 2 * m + 1))
        before = fraction
        for term in (even, odd):
            lower, upper = 1 / no_zero(1 + term * lower), no_zero(1 + term / upper)
            fraction = fraction * lower * upper
        if not (np.abs(fraction - before) > 1e-15 * fraction).any():
            break
    return fraction


def inverse(numbers: Numbers) -> Numbers:
    """1 over numbers; 0 of those that are not above 0, and NaN of NaN."""
    return np.where(numbers <= 0, 0.0, 1 / np.where(numbers <= 0, 1.0, numbers))


def shares_of(parts: Numbers) -> Numbers:
    """Parts of a whole, along the last axis, as shares; NaN where there is nothing."""
    whole = parts.sum(axis=-1, keepdims=True)
    return parts / np.where(whole > 0, whole, np.nan)
