"""The frames that are given to a function, and the columns that a parameter names."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import polars as pl

from polars_mlmetrics.data.expressions import check_no_pattern, text_of_key
from polars_mlmetrics.errors import ParameterError, shown_type

Frame = pl.DataFrame | pl.LazyFrame
AnyFrame = TypeVar("AnyFrame", pl.DataFrame, pl.LazyFrame)
Names = str | Sequence[str] | None
"""One column, or several; what None stands for, each parameter says."""

SOURCE = "source"
"""The column that names a file of the log, in a row of its own: what it holds is no part of any value."""

ROWS_IN_MEMORY = 100_000
"""Up to so many rows of a DataFrame are answered by the in-memory engine."""


def is_state(schema: Mapping[str, pl.DataType]) -> bool:
    """Whether a table says of itself that it is a state."""
    dtype = schema.get("state")
    return isinstance(dtype, pl.Enum) and len(dtype.categories) == 1 and SOURCE in schema


def schema_of(frame: Any, caller: str) -> pl.Schema:
    """The columns of a frame; what is no Polars frame is refused."""
    if not isinstance(frame, pl.DataFrame | pl.LazyFrame):
        raise ParameterError(f"{caller} takes a DataFrame or a LazyFrame, not a {shown_type(frame)}.")
    schema: pl.Schema = frame.collect_schema()
    return schema


def unflagged(frame: pl.DataFrame | pl.LazyFrame) -> pl.LazyFrame:
    """The rows of a frame. A DataFrame loses its flags: Polars trusts them, and `set_sorted` may have been wrong.

    A LazyFrame shows none.
    """
    if isinstance(frame, pl.LazyFrame):
        return frame
    # A column of Python objects fits into no struct.
    flagged = [column for column in frame if any(column.flags.values()) and column.dtype != pl.Object]
    if flagged:
        # The fields of a struct have none.
        fields = pl.DataFrame({column.name: column for column in flagged}).to_struct().struct.unnest()
        frame = frame.with_columns(fields.get_columns())
    return frame.lazy()


def as_given(frame: AnyFrame, result: pl.LazyFrame) -> AnyFrame:
    """The result as a DataFrame where one was given."""
    return result.collect() if isinstance(frame, pl.DataFrame) else result


def answer_as_given(frame: AnyFrame, result: pl.LazyFrame, keys: Iterable[pl.DataType]) -> AnyFrame:
    """The same, of few rows by the in-memory engine: the streaming one starts threads for each of the many steps.

    It is not for a plan that divides a column by a column of one value: that engine multiplies by the inverse, and
    49 / 49 is not 1 then. Nor for keys that are floats: it loses a single group whose key is NaN.
    """
    has_floats = any(dtype.is_float() for dtype in keys)
    if isinstance(frame, pl.DataFrame) and frame.height <= ROWS_IN_MEMORY and not has_floats:
        return result.collect(engine="in-memory")
    return as_given(frame, result)


def as_given_later(frame: AnyFrame, result: Callable[[], pl.LazyFrame], alike: Callable[[], pl.LazyFrame]) -> AnyFrame:
    """A result whose plan needs a look at the rows first: of a LazyFrame, when it is collected.

    `alike` gives a plan with the same columns that needs no such look.
    """
    if isinstance(frame, pl.DataFrame):
        return result().collect()
    return pl.defer(lambda: result().collect(), schema=alike().collect_schema())


def column_names(parameter: str, names: Any) -> list[str]:
    """The columns that a parameter names, each once; None names none."""
    given = [names] if isinstance(names, str) else [] if names is None else names
    if not isinstance(given, Sequence) or not all(isinstance(name, str) for name in given):
        raise ParameterError(f"{parameter} takes a column name or a list of them, not {names!r}.")
    for name in given:
        if given.count(name) > 1:
            raise ParameterError(f"{parameter} names the column {name!r} twice.")
    check_no_pattern(given, what=f"{parameter} column")
    return list(given)


def is_number(dtype: pl.DataType) -> bool:
    """Whether a type can be read as a number."""
    return dtype.is_numeric() or dtype == pl.Boolean


def is_text(dtype: pl.DataType) -> bool:
    """Whether a type holds texts."""
    return isinstance(dtype, pl.String | pl.Categorical | pl.Enum)


def text_apart(key: pl.Expr, dtype: pl.DataType, *, among_others: bool = False) -> pl.Expr:
    """The values of a key as texts of which no two are alike: one like a null, or like several keys, is in quotes."""
    text = text_of_key(key, dtype)
    if not is_text(dtype):
        return text
    is_odd = (text == "null") & key.is_not_null() | text.str.starts_with('"')
    if among_others:
        is_odd |= text.str.contains(", ", literal=True)
    return pl.when(is_odd).then(pl.format('"{}"', text)).otherwise(text)


# -- where the rows of a LazyFrame come from --------------------------------------------------------------------------


def is_at_hand(frame: pl.LazyFrame) -> bool:
    """Whether a frame is no more than rows in memory, or a scan of files that are quick to read once more."""
    return _last_step(frame).startswith(("DF [", "Parquet SCAN [", "Ipc SCAN ["))


def scan_node(frame: pl.LazyFrame) -> Any:
    """The plan node of a bare scan of csv or parquet files; None for any other frame."""
    if not _last_step(frame).startswith(("Csv SCAN [", "Parquet SCAN [")):
        return None
    try:
        return frame._ldf.visit().view_current_node()
    except NotImplementedError:  # of what is in memory, or an open file
        return None


def is_of_csv(frame: pl.LazyFrame) -> bool:
    """Whether rows of a frame come from a scan of csv files."""
    return "Csv SCAN [" in frame.explain(optimized=False)


def is_parquet(frame: pl.LazyFrame) -> bool:
    """Whether a frame is a bare scan of parquet files."""
    return _last_step(frame).startswith("Parquet SCAN [")


def parquet_paths(frame: pl.LazyFrame) -> list[str]:
    """The files of a bare scan of parquet files; none for any other frame."""
    node = scan_node(frame) if is_parquet(frame) else None
    return [] if node is None else [str(path) for path in node.paths]


def guessed_numbers(frame: pl.LazyFrame) -> list[str] | None:
    """The columns of a bare scan of csv files that Polars took for whole numbers; None for any other frame."""
    node = scan_node(frame)
    if node is None or node.scan_type[0] != "csv":
        return None
    options = json.loads(node.scan_type[1])
    declared = [name for given in ("schema", "schema_overwrite") for name in (options[given] or {}).get("fields", ())]
    return [name for name, dtype in frame.collect_schema().items() if dtype == pl.Int64 and name not in declared]


def _last_step(frame: pl.LazyFrame) -> str:
    """The last step of a query, as Polars prints it.

    The plan itself is not visited unless this says that it is a scan of csv or parquet files: for a table of Delta or
    Iceberg Polars would then ask Python for the files, while it keeps Python from answering, and wait for ever.
    """
    return next(iter(frame.explain(optimized=False).splitlines()), "")
