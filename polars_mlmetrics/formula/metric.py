"""A metric as a value: a Polars expression that the plan can also take apart."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, update_wrapper
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, cast

import polars as pl

from polars_mlmetrics.data.roles import ROLE_NAMES, checked_roles, is_row_wise
from polars_mlmetrics.errors import INTERNAL, MetricError
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.formula.averages import Best
from polars_mlmetrics.formula.comparison import Comparison
from polars_mlmetrics.formula.parameters import as_number, identity

if TYPE_CHECKING:
    from polars_mlmetrics.formula.measure import Measure

P = ParamSpec("P")

OPERATIONS: dict[str, Callable[[Any, Any], pl.Expr]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": lambda left, right: ratio(left, right if isinstance(right, pl.Expr) else pl.lit(right)),
    # As floats: a power of a count may exceed every whole number of 64 bits.
    "**": lambda base, exponent: (base if isinstance(base, pl.Expr) else pl.lit(base)).cast(pl.Float64) ** exponent,
}

OF_NUMPY = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "power": "**"}
"""The operators that NumPy's functions of two numbers are."""

INCREASING = ("round", "clip", "fill_null", "sqrt", "log", "log10", "log1p", "exp", "floor", "ceil", "cast")
"""The functions of a value that keep high above low."""

MARK = f"{INTERNAL}metric "
"""How the name begins under which an expression holds a metric. Polars drops it, but it can be looked for."""


def of_value(plain: Callable[Concatenate[pl.Expr, P], pl.Expr]) -> Callable[Concatenate[Metric, P], Metric]:
    """A function of Polars as one of a metric's value: a metric, unless an argument needs the rows."""
    signature = inspect.signature(plain)

    def function(self: Metric, /, *args: P.args, **kwargs: P.kwargs) -> Metric:
        _, *given = signature.bind(self, *args, **kwargs).arguments.items()
        arguments = {name: _of_plan(name, value) for name, value in given if value is not None}
        if None in arguments.values():
            return cast("Metric", plain(self, *args, **kwargs))
        plain(pl.lit(0.0), *args, **kwargs)  # what Polars refuses is refused here
        return Applied(plain.__name__, self, tuple(arguments.items()))

    update_wrapper(function, plain)
    return function


def _of_plan(name: str, value: Any) -> Any:
    """An argument that says all by itself; None of any other, such as an expression."""
    if name == "dtype":
        dtype = pl.DataType.from_python(value) if value is int or value is float else value
        is_type = isinstance(dtype, pl.DataType) or (isinstance(dtype, type) and issubclass(dtype, pl.DataType))
        return dtype if is_type and dtype.is_numeric() else None
    return value if name in ("mode", "strict", "wrap_numerical") else as_number(value)


class Metric(pl.Expr):
    """A metric: an expression wherever Polars takes one, and a declaration that `evaluate` can plan.

    Bind it to columns with `.on(...)`, name it with `.alias(...)`, restrict it to rows with `.filter(...)`. Sums,
    differences, products, quotients and powers of metrics and numbers are metrics again, and so are functions of the
    value: `round`, `clip`, `fill_null`, `abs`, `sqrt`, `log`, `exp`, `floor`, `ceil`, `sign`, `cast` to a number.
    Anything else (`.over()`, `> 0.5`) is a plain expression.
    """

    given_name: str | None

    # -- what a kind of metric must say ------------------------------------------------------------------------

    @property
    @abstractmethod
    def output_name(self) -> str:
        """The name of the column it gives."""

    @property
    @abstractmethod
    def parts(self) -> tuple[Metric, ...]:
        """The metrics it is made of, left to right."""

    @abstractmethod
    def with_parts(self, parts: Sequence[Metric]) -> Metric:
        """The same made of others."""

    @abstractmethod
    def combined(self, values: Callable[[Planned], pl.Expr]) -> pl.Expr:
        """Its value, from the values of what is planned of it."""

    @abstractmethod
    def alias(self, name: str) -> Metric:
        """The same metric under another name."""

    @property
    @abstractmethod
    def best(self) -> Best | None:
        """Which end of its range is good; None where neither is."""

    @property
    @abstractmethod
    def key(self) -> tuple[Any, ...]:
        """What makes two metrics the same one."""

    # -- what follows ------------------------------------------------------------------------------------------

    def measures(self) -> Iterator[Measure]:
        """The measures it is made of, left to right."""
        for part in self.parts:
            yield from part.measures()

    def each(self, change: Callable[[Measure], Measure]) -> Metric:
        """The same metric with each of its measures changed."""
        return self.with_parts([part.each(change) for part in self.parts])

    def tree(self) -> Iterator[Metric]:
        """The metric itself, its parts, and theirs."""
        yield self
        for part in self.parts:
            yield from part.tree()

    @cached_property
    def _pyexpr(self) -> Any:  # type: ignore[override]
        bound = [role for role in ROLE_NAMES if all(role in measure.roles for measure in self.measures())]
        marked = self.combined(lambda part: part.inline()).alias(f"{MARK}{' '.join(bound)}: {self!r}")
        return marked.alias(self.output_name)._pyexpr

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

    def __pow__(self, other: Any) -> Any:
        return self._derived("**", self, other, super().__pow__)

    def __rpow__(self, other: Any) -> Any:
        return self._derived("**", other, self, super().__rpow__)

    def __neg__(self) -> Metric:
        return Derived("-", 0, self)

    def __array_ufunc__(self, ufunc: Callable[..., Any], method: str, *inputs: Any, **kwargs: Any) -> Any:
        plain = super().__array_ufunc__
        if method != "__call__" or kwargs or ufunc.__name__ not in OF_NUMPY:
            return plain(ufunc, method, *inputs, **kwargs)
        left, right = inputs
        return self._derived(OF_NUMPY[ufunc.__name__], left, right, lambda _: plain(ufunc, method, left, right))

    def _derived(self, operator: str, left: Any, right: Any, plain: Callable[[Any], pl.Expr]) -> Any:
        sides = [side if isinstance(side, Metric) else as_number(side) for side in (left, right)]
        if sides[0] is None or sides[1] is None:
            return plain(right if left is self else left)
        return Derived(operator, sides[0], sides[1])

    round = of_value(pl.Expr.round)
    clip = of_value(pl.Expr.clip)
    fill_null = of_value(pl.Expr.fill_null)
    abs = of_value(pl.Expr.abs)
    sqrt = of_value(pl.Expr.sqrt)
    log = of_value(pl.Expr.log)
    log10 = of_value(pl.Expr.log10)
    log1p = of_value(pl.Expr.log1p)
    exp = of_value(pl.Expr.exp)
    floor = of_value(pl.Expr.floor)
    ceil = of_value(pl.Expr.ceil)
    sign = of_value(pl.Expr.sign)
    cast = of_value(pl.Expr.cast)


