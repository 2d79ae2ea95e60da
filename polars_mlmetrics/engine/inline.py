"""The inline reading: a metric as one Polars expression, for `agg`, `select`, `over` and wherever else one goes.

A group is folded by bare sums. Labels and samples are folded by one window round the whole formula, whose key is
null on rows that do not count; the first row of each unit is kept, and the kept values are settled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from polars_mlmetrics.data.roles import Door, Grain
from polars_mlmetrics.engine.reading import Share, Statistic
from polars_mlmetrics.engine.unit import Unit
from polars_mlmetrics.errors import MetricError

if TYPE_CHECKING:
    from polars_mlmetrics.engine.measure import Measure


def inline(measure: Measure) -> pl.Expr:
    """The measure as one expression over the rows of a group."""
    if measure.targets is not None:
        # Windows of the measure's own work inside that of a target, as they should: its units lie within a target.
        target = pl.col(measure.targets.column)
        first = target.is_first_distinct()
        of_target = inline(measure.of_one_target()).over(target)
        return measure.targets.value(of_target.filter(first), target.filter(first))
    if measure.grain == "group":
        return measure.read(Unit(measure.door(), "group", GroupReading(measure))).value
    value, weight, unknown = _sorted_units(measure) if measure.looks_across else _window_units(measure)
    return measure.settlement.value(value, weight, value.len().cast(pl.Int64), unknown)


Units = tuple[pl.Expr, pl.Expr | None, pl.Expr | None]
"""The values, weights and unknown rows of the units of a group, one entry a unit."""


def _window_units(measure: Measure) -> Units:
    unit = Unit(measure.door(), measure.grain, WindowReading(measure))
    answer = measure.read(unit)
    keys = _unit_keys(unit)
    first = pl.struct(keys).is_first_distinct() & keys[0].is_not_null()

    def kept(expression: pl.Expr) -> pl.Expr:
        return expression.over(keys).filter(first)

    weight, unknown = (None if column is None else kept(column) for column in (answer.weight, answer.unknown))
    return kept(answer.value), weight, unknown


def _sorted_units(measure: Measure) -> Units:
    # A window of another grain cannot stand inside the unit's own window: Polars would work it out inside the outer
    # partition, silently wrong. So here the units are the runs of one sorted key at group level.
    answer = measure.read(Unit(measure.door(), measure.grain, SortedReading(measure)))
    return answer.value, answer.weight, answer.unknown


def _unit_keys(unit: Unit) -> list[pl.Expr]:
    return [pl.when(unit.included).then(pl.col(key)) for key in unit.door.table.keys(unit.grain)]


class GroupReading:
    """The group is the unit: folds are bare, what is worked out in another unit is a window."""

    def __init__(self, measure: Measure) -> None:
        self.measure = measure

    def mask(self, door: Door, grain: Grain) -> pl.Expr:
        return door.included(grain)

    def fold(self, statistic: Statistic) -> pl.Expr:
        return statistic.fold()

    def key(self, column: str) -> pl.Expr:
        return pl.col(column).first()

    def runs(self, key: pl.Expr, rows: list[pl.Expr], *, cells: int | None) -> tuple[pl.Expr, ...]:
        return tuple(_run_sums(key, row) for row in rows)

    def run_keys(self, key: pl.Expr) -> pl.Expr:
        return _keys_of_runs(key)

    def within(self, name: str, value: pl.Expr, grain: Grain) -> pl.Expr:
        keys = self.measure.table.keys(grain)
        return value.over(keys) if keys else value

    def stands(self, name: str, value: pl.Expr, grain: Grain) -> pl.Expr:
        return self.within(name, value, grain)

    def shares(self, name: str, share: Share, value: pl.Expr, grain: Grain) -> pl.Expr:
        return self.within(name, value, grain)

    def on_rows(self, name: str, value: pl.Expr) -> pl.Expr:
        return value


class ProbeReading(GroupReading):
    """For learning what a formula reads: what comes from other units, or from a first look, reads no column itself."""

    def within(self, name: str, value: pl.Expr, grain: Grain) -> pl.Expr:
        return pl.lit(0.0)

    def on_rows(self, name: str, value: pl.Expr) -> pl.Expr:
        return pl.lit(0.0)


class WindowReading(GroupReading):
    """One window goes round the formula, so that its own unit is all it sees."""

    def within(self, name: str, value: pl.Expr, grain: Grain) -> pl.Expr:
        return value


class SortedReading(GroupReading):
    """The units are the runs of one sorted key: a statistic is a column of one value a unit."""

    def __init__(self, measure: Measure) -> None:
        super().__init__(measure)
        keys = _unit_keys(Unit(measure.door(), measure.grain, self))
        # Of several columns, which are null together, a number of their own.
        several = pl.when(keys[0].is_not_null()).then(pl.struct(keys).rank("dense"))
        self.unit_key = several if keys[1:] else keys[0]

    def fold(self, statistic: Statistic) -> pl.Expr:
        row = statistic.row
        if statistic.monoid == "sum":
            # What is not finite in one unit must not run on into the next.
            value = row.cast(pl.Float64)
            not_finite = _run_sums(self.unit_key, (~value.is_finite()).cast(pl.Int64))
            finite = _run_sums(self.unit_key, pl.when(value.is_finite()).then(value))
            return pl.when(not_finite == 0).then(finite).otherwise(float("nan"))
        extreme_last = [True, statistic.monoid == "min"]
        ordered = row.sort_by(self.unit_key, row, descending=extreme_last, nulls_last=[True, False])
        return ordered.filter(_run_ends(self.unit_key))

    def key(self, column: str) -> pl.Expr:
        return _keys_of_runs(self.unit_key)

    def runs(self, key: pl.Expr, rows: list[pl.Expr], *, cells: int | None) -> tuple[pl.Expr, ...]:
        raise self._has_no_inline_form("runs")

    def on_rows(self, name: str, value: pl.Expr) -> pl.Expr:
        raise self._has_no_inline_form("a second look at the rows")

    def _has_no_inline_form(self, what: str) -> MetricError:
        return MetricError(
            f"{self.measure.output_name}: {what} beside a look into other units has no inline form: use evaluate."
        )


def _run_sums(key: pl.Expr, row: pl.Expr) -> pl.Expr:
    """The sums over rows of equal key, in descending order of the key. Rows without a key are left out.

    They are differences of one running sum: each is right to 1e-16 of the sum of all.
    """
    upto = row.sort_by(key, descending=True, nulls_last=True).fill_null(0).cum_sum().filter(_run_ends(key))
    return upto - upto.shift(1, fill_value=0)


def _keys_of_runs(key: pl.Expr) -> pl.Expr:
    return key.sort(descending=True, nulls_last=True).filter(_run_ends(key))


def _run_ends(key: pl.Expr) -> pl.Expr:
    ordered = key.sort(descending=True, nulls_last=True)
    is_last = (ordered.rle_id().diff(n=-1) != 0).fill_null(True)
    return is_last & (pl.int_range(pl.len()) < key.count())
