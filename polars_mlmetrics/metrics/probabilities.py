"""Metrics of a probability: the score says how likely the truth is."""

import math
from typing import Annotated, Literal, Unpack

import polars as pl

from polars_mlmetrics.formula.arithmetic import (
    by_float_type,
    log1p_exp,
    log_of_rest,
    ratio,
    share,
    sigmoid,
    times_log,
    times_log_of_rest,
    times_own_log,
)
from polars_mlmetrics.formula.averages import Average
from polars_mlmetrics.formula.class_matrix import unless_several
from polars_mlmetrics.formula.declare import metric
from polars_mlmetrics.formula.parameters import (
    TO_MERGE,
    Above,
    Averaged,
    BetweenZeroAndOne,
    MoreThanOne,
    NotNegative,
    Options,
    Positive,
)
from polars_mlmetrics.formula.shared import OfRow
from polars_mlmetrics.formula.unit import Unit

INFINITY = float("inf")
Eps = Annotated[float, Above(0, at_most=0.5)] | Literal["dtype"]


@metric(range=(0, INFINITY), best="min")
def log_loss(
    u: Unit, *, eps: Eps = 1e-15, logits: bool = False, average: Average = "micro", **options: Unpack[Averaged]
) -> pl.Expr:
    """The mean of -(t·ln p + (1-t)·ln(1-p)), p clipped to [eps, 1-eps] before 1-p is taken. The truth may be soft.

    `eps="dtype"` clips by the machine epsilon of the score's own type. With `logits=True` the score is a logit and
    the loss is computed from it directly, without a clip.
    """
    return _mean_log_loss(u, eps, logits=logits)


def _mean_log_loss(u: Unit, eps: Eps, *, logits: bool) -> pl.Expr:
    if logits:
        return u.per_row(u.sum("log_loss@logits", _cost_of_logit(u)))
    return u.per_row(u.sum(f"log_loss@{eps}", _cost(u, _clipped(u, eps), is_clipped=_keeps_off_ends(eps))))


def probability_of(u: Unit, *, logits: bool) -> pl.Expr:
    """The probability of a row, which its score says, or is the logit of."""
    return sigmoid(u.logit) if logits else u.probability


def _cost(u: Unit, p: pl.Expr, *, is_clipped: bool) -> pl.Expr:
    """-(t·ln p + (1-t)·ln(1-p))."""
    if is_clipped:
        # Both logarithms are finite. To choose one of them row by row takes longer than to work out both.
        return (u.soft_truth - 1) * log_of_rest(p) - u.soft_truth * p.log()
    return -(times_log(u.soft_truth, p) + times_log_of_rest(1 - u.soft_truth, p))


def _cost_of_logit(u: Unit, *, negatives: bool = True) -> pl.Expr:
    """-(t·ln p + (1-t)·ln(1-p)) of a logit, without its second term where negatives do not count."""
    if negatives:
        return u.logit.clip(lower_bound=0) - u.soft_truth * u.logit + log1p_exp(u.logit)
    return u.soft_truth * ((-u.logit).clip(lower_bound=0) + log1p_exp(u.logit))


def _keeps_off_ends(eps: Eps) -> bool:
    """Whether a probability clipped by it is neither 0 nor 1."""
    return isinstance(eps, str) or 0 < eps < 1 - eps < 1


def _clipped(u: Unit, eps: float | str) -> pl.Expr:
    if isinstance(eps, str):
        half, single, double = (u.probability.clip(tiny, 1 - tiny) for tiny in (2.0**-10, 2.0**-23, 2.0**-52))
        return by_float_type(u.door.raw_score, half=half, single=single, double=double)
    return u.probability.clip(eps, 1 - eps)


