"""Differences: their values, intervals, tests and flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import polars as pl

from polars_mlmetrics.contrasts.pairing import N_PAIRS, N_UNPAIRED
from polars_mlmetrics.contrasts.sides import PairPlan, named_of_baseline
from polars_mlmetrics.data.expressions import any_of
from polars_mlmetrics.formula.measure import Measure, Node
from polars_mlmetrics.intervals.interval import Replicated, unless_noise
from polars_mlmetrics.intervals.intervals import Intervals
from polars_mlmetrics.intervals.kinds import core_of, planned_in, range_of
from polars_mlmetrics.intervals.limits import Limits
from polars_mlmetrics.intervals.student_t import t_at, welch
from polars_mlmetrics.query.question import Confidence
from polars_mlmetrics.query.results import ResultColumns

COLUMNS = ResultColumns.of(
    (pl.String, "metric"),
    (pl.Float64, "value", "baseline_value", "difference", "low", "high", "p", "p_adjusted"),
    (pl.String, "verdict"),
    (pl.Int64, "n_pairs", "n_unpaired", "n_undefined", "n_undefined_baseline"),
    (pl.String, "ci_flag"),
    (pl.Float64, "mde"),
)
"""The columns of each difference."""

NO_PAIRS = "no_pairs"
"""The flag of a group in which no sample is a pair."""

ONE_SIDE = "one_side"
"""The flag of a group in which only one side has rows."""

NOTHING_COMPARED = {NO_PAIRS: "no sample is on both sides", ONE_SIDE: "one side has no rows"}
"""Flags of rows in which nothing was compared, in words."""

UNCLEAR = "unclear"
"""The verdict where no test finds anything; also that of a difference before it is tested."""

POWER = 0.8
"""How likely a difference as large as `mde` is found."""


class Differences(Intervals):
    """The intervals of differences on pairs, and the row of each in the result."""

    _nothing_compared = NO_PAIRS
    _known_of_one_side: ClassVar[Sequence[str]] = ()
    """The columns of the result that are known where nothing is compared, but for the counts of pairs."""

    def __init__(self, plan: PairPlan, confidence: Confidence) -> None:
        super().__init__(plan, confidence)
        self._pairs = plan

    def row(self, metric: Node, n_clusters: pl.Expr, several: Sequence[Measure]) -> pl.Expr:
        """The row of one metric, as a struct. `n_clusters` counts the clusters that it uses.

        `several` are 1 where a side uses rows of several models.
        """
        # A difference of rounded values has no interval: it is that of the values themselves.
        core, _ = core_of(metric)
        low, high = range_of(core)
        replicated = self.of(core, self.weights_of(metric), Limits("t", low - high, high - low))
        value, baseline_value = self._shown_values(metric)
        # A null on one side hides no NaN on the other.
        is_broken = value.is_nan() | baseline_value.is_nan()
        difference = pl.when(is_broken).then(float("nan")).otherwise(value - baseline_value)
        is_known = difference.is_finite()
        is_pooled = any_of([side > 0 for each in several for side in self._pairs.sides(each)])
        undefined = dict.fromkeys(self._pairs.add(part).undefined_units for part in planned_in(metric))
        flag = self.flag_of(core, replicated, is_pooled, n_clusters, **self._notes(), **self.rare(core))
        columns: dict[str, pl.Expr | None] = {
            "value": value,
            "baseline_value": baseline_value,
            "difference": unless_noise(difference, value.abs() + baseline_value.abs()),
            "n_undefined": pl.sum_horizontal(map(pl.col, undefined)),
            "n_undefined_baseline": pl.sum_horizontal(pl.col(named_of_baseline(column)) for column in undefined),
            "ci_flag": pl.when(is_known).then(flag),
        }
        if replicated is not None:
            se = replicated.column("se")
            found = {"low": replicated.column("low"), "high": replicated.column("high"), "p": replicated.p}
            # Looks to come would find it too.
            if self._confidence.anytime is None:
                needed = replicated.column("t") + t_at(replicated.column("df"), 2 * POWER - 1)
                found["mde"] = pl.when(se > 0).then(se * needed)
            columns |= {name: pl.when(is_known).then(column) for name, column in found.items()}
            # Bins that may make all of the difference leave nothing to judge, whatever the flag says first.
            columns["verdict"] = pl.when(~self.is_coarse(core, replicated)).then(pl.lit(UNCLEAR))
        # Without a pair there is nothing to tell, though metrics may have a value of no rows.
        is_empty = self._is_empty
        known = {name: columns[name] for name in self._known_of_one_side}
        columns = {name: pl.when(~is_empty).then(column) for name, column in columns.items()} | known
        columns |= {
            "metric": pl.lit(metric.output_name),
            "n_pairs": pl.col(N_PAIRS),
            "n_unpaired": pl.col(N_UNPAIRED),
            "ci_flag": pl.when(is_empty).then(pl.lit(self._nothing_compared)).otherwise(columns["ci_flag"]),
        }
        return COLUMNS.row(columns)

    @property
    def _is_empty(self) -> pl.Expr:
        """Whether nothing is compared in a group."""
        return pl.col(N_PAIRS).eq_missing(0)

    def _shown_values(self, metric: Node) -> list[pl.Expr]:
        """The values of both sides."""
        return [side.cast(pl.Float64) for side in self._pairs.sides(metric)]

    def _notes(self) -> Mapping[str, pl.Expr]:
        """Flags of pairs."""
        return {"pairs_unknown": pl.col(N_PAIRS).is_null(), "few_pairs": pl.col(N_PAIRS) < pl.col(N_UNPAIRED)}


class DifferencesOfAllRows(Differences):
    """The same of all rows of both sides, whether or not their samples are on both."""

    _nothing_compared = ONE_SIDE
    _known_of_one_side = ("value", "baseline_value")

    @property
    def _is_empty(self) -> pl.Expr:
        return ~pl.all_horizontal(self._pairs.is_there)

    def _shown_values(self, metric: Node) -> list[pl.Expr]:
        # A metric may have a value of no rows.
        sides = zip(self._pairs.is_there, super()._shown_values(metric), strict=True)
        return [pl.when(is_there).then(value) for is_there, value in sides]

    def _notes(self) -> Mapping[str, pl.Expr]:
        return {}

    def _replicated(self, name: str, metric: Node, weights: Sequence[Measure], *interval: Any) -> Replicated:
        of_sides = [self._pairs.sides(each) for each in weights]
        sides = [
            OneSide(value, f"{name}_{side}", metric, [weight[side] for weight in of_sides], *interval)
            for side, value in enumerate(self._pairs.sides(metric))
        ]
        self._intervals += sides
        return OfTwoSides(sides, name, metric, [weight[0] for weight in of_sides], *interval)

    def _is_placed(self, metric: Node) -> bool:
        # Placements say how far a bucket moves the difference, and not how sure each side is.
        return False


class OneSide(Replicated):
    """The value of one side on the way from its replicates to its own standard error."""

    def __init__(self, value: pl.Expr, *interval: Any) -> None:
        super().__init__(*interval)
        self._value = value.cast(pl.Float64)
        self._size = self._value.abs()


class OfTwoSides(Replicated):
    """A difference of sides that may have other samples. A bucket leaves both at once, so what they share counts.

    Its degrees of freedom are those of Welch and Satterthwaite, unless a few buckets decide. All else that a flag goes
    by is that of the worse side.
    """

    def __init__(self, sides: Sequence[OneSide], *interval: Any) -> None:
        super().__init__(*interval)
        self._sides = sides

    @property
    def _has_value(self) -> pl.Expr:
        return any_of([side._has_value for side in self._sides])

    @property
    def _se(self) -> pl.Expr:
        # Nothing says how far a side may be off that no bucket moves, however few rows it has.
        errors = [side._known_se for side in self._sides]
        is_known = pl.all_horizontal(error.is_not_null() for error in errors)
        return pl.when(any_of([error == 0 for error in errors])).then(0.0).when(is_known).then(super()._se)

    def _df(self, buckets: pl.Expr) -> pl.Expr:
        of_sides = welch([side._known_se for side in self._sides], [side.column("buckets") - 1 for side in self._sides])
        return pl.min_horizontal(super()._df(buckets), of_sides)

    @property
    def _facts(self) -> dict[str, pl.Expr]:
        buckets, shares = ([side.column(name) for side in self._sides] for name in ("buckets", "share"))
        return {"buckets": pl.min_horizontal(buckets), "share": pl.max_horizontal(shares)}

    @property
    def few_decide(self) -> pl.Expr:
        """Whether a handful of buckets makes nearly all of the standard error of the difference, or of a side."""
        return any_of([super().few_decide, *(side.few_decide for side in self._sides)])
