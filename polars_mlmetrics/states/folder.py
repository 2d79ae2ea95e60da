"""`update_states`: keeps a folder of states up to date with a folder of logs, one state for each file."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, NamedTuple, Unpack, get_args

import polars as pl

from polars_mlmetrics.data.files import Source, check_text, found_files, place_of
from polars_mlmetrics.data.fingerprints import digest_in, fingerprint_of, name_in
from polars_mlmetrics.data.frames import Names
from polars_mlmetrics.data.roles import Roles, checked_roles
from polars_mlmetrics.engine.progress import tracked
from polars_mlmetrics.engine.state import Contents, check_once
from polars_mlmetrics.errors import (
    ColumnError,
    FileError,
    MetricError,
    ParameterError,
    StateError,
    at_callers_line,
    shown_type,
)
from polars_mlmetrics.query.query import Keys
from polars_mlmetrics.states.alike import check_alike
from polars_mlmetrics.states.files import REMOTE_WRITE, StateFile, store
from polars_mlmetrics.states.state import StateOf
from polars_mlmetrics.states.writing import drafts_of, writable

LOCK = ".lock"
REMOTE_LOG = "Make a state of it: mlm.state(pl.scan_parquet(url), ...)."
REMEDY = "Make the files alike with prepare=, such as prepare=lambda log: log.cast({'score': pl.Float64})."

Gone = Literal["keep", "drop", "raise"]
Prepare = Callable[[pl.LazyFrame], pl.LazyFrame]


@at_callers_line
def update_states(
    source: Source,
    folder: str | os.PathLike[str],
    *metrics: pl.Expr | Sequence[pl.Expr],
    by: Keys | None = None,
    buckets: int = 64,
    cluster: Names = None,
    between: str | None = None,
    prepare: Prepare | None = None,
    gone: Gone = "keep",
    progress: bool = True,
    **roles: Unpack[Roles],
) -> pl.DataFrame:
    """Fold the files of a log that have not been folded yet, each into a state of its own in a folder.

    A file is identified by its path. It counts as unchanged while its size, its modification time and its number of
    rows are the same. If the call is killed, call it again: finished states are whole, and missing ones are made then.

    All states in the folder count when they are read. A file that is there twice, as a copy or under its old name, is
    an error. Rows that are in two different files count twice, and a sample with rows in two files counts as two. The
    result lists every state in the folder.

    Parameters
    ----------
    source
        Parquet files of the log: a path, a folder, a pattern such as "logs/*.parquet", or a list of them.
    folder
        The folder of the states. It is created if missing. `scan_states(folder)` reads them.
    *metrics, by, buckets, cluster, between, **roles
        As in `state`: the same at every call for one folder.
    prepare
        A function from LazyFrame to LazyFrame that is applied to each file before it is folded, for files whose columns
        or types have changed over time. The states do not store what it did: if you change it, delete the states of the
        files it affects.
    gone
        What happens to the state of a file that is gone: "keep" keeps it, and it counts; "drop" deletes it; "raise"
        raises an error before anything is folded.
    progress
        Whether to print the progress to stderr.

    Returns
    -------
    One row per file: its path, its state, its rows, and its `status`. The status is "folded", "refolded" (the file had
    changed), "unchanged", "vanished" (the file is gone, its state is kept), "dropped" (the file is gone, its state was
    deleted), or "not asked for" (the state of another file, or one that `write_state` wrote, which has no path).

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
    checked_roles(roles, others=("by", "buckets", "cluster", "between", "prepare", "gone", "progress"))
    _check_options(prepare, gone)
    place = place_of(folder, instead=REMOTE_WRITE)
    logs = [_Log.of(file.path, place, prepare) for file in found_files(source, instead=REMOTE_LOG)]
    if place.exists() and not place.is_dir():
        raise FileError(f"{place} is a file: pass a folder for the states.")
    with writable(place):
        place.mkdir(parents=True, exist_ok=True)
    with _alone_in(place):
        known = {path: StateFile.read(path) for path in sorted(place.glob("*.parquet"))}
        lost = _without_their_files(logs, known, gone)
        _clear(log.state for log in logs)
        todo = [log for log in logs if not log.is_in(known.get(log.state))]
        _check_once(logs, [file for path, file in known.items() if not (path in lost and gone == "drop")])
        asked: dict[str, Any] = {
            "by": by,
            "buckets": buckets,
            "cluster": cluster,
            "between": between,
            "roles": roles,
        }
        of_kinds = list({tuple(log.schema().items()): log for log in (todo or logs[:1])}.values())
        _check_alike({log.path: _state_of(log, metrics, asked) for log in of_kinds}, list(known.values()))
        for log in tracked(todo, "file", show=progress):
            _fold(_state_of(log, metrics, asked), log)
        for path in lost if gone == "drop" else []:
            with writable(path):
                path.unlink()
    return _report(logs, {log.state for log in todo}, known, lost, gone)


