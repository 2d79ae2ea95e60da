"""Statistics: the sums and extremes that a formula is read into, as expressions or as columns of a plan."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

import polars as pl

from polars_mlmetrics.data.roles import Grain

Monoid = Literal["sum", "min", "max"]

OfPlace = Callable[[pl.Expr], pl.Expr]
"""A value that a place has, whoever holds it."""


@dataclass(frozen=True)
class Share:
    """Values of the places that the rows of a tie hold together; each row gets the same share."""

    of_place: OfPlace
    k: int | None = None
    """The last place that is worth something; None where all are."""

    def worth(self, place: pl.Expr) -> pl.Expr:
        """The worth of a place."""
        value = self.of_place(place)
        return value if self.k is None else pl.when(place <= self.k).then(value).otherwise(0.0)


@dataclass(frozen=True)
class Moment:
    """The columns that move a sum of deviations (or of products of two) to another shift.

    A part of the rows has sums of deviations from its own shift: its mean, rounded. From another shift they are the
    same plus what the distance of the two shifts adds.
    """

    weight: str
    """The statistic that is the weight of the rows."""
    shifts: tuple[str, ...]
    """The numbers that the one or two values were taken from, as they were on the rows."""
    deviations: tuple[str, ...] = ()
    """The weighted sums of how far the values lie from these: nothing but rounding. None for a shift itself."""

    @property
    def monoid(self) -> Monoid:
        """How it is folded: a shift is the same on all rows of a unit."""
        return "sum" if self.deviations else "max"

    def renamed(self, suffix: str) -> Moment:
        """The moment of the same statistics under names with a suffix."""
        of_all = (self.shifts, self.deviations)
        return Moment(self.weight + suffix, *(tuple(f"{name}{suffix}" for name in names) for names in of_all))

    def moved(self, name: str, shifts: Mapping[str, pl.Expr]) -> pl.Expr:
        """The statistic of this name from other shifts, by the names of its own."""
        weight = pl.col(self.weight)
        if not self.deviations:
            return shifts[name]
        steps = [pl.col(shift) - shifts[shift] for shift in self.shifts]
        if len(steps) == 1:
            return pl.col(name) + weight * steps[0]
        (left, right), (of_left, of_right) = steps, map(pl.col, self.deviations)
        return pl.col(name) + left * of_right + right * of_left + weight * left * right


@dataclass(frozen=True)
class Statistic:
    """A named row expression and the monoid that folds it; the same monoid folds states."""

    name: str
    row: pl.Expr
    monoid: Monoid
    counted: pl.Expr | None = None
    """The row expression where it is known that the row counts; None where it is the same."""
    only: pl.Expr | None = None
    """The rows outside of which it is null; None where that is not known."""
    is_count: bool = False
    """Whether it counts rows, and so is never below 0."""
    moment: Moment | None = None
    """The columns that a merge needs, if it is a sum of deviations from a shift, or a shift."""

    @classmethod
    def count(cls, name: str, mask: pl.Expr, rows: pl.Expr) -> Statistic:
        """How many rows of a mask something holds for. Polars sums bytes as Int64."""
        return cls(name, (mask & rows).cast(pl.Int8), "sum", rows.cast(pl.Int64), is_count=True)

    @property
    def bare(self) -> pl.Expr:
        """The expression to fold where all rows count."""
        return self.row if self.counted is None else self.counted

    def fold(self) -> pl.Expr:
        """The rows, folded."""
        return folded(self.row, self.monoid)

    def merge(self) -> pl.Expr:
        """The statistic of many units, merged into one."""
        return folded(pl.col(self.name), self.monoid)

    @cached_property
    def reads(self) -> frozenset[str]:
        """The names of the columns in `bare`: those that it reads where every row is known to count."""
        return frozenset(self.bare.meta.root_names())


def folded(values: pl.Expr, monoid: Monoid) -> pl.Expr:
    """Values, folded by a monoid; nulls are left out."""
    return {"sum": values.sum, "min": values.min, "max": values.max}[monoid]()


def merged(statistics: Iterable[Statistic]) -> list[pl.Expr]:
    """The statistics of many units, each merged into one under its own name."""
    return [statistic.merge().alias(statistic.name) for statistic in statistics]


def only_rows_of(row: pl.Expr) -> pl.Expr | None:
    """The condition of a `when(condition).then(value)`, which is null elsewhere; None of anything else."""
    parts = row.meta.pop()
    is_conditional = len(parts) == 3 and row.meta.eq(pl.when(parts[0]).then(parts[2]))
    return parts[0] if is_conditional else None


class Reading(Protocol):
    """How the statistics of a unit become Polars: at once, as one expression, or as the columns of a plan."""

    keeps_rows_without_key: bool
    """Whether a fold counts rows without the key of a unit too: as a unit of their own."""
    has_columns: bool
    """Whether a value of another unit is a column, which another window may read."""

    @abstractmethod
    def fold(self, statistic: Statistic) -> pl.Expr:
        """The value of a statistic of the unit."""

    @abstractmethod
    def judged(self, included: pl.Expr, mask: pl.Expr, broken: Mapping[str, pl.Expr]) -> tuple[pl.Expr, pl.Expr]:
        """Whether the unit has a row of the mask, given how many it has; and whether one of them is broken.

        The broken rows are told by what they are broken for. Each answer is null or False where it is not so.
        """

    @abstractmethod
    def key(self, column: str) -> pl.Expr:
        """The unit's own value of a column that is one of its keys."""

    @abstractmethod
    def runs(self, key: pl.Expr, rows: list[pl.Expr], *, cells: int | None) -> tuple[pl.Expr, ...]:
        """The sums over the rows of equal key, in descending order of the key, of which there are so many."""

    @abstractmethod
    def by_label(self, label: pl.Expr, rows: list[pl.Expr]) -> tuple[pl.Expr, ...]:
        """The sums over the rows of each label."""

    @abstractmethod
    def run_keys(self, key: pl.Expr) -> pl.Expr:
        """The keys of the runs, in descending order."""

    @abstractmethod
    def within(self, name: str, value: pl.Expr, grain: Grain) -> pl.Expr:
        """A value of the unit of another grain, on each row."""

    @abstractmethod
    def stands(self, name: str, value: pl.Expr, grain: Grain) -> pl.Expr:
        """The rank of a row by its score in a unit of a grain; `value` is the rank, computed in the unit."""

    @abstractmethod
    def shares(self, name: str, share: Share, value: pl.Expr, grain: Grain) -> pl.Expr:
        """A value that the rows of a tie share equally; `value` is the share, computed in the unit."""

    @abstractmethod
    def on_rows(self, name: str, value: pl.Expr) -> pl.Expr:
        """A value of this unit, back on its rows."""
