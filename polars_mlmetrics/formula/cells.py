"""The cells of a grid of scores, as numbers: where each of them ends."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import polars as pl

from polars_mlmetrics.data.numpy_later import Numbers, np
from polars_mlmetrics.formula.curve import FARTHEST_POWER, Cells, Grid, cell_of

BITS = 64


def end_of_cell(cell: pl.Expr, cells: Cells) -> pl.Expr:
    """The highest score in a cell, by its number; what is no number of a cell stays what it is."""
    assert cells.bins is not None
    # A forged state may have numbers of cells that the grid does not have.
    number = pl.when(cell.is_finite()).then(cell).otherwise(0.0).clip(0, cells.bins - 1).cast(pl.Int64)
    ends = pl.lit(ends_of_cells(*cells))
    return pl.when(cell.is_finite()).then(ends.gather(number)).otherwise(cell)


@lru_cache(maxsize=8)
def ends_of_cells(bins: int, grid: Grid, score: pl.DataType | None = None) -> pl.Series:
    """The highest score in each cell of a grid: what is above it is in the cells above.

    It is looked for among the floats themselves, since a formula for it would be rounded otherwise than the cells are.
    Of scores of a short float type it is one of these: a threshold is rounded to their type, and would leave its cell.
    """
    lowest, highest = (0.0, 1.0) if grid == "logit" else (-(2.0**FARTHEST_POWER), 2.0**FARTHEST_POWER)
    inside, beyond = (np.full(bins, _number_of(end)) for end in (lowest, highest))
    for _ in range(BITS):
        # Half of their sum, which itself may be too large.
        middle = (inside >> 1) + (beyond >> 1) + (inside & beyond & 1)
        cells = pl.select(cell_of(pl.lit(pl.Series(_floats_of(middle))), bins, grid)).to_series().to_numpy()
        is_inside = cells <= np.arange(bins)
        inside, beyond = np.where(is_inside, middle, inside), np.where(is_inside, beyond, middle)
    ends = _floats_of(inside)
    ends[-1] = 1.0 if grid == "logit" else np.inf
    if isinstance(score, pl.Float16 | pl.Float32):
        ends = _rounded_down(ends, np.float16 if isinstance(score, pl.Float16) else np.float32)
    return pl.Series(ends)


def _rounded_down(ends: Numbers, short: Any) -> Numbers:
    """The highest floats of a short type that are not above some numbers."""
    with np.errstate(over="ignore"):
        near = ends.astype(short)
    return np.where(near > ends, np.nextafter(near, short(-np.inf)), near).astype(np.float64)


def _number_of(value: float) -> int:
    """The place of a float among all floats; that of 0 is 0."""
    size = int(np.float64(abs(value)).view(np.int64))
    return -size if value < 0 else size


def _floats_of(numbers: Numbers) -> Numbers:
    sizes: Numbers = np.abs(numbers).view(np.float64)
    return np.where(numbers < 0, -sizes, sizes)
