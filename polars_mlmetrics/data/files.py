"""The files that a lazy frame scans."""

from __future__ import annotations

from typing import Any

import polars as pl

from polars_mlmetrics.errors import ParameterError

HINT = "Steps row by row go into roles, by and filters; or use passes='auto', which takes any lazy frame."


def by_file(scan: pl.LazyFrame) -> list[pl.LazyFrame]:
    """Each file of a scan by itself. The scan must be no more than that, or a file would not be a part of it."""
    node = _outermost(scan)
    if type(node).__name__ != "Scan" or node.scan_type[0] != "parquet":
        raise ParameterError(f"passes='files' takes a scan of parquet files, with nothing done to it. {HINT}")
    columns = scan.collect_schema()
    files = [pl.scan_parquet(path, glob=False) for path in map(str, node.paths)]
    alike = all(columns.items() <= file.collect_schema().items() for file in files)
    if node.predicate is not None or not alike or _rows(files) != _rows([scan]):
        raise ParameterError(f"passes='files': the files do not hold, one by one, what this scan gives. {HINT}")
    return [file.select(columns.names()) for file in files]


def _outermost(scan: pl.LazyFrame) -> Any:
    """The last step of a query. It alone tells which files a pattern or a folder stands for."""
    try:
        return scan._ldf.visit().view_current_node()
    except NotImplementedError:  # a step that Polars does not tell of: no scan of parquet files
        return None


def _rows(frames: list[pl.LazyFrame]) -> int:
    return sum(frame.select(pl.len()).collect().item() for frame in frames)
