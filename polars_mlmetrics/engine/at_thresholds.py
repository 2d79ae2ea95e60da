"""A source at every threshold of a curve: the statistics of a decision, cumulated along the score.

A statistic of a decision is a sum over the predicted rows and one over the others. So each row is folded twice, as one
that is predicted and as one that is not, in the interval of thresholds that its score lies in. At a threshold the first
counts for the intervals above it, and the second for those below. Nothing is taken off a sum that it was added to.

The cells of a state are such intervals already: what they hold is told once as predicted and once as not.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import polars as pl

from polars_mlmetrics.engine.folds import merge
from polars_mlmetrics.engine.packing import even
from polars_mlmetrics.engine.partials import Partial, PartialTable
from polars_mlmetrics.engine.ranking import SAME_CODE, UNIT, code_of
from polars_mlmetrics.engine.sources import Source
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.statistic import Statistic

THRESHOLD = f"{INTERNAL}threshold"
"""The column of thresholds, which is a key of the plan."""

_PLACE, _SCORE, _ALL = (f"{INTERNAL}at:{name}" for name in ("place", "score", "all"))
_INFINITE = float("inf")


class CellSides(NamedTuple):
    """The statistics of units at each place among their thresholds: of the rows there, if predicted and if not."""

    predicted: pl.LazyFrame
    others: pl.LazyFrame


class AtThresholds(Source):
    """Rows (or cells of a state) with scores, repeated at each of the thresholds of their group.

    `by` are the columns of the groups, and `thresholds` a table of them and THRESHOLD. The place of a row is that of
    the highest threshold at which it is predicted. If there is none, it has no place: it comes after all of them.
    """

    def __init__(self, schema: pl.Schema, thresholds: pl.LazyFrame, by: Sequence[str]) -> None:
        self.by = list(by)
        self.schema = pl.Schema({**schema, THRESHOLD: pl.Float64()})
        self._thresholds = _placed(thresholds, self.by).cache()

    @abstractmethod
    def _sides(self, partial: Partial) -> CellSides:
        """The statistics of both sides of a place, from a partial that has the place among its keys."""

    def partials(self, partials: Sequence[Partial], by: list[str]) -> list[PartialTable]:
        return [(self._at_each(partial, by), by) for partial in partials]

    def _at_each(self, partial: Partial, by: list[str]) -> pl.LazyFrame:
        """The statistics of each unit at each threshold of its group."""
        at_places = partial.at([*(key for key in by if key != THRESHOLD), _PLACE])
        statistics = list(at_places.fold.statistics.values())
        units = [key for key in at_places.unit_keys if key != _PLACE]
        predicted, others = (side.with_columns(pl.lit(0).alias(_ALL)) for side in self._sides(at_places))
        predicted = predicted.cache()
        grid = self._grid(predicted, units)
        for table, side in ((predicted, "predicted"), (others, "others")):
            told = table.select(_ALL, *units, _PLACE, *(_of(statistic, side) for statistic in statistics))
            grid = grid.join(told, on=[_ALL, *units, _PLACE], how="left", nulls_equal=True)
        keys = [_ALL, *units]
        grid = grid.sort([*keys, _PLACE], nulls_last=True)
        grid = grid.with_columns(_cumulated_of(statistic, keys) for statistic in statistics)
        at_thresholds = grid.filter(pl.col(_PLACE).is_not_null())
        return at_thresholds.select(*partial.unit_keys, *(statistic.name for statistic in statistics))

    def _grid(self, cells: pl.LazyFrame, units: Sequence[str]) -> pl.LazyFrame:
        """Each unit at each threshold of its group, and below all of them."""
        places = self._thresholds.select(*self.by, _ALL, _PLACE, THRESHOLD)
        below = places.select(*self.by, _ALL).unique()
        every = pl.concat([places, below], how="diagonal")
        return cells.select(_ALL, *units).unique().join(every, on=[_ALL, *self.by], nulls_equal=True)

    def _with_places(self, rows: pl.LazyFrame, score: pl.Expr, *, inclusive: bool) -> pl.LazyFrame:
        """Rows with their places, by a score that is no NaN."""
        coded = rows.with_columns(even(code_of(self.by)).alias(UNIT), score.alias(_SCORE)).sort(_SCORE)
        # What is predicted at a threshold is so at all lower ones.
        placed = coded.join_asof(
            self._by_code().sort(THRESHOLD),
            left_on=_SCORE,
            right_on=THRESHOLD,
            by=UNIT,
            strategy="backward",
            allow_exact_matches=inclusive,
            check_sortedness=False,
        )
        return placed.drop(UNIT, _SCORE, THRESHOLD)

    def _by_code(self) -> pl.LazyFrame:
        """The thresholds by the code of their group."""
        # Two groups of one code would share their thresholds: an error, never a wrong number.
        is_alone = pl.col(UNIT).n_unique() == pl.len()
        clash = pl.when(is_alone).then(pl.lit("0")).otherwise(pl.lit(SAME_CODE)).cast(pl.UInt64)
        checked = self._thresholds.select(*self.by, UNIT).unique().select(UNIT, clash.alias(_SCORE))
        found = self._thresholds.select(UNIT, _PLACE, THRESHOLD).join(checked, on=UNIT)
        return found.with_columns(pl.col(UNIT) + pl.col(_SCORE)).drop(_SCORE)


def _placed(thresholds: pl.LazyFrame, by: Sequence[str]) -> pl.LazyFrame:
    """The thresholds of each group, each once, with their place from the highest down, and the code of the group."""
    each = thresholds.select(*by, THRESHOLD).unique().sort(THRESHOLD, descending=True)
    coded = each.with_columns(even(code_of(by)).alias(UNIT), pl.lit(0).alias(_ALL))
    place = pl.col(THRESHOLD).rank("ordinal", descending=True).over(UNIT) - 1
    return coded.with_columns(place.cast(pl.Int64).alias(_PLACE))


class RowsAtThresholds(AtThresholds):
    """The rows of a log, whose scores are compared with the thresholds of their group."""

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
        super().__init__(schema, thresholds, by)
        number = score.cast(pl.Float64).fill_nan(None).fill_null(-_INFINITE)
        self._rows = self._with_places(rows, number, inclusive=inclusive).cache()

    def _sides(self, partial: Partial) -> CellSides:
        # Every row is over the one threshold, and none over the other.
        bounds = (pl.lit(bound).alias(THRESHOLD) for bound in (-_INFINITE, _INFINITE))
        return CellSides(*(partial.of_rows(self._rows.with_columns(bound)) for bound in bounds))


class CellTerms(NamedTuple):
    """The term that a cell adds to a statistic: where its rows are predicted, and where they are not."""

    predicted: pl.Expr
    others: pl.Expr


class CellsAtThresholds(AtThresholds):
    """The cells of a state, with the thresholds of their group at the ends of cells.

    `score` is the column of the highest score in a cell. `told` says of each statistic, by name, what a cell tells of
    it. `wholes` are the statistics of units that are the same at every threshold: of any other the rows add nothing.
    """

    def __init__(
        self,
        cells: pl.LazyFrame,
        wholes: pl.LazyFrame,
        schema: pl.Schema,
        thresholds: pl.LazyFrame,
        by: Sequence[str],
        score: str,
        told: Mapping[str, CellTerms],
    ) -> None:
        super().__init__(schema, thresholds, by)
        self._cells = self._with_places(cells, pl.col(score), inclusive=False).cache()
        self._wholes = wholes
        self._terms = told

    def _sides(self, partial: Partial) -> CellSides:
        keys, names = partial.fold.keys, list(partial.fold.statistics)
        units = [key for key in keys if key != _PLACE]
        held = self._wholes.collect_schema()
        # What is not predicted anywhere counts at every threshold.
        wholes = self._wholes.select(*units, *(name for name in names if name in held and name not in self._terms))
        parts = [self._cells.select(*keys, *self._side(names, side)) for side in (0, 1)]
        parts[1] = pl.concat([parts[1], wholes], how="diagonal")
        statistics = list(partial.fold.statistics.values())
        return CellSides(*(merge(_with_all(part, names), keys, statistics) for part in parts))

    def _side(self, names: Sequence[str], side: int) -> list[pl.Expr]:
        return [self._terms[name][side].alias(name) for name in names if name in self._terms]


def _with_all(table: pl.LazyFrame, names: Sequence[str]) -> pl.LazyFrame:
    there = table.collect_schema()
    return table.with_columns(pl.lit(0).alias(name) for name in names if name not in there)


def _of(statistic: Statistic, side: str) -> pl.Expr:
    return pl.col(statistic.name).alias(f"{INTERNAL}{side}:{statistic.name}")


def _cumulated_of(statistic: Statistic, keys: Sequence[str]) -> pl.Expr:
    """A statistic at each threshold: of the rows above it as predicted ones, and of those below as others."""
    above, below = (pl.col(f"{INTERNAL}{side}:{statistic.name}") for side in ("predicted", "others"))
    if statistic.monoid == "sum":
        both = above.fill_null(0).cum_sum() + below.fill_null(0).cum_sum(reverse=True).shift(-1, fill_value=0)
    else:
        end, extreme = statistic.monoid, pl.min_horizontal if statistic.monoid == "min" else pl.max_horizontal
        both = extreme(_running(above, end), _running(below, end, reverse=True).shift(-1))
    return both.over(keys).alias(statistic.name)


def _running(value: pl.Expr, end: str, *, reverse: bool = False) -> pl.Expr:
    """The lowest, or the highest, of all values so far."""
    extreme = value.cum_min(reverse=reverse) if end == "min" else value.cum_max(reverse=reverse)
    return extreme.backward_fill() if reverse else extreme.forward_fill()
