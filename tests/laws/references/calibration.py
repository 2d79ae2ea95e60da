"""The references of calibration: whether a probability is as often true as it says."""

import bisect
import math
from collections.abc import Sequence
from itertools import pairwise

from tests.laws.references.probabilities import probability
from tests.laws.references.rows import Row, mean, negatives_of, over, positives_of, reference, total, weight_of
from tests.laws.references.separation import logit_cell


@reference(score="probability")
def calibration_bias(rows: Sequence[Row], *, logits: bool = False) -> float | None:
    return mean(rows, [probability(row.score, logits) - row.truth for row in rows])


@reference(score="probability")
def calibration_ratio(rows: Sequence[Row], *, logits: bool = False) -> float | None:
    return over(total(row.weight * probability(row.score, logits) for row in rows), weight_of(positives_of(rows)))


def rows_by_bin(rows: Sequence[Row], bins: int, logits: bool) -> list[list[tuple[Row, float]]]:
    """The rows of each bin, with their probabilities."""
    by_bin: dict[int, list[tuple[Row, float]]] = {}
    for row in rows:
        p = probability(row.score, logits)
        place = bisect.bisect_right([k / bins for k in range(1, bins)], p)
        by_bin.setdefault(place, []).append((row, p))
    return [*by_bin.values()]


def bins_of(rows: Sequence[Row], bins: int, logits: bool) -> list[tuple[float, float, float]]:
    """The weight of each bin, its mean probability and its share of truths."""
    found = []
    for members in rows_by_bin(rows, bins, logits):
        size = total(row.weight for row, _ in members)
        if size > 0:
            mean_p = total(row.weight * p for row, p in members) / size
            mean_t = total(row.weight * row.truth for row, _ in members) / size
            found.append((size, mean_p, mean_t))
    return found


@reference(score="probability")
def brier_reliability(
    rows: Sequence[Row], *, bins: int = 15, logits: bool = False, debiased: bool = False
) -> float | None:
    if debiased:
        found = over(total(squared_gap(members) for members in rows_by_bin(rows, bins, logits)), weight_of(rows))
        return None if found is None else max(0.0, found)
    return over_bins(rows, bins, logits)


def squared_gap(members: Sequence[tuple[Row, float]]) -> float:
    """The squared gap of a bin less how far its mean is off by chance, squared: by the textbook, of so many copies."""
    size = total(row.weight for row, _ in members)
    if size < 2:
        return 0.0
    gap = total(row.weight * (p - row.truth) for row, p in members) / size
    variance = total(row.weight * (p - row.truth - gap) ** 2 for row, p in members) / (size - 1)
    return size * (gap**2 - variance / size)


def over_bins(rows: Sequence[Row], bins: int, logits: bool) -> float | None:
    """The squared gaps of all bins, by their weights."""
    found = bins_of(rows, bins, logits)
    return over(total(size * (p - t) ** 2 for size, p, t in found), total(size for size, _, _ in found))


@reference(score="probability")
def brier_resolution(rows: Sequence[Row], *, bins: int = 15, logits: bool = False) -> float | None:
    rate, found = mean(rows, [row.truth for row in rows]), bins_of(rows, bins, logits)
    if rate is None:
        return None
    return over(total(size * (t - rate) ** 2 for size, _, t in found), total(size for size, _, _ in found))


@reference(score="probability")
def brier_uncertainty(rows: Sequence[Row], *, logits: bool = False) -> float | None:
    """The mean squared distance of the truth from how often it is true."""
    shares = [weight_of(positives_of(rows)), weight_of(negatives_of(rows))]
    return None if sum(shares) == 0 else math.prod(share / sum(shares) for share in shares)


@reference(score="probability")
def calibration_error(
    rows: Sequence[Row], *, bins: int = 15, norm: str = "l1", strategy: str = "uniform", logits: bool = False
) -> float | None:
    found = bins_of(rows, bins, logits) if strategy == "uniform" else equal_bins_of(rows, bins, logits)
    sizes, gaps = [size for size, _, _ in found], [abs(p - t) for _, p, t in found]
    if not sizes:
        return None
    if norm == "max":
        return max(gaps)
    if norm == "l1":
        return total(size * gap for size, gap in zip(sizes, gaps, strict=True)) / total(sizes)
    return math.sqrt(total(size * gap**2 for size, gap in zip(sizes, gaps, strict=True)) / total(sizes))


def equal_bins_of(rows: Sequence[Row], bins: int, logits: bool) -> list[tuple[float, float, float]]:
    """The same of bins of equal weight; each row of a tie across borders lies in each bin by the same share."""
    whole, upto, found = weight_of(rows), 0.0, []
    if whole == 0:
        return []
    ties = []
    for p in sorted({probability(row.score, logits) for row in rows}):
        tie = [row for row in rows if probability(row.score, logits) == p]
        size = weight_of(tie)
        ties.append((upto, upto + size, p, weight_of(positives_of(tie)) / size if size else 0.0))
        upto += size
    for low, high in pairwise([whole * place / bins for place in range(bins + 1)]):
        parts = [(max(min(end, high) - max(start, low), 0.0), p, rate) for start, end, p, rate in ties]
        size = whole / bins
        mean_p, mean_t = (total(part[0] * part[place] for part in parts) / size for place in (1, 2))
        found.append((size, mean_p, mean_t))
    return found


def surplus_upto(rows: Sequence[Row], logits: bool, bins: int | None) -> list[float]:
    """How far the probabilities of the lowest rows add up to more than their truths, by distinct probability."""
    pairs = [(probability(row.score, logits), row) for row in rows]
    place = [p if bins is None else logit_cell(p, bins) for p, _ in pairs]
    lowest = [[pair for pair, of in zip(pairs, place, strict=True) if of <= border] for border in sorted(set(place))]
    return [0.0, *(total(row.weight * (p - row.truth) for p, row in part) for part in lowest)]


@reference(score="probability")
def calibration_ks(rows: Sequence[Row], *, logits: bool = False, bins: int | None = None) -> float | None:
    return over(max(map(abs, surplus_upto(rows, logits, bins))), weight_of(rows))


@reference(score="probability")
def calibration_kuiper(rows: Sequence[Row], *, logits: bool = False, bins: int | None = None) -> float | None:
    """Of the rows between any two borders."""
    upto = surplus_upto(rows, logits, bins)
    return over(max(abs(one - other) for one in upto for other in upto), weight_of(rows))


@reference(score="probability")
def spiegelhalter_z(rows: Sequence[Row], *, logits: bool = False) -> float | None:
    """The distance of the Brier score from what it is expected to be, in its standard deviations (of copies)."""
    pairs = [(probability(row.score, logits), row) for row in rows]
    apart = total(row.weight * ((row.truth - p) ** 2 - p * (1 - p)) for p, row in pairs)
    variance = total(row.weight * (1 - 2 * p) ** 2 * p * (1 - p) for p, row in pairs)
    return over(apart, math.sqrt(variance))
