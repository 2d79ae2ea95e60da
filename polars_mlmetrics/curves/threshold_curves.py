"""Curves along the threshold: the values of metrics at each, and the intervals of these."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import polars as pl

from polars_mlmetrics.curves.rank_curves import N_ROWS, points_of
from polars_mlmetrics.curves.stored_bins import cells_of
from polars_mlmetrics.data.expressions import same_expression
from polars_mlmetrics.engine.at_thresholds import PLACE, AtThresholds, Thresholds
from polars_mlmetrics.engine.formula_reader import FormulaReader
from polars_mlmetrics.engine.plan import Plan, ReadFormulas
from polars_mlmetrics.engine.replicates import WITHOUT
from polars_mlmetrics.engine.sources import LogSource, Source, TableSource
from polars_mlmetrics.engine.thinning import COUNTS, THRESHOLD, Thinning
from polars_mlmetrics.errors import MetricError, ParameterError, StateError
from polars_mlmetrics.formula.cells import end_of_cell
from polars_mlmetrics.formula.curve import Bins, Cells
from polars_mlmetrics.formula.measure import Measure, Node, of_rows_of
from polars_mlmetrics.formula.over_targets import OverTargets
from polars_mlmetrics.formula.parameters import as_number, identity
from polars_mlmetrics.formula.shared import Decision
from polars_mlmetrics.intervals.intervals import table_with_ends
from polars_mlmetrics.query.query import Query
from polars_mlmetrics.query.question import Question
from polars_mlmetrics.query.results import ResultColumns

COLUMNS = ResultColumns.of((pl.Float64, "threshold"), (pl.String, "metric"), (pl.Float64, "value"))
INFINITE = float("inf")

_TP, _FP, _TRUE, _OTHER = map(pl.col, COUNTS)


def rows_key(measure: Measure) -> tuple[Any, ...]:
    """A key that is equal for measures of the same rows with the same weights."""
    return (measure.table, measure.labels, identity(measure.predicates))


def decisions_of(metric: Node) -> Iterator[Measure]:
    """The measures of a metric that have a threshold."""
    return (measure for measure in metric.measures() if "threshold" in measure.parameters)


def check_has_thresholds(caller: str, metric: Node, query: Query) -> None:
    """Refuse a metric that has no curve along the threshold."""
    measures = list(decisions_of(metric))
    if not measures:
        raise MetricError(f"{caller}: {metric.output_name} has no threshold=, so its value is the same at all of them.")
    first = measures[0]
    for measure in measures:
        decision: Any = measure.parameters["threshold"]
        if as_number(decision.threshold) is None:
            raise ParameterError(
                f"{caller}: {metric.output_name} has a threshold of its own, {decision}: leave out threshold=."
            )
        same = same_expression(measure.table.score, first.table.score)
        if not same or decision.inclusive != first.parameters["threshold"].inclusive:
            raise MetricError(
                f"{caller}: the parts of {metric.output_name} are compared with thresholds in several ways. All must "
                "read one score, and have one inclusive=."
            )
    for measure in metric.measures():
        reader = query.readings.of(measure, in_runs=False, ranks=False)
        if measure.grain == "sample":
            raise MetricError(
                f"{caller}: {measure.output_name} is a value of each sample, and a curve would need all of them at "
                "every threshold. Use evaluate with a few thresholds."
            )
        if reader.run_key is not None or reader.windows or reader.looks_back:
            raise MetricError(
                f"{caller}: {measure.output_name} needs more of the rows than sums, so it has no curve along the "
                "threshold. Use evaluate with a few thresholds."
            )


def curve_of_metrics(question: Question, by: list[str], bins: Bins, n: int) -> pl.LazyFrame:
    """The values of metrics at the thresholds of each group of a grouping, metric by metric, the highest first."""
    found: dict[Any, MetricCurve] = {}
    tables = []
    for metric in question.query.metrics:
        of_rows = rows_key(next(decisions_of(metric))), is_by_label(metric)
        curve = found.setdefault(of_rows, MetricCurve.of(question, by, metric, Thinning(n), bins))
        values = curve.values(metric).sort(THRESHOLD, descending=True)
        tables.append(values.with_columns(pl.lit(metric.output_name).alias("metric")))
    return pl.concat(tables).rename({THRESHOLD: "threshold"})


def is_by_label(metric: Node) -> bool:
    """Whether it is made of values of labels."""
    return any(measure.grain == "label" for measure in metric.measures())


@dataclass(frozen=True)
class MetricCurve:
    """The thresholds of each group at which metrics of some rows are worked out, and the rows above each."""

    question: Question
    by: list[str]
    like: Measure
    """A measure of the rows of the curve."""
    cells: Cells
    points: pl.LazyFrame

    @classmethod
    def of(cls, question: Question, by: list[str], metric: Node, thinning: Thinning, bins: Bins = None) -> MetricCurve:
        """The thresholds that it takes to draw the curve of the rows of a metric."""
        like = next(decisions_of(metric))
        cells = cells_of(question, like, bins, by_label=is_by_label(metric) or like.table.label in by)
        points = points_of(question, by, like, cells, thinning)
        if cells.bins is not None and cells.grid == "float":
            # A row of -inf is predicted at no threshold, and its cell does not tell it from the others there.
            points = points.filter(pl.col(THRESHOLD).is_null() | (pl.col(THRESHOLD) > -INFINITE))
        return cls(question, by, like, cells, points.cache())

    def values(self, metric: Node) -> pl.LazyFrame:
        """The value of a metric at each threshold of a group; one row without a threshold where the group has none."""
        at = metric.each(at_threshold)
        plan = Plan(self._of_points(at) or self._of_rows(at), [*self.by, THRESHOLD], self._readings)
        groups, values = table_with_ends(plan, "value", at, self.question.confidence)
        table = groups.select(*self.by, THRESHOLD, *values).cast({"value": pl.Float64})
        # Without a threshold there is no value: NaN where the curve is broken.
        rest = self.points.filter(pl.col(THRESHOLD).is_null())
        return pl.concat([table, rest.select(*self.by, THRESHOLD, _TP.alias("value"))], how="diagonal")

    @cached_property
    def _readings(self) -> ReadFormulas:
        schema = pl.Schema({**self.question.source.schema, THRESHOLD: pl.Float64(), PLACE: pl.Int64()})
        return ReadFormulas(schema, self.question.query.roles)

    def _reader(self, measure: Measure) -> FormulaReader:
        return self._readings.of(measure, in_runs=False, ranks=False)

    def _of_points(self, metric: Node) -> Source | None:
        """The counts of the points as a source; None where a metric reads more of the rows, or is of other rows."""
        if self.question.confidence is not None or any(isinstance(node, OverTargets) for node in metric.walk()):
            return None
        columns = self._known(metric, (_TP, _FP), (_TRUE - _TP, _OTHER - _FP))
        columns |= {f"n_rows{self._reader(measure).suffix}": pl.col(N_ROWS) for measure in self._of_same_rows(metric)}
        # A group in which one of these rows is broken has no points.
        of_curve = next(decisions_of(metric)), of_rows_of(self.cells.in_runs(), self.like)
        nothing = {name for measure in of_curve for name in broken_in(self._reader(measure))}
        for measure in metric.measures():
            is_plain = measure.grain == "group" and not measure.is_from_elsewhere
            if not is_plain or not self._names_of(measure) <= columns.keys() | nothing:
                return None
        threshold = pl.col(THRESHOLD)
        # Rows of -inf are the last step of a ranking, and predicted at no threshold.
        is_twice = (threshold == -INFINITE) & (threshold.shift(1) == -INFINITE) & (_TP + _FP > 0)
        table = self.points.filter(~is_twice.fill_null(False)).filter(threshold.is_not_null())
        table = table.with_columns(column.alias(name) for name, column in columns.items())
        return TableSource(table, self._readings.schema, [*self.by, THRESHOLD])

    def _of_rows(self, metric: Node) -> Source:
        """The rows of a log, or the cells of a state, at each threshold of their group as a source."""
        thresholds = Thresholds(self.points, self.by)
        sides_of = self._sides_of_state if self.question.is_of_state else self._sides_of_log
        predicted, others = sides_of(metric, thresholds)
        return AtThresholds(predicted, others, thresholds, self._readings.schema)

    def _sides_of_log(self, metric: Node, thresholds: Thresholds) -> list[Source]:
        query, first = self.question.query, next(decisions_of(metric))
        score = first.table.score.cast(pl.Float64).fill_nan(None).fill_null(-INFINITE)
        rows = thresholds.placed(query.rows, score, inclusive=first.parameters["threshold"].inclusive).cache()
        # Every row is over the one threshold, and none over the other.
        sides = (rows.with_columns(pl.lit(bound).alias(THRESHOLD)) for bound in (-INFINITE, INFINITE))
        return [LogSource(side, query.roles.label, self._readings.schema) for side in sides]

    def _sides_of_state(self, metric: Node, thresholds: Thresholds) -> list[Source]:
        query, state = self.question.query, self.question.state
        assert state is not None
        by = self.by if self.question.confidence is None else [*self.by, WITHOUT]
        keys = list(dict.fromkeys([*by, *([self.like.table.label] if is_by_label(metric) else [])]))
        runs = Plan(state, keys, query.readings).runs(of_rows_of(self.cells.in_runs(), self.like))
        nothing = [pl.lit(0)] * 2
        sides = self._known(metric, runs.sums, nothing), self._known(metric, nothing, runs.sums)
        known = sides[0].keys()
        for measure in metric.measures():
            self._check_stored(measure, known)
        cells = thresholds.placed(
            runs.table.filter(runs.key.is_finite()), end_of_cell(runs.key, self.cells), inclusive=False
        ).cache()
        predicted, left = (
            cells.select(*keys, PLACE, *(column.alias(name) for name, column in side.items())) for side in sides
        )
        # What is not predicted anywhere counts at every threshold.
        others = {name for measure in metric.measures() for name in self._names_of(measure)} - known
        left = pl.concat([left, state.at(by, others)], how="diagonal")
        return [TableSource(side, self._readings.schema) for side in (predicted, left)]

    def _known(self, metric: Node, predicted: Sequence[pl.Expr], left: Sequence[pl.Expr]) -> dict[str, pl.Expr]:
        """The statistics of a metric that follow from total weights, by name.

        Weights are those of true rows and of others, predicted (of a score greater than the threshold) or not.
        """
        (tp, fp), (fn, tn) = predicted, left
        of_rows = {"positives": tp + fn, "negatives": fp + tn, "rows": (tp + fn) + (fp + tn)}
        of_decision = {
            "true_positives": tp,
            "false_positives": fp,
            "false_negatives": fn,
            "true_negatives": tn,
            "predicted": tp + fp,
        }
        known: dict[str, pl.Expr] = {}
        for measure in self._of_same_rows(metric):
            suffix, decision = self._reader(measure).suffix, measure.parameters.get("threshold")
            known |= {name + suffix: statistic for name, statistic in of_rows.items()}
            if decision is not None and not decision.inclusive:
                known |= {f"{name}@{decision}{suffix}": statistic for name, statistic in of_decision.items()}
        return known

    def _of_same_rows(self, metric: Node) -> list[Measure]:
        """The measures of a metric that are of the rows of the curve."""
        return [measure for measure in metric.measures() if rows_key(measure) == rows_key(self.like)]

    def _names_of(self, measure: Measure) -> set[str]:
        return {statistic.name for statistic in self._reader(measure).statistics}

    def _check_stored(self, measure: Measure, known: Collection[str]) -> None:
        """Refuse a measure that reads more of the rows than the state holds."""
        reader = self._reader(measure)
        others = self._names_of(measure) - {*known, f"n_rows{reader.suffix}"}
        if "threshold" not in measure.parameters:
            if others or measure.is_from_elsewhere:
                self.question.source.check(reader, self.by, self.question.query.roles)
        elif measure.is_from_elsewhere or others - broken_in(reader):
            raise StateError(
                f"{measure.output_name} {self._more(measure)}, and the bins of a state do not tell that: use the log."
            )

    def _more(self, measure: Measure) -> str:
        """The feature of a measure that cells cannot answer, in words."""
        if measure.parameters["threshold"].inclusive:
            return "predicts a score that is equal to the threshold"
        if rows_key(measure) != rows_key(self.like):
            return "is of other rows than another part of the metric"
        return "reads more of a row than its truth and whether it is predicted"


def at_threshold(measure: Measure) -> Measure:
    """A measure whose threshold is a column, where it has one."""
    decision = measure.parameters.get("threshold")
    if not isinstance(decision, Decision):
        return measure
    at = replace(decision, threshold=pl.col(THRESHOLD))
    return replace(measure, parameters={**measure.parameters, "threshold": at})


def broken_in(reader: FormulaReader) -> set[str]:
    """The counts of rows without which a formula has a value."""
    unknown = reader.answer.unknown
    return reader.broken if unknown is None else reader.broken | {*unknown.meta.root_names()}
