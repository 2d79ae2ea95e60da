"""One slow function for each metric, written from its definition and from nothing else.

A function gets the included rows of ONE unit (a group, a label or a sample) and returns its value, or None where the
metric is undefined. Masks, broken rows, averages and `undefined=` are not known here: they are in `oracle.py`.
A unit of grain sample comes with all its weights 1. What they must know of a metric, `@reference` says at its function.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Threshold = float | str | Mapping[Any, float] | object


@dataclass(frozen=True)
class Declared:
    """What is true of a metric by its definition: its units, what it reads, the kinds of score and truth it takes."""

    units: str = "average"  # "average" chooses them; else "group", "sample" or "label"
    reads: str = "score truth"
    score: str = "real"  # real | probability | any
    truth: str = "binary"  # binary | soft | real | any
    looks_across: bool = False  # the value of a row needs the other rows of its sample, whatever the units are


DECLARED: dict[str, Declared] = {}


def reference(**facts: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a function the reference of the metric of its name."""

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        DECLARED[function.__name__] = Declared(**facts)
        return function

    return declare


@dataclass(frozen=True)
class Row:
    """One included row. The last fields are what a metric must know of other rows or of the column's type."""

    sample: Hashable
    label: Hashable
    score: Any
    truth: Any
    weight: float = 1.0
    broken: bool = False
    limit: float | None = None  # the value of a threshold that is an expression
    top_share: float = 0.0  # 1/m where this is one of the m best labels of its sample, else 0
    highest_negative: float | None = None  # best score of a false label of the same sample
    float_type: type[np.floating[Any]] = np.float64  # what the score column was before it became Float64


class UnknownThresholdError(LookupError):
    """No threshold is known for a row: the metric cannot be known either."""


def total(values: Iterable[float]) -> float:
    """A sum without rounding on the way; infinities of both signs give NaN instead of an error."""
    found = list(values)
    if all(math.isfinite(value) for value in found):
        return math.fsum(found)
    return float(sum(found))


def times(weight: float, value: float) -> float:
    """A weight of 0 takes an infinite cost away, as if the row were not there."""
    return 0.0 if weight == 0 else weight * value


def over(numerator: float, denominator: float) -> float | None:
    return None if denominator == 0 else numerator / denominator


def mean(rows: Sequence[Row], values: Iterable[float]) -> float | None:
    """Weighted mean over the rows."""
    return over(total(times(row.weight, value) for row, value in zip(rows, values, strict=True)), weight_of(rows))


def weight_of(rows: Iterable[Row]) -> float:
    return total(row.weight for row in rows)


# --- decisions ------------------------------------------------------------------------------------------------------


def is_argmax(threshold: Threshold) -> bool:
    return isinstance(threshold, str) and threshold == "argmax"


def predicted(row: Row, threshold: Threshold, inclusive: bool) -> float:
    """The share to which the row's label is predicted: 0 or 1, a fraction only for "argmax"."""
    if is_argmax(threshold):
        return row.top_share
    limit = row.limit
    if isinstance(threshold, Mapping):
        limit = threshold[row.label] if row.label in threshold else threshold.get(None)
    elif isinstance(threshold, int | float):
        limit = threshold
    if limit is None:
        raise UnknownThresholdError(row.label)
    limit = float(row.float_type(limit))
    return float(row.score >= limit if inclusive else row.score > limit)


@dataclass(frozen=True)
class Counts:
    tp: float
    fp: float
    fn: float
    tn: float


def count(rows: Sequence[Row], threshold: Threshold, inclusive: bool) -> Counts:
    says = [predicted(row, threshold, inclusive) for row in rows]
    pairs = list(zip(rows, says, strict=True))
    return Counts(
        tp=total(row.weight * said for row, said in pairs if row.truth == 1),
        fp=total(row.weight * said for row, said in pairs if row.truth == 0),
        fn=total(row.weight * (1 - said) for row, said in pairs if row.truth == 1),
        tn=total(row.weight * (1 - said) for row, said in pairs if row.truth == 0),
    )


@reference()
def true_positives(rows: Sequence[Row], *, threshold: Threshold = 0.5, inclusive: bool = False) -> float | None:
    return count(rows, threshold, inclusive).tp


