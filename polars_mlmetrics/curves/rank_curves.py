"""Curves of a ranking: roc, pr, det and gain, from the order of the rows or from their runs."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from polars_mlmetrics.curves.stored_bins import cells_of
from polars_mlmetrics.engine.folds import fold
from polars_mlmetrics.engine.plan import Plan, Runs
from polars_mlmetrics.engine.sources import Source
from polars_mlmetrics.engine.thinning import COUNTS, POINT, THRESHOLD, ThinnedRanking, Thinning, runs_of_sums
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.formula.cells import end_of_cell
from polars_mlmetrics.formula.curve import ORDERED, Bins, Cells
from polars_mlmetrics.formula.declaration import CATALOGUE
from polars_mlmetrics.formula.measure import Measure, of_rows_of
from polars_mlmetrics.query.query import Query
from polars_mlmetrics.query.question import Question
from polars_mlmetrics.query.results import ResultColumns

N_ROWS, BROKEN, STEPS = (f"{INTERNAL}{name}" for name in ("rows_of_curve", "broken_curve", "steps"))
NAN = float("nan")

COUNTS_OF_POINT = dict(zip(("tp", "fp", "positives", "negatives"), COUNTS, strict=True))
"""The counts of a point by their names in a result."""

_TP, _FP, _TRUE, _OTHER = map(pl.col, COUNTS)
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
    return ResultColumns.of((pl.Float64, *("threshold", *KINDS[kind], *COUNTS_OF_POINT)), (pl.Int64, "n_rows"))


def curve_of_kind(question: Question, by: list[str], kind: str, bins: Bins, n: int) -> pl.LazyFrame:
    """The points of every group of a grouping, in the columns of a kind."""
    like = question.query.measures[0]
    cells, thinning = cells_of(question, like, bins), Thinning(n, is_stretched=kind == "det")
    table = points_of(question.source, question.query, by, like, cells, thinning)
    if kind == "pr":
        # Where nothing is predicted, there is no precision. A group that weighs nothing keeps its points all the same.
        table = table.filter((_TP + _FP != 0) | (_TRUE + _OTHER == 0) | pl.col(THRESHOLD).is_null())
    named = {"threshold": THRESHOLD, **COUNTS_OF_POINT, "n_rows": N_ROWS}
    order = [*by, THRESHOLD, *COUNTS[:2]]
    table = table.sort(order, descending=[name == THRESHOLD for name in order], nulls_last=False)
    return table.select(*by, **KINDS[kind], **{name: pl.col(column) for name, column in named.items()})


def points_of(
    source: Source,
    query: Query,
    by: list[str],
    like: Measure,
    cells: Cells,
    thinning: Thinning,
    *,
    has_empty_runs: bool = False,
) -> pl.LazyFrame:
    """The rows above each kept threshold, with the counts of the group: of a measure's own rows.

    A group without a curve has one row without a threshold: null where it has no rows, NaN where one is broken.
    `has_empty_runs` says that the source may have runs without a row.
    """
    plan = Plan(source, by, query.readings)
    ranking = _ranking(query, by, like, thinning) if cells.bins is None else None
    if ranking is None:
        runs = plan.runs(of_rows_of(cells.in_runs(), like))
        points = _points_of_runs(runs, runs.n_rows > 0 if has_empty_runs else pl.lit(True), by, thinning)
    else:
        weight, n_rows = (plan.value(of_rows_of(of, like)) for of in (ORDERED, Measure(CATALOGUE["n_rows"], {})))
        facts = n_rows.alias(N_ROWS), weight.is_nan().fill_null(False).alias(BROKEN)
        points = ranking.join_to(plan.groups().select(*by, *facts), query.rows)
    if cells.bins is not None:
        points = points.with_columns(end_of_cell(pl.col(THRESHOLD), cells).alias(THRESHOLD))
    broken = pl.col(BROKEN)
    # Of a broken group one row is left, as of one without runs.
    points = points.filter(~broken | (pl.col(POINT) == 0) | _TP.is_null())
    counts = (pl.when(broken).then(NAN).otherwise(pl.col(name)).alias(name) for name in COUNTS)
    return points.select(*by, pl.when(~broken).then(THRESHOLD).alias(THRESHOLD), *counts, N_ROWS, POINT)


def _ranking(query: Query, by: list[str], like: Measure, thinning: Thinning) -> ThinnedRanking | None:
    """The order of the rows, where it gives the points: of plain rows with keys that have codes."""
    # One zero inside a list may not be the other, so such keys have no code.
    if like.table.weight is not None or any(query.schema[key].is_nested() for key in by):
        return None
    area = of_rows_of(Measure(CATALOGUE["roc_auc"], {}), like)
    reader = query.readings.of(area, in_runs=False, ranks=True)
    return ThinnedRanking(reader.ranked[0].order, by, thinning=thinning) if reader.ranked else None


def _points_of_runs(runs: Runs, is_there: pl.Expr, by: list[str], thinning: Thinning) -> pl.LazyFrame:
    """The points of each group from those of its runs that are there, cumulated from the highest score down."""
    is_run = runs.key.is_not_null() & is_there
    steps = runs_of_sums(*(column.filter(is_run) for column in (runs.key, *runs.sums))).implode()
    facts = runs.n_rows.sum().alias(N_ROWS), runs.is_broken.any().alias(BROKEN)
    in_order = runs.table.sort(runs.key, descending=True, nulls_last=True)
    groups = fold(in_order, by, [*facts, steps.alias(STEPS)], in_order=True)
    return thinning.thin(groups.explode(STEPS, empty_as_null=True).unnest(STEPS), [*by, N_ROWS, BROKEN])
