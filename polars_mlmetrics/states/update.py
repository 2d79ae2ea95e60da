"""`update_states`: keeps a folder of states up to date with a folder of logs, one state for each file."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal, Unpack

import polars as pl

from polars_mlmetrics.adapters.formats import Format
from polars_mlmetrics.data.frames import Names
from polars_mlmetrics.data.roles import Roles, checked_roles
from polars_mlmetrics.engine.buckets import BUCKETS
from polars_mlmetrics.engine.contents import Contents, check_once
from polars_mlmetrics.engine.progress import tracked
from polars_mlmetrics.errors import (
    ColumnError,
    FileError,
    MetricError,
    ParameterError,
    StateError,
    TableError,
    at_callers_line,
    typed,
)
from polars_mlmetrics.formula.parameters import check_parameter
from polars_mlmetrics.places.credentials import Provider
from polars_mlmetrics.places.finding import Source
from polars_mlmetrics.places.fingerprints import digest_in, name_in
from polars_mlmetrics.places.place import Place
from polars_mlmetrics.places.stores import Store
from polars_mlmetrics.query.keys import Keys
from polars_mlmetrics.query.results import ResultColumns
from polars_mlmetrics.states.alike import check_alike
from polars_mlmetrics.states.folders import Folder, Log, LogReader, Prepare, is_gone
from polars_mlmetrics.states.state import StateOf
from polars_mlmetrics.states.state_files import StateFile, bytes_of_state

REMEDY = "Make the files alike with prepare=, such as prepare=lambda log: log.cast({'score': pl.Float64})."

ANEW = "Pass what the states in the folder were made with, or delete them: then all files are folded anew."

Gone = Literal["keep", "drop", "raise"]

COLUMNS = ResultColumns.of((pl.String, "path", "state"), (pl.Int64, "rows"), (pl.String, "status"))
"""The columns of the table that `update_states` gives, with their types."""


@at_callers_line
def update_states(
    source: Source,
    folder: str | os.PathLike[str],
    *metrics: pl.Expr | Sequence[pl.Expr],
    by: Keys | None = None,
    buckets: int = BUCKETS,
    cluster: Names = None,
    between: str | None = None,
    prepare: Prepare | None = None,
    prepare_version: str | None = None,
    reads: Sequence[str | os.PathLike[str]] = (),
    format: Format | None = None,  # noqa: A002  (as in `scan`)
    types: Mapping[str, pl.DataType | type[pl.DataType]] | None = None,
    skip: Collection[str] = (),
    gone: Gone = "keep",
    progress: bool = True,
    storage_options: Mapping[str, Any] | None = None,
    credential_provider: Provider | None = None,
    **roles: Unpack[Roles],
) -> pl.DataFrame:
    """Fold the files of a log that have not been folded yet, each into a state of its own in a folder.

    A file is identified by its path. It counts as unchanged while its size, its modification time and its number of
    rows are the same; in an object store, while its ETag is. If the call is killed, call it again: finished states are
    whole, and missing ones are made then.

    All states in the folder count when they are read. A file that is there twice, as a copy or under its old name, is
    an error. Rows that are in two different files count twice, and a sample with rows in two files counts as two. The
    result lists every state in the folder.

    Parameters
    ----------
    source
        Files of the log, as `scan` takes them: a path, a folder, a pattern such as "logs/*.parquet", or a list of them.
        Folders such as day=2026-11-20 become columns.
    folder
        The folder of the states. It is created if missing. `scan_states(folder)` reads them. On this machine one call
        at a time may write to it; in an object store, several.
    *metrics, by, buckets, cluster, between, **roles
        As in `state`: the same at every call for one folder.
    prepare
        A function from LazyFrame to LazyFrame that is applied to each file before it is folded, for files whose columns
        or types have changed over time.
    prepare_version
        A text that you change whenever `prepare` does something else, such as "2". The states store it: files that were
        folded with another one are folded again. A function says nothing of itself.
    reads
        Other files that `prepare` reads, such as truths that come later: when one of them changes, all files of the log
        are folded again.
    format, skip
        The format of the files, and files to leave out, as in `scan`.
    types
        The types of columns of text files, such as {"sample": pl.String} for ids like 007; others are guessed.
    gone
        What happens to the state of a file that is gone: "keep" keeps it, and it counts; "drop" deletes it; "raise"
        raises an error before anything is folded.
    progress
        Whether to print the progress to stderr.
    storage_options, credential_provider
        What opens the object stores of the source and of the folder, as in `write_state`.

    Returns
    -------
    One row per file: its path, its state, its rows, and its `status`. The status is "folded", "refolded" (the file, one
    of `reads` or the `prepare_version` had changed), "unchanged", "vanished" (the file is gone, its state is kept),
    "dropped" (the file is gone, its state was deleted), or "not asked for" (the state of another file, or one that
    `write_state` wrote, which has no path).

    Raises
    ------
    FileError
        If a file cannot be read, or is in the log twice.
    StateError
        If the folder holds states of other metrics or roles, or a state of another `prepare_version` whose file is gone
        or not among these.

    See Also
    --------
    scan_states : reads the folder.
    state : one state of one log.

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
    checked_roles(roles)
    _check_options(prepare, prepare_version, gone)
    cloud = Store.read(storage_options, credential_provider)
    cloud.check_used(source, folder)
    place = Folder.of(folder, cloud)
    reader = LogReader(prepare, format, types or {}, skip, reads, prepare_version or "")
    logs = reader.logs(source, cloud, place.path)
    options: dict[str, Any] = {"by": by, "buckets": buckets, "cluster": cluster, "between": between, "roles": roles}
    with place.alone(logs):
        known = place.states()
        parts = [_Part(log, place, known) for log in logs]
        lost = _without_their_files(parts, known, gone, cloud)
        todo = [part for part in parts if part.done is None]
        made = {part.state for part in parts}
        others = [file for path, file in known.items() if path not in made and not (path in lost and gone == "drop")]
        _check_once(parts, others)
        _check_prepared(others, reader.version, lost)
        of_kinds = list({tuple(part.schema().items()): part for part in (todo or parts[:1])}.values())
        kept = [*others, *(part.done for part in parts if part.done is not None)]
        _check_alike({part.log.path: part.state_of(metrics, options) for part in of_kinds}, kept)
        for part in tracked(todo, "file", show=progress):
            place.put(part.log, part.folded(metrics, options))
        for path in lost if gone == "drop" else []:
            place.drop(path)
    return _report(parts, known, lost, gone)


