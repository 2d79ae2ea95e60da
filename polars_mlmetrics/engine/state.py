"""The state: what measures need of a log's rows, folded into a small table that merges with others of its kind.

One table holds all grains: by columns, bucket, label, bin, and a column for each statistic. A statistic stands in the
rows of one grain and is null in the others, so that a count or a sum is merged by adding up any rows. What a state
holds is told by the type of its first column, which stays with the rows through every filter: states of different
questions are of different types, and do not go one under the other.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, cast

import polars as pl

from polars_mlmetrics.data.listed import LISTED
from polars_mlmetrics.data.roles import Grain, Table
from polars_mlmetrics.engine.arithmetic import modulo, splitmix
from polars_mlmetrics.engine.folds import BIN, CODE, Fold, beside, compacted, share, two_of_one_name
from polars_mlmetrics.engine.lane import Columns, Held, Lane, held_sums
from polars_mlmetrics.engine.measure import Measure
from polars_mlmetrics.engine.metric import Planned
from polars_mlmetrics.engine.passes import Passes
from polars_mlmetrics.engine.ranking import code_of
from polars_mlmetrics.engine.reading import Moment, Monoid, Statistic
from polars_mlmetrics.engine.recorder import Recorder
from polars_mlmetrics.engine.staged import FEW, Plan, check_merges
from polars_mlmetrics.engine.targets import OverTargets
from polars_mlmetrics.errors import INTERNAL, StateError

BUCKET = f"{INTERNAL}bucket"

FORMAT = 1
RESERVED = ("state", "bucket", "label", "bin")
"""The columns of a state that are neither by columns nor statistics."""

KINDS: dict[str, pl.DataType] = {
    kind.__name__: kind()
    for kind in (
        pl.Boolean, pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.Int128, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64,
        pl.UInt128, pl.Float16, pl.Float32, pl.Float64, pl.Decimal, pl.String, pl.Date, pl.Datetime, pl.Duration,
        pl.Time, pl.Binary, pl.Null,
    )
}  # fmt: skip
"""The kinds of columns that a metric may read as they are; of any other nothing but its name is known."""


@dataclass(frozen=True)
class Contents:
    """What a state holds, as its first column tells it."""

    by: list[str]
    label: str | None
    """The log's name for the column of labels, where there is one."""
    bins: bool
    buckets: dict[str, Any] | None
    roles: dict[str, Any]
    columns: dict[str, str]
    """The kinds of the log's columns that the metrics read."""
    metrics: list[str]
    statistics: dict[str, Any]
    """How each statistic is merged: "count", "sum", "min", "max", or what it takes to move a mean."""
    listed: list[str] | None = None
    """The categories of the log's column `listed`, where it is a log of what was returned."""
    format: int = FORMAT

    def column(self) -> pl.Expr:
        """The column that tells it."""
        text = json.dumps(asdict(self), sort_keys=True)
        return pl.lit(text, dtype=pl.Enum([text])).alias("state")

    @classmethod
    def of(cls, schema: Mapping[str, pl.DataType]) -> Contents:
        """What a state of this schema holds; an error where it is none."""
        dtype = schema.get("state")
        if not isinstance(dtype, pl.Enum) or len(dtype.categories) != 1:
            raise StateError("this is no state: it lacks the column 'state', which `state` writes and which says so.")
        contents = cls.read(dtype.categories[0])
        missing = [name for name in contents.names() if name not in schema]
        if missing:
            raise StateError(f"this state has lost its column {missing[0]!r}: filter its rows, and keep all columns.")
        return contents

    @classmethod
    def read(cls, text: str) -> Contents:
        """Contents from their text."""
        try:
            told = json.loads(text)
            version = told["format"]
        except (ValueError, TypeError, KeyError):
            raise StateError("this is no state: its column 'state' does not say what it holds.") from None
        if version != FORMAT:
            raise StateError(f"this state has format {version!r}, and this version reads format {FORMAT}.")
        try:
            contents = cls(**told)
            contents.monoids()
        except (TypeError, KeyError, AttributeError):
            raise StateError("this is no state: its column 'state' does not say what it holds.") from None
        return contents

    def keys(self) -> list[str]:
        """The columns that tell one row from another."""
        there = {"bucket": self.buckets, "label": self.label, "bin": self.bins}
        return [*self.by, *(name for name, is_there in there.items() if is_there)]

    def names(self) -> list[str]:
        """All its columns."""
        return ["state", *self.keys(), *self.statistics]

    def monoids(self) -> list[Statistic]:
        """Its statistics, as what is merged."""
        return [_of_spec(name, told) for name, told in self.statistics.items()]

    def log(self) -> dict[str, pl.DataType]:
        """The schema of the log, as far as it is known."""
        read = {name: KINDS.get(kind, pl.String()) for name, kind in self.columns.items()}
        return read if self.listed is None else {**read, LISTED: pl.Enum(self.listed)}

    def held(self, state: pl.LazyFrame) -> Held:
        """A state under the names that a plan has for its columns."""
        named = {"bucket": BUCKET, "label": self.label or "", "bin": BIN}
        rows = state.drop("state").rename({name: named[name] for name in self.keys() if name in named})
        finer = [named[name] for name in ("label", "bin") if name in self.keys()]
        return Held(rows, self.by, finer, self.monoids())


