"""Folds: the statistics of rows by keys, and the joins of their tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Literal

import polars as pl

from polars_mlmetrics.data.expressions import same_expression
from polars_mlmetrics.engine.packing import first_of_pair, pair_of, second_of_pair
from polars_mlmetrics.errors import INTERNAL, NameCollisionError
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.formula.statistic import Statistic, merged

CODE = f"{INTERNAL}code"
"""The key that stands for several by columns: an even number."""

BIN = f"{INTERNAL}bin"
"""The runs of a state, of all measures that have such."""

BUCKET = f"{INTERNAL}bucket"
"""The key of a state that parts the samples."""

_PAIR, _SOME, _LOWEST, _HIGHEST = (f"{INTERNAL}{name}" for name in ("pair", "some", "lowest_code", "highest_code"))


class KeyedFold:
    """Statistics to fold at some keys, and the columns that they read beside the table's own."""

    def __init__(self, keys: list[str]) -> None:
        self.keys = keys
        self.statistics: dict[str, Statistic] = {}
        self.features: dict[str, pl.Expr] = {}

    def take(self, statistics: Iterable[Statistic], features: Iterable[pl.Expr] = ()) -> None:
        """Fold statistics too, and add the columns to the rows that these read."""
        take(self.statistics, statistics, self.keys)
        take_columns(self.features, features)

    def with_features(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Rows with the added columns that the statistics read."""
        # The key of a run may read a rank, and a window what another one has found: each comes after what it reads.
        left = dict(self.features)
        while left:
            ready = {name: row for name, row in left.items() if left.keys().isdisjoint(row.meta.root_names())}
            rows, left = rows.with_columns(ready.values()), {n: row for n, row in left.items() if n not in ready}
        return rows

    def of_rows(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """One row a key, with the statistics of the rows."""
        return fold_rows(self.with_features(rows), self.keys, list(self.statistics.values()))

    def merged(self, tables: pl.LazyFrame) -> pl.LazyFrame:
        """One row a key, with the statistics of folds at finer keys, or of parts of the rows."""
        return merge(tables, self.keys, list(self.statistics.values()))


def together(folds: Sequence[KeyedFold]) -> KeyedFold:
    """Folds as one, at all their keys: each can be merged from it."""
    shared = KeyedFold(list(dict.fromkeys(key for each in folds for key in each.keys)))
    for each in folds:
        shared.take(each.statistics.values(), each.features.values())
    return shared


def take(statistics: dict[str, Statistic], more: Iterable[Statistic], keys: Sequence[str]) -> None:
    """Add statistics by name, each once. Raise if a name is one of the keys, or that of another statistic."""
    for statistic in more:
        if statistic.name in keys:
            raise NameCollisionError(f"{statistic.name!r} is the name of a statistic: use .alias(...) on the key.")
        known = statistics.setdefault(statistic.name, statistic)
        is_same = known is statistic or (known.monoid == statistic.monoid and same_expression(known.row, statistic.row))
        if not is_same:
            raise two_of_one_name(statistic.name)


def take_columns(columns: dict[str, pl.Expr], more: Iterable[pl.Expr]) -> None:
    """Add columns of the rows to others, each unless it is there already."""
    for column in more:
        name = column.meta.output_name()
        if not same_expression(columns.setdefault(name, column), column):
            raise two_of_one_name(name.removeprefix(INTERNAL))


def two_of_one_name(name: str) -> NameCollisionError:
    """The error for two statistics with one name."""
    return NameCollisionError(f"two different statistics have the name {name!r}: give one of them another name.")


def fold_rows(
    rows: pl.LazyFrame, keys: Sequence[str], statistics: Sequence[Statistic], *, sparse: bool = False
) -> pl.LazyFrame:
    """Statistics of rows at some keys."""
    # As columns first: what several statistics read is then computed once; inside an aggregation it would not be.
    rows = rows.select(*keys, *(statistic.row.alias(statistic.name) for statistic in statistics))
    if sparse:
        # Of rows that lie together the first is enough, and those that add to a count.
        needed = [*(changes(pl.col(key)) for key in keys), *(pl.col(count.name) > 0 for count in statistics)]
        rows = rows.filter(pl.any_horizontal(needed))
    dtype = rows.collect_schema()[keys[1]] if len(keys) == 2 and keys[0] == CODE else None
    if dtype is None or not dtype.is_integer() or dtype in (pl.Int128, pl.UInt128):
        return _fold_columns(rows, keys, statistics)
    # Two whole numbers are matched faster as one.
    pair, code, sample = pl.col(_PAIR), *map(pl.col, keys)
    paired = _fold_columns(rows.select(pair_of(code, sample).alias(_PAIR), pl.exclude(keys)), [_PAIR], statistics)
    return paired.select(
        first_of_pair(pair).alias(keys[0]), second_of_pair(pair, dtype).alias(keys[1]), pl.exclude(_PAIR)
    )


def changes(value: pl.Expr) -> pl.Expr:
    """Whether a row differs from the one before it, or is null."""
    return (value != value.shift(1)).fill_null(True)


def merge(folds: pl.LazyFrame, keys: Sequence[str], statistics: Sequence[Statistic]) -> pl.LazyFrame:
    """Statistics of finer keys, or of parts, as statistics at some keys."""
    return _fold_columns(about_common_shifts(folds, keys, statistics), keys, statistics)


def _fold_columns(rows: pl.LazyFrame, keys: Sequence[str], statistics: Sequence[Statistic]) -> pl.LazyFrame:
    return fold(rows, keys, merged(statistics))


def compacted(state: pl.LazyFrame, keys: Sequence[str], statistics: Sequence[Statistic]) -> pl.LazyFrame:
    """One row for equal keys. A statistic that is null in all of them stays null, and is not the sum of nothing."""
    rows = about_common_shifts(state, keys, statistics)
    named = zip(statistics, merged(statistics), strict=True)
    return fold(rows, keys, [pl.when(pl.col(s.name).count() > 0).then(merge).alias(s.name) for s, merge in named])


def about_common_shifts(folds: pl.LazyFrame, keys: Sequence[str], statistics: Sequence[Statistic]) -> pl.LazyFrame:
    """The folds, with sums of deviations moved to one shift for equal keys: their mean."""
    moments = {statistic.name: statistic.moment for statistic in statistics if statistic.moment is not None}
    if not moments:
        return folds
    weights = {shift: moment.weight for moment in moments.values() for shift in moment.shifts}
    shifts = {shift: pl.col(f"{INTERNAL}common:{shift}") for shift in weights}
    together = [
        _mean(pl.col(shift), pl.col(weight)).alias(shifts[shift].meta.output_name())
        for shift, weight in weights.items()
    ]
    common = fold(folds, keys, together)
    moved = (moment.moved(name, shifts).alias(name) for name, moment in moments.items())
    return matched(folds, common, keys).with_columns(moved)


def _mean(value: pl.Expr, weight: pl.Expr) -> pl.Expr:
    return ratio((value * weight).sum(), pl.when(value.is_not_null()).then(weight).sum())


def fold(
    rows: pl.LazyFrame, keys: Sequence[str], aggregations: Sequence[pl.Expr], *, in_order: bool = False
) -> pl.LazyFrame:
    """Aggregate by keys; without any, to the one row of the whole."""
    return rows.group_by(keys, maintain_order=in_order).agg(aggregations) if keys else rows.select(aggregations)


def matched(
    left: pl.LazyFrame,
    right: pl.LazyFrame,
    keys: Sequence[str],
    *,
    how: Literal["inner", "left"] = "inner",
    nulls_equal: bool = True,
) -> pl.LazyFrame:
    """Each row of a table with those of another that have its keys; without keys, with all of them."""
    return left.join(right, on=keys, how=how, nulls_equal=nulls_equal) if keys else left.join(right, how="cross")


def bounds_of(code: pl.Expr) -> list[pl.Expr]:
    """The lowest and the highest code of the rows of a sample, from which `has_several` tells if there are several."""
    return [code.min().alias(_LOWEST), code.max().alias(_HIGHEST)]


def has_several() -> pl.Expr:
    """Whether a sample has rows of several codes, in a table with the `bounds_of` these."""
    return pl.col(_LOWEST) != pl.col(_HIGHEST)


def rows_of_few(rows: pl.LazyFrame, few: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    """The rows that have the keys of a table which is empty as a rule, with its columns: then no row is read.

    Polars does not begin to read one side of a cross join where the other is empty; another join alone reads it all.
    """
    some = few.select(pl.col(keys[0]).alias(_SOME)).head(1)
    return rows.join(some, how="cross").drop(_SOME).join(few, on=keys, nulls_equal=True)


def joined(
    tables: Sequence[pl.LazyFrame],
    keys: Sequence[str],
    *,
    how: Literal["inner", "left"] = "inner",
    validate: Literal["m:m", "1:1"] = "m:m",
    nulls_equal: bool = True,
) -> pl.LazyFrame:
    """Tables of the same keys, side by side."""
    if not keys:
        return pl.concat(tables, how="horizontal")

    def join(left: pl.LazyFrame, right: pl.LazyFrame) -> pl.LazyFrame:
        return left.join(right, on=keys, how=how, nulls_equal=nulls_equal, validate=validate)

    return reduce(join, tables)
