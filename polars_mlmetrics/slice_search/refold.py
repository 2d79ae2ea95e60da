"""Refold: contrasts of what cannot be taken off a whole (the lowest, the highest, deviations), each side folded anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from polars_mlmetrics.engine.replicates import WITHOUT, Replicates
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.intervals.interval import coarseness_of
from polars_mlmetrics.slice_search.contrast import CELL, Sides, is_constant
from polars_mlmetrics.slice_search.count import PLACE, Lattice
from polars_mlmetrics.slice_search.encode import GROUP, Encoded, FoldedTables, Numbers, PartialKind, Tables, Wanted

AT = f"{INTERNAL}at"

OTHERS = -1
"""The cell of the rows that are in no slice of a group that is looked at."""


def sides_of_places(encoded: Encoded, lattice: Lattice, places: Numbers, buckets: slice) -> Sides:
    """Both sides of the cells at some places, from one more reading. Each combination has groups of its own."""
    at = lattice.at(places)
    group = at * lattice.n_groups + lattice.groups(places)
    kept = pl.DataFrame({GROUP: group, CELL: places}, schema_overrides={GROUP: pl.Int64, CELL: pl.Int64})
    tables: dict[PartialKind, pl.DataFrame] = {}
    for part in encoded.parts(Wanted(buckets=buckets)):
        for kind, table in part.tables.items():
            rows = in_buckets(table, buckets)
            found = [_of_combination(rows, lattice, int(each), kept) for each in np.unique(at)]
            known = [tables[kind]] if kind in tables else []
            # Once of the rows by themselves: what is known already would be looked at again.
            folded = [encoded.folded(kind, [each], [GROUP, CELL, WITHOUT]) for each in found]
            tables[kind] = encoded.folded(kind, [*known, *folded], [GROUP, CELL, WITHOUT])
    return sides_of(encoded, tables, kept, len(range(encoded.buckets)[buckets]))


def in_buckets(table: pl.DataFrame, buckets: slice) -> pl.DataFrame:
    """The rows in every second bucket, which are numbered anew from 0."""
    bucket = pl.col(WITHOUT).cast(pl.Int64)
    rows = table.filter(pl.col(WITHOUT) % buckets.step == buckets.start)
    return rows.with_columns((bucket - buckets.start) // buckets.step)


def _of_combination(rows: pl.DataFrame, lattice: Lattice, at: int, kept: pl.DataFrame) -> pl.DataFrame:
    """Rows with their cells in a combination; all cells but the kept ones are one."""
    is_kept = pl.col(PLACE).is_in(kept[CELL].implode())
    rows = rows.with_columns(lattice.place(at), pl.col(GROUP).cast(pl.Int64) + at * lattice.n_groups)
    return rows.with_columns(pl.when(is_kept).then(pl.col(PLACE)).otherwise(OTHERS).alias(CELL))


def sides_of(encoded: Encoded, tables: Tables, kept: pl.DataFrame, n_buckets: int) -> Sides:
    """Both sides of the kept cells, from tables by GROUP, CELL and bucket."""
    value, rest, value_alone, rest_alone = (f"{INTERNAL}{name}" for name in Sides._fields[:4])
    names = [value, rest, value_alone, rest_alone]
    found = _values(encoded, tables, names).join(kept.with_row_index(AT), on=[GROUP, CELL])
    row, bucket = found[AT].to_numpy(), found[WITHOUT].fill_null(n_buckets).to_numpy()
    arrays = {name: np.full((kept.height, n_buckets + 1), np.nan) for name in names}
    is_there = np.zeros((kept.height, n_buckets + 1), dtype=bool)
    is_there[row, bucket] = True
    for name, array in arrays.items():
        array[row, bucket] = found[name].to_numpy()
    sides = [np.where(is_there, arrays[name], arrays[name][:, -1:]) for name in names[:2]]
    alone = [
        np.where(is_constant(side), np.isfinite(arrays[name][:, :-1]).sum(axis=1), np.nan)
        for side, name in zip(sides, names[2:], strict=True)
    ]
    bound = np.zeros(kept.height)
    whole = found.filter(pl.col(WITHOUT).is_null())
    bound[whole[AT].to_numpy()] = whole["bound"].to_numpy()
    return Sides(*sides, *alone, bound)


def values_of_groups(encoded: Encoded, tables: Tables) -> pl.DataFrame:
    """`value`: that of whole groups, from tables by GROUP."""
    by = [GROUP]
    source = FoldedTables({kind: table.lazy() for kind, table in tables.items()}, by, encoded.plan.schema)
    plan = encoded.plan.again(source, by)
    return plan.groups().select(*by, plan.value(encoded.metric).cast(pl.Float64).alias("value")).collect()


def _values(encoded: Encoded, tables: Tables, names: Sequence[str]) -> pl.DataFrame:
    """The values of each cell and of the rest of its group: without each bucket and of all, and of each bucket alone."""
    by, schema = [GROUP, CELL, WITHOUT], encoded.plan.schema
    source = FoldedTables({kind: table.lazy() for kind, table in tables.items()}, by, schema)
    plan = encoded.plan.again(source, [GROUP, CELL])
    value = plan.value(encoded.metric).cast(pl.Float64)
    bounds = pl.sum_horizontal([pl.lit(0.0), *(plan.value(part) for part in coarseness_of(encoded.metric))])
    without = Replicates(source, [GROUP])
    # The rest is what is left of a group without the cell: a replicate of replicates.
    sources = [without, Replicates(without, [GROUP, WITHOUT], CELL)]
    # Of each bucket by itself; the rest of it is what is left of the bucket without the cell.
    sources += [source, Replicates(source, [GROUP, WITHOUT], CELL)]
    wanted = [
        [value.alias(name), *([bounds.alias(f"{name}_bound")] if at < 2 else [])] for at, name in enumerate(names)
    ]
    found = [plan.again(each, by).groups().select(*by, *columns) for each, columns in zip(sources, wanted, strict=True)]
    values, *others = pl.collect_all(found)
    for other in others:
        values = values.join(other, on=by, how="left", nulls_equal=True)
    return values.with_columns((pl.col(f"{names[0]}_bound") + pl.col(f"{names[1]}_bound")).alias("bound"))
