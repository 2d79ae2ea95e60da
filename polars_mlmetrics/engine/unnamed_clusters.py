"""Clusters that nobody named: columns such as the user, of which each value has several samples with the same features.

Such samples may depend on one another. Where `cluster=` does not name the column, intervals are too narrow, most of all
those of slices by these features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from polars_mlmetrics.data.expressions import reserved
from polars_mlmetrics.data.frames import is_text
from polars_mlmetrics.engine.packing import modulo
from polars_mlmetrics.engine.ranking import code_of
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.arithmetic import whole_times

LOOKED = 200_000
"""About so many rows are looked at: of more rows, those of some values of a column, with all their samples."""

FEWEST_VALUES, SAMPLES_EACH = 30, 2
"""A cluster has more values than this, and so many samples of each on the average."""

FEWEST_OTHERS = 10
"""Of so many values with several samples a feature is not what it is of most: chance alone does not make that."""

N_SAMPLES, FIRST = f"{INTERNAL}n_samples", f"{INTERNAL}first:"


@dataclass(frozen=True)
class UnnamedCluster:
    """A column that may be a cluster."""

    column: str
    features: list[str]
    """The features of which each value has one."""
    values: pl.DataFrame
    """The values that were looked at, how many samples each has, and the features of the first."""
    parts: int
    """Of so many parts of the values these are one."""

    @property
    def repeated(self) -> pl.DataFrame:
        """The values with several samples."""
        return self.values.filter(pl.col(N_SAMPLES) > 1)

    def is_likely(self) -> bool:
        """Whether it has the many values of a cluster, with several samples each, as a rule."""
        n_samples, n_values = self.values[N_SAMPLES].sum(), self.values.height
        return n_values * self.parts > FEWEST_VALUES and n_samples >= SAMPLES_EACH * n_values

    def varied(self) -> list[str]:
        """The features that are not the same of nearly all values."""
        repeated = self.repeated
        codes = {name: repeated[f"{FIRST}{name}"].hash() for name in self.features}
        most = {name: int((code == code.mode().first()).sum()) for name, code in codes.items()}
        return [name for name, count in most.items() if repeated.height - count >= FEWEST_OTHERS]


def unnamed_clusters(
    rows: pl.LazyFrame, n_rows: int, by: Sequence[str], sample: Sequence[str], features: Sequence[str], free: set[str]
) -> list[UnnamedCluster]:
    """Search the columns that are `free`, of no role. Of each feature the one with the fewest values is taken."""
    keys = list(dict.fromkeys([*by, *sample, *features]))
    free = free - {*keys, *reserved(free)}
    columns = [name for name, dtype in rows.collect_schema().items() if name in free and _may_be_ids(dtype)]
    if not (columns and features):
        return []
    known = rows.select(*keys, *columns).filter(pl.col(name).is_not_null() for name in sample)
    # The first rows rule out nearly every column that is none.
    first = known.head(LOOKED).collect()
    looks = [_looked_at(first, name, by, sample, features, 1) for name in columns]
    parts = whole_times(LOOKED, n_rows)
    if parts > 1:
        columns = [each.column for each in looks if each.features and each.values.height > FEWEST_VALUES]
        some = [known.filter(modulo(pl.col(name).hash(), parts) == 0).head(LOOKED * 4) for name in columns]
        tables = zip(columns, pl.collect_all(some, engine="streaming"), strict=True)
        looks = [_looked_at(table, name, by, sample, features, parts) for name, table in tables]
    likely = [replace(each, features=each.varied()) for each in looks if each.is_likely()]
    # Samples of one session are of one user too: the larger clusters hold the others.
    likely.sort(key=lambda each: each.values.height)
    found: list[UnnamedCluster] = []
    for each in likely:
        known_features = {name for other in found for name in other.features}
        found.append(replace(each, features=[name for name in each.features if name not in known_features]))
    return [each for each in found if each.features]


def _may_be_ids(dtype: pl.DataType) -> bool:
    return is_text(dtype) or dtype.is_integer()


def _looked_at(
    rows: pl.DataFrame, column: str, by: Sequence[str], sample: Sequence[str], features: Sequence[str], parts: int
) -> UnnamedCluster:
    """A column, with the features that are the same in all samples of a value: none if a sample has several values."""
    rows = rows.filter(pl.col(column).is_not_null()).with_columns(code_of([*by, *sample]).alias(N_SAMPLES))
    values = rows.group_by(*by, column).agg(
        pl.col(N_SAMPLES).n_unique(),
        pl.col(features).hash().n_unique() == 1,
        pl.col(features).first().name.prefix(FIRST),
    )
    found = UnnamedCluster(column, [], values, parts)
    if values[N_SAMPLES].sum() != rows[N_SAMPLES].n_unique():
        return found
    return replace(found, features=[name for name in features if found.repeated[name].all()])
