"""The columns that a formula reads besides roles, and which of their nulls and NaN its author handles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import polars as pl

from polars_mlmetrics.data.expressions import same_expression
from polars_mlmetrics.formula.unit import Unit

Answers = Callable[[list[pl.Expr]], Iterable[pl.Expr]]
"""The expressions that say something of a null, or of a NaN, made of these inputs."""


class OwnColumns(NamedTuple):
    """Columns of the table that play no role for a formula which reads them."""

    to_be_known: tuple[str, ...] = ()
    """Those of which a null leaves the row out."""
    to_be_numbers: tuple[str, ...] = ()
    """Those of which a NaN breaks it."""
    values: tuple[pl.Expr, ...] = ()
    """The expressions of each row that are parameters: null may be what they make of columns that are known."""

    @property
    def names(self) -> list[str]:
        """All of them."""
        return list(dict.fromkeys([*self.to_be_known, *self.to_be_numbers]))

    @property
    def known(self) -> list[pl.Expr]:
        """The conditions under which a row has all of it."""
        return [value.is_not_null() for value in (*map(pl.col, self.to_be_known), *self.values)]


def own_columns(unit: Unit) -> OwnColumns:
    """The columns that a formula reads on a unit, without the roles of its table."""
    given = _seen_to(unit)
    plain = {role.meta.output_name() for role in given if role.meta.is_column()}
    rows = [row for row in unit.rows_read if not plain.issuperset(row.meta.root_names())]
    # What keeps the value from being known was seen to already: a threshold that is null, say.
    guarded = {name for unknown in unit.unknown.values() for name in unknown.rows.meta.root_names()}
    to_be_known, to_be_numbers = (
        sorted({name for row in rows for name in _left_to_us(row, given, answers)} - guarded)
        for answers in (_of_null, _of_nan)
    )
    values = (value for value in unit.numbers_read.values() if not value.meta.is_column() and value.meta.root_names())
    return OwnColumns(tuple(to_be_known), tuple(to_be_numbers), tuple(values))


def _seen_to(unit: Unit) -> list[pl.Expr]:
    """The columns that must be known anyway: roles, and the keys that are read as such."""
    return unit.door.table.read_by((unit.grain, *sorted(unit.reads)))


def _left_to_us(row: pl.Expr, given: Sequence[pl.Expr], answers: Answers) -> set[str]:
    """The columns of a row expression that are read without `is_null`, `fill_null` (or the like of NaN) around them."""
    read: set[str] = set()
    guarded: set[str] = set()

    def walk(expression: pl.Expr, columns: set[str]) -> None:
        if not expression.meta.root_names() or any(same_expression(expression, role) for role in given):
            return
        if expression.meta.is_column():
            columns.update(expression.meta.root_names())
            return
        parts = _inputs(expression)
        if _is_choice(expression, parts):
            # What is null of a choice need not be the column.
            columns = read
        elif any(same_expression(expression, answer) for answer in answers(parts)):
            columns = guarded
        for part in parts:
            walk(part, columns)

    walk(row, read)
    return read - guarded


def _is_choice(expression: pl.Expr, parts: Sequence[pl.Expr]) -> bool:
    return len(parts) == 3 and same_expression(expression, pl.when(parts[0]).then(parts[2]).otherwise(parts[1]))


def _inputs(expression: pl.Expr) -> list[pl.Expr]:
    parts = expression.meta.pop()
    # Polars writes `fill_nan` as a choice, whose condition asks for nulls too.
    is_fill_nan = len(parts) == 3 and same_expression(expression, parts[2].fill_nan(parts[1]))
    return parts[1:] if is_fill_nan else parts


def _of_null(parts: list[pl.Expr]) -> Iterable[pl.Expr]:
    # Polars gives the inputs of a function in an order of its own.
    for first, *rest in (parts, parts[::-1]):
        yield pl.coalesce(first, *rest)
        if not rest:
            yield from (first.is_null(), first.is_not_null())
        elif not rest[1:]:
            yield from (first.fill_null(rest[0]), first.eq_missing(rest[0]), first.ne_missing(rest[0]))


def _of_nan(parts: list[pl.Expr]) -> Iterable[pl.Expr]:
    for first, *rest in (parts, parts[::-1]):
        if not rest:
            yield from (first.is_nan(), first.is_not_nan(), first.is_finite(), first.is_infinite())
        elif not rest[1:]:
            yield first.fill_nan(rest[0])
