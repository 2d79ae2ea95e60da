"""How the statistics of a unit become one Polars expression: bare sums, sums in a window, or sums over sorted runs."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from polars_mlmetrics.data.door import Door
from polars_mlmetrics.data.expressions import any_of
from polars_mlmetrics.data.roles import Grain, Table
from polars_mlmetrics.errors import MetricError
from polars_mlmetrics.formula.statistic import Monoid, Share, Statistic, folded
from polars_mlmetrics.formula.unit import Unit


class GroupReading:
    """The group is the unit: folds are bare, a value of another unit is a window."""

    keeps_rows_without_key = False
    has_columns = False

    def __init__(self, table: Table) -> None:
        self.table = table

    def fold(self, statistic: Statistic) -> pl.Expr:
        return statistic.fold()

    def judged(self, included: pl.Expr, mask: pl.Expr, broken: Mapping[str, pl.Expr]) -> tuple[pl.Expr, pl.Expr]:
        # Whether there is a row is known sooner than how many there are.
        has_rows = self.fold(Statistic("has_rows", mask, "max"))
        if not broken:
            return has_rows, pl.lit(False)
        return has_rows, self.fold(Statistic("is_broken", mask & any_of(list(broken.values())), "max"))

    def key(self, column: str) -> pl.Expr:
        return pl.col(column).first()

    def runs(self, key: pl.Expr, rows: list[pl.Expr], *, cells: int | None) -> tuple[pl.Expr, ...]:
        return tuple(_folded_runs(key, row, "sum") for row in rows)

    def by_label(self, label: pl.Expr, rows: list[pl.Expr]) -> tuple[pl.Expr, ...]:
        # Polars sorts a Categorical by its code in one place and by its text in another. The code will do.
        return tuple(_folded_runs(label.to_physical(), row, "sum") for row in rows)

    def run_keys(self, key: pl.Expr) -> pl.Expr:
        return _first_of_runs(key, key)

    def within(self, name: str, value: pl.Expr, grain: Grain) -> pl.Expr:
        keys = self.table.keys(grain)
        return value.over(keys) if keys else value

    def stands(self, name: str, value: pl.Expr, grain: Grain) -> pl.Expr:
        return self.within(name, value, grain)

    def shares(self, name: str, share: Share, value: pl.Expr, grain: Grain) -> pl.Expr:
        return self.within(name, value, grain)

    def on_rows(self, name: str, value: pl.Expr) -> pl.Expr:
        return value


class ProbeReading(GroupReading):
    """For learning what a formula reads: the values of a unit, its own or another, read no column themselves."""

    def fold(self, statistic: Statistic) -> pl.Expr:
        return pl.lit(0.0)

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

    def __init__(self, name: str, door: Door, grain: Grain) -> None:
        super().__init__(door.table)
        self._name = name
        # Polars sorts a Categorical by its code in one place and by its text in another. The code will do.
        keys = [key.to_physical() for key in unit_keys(Unit(door, grain, self))]
        # Of several columns, which are null together, a number of their own.
        several = pl.when(keys[0].is_not_null()).then(pl.struct(keys).rank("dense"))
        self.unit_key = several if keys[1:] else keys[0]

    def fold(self, statistic: Statistic) -> pl.Expr:
        return _folded_runs(self.unit_key, statistic.row, statistic.monoid)

    def key(self, column: str) -> pl.Expr:
        return _first_of_runs(self.unit_key, pl.col(column))

    def runs(self, key: pl.Expr, rows: list[pl.Expr], *, cells: int | None) -> tuple[pl.Expr, ...]:
        raise self._has_no_inline_form("runs")

    def on_rows(self, name: str, value: pl.Expr) -> pl.Expr:
        raise self._has_no_inline_form("a value per row of its unit")

    def _has_no_inline_form(self, what: str) -> MetricError:
        return MetricError(
            f"{self._name}: {what} with values of other units cannot be used as an expression: use evaluate."
        )


def unit_keys(unit: Unit) -> list[pl.Expr]:
    """The keys of a unit, null on rows that do not count."""
    return [pl.when(unit.included).then(pl.col(key)) for key in unit.door.table.keys(unit.grain)]


# Runs lie in one list, highest key first. A list is computed once, however often it is read, and a window in it finds
# its rows computed. So a row may hold windows of other units than the runs; in a window of its own these would be
# computed again inside each run. Each run is folded by itself: what others hold does not change its last digit.


def _folded_runs(key: pl.Expr, row: pl.Expr, monoid: Monoid) -> pl.Expr:
    """The rows of each key, folded, in descending order of the keys. Rows without a key are left out."""
    runs = _runs(key, row)
    return _kept(runs, folded(_of_run("row"), monoid).over(_of_run("number")))


def _first_of_runs(key: pl.Expr, row: pl.Expr) -> pl.Expr:
    """One row of each key, in the same order."""
    return _kept(_runs(key, row), _of_run("row"))


def _runs(key: pl.Expr, row: pl.Expr) -> pl.Expr:
    rows = pl.struct(key.alias("key"), row.alias("row")).sort_by(key, descending=True, nulls_last=True).implode()
    key = _of_run("key")
    return rows.list.eval(pl.struct(_of_run("row"), key.rle_id().alias("number"), key.is_not_null().alias("is_known")))


def _kept(runs: pl.Expr, value: pl.Expr) -> pl.Expr:
    is_first = (_of_run("number").diff() != 0).fill_null(True)
    return runs.list.eval(value.filter(is_first & _of_run("is_known"))).explode(empty_as_null=False)


def _of_run(field: str) -> pl.Expr:
    return pl.element().struct.field(field)
