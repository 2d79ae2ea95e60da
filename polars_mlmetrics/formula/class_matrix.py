"""Classes: the best label of a sample is its predicted class, and its one true label the true one.

The sums are those of the matrix of true and predicted classes, as `confusion` shows it. Several tied best labels are
predicted in equal shares; of a sample in which nothing was returned the predicted class is none of the labels. A sample
without a true label is not in the matrix; one with several has no place in it, and breaks the value.
"""

from typing import NamedTuple

import polars as pl

from polars_mlmetrics.formula.arithmetic import as_parts_of
from polars_mlmetrics.formula.shared import NOT_RETURNED, Decision, Threshold
from polars_mlmetrics.formula.unit import Unit


class Matrix(NamedTuple):
    """Sums of a matrix of classes. All are weighted; in products the weights are shares of their total."""

    covariance: pl.Expr
    """How many samples are right beyond chance, times how many there are."""
    by_chance: pl.Expr
    """How many pairs of a sample and a prediction there are, by class, that are not of one class."""
    true: pl.Expr
    """How many pairs of samples are of two true classes."""
    predicted: pl.Expr
    """How many pairs of samples are of two predicted classes."""


def is_of_classes(u: Unit, threshold: Threshold) -> bool:
    """Whether a decision on a group is one between classes."""
    return Decision.of(threshold).is_argmax and u.grain == "group"


def right_and_all(u: Unit, threshold: Threshold) -> tuple[pl.Expr, pl.Expr]:
    """How many samples are right, and how many there are."""
    return u.true_positives(threshold), u.sum(
        "samples_of_classes", pl.when(u.truth).then(_part_in_matrix(u, threshold))
    )


def matrix(u: Unit, threshold: Threshold) -> Matrix:
    """The sums over the matrix, of all labels."""
    true = pl.when(u.truth).then(_part_in_matrix(u, threshold)).otherwise(0.0)
    predicted = u.decision(threshold) * (_true_labels(u) > 0).cast(pl.Float64)
    sums = u.by_label(true.alias("true"), predicted.alias("predicted"))
    sums = (*sums, u.true_positives(threshold), u.sum("nothing_predicted", u.truth & _is_not_returned(u)))
    # In parts of the whole of a group the sums of its labels leave the streaming engine: a row a label, so few.
    of_true, of_predicted, right, of_none = as_parts_of(sums, u.rows()) if u.is_weighted else sums
    samples, predictions = of_true.sum(), of_predicted.sum() + of_none
    by_chance = (of_true * of_predicted).sum()
    return Matrix(
        covariance=right * samples - by_chance,
        by_chance=samples * predictions - by_chance,
        true=samples * samples - (of_true * of_true).sum(),
        predicted=predictions * predictions - (of_predicted * of_predicted).sum() - of_none * of_none,
    )


def unless_several(u: Unit, value: pl.Expr) -> pl.Expr:
    """The value, where no sample has several true labels: broken where one has."""
    several = u.count("several_true_labels", _true_labels(u) > 1)
    return pl.when(several > 0).then(float("nan")).otherwise(value)


def _true_labels(u: Unit) -> pl.Expr:
    """How many true labels the sample of a row has."""
    return u.within("true_labels", u.truth.cast(pl.Int64), "sum")


def _part_in_matrix(u: Unit, threshold: Threshold) -> pl.Expr:
    """On a true row: the share to which its sample is predicted to be of a class of the matrix, or of none at all."""
    if u.door.labels is None:
        return pl.lit(1.0)
    predicted = u.within("predicted_in_labels", u.decision(threshold), "sum")
    return pl.when(_is_not_returned(u)).then(1.0).otherwise(predicted)


def _is_not_returned(u: Unit) -> pl.Expr:
    """Whether nothing was returned of the sample of a row."""
    is_best, _ = u.best_of_any_label()
    return is_best & (u.score == NOT_RETURNED)
