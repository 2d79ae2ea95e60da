"""Samples with small ids, which are ranked without being looked up.

A code has room for a small id and a number of its group. So the code says which group a sample is in, and no table is
needed: the rows are sorted, ranked and summed by the number of their group. Two groups may have the same number (a hash
collision): these, and samples with other ids, use a table of all samples. Most logs have none of them.
"""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from polars_mlmetrics.engine.folds import rows_of_few
from polars_mlmetrics.engine.packing import SMALL, code_of_small, number_of_group
from polars_mlmetrics.engine.ranking import code_of
from polars_mlmetrics.errors import INTERNAL

NUMBER = f"{INTERNAL}number"
_IS_SHARED = f"{INTERNAL}is_shared"


class Split(NamedTuple):
    """How the samples of a log are ranked."""

    code: pl.Expr
    """The code of a sample with a small id; null of others."""
    groups: pl.LazyFrame
    """All groups."""
    numbers: pl.LazyFrame
    """The groups whose number no other group has, with that number in NUMBER."""
    others: pl.LazyFrame
    """The rows of samples with other ids, and of groups that share a number. Rows without an id may be left out."""


def split_by_id(rows: pl.LazyFrame, groups: pl.LazyFrame | None, sample: str) -> Split:
    """Split rows into samples with small ids, coded with their group as one number, and all other rows."""
    by = [] if groups is None else groups.collect_schema().names()
    id_, number = pl.col(sample), number_of_group(code_of(by))
    is_small = (id_ >= 0) & (id_ < SMALL)
    code = pl.when(is_small).then(code_of_small(number, id_))
    others = rows.filter((id_ < 0) | (id_ >= SMALL))
    if groups is None:
        whole = pl.LazyFrame({NUMBER: [0]}, schema={NUMBER: pl.UInt64})
        return Split(code, whole.drop(NUMBER), whole, others)
    groups = groups.with_columns(number.alias(NUMBER))
    groups = groups.with_columns((pl.len().over(NUMBER) > 1).alias(_IS_SHARED)).cache()
    shared = groups.filter(_IS_SHARED)
    of_shared = rows_of_few(rows.filter(is_small), shared.select(by), by)
    numbers = groups.filter(~pl.col(_IS_SHARED)).drop(_IS_SHARED)
    return Split(code, groups.select(by), numbers, pl.concat([others, of_shared]))
