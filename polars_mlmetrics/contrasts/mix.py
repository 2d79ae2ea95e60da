"""Mix and rate: how much of a change comes from the shares of the slices, and how much from their values.

The value of a whole is often the mean of those of its slices, by their shares of its denominator (`RatioMix`). With p
and v for the share and the value of a slice, V for the value of the whole, and 0 and 1 for the two sides, a slice adds
to the change

    mix  = (p1 - p0) · ((v0 + v1) / 2 - (V0 + V1) / 2)
    rate = (p0 + p1) / 2 · (v1 - v0)

The first is of slices that are more (or fewer) and lie above the whole, or below it; the second of slices whose value
changed. Over all slices they add up to V1 - V0. A slice that one side lacks takes the value of the other: it is all
mix. Other metrics have a mix and a rate of the whole alone (reweighted.py). Both are worked out again without each
bucket, which leaves all slices of both sides at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import polars as pl

from polars_mlmetrics.contrasts.in_memory import (
    DECIDING,
    DF,
    ERROR,
    HAS,
    OF_ALL,
    SIZE,
    VALUE,
    are_numbered,
    replicated,
    source_for,
)
from polars_mlmetrics.contrasts.pairing import candidates_of
from polars_mlmetrics.data.expressions import any_of
from polars_mlmetrics.engine.folds import fold, matched
from polars_mlmetrics.engine.plan import Plan
from polars_mlmetrics.engine.replicates import WITHOUT, Replicates
from polars_mlmetrics.errors import INTERNAL, TableError
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.formula.measure import Measure, Node
from polars_mlmetrics.formula.ratio_of_sums import denominator_of
from polars_mlmetrics.formula.tree import WITHOUT_INTERVAL, Derived, Named
from polars_mlmetrics.intervals.interval import FEW_BUCKETS, FEW_CLUSTERS, few_decide, unless_noise
from polars_mlmetrics.intervals.intervals import Intervals, flag_of, flag_without_interval
from polars_mlmetrics.intervals.kinds import buckets_for, core_of
from polars_mlmetrics.intervals.student_t import clusters_in, t_at
from polars_mlmetrics.query.query import check_names
from polars_mlmetrics.query.question import Question
from polars_mlmetrics.query.reported_value import several_models
from polars_mlmetrics.query.results import ResultColumns, slice_text

COLUMNS = ResultColumns.of(
    (pl.String, "metric"),
    (pl.Float64, "value", "baseline_value", "share", "baseline_share"),
    (pl.Float64, "mix", "mix_low", "mix_high", "rate", "rate_low", "rate_high", "change"),
    (pl.Int64, "n_buckets"),
    (pl.String, "ci_flag"),
)
"""The columns of each slice, after those that name it."""

WEIGHT, TOTAL, SHARE, WHOLE, MIX, RATE, SHOWN = (
    f"{INTERNAL}{name}" for name in ("weight", "total", "share", "whole", "mix", "rate", "shown")
)
IS_WHOLE, IS_THERE, ONE_SIDE, POOLED, FEW, N_BUCKETS, NUMBERED = (
    f"{INTERNAL}{name}" for name in ("is_whole", "is_there", "one_side", "pooled", "few", "n_buckets", "numbered")
)

OTHER = "_of_baseline"
"""The end of the name of a column that is of the baseline."""

SIDES = ("", OTHER)

PARTS = pl.Schema(
    {
        **{name + side: pl.Float64() for name in (SHARE, WHOLE) for side in SIDES},
        **{name: pl.Float64() for name in (MIX, RATE, SIZE)},
        **{name: pl.Boolean() for name in (ONE_SIDE, HAS, HAS + OTHER)},
    }
)
"""The columns of a slice, or of a whole, from both of its sides."""

SLACK = 1e-9
"""How far, in parts of their sizes, the values of the slices may be from that of the whole by rounding."""

Weight = Callable[[Plan], pl.Expr]
"""The weight of a value in that of the whole, as a column of a plan."""


def weight_in(metric: Node) -> Weight | None:
    """The weight of a slice: the denominator of its value. None where the whole is no mean of its slices."""
    if isinstance(metric, Named):
        return weight_in(metric.metric)
    if isinstance(metric, Derived):
        # A constant more, or a multiple.
        is_linear = metric.operator in "+-*" or (metric.operator == "/" and isinstance(metric.left, Node))
        return weight_in(metric.parts[0]) if is_linear and len(metric.parts) == 1 else None
    if not isinstance(metric, Measure):
        return None
    is_mean = metric.grain == "sample" and metric.settlement.average in (None, "samples")
    # The value of a sample must not depend on the rest of its group, as on the shares of labels there.
    if is_mean and not metric.probe.looks_into:
        return lambda plan: pl.col(plan.add(metric).weight)
    denominator = denominator_of(metric) if metric.grain == "group" else None
    return None if denominator is None else lambda plan: plan.value(denominator)


class MixAndRate(ABC):
    """The slices of a baseline and of each candidate. Their column is the last by column of the query."""

    def __init__(self, question: Question, baseline: Any) -> None:
        query = question.query
        assert question.confidence is not None
        assert query.slices is not None
        self._query, self._source = query, question.source
        *self._groups, self._between = query.by
        (self._over,) = query.slices
        (self._metric,) = query.metrics
        self._baseline = baseline
        self._by = [key.column for key in self._groups]
        self._slice = [key.column for key in self._over]
        self._pair = [*self._by, self._between.column]
        check_names([*(key.name for key in (*query.by, *self._over)), "slice", *COLUMNS])
        self._core, _ = core_of(self._metric)
        self._keys = [*self._pair, *self._slice, IS_WHOLE]
        self._plan = Plan(self._source, [*self._pair, *self._slice], query.readings)
        self._confidence = buckets_for(self._core, self._plan, question.confidence)
        self._by_bucket = source_for(self._core, self._plan, question.confidence)
        """The source of replicates."""
        has_interval = self._core.interval_kind not in WITHOUT_INTERVAL and self._confidence.are_whole
        self._without = [WITHOUT] if has_interval and self._plan.merges(self._core) else []
        """The key of replicates; none where there is no interval."""

    @abstractmethod
    def _weight(self) -> pl.Expr:
        """The weight of a slice, of which its share is made."""

    @abstractmethod
    def _parts(self, slices: pl.LazyFrame, group: Sequence[str]) -> pl.LazyFrame:
        """Mix and rate of slices and of wholes, of all buckets and without each. The slices have their shares."""

    def empty(self) -> pl.LazyFrame:
        """A table of the same columns, without rows."""
        types_of = self._query.types_of
        return COLUMNS.empty({**types_of(self._query.by), "slice": pl.String(), **types_of(self._over)})

    def table(self) -> pl.LazyFrame:
        """One row a group and candidate, then one for each of its slices."""
        values, *cells = (table.lazy() for table in pl.collect_all(self._tables()))
        models = values.select(self._between.column)
        self._candidates = candidates_of(models, self._baseline, self._between.name).alias(self._between.column)
        of_all = values.filter(~pl.col(IS_WHOLE)).drop(IS_WHOLE, SHOWN, POOLED, FEW)
        of_all = of_all.with_columns(pl.lit(False).alias(HAS))
        group = [*self._pair, *self._without]
        slices = self._with_shares(pl.concat([of_all, *cells], how="diagonal"), group)
        parts = self._parts(slices, group).select(*self._keys, *self._without, *PARTS).collect()
        table = self._sides(values, self._keys)
        for found in self._with_ends(parts):
            table = table.join(found, on=self._keys, how="left", nulls_equal=True)
        table = table.collect().lazy()
        self._check_mean(table)
        return self._named(table)

    # -- values of both sides -----------------------------------------------------------------------------------

    def _tables(self) -> list[pl.LazyFrame]:
        """The values of wholes and of slices; then, where there is an interval, of slices without each bucket."""
        slices, whole = self._plan, Plan(self._source, self._pair, self._query.readings)
        columns = slices.value(self._core).cast(pl.Float64).alias(VALUE), self._weight().cast(pl.Float64).alias(WEIGHT)
        replicates = [self._replicates(*columns)] if self._without else []
        of_whole = whole.value(self._core).cast(pl.Float64).alias(VALUE)
        # A plan must know its columns before its table is made.
        wanted = [(slices, [*columns, *self._facts(slices)], False), (whole, [of_whole, *self._facts(whole)], True)]
        tables = [
            plan.groups().select(*plan.by, *facts, pl.lit(is_whole).alias(IS_WHOLE)) for plan, facts, is_whole in wanted
        ]
        return [pl.concat(tables, how="diagonal"), *replicates]

    def _facts(self, plan: Plan) -> list[pl.Expr]:
        """The value that is shown, whether rows of several models make it, and whether few rows are of a class."""
        shown = plan.value(self._metric).cast(pl.Float64)
        several = any_of([plan.value(each) > 0 for each in several_models(self._metric, plan)])
        few = Intervals(plan, self._confidence).rare(self._core)["few_positives"]
        return [shown.alias(SHOWN), several.alias(POOLED), few.alias(FEW)]

    def _replicates(self, *columns: pl.Expr) -> pl.LazyFrame:
        """The slices without each bucket, which leaves both sides, and whether it has rows of them that count."""
        cell = [*self._plan.by, WITHOUT]
        without = self._plan.again(Replicates(self._by_bucket, self._by), cell).groups().select(*cell, *columns)
        has = (pl.col(WEIGHT) != 0).fill_null(True).alias(HAS)
        alone = self._plan.again(self._by_bucket, cell).groups().select(*cell, *columns).select(*cell, has)
        return matched(without.filter(pl.col(WITHOUT).is_not_null()), alone, cell, how="left")

    def _sides(self, table: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
        """One row a candidate and key, with the columns of both sides. One of them may have no rows there."""
        between, candidates = self._between.column, self._candidates.to_frame().lazy()
        is_baseline = pl.col(between).eq_missing(pl.lit(self._baseline, dtype=self._candidates.dtype))
        table = table.with_columns(pl.lit(True).alias(IS_THERE))
        theirs = table.filter(is_baseline).drop(between).join(candidates, how="cross")
        return table.filter(~is_baseline).join(
            theirs, on=keys, how="full", nulls_equal=True, coalesce=True, suffix=OTHER
        )

    def _with_shares(self, cells: pl.LazyFrame, group: Sequence[str]) -> pl.LazyFrame:
        """The slices of both sides, with the share of each in the weight of its whole."""
        sides = self._sides(cells, [*group, *self._slice])
        # A slice that a side lacks weighs nothing there.
        weights = [
            pl.when(pl.col(IS_THERE + side)).then(pl.col(WEIGHT + side)).otherwise(0.0).alias(WEIGHT + side)
            for side in SIDES
        ]
        sides = sides.with_columns(*weights, *(pl.col(HAS + side).fill_null(False) for side in SIDES))
        one_side = any_of([pl.col(WEIGHT + side) == 0 for side in SIDES]).alias(ONE_SIDE)
        return sides.with_columns(one_side, *(column for side in SIDES for column in _shares(side, group)))

    # -- intervals ----------------------------------------------------------------------------------------------

    def _with_ends(self, parts: pl.DataFrame) -> list[pl.LazyFrame]:
        """Mix and rate, their ends, and how many buckets tell of them: the fewer of the two sides."""
        if not self._without:
            return [parts.lazy().drop(HAS, HAS + OTHER)]
        own, theirs = pl.col(HAS), pl.col(HAS + OTHER)
        counted = fold(parts.lazy(), self._keys, [pl.col(HAS, HAS + OTHER).sum().cast(pl.Int64)])
        one = pl.max_horizontal(own, theirs)
        n_buckets = pl.when((own == 0) | (theirs == 0)).then(one).otherwise(pl.min_horizontal(own, theirs))
        of_all = parts.lazy().filter(pl.col(WITHOUT).is_null()).drop(WITHOUT, HAS, HAS + OTHER)
        numbered = are_numbered(parts, self._confidence).alias(NUMBERED)
        found = [of_all, counted.select(*self._keys, n_buckets.alias(N_BUCKETS), numbered)]
        for name in (MIX, RATE):
            cells = parts.select(*self._keys, WITHOUT, pl.col(name).alias(VALUE), SIZE, (own | theirs).alias(HAS))
            half = pl.when(pl.col(ERROR) > 0).then(t_at(pl.col(DF), self._confidence.level) * pl.col(ERROR))
            columns = {
                "low": pl.col(OF_ALL) - half,
                "high": pl.col(OF_ALL) + half,
                "error": pl.col(ERROR),
                "few": few_decide(pl.col(DECIDING)),
            }
            ends = replicated(cells, self._keys).lazy()
            found.append(ends.select(*self._keys, *(column.alias(name + what) for what, column in columns.items())))
        return found

    def _check_mean(self, table: pl.LazyFrame) -> None:
        """Refuse slices that cut through samples into which the metric looks."""
        if not any(measure.probe.looks_at_samples for measure in self._metric.measures()):
            return
        sides = [(pl.col(VALUE + side), pl.col(WHOLE + side)) for side in SIDES]
        off = [(value - whole).abs() for value, whole in sides]
        is_off = [each.is_finite() & (each > SLACK * pl.col(SIZE)) for each in off]
        # A state does not know the value of a whole in which samples may lie in several slices.
        is_off += [value.is_null() & whole.is_not_null() for value, whole in sides]
        if not table.filter(pl.col(IS_WHOLE) & any_of(is_off)).head(1).collect().is_empty():
            names = ", ".join(repr(key.name) for key in self._over)
            raise TableError(
                f"decompose needs slices of whole samples for {self._metric.output_name}, which looks into these, and "
                f"some samples have (in a state: may have) several values of {names}."
            )

    # -- the result ---------------------------------------------------------------------------------------------

    def _flags(self) -> dict[str, pl.Expr]:
        """The flags, but for those that hold with an interval and without."""
        if not self._without:
            return {flag_without_interval(self._core.interval_kind): pl.lit(True)}
        names, n_buckets = (MIX, RATE), pl.col(N_BUCKETS)
        errors = {name: pl.col(name + "error") for name in names}
        # Slices have no mix where their whole is no mean of them.
        wanted = {name: pl.col(name).is_not_null() | pl.col(IS_WHOLE) for name in names}
        return {
            "undefined_replicates": any_of([wanted[name] & errors[name].is_null() for name in names]),
            "degenerate": pl.all_horizontal((error == 0).fill_null(True) for error in errors.values()),
            "few_buckets": n_buckets < FEW_BUCKETS,
            "few_decide": any_of([pl.col(name + "few") for name in names]),
            "few_positives": pl.col(FEW) | pl.col(FEW + OTHER),
            "biased": pl.lit(self._core.interval_kind == "biased"),
            "low_n": clusters_in(n_buckets, self._confidence.buckets, pl.col(NUMBERED)) < FEW_CLUSTERS,
        }

    def _named(self, table: pl.LazyFrame) -> pl.LazyFrame:
        """The columns of the result, under their public names."""
        mix, rate, one_side = pl.col(MIX), pl.col(RATE), pl.col(ONE_SIDE)
        value, other = pl.col(SHOWN), pl.col(SHOWN + OTHER)
        # Of a rounded metric the parts are those of what is rounded.
        of_whole = unless_noise(value - other, value.abs() + other.abs())
        change = pl.when(pl.col(IS_WHOLE)).then(of_whole).otherwise(mix + rate)
        flag = flag_of({"one_side": one_side, "pooled": pl.col(POOLED) | pl.col(POOLED + OTHER), **self._flags()})
        columns = {
            "metric": pl.lit(self._metric.output_name),
            "value": value,
            "baseline_value": other,
            "share": pl.col(SHARE),
            "baseline_share": pl.col(SHARE + OTHER),
            "change": change,
            "ci_flag": pl.when(one_side | pl.coalesce(change, rate).is_finite()).then(flag),
            "n_buckets": pl.col(N_BUCKETS) if self._without else pl.lit(None),
        }
        for name, own in (("mix", MIX), ("rate", RATE)):
            columns[name] = pl.col(own)
            for end in ("low", "high"):
                columns[f"{name}_{end}"] = pl.col(own + end) if self._without else pl.lit(None)
        keys = [pl.col(key.column).alias(key.name) for key in self._query.by]
        text = pl.when(~pl.col(IS_WHOLE)).then(slice_text(self._query, self._over)).otherwise(pl.lit(""))
        over = [pl.col(key.column).alias(key.name) for key in self._over]
        order = [*self._by, self._between.column, pl.col(IS_WHOLE).not_(), *self._slice]
        nulls_last = [key == self._between.column for key in self._pair] + [False] * (1 + len(self._slice))
        results = (columns[name].cast(dtype).alias(name) for name, dtype in COLUMNS.items())
        return table.sort(order, nulls_last=nulls_last).select(*keys, text.alias("slice"), *over, *results)


class RatioMix(MixAndRate):
    """Mix and rate of a metric whose value of a whole is the mean of those of its slices."""

    def __init__(self, question: Question, baseline: Any, weight: Weight) -> None:
        super().__init__(question, baseline)
        self._weight_in = weight

    def _weight(self) -> pl.Expr:
        return self._weight_in(self._plan)

    def _parts(self, slices: pl.LazyFrame, group: Sequence[str]) -> pl.LazyFrame:
        # With `undefined=` a slice in which nothing counts has a value too.
        values = [pl.when(pl.col(WEIGHT + side) != 0).then(pl.col(VALUE + side)).alias(VALUE + side) for side in SIDES]
        slices = slices.with_columns(values).with_columns(_mean(side, group) for side in SIDES)
        slices = slices.with_columns(_mix_and_rate())
        wholes = fold(slices, group, [*of_whole(), *map(_sum, (MIX, RATE, SIZE)), pl.col(WHOLE, WHOLE + OTHER).first()])
        return with_wholes(slices, wholes)


def _mean(side: str, group: Sequence[str]) -> pl.Expr:
    """The value of the whole; null where that of a slice is not known."""
    share, value = pl.col(SHARE + side), pl.col(VALUE + side)
    is_unknown = share.is_null() | ((pl.col(WEIGHT + side) != 0) & value.is_null())
    return pl.when(~is_unknown.any().over(group)).then((share * value).sum().over(group)).alias(WHOLE + side)


def _mix_and_rate() -> list[pl.Expr]:
    """The addends of each slice to the change, and the size of their terms."""
    share, other_share, whole, other_whole = (pl.col(name + side) for name in (SHARE, WHOLE) for side in SIDES)
    value, other = values_of_both()
    above = 0.5 * (value + other) - 0.5 * (whole + other_whole)
    size = value.abs() + other.abs() + whole.abs() + other_whole.abs()
    # A slice that neither side has adds nothing.
    is_known, nothing = (whole - other_whole).is_not_null(), pl.lit(0.0)
    return [
        pl.when(is_known).then((share - other_share) * pl.coalesce(above, nothing)).alias(MIX),
        pl.when(is_known).then(0.5 * (share + other_share) * pl.coalesce(value - other, nothing)).alias(RATE),
        (0.5 * (share.abs() + other_share.abs()) * size.fill_null(0.0)).alias(SIZE),
    ]


def _sum(name: str) -> pl.Expr:
    """The sum over the slices; null where one is not known."""
    return pl.when(pl.col(name).is_not_null().all()).then(pl.col(name).sum()).alias(name)


def values_of_both() -> tuple[pl.Expr, pl.Expr]:
    """The values of a slice on both sides. That of a side that lacks it is the value of the other."""
    ours, theirs = pl.col(VALUE), pl.col(VALUE + OTHER)
    return pl.coalesce(ours, theirs), pl.coalesce(theirs, ours)


def _shares(side: str, group: Sequence[str]) -> list[pl.Expr]:
    weight = pl.col(WEIGHT + side)
    total = pl.when(weight.is_not_null().all().over(group)).then(weight.sum().over(group))
    return [total.alias(TOTAL + side), ratio(weight, total).alias(SHARE + side)]


def of_whole() -> list[pl.Expr]:
    """The columns of a whole that are made of those of its slices, whatever the metric."""
    shares = [pl.when(pl.col(SHARE + side).is_not_null().all()).then(1.0).alias(SHARE + side) for side in SIDES]
    one_side = any_of([(pl.col(WEIGHT + side) == 0).all() for side in SIDES])
    return [*shares, one_side.alias(ONE_SIDE), pl.col(HAS, HAS + OTHER).any()]


def with_wholes(slices: pl.LazyFrame, wholes: pl.LazyFrame) -> pl.LazyFrame:
    """Slices and wholes, one under the other. A column of `PARTS` that neither has is null."""
    slices, wholes = (
        slices.with_columns(pl.lit(False).alias(IS_WHOLE)),
        wholes.with_columns(pl.lit(True).alias(IS_WHOLE)),
    )
    return pl.concat([slices, wholes, pl.LazyFrame(schema=PARTS)], how="diagonal")
