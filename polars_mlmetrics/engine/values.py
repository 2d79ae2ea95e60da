"""Values: from the statistics of units to their values, and to those of groups. The rows are not looked at any more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from polars_mlmetrics.data.expressions import all_of
from polars_mlmetrics.engine.folds import fold
from polars_mlmetrics.engine.formula_reader import FormulaReader
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.averages import COUNTS
from polars_mlmetrics.formula.statistic import Statistic


class Columns(NamedTuple):
    """The columns of a plan that belong to one measure."""

    value: str
    weight: str
    """The weight of a unit; of a group the weight of its units that have a value, where it is their mean."""
    present: str
    unknown: str
    undefined_units: str
    defined_units: str
    """How many units have a value; of groups there is no such column."""
    several: str
    """Why it is not known in a group of a state; null where it is."""

    @classmethod
    def numbered(cls, number: int) -> Columns:
        return cls(*(f"{INTERNAL}{part}_{number}" for part in cls._fields))


class Values:
    """The measures of one kind of unit."""

    def __init__(self, by: Sequence[str], keys: Sequence[str], run: str | None) -> None:
        self.keys = list(keys)
        # A group may be one of units: by="label" leaves one label in each.
        self.unit_keys = list(dict.fromkeys([*by, *keys]))
        self.run = run
        """The column of the key of runs, where the units are made of such."""
        self.measures: list[tuple[FormulaReader, Columns]] = []

    def of_units(self, statistics: pl.LazyFrame, keys: Sequence[str] | None = None) -> pl.LazyFrame:
        """One row a unit: the values, and what settling needs beside them."""
        keys = self.unit_keys if keys is None else keys
        values = [c for reader, columns in self.measures for c in _unsettled(reader, columns, self.keys)]
        if self.run is None:
            return self._only_present(statistics.select(*keys, *values))
        # The rows that do not count make a run without a key. It keeps its group alive, and is no run of it.
        key = pl.col(self.run)
        names = dict.fromkeys(statistic.name for reader, _ in self.measures for statistic in reader.run_rows)
        counted = [pl.when(key.is_not_null()).then(pl.col(name)).alias(name) for name in names]
        runs = statistics.with_columns(counted).sort(key, descending=True, nulls_last=True)
        # Most formulas are native here. One that cumulates its runs (ks, and others) leaves the streaming
        # engine for this last aggregation: a cumulative sum must start anew in each unit, and one over all of them,
        # less what came before the unit, would lose digits.
        return self._only_present(fold(runs, keys, values, in_order=True))

    def _only_present(self, units: pl.LazyFrame) -> pl.LazyFrame:
        if not self.keys:
            return units
        return units.with_columns(c for reader, columns in self.measures for c in self._of_present(reader, columns))

    def _of_present(self, reader: FormulaReader, columns: Columns) -> list[pl.Expr]:
        named = _columns_of_units(reader, columns)
        # A unit without a weight is a label that an average by label does not name.
        known = [pl.col(key).is_not_null() for key in (*self.keys, *(named.keys() & {columns.weight}))]
        # Of a unit without a row that counts there is still a count: of the rows that were left out, say.
        is_count = reader.measure.declaration.counts
        present = all_of([pl.col(columns.present), *known])
        shown = all_of(known) if is_count else present
        return [*(pl.when(shown).then(pl.col(name)).alias(name) for name in named), present.alias(columns.present)]

    def sums(self, units: pl.LazyFrame, by: Sequence[str]) -> pl.LazyFrame:
        """One row a group: what settling needs to know of all its units together."""
        return fold(units, by, [c for reader, columns in self.measures for c in _sums(reader, columns).values()])

    def settled(self, sums: pl.LazyFrame, by: Sequence[str]) -> pl.LazyFrame:
        """One row a group: the settled values, from what all their units are together."""
        settled = (column for reader, columns in self.measures for column in _settled(reader, columns))
        return sums.select(*by, *settled)

    def names_of_sums(self) -> list[str]:
        """The columns of the sums over units of a group."""
        return [name for each in self.measures for name in stored_sums(*each).values()]

    def stored_sums(self) -> dict[str, str]:
        """The names under which a state holds the sums over samples, and the plan's own for them."""
        return {name: own for reader, columns in self.measures for name, own in stored_sums(reader, columns).items()}


def _unsettled(reader: FormulaReader, columns: Columns, keys: Sequence[str]) -> list[pl.Expr]:
    value = reader.answer.value
    if not keys:
        return [value.alias(columns.value), value.is_null().cast(pl.Int64).alias(columns.undefined_units)]
    named = [expression.alias(name) for name, expression in _columns_of_units(reader, columns).items()]
    return [*named, (reader.answer.rows > 0).alias(columns.present)]


def _columns_of_units(reader: FormulaReader, columns: Columns) -> dict[str, pl.Expr]:
    """The expressions of each unit that settling needs, by column."""
    value, weight, _, unknown = reader.answer
    named = {columns.value: value, columns.weight: weight, columns.unknown: unknown}
    return {name: expression for name, expression in named.items() if expression is not None}


def stored_sums(reader: FormulaReader, columns: Columns) -> dict[str, str]:
    """The names under which a state holds the sums over samples, and the plan's own for them."""
    sums = _sums(reader, columns)
    return {_stored_name(reader, name): column.meta.output_name() for name, column in sums.items()}


def _stored_name(reader: FormulaReader, name: str) -> str:
    return f"{reader.title}: {name}"


def sums_of(reader: FormulaReader) -> list[Statistic]:
    """The sums over samples, as a state merges them."""
    names = _sums(reader, Columns.numbered(0))
    sums = {_stored_name(reader, name): name in COUNTS for name in names}
    return [Statistic(name, pl.col(name), "sum", is_count=is_count) for name, is_count in sums.items()]


def _sums(reader: FormulaReader, columns: Columns) -> dict[str, pl.Expr]:
    """The sums over the units of a group, by the name that the settlement has for each."""
    settlement, value = reader.measure.settlement, pl.col(columns.value)
    weight = None if reader.answer.weight is None else pl.col(columns.weight)
    unknown = None if reader.answer.unknown is None else pl.col(columns.unknown)
    units = pl.col(columns.present).sum().cast(pl.Int64)
    sums = settlement.sums(value, weight, units, unknown)
    return {name: column.alias(f"{columns.value}_{name}") for name, column in sums.items()}


def _settled(reader: FormulaReader, columns: Columns) -> list[pl.Expr]:
    settlement = reader.measure.settlement
    sums = {name: pl.col(column.meta.output_name()) for name, column in _sums(reader, columns).items()}
    weight = [settlement.weight_of_all(sums).alias(columns.weight)] if "weight" in sums else []
    return [
        *weight,
        settlement.settled(sums).alias(columns.value),
        settlement.undefined_units(sums).alias(columns.undefined_units),
        sums["defined"].alias(columns.defined_units),
    ]
