"""One slow function for each metric, written from its definition and from nothing else.

A function gets the included rows of ONE unit (a group, a label or a sample) and returns its value, or None where the
metric is undefined. Masks, broken rows, averages and `undefined=` are not known here: they are in `oracle.py`.
A unit of grain sample comes with all its weights 1. What they must know of a metric, `@reference` says at its function.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

Threshold = float | str | Mapping[Any, float] | object


@dataclass(frozen=True)
class Declared:
    """What is true of a metric by its definition: its units, what it reads, the kinds of score and truth it takes."""

    units: str = "average"  # "average" chooses them; else "group", "sample" or "label"
    reads: str = "score truth"
    score: str = "real"  # real | probability | positive | above -1 | any
    truth: str = "binary"  # binary | soft | gain | real | positive | above -1 | any
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
    limit: float | None = None  # a threshold or a prior that is worked out from the row, or from its group
    top_share: float = 0.0  # 1/m where this is one of the m best labels of its sample, else 0
    highest_negative: float | None = None  # best score of a false label of the same sample
    float_type: type[np.floating[Any]] = np.float64  # what the score column was before it became Float64


class UnknownLimitError(LookupError):
    """No threshold or no prior is known for a row: the metric cannot be known either."""


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


def positives_of(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row.truth == 1]


def negatives_of(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row.truth == 0]


# --- decisions ------------------------------------------------------------------------------------------------------


def is_argmax(threshold: Threshold) -> bool:
    return isinstance(threshold, str) and threshold == "argmax"


def predicted(row: Row, threshold: Threshold, inclusive: bool) -> float:
    """The share to which the row's label is predicted: 0 or 1, a fraction only for "argmax"; not returned, never."""
    if is_argmax(threshold):
        return row.top_share if row.score > -math.inf else 0.0
    limit = row.limit
    if isinstance(threshold, Mapping):
        limit = threshold[row.label] if row.label in threshold else threshold.get(None)
    elif isinstance(threshold, int | float):
        limit = threshold
    if limit is None:
        raise UnknownLimitError(row.label)
    limit = float(row.float_type(limit))
    return float(row.score > -math.inf and (row.score >= limit if inclusive else row.score > limit))


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
    tp, fp, fn, tn = exact([c.tp, c.fp, c.fn, c.tn])
    everything = tp + fp + fn + tn
    agreed = (tp + tn) / everything
    by_chance = ((tp + fp) * (tp + fn) + (tn + fp) * (tn + fn)) / everything**2
    return float((agreed - by_chance) / (1 - by_chance))


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
        return predicted(true[0], threshold, inclusive) if len(true) == 1 else 0.0
    each = [right(row, threshold, inclusive) for row in rows]  # of every row, so that an unknown threshold is seen
    return float(all(value == 1 for value in each))


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
def calibration_bias(rows: Sequence[Row], *, logits: bool = False) -> float | None:
    return mean(rows, [probability(row.score, logits) - row.truth for row in rows])


@reference(score="probability")
def calibration_ratio(rows: Sequence[Row], *, logits: bool = False) -> float | None:
    return over(total(row.weight * probability(row.score, logits) for row in rows), weight_of(positives_of(rows)))


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


# --- returned lists: a row with a score of -inf was not returned ----------------------------------------------------


def above(row: Row, rows: Sequence[Row]) -> int:
    """How many labels of the sample stand strictly higher."""
    return sum(other.score > row.score for other in rows)


def rank(row: Row, rows: Sequence[Row]) -> int:
    """How many labels of the sample stand as high or higher, the row itself among them."""
    return sum(other.score >= row.score for other in rows)


def fraction(row: Row, rows: Sequence[Row], k: int | None) -> float:
    """The share to which a row is among the k best: 0 or 1, a fraction where its tie group goes across the border."""
    if row.score == -math.inf:
        return 0.0
    if k is None:
        return 1.0
    better = above(row, rows)
    return min(max((k - better) / (rank(row, rows) - better), 0.0), 1.0)


def hits(rows: Sequence[Row], k: int) -> list[float]:
    """The fraction of each positive."""
    return [fraction(row, rows, k) for row in positives_of(rows)]


