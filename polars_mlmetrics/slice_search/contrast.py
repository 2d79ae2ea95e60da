"""Contrast: slices against the rest of their group, with what each bucket moves the difference by.

Sums of the rest are those of the group less those of the slice. What cannot be taken off so (the lowest, deviations,
differences that would lose their digits) is folded anew, both sides of it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import polars as pl

from polars_mlmetrics.contrasts.rest import (
    BOUND,
    OF_GAP,
    Sides,
    against_rest,
    is_constant,
    sides_of,
    without_noise,
)
from polars_mlmetrics.data.numpy_later import Numbers, np
from polars_mlmetrics.engine.replicates import LOST, WITHOUT
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.arithmetic import cuts, whole_times
from polars_mlmetrics.intervals.kinds import coarseness_of
from polars_mlmetrics.slice_search.count import PLACE, CellSums, Sums
from polars_mlmetrics.slice_search.encode import GROUP, Encoded, Tables

CELL = f"{INTERNAL}cell"

OTHERS = -1
"""The cell of the rows that are in no slice of a group that is looked at."""

AT_ONCE = 1_000_000
"""How many rows a table of cells, buckets and units has at once, about."""


Refold = Callable[[Numbers], Sides]
"""A function that folds some of the slices anew, by their numbers."""


def contrasts_at(cells: CellSums, places: Numbers, buckets: slice) -> pl.DataFrame:
    """The contrasts of the cells at some places, in some of the buckets, with their PLACE and GROUP."""
    groups, own = cells.lattice.groups(places), cells.find(places)
    keys = pl.DataFrame({PLACE: places, GROUP: groups}).cast({GROUP: pl.Int32})
    if not len(places):
        return keys.with_columns(pl.lit(0.0).alias(name) for name in ("value", "rest", "gap", "se", *OF_GAP))
    found = contrasts_of(
        cells,
        changed(lambda array: array[own, buckets], cells.sums),
        changed(lambda array: array[cells.of_groups, buckets], cells.sums),
        groups,
        (cells.rows[cells.of_groups, buckets] > 0).any(axis=2).sum(axis=1),
        lambda some: _refolded_at(cells, places[some], buckets),
    )
    return keys.hstack(found)


def contrasts_of(
    cells: CellSums, own: Sums, whole: Sums, groups: Numbers, n_buckets: Numbers, refold: Refold
) -> pl.DataFrame:
    """The contrasts of slices, from their sums and those of whole groups, of which each has so many buckets."""
    if cells.encoded.is_of_sums:
        size = 2 * max(array[0].size for array in whole.values())
        ends = [0, *cuts(len(groups), whole_times(AT_ONCE, len(groups) * size)), len(groups)]
        some = [slice(*pair) for pair in pairwise(ends)]
        parts = [_subtracted(cells, _at(own, part), _at(whole, groups[part])) for part in some]
        *arrays, is_lost = (np.concatenate(each) for each in zip(*parts, strict=True))
        sides, lost = Sides(*arrays), np.flatnonzero(is_lost)
        for array, anew in zip(sides, refold(lost), strict=True) if lost.size else ():
            array[lost] = anew
    else:
        sides = refold(np.arange(len(groups)))
    search, metric = cells.encoded.search, cells.encoded.metric
    return against_rest(sides, n_buckets[groups], metric, search.sign, is_change=search.change is not None)


# -- sides by subtraction ----------------------------------------------------------------------------------------------


def _subtracted(cells: CellSums, own: Sums, whole: Sums) -> tuple[Numbers, ...]:
    """The arrays of both `Sides`, and last where these are differences that have lost their digits."""
    inside, all_of = changed(_without, own), changed(_without, whole)
    rest, rest_by_bucket = changed(np.subtract, all_of, inside), changed(_less, whole, own)
    value, other = np.split(_values(cells, changed(lambda *sides: np.concatenate(sides), inside, rest)), 2)
    bound = np.zeros(len(value))
    for side in (own, rest_by_bucket) if coarseness_of(cells.encoded.metric) else ():
        bound += _values(cells, changed(lambda array: array.sum(axis=1, keepdims=True), side), BOUND)[:, 0]
    alone = _alone(cells, value, own), _alone(cells, other, rest_by_bucket)
    return value, other, *alone, bound, _have_lost(own, inside, rest, all_of)


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
        tables[kind] = frame.with_columns(units[name].gather(at) for name in cells.unit_keys(kind))
    by = [CELL, WITHOUT]
    found = cells.encoded.values(tables, by).select(*by, column).collect()
    if len(tables) > 1 or any(cells.unit_keys(kind) or kind.grain == "sample" for kind in tables):
        found = found.sort(by)
    return found[column].to_numpy().reshape(n, times)


def _alone(cells: CellSums, values: Numbers, by_bucket: Sums) -> Numbers:
    """How many buckets have a value by themselves, where no bucket moves the value; NaN where one does."""
    found, constant = np.full(len(values), np.nan), is_constant(values)
    if constant.any():
        found[constant] = np.isfinite(_values(cells, _at(by_bucket, constant))).sum(axis=1)
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
    return without_noise(whole - part, np.abs(whole)) if whole.dtype.kind == "f" else whole - part


def _have_lost(own: Sums, inside: Sums, rest: Sums, whole: Sums) -> Numbers:
    """Where what is left of a cell without a bucket, or of a group without the cell, is a difference of rounding."""
    found = np.zeros(len(next(iter(own.values()))), dtype=bool)
    for key in (key for key, array in own.items() if array.dtype.kind == "f"):
        mine, left, others, every = (sums[key] for sums in (own, inside, rest, whole))
        cell, is_known = left[:, -1:], np.isfinite(left[:, -1:])
        is_lost = (np.abs(left[:, :-1]) <= LOST * np.abs(cell)) & (mine != 0) & (cell != 0)
        rest_is_lost = (np.abs(others) <= LOST * np.abs(every)) & (every != 0) & (others != 0)
        found |= (is_lost | ~is_known).any(axis=(1, 2)) | rest_is_lost.any(axis=(1, 2))
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
    source = encoded.source_of(tables, [GROUP, CELL, WITHOUT])
    slices = pl.DataFrame({GROUP: groups, CELL: cells})
    return sides_of(encoded.plan, encoded.metric, source, slices, len(range(encoded.buckets)[buckets]))
