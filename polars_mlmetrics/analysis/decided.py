"""Metrics with a threshold: what is decided in them, and what the rows above and below a threshold tell of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import polars as pl

from polars_mlmetrics.data.expressions import same_expression
from polars_mlmetrics.engine.at_thresholds import THRESHOLD
from polars_mlmetrics.engine.recorder import Recorder
from polars_mlmetrics.errors import MetricError, ParameterError
from polars_mlmetrics.formula.measure import Measure, Node
from polars_mlmetrics.formula.parameters import as_number, identity
from polars_mlmetrics.formula.shared import Decision
from polars_mlmetrics.query.query import Query


class Weights(NamedTuple):
    """What rows weigh together: the true ones and the others, that are predicted or not, and in all."""

    true_predicted: pl.Expr
    other_predicted: pl.Expr
    true_left: pl.Expr
    other_left: pl.Expr
    true: pl.Expr
    other: pl.Expr


DECIDED: Mapping[str, Callable[[Weights], pl.Expr]] = {
    "true_positives": lambda rows: rows.true_predicted,
    "false_positives": lambda rows: rows.other_predicted,
    "false_negatives": lambda rows: rows.true_left,
    "true_negatives": lambda rows: rows.other_left,
    "predicted": lambda rows: rows.true_predicted + rows.other_predicted,
}
"""The statistics of a decision."""

UNDECIDED: Mapping[str, Callable[[Weights], pl.Expr]] = {
    "positives": lambda rows: rows.true,
    "negatives": lambda rows: rows.other,
    "rows": lambda rows: rows.true + rows.other,
}
"""The statistics that are the same at every threshold."""


def told_of(measure: Measure, suffix: str, rows: Weights) -> dict[str, pl.Expr]:
    """The statistics of a measure that the weights of rows tell, by name: of a score greater than the threshold."""
    told = {name: statistic(rows) for name, statistic in UNDECIDED.items()}
    decision = measure.parameters.get("threshold")
    if decision is not None and not decision.inclusive:
        told |= {f"{name}@{decision}": statistic(rows) for name, statistic in DECIDED.items()}
    return {name + suffix: statistic for name, statistic in told.items()}


def broken_in(recorder: Recorder) -> set[str]:
    """The counts of rows without which a formula has a value."""
    unknown = recorder.answer.unknown
    return recorder.broken if unknown is None else recorder.broken | {*unknown.meta.root_names()}


def rows_of(measure: Measure) -> tuple[Any, ...]:
    """What says which rows a measure reads, and how they weigh."""
    return (measure.table, measure.labels, identity(measure.predicates))


def of_rows_of(like: Measure, measure: Measure) -> Measure:
    """A measure of the rows that another one reads."""
    return replace(measure, roles=like.roles, labels=like.labels, predicates=like.predicates)


def at_threshold(measure: Measure) -> Measure:
    """A measure whose threshold is a column, where it has one."""
    decision = measure.parameters.get("threshold")
    if not isinstance(decision, Decision):
        return measure
    return replace(
        measure, parameters={**measure.parameters, "threshold": replace(decision, threshold=pl.col(THRESHOLD))}
    )


def decided_in(metric: Node) -> Iterator[Measure]:
    """The measures of a metric that have a threshold."""
    return (measure for measure in metric.measures() if "threshold" in measure.parameters)


def is_by_label(metric: Node) -> bool:
    """Whether a decision of it is told by label."""
    return any(measure.grain == "label" for measure in decided_in(metric))


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
