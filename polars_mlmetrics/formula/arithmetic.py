"""The only division of the package; logarithms near 0 and infinity, bounds on what is rounded, and sort keys."""

import math
import sys
from collections.abc import Sequence

import polars as pl


def ratio(numerator: pl.Expr | float, denominator: pl.Expr) -> pl.Expr:
    """Divide; null where the denominator is 0."""
    return numerator / pl.when(denominator != 0).then(denominator)


def share(part: pl.Expr, whole: pl.Expr) -> pl.Expr:
    """Divide a part by its whole; 0 where the whole, and so the part, is 0.

    Unlike in `ratio` the whole is written once: inside `agg` Polars works a repeated expression out again.
    """
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
    return (-value).log1p() * (1 / math.log(base))


def _times(factor: pl.Expr, value: pl.Expr) -> pl.Expr:
    return pl.when(factor == 0).then(0.0).otherwise(factor * value)


def log1p_exp(value: pl.Expr) -> pl.Expr:
    """`ln(1 + e^-|value|)`: what `ln(1 + e^value)` is beyond max(value, 0). It cannot overflow."""
    return (-value.abs()).exp().log1p()


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


def by_float_type(value: pl.Expr, *, half: pl.Expr, single: pl.Expr, double: pl.Expr) -> pl.Expr:
    """One of three, by the float type of a column. Its values tell it: next to 1, a short float cannot hold 1e-12."""
    one = value.fill_nan(1.0).clip(1.0, 1.0)
    return pl.when(one + 1e-5 == one).then(half).when(one + 1e-12 == one).then(single).otherwise(double)


def whole_times(size: int, amount: int) -> int:
    """How many times a size it takes to hold an amount: 1 at least."""
    return max(1, -(-amount // size))


def cuts(length: int, parts: int) -> list[int]:
    """The borders of so many parts of a length, as even as possible."""
    return [length * part // parts for part in range(1, parts)]


def modulo(code: pl.Expr, parts: int) -> pl.Expr:
    """Which of so many parts a code falls in."""
    return code % parts


def splitmix(number: pl.Expr) -> pl.Expr:
    """A number of 64 bits, scrambled by the finalizer of SplitMix64: the same on any machine, in any version."""
    mixed = number + pl.lit(0x9E3779B97F4A7C15, dtype=pl.UInt64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed // 2**shift)) * pl.lit(factor, dtype=pl.UInt64)
    return mixed ^ (mixed // 2**31)


FIXED_POINT = 2.0**44


def as_fixed_point(value: pl.Expr) -> pl.Expr:
    """A value as a whole number of 2^-44: sums of these are exact, modulo 2^64.

    So the difference of two running sums is exact too, however long they have run, where it is below 2^19.
    """
    return (value * FIXED_POINT).round().cast(pl.Int64)


def from_fixed_point(value: pl.Expr) -> pl.Expr:
    """The value again."""
    return value.cast(pl.Float64) * (1 / FIXED_POINT)


def discount(place: pl.Expr) -> pl.Expr:
    """`1 / log2(place + 1)`, of places from 1."""
    return math.log(2) / (place + 1).log()


def even(code: pl.Expr) -> pl.Expr:
    """A code without its last bit."""
    return code // 2 * 2


SMALL = 2**32
"""Ids below it have room in a code together with a number of a group."""


def number_of_group(code: pl.Expr) -> pl.Expr:
    """31 bits of the code of a group; the same of a code that holds them."""
    return code // (2 * SMALL)


def code_of_small(group: pl.Expr, number: pl.Expr) -> pl.Expr:
    """An even code that holds the number of a group, and a whole number from 0 to below `SMALL`."""
    return group * (2 * SMALL) + number.cast(pl.UInt64) * 2


def small_of_code(code: pl.Expr) -> pl.Expr:
    """The whole number in such a code."""
    return code % (2 * SMALL) // 2


# A sort key is 63 bits of a code, 64 of a number upside down, which lies across the middle, and 1 of truth.


def sort_key(code: pl.Expr, number: pl.Expr, truth: pl.Expr) -> pl.Expr:
    """One integer that sorts by code, then by number, highest first, then by truth, false first."""
    bits = bits_of(number)
    falling = pl.when(bits >= 2**63).then(bits).otherwise(2**63 - 1 - bits)
    high = even(code) + falling // 2**63
    low = falling * 2 + truth.cast(pl.UInt64)
    return from_halves(high, low)


def code_in_key(key: pl.Expr) -> pl.Expr:
    """The code, without its last bit."""
    high, _ = halves(key)
    return even(high)


def number_in_key(key: pl.Expr) -> pl.Expr:
    """The number."""
    _, falling = halves(key // 2)
    bits = pl.when(falling >= 2**63).then(falling).otherwise(2**63 - 1 - falling)
    return bits.reinterpret(dtype=pl.Float64)


def truth_in_key(key: pl.Expr) -> pl.Expr:
    """The truth."""
    _, low = halves(key)
    return low % 2 == 1


def is_of_code(change: pl.Expr) -> pl.Expr:
    """Whether a change of a key, the bits that two do not have in common, is one of its code."""
    return change >= 2**65


def is_of_number(change: pl.Expr) -> pl.Expr:
    """Whether a change of a key is one of its number, or of its code."""
    return change >= 2


def bits_of(number: pl.Expr) -> pl.Expr:
    """The 64 bits of a float, of which only one 0 is."""
    return pl.when(number == 0).then(0.0).otherwise(number).reinterpret(dtype=pl.UInt64)


def from_halves(high: pl.Expr, low: pl.Expr) -> pl.Expr:
    """Two numbers of 64 bits as one of 128."""
    return high.cast(pl.UInt128) * 2**64 + low.cast(pl.UInt128)


def halves(key: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """The upper and the lower half again."""
    return (key // 2**64).cast(pl.UInt64), key.cast(pl.UInt64, strict=False, wrap_numerical=True)


# Two counts are one number of 64 bits, so that one subtraction is of both.


def two_counts(first: pl.Expr, second: pl.Expr) -> pl.Expr:
    """Two counts below 2^32 as one number."""
    return first.cast(pl.UInt64) * 2**32 + second.cast(pl.UInt64)


def counts_of(two: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """The two counts again."""
    return (two // 2**32).cast(pl.Int64), (two % 2**32).cast(pl.Int64)


# A pair is one number of 128 bits: 63 of an even number that is never null, 1 that says whether a second number is
# null, and 64 of the second number.


def pair_of(code: pl.Expr, number: pl.Expr) -> pl.Expr:
    """An even code and a whole number as one number; the second may be null."""
    high = code + number.is_null().cast(pl.UInt64)
    low = number.fill_null(0).cast(pl.UInt64, wrap_numerical=True)
    return from_halves(high, low)


def first_of_pair(pair: pl.Expr) -> pl.Expr:
    """The even number of a pair."""
    high, _ = halves(pair)
    return even(high)


def second_of_pair(pair: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """The second number of a pair, in its own type."""
    high, low = halves(pair)
    return pl.when(high % 2 == 0).then(low.cast(dtype, wrap_numerical=True))
