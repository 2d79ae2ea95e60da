"""Intervals: how far a value can be trusted, from what it is without each bucket of clusters in turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import polars as pl

from polars_mlmetrics.data.expressions import any_of
from polars_mlmetrics.engine.draws import DRAW, Draws
from polars_mlmetrics.engine.folds import fold, matched
from polars_mlmetrics.engine.plan import Plan
from polars_mlmetrics.engine.replicates import WITHOUT, CoarseBuckets, Replicates
from polars_mlmetrics.engine.sources import Source
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.arithmetic import first_that_holds
from polars_mlmetrics.formula.declaration import Interval as Kind
from polars_mlmetrics.formula.measure import Measure, Node, Planned, is_debiased, is_mean_of_labels, unweighted
from polars_mlmetrics.formula.over_targets import counts_in
from polars_mlmetrics.formula.tree import WITHOUT_INTERVAL
from polars_mlmetrics.intervals.interval import (
    FEW_BUCKETS,
    FEW_CLUSTERS,
    Drawn,
    Interval,
    Placed,
    Replicated,
)
from polars_mlmetrics.intervals.kinds import buckets_for, coarseness_of, core_of, is_area, is_share, planned_in
from polars_mlmetrics.intervals.limits import Limits, Looks
from polars_mlmetrics.query.question import Confidence
from polars_mlmetrics.query.reported_value import Account
from polars_mlmetrics.query.results import ENDS, Ends, Result

T = TypeVar("T")

STEPS: Sequence[Callable[[Interval], list[pl.Expr]]] = (
    Interval.errors,
    Interval.quantiles,
    Interval.units,
    Interval.ends,
)
"""The steps from the sums of an interval to its ends, each from the columns of those before."""

RARE_LABEL = 30
FEW_POSITIVES = 20
"""So few rows of one class decide a metric that weighs the classes against each other."""

SEEMS_FEW = 24
"""So few of 64 buckets mean fewer clusters than that."""

DOMINANT, MANY_BUCKETS = 0.2, 32
"""The share of the weight with which a bucket decides the interval, where there are at least so many buckets."""

_IS_POOLED, _CLUSTERS = (f"{INTERNAL}{name}" for name in ("is_pooled", "clusters"))

FLAGS = {
    "no_state": "no interval",
    "totals": "no interval: a total",
    "extremes": "no interval: one label decides",
    "no_pairs": "no pairs: no sample counts on both sides",
    "one_side": "nothing to compare: one side has no rows",
    "no_samples": "no test: no samples",
    "leak?": None,
    "too_early": "no interval yet: too few samples so far",
    "undefined_replicates": "no interval: no value without some samples",
    "degenerate": "no interval: nothing varies",
    "pooled": None,
    "few_buckets": "not judged: too few samples",
    "few_decide": "not judged: few samples decide",
    "few_positives": "not judged: too few rows of one class",
    "biased": "not judged: a biased metric",
    "few_pairs": None,
    "coarse_bins": "not judged: its bins are too coarse",
    "few_cells": "not judged: too few rows in a cell",
    "low_n": None,
    "rare_labels": None,
    "dominant_cluster": None,
    "pairs_unknown": None,
    "approx": None,
    "ok": None,
}
"""The flags of intervals: the first that holds is reported, in this order. In words, those that leave no verdict."""


DOUBTED = ("few_decide", "few_positives", "biased")
"""The flags with which an end is there, and tells nothing."""


def flag_of(holds: Mapping[str, pl.Expr]) -> pl.Expr:
    """The first flag that holds, in the order of `FLAGS`; "ok" where none does."""
    assert holds.keys() <= FLAGS.keys(), holds.keys() - FLAGS.keys()
    return first_that_holds([(holds[flag], pl.lit(flag)) for flag in FLAGS if flag in holds], pl.lit("ok"))


def flag_without_interval(kind: Kind) -> str:
    """The flag of a metric that has no interval, by the kind that it would be."""
    return {"total": "totals", "extreme": "extremes", "too_high": "biased"}.get(kind, "no_state")


class Intervals:
    """The intervals of metrics of a plan.

    A replicate is a value without one bucket. A bucket tells something of a metric where its rows alone give a value,
    or where the value changes without them.
    """

    def __init__(self, plan: Plan, confidence: Confidence, unit_keys: Sequence[str] = ()) -> None:
        self._plan = plan
        self._confidence = confidence
        self._unit_keys = list(unit_keys)
        self._intervals: list[Interval] = []
        self._parts: dict[int, list[Planned]] = {}
        """The parts of the plan that intervals of so many buckets need."""

    def with_ends(self, result: Result, metric: Node, limits: Limits | None = None) -> Result:
        """The result of a metric, with the ends of its interval."""
        return replace(result, ends=_ends(result, self.of(metric, limits=limits)))

    def of_account(self, account: Account, *, tidy: bool) -> Result:
        """The result of a metric, with the columns for its interval in a wide or a tidy table."""
        result = account.result()
        if not tidy:
            return self.with_ends(result, account.metric)
        interval = self.of(account.metric, self.weights_of(account.metric))
        clusters = account.n_clusters(self._confidence.cluster)
        flag = self.flag_of(account.metric, interval, account.is_pooled, clusters, **self.rare(account.metric))
        facts = {
            **{name: _shown(result, interval, name) for name in ("se", "low", "high")},
            "ci_method": pl.lit("none" if interval is None else interval.method),
            "ci_flag": pl.when(_is_number(result)).then(flag),
            "n_buckets": None if interval is None else interval.column("buckets"),
            "n_clusters": clusters,
        }
        return replace(result, facts={**result.facts, **facts})

    def flag_of(
        self,
        metric: Node,
        interval: Interval | None,
        is_pooled: pl.Expr,
        clusters: pl.Expr | None,
        **notes: pl.Expr,
    ) -> pl.Expr:
        """The first thing to know of an interval, in a word. `notes` are more that may hold, by flag."""
        if interval is None:
            return flag_of({"pooled": is_pooled, flag_without_interval(self._kind(metric)): pl.lit(True)})
        se, buckets = interval.column("se"), interval.column("buckets")
        # Where clusters are not counted, the buckets that tell something say about how many there are.
        seems_few = interval.clusters < FEW_CLUSTERS
        is_small = seems_few if clusters is None else pl.coalesce(clusters < FEW_CLUSTERS, seems_few)
        holds = {
            "too_early": interval.is_early,
            "undefined_replicates": interval.lost,
            "degenerate": interval.is_degenerate,
            "pooled": is_pooled,
            "few_buckets": buckets < FEW_BUCKETS,
            "few_decide": interval.few_decide,
            "biased": pl.lit(metric.interval_kind == "biased"),
            "coarse_bins": self.is_coarse(metric, interval),
            "low_n": is_small,
            "dominant_cluster": (interval.column("share") > DOMINANT) & (self._confidence.buckets >= MANY_BUCKETS),
            **notes,
            "approx": se == 0,
        }
        return flag_of(holds)

    def weights_of(self, metric: Node) -> list[Measure]:
        """The weights of the rows that the parts of a metric use; none where one is not known."""
        weights = [counts.weight for counts in counts_in(metric)]
        return weights if all(map(self._plan.can_answer, weights)) else []

    def rare(self, metric: Node) -> dict[str, pl.Expr]:
        """Whether a label that is averaged over has few true rows, and whether there are few rows of a class."""
        labels, classes = self._rarest(metric)
        # Wilson's interval of a share knows how few its counts are.
        few = [] if is_share(metric.each(unweighted), self._plan) else [rows < FEW_POSITIVES for rows in classes]
        return {"rare_labels": any_of([true < RARE_LABEL for true in labels]), "few_positives": any_of(few)}

    def _rarest(self, metric: Node) -> tuple[list[pl.Expr], list[pl.Expr]]:
        """The true rows of the rarest label that is averaged over, and the rows of the rarer class, of each part."""
        labels: list[pl.Expr] = []
        classes: list[pl.Expr] = []
        for counts in counts_in(metric):
            positives, rows = counts.positives, counts.used
            if positives is None or not self._plan.can_answer(positives):
                continue
            if is_mean_of_labels(counts.measure):
                labels += self._plan.sides(positives)
            elif self._plan.can_answer(rows):
                both = zip(self._plan.sides(positives), self._plan.sides(rows), strict=True)
                classes += [pl.min_horizontal(true, all_rows - true) for true, all_rows in both]
        return labels, classes

    def _looks(self, metric: Node, tightest: int) -> Looks:
        """The counts for an interval of a metric that is right at every look."""
        labels, classes = self._rarest(metric)
        rows = [side for counts in counts_in(metric) for side in self._plan.sides(counts.used)]
        few = any_of([each < FEW_CLUSTERS for each in (*labels, *classes)])
        return Looks(pl.min_horizontal(rows).cast(pl.Float64), tightest, few, is_area(metric))

    def is_coarse(self, metric: Node, interval: Interval) -> pl.Expr:
        """Whether the bins of a metric may put it off by more than half the width of its interval."""
        bounds = [side for part in coarseness_of(metric) for side in self._plan.sides(part)]
        half = 0.5 * (interval.column("high") - interval.column("low"))
        return (pl.sum_horizontal(bounds) > half).fill_null(False) if bounds else pl.lit(False)

    def of(self, metric: Node, weights: Sequence[Measure] = (), limits: Limits | None = None) -> Interval | None:
        """The interval of a metric, in columns of the table; None where it has none.

        Its rows weigh the least of the weights. The limits are those of its values, if no others are given.
        """
        kind, is_drawn = self._kind(metric), self._confidence.is_bootstrap
        # A total without a bucket is another total; one of as many buckets is not.
        has_none = kind in WITHOUT_INTERVAL and not (is_drawn and kind == "total")
        if has_none or not self._confidence.are_whole:
            return None
        name = f"{INTERNAL}interval_{len(self._intervals)}"
        limits = limits or Limits.of(metric, self._plan, self._confidence)
        if self._confidence.anytime is not None:
            looks = self._looks(metric, self._confidence.anytime)
            limits = limits._replace(method="anytime", counts_tell=False, looks=looks)
        if self._plan.merges(metric):
            confidence = buckets_for(metric, self._plan, self._confidence)
            parts = self._parts.setdefault(confidence.buckets, [])
            parts += [*planned_in(core_of(metric)[0]), *weights]
            self._intervals.append(self._replicated(name, metric, weights, limits, self._plan, confidence))
        elif self._is_placed(metric):
            self._intervals.append(Placed(name, metric, limits, self._plan, self._confidence))
        else:
            return None
        return self._intervals[-1]

    def _replicated(self, name: str, metric: Node, weights: Sequence[Measure], *interval: Any) -> Replicated:
        replicated = Drawn if self._confidence.is_bootstrap else Replicated
        return replicated(name, metric, [self._plan.sides(each)[0] for each in weights], *interval)

    def _is_placed(self, metric: Node) -> bool:
        """Whether an interval comes from how the rows of each bucket stand."""
        return Placed.can_be(metric, self._plan, self._confidence)

    def _kind(self, metric: Node) -> Kind:
        """The kind of the interval of a metric."""
        # A draw has rows several times: what chance adds by that is not taken off.
        is_too_high = self._confidence.is_bootstrap and any(map(is_debiased, metric.measures()))
        return "too_high" if is_too_high else metric.interval_kind

    def table(self) -> pl.LazyFrame:
        """The plan's table of groups, or of units, with the columns of the intervals of each."""
        # The plan comes first: a pass over its rows tells how they stand.
        table = self._values_of(self._plan)
        tables = [self._of_replicates(buckets) for buckets in self._parts]
        tables += [each.table(self._keys) for each in self._intervals if isinstance(each, Placed)]
        for found in tables:
            table = matched(table, found, self._keys, how="left")
        # What several columns read is a column first: inside an expression it would be worked out for each.
        for step in STEPS:
            table = table.with_columns(_columns(self._intervals, step))
        return table

    @property
    def _keys(self) -> list[str]:
        return list(dict.fromkeys([*self._plan.keys, *self._unit_keys]))

    def _of_replicates(self, buckets: int) -> pl.LazyFrame:
        """The jackknife over so many buckets of each group (or unit), and the bootstrap if any."""
        replicated = [each for each in self._intervals if isinstance(each, Replicated)]
        intervals = [each for each in replicated if each.confidence.buckets == buckets]
        keys, cell, source = self._keys, [*self._keys, WITHOUT], self._plan.source
        if buckets < self._confidence.buckets:
            source = CoarseBuckets(source)
        parts = self._parts[buckets]
        without = self._again(Replicates(source, self._plan.keys), WITHOUT, parts)
        values = without.select(*cell, *_columns(intervals, Replicated.values)).cache()
        is_whole = pl.col(WITHOUT).is_null()
        whole = values.filter(is_whole).select(*keys, *_columns(intervals, Replicated.of_whole))
        alone = self._again(source, WITHOUT, parts).select(*cell, *_columns(intervals, Replicated.alone))
        cells = matched(matched(alone, values.filter(~is_whole), cell, how="left"), whole, keys)
        cells = cells.with_columns(each.moved() for each in intervals)
        table = fold(cells, keys, _columns(intervals, Replicated.sums))
        drawn = [each for each in intervals if isinstance(each, Drawn)]
        return matched(table, self._of_draws(drawn, whole), keys, how="left") if drawn else table

    def _of_draws(self, intervals: Sequence[Drawn], whole: pl.LazyFrame) -> pl.LazyFrame:
        """The bootstrap over all draws."""
        draws = self._again(Draws(self._plan.source, self._plan.keys, self._confidence.buckets), DRAW)
        values = draws.select(*self._keys, DRAW, *_columns(intervals, Drawn.values))
        values = matched(values, whole, self._keys).with_columns(each.drawn() for each in intervals)
        return fold(values, self._keys, _columns(intervals, Drawn.ends_of_draws))

    def _again(self, source: Source, key: str, parts: Sequence[Planned] | None = None) -> pl.LazyFrame:
        """The values of the plan by one more key, from this source."""
        return self._values_of(self._plan.again(source, [*self._plan.by, key], parts))

    def _values_of(self, plan: Plan) -> pl.LazyFrame:
        return plan.units() if self._unit_keys else plan.groups()


