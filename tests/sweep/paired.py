"""Random calls of `compare`: metrics of the same scores and truths, of at least two models."""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from tests.laws.cases import Case
from tests.sweep import drawn
from tests.sweep.asked import Leaf, Node, params_of
from tests.sweep.calls import Call
from tests.sweep.derived import Applied
from tests.sweep.differences import Compare
from tests.sweep.drawn import ENGINES, Draw, some
from tests.sweep.own import Own
from tests.sweep.tables import SAMPLE_OF_TWO, Table
from tests.sweep.unpaired import CompareAllRows

PAIRED = [("score", "truth")] * 5 + [
    ("margin", "truth"),
    ("estimate", "real"),
    ("score", "soft"),
    ("answer", "solution"),
]
"""Scores and truths that several metrics share."""


def roles(random: Random) -> dict[str, Any]:
    """Roles that all metrics of a call share, with a weight or without."""
    score, truth = random.choice(PAIRED)
    found: dict[str, Any] = {"score": score, "truth": truth}
    if random.random() < 0.5:
        found["weight"] = random.choice(drawn.WEIGHTS)
    if random.random() < 0.15:
        found["sample"] = SAMPLE_OF_TWO
    return found


def metrics(draw: Draw, count: int) -> tuple[tuple[str, Node], ...]:
    """A few metrics of the same scores and truths, one's own among them."""
    return tuple((f"m{place}", node(draw)) for place in range(count))


def node(draw: Draw) -> Node:
    if draw.chance(0.12) and draw.roles["truth"] == "truth":
        return Own(draw.random.choice(["micro", "macro"]))
    if draw.chance(0.12):
        return Applied(draw.leaf(), *draw.random.choice(drawn.FUNCTIONS))
    return draw.derived(draw.leaf) if draw.chance(0.12) else draw.leaf()


def of_roles(given: Mapping[str, Any]) -> Callable[[Leaf], bool]:
    """Whether a metric reads the score and the truth that all share."""

    def shares(leaf: Leaf) -> bool:
        found = {**given, **leaf.roles}
        return all(found[role] == given[role] for role in ("score", "truth")) and wanted(leaf) == (
            given["score"], given["truth"]
        )  # fmt: skip

    def wanted(leaf: Leaf) -> tuple[str, str]:
        case = Case(leaf.name, params_of(leaf))
        return case.score, case.truth

    return shares


def cluster_of(random: Random, table: Table, roles: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Perhaps users, where each sample has one: these may be clusters."""
    if random.random() >= 0.3:
        return None
    found: dict[Any, set[Any]] = {}
    for row in table.rows:
        found.setdefault(tuple(row[name] for name in sample_of(roles)), set()).add(row["user"])
    return ("user",) if all(len(users) == 1 for users in found.values()) else None


def sample_of(roles: Mapping[str, Any]) -> list[str]:
    sample = roles.get("sample", "sample")
    return [sample] if isinstance(sample, str) else list(sample)


def compare(random: Random, table: Table) -> Call:
    """A call of `compare`; the sample has a row in at least two models."""
    given = roles(random)
    there = [row for row in table.rows if None not in (row[name] for name in sample_of(given))]
    values = sorted({row["model"] for row in there} - {None})
    by = tuple(name for name in some(random, ["day", "country"], 1) if random.random() < 0.6)
    free = [name for name in ("day", "country") if name not in by]
    draw = Draw(random, given, of_roles(given), without=frozenset({"targets"}))
    found = metrics(draw, random.randint(1, 3))
    cut = ((random.choice(free),),) if random.random() < 0.4 else None
    cluster = cluster_of(random, table, given)
    kind = CompareAllRows if random.random() < 0.4 else Compare
    return kind(
        "compare", table, found, by, cut, roles=given, engine=random.choice(ENGINES), baseline=random.choice(values),
        margin=random.choice([None, None, 0.0, 0.05, 0.5]), level=random.choice([0.95, 0.95, 0.8, 0.5]),
        cluster=cluster, adjust=random.choice(["bh", "bh", "bh", None]),
    )  # fmt: skip


def can_be_compared(table: Table) -> bool:
    """Whether two models are there, whatever the sample is."""
    keys = ("sample", "user", "query")
    models = {row["model"] for row in table.rows if None not in (row[key] for key in keys)}
    return len(models) > 1 and bool(models - {None})
