"""A lane of a plan: measures of one kind of unit, from one fold to the values of units, and to those of groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from polars_mlmetrics.data.roles import Grain, all_of, same_expression
from polars_mlmetrics.engine.folds import BIN, CODE, Fold, beside, fold, fold_rows, two_of_one_name
from polars_mlmetrics.engine.ranking import UNIT, Ranking, take_share
from polars_mlmetrics.engine.ranking_by_id import NUMBER
from polars_mlmetrics.engine.recorder import Recorder
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.arithmetic import number_of_group, small_of_code
from polars_mlmetrics.formula.parameters import identity
from polars_mlmetrics.formula.statistic import Statistic


class Columns(NamedTuple):
    """The columns of a plan that belong to one measure."""

    value: str
    weight: str
    present: str
    unknown: str
    undefined_units: str
    several: str
    """Why it is not known in a group of a state; null where it is."""

    @classmethod
    def numbered(cls, number: int) -> Columns:
        return cls(*(f"{INTERNAL}{part}_{number}" for part in cls._fields))


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

    def add(self, recorder: Recorder, columns: Columns) -> None:
        """Take in a measure and whatever its formula asks for."""
        self.take(recorder, [*recorder.folded, *recorder.run_rows])
        if recorder.run_key is not None:
            self.fold.take_feature(recorder.run_key)
        for order, statistics, shares, counts in recorder.ranked():
            same = (order.rows, order.number, order.truth, order.name, list(order.held))
            ranking = self.rankings.setdefault(identity(same), Ranking(order, self.unit_keys))
            for name, share in shares.items():
                take_share(ranking.shares, name, share)
            if self.grain == "sample":
                told = {name for other in self.rankings.values() for name in other.counts}
                ranking.counts.update((name, place) for name, place in counts.items() if name not in told)
            for statistic in statistics:
                # One that reads no truth may be told by an order that does.
                known = (other for other in self.rankings.values() if statistic.name in other.statistics)
                next(known, ranking).take(statistic)
        if self.looks_back:
            # A second look at the rows starts from what is known of units before they are ranked.
            for ranking in self.rankings.values():
                ranking.counts.clear()
        self.measures.append((recorder, columns))

    def take(self, recorder: Recorder, statistics: Sequence[Statistic]) -> None:
        """Fold statistics of a formula, with what else they read."""
        for statistic in statistics:
            self.fold.take(statistic)
        for feature in recorder.features:
            self.fold.take_feature(feature)
        for value in recorder.looks_back:
            name = value.meta.output_name()
            if not same_expression(self.looks_back.setdefault(name, value), value):
                raise two_of_one_name(name.removeprefix(INTERNAL))

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
        return self._sums() if self.grain == "sample" else self.folded()

    def merge(self, parts: Sequence[pl.DataFrame]) -> None:
        """Take what parts of the rows gave, instead of the rows."""
        merged = pl.concat(parts).lazy()
        if self.grain == "sample":
            self._parts = merged
        else:
            self.fold.merge_parts(merged)

    def needed(self) -> list[str]:
        """The statistics that a state must hold for it."""
        sums = [name for recorder, columns in self.measures for name in held_sums(recorder, columns)]
        return sums if self.grain == "sample" else list(self.fold.statistics)

    def take_from(self, state: pl.LazyFrame) -> None:
        """Take what a state holds, instead of the rows."""
        if self.grain == "sample":
            held = [pl.col(name).alias(column) for r, c in self.measures for name, column in held_sums(r, c).items()]
            self._parts = state.select(*self.by, *held)
        elif self.run is None:
            self.fold.merge_parts(state)
        else:
            # The bins of other measures stand in the same column.
            own = pl.any_horizontal(pl.col(s.name).is_not_null() for r, _ in self.measures for s in r.run_rows)
            self.fold.merge_parts(state.with_columns(pl.when(own).then(pl.col(BIN)).alias(self.run.meta.output_name())))

    def groups(self) -> pl.LazyFrame:
        """One row a group: the settled values."""
        if not self.keys:
            return self.units()
        return self.settled(self.sums(), self.by)

    def settled(self, sums: pl.LazyFrame, by: Sequence[str]) -> pl.LazyFrame:
        """The settled values of groups, from what all their units are together."""
        settled = (column for recorder, columns in self.measures for column in _settled(recorder, columns))
        return sums.select(*by, *settled)

    def sums(self) -> pl.LazyFrame:
        """One row a group: what settling needs to know of all its units together."""
        return self._sums() if self._parts is None else fold(self._parts, self.by, [pl.exclude(self.by).sum()])

    def _sums(self) -> pl.LazyFrame:
        return self._summed(self.units(), self.by)

    def _summed(self, units: pl.LazyFrame, by: Sequence[str]) -> pl.LazyFrame:
        return fold(units, by, [c for recorder, columns in self.measures for c in _sums(recorder, columns).values()])

    @property
    def counting(self) -> Ranking | None:
        """The ranking that tells the rows of every unit, where beside it only rows are counted, and few as a rule."""
        counting = [ranking for ranking in self.rankings.values() if ranking.counts]
        rows = [recorder.answer.rows.meta.output_name() for recorder, _ in self.measures]
        if self.fold.features or len(counting) != 1 or not all(name in counting[0].counts for name in rows):
            return None
        return counting[0] if all(s.is_count and s.counted is not None for s in self._of_rows()) else None

    def sums_by_code(self, code: pl.Expr) -> pl.LazyFrame:
        """Sums of samples by the number of their group, where rows have a code that tells it and the sample."""
        rows, of_rows, counting = self.fold.rows, self._of_rows(), self.counting
        assert counting is not None
        units = counting.table(rows, code)
        for ranking in self.rankings.values():
            if ranking is not counting:
                units = ranking.join_to_coded(units, rows, code)
        if of_rows:
            counted = rows.filter(pl.any_horizontal(count.row > 0 for count in of_rows)).with_columns(code.alias(UNIT))
            units = units.join(fold_rows(counted, [UNIT], of_rows), on=UNIT, how="left")
            units = units.with_columns(pl.col(count.name).fill_null(0) for count in of_rows)
        [sample] = self.keys
        named = [number_of_group(pl.col(UNIT)).alias(NUMBER), small_of_code(pl.col(UNIT)).alias(sample)]
        return self._summed(self._valued(units.with_columns(named), [NUMBER, sample]), [NUMBER])

    def units(self) -> pl.LazyFrame:
        """One row a unit: the values, and what settling needs beside them."""
        if self.run is None:
            return self._valued(self._ranked(self.folded()), self.unit_keys)
        return self._only_present(self._reduced_runs(self.run.meta.output_name(), self._values()))

    def _values(self) -> list[pl.Expr]:
        return [c for recorder, columns in self.measures for c in _unsettled(recorder, columns, self.keys)]

    def _valued(self, units: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
        return self._only_present(units.select(*keys, *self._values()))

    def _only_present(self, units: pl.LazyFrame) -> pl.LazyFrame:
        if not self.keys:
            return units
        return units.with_columns(c for recorder, columns in self.measures for c in self._of_present(recorder, columns))

    def _of_present(self, recorder: Recorder, columns: Columns) -> list[pl.Expr]:
        told = _told_of_units(recorder, columns)
        # A unit without a weight is a label that an average by label does not name.
        known = [pl.col(key).is_not_null() for key in (*self.keys, *(told.keys() & {columns.weight}))]
        # Of a unit without a row that counts there is still a count: of the rows that were left out, say.
        is_count = recorder.measure.declaration.counts
        shown = all_of(known) if is_count else all_of([pl.col(columns.present), *known])
        present = all_of([pl.col(columns.present), *known])
        return [*(pl.when(shown).then(pl.col(name)).alias(name) for name in told), present.alias(columns.present)]

    def _ranked(self, units: pl.LazyFrame) -> pl.LazyFrame:
        names = [*self.fold.statistics, *(name for ranking in self.rankings.values() for name in ranking.statistics)]
        for name in names:
            if names.count(name) > 1:
                raise two_of_one_name(name)
        for ranking in self.rankings.values():
            units = ranking.join_to(units, self.fold.rows_with_features())
        return units

    def folded(self) -> pl.LazyFrame:
        """One row a unit, with the statistics of the rows as they come."""
        if not self.looks_back or self.fold.is_merged:
            of_rows = self._of_rows()
            # Where a ranking has counted the rows, what is left are counts of the broken ones: few, or none.
            sparse = len(of_rows) < len(self.fold.statistics) and all(statistic.is_count for statistic in of_rows)
            return self.fold.table(of_rows, sparse=sparse)
        first, again = self._looks()
        folded = self.fold.table(first)
        some = pl.any_horizontal(value.is_not_null() for value in self.looks_back.values())
        back = folded.filter(some).select(*self.unit_keys, *self.looks_back.values())
        table = fold_rows(self._rows_of(back), self.unit_keys, again)
        both = beside([folded, table], self.unit_keys, how="left", nulls_equal=self._may_have_null)
        # Of units that were not looked at again no row counts, whichever those are: the others of a lane decide it.
        return both.with_columns(pl.col(s.name).fill_null(0) for s in again if s.monoid == "sum")

    def _of_rows(self) -> list[Statistic]:
        """The statistics that no ranking tells."""
        told = {name for ranking in self.rankings.values() for name in ranking.counts}
        return [statistic for name, statistic in self.fold.statistics.items() if name not in told]

    def _looks(self) -> tuple[list[Statistic], list[Statistic]]:
        """The statistics of a first look at the rows, and of the second."""
        first: list[Statistic] = []
        again: list[Statistic] = []
        for statistic in self._of_rows():
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
        # A code is never null, and a sample without an id is never settled. To match nulls takes its time.
        return self.by != [CODE] or self.grain != "sample"

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


def held_sums(recorder: Recorder, columns: Columns) -> dict[str, str]:
    """The names under which a state holds the sums over samples, and the plan's own for them."""
    sums = _sums(recorder, columns)
    return {f"{recorder.title}: {name}": column.meta.output_name() for name, column in sums.items()}


def sums_of(recorder: Recorder) -> list[Statistic]:
    """The sums over samples, as a state merges them."""
    names = held_sums(recorder, Columns.numbered(0))
    return [Statistic(n, pl.col(n), "sum", is_count=n.endswith((": units", ": defined"))) for n in names]


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
