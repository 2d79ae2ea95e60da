"""Grouping sets: the whole of every group first, then each slicing of it, told apart by two text columns."""

from collections.abc import Callable, Sequence
from itertools import combinations

import polars as pl

from polars_mlmetrics.data.visible import text_of_key
from polars_mlmetrics.errors import INTERNAL, ParameterError, at_callers_line
from polars_mlmetrics.formula.parameters import Count, check_parameter
from polars_mlmetrics.query.query import Key, KeyColumn, Query

PLACE = f"{INTERNAL}place"


@at_callers_line
def cube(*columns: Key, depth: int | None = None) -> list[list[Key]]:
    """Every combination of some columns, as `slices=` takes them: SQL's CUBE, without the whole, which is always there.

    Parameters
    ----------
    *columns
        Names or row-wise expressions.
    depth
        How many columns a combination has at most. None is all of them.

    Examples
    --------
    >>> import polars_mlmetrics as mlm
    >>> mlm.cube("country", "device", "day", depth=2)
    [['country'], ['device'], ['day'], ['country', 'device'], ['country', 'day'], ['device', 'day']]
    """
    check_parameter("cube", "depth", depth, Count | None)
    _check_columns("cube", columns)
    most = len(columns) if depth is None else min(depth, len(columns))
    return [list(keys) for size in range(1, most + 1) for keys in combinations(columns, size)]


@at_callers_line
def rollup(*columns: Key) -> list[list[Key]]:
    """The first column, the first two, and so on, as `slices=` takes them: SQL's ROLLUP, without the whole.

    Examples
    --------
    >>> import polars_mlmetrics as mlm
    >>> mlm.rollup("country", "city", "street")
    [['country'], ['country', 'city'], ['country', 'city', 'street']]
    """
    _check_columns("rollup", columns)
    return [list(columns[: size + 1]) for size in range(len(columns))]


def _check_columns(caller: str, columns: Sequence[Key]) -> None:
    if not columns:
        raise ParameterError(f"{caller} needs at least one column.")
    for column in columns:
        if not isinstance(column, str | pl.Expr):
            raise ParameterError(f"{caller} takes columns one by one, names or expressions, not {column!r}.")
    names = [column for column in columns if isinstance(column, str)]
    for name in names:
        if names.count(name) > 1:
            raise ParameterError(f"{caller} names the column {name!r} twice.")


def stacked(
    query: Query, table_of: Callable[[list[str]], pl.LazyFrame], results: Sequence[str], *, in_order: bool
) -> pl.LazyFrame:
    """The tables of all groupings, one under the other, their keys under their public names."""
    by, slice_keys = [key.column for key in query.by], query.slice_keys
    sliced = [] if query.slices is None else ["sliced_by", "slice"]
    tables = []
    for place, keys in enumerate(query.groupings):
        table = table_of([*by, *(key.column for key in keys)])
        labels = [*(_labels(query, keys) if sliced else ()), pl.lit(place, dtype=pl.Int32).alias(PLACE)]
        tables.append(table.select(*by, *labels, *(key.column for key in keys), *results))
    # A table has the keys of its own grouping alone: the others are null there.
    several = len(tables) > 1
    table = pl.concat(tables, how="diagonal") if several else tables[0]
    order = [*by, PLACE, *(key.column for key in slice_keys)] if several else by
    if in_order and order:
        table = table.sort(order, maintain_order=True)
    named = [pl.col(key.column).alias(key.name) for key in query.by]
    return table.select(*named, *sliced, *(pl.col(key.column).alias(key.name) for key in slice_keys), *results)


def _labels(query: Query, keys: list[KeyColumn]) -> list[pl.Expr]:
    """Which slicing a row is of, and which slice: "country, device" and "country=DE, device=ios"."""
    return [pl.lit(", ".join(key.name for key in keys)).alias("sliced_by"), slice_text(query, keys).alias("slice")]


def slice_text(query: Query, keys: Sequence[KeyColumn]) -> pl.Expr:
    """A slice in words."""
    parts = [pl.lit(f"{key.name}=") + text_of_key(pl.col(key.column), query.schema[key.column]) for key in keys]
    return pl.concat_str(parts, separator=", ") if parts else pl.lit("")
