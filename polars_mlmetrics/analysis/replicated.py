"""One metric on the way from its values without each bucket, or in each draw, to its interval."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import polars as pl

from polars_mlmetrics.analysis.bounds import (
    normal_quantile,
    standard_error,
    units_behind,
    units_in,
    wilson,
)
from polars_mlmetrics.analysis.confidence import Confidence
from polars_mlmetrics.analysis.parts import core_of, is_mean_of, is_mean_of_labels, planned_in
from polars_mlmetrics.engine.draws import DRAW, DRAWS
from polars_mlmetrics.engine.pairs import PairPlan
from polars_mlmetrics.engine.plan import Plan
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.formula.measure import Node, Planned

NOISE = 1e-12
"""A replicate that differs from the value by less than this share of it differs by rounding alone."""

Replicable = Plan | PairPlan
"""A plan whose values are looked at without each bucket."""


class Limits(NamedTuple):
    """How an interval is made, and what its ends may not go beyond."""

    method: str
    low: float
    high: float


class Replicated:
    """One metric on the way from its replicates to its interval: the columns of each step."""

    def __init__(
        self, name: str, metric: Node, rows: pl.Expr | None, limits: Limits, plan: Replicable, confidence: Confidence
    ) -> None:
        self._name = name
        self._core, self._functions = core_of(metric)
        self._rows = rows
        self._limits = limits
        self._plan = plan
        self._confidence = confidence
        self._of_clusters = [*planned_in(self._core)] if is_mean_of(self._core, confidence.cluster) else []

    @property
    def method(self) -> str:
        """How the ends are found."""
        return self._limits.method

    def column(self, what: str) -> pl.Expr:
        """A column of the table."""
        return pl.col(f"{self._name}_{what}")

    @property
    def share(self) -> pl.Expr:
        """The largest share of the rows that is in one bucket; null where they were not counted."""
        return pl.lit(None, dtype=pl.Float64) if self._rows is None else self.column("share")

    def _as(self, what: str, column: pl.Expr) -> pl.Expr:
        return column.alias(f"{self._name}_{what}")

    def values(self) -> list[pl.Expr]:
        """The value, and how many labels stand behind it."""
        value = self._plan.value(self._core).cast(pl.Float64)
        labels = self._defined(part for part in planned_in(self._core) if is_mean_of_labels(part))
        samples = self._defined(self._of_clusters)
        size = self._plan.size(self._core)
        columns = {"value": value, "size": size, "labels": labels, "samples": samples}
        return [self._as(name, column) for name, column in columns.items()]

    def _defined(self, measures: Iterable[Planned]) -> pl.Expr:
        """How many units of some measures have a value."""
        defined = [pl.col(self._plan.add(measure).defined_units) for measure in measures]
        return pl.sum_horizontal([pl.lit(0), *defined])

    def of_whole(self) -> list[pl.Expr]:
        """The same of all buckets together, and how many samples stand behind it."""
        names = ("value", "size", "labels", "samples")
        return [self._as(f"{name}_of_all", self.column(name)) for name in names]

    def alone(self) -> list[pl.Expr]:
        """What a bucket has alone."""
        rows = [] if self._rows is None else [self._as("rows", self._rows)]
        return [self._as("has_value", self._plan.value(self._core).is_not_null()), *rows]

    def difference(self) -> list[pl.Expr]:
        """How far the value moves without a bucket."""
        return [self._as("moved", self._moved())]

    def _moved(self) -> pl.Expr:
        moved = self.column("value") - self.column("value_of_all")
        is_noise = moved.abs() <= NOISE * self.column("size_of_all")
        return pl.when(is_noise).then(0.0).otherwise(moved)

    def sums(self) -> list[pl.Expr]:
        """What all buckets of a group say together."""
        value, moved = self.column("value"), self.column("moved")
        tells = self.column("has_value") | (moved != 0).fill_null(False)
        columns = {
            "value_of_all": self.column("value_of_all").first(),
            "samples_of_all": self.column("samples_of_all").first(),
            "buckets": tells.sum().cast(pl.Int64),
            "squares": (moved * moved).sum(),
            "is_known": value.is_finite().fill_null(False).all(),
            "lost": (value.is_null() | (self.column("labels") < self.column("labels_of_all"))).any(),
        }
        if self._rows is not None:
            columns["share"] = ratio(self.column("rows").max(), self.column("rows").sum())
        return [self._as(name, column) for name, column in columns.items()]

    def errors(self) -> list[pl.Expr]:
        """The standard error, and the quantile of Student's t."""
        buckets = self.column("buckets")
        is_known = self.column("is_known") & self.column("value_of_all").is_finite() & (buckets >= 2)
        se = pl.when(is_known).then(standard_error(buckets, self.column("squares")))
        quantile = pl.lit(self._confidence.quantiles()).gather(buckets)
        return [self._as("se", se), self._as("t", quantile)]

    def units(self) -> list[pl.Expr]:
        """How many independent units of a bounded value would have this standard error."""
        if self.method != "kg_wilson":
            return []
        share, error = self._in_range(self.column("value_of_all")), ratio(self.column("se"), pl.lit(self._width))
        varies = (error > 0) & (share > 0) & (share < 1)
        # Where nothing varies, there is what was counted to go by.
        buckets = units_in(self.column("buckets"), self._confidence.buckets)
        counted = self.column("samples_of_all") if self._of_clusters else buckets
        units = pl.when(varies).then(units_behind(share, error)).otherwise(counted)
        return [self._as("units", units * ratio(pl.lit(self._z), self.column("t")) ** 2)]

    def ends(self) -> list[pl.Expr]:
        """The ends of the interval."""
        low, high = self._ends()
        is_known = self.column("se").is_not_null()
        ends = {"low": low, "high": high}
        return [self._as(name, pl.when(is_known).then(self._applied(end))) for name, end in ends.items()]

    def _ends(self) -> tuple[pl.Expr, pl.Expr]:
        return self._wilson() if self.method == "kg_wilson" else self._symmetric()

    def is_degenerate(self) -> pl.Expr:
        """Whether nothing varies, so that there are no ends."""
        return (self.column("se") == 0) & (self.method == "t")

    def _symmetric(self) -> tuple[pl.Expr, pl.Expr]:
        low, high = self._limits.low, self._limits.high
        value, half = self.column("value_of_all"), self.column("t") * self.column("se")
        half = pl.when(self.column("se") > 0).then(half)
        return (value - half).clip(low, high), (value + half).clip(low, high)

    def _wilson(self) -> tuple[pl.Expr, pl.Expr]:
        low, high = wilson(self._in_range(self.column("value_of_all")), self.column("units"), self._z)
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


