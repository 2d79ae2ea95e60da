"""The formats of files: how their suffixes say them, and the scan of each."""

from __future__ import annotations

from collections.abc import Sequence
from glob import escape
from typing import Any, Literal, get_args

import polars as pl

from polars_mlmetrics.errors import FileError, typed, unknown
from polars_mlmetrics.places.place import Place

Format = Literal["parquet", "ipc", "csv", "ndjson"]
FORMATS: tuple[Format, ...] = get_args(Format)
SUFFIXES: dict[str, Format] = {
    ".parquet": "parquet", ".pq": "parquet",
    ".arrow": "ipc", ".ipc": "ipc", ".feather": "ipc",
    ".csv": "csv",
    ".ndjson": "ndjson", ".jsonl": "ndjson",
}  # fmt: skip


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


def _format_of_one(path: Place) -> Format:
    kind = SUFFIXES.get(path.suffix.lower())
    if kind is None:
        known = unknown("suffix", path.suffix, SUFFIXES, of="one of a known format")
        raise FileError(f"{path}: {known} Or pass {typed('format', 'parquet')}, 'ipc', 'csv' or 'ndjson'.")
    return kind


def scanned(paths: Sequence[str], kind: Format, **options: Any) -> pl.LazyFrame:
    """The files of these paths, one under the other. No path is taken for a pattern, and no folder for a key."""
    if kind == "ndjson":  # whose scan takes every path for a pattern
        return pl.scan_ndjson([escape(path) for path in paths], **options)
    if kind == "csv":
        return pl.scan_csv(list(paths), glob=False, **options)
    options = {"hive_partitioning": False, **options}
    if kind == "ipc":
        return pl.scan_ipc(list(paths), glob=False, **options)
    return pl.scan_parquet(list(paths), glob=False, **options)
