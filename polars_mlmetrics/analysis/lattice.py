"""The lattice of slices: every combination of features, and how far each slice is from the rest of its group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from math import inf

import polars as pl

from polars_mlmetrics.analysis.bounds import standard_error
from polars_mlmetrics.analysis.features import Feature
from polars_mlmetrics.analysis.interval import unless_noise
from polars_mlmetrics.analysis.intervals import FEW_BUCKETS
from polars_mlmetrics.engine.plan import Plan
from polars_mlmetrics.engine.ranking import code_of
from polars_mlmetrics.engine.replicates import WITHOUT, Replicates
from polars_mlmetrics.engine.sources import Rows
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.arithmetic import cuts, ratio, whole_times
from polars_mlmetrics.formula.measure import Node
from polars_mlmetrics.query.query import Query

GROUP, CELL, COMBINATION, SAMPLE, VALUE, REST, OF_ALL, ROWS_OF_ALL, SIZE = (
    f"{INTERNAL}{name}"
    for name in ("group", "cell", "combination", "sample", "value", "rest", "of_all", "rows_of_all", "size")
)
"""A slice is a cell of a combination of features, in a group."""

LEAST = f"{INTERNAL}least"
"""How many samples a slice must have in each half of the buckets."""

OTHERS = -1
"""The cell of the rows that are in no slice that is looked at."""

SCORES = {GROUP: pl.Int64, COMBINATION: pl.Int64, CELL: pl.Int64, "n_buckets": pl.Int64} | dict.fromkeys(
    ("value", "rest", "gap", "se"), pl.Float64
)
"""What is known of a slice in some rows."""

MOST = 4_000_000
"""How many rows a table of slices, buckets and labels has at once, about."""


class Lattice:
    """The slices of some rows.

    `rows` have the columns of the log, their group, bucket and sample, and the codes of their features. `sign` is 1
    where low values are bad.
    """

    def __init__(
        self, query: Query, rows: pl.DataFrame, features: Sequence[Feature], depth: int, sign: int, least: pl.DataFrame
    ) -> None:
        self.rows = rows
        self.features = list(features)
        self.combinations = [
            each for size in range(1, depth + 1) for each in combinations(range(len(self.features)), size)
        ]
        self.n_groups = least.height
        self._query = query
        (self._metric,) = query.metrics
        self._sign = sign
        self._least = least
        self._schema = pl.Schema({**query.schema, **rows.schema, CELL: pl.Int64()})
        self._units = _units_of(query, rows, self._metric)

    def search(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Every slice that is large enough in these rows, with its difference from the rest and its t."""
        found = [
            self.differences(placed, kept).with_columns(pl.lit(place, dtype=pl.Int64).alias(COMBINATION))
            for place, placed, kept in self._placed(rows)
        ]
        scores = pl.concat([pl.DataFrame(schema=SCORES), *(table.select(*SCORES) for table in found)])
        return scores.with_columns(t_of(pl.col("gap"), pl.col("se")).alias("t"))

    def cell(self, combination: int) -> pl.Expr:
        """The cell of a row in a combination."""
        places = [(code_column(place), size) for place, size in self._sizes(combination)]
        cell = pl.lit(0, dtype=pl.Int64)
        for name, size in reversed(places):
            cell = cell * size + pl.col(name)
        return cell

    def codes_of(self, combination: int, cell: int) -> dict[int, int]:
        """The place of the condition that a slice asks of each of its features."""
        codes = {}
        for feature, size in self._sizes(combination):
            cell, codes[feature] = divmod(cell, size)
        return codes

    def differences(self, rows: pl.DataFrame, kept: pl.DataFrame) -> pl.DataFrame:
        """The values of the kept cells of some rows and of the rest, with the jackknife's standard error of the gap."""
        parts = whole_times(MOST, kept.height * self._units * rows[WITHOUT].n_unique())
        starts = [0, *cuts(kept.height, min(parts, kept.height)), kept.height]
        return pl.concat([self._of_some(rows, kept[start:end]) for start, end in pairwise(starts)])

    def _sizes(self, combination: int) -> list[tuple[int, int]]:
        return [(place, len(self.features[place].conditions)) for place in self.combinations[combination]]

    def _placed(self, rows: pl.DataFrame) -> Iterator[tuple[int, pl.DataFrame, pl.DataFrame]]:
        """The rows with the cells of each combination that has cells to look at, and these cells."""
        whole = counts_of(rows, [GROUP]).select(
            GROUP, pl.col("n_samples").alias(OF_ALL), pl.col("n_rows").alias(ROWS_OF_ALL)
        )
        whole = whole.join(self._least, on=GROUP)
        # A sample may have rows in a slice and in the rest: rows are what can be taken off.
        rest = ratio(pl.col(ROWS_OF_ALL) - pl.col("n_rows"), pl.col(ROWS_OF_ALL)) * pl.col(OF_ALL)
        is_large = (pl.min_horizontal("n_samples", rest) >= pl.col(LEAST)) & (pl.col("n_buckets") >= FEW_BUCKETS)
        for place in range(len(self.combinations)):
            placed = rows.with_columns(self.cell(place).alias(CELL))
            counts = counts_of(placed, [GROUP, CELL]).join(whole, on=GROUP)
            kept = counts.filter(is_large).select(GROUP, CELL, "n_buckets")
            if kept.height:
                yield place, placed, kept

    def _of_some(self, rows: pl.DataFrame, kept: pl.DataFrame) -> pl.DataFrame:
        """The differences of some cells; all other rows are in one more cell."""
        named = kept.select(GROUP, CELL, pl.col(CELL).alias(OF_ALL))
        placed = rows.join(named, on=[GROUP, CELL], how="left").with_columns(pl.col(OF_ALL).fill_null(OTHERS))
        values = self._values(placed.drop(CELL).rename({OF_ALL: CELL})).filter(pl.col(CELL) != OTHERS)
        gap, size = self._sign * (pl.col(REST) - pl.col(VALUE)), pl.col(VALUE).abs() + pl.col(REST).abs()
        values = values.with_columns(gap.alias("gap"), size.alias(SIZE))
        is_whole = pl.col(WITHOUT).is_null()
        whole = (
            values.filter(is_whole).drop(WITHOUT).with_columns(unless_noise(pl.col("gap"), pl.col(SIZE)).alias("gap"))
        )
        without = values.filter(~is_whole).select(GROUP, CELL, pl.col("gap").alias(OF_ALL))
        errors = whole.join(without, on=[GROUP, CELL]).group_by(GROUP, CELL).agg(_error().alias("se"))
        columns = [GROUP, CELL, pl.col(VALUE).alias("value"), pl.col(REST).alias("rest"), "gap"]
        return kept.join(whole.select(columns), on=[GROUP, CELL]).join(errors, on=[GROUP, CELL])

    def _values(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The values of each cell and of the rest of its group: of all buckets, and without each."""
        source = Rows(rows.lazy(), self._query.roles.label, self._schema)
        by = [GROUP, CELL, WITHOUT]
        plan = Plan(source, [GROUP, CELL], self._query.readings)
        value = plan.value(self._metric).cast(pl.Float64)
        without = Replicates(source, [GROUP])
        # The rest is what is left of a group without the cell: a replicate of replicates.
        rest = plan.again(Replicates(without, [GROUP, WITHOUT], CELL), by).groups().select(*by, value.alias(REST))
        own = plan.again(without, by).groups().select(*by, value.alias(VALUE))
        values, rests = pl.collect_all([own, rest])
        return values.join(rests, on=by, nulls_equal=True)


def _error() -> pl.Expr:
    """The standard error of the gap, from the gaps without each bucket."""
    moved = unless_noise(pl.col(OF_ALL) - pl.col("gap"), pl.col(SIZE))
    is_known = pl.col(OF_ALL).is_finite().fill_null(False).all() & (pl.len() >= 2)
    return pl.when(is_known).then(standard_error(pl.len().cast(pl.Float64), (moved * moved).sum()))


def code_column(place: int) -> str:
    """The column that says which condition of a feature a row meets."""
    return f"{INTERNAL}code_{place}"


def codes_of_features(features: Sequence[Feature]) -> list[pl.Expr]:
    """The columns that say so."""
    return [feature.code().alias(code_column(place)) for place, feature in enumerate(features)]


def sample_code(sample: Sequence[str]) -> pl.Expr:
    """A column that tells samples from one another; null where a row has none."""
    is_known = pl.all_horizontal(pl.col(column).is_not_null() for column in sample)
    return pl.when(is_known).then(code_of(sample)).alias(SAMPLE)


def counts_of(rows: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """How many samples, rows and buckets there are at some keys."""
    counts = {"n_samples": pl.col(SAMPLE).drop_nulls().n_unique(), "n_rows": pl.len()}
    counts["n_buckets"] = pl.col(WITHOUT).n_unique()
    return rows.group_by(keys).agg(count.cast(pl.Int64).alias(name) for name, count in counts.items())


def t_of(gap: pl.Expr, error: pl.Expr) -> pl.Expr:
    """A difference in standard errors. One that does not vary is as sure as can be."""
    endless = pl.when(gap > 0).then(inf).when(gap < 0).then(-inf).otherwise(0.0)
    return pl.when(error > 0).then(ratio(gap, error)).when(error == 0).then(endless)


def _units_of(query: Query, rows: pl.DataFrame, metric: Node) -> int:
    """How many labels and runs the statistics of a slice are of, about."""
    sizes = [1]
    for measure in metric.measures():
        cells = query.readings.of(measure, in_runs=False, ranks=False).cells or 1
        has_labels = measure.grain == "label" and measure.table.label in rows.columns
        sizes.append(cells * rows[measure.table.label].n_unique() if has_labels else cells)
    return max(sizes)
