"""`curve`: the points of a ranking, of metrics along the threshold, of calibration, or of how scores are spread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, Literal, Unpack, get_args

import polars as pl

from polars_mlmetrics.curves import calibration_curves, decision_curves, rank_curves, threshold_curves
from polars_mlmetrics.curves.coded_groups import by_code
from polars_mlmetrics.curves.metric_thresholds import check_has_thresholds
from polars_mlmetrics.curves.stored_bins import check_has_bins
from polars_mlmetrics.data.frames import AnyFrame, Names, as_given, as_given_later, schema_of
from polars_mlmetrics.data.roles import Roles
from polars_mlmetrics.errors import ParameterError, at_callers_line, typed, unknown
from polars_mlmetrics.formula.curve import Cells
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.formula.parameters import Above, Count, check_parameter
from polars_mlmetrics.query.keys import Keys
from polars_mlmetrics.query.question import Level, Question
from polars_mlmetrics.query.results import ENDS, ResultColumns, stacked
from polars_mlmetrics.query.verb import Verb, flat

CURVE = Verb("curve", takes_states=True)

Kind = Literal["roc", "pr", "det", "gain", "threshold", "decision", "calibration", "scores"]
WITH_INTERVALS = ("threshold", "decision", "calibration")
OF_BINS = ("calibration", "scores")
"""The kinds that have bins where none are named."""

Points = Annotated[int, Above(2)]


@at_callers_line
def curve(
    frame: AnyFrame,
    kind: Kind,
    *metrics: Metric | Sequence[Metric],
    by: Keys | None = None,
    slices: Sequence[Keys] | None = None,
    points: int = 200,
    bins: int | None = None,
    ci: Level | None = None,
    cluster: Names = None,
    passes: int | Literal["auto", "files"] | None = None,
    memory: int | str | None = None,
    progress: bool = True,
    **roles: Unpack[Roles],
) -> AnyFrame:
    """The points of a curve, of every group and every slice of it: what a plot is drawn from.

    A point of "roc", "pr", "det" or "gain" is what lies above its threshold, as for any metric: at each threshold that
    is returned, `recall(threshold=...)` is the recall of the point. The first threshold is the highest score, with
    nothing above it, and the last is -inf, with all rows above it.

    A group without a curve has one row without a threshold: its values are null where it has no rows, and NaN where a
    row is broken. A group whose weights are all 0 has its points, with values that are null.

    Parameters
    ----------
    frame
        The long table: one row per sample and label. Labels are pooled, as "micro" does, and so are models:
        `by="label"` or `by="model"` gives a curve for each. It can also be a state. For "roc", "pr", "det", "gain",
        "threshold" and "decision" the state must hold a metric with bins, such as `roc_auc(bins=...)`; for
        "calibration" `calibration_error()` and `brier_resolution()`; for "scores" `brier_resolution()`.
    kind
        "roc" has the columns `fpr` and `tpr`, "pr" `recall` and `precision`, "det" `fpr` and `fnr`, "gain" `share` (of
        the rows that are above), `recall` and `lift`. Beside them stand `tp` and `fp` of the point, and `positives`,
        `negatives` and `n_rows` of the group. "threshold" has `metric` and `value`. "decision" has the `net_benefit` of
        the scores, and of acting on every row (`treat_all`) and on none (`treat_none`, which is 0): a model helps where
        it is above both. At a threshold of 0, 1 or -inf there is none. "calibration" has a row for each bin: `score`
        and `truth` are the mean score and the share of true rows, `n_rows` counts them, and `bin_low` and `bin_high`
        are the edges. "scores" says how the scores of each class are spread: of each bin, with rows or without,
        `negatives` and `positives` are the weight of its rows, and `share_of_negatives` and `share_of_positives` their
        parts of all rows of the class. These three take probabilities; another score makes its group NaN (`mlm.bins`
        as a key of `evaluate` takes any).
    *metrics
        Of "threshold" only: metrics with `threshold=`, your own too, one by one or in lists. Each is worked out at
        every threshold.
    by, slices
        As in `evaluate`.
    points
        How many points are enough. A curve of no more scores has them all. Of others some are left out: each that is
        returned is a point of the exact curve, and from one to the next tpr + fpr makes one step (of rows of one
        score) and then moves by less than 2 / (points - 1).
    bins
        Merge scores into the cells of a fixed grid, as `roc_auc(bins=...)` does: quicker for many rows. Of
        "calibration" and "scores" the number of bins of equal width, 15 and 20 if it is not given. A state has those
        that it was made with.
    ci, cluster
        The level of intervals, as in `evaluate`, of "threshold", "calibration" and "decision" (of `net_benefit`):
        `low`, `high` and `ci_flag`; and what depends on one another. Each interval is of its own point: all points at
        once lie within theirs less often, in .3 to .85 of logs.
    passes, memory, progress
        As in `evaluate`, of a log. They need `bins=`, but for "calibration" and "scores": without it, all rows are
        sorted at once.
    **roles
        Which columns are the sample, label, score, truth and weight.

    Returns
    -------
    The keys, then a row for each point, with the columns that `kind` names.

    Raises
    ------
    MetricError
        If a metric of "threshold" has no `threshold=`.
    StateError
        If the state holds no bins for this kind.

    See Also
    --------
    best_threshold : the point at which a metric is best.
    plot : the picture of a curve.

    References
    ----------
    Fawcett, "An introduction to ROC analysis", 2006. Vickers and Elkin, "Decision curve analysis", 2006.

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
    schema = schema_of(frame, CURVE.name)
    given: list[Metric] = list(flat(metrics))
    _check(kind, given, ci)
    check_parameter("curve", "points", points, Points)
    check_parameter("curve", "bins", bins, Count | None)
    # A curve without metrics is of the rows that points of it read: of probabilities, where they have cells.
    of_rows = [Metric(Cells(1 if kind in OF_BINS else bins).in_runs())]
    of_points = decision_curves.metrics_of_decisions() if kind == "decision" else given or of_rows
    question = Question.read(CURVE, frame, of_points, by, slices, ci=ci, cluster=cluster, roles=roles, schema=schema)
    if kind not in OF_BINS:
        check_has_bins("curve", passes, bins, question)
    split = question.with_passes(passes, memory, progress=progress)
    columns, _ = _planned(kind, question, bins, points)
    names = columns.names() + ([] if ci is None else ENDS.names())
    question.query.check_names(names)

    def table(question: Question) -> pl.LazyFrame:
        return stacked(question.query, _planned(kind, question, bins, points)[1], names)

    if not split.passes:
        return as_given(frame, table(question))
    return as_given_later(frame, lambda: table(split), lambda: table(question))


