"""The rows of a unit, what a reference declares, and sums without rounding on the way."""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

Threshold = float | str | Mapping[Any, float] | object


@dataclass(frozen=True)
class Declared:
    """What is true of a metric by its definition: its units, what it reads, the kinds of score and truth it takes."""

    units: str = "average"  # "average" chooses them; else "group", "sample" or "label"
    reads: str = "score truth"
    needs: str = "score truth"  # those whose null leaves a row out, read or not
    score: str = "real"  # real | probability | positive | above -1 | any
    truth: str = "binary"  # binary | soft | gain | real | of sample | positive | above -1 | any
    by_label: bool = False  # a row without a label is left out, whatever the units are
    looks_across: bool = False  # the value of a row needs the other rows of its sample, whatever the units are


DECLARED: dict[str, Declared] = {}


def reference(**facts: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a function the reference of the metric of its name."""

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        DECLARED[function.__name__] = Declared(**facts)
        return function

    return declare


class Row(NamedTuple):
    """One included row. The last fields are what a metric must know of other rows or of the column's type."""

    sample: Hashable
    label: Hashable
    score: Any
    truth: Any
    weight: float = 1.0
    broken: bool = False
    limit: float | None = None  # a threshold, a prior or a quantile that is worked out from the row, or from its group
    top_share: float = 0.0  # 1/m where this is one of the m best labels of its sample, else 0
    highest_negative: float | None = None  # best score of a false label of the same sample
    float_type: type[np.floating[Any]] = np.float64  # what the score column was before it became Float64


class UnknownLimitError(LookupError):
    """No threshold or no prior is known for a row: the metric cannot be known either."""


def total(values: Iterable[float]) -> float:
    """A sum without rounding on the way; infinities of both signs give NaN instead of an error."""
    found = list(values)  # an error in one of them is not taken for one of the sum
    try:
        return math.fsum(found)
    except ValueError:  # infinities of both signs
        return math.nan


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


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


# What a score or a truth of a kind may be. A NaN is broken whatever it is.
MAY_BE: dict[str, Callable[[Any], bool]] = {
    "any": lambda value: True,
    "real": lambda value: True,
    "of sample": lambda value: True,
    "probability": lambda value: 0 <= value <= 1,
    "logit": math.isfinite,
    "binary": lambda value: value in (0, 1),
    "soft": lambda value: 0 <= value <= 1,
    "gain": lambda value: 0 <= value < math.inf,
    "positive": lambda value: 0 < value < math.inf,
    "above -1": lambda value: value > -1,
}


def value_is_broken(value: Any, kind: str) -> bool:
    return is_nan(value) or not MAY_BE[kind](value)
