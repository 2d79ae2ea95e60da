"""Buckets: the parts that samples are put into by a hash of their ids. Intervals are made from these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from polars_mlmetrics.data.door import check_key_columns
from polars_mlmetrics.data.frames import Names, column_names
from polars_mlmetrics.engine.packing import modulo, splitmix
from polars_mlmetrics.engine.ranking import code_of
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


def bucket_of(cluster: Sequence[str], schema: Mapping[str, pl.DataType], buckets: int) -> tuple[pl.Expr, str]:
    """In which of so many buckets a cluster falls, and by which hash. It says nothing of the cluster but its bucket."""
    if not all(schema[column].is_integer() and schema[column] not in (pl.Int128, pl.UInt128) for column in cluster):
        return modulo(code_of(cluster), buckets).cast(pl.Int64), "polars"
    code = pl.lit(0, dtype=pl.UInt64)
    for column in cluster:
        code = splitmix(code + pl.col(column).fill_null(0).cast(pl.UInt64, wrap_numerical=True))
    return modulo(code, buckets).cast(pl.Int64), "splitmix64"
