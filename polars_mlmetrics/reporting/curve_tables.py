"""The curves of a report: what `curve` says of its scores, where they are such that they have curves."""

from __future__ import annotations

from typing import Any

import polars as pl

from polars_mlmetrics.analysis.curves import curve
from polars_mlmetrics.errors import StateError
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.formula.shared import Decision
from polars_mlmetrics.metrics.decisions import f1
from polars_mlmetrics.reporting.asked import Asked

BINARY = {"truth", "soft_truth"}
"""How metrics read a truth that has curves."""


def curves_of(asked: Asked) -> dict[str, pl.DataFrame]:
    """The curves by kind; those without a point are not among them."""
    measures = [measure for metric in asked.metrics for measure in metric.tree.measures()]
    if not any(BINARY & set(measure.probe.door.guards) for measure in measures):
        return {}
    tables = {
        "roc": _curve(asked, "roc"),
        "threshold": _curve(asked, "threshold", _of_threshold(asked)),
        "calibration": _curve(asked, "calibration", **asked.level),
    }
    found = {kind: table for kind, table in tables.items() if table is not None and _has_points(kind, table)}
    # The points of a roc curve are those of precision and recall.
    return found | ({"pr": _precision_and_recall(found["roc"])} if "roc" in found else {})


def _curve(asked: Asked, kind: Any, *metrics: Metric, **more: Any) -> pl.DataFrame | None:
    """A curve of each model; None of a state that does not hold it."""
    try:
        return curve(asked.frame, kind, *metrics, by=asked.between, **more, **asked.roles).collect()
    except StateError:
        return None


def _has_points(kind: str, table: pl.DataFrame) -> bool:
    value = {"roc": "tpr", "threshold": "value", "calibration": "truth"}[kind]
    return bool(table[value].is_finite().any())


def _precision_and_recall(roc: pl.DataFrame) -> pl.DataFrame:
    precision = ratio(pl.col("tp"), pl.col("tp") + pl.col("fp"))
    return roc.with_columns(recall="tpr", precision=precision)


def _of_threshold(asked: Asked) -> Metric:
    """The first metric with one number as its threshold, or else f1."""
    return next((metric for metric in asked.metrics if threshold_of(metric) is not None), f1())


def threshold_of(metric: Metric) -> float | None:
    """The threshold of a metric, where that is one number."""
    for measure in metric.tree.measures():
        decision = measure.parameters.get("threshold")
        if isinstance(decision, Decision) and isinstance(decision.threshold, int | float):
            return float(decision.threshold)
    return None
