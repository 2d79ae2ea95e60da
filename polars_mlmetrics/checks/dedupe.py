"""`dedupe`: one row for each label of a sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Unpack, get_args

import polars as pl

from polars_mlmetrics.checks.duplicates import repeated, surplus
from polars_mlmetrics.checks.parts import LogParts
from polars_mlmetrics.checks.table import LogTable
from polars_mlmetrics.data.door import check_key_columns
from polars_mlmetrics.data.expressions import any_of
from polars_mlmetrics.data.frames import AnyFrame, as_given
from polars_mlmetrics.data.roles import Roles, check_free
from polars_mlmetrics.engine.ranking import code_of
from polars_mlmetrics.errors import INTERNAL, ParameterError, TableError, at_callers_line, shown_row, unknown
from polars_mlmetrics.query.keys import Keys
from polars_mlmetrics.query.verb import Verb

DEDUPE = Verb("dedupe")

Keep = Literal["first", "last", "error"]

INDEX, PLACE, CODE = f"{INTERNAL}index", f"{INTERNAL}place", f"{INTERNAL}code_of_keys"

OTHER_ORDER = (
    "the rows came in another order when they were read again, as those of a join or a group_by may: write them to a "
    "file before dedupe, or leave out passes="
)
"""A text that is no number: to read it as one is an error that shows it."""


@at_callers_line
def dedupe(
    frame: AnyFrame,
    keep: Keep = "error",
    *,
    by: Keys | None = None,
    order: Keys | None = None,
    passes: int | Literal["auto", "files"] | None = None,
    memory: int | str | None = None,
    progress: bool = True,
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
    passes, memory, progress
        As in `evaluate`: in memory are the keys of the rows of one pass, and the numbers of the rows that are left out.
        "files" is for keep="error". The rows are read once more after the passes: another order then is an error.
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
        _refuse_copies(log, LogParts(log, passes, memory, progress=progress))
        return frame
    if passes == "files":
        raise ParameterError("dedupe: passes='files' works only with keep='error': pass passes='auto'.")
    parts = LogParts(log, passes, memory, progress=progress, change=lambda rows: rows.with_row_index(INDEX))
    if parts.is_whole:
        one = _in_order(parts.rows, places, keep).filter(_is_chosen(log, keep))
        one = (one.sort(INDEX) if places else one).drop(PLACE)
    else:
        types = {INDEX: pl.get_index_type(), CODE: pl.UInt64()}
        one = _without(parts.rows, log.pair_keys, pl.defer(lambda: _left_out(parts, log, places, keep), schema=types))
    return as_given(frame, one.drop(INDEX, *(column.meta.output_name() for column in log.reader.added)))


def _refuse_copies(log: LogTable, parts: LogParts) -> None:
    copied = pl.concat(repeated(part.drop_nulls(log.pair), log.pair_keys) for part in parts.of_samples())
    if not copied.is_empty():
        names = [log.names.get(key, key) for key in log.pair_keys]
        place = shown_row(names, copied.select(log.pair_keys).sort(log.pair_keys).row(0))
        copies = surplus(copied)
        raise TableError(
            f"{'1 row is a copy' if copies == 1 else f'{copies:,} rows are copies'} by {' and '.join(names)}, such as "
            f"{place}. keep='first' or keep='last' keeps one row of each; if they are different models or folds, name "
            "that column in by=."
        )


def _in_order(rows: pl.LazyFrame, order: Sequence[str], keep: Keep) -> pl.LazyFrame:
    """The rows by an order, with the place of each in it."""
    if not order:
        return rows.with_columns(pl.col(INDEX).alias(PLACE))
    # Rows of one time stay as they are; those of none are put where they are not taken.
    return rows.sort(order, nulls_last=keep == "first", maintain_order=True).with_row_index(PLACE)


def _is_chosen(log: LogTable, keep: Keep) -> pl.Expr:
    """The rows that are kept: of each label the first or the last, and all without a sample or label."""
    place = pl.col(PLACE)
    chosen = place.min() if keep == "first" else place.max()
    return any_of([pl.col(name).is_null() for name in log.pair]) | (place == chosen.over(log.pair_keys))


def _left_out(parts: LogParts, log: LogTable, order: Sequence[str], keep: Keep) -> pl.DataFrame:
    """The rows that are not kept: their numbers, and the codes of their keys. Of most logs they are few."""
    found = []
    for part in parts.of_samples():
        copied = repeated(part.drop_nulls(log.pair), log.pair_keys).lazy()
        rows = part.join(copied, on=log.pair_keys, how="semi", nulls_equal=True, maintain_order="left")
        others = _in_order(rows, order, keep).filter(~_is_chosen(log, keep))
        found.append(others.select(INDEX, code_of(log.pair_keys).alias(CODE)).collect())
    return pl.concat(found)


def _without(rows: pl.LazyFrame, keys: Sequence[str], left_out: pl.LazyFrame) -> pl.LazyFrame:
    """The other rows. They are read once more for it: if a number is of other keys then, that is an error."""
    is_kept, is_same = pl.col(CODE).is_null(), pl.col(CODE) == code_of(keys)
    # One condition: of two that are joined by "and", Polars may work out the second for some of the rows alone.
    kept = pl.when(is_kept).then(pl.lit("1")).when(is_same).then(pl.lit("0")).otherwise(pl.lit(OTHER_ORDER))
    known = rows.join(left_out, on=INDEX, how="left", maintain_order="left")
    return known.filter(kept.cast(pl.UInt8) == 1).drop(CODE)
