"""A metric's value together with its account: how many rows, samples and units stand behind it, and why it is null."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import polars as pl

from polars_mlmetrics.data.door import check_columns
from polars_mlmetrics.data.expressions import any_of, is_one_of
from polars_mlmetrics.data.roles import MODEL, Table
from polars_mlmetrics.engine.plan import Plan
from polars_mlmetrics.engine.state_table import StateTable
from polars_mlmetrics.engine.values import Columns
from polars_mlmetrics.errors import ColumnError
from polars_mlmetrics.formula.arithmetic import first_that_holds
from polars_mlmetrics.formula.measure import Measure, Node, Planned
from polars_mlmetrics.formula.over_targets import EachTarget, counted_parts, counts_in
from polars_mlmetrics.formula.parameters import is_nan_number
from polars_mlmetrics.formula.row_counts import RowCounts
from polars_mlmetrics.query.results import Result

Count = Callable[[RowCounts], pl.Expr | None]
"""A count of the rows of a measure; None where there is none."""

Merge = Callable[[Iterable[pl.Expr]], pl.Expr]


class Cause(NamedTuple):
    """Why a value may be null."""

    holds: pl.Expr
    text: pl.Expr
    of_whole: bool = False
    """Whether it makes a mean over targets null too, of which this is one."""


class Account:
    """Add one metric to a plan and name the columns that report it: value, counts, reason.

    Of a metric that stops at its units these are columns of the table of units. To count samples may take as long as
    the value: without `counts_samples` these counts are null.
    """

    def __init__(
        self,
        metric: Node,
        plan: Plan,
        min_samples: int | None = None,
        *,
        tidy: bool = False,
        counts_samples: bool = True,
    ) -> None:
        self.metric = metric
        self.name = metric.output_name
        self.plan = plan
        self._is_of_units = any(measure.per for measure in metric.measures())
        counts = all(measure.declaration.counts for measure in metric.measures())
        self._min_samples = None if counts else min_samples
        self._counts_samples = counts_samples
        self._names = names_of_parts(metric, plan.roles) if tidy else {}
        self._counts_of: dict[tuple[Any, ...], RowCounts] = {}
        if self._min_samples is not None:
            check_samples(metric.measures(), plan.schema)
        self._is_tidy = tidy

    @cached_property
    def value(self) -> pl.Expr:
        """The metric's value: null where there are too few samples."""
        value = self._value(self.metric)
        return value if self._min_samples is None else pl.when(~self._too_few(self.metric)).then(value)

    def n_clusters(self, cluster: Sequence[str]) -> pl.Expr | None:
        """How many clusters have such a row; None where they cannot be counted."""

        def clusters(counts: RowCounts) -> pl.Expr | None:
            counted = counts.clusters(cluster)
            is_there = all(column in self.plan.schema for column in cluster)
            can_count = self._counts_samples and is_there and self.plan.can_answer(counted)
            return self._value(counted) if can_count else None

        return self._over_parts(self.metric, clusters, pl.min_horizontal, pl.min_horizontal)

    @cached_property
    def is_pooled(self) -> pl.Expr:
        """Whether rows of several models make one value."""
        return any_of([self._value(each) > 0 for each in several_models(self.metric, self.plan)])

    def result(self) -> Result:
        """The columns that tell of it."""
        return Result(self.name, self.value, self._counted() if self._is_tidy else {})

    def _counted(self) -> dict[str, pl.Expr | None]:
        parts = {part.key: part for _, part in _by_target(self.metric)}
        return {
            "ci_flag": pl.when(self.value.cast(pl.Float64).is_finite() & self.is_pooled).then(pl.lit("pooled")),
            "n_rows": self.n_rows(self.metric),
            "n_samples": self._n_samples(self.metric),
            "n_excluded": self._n_excluded(self.metric),
            "support": self._over_parts(self.metric, self._support, least_or_nan, sum_of_known),
            "reason": self._reason(parts.values()),
            **({} if self._is_of_units else self._counted_of_groups(parts.values())),
        }

    def _counted_of_groups(self, parts: Iterable[Planned]) -> dict[str, pl.Expr | None]:
        """Counts that only a value of several units has."""
        added = [self.plan.add(part) for part in parts]
        undefined = pl.sum_horizontal(map(pl.col, dict.fromkeys(columns.undefined_units for columns in added)))
        return {
            "n_split": self._over_parts(self.metric, self._split, pl.max_horizontal, pl.max_horizontal),
            "n_undefined": self.plan.where_whole(undefined, added),
        }

    def _value(self, metric: Node) -> pl.Expr:
        return self.plan.value(metric, _value_in)

    # -- counts: of one measure, and of the parts of a metric together ---------------------------------------------

    def _over_parts(
        self, metric: Node, count: Count, of_arithmetic: Merge, of_targets: Merge, target: str | None = None
    ) -> pl.Expr | None:
        """A count of all parts of a metric together, in arithmetic and in a mean over targets."""
        if isinstance(metric, Measure):
            return count(self._counts_of.setdefault((metric.key, target), RowCounts(metric, target)))
        counts = [
            self._over_parts(part, count, of_arithmetic, of_targets, of) for part, of in counted_parts(metric, target)
        ]
        known_counts = [count for count in counts if count is not None]
        if not known_counts:
            return None
        return (of_targets if isinstance(metric, EachTarget) else of_arithmetic)(known_counts)

    def n_rows(self, metric: Node) -> pl.Expr:
        """How many rows are used by the metric, or by a part of it."""
        return self._required(metric, self._used, pl.min_horizontal)

    def _n_excluded(self, metric: Node) -> pl.Expr:
        return self._required(metric, self._excluded, pl.max_horizontal)

    def _required(self, metric: Node, count: Count, of_arithmetic: Merge) -> pl.Expr:
        counted = self._over_parts(metric, count, of_arithmetic, pl.sum_horizontal)
        assert counted is not None
        return counted

    def _n_samples(self, metric: Node) -> pl.Expr | None:
        return self._over_parts(metric, self._samples, pl.min_horizontal, pl.min_horizontal)

    def _used(self, counts: RowCounts) -> pl.Expr:
        # Rows are counted whether or not their samples are whole.
        return _value_in(counts.used, self.plan.add(counts.used))

    def _excluded(self, counts: RowCounts) -> pl.Expr:
        """The rows with a null in a role, and those without a key of the metric's own unit."""
        return _value_in(counts.in_scope, self.plan.add(counts.in_scope)) - self._used(counts)

    def _split(self, counts: RowCounts) -> pl.Expr | None:
        known = self._counts_samples and can_count_samples(counts, self.plan)
        return self.plan.source.n_split(counts.measure.table.sample) if known else None

    def _samples(self, counts: RowCounts) -> pl.Expr | None:
        # Where samples are asked for, the lack of them is an error.
        can_count = self._counts_samples and can_count_samples(counts, self.plan)
        if self._min_samples is None and not can_count:
            return None
        return self._value(counts.samples)

    def _support(self, counts: RowCounts) -> pl.Expr | None:
        return None if counts.support is None else self._value(counts.support)

    def _too_few(self, metric: Node) -> pl.Expr:
        samples = self._n_samples(metric)
        return pl.lit(False) if samples is None else samples < self._min_samples

    # -- why a value is null -------------------------------------------------------------------------------------

    def _reason(self, parts: Iterable[Planned]) -> pl.Expr:
        """The first of the causes that holds, in words; null where the value is a number."""
        is_nan = self.value.cast(pl.Float64).is_nan()
        broken = [(self._value(part).is_nan(), pl.lit(self._names[part.key] + _why_nan(part))) for part in parts]
        cases = [(is_nan, first_that_holds(broken, pl.lit("not a number, such as inf - inf or the root of -1")))]
        cases += [(self.value.is_not_null(), pl.lit(None, dtype=pl.String))]
        cases += [(cause.holds, cause.text) for cause in self._causes(self.metric)]
        return first_that_holds(cases, pl.lit("division by 0"))

    def _causes(self, metric: Node) -> Iterator[Cause]:
        if isinstance(metric, Planned):
            yield from self._causes_of(metric)
        elif isinstance(metric, EachTarget):
            yield from self._causes_of_mean(metric)
        else:
            for part in metric.parts:
                yield from self._causes(part)

    def _causes_of(self, part: Planned) -> Iterator[Cause]:
        """Why a value that a plan works out may be null."""
        name, is_null = self._names[part.key], self._value(part).is_null()
        is_small = pl.lit(False) if self._min_samples is None else self._too_few(part)
        none = Cause((is_null | is_small) & (self.n_rows(part) == 0), self._none_left(part, name))
        counts = [RowCounts(measure) for measure in part.measures()]
        counted = [] if self._min_samples is None else [each.samples for each in counts]
        several = [
            Cause(pl.col(reason).is_not_null(), pl.lit(name) + pl.col(reason), of_whole=True)
            for reason in self.plan.reasons_of(self.plan.add(each) for each in (part, *counted))
        ]
        # With `undefined=` no rows have a value too, so they are not why there is none.
        has_value = any(measure.undefined is not None for measure in part.measures())
        yield from [*several, none] if has_value else [none, *several]
        yield Cause(is_small, pl.lit(f"{name}fewer than {self._min_samples} samples"), of_whole=True)
        for each in counts:
            if each.unknown is not None:
                (unknown, *_), rows = each.measure.probe.unknown.values(), self._value(each.unknown)
                text = with_count(f"{name}rows without a {unknown.lack}: ", rows)
                yield Cause(is_null & (rows > 0), text, of_whole=True)
        yield Cause(is_null, self._undefined(part, name))

    def _causes_of_mean(self, mean: EachTarget) -> Iterator[Cause]:
        """Why a mean over targets with a metric for each may be null."""
        yield Cause(self.n_rows(mean) == 0, self._none_left(mean, ""))
        has_value = [self._value(part).is_not_null() & (self.n_rows(part) > 0) for part in mean.of_rows.values()]
        for part in mean.of_rows.values():
            for cause in self._causes(part):
                yield cause if cause.of_whole else Cause(cause.holds & ~pl.any_horizontal(has_value), cause.text)
        yield Cause(self._value(mean).is_null(), pl.lit("the weights of the targets sum to 0"))

    def _none_left(self, metric: Node, name: str) -> pl.Expr:
        excluded = self._n_excluded(metric)
        counted = with_count(f"{name}no rows: all ", excluded, " are excluded for a null")
        return pl.when(excluded == 0).then(pl.lit(f"{name}no rows")).otherwise(counted)

    def _undefined(self, part: Planned, name: str) -> pl.Expr:
        reasons = list(dict.fromkeys(measure.declaration.undefined_when for measure in part.measures()))
        # Rows there are, or this were not asked.
        when = reasons[0] or "no row has a weight above 0"
        unit = part.grain if isinstance(part, Measure) else "target"
        if unit == "group" or self._is_of_units:
            return pl.lit(name + when)
        units = pl.col(self.plan.add(part).undefined_units)
        why = "" if reasons[1:] else f": {when}"
        return (
            pl.when(units == 0)
            .then(pl.lit(f"{name}the weights of the {unit}s sum to 0"))
            .otherwise(with_count(f"{name}undefined in ", units, f" {unit}s{why}"))
        )


