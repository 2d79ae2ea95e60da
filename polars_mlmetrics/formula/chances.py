"""Chances in a tie whose rows may stand in any order, each order as likely as another.

Of `tied` rows some are marked, and some of the first ones count. All of it is right to about 1e-13, in ties of 10,000
rows too: nothing is the small difference of large numbers.
"""

import math
from collections.abc import Callable, Sequence

import polars as pl

from polars_mlmetrics.formula.arithmetic import quotient

FEW = 16
"""The most places that are looked at one by one; of more, chances are worked out in closed form."""

LARGE = 257
"""From here on two terms of Stirling's series are exact; what is smaller is looked up. An expression is short so."""

_EULER = 0.5772156649015329


def _odd_powers(value: float, coefficients: Sequence[float]) -> float:
    """The sum of coefficients, of the first, third, fifth power of a value and so on."""
    return math.fsum(coefficient * value ** (2 * turn + 1) for turn, coefficient in enumerate(coefficients))


def _error_of_stirling(number: int) -> float:
    """`ln number!` less Stirling's formula for it; 0 for 0."""
    if number > 16:
        return _odd_powers(number**-1, (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188))
    large = 0.0 if number == 0 else (number + 0.5) * math.log(number) - number + 0.5 * math.log(math.tau)
    return math.lgamma(number + 1) - large


_STIRLING = pl.Series([_error_of_stirling(number) for number in range(LARGE)])

_HARMONIC = pl.Series([math.fsum(number**-1 for number in range(1, upto + 1)) for upto in range(65)])
"""`1/1 + … + 1/number`."""


def mean_at_first(value: Callable[[int], pl.Expr], tied: pl.Expr, marked: pl.Expr, *, places: int) -> pl.Expr:
    """The mean of what the place of the first marked row of a tie is worth; places beyond some are worth nothing."""
    mean = pl.lit(0.0)
    for place in range(places, 0, -1):
        # The share of marked rows among those that are left. Where none is left it is not read.
        chance = quotient(marked, tied - (place - 1)).clip(0.0, 1.0)
        mean = chance * value(place) + (1.0 - chance) * mean
    return mean


def all_marked_at_first(tied: pl.Expr, marked: pl.Expr, *, places: int) -> pl.Expr:
    """The chance that all of so many first rows of a tie are marked: `C(marked, places) / C(tied, places)`."""
    chance = pl.lit(1.0)
    for place in range(places):
        chance *= quotient((marked - place).clip(0), tied - place)
    return chance


def any_marked(tied: pl.Expr, marked: pl.Expr, first: pl.Expr) -> pl.Expr:
    """The chance that one of the first rows of a tie is marked: `1 - C(tied - marked, first) / C(tied, first)`."""
    # 1 - e^log, right for small logarithms too.
    half = 0.5 * _log_of_none(tied, marked, first).clip(lower_bound=-700.0)
    simple = (marked == 1) | (first == 0)  # and then it is exact
    return pl.when(simple).then(quotient(first, tied)).otherwise(-2.0 * half.sinh() * half.exp())


def none_marked(tied: pl.Expr, marked: pl.Expr, first: pl.Expr) -> pl.Expr:
    """The chance that none of the first rows of a tie is marked: `C(tied - marked, first) / C(tied, first)`."""
    return _log_of_none(tied, marked, first).exp()


def first_marked_at(place: pl.Expr, tied: pl.Expr, marked: pl.Expr) -> pl.Expr:
    """The chance that the first marked row of a tie is at a place: `C(tied - place, marked - 1) / C(tied, marked)`."""
    left = tied - place + 1
    chance = quotient(_log_of_none(tied, marked, place - 1).exp() * marked, left)
    return pl.when(marked == 1).then(quotient(pl.lit(1.0), tied)).when(left >= marked).then(chance).otherwise(0.0)


def _log_of_none(tied: pl.Expr, marked: pl.Expr, first: pl.Expr) -> pl.Expr:
    """`ln(C(tied - marked, first) / C(tied, first))`: none of the first rows of a tie is marked."""
    tied, marked, first = (number.cast(pl.Float64) for number in (tied, marked, first))
    unmarked, later, neither = tied - marked, tied - first, tied - marked - first
    # Stirling's formula of the four factorials, whose large parts are taken off one another first.
    log = _times_log_of_rest(unmarked, quotient(marked, tied)) + _times_log_of_rest(later, quotient(first, tied))
    log -= _times_log_of_rest(neither, quotient(marked + first, tied))
    log += 0.5 * quotient(_root(unmarked) * _root(later), _root(neither) * tied).log()
    log += _stirling_rest(unmarked) + _stirling_rest(later) - _stirling_rest(neither) - _stirling_rest(tied)
    return pl.when(neither < 0).then(-math.inf).otherwise(log)


def _times_log_of_rest(number: pl.Expr, part: pl.Expr) -> pl.Expr:
    """`number · ln(1 - part)`."""
    # Where the rest is 0, so is the number.
    return number * (-part).clip(lower_bound=math.ulp(1.0) - 1.0).log1p()


def _root(number: pl.Expr) -> pl.Expr:
    """The number under the root of Stirling's formula, divided by 2π. For 0, whose factorial is 1, the root is 1."""
    return pl.when(number > 0).then(number).otherwise(1 / math.tau)


def _stirling_rest(number: pl.Expr) -> pl.Expr:
    """The error of Stirling's formula for `ln number!`."""
    series = quotient(1 / 12 - quotient(pl.lit(1 / 360), number * number), number)
    return pl.when(number < LARGE).then(_looked_up(_STIRLING, number)).otherwise(series)


def sum_of_inverses(above: pl.Expr, upto: pl.Expr, *, at_most: int | None = None) -> pl.Expr:
    """`1/(above + 1) + … + 1/upto`; `upto` is at most so much, where that is known."""
    in_table = _looked_up(_HARMONIC, upto) - _looked_up(_HARMONIC, above)
    largest = len(_HARMONIC) - 1
    if at_most is not None and at_most <= largest:
        return in_table
    above_, upto_ = above.cast(pl.Float64), upto.cast(pl.Float64)
    of_large = quotient(upto_ - above_, above_ + 0.5).log1p() + _harmonic_rest(upto_) - _harmonic_rest(above_)
    of_both = (upto_ + 0.5).log() + _EULER + _harmonic_rest(upto_) - _looked_up(_HARMONIC, above)
    return pl.when(upto <= largest).then(in_table).when(above <= largest).then(of_both).otherwise(of_large)


def _harmonic_rest(number: pl.Expr) -> pl.Expr:
    """The error of `ln(number + 1/2)` plus Euler's constant for `1/1 + … + 1/number`, for large numbers."""
    inverse = quotient(pl.lit(1.0), number + 0.5)
    square, series = inverse * inverse, pl.lit(0.0)
    for coefficient in (-127 / 30720, 31 / 8064, -7 / 960, 1 / 24):
        series = series * square + coefficient
    return series * square


def _looked_up(table: pl.Series, number: pl.Expr) -> pl.Expr:
    # In an aggregation without groups Polars looks up numbers that have no type, and a sum gives them one.
    return pl.lit(table).gather(number.clip(0, len(table) - 1).cast(pl.UInt32)) + 0.0
