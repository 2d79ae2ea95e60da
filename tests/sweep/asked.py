"""What is asked for: metrics. Each can be built, written down and settled."""

from __future__ import annotations

import math
import operator
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from tests.laws import oracle
from tests.laws.cases import Case
from tests.laws.references.rows import Row as Seen
from tests.support.folded_log import has_no_state
from tests.support.readings import READINGS
from tests.sweep.settled import UNCLEAR, Answer
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


def roles_of(roles: Mapping[str, Any]) -> dict[str, Any]:
    """Roles as the oracle takes them."""
    return {role: built(column) for role, column in roles.items()}


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
    """What a tidy row holds besides the value."""

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
    def code(self) -> str: ...

    @abstractmethod
    def answer(self, part: Part, setting: Setting) -> Answer: ...

    def parts(self) -> Sequence[Node]:
        """What it is made of."""
        return ()

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

    def code(self) -> str:
        made = f"mlm.{self.name}({arguments(self.params)})"
        made += f".on({arguments(self.roles)})" if self.roles else ""
        return made + (f".filter({', '.join(repr(c.made) for c in self.where)})" if self.where else "")

    def answer(self, part: Part, setting: Setting) -> Answer:
        rows, roles = setting.of(self, part)
        return setting.of_leaf(self, rows, roles)

    def leaves(self, setting: Setting) -> Iterator[tuple[Leaf, Setting]]:
        yield self, setting

    def counts(self, part: Part, setting: Setting) -> Counts:
        rows, roles = setting.of(self, part)

        def work() -> dict[str, Any]:
            return oracle.expected_counts(self.name, rows.frame, params_of(self), roles_of(roles))

        name = (self.name, repr(self.params), repr(roles))
        found = of_table(part.table, ("counts", rows.places, *name), work)
        reads_truth = "truth" in oracle.DECLARED[self.name].reads or self.params.get("average") == "weighted"
        support = found["support"] if reads_truth else None
        undefined = {(*name, repr((*self.where, *setting.scope))): found["n_undefined"]}
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
        return not has_no_state(Case(self.name, self.params))


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
        return oracle.outcome(leaf.name, part.frame, params_of(leaf), roles_of(roles))

    return of_table(part.table, (part.places, leaf.name, repr(leaf.params), repr(roles)), work)


def read_rows(leaf: Leaf, part: Part, roles: Mapping[str, Any], unit: str) -> list[Seen]:
    """The rows that count to a measure."""
    return oracle.rows_of(leaf.name, part.frame, params_of(leaf), roles_of(roles), unit).included


def as_answer(leaf: Leaf, value: oracle.Value) -> Answer:
    if value is None or not math.isfinite(value) or leaf.name in COUNTS:
        return Answer(value)
    least = 0.0 if leaf.name in SUMS else 1.0
    return Answer(value, READINGS * max(abs(value), least))


def value_of(leaf: Leaf, part: Part, roles: Mapping[str, Any]) -> Answer:
    """The answer that a measure has of some rows."""
    if leaf.params.get("ties") == "ignore" and part.table.frame["label"].dtype != pl.String:
        return UNCLEAR  # the order of the labels is not that of their names
    return as_answer(leaf, outcome(leaf, part, roles).value)
