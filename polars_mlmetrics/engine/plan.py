"""The staged reading: many measures as one lazy plan.

    source -> partials at (by, unit[, run]) -> values of units -> settled -> one row a group

Measures of one kind of unit share a partial: one fold, in which a statistic of one name is folded once. The plan is
pure Polars; nothing in it calls back into Python. Folds mask rows and never filter them, so that a group whose rows are
all excluded is still there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple, Self

import polars as pl

from polars_mlmetrics.data.door import Types, types_of
from polars_mlmetrics.data.roles import Table
from polars_mlmetrics.engine.folds import fold, matched
from polars_mlmetrics.engine.formula_reader import FormulaReader
from polars_mlmetrics.engine.partials import Partial, table_of
from polars_mlmetrics.engine.placements import moved_by_bucket
from polars_mlmetrics.engine.sources import Source
from polars_mlmetrics.engine.split_samples import Counts
from polars_mlmetrics.engine.values import Columns
from polars_mlmetrics.formula.measure import Measure, Node, Planned
from polars_mlmetrics.formula.over_targets import OverTargets, mean_of
from polars_mlmetrics.formula.parameters import identity

FEW_ROWS = 20_000
"""So many rows in memory are ranked sooner by windows than by the ranking pass, which is a longer plan and a join."""


KEPT: dict[tuple[object, ...], FormulaReader] = {}
"""Read formulas of the library, kept from one query to the next. Formulas of users may read values that change."""

MOST_KEPT = 1000


class ReadFormulas:
    """The read formulas of measures. Each is read once, for all groupings of a query.

    `roles` are the query's own: what a measure is bound to beyond them shows in the names of its statistics.
    With `few_rows` windows rank the rows of a group.
    """

    def __init__(self, schema: pl.Schema, roles: Table, *, few_rows: bool = False) -> None:
        self.roles = roles
        self.few_rows = few_rows
        self.schema = schema
        self._measures: dict[tuple[object, ...], Measure] = {}
        self._types: dict[Table, Types] = {}
        self._readers: dict[tuple[object, ...], FormulaReader] = {}
        self._roles_key = identity(roles.roles())

    def of(self, measure: Measure, *, in_runs: bool, ranks: bool) -> FormulaReader:
        """The read formula of a measure. `ranks` says that units can be told apart by a code."""
        # One of several equal ones: a measure keeps what it learns of its formula.
        measure = self._measures.setdefault(measure.key_in_full, measure)
        name = (measure.key_in_full, in_runs, ranks)
        if name not in self._readers:
            self._readers[name] = self._read(measure, in_runs=in_runs, ranks=ranks)
        return self._readers[name]

    def _read(self, measure: Measure, *, in_runs: bool, ranks: bool) -> FormulaReader:
        types = self._types_of(measure)
        # Messages call a measure by its name.
        key = (measure.key, measure.output_name, self._roles_key, tuple(types.items()), in_runs, ranks)
        found = None if measure.is_from_elsewhere else KEPT.get(key)
        if found is None:
            found = FormulaReader.read(measure, self.roles, types, in_runs=in_runs, ranks=ranks)
            if not measure.is_from_elsewhere:
                if len(KEPT) >= MOST_KEPT:
                    KEPT.clear()
                KEPT[key] = found
        return found

    def _types_of(self, measure: Measure) -> Types:
        if measure.table not in self._types:
            self._types[measure.table] = types_of(self.schema, measure.table)
        return self._types[measure.table]


class Runs(NamedTuple):
    """The runs of a formula in each group, as a table: a row for each run, and one without a key for the other rows."""

    table: pl.LazyFrame
    key: pl.Expr
    sums: list[pl.Expr]
    """The sums over the rows of a run, in the order in which the formula has them."""
    n_rows: pl.Expr
    """How many rows the formula uses of a row of the table. A state knows it for whole groups only."""
    is_broken: pl.Expr
    """Whether there are rows that break the value of the group."""


class Plan:
    """The values of measures, by group or by unit."""

    def __init__(self, source: Source, by: Sequence[str], readings: ReadFormulas) -> None:
        self.source = source
        self.by = list(by)
        self.keys = self.by
        """The columns that tell the rows of the table of groups apart."""
        self.readings = readings
        self.roles = readings.roles
        self.schema = source.schema
        self._settled: dict[tuple[object, ...], tuple[Planned, Columns]] = {}
        self._partials: dict[tuple[object, ...], Partial] = {}
        self._several: dict[str, Counts] = {}
        self._targets: dict[str, tuple[Plan, list[pl.Expr]]] = {}
        self._of_each_unit: dict[tuple[str, ...], Plan] = {}
        """Plans whose groups are units, by their keys: those count the samples of a label."""

    def again(self, source: Source, by: Sequence[str], parts: Iterable[Planned] | None = None) -> Self:
        """Plan the same metrics in other groups or of another source, in columns of the same names.

        Metrics that cannot be merged are left out. With `parts`, tables that none of these needs are, too.
        """

        def source_of(planned: Planned) -> tuple[object, ...]:
            """A key that is equal for what comes from one table."""
            if isinstance(planned, OverTargets):
                return ("targets", planned.column)
            (measure,) = planned.measures()
            plan, measure = self._plan_of(measure)
            return (*plan.by, *table_of(plan.reader(measure)))

        tables = None if parts is None else {source_of(part) for part in parts}
        plan = type(self)(source, by, self.readings)
        for planned, columns in self._settled.values():
            if self.merges(planned) and (tables is None or source_of(planned) in tables):
                plan._take(planned, columns)
        return plan

    def value(self, metric: Node, read: Callable[[Planned, Columns], pl.Expr] | None = None) -> pl.Expr:
        """The value of a metric, from the columns of the plan; null where one of its parts is not known.

        `read` takes the value of a part from its columns, where it is more than one of them.
        """
        added: list[Columns] = []

        def value(part: Planned) -> pl.Expr:
            added.append(self.add(part))
            return pl.col(added[-1].value) if read is None else read(part, added[-1])

        combined = metric.combined(value)
        return self.where_whole(combined, added)

    def sides(self, metric: Node) -> list[pl.Expr]:
        """The value of a metric on each side: there is one, but of differences."""
        return [self.value(metric)]

    def where_whole(self, value: pl.Expr, parts: Iterable[Columns]) -> pl.Expr:
        """The value, null in groups of a state where a sample that its parts look into may not be whole."""
        reasons = self.reasons_of(parts)
        if not reasons:
            return value
        return pl.when(pl.all_horizontal(pl.col(reason).is_null() for reason in reasons)).then(value)

    def reasons_of(self, planned: Iterable[Columns]) -> list[str]:
        """The columns that say why one of these values is not known in a group of a state."""
        return [columns.several for columns in planned if columns.several in self._several]

    def add(self, planned: Planned) -> Columns:
        """The columns that will hold the value of a measure, or of a mean over targets. Equal ones share them."""
        # However its columns are said.
        key = planned.key_in_full
        if key not in self._settled:
            self._take(planned, Columns.numbered(len(self._settled)))
        _, columns = self._settled[key]
        return columns

    def _take(self, planned: Planned, columns: Columns) -> None:
        self._settled[planned.key_in_full] = planned, columns
        if isinstance(planned, OverTargets):
            self._add_targets(planned, columns)
        elif isinstance(planned, Measure):
            plan, measure = self._plan_of(planned)
            plan._add_measure(measure, columns)

    def _plan_of(self, measure: Measure) -> tuple[Plan, Measure]:
        """The plan that works out a measure, and how it is put there."""
        if measure.per is None or measure.has_units(measure.per):
            return self, measure
        by = list(dict.fromkeys([*self.by, *measure.table.keys(measure.per)]))
        plan = self._of_each_unit.setdefault(tuple(by), Plan(self.source, by, self.readings))
        return plan, replace(measure, per=None)

    def _add_measure(self, measure: Measure, columns: Columns) -> None:
        reader = self.reader(measure)
        counts = self.source.check(reader, self.by, self.roles)
        if counts:
            self._several[columns.several] = counts
        partial = self._partial_of(reader)
        # A formula over runs reads its other statistics as sums over them, so it is read again as one.
        partial.add(reader if partial.run is None else self.reader(reader.measure, in_runs=True), columns)

    def _add_targets(self, mean: OverTargets, columns: Columns) -> None:
        self.source.check_target(mean.output_name, mean.column)
        by = list(dict.fromkeys([*self.by, mean.column]))
        if mean.column not in self._targets:
            self._targets[mean.column] = (Plan(self.source, by, self.readings), [])
        plan, settled = self._targets[mean.column]
        added: list[Columns] = []

        def value(part: Planned) -> pl.Expr:
            added.append(plan.add(part))
            return pl.col(added[-1].value)

        sums = {name: term.sum() for name, term in mean.terms(value, pl.col(mean.column)).items()}
        settled += [mean_of(sums).alias(columns.value), sums["undefined"].alias(columns.undefined_units)]
        reasons = [pl.col(reason).min() for reason in plan.reasons_of(added)]
        if reasons:
            settled.append(pl.coalesce(reasons).alias(columns.several))
            self._several[columns.several] = {}

    def merges(self, metric: Node) -> bool:
        """Whether what parts of the rows tell of a metric can be put together."""
        plans = (self._plan_of(measure) for measure in metric.measures())
        return all(plan.reader(measure).merges_by is not None for plan, measure in plans)

    def can_answer(self, measure: Measure) -> bool:
        """Whether a measure can be added at little cost."""
        plan, measure = self._plan_of(measure)
        return plan.source.can_answer(plan.reader(measure), plan.by, self.roles)

    def reader(self, measure: Measure, *, in_runs: bool = False) -> FormulaReader:
        """The read formula of a measure."""
        in_windows = self.readings.few_rows and measure.grain == "group"
        ranks = not in_runs and not in_windows and self._has_codes(measure)
        return self.readings.of(measure, in_runs=in_runs, ranks=ranks)

    def _has_codes(self, measure: Measure) -> bool:
        """Whether equal keys of its units have equal codes: one zero inside a list may not be the other."""
        keys = [*self.by, *measure.table.keys(measure.grain)]
        return not any(self.schema[key].is_nested() or self.schema[key] == pl.Object for key in keys)

    def _partial_of(self, reader: FormulaReader) -> Partial:
        """The partial that holds what a formula asks for."""
        measure, table = reader.measure, table_of(reader)
        if table not in self._partials:
            by, keys = self.source.group_keys(measure, self.by), measure.table.keys(measure.grain)
            whole = reader.merges_by == "samples"
            self._partials[table] = Partial(
                by, measure.grain, keys, reader.run_key, cells=reader.cells, whole_samples=whole
            )
        return self._partials[table]

    @property
    def all_partials(self) -> list[Partial]:
        """The partials of this plan, and those of its plans for targets and for units."""
        plans = [*(plan for plan, _ in self._targets.values()), *self._of_each_unit.values()]
        return [*self._partials.values(), *(each for plan in plans for each in plan.all_partials)]

    def can_place(self, measure: Measure) -> bool:
        """Whether how its rows stand says how far each bucket of them moves its value."""
        return measure.declaration.influence is not None and any(self.reader(measure).ranked)

    def place(self, measure: Measure, bucket: str) -> None:
        """Ask for it, with the column that says which bucket a row is in."""
        self.add(measure)
        reader = self.reader(measure)
        self._partial_of(reader).place(reader, bucket)

    def moved(self, measure: Measure, bucket: str) -> pl.LazyFrame:
        """One row a group (or a unit that is not settled) and bucket: how far it moves the value. The plan is made."""
        reader = self.reader(measure)
        partial = self._partial_of(reader)
        return moved_by_bucket(measure, partial.placements(reader), self.by, partial.unit_keys, bucket)

    def groups(self) -> pl.LazyFrame:
        """One row a group, with the columns of every measure."""
        partials = list(self._partials.values())
        tables = [fold(plan.groups(), self.by, settled) for plan, settled in self._targets.values()]
        coded: list[pl.LazyFrame] = []
        for partial, (table, by) in zip(partials, self.source.partials(partials, self.by), strict=True):
            values = partial.values
            if not partial.keys:
                tables.append(self._units_of(partial, table))
            else:
                sums = table if partial.grain == "sample" else values.sums(self._units_of(partial, table), by)
                (tables if by == self.by else coded).append(values.settled(sums, by))
        return self._with_reasons(self.source.joined(tables, coded, self.by))

    def _units_of(self, partial: Partial, statistics: pl.LazyFrame) -> pl.LazyFrame:
        """The values of units that are no samples."""
        return partial.values.of_units(statistics)

    def runs(self, measure: Measure) -> Runs:
        """Fold a formula over runs without reducing these to a value."""
        self.add(measure)
        reader = self.reader(measure, in_runs=True)
        partial = self._partial_of(reader)
        [(table, _)] = self.source.partials([partial], self.by)
        sums = [pl.col(statistic.name) for statistic in reader.run_rows]
        n_rows = pl.col(reader.answer.rows.meta.output_name())
        broken = (pl.col(name) > 0 for name in sorted(reader.broken))
        return Runs(table, pl.col(partial.fold.keys[-1]), sums, n_rows, pl.any_horizontal(pl.lit(False), *broken))

    def units(self) -> pl.LazyFrame:
        """One row a unit, with the values of measures that all stop at one grain."""
        table = self.source.units(list(self._partials.values()), self.by)
        for plan in self._of_each_unit.values():
            if plan._partials:  # none where it was only tried whether the source can answer
                table = matched(table, plan.groups(), plan.by, how="left")
        return self._with_reasons(table)

    def _with_reasons(self, table: pl.LazyFrame) -> pl.LazyFrame:
        counts = {reason: counts for reason, counts in self._several.items() if counts}
        return self.source.with_reasons(table, self.by, counts) if counts else table
