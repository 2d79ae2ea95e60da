"""Decisions on the rows of a state: what its cells tell of a metric at each threshold."""

from __future__ import annotations

import polars as pl

from polars_mlmetrics.analysis.decided import Weights, broken_in, decided_in, of_rows_of, rows_of, told_of
from polars_mlmetrics.analysis.held_bins import HeldBins
from polars_mlmetrics.engine.asked import Readings
from polars_mlmetrics.engine.at_thresholds import CellsAtThresholds, Told
from polars_mlmetrics.engine.folds import BIN
from polars_mlmetrics.engine.recorder import Recorder
from polars_mlmetrics.errors import INTERNAL, StateError
from polars_mlmetrics.formula.cells import end_of_cell
from polars_mlmetrics.formula.curve import Cells
from polars_mlmetrics.formula.measure import Measure, Node

END = f"{INTERNAL}end_of_cell"


def cells_at_thresholds(
    held: HeldBins, readings: Readings, metric: Node, cells: Cells, thresholds: pl.LazyFrame, by: list[str]
) -> CellsAtThresholds:
    """What tells a metric, whose threshold is a column, at the thresholds of each group."""
    like = next(decided_in(metric))
    of_cells = held.recorder(of_rows_of(like, cells.points()))
    told: dict[str, Told] = {}
    names: set[str] = set()
    for measure in metric.measures():
        recorder = readings.of(measure, in_runs=False, ranks=False)
        own = _told_by(of_cells, measure, recorder.suffix) if rows_of(measure) == rows_of(like) else {}
        _check_held(held, measure, recorder, own, by)
        told |= own
        names |= {statistic.name for statistic in recorder.statistics}
    ends = end_of_cell(pl.col(BIN), cells).alias(END)
    wholes = held.source.at(held.with_keys(by), names)
    return CellsAtThresholds(
        held.table(of_cells, by).with_columns(ends), wholes, held.source.schema, thresholds, by, END, told
    )


def _told_by(of_cells: Recorder, measure: Measure, suffix: str) -> dict[str, Told]:
    """What a cell tells of a measure: in the statistics of a predicted one, and in those of another."""
    true, other = (pl.col(statistic.name) for statistic in of_cells.run_rows)
    nothing = pl.lit(0)
    if_predicted = told_of(measure, suffix, Weights(true, other, nothing, nothing, true, other))
    if_left = told_of(measure, suffix, Weights(nothing, nothing, true, other, true, other))
    return {name: Told(if_predicted[name], if_left[name]) for name in if_predicted}


def _check_held(held: HeldBins, measure: Measure, recorder: Recorder, told: dict[str, Told], by: list[str]) -> None:
    """Refuse a measure that reads more of the rows than the state holds."""
    others = {statistic.name for statistic in recorder.statistics} - told.keys() - {f"n_rows{recorder.suffix}"}
    if "threshold" not in measure.parameters:
        if others or measure.is_from_elsewhere:
            held.source.check(recorder, by, held.query.roles)
    elif measure.is_from_elsewhere or others - broken_in(recorder):
        raise StateError(
            f"{measure.output_name} {_more(measure, told)}, and the bins of a state do not tell that: use the log."
        )


def _more(measure: Measure, told: dict[str, Told]) -> str:
    """What a measure does beyond what cells tell of it."""
    if measure.parameters["threshold"].inclusive:
        return "predicts a score that is equal to the threshold"
    if not told:
        return "is of other rows than another part of the metric"
    return "reads more of a row than its truth and whether it is predicted"
