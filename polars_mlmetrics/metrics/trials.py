"""Metrics of several trials of one task: a sample is the task, each of its rows a trial, and the truth its success."""

from typing import Unpack

import polars as pl

from polars_mlmetrics.formula.chances import FEW, all_marked_at_first, any_marked, mean_at_first, none_marked
from polars_mlmetrics.formula.declare import metric
from polars_mlmetrics.formula.parameters import Count, Options
from polars_mlmetrics.formula.unit import Unit


@metric(grain="sample", range=(0, 1), best="max", undefined_when="fewer than k trials", reads=("truth",))
def pass_at(u: Unit, k: Count, **options: Unpack[Options]) -> pl.Expr:
    """The chance that at least one of k trials of a sample succeeds, pass@k: 1 - C(n-c, k) / C(n, k).

    Of the n rows of a sample, c are true; the k trials are drawn from them without replacement (Chen et al. 2021,
    "Evaluating Large Language Models Trained on Code"). So it is right on average for any n >= k, and 1 - (1 - c/n)^k
    is not. If a score chooses the k trials that count, use `hit_at`: of equal scores both are one number. If all k must
    succeed, use `pass_all`.
    """
    if k <= FEW:
        chance = mean_at_first(lambda place: pl.lit(1.0), u.rows(), u.positives(), places=k)
    else:
        trials, successes = _on_rows(u)
        of_some = any_marked(trials, successes, pl.lit(k))
        chance = u.max(f"pass_at@{k}", pl.when(successes > 0).then(of_some).otherwise(0.0))
    return pl.when(u.rows() >= k).then(chance)


@metric(grain="sample", range=(0, 1), best="max", undefined_when="fewer than k trials", reads=("truth",))
def pass_all(u: Unit, k: Count, **options: Unpack[Options]) -> pl.Expr:
    """The chance that all of k trials of a sample succeed, pass^k: C(c, k) / C(n, k).

    Of the n rows of a sample, c are true; the k trials are drawn from them without replacement (Yao et al. 2024,
    "τ-bench"). It says how reliable a system is, and falls as k grows, where pass@k rises; with k=1 both are c/n. If
    one success of the k is enough, use `pass_at`.
    """
    if k <= FEW:
        chance = all_marked_at_first(u.rows(), u.positives(), places=k)
    else:
        trials, successes = _on_rows(u)
        chance = u.max(f"pass_all@{k}", none_marked(trials, trials - successes, pl.lit(k)))
    return pl.when(u.rows() >= k).then(chance)


def _on_rows(u: Unit) -> tuple[pl.Expr, pl.Expr]:
    """The trials and the successes of a sample, on each of its rows: only there Polars looks factorials up."""
    truth = u.truth.cast(pl.Int64)
    zero = truth * 0
    return zero + u.within("trials", zero + 1, "sum"), zero + u.within("positives", truth, "sum")
