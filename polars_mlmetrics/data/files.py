"""Paths: which files they mean, here and in object stores, and what is refused before any file is read."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from glob import glob, has_magic
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import Any, Generic, NoReturn

from polars_mlmetrics.data.stores import Address, AnyPlace, Place, Seen, Store, is_of_store, is_there
from polars_mlmetrics.errors import FileError, ParameterError

Source = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A file, a folder, a pattern such as "logs/*.parquet", or a list of them."""


NO_FILES = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
"""Kinds of places that have a name and are no file, with words for each."""


@dataclass(frozen=True)
class FoundFile(Generic[AnyPlace]):
    """A file, and the folder below which it was found: the one given, or the part of a pattern that is a plain path."""

    path: AnyPlace
    below: AnyPlace

    @property
    def within(self) -> tuple[str, ...]:
        """The file below that folder, in parts."""
        return self.path.parts[len(self.below.parts) :]


@dataclass(frozen=True)
class FoundThere(FoundFile[Address]):
    """A file of a store, and what there is to see of it."""

    seen: Seen


AnyFound = FoundFile[Path] | FoundThere


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


def found_files(
    source: Source,
    suffixes: Sequence[str] | None = (".parquet",),
    *,
    instead: str,
    deep: bool = False,
    in_tables: bool = False,
) -> list[FoundFile[Path]]:
    """The files that a source stands for, in order. Each must be there, hold something, and be named once.

    Of a folder, the files of these suffixes are taken, or all where there are none. With `deep`, folders are looked
    through to the bottom, but for files and folders whose names begin with "." or "_" and for links to folders, and a
    pattern means what `glob` means, with `**` and without what is hidden. What is remote is refused, and `instead` says
    what takes it. So are the files of a table of another engine, but with `in_tables`.
    """
    given = [source] if isinstance(source, str | os.PathLike) else source
    if not isinstance(given, Sequence) or not given:
        raise ParameterError(f"pass a path, a pattern or a list of them, not {source!r}.")
    with readable():
        paths = [_path(one, instead) for one in given]
        for path in paths:
            check_kind(path)
        if not in_tables:
            _refuse_tables(map(_plain_part, paths))
        files = [file for path in paths for file in _expanded(path, suffixes, deep=deep)]
        _check_files([file.path for file in files])
        if not in_tables:
            _refuse_tables(file.path.parent for file in files)
    return files


@contextmanager
def readable() -> Iterator[None]:
    """Name the file or folder that the system does not let us read, and why."""
    try:
        yield
    except OSError as error:
        raise FileError(f"{error.filename} cannot be read: {error.strerror or error}.") from None


def _check_files(files: Iterable[Path]) -> None:
    seen: dict[Path, Path] = {}
    for file in files:
        check_text(file)
        check_kind(file)
        if not file.exists():
            raise FileError(f"{file} is a broken link.")
        if file.stat().st_size == 0:
            raise FileError(f"{file} is empty: nothing was written to it, or writing was interrupted.")
        other = seen.setdefault(file.resolve(), file)
        if other is not file:
            raise FileError(f"{file} is given twice{'' if file == other else f', also as {other}'}.")


def check_kind(path: Path) -> None:
    """Refuse what is no file: a pipe gives its bytes once and may never end, nor does a device."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise FileError(f"{path} is a link that leads to itself.") from None
        return  # what is not there is another error
    kinds = [kind for is_of_kind, kind in NO_FILES if is_of_kind(mode)]
    if kinds:
        raise FileError(f"{path} is {kinds[0]}, not a file: write what it gives to a file first.")


def check_text(path: Path) -> None:
    """Refuse a name that Polars cannot open. Python has a byte that is no text as half of a surrogate pair."""
    if re.search(r"[\udc80-\udcff]", str(path)):
        raise FileError(f"{str(path)!r} is not valid UTF-8, and Polars cannot open such a name: rename the file.")


def place_of(given: Any, *, instead: str) -> Path:
    """A path to write to, on this machine; `instead` says what writes to others."""
    text = _text_of(given)
    if is_url(text):
        raise _remote(text, instead)
    check_text(Path(text))
    return Path(text)


def is_url(text: str) -> bool:
    """Whether a text begins as a URL does. A Path keeps one slash of two; one letter before the colon is a drive."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", text) is not None


