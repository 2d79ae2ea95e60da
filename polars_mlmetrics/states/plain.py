"""Plain states: of types that table formats, databases and data frames have, so that a state can be kept in these."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, overload

import polars as pl
from polars.exceptions import PolarsError

from polars_mlmetrics.adapters.scan import ArrowStream, scan
from polars_mlmetrics.data.frames import AnyFrame, as_given, schema_of
from polars_mlmetrics.engine.contents import SAYS_NOTHING, Contents, check_complete, check_sources, content_of, fits
from polars_mlmetrics.errors import NameCollisionError, StateError, at_callers_line
from polars_mlmetrics.states.alike import check_alike, check_counts, common

TYPES = "types"
"""The key in the text of a plain state for the types that its columns had."""

NANS = "state_nans"
"""How many NaN a row has: some formats make them null, and a broken value would count as unknown."""


class PlainKind(NamedTuple):
    """How columns of one type are written in a plain state."""

    written: Callable[[pl.Expr, Any], pl.Expr]
    parameters: Callable[[Any], list[Any]] = lambda dtype: []
    """The parameters of the type."""
    of: Callable[..., pl.DataType] | None = None


def _cast(dtype: pl.DataType) -> Callable[[pl.Expr, Any], pl.Expr]:
    return lambda column, _: column.cast(dtype)


def _digits(column: pl.Expr, _: Any) -> pl.Expr:
    """The number that Polars holds for a time, as it is exact everywhere."""
    return column.to_physical().cast(pl.Int64)


def _moment(column: pl.Expr, dtype: Any) -> pl.Expr:
    """A time as microseconds, which all have, and a zone as UTC; nanoseconds as a number."""
    zone = dtype.time_zone and "UTC"
    return _digits(column, dtype) if dtype.time_unit == "ns" else column.cast(pl.Datetime("us", zone))


def _names(dtype: Any) -> list[str]:
    return [] if dtype.categories.is_global() else [dtype.categories.name(), dtype.categories.namespace()]


KINDS: dict[type[pl.DataType], PlainKind] = {
    **dict.fromkeys(
        (pl.Boolean, pl.Int64, pl.Float64, pl.String, pl.Date, pl.Binary), PlainKind(lambda column, _: column)
    ),
    **dict.fromkeys((pl.Int8, pl.Int16, pl.Int32, pl.UInt8, pl.UInt16, pl.UInt32), PlainKind(_cast(pl.Int64()))),
    **dict.fromkeys((pl.Float16, pl.Float32), PlainKind(_cast(pl.Float64()))),
    **dict.fromkeys((pl.Int128, pl.UInt64, pl.UInt128, pl.Null), PlainKind(_cast(pl.String()))),
    pl.Decimal: PlainKind(_cast(pl.String()), lambda dtype: [dtype.precision, dtype.scale], pl.Decimal),
    pl.Enum: PlainKind(_cast(pl.String()), lambda dtype: dtype.categories.to_list(), lambda *texts: pl.Enum(texts)),
    pl.Categorical: PlainKind(
        _cast(pl.String()), _names, lambda *names: pl.Categorical(pl.Categories(*names) if names else None)
    ),
    pl.Time: PlainKind(_digits),
    pl.Duration: PlainKind(_digits, lambda dtype: [dtype.time_unit], pl.Duration),
    pl.Datetime: PlainKind(_moment, lambda dtype: [dtype.time_unit, dtype.time_zone], pl.Datetime),
}
BY_NAME = {dtype.__name__: (dtype, kind) for dtype, kind in KINDS.items()}


@at_callers_line
def plain(state: AnyFrame) -> AnyFrame:
    """Make a state plain: of types that Delta, Iceberg, SQL databases and pandas have.

    `as_state` makes it a state again.

    Texts, whole numbers, floats, Booleans, dates and times are left as they are, in their widest type. What has no such
    type (a categorical, a duration) becomes a text or a number, and the text in the column `state` says what it was.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> log = pl.DataFrame({"sample": [1, 2, 3], "score": [0.9, 0.2, 0.4], "truth": [1, 0, 1]})
    >>> table = mlm.plain(mlm.state(log, mlm.accuracy()))
    >>> table["state"].dtype
    String
    >>> mlm.as_state(table).mlm.finish(mlm.accuracy()).item()
    0.6666666666666666
    """
    schema = schema_of(state, "plain")
    rows = state.lazy()
    contents = Contents.of(schema)
    names = contents.names()[1:]
    if NANS in names:
        raise NameCollisionError(f"{NANS!r} is a column this function creates: use .alias(...) on the key.")
    content = json.loads(contents.text()) | {TYPES: {name: _type_text(name, schema[name]) for name in names}}
    columns = [KINDS[schema[name].base_type()].written(pl.col(name), schema[name]) for name in names]
    text = pl.lit(json.dumps(content, sort_keys=True), pl.String).alias("state")
    return as_given(state, rows.select(text, *columns, _n_nans(names, schema)))


def _type_text(name: str, dtype: pl.DataType) -> list[Any]:
    kind = KINDS.get(dtype.base_type())
    if kind is None:
        raise StateError(
            f"the column {name!r} of this state is {dtype}, which has no plain type. Make by= of its parts."
        )
    return [dtype.base_type().__name__, *kind.parameters(dtype)]


def _n_nans(names: list[str], schema: Mapping[str, pl.DataType]) -> pl.Expr:
    nans = [pl.col(name).is_nan().fill_null(False).cast(pl.Int64) for name in names if schema[name].is_float()]
    return pl.sum_horizontal([pl.lit(0, pl.Int64), *nans]).alias(NANS)


@overload
def as_state(frame: pl.LazyFrame) -> pl.LazyFrame: ...
@overload
def as_state(frame: pl.DataFrame | ArrowStream) -> pl.DataFrame: ...
@at_callers_line
def as_state(frame: pl.LazyFrame | pl.DataFrame | ArrowStream) -> pl.LazyFrame | pl.DataFrame:
    """Make a state of its rows in another table, such as those that `plain` made: of Delta, SQL, pandas or Arrow.

    The rows are read, and checked as `scan_states` checks files: that they are rows of states, that all have the same
    metrics, keys, roles and buckets, that no value was changed on the way, and that no file of the log is there twice.
    A state that is one already is checked as well.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> log = pl.DataFrame({"sample": [1, 2, 3], "score": [0.9, 0.2, 0.4], "truth": [1, 0, 1]})
    >>> frame = mlm.state(log, mlm.accuracy(), buckets=0).mlm.plain().to_pandas()
    >>> mlm.as_state(frame).mlm.finish(mlm.accuracy()).item()
    0.6666666666666666
    """
    rows = scan(frame).collect()
    read = {text: _contents_and_types(text) for text in _texts(rows)}
    parts = [_typed(rows.filter(pl.col("state").cast(pl.String) == text), *read[text]) for text in read]
    first, *others = parts
    for part in others:
        check_alike("rows of this table", part.schema, "other rows", first.schema)
    contents = common([contents for contents, _ in read.values()])
    state = pl.concat([part.with_columns(contents.column()) for part in parts])
    check_sources(state)
    check_counts(state.lazy(), contents)
    return state.lazy() if isinstance(frame, pl.LazyFrame) else state


def _texts(rows: pl.DataFrame) -> list[str]:
    """The texts in rows of states: more than one where the rows are of several states."""
    dtype = rows.schema.get("state")
    if dtype is None or not (dtype == pl.String or isinstance(dtype, pl.Enum | pl.Categorical)):
        raise StateError("this is not a state: it lacks the column 'state', as `state` or `plain` makes it.")
    texts = rows["state"].cast(pl.String).unique().sort()
    if texts.null_count():
        raise StateError("this table has rows whose 'state' is null: they are of no state.")
    if texts.is_empty() and isinstance(dtype, pl.Enum) and len(dtype.categories) == 1:
        return dtype.categories.to_list()
    if texts.is_empty():
        raise StateError("this table has no rows, and so does not say which state it is.")
    return texts.to_list()


def _contents_and_types(text: str) -> tuple[Contents, dict[str, pl.DataType]]:
    """The contents of a state, and the types that its columns had; no types of a state that is not plain."""
    content = content_of(text)
    types = content.pop(TYPES, {})
    if not fits(types, {str: [object]}):
        raise StateError(SAYS_NOTHING)
    return Contents.of_json(content), {name: _type(spec) for name, spec in types.items()}


def _type(spec: list[Any]) -> pl.DataType:
    try:
        name, *rest = spec
        dtype, kind = BY_NAME[name]
        read = (kind.of or dtype)(*rest)
    except (KeyError, TypeError, ValueError, PolarsError):
        raise StateError(SAYS_NOTHING) from None
    return read


def _typed(rows: pl.DataFrame, contents: Contents, types: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Rows of one state with the types that they had, if that changes no value."""
    names = contents.names()[1:]
    check_complete(rows.columns, [*names, NANS] if types else names)
    if types and types.keys() != {*names}:
        raise StateError(SAYS_NOTHING)
    typed = rows.select(contents.column(), *(_read(rows[name], types.get(name)) for name in names))
    Contents.of(typed.schema)
    if types:
        found = typed.with_columns(_n_nans(names, typed.schema))[NANS]
        if not found.eq_missing(rows[NANS].cast(pl.Int64)).all():
            raise StateError(
                "NaN has become null on the way, so that broken values would count as unknown. From pandas, use "
                ".to_pandas(use_pyarrow_extension_array=True) when you make the table."
            )
    return typed


def _read(column: pl.Series, dtype: pl.DataType | None) -> pl.Series:
    """A column as the type that it had; an error where its values are others then."""
    if dtype is None or column.dtype == dtype:
        return column
    try:
        typed = column.cast(dtype)
        written = typed.to_frame().select(KINDS[dtype.base_type()].written(pl.col(column.name), dtype)).to_series()
        is_same = column.is_null().equals(typed.is_null()) and column.equals(written.cast(column.dtype))
        if column.dtype.is_float() and dtype.is_integer():  # as pandas has whole numbers beside nulls
            is_same = is_same and bool((column.abs() < 2**53).all())
    except PolarsError:
        is_same = False
    if not is_same:
        raise StateError(
            f"the column {column.name!r} of this table is {column.dtype}, and was {dtype} in the state: some of its "
            "values cannot be read as that type without a change."
        )
    return typed
