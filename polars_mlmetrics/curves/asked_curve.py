"""A curve that is asked of a log or of a state: the measures that it is of, and the bins that a state holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, NoReturn

import polars as pl

from polars_mlmetrics.data.expressions import same_expression
from polars_mlmetrics.data.roles import Bound
from polars_mlmetrics.engine.contents import Contents
from polars_mlmetrics.engine.folds import BIN
from polars_mlmetrics.engine.formula_reader import FormulaReader
from polars_mlmetrics.engine.replicates import WITHOUT
from polars_mlmetrics.engine.sources import Source
from polars_mlmetrics.engine.state_rows import StateSource
from polars_mlmetrics.errors import MetricError, ParameterError, StateError
from polars_mlmetrics.formula.curve import Bins, Cells, Grid
from polars_mlmetrics.formula.declaration import CATALOGUE
from polars_mlmetrics.formula.declare import make
from polars_mlmetrics.formula.measure import Measure, Node
from polars_mlmetrics.formula.parameters import as_number, identity
from polars_mlmetrics.query.query import Query
from polars_mlmetrics.query.question import Confidence, Question
from polars_mlmetrics.query.results import ENDS
from polars_mlmetrics.query.written import is_same, metrics_of

ENOUGH = 4096
"""How many cells are proposed where a state has none."""

CALIBRATION = ("calibration_error", "brier_resolution")
"""The metrics that hold, of each bin, its rows, what they promise and what is true."""


def rows_of(measure: Measure) -> tuple[Any, ...]:
    """A key for the rows that a measure reads, and for their weights."""
    return (measure.table, measure.labels, identity(measure.predicates))


def of_rows_of(like: Measure, measure: Measure) -> Measure:
    """A measure of the rows that another one reads."""
    return replace(measure, roles=like.roles, labels=like.labels, predicates=like.predicates)


def decided_in(metric: Node) -> Iterator[Measure]:
    """The measures of a metric that have a threshold."""
    return (measure for measure in metric.measures() if "threshold" in measure.parameters)


def is_by_label(metric: Node) -> bool:
    """Whether a decision of it is told by label."""
    return any(measure.grain == "label" for measure in decided_in(metric))


def check_has_thresholds(caller: str, metric: Node, query: Query) -> None:
    """Refuse a metric that has no curve along the threshold."""
    measures = list(decided_in(metric))
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
        recorder = query.readings.of(measure, in_runs=False, ranks=False)
        if measure.grain == "sample":
            raise MetricError(
                f"{caller}: {measure.output_name} is a value of each sample, and a curve would need all of them at "
                "every threshold. Use evaluate with a few thresholds."
            )
        if recorder.run_key is not None or recorder.windows or recorder.looks_back:
            raise MetricError(
                f"{caller}: {measure.output_name} needs more of the rows than sums, so it has no curve along the "
                "threshold. Use evaluate with a few thresholds."
            )


@dataclass(frozen=True)
class HeldBins:
    """A state that is asked for a curve."""

    query: Query
    source: StateSource
    contents: Contents

    def with_keys(self, by: Sequence[str]) -> list[str]:
        """The keys of a grouping, and that of the buckets where it is asked for."""
        return [*by, WITHOUT] if WITHOUT in self.source.schema else [*by]

    def recorder(self, measure: Measure) -> FormulaReader:
        """The read formula of a measure."""
        return self.query.readings.of(measure, in_runs=False, ranks=False)

    def cells(self, like: Measure, bins: Bins, grid: Grid | None = None, *, by_label: bool = False) -> Cells:
        """The cells that it holds of the rows of a measure, of any grid where no bins are asked for."""
        for cells in self._cells():
            is_asked = bins is None or (cells.bins == bins and grid in (None, cells.grid))
            if is_asked and self._has_cells(of_rows_of(like, cells.points()), by_label=by_label):
                return cells
        parameters: dict[str, Any] = {"bins": bins or ENOUGH}
        parameters |= {} if bins is None or grid is None else {"grid": grid}
        parameters |= {"average": "macro"} if by_label else {}
        lack = "no curve" + (" by label" if by_label else "") + ("" if bins is None else f" with bins={bins}")
        return _refuse(lack, [self._shown("roc_auc", parameters, like)])

    def _cells(self) -> Iterator[Cells]:
        """The cells that it was made with."""
        for parameters in (measure.parameters for measure in self._made_for()):
            if "grid" in parameters and parameters["bins"] is not None:
                yield Cells(parameters["bins"], parameters["grid"])

    def bins(self, like: Measure, bins: int | None, usual: int) -> int:
        """How many bins of calibration it holds; an error where it holds none."""
        held = [m.parameters["bins"] for m in self._made_for() if m.declaration.name in CALIBRATION]
        tried = [bins] if bins is not None else [*held, usual]
        lacking = {count: [name for name in CALIBRATION if not self._has_bins(name, count, like)] for count in tried}
        whole = next((count for count, names in lacking.items() if not names), None)
        if whole is not None:
            return whole
        count, names = next(iter(lacking.items()))
        needed = [self._shown(name, {"bins": count}, like) for name in names]
        return _refuse(f"no calibration curve with {count} bins", needed)

    def table(self, recorder: FormulaReader, by: Sequence[str]) -> pl.LazyFrame:
        """One row for each bin of a formula in each group (and label, and bucket) that has it."""
        names = [statistic.name for statistic in recorder.run_rows]
        held = self.source.at(self.with_keys(by), names)
        # The bins of other measures stand in the same column. A broken row is in none, and its group has no curve.
        own = pl.any_horizontal(pl.col(name).is_not_null() for name in names)
        return held.filter(own, pl.col(BIN).is_finite())

    def _made_for(self) -> Iterator[Measure]:
        """The measures that it was made for, as far as it could write down which."""
        readable = {name: said for name, said in self.contents.metrics.items() if "text" not in said}
        return (measure for metric in metrics_of(readable) for measure in metric.tree.measures())

    def _has_cells(self, points: Measure, *, by_label: bool) -> bool:
        label = points.table.label
        if by_label and self.source.label != label:
            return False
        return self.source.can_answer(self.recorder(points), [label] if by_label else [], self.query.roles)

    def _has_bins(self, name: str, bins: int, like: Measure) -> bool:
        [measure] = make(CATALOGUE[name], (), {"bins": bins}).tree.measures()
        return self.source.can_answer(self.recorder(of_rows_of(like, measure)), [], self.query.roles)

    def _shown(self, name: str, parameters: Mapping[str, Any], like: Measure) -> str:
        """A metric of the rows of a measure, as it is written."""
        usual = self.query.bound
        own = Bound((role, column) for role, column in like.roles.items() if not is_same(column, usual.get(role)))
        [measure] = make(CATALOGUE[name], (), dict(parameters)).tree.measures()
        return repr(replace(of_rows_of(like, measure), roles=own))


def _refuse(lack: str, metrics: Sequence[str]) -> NoReturn:
    needed = " and ".join(metrics)
    raise StateError(f"this state holds {lack}: make it with {needed} among its metrics, or use the log.")


class AskedCurve(NamedTuple):
    """A curve that is asked for."""

    query: Query
    source: Source
    confidence: Confidence | None
    held: HeldBins | None
    """The bins of a state; None of a log."""
    bins: Bins
    """How many are asked for."""

    @classmethod
    def of(cls, question: Question, bins: Bins = None) -> AskedCurve:
        """The curve that is asked for."""
        query, held = question.query, None
        if question.state is not None and question.contents is not None:
            held = HeldBins(query, question.state, question.contents)
        return cls(query, question.source, question.confidence, held, bins)

    @property
    def ends(self) -> list[str]:
        """The columns of intervals, where these are asked for."""
        return [] if self.confidence is None else ENDS.names()

    def cells(self, like: Measure, by: Sequence[str] = (), *, by_label: bool = False) -> Cells:
        """The scores of the rows of a measure in groups of these keys: of a state those that it holds."""
        if self.held is None:
            return Cells(self.bins)
        return self.held.cells(like, self.bins, by_label=by_label or like.table.label in by)
