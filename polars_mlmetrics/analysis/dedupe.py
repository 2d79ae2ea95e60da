"""`dedupe`: one row for each label of a sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeVar, Unpack, get_args

import polars as pl

from polars_mlmetrics.analysis.places import in_words
from polars_mlmetrics.analysis.question import rows_of
from polars_mlmetrics.analysis.repeats import N_ROWS, repeated
from polars_mlmetrics.data.roles import Roles, Table, check_columns, check_free, checked_roles
from polars_mlmetrics.errors import INTERNAL, ParameterError, TableError, unknown

AnyFrame = TypeVar("AnyFrame", pl.DataFrame, pl.LazyFrame)
Keep = Literal["first", "last", "error"]

INDEX, ALONE = f"{INTERNAL}index", f"{INTERNAL}alone"


def dedupe(
    frame: AnyFrame, keep: Keep = "error", by: str | Sequence[str] | None = None, **roles: Unpack[Roles]
) -> AnyFrame:
    """Keep one row of those that have the same sample and label.

    A row whose sample or label is null is kept: nobody knows of what it is a copy. The order of the rows stays.

    Parameters
    ----------
    frame
        The long table. Where it holds several models, the model is a part of the sample: `sample=["model", "sample"]`.
    keep
        Which row stays: the "first" or the "last". "error" gives the table back as it is, and raises a `TableError`
        where a row has a copy; it reads the sample and the label of a LazyFrame now.
    by
        The columns that say which row is the first and which the last, such as the time of writing: null is neither,
        where another row has a value. None is the order of the table.
    **roles
        Which columns are the sample and the label. Without a label column there is one row a sample.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> log = pl.DataFrame({"sample": [1, 1, 2], "label": "cat", "score": [0.9, 0.4, 0.3], "written": [20, 10, 10]})
    >>> mlm.dedupe(log, keep="last", by="written")
    shape: (2, 4)
    ┌────────┬───────┬───────┬─────────┐
    │ sample ┆ label ┆ score ┆ written │
    │ ---    ┆ ---   ┆ ---   ┆ ---     │
    │ i64    ┆ str   ┆ f64   ┆ i64     │
    ╞════════╪═══════╪═══════╪═════════╡
    │ 1      ┆ cat   ┆ 0.9   ┆ 20      │
    │ 2      ┆ cat   ┆ 0.3   ┆ 10      │
    └────────┴───────┴───────┴─────────┘
    """
    rows = rows_of(frame)
    bound = checked_roles(roles, beside=("keep", "by"))
    if keep not in get_args(Keep):
        raise ParameterError(unknown("keep", keep, get_args(Keep), of="one of what dedupe can keep"))
    if keep == "error" and by is not None:
        raise ParameterError("by says which row is the first or the last: it goes with keep='first' or keep='last'.")
    schema: pl.Schema = rows.collect_schema()
    check_free(schema)
    table: Table = Table.of(bound)
    check_columns(table.sample, schema, what="sample column")
    if "label" in bound:
        check_columns([table.label], schema, what="label column")
    keys = [*table.sample, *([table.label] if table.label in schema else [])]
    if keep == "error":
        _refuse_copies(rows, keys)
        return frame
    order = _order(by)
    check_columns(order, schema)
    one = _one_of_each(rows, keys, order, keep)
    return one.collect() if isinstance(frame, pl.DataFrame) else one


def _order(by: Any) -> list[str]:
    order = [] if by is None else [by] if isinstance(by, str) else by
    if not isinstance(order, Sequence) or not all(isinstance(name, str) for name in order):
        raise ParameterError(f"by takes the name of a column, or several, not {by!r}.")
    return list(order)


def _refuse_copies(rows: pl.LazyFrame, keys: Sequence[str]) -> None:
    copied = repeated(rows.drop_nulls(keys), keys)
    if not copied.is_empty():
        (place,) = in_words(keys, copied.select(keys).sort(keys).head(1))
        copies = int(copied[N_ROWS].sum()) - copied.height
        raise TableError(
            f"{'1 row is a copy' if copies == 1 else f'{copies:,} rows are copies'} by {' and '.join(keys)}, such as "
            f"{place}. keep='first' or keep='last' keeps one of each; what tells them apart belongs into sample=[...]."
        )


def _one_of_each(rows: pl.LazyFrame, keys: Sequence[str], order: Sequence[str], keep: Keep) -> pl.LazyFrame:
    nobody_knows = pl.any_horizontal(pl.col(key).is_null() for key in keys)
    numbered = rows.with_row_index(INDEX).with_columns(pl.when(nobody_knows).then(INDEX).alias(ALONE))
    if order:
        # Rows of one time stay as they are; those of none are put where they are not taken.
        numbered = numbered.sort(order, nulls_last=keep == "first", maintain_order=True)
    one = numbered.unique([*keys, ALONE], keep="first" if keep == "first" else "last", maintain_order=True)
    return (one.sort(INDEX) if order else one).drop(INDEX, ALONE)
