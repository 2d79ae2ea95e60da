"""The files of a log as `update_states` knows them: where they lie, and what shows that they have changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import PanicException, PolarsError

from polars_mlmetrics.data.files import FoundThere, Source, check_text, files_anywhere
from polars_mlmetrics.data.fingerprints import fingerprint_of, fingerprint_there
from polars_mlmetrics.data.stores import Address, Seen, Store, is_of_store
from polars_mlmetrics.errors import FileError, ParameterError, shown_type, words_of

REMOTE_LOG = "Make a state of it: mlm.state(pl.scan_parquet(url), ...)."

Prepare = Callable[[pl.LazyFrame], pl.LazyFrame]


@dataclass(frozen=True)
class LogHere:
    """A file on this machine: while its size, its time and its number of rows are the same, it has not changed."""

    path: Path
    source: dict[str, Any]
    """What a state says of the file that it was made of."""
    rows: pl.LazyFrame
    """The file, as it is folded."""

    @classmethod
    def of(cls, path: Path, prepare: Prepare | None) -> LogHere:
        path = path.resolve()
        check_text(path)
        scan = pl.scan_parquet(path, glob=False, hive_partitioning=False)
        try:
            seen = _seen_here(path)
            rows = scan.select(pl.len()).collect().item()
        except (PolarsError, OSError) as error:
            raise FileError(f"{path} cannot be read as parquet: {words_of(error)}") from None
        return cls(path, {"path": str(path), **seen, "rows": rows}, _prepared(prepare, scan))

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

    def told(self, error: BaseException) -> str:
        return words_of(error)


def _seen_here(path: Path) -> dict[str, int]:
    found = path.stat()
    return {"size": found.st_size, "mtime_ns": found.st_mtime_ns}


@dataclass(frozen=True)
class LogThere:
    """A file of an object store, which gives each version of it another name: so only what is new is read."""

    path: Address
    seen: Seen
    store: Store
    rows: pl.LazyFrame

    @classmethod
    def of(cls, found: FoundThere, store: Store, prepare: Prepare | None) -> LogThere:
        options = store.for_polars()
        scan = pl.scan_parquet(found.path.as_posix(), glob=False, hive_partitioning=False, **options)
        return cls(found.path, found.seen, store, _prepared(prepare, scan))

    @cached_property
    def source(self) -> dict[str, Any]:
        scan = pl.scan_parquet(self.path.as_posix(), glob=False, hive_partitioning=False, **self.store.for_polars())
        try:
            rows = scan.select(pl.len()).collect().item()
        except (PolarsError, PanicException, OSError, ValueError) as error:
            raise FileError(f"{self.path} cannot be read as parquet: {self.told(error)}") from None
        return {**self._stamp, "rows": rows}

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint_there(self.path, self.seen.size, self.store)

    @property
    def _stamp(self) -> dict[str, Any]:
        return {"path": self.path.as_posix(), "size": self.seen.size, "version": self.seen.version}

    def is_in(self, source: Mapping[str, Any] | None) -> bool:
        return source is not None and source.items() >= self._stamp.items()

    def is_current(self) -> bool:
        seen = self.store.seen(self.path)
        return seen is not None and seen.version == self.seen.version

    def told(self, error: BaseException) -> str:
        return self.store.told(error)


Log = LogHere | LogThere


def logs_of(source: Source, store: Store, prepare: Prepare | None) -> list[Log]:
    """The files of a log. Those on this machine are opened, and refused if they cannot be read."""
    return [
        LogThere.of(file, store, prepare) if isinstance(file, FoundThere) else LogHere.of(file.path, prepare)
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
