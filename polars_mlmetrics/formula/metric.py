"""A metric as a value: a Polars expression that holds a tree, which the plan can take apart."""

from __future__ import annotations

import html
import inspect
from collections.abc import Callable, Iterator
from functools import cached_property, update_wrapper
from typing import Any, Concatenate, ParamSpec, Unpack, cast, overload

import polars as pl

from polars_mlmetrics.data.expressions import check_no_pattern, is_row_wise
from polars_mlmetrics.data.roles import ROLE_NAMES, Roles, checked_roles
from polars_mlmetrics.errors import INTERNAL, MetricError
from polars_mlmetrics.formula.averages import Best
from polars_mlmetrics.formula.inline import inline
from polars_mlmetrics.formula.measure import Node
from polars_mlmetrics.formula.parameters import as_number
from polars_mlmetrics.formula.reproduction import signature_of
from polars_mlmetrics.formula.tree import Applied, Derived, Named, without_name


class Equality(pl.Expr):
    """The result of `==` and `!=` of a metric: an expression, and as a truth value whether it is the same metric."""

    def __init__(self, expression: pl.Expr, truth: bool) -> None:
        self._pyexpr = expression._pyexpr
        self._truth = truth

    def __bool__(self) -> bool:  # type: ignore[override]
        return self._truth


P = ParamSpec("P")

