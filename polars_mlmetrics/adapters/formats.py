"""The formats of files: how their suffixes say them, and how files of each are scanned."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from glob import escape
from typing import Any, Literal, get_args

import polars as pl
from polars.exceptions import PolarsError

from polars_mlmetrics.data.door import reason
from polars_mlmetrics.errors import FileError, typed, unknown
from polars_mlmetrics.places.credentials import worded
from polars_mlmetrics.places.place import Place, Places

Format = Literal["parquet", "ipc", "csv", "ndjson"]
Missing = Literal["raise", "null"]
FORMATS: tuple[Format, ...] = get_args(Format)
SUFFIXES: dict[str, Format] = {
    ".parquet": "parquet", ".pq": "parquet",
    ".arrow": "ipc", ".ipc": "ipc", ".feather": "ipc",
    ".csv": "csv",
    ".ndjson": "ndjson", ".jsonl": "ndjson",
}  # fmt: skip
TEXTS = ("csv", "ndjson")
"""The formats that do not hold types."""
SMALL = (pl.Int8, pl.Int16, pl.UInt8, pl.UInt16)


def format_of(paths: Sequence[Place]) -> Format:
    """The format that the suffixes of all files say."""
    first, *others = paths
    kinds = [_format_of_one(path) for path in paths]
    for path, kind in zip(others, kinds[1:], strict=True):
        if kind != kinds[0]:
            raise FileError(
                f"{first} is {kinds[0]} and {path} is {kind}, but a log has one format: pass files of one format, or "
                f"pass {typed('format')} if a suffix is wrong."
            )
    return kinds[0]


def kind_of(path: Place) -> Format:
    """The format that the suffix of a file says; parquet where it says none."""
    return SUFFIXES.get(path.suffix.lower(), "parquet")


def _format_of_one(path: Place) -> Format:
    kind = SUFFIXES.get(path.suffix.lower())
    if kind is None:
        known = unknown("suffix", path.suffix, SUFFIXES, of="one of a known format")
        raise FileError(f"{path}: {known} Or pass {typed('format', 'parquet')}, 'ipc', 'csv' or 'ndjson'.")
    return kind


@dataclass(frozen=True)
class FileReader:
    """Reads the files of a log, which are of one format."""

    kind: Format
    wanted: pl.Schema | None
    """The columns and types that are asked for."""
    missing: Missing
    places: Places[Any]

    def scan(self, paths: Sequence[Place], columns: pl.Schema | None = None, **more: Any) -> pl.LazyFrame:
        """The rows of files that have these columns, one file under the other.

        No path is taken for a pattern, and no folder for a key.
        """
        names = [path.as_posix() for path in paths]
        options = {**self.places.for_polars(), **({} if columns is None else self._of_texts(columns)), **more}
        if self.kind == "ndjson":  # whose scan takes every path for a pattern
            return pl.scan_ndjson([escape(name) for name in names], **options)
        if self.kind == "csv":
            return pl.scan_csv(names, glob=False, **options)
        scan: Any = pl.scan_ipc if self.kind == "ipc" else pl.scan_parquet
        rows: pl.LazyFrame = scan(names, glob=False, **{"hive_partitioning": False, **options})
        return rows

    def readable(self, path: Place) -> AbstractContextManager[None]:
        """Name the file that cannot be read."""
        return worded(f"{path} cannot be read as {self.kind}", self.places, ValueError)

    def schema_of(self, path: Place) -> pl.Schema:
        """The columns of a file; for text files, with the wanted types."""
        with self.readable(path):
            found = self.scan([path]).collect_schema()
        return pl.Schema({**found, **self._of_texts(found).get("schema_overrides", {})})

    def _of_texts(self, columns: pl.Schema) -> dict[str, Any]:
        if self.kind not in TEXTS or self.wanted is None:
            return {}
        types = {name: dtype for name, dtype in self.wanted.items() if name in columns and reason(dtype) is None}
        if self.kind == "ndjson":  # its reader panics at these
            types = {name: pl.Int64() if dtype in SMALL else dtype for name, dtype in types.items()}
        return {"schema_overrides": types}

    def columns_of_scan(self, found: pl.Schema, common: pl.Schema) -> pl.Schema:
        """The columns with which a file is scanned, to be read as the common ones."""
        if self.kind != "parquet":
            return found
        # Its scan leaves out other columns, fills those that a file lacks, and widens numbers.
        types = {name: (found.get(name, dtype), dtype) for name, dtype in common.items() if reason(dtype) is None}
        return pl.Schema({name: dtype if _is_wider(dtype, own) else own for name, (own, dtype) in types.items()})

    def drifted(self, columns: pl.Schema) -> dict[str, Any]:
        """How a scan reads files as these columns, of which some have others: what Polars calls unstable yet."""
        lacking = "insert" if self.missing == "null" else "raise"
        wider = pl.ScanCastOptions(integer_cast="upcast", float_cast="upcast")
        return {"schema": columns, "missing_columns": lacking, "extra_columns": "ignore", "cast_options": wider}

    def alike(self, columns: pl.Schema) -> object:
        """A value that is equal for files that one scan can read: Polars reads csv by position, others by name."""
        return list(columns.items()) if self.kind == "csv" else dict(columns)


def may_fail(dtype: pl.DataType, wanted: pl.DataType) -> bool:
    """Whether a value of one type may be none of another; numbers and texts take any number."""
    if dtype == wanted or wanted == pl.String or dtype in (pl.Null, pl.Boolean):
        return False
    if wanted.is_float():
        return not dtype.is_numeric()
    if not (dtype.is_integer() and wanted.is_integer()):
        return True
    try:
        pl.select(lowest=dtype.min(), highest=dtype.max()).cast(wanted)  # type: ignore[attr-defined]
    except PolarsError:
        return True
    return False


def _is_wider(wanted: pl.DataType, dtype: pl.DataType) -> bool:
    """Whether a type of numbers has all numbers of another one, of the same kind."""
    if dtype.is_float():
        return wanted == pl.Float64
    return dtype.is_integer() and wanted.is_integer() and not may_fail(dtype, wanted)
