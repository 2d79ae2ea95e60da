"""A result: the names and types of its columns, and its groupings, one under the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple, Self

import polars as pl

from polars_mlmetrics.data.expressions import text_of_key
from polars_mlmetrics.data.frames import text_apart
from polars_mlmetrics.errors import INTERNAL, ParameterError, at_callers_line
from polars_mlmetrics.formula.parameters import Count, check_parameter
from polars_mlmetrics.query.keys import AnyKey, KeyColumn, UnreadKey
from polars_mlmetrics.query.query import Query

PLACE = f"{INTERNAL}place"


class ResultColumns(pl.Schema):
    """The columns of a result beside its keys, in order."""

    @classmethod
    def of(cls, *columns: tuple[Any, *tuple[str, ...]]) -> Self:
        """Those of these types and names: a type, then the names of the columns that have it."""
        return cls({name: dtype for dtype, *names in columns for name in names})

    def empty(self, keys: Mapping[str, pl.DataType]) -> pl.LazyFrame:
        """A result without rows, after these keys."""
        return pl.LazyFrame(schema={**keys, **self})

    def cast(self) -> list[pl.Expr]:
        """The columns of a table, in these types."""
        return [pl.col(name).cast(dtype) for name, dtype in self.items()]

    def row(self, values: Mapping[str, pl.Expr | None]) -> pl.Expr:
        """A struct of these values; null where one is not known."""
        known = {name: pl.lit(None) if (value := values.get(name)) is None else value for name in self}
        return pl.struct(value.cast(self[name], strict=False).alias(name) for name, value in known.items())


TIDY = ResultColumns.of(
    (pl.String, "metric"),
    (pl.Float64, "value", "se", "low", "high"),
    (pl.String, "ci_method", "ci_flag"),
    (pl.Int64, "n_buckets", "n_clusters", "n_rows", "n_samples", "n_split", "n_excluded"),
    (pl.Float64, "support"),
    (pl.Int64, "n_undefined"),
    (pl.String, "reason"),
)
"""All that a tidy table says of a metric in a group: always every column, null where there is nothing to say."""

ENDS = ResultColumns.of((pl.Float64, "low", "high"), (pl.String, "ci_flag"))
"""The interval where each row is of one value: its ends, and what to know of it."""

ROWS = f"{INTERNAL}tidy"


class Ends(NamedTuple):
    """The ends of an interval."""

    low: pl.Expr
    high: pl.Expr


@dataclass(frozen=True)
class Result:
    """The value of one metric in a group, with its counts, its interval and its reason."""

    name: str
    value: pl.Expr
    facts: Mapping[str, pl.Expr | None] = field(default_factory=dict)
    """Columns of a tidy table beside the value; None where nothing is known."""
    ends: Ends | None = None
    """The ends of its interval; None without one."""

    def wide(self) -> list[pl.Expr]:
        """Its columns in a wide table."""
        columns = [self.value, *(self.ends or ())]
        names = wide_names(self.name, ci=self.ends is not None)
        return [column.alias(name) for column, name in zip(columns, names, strict=True)]

    def tidy(self) -> pl.Expr:
        """Its row in a tidy table, as a struct."""
        return TIDY.row({**self.facts, "metric": pl.lit(self.name), "value": self.value})


def wide_names(name: str, *, ci: bool) -> list[str]:
    """The names of the columns of a metric in a wide table."""
    return [name, f"{name}_low", f"{name}_high"] if ci else [name]


def names_of(order: Sequence[str], *, tidy: bool, ci: bool = False) -> list[str]:
    """The names of the columns that tell of metrics."""
    return TIDY.names() if tidy else [column for name in order for column in wide_names(name, ci=ci)]


def table_of(groups: pl.LazyFrame, by: Sequence[str], results: Sequence[Result], *, tidy: bool) -> pl.LazyFrame:
    """One row a group, or a row for each group and metric."""
    if not tidy:
        return groups.select(*by, *(column for result in results for column in result.wide()))
    rows = pl.concat_list(result.tidy() for result in results)
    return groups.select(*by, rows.alias(ROWS)).explode(ROWS).unnest(ROWS)


def of_plain(name: str, samples: pl.Expr | None, min_samples: int | None) -> Result:
    """A plain expression, which has a value and nothing else to say, but for a lack of samples."""
    value = pl.col(name)
    if samples is None:
        return Result(name, value)
    is_small = samples < min_samples
    reason = pl.when(is_small).then(pl.lit(f"fewer than {min_samples} samples"))
    return Result(name, pl.when(~is_small).then(value), {"n_samples": samples, "reason": reason})


@at_callers_line
def cube(*columns: AnyKey, depth: int | None = None) -> list[list[AnyKey]]:
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
def rollup(*columns: AnyKey) -> list[list[AnyKey]]:
    """The first column, the first two, and so on, as `slices=` takes them: SQL's ROLLUP, without the whole.

    Examples
    --------
    >>> import polars_mlmetrics as mlm
    >>> mlm.rollup("country", "city", "street")
    [['country'], ['country', 'city'], ['country', 'city', 'street']]
    """
    _check_columns("rollup", columns)
    return [list(columns[: size + 1]) for size in range(len(columns))]


def _check_columns(caller: str, columns: Sequence[AnyKey]) -> None:
    if not columns:
        raise ParameterError(f"{caller} needs at least one column.")
    for column in columns:
        if not isinstance(column, str | pl.Expr | UnreadKey):
            raise ParameterError(f"{caller} takes columns one by one, names or expressions, not {column!r}.")
    names = [column for column in columns if isinstance(column, str)]
    for name in names:
        if names.count(name) > 1:
            raise ParameterError(f"{caller} names the column {name!r} twice.")


def stacked(
    query: Query,
    table_of: Callable[[list[str]], pl.LazyFrame],
    results: Sequence[str],
    order: Sequence[str] | None = (),
) -> pl.LazyFrame:
    """The tables of all groupings, one under the other, their keys under their public names.

    Sorted by these keys, and then by the columns of `order`; not at all where that is None.
    """
    by, slice_keys = [key.column for key in query.by], query.slice_keys
    sliced = [] if query.slices is None else ["sliced_by", "slice"]
    tables = []
    for place, slicing in enumerate(query.groupings):
        table = table_of([*by, *(key.column for key in slicing)])
        labels = [*(_labels(query, slicing) if sliced else ()), pl.lit(place, dtype=pl.Int32).alias(PLACE)]
        tables.append(table.select(*by, *labels, *(key.column for key in slicing), *results))
    # A table has the keys of its own grouping alone: the others are null there.
    several = len(tables) > 1
    table = pl.concat(tables, how="diagonal") if several else tables[0]
    keys = [*by, PLACE, *(key.column for key in slice_keys)] if several else by
    if order is not None and (keys or order):
        table = table.sort([*keys, *order], maintain_order=True)
    named = [pl.col(key.column).alias(key.name) for key in query.by]
    return table.select(*named, *sliced, *(pl.col(key.column).alias(key.name) for key in slice_keys), *results)


def _labels(query: Query, keys: list[KeyColumn]) -> list[pl.Expr]:
    """Which slicing a row is of, and which slice: "country, device" and "country=DE, device=ios"."""
    return [pl.lit(", ".join(key.name for key in keys)).alias("sliced_by"), slice_text(query, keys).alias("slice")]


def slice_text(query: Query, keys: Sequence[KeyColumn], *, apart: bool = False) -> pl.Expr:
    """A slice in words. These tell it apart from all others where no keys stand beside them."""
    text_of = partial(text_apart, among_others=bool(keys[1:])) if apart else text_of_key
    parts = [pl.lit(f"{key.name}=") + text_of(pl.col(key.column), query.schema[key.column]) for key in keys]
    return pl.concat_str(parts, separator=", ") if parts else pl.lit("")
