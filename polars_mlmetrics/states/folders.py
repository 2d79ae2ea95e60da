"""Files of a log and their states, for `update_states`: on this machine or in an object store."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import polars as pl

from polars_mlmetrics.adapters.formats import SUFFIXES, Format, kind_of
from polars_mlmetrics.adapters.scan import scan_each
from polars_mlmetrics.errors import FileError, MetricError, ParameterError, shown_type
from polars_mlmetrics.places.credentials import worded
from polars_mlmetrics.places.files import check_text, readable
from polars_mlmetrics.places.finding import AnyFound, Source, files_in, found_files, places_of, to_write
from polars_mlmetrics.places.fingerprints import fingerprint_of
from polars_mlmetrics.places.place import Address, MissingError, Place, Places, Seen, TakenError, is_of_store
from polars_mlmetrics.places.stores import Store
from polars_mlmetrics.states.alike import check_alike
from polars_mlmetrics.states.state_files import REMOTE_WRITE, StateFile, refuse_delta

REMOTE_LOG = "Make a state of it: mlm.state(pl.scan_parquet(url), ...)."

Prepare = Callable[[pl.LazyFrame], pl.LazyFrame]


class Log:
    """A file of a log. It has not changed while its size, its version and its number of rows are the same.

    A store gives each version of a file another name, so only what is new is read there. Here a time is looked at.
    """

    def __init__(
        self, found: AnyFound, places: Places[Any], scan: pl.LazyFrame, reader: LogReader, made_by: Mapping[str, Any]
    ) -> None:
        """A file with the rows that are scanned, and the note on what makes a state of them."""
        self.path: Place = places.identity(found.path)
        check_text(self.path)
        self._places, self._seen, self._scan, self._made_by = places, found.seen, scan, made_by
        self._kind = reader.format or kind_of(self.path)
        self._keys = [part.partition("=")[0] for part in found.within[:-1]]
        if isinstance(self.path, Path):  # refused at once if it cannot be read
            _ = self.source
        try:
            self.rows = _prepared(reader.prepare, self._scan)
        except MetricError as error:
            raise type(error)(f"{self.path}: {error}") from None
        """The file, as it is folded."""

    @cached_property
    def source(self) -> dict[str, Any]:
        """The note in a state about the file that it was made of."""
        with self.worded(f"cannot be read as {self._kind}", ValueError):
            rows = self._scan.select(pl.len()).collect().item()
        return {**self._stamp, "rows": rows}

    @property
    def _stamp(self) -> dict[str, Any]:
        return {"path": str(self.path), **self._seen.note(), **self._made_by}

    @cached_property
    def fingerprint(self) -> str:
        """By which it is known under another name."""
        return fingerprint_of(self.path, self._seen.size, self._places, self._keys)

    def is_in(self, source: Mapping[str, Any] | None) -> bool:
        """Whether this is what a state was made of."""
        wanted = self.source if isinstance(self.path, Path) else self._stamp
        return source is not None and source.items() >= wanted.items()

    def check_current(self) -> None:
        """Refuse a state of a file that is another one by now."""
        if self._places.seen(self.path) != self._seen:
            raise FileError(f"{self.path} has changed while it was folded: call update_states again.")

    def words_for(self, error: BaseException) -> str:
        return self._places.words_for(error)

    def worded(self, cannot: str, *errors: type[Exception]) -> AbstractContextManager[None]:
        """Say of the file what cannot be done with it, and why."""
        return worded(f"{self.path} {cannot}", self._places, *errors)


def _is_among(file: AnyFound, states: Any, places: Places[Any]) -> bool:
    """Whether a file lies in the folder of the states, which lies in that of the log."""
    below, path = places.identity(file.below), places.identity(file.path)
    return states in path.parents and states != below and states not in below.parents


@dataclass(frozen=True)
class LogReader:
    """How the files of a log are read."""

    prepare: Prepare | None = None
    format: Format | None = None
    types: Mapping[str, Any] = field(default_factory=dict)
    skip: Collection[str] = ()
    reads: Sequence[str | os.PathLike[str]] = ()
    """Other files that `prepare` reads."""
    version: str = ""
    """The version of `prepare`, where it has one."""

    def logs(self, source: Source, store: Store, states: Any) -> list[Log]:
        """The files of a log, but for those in the folder of the states.

        Those on this machine are opened, and refused if they cannot be read.
        """
        places, suffixes = places_of(source, store), SUFFIXES if self.format is None else None
        found = found_files(source, suffixes, instead=REMOTE_LOG, store=store, deep=True, skip=self.skip)
        if places is places_of(states, store):
            found = [file for file in found if not _is_among(file, places.identity(states), places)]
        for file in found:
            check_text(places.identity(file.path))
        made_by = self._note()
        scans = scan_each(found, places, self.format, self.types)
        pairs = zip(found, scans, strict=True)
        return [Log(file, places, scan, self, made_by) for file, scan in pairs]

    def _note(self) -> dict[str, Any]:
        """The note in a state about the steps that its rows went through, and the other files that these read."""
        with readable():
            seen = [Path(path).stat() for path in self.reads]
        return {
            "prepare_version": self.version,
            "reads": [{"size": each.st_size, "mtime_ns": each.st_mtime_ns} for each in seen],
        }


def is_gone(source: Mapping[str, Any] | None, store: Store) -> bool:
    """Whether there is no longer a file of which a state was made."""
    path = (source or {}).get("path")
    if path is None:
        return False
    return store.seen(Address.of(path)) is None if is_of_store(path) else not Path(path).exists()


def _prepared(prepare: Prepare | None, rows: pl.LazyFrame) -> pl.LazyFrame:
    prepared = rows if prepare is None else prepare(rows)
    if not isinstance(prepared, pl.LazyFrame):
        raise ParameterError(f"prepare must return a LazyFrame, not a {shown_type(prepared)}.")
    return prepared


@dataclass(frozen=True)
class Folder:
    """A folder for states. Each file of a log has one name for its state there.

    On this machine one run at a time writes to it. In a store several may: the store replaces only the version that a
    run has read. So of two runs each state is there once, and none puts an older state in the place of a newer one.
    """

    path: Any
    places: Places[Any]
    _seen: dict[Place, Seen] = field(default_factory=dict)

    @classmethod
    def of(cls, given: str | os.PathLike[str], store: Store) -> Folder:
        """A folder, wherever it is to be."""
        places, path = to_write(given, store, instead=REMOTE_WRITE)
        if isinstance(path, Address) and path.has_magic:
            raise FileError(f"{path} is a pattern: pass a folder for the states.")
        if places.seen(path) is not None:
            raise FileError(f"{path} is a file: pass a folder for the states.")
        refuse_delta(path, store)
        return cls(path, places)

    def state_of(self, log: Log) -> Place:
        """The file of the state of a log. Files of one name in two folders have states of two names."""
        path = log.path.as_posix()
        digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:12]
        place: Place = self.path.joinpath(f"{PurePosixPath(path).stem[:60]}-{digest}.parquet")
        return place

    def alone(self, logs: Iterable[Log]) -> AbstractContextManager[None]:
        """Keep other runs out of the folder while the states of these files are written, where it can be locked."""
        return self.places.alone(self.path, map(self.state_of, logs), verb="update_states")

    def states(self) -> dict[Place, StateFile]:
        """The states that are there."""
        inside = files_in(self.path, self.places, (".parquet",), deep=False) or {}
        states = {place: self._read(place) for place in sorted(inside)}
        return {place: state for place, state in states.items() if state is not None}

    def put(self, log: Log, data: bytes) -> None:
        """Write the state of a log, over the one that was read."""
        path = self.state_of(log)
        while True:
            with suppress(TakenError):
                self.places.replace(path, data, self._seen.get(path))
                return
            other = self._read(path)
            if other is None:
                continue
            # Another run has written it meanwhile. Made of the same file, it is the same state.
            check_alike(path, other.schema, log.path, StateFile(path, data).schema)
            if log.is_in(other.metadata["source"]):
                return
            log.check_current()

    def drop(self, path: Place) -> None:
        """Delete a state, unless another run has written it anew since this run read it."""
        self.places.delete(path, self._seen[path])

    def _read(self, path: Place) -> StateFile | None:
        """A state, and its version; None if another run has deleted it."""
        try:
            data, self._seen[path] = self.places.get(path)
        except MissingError:
            self._seen.pop(path, None)
            return None
        return StateFile(path, data)
