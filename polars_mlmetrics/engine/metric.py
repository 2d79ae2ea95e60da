"""A metric as a value: a Polars expression that the plan can also take apart."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from polars_mlmetrics.data.roles import checked_roles, is_row_wise
from polars_mlmetrics.engine.arithmetic import ratio
from polars_mlmetrics.engine.inline import inline
from polars_mlmetrics.engine.settle import Best
from polars_mlmetrics.errors import MetricError

if TYPE_CHECKING:
    from polars_mlmetrics.engine.measure import Measure

OPERATIONS: dict[str, Callable[[Any, Any], pl.Expr]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": lambda left, right: ratio(left, right if isinstance(right, pl.Expr) else pl.lit(right)),
}


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
    @abstractmethod
    def output_name(self) -> str:
        """The name of the column it gives."""

    @abstractmethod
    def measures(self) -> Iterator[Measure]:
        """The measures it is made of, left to right."""

    @abstractmethod
    def each(self, change: Callable[[Measure], Measure]) -> Metric:
        """The same metric with each of its measures changed."""

    @abstractmethod
    def combined(self, values: Callable[[Measure], pl.Expr]) -> pl.Expr:
        """Its value, from the values of its measures."""

    @abstractmethod
    def alias(self, name: str) -> Metric:
        """The same metric under another name."""

    @property
    @abstractmethod
    def best(self) -> Best | None:
        """Which end of its range is good; None where neither is."""

    # -- what follows ------------------------------------------------------------------------------------------

    @cached_property
    def _pyexpr(self) -> Any:  # type: ignore[override]
        return self.combined(inline).alias(self.output_name)._pyexpr

    @property
    @abstractmethod
    def key(self) -> tuple[Any, ...]:
        """What makes two metrics the same one."""

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


@dataclass(frozen=True, eq=False, repr=False)
class MeanOf(Metric):
    """The weighted mean of several metrics; what is undefined is left out of it."""

    parts: tuple[Metric, ...]
    weights: tuple[float, ...]
    given_name: str

    @property
    def output_name(self) -> str:
        return self.given_name

    def measures(self) -> Iterator[Measure]:
        for part in self.parts:
            yield from part.measures()

    def each(self, change: Callable[[Measure], Measure]) -> Metric:
        return replace(self, parts=tuple(part.each(change) for part in self.parts))

    def combined(self, values: Callable[[Measure], pl.Expr]) -> pl.Expr:
        weighted = [(part.combined(values), weight) for part, weight in zip(self.parts, self.weights, strict=True)]
        total = pl.sum_horizontal(value * weight for value, weight in weighted)
        return ratio(total, pl.sum_horizontal(pl.when(value.is_not_null()).then(weight) for value, weight in weighted))

    def alias(self, name: str) -> Metric:
        return replace(self, given_name=name)

    @property
    def best(self) -> Best | None:
        whole = sum(self.weights)
        weighted = zip(self.parts, self.weights, strict=True)
        ends = {part.best if weight * whole > 0 else _other_end(part.best) for part, weight in weighted}
        return ends.pop() if len(ends) == 1 else None

    @cached_property
    def key(self) -> tuple[Any, ...]:
        return (self.given_name, self.weights, *(part.key for part in self.parts))

    def __repr__(self) -> str:
        return f"mean_of({list(self.parts)!r}, weights={list(self.weights)!r}).alias({self.given_name!r})"

    def __reduce__(self) -> Any:
        return MeanOf, (self.parts, self.weights, self.given_name)


def _other_end(best: Best | None) -> Best | None:
    return None if best is None else "min" if best == "max" else "max"
