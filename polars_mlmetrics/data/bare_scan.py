"""The source of a LazyFrame: whether reading it is cheap, and each file of a scan by itself."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import polars as pl

from polars_mlmetrics.data.files import is_url
from polars_mlmetrics.errors import FileError, ParameterError

HINT = "Put row-wise expressions into roles, by= and .filter() of metrics; or use passes='auto'."


def is_at_hand(frame: pl.LazyFrame) -> bool:
    """Whether a frame is no more than rows in memory, or a scan of files that are quick to read once more."""
    return _last_step(frame).startswith(("DF [", "Parquet SCAN [", "Ipc SCAN ["))


def scan_node(frame: pl.LazyFrame) -> Any:
    """The plan node of a bare scan of csv or parquet files; None for any other frame."""
    if not _last_step(frame).startswith(("Csv SCAN [", "Parquet SCAN [")):
        return None
    try:
        return frame._ldf.visit().view_current_node()
    except NotImplementedError:  # of what is in memory, or an open file
        return None


def guessed_numbers(frame: pl.LazyFrame) -> list[str] | None:
    """The columns of a bare scan of csv files that Polars took for whole numbers; None for any other frame."""
    node = scan_node(frame)
    if node is None or node.scan_type[0] != "csv":
        return None
    options = json.loads(node.scan_type[1])
    declared = [name for given in ("schema", "schema_overwrite") for name in (options[given] or {}).get("fields", ())]
    return [name for name, dtype in frame.collect_schema().items() if dtype == pl.Int64 and name not in declared]


def _last_step(frame: pl.LazyFrame) -> str:
    """The last step of a query, as Polars prints it.

    The plan itself is not visited unless this says that it is a scan of csv or parquet files: for a table of Delta or
    Iceberg Polars would then ask Python for the files, while it keeps Python from answering, and wait for ever.
    """
    return next(iter(frame.explain(optimized=False).splitlines()), "")


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
        if not _last_step(self._scan).startswith("Parquet SCAN ["):
            raise ParameterError(f"passes='files' needs a bare scan of parquet files, without further steps. {HINT}")
        paths = [str(path) for path in self._scan._ldf.visit().view_current_node().paths]
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