@reference(units="sample")
def precision_at(rows: Sequence[Row], *, k: int) -> float | None:
    return total(hits(rows, k)) / k if rows else None


@reference(units="sample")
def recall_at(rows: Sequence[Row], *, k: int) -> float | None:
    return over(total(hits(rows, k)), len(positives_of(rows)))


@reference(units="sample")
def hit_at(rows: Sequence[Row], *, k: int) -> float | None:
    return max(hits(rows, k), default=0.0) if rows else None


@reference(units="sample")
def f1_at(rows: Sequence[Row], *, k: int) -> float | None:
    return 2 * total(hits(rows, k)) / (k + len(positives_of(rows))) if rows else None


@reference(units="sample")
def r_precision(rows: Sequence[Row]) -> float | None:
    positives = len(positives_of(rows))
    return over(total(hits(rows, positives)), positives)


@reference(units="sample")
def reciprocal_rank(rows: Sequence[Row], *, k: int | None = None) -> float | None:
    positives = positives_of(rows)
    if not positives:
        return None
    best = max(positives, key=lambda row: row.score)
    position = (above(best, rows) + 1 + rank(best, rows)) / 2
    found = best.score > -math.inf and (k is None or position <= k)
    return 1 / position if found else 0.0


@reference(units="sample")
def average_precision_at(rows: Sequence[Row], *, k: int | None = None, denominator: str = "possible") -> float | None:
    positives = positives_of(rows)
    steps = [fraction(row, rows, k) * rank(row, positives) / rank(row, rows) for row in positives]
    possible = len(positives) if k is None or denominator == "positives" else min(len(positives), k)
    return over(total(steps), possible)


def discounted(gains: Iterable[float], k: int | None) -> float:
    """The gains of the places from the first, each by its discount, those beyond k left out."""
    return total(gain / math.log2(place + 2) for place, gain in enumerate(gains) if k is None or place < k)


def gain_of(row: Row, gain: str) -> float:
    return 2.0**row.truth - 1 if gain == "exponential" else row.truth


@reference(units="sample", truth="gain")
def dcg(rows: Sequence[Row], *, k: int | None = None, gain: str = "linear", ties: str = "average") -> float | None:
    if not rows:
        return None
    returned = [row for row in rows if row.score > -math.inf]
    if ties == "ignore":  # in the order of the labels, and of one label the higher gain first
        returned.sort(key=lambda row: (-row.score, row.label, -row.truth))
        return discounted([gain_of(row, gain) for row in returned], k)
    gains = []
    for score in sorted({row.score for row in returned}, reverse=True):
        tied = [gain_of(row, gain) for row in returned if row.score == score]
        gains += [total(tied) / len(tied)] * len(tied)
    return discounted(gains, k)


@reference(units="sample", truth="gain")
def ndcg(rows: Sequence[Row], *, k: int | None = None, gain: str = "linear", ties: str = "average") -> float | None:
    found = dcg(rows, k=k, gain=gain, ties=ties)
    return None if found is None else over(found, discounted(sorted((gain_of(r, gain) for r in rows), reverse=True), k))


@reference(units="sample")
def top_k_accuracy(rows: Sequence[Row], *, k: int) -> float | None:
    true = positives_of(rows)
    if len(true) != 1:
        return math.nan if true else None
    return fraction(true[0], rows, k)


# --- separation -----------------------------------------------------------------------------------------------------


HELD = 1e-12  # by so much, relatively, a rounded sum of weights may miss a bound and still keep it


def logit_cell(p: float, bins: int) -> int:
    """The cell of a probability: equal steps of its logit from -16 to 16, all that is beyond in the last ones."""
    if p in (0, 1):
        return 0 if p == 0 else bins - 1
    return min(max(math.floor((math.log(p) - math.log1p(-p) + 16) / 32 * bins), 0), bins - 1)


def float_cell(score: float, bins: int) -> int:
    """The cell of any number: equal steps of a scale that is straight near 0 and a logarithm far from it."""
    if math.isinf(score):
        return 0 if score < 0 else bins - 1
    y = math.copysign(math.log2(1 + 2**16 * abs(score)), score)
    return min(max(math.floor((y + 40) / 80 * bins), 0), bins - 1)


