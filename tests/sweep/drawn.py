"""Random metrics: of the catalogue with random parameters and roles, and whatever can be made of them."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import polars as pl

from tests.laws.cases import CASES, Case
from tests.sweep.asked import Leaf, Made, Node, Where
from tests.sweep.derived import Applied, Averaged, Bound, Derived, Scoped
from tests.sweep.tables import LABELS, SAMPLE_OF_TWO, TARGETS

INFINITY = float("inf")

OF_NAME: dict[str, list[Case]] = defaultdict(list)
for each_case in CASES:
    OF_NAME[each_case.name].append(each_case)

WEIGHTS: list[Any] = ["weight", "weight", "heft", Made("pl.col('weight') * 2")]
CONDITIONS = [
    Where("country", "eq", "DE"), Where("day", "ge", 2), Where("label", "ne", "b"), Where("estimate", "lt", 0.4),
    Where("soft", "eq", 1.0), Where("model", "ne", "p"), Where("query", "ne", 1), Where("day", "gt", 9),
]  # fmt: skip
NAMED: list[dict[str, float]] = [
    {"a": 2.0, "b": 1.0, "zz": 5.0}, {"a": 1.0, "b": -0.5, "c": 0.25}, {"a": 0.1, "b": 0.2, "c": -0.3, "d": 1.0},
    {"a": 0.0, "b": 1.0},
]  # fmt: skip
UNDEFINED = [0.0, 0.25, INFINITY]
FUNCTIONS: list[tuple[str, tuple[Any, ...]]] = [
    ("round", (3,)), ("clip", (0, 1)), ("fill_null", (0.5,)), ("abs", ()), ("sqrt", ()), ("log1p", ()),
    ("__pow__", (2,)), ("cast", (Made("pl.Float64"),)), ("cast", (Made("pl.Float32"),)),
]  # fmt: skip
ENGINES = ["in-memory", "streaming"]
NUMBERS = [2, -1, 0.5, 100, 1]


def anything(leaf: Leaf) -> bool:
    return True


@dataclass(frozen=True)
class Draw:
    """What a verb says, and what may be asked of it."""

    random: Random
    roles: Mapping[str, Any]
    """The roles that the verb gives to all metrics."""
    admits: Callable[[Leaf], bool] = anything
    binds: bool = False
    """Whether every metric must say all of its roles by itself."""
    without: frozenset[str] = frozenset()
    """What is not asked for: functions, arithmetic, targets."""
    target: tuple[str, ...] = ("target", "model", "country")
    """The columns of which a target may be."""

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def node(self, depth: int = 2) -> Node:
        """Anything that is a metric."""
        kind = self.random.choices(["leaf", "functions", "arithmetic", "targets"], [6, 2, 2, 2])[0]
        if depth == 0 or kind == "leaf" or kind in self.without:
            return self.leaf()
        if kind == "functions":
            made: Node = Applied(self.node(depth - 1), *self.random.choice(FUNCTIONS))
        elif kind == "arithmetic":
            made = self.derived(lambda: self.node(depth - 1))
        else:
            made = self.averaged()
        return self.around(made)

    def around(self, made: Node) -> Node:
        """Perhaps with a role or a condition more."""
        if self.chance(0.15):
            return Scoped(made, self.condition())
        if self.chance(0.15):
            return Bound(made, {"weight": self.random.choice(WEIGHTS)})
        return made

    def derived(self, node: Callable[[], Node]) -> Node:
        sign = self.random.choice("+-*/")
        sides: list[Any] = [node(), node() if self.chance(0.6) else self.random.choice(NUMBERS)]
        self.random.shuffle(sides)
        return Derived(sign, *sides)

    def condition(self) -> Where:
        return self.random.choice(CONDITIONS)

    # -- measures ----------------------------------------------------------------------------------------------

    def leaf(self, also: Callable[[Leaf], bool] = anything) -> Leaf:
        while True:
            made = self._leaf()
            if self.admits(made) and also(made):
                return made

    def _leaf(self) -> Leaf:
        cases = OF_NAME[self.random.choice(list(OF_NAME))]
        one, other = self.random.choices(cases, k=2)
        case = Case(one.name, {**other.params, **one.params})
        params = {name: self._plain(value) for name, value in case.params.items()}
        if isinstance(params.get("average"), Mapping):
            params["average"] = self.random.choice(NAMED)
        if "undefined" in params:  # an infinite value has no mean by weights of both signs
            mixed = isinstance(params.get("average"), Mapping) and min(params["average"].values()) < 0
            params["undefined"] = self.random.choice(UNDEFINED[:2] if mixed else UNDEFINED)
        where = (self.condition(),) if self.chance(0.12) else ()
        return Leaf(case.name, params, self._roles(case), where)

    def _plain(self, value: Any) -> Any:
        return Made(f"pl.col({value.meta.output_name()!r})") if isinstance(value, pl.Expr) else value

    def _roles(self, case: Case) -> dict[str, Any]:
        """The roles that the metric must say by itself, and a few that it need not."""
        wanted: dict[str, Any] = {"score": case.score, "truth": case.truth}
        if self.chance(0.06) and case.score in ("score", "margin", "estimate"):
            wanted["score"] = Made(f"pl.col({case.score!r}).fill_null(0)")
        bound = {r: column for r, column in wanted.items() if self.roles.get(r, r) != column or self.chance(0.2)}
        if "sample" in self.roles and self.binds:
            bound["sample"] = self.roles["sample"]
        if self.chance(0.15 if "weight" in self.roles and not self.binds else 0.4):
            bound["weight"] = self.random.choice(WEIGHTS)
        return bound

    # -- several targets ---------------------------------------------------------------------------------------

    def averaged(self) -> Node:
        by_label = self.chance(0.5)

        def of_one(leaf: Leaf) -> bool:
            if leaf.name == "n_excluded":
                return False
            plain = "labels" not in leaf.params
            return leaf.is_of_one_label and plain if by_label else True

        def inner() -> Node:
            made: Node = self.leaf(of_one)
            if self.chance(0.2) and "functions" not in self.without:
                made = Applied(made, *self.random.choice(FUNCTIONS))
            if self.chance(0.25) and "arithmetic" not in self.without:
                made = self.derived(lambda: self.leaf(of_one))
            return made

        column = None if by_label else self.random.choice(self.target)
        values = list(LABELS) if by_label else TARGETS if column == "target" else ["p", "q", "DE"]
        weights = [2.0, 1.0, 0.5, 0.25, -0.5] if self.chance(0.3) else [1.0, 0.0, 2.0, 1.0, 3.0]
        if self.chance(0.5):
            names = None
            chosen = self.random.sample(values, min(len(values), 3))
        else:
            names = chosen = self.random.sample(values, self.random.randint(1, min(3, len(values))))
        named = None if self.chance(0.5) else dict(zip(chosen, weights, strict=False))
        if named and abs(sum(named.values())) < 0.1:
            named = None
        each = tuple(inner() for _ in (names or [None]))
        return Averaged(each, None if names is None else tuple(names), named, column)


def some(random: Random, values: list[str], most: int) -> tuple[str, ...]:
    return tuple(random.sample(values, random.randint(0, min(most, len(values)))))


def roles(random: Random) -> dict[str, Any]:
    """What a verb says of all metrics."""
    found: dict[str, Any] = {}
    if random.random() < 0.6:
        found["weight"] = random.choice(WEIGHTS)
    if random.random() < 0.3:
        found["score"] = random.choice(["margin", "estimate", "logit", "score"])
    if random.random() < 0.3:
        found["truth"] = random.choice(["soft", "real", "gain", "truth"])
    if random.random() < 0.15:
        found["sample"] = SAMPLE_OF_TWO
    return found
