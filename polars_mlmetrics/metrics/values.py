"""Means and shares of any number of a row: a latency, a cost, the mark of a judge. They need no score and no truth."""

from math import inf
from typing import Unpack

import polars as pl

from polars_mlmetrics.data.expressions import text_of
from polars_mlmetrics.formula.averages import Average, Best
from polars_mlmetrics.formula.declare import metric
from polars_mlmetrics.formula.parameters import Averaged
from polars_mlmetrics.formula.unit import Unit


@metric(range=(-inf, inf), best=None, reads=())
def mean(
    u: Unit,
    value: str | pl.Expr,
    *,
    best: Best | None = None,
    range: tuple[float, float] | None = None,
    average: Average = "micro",
    **options: Unpack[Averaged],
) -> pl.Expr:
    """The mean of a column, or of an expression of each row: Σw·value / Σw.

    A row whose value is null is left out. Say with `best` which end is good, so that `compare`, `worst` and gates know
    what is better. With `range` the interval keeps within these ends; a value outside of them is broken. Of an error
    of the score use its own metric, such as `mae`; of a condition use `share`; of a quotient of two sums, such as a
    cost per success, `mlm.mean("cost") / mlm.mean("is_right")`.
    """
    number = u.of_row("value", value)
    name = text_of(number)
    if range is not None:
        low, high = range
        u.breaks_on(f"value@{name},{low},{high}", ~number.is_between(low, high))
    return u.per_row(u.sum(f"value@{name}", number))


@metric(range=(0, 1), best=None, reads=())
def share(
    u: Unit,
    condition: str | pl.Expr,
    *,
    best: Best | None = None,
    average: Average = "micro",
    **options: Unpack[Averaged],
) -> pl.Expr:
    """The share of rows for which a condition holds, or of which a Boolean column is true: Σw·[condition] / Σw.

    A row for which it is null is left out; one that has NaN in it is broken. Say with `best` which end is good. The
    interval is Wilson's. Of the sample's rows that are true use `prevalence`, of rows above a threshold
    `predicted_rate`; of numbers use `mean`.
    """
    number = u.of_row("condition", condition)
    name = text_of(number)
    u.breaks_on(f"condition@{name}", (number != 0) & (number != 1))
    return u.per_row(u.tally(f"share@{name}", number == 1))
