"""States that came as bytes from several processes, as one."""

from __future__ import annotations

from collections.abc import Iterable
from io import BytesIO

import polars as pl

from polars_mlmetrics.engine.state import is_state
from polars_mlmetrics.errors import StateError
from polars_mlmetrics.states.state import compact


def joined(states: Iterable[bytes], empty: bytes) -> pl.DataFrame:
    """The state of all rows. `empty` is that of none."""
    expected = pl.read_ipc(BytesIO(empty))
    found = [expected]
    for place, data in enumerate(states):
        found.append(_read(data, place))
        if found[-1].schema != expected.schema:
            raise StateError(f"the state at place {place} is not of this fold: it was made by another one.")
    return compact(pl.concat(found))


def _read(data: bytes, place: int) -> pl.DataFrame:
    if not isinstance(data, bytes | bytearray | memoryview):
        raise StateError(f"join takes the bytes of states, and at place {place} there is a {type(data).__name__}.")
    try:
        state = pl.read_ipc(BytesIO(data))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise StateError(f"the bytes at place {place} are no state: {error}") from None
    if not is_state(state.schema):
        raise StateError(f"the bytes at place {place} are a table, and no state.")
    return state
