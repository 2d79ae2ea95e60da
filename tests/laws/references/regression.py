"""The references of regression: truths that are numbers."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tests.laws.references.rows import Row, mean, over, reference, times, total, weight_of
from tests.laws.references.separation import HELD


@reference(truth="real")
def rmse(rows: Sequence[Row], *, scale: float = 1.0) -> float | None:
    square = mean(rows, [((row.score - row.truth) / scale) ** 2 for row in rows])
    return None if square is None else math.sqrt(square)


@reference(truth="real")
def mae(rows: Sequence[Row], *, scale: float = 1.0) -> float | None:
    return mean(rows, [abs(row.score - row.truth) / scale for row in rows])


@reference(truth="real")
def bias(rows: Sequence[Row]) -> float | None:
    return mean(rows, [row.score - row.truth for row in rows])


@reference(truth="real")
def bias_ratio(rows: Sequence[Row]) -> float | None:
    scores, truths = ([times(row.weight, getattr(row, role)) for row in rows] for role in ("score", "truth"))
    return over(total(scores), total(truths))


@reference(truth="real")
def mse(rows: Sequence[Row]) -> float | None:
    return mean(rows, [(row.score - row.truth) ** 2 for row in rows])


@reference(score="above -1", truth="above -1")
def msle(rows: Sequence[Row]) -> float | None:
    return mean(rows, [(math.log1p(row.score) - math.log1p(row.truth)) ** 2 for row in rows])


@reference(truth="real")
def mape(rows: Sequence[Row], *, floor: float | None = None) -> float | None:
    smallest = 2.0**-52 if floor is None else floor
    return mean(rows, [abs(row.score - row.truth) / max(abs(row.truth), smallest) for row in rows])


@reference(truth="real")
def wape(rows: Sequence[Row]) -> float | None:
    missed, whole = [abs(row.score - row.truth) for row in rows], [abs(row.truth) for row in rows]
    size = mean(rows, whole)
    return over(mean(rows, missed) or 0.0, size) if size else None


@reference(truth="real")
def smape(rows: Sequence[Row]) -> float | None:
    def of(row: Row) -> float:
        return over(2 * abs(row.score - row.truth), abs(row.score) + abs(row.truth)) or 0.0

    return mean(rows, [of(row) for row in rows])


@reference(truth="real")
def max_error(rows: Sequence[Row]) -> float | None:
    return max((abs(row.score - row.truth) for row in rows if row.weight > 0), default=None)


@reference(truth="real")
def linear_kappa(rows: Sequence[Row]) -> float | None:
    """The gaps of all pairs, each row with itself among them."""
    if any(math.isinf(row.score) or math.isinf(row.truth) for row in rows):
        return math.nan
    pairs = [(one.weight * other.weight, abs(one.score - other.truth)) for one in rows for other in rows]
    by_chance = over(total(weight * gap for weight, gap in pairs), total(weight for weight, _ in pairs))
    error = mean(rows, [abs(row.score - row.truth) for row in rows])
    found = None if by_chance is None or error is None else over(error, by_chance)
    return None if found is None else 1 - found


@reference(truth="real")
def kendall(rows: Sequence[Row]) -> float | None:
    """By all pairs."""

    def side(low: float, high: float) -> int:
        return (low < high) - (low > high)

    pairs = [
        (one.weight * other.weight, side(one.score, other.score), side(one.truth, other.truth))
        for place, one in enumerate(rows)
        for other in rows[:place]
    ]
    apart = [total(weight for weight, *sides in pairs if sides[which]) for which in (0, 1)]
    return over(total(w * s * t for w, s, t in pairs), math.sqrt(apart[0]) * math.sqrt(apart[1]))


@reference(truth="real")
def pinball(rows: Sequence[Row], *, alpha: float) -> float | None:
    misses = [row.truth - row.score for row in rows]
    return mean(rows, [max(alpha * miss, (alpha - 1) * miss) for miss in misses])


@reference(truth="real")
def d2_pinball(rows: Sequence[Row], *, alpha: float = 0.5) -> float | None:
    """The best constant is one of the truths: each is tried."""
    c = Columns.of(rows)
    if not c.truth_varies:
        return None

    def loss(miss: Fraction) -> Fraction:
        return max(Fraction(alpha) * miss, (Fraction(alpha) - 1) * miss)

    def of_constant(guess: Fraction) -> Fraction:
        return dot([loss(truth - guess) for truth in c.truth], c.weight)

    return float(1 - dot([loss(-miss) for miss in c.miss], c.weight) / min(map(of_constant, set(c.truth))))


@reference(truth="real")
def d2_absolute_error(rows: Sequence[Row]) -> float | None:
    return d2_pinball(rows)


@reference(truth="real")
def expectile(rows: Sequence[Row], *, alpha: float) -> float | None:
    def side(row: Row) -> float:
        return abs(alpha - (row.score > row.truth))

    return mean(rows, [side(row) * (row.score - row.truth) ** 2 for row in rows])


@reference(truth="real")
def log_cosh(rows: Sequence[Row]) -> float | None:
    """Cosh x is 1 + 2·sinh²(x/2): so nothing is lost next to 1."""

    def of(miss: float) -> float:
        return math.log1p(2 * math.sinh(miss / 2) ** 2) if miss < 300 else miss - math.log(2)

    return mean(rows, [of(abs(row.score - row.truth)) for row in rows])


@reference(truth="real")
def huber(rows: Sequence[Row], *, delta: float) -> float | None:
    misses = [abs(row.score - row.truth) for row in rows]
    return mean(rows, [miss**2 / 2 if miss <= delta else delta * (miss - delta / 2) for miss in misses])


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


@reference(truth="real")
def concordance(rows: Sequence[Row]) -> float | None:
    c = Columns.of(rows)
    if not c.weight:
        return None
    score, truth = from_mean(c.score, c.weight), from_mean(c.truth, c.weight)
    apart = dot(c.miss, c.weight) ** 2 / sum(c.weight)
    whole = dot(score, score, c.weight) + dot(truth, truth, c.weight) + apart
    return float(2 * dot(score, truth, c.weight) / whole) if whole else None


@reference(truth="real")
def icc(rows: Sequence[Row]) -> float | None:
    """By the mean squares of two raters: of rows, of raters and of what is left (McGraw and Wong 1996, table 4)."""
    c = Columns.of(rows)
    n = len(c.weight)
    if n < 2:
        return None
    part = [weight * n / sum(c.weight) for weight in c.weight]
    of_rows = [(score + truth) / 2 for score, truth in zip(c.score, c.truth, strict=True)]
    middle = dot(of_rows, part) / n
    of_raters = [dot(column, part) / n for column in (c.score, c.truth)]
    rows_apart = 2 * dot([(value - middle) ** 2 for value in of_rows], part) / (n - 1)
    raters_apart = n * sum((value - middle) ** 2 for value in of_raters)
    left = sum(
        dot([(x - of_row - mine + middle) ** 2 for x, of_row in zip(column, of_rows, strict=True)], part)
        for column, mine in zip((c.score, c.truth), of_raters, strict=True)
    ) / (n - 1)
    whole = rows_apart + left + Fraction(2, n) * (raters_apart - left)
    return float((rows_apart - left) / whole) if whole else None


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
