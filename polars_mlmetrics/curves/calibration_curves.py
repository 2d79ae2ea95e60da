"""Bins of the score: what scores promise and what is true (calibration), and where the scores of each class lie."""

from __future__ import annotations

import polars as pl

from polars_mlmetrics.curves.stored_bins import number_of_bins
from polars_mlmetrics.engine.folds import fold, matched
from polars_mlmetrics.engine.plan import Plan, ReadFormulas, Runs
from polars_mlmetrics.engine.replicates import WITHOUT
from polars_mlmetrics.engine.sources import TableSource
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.arithmetic import edge, ratio
from polars_mlmetrics.formula.declaration import CATALOGUE, Declaration
from polars_mlmetrics.formula.measure import Measure, of_rows_of
from polars_mlmetrics.formula.unit import Unit
from polars_mlmetrics.intervals.intervals import table_with_ends
from polars_mlmetrics.metrics.calibration import bins_of
from polars_mlmetrics.query.question import Question
from polars_mlmetrics.query.reported_value import Account
from polars_mlmetrics.query.results import ResultColumns

COLUMNS = ResultColumns.of(
    (pl.Int64, "bin"), (pl.Float64, "score", "truth"), (pl.Int64, "n_rows"), (pl.Float64, "bin_low", "bin_high")
)

SHARES = {"negatives": "share_of_negatives", "positives": "share_of_positives"}
"""The columns of the rows of each class, and of their shares."""

OF_SCORES = ResultColumns.of(
    (pl.Int64, "bin"),
    (pl.Float64, "bin_low", "bin_high", "negatives", "positives", "share_of_negatives", "share_of_positives"),
)

BIN, BROKEN, USED = (f"{INTERNAL}{name}" for name in ("bin_of_score", "broken_curve", "used"))


def rows_in_bins(u: Unit, *, bins: int, is_stored: bool) -> pl.Expr:
    """The weight of rows, folded by bin: that, their scores (less the truth in a state), and the true ones."""
    number, rows, surplus, positives = bins_of(u, bins, logits=False)
    scores = surplus if is_stored else u.probability.alias("probability")
    weights, *_ = u.runs(number, rows, scores, positives, cells=bins)
    return weights.sum()


def classes_in_bins(u: Unit, *, bins: int, is_stored: bool) -> pl.Expr:
    """The weight of rows, folded by bin: those that are not true (in a state all), and the true ones."""
    number, rows, _, positives = bins_of(u, bins, logits=False)
    first, positives = u.runs(number, rows if is_stored else (~u.truth).alias("negatives"), positives, cells=bins)
    return (first + positives).sum()


def mean_score(u: Unit) -> pl.Expr:
    """The mean probability."""
    return ratio(u.sum("probability", u.probability), u.rows())


BINS, CLASSES = (Declaration(each, "group", (0, float("inf")), None) for each in (rows_in_bins, classes_in_bins))
SCORE = Declaration(mean_score, "group", (0, 1), None)


def curve_of_calibration(question: Question, by: list[str], bins: int | None) -> pl.LazyFrame:
    """One row for each bin of a group that has rows; one without a bin where there is none, or where one is broken."""
    like = question.query.measures[0]
    count = number_of_bins(question, like, "calibration", bins)
    runs = _runs_of(BINS, count, question, like, by)
    groups = fold(runs.table, by, [runs.n_rows.sum().alias(USED), runs.is_broken.any().alias(BROKEN)])
    # No bin is of a broken group, so such a group matches none.
    bins_of_whole = _values_of_bins(question, runs, like, by).with_columns(pl.lit(False).alias(BROKEN))
    table = matched(groups, bins_of_whole, [*by, BROKEN], how="left")
    number = pl.col("bin")
    table = table.with_columns(
        pl.when(~pl.col(BROKEN)).then(pl.col("score", "truth")).otherwise(float("nan")),
        pl.when(number.is_null()).then(USED).otherwise("n_rows").alias("n_rows"),
        *_edges(number, count),
    )
    return table.sort([*by, "bin"])


