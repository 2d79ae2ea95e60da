"""What a state holds, as a plan reads it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from polars_mlmetrics.data.roles import Table
from polars_mlmetrics.engine.digests import digests_of
from polars_mlmetrics.engine.folds import BUCKET, compacted
from polars_mlmetrics.engine.lane import sums_of
from polars_mlmetrics.engine.recorder import Recorder
from polars_mlmetrics.engine.split_samples import Counts, counts_of, reasons
from polars_mlmetrics.errors import StateError
from polars_mlmetrics.formula.statistic import Statistic


@dataclass(frozen=True)
class Held:
    """The rows of a state, and what is known of them."""

    rows: pl.LazyFrame
    by: list[str]
    has_buckets: bool
    label: str | None
    """The column of labels, where it has one."""
    finer: list[str]
    """The keys of its rows that are finer than groups: label and bin, where it has such."""
    statistics: Mapping[str, Statistic]
    by_label: Collection[str]
    """The statistics that are told by label."""
    expressions: Collection[str]
    """The by columns that were worked out from the columns of the log."""
    declared: Mapping[str, str]
    """What statistics of metrics from elsewhere mean, by name."""
    added: Sequence[pl.Expr] = field(default_factory=list)
    """Keys of the query, made of its by columns."""

    def merged(self, keys: Sequence[str], statistics: Collection[str]) -> pl.LazyFrame:
        """Some statistics at keys of the query, all grains in one table."""
        needed = [statistic for name, statistic in self.statistics.items() if name in statistics]
        read = {name for key in self.added for name in key.meta.root_names()}
        by = [name for name in self.by if name in read or name in keys]
        # First as they are, since fewer rows are left then for which a key must be worked out.
        rows = compacted(self.rows, [*by, *self.finer], needed).with_columns(self.added)
        return compacted(rows, list(dict.fromkeys([*keys, *self.finer])), needed)

    def reasons(self, keys: Sequence[str], counts: Mapping[str, Counts]) -> pl.LazyFrame:
        """For each group of the query why samples are not whole in it, by the column that is to say so."""
        return reasons(self.rows, self._names(), self.added, keys, counts)

    def _names(self) -> dict[str, str]:
        return {**{name: name for name in self.by}, **({BUCKET: "bucket"} if self.has_buckets else {})}

    def has_target(self, column: str) -> bool:
        """Whether it tells the values of this column of the log apart."""
        return column == self.label or (column in self.by and column not in self.expressions)

    def counts(self, recorder: Recorder, roles: Table) -> Counts:
        """What must be counted so that the samples into which a measure looks are whole in every group."""
        if not recorder.is_of_whole_samples:
            return {}
        return counts_of(self._names(), recorder.measure.table.sample, roles.sample)

    def check(self, recorder: Recorder, by: Sequence[str], roles: Table) -> None:
        """Refuse a measure that cannot be answered by these keys, or that means something else than it did."""
        measure = recorder.measure
        if self.label in by:
            check_label_as_target(recorder, measure.table.label)
        own = digests_of(measure, roles)
        if any(self.declared.get(name, digest) != digest for name, digest in own.items()):
            raise StateError(
                f"the metric {measure.declaration.name!r} was declared differently when this state was made: make the "
                f"state anew, or ask for the metric as it was."
            )
        lacking = self.lacks(recorder, by, roles)
        if lacking:
            more = f" and {len(lacking) - 1} more" if lacking[1:] else ""
            raise StateError(
                f"{measure.output_name} needs {lacking[0]}{more}, which this state does not hold: it was made for "
                f"other metrics, or for these on other rows or roles."
            )

    def lacks(self, recorder: Recorder, by: Sequence[str], roles: Table) -> list[str]:
        """What a measure needs by these keys and is not held, or as something else, in words."""
        measure, own = recorder.measure, digests_of(recorder.measure, roles)
        by_label = self.label in (*by, *(measure.table.keys("label") if measure.grain == "label" else []))
        if measure.grain == "label" and measure.table.label != self.label:
            return [repr(measure.table.label)]
        asked = sums_of(recorder) if measure.grain == "sample" else [*recorder.folded, *recorder.run_rows]
        names = [statistic.name for statistic in asked]
        lacking = [
            *(statistic.name for statistic in asked if not self._is_held(statistic, by_label=by_label)),
            *(name for name in own if name not in self.declared),
            *(name for name in names if name in self.declared and name not in own),
        ] or [name for name in self.counts(recorder, roles) if name not in self.statistics]
        return [
            f"{name!r} by label" if by_label and name in self.statistics else repr(name)
            for name in dict.fromkeys(lacking)
        ]

    def _is_held(self, statistic: Statistic, *, by_label: bool) -> bool:
        held = self.statistics.get(statistic.name)
        if held is None or (by_label and statistic.name not in self.by_label):
            return False
        return (held.monoid, held.moment) == (statistic.monoid, statistic.moment)


def check_label_as_target(recorder: Recorder, label: str) -> None:
    """Refuse a measure of each label as a target that looks into samples: it sees those of the label alone."""
    if recorder.is_of_whole_samples:
        raise StateError(
            f"{recorder.measure.output_name} looks into samples, and with {label!r} as the target into the rows of one "
            f"label: no state holds that. Ask `evaluate` for it."
        )
