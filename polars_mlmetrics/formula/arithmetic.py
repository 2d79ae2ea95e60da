"""The only division of the package; logarithms near 0 and infinity, bounds on what is rounded, and bits of floats."""

import math
import sys
from collections.abc import Sequence

import polars as pl


def ratio(numerator: pl.Expr | float, denominator: pl.Expr) -> pl.Expr:
    """Divide; null where the denominator is 0."""
    return numerator / pl.when(denominator != 0).then(denominator)


def ratio_of_counts(numerator: pl.Expr, count: pl.Expr) -> pl.Expr:
    """Divide by a whole number that is never below 0; null where it is 0.

    Unlike in `ratio` the count is written once: inside `agg` Polars works a repeated expression out again.
    """
    # No unsigned number is -1, and what a type does not hold is null.
    return numerator / ((count - 1).cast(pl.UInt64, strict=False) + 1)


def quotient(numerator: pl.Expr, denominator: pl.Expr) -> pl.Expr:
    """Divide, where somebody else sees to it that the denominator is not 0, or that nobody reads what it gives then."""
    return numerator / denominator


def share(part: pl.Expr, whole: pl.Expr) -> pl.Expr:
    """Divide a part by its whole; 0 where the whole, and so the part, is 0."""
    return part / whole.cast(pl.Float64).clip(lower_bound=math.ulp(0.0))


PARTS = 2.0**255
"""A product of four parts of so many is a number still, and one of four small parts not 0 yet."""


def as_parts_of(values: Sequence[pl.Expr], whole: pl.Expr) -> list[pl.Expr]:
    """Values in parts of about their whole, which is positive or 0: products of four are numbers, whatever the unit.

    The part is a power of two, so that nothing is rounded.
    """
    exponent = bits_of(whole.clip(lower_bound=sys.float_info.min)) // 2**52
    size = (exponent * 2**52).reinterpret(dtype=pl.Float64)
    return [value / size * PARTS for value in values]


def times_own_log(share: pl.Expr, rest: pl.Expr) -> pl.Expr:
    """`share · ln share`, given what the share leaves of 1: next to 1 only that still says how far it is from it."""
    log = pl.when(share > 0.5).then((-rest).log1p()).otherwise(share.clip(lower_bound=sys.float_info.min).log())
    return share * log


def times_log(factor: pl.Expr, value: pl.Expr, *, base: float = math.e, of_zero: float = -math.inf) -> pl.Expr:
    """`factor · log value`, where a factor of 0 gives 0 whatever the value, and log 0 is `of_zero`."""
    return _times(factor, pl.when(value == 0).then(of_zero).otherwise(value.log(base)))


def times_log_of_rest(factor: pl.Expr, value: pl.Expr, *, base: float = math.e, of_zero: float = -math.inf) -> pl.Expr:
    """`factor · log(1 - value)`, in the same way, and right for small values too: 1 less them is rounded."""
    return _times(factor, pl.when(value == 1).then(of_zero).otherwise(log_of_rest(value, base=base)))


def log_of_rest(value: pl.Expr, *, base: float = math.e) -> pl.Expr:
    """`log(1 - value)`, right for small values too: 1 less them is rounded."""
    log = (-value).log1p()
    return log if base == math.e else log * (1 / math.log(base))


def _times(factor: pl.Expr, value: pl.Expr) -> pl.Expr:
    return pl.when(factor == 0).then(0.0).otherwise(factor * value)


def log1p_exp(value: pl.Expr) -> pl.Expr:
    """`ln(1 + e^-|value|)`: what `ln(1 + e^value)` is beyond max(value, 0). It cannot overflow."""
    return (-value.abs()).exp().log1p()


def less_log1p(value: pl.Expr) -> pl.Expr:
    """`value - ln(1 + value)` of a value of 0 or more, right for small ones too: there the two are nearly equal."""
    # Below 0.01 the next term of the series, x^11/11, is below the last digit.
    series = pl.lit(0.0)
    for power in range(10, 1, -1):
        series = series * value + (-1) ** power * power**-1
    return pl.when(value < 0.01).then(series * value**2).otherwise(value - value.log1p())


