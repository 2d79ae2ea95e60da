"""Means over targets: of one metric for all of them, or of a metric for each.

Both are one law: each target is computed on its own rows, as if there were no others, and then the values are averaged.
A target without a row that counts has no part in it, nor has one whose value is undefined; one whose value cannot be
known keeps the mean from being known, and a broken one breaks it, whatever its weight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import polars as pl

from polars_mlmetrics.errors import MetricError
from polars_mlmetrics.formula.arithmetic import ratio, unless_rounding
from polars_mlmetrics.formula.averages import Best, Settlement
from polars_mlmetrics.formula.declaration import Interval
from polars_mlmetrics.formula.measure import Measure, Node, Planned, is_debiased
from polars_mlmetrics.formula.parameters import identity
from polars_mlmetrics.formula.row_counts import RowCounts
from polars_mlmetrics.formula.tree import Applied, kind_of_several, other_end

NAME = "average_score"

UnitValue = Callable[[Planned], pl.Expr]
"""The value of what is planned of a metric."""


@dataclass(frozen=True, eq=False, repr=False)
class OverTargets(Planned):
    """The mean of one metric over the targets of a column."""

    metric: Node
    target: str | None
    """The column; None for that of the labels."""
    weights: Mapping[Any, float] | None

    @property
    def output_name(self) -> str:
        return NAME

    @property
    def parts(self) -> tuple[Node, ...]:
        return (self.metric,)

    def with_parts(self, parts: Sequence[Node]) -> Node:
        (metric,) = parts
        return replace(self, metric=metric)

    @property
    def columns(self) -> list[str]:
        """The column whose values are the targets."""
        return _columns(self.target, self.metric.measures())

    @property
    def column(self) -> str:
        """The column whose values are the targets."""
        column, *others = self.columns
        if others:
            raise MetricError(
                f"{self.output_name}: the targets are labels, but labels are in both {column!r} and {others[0]!r}."
            )
        return column

    @property
    def named(self) -> list[Any]:
        """The targets that are named; all are averaged where none is."""
        return list(self.weights or ())

    def combined(self, values: UnitValue) -> pl.Expr:
        # Where measures stop at their units there is nothing to average yet.
        is_of_units = any(measure.per for measure in self.measures())
        return self.metric.combined(values) if is_of_units else values(self)

    def terms(self, values: UnitValue, target: pl.Expr) -> dict[str, pl.Expr]:
        """The term that each target adds to the mean."""
        weights = {} if self.weights is None else self.weights
        weight = Settlement(weights).weight_of(target) if weights else pl.when(target.is_not_null()).then(1.0)
        return terms_of(self.metric, values, weight, least=min(weights.values(), default=1.0))

    def in_windows(self, values: UnitValue) -> pl.Expr:
        """The mean as one expression over the rows of a group."""
        # Windows of the metric's own work inside that of a target, as they should: its units lie within a target.
        target = pl.col(self.column)
        first = target.is_first_distinct()
        terms = self.terms(values, target.first())
        return mean_of({name: term.over(target).filter(first).sum() for name, term in terms.items()})

    @property
    def best(self) -> Best | None:
        weights = [1.0] if self.weights is None else list(self.weights.values())
        return _best([self.metric] * len(weights), weights)

    @property
    def interval_kind(self) -> Interval:
        # A mean of values that are cut is biased, though none of them is.
        is_of_cut = isinstance(self.metric, Measure) and is_debiased(self.metric)
        return "biased" if is_of_cut else self.metric.interval_kind

    @cached_property
    def key(self) -> tuple[Any, ...]:
        return (NAME, self.metric.key, self.target, identity(self.weights))

    def __repr__(self) -> str:
        shown = [repr(self.metric)]
        shown += [] if self.weights is None else [f"weights={self.weights!r}"]
        shown += [] if self.target is None else [f"target={self.target!r}"]
        return f"{NAME}({', '.join(shown)})"


@dataclass(frozen=True, eq=False, repr=False)
class EachTarget(Node):
    """The mean over targets of a metric for each."""

    metrics: Mapping[Any, Node]
    target: str | None
    """The column whose values are the targets; None for that of the labels."""
    weights: tuple[float, ...]

    @property
    def output_name(self) -> str:
        return NAME

    @property
    def parts(self) -> tuple[Node, ...]:
        return tuple(self.metrics.values())

    def with_parts(self, parts: Sequence[Node]) -> Node:
        return replace(self, metrics=dict(zip(self.metrics, parts, strict=True)))

    @property
    def columns(self) -> list[str]:
        """The columns whose values are the targets."""
        return _columns(self.target, self.measures())

    @property
    def named(self) -> list[Any]:
        """The targets."""
        return list(self.metrics)

    @cached_property
    def of_rows(self) -> dict[Any, Node]:
        """The metric of each target, on the rows of that alone."""

        def of(name: Any) -> Callable[[Measure], Measure]:
            return lambda measure: measure.restrict(pl.col(self.target or measure.table.label) == name)

        return {name: metric.each(of(name)) for name, metric in self.metrics.items()}

    def measures(self) -> list[Measure]:
        return [measure for metric in self.of_rows.values() for measure in metric.measures()]

    def combined(self, values: UnitValue) -> pl.Expr:
        weighted = zip(self.of_rows.values(), self.weights, strict=True)
        terms = [terms_of(metric, values, pl.lit(weight), least=min(self.weights)) for metric, weight in weighted]
        names = dict.fromkeys(name for of in terms for name in of)
        return mean_of({name: pl.sum_horizontal(of[name] for of in terms if name in of) for name in names})

    @property
    def best(self) -> Best | None:
        return _best(self.parts, self.weights)

    @property
    def interval_kind(self) -> Interval:
        return kind_of_several(self.parts)

    @cached_property
    def key(self) -> tuple[Any, ...]:
        metrics = tuple((name, metric.key) for name, metric in self.metrics.items())
        return (NAME, metrics, self.target, self.weights)

    def __repr__(self) -> str:
        shown = [repr(dict(self.metrics))]
        shown += [] if set(self.weights) == {1.0} else [f"weights={list(self.weights)!r}"]
        shown += [] if self.target is None else [f"target={self.target!r}"]
        return f"{NAME}({', '.join(shown)})"


def terms_of(metric: Node, values: UnitValue, weight: pl.Expr, *, least: float) -> dict[str, pl.Expr]:
    """The term that a target adds to the mean of targets; its weight is null where it has no part in the mean.

    `least` is the lowest weight there is. The value is written no more often than it takes: as an expression it would
    be computed each time.
    """
    counts = [RowCounts(measure) for measure in metric.measures()]
    is_there = pl.any_horizontal(values(rows) > 0 for rows in _each_once(each.used for each in counts))
    value = metric.combined(values).cast(pl.Float64)
    if _has_value_without_rows(metric):
        value = pl.when(is_there).then(value)
    is_undefined = weight.is_not_null() & value.is_null()
    known_weight = pl.when(value.is_not_null()).then(weight)
    terms = {
        "total": value * weight,
        "weight": known_weight,
        "undefined": (is_there & is_undefined).cast(pl.Int64),
    }
    if least <= 0:
        # A target of weight 0 is taken out, since 0 times infinity would be NaN.
        terms["total"] = pl.when(weight != 0).then(value * weight)
        terms["size"] = known_weight.abs()
    unknown = _each_once(each.unknown for each in counts if each.unknown is not None)
    if unknown:
        is_unknown = pl.any_horizontal(values(rows) > 0 for rows in unknown)
        terms["unknown"] = (is_undefined & is_unknown).cast(pl.Int64)
    if least <= 0 or unknown:
        terms["broken"] = (weight.is_not_null() & value.is_nan()).cast(pl.Int64)
    return terms


def mean_of(sums: Mapping[str, pl.Expr]) -> pl.Expr:
    """The mean over targets, from the sums of what they add to it."""
    weight = unless_rounding(sums["weight"], sums["size"]) if "size" in sums else sums["weight"]
    mean = ratio(sums["total"], weight)
    if "unknown" in sums:
        mean = pl.when(sums["unknown"] == 0).then(mean)
    return pl.when(sums["broken"] > 0).then(float("nan")).otherwise(mean) if "broken" in sums else mean


def _has_value_without_rows(metric: Node) -> bool:
    """Whether there may be a value where no row counts."""
    fills = (isinstance(part, Applied) and part.function == "fill_null" for part in metric.walk())
    return any(fills) or any(m.undefined is not None or m.declaration.counts for m in metric.measures())


def _columns(target: str | None, measures: Iterable[Measure]) -> list[str]:
    return list(dict.fromkeys(target or measure.table.label for measure in measures))


def _each_once(measures: Iterable[Measure]) -> list[Measure]:
    return list({measure.key: measure for measure in measures}.values())


def _best(metrics: Sequence[Node], weights: Sequence[float]) -> Best | None:
    whole = sum(weights)
    weighted = [(metric.best, weight) for metric, weight in zip(metrics, weights, strict=True) if weight != 0]
    ends = {best if weight * whole > 0 else other_end(best) for best, weight in weighted}
    return ends.pop() if len(ends) == 1 else None


def counted_parts(metric: Node, target: str | None) -> Iterator[tuple[Node, str | None]]:
    """The parts of a metric whose rows are counted, each with the column of targets that must be known of a row."""
    parts = metric.of_rows.values() if isinstance(metric, EachTarget) else metric.parts
    of = metric.column if isinstance(metric, OverTargets) else target
    return ((part, of) for part in parts)


def counts_in(metric: Node, target: str | None = None) -> Iterator[RowCounts]:
    """The counts of each measure of a metric."""
    if isinstance(metric, Measure):
        yield RowCounts(metric, target)
    else:
        for part, of in counted_parts(metric, target):
            yield from counts_in(part, of)


def samples_of(metric: Node) -> dict[tuple[object, ...], Measure]:
    """The counts of the samples that have rows which count to a metric: several, where its parts use other rows."""
    samples = [counts.samples for counts in counts_in(metric)]
    return {count.key_in_full: count for count in samples}


def samples_of_all(metrics: Iterable[Node]) -> list[Measure]:
    """The counts of samples of several metrics, each once."""
    return [*{key: count for metric in metrics for key, count in samples_of(metric).items()}.values()]
