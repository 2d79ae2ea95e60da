"""The parts of a metric that its interval is made from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf

from polars_mlmetrics.formula.declaration import Declaration
from polars_mlmetrics.formula.measure import Measure, Node, Planned
from polars_mlmetrics.formula.targets import EachTarget, OverTargets
from polars_mlmetrics.formula.tree import Applied, Named


def core_of(metric: Node) -> tuple[Node, list[Applied]]:
    """The metric whose replicates are looked at, and the functions that its interval goes through, the first first."""
    if isinstance(metric, Named):
        return core_of(metric.metric)
    if not isinstance(metric, Applied) or not metric.keeps_ends:
        return metric, []
    core, functions = core_of(metric.metric)
    # Filling a null makes a value, and no interval.
    return core, functions if metric.function == "fill_null" else [*functions, metric]


def range_of(core: Node) -> tuple[float, float]:
    """Where the values of a metric lie."""
    return core.measures()[0].range if isinstance(core, Measure | OverTargets) else (-inf, inf)


def is_mean_of_labels(metric: Node) -> bool:
    """Whether a metric is an average over labels."""
    return isinstance(metric, Measure) and metric.grain == "label" and metric.per is None


def is_mean_of(metric: Node, cluster: Sequence[str]) -> bool:
    """Whether a metric is a mean over these clusters."""
    is_of_samples = isinstance(metric, Measure) and metric.grain == "sample" and metric.per is None
    return is_of_samples and list(metric.measures()[0].table.sample) == list(cluster)


def planned_in(metric: Node) -> Iterator[Planned]:
    """What a plan works out of a metric."""
    if isinstance(metric, Planned):
        yield metric
    else:
        for part in metric.of_rows.values() if isinstance(metric, EachTarget) else metric.parts:
            yield from planned_in(part)


def coarseness_of(core: Node) -> list[Planned]:
    """How far the bins of each part of a metric may put it off, at most."""
    found = []
    for part in planned_in(core):
        measures = part.measures()
        # Of a mean over targets the bound is known where it is one of a metric, not of arithmetic.
        if len(measures) == 1 and measures[0].declaration.coarseness and measures[0].parameters["bins"]:
            bound = part.each(_coarseness)
            assert isinstance(bound, Planned)
            found.append(bound)
    return found


def _coarseness(measure: Measure) -> Measure:
    formula = measure.declaration.coarseness
    assert formula is not None
    bound = Declaration(formula, measure.declaration.grain, (0, inf), None)
    return replace(measure, declaration=bound, undefined=None if measure.undefined is None else 0.0)
