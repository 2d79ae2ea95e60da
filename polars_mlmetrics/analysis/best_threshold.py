"""`best_threshold`: the threshold at which a metric is best."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Unpack

import polars as pl

from polars_mlmetrics.curves.asked_curve import AskedCurve, check_has_thresholds
from polars_mlmetrics.curves.rank_curves import points_of
from polars_mlmetrics.curves.threshold_curves import Tried, values_at
from polars_mlmetrics.data.door import check_columns
from polars_mlmetrics.data.expressions import is_row_wise
from polars_mlmetrics.data.frames import AnyFrame, as_given
from polars_mlmetrics.data.roles import Roles, checked_roles
from polars_mlmetrics.engine.contents import Contents
from polars_mlmetrics.engine.thinning import Thinning
from polars_mlmetrics.errors import INTERNAL, MetricError, ParameterError, at_callers_line
from polars_mlmetrics.formula.arithmetic import ROUNDING
from polars_mlmetrics.formula.curve import Cells, Curve
from polars_mlmetrics.formula.declaration import CATALOGUE
from polars_mlmetrics.formula.measure import Measure, Node
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.formula.parameters import check_parameter
from polars_mlmetrics.formula.tree import without_name
from polars_mlmetrics.metrics.separation import OPERATING
from polars_mlmetrics.query.query import KeyColumn, Keys, check_names, listed
from polars_mlmetrics.query.question import Question
from polars_mlmetrics.query.results import ResultColumns
from polars_mlmetrics.query.verb import Verb

BEST_THRESHOLD = Verb("best_threshold", takes_states=True, takes_several=False, needs_best=True)

COLUMNS = ResultColumns.of((pl.Float64, "threshold", "value"), (pl.Int64, "n_rows"))
ALL_POINTS = 2**53
ALL = f"{INTERNAL}all"


@at_callers_line
def best_threshold(
    frame: AnyFrame,
    metric: Metric,
    per: Literal["label"] | None = None,
    by: Keys | None = None,
    where: pl.Expr | None = None,
    **roles: Unpack[Roles],
) -> AnyFrame:
    """The threshold at which a metric is best, of every group, and its value there.

    Every score of a group is tried, and -inf, which predicts all. Of thresholds that are equally good the highest is
    taken. A group in which no threshold has a value has none: `threshold` is null. So it is where a row of the group is
    broken (a NaN score, a truth of 2): the value is NaN then, also if an average over labels leaves that row out.

    A threshold that was chosen on some rows looks a little too good on these. Choose it on one part of the log with
    `where`, and evaluate it on the other.

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
    **roles
        Which columns are the sample, label, score, truth and weight.

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
    BEST_THRESHOLD.is_of_state(frame)
    BEST_THRESHOLD.read_metrics([metric])
    check_parameter("best_threshold", "per", per, Literal["label"] | None)
    asked = _asked(_chosen(frame, where), metric, per, by, roles)
    keys: list[KeyColumn] = _keys(asked, per)
    check_names([*(key.name for key in keys), *COLUMNS])
    groups = [key.column for key in keys]
    table = _best_of(asked, groups, asked.query.metrics[0])
    named = [pl.col(key.column).alias(key.name) for key in keys]
    if per:
        table = table.filter(pl.col(groups[-1]).is_not_null())
    return as_given(frame, (table.sort(groups) if groups else table).select(*named, *COLUMNS))


def _asked(frame: Any, metric: Metric, per: str | None, by: Keys | None, roles: Mapping[str, Any]) -> AskedCurve:
    """Read the question; with per="label" the label of a log becomes a by column."""
    if per is not None and not BEST_THRESHOLD.is_of_state(frame):
        by = [*listed(by), checked_roles(roles).table.label]
    return AskedCurve.of(Question.read(BEST_THRESHOLD, frame, [metric], by, roles=roles))


def _keys(asked: AskedCurve, per: str | None) -> list[KeyColumn]:
    """The keys of the groups. A state has its labels beside its by columns."""
    label = asked.query.roles.label
    return [*asked.query.by, *([KeyColumn(label, label)] if per and asked.held is not None else [])]


