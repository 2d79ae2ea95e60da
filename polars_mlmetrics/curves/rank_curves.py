"""Curves of a ranking: roc, pr, det and gain, from one fold of the rows or from the cells of bins."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from polars_mlmetrics.curves.asked_curve import AskedCurve, of_rows_of
from polars_mlmetrics.engine.plan import Plan
from polars_mlmetrics.engine.thinning import (
    ALL_OTHER,
    ALL_TRUE,
    OF_POINTS,
    SCORE,
    ThinnedRanking,
    Thinning,
    points_of_kept,
)
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.formula.cells import end_of_cell
from polars_mlmetrics.formula.curve import Cells
from polars_mlmetrics.formula.declaration import CATALOGUE
from polars_mlmetrics.formula.measure import Measure
from polars_mlmetrics.query.query import Query
from polars_mlmetrics.query.results import ResultColumns

ABOVE = ["threshold", "tp", "fp"]
COUNTS = ["positives", "negatives", "n_rows"]

POINT, ALL = f"{INTERNAL}point", f"{INTERNAL}all"


_TP, _FP, _TRUE, _OTHER = map(pl.col, ("tp", "fp", "positives", "negatives"))
_RECALL, _SHARE, _FPR = ratio(_TP, _TRUE), ratio(_TP + _FP, _TRUE + _OTHER), ratio(_FP, _OTHER)

KINDS: Mapping[str, Mapping[str, pl.Expr]] = {
    "roc": {"fpr": _FPR, "tpr": _RECALL},
    "pr": {"recall": _RECALL, "precision": ratio(_TP, _TP + _FP)},
    "det": {"fpr": _FPR, "fnr": ratio(_TRUE - _TP, _TRUE)},
    "gain": {"share": _SHARE, "recall": _RECALL, "lift": ratio(_RECALL, _SHARE)},
}
"""The columns of each kind, from those of the points."""


def columns_of(kind: str) -> ResultColumns:
    """The columns of a curve, after its keys."""
    of_kind = ("threshold", *KINDS[kind], "tp", "fp", "positives", "negatives")
    return ResultColumns.of((pl.Float64, *of_kind), (pl.Int64, "n_rows"))


def curve_of_kind(asked: AskedCurve, by: list[str], kind: str, n: int) -> pl.LazyFrame:
    """The points of every group of a grouping, in the columns of a kind."""
    like = asked.query.metrics[0].measures()[0]
    table = points_of(asked, by, like, asked.cells(like), Thinning(n, is_stretched=kind == "det"))
    if kind == "pr":
        # Where nothing is predicted, there is no precision. A group that weighs nothing keeps its points all the same.
        weighs_nothing = pl.col("positives") + pl.col("negatives") == 0
        table = table.filter((pl.col("tp") + pl.col("fp") != 0) | weighs_nothing | pl.col("threshold").is_null())
    return table.with_columns(**KINDS[kind]).select(*by, *columns_of(kind))


def points_of(asked: AskedCurve, by: list[str], like: Measure, cells: Cells, thinning: Thinning) -> pl.LazyFrame:
    """The rows above each kept threshold, best first, with the counts of the group: of a measure's own rows.

    A group without a curve has one row without a threshold: null where it has no rows, NaN where one is broken.
    """
    query = asked.query
    plan = Plan(asked.source, by, query.readings)
    values = zip(COUNTS, (plan.value(of_rows_of(like, measure)) for measure in cells.counts()), strict=True)
    counts = [value.alias(name) for name, value in values]
    ranking = _ranking(query, by, like, cells, thinning)
    if ranking is not None:
        table = ranking.join_to(plan.groups().select(*by, *counts), query.rows)
    else:
        runs = plan.value(of_rows_of(like, cells.points())).alias(POINT)
        table = _of_lists(plan.groups().select(*by, *counts, runs), by, cells, thinning)
    return _in_order(_without_broken(table), by)


def _without_broken(table: pl.LazyFrame) -> pl.LazyFrame:
    """The points, with one row left of a group in which a row is broken: NaN, without a threshold."""
    is_broken = pl.col("positives").is_nan()
    table = table.filter(~is_broken.fill_null(False) | (pl.col("tp") + pl.col("fp") == 0) | pl.col("tp").is_null())
    known = [pl.when(is_broken).then(pl.lit(float("nan"))).otherwise(pl.col(name)).alias(name) for name in ABOVE[1:]]
    return table.with_columns(pl.when(~is_broken).then(pl.col("threshold")).alias("threshold"), *known)


def _in_order(points: pl.LazyFrame, by: list[str]) -> pl.LazyFrame:
    order = [*by, *ABOVE]
    points = points.select(*order, *COUNTS)
    return points.sort(order, descending=[name == "threshold" for name in order], nulls_last=False)


def _ranking(query: Query, by: list[str], like: Measure, cells: Cells, thinning: Thinning) -> ThinnedRanking | None:
    """The order of the rows, where it tells the points: of plain rows with keys that have codes."""
    # One zero inside a list may not be the other, so such keys have no code.
    is_nested = any(query.schema[key].is_nested() for key in by)
    if cells.bins is not None or like.table.weight is not None or is_nested:
        return None
    area = of_rows_of(like, Measure(CATALOGUE["roc_auc"], {}))
    recorder = query.readings.of(area, in_runs=False, ranks=True)
    return ThinnedRanking(recorder.ranked[0].order, by, thinning=thinning) if recorder.ranked else None


def _of_lists(groups: pl.LazyFrame, by: list[str], cells: Cells, thinning: Thinning) -> pl.LazyFrame:
    """The points of groups that are given as lists of runs."""
    # A key of its own, so that a table without by columns has one too.
    groups = groups.with_columns(pl.lit(0).alias(ALL)).cache()
    runs = groups.select(*by, ALL, POINT).explode(POINT).filter(pl.col(POINT).is_not_null())
    told = (pl.col(POINT).struct.field(name).alias(column) for column, name in OF_POINTS.items())
    runs = runs.select(*by, ALL, *told).filter(pl.col(SCORE).is_not_null())
    points = points_of_kept(thinning.kept(runs), [*by, ALL, ALL_TRUE, ALL_OTHER])
    if cells.bins is not None:
        points = points.with_columns(end_of_cell(pl.col("threshold"), cells).alias("threshold"))
    table = groups.drop(POINT).join(points, on=[*by, ALL], how="left", nulls_equal=True)
    # The sums of the runs themselves, by which a curve ends in its corner.
    return table.with_columns(
        pl.when(pl.col(name).is_nan()).then(pl.col(name)).otherwise(pl.coalesce(total, name)).alias(name)
        for name, total in (("positives", ALL_TRUE), ("negatives", ALL_OTHER))
    )
