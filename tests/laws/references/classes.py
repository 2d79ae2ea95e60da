"""The references of decisions between classes: a sample has one true class, and its best label is the predicted one.

They are for the rows of a group, in place of the reference of the same name for a unit of cells.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from tests.laws.references.decisions import is_argmax
from tests.laws.references.rows import Row, positives_of


def sample_of(row: Row, rows: Sequence[Row]) -> list[Row]:
    return [other for other in rows if other.sample == row.sample]


def predicted(row: Row) -> Fraction:
    """The share to which a row is the predicted class of its sample: 1/m of m best labels, which were returned."""
    return Fraction(1, round(1 / row.top_share)) if row.top_share and row.score > -math.inf else Fraction(0)


def part(row: Row, rows: Sequence[Row]) -> Fraction:
    """The share to which the sample of a row is predicted to be of a class among the rows, or of none at all."""
    nothing_returned = row.top_share > 0 and row.score == -math.inf
    return Fraction(1) if nothing_returned else sum(map(predicted, sample_of(row, rows)), Fraction(0))


class Matrix:
    """The margins of the matrix of true and predicted classes, and its diagonal, in exact numbers."""

    def __init__(self, rows: Sequence[Row]) -> None:
        true = positives_of(rows)
        self.has_several = len({row.sample for row in true}) < len(true)
        self.true: dict[Hashable, Fraction] = {}
        self.predicted: dict[Hashable, Fraction] = {}
        self.right = Fraction(0)
        for row in true:
            weight, of_matrix = Fraction(row.weight), part(row, rows)
            self.true[row.label] = self.true.get(row.label, Fraction(0)) + weight * of_matrix
            self.right += weight * predicted(row)
            if row.top_share > 0 and row.score == -math.inf:
                self.predicted["nothing", None] = self.predicted.get(("nothing", None), Fraction(0)) + weight
        with_truth = {row.sample for row in true}
        for row in rows:
            if row.sample in with_truth:
                of_class = Fraction(row.weight) * predicted(row)
                self.predicted[row.label] = self.predicted.get(row.label, Fraction(0)) + of_class

    @property
    def samples(self) -> Fraction:
        return sum(self.true.values(), Fraction(0))

    @property
    def predictions(self) -> Fraction:
        return sum(self.predicted.values(), Fraction(0))

    @property
    def by_chance(self) -> Fraction:
        return sum((self.true.get(label, Fraction(0)) * share for label, share in self.predicted.items()), Fraction(0))

    @property
    def covariance(self) -> Fraction:
        return self.right * self.samples - self.by_chance

    @property
    def is_of_one_class(self) -> bool:
        """Whether all samples are of one true class, or of one predicted class."""
        return min(sum(share > 0 for share in margin.values()) for margin in (self.true, self.predicted)) < 2


def accuracy(rows: Sequence[Row]) -> float | None:
    of = Matrix(rows)
    if of.has_several:
        return math.nan
    return float(of.right / of.samples) if of.samples else None


def mcc(rows: Sequence[Row]) -> float | None:
    of = Matrix(rows)
    if of.has_several:
        return math.nan
    if of.is_of_one_class:
        return None
    true = of.samples**2 - sum(share**2 for share in of.true.values())
    said = of.predictions**2 - sum(share**2 for share in of.predicted.values())
    # The squares of weights may be too large or too small for floats, their ratios are not.
    return math.copysign(math.sqrt(of.covariance**2 / (true * said)), of.covariance)


def cohen_kappa(rows: Sequence[Row]) -> float | None:
    of = Matrix(rows)
    if of.has_several:
        return math.nan
    if of.is_of_one_class:
        return None
    return float(of.covariance / (of.samples * of.predictions - of.by_chance))


OF_CLASSES: dict[str, Callable[[Sequence[Row]], float | None]] = {
    "accuracy": accuracy,
    "mcc": mcc,
    "cohen_kappa": cohen_kappa,
}


def is_of_classes(name: str, params: Mapping[str, Any], grain: str) -> bool:
    """Whether a decision of a group is one between classes, and not of the cells of sample and label."""
    return name in OF_CLASSES and is_argmax(params.get("threshold", 0.5)) and grain == "group"