def _path(given: Any, instead: str) -> Path:
    text = _text_of(given)
    if is_url(text) and ("://" in text or not Path(text).exists()):
        raise _remote(text, instead)
    path = Path(text)
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


def _expanded(path: Path, suffixes: Sequence[str] | None, *, deep: bool) -> list[FoundFile[Path]]:
    if path.is_dir():
        inside = _deep_inside(path) if deep else path.iterdir()
        files = sorted(file for file in inside if (suffixes is None or file.suffix in suffixes) and _is_open(file))
        if not files:
            raise _none_in(path, suffixes)
        return [FoundFile(file, path) for file in files]
    if path.exists():  # also one whose name looks like a pattern
        return [FoundFile(path, path.parent)]
    if not has_magic(str(path)):
        raise FileError(f"there is no file {path}.")
    files = sorted(file for file in (deep_matches if deep else _matches)(path) if _is_open(file))
    if not files:
        raise FileError(f"no file matches {path}.")
    return [FoundFile(file, _plain_part(path)) for file in files]


def _none_in(folder: Place, suffixes: Sequence[str] | None) -> FileError:
    wanted = "" if suffixes is None else f"{', '.join(dict.fromkeys(map(str.lower, suffixes)))} "
    return FileError(f"there is no {wanted}file in the folder {folder}.")


def _plain_part(path: Path) -> Path:
    """The path itself where it is there, else what stands in it before anything that makes it a pattern."""
    return path if path.exists() else Path(*takewhile(lambda part: not has_magic(part), path.parts))


def _deep_inside(folder: Path) -> Iterator[Path]:
    """The files in a folder and in its folders, without those that other programs keep there for themselves."""
    own = (".", "_")
    for place, folders, names in os.walk(folder, onerror=_refuse_folder):
        folders[:] = [name for name in folders if not name.startswith(own)]
        yield from (Path(place, name) for name in names if not name.startswith(own))


def _refuse_folder(error: OSError) -> NoReturn:
    raise FileError(f"the folder {error.filename} cannot be read: {error.strerror}.") from None


def _matches(pattern: Path) -> list[Path]:
    start = Path(pattern.anchor)
    try:
        return list(start.glob(str(pattern.relative_to(start))))
    except ValueError:  # a pattern that Python does not know
        return []


def deep_matches(pattern: Path) -> list[Path]:
    """The files of a pattern as `glob` means it, with `**` and without what is hidden."""
    # Path.glob takes what is hidden, and `**` at the end is not the same to it in every Python.
    return [Path(path) for path in glob(str(pattern), recursive=True)]  # noqa: PTH207


def _is_open(file: Path) -> bool:
    """Whether it is no folder, and not hidden."""
    return not file.is_dir() and not file.name.startswith(".")


# -- files of a store --------------------------------------------------------------------------------------------------


def _files_of_store(
    source: Any, store: Store, suffixes: Sequence[str] | None, *, deep: bool, in_tables: bool
) -> list[FoundThere]:
    found: list[FoundThere] = []
    for url in [source] if isinstance(source, str) else source:
        if not is_of_store(url):
            raise FileError(f"{url} is not of an object store, and other paths of this call are.")
        address = Address.of(url)
        files, below = _expanded_there(address, store, suffixes, deep=deep)
        found += [FoundThere(file, below, files[file]) for file in sorted(files, key=lambda file: file.key)]
    known: set[Address] = set()
    for file in found:
        if not file.seen.size:
            raise FileError(f"{file.path} is empty: nothing was written to it, or writing was interrupted.")
        if file.path in known:
            raise FileError(f"{file.path} is given twice.")
        known.add(file.path)
    if not in_tables:
        _refuse_tables_there(
            {Address(file.bucket, str(folder)) for file in known for folder in file.path.parents}, store
        )
    return found


