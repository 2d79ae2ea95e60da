"""The state: what measures need of a log's rows, folded into a small table that merges with others of its kind.

One table holds all grains: by columns, bucket, label, bin, and a column for each statistic. A statistic stands in the
rows of one grain and is null in the others, so that a count or a sum is merged by adding up any rows. What a state
holds stands in the type of its first column, which stays with the rows through every filter: states of different
queries are of different types, and do not go one under the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import polars as pl

from polars_mlmetrics.data.roles import Grain
from polars_mlmetrics.engine.digests import digests_of
from polars_mlmetrics.engine.folds import BIN, compacted, joined, two_of_one_name
from polars_mlmetrics.engine.formula_reader import FormulaReader
from polars_mlmetrics.engine.partials import Mergeable, Partial
from polars_mlmetrics.engine.plan import Plan, ReadFormulas
from polars_mlmetrics.engine.sources import LogSource, named
from polars_mlmetrics.engine.split_samples import SeveralValues, counts_of
from polars_mlmetrics.engine.state_rows import check_label_as_target, does_not_merge
from polars_mlmetrics.engine.values import sums_of
from polars_mlmetrics.errors import StateError
from polars_mlmetrics.formula.measure import Measure, Node, Planned
from polars_mlmetrics.formula.over_targets import OverTargets
from polars_mlmetrics.formula.statistic import Statistic


class OfRows(NamedTuple):
    """A formula of groups or labels."""

    reader: FormulaReader
    by_label: bool
    """Whether its statistics must be kept by label."""


class AtGrain(NamedTuple):
    """A statistic, and the keys by which a group has several of it."""

    statistic: Statistic
    by_label: bool = False
    by_bin: bool = False


class StateTable:
    """The partials that measures need of a log, as the one table that a state is."""

    def __init__(
        self, source: LogSource, by: Mapping[str, str], readings: ReadFormulas, cluster: Sequence[str] = ()
    ) -> None:
        self.source = source
        self.schema = source.schema
        self._names = by
        self._by = list(by)
        self._plan = Plan(source, self._by, readings)
        """The formulas that were read, and the partials of samples."""
        self._added: set[tuple[object, ...]] = set()
        self._cluster = cluster
        self._of_rows: list[OfRows] = []
        self._of_samples: list[FormulaReader] = []
        self._of_several: dict[tuple[str, ...], SeveralValues] = {}
        self._labels: set[str] = set()
        self.declared: dict[str, str] = {}
        """The meaning of statistics that metrics from elsewhere ask for."""

    def can_answer(self, measure: Measure) -> bool:
        """Whether it takes no fold of its own: samples are many, and are folded only where a metric asks for them."""
        return measure.grain != "sample" or bool(self._of_samples)

    def add(self, metric: Node) -> None:
        """Hold what a metric needs."""
        metric.combined(self._add_part)

    def _add_part(self, part: Planned) -> pl.Expr:
        if part.key_in_full not in self._added:
            self._added.add(part.key_in_full)
            if isinstance(part, OverTargets):
                self._add_targets(part)
            elif isinstance(part, Measure):
                self._add_measure(part)
        return pl.lit(None)

    def _add_measure(self, measure: Measure, *, of_label: bool = False) -> None:
        """Hold what a formula asks for. `of_label` says that each label is a target of its own."""
        reader = self._plan.reader(measure)
        by_label = of_label or measure.grain == "label" or reader.runs_by_label
        if reader.merges_by is None:
            raise does_not_merge(measure)
        for name, digest in digests_of(measure, self._plan.roles).items():
            if self.declared.setdefault(name, digest) != digest:
                raise two_of_one_name(name)
        if reader.merges_by == "samples":
            self._count_several(measure.table.sample)
        if measure.grain == "sample":
            self._add_of_samples(reader)
        else:
            self._of_rows.append(OfRows(reader, by_label))
        if by_label:
            self._labels.add(measure.table.label)

    def _add_of_samples(self, reader: FormulaReader) -> None:
        known = next((other.measure for other in self._of_samples if other.title == reader.title), None)
        if known is None:
            self._plan.add(reader.measure)
            self._of_samples.append(reader)
        elif known.key != reader.measure.key:
            raise two_of_one_name(reader.title)

    def _count_several(self, sample: tuple[str, ...]) -> None:
        counts = counts_of(self._names, sample, self._plan.roles.sample, self._cluster)
        if counts and sample not in self._of_several:
            self._of_several[sample] = SeveralValues(self._by, sample, counts)

    def _add_targets(self, mean: OverTargets) -> None:
        is_label = all(m.table.label == mean.column and m.grain == "group" for m in mean.measures())
        if not is_label and mean.column not in self._by:
            raise StateError(
                f"{mean.output_name}: a state needs the column of the targets as a key. Add {mean.column!r} to by=."
            )

        def added(part: Planned) -> pl.Expr:
            if is_label and isinstance(part, Measure):
                check_label_as_target(self._plan.reader(part), mean.column)
                self._add_measure(part, of_label=True)
                return pl.lit(None)
            return self._add_part(part)

        mean.terms(added, pl.col(mean.column))

    @property
    def label(self) -> str | None:
        """The column of labels, where statistics are kept by label."""
        if len(self._labels) > 1:
            raise StateError(f"a state has one label column, but these metrics use {', '.join(sorted(self._labels))}.")
        return next(iter(self._labels), None)

    @property
    def samples(self) -> list[tuple[str, ...]]:
        """The columns of the samples that must be whole in the rows, of every metric that looks into one."""
        of_rows = [reader for reader, _ in self._of_rows if reader.merges_by == "samples"]
        return list(dict.fromkeys(reader.measure.table.sample for reader in (*of_rows, *self._of_samples)))

    @property
    def has_bins(self) -> bool:
        """Whether there are statistics of bins."""
        return any(_has_bins(reader) for reader, _ in self._of_rows)

    def statistics(self) -> list[AtGrain]:
        """All that the state holds, with the grain of each."""
        for reader, _ in self._of_rows:
            if not reader.measure.is_from_elsewhere:
                for statistic in (*reader.folded, *reader.run_rows):
                    if statistic.name in self.declared:
                        raise two_of_one_name(statistic.name)
        by_label = self.label is not None
        at_grains = [AtGrain(s, by_label=by_label) for reader, _ in self._of_rows for s in _of_label(reader)]
        for kind in self._kinds_of_bins():
            by_label = any(needed.by_label for needed in kind)
            at_grains += [AtGrain(s, by_label, by_bin=True) for needed in kind for s in needed.reader.run_rows]
        at_grains += [AtGrain(s) for reader in self._of_samples for s in sums_of(reader)]
        at_grains += [AtGrain(s) for several in self._of_several.values() for s in several.statistics()]
        return list({at_grain.statistic.name: at_grain for at_grain in at_grains}.values())

    def table(self) -> pl.LazyFrame:
        """The state, under the plan's names for its keys."""
        label = [] if self.label is None else [self.label]
        of_rows, bins, of_samples = self._partials_of_rows(label), self._bins(label), self._plan.all_partials
        several = list(self._of_several.values())
        partials: list[Mergeable] = [*of_rows, *bins, *of_samples, *several]
        given = dict(zip(partials, self.source.partials(partials, self._by), strict=True))
        rows = joined([given[partial][0] for partial in of_rows], [*self._by, *label])
        if label or of_samples or several:  # it is read for these too
            rows = rows.cache()
        of_groups, finer = [rows], []
        if self.label is not None:
            has_label = pl.col(self.label).is_not_null()
            of_groups, finer = [rows.filter(~has_label)], [self._merged([rows.filter(has_label)], [*self._by, *label])]
        groups = rows.select(self._by).unique()
        for partial in of_samples:
            table, by = given[partial]
            sums = table.rename({own: name for name, own in partial.values.stored_sums().items()})
            of_groups.append(sums if by == self._by else named(groups, [sums], self._by))
        of_groups += [each.table(given[each][0], groups) for each in several]
        if bins:
            of_bins = [_table_of_bins(partial, given[partial][0]) for partial in bins]
            finer.append(self._merged(of_bins, [*self._by, *label, BIN]))
        return pl.concat([self._merged(of_groups, self._by), *finer], how="diagonal")

    def _merged(self, tables: Sequence[pl.LazyFrame], keys: Sequence[str]) -> pl.LazyFrame:
        """Tables of other statistics at the same keys, as one."""
        table = pl.concat(tables, how="diagonal")
        there = table.collect_schema()
        statistics = [at_grains.statistic for at_grains in self.statistics() if at_grains.statistic.name in there]
        if len(tables) == 1 and all(statistic.moment is None for statistic in statistics):
            return table
        # Also one by itself, so that sums about a shift are as `compact` leaves them.
        return compacted(table, [key for key in keys if key in there], statistics)

    def _partials_of_rows(self, label: list[str]) -> list[Partial]:
        """The statistics of rows, all but those of bins: by label where some are of labels."""
        grain: Grain = "label" if label else "group"
        found: dict[bool, Partial] = {}
        for reader, _ in self._of_rows:
            whole = reader.merges_by == "samples"
            if whole not in found:
                found[whole] = Partial(self._by, grain, label, whole_samples=whole)
            found[whole].take(reader, _of_label(reader))
        return list(found.values())

    def _bins(self, label: list[str]) -> list[Partial]:
        """The statistics of bins, the fewest first, each kind by itself: by label where some are of labels."""
        found = []
        for kind in self._kinds_of_bins():
            first = kind[0].reader
            keys = label if any(needed.by_label for needed in kind) else []
            partial = Partial(self._by, "label" if keys else "group", keys, first.run_key, cells=first.cells)
            for reader, _ in kind:
                partial.take(reader, reader.run_rows)
            found.append(partial)
        return found

    def _kinds_of_bins(self) -> list[list[OfRows]]:
        """The formulas of bins, by the bins that they have, the fewest first."""
        kinds: dict[str, list[OfRows]] = {}
        for needed in self._of_rows:
            if _has_bins(needed.reader):
                kinds.setdefault(needed.reader.run_name, []).append(needed)
        return sorted(kinds.values(), key=lambda kind: kind[0].reader.cells or 0)


def _of_label(reader: FormulaReader) -> list[Statistic]:
    """The statistics of a formula that stand by label, if there are labels; runs that are labels among them."""
    return [*reader.folded, *reader.run_rows] if reader.runs_by_label else reader.folded


def _has_bins(reader: FormulaReader) -> bool:
    """Whether a formula has runs that are no labels."""
    return reader.run_key is not None and not reader.runs_by_label


def _table_of_bins(bins: Partial, table: pl.LazyFrame) -> pl.LazyFrame:
    """One row a bin of each group or label. The rows that do not count have no bin."""
    *_, key = bins.fold.keys
    return table.filter(pl.col(key).is_not_null()).rename({key: BIN}).cast({BIN: pl.Float64})
