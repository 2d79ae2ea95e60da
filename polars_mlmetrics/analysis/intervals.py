"""Intervals: how far a value can be trusted, from what it is without each bucket of clusters in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, NamedTuple

import polars as pl

from polars_mlmetrics.analysis.bounds import (
    normal_quantile,
    standard_error,
    t_quantile,
    units_behind,
    units_in,
    wilson,
)
from polars_mlmetrics.data.frames import Names
from polars_mlmetrics.engine.folds import fold, matched
from polars_mlmetrics.engine.pairs import PairPlan
from polars_mlmetrics.engine.plan import Plan
from polars_mlmetrics.engine.replicates import WITHOUT, Replicates
from polars_mlmetrics.errors import INTERNAL, ParameterError
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.formula.measure import Measure, Node, Planned
from polars_mlmetrics.formula.targets import EachTarget, OverTargets
from polars_mlmetrics.formula.tree import WITHOUT_INTERVAL, Applied, Named
from polars_mlmetrics.query.account import Account, first_that_holds
from polars_mlmetrics.query.results import Ends, Result

NOISE = 1e-12
"""A replicate that differs from the value by less than this share of it differs by rounding alone."""

FEW_BUCKETS, FEW_CLUSTERS = 10, 30
SEEMS_FEW = 24
"""So few buckets that tell something mean few clusters, where these are not counted."""

DOMINANT, MANY_BUCKETS = 0.2, 32
"""The share of the rows with which a bucket decides the interval, where there are at least so many buckets."""


FLAGS = {"total": "totals", "extreme": "extremes"}
"""What the metrics without an interval are."""


@dataclass(frozen=True)
class Confidence:
    """What intervals are asked for."""

    level: float
    buckets: int
    """How many there are."""
    cluster: Sequence[str]
    """The columns that they are made of."""
    are_whole: bool = True
    """Whether each cluster is known to be in one bucket, whole."""

    def quantiles(self) -> pl.Series:
        """Those of Student's t, by the number of buckets that tell something; null where that is below two."""
        quantiles = [t_quantile(self.level, df) for df in range(1, self.buckets)]
        return pl.Series([None, None, *quantiles], dtype=pl.Float64)


def check_level(ci: Any, cluster: Names) -> None:
    """Refuse what is no level of confidence."""
    if ci is None and cluster is not None:
        raise ParameterError("cluster= is for intervals: pass ci= too, such as ci=0.95.")
    if ci is None:
        return
    if isinstance(ci, bool) or not isinstance(ci, int | float) or not 0 < ci < 1:
        raise ParameterError(f"ci must be a number between 0 and 1, such as 0.95, not {ci!r}.")


Replicable = Plan | PairPlan
"""A plan whose values are looked at without each bucket."""


class Limits(NamedTuple):
    """How an interval is made, and what its ends may not go beyond."""

    method: str
    low: float
    high: float


