"""The rows of a state as a source: what it holds, and what it can answer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from polars_mlmetrics.data.roles import Table
from polars_mlmetrics.engine.digests import digests_of
from polars_mlmetrics.engine.folds import BIN, BUCKET, compacted, matched
from polars_mlmetrics.engine.formula_reader import FormulaReader
from polars_mlmetrics.engine.partials import Partial, PartialTable
from polars_mlmetrics.engine.sources import Source
from polars_mlmetrics.engine.split_samples import Counts, counts_of, reasons
from polars_mlmetrics.engine.values import sums_of
from polars_mlmetrics.errors import StateError
from polars_mlmetrics.formula.measure import Measure
from polars_mlmetrics.formula.statistic import Statistic


@dataclass(frozen=True)
class StateSource(Source):
    """The rows of a state, and what is known of them."""

    table: pl.LazyFrame
    by: list[str]
    cluster: Sequence[str] | None
    """The columns that its buckets are made of, where it has buckets."""
    label: str | None
    """The column of labels, where it has one."""
    finer: list[str]
    """The keys of its rows that are finer than groups: label and bin, where it has such."""
    statistics: Mapping[str, Statistic]
    by_label: Collection[str]
    """The statistics that it has by label."""
    expressions: Collection[str]
    """The by columns that were worked out from the columns of the log."""
    between: str | None
    """The by column of the models, where all samples are pairs."""
    declared: Mapping[str, str]
    """The meaning of statistics of metrics from elsewhere, by name."""
    schema: pl.Schema = field(default_factory=pl.Schema)
    """The columns of the log that is spoken of, and the keys of the query."""
    added: Sequence[pl.Expr] = field(default_factory=list)
    """Keys of the query, made of its by columns."""
    made_for: Callable[[], str] = str
    """Tells the metrics and roles that it was made for, in an error."""

    def partials(self, partials: Sequence[Partial], by: list[str]) -> list[PartialTable]:
        readers = [reader for partial in partials for reader, _ in partial.values.measures]
        of_keys = {
            each.name: replace(each, counted=pl.when(reader.answer.rows > 0).then(each.bare))
            for reader in readers
            for each in reader.statistics
            if self._is_of_keys(each)
        }
        merged = self.at(by, {name for partial in partials for name in _needed(partial)}, [*of_keys.values()])
        return [(partial.merged(_as_parts(partial, merged, by)), by) for partial in partials]

    def with_reasons(self, table: pl.LazyFrame, by: list[str], counts: Mapping[str, Counts]) -> pl.LazyFrame:
        # Samples are counted by group, whatever labels they have.
        keys = [key for key in by if key not in self.finer]
        why = reasons(self.table, self._names(), self.added, keys, counts)
        return matched(table, why, keys, how="left")

    def at(self, keys: Sequence[str], statistics: Collection[str], of_keys: Sequence[Statistic] = ()) -> pl.LazyFrame:
        """Some statistics at keys of the query, also such as are folded of its by columns, all grains in one table."""
        needed = [statistic for name, statistic in self.statistics.items() if name in statistics]
        worked_out = [*self.added, *(statistic.bare.alias(statistic.name) for statistic in of_keys)]
        read = {name for column in worked_out for name in column.meta.root_names()}
        by = [name for name in self._names() if name in read or name in keys]
        # First as they are, since fewer rows are left then for which a key must be worked out.
        rows = compacted(self.table, [*by, *self.finer], needed).with_columns(worked_out)
        return compacted(rows, list(dict.fromkeys([*keys, *self.finer])), [*needed, *of_keys])

    def _names(self) -> dict[str, str]:
        return {**{name: name for name in self.by}, **({} if self.cluster is None else {BUCKET: "bucket"})}

    def check_target(self, name: str, column: str) -> None:
        if column != self.label and (column not in self.by or column in self.expressions):
            raise StateError(f"{name}: the state has no column {column!r}: make it with by=[{column!r}].")

    def can_answer(self, reader: FormulaReader, by: Sequence[str], roles: Table) -> bool:
        return not self.lacks(reader, by, roles)

    def check(self, reader: FormulaReader, by: Sequence[str], roles: Table) -> Counts:
        """Refuse a measure that cannot be answered by these keys, or that means something else than it did."""
        measure = reader.measure
        if reader.merges_by is None:
            raise does_not_merge(measure)
        if self.label in by:
            check_label_as_target(reader, measure.table.label)
        own = digests_of(measure, roles)
        if any(self.declared.get(name, digest) != digest for name, digest in own.items()):
            raise StateError(
                f"the metric {measure.declaration.name!r} was declared differently when this state was made: make the "
                "state again, or use the old declaration."
            )
        lacking = self.lacks(reader, by, roles)
        if lacking:
            is_count = measure.declaration.counts and measure.grain == "sample"
            if is_count and not any(each.name in self.statistics for each in sums_of(reader)):
                raise StateError("this state does not count samples: put mlm.n_samples() among its metrics.")
            more = f" and {len(lacking) - 1} more" if lacking[1:] else ""
            raise StateError(
                f"{measure.output_name} needs {lacking[0]}{more}, which this state does not hold: it was made for "
                f"{self.made_for() or 'other metrics, other rows or other roles'}."
            )
        return self._counts(reader, roles)

    def _counts(self, reader: FormulaReader, roles: Table) -> Counts:
        """The counts that tell whether the samples a measure looks into are whole in every group."""
        if reader.merges_by != "samples":
            return {}
        return counts_of(self._names(), reader.measure.table.sample, roles.sample, self.cluster or ())

    def lacks(self, reader: FormulaReader, by: Sequence[str], roles: Table) -> list[str]:
        """Statistics that a measure needs by these keys and the state lacks, or has as something else, in words."""
        measure, own = reader.measure, digests_of(reader.measure, roles)
        needs_label = measure.grain == "label" or reader.runs_by_label
        by_label = self.label in (*by, *(measure.table.keys("label") if needs_label else []))
        if needs_label and measure.table.label != self.label:
            return [repr(measure.table.label)]
        needed = sums_of(reader) if measure.grain == "sample" else [*reader.folded, *reader.run_rows]
        names = [statistic.name for statistic in needed]
        lacking = [
            *(each.name for each in needed if not (self._has(each, by_label=by_label) or self._is_of_keys(each))),
            *(name for name in own if name not in self.declared),
            *(name for name in names if name in self.declared and name not in own),
        ] or [name for name in self._counts(reader, roles) if name not in self.statistics]
        return [
            f"{name!r} by label" if by_label and name in self.statistics else repr(name)
            for name in dict.fromkeys(lacking)
        ]

    def _is_of_keys(self, statistic: Statistic) -> bool:
        """Whether its by columns say what it is: the lowest or the highest of something that they have."""
        by = set(self.by).difference(self.expressions)
        return statistic.monoid != "sum" and bool(statistic.reads) and statistic.reads <= by

    def _has(self, statistic: Statistic, *, by_label: bool) -> bool:
        stored = self.statistics.get(statistic.name)
        if stored is None or (by_label and statistic.name not in self.by_label):
            return False
        return (stored.monoid, stored.moment) == (statistic.monoid, statistic.moment)


def _needed(partial: Partial) -> list[str]:
    """The statistics that a state must hold for it."""
    return list(partial.values.stored_sums()) if partial.grain == "sample" else list(partial.fold.statistics)


def _as_parts(partial: Partial, merged: pl.LazyFrame, by: list[str]) -> pl.LazyFrame:
    """The part of a state that answers a partial, under the names that the partial has for it."""
    if partial.grain == "sample":
        return merged.select(*by, *(pl.col(name).alias(own) for name, own in partial.values.stored_sums().items()))
    if partial.run is None:
        return merged
    if partial.runs_by_label:
        [label] = {reader.measure.table.label for reader, _ in partial.values.measures}
        return merged.with_columns(pl.col(label).alias(partial.run.meta.output_name()))
    # The bins of other measures stand in the same column.
    own = pl.any_horizontal(pl.col(s.name).is_not_null() for r, _ in partial.values.measures for s in r.run_rows)
    return merged.with_columns(pl.when(own).then(pl.col(BIN)).alias(partial.run.meta.output_name()))


EXAMPLES = {"bins": ", such as bins=4096"}
"""Usual values of parameters with which a metric can be held in a state."""


def does_not_merge(measure: Measure) -> StateError:
    """The error for a measure that no state can hold."""
    open_ended = [name for name in measure.declaration.merges_with if measure.parameters[name] is None]
    hint = f"With {open_ended[0]}= it can{EXAMPLES.get(open_ended[0], '')}." if open_ended else "Use `evaluate` for it."
    return StateError(f"{measure.output_name} cannot be held in a state: it needs all rows of a group together. {hint}")


def check_label_as_target(reader: FormulaReader, label: str) -> None:
    """Refuse a measure of each label as a target that looks into samples: it sees those of the label alone."""
    if reader.merges_by == "samples":
        raise StateError(
            f"{reader.measure.output_name} needs whole samples, and with {label!r} as the target it has the rows of "
            "one label only: a state cannot hold that. Use `evaluate` for it."
        )
