"""The kinds of metrics that intervals tell apart: shares of counts, means of labels or of samples, areas of bins."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import polars as pl

from polars_mlmetrics.engine.plan import Plan
from polars_mlmetrics.formula.declaration import Declaration
from polars_mlmetrics.formula.measure import Measure, Node, Planned, is_debiased, is_of_one_unit
from polars_mlmetrics.formula.over_targets import OverTargets
from polars_mlmetrics.formula.tree import Applied, Named
from polars_mlmetrics.query.question import Confidence


def core_of(metric: Node) -> tuple[Node, list[Applied]]:
    """The metric whose replicates are looked at, and the functions that its interval goes through, the first first."""
    if isinstance(metric, Named):
        return core_of(metric.metric)
    if isinstance(metric, Measure) and is_debiased(metric):
        # What is cut at an end of the range does not move as it should.
        return _uncut(metric), []
    if not isinstance(metric, Applied) or not metric.keeps_ends:
        return metric, []
    core, functions = core_of(metric.metric)
    # Filling a null makes a value, and no interval.
    return core, functions if metric.function == "fill_null" else [*functions, metric]


def _uncut(measure: Measure) -> Measure:
    """A debiased measure before its value is cut at an end of its range."""
    declared = measure.declaration
    assert declared.uncut is not None
    facts = declared.uncut, declared.grain, declared.range, declared.best
    return replace(measure, declaration=Declaration(*facts, interval="t"))


def range_of(metric: Node) -> tuple[float, float]:
    """Where the values of a metric lie, before functions are applied to them."""
    core, _ = core_of(metric)
    return core.measures()[0].range if isinstance(core, Measure | OverTargets) else (-inf, inf)


def is_mean_of_clusters(metric: Node, confidence: Confidence) -> bool:
    """Whether a metric is a mean over samples, which are the clusters."""
    is_of_samples = isinstance(metric, Measure) and metric.grain == "sample" and metric.per is None
    return is_of_samples and samples_are_clusters(metric, confidence)


def is_share(metric: Node, plan: Plan) -> bool:
    """Whether a metric is a share of the counted rows of one unit, such as a recall, or made of such shares."""

    def is_one(part: Planned) -> bool:
        if not isinstance(part, Measure) or not is_of_one_unit(part):
            return False
        return part.declaration.range[0] == 0 and plan.reader(part).counts_alone

    return all(map(is_one, planned_in(core_of(metric)[0])))


def is_area(metric: Node) -> bool:
    """Whether a metric is an area below a curve, or a mean of such areas."""
    core, _ = core_of(metric)
    return isinstance(core, Measure | OverTargets) and all(
        measure.declaration.coarseness is not None for measure in core.measures()
    )


def samples_are_clusters(metric: Node, confidence: Confidence) -> bool:
    """Whether each sample of a metric is a cluster."""
    return all(list(measure.table.sample) == list(confidence.cluster) for measure in metric.measures())


def buckets_for(metric: Node, plan: Plan, confidence: Confidence) -> Confidence:
    """The intervals of a metric: from fewer buckets if a part of it is worked out of bins, of which each has many."""

    def is_of_bins(measure: Measure) -> bool:
        reader = plan.reader(measure)
        return reader.run_key is not None and not reader.runs_by_label

    return confidence.of_bins if any(map(is_of_bins, core_of(metric)[0].measures())) else confidence


def planned_in(metric: Node) -> list[Planned]:
    """The expressions of a metric in a plan: all that its value is combined of."""
    found: list[Planned] = []

    def read(part: Planned) -> pl.Expr:
        found.append(part)
        return pl.lit(None, dtype=pl.Float64)

    metric.combined(read)
    return found


def coarseness_of(metric: Node) -> list[Planned]:
    """How far the bins of each part of a metric may put it off, at most."""
    found = []
    for part in planned_in(core_of(metric)[0]):
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
