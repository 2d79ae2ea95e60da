"""Metrics of how well the score separates true rows from the others, across all thresholds."""

import math
from collections.abc import Callable, Mapping
from typing import Unpack

import polars as pl

from polars_mlmetrics.formula.arithmetic import exceeds, less_log1p, ratio, ratio_of_counts, reaches, share
from polars_mlmetrics.formula.averages import Average
from polars_mlmetrics.formula.curve import Bins, Curve, Grid, curve_of
from polars_mlmetrics.formula.declaration import Influence, Placements
from polars_mlmetrics.formula.declare import metric
from polars_mlmetrics.formula.parameters import Averaged, PositiveShare, Share
from polars_mlmetrics.formula.unit import Unit


def _auc_of(unit: Placements) -> pl.Expr:
    pairs = unit.positives * unit.negatives
    return ratio(pairs - unit.lost, pairs)


def _auc_moved(bucket: Placements, unit: Placements) -> pl.Expr:
    """How far the value moves without a bucket: in the mean over true rows, and in that over the others."""
    auc = _auc_of(unit)
    of_true = bucket.positives - ratio(bucket.lost, unit.negatives) - auc * bucket.positives
    of_others = ratio(bucket.won, unit.positives) - auc * bucket.negatives
    return ratio(of_true, unit.positives - bucket.positives) + ratio(of_others, unit.negatives - bucket.negatives)


def _precision_of(unit: Placements) -> pl.Expr:
    return ratio(unit.precision, unit.positives)


def _precision_moved(bucket: Placements, unit: Placements) -> pl.Expr:
    of_rows = bucket.precision - _precision_of(unit) * bucket.positives + bucket.added
    return ratio(of_rows, unit.positives - bucket.positives)


def _distance(curve: Curve) -> pl.Expr:
    return (curve.recall - curve.fall_out).abs()


def _recall_if_precise(curve: Curve, p: float) -> pl.Expr:
    return pl.when(reaches(curve.precision, p)).then(curve.recall)


def _precision_if_found(curve: Curve, r: float) -> pl.Expr:
    return pl.when(reaches(curve.recall, r)).then(curve.precision)


def _recall_if_few_false(curve: Curve, f: float) -> pl.Expr:
    return pl.when(~exceeds(curve.fall_out, f)).then(curve.recall)


OPERATING: Mapping[str, Callable[..., pl.Expr]] = {
    "ks": _distance,
    "recall_at_precision": _recall_if_precise,
    "precision_at_recall": _precision_if_found,
    "recall_at_fpr": _recall_if_few_false,
}
"""The worth of each point of the curve, by metric: the value of the metric is the highest. A null rules a point out.
Each function takes the curve and the bound of its metric; `ks` has no bound."""


AUC = Influence(_auc_of, _auc_moved)
GINI = Influence(lambda unit: 2 * _auc_of(unit) - 1, lambda bucket, unit: 2 * _auc_moved(bucket, unit))
PRECISION = Influence(_precision_of, _precision_moved)


def _auc_coarseness(
    u: Unit, *, bins: Bins, grid: Grid, max_fpr: float | None = None, rescaled: bool = True, **_: object
) -> pl.Expr:
    """Half of the pairs that share a cell, of all pairs; of a part of the curve, what lies within that part."""
    curve = curve_of(u, bins, grid)
    tied, pairs = curve.positives * curve.negatives, curve.all_positives * curve.all_negatives
    if max_fpr is None or max_fpr == 1:
        return ratio(0.5 * tied.sum(), pairs)
    part = _part_within(curve, max_fpr)
    area = ratio((tied * part * (1 - 0.5 * part)).sum(), pairs)
    return _rescaled(area, max_fpr) if rescaled else area


def _gini_coarseness(u: Unit, *, bins: Bins, grid: Grid, **_: object) -> pl.Expr:
    return 2 * _auc_coarseness(u, bins=bins, grid=grid)


def _precision_coarseness(u: Unit, *, bins: Bins, grid: Grid, **_: object) -> pl.Expr:
    """How much better, or worse, the order inside each cell may be than all rows of the cell as one step."""
    curve = curve_of(u, bins, grid)
    upto, false_upto = curve.positives_upto, curve.negatives_upto
    best = share(upto, upto + false_upto.shift(1, fill_value=0))
    # Behind all other rows of the cell, precision rises with each true row, and ever less: so its mean is at least
    # that of its ends. Rows with weights may be as light as nothing.
    first = upto.shift(1, fill_value=0) + (0.0 if u.is_weighted else 1.0)
    lowest = pl.when(false_upto > 0).then(share(first, first + false_upto)).otherwise(1.0)
    too_low, too_high = best - curve.precision, 0.5 * (curve.precision - lowest)
    return ratio((curve.positives * pl.max_horizontal(too_low, too_high)).sum(), curve.all_positives)


