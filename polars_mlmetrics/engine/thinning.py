"""Thinning: the points of a curve that it takes to draw it, from the order of the rows or from their runs.

The way along a curve, tpr + fpr, is cut into boxes of one width, and the last run of each box is kept. So from one
point to the next there is a step of one run, which is a straight line, and then less than the width of a box.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from polars_mlmetrics.data.expressions import any_of
from polars_mlmetrics.engine.packing import (
    code_in_key,
    counts_of,
    is_of_code,
    is_of_number,
    number_in_key,
    truth_in_key,
    two_counts,
)
from polars_mlmetrics.engine.ranking import KEY, UNIT, Ranking, at_first
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.arithmetic import share

SCORE, NEXT, TRUE, OTHER, ALL_TRUE, ALL_OTHER, PLACE, RUNS, POINT = (
    f"{INTERNAL}curve:{name}"
    for name in ("score", "next", "true", "other", "all_true", "all_other", "place", "runs", "point")
)
"""Of a run: its score and that of the next one below (-inf below the last), the true rows and the others down to it,
and those of the unit; its place among the runs of the unit, and how many these are. Of the points of a run: 0 for the
one with nothing above it, 1 for the other, or PAST_ALL."""

PAST_ALL = 2
"""The point below rows of -inf, which are greater than no threshold."""

COUNTS = (TRUE, OTHER, ALL_TRUE, ALL_OTHER)
"""The counts of a point: of the rows above its threshold, and of its unit."""

THRESHOLD = f"{INTERNAL}threshold"
"""The threshold of a point: TRUE and OTHER count the rows above it."""

_CHANGE, _UPTO, _BEFORE, _WHOLE, _BEGIN, _END, _BELOW, _KEPT = (
    f"{INTERNAL}thinning:{name}" for name in ("change", "upto", "before", "whole", "begin", "end", "below", "kept")
)

PARTS_OF_OCTAVE = 8.0

BESIDE = 2.0**-30
"""How far the edges of boxes lie from whole numbers: many shares are on these, and their last digit must not decide."""


@dataclass(frozen=True)
class Thinning:
    """How many points are enough, and whether the axes are stretched at their ends."""

    points: int | None
    """None keeps all of them."""
    is_stretched: bool = False
    """Keep one run for each eighth of an octave of both errors too."""

    def thin(self, runs: pl.LazyFrame, columns: Sequence[str], scores: Sequence[pl.Expr] = ()) -> pl.LazyFrame:
        """The points of runs in order, with some columns of the runs: a point is what lies above its threshold.

        The first has nothing above it, and the last all: its threshold is -inf. A unit without runs keeps its row.
        `scores` are columns to add to the runs of which points are made.
        """
        runs = runs.with_columns(self._is_kept().fill_null(True).alias(_KEPT))
        runs = runs.filter(pl.col(_KEPT) | (pl.col(PLACE) == 1)).with_columns(scores)
        # A first run that is kept is two points.
        first, end = pl.when(pl.col(PLACE) == 1).then(0).otherwise(1), pl.when(_KEPT).then(2).otherwise(1)
        points = runs.with_columns(pl.int_ranges(first, end).alias(POINT)).explode(POINT)
        is_nothing = pl.col(POINT) == 0
        threshold = pl.when(is_nothing).then(pl.col(SCORE)).otherwise(pl.col(NEXT)).alias(THRESHOLD)
        above = (pl.when(is_nothing).then(0.0).otherwise(pl.col(name)).alias(name) for name in (TRUE, OTHER))
        counted = (column.cast(pl.Float64) for column in (threshold, *above))
        is_past_all = ~is_nothing & (pl.col(SCORE) == float("-inf"))
        point = pl.when(is_past_all).then(PAST_ALL).otherwise(POINT).alias(POINT)
        return points.select(*columns, ALL_TRUE, ALL_OTHER, point, *counted)

    def _is_kept(self) -> pl.Expr:
        if self.points is None:
            return pl.lit(True)
        true, other, all_true, all_other = map(pl.col, COUNTS)
        way = share(true, all_true) + share(other, all_other)
        places = [way * (0.5 * (self.points - 1))]
        if self.is_stretched:
            missed = (all_true - true).clip(lower_bound=0)
            # Of rates, not of counts: the unit of weights is nothing to a curve.
            errors = share(other, all_other), share(missed, all_true)
            places += [error.log(2) * PARTS_OF_OCTAVE for error in errors]
        boxes = [(place + BESIDE).floor() for place in places]
        ends = [box != box.shift(-1) for box in boxes]
        return (pl.col(RUNS) <= self.points) | (pl.col(PLACE) == pl.col(RUNS)) | any_of(ends)


EVERY = Thinning(None)


def runs_of_sums(score: pl.Expr, true: pl.Expr, other: pl.Expr) -> pl.Expr:
    """Runs of a unit in order, as a struct: from the score of each, its true rows and the others."""
    score, true, other = (column.cast(pl.Float64) for column in (score, true.cum_sum(), other.cum_sum()))
    return pl.struct(
        score.alias(SCORE),
        score.shift(-1, fill_value=float("-inf")).alias(NEXT),
        true.alias(TRUE),
        other.alias(OTHER),
        # The sums by run end where those of the group do: a curve ends in its corner, whatever was rounded.
        true.max().alias(ALL_TRUE),
        other.max().alias(ALL_OTHER),
        pl.int_range(1, score.len() + 1).alias(PLACE),
        score.len().cast(pl.Int64).alias(RUNS),
    )


@dataclass
class ThinnedRanking(Ranking):
    """The points of the curve of each unit, from the order of its rows."""

    thinning: Thinning = Thinning(2)

    def table(self, rows: pl.LazyFrame, code: pl.Expr) -> pl.LazyFrame:
        key, below = pl.col(KEY), pl.col(_BELOW)
        next_score = pl.when(pl.col(PLACE) < pl.col(RUNS)).then(number_in_key(below)).otherwise(float("-inf"))
        scores = [code_in_key(key).alias(UNIT), number_in_key(key).alias(SCORE), next_score.alias(NEXT)]
        # Scores are looked up last: of few runs, where most are left out.
        return self.thinning.thin(self._runs(self.in_order(rows, code)), [UNIT], scores)

    def _runs(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Runs in order, from rows in order: what is counted down to each, and in its unit."""
        key, change, upto, before, place = map(pl.col, (KEY, _CHANGE, _UPTO, _BEFORE, PLACE))
        one = two_counts(pl.lit(1), truth_in_key(key))
        rows = rows.with_columns((key ^ key.shift(-1)).alias(_CHANGE), one.cum_sum().alias(_UPTO))
        # The last row of a tie stands for all of it.
        runs = rows.filter(is_of_number(change).fill_null(True)).with_row_index(PLACE).cast({PLACE: pl.Int64})
        last = is_of_code(change).fill_null(True)
        first = last.shift(1, fill_value=True)
        runs = runs.with_columns(
            at_first(first, upto.shift(1, fill_value=0)).alias(_BEFORE),
            at_first(first, place).alias(_BEGIN),
            pl.when(last).then(upto).backward_fill().alias(_WHOLE),
            pl.when(last).then(place).backward_fill().alias(_END),
        )
        rows_upto, true = counts_of(upto - before)
        all_rows, all_true = counts_of(pl.col(_WHOLE) - before)
        return runs.select(
            key,
            key.shift(-1).alias(_BELOW),
            true.alias(TRUE),
            (rows_upto - true).alias(OTHER),
            all_true.alias(ALL_TRUE),
            (all_rows - all_true).alias(ALL_OTHER),
            (place - pl.col(_BEGIN) + 1).alias(PLACE),
            (pl.col(_END) - pl.col(_BEGIN) + 1).alias(RUNS),
        )