@reference()
def false_positives(rows: Sequence[Row], *, threshold: Threshold = 0.5, inclusive: bool = False) -> float | None:
    return count(rows, threshold, inclusive).fp


@reference()
def false_negatives(rows: Sequence[Row], *, threshold: Threshold = 0.5, inclusive: bool = False) -> float | None:
    return count(rows, threshold, inclusive).fn


@reference()
def true_negatives(rows: Sequence[Row], *, threshold: Threshold = 0.5, inclusive: bool = False) -> float | None:
    return count(rows, threshold, inclusive).tn


@reference(reads="truth")
def support(rows: Sequence[Row]) -> float | None:
    return total(row.weight * row.truth for row in rows) if rows else None


@reference(reads="truth")
def prevalence(rows: Sequence[Row]) -> float | None:
    return mean(rows, [row.truth for row in rows])


@reference(reads="score")
def predicted_rate(rows: Sequence[Row], *, threshold: Threshold = 0.5, inclusive: bool = False) -> float | None:
    return mean(rows, [predicted(row, threshold, inclusive) for row in rows])


@reference()
def precision(rows: Sequence[Row], *, threshold: Threshold = 0.5, inclusive: bool = False) -> float | None:
    c = count(rows, threshold, inclusive)
    return over(c.tp, c.tp + c.fp)


@reference()
def recall(rows: Sequence[Row], *, threshold: Threshold = 0.5, inclusive: bool = False) -> float | None:
    c = count(rows, threshold, inclusive)
    return over(c.tp, c.tp + c.fn)


@reference()
def specificity(rows: Sequence[Row], *, threshold: Threshold = 0.5, inclusive: bool = False) -> float | None:
    c = count(rows, threshold, inclusive)
    return over(c.tn, c.tn + c.fp)


@reference()
def negative_predictive_value(
    rows: Sequence[Row], *, threshold: Threshold = 0.5, inclusive: bool = False
) -> float | None:
    c = count(rows, threshold, inclusive)
    return over(c.tn, c.tn + c.fn)


@reference()
def false_positive_rate(rows: Sequence[Row], *, threshold: Threshold = 0.5, inclusive: bool = False) -> float | None:
    c = count(rows, threshold, inclusive)
    return over(c.fp, c.fp + c.tn)


@reference()
def false_negative_rate(rows: Sequence[Row], *, threshold: Threshold = 0.5, inclusive: bool = False) -> float | None:
    c = count(rows, threshold, inclusive)
    return over(c.fn, c.fn + c.tp)


@reference()
def fbeta(rows: Sequence[Row], *, beta: float, threshold: Threshold = 0.5, inclusive: bool = False) -> float | None:
    c = count(rows, threshold, inclusive)
    square = beta * beta
    return over((1 + square) * c.tp, (1 + square) * c.tp + square * c.fn + c.fp)


@reference()
def f1(rows: Sequence[Row], *, threshold: Threshold = 0.5, inclusive: bool = False) -> float | None:
    c = count(rows, threshold, inclusive)
    if c.tp == c.fp == c.fn == 0:
        return None
    return 2 * c.tp / (2 * c.tp + c.fp + c.fn)


@reference()
def jaccard(rows: Sequence[Row], *, threshold: Threshold = 0.5, inclusive: bool = False) -> float | None:
    c = count(rows, threshold, inclusive)
    return over(c.tp, c.tp + c.fp + c.fn)


def right(row: Row, threshold: Threshold, inclusive: bool) -> float:
    said = predicted(row, threshold, inclusive)
    return said if row.truth == 1 else 1 - said


@reference()
def accuracy(rows: Sequence[Row], *, threshold: Threshold = 0.5, inclusive: bool = False) -> float | None:
    return mean(rows, [right(row, threshold, inclusive) for row in rows])


@reference()
def hamming_loss(rows: Sequence[Row], *, threshold: Threshold = 0.5, inclusive: bool = False) -> float | None:
    return mean(rows, [1 - right(row, threshold, inclusive) for row in rows])


