"""The staged reading: many measures as one lazy plan.

    rows -> [features of rows] -> fold at (by, unit[, run]) -> values of units -> settle -> one row a group

Measures of one grain share a lane: one fold, in which a statistic of one name is folded once. The plan is pure
Polars; nothing in it calls back into Python. Folds mask rows and never filter them, so that a group whose rows are
all excluded is still there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Literal, NamedTuple

import polars as pl

from polars_mlmetrics.data.roles import Door, Grain, Table, Types, all_of, same_expression, types_of
from polars_mlmetrics.engine.measure import Measure, Targets
from polars_mlmetrics.engine.parameters import identity
from polars_mlmetrics.engine.unit import Statistic, Unit
from polars_mlmetrics.errors import NameCollisionError

INTERNAL = "__mlm_"
CODE = f"{INTERNAL}code"


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
        self._types: dict[object, Types] = {}
        self._settled: dict[tuple[object, ...], Columns] = {}
        self._targets: dict[str, tuple[Plan, list[pl.Expr]]] = {}

    def add(self, measure: Measure) -> Columns:
        """The columns that will hold a measure's value. Equal measures share them."""
        if measure.key not in self._settled:
            columns = Columns.numbered(len(self._settled))
            if measure.targets is None:
                self._add_units(measure, columns)
            else:
                self._add_targets(measure, measure.targets, columns)
            self._settled[measure.key] = columns
        return self._settled[measure.key]

    def _add_units(self, measure: Measure, columns: Columns) -> None:
        recorder = self._recorder(measure, in_runs=False)
        lane = self._lane_of(recorder)
        # A formula over runs reads its other statistics as sums over them, so it is read again as one.
        lane.add(recorder if lane.run is None else self._recorder(measure, in_runs=True), columns)

    def _add_targets(self, measure: Measure, targets: Targets, columns: Columns) -> None:
        """Plan a measure of each target, and the mean of the targets."""
        by = list(dict.fromkeys([*self.by, targets.column]))
        plan, settled = self._targets.setdefault(targets.column, (Plan(self.rows, by, self.roles), []))
        value, target = pl.col(plan.add(measure.of_one_target()).value), pl.col(targets.column)
        settled += [
            targets.value(value, target).alias(columns.value),
            (target.is_not_null() & value.is_null()).sum().cast(pl.Int64).alias(columns.undefined_units),
        ]

    def groups(self) -> pl.LazyFrame:
        """One row a group, with the columns of every measure."""
        self._share_folds()
        plain = [lane.groups() for lane in self._lanes.values() if lane.by == self.by]
        plain += [fold(plan.groups(), self.by, settled) for plan, settled in self._targets.values()]
        coded = [lane.groups() for lane in self._lanes.values() if lane.by != self.by]
        if not coded:
            return beside(plain, self.by)
        names = beside(plain, self.by) if plain else self.rows.select(self.by).unique()
        # Two groups of one code would be an error here, never a wrong number. The check leaves the streaming engine,
        # with a row a group.
        return beside([names.with_columns(self._code()), *coded], [CODE], validate="1:1").drop(CODE)

    def units(self) -> pl.LazyFrame:
        """One row a unit, with the values of measures that all stop at one grain."""
        lanes = list(self._lanes.values())
        units = beside([lane.units() for lane in lanes], lanes[0].unit_keys)
        return units.filter(pl.any_horizontal(columns.present for columns in self._settled.values()))

    def _recorder(self, measure: Measure, *, in_runs: bool) -> Recorder:
        roles = identity(measure.roles)
        if roles not in self._types:
            self._types[roles] = types_of(self.rows, measure.table)
        by = [CODE] if self._is_coded(measure) else self.by
        return Recorder(measure, by, self.roles, self._types[roles], in_runs=in_runs)

    def _lane_of(self, recorder: Recorder) -> Lane:
        measure = recorder.measure
        keys = measure.table.keys(measure.grain)
        name = (measure.grain, recorder.run_name, *keys)
        if name not in self._lanes:
            rows = self.rows.with_columns(self._code()) if self._is_coded(measure) else self.rows
            self._lanes[name] = Lane(rows, recorder.by, keys, recorder.run_key, few_runs=recorder.few_runs)
        return self._lanes[name]

    def _is_coded(self, measure: Measure) -> bool:
        """Whether one number stands for the by columns: a key less to match when millions of samples are folded.

        Not for floats, of which 0.0 and -0.0 are one group and two codes.
        """
        if measure.grain != "sample" or measure.per is not None:
            return False
        types = [self.schema[key] for key in self.by]
        return len(types) > 1 and all(t.is_integer() or t.is_temporal() or t in (pl.String, pl.Boolean) for t in types)

    def _code(self) -> pl.Expr:
        return pl.sum_horizontal(pl.col(key).hash(seed) for seed, key in enumerate(self.by)).alias(CODE)

    def _share_folds(self) -> None:
        """Let the group, its labels and its few runs (bins) be merged from one fold of the rows at all their keys.

        Polars sees that the fold is used several times, and makes it once.
        """
        lanes = [lane for lane in self._lanes.values() if lane.keys in ([], [self.roles.label]) and not lane.looks_back]
        run = next((lane.run for lane in lanes if lane.few_runs), None)
        lanes = [lane for lane in lanes if lane.run is None or same_expression(lane.run, run)]
        if len(lanes) > 1:
            shared = Fold(self.rows, list(dict.fromkeys(key for lane in lanes for key in lane.fold.keys)))
            for lane in lanes:
                lane.fold.merge_from(shared)