def _why_nan(part: Planned) -> str:
    """Why a value may be NaN."""
    of_undefined = any(is_nan_number(measure.undefined) for measure in part.measures())
    return f"{'undefined, or ' if of_undefined else ''}broken rows: a NaN, or a value out of range"


def _value_in(measure: Planned, columns: Columns) -> pl.Expr:
    """The value of a measure. A label of a vocabulary that has no rows is undefined, and its counts are 0."""
    value = pl.col(columns.value)
    if not isinstance(measure, Measure) or measure.per is None:
        return value
    if measure.declaration.counts:
        return value.fill_null(0)
    if measure.labels is None or measure.undefined is None or measure.grain != "label":
        return value
    # A label may be there for another metric alone: where all rows that this one reads are excluded.
    absent = ~pl.col(columns.present).fill_null(False) & is_one_of(pl.col(measure.table.label), measure.labels)
    return pl.when(absent).then(measure.undefined).otherwise(value)


def several_models(metric: Node, plan: Plan) -> list[Measure]:
    """Measures that are 1 where a metric uses rows of several models; none for counts, nor where no column says so."""
    dtype = plan.schema.get(MODEL)
    if dtype is None or dtype.is_nested() or dtype == pl.Object or MODEL in plan.by:
        return []
    several = [counts.several_models for counts in counts_in(metric) if not counts.measure.declaration.counts]
    return [measure for measure in several if plan.can_answer(measure)]


