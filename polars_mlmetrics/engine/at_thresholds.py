"""A source at every threshold of a curve: the statistics of a decision, cumulated along the score.

A statistic of a decision is a sum over the predicted rows and one over the others. So each row is folded twice, as one
that is predicted and as one that is not, in the interval of thresholds that its score lies in. At a threshold the first
counts for the intervals above it, and the second for those below. Nothing is taken off a sum that it was added to.

The cells of a state are such intervals already: their sums count once as predicted and once as not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl

from polars_mlmetrics.engine.folds import fold
from polars_mlmetrics.engine.packing import even
from polars_mlmetrics.engine.partials import Partial, PartialKind, PartialTable
from polars_mlmetrics.engine.ranking import UNIT, code_of, zero_if_apart
from polars_mlmetrics.engine.sources import LogSource, OfSource, Source
from polars_mlmetrics.engine.thinning import THRESHOLD
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.statistic import Statistic

PLACE, _SCORE, _ZERO, _ALL, _CELL, _END, _UNIT = (
    f"{INTERNAL}at:{name}" for name in ("place", "score", "zero", "all", "cell", "end", "unit")
)

SIDES = ("predicted", "others")

CELL_COUNTS = [f"{INTERNAL}at:{name}" for name in ("positives", "negatives", "n_rows")]
"""The columns of cells: the weight of their true rows and of the others, and how many rows they have."""

COUNTS_AT = [f"{INTERNAL}at:{name}" for name in ("tp", "fp", "fn", "tn", "rows")]
"""The counts at a threshold: of true rows and of others that are predicted, of those that are not; and all rows."""

INFINITE = float("inf")

BYTES_A_ROW = 150
"""Bytes that a row takes, about, while it is placed among thresholds, and folded as one of both sides."""

Sides = tuple[pl.LazyFrame, pl.LazyFrame]
"""The table of a partial for rows as predicted ones, and for the same rows as others."""

SidesOf = Callable[[Sequence[Partial]], list[Sides]]
"""A function that gives both sides of partials."""


class Thresholds:
    """The thresholds of groups, each with its place from the highest down.

    `by` are the columns of the groups, and `points` has these and THRESHOLD, which may be null.
    """

    def __init__(self, points: pl.LazyFrame, by: Sequence[str]) -> None:
        self.by = list(by)
        each = points.select(*by, THRESHOLD).unique().sort(THRESHOLD, descending=True)
        coded = each.with_columns(even(code_of(by)).alias(UNIT), pl.lit(0).alias(_ALL))
        place = pl.col(THRESHOLD).rank("ordinal", descending=True).over(UNIT) - 1
        placed = coded.with_columns(place.cast(pl.Int64).alias(PLACE))
        # By the place, so that the filter stays here: one that reached the points would have them worked out anew.
        self._table = placed.filter(pl.col(PLACE).is_not_null()).cache()

    def placed(self, rows: pl.LazyFrame, score: pl.Expr, *, inclusive: bool) -> pl.LazyFrame:
        """Rows (or cells) with the place of the highest threshold at which they are predicted; null if there is none.

        A score must be no NaN.
        """
        coded = rows.with_columns(even(code_of(self.by)).alias(UNIT), score.alias(_SCORE)).sort(_SCORE)
        apart = self._table.select(*self.by, UNIT).unique().select(UNIT, zero_if_apart().alias(_ZERO))
        by_code = self._table.join(apart, on=UNIT).sort(THRESHOLD)
        by_code = by_code.select(pl.col(UNIT) + pl.col(_ZERO), PLACE, THRESHOLD)
        # What is predicted at a threshold is so at all lower ones: the next one backward is the highest.
        placed = coded.join_asof(
            by_code, left_on=_SCORE, right_on=THRESHOLD, by=UNIT, allow_exact_matches=inclusive, check_sortedness=False
        )
        return placed.drop(UNIT, _SCORE, THRESHOLD)

    def placed_by_cell(self, rows: pl.LazyFrame, cell: pl.Expr, ends: pl.Series) -> pl.LazyFrame:
        """The same, of rows by their cells, which end at these scores: where each threshold is such an end."""
        number = pl.int_range(pl.len()).cast(pl.Float64).alias(_CELL)
        cells = self._table.select(*self.by, _ALL).unique()
        cells = cells.join(pl.LazyFrame({_ALL: 0, _END: ends}).with_columns(number), on=_ALL).drop(_ALL)
        placed = self.placed(cells, pl.col(_END), inclusive=False).drop(_END)
        coded = rows.with_columns(cell.alias(_CELL))
        return coded.join(placed, on=[*self.by, _CELL], how="left", nulls_equal=True).drop(_CELL)

    def at_each(self, tables: Sequence[pl.LazyFrame], keys: Sequence[str], along: Sequence[pl.Expr]) -> pl.LazyFrame:
        """Each unit of the first table at each threshold of its group, with what is worked out along its places.

        The tables have the keys of a unit and PLACE, which is null for what is predicted nowhere: it comes last.
        """
        unit = [_ALL, *keys]
        tables = [table.with_columns(pl.lit(0).alias(_ALL)) for table in tables]
        units = tables[0].select(unit).unique().with_row_index(_UNIT).cache()
        places = self._table.select(*self.by, _ALL, PLACE, THRESHOLD)
        every = pl.concat([places, places.select(*self.by, _ALL).unique()], how="diagonal")
        # One number stands for the keys while there is a row for each threshold.
        grid = units.join(every, on=[_ALL, *self.by], nulls_equal=True).select(_UNIT, PLACE, THRESHOLD)
        for table in tables:
            numbered = table.join(units, on=unit, nulls_equal=True).drop(unit)
            grid = grid.join(numbered, on=[_UNIT, PLACE], how="left", nulls_equal=True)
        grid = grid.sort(_UNIT, PLACE, nulls_last=True)
        found = grid.select(_UNIT, PLACE, THRESHOLD, *(column.over(_UNIT) for column in along))
        return found.filter(pl.col(PLACE).is_not_null()).join(units, on=_UNIT).drop(_UNIT, PLACE, _ALL)


def sides_of_rows(
    log: LogSource,
    sample: Sequence[str],
    placed: Callable[[pl.LazyFrame], pl.LazyFrame],
    buckets: Sequence[str],
) -> SidesOf:
    """The sides of the rows of a log, once they are `placed`; read in parts where passes are wanted.

    Where there are buckets, the rows are folded by these too, once for all that is asked with buckets and without.
    """
    # Rows that are read at once are placed once, however often they are folded.
    at_once = placed(log.rows).cache()
    folded: dict[tuple[Any, ...], Sides] = {}

    def tables_of(rows: pl.LazyFrame, partials: Sequence[Partial]) -> list[pl.LazyFrame]:
        of_part = at_once if rows is log.rows else placed(rows).cache()
        # Every row is over the one threshold, and none over the other.
        sides = [of_part.with_columns(pl.lit(bound).alias(THRESHOLD)) for bound in (-INFINITE, INFINITE)]
        return [log.of_rows(each, side, each.by) for each in partials for side in sides]

    def folded_of(partials: Sequence[Partial]) -> list[Sides]:
        def merge(tables: list[pl.LazyFrame]) -> list[pl.LazyFrame]:
            both = [each for each in partials for _ in SIDES]
            return [each.merged(table) for each, table in zip(both, tables, strict=True)]

        merged = merge(log.gathered(BYTES_A_ROW, sample, lambda rows: tables_of(rows, partials), merge))
        return list(zip(merged[::2], merged[1::2], strict=True))

    def sides_of(partials: Sequence[Partial]) -> list[Sides]:
        finest = [each.at(list(dict.fromkeys([*each.by, *buckets]))) for each in partials]
        names = [(PartialKind.of(each, each.by), *sorted(each.by), *each.fold.statistics) for each in finest]
        new = {name: each for name, each in zip(names, finest, strict=True) if name not in folded}
        found = zip(new, folded_of(list(new.values())), strict=True)
        folded.update({name: (over.cache(), under.cache()) for name, (over, under) in found})
        of_each = zip(partials, (folded[name] for name in names), strict=True)
        return [(each.merged(over), each.merged(under)) for each, (over, under) in of_each]

    return sides_of


def sides_of_tables(predicted: Source, others: Source) -> SidesOf:
    """The sides of two tables of statistics."""

    def sides_of(partials: Sequence[Partial]) -> list[Sides]:
        found = [[source.partials([each], each.by)[0][0] for source in (predicted, others)] for each in partials]
        return [(of_predicted, of_others) for of_predicted, of_others in found]

    return sides_of


class SharedTables(OfSource):
    """A source whose tables of runs are worked out once, however many plans read them."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.schema = source.schema
        self._tables: dict[tuple[Any, ...], PartialTable] = {}

    def partials(self, partials: Sequence[Partial], by: list[str]) -> list[PartialTable]:
        return [self._shared(each, by) for each in partials]

    def _shared(self, partial: Partial, by: list[str]) -> PartialTable:
        key = (PartialKind.of(partial, by), *by, *partial.fold.statistics)
        if key not in self._tables:
            [(table, keys)] = self.source.partials([partial], by)
            self._tables[key] = table.cache(), keys
        return self._tables[key]


