"""Bins of a state: which curves it holds, and what to make it with where it holds none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from polars_mlmetrics.data.door import type_of
from polars_mlmetrics.data.roles import Bound
from polars_mlmetrics.errors import ParameterError, StateError
from polars_mlmetrics.formula.curve import Bins, Cells, Grid
from polars_mlmetrics.formula.declaration import CATALOGUE
from polars_mlmetrics.formula.declare import make
from polars_mlmetrics.formula.measure import Measure, of_rows_of
from polars_mlmetrics.query.query import Query
from polars_mlmetrics.query.question import Question
from polars_mlmetrics.query.source import warn_of_many_rows
from polars_mlmetrics.query.written import is_same, metrics_of

DEFAULT_BINS = {"calibration": 15, "scores": 20}
"""How many bins of equal width a log has, by the kind of curve."""

ENOUGH = 4096
"""How many cells are proposed where a state has none."""

BYTES_A_ROW = 120
"""Bytes that a row takes, about, while every score is a threshold."""

HOLDING = {"calibration": ("calibration_error", "brier_resolution"), "scores": ("brier_resolution",)}
"""The metrics that hold what a curve tells of a bin: its rows and the true ones, for calibration their scores too."""


def check_has_bins(
    caller: str, passes: Any, bins: Bins, question: Question, metric: str = "", bytes_a_row: int = BYTES_A_ROW
) -> None:
    """Refuse passes over a log for a curve without bins, which may be those of a metric; warn of too many rows."""
    if bins is not None or question.is_of_state:
        return
    shown = f"{metric}(..., bins={ENOUGH})" if metric else f"bins={ENOUGH}"
    if passes is not None:
        raise ParameterError(
            f"{caller}: passes= needs bins=, such as {shown}: without it, all rows are sorted at once."
        )
    warn_of_many_rows(
        question.query, bytes_a_row, f"{caller} puts all rows in order", f"Pass {shown} for a fixed grid."
    )


def cells_of(
    question: Question, like: Measure, bins: Bins, grid: Grid | None = None, *, by_label: bool = False
) -> Cells:
    """The cells of a curve of a measure's rows: of a log those that are wanted, of a state such as it holds."""
    if not question.is_of_state and bins is None:
        return Cells()
    score = type_of(like.table.score, question.query.schema)
    if not question.is_of_state:
        return Cells(bins, grid or "logit", score)
    for parameters in (measure.parameters for measure in _measures_of_state(question)):
        if parameters.get("bins") is not None and "grid" in parameters:
            cells = Cells(parameters["bins"], parameters["grid"], score)
            is_wanted = bins is None or (cells.bins == bins and grid in (None, cells.grid))
            if is_wanted and _can_answer(question, of_rows_of(cells.in_runs(), like), by_label=by_label):
                return cells
    lacking: dict[str, Any] = {"bins": bins or ENOUGH}
    lacking |= {} if bins is None or grid is None else {"grid": grid}
    lacking |= {"average": "macro"} if by_label else {}
    what = "no curve" + (" by label" if by_label else "") + ("" if bins is None else f" with bins={bins}")
    return _refuse(what, [_shown(question.query, "roc_auc", lacking, like)])


def number_of_bins(question: Question, like: Measure, kind: str, bins: int | None) -> int:
    """How many bins of equal width a curve has: of a state those that it holds."""
    default, holding = DEFAULT_BINS[kind], HOLDING[kind]
    if not question.is_of_state:
        return default if bins is None else bins
    stored = [m.parameters["bins"] for m in _measures_of_state(question) if m.declaration.name in holding]
    counts = [*stored, default] if bins is None else [bins]

    def lacking(count: int) -> list[str]:
        return [name for name in holding if not _can_answer(question, _made(name, {"bins": count}, like))]

    complete = [count for count in counts if not lacking(count)]
    if complete:
        return complete[0]
    needed = [_shown(question.query, name, {"bins": counts[0]}, like) for name in lacking(counts[0])]
    return _refuse(f"no {kind} curve with {counts[0]} bins", needed)


def _measures_of_state(question: Question) -> Iterator[Measure]:
    """The measures that a state was made for, as far as it could write down which."""
    assert question.contents is not None
    readable = {name: text for name, text in question.contents.metrics.items() if "text" not in text}
    return (measure for metric in metrics_of(readable) for measure in metric.tree.measures())


def _can_answer(question: Question, measure: Measure, *, by_label: bool = False) -> bool:
    state, query, label = question.state, question.query, measure.table.label
    assert state is not None
    reader = query.readings.of(measure, in_runs=False, ranks=False)
    return (not by_label or state.label == label) and state.can_answer(reader, [label] * by_label, query.roles)


def _made(name: str, parameters: Mapping[str, Any], like: Measure) -> Measure:
    """A metric of the library, of the rows of a measure."""
    [measure] = make(CATALOGUE[name], (), dict(parameters)).tree.measures()
    return of_rows_of(measure, like)


def _shown(query: Query, name: str, parameters: Mapping[str, Any], like: Measure) -> str:
    """The call of a metric of the rows of a measure, without the roles that are those of the query."""
    own = Bound((role, column) for role, column in like.roles.items() if not is_same(column, query.bound.get(role)))
    return repr(replace(_made(name, parameters, like), roles=own))


def _refuse(lack: str, metrics: Sequence[str]) -> NoReturn:
    needed = " and ".join(metrics)
    raise StateError(f"this state holds {lack}: make it with {needed} among its metrics, or use the log.")
