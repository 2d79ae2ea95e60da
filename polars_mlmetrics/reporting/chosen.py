"""The metrics of a report where none are named, by what `check` found."""

from __future__ import annotations

import polars as pl

from polars_mlmetrics.checks.check import check
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.metrics.decisions import f1
from polars_mlmetrics.metrics.probabilities import calibration_error, log_loss, multiclass_log_loss
from polars_mlmetrics.metrics.rankings import label_ranking_average_precision, top_k_accuracy
from polars_mlmetrics.metrics.separation import average_precision, roc_auc
from polars_mlmetrics.query.query import listed
from polars_mlmetrics.query.written import metrics_of
from polars_mlmetrics.reporting.asked import Asked

OUTSIDE = ("score_out_of_range", "score_infinite", "score_nan", "score_is_no_number")
CLASSES = ("looks_multiclass", "classes_as_labels")


def problems_of(asked: Asked, frame: pl.LazyFrame) -> pl.DataFrame | None:
    """What `check` finds; None of a state, which has no rows."""
    if asked.contents is not None:
        return None
    by = listed(asked.between) or None
    slices = asked.slices or None
    return check(frame, by=by, slices=slices, metrics=asked.metrics, progress=False, **asked.roles)


def metrics_for(asked: Asked, problems: pl.DataFrame | None) -> list[Metric]:
    """Those that were named, or those that fit the log; of a state, those that it holds."""
    if asked.metrics:
        return asked.metrics
    if problems is None:
        assert asked.contents is not None
        held = metrics_of(asked.contents.metrics)
        # Counts, such as that of samples, are there for others.
        return [metric for metric in held if metric.best is not None] or held
    found = set(problems.filter(pl.col("count") > 0)["problem"].to_list())
    if found & set(CLASSES) and asked.label is not None:
        return [
            multiclass_log_loss(),
            f1(threshold="argmax", average="macro"),
            *(top_k_accuracy(k=k) for k in (1, 5) if k < _count(problems, "labels")),
        ]
    is_probability = not found & set(OUTSIDE)
    metrics = [log_loss()] if is_probability else []
    metrics.append(f1() if asked.label is None else f1(average="macro"))
    # Exact ones: bins can be too coarse for a model that is too sure of itself, and say that it is worse.
    metrics += [roc_auc(), average_precision()]
    metrics += [calibration_error()] if is_probability else []
    if asked.label is not None and _count(problems, "labels") > 1:
        metrics.append(label_ranking_average_precision())
    return metrics


def _count(problems: pl.DataFrame, name: str) -> int:
    found = problems.filter(pl.col("problem") == name)["count"]
    return 0 if found.is_empty() else int(found[0] or 0)