class _Part:
    """A file of a log, and what there is of its state."""

    def __init__(self, log: Log, place: Folder, known: Mapping[Place, StateFile]) -> None:
        self.log, self.state = log, place.state_of(log)
        self.known = known.get(self.state)

    @property
    def done(self) -> StateFile | None:
        """The state of the file as it is now. What it says of the file is not looked up again."""
        return self.known if self.known is not None and self.log.is_in(self.known.metadata["source"]) else None

    @property
    def fingerprint(self) -> str:
        """A digest of the log file, which a renamed copy shares, and after a blank the name of the file."""
        return self.done.sources[0] if self.done is not None and self.done.sources else self.log.fingerprint

    @property
    def rows(self) -> int:
        """How many rows the file has."""
        source: dict[str, Any] = self.log.source if self.done is None else self.done.metadata["source"]
        return int(source["rows"])

    def schema(self) -> pl.Schema:
        """The columns that are folded."""
        try:
            return self.log.rows.collect_schema()
        except pl.exceptions.PolarsError as error:
            _ = self.log.source  # a file that cannot be read says so itself
            raise TableError(f"{self.log.path}: its rows cannot be prepared: {self.log.words_for(error)}") from None

    def state_of(self, metrics: Sequence[Any], options: Mapping[str, Any], *, of_pairs: bool = False) -> pl.LazyFrame:
        """The state that is asked for. Its columns are known without a look at the samples that are pairs."""
        try:
            state = StateOf.read(self.log.rows, metrics, **options, sources=[self.fingerprint])
            return (state.of_pairs(None) if of_pairs else state).table(None)
        except MetricError as error:
            of_file = type(error)(f"{self.log.path}: {error}")
            raise (of_file.with_remedy(REMEDY) if isinstance(error, ColumnError) else of_file) from None

    def folded(self, metrics: Sequence[Any], options: Mapping[str, Any]) -> bytes:
        """The file of that state."""
        log = self.log
        with log.worded("cannot be folded"):
            data = bytes_of_state(self.state_of(metrics, options, of_pairs=True), log.source)
        log.check_current()
        return data


