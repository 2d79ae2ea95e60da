"""Rows with equal keys: found by sorting one number per row, and then compared by their keys.

Equal keys have equal numbers, so none is missed. Different keys may have the same number (a hash collision), so the
found rows are grouped by their keys. Where little or nothing is found, this takes a fraction of what grouping all rows
by their keys takes.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polars_mlmetrics.engine.packing import from_halves, halves
from polars_mlmetrics.engine.ranking import code_of
from polars_mlmetrics.errors import INTERNAL

N_ROWS = f"{INTERNAL}n_rows"
"""How many rows have these keys."""

_CODE, _PAIR, _HOLDS = (f"{INTERNAL}{name}" for name in ("code_of_keys", "pair_of_codes", "holds"))


def repeated(rows: pl.LazyFrame, keys: Sequence[str]) -> pl.DataFrame:
    """The keys that several rows have, with the number of these."""
    code = pl.col(_CODE)
    codes = rows.select(code_of(keys).alias(_CODE)).sort(_CODE).filter(code == code.shift())
    return _grouped(rows, keys, codes.unique(), pl.len() > 1)


def surplus(repeats: pl.DataFrame) -> int:
    """How many rows there are beyond one for each of some keys."""
    return int(repeats[N_ROWS].sum()) - repeats.height


def contradicted(
    rows: pl.LazyFrame, keys: Sequence[str], value: str, number: pl.Expr, *, most: int | None = None
) -> pl.DataFrame:
    """The keys whose rows have several values, with the number of these rows; among so many suspects at most.

    `number` is a number of 64 bits for the value: what has one number is taken for one value.
    """
    code, of_value = halves(pl.col(_PAIR))
    pairs = rows.select(from_halves(code_of(keys), number).alias(_PAIR)).sort(_PAIR)
    neighbours = pairs.select(code.alias(_CODE), of_value.alias(value))
    differs = (pl.col(_CODE) == pl.col(_CODE).shift()) & (pl.col(value) != pl.col(value).shift())
    codes = neighbours.filter(differs).select(_CODE)
    return _grouped(rows, keys, codes.unique() if most is None else codes.head(most), pl.col(value).n_unique() > 1)


def _grouped(rows: pl.LazyFrame, keys: Sequence[str], codes: pl.LazyFrame, condition: pl.Expr) -> pl.DataFrame:
    """The rows of some codes, by their keys, where a condition holds of all rows with these."""
    found = codes.collect()
    if found.is_empty():
        suspects = rows.head(0)
    else:
        suspects = rows.with_columns(code_of(keys).alias(_CODE)).join(found.lazy(), on=_CODE, how="semi")
    groups = suspects.group_by(keys).agg(pl.len().cast(pl.Int64).alias(N_ROWS), condition.alias(_HOLDS))
    return groups.filter(_HOLDS).drop(_HOLDS).collect()
