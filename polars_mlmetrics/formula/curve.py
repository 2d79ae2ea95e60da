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

    threshold: pl.Expr
    """The score itself, or the number of its cell."""
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
    key, positives, negatives = _runs_of(u, bins, grid)
    totals = [u.positives().cast(pl.Float64), u.negatives().cast(pl.Float64)]
    if u.is_weighted:
        positives, negatives, *totals = as_parts_of([positives, negatives, *totals], u.rows())
    upto = (run.cum_sum().cast(pl.Float64) for run in (positives, negatives))
    return Curve(key, positives, negatives, *upto, *totals)


def _runs_of(u: Unit, bins: Bins, grid: Grid) -> tuple[pl.Expr, pl.Expr, pl.Expr]:
    """The keys of the runs, and the true and the other rows of each."""
    key = u.score.alias("score") if bins is None else _cell(u, bins, grid).alias(f"cell@{bins},{grid}")
    positives, negatives = u.runs(key, u.truth.alias("positives"), (~u.truth).alias("negatives"), cells=bins)
    return u.run_keys(key), positives, negatives


def _cell(u: Unit, bins: int, grid: Grid) -> pl.Expr:
    return cell_of(u.probability if grid == "logit" else u.score, bins, grid)


def cell_of(score: pl.Expr, bins: int, grid: Grid) -> pl.Expr:
    """The number of the cell that a score is in."""
    if grid == "logit":
        part = (logit(score) + FARTHEST_LOGIT) * PART_OF_LOGIT
    else:
        power = (score.abs() * LINEAR_PARTS).log1p() * (1 / math.log(2))
        part = (score.sign() * power + FARTHEST_POWER) * PART_OF_POWER
    return (part * bins).floor().clip(0, bins - 1)


def points_of(u: Unit, *, bins: Bins = None, grid: Grid = "logit") -> pl.Expr:
    """The points of the curve of a unit, from the highest score down, in weights of its rows."""
    keys, positives, negatives = _runs_of(u, bins, grid)
    # The sums by run end where those of the unit do: a curve ends in its corner, whatever was rounded.
    upto = [run.cum_sum().cast(pl.Float64) for run in (positives, negatives)]
    columns = {
        "threshold": keys,
        "next": keys.shift(-1),
        "positives_upto": upto[0],
        "negatives_upto": upto[1],
        "all_positives": upto[0].max(),
        "all_negatives": upto[1].max(),
        "place": pl.int_range(1, keys.len() + 1),
        "n_runs": keys.count().cast(pl.Int64),
    }
    return pl.struct(value.alias(name) for name, value in columns.items()).implode()


def positives_of(u: Unit, *, bins: Bins = None, grid: Grid = "logit") -> pl.Expr:
    """The true rows of a curve."""
    positives, _ = _classes(u, bins, grid)
    return positives.cast(pl.Float64)


def negatives_of(u: Unit, *, bins: Bins = None, grid: Grid = "logit") -> pl.Expr:
    """The other rows of a curve."""
    _, negatives = _classes(u, bins, grid)
    return negatives.cast(pl.Float64)


def rows_of(u: Unit, *, bins: Bins = None, grid: Grid = "logit") -> pl.Expr:
    """How many rows a curve is of."""
    _classes(u, bins, grid)
    return u.included_rows()


def _classes(u: Unit, bins: Bins, grid: Grid) -> tuple[pl.Expr, pl.Expr]:
    """The true rows and the others, as the curve reads them: what is broken for it is broken for its counts."""
    if bins is None and not u.is_weighted:
        # The ranking pass tells such a curve, and has no runs.
        _ = u.score
        return u.positives(), u.negatives()
    _, positives, negatives = _runs_of(u, bins, grid)
    return positives.sum(), negatives.sum()


class Cells(NamedTuple):
    """The scores of a curve: as they are, or the cells of a grid."""

    bins: Bins = None
    grid: Grid = "logit"

    def points(self) -> Measure:
        """The points of the curve as a measure. Its value in a group is a list with a struct for each point.

        One point may have no threshold: that of the rows that do not count.
        """
        return self._measure(POINTS)

    def counts(self) -> tuple[Measure, ...]:
        """How many true rows, others, and rows at all the curve is of: the first two NaN where it is broken."""
        return tuple(map(self._measure, COUNTS))

    def _measure(self, declaration: Declaration) -> Measure:
        return Measure(declaration, {"bins": self.bins, "grid": self.grid}, called="curve")


EVERYWHERE = (-math.inf, math.inf)
POINTS = Declaration(points_of, "group", EVERYWHERE, None, is_curve=True)
COUNTS = (
    *(Declaration(of, "group", EVERYWHERE, None) for of in (positives_of, negatives_of)),
    Declaration(rows_of, "group", EVERYWHERE, None, counts=True),
)