def _check_options(prepare: Any, version: Any, gone: Any) -> None:
    check_parameter("update_states", "gone", gone, Gone)
    if prepare is not None and not callable(prepare):
        raise ParameterError(f"prepare must be a function that takes a LazyFrame, not {prepare!r}.")
    if version is not None and (prepare is None or not isinstance(version, str)):
        raise ParameterError(f"prepare_version is a text beside prepare=, such as '2', not {version!r}.")


def _without_their_files(
    parts: Sequence[_Part], known: Mapping[Place, StateFile], gone: Gone, cloud: Store
) -> dict[Place, StateFile]:
    """The states of files that are gone."""
    others = {path: file for path, file in known.items() if path not in {part.state for part in parts}}
    lost = {path: file for path, file in others.items() if is_gone(file.metadata["source"], cloud)}
    if lost and gone == "raise":
        first = next(iter(lost.values()))
        more = f" (and so are those of {len(lost) - 1} more)" if len(lost) > 1 else ""
        raise FileError(
            f"{first.metadata['source']['path']} is gone, but its state {first.path} is still there{more}. "
            f"{typed('gone', 'drop')} deletes such states; {typed('gone', 'keep')} keeps them."
        )
    return lost


def _check_once(parts: Sequence[_Part], others: Sequence[StateFile]) -> None:
    """Refuse, before anything is folded, a log whose rows are there under another name."""
    named = check_once(((part.fingerprint, part.log.path) for part in parts), FileError)
    for file in others:
        for source in file.sources:
            log_path = named.get(digest_in(source))
            if log_path is not None:
                raise FileError(
                    f"{log_path} holds the rows of {name_in(source)}, whose state is {file.path}: they would "
                    f"count twice. If the log was renamed, {typed('gone', 'drop')} deletes the old state."
                )


def _check_prepared(others: Sequence[StateFile], version: str, lost: Collection[Place]) -> None:
    """Refuse, before anything is folded, states that went through other steps and cannot be made again."""
    old = [file for file in others if file.prepare_version not in (None, version)]
    if old:
        log, more = old[0].metadata["source"].get("path"), f" (and {len(old) - 1} more)" if len(old) > 1 else ""
        why, mended = f"{log} is not one of these files", "name that file too"
        if old[0].path in lost:
            why, mended = f"{log} is gone", f"delete it ({typed('gone', 'drop')})"
        elif log is None:
            why, mended = "`write_state` wrote it", "write it anew"
        raise StateError(
            f"{old[0].path}{more} was made with another {typed('prepare_version')}, and is not made again: {why}. Take "
            f"the change back, {mended}, or move such states to a folder of their own and read both folders."
        )


def _check_alike(states: Mapping[Place, pl.LazyFrame], known: Sequence[StateFile]) -> None:
    """Refuse, before anything is folded, a folder of states that cannot be merged."""
    schemas = {file.path: file.schema for file in known}
    schemas |= {path: state.collect_schema() for path, state in states.items()}
    (first, expected), *others = schemas.items()
    for path, schema in others:
        try:
            check_alike(path, schema, first, expected)
        except StateError as error:
            if _has_same_question(schema, expected):
                raise error.with_remedy(REMEDY) from None
            raise StateError(f"{error} {ANEW}") from None


def _has_same_question(one: pl.Schema, other: pl.Schema) -> bool:
    """Whether two states are of one query, so that only the files can differ."""
    left, right = (asdict(Contents.of(schema).of_any_polars()) for schema in (one, other))
    for buckets in filter(None, (left["buckets"], right["buckets"])):  # the type of the ids says how they are hashed
        del buckets["hash"], buckets["polars"]
    return all(
        left[name] == right[name]
        for name in ("by", "expressions", "metrics", "declared", "roles", "buckets", "between")
    )


def _report(
    parts: Sequence[_Part], known: Mapping[Place, StateFile], lost: Collection[Place], gone: Gone
) -> pl.DataFrame:
    def status(part: _Part) -> str:
        return "unchanged" if part.done is not None else "folded" if part.known is None else "refolded"

    rows = [(str(part.log.path), str(part.state), part.rows, status(part)) for part in parts]
    of_lost = "dropped" if gone == "drop" else "vanished"
    there = {part.state for part in parts}
    for path, file in known.items():
        if path not in there:
            source: dict[str, Any] = {"path": None, "rows": None, **(file.metadata["source"] or {})}
            rows.append((source["path"], str(path), source["rows"], of_lost if path in lost else "not asked for"))
    return pl.DataFrame(rows, schema=COLUMNS, orient="row")