def tied_in_cells(rows: Sequence[Row], bins: int | None, grid: str) -> list[Row]:
    """The rows, and for a score, where bins are given, the number of its cell."""
    if bins is None:
        return list(rows)
    cell = logit_cell if grid == "logit" else float_cell
    return [replace(row, score=float(cell(row.score, bins))) for row in rows]


@dataclass(frozen=True)
class Point:
    """What is predicted at a threshold."""

    tp: float
    fp: float
    positives: float
    negatives: float

    @property
    def tpr(self) -> float:
        return self.tp / self.positives

    @property
    def fpr(self) -> float:
        return self.fp / self.negatives

    @property
    def precision(self) -> float | None:
        return over(self.tp, self.tp + self.fp)


def points_of(rows: Sequence[Row], bins: int | None, grid: str) -> list[Point]:
    """From "nothing is predicted" to "everything is", by distinct score. No points where there is one class only."""
    rows = tied_in_cells(rows, bins, grid)
    true, false = positives_of(rows), negatives_of(rows)
    whole = weight_of(true), weight_of(false)
    if 0 in whole:
        return []
    points = [Point(0.0, 0.0, *whole)]
    for score in sorted({row.score for row in rows}, reverse=True):
        tp, fp = (weight_of(row for row in part if row.score >= score) for part in (true, false))
        points.append(Point(tp, fp, *whole))
    return points


@reference()
def roc_auc(
    rows: Sequence[Row], *, max_fpr: float | None = None, bins: int | None = None, grid: str = "logit"
) -> float | None:
    """Chance that a positive is above a negative, pair by pair; a tie is half a win."""
    if max_fpr is not None and max_fpr < 1:
        return partial_area(points_of(rows, bins, grid), max_fpr)
    rows = tied_in_cells(rows, bins, grid)
    positives, negatives = positives_of(rows), negatives_of(rows)
    wins = [
        p.weight * n.weight * (1.0 if p.score > n.score else 0.5 if p.score == n.score else 0.0)
        for p in positives
        for n in negatives
    ]
    return over(total(wins), weight_of(positives) * weight_of(negatives))


def partial_area(points: Sequence[Point], max_fpr: float) -> float | None:
    """McClish: the area up to a false positive rate, moved and stretched so that chance is 1/2 and the best is 1."""
    if not points:
        return None
    areas = []
    for one, other in pairwise(points):
        width = other.fpr - one.fpr
        inside = min(other.fpr, max_fpr) - one.fpr
        if inside > 0:
            end = one.tpr + (other.tpr - one.tpr) * inside / width
            areas.append(inside * (one.tpr + end) / 2)
    lowest, highest = max_fpr**2 / 2, max_fpr
    return (1 + (total(areas) - lowest) / (highest - lowest)) / 2


@reference()
def gini(rows: Sequence[Row], *, bins: int | None = None, grid: str = "logit") -> float | None:
    area = roc_auc(rows, bins=bins, grid=grid)
    return None if area is None else 2 * area - 1


@reference()
def average_precision(rows: Sequence[Row], *, bins: int | None = None, grid: str = "logit") -> float | None:
    """Each step of recall times the precision there; rows of one score step together."""
    rows = tied_in_cells(rows, bins, grid)
    positives = weight_of(positives_of(rows))
    if positives == 0:
        return None
    steps = []
    for score in {row.score for row in rows}:
        step = weight_of(row for row in positives_of(rows) if row.score == score)
        if step > 0:
            upto = [row for row in rows if row.score >= score]
            steps.append(step * weight_of(positives_of(upto)) / weight_of(upto))
    return total(steps) / positives


@reference()
def ks(rows: Sequence[Row], *, bins: int | None = None, grid: str = "logit") -> float | None:
    return max((abs(point.tpr - point.fpr) for point in points_of(rows, bins, grid)), default=None)


@reference()
def recall_at_precision(rows: Sequence[Row], *, p: float, bins: int | None = None, grid: str = "logit") -> float | None:
    points = points_of(rows, bins, grid)
    enough = [point.tpr for point in points if point.precision is not None and point.precision >= p * (1 - HELD)]
    return max(enough, default=0.0) if points else None


