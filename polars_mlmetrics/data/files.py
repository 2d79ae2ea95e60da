"""The files that a lazy frame scans."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from polars_mlmetrics.errors import ParameterError

SCANS: dict[str, Callable[..., pl.LazyFrame]] = {"parquet": pl.scan_parquet, "ipc": pl.scan_ipc}
HINT = "Steps row by row go into roles, by and filters; or use passes='auto', which takes any lazy frame."


def by_file(scan: pl.LazyFrame) -> list[pl.LazyFrame]:
    """Each file of a scan by itself. The scan must be no more than that, or a file would not be a part of it."""
    # The one place where Polars tells which files a pattern or a folder stands for.
    node = scan._ldf.visit().view_current_node()
    kind = node.scan_type[0] if type(node).__name__ == "Scan" else ""
    if kind not in SCANS:
        raise ParameterError(f"passes='files' takes a scan of parquet or ipc files, with nothing done to it. {HINT}")
    columns = scan.collect_schema()
    files = [SCANS[kind](path, glob=False) for path in map(str, node.paths)]
    alike = all(columns.items() <= file.collect_schema().items() for file in files)
    if node.predicate is not None or not alike or _rows(files) != _rows([scan]):
        raise ParameterError(f"passes='files': the files do not hold, one by one, what this scan gives. {HINT}")
    return [file.select(columns.names()) for file in files]


def _rows(frames: list[pl.LazyFrame]) -> int:
    return sum(frame.select(pl.len()).collect().item() for frame in frames)
