"""Sources: where partials come from. Rows at once, rows in passes; a state is one too, in `state_rows`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing

import polars as pl

from polars_mlmetrics.data.expressions import same_expression
from polars_mlmetrics.data.frames import is_at_hand
from polars_mlmetrics.data.roles import Table
from polars_mlmetrics.engine.folds import BUCKET, CODE, fold, joined, together
from polars_mlmetrics.engine.formula_reader import FormulaReader
from polars_mlmetrics.engine.partials import Mergeable, Partial, PartialKind, PartialTable, has_many_cells
from polars_mlmetrics.engine.passes import Passes
from polars_mlmetrics.engine.ranking import code_of
from polars_mlmetrics.engine.ranking_by_id import NUMBER, split_by_id
from polars_mlmetrics.engine.split_samples import Counts
from polars_mlmetrics.formula.measure import Measure

IDS = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)
"""The types of ids that may be small whole numbers."""

TablesOf = Callable[[pl.LazyFrame], list[pl.LazyFrame]]

Merge = Callable[[list[pl.LazyFrame]], list[pl.LazyFrame]]
"""A function that merges the tables of several parts of the rows, each of them one under the other."""


class Source(ABC):
    """A source that answers a plan: rows, a state, parts. Unless it says otherwise, it answers every partial."""

    schema: pl.Schema
    """The columns that a metric can read, and the keys."""

    @abstractmethod
    def partials(self, partials: Sequence[Partial], by: list[str]) -> list[PartialTable]:
        """The table of each partial, all parts merged."""

    def group_keys(self, measure: Measure, by: list[str]) -> list[str]:
        """The columns that tell the groups of a measure from one another while its units are folded."""
        return by

    def can_answer(self, reader: FormulaReader, by: Sequence[str], roles: Table) -> bool:
        """Whether it has what a formula needs."""
        return True

    def check(self, reader: FormulaReader, by: Sequence[str], roles: Table) -> Counts:
        """Refuse what it cannot answer. What must be counted for samples to be whole in every group."""
        return {}

    def check_target(self, name: str, column: str) -> None:  # noqa: B027  (most tell all targets apart)
        """Refuse targets that it does not tell apart."""

    def units(self, partials: Sequence[Partial], by: list[str]) -> pl.LazyFrame:
        """One row a unit, with the values of all partials."""
        return units_of(partials, [table for table, _ in self.partials(partials, by)])

    def joined(self, tables: Sequence[pl.LazyFrame], coded: Sequence[pl.LazyFrame], by: list[str]) -> pl.LazyFrame:
        """Tables of groups side by side; those that are `coded` have one number for the by columns."""
        return joined(tables, by)

    def with_reasons(self, table: pl.LazyFrame, by: list[str], counts: Mapping[str, Counts]) -> pl.LazyFrame:
        """A table of groups, and why samples are not whole in one."""
        return table

    def n_split(self, sample: Sequence[str]) -> pl.Expr | None:
        """How many samples of a group lie in other slices too; None where that is not known."""
        return None

    def held(self, table: pl.LazyFrame) -> pl.LazyFrame:
        """A table of this source that is read more than once, beside its rows."""
        return table.cache()


class OfSource(Source):
    """A source that wraps another one, and answers the same partials."""

    source: Source

    def _keys(self, by: Sequence[str]) -> Sequence[str]:
        """The keys of the source for those of a plan."""
        return by

    def can_answer(self, reader: FormulaReader, by: Sequence[str], roles: Table) -> bool:
        return self.source.can_answer(reader, self._keys(by), roles)

    def check(self, reader: FormulaReader, by: Sequence[str], roles: Table) -> Counts:
        return self.source.check(reader, self._keys(by), roles)

    def check_target(self, name: str, column: str) -> None:
        self.source.check_target(name, column)


class MergedSource(OfSource):
    """A source of groups that are merged into coarser ones: `keys` tell the finer groups from one another."""

    def __init__(self, source: Source, keys: Sequence[str]) -> None:
        self.source = source
        self.schema = source.schema
        self._finer = list(keys)

    def partials(self, partials: Sequence[Partial], by: list[str]) -> list[PartialTable]:
        finer = [partial.at(list(dict.fromkeys([*by, *self._finer]))) for partial in partials]
        tables = [self.source.partials([each], each.by)[0][0] for each in finer]
        return [(partial.merged(table), by) for partial, table in zip(partials, tables, strict=True)]


class TableSource(Source):
    """A table of statistics as a source. Rows of finer groups are merged; a statistic that is not there is 0.

    `keys` tell the rows from one another, where that is known: by these nothing is merged.
    """

    def __init__(self, table: pl.LazyFrame, schema: pl.Schema, keys: Sequence[str] = ()) -> None:
        self.schema = schema
        self._table = table
        self._keys = list(keys)

    def partials(self, partials: Sequence[Partial], by: list[str]) -> list[PartialTable]:
        return [(self._at_keys_of(partial), by) for partial in partials]

    def _at_keys_of(self, partial: Partial) -> pl.LazyFrame:
        names, there = list(partial.fold.statistics), self._table.collect_schema()
        nothing = [pl.lit(0).alias(name) for name in names if name not in there]
        table = self._table.with_columns(nothing).select(*partial.fold.keys, *names)
        return table if partial.fold.keys == self._keys else partial.merged(table)


class FoldedTables(Source):
    """A table of statistics for each partial of a plan, folded at the keys of that plan."""

    def __init__(self, tables: Mapping[PartialKind, pl.DataFrame], by: Sequence[str], schema: pl.Schema) -> None:
        self.tables = tables
        self.by = list(by)
        self.schema = pl.Schema({**schema, **dict.fromkeys(by, pl.Int64())})

    def partials(self, partials: Sequence[Partial], by: list[str]) -> list[PartialTable]:
        return [(self.tables[PartialKind.of(each, self.by)].lazy(), by) for each in partials]


MANY_ROWS = 300_000
"""Of fewer rows, a table of samples takes less time than the longer plan of samples with small ids."""


class LogSource(Source):
    """The rows of a log, all at once.

    `added` are columns of theirs that are worked out of others. `n_rows` is None where it is not known.
    """

    def __init__(
        self,
        rows: pl.LazyFrame,
        label: str,
        schema: pl.Schema,
        added: Sequence[pl.Expr] = (),
        n_rows: int | None = None,
    ) -> None:
        self.rows = rows
        self.n_rows = n_rows
        self.schema = schema
        self.label = label
        self.added = {column.meta.output_name(): column for column in added}

    def changed(self, change: Callable[[pl.LazyFrame], pl.LazyFrame]) -> LogSource:
        """The log with its rows changed."""
        return LogSource(change(self.rows), self.label, self.schema, [*self.added.values()])

    def cached(self) -> LogSource:
        """The log, its rows worked out once however often they are read."""
        return LogSource(self.rows.cache(), self.label, self.schema, [*self.added.values()])

    def group_keys(self, measure: Measure, by: list[str]) -> list[str]:
        # One number stands for several by columns: a key less to match when millions of samples are folded.
        is_coded = measure.grain == "sample" and measure.per is None and len(by) > 1 and self.has_plain_keys(by)
        return [CODE] if is_coded else by

    def partials(self, partials: Sequence[Mergeable], by: list[str]) -> list[PartialTable]:
        shared = self._sharing(partials, by)
        if len(shared) < 2:
            return [self._partial(each, by) for each in partials]
        finest = together([each.first_fold for each in shared])
        # What they share is worked out once, and read by each.
        rows, folded = finest.with_features(self.rows), finest.of_rows(self.rows).cache()
        given = {id(each): (each.of_first(folded, rows), by) for each in shared}
        return [given.get(id(each)) or self._partial(each, by) for each in partials]

    def units(self, partials: Sequence[Partial], by: list[str]) -> pl.LazyFrame:
        return units_of(partials, [each.units(self.rows) for each in partials])

    def joined(self, tables: Sequence[pl.LazyFrame], coded: Sequence[pl.LazyFrame], by: list[str]) -> pl.LazyFrame:
        if not coded:
            return joined(tables, by)
        names = joined(tables, by) if tables else self.rows.select(by).unique()
        return named(names, coded, by)

    def of_rows(self, partial: Mergeable, rows: pl.LazyFrame, by: list[str]) -> pl.LazyFrame:
        """The table of a partial for some of the rows."""
        if not isinstance(partial, Partial) or partial.by == by:
            return partial.of_rows(rows)
        # What follows from a sample, as its bucket does, is worked out for each sample and not for each row.
        following_keys = following(by, partial.keys, self.added)
        units = partial.units(
            rows.with_columns(code_of_groups([key for key in by if key not in following_keys], by).alias(CODE))
        )
        if following_keys:
            units = units.with_columns(self.added[key] for key in following_keys)
            units = units.with_columns(pl.col(CODE) + code_of_groups(following_keys, by))
        return partial.values.sums(partial.values.of_units(units), partial.by)

    def gathered(
        self, bytes_a_row: int, sample: Sequence[str], tables_of: TablesOf, merge: Merge | None = None
    ) -> list[pl.LazyFrame]:
        """Tables of the rows, for which a row takes so much: one under the other, if these are read in parts.

        With `merge` those of some parts may be one already.
        """
        return tables_of(self.rows)

    def _partial(self, partial: Mergeable, by: list[str]) -> PartialTable:
        if isinstance(partial, Partial) and self._has_small_ids(partial, by):
            return self._sums_of_small_ids(partial, by), by
        return self.of_rows(partial, self.rows, by), partial.by

    def _sharing(self, partials: Sequence[Mergeable], by: list[str]) -> list[Partial]:
        """A group, its labels and its few runs (bins): all can be merged from one fold of the rows."""
        # Samples, whose column may be that of the labels too, are merged from no fold of rows.
        able = [each for each in partials if isinstance(each, Partial) and each.grain != "sample"]
        able = [each for each in able if each.keys in ([], [self.label])]
        able = [each for each in able if each.windows <= {"sample"}]
        # With buckets one fold at all keys would be long.
        run = None if BUCKET in by else next((each.run for each in able if each.has_few_runs), None)
        return [each for each in able if each.run is None or (run is not None and same_expression(each.run, run))]

    def has_plain_keys(self, by: list[str]) -> bool:
        """Whether equal values of the by columns have equal hashes: 0.0 and -0.0 are one group and have two."""
        types = [self.schema[key] for key in by]
        return all(t.is_integer() or t.is_temporal() or t in (pl.String, pl.Boolean) for t in types)

    # -- samples with small ids --------------------------------------------------------------------------------

    def _has_small_ids(self, partial: Partial, by: list[str]) -> bool:
        """Whether samples may be ranked without being looked up. Some of the rows are read once more then."""
        if partial.grain != "sample" or partial.counting is None or (self.n_rows or MANY_ROWS) < MANY_ROWS:
            return False
        types = [self.schema[key] for key in partial.keys]
        return len(types) == 1 and types[0] in IDS and self.has_plain_keys(by) and self._are_at_hand()

    def _are_at_hand(self) -> bool:
        return is_at_hand(self.rows)

    def _sums_of_small_ids(self, partial: Partial, by: list[str]) -> pl.LazyFrame:
        """Sums over samples with small ids, and over the others."""
        split = split_by_id(self.rows, self.rows.select(by).unique() if by else None, *partial.keys)
        small = split.numbers.join(partial.sums_by_code(self.rows, split.code), on=NUMBER, how="left").drop(NUMBER)
        others = self.of_rows(partial, split.others, by)
        if partial.by != by:
            others = named(split.groups, [others], by)
        small = small.with_columns(pl.exclude(by).fill_null(0))
        both = pl.concat([small, others.select(small.collect_schema().names())])
        return fold(both, by, [pl.exclude(by).sum()])


class CachedSource(LogSource):
    """Rows that a plan holds, so that they can be read once more."""

    def _are_at_hand(self) -> bool:
        return True


class PassesSource(LogSource):
    """The rows of a log, part by part where all at once would take too much memory."""

    def __init__(self, passes: Passes, label: str, schema: pl.Schema, added: Sequence[pl.Expr] = ()) -> None:
        super().__init__(passes.rows, label, schema, added)
        self._passes = passes

    def changed(self, change: Callable[[pl.LazyFrame], pl.LazyFrame]) -> LogSource:
        return PassesSource(self._passes.changed(change), self.label, self.schema, [*self.added.values()])

    def cached(self) -> LogSource:
        # All rows would be cached, and not those of a part.
        return self

    def partials(self, partials: Sequence[Mergeable], by: list[str]) -> list[PartialTable]:
        apart, at_once = ([each for each in partials if self._is_apart(each) is whole] for whole in (True, False))
        merged = zip(apart, self._merged(apart, by), strict=True)
        given = {id(each): (table, each.by) for each, table in merged}
        given |= {id(each): found for each, found in zip(at_once, super().partials(at_once, by), strict=True)}
        return [given[id(each)] for each in partials]

    def _merged(self, partials: Sequence[Mergeable], by: list[str]) -> list[pl.LazyFrame]:
        """The merged tables of the parts of the rows."""
        if not partials:
            return []

        def merge(tables: list[pl.LazyFrame]) -> list[pl.LazyFrame]:
            return [each.merged(table) for each, table in zip(partials, tables, strict=True)]

        def tables_of(rows: pl.LazyFrame) -> list[pl.LazyFrame]:
            return [self.of_rows(each, rows, by) for each in partials]

        return merge(self._of_parts(bytes_of(partials), tables_of, merge))

    def _is_apart(self, partial: Mergeable) -> bool:
        if isinstance(partial, Partial) and partial.grain == "sample":
            return partial.whole_samples and self._holds_whole(partial.keys)
        return partial.whole_samples or (isinstance(partial, Partial) and has_many_cells(partial))

    def _holds_whole(self, sample: Sequence[str]) -> bool:
        """Whether a part has all rows of such a sample. A cluster of samples may lie in several parts."""
        return list(sample) == list(self._passes.sample)

    def gathered(
        self, bytes_a_row: int, sample: Sequence[str], tables_of: TablesOf, merge: Merge | None = None
    ) -> list[pl.LazyFrame]:
        if not self._holds_whole(sample):
            return tables_of(self.rows)
        return self._of_parts(bytes_a_row, tables_of, merge)

    def _of_parts(self, bytes_a_row: int, tables_of: TablesOf, merge: Merge | None = None) -> list[pl.LazyFrame]:
        found: list[list[pl.DataFrame]] = []
        most = MANY_ROWS
        # To be closed where a pass fails: a bar would stay on the screen.
        with closing(self._passes.parts(bytes_a_row)) as parts:
            for rows in parts:
                # What is more than a scan runs once for all tables of a part.
                found.append(pl.collect_all(tables_of(rows if is_at_hand(self.rows) else rows.cache())))
                if merge is not None and _n_rows(found) > most:
                    found = [_in_order_of(found[0], pl.collect_all(merge(_together(found))))]
                    most = MANY_ROWS + 2 * _n_rows(found)
        return _together(found)

    def units(self, partials: Sequence[Partial], by: list[str]) -> pl.LazyFrame:
        if partials[0].grain != "sample":
            return units_of(partials, [table for table, _ in self.partials(partials, by)])
        if not all(map(self._is_apart, partials)):
            return super().units(partials, by)
        [units] = self._of_parts(
            bytes_of(partials), lambda rows: [units_of(partials, [each.units(rows) for each in partials])]
        )
        return units

    def held(self, table: pl.LazyFrame) -> pl.LazyFrame:
        # Else it would be worked out anew for each part.
        return table.collect().lazy()

    def _has_small_ids(self, partial: Partial, by: list[str]) -> bool:
        # A pass, of few samples, was not made faster by it.
        return False


def _together(found: Sequence[Sequence[pl.DataFrame]]) -> list[pl.LazyFrame]:
    """The tables of several parts of the rows, one under the other."""
    return [pl.concat(tables).lazy() for tables in zip(*found, strict=True)]


def _in_order_of(first: Sequence[pl.DataFrame], tables: Sequence[pl.DataFrame]) -> list[pl.DataFrame]:
    return [table.select(alike.columns) for alike, table in zip(first, tables, strict=True)]


def _n_rows(found: Sequence[Sequence[pl.DataFrame]]) -> int:
    return sum(table.height for tables in found for table in tables)


def bytes_of(partials: Sequence[Mergeable]) -> int:
    """Bytes that a row takes, about, while all partials are folded."""
    return sum(each.bytes_a_row for each in partials)


def units_of(partials: Sequence[Partial], statistics: Sequence[pl.LazyFrame]) -> pl.LazyFrame:
    """One row a unit: the values of all partials, side by side, of units that have one."""
    values = [each.values.of_units(table) for each, table in zip(partials, statistics, strict=True)]
    present = (columns.present for each in partials for _, columns in each.values.measures)
    return joined(values, partials[0].unit_keys).filter(pl.any_horizontal(present))


def named(names: pl.LazyFrame, coded: Sequence[pl.LazyFrame], by: list[str]) -> pl.LazyFrame:
    """Tables of coded groups, beside the groups."""
    # Two groups of one code would be an error here, never a wrong number. The check leaves the streaming engine,
    # with a row a group.
    return joined([names.with_columns(code_of_groups(by, by).alias(CODE)), *coded], [CODE], validate="1:1").drop(CODE)


def following(columns: Sequence[str], known: Sequence[str], added: Mapping[str, pl.Expr]) -> list[str]:
    """The columns that follow from those that are known: they are worked out of these alone."""
    return [column for column in columns if column in added and {*known}.issuperset(added[column].meta.root_names())]


def code_of_groups(keys: Sequence[str], by: Sequence[str]) -> pl.Expr:
    """An even number for the values of some by columns: those of all are that of some and that of the others."""
    return code_of(keys, among=by) * 2
