"""Contrast: slices against the rest of their group, with what each bucket moves the difference by.

Sums of the rest are those of the group less those of the slice. What cannot be taken off so (the lowest, deviations,
differences that would lose their digits) is folded anew, both sides of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import inf
from typing import NamedTuple

import numpy as np
import polars as pl

from polars_mlmetrics.engine.replicates import LOST, WITHOUT, Replicates
from polars_mlmetrics.engine.sources import FoldedTables, Source
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.arithmetic import cuts, ratio, whole_times
from polars_mlmetrics.intervals.interval import NOISE, coarseness_of, range_of
from polars_mlmetrics.intervals.student_t import error_of_constant, standard_error
from polars_mlmetrics.slice_search.count import PLACE, CellSums, Sums
from polars_mlmetrics.slice_search.encode import GROUP, Encoded, Numbers, Tables

CELL, AT, BOUND = (f"{INTERNAL}{name}" for name in ("cell", "at", "bound"))

OTHERS = -1
"""The cell of the rows that are in no slice of a group that is looked at."""

AT_ONCE = 1_000_000
"""How many rows a table of cells, buckets and units has at once, about."""


class Sides(NamedTuple):
    """The values of slices and of the rest of their groups."""

    value: Numbers
    """Slices x buckets: without each bucket, and last of all buckets."""
    rest: Numbers
    value_alone: Numbers
    """How many buckets have a value by themselves, where no bucket moves the value; NaN where one does."""
    rest_alone: Numbers
    bound: Numbers
    """How far bins may put the two off, at most."""


Refold = Callable[[Numbers], Sides]
"""A function that folds some of the slices anew, by their numbers."""


def contrasts_at(cells: CellSums, places: Numbers, buckets: slice) -> pl.DataFrame:
    """The contrasts of the cells at some places, in some of the buckets, with their PLACE and GROUP."""
    groups, own = cells.lattice.groups(places), cells.find(places)
    keys = pl.DataFrame({PLACE: places, GROUP: groups}).cast({GROUP: pl.Int32})
    if not len(places):
        return keys.with_columns(pl.lit(0.0).alias(name) for name in ("value", "rest", "gap", "se", "t", "bound"))
    found = contrasts_of(
        cells,
        changed(lambda array: array[own, buckets], cells.sums),
        changed(lambda array: array[cells.of_groups, buckets], cells.sums),
        groups,
        (cells.rows[cells.of_groups, buckets, 0] > 0).sum(axis=1),
        lambda some: _refolded_at(cells, places[some], buckets),
    )
    return keys.hstack(found)


def contrasts_of(
    cells: CellSums, own: Sums, whole: Sums, groups: Numbers, n_buckets: Numbers, refold: Refold
) -> pl.DataFrame:
    """The contrasts of slices, from their sums and those of whole groups, of which each has so many buckets."""
    if not cells.encoded.is_of_sums:
        return _contrasts(cells.encoded, refold(np.arange(len(groups))), n_buckets[groups])
    size = 2 * max(array[0].size for array in whole.values())
    ends = [0, *cuts(len(groups), whole_times(AT_ONCE, len(groups) * size)), len(groups)]
    some = [slice(*pair) for pair in pairwise(ends)]
    parts = [_subtracted(cells, _at(own, part), _at(whole, groups[part])) for part in some]
    sides = Sides(*(np.concatenate(arrays) for arrays in zip(*(sides for sides, _ in parts), strict=True)))
    lost = np.flatnonzero(np.concatenate([is_lost for _, is_lost in parts]))
    for array, anew in zip(sides, refold(lost), strict=True) if lost.size else ():
        array[lost] = anew
    return _contrasts(cells.encoded, sides, n_buckets[groups])


def _contrasts(encoded: Encoded, sides: Sides, n_buckets: Numbers) -> pl.DataFrame:
    """`value`, `rest`, `gap` (positive is worse), `se`, `t`, and the `bound` that bins may put the gap off by."""
    gaps = encoded.sign * (sides.rest - sides.value)
    gaps = np.where(np.isfinite(gaps), gaps, np.nan)
    size = np.abs(sides.value[:, -1]) + np.abs(sides.rest[:, -1])
    gap = _unless_noise(gaps[:, -1], size)
    moved = _unless_noise(gaps[:, :-1] - gap[:, None], size[:, None])
    columns = {"value": sides.value[:, -1], "rest": sides.rest[:, -1], "gap": gap, "bound": sides.bound}
    columns |= {"value_alone": sides.value_alone, "rest_alone": sides.rest_alone}
    columns |= {"squares": (moved * moved).sum(axis=1), "n": n_buckets.astype(float)}
    square = standard_error(pl.col("n"), pl.col("squares")) ** 2
    for side in ("value", "rest"):
        # A side which no bucket moves has the error of its few units.
        units = pl.col(f"{side}_alone")
        own = error_of_constant(pl.col(side), units, moved.shape[1], range_of(encoded.metric))
        square += pl.when(units.is_not_null()).then(own**2).otherwise(0.0)
    is_known = pl.col("squares").is_not_null() & (pl.col("n") >= 2)
    error = pl.when(is_known).then(square.sqrt()).alias("se")
    found = pl.DataFrame(columns, nan_to_null=True).with_columns(error)
    return found.select("value", "rest", "gap", "se", t_of(pl.col("gap"), pl.col("se")).alias("t"), "bound")


def t_of(gap: pl.Expr, error: pl.Expr) -> pl.Expr:
    """A difference in standard errors. One that does not vary is as sure as can be."""
    endless = pl.when(gap > 0).then(inf).when(gap < 0).then(-inf).otherwise(0.0)
    return pl.when(error > 0).then(ratio(gap, error)).when(error == 0).then(endless)


def values_by(encoded: Encoded, source: Source, by: Sequence[str]) -> pl.LazyFrame:
    """The `value` of the metric by some keys, and the BOUND of how far bins may put it off."""
    plan = encoded.plan.again(source, by)
    bounds = [plan.value(bound) for bound in coarseness_of(encoded.metric)]
    value = plan.value(encoded.metric).cast(pl.Float64).alias("value")
    return plan.groups().select(*by, value, pl.sum_horizontal([pl.lit(0.0), *bounds]).alias(BOUND))


# -- sides by subtraction ----------------------------------------------------------------------------------------------


def _subtracted(cells: CellSums, own: Sums, whole: Sums) -> tuple[Sides, Numbers]:
    """Both sides of slices, and where these are differences that have lost their digits."""
    inside, all_of = changed(_without, own), changed(_without, whole)
    rest, rest_by_bucket = changed(np.subtract, all_of, inside), changed(_less, whole, own)
    value, other = np.split(_values(cells, changed(lambda *sides: np.concatenate(sides), inside, rest)), 2)
    bound = np.zeros(len(value))
    for side in (own, rest_by_bucket) if coarseness_of(cells.encoded.metric) else ():
        bound += _values(cells, changed(lambda array: array.sum(axis=1, keepdims=True), side), BOUND)[:, 0]
    alone = _alone(cells, value, own), _alone(cells, other, rest_by_bucket)
    return Sides(value, other, *alone, bound), _have_lost(own, inside, rest, all_of)


def _values(cells: CellSums, sums: Sums, column: str = "value") -> Numbers:
    """A column of `values_by` from sums: cells x buckets."""
    tables = {}
    for kind, units in cells.units.items():
        arrays = {each.name: sums[kind, each.name] for each in cells.encoded.statistics[kind]}
        n, times, n_units = next(iter(arrays.values())).shape
        keys = {CELL: np.repeat(np.arange(n), times * n_units)}
        keys[WITHOUT] = np.tile(np.repeat(np.arange(times), n_units), n)
        frame = pl.DataFrame(keys | {name: array.reshape(-1) for name, array in arrays.items()})
        at = pl.Series(np.tile(np.arange(n_units), n * times))
        tables[kind] = frame.with_columns(units[name].gather(at) for name in kind.units)
    by = [CELL, WITHOUT]
    source = FoldedTables(tables, by, cells.encoded.plan.schema)
    found = values_by(cells.encoded, source, by).select(*by, column).collect()
    if len(tables) > 1 or any(kind.units or kind.grain == "sample" for kind in tables):
        found = found.sort(by)
    values: Numbers = found[column].to_numpy().reshape(n, times)
    return values


def _alone(cells: CellSums, values: Numbers, by_bucket: Sums) -> Numbers:
    """How many buckets have a value by themselves, where no bucket moves the value; NaN where one does."""
    found, constant = np.full(len(values), np.nan), _is_constant(values)
    if constant.any():
        found[constant] = np.isfinite(_values(cells, _at(by_bucket, constant))).sum(axis=1)
    return found


def _is_constant(values: Numbers) -> Numbers:
    """Where no bucket moves the value."""
    found: Numbers = (np.abs(values[:, :-1] - values[:, -1:]) <= NOISE * np.abs(values[:, -1:])).all(axis=1)
    return found


def changed(change: Callable[..., Numbers], *sums: Sums) -> Sums:
    """Sums, each changed, together with the same ones of others."""
    return {key: change(*(one[key] for one in sums)) for key in sums[0]}


def _at(sums: Sums, cells: Numbers | slice) -> Sums:
    return changed(lambda array: array[cells], sums)


def _without(array: Numbers) -> Numbers:
    """Sums without each bucket, and last those of all."""
    whole = array.sum(axis=1, keepdims=True)
    return np.concatenate([whole - array, whole], axis=1)


def _less(whole: Numbers, part: Numbers) -> Numbers:
    """Sums less those of a part; 0 where rounding is all that is left."""
    return _unless_noise(whole - part, np.abs(whole)) if whole.dtype.kind == "f" else whole - part


def _unless_noise(difference: Numbers, size: Numbers) -> Numbers:
    return np.where(np.abs(difference) <= NOISE * size, 0.0, difference)


def _have_lost(own: Sums, inside: Sums, rest: Sums, whole: Sums) -> Numbers:
    """Where what is left of a cell without a bucket, or of a group without the cell, is a difference of rounding."""
    found = np.zeros(len(next(iter(own.values()))), dtype=bool)
    for key in (key for key, array in own.items() if array.dtype.kind == "f"):
        mine, left, others, every = (sums[key] for sums in (own, inside, rest, whole))
        cell, without = left[:, -1:], left[:, :-1]
        is_lost = (np.abs(without) <= LOST * np.abs(cell)) & (mine != 0) & (cell != 0)
        found |= (is_lost | ~np.isfinite(cell)).any(axis=(1, 2))
        is_lost = (np.abs(others) <= LOST * np.abs(every)) & (every != 0) & (others != 0)
        found |= is_lost.any(axis=(1, 2))
    return found


# -- sides that are folded anew ----------------------------------------------------------------------------------------


def _refolded_at(cells: CellSums, places: Numbers, buckets: slice) -> Sides:
    """Both sides of the cells at some places, from one more reading. Each combination has groups of its own."""
    encoded, lattice = cells.encoded, cells.lattice
    at, keys = lattice.at(places), [GROUP, CELL, WITHOUT]
    is_kept = pl.col(PLACE).is_in(pl.Series(places).implode())
    cell = pl.when(is_kept).then(pl.col(PLACE)).otherwise(OTHERS).alias(CELL)
    tables: Tables = {}
    for part in encoded.parts(buckets):
        # Combinations of the rows by themselves: what is known already would be looked at again.
        found = []
        for number in map(int, np.unique(at)):
            group = pl.col(GROUP).cast(pl.Int64) + number * lattice.n_groups
            keyed = {k: t.with_columns(lattice.place(number), group).with_columns(cell) for k, t in part.tables.items()}
            found.append(encoded.folded([keyed], keys))
        tables = encoded.folded([tables, *found], keys)
    return refolded(encoded, tables, at * lattice.n_groups + lattice.groups(places), places, buckets)


def refolded(encoded: Encoded, tables: Tables, groups: Numbers, cells: Numbers, buckets: slice) -> Sides:
    """Both sides of some cells, each of its group, from tables by GROUP, CELL and bucket."""
    by, n_buckets = [GROUP, CELL, WITHOUT], len(range(encoded.buckets)[buckets])
    source = FoldedTables(tables, by, encoded.plan.schema)
    without = Replicates(source, [GROUP])
    # The rest is what is left of a group without the cell: a replicate of replicates.
    others, others_alone = (Replicates(each, [GROUP, WITHOUT], CELL) for each in (without, source))
    sides = [values_by(encoded, each, by) for each in (without, others, source, others_alone)]
    kept, shape = pl.DataFrame({GROUP: groups, CELL: cells}).with_row_index(AT), (len(cells), n_buckets + 1)
    value, rest, value_alone, rest_alone = (
        table.join(kept, on=[GROUP, CELL]).with_columns(pl.col(WITHOUT).fill_null(n_buckets))
        for table in pl.collect_all(sides)
    )

    def array(table: pl.DataFrame, column: str = "value") -> Numbers:
        found = np.full(shape, np.nan)
        found[table[AT].to_numpy(), table[WITHOUT].to_numpy()] = table[column].to_numpy()
        return found

    is_there = np.zeros(shape, dtype=bool)
    is_there[value[AT].to_numpy(), value[WITHOUT].to_numpy()] = True
    values, rests = (np.where(is_there, side, side[:, -1:]) for side in (array(value), array(rest)))
    alone = [
        np.where(_is_constant(side), np.isfinite(array(of_bucket)[:, :-1]).sum(axis=1), np.nan)
        for side, of_bucket in ((values, value_alone), (rests, rest_alone))
    ]
    bound = array(value, BOUND)[:, -1] + array(rest, BOUND)[:, -1]
    return Sides(values, rests, alone[0], alone[1], np.nan_to_num(bound))
