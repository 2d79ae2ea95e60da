"""Expressions and their names: checks, texts, and several conditions made one."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import reduce
from numbers import Real
from operator import and_, or_
from typing import Any

import polars as pl

from polars_mlmetrics.errors import INTERNAL, MetricError, ParameterError


def is_pattern(name: str) -> bool:
    """Whether Polars reads a name as a pattern for several columns."""
    return name == "*" or (name.startswith("^") and name.endswith("$"))


def check_no_pattern(names: Iterable[str], *, what: str = "column") -> None:
    """Refuse the name of a column that Polars would read as several: a name is the name of one column, everywhere."""
    for name in names:
        if is_pattern(name):
            raise ParameterError(
                f"{what} {name!r}: Polars reads this name as a pattern for several columns. Rename the column."
            )


def several_columns(expression: pl.Expr) -> MetricError:
    """The error for an expression that stands for several columns: it does not say which it reads."""
    return MetricError(f"{_several_in(expression)} stands for several columns: name the one that is read.")


def _several_in(expression: pl.Expr) -> pl.Expr:
    """The part of an expression that stands for several columns."""
    several = [part for part in expression.meta.pop() if part.meta.has_multiple_outputs()]
    return _several_in(several[0]) if several else expression


def reserved(names: Iterable[str]) -> list[str]:
    """Those of the names that no column may be given: patterns of Polars, and what plans keep for their own columns."""
    return [name for name in names if is_pattern(name) or name.startswith(INTERNAL)]


def is_row_wise(expression: pl.Expr) -> bool:
    """Whether an expression gives one value for each row, from that row alone."""
    # `is_row_separable` speaks of the outermost step only, so every step is asked.
    meta = expression.meta
    try:
        whole = meta.is_row_separable() and (meta.is_length_preserving() or meta.is_scalar())
    except pl.exceptions.PolarsError:
        raise MetricError(
            f"{expression} runs Python, looks into a list or a struct, or is several columns: add it as a column first."
        ) from None
    return whole and all(map(is_row_wise, meta.pop()))


def check_row_wise(what: str, expression: pl.Expr) -> None:
    """Refuse an expression that other rows decide too."""
    if not is_row_wise(expression):
        raise MetricError(f"{what} must be computed row by row, and {expression} is not. Add it as a column first.")


def same_expression(one: pl.Expr | None, other: pl.Expr | None) -> bool:
    """Whether two expressions (or the lack of one) are the same."""
    if one is None or other is None:
        return one is other
    return one.meta.eq(other)


def name_or_text(expression: pl.Expr | None) -> str:
    """The name of a column; of any other expression its text; a word where there is none."""
    if expression is None:
        return "none"
    return expression.meta.output_name() if expression.meta.is_column() else text_of(expression)


def text_of(expression: pl.Expr) -> str:
    """An expression in words that no other one has.

    Polars does not show all that is given to a function, nor all of a Series: there a digest of the whole follows.
    """
    (name, *more) = expression.meta.root_names() or [""]
    if not more and expression.meta.eq(pl.col(name).is_not_null()):
        return f"{name} is known"
    text = str(expression)
    if not re.search(r"\.\w+\(|Series|…", text):
        return text
    return f"{text}#{hashlib.sha256(expression.meta.serialize()).hexdigest()[:8]}"


def is_one_of(key: pl.Expr, names: Iterable[Any]) -> pl.Expr:
    """Whether a key is one of some names."""
    names = list(names)
    if names and all(isinstance(name, Real | Decimal) for name in names):
        # `is_in` takes numbers of the key's own type alone; equal are they whatever their types.
        return pl.any_horizontal(key == name for name in names)
    return key.is_in(names)


def all_of(conditions: Sequence[pl.Expr]) -> pl.Expr:
    """True where every condition is."""
    return reduce(and_, conditions)


def any_of(conditions: Sequence[pl.Expr]) -> pl.Expr:
    """True where some condition is; False where there is none."""
    return reduce(or_, conditions) if conditions else pl.lit(False)


def text_of_key(key: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """The values of a key as text, and null as one. Polars casts neither a Duration nor bytes that are no text."""
    if dtype == pl.Duration:
        text = key.dt.to_string("polars")
    elif dtype == pl.Binary:
        text = key.bin.encode("hex")
    else:
        text = key.cast(pl.String)
    return text.fill_null("null")
