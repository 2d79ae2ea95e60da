"""Grouping sets: the whole of every group first, then each slicing of it, told apart by two text columns."""

from collections.abc import Callable, Sequence

import polars as pl

from polars_mlmetrics.analysis.question import KeyColumn, Question
from polars_mlmetrics.errors import INTERNAL

PLACE = f"{INTERNAL}place"


def stacked(
    question: Question, table_of: Callable[[list[str]], pl.LazyFrame], results: Sequence[str], *, in_order: bool
) -> pl.LazyFrame:
    """The tables of all groupings, one under the other, their keys under their public names."""
    by, slice_keys = [key.column for key in question.by], question.slice_keys
    sliced = [] if question.slices is None else ["sliced_by", "slice"]
    tables = []
    for place, keys in enumerate(question.groupings):
        table = table_of([*by, *(key.column for key in keys)])
        shown = [_shown(question, key, present=key in keys) for key in slice_keys]
        labels = [*(_labels(keys) if sliced else ()), pl.lit(place, dtype=pl.Int32).alias(PLACE)]
        tables.append(table.select(*by, *labels, *shown, *results))
    table = pl.concat(tables) if len(tables) > 1 else tables[0]
    if in_order:
        table = table.sort([*by, PLACE, *(key.column for key in slice_keys)], maintain_order=True)
    named = [pl.col(key.column).alias(key.name) for key in question.by]
    return table.select(*named, *sliced, *(pl.col(key.column).alias(key.name) for key in slice_keys), *results)


def _shown(question: Question, key: KeyColumn, *, present: bool) -> pl.Expr:
    return pl.col(key.column) if present else pl.lit(None, dtype=question.schema[key.column]).alias(key.column)


def _labels(keys: list[KeyColumn]) -> list[pl.Expr]:
    """Which slicing a row is of, and which slice: "country, device" and "country=DE, device=ios"."""
    parts = [pl.lit(f"{key.name}=") + pl.col(key.column).cast(pl.String).fill_null("null") for key in keys]
    slice_text = pl.concat_str(parts, separator=", ") if parts else pl.lit("")
    return [pl.lit(", ".join(key.name for key in keys)).alias("sliced_by"), slice_text.alias("slice")]