Files = Mapping[Address, Seen]


def _expanded_there(
    address: Address, store: Store, suffixes: Sequence[str] | None, *, deep: bool
) -> tuple[Files, Address]:
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
    matching = {file: seen for file, seen in files.items() if _is_match(file.key.split("/"), segments)}
    if not matching:
        raise FileError(f"no file matches {pattern}.")
    return matching


def _taken(folder: Address, inside: Files, suffixes: Sequence[str] | None, *, deep: bool) -> Files:
    if not inside:
        raise FileError(f"there is no file {folder}.")
    parts = {file: file.path.relative_to(folder.path).parts for file in inside}
    taken = {file: seen for file, seen in inside.items() if _is_taken(parts[file], suffixes, deep=deep)}
    if not taken:
        raise _none_in(folder, suffixes)
    return taken


def _is_taken(parts: Sequence[str], suffixes: Sequence[str] | None, *, deep: bool) -> bool:
    if deep:
        is_open = not any(part.startswith((".", "_")) for part in parts)
    else:
        is_open = len(parts) == 1 and not parts[0].startswith(".")
    return is_open and (suffixes is None or PurePosixPath(parts[-1]).suffix in suffixes)


def _is_match(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether a key is of a pattern: `*` does not reach over a slash, `**` does, and neither finds what is hidden."""
    if not pattern or not parts:
        return not parts and all(segment == "**" for segment in pattern)
    first, rest = pattern[0], pattern[1:]
    is_open = not parts[0].startswith(".") or first.startswith(".")
    if first == "**":
        return _is_match(parts, rest) or (is_open and _is_match(parts[1:], pattern))
    return is_open and fnmatchcase(parts[0], first) and _is_match(parts[1:], rest)


# -- tables of other engines -------------------------------------------------------------------------------------------


HUDI = (".hoodie", "_hoodie", ".hoodie_partition_metadata")
BY_ARROW = "Read it with a library that supports Hudi, and pass the Arrow table: mlm.scan(table)."

SIGNS = {
    "_delta_log/": ("a Delta", "Read it with pl.scan_delta(url, storage_options=...)."),
    "metadata/": ("an Iceberg", "Read it with pl.scan_iceberg(...)."),
    ".hoodie/": ("a Hudi", BY_ARROW),
}
"""Folders of tables of other engines in a store, and how to read such a table."""


def _refuse_tables(folders: Iterable[Path]) -> None:
    """Refuse a folder that is such a table or lies in one, with the line that reads it.

    Its files hold rows of older versions and deleted rows too. Only the log of the table shows which is which.
    """
    known = {folder.resolve() for folder in folders}
    for folder in sorted(known.union(*(path.parents for path in known))):
        kind, line = "", ""
        with suppress(PermissionError):  # whoever reads the folder gets the error
            kind, line = _table_in(folder)
        if kind:
            raise _is_table(folder, kind, line)


def _table_in(folder: Path) -> tuple[str, str]:
    """Which kind of table a folder is, and how it is read; empty texts where it is none."""
    if folder.joinpath("_delta_log").is_dir():
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


def _refuse_tables_there(folders: set[Address], store: Store) -> None:
    for folder in sorted(folders, key=lambda folder: folder.key):
        table = Address(folder.bucket, "" if folder.key == "." else f"{folder.key}/")
        for sign, (kind, line) in SIGNS.items():
            # Other folders may be called metadata.
            most, ending = (None, ".metadata.json") if sign == "metadata/" else (1, "")
            inside = store.seen_below(Address(table.bucket, table.key + sign), most)
            if any(file.key.endswith(ending) for file in inside):
                raise _is_table(table, kind, line)


def _is_table(folder: Place, kind: str, line: str) -> FileError:
    return FileError(f"{folder} is {kind} table: its files also hold rows that were replaced or deleted. {line}")
