"""Metrics made of metrics: one under another name, arithmetic of several, a function of a value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import polars as pl

from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.formula.averages import Best
from polars_mlmetrics.formula.declaration import Interval
from polars_mlmetrics.formula.measure import Measure, Node, Planned
from polars_mlmetrics.formula.parameters import identity

OPERATIONS: dict[str, Callable[[Any, Any], pl.Expr]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": lambda left, right: ratio(left, right if isinstance(right, pl.Expr) else pl.lit(right)),
    # As floats: a power of a count may exceed every whole number of 64 bits.
    "**": lambda base, exponent: (base if isinstance(base, pl.Expr) else pl.lit(base)).cast(pl.Float64) ** exponent,
}

INCREASING = ("round", "clip", "fill_null", "sqrt", "log", "log10", "log1p", "exp", "floor", "ceil", "cast")
"""The functions of a value that keep high above low."""


OF_ENDS = ("round", "clip", "fill_null", "floor", "ceil", "sign", "cast")
"""The functions of a value that are not smooth: they are applied to the ends of an interval."""

WITHOUT_INTERVAL: tuple[Interval, ...] = ("extreme", "too_high", "total")
"""The kinds of metrics that have no interval, or of draws alone: the worse first."""


@dataclass(frozen=True, eq=False, repr=False)
class Named(Node):
    """A metric under a name of its own."""

    metric: Node
    name: str

    @property
    def output_name(self) -> str:
        return self.name

    @cached_property
    def parts(self) -> tuple[Node, ...]:
        return (replace(self.metric, called=self.name) if isinstance(self.metric, Measure) else self.metric,)

    def with_parts(self, parts: Sequence[Node]) -> Node:
        (metric,) = parts
        # The name stays here, and goes where this does.
        return replace(self, metric=replace(metric, called=None) if isinstance(metric, Measure) else metric)

    def combined(self, values: Callable[[Planned], pl.Expr]) -> pl.Expr:
        return self.parts[0].combined(values)

    @property
    def best(self) -> Best | None:
        return self.metric.best

    @property
    def interval_kind(self) -> Interval:
        return self.metric.interval_kind

    @cached_property
    def key(self) -> tuple[Any, ...]:
        return (*self.metric.key, self.name)

    def __repr__(self) -> str:
        return f"{self.metric!r}.alias({self.name!r})"


@dataclass(frozen=True, eq=False, repr=False)
class Derived(Node):
    """Arithmetic of metrics."""

    operator: str
    left: Node | float
    right: Node | float

    @property
    def output_name(self) -> str:
        return self.parts[0].output_name

    def _sides(self) -> tuple[Node | float, Node | float]:
        return self.left, self.right

    @property
    def parts(self) -> tuple[Node, ...]:
        return tuple(side for side in self._sides() if isinstance(side, Node))

    def with_parts(self, parts: Sequence[Node]) -> Node:
        rest = iter(parts)
        left, right = (next(rest) if isinstance(side, Node) else side for side in self._sides())
        return replace(self, left=left, right=right)

    def combined(self, values: Callable[[Planned], pl.Expr]) -> pl.Expr:
        left, right = (side.combined(values) if isinstance(side, Node) else side for side in self._sides())
        return OPERATIONS[self.operator](left, right)

    @property
    def best(self) -> Best | None:
        if self.operator == "**":
            return None
        left, right = (side.best if isinstance(side, Node) else None for side in self._sides())
        if self.operator == "-":
            right = other_end(right)
        if isinstance(self.left, Node) and isinstance(self.right, Node):
            return left if left == right and self.operator in "+-" else None
        if self.operator in "*/":
            (number,) = (side for side in self._sides() if not isinstance(side, Node))
            flipped = (number < 0) != (self.operator == "/" and isinstance(self.right, Node))
            left, right = (other_end(end) if flipped else end for end in (left, right))
        return left or right

    @property
    def interval_kind(self) -> Interval:
        # A total over a total is a share; with a number it stays a total.
        kind, is_ratio = kind_of_several(self.parts), self.operator == "/" and len(self.parts) == 2
        return "t" if is_ratio and kind == "total" else kind

    @cached_property
    def key(self) -> tuple[Any, ...]:
        sides = (side.key if isinstance(side, Node) else side for side in self._sides())
        return (self.operator, *sides)

    def __repr__(self) -> str:
        return f"({self.left!r} {self.operator} {self.right!r})"


@dataclass(frozen=True, eq=False, repr=False)
class Applied(Node):
    """A function of the value of a metric."""

    function: str
    metric: Node
    arguments: tuple[tuple[str, Any], ...]

    @property
    def output_name(self) -> str:
        return self.metric.output_name

    @property
    def parts(self) -> tuple[Node, ...]:
        return (self.metric,)

    def with_parts(self, parts: Sequence[Node]) -> Node:
        (metric,) = parts
        return replace(self, metric=metric)

    def combined(self, values: Callable[[Planned], pl.Expr]) -> pl.Expr:
        applied: pl.Expr = getattr(self.metric.combined(values), self.function)(**dict(self.arguments))
        return applied

    @property
    def best(self) -> Best | None:
        falls = self.function == "log" and dict(self.arguments).get("base", 2) < 1
        return self.metric.best if self.function in INCREASING and not falls else None

    @property
    def keeps_ends(self) -> bool:
        """Whether the ends of its interval are made of those of the metric's."""
        return self.function in OF_ENDS

    @property
    def interval_kind(self) -> Interval:
        return self.metric.interval_kind if self.keeps_ends else kind_of_several(self.parts)

    @cached_property
    def key(self) -> tuple[Any, ...]:
        return (self.function, self.metric.key, identity(self.arguments))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self.arguments)
        return f"{self.metric!r}.{self.function}({shown})"


def kind_of_several(parts: Sequence[Node]) -> Interval:
    """The kind of the interval of what is made of several metrics: none where one of them has none."""
    kinds = {part.interval_kind for part in parts}
    return next((kind for kind in WITHOUT_INTERVAL if kind in kinds), "t")


def without_name(node: Node) -> Node:
    """The metric as it is without a name of its own."""
    return node.metric if isinstance(node, Named) else node


def other_end(best: Best | None) -> Best | None:
    """The end that is good where high and low are exchanged."""
    return None if best is None else "min" if best == "max" else "max"
