"""Facts of metrics by which a page chooses them: for its headline, its slices and its curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polars_mlmetrics.formula.declaration import CATALOGUE
from polars_mlmetrics.formula.measure import Measure, of_rows_used_by
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.formula.shared import Decision

JUDGED_KINDS = ("kg_wilson", "t")
"""The kinds of intervals that a verdict is made of."""

MOST_SLICED = 4
"""Of so many metrics the table of slices has a choice."""

N_ROWS = "rows of the label"
"""The column of how many rows a label has: of samples, where each has it once."""


def decisions_in(metric: Metric) -> list[Decision]:
    """The thresholds in a metric."""
    found = [measure.parameters.get("threshold") for measure in metric.tree.measures()]
    return [decision for decision in found if isinstance(decision, Decision)]


def threshold_of(metric: Metric) -> float | None:
    """The threshold of a metric, where that is one number in all of its parts."""
    thresholds = [decision.threshold for decision in decisions_in(metric)]
    numbers = {float(threshold) for threshold in thresholds if isinstance(threshold, int | float)}
    is_one = len(numbers) == 1 and all(isinstance(threshold, int | float) for threshold in thresholds)
    return numbers.pop() if is_one else None


def has_best_threshold(measure: Measure) -> bool:
    """Whether a measure has a curve along the threshold."""
    return measure.grain != "sample" and measure.declaration.compares_thresholds


def sliced_among(metrics: Sequence[Metric]) -> list[Metric]:
    """The metrics that slices are shown in: the first, and others of its rows whose sums take little more time."""
    first, *others = metrics
    found = [metric for metric in others if _is_of_rows(metric) and uses_rows_of(metric, first)]
    return [first, *found[: MOST_SLICED - 1]]


def _is_of_rows(metric: Metric) -> bool:
    """Whether a metric is of sums over rows, and its differences are judged."""
    measures = metric.tree.measures()
    # An area is one of sorted scores.
    is_of_sums = all(m.grain == "group" and m.declaration.coarseness is None for m in measures)
    looks_at_samples = any(measure.probe.looks_at_samples for measure in measures)
    # One with a threshold of 80 is not asked for beside one of probabilities.
    is_beyond = any(decision.beyond_probabilities for decision in decisions_in(metric))
    return is_of_sums and not looks_at_samples and not is_beyond and metric.tree.interval_kind in JUDGED_KINDS


def uses_rows_of(metric: Metric, other: Metric) -> bool:
    """Whether two metrics use the same rows."""
    return _rows_used_by(metric) == _rows_used_by(other)


def _rows_used_by(metric: Metric) -> set[Any]:
    """The rows that a metric uses, as keys of their number."""
    n_rows = Measure(CATALOGUE["n_rows"], {})
    return {of_rows_used_by(measure, n_rows).key for measure in metric.tree.measures()}


def rows_of(metric: Metric) -> Metric:
    """How many rows a metric is of: of a label, how many samples."""
    like = metric.tree.measures()[0]
    return Metric(of_rows_used_by(like, Measure(CATALOGUE["n_rows"], {}))).alias(N_ROWS)
