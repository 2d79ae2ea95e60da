"""Contrast: slices against the rest of their group, with what each bucket moves the difference by.

Sums of the rest are those of the group less those of the slice. What cannot be taken off so (the lowest, deviations,
differences that would lose their digits) is folded anew without the slice, in `refold`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import inf
from typing import NamedTuple

import numpy as np
import polars as pl

from polars_mlmetrics.engine.replicates import LOST, WITHOUT
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.arithmetic import cuts, ratio, whole_times
from polars_mlmetrics.formula.measure import Node
from polars_mlmetrics.intervals.interval import NOISE, coarseness_of, range_of
from polars_mlmetrics.intervals.student_t import error_of_constant, standard_error
from polars_mlmetrics.slice_search.count import CellSums, Sums
from polars_mlmetrics.slice_search.encode import GROUP, Encoded, FoldedTables, Numbers, Tables

CELL = f"{INTERNAL}cell"

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


class Contrasts:
    """The differences between slices and the rest of their groups. `sign` is 1 where low values are bad."""

    def __init__(self, cells: CellSums, sign: int) -> None:
        self._cells = cells
        self._encoded = cells.encoded
        self._sign = sign
        self._range, self._coarseness = range_of(self._encoded.metric), coarseness_of(self._encoded.metric)

    def of_places(self, places: Numbers, buckets: slice, refold: Refold) -> pl.DataFrame:
        """The contrasts of the cells at some places, in some of the buckets."""
        cells = self._cells
        own = each(lambda array: array[cells.find(places), buckets], cells.sums)
        whole = each(lambda array: array[cells.of_groups, buckets], cells.sums)
        n_buckets = (cells.rows[cells.of_groups, buckets, 0] > 0).sum(axis=1)
        return self.of(own, whole, cells.lattice.groups(places), n_buckets, refold)

    def of(self, own: Sums, whole: Sums, groups: Numbers, n_buckets: Numbers, refold: Refold) -> pl.DataFrame:
        """The contrasts of slices, from their sums and those of whole groups, of which each has so many buckets."""
        if not self._encoded.is_of_sums:
            return self._table(refold(np.arange(len(groups))), n_buckets[groups])
        size = 2 * max(array[0].size for sums in own for array in sums.values())
        ends = [0, *cuts(len(groups), whole_times(AT_ONCE, len(groups) * size)), len(groups)]
        some = [slice(*pair) for pair in pairwise(ends)]
        parts = [self._sides(_at(own, each), _at(whole, groups[each])) for each in some]
        sides = Sides(*(np.concatenate(arrays) for arrays in zip(*(sides for sides, _ in parts), strict=True)))
        lost = np.flatnonzero(np.concatenate([is_lost for _, is_lost in parts]))
        for array, anew in zip(sides, refold(lost), strict=True) if lost.size else ():
            array[lost] = anew
        return self._table(sides, n_buckets[groups])

    def values(self, sums: Sums, metrics: Sequence[Node] = ()) -> Numbers:
        """The metric of sums (or the sum of others): cells x buckets."""
        tables = {}
        for (kind, units), arrays in zip(self._cells.units.items(), sums, strict=True):
            n, times, n_units = next(iter(arrays.values())).shape
            keys = {CELL: np.repeat(np.arange(n), times * n_units)}
            keys[WITHOUT] = np.tile(np.repeat(np.arange(times), n_units), n)
            frame = pl.DataFrame(keys | {name: array.reshape(-1) for name, array in arrays.items()})
            at = pl.Series(np.tile(np.arange(n_units), n * times))
            tables[kind] = frame.with_columns(units[name].gather(at) for name in kind.units)
        by = [CELL, WITHOUT]
        plan = self._encoded.plan.again(FoldedTables(tables, by, self._encoded.plan.schema), by)
        wanted = [plan.value(metric) for metric in metrics or [self._encoded.metric]]
        value = pl.sum_horizontal(wanted, ignore_nulls=False).cast(pl.Float64).alias("value")
        found = plan.groups().select(*by, value).collect()
        if len(tables) > 1 or any(kind.units or kind.grain == "sample" for kind in tables):
            found = found.sort(by)
        values: Numbers = found["value"].to_numpy().reshape(n, times)
        return values

    def _sides(self, own: Sums, whole: Sums) -> tuple[Sides, Numbers]:
        """Both sides of slices, and where these are differences that have lost their digits."""
        inside, all_of = each(_without, own), each(_without, whole)
        rest = each(np.subtract, all_of, inside)
        value, other = np.split(self.values(each(lambda *sides: np.concatenate(sides), inside, rest)), 2)
        rest_by_bucket = each(_less, whole, own)
        bound = np.zeros(len(value))
        for side in (own, rest_by_bucket) if self._coarseness else ():
            bound += self.values(each(lambda array: array.sum(axis=1, keepdims=True), side), self._coarseness)[:, 0]
        alone = self._alone(value, own), self._alone(other, rest_by_bucket)
        return Sides(value, other, *alone, bound), _have_lost(own, inside, rest, all_of)

    def _alone(self, values: Numbers, by_bucket: Sums) -> Numbers:
        found, constant = np.full(len(values), np.nan), is_constant(values)
        if constant.any():
            found[constant] = np.isfinite(self.values(_at(by_bucket, constant))).sum(axis=1)
        return found

    def _table(self, sides: Sides, n_buckets: Numbers) -> pl.DataFrame:
        """`value`, `rest`, `gap` (positive is worse), `se`, `t`, and the `bound` that bins may put the gap off by."""
        gaps = self._sign * (sides.rest - sides.value)
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
            own = error_of_constant(pl.col(side), units, moved.shape[1], self._range)
            square += pl.when(units.is_not_null()).then(own**2).otherwise(0.0)
        is_known = pl.col("squares").is_not_null() & (pl.col("n") >= 2)
        error = pl.when(is_known).then(square.sqrt()).alias("se")
        found = pl.DataFrame(columns, nan_to_null=True).with_columns(error)
        return found.select("value", "rest", "gap", "se", t_of(pl.col("gap"), pl.col("se")).alias("t"), "bound")


def each(change: Callable[..., Numbers], *sums: Sums) -> Sums:
    """Sums, each changed, together with the same ones of others."""
    of_kinds = zip(*sums, strict=True)
    return [{name: change(*(one[name] for one in of_kind)) for name in of_kind[0]} for of_kind in of_kinds]


def _at(sums: Sums, cells: Numbers | slice) -> Sums:
    return each(lambda array: array[cells], sums)


def is_constant(values: Numbers) -> Numbers:
    """Where no bucket moves the value."""
    found: Numbers = (np.abs(values[:, :-1] - values[:, -1:]) <= NOISE * np.abs(values[:, -1:])).all(axis=1)
    return found


def values_of_groups(encoded: Encoded, tables: Tables) -> pl.Series:
    """The values of whole groups, from tables by GROUP."""
    plan = encoded.plan.again(FoldedTables(tables, [GROUP], encoded.plan.schema), [GROUP])
    return plan.groups().select(plan.value(encoded.metric).cast(pl.Float64).alias("value")).collect()["value"]


def t_of(gap: pl.Expr, error: pl.Expr) -> pl.Expr:
    """A difference in standard errors. One that does not vary is as sure as can be."""
    endless = pl.when(gap > 0).then(inf).when(gap < 0).then(-inf).otherwise(0.0)
    return pl.when(error > 0).then(ratio(gap, error)).when(error == 0).then(endless)


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
    found = np.zeros(len(next(iter(own[0].values()))), dtype=bool)
    for arrays in zip(own, inside, rest, whole, strict=True):
        for name in (name for name, array in arrays[0].items() if array.dtype.kind == "f"):
            mine, left, others, every = (sums[name] for sums in arrays)
            cell, without = left[:, -1:], left[:, :-1]
            is_lost = (np.abs(without) <= LOST * np.abs(cell)) & (mine != 0) & (cell != 0)
            found |= (is_lost | ~np.isfinite(cell)).any(axis=(1, 2))
            is_lost = (np.abs(others) <= LOST * np.abs(every)) & (every != 0) & (others != 0)
            found |= is_lost.any(axis=(1, 2))
    return found
