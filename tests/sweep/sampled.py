"""Random calls of every verb."""

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

from tests.sweep import (
    chosen,
    curves,
    decomposed,
    drawn,
    drifts,
    gaps,
    intervals,
    looks,
    paired,
    ranked,
    searched,
    tables,
)
from tests.sweep.asked import Leaf, Node
from tests.sweep.calls import Call
from tests.sweep.derived import PLAIN, Plain, inside
from tests.sweep.drawn import ENGINES, Draw, some
from tests.sweep.tables import KEYS, SAMPLE_OF_TWO, Table

METRICS = 10  # a call
CALLS = 6  # of one table: what was settled for one is settled for all


def sliced(random: Random, by: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    free = [name for name in KEYS if name not in by]
    choices = [(name,) for name in free] + ([tuple(free[:2])] if len(free) > 1 else [])
    return tuple(random.sample(choices, random.randint(1, min(2, len(choices)))))


def asked(draw: Draw, *, plain: bool) -> tuple[tuple[str, Node], ...]:
    nodes = [draw.node() for _ in range(METRICS)]
    if plain and draw.chance(0.3):
        nodes.append(Plain(draw.random.choice(list(PLAIN))))
    return tuple((f"m{place}", node) for place, node in enumerate(nodes))


def knows_all_thresholds(metrics: tuple[tuple[str, Node], ...]) -> bool:
    """Whether no threshold is lacking, which is an error where the labels are at hand."""
    leaves = [one for _, node in metrics for one in inside(node) if isinstance(one, Leaf)]
    thresholds = [leaf.params.get("threshold") for leaf in leaves]
    return all(not isinstance(given, dict) or None in given for given in thresholds)


def expression(random: Random, table: Table) -> Call:
    form = random.choice(["agg", "agg", "select", "over"])
    by = () if form == "select" else random.choice([("model",), ("day", "model"), ("country", "model", "day")])
    roles: dict[str, Any] = {"sample": SAMPLE_OF_TWO} if random.random() < 0.15 else {}
    draw = Draw(random, roles, binds=True)
    metrics = tuple((f"m{place}", draw.node()) for place in range(METRICS // 2))
    return Call("expression", table, metrics, by, roles=roles, form=form, lazy=random.random() < 0.7)


def evaluate(random: Random, table: Table) -> Call:
    roles, by = drawn.roles(random), some(random, list(KEYS), 2)
    metrics = asked(Draw(random, roles), plain=True)
    return Call("evaluate", table, metrics, by, roles=roles, **accounts(random))


def accounts(random: Random) -> dict[str, Any]:
    return {
        "tidy": random.random() < 0.4,
        "min_samples": random.choice([None, None, 1, 2, 4, 1000]),
        "engine": random.choice(ENGINES),
    }


def slices(random: Random, table: Table) -> Call:
    roles, by = drawn.roles(random), some(random, list(KEYS), 1)
    metrics = asked(Draw(random, roles), plain=True)
    return Call("slices", table, metrics, by, sliced(random, by), roles=roles, **accounts(random))


def passes(random: Random, table: Table) -> Call:
    roles, by = drawn.roles(random), some(random, list(KEYS), 1)
    metrics = asked(Draw(random, roles), plain=False)
    cut = sliced(random, by) if random.random() < 0.3 else None
    count = random.randint(1, 4)
    return Call("passes", table, metrics, by, cut, roles=roles, passes=count, **accounts(random))


def per(random: Random, table: Table) -> Call:
    roles, by, unit = drawn.roles(random), some(random, list(KEYS), 2), random.choice(["label", "sample"])

    def has_units(leaf: Leaf) -> bool:
        return leaf.name == "n_rows" or leaf.has_averages or leaf.grain == unit

    draw = Draw(random, roles, has_units, without=frozenset({"targets"}))
    cut = sliced(random, by) if random.random() < 0.25 else None
    passes = random.randint(1, 3) if random.random() < 0.15 else None
    metrics = asked(draw, plain=False)
    return Call("per", table, metrics, by, cut, unit, roles=roles, passes=passes, engine=random.choice(ENGINES))


def finish(random: Random, table: Table) -> Call:
    roles, state_by = drawn.roles(random), some(random, list(KEYS), 3)
    unit = "label" if random.random() < 0.2 else None

    def held(leaf: Leaf) -> bool:
        return leaf.merges and (unit is None or leaf.grain == unit)

    targets = tuple(name for name in state_by if name != "day")  # it is of numbers, which name no target here
    without = {"targets"} if unit or not targets else set()
    draw = Draw(random, roles, held, without=frozenset(without), target=targets)
    metrics = asked(draw, plain=False)
    by = some(random, list(state_by), 2)
    free = [name for name in state_by if name not in by]
    cut = ((random.choice(free),),) if free and random.random() < 0.4 else None
    options = {} if unit else accounts(random)
    parts, compact = random.randint(1, 3), random.random() < 0.3
    return Call(
        "finish", table, metrics, by, cut, unit, roles=roles, state_by=state_by, parts=parts, compact=compact,
        of_state=True, **options,
    )  # fmt: skip


DRAWN: dict[str, Callable[[Random, Table], Call]] = {
    "expression": expression, "evaluate": evaluate, "slices": slices, "per": per, "passes": passes, "finish": finish,
    "ci": intervals.ci, "compare": paired.compare, "gap": gaps.gap, "decompose": decomposed.decompose,
    "worst": chosen.worst, "flips": chosen.flips, "best_threshold": chosen.best_threshold, "curve": curves.curve,
    "confusion": curves.confusion, "drift": drifts.drift, "find_slices": searched.find_slices,
    "rank": ranked.rank, "anytime": looks.evaluate, "compare_anytime": looks.compare,
}  # fmt: skip


TABLES: dict[str, Callable[[Random], Table]] = {
    "find_slices": searched.table, "rank": ranked.table, "anytime": looks.table,
    "compare_anytime": looks.table_of_models,
}  # fmt: skip
"""The tables of verbs that need their own."""


def table(random: Random, verb: str) -> Table:
    """A table that a verb can be asked of."""
    if verb in TABLES:
        return TABLES[verb](random)
    made = tables.table(random)
    while verb in ("compare", "decompose", "drift", "flips") and not paired.can_be_compared(made):
        made = tables.table(random)
    return made


def call(random: Random, table: Table, verb: str) -> Call:
    """A call of a verb, lazy where an eager one would say that a threshold is lacking."""
    made = DRAWN[verb](random, table)
    lazy = random.random() < 0.7 or not knows_all_thresholds(made.metrics)
    return replace(made, lazy=lazy and verb not in ("finish", "find_slices"))
