"""The rules of a gate: read, and refused where they cannot be any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from polars_mlmetrics.checks.statuses import Status
from polars_mlmetrics.data.door import check_columns
from polars_mlmetrics.data.expressions import is_row_wise
from polars_mlmetrics.errors import ColumnError, ParameterError, typed, words_of

BASELINE = "_baseline"
"""The ending of the name of a column of the baseline."""

SUCH = "such as pl.col('f1') >= 0.8"


@dataclass(frozen=True, eq=False)
class Warn:
    """A rule that warns where it does not hold."""

    rule: pl.Expr


def warn(rule: pl.Expr) -> Warn:
    """A rule of a `gate` that gives the status "warn", not "fail", where it does not hold.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> table = pl.DataFrame({"model": ["a", "b"], "f1": [0.9, 0.7]})
    >>> mlm.gate(table, {"good f1": mlm.warn(pl.col("f1") >= 0.8)})["status"].to_list()
    ['pass', 'warn']
    """
    return Warn(rule)


@dataclass(frozen=True)
class Rule:
    """A rule that was read and checked."""

    name: str
    condition: pl.Expr
    columns: Sequence[str]
    """The columns that it reads."""
    numbers: Sequence[pl.Expr]
    """The floats that it compares."""
    otherwise: Status
    """The status of a row for which it does not hold."""


def read_rules(rules: Any, schema: pl.Schema, *, has_baseline: bool) -> list[Rule]:
    """The rules of a table with these columns, the baseline's among them; what cannot be one is refused."""
    if not isinstance(rules, Mapping):
        raise ParameterError(f"rules are a mapping of a name to a rule, {SUCH}, not of type {type(rules).__name__}.")
    if not rules:
        raise ParameterError(f"a gate needs a rule, {SUCH}.")
    return [_read_rule(name, rule, schema, has_baseline=has_baseline) for name, rule in rules.items()]


def _read_rule(name: Any, rule: Any, schema: pl.Schema, *, has_baseline: bool) -> Rule:
    if not isinstance(name, str):
        raise ParameterError(f"the name of a rule is a text, not {name!r}.")
    condition = rule.rule if isinstance(rule, Warn) else rule
    if not isinstance(condition, pl.Expr):
        raise ParameterError(f"rule {name!r} takes an expression, {SUCH}, and is of type {type(condition).__name__}.")
    if condition.meta.has_multiple_outputs():
        raise ParameterError(f"rule {name!r} stands for several columns: name them one by one.")
    if not is_row_wise(condition):
        raise ParameterError(
            f"rule {name!r} is not row-wise: it takes an expression of the columns of one row, {SUCH}."
        )
    columns = list(dict.fromkeys(condition.meta.root_names()))
    _check_columns(name, columns, schema, has_baseline=has_baseline)
    dtype = _type_of(name, condition, schema)
    if dtype != pl.Boolean:
        raise ParameterError(f"rule {name!r} is {dtype}: it must be true or false, {SUCH}.")
    otherwise: Status = "warn" if isinstance(rule, Warn) else "fail"
    return Rule(name, condition, columns, _numbers(name, condition, schema), otherwise)


def _check_columns(name: str, columns: Sequence[str], schema: pl.Schema, *, has_baseline: bool) -> None:
    if not columns:
        raise ParameterError(f"rule {name!r} reads no column of the table: write one {SUCH}.")
    for column in columns:
        if column.endswith(BASELINE) and column not in schema and not has_baseline:
            raise ColumnError(f"rule {name!r} reads {column!r}: pass {typed('baseline')} too.")
    of = "in the table or its baseline" if has_baseline else "in the table"
    check_columns(columns, schema, what=f"rule {name!r}: column", of=of)


def _type_of(name: str, expression: pl.Expr, schema: pl.Schema) -> pl.DataType:
    # Of no rows, and not from the schema alone: that a text is no number is seen only then.
    try:
        return pl.DataFrame(schema=schema).select(expression.alias("value")).schema["value"]
    except pl.exceptions.PolarsError as error:
        raise ParameterError(f"rule {name!r} cannot be worked out: {words_of(error)}.") from error


def _numbers(name: str, part: pl.Expr, schema: pl.Schema) -> list[pl.Expr]:
    """The outermost parts of a rule that are floats of the row: what it compares."""
    if not part.meta.root_names():
        return []
    if _type_of(name, part, schema).is_float():
        return [part]
    return [number for each in part.meta.pop() for number in _numbers(name, each, schema)]
