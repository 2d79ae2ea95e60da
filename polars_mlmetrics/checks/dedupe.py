"""`dedupe`: one row for each label of a sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Unpack, get_args

import polars as pl

from polars_mlmetrics.checks.duplicates import N_ROWS, repeated
from polars_mlmetrics.data.door import check_columns
from polars_mlmetrics.data.frames import AnyFrame, as_given, schema_of
from polars_mlmetrics.data.roles import Roles, Table, check_free, checked_roles
from polars_mlmetrics.errors import INTERNAL, ParameterError, TableError, at_callers_line, shown_row, unknown
from polars_mlmetrics.query.keys import KeyColumn, KeyReader, Keys
from polars_mlmetrics.query.verb import Verb

DEDUPE = Verb("dedupe")

Keep = Literal["first", "last", "error"]

INDEX, ALONE = f"{INTERNAL}index", f"{INTERNAL}alone"


@at_callers_line
def dedupe(
    frame: AnyFrame,
    keep: Keep = "error",
    *,
    by: Keys | None = None,
    order: Keys | None = None,
    **roles: Unpack[Roles],
) -> AnyFrame:
    """Keep one row for each sample and label.

    Rows with a null sample or label are all kept, because they may be different. The order of the rows stays.

    Parameters
    ----------
    frame
        The long table.
    keep
        Which row to keep: the "first" or the "last". "error" returns the table unchanged, and raises a `TableError` if
        a row has a copy; it reads the keys of a LazyFrame at once.
    by
        The columns (or row-wise expressions) of the groups, e.g. models or folds. Rows of different groups are not
        copies.
    order
        The columns (or row-wise expressions) to sort by, such as the time of writing, to find the first and the last
        row. A row with a null is chosen only if no other row has a value. None is the order of the table.
    **roles
        The columns of the sample and the label. Without a label column, one row per sample is kept.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> log = pl.DataFrame({"sample": [1, 1, 2], "label": "cat", "score": [0.9, 0.4, 0.3], "written": [20, 10, 10]})
    >>> mlm.dedupe(log, keep="last", order="written")
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
    schema: pl.Schema = schema_of(frame, DEDUPE.name)
    given, bound = DEDUPE.rows(frame, schema), checked_roles(roles)
    if keep not in get_args(Keep):
        raise ParameterError(unknown("keep", keep, get_args(Keep), of="one of what dedupe can keep"))
    if keep == "error" and order is not None:
        raise ParameterError("order= works only with keep='first' or keep='last'.")
    check_free(schema)
    table: Table = bound.table
    check_columns(table.sample, schema, what="sample column")
    if "label" in bound:
        check_columns([table.label], schema, what="label column")
    pair = [*table.sample, *([table.label] if table.label in schema else [])]
    reader: KeyReader = KeyReader(given, schema)
    groups: list[KeyColumn] = reader.read(by)
    places: list[KeyColumn] = reader.read(order)
    names = {key.column: key.name for key in groups} | {name: name for name in pair}
    if keep == "error":
        _refuse_copies(reader.rows(), pair, names)
        return frame
    one = _one_of_each(reader.rows(), pair, list(names), [key.column for key in places], keep)
    one = one.drop(INDEX, ALONE, *(column.meta.output_name() for column in reader.added))
    return as_given(frame, one)


def _refuse_copies(rows: pl.LazyFrame, pair: Sequence[str], names: Mapping[str, str]) -> None:
    copied = repeated(rows.drop_nulls(pair), list(names))
    if not copied.is_empty():
        shown = list(names.values())
        place = shown_row(shown, copied.select(list(names)).sort(list(names)).row(0))
        copies = int(copied[N_ROWS].sum()) - copied.height
        raise TableError(
            f"{'1 row is a copy' if copies == 1 else f'{copies:,} rows are copies'} by {' and '.join(shown)}, such as "
            f"{place}. keep='first' or keep='last' keeps one row of each; if they are different models or folds, name "
            "that column in by=."
        )


def _one_of_each(
    rows: pl.LazyFrame, pair: Sequence[str], keys: Sequence[str], order: Sequence[str], keep: Keep
) -> pl.LazyFrame:
    nobody_knows = pl.any_horizontal(pl.col(name).is_null() for name in pair)
    numbered = rows.with_row_index(INDEX).with_columns(pl.when(nobody_knows).then(INDEX).alias(ALONE))
    if order:
        # Rows of one time stay as they are; those of none are put where they are not taken.
        numbered = numbered.sort(order, nulls_last=keep == "first", maintain_order=True)
    one = numbered.unique([*keys, ALONE], keep="first" if keep == "first" else "last", maintain_order=True)
    return one.sort(INDEX) if order else one
