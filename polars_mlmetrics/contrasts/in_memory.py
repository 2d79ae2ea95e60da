"""The jackknife of numbers that lie in memory with all their replicates, such as differences of many slices."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from polars_mlmetrics.engine.folds import fold, matched
from polars_mlmetrics.engine.plan import Plan
from polars_mlmetrics.engine.replicates import WITHOUT, CoarseBuckets, Replicates
from polars_mlmetrics.engine.sources import Source
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.measure import Node
from polars_mlmetrics.intervals.interval import unless_noise
from polars_mlmetrics.intervals.kinds import buckets_for, planned_in
from polars_mlmetrics.intervals.student_t import deciding, degrees_of_freedom, jackknife, standard_error
from polars_mlmetrics.query.question import Confidence

VALUE, SIZE, HAS = (f"{INTERNAL}{name}" for name in ("value", "size", "has_value"))
OF_ALL, SIZE_OF_ALL, MOVED, ERROR, DECIDING, DF = (
    f"{INTERNAL}{name}" for name in ("of_all", "size_of_all", "moved", "error", "deciding", "df")
)
BUCKETS, SCALE, SQUARES, FOURTHS, IS_KNOWN = (
    f"{INTERNAL}{name}" for name in ("buckets", "scale", "squares", "fourths", "is_known")
)

_OTHER = f"{INTERNAL}other"
HAS_OTHER = HAS + _OTHER


def without_each(plan: Plan, metrics: Sequence[Node], by: Sequence[str], confidence: Confidence) -> list[pl.LazyFrame]:
    """The values of each metric of a plan without each bucket of groups (`by`), and whether the bucket alone has one.

    The metrics have equally many buckets, and are worked out together.
    """
    cell, parts = [*plan.by, WITHOUT], [part for metric in metrics for part in planned_in(metric)]
    values = [(place, plan.value(metric).cast(pl.Float64)) for place, metric in enumerate(metrics)]
    source = source_for(metrics[0], plan, confidence)
    without = plan.again(Replicates(source, by), cell, parts).groups()
    without = without.select(*cell, *(value.alias(f"{VALUE}_{place}") for place, value in values))
    alone = plan.again(source, cell, parts).groups()
    alone = alone.select(*cell, *(value.is_not_null().alias(f"{HAS}_{place}") for place, value in values))
    cells = matched(without, alone, cell, how="left")

    def of_metric(place: int) -> pl.LazyFrame:
        value, has = pl.col(f"{VALUE}_{place}"), pl.col(f"{HAS}_{place}")
        return cells.select(*cell, value.alias(VALUE), value.abs().alias(SIZE), has.fill_null(False).alias(HAS))

    return [of_metric(place) for place, _ in values]


def source_for(metric: Node, plan: Plan, confidence: Confidence) -> Source:
    """The source of a plan, by as few buckets as a metric has."""
    is_coarse = buckets_for(metric, plan, confidence).buckets < confidence.buckets
    return CoarseBuckets(plan.source) if is_coarse else plan.source


def replicated(cells: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """One row a key: its value, the sums of the jackknife, its standard error and the degrees of freedom of that.

    A cell has the `VALUE` without a bucket (of all, where WITHOUT is null), the `SIZE` of what it is made of, and
    whether the bucket alone `HAS` one.
    """
    is_whole = pl.col(WITHOUT).is_null()
    of_all = pl.col(VALUE).alias(OF_ALL), pl.col(SIZE).alias(SIZE_OF_ALL)
    whole = cells.lazy().filter(is_whole).select(*keys, *of_all)
    left = cells.lazy().filter(~is_whole).join(whole, on=keys, nulls_equal=True)
    left = left.with_columns(unless_noise(pl.col(VALUE) - pl.col(OF_ALL), pl.col(SIZE_OF_ALL)).alias(MOVED))
    # Under names that no key of a group can have.
    sums = jackknife(pl.col(VALUE), pl.col(MOVED), pl.col(SIZE_OF_ALL), pl.col(HAS)).items()
    columns = [pl.col(OF_ALL).first(), *(total.alias(f"{INTERNAL}{name}") for name, total in sums)]
    buckets, is_known = pl.col(BUCKETS), pl.col(IS_KNOWN) & (pl.col(BUCKETS) >= 2)
    error = pl.when(is_known).then(standard_error(buckets, pl.col(SQUARES), pl.col(SCALE)))
    few = deciding(pl.col(SQUARES), pl.col(FOURTHS))
    facts = error.alias(ERROR), few.alias(DECIDING), degrees_of_freedom(buckets, few).alias(DF)
    return fold(left, keys, columns).with_columns(facts).collect()


def are_numbered(cells: pl.DataFrame, confidence: Confidence) -> pl.Expr:
    """Whether the buckets of cells are single clusters."""
    return pl.lit((cells[WITHOUT] >= confidence.buckets).any())


def two_by_two(cells: pl.DataFrame, by: Sequence[str], member: str, other: str) -> pl.DataFrame:
    """The differences of all pairs of members of a group, of all buckets and without each.

    Members are numbers, and the first of a pair is the lower. Whether a bucket alone has a value of each is there
    under `HAS` and `HAS_OTHER`.
    """
    on = [*by, WITHOUT]
    both = cells.join(cells, on=on, nulls_equal=True, suffix=_OTHER).filter(pl.col(member) < pl.col(member + _OTHER))
    return both.select(
        *on,
        member,
        pl.col(member + _OTHER).alias(other),
        pl.col(VALUE) - pl.col(VALUE + _OTHER),
        pl.col(SIZE) + pl.col(SIZE + _OTHER),
        HAS,
        HAS_OTHER,
    )
