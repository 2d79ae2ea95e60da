"""Features: columns whose values, or ranges of values, are conditions of slices; and a slice as an expression."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import ROUND_CEILING, Decimal
from itertools import pairwise
from typing import Any, NamedTuple

import polars as pl

from polars_mlmetrics.data.expressions import all_of, any_of
from polars_mlmetrics.data.frames import is_text
from polars_mlmetrics.errors import INTERNAL, ColumnError, ParameterError, at_callers_line, warn_at_callers_line
from polars_mlmetrics.formula.arithmetic import cuts, first_that_holds, whole_times
from polars_mlmetrics.query.query import Query

CONDITIONS = pl.List(
    pl.Struct({**dict.fromkeys(("feature", "type", "kind", "low", "high"), pl.String), "values": pl.List(pl.String)})
)
"""The conditions of a slice, in texts."""

VALUE, COUNT, KIND = (f"{INTERNAL}{name}" for name in ("value", "count", "kind"))
"""The values of a column, how many rows have each, and of lists without values what they are."""

TENTH = 10
"""An edge may be moved by this part of a bin to a rounder number."""

MANY, LOOKED = 100_000, 2_000_000
"""Of a column of more numbers than MANY, in a log of more rows than LOOKED, about so many rows give the ranges."""

DAYS, TIMES = ("1y", "1mo", "1w"), ("1y", "1mo", "1w", "1d", "1h", "1m", "1s")
"""The round edges of dates and of times, the roundest first."""


READERS: dict[str, Callable[[str], Any]] = {
    "number": float,
    "integer": int,
    "boolean": lambda text: text == "true",
    "date": date.fromisoformat,
    **dict.fromkeys(("time", "utc"), datetime.fromisoformat),
}
"""How the values of each type are read from texts; others are texts."""


class Condition(NamedTuple):
    """A condition of a slice on one column. Values are texts: `type` says how they are read."""

    feature: str
    type: str
    """text, boolean, integer, number, date, time (without a zone) or utc (a time in any zone, as that of UTC)."""
    kind: str
    """The relation to the value: is (the one value), range (low <= it < high, but for the values), other (than the
    values), null, nan; of a list has (the one value among others) or empty."""
    low: str | None = None
    high: str | None = None
    values: Sequence[str] = ()

    def holds(self) -> pl.Expr:
        """Whether it holds in a row: never null."""
        column = pl.col(self.feature)
        if self.kind == "has":
            values = column.list.eval(reading_of(pl.element(), self.type))
            return values.list.contains(literal(self.values[0], self.type)).fill_null(False)
        value = reading_of(column, self.type)
        is_any = any_of([value == literal(each, self.type) for each in self.values])
        if self.kind in ("range", "other"):
            # The ranges of whole numbers have edges that are none.
            kind = "number" if self.type == "integer" else self.type
            inside = [column.is_not_null(), ~is_any, *([value.is_not_nan()] if self.type == "number" else [])]
            inside += [] if self.low is None else [reading_of(column, kind) >= literal(self.low, kind)]
            inside += [] if self.high is None else [reading_of(column, kind) < literal(self.high, kind)]
            return all_of(inside).fill_null(False)
        lacks = {"null": column.is_null(), "nan": column.is_nan(), "empty": column.list.len() == 0}
        return lacks.get(self.kind, is_any).fill_null(False)

    def text(self) -> str:
        """The condition in words."""
        if self.kind == "has":
            return f"{self.feature} has {self.values[0]}"
        if self.kind != "range":
            words = {"null": "null", "nan": "NaN", "other": "other", "empty": "[]"}
            return f"{self.feature}={words.get(self.kind) or self.values[0]}"
        but = f" but not {', '.join(self.values)}" if self.values else ""
        if self.low is None:
            return f"{self.feature} < {self.high}{but}"
        if self.high is None:
            return f"{self.feature} >= {self.low}{but}"
        return f"{self.feature} in [{self.low}, {self.high}){but}"


@at_callers_line
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
    """A column, and conditions of which each row meets one; of a list, of which it meets one or none."""

    name: str
    conditions: list[Condition]
    is_partial: bool = False
    """Whether a row may meet none."""

    @property
    def size(self) -> int:
        """How many codes there are."""
        return len(self.conditions) + self.is_partial

    def code(self) -> pl.Expr:
        """The place of the condition that a row meets."""
        # A number is a byte where it can be: there is one of each feature in every row.
        dtype = pl.UInt8 if self.size <= 2**8 else pl.Int32
        # Single values are looked up, and other ones are those that meet no condition.
        places = {each.values[0]: place for place, each in enumerate(self.conditions) if each.kind == "is"}
        held = [(place, each) for place, each in enumerate(self.conditions) if each.kind not in ("is", "other")]
        other = next((i for i, each in enumerate(self.conditions) if each.kind == "other"), len(self.conditions))
        code = first_that_holds([(each.holds(), pl.lit(place)) for place, each in held], pl.lit(other)).cast(dtype)
        kind = self.conditions[0].type
        value = reading_of(pl.col(self.name), kind)
        if places and kind == "text":
            # The first conditions are those of values, so that a value's number is its place.
            return value.cast(pl.Enum([*places]), strict=False).to_physical().cast(dtype).fill_null(code)
        if places:
            values = pl.select(pl.concat_list(literal(text, kind) for text in places).explode()).to_series()
            return value.replace_strict(values, [*places.values()], default=code, return_dtype=dtype)
        return code


def counts_of(rows: pl.LazyFrame, name: str, n_rows: pl.Expr | None = None) -> pl.LazyFrame:
    """The values of a column, and how many rows have each; of lists each value once, and null with its kind."""
    dtype, column = rows.collect_schema()[name], pl.col(name)
    count = (pl.len() if n_rows is None else n_rows.sum()).cast(pl.Int64).alias(COUNT)
    if not isinstance(dtype, pl.List):
        return rows.group_by(reading_of(column, type_of(name, dtype)).alias(VALUE)).agg(count)
    kind = pl.when(column.is_null()).then(pl.lit("null")).when(column.list.len() == 0).then(pl.lit("empty"))
    values = column.list.eval(reading_of(pl.element(), type_of(name, dtype))).list.unique().alias(VALUE)
    found = rows.select(values, kind.alias(KIND)).explode(VALUE, empty_as_null=True, keep_nulls=True)
    return found.filter(pl.any_horizontal(pl.col(VALUE, KIND).is_not_null())).group_by(VALUE, KIND).agg(count)


def values_of(query: Query, name: str) -> pl.LazyFrame:
    """The values of a column, and how many rows have each."""
    rows, dtype = query.rows, query.schema[name]
    kind = type_of(name, dtype)
    if isinstance(dtype, pl.List) or kind in ("text", "boolean"):
        return counts_of(rows, name)
    n_rows, n_values = rows.select(pl.len(), pl.col(name).approx_n_unique()).collect().row(0)
    if n_rows <= LOOKED or n_values <= MANY:
        return counts_of(rows, name)
    # Some rows give the ranges, into which any other value falls. What lies in none is counted in all.
    some = counts_of(rows.gather_every(whole_times(LOOKED, n_rows)), name)
    is_number = pl.col(name).is_not_nan() if kind == "number" else pl.col(name).is_not_null()
    lacking = counts_of(rows.filter(~is_number.fill_null(False)), name)
    return pl.concat([some, lacking]).group_by(VALUE).agg(pl.col(COUNT).sum())


def features_of(schema: Mapping[str, Any], counted: Mapping[str, pl.DataFrame], top: int, bins: int) -> list[Feature]:
    """The features of more than one value; of the others a warning says that they are left out."""
    found = {name: features_in(name, schema[name], counts, top, bins) for name, counts in counted.items()}
    constant = [name for name, features in found.items() if sum(each.size for each in features) < 2]
    if len(constant) == len(found):
        raise ParameterError(f"no feature has two values to compare: {', '.join(constant)}.")
    warn_of(constant, "have one value only, and are left out")
    return [each for name, features in found.items() if name not in constant for each in features]


def warn_of(names: Sequence[str], what: str) -> None:
    """Warn of features, where there are such."""
    if names:
        warn_at_callers_line(f"these features {what}: {', '.join(names)}.")


def features_in(name: str, dtype: pl.DataType, counts: pl.DataFrame, top: int, bins: int) -> list[Feature]:
    """The features of a column, by its values and how many rows have each.

    It is one; of lists there is one for each of the most frequent values, and one for lists without any.
    """
    kind, is_null = type_of(name, dtype), pl.col(VALUE).is_null()
    known = counts.filter(~is_null).sort([COUNT, VALUE], descending=[True, False])
    if isinstance(dtype, pl.List):
        several = [[Condition(name, kind, "has", values=[shown(value)])] for value in known[VALUE].head(top)]
        lacking = [Condition(name, kind, word) for word in counts.filter(is_null)[KIND].sort()]
        return [Feature(name, each, is_partial=True) for each in (*several, lacking) if each]
    lacking = [Condition(name, kind, "null")] if counts[VALUE].null_count() else []
    if known[VALUE].dtype.is_float():
        lacking += [Condition(name, kind, "nan")] if known[VALUE].is_nan().any() else []
        known = known.filter(pl.col(VALUE).is_not_nan())
    is_ordered = kind not in ("text", "boolean")
    if is_ordered and known.height > top:
        return [Feature(name, [*_ranges(name, kind, known, bins), *lacking])]
    # Few values one by one; of more texts the most frequent ones, and all others as one.
    values = [shown(value) for value in (known[VALUE].sort() if is_ordered else known[VALUE].head(top))]
    others = [Condition(name, kind, "other", values=values)] if known.height > top else []
    return [Feature(name, [*(Condition(name, kind, "is", values=[value]) for value in values), *others, *lacking])]


def _ranges(name: str, kind: str, known: pl.DataFrame, bins: int) -> list[Condition]:
    """Ranges of values, but for values that would fill a range alone."""
    is_alone = pl.col(COUNT) * bins > pl.col(COUNT).sum()
    alone = known.filter(is_alone)[VALUE].sort().to_list()
    edges = _edges(known.filter(~is_alone).sort(VALUE), bins)
    found = []
    for low, high in pairwise([None, *edges, None]):
        inside = [shown(v) for v in alone if (low is None or v >= low) and (high is None or v < high)]
        start, end = (None if edge is None else shown(edge) for edge in (low, high))
        found.append(Condition(name, kind, "range", start, end, inside))
    return [*found, *(Condition(name, kind, "is", values=[shown(value)]) for value in alone)]


def _edges(rest: pl.DataFrame, bins: int) -> list[Any]:
    """Round edges between bins of about as many rows."""
    if rest[VALUE].dtype.is_float():
        rest = rest.filter(pl.col(VALUE).is_finite())
    if not rest.height:
        return []
    reached, values = rest[COUNT].cum_sum(), rest[VALUE]
    places = cuts(int(reached[-1]), bins * TENTH)
    # The value that a row has, were the rows in order.
    at = values.gather(reached.search_sorted(pl.Series(places, dtype=pl.Int64), side="right"))
    edges = {roundest(at[TENTH * i - 2], at[TENTH * i]) for i in range(1, bins)}
    return sorted(edge for edge in edges if edge > values[0])


def type_of(name: str, dtype: pl.DataType) -> str:
    """How the values of a feature, or those in its lists, are read; what cannot be one is refused."""
    if isinstance(dtype, pl.List) and not dtype.inner.is_nested():
        return type_of(name, pl.Series(dtype=dtype.inner).dtype)
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


def literal(text: str, kind: str) -> pl.Expr:
    """A value that is written as a text."""
    return pl.lit(READERS.get(kind, str)(text))


def reading_of(column: pl.Expr, kind: str) -> pl.Expr:
    """The values of a feature, in the type in which they are compared."""
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
