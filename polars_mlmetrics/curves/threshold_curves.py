"""Curves along the threshold: the values of metrics at each, and the intervals of these."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import polars as pl

from polars_mlmetrics.curves.asked_curve import AskedCurve, HeldBins, decided_in, is_by_label, of_rows_of, rows_of
from polars_mlmetrics.curves.rank_curves import points_of
from polars_mlmetrics.engine.at_thresholds import (
    THRESHOLD,
    AtThresholds,
    CellsAtThresholds,
    CellTerms,
    RowsAtThresholds,
)
from polars_mlmetrics.engine.folds import BIN
from polars_mlmetrics.engine.formula_reader import FormulaReader
from polars_mlmetrics.engine.plan import Plan, ReadFormulas
from polars_mlmetrics.engine.thinning import Thinning
from polars_mlmetrics.errors import INTERNAL, StateError
from polars_mlmetrics.formula.cells import end_of_cell
from polars_mlmetrics.formula.curve import Cells
from polars_mlmetrics.formula.measure import Measure, Node
from polars_mlmetrics.formula.shared import Decision
from polars_mlmetrics.intervals.intervals import told_with_ends
from polars_mlmetrics.query.results import ResultColumns

COLUMNS = ResultColumns.of((pl.Float64, "threshold"), (pl.String, "metric"), (pl.Float64, "value"))

PLACE = f"{INTERNAL}metric"

INFINITE = float("inf")

END = f"{INTERNAL}end_of_cell"


class Weights(NamedTuple):
    """Total weights of rows: true ones and others, predicted or not, and in all."""

    true_predicted: pl.Expr
    other_predicted: pl.Expr
    true_left: pl.Expr
    other_left: pl.Expr
    true: pl.Expr
    other: pl.Expr


def told_of(measure: Measure, suffix: str, rows: Weights) -> dict[str, pl.Expr]:
    """The statistics of a measure that the weights of rows tell, by name: of a score greater than the threshold."""
    told = {"positives": rows.true, "negatives": rows.other, "rows": rows.true + rows.other}
    decision = measure.parameters.get("threshold")
    if decision is not None and not decision.inclusive:
        of_decision = {
            "true_positives": rows.true_predicted,
            "false_positives": rows.other_predicted,
            "false_negatives": rows.true_left,
            "true_negatives": rows.other_left,
            "predicted": rows.true_predicted + rows.other_predicted,
        }
        told |= {f"{name}@{decision}": statistic for name, statistic in of_decision.items()}
    return {name + suffix: statistic for name, statistic in told.items()}


def broken_in(recorder: FormulaReader) -> set[str]:
    """The counts of rows without which a formula has a value."""
    unknown = recorder.answer.unknown
    return recorder.broken if unknown is None else recorder.broken | {*unknown.meta.root_names()}


def at_threshold(measure: Measure) -> Measure:
    """A measure whose threshold is a column, where it has one."""
    decision = measure.parameters.get("threshold")
    if not isinstance(decision, Decision):
        return measure
    at = replace(decision, threshold=pl.col(THRESHOLD))
    return replace(measure, parameters={**measure.parameters, "threshold": at})


def curve_of_metrics(asked: AskedCurve, by: list[str], n: int) -> pl.LazyFrame:
    """The values of metrics at the thresholds of each group of a grouping: a row for each of both."""
    found: dict[Any, Tried] = {}
    tables = []
    for place, metric in enumerate(asked.query.metrics):
        of_rows = (rows_of(next(decided_in(metric))), is_by_label(metric))
        tried = found.setdefault(of_rows, Tried.of(asked, by, metric, Thinning(n)))
        values = values_at(asked, tried, by, metric)
        tables.append(values.with_columns(pl.lit(place).alias(PLACE), pl.lit(metric.output_name).alias("metric")))
    order = [*by, PLACE, "threshold"]
    table = pl.concat(tables).sort(order, descending=[name == "threshold" for name in order])
    return table.select(*by, *COLUMNS, *asked.ends)


class Tried(NamedTuple):
    """The thresholds at which metrics of some rows are told, and what lies above each."""

    cells: Cells
    points: pl.LazyFrame

    @classmethod
    def of(cls, asked: AskedCurve, by: list[str], metric: Node, thinning: Thinning) -> Tried:
        """Those that it takes to draw the curve of the rows of a metric."""
        like = next(decided_in(metric))
        cells = asked.cells(like, by, by_label=is_by_label(metric))
        points = points_of(asked, by, like, cells, thinning)
        if cells.bins is not None and cells.grid == "float":
            # A row of -inf is predicted at no threshold, and its cell does not tell it from the others there.
            points = points.filter(pl.col("threshold").is_null() | (pl.col("threshold") > -INFINITE))
        return cls(cells, points.cache())


def values_at(asked: AskedCurve, tried: Tried, by: list[str], metric: Node) -> pl.LazyFrame:
    """The value of a metric at each threshold of a group; one row without a threshold where the group has none."""
    at = metric.each(at_threshold)
    readings = ReadFormulas(pl.Schema({**asked.query.schema, THRESHOLD: pl.Float64()}), asked.query.roles)
    of_points = None if asked.confidence is not None else value_of_points(readings, at, tried.cells)
    if of_points is not None:
        return _from_points(tried.points, by, of_points)
    plan = Plan(_at_thresholds(asked, tried, by, at, readings), [*by, THRESHOLD], readings)
    groups, told = told_with_ends(plan, "value", at, asked.confidence)
    values = groups.select(*by, pl.col(THRESHOLD).alias("threshold"), *told)
    keys = [*by, "threshold"]
    spine = tried.points.select(*keys, "tp").unique(keys)
    found = spine.join(values, on=keys, how="left", nulls_equal=True)
    # Without a threshold there is no value: NaN where the curve is broken.
    broken = pl.when(pl.col("threshold").is_null() & pl.col("tp").is_nan()).then(pl.col("tp"))
    return found.with_columns(pl.coalesce(pl.col("value").cast(pl.Float64), broken)).drop("tp")


def _at_thresholds(
    asked: AskedCurve, tried: Tried, by: list[str], metric: Node, readings: ReadFormulas
) -> AtThresholds:
    """The source for a metric whose threshold is a column, at the thresholds of each group."""
    query, first = asked.query, next(decided_in(metric))
    known = tried.points.filter(pl.col("threshold").is_not_null())
    thresholds = known.select(*by, pl.col("threshold").alias(THRESHOLD))
    if asked.held is not None:
        return cells_at_thresholds(asked.held, readings, metric, tried.cells, thresholds, by)
    decision, score = first.parameters["threshold"], first.table.score
    return RowsAtThresholds(query.rows, query.schema, thresholds, by, score, inclusive=decision.inclusive)


def _from_points(points: pl.LazyFrame, by: list[str], value: OfPoints) -> pl.LazyFrame:
    """The values at thresholds that the counts above these tell already."""
    threshold, tp, fp = (pl.col(name) for name in ("threshold", "tp", "fp"))
    # Rows of -inf are the last step of a ranking, and predicted at no threshold.
    is_twice = (threshold == -INFINITE) & (threshold.shift(1) == -INFINITE) & (tp + fp > 0)
    told = points.filter(~is_twice.fill_null(False)).with_columns(c.alias(name) for name, c in value.columns.items())
    of_point = pl.when(threshold.is_null()).then(tp).otherwise(value.value.cast(pl.Float64)).alias("value")
    return told.select(*by, "threshold", of_point)


class OfPoints(NamedTuple):
    """A value that the counts of a point tell: its statistics as columns, and itself."""

    columns: dict[str, pl.Expr]
    value: pl.Expr


def value_of_points(readings: ReadFormulas, metric: Node, cells: Cells) -> OfPoints | None:
    """The value of a metric from what a point counts; None where it needs more, or of other rows."""

    def recorder_of(measure: Any) -> Any:
        return readings.of(measure, in_runs=False, ranks=False)

    like = next(decided_in(metric))
    # A group in which one of these rows is broken has no points.
    nothing = broken_in(recorder_of(like)) | broken_in(recorder_of(of_rows_of(like, cells.points())))
    columns: dict[str, pl.Expr] = {}
    for measure in metric.measures():
        recorder = recorder_of(measure)
        told = told_of(measure, recorder.suffix, OF_POINT) | {f"n_rows{recorder.suffix}": pl.col("n_rows")}
        names = {statistic.name for statistic in recorder.statistics}
        is_plain = measure.grain == "group" and not measure.is_from_elsewhere and rows_of(measure) == rows_of(like)
        if not is_plain or not names <= told.keys() | nothing:
            return None
        columns |= {name: told.get(name, pl.lit(0)) for name in names}
    if not all(isinstance(node, Measure) or node.parts for node in metric.walk()):
        return None
    return OfPoints(columns, metric.combined(lambda part: recorder_of(part).answer.value))


_TP, _FP, _TRUE, _OTHER = (pl.col(name) for name in ("tp", "fp", "positives", "negatives"))
OF_POINT = Weights(_TP, _FP, _TRUE - _TP, _OTHER - _FP, _TRUE, _OTHER)
"""The weights of rows at a point of a curve."""


def cells_at_thresholds(
    held: HeldBins, readings: ReadFormulas, metric: Node, cells: Cells, thresholds: pl.LazyFrame, by: list[str]
) -> CellsAtThresholds:
    """The source for a metric whose threshold is a column, at the thresholds of each group."""
    like = next(decided_in(metric))
    of_cells = held.recorder(of_rows_of(like, cells.points()))
    told: dict[str, CellTerms] = {}
    names: set[str] = set()
    for measure in metric.measures():
        recorder = readings.of(measure, in_runs=False, ranks=False)
        own = _told_by(of_cells, measure, recorder.suffix) if rows_of(measure) == rows_of(like) else {}
        _check_held(held, measure, recorder, own, by)
        told |= own
        names |= {statistic.name for statistic in recorder.statistics}
    ends = end_of_cell(pl.col(BIN), cells).alias(END)
    wholes = held.source.at(held.with_keys(by), names)
    return CellsAtThresholds(
        held.table(of_cells, by).with_columns(ends), wholes, held.source.schema, thresholds, by, END, told
    )


def _told_by(of_cells: FormulaReader, measure: Measure, suffix: str) -> dict[str, CellTerms]:
    """The terms of a cell for a measure: in the statistics of a predicted cell, and in those of another."""
    true, other = (pl.col(statistic.name) for statistic in of_cells.run_rows)
    nothing = pl.lit(0)
    if_predicted = told_of(measure, suffix, Weights(true, other, nothing, nothing, true, other))
    if_left = told_of(measure, suffix, Weights(nothing, nothing, true, other, true, other))
    return {name: CellTerms(if_predicted[name], if_left[name]) for name in if_predicted}


def _check_held(
    held: HeldBins, measure: Measure, recorder: FormulaReader, told: dict[str, CellTerms], by: list[str]
) -> None:
    """Refuse a measure that reads more of the rows than the state holds."""
    others = {statistic.name for statistic in recorder.statistics} - told.keys() - {f"n_rows{recorder.suffix}"}
    if "threshold" not in measure.parameters:
        if others or measure.is_from_elsewhere:
            held.source.check(recorder, by, held.query.roles)
    elif measure.is_from_elsewhere or others - broken_in(recorder):
        raise StateError(
            f"{measure.output_name} {_more(measure, told)}, and the bins of a state do not tell that: use the log."
        )


def _more(measure: Measure, told: dict[str, CellTerms]) -> str:
    """The feature of a measure that cells cannot answer, in words."""
    if measure.parameters["threshold"].inclusive:
        return "predicts a score that is equal to the threshold"
    if not told:
        return "is of other rows than another part of the metric"
    return "reads more of a row than its truth and whether it is predicted"
