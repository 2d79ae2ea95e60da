"""Paths: which files they mean, here and in object stores, and what is refused before any file is read."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Generic

from polars_mlmetrics.errors import FileError, ParameterError, typed
from polars_mlmetrics.places.files import FILES, check_kind, check_text, is_hidden, readable
from polars_mlmetrics.places.place import Address, AnyPlace, Places, Seen, is_of_store, is_there, is_url
from polars_mlmetrics.places.stores import Store
from polars_mlmetrics.places.tables import refuse_tables

Source = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A file, a folder, a pattern such as "logs/*.parquet", or a list of them."""


@dataclass(frozen=True)
class FoundFile(Generic[AnyPlace]):
    """A file, and the folder below which it was found: the one given, or the part of a pattern that is a plain path."""

    path: AnyPlace
    below: AnyPlace
    seen: Seen

    @property
    def within(self) -> tuple[str, ...]:
        """The file below that folder, in parts."""
        return self.path.parts[len(self.below.parts) :]


AnyFound = FoundFile[Any]
"""Of a Path or of an Address."""


def found_files(
    source: Any,
    suffixes: Collection[str] | None = (".parquet",),
    *,
    instead: str,
    store: Store | None = None,
    deep: bool = False,
    in_tables: bool = False,
    skip: Collection[str] = (),
    unusable: dict[str, FileError] | None = None,
) -> list[AnyFound]:
    """The files that a source stands for, in order. Each must be there, hold something, and be named once.

    Of a folder, the files of these suffixes are taken, in capitals too, or all where there are none, but for those
    whose names begin with ".". With `deep`, folders are looked through to the bottom, but for files and folders whose
    names begin with "." or "_" and for links to folders. A pattern means what `glob` means, with `**` and without what
    is hidden. Files of which `skip` has the name, the path or a pattern are left out. A remote path is refused, but for
    one of a `store`; `instead` says what takes it. So are the files of a table of another engine, but with
    `in_tables`. Errors about single files go to `unusable`, if there is one.
    """
    if isinstance(skip, str) or not isinstance(skip, Collection) or not all(isinstance(each, str) for each in skip):
        raise ParameterError(f"skip is a list of files or patterns, such as ['2026-11-08.parquet'], not {skip!r}.")
    given = [source] if isinstance(source, str | os.PathLike) else source
    if not isinstance(given, Sequence) or not given:
        raise ParameterError(f"pass a path, a pattern or a list of them, not {source!r}.")
    if store is not None and is_there(given):
        addresses = [_address(url) for url in given]
        return _found(addresses, store, suffixes, skip, unusable, deep=deep, in_tables=in_tables)
    with readable():
        paths = [_path(one, instead) for one in given]
        if not in_tables:  # a folder of a table may hold no file of these suffixes
            refuse_tables(map(FILES.plain_part, paths), FILES)
        return _found(paths, FILES, suffixes, skip, unusable, deep=deep, in_tables=in_tables)


def _found(
    paths: Sequence[AnyPlace],
    places: Places[AnyPlace],
    suffixes: Collection[str] | None,
    skip: Collection[str],
    unusable: dict[str, FileError] | None,
    *,
    deep: bool,
    in_tables: bool,
) -> list[AnyFound]:
    found: list[AnyFound] = []
    known: dict[AnyPlace, AnyPlace] = {}
    for file, below, glimpse in (file for path in paths for file in _listed(path, places, suffixes, deep=deep)):
        if any(fnmatch(str(file), pattern) or fnmatch(file.name, pattern) for pattern in skip):
            continue
        try:
            check_text(file)
            seen = _checked(file, glimpse or places.seen(file))
        except FileError as error:
            if unusable is None:
                raise
            unusable[str(file)] = error
            continue
        other = known.setdefault(places.identity(file), file)
        if other is not file:
            raise FileError(f"{file} is given twice{'' if file == other else f', also as {other}'}.")
        found.append(FoundFile(file, below, seen))
    if not found and not unusable:
        raise FileError(f"{typed('skip')} leaves no file of {', '.join(map(str, paths))}.")
    if not in_tables:
        refuse_tables((file.path.parent for file in found), places)
    return found