class AtThresholds(Source):
    """Two sides with the key PLACE, repeated at each threshold: rows as predicted ones, and as others."""

    def __init__(self, sides_of: SidesOf, thresholds: Thresholds, schema: pl.Schema) -> None:
        self.schema = schema
        self._sides_of = sides_of
        self._thresholds = thresholds

    def partials(self, partials: Sequence[Partial], by: list[str]) -> list[PartialTable]:
        at_places = [partial.at([*(key for key in by if key != THRESHOLD), PLACE]) for partial in partials]
        sides = zip(partials, at_places, self._sides_of(at_places), strict=True)
        return [(self._at_each(partial, placed, tables), by) for partial, placed, tables in sides]

    def _at_each(self, partial: Partial, at_places: Partial, tables: Sides) -> pl.LazyFrame:
        """The statistics of each unit at each threshold of its group."""
        statistics = at_places.fold.statistics
        keys = [key for key in at_places.unit_keys if key != PLACE]
        sides = [
            table.select(*keys, PLACE, pl.col(statistics).name.prefix(f"{INTERNAL}{side}:"))
            for side, table in zip(SIDES, tables, strict=True)
        ]
        found = self._thresholds.at_each(sides, keys, list(map(_cumulated_of, statistics.values())))
        return found.select(*partial.unit_keys, *statistics)


