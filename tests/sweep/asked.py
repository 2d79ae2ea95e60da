"""What is asked for: metrics, functions of them, sums and means. Each can be built, written down and settled."""

from __future__ import annotations

import math
import operator
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

import polars_mlmetrics as mlm
from tests import oracle
from tests.references import total
from tests.sweep import settled
from tests.sweep.settled import NULL, UNCLEAR, Answer
from tests.sweep.tables import Part, Table

COUNTS = ("n_rows", "n_samples", "n_excluded")
SUMS = (*COUNTS, "true_positives", "false_positives", "false_negatives", "true_negatives", "support")


@dataclass(frozen=True)
class Made:
    """An expression, by the text that makes it."""

    text: str

    @property
    def expression(self) -> pl.Expr:
        made: pl.Expr = eval(self.text, {"pl": pl})
        return made

    def __repr__(self) -> str:
        return self.text


def built(value: Any) -> Any:
    return value.expression if isinstance(value, Made) else value


def arguments(given: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in given.items())


@dataclass(frozen=True)
class Where:
    """A condition, for Polars and for Python."""

    column: str
    sign: str
    value: Any

    def __call__(self, row: Mapping[str, Any]) -> bool:
        cell = row[self.column]
        if self.value is None:
            return cell is not None
        return cell is not None and getattr(operator, self.sign)(cell, self.value)

    @property
    def made(self) -> Made:
        return Made(f"(pl.col({self.column!r}).{self.sign}({self.value!r}))")


@dataclass(frozen=True)
class Setting:
    """How a metric is settled: its roles and scope so far, and what is done with each measure it is made of."""

    rest: Mapping[str, Any]
    of_leaf: Callable[[Leaf, Part, Mapping[str, Any]], Answer]
    bound: Mapping[str, Any] = field(default_factory=dict)
    scope: tuple[Where, ...] = ()

    def of(self, leaf: Leaf, part: Part) -> tuple[Part, dict[str, Any]]:
        """The rows and the roles of a measure."""
        for holds in (*leaf.where, *self.scope):
            part = part.where(holds)
        return part, {**self.rest, **leaf.roles, **self.bound}


@dataclass(frozen=True)
class Counts:
    """What a tidy row says beside the value."""

    n_rows: int
    n_excluded: int
    n_samples: int
    support: float | None
    undefined: Mapping[Any, int]
    """How many units have no value, by what they are units of."""

    @staticmethod
    def over(each: Sequence[Counts], rows: Any, excluded: Any, support: Any, undefined: Mapping[Any, int]) -> Counts:
        """Those of several parts together."""
        supports = [counts.support for counts in each if counts.support is not None]
        return Counts(
            n_rows=rows(counts.n_rows for counts in each),
            n_excluded=excluded(counts.n_excluded for counts in each),
            n_samples=min(counts.n_samples for counts in each),
            support=support(supports) if supports else None,
            undefined=undefined,
        )


class Node:
    """Something that can be asked for."""

    @abstractmethod
    def metric(self) -> Any: ...

    @abstractmethod
    def code(self) -> str: ...

    @abstractmethod
    def answer(self, part: Part, setting: Setting) -> Answer: ...

    @abstractmethod
    def parts(self) -> Sequence[Node]: ...

    def leaves(self, setting: Setting) -> Iterator[tuple[Leaf, Setting]]:
        """The measures it is made of, each with its roles and scope."""
        for part in self.parts():
            yield from part.leaves(setting)

    def counts(self, part: Part, setting: Setting) -> Counts:
        """The counts of what it is made of: the least that all parts have, the most that one leaves out."""
        each = [node.counts(part, setting) for node in self.parts()]
        undefined = {which: n for counts in each for which, n in counts.undefined.items()}
        return Counts.over(each, min, max, min, undefined)


