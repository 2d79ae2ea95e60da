"""One interval: from replicates, draws or placements to a standard error, and from that to its ends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import add

import polars as pl

from polars_mlmetrics.engine.draws import DRAW, DRAWS
from polars_mlmetrics.engine.folds import fold
from polars_mlmetrics.engine.packing import BUCKETS_IN_KEY
from polars_mlmetrics.engine.placements import IS_NEEDED, MOVED, POSITIVES, ROWS, SIZE, VALUE
from polars_mlmetrics.engine.plan import Plan
from polars_mlmetrics.engine.replicates import WITHOUT
from polars_mlmetrics.formula.arithmetic import ratio, reaches
from polars_mlmetrics.formula.measure import Measure, Node, Planned, is_mean_of_labels
from polars_mlmetrics.formula.tree import Applied
from polars_mlmetrics.intervals.kinds import (
    core_of,
    is_mean_of_clusters,
    planned_in,
)
from polars_mlmetrics.intervals.limits import Limits
from polars_mlmetrics.intervals.student_t import (
    at_every_look,
    clusters_in,
    deciding,
    degrees_of_freedom,
    has_few_errors,
    jackknife,
    normal_quantile,
    p_at_every_look,
    p_value,
    powers,
    standard_error,
    t_at,
    units_behind,
    wilson,
)
from polars_mlmetrics.query.question import Confidence

NOISE = 1e-12
"""A value that moves by less than this share of itself moves by rounding alone."""


def unless_noise(difference: pl.Expr, size: pl.Expr) -> pl.Expr:
    """A difference of values of this size; 0 where rounding alone makes it. Of a NaN it is NaN."""
    return pl.when(difference.is_finite() & (difference.abs() <= NOISE * size)).then(0.0).otherwise(difference)


FEW_BUCKETS, FEW_CLUSTERS = 10, 30
FEW_DECIDE = 4
"""A standard error that fewer buckets than this decide is hardly known itself."""

FEW_ERRORS = 30
"""An area near 1 that is known no better than a share with fewer errors: mostly too high, with too small an error."""


def few_decide(deciding: pl.Expr) -> pl.Expr:
    """Whether a handful of buckets makes nearly all of a standard error; null where none does."""
    return ~reaches(deciding, FEW_DECIDE)


class Interval(ABC):
    """One metric on the way to its interval, in columns of a table of groups (or units): those of each step.

    It starts from a table that has, of each group, the value (`value_of_all`), how many buckets the interval stands on
    (`buckets`), whether these are single clusters (`is_numbered`), the largest share of the weight that is in one
    (`share`; null where that is not known), whether one is needed (`lost`), and what the standard error is made of
    (`scale`, `squares`, `fourths`).
    """

    def __init__(self, name: str, metric: Node, limits: Limits, plan: Plan, confidence: Confidence) -> None:
        self._name = name
        self._core, self._functions = core_of(metric)
        self._limits = limits
        self._plan = plan
        self.confidence = confidence

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
    def clusters(self) -> pl.Expr:
        """How many clusters the interval stands on, about."""
        return clusters_in(self.column("buckets"), self.confidence.buckets, self.column("is_numbered"))

    @property
    def _counted(self) -> pl.Expr:
        """How many independent units there are, about."""
        return self.clusters

    @property
    def lost(self) -> pl.Expr:
        """Whether without one of the buckets there is no value, or no value of one of the labels behind it."""
        return self.column("lost")

    @property
    def is_degenerate(self) -> pl.Expr:
        """Whether nothing varies, so that there are no ends."""
        return (self.column("se") == 0) & (self.method == "t")

    @property
    def is_early(self) -> pl.Expr:
        """Whether there is too little yet for ends that are right at every look, so that there are none."""
        if self._limits.looks is None:
            return pl.lit(False)
        # Of a good model an error more or less, of a few, moves the value and the standard error together.
        are_few = (~reaches(self._deciding, FEW_BUCKETS)).fill_null(True)
        is_early = are_few | (self.clusters < FEW_CLUSTERS) | self._limits.looks.has_few
        if self._limits.looks.is_area:
            share, error = self._in_range(self.column("value_of_all")), ratio(self.column("se"), pl.lit(self._width))
            is_early |= has_few_errors(share, error, FEW_ERRORS)
        return is_early

    @property
    def p(self) -> pl.Expr:
        """The chance of a value as far from 0, if it is 0: at one look, or at any."""
        t, looks = ratio(self.column("value_of_all"), self.column("se")), self._limits.looks
        if looks is None:
            return p_value(t, self.column("df"))
        found = p_at_every_look(t, looks.rows, self.confidence.level, looks.tightest)
        return pl.when(~self.is_early).then(found)

    @property
    def few_decide(self) -> pl.Expr:
        """Whether a handful of buckets makes nearly all of the standard error."""
        return pl.lit(False) if self._limits.counts_tell else few_decide(self._deciding)

    def _error_of(self, buckets: pl.Expr) -> pl.Expr:
        return standard_error(buckets, self.column("squares"), self.column("scale"))

    @property
    def _deciding(self) -> pl.Expr:
        return deciding(self.column("squares"), self.column("fourths"))

    def errors(self) -> list[pl.Expr]:
        """The standard error, and its degrees of freedom."""
        errors = {**self._facts, "se": self._known_se, "df": self._df(self.column("buckets").fill_null(0))}
        return [self._as(name, error) for name, error in errors.items()]

    @property
    def _known_se(self) -> pl.Expr:
        is_known = self.column("value_of_all").is_finite() & (self.column("buckets") >= 2)
        return pl.when(is_known).then(self._se)

    @property
    def _facts(self) -> dict[str, pl.Expr]:
        """Columns that flags are made of, once the error is known."""
        return {"buckets": self.column("buckets").fill_null(0)}

    def _df(self, buckets: pl.Expr) -> pl.Expr:
        return degrees_of_freedom(buckets, None if self._limits.counts_tell else self._deciding)

    def quantiles(self) -> list[pl.Expr]:
        """How many standard errors an end is away: the quantile of Student's t, or what is right at every look."""
        level, looks = self.confidence.level, self._limits.looks
        if looks is None:
            return [self._as("t", t_at(self.column("df"), level))]
        away = at_every_look(looks.rows, level, looks.tightest)
        return [self._as("t", pl.when(~self.is_early).then(away))]

    def units(self) -> list[pl.Expr]:
        """How many independent units of a bounded value would have this standard error."""
        if self.method != "kg_wilson":
            return []
        share, error = self._in_range(self.column("value_of_all")), ratio(self.column("se"), pl.lit(self._width))
        # Where nothing varies, there is what was counted to go by: at an end of the range, or next to it by rounding.
        varies = (error > 0) & share.is_between(NOISE, 1 - NOISE)
        units = pl.when(varies).then(units_behind(share, error)).otherwise(self._counted)
        z = pl.lit(normal_quantile(self.confidence.level))
        return [self._as("units", units * ratio(z, self.column("t")) ** 2)]

    def ends(self) -> list[pl.Expr]:
        """The ends of the interval."""
        is_known = self.column("se").is_not_null()
        ends = dict(zip(("low", "high"), self._ends(), strict=True))
        return [self._as(name, pl.when(is_known).then(_applied(self._functions, end))) for name, end in ends.items()]

    def _ends(self) -> tuple[pl.Expr, pl.Expr]:
        if self.method == "kg_wilson":
            return self._wilson()
        low, high = self._limits.low, self._limits.high
        # The value of a replicated metric may lie beyond its range, where the one that is shown is cut.
        value, half = self.column("value_of_all").clip(low, high), self.column("t") * self.column("se")
        half = pl.when(self.column("se") > 0).then(half)
        return (value - half).clip(low, high), (value + half).clip(low, high)

    def _wilson(self) -> tuple[pl.Expr, pl.Expr]:
        share = self._in_range(self.column("value_of_all"))
        low, high = wilson(share, self.column("units"), normal_quantile(self.confidence.level))
        # At an end of the range the value is the end of the interval, but for rounding.
        low, high = pl.min_horizontal(low, share), pl.max_horizontal(high, share)
        return self._limits.low + self._width * low, self._limits.low + self._width * high

    def _in_range(self, value: pl.Expr) -> pl.Expr:
        """Where a value lies in its range, from 0 to 1."""
        return ratio(value - self._limits.low, pl.lit(self._width)).clip(0, 1)

    @property
    def _width(self) -> float:
        return self._limits.high - self._limits.low