class Drawn(Replicated):
    """One metric on the way from its draws to its interval. Of replicates it is known how many buckets tell of it."""

    @property
    def method(self) -> str:
        """How the ends are found."""
        return "bootstrap"

    def drawn(self) -> pl.Expr:
        """The value of a draw."""
        value = self.column("value_of_all") + self._moved()
        is_draw = pl.col(DRAW).is_not_null() & value.is_finite()
        return self._as("drawn", pl.when(is_draw).then(value))

    def quantiles(self) -> list[pl.Expr]:
        """What all draws of a group say together."""
        drawn, labels, beyond = self.column("drawn"), self.column("labels"), (1 - self._confidence.level) * 0.5
        columns = {
            "lowest": drawn.quantile(beyond, "linear"),
            "highest": drawn.quantile(1 - beyond, "linear"),
            "deviation": drawn.std(),
            "draws": drawn.count(),
            "lost_in_draws": (drawn.count() < DRAWS) | (labels.min() < labels.max()),
        }
        return [self._as(name, column) for name, column in columns.items()]

    def errors(self) -> list[pl.Expr]:
        """The standard error, of at least half of the draws."""
        is_known = self.column("value_of_all").is_finite() & (self.column("buckets") >= 2)
        is_known &= self.column("draws") * 2 >= DRAWS
        lost = self.column("lost_in_draws")
        if self._core.interval_kind == "total":
            # What was not drawn has a total of 0, and no value that says so.
            is_known &= ~lost
        return [self._as("se", pl.when(is_known).then(self.column("deviation"))), self._as("lost", lost)]

    def is_degenerate(self) -> pl.Expr:
        """Whether nothing varies, so that there are no ends."""
        return self.column("se").is_not_null() & (self.column("lowest") == self.column("highest"))

    def _ends(self) -> tuple[pl.Expr, pl.Expr]:
        low, high = (pl.when(~self.is_degenerate()).then(self.column(end)) for end in ("lowest", "highest"))
        return low, high
