"""The values of labels on a page: the table of `classification_report`, and the headline by label and slice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import polars as pl

from polars_mlmetrics.analysis.classification_report import RATES, classification_report
from polars_mlmetrics.analysis.evaluate import evaluate
from polars_mlmetrics.analysis.finish import finish
from polars_mlmetrics.data.expressions import text_of_key
from polars_mlmetrics.errors import StateError
from polars_mlmetrics.formula.averages import Best
from polars_mlmetrics.formula.declaration import CATALOGUE
from polars_mlmetrics.formula.measure import Measure, of_rows_used_by
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.formula.shared import Decision
from polars_mlmetrics.metrics.decisions import f1, support
from polars_mlmetrics.query.keys import Keys
from polars_mlmetrics.reporting.asked import ReportQuestion, name_of
from polars_mlmetrics.reporting.curve_tables import asks_which_are_true
from polars_mlmetrics.reporting.reasons import as_shown

N_ROWS, TRUE_ROWS = "rows of the label", "true rows of the label"
"""The columns of how many rows a label has, and how many of them are true: of samples, where each has it once."""

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
    """The tables of labels, worked out together; None where there are none."""
    if asked.label is None or name_of(asked.between or "") == asked.label or sliced == asked.label:
        return None
    decision = _decision(asked)
    metrics = _metrics(asked, decision)
    slices = [keys for keys in asked.slices if len(keys) == 1 and name_of(keys[0]) == sliced]
    found = [_values(asked, metrics, slices) if metrics else None, _report(asked, decision)]
    if not asked.passes:
        collected = iter(pl.collect_all([lazy for lazy in found if lazy is not None]))
        found = [None if lazy is None else next(collected).lazy() for lazy in found]
    values, report = (None if lazy is None else asked.with_model(lazy) for lazy in found)
    # Of soft truths none is predicted: there is no number to show.
    if report is not None and not any(report[name].is_finite().any() for name in RATES):
        report = None
    best = metrics[0].best if metrics else None
    return None if values is None and report is None else LabelTables(values, report, decision, best)


def _decision(asked: ReportQuestion) -> Decision:
    """The first threshold of the metrics; the best label of each sample, or the usual one, where there is none."""
    found = [measure.parameters.get("threshold") for measure in asked.measures]
    first = next((decision for decision in found if isinstance(decision, Decision)), None)
    is_class = any(measure.probe.looks_into for measure in asked.measures if measure.has_units("label"))
    return Decision("argmax" if is_class else USUAL) if first is None else Decision(first.threshold)


def _report(asked: ReportQuestion, decision: Decision) -> pl.LazyFrame | None:
    if not asks_which_are_true(asked) or name_of(asked.between or "") in OF_REPORT:
        return None
    given = asked.of_log if asked.contents is None else {}
    by = None if asked.between is None else [asked.between]
    try:
        return classification_report(asked.frame, by, threshold=decision.threshold, **given)
    except StateError:
        return None


def _values(asked: ReportQuestion, metrics: Sequence[Metric], slices: Sequence[Keys]) -> pl.LazyFrame:
    given: dict[str, Any] = {"by": asked.between, "slices": list(slices) or None, "per": "label"}
    if asked.contents is not None:
        return finish(asked.frame, list(metrics), **given)
    return evaluate(asked.frame, list(metrics), **given, **asked.of_log)


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


def rows_of(metric: Metric) -> Metric:
    """How many rows a metric is of: of a label, how many samples."""
    like = metric.tree.measures()[0]
    return Metric(of_rows_used_by(like, Measure(CATALOGUE["n_rows"], {}))).alias(N_ROWS)


def _has_labels(metric: Metric) -> bool:
    return all(measure.has_units("label") for measure in metric.tree.measures())


def with_texts(table: pl.DataFrame, label: str) -> pl.DataFrame:
    """A table with its labels as texts that are safe to show."""
    return as_shown(table.with_columns(text_of_key(pl.col(label), table.schema[label]).alias(LABEL)), LABEL)
