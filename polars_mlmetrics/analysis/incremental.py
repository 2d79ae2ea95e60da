"""`update_states`: a folder of states that keeps up with a folder of logs, one state for each file."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import polars as pl

from polars_mlmetrics.analysis.question import Keys
from polars_mlmetrics.analysis.state_files import StateFile, check_alike, store
from polars_mlmetrics.analysis.states import state
from polars_mlmetrics.data.files import DRAFT, Source, files_of
from polars_mlmetrics.data.roles import Roles, checked_roles
from polars_mlmetrics.engine.progress import tracked
from polars_mlmetrics.errors import FileError, MetricError, StateError

LOCK = ".lock"


def update_states(
    source: Source,
    folder: str | os.PathLike[str],
    *metrics: pl.Expr | Sequence[pl.Expr],
    by: Keys | None = None,
    buckets: int = 64,
    progress: bool = True,
    **roles: Unpack[Roles],
) -> pl.DataFrame:
    """Fold the files of a log that have not been folded yet, each into a state of its own in a folder.

    A file is known by its path, and taken for the same while its size, its time of change and its number of rows are.
    It may be killed at any moment, and called again: what is there is whole, and what is not there is made then. No
    sample should have rows in two files: it would count as two.

    Parameters
    ----------
    source
        Parquet files of the log: a path, a folder, a pattern such as "logs/*.parquet", or a list of them.
    folder
        Where the states are. It is made where there is none. `scan_states(folder)` reads them.
    *metrics, by, buckets, **roles
        As in `state`: the same at every call for one folder.
    progress
        Whether it says on stderr how far it is.

    Returns
    -------
    One row a file: its path, its state, its rows, and its `status`. That is "folded", "refolded" (it had changed),
    "unchanged", or "vanished" (there is a state of it, and it is gone; the state is left where it is).

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> log = pl.DataFrame({"sample": [1, 2, 3], "score": [0.9, 0.2, 0.4], "truth": [1, 0, 1]})
    >>> log.write_parquet("monday.parquet")
    >>> mlm.update_states("*.parquet", "states", mlm.accuracy())["status"].to_list()
    ['folded']
    >>> mlm.update_states("*.parquet", "states", mlm.accuracy())["status"].to_list()
    ['unchanged']
    """
    checked_roles(roles, beside=("by", "buckets", "progress"))
    place = Path(folder)
    logs = [_Log.of(path, place) for path in files_of(source)]
    if place.exists() and not place.is_dir():
        raise FileError(f"{place} is a file: the states go into a folder.")
    place.mkdir(parents=True, exist_ok=True)
    with _alone_in(place):
        for draft in place.glob(f".*{DRAFT}"):  # of a run that was killed
            draft.unlink()
        known = {file.path: file for file in map(StateFile.read, sorted(place.glob("*.parquet")))}
        todo = [log for log in logs if not log.is_told_by(known.get(log.state))]
        asked: dict[str, Any] = {"by": by, "buckets": buckets, **roles}
        of_kinds = list({tuple(log.scan().collect_schema().items()): log for log in (todo or logs[:1])}.values())
        _check_alike({log.path: _state_of(log, metrics, asked) for log in of_kinds}, list(known.values()))
        for log in tracked(todo, "file", show=progress):
            _fold(_state_of(log, metrics, asked), log)
    return _report(logs, {log.state for log in todo}, known)


class _Log(NamedTuple):
    """A file of a log, and the state that is made of it."""

    path: Path
    state: Path
    told: dict[str, Any]
    """What tells whether it has changed."""

    @classmethod
    def of(cls, path: Path, folder: Path) -> _Log:
        path = path.resolve()
        seen = path.stat()
        try:
            rows = _scan(path).select(pl.len()).collect().item()
        except (pl.exceptions.PolarsError, OSError) as error:
            raise FileError(f"{path} cannot be read as parquet: {error}") from None
        # Files of one name in two folders have states of two names.
        name = f"{path.stem[:60]}-{hashlib.sha256(os.fsencode(path)).hexdigest()[:12]}.parquet"
        told = {"path": str(path), "size": seen.st_size, "mtime_ns": seen.st_mtime_ns, "rows": rows}
        return cls(path, folder.joinpath(name), told)

    def scan(self) -> pl.LazyFrame:
        """The file, as it is read."""
        return _scan(self.path)

    def is_told_by(self, file: StateFile | None) -> bool:
        """Whether a state was made of this file as it is now."""
        return file is not None and file.told["source"] == self.told


def _scan(path: Path) -> pl.LazyFrame:
    return pl.scan_parquet(path, glob=False, hive_partitioning=False)


def _state_of(log: _Log, metrics: Sequence[Any], asked: Mapping[str, Any]) -> pl.LazyFrame:
    try:
        return state(log.scan(), *metrics, **asked)
    except MetricError as error:
        raise type(error)(f"{log.path}: {error}") from None


def _fold(state: pl.LazyFrame, log: _Log) -> None:
    try:
        store(state, log.state, overwrite=True, source=log.told)
    except pl.exceptions.PolarsError as error:
        raise FileError(f"{log.path} cannot be folded: {error}") from error


def _check_alike(states: Mapping[Path, pl.LazyFrame], known: Sequence[StateFile]) -> None:
    """Refuse, before anything is folded, a folder of states that would not go together."""
    schemas = {file.path: file.schema for file in known}
    schemas |= {path: state.collect_schema() for path, state in states.items()}
    (first, expected), *others = schemas.items()
    for path, schema in others:
        check_alike(path, schema, first, expected)


def _report(logs: Sequence[_Log], folded: set[Path], known: Mapping[Path, StateFile]) -> pl.DataFrame:
    def status(log: _Log) -> str:
        return "unchanged" if log.state not in folded else "refolded" if log.state in known else "folded"

    rows = [(str(log.path), str(log.state), log.told["rows"], status(log)) for log in logs]
    there = {log.state for log in logs}
    others = [(file, file.told["source"]) for path, file in known.items() if path not in there]
    gone = [(file, source) for file, source in others if source is not None and not Path(source["path"]).exists()]
    rows += [(source["path"], str(file.path), source["rows"], "vanished") for file, source in gone]
    schema = {"path": pl.String, "state": pl.String, "rows": pl.Int64, "status": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Keep others out while states are written. The system gives the lock back however this process ends."""
    with folder.joinpath(LOCK).open("a+b") as lock:
        try:
            _lock(lock.fileno())
        except OSError:
            raise StateError(f"another `update_states` is at work in {folder}: wait until it is done.") from None
        yield


def _lock(file: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
