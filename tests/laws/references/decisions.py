"""The references of decisions: what is predicted at a threshold, and counts of rows."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tests.laws.references.regression import exact
from tests.laws.references.rows import Row, Threshold, UnknownLimitError, mean, over, reference, total


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


@reference(score="probability")
def net_benefit(rows: Sequence[Row], *, threshold: float, inclusive: bool = False) -> float | None:
    """As dcurves has it: the rate of true positives less that of false ones by the odds of the threshold."""
    odds = Fraction(threshold) / (1 - Fraction(threshold))

    def worth(row: Row) -> float:
        if predicted(row, threshold, inclusive) == 0:
            return 0.0
        return 1.0 if row.truth == 1 else -float(odds)

    return mean(rows, [worth(row) for row in rows])


@reference()
def cost(
    rows: Sequence[Row],
    *,
    fp: float,
    fn: float,
    tp: float = 0.0,
    tn: float = 0.0,
    threshold: Threshold = 0.5,
    inclusive: bool = False,
) -> float | None:
    def price(row: Row) -> float:
        said = predicted(row, threshold, inclusive)
        return said * tp + (1 - said) * fn if row.truth == 1 else said * fp + (1 - said) * tn

    return mean(rows, [price(row) for row in rows])


@reference(score="logit")
def hinge_loss(rows: Sequence[Row]) -> float | None:
    return mean(rows, [max(0.0, 1 - row.score if row.truth == 1 else 1 + row.score) for row in rows])


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
