"""One metric on the way from its values without each bucket, or in each draw, to its interval."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from polars_mlmetrics.analysis.bounds import (
    standard_error,
)
from polars_mlmetrics.analysis.confidence import Confidence
from polars_mlmetrics.analysis.interval import Interval, Limits, unless_noise
from polars_mlmetrics.analysis.parts import is_mean_of, is_mean_of_labels, planned_in
from polars_mlmetrics.engine.draws import DRAW, DRAWS
from polars_mlmetrics.engine.pairs import PairPlan
from polars_mlmetrics.engine.plan import Plan
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.formula.measure import Node, Planned

Replicable = Plan | PairPlan
"""A plan whose values are looked at without each bucket."""


class Replicated(Interval):
    """One metric on the way from its replicates to its interval: the columns of each step."""

    def __init__(
        self, name: str, metric: Node, rows: pl.Expr | None, limits: Limits, plan: Replicable, confidence: Confidence
    ) -> None:
        super().__init__(name, metric, limits, confidence)
        self._rows = rows
        self._plan = plan
        self._of_clusters = [*planned_in(self._core)] if is_mean_of(self._core, confidence.cluster) else []

    @property
    def _se(self) -> pl.Expr:
        is_known = self.column("is_known")
        return pl.when(is_known).then(standard_error(self.column("buckets"), self.column("squares")))

    @property
    def _counted(self) -> pl.Expr:
        return self.column("samples_of_all") if self._of_clusters else super()._counted

    @property
    def share(self) -> pl.Expr:
        return pl.lit(None, dtype=pl.Float64) if self._rows is None else super().share

    @property
    def lost(self) -> pl.Expr:
        return self.column("lost")

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
        return unless_noise(self.column("value") - self.column("value_of_all"), self.column("size_of_all"))

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

    @property
    def lost(self) -> pl.Expr:
        return self.column("lost_in_draws")

    @property
    def _se(self) -> pl.Expr:
        is_known = self.column("draws") * 2 >= DRAWS
        if self._core.interval_kind == "total":
            # What was not drawn has a total of 0, and no value that says so.
            is_known &= ~self.lost
        return pl.when(is_known).then(self.column("deviation"))

    @property
    def is_degenerate(self) -> pl.Expr:
        """Whether nothing varies, so that there are no ends."""
        return self.column("se").is_not_null() & (self.column("lowest") == self.column("highest"))

    def _ends(self) -> tuple[pl.Expr, pl.Expr]:
        low, high = (pl.when(~self.is_degenerate).then(self.column(end)) for end in ("lowest", "highest"))
        return low, high
