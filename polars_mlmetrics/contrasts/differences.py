"""Differences: their values, intervals, tests and flags."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polars_mlmetrics.contrasts.pairing import N_PAIRS, N_UNPAIRED
from polars_mlmetrics.contrasts.sides import PairPlan, named_of_baseline
from polars_mlmetrics.data.expressions import any_of
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.formula.measure import Measure, Node, Planned
from polars_mlmetrics.intervals.interval import Limits, unless_noise
from polars_mlmetrics.intervals.intervals import Intervals
from polars_mlmetrics.intervals.kinds import core_of, planned_in, range_of
from polars_mlmetrics.intervals.student_t import p_value, t_at
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

UNCLEAR = "unclear"
"""The verdict where no test finds anything; also that of a difference before it is tested."""

POWER = 0.8
"""How likely a difference as large as `mde` is found."""


class Differences(Intervals):
    """The intervals of differences, and the row of each in the result."""

    def __init__(self, plan: PairPlan, confidence: Confidence) -> None:
        super().__init__(plan, confidence)
        self._pairs = plan

    def sides(self, measure: Planned) -> list[pl.Expr]:
        return list(self._pairs.values(measure))

    def row(self, metric: Node, n_clusters: pl.Expr, several: Sequence[Measure]) -> pl.Expr:
        """The row of one metric, as a struct. `n_clusters` counts the clusters that it uses.

        `several` are 1 where a side uses rows of several models.
        """
        # A difference of rounded values has no interval: it is that of the values themselves.
        core, _ = core_of(metric)
        low, high = range_of(core)
        replicated = self.of(core, self.weights_of(metric), Limits("t", low - high, high - low))
        value, baseline_value = (side.cast(pl.Float64) for side in self._pairs.values(metric))
        # A null on one side hides no NaN on the other.
        is_broken = value.is_nan() | baseline_value.is_nan()
        difference = pl.when(is_broken).then(float("nan")).otherwise(value - baseline_value)
        is_known = difference.is_finite()
        is_pooled = any_of([side > 0 for each in several for side in self._pairs.values(each)])
        undefined = dict.fromkeys(self._pairs.add(part).undefined_units for part in planned_in(metric))
        notes = {"pairs_unknown": pl.col(N_PAIRS).is_null(), **self.rare(core)}
        flag = self.flag_of(core, replicated, is_pooled, n_clusters, **notes)
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
            t = ratio(replicated.column("value_of_all"), se)
            df = replicated.column("df")
            found = {
                "low": replicated.column("low"),
                "high": replicated.column("high"),
                "p": p_value(t, df),
                "mde": pl.when(se > 0).then(se * (replicated.column("t") + t_at(df, 2 * POWER - 1))),
            }
            columns |= {name: pl.when(is_known).then(column) for name, column in found.items()}
            # Bins that may make all of the difference leave nothing to judge, whatever the flag says first.
            columns["verdict"] = pl.when(~self.is_coarse(core, replicated)).then(pl.lit(UNCLEAR))
        # Without a pair there is nothing to tell, though metrics may have a value of no rows.
        is_empty = pl.col(N_PAIRS).eq_missing(0)
        columns = {name: pl.when(~is_empty).then(column) for name, column in columns.items()}
        columns |= {
            "metric": pl.lit(metric.output_name),
            "n_pairs": pl.col(N_PAIRS),
            "n_unpaired": pl.col(N_UNPAIRED),
            "ci_flag": pl.when(is_empty).then(pl.lit(NO_PAIRS)).otherwise(columns["ci_flag"]),
        }
        return COLUMNS.row(columns)