def log_cosh_of(value: pl.Expr) -> pl.Expr:
    """`ln cosh value`, right for small values too: their cosh is 1. It cannot overflow."""
    size = value.abs()
    far = size + log1p_exp(2 * size) - math.log(2)
    return pl.when(size < 1).then(0.5 * (size.sinh() ** 2).log1p()).otherwise(far)


def sigmoid(logit: pl.Expr) -> pl.Expr:
    """`1 / (1 + e^-logit)`; e^-logit may be infinite, and then this is 0."""
    return 1.0 / (1.0 + (-logit).exp())


def logit(probability: pl.Expr) -> pl.Expr:
    """`ln p - ln(1 - p)`: infinite at 0 and at 1."""
    return probability.log() - (-probability).log1p()


def has_squares(size: pl.Expr, weight: pl.Expr) -> pl.Expr:
    """Whether a float holds weighted squares of values of this size, and of values much smaller, with all digits."""
    return size.is_between(1e-135, 1e150) & (weight * size * size).is_between(1e-270, 1e300)


ROUNDING = 1e-12
"""How far, in parts of itself, a sum of weights may be from what it is: the order of summation decides."""


def unless_rounding(total: pl.Expr, sizes: pl.Expr) -> pl.Expr:
    """A sum of weights of either sign; 0 where it is nothing but the rounding of terms of these sizes."""
    return pl.when(total.abs() > sizes * ROUNDING).then(total).otherwise(0.0)


def reaches(value: pl.Expr, bound: pl.Expr | float) -> pl.Expr:
    """Whether a sum or a share of weights is at least a bound, not heeding rounding."""
    return value >= bound * (1 - ROUNDING)


def exceeds(value: pl.Expr, bound: pl.Expr | float) -> pl.Expr:
    """Whether a sum or a share of weights is more than a bound, not heeding rounding."""
    return value > bound * (1 + ROUNDING)


def bits_of(number: pl.Expr) -> pl.Expr:
    """The 64 bits of a float, of which only one 0 is."""
    return pl.when(number == 0).then(0.0).otherwise(number).reinterpret(dtype=pl.UInt64)


def by_float_type(value: pl.Expr, *, half: pl.Expr, single: pl.Expr, double: pl.Expr) -> pl.Expr:
    """One of three, by the float type of a column. Its values tell it: next to 1, a short float cannot hold 1e-12."""
    one = value.fill_nan(1.0).clip(1.0, 1.0)
    return pl.when(one + 1e-5 == one).then(half).when(one + 1e-12 == one).then(single).otherwise(double)


def edge(place: pl.Expr, bins: int) -> pl.Expr:
    """`place / bins`, correctly rounded, as Python has it."""
    # Polars multiplies by the reciprocal of a divisor that is one number: 3 / 10 would be 0.30000000000000004.
    return place.cast(pl.Float64) / (place * 0 + bins)


def bin_of(value: pl.Expr, bins: int) -> pl.Expr:
    """The number of the bin that a value from 0 to 1 is in: of the last edge that it reaches; 1 is in the last bin."""
    near = (value * bins).floor().clip(0, bins - 1)
    # The product is rounded: 0.29 * 100 is below 29.
    reaches_next = (value >= edge(near + 1, bins)).cast(pl.Float64)
    misses_own = (value < edge(near, bins)).cast(pl.Float64)
    return (near + reaches_next - misses_own).clip(0, bins - 1)


def whole_times(size: int, amount: int) -> int:
    """How many times a size it takes to hold an amount: 1 at least."""
    return max(1, -(-amount // size))


def cuts(length: int, parts: int) -> list[int]:
    """The borders of so many parts of a length, as even as possible."""
    return [length * part // parts for part in range(1, parts)]


def inverse_log2(place: pl.Expr) -> pl.Expr:
    """`1 / log2(place + 1)`, of places from 1."""
    return math.log(2) / (place + 1).log()


def inverse(place: pl.Expr) -> pl.Expr:
    """`1 / place`, of places from 1."""
    return 1.0 / place


def first_that_holds(cases: Sequence[tuple[pl.Expr, pl.Expr]], otherwise: pl.Expr) -> pl.Expr:
    """The value of the first case whose condition holds."""
    for condition, value in reversed(cases):
        otherwise = pl.when(condition).then(value).otherwise(otherwise)
    return otherwise
