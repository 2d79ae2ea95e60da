"""Files: which ones a source stands for, whether they can be read at all, and writing that leaves no half of a file."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Sequence
from glob import has_magic
from pathlib import Path
from typing import Any

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


def _rows(frames: list[pl.LazyFrame]) -> int:
    return sum(frame.select(pl.len()).collect().item() for frame in frames)


def files_of(source: Source, suffix: str = ".parquet") -> list[Path]:
    """The files that a source stands for, in order. Each must be there, hold something, and be named once."""
    given = [source] if isinstance(source, str | os.PathLike) else source
    if not isinstance(given, Sequence) or not given:
        raise ParameterError(f"files are given as a path, a pattern or a list of them, not as {source!r}.")
    files = [file for one in given for file in _expanded(_path(one), suffix)]
    seen: dict[Path, Path] = {}
    for file in files:
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
    return Path(given)


def _expanded(path: Path, suffix: str) -> list[Path]:
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix == suffix and _is_open(file))
        if not files:
            raise FileError(f"there is no {suffix} file in the folder {path}.")
        return files
    if path.exists():  # also one whose name looks like a pattern
        return [path]
    if not has_magic(str(path)):
        raise FileError(f"there is no file {path}.")
    start = Path(path.anchor)
    try:
        files = sorted(file for file in start.glob(str(path.relative_to(start))) if _is_open(file))
    except ValueError:  # a pattern that Python does not know
        files = []
    if not files:
        raise FileError(f"no file matches {path}.")
    return files


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
