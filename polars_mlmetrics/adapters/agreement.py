"""The common schema of the files of a log, and the file that does not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl
import polars.selectors as cs
from polars.exceptions import PanicException, PolarsError

from polars_mlmetrics.adapters.formats import TEXTS, FileReader, Format, Missing, may_fail
from polars_mlmetrics.data.door import differing, reason, unreadable
from polars_mlmetrics.data.returned import LISTED
from polars_mlmetrics.errors import FileError, shown_values
from polars_mlmetrics.places.place import Place

REMEDY = "schema= sets the columns and types for all files."
FILLED = f"missing='null' fills missing columns with nulls, and {REMEDY}"
OF_MEANING = (LISTED, "state")
"""The columns whose type, an Enum, says what the rows are: files must agree on them, read or not."""


def common_schema(schemas: Mapping[Place, pl.Schema], files: FileReader) -> pl.Schema:
    """The schema with which all files are read. A column that differs between files has a type that says so."""
    if files.wanted is None:
        return agreed(schemas, files.kind, files.missing)
    for path, schema in schemas.items():
        _check_wanted(path, schema, files.wanted, files.missing)
    for path, schema in schemas.items():
        check_values(path, schema, files)
    return files.wanted


def agreed(schemas: Mapping[Place, pl.Schema], kind: Format, missing: Missing) -> pl.Schema:
    """The columns of all files, in the order in which files have them first."""
    first, expected = next(iter(schemas.items()))
    for path, schema in schemas.items() if missing == "raise" and expected else ():
        if not schema.keys() & expected.keys():  # it is of another table
            raise _lacking(path, *next(iter(expected.items())), first)
    types: dict[str, pl.DataType] = {}
    for name in dict.fromkeys(name for schema in schemas.values() for name in schema):
        there = {path: schema[name] for path, schema in schemas.items() if name in schema}
        error = _difference(name, there, list(schemas), kind, missing)
        if error is not None and name in OF_MEANING and any(isinstance(dtype, pl.Enum) for dtype in there.values()):
            raise error
        types[name] = next(iter(there.values())) if error is None else differing(error)
    return pl.Schema(types)


def _difference(
    name: str, there: Mapping[Place, pl.DataType], paths: Sequence[Place], kind: Format, missing: Missing
) -> FileError | None:
    """The first file in which a column is not as in the files before it; `there` are the files that have it."""
    owner, dtype = next(iter(there.items()))
    if owner != paths[0] and missing == "raise":
        error = FileError(f"{owner} has a column {name!r} ({dtype}), which is not in {paths[0]}.")
        return error.with_remedy(FILLED)
    for path in paths:
        if path not in there and missing == "raise":
            return _lacking(path, name, dtype, owner)
        if there.get(path, dtype) != dtype:
            guessed = f" Polars guesses the types of {kind} files." if kind in TEXTS else ""
            error = FileError(f"column {name!r} is {there[path]} in {path} and {dtype} in {owner}.{guessed}")
            return error.with_remedy(REMEDY)
    return None


def _lacking(path: Place, name: str, dtype: pl.DataType, owner: Place) -> FileError:
    return FileError(f"{path} has no column {name!r} ({dtype} in {owner}).").with_remedy(FILLED)


def read_as(rows: pl.LazyFrame, found: pl.Schema, wanted: pl.Schema, keys: Sequence[str]) -> pl.LazyFrame:
    """Rows of files that have the columns `found`, with those that are wanted, and the keys of their folders."""
    columns = [_column(name, found.get(name), dtype) for name, dtype in wanted.items()]
    # Not as one selection: where no column is left that the files have, it would have one row.
    return rows.with_columns(columns).select(map(cs.by_name, [*wanted, *keys]))


def _column(name: str, found: pl.DataType | None, wanted: pl.DataType) -> pl.Expr:
    if reason(wanted) is not None:
        return unreadable(wanted).alias(name)
    if found is None:
        return pl.lit(None, wanted).alias(name)
    return _read_as(name, found, wanted)


def _read_as(name: str, found: pl.DataType, wanted: pl.DataType, *, strict: bool = True) -> pl.Expr:
    column = cs.by_name(name)
    if found == wanted:
        return column
    # Polars casts no text to a Date.
    is_day = found == pl.String and wanted == pl.Date
    return column.str.to_date("%Y-%m-%d", strict=strict) if is_day else column.cast(wanted, strict=strict)


def _check_wanted(path: Place, schema: pl.Schema, wanted: pl.Schema, missing: Missing) -> None:
    for name, dtype in wanted.items():
        if reason(dtype) is not None:
            continue
        if name not in schema:
            if missing == "raise":
                raise FileError(f"{path} has no column {name!r}. missing='null' fills it with nulls.")
        elif not _can_be_read_as(schema[name], dtype):
            raise FileError(f"column {name!r} is {schema[name]} in {path} and cannot be read as {dtype}.")


def check_values(path: Place, found: pl.Schema, files: FileReader) -> None:
    """Refuse a file with a value that cannot be read as the wanted type: Polars would not name the file."""
    casts = {name: dtype for name, dtype in (files.wanted or {}).items() if name in found and reason(dtype) is None}
    if files.kind not in TEXTS:
        casts = {name: dtype for name, dtype in casts.items() if may_fail(found[name], dtype)}
    if not casts:
        return
    rows = files.scan([path], found)
    for names in [list(casts), *([name] for name in casts)]:
        columns = [_read_as(name, found[name], casts[name]).null_count() for name in names]
        try:
            rows.select(columns).collect(engine="streaming")
        except (PolarsError, PanicException):
            if len(names) == 1:
                [name] = names
                shown = _example(rows, name, found[name], casts[name])
                raise FileError(f"column {name!r} of {path} has a value that is no {casts[name]}{shown}.") from None
        else:
            return


def _example(rows: pl.LazyFrame, name: str, found: pl.DataType, wanted: pl.DataType) -> str:
    """The first value of a column that is not of the type, where the file itself can be read."""
    value = cs.by_name(name)
    bad = value.is_not_null() & _read_as(name, found, wanted, strict=False).is_null()
    try:
        first = rows.filter(bad).select(value).head(1).collect(engine="streaming").to_series()
    except (PolarsError, PanicException):
        return ""
    return "".join(f", such as {shown_values([each])}" for each in first)


def _can_be_read_as(dtype: pl.DataType, wanted: pl.DataType) -> bool:
    """Whether a cast keeps every value, but for a number that a float rounds, or raises an error."""
    if dtype == wanted or dtype.is_nested() or wanted.is_nested():
        return dtype == wanted
    whole = wanted.is_integer() or wanted == pl.Boolean
    if (dtype.is_float() or dtype.is_decimal()) and (whole or wanted.is_temporal()):
        return False  # it would lose the decimals
    if dtype.is_integer() and wanted == pl.Boolean:
        return False  # 2 would be true
    if dtype.is_temporal() and wanted.is_temporal():
        return False  # it would lose the time of the day, or nanoseconds, or a zone
    if dtype == pl.String and wanted.is_temporal():
        return wanted == pl.Date  # of times there is more than one spelling
    try:
        pl.Series(dtype=dtype).cast(wanted)
    except PolarsError:
        return False
    return True
