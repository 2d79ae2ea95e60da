"""Intervals: how far a value can be trusted, from what it is without each bucket of clusters in turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from polars_mlmetrics.analysis.confidence import Confidence
from polars_mlmetrics.analysis.parts import core_of, range_of
from polars_mlmetrics.analysis.replicated import Drawn, Limits, Replicable, Replicated
from polars_mlmetrics.engine.draws import DRAW, Draws
from polars_mlmetrics.engine.folds import fold, matched
from polars_mlmetrics.engine.plan import Plan
from polars_mlmetrics.engine.replicates import WITHOUT, Replicates
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.measure import Node
from polars_mlmetrics.formula.tree import WITHOUT_INTERVAL
from polars_mlmetrics.query.account import Account, first_that_holds
from polars_mlmetrics.query.results import Ends, Result

FEW_BUCKETS, FEW_CLUSTERS = 10, 30
SEEMS_FEW = 24
"""So few buckets that tell something mean few clusters, where these are not counted."""

DOMINANT, MANY_BUCKETS = 0.2, 32
"""The share of the rows with which a bucket decides the interval, where there are at least so many buckets."""


FLAGS = {"total": "totals", "extreme": "extremes"}
"""What the metrics without an interval are."""


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
            "degenerate": replicated.is_degenerate(),
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
        kind, is_drawn = metric.interval_kind, self._confidence.is_bootstrap
        # A total without a bucket is another total; one of as many buckets is not.
        has_none = kind in WITHOUT_INTERVAL and not (is_drawn and kind == "total")
        if has_none or not self._confidence.are_whole or not self._plan.merges(metric):
            return None
        name, limits = f"{INTERNAL}interval_{len(self._asked)}", self.limits_of(core_of(metric)[0])
        replicated = Drawn if is_drawn else Replicated
        self._asked.append(replicated(name, metric, rows, limits, self._plan, self._confidence))
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
        without = self._again(Replicates(self._plan.source, self._plan.by), WITHOUT)
        values = without.select(*cell, *self._columns(lambda each: each.values())).cache()
        is_whole = pl.col(WITHOUT).is_null()
        whole = values.filter(is_whole).select(*keys, *self._columns(lambda each: each.of_whole()))
        alone = self._again(self._plan.source, WITHOUT).select(*cell, *self._columns(lambda each: each.alone()))
        cells = matched(matched(alone, values.filter(~is_whole), cell, how="left"), whole, keys)
        cells = cells.with_columns(self._columns(lambda each: each.difference()))
        table = fold(cells, keys, self._columns(lambda each: each.sums()))
        if self._confidence.is_bootstrap:
            table = matched(table, self._of_draws(whole), keys, how="left")
        # What several columns read is a column first: inside an expression it would be worked out for each.
        table = table.with_columns(self._columns(lambda each: each.errors()))
        table = table.with_columns(self._columns(lambda each: each.units()))
        return table.with_columns(self._columns(lambda each: each.ends()))

    def _of_draws(self, whole: pl.LazyFrame) -> pl.LazyFrame:
        """What the draws say together."""
        asked = [each for each in self._asked if isinstance(each, Drawn)]
        draws = self._again(Draws(self._plan.source, self._plan.by, self._confidence.buckets), DRAW)
        values = draws.select(*self._keys, DRAW, *self._columns(lambda each: each.values()))
        values = matched(values, whole, self._keys).with_columns(each.drawn() for each in asked)
        return fold(values, self._keys, [column for each in asked for column in each.quantiles()])

    def _columns(self, step: Callable[[Replicated], list[pl.Expr]]) -> list[pl.Expr]:
        return [column for each in self._asked for column in step(each)]

    def _again(self, source: Any, key: str) -> pl.LazyFrame:
        """The values of the plan by one more key, from this source."""
        plan = self._plan.again(source, [*self._plan.by, key])
        return plan.units() if isinstance(plan, Plan) and self._unit_keys else plan.groups()


def _shown(result: Result, replicated: Replicated | None, column: str) -> pl.Expr:
    """A column of the interval: null where the value is no number, or is not shown."""
    if replicated is None:
        return pl.lit(None, dtype=pl.Float64)
    return pl.when(_is_number(result)).then(replicated.column(column))


def _is_number(result: Result) -> pl.Expr:
    return result.value.cast(pl.Float64).is_finite()
