"""The columns of a result: one declaration, from which wide tables and tidy ones are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import polars as pl

from polars_mlmetrics.errors import INTERNAL


class ResultColumns(pl.Schema):
    """The columns of a result beside its keys, in order."""

    @classmethod
    def of(cls, *columns: tuple[Any, *tuple[str, ...]]) -> Self:
        """Those of these types and names: a type, then the names of the columns that have it."""
        return cls({name: dtype for dtype, *names in columns for name in names})

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

ROWS = f"{INTERNAL}tidy"


class Ends(NamedTuple):
    """The ends of an interval."""

    low: pl.Expr
    high: pl.Expr


@dataclass(frozen=True)
class Result:
    """What there is to say of one metric in a group."""

    name: str
    value: pl.Expr
    facts: Mapping[str, pl.Expr | None] = field(default_factory=dict)
    """Columns of a tidy table beside the value; None where nothing is known."""
    ends: Ends | None = None
    """Those of its interval, where one is asked for."""

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
