"""The common schema of the files of a log, or the file that does not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import polars as pl
import polars.selectors as cs
from polars.exceptions import PanicException, PolarsError

from polars_mlmetrics.adapters.formats import Format, scanned
from polars_mlmetrics.data.stores import Place, Store
from polars_mlmetrics.errors import FileError

Missing = Literal["raise", "null"]
REMEDY = "schema= sets the columns and types for all files."
FILLED = f"missing='null' fills missing columns with nulls, and {REMEDY}"
TEXTS = ("csv", "ndjson")
"""The formats that do not hold types."""


def schema_of(path: Place, kind: Format, wanted: pl.Schema | None, store: Store | None = None) -> pl.Schema:
    """The columns of a file; for text files, with the wanted types."""
    options = {} if store is None else store.for_polars()
    try:
        found = scanned([path.as_posix()], kind, **options).collect_schema()
    except (OSError, ValueError, PolarsError, PanicException) as error:
        first = next(iter(str(error).splitlines()), type(error).__name__)
        why = first if store is None else store.told(error)
        raise FileError(f"{path} cannot be read as {kind}: {why}") from None
    return pl.Schema({**found, **overrides(found, kind, wanted).get("schema_overrides", {})})


def overrides(found: pl.Schema, kind: Format, wanted: pl.Schema | None) -> dict[str, Any]:
    """The types that a scan of text files is given."""
    if kind not in TEXTS or wanted is None:
        return {}
    return {"schema_overrides": {name: dtype for name, dtype in wanted.items() if name in found}}


def common_schema(
    schemas: Mapping[Place, pl.Schema], kind: Format, wanted: pl.Schema | None, missing: Missing
) -> pl.Schema:
    """The schema with which all files are read, or an error that names the first file that does not fit."""
    (first, expected), *others = schemas.items()
    if wanted is not None:
        for path, schema in schemas.items():
            _check_wanted(path, schema, wanted, missing)
        return wanted
    if missing == "null":
        return _union(schemas, kind)
    for path, schema in others:
        _check_same(path, schema, first, expected, kind)
    return expected


def read_as(rows: pl.LazyFrame, found: pl.Schema, wanted: pl.Schema, keys: Sequence[str]) -> pl.LazyFrame:
    """Rows of files that have the columns `found`, with those that are wanted, and the keys of their folders."""
    columns = [
        pl.lit(None, dtype).alias(name)
        if name not in found
        else cs.by_name(name)
        if found[name] == dtype
        else cs.by_name(name).cast(dtype)
        for name, dtype in wanted.items()
    ]
    return rows.select(*columns, cs.by_name(*keys))


def _check_wanted(path: Place, schema: pl.Schema, wanted: pl.Schema, missing: Missing) -> None:
    for name, dtype in wanted.items():
        if name not in schema:
            if missing == "raise":
                raise FileError(f"{path} has no column {name!r}. missing='null' fills it with nulls.")
        elif not _can_be_read_as(schema[name], dtype):
            raise FileError(f"column {name!r} is {schema[name]} in {path} and cannot be read as {dtype}.")


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
    try:
        pl.Series(dtype=dtype).cast(wanted)
    except PolarsError:
        return False
    return True


def _union(schemas: Mapping[Place, pl.Schema], kind: Format) -> pl.Schema:
    """The columns of all files; files that share a column must agree on its type."""
    union: dict[str, pl.DataType] = {}
    seen: dict[str, Place] = {}
    for path, schema in schemas.items():
        for name, dtype in schema.items():
            if union.setdefault(name, dtype) != dtype:
                raise _other_type(name, dtype, path, union[name], seen[name], kind)
            seen.setdefault(name, path)
    return pl.Schema(union)


def _check_same(path: Place, schema: pl.Schema, first: Place, expected: pl.Schema, kind: Format) -> None:
    for name, dtype in expected.items():
        if name not in schema:
            raise FileError(f"{path} has no column {name!r} ({dtype} in {first}).").with_remedy(FILLED)
        if schema[name] != dtype:
            raise _other_type(name, schema[name], path, dtype, first, kind)
    for name, dtype in schema.items():
        if name not in expected:
            raise FileError(f"{path} has a column {name!r} ({dtype}), which is not in {first}.").with_remedy(FILLED)
    # Polars reads the others by name, and csv by position.
    if kind == "csv" and schema.names() != expected.names():
        raise FileError(
            f"{path} has its columns in a different order from {first}: {', '.join(schema)} and {', '.join(expected)}."
        ).with_remedy(REMEDY)


def _other_type(
    name: str, dtype: pl.DataType, path: Place, other: pl.DataType, first: Place, kind: Format
) -> FileError:
    guessed = f" Polars guesses the types of {kind} files." if kind in TEXTS else ""
    error = FileError(f"column {name!r} is {dtype} in {path} and {other} in {first}.{guessed}")
    return error.with_remedy(REMEDY)
