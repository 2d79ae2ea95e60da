"""Calibration: what scores promise and what is true, in bins of the score."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from polars_mlmetrics.curves.asked_curve import AskedCurve, HeldBins, of_rows_of
from polars_mlmetrics.engine import folds
from polars_mlmetrics.engine.folds import matched
from polars_mlmetrics.engine.plan import Plan, ReadFormulas
from polars_mlmetrics.engine.sources import LogSource
from polars_mlmetrics.engine.state_rows import StateSource
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.arithmetic import bin_of, edge, ratio
from polars_mlmetrics.formula.declaration import CATALOGUE, Declaration
from polars_mlmetrics.formula.measure import Measure
from polars_mlmetrics.formula.statistic import Statistic
from polars_mlmetrics.formula.unit import Unit
from polars_mlmetrics.intervals.intervals import told_with_ends
from polars_mlmetrics.metrics.probabilities import bins_of
from polars_mlmetrics.query.query import Query
from polars_mlmetrics.query.results import ResultColumns

DEFAULT_BINS = 15
ALL = f"{INTERNAL}all"
COLUMNS = ResultColumns.of(
    (pl.Int64, "bin"), (pl.Float64, "score", "truth"), (pl.Int64, "n_rows"), (pl.Float64, "bin_low", "bin_high")
)

BIN = f"{INTERNAL}bin_of_score"
"""The key of bins."""


def mean_score(u: Unit) -> pl.Expr:
    """The mean probability."""
    return ratio(u.sum("probability", u.probability), u.rows())


def share_of_truths(u: Unit) -> pl.Expr:
    """The share of true rows, where the score is a probability."""
    _ = u.probability
    return ratio(u.positives(), u.rows())


OF_BIN = [Measure(Declaration(of, "group", (0, 1), None), {}) for of in (mean_score, share_of_truths)]


def curve_of_calibration(asked: AskedCurve, by: list[str]) -> pl.LazyFrame:
    """One row for each bin of a group that has rows; one without a bin where none can be told."""
    like = asked.query.metrics[0].measures()[0]
    bins = _bins(asked, like)
    table = _with_groups(asked, by, _told(asked, like, bins, by))
    places = {"bin_low": pl.col("bin"), "bin_high": pl.col("bin") + 1}
    bounds = [edge(place, bins).alias(name) for name, place in places.items()]
    return table.with_columns(bounds).sort([*by, "bin"]).select(*by, *COLUMNS, *asked.ends)


def _told(asked: AskedCurve, like: Measure, bins: int, by: list[str]) -> pl.LazyFrame:
    """The bins that have rows."""
    schema = pl.Schema({**asked.source.schema, BIN: pl.Int64()})
    source = _by_bin(asked.query, like, bins, schema) if asked.held is None else held_by_bin(asked.held, like, bins, by)
    plan = Plan(source, [*by, BIN], ReadFormulas(schema, asked.query.roles))
    score, truth, used = (of_rows_of(like, measure) for measure in (*OF_BIN, Measure(CATALOGUE["n_rows"], {})))
    columns = {"bin": pl.col(BIN), "score": plan.value(score), "n_rows": plan.value(used)}
    table, shares = told_with_ends(plan, "truth", truth, asked.confidence)
    cells = table.select(*by, *(value.alias(name) for name, value in columns.items()), *shares)
    cells = cells.filter(pl.col("bin").is_not_null(), pl.col("n_rows") > 0)
    if asked.held is None or like.table.weight is None:
        return cells
    # What a state holds of a bin is what its rows weigh, not how many they are.
    return cells.with_columns(n_rows=pl.lit(None, dtype=pl.Int64))


def _bins(asked: AskedCurve, like: Measure) -> int:
    """How many bins are told: of a state those that it holds."""
    if asked.held is not None:
        return asked.held.bins(like, asked.bins, DEFAULT_BINS)
    return DEFAULT_BINS if asked.bins is None else asked.bins


def _by_bin(query: Query, like: Measure, bins: int, schema: pl.Schema) -> LogSource:
    """The rows of a log, with the number of the bin of each, as `calibration_error` has them; 1 is in the last."""
    number = bin_of(like.table.score.cast(pl.Float64), bins).cast(pl.Int64, strict=False)
    return LogSource(query.rows.with_columns(number.alias(BIN)), query.roles.label, schema)


def _with_groups(asked: AskedCurve, by: list[str], cells: pl.LazyFrame) -> pl.LazyFrame:
    """The bins of all groups, and a row for each group without one: null without rows, NaN where one is broken."""
    like = asked.query.metrics[0].measures()[0]
    plan = Plan(asked.source, by, asked.query.readings)
    share, state, used = OF_BIN[1], f"{INTERNAL}state", f"{INTERNAL}used"
    n_rows = plan.value(of_rows_of(like, Measure(CATALOGUE["n_rows"], {})))
    counts = [plan.value(of_rows_of(like, share)).alias(state), n_rows.alias(used), pl.lit(0).alias(ALL)]
    groups = plan.groups().select(*by, *counts)
    broken = pl.col(state).is_nan().fill_null(False)
    # A key of its own, so that a table without by columns has one too.
    whole = matched(groups.filter(~broken), cells.with_columns(pl.lit(0).alias(ALL)), [*by, ALL], how="left")
    told = [pl.lit(float("nan")).alias(name) for name in ("score", "truth")]
    whole = pl.concat([whole, groups.filter(broken).with_columns(told)], how="diagonal")
    return whole.with_columns(n_rows=pl.when(pl.col("bin").is_null()).then(used).otherwise("n_rows"))


def bins_of_score(u: Unit, *, bins: int) -> pl.Expr:
    """The sums in the bins of a score."""
    rows, *_ = u.runs(*bins_of(u, bins, logits=False), cells=bins)
    return rows.sum()


BINS = Declaration(bins_of_score, "group", (0, float("inf")), None)


def held_by_bin(held: HeldBins, like: Measure, bins: int, by: list[str]) -> StateSource:
    """A state of which the bins are groups: of the rows of a measure."""
    recorder = held.recorder(of_rows_of(like, Measure(BINS, {"bins": bins})))
    rows, surplus, positives = (pl.col(statistic.name) for statistic in recorder.run_rows)
    told = {
        "probability": surplus + positives,
        "positives": positives,
        "rows": rows,
        # Where rows have weights, that there are some.
        "n_rows": rows if like.table.weight is None else pl.lit(1),
        # A group in which a row is broken has no curve.
        **{f"broken_{what}": pl.lit(0) for what in ("probability", "truth", "weight")},
    }
    keys = [*held.with_keys(by), BIN]
    told = {name + recorder.suffix: value for name, value in told.items()}
    table = held.table(recorder, by).with_columns(pl.col(folds.BIN).cast(pl.Int64).alias(BIN))
    return replace(
        held.source,
        table=table.select(*keys, *(value.alias(name) for name, value in told.items())),
        by=keys,
        cluster=None,
        finer=[],
        statistics={name: Statistic(name, pl.col(name), "sum") for name in told},
        by_label=[],
        added=[],
        schema=pl.Schema({**held.source.schema, BIN: pl.Int64()}),
    )