def curve_of_scores(question: Question, by: list[str], bins: int | None) -> pl.LazyFrame:
    """One row for each bin, with rows or without: what it has of each class, and of the group's rows of that class."""
    like = question.query.measures[0]
    count = number_of_bins(question, like, "scores", bins)
    runs = _runs_of(CLASSES, count, question, like, by)
    first, positives = runs.sums
    # A sum of weights is rounded, but never below that of some of them in the same order.
    negatives = first - positives if question.is_of_state else first
    classes, is_bin = {"negatives": negatives, "positives": positives}, runs.key.is_finite()
    totals = [rows.filter(is_bin).sum().alias(SHARES[name]) for name, rows in classes.items()]
    groups = fold(runs.table, by, [runs.n_rows.sum().alias(USED), runs.is_broken.any().alias(BROKEN), *totals])
    # A group without rows and a broken one have one row, without a bin.
    numbers = pl.when(~pl.col(BROKEN) & (pl.col(USED) > 0)).then(pl.int_ranges(0, count)).alias("bin")
    in_bins = runs.table.filter(is_bin).select(*by, runs.key.cast(pl.Int64).alias("bin"), **classes)
    table = matched(groups.with_columns(numbers).explode("bin"), in_bins, [*by, "bin"], how="left")
    number = pl.col("bin")
    table = table.with_columns(pl.when(number.is_not_null()).then(pl.col(*SHARES).fill_null(0)), *_edges(number, count))
    table = table.with_columns(ratio(pl.col(rows), pl.col(total)).alias(total) for rows, total in SHARES.items())
    values = pl.when(~pl.col(BROKEN)).then(pl.col(*SHARES, *SHARES.values())).otherwise(float("nan"))
    return table.with_columns(values).sort([*by, "bin"]).select(*by, *OF_SCORES.cast())


def _edges(number: pl.Expr, count: int) -> list[pl.Expr]:
    return [edge(number, count).alias("bin_low"), edge(number + 1, count).alias("bin_high")]


def _runs_of(declared: Declaration, count: int, question: Question, like: Measure, by: list[str]) -> Runs:
    """The runs of a declaration whose runs are bins, read several times."""
    keys = by if question.confidence is None else [*by, WITHOUT]
    in_bins = Measure(declared, {"bins": count, "is_stored": question.is_of_state}, called="curve")
    runs = Plan(question.source, keys, question.query.readings).runs(of_rows_of(in_bins, like))
    return runs._replace(table=runs.table.cache())


def _values_of_bins(question: Question, runs: Runs, like: Measure, by: list[str]) -> pl.LazyFrame:
    """The bins that have rows, each as a group of its own."""
    schema = pl.Schema({**question.source.schema, BIN: pl.Int64()})
    declared = SCORE, CATALOGUE["prevalence"], CATALOGUE["n_rows"]
    score, truth, n_rows = (of_rows_of(Measure(each, {}), like) for each in declared)
    rows, scores, positives = runs.sums
    scores = scores + positives if question.is_of_state else scores
    # A state knows what the rows of a bin weigh, and not how many they are where they have weights.
    is_counted = not question.is_of_state or like.table.weight is None
    counted = runs.n_rows if not question.is_of_state else rows if is_counted else pl.lit(1)
    sums = {"probability": scores, "positives": positives, "rows": rows, "n_rows": counted}
    bins = runs.table.filter(runs.key.is_finite()).with_columns(runs.key.cast(pl.Int64).alias(BIN), **sums)
    plan = Plan(TableSource(bins, schema), [*by, BIN], ReadFormulas(schema, question.query.roles))
    values = plan.value(score).alias("score"), plan.value(n_rows).alias("n_rows")
    account = Account(truth, Plan(question.source, by, question.query.readings))
    table, shares = table_with_ends(plan, "truth", truth, question.confidence, account, of_bins=True)
    table = table.select(*by, pl.col(BIN).alias("bin"), *values, *shares)
    table = table.filter(pl.col("bin").is_not_null(), pl.col("n_rows") > 0)
    return table if is_counted else table.with_columns(n_rows=pl.lit(None, dtype=pl.Int64))
