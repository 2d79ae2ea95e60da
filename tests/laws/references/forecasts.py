"""The references of forecasts that are more than one number."""

import math
from collections.abc import Sequence

from tests.laws.references.rows import Row, mean, over, reference, total


@reference(reads="truth", truth="real", needs="truth")
def interval_coverage(rows: Sequence[Row], *, low: float, high: float) -> float | None:
    return mean(rows, [float(low <= row.truth <= high) for row in rows])


@reference(reads="truth", truth="real", needs="truth")
def interval_width(rows: Sequence[Row], *, low: float, high: float) -> float | None:
    return mean(rows, [high - low for _ in rows])


@reference(reads="truth", truth="real", needs="truth")
def interval_score(rows: Sequence[Row], *, low: float, high: float, level: float = 0.9) -> float | None:
    """By the pinball losses of the two quantiles that the ends are."""
    tail = (1 - level) / 2

    def loss(alpha: float, end: float, truth: float) -> float:
        return alpha * (truth - end) if truth >= end else (1 - alpha) * (end - truth)

    return mean(rows, [(loss(tail, low, row.truth) + loss(1 - tail, high, row.truth)) / tail for row in rows])


@reference(truth="real")
def wis(rows: Sequence[Row], *, quantile: object) -> float | None:
    """By the two sides of each quantile, which the row has as its limit."""
    return mean(rows, [2 * abs(row.truth - row.score) * side_of(row) for row in rows])


def side_of(row: Row) -> float:
    """The price of an error: the quantile itself below the truth, and the rest of it above."""
    assert row.limit is not None
    return row.limit if row.truth > row.score else 1 - row.limit


@reference(units="sample", truth="of sample")
def crps(rows: Sequence[Row], *, fair: bool = False) -> float | None:
    """By all pairs of members."""
    if not rows:
        return None
    if any(math.isinf(row.score - row.truth) for row in rows) or len({row.truth for row in rows}) > 1:
        return math.nan
    size = len(rows)
    miss = total(abs(row.score - row.truth) for row in rows) / size
    apart = over(total(abs(one.score - other.score) for one in rows for other in rows), size * (size - fair))
    return None if apart is None else miss - apart / 2