@dataclass(frozen=True)
class Leaf(Node):
    """A metric of the catalogue."""

    name: str
    params: Mapping[str, Any]
    roles: Mapping[str, Any] = field(default_factory=dict)
    where: tuple[Where, ...] = ()

    def metric(self) -> Any:
        made = getattr(mlm, self.name)(**{name: built(value) for name, value in self.params.items()})
        made = made.on(**{role: built(column) for role, column in self.roles.items()}) if self.roles else made
        return made.filter(*(condition.made.expression for condition in self.where)) if self.where else made

    def code(self) -> str:
        made = f"mlm.{self.name}({arguments(self.params)})"
        made += f".on({arguments(self.roles)})" if self.roles else ""
        return made + (f".filter({', '.join(repr(c.made) for c in self.where)})" if self.where else "")

    def parts(self) -> Sequence[Node]:
        return ()

    def answer(self, part: Part, setting: Setting) -> Answer:
        rows, roles = setting.of(self, part)
        return setting.of_leaf(self, rows, roles)

    def leaves(self, setting: Setting) -> Iterator[tuple[Leaf, Setting]]:
        yield self, setting

    def counts(self, part: Part, setting: Setting) -> Counts:
        rows, roles = setting.of(self, part)

        def work() -> dict[str, Any]:
            given = {role: built(column) for role, column in roles.items()}
            return oracle.expected_counts(self.name, rows.frame, params_of(self), given)

        name = (self.name, repr(self.params), repr(roles))
        found = of_table(part.table, ("counts", rows.places, *name), work)
        reads_truth = "truth" in oracle.DECLARED[self.name].reads or self.params.get("average") == "weighted"
        support = found["support"] if reads_truth else None
        which = (*name, repr((*self.where, *setting.scope)))
        undefined = {which: found["n_undefined"]}
        return Counts(found["n_rows"], found["n_excluded"], found["n_samples"], support, undefined)

    # -- what must be known of it ------------------------------------------------------------------------------

    @property
    def grain(self) -> str:
        return oracle.grain_of(self.name, self.params)

    @property
    def looks_into_samples(self) -> bool:
        return self.grain == "sample" or self.name == "n_samples" or oracle.looks_across(self.name, self.params)

    @property
    def has_averages(self) -> bool:
        return oracle.DECLARED[self.name].units == "average"

    @property
    def is_of_one_label(self) -> bool:
        """Whether it may be averaged over labels by somebody else."""
        plain = self.params.get("average", "micro") == "micro"
        return self.has_averages and plain and not oracle.looks_across(self.name, self.params)

    @property
    def merges(self) -> bool:
        """Whether a state can hold it: a sample is whole, a group is in parts."""
        if self.name == "information_score":
            return self.params.get("prior") is not None
        if self.grain == "sample":
            return True
        if self.name in WITH_BINS:
            return self.params.get("bins") is not None
        return self.name not in WHOLE_GROUPS


WITH_BINS = (
    "roc_auc", "gini", "average_precision", "ks", "recall_at_precision", "precision_at_recall", "recall_at_fpr",
    "lift_at",
)  # fmt: skip
WHOLE_GROUPS = ("spearman", "median_absolute_error", "relative_absolute_error")


def params_of(leaf: Leaf) -> dict[str, Any]:
    return {name: built(value) for name, value in leaf.params.items()}


def of_table(table: Table, key: Any, work: Callable[[], Any]) -> Any:
    """What was worked out of a table before is not worked out again."""
    if key not in table.settled:
        table.settled[key] = work()
    return table.settled[key]


def outcome(leaf: Leaf, part: Part, roles: Mapping[str, Any]) -> oracle.Outcome:
    """A metric of some rows, by its reference."""

    def work() -> oracle.Outcome:
        given = {role: built(column) for role, column in roles.items()}
        return oracle.outcome(leaf.name, part.frame, params_of(leaf), given)

    found: oracle.Outcome = of_table(part.table, (part.places, leaf.name, repr(leaf.params), repr(roles)), work)
    return found


def as_answer(leaf: Leaf, value: oracle.Value) -> Answer:
    if value is None or not math.isfinite(value):
        return Answer(value)
    if leaf.name in COUNTS:
        return Answer(value)
    least = 0.0 if leaf.name in SUMS else 1.0
    return Answer(value, oracle.READINGS * max(abs(value), least))


