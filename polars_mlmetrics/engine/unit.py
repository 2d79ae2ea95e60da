"""What a formula is written for: one unit of rows. Averages are not its business, nor how it is run."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal, Protocol

import polars as pl

from polars_mlmetrics.data.roles import Door, Grain
from polars_mlmetrics.engine.statistics import SharedStatistics
from polars_mlmetrics.errors import MetricError

Monoid = Literal["sum", "min", "max"]


@dataclass(frozen=True)
class Statistic:
    """A named row expression and the monoid that folds it; the same monoid folds states."""

    name: str
    row: pl.Expr
    monoid: Monoid

    def fold(self) -> pl.Expr:
        """The rows, folded."""
        return folded(self.row, self.monoid)

    def merge(self) -> pl.Expr:
        """The statistic of many units, merged into one."""
        return folded(pl.col(self.name), self.monoid)


def folded(values: pl.Expr, monoid: Monoid) -> pl.Expr:
    """Values, folded by a monoid; nulls are left out."""
    return {"sum": values.sum, "min": values.min, "max": values.max}[monoid]()


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
    def within(self, name: str, value: pl.Expr, grain: Grain) -> pl.Expr:
        """A value worked out in the unit of another grain, on each row."""

    @abstractmethod
    def on_rows(self, name: str, value: pl.Expr) -> pl.Expr:
        """A value of this unit, back on its rows."""


class Unit(SharedStatistics):
    """The rows a formula is written for.

    Read the rows by `score`, `probability`, `truth`, `soft_truth`, `gain`, `real`, or `prediction` and `actual`;
    fold them by `sum`, `count`, `min`, `max` or one of the shared statistics. Between them is ordinary Polars.
    """

    def __init__(self, door: Door, grain: Grain, reading: Reading) -> None:
        self.door = door
        self.grain = grain
        self.included = door.included(grain)
        self.mask = reading.mask(door, grain)
        self.unknown: dict[str, pl.Expr] = {}
        self.columns_read: list[str] = []
        self._reading = reading
        self.reads: set[Grain] = set()

    # -- readings of a row -------------------------------------------------------------------------------------

    @property
    def score(self) -> pl.Expr:
        """The score as Float64; NaN is broken."""
        return self.door.score()

    @property
    def probability(self) -> pl.Expr:
        """The score as a probability; outside [0, 1] is broken."""
        return self.door.probability()

    @property
    def logit(self) -> pl.Expr:
        """The score as a logit; what is not finite is broken."""
        return self.door.logit()

    @property
    def prediction(self) -> pl.Expr:
        """The score as it is: a class name, an id, any type."""
        return self.door.prediction()

    @property
    def truth(self) -> pl.Expr:
        """The truth as a Boolean; a number that is neither 0 nor 1 is broken."""
        return self.door.truth()

    @property
    def soft_truth(self) -> pl.Expr:
        """The truth as a number in [0, 1]."""
        return self.door.soft_truth()

    @property
    def has_boolean_truth(self) -> bool:
        """Whether the truth is known to be Boolean. False says nothing: an expression does not know its table."""
        return self.door.has_boolean_truth

    @property
    def gain(self) -> pl.Expr:
        """The truth as a grade, 0 or more."""
        return self.door.gain()

    @property
    def real(self) -> pl.Expr:
        """The truth as any real number."""
        return self.door.real()

    @property
    def actual(self) -> pl.Expr:
        """The truth as it is: a class name, an id, any type."""
        return self.door.actual()

    @property
    def weight(self) -> pl.Expr:
        """The weight of a row. Inside a sample it is 1: the sample's own weight acts when samples are averaged."""
        return self.door.weight() if self.is_weighted else pl.lit(1, dtype=pl.Int64)

    @property
    def rank(self) -> pl.Expr:
        """How many labels of the row's sample score at least as high."""
        return self._rank("rank", self.score, "max")

    @property
    def above(self) -> pl.Expr:
        """How many labels of the row's sample score higher."""
        return self._rank("above", self.score, "min") - 1

    @property
    def true_rank(self) -> pl.Expr:
        """On a true row: how many true labels of its sample score at least as high."""
        return self._rank("true_rank", pl.when(self.truth).then(self.score), "max")

    @property
    def true_above(self) -> pl.Expr:
        """On a true row: how many true labels of its sample score higher."""
        return self._rank("true_above", pl.when(self.truth).then(self.score), "min") - 1

    def _rank(self, name: str, score: pl.Expr, ties: Literal["min", "max"]) -> pl.Expr:
        return self._within_sample(name, self._of_sample(score).rank(ties, descending=True).cast(pl.Int64))

    def within(self, name: str, row: pl.Expr, monoid: Monoid, grain: Grain = "sample") -> pl.Expr:
        """A fold over another unit, back on the rows: the highest negative of my sample."""
        if grain != "sample":
            raise MetricError(f"within looks inside a sample, not inside a {grain}")
        return self._within_sample(name, folded(self._of_sample(row), monoid))

    def _of_sample(self, row: pl.Expr) -> pl.Expr:
        return pl.when(self.door.included("sample") & self.included).then(row)

    def _within_sample(self, name: str, value: pl.Expr) -> pl.Expr:
        if self.grain != "sample":
            self.reads.add("sample")
        return self._reading.within(name, value, "sample")

    def on_rows(self, name: str, value: pl.Expr) -> pl.Expr:
        """A value of this unit, back on its rows.

        A statistic that reads it is folded over those rows alone on which it is not null: a second look at few units
        is cheap where a second look at all of them is not.
        """
        return self._reading.on_rows(name, value)

    # -- folds -------------------------------------------------------------------------------------------------

    def sum(self, name: str, row: pl.Expr) -> pl.Expr:
        """Σw·row over the included rows."""
        return self._fold(name, self._weighted(row), "sum")

    def count(self, name: str, rows: pl.Expr) -> pl.Expr:
        """How many rows it holds for, each counted once whatever its weight."""
        self.columns_read += rows.meta.root_names()
        return self._reading.fold(Statistic(name, (self.mask & rows).cast(pl.Int64), "sum"))

    def tally(self, name: str, rows: pl.Expr) -> pl.Expr:
        """Σw over the rows it holds for."""
        return self.sum(name, rows) if self.is_weighted else self.count(name, rows)

    def rows(self) -> pl.Expr:
        """Σw: how many rows there are, weighted."""
        return self.sum("rows", pl.lit(1)) if self.is_weighted else self.included_rows()

    @property
    def is_weighted(self) -> bool:
        """Whether rows may differ in weight."""
        return self.door.table.weight is not None and self.grain != "sample"

    def min(self, name: str, row: pl.Expr) -> pl.Expr:
        """The lowest value of the included rows."""
        return self._fold(name, row, "min")

    def max(self, name: str, row: pl.Expr) -> pl.Expr:
        """The highest value of the included rows."""
        return self._fold(name, row, "max")

    def runs(self, key: pl.Expr, *rows: pl.Expr, few: bool = False) -> tuple[pl.Expr, ...]:
        """Σw·row over the rows of equal key, in descending order of the key, one sum for each row expression.

        A formula may cumulate them and must reduce them to one value. Each is named by `.alias`. Say `few` where
        there are few keys, such as bins: then they can share a fold with the labels.
        """
        included = [pl.when(self.mask).then(self._weighted(row)).alias(row.meta.output_name()) for row in rows]
        return self._reading.runs(pl.when(self.mask).then(key).alias(key.meta.output_name()), included, few=few)

    def _weighted(self, row: pl.Expr) -> pl.Expr:
        if not self.is_weighted:
            return row * self.weight
        # A weight of 0 takes the row out, also where 0 times infinity would be NaN.
        return pl.when(self.weight != 0).then(row * self.weight)

    def _fold(self, name: str, row: pl.Expr, monoid: Monoid) -> pl.Expr:
        self.columns_read += row.meta.root_names()
        return self._reading.fold(Statistic(name, pl.when(self.mask).then(row), monoid))

    # -- what the engine asks ----------------------------------------------------------------------------------

    def label(self) -> pl.Expr:
        """The label that a unit of grain label is."""
        return self._reading.key(self.door.table.label)

    def support(self) -> pl.Expr:
        """Σw·t, the truth being 0 / 1 or a share of it; Σw where it was read as anything else."""
        read = self.door.guards.keys()
        if "soft_truth" in read:
            return self.sum("soft_support", self.soft_truth)
        return self.positives() if read.isdisjoint({"real", "gain", "actual"}) else self.rows()

    def reads_score(self) -> None:
        """Say that the score is read, where only its raw form is."""
        self.door.score()

    def reads_label(self) -> None:
        """Say that the label of a row is read, so that a row without one cannot count."""
        self.reads.add("label")

    def needs_known(self, name: str, rows: pl.Expr) -> None:
        """Say that the value cannot be known where there is such a row."""
        self.unknown[name] = rows

    def included_rows(self) -> pl.Expr:
        """How many rows are included, unweighted."""
        return self.count("n_rows", pl.lit(True))

    def excluded_rows(self) -> pl.Expr:
        """How many rows in scope are left out for a null."""
        return self._reading.fold(
            Statistic("n_excluded", (self.door.in_scope() & ~self.included).cast(pl.Int64), "sum")
        )

    def broken_rows(self) -> pl.Expr:
        """How many included rows are broken for what was read; where a formula looks across, their whole sample is."""
        self.door.weight()  # acts when units are averaged, even where no statistic of theirs is weighted
        counts = [self._broken(name, rows) for name, rows in self.door.guards.items() if rows is not None]
        return pl.sum_horizontal(counts) if counts else pl.lit(0, dtype=pl.Int64)

    def _broken(self, name: str, rows: pl.Expr) -> pl.Expr:
        if "sample" in self.reads:
            sample_broken = self._reading.within(f"broken_{name}", self._of_sample(rows).any(), "sample")
            return self.count(f"broken_{name}_in_sample", sample_broken)
        return self.count(f"broken_{name}", rows)

    def unknown_rows(self) -> pl.Expr | None:
        """How many included rows keep the value from being known; None where nothing can."""
        counts = [self.count(f"unknown_{name}", rows) for name, rows in self.unknown.items()]
        return pl.sum_horizontal(counts) if counts else None
