"""Scores of several targets: the mean of one score of each, and all targets pooled."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from polars_mlmetrics.engine.measure import Measure, Targets
from polars_mlmetrics.engine.metric import MeanOf, Metric
from polars_mlmetrics.engine.parameters import check_parameter
from polars_mlmetrics.engine.settle import Average
from polars_mlmetrics.errors import ParameterError

NAME = "average_score"


def average_score(
    metric: Metric | Mapping[Any, Metric],
    weights: Mapping[Any, float] | Sequence[float] | None = None,
    *,
    target: str | None = None,
) -> Metric:
    """The mean of the scores of several targets: Σ w·v / Σ w, of one metric for all of them or of one for each.

    A target is a label, where the metrics have averages over labels. Where they are metrics of samples
    (`multiclass_log_loss`, whose labels are the classes of a target) it is the column `target`. `target=` names the
    column itself. What is undefined is left out of both sums.

    Parameters
    ----------
    metric
        One metric for all targets, or {target: metric}.
    weights
        {target: weight}, or a list in the order of {target: metric}; negative ones count against the rest. Without
        it all targets weigh the same.
    target
        The column that says which target a row is of.

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
    if isinstance(metric, Mapping):
        return _one_each(metric, weights, target)
    if weights is not None and not isinstance(weights, Mapping):
        raise ParameterError(f"{NAME}: a list of weights needs {{target: metric}} to say of which targets they are.")
    if weights is not None:
        check_parameter(NAME, "average", weights, Average)
    return _checked(metric).each(lambda measure: _over_targets(measure, weights, target))


def flattened(metric: Metric) -> Metric:
    """The metric of all targets pooled, as if they were one: its micro average.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> log = pl.DataFrame({"label": ["x", "x", "y"], "score": [1.0, 2.0, 5.0], "truth": [1.0, 3.0, 3.0]})
    >>> log.select(mlm.flattened(mlm.mae(average="macro"))).item()
    1.0
    """
    return _checked(metric, "flattened").each(_pooled)


def _pooled(measure: Measure) -> Measure:
    parameters = dict(measure.parameters)
    if measure.declaration.grain is None and "average" in parameters:
        parameters["average"] = "micro"
    return replace(measure, parameters=parameters, targets=None)


def _over_targets(measure: Measure, weights: Mapping[Any, float] | None, target: str | None) -> Measure:
    named = measure.given_name or NAME
    if target is not None or not _has_label_averages(measure):
        return replace(measure, targets=Targets(target or "target", weights), given_name=named)
    if measure.parameters["average"] != "micro":
        raise ParameterError(f"{NAME}: {measure!r} is an average of labels already. Name the column of the targets.")
    return replace(measure, parameters={**measure.parameters, "average": weights or "macro"}, given_name=named)


def _one_each(
    metrics: Mapping[Any, Metric], weights: Mapping[Any, float] | Sequence[float] | None, target: str | None
) -> Metric:
    if not metrics:
        raise ParameterError(f"{NAME}: {{target: metric}} names no target.")
    measures = [measure for metric in metrics.values() for measure in _checked(metric).measures()]
    by_label = target is None and all(map(_has_label_averages, measures))

    def rows_of(name: Any) -> Callable[[Measure], Measure]:
        if by_label:
            return lambda measure: replace(measure, labels=(name,))
        return lambda measure: measure.restrict(pl.col(target or "target") == name)

    parts = tuple(metric.each(rows_of(name)) for name, metric in metrics.items())
    return MeanOf(parts, _weights_of(metrics, weights), NAME)


def _weights_of(
    metrics: Mapping[Any, Metric], weights: Mapping[Any, float] | Sequence[float] | None
) -> tuple[float, ...]:
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


def _checked(metric: Any, name: str = NAME) -> Metric:
    if not isinstance(metric, Metric):
        kinds = "a metric or {target: metric}" if name == NAME else "a metric"
        raise ParameterError(f"{name} takes {kinds}, not {metric!r}.")
    return metric