def table_with_ends(
    plan: Plan, name: str, metric: Node, confidence: Confidence | None, account: Account, *, of_bins: bool = False
) -> tuple[pl.LazyFrame, list[pl.Expr]]:
    """The plan's table, and of it the value of a metric under a name, with the columns `ENDS` where wanted.

    Its rows are points of groups, and the account is of the rows of these. A point is of all of them, unless it is
    a bin: then the buckets say how many clusters it has.
    """
    value = plan.value(metric)
    if confidence is None:
        return plan.groups(), [value.alias(name)]
    intervals, result = Intervals(plan, confidence), Result(name, value)
    interval = intervals.of(metric, intervals.weights_of(metric))
    clusters = None if of_bins else account.n_clusters(confidence.cluster)
    facts = {_IS_POOLED: account.is_pooled, **({} if clusters is None else {_CLUSTERS: clusters})}
    known = {fact: pl.col(fact) for fact in facts}
    flag = intervals.flag_of(metric, interval, known[_IS_POOLED], known.get(_CLUSTERS), **intervals.rare(metric))
    flag = pl.when(_is_number(result)).then(flag)
    columns = [*_ends(result, interval), flag]
    table = _with_facts(intervals.table(), account.plan, facts)
    return table, [value.alias(name), *map(pl.Expr.alias, columns, ENDS.names())]


def _with_facts(points: pl.LazyFrame, groups: Plan, facts: Mapping[str, pl.Expr]) -> pl.LazyFrame:
    """Points of groups, with facts of the group of each."""
    if not any(fact.meta.root_names() for fact in facts.values()):
        return points.with_columns(**facts)
    return matched(points, groups.groups().select(*groups.by, **facts), groups.by, how="left")


def _columns(intervals: Sequence[T], step: Callable[[T], list[pl.Expr]]) -> list[pl.Expr]:
    return [column for each in intervals for column in step(each)]


def _ends(result: Result, interval: Interval | None) -> Ends:
    return Ends(_shown(result, interval, "low"), _shown(result, interval, "high"))


def _shown(result: Result, interval: Interval | None, column: str) -> pl.Expr:
    """A column of the interval: null where the value is no number, or is not shown."""
    if interval is None:
        return pl.lit(None, dtype=pl.Float64)
    return pl.when(_is_number(result)).then(interval.column(column))


def _is_number(result: Result) -> pl.Expr:
    return result.value.cast(pl.Float64).is_finite()
