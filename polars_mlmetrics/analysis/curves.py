"""`curve`: the points of a ranking, of metrics along the threshold, or of calibration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, Unpack, get_args

import polars as pl

from polars_mlmetrics.analysis import calibration_curves, rank_curves, threshold_curves
from polars_mlmetrics.analysis.confidence import Confidence, Level, check_level
from polars_mlmetrics.analysis.question import check_no_roles, of_log, of_state
from polars_mlmetrics.analysis.rank_curves import Cells
from polars_mlmetrics.data.frames import AnyFrame, Frame, as_given, check_frame
from polars_mlmetrics.data.roles import Roles
from polars_mlmetrics.engine.replicates import WITHOUT
from polars_mlmetrics.engine.sources import Source
from polars_mlmetrics.engine.state import Contents, is_state
from polars_mlmetrics.errors import ParameterError, StateError, at_callers_line, unknown
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.formula.parameters import Above, Count, check_parameter
from polars_mlmetrics.query.groupings import stacked
from polars_mlmetrics.query.query import Keys, Query, check_is_metric
from polars_mlmetrics.query.source import slices_of, source_of
from polars_mlmetrics.query.written import metrics_of

Kind = Literal["roc", "pr", "det", "gain", "threshold", "calibration"]
WITH_INTERVALS = ("threshold", "calibration")
Points = Annotated[int, Above(2)]


@at_callers_line
def curve(
    frame: AnyFrame,
    kind: Kind,
    *metrics: Metric,
    by: Keys | None = None,
    slices: Sequence[Keys] | None = None,
    points: int = 200,
    bins: int | None = None,
    ci: Level | None = None,
    **roles: Unpack[Roles],
) -> AnyFrame:
    """The points of a curve, of every group and every slice of it: what a plot is drawn from.

    A point of "roc", "pr", "det" or "gain" is what lies above its threshold, as for any metric: at each threshold that
    is returned, `recall(threshold=...)` is the recall of the point. The first threshold is the highest score, with
    nothing above it, and the last is -inf, with all rows above it.

    A group without a curve has one row without a threshold: its values are null where it has no rows, and NaN where a
    row is broken.

    Parameters
    ----------
    frame
        The long table: one row per sample and label. Labels are pooled, as "micro" does; `by="label"` gives a curve for
        each. A state will do for "roc", "pr", "det" and "gain", if it holds a metric with bins.
    kind
        "roc" has the columns `fpr` and `tpr`, "pr" `recall` and `precision`, "det" `fpr` and `fnr`, "gain" `share` (of
        the rows that are above), `recall` and `lift`. Beside them stand `tp` and `fp` of the point, and `positives`,
        `negatives` and `n_rows` of the group. "threshold" has `metric` and `value`. "calibration" has a row for each
        bin: `score` and `truth` are the mean score and the share of true rows, `n_rows` counts them, and
        `bin_low` and `bin_high` are the edges.
    *metrics
        Of "threshold" only: metrics with `threshold=`, your own too. Each is worked out at every threshold.
    by, slices
        As in `evaluate`.
    points
        How many points are enough. A curve of no more scores has them all. Of others some are left out: each that is
        returned is a point of the exact curve, and from one to the next tpr + fpr makes one step (of rows of one
        score) and then moves by less than 2 / (points - 1).
    bins
        Merge scores into the cells of a fixed grid, as `roc_auc(bins=...)` does: quicker for many rows. Of
        "calibration" the number of bins of equal width, 15 if it is not given.
    ci
        The level of intervals, as in `evaluate`, of "threshold" and "calibration": `low` and `high`.
    **roles
        Which columns are the sample, label, score, truth and weight.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> log = pl.DataFrame({"score": [0.9, 0.8, 0.3, 0.1], "truth": [1, 0, 1, 0]})
    >>> mlm.curve(log, "roc").select("threshold", "fpr", "tpr")
    shape: (5, 3)
    ┌───────────┬─────┬─────┐
    │ threshold ┆ fpr ┆ tpr │
    │ ---       ┆ --- ┆ --- │
    │ f64       ┆ f64 ┆ f64 │
    ╞═══════════╪═════╪═════╡
    │ 0.9       ┆ 0.0 ┆ 0.0 │
    │ 0.8       ┆ 0.0 ┆ 0.5 │
    │ 0.3       ┆ 0.5 ┆ 0.5 │
    │ 0.1       ┆ 0.5 ┆ 1.0 │
    │ -inf      ┆ 1.0 ┆ 1.0 │
    └───────────┴─────┴─────┘
    """
    check_frame(frame)
    _check(kind, metrics, ci)
    check_parameter("curve", "points", points, Points)
    check_parameter("curve", "bins", bins, Count | None)
    query, source, cells, confidence = _asked(frame, kind, metrics, by, slices, bins, ci, roles)
    columns, of_grouping = _planned(kind, query, source, cells, points, confidence)
    query.check_names(columns)
    return as_given(frame, stacked(query, of_grouping, columns, in_order=True))


def _check(kind: Any, metrics: Sequence[Any], ci: Level | None) -> None:
    kinds = get_args(Kind)
    if kind not in kinds:
        raise ParameterError(unknown("kind", str(kind), kinds, of="a kind of curve"))
    check_level(ci, None)
    if ci is not None and kind not in WITH_INTERVALS:
        raise ParameterError(
            f"a curve of kind {kind!r} has no intervals: on other rows a threshold moves in both directions. "
            "Leave out ci=, or ask for kind='threshold', where each metric has one."
        )
    if metrics and kind != "threshold":
        raise ParameterError(f"a curve of kind {kind!r} takes no metrics: {metrics[0]!r} is for kind='threshold'.")
    if kind == "threshold" and not metrics:
        raise ParameterError("a curve of kind 'threshold' needs metrics: curve(log, 'threshold', mlm.f1()).")
    for metric in metrics:
        check_is_metric("curve", metric)


class Asked(NamedTuple):
    """A curve that is asked for: the query, what it is answered from, and which scores and intervals are wanted."""

    query: Query
    source: Source
    cells: Cells
    confidence: Confidence | None


def _asked(
    frame: Frame,
    kind: str,
    metrics: Sequence[Metric],
    by: Keys | None,
    slices: Sequence[Keys] | None,
    bins: int | None,
    ci: Level | None,
    roles: Mapping[str, Any],
) -> Asked:
    schema = frame.lazy().collect_schema()
    if is_state(schema):
        if kind in WITH_INTERVALS:
            raise StateError(f"a curve of kind {kind!r} needs the rows of the log, and this is a state.")
        check_no_roles(None, roles)
        cells = _held_by(Contents.of(schema), bins)
        query, rows, _ = of_state(frame, [Metric(cells.points())], by, slices, None)
        return Asked(query, rows, cells, None)
    cells = Cells(1 if kind == "calibration" else bins)
    asked = metrics if kind == "threshold" else [Metric(cells.points())]
    query, confidence = of_log(frame, asked, by, slices, ci, None, roles)
    for metric in query.metrics if kind == "threshold" else ():
        threshold_curves.check_has_thresholds("curve", metric, query)
    more = [] if confidence is None else [WITHOUT]
    return Asked(query, slices_of(query, source_of(query, None), more), Cells(bins), confidence)


def _planned(
    kind: str, query: Query, source: Source, cells: Cells, n: int, confidence: Confidence | None
) -> tuple[list[str], Callable[[list[str]], pl.LazyFrame]]:
    """The columns of a kind, and what gives them for a grouping."""
    has_ends = confidence is not None
    if kind == "threshold":
        return threshold_curves.names_of(ci=has_ends), lambda by: threshold_curves.curve_of_metrics(
            query, source, by, cells, n, confidence
        )
    if kind == "calibration":
        bins = cells.bins or calibration_curves.DEFAULT_BINS
        return calibration_curves.names_of(ci=has_ends), lambda by: calibration_curves.curve_of_calibration(
            query, source, by, bins, confidence
        )
    return rank_curves.names_of(kind), lambda by: rank_curves.curve_of_kind(query, source, by, kind, cells, n)


def _held_by(contents: Contents, bins: int | None) -> Cells:
    """The cells that a state holds."""
    for metric in metrics_of(contents.metrics):
        for measure in metric.tree.measures():
            held = measure.parameters.get("bins")
            if "grid" in measure.parameters and held is not None and bins in (None, held):
                return Cells(held, measure.parameters["grid"])
    asked = "" if bins is None else f" with bins={bins}"
    raise StateError(
        f"this state holds no curve{asked}: make it for a metric with bins, such as roc_auc(bins=4096), and its curves "
        "can be had from it."
    )
