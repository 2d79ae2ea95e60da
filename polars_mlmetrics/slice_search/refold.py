"""Refold: contrasts of what cannot be taken off a whole (the lowest, deviations), with both sides folded anew."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from polars_mlmetrics.engine.replicates import WITHOUT, Replicates
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.intervals.interval import coarseness_of
from polars_mlmetrics.slice_search.contrast import CELL, Sides, is_constant
from polars_mlmetrics.slice_search.count import PLACE, Lattice
from polars_mlmetrics.slice_search.encode import GROUP, Encoded, FoldedTables, Numbers, Tables, half_of

AT = f"{INTERNAL}at"

OTHERS = -1
"""The cell of the rows that are in no slice of a group that is looked at."""


def sides_of_places(encoded: Encoded, lattice: Lattice, places: Numbers, buckets: slice) -> Sides:
    """Both sides of the cells at some places, from one more reading. Each combination has groups of its own."""
    at, keys = lattice.at(places), [GROUP, CELL, WITHOUT]
    kept = pl.DataFrame({GROUP: at * lattice.n_groups + lattice.groups(places), CELL: places})
    is_kept = pl.col(PLACE).is_in(kept[CELL].implode())
    cell = pl.when(is_kept).then(pl.col(PLACE)).otherwise(OTHERS).alias(CELL)
    tables: Tables = {}
    for part in encoded.parts(buckets):
        rows = {kind: half_of(table, buckets) for kind, table in part.tables.items()}
        found = []
        for each in map(int, np.unique(at)):
            group = pl.col(GROUP).cast(pl.Int64) + each * lattice.n_groups
            cells = {k: table.with_columns(lattice.place(each), group).with_columns(cell) for k, table in rows.items()}
            # Once of the rows by themselves: what is known already would be looked at again.
            found.append(encoded.folded([cells], keys))
        tables = encoded.folded([tables, *found], keys)
    return sides_of(encoded, tables, kept, len(range(encoded.buckets)[buckets]))


def sides_of(encoded: Encoded, tables: Tables, kept: pl.DataFrame, n_buckets: int) -> Sides:
    """Both sides of the kept cells, from tables by GROUP, CELL and bucket."""
    names = [f"{INTERNAL}{name}" for name in Sides._fields]
    found = _values(encoded, tables, names).join(kept.with_row_index(AT), on=[GROUP, CELL])
    where = found[AT].to_numpy(), found[WITHOUT].fill_null(n_buckets).to_numpy()
    arrays = np.full((len(names), kept.height, n_buckets + 1), np.nan)
    is_there = np.zeros(arrays[0].shape, dtype=bool)
    is_there[where] = True
    for name, array in zip(names, arrays, strict=True):
        array[where] = found[name].to_numpy()
    value, rest = (np.where(is_there, side, side[:, -1:]) for side in arrays[:2])
    value_alone, rest_alone = (
        np.where(is_constant(side), np.isfinite(each[:, :-1]).sum(axis=1), np.nan)
        for side, each in zip((value, rest), arrays[2:4], strict=True)
    )
    return Sides(value, rest, value_alone, rest_alone, np.nan_to_num(arrays[4, :, -1]))


def _values(encoded: Encoded, tables: Tables, names: Sequence[str]) -> pl.DataFrame:
    """The columns of `Sides`: of each cell and the rest of its group without each bucket, and of each bucket alone."""
    value, rest, value_alone, rest_alone, bound = names
    by = [GROUP, CELL, WITHOUT]
    source = FoldedTables(tables, by, encoded.plan.schema)
    plan = encoded.plan.again(source, [GROUP, CELL])
    metric = plan.value(encoded.metric).cast(pl.Float64)
    bounds = pl.sum_horizontal([pl.lit(0.0), *(plan.value(part) for part in coarseness_of(encoded.metric))])
    without = Replicates(source, [GROUP])
    # The rest is what is left of a group without the cell: a replicate of replicates.
    others, others_alone = (Replicates(each, [GROUP, WITHOUT], CELL) for each in (without, source))
    wanted = [
        plan.again(without, by).groups().select(*by, metric.alias(value), bounds.alias(bound)),
        plan.again(others, by).groups().select(*by, metric.alias(rest), bounds.alias(AT)),
        plan.again(source, by).groups().select(*by, metric.alias(value_alone)),
        plan.again(others_alone, by).groups().select(*by, metric.alias(rest_alone)),
    ]
    found, *more = pl.collect_all(wanted)
    for table in more:
        found = found.join(table, on=by, how="left", nulls_equal=True)
    return found.with_columns(pl.col(bound) + pl.col(AT)).drop(AT)
