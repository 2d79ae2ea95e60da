"""Contrasts: cells against the rest of their group, with what each bucket moves the difference by."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from polars_mlmetrics.engine.partials import Partial, PartialTable
from polars_mlmetrics.engine.plan import Plan
from polars_mlmetrics.engine.replicates import LOST, WITHOUT
from polars_mlmetrics.engine.sources import Source
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.arithmetic import cuts, whole_times
from polars_mlmetrics.formula.measure import Node
from polars_mlmetrics.intervals.interval import NOISE, coarseness_of, range_of
from polars_mlmetrics.intervals.student_t import error_of_constant, standard_error

Numbers: TypeAlias = NDArray[Any]

CELL, UNIT = f"{INTERNAL}cell", f"{INTERNAL}unit"

MOST = 4_000_000
"""How many rows a table of cells, buckets and units has at once, about."""


class PartialKind(NamedTuple):
    """A key that tells one partial of a plan from the others."""

    grain: str
    run: str | None
    whole_samples: bool
    units: tuple[str, ...]

    @classmethod
    def of(cls, partial: Partial, by: Sequence[str]) -> PartialKind:
        """That of a partial by these keys, whatever they are."""
        keys = partial.by if partial.grain == "sample" else partial.fold.keys
        units = tuple(key for key in keys if key not in by)
        return cls(partial.grain, partial.values.run, partial.whole_samples, units)


class FoldedTables(Source):
    """A source of tables that are folded already."""

    def __init__(self, tables: Mapping[PartialKind, pl.LazyFrame], by: Sequence[str], schema: pl.Schema) -> None:
        self.tables = tables
        self.by = list(by)
        self.schema = pl.Schema({**schema, **{key: pl.Int64() for key in by}})

    def partials(self, asked: Sequence[Partial], by: list[str]) -> list[PartialTable]:
        return [(self.tables[PartialKind.of(each, self.by)], by) for each in asked]


@dataclass
class Grid:
    """The sums of some cells (or groups) by bucket and unit: an array each, of cells x buckets x units."""

    sums: list[dict[str, Numbers]]
    """One of each kind."""

    def each(self, change: Callable[..., Numbers], *others: Grid) -> Grid:
        """The columns of each sum, and of the same sum of the rest."""
        of_kinds = zip(self.sums, *(other.sums for other in others), strict=True)
        return Grid([{name: change(*(sums[name] for sums in of_kind)) for name in of_kind[0]} for of_kind in of_kinds])

    def __add__(self, other: Grid) -> Grid:
        return self.each(np.add, other)

    def __sub__(self, other: Grid) -> Grid:
        return self.each(np.subtract, other)

    def less(self, other: Grid) -> Grid:
        """The sums less those of a part; 0 where rounding is all that is left."""
        return self.each(_less, other)

    def of(self, cells: Numbers | slice) -> Grid:
        """The sums of some of the cells."""
        return self.each(lambda array: array[cells])

    def summed(self) -> Grid:
        """The sums of all buckets together."""
        return self.each(lambda array: array.sum(axis=1, keepdims=True))

    def without(self) -> Grid:
        """The sums without each bucket, and last those of all."""
        return self.each(_without)


def _less(whole: Numbers, part: Numbers) -> Numbers:
    left: Numbers = whole - part
    return np.where(np.abs(left) <= NOISE * np.abs(whole), 0, left) if left.dtype.kind == "f" else left


def _without(array: Numbers) -> Numbers:
    whole = array.sum(axis=1, keepdims=True)
    return np.concatenate([whole - array, whole], axis=1)


Again = Callable[[pl.DataFrame], pl.DataFrame]
"""A function that works out the contrasts of some slices in another way."""

CONTRAST = ["value", "rest", "whole", "gap", "se", "bound"]
"""The columns of a slice against the rest: `whole` is of the group, a positive gap is worse, and bins may put the gap
off by the bound."""


def error_of_gap(of_replicates: pl.Expr, buckets: int, range_: tuple[float, float]) -> pl.Expr:
    """The standard error of a gap, with that of a side which no bucket moves: where its `_alone` is known."""
    squares = of_replicates**2
    for side in ("value", "rest"):
        alone = pl.col(f"{side}_alone")
        own = error_of_constant(pl.col(side), alone, buckets, range_)
        squares += pl.when(alone.is_not_null()).then(own**2).otherwise(0.0)
    return squares.sqrt()


class Contrasts:
    """The differences between cells and the rest of their groups, from sums. `sign` is 1 where low values are bad."""

    def __init__(self, plan: Plan, metric: Node, units: Mapping[PartialKind, pl.DataFrame], sign: int) -> None:
        self._plan = plan
        self._metric = metric
        self._range, self._coarseness = range_of(metric), coarseness_of(metric)
        self._units = units
        self._sign = sign

    def of(
        self, slices: pl.DataFrame, own: Grid, whole: Grid, groups: Numbers, buckets: Numbers, again: Again
    ) -> pl.DataFrame:
        """Slices with their `CONTRAST`, from the sums of their cells and groups.

        `buckets` says how many of each group have rows. Where a difference of sums has lost its digits, the contrast is
        found `again`: these come last.
        """
        height = len(groups)
        size = 2 * max(max((a.shape[1] * a.shape[2] for a in sums.values()), default=1) for sums in own.sums)
        starts = [0, *cuts(height, whole_times(MOST, height * size)), height]
        parts = [self._of_some(own.of(slice(*ends)), whole, groups[slice(*ends)]) for ends in pairwise(starts)]
        gaps, values, rests, alone, is_right = (np.concatenate(each) for each in zip(*parts, strict=True))
        size_of_all = np.abs(values) + np.abs(rests)
        gap = np.where(np.abs(gaps[:, -1]) <= NOISE * size_of_all, 0.0, gaps[:, -1])
        moved = gaps[:, :-1] - gap[:, None]
        moved = np.where(np.abs(moved) <= NOISE * size_of_all[:, None], 0.0, moved)
        squares, n_buckets = (moved * moved).sum(axis=1), buckets[groups].astype(float)
        wholes = self._values(whole.summed(), 1)[groups, 0]
        columns = {"value": values, "rest": rests, "whole": wholes, "gap": gap, "squares": squares, "n": n_buckets}
        columns |= {"value_alone": alone[:, 0], "rest_alone": alone[:, 1], "bound": self._bounds(own, whole, groups)}
        error = pl.when(pl.col("squares").is_not_null(), pl.col("n") >= 2).then(
            error_of_gap(standard_error(pl.col("n"), pl.col("squares")), moved.shape[1], self._range)
        )
        found = pl.DataFrame(columns, nan_to_null=True).with_columns(error.alias("se"))
        table, lost = slices.hstack(found.select(CONTRAST)), pl.Series(~is_right)
        return (
            pl.concat([table.filter(~lost), again(slices.filter(lost)).select(table.columns)]) if lost.any() else table
        )

    def _bounds(self, own: Grid, whole: Grid, groups: Numbers) -> Numbers:
        """How far bins may put the gaps off: those of the cells and of the rests together."""
        found = np.zeros(len(groups))
        if self._coarseness:
            mine = own.summed()
            for side in (mine, whole.summed().of(groups).less(mine)):
                found += self._values(side, 1, self._coarseness)[:, 0]
        return found

    def _of_some(self, own: Grid, whole: Grid, groups: Numbers) -> tuple[Numbers, ...]:
        """The gaps without each bucket and of all, values, rests, `_alone` of both, and where they are right."""
        inside, all_of = own.without(), whole.without()
        rest = all_of.of(groups) - inside
        is_right = ~_has_lost(own, inside, rest, all_of.of(groups))
        times = next(iter(inside.sums[0].values())).shape[1]
        values = self._values(inside.each(lambda *sides: np.concatenate(sides), rest), times)
        value, other = values[: len(groups)], values[len(groups) :]
        gaps = self._sign * (other - value)
        alone = np.stack([self._alone(value, own), self._alone(other, whole.of(groups).less(own))], axis=1)
        return np.where(np.isfinite(gaps), gaps, np.nan), value[:, -1], other[:, -1], alone, is_right

    def _alone(self, values: Numbers, by_bucket: Grid) -> Numbers:
        """How many buckets have a value by themselves, where no bucket moves the value; NaN where one does."""
        of_all = values[:, -1:]
        is_constant = (np.abs(values[:, :-1] - of_all) <= NOISE * np.abs(of_all)).all(axis=1)
        found = np.full(len(values), np.nan)
        if is_constant.any():
            each = self._values(by_bucket.of(is_constant), values.shape[1] - 1)
            found[is_constant] = np.isfinite(each).sum(axis=1)
        return found

    def _values(self, grid: Grid, times: int, metrics: Sequence[Node] = ()) -> Numbers:
        """The metric of sums, or the sum of some others: cells x times."""
        tables = {}
        for (kind, units), sums in zip(self._units.items(), grid.sums, strict=True):
            n, _, n_units = next(iter(sums.values())).shape
            keys = {
                CELL: np.repeat(np.arange(n), times * n_units),
                WITHOUT: np.tile(np.repeat(np.arange(times), n_units), n),
            }
            frame = pl.DataFrame({**keys, **{name: array.reshape(-1) for name, array in sums.items()}})
            if kind.units:
                at = pl.Series(np.tile(np.arange(n_units), n * times))
                frame = frame.hstack([units[name].gather(at) for name in kind.units])
            tables[kind] = frame.lazy()
        by = [CELL, WITHOUT]
        plan = self._plan.again(FoldedTables(tables, by, self._plan.schema), by)
        wanted = [plan.value(metric) for metric in metrics or [self._metric]]
        value = pl.sum_horizontal(wanted, ignore_nulls=False)
        found = plan.groups().select(*by, value.cast(pl.Float64).alias("value")).collect()
        if len(tables) > 1 or any(kind.units or kind.grain == "sample" for kind in tables):
            found = found.sort(by)
        values: Numbers = found["value"].to_numpy().reshape(-1, times)
        return values


def _has_lost(own: Grid, inside: Grid, rest: Grid, whole: Grid) -> Numbers:
    """Where what is left of a cell without a bucket, or of a group without the cell, is a difference of rounding."""
    has_lost = np.zeros(len(next(iter(own.sums[0].values()))), dtype=bool)
    for mine, left, others, every in zip(own.sums, inside.sums, rest.sums, whole.sums, strict=True):
        for name in (name for name, array in mine.items() if array.dtype.kind == "f"):
            cell = left[name][:, -1:]
            is_lost = _is_small(left[name][:, :-1], cell) & (mine[name] != 0) & (cell != 0)
            has_lost |= (is_lost | ~np.isfinite(cell)).any(axis=(1, 2))
            is_lost = _is_small(others[name], every[name]) & (every[name] != 0) & (others[name] != 0)
            has_lost |= is_lost.any(axis=(1, 2))
    return has_lost


def _is_small(left: Numbers, whole: Numbers) -> Numbers:
    is_small: Numbers = np.abs(left) <= LOST * np.abs(whole)
    return is_small
