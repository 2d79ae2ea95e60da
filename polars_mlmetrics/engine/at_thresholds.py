"""A source at every threshold of a curve: the statistics of a decision, cumulated along the score.

A statistic of a decision is a sum over the predicted rows and one over the others. So each row is folded twice, as one
that is predicted and as one that is not, in the interval of thresholds that its score lies in. At a threshold the first
counts for the intervals above it, and the second for those below. Nothing is taken off a sum that it was added to.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polars_mlmetrics.engine.packing import even
from polars_mlmetrics.engine.partials import Given, Partial
from polars_mlmetrics.engine.ranking import SAME_CODE, UNIT, code_of
from polars_mlmetrics.engine.sources import Source
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.statistic import Statistic

THRESHOLD = f"{INTERNAL}threshold"
"""The column of thresholds, which is a key of the plan."""

_PLACE, _SCORE, _ALL = (f"{INTERNAL}at:{name}" for name in ("place", "score", "all"))
_INFINITE = float("inf")


class AtThresholds(Source):
    """Rows at each of the thresholds of their group, with scores that are compared with them.

    `by` are the columns of the groups, and `thresholds` a table of them and THRESHOLD.
    """

    def __init__(
        self,
        rows: pl.LazyFrame,
        schema: pl.Schema,
        thresholds: pl.LazyFrame,
        by: Sequence[str],
        score: pl.Expr,
        *,
        inclusive: bool,
    ) -> None:
        self.by = list(by)
        self.schema = pl.Schema({**schema, THRESHOLD: pl.Float64()})
        code, bound = pl.col(UNIT), pl.col(THRESHOLD)
        thresholds = thresholds.select(*by, THRESHOLD).unique().sort(THRESHOLD, descending=True)
        coded = thresholds.with_columns(even(code_of(by)).alias(UNIT), pl.lit(0).alias(_ALL))
        place = (bound.rank("ordinal", descending=True).over(UNIT) - 1).cast(pl.Int64).alias(_PLACE)
        self._thresholds = coded.with_columns(place).cache()
        # Two groups of one code would share their thresholds: an error, never a wrong number.
        groups = self._thresholds.select(*by, UNIT).unique()
        clash = pl.when(code.n_unique() == pl.len()).then(pl.lit("0")).otherwise(pl.lit(SAME_CODE)).cast(pl.UInt64)
        checked = self._thresholds.select(UNIT, _PLACE, THRESHOLD)
        checked = checked.join(groups.select(UNIT, clash.alias(_SCORE)), on=UNIT).with_columns(code + pl.col(_SCORE))
        number = score.cast(pl.Float64).fill_nan(None).fill_null(-_INFINITE).alias(_SCORE)
        scored = rows.with_columns(even(code_of(by)).alias(UNIT), number).sort(_SCORE)
        # What is predicted at a threshold is so at all lower ones.
        self._rows = scored.join_asof(
            checked.drop(_SCORE).sort(THRESHOLD),
            left_on=_SCORE,
            right_on=THRESHOLD,
            by=UNIT,
            strategy="backward",
            allow_exact_matches=inclusive,
            check_sortedness=False,
        ).cache()

    def partials(self, asked: Sequence[Partial], by: list[str]) -> list[Given]:
        return [(self._cumulated(each, by), by) for each in asked]

    def _cumulated(self, partial: Partial, by: list[str]) -> pl.LazyFrame:
        """The statistics of each unit at each threshold of its group."""
        groups = [key for key in by if key != THRESHOLD]
        cells = partial.at([*groups, _PLACE])
        statistics = list(cells.fold.statistics.values())
        units = [key for key in cells.unit_keys if key != _PLACE]
        predicted, others = (
            cells.of_rows(self._rows.with_columns(pl.lit(bound).alias(THRESHOLD))).with_columns(pl.lit(0).alias(_ALL))
            for bound in (-_INFINITE, _INFINITE)
        )
        predicted = predicted.cache()
        keys = [_ALL, *units]
        # A row below all thresholds has no place: its place is after all of them.
        places = self._thresholds.select(*self.by, _ALL, _PLACE, THRESHOLD)
        after = places.group_by(*self.by, _ALL).agg(
            pl.col(_PLACE).max() + 1, pl.lit(None, dtype=pl.Float64).alias(THRESHOLD)
        )
        places = pl.concat([places, after])
        grid = predicted.select(keys).unique().join(places, on=[_ALL, *self.by], nulls_equal=True)
        below = pl.col(THRESHOLD).is_null()
        at = [*keys, _PLACE]
        grid = grid.with_columns(pl.when(~below).then(pl.col(_PLACE)).alias(_SCORE))
        named = (predicted, "predicted"), (others, "others")
        for table, side in named:
            told = table.select(*keys, pl.col(_PLACE).alias(_SCORE), *(_of(s, side) for s in statistics))
            grid = grid.join(told, on=[*keys, _SCORE], how="left", nulls_equal=True)
        grid = grid.sort(at)
        grid = grid.with_columns(_cumulated_of(statistic, keys) for statistic in statistics)
        return grid.filter(~below).select(*by, *(key for key in units if key not in by), *(s.name for s in statistics))


def _of(statistic: Statistic, side: str) -> pl.Expr:
    return pl.col(statistic.name).alias(f"{INTERNAL}{side}:{statistic.name}")


def _cumulated_of(statistic: Statistic, keys: Sequence[str]) -> pl.Expr:
    """A statistic at each threshold: of the rows above it as predicted ones, and of those below as others."""
    above, below = (pl.col(f"{INTERNAL}{side}:{statistic.name}") for side in ("predicted", "others"))
    if statistic.monoid == "sum":
        both = above.fill_null(0).cum_sum() + below.fill_null(0).cum_sum(reverse=True).shift(-1, fill_value=0)
    elif statistic.monoid == "min":
        both = pl.min_horizontal(_running(above, "min"), _running(below, "min", reverse=True).shift(-1))
    else:
        both = pl.max_horizontal(_running(above, "max"), _running(below, "max", reverse=True).shift(-1))
    return both.over(keys).alias(statistic.name)


def _running(value: pl.Expr, end: str, *, reverse: bool = False) -> pl.Expr:
    """The lowest, or the highest, of all values so far."""
    extreme = value.cum_min(reverse=reverse) if end == "min" else value.cum_max(reverse=reverse)
    return extreme.backward_fill() if reverse else extreme.forward_fill()
