"""Metrics of how well the score tells true rows from the others, across all thresholds."""

from typing import Unpack

import polars as pl

from polars_mlmetrics.engine.arithmetic import ratio, share
from polars_mlmetrics.engine.declaration import metric
from polars_mlmetrics.engine.parameters import Averaged
from polars_mlmetrics.engine.settle import Average
from polars_mlmetrics.engine.unit import Unit


def _by_score(u: Unit) -> tuple[pl.Expr, ...]:
    return u.runs(u.score.alias("score"), u.truth.alias("positives"), (~u.truth).alias("negatives"))


@metric(range=(0, 1), best="max", undefined_when="one class only")
def roc_auc(u: Unit, *, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """The chance that a true row scores higher than one that is not true; a tie counts half. Exact and weighted."""
    positives, negatives = _by_score(u)
    upto = positives.cum_sum().cast(pl.Float64)
    # Each negative of a run is below the positives above it, and level with those of its own run.
    lower_pairs = (negatives * (upto + upto.shift(1, fill_value=0))).sum() * 0.5
    return ratio(lower_pairs, u.positives().cast(pl.Float64) * u.negatives())


@metric(range=(0, 1), best="max", undefined_when="no positives")
def average_precision(u: Unit, *, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """The area under precision against recall, as a sum of steps: Σ (R_i - R_{i-1})·P_i. Exact and weighted.

    Ties: rows of one score are one step.
    """
    positives, negatives = _by_score(u)
    upto = positives.cum_sum().cast(pl.Float64)
    return ratio((positives * share(upto, upto + negatives.cum_sum())).sum(), u.positives())