def _check_options(prepare: Any, gone: Any) -> None:
    if gone not in get_args(Gone):
        raise ParameterError(f"gone is 'keep', 'drop' or 'raise', not {gone!r}.")
    if prepare is not None and not callable(prepare):
        raise ParameterError(f"prepare must be a function that takes a LazyFrame, not {prepare!r}.")


def _without_their_files(logs: Sequence[_Log], known: Mapping[Path, StateFile], gone: Gone) -> dict[Path, StateFile]:
    """The states of files that are gone."""
    there = {log.state for log in logs}
    lost = {path: file for path, file in known.items() if path not in there and _is_gone(file)}
    if lost and gone == "raise":
        first = next(iter(lost.values()))
        more = f" (and so are those of {len(lost) - 1} more)" if len(lost) > 1 else ""
        raise FileError(
            f"{first.metadata['source']['path']} is gone, but its state {first.path} is still there{more}. gone='drop' "
            "deletes such states; gone='keep' keeps them."
        )
    return lost


def _check_once(logs: Sequence[_Log], kept: Sequence[StateFile]) -> None:
    """Refuse, before anything is folded, a log whose rows are there under another name."""
    named = check_once(((log.fingerprint, log.path) for log in logs), FileError)
    made = {log.state for log in logs}
    for file in (file for file in kept if file.path not in made):
        for source in file.sources:
            log_path = named.get(digest_in(source))
            if log_path is not None:
                raise FileError(
                    f"{log_path} holds the rows of {name_in(source)}, whose state is {file.path}: they would "
                    "count twice. If the log was renamed, gone='drop' deletes the old state."
                )


def _clear(states: Iterable[Path]) -> None:
    """Take away what runs have left that were killed: nobody else writes these states while the folder is locked."""
    for draft in (draft for path in states for draft in drafts_of(path)):
        with writable(draft):
            draft.unlink()


def _is_gone(file: StateFile) -> bool:
    source = file.metadata["source"]
    return source is not None and not Path(source["path"]).exists()


class _Log(NamedTuple):
    """A file of a log, and the state that is made of it."""

    path: Path
    state: Path
    source: dict[str, Any]
    """What shows whether it has changed."""
    fingerprint: str
    """By which it is known under another name."""
    rows: pl.LazyFrame
    """The file, as it is folded."""

    @classmethod
    def of(cls, path: Path, folder: Path, prepare: Prepare | None) -> _Log:
        path = path.resolve()
        check_text(path)
        scan = pl.scan_parquet(path, glob=False, hive_partitioning=False)
        try:
            seen = path.stat()
            rows = scan.select(pl.len()).collect().item()
        except (pl.exceptions.PolarsError, OSError) as error:
            raise FileError(f"{path} cannot be read as parquet: {error}") from None
        # Files of one name in two folders have states of two names.
        name = f"{path.stem[:60]}-{hashlib.sha256(os.fsencode(path)).hexdigest()[:12]}.parquet"
        source = {"path": str(path), "size": seen.st_size, "mtime_ns": seen.st_mtime_ns, "rows": rows}
        if prepare is not None:
            scan = _prepared(prepare, scan)
        return cls(path, folder.joinpath(name), source, fingerprint_of(path), scan)

    def schema(self) -> pl.Schema:
        """The columns that are folded."""
        try:
            return self.rows.collect_schema()
        except pl.exceptions.PolarsError as error:
            raise FileError(f"{self.path}: prepare= failed on this file: {error}") from error

    def is_in(self, file: StateFile | None) -> bool:
        """Whether a state was made of this file as it is now."""
        return file is not None and file.metadata["source"] == self.source