class Intervals:
    """The intervals of metrics that are asked of a plan.

    A replicate is a value without one bucket. A bucket tells something of a metric where its rows alone give a value,
    or where the value changes without them.
    """

    def __init__(self, plan: Replicable, confidence: Confidence, unit_keys: Sequence[str] = ()) -> None:
        self._plan = plan
        self._confidence = confidence
        self._unit_keys = list(unit_keys)
        self._asked: list[Replicated] = []

    def with_ends(self, result: Result, metric: Node) -> Result:
        """What there is to say of a metric, with the ends of its interval."""
        return self._with_ends(result, self.of(metric))

    def of_account(self, account: Account, *, tidy: bool) -> Result:
        """What there is to say of a metric, with what a wide or a tidy table tells of its interval."""
        if not tidy:
            return self.with_ends(account.result(), account.metric)
        replicated = self.of(account.metric, account.n_rows)
        clusters = account.n_clusters(self._confidence.cluster)
        result = self._with_ends(account.result(), replicated)
        assert result.ends is not None
        facts = {
            "se": _shown(result, replicated, "se"),
            "low": result.ends.low,
            "high": result.ends.high,
            "ci_method": pl.lit("none" if replicated is None else replicated.method),
            "ci_flag": pl.when(_is_number(result)).then(self.flag_of(account.metric, replicated, clusters)),
            "n_buckets": None if replicated is None else replicated.column("buckets"),
            "n_clusters": clusters,
        }
        return replace(result, facts={**result.facts, **facts})

    def _with_ends(self, result: Result, replicated: Replicated | None) -> Result:
        return replace(result, ends=Ends(*(_shown(result, replicated, end) for end in ("low", "high"))))

    def flag_of(self, metric: Node, replicated: Replicated | None, clusters: pl.Expr | None) -> pl.Expr:
        """The first thing to know of an interval, in a word."""
        kind = metric.interval_kind
        if replicated is None:
            return pl.lit(FLAGS.get(kind, "no_state"))
        se, buckets = replicated.column("se"), replicated.column("buckets")
        seems_few = buckets <= SEEMS_FEW
        cases = {
            "undefined_replicates": replicated.column("lost"),
            "degenerate": (se == 0) & (replicated.method == "t"),
            "few_buckets": buckets < FEW_BUCKETS,
            "low_n": seems_few if clusters is None else pl.coalesce(clusters < FEW_CLUSTERS, seems_few),
            "dominant_cluster": (replicated.share > DOMINANT) & (self._confidence.buckets >= MANY_BUCKETS),
            **self.notes(),
            "biased": pl.lit(kind == "biased"),
            "approx": se == 0,
        }
        return first_that_holds([(holds, pl.lit(flag)) for flag, holds in cases.items()], pl.lit("ok"))

    def notes(self) -> dict[str, pl.Expr]:
        """More to know of every interval, by flag."""
        return {}

    def of(self, metric: Node, rows: pl.Expr | None = None) -> Replicated | None:
        """The interval of a metric, in columns of the table; None where it has none. `rows` counts those it uses."""
        has_none = metric.interval_kind in WITHOUT_INTERVAL
        if has_none or not self._confidence.are_whole or not self._plan.merges(metric):
            return None
        name, limits = f"{INTERNAL}interval_{len(self._asked)}", self.limits_of(core_of(metric)[0])
        self._asked.append(Replicated(name, metric, rows, limits, self._plan, self._confidence))
        return self._asked[-1]

    def limits_of(self, core: Node) -> Limits:
        """The method of an interval, and what its ends may not go beyond."""
        method = "kg_wilson" if core.interval_kind == "kg_wilson" else "t"
        return Limits(method, *range_of(core))

    def beside(self, table: pl.LazyFrame) -> pl.LazyFrame:
        """A table of groups, or of units, with the columns of the intervals of each."""
        return matched(table, self._table(), self._keys, how="left") if self._asked else table

    @property
    def _keys(self) -> list[str]:
        return list(dict.fromkeys([*self._plan.by, *self._unit_keys]))

    def _table(self) -> pl.LazyFrame:
        keys, cell = self._keys, [*self._keys, WITHOUT]
        without = self._again(Replicates(self._plan.source, self._plan.by))
        values = without.select(*cell, *self._columns(Replicated.values)).cache()
        is_whole = pl.col(WITHOUT).is_null()
        whole = values.filter(is_whole).select(*keys, *self._columns(Replicated.of_whole))
        alone = self._again(self._plan.source).select(*cell, *self._columns(Replicated.alone))
        cells = matched(matched(alone, values.filter(~is_whole), cell, how="left"), whole, keys)
        cells = cells.with_columns(self._columns(Replicated.difference))
        table = fold(cells, keys, self._columns(Replicated.sums))
        # What several columns read is a column first: inside an expression it would be worked out for each.
        for step in (Replicated.errors, Replicated.units, Replicated.ends):
            table = table.with_columns(self._columns(step))
        return table

    def _columns(self, step: Callable[[Replicated], list[pl.Expr]]) -> list[pl.Expr]:
        return [column for each in self._asked for column in step(each)]

    def _again(self, source: Any) -> pl.LazyFrame:
        """The values of the plan by bucket, from this source."""
        plan = self._plan.again(source, [*self._plan.by, WITHOUT])
        return plan.units() if isinstance(plan, Plan) and self._unit_keys else plan.groups()


def _shown(result: Result, replicated: Replicated | None, column: str) -> pl.Expr:
    """A column of the interval: null where the value is no number, or is not shown."""
    if replicated is None:
        return pl.lit(None, dtype=pl.Float64)
    return pl.when(_is_number(result)).then(replicated.column(column))


def _is_number(result: Result) -> pl.Expr:
    return result.value.cast(pl.Float64).is_finite()


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
        self.method = limits.method

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
        moved = self.column("value") - self.column("value_of_all")
        is_noise = moved.abs() <= NOISE * self.column("size_of_all")
        return [self._as("moved", pl.when(is_noise).then(0.0).otherwise(moved))]

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
        low, high = self._wilson() if self.method == "kg_wilson" else self._symmetric()
        is_known = self.column("se").is_not_null()
        ends = {"low": low, "high": high}
        return [self._as(name, pl.when(is_known).then(self._applied(end))) for name, end in ends.items()]

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


def core_of(metric: Node) -> tuple[Node, list[Applied]]:
    """The metric whose replicates are looked at, and the functions that its interval goes through, the first first."""
    if isinstance(metric, Named):
        return core_of(metric.metric)
    if not isinstance(metric, Applied) or not metric.keeps_ends:
        return metric, []
    core, functions = core_of(metric.metric)
    # Filling a null makes a value, and no interval.
    return core, functions if metric.function == "fill_null" else [*functions, metric]


def range_of(core: Node) -> tuple[float, float]:
    """Where the values of a metric lie."""
    return next(core.measures()).range if isinstance(core, Measure | OverTargets) else (-inf, inf)


def is_mean_of_labels(metric: Node) -> bool:
    """Whether a metric is an average over labels."""
    return isinstance(metric, Measure) and metric.grain == "label" and metric.per is None


def is_mean_of(metric: Node, cluster: Sequence[str]) -> bool:
    """Whether a metric is a mean over these clusters."""
    is_of_samples = isinstance(metric, Measure) and metric.grain == "sample" and metric.per is None
    return is_of_samples and list(next(metric.measures()).table.sample) == list(cluster)


def planned_in(metric: Node) -> Iterator[Planned]:
    """What a plan works out of a metric."""
    if isinstance(metric, Planned):
        yield metric
    else:
        for part in metric.of_rows.values() if isinstance(metric, EachTarget) else metric.parts:
            yield from planned_in(part)
