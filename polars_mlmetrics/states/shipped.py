"""Plans without rows: made from a schema here, and run elsewhere on the rows that are there."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from io import BytesIO
from typing import NamedTuple

import polars as pl

from polars_mlmetrics.states.fold import place_of_rows

Ask = Callable[[pl.LazyFrame], pl.LazyFrame]
"""What is asked of the rows of a log."""


class Shipped(NamedTuple):
    """A question as bytes, which `runner` runs on rows."""

    plan: bytes
    place: str
    """The path in the plan that stands for the rows."""
    columns: dict[str, pl.DataType]
    """The columns that are read."""
    empty: bytes
    """The answer of no rows, as an Arrow IPC file."""

    @classmethod
    def of(cls, schema: Mapping[str, pl.DataType], ask: Ask) -> Shipped:
        """Plan a question about rows of this schema."""
        seen: set[str] = set()
        answer, empty = ask(_noting(schema, seen)).collect(), BytesIO()
        answer.write_ipc(empty)
        with tempfile.TemporaryDirectory(prefix="mlm_") as folder:
            place = place_of_rows(folder)
            known = {name: dtype for name, dtype in schema.items() if dtype != pl.Object}
            pl.DataFrame(schema=known).write_ipc(place)
            plan = ask(pl.scan_ipc(place, glob=False)).serialize()
        columns = {name: dtype for name, dtype in schema.items() if name in seen}
        return cls(plan, place, columns, empty.getvalue())


def _noting(schema: Mapping[str, pl.DataType], seen: set[str]) -> pl.LazyFrame:
    """A log without rows that notes which of its columns are read."""

    def rows(
        columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, size: int | None
    ) -> Iterator[pl.DataFrame]:
        seen.update(schema if columns is None else columns)
        seen.update([] if predicate is None else predicate.meta.root_names())
        frame = pl.DataFrame(schema=schema)
        yield frame if columns is None else frame.select(columns)

    return pl.io.plugins.register_io_source(rows, schema=schema)