def _prepared(prepare: Prepare, rows: pl.LazyFrame) -> pl.LazyFrame:
    prepared = prepare(rows)
    if not isinstance(prepared, pl.LazyFrame):
        raise ParameterError(f"prepare must return a LazyFrame, not a {shown_type(prepared)}.")
    return prepared


def _state_of(log: _Log, metrics: Sequence[Any], asked: Mapping[str, Any]) -> pl.LazyFrame:
    try:
        return StateOf.read(log.rows, metrics, **asked, sources=[log.fingerprint]).table(None)
    except MetricError as error:
        remedy = f" {REMEDY}" if isinstance(error, ColumnError) else ""
        raise type(error)(f"{log.path}: {error}{remedy}") from None


def _fold(state: pl.LazyFrame, log: _Log) -> None:
    try:
        store(state, log.state, overwrite=True, source=log.source)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise FileError(f"{log.path} cannot be folded: {error}") from error


def _check_alike(states: Mapping[Path, pl.LazyFrame], known: Sequence[StateFile]) -> None:
    """Refuse, before anything is folded, a folder of states that cannot be merged."""
    schemas = {file.path: file.schema for file in known}
    schemas |= {path: state.collect_schema() for path, state in states.items()}
    (first, expected), *others = schemas.items()
    for path, schema in others:
        try:
            check_alike(path, schema, first, expected)
        except StateError as error:
            raise StateError(f"{error} {REMEDY}" if _is_asked_the_same(schema, expected) else str(error)) from None


def _is_asked_the_same(one: pl.Schema, other: pl.Schema) -> bool:
    """Whether two states are of one query, so that only the files can differ."""
    left, right = (asdict(Contents.of(schema).of_any_polars()) for schema in (one, other))
    return all(
        left[name] == right[name]
        for name in ("by", "expressions", "metrics", "declared", "roles", "buckets", "between")
    )


def _report(
    logs: Sequence[_Log], folded: set[Path], known: Mapping[Path, StateFile], lost: Collection[Path], gone: Gone
) -> pl.DataFrame:
    def status(log: _Log) -> str:
        return "unchanged" if log.state not in folded else "refolded" if log.state in known else "folded"

    rows = [(str(log.path), str(log.state), log.source["rows"], status(log)) for log in logs]
    of_lost = "dropped" if gone == "drop" else "vanished"
    there = {log.state for log in logs}
    for path, file in known.items():
        if path not in there:
            source = file.metadata["source"] or {"path": None, "rows": None}
            rows.append((source["path"], str(path), source["rows"], of_lost if path in lost else "not asked for"))
    schema = {"path": pl.String, "state": pl.String, "rows": pl.Int64, "status": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Lock the folder while states are written. The system releases the lock however this process ends."""
    with ExitStack() as opened:
        with writable(folder.joinpath(LOCK)):
            lock = opened.enter_context(folder.joinpath(LOCK).open("a+b"))
        try:
            _lock(lock.fileno())
        except OSError:
            raise StateError(f"another `update_states` is running in {folder}: wait until it is done.") from None
        yield


def _lock(file: int) -> None:
    if sys.platform == "win32":
        import msvcrt

        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
