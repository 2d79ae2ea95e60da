"""Placements: how far each bucket of rows moves a value that needs all rows at once, such as that of an exact curve.

The pass that ranks the rows tells it on its way: the number that is sorted holds the bucket in its last bits, and what
is folded of the ranked rows is folded by unit and bucket. The statistics of the units are merged from that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import polars as pl

from polars_mlmetrics.engine.folds import fold, matched, merge
from polars_mlmetrics.engine.packing import (
    as_fixed_point,
    cell_of,
    from_fixed_point,
    parts_of_cell,
    short,
    sort_key,
    with_bucket,
    without_bucket,
)
from polars_mlmetrics.engine.ranking import KEY, LAST_OF_UNIT, NEW_TIE, TRUE, UNIT, Ranking, at_first, code_of
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.arithmetic import ratio, share
from polars_mlmetrics.formula.declaration import Placements
from polars_mlmetrics.formula.measure import Measure, is_mean_of_labels
from polars_mlmetrics.formula.statistic import merged

_CELL, _ROWS, _PAIRS, _PRECISION, _ADDED, _TRUE_BELOW, _PRECISION_BELOW = (
    f"{INTERNAL}pass:{name}"
    for name in ("cell", "rows", "pairs", "precision", "added", "true_below", "precision_below")
)
_VALUE, _WEIGHT, _WHOLE = (f"{INTERNAL}unit:{name}" for name in ("value", "weight", "whole"))

VALUE, SIZE, MOVED, ROWS, POSITIVES, IS_NEEDED = (
    f"{INTERNAL}bucket:{name}" for name in ("value", "size", "moved", "rows", "positives", "is_needed")
)
"""The columns of `moved_by_bucket`: the value, the size by which its rounding is measured, how far the bucket moves it,
its rows and the true ones of these, and whether a unit has no value without it."""


@dataclass
class RankingByBucket(Ranking):
    """A ranking that tells how the rows of each bucket stand, too."""

    bucket: str = ""
    """The column that says which bucket a row is in."""
    placements: pl.LazyFrame = field(init=False)
    """One row a unit and bucket. It is there once the statistics of the units are."""
    _cells: pl.LazyFrame = field(init=False)

    @classmethod
    def of(cls, ranking: Ranking, bucket: str) -> RankingByBucket:
        """The same ranking, by bucket."""
        return cls(ranking.order, ranking.unit, ranking.statistics, ranking.shares, ranking.counts, bucket)

    @property
    def code(self) -> pl.Expr:
        return short(code_of(self.unit))

    @property
    def leaves_others_out(self) -> bool:
        return False

    def join_to_coded(self, units: pl.LazyFrame, rows: pl.LazyFrame, code: pl.Expr) -> pl.LazyFrame:
        units = units.cache()
        joined = super().join_to_coded(units, rows, code)
        cells = self._cells.select(UNIT, self.bucket, *_columns(""))
        self.placements = units.select(*self.unit, UNIT).join(cells, on=UNIT).drop(UNIT)
        return joined

    def table(self, rows: pl.LazyFrame, code: pl.Expr) -> pl.LazyFrame:
        self._cells = self._by_bucket(rows, code).cache()
        return merge(self._cells, [UNIT], list(self.statistics.values()))

    def in_order(self, rows: pl.LazyFrame, code: pl.Expr) -> pl.LazyFrame:
        packed = with_bucket(sort_key(code, self.order.number, self.order.truth), pl.col(self.bucket))
        key, bucket = without_bucket(pl.col(KEY))
        return self.sorted_by(packed, rows).with_columns(key.alias(KEY), bucket.alias(self.bucket))

    def _by_bucket(self, rows: pl.LazyFrame, code: pl.Expr) -> pl.LazyFrame:
        rows = self._with_sums_below(self.counted(self.in_order(rows, code)))
        rows = self.placed(rows.with_columns(self._placements()))
        cell = cell_of(pl.col(UNIT), pl.col(TRUE), pl.col(self.bucket)).alias(_CELL)
        sums = [pl.len().alias(_ROWS), *(pl.col(name).sum() for name in (_PAIRS, _PRECISION, _ADDED))]
        columns = [cell, _PAIRS, _PRECISION, _ADDED, *self.columns()]
        cells = fold(rows.select(columns), [_CELL], [*sums, *merged(self.statistics.values())])
        unit, true, bucket = parts_of_cell(pl.col(_CELL))
        cells = cells.with_columns(unit.alias(UNIT), true.alias(TRUE), bucket.alias(self.bucket))
        return fold(cells, [UNIT, self.bucket], [*_sums(), *merged(self.statistics.values())])

    def _with_sums_below(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Rows with the sums of 1 / rank and of precision / rank, over the true rows at or below each."""
        true_rank, rank, true = self.stands("true_rank"), self.stands("rank"), pl.col(TRUE)
        one = share(pl.lit(1.0), rank)
        sums = {_TRUE_BELOW: one, _PRECISION_BELOW: share(true_rank, rank) * one}
        rows = rows.with_columns(
            as_fixed_point(pl.when(true).then(row).otherwise(0.0)).cum_sum().alias(name) for name, row in sums.items()
        )
        return rows.with_columns(_at_or_below(pl.col(name)) for name in sums)

    def _placements(self) -> Iterator[pl.Expr]:
        """The unit of sums of placements. Pairs of a true row and another are counted twice, tied ones once."""
        rank, above, true_rank, true_above = map(self.stands, ("rank", "above", "true_rank", "true_above"))
        true, trues = pl.col(TRUE), true_rank + true_above
        yield pl.when(true).then(rank + above - trues).otherwise(trues).alias(_PAIRS)
        yield pl.when(true).then(share(true_rank, rank)).otherwise(0.0).alias(_PRECISION)
        added = pl.when(true).then(pl.col(_TRUE_BELOW)).otherwise(0) - pl.col(_PRECISION_BELOW)
        yield from_fixed_point(added).alias(_ADDED)