class CountsAtThresholds(Source):
    """The counts of cells at each threshold, and the statistics that follow from them; others are in another source.

    The cells have the keys of the groups, PLACE and `CELL_COUNTS`. `following` are the statistics, by name, in terms
    of `COUNTS_AT`.
    """

    def __init__(
        self, cells: pl.LazyFrame, thresholds: Thresholds, following: Mapping[str, pl.Expr], others: Source
    ) -> None:
        self.schema = others.schema
        self._cells = cells
        self._thresholds = thresholds
        self._following = dict(following)
        self._others = others

    def partials(self, partials: Sequence[Partial], by: list[str]) -> list[PartialTable]:
        return [self._known(each, by) or self._others.partials([each], by)[0] for each in partials]

    def _known(self, partial: Partial, by: list[str]) -> PartialTable | None:
        names = partial.fold.statistics
        if not names.keys() <= self._following.keys():
            return None
        keys = [key for key in partial.fold.keys if key != THRESHOLD]
        cells = fold(self._cells, [*keys, PLACE], [pl.col(CELL_COUNTS).sum()])
        counts = self._thresholds.at_each([cells], keys, COUNTED)
        return counts.select(*partial.fold.keys, *(self._following[name].alias(name) for name in names)), by


def _cumulated_of(statistic: Statistic) -> pl.Expr:
    """A statistic along the thresholds: of the rows above each as predicted ones, and of those below as others."""
    above, below = (pl.col(f"{INTERNAL}{side}:{statistic.name}") for side in SIDES)
    if statistic.monoid == "sum":
        return (_sum_above(above) + _sum_below(below)).alias(statistic.name)
    end, extreme = statistic.monoid, pl.min_horizontal if statistic.monoid == "min" else pl.max_horizontal
    return extreme(_running(above, end), _running(below, end, reverse=True).shift(-1)).alias(statistic.name)


def _sum_above(value: pl.Expr) -> pl.Expr:
    return value.fill_null(0).cum_sum()


def _sum_below(value: pl.Expr) -> pl.Expr:
    return value.fill_null(0).cum_sum(reverse=True).shift(-1, fill_value=0)


def _running(value: pl.Expr, end: str, *, reverse: bool = False) -> pl.Expr:
    """The lowest, or the highest, of all values so far."""
    extreme = value.cum_min(reverse=reverse) if end == "min" else value.cum_max(reverse=reverse)
    return extreme.backward_fill() if reverse else extreme.forward_fill()


_POSITIVES, _NEGATIVES, _N_ROWS = map(pl.col, CELL_COUNTS)
_ALONG = (
    _sum_above(_POSITIVES),
    _sum_above(_NEGATIVES),
    _sum_below(_POSITIVES),
    _sum_below(_NEGATIVES),
    _N_ROWS.sum(),
)
COUNTED = list(map(pl.Expr.alias, _ALONG, COUNTS_AT))
"""The counts at each threshold, worked out along the places of a unit."""
