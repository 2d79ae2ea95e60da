"""A metric as a value: a Polars expression that the plan can also take apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from polars_mlmetrics.data.roles import Door, Grain, Table, Types, checked_roles, is_row_wise
from polars_mlmetrics.engine.arithmetic import ratio
from polars_mlmetrics.engine.inline import GroupReading, inline
from polars_mlmetrics.engine.parameters import identity
from polars_mlmetrics.engine.settle import Best, Settlement, grain_of
from polars_mlmetrics.engine.unit import Unit
from polars_mlmetrics.errors import MetricError

if TYPE_CHECKING:
    from polars_mlmetrics.engine.declaration import Declaration

OPERATIONS: dict[str, Callable[[Any, Any], pl.Expr]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": lambda left, right: ratio(left, right if isinstance(right, pl.Expr) else pl.lit(right)),
}


class Answer(NamedTuple):
    """What a formula answers of one unit."""

    value: pl.Expr
    weight: pl.Expr | None
    """Its weight in the average; None where all units weigh the same."""
    rows: pl.Expr
    unknown: pl.Expr | None
    """How many rows keep the value from being known; None where none can."""


class Comparison(pl.Expr):
    """What `==` and `!=` of a metric give: an expression, and as a truth value whether it is the same metric."""

    def __init__(self, expression: pl.Expr, truth: bool) -> None:
        self._pyexpr = expression._pyexpr
        self._truth = truth

    def __bool__(self) -> bool:  # type: ignore[override]
        return self._truth


class Metric(pl.Expr):
    """A metric: an expression wherever Polars takes one, and a declaration that `evaluate` can plan.

    Bind it to columns with `.on(...)`, name it with `.alias(...)`, restrict it to rows with `.filter(...)`. Sums,
    differences, products and quotients of metrics and numbers are metrics again. Anything else (`.round()`,
    `.over()`) is a plain expression.
    """

    # -- what a kind of metric must say ------------------------------------------------------------------------

    @property
    def output_name(self) -> str:
        """The name of the column it gives."""
        raise NotImplementedError

    def measures(self) -> Iterator[Measure]:
        """The measures it is made of, left to right."""
        raise NotImplementedError

    def each(self, change: Callable[[Measure], Measure]) -> Metric:
        """The same metric with each of its measures changed."""
        raise NotImplementedError

    def combined(self, values: Callable[[Measure], pl.Expr]) -> pl.Expr:
        """Its value, from the values of its measures."""
        raise NotImplementedError

    def alias(self, name: str) -> Metric:
        """The same metric under another name."""
        raise NotImplementedError

    @property
    def best(self) -> Best | None:
        """Which end of its range is good; None where neither is."""
        raise NotImplementedError

    # -- what follows ------------------------------------------------------------------------------------------

    @cached_property
    def _pyexpr(self) -> Any:  # type: ignore[override]
        return self.combined(inline).alias(self.output_name)._pyexpr

    @property
    def key(self) -> tuple[Any, ...]:
        """What makes two metrics the same one."""
        raise NotImplementedError

    def on(self, **roles: Any) -> Metric:
        """Bind roles to columns: `.on(score="p", truth="clicked", weight="w")`.

        A role that is not bound goes by its own name, or by what the verb (`evaluate`, …) says.

        Examples
        --------
        >>> import polars as pl, polars_mlmetrics as mlm
        >>> log = pl.DataFrame({"p": [0.9, 0.2, 0.4], "clicked": [1, 0, 1], "w": [1, 1, 2]})
        >>> log.select(mlm.recall().on(score="p", truth="clicked", weight="w")).item()
        0.3333333333333333
        """
        bound = checked_roles(roles)
        return self.each(lambda measure: measure.bind({**measure.roles, **bound}))

    def on_the_rest(self, roles: Mapping[str, Any]) -> Metric:
        """Bind the roles that are still free."""
        return self.each(lambda measure: measure.bind({**roles, **measure.roles}))

    def filter(self, *predicates: Any, **constraints: Any) -> Metric:
        """The metric on the rows where every predicate holds, taken out before any ranking.

        Examples
        --------
        >>> import polars as pl, polars_mlmetrics as mlm
        >>> log = pl.DataFrame({"country": ["DE", "DE", "FR"], "score": [0.9, 0.2, 0.4], "truth": [1, 0, 1]})
        >>> log.select(mlm.recall(), mlm.recall().filter(country="DE").alias("recall_de")).row(0)
        (0.5, 1.0)
        """
        rows = [
            predicate for given in predicates for predicate in (given if isinstance(given, list | tuple) else [given])
        ]
        rows += [pl.col(name).eq(value) for name, value in constraints.items()]
        for predicate in rows:
            if not isinstance(predicate, pl.Expr) or not is_row_wise(predicate):
                shown = predicate if isinstance(predicate, pl.Expr) else repr(predicate)
                raise MetricError(f"filter takes conditions worked out row by row, and {shown} is not one.")
        return self.each(lambda measure: measure.restrict(*rows))

    def __str__(self) -> str:
        return repr(self)

    def _repr_html_(self) -> str:
        return f"<code>{self!r}</code>"

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> Any:
        expression = super().__eq__(other)  # type: ignore[operator]
        return Comparison(expression, self._is(other)) if isinstance(other, pl.Expr) else expression

    def __ne__(self, other: object) -> Any:
        expression = super().__ne__(other)  # type: ignore[operator]
        return Comparison(expression, not self._is(other)) if isinstance(other, pl.Expr) else expression

    def _is(self, other: pl.Expr) -> bool:
        return isinstance(other, Metric) and self.key == other.key

    def __add__(self, other: Any) -> Any:
        return self._derived("+", self, other, super().__add__)

    def __radd__(self, other: Any) -> Any:
        return self._derived("+", other, self, super().__radd__)

    def __sub__(self, other: Any) -> Any:
        return self._derived("-", self, other, super().__sub__)

    def __rsub__(self, other: Any) -> Any:
        return self._derived("-", other, self, super().__rsub__)

    def __mul__(self, other: Any) -> Any:
        return self._derived("*", self, other, super().__mul__)

    def __rmul__(self, other: Any) -> Any:
        return self._derived("*", other, self, super().__rmul__)

    def __truediv__(self, other: Any) -> Any:
        return self._derived("/", self, other, super().__truediv__)

    def __rtruediv__(self, other: Any) -> Any:
        return self._derived("/", other, self, super().__rtruediv__)

    def __neg__(self) -> Metric:
        return Derived("-", 0, self)

    def _derived(self, sign: str, left: Any, right: Any, plain: Callable[[Any], pl.Expr]) -> Any:
        other = right if left is self else left
        if isinstance(other, Metric) or (isinstance(other, int | float) and not isinstance(other, bool)):
            return Derived(sign, left, right)
        return plain(other)


@dataclass(frozen=True, eq=False, repr=False)
class Measure(Metric):
    """One declared metric with its parameters, its roles and the rows it is restricted to."""

    declaration: Declaration
    parameters: Mapping[str, Any]
    undefined: float | None = None
    labels: tuple[Any, ...] | None = None
    roles: Mapping[str, Any] = field(default_factory=dict)
    predicates: tuple[pl.Expr, ...] = ()
    given_name: str | None = None
    per: Grain | None = None
    """The grain it stops at, where it is not settled."""

    @property
    def output_name(self) -> str:
        if self.given_name is not None:
            return self.given_name
        average, k = self.parameters.get("average", "micro"), self.parameters.get("k")
        average = average if isinstance(average, str) else "weights"
        suffixes = [] if average == "micro" or self.per else [average]
        return "_".join([self.declaration.name, *suffixes, *([str(k)] if k is not None else [])])

    @cached_property
    def table(self) -> Table:
        """Its roles, settled."""
        return Table.of(self.roles)

    @property
    def grain(self) -> Grain:
        """The unit its formula is worked out on."""
        return self.per or self.declaration.grain or grain_of(self.parameters.get("average", "micro"))

    @cached_property
    def settlement(self) -> Settlement:
        """How its units become one value."""
        average: Any = "sum" if self.declaration.counts else self.parameters.get("average")
        return Settlement(average, self.undefined, self.labels if self.grain == "label" else None)

    @cached_property
    def probe(self) -> Unit:
        """A unit that the formula was read on once, to learn what it reads."""
        unit = Unit(Door(self.table, self._scope()), self.grain, GroupReading(self))
        self.read(unit)
        return unit

    @property
    def looks_across(self) -> bool:
        """Whether it is of one unit and yet reads other rows of the sample."""
        return "sample" in self.probe.reads

    def has_units(self, grain: Grain) -> bool:
        """Whether there is a value of it per label, or per sample."""
        return self.declaration.grain in (None, grain)

    def door(self, types: Types | None = None) -> Door:
        """A door to the rows it is about; where their types are known it need not ask the values."""
        return Door(self.table, self._scope(), frozenset(self.probe.reads), types or {})

    def _scope(self) -> tuple[pl.Expr, ...]:
        vocabulary = [] if self.labels is None else [pl.col(self.table.label).is_in(list(self.labels))]
        return (*vocabulary, *self.predicates)

    def read(self, unit: Unit) -> Answer:
        """What the formula answers of one unit: null where undefined or unknown, NaN where a row is broken."""
        value = self.declaration.formula(unit, **self.parameters)
        weight = None if self.grain == "group" or self.per else self.settlement.weight(unit)
        rows, unknown = unit.included_rows(), unit.unknown_rows()
        if self.declaration.counts:
            return Answer(value.cast(pl.Int64), weight, rows, unknown)
        value = pl.when(rows > 0).then(value.cast(pl.Float64))
        if self.undefined is not None:
            value = value.fill_null(self.undefined)
        if unknown is not None:
            value = pl.when(unknown == 0).then(value)
        value = pl.when(unit.broken_rows() > 0).then(float("nan")).otherwise(value)
        return Answer(value, weight, rows, unknown)

    @property
    def best(self) -> Best | None:
        return self.declaration.best

    def bind(self, roles: Mapping[str, Any]) -> Measure:
        """The same measure of other columns."""
        return replace(self, roles=dict(roles))

    def restrict(self, *predicates: pl.Expr) -> Measure:
        """The same measure of fewer rows."""
        return replace(self, predicates=(*self.predicates, *predicates))

    def unsettled(self, per: Grain) -> Measure:
        """The same measure, stopped at its units."""
        return replace(self, per=per)

    def measures(self) -> Iterator[Measure]:
        yield self

    def each(self, change: Callable[[Measure], Measure]) -> Metric:
        return change(self)

    def combined(self, values: Callable[[Measure], pl.Expr]) -> pl.Expr:
        return values(self)

    def alias(self, name: str) -> Metric:
        return replace(self, given_name=name)

    @cached_property
    def key(self) -> tuple[Any, ...]:
        parameters = tuple((name, identity(value)) for name, value in sorted(self.parameters.items()))
        if self.per:
            parameters = tuple(item for item in parameters if item[0] != "average")
        roles = tuple((role, identity(column)) for role, column in sorted(self.roles.items()))
        scope = (identity(self.labels), *map(identity, self.predicates))
        return (self.declaration.name, parameters, self.undefined, roles, scope, self.given_name, self.per)

    def __repr__(self) -> str:
        shown = self.declaration.shown(self)
        call = (
            f"{self.declaration.name}({', '.join(f'{name}={_shown(value)}' for name, value in sorted(shown.items()))})"
        )
        if self.roles:
            call += f".on({', '.join(f'{role}={_shown(column)}' for role, column in self.roles.items())})"
        if self.predicates:
            call += f".filter({', '.join(map(str, self.predicates))})"
        return call + (f".alias({self.given_name!r})" if self.given_name else "")

    def __reduce__(self) -> Any:
        stated = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return _measure, (stated,)


def _measure(stated: dict[str, Any]) -> Measure:
    return Measure(**stated)


@dataclass(frozen=True, eq=False, repr=False)
class Derived(Metric):
    """A metric worked out from others by arithmetic."""

    operator: str
    left: Metric | float
    right: Metric | float
    given_name: str | None = None

    @property
    def output_name(self) -> str:
        return self.given_name or next(side.output_name for side in self._sides() if isinstance(side, Metric))

    def _sides(self) -> tuple[Metric | float, Metric | float]:
        return self.left, self.right

    def measures(self) -> Iterator[Measure]:
        for side in self._sides():
            if isinstance(side, Metric):
                yield from side.measures()

    def each(self, change: Callable[[Measure], Measure]) -> Metric:
        left, right = (side.each(change) if isinstance(side, Metric) else side for side in self._sides())
        return replace(self, left=left, right=right)

    def combined(self, values: Callable[[Measure], pl.Expr]) -> pl.Expr:
        left, right = (side.combined(values) if isinstance(side, Metric) else side for side in self._sides())
        return OPERATIONS[self.operator](left, right)

    def alias(self, name: str) -> Metric:
        return replace(self, given_name=name)

    @property
    def best(self) -> Best | None:
        left, right = (side.best if isinstance(side, Metric) else None for side in self._sides())
        if self.operator == "-":
            right = _other_end(right)
        if isinstance(self.left, Metric) and isinstance(self.right, Metric):
            return left if left == right and self.operator in "+-" else None
        if self.operator in "*/":
            number = self.right if isinstance(self.left, Metric) else self.left
            flipped = (number < 0) != (self.operator == "/" and isinstance(self.right, Metric))
            left, right = (_other_end(end) if flipped else end for end in (left, right))
        return left or right

    @cached_property
    def key(self) -> tuple[Any, ...]:
        sides = (side.key if isinstance(side, Metric) else side for side in self._sides())
        return (self.operator, *sides, self.given_name)

    def __repr__(self) -> str:
        shown = f"({self.left!r} {self.operator} {self.right!r})"
        return shown + (f".alias({self.given_name!r})" if self.given_name else "")

    def __reduce__(self) -> Any:
        return Derived, (self.operator, self.left, self.right, self.given_name)


def _other_end(best: Best | None) -> Best | None:
    return None if best is None else "min" if best == "max" else "max"


def _shown(column: Any) -> str:
    return str(column) if isinstance(column, pl.Expr) else repr(column)
