"""The common schema of the files of a log, and the file that does not fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import polars as pl
import polars.selectors as cs
from polars.exceptions import PanicException, PolarsError

from polars_mlmetrics.adapters.formats import Format, scanned
from polars_mlmetrics.data.door import differing, reason, unreadable
from polars_mlmetrics.data.returned import LISTED
from polars_mlmetrics.errors import FileError, shown_values
from polars_mlmetrics.places.place import Place, Places

Missing = Literal["raise", "null"]
REMEDY = "schema= sets the columns and types for all files."
FILLED = f"missing='null' fills missing columns with nulls, and {REMEDY}"
TEXTS = ("csv", "ndjson")
"""The formats that do not hold types."""
SMALL = (pl.Int8, pl.Int16, pl.UInt8, pl.UInt16)
Known = dict[str, tuple[pl.DataType, Place]]
"""The type of each column, and the first file that has it."""
OF_MEANING = (LISTED, "state")
"""The columns whose type, an Enum, says what the rows are: files must agree on them, read or not."""


def schema_of(path: Place, kind: Format, wanted: pl.Schema | None, places: Places[Any]) -> pl.Schema:
    """The columns of a file; for text files, with the wanted types."""
    try:
        found = scanned([path.as_posix()], kind, **places.for_polars()).collect_schema()
    except (OSError, ValueError, PolarsError, PanicException) as error:
        raise FileError(f"{path} cannot be read as {kind}: {places.words_for(error)}") from None
    return pl.Schema({**found, **overrides(found, kind, wanted).get("schema_overrides", {})})


def overrides(found: pl.Schema, kind: Format, wanted: pl.Schema | None) -> dict[str, Any]:
    """The types that a scan of text files is given."""
    if kind not in TEXTS or wanted is None:
        return {}
    types = {name: dtype for name, dtype in wanted.items() if name in found and reason(dtype) is None}
    if kind == "ndjson":  # its reader panics at these
        types = {name: pl.Int64() if dtype in SMALL else dtype for name, dtype in types.items()}
    return {"schema_overrides": types}


def common_schema(
    schemas: Mapping[Place, pl.Schema], kind: Format, wanted: pl.Schema | None, missing: Missing
) -> pl.Schema:
    """The schema with which all files are read. A column that differs between files has a type that says so."""
    if wanted is not None:
        for path, schema in schemas.items():
            _check_wanted(path, schema, wanted, missing)
        return wanted
    return agreed(schemas, kind, missing)


def agreed(schemas: Mapping[Place, pl.Schema], kind: Format, missing: Missing) -> pl.Schema:
    """The columns of all files, in the order in which files have them first."""
    first, expected = next(iter(schemas.items()))
    known: Known = {name: (dtype, first) for name, dtype in expected.items()}
    problems: dict[str, FileError] = {}
    for path, schema in schemas.items():
        found = dict(_differences(path, schema, first, known, kind))
        if missing == "raise":
            _check_related(path, schema, first, expected, kind, found)
        else:
            found = {name: error for name, error in found.items() if error.remedy == REMEDY}
        for name, dtype in schema.items():
            known.setdefault(name, (dtype, path))
        problems = found | problems
    for name, error in problems.items():
        if name in OF_MEANING and any(isinstance(schema.get(name), pl.Enum) for schema in schemas.values()):
            raise error
    types = {name: dtype for name, (dtype, _) in known.items()}
    return pl.Schema(types | {name: differing(error) for name, error in problems.items()})


def _differences(
    path: Place, schema: pl.Schema, first: Place, known: Known, kind: Format
) -> Iterator[tuple[str, FileError]]:
    """The columns of a file that are not as those of the files before it, and how each differs."""
    guessed = f" Polars guesses the types of {kind} files." if kind in TEXTS else ""
    for name, (dtype, place) in known.items():
        if name not in schema:
            yield name, FileError(f"{path} has no column {name!r} ({dtype} in {place}).").with_remedy(FILLED)
        elif schema[name] != dtype:
            error = FileError(f"column {name!r} is {schema[name]} in {path} and {dtype} in {place}.{guessed}")
            yield name, error.with_remedy(REMEDY)
    for name, dtype in schema.items():
        if name not in known:
            error = FileError(f"{path} has a column {name!r} ({dtype}), which is not in {first}.")
            yield name, error.with_remedy(FILLED)


def _check_related(
    path: Place, schema: pl.Schema, first: Place, expected: pl.Schema, kind: Format, found: Mapping[str, FileError]
) -> None:
    """Refuse a file of another table: no column is shared, or those of csv come in another order."""
    if found and not schema.keys() & expected.keys():
        raise next(iter(found.values()))
    # Polars reads the others by name, and csv by position.
    if kind == "csv" and schema.keys() == expected.keys() and schema.names() != expected.names():
        raise FileError(
            f"{path} has its columns in a different order from {first}: {', '.join(schema)} and {', '.join(expected)}."
        ).with_remedy(REMEDY)


def read_as(rows: pl.LazyFrame, found: pl.Schema, wanted: pl.Schema, keys: Sequence[str]) -> pl.LazyFrame:
    """Rows of files that have the columns `found`, with those that are wanted, and the keys of their folders."""
    columns = [_column(name, found.get(name), dtype) for name, dtype in wanted.items()]
    return rows.select(*columns, cs.by_name(*keys))


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


def check_values(rows: pl.LazyFrame, path: Place, found: pl.Schema, wanted: pl.Schema, kind: Format) -> None:
    """Refuse a file with a value that cannot be read as the wanted type: Polars would not name the file."""
    casts = {name: dtype for name, dtype in wanted.items() if name in found and reason(dtype) is None}
    if kind not in TEXTS:
        casts = {name: dtype for name, dtype in casts.items() if _may_fail(found[name], dtype)}
    if not casts:
        return
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


def _may_fail(dtype: pl.DataType, wanted: pl.DataType) -> bool:
    """Whether a value of one type may be none of another; numbers and texts take any number."""
    if dtype == wanted or wanted == pl.String or dtype in (pl.Null, pl.Boolean):
        return False
    if wanted.is_float():
        return not dtype.is_numeric()
    if not (dtype.is_integer() and wanted.is_integer()):
        return True
    try:
        pl.select(lowest=dtype.min(), highest=dtype.max()).cast(wanted)  # type: ignore[attr-defined]
    except PolarsError:
        return True
    return False


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
