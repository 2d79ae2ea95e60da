"""Slices by the values of a list column: a row counts once in the slice of each value of its list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from polars_mlmetrics.data.roles import Table
from polars_mlmetrics.engine.formula_reader import FormulaReader
from polars_mlmetrics.engine.partials import Partial, PartialTable
from polars_mlmetrics.engine.sources import LogSource, Source
from polars_mlmetrics.engine.split_samples import Counts
from polars_mlmetrics.formula.measure import Measure


class ListSlices(Source):
    """A source whose groups by values of lists come from the rows of a log, once for each value.

    `lists` are the list columns, by the keys of their values. Any other groups come from the source.
    """

    def __init__(self, source: Source, rows: LogSource, lists: Mapping[str, str]) -> None:
        self.source = source
        self.schema = source.schema
        self._rows = rows
        self._lists = lists
        self._by_value: dict[tuple[str, ...], LogSource] = {}
        """The rows for each value of some lists, by the keys of these."""
        self._counts: dict[str, None] = {}
        """The columns in which the source counts samples that lie in several slices."""

    def _of(self, by: Sequence[str]) -> Source:
        """The source of groups by these keys."""
        keys = tuple(key for key in by if key in self._lists)
        if not keys:
            return self.source
        if keys not in self._by_value:
            lists = {key: self._lists[key] for key in keys}
            self._by_value[keys] = self._rows.changed(lambda rows: for_each_value(rows, lists))
        return self._by_value[keys]

    def partials(self, partials: Sequence[Partial], by: list[str]) -> list[PartialTable]:
        return self._of(by).partials(partials, by)

    def group_keys(self, measure: Measure, by: list[str]) -> list[str]:
        return self._of(by).group_keys(measure, by)

    def can_answer(self, reader: FormulaReader, by: Sequence[str], roles: Table) -> bool:
        return self._of(by).can_answer(reader, by, roles)

    def check(self, reader: FormulaReader, by: Sequence[str], roles: Table) -> Counts:
        return self._of(by).check(reader, by, roles)

    def units(self, partials: Sequence[Partial], by: list[str]) -> pl.LazyFrame:
        return self._of(by).units(partials, by)

    def joined(self, tables: Sequence[pl.LazyFrame], coded: Sequence[pl.LazyFrame], by: list[str]) -> pl.LazyFrame:
        source = self._of(by)
        table = source.joined(tables, coded, by)
        if source is self.source:
            return table
        return table.with_columns(pl.lit(None, dtype=pl.Int64).alias(count) for count in self._counts)

    def n_split(self, sample: Sequence[str]) -> pl.Expr | None:
        count = self.source.n_split(sample)
        if count is not None:
            self._counts[count.meta.output_name()] = None
        return count


def for_each_value(rows: pl.LazyFrame, lists: Mapping[str, str]) -> pl.LazyFrame:
    """Rows once for each value of their lists; a list without values, and none, is null."""
    for key, column in lists.items():
        value = pl.col(column).list.unique().alias(key)
        rows = rows.with_columns(value).explode(key, empty_as_null=True, keep_nulls=True)
    return rows
