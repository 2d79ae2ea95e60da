"""The staged reading: many measures as one lazy plan.

    rows -> [features of rows] -> fold at (by, unit[, run]) -> values of units -> settle -> one row a group

Measures of one grain share a lane: one fold, in which a statistic of one name is folded once. The plan is pure
Polars; nothing in it calls back into Python. Folds mask rows and never filter them, so that a group whose rows are
all excluded is still there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import NamedTuple

import polars as pl

from polars_mlmetrics.data.roles import Door, Grain, Table, all_of, same_expression
from polars_mlmetrics.engine.metric import Measure
from polars_mlmetrics.engine.unit import Statistic, Unit
from polars_mlmetrics.errors import NameCollisionError

INTERNAL = "__mlm_"


class Columns(NamedTuple):
    """The columns of a plan that belong to one measure."""

    value: str
    weight: str
    present: str
    unknown: str
    undefined_units: str

    @classmethod
    def numbered(cls, number: int) -> Columns:
        return cls(*(f"{INTERNAL}{part}_{number}" for part in cls._fields))


class Plan:
    """Measures over the rows of a frame, grouped by key columns.

    `roles` are the plan's own: what a measure is bound to beyond them shows in the names of its statistics.
    """

    def __init__(self, rows: pl.LazyFrame, by: Sequence[str], roles: Table) -> None:
        self.rows = rows
        self.by = list(by)
        self.roles = roles
        self.schema = rows.collect_schema()
        self._lanes: dict[tuple[str, ...], Lane] = {}
        self._settled: dict[tuple[object, ...], Columns] = {}

    def add(self, measure: Measure) -> Columns:
        """The columns that will hold a measure's value. Equal measures share them."""
        if measure.key not in self._settled:
            columns = Columns.numbered(len(self._settled))
            self._lane_of(measure).add(measure, columns)
            self._settled[measure.key] = columns
        return self._settled[measure.key]

    def groups(self) -> pl.LazyFrame:
        """One row a group, with the columns of every measure."""
        lanes = dict(self._lanes)
        group, label = lanes.get(("group", "")), lanes.get(("label", "", self.roles.label))
        if group is not None and label is not None and not group.looks_back:
            # The statistics of a group are those of its labels, merged: no fold of its own is needed.
            label.host(group)
            del lanes["group", ""]
        return beside([lane.groups() for lane in lanes.values()], self.by)

    def units(self) -> pl.LazyFrame:
        """One row a unit, with the values of measures that all stop at one grain."""
        lanes = list(self._lanes.values())
        units = beside([lane.units() for lane in lanes], lanes[0].unit_keys)
        return units.filter(pl.any_horizontal(columns.present for columns in self._settled.values()))

    def _lane_of(self, measure: Measure) -> Lane:
        run = Recorder(measure, self.by, self.roles).run_key
        keys = measure.table.keys(measure.grain)
        name = (measure.grain, "" if run is None else run.meta.output_name(), *keys)
        return self._lanes.setdefault(name, Lane(self.rows, self.by, self.roles, keys, run))


class Recorder:
    """Reads a formula by writing down what it asks for, and answers with the columns in which that will stand."""

    def __init__(self, measure: Measure, by: list[str], roles: Table, *, in_runs: bool = False) -> None:
        self.measure = measure
        self.statistics: list[Statistic] = []
        self.features: list[pl.Expr] = []
        self.looks_back: list[pl.Expr] = []
        self.run_key: pl.Expr | None = None
        self.run_rows: list[pl.Expr] = []
        self._by = by
        self._suffix = _suffix(measure, roles)
        self._in_runs = in_runs
        self.answer = measure.read(Unit(measure.door(), measure.grain, self))

    def mask(self, door: Door, grain: Grain) -> pl.Expr:
        """The rows without a unit's key are a unit too: never settled, but part of the group's statistics."""
        return door.included("group")

    def fold(self, statistic: Statistic) -> pl.Expr:
        named = Statistic(statistic.name + self._suffix, statistic.row, statistic.monoid)
        self.statistics.append(named)
        return named.merge() if self._in_runs else pl.col(named.name)

    def key(self, column: str) -> pl.Expr:
        return pl.col(column).first() if self._in_runs else pl.col(column)

    def runs(self, key: pl.Expr, rows: list[pl.Expr]) -> tuple[pl.Expr, ...]:
        name = key.meta.output_name()
        self.run_key = key.alias(INTERNAL + name + self._suffix)
        self.run_rows = [row.alias(f"{row.meta.output_name()} by {name}{self._suffix}") for row in rows]
        return tuple(pl.col(row.meta.output_name()) for row in self.run_rows)

    def within(self, name: str, value: pl.Expr, grain: Grain) -> pl.Expr:
        keys = dict.fromkeys([*self._by, *self.measure.table.keys(grain)])
        self.features.append(value.over(list(keys)).alias(INTERNAL + name + self._suffix))
        return pl.col(INTERNAL + name + self._suffix)

    def on_rows(self, name: str, value: pl.Expr) -> pl.Expr:
        self.looks_back.append(value.alias(INTERNAL + name + self._suffix))
        return pl.col(INTERNAL + name + self._suffix)