def _applied(functions: Sequence[Applied], end: pl.Expr) -> pl.Expr:
    """An end of an interval, after functions that keep what is an end."""
    for function in functions:
        end = getattr(end, function.function)(**dict(function.arguments))
    return end.cast(pl.Float64)


class Replicated(Interval):
    """One metric on the way from its replicates to its interval: the columns of each step."""

    def __init__(
        self, name: str, metric: Node, weights: list[pl.Expr], limits: Limits, plan: Plan, confidence: Confidence
    ) -> None:
        super().__init__(name, metric, limits, plan, confidence)
        self._weight = pl.min_horizontal(weights) if weights else pl.lit(None, dtype=pl.Float64)
        # It may be another metric than the one that is shown: the plan is to know it before it is worked out again.
        self._value = plan.value(self._core)
        # Against this the rounding of a value, or of a difference of two, is measured.
        self._size = reduce(add, [side.cast(pl.Float64).abs() for side in plan.sides(self._core)])
        self._of_clusters = planned_in(self._core) if is_mean_of_clusters(self._core, confidence) else []

    @property
    def _se(self) -> pl.Expr:
        is_known = self.column("is_known")
        return pl.when(is_known).then(self._error_of(self.column("buckets")))

    @property
    def _counted(self) -> pl.Expr:
        return self.column("samples_of_all") if self._of_clusters else super()._counted

    @property
    def _has_value(self) -> pl.Expr:
        """Whether a bucket alone has a value."""
        return self._value.is_not_null()

    def values(self) -> list[pl.Expr]:
        """The value, and how many labels stand behind it."""
        labels = self._defined(part for part in planned_in(self._core) if is_mean_of_labels(part))
        samples = self._defined(self._of_clusters)
        value = self._value.cast(pl.Float64)
        columns = {"value": value, "size": self._size, "labels": labels, "samples": samples}
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
        """The expressions of a single bucket."""
        return [self._as("has_value", self._has_value), self._as("weight", self._weight)]

    def moved(self) -> pl.Expr:
        """How far the value moves without a bucket."""
        moved = unless_noise(self.column("value") - self.column("value_of_all"), self.column("size_of_all"))
        return self._as("moved", moved)

    def sums(self) -> list[pl.Expr]:
        """The estimate from all buckets of a group."""
        value = self.column("value")
        columns = {
            "value_of_all": self.column("value_of_all").first(),
            "samples_of_all": self.column("samples_of_all").first(),
            **jackknife(value, self.column("moved"), self.column("size_of_all"), self.column("has_value")),
            "lost": (value.is_null() | (self.column("labels") < self.column("labels_of_all"))).any(),
            "share": ratio(self.column("weight").max(), self.column("weight").sum()),
            "is_numbered": (pl.col(WITHOUT) >= self.confidence.buckets).any(),
        }
        return [self._as(name, column) for name, column in columns.items()]


