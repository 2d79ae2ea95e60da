"""What a formula is read into: statistics, which stand as expressions, or as the columns of a plan."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import polars as pl

from polars_mlmetrics.data.roles import Door, Grain

Monoid = Literal["sum", "min", "max"]

OfPlace = Callable[[pl.Expr], pl.Expr]
"""A value that a place has, whoever holds it."""


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

    @property
    def bare(self) -> pl.Expr:
        """What is folded of rows that all count."""
        return self.row if self.counted is None else self.counted

    def fold(self) -> pl.Expr:
        """The rows, folded."""
        return folded(self.row, self.monoid)

    def merge(self) -> pl.Expr:
        """The statistic of many units, merged into one."""
        return folded(pl.col(self.name), self.monoid)


def folded(values: pl.Expr, monoid: Monoid) -> pl.Expr:
    """Values, folded by a monoid; nulls are left out."""
    return {"sum": values.sum, "min": values.min, "max": values.max}[monoid]()


def only_rows_of(row: pl.Expr) -> pl.Expr | None:
    """The condition of a `when(condition).then(value)`, which is null elsewhere; None of anything else."""
    parts = row.meta.pop()
    is_conditional = len(parts) == 3 and row.meta.eq(pl.when(parts[0]).then(parts[2]))
    return parts[0] if is_conditional else None


class Reading(Protocol):
    """How the statistics of a unit become Polars: at once, as one expression, or as the columns of a plan."""

    @abstractmethod
    def mask(self, door: Door, grain: Grain) -> pl.Expr:
        """The rows that a fold counts."""

    @abstractmethod
    def fold(self, statistic: Statistic) -> pl.Expr:
        """The value of a statistic of the unit."""

    @abstractmethod
    def key(self, column: str) -> pl.Expr:
        """The unit's own value of a column that is one of its keys."""

    @abstractmethod
    def runs(self, key: pl.Expr, rows: list[pl.Expr], *, few: bool) -> tuple[pl.Expr, ...]:
        """The sums over the rows of equal key, in descending order of the key; `few` where the keys are."""

    @abstractmethod
    def run_keys(self, key: pl.Expr) -> pl.Expr:
        """The keys of the runs, in descending order."""

    @abstractmethod
    def within(self, name: str, value: pl.Expr, grain: Grain) -> pl.Expr:
        """A value worked out in the unit of another grain, on each row."""

    @abstractmethod
    def stands(self, name: str, value: pl.Expr, grain: Grain) -> pl.Expr:
        """How a row stands by its score in a unit of a grain; `value` is that, worked out in the unit."""

    @abstractmethod
    def shares(self, name: str, of_place: OfPlace, value: pl.Expr, grain: Grain) -> pl.Expr:
        """What the rows of a tie share alike; `value` is that, worked out in the unit."""

    @abstractmethod
    def on_rows(self, name: str, value: pl.Expr) -> pl.Expr:
        """A value of this unit, back on its rows."""
