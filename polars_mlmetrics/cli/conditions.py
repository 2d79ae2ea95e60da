"""Conditions on rows, and values of columns, as they are typed: country=DE, ts>=2026-11-05T12:00."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl

from polars_mlmetrics.cli.calls import Code, col, operation
from polars_mlmetrics.cli.settings import CONDITION
from polars_mlmetrics.data.door import check_columns
from polars_mlmetrics.data.frames import is_state
from polars_mlmetrics.engine.contents import Contents
from polars_mlmetrics.errors import ColumnError, ParameterError


def where(log: Code, conditions: Sequence[Any]) -> Code:
    """The rows for which all conditions hold."""
    if not conditions:
        return log
    schema = columns_of(log.value.collect_schema())
    return log.method("filter", *(condition(text, schema) for text in conditions))


def columns_of(schema: pl.Schema) -> pl.Schema:
    """The columns of a log, or of the groups of a state: its other columns are statistics."""
    return pl.Schema({name: schema[name] for name in Contents.of(schema).by}) if is_state(schema) else schema


def condition(text: Any, schema: pl.Schema) -> Code:
    """A condition as an expression. A day that is compared with times means all of its hours."""
    found = re.fullmatch(CONDITION, text) if isinstance(text, str) else None
    if found is None:
        raise ParameterError(f"{text!r} is no condition: write COLUMN=VALUE, such as country=DE (also != < <= > >=).")
    column, sign, value = found.groups()
    check_columns([column], schema, what="column of a condition")
    if value == "null":
        if sign not in ("=", "==", "!="):
            raise ParameterError(f"{text!r} is no condition: null is compared with = or !=.")
        return col(column).method("is_not_null" if sign == "!=" else "is_null")
    left, literal = col(column), value_for(value, column, schema)
    if isinstance(schema[column], pl.Datetime) and not isinstance(literal, datetime):
        left = left.method("dt.date")
    return operation(left, "==" if sign == "=" else sign, literal)


def value_for(text: Any, column: str, schema: pl.Schema) -> Any:
    """A value of a column, from how it is written on a command line or in a file."""
    dtype = schema[column]
    if not isinstance(text, str) or isinstance(dtype, pl.String | pl.Categorical | pl.Enum):
        return text
    try:
        return _read(text, dtype)
    except ValueError as error:
        why = f" ({error})" if isinstance(error, ZoneError) else ""
        raise ColumnError(f"column {column!r} is {dtype}, and {text!r} is no value of it{why}.") from None


class ZoneError(ValueError):
    """A time has a zone, and the column has none."""


def _read(text: str, dtype: pl.DataType) -> Any:
    if dtype.is_integer():
        return int(text)
    if dtype.is_float():
        return float(text)
    if dtype == pl.Boolean and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if dtype == pl.Date or (isinstance(dtype, pl.Datetime) and re.fullmatch(r"\d{4}-?\d\d-?\d\d", text)):
        return date.fromisoformat(text)
    if isinstance(dtype, pl.Datetime):
        return _in_zone(datetime.fromisoformat(text), dtype.time_zone)
    raise ValueError(text)


def _in_zone(time: datetime, zone: str | None) -> datetime:
    """A time in the zone of its column, which is meant where the time says none."""
    if zone is None:
        if time.tzinfo is not None:
            raise ZoneError("its times have no zone")
        return time
    return time.replace(tzinfo=ZoneInfo(zone)) if time.tzinfo is None else time.astimezone(ZoneInfo(zone))
