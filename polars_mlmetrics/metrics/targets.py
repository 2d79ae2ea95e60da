"""Scores of several targets: the mean of one score of each, and all targets pooled."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from polars_mlmetrics.data.expressions import check_no_pattern
from polars_mlmetrics.errors import ParameterError, at_callers_line
from polars_mlmetrics.formula.averages import Average
from polars_mlmetrics.formula.measure import Measure, Node
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.formula.over_targets import NAME, EachTarget, OverTargets
from polars_mlmetrics.formula.parameters import check_parameter
from polars_mlmetrics.formula.tree import Named


@at_callers_line
def average_score(
    metric: Metric | Mapping[Any, Metric],
    weights: Mapping[Any, float] | Sequence[float] | None = None,
    *,
    target: str | None = None,
) -> Metric:
    """The mean of the scores of several targets: Σ w·v / Σ w, of one metric for all of them or of one for each.

    It is the mean over targets of what `evaluate` gives on the rows of each target. If the metrics have averages over
    labels, a target is a label. If they are metrics of samples (`multiclass_log_loss`, whose labels are the classes of
    a target), it is the column `target`. `target=` names the column. Undefined targets are left out of both sums, and
    so is a target without any counted row, even with `undefined=`.

    Parameters
    ----------
    metric
        One metric for all targets, or {target: metric}.
    weights
        {target: weight}, or a list in the order of {target: metric}; weights may be negative. By default all targets
        have the same weight.
    target
        The column that names the target of a row.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> log = pl.DataFrame({"label": ["x", "x", "y", "y"], "score": [1, 2, 5, 5], "truth": [1, 3, 4, 5]})
    >>> log.select(mlm.average_score(mlm.mae())).item()
    0.5
    >>> each = {"x": mlm.mae(), "y": mlm.max_error()}
    >>> log.select(mlm.average_score(each, weights=[1, 3])).item()
    0.875
    """
    check_no_pattern([] if target is None else [target], what="target column")
    given = [_checked(each) for each in (metric.values() if isinstance(metric, Mapping) else [metric])]
    for inner in given:
        if any(isinstance(part, OverTargets | EachTarget) for part in inner.walk()):
            raise ParameterError(f"{NAME}: {inner!r} is already a mean over targets, and cannot be averaged again.")
    if isinstance(metric, Mapping):
        each = dict(zip(metric, given, strict=True))
        return Metric(EachTarget(each, _target_of(given, target), _weights_of(each, weights)))
    if weights is not None and not isinstance(weights, Mapping):
        raise ParameterError(f"{NAME}: a list of weights needs {{target: metric}}, so that each weight has a target.")
    if weights is not None:
        check_parameter(NAME, "average", weights, Average)
    return Metric(_over_targets(given[0], weights, _target_of(given, target)))


@at_callers_line
def flattened(metric: Metric) -> Metric:
    """The metric of all targets pooled as one: its micro average.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> log = pl.DataFrame({"label": ["x", "x", "y"], "score": [1.0, 2.0, 5.0], "truth": [1.0, 3.0, 3.0]})
    >>> log.select(mlm.flattened(mlm.mae(average="macro"))).item()
    1.0
    """
    return Metric(_pooled(_checked(metric, "flattened")))


def _pooled(metric: Node) -> Node:
    if isinstance(metric, Measure):
        if not _has_label_averages(metric):
            return metric
        return replace(metric, parameters={**metric.parameters, "average": "micro"})
    if isinstance(metric, OverTargets) or (isinstance(metric, Named) and metric.name == NAME):
        return _pooled(metric.metric)
    return metric.with_parts([_pooled(part) for part in metric.parts])


def _over_targets(metric: Node, weights: Mapping[Any, float] | None, target: str | None) -> Node:
    if isinstance(metric, Named):
        mean = _over_targets(metric.metric, weights, target)
        return replace(metric, metric=mean.metric if isinstance(mean, Named) else mean)
    if target is not None:
        return OverTargets(metric, target, weights)
    for measure in metric.measures():
        if measure.parameters["average"] != "micro":
            raise ParameterError(
                f"{NAME}: {measure!r} is already an average over labels. Name the column of the targets."
            )
    if isinstance(metric, Measure) and metric.undefined is None and not metric.probe.looks_into:
        # The metric has that average itself. Its undefined= is for labels of which no row counts, too.
        average = {**metric.parameters, "average": weights or "macro"}
        return Named(replace(metric, parameters=average), NAME)
    return OverTargets(metric, None, weights)


def _target_of(metrics: Sequence[Node], target: str | None) -> str | None:
    """The column of the targets; None for that of the labels, where all metrics have averages over them."""
    measures = (measure for metric in metrics for measure in metric.measures())
    return target or (None if all(map(_has_label_averages, measures)) else "target")


def _weights_of(
    metrics: Mapping[Any, Node], weights: Mapping[Any, float] | Sequence[float] | None
) -> tuple[float, ...]:
    if not metrics:
        raise ParameterError(f"{NAME}: {{target: metric}} is empty.")
    if weights is None:
        return (1.0,) * len(metrics)
    if len(weights) != len(metrics) or (isinstance(weights, Mapping) and weights.keys() != metrics.keys()):
        raise ParameterError(f"{NAME}: one weight for each of {list(metrics)} is needed, not {weights!r}.")
    if not isinstance(weights, Mapping):
        weights = dict(zip(metrics, weights, strict=True))
    check_parameter(NAME, "average", weights, Average)
    return tuple(float(weights[name]) for name in metrics)


def _has_label_averages(measure: Measure) -> bool:
    return measure.declaration.grain is None and "average" in measure.parameters


def _checked(metric: Any, name: str = NAME) -> Node:
    if not isinstance(metric, Metric):
        kinds = "a metric or {target: metric}" if name == NAME else "a metric"
        raise ParameterError(f"{name} takes {kinds}, not {metric!r}.")
    return metric.tree
