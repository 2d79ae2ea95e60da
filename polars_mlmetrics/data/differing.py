"""Columns that differ between the files of a log: in the way of nobody, until one of them is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import polars as pl

from polars_mlmetrics.errors import INTERNAL, FileError, MetricError

MARK = f"{INTERNAL}differs"


def differing(error: MetricError) -> pl.Enum:
    """The type of a column that no query may read, for this reason. A type is known before a row is read."""
    return pl.Enum([MARK, str(error).removesuffix(error.remedy).rstrip(), error.remedy])


def unreadable(dtype: pl.DataType) -> pl.Expr:
    """A column of that type, which fails where it is read, and costs nothing elsewhere."""
    # Polars would work out the cast of a plain literal when it plans a query, read or not.
    return pl.lit(pl.Series([str(reason(dtype))])).first().cast(dtype)


def reason(dtype: pl.DataType) -> FileError | None:
    """Why a column of this type cannot be read; None for any other type."""
    if not isinstance(dtype, pl.Enum) or dtype.categories.len() != 3 or dtype.categories[0] != MARK:
        return None
    _, message, remedy = dtype.categories
    return FileError(message).with_remedy(remedy)


def check_alike(names: Iterable[str], schema: Mapping[str, pl.DataType]) -> None:
    """Refuse to read columns that differ between files."""
    for name in names:
        error = reason(schema[name]) if name in schema else None
        if error is not None:
            raise error


def to_hold(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Rows as they can be held in memory: a column that differs is null, and its type still says why."""
    types = {name: dtype for name, dtype in rows.collect_schema().items() if reason(dtype) is not None}
    return rows.with_columns(pl.lit(None, dtype).alias(name) for name, dtype in types.items())