@reference()
def balanced_accuracy(rows: Sequence[Row], *, threshold: Threshold = 0.5, inclusive: bool = False) -> float | None:
    of_positives = recall(rows, threshold=threshold, inclusive=inclusive)
    of_negatives = specificity(rows, threshold=threshold, inclusive=inclusive)
    return None if of_positives is None or of_negatives is None else (of_positives + of_negatives) / 2


@reference()
def informedness(rows: Sequence[Row], *, threshold: Threshold = 0.5, inclusive: bool = False) -> float | None:
    of_positives = recall(rows, threshold=threshold, inclusive=inclusive)
    of_negatives = specificity(rows, threshold=threshold, inclusive=inclusive)
    return None if of_positives is None or of_negatives is None else of_positives + of_negatives - 1


@reference()
def mcc(rows: Sequence[Row], *, threshold: Threshold = 0.5, inclusive: bool = False) -> float | None:
    c = count(rows, threshold, inclusive)
    margins = (c.tp + c.fp, c.tp + c.fn, c.tn + c.fp, c.tn + c.fn)
    if 0 in margins:
        return None
    return (c.tp * c.tn - c.fp * c.fn) / math.prod(math.sqrt(margin) for margin in margins)


@reference()
def cohen_kappa(rows: Sequence[Row], *, threshold: Threshold = 0.5, inclusive: bool = False) -> float | None:
    c = count(rows, threshold, inclusive)
    margins = (c.tp + c.fp, c.tp + c.fn, c.tn + c.fp, c.tn + c.fn)
    if 0 in margins:
        return None
    everything = c.tp + c.fp + c.fn + c.tn
    agreed = (c.tp + c.tn) / everything
    by_chance = (margins[0] * margins[1] + margins[2] * margins[3]) / everything**2
    return (agreed - by_chance) / (1 - by_chance)


@reference(units="group", reads="", score="any", truth="any")
def n_rows(rows: Sequence[Row]) -> int | None:
    return len(rows)


@reference(units="group", reads="", score="any", truth="any")
def n_samples(rows: Sequence[Row]) -> int | None:
    return len({row.sample for row in rows if row.sample is not None})


@reference(units="group", reads="", score="any", truth="any")
def n_excluded(rows: Sequence[Row], *, excluded: int = 0) -> int | None:
    """Rows left out are not among the rows, so whoever left them out must say how many."""
    return excluded


@reference(units="sample")
def subset_accuracy(rows: Sequence[Row], *, threshold: Threshold = 0.5, inclusive: bool = False) -> float | None:
    if not rows:
        return None
    if is_argmax(threshold):  # one of the best labels is drawn: the chance that it is the true label and the only one
        true = [row for row in rows if row.truth == 1]
        return true[0].top_share if len(true) == 1 else 0.0
    return float(all(right(row, threshold, inclusive) == 1 for row in rows))


@reference(score="any", truth="any")
def classification_accuracy(rows: Sequence[Row]) -> float | None:
    return mean(rows, [float(row.score == row.truth) for row in rows])


@reference(units="sample", score="any", truth="any")
def global_accuracy(rows: Sequence[Row]) -> float | None:
    return float(all(row.score == row.truth for row in rows)) if rows else None


# --- probabilities --------------------------------------------------------------------------------------------------


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
    true = [row for row in rows if row.truth == 1]
    if not true:
        return None
    if len(true) > 1:
        return math.nan
    cost = cost_of(1.0, clip(true[0].score, smallest(true[0], eps)))
    return cost if max_loss is None else min(cost, max_loss)


@reference(score="probability")
def brier_score(rows: Sequence[Row], *, logits: bool = False) -> float | None:
    return mean(rows, [(row.truth - probability(row.score, logits)) ** 2 for row in rows])


@reference(score="probability")
def calibration_error(rows: Sequence[Row], *, bins: int = 15, norm: str = "l1", logits: bool = False) -> float | None:
    by_bin: dict[int, list[tuple[Row, float]]] = {}
    for row in rows:
        p = probability(row.score, logits)
        by_bin.setdefault(min(math.floor(p * bins), bins - 1), []).append((row, p))
    sizes, gaps = [], []
    for members in by_bin.values():
        size = total(row.weight for row, _ in members)
        if size > 0:
            mean_p = total(row.weight * p for row, p in members) / size
            mean_t = total(row.weight * row.truth for row, _ in members) / size
            sizes.append(size)
            gaps.append(abs(mean_p - mean_t))
    if not sizes:
        return None
    if norm == "max":
        return max(gaps)
    if norm == "l1":
        return total(size * gap for size, gap in zip(sizes, gaps, strict=True)) / total(sizes)
    return math.sqrt(total(size * gap**2 for size, gap in zip(sizes, gaps, strict=True)) / total(sizes))


