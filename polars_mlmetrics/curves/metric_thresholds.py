"""The thresholds of a metric: which of its parts have one, and whether it has a curve along it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import polars as pl

from polars_mlmetrics.data.expressions import same_expression
from polars_mlmetrics.engine.thinning import THRESHOLD
from polars_mlmetrics.errors import MetricError, ParameterError
from polars_mlmetrics.formula.measure import Measure, Node
from polars_mlmetrics.formula.parameters import as_number, identity
from polars_mlmetrics.formula.shared import Decision
from polars_mlmetrics.query.query import Query


def rows_key(measure: Measure) -> tuple[Any, ...]:
    """A key that is equal for measures of the same rows with the same weights."""
    return (measure.table, measure.labels, identity(measure.predicates))


def decisions_of(metric: Node) -> Iterator[Measure]:
    """The measures of a metric that have a threshold."""
    return (measure for measure in metric.measures() if "threshold" in measure.parameters)


def check_has_thresholds(caller: str, metric: Node, query: Query) -> None:
    """Refuse a metric that has no curve along the threshold."""
    name, measures = metric.output_name, list(decisions_of(metric))
    if not measures:
        raise MetricError(f"{caller}: {name} has no threshold=, so its value is the same at all of them.")
    first = measures[0]
    for measure in measures:
        decision: Any = measure.parameters["threshold"]
        if as_number(decision.threshold) is None:
            raise ParameterError(f"{caller}: {name} has a threshold of its own, {decision}: leave out threshold=.")
        same = same_expression(measure.table.score, first.table.score)
        if not same or decision.inclusive != first.parameters["threshold"].inclusive:
            raise MetricError(
                f"{caller}: the parts of {name} are compared with thresholds in several ways. All must "
                "read one score, and have one inclusive=."
            )
    for measure in metric.measures():
        reader = query.readings.of(measure, in_runs=False, ranks=False)
        if measure.grain == "sample":
            why = "is a value of each sample, and a curve would need all of them at every threshold"
        elif reader.run_key is not None or reader.windows or reader.looks_back:
            why = "needs more of the rows than sums, so it has no curve along the threshold"
        else:
            continue
        raise MetricError(f"{caller}: {measure.output_name} {why}. Use evaluate with a few thresholds.")


def is_by_label(metric: Node) -> bool:
    """Whether it is made of values of labels."""
    return any(measure.grain == "label" for measure in metric.measures())


def at_threshold(measure: Measure) -> Measure:
    """A measure whose threshold is a column, where it has one."""
    decision = measure.parameters.get("threshold")
    if not isinstance(decision, Decision):
        return measure
    at = replace(decision, threshold=pl.col(THRESHOLD))
    return replace(measure, parameters={**measure.parameters, "threshold": at})
