"""The columns of a result: one declaration, from which wide tables and tidy ones are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import polars as pl

from polars_mlmetrics.errors import INTERNAL

TIDY = pl.Schema(
    {
        "metric": pl.String,
        "value": pl.Float64,
        "se": pl.Float64,
        "low": pl.Float64,
        "high": pl.Float64,
        "ci_method": pl.String,
        "ci_flag": pl.String,
        "n_buckets": pl.Int64,
        "n_clusters": pl.Int64,
        "n_rows": pl.Int64,
        "n_samples": pl.Int64,
        "n_split": pl.Int64,
        "n_excluded": pl.Int64,
        "support": pl.Float64,
        "n_undefined": pl.Int64,
        "reason": pl.String,
    }
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
        told = {**self.facts, "metric": pl.lit(self.name), "value": self.value}
        return pl.struct(_as_column(told.get(name), name) for name in TIDY)


def _as_column(expression: pl.Expr | None, name: str) -> pl.Expr:
    return (pl.lit(None) if expression is None else expression).cast(TIDY[name], strict=False).alias(name)


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