class Recorder:
    """Reads a formula by writing down what it asks for, and answers with the columns in which that will stand."""

    def __init__(self, measure: Measure, by: list[str], roles: Table, types: Types, *, in_runs: bool) -> None:
        self.measure = measure
        self.statistics: list[Statistic] = []
        self.features: list[pl.Expr] = []
        self.looks_back: list[pl.Expr] = []
        self.run_key: pl.Expr | None = None
        self.run_name = ""
        self.run_rows: list[Statistic] = []
        self.few_runs = False
        self.by = by
        self._suffix = _suffix(measure, roles)
        self._in_runs = in_runs
        self.answer = measure.read(Unit(measure.door(types), measure.grain, self))

    def mask(self, door: Door, grain: Grain) -> pl.Expr:
        """The rows without a unit's key are a unit too: never settled, but part of the group's statistics."""
        return door.included("group")

    def fold(self, statistic: Statistic) -> pl.Expr:
        named = Statistic(statistic.name + self._suffix, statistic.row, statistic.monoid)
        self.statistics.append(named)
        return named.merge() if self._in_runs else pl.col(named.name)

    def key(self, column: str) -> pl.Expr:
        return pl.col(column).first() if self._in_runs else pl.col(column)

    def runs(self, key: pl.Expr, rows: list[pl.Expr], *, few: bool) -> tuple[pl.Expr, ...]:
        self.run_name = key.meta.output_name() + self._suffix
        self.run_key = key.alias(INTERNAL + self.run_name)
        self.few_runs = few
        self.run_rows = [Statistic(f"{row.meta.output_name()} by {self.run_name}", row, "sum") for row in rows]
        return tuple(pl.col(statistic.name) for statistic in self.run_rows)

    def run_keys(self, key: pl.Expr) -> pl.Expr:
        return pl.col(INTERNAL + key.meta.output_name() + self._suffix)

    def within(self, name: str, value: pl.Expr, grain: Grain) -> pl.Expr:
        keys = list(dict.fromkeys([*self.by, *self.measure.table.keys(grain)]))
        self.features.append((value.over(keys) if keys else value).alias(INTERNAL + name + self._suffix))
        return pl.col(INTERNAL + name + self._suffix)

    def on_rows(self, name: str, value: pl.Expr) -> pl.Expr:
        self.looks_back.append(value.alias(INTERNAL + name + self._suffix))
        return pl.col(INTERNAL + name + self._suffix)


