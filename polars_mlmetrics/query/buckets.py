"""Buckets: the parts that samples are put into by a hash of their ids. Intervals are made from these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import polars as pl

from polars_mlmetrics.data.door import check_key_columns
from polars_mlmetrics.data.frames import Names, column_names
from polars_mlmetrics.engine.state_table import bucket_of
from polars_mlmetrics.errors import ParameterError

BUCKETS = 64
"""How many there are, where nothing else is asked for."""


class Buckets(NamedTuple):
    """How samples are put into buckets."""

    bucket: pl.Expr
    description: dict[str, Any]
    """Their number, columns and hash, as a state holds them."""


def buckets_of(schema: pl.Schema, sample: Sequence[str], cluster: Names, count: int) -> Buckets | None:
    """The buckets of a log; None where it has no samples, or none are asked for."""
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise ParameterError(f"buckets is a number of 0 or more, not {count!r}.")
    named = column_names("cluster", cluster)
    check_key_columns(named, schema, what="cluster column")
    if named and not count:
        raise ParameterError("cluster= says what buckets are made of, and buckets=0 asks for none.")
    columns = named or sample
    if not count or not all(column in schema for column in columns):
        return None
    bucket, by = bucket_of(columns, schema, count)
    version = pl.__version__ if by == "polars" else None
    return Buckets(bucket, {"count": count, "cluster": list(columns), "hash": by, "polars": version})
