"""Steps from every other shape of predictions to the long table: its sample, its kept columns, one type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import polars as pl

from polars_mlmetrics.data.door import check_columns
from polars_mlmetrics.data.expressions import check_no_pattern
from polars_mlmetrics.data.frames import Names, column_names, is_number, is_text, unflagged
from polars_mlmetrics.errors import INTERNAL, ColumnError, NameCollisionError, ParameterError

MADE = ("label", "score", "truth")
"""The columns that every shape gives after the sample."""
ROW = f"{INTERNAL}row"


def column_of(what: str, name: Any, types: Mapping[str, pl.DataType]) -> str:
    """The column that a parameter names; what names none of the table is refused."""
    if not isinstance(name, str):
        raise ParameterError(f"{what} takes a column name, not {name!r}.")
    check_columns([name], types, what=f"{what} column")
    return name


class OtherColumns:
    """The other columns of a row: its sample and its kept columns."""

    def __init__(
        self,
        frame: pl.DataFrame | pl.LazyFrame,
        sample: Names,
        keep: Names,
        *,
        used: Sequence[str],
        made: Sequence[str] = MADE,
    ) -> None:
        """The columns of `sample` and `keep`; `made` are the other columns of the result and `used` their sources."""
        schema, self.rows = frame.collect_schema(), unflagged(frame)
        sources = _sources(sample)
        check_columns(list(sources.values()), schema, what="sample column")
        if keep is None:
            self.kept = [name for name in schema if name not in used and name not in sources.values()]
        else:
            self.kept = [name for name in column_names("keep", keep) if sources.get(name) != name]
            check_columns(self.kept, schema, what="keep column")
        check_no_pattern([*used, *sources.values(), *self.kept])
        self.sample = {name: pl.col(source) for name, source in sources.items()}
        if sample is None:
            self.rows, self.sample = self.rows.with_row_index(ROW), {"sample": pl.col(ROW).cast(pl.Int64)}
        self._check_names(made, numbered=sample is None)

    def _check_names(self, made: Sequence[str], *, numbered: bool) -> None:
        for name in self.sample:
            if name in made:
                raise NameCollisionError(f"{name!r} is a column this function creates: rename your sample column.")
        for name in self.kept:
            if name == "sample" and numbered:
                raise NameCollisionError(
                    "the table has a column 'sample': pass sample='sample', or leave it out of keep=."
                )
            if name in made or name in self.sample:
                raise NameCollisionError(
                    f"{name!r} is a column this function creates: rename yours, or use keep= to list the columns to "
                    "keep."
                )

    def select(self, rows: pl.LazyFrame, made: Mapping[str, pl.Expr]) -> pl.LazyFrame:
        """Of these rows, what was made of them, in the order of the long table."""
        first = {name: column for name, column in made.items() if name == "model"}
        columns = {**first, **self.sample, **made, **{name: pl.col(name) for name in self.kept}}
        return rows.select(column.alias(name) for name, column in columns.items())


def _sources(sample: Names) -> dict[str, str]:
    """The columns of the sample, by the names that they have in the result."""
    names = column_names("sample", sample)
    if sample is not None and not names:
        raise ParameterError("sample is an empty list: give a name or a list of names, or None to number the rows.")
    return {"sample": sample} if isinstance(sample, str) else {name: name for name in names}


def distinct(what: str, values: Any, dtype: pl.DataType | None = None) -> pl.Series:
    """Values that are given as a list, each once, in the type that is asked for or their own."""
    if isinstance(values, str) or not isinstance(values, Sequence | pl.Series) or len(values) == 0:
        raise ParameterError(f"{what} takes a list of values, not {values!r}.")
    given = list(values)
    try:
        series = pl.Series(given, dtype=dtype)
    except (TypeError, pl.exceptions.PolarsError) as error:
        kind = "one type" if dtype is None else f"the type {dtype}"
        raise ParameterError(f"{what} must have {kind}, not {given!r}.") from error
    if series.dtype.is_nested() or series.dtype == pl.Object:
        raise ParameterError(f"{what} must hold plain values, not {given!r}.")
    if series.null_count():
        raise ParameterError(f"{what} holds a null: {given!r}.")
    repeated = series.filter(series.is_duplicated())
    if len(repeated):
        raise ParameterError(f"{what} holds {repeated[0]!r} twice.")
    return series


def array_of(role: str, columns: Sequence[tuple[str, pl.Expr, pl.DataType]]) -> pl.Expr:
    """The values of several columns (each with the name to call it by, and its type) as an array, in one type."""
    dtype = _one_type(role, {name: dtype for name, _, dtype in columns})
    return pl.concat_arr([column.cast(dtype) for _, column, _ in columns])


def _one_type(role: str, types: Mapping[str, pl.DataType]) -> pl.DataType:
    known = _first_of_type(types)
    for dtype, name in known.items():
        if dtype.is_nested():
            raise ColumnError(f"{role} {name!r} is {dtype}: it must be a plain value.")
    common = common_type(*known)
    if common is not None:
        return common
    if all(map(is_number, known)):
        whole = role == "truth" and all(dtype.is_integer() or dtype == pl.Boolean for dtype in known)
        return pl.Int64() if whole else pl.Float64()
    (one, name), *rest = known.items()
    other, other_name = next((each for each in rest if is_number(each[0]) != is_number(one)), rest[0])
    raise ColumnError(
        f"{role}s must have compatible types: {name!r} is {one}, and {other_name!r} is {other}. Cast one of them."
    )


def class_type(types: Mapping[str, pl.DataType]) -> pl.DataType:
    """The one type of predicted and true classes, by the names of their columns."""
    known = _first_of_type(types)
    for dtype, name in known.items():
        if dtype.is_nested():
            raise ColumnError(f"{name!r} is {dtype}: a class must be a plain value.")
    common = common_type(*known)
    if common is None:
        shown = " and ".join(f"{name!r} is {dtype}" for dtype, name in known.items())
        raise ColumnError(f"predicted and true classes must have one type: {shown}. Cast one of them.")
    return common


def _first_of_type(types: Mapping[str, pl.DataType]) -> dict[pl.DataType, str]:
    """The types that columns have, each with the first of its columns; what holds nulls alone goes with any type."""
    known: dict[pl.DataType, str] = {}
    for name, dtype in types.items():
        if dtype != pl.Null:
            known.setdefault(dtype, name)
    return known


def common_type(*types: pl.DataType) -> pl.DataType | None:
    """The type in which values of all these types stay what they are; None if there is none."""
    known = dict.fromkeys(dtype for dtype in types if dtype != pl.Null)
    if len(known) < 2:
        return next(iter(known), pl.Null())
    return pl.String() if all(map(is_text, known)) else None


def inner_type(dtype: pl.DataType) -> pl.DataType:
    """The type of the values of a list or an array; Null where there are none."""
    return cast(pl.DataType, dtype.inner) if isinstance(dtype, pl.List | pl.Array) else pl.Null()
