"""Which files a path stands for, where it may be one of an object store."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Any

from polars_mlmetrics.data.files import Found, found_files
from polars_mlmetrics.data.stores import Address, Seen, Store, is_of_store, is_there
from polars_mlmetrics.errors import FileError


@dataclass(frozen=True)
class FoundThere:
    """A file of a store, and the folder below which it was found."""

    path: Address
    below: Address
    seen: Seen

    @property
    def within(self) -> tuple[str, ...]:
        """The file below that folder, in parts."""
        return self.path.path.relative_to(self.below.path).parts


AnyFound = Found | FoundThere


def files_anywhere(
    source: Any,
    store: Store,
    suffixes: Sequence[str] | None = (".parquet",),
    *,
    instead: str,
    deep: bool = False,
    in_tables: bool = False,
) -> Sequence[AnyFound]:
    """The files that a source stands for, as `found_files` has it, whether they are here or in a store."""
    if is_there(source):
        return _files_of_store(source, store, suffixes, deep=deep, in_tables=in_tables)
    return found_files(source, suffixes, instead=instead, deep=deep, in_tables=in_tables)


def _files_of_store(
    source: Any, store: Store, suffixes: Sequence[str] | None, *, deep: bool, in_tables: bool
) -> list[FoundThere]:
    found: list[FoundThere] = []
    for url in [source] if isinstance(source, str) else source:
        if not is_of_store(url):
            raise FileError(f"{url} is not of an object store, and other paths of this call are.")
        address = Address.of(url)
        files, below = _expanded(address, store, suffixes, deep=deep)
        found += [FoundThere(file, below, files[file]) for file in sorted(files, key=lambda file: file.key)]
    known: set[Address] = set()
    for file in found:
        if not file.seen.size:
            raise FileError(f"{file.path} is empty: nothing was written to it, or writing was interrupted.")
        if file.path in known:
            raise FileError(f"{file.path} is given twice.")
        known.add(file.path)
    if not in_tables:
        _refuse_tables({Address(file.bucket, str(folder)) for file in known for folder in file.path.parents}, store)
    return found


Files = Mapping[Address, Seen]


def _expanded(address: Address, store: Store, suffixes: Sequence[str] | None, *, deep: bool) -> tuple[Files, Address]:
    """The files that a URL stands for, and the folder below which they lie."""
    if address.key and not address.key.endswith("/"):
        seen = store.seen(address)
        if seen is not None:  # also one whose name looks like a pattern
            return {address: seen}, Address(address.bucket, address.key.rpartition("/")[0])
    if address.has_magic:
        below = Address(address.bucket, re.split(r"[*?[]", address.key)[0].rpartition("/")[0])
        return _matching(address, store.seen_below(below)), below
    return _taken(address, store.seen_below(address), suffixes, deep=deep), address


def _matching(pattern: Address, files: Files) -> Files:
    segments = pattern.key.split("/")
    matching = {file: seen for file, seen in files.items() if _matches(file.key.split("/"), segments)}
    if not matching:
        raise FileError(f"no file matches {pattern}.")
    return matching


def _taken(folder: Address, inside: Files, suffixes: Sequence[str] | None, *, deep: bool) -> Files:
    if not inside:
        raise FileError(f"there is no file {folder}.")
    parts = {file: file.path.relative_to(folder.path).parts for file in inside}
    taken = {file: seen for file, seen in inside.items() if _is_taken(parts[file], suffixes, deep=deep)}
    if not taken:
        wanted = "" if suffixes is None else f"{', '.join(dict.fromkeys(map(str.lower, suffixes)))} "
        raise FileError(f"there is no {wanted}file in the folder {folder}.")
    return taken


def _is_taken(parts: Sequence[str], suffixes: Sequence[str] | None, *, deep: bool) -> bool:
    if deep:
        is_open = not any(part.startswith((".", "_")) for part in parts)
    else:
        is_open = len(parts) == 1 and not parts[0].startswith(".")
    return is_open and (suffixes is None or PurePosixPath(parts[-1]).suffix in suffixes)


def _matches(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether a key is of a pattern: `*` does not reach over a slash, `**` does, and neither finds what is hidden."""
    if not pattern or not parts:
        return not parts and all(segment == "**" for segment in pattern)
    first, rest = pattern[0], pattern[1:]
    is_open = not parts[0].startswith(".") or first.startswith(".")
    if first == "**":
        return _matches(parts, rest) or (is_open and _matches(parts[1:], pattern))
    return is_open and fnmatchcase(parts[0], first) and _matches(parts[1:], rest)


SIGNS = {
    "_delta_log/": ("a Delta", "Read it with pl.scan_delta(url, storage_options=...)."),
    "metadata/": ("an Iceberg", "Read it with pl.scan_iceberg(...)."),
    ".hoodie/": (
        "a Hudi",
        "Read it with a library that supports Hudi, and pass the Arrow table: mlm.scan(table).",
    ),
}
"""What is in the folder of a table of another engine, and how it is read."""


def _refuse_tables(folders: set[Address], store: Store) -> None:
    """Refuse the files of such a table, whose log alone knows which of their rows are current."""
    for folder in sorted(folders, key=lambda folder: folder.key):
        table = Address(folder.bucket, "" if folder.key == "." else f"{folder.key}/")
        for sign, (kind, line) in SIGNS.items():
            # Other folders may be called metadata.
            most, ending = (None, ".metadata.json") if sign == "metadata/" else (1, "")
            inside = store.seen_below(Address(table.bucket, table.key + sign), most)
            if any(file.key.endswith(ending) for file in inside):
                raise FileError(
                    f"{table} is {kind} table: its files also hold rows that were replaced or deleted. {line}"
                )
