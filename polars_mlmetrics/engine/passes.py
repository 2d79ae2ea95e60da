"""Passes: a log read in parts that hold whole samples, one part after the other, so that memory holds one at a time."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal

import polars as pl

from polars_mlmetrics.data.frames import is_parquet, parquet_paths
from polars_mlmetrics.engine.packing import modulo
from polars_mlmetrics.engine.progress import tracked
from polars_mlmetrics.engine.ranking import code_of
from polars_mlmetrics.errors import ColumnError, FileError, ParameterError, typed
from polars_mlmetrics.formula.arithmetic import cuts, whole_times
from polars_mlmetrics.places.place import is_url

HELD = 330_000_000
"""Bytes that a process holds whatever it reads."""

LEAST_ROOM = 50_000_000
"""Bytes for the rows of a pass, where the memory that is allowed is less than what is held anyway."""

IDS_A_PASS = 1000
"""How many sample ids are looked at to part the others: a pass is then longer than the mean by 3 percent or so."""


RANGED = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64, pl.String, pl.Float64)
"""The types of ids whose range parquet files store, besides dates and times; and that of scores."""


@dataclass
class Passes:
    """Into how many parts the rows are split, or what decides it."""

    rows: pl.LazyFrame
    sample: Sequence[str]
    count: int | Literal["auto", "files"]
    files: FileByFile | None
    """The reader of the parts, where they are files."""
    memory: int
    progress: bool
    _known: dict[int, list[pl.Expr]] = field(default_factory=dict)
    _height: int | None = None

    def changed(self, change: Callable[[pl.LazyFrame], pl.LazyFrame]) -> Passes:
        """The same passes over changed rows."""
        files = None if self.files is None else self.files.changed(change)
        return replace(self, rows=change(self.rows), files=files, _known={}, _height=None)

    def parts(self, bytes_a_row: int, n_rows: int | None = None) -> Generator[pl.LazyFrame]:
        """The rows, part by part. `bytes_a_row` is what a row takes while its part is worked on.

        How many rows there are is counted where it is not known.
        """
        n_parts = self.how_many(bytes_a_row, n_rows)
        if self.files is None:
            parts = [self.rows.filter(of_part) for of_part in self._conditions(n_parts)]
        else:
            self.files.check_unchanged()
            parts = self.files.parts()
        yield from tracked(parts, "pass", show=self.progress)
        if self.files is not None:
            self.files.check_unchanged()

    def how_many(self, bytes_a_row: int, n_rows: int | None = None) -> int:
        """How many parts there are: of rows with one id fewer come."""
        if n_rows is not None:
            self._height = n_rows
        if self.files is not None:
            return len(self.files.parts())
        if isinstance(self.count, int):
            return self.count
        return whole_times(self._room, self._n_rows * bytes_a_row)

    def parts_of(self, value: pl.Expr, alike: pl.Expr, bytes_a_value: int, n_rows: int) -> Generator[pl.LazyFrame]:
        """The rows, in parts that hold whole values of a column: those that are alike by an expression are in one.

        However the samples are parted, there are as many parts as the memory for the values needs.
        """
        n_values = n_rows
        if n_rows * bytes_a_value > self._room:  # else there is no need to look how many there are
            n_values = self.rows.select(value.hash().approx_n_unique()).collect().item()
        n_parts = whole_times(self._room, n_values * bytes_a_value)
        parts = [self.rows.filter(modulo(alike.hash(), n_parts) == part) for part in range(n_parts)]
        yield from tracked(parts if n_parts > 1 else [self.rows], "pass", show=self.progress)

    @property
    def _room(self) -> int:
        """Bytes for the rows of a pass, or its values."""
        return max(self.memory - HELD, LEAST_ROOM)

    @property
    def _n_rows(self) -> int:
        # Not a cached property: until Python 3.12 all objects share its lock, and passes may read what others make.
        if self._height is None:
            self._height = int(self.rows.select(pl.len()).collect().item())
        return self._height

    def _conditions(self, passes: int) -> list[pl.Expr]:
        # The same where the rows are read again.
        if passes not in self._known:
            self._known[passes] = self._new_conditions(passes)
        return self._known[passes]

    def _new_conditions(self, passes: int) -> list[pl.Expr]:
        if passes == 1:
            return [pl.lit(True)]
        schema = self.rows.collect_schema()
        for column in self.sample:
            if column not in schema:
                raise ColumnError(
                    f"passes split the rows by sample, and there is no sample column {column!r}: pass "
                    f"{typed('sample')}. If each row is a sample of its own, add a column: .with_row_index('sample')."
                )
        dtype = schema[self.sample[0]]
        if len(self.sample) == 1 and (dtype in RANGED or dtype.is_temporal()):
            return self._ranges(passes)
        return [modulo(code_of(self.sample), passes) == part for part in range(passes)]

    def _ranges(self, passes: int) -> list[pl.Expr]:
        """Ranges of ids, of about as many rows each.

        A log is written over time, and ids grow with it: so the rows of a range lie together in the files, and the
        other files and row groups need not be read in its pass. Where they do not, a range is as good as a hash.
        """
        every = whole_times(IDS_A_PASS * passes, self._n_rows)
        ids = self.rows.select(pl.col(self.sample).gather_every(every)).collect().to_series().drop_nulls().sort()
        if ids.is_empty():
            return [pl.lit(True)]
        borders = ids.gather(cuts(len(ids), passes)).unique(maintain_order=True)
        # As whole numbers: a date of Python holds less than one of Polars.
        literals = [pl.lit(border).cast(ids.dtype) for border in borders.to_physical()]
        return _between(pl.col(self.sample), literals)


def _between(value: pl.Expr, borders: Sequence[pl.Expr]) -> list[pl.Expr]:
    """One condition for each range between the borders; what is null is in the first."""
    lowest = value.is_null() | (value < borders[0])
    between = [(value >= lower) & (value < upper) for lower, upper in pairwise(borders)]
    return [lowest, *between, value >= borders[-1]]


HINT = "Put row-wise expressions into roles, by= and .filter() of metrics; or use passes='auto'."


class FileByFile:
    """A scan of parquet files, one file after the other: its own rows by their places in it.

    They are rows of the scan that was given, so its options hold for them: keys in the names of folders, types to cast
    to, columns that may be missing.
    """

    def __init__(self, scan: pl.LazyFrame, prepared: Callable[[pl.LazyFrame], pl.LazyFrame]) -> None:
        self._scan = scan
        self._prepared = prepared
        self._heights = self._rows_by_file()
        if sum(self._heights.values()) != _n_rows(scan):
            raise ParameterError(
                f"passes='files': read one by one, the files do not give the rows of this scan. {HINT}"
            )

    def changed(self, change: Callable[[pl.LazyFrame], pl.LazyFrame]) -> FileByFile:
        """The same files, their rows changed."""
        prepared = self._prepared
        found = copy(self)
        found._prepared = lambda rows: change(prepared(rows))
        return found

    def parts(self) -> list[pl.LazyFrame]:
        """The rows of each file. `check_unchanged` says, before and after they are read, whether they are those."""
        parts, start = [], 0
        for height in self._heights.values():
            parts.append(self._prepared(self._scan.slice(start, height)))
            start += height
        return parts

    def check_unchanged(self) -> None:
        """Refuse files that have changed, so that a part would not be one file."""
        now = self._rows_by_file()
        for path in {**self._heights, **now}:
            if self._heights.get(path) != now.get(path):
                raise FileError(f"{path} has changed while passes='files' read it: run it again.")

    def _rows_by_file(self) -> dict[str, int]:
        if not is_parquet(self._scan):
            raise ParameterError(f"passes='files' needs a bare scan of parquet files, without further steps. {HINT}")
        paths = parquet_paths(self._scan)
        for path in paths:
            if is_url(path) and not path.startswith("file:"):
                raise ParameterError(
                    f"passes='files' reads local files only, and {path} is remote: use passes='auto', "
                    "which reads remote files too."
                )
        return {path: _n_rows(pl.scan_parquet(path, glob=False, hive_partitioning=False)) for path in paths}


def _n_rows(frame: pl.LazyFrame) -> int:
    n_rows: int = frame.select(pl.len()).collect().item()
    return n_rows
