"""Packing: several numbers as the bits of one, which is sorted, matched or added up faster than they are."""

from __future__ import annotations

import polars as pl

from polars_mlmetrics.formula.arithmetic import bits_of


def modulo(code: pl.Expr, parts: int) -> pl.Expr:
    """Which of so many parts a code falls in."""
    return code % parts


def part_of(number: pl.Expr, size: int) -> pl.Expr:
    """Which part a number lies in, of parts of one size."""
    return number // size


def splitmix(number: pl.Expr) -> pl.Expr:
    """A number of 64 bits, scrambled by the finalizer of SplitMix64: the same on any machine, in any version."""
    # Each step reads the one before twice. As the field of a struct it is computed once.
    mixed, field = pl.struct((number + pl.lit(0x9E3779B97F4A7C15, dtype=pl.UInt64)).alias("mixed")), pl.field("mixed")
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = mixed.struct.with_fields((field ^ (field // 2**shift)) * pl.lit(factor, dtype=pl.UInt64))
    return mixed.struct.with_fields(field ^ (field // 2**31)).struct.field("mixed")


FIXED_POINT = 2.0**44


def as_fixed_point(value: pl.Expr) -> pl.Expr:
    """A value as a whole number of 2^-44: sums of these are exact, modulo 2^64.

    So the difference of two running sums is exact too, however long they have run, where it is below 2^19.
    """
    return (value * FIXED_POINT).round().cast(pl.Int64)


def from_fixed_point(value: pl.Expr) -> pl.Expr:
    """The value again."""
    return value.cast(pl.Float64) * FIXED_POINT**-1


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
    """The truth that was packed into a sort key."""
    _, low = halves(key)
    return low % 2 == 1


BUCKETS_IN_KEY = 2**9
"""How many buckets, and numbers of clusters, a sort key has room for: its code has so many bits less."""


def short(code: pl.Expr) -> pl.Expr:
    """A code with room for a bucket."""
    return code // BUCKETS_IN_KEY


def with_bucket(key: pl.Expr, bucket: pl.Expr) -> pl.Expr:
    """A sort key of a short code, and below it a bucket."""
    return key * BUCKETS_IN_KEY + bucket.cast(pl.UInt128)


def without_bucket(key: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """The sort key and the bucket again."""
    _, low = halves(key)
    return key // BUCKETS_IN_KEY, low % BUCKETS_IN_KEY


def cell_of(code: pl.Expr, truth: pl.Expr, bucket: pl.Expr) -> pl.Expr:
    """An even short code, the truth and a bucket as one number."""
    return (code + truth.cast(pl.UInt64)) * BUCKETS_IN_KEY + bucket


def parts_of_cell(cell: pl.Expr) -> tuple[pl.Expr, pl.Expr, pl.Expr]:
    """The short code, the truth and the bucket again."""
    code = cell // BUCKETS_IN_KEY
    return even(code), code % 2 == 1, (cell % BUCKETS_IN_KEY).cast(pl.Int64)


def is_of_code(change: pl.Expr) -> pl.Expr:
    """Whether a change of a key, the bits that two do not have in common, is one of its code."""
    return change >= 2**65


def is_of_number(change: pl.Expr) -> pl.Expr:
    """Whether a change of a key is one of its number, or of its code."""
    return change >= 2


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
