"""Decision curves: what acting on the scores above each threshold gains, beside acting on all rows and on none."""

from __future__ import annotations

import polars as pl

from polars_mlmetrics.curves.threshold_curves import MetricCurve
from polars_mlmetrics.engine.folds import matched
from polars_mlmetrics.engine.thinning import THRESHOLD, Thinning
from polars_mlmetrics.formula.curve import EVERYWHERE, Bins
from polars_mlmetrics.formula.declaration import CATALOGUE, Declaration
from polars_mlmetrics.formula.declare import make
from polars_mlmetrics.formula.measure import Measure
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.formula.parameters import BetweenZeroAndOne
from polars_mlmetrics.formula.shared import Decision
from polars_mlmetrics.formula.unit import Unit
from polars_mlmetrics.metrics.decisions import odds_of
from polars_mlmetrics.query.question import Question
from polars_mlmetrics.query.results import ResultColumns

COLUMNS = ResultColumns.of((pl.Float64, "threshold", "net_benefit", "treat_all", "treat_none"))


def treat_all(u: Unit, *, threshold: BetweenZeroAndOne) -> pl.Expr:
    """The net benefit of acting on every row: π - (1-π)·pt/(1-pt) of the share π of true rows."""
    _ = u.probability  # the rows of net_benefit
    return u.per_row(u.positives() - u.negatives() * odds_of(u.bound(threshold)))


TREAT_ALL = Declaration(treat_all, "group", EVERYWHERE, "max")


def metrics_of_decisions() -> list[Metric]:
    """The net benefit of the scores, and that of acting on every row; the threshold stands for that of a point."""
    of_all = Measure(TREAT_ALL, {"threshold": Decision(0.5, inclusive=False)})
    return [make(CATALOGUE["net_benefit"], (0.5,), {}), Metric(of_all)]


def curve_of_decisions(question: Question, by: list[str], bins: Bins, n: int) -> pl.LazyFrame:
    """The points of every group of a grouping, the highest threshold first; acting on no row gains 0 at each."""
    of_scores, of_all = question.query.metrics
    curve = MetricCurve(question, by, of_scores, Thinning(n), bins)
    values, everyone = curve.values(of_scores), curve.values(of_all)
    table = matched(
        values.rename({"value": "net_benefit"}),
        everyone.select(*by, THRESHOLD, treat_all="value"),
        [*by, THRESHOLD],
        how="left",
    )
    has_value = pl.col("treat_all").is_finite()
    nothing = pl.when(has_value).then(0.0).otherwise("treat_all").alias("treat_none")
    return table.sort(THRESHOLD, descending=True).with_columns(nothing).rename({THRESHOLD: "threshold"})