class Drawn(Replicated):
    """One metric on the way from its draws to its interval. Of replicates it is known how many buckets tell of it."""

    @property
    def method(self) -> str:
        """How the ends are found."""
        return "bootstrap"

    def drawn(self) -> pl.Expr:
        """The value of a draw."""
        value = self.column("value_of_all") + self.moved()
        is_draw = pl.col(DRAW).is_not_null() & value.is_finite()
        return self._as("drawn", pl.when(is_draw).then(value))

    def ends_of_draws(self) -> list[pl.Expr]:
        """The estimate from all draws of a group."""
        drawn, labels, beyond = self.column("drawn"), self.column("labels"), (1 - self.confidence.level) * 0.5
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


class Placed(Interval):
    """One metric on the way from the placements of its rows to its interval.

    Every bucket with a row that counts tells something of it. The interval stands on no more of them than there are
    with a true row: where these are few, they decide it.
    """

    def __init__(self, name: str, metric: Node, limits: Limits, plan: Plan, confidence: Confidence) -> None:
        super().__init__(name, metric, limits, plan, confidence)
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
        """The estimate from all buckets of a group."""
        moved = pl.when(pl.col(MOVED).abs() > NOISE * pl.col(SIZE)).then(pl.col(MOVED))
        buckets, with_positives = pl.len().cast(pl.Int64), (pl.col(POSITIVES) > 0).sum().cast(pl.Int64)
        columns = {
            "value_of_all": pl.col(VALUE).first(),
            "all_buckets": buckets,
            "buckets": pl.min_horizontal(buckets, with_positives),
            **powers(moved, pl.col(SIZE)),
            "lost": pl.col(IS_NEEDED).any(),
            "share": ratio(pl.col(ROWS).max(), pl.col(ROWS).sum()),
            "is_numbered": (pl.col(WITHOUT) >= self.confidence.buckets).any(),
        }
        sums = [self._as(name, column) for name, column in columns.items()]
        return fold(self._plan.moved(self._placed, WITHOUT), keys, sums)

    @property
    def _se(self) -> pl.Expr:
        # Of an average over labels there is a value without one of them.
        is_known = pl.lit(is_mean_of_labels(self._placed)) | ~self.lost
        return pl.when(is_known).then(self._error_of(self.column("all_buckets")))
