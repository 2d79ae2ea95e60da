"""The staged reading: many measures as one lazy plan.

    source -> partials at (by, unit[, run]) -> values of units -> settled -> one row a group

Measures of one kind of unit share a partial: one fold, in which a statistic of one name is folded once. The plan is
pure Polars; nothing in it calls back into Python. Folds mask rows and never filter them, so that a group whose rows are
all excluded is still there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import polars as pl

from polars_mlmetrics.engine.asked import Asked, Readings
from polars_mlmetrics.engine.folds import fold
from polars_mlmetrics.engine.partials import Partial
from polars_mlmetrics.engine.placements import moved_by_bucket
from polars_mlmetrics.engine.sources import Source
from polars_mlmetrics.engine.values import Columns
from polars_mlmetrics.formula.measure import Measure, Node, Planned
from polars_mlmetrics.formula.targets import OverTargets, mean_of


class Plan(Asked):
    """The values of measures, by group or by unit."""

    def __init__(self, source: Source, by: Sequence[str], readings: Readings) -> None:
        super().__init__(source, by, readings)
        self._targets: dict[str, tuple[Plan, list[pl.Expr]]] = {}

    def again(self, source: Source, by: Sequence[str]) -> Self:
        """The same in other groups, or of another source, in columns of the same names; without what cannot merge."""
        plan = type(self)(source, by, self.readings)
        for planned, columns in self._settled.values():
            if self.merges(planned):
                plan._take(planned, columns)
        return plan

    def merges(self, metric: Node) -> bool:
        """Whether what parts of the rows tell of a metric can be put together."""
        return all(self._recorder(measure).merges_by is not None for measure in metric.measures())

    def size(self, metric: Node) -> pl.Expr:
        """What the rounding of a value is measured by."""
        return self.value(metric).cast(pl.Float64).abs()

    def can_place(self, measure: Measure) -> bool:
        """Whether how its rows stand says how far each bucket of them moves its value."""
        return measure.declaration.influence is not None and any(self._recorder(measure).ranked)

    def place(self, measure: Measure, bucket: str) -> None:
        """Ask for it, with the column that says which bucket a row is in."""
        self.add(measure)
        recorder = self._recorder(measure)
        self._partial_of(recorder).place(recorder, bucket)

    def moved(self, measure: Measure, bucket: str) -> pl.LazyFrame:
        """One row a group (or a unit that is not settled) and bucket: how far it moves the value. The plan is made."""
        recorder = self._recorder(measure)
        partial = self._partial_of(recorder)
        return moved_by_bucket(measure, partial.placements(recorder), self.by, partial.unit_keys, bucket)

    def _add_measure(self, measure: Measure, columns: Columns) -> None:
        recorder = self._recorder(measure)
        counts = self.source.check(recorder, self.by, self.roles)
        if counts:
            self._several[columns.several] = counts
        self._add_to_partial(recorder, columns)

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

    @property
    def asked(self) -> list[Partial]:
        return [*self._partials.values(), *(each for plan, _ in self._targets.values() for each in plan.asked)]

    def can_answer(self, measure: Measure) -> bool:
        return self.source.can_answer(self._recorder(measure), self.by, self.roles)

    def groups(self) -> pl.LazyFrame:
        """One row a group, with the columns of every measure."""
        asked = list(self._partials.values())
        tables = [fold(plan.groups(), self.by, settled) for plan, settled in self._targets.values()]
        coded: list[pl.LazyFrame] = []
        for partial, (table, by) in zip(asked, self.source.partials(asked, self.by), strict=True):
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

    def units(self) -> pl.LazyFrame:
        """One row a unit, with the values of measures that all stop at one grain."""
        return self._with_reasons(self.source.units(list(self._partials.values()), self.by))

    def _with_reasons(self, table: pl.LazyFrame) -> pl.LazyFrame:
        counts = {reason: counts for reason, counts in self._several.items() if counts}
        return self.source.with_reasons(table, self.by, counts) if counts else table
