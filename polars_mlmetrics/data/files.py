"""Files: which ones a source stands for, whether they can be read at all, and writing that leaves no half of a file."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from glob import glob, has_magic
from itertools import takewhile
from pathlib import Path
from typing import Any, NoReturn

import polars as pl

from polars_mlmetrics.errors import FileError, ParameterError

HINT = "Steps row by row go into roles, by and filters; or use passes='auto', which takes any lazy frame."

Source = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A file, a folder, a pattern such as "logs/*.parquet", or a list of them."""


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


def is_at_hand(frame: pl.LazyFrame) -> bool:
    """Whether a frame is no more than rows in memory, or a scan of files that are quick to read once more."""
    node = _outermost(frame)
    if type(node).__name__ == "Scan":
        return node.scan_type[0] in ("parquet", "ipc")
    return type(node).__name__ == "DataFrameScan"


def _rows(frames: list[pl.LazyFrame]) -> int:
    return sum(frame.select(pl.len()).collect().item() for frame in frames)


@dataclass(frozen=True)
class Found:
    """A file, and the folder below which it was found: the one given, or the part of a pattern that is a plain path."""

    path: Path
    below: Path


def files_of(source: Source, suffix: str = ".parquet") -> list[Path]:
    """The files that a source stands for, in order. Each must be there, hold something, and be named once.

    A folder stands for the files of this suffix that lie in it, not for those of its folders.
    """
    return [file.path for file in found_files(source, (suffix,))]


def found_files(source: Source, suffixes: Sequence[str] | None, *, deep: bool = False) -> list[Found]:
    """The files that a source stands for, as `files_of` has them, each with the folder below which it was found.

    Of a folder, the files of these suffixes are taken, or all where there are none. With `deep`, folders are looked
    through to the bottom, but for files and folders whose names begin with "." or "_" and for links to folders, and a
    pattern means what `glob` means, with `**` and without what is hidden.
    """
    given = [source] if isinstance(source, str | os.PathLike) else source
    if not isinstance(given, Sequence) or not given:
        raise ParameterError(f"files are given as a path, a pattern or a list of them, not as {source!r}.")
    files = [file for one in given for file in _expanded(_path(one), suffixes, deep=deep)]
    seen: dict[Path, Path] = {}
    for file in (found.path for found in files):
        if not file.exists():
            raise FileError(f"{file} is a link to nothing.")
        if file.stat().st_size == 0:
            raise FileError(f"{file} is empty: nothing was written to it, or its writing was broken off.")
        other = seen.setdefault(file.resolve(), file)
        if other is not file:
            raise FileError(f"{file} is named twice{'' if file == other else f', also as {other}'}.")
    return files


def _path(given: Any) -> Path:
    if not isinstance(given, str | os.PathLike):
        raise ParameterError(f"a file is given by its path, not by {given!r}.")
    if not os.fspath(given):
        raise ParameterError("a file is given by its path, and this one is empty.")
    path = Path(given)
    # Polars takes a leading ~ for the home folder.
    return path.absolute() if str(path).startswith("~") else path


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
    files = sorted(file for file in (_deep_matches if deep else _matches)(path) if _is_open(file))
    if not files:
        raise FileError(f"no file matches {path}.")
    plain = Path(*takewhile(lambda part: not has_magic(part), path.parts))
    return [Found(file, plain) for file in files]


def _deep_inside(folder: Path) -> Iterator[Path]:
    """The files in a folder and in its folders, without those that other programs keep there for themselves."""
    own = (".", "_")
    for place, folders, names in os.walk(folder, onerror=_refuse_folder):
        folders[:] = [name for name in folders if not name.startswith(own)]
        yield from (Path(place, name) for name in names if not name.startswith(own))


def _refuse_folder(error: OSError) -> NoReturn:
    raise FileError(f"the folder {error.filename} cannot be looked through: {error.strerror}.") from None


def _matches(pattern: Path) -> list[Path]:
    start = Path(pattern.anchor)
    try:
        return list(start.glob(str(pattern.relative_to(start))))
    except ValueError:  # a pattern that Python does not know
        return []


def _deep_matches(pattern: Path) -> list[Path]:
    # Path.glob takes what is hidden, and `**` at the end is not the same to it in every Python.
    return [Path(path) for path in glob(str(pattern), recursive=True)]  # noqa: PTH207


def _is_open(file: Path) -> bool:
    """Whether it is no folder, and not hidden."""
    return not file.is_dir() and not file.name.startswith(".")


def check_writable(path: Path, *, overwrite: bool) -> None:
    """Refuse a place that cannot be written to, before anything is worked out for it."""
    if not path.parent.is_dir():
        raise FileError(f"there is no folder {path.parent} to write {path.name} to.")
    if not os.access(path.parent, os.W_OK):
        raise FileError(f"the folder {path.parent} cannot be written to.")
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise FileError(f"{path} is no plain file, and is not written over.")
    if path.exists() and not overwrite:
        raise FileError(f"{path} is there already: overwrite=True replaces it.")


def write_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Write a file so that at any moment there is the old one or the new one under its name, and never half of one."""
    draft = draft_of(path)
    try:
        write(draft)
        with draft.open("rb+") as written:
            os.fsync(written.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    if sys.platform == "win32":  # which opens no folders
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def draft_of(path: Path) -> Path:
    """Where a file is written before it gets its name, which may be as long as a name can be."""
    return path.with_name(f".{hashlib.sha256(os.fsencode(path.name)).hexdigest()[:16]}.{os.getpid()}{DRAFT}")


DRAFT = ".draft"