def _check(kind: Any, metrics: Sequence[Any], ci: Level | None) -> None:
    kinds = get_args(Kind)
    if not isinstance(kind, str) or kind not in kinds:
        raise ParameterError(unknown("kind", str(kind), kinds, of="a kind of curve"))
    if ci is not None and kind not in WITH_INTERVALS:
        raise ParameterError(
            f"a curve of kind {kind!r} has no intervals: a row of it has two values, and both vary with the samples. "
            f"Leave out {typed('ci')}, or ask for {typed('kind', 'threshold')}, where each metric has one."
        )
    if metrics and kind != "threshold":
        raise ParameterError(
            f"a curve of kind {kind!r} takes no metrics: {metrics[0]!r} is for {typed('kind', 'threshold')}."
        )
    if kind == "threshold" and not metrics:
        raise ParameterError("a curve of kind 'threshold' needs metrics: curve(log, 'threshold', mlm.f1()).")


def _planned(
    kind: str, question: Question, bins: int | None, points: int
) -> tuple[ResultColumns, Callable[[list[str]], pl.LazyFrame]]:
    """The columns of a kind, and the function that gives them for a grouping."""
    if kind == "threshold":
        for metric in question.query.metrics:
            check_has_thresholds("curve", metric, question.query)
        columns, of_grouping = threshold_curves.COLUMNS, partial(threshold_curves.curve_of_metrics, bins=bins, n=points)
        return columns, lambda by: by_code(question, by, of_grouping)
    if kind == "decision":
        columns, of_grouping = decision_curves.COLUMNS, partial(decision_curves.curve_of_decisions, bins=bins, n=points)
        return columns, lambda by: by_code(question, by, of_grouping)
    if kind == "calibration":
        return calibration_curves.COLUMNS, lambda by: calibration_curves.curve_of_calibration(question, by, bins)
    if kind == "scores":
        return calibration_curves.OF_SCORES, lambda by: calibration_curves.curve_of_scores(question, by, bins)
    of_grouping = partial(rank_curves.curve_of_kind, kind=kind, bins=bins, n=points)
    return rank_curves.columns_of(kind), lambda by: by_code(question, by, of_grouping)