def _suffix(measure: Measure, roles: Table) -> str:
    words = measure.table.differences(roles)
    if measure.probe.reads:
        words.append(f"reads {' and '.join(sorted(measure.probe.reads))}, per {measure.grain}")
    if measure.labels is not None:
        words.append(f"labels={list(measure.labels)}")
    words += [f"where {predicate}" for predicate in measure.predicates]
    return f"[{', '.join(words)}]" if words else ""


@dataclass
class Lane:
    """One fold of the rows: at the by columns, the keys of a unit and, where there are runs, the key of a run."""

    rows: pl.LazyFrame
    by: list[str]
    roles: Table
    keys: list[str]
    run: pl.Expr | None
    statistics: dict[str, Statistic] = field(default_factory=dict)
    features: dict[str, pl.Expr] = field(default_factory=dict)
    looks_back: dict[str, pl.Expr] = field(default_factory=dict)
    run_rows: dict[str, pl.Expr] = field(default_factory=dict)
    measures: list[tuple[Recorder, Columns]] = field(default_factory=list)
    guest: Lane | None = None

    @property
    def unit_keys(self) -> list[str]:
        """The keys of a fold. A group may be one of units: by="label" leaves one label in each."""
        return list(dict.fromkeys([*self.by, *self.keys]))

    def add(self, measure: Measure, columns: Columns) -> None:
        """Take in a measure and whatever its formula asks for."""
        recorder = Recorder(measure, self.by, self.roles, in_runs=self.run is not None)
        for statistic in recorder.statistics:
            self._take_statistic(statistic)
        asked = (
            (self.features, recorder.features),
            (self.looks_back, recorder.looks_back),
            (self.run_rows, recorder.run_rows),
        )
        for known, expressions in asked:
            for expression in expressions:
                self._take(known, expression)
        self.measures.append((recorder, columns))

    def host(self, guest: Lane) -> None:
        """Fold the statistics of a coarser lane too."""
        for statistic in guest.statistics.values():
            self._take_statistic(statistic)
        for feature in guest.features.values():
            self._take(self.features, feature)
        self.guest = guest

    def _take_statistic(self, statistic: Statistic) -> None:
        known = self.statistics.setdefault(statistic.name, statistic)
        if known.monoid != statistic.monoid or not same_expression(known.row, statistic.row):
            raise _two_of_one_name(statistic.name)
        self._check_free(statistic.name)

    def _take(self, known: dict[str, pl.Expr], expression: pl.Expr) -> None:
        name = expression.meta.output_name()
        if not same_expression(known.setdefault(name, expression), expression):
            raise _two_of_one_name(name.removeprefix(INTERNAL))
        self._check_free(name)

    def _check_free(self, name: str) -> None:
        if name in self.unit_keys:
            raise NameCollisionError(f"{name!r} is the name of a statistic: alias the key column of that name.")

    # -- the plan ----------------------------------------------------------------------------------------------

    def groups(self) -> pl.LazyFrame:
        """One row a group: the settled values of the lane's measures, and of its guest's."""
        if not self.keys:
            return self.units()
        settled = [column for recorder, columns in self.measures for column in _settled(recorder.measure, columns)]
        if self.guest is None:
            return fold(self.units(), self.by, settled)
        merged = [statistic.merge().alias(statistic.name) for statistic in self.guest.statistics.values()]
        table = fold(self.units(), self.by, settled + merged)
        return table.select(*self.by, *(c.meta.output_name() for c in settled), *self.guest.values())

    def units(self) -> pl.LazyFrame:
        """One row a unit: the values of the lane's measures."""
        if self.run is not None:
            units = self._folded_runs(self.run)
        else:
            kept = [] if self.guest is None else list(self.guest.statistics)
            units = self._folded().select(*self.unit_keys, *kept, *self.values())
        return units.with_columns(column for _, columns in self.measures for column in self._of_present(columns))

    def values(self) -> list[pl.Expr]:
        """The value, the weight and the presence of the units, from their statistics."""
        return [column for recorder, columns in self.measures for column in _unsettled(recorder, columns, self.keys)]

    def _of_present(self, columns: Columns) -> list[pl.Expr]:
        if not self.keys:
            return []
        # A unit without a weight is a label that an average by label does not name.
        known = [pl.col(key).is_not_null() for key in (*self.keys, columns.weight)]
        present = all_of([pl.col(columns.present), *known])
        masked = [
            pl.when(present).then(pl.col(name)).alias(name) for name in (columns.value, columns.weight, columns.unknown)
        ]
        return [*masked, present.alias(columns.present)]

    def _folded(self) -> pl.LazyFrame:
        rows = self._rows_with_features()
        folded = _fold_statistics(rows, self.unit_keys, [s for s in self.statistics.values() if not self._looks(s)])
        for name, value in self.looks_back.items():
            back = folded.select(*self.unit_keys, value).filter(pl.col(name).is_not_null())
            again = [s for s in self.statistics.values() if name in s.row.meta.root_names()]
            seen = rows.join(back, on=self.unit_keys, nulls_equal=True)
            table = _fold_statistics(seen, self.unit_keys, again)
            folded = folded.join(table, on=self.unit_keys, how="left", nulls_equal=True)
        return folded

    def _looks(self, statistic: Statistic) -> bool:
        return not self.looks_back.keys().isdisjoint(statistic.row.meta.root_names())

    def _rows_with_features(self) -> pl.LazyFrame:
        return self.rows.with_columns(*self.features.values()) if self.features else self.rows

    def _folded_runs(self, run: pl.Expr) -> pl.LazyFrame:
        key = run.meta.output_name()
        sums = [row.sum() for row in self.run_rows.values()]
        folds = [statistic.fold().alias(statistic.name) for statistic in self.statistics.values()]
        runs = fold(self._rows_with_features().with_columns(run), [*self.unit_keys, key], sums + folds)
        # The rows that do not count make a run without a key. It keeps its group alive, and is no run of it.
        counted = [pl.when(pl.col(key).is_not_null()).then(pl.col(name)).alias(name) for name in self.run_rows]
        # Most formulas are native here. One that cumulates its runs (roc_auc, average_precision) leaves the streaming
        # engine for this last aggregation: a cumulative sum must start anew in each unit, and one over all of them,
        # less what came before the unit, would lose digits.
        return fold(
            runs.with_columns(counted).sort(key, descending=True, nulls_last=True),
            self.unit_keys,
            self.values(),
            in_order=True,
        )


