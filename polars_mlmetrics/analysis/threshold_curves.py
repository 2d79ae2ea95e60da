"""Curves along the threshold: the values of metrics at each, and the intervals of these."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import polars as pl

from polars_mlmetrics.analysis.confidence import Confidence
from polars_mlmetrics.analysis.intervals import Intervals
from polars_mlmetrics.analysis.rank_curves import Cells, points_of
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
from polars_mlmetrics.query.results import Result, wide_names

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
        of_rows = (like.table, like.labels, identity(like.predicates))
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
    thresholds = points.filter(pl.col("threshold").is_not_null()).select(*by, pl.col("threshold").alias(THRESHOLD))
    source = AtThresholds(query.rows, query.schema, thresholds, by, table.score, inclusive=decision.inclusive)
    plan = Plan(source, [*by, THRESHOLD], Readings(source.schema, query.roles))
    at = metric.each(_at_threshold)
    result = Result("value", plan.value(at))
    if confidence is None:
        groups = plan.groups()
    else:
        intervals = Intervals(plan, confidence)
        result = intervals.with_ends(result, at)
        groups = intervals.table()
    columns = dict(zip(wide_names("value", ci=confidence is not None), ["value", *ENDS], strict=False))
    values = groups.select(*by, pl.col(THRESHOLD).alias("threshold"), *result.wide()).rename(columns)
    keys = [*by, "threshold"]
    spine = points.select(*keys, "tp").unique(keys)
    found = spine.join(values, on=keys, how="left", nulls_equal=True)
    # Without a threshold there is no value: NaN where the curve is broken.
    broken = pl.when(pl.col("threshold").is_null() & pl.col("tp").is_nan()).then(pl.col("tp"))
    return found.with_columns(pl.coalesce("value", broken)).drop("tp")


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
