"""Metrics of the order of a sample's labels, averaged over samples."""

from typing import Literal, Unpack

import polars as pl

from polars_mlmetrics.engine.arithmetic import ratio, share
from polars_mlmetrics.engine.declaration import metric
from polars_mlmetrics.engine.parameters import Averaged, Options
from polars_mlmetrics.engine.settle import LabelAverage
from polars_mlmetrics.engine.unit import Unit

INFINITY = float("inf")


@metric(grain="sample", range=(0, 1), best="min", undefined_when="no rows")
def one_error(u: Unit, **options: Unpack[Options]) -> pl.Expr:
    """The share of samples whose top label is not true.

    Ties: among several labels with the top score, the share that is not true. No positives: 1.
    """
    best_true, best_false = _best_true(u), _best_false(u)
    # A tie between the best true and the best false label is rare, and alone needs its rows counted.
    top = u.on_rows("tied_top", pl.when(best_true == best_false).then(best_true))
    at_top = u.score == top
    true_at_top = ratio(u.count("true_at_top", at_top & u.truth), u.count("at_top", at_top))
    right = best_false.is_null() | (best_true > best_false)
    return pl.when(best_true == best_false).then(1 - true_at_top).when(right).then(0.0).otherwise(1.0)


@metric(grain="sample", range=(0, INFINITY), best="min", undefined_when="no positives")
def coverage_error(u: Unit, *, base: Literal[0, 1] = 1, **options: Unpack[Options]) -> pl.Expr:
    """How many labels one must read, best first, to have seen every true one. `base=0` counts one less.

    Ties: the whole tie group of the last true label is read.
    """
    return u.max("last_true_rank", pl.when(u.truth).then(u.rank)) - (1 - base)


@metric(grain="sample", range=(0, 1), best="min", undefined_when="no positives or no negatives")
def ranking_loss(
    u: Unit,
    *,
    pairs: Literal["relevant", "all"] = "relevant",
    ties: Literal["wrong", "right", "half"] = "wrong",
    **options: Unpack[Options],
) -> pl.Expr:
    """The share of (true, false) label pairs in which the false one is ranked higher.

    `pairs="all"` divides by all L·(L-1)/2 pairs of labels (and needs L >= 2 alone). Ties: a tie is wrong, or
    "right", or "half" wrong.
    """
    false_at_least, false_above = u.rank - u.true_rank, u.above - u.true_above
    wrong = {"wrong": false_at_least, "right": false_above, "half": 0.5 * (false_at_least + false_above)}[ties]
    wrong_pairs = u.sum(f"wrong_pairs@{ties}", pl.when(u.truth).then(wrong))
    rows, positives = u.rows().cast(pl.Float64), u.positives().cast(pl.Float64)
    return ratio(wrong_pairs, rows * (rows - 1) * 0.5 if pairs == "all" else positives * (rows - positives))


@metric(grain="sample", range=(0, 1), best="max", undefined_when="no positives")
def label_ranking_average_precision(u: Unit, **options: Unpack[Options]) -> pl.Expr:
    """The mean, over true labels, of the share of true labels among those ranked at or above it.

    Ties: the whole tie group is ranked at its own score.
    """
    precision_at_true = u.sum("precision_at_true", pl.when(u.truth).then(share(u.true_rank, u.rank)))
    return ratio(precision_at_true, u.positives())


@metric(grain="sample", range=(0, 1), best="max", undefined_when="no rows")
def exact_match_prefix(u: Unit, **options: Unpack[Options]) -> pl.Expr:
    """The share of samples that rank every true label above every false one.

    Ties: strictly above. No positives or no negatives: 1.
    """
    worst_true, best_false = u.min("worst_true", pl.when(u.truth).then(u.score)), _best_false(u)
    in_order = worst_true.is_null() | best_false.is_null() | (worst_true > best_false)
    return in_order.cast(pl.Float64)


@metric(grain="label", range=(0, 1), best="max", undefined_when="label never true")
def labelwise_precision(u: Unit, *, average: LabelAverage = "macro", **options: Unpack[Averaged]) -> pl.Expr:
    """Of the samples in which a label is true, the share that rank it above all false ones; then the mean over labels.

    Ties: strictly above. A sample without negatives is a hit.
    """
    best_false = u.within("best_false_of_sample", pl.when(~u.truth).then(u.score), "max")
    hit = u.truth & (best_false.is_null() | (u.score > best_false))
    return ratio(u.sum("hits", hit), u.positives())


def _best_true(u: Unit) -> pl.Expr:
    return u.max("best_true", pl.when(u.truth).then(u.score))


def _best_false(u: Unit) -> pl.Expr:
    return u.max("best_false", pl.when(~u.truth).then(u.score))
