"""Contrasts of what cannot be taken off a whole: the lowest, the highest, deviations. The others are put together."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

import polars as pl

from polars_mlmetrics.engine.replicates import WITHOUT, Replicates
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.intervals.interval import coarseness_of, range_of, unless_noise
from polars_mlmetrics.intervals.student_t import standard_error
from polars_mlmetrics.slice_search.coded import GROUP, Coded
from polars_mlmetrics.slice_search.contrasts import CELL, CONTRAST, UNIT, FoldedTables, PartialKind, error_of_gap

VALUE, REST, OF_ALL, SIZE, NAMED = (f"{INTERNAL}{name}" for name in ("value", "rest", "of_all", "size", "named"))
VALUE_ALONE, REST_ALONE = f"{INTERNAL}value_alone", f"{INTERNAL}rest_alone"

Tables = Mapping[PartialKind, pl.DataFrame]
"""Tables of the units of slices, one for each partial of the plan."""

OTHERS = -1
"""The cell of the rows that are in no slice that is looked at."""


class Merged:
    """The differences between cells and the rest of their groups. `sign` is 1 where low values are bad."""

    def __init__(self, coded: Coded, sign: int, buckets: int) -> None:
        self._coded = coded
        self._sign = sign
        self._buckets = buckets
        self._range, self._coarseness = range_of(coded.metric), coarseness_of(coded.metric)

    def added(self, tables: Tables, more: Tables, kept: pl.DataFrame) -> Tables:
        """Tables with more rows, which have a GROUP, a CELL and a WITHOUT; all cells but the kept ones are one."""
        named = kept.select(GROUP, CELL, pl.col(CELL).alias(NAMED))
        found = {}
        for kind, table in more.items():
            rows = table.join(named, on=[GROUP, CELL], how="left")
            rows = rows.with_columns(pl.col(NAMED).fill_null(OTHERS).alias(CELL), pl.col(WITHOUT).cast(pl.Int64))
            known = [tables[kind]] if kind in tables else []
            keys = [GROUP, CELL, WITHOUT]
            layout = self._coded.layouts[kind]
            # Once of the rows by themselves: what is known already would be looked at again.
            found[kind] = layout.folded([*known, layout.folded([rows], keys)], keys)
        return found

    def of(self, tables: Tables, kept: pl.DataFrame) -> pl.DataFrame:
        """`value`, `rest`, `whole`, `gap`, `se` and `bound` of the kept cells, as `Contrast.table` has them."""
        values = self._values(tables).filter(pl.col(CELL) != OTHERS)
        gap, size = self._sign * (pl.col(REST) - pl.col(VALUE)), pl.col(VALUE).abs() + pl.col(REST).abs()
        values = values.with_columns(gap.alias("gap"), size.alias(SIZE))
        is_whole = pl.col(WITHOUT).is_null()
        whole = values.filter(is_whole).drop(WITHOUT, VALUE_ALONE, REST_ALONE)
        whole = whole.with_columns(unless_noise(pl.col("gap"), pl.col(SIZE)).alias("gap"))
        columns = [pl.col("gap").alias(OF_ALL), *(pl.col(of).alias(f"{of}_left") for of in (VALUE, REST))]
        without = values.filter(~is_whole).select(GROUP, CELL, *columns, VALUE_ALONE, REST_ALONE)
        errors = (
            whole.join(without, on=[GROUP, CELL])
            .group_by(GROUP, CELL)
            .agg(
                pl.col(VALUE).first().alias("value"),
                pl.col(REST).first().alias("rest"),
                _error().alias("se"),
                _alone(VALUE, VALUE_ALONE).alias("value_alone"),
                _alone(REST, REST_ALONE).alias("rest_alone"),
            )
        )
        errors = errors.with_columns(error_of_gap(pl.col("se"), self._buckets, self._range).alias("se"))
        errors = errors.select(GROUP, CELL, "se")
        said = [GROUP, CELL, pl.col(VALUE).alias("value"), pl.col(REST).alias("rest"), "gap", "bound"]
        found = kept.join(whole.select(said), on=[GROUP, CELL]).join(errors, on=[GROUP, CELL])
        folded = {kind: self._coded.layouts[kind].folded([table], [GROUP]) for kind, table in tables.items()}
        groups = self.of_groups({kind: self._with_keys(kind, table) for kind, table in folded.items()})
        return found.join(groups, on=GROUP).select(*kept.columns, *CONTRAST)

    def of_groups(self, tables: Mapping[PartialKind, pl.LazyFrame]) -> pl.DataFrame:
        """`whole`: the values of whole groups, from the tables of their units."""
        plan = self._coded.plan.again(FoldedTables(tables, [GROUP], self._coded.plan.schema), [GROUP])
        return plan.groups().select(GROUP, plan.value(self._coded.metric).cast(pl.Float64).alias("whole")).collect()

    def _values(self, tables: Tables) -> pl.DataFrame:
        """The values of each cell and of the rest of its group: of all buckets, and without each."""
        by, schema = [GROUP, CELL, WITHOUT], self._coded.plan.schema
        source = FoldedTables({kind: self._with_keys(kind, table) for kind, table in tables.items()}, by, schema)
        plan, metric = self._coded.plan.again(source, [GROUP, CELL]), self._coded.metric
        value = plan.value(metric).cast(pl.Float64)
        without = Replicates(source, [GROUP])
        # The rest is what is left of a group without the cell: a replicate of replicates.
        bounds = [plan.value(part) for part in self._coarseness]
        bound = pl.sum_horizontal(bounds) if bounds else pl.lit(0.0)
        rest = plan.again(Replicates(without, [GROUP, WITHOUT], CELL), by).groups()
        rest = rest.select(*by, value.alias(REST), bound.alias(f"{REST}_bound"))
        own = plan.again(without, by).groups().select(*by, value.alias(VALUE), bound.alias("bound"))
        # Of each bucket by itself; the rest of it is what is left of the bucket without the cell.
        own_alone = plan.again(source, by).groups().select(*by, value.alias(VALUE_ALONE))
        rest_alone = plan.again(Replicates(source, [GROUP, WITHOUT], CELL), by).groups()
        rest_alone = rest_alone.select(*by, value.alias(REST_ALONE))
        values, *others = pl.collect_all([own, rest, own_alone, rest_alone])
        for other in others:
            values = values.join(other, on=by, how="left", nulls_equal=True)
        return values.with_columns(pl.col("bound") + pl.col(f"{REST}_bound"))

    def _with_keys(self, kind: PartialKind, table: pl.DataFrame) -> pl.LazyFrame:
        """A table with the keys of its units."""
        units = self._coded.layouts[kind].units
        return table.lazy() if not kind.units else table.lazy().join(units.lazy(), on=UNIT, how="left").drop(UNIT)


def _error() -> pl.Expr:
    """The standard error of the gap, from the gaps without each bucket."""
    moved = unless_noise(pl.col(OF_ALL) - pl.col("gap"), pl.col(SIZE))
    is_known = pl.col(OF_ALL).is_finite().fill_null(False).all() & (pl.len() >= 2)
    return pl.when(is_known).then(standard_error(pl.len().cast(pl.Float64), (moved * moved).sum()))


def _alone(value: str, alone: str) -> pl.Expr:
    """How many buckets have a value by themselves, where no bucket moves the value; null where one does."""
    moved = unless_noise(pl.col(f"{value}_left") - pl.col(value), pl.col(value).abs())
    return pl.when((moved == 0).all()).then(pl.col(alone).is_finite().sum())


def t_of(gap: pl.Expr, error: pl.Expr) -> pl.Expr:
    """A difference in standard errors. One that does not vary is as sure as can be."""
    endless = pl.when(gap > 0).then(inf).when(gap < 0).then(-inf).otherwise(0.0)
    return pl.when(error > 0).then(ratio(gap, error)).when(error == 0).then(endless)
