"""Tables of other engines: folders whose files are no log, and the line that reads each."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from polars_mlmetrics.errors import FileError
from polars_mlmetrics.places.place import Address, AnyPlace, Places, is_of_store
from polars_mlmetrics.places.stores import Store

DELTA_LOG = "_delta_log"
HUDI = (".hoodie", "_hoodie", ".hoodie_partition_metadata")
BY_ARROW = "Read it with a library that supports Hudi, and pass the Arrow table: mlm.scan(table)."

SIGNS = {
    DELTA_LOG: ("a Delta", "Read it with pl.scan_delta(url, storage_options=...)."),
    "metadata": ("an Iceberg", "Read it with pl.scan_iceberg(...)."),
    ".hoodie": ("a Hudi", BY_ARROW),
}
"""Folders of tables of other engines in a store, and how to read such a table."""


def is_delta(source: Any, store: Store) -> bool:
    """Whether a source is the folder of one Delta table; a folder or a file inside of one is not."""
    if is_of_store(source):
        source = Address.of(source)
    if isinstance(source, Address):
        return not source.has_magic and bool(store.below(source, most=1, within=DELTA_LOG))
    try:
        return isinstance(source, str | Path) and Path(source).joinpath(DELTA_LOG).is_dir()
    except OSError:  # it may not be entered, and is refused where it is read
        return False


def refuse_tables(folders: Iterable[AnyPlace], places: Places[AnyPlace]) -> None:
    """Refuse a folder that is such a table or lies in one, with the line that reads it.

    Its files hold rows of older versions and deleted rows too. Only the log of the table shows which is which.
    """
    known = {places.identity(folder) for folder in folders}
    for folder in sorted(known.union(*(path.parents for path in known))):
        kind, line = "", ""
        with suppress(PermissionError):  # whoever reads the folder gets the error
            kind, line = _table_here(folder) if isinstance(folder, Path) else _table_there(folder, places)
        if kind:
            shown = folder if isinstance(folder, Path) or not folder.key else f"{folder}/"
            raise FileError(f"{shown} is {kind} table: its files also hold rows that were replaced or deleted. {line}")


def _table_here(folder: Path) -> tuple[str, str]:
    """Which kind of table a folder is, and how it is read; empty texts where it is none."""
    if folder.joinpath(DELTA_LOG).is_dir():
        return "a Delta", _read_by(f"pl.scan_delta({str(folder)!r})")
    versions = list(folder.glob("metadata/*.metadata.json"))
    if versions:
        newest = max(versions, key=lambda file: (_number_of(file), file.name))
        line = _read_by(f"pl.scan_iceberg({str(newest)!r})")
        return "an Iceberg", f"{line} Ask its catalog whether that is the newest version."
    if any(folder.joinpath(name).exists() for name in HUDI):
        return "a Hudi", BY_ARROW
    return "", ""


def _read_by(line: str) -> str:
    return f"Read it with {line}: every function that takes a frame takes that LazyFrame."


def _number_of(metadata: Path) -> int:
    """The version that a file of metadata has in its name: 00012-<id>.metadata.json, or v12.metadata.json."""
    number = re.match(r"v?(\d+)", metadata.name)
    return int(number[1]) if number else -1


def _table_there(folder: Address, store: Any) -> tuple[str, str]:
    for sign, (kind, line) in SIGNS.items():
        # Other folders may be called metadata.
        most, ending = (None, ".metadata.json") if sign == "metadata" else (1, "")
        if any(file.key.endswith(ending) for file in store.below(folder, most, within=sign)):
            return kind, line
    return "", ""