def ask_counts(metric: Node, plan: StateTable) -> None:
    """Ask a plan for what it takes to tell every count of an account: so a state holds it."""
    for counts in counts_in(metric):
        for count in counts.stored():
            plan.add(count)
        if can_count_samples(counts, plan):
            plan.add(counts.samples)


def can_count_samples(counts: RowCounts, plan: Plan | StateTable) -> bool:
    """Whether there are samples, and to count them costs little."""
    is_there = all(column in plan.schema for column in counts.measure.table.sample)
    return is_there and plan.can_answer(counts.samples)


def _by_target(metric: Node, target: str = "") -> Iterator[tuple[str, Planned]]:
    """The measures that a plan works out for a metric, each with the target whose rows alone it reads."""
    if isinstance(metric, Planned):
        yield target, metric
    elif isinstance(metric, EachTarget):
        for name, part in metric.of_rows.items():
            yield from _by_target(part, f"{target}target {name!r}: ")
    else:
        for part in metric.parts:
            yield from _by_target(part, target)


def names_of_parts(metric: Node, roles: Table) -> dict[tuple[Any, ...], str]:
    """How a reason begins that is of one part of a metric: with its name, where there are several."""
    parts = {part.key: (target, part) for target, part in _by_target(metric)}
    texts = {key: f"{target}{part.output_name}: " for key, (target, part) in parts.items()}
    shown = list(texts.values())
    for key, (target, part) in parts.items():
        alone = sum(other == target for other, _ in parts.values()) == 1
        if alone:
            texts[key] = target if len(parts) > 1 else ""
        elif shown.count(texts[key]) > 1 and isinstance(part, Measure):
            texts[key] = f"{target}{part.call}{part.suffix(roles)}: "
    return texts


def with_count(before: str, count: pl.Expr, after: str = "") -> pl.Expr:
    """A text with a number in it. The texts may hold braces, as the repr of a mapping does."""
    return pl.lit(before) + count.cast(pl.String) + pl.lit(after)


def least_or_nan(counts: Iterable[pl.Expr]) -> pl.Expr:
    """The least of them; NaN where one is, which Polars would pass over."""
    parts = list(counts)
    is_nan = pl.any_horizontal(part.is_nan() for part in parts)
    return pl.when(is_nan).then(float("nan")).otherwise(pl.min_horizontal(parts))


def sum_of_known(counts: Iterable[pl.Expr]) -> pl.Expr:
    """The sum of those that are not null; null where all are."""
    parts = list(counts)
    return pl.when(pl.any_horizontal(part.is_not_null() for part in parts)).then(pl.sum_horizontal(parts))


def check_samples(measures: Iterable[Measure], schema: pl.Schema) -> None:
    """Refuse to count samples where there are none."""
    for measure in measures:
        try:
            check_columns(measure.table.sample, schema, what="sample column")
        except ColumnError as error:
            raise ColumnError(f"min_samples counts samples: {error}") from None
