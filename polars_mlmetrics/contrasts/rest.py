"""A slice against the rest of its group: how much worse a metric is there, and how sure that is.

Both sides lose the same bucket in each replicate. The rest is the group without the slice, which a source by group,
slice and bucket can give: `sides_of` takes both sides from one. `Sides` may come from anywhere else too, such as from
sums of which those of the slice are taken off; `against_rest` makes the gap, its standard error and t of them, and
`with_tests` its interval and the p of being worse.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

import polars as pl

from polars_mlmetrics.data.numpy_later import Numbers, np
from polars_mlmetrics.engine.plan import Plan
from polars_mlmetrics.engine.replicates import WITHOUT, Replicates
from polars_mlmetrics.engine.sources import Source
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.formula.measure import Node
from polars_mlmetrics.intervals.interval import NOISE
from polars_mlmetrics.intervals.kinds import coarseness_of, range_of
from polars_mlmetrics.intervals.student_t import (
    deciding,
    degrees_of_freedom,
    error_of_constant,
    p_value,
    powers_of_rows,
    standard_error,
    t_at,
)
from polars_mlmetrics.query.question import Confidence

BOUND, T, DF = (f"{INTERNAL}{name}" for name in ("bound", "t", "df"))


OF_GAP = ("t", "deciding", "bound")
"""The gap in standard errors, about how many buckets decide these, and by how much bins may put the gap off."""


class Sides(NamedTuple):
    """The values of slices and of the rest of their groups."""

    value: Numbers
    """Slices x buckets: without each bucket, and last of all buckets."""
    rest: Numbers
    value_alone: Numbers
    """How many buckets have a value by themselves, where no bucket moves the value; NaN where one does."""
    rest_alone: Numbers
    bound: Numbers
    """How far bins may put the two off, at most."""


def values_by(plan: Plan, metric: Node, source: Source, by: Sequence[str]) -> pl.LazyFrame:
    """The `value` of a metric by some keys, and the BOUND of how far bins may put it off."""
    plan = plan.again(source, by)
    bounds = [side for bound in coarseness_of(metric) for side in plan.sides(bound)]
    value = plan.value(metric).cast(pl.Float64).alias("value")
    return plan.groups().select(*plan.keys, value, pl.sum_horizontal([pl.lit(0.0), *bounds]).alias(BOUND))


def sides_of(plan: Plan, metric: Node, source: Source, slices: pl.DataFrame, n_buckets: int) -> Sides:
    """Both sides of slices, from a source by their keys and WITHOUT. Of their keys the last tells those of a group."""
    *group, key = slices.columns
    by, without = [*group, key, WITHOUT], Replicates(source, group)
    # The rest is what is left of a group without the slice: a replicate of replicates.
    others, others_alone = (Replicates(each, [*group, WITHOUT], key) for each in (without, source))
    tables = pl.collect_all([values_by(plan, metric, each, by) for each in (without, others, source, others_alone)])
    buckets = pl.Series(WITHOUT, [*range(n_buckets), None], dtype=tables[0].schema[WITHOUT])
    cells = slices.join(buckets.to_frame(), how="cross", maintain_order="left_right")
    value, rest, value_alone, rest_alone = (
        cells.join(table, on=by, how="left", nulls_equal=True, maintain_order="left") for table in tables
    )

    def array(column: pl.Series) -> Numbers:
        return column.to_numpy().reshape(slices.height, n_buckets + 1)

    # A bucket that a group does not have moves nothing.
    is_there = array(value[BOUND].is_not_null())
    values, rests = (np.where(is_there, side, side[:, -1:]) for side in (array(value["value"]), array(rest["value"])))
    alone = [
        np.where(is_constant(side), np.isfinite(array(of_bucket["value"])[:, :-1]).sum(axis=1), np.nan)
        for side, of_bucket in ((values, value_alone), (rests, rest_alone))
    ]
    bound = array(value[BOUND])[:, -1] + array(rest[BOUND])[:, -1]
    return Sides(values, rests, alone[0], alone[1], np.nan_to_num(bound))


def against_rest(sides: Sides, n_buckets: Numbers, metric: Node, sign: int, *, is_change: bool = False) -> pl.DataFrame:
    """`value`, `rest`, `gap` (positive is worse), `se` and `OF_GAP`.

    `n_buckets` are those that the group of each slice has. `sign` is 1 where low values are bad, else -1.
    """
    gaps = sign * (sides.rest - sides.value)
    gaps = np.where(np.isfinite(gaps), gaps, np.nan)
    size = np.abs(sides.value[:, -1]) + np.abs(sides.rest[:, -1])
    gap = without_noise(gaps[:, -1], size)
    moved = without_noise(gaps[:, :-1] - gap[:, None], size[:, None])
    columns = {"value": sides.value[:, -1], "rest": sides.rest[:, -1], "gap": gap, "bound": sides.bound}
    columns |= {"value_alone": sides.value_alone, "rest_alone": sides.rest_alone}
    columns |= {**powers_of_rows(moved, size), "n": n_buckets.astype(float)}
    low, high = range_of(metric)
    square = standard_error(pl.col("n"), pl.col("squares"), pl.lit(1.0)) ** 2
    for side in ("value", "rest"):
        # A side which no bucket moves has the error of its few units.
        units = pl.col(f"{side}_alone")
        # That nothing changes in a few units is as little known as that none of them is wrong.
        value, ends = (pl.col(side).abs(), (0.0, high - low)) if is_change else (pl.col(side), (low, high))
        own = error_of_constant(value, units, moved.shape[1], ends)
        square += pl.when(units.is_not_null()).then(ratio(own, pl.col("scale")) ** 2).otherwise(0.0)
    is_known = pl.col("squares").is_not_null() & (pl.col("n") >= 2)
    error = pl.when(is_known).then(square.sqrt() * pl.col("scale")).alias("se")
    found = pl.DataFrame(columns, nan_to_null=True).with_columns(error)
    facts = t_of(pl.col("gap"), pl.col("se")), deciding(pl.col("squares"), pl.col("fourths")), pl.col("bound")
    return found.select("value", "rest", "gap", "se", *map(pl.Expr.alias, facts, OF_GAP))


def t_of(gap: pl.Expr, error: pl.Expr) -> pl.Expr:
    """A difference in standard errors. One that does not vary is as sure as can be."""
    endless = pl.when(gap > 0).then(inf).when(gap < 0).then(-inf).otherwise(0.0)
    return pl.when(error > 0).then(ratio(gap, error)).when(error == 0).then(endless)


def with_tests(table: pl.DataFrame, metric: Node, confidence: Confidence, *, is_change: bool = False) -> pl.DataFrame:
    """Slices with the ends of their gaps, `low` and `high`, and `p`: the chance of a gap as large were there none.

    A slice is looked at because it may be worse, so p has one side; the interval has two. Beside `gap` and `se` the
    slices have `deciding`, and `n_buckets`, in so many of which are rows of theirs.
    """
    buckets, gap, se = (pl.col(name) for name in ("n_buckets", "gap", "se"))
    varies, df = (se > 0) & (buckets >= 2), degrees_of_freedom(buckets, pl.col("deciding"))
    # As columns: an expression would work them out for each of its terms.
    table = table.with_columns(t_of(gap, se).alias(T), df.alias(DF))
    away = pl.when(varies).then(t_at(pl.col(DF), confidence.level) * se)
    lowest, highest = range_of(metric)
    widest = (highest - lowest) * (2 if is_change else 1)
    ends = [end.clip(-widest, widest) for end in (gap - away, gap + away)]
    beyond = p_value(pl.col(T), pl.col(DF)) * 0.5
    p = pl.when(varies & (gap > 0)).then(beyond).when(varies).then(1 - beyond)
    return table.with_columns(ends[0].alias("low"), ends[1].alias("high"), p.alias("p"))


def is_constant(values: Numbers) -> Numbers:
    """Where no bucket moves the value."""
    found: Numbers = (np.abs(values[:, :-1] - values[:, -1:]) <= NOISE * np.abs(values[:, -1:])).all(axis=1)
    return found


def without_noise(difference: Numbers, size: Numbers) -> Numbers:
    """Differences of values of this size; 0 where rounding alone makes one."""
    return np.where(np.abs(difference) <= NOISE * size, 0.0, difference)