def _unsettled(recorder: Recorder, columns: Columns, keys: Sequence[str]) -> list[pl.Expr]:
    value, weight, rows, unknown = recorder.answer
    if not keys:
        return [value.alias(columns.value), value.is_null().cast(pl.Int64).alias(columns.undefined_units)]
    return [
        value.alias(columns.value),
        (pl.lit(1.0) if weight is None else weight).alias(columns.weight),
        (rows > 0).alias(columns.present),
        (pl.lit(0, dtype=pl.Int64) if unknown is None else unknown).alias(columns.unknown),
    ]


def _settled(measure: Measure, columns: Columns) -> list[pl.Expr]:
    settlement, value = measure.settlement, pl.col(columns.value)
    weight = pl.col(columns.weight) if settlement.is_weighted else None
    unknown = pl.col(columns.unknown) if measure.probe.unknown else None
    units = pl.col(columns.present).sum().cast(pl.Int64)
    return [
        settlement.value(value, weight, units, unknown).alias(columns.value),
        settlement.undefined_units(value, units).alias(columns.undefined_units),
    ]


def _two_of_one_name(name: str) -> NameCollisionError:
    return NameCollisionError(f"two different statistics are called {name!r}: give one of them another name.")


def _fold_statistics(rows: pl.LazyFrame, keys: Sequence[str], statistics: Sequence[Statistic]) -> pl.LazyFrame:
    return fold(rows, keys, [statistic.fold().alias(statistic.name) for statistic in statistics])


def fold(
    rows: pl.LazyFrame, keys: Sequence[str], aggregations: Sequence[pl.Expr], *, in_order: bool = False
) -> pl.LazyFrame:
    """Aggregate by keys; without any, to the one row of the whole."""
    return rows.group_by(keys, maintain_order=in_order).agg(aggregations) if keys else rows.select(aggregations)


def beside(tables: Sequence[pl.LazyFrame], keys: Sequence[str]) -> pl.LazyFrame:
    """Tables of the same keys, side by side."""
    if not keys:
        return pl.concat(tables, how="horizontal")
    return reduce(lambda left, right: left.join(right, on=keys, nulls_equal=True), tables)
