"""Sums over all pairs of rows, without looking at each: pairs in opposite orders, and gaps of the one from the other.

Pairs in opposite orders are counted by digits. Rows lie in the one order, and each has a place, from 0, in the other. A
pair is discordant if its later row has the lower place. Of two places the higher binary digits are equal down to the
first that differs, where the lower place has a 0 and the higher one a 1. So each pair is counted at one digit: with the
rows in blocks of equal higher digits, in a block in the one order, it is a 1 before a 0. All 1s before a 0, less those
before it where the rows lie in the order of their places, are those of its own block: there all 0s of a block come
before its 1s. A digit takes one sort.
"""

from collections.abc import Sequence

import polars as pl

DIGITS = 32
"""Polars counts the rows of a group by so many binary digits."""


def discordant_pairs(one: pl.Expr, other: pl.Expr) -> pl.Expr:
    """The number of pairs of which one row is higher in the one, and the other row in the other; ties are neither."""
    place = _place(one, other)
    found = [_pairs_of_digit(pl.element(), digit) for digit in range(DIGITS)]
    return _of_list(place.sort_by(one, place).implode(), found)


def weight_of_discordant_pairs(one: pl.Expr, other: pl.Expr, weight: pl.Expr) -> pl.Expr:
    """The product of the weights of two rows, summed over the same pairs."""
    place = _place(one, other)
    rows = pl.struct(place.alias("place"), weight.alias("weight")).sort_by(one, place).implode()
    row = pl.element().struct
    found = [_weight_of_digit(row.field("place"), row.field("weight"), digit) for digit in range(DIGITS)]
    return _of_list(rows, found)


def gap_by_chance(one: pl.Expr, other: pl.Expr, weight: pl.Expr) -> pl.Expr:
    """The mean gap of the one of a row from the other of any row, by weights as shares of all.

    Between two neighbours of all values, those pairs are apart of which one lies below and the other above.
    """
    sides = ((one, weight, 0 * weight), (other, 0 * weight, weight))
    names = ("value", "one", "other")
    lists = [pl.struct(row.alias(name) for name, row in zip(names, side, strict=True)).implode() for side in sides]
    value, *weights = map(pl.element().struct.field, names)
    in_order = lists[0].list.concat(lists[1]).list.eval(pl.element().sort_by(value))
    below, other_below = (weight.cum_sum() for weight in weights)
    # Added up from the other end: of weights that differ much, 1 less those below is rounding.
    above, other_above = (weight.cum_sum(reverse=True).shift(-1) for weight in weights)
    apart = (value.shift(-1) - value) * (below * other_above + other_below * above)
    return _of_list(in_order, [apart.sum()])


def _of_list(rows: pl.Expr, found: Sequence[pl.Expr]) -> pl.Expr:
    """The sum of numbers of rows that lie in a list, so that their order is worked out once."""
    # Without the maximum, of one number, a plan makes a list for each row.
    total: pl.Expr = rows.list.eval(pl.sum_horizontal(found)).explode().max()
    return total


def _place(one: pl.Expr, other: pl.Expr) -> pl.Expr:
    """The place of a row by the other, lowest first; of equal ones by the one, so that a tie is no discordant pair."""
    return (pl.struct(other.alias("other"), one.alias("one")).rank("ordinal") - 1).cast(pl.UInt64)


def _in_blocks(place: pl.Expr, digit: int) -> pl.Expr:
    """A number that sorts rows by the higher digits of their places, then as they lie; its last bit is the digit."""
    higher = (place & ((1 << DIGITS) - (2 << digit))) * (1 << (DIGITS - digit))
    as_it_lies = pl.int_range(pl.len(), dtype=pl.UInt64) * 2
    return higher + as_it_lies + (place & (1 << digit) != 0).cast(pl.UInt64)


def _pairs_of_digit(place: pl.Expr, digit: int) -> pl.Expr:
    # Of a 0 that lies at p with z other 0s before it, p - z are 1s; in the order of places it lies at its place.
    lies_at = (_in_blocks(place, digit).sort() & 1 == 0).arg_true()
    return lies_at.cast(pl.Int64).sum() - place.filter(place & (1 << digit) == 0).sum().cast(pl.Int64)


def _weight_of_digit(place: pl.Expr, weight: pl.Expr, digit: int) -> pl.Expr:
    block = _in_blocks(place, digit)
    in_order = _weight_of_1_before_0(weight.sort_by(block), block.sort() & 1 == 1)
    return in_order - _weight_of_1_before_0(weight.sort_by(place), place.sort() & (1 << digit) != 0)


def _weight_of_1_before_0(weight: pl.Expr, is_1: pl.Expr) -> pl.Expr:
    ones = pl.when(is_1).then(weight).otherwise(0.0)
    return pl.when(is_1).then(0.0).otherwise(weight * ones.cum_sum()).sum()
