"""The values of labels on a page: the table of `classification_report`, and the headline by label and slice."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import polars as pl

from polars_mlmetrics.analysis.classification_report import RATES, classification_report, metrics_of_report
from polars_mlmetrics.data.expressions import text_of_key
from polars_mlmetrics.errors import StateError
from polars_mlmetrics.formula.averages import Best
from polars_mlmetrics.formula.measure import Measure
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.formula.shared import Decision
from polars_mlmetrics.metrics.decisions import f1, support
from polars_mlmetrics.reporting.asked import ReportQuestion, if_held, name_of, values_of_models
from polars_mlmetrics.reporting.chosen_metrics import rows_of
from polars_mlmetrics.reporting.curve_tables import asks_which_are_true
from polars_mlmetrics.reporting.reasons import as_shown

TRUE_ROWS = "true rows of the label"
"""The column of how many rows of a label are true."""

SUPPORT = "support"
OF_REPORT = ("label", "average", *RATES, SUPPORT)
"""The columns of `classification_report`."""

LABEL = "label_text"
RANKED = "f1"
"""The column that the labels are sorted by."""

USUAL = 0.5


class LabelTables(NamedTuple):
    """The tables of labels on a page."""

    values: pl.DataFrame | None
    """Wide: the headline, and of a state all that it holds, by model and label, and by one slicing."""
    report: pl.DataFrame | None
    """The table of `classification_report` by model; None where no metric asks which rows are true."""
    decision: Decision
    """The decision that is judged in that table."""
    best: Best | None
    """Which end of the first metric of `values` is good."""


def labels_of(asked: ReportQuestion, sliced: str) -> LabelTables | None:
    """The tables of labels; None where there are none."""
    if asked.label is None or asked.label in (asked.column_of_models, sliced):
        return None
    decision = _decision(asked)
    metrics, is_of_classes = _metrics(asked, decision), asks_which_are_true(asked)
    keys = [keys[0] for keys in asked.slices if len(keys) == 1 and name_of(keys[0]) == sliced]
    if asked.contents is None and metrics:
        of_report = metrics_of_report(decision.threshold) if is_of_classes else []
        # Both tables read a log once, but for a metric that no state holds, such as an exact area.
        with suppress(StateError):
            asked, keys = asked.in_state([*map(_of_labels, metrics), *of_report], keys), [sliced] * len(keys)
    values = values_of_models(asked, metrics, [[key] for key in keys], per="label") if metrics else None
    report = _report(asked, decision) if is_of_classes else None
    best = metrics[0].best if metrics else None
    return None if values is None and report is None else LabelTables(values, report, decision, best)


def _decision(asked: ReportQuestion) -> Decision:
    """The first threshold of the metrics; the best label of each sample, or the usual one, where there is none."""
    found = [measure.parameters.get("threshold") for measure in asked.measures]
    first = next((decision for decision in found if isinstance(decision, Decision)), None)
    is_class = any(measure.probe.looks_into for measure in asked.measures if measure.has_units("label"))
    return Decision("argmax" if is_class else USUAL) if first is None else Decision(first.threshold)


def _of_labels(metric: Metric) -> Metric:
    """The metric as one of labels, of which a state has each."""

    def of_labels(measure: Measure) -> Measure:
        has_averages = "average" in measure.declaration.__signature__.parameters
        return replace(measure, parameters={**measure.parameters, "average": "macro"}) if has_averages else measure

    return Metric(metric.tree.each(of_labels))


def _report(asked: ReportQuestion, decision: Decision) -> pl.DataFrame | None:
    """The report; None of a state that does not hold it."""
    if asked.column_of_models in OF_REPORT:
        return None
    how: dict[str, Any] = {"threshold": decision.threshold, **asked.of_log}
    report = if_held(lambda: asked.with_model(classification_report(asked.frame, asked.between, **how)))
    # Of soft truths none is predicted: there is no number to show.
    return report if report is not None and any(report[name].is_finite().any() for name in RATES) else None


def _metrics(asked: ReportQuestion, decision: Decision) -> list[Metric]:
    """The metrics of each label: the headline where it has a value there; of a state all that have one."""
    of_label = [metric for metric in asked.metrics if _has_labels(metric)]
    if asked.contents is not None:
        metrics = [metric for metric in of_label if all(m.grain == "label" for m in metric.tree.measures())]
        return [*metrics, *map(rows_of, metrics[:1])]
    if not asks_which_are_true(asked):
        return [*of_label[:1], *map(rows_of, of_label[:1])]
    first = of_label[0] if of_label else f1(threshold=decision.threshold, average="macro")
    return [first, support(average="macro").alias(TRUE_ROWS), rows_of(first)]


def _has_labels(metric: Metric) -> bool:
    return all(measure.has_units("label") for measure in metric.tree.measures())


def with_texts(table: pl.DataFrame, label: str) -> pl.DataFrame:
    """A table with its labels as texts that are safe to show."""
    return as_shown(table.with_columns(text_of_key(pl.col(label), table.schema[label]).alias(LABEL)), LABEL)