def _sums() -> Iterator[pl.Expr]:
    """The placements of the rows of a bucket, from the sums of its true rows and of the others."""
    true = pl.col(TRUE)
    sums = Placements(
        positives=pl.when(true).then(pl.col(_ROWS)).sum().cast(pl.Float64),
        negatives=pl.when(~true).then(pl.col(_ROWS)).sum().cast(pl.Float64),
        lost=pl.when(true).then(pl.col(_PAIRS)).sum() * 0.5,
        won=pl.when(~true).then(pl.col(_PAIRS)).sum() * 0.5,
        precision=pl.col(_PRECISION).sum(),
        added=pl.col(_ADDED).sum(),
    )
    return (column.alias(name) for column, name in zip(sums, _columns(""), strict=True))


def _columns(prefix: str) -> list[str]:
    """The columns of placements: of a bucket, or of others by a prefix."""
    return [f"{INTERNAL}placed:{prefix}{name}" for name in Placements._fields]


def _placements_in(prefix: str) -> Placements:
    return Placements(*map(pl.col, _columns(prefix)))


def _at_or_below(upto: pl.Expr) -> pl.Expr:
    """A running sum, less what is before the tie of each row, from the end of its unit."""
    of_unit = pl.when(pl.col(LAST_OF_UNIT)).then(upto).backward_fill()
    return of_unit - at_first(pl.col(NEW_TIE), upto.shift(1, fill_value=0))


def moved_by_bucket(
    measure: Measure, placements: pl.LazyFrame, by: Sequence[str], unit_keys: Sequence[str], bucket: str
) -> pl.LazyFrame:
    """One row a group and bucket: how far the bucket moves the value. A unit that is not settled is a group."""
    influence = measure.declaration.influence
    assert influence is not None
    own, whole = _placements_in(""), _placements_in("unit:")
    sums = zip(_columns(""), _columns("unit:"), strict=True)
    units = fold(placements, unit_keys, [pl.col(name).sum().alias(of_unit) for name, of_unit in sums])
    value = influence.value(whole)
    value = value if measure.undefined is None else value.fill_null(measure.undefined)
    units = units.with_columns(value.alias(_VALUE))
    moved = influence.moved(own, whole)
    is_needed, moved = moved.is_null() & influence.value(whole).is_not_null(), moved.fill_null(0.0)
    if is_mean_of_labels(measure):
        units, moved = _settled(measure, units, by, moved)
        keys = list(by)
    else:
        units, keys = units.with_columns(pl.col(_VALUE).alias(VALUE)), list(unit_keys)
    cells = matched(placements, units.filter(pl.col(_VALUE).is_not_null()), unit_keys).select(
        *(pl.col(key) for key in [*keys, bucket]),
        VALUE,
        moved.alias(MOVED),
        (own.positives + own.negatives).alias(ROWS),
        own.positives.alias(POSITIVES),
        is_needed.alias(IS_NEEDED),
    )
    of_bucket = [
        pl.col(VALUE).first(),
        pl.col(VALUE).first().abs().alias(SIZE),
        pl.col(MOVED, ROWS, POSITIVES).sum(),
        pl.col(IS_NEEDED).any(),
    ]
    return fold(cells, [*keys, bucket], of_bucket)


def _settled(measure: Measure, units: pl.LazyFrame, by: Sequence[str], moved: pl.Expr) -> tuple[pl.LazyFrame, pl.Expr]:
    """The labels that count in an average, with the average as VALUE; and how far a bucket of one label moves it."""
    settlement, weight, own_weight = measure.settlement, pl.lit(1.0), pl.lit(0.0)
    if settlement.average == "weighted":
        weight, own_weight = _placements_in("unit:").positives, _placements_in("").positives
    elif settlement.average != "macro":
        weight = settlement.weight_of(pl.col(measure.table.label))
    units = units.with_columns(weight.alias(_WEIGHT)).filter(pl.col(_WEIGHT) != 0)
    sums = settlement.sums(pl.col(_VALUE), pl.col(_WEIGHT), pl.len().cast(pl.Int64), None)
    groups = fold(units, by, [column.alias(_of_group(name)) for name, column in sums.items()])
    of_group = {name: pl.col(_of_group(name)) for name in sums}
    settled = {VALUE: settlement.settled(of_group), _WHOLE: settlement.weight_of_all(of_group)}
    groups = groups.select(*by, *(column.alias(name) for name, column in settled.items()))
    gap = pl.col(_VALUE) - pl.col(VALUE)
    return matched(units, groups, by), ratio(pl.col(_WEIGHT) * moved + own_weight * gap, pl.col(_WHOLE))


def _of_group(name: str) -> str:
    return f"{INTERNAL}group:{name}"