def value_of(leaf: Leaf, part: Part, roles: Mapping[str, Any]) -> Answer:
    """The answer that a measure has of some rows."""
    if leaf.params.get("ties") == "ignore" and part.table.frame["label"].dtype != pl.String:
        return UNCLEAR  # the order of the labels is not that of their names
    return as_answer(leaf, outcome(leaf, part, roles).value)


# --- around a metric ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bound(Node):
    inner: Node
    roles: Mapping[str, Any]

    def metric(self) -> Any:
        return self.inner.metric().on(**{role: built(column) for role, column in self.roles.items()})

    def code(self) -> str:
        return f"{self.inner.code()}.on({arguments(self.roles)})"

    def parts(self) -> Sequence[Node]:
        return (self.inner,)

    def _inside(self, setting: Setting) -> Setting:
        return replace(setting, bound={**self.roles, **setting.bound})

    def answer(self, part: Part, setting: Setting) -> Answer:
        return self.inner.answer(part, self._inside(setting))

    def leaves(self, setting: Setting) -> Iterator[tuple[Leaf, Setting]]:
        return self.inner.leaves(self._inside(setting))

    def counts(self, part: Part, setting: Setting) -> Counts:
        return self.inner.counts(part, self._inside(setting))


@dataclass(frozen=True)
class Scoped(Node):
    inner: Node
    where: Where

    def metric(self) -> Any:
        return self.inner.metric().filter(self.where.made.expression)

    def code(self) -> str:
        return f"{self.inner.code()}.filter({self.where.made!r})"

    def parts(self) -> Sequence[Node]:
        return (self.inner,)

    def _inside(self, setting: Setting) -> Setting:
        return replace(setting, scope=(self.where, *setting.scope))

    def answer(self, part: Part, setting: Setting) -> Answer:
        return self.inner.answer(part, self._inside(setting))

    def leaves(self, setting: Setting) -> Iterator[tuple[Leaf, Setting]]:
        return self.inner.leaves(self._inside(setting))

    def counts(self, part: Part, setting: Setting) -> Counts:
        return self.inner.counts(part, self._inside(setting))


FUNCTIONS: dict[str, Callable[..., Answer]] = {
    "round": settled.rounded, "clip": settled.clipped, "fill_null": settled.filled, "abs": settled.size,
    "sqrt": settled.root, "log1p": settled.log1p, "__pow__": lambda answer, _: settled.square(answer),
    "cast": lambda answer, kind: settled.single(answer) if kind.text == "pl.Float32" else answer,
}  # fmt: skip


@dataclass(frozen=True)
class Applied(Node):
    """A function of a value."""

    inner: Node
    function: str
    given: tuple[Any, ...] = ()

    def metric(self) -> Any:
        return getattr(self.inner.metric(), self.function)(*map(built, self.given))

    def code(self) -> str:
        return f"{self.inner.code()}.{self.function}({', '.join(map(repr, self.given))})"

    def parts(self) -> Sequence[Node]:
        return (self.inner,)

    def answer(self, part: Part, setting: Setting) -> Answer:
        inner = self.inner.answer(part, setting)
        return inner if inner.unclear else FUNCTIONS[self.function](inner, *self.given)


SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip
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

    def metric(self) -> Any:
        left, right = (side.metric() if isinstance(side, Node) else side for side in (self.left, self.right))
        return SIGNS[self.sign](left, right)

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

    def metric(self) -> Any:
        built_each = [node.metric() for node in self.each]
        given = built_each[0] if self.names is None else dict(zip(self.names, built_each, strict=True))
        target = {} if self.target is None else {"target": self.target}
        return mlm.average_score(given, self.weights, **target)

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

    def metric(self) -> Any:
        return Made(self.text).expression

    def code(self) -> str:
        return self.text

    def parts(self) -> Sequence[Node]:
        return ()

    def answer(self, part: Part, setting: Setting) -> Answer:
        value = PLAIN[self.text](part.rows)
        return Answer(value, oracle.READINGS * abs(value) if math.isfinite(value) else 0.0)


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