@reference()
def precision_at_recall(rows: Sequence[Row], *, r: float, bins: int | None = None, grid: str = "logit") -> float | None:
    points = points_of(rows, bins, grid)
    enough = [point.precision for point in points if point.precision is not None and point.tpr >= r * (1 - HELD)]
    return max(enough, default=None)


@reference()
def recall_at_fpr(rows: Sequence[Row], *, f: float, bins: int | None = None, grid: str = "logit") -> float | None:
    return max((point.tpr for point in points_of(rows, bins, grid) if point.fpr <= f * (1 + HELD)), default=None)


@reference()
def lift_at(rows: Sequence[Row], *, q: float, bins: int | None = None, grid: str = "logit") -> float | None:
    """Precision among the best rows that together weigh q of all, over the precision of all."""
    points = points_of(rows, bins, grid)
    if not points:
        return None
    everything = points[-1].positives + points[-1].negatives
    taken = []
    for one, other in pairwise(points):
        before, step = one.tp + one.fp, other.tp + other.fp - one.tp - one.fp
        if step > 0:
            taken.append((other.tp - one.tp) * min(max((q * everything - before) / step, 0.0), 1.0))
    return (total(taken) / (q * everything)) / (points[-1].positives / everything)


# --- regression -----------------------------------------------------------------------------------------------------


@reference(truth="real")
def rmse(rows: Sequence[Row]) -> float | None:
    square = mean(rows, [(row.score - row.truth) ** 2 for row in rows])
    return None if square is None else math.sqrt(square)


@reference(truth="real")
def mae(rows: Sequence[Row]) -> float | None:
    return mean(rows, [abs(row.score - row.truth) for row in rows])


@reference(truth="real")
def bias(rows: Sequence[Row]) -> float | None:
    return mean(rows, [row.score - row.truth for row in rows])


@reference(truth="real")
def mse(rows: Sequence[Row]) -> float | None:
    return mean(rows, [(row.score - row.truth) ** 2 for row in rows])


@reference(score="above -1", truth="above -1")
def msle(rows: Sequence[Row]) -> float | None:
    return mean(rows, [(math.log1p(row.score) - math.log1p(row.truth)) ** 2 for row in rows])


@reference(truth="real")
def mape(rows: Sequence[Row]) -> float | None:
    return mean(rows, [abs(row.score - row.truth) / max(abs(row.truth), 2.0**-52) for row in rows])


@reference(truth="real")
def smape(rows: Sequence[Row]) -> float | None:
    def of(row: Row) -> float:
        return over(2 * abs(row.score - row.truth), abs(row.score) + abs(row.truth)) or 0.0

    return mean(rows, [of(row) for row in rows])


@reference(truth="real")
def max_error(rows: Sequence[Row]) -> float | None:
    return max((abs(row.score - row.truth) for row in rows if row.weight > 0), default=None)


@reference(truth="real")
def pinball(rows: Sequence[Row], *, alpha: float) -> float | None:
    misses = [row.truth - row.score for row in rows]
    return mean(rows, [max(alpha * miss, (alpha - 1) * miss) for miss in misses])


@reference(truth="real")
def huber(rows: Sequence[Row], *, delta: float) -> float | None:
    misses = [abs(row.score - row.truth) for row in rows]
    return mean(rows, [miss**2 / 2 if miss <= delta else delta * (miss - delta / 2) for miss in misses])


@reference(score="positive", truth="gain")
def poisson_deviance(rows: Sequence[Row]) -> float | None:
    def of(s: float, t: float) -> float:
        return 2 * ((t * math.log(t / s) if t > 0 else 0.0) - t + s)

    return mean(rows, [of(row.score, row.truth) for row in rows])


@reference(score="positive", truth="positive")
def gamma_deviance(rows: Sequence[Row]) -> float | None:
    return mean(rows, [2 * (math.log(row.score / row.truth) + row.truth / row.score - 1) for row in rows])


