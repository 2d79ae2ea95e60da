"""Metrics of a decision: whether a score is over a threshold, and whether that is right."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Unpack

import polars as pl

from polars_mlmetrics.data.expressions import text_of
from polars_mlmetrics.formula.arithmetic import as_parts_of, ratio
from polars_mlmetrics.formula.averages import Average
from polars_mlmetrics.formula.class_matrix import is_of_classes, matrix, right_and_all, unless_several
from polars_mlmetrics.formula.declare import metric
from polars_mlmetrics.formula.parameters import Above, Averaged, BetweenZeroAndOne, Decided, Options
from polars_mlmetrics.formula.shared import Decision, Threshold
from polars_mlmetrics.formula.unit import Unit

INFINITY = float("inf")
Price = Annotated[float, Above(-1e100, at_most=1e100)] | str | pl.Expr
"""The cost of a decision: a number, or a column or a row-wise expression."""


@metric(range=(0, INFINITY), best="max", needs_negatives=False, interval="total")
def true_positives(
    u: Unit, *, threshold: Threshold = 0.5, average: Average = "micro", **options: Unpack[Decided]
) -> pl.Expr:
    """How many rows are predicted and true (weighted)."""
    return u.true_positives(threshold)


@metric(range=(0, INFINITY), best="min", needs_negatives=False, interval="total")
def false_positives(
    u: Unit, *, threshold: Threshold = 0.5, average: Average = "micro", **options: Unpack[Decided]
) -> pl.Expr:
    """How many rows are predicted and not true (weighted)."""
    return u.false_positives(threshold)


@metric(range=(0, INFINITY), best="min", needs_negatives=False, interval="total")
def false_negatives(
    u: Unit, *, threshold: Threshold = 0.5, average: Average = "micro", **options: Unpack[Decided]
) -> pl.Expr:
    """How many rows are true and not predicted (weighted)."""
    return u.false_negatives(threshold)


@metric(range=(0, INFINITY), best="max", interval="total")
def true_negatives(
    u: Unit, *, threshold: Threshold = 0.5, average: Average = "micro", **options: Unpack[Decided]
) -> pl.Expr:
    """How many rows are neither predicted nor true (weighted)."""
    return u.true_negatives(threshold)


@metric(range=(0, INFINITY), best=None, needs_negatives=False, interval="total")
def support(u: Unit, *, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """How many rows are true (weighted)."""
    return u.positives()


@metric(range=(0, 1), best=None)
def prevalence(u: Unit, *, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """The share of rows that are true: Σw·t / Σw."""
    return u.per_row(u.positives())


@metric(range=(0, 1), best=None)
def predicted_rate(
    u: Unit, *, threshold: Threshold = 0.5, average: Average = "micro", **options: Unpack[Decided]
) -> pl.Expr:
    """The share of rows that are predicted: Σw·[s > threshold] / Σw."""
    return u.per_row(u.predicted(threshold))


@metric(range=(0, 1), best="max", undefined_when="nothing predicted", needs_negatives=False)
def precision(
    u: Unit, *, threshold: Threshold = 0.5, average: Average = "micro", **options: Unpack[Decided]
) -> pl.Expr:
    """The share of predicted rows that are true: TP / (TP + FP)."""
    return ratio(u.true_positives(threshold), u.true_positives(threshold) + u.false_positives(threshold))


@metric(range=(0, 1), best="max", undefined_when="no positives", needs_negatives=False)
def recall(u: Unit, *, threshold: Threshold = 0.5, average: Average = "micro", **options: Unpack[Decided]) -> pl.Expr:
    """The share of true rows that are predicted: TP / (TP + FN)."""
    return ratio(u.true_positives(threshold), u.true_positives(threshold) + u.false_negatives(threshold))


@metric(range=(0, 1), best="max", undefined_when="no negatives")
def specificity(
    u: Unit, *, threshold: Threshold = 0.5, average: Average = "micro", **options: Unpack[Decided]
) -> pl.Expr:
    """Of the rows that are not true, the share that is not predicted: TN / (TN + FP)."""
    return ratio(u.true_negatives(threshold), u.true_negatives(threshold) + u.false_positives(threshold))


@metric(range=(0, 1), best="max", undefined_when="everything predicted")
def negative_predictive_value(
    u: Unit, *, threshold: Threshold = 0.5, average: Average = "micro", **options: Unpack[Decided]
) -> pl.Expr:
    """Of the rows that are not predicted, the share that is not true: TN / (TN + FN)."""
    left = u.true_negatives(threshold) + u.false_negatives(threshold)
    return ratio(u.true_negatives(threshold), left)


@metric(range=(0, 1), best="min", undefined_when="no negatives")
def false_positive_rate(
    u: Unit, *, threshold: Threshold = 0.5, average: Average = "micro", **options: Unpack[Decided]
) -> pl.Expr:
    """Of the rows that are not true, the share that is predicted: FP / (FP + TN)."""
    return ratio(u.false_positives(threshold), u.false_positives(threshold) + u.true_negatives(threshold))


@metric(range=(0, 1), best="min", undefined_when="no positives", needs_negatives=False)
def false_negative_rate(
    u: Unit, *, threshold: Threshold = 0.5, average: Average = "micro", **options: Unpack[Decided]
) -> pl.Expr:
    """The share of true rows that are not predicted: FN / (FN + TP)."""
    return ratio(u.false_negatives(threshold), u.false_negatives(threshold) + u.true_positives(threshold))


@metric(range=(0, 1), best="max", undefined_when="no positive and no predicted label", needs_negatives=False)
def f1(u: Unit, *, threshold: Threshold = 0.5, average: Average = "micro", **options: Unpack[Decided]) -> pl.Expr:
    """The harmonic mean of precision and recall: 2·TP / (2·TP + FP + FN)."""
    return _f(u, 1.0, threshold)


@metric(range=(0, 1), best="max", undefined_when="no positive and no predicted label", needs_negatives=False)
def fbeta(
    u: Unit,
    beta: Annotated[float, Above(0, strictly=True, at_most=1e9)],
    *,
    threshold: Threshold = 0.5,
    average: Average = "micro",
    **options: Unpack[Decided],
) -> pl.Expr:
    """The mean of precision and recall that counts recall beta times: (1+b²)·TP / ((1+b²)·TP + b²·FN + FP)."""
    return _f(u, beta, threshold)


def _f(u: Unit, beta: float, threshold: Threshold) -> pl.Expr:
    right = (1 + beta**2) * u.true_positives(threshold)
    return ratio(right, right + beta**2 * u.false_negatives(threshold) + u.false_positives(threshold))


@metric(range=(0, 1), best="max", undefined_when="no positive and no predicted label", needs_negatives=False)
def jaccard(u: Unit, *, threshold: Threshold = 0.5, average: Average = "micro", **options: Unpack[Decided]) -> pl.Expr:
    """Share of the rows that are predicted or true which are both: TP / (TP + FP + FN)."""
    wrong = u.false_positives(threshold) + u.false_negatives(threshold)
    return ratio(u.true_positives(threshold), u.true_positives(threshold) + wrong)


@metric(range=(0, 1), best="max", undefined_when="no weight, or with 'argmax' no positives")
def accuracy(u: Unit, *, threshold: Threshold = 0.5, average: Average = "micro", **options: Unpack[Decided]) -> pl.Expr:
    """The share of rows that are right: (TP + TN) / Σw.

    With "argmax" and average="micro" it is the share of samples whose predicted class is the true one; of m tied best
    labels each is predicted by 1/m. A sample without a true label is left out, and one with several is broken. With
    `labels=` samples of other classes, true or predicted, are left out.
    """
    if is_of_classes(u, threshold):
        return unless_several(u, ratio(*right_and_all(u, threshold)))
    return u.per_row(u.true_positives(threshold) + u.true_negatives(threshold))


@metric(range=(0, 1), best="min")
def hamming_loss(
    u: Unit, *, threshold: Threshold = 0.5, average: Average = "micro", **options: Unpack[Decided]
) -> pl.Expr:
    """The share of rows that are wrong: (FP + FN) / Σw."""
    return u.per_row(u.false_positives(threshold) + u.false_negatives(threshold))


@metric(range=(0, 1), best="max", undefined_when="one class only")
def balanced_accuracy(
    u: Unit, *, threshold: Threshold = 0.5, average: Average = "micro", **options: Unpack[Decided]
) -> pl.Expr:
    """The mean of recall and specificity."""
    return 0.5 * _sum_of_rates(u, threshold)


@metric(range=(-1, 1), best="max", undefined_when="one class only")
def informedness(
    u: Unit, *, threshold: Threshold = 0.5, average: Average = "micro", **options: Unpack[Decided]
) -> pl.Expr:
    """Recall plus specificity, less 1 (Youden's J)."""
    return _sum_of_rates(u, threshold) - 1


def _sum_of_rates(u: Unit, threshold: Threshold) -> pl.Expr:
    tp, fp, fn, tn = _cells(u, threshold)
    return ratio(tp, tp + fn) + ratio(tn, tn + fp)


@metric(range=(-1, 1), best="max", undefined_when="one class only, true or predicted")
def mcc(u: Unit, *, threshold: Threshold = 0.5, average: Average = "micro", **options: Unpack[Decided]) -> pl.Expr:
    """Matthews' correlation of prediction and truth: (TP·TN - FP·FN) / √(product of the four margins).

    With "argmax" and average="micro" it is that of all classes together, from the samples that are right and the
    samples of each class, true and predicted; of m tied best labels each is predicted by 1/m. A sample without a true
    label is left out, and one with several is broken. With `labels=` samples of other classes, true or predicted, are
    left out. With other averages each label is against the rest.
    """
    if is_of_classes(u, threshold):
        of = matrix(u, threshold)
        return unless_several(u, ratio(of.covariance, (of.true * of.predicted).sqrt()))
    tp, fp, fn, tn = _cells(u, threshold)
    of_truth, of_prediction = (tp + fn) * (tn + fp), (tp + fp) * (tn + fn)
    return ratio(tp * tn - fp * fn, (of_truth * of_prediction).sqrt())


@metric(range=(-1, 1), best="max", undefined_when="one class only, true or predicted")
def cohen_kappa(
    u: Unit, *, threshold: Threshold = 0.5, average: Average = "micro", **options: Unpack[Decided]
) -> pl.Expr:
    """Agreement of prediction and truth beyond chance: (p_o - p_e) / (1 - p_e).

    With "argmax" and average="micro" it is that of all classes together, from the samples that are right and the
    samples of each class, true and predicted; of m tied best labels each is predicted by 1/m. A sample without a true
    label is left out, and one with several is broken. With `labels=` samples of other classes, true or predicted, are
    left out. With other averages each label is against the rest.
    """
    if is_of_classes(u, threshold):
        of = matrix(u, threshold)
        has_classes = pl.min_horizontal(of.true, of.predicted) > 0
        return unless_several(u, pl.when(has_classes).then(ratio(of.covariance, of.by_chance)))
    tp, fp, fn, tn = _cells(u, threshold)
    agreement = ratio(2 * (tp * tn - fp * fn), (tp + fp) * (fp + tn) + (tp + fn) * (fn + tn))
    return pl.when(pl.min_horizontal(tp + fp, tp + fn, tn + fp, tn + fn) > 0).then(agreement)


def _cells(u: Unit, threshold: Threshold) -> Sequence[pl.Expr]:
    """The four cells; in parts of all weight, where rows have weights."""
    # As Float64: a product of two large counts leaves Int64.
    cells = (u.true_positives, u.false_positives, u.false_negatives, u.true_negatives)
    values = [cell(threshold).cast(pl.Float64) for cell in cells]
    return as_parts_of(values, u.rows()) if u.is_weighted else values


@metric(range=(-INFINITY, 1), best="max")
def net_benefit(
    u: Unit, threshold: BetweenZeroAndOne, *, average: Average = "micro", **options: Unpack[Decided]
) -> pl.Expr:
    """The true positives per row, less the false ones at the odds of the threshold: TP/n - FP/n · pt/(1-pt).

    The threshold pt is the probability from which on it is worth to act: who acts from 0.1 on takes nine false alarms
    for one hit (Vickers and Elkin 2006, decision curve analysis). To act on nobody is 0, and to act on everybody
    `prevalence - (1 - prevalence)·pt/(1-pt)`: a model helps where it is above both.

    It is no share of anything, and values at two thresholds are on two scales: compare models at one threshold.
    `curve(log, "decision")` has all three at each threshold, `curve(log, "threshold", net_benefit(0.5))` the model's
    alone. Where errors have a price, use `cost`.
    """
    _ = u.probability  # a score that is none has no odds
    return u.per_row(u.true_positives(threshold) - u.false_positives(threshold) * odds_of(u.bound(threshold)))


def odds_of(probability: float | pl.Expr) -> float | pl.Expr:
    """The odds of a probability; null where it is an end, or none, as at the last point of a curve."""
    if isinstance(probability, pl.Expr):
        probability = pl.when(probability.is_between(0, 1, closed="none")).then(probability)
    return probability * (1 - probability) ** -1


@metric(range=(-INFINITY, INFINITY), best="min")
def cost(
    u: Unit,
    fp: Price,
    fn: Price,
    *,
    tp: Price = 0.0,
    tn: Price = 0.0,
    threshold: Threshold = 0.5,
    average: Average = "micro",
    **options: Unpack[Decided],
) -> pl.Expr:
    """The mean cost of a decision: (fp·FP + fn·FN + tp·TP + tn·TN) / Σw, with a cost for each cell (Elkan 2001).

    `fp` is the cost of a false alarm, `fn` of a miss, `tp` and `tn` of what is right; a gain is a cost below 0. A cost
    is a number, or a column or an expression where each row has its own, such as the amount that is lost. A row in
    which that is null is left out, whatever its cell, and so is one without a score.

    It is a mean of rows, no sum of money: times their weight it is one. `cost(1, 1)` is `hamming_loss`. Of calibrated
    probabilities the cheapest threshold is (fp - tn) / (fp - tn + fn - tp); of the rows at hand `best_threshold` finds
    it. Where nobody knows the costs, but from which probability on one acts, use `net_benefit`.
    """
    prices = {"tp": tp, "fp": fp, "fn": fn, "tn": tn}
    if any(isinstance(price, str | pl.Expr) for price in prices.values()):
        return u.per_row(_cost_of_rows(u, prices, threshold))
    return u.per_row(_cost_of_cells(u, prices, threshold))


def _cost_of_cells(u: Unit, prices: Mapping[str, Any], threshold: Threshold) -> pl.Expr:
    """The total cost, of counts alone: of those cells that cost something, so that a state need not hold the others."""
    cells = {"tp": u.true_positives, "fp": u.false_positives, "fn": u.false_negatives, "tn": u.true_negatives}
    first, *others = [cell for cell in cells if prices[cell] != 0] or ["fp"]
    total: pl.Expr = cells[first](threshold) * prices[first]
    for cell in others:
        total += cells[cell](threshold) * prices[cell]
    return total


def _cost_of_rows(u: Unit, prices: Mapping[str, Price], threshold: Threshold) -> pl.Expr:
    """The total cost, where rows have costs of their own."""
    of = {cell: u.of_row(cell, price) for cell, price in prices.items()}
    rule, decision = Decision.of(threshold), u.decision(threshold)

    def mean(predicted: pl.Expr, left: pl.Expr) -> pl.Expr:
        if rule.is_argmax:
            return decision * predicted + (1 - decision) * left
        return pl.when(decision).then(predicted).otherwise(left)

    row = pl.when(u.truth).then(mean(of["tp"], of["fn"])).otherwise(mean(of["fp"], of["tn"]))
    return u.sum(f"cost@{rule}@{','.join(map(text_of, of.values()))}", row)


@metric(range=(0, INFINITY), best="min")
def hinge_loss(u: Unit, *, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """The mean of max(0, 1 - m), where m is the score of a true row, and less the score of another.

    The score is a margin: its sign decides, and from 1 on a right row costs nothing. One that is not finite is broken.
    Of a probability use `log_loss`: it would cost something always, however right.
    """
    margin = (2 * u.truth_number - 1) * u.logit  # any finite number, as a logit is
    return u.per_row(u.sum("hinge_loss", (1 - margin).clip(lower_bound=0)))


@metric(range=(0, INFINITY), best=None, counts=True, needs_negatives=False)
def n_rows(u: Unit) -> pl.Expr:
    """How many rows are used."""
    return u.included_rows()


@metric(range=(0, INFINITY), best=None, grain="sample", counts=True, needs_negatives=False)
def n_samples(u: Unit) -> pl.Expr:
    """How many distinct samples are among the rows used."""
    return (u.included_rows() > 0).cast(pl.Int64)


@metric(range=(0, INFINITY), best=None, counts=True, needs_negatives=False)
def n_excluded(u: Unit) -> pl.Expr:
    """How many rows are left out, for a null in a role."""
    return u.excluded_rows()


@metric(grain="sample", range=(0, 1), best="max", needs_negatives=False)
def subset_accuracy(u: Unit, *, threshold: Threshold = 0.5, **options: Unpack[Decided]) -> pl.Expr:
    """The share of samples with every label right.

    With "argmax" a sample is right when its one true label has the highest score; of m tied labels it is right by 1/m.
    """
    if Decision.of(threshold).is_argmax:
        return pl.when(u.positives() == 1).then(u.true_positives(threshold)).otherwise(0.0)
    return (u.false_positives(threshold) + u.false_negatives(threshold) == 0).cast(pl.Float64)


@metric(range=(0, 1), best="max")
def classification_accuracy(u: Unit, *, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """The share of rows whose score equals their truth: class names, ids, any type."""
    return u.per_row(u.sum("right", u.prediction == u.actual))


@metric(grain="sample", range=(0, 1), best="max")
def global_accuracy(u: Unit, **options: Unpack[Options]) -> pl.Expr:
    """The share of samples whose score equals their truth for every target."""
    return (u.count("wrong", u.prediction != u.actual) == 0).cast(pl.Float64)
