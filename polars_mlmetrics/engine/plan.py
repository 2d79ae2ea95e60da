"""The staged reading: many measures as one lazy plan.

    rows -> [features of rows] -> fold at (by, unit[, run]) -> values of units -> settle -> one row a group

Measures of one grain share a lane: one fold, in which a statistic of one name is folded once. The plan is pure
Polars; nothing in it calls back into Python. Folds mask rows and never filter them, so that a group whose rows are
all excluded is still there.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from typing import Protocol

import polars as pl

from polars_mlmetrics.data.bare_scan import is_at_hand
from polars_mlmetrics.data.roles import Table, Types, same_expression, types_of
from polars_mlmetrics.engine.folds import CODE, beside, fold, share
from polars_mlmetrics.engine.lane import Columns, Lane
from polars_mlmetrics.engine.passes import Passes
from polars_mlmetrics.engine.ranking import code_of
from polars_mlmetrics.engine.ranking_by_id import NUMBER, split_by_id
from polars_mlmetrics.engine.recorder import Recorder
from polars_mlmetrics.engine.split_samples import Counts
from polars_mlmetrics.engine.state_rows import Held
from polars_mlmetrics.errors import MetricError, StateError
from polars_mlmetrics.formula.arithmetic import even
from polars_mlmetrics.formula.measure import Measure, Node, Planned
from polars_mlmetrics.formula.parameters import identity
from polars_mlmetrics.formula.targets import OverTargets, mean_of

FEW = 200
"""How many runs (bins) at most share a fold with the labels: there are as many statistics as both together."""

IDS = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)
"""The types of ids that may be small whole numbers."""


class InPasses(Protocol):
    """What is worked out from whole samples, and can be from a part of them after the other."""

    by: list[str]

    @property
    def bytes_a_row(self) -> int: ...

    def read(self, rows: pl.LazyFrame) -> None: ...

    def part(self) -> pl.LazyFrame: ...

    def merge(self, parts: Sequence[pl.DataFrame]) -> None: ...


class Plan:
    """Measures over the rows of a frame, grouped by key columns.

    `roles` are the plan's own: what a measure is bound to beyond them shows in the names of its statistics. Where
    there is a state the statistics are taken from it, and of the rows no more than the schema is looked at.
    """

    def __init__(
        self,
        rows: pl.LazyFrame,
        by: Sequence[str],
        roles: Table,
        passes: Passes | None = None,
        state: Held | None = None,
    ) -> None:
        self.rows = rows
        self.passes = passes
        self.state = state
        self.by = list(by)
        self.roles = roles
        self.schema = rows.collect_schema()
        self._lanes: dict[tuple[str, ...], Lane] = {}
        self._types: dict[object, Types] = {}
        self._settled: dict[tuple[object, ...], Columns] = {}
        self._targets: dict[str, tuple[Plan, list[pl.Expr]]] = {}
        self._several: dict[str, Counts] = {}

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

    def where_whole(self, value: pl.Expr, parts: Iterable[Columns]) -> pl.Expr:
        """A value in the groups of a state in which all samples that its parts look into are whole."""
        reasons = self.reasons_of(parts)
        if not reasons:
            return value
        return pl.when(pl.all_horizontal(pl.col(reason).is_null() for reason in reasons)).then(value)

    def add(self, planned: Planned) -> Columns:
        """The columns that will hold the value of a measure, or of a mean over targets. Equal ones share them."""
        # However its columns are said.
        key = planned.each(Measure.with_all_roles).key
        if key not in self._settled:
            self._settled[key] = columns = Columns.numbered(len(self._settled))
            if isinstance(planned, OverTargets):
                self._add_targets(planned, columns)
            elif isinstance(planned, Measure):
                self._add_units(planned, columns)
        return self._settled[key]

    def _add_units(self, measure: Measure, columns: Columns) -> None:
        recorder = self._recorder(measure, in_runs=False)
        if self.state is not None:
            check_merges(recorder)
            self.state.check(recorder, self.by, self.roles)
            counts = self.state.counts(recorder, self.roles)
            if counts:
                self._several[columns.several] = counts
        lane = self._lane_of(recorder)
        # A formula over runs reads its other statistics as sums over them, so it is read again as one.
        lane.add(recorder if lane.run is None else self._recorder(measure, in_runs=True), columns)

    def _add_targets(self, mean: OverTargets, columns: Columns) -> None:
        """Plan the metric of each target, and the mean of the targets."""
        if self.state is not None and not self.state.has_target(mean.column):
            raise StateError(f"{mean.output_name}: this state does not tell one {mean.column!r} from another.")
        by = list(dict.fromkeys([*self.by, mean.column]))
        plan, settled = self._targets.setdefault(
            mean.column, (Plan(self.rows, by, self.roles, self.passes, self.state), [])
        )
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

    def reasons_of(self, planned: Iterable[Columns]) -> list[str]:
        """The columns that say why one of these values is not known in a group of a state."""
        return [columns.several for columns in planned if columns.several in self._several]

    def can_tell(self, measure: Measure) -> bool:
        """Whether a measure can be added: where there is a state, whether that holds what it needs."""
        return self.state is None or not self.state.lacks(self._recorder(measure, in_runs=False), self.by, self.roles)

    def groups(self) -> pl.LazyFrame:
        """One row a group, with the columns of every measure."""
        self._fold_in_parts()
        self._share_folds()
        small = [lane for lane in self._lanes.values() if self._has_small_ids(lane)]
        others = [lane for lane in self._lanes.values() if lane not in small]
        plain = [lane.settled(self._sums_of_small_ids(lane), self.by) for lane in small]
        plain += [lane.groups() for lane in others if lane.by == self.by]
        plain += [fold(plan.groups(), self.by, settled) for plan, settled in self._targets.values()]
        coded = [lane.groups() for lane in others if lane.by != self.by]
        if not coded:
            return self._with_reasons(beside(plain, self.by))
        return self._named(beside(plain, self.by) if plain else self._groups(), coded)

    def _with_reasons(self, table: pl.LazyFrame) -> pl.LazyFrame:
        """A table by group, and why samples are not whole in one where there is a state."""
        counts = {reason: counts for reason, counts in self._several.items() if counts}
        if self.state is None or not counts:
            return table
        # Samples are counted by group, whatever labels they have.
        keys = [key for key in self.by if key not in self.state.finer]
        reasons = self.state.reasons(keys, counts)
        if not keys:
            return table.join(reasons, how="cross")
        return table.join(reasons, on=keys, how="left", nulls_equal=True)

    def _groups(self) -> pl.LazyFrame:
        return self.rows.select(self.by).unique()

    def _named(self, names: pl.LazyFrame, coded: Sequence[pl.LazyFrame]) -> pl.LazyFrame:
        """Tables of coded groups, beside the groups."""
        # Two groups of one code would be an error here, never a wrong number. The check leaves the streaming engine,
        # with a row a group.
        return beside([names.with_columns(self._code()), *coded], [CODE], validate="1:1").drop(CODE)

    def _has_small_ids(self, lane: Lane) -> bool:
        """Whether samples of a lane may be ranked without being looked up.

        Some of the rows are read once more then. And a pass, of few samples, was not made faster by it.
        """
        if self.passes is not None or self.state is not None or lane.grain != "sample" or lane.counting is None:
            return False
        types = [self.schema[key] for key in lane.keys]
        return len(types) == 1 and types[0] in IDS and self._has_plain_keys and is_at_hand(self.rows)

    def _sums_of_small_ids(self, lane: Lane) -> pl.LazyFrame:
        """One row a group: what settling needs to know of all samples together, with small ids and with others."""
        split = split_by_id(self.rows, self._groups() if self.by else None, *lane.keys)
        lane.read(self.rows)
        small = split.numbers.join(lane.sums_by_code(split.code), on=NUMBER, how="left").drop(NUMBER)
        lane.read(self._coded(lane.by, split.others))
        others = lane.sums() if lane.by == self.by else self._named(split.groups, [lane.sums()])
        small = small.with_columns(pl.exclude(self.by).fill_null(0))
        both = pl.concat([small, others.select(small.collect_schema().names())])
        return fold(both, self.by, [pl.exclude(self.by).sum()])

    def units(self) -> pl.LazyFrame:
        """One row a unit, with the values of measures that all stop at one grain."""
        lanes = list(self._lanes.values())
        if self.passes is None or not all(lane.grain == "sample" and lane.in_passes for lane in lanes):
            self._fold_in_parts()
            return self._units_of(lanes)
        with closing(self._passes(lanes, self.passes)) as passes:
            return pl.concat([self._units_of(lanes).collect() for _ in passes]).lazy()

    def _units_of(self, lanes: list[Lane]) -> pl.LazyFrame:
        units = self._with_reasons(beside([lane.units() for lane in lanes], lanes[0].unit_keys))
        return units.filter(pl.any_horizontal(columns.present for columns in self._settled.values()))

    def _fold_in_parts(self) -> None:
        """Take what a state holds; or work out what must be worked out of whole samples, a part of them at a time."""
        if self.state is not None:
            merged = self.state.merged(self.by, {name for lane in self._lanes.values() for name in lane.needed()})
            for lane in self._lanes.values():
                lane.take_from(merged)
        lanes = self._in_passes()
        if self.passes is None or not lanes:
            return
        with closing(self._passes(lanes, self.passes)) as passes:
            told = [pl.collect_all([lane.part() for lane in lanes]) for _ in passes]
        for lane, *parts in zip(lanes, *told, strict=True):
            lane.read(self._coded(lane.by, self.rows))
            lane.merge(parts)

    def _in_passes(self) -> list[InPasses]:
        return [lane for lane in self._lanes.values() if lane.in_passes]

    def _passes(self, lanes: Sequence[InPasses], passes: Passes) -> Generator[None]:
        """Have lanes read one part of the rows after the other."""
        # Closed at once where a pass fails, not when the error is forgotten: till then a bar would stay on the screen.
        with closing(passes.parts(sum(lane.bytes_a_row for lane in lanes))) as parts:
            for rows in parts:
                for lane in lanes:
                    lane.read(self._coded(lane.by, rows))
                yield

    def _recorder(self, measure: Measure, *, in_runs: bool) -> Recorder:
        read = (identity(measure.roles), *measure.own_columns.names)
        if read not in self._types:
            self._types[read] = types_of(self.rows, measure.table, measure.own_columns.names)
        by = [CODE] if self._is_coded(measure) else self.by
        recorder = Recorder(
            measure,
            by,
            self.roles,
            self._types[read],
            in_runs=in_runs,
            ranks=not in_runs and self._has_codes(measure),
        )
        if recorder.run_key is not None and recorder.looks_back:
            raise MetricError(
                f"{measure.output_name} asks for runs and for a value of its unit on the rows (on_rows, or a deviation "
                f"from a mean): a formula may ask for one of the two. As an expression, in select or agg, it works."
            )
        if recorder.stands_apart:
            return recorder
        return Recorder(measure, by, self.roles, self._types[read], in_runs=in_runs, ranks=False)

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
            few_runs = recorder.cells is not None and recorder.cells <= FEW
            self._lanes[name] = Lane(
                rows, recorder.by, measure.grain, keys, recorder.run_key, few_runs=few_runs, in_passes=in_passes
            )
        return self._lanes[name]

    def _is_coded(self, measure: Measure) -> bool:
        """Whether one number stands for the by columns: a key less to match when millions of samples are folded.

        Not for floats, of which 0.0 and -0.0 are one group and two codes.
        """
        if measure.grain != "sample" or measure.per is not None or self.state is not None:
            return False
        return len(self.by) > 1 and self._has_plain_keys

    @property
    def _has_plain_keys(self) -> bool:
        """Whether equal values of the by columns have equal hashes."""
        types = [self.schema[key] for key in self.by]
        return all(t.is_integer() or t.is_temporal() or t in (pl.String, pl.Boolean) for t in types)

    def _coded(self, by: list[str], rows: pl.LazyFrame) -> pl.LazyFrame:
        return rows if by == self.by else rows.with_columns(self._code())

    def _code(self) -> pl.Expr:
        return even(code_of(self.by)).alias(CODE)

    def _share_folds(self) -> None:
        """Let the group, its labels and its few runs (bins) be merged from one fold of the rows."""
        if self.state is not None:
            return
        lanes = [lane for lane in self._lanes.values() if lane.keys in ([], [self.roles.label]) and not lane.looks_back]
        lanes = [lane for lane in lanes if not lane.in_passes and lane.windows <= {"sample"}]
        run = next((lane.run for lane in lanes if lane.few_runs), None)
        lanes = [lane for lane in lanes if lane.run is None or same_expression(lane.run, run)]
        share([lane.fold for lane in lanes])


def check_merges(recorder: Recorder) -> None:
    """Refuse a measure that no state can hold."""
    if recorder.merges:
        return
    measure = recorder.measure
    open_ended = [name for name in ("bins", "prior") if measure.parameters.get(name, "") is None]
    hint = f"With {open_ended[0]}= it can." if open_ended else "Ask `evaluate` for it."
    raise StateError(
        f"{measure.output_name} cannot be held in a state: it looks at all rows of a group together. {hint}"
    )
