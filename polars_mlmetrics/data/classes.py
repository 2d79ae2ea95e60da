"""Classes: predictions and truths that are names of any type, compared as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from polars_mlmetrics.errors import ColumnError

if TYPE_CHECKING:
    from polars._typing import PolarsDataType

FLOATS = (pl.Float16, pl.Float32, pl.Float64)
TEXTS = (pl.String, pl.Categorical, pl.Enum)


def is_nan(value: pl.Expr, dtype: pl.DataType | None) -> pl.Expr | None:
    """The rows that are NaN, of a type that may be unknown; None where it is one that has no NaN."""
    if dtype is None:
        return _is_nan_of_unknown_type(value)
    return value.is_nan() if dtype.is_float() else None


def _is_nan_of_unknown_type(value: pl.Expr) -> pl.Expr:
    # `is_nan` raises on text. Every type has a hash, but some whole numbers have that of a NaN. Inside a struct every
    # type is shown as text too, text itself in quotes; that takes long, so only the few rows of such a hash are.
    code = value.hash()
    may_be = pl.any_horizontal(code == pl.lit(float("nan"), dtype=dtype).hash() for dtype in FLOATS)
    return pl.when(may_be).then(pl.struct(value)).cast(pl.String, strict=False).eq_missing(pl.lit("{NaN}"))


def check_classes(what: str, score: pl.DataType, truth: pl.DataType) -> None:
    """Refuse predicted and true classes that cannot be compared, or that are no classes."""
    given = f"{what} compares classes, but score is {score}, truth is {truth}"
    if _is_fraction(score) and (truth.is_integer() or truth == pl.Boolean):
        raise ColumnError(
            f"{given}. A probability needs a threshold: accuracy(), or confusion(threshold=0.5). If the scores are "
            "class numbers that became floats, cast them to integers."
        )
    if pl.Object in (score, truth) or not _are_of_one_kind(score, truth):
        raise ColumnError(f"{given}: these cannot be compared. Cast one to the type of the other.")


def _is_fraction(dtype: pl.DataType) -> bool:
    return dtype.is_float() or (isinstance(dtype, pl.Decimal) and dtype.scale > 0)


def _are_of_one_kind(one: PolarsDataType, other: PolarsDataType) -> bool:
    """Whether equal values of two types mean the same. Polars compares more: a date with a number, say."""
    if one == pl.Null or other == pl.Null:
        return True
    return _kind(one) == _kind(other) and _have_parts_of_one_kind(one, other) and _can_be_compared(one, other)


def _kind(dtype: PolarsDataType) -> object:
    if dtype.is_numeric() or dtype == pl.Boolean:
        return "number"
    if dtype in (pl.Date, pl.Datetime):
        return "date"
    return "text" if dtype in TEXTS else dtype.base_type()


def _have_parts_of_one_kind(one: PolarsDataType, other: PolarsDataType) -> bool:
    if isinstance(one, pl.Struct) and isinstance(other, pl.Struct):
        pairs = list(zip(one.fields, other.fields, strict=False))
        same = len(one.fields) == len(other.fields) and all(a.name == b.name for a, b in pairs)
        return same and all(_are_of_one_kind(a.dtype, b.dtype) for a, b in pairs)
    if isinstance(one, pl.List | pl.Array) and isinstance(other, pl.List | pl.Array):
        return _are_of_one_kind(one.inner, other.inner)
    return True


def _can_be_compared(one: PolarsDataType, other: PolarsDataType) -> bool:
    # A row, although it is null: of no rows Polars does not say what it cannot do.
    row = pl.DataFrame({"one": pl.Series([None], dtype=one), "other": pl.Series([None], dtype=other)})
    try:
        row.select(pl.col("one") == pl.col("other"))
    except pl.exceptions.PolarsError:
        return False
    return True
