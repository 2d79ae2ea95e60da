"""Truths that come in a table of their own, joined to the lists of labels that were returned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, overload

import polars as pl
import polars.selectors as cs

from polars_mlmetrics.data.beside import is_text, schema_of
from polars_mlmetrics.data.roles import all_of, check_columns, check_free, check_role, is_pattern
from polars_mlmetrics.errors import INTERNAL, ColumnError, NameCollisionError, ParameterError

LISTED = "listed"
"""The column that tells the rows of `returned` from those that are added."""
LISTED_TYPE = pl.Enum(["returned", "not returned"])
"""Its type where negatives are missing."""
FILLED_TYPE = pl.Enum([*LISTED_TYPE.categories, "filled in"])
"""Its type where there are negatives without a label."""

SAID, MATCHED, N = (f"{INTERNAL}{name}" for name in ("said", "matched", "n"))


@overload
def with_truths(
    returned: pl.DataFrame,
    truths: pl.DataFrame,
    on: Sequence[str] = ...,
    *,
    by: str | Sequence[str] | None = ...,
    n_labels: int | None = ...,
) -> pl.DataFrame: ...


@overload
def with_truths(
    returned: pl.LazyFrame,
    truths: pl.DataFrame | pl.LazyFrame,
    on: Sequence[str] = ...,
    *,
    by: str | Sequence[str] | None = ...,
    n_labels: int | None = ...,
) -> pl.LazyFrame: ...


@overload
def with_truths(
    returned: pl.DataFrame,
    truths: pl.LazyFrame,
    on: Sequence[str] = ...,
    *,
    by: str | Sequence[str] | None = ...,
    n_labels: int | None = ...,
) -> pl.LazyFrame: ...


def with_truths(
    returned: pl.DataFrame | pl.LazyFrame,
    truths: pl.DataFrame | pl.LazyFrame,
    on: Sequence[str] = ("sample", "label"),
    *,
    by: str | Sequence[str] | None = None,
    n_labels: int | None = None,
) -> pl.DataFrame | pl.LazyFrame:
    """The returned labels with their truths, and a row for every true label that was not returned.

    The result holds all rows of `returned`; their truth is False (or 0) where `truths` does not name the label. Then
    come the labels of `truths` that were not returned, known negatives among them. Their score is -inf and their other
    columns are null, except those that `truths` has too. A null weight leaves a row out: let `truths` have the
    weights, or join them afterwards. A sample without any returned row is there too, with null `by` columns. But
    a model that returned nothing for a sample has no list there if another model has one: nothing tells of it.

    A null sample or label is unknown and matches nothing: such a row, of either table, has a null truth.

    The column `listed` says where a row is from. By its type `evaluate` and `state` know what is missing: without
    `n_labels` the negatives that were not returned, with it the labels of these. They refuse a metric that needs them.

    With two DataFrames the rows keep the order of `returned`, then of `truths`. A LazyFrame promises no order.

    Parameters
    ----------
    returned
        A row for each label that was returned, with its `score`. Of a DataFrame it is checked that no list has
        a label twice. In a LazyFrame both rows get the truth.
    truths
        A row for each true label. Where it has a column `truth`, that is the truth: a grade, or 0 for a known
        negative. Equal rows count once; where their truths contradict each other, the truth is null.
    on
        The columns of the sample, then the one of the label: in both tables.
    by
        The columns of `returned` that tell apart several lists of one sample: model, fold. Each list gets the true
        labels of its sample. Where `truths` has such a column too, its rows are for the lists of equal value alone,
        and null equals null.
    n_labels
        How many labels each sample could have been given. Each list of a known sample is then filled up to as many
        rows, with negatives that have no label. A list that has more is an error; of a LazyFrame it is Polars' own,
        when it is collected.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> returned = pl.DataFrame({"sample": [1, 1, 2], "label": ["a", "b", "a"], "score": [0.9, 0.8, 0.7]})
    >>> truths = pl.DataFrame({"sample": [1, 1, 3], "label": ["b", "c", "a"]})
    >>> mlm.with_truths(returned, truths)
    shape: (5, 5)
    ┌────────┬───────┬───────┬───────┬──────────────┐
    │ sample ┆ label ┆ score ┆ truth ┆ listed       │
    │ ---    ┆ ---   ┆ ---   ┆ ---   ┆ ---          │
    │ i64    ┆ str   ┆ f64   ┆ bool  ┆ enum         │
    ╞════════╪═══════╪═══════╪═══════╪══════════════╡
    │ 1      ┆ a     ┆ 0.9   ┆ false ┆ returned     │
    │ 1      ┆ b     ┆ 0.8   ┆ true  ┆ returned     │
    │ 2      ┆ a     ┆ 0.7   ┆ false ┆ returned     │
    │ 1      ┆ c     ┆ -inf  ┆ true  ┆ not returned │
    │ 3      ┆ a     ┆ -inf  ┆ true  ┆ not returned │
    └────────┴───────┴───────┴───────┴──────────────┘

    Where each sample could have been given three labels:

    >>> mlm.with_truths(returned, truths, n_labels=3).tail(5)
    shape: (5, 5)
    ┌────────┬───────┬───────┬───────┬──────────────┐
    │ sample ┆ label ┆ score ┆ truth ┆ listed       │
    │ ---    ┆ ---   ┆ ---   ┆ ---   ┆ ---          │
    │ i64    ┆ str   ┆ f64   ┆ bool  ┆ enum         │
    ╞════════╪═══════╪═══════╪═══════╪══════════════╡
    │ 3      ┆ a     ┆ -inf  ┆ true  ┆ not returned │
    │ 2      ┆ null  ┆ -inf  ┆ false ┆ filled in    │
    │ 2      ┆ null  ┆ -inf  ┆ false ┆ filled in    │
    │ 3      ┆ null  ┆ -inf  ┆ false ┆ filled in    │
    │ 3      ┆ null  ┆ -inf  ┆ false ┆ filled in    │
    └────────┴───────┴───────┴───────┴──────────────┘
    """
    columns, said = (schema_of(frame, "with_truths") for frame in (returned, truths))
    keys = _Keys.of(on, by)
    if n_labels is not None and (not isinstance(n_labels, int) or isinstance(n_labels, bool) or n_labels < 1):
        raise ParameterError(f"n_labels is a number of 1 or more, not {n_labels!r}.")
    both = isinstance(returned, pl.DataFrame) and isinstance(truths, pl.DataFrame)
    _check_columns(keys, columns, said)
    join = _Join.of(keys, returned.lazy(), truths.lazy(), in_order=both)
    if isinstance(returned, pl.DataFrame):
        _check_once(returned, keys)
    rows = join.rows()
    if n_labels is None:
        return rows.collect() if both else rows
    if not both:
        return join.filled(rows, join.lists(rows), n_labels)
    table = rows.collect()
    lists = join.lists(table.lazy()).collect()
    _check_lengths(lists, keys, n_labels)
    return join.filled(table.lazy(), lists.lazy(), n_labels).collect()


@dataclass(frozen=True)
class _Keys:
    """Which columns tell a sample, a label and a list from others."""

    sample: list[str]
    label: str
    by: list[str]

    @classmethod
    def of(cls, on: Any, by: Any) -> _Keys:
        *sample, label = _names("on", on)
        if not sample:
            raise ParameterError(f"on names the columns of the sample, then the one of the label, and is {on!r}.")
        lists = [] if by is None else _names("by", [by] if isinstance(by, str) else by)
        for name in lists:
            if name in (*sample, label):
                raise ParameterError(f"by: {name!r} is in on already.")
        return cls(sample, label, lists)

    @property
    def on(self) -> list[str]:
        return [*self.sample, self.label]

    @property
    def of_list(self) -> list[str]:
        return [*self.by, *self.sample]

    @property
    def of_row(self) -> list[str]:
        return [*self.by, *self.on]


def _names(what: str, given: Any) -> list[str]:
    if isinstance(given, str) or not isinstance(given, Sequence) or (what == "on" and not given):
        raise ParameterError(f"{what} takes a list of column names, not {given!r}.")
    for place, name in enumerate(given):
        if not isinstance(name, str) or is_pattern(name):
            raise ParameterError(f"{what} takes column names, and {name!r} is none.")
        if name == "score":
            raise ParameterError(f"{what}: 'score' is the score of a label, and tells nothing apart.")
        if name in given[:place]:
            raise ParameterError(f"{what} names {name!r} twice.")
    return list(given)


@dataclass(frozen=True)
class _Join:
    """Both tables, with their common columns in one type, and what is made of them."""

    keys: _Keys
    returned: pl.LazyFrame
    truths: pl.LazyFrame
    matched: list[str]
    """The keys that both tables have."""
    score_type: pl.DataType
    zero: pl.Expr
    in_order: bool

    @classmethod
    def of(cls, keys: _Keys, returned: pl.LazyFrame, truths: pl.LazyFrame, *, in_order: bool) -> _Join:
        columns, said = returned.collect_schema(), truths.collect_schema()
        common = [name for name in columns if name in said and name != "score"]
        types = {name: _common_type(name, columns[name], said[name]) for name in common}
        score_type = columns["score"] if columns["score"].is_float() else pl.Float64()
        truth_type = said.get("truth", pl.Boolean())
        truth_type = pl.Boolean() if truth_type == pl.Null else truth_type
        if "truth" not in said:
            truths = truths.with_columns(truth=True)
        return cls(
            keys=keys,
            returned=returned.with_columns(_casts({**types, "score": score_type})),
            truths=truths.select(_casts({**types, "truth": truth_type})),
            matched=[name for name in keys.of_row if name in said],
            score_type=score_type,
            zero=pl.lit(False) if truth_type == pl.Boolean else pl.lit(0, dtype=truth_type),
            in_order=in_order,
        )

    @property
    def left(self) -> Literal["left", "none"]:
        """The order that a join keeps."""
        return "left" if self.in_order else "none"

    def rows(self) -> pl.LazyFrame:
        """All that was returned, and what should have been."""
        keys, is_known, said = self.keys, _are_known(self.keys.on), self._said()
        truths = said.select(*self.matched, pl.col("truth").alias(SAID), pl.lit(True).alias(MATCHED))
        truth = pl.when(MATCHED).then(SAID).otherwise(pl.when(is_known).then(self.zero)).alias("truth")
        # Nulls are equal in these joins for the sake of by, where null is a value like others.
        found = self.returned.join(truths, on=self.matched, how="left", nulls_equal=True, maintain_order=self.left)
        labels = self.returned.filter(is_known).select(keys.of_row)
        wanted = self._of_lists(said)
        missed = wanted.join(labels, on=keys.of_row, how="anti", nulls_equal=True, maintain_order=self.left)
        parts = [
            found.with_columns(truth, _listed("returned", LISTED_TYPE)).drop(SAID, MATCHED),
            missed.with_columns(self._not_scored(), _listed("not returned", LISTED_TYPE)),
        ]
        first = [*keys.of_row, "score", "truth"]
        return pl.concat(parts, how="diagonal").select(*first, cs.exclude(*first, LISTED), LISTED)

    def _said(self) -> pl.LazyFrame:
        """What the truths say of each label: one row for it, however often it is named."""
        values = cs.exclude(self.matched).drop_nulls()
        # What has two values has none.
        once = self.truths.group_by(self.matched, maintain_order=self.in_order).agg(
            pl.when(values.n_unique() == 1).then(values.first())
        )
        return once.with_columns(pl.when(_are_known(self.keys.on)).then("truth").alias("truth"))

    def _of_lists(self, said: pl.LazyFrame) -> pl.LazyFrame:
        """The labels of the truths, once for each list of their sample."""
        keys = self.keys
        if set(keys.by) <= set(self.matched):
            return said
        known = self.returned.select(keys.of_list).filter(_are_known(keys.sample))
        lists = known.unique(maintain_order=self.in_order)
        shared = [name for name in keys.of_list if name in self.matched]
        order: Literal["left_right", "none"] = "left_right" if self.in_order else "none"
        return said.join(lists, on=shared, how="left", nulls_equal=True, maintain_order=order)

    def lists(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """The lists of known samples, with their numbers of rows."""
        known = rows.filter(_are_known(self.keys.sample))
        groups = known.group_by(self.keys.of_list, maintain_order=self.in_order)
        return groups.agg(pl.len().cast(pl.Int64).alias(N))

    def filled(self, rows: pl.LazyFrame, lists: pl.LazyFrame, n_labels: int) -> pl.LazyFrame:
        """The rows, and the negatives that make each list one of `n_labels` rows."""
        lacking = (n_labels - pl.col(N)).cast(pl.UInt32)  # a list that is too long raises here
        scores = self._not_scored().repeat_by(lacking)
        filled_in = _listed("filled in", FILLED_TYPE)
        negatives = lists.select(*self.keys.of_list, scores, self.zero.alias("truth"), filled_in)
        filling = negatives.explode("score", empty_as_null=False)
        return pl.concat([rows.cast({LISTED: FILLED_TYPE}), filling], how="diagonal")

    def _not_scored(self) -> pl.Expr:
        return pl.lit(float("-inf"), dtype=self.score_type).alias("score")


def _check_columns(keys: _Keys, columns: pl.Schema, said: pl.Schema) -> None:
    check_free([*columns, *said])
    check_columns([*keys.of_row, "score"], columns, of="in returned")
    check_columns(keys.on, said, of="in truths")
    for name in keys.of_row:
        if columns[name].is_nested():
            raise ColumnError(f"column {name!r} is {columns[name]}: a key must be a plain value.")
    for name in ("truth", LISTED):
        if name in columns:
            raise NameCollisionError(f"returned has a column {name!r}, which with_truths writes: rename or drop it.")
    check_role("score", pl.col("score"), columns, any_type=False)
    if "truth" in said:
        check_role("truth", pl.col("truth"), said, any_type=False)


def _listed(where: str, dtype: pl.Enum) -> pl.Expr:
    return pl.lit(where, dtype=dtype).alias(LISTED)


def _casts(types: Mapping[str, pl.DataType]) -> list[pl.Expr]:
    return [cs.by_name(name).cast(dtype) for name, dtype in types.items()]


def _are_known(columns: Sequence[str]) -> pl.Expr:
    return all_of([pl.col(column).is_not_null() for column in columns])


def _common_type(name: str, one: pl.DataType, other: pl.DataType) -> pl.DataType:
    """The type that a column of both tables gets."""
    if one == other or other == pl.Null:
        return one
    if one == pl.Null:
        return other
    if is_text(one) and is_text(other):
        return pl.String()
    raise ColumnError(f"column {name!r} is {one} in returned and {other} in truths: cast one of them.")


def _check_once(returned: pl.DataFrame, keys: _Keys) -> None:
    """Refuse a label that one list has twice."""
    labels = returned.lazy().filter(_are_known(keys.on)).group_by(keys.of_row).agg(pl.len().alias(N))
    for row in labels.filter(pl.col(N) > 1).sort(keys.of_row).head(1).collect().iter_rows(named=True):
        raise ParameterError(
            f"returned has {row[N]} rows of {_words(row, keys.of_row)}. Name in by what tells the lists of a sample "
            "apart (model, fold), or keep one of the rows."
        )


def _check_lengths(lists: pl.DataFrame, keys: _Keys, n_labels: int) -> None:
    """Refuse a list that has more labels than there are."""
    for row in lists.filter(pl.col(N) > n_labels).head(1).iter_rows(named=True):
        raise ParameterError(
            f"n_labels is {n_labels}, and {row[N]} labels are returned or true for {_words(row, keys.of_list)}."
        )


def _words(row: Mapping[str, Any], columns: Sequence[str]) -> str:
    return ", ".join(f"{column}={row[column]!r}" for column in columns)
