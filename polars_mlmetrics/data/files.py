"""Paths: which files they mean, and what is refused before any file is read."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from glob import glob, has_magic
from itertools import takewhile
from pathlib import Path
from typing import Any, NoReturn

from polars_mlmetrics.data.table_folders import refuse_tables
from polars_mlmetrics.errors import FileError, ParameterError

Source = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A file, a folder, a pattern such as "logs/*.parquet", or a list of them."""


NO_FILES = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
"""What has a name as files have, and is none."""


@dataclass(frozen=True)
class Found:
    """A file, and the folder below which it was found: the one given, or the part of a pattern that is a plain path."""

    path: Path
    below: Path

    @property
    def within(self) -> tuple[str, ...]:
        """The file below that folder, in parts."""
        return self.path.relative_to(self.below).parts


def found_files(
    source: Source,
    suffixes: Sequence[str] | None = (".parquet",),
    *,
    instead: str,
    deep: bool = False,
    in_tables: bool = False,
) -> list[Found]:
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
            refuse_tables(map(_plain_part, paths))
        files = [file for path in paths for file in _expanded(path, suffixes, deep=deep)]
        _check_files([file.path for file in files])
        if not in_tables:
            refuse_tables(file.path.parent for file in files)
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


def _expanded(path: Path, suffixes: Sequence[str] | None, *, deep: bool) -> list[Found]:
    if path.is_dir():
        inside = _deep_inside(path) if deep else path.iterdir()
        files = sorted(file for file in inside if (suffixes is None or file.suffix in suffixes) and _is_open(file))
        if not files:
            wanted = "" if suffixes is None else f"{', '.join(dict.fromkeys(map(str.lower, suffixes)))} "
            raise FileError(f"there is no {wanted}file in the folder {path}.")
        return [Found(file, path) for file in files]
    if path.exists():  # also one whose name looks like a pattern
        return [Found(path, path.parent)]
    if not has_magic(str(path)):
        raise FileError(f"there is no file {path}.")
    files = sorted(file for file in (deep_matches if deep else _matches)(path) if _is_open(file))
    if not files:
        raise FileError(f"no file matches {path}.")
    return [Found(file, _plain_part(path)) for file in files]


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
