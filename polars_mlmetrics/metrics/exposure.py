"""Metrics of which labels the lists of all samples show: how many of them, and how evenly."""

from typing import Unpack

import polars as pl

from polars_mlmetrics.data.expressions import text_of
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.formula.declare import metric
from polars_mlmetrics.formula.parameters import Count, Options
from polars_mlmetrics.formula.unit import Unit
from polars_mlmetrics.metrics.rankings import taken

INFINITY = float("inf")


@metric(grain="group", range=(0, 1), best="max", interval="extreme", reads=("score",))
def label_coverage(u: Unit, k: Count, **options: Unpack[Options]) -> pl.Expr:
    """The share of labels that are among the k best of at least one sample: the catalogue coverage of a recommender.

    The labels are those of the log's rows: to a log of returned lists add a row for each other label, with a score of
    minus infinity, in one sample at least. It grows with the samples: compare models on the same ones. It says nothing
    of whether a label is true, and one sample is enough: of how even the lists are use `exposure_gini`.
    Ties: a label tied across the border of k is among the k best.
    """
    shown, rows = _by_label(u, k)
    return ratio((shown > 0).sum(), (rows > 0).sum())


@metric(
    grain="group", range=(0, 1), best="min", undefined_when="no label was returned", interval="biased", reads=("score",)
)
def exposure_gini(u: Unit, k: Count, **options: Unpack[Options]) -> pl.Expr:
    """The Gini coefficient of how often each label is among the k best: 0 where all are as often, near 1 for a few.

    Of n labels with shares x_1 <= … <= x_n of the places it is Σ (2i - n - 1)·x_i / n, where a label of the log that is
    never shown counts as 0. It is no `gini`, which is 2·AUC - 1. Of few samples it is too high: many labels lack a
    place by chance. Ties: labels tied across the border of k count to the share of the group that has a place in it.
    """
    shown, rows = _by_label(u, k)
    labels = (rows > 0).sum()
    upto = shown.filter(rows > 0).sort().cum_sum()
    return ratio(labels + 1 - ratio(2 * upto.sum(), upto.max()), labels)


def _by_label(u: Unit, k: int) -> tuple[pl.Expr, ...]:
    """How often each label is among the k best, and its rows."""
    return u.by_label(taken(u, k).alias(f"shown@{k}"), pl.lit(1).alias("rows"))


@metric(grain="sample", range=(0, INFINITY), best=None, undefined_when="no label was returned", reads=("score",))
def surprisal(u: Unit, k: Count, popularity: str | pl.Expr, **options: Unpack[Options]) -> pl.Expr:
    """How little known the k best labels are, in bits: the mean of -log2 popularity over them, then over samples.

    The popularity of a label is the share of users, or of rows, that know it: a column or an expression of each row,
    above 0 and at most 1, such as one that you join from the training log. The log itself does not know it. It is also
    called novelty, or mean self-information (Zhou et al. 2010). It knows nothing of truths: labels drawn at random are
    the most surprising ones, so look at `recall_at` beside it. Of whether all lists show the same labels use
    `exposure_gini`. A row whose popularity is null is left out, and takes no place; one that is no such share is
    broken. Ties: labels tied across the border of k count to the share of the group that has a place in it.
    """
    share_of = u.of_row("popularity", popularity)
    name = text_of(share_of)
    u.breaks_on(f"popularity@{name}", ~((share_of > 0) & (share_of <= 1)))
    shown = taken(u, k)
    return ratio(u.sum(f"surprisal@{k},{name}", shown * -share_of.log(2)), u.sum(f"shown@{k}", shown))