def _checked(file: Any, seen: Seen | None) -> Seen:
    """The look at a file that holds something."""
    if seen is None:
        raise FileError(f"{file} is a broken link.")
    if not seen.size:
        raise FileError(f"{file} is empty: nothing was written to it, or writing was interrupted.")
    return seen


def _listed(
    path: AnyPlace, places: Places[AnyPlace], suffixes: Collection[str] | None, *, deep: bool
) -> list[tuple[AnyPlace, AnyPlace, Seen | None]]:
    """The files that a path stands for, each with the folder below which they lie and what the list shows of it."""
    seen = places.seen(path)
    if seen is not None:  # also one whose name looks like a pattern
        return [(path, path.parent, seen)]
    if not places.is_pattern(path):
        files, below = files_in(path, places, suffixes, deep=deep), path
        if files is None:
            raise FileError(f"there is no file {path}.")
        if not files:
            wanted = "" if suffixes is None else f"{', '.join(suffixes)} "
            raise FileError(f"there is no {wanted}file in the folder {path}.")
    else:
        files, below = places.matches(path), places.plain_part(path)
        if not files:
            raise FileError(f"no file matches {path}.")
    return [(file, below, files[file]) for file in sorted(files)]


def files_in(
    folder: AnyPlace, places: Places[AnyPlace], suffixes: Collection[str] | None, *, deep: bool
) -> Mapping[AnyPlace, Seen | None] | None:
    """The files in a folder that are of these suffixes, and not hidden; None if there is no folder."""
    inside = places.inside(folder, deep=deep)
    if inside is None:
        return None
    taken = [file for file in inside if suffixes is None or file.suffix.lower() in suffixes]
    below = len(folder.parts)
    return {file: inside[file] for file in taken if not any(is_hidden(part, deep=deep) for part in file.parts[below:])}


def places_of(source: Any, store: Store) -> Places[Any]:
    """Where a source lies: in an object store, or on this machine."""
    return store if isinstance(source, Address) or is_there(source) else FILES


def to_write(given: Any, store: Store, *, instead: str) -> tuple[Places[Any], Any]:
    """A path to write to, and where it lies; `instead` says what writes to others."""
    if is_of_store(given):
        return store, Address.of(given)
    return FILES, place_of(given, instead=instead)


def _address(url: Any) -> Address:
    if not is_of_store(url):
        raise FileError(f"{url} is not of an object store, and other paths of this call are.")
    return Address.of(url)


def place_of(given: Any, *, instead: str) -> Path:
    """A path to write to, on this machine; `instead` says what writes to others."""
    text = _text_of(given)
    if is_url(text):
        raise _remote(text, instead)
    check_text(Path(text))
    return Path(text)


def _path(given: Any, instead: str) -> Path:
    text = _text_of(given)
    if is_url(text) and ("://" in text or not Path(text).exists()):
        raise _remote(text, instead)
    path = Path(text)
    check_kind(path)
    # Polars takes a leading ~ for the home folder.
    return path.absolute() if text.startswith("~") else path


def _text_of(given: Any) -> str:
    text = os.fspath(given) if isinstance(given, str | os.PathLike) else given
    if not isinstance(text, str):
        raise ParameterError(f"pass the path of a file, not {given!r}.")
    if not text:
        raise ParameterError("pass the path of a file, not an empty text.")
    return text


def _remote(text: str, instead: str) -> FileError:
    if text.lower().startswith("file:"):
        return FileError(f"{text} is a URL: pass the path alone, without file://.")
    slash = " A Path keeps one slash of two: pass the URL as a text." if re.match("[a-z0-9]+:/(?!/)", text) else ""
    return FileError(f"{text} is a remote path that this function does not take. {instead}{slash}")
