"""The ranking pass: how each row stands in its unit, for all units from one sort.

A row becomes one number: the code of its unit, its score upside down, its truth. In the order of these numbers the
rows of a unit lie together, best first, and in a tie the false ones come first. All the rest is counting: of rows, of
true rows, of where a unit and where a tie begins. Where every statistic asked for is of true rows alone, the others
have done their part once they are counted, and are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from polars_mlmetrics.data.roles import same_expression
from polars_mlmetrics.engine.arithmetic import (
    as_fixed_point,
    code_in_key,
    from_fixed_point,
    halves,
    number_in_key,
    ratio,
    sort_key,
    tie_in_key,
    truth_in_key,
)
from polars_mlmetrics.engine.folds import fold, take, two_of_one_name
from polars_mlmetrics.engine.reading import OfPlace, Statistic, folded
from polars_mlmetrics.errors import INTERNAL

STANDINGS = ("place", "above", "rank", "true_place", "true_above", "true_rank")
"""What the pass tells of a row: its place, and how many rows are above its tie, and down to the end of it; the same
among the true rows alone."""

SAME_CODE = "two units have one code, by chance. Of two samples it is unlikely that they meet in one of passes=100"

_KEY, _HIGH, _LOW, _UNIT, _TRUE, _ROW, _TRUES, _NEW_UNIT, _NEW_TIE, _LAST = (
    f"{INTERNAL}pass:{name}"
    for name in ("key", "high", "low", "unit", "true", "row", "trues", "new_unit", "new_tie", "last")
)


@dataclass(frozen=True)
class Order:
    """An order of rows inside their units: of those that count, the highest number first."""

    rows: pl.Expr
    number: pl.Expr
    truth: pl.Expr
    held: Mapping[str, tuple[bool, pl.DataType]]
    """Columns that the sorted key holds and gives back, with their types: the number, or the truth (True)."""
    name: str = ""


def standing(name: str) -> pl.Expr:
    """The column in which the pass tells it."""
    return pl.col(f"{INTERNAL}standing:{name}")


def take_share(shares: dict[str, OfPlace], name: str, of_place: OfPlace) -> None:
    """Add what a tie shares to what others do, unless it is there already."""
    known, place = shares.setdefault(name, of_place), pl.col("place")
    if not same_expression(known(place), of_place(place)):
        raise two_of_one_name(name)


def code_of(columns: Sequence[str]) -> pl.Expr:
    """One number for the values of several columns."""
    if not columns:
        return pl.lit(0, dtype=pl.UInt64)
    return pl.sum_horizontal(pl.col(column).hash(seed) for seed, column in enumerate(columns))


@dataclass
class Ranking:
    """Statistics of the rows of units, in one order."""

    order: Order
    unit: Sequence[str]
    statistics: dict[str, Statistic] = field(default_factory=dict)
    shares: dict[str, OfPlace] = field(default_factory=dict)
    """What the rows of a tie share alike: the values of the places that they hold together."""

    def take(self, statistic: Statistic) -> None:
        """Fold a statistic too."""
        take(self.statistics, statistic, self.unit)

    def join_to(self, units: pl.LazyFrame, rows: pl.LazyFrame) -> pl.LazyFrame:
        """The statistics, beside those that are known of the units already."""
        code = pl.col(_UNIT)
        # Two units of one code would be ranked as one: an error here, never a wrong number.
        clash = pl.when(code.n_unique() == pl.len()).then(pl.lit("0")).otherwise(pl.lit(SAME_CODE)).cast(pl.UInt64)
        coded = units.with_columns(code_in_key(code_of(self.unit)).alias(_UNIT)).with_columns(code + clash)
        joined = coded.join(self._table(rows), on=_UNIT, how="left").drop(_UNIT)
        return joined.with_columns(pl.col(name).fill_null(0) for name in self._sums())

    def _sums(self) -> Iterator[str]:
        return (name for name, statistic in self.statistics.items() if statistic.monoid == "sum")

    def _table(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """One row a unit. A unit without a row that the statistics are of is not there."""
        ranked = self._ranked(self._in_order(rows))
        return fold(ranked, [_UNIT], [folded(s.bare, s.monoid).alias(s.name) for s in self.statistics.values()])

    @property
    def _is_of_true_rows(self) -> bool:
        return all(same_expression(statistic.only, self.order.truth) for statistic in self.statistics.values())

    def _carried(self) -> list[str]:
        """The columns that statistics read, and that neither the pass tells nor the key holds."""
        read = {name for statistic in self.statistics.values() for name in statistic.bare.meta.root_names()}
        told = {standing(name).meta.output_name() for name in self.shares}
        told |= {self._standing(name).meta.output_name() for name in STANDINGS}
        return sorted(read - told - self.order.held.keys())

    def _in_order(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """The rows that count, sorted, with the key taken apart again."""
        carried, key = self._carried(), pl.col(_KEY)
        packed = sort_key(code_of(self.unit), self.order.number, self.order.truth)
        # One column is sorted much faster than a table, so the key holds what it can.
        rows = rows.select(pl.when(self.order.rows).then(packed).alias(_KEY), *carried)
        rows = rows.filter(key.is_not_null()).sort(_KEY)
        high, low = halves(key)
        return rows.select(high.alias(_HIGH), low.alias(_LOW), *carried)

    def _ranked(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Rows in order, with all that the pass tells of them."""
        true, row, trues, new_unit, new_tie = map(pl.col, (_TRUE, _ROW, _TRUES, _NEW_UNIT, _NEW_TIE))
        place, above, rank, true_place, true_above, true_rank = (self._standing(name) for name in STANDINGS)
        high, low = pl.col(_HIGH), pl.col(_LOW)
        # Positions are UInt32, as Polars counts rows; no difference taken here is below 0.
        rows = rows.with_row_index(_ROW).with_columns(
            truth_in_key(low).alias(_TRUE),
            _changes(code_in_key(high)).alias(_NEW_UNIT),
            (_changes(high) | _changes(tie_in_key(low))).alias(_NEW_TIE),
        )
        rows = rows.with_columns(true.cum_sum().alias(_TRUES), _as(place, row - _at_first(new_unit, row) + 1))
        trues_before = _at_first(new_unit, trues - true)
        rows = self._with_shared_sums(rows).with_columns(
            _as(above, _at_first(new_tie, row) - _at_first(new_unit, row)),
            _as(true_place, trues - trues_before),
            _as(true_above, _at_first(new_tie, trues - true) - trues_before),
        )
        last = new_tie
        if self._is_of_true_rows:
            # In a tie they come last, and the very last one knows how far the tie goes.
            rows = rows.filter(true)
            last = _changes(code_in_key(high)) | _changes(above)
        rows = rows.with_columns(
            last.shift(-1, fill_value=True).alias(_LAST),
            code_in_key(high).alias(_UNIT),
            *(told.cast(pl.Int64) for told in (place, above, true_place, true_above)),
        )
        rows = rows.with_columns(_as(rank, _at_last(place)), _as(true_rank, _at_last(true_place)))
        if not self._is_of_true_rows:
            rows = rows.with_columns(pl.when(true).then(told) for told in (true_place, true_above, true_rank))
        shared = (_as(standing(name), self._shared(name)) for name in self.shares)
        return rows.with_columns(*shared, *self._given_back())

    def _standing(self, name: str) -> pl.Expr:
        return standing(self.order.name + name)

    def _given_back(self) -> Iterator[pl.Expr]:
        for column, (is_truth, dtype) in self.order.held.items():
            value = pl.col(_TRUE) if is_truth else number_in_key(pl.col(_HIGH), pl.col(_LOW))
            yield value.cast(dtype).alias(column)

    def _with_shared_sums(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """What is shared in ties, summed from the first row of all up to each, and up to before its tie."""
        place = self._standing("place").cast(pl.Int64)
        rows = rows.with_columns(
            _as(standing(name), as_fixed_point(of_place(place)).cum_sum()) for name, of_place in self.shares.items()
        )
        return rows.with_columns(
            _as(standing(f"{name}_before"), _at_first(pl.col(_NEW_TIE), standing(name).shift(1, fill_value=0)))
            for name in self.shares
        )

    def _shared(self, name: str) -> pl.Expr:
        rank, above = self._standing("rank"), self._standing("above")
        total = from_fixed_point(_at_last(standing(name)) - standing(f"{name}_before"))
        return pl.when(rank - above == 1).then(self.shares[name](rank)).otherwise(ratio(total, rank - above))


def _as(column: pl.Expr, value: pl.Expr) -> pl.Expr:
    return value.alias(column.meta.output_name())


def _changes(value: pl.Expr) -> pl.Expr:
    """Whether a row differs from the one before it."""
    return (value != value.shift(1)).fill_null(True)


def _at_first(first: pl.Expr, value: pl.Expr) -> pl.Expr:
    """The value at the first row of each run, on all its rows."""
    return pl.when(first).then(value).forward_fill()


def _at_last(value: pl.Expr) -> pl.Expr:
    """The value at the last row of each tie, on all its rows."""
    return pl.when(pl.col(_LAST)).then(value).backward_fill()
