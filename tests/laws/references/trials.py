"""The references of trials: the rows of one sample, each a trial of its task."""

from collections.abc import Sequence
from fractions import Fraction
from math import comb

from tests.laws.references.rows import Row, positives_of, reference


@reference(units="sample", reads="truth", needs="truth")
def pass_at(rows: Sequence[Row], *, k: int) -> float | None:
    """All ways to draw k trials, less those that draw failures alone."""
    ways = comb(len(rows), k)
    return float(1 - Fraction(comb(len(rows) - len(positives_of(rows)), k), ways)) if ways else None


@reference(units="sample", reads="truth", needs="truth")
def pass_all(rows: Sequence[Row], *, k: int) -> float | None:
    ways = comb(len(rows), k)
    return float(Fraction(comb(len(positives_of(rows)), k), ways)) if ways else None