# --- rankings: the rows of one sample -------------------------------------------------------------------------------


def scores_of(rows: Sequence[Row], truth: int) -> list[float]:
    return [row.score for row in rows if row.truth == truth]


@reference(units="sample")
def one_error(rows: Sequence[Row]) -> float | None:
    if not rows:
        return None
    best = max(row.score for row in rows)
    tied = [row for row in rows if row.score == best]
    return sum(row.truth == 0 for row in tied) / len(tied)


@reference(units="sample")
def coverage_error(rows: Sequence[Row], *, base: int = 1) -> float | None:
    positives = scores_of(rows, 1)
    if not positives:
        return None
    return float(sum(row.score >= min(positives) for row in rows) - (1 - base))


@reference(units="sample")
def ranking_loss(rows: Sequence[Row], *, pairs: str = "relevant", ties: str = "wrong") -> float | None:
    of_tie = {"wrong": 1.0, "right": 0.0, "half": 0.5}[ties]
    positives, negatives = scores_of(rows, 1), scores_of(rows, 0)
    wrong = 0.0
    for p in positives:
        for n in negatives:
            wrong += 1.0 if n > p else of_tie if n == p else 0.0
    if pairs == "all":
        return over(wrong, len(rows) * (len(rows) - 1) / 2)
    return over(wrong, len(positives) * len(negatives))


@reference(units="sample")
def label_ranking_average_precision(rows: Sequence[Row]) -> float | None:
    positives = scores_of(rows, 1)
    shares = [sum(q >= p for q in positives) / sum(row.score >= p for row in rows) for p in positives]
    return over(total(shares), len(shares))


@reference(units="sample")
def exact_match_prefix(rows: Sequence[Row]) -> float | None:
    if not rows:
        return None
    return float(all(p > n for p in scores_of(rows, 1) for n in scores_of(rows, 0)))


@reference(units="label", looks_across=True)
def labelwise_precision(rows: Sequence[Row]) -> float | None:
    """The rows of one label, each with the highest negative of its sample."""
    true = [row for row in rows if row.truth == 1]
    return mean(true, [float(row.highest_negative is None or row.score > row.highest_negative) for row in true])


# --- separation -----------------------------------------------------------------------------------------------------


@reference()
def roc_auc(rows: Sequence[Row]) -> float | None:
    """Chance that a positive is above a negative, pair by pair; a tie is half a win."""
    positives = [row for row in rows if row.truth == 1]
    negatives = [row for row in rows if row.truth == 0]
    wins = [
        p.weight * n.weight * (1.0 if p.score > n.score else 0.5 if p.score == n.score else 0.0)
        for p in positives
        for n in negatives
    ]
    return over(total(wins), weight_of(positives) * weight_of(negatives))


@reference()
def average_precision(rows: Sequence[Row]) -> float | None:
    """Each step of recall times the precision there; rows of one score step together."""
    positives = weight_of(row for row in rows if row.truth == 1)
    if positives == 0:
        return None
    steps = []
    for score in {row.score for row in rows}:
        step = weight_of(row for row in rows if row.score == score and row.truth == 1)
        if step > 0:
            above = [row for row in rows if row.score >= score]
            steps.append(step * weight_of(row for row in above if row.truth == 1) / weight_of(above))
    return total(steps) / positives


# --- regression -----------------------------------------------------------------------------------------------------


@reference(truth="real")
def rmse(rows: Sequence[Row]) -> float | None:
    square = mean(rows, [(row.score - row.truth) ** 2 for row in rows])
    return None if square is None else math.sqrt(square)


@reference(truth="real")
def mae(rows: Sequence[Row]) -> float | None:
    return mean(rows, [abs(row.score - row.truth) for row in rows])
