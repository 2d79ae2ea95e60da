"""The references of probabilities: costs of a score that is one, and calibration."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tests.laws.references.rows import (
    Row,
    UnknownLimitError,
    mean,
    negatives_of,
    positives_of,
    reference,
    total,
    weight_of,
)


def softplus(x: float) -> float:
    """ln(1 + e^x) without overflow."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def probability(score: float, logits: bool) -> float:
    if not logits:
        return score
    return 1 / (1 + math.exp(-score)) if score >= 0 else math.exp(score) / (1 + math.exp(score))


def smallest(row: Row, eps: float | str) -> float:
    return float(np.finfo(row.float_type).eps) if eps == "dtype" else float(eps)


def clip(p: float, eps: float) -> float:
    return min(max(p, eps), 1 - eps)


def cost_of(share: float, p: float) -> float:
    """-share * ln p, where a share of 0 costs nothing, whatever p is."""
    if share == 0:
        return 0.0
    return math.inf if p == 0 else -share * math.log(p)


@reference(score="probability", truth="soft")
def log_loss(rows: Sequence[Row], *, eps: float | str = 1e-15, logits: bool = False) -> float | None:
    def cost(row: Row) -> float:
        if logits:
            return row.truth * softplus(-row.score) + (1 - row.truth) * softplus(row.score)
        p = clip(row.score, smallest(row, eps))
        return cost_of(row.truth, p) + cost_of(1 - row.truth, 1 - p)

    return mean(rows, [cost(row) for row in rows])


@reference(score="probability", truth="soft")
def kl_divergence(rows: Sequence[Row], *, eps: float | str = 1e-15, logits: bool = False) -> float | None:
    def part(share: float, p: float) -> float:
        if share == 0:
            return 0.0
        # Of the smallest p the quotient is no float, and the difference is.
        return share * (math.log(share) - math.log(p)) if p > 0 else math.inf

    def of(row: Row) -> float:
        if logits:
            # A far logit has no probability above 0, but a logarithm of it.
            far = row.truth * softplus(-row.score) + (1 - row.truth) * softplus(row.score)
            return part(row.truth, 1.0) + part(1 - row.truth, 1.0) + far
        p = clip(row.score, smallest(row, eps))
        return part(row.truth, p) + part(1 - row.truth, 1 - p)

    return mean(rows, [of(row) for row in rows])


@reference(score="probability")
def focal_loss(
    rows: Sequence[Row],
    *,
    gamma: float = 2.0,
    alpha: float | None = None,
    eps: float | str = 1e-15,
    logits: bool = False,
) -> float | None:
    def of(row: Row) -> float:
        if logits:
            right, wrong = (row.score, -row.score) if row.truth == 1 else (-row.score, row.score)
            loss, missing = softplus(-right), probability(wrong, True)
        else:
            p = clip(row.score, smallest(row, eps))
            right, missing = (p, 1 - p) if row.truth == 1 else (1 - p, p)
            loss = cost_of(1.0, right)
        weight = 1.0 if alpha is None else alpha if row.truth == 1 else 1 - alpha
        return weight * missing**gamma * loss

    return mean(rows, [of(row) for row in rows])


@reference(units="sample", score="probability", truth="soft")
def multilabel_cross_entropy(
    rows: Sequence[Row],
    *,
    base: float | str = "e",
    negatives: bool = True,
    log_of_zero: float | None = None,
    logits: bool = False,
) -> float | None:
    def log(p: float) -> float:
        if p == 0:
            return -math.inf if log_of_zero is None else log_of_zero
        return math.log(p) if base == "e" else math.log2(p) if base == 2 else math.log(p, float(base))

    def log_sigmoid(a: float) -> float:
        return -softplus(-a) / (1.0 if base == "e" else math.log(float(base)))

    costs = []
    for row in rows:
        log_p = log_sigmoid(row.score) if logits else log(row.score)
        log_q = log_sigmoid(-row.score) if logits else log(1 - row.score)
        costs.append(-row.truth * log_p if row.truth > 0 else 0.0)
        costs.append(-(1 - row.truth) * log_q if negatives and row.truth < 1 else 0.0)
    return total(costs) if rows else None


@reference(units="sample", score="probability")
def multiclass_log_loss(
    rows: Sequence[Row], *, eps: float | str = 1e-15, max_loss: float | None = None
) -> float | None:
    true = positives_of(rows)
    if len(true) != 1:
        return math.nan if true else None
    cost = cost_of(1.0, clip(true[0].score, smallest(true[0], eps)))
    return cost if max_loss is None else min(cost, max_loss)


@reference(score="probability")
def brier_score(rows: Sequence[Row], *, logits: bool = False) -> float | None:
    return mean(rows, [(row.truth - probability(row.score, logits)) ** 2 for row in rows])


@reference(units="sample", score="probability")
def multiclass_brier_score(rows: Sequence[Row]) -> float | None:
    return total((row.truth - row.score) ** 2 for row in rows) if rows else None


@reference(score="probability")
def normalized_entropy(rows: Sequence[Row], *, eps: float | str = 1e-15, logits: bool = False) -> float | None:
    """The log loss, as a share of the log loss of whoever knows nothing but how often the truth is true."""
    shares = [weight_of(positives_of(rows)), weight_of(negatives_of(rows))]
    if 0 in shares:
        return None
    loss = log_loss(rows, eps=eps, logits=logits)
    return None if loss is None else loss / total(cost_of(w / sum(shares), w / sum(shares)) for w in shares)


@reference(units="sample", score="probability")
def information_score(rows: Sequence[Row], *, prior: Any = None) -> float | None:
    """The prior of a row is its limit; only where labels are named with theirs, it is looked up here."""

    def log2(p: float) -> float:
        return math.log2(p) if p > 0 else -math.inf

    true = positives_of(rows)
    if len(true) != 1:
        return math.nan if true else None
    p, a = true[0].score, prior.get(true[0].label) if isinstance(prior, Mapping) else true[0].limit
    if a is None and prior is None:
        return None  # no true row of the group weighs anything: a share of nothing
    if a is None:
        raise UnknownLimitError(true[0].label)
    if not 0 <= a <= 1:
        return math.nan
    if p == a:
        return 0.0
    return log2(p) - log2(a) if p > a else log2(1 - a) - log2(1 - p)


@reference(units="group", score="probability", looks_across=True, by_label=True)
def d2_multiclass_log_loss(rows: Sequence[Row], *, eps: float | str = 1e-15) -> float | None:
    """One less the loss of the model by the loss of a model that gives each class its share."""
    true = positives_of(rows)
    if len({row.sample for row in true}) < len(true):
        return math.nan
    whole = weight_of(true)
    if whole == 0:
        return None
    share = {row.label: weight_of(other for other in true if other.label == row.label) / whole for row in true}
    loss = mean(true, [cost_of(1.0, clip(row.score, smallest(row, eps))) for row in true])
    of_shares = mean(true, [cost_of(1.0, share[row.label]) if row.weight else 0.0 for row in true])
    return 1 - loss / of_shares if of_shares and loss is not None else None


@reference(score="probability")
def d2_brier(rows: Sequence[Row], *, logits: bool = False) -> float | None:
    loss, rate = brier_score(rows, logits=logits), mean(rows, [row.truth for row in rows])
    return None if not rate or rate == 1 or loss is None else 1 - loss / (rate * (1 - rate))


@reference(score="probability")
def d2_log_loss(rows: Sequence[Row], *, eps: float | str = 1e-15, logits: bool = False) -> float | None:
    share = normalized_entropy(rows, eps=eps, logits=logits)
    return None if share is None else 1 - share
