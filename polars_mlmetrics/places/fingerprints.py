"""Fingerprints of files: by them the same file is known again, wherever it lies and whatever it is called."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from pathlib import Path

import polars as pl

from polars_mlmetrics.data.frames import scan_node
from polars_mlmetrics.places.files import FILES, readable
from polars_mlmetrics.places.place import AnyPlace, Places, is_url

END = 2**20
"""How much of the end of a file is read: the footer, and all of a small file."""


def digest_in(fingerprint: str) -> str:
    """The digest in the fingerprint of a file: what a copy under another name shares."""
    return fingerprint.partition(" ")[0]


def name_in(fingerprint: str) -> str:
    """The name of the file."""
    return fingerprint.partition(" ")[2]


def fingerprint_of(place: AnyPlace, size: int, places: Places[AnyPlace], keys: Collection[str] = ()) -> str:
    """A digest of the size and the end of a file, and its name.

    Files with equal digests hold the same rows, wherever they lie. `keys` are columns whose values are read from the
    names of folders, as `country=DE`: of two equal files in folders of two countries the rows differ.
    """
    # Its end tells a parquet file: what all of its columns hold stands there.
    start = max(0, size - END) if place.suffix.lower() in (".parquet", ".pq") else 0
    end = places.part(place, start, size)
    folders: list[str] = [part for part in place.parts[:-1] if part.partition("=")[0] in keys and "=" in part]
    read = b"".join([f"{size}\n".encode(), end, *(f"{part}\n".encode() for part in folders)])
    return f"{hashlib.sha256(read).hexdigest()[:32]} {place.name}"


def fingerprints_of(frame: pl.LazyFrame) -> list[str]:
    """The fingerprints of the files whose rows a frame has; none where it is more than a scan of whole parquet files.

    Files of other machines have none either: to read them takes long.
    """
    node = scan_node(frame)
    if node is None or node.scan_type[0] != "parquet" or node.file_options.n_rows is not None:
        return []
    paths = [str(path) for path in node.paths]
    if any(map(is_url, paths)):
        return []
    keys = frame.collect_schema().names() if node.hive_parts is not None else []
    with readable():
        sizes = [(path, path.stat().st_size) for path in map(Path, paths)]
    return [fingerprint_of(path, size, FILES, keys) for path, size in sizes]
