"""Curves: what lies at or above each score. A formula reduces one to a value; its points can be had as they are."""

import math
from typing import Annotated, Literal, NamedTuple

import polars as pl

from polars_mlmetrics.formula.arithmetic import as_parts_of, logit, ratio, share
from polars_mlmetrics.formula.declaration import Declaration
from polars_mlmetrics.formula.measure import Measure
from polars_mlmetrics.formula.parameters import TO_MERGE, Count
from polars_mlmetrics.formula.unit import Unit

Bins = Annotated[Count | None, TO_MERGE]
Grid = Literal["logit", "float"]

# The grids are fixed, so that the cells of two logs are the same cells. Beyond their ends all scores are one cell.
FARTHEST_LOGIT, PART_OF_LOGIT = 16.0, 1 / 32
# Of any score: linear up to 2^-16, by its logarithm up to 2^24.
LINEAR_PARTS, FARTHEST_POWER, PART_OF_POWER = 2.0**16, 40.0, 1 / 80


class Curve(NamedTuple):
    """Sums of the rows at or above each score, best first; rows of one score (or of one cell of a grid) are one step.

    Where rows have weights, all is in parts of their sum.
    """

    positives: pl.Expr
    negatives: pl.Expr
    positives_upto: pl.Expr
    negatives_upto: pl.Expr
    all_positives: pl.Expr
    all_negatives: pl.Expr

    @property
    def recall(self) -> pl.Expr:
        """The true positive rate of each threshold."""
        return ratio(self.positives_upto, self.all_positives)

    @property
    def fall_out(self) -> pl.Expr:
        """The false positive rate of each threshold."""
        return ratio(self.negatives_upto, self.all_negatives)

    @property
    def precision(self) -> pl.Expr:
        """The precision of each threshold."""
        return share(self.positives_upto, self.positives_upto + self.negatives_upto)

    def of_two_classes(self, value: pl.Expr) -> pl.Expr:
        """The value, where there are both true rows and others."""
        return pl.when((self.all_positives > 0) & (self.all_negatives > 0)).then(value)


def curve_of(u: Unit, bins: Bins, grid: Grid) -> Curve:
    """The curve of a unit of rows: of its scores, or of the cells of a grid."""
    positives, negatives = _runs_of(u, bins, grid)
    totals = [u.positives().cast(pl.Float64), u.negatives().cast(pl.Float64)]
    if u.is_weighted:
        positives, negatives, *totals = as_parts_of([positives, negatives, *totals], u.rows())
    upto = (run.cum_sum().cast(pl.Float64) for run in (positives, negatives))
    return Curve(positives, negatives, *upto, *totals)


def _runs_of(u: Unit, bins: Bins, grid: Grid) -> tuple[pl.Expr, ...]:
    """The true and the other rows of each run."""
    score = u.score if bins is None or grid == "float" else u.probability
    key = score.alias("score") if bins is None else cell_of(score, bins, grid).alias(f"cell@{bins},{grid}")
    return u.runs(key, u.truth.alias("positives"), (~u.truth).alias("negatives"), cells=bins)


def cell_of(score: pl.Expr, bins: int, grid: Grid) -> pl.Expr:
    """The number of the cell that a score is in."""
    if grid == "logit":
        part = (logit(score) + FARTHEST_LOGIT) * PART_OF_LOGIT
    else:
        power = (score.abs() * LINEAR_PARTS).log1p() * (1 / math.log(2))
        part = (score.sign() * power + FARTHEST_POWER) * PART_OF_POWER
    return (part * bins).floor().clip(0, bins - 1)


def rows_in_runs(u: Unit, *, bins: Bins = None, grid: Grid = "logit") -> pl.Expr:
    """The weight of the rows of a curve, folded by run: by score, or by cell of a grid."""
    positives, negatives = _runs_of(u, bins, grid)
    return (positives + negatives).sum()


def rows_in_order(u: Unit) -> pl.Expr:
    """The number of rows of a curve whose points the ranking pass gives, so that it has no runs."""
    _ = u.score, u.truth
    return u.rows()


class Cells(NamedTuple):
    """The scores of a curve: as they are, or the cells of a grid."""

    bins: Bins = None
    grid: Grid = "logit"
    score: pl.DataType | None = None
    """The type of the scores, where it is known."""

    def in_runs(self) -> Measure:
        """The measure whose runs are the steps of the curve: the true rows and the others of each."""
        return Measure(RUNS, {"bins": self.bins, "grid": self.grid}, called="curve")


EVERYWHERE = (-math.inf, math.inf)
RUNS = Declaration(rows_in_runs, "group", EVERYWHERE, None)
ORDERED = Measure(Declaration(rows_in_order, "group", EVERYWHERE, None), {}, called="curve")
