"""`best_threshold`: the threshold at which a metric is best."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal, TypeGuard, Unpack

import polars as pl

from polars_mlmetrics.curves.coded_groups import by_code
from polars_mlmetrics.curves.elsewhere import value_elsewhere
from polars_mlmetrics.curves.metric_thresholds import check_has_thresholds, decisions_of, is_by_label
from polars_mlmetrics.curves.rank_curves import BROKEN, N_ROWS, points_of
from polars_mlmetrics.curves.stored_bins import BYTES_A_ROW, cells_of, check_has_bins
from polars_mlmetrics.curves.threshold_curves import MetricCurve
from polars_mlmetrics.data.door import check_columns
from polars_mlmetrics.data.expressions import is_row_wise
from polars_mlmetrics.data.frames import AnyFrame, as_given, as_given_later, schema_of
from polars_mlmetrics.data.roles import Roles, checked_roles
from polars_mlmetrics.engine.buckets import BUCKETS
from polars_mlmetrics.engine.contents import Contents
from polars_mlmetrics.engine.folds import fold, matched
from polars_mlmetrics.engine.thinning import COUNTS, EVERY, THRESHOLD
from polars_mlmetrics.errors import INTERNAL, MetricError, ParameterError, at_callers_line
from polars_mlmetrics.formula.arithmetic import ROUNDING
from polars_mlmetrics.formula.averages import Best
from polars_mlmetrics.formula.curve import Curve
from polars_mlmetrics.formula.declaration import CATALOGUE
from polars_mlmetrics.formula.measure import Measure, Node
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.formula.parameters import Above, Count, check_parameter
from polars_mlmetrics.formula.tree import without_name
from polars_mlmetrics.metrics.separation import OPERATING
from polars_mlmetrics.query.keys import KeyColumn, Keys, listed
from polars_mlmetrics.query.query import Query
from polars_mlmetrics.query.question import Question
from polars_mlmetrics.query.results import ResultColumns, stacked
from polars_mlmetrics.query.verb import Verb

BEST_THRESHOLD = Verb("best_threshold", takes_states=True, takes_several=False)

COLUMNS = ResultColumns.of((pl.Float64, "threshold", "value"), (pl.Int64, "n_rows"))
ELSEWHERE = ResultColumns.of((pl.Float64, "value_elsewhere"))
"""The column that `folds=` adds."""

Folds = Annotated[int, Above(2, at_most=BUCKETS)]
BEST = f"{INTERNAL}best"
BYTES_OF_LABELS = 2_800
"""Bytes that a row takes, about, where an average over ten labels is worked out at the score of each row."""


@at_callers_line
def best_threshold(
    frame: AnyFrame,
    metric: Metric,
    per: Literal["label"] | None = None,
    by: Keys | None = None,
    where: pl.Expr | None = None,
    folds: int | None = None,
    bins: int | None = None,
    passes: int | Literal["auto", "files"] | None = None,
    memory: int | str | None = None,
    progress: bool = True,
    best: Best | None = None,
    **roles: Unpack[Roles],
) -> AnyFrame:
    """The threshold at which a metric is best, of every group, and its value there.

    Every score of a group is tried, and -inf, which predicts all. Of thresholds that are equally good the highest is
    taken. A group in which no threshold has a value has none: `threshold` is null. So it is where a row of the group is
    broken (a NaN score, a truth of 2): the value is NaN then, also if an average over labels leaves that row out.

    A threshold that was chosen on some rows looks too good on these, and the more so the fewer they are. `folds` adds
    the value that it has elsewhere. Or choose it on one part of the log with `where`, and evaluate it on the other.

    Parameters
    ----------
    frame
        The long table: one row per sample and label. Or a state that holds a metric with bins, such as
        `roc_auc(bins=4096)`: then the scores that are tried are the highest of each cell.
    metric
        A metric with `threshold=`, your own too. Or one that is the value of one point of the curve, and then the
        threshold is that of the point: `recall_at_precision`, `precision_at_recall`, `recall_at_fpr`, `ks`.
    per
        "label" gives a threshold for each label. The columns label and threshold of the result are what `threshold=`
        of a metric takes.
    by
        The columns (or row-wise expressions) whose every combination is a group. Models that are not among them share
        one threshold.
    where
        A condition: the rows to choose on. Of a state it takes the by columns.
    folds
        Into how many folds (2 to 64) the samples are cut, by a hash of their ids, for `value_elsewhere`. A metric that
        is the value of one point takes none. Of a state these are made of its buckets. Five folds take about eight
        times as long as none, with `bins=` about three times.
    bins
        Try the edges of so many cells of a fixed grid, as in `curve`, and not every score: quicker for many rows, whose
        scores must be probabilities. A metric that is the value of one point has `bins=` of its own. A state has those
        that it was made with.
    passes, memory, progress
        As in `evaluate`, of a log. They need `bins=`: without it, all rows are sorted at once.
    best
        Which end of the values is the best one, "max" or "min". None takes that of the metric; one that declares none,
        such as `predicted_rate`, needs it.
    **roles
        Which columns are the sample, label, score, truth and weight.

    Returns
    -------
    One row a group: the `threshold`; the `value` of the metric there, which is that of the rows that the threshold was
    chosen on; and how many of them have a score (`n_rows`). With `folds`, also `value_elsewhere`: for each fold the
    threshold is chosen on the other folds, the counts of the fold at this threshold are added to those of the others,
    and the value is that of the sums. It is null where the other folds of a fold have no threshold.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> log = pl.DataFrame({"label": ["x", "x", "x", "y", "y", "y"], "score": [0.9, 0.4, 0.1, 0.8, 0.7, 0.2],
    ...                     "truth": [1, 1, 0, 1, 0, 0]})
    >>> best = mlm.best_threshold(log, mlm.f1(), per="label")
    >>> best
    shape: (2, 4)
    ┌───────┬───────────┬───────┬────────┐
    │ label ┆ threshold ┆ value ┆ n_rows │
    │ ---   ┆ ---       ┆ ---   ┆ ---    │
    │ str   ┆ f64       ┆ f64   ┆ i64    │
    ╞═══════╪═══════════╪═══════╪════════╡
    │ x     ┆ 0.1       ┆ 1.0   ┆ 3      │
    │ y     ┆ 0.7       ┆ 1.0   ┆ 3      │
    └───────┴───────────┴───────┴────────┘
    >>> log.select(mlm.f1(threshold=best.select("label", "threshold"))).item()
    1.0
    """
    schema = schema_of(frame, BEST_THRESHOLD.name)
    is_of_state = BEST_THRESHOLD.reads_state(schema)
    check_parameter("best_threshold", "per", per, Literal["label"] | None)
    check_parameter("best_threshold", "folds", folds, Folds | None)
    labels: list[str] = [] if per is None or is_of_state else [checked_roles(roles).table.label]
    chosen = _chosen(frame, where, schema, is_of_state=is_of_state)
    question = Question.read(BEST_THRESHOLD, chosen, [metric], [*listed(by), *labels], roles=roles, schema=schema)
    query: Query = question.query
    end = _best_end(metric, best)
    if per and is_of_state:
        # A state has its labels beside its by columns.
        query = replace(query, by=[*query.by, KeyColumn(query.roles.label, query.roles.label)])
    names = COLUMNS.names() + ([] if folds is None else ELSEWHERE.names())
    query.check_names(names)
    [tree] = (each.each(_of_one_label) if per else each for each in query.metrics)
    _check_bins(tree, bins, passes, question)
    split = question.with_passes(passes, memory, progress=progress)

    def of_grouping(question: Question, by: list[str]) -> pl.LazyFrame:
        return _of_grouping(question, by, tree, folds, bins, end)

    def table_of(question: Question) -> pl.LazyFrame:
        table = stacked(query, lambda by: by_code(question, by, of_grouping), names)
        # Cached: a filter that reached the points would have them worked out anew for each of their readers.
        return table.cache().filter(pl.col(query.by[-1].name).is_not_null()) if per else table

    if not split.passes:
        return as_given(frame, table_of(question))
    return as_given_later(frame, lambda: table_of(split), lambda: table_of(question))


def _best_end(metric: Metric, best: Best | None) -> Best:
    """The end of the values that is best: as it is asked for, or else that of the metric."""
    check_parameter("best_threshold", "best", best, Best | None)
    end: Best | None = best or metric.best
    if end is None:
        name = metric.output_name
        raise MetricError(
            f"{name} has no worst values: neither high nor low values are always bad. Pass best='max' or best='min'."
        )
    return end


def _check_bins(metric: Node, bins: int | None, passes: Any, question: Question) -> None:
    """Refuse passes without bins, which a metric that is the value of one point has itself."""
    check_parameter("best_threshold", "bins", bins, Count | None)
    measure = without_name(metric)
    if not _is_of_one_point(measure):
        bytes_a_row = BYTES_OF_LABELS if is_by_label(measure) else BYTES_A_ROW
        check_has_bins("best_threshold", passes, bins, question, bytes_a_row=bytes_a_row)
        return
    name = measure.declaration.name
    if bins is not None:
        raise ParameterError(f"best_threshold: {name} has bins of its own: pass {name}(..., bins={bins}).")
    check_has_bins("best_threshold", passes, measure.parameters["bins"], question, name)


def _chosen(frame: Any, where: Any, schema: pl.Schema, *, is_of_state: bool) -> Any:
    """The rows to choose on: of a state those of some of its groups."""
    if where is None:
        return frame
    if not isinstance(where, pl.Expr) or not is_row_wise(where):
        raise ParameterError(f"best_threshold: where takes a condition that is computed row by row, not {where}.")
    keys = {name: schema[name] for name in Contents.of(schema).by} if is_of_state else schema
    check_columns(where.meta.root_names(), keys, of="a by column of the state" if is_of_state else "in the table")
    return frame.filter(where)


def _of_one_label(measure: Measure) -> Measure:
    """The measure of the rows of one label: their mean over labels is their value, and takes no table of labels."""
    is_mean = measure.parameters.get("average") == "macro" and measure.labels is None
    return replace(measure, parameters={**measure.parameters, "average": "micro"}) if is_mean else measure


def _of_grouping(
    question: Question, by: list[str], metric: Node, folds: int | None, bins: int | None, end: Best
) -> pl.LazyFrame:
    """One row a group: the best threshold, the value there and, with folds, the value elsewhere."""
    value = pl.col("value")
    best = _best_of(end, by, *_tried(question, by, metric, bins))
    if folds is None:
        return best

    def best_of(curve: MetricCurve, by: list[str]) -> pl.LazyFrame:
        return _best_of(end, by, curve.points, curve.values(metric))

    elsewhere = value_elsewhere(question, by, metric, folds, EVERY, best_of, bins)
    # Where a row is broken, so is the value of all that it is pooled with.
    of_folds = pl.when(value.is_nan()).then(value).otherwise("value_elsewhere").alias("value_elsewhere")
    return matched(best, elsewhere.rename({"value": "value_elsewhere"}), by, how="left").with_columns(of_folds)


def _best_of(best_end: Best, by: list[str], points: pl.LazyFrame, values: pl.LazyFrame) -> pl.LazyFrame:
    """One row a group: the highest of its best thresholds, and the value there."""
    threshold, value, best, broken = map(pl.col, (THRESHOLD, "value", BEST, BROKEN))
    end = value.max() if best_end == "max" else value.min()
    ends = fold(values, by, [end.alias(BEST), value.is_nan().any().alias(BROKEN)])
    # What differs by rounding alone is equally good.
    is_good = (value == best) | (best.is_finite() & ((value - best).abs() <= ROUNDING * best.abs()))
    good = matched(values, ends, by).filter(is_good, ~broken)
    found = fold(good, by, [threshold.max(), value.sort_by(threshold).last()])
    groups = matched(fold(points, by, [pl.col(N_ROWS).first().alias("n_rows")]), ends, by)
    table = matched(groups, found, by, how="left")
    value = pl.when(broken).then(float("nan")).otherwise(value).alias("value")
    return table.select(*by, threshold.alias("threshold"), value, "n_rows")


def _is_of_one_point(metric: Node) -> TypeGuard[Measure]:
    """Whether a metric is the value of one point of the curve."""
    return isinstance(metric, Measure) and metric.declaration in [CATALOGUE[name] for name in OPERATING]


def _tried(question: Question, by: list[str], metric: Node, bins: int | None) -> tuple[pl.LazyFrame, pl.LazyFrame]:
    """The thresholds that are tried, and the value of a metric at each."""
    measure = without_name(metric)
    if not _is_of_one_point(measure):
        check_has_thresholds("best_threshold", metric, question.query)
        _check_compares_thresholds(metric)
        curve = MetricCurve(question, by, metric, EVERY, bins)
        return curve.points, curve.values(metric)
    if measure.grain != "group":
        raise MetricError(
            f"best_threshold: {measure.output_name} is an average of several points of curves. Leave out average=, and "
            "use per='label' for a threshold for each label."
        )
    own, grid = measure.parameters["bins"], measure.parameters["grid"]
    cells = cells_of(question, measure, own, grid, by_label=measure.table.label in by)
    points = points_of(question.source, question.query, by, measure, cells, EVERY).cache()
    return points, points.select(*by, THRESHOLD, _worth(measure).alias("value"))


def _check_compares_thresholds(metric: Node) -> None:
    for each in decisions_of(metric):
        if not each.declaration.compares_thresholds:
            raise MetricError(
                f"best_threshold: {each.output_name} means something else at each threshold, so none is the best. Its "
                "values at all of them are curve(log, 'threshold', ...); cost(fp, fn) has a best one."
            )


def _worth(measure: Measure) -> pl.Expr:
    """The value at a point: 0 where nothing is predicted, and null where the condition does not hold."""
    tp, fp, positives, negatives = map(pl.col, COUNTS)
    curve = Curve(tp, fp, tp, fp, positives, negatives)
    bound = [value for name, value in measure.parameters.items() if name not in ("bins", "grid", "average")]
    worth = OPERATING[measure.declaration.name](curve, *bound)
    worth = pl.when(tp + fp == 0).then(0.0).otherwise(worth)
    return pl.when(positives.is_nan()).then(positives).otherwise(curve.of_two_classes(worth))
