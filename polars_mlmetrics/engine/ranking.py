"""The ranking pass: the place of each row in its unit, for all units from one sort.

A row becomes one number: the code of its unit, its score upside down, its truth. In the order of these numbers the
rows of a unit lie together, best first, and in a tie the false ones come first. All the rest is counting: of rows, of
true rows, of where a unit and where a tie begins. Where every statistic asked for is of true rows alone, the others
have done their part once they are counted, and are left out: but for the last of a unit, which knows how many it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import polars as pl

from polars_mlmetrics.data.expressions import same_expression
from polars_mlmetrics.engine.folds import changes, fold, take, two_of_one_name
from polars_mlmetrics.engine.packing import (
    as_fixed_point,
    code_in_key,
    counts_of,
    even,
    from_fixed_point,
    is_of_code,
    is_of_number,
    number_in_key,
    sort_key,
    truth_in_key,
    two_counts,
)
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.formula.chances import FEW
from polars_mlmetrics.formula.statistic import Share, Statistic, merged

AMONG_TRUE = ("true_place", "true_above", "true_rank")
STANDINGS = ("place", "above", "rank", "rank_and_above", *AMONG_TRUE, "trues_in_long_tie")
"""The numbers that the pass gives for a row: its place, and how many rows are above its tie, and down to the end of it,
and both added up; the same among the true rows alone; how many true rows a long tie has, if it is the best with a true
one."""

SAME_CODE = "hash collision of two samples: retry with passes=100"

TABLE = 1_000
"""The most places whose worth is looked up in a table; for more it is summed along the rows."""

UNIT = f"{INTERNAL}pass:unit"
"""The code of a unit."""

KEY, _CHANGE, TRUE, NEW_UNIT, NEW_TIE, LAST_OF_UNIT, _LAST_OF_TIE, _UPTO, _BEFORE_UNIT, _BEFORE_TIE = (
    f"{INTERNAL}pass:{name}"
    for name in (
        *("key", "change", "true", "new_unit", "new_tie", "last_of_unit", "last_of_tie"),
        *("upto", "before_unit", "before_tie"),
    )
)


@dataclass(frozen=True)
class Order:
    """An order of rows inside their units: of those that count, the highest number first."""

    rows: pl.Expr
    number: pl.Expr
    truth: pl.Expr
    columns: Mapping[str, tuple[bool, pl.DataType]]
    """Columns that the sorted key holds and gives back, with their types: the number, or the truth (True)."""
    name: str = ""


def standing(name: str) -> pl.Expr:
    """The column in which the pass tells it."""
    return pl.col(f"{INTERNAL}standing:{name}")


def take_share(shares: dict[str, Share], name: str, share: Share) -> None:
    """Add what a tie shares to what others do, unless it is there already."""
    known, place = shares.setdefault(name, share), pl.col("place")
    if not same_expression(known.worth(place), share.worth(place)):
        raise two_of_one_name(name)


def code_of(columns: Sequence[str], among: Sequence[str] = ()) -> pl.Expr:
    """One number for the values of several columns; of columns `among` others, what they add to the number of all."""
    if not columns:
        return pl.lit(0, dtype=pl.UInt64)
    seeds = {column: seed for seed, column in enumerate(among or columns)}
    return pl.sum_horizontal(pl.col(column).hash(seeds[column]) for column in columns)


def zero_if_apart() -> pl.Expr:
    """Zero, in a table with one row a unit. Two units of one code are an error: they would be taken for one."""
    is_alone = pl.col(UNIT).n_unique() == pl.len()
    return pl.when(is_alone).then(pl.lit("0")).otherwise(pl.lit(SAME_CODE)).cast(pl.UInt64)


@dataclass
class Ranking:
    """Statistics of the rows of units, in one order."""

    order: Order
    unit: Sequence[str]
    statistics: dict[str, Statistic] = field(default_factory=dict)
    shares: dict[str, Share] = field(default_factory=dict)
    counts: dict[str, Literal["place", "true_place"]] = field(default_factory=dict)
    """The statistics that count the rows of a unit, or the true ones: as the last place of each tells."""

    def take(self, statistic: Statistic) -> None:
        """Fold a statistic too."""
        take(self.statistics, [statistic], self.unit)

    def join_to(self, units: pl.LazyFrame, rows: pl.LazyFrame) -> pl.LazyFrame:
        """The statistics, next to those that are already known of the units."""
        coded = units.with_columns(even(self.code).alias(UNIT)).with_columns(pl.col(UNIT) + zero_if_apart())
        return self.join_to_coded(coded, rows, self.code).drop(UNIT)

    @property
    def code(self) -> pl.Expr:
        """The code of a unit, from its keys."""
        return code_of(self.unit)

    def join_to_coded(self, units: pl.LazyFrame, rows: pl.LazyFrame, code: pl.Expr) -> pl.LazyFrame:
        """The statistics, beside those of units that have a code already, another each."""
        joined = self.table(rows, code).join(units, on=UNIT, how="right")
        return joined.with_columns(pl.col(name).fill_null(0) for name in self._sums())

    def _sums(self) -> list[str]:
        return [*self.counts, *(name for name, statistic in self.statistics.items() if statistic.monoid == "sum")]

    def table(self, rows: pl.LazyFrame, code: pl.Expr) -> pl.LazyFrame:
        """One row a unit: rows of one code are of one. A unit without a row that the statistics are of is not there."""
        return self._folded(self._ranked(rows, code))

    def table_with(self, counts: Sequence[Statistic], rows: pl.LazyFrame, code: pl.Expr) -> pl.LazyFrame:
        """The same with counts that need no order. Where these alone are of a unit, all that is ranked is null."""
        # Folded at once: two tables of as many units would have to be joined.
        counted = rows.filter(pl.any_horizontal(count.row > 0 for count in counts))
        counted = counted.select(code.alias(UNIT), *(count.row.alias(count.name) for count in counts))
        return self._folded(pl.concat([self._ranked(rows, code), counted], how="diagonal"), counts)

    def _ranked(self, rows: pl.LazyFrame, code: pl.Expr) -> pl.LazyFrame:
        """The rows that count, with what is folded of them."""
        ranked = self.placed(self.counted(self.in_order(rows, code)))
        if self.leaves_others_out and not self.is_of_true_rows:
            needed = pl.any_horizontal(s.only for s in self.statistics.values())
            ranked = ranked.filter(needed | pl.col(LAST_OF_UNIT) if self.counts else needed)
        return ranked.select(UNIT, *([_UPTO] if self.counts else []), *self.columns())

    def _folded(self, ranked: pl.LazyFrame, counts: Sequence[Statistic] = ()) -> pl.LazyFrame:
        """One row a unit."""
        folds = merged([*self.statistics.values(), *counts])
        if not self.counts:
            return fold(ranked, [UNIT], folds)
        upto = pl.col(_UPTO)
        units = fold(ranked, [UNIT], [upto.max(), *folds])
        last = dict(zip(("place", "true_place"), counts_of(upto), strict=True))
        return units.with_columns(last[place].alias(name) for name, place in self.counts.items()).drop(_UPTO)

    def columns(self) -> list[pl.Expr]:
        """The expressions that the statistics fold."""
        # As columns first: what several statistics read is then computed once; inside an aggregation it would not be.
        return [statistic.bare.alias(statistic.name) for statistic in self.statistics.values()]

    @property
    def is_of_true_rows(self) -> bool:
        """Whether every statistic is."""
        return self._is_of(self.order.truth)

    @property
    def leaves_others_out(self) -> bool:
        """Whether the rows that are neither true nor of a long tie have done their part once they are counted."""
        return self._is_of(self.order.truth, self.stands("trues_in_long_tie").is_not_null())

    def _is_of(self, *conditions: pl.Expr) -> bool:
        """Whether every statistic is of rows of one of these conditions alone."""
        only = [statistic.only for statistic in self.statistics.values()]
        return all(any(same_expression(one, condition) for condition in conditions) for one in only)

    def _carried(self) -> list[str]:
        """The columns that statistics read, and that neither the pass gives nor the key holds."""
        read = {name for statistic in self.statistics.values() for name in statistic.reads}
        given = {standing(name).meta.output_name() for name in self.shares}
        given |= {self.stands(name).meta.output_name() for name in STANDINGS}
        return sorted(read - given - self.order.columns.keys())

    def in_order(self, rows: pl.LazyFrame, code: pl.Expr) -> pl.LazyFrame:
        """The rows that count, sorted by their keys."""
        return self.sorted_by(sort_key(code, self.order.number, self.order.truth), rows)

    def sorted_by(self, packed: pl.Expr, rows: pl.LazyFrame) -> pl.LazyFrame:
        """The rows that count, sorted by a number of each."""
        carried, key = self._carried(), pl.col(KEY)
        # One column is sorted much faster than a table, so the key holds what it can.
        rows = rows.select(pl.when(self.order.rows).then(packed).alias(KEY), *carried)
        return rows.filter(key.is_not_null()).sort(KEY)

    def counted(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Rows in order, each with how many rows, and how many true ones, are above it and down to it."""
        key, upto, new_unit, new_tie = map(pl.col, (KEY, _UPTO, NEW_UNIT, NEW_TIE))
        before_unit, before_tie, last_of_unit = map(pl.col, (_BEFORE_UNIT, _BEFORE_TIE, LAST_OF_UNIT))
        place, above, rank, both, true_place, true_above, true_rank, long_tie = map(self.stands, STANDINGS)
        # What a row's key does not have in common with the one before.
        rows = rows.with_columns((key ^ key.shift(1)).alias(_CHANGE))
        change, one = pl.col(_CHANGE), two_counts(pl.lit(1), truth_in_key(key))
        rows = rows.with_columns(
            is_of_code(change).fill_null(True).alias(NEW_UNIT),
            is_of_number(change).fill_null(True).alias(NEW_TIE),
            truth_in_key(key).alias(TRUE),
            # How many rows there are up to a row, and how many true ones.
            _as(upto, one.cum_sum()),
        )
        rows = rows.with_columns(
            _as(before_unit, at_first(new_unit, upto - one)),
            _as(before_tie, at_first(new_tie, upto - one)),
            _as(last_of_unit, new_unit.shift(-1, fill_value=True)),
        )
        rows = self._with_shared_sums(rows)
        if self.leaves_others_out:
            needed = pl.col(TRUE) if self.is_of_true_rows else _may_be_of_a_long_tie()
            rows = rows.filter(needed | last_of_unit if self.counts else needed)
        rows = rows.with_columns(upto - before_unit)
        rows_upto, trues_upto = counts_of(upto)
        rows_above, trues_above = counts_of(before_tie - before_unit)
        rows = rows.with_columns(
            _as(place, rows_upto),
            _as(above, rows_above),
            _as(true_place, trues_upto),
            _as(true_above, trues_above),
            # In a tie the true rows come last, and the very last one knows how far the tie goes.
            changes(before_tie).shift(-1, fill_value=True).alias(_LAST_OF_TIE),
            code_in_key(key).alias(UNIT),
        )
        rows_down, trues_down = counts_of(at_last(upto))
        rows = rows.with_columns(_as(rank, rows_down), _as(true_rank, trues_down))
        is_long = (true_above == 0) & (true_rank > 0) & (rank - above - true_rank >= FEW)
        return rows.with_columns(_as(both, rank + above), _as(long_tie, pl.when(is_long).then(true_rank)))

    def placed(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """The same rows with all that the pass gives for them: places among the true rows only where they are true."""
        others = (s for s in self.statistics.values() if not same_expression(s.only, self.order.truth))
        among = {self.stands(name).meta.output_name() for name in AMONG_TRUE}
        if any(among & statistic.reads for statistic in others):
            rows = rows.with_columns(pl.when(pl.col(TRUE)).then(self.stands(name)) for name in AMONG_TRUE)
        shared = (_as(standing(name), self._shared(name, share)) for name, share in self.shares.items())
        return rows.with_columns(*shared, *self._given_back())

    def stands(self, name: str) -> pl.Expr:
        """The column of this order in which the pass tells it."""
        return standing(self.order.name + name)

    def _given_back(self) -> Iterator[pl.Expr]:
        for column, (is_truth, dtype) in self.order.columns.items():
            value = pl.col(TRUE) if is_truth else number_in_key(pl.col(KEY))
            yield value.cast(dtype).alias(column)

    def _with_shared_sums(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Running sums of the values that ties share and no table holds: up to each row, and up to before its tie."""
        summed = {name: share for name, share in self.shares.items() if not _is_in_table(share)}
        place, _ = counts_of(pl.col(_UPTO) - pl.col(_BEFORE_UNIT))
        worth = {name: share.worth(place) for name, share in summed.items()}
        rows = rows.with_columns(_as(standing(name), as_fixed_point(of).cum_sum()) for name, of in worth.items())
        return rows.with_columns(
            _as(_before(name), at_first(pl.col(NEW_TIE), standing(name).shift(1, fill_value=0))) for name in summed
        )

    def _shared(self, name: str, share: Share) -> pl.Expr:
        rank, above = self.stands("rank"), self.stands("above")
        if _is_in_table(share):
            total = _sum_upto(rank, share) - _sum_upto(above, share)
        else:
            total = at_last(standing(name)) - _before(name)
        mean = ratio(from_fixed_point(total), rank - above)
        return pl.when(rank - above == 1).then(share.worth(rank)).otherwise(mean)


def _may_be_of_a_long_tie() -> pl.Expr:
    """Whether a row is true, or may be tied with a true one that has none above it; ties are not counted yet."""
    new_tie = pl.col(NEW_TIE)
    is_alone = new_tie & new_tie.shift(-1, fill_value=True)
    _, trues_above = counts_of(pl.col(_BEFORE_TIE) - pl.col(_BEFORE_UNIT))
    return pl.col(TRUE) | (~is_alone & (trues_above == 0))


def _is_in_table(share: Share) -> bool:
    return share.k is not None and share.k <= TABLE


def _sum_upto(place: pl.Expr, share: Share) -> pl.Expr:
    """The total worth of the places up to one, as a whole number."""
    places, worth = pl.int_range(1, (share.k or 0) + 1), share.of_place
    sums = pl.select(pl.concat([pl.lit(0), as_fixed_point(worth(places)).cum_sum()])).to_series()
    return pl.lit(sums).gather(place.clip(upper_bound=share.k))


def _before(name: str) -> pl.Expr:
    return standing(f"{name}_before")


def _as(column: pl.Expr, value: pl.Expr) -> pl.Expr:
    return value.alias(column.meta.output_name())


def at_first(first: pl.Expr, value: pl.Expr) -> pl.Expr:
    """The value at the first row of each run, on all its rows."""
    return pl.when(first).then(value).forward_fill()


def at_last(value: pl.Expr) -> pl.Expr:
    """The value at the last row of each tie, on all its rows."""
    return pl.when(pl.col(_LAST_OF_TIE)).then(value).backward_fill()
