"""Truths that come in a table of their own, joined to the lists of labels that were returned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack, overload

import polars as pl

from polars_mlmetrics.adapters.missed import Join, ListColumns, N, are_known
from polars_mlmetrics.data.door import check_columns, check_role, type_of
from polars_mlmetrics.data.expressions import check_no_pattern, check_row_wise
from polars_mlmetrics.data.frames import Frame, Names, schema_of, unflagged
from polars_mlmetrics.data.returned import LISTED, check_n_labels
from polars_mlmetrics.data.roles import Roles, check_free, checked_roles
from polars_mlmetrics.errors import ColumnError, NameCollisionError, ParameterError, at_callers_line, shown_row

Known = str | pl.Expr | Frame
"""Which truths have arrived: a condition on the returned rows, or a table of samples."""


@overload
def with_truths(
    returned: pl.DataFrame,
    truths: pl.DataFrame,
    *,
    by: Names = ...,
    of_sample: Names = ...,
    known: str | pl.Expr | pl.DataFrame | None = ...,
    asked: pl.DataFrame | None = ...,
    n_labels: int | None = ...,
    **roles: Unpack[Roles],
) -> pl.DataFrame: ...


@overload
def with_truths(
    returned: pl.LazyFrame,
    truths: Frame,
    *,
    by: Names = ...,
    of_sample: Names = ...,
    known: Known | None = ...,
    asked: Frame | None = ...,
    n_labels: int | None = ...,
    **roles: Unpack[Roles],
) -> pl.LazyFrame: ...


@overload
def with_truths(
    returned: Frame,
    truths: Frame,
    *,
    by: Names = ...,
    of_sample: Names = ...,
    known: Known | None = ...,
    asked: Frame | None = ...,
    n_labels: int | None = ...,
    **roles: Unpack[Roles],
) -> pl.DataFrame | pl.LazyFrame: ...


@at_callers_line
def with_truths(
    returned: Frame,
    truths: Frame,
    *,
    by: Names = None,
    of_sample: Names = None,
    known: Known | None = None,
    asked: Frame | None = None,
    n_labels: int | None = None,
    **roles: Unpack[Roles],
) -> pl.DataFrame | pl.LazyFrame:
    """The returned labels with their truths, and a row for every true label that was not returned.

    The result holds all rows of `returned`; their truth is False (or 0) where `truths` does not name the label. Then
    come the labels of `truths` that were not returned for a sample, including known negatives. Their score is -inf and
    their other columns are null, except those of `of_sample` and those that `truths` has too. A null weight leaves a
    row out: add the weights to `truths`, or name them in `of_sample`.

    A null sample or label is unknown: it matches nothing, and its truth is null.

    The column `listed` says where a row comes from. From its type `evaluate` and the other functions know what is
    missing (without `n_labels`: the negatives that were not returned; with it: their labels) and which columns the
    added rows have. They refuse a metric that needs what is missing, and a slice or a filter by any other column.

    With DataFrames the rows keep the order of `returned`, then of `truths`. With a LazyFrame the order is not defined.

    Parameters
    ----------
    returned
        A row for each label that was returned, with its score. In a DataFrame, a label that is twice in one list is an
        error. In a LazyFrame both rows get the truth.
    truths
        A row for each true label. If it has a column of truths, that is the truth: a grade, or 0 for a known negative.
        Equal rows count once; if their truths contradict each other, the truth is null.
    by
        The columns of `returned` that separate several lists of one sample: model, fold. Each list gets the true labels
        of its sample. If `truths` has such a column too, its rows are only for lists with the same value, and null
        equals null.
    of_sample
        The columns of `returned` that belong to the sample: country, day. The added rows have the value if all rows of
        the list agree, and null otherwise; `check` counts these nulls.
    known
        Which truths have arrived. A column or a condition of `returned`, such as `pl.col("day") < today`, that must
        hold in all rows of a list; or a table of samples (and of `by` columns). The truths of all other lists are null:
        unknown and counted. None means that all truths have arrived.
    asked
        A table of all requested lists, also those for which nothing was returned, with the columns of `by`, `sample`,
        `of_sample` and `known`. None takes the lists of `returned`. True labels of samples that were not requested get
        no row.
    n_labels
        The number of possible labels of each sample. Each list is then filled up to that many rows, with negatives that
        have no label. A list with more is an error; for a LazyFrame Polars raises it when it is collected.
    **roles
        The columns of the sample and the label, in both tables; of the score in `returned`; of the truth in `truths`
        and in the result.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> returned = pl.DataFrame({"sample": [1, 1, 2], "label": ["a", "b", "a"], "score": [0.9, 0.8, 0.7]})
    >>> truths = pl.DataFrame({"sample": [1, 1, 3], "label": ["b", "c", "a"]})
    >>> mlm.with_truths(returned, truths)
    shape: (4, 5)
    ┌────────┬───────┬───────┬───────┬──────────────┐
    │ sample ┆ label ┆ score ┆ truth ┆ listed       │
    │ ---    ┆ ---   ┆ ---   ┆ ---   ┆ ---          │
    │ i64    ┆ str   ┆ f64   ┆ bool  ┆ enum         │
    ╞════════╪═══════╪═══════╪═══════╪══════════════╡
    │ 1      ┆ a     ┆ 0.9   ┆ false ┆ returned     │
    │ 1      ┆ b     ┆ 0.8   ┆ true  ┆ returned     │
    │ 2      ┆ a     ┆ 0.7   ┆ false ┆ returned     │
    │ 1      ┆ c     ┆ -inf  ┆ true  ┆ not returned │
    └────────┴───────┴───────┴───────┴──────────────┘

    Sample 3 was asked about too, and each could have been given three labels:

    >>> samples = pl.DataFrame({"sample": [1, 2, 3]})
    >>> mlm.with_truths(returned, truths, asked=samples, n_labels=3).tail(5)
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
    check_n_labels(n_labels)
    columns = ListColumns(by, of_sample, checked_roles(roles))
    tables: dict[str, Frame] = {"returned": returned, "truths": truths}
    condition = None
    if asked is not None:
        tables["asked"] = asked
    if isinstance(known, pl.DataFrame | pl.LazyFrame):
        tables["known"] = known
    elif known is not None:
        condition = _condition(known)
    _check(columns, {name: schema_of(table, "with_truths") for name, table in tables.items()}, condition, roles)
    both = all(isinstance(table, pl.DataFrame) for table in tables.values())
    join = Join(columns, {name: unflagged(table) for name, table in tables.items()}, condition, in_order=both)
    if isinstance(returned, pl.DataFrame):
        _check_once(returned, columns)
    if n_labels is None:
        return join.rows().collect() if both else join.rows()
    if not both:
        return join.filled(join.rows(), n_labels)
    rows = join.rows().collect().lazy()
    _check_lengths(join.lengths(rows).collect(), columns, n_labels)
    return join.filled(rows, n_labels).collect()


