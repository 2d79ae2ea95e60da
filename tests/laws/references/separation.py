"""The references of separation: curves over all thresholds, exact or in bins."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from itertools import pairwise

from tests.laws.references.rows import Row, negatives_of, over, positives_of, reference, total, weight_of

CLASSES = positives_of, negatives_of
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
    return [row._replace(score=float(cell(row.score, bins))) for row in rows]


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
    rows: Sequence[Row],
    *,
    max_fpr: float | None = None,
    rescaled: bool = True,
    bins: int | None = None,
    grid: str = "logit",
) -> float | None:
    """Chance that a positive is above a negative, pair by pair; a tie is half a win."""
    if max_fpr is not None and max_fpr < 1:
        area = partial_area(points_of(rows, bins, grid), max_fpr)
        return mcclish(area, max_fpr) if rescaled else area
    rows = tied_in_cells(rows, bins, grid)
    positives, negatives = positives_of(rows), negatives_of(rows)
    wins = [
        p.weight * n.weight * (1.0 if p.score > n.score else 0.5 if p.score == n.score else 0.0)
        for p in positives
        for n in negatives
    ]
    return over(total(wins), weight_of(positives) * weight_of(negatives))


def partial_area(points: Sequence[Point], max_fpr: float) -> float | None:
    """The area up to a false positive rate."""
    if not points:
        return None
    areas = []
    for one, other in pairwise(points):
        width = other.fpr - one.fpr
        inside = min(other.fpr, max_fpr) - one.fpr
        if inside > 0:
            end = one.tpr + (other.tpr - one.tpr) * inside / width
            areas.append(inside * (one.tpr + end) / 2)
    return total(areas)


def mcclish(area: float | None, max_fpr: float) -> float | None:
    """An area, moved and stretched so that chance is 1/2 and the best is 1."""
    lowest, highest = max_fpr**2 / 2, max_fpr
    return None if area is None else (1 + (area - lowest) / (highest - lowest)) / 2


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


@reference()
def interpolated_pr_auc(rows: Sequence[Row], *, bins: int | None = None, grid: str = "logit") -> float | None:
    """The area under x / (x + false positives) between two thresholds, along which these grow evenly with x."""
    rows = tied_in_cells(rows, bins, grid)
    positives = weight_of(positives_of(rows))
    if positives == 0:
        return None
    area, tp, fp = Decimal(0), Decimal(0), Decimal(0)
    with localcontext(prec=200):  # nearly equal terms are taken from each other
        for score in sorted({row.score for row in rows}, reverse=True):
            tie = [row for row in rows if row.score == score]
            true, false = (sum((Decimal(r.weight) for r in part(tie)), Decimal(0)) for part in CLASSES)
            if true > 0:
                # x / (x + fp + false / true * (x - tp)) is x / (a x + b): its integral is x/a - b/a^2 ln(a x + b).
                a, b = 1 + false / true, fp - false / true * tp
                area += true / a - (b / a**2 * ((tp + fp + true + false) / (tp + fp)).ln() if tp + fp else 0)
            tp, fp = tp + true, fp + false
        return float(area / tp)


@reference()
def equal_error_rate(rows: Sequence[Row], *, bins: int | None = None, grid: str = "logit") -> float | None:
    """The first crossing of the curve, its points joined, with the line of equal errors."""
    for one, other in pairwise(points_of(rows, bins, grid)):
        before, after = one.fpr - (1 - one.tpr), other.fpr - (1 - other.tpr)
        if after >= 0:
            return one.fpr + (other.fpr - one.fpr) * (-before / (after - before) if after > before else 0.0)
    return None
