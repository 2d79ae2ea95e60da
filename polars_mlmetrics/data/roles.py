"""The five roles a table plays, as they are given and as they are settled to columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, Literal, TypedDict, get_args

import polars as pl

from polars_mlmetrics.data.expressions import check_no_pattern, check_row_wise, name_or_text, same_expression
from polars_mlmetrics.errors import INTERNAL, ParameterError, unknown

Grain = Literal["group", "label", "sample"]
RoleName = Literal["sample", "label", "score", "truth", "weight"]
MODEL = "model"
"""The column that tells models apart, where nothing else is named."""

UNREAD = pl.lit(1)
"""The column of a role that a metric does not read."""

ROLE_NAMES: tuple[str, ...] = get_args(RoleName)
WITH_PASSES = "evaluate, compare, curve, state, report and most others that read a log take it."


class Roles(TypedDict, total=False):
    """The columns of the roles. A role that is not named has the column of its own name; a weight must be named."""

    sample: str | Sequence[str]
    label: str
    score: str | pl.Expr
    truth: str | pl.Expr
    weight: str | pl.Expr


class Bound(dict[str, Any]):
    """Roles as they were given. The table that they describe is settled once, for all that are bound to them."""

    @cached_property
    def table(self) -> Table:
        """The roles, settled."""
        return Table.of(self) if self else _of_no_roles()

    def __reduce__(self) -> Any:
        return Bound, (dict(self),)


def checked_roles(given: Mapping[str, Any]) -> Bound:
    """The roles as given, without those that are None; an unknown or ill-typed one is an error."""
    roles = Bound()
    for role, column in given.items():
        if role in ("passes", "memory"):
            raise ParameterError(f"this function takes no {role}=. {WITH_PASSES}")
        if role not in ROLE_NAMES:
            raise ParameterError(unknown("role", role, ROLE_NAMES, of="one of the roles")).about(role, ROLE_NAMES)
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
        check_row_wise(f"role {role!r}", column)
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
        only = "only score, truth and weight may be one"
        shown = f"the expression {name}: {only}" if isinstance(name, pl.Expr) else repr(name)
        raise ParameterError(f"role {role!r} takes {kinds.get(role, 'a column name or an expression')}, not {shown}.")
    check_no_pattern([name], what=f"{role} column")
    check_free([name])
    return name


@dataclass(frozen=True, eq=False)
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

    def read_by(self, grains: Iterable[Grain]) -> list[pl.Expr]:
        """Expressions read of a row in units of these grains: score, truth and weight, and the keys of the units."""
        return [*self.values().values(), *(pl.col(key) for grain in grains for key in self.keys(grain))]

    def with_unread_of(self, other: Table) -> Table:
        """The same, with the score and the truth of another one where this one reads none."""
        unread = [role for role in ("score", "truth") if same_expression(getattr(self, role), UNREAD)]
        return replace(self, **{role: getattr(other, role) for role in unread})

    def differences(self, other: Table) -> list[str]:
        """How this table's roles differ from another's, in words a reader of a plan understands."""
        if other is self:
            return []
        words = [
            _role_in_words(role, getattr(self, role))
            for role in ("score", "truth", "weight")
            if not same_expression(getattr(self, role), getattr(other, role))
        ]
        if self.label != other.label:
            words.append(f"label={self.label}")
        if self.sample != other.sample:
            words.append(f"sample={'+'.join(self.sample)}")
        return words


def _role_in_words(role: str, column: pl.Expr | None) -> str:
    return f"no {role}" if same_expression(column, UNREAD) else f"{role}={name_or_text(column)}"


@cache
def _of_no_roles() -> Table:
    """The table of all that are bound to nothing: one, so that it is known as the same."""
    return Table.of({})


def _expression(column: str | pl.Expr) -> pl.Expr:
    return pl.col(column) if isinstance(column, str) else column