def _condition(known: Any) -> pl.Expr:
    check_no_pattern([known] if isinstance(known, str) else [], what="known column")
    condition = pl.col(known) if isinstance(known, str) else known
    if not isinstance(condition, pl.Expr) or condition.meta.has_multiple_outputs():
        raise ParameterError(f"known is a column, a condition or a table of samples, not {known!r}.")
    check_row_wise("known", condition)
    return condition


def _check(
    columns: ListColumns, schemas: Mapping[str, pl.Schema], condition: pl.Expr | None, roles: Mapping[str, Any]
) -> None:
    returned, truths = schemas["returned"], schemas["truths"]
    roots = [] if condition is None else condition.meta.root_names()
    weight = [] if columns.weight is None else [columns.weight]
    needed = {
        "returned": [*columns.of_row, *columns.of_sample, *roots, *weight, columns.score],
        "truths": [*columns.key, *([columns.truth] if roles.get("truth") is not None else [])],
        "asked": [*columns.known, *roots],
        "known": columns.sample,
    }
    for table, schema in schemas.items():
        check_free(schema)
        check_columns(needed[table], schema, of=f"in {table}")
    for name in (*columns.of_row, *columns.of_sample):
        if returned[name].is_nested():
            raise ColumnError(f"column {name!r} is {returned[name]}: a key must be a plain value.")
    for name in (columns.truth, LISTED):
        if name in returned:
            raise NameCollisionError(f"returned has a column {name!r}, which with_truths creates: rename or drop it.")
    check_role("score", pl.col(columns.score), returned, any_type=False)
    if columns.truth in truths:
        check_role("truth", pl.col(columns.truth), truths, any_type=False)
    if condition is not None and (dtype := type_of(condition, returned)) != pl.Boolean:
        raise ColumnError(f"known is {dtype}: it must be Boolean, such as pl.col('day') < today.")


def _check_once(returned: pl.DataFrame, columns: ListColumns) -> None:
    """Refuse a label that one list has twice."""
    of_row = columns.of_row
    labels = returned.lazy().filter(are_known(columns.key)).group_by(of_row).agg(pl.len().alias(N))
    for row in labels.filter(pl.col(N) > 1).sort(of_row).head(1).collect().iter_rows(named=True):
        place = shown_row(of_row, (row[name] for name in of_row))
        raise ParameterError(
            f"returned has {row[N]} rows of {place}. If a sample has several lists (one for each model or fold), name "
            "that column in by=. Else keep one of the rows."
        )


def _check_lengths(lists: pl.DataFrame, columns: ListColumns, n_labels: int) -> None:
    """Refuse a list that has more labels than there are."""
    for row in lists.filter(pl.col(N) > n_labels).head(1).iter_rows(named=True):
        place = shown_row(columns.of_list, (row[name] for name in columns.of_list))
        raise ParameterError(f"n_labels is {n_labels}, and {row[N]} labels are returned or true for {place}.")