def _chosen(frame: Any, where: Any) -> Any:
    """The rows to choose on: of a state those of some of its groups."""
    if where is None:
        return frame
    if not isinstance(where, pl.Expr) or not is_row_wise(where):
        raise ParameterError(f"best_threshold: where takes a condition that is computed row by row, not {where}.")
    schema = frame.lazy().collect_schema()
    if BEST_THRESHOLD.is_of_state(frame):
        by = {name: schema[name] for name in Contents.of(schema).by}
        check_columns(where.meta.root_names(), by, of="a by column of the state")
        return frame.filter(where)
    check_columns(where.meta.root_names(), schema)
    return frame.filter(where)


class Tries(NamedTuple):
    """The thresholds that are tried, each with its value; one row without a threshold for a group that has none."""

    points: pl.LazyFrame
    values: pl.LazyFrame


def _best_of(asked: AskedCurve, by: list[str], metric: Node) -> pl.LazyFrame:
    candidates = _operating(asked, by, metric) or _decided(asked, by, metric)
    keys, value, best = [*by, ALL], pl.col("value"), metric.best
    values = candidates.values.select(*by, pl.lit(0).alias(ALL), "threshold", value.cast(pl.Float64))
    groups = candidates.points.select(*by, pl.lit(0).alias(ALL), "n_rows").unique()
    end = value.max() if best == "max" else value.min()
    ends = values.group_by(keys).agg(end.alias(f"{INTERNAL}end"), value.is_nan().any().alias(f"{INTERNAL}broken"))
    held = values.join(ends, on=keys, nulls_equal=True)
    at_end = pl.col(f"{INTERNAL}end")
    # What differs by rounding alone is equally good.
    as_good = at_end.is_finite() & ((value - at_end).abs() <= ROUNDING * at_end.abs())
    chosen = held.filter(as_good | (value == at_end), ~pl.col(f"{INTERNAL}broken")).group_by(keys)
    found = chosen.agg(pl.col("threshold").max(), value.sort_by("threshold").last())
    table = groups.join(found, on=keys, how="left", nulls_equal=True)
    table = table.join(ends.select(*keys, f"{INTERNAL}broken"), on=keys, how="left", nulls_equal=True)
    broken = pl.col(f"{INTERNAL}broken").fill_null(False)
    return table.with_columns(pl.when(broken).then(pl.lit(float("nan"))).otherwise(value).alias("value"))


def _decided(asked: AskedCurve, by: list[str], metric: Node) -> Tries:
    """The values of a metric at every score of a group."""
    check_has_thresholds("best_threshold", metric, asked.query)
    tried = Tried.of(asked, by, metric, Thinning(ALL_POINTS))
    return Tries(tried.points, values_at(asked, tried, by, metric))


def _operating(asked: AskedCurve, by: list[str], metric: Node) -> Tries | None:
    """The points that a metric may be the value of; None where it is no such metric."""
    measure = without_name(metric)
    if not isinstance(measure, Measure) or measure.declaration is not CATALOGUE.get(measure.declaration.name):
        return None
    if measure.declaration.name not in OPERATING:
        return None
    if measure.grain != "group":
        raise MetricError(
            f"best_threshold: {measure.output_name} is an average of several points of curves. Leave out average=, and "
            "use per='label' for a threshold for each label."
        )
    cells = Cells(measure.parameters["bins"], measure.parameters["grid"])
    if asked.held is not None:
        cells = asked.held.cells(measure, *cells, by_label=measure.table.label in by)
    points = points_of(asked, by, measure, cells, Thinning(ALL_POINTS)).cache()
    return Tries(points, points.with_columns(_worth(measure).alias("value")))


def _worth(measure: Measure) -> pl.Expr:
    """The value at a point: 0 where nothing is predicted, and null where the condition does not hold."""
    upto, totals = [pl.col(name) for name in ("tp", "fp")], [pl.col(name) for name in ("positives", "negatives")]
    curve = Curve(pl.col("threshold"), *upto, *upto, *totals)
    bound = [value for name, value in measure.parameters.items() if name not in ("bins", "grid", "average")]
    worth = OPERATING[measure.declaration.name](curve, *bound)
    is_nothing = upto[0] + upto[1] == 0
    worth = pl.when(is_nothing).then(pl.lit(0.0)).otherwise(worth)
    return pl.when(totals[0].is_nan()).then(totals[0]).when((totals[0] > 0) & (totals[1] > 0)).then(worth)
