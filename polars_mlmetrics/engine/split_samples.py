"""Samples that have several values of a by column: a state counts them, so that no group is made of parts of samples.

A group of `finish` merges rows of a state. A sample with rows in two of them would be ranked as two samples: its value
is unknown. So if a metric needs whole samples, `state` counts for each by column c the samples with several values of
c, and for each other column d those with several values of c within one value of d. A column that varies in a group may
be merged away where its count is 0, or its count in one d where all of the group has one value of d.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations

import polars as pl

from polars_mlmetrics.engine.folds import BUCKET, bounds_of, fold, has_several, rows_of_few
from polars_mlmetrics.engine.ranking import code_of
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.statistic import Statistic

_CODE = f"{INTERNAL}only_code"


Counts = Mapping[str, tuple[str, ...]]
"""The columns to count, by name: a column, and the other column of which it is one value, if there is one."""


def counts_of(
    by: Mapping[str, str], sample: Sequence[str], usual: Sequence[str], cluster: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """All that is counted of a sample, which goes without saying where it is the usual one.

    `by` has the names of the by columns, and with them the bucket, which is made of the columns of the `cluster`.
    """
    whose = "" if tuple(sample) == tuple(usual) else f"[sample={'+'.join(sample)}]"
    # A sample that is told by the columns of its cluster, among others, lies in one bucket.
    columns = [column for column in by if column != BUCKET or not set(cluster) <= set(sample)]
    alone: dict[str, tuple[str, ...]] = {f"samples with several {by[c]!r}{whose}": (c,) for c in columns}
    pairs = {f"samples with several {by[c]!r} in one {by[d]!r}{whose}": (c, d) for c, d in permutations(columns, 2)}
    return {**alone, **pairs}


class SeveralValues:
    """The counts of a log, by group."""

    bytes_a_row = 25
    whole_samples = True

    def __init__(self, by: list[str], sample: Sequence[str], counts: Counts) -> None:
        self.by = by
        self.sample = list(sample)
        self.counts = counts

    def of_rows(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """The counts of the rows; no row for a group without such samples."""
        rows = rows.filter(pl.col(column).is_not_null() for column in self.sample)
        varying = list(dict.fromkeys(column for column, *_ in self.counts.values()))
        codes = rows.select(*self.sample, code_of(varying).alias(_CODE)).group_by(self.sample)
        several = codes.agg(bounds_of(pl.col(_CODE))).filter(has_several()).select(self.sample).cache()
        keys = list(dict.fromkeys([*self.sample, *self.by]))
        places = rows_of_few(rows.select(keys), several, self.sample)
        # Equal values as one number, so that the lowest and the highest of each sample tell whether there are several.
        number = {column: f"{INTERNAL}number:{column}" for column in varying}
        numbers = [pl.col(_CODE).min().over(column).alias(name) for column, name in number.items()]
        counted = [
            _has_several(pl.col(number[column]), [*self.sample, *(number[other] for other in within)]).alias(name)
            for name, (column, *within) in self.counts.items()
        ]
        places = places.unique().with_row_index(_CODE).with_columns(numbers).with_columns(counted)
        return fold(places, self.by, [pl.col(list(self.counts)).sum().cast(pl.Int64)])

    def merged(self, parts: pl.LazyFrame) -> pl.LazyFrame:
        """Merge the counts of several parts of the rows."""
        return fold(parts, self.by, [pl.col(list(self.counts)).sum()])

    def table(self, counts: pl.LazyFrame, groups: pl.LazyFrame) -> pl.LazyFrame:
        """The counts: a row of zeros for every group, and one more for those with such samples."""
        groups = groups.with_columns(code_of(self.by).alias(_CODE))
        # Two groups of one code would be an error here, never a sample that is not counted.
        groups = groups.join(groups.select(_CODE).unique(), on=_CODE, validate="1:1").drop(_CODE)
        zeros = groups.with_columns(pl.lit(0, dtype=pl.Int64).alias(name) for name in self.counts)
        return pl.concat([zeros, counts.select(zeros.collect_schema().names())])

    def statistics(self) -> list[Statistic]:
        """The counts, as what is merged."""
        return [Statistic(name, pl.col(name), "sum", is_count=True) for name in self.counts]


def _has_several(value: pl.Expr, keys: list[str]) -> pl.Expr:
    return value.min().over(keys) != value.max().over(keys)


def reasons(
    rows: pl.LazyFrame, by: Mapping[str, str], added: Sequence[pl.Expr], keys: Sequence[str],
    counts: Mapping[str, Counts],
) -> pl.LazyFrame:  # fmt: skip
    """For each group of keys why samples are not whole in it, by the column that is to say so; null where they are.

    `rows` are those of a state, and `by` has the names of its columns. Keys may be `added` to them.
    """
    names = list(dict.fromkeys(name for each in counts.values() for name in each))
    several = {column: f"{INTERNAL}several:{column}" for column in by}
    groups = fold(rows, list(by), [pl.col(names).sum()]).with_columns(
        *added, *(pl.col(column).alias(name) for column, name in several.items())
    )
    varies = [(pl.col(name).n_unique() > 1).alias(name) for name in several.values()]
    groups = fold(groups, keys, [pl.col(names).sum(), *varies])

    def reason(counted: Counts) -> pl.Expr:
        whole: dict[str, list[pl.Expr]] = {}
        for name, (column, *within) in counted.items():
            is_one = [~pl.col(several[other]) for other in within]
            whole.setdefault(column, []).append(pl.all_horizontal(pl.col(name) == 0, *is_one))
        return pl.coalesce(
            pl.when(pl.col(several[column]) & ~pl.any_horizontal(safe)).then(
                pl.lit(f"samples lie in several values of {by[column]!r}")
            )
            for column, safe in whole.items()
        )

    return groups.select(*keys, *(reason(counted).alias(name) for name, counted in counts.items()))
