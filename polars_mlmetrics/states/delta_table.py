"""States in a Delta table: those of each file of a log are rows that name it, and one transaction writes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from polars_mlmetrics.adapters.delta import delta_table, scan_delta
from polars_mlmetrics.data.stores import Store
from polars_mlmetrics.engine.state import SOURCE, fits
from polars_mlmetrics.errors import FileError, NameCollisionError, StateError, words_of
from polars_mlmetrics.states.alike import check_alike
from polars_mlmetrics.states.files import SHAPE, Kept, RowsOf, StateFile
from polars_mlmetrics.states.logs import Log, check_current
from polars_mlmetrics.states.plain import as_state, plain

COLUMNS = {"path": pl.String, "size": pl.Int64, "mtime_ns": pl.Int64, "version": pl.String, "rows": pl.Int64}
"""What a state says of the file that it was made of: in columns of these names after `log_`."""

LOG_COLUMNS = {f"log_{name}": dtype for name, dtype in COLUMNS.items()}

TRIES = 100
"""How often a transaction is tried. One is in vain only where another run has written meanwhile."""


@dataclass
class DeltaTableHere:
    """A Delta table on this machine, which several runs may write to.

    It has no lock. Before a state is written, what the newest version of the table has of its file is read, and the
    transaction holds for that version alone. If another run is faster, both are done again.
    """

    path: Path
    _seen: dict[Kept, StateFile] = field(default_factory=dict)

    def state_of(self, log: Log) -> RowsOf:
        return RowsOf(self.path, str(log.path))

    @contextmanager
    def alone(self, logs: Iterable[Log]) -> Iterator[None]:
        yield

    def states(self) -> Mapping[Kept, StateFile]:
        self._seen = _states_in(self.path, delta_table(self.path), pl.lit(True))
        return self._seen

    def put(self, log: Log, data: bytes) -> None:
        """Write the state of a log, over an older one."""
        place = self.state_of(log)
        state = StateFile.of(place, data)
        rows = _rows_of(state, data)
        for other in self._tried(place, rows):
            if other is not None:
                check_alike(place, other.schema, log.path, state.schema)
                if log.is_in(other.metadata["source"]):  # another run has made it of the same file
                    return
            check_current(log)

    def drop(self, place: Kept) -> None:
        """Delete a state, but none that was made since, of a file that has come back."""
        assert isinstance(place, RowsOf)
        for other in self._tried(place, None):
            if other is None or other.metadata["source"] != self._seen[place].metadata["source"]:
                return

    def _tried(self, place: RowsOf, rows: pl.DataFrame | None) -> Iterator[StateFile | None]:
        """Put rows in the place of a state, or none. Before each try: the state that is there."""
        from deltalake.exceptions import CommitFailedError, DeltaError

        for _ in range(TRIES):
            table = delta_table(self.path)
            there = _states_in(self.path, table, pl.col("log_path") == place.log).get(place)
            yield there
            try:
                _write(table, rows, None if there is None else place)
            except CommitFailedError:
                continue
            except (DeltaError, OSError) as error:
                raise FileError(f"the Delta table {self.path} cannot be written: {words_of(error)}") from None
            return
        raise StateError(
            f"{self.path}: another run wrote to this table first, {TRIES} times in a row. Call update_states again "
            "when fewer runs write to it: what is there is whole."
        )


def _write(table: Any, rows: pl.DataFrame | None, over: RowsOf | None) -> None:
    """One transaction for the version of the table that was read: rows in the place of others, where there are any."""
    from deltalake import CommitProperties, write_deltalake

    # Delta would try again where it sees no conflict, at a version that nobody has looked at.
    once = CommitProperties(max_commit_retries=0)
    if rows is None:
        table.delete(_sql(over), commit_properties=once)
        return
    how: Any = {"mode": "append"} if over is None else {"mode": "overwrite", "predicate": _sql(over)}
    write_deltalake(table, rows, schema_mode="merge", commit_properties=once, **how)


def _states_in(path: Path, table: Any, which: pl.Expr) -> dict[Kept, StateFile]:
    """The states in a version of a table, of some of its rows."""
    scan = scan_delta(path, table.version(), Store())
    names = scan.collect_schema().names()
    if "state" not in names:
        raise StateError(
            f"{path} is a Delta table, but not of states: it lacks the column 'state'. To make an empty one: "
            "pl.DataFrame(schema={'state': pl.String}).write_delta(path)."
        )
    missing = [pl.lit(None, dtype).alias(name) for name, dtype in LOG_COLUMNS.items() if name not in names]
    rows = scan.with_columns(missing).filter(which).sort("log_path").collect()
    parts = rows.partition_by("log_path", as_dict=True, maintain_order=True)
    return {(place := RowsOf(path, log)): _state_in(place, part) for (log,), part in parts.items()}


def _rows_of(state: StateFile, data: bytes) -> pl.DataFrame:
    """The rows of a state, as the table has them."""
    for name in LOG_COLUMNS:
        if name in state.schema:
            raise NameCollisionError(f"{name!r} is a column of the Delta table itself: use .alias(...) on the key.")
    source = state.metadata["source"]
    said = [pl.lit(source.get(name), dtype).alias(f"log_{name}") for name, dtype in COLUMNS.items()]
    return plain(pl.read_parquet(data)).with_columns(said)


def _state_in(place: RowsOf, rows: pl.DataFrame) -> StateFile:
    """The state of a file, if its rows are sound."""
    try:
        state = as_state(rows)
    except StateError as error:
        raise StateError(f"{place}: {error}") from None
    said = rows.select(*LOG_COLUMNS).unique().rename(lambda name: name.removeprefix("log_")).to_dicts()
    source = None if place.log is None else {name: value for name, value in said[0].items() if value is not None}
    if (place.log is not None and len(said) > 1) or not fits(source, SHAPE["source"]):
        raise StateError(f"{place}: `update_states` did not write these rows, or they are there twice.")
    sources = state[SOURCE].drop_nulls().to_list()
    return StateFile(place, "", {"source": source}, state.schema, sources)


def _sql(place: RowsOf | None) -> str:
    """What is true of the rows of a state and false of all others, those of no file too."""
    assert place is not None
    assert place.log is not None
    text = place.log.replace("'", "''")
    return f"(log_path IS NOT DISTINCT FROM '{text}')"
