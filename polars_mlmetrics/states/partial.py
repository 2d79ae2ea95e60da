"""`partial`: a state that is planned from a schema, to be folded by other processes and joined here."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import BytesIO
from typing import Any, Unpack

import polars as pl

from polars_mlmetrics.data.frames import Names
from polars_mlmetrics.data.roles import Roles
from polars_mlmetrics.engine.buckets import BUCKETS
from polars_mlmetrics.errors import ColumnError, ParameterError, StateError, at_callers_line
from polars_mlmetrics.query.keys import Keys
from polars_mlmetrics.states.fold import Fold, place_of_rows
from polars_mlmetrics.states.state import StateOf

Ask = Callable[[pl.LazyFrame], pl.LazyFrame]
"""A question about the rows of a log."""


@at_callers_line
def partial(
    schema: pl.DataFrame | pl.LazyFrame | Mapping[str, Any],
    *metrics: pl.Expr | Sequence[pl.Expr],
    by: Keys | None = None,
    buckets: int = BUCKETS,
    cluster: Names = None,
    **roles: Unpack[Roles],
) -> Fold:
    """Plan a state without its rows: a fold that other processes and other engines run on the parts that they have.

    `fold(frame)` gives the state of a frame as bytes, and `fold.join(states)` the state of all frames, which `finish`
    takes. `fold.columns` are the columns that a frame must have. `fold.whole` are the columns of the samples that must
    be whole in a frame, where a metric looks into samples: split the rows by these. If it is empty, split them anyhow.

    Parameters
    ----------
    schema
        The columns of the log and their types, or a frame that has them.
    *metrics, by, buckets, cluster, **roles
        As in `state`.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> log = pl.DataFrame({"sample": [1, 2, 3, 4], "score": [0.9, 0.2, 0.4, 0.8], "truth": [1, 0, 1, 1]})
    >>> fold = mlm.partial(log.schema, mlm.recall())
    >>> cells = [fold(part) for part in (log.head(1), log.tail(3))]  # in any process
    >>> mlm.finish(fold.join(cells), mlm.recall()).item()
    0.6666666666666666
    """
    if "between" in roles:
        raise ParameterError(
            "partial takes no between=: a part of the rows does not know which models have the other rows. Keep the "
            "samples that all models have, and fold these."
        )
    log = _schema_of(schema)

    def state_of(rows: pl.LazyFrame) -> StateOf:
        return StateOf.read(rows, metrics, by, buckets, cluster, None, roles, ())

    whole = whole_in(state_of(pl.LazyFrame(schema=log)).planned(None).samples)
    plan, place, columns, empty = plan_without_rows(log, lambda rows: state_of(rows).table(None))
    return Fold(plan, place, columns, whole, empty)


def plan_without_rows(schema: Mapping[str, pl.DataType], ask: Ask) -> tuple[bytes, str, dict[str, pl.DataType], bytes]:
    """Plan a question about rows of this schema, for `runner`.

    Returns the plan, the path in it that stands for the rows, the columns that it reads, and the answer of no rows, as
    an Arrow IPC file.
    """
    seen: set[str] = set()
    answer, empty = ask(_noting(schema, seen)).collect(), BytesIO()
    answer.write_ipc(empty)
    with tempfile.TemporaryDirectory(prefix="mlm_") as folder:
        place = place_of_rows(folder)
        known = {name: dtype for name, dtype in schema.items() if dtype != pl.Object}
        pl.DataFrame(schema=known).write_ipc(place)
        plan = ask(pl.scan_ipc(place, glob=False)).serialize()
    columns = {name: dtype for name, dtype in schema.items() if name in seen}
    return plan, place, columns, empty.getvalue()


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


def whole_in(samples: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The columns by which rows can be split without a cut through a sample, of any of several kinds."""
    if not samples:
        return ()
    first, *others = samples
    shared = tuple(column for column in first if all(column in other for other in others))
    if not shared:
        shown = ", ".join(str(list(sample)) for sample in samples)
        raise StateError(f"the samples of these metrics share no column: {shown}. Fold them one by one.")
    return shared


def _schema_of(given: Any) -> pl.Schema:
    if isinstance(given, pl.DataFrame | pl.LazyFrame):
        return given.collect_schema()
    if not isinstance(given, Mapping):
        raise ParameterError(f"partial takes a schema, a mapping of names to types, or a frame, not {given!r}.")
    try:
        schema = pl.DataFrame(schema=dict(given)).schema
    except (TypeError, ValueError) as error:
        raise ParameterError(f"partial takes a mapping of names to types: {error}") from None
    if not schema:
        raise ColumnError("the schema has no column.")
    return schema
