"""Mix and rate of the other metrics, such as an area or a mean over labels, by slices in the shares of the other side.

The sums of each slice are multiplied, so that the slices of one side have the shares of the other, and then put
together. That gives two values that nobody saw: C10 of the slices of side 1 in the shares of side 0, and C01 of those
of side 0 in the shares of side 1. Mix and rate of the whole are the means of both ways from V0 to V1:

    rate = ((C10 - V0) + (V1 - C01)) / 2
    mix  = ((V1 - C10) + (C01 - V0)) / 2

They add up to V1 - V0. For a ratio of sums whose denominator is the rows they are those of mix.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from polars_mlmetrics.contrasts.in_memory import SIZE, VALUE
from polars_mlmetrics.contrasts.mix import (
    IS_THERE,
    MIX,
    OTHER,
    RATE,
    SHARE,
    SIDES,
    TOTAL,
    WEIGHT,
    WHOLE,
    MixAndRate,
    of_whole,
    values_of_both,
    with_wholes,
)
from polars_mlmetrics.contrasts.sides import PAIR
from polars_mlmetrics.engine.folds import fold, merge
from polars_mlmetrics.engine.partials import Partial, PartialTable, statistics_of
from polars_mlmetrics.engine.replicates import Replicates
from polars_mlmetrics.engine.sources import OfSource, Source
from polars_mlmetrics.engine.split_samples import Counts
from polars_mlmetrics.errors import INTERNAL, MetricError
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.intervals.intervals import Intervals
from polars_mlmetrics.query.question import Question

PLACE, TIMES = f"{INTERNAL}composition", f"{INTERNAL}times"
"""The key that says for which value the sums of a slice are taken, and how many times."""


class Composition(NamedTuple):
    """The side whose slices are put together, and that whose shares they have."""

    slices: str
    shares: str


COMPOSITIONS = [Composition(slices, shares) for slices in SIDES for shares in SIDES]
"""Their values are V1, C10, C01 and V0."""


class Reweighted(OfSource):
    """A source by side and slice as one by candidate, its slices put together as often as `times` says.

    `times` has the `keys` of the source, then PAIR, PLACE and TIMES.
    """

    def __init__(self, source: Source, keys: Sequence[str], times: pl.LazyFrame) -> None:
        self.source = source
        self._times = times
        self._finer = list(keys)
        self.schema = pl.Schema({**source.schema, **times.drop(keys).collect_schema()})

    def partials(self, partials: Sequence[Partial], by: list[str]) -> list[PartialTable]:
        finer = self._keys(by)
        given = self.source.partials([partial.at(finer) for partial in partials], finer)
        return [(self._composed(partial, table), by) for partial, (table, _) in zip(partials, given, strict=True)]

    def _keys(self, by: Sequence[str]) -> list[str]:
        return [*self._finer, *(key for key in by if key not in (*self._finer, PAIR, PLACE))]

    def with_reasons(self, table: pl.LazyFrame, by: list[str], counts: Mapping[str, Counts]) -> pl.LazyFrame:
        # Whether samples are whole is known of the wholes of each side, whose values are null where they are not.
        return table.with_columns(pl.lit(None, dtype=pl.String).alias(reason) for reason in counts)

    def _composed(self, partial: Partial, table: pl.LazyFrame) -> pl.LazyFrame:
        table, statistics = table.join(self._times, on=self._finer, nulls_equal=True), statistics_of(partial)
        # A lowest or a highest value is there or not, however often.
        times = [pl.col(each.name) * pl.col(TIMES) for each in statistics if each.monoid == "sum"]
        return merge(table.with_columns(times), partial.table_keys, statistics)


class ReweightedMix(MixAndRate):
    """Mix and rate of a whole. Its slices have a rate, which do not add up to that of the whole, and no mix."""

    def __init__(self, question: Question, baseline: Any) -> None:
        super().__init__(question, baseline)
        if self._metric.interval_kind == "total":
            raise MetricError(
                f"decompose takes no totals, and {self._metric.output_name!r} grows with the rows: take a share, such "
                "as predicted_rate or prevalence."
            )

    def _weight(self) -> pl.Expr:
        weights = Intervals(self._plan, self._confidence).weights_of(self._core)
        return pl.min_horizontal(map(self._plan.value, weights)) if weights else pl.lit(None, dtype=pl.Float64)

    def _parts(self, slices: pl.LazyFrame, group: Sequence[str]) -> pl.LazyFrame:
        value, other = values_of_both()
        share = 0.5 * (pl.col(SHARE) + pl.col(SHARE + OTHER))
        size = share * (value.abs() + other.abs())
        slices = slices.with_columns((share * (value - other)).alias(RATE), size.alias(SIZE)).collect().lazy()
        wholes = fold(slices, group, of_whole())
        if self._plan.merges(self._core):
            wholes = wholes.join(self._compositions(slices, group), on=group, how="left", nulls_equal=True)
        return with_wholes(slices, wholes)

    def _compositions(self, slices: pl.LazyFrame, group: Sequence[str]) -> pl.LazyFrame:
        """Mix and rate of each whole, and its values on both sides."""
        between, keys = self._between.column, [*self._pair, *self._slice, *self._without]
        source = Replicates(self._by_bucket, self._by) if self._without else self._source
        times = pl.concat(self._times(slices, place) for place in range(len(COMPOSITIONS)))
        times = times.select(*keys, PAIR, PLACE, TIMES)
        plan = self._plan.again(Reweighted(source, keys, times), [*self._by, PAIR, *self._without, PLACE])
        value = plan.value(self._core).cast(pl.Float64).alias(VALUE)
        found = plan.groups().select(*plan.by, value).rename({PAIR: between}).collect().lazy()
        values = [pl.col(VALUE).filter(pl.col(PLACE) == place).first() for place in range(len(COMPOSITIONS))]
        return fold(found, group, _mix_and_rate(*values))

    def _times(self, slices: pl.LazyFrame, place: int) -> pl.LazyFrame:
        """How many times a composition takes the sums of each slice."""
        own, shares = COMPOSITIONS[place]
        (weight, share, total), (other_weight, other_share, other_total) = (
            [pl.col(name + side) for name in (WEIGHT, SHARE, TOTAL)] for side in (own, shares)
        )
        if own == shares:
            return self._taken(slices, place, own, pl.when(pl.col(IS_THERE + own)).then(1.0))
        # A slice that a side lacks is that of the other, in the size that it would have there.
        rescaled = pl.when(weight != 0, other_weight != 0).then(ratio(other_share, share))
        lent = pl.when(weight == 0, other_weight != 0).then(ratio(total, other_total))
        return pl.concat([self._taken(slices, place, own, rescaled), self._taken(slices, place, shares, lent)])

    def _taken(self, slices: pl.LazyFrame, place: int, side: str, times: pl.Expr) -> pl.LazyFrame:
        """The slices of a side that are taken; not those of which it is null how often."""
        pair = pl.col(self._between.column)
        of_side = pair if side == "" else pl.lit(self._baseline, dtype=self._candidates.dtype)
        columns = pair.alias(PAIR), pl.lit(place).alias(PLACE), times.alias(TIMES), of_side.alias(self._between.column)
        return slices.with_columns(columns).filter(pl.col(TIMES).is_not_null())


def _mix_and_rate(ours: pl.Expr, in_their_shares: pl.Expr, in_our_shares: pl.Expr, theirs: pl.Expr) -> list[pl.Expr]:
    """Those of a whole, from its values and from those of the two compositions that nobody saw."""
    return [
        (0.5 * ((ours - in_their_shares) + (in_our_shares - theirs))).alias(MIX),
        (0.5 * ((in_their_shares - theirs) + (ours - in_our_shares))).alias(RATE),
        pl.sum_horizontal(each.abs() for each in (ours, theirs, in_their_shares, in_our_shares)).alias(SIZE),
        ours.alias(WHOLE),
        theirs.alias(WHOLE + OTHER),
    ]
