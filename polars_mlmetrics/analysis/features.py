"""Features: columns whose values, or ranges of values, are conditions of slices; and a slice as an expression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import ROUND_CEILING, Decimal
from typing import Any, NamedTuple

import polars as pl

from polars_mlmetrics.data.expressions import all_of, any_of
from polars_mlmetrics.data.frames import is_text
from polars_mlmetrics.errors import ColumnError, ParameterError
from polars_mlmetrics.formula.arithmetic import cuts
from polars_mlmetrics.query.account import first_that_holds

CONDITIONS = pl.List(
    pl.Struct(
        {
            "feature": pl.String,
            "type": pl.String,
            "kind": pl.String,
            "low": pl.String,
            "high": pl.String,
            "values": pl.List(pl.String),
        }
    )
)
"""The conditions of a slice, in texts."""

TENTH = 10
"""An edge may be moved by this part of a bin to a rounder number."""

DAYS, TIMES = ("1y", "1mo", "1w"), ("1y", "1mo", "1w", "1d", "1h", "1m", "1s")
"""The round edges of dates and of times, the roundest first."""


class Condition(NamedTuple):
    """What a slice asks of one column. Values are texts: `type` says how they are read."""

    feature: str
    type: str
    """text, boolean, integer, number, date, time (without a zone) or utc (a time in any zone, as that of UTC)."""
    kind: str
    """is (the one value), range (low <= value < high, but for the values), other (than the values), null or nan."""
    low: str | None = None
    high: str | None = None
    values: Sequence[str] = ()

    def holds(self) -> pl.Expr:
        """Whether it holds in a row: never null."""
        column = pl.col(self.feature)
        if self.kind == "null":
            return column.is_null()
        if self.kind == "nan":
            return column.is_nan().fill_null(False)
        if self.kind == "is":
            return self._is_any().fill_null(False)
        known = column.is_not_null()
        inside = [known, self._reading().is_not_nan()] if self.type == "number" else [known]
        if self.low is not None:
            inside.append(self._reading(in_range=True) >= self._literal(self.low, in_range=True))
        if self.high is not None:
            inside.append(self._reading(in_range=True) < self._literal(self.high, in_range=True))
        return all_of([*inside, ~self._is_any()]).fill_null(False)

    def text(self) -> str:
        """The condition in words."""
        if self.kind != "range":
            words = {"null": "null", "nan": "NaN", "other": "other"}
            return f"{self.feature}={words.get(self.kind) or self.values[0]}"
        but = f" but not {', '.join(self.values)}" if self.values else ""
        if self.low is None:
            return f"{self.feature} < {self.high}{but}"
        if self.high is None:
            return f"{self.feature} >= {self.low}{but}"
        return f"{self.feature} in [{self.low}, {self.high}){but}"

    def _is_any(self) -> pl.Expr:
        return any_of([pl.lit(False), *(self._reading() == self._literal(value) for value in self.values)])

    def _reading(self, *, in_range: bool = False) -> pl.Expr:
        return reading(self.feature, "number" if in_range and self.type == "integer" else self.type)

    def _literal(self, text: str, *, in_range: bool = False) -> pl.Expr:
        if self.type == "number" or (self.type == "integer" and in_range):
            return pl.lit(float(text), dtype=pl.Float64)
        if self.type == "integer":
            return pl.lit(int(text))
        if self.type == "boolean":
            return pl.lit(text == "true")
        if self.type == "date":
            return pl.lit(date.fromisoformat(text))
        if self.type in ("time", "utc"):
            return pl.lit(datetime.fromisoformat(text))
        return pl.lit(text, dtype=pl.String)


def slice_filter(row: Mapping[str, Any] | pl.DataFrame) -> pl.Expr:
    """The rows of a slice that `find_slices` found, as an expression for `filter`.

    Of the groups of `by=` it says nothing: the same slice of any group.

    Parameters
    ----------
    row
        A row of the table: a dict, such as `table.row(0, named=True)`, or a frame of one row, such as `table[:1]`.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> log = pl.DataFrame({"sample": range(400), "country": ["DE", None] * 200, "truth": 1.0}).with_columns(
    ...     score=pl.col("sample") % 7 + pl.col("country").is_null() * 5.0
    ... )
    >>> table = mlm.find_slices(log, mlm.mae(), ["country"])
    >>> table["slice"].to_list()
    ['country=null']
    >>> log.filter(mlm.slice_filter(table[:1])).height
    200
    """
    if isinstance(row, pl.DataFrame):
        if row.height != 1:
            raise ParameterError(f"slice_filter takes one row, and the frame has {row.height}: use table[:1].")
        row = row.row(0, named=True)
    if not isinstance(row, Mapping) or not row.get("conditions"):
        raise ParameterError("slice_filter takes a row of find_slices, with its column 'conditions'.")
    return all_of([Condition(**condition).holds() for condition in row["conditions"]])


class Feature(NamedTuple):
    """A column, and the conditions of which each of its values meets one."""

    name: str
    conditions: list[Condition]

    @classmethod
    def of(cls, rows: pl.DataFrame, name: str, top: int, bins: int) -> Feature:
        """The feature of a column, by the values that it has."""
        kind = type_of(name, rows.schema[name])
        column = rows[name]
        lacking = [Condition(name, kind, "null")] if column.null_count() else []
        if kind == "number" and rows.schema[name].is_float() and column.is_nan().any():
            lacking.append(Condition(name, kind, "nan"))
        known = rows.select(reading(name, kind)).to_series().drop_nulls()
        known = known.drop_nans() if kind == "number" else known
        counts = known.alias("value").value_counts(name="count").sort(["count", "value"], descending=[True, False])
        several = Values(name, kind, known, counts)
        is_ordered = kind not in ("text", "boolean")
        return cls(name, [*(several.in_bins(bins, top) if is_ordered else several.most_frequent(top)), *lacking])

    def code(self) -> pl.Expr:
        """The place of the condition that a row meets."""
        cases = [(condition.holds(), pl.lit(place)) for place, condition in enumerate(self.conditions)]
        return first_that_holds(cases, pl.lit(-1)).cast(pl.Int64)


class Values(NamedTuple):
    """The known values of a column, with their counts, the most frequent first."""

    name: str
    type: str
    known: pl.Series
    counts: pl.DataFrame

    def most_frequent(self, top: int) -> list[Condition]:
        """The most frequent values, and all others as one."""
        values = [shown(value) for value in self.counts["value"].head(top).to_list()]
        each = [self._is(value) for value in values]
        others = [Condition(self.name, self.type, "other", values=values)] if self.counts.height > top else []
        return [*each, *others]

    def in_bins(self, bins: int, top: int) -> list[Condition]:
        """Few values one by one; of many the ranges, but for values that would fill a range alone."""
        if self.counts.height <= top:
            return [self._is(shown(value)) for value in self.counts["value"].sort().to_list()]
        is_alone = pl.col("count") * bins > self.known.len()
        alone = self.counts.filter(is_alone)["value"].sort()
        rest = self.known.filter(~self.known.is_in(alone.implode())).sort()
        edges = self._edges(rest, bins)
        bounds = list(zip([None, *edges], [*edges, None], strict=True))
        ranges = [self._range(low, high, alone.to_list()) for low, high in bounds]
        return [*ranges, *(self._is(shown(value)) for value in alone.to_list())]

    def _is(self, value: str) -> Condition:
        return Condition(self.name, self.type, "is", values=[value])

    def _range(self, low: Any, high: Any, alone: Sequence[Any]) -> Condition:
        inside = [v for v in alone if (low is None or v >= low) and (high is None or v < high)]
        start, end = (None if edge is None else shown(edge) for edge in (low, high))
        return Condition(self.name, self.type, "range", start, end, [shown(value) for value in inside])

    def _edges(self, rest: pl.Series, bins: int) -> list[Any]:
        """Round edges between bins of about as many rows."""
        if rest.dtype.is_float():
            rest = rest.filter(rest.is_finite())
        places = cuts(rest.len(), bins * TENTH)
        if not rest.len():
            return []
        between = [(rest[places[TENTH * i - 2]], rest[places[TENTH * i]]) for i in range(1, bins)]
        edges = {roundest(low, high) for low, high in between}
        return sorted(edge for edge in edges if edge > rest[0])


def type_of(name: str, dtype: pl.DataType) -> str:
    """How the values of a feature are read; what cannot be one is refused."""
    if dtype == pl.Boolean:
        return "boolean"
    if dtype.is_integer():
        return "integer"
    if dtype.is_numeric():
        return "number"
    if is_text(dtype) or dtype == pl.Null:
        return "text"
    if isinstance(dtype, pl.Date | pl.Datetime):
        return "date" if isinstance(dtype, pl.Date) else "time" if dtype.time_zone is None else "utc"
    raise ColumnError(
        f"feature {name!r} is {dtype}: it must be text, a category, Boolean, a number, a date or a time. Cast it, or "
        "add a column of what matters in it."
    )


def reading(feature: str, kind: str) -> pl.Expr:
    """The values of a feature, in the type in which they are compared."""
    column = pl.col(feature)
    if kind == "text":
        return column.cast(pl.String)
    if kind == "number":
        return column.cast(pl.Float64)
    if kind == "utc":
        return column.dt.convert_time_zone("UTC").dt.replace_time_zone(None).dt.cast_time_unit("us")
    return column.dt.cast_time_unit("us") if kind == "time" else column


def shown(value: Any) -> str:
    """A value as text, which can be read again."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)


def roundest(low: Any, high: Any) -> Any:
    """The roundest value between two of a type."""
    if isinstance(low, date):
        return _roundest_date(low, high)
    number = _roundest_number(Decimal(low), Decimal(high))
    return float(number) if low <= float(number) <= high else low


def _roundest_number(low: Decimal, high: Decimal) -> Decimal:
    size = max(abs(low), abs(high))
    for exponent in range(size.adjusted() + 1, size.adjusted() - 17, -1):
        step = Decimal(10) ** exponent
        # Whole steps, then halves, then quarters: 30, 35, 27.5.
        for parts, part in ((1, "1"), (2, "0.5"), (4, "0.25")):
            times = (low * Decimal(10) ** -exponent * parts).to_integral_value(ROUND_CEILING)
            if times * step * Decimal(part) <= high:
                return times * step * Decimal(part)
    return low


def _roundest_date(low: date, high: date) -> date:
    ends = pl.Series([low, high])
    for unit in TIMES if isinstance(low, datetime) else DAYS:
        edge: date = ends.dt.truncate(unit)[1]
        if edge >= low:
            return edge
    return low
