"""The interval of a metric that needs all rows at once: from how far the rows of each bucket move its value."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polars_mlmetrics.analysis.bounds import error_of_parts
from polars_mlmetrics.analysis.confidence import Confidence
from polars_mlmetrics.analysis.interval import NOISE, Interval, Limits
from polars_mlmetrics.analysis.parts import core_of
from polars_mlmetrics.engine.folds import fold
from polars_mlmetrics.engine.packing import BUCKETS_IN_KEY
from polars_mlmetrics.engine.placements import MOVED, POSITIVES, ROWS, VALUE
from polars_mlmetrics.engine.plan import Plan
from polars_mlmetrics.engine.replicates import WITHOUT
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.formula.measure import Measure, Node


class Placed(Interval):
    """One metric on the way from the placements of its rows to its interval.

    Every bucket with a row that counts tells something of it. The interval stands on no more of them than there are
    with a true row: where these are few, they decide it.
    """

    def __init__(self, name: str, metric: Node, limits: Limits, plan: Plan, confidence: Confidence) -> None:
        super().__init__(name, metric, limits, confidence)
        self._plan = plan
        assert isinstance(self._core, Measure)
        self._placed = self._core
        plan.place(self._placed, WITHOUT)

    @staticmethod
    def can_be(metric: Node, plan: Plan, confidence: Confidence) -> bool:
        """Whether a metric has such an interval."""
        core, _ = core_of(metric)
        is_able = confidence.buckets <= BUCKETS_IN_KEY and not confidence.is_bootstrap
        return is_able and isinstance(core, Measure) and plan.can_place(core)

    def table(self, keys: Sequence[str]) -> pl.LazyFrame:
        """What all buckets of a group say together."""
        return fold(self._plan.moved(self._placed, WITHOUT), keys, self._sums())

    def _sums(self) -> list[pl.Expr]:
        moved = pl.when(pl.col(MOVED).abs() > NOISE * pl.col(VALUE).abs()).then(pl.col(MOVED))
        buckets, with_positives = pl.len().cast(pl.Int64), (pl.col(POSITIVES) > 0).sum().cast(pl.Int64)
        columns = {
            "value_of_all": pl.col(VALUE).first(),
            "all_buckets": buckets,
            "buckets": pl.min_horizontal(buckets, with_positives),
            "squares": (moved * moved).sum(),
            "share": ratio(pl.col(ROWS).max(), pl.col(ROWS).sum()),
        }
        return [self._as(name, column) for name, column in columns.items()]

    @property
    def _se(self) -> pl.Expr:
        return error_of_parts(self.column("all_buckets"), self.column("squares"))