@reference(truth="real")
def median_absolute_error(rows: Sequence[Row]) -> float | None:
    """The lowest miss that half of the weight does not exceed, or half way to the next where it is exactly half."""
    rows = [row for row in rows if row.weight > 0]
    half = weight_of(rows) / 2
    misses = sorted({abs(row.score - row.truth) for row in rows})
    upto = [weight_of(row for row in rows if abs(row.score - row.truth) <= miss) for miss in misses]
    if not misses:
        return None
    first = next(miss for miss, weight in zip(misses, upto, strict=True) if weight >= half * (1 - HELD))
    second = next(miss for miss, weight in zip(misses, upto, strict=True) if weight > half * (1 + HELD))
    return (first + second) / 2


# Those of a mean are worked out in fractions: nothing is rounded, however far from 0 the numbers are.


def exact(values: Iterable[float]) -> list[Fraction]:
    return [Fraction(value) for value in values]


def dot(*columns: Sequence[Fraction]) -> Fraction:
    return sum((math.prod(cells) for cells in zip(*columns, strict=True)), Fraction(0))


def from_mean(values: Sequence[Fraction], weights: Sequence[Fraction]) -> list[Fraction]:
    """How far each value is from the weighted mean of all."""
    middle = dot(values, weights) / sum(weights)
    return [value - middle for value in values]


@dataclass(frozen=True)
class Columns:
    """Score, truth and weight of the rows that weigh something."""

    score: list[Fraction]
    truth: list[Fraction]
    weight: list[Fraction]

    @classmethod
    def of(cls, rows: Iterable[Row]) -> "Columns":
        weigh = [row for row in rows if row.weight > 0]
        return cls(*(exact(getattr(row, name) for row in weigh) for name in ("score", "truth", "weight")))

    @property
    def miss(self) -> list[Fraction]:
        return [s - t for s, t in zip(self.score, self.truth, strict=True)]

    @property
    def truth_varies(self) -> bool:
        return len(set(self.truth)) > 1

    @property
    def score_varies(self) -> bool:
        return len(set(self.score)) > 1


@reference(truth="real")
def relative_squared_error(rows: Sequence[Row]) -> float | None:
    c = Columns.of(rows)
    if not c.truth_varies:
        return None
    apart = from_mean(c.truth, c.weight)
    return float(dot(c.miss, c.miss, c.weight) / dot(apart, apart, c.weight))


@reference(truth="real")
def r2(rows: Sequence[Row]) -> float | None:
    error = relative_squared_error(rows)
    return None if error is None else 1 - error


@reference(truth="real")
def relative_absolute_error(rows: Sequence[Row]) -> float | None:
    c = Columns.of(rows)
    if not c.truth_varies:
        return None
    apart = from_mean(c.truth, c.weight)
    return float(dot([abs(miss) for miss in c.miss], c.weight) / dot([abs(a) for a in apart], c.weight))


@reference(truth="real")
def explained_variance(rows: Sequence[Row]) -> float | None:
    c = Columns.of(rows)
    if not c.truth_varies:
        return None
    apart, missed = from_mean(c.truth, c.weight), from_mean(c.miss, c.weight)
    return float(1 - dot(missed, missed, c.weight) / dot(apart, apart, c.weight))


def correlation(one: Sequence[Fraction], other: Sequence[Fraction], weights: Sequence[Fraction]) -> float:
    one, other = from_mean(one, weights), from_mean(other, weights)
    together = float(dot(one, other, weights))
    return together / math.sqrt(dot(one, one, weights)) / math.sqrt(dot(other, other, weights))


@reference(truth="real")
def pearson(rows: Sequence[Row]) -> float | None:
    c = Columns.of(rows)
    return correlation(c.score, c.truth, c.weight) if c.truth_varies and c.score_varies else None


def places(values: Sequence[Fraction], weights: Sequence[Fraction]) -> list[Fraction]:
    """The middle of the place that each value takes, with its equals, if all stand in line: what weighs w is w long."""
    middle, upto = {}, Fraction(0)
    for value in sorted(set(values)):
        own = sum((w for other, w in zip(values, weights, strict=True) if other == value), Fraction(0))
        middle[value] = upto + own / 2
        upto += own
    return [middle[value] for value in values]


@reference(truth="real")
def spearman(rows: Sequence[Row]) -> float | None:
    c = Columns.of(rows)
    if not (c.truth_varies and c.score_varies):
        return None
    return correlation(places(c.score, c.weight), places(c.truth, c.weight), c.weight)
