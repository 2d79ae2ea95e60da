"""`dedupe`: one row for each label of a sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Unpack, get_args

import polars as pl

from polars_mlmetrics.checks.duplicates import repeated, surplus
from polars_mlmetrics.checks.table import LogTable
from polars_mlmetrics.data.door import check_key_columns
from polars_mlmetrics.data.expressions import any_of
from polars_mlmetrics.data.frames import AnyFrame, as_given
from polars_mlmetrics.data.roles import Roles, check_free
from polars_mlmetrics.errors import INTERNAL, ParameterError, TableError, at_callers_line, shown_row, unknown
from polars_mlmetrics.query.keys import Keys
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

    Returns
    -------
    The rows that are kept, with all of their columns.

    Raises
    ------
    TableError
        With keep="error", if a row has a copy.

    See Also
    --------
    check : finds copies, and rows that contradict one another.

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
    log = LogTable(DEDUPE, frame, by, roles, values=())
    check_key_columns(log.table.sample, log.schema, what="sample column")
    check_free(log.columns)
    if keep not in get_args(Keep):
        raise ParameterError(unknown("keep", keep, get_args(Keep), of="one of what dedupe can keep"))
    if keep == "error" and order is not None:
        raise ParameterError("order= works only with keep='first' or keep='last'.")
    places = [key.column for key in log.reader.read(order)]
    if keep == "error":
        _refuse_copies(log)
        return frame
    one = _one_of_each(log, places, keep)
    return as_given(frame, one.drop(INDEX, ALONE, *(column.meta.output_name() for column in log.reader.added)))


def _refuse_copies(log: LogTable) -> None:
    copied = repeated(log.reader.rows().drop_nulls(log.pair), log.pair_keys)
    if not copied.is_empty():
        names = [log.names.get(key, key) for key in log.pair_keys]
        place = shown_row(names, copied.select(log.pair_keys).sort(log.pair_keys).row(0))
        copies = surplus(copied)
        raise TableError(
            f"{'1 row is a copy' if copies == 1 else f'{copies:,} rows are copies'} by {' and '.join(names)}, such as "
            f"{place}. keep='first' or keep='last' keeps one row of each; if they are different models or folds, name "
            "that column in by=."
        )


def _one_of_each(log: LogTable, order: Sequence[str], keep: Keep) -> pl.LazyFrame:
    is_unknown = any_of([pl.col(name).is_null() for name in log.pair])
    numbered = log.reader.rows().with_row_index(INDEX).with_columns(pl.when(is_unknown).then(INDEX).alias(ALONE))
    if order:
        # Rows of one time stay as they are; those of none are put where they are not taken.
        numbered = numbered.sort(order, nulls_last=keep == "first", maintain_order=True)
    one = numbered.unique([*log.pair_keys, ALONE], keep="first" if keep == "first" else "last", maintain_order=True)
    return one.sort(INDEX) if order else one
