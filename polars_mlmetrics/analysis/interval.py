"""One interval: from a value, its standard error and the buckets behind it to its ends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import polars as pl

from polars_mlmetrics.analysis.bounds import normal_quantile, units_behind, units_in, wilson
from polars_mlmetrics.analysis.confidence import Confidence
from polars_mlmetrics.analysis.parts import core_of
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.formula.measure import Node

NOISE = 1e-12
"""A value that moves by less than this share of itself moves by rounding alone."""


def unless_noise(difference: pl.Expr, size: pl.Expr) -> pl.Expr:
    """A difference of values of this size; 0 where rounding alone makes it. Of a NaN it is NaN."""
    return pl.when(difference.is_finite() & (difference.abs() <= NOISE * size)).then(0.0).otherwise(difference)


class Limits(NamedTuple):
    """How an interval is made, and what its ends may not go beyond."""

    method: str
    low: float
    high: float


class Interval(ABC):
    """One metric on the way to its interval, in columns of a table of groups (or units): those of each step.

    It starts from a table that has, of each group, the value (`value_of_all`), how many buckets the interval stands on
    (`buckets`), and what the standard error is made of.
    """

    def __init__(self, name: str, metric: Node, limits: Limits, confidence: Confidence) -> None:
        self._name = name
        self._core, self._functions = core_of(metric)
        self._limits = limits
        self._confidence = confidence

    @property
    def method(self) -> str:
        """How the ends are found."""
        return self._limits.method

    def column(self, what: str) -> pl.Expr:
        """A column of the table."""
        return pl.col(f"{self._name}_{what}")

    def _as(self, what: str, column: pl.Expr) -> pl.Expr:
        return column.alias(f"{self._name}_{what}")

    @property
    @abstractmethod
    def _se(self) -> pl.Expr:
        """The standard error; null where it is not known."""

    @property
    def _counted(self) -> pl.Expr:
        """How many independent units there are, about."""
        return units_in(self.column("buckets"), self._confidence.buckets)

    @property
    def share(self) -> pl.Expr:
        """The largest share of the rows that is in one bucket; null where they were not counted."""
        return self.column("share")

    @property
    def lost(self) -> pl.Expr:
        """Whether without one of the buckets there is no value, or no value of one of the labels behind it."""
        return pl.lit(False)

    @property
    def is_degenerate(self) -> pl.Expr:
        """Whether nothing varies, so that there are no ends."""
        return (self.column("se") == 0) & (self.method == "t")

    def errors(self) -> list[pl.Expr]:
        """The standard error, and the quantile of Student's t."""
        buckets = self.column("buckets").fill_null(0)
        is_known = self.column("value_of_all").is_finite() & (buckets >= 2)
        quantile = pl.lit(self._confidence.quantiles()).gather(buckets, null_on_oob=True)
        errors = {"buckets": buckets, "se": pl.when(is_known).then(self._se), "t": quantile}
        return [self._as(name, error) for name, error in errors.items()]

    def units(self) -> list[pl.Expr]:
        """How many independent units of a bounded value would have this standard error."""
        if self.method != "kg_wilson":
            return []
        share, error = self._in_range(self.column("value_of_all")), ratio(self.column("se"), pl.lit(self._width))
        # Where nothing varies, there is what was counted to go by: at an end of the range, or next to it by rounding.
        varies = (error > 0) & share.is_between(NOISE, 1 - NOISE)
        units = pl.when(varies).then(units_behind(share, error)).otherwise(self._counted)
        return [self._as("units", units * ratio(pl.lit(self._z), self.column("t")) ** 2)]

    def ends(self) -> list[pl.Expr]:
        """The ends of the interval."""
        is_known = self.column("se").is_not_null()
        ends = dict(zip(("low", "high"), self._ends(), strict=True))
        return [self._as(name, pl.when(is_known).then(self._applied(end))) for name, end in ends.items()]

    def _ends(self) -> tuple[pl.Expr, pl.Expr]:
        return self._wilson() if self.method == "kg_wilson" else self._symmetric()

    def _symmetric(self) -> tuple[pl.Expr, pl.Expr]:
        low, high = self._limits.low, self._limits.high
        value, half = self.column("value_of_all"), self.column("t") * self.column("se")
        half = pl.when(self.column("se") > 0).then(half)
        return (value - half).clip(low, high), (value + half).clip(low, high)

    def _wilson(self) -> tuple[pl.Expr, pl.Expr]:
        share = self._in_range(self.column("value_of_all"))
        low, high = wilson(share, self.column("units"), self._z)
        # At an end of the range the value is the end of the interval, but for rounding.
        low, high = pl.min_horizontal(low, share), pl.max_horizontal(high, share)
        return self._limits.low + self._width * low, self._limits.low + self._width * high

    def _in_range(self, value: pl.Expr) -> pl.Expr:
        """Where a value lies in its range, from 0 to 1."""
        return ratio(value - self._limits.low, pl.lit(self._width)).clip(0, 1)

    def _applied(self, end: pl.Expr) -> pl.Expr:
        for function in self._functions:
            end = getattr(end, function.function)(**dict(function.arguments))
        return end.cast(pl.Float64)

    @property
    def _width(self) -> float:
        return self._limits.high - self._limits.low

    @property
    def _z(self) -> float:
        return normal_quantile(self._confidence.level)