class OfRows(NamedTuple):
    """A formula of groups or labels."""

    recorder: Recorder
    by_label: bool
    """Whether it must be told by label."""


class StatePlan(Plan):
    """What measures need of the rows of a frame, as a state."""

    def __init__(self, rows: pl.LazyFrame, by: Sequence[str], roles: Table, passes: Passes | None = None) -> None:
        super().__init__(rows, by, roles, passes)
        self._of_rows: list[OfRows] = []
        self._of_samples: list[tuple[Recorder, Columns]] = []
        self._labels: set[str] = set()

    def can_tell(self, measure: Measure) -> bool:
        """Whether it takes no fold of its own: samples are many, and are folded only where a metric asks for them."""
        return measure.grain != "sample" or bool(self._of_samples)

    def _add_units(self, measure: Measure, columns: Columns) -> None:
        self._need(measure, columns, by_label=measure.grain == "label")

    def _need(self, measure: Measure, columns: Columns, *, by_label: bool) -> None:
        recorder = self._recorder(measure, in_runs=False)
        check_merges(recorder)
        if measure.grain == "sample":
            if any(recorder.title == other.title for other, _ in self._of_samples):
                raise two_of_one_name(recorder.title)
            super()._add_units(measure, columns)
            self._of_samples.append((recorder, columns))
        else:
            self._of_rows.append(OfRows(recorder, by_label))
        if by_label:
            self._labels.add(measure.table.label)

    def _add_targets(self, mean: OverTargets, columns: Columns) -> None:
        is_label = all(
            measure.table.label == mean.column and measure.grain == "group" and not measure.looks_across
            for measure in mean.measures()
        )
        if not is_label and mean.column not in self.by:
            raise StateError(f"{mean.output_name}: a state tells targets apart by a key. Add {mean.column!r} to by.")

        def added(part: Planned) -> pl.Expr:
            if is_label and isinstance(part, Measure):
                self._need(part, columns, by_label=True)
            else:
                self.add(part)
            return pl.col(columns.value)

        mean.terms(added, pl.col(mean.column))

    @property
    def label(self) -> str | None:
        """The column of labels, where statistics are told by label."""
        if len(self._labels) > 1:
            raise StateError(f"a state has one label column, and these metrics have {', '.join(sorted(self._labels))}.")
        return next(iter(self._labels), None)

    @property
    def has_bins(self) -> bool:
        """Whether there are statistics of bins."""
        return any(recorder.run_rows for recorder, _ in self._of_rows)

    def statistics(self) -> list[Statistic]:
        """All that the state holds, as what is merged."""
        of_rows = [s for recorder, _ in self._of_rows for s in (*recorder.folded, *recorder.run_rows)]
        held = [name for recorder, columns in self._of_samples for name in held_sums(recorder, columns)]
        of_samples = [
            Statistic(name, pl.col(name), "sum", is_count=name.endswith((": units", ": defined"))) for name in held
        ]
        return list({statistic.name: statistic for statistic in (*of_rows, *of_samples)}.values())

    def table(self) -> pl.LazyFrame:
        """The state, under the plan's names for its keys."""
        label = [] if self.label is None else [self.label]
        of_samples = list(self._lanes.values())
        of_rows = [self._rows_lane(label, recorders, in_passes=whole) for whole, recorders in self._by_passes()]
        for lane in of_rows:
            self._lanes["rows", str(lane.in_passes)] = lane
        self._fold_in_parts()
        bins = self._bins(label)
        fewest = min((recorder.cells for recorder, _ in self._of_rows if recorder.cells), default=math.inf)
        # With buckets one fold at all keys would be long.
        if fewest <= FEW and BUCKET not in self.by and self.passes is None:
            share([*(lane.fold for lane in of_rows if not lane.looks_back), bins[0]])
        rows = beside([lane.folded() for lane in of_rows], [*self.by, *label])
        tables = [rows, *map(_table_of_bins, bins), *(self._sums_of(lane, rows) for lane in of_samples)]
        keys = [*self.by, *label, *([BIN] if self.has_bins else [])]
        return rows if len(tables) == 1 else compacted(pl.concat(tables, how="diagonal"), keys, self.statistics())

    def _by_passes(self) -> list[tuple[bool, list[Recorder]]]:
        """The formulas whose statistics can be folded at once, and those that in passes want whole samples."""
        apart: dict[bool, list[Recorder]] = {}
        for recorder, _ in self._of_rows:
            in_passes = self.passes is not None and recorder.is_of_whole_samples
            apart.setdefault(in_passes, []).append(recorder)
        return list(apart.items())

    def _rows_lane(self, label: list[str], recorders: list[Recorder], *, in_passes: bool) -> Lane:
        """The statistics of rows, all but those of bins: by label where some are of labels."""
        grain: Grain = "label" if label else "group"
        lane = Lane(self.rows, self.by, grain, label, None, few_runs=False, in_passes=in_passes)
        for recorder in recorders:
            lane.take(recorder, recorder.folded)
        return lane

    def _bins(self, label: list[str]) -> list[Fold]:
        """The statistics of bins, the fewest first, each kind by itself: by label where some are of labels."""
        kinds: dict[str, list[OfRows]] = {}
        for needed in self._of_rows:
            if needed.recorder.run_key is not None:
                kinds.setdefault(needed.recorder.run_name, []).append(needed)
        told = []
        for kind in sorted(kinds.values(), key=lambda kind: kind[0].recorder.cells or 0):
            recorders = [needed.recorder for needed in kind]
            run = recorders[0].run_key
            assert run is not None
            by_label = any(needed.by_label for needed in kind)
            name = run.meta.output_name()
            bins = Fold(self.rows, [*self.by, *(label if by_label else []), name])
            for recorder in recorders:
                assert recorder.run_key is not None
                for feature in (recorder.run_key, *recorder.features):
                    bins.take_feature(feature)
                for statistic in recorder.run_rows:
                    bins.take(statistic)
            told.append(bins)
        return told

    def _sums_of(self, lane: Lane, rows: pl.LazyFrame) -> pl.LazyFrame:
        """The sums over samples, by group, under the names that a state has for them."""
        held = (names for recorder, columns in lane.measures for names in held_sums(recorder, columns).items())
        sums = lane.sums().rename({column: name for name, column in held})
        if lane.by == self.by:
            return sums
        # The rows that are folded already know the groups.
        names = rows.select(self.by).unique().with_columns(self._code())
        return beside([names, sums], [CODE], validate="1:1").drop(CODE)