OF_NUMPY = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "power": "**"}
"""The operators that NumPy's functions of two numbers are."""

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
        return Metric(Applied(plain.__name__, self.tree, tuple(arguments.items())))

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
    """A metric: an expression that Polars takes anywhere, and a declaration that `evaluate` can plan.

    Bind it to columns with `.on(...)`, name it with `.alias(...)`, restrict it to rows with `.filter(...)`. Sums,
    differences, products, quotients and powers of metrics and numbers are metrics again, and so are functions of the
    value: `round`, `clip`, `fill_null`, `abs`, `sqrt`, `log`, `exp`, `floor`, `ceil`, `sign`, `cast` to a number.
    Anything else (`.over()`, `> 0.5`) is a plain expression.
    """

    def __init__(self, tree: Node) -> None:
        self.tree = tree

    @property
    def output_name(self) -> str:
        """The name of its column."""
        return self.tree.output_name

    @property
    def best(self) -> Best | None:
        """Which end of its range is good; None if neither is."""
        return self.tree.best

    @property
    def key(self) -> tuple[Any, ...]:
        """A key that is equal for two metrics that are the same one."""
        return self.tree.key

    @property
    def signature(self) -> str:
        """One line with all that decides its number: parameters, also those left at their default, and the version.

        `cluster` is what intervals take as one: the sample, unless a verb is given `cluster=`.

        Examples
        --------
        >>> import polars_mlmetrics as mlm
        >>> print(mlm.f1(average="macro").signature)
        f1|threshold:0.5|average:macro|inclusive:False|labels:None|undefined:None|weight:None|cluster:sample|version:0.1.0
        """
        return signature_of(self.tree)

    def alias(self, name: str) -> Metric:
        """The same metric under another name."""
        return Metric(Named(without_name(self.tree), name))

    @cached_property
    def _pyexpr(self) -> Any:  # type: ignore[override]
        bound = [role for role in ROLE_NAMES if all(role in measure.roles for measure in self.tree.measures())]
        marked = inline(self.tree).alias(f"{MARK}{' '.join(bound)}: {self!r}")
        return marked.alias(self.output_name)._pyexpr

    def on(self, **roles: Unpack[Roles]) -> Metric:
        """Bind roles to columns: `.on(score="p", truth="clicked", weight="w")`.

        A role that is not bound is read from the column of its own name, or from the role passed to `evaluate` and
        other functions.

        Examples
        --------
        >>> import polars as pl, polars_mlmetrics as mlm
        >>> log = pl.DataFrame({"p": [0.9, 0.2, 0.4], "clicked": [1, 0, 1], "w": [1, 1, 2]})
        >>> log.select(mlm.recall().on(score="p", truth="clicked", weight="w")).item()
        0.3333333333333333
        """
        bound = checked_roles(roles)
        return Metric(self.tree.each(lambda measure: measure.bind({**measure.roles, **bound})))

    def filter(self, *predicates: Any, **constraints: Any) -> Metric:
        """The metric on the rows where every predicate holds. The filter is applied before any ranking.

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
        check_no_pattern(constraints)
        rows += [pl.col(name).eq(value) for name, value in constraints.items()]
        for predicate in rows:
            if not isinstance(predicate, pl.Expr) or not is_row_wise(predicate):
                shown = predicate if isinstance(predicate, pl.Expr) else repr(predicate)
                raise MetricError(f"filter takes conditions that are computed row by row, and {shown} is not one.")
        return Metric(self.tree.each(lambda measure: measure.restrict(*rows)))

    def __repr__(self) -> str:
        return repr(self.tree)

    def __str__(self) -> str:
        return repr(self)

    def _repr_html_(self) -> str:
        return f"<code>{html.escape(repr(self), quote=False)}</code>"

    def __reduce__(self) -> Any:
        return Metric, (self.tree,)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> Any:
        expression = super().__eq__(other)  # type: ignore[operator]
        return Equality(expression, self._is(other)) if isinstance(other, pl.Expr) else expression

    def __ne__(self, other: object) -> Any:
        expression = super().__ne__(other)  # type: ignore[operator]
        return Equality(expression, not self._is(other)) if isinstance(other, pl.Expr) else expression

    def _is(self, other: pl.Expr) -> bool:
        return isinstance(other, Metric) and self.key == other.key

    @overload
    def __add__(self, other: Metric | float) -> Metric: ...
    @overload
    def __add__(self, other: Any) -> pl.Expr: ...
    def __add__(self, other: Any) -> pl.Expr:
        return self._derived("+", self, other, super().__add__)

    @overload
    def __radd__(self, other: Metric | float) -> Metric: ...
    @overload
    def __radd__(self, other: Any) -> pl.Expr: ...
    def __radd__(self, other: Any) -> pl.Expr:
        return self._derived("+", other, self, super().__radd__)

    @overload
    def __sub__(self, other: Metric | float) -> Metric: ...
    @overload
    def __sub__(self, other: Any) -> pl.Expr: ...
    def __sub__(self, other: Any) -> pl.Expr:
        return self._derived("-", self, other, super().__sub__)

    @overload
    def __rsub__(self, other: Metric | float) -> Metric: ...
    @overload
    def __rsub__(self, other: Any) -> pl.Expr: ...
    def __rsub__(self, other: Any) -> pl.Expr:
        return self._derived("-", other, self, super().__rsub__)

    @overload
    def __mul__(self, other: Metric | float) -> Metric: ...
    @overload
    def __mul__(self, other: Any) -> pl.Expr: ...
    def __mul__(self, other: Any) -> pl.Expr:
        return self._derived("*", self, other, super().__mul__)

    @overload
    def __rmul__(self, other: Metric | float) -> Metric: ...
    @overload
    def __rmul__(self, other: Any) -> pl.Expr: ...
    def __rmul__(self, other: Any) -> pl.Expr:
        return self._derived("*", other, self, super().__rmul__)

    @overload
    def __truediv__(self, other: Metric | float) -> Metric: ...
    @overload
    def __truediv__(self, other: Any) -> pl.Expr: ...
    def __truediv__(self, other: Any) -> pl.Expr:
        return self._derived("/", self, other, super().__truediv__)

    @overload
    def __rtruediv__(self, other: Metric | float) -> Metric: ...
    @overload
    def __rtruediv__(self, other: Any) -> pl.Expr: ...
    def __rtruediv__(self, other: Any) -> pl.Expr:
        return self._derived("/", other, self, super().__rtruediv__)

    @overload
    def __pow__(self, other: Metric | float) -> Metric: ...
    @overload
    def __pow__(self, other: Any) -> pl.Expr: ...
    def __pow__(self, other: Any) -> pl.Expr:
        return self._derived("**", self, other, super().__pow__)

    @overload
    def __rpow__(self, other: Metric | float) -> Metric: ...
    @overload
    def __rpow__(self, other: Any) -> pl.Expr: ...
    def __rpow__(self, other: Any) -> pl.Expr:
        return self._derived("**", other, self, super().__rpow__)

    def __neg__(self) -> Metric:
        return Metric(Derived("-", 0, self.tree))

    def __array_ufunc__(self, ufunc: Callable[..., Any], method: str, *inputs: Any, **kwargs: Any) -> Any:
        plain = super().__array_ufunc__
        if method != "__call__" or kwargs or ufunc.__name__ not in OF_NUMPY:
            return plain(ufunc, method, *inputs, **kwargs)
        left, right = inputs
        return self._derived(OF_NUMPY[ufunc.__name__], left, right, lambda _: plain(ufunc, method, left, right))

    def _derived(self, operator: str, left: Any, right: Any, plain: Callable[[Any], pl.Expr]) -> pl.Expr:
        sides = [side.tree if isinstance(side, Metric) else as_number(side) for side in (left, right)]
        if sides[0] is None or sides[1] is None:
            return plain(right if left is self else left)
        return Metric(Derived(operator, sides[0], sides[1]))

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


def metrics_in(expression: pl.Expr) -> Iterator[tuple[str, set[str]]]:
    """The metrics that a plain expression holds, as they are written, each with the roles that it is bound to."""
    name = expression.meta.output_name(raise_if_undetermined=False)
    if name is not None and name.startswith(MARK):
        bound, _, text = name.removeprefix(MARK).partition(": ")
        yield text, set(bound.split())
    else:
        for inner in expression.meta.pop():
            yield from metrics_in(inner)
