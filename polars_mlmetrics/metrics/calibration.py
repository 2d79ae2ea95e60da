"""Metrics of whether a probability is as often true as it says."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal, Unpack

import polars as pl

from polars_mlmetrics.formula.arithmetic import bin_of, edge, ratio, share
from polars_mlmetrics.formula.averages import Average
from polars_mlmetrics.formula.curve import Bins, cell_of
from polars_mlmetrics.formula.declare import metric
from polars_mlmetrics.formula.parameters import Averaged, Count
from polars_mlmetrics.formula.unit import Unit
from polars_mlmetrics.metrics.probabilities import probability_of, uncertainty_of

INFINITY = float("inf")


@metric(range=(0, 1), best="min", interval="too_high")
def calibration_error(
    u: Unit,
    *,
    bins: Count = 15,
    norm: Literal["l1", "l2", "max"] = "l1",
    strategy: Literal["uniform", "quantile"] = "uniform",
    logits: bool = False,
    average: Average = "micro",
    **options: Unpack[Averaged],
) -> pl.Expr:
    """How far the mean probability and the share of truths lie apart, in bins of the probability.

    With gap_b = |mean p - mean t| and n_b the weight of bin b: Σ (n_b/n)·gap_b, or √ Σ (n_b/n)·gap_b² with
    `norm="l2"`, or max gap_b with `norm="max"`. The bins are of equal width, and a probability of 1 falls in the last.
    With `strategy="quantile"` they are of equal weight (the adaptive error of Nixon et al. 2019); rows of one
    probability that lie across a border belong to both bins, each row by the same share. That needs all rows: it is for
    expressions and `evaluate` only.

    It is too high on average, the more so the fewer rows are in a bin: that of a calibrated model is not 0. So it has
    no interval. `brier_reliability(debiased=True)` has one, and `calibration_ks` needs no bins.
    """
    if strategy == "quantile":
        gaps = [ratio(gap, u.rows()) for gap in _gaps_of_equal_bins(u, bins, logits=logits)]
        if norm == "max":
            return bins * pl.max_horizontal(gaps)
        parts = gaps if norm == "l1" else [bins * gap**2 for gap in gaps]
        whole = pl.sum_horizontal(parts, ignore_nulls=False)
        return whole if norm == "l1" else whole.sqrt()
    n, surplus = u.runs(*bins_of(u, bins, logits=logits)[:3], cells=bins)
    gap = ratio(surplus.abs(), n)
    if norm == "max":
        return gap.max()
    return ratio(surplus.abs().sum(), n.sum()) if norm == "l1" else ratio((n * gap**2).sum(), n.sum()).sqrt()


def _gaps_of_equal_bins(u: Unit, bins: int, *, logits: bool) -> Sequence[pl.Expr]:
    """How far the probabilities of each bin are above its truths, or below, summed over its part of the rows."""
    n, surplus = u.runs(*_by_probability(u, None, logits=logits))
    # Whole numbers would be clipped at whole borders.
    upto = n.cum_sum().cast(pl.Float64)
    before = upto.shift(1, fill_value=0)
    borders = [u.rows() * edge(pl.lit(place), bins) for place in range(bins + 1)]
    parts = (share((upto.clip(None, end) - before.clip(start)).clip(0), n) for start, end in pairwise(borders))
    return [(surplus * part).sum().abs() for part in parts]


def _by_probability(u: Unit, cells: int | None, *, logits: bool) -> list[pl.Expr]:
    """The probability of a row, or its cell; and what is summed over rows of one: 1, how far p is above the truth."""
    p = probability_of(u, logits=logits)
    key = p.alias("probability") if cells is None else cell_of(p, cells, "logit").alias(f"cell@{cells},logit")
    if logits:
        key = key.name.suffix("@logits")
    return [key, *_rows_and_surplus(u, p)]


def bins_of(u: Unit, bins: int, *, logits: bool) -> list[pl.Expr]:
    """The bin of a row; and what is summed over the rows of a bin: 1, how far p is above the truth, the truth."""
    p = probability_of(u, logits=logits)
    number = bin_of(p, bins).alias(f"bin@{bins}{'@logits' if logits else ''}")
    return [number, *_rows_and_surplus(u, p), u.truth.cast(pl.Int64).alias("positives")]


def _rows_and_surplus(u: Unit, p: pl.Expr) -> list[pl.Expr]:
    """1 for each row, and how far its probability is above its truth."""
    return [pl.lit(1).alias("rows"), (p - u.truth.cast(pl.Float64)).alias("surplus")]


def _reliability(u: Unit, *, bins: int, logits: bool, debiased: bool, **options: Any) -> pl.Expr:
    """The reliability of Murphy; debiased it may lie below 0."""
    number, rows, surplus, _ = bins_of(u, bins, logits=logits)
    if not debiased:
        n, surplus = u.runs(number, rows, surplus, cells=bins)
        return ratio((n * ratio(surplus, n) ** 2).sum(), n.sum())
    n, surplus, squares = u.runs(number, rows, surplus, (surplus**2).alias("squared_surplus"), cells=bins)
    squared_gap = ratio(surplus, n) ** 2
    by_chance = ratio((ratio(squares, n) - squared_gap).clip(lower_bound=0), n - 1)
    # Below two rows nothing tells how far chance alone moves the gap. Weights may also add up to 1 but for rounding.
    of_bins = pl.when(n >= 2).then(n * (squared_gap - by_chance)).otherwise(0)
    return ratio(of_bins.sum(), n.sum())


@metric(range=(0, 1), best="min", interval="biased", uncut=_reliability)
def brier_reliability(
    u: Unit,
    *,
    bins: Count = 15,
    logits: bool = False,
    debiased: bool = False,
    average: Average = "micro",
    **options: Unpack[Averaged],
) -> pl.Expr:
    """Murphy's reliability: Σ (n_b/n)·(mean p - mean t)² over equal-width bins b of the probability. 0 is calibrated.

    `brier_reliability - brier_resolution + brier_uncertainty` is the Brier score, but for how p varies within a bin.

    It is too high on average, the more so the fewer rows are in a bin. `debiased=True` takes off what chance alone
    adds: with gap_b = mean p - mean t, each (gap_b)² less v_b = (mean of (p - t)² in b - gap_b²) / (n_b - 1), a bin of
    less than two rows as 0, and the sum cut at 0. Then its interval holds the true value at least as often as it says:
    its standard error is that before the cut. An average over labels or samples is one of values that are cut, so it is
    too high again.
    A weight is a number of copies here too: weights that mean something else are to be 1 on average.
    """
    value = _reliability(u, bins=bins, logits=logits, debiased=debiased)
    return value.clip(lower_bound=0) if debiased else value


@metric(range=(0, 0.25), best="max", interval="biased")
def brier_resolution(
    u: Unit, *, bins: Count = 15, logits: bool = False, average: Average = "micro", **options: Unpack[Averaged]
) -> pl.Expr:
    """Murphy's resolution: Σ (n_b/n)·(mean t of bin b - mean t)². How much the bins tell about the truth.

    Bins of equal width, as in `brier_reliability`.
    """
    number, rows, _, truth = bins_of(u, bins, logits=logits)
    n, positives = u.runs(number, rows, truth, cells=bins)
    # The mean of the squares less the square of the mean: a sum that reads another one is not native in an aggregation.
    of_bins = ratio((ratio(positives, n) * positives).sum(), n.sum())
    return (of_bins - ratio(positives.sum(), n.sum()) ** 2).clip(lower_bound=0)


@metric(range=(0, 0.25), best=None)
def brier_uncertainty(
    u: Unit, *, logits: bool = False, average: Average = "micro", **options: Unpack[Averaged]
) -> pl.Expr:
    """Murphy's uncertainty: π·(1-π) of the base rate π. It is the Brier score of the base rate itself.

    It says nothing of the scores, which must be probabilities all the same (with `logits=True`, logits).
    """
    _ = probability_of(u, logits=logits)
    return uncertainty_of(u)


@metric(range=(-1, 1), best=None)
def calibration_bias(
    u: Unit, *, logits: bool = False, average: Average = "micro", **options: Unpack[Averaged]
) -> pl.Expr:
    """The mean probability less the share of truths: Σw·p / Σw - Σw·t / Σw. Above 0 the probabilities are too high.

    Of numbers that are no probabilities use `bias`.
    """
    return u.per_row(_expected_positives(u, logits=logits) - u.positives())


@metric(range=(0, INFINITY), best=None, undefined_when="no positives")
def calibration_ratio(
    u: Unit, *, logits: bool = False, average: Average = "micro", **options: Unpack[Averaged]
) -> pl.Expr:
    """How many true rows the probabilities expect, per true row: Σw·p / Σw·t. Above 1 they are too high.

    Of numbers that are no probabilities use `bias_ratio`.
    """
    return ratio(_expected_positives(u, logits=logits), u.positives())


def _expected_positives(u: Unit, *, logits: bool) -> pl.Expr:
    return u.sum(f"probability@{logits=}", probability_of(u, logits=logits))


@metric(range=(0, 1), best="min", interval="too_high")
def calibration_ks(
    u: Unit, *, logits: bool = False, bins: Bins = None, average: Average = "micro", **options: Unpack[Averaged]
) -> pl.Expr:
    """The farthest that probabilities and truths, each added up from the lowest probability on, come apart.

    max |Σ w·(t - p)| / Σw over the rows up to each probability: `calibration_error` without bins, also called ECCE-MAD
    (Gupta et al. 2021, Arrieta-Ibarra et al. 2022). It is no `ks`, which is how far the two classes are apart. For a
    test divide it by what chance gives, √(Σ p·(1-p)) / n: of a calibrated model that is above 2.24 once in 20 times.

    Ties: rows of one probability are added at once. `bins` merges probabilities into the cells of a fixed grid, as in
    `roc_auc`: the value may then be too low. It is too high on average, the more so the fewer rows there are.
    """
    whole, upto = _surplus(u, bins, logits=logits)
    return u.per_row(pl.max_horizontal(whole.abs(), (whole - upto).abs().max()))


@metric(range=(0, 1), best="min", interval="too_high")
def calibration_kuiper(
    u: Unit, *, logits: bool = False, bins: Bins = None, average: Average = "micro", **options: Unpack[Averaged]
) -> pl.Expr:
    """The largest miscalibration of a range of probabilities: max |Σ w·(t - p)| / Σw over the rows between two of them.

    It is also called ECCE-R (Arrieta-Ibarra et al. 2022). `calibration_ks` looks at ranges from the lowest probability
    on alone, and is never higher. For a test divide it by √(Σ p·(1-p)) / n: of a calibrated model that is above 2.50
    once in 20 times. Ties and `bins` as in `calibration_ks`, and it is too high on average too.
    """
    _, upto = _surplus(u, bins, logits=logits)
    return u.per_row(upto.max().clip(0) - upto.min().clip(None, 0))


def _surplus(u: Unit, bins: Bins, *, logits: bool) -> tuple[pl.Expr, pl.Expr]:
    """How far probabilities are above truths, summed: of all rows, and of those at or above each probability."""
    key, _, surplus = _by_probability(u, bins, logits=logits)
    (of_runs,) = u.runs(key, surplus, cells=bins)
    return of_runs.sum(), of_runs.cum_sum()


@metric(range=(-INFINITY, INFINITY), best=None, interval="total", undefined_when="every probability is 0, 0.5 or 1")
def spiegelhalter_z(
    u: Unit, *, logits: bool = False, average: Average = "micro", **options: Unpack[Averaged]
) -> pl.Expr:
    """Spiegelhalter's test of calibration: Σw·(t-p)·(1-2p) / √(Σw·(1-2p)²·p·(1-p)).

    Of a calibrated model it is a standard normal number: beyond 1.96 on either side once in 20 times (Spiegelhalter
    1986). Below 0 the probabilities are too near to 0.5, above 0 too near to 0 and 1. It grows with the rows, so it
    says whether a model is miscalibrated, and not how much: for that use `brier_reliability` or `calibration_ks`. Rows
    that depend on one another make it too large. A weight is a number of copies.
    """
    p = probability_of(u, logits=logits)
    lean = 1 - 2 * p
    gap = u.sum(f"leaning_gap@{logits=}", (u.truth_number - p) * lean)
    return ratio(gap, u.sum(f"variance_of_gap@{logits=}", lean**2 * p * (1 - p)).sqrt())
