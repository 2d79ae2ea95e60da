"""The five roles a table plays, and the door: the one place where types, nulls, NaN and truths are judged.

A formula never touches a column of a role itself. It asks the door for a *reading* (a score, a probability,
a 0 / 1 truth, …), and the door hands out the values together with the rows that are broken for that reading.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import reduce
from numbers import Real
from operator import and_, or_
from typing import Any, Literal, TypedDict, get_args

import polars as pl

from polars_mlmetrics.data.classes import is_nan
from polars_mlmetrics.errors import INTERNAL, ColumnError, MetricError, ParameterError, unknown

Grain = Literal["group", "label", "sample"]
RoleName = Literal["sample", "label", "score", "truth", "weight"]
LARGEST = sys.float_info.max
ROLE_NAMES: tuple[str, ...] = get_args(RoleName)


class Roles(TypedDict, total=False):
    """The columns of the roles. A role that is not named has the column of its own name; a weight must be named."""

    sample: str | Sequence[str]
    label: str
    score: str | pl.Expr
    truth: str | pl.Expr
    weight: str | pl.Expr


def checked_roles(given: Mapping[str, Any], *, others: Sequence[str] = ()) -> dict[str, Any]:
    """The roles as given, without those that are None; an unknown or ill-typed one is an error.

    `others` are the other keywords of the function: a misspelt role may be one of them.
    """
    roles = {}
    for role, column in given.items():
        if role not in ROLE_NAMES:
            raise ParameterError(unknown("role", role, ROLE_NAMES, of="one of the roles", others=others))
        if column is not None:
            roles[role] = _checked_column(role, column)
    return roles


def _checked_column(role: str, column: Any) -> Any:
    if role == "sample" and isinstance(column, Sequence) and not isinstance(column, str):
        columns = tuple(_checked_name(role, name) for name in column)
        if not columns or len(set(columns)) < len(columns):
            wrong = "names a column twice" if columns else "names no column"
            raise ParameterError(f"role 'sample' {wrong}: pass a name, or a list of different names.")
        return columns
    if role in ("sample", "label"):
        return _checked_name(role, column)
    if isinstance(column, pl.Expr):
        if column.meta.has_multiple_outputs():
            raise ParameterError(f"role {role!r} takes one column, and {column} is several.")
        if not is_row_wise(column):
            raise MetricError(
                f"role {role!r} must be computed row by row, and {column} is not. Add it as a column first."
            )
        return column
    return _checked_name(role, column)


def check_free(names: Iterable[str]) -> None:
    """Refuse columns whose names are reserved for plans."""
    for name in names:
        if name.startswith(INTERNAL):
            raise ParameterError(
                f"a column has the name {name!r}: {INTERNAL!r} is reserved for internal columns. Rename it."
            )


def _checked_name(role: str, name: Any) -> str:
    if not isinstance(name, str):
        kinds = {"sample": "a column name or a list of them", "label": "a column name"}
        shown = (
            f"the expression {name}: only score, truth and weight may be one"
            if isinstance(name, pl.Expr)
            else repr(name)
        )
        raise ParameterError(f"role {role!r} takes {kinds.get(role, 'a column name or an expression')}, not {shown}.")
    if is_pattern(name):
        raise ParameterError(f"role {role!r} takes one column, and {name!r} is a pattern.")
    check_free([name])
    return name


def is_pattern(name: str) -> bool:
    """Whether Polars reads a name as a pattern for several columns."""
    return name == "*" or (name.startswith("^") and name.endswith("$"))


Types = Mapping[str, pl.DataType]
"""The types of readings, by their names."""


def types_of(rows: pl.LazyFrame, table: Table, columns: Iterable[str] = ()) -> Types:
    """The types in which the score and the truth of a table come, and some of its columns."""
    own = [pl.col(name).alias(own_reading(name)) for name in columns]
    return rows.select(table.score.alias("score"), table.truth.alias("truth"), *own).collect_schema()


def own_reading(column: str) -> str:
    """The name of the reading of a column that plays no role."""
    return f"column {column!r}"


def is_row_wise(expression: pl.Expr) -> bool:
    """Whether an expression gives one value for each row, from that row alone."""
    # `is_row_separable` speaks of the outermost step only, so every step is asked.
    meta = expression.meta
    whole = meta.is_row_separable() and (meta.is_length_preserving() or meta.is_scalar())
    return whole and all(map(is_row_wise, meta.pop()))


def same_expression(one: pl.Expr | None, other: pl.Expr | None) -> bool:
    """Whether two expressions (or the lack of one) are the same."""
    if one is None or other is None:
        return one is other
    return one.meta.eq(other)


@dataclass(frozen=True)
class Table:
    """The roles of a table, each settled to a column or an expression."""

    sample: tuple[str, ...]
    label: str
    score: pl.Expr
    truth: pl.Expr
    weight: pl.Expr | None

    @classmethod
    def of(cls, roles: Mapping[str, Any]) -> Table:
        """The table that these roles describe; a role that is not given has the column of its own name."""
        sample = roles.get("sample", "sample")
        score, truth, weight = roles.get("score", "score"), roles.get("truth", "truth"), roles.get("weight")
        return cls(
            sample=(sample,) if isinstance(sample, str) else tuple(sample),
            label=roles.get("label", "label"),
            score=_expression(score),
            truth=_expression(truth),
            weight=None if weight is None else _expression(weight),
        )

    def values(self) -> dict[str, pl.Expr]:
        """Score, truth and weight, those that there are."""
        roles = {"score": self.score, "truth": self.truth, "weight": self.weight}
        return {role: column for role, column in roles.items() if column is not None}

    def roles(self) -> dict[str, Any]:
        """Every role, also those with default names."""
        return {"sample": list(self.sample), "label": self.label, **self.values()}

    def keys(self, grain: Grain) -> list[str]:
        """The key columns of the units of this grain, inside a group."""
        return {"group": [], "label": [self.label], "sample": list(self.sample)}[grain]

    def differences(self, other: Table) -> list[str]:
        """How this table's roles differ from another's, in words a reader of a plan understands."""
        words = [
            f"{role}={_text(getattr(self, role))}"
            for role in ("score", "truth", "weight")
            if not same_expression(getattr(self, role), getattr(other, role))
        ]
        if self.label != other.label:
            words.append(f"label={self.label}")
        if self.sample != other.sample:
            words.append(f"sample={'+'.join(self.sample)}")
        return words


def _expression(column: str | pl.Expr) -> pl.Expr:
    return pl.col(column) if isinstance(column, str) else column


def _text(expression: pl.Expr | None) -> str:
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
    columns: tuple[str, ...] = ()
    """The other columns that a formula reads, without roles and keys; they must be known too."""
    types: Types = field(default_factory=dict)
    """The types of what is read, where they are known: then what they rule out need not be looked for."""
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
        known = [table.score, table.truth, table.weight, *map(pl.col, keys)]
        return all_of([*self.scope, *(role.is_not_null() for role in known if role is not None)])

    def needed_keys(self, grain: Grain) -> list[str]:
        """The columns that must be known for a row to count, without score, truth and weight."""
        grains = [grain, *sorted(self.reads - {grain})]
        keys = [key for needed in grains for key in self.table.keys(needed)]
        return list(dict.fromkeys([*keys, *self.columns]))

    @property
    def raw_score(self) -> pl.Expr:
        """The score in its own float type (a threshold is rounded to that type); what is not a number raises."""
        known = self.types.get("score")
        return self.table.score if known is not None and known.is_float() else _number(self.table.score)

    def score(self) -> pl.Expr:
        self.guards["score"] = self.raw_score.is_nan()
        return self.raw_score.cast(pl.Float64)

    def probability(self) -> pl.Expr:
        self.guards["probability"] = ~self.raw_score.is_between(0, 1)
        return self.raw_score.cast(pl.Float64)

    def logit(self) -> pl.Expr:
        self.guards["logit"] = ~self.raw_score.is_finite()
        return self.raw_score.cast(pl.Float64)

    def truth(self) -> pl.Expr:
        if self.has_boolean_truth:
            self.guards["truth"] = None
            return self.table.truth
        truth = self._number_truth()
        self.guards["truth"] = (truth != 0) & (truth != 1)
        return truth == 1

    def soft_truth(self) -> pl.Expr:
        self.guards["soft_truth"] = None if self.has_boolean_truth else ~self._number_truth().is_between(0, 1)
        return self._number_truth()

    @property
    def has_boolean_truth(self) -> bool:
        """Whether the type of the truth is known, and Boolean."""
        return self.types.get("truth") == pl.Boolean

    def gain(self) -> pl.Expr:
        self.guards["gain"] = None if self.has_boolean_truth else ~self._number_truth().is_between(0, LARGEST)
        return self._number_truth()

    def real(self) -> pl.Expr:
        self.guards["real"] = self._number_truth().is_nan()
        return self._number_truth()

    def prediction(self) -> pl.Expr:
        self.guards["prediction"] = is_nan(self.table.score, self.types.get("score"))
        return self.table.score

    def actual(self) -> pl.Expr:
        self.guards["actual"] = is_nan(self.table.truth, self.types.get("truth"))
        return self.table.truth

    def weight(self) -> pl.Expr:
        """The weight of a row: 1, an exact integer, where none is named."""
        if self.table.weight is None:
            return pl.lit(1, dtype=pl.Int64)
        weight = _number(self.table.weight).cast(pl.Float64)
        self.guards["weight"] = ~weight.is_between(0, LARGEST)
        return weight

    def guard_column(self, name: str) -> None:
        """Say that a column which plays no role is read: NaN is broken."""
        self.guards[own_reading(name)] = is_nan(pl.col(name), self.types.get(own_reading(name)))

    def _number_truth(self) -> pl.Expr:
        number = self.table.truth if "truth" in self.types else _number(self.table.truth)
        return number.cast(pl.Float64)


def _number(value: pl.Expr) -> pl.Expr:
    # The difference refuses text, dates and durations, which a cast alone would take.
    return value - 0.0


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
    """True where some condition is."""
    return reduce(or_, conditions)


def check_role(role: str, expression: pl.Expr, schema: pl.Schema, *, any_type: bool) -> pl.DataType:
    """The type of a role; refused where the table lacks it, or it cannot be read as a number where one is needed."""
    check_columns(expression.meta.root_names(), schema, what=f"{role} column")
    dtype = pl.LazyFrame(schema=schema).select(expression.alias(role)).collect_schema()[role]
    if not (any_type or dtype.is_numeric() or dtype in (pl.Boolean, pl.Null)):
        raise ColumnError(
            f"{role} is {dtype}: it must be Boolean or a number. Cast or map {_text(expression)!r} first."
        )
    return dtype


def check_columns(
    names: Sequence[str], schema: Mapping[str, Any], *, what: str = "column", of: str = "in the table"
) -> None:
    """Refuse a name that is not a column of the table."""
    for name in names:
        if name not in schema:
            raise ColumnError(unknown(what, name, schema, of=of))


def check_key_types(columns: Iterable[str], schema: Mapping[str, pl.DataType]) -> None:
    """Refuse keys of Python objects, which Polars can neither sort nor match."""
    for column in columns:
        if schema[column] == pl.Object:
            raise ColumnError(
                f"{column!r} is of type Object, and Python objects cannot be keys. Cast the column first."
            )
