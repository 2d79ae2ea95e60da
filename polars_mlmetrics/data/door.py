"""The door: the one place where types, nulls, NaN and truths are judged.

A formula never touches a column of a role itself. It asks the door for a *reading* (a score, a probability,
a 0 / 1 truth, …), and the door hands out the values together with the rows that are broken for that reading.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from polars_mlmetrics.data.classes import is_nan
from polars_mlmetrics.data.expressions import all_of, check_no_pattern, is_one_of
from polars_mlmetrics.data.roles import Grain, Table
from polars_mlmetrics.errors import INTERNAL, ColumnError, FileError, MetricError, typed, unknown

LARGEST = sys.float_info.max
MAX_WEIGHT = 1e280
"""A larger weight is broken: sums of such weights are infinite, and a share of infinity is a plausible 0."""

ONE = pl.lit(1, dtype=pl.Int64)
"""The weight of a row where none is named: an exact integer."""

Types = Mapping[str, pl.DataType]
"""The types of readings, by their names."""


def types_of(schema: pl.Schema, table: Table) -> Types:
    """The types in which the score and the truth of a table come, and its columns as they are."""
    own = {own_reading(name): dtype for name, dtype in schema.items()}
    return own | {"score": type_of(table.score, schema), "truth": type_of(table.truth, schema)}


def type_of(expression: pl.Expr, schema: pl.Schema) -> pl.DataType:
    """The type of an expression over a table. Polars is asked only where it is no column of it: a plan takes time."""
    if expression.meta.is_column():
        return schema[expression.meta.output_name()]
    (dtype,) = pl.LazyFrame(schema=schema).select(expression).collect_schema().dtypes()
    return dtype


def own_reading(column: str) -> str:
    """The name of the reading of a column that plays no role."""
    return f"column {column!r}"


@dataclass(frozen=True)
class Door:
    """Reads the roles of a table for one metric: which rows are included, and what each reading gives.

    `predicates` and `labels` say which rows the metric is asked about at all, its scope. Inside the scope, a row with
    a null in a role is unknown: not included, and counted as excluded.
    """

    table: Table
    predicates: tuple[pl.Expr, ...] = ()
    labels: tuple[Any, ...] | None = None
    """The labels it is restricted to; None where it is to none."""
    reads: frozenset[Grain] = frozenset()
    """The keys a formula reads beyond its unit's: the sample where it looks at the sample's other rows, say."""
    known: tuple[pl.Expr, ...] = ()
    """The conditions under which a row has what else a formula reads, without roles and keys."""
    types: Types = field(default_factory=dict)
    """The types of what is read, where they are known: then what they rule out need not be looked for."""
    asks_guards: bool = True
    """Whether the guards of what is read are asked."""
    guards: dict[str, pl.Expr | None] = field(default_factory=dict)
    """The readings that were asked for, each with the rows that are broken for it; None where no row can be."""

    @property
    def scope(self) -> tuple[pl.Expr, ...]:
        """The conditions of a row that the metric is asked about."""
        named = [] if self.labels is None else [is_one_of(pl.col(self.table.label), self.labels)]
        return (*named, *self.predicates)

    def of_any_label(self) -> Door:
        """The same door, to rows of all labels."""
        return replace(self, labels=None)

    def in_scope(self) -> pl.Expr:
        return all_of([pl.lit(True), *(predicate.fill_null(False) for predicate in self.scope)])

    def included(self, grain: Grain) -> pl.Expr:
        """The rows that count: in scope, with every role and the key of their unit known."""
        table, keys = self.table, self.needed_keys(grain)
        roles = [table.score, table.truth, table.weight, *map(pl.col, keys)]
        return all_of([*self.scope, *(role.is_not_null() for role in roles if role is not None), *self.known])

    def needed_keys(self, grain: Grain) -> list[str]:
        """The keys that must be known for a row to count."""
        # A group has no key of its own.
        grains = [needed for needed in (grain, *sorted(self.reads - {grain})) if needed != "group"]
        return list(dict.fromkeys(key for needed in grains for key in self.table.keys(needed)))

    @property
    def raw_score(self) -> pl.Expr:
        """The score in its own float type (a threshold is rounded to that type); what is not a number raises."""
        known = self.types.get("score")
        return self.table.score if known is not None and known.is_float() else _number(self.table.score)

    def score_as_given(self) -> pl.Expr:
        self.guards["score"] = self.raw_score.is_nan()
        return self.raw_score

    def score(self) -> pl.Expr:
        self.score_as_given()
        return self._float_score()

    def probability(self) -> pl.Expr:
        self.guards["probability"] = ~self.raw_score.is_between(0, 1)
        return self._float_score()

    def logit(self) -> pl.Expr:
        self.guards["logit"] = ~self.raw_score.is_finite()
        return self._float_score()

    def truth(self) -> pl.Expr:
        self.truth_number()
        return self.table.truth if self.has_boolean_truth else self._number_truth() == 1

    def truth_number(self) -> pl.Expr:
        truth = self._number_truth()
        self.guards["truth"] = None if self.has_boolean_truth else (truth != 0) & (truth != 1)
        return truth.cast(pl.Float64)

    def soft_truth(self) -> pl.Expr:
        truth = self._number_truth()
        self.guards["soft_truth"] = None if self.has_boolean_truth else ~truth.is_between(0, 1)
        return truth.cast(pl.Float64)

    @property
    def has_boolean_truth(self) -> bool:
        """Whether the type of the truth is known, and Boolean."""
        return self.types.get("truth") == pl.Boolean

    def gain(self) -> pl.Expr:
        truth = self._number_truth().cast(pl.Float64)
        self.guards["gain"] = None if self.has_boolean_truth else ~truth.is_between(0, LARGEST)
        return truth

    def real(self) -> pl.Expr:
        truth = self._number_truth().cast(pl.Float64)
        self.guards["real"] = truth.is_nan()
        return truth

    def prediction(self) -> pl.Expr:
        self.guards["prediction"] = is_nan(self.table.score, self.types.get("score"))
        return self.table.score

    def actual(self) -> pl.Expr:
        self.guards["actual"] = is_nan(self.table.truth, self.types.get("truth"))
        return self.table.truth

    def weight(self) -> pl.Expr:
        """The weight of a row: 1 where none is named."""
        if self.table.weight is None:
            return ONE
        weight = _number(self.table.weight).cast(pl.Float64)
        self.guards["weight"] = ~weight.is_between(0, MAX_WEIGHT)
        return weight

    def guard_column(self, name: str) -> None:
        """Say that a column which plays no role is read: NaN is broken."""
        self.guards[own_reading(name)] = is_nan(pl.col(name), self.types.get(own_reading(name)))

    def _number_truth(self) -> pl.Expr:
        """The truth as a number; a Boolean as an integer, since Polars makes floats of Booleans slowly."""
        if self.has_boolean_truth:
            return self.table.truth.cast(pl.Int8)
        return self.table.truth if "truth" in self.types else _number(self.table.truth, 0)

    def _float_score(self) -> pl.Expr:
        """The score as a float. What is no number raises in its guard; or here, where the guards are not asked."""
        score = self.table.score
        return (score if self.asks_guards or self.types else _number(score)).cast(pl.Float64)


def _number(value: pl.Expr, zero: float = 0.0) -> pl.Expr:
    # The difference refuses text, dates and durations, which a cast alone would take. From 0, and not 0.0, it leaves
    # integers and Decimals what they are, and makes an integer of a Boolean.
    return value - zero


def check_roles(
    table: Table, schema: pl.Schema, *, any_score: bool, any_truth: bool
) -> tuple[pl.DataType, pl.DataType]:
    """The types of the score and the truth. These and the weight are refused as `check_role` says."""
    score = check_role("score", table.score, schema, any_type=any_score)
    truth = check_role("truth", table.truth, schema, any_type=any_truth)
    if table.weight is not None:
        check_role("weight", table.weight, schema, any_type=False)
    return score, truth


def check_role(role: str, expression: pl.Expr, schema: pl.Schema, *, any_type: bool) -> pl.DataType:
    """The type of a role; refused where the table lacks it, or it cannot be read as a number where one is needed."""
    with naming_role(role, expression):
        check_columns(expression.meta.root_names(), schema, what=f"{role} column")
    dtype = type_of(expression, schema)
    if not (any_type or dtype.is_numeric() or dtype in (pl.Boolean, pl.Null)):
        if not expression.meta.is_column():
            raise ColumnError(f"{role} is {dtype}: the expression must give Booleans or numbers.")
        name = expression.meta.output_name()
        hints = {
            "truth": f" pl.col({name!r}) == '...' says which text is true (on the command line: --truth {name}=...).",
            "score": " If it is the predicted class, mlm.from_predictions makes the long table.",
        }
        hint = hints.get(role, "") if dtype == pl.String else ""
        raise ColumnError(f"{role} is {dtype}: it must be Boolean or a number. Cast or map {name!r} first.{hint}")
    return dtype


@contextmanager
def naming_role(role: str, expression: pl.Expr) -> Iterator[None]:
    """Where a role has its usual name, and the table has no column like it, say how another is named."""
    try:
        yield
    except ColumnError as error:
        if expression.meta.root_names() != [role] or "Did you mean" in str(error):
            raise
        raise ColumnError(f"{error} If it has another name, pass {typed(role)}.") from None


def check_columns(
    names: Sequence[str], schema: Mapping[str, Any], *, what: str = "column", of: str = "in the table"
) -> None:
    """Refuse a name that is not a column of the table, one that Polars reads as several, one that differs by file."""
    check_no_pattern(names, what=what)
    for name in names:
        if name not in schema:
            raise ColumnError(unknown(what, name, schema, of=of))
    check_alike(names, schema)


def check_key_columns(
    names: Sequence[str], schema: Mapping[str, Any], *, what: str = "column", of: str = "in the table"
) -> None:
    """Refuse keys that the table lacks, or that are Python objects, which Polars can neither sort nor match."""
    check_columns(names, schema, what=what, of=of)
    for name in names:
        if schema[name] == pl.Object:
            raise ColumnError(f"{name!r} is of type Object, and Python objects cannot be keys. Cast the column first.")


# -- columns that differ between the files of a log: in the way of nobody, until one of them is read ------------------

MARK = f"{INTERNAL}differs"


def differing(error: MetricError) -> pl.Enum:
    """The type of a column that no query may read, for this reason. A type is known before a row is read."""
    return pl.Enum([MARK, str(error).removesuffix(error.remedy).rstrip(), error.remedy])


def unreadable(dtype: pl.DataType) -> pl.Expr:
    """A column of that type, which fails where it is read, and costs nothing elsewhere."""
    # Polars would work out the cast of a plain literal when it plans a query, read or not.
    return pl.lit(pl.Series([str(reason(dtype))])).first().cast(dtype)


def reason(dtype: pl.DataType) -> FileError | None:
    """Why a column of this type cannot be read; None for any other type."""
    if not isinstance(dtype, pl.Enum) or dtype.categories.len() != 3 or dtype.categories[0] != MARK:
        return None
    _, message, remedy = dtype.categories
    return FileError(message).with_remedy(remedy)


def check_alike(names: Iterable[str], schema: Mapping[str, pl.DataType]) -> None:
    """Refuse to read columns that differ between files."""
    for name in names:
        error = reason(schema[name]) if name in schema else None
        if error is not None:
            raise error


def to_hold(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Rows as they can be held in memory: a column that differs is null, and its type still says why."""
    types = {name: dtype for name, dtype in rows.collect_schema().items() if reason(dtype) is not None}
    return rows.with_columns(pl.lit(None, dtype).alias(name) for name, dtype in types.items())
