"""A fold: a state that was planned without rows, as bytes that another process runs on the rows it has."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from polars_mlmetrics.errors import ColumnError, StateError, shown_type, unknown

LENGTH = 1024
"""How long the path of the rows is in a plan. A process puts the path of its own rows there, of the same length."""

ROWS = "rows.arrow"


@dataclass(frozen=True)
class Fold:
    """Folds a frame into the bytes of its state, and joins such bytes to a state. `partial` makes it.

    It can be pickled. A process that runs it needs the version of Polars it was made with, and no more than that if it
    is pickled by value, as `cloudpickle.register_pickle_by_value(polars_mlmetrics)` asks for.
    """

    plan: bytes = field(repr=False)
    place: str = field(repr=False)
    """The path in the plan that stands for the rows."""
    columns: Mapping[str, pl.DataType]
    """The columns that a frame must have."""
    whole: tuple[str, ...]
    """The columns of the samples that must be whole in a frame, where there are such: no two frames may share one."""
    empty: bytes = field(repr=False)
    """The state of no rows."""
    polars: str = field(default=pl.__version__, repr=False)

    def __call__(self, frame: pl.DataFrame | pl.LazyFrame) -> bytes:
        """The state of a frame, as an Arrow IPC file."""
        if not isinstance(frame, pl.DataFrame | pl.LazyFrame):
            raise StateError(f"a fold takes a DataFrame or a LazyFrame, not a {shown_type(frame)}.")
        if pl.__version__ != self.polars:
            raise StateError(
                f"this fold was made with polars {self.polars}, and here is polars {pl.__version__}: a plan runs in "
                "the version that it was made with."
            )
        schema = frame.collect_schema()
        for name, dtype in self.columns.items():
            if name not in schema:
                raise ColumnError(unknown("column", name, schema, of="in the frame"))
            if schema[name] != dtype:
                raise ColumnError(f"column {name!r} is {schema[name]}, and this fold takes {dtype}: cast it first.")
        with tempfile.TemporaryDirectory(prefix="mlm_") as folder:
            # From a file the plan streams: of a LazyFrame no more is in memory than the metrics need.
            frame.lazy().select(*self.columns).sink_ipc(Path(folder, ROWS))
            (state,) = runner([(self.plan, self.place)])(folder)
        return state

    def join(self, states: Iterable[bytes]) -> pl.DataFrame:
        """The state of all rows, from the bytes of the frames."""
        from polars_mlmetrics.states.state import join_states

        return join_states(states, self.empty)


def runner(plans: list[tuple[bytes, str]]) -> Callable[[str], list[bytes]]:
    """A program that runs plans on the rows in a folder, one after the other.

    It is of this function alone, so that it is pickled as code: where it runs this package may be missing.
    """
    length, rows = LENGTH, ROWS

    def run(folder: str) -> list[bytes]:
        from io import BytesIO

        import polars as pl

        path = (folder + "/" * (length - len(folder.encode()) - len(rows)) + rows).encode()
        states = []
        for plan, place in plans:
            state = pl.LazyFrame.deserialize(BytesIO(plan.replace(place.encode(), path))).collect()
            cell = BytesIO()
            state.write_ipc(cell, compression="zstd")
            states.append(cell.getvalue())
        return states

    return run


def place_of_rows(folder: str) -> str:
    """The path of the rows in a folder, of the length that a plan has for it."""
    return folder + "/" * (LENGTH - len(os.fsencode(folder)) - len(ROWS)) + ROWS
