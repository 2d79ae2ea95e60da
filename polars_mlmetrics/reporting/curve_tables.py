"""The curves of a report: what `curve` says of its scores, where they are such that they have curves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

import polars as pl

from polars_mlmetrics.analysis.best_threshold import best_threshold
from polars_mlmetrics.analysis.curves import curve
from polars_mlmetrics.curves.stored_bins import ENOUGH
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.metrics.decisions import false_negatives, false_positives, true_negatives, true_positives
from polars_mlmetrics.metrics.separation import average_precision, roc_auc
from polars_mlmetrics.query.written import metrics_of
from polars_mlmetrics.reporting.asked import MODEL, VALUES, WHOLE, ReportQuestion, if_held, values_of_models

BINARY = {"truth", "soft_truth"}
"""How metrics read a truth that has curves."""

AREAS = {"roc": roc_auc, "pr": average_precision}
"""The area under each kind of curve."""

DECISIONS = {
    "true positives": true_positives,
    "false positives": false_positives,
    "false negatives": false_negatives,
    "true negatives": true_negatives,
}
"""The cells of a confusion matrix, by their columns."""


def curves_of(asked: ReportQuestion) -> dict[str, pl.DataFrame]:
    """The curves by kind; those without a point are not among them."""
    if not asks_which_are_true(asked):
        return {}
    tables = {
        "roc": _curve_of_scores(asked, "roc"),
        "threshold": _curve_of_scores(asked, "threshold", asked.along_threshold),
        "calibration": _curve(asked, "calibration", **asked.level),
    }
    found = {kind: table for kind, table in tables.items() if table is not None and _has_points(kind, table)}
    # The points of a roc curve are those of precision and recall.
    return found | ({"pr": _precision_and_recall(found["roc"])} if "roc" in found else {})


def asks_which_are_true(asked: ReportQuestion) -> bool:
    """Whether there are scores, and truths that a metric reads as true or false."""
    # With `relevant=` truths are grades.
    measures = [measure for measure in asked.measures if measure.relevant is None]
    is_binary = any(BINARY & set(measure.probe.door.guards) for measure in measures)
    return is_binary and len(asked.reads) == len(VALUES)


def _curve_of_scores(asked: ReportQuestion, kind: str, *metrics: Metric) -> pl.DataFrame | None:
    """A curve along the scores."""
    return _of_scores(asked, partial(_curve, kind=kind, metrics=metrics), partial(_has_points, kind))


def _of_scores(
    asked: ReportQuestion, ask: Callable[..., pl.DataFrame | None], has_points: Callable[[pl.DataFrame], bool]
) -> pl.DataFrame | None:
    """An answer about all scores: of probabilities in a log at the ends of cells, which takes less time.

    A score that is no probability has no cell; it may stand between those that have one. Passes have no other points.
    """
    reads_probabilities = any("probability" in each.probe.door.guards for each in asked.measures)
    if asked.passes or (asked.contents is None and reads_probabilities):
        table = ask(asked.in_cells)
        # A metric of other rows, such as of another score, is not in these cells.
        table = ask(asked, bins=ENOUGH) if table is None else table
        if asked.passes or (table is not None and has_points(table)):
            return table
    return ask(asked)


def _curve(asked: ReportQuestion, kind: Any, metrics: Sequence[Metric] = (), **more: Any) -> pl.DataFrame | None:
    """A curve of each model; None of a state that does not hold it."""
    how = {"by": asked.between, **more, **asked.of_log}
    return if_held(lambda: asked.with_model(curve(asked.frame, kind, *metrics, **how)))


def _has_points(kind: str, table: pl.DataFrame) -> bool:
    value = {"roc": "tpr", "threshold": "value", "calibration": "truth"}[kind]
    return bool(table[value].is_finite().any())


def _precision_and_recall(roc: pl.DataFrame) -> pl.DataFrame:
    precision = ratio(pl.col("tp"), pl.col("tp") + pl.col("fp"))
    return roc.with_columns(recall="tpr", precision=precision)


def areas_of(asked: ReportQuestion, kinds: Collection[str], values: pl.DataFrame) -> pl.DataFrame | None:
    """The areas under curves, a column for each kind: of a log exact ones, in passes and of a state those of bins.

    The points of a curve are some of all, so their area is another one. The page may show it as a metric already.
    """
    drawn = [kind for kind in AREAS if kind in kinds]
    if not drawn:
        return None
    asked = asked.in_cells if asked.passes else asked
    more = _bins_held(asked)
    of_kinds = {kind: AREAS[kind](**more) for kind in drawn}
    areas = [area.alias(kind) for kind, area in of_kinds.items()]
    if asked.contents is not None:
        return if_held(lambda: values_of_models(asked, areas)) if more else None
    names = {kind: m.output_name for kind, area in of_kinds.items() for m in asked.metrics if m == area}
    if names.keys() != of_kinds.keys():
        return values_of_models(asked, areas)
    of_whole = values.filter(pl.col("slice").fill_null(WHOLE) == WHOLE)
    shown = [pl.col("value").filter(metric=name).first().alias(kind) for kind, name in names.items()]
    return of_whole.group_by(MODEL, maintain_order=True).agg(shown)


def _bins_held(asked: ReportQuestion) -> dict[str, Any]:
    """The cells of the scores that a state has; none of a log."""
    held = [] if asked.contents is None else metrics_of(asked.contents.metrics)
    known = [measure.parameters for metric in held for measure in metric.tree.measures()]
    return next(
        ({name: each[name] for name in ("bins", "grid")} for each in known if {"bins", "grid"} <= set(each)), {}
    )


def best_of(asked: ReportQuestion) -> pl.DataFrame | None:
    """The best threshold of each model, of all or of the ends of cells; None where only points of the curve are known.

    With an average there is a value for each score and label, which is too much of a large log.
    """
    metric = asked.along_threshold
    if metric.best is None:
        return None
    is_pooled = all(measure.grain == "group" for measure in metric.tree.measures())
    if asked.contents is None and not is_pooled:
        return None

    def best(asked: ReportQuestion, **bins: Any) -> pl.DataFrame | None:
        how = {"by": asked.between, **bins, **asked.of_log}
        return if_held(lambda: asked.with_model(best_threshold(asked.frame, metric, **how)))

    return _of_scores(asked, best, lambda table: bool(table["value"].is_finite().any()))


def decisions_of(asked: ReportQuestion) -> list[Metric]:
    """The counts of a confusion matrix at the threshold in use; none where nothing is decided by one number."""
    is_named_so = not DECISIONS.keys().isdisjoint(metric.output_name for metric in asked.metrics)
    threshold = asked.threshold_in_use if asks_which_are_true(asked) and not is_named_so else None
    return [] if threshold is None else [count(threshold=threshold).alias(name) for name, count in DECISIONS.items()]
