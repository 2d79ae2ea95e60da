"""The joins behind `with_truths`: lists of returned labels, and a table of truths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import polars as pl
import polars.selectors as cs

from polars_mlmetrics.adapters.columns import common_type
from polars_mlmetrics.data.expressions import all_of
from polars_mlmetrics.data.frames import Names, column_names
from polars_mlmetrics.data.returned import FILLED, LISTED, MISSED, RETURNED, Listed
from polars_mlmetrics.data.roles import Table
from polars_mlmetrics.errors import INTERNAL, ColumnError, ParameterError

SAID, MATCHED, N, KNOWN = (f"{INTERNAL}{name}" for name in ("said", "matched", "n", "known"))


class ListColumns:
    """The names of the columns: the keys, those that are read or written, those of the sample."""

    def __init__(self, by: Names, of_sample: Names, roles: Mapping[str, Any]) -> None:
        """The columns that are named; a name that cannot be one is an error."""
        table = Table.of(roles)
        names = {}
        for role, column in table.values().items():
            if not column.meta.is_column():
                raise ParameterError(
                    f"{role} is {column}: with_truths takes the name of a column. Add it as a column first."
                )
            names[role] = column.meta.output_name()
        self.sample, self.label = list(table.sample), table.label
        self.score, self.truth, self.weight = names["score"], names["truth"], names.get("weight")
        self.by, self.of_sample = column_names("by", by), column_names("of_sample", of_sample)
        named = {
            "sample": self.sample, "label": [self.label], "score": [self.score], "truth": [self.truth],
            "by": self.by, "of_sample": self.of_sample,
        }  # fmt: skip
        _check_names(named)
        self.key = [*self.sample, self.label]
        """The key of a label of a sample."""
        self.of_list = [*self.by, *self.sample]
        """The key of a list."""
        self.of_row = [*self.by, *self.key]
        """The key of a row."""
        self.known = [*self.of_list, *self.of_sample]
        """The columns that describe each list."""


def _check_names(named: Mapping[str, Sequence[str]]) -> None:
    """Refuse a column that is two things at once."""
    taken: dict[str, str] = {}
    for what, names in named.items():
        for name in names:
            if name in taken:
                raise ParameterError(f"{what}: {name!r} is already in {taken[name]}.")
            taken[name] = what


class Join:
    """The tables, with their common columns in one type, and what is made of them."""

    def __init__(
        self, columns: ListColumns, given: Mapping[str, pl.LazyFrame], condition: pl.Expr | None, *, in_order: bool
    ) -> None:
        """The tables that are given, of which those that are read are joined."""
        tables = _in_common_types(_read(columns, given, condition))
        returned, truths = tables["returned"], tables["truths"]
        types, score_type = truths.collect_schema(), returned.collect_schema()[columns.score]
        self.columns = columns
        self.score_type = score_type if score_type.is_float() else pl.Float64()
        self.truth_type = pl.Boolean() if types[columns.truth] == pl.Null else types[columns.truth]
        self.matched = [name for name in columns.of_row if name in types]
        """The keys that the truths have."""
        self.of_truths = [name for name in returned.collect_schema() if name in types and name not in self.matched]
        """The other columns that the truths have."""
        self.returned = returned.with_columns(pl.col(columns.score).cast(self.score_type))
        truths = truths.cast({columns.truth: self.truth_type})
        self.said = _said(truths, columns, self.matched, in_order=in_order)
        """The truths: one row per label, however often it is named."""
        self.lists = _lists(columns, tables, condition, in_order=in_order)
        """The lists of known samples, with the columns of the sample; with `known`, whether their truths are there."""
        self.tells_known = condition is not None or "known" in tables
        """Whether the lists have a column that says if their truths have arrived."""
        self.left: Literal["left", "none"] = "left" if in_order else "none"
        """The order that a join keeps."""
        self.both: Literal["left_right", "none"] = "left_right" if in_order else "none"

    def rows(self) -> pl.LazyFrame:
        """All that was returned, and what should have been."""
        columns, is_known = self.columns, are_known(self.columns.key)
        truths = self.said.select(*self.matched, pl.col(columns.truth).alias(SAID), pl.lit(True).alias(MATCHED))
        truth = pl.when(MATCHED).then(SAID).otherwise(pl.when(is_known).then(self._zero()))
        # Nulls are equal in these joins for the sake of by, where null is a value like others.
        found = self.returned.join(truths, on=self.matched, how="left", nulls_equal=True, maintain_order=self.left)
        if self.tells_known:
            in_time = self.lists.select(*columns.of_list, KNOWN)
            found = found.join(in_time, on=columns.of_list, how="left", nulls_equal=True, maintain_order=self.left)
        labels = self.returned.filter(is_known).select(columns.of_row)
        shared = [name for name in columns.of_list if name in self.matched]
        # The labels of the truths, once for each list of their sample.
        named = self.said.join(self.lists, on=shared, how="inner", nulls_equal=True, maintain_order=self.both)
        missed = named.join(labels, on=columns.of_row, how="anti", nulls_equal=True, maintain_order=self.left)
        parts = [
            found.with_columns(self._once_known(truth), self._listed(RETURNED)).drop(SAID, MATCHED),
            missed.with_columns(self._once_known(pl.col(columns.truth)), self._not_scored(), self._listed(MISSED)),
        ]
        first = [*columns.of_row, columns.score, columns.truth]
        rows = pl.concat(parts, how="diagonal").drop(KNOWN, strict=False)
        return rows.select(*first, cs.exclude(*first, LISTED), LISTED)

    def lengths(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """The lists, with their numbers of rows."""
        of_list = self.columns.of_list
        lengths = rows.group_by(of_list).agg(pl.len().cast(pl.Int64).alias(N))
        lists = self.lists.join(lengths, on=of_list, how="left", nulls_equal=True, maintain_order=self.left)
        return lists.with_columns(pl.col(N).fill_null(0))

    def filled(self, rows: pl.LazyFrame, n_labels: int) -> pl.LazyFrame:
        """The rows, and the negatives that make each list one of `n_labels` rows."""
        lacking = (n_labels - pl.col(N)).cast(pl.UInt32)  # a list that is too long raises here
        scores, truth = self._not_scored().repeat_by(lacking), self._once_known(self._zero())
        filled_in = self._listed(FILLED, is_filled=True)
        negatives = self.lengths(rows).select(*self.columns.known, scores, truth, filled_in)
        filling = negatives.explode(self.columns.score, empty_as_null=False)
        return pl.concat([rows.cast({LISTED: self._type(is_filled=True)}), filling], how="diagonal")

    def _once_known(self, truth: pl.Expr) -> pl.Expr:
        """A truth; null if the truths of its list have not arrived."""
        return (pl.when(KNOWN).then(truth) if self.tells_known else truth).alias(self.columns.truth)

    def _zero(self) -> pl.Expr:
        return pl.lit(False) if self.truth_type == pl.Boolean else pl.lit(0, dtype=self.truth_type)

    def _not_scored(self) -> pl.Expr:
        return pl.lit(float("-inf"), dtype=self.score_type).alias(self.columns.score)

    def _listed(self, where: str, *, is_filled: bool = False) -> pl.Expr:
        return pl.lit(where, dtype=self._type(is_filled=is_filled)).alias(LISTED)

    def _type(self, *, is_filled: bool) -> pl.Enum:
        every_row = {*self.columns.known, self.columns.score, self.columns.truth}
        return Listed(every_row, {self.columns.label, *self.of_truths}, is_filled).dtype


def _read(
    columns: ListColumns, given: Mapping[str, pl.LazyFrame], condition: pl.Expr | None
) -> dict[str, pl.LazyFrame]:
    """The columns that are read from each table."""
    names = {table: frame.collect_schema().names() for table, frame in given.items()}
    of_list = {columns.score, *columns.of_sample}
    roots = [] if condition is None else condition.meta.root_names()
    read = {
        "returned": names["returned"],
        "truths": [name for name in names["truths"] if name == columns.truth or name in {*names["returned"]} - of_list],
        "asked": list(dict.fromkeys([*columns.known, *roots])),
        "known": [name for name in columns.of_list if name in names.get("known", ())],
    }
    tables = {table: frame.select(cs.by_name(read[table])) for table, frame in given.items()}
    if columns.truth not in names["truths"]:
        tables["truths"] = tables["truths"].with_columns(pl.lit(True).alias(columns.truth))
    return tables


def _said(truths: pl.LazyFrame, columns: ListColumns, matched: Sequence[str], *, in_order: bool) -> pl.LazyFrame:
    values = cs.exclude(matched).drop_nulls()
    # What has two values has none.
    once = truths.group_by(matched, maintain_order=in_order).agg(pl.when(values.n_unique() == 1).then(values.first()))
    return once.with_columns(pl.when(are_known(columns.key)).then(columns.truth).alias(columns.truth))


def _lists(
    columns: ListColumns, tables: Mapping[str, pl.LazyFrame], condition: pl.Expr | None, *, in_order: bool
) -> pl.LazyFrame:
    """The lists of known samples: the values on which all their rows agree, and whether their truths have arrived."""
    is_known = [] if condition is None else [condition.fill_null(False).alias(KNOWN)]
    rows = [tables[name].select(*columns.known, *is_known) for name in ("returned", "asked") if name in tables]
    known = pl.concat(rows).filter(are_known(columns.sample))
    agreed = [pl.when(pl.col(name).n_unique() == 1).then(pl.col(name).first()) for name in columns.of_sample]
    lists = known.group_by(columns.of_list, maintain_order=in_order).agg(
        *agreed, *([pl.col(KNOWN).all()] if is_known else [])
    )
    if "known" not in tables:
        return lists
    on = tables["known"].collect_schema().names()
    in_time = tables["known"].unique().with_columns(pl.lit(True).alias(KNOWN))
    return lists.join(in_time, on=on, how="left", nulls_equal=True, maintain_order="left" if in_order else "none")


def are_known(columns: Sequence[str]) -> pl.Expr:
    """The rows that have all these columns."""
    return all_of([pl.col(column).is_not_null() for column in columns])


def _in_common_types(tables: Mapping[str, pl.LazyFrame]) -> dict[str, pl.LazyFrame]:
    """The tables, with a column that several have in one type."""
    types: dict[str, tuple[str, pl.DataType]] = {}
    for table, frame in tables.items():
        for name, dtype in frame.collect_schema().items():
            other, known = types.get(name, (table, dtype))
            common = common_type(known, dtype)
            if common is None:
                raise ColumnError(f"column {name!r} is {known} in {other} and {dtype} in {table}: cast one of them.")
            types[name] = table, common
    return {
        table: frame.with_columns(cs.by_name(name).cast(types[name][1]) for name in frame.collect_schema())
        for table, frame in tables.items()
    }