def _suffix(measure: Measure, roles: Table) -> str:
    words = measure.table.differences(roles)
    reads = measure.probe.reads - {"group"}
    if reads:
        words.append(f"reads {' and '.join(sorted(reads))}, per {measure.grain}")
    if measure.labels is not None:
        words.append(f"labels={list(measure.labels)}")
    words += [f"where {predicate}" for predicate in measure.predicates]
    return f"[{', '.join(words)}]" if words else ""


class Fold:
    """Statistics of the rows at some keys: folded from the rows, or merged from a finer fold of them."""

    def __init__(self, rows: pl.LazyFrame, keys: list[str]) -> None:
        self.rows = rows
        self.keys = keys
        self.statistics: dict[str, Statistic] = {}
        self.features: dict[str, pl.Expr] = {}
        self._finer: Fold | None = None

    def take(self, statistic: Statistic) -> None:
        """Fold a statistic too."""
        known = self.statistics.setdefault(statistic.name, statistic)
        if known.monoid != statistic.monoid or not same_expression(known.row, statistic.row):
            raise _two_of_one_name(statistic.name)
        if statistic.name in self.keys:
            raise NameCollisionError(
                f"{statistic.name!r} is the name of a statistic: alias the key column of that name."
            )

    def take_feature(self, feature: pl.Expr) -> None:
        """Add a column to the rows before they are folded."""
        name = feature.meta.output_name()
        if not same_expression(self.features.setdefault(name, feature), feature):
            raise _two_of_one_name(name.removeprefix(INTERNAL))

    def merge_from(self, finer: Fold) -> None:
        """Have a finer fold do the work, and merge its statistics."""
        for statistic in self.statistics.values():
            finer.take(statistic)
        for feature in self.features.values():
            finer.take_feature(feature)
        self._finer = finer

    def rows_with_features(self) -> pl.LazyFrame:
        """The rows, with the columns that the statistics read beside the table's own."""
        # A run's key may read a rank, and so be worked out after it.
        first = [feature for feature in self.features.values() if not self._is_of_others(feature)]
        then = [feature for feature in self.features.values() if self._is_of_others(feature)]
        rows = self.rows.with_columns(first) if first else self.rows
        return rows.with_columns(then) if then else rows

    def _is_of_others(self, feature: pl.Expr) -> bool:
        return not self.features.keys().isdisjoint(feature.meta.root_names())

    def table(self, statistics: Sequence[Statistic] | None = None) -> pl.LazyFrame:
        """One row a key, with the statistics (all of them, where none are named)."""
        asked = list(self.statistics.values()) if statistics is None else statistics
        if self._finer is not None:
            return fold(
                self._finer.table(), self.keys, [statistic.merge().alias(statistic.name) for statistic in asked]
            )
        return fold(
            self.rows_with_features(), self.keys, [statistic.fold().alias(statistic.name) for statistic in asked]
        )