@metric(range=(0, INFINITY), best="min")
def kl_divergence(
    u: Unit, *, eps: Eps = 1e-15, logits: bool = False, average: Average = "micro", **options: Unpack[Averaged]
) -> pl.Expr:
    """The mean of t·ln(t/p) + (1-t)·ln((1-t)/(1-p)), of soft truths: 0 where p = t.

    It is `log_loss` less the entropy of the truths, which no model can go below, and with truths of 0 and 1 alone it
    is `log_loss`. The divergence of truths from scores, not the other way round (Kullback and Leibler 1951). `eps` and
    `logits` as in `log_loss`.
    """
    cost = _cost_of_logit(u) if logits else _cost(u, _clipped(u, eps), is_clipped=_keeps_off_ends(eps))
    entropy = times_log(u.soft_truth, u.soft_truth) + times_log_of_rest(1 - u.soft_truth, u.soft_truth)
    divergence = (cost + entropy).clip(lower_bound=0)  # what is left of equals may be below 0 by rounding
    return u.per_row(u.sum(f"kl_divergence@{'logits' if logits else eps}", divergence))


@metric(range=(0, INFINITY), best="min")
def focal_loss(
    u: Unit,
    *,
    gamma: NotNegative = 2.0,
    alpha: BetweenZeroAndOne | None = None,
    eps: Eps = 1e-15,
    logits: bool = False,
    average: Average = "micro",
    **options: Unpack[Averaged],
) -> pl.Expr:
    """The mean of -(1-q)^γ·ln q, of the probability q of what is true: p of a true row, 1-p of another.

    A row that is surely right counts little (Lin et al. 2017); at γ = 0 it is `log_loss`. `alpha` is the weight of true
    rows, and 1-alpha that of the others. In that paper the sum is divided by the number of objects; here it is a mean
    of rows. It is a loss to train with: where it is lowest, p is not how often the truth is true. So compare
    probabilities by `log_loss` or `brier_score`. `eps` and `logits` as in `log_loss`.
    """
    if logits:
        toward_truth = (2 * u.truth_number - 1) * u.logit
        missing, cost = sigmoid(-toward_truth), (-toward_truth).clip(lower_bound=0) + log1p_exp(toward_truth)
    else:
        p = _clipped(u, eps)
        missing = pl.when(u.truth).then(1 - p).otherwise(p)
        cost = -pl.when(u.truth).then(p.log()).otherwise(log_of_rest(p))
    weight: float | pl.Expr = 1.0 if alpha is None else pl.when(u.truth).then(alpha).otherwise(1 - alpha)
    name = f"focal_loss@{gamma},{alpha},{'logits' if logits else eps}"
    return u.per_row(u.sum(name, missing**gamma * cost * weight))


@metric(grain="sample", range=(0, INFINITY), best="min", undefined_when="no positives")
def multiclass_log_loss(
    u: Unit, *, eps: Eps = 1e-15, max_loss: Positive | None = None, **options: Unpack[Options]
) -> pl.Expr:
    """The mean over samples of -ln p of the true label. A sample with several true labels is broken.

    `eps=0` does not clip: a true label of probability 0 costs infinity. `max_loss` bounds the cost of a sample.
    """
    cost = u.sum(f"log_of_true@{eps}", pl.when(u.truth).then(-_clipped(u, eps).log()))
    return u.one_true_label(cost if max_loss is None else cost.clip(upper_bound=max_loss))


@metric(grain="sample", range=(0, INFINITY), best="min")
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
            cost -= times_log_of_rest(1 - t, p, base=base, of_zero=of_zero)
    return u.sum(f"cross_entropy@{base},{negatives},{log_of_zero},{logits}", cost)


