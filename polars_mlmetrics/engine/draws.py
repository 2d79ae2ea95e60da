"""Draws: a source of buckets that are drawn with replacement, again and again. Its values are those it might have had.

Like a replicate a draw is one more by key of a plan. A bucket that is drawn several times counts as often: sums are
taken so many times, and so are weights and sums of deviations; the lowest and the highest are those of the buckets that
were drawn. All groups have the same draws, of all buckets of the log: of a small group some have many samples and some
few, as other logs would.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polars_mlmetrics.data.numpy_later import np
from polars_mlmetrics.engine.folds import matched, merge
from polars_mlmetrics.engine.partials import Partial, PartialTable, statistics_of
from polars_mlmetrics.engine.replicates import WITHOUT, Replicates
from polars_mlmetrics.engine.sources import Source
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.statistic import Statistic

DRAW = f"{INTERNAL}draw"
"""The key that says which draw it is; null where all buckets are there once."""
_TIMES = f"{INTERNAL}times"

DRAWS = 200
"""How often buckets are drawn."""

AT_ONCE = 20
"""How many draws are worked out together."""

SEED = 20_260_101
"""The draws are the same ones every time, so that an interval is too."""


class Draws(Replicates):
    """The buckets of a source as each draw has them, and all of them once."""

    def __init__(self, source: Source, by: Sequence[str], buckets: int) -> None:
        super().__init__(source, by, DRAW)
        self.schema = pl.Schema({**source.schema, DRAW: pl.Int64()})
        self._buckets = buckets
        self._times = times_of(buckets)

    def partials(self, partials: Sequence[Partial], by: list[str]) -> list[PartialTable]:
        by_bucket = [WITHOUT if key == DRAW else key for key in by]
        by_buckets = [each.at(by_bucket) for each in partials]
        given = zip(by_buckets, self.source.partials(by_buckets, by_bucket), strict=True)
        return [(self._drawn(partial, table), by) for partial, (table, _) in given]

    def _drawn(self, partial: Partial, by_bucket: pl.LazyFrame) -> pl.LazyFrame:
        """A partial by bucket, as it is in each draw: at all its keys, whether or not these were drawn."""
        by_bucket = by_bucket.cache()
        keys, statistics = [key for key in partial.table_keys if key != WITHOUT], statistics_of(partial)
        times = self._times.with_columns(pl.col(WITHOUT).cast(by_bucket.collect_schema()[WITHOUT]))

        def of_some(first: int) -> pl.LazyFrame:
            some = times.slice(first * self._buckets, AT_ONCE * self._buckets)
            drawn = matched(by_bucket, some, [WITHOUT]).select(*keys, DRAW, *map(_counted, statistics))
            return merge(drawn, [*keys, DRAW], statistics)

        # One after the other: all draws at once would take hundreds of times what the buckets do.
        return pl.concat([of_some(first) for first in range(0, DRAWS + 1, AT_ONCE)], parallel=False)


def times_of(buckets: int) -> pl.LazyFrame:
    """How many times each draw has each bucket: as many as there are, all together."""
    drawn = np.random.RandomState(SEED).randint(buckets, size=(DRAWS, buckets))
    times = [*(np.bincount(draw, minlength=buckets) for draw in drawn), np.ones(buckets, dtype=np.int64)]
    draws = pl.Series([*range(DRAWS), None], dtype=pl.Int64)
    columns = {DRAW: draws, WITHOUT: [range(buckets)] * len(times), _TIMES: times}
    return pl.LazyFrame(columns, schema_overrides={_TIMES: pl.List(pl.Int64)}).explode(WITHOUT, _TIMES)


def _counted(statistic: Statistic) -> pl.Expr:
    """A statistic of a bucket as often as it was drawn; null where it was not."""
    value, times = pl.col(statistic.name), pl.col(_TIMES)
    counted = value * times if statistic.monoid == "sum" else value
    return pl.when(times > 0).then(counted).alias(statistic.name)