class Lane:
    """Measures of one kind of unit: one fold, then the units' values, then their groups'."""

    def __init__(
        self, rows: pl.LazyFrame, by: list[str], keys: list[str], run: pl.Expr | None, *, few_runs: bool
    ) -> None:
        self.by = by
        self.keys = keys
        # A group may be one of units: by="label" leaves one label in each.
        self.unit_keys = list(dict.fromkeys([*by, *keys]))
        self.run = run
        self.few_runs = few_runs
        self.fold = Fold(rows, self.unit_keys if run is None else [*self.unit_keys, run.meta.output_name()])
        self.looks_back: dict[str, pl.Expr] = {}
        self.measures: list[tuple[Recorder, Columns]] = []
        if run is not None:
            self.fold.take_feature(run)

    def add(self, recorder: Recorder, columns: Columns) -> None:
        """Take in a measure and whatever its formula asks for."""
        for statistic in (*recorder.statistics, *recorder.run_rows):
            self.fold.take(statistic)
        for feature in recorder.features:
            self.fold.take_feature(feature)
        for value in recorder.looks_back:
            name = value.meta.output_name()
            if not same_expression(self.looks_back.setdefault(name, value), value):
                raise _two_of_one_name(name.removeprefix(INTERNAL))
        self.measures.append((recorder, columns))

    def groups(self) -> pl.LazyFrame:
        """One row a group: the settled values."""
        units = self.units()
        if not self.keys:
            return units
        return fold(
            units, self.by, [c for recorder, columns in self.measures for c in _settled(recorder.measure, columns)]
        )

    def units(self) -> pl.LazyFrame:
        """One row a unit: the values, and what settling needs beside them."""
        values = [c for recorder, columns in self.measures for c in _unsettled(recorder, columns, self.keys)]
        if self.run is None:
            units = self._folded().select(*self.unit_keys, *values)
        else:
            units = self._reduced_runs(self.run.meta.output_name(), values)
        if not self.keys:
            return units
        return units.with_columns(c for _, columns in self.measures for c in self._of_present(columns))

    def _of_present(self, columns: Columns) -> list[pl.Expr]:
        # A unit without a weight is a label that an average by label does not name.
        known = [pl.col(key).is_not_null() for key in (*self.keys, columns.weight)]
        present = all_of([pl.col(columns.present), *known])
        names = (columns.value, columns.weight, columns.unknown)
        return [*(pl.when(present).then(pl.col(name)).alias(name) for name in names), present.alias(columns.present)]

    def _folded(self) -> pl.LazyFrame:
        if not self.looks_back:
            return self.fold.table()
        first: list[Statistic] = []
        again: list[Statistic] = []
        for statistic in self.fold.statistics.values():
            reads_back = self.looks_back.keys() & set(statistic.row.meta.root_names())
            (again if reads_back else first).append(statistic)
        folded = self.fold.table(first)
        some = pl.any_horizontal(value.is_not_null() for value in self.looks_back.values())
        back = folded.filter(some).select(*self.unit_keys, *self.looks_back.values())
        table = fold(self._rows_of(back), self.unit_keys, [s.fold().alias(s.name) for s in again])
        return beside([folded, table], self.unit_keys, how="left")

    def _rows_of(self, units: pl.LazyFrame) -> pl.LazyFrame:
        """The rows of some units, each with what is known of its unit."""
        rows = self.fold.rows_with_features()
        if not self.unit_keys:
            return rows.join(units, how="cross")
        return units.join(rows, on=self.unit_keys, nulls_equal=True)

    def _reduced_runs(self, key: str, values: list[pl.Expr]) -> pl.LazyFrame:
        # The rows that do not count make a run without a key. It keeps its group alive, and is no run of it.
        names = dict.fromkeys(statistic.name for recorder, _ in self.measures for statistic in recorder.run_rows)
        counted = [pl.when(pl.col(key).is_not_null()).then(pl.col(name)).alias(name) for name in names]
        runs = self.fold.table().with_columns(counted).sort(key, descending=True, nulls_last=True)
        # Most formulas are native here. One that cumulates its runs (roc_auc, and others) leaves the streaming
        # engine for this last aggregation: a cumulative sum must start anew in each unit, and one over all of them,
        # less what came before the unit, would lose digits.
        return fold(runs, self.unit_keys, values, in_order=True)


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


def fold(
    rows: pl.LazyFrame, keys: Sequence[str], aggregations: Sequence[pl.Expr], *, in_order: bool = False
) -> pl.LazyFrame:
    """Aggregate by keys; without any, to the one row of the whole."""
    return rows.group_by(keys, maintain_order=in_order).agg(aggregations) if keys else rows.select(aggregations)


def beside(
    tables: Sequence[pl.LazyFrame],
    keys: Sequence[str],
    *,
    how: Literal["inner", "left"] = "inner",
    validate: Literal["m:m", "1:1"] = "m:m",
) -> pl.LazyFrame:
    """Tables of the same keys, side by side."""
    if not keys:
        return pl.concat(tables, how="horizontal")
    return reduce(lambda left, right: left.join(right, on=keys, how=how, nulls_equal=True, validate=validate), tables)
