"""Ratios of sums: metrics whose value is one sum over the rows divided by another, such as a mean or a rate.

The value of a whole is then the mean of those of its parts, each weighted by its denominator. Nothing declares it: the
formula itself is read, and what it divides by is found.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import polars as pl

from polars_mlmetrics.data.door import Door
from polars_mlmetrics.data.roles import Grain
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.arithmetic import quotient
from polars_mlmetrics.formula.declaration import Declaration
from polars_mlmetrics.formula.measure import Measure
from polars_mlmetrics.formula.readings import ProbeReading
from polars_mlmetrics.formula.statistic import Statistic
from polars_mlmetrics.formula.unit import Unit

_OF_UNIT = pl.col(f"{INTERNAL}value_of_unit")


class Quotient(NamedTuple):
    """A numerator and its denominator."""

    numerator: pl.Expr
    denominator: pl.Expr


class SumsReading(ProbeReading):
    """For learning which statistics of a formula are plain sums over its rows: these are columns of their names."""

    def __init__(self, measure: Measure) -> None:
        super().__init__(measure.table)
        self.sums: set[str] = set()

    def fold(self, statistic: Statistic) -> pl.Expr:
        # The mean of the rows that deviations are taken from, and the ranks of rows, are others in each slice.
        reads_unit = _OF_UNIT.meta.output_name() in statistic.row.meta.root_names()
        if statistic.monoid == "sum" and statistic.moment is None and not reads_unit:
            self.sums.add(statistic.name)
        return pl.col(statistic.name)

    def within(self, name: str, value: pl.Expr, grain: Grain) -> pl.Expr:
        return super().within(name, value, grain) if grain == "sample" else _OF_UNIT

    def on_rows(self, name: str, value: pl.Expr) -> pl.Expr:
        return _OF_UNIT


def denominator_of(measure: Measure) -> Measure | None:
    """The sum that a measure of one unit divides by, a measure itself; None where it is no ratio of sums."""
    reading = SumsReading(measure)
    unit = Unit(Door(measure.table, measure.predicates, measure.labels), measure.grain, reading)
    found = _quotient_in(measure.declaration.formula(unit, **measure.parameters))
    if found is None or not all(_is_sum(side, reading.sums) for side in found):
        return None
    # Without a row that counts it is 0, and no unknown number.
    return replace(measure, declaration=DENOMINATOR, parameters={"measure": measure}, undefined=0.0, called=None)


def _denominator(u: Unit, *, measure: Measure) -> pl.Expr:
    """The denominator in the formula of a measure."""
    found = _quotient_in(measure.declaration.formula(u, **measure.parameters))
    assert found is not None
    return found.denominator


DENOMINATOR = Declaration(_denominator, "group", (0, float("inf")), None)


def _quotient_in(value: pl.Expr) -> Quotient | None:
    """The division that an expression is, or is unless something breaks it; None of anything else."""
    parts = value.meta.pop()
    if len(parts) == 3 and value.meta.eq(pl.when(parts[0]).then(float("nan")).otherwise(parts[1])):
        return _quotient_in(parts[1])
    if len(parts) != 2 or not value.meta.eq(quotient(parts[1], parts[0])):
        return None
    denominator, numerator = parts
    guarded = denominator.meta.pop()
    if len(guarded) == 3 and denominator.meta.eq(pl.when(guarded[2] != 0).then(guarded[2])):
        denominator = guarded[2]
    return Quotient(numerator, denominator)


def _is_sum(value: pl.Expr, sums: set[str]) -> bool:
    """Whether an expression is a sum over the rows: one of these, or sums and differences of such with factors."""
    if value.meta.is_column():
        return value.meta.output_name() in sums
    parts = value.meta.pop()
    if len(parts) != 2:
        return False
    right, left = parts
    if value.meta.eq(left * right):
        factors = [part for part in parts if part.meta.root_names()]
        return len(factors) == 1 and _is_sum(factors[0], sums)
    return any(map(value.meta.eq, (left + right, left - right))) and _is_sum(left, sums) and _is_sum(right, sums)
