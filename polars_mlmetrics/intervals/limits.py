"""How an interval is made: its method, what its ends may not go beyond, and whether it is right at every look."""

from __future__ import annotations

from math import isfinite
from typing import NamedTuple

import polars as pl

from polars_mlmetrics.engine.plan import Plan
from polars_mlmetrics.formula.measure import Node
from polars_mlmetrics.intervals.kinds import core_of, is_share, range_of, samples_are_clusters
from polars_mlmetrics.query.question import Confidence


class Looks(NamedTuple):
    """The counts for an interval that is right at every look at all rows so far."""

    rows: pl.Expr
    """How many rows count; of parts, or sides, those of the smallest."""
    tightest: int
    """With how many of them the interval is tightest."""
    has_few: pl.Expr
    """Whether there are few rows of a class, or true ones of a label."""
    is_area: bool = False
    """Whether it is the interval of an area, which must not be near an end of its range."""


class Limits(NamedTuple):
    """How an interval is made, and what its ends may not go beyond."""

    method: str
    low: float
    high: float
    counts_tell: bool = False
    """Whether it is a share of counted samples: Wilson's interval knows how few they are."""
    looks: Looks | None = None
    """None where it is right at one look."""

    @classmethod
    def of(cls, metric: Node, plan: Plan, confidence: Confidence) -> Limits:
        """Those of the values of a metric."""
        low, high = range_of(metric)
        core, _ = core_of(metric)
        # With `undefined=` the range may be infinite, though that of the metric itself is not.
        if core.interval_kind != "kg_wilson" or not (isfinite(low) and isfinite(high)):
            return cls("t", low, high)
        return cls("kg_wilson", low, high, is_share(core, plan) and samples_are_clusters(core, confidence))
