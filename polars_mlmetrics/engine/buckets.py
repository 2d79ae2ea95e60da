"""Buckets: the parts that samples are put into by a hash of their ids. Intervals are made from these.

A state has 64 buckets, whatever it was made of: so states of many days merge. A log has more where its intervals are
made from the log itself: four times as many, and a bucket for each cluster where a few are named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import polars as pl

from polars_mlmetrics.data.door import check_key_columns
from polars_mlmetrics.data.frames import Names, column_names
from polars_mlmetrics.engine.packing import modulo, splitmix
from polars_mlmetrics.engine.ranking import code_of
from polars_mlmetrics.errors import INTERNAL, ParameterError

BUCKETS = 64
"""How many a state has, where nothing else is asked for."""

OF_LOG = 256
"""How many a log has. So many clusters at most have a bucket each: numbers from here on."""

_HASH, _CODE, _LAST, _NUMBER, _SLOT = (
    f"{INTERNAL}cluster:{name}" for name in ("hash", "code", "last", "number", "slot")
)

_SLOTS = 2**12
"""Into so many slots clusters fall by their codes, where they are counted: however many there are, memory is small."""


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
    code, by = _hashed(cluster, schema)
    return modulo(code, buckets).cast(pl.Int64), by


def _hashed(cluster: Sequence[str], schema: Mapping[str, pl.DataType]) -> tuple[pl.Expr, str]:
    """The hash of a cluster, and which it is. Of a whole number, null has that of 0."""
    if not all(schema[column].is_integer() and schema[column] not in (pl.Int128, pl.UInt128) for column in cluster):
        return code_of(cluster), "polars"
    code = pl.lit(0, dtype=pl.UInt64)
    for column in cluster:
        code = splitmix(code + pl.col(column).fill_null(0).cast(pl.UInt64, wrap_numerical=True))
    return code, "splitmix64"


class NumberedClusters(NamedTuple):
    """The clusters of a log, with a bucket for each where they are few: then no name decides which go together."""

    hashed: pl.Expr
    code: pl.Expr
    """A number for each cluster, in a table with its hash. Null, which has the hash of 0, has another one."""
    numbers: pl.LazyFrame
    """The buckets by the codes of clusters; empty where there are too many of these."""

    @classmethod
    def of(cls, log: pl.LazyFrame, cluster: Sequence[str], schema: Mapping[str, pl.DataType]) -> Self:
        """The clusters of a log. They are counted when an answer is worked out."""
        hashed, _ = _hashed(cluster, schema)
        nulls = (pl.col(name).is_null().cast(pl.UInt64) * (2 * place + 1) for place, name in enumerate(cluster))
        code, slot = pl.sum_horizontal(_HASH, *nulls), modulo(pl.col(_CODE), _SLOTS).alias(_SLOT)
        # Of clusters in one slot two are found. A third, which is rare, keeps the bucket of its hash, below any number.
        ends = pl.col(_CODE).min(), pl.col(_CODE).max().alias(_LAST)
        codes = log.select(*cluster, hashed.alias(_HASH)).select(code.alias(_CODE))
        slots = codes.group_by(slot).agg(ends)
        found = slots.select(pl.concat_list(_CODE, _LAST).alias(_CODE)).explode(_CODE).unique().sort(_CODE)
        number = pl.int_range(OF_LOG, OF_LOG + pl.len(), dtype=pl.Int64).alias(_NUMBER)
        return cls(hashed, code, found.with_columns(number).filter(pl.len() <= OF_LOG).cache())

    def with_buckets(self, rows: pl.LazyFrame, column: str, coarse_column: str) -> pl.LazyFrame:
        """Rows of the log, with the bucket of each in a column, and that of fewer in another."""
        rows = rows.with_columns(self.hashed.alias(_HASH)).with_columns(self.code.alias(_CODE))
        by_hash = modulo(pl.col(_HASH), OF_LOG).cast(pl.Int64)
        bucket = pl.coalesce(_NUMBER, by_hash)
        columns = bucket.alias(column), coarse(bucket).alias(coarse_column)
        return rows.join(self.numbers, on=_CODE, how="left").with_columns(columns).drop(_HASH, _CODE, _NUMBER)


def coarse(bucket: pl.Expr) -> pl.Expr:
    """The bucket of a log as one of fewer. That of a numbered cluster is still a number."""
    return modulo(bucket, BUCKETS) + pl.when(bucket >= OF_LOG).then(OF_LOG).otherwise(0)
