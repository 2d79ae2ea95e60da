"""What is made of metrics: filters, functions, sums, means over targets, and plain expressions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.laws import oracle
from tests.laws.references.rows import total
from tests.support.readings import READINGS
from tests.sweep import settled
from tests.sweep.asked import Counts, Leaf, Node, Setting, Where, arguments, outcome
from tests.sweep.settled import NULL, UNCLEAR, Answer
from tests.sweep.tables import Part

# --- around a metric ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Around(Node):
    """Something around a metric."""

    inner: Node

    def parts(self) -> Sequence[Node]:
        return (self.inner,)

    def _inside(self, setting: Setting) -> Setting:
        """How the metric in it is settled."""
        return setting

    def answer(self, part: Part, setting: Setting) -> Answer:
        return self.inner.answer(part, self._inside(setting))

    def leaves(self, setting: Setting) -> Iterator[tuple[Leaf, Setting]]:
        return self.inner.leaves(self._inside(setting))

    def counts(self, part: Part, setting: Setting) -> Counts:
        return self.inner.counts(part, self._inside(setting))


@dataclass(frozen=True)
class Bound(Around):
    roles: Mapping[str, Any]

    def code(self) -> str:
        return f"{self.inner.code()}.on({arguments(self.roles)})"

    def _inside(self, setting: Setting) -> Setting:
        return replace(setting, bound={**self.roles, **setting.bound})


@dataclass(frozen=True)
class Scoped(Around):
    where: Where

    def code(self) -> str:
        return f"{self.inner.code()}.filter({self.where.made!r})"

    def _inside(self, setting: Setting) -> Setting:
        return replace(setting, scope=(self.where, *setting.scope))


FUNCTIONS: dict[str, Callable[..., Answer]] = {
    "round": settled.rounded, "clip": settled.clipped, "fill_null": settled.filled, "abs": settled.size,
    "sqrt": settled.root, "log1p": settled.log1p, "__pow__": lambda answer, _: settled.product(answer, answer),
    "cast": lambda answer, kind: settled.single(answer) if kind.text == "pl.Float32" else answer,
}  # fmt: skip


@dataclass(frozen=True)
class Applied(Around):
    """A function of a value."""

    function: str
    given: tuple[Any, ...] = ()

    def code(self) -> str:
        return f"{self.inner.code()}.{self.function}({', '.join(map(repr, self.given))})"

    def answer(self, part: Part, setting: Setting) -> Answer:
        inner = self.inner.answer(part, setting)
        return inner if inner.unclear else FUNCTIONS[self.function](inner, *self.given)


SETTLED: dict[str, Callable[[Answer, Answer], Answer]] = {
    "+": settled.added, "-": lambda left, right: settled.added(left, settled.negated(right)),
    "*": settled.product, "/": settled.quotient,
}  # fmt: skip


@dataclass(frozen=True)
class Derived(Node):
    """Two metrics, or one and a number, by arithmetic."""

    sign: str
    left: Node | float
    right: Node | float

    def code(self) -> str:
        left, right = (side.code() if isinstance(side, Node) else repr(side) for side in (self.left, self.right))
        return f"({left} {self.sign} {right})"

    def parts(self) -> Sequence[Node]:
        return [side for side in (self.left, self.right) if isinstance(side, Node)]

    def answer(self, part: Part, setting: Setting) -> Answer:
        left, right = (
            side.answer(part, setting) if isinstance(side, Node) else Answer(float(side))
            for side in (self.left, self.right)
        )
        return UNCLEAR if left.unclear or right.unclear else SETTLED[self.sign](left, right)


# --- several targets ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Averaged(Node):
    """`average_score`: a mean over labels, over a column of targets, or over targets with a metric each."""

    each: tuple[Node, ...]
    names: tuple[Any, ...] | None
    weights: Mapping[Any, float] | None
    target: str | None

    def code(self) -> str:
        each = [node.code() for node in self.each]
        if self.names is not None:
            each = ["{" + ", ".join(f"{n!r}: {c}" for n, c in zip(self.names, each, strict=True)) + "}"]
        target = "" if self.target is None else f", target={self.target!r}"
        return f"mlm.average_score({each[0]}, {self.weights!r}{target})"

    def parts(self) -> Sequence[Node]:
        return self.each

    @property
    def column(self) -> str:
        """The column of the targets."""
        by_label = all(leaf.has_averages for node in self.each for leaf, _ in node.leaves(NO_SETTING))
        return self.target or ("label" if by_label else "target")

    def answer(self, part: Part, setting: Setting) -> Answer:
        pairs, unknown = [], False
        for name, node, rows in self._targets(part):
            answer = node.answer(rows, setting)
            if answer.or_null:
                return UNCLEAR
            if all(outcome(leaf, *own.of(leaf, rows)).included == 0 for leaf, own in node.leaves(setting)):
                continue
            if answer.unclear:
                return UNCLEAR
            unknown |= answer.value is None and any(
                outcome(leaf, *own.of(leaf, rows)).unknown for leaf, own in node.leaves(setting)
            )
            pairs.append((1.0 if self.weights is None else float(self.weights[name]), answer))
        mean = settled.mean(pairs)
        return NULL if unknown and not mean.unclear and not oracle.is_nan(mean.value) else mean

    def _targets(self, part: Part) -> Iterator[tuple[Any, Node, Part]]:
        """The targets that are averaged, each with its metric and its rows."""
        column = self.column
        there = dict.fromkeys(row[column] for row in part.rows if row[column] is not None)
        names = self.names or [name for name in there if self.weights is None or name in self.weights]
        nodes = self.each * (len(names) if self.names is None else 1)
        for name, node in zip(names, nodes, strict=True):
            yield name, node, part.where(Where(column, "eq", name))

    def counts(self, part: Part, setting: Setting) -> Counts:
        if self.names is None:
            named = part.where(Where(self.column, "ne", None))
            leaves = [(leaf.counts(part, own), leaf.counts(named, own)) for leaf, own in self.each[0].leaves(setting)]
            n_excluded = max(of_all.n_excluded + of_all.n_rows - of_named.n_rows for of_all, of_named in leaves)
            undefined = sum(
                node.answer(rows, setting).value is None
                and any(outcome(leaf, *own.of(leaf, rows)).included for leaf, own in node.leaves(setting))
                for _, node, rows in self._targets(part)
            )
            which = (self.code(), repr(setting.bound), repr(setting.scope))
            of_named = self.each[0].counts(named, setting)
            return replace(of_named, n_excluded=n_excluded, undefined={which: undefined})
        each = [(name, node.counts(rows, setting)) for name, node, rows in self._targets(part)]
        undefined = {(name, which): n for name, counts in each for which, n in counts.undefined.items()}
        return Counts.over([counts for _, counts in each], sum, sum, sum, undefined)


NO_SETTING = Setting({}, lambda leaf, part, roles: UNCLEAR)


# --- plain expressions ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plain(Node):
    """An expression that is no metric."""

    text: str

    def code(self) -> str:
        return self.text

    def answer(self, part: Part, setting: Setting) -> Answer:
        value = PLAIN[self.text](part.rows)
        return Answer(value, READINGS * abs(value) if math.isfinite(value) else 0.0)


PLAIN: dict[str, Callable[[list[dict[str, Any]]], float]] = {
    "pl.len()": len,
    "pl.col('rate').sum()": lambda rows: total(row["rate"] for row in rows if row["rate"] is not None),
    "pl.col('country').is_null().sum()": lambda rows: sum(row["country"] is None for row in rows),
}


def inside(node: Node) -> Iterator[Node]:
    """A metric and all that it is made of."""
    yield node
    for part in node.parts():
        yield from inside(part)
