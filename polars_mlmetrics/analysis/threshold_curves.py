"""Curves along the threshold: the values of metrics at each, and the intervals of these."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import polars as pl

from polars_mlmetrics.analysis.confidence import Confidence
from polars_mlmetrics.analysis.intervals import told_with_ends
from polars_mlmetrics.analysis.rank_curves import COUNTS, Cells, points_of
from polars_mlmetrics.data.expressions import same_expression
from polars_mlmetrics.engine.asked import Readings
from polars_mlmetrics.engine.at_thresholds import THRESHOLD, AtThresholds
from polars_mlmetrics.engine.plan import Plan
from polars_mlmetrics.engine.sources import Source
from polars_mlmetrics.engine.thinning import Thinning
from polars_mlmetrics.errors import INTERNAL, MetricError, ParameterError
from polars_mlmetrics.formula.measure import Measure, Node
from polars_mlmetrics.formula.parameters import as_number, identity
from polars_mlmetrics.formula.shared import Decision
from polars_mlmetrics.query.query import Query

COLUMNS = ["threshold", "metric", "value"]
ENDS = ["low", "high"]

PLACE = f"{INTERNAL}metric"


def names_of(*, ci: bool) -> list[str]:
    """The columns of such a curve, after its keys."""
    return [*COLUMNS, *(ENDS if ci else [])]


def curve_of_metrics(
    query: Query,
    source: Source,
    by: list[str],
    cells: Cells,
    n: int,
    confidence: Confidence | None,
) -> pl.LazyFrame:
    """The values of metrics at the thresholds of each group of a grouping: a row for each of both."""
    points: dict[Any, pl.LazyFrame] = {}
    tables = []
    for place, metric in enumerate(query.metrics):
        like = next(decided_in(metric))
        of_rows = rows_of(like)
        if of_rows not in points:
            points[of_rows] = points_of(query, source, by, like, cells, Thinning(n)).cache()
        values = values_at(query, points[of_rows], by, metric, confidence)
        tables.append(values.with_columns(pl.lit(place).alias(PLACE), pl.lit(metric.output_name).alias("metric")))
    columns = names_of(ci=confidence is not None)
    order = [*by, PLACE, "threshold"]
    return pl.concat(tables).sort(order, descending=[name == "threshold" for name in order]).select(*by, *columns)


def values_at(
    query: Query, points: pl.LazyFrame, by: list[str], metric: Node, confidence: Confidence | None = None
) -> pl.LazyFrame:
    """The value of a metric at each threshold of a group; one row without a threshold where the group has none."""
    measures = list(decided_in(metric))
    decision, table = measures[0].parameters["threshold"], measures[0].table
    schema = pl.Schema({**query.schema, THRESHOLD: pl.Float64()})
    readings, at = Readings(schema, query.roles), metric.each(_at_threshold)
    of_cells = None if confidence is not None else value_of_cells(readings, at)
    if of_cells is not None:
        return _from_points(points, by, of_cells)
    thresholds = points.filter(pl.col("threshold").is_not_null()).select(*by, pl.col("threshold").alias(THRESHOLD))
    source = AtThresholds(query.rows, query.schema, thresholds, by, table.score, inclusive=decision.inclusive)
    plan = Plan(source, [*by, THRESHOLD], readings)
    groups, told = told_with_ends(plan, "value", at, confidence)
    values = groups.select(*by, pl.col(THRESHOLD).alias("threshold"), *told)
    keys = [*by, "threshold"]
    spine = points.select(*keys, "tp").unique(keys)
    found = spine.join(values, on=keys, how="left", nulls_equal=True)
    # Without a threshold there is no value: NaN where the curve is broken.
    broken = pl.when(pl.col("threshold").is_null() & pl.col("tp").is_nan()).then(pl.col("tp"))
    return found.with_columns(pl.coalesce("value", broken)).drop("tp")


def _from_points(points: pl.LazyFrame, by: list[str], value: OfCells) -> pl.LazyFrame:
    """The values at thresholds that the counts above these tell already."""
    threshold, tp, fp = (pl.col(name) for name in ("threshold", "tp", "fp"))
    # Rows of -inf are the last step of a ranking, and predicted at no threshold.
    is_twice = (threshold == float("-inf")) & (threshold.shift(1) == float("-inf")) & (tp + fp > 0)
    told = points.filter(~is_twice.fill_null(False)).with_columns(c.alias(name) for name, c in value.columns.items())
    of_point = pl.when(threshold.is_null()).then(tp).otherwise(value.value.cast(pl.Float64)).alias("value")
    return told.select(*by, "threshold", of_point)


class OfCells(NamedTuple):
    """A value that the four cells of a decision tell: its statistics as columns, and itself."""

    columns: dict[str, pl.Expr]
    value: pl.Expr


def value_of_cells(readings: Readings, metric: Node) -> OfCells | None:
    """The value of a metric from what a point counts; None where it needs more, or of other rows."""
    measures = metric.measures()
    columns: dict[str, pl.Expr] = {}
    like = rows_of(next(decided_in(metric)))
    for measure in measures:
        recorder = readings.of(measure, in_runs=False, ranks=False)
        told = {name + recorder.suffix: cell for name, cell in _cells(measure).items()}
        names = {statistic.name for statistic in recorder.statistics}
        nothing = {name for name in names if name.startswith(("broken_", "unknown_"))}
        of_group = measure.grain == "group" and not measure.is_from_elsewhere and rows_of(measure) == like
        if not of_group or not names <= told.keys() | nothing:
            return None
        # A group in which a row is broken has no points.
        columns |= {name: told.get(name, pl.lit(0)) for name in names}
    if not all(isinstance(node, Measure) or node.parts for node in metric.walk()):
        return None
    value = metric.combined(lambda part: readings.of(part, in_runs=False, ranks=False).answer.value)  # type: ignore[arg-type]
    return OfCells(columns, value)


def rows_of(measure: Measure) -> tuple[Any, ...]:
    """What says which rows a measure reads, and how they weigh."""
    return (measure.table, measure.labels, identity(measure.predicates))


def _cells(measure: Measure) -> dict[str, pl.Expr]:
    """The statistics that a point tells, by name: of a score that is greater than the threshold."""
    tp, fp, positives, negatives, n_rows = map(pl.col, ("tp", "fp", *COUNTS))
    totals = {"positives": positives, "negatives": negatives, "rows": positives + negatives, "n_rows": n_rows}
    decision = measure.parameters.get("threshold")
    if decision is None or decision.inclusive:
        return totals if decision is None else {}
    decided = {
        "true_positives": tp,
        "false_positives": fp,
        "false_negatives": positives - tp,
        "true_negatives": negatives - fp,
        "predicted": tp + fp,
    }
    return {**totals, **{f"{name}@{decision}": cell for name, cell in decided.items()}}


def _at_threshold(measure: Measure) -> Measure:
    decision = measure.parameters.get("threshold")
    if not isinstance(decision, Decision):
        return measure
    return replace(
        measure, parameters={**measure.parameters, "threshold": replace(decision, threshold=pl.col(THRESHOLD))}
    )


def decided_in(metric: Node) -> Iterator[Measure]:
    """The measures of a metric that have a threshold."""
    return (measure for measure in metric.measures() if "threshold" in measure.parameters)


def check_has_thresholds(caller: str, metric: Node, query: Query) -> None:
    """Refuse a metric that has no curve along the threshold."""
    measures = list(decided_in(metric))
    if not measures:
        raise MetricError(f"{caller}: {metric.output_name} has no threshold=, so its value is the same at all of them.")
    first = measures[0]
    for measure in measures:
        decision: Any = measure.parameters["threshold"]
        if as_number(decision.threshold) is None:
            raise ParameterError(
                f"{caller}: {metric.output_name} has a threshold of its own, {decision}: leave out threshold=."
            )
        same = same_expression(measure.table.score, first.table.score)
        if not same or decision.inclusive != first.parameters["threshold"].inclusive:
            raise MetricError(
                f"{caller}: the parts of {metric.output_name} are compared with thresholds in several ways. All must "
                "read one score, and have one inclusive=."
            )
    for measure in metric.measures():
        recorder = query.readings.of(measure, in_runs=False, ranks=False)
        if measure.grain == "sample":
            raise MetricError(
                f"{caller}: {measure.output_name} is a value of each sample, and a curve would need all of them at "
                "every threshold. Use evaluate with a few thresholds."
            )
        if recorder.run_key is not None or recorder.windows or recorder.looks_back:
            raise MetricError(
                f"{caller}: {measure.output_name} needs more of the rows than sums, so it has no curve along the "
                "threshold. Use evaluate with a few thresholds."
            )
