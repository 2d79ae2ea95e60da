"""Files of a log and their states, for `update_states`: on this machine or in an object store."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import polars as pl
from polars.exceptions import PanicException, PolarsError

from polars_mlmetrics.data.files import FoundThere, Source, check_text, files_anywhere, place_of
from polars_mlmetrics.data.fingerprints import fingerprint_of, fingerprint_there
from polars_mlmetrics.data.stores import Address, MissingError, Place, Seen, Store, TakenError, is_of_store
from polars_mlmetrics.errors import FileError, ParameterError, StateError, shown_type, words_of
from polars_mlmetrics.states.alike import check_alike
from polars_mlmetrics.states.state_files import REMOTE_WRITE, StateFile, bytes_of, refuse_delta
from polars_mlmetrics.states.writing import check_writable, drafts_of, lock_file, writable, write_whole

LOCK = ".lock"
REMOTE_LOG = "Make a state of it: mlm.state(pl.scan_parquet(url), ...)."

Prepare = Callable[[pl.LazyFrame], pl.LazyFrame]


# -- the files of a log ------------------------------------------------------------------------------------------------


class LogHere:
    """A file on this machine: while its size, its time and its number of rows are the same, it has not changed."""

    def __init__(self, path: Path, prepare: Prepare | None) -> None:
        self.path = path.resolve()
        check_text(self.path)
        scan = pl.scan_parquet(self.path, glob=False, hive_partitioning=False)
        try:
            seen = _seen_here(self.path)
            rows = scan.select(pl.len()).collect().item()
        except (PolarsError, OSError) as error:
            raise FileError(f"{self.path} cannot be read as parquet: {words_of(error)}") from None
        self.source: dict[str, Any] = {"path": str(self.path), **seen, "rows": rows}
        """The note in a state about the file that it was made of."""
        self.rows = _prepared(prepare, scan)
        """The file, as it is folded."""

    @property
    def fingerprint(self) -> str:
        """By which it is known under another name."""
        return fingerprint_of(self.path)

    def is_in(self, source: Mapping[str, Any] | None) -> bool:
        """Whether this is what a state was made of."""
        return source == self.source

    def is_current(self) -> bool:
        """Whether the file is still the one that was looked at first."""
        try:
            return self.source.items() >= _seen_here(self.path).items()
        except OSError:
            return False

    def words_for(self, error: BaseException) -> str:
        return words_of(error)


def _seen_here(path: Path) -> dict[str, int]:
    found = path.stat()
    return {"size": found.st_size, "mtime_ns": found.st_mtime_ns}


class LogThere:
    """A file of an object store, which gives each version of it another name: so only what is new is read."""

    def __init__(self, found: FoundThere, store: Store, prepare: Prepare | None) -> None:
        self.path, self.seen, self.store = found.path, found.seen, store
        options = store.for_polars()
        self._scan = pl.scan_parquet(self.path.as_posix(), glob=False, hive_partitioning=False, **options)
        self.rows = _prepared(prepare, self._scan)
        self._stamp = {"path": self.path.as_posix(), "size": self.seen.size, "version": self.seen.version}

    @cached_property
    def source(self) -> dict[str, Any]:
        try:
            rows = self._scan.select(pl.len()).collect().item()
        except (PolarsError, PanicException, OSError, ValueError) as error:
            raise FileError(f"{self.path} cannot be read as parquet: {self.words_for(error)}") from None
        return {**self._stamp, "rows": rows}

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint_there(self.path, self.seen.size, self.store)

    def is_in(self, source: Mapping[str, Any] | None) -> bool:
        return source is not None and source.items() >= self._stamp.items()

    def is_current(self) -> bool:
        seen = self.store.seen(self.path)
        return seen is not None and seen.version == self.seen.version

    def words_for(self, error: BaseException) -> str:
        return self.store.words_for(error)


Log = LogHere | LogThere


def logs_of(source: Source, store: Store, prepare: Prepare | None) -> list[Log]:
    """The files of a log. Those on this machine are opened, and refused if they cannot be read."""
    return [
        LogThere(file, store, prepare) if isinstance(file, FoundThere) else LogHere(file.path, prepare)
        for file in files_anywhere(source, store, instead=REMOTE_LOG)
    ]


def check_current(log: Log) -> None:
    """Refuse a state of a file that is another one by now."""
    if not log.is_current():
        raise FileError(f"{log.path} has changed while it was folded: call update_states again.")


def is_gone(source: Mapping[str, Any] | None, store: Store) -> bool:
    """Whether there is no longer a file of which a state was made."""
    if source is None:
        return False
    path = source["path"]
    return store.seen(Address.of(path)) is None if is_of_store(path) else not Path(path).exists()


def _prepared(prepare: Prepare | None, rows: pl.LazyFrame) -> pl.LazyFrame:
    prepared = rows if prepare is None else prepare(rows)
    if not isinstance(prepared, pl.LazyFrame):
        raise ParameterError(f"prepare must return a LazyFrame, not a {shown_type(prepared)}.")
    return prepared


# -- their states ------------------------------------------------------------------------------------------------------


def folder_of(given: str | os.PathLike[str], store: Store) -> Folder:
    """A folder for states, wherever it is to be."""
    if is_of_store(given):
        address = Address.of(str(given))
        if address.has_magic:
            raise FileError(f"{address} is a pattern: pass a folder for the states.")
        is_file = address.key and not address.key.endswith("/") and store.seen(address) is not None
        folder: Folder = FolderThere(address, store)
    else:
        path = place_of(given, instead=REMOTE_WRITE)
        is_file = path.exists() and not path.is_dir()
        folder = FolderHere(path)
    if is_file:
        raise FileError(f"{folder.path} is a file: pass a folder for the states.")
    refuse_delta(os.fspath(given), store)
    return folder


def _name_of(log: Log) -> str:
    """The name of the state of a file. Files of one name in two folders have states of two names."""
    path = log.path.as_posix()
    return f"{PurePosixPath(path).stem[:60]}-{hashlib.sha256(os.fsencode(path)).hexdigest()[:12]}.parquet"


@dataclass(frozen=True)
class FolderHere:
    """A folder on this machine, which one run at a time writes to."""

    path: Path

    def state_of(self, log: Log) -> Path:
        """The file of the state of a log."""
        return self.path.joinpath(_name_of(log))

    @contextmanager
    def alone(self, logs: Iterable[Log]) -> Iterator[None]:
        """Lock the folder while states are written. The system releases the lock however this process ends."""
        with writable(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        with ExitStack() as opened:
            with writable(self.path.joinpath(LOCK)):
                lock = opened.enter_context(self.path.joinpath(LOCK).open("a+b"))
            try:
                lock_file(lock.fileno())
            except OSError:
                raise StateError(f"another `update_states` is running in {self.path}: wait until it is done.") from None
            # What runs have left that were killed: nobody else writes these states while the folder is locked.
            for draft in (draft for log in logs for draft in drafts_of(self.state_of(log))):
                self.drop(draft)
            yield

    def states(self) -> Mapping[Place, StateFile]:
        """The states that are there."""
        return {path: StateFile(path, bytes_of(path)) for path in sorted(self.path.glob("*.parquet"))}

    def put(self, log: Log, data: bytes) -> None:
        """Write the state of a log, over an older one."""
        path = self.state_of(log)
        check_writable(path, overwrite=True)
        write_whole(path, lambda draft: draft.write_bytes(data), overwrite=True)

    def drop(self, path: Place) -> None:
        """Delete a state."""
        assert isinstance(path, Path)
        with writable(path):
            path.unlink()


@dataclass(frozen=True)
class FolderThere:
    """A folder of an object store, which several runs may write to.

    It has no lock. A file of a log has one name for its state, and the store replaces only the version that this run
    has read. So of two runs each state is there once, and none puts an older state in the place of a newer one.
    """

    path: Address
    store: Store
    _seen: dict[Address, Seen] = field(default_factory=dict)

    def state_of(self, log: Log) -> Address:
        return self.path.joinpath(_name_of(log))

    @contextmanager
    def alone(self, logs: Iterable[Log]) -> Iterator[None]:
        yield

    def states(self) -> Mapping[Place, StateFile]:
        below = sorted(self.store.seen_below(self.path), key=lambda address: address.key)
        inside = [file for file in below if file == self.path.joinpath(file.name) and file.suffix == ".parquet"]
        states = {file: self._read(file) for file in inside}
        return {file: state for file, state in states.items() if state is not None}

    def put(self, log: Log, data: bytes) -> None:
        path = self.state_of(log)
        while True:
            with suppress(TakenError):
                self.store.put(path, data, over=self._seen.get(path))
                return
            other = self._read(path)
            if other is None:
                continue
            # Another run has written it meanwhile. Made of the same file, it is the same state.
            check_alike(path, other.schema, log.path, StateFile(path, data).schema)
            if log.is_in(other.metadata["source"]):
                return
            check_current(log)

    def drop(self, path: Place) -> None:
        """Delete a state, unless another run has written it anew since this run read it."""
        assert isinstance(path, Address)
        now = self.store.seen(path)
        # The client has no delete of a version, so this is as close to it as can be.
        if now is not None and now.version == self._seen[path].version:
            self.store.delete(path)

    def _read(self, address: Address) -> StateFile | None:
        """A state, and its version; None if another run has deleted it."""
        try:
            data, self._seen[address] = self.store.get(address)
        except MissingError:
            self._seen.pop(address, None)
            return None
        return StateFile(address, data)


Folder = FolderHere | FolderThere
