"""Values that must be there: rules such as country=DE,FR and day=2026-11-01..yesterday."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, timedelta
from typing import NamedTuple

import polars as pl

from polars_mlmetrics.cli.conditions import columns_of
from polars_mlmetrics.cli.settings import CONDITION, Settings
from polars_mlmetrics.data.door import check_columns
from polars_mlmetrics.errors import ParameterError

OWN_PROBLEMS = (
    *("file_unreadable", "file_empty", "file_without_rows", "file_twice", "file_differs", "file_not_prepared"),
    "file_of_another_format",
    "value_missing",
)
"""The problems that the command finds beside those of the library."""

FILE = "file"
"""The name of a file, without its ending, as the key of a rule; a column of this name wins."""


class Missing(NamedTuple):
    """Values of a key that no row has, of those that a rule names."""

    column: str
    places: list[str]
    """The values with their key."""
    n_wanted: int


def missing_in(frame: pl.LazyFrame, files: Sequence[str], settings: Settings, bad: Sequence[str] = ()) -> list[Missing]:
    """The rules of which a value is not there; `files` are the names of files that hold rows.

    A bad file has a problem of its own, and so no value that stands in its name is missed.
    """
    found, schema = [], columns_of(frame.collect_schema())
    accepted = settings.options.get("ignore") or settings.file.get("ignore") or []
    with settings.naming("expect"):
        for text in settings.get("expect") or []:
            column, wanted = _read(text)
            if column == FILE and FILE not in schema:
                seen = set(files)
            else:
                check_columns([column], schema, what="column of expect")
                values = pl.col(column).dt.date() if isinstance(schema[column], pl.Datetime) else pl.col(column)
                seen = set(frame.select(values.cast(pl.String).drop_nulls().unique()).collect().to_series())
            lacking = [value for value in wanted if value not in seen and not any(value in name for name in bad)]
            places = [f"{column}={value}" for value in lacking]
            found.append(Missing(column, [place for place in places if place not in accepted], len(wanted)))
    return [each for each in found if each.places]


def _read(text: object) -> tuple[str, list[str]]:
    """The key of a rule, and its values."""
    rule = re.fullmatch(CONDITION, text) if isinstance(text, str) else None
    if rule is None or rule[2] != "=" or not rule[3]:
        raise ParameterError(f"{text!r} is no rule of values: write country=DE,FR or day=2026-11-01..yesterday.")
    return rule[1], [value for part in rule[3].split(",") for value in _values(part.strip())]


def _values(text: str) -> list[str]:
    """One value, or all days from one to another."""
    first, dots, last = text.partition("..")
    if not dots:
        return [text]
    start, end = _day(first), _day(last)
    if end < start:
        raise ParameterError(f"{text!r} names no day: it ends before it begins.")
    return [(start + timedelta(days=number)).isoformat() for number in range((end - start).days + 1)]


def _day(text: str) -> date:
    today = date.today()
    named = {"today": today, "yesterday": today - timedelta(days=1)}
    try:
        return named.get(text) or date.fromisoformat(text)
    except ValueError:
        raise ParameterError(f"{text!r} is no day: write 2026-11-01, today or yesterday.") from None
