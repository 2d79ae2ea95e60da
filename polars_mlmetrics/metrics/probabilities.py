"""Metrics of a probability: the score says how likely the truth is."""

import math
from typing import Literal, Unpack

import polars as pl

from polars_mlmetrics.engine.arithmetic import by_float_type, log1p_exp, ratio, sigmoid, times_log
from polars_mlmetrics.engine.declaration import metric
from polars_mlmetrics.engine.parameters import Averaged, Count, MoreThanOne, NotNegative, Options, Positive
from polars_mlmetrics.engine.settle import Average
from polars_mlmetrics.engine.unit import Unit

INFINITY = float("inf")
Eps = NotNegative | Literal["dtype"]


@metric(range=(0, INFINITY), best="min", undefined_when="no rows")
def log_loss(
    u: Unit, *, eps: Eps = 1e-15, logits: bool = False, average: Average = "micro", **options: Unpack[Averaged]
) -> pl.Expr:
    """The mean of -(t·ln p + (1-t)·ln(1-p)), p clipped to [eps, 1-eps] before 1-p is taken. The truth may be soft.

    `eps="dtype"` clips by the machine epsilon of the score's own type. With `logits=True` the score is a logit and
    the loss is worked out from it directly, without a clip.
    """
    if logits:
        return ratio(u.sum("log_loss@logits", _cost_of_logit(u)), u.rows())
    return ratio(u.sum(f"log_loss@{eps}", -_log_likelihood(u, _clipped(u, eps))), u.rows())


def _log_likelihood(u: Unit, p: pl.Expr) -> pl.Expr:
    if u.has_boolean_truth:
        # One of the two terms is 0, so one logarithm is enough.
        return pl.when(u.soft_truth == 1).then(p).otherwise(1 - p).log()
    return times_log(u.soft_truth, p) + times_log(1 - u.soft_truth, 1 - p)


def _cost_of_logit(u: Unit, *, negatives: bool = True) -> pl.Expr:
    """-(t·ln p + (1-t)·ln(1-p)) of a logit, without its second term where negatives do not count."""
    if negatives:
        return u.logit.clip(lower_bound=0) - u.soft_truth * u.logit + log1p_exp(u.logit)
    return u.soft_truth * ((-u.logit).clip(lower_bound=0) + log1p_exp(u.logit))


def _clipped(u: Unit, eps: float | str) -> pl.Expr:
    if isinstance(eps, str):
        half, single, double = (u.probability.clip(tiny, 1 - tiny) for tiny in (2.0**-10, 2.0**-23, 2.0**-52))
        return by_float_type(u.door.raw_score, half=half, single=single, double=double)
    return u.probability.clip(eps, 1 - eps)


@metric(grain="sample", range=(0, INFINITY), best="min", undefined_when="no positives")
def multiclass_log_loss(
    u: Unit, *, eps: Eps = 1e-15, max_loss: Positive | None = None, **options: Unpack[Options]
) -> pl.Expr:
    """The mean over samples of -ln p of the true label. A sample with several true labels is broken.

    `eps=0` does not clip: a true label of probability 0 costs infinity. `max_loss` bounds the cost of a sample.
    """
    cost = u.sum(f"log_of_true@{eps}", pl.when(u.truth).then(-_clipped(u, eps).log()))
    return u.one_true_label(cost if max_loss is None else cost.clip(upper_bound=max_loss))


@metric(grain="sample", range=(0, INFINITY), best="min", undefined_when="no rows")
def multilabel_cross_entropy(
    u: Unit,
    *,
    base: MoreThanOne | Literal["e"] = "e",
    negatives: bool = True,
    log_of_zero: float | None = None,
    logits: bool = False,
    **options: Unpack[Options],
) -> pl.Expr:
    """The mean over samples of Σ_j -(t·log p + (1-t)·log(1-p)), summed over its labels. The truth may be soft.

    `negatives=False` drops the second term. A true label of probability 0 costs infinity, unless `log_of_zero` says
    what log 0 is (in the logarithm's own base).
    """
    base = math.e if isinstance(base, str) else base
    if logits:
        cost = _cost_of_logit(u, negatives=negatives) * (1 / math.log(base))
    else:
        p, t, of_zero = u.probability, u.soft_truth, -INFINITY if log_of_zero is None else log_of_zero
        cost = -times_log(t, p, base=base, of_zero=of_zero)
        if negatives:
            cost -= times_log(1 - t, 1 - p, base=base, of_zero=of_zero)
    return u.sum(f"cross_entropy@{base},{negatives},{log_of_zero},{logits}", cost)


@metric(range=(0, 1), best="min", undefined_when="no rows")
def brier_score(u: Unit, *, logits: bool = False, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """The mean of (t - p)²."""
    p = sigmoid(u.logit) if logits else u.probability
    return ratio(u.sum(f"squared_gap@{logits=}", (u.truth.cast(pl.Float64) - p) ** 2), u.rows())


@metric(range=(0, 1), best="min", undefined_when="no rows")
def calibration_error(
    u: Unit,
    *,
    bins: Count = 15,
    norm: Literal["l1", "l2", "max"] = "l1",
    logits: bool = False,
    average: Average = "micro",
    **options: Unpack[Averaged],
) -> pl.Expr:
    """How far the mean probability and the share of truths lie apart, in equal-width bins of the probability.

    With gap_b = |mean p - mean t| and n_b the weight of bin b: Σ (n_b/n)·gap_b, or √ Σ (n_b/n)·gap_b² with
    `norm="l2"`, or max gap_b with `norm="max"`. A probability of 1 falls in the last bin.
    """
    p = sigmoid(u.logit) if logits else u.probability
    bin_of = (p * bins).floor().clip(0, bins - 1).alias(f"bin@{bins}{'@logits' if logits else ''}")
    n, surplus = u.runs(bin_of, pl.lit(1).alias("rows"), (p - u.truth.cast(pl.Float64)).alias("surplus"), few=True)
    gap = ratio(surplus.abs(), n)
    if norm == "max":
        return gap.max()
    return ratio(surplus.abs().sum(), n.sum()) if norm == "l1" else ratio((n * gap**2).sum(), n.sum()).sqrt()