class Planned(Metric):
    """A metric whose value a plan works out as one column."""

    @abstractmethod
    def inline(self) -> pl.Expr:
        """The metric as one expression over the rows of a group."""

    def combined(self, values: Callable[[Planned], pl.Expr]) -> pl.Expr:
        return values(self)


@dataclass(frozen=True, eq=False, repr=False)
class Derived(Metric):
    """A metric worked out from others by arithmetic."""

    operator: str
    left: Metric | float
    right: Metric | float
    given_name: str | None = None

    @property
    def output_name(self) -> str:
        return self.given_name or self.parts[0].output_name

    def _sides(self) -> tuple[Metric | float, Metric | float]:
        return self.left, self.right

    @property
    def parts(self) -> tuple[Metric, ...]:
        return tuple(side for side in self._sides() if isinstance(side, Metric))

    def with_parts(self, parts: Sequence[Metric]) -> Metric:
        rest = iter(parts)
        left, right = (next(rest) if isinstance(side, Metric) else side for side in self._sides())
        return replace(self, left=left, right=right)

    def combined(self, values: Callable[[Planned], pl.Expr]) -> pl.Expr:
        left, right = (side.combined(values) if isinstance(side, Metric) else side for side in self._sides())
        return OPERATIONS[self.operator](left, right)

    def alias(self, name: str) -> Metric:
        return replace(self, given_name=name)

    @property
    def best(self) -> Best | None:
        if self.operator == "**":
            return None
        left, right = (side.best if isinstance(side, Metric) else None for side in self._sides())
        if self.operator == "-":
            right = other_end(right)
        if isinstance(self.left, Metric) and isinstance(self.right, Metric):
            return left if left == right and self.operator in "+-" else None
        if self.operator in "*/":
            number = self.right if isinstance(self.left, Metric) else self.left
            flipped = (number < 0) != (self.operator == "/" and isinstance(self.right, Metric))
            left, right = (other_end(end) if flipped else end for end in (left, right))
        return left or right

    @cached_property
    def key(self) -> tuple[Any, ...]:
        sides = (side.key if isinstance(side, Metric) else side for side in self._sides())
        return (self.operator, *sides, self.given_name)

    def __repr__(self) -> str:
        return f"({self.left!r} {self.operator} {self.right!r})" + alias_shown(self.given_name)

    def __reduce__(self) -> Any:
        return Derived, (self.operator, self.left, self.right, self.given_name)


@dataclass(frozen=True, eq=False, repr=False)
class Applied(Metric):
    """A function of the value of a metric."""

    function: str
    metric: Metric
    arguments: tuple[tuple[str, Any], ...]
    given_name: str | None = None

    @property
    def output_name(self) -> str:
        return self.given_name or self.metric.output_name

    @property
    def parts(self) -> tuple[Metric, ...]:
        return (self.metric,)

    def with_parts(self, parts: Sequence[Metric]) -> Metric:
        (metric,) = parts
        return replace(self, metric=metric)

    def combined(self, values: Callable[[Planned], pl.Expr]) -> pl.Expr:
        applied: pl.Expr = getattr(self.metric.combined(values), self.function)(**dict(self.arguments))
        return applied

    def alias(self, name: str) -> Metric:
        return replace(self, given_name=name)

    @property
    def best(self) -> Best | None:
        falls = self.function == "log" and dict(self.arguments).get("base", 2) < 1
        return self.metric.best if self.function in INCREASING and not falls else None

    @cached_property
    def key(self) -> tuple[Any, ...]:
        return (self.function, self.metric.key, identity(self.arguments), self.given_name)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.arguments)
        return f"{self.metric!r}.{self.function}({shown})" + alias_shown(self.given_name)

    def __reduce__(self) -> Any:
        return Applied, (self.function, self.metric, self.arguments, self.given_name)


def metrics_in(expression: pl.Expr) -> Iterator[tuple[str, set[str]]]:
    """The metrics that a plain expression holds, as they are written, each with the roles that it is bound to."""
    name = expression.meta.output_name(raise_if_undetermined=False)
    if name is not None and name.startswith(MARK):
        bound, _, text = name.removeprefix(MARK).partition(": ")
        yield text, set(bound.split())
    else:
        for inner in expression.meta.pop():
            yield from metrics_in(inner)


def alias_shown(name: str | None) -> str:
    """How a name of its own is shown in the repr of a metric."""
    return "" if name is None else f".alias({name!r})"


def other_end(best: Best | None) -> Best | None:
    """The end that is good where high and low are exchanged."""
    return None if best is None else "min" if best == "max" else "max"