@metric(range=(0, 1), best="max", undefined_when="one class only", influence=AUC, coarseness=_auc_coarseness)
def roc_auc(
    u: Unit,
    *,
    max_fpr: PositiveShare | None = None,
    rescaled: bool = True,
    bins: Bins = None,
    grid: Grid = "logit",
    average: Average = "micro",
    **options: Unpack[Averaged],
) -> pl.Expr:
    """The chance that a true row scores higher than one that is not true; a tie counts half. Exact and weighted.

    `max_fpr` takes the part of the curve up to that false positive rate, rescaled so that chance is 0.5 and the best is
    1 (McClish); with `rescaled=False` it is the area of that part itself, of at most `max_fpr`. The interval of a part
    needs `bins`.

    `bins` merges scores into the cells of a fixed grid: "logit" for probabilities, "float" for any score. The cell b of
    p_b true and n_b other rows then adds an error of at most p_b·n_b / (2·P·N). Where the sum of these exceeds half the
    width of an interval, its `ci_flag` is "coarse_bins".
    """
    if max_fpr is not None and max_fpr < 1:
        area = _partial_area(curve_of(u, bins, grid), max_fpr)
        return 0.5 + _rescaled(area - max_fpr**2 * 0.5, max_fpr) if rescaled else area
    return _auc(u, bins, grid)


def _auc(u: Unit, bins: Bins, grid: Grid) -> pl.Expr:
    if bins is None and not u.is_weighted:
        return _auc_of_ranks(u)
    curve = curve_of(u, bins, grid)
    upto = curve.positives_upto
    # Each negative of a run is below the positives above it, and level with those of its own run.
    lower_pairs = (curve.negatives * (upto + upto.shift(1, fill_value=0))).sum() * 0.5
    return ratio(lower_pairs, curve.all_positives * curve.all_negatives)


def _auc_of_ranks(u: Unit) -> pl.Expr:
    # Each pair of a true row and a higher one is counted twice, a tied pair once; twice all pairs and P² are n² - N².
    ranks = u.sum("ranks_of_positives", pl.when(u.truth).then(u.rank_and_above(u.grain)))
    rows, negatives = (count.cast(pl.UInt64) for count in (u.rows(), u.negatives()))
    in_order = 0.5 * (rows**2 - negatives**2 - ranks.cast(pl.UInt64))
    return ratio_of_counts(in_order, u.positives() * u.negatives())


def _partial_area(curve: Curve, max_fpr: float) -> pl.Expr:
    part, lower = _part_within(curve, max_fpr), curve.positives_upto.shift(1, fill_value=0)
    pairs = (part * curve.negatives * (lower + 0.5 * part * curve.positives)).sum()
    return ratio(pairs, curve.all_positives * curve.all_negatives)


def _part_within(curve: Curve, max_fpr: float) -> pl.Expr:
    """The share of each step that lies within a false positive rate."""
    # In rows, not in rates: of these a step without negatives is exactly as wide as nothing.
    limit, left = max_fpr * curve.all_negatives, curve.negatives_upto.shift(1, fill_value=0)
    return share(curve.negatives_upto.clip(upper_bound=limit) - left.clip(upper_bound=limit), curve.negatives)


def _rescaled(area: pl.Expr, max_fpr: float) -> pl.Expr:
    """An area of a part of the curve, where the best is 0.5 more than chance."""
    return 0.5 * ratio(area, pl.lit(max_fpr - max_fpr**2 * 0.5))


@metric(range=(-1, 1), best="max", undefined_when="one class only", influence=GINI, coarseness=_gini_coarseness)
def gini(
    u: Unit, *, bins: Bins = None, grid: Grid = "logit", average: Average = "micro", **options: Unpack[Averaged]
) -> pl.Expr:
    """Twice the area under the ROC curve, less 1: `2·roc_auc - 1`. A tie counts half. `bins` as in `roc_auc`."""
    return 2 * _auc(u, bins, grid) - 1


@metric(range=(0, 1), best="max", undefined_when="no positives", influence=PRECISION, coarseness=_precision_coarseness)
def average_precision(
    u: Unit, *, bins: Bins = None, grid: Grid = "logit", average: Average = "micro", **options: Unpack[Averaged]
) -> pl.Expr:
    """The area under precision against recall, as a sum of steps: Σ (R_i - R_{i-1})·P_i. Exact and weighted.

    Ties: rows of one score are one step. `bins` as in `roc_auc`: what order the rows of a cell may have, at best and at
    worst, bounds the error.
    """
    if bins is None and not u.is_weighted:
        return ratio(u.precision_at_true(u.grain), u.positives())
    curve = curve_of(u, bins, grid)
    return ratio((curve.positives * curve.precision).sum(), curve.all_positives)


@metric(range=(0, 1), best="max", undefined_when="one class only", interval="biased")
def ks(
    u: Unit, *, bins: Bins = None, grid: Grid = "logit", average: Average = "micro", **options: Unpack[Averaged]
) -> pl.Expr:
    """Kolmogorov and Smirnov's distance of the two classes: the greatest |TPR - FPR| of a threshold.

    Ties: rows of one score are one step. `bins` as in `roc_auc`.
    """
    return _distance(curve_of(u, bins, grid)).max()


