"""Replicates: a source without each of its buckets in turn. What its values vary by is how far they can be trusted.

A replicate is one more by key of a plan: the values at (by, without) are had by the road that gives any values. Counts
and sums without a bucket are those of all less its own; the lowest and the highest are those of the other buckets;
deviations are taken from one shift first. A label or a bin that a bucket lacks is there without it all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import polars as pl

from polars_mlmetrics.engine.buckets import coarse
from polars_mlmetrics.engine.folds import about_common_shifts, fold, matched, merge
from polars_mlmetrics.engine.partials import Partial, PartialTable, has_many_bins, statistics_of
from polars_mlmetrics.engine.sources import OfSource, Source
from polars_mlmetrics.engine.split_samples import Counts
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.statistic import Statistic, folded, merged

WITHOUT = f"{INTERNAL}without"
"""The key that says which bucket is left out; null where none is. Of rows it is their bucket."""
WITHOUT_COARSE = f"{INTERNAL}without_coarse"
"""The column of rows that has fewer buckets."""
_IS_OWN = f"{INTERNAL}is_own"

LOST = 1e-4
"""A difference that is smaller than this share of the whole is not taken, but added up anew."""


class Replicates(OfSource):
    """A source without each bucket of a group, and whole.

    In the source the key WITHOUT is the bucket of a row. `by` are the columns of the groups, whose buckets are
    left out. With another key it is a source without each value of that.
    """

    def __init__(self, source: Source, by: Sequence[str], key: str = WITHOUT) -> None:
        self.source = source
        self.by = list(by)
        self.key = key
        self.schema = source.schema

    def partials(self, partials: Sequence[Partial], by: list[str]) -> list[PartialTable]:
        given = zip(partials, self.source.partials(partials, by), strict=True)
        return [(self._replicated(partial, table), by) for partial, (table, _) in given]

    def with_reasons(self, table: pl.LazyFrame, by: list[str], counts: Mapping[str, Counts]) -> pl.LazyFrame:
        return self.source.with_reasons(table, [key for key in by if key != self.key], counts)

    def _replicated(self, partial: Partial, by_bucket: pl.LazyFrame) -> pl.LazyFrame:
        """A partial by bucket, as it is without each: at all its keys, whether or not the bucket has them."""
        by_bucket = by_bucket.cache()
        left_out = self.key
        keys, statistics = [key for key in partial.table_keys if key != left_out], statistics_of(partial)
        columns = [*keys, left_out, *(statistic.name for statistic in statistics)]
        own = about_common_shifts(by_bucket, keys, statistics).cache()
        whole = fold(own, keys, merged(statistics))
        everywhere = matched(whole, own.select(*self.by, left_out).unique(), self.by)
        left = _taken_off(everywhere, own, [*keys, left_out], statistics).cache()
        types = left.collect_schema()
        is_right = ~pl.any_horizontal(pl.lit(False), *_lost(types, statistics))
        again = _put_together(left.filter(~is_right).select(*keys, left_out), by_bucket, [*keys, left_out], statistics)
        nothing = whole.with_columns(pl.lit(None, dtype=types[left_out]).alias(left_out))
        return pl.concat([table.select(columns) for table in (left.filter(is_right), again, nothing)])


class CoarseBuckets(OfSource):
    """A source by the buckets of a log (WITHOUT) as one by fewer. Many bins are folded by these at once."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.schema = source.schema

    def partials(self, partials: Sequence[Partial], by: list[str]) -> list[PartialTable]:
        coarse_by = [WITHOUT_COARSE if key == WITHOUT else key for key in by]
        many = [each for each in partials if has_many_bins(each)]
        others = [each for each in partials if each not in many]
        bucket = coarse(pl.col(WITHOUT)).alias(WITHOUT)
        given = zip(others, self.source.partials(others, by), strict=True)
        tables = {each: each.merged(table.with_columns(bucket)) for each, (table, _) in given}
        given = zip(many, self.source.partials([each.at(coarse_by) for each in many], coarse_by), strict=True)
        tables |= {each: table.rename({WITHOUT_COARSE: WITHOUT}) for each, (table, _) in given}
        return [(tables[each], by) for each in partials]


def _taken_off(
    everywhere: pl.LazyFrame, own: pl.LazyFrame, cell: Sequence[str], statistics: Sequence[Statistic]
) -> pl.LazyFrame:
    """The whole without each bucket, the last column of a cell, from the whole and the bucket's own row. Both stay."""
    rest = [_of_the_rest(statistic, cell[:-1]).alias(_own(statistic)) for statistic in statistics]
    own = own.select(*cell, *rest, pl.lit(True).alias(_IS_OWN))
    everywhere = everywhere.with_columns(pl.col(statistic.name).alias(_whole(statistic)) for statistic in statistics)
    left = everywhere.join(own, on=cell, how="left", nulls_equal=True)
    return left.with_columns(_left(statistic).alias(statistic.name) for statistic in statistics)


def _lost(schema: pl.Schema, statistics: Sequence[Statistic]) -> Iterator[pl.Expr]:
    """Where a difference is no number, or has lost more digits than it may: next to nothing is left of a sum."""
    for statistic in statistics:
        if schema[statistic.name].is_float():
            left, whole = pl.col(statistic.name), pl.col(_whole(statistic))
            is_small = (left.abs() <= LOST * whole.abs()) & (whole != 0) & pl.col(_own(statistic)).is_not_null()
            yield (~whole.is_finite() | is_small).fill_null(False)


def _put_together(
    cells: pl.LazyFrame, by_bucket: pl.LazyFrame, cell: Sequence[str], statistics: Sequence[Statistic]
) -> pl.LazyFrame:
    """The other buckets of each, merged. The bucket is the last column of a cell."""
    *keys, left_out = cell
    others = matched(cells, by_bucket.rename({left_out: _IS_OWN}), keys).filter(pl.col(left_out) != pl.col(_IS_OWN))
    left = cells.join(merge(others, cell, statistics), on=cell, how="left", nulls_equal=True)
    return left.with_columns(pl.col(s.name).fill_null(0) for s in statistics if s.monoid == "sum")


def _own(statistic: Statistic) -> str:
    return f"{INTERNAL}own:{statistic.name}"


def _whole(statistic: Statistic) -> str:
    return f"{INTERNAL}whole:{statistic.name}"


def _of_the_rest(statistic: Statistic, keys: Sequence[str]) -> pl.Expr:
    """The value to take away a bucket: a sum itself, or the lowest (highest) of the other buckets."""
    value = pl.col(statistic.name)
    if statistic.monoid == "sum" or statistic.moment is not None:
        return value

    def in_group(values: pl.Expr) -> pl.Expr:
        return values.over(keys) if keys else values

    first = in_group(folded(value, statistic.monoid))
    is_first = value == first
    second = in_group(folded(pl.when(~is_first).then(value), statistic.monoid))
    return pl.when(is_first & (in_group(is_first.sum()) == 1)).then(second).otherwise(first)


def _left(statistic: Statistic) -> pl.Expr:
    """A statistic without a bucket, from the whole and from what is known of the bucket's own row."""
    whole, own = pl.col(statistic.name), pl.col(_own(statistic))
    if statistic.monoid == "sum":
        return whole - own.fill_null(0)
    # A shift is the same in all buckets by now.
    return whole if statistic.moment is not None else pl.when(pl.col(_IS_OWN)).then(own).otherwise(whole)
