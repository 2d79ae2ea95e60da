"""Folders that are tables of Delta, Iceberg or Hudi: their files cannot be read one by one.

Such a folder holds the current rows, and also rows of older versions and deleted rows. Only the log of the table shows
which is which.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from polars_mlmetrics.errors import FileError

HUDI = (".hoodie", "_hoodie", ".hoodie_partition_metadata")


def refuse_tables(folders: Iterable[Path]) -> None:
    """Refuse a folder that is such a table or lies in one, with the line that reads it."""
    known = {folder.resolve() for folder in folders}
    for folder in sorted(known.union(*(path.parents for path in known))):
        kind, line = "", ""
        with suppress(PermissionError):  # whoever reads the folder gets the error
            kind, line = _table_in(folder)
        if kind:
            raise FileError(f"{folder} is {kind} table: its files also hold rows that were replaced or deleted. {line}")


def _table_in(folder: Path) -> tuple[str, str]:
    """Which kind of table a folder is, and how it is read; empty texts where it is none."""
    if folder.joinpath("_delta_log").is_dir():
        return "a Delta", _read_by(f"pl.scan_delta({str(folder)!r})")
    versions = list(folder.glob("metadata/*.metadata.json"))
    if versions:
        newest = max(versions, key=lambda file: (_number_of(file), file.name))
        return "an Iceberg", _read_by(
            f"pl.scan_iceberg({str(newest)!r})", " Ask its catalog whether that is the newest version."
        )
    if any(folder.joinpath(name).exists() for name in HUDI):
        return "a Hudi", "Read it with a library that supports Hudi, and pass the Arrow table: mlm.scan(table)."
    return "", ""


def _read_by(line: str, more: str = "") -> str:
    return f"Read it with {line}: every function that takes a frame takes that LazyFrame.{more}"


def _number_of(metadata: Path) -> int:
    """The version that a file of metadata has in its name: 00012-<id>.metadata.json, or v12.metadata.json."""
    number = re.match(r"v?(\d+)", metadata.name)
    return int(number[1]) if number else -1
