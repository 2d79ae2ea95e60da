"""Metrics of the order of a sample's labels where the truth is a grade, averaged over samples."""

from typing import Literal, Unpack

import polars as pl

from polars_mlmetrics.formula.arithmetic import inverse, inverse_log2, ratio
from polars_mlmetrics.formula.declare import metric
from polars_mlmetrics.formula.parameters import Count, Options, Positive
from polars_mlmetrics.formula.unit import Unit
from polars_mlmetrics.metrics.rankings import returned

INFINITY = float("inf")

Gain = Literal["linear", "exponential"]
Discount = Literal["log2", "linear"]
GainTies = Literal["average", "ignore"]

DISCOUNTS = {"log2": inverse_log2, "linear": inverse}
"""The worth of a gain at a place, by the words for it."""


@metric(grain="sample", range=(0, INFINITY), best="max", needs_negatives=False)
def dcg(
    u: Unit,
    *,
    k: Count | None = None,
    gain: Gain = "linear",
    ties: GainTies = "average",
    discount: Discount = "log2",
    **options: Unpack[Options],
) -> pl.Expr:
    """Discounted cumulative gain: Σ gain / log2(place + 1) over the k best. The truth is a grade of 0 or more.

    `gain="exponential"` is 2^grade - 1 instead of the grade, `discount="linear"` 1 / place instead of the logarithm.
    Ties: a tie group shares the mean of its gains over the discounts of its places, also across the border of k.
    `ties="ignore"`: tied labels are in the order of the label column. As an expression it is slow: for many rows use
    `evaluate`.
    """
    return _dcg(u, k, gain, ties, discount)


@metric(grain="sample", range=(0, 1), best="max", undefined_when="no label with a gain", needs_negatives=False)
def ndcg(
    u: Unit,
    *,
    k: Count | None = None,
    gain: Gain = "linear",
    ties: GainTies = "average",
    discount: Discount = "log2",
    **options: Unpack[Options],
) -> pl.Expr:
    """Discounted cumulative gain, as a share of that of the ideal order: `dcg` / dcg of the labels by grade.

    `k`, `gain`, `ties` and `discount` are those of `dcg`. It is NaN where the gains of a sample are too large for a
    float: with `gain="exponential"` above a grade of about 1,000. As an expression it is slow: for many rows use
    `evaluate`.
    """
    gained = _gain(u, gain) * _discount(u.ideal_place, k, discount)
    ideal = u.sum(f"ideal@{gain},{_named(k, discount)}", pl.when(u.has_gain).then(gained))
    # As a share of what no float holds, any sum of gains would be 0.
    share = ratio(_dcg(u, k, gain, ties, discount), pl.when(ideal.is_finite()).then(ideal).otherwise(float("nan")))
    # Of ties, gains and discounts are summed in another order than of the ideal: by rounding it might pass 1.
    return share.clip(upper_bound=1.0)


def _dcg(u: Unit, k: int | None, gain: Gain, ties: GainTies, discount: Discount) -> pl.Expr:
    gains = pl.when(returned(u)).then(_gain(u, gain)).otherwise(0.0)
    if ties == "ignore":
        u.reads_label()
        # Highest score first, then lowest label.
        order = pl.struct((-u.score).alias("score"), pl.col(u.door.table.label).alias("label"), (-u.gain).alias("gain"))
        discounts = _discount(u.place("place_by_label", order), k, discount)
    else:
        discounts = u.mean_of_tie(f"discount@{_named(k, discount)}", DISCOUNTS[discount], k=k)
    return u.sum(f"dcg@{gain},{_named(k, discount)},{ties}", pl.when(u.has_gain).then(gains * discounts))


def _gain(u: Unit, gain: Gain) -> pl.Expr:
    return u.gain if gain == "linear" else pl.lit(2.0).pow(u.gain) - 1


def _discount(place: pl.Expr, k: int | None, discount: Discount) -> pl.Expr:
    worth = DISCOUNTS[discount](place)
    return worth if k is None else pl.when(place <= k).then(worth).otherwise(0.0)


def _named(k: int | None, discount: Discount) -> str:
    """The places that count and their discount, in the name of a sum; the logarithm needs no word."""
    return str(k) if discount == "log2" else f"{k},{discount}"


@metric(grain="sample", range=(0, 1), best="max", needs_negatives=False)
def err(u: Unit, max_grade: Positive, *, k: Count | None = None, **options: Unpack[Options]) -> pl.Expr:
    """Expected reciprocal rank: Σ 1/place · R · Π (1 - R) of the labels above, with R = (2^grade - 1) / 2^max_grade.

    A reader goes down the list and stops at a label with the chance R: it is the mean of one over the place where he
    does (Chapelle et al. 2009; ERR of gdeval has a `max_grade` of 4). So what stands below a label of a high grade
    counts little, unlike in `ndcg`, and it is 1 for no list: the best place alone gives 1 - 2^-max_grade at most. It
    is not `reciprocal_rank`, where the first true label ends the list. A grade above `max_grade` is broken.

    Ties: tied labels are in the worst order, the lowest grade first. The mean over all orders has no closed form.
    """
    u.breaks_on(f"grade@{max_grade}", u.gain > max_grade)
    stop = pl.when(returned(u)).then((pl.lit(2.0).pow(u.gain) - 1) * 2.0**-max_grade).otherwise(0.0)
    order = pl.struct((-u.score).alias("score"), u.gain.alias("gain"))
    left = u.sum_before(f"log_left@{max_grade}", (-stop).log1p(), order).exp()
    place = u.place("place_by_lowest_gain", order)
    return u.sum(f"err@{max_grade},{k}", left * stop * _discount(place, k, "linear"))