@metric(range=(0, 1), best="max", undefined_when="one class only", interval="biased")
def recall_at_precision(
    u: Unit,
    p: Share,
    *,
    bins: Bins = None,
    grid: Grid = "logit",
    average: Average = "micro",
    **options: Unpack[Averaged],
) -> pl.Expr:
    """The highest recall of a threshold whose precision is at least p; 0 where none is.

    Ties: rows of one score are one step. `bins` as in `roc_auc`.
    """
    curve = curve_of(u, bins, grid)
    best = _recall_if_precise(curve, p).max()
    return curve.of_two_classes(best.fill_null(0.0))


@metric(range=(0, 1), best="max", undefined_when="one class only", interval="biased")
def precision_at_recall(
    u: Unit,
    r: Share,
    *,
    bins: Bins = None,
    grid: Grid = "logit",
    average: Average = "micro",
    **options: Unpack[Averaged],
) -> pl.Expr:
    """The highest precision of a threshold whose recall is at least r.

    Ties: rows of one score are one step. `bins` as in `roc_auc`.
    """
    curve = curve_of(u, bins, grid)
    return curve.of_two_classes(_precision_if_found(curve, r).max())


@metric(range=(0, 1), best="max", undefined_when="one class only", interval="biased")
def recall_at_fpr(
    u: Unit,
    f: Share,
    *,
    bins: Bins = None,
    grid: Grid = "logit",
    average: Average = "micro",
    **options: Unpack[Averaged],
) -> pl.Expr:
    """The highest recall of a threshold whose false positive rate is at most f; 0 if that is only one above all scores.

    Ties: rows of one score are one step. `bins` as in `roc_auc`.
    """
    curve = curve_of(u, bins, grid)
    best = _recall_if_few_false(curve, f).max()
    return curve.of_two_classes(best.fill_null(0.0))


@metric(range=(0, math.inf), best="max", undefined_when="one class only")
def lift_at(
    u: Unit,
    q: PositiveShare,
    *,
    bins: Bins = None,
    grid: Grid = "logit",
    average: Average = "micro",
    **options: Unpack[Averaged],
) -> pl.Expr:
    """How many times as frequent true rows are among the best share q of the rows as among all: its recall / q.

    Ties: rows tied across the border count to the share of the group that is within it. `bins` as in `roc_auc`.
    """
    curve = curve_of(u, bins, grid)
    rows = curve.positives + curve.negatives
    above = curve.positives_upto + curve.negatives_upto - rows
    within = ratio(q * (curve.all_positives + curve.all_negatives) - above, rows).clip(0, 1)
    return curve.of_two_classes(ratio((curve.positives * within).sum(), q * curve.all_positives))


@metric(range=(0, 1), best="max", undefined_when="no positives")
def interpolated_pr_auc(
    u: Unit, *, bins: Bins = None, grid: Grid = "logit", average: Average = "micro", **options: Unpack[Averaged]
) -> pl.Expr:
    """The area under precision against recall, where false positives grow in proportion from a threshold to the next.

    Between two thresholds that is a curve and no straight line (Davis and Goadrich 2006), and of tied rows it is what
    their random order gives, about. Without ties it is nearly `average_precision`, the sum of steps that most libraries
    call PR AUC and which has an exact interval; of few scores it is higher or lower. Keras (`summation_method=
    "interpolation"`) and PRROC have this one. Ties: rows of one score lie between two thresholds. `bins` as in
    `roc_auc`.
    """
    curve = curve_of(u, bins, grid)
    rows, upto = curve.positives + curve.negatives, curve.positives_upto.shift(1, fill_value=0)
    rows_upto = upto + curve.negatives_upto.shift(1, fill_value=0)
    # Over a step p of its n rows are true: so are those above it and p/n of the rows between, of all up to a place.
    slope, wider = share(curve.positives, rows), share(rows, rows_upto)
    within = upto * wider.log1p() + slope * rows_upto * less_log1p(wider)
    area = slope * pl.when(rows_upto > 0).then(within).otherwise(curve.positives)
    return ratio(area.sum(), curve.all_positives)


@metric(range=(0, 1), best="min", undefined_when="one class only")
def equal_error_rate(
    u: Unit, *, bins: Bins = None, grid: Grid = "logit", average: Average = "micro", **options: Unpack[Averaged]
) -> pl.Expr:
    """The error rate of the threshold at which FPR = FNR, on the line between the two nearest points of the ROC curve.

    It is a measure of a model, and no way to choose a threshold: for that say what errors cost, by `cost` or
    `recall_at_fpr`. Ties: rows of one score are one step. `bins` as in `roc_auc`.
    """
    curve = curve_of(u, bins, grid)
    false_rate, excess = curve.fall_out, curve.fall_out + curve.recall - 1
    before, lack = false_rate.shift(1, fill_value=0), -excess.shift(1, fill_value=-1)
    crossing = before + share(lack, lack + excess).clip(0, 1) * (false_rate - before)
    return curve.of_two_classes(pl.when(excess >= 0).then(crossing).min())
