"""The staged reading: many measures as one lazy plan.

    rows -> [features of rows] -> fold at (by, unit[, run]) -> values of units -> settle -> one row a group

Measures of one grain share a lane: one fold, in which a statistic of one name is folded once. The plan is pure
Polars; nothing in it calls back into Python. Folds mask rows and never filter them, so that a group whose rows are
all excluded is still there.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import closing
from typing import NamedTuple

import polars as pl

from polars_mlmetrics.data.roles import Grain, Table, Types, all_of, same_expression, types_of
from polars_mlmetrics.engine.arithmetic import even
from polars_mlmetrics.engine.folds import CODE, INTERNAL, Fold, beside, fold, fold_rows, two_of_one_name
from polars_mlmetrics.engine.measure import Measure, Targets
from polars_mlmetrics.engine.parameters import identity
from polars_mlmetrics.engine.passes import Passes
from polars_mlmetrics.engine.ranking import Ranking, code_of, take_share
from polars_mlmetrics.engine.reading import Statistic
from polars_mlmetrics.engine.recorder import Recorder


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

    def __init__(self, rows: pl.LazyFrame, by: Sequence[str], roles: Table, passes: Passes | None = None) -> None:
        self.rows = rows
        self.passes = passes
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
        plan, settled = self._targets.setdefault(targets.column, (Plan(self.rows, by, self.roles, self.passes), []))
        value, target = pl.col(plan.add(measure.of_one_target()).value), pl.col(targets.column)
        settled += [
            targets.value(value, target).alias(columns.value),
            (target.is_not_null() & value.is_null()).sum().cast(pl.Int64).alias(columns.undefined_units),
        ]

    def groups(self) -> pl.LazyFrame:
        """One row a group, with the columns of every measure."""
        self._fold_in_passes()
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
        if self.passes is None or not all(lane.grain == "sample" and lane.in_passes for lane in lanes):
            self._fold_in_passes()
            return self._units_of(lanes)
        with closing(self._passes(lanes, self.passes)) as passes:
            return pl.concat([self._units_of(lanes).collect() for _ in passes]).lazy()

    def _units_of(self, lanes: list[Lane]) -> pl.LazyFrame:
        units = beside([lane.units() for lane in lanes], lanes[0].unit_keys)
        return units.filter(pl.any_horizontal(columns.present for columns in self._settled.values()))

    def _fold_in_passes(self) -> None:
        """Work out what must be worked out of whole samples, a part of them at a time."""
        lanes = [lane for lane in self._lanes.values() if lane.in_passes]
        if self.passes is None or not lanes:
            return
        with closing(self._passes(lanes, self.passes)) as passes:
            told = [pl.collect_all([lane.part() for lane in lanes]) for _ in passes]
        for lane, *parts in zip(lanes, *told, strict=True):
            lane.read(self._coded(lane.by, self.rows))
            lane.merge(parts)

    def _passes(self, lanes: list[Lane], passes: Passes) -> Generator[None]:
        """Have lanes read one part of the rows after the other."""
        # Closed at once where a pass fails, not when the error is forgotten: till then a bar would stay on the screen.
        with closing(passes.parts(sum(lane.bytes_a_row for lane in lanes))) as parts:
            for rows in parts:
                for lane in lanes:
                    lane.read(self._coded(lane.by, rows))
                yield

    def _recorder(self, measure: Measure, *, in_runs: bool) -> Recorder:
        roles = identity(measure.roles)
        if roles not in self._types:
            self._types[roles] = types_of(self.rows, measure.table)
        by = [CODE] if self._is_coded(measure) else self.by
        recorder = Recorder(
            measure,
            by,
            self.roles,
            self._types[roles],
            in_runs=in_runs,
            ranks=not in_runs and self._has_codes(measure),
        )
        if recorder.stands_apart:
            return recorder
        return Recorder(measure, by, self.roles, self._types[roles], in_runs=in_runs, ranks=False)

    def _has_codes(self, measure: Measure) -> bool:
        """Whether equal keys of its units have equal codes: one zero inside a list may not be the other."""
        keys = [*self.by, *measure.table.keys(measure.grain)]
        return not any(self.schema[key].is_nested() or self.schema[key] == pl.Object for key in keys)

    def _lane_of(self, recorder: Recorder) -> Lane:
        measure = recorder.measure
        keys = measure.table.keys(measure.grain)
        in_passes = self.passes is not None and recorder.is_of_whole_samples
        name = (measure.grain, recorder.run_name, "in passes" if in_passes else "at once", *keys)
        if name not in self._lanes:
            rows = self._coded(recorder.by, self.rows)
            run, few_runs = recorder.run_key, recorder.few_runs
            self._lanes[name] = Lane(
                rows, recorder.by, measure.grain, keys, run, few_runs=few_runs, in_passes=in_passes
            )
        return self._lanes[name]

    def _is_coded(self, measure: Measure) -> bool:
        """Whether one number stands for the by columns: a key less to match when millions of samples are folded.

        Not for floats, of which 0.0 and -0.0 are one group and two codes.
        """
        if measure.grain != "sample" or measure.per is not None:
            return False
        types = [self.schema[key] for key in self.by]
        return len(types) > 1 and all(t.is_integer() or t.is_temporal() or t in (pl.String, pl.Boolean) for t in types)

    def _coded(self, by: list[str], rows: pl.LazyFrame) -> pl.LazyFrame:
        return rows if by == self.by else rows.with_columns(self._code())

    def _code(self) -> pl.Expr:
        return even(code_of(self.by)).alias(CODE)

    def _share_folds(self) -> None:
        """Let the group, its labels and its few runs (bins) be merged from one fold of the rows at all their keys.

        Polars sees that the fold is used several times, and makes it once.
        """
        lanes = [lane for lane in self._lanes.values() if lane.keys in ([], [self.roles.label]) and not lane.looks_back]
        lanes = [lane for lane in lanes if not lane.in_passes and lane.windows <= {"sample"}]
        run = next((lane.run for lane in lanes if lane.few_runs), None)
        lanes = [lane for lane in lanes if lane.run is None or same_expression(lane.run, run)]
        if len(lanes) > 1:
            shared = Fold(self.rows, list(dict.fromkeys(key for lane in lanes for key in lane.fold.keys)))
            for lane in lanes:
                lane.fold.merge_from(shared)


class Lane:
    """Measures of one kind of unit: one fold, then the units' values, then their groups'."""

    def __init__(
        self,
        rows: pl.LazyFrame,
        by: list[str],
        grain: Grain,
        keys: list[str],
        run: pl.Expr | None,
        *,
        few_runs: bool,
        in_passes: bool,
    ) -> None:
        self.grain = grain
        self.in_passes = in_passes
        self.by = by
        self.keys = keys
        self._parts: pl.LazyFrame | None = None
        # A group may be one of units: by="label" leaves one label in each.
        self.unit_keys = list(dict.fromkeys([*by, *keys]))
        self.run = run
        self.few_runs = few_runs
        self.fold = Fold(rows, self.unit_keys if run is None else [*self.unit_keys, run.meta.output_name()])
        self.looks_back: dict[str, pl.Expr] = {}
        self.measures: list[tuple[Recorder, Columns]] = []
        self.rankings: dict[tuple[object, ...], Ranking] = {}
        if run is not None:
            self.fold.take_feature(run)

    def add(self, recorder: Recorder, columns: Columns) -> None:
        """Take in a measure and whatever its formula asks for."""
        for statistic in (*recorder.folded, *recorder.run_rows):
            self.fold.take(statistic)
        for order, statistics, shares in recorder.ranked():
            same = (order.rows, order.number, order.truth, order.name, list(order.held))
            ranking = self.rankings.setdefault(identity(same), Ranking(order, self.unit_keys))
            for name, of_place in shares.items():
                take_share(ranking.shares, name, of_place)
            for statistic in statistics:
                # One that reads no truth may be told by an order that does.
                known = (other for other in self.rankings.values() if statistic.name in other.statistics)
                next(known, ranking).take(statistic)
        for feature in recorder.features:
            self.fold.take_feature(feature)
        for value in recorder.looks_back:
            name = value.meta.output_name()
            if not same_expression(self.looks_back.setdefault(name, value), value):
                raise two_of_one_name(name.removeprefix(INTERNAL))
        self.measures.append((recorder, columns))

    @property
    def windows(self) -> set[Grain]:
        """The grains whose rows a feature of a row is worked out of."""
        return {grain for recorder, _ in self.measures for grain in recorder.windows}

    @property
    def bytes_a_row(self) -> int:
        """What a row takes, about, while it is ranked, or looked at in windows, or folded."""
        return 25 + 70 * len(self.rankings) + (75 if self.fold.features else 0)

    def read(self, rows: pl.LazyFrame) -> None:
        """Take other rows."""
        self.fold.rows = rows

    def part(self) -> pl.LazyFrame:
        """What the rows give to be merged with what other rows give: sums over samples, or else the fold."""
        return self._sums() if self.grain == "sample" else self.fold.table(self._looks()[0])

    def merge(self, parts: Sequence[pl.DataFrame]) -> None:
        """Take what parts of the rows gave, instead of the rows."""
        merged = pl.concat(parts).lazy()
        if self.grain == "sample":
            self._parts = merged
        else:
            self.fold.merge_parts(merged)

    def groups(self) -> pl.LazyFrame:
        """One row a group: the settled values."""
        if not self.keys:
            return self.units()
        sums = self._sums() if self._parts is None else fold(self._parts, self.by, [pl.exclude(self.by).sum()])
        return sums.select(*self.by, *(c for recorder, columns in self.measures for c in _settled(recorder, columns)))

    def _sums(self) -> pl.LazyFrame:
        """One row a group: what settling needs to know of all its units together."""
        sums = [c for recorder, columns in self.measures for c in _sums(recorder, columns).values()]
        return fold(self.units(), self.by, sums)

    def units(self) -> pl.LazyFrame:
        """One row a unit: the values, and what settling needs beside them."""
        values = [c for recorder, columns in self.measures for c in _unsettled(recorder, columns, self.keys)]
        if self.run is None:
            units = self._ranked(self._folded()).select(*self.unit_keys, *values)
        else:
            units = self._reduced_runs(self.run.meta.output_name(), values)
        if not self.keys:
            return units
        return units.with_columns(c for recorder, columns in self.measures for c in self._of_present(recorder, columns))

    def _of_present(self, recorder: Recorder, columns: Columns) -> list[pl.Expr]:
        told = _told_of_units(recorder, columns)
        # A unit without a weight is a label that an average by label does not name.
        known = [pl.col(key).is_not_null() for key in (*self.keys, *(told.keys() & {columns.weight}))]
        present = all_of([pl.col(columns.present), *known])
        return [*(pl.when(present).then(pl.col(name)).alias(name) for name in told), present.alias(columns.present)]

    def _ranked(self, units: pl.LazyFrame) -> pl.LazyFrame:
        names = [*self.fold.statistics, *(name for ranking in self.rankings.values() for name in ranking.statistics)]
        for name in names:
            if names.count(name) > 1:
                raise two_of_one_name(name)
        for ranking in self.rankings.values():
            units = ranking.join_to(units, self.fold.rows_with_features())
        return units

    def _folded(self) -> pl.LazyFrame:
        if not self.looks_back:
            return self.fold.table()
        first, again = self._looks()
        folded = self.fold.table(first)
        some = pl.any_horizontal(value.is_not_null() for value in self.looks_back.values())
        back = folded.filter(some).select(*self.unit_keys, *self.looks_back.values())
        table = fold_rows(self._rows_of(back), self.unit_keys, again)
        return beside([folded, table], self.unit_keys, how="left", nulls_equal=self._may_have_null)

    def _looks(self) -> tuple[list[Statistic], list[Statistic]]:
        """The statistics of a first look at the rows, and of the second."""
        first: list[Statistic] = []
        again: list[Statistic] = []
        for statistic in self.fold.statistics.values():
            reads_back = self.looks_back.keys() & set(statistic.row.meta.root_names())
            (again if reads_back else first).append(statistic)
        return first, again

    def _rows_of(self, units: pl.LazyFrame) -> pl.LazyFrame:
        """The rows of some units, each with what is known of its unit."""
        rows = self.fold.rows_with_features()
        if not self.unit_keys:
            return rows.join(units, how="cross")
        return units.join(rows, on=self.unit_keys, nulls_equal=self._may_have_null)

    @property
    def _may_have_null(self) -> bool:
        # A code is never null, and a unit without a key is never settled. To match nulls takes its time.
        return self.by != [CODE]

    def _reduced_runs(self, key: str, values: list[pl.Expr]) -> pl.LazyFrame:
        # The rows that do not count make a run without a key. It keeps its group alive, and is no run of it.
        names = dict.fromkeys(statistic.name for recorder, _ in self.measures for statistic in recorder.run_rows)
        counted = [pl.when(pl.col(key).is_not_null()).then(pl.col(name)).alias(name) for name in names]
        runs = self.fold.table().with_columns(counted).sort(key, descending=True, nulls_last=True)
        # Most formulas are native here. One that cumulates its runs (ks, and others) leaves the streaming
        # engine for this last aggregation: a cumulative sum must start anew in each unit, and one over all of them,
        # less what came before the unit, would lose digits.
        return fold(runs, self.unit_keys, values, in_order=True)


def _unsettled(recorder: Recorder, columns: Columns, keys: Sequence[str]) -> list[pl.Expr]:
    value = recorder.answer.value
    if not keys:
        return [value.alias(columns.value), value.is_null().cast(pl.Int64).alias(columns.undefined_units)]
    told = [expression.alias(name) for name, expression in _told_of_units(recorder, columns).items()]
    return [*told, (recorder.answer.rows > 0).alias(columns.present)]


def _told_of_units(recorder: Recorder, columns: Columns) -> dict[str, pl.Expr]:
    """What settling needs to know of each unit, by column."""
    value, weight, _, unknown = recorder.answer
    told = {columns.value: value, columns.weight: weight, columns.unknown: unknown}
    return {name: expression for name, expression in told.items() if expression is not None}


def _sums(recorder: Recorder, columns: Columns) -> dict[str, pl.Expr]:
    """What is summed over the units of a group, by the name that the settlement has for it."""
    settlement, value = recorder.measure.settlement, pl.col(columns.value)
    weight = None if recorder.answer.weight is None else pl.col(columns.weight)
    unknown = None if recorder.answer.unknown is None else pl.col(columns.unknown)
    units = pl.col(columns.present).sum().cast(pl.Int64)
    sums = settlement.sums(value, weight, units, unknown)
    return {name: column.alias(f"{columns.value}_{name}") for name, column in sums.items()}


def _settled(recorder: Recorder, columns: Columns) -> list[pl.Expr]:
    settlement = recorder.measure.settlement
    sums = {name: pl.col(column.meta.output_name()) for name, column in _sums(recorder, columns).items()}
    return [
        settlement.settled(sums).alias(columns.value),
        settlement.undefined_units(sums).alias(columns.undefined_units),
    ]