@metric(range=(0, 1), best="min")
def brier_score(u: Unit, *, logits: bool = False, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """The mean of (t - p)²."""
    return u.per_row(_squared_gaps(u, logits=logits))


@metric(grain="sample", range=(0, INFINITY), best="min")
def multiclass_brier_score(u: Unit, **options: Unpack[Options]) -> pl.Expr:
    """The mean over samples of Σ_j (t - p)², summed over the sample's labels and not halved."""
    return _squared_gaps(u, logits=False)


def _squared_gaps(u: Unit, *, logits: bool) -> pl.Expr:
    gap = u.truth_number - probability_of(u, logits=logits)
    return u.sum(f"squared_gap@{logits=}", gap**2)


def uncertainty_of(u: Unit) -> pl.Expr:
    """The Brier score of the base rate π: π·(1-π)."""
    rows = u.positives() + u.negatives()
    return ratio(u.positives(), rows) * ratio(u.negatives(), rows)


@metric(range=(-INFINITY, 1), best="max", undefined_when="one class only")
def d2_brier(u: Unit, *, logits: bool = False, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """The Brier skill score: 1 - Brier score / (π·(1-π)) of the base rate π.

    0 is no better than the base rate, 1 is perfect.
    """
    return 1 - ratio(u.per_row(_squared_gaps(u, logits=logits)), uncertainty_of(u))


@metric(range=(0, INFINITY), best="min", undefined_when="one class only")
def normalized_entropy(
    u: Unit, *, eps: Eps = 1e-15, logits: bool = False, average: Average = "micro", **options: Unpack[Averaged]
) -> pl.Expr:
    """The log loss / that of the base rate π, -(π·ln π + (1-π)·ln(1-π)). 1 is no better than the base rate."""
    return _normalized_entropy(u, eps, logits=logits)


def _normalized_entropy(u: Unit, eps: Eps, *, logits: bool) -> pl.Expr:
    rows = u.positives() + u.negatives()
    true, other = ratio(u.positives(), rows), ratio(u.negatives(), rows)
    entropy = -times_own_log(true, other) - times_own_log(other, true)
    return ratio(_mean_log_loss(u, eps, logits=logits), entropy)


@metric(range=(-INFINITY, 1), best="max", undefined_when="one class only")
def d2_log_loss(
    u: Unit, *, eps: Eps = 1e-15, logits: bool = False, average: Average = "micro", **options: Unpack[Averaged]
) -> pl.Expr:
    """The share of the base rate's log loss that is not lost: 1 - `normalized_entropy`. 0 is that of the base rate.

    `eps` and `logits` as in `log_loss`.
    """
    return 1 - _normalized_entropy(u, eps, logits=logits)


@metric(grain="group", range=(-INFINITY, 1), best="max", undefined_when="one class only")
def d2_multiclass_log_loss(u: Unit, *, eps: Eps = 1e-15, **options: Unpack[Options]) -> pl.Expr:
    """The share of the log loss of the class shares that is not lost: 1 - Σ -ln p of the true label / Σ -ln share.

    The shares are those of the classes in the group, so 0 is a model that knows no more than them. A sample without a
    true label is left out; one with several true labels is broken. `eps` as in `log_loss`. Of two classes in one row
    a sample use `d2_log_loss`.
    """
    cost = u.sum(f"log_of_true@{eps}", pl.when(u.truth).then(-_clipped(u, eps).log()))
    (of_class,) = u.by_label(u.truth.cast(pl.Float64).alias("of_true_class"))
    of_shares = -times_log(of_class, share(of_class, u.positives())).sum()
    return unless_several(u, 1 - ratio(cost, of_shares))


@metric(grain="sample", range=(-INFINITY, INFINITY), best="max", undefined_when="no positives")
def information_score(
    u: Unit, *, prior: Annotated[OfRow | None, TO_MERGE] = None, **options: Unpack[Options]
) -> pl.Expr:
    """The mean bits that the probability p of the true label adds to its prior a (Kononenko and Bratko).

    log2 p - log2 a where p >= a, else log2(1-a) - log2(1-p). The prior is a column, an expression or {label: prior};
    without one it is the label's share in the true labels of the group, and then the metric has no state. A sample
    with several true labels is broken, as is a prior outside [0, 1].
    """
    p = u.probability
    if prior is None:
        priors = ratio(u.within("true", u.truth, "sum", "label"), u.within("true", u.truth, "sum", "group"))
    else:
        priors = u.of_row("prior", prior)
        u.needs_known(f"prior@{prior}", u.truth & priors.is_null(), lack="prior")
        u.breaks_on(f"prior@{prior}", u.truth & ~priors.is_between(0, 1))
    gained = (
        pl.when(p > priors)
        .then(p.log(2) - priors.log(2))
        .otherwise(log_of_rest(priors, base=2) - log_of_rest(p, base=2))
    )
    # Of one true label the highest is its own.
    bits = u.max(f"information@{prior}", pl.when(u.truth).then(pl.when(p == priors).then(0.0).otherwise(gained)))
    return u.one_true_label(bits)