def _table_of_bins(bins: Fold) -> pl.LazyFrame:
    """One row a bin of each group or label. The rows that do not count have no bin."""
    *_, key = bins.keys
    return bins.table().filter(pl.col(key).is_not_null()).rename({key: BIN}).cast({BIN: pl.Float64})


def bucket_of(sample: Sequence[str], schema: Mapping[str, pl.DataType], buckets: int) -> tuple[pl.Expr, str]:
    """In which of so many buckets a sample falls, and by which hash. It says nothing of the sample but its bucket."""
    if not all(schema[column].is_integer() and schema[column] not in (pl.Int128, pl.UInt128) for column in sample):
        return modulo(code_of(sample), buckets).cast(pl.Int64), "polars"
    code = pl.lit(0, dtype=pl.UInt64)
    for column in sample:
        code = splitmix(code + pl.col(column).fill_null(0).cast(pl.UInt64, wrap_numerical=True))
    return modulo(code, buckets).cast(pl.Int64), "splitmix64"


def spec(statistic: Statistic) -> Any:
    """How a statistic is merged, as a text holds it."""
    if statistic.moment is not None:
        return asdict(statistic.moment)
    return "count" if statistic.is_count else statistic.monoid


def _of_spec(name: str, told: Any) -> Statistic:
    row = pl.col(name)
    if told == "count":
        return Statistic(name, row, "sum", is_count=True)
    if isinstance(told, str):
        return Statistic(name, row, cast(Monoid, told))
    moment = Moment(told["weight"], tuple(told["shifts"]), tuple(told["deviations"]))
    return Statistic(name, row, moment.monoid, moment=moment)
