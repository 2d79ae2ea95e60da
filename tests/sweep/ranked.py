"""`rank`: the places of models by the test of every two of them, and Holm's method, from its definition."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from random import Random
from typing import Any

import polars as pl

from tests.laws import oracle
from tests.sweep import drawn, jackknife, tables
from tests.sweep.asked import Leaf, Node, Setting, value_of
from tests.sweep.calls import Call
from tests.sweep.derived import Applied, Derived
from tests.sweep.differences import best_of, counting
from tests.sweep.drawn import ENGINES, Draw, some
from tests.sweep.jackknife import Buckets, Replicates, core_of, kind_of, p_value, replicates_of
from tests.sweep.paired import cluster_of
from tests.sweep.settled import NULL, UNCLEAR, Answer, Row, added, negated, word
from tests.sweep.tables import Key, Part, Table
from tests.sweep.unpaired import is_next_to_0

MODELS: list[Any] = ["p", "q", "r", "s"]
PLACES = ("rank_low", "rank_high", "tied_with_best")
Pair = tuple[Any, Any]


@dataclass(frozen=True)
class Group:
    """The models of a group, on the samples that all of them have."""

    parts: Mapping[Any, Part]
    counted: Mapping[Any, int]
    n_left_out: int

    @classmethod
    def of(cls, group: Part, samples: Sequence[Any], node: Node, roles: Mapping[str, Any]) -> "Group":
        known = Part(group.table, tuple(place for place in group.places if samples[place] is not None))
        parts = {model: part for (model,), part in known.groups(["model"]).items()}
        seen = {model: counting(node, part, roles) for model, part in parts.items()}
        ways = [[own for own in way if own] for way in zip(*seen.values(), strict=True)]
        odd: set[Any] = set().union(*(set().union(*way) - set.intersection(*way) for way in ways if way))
        counted = {model: min(len(own - odd) for own in each) for model, each in seen.items()}
        kept = {
            model: Part(part.table, tuple(place for place in part.places if samples[place] not in odd))
            for model, part in parts.items()
        }
        return cls(kept, counted, len(odd))

    @property
    def whole(self) -> Part:
        """The rows of all models."""
        table = next(iter(self.parts.values())).table
        return Part(table, tuple(place for part in self.parts.values() for place in part.places))


@dataclass(frozen=True)
class Rank(Call):
    """A call of `rank`."""

    @property
    def keys(self) -> list[str]:
        return [*super().keys, "model"]

    def own_options(self) -> dict[str, Any]:
        return {"between": "model", "ci": self.level, "cluster": self.clusters}

    def may_refuse(self, error: str) -> bool:
        """Where no sample counts for all models, in any group, that is an error."""
        rows = [row for _, row in self.expected() if row is not None]
        is_nothing = all(row["ci_flag"].admits("no_pairs") and not row["ci_flag"].unclear for row in rows)
        return "there is nothing to rank" in error and is_nothing

    def expected(self) -> Iterator[tuple[Key, Row | None]]:
        ((_, node),) = self.metrics
        samples = oracle.keys_of(self.table.frame, self.roles.get("sample", "sample"))
        for key, _, part in self.groups():
            group = Group.of(part, samples, node, self.roles)
            for model, row in self._rows(node, group).items():
                yield (*key, model), row

    def _rows(self, node: Node, group: Group) -> dict[Any, Row]:
        setting, (core, _) = Setting(self.roles, value_of), core_of(node)
        values = {model: core.answer(part, setting) for model, part in group.parts.items()}
        shown = {
            model: node.answer(part, setting) if group.counted[model] else NULL for model, part in group.parts.items()
        }
        counts = {
            model: {"n_samples": Answer(count), "n_left_out": Answer(group.n_left_out), "value": shown[model]}
            for model, count in group.counted.items()
        }
        if not values or any(value.unclear for value in values.values()):
            return counts
        is_finite = {model: value.value is not None and math.isfinite(value.value) for model, value in values.items()}
        takers = [model for model in group.parts if is_finite[model] and group.counted[model]]
        judged = self._judged(node, core, group, takers)
        apart = dict.fromkeys((*PLACES, "n_buckets"), NULL)
        for model in group.parts:
            if model not in takers:
                judged[model] = {**apart, "ci_flag": self._apart(group, model, values[model])}
        return {model: {**counts[model], **judged[model]} for model in group.parts}

    def _apart(self, group: Group, model: Any, value: Answer) -> Answer:
        """The flag of a model that takes no part."""
        if not any(group.counted.values()):
            return word("no_pairs")
        if not group.counted[model]:
            return word("no_samples")
        return word("undefined_replicates" if value.value is None else None)

    # -- the test of every two -------------------------------------------------------------------------------------

    def _judged(self, node: Node, core: Node, group: Group, takers: Sequence[Any]) -> dict[Any, Row]:
        leaves = [leaf for leaf, _ in core.leaves(Setting({}, value_of))]
        kind = kind_of(core)
        if kind in jackknife.WITHOUT or not all(leaf.merges for leaf in leaves):
            flag = {"n_buckets": NULL, "ci_flag": word(jackknife.WITHOUT.get(kind, "no_state"))}
            return {model: {**places(0, 0, len(takers)), **flag} for model in takers}
        each = self._replicates(core, group, takers)
        pairs = {(one, other): difference(each[one], each[other]) for one, other in combinations(takers, 2)}
        is_open = jackknife.is_cut(node) or jackknife.is_infinite(leaves)
        is_open |= any(pair.unclear for pair in pairs.values())
        is_open |= any(is_next_to_0(one) for one in each.values())
        if is_open or jackknife.is_coarse(leaves) or self._has_idle_buckets(core, group, leaves):
            return {model: {} for model in takers}
        found = self._found(pairs)
        best = direction(node)
        rows = {}
        for model in takers:
            won = lost = 0
            for one, other in found or ():
                if model in (one, other):
                    is_higher = (pairs[one, other].whole.value or 0.0) > 0
                    winner = one if is_higher == (best == "max") else other
                    won, lost = won + (winner == model), lost + (winner != model)
            own = [pair for of, pair in pairs.items() if model in of]
            row = dict.fromkeys(PLACES, UNCLEAR) if found is None else places(won, lost, len(takers))
            buckets = Answer(min(pair.n_buckets for pair in own)) if own else NULL
            rows[model] = {**row, "n_buckets": buckets, "ci_flag": self._flag(core, group, model, own, leaves)}
        return rows

    def _replicates(self, core: Node, group: Group, takers: Sequence[Any]) -> dict[Any, Replicates]:
        """The value of each model, and what it is without each bucket of the group."""
        setting, (buckets, count) = Setting(self.roles, value_of), self._buckets(core)
        found = {
            model: replicates_of(core, setting, group.parts[model], buckets, among=group.whole) for model in takers
        }
        return {model: replace(each, of=count) for model, each in found.items()}

    def _found(self, pairs: Mapping[Pair, Replicates]) -> set[Pair] | None:
        """The pairs that differ; None where the last place of a number decides that."""
        ps = {of: p_of(pair) for of, pair in pairs.items()}
        found = []
        for sign in (-1, 1):
            ends = {of: p.value + sign * p.slack for of, p in ps.items() if p.value is not None}
            found.append(differing(ends, len(pairs), 1 - self.level))
        return found[0] if found[0] == found[1] else None

    def _buckets(self, core: Node) -> Buckets:
        leaves = [leaf for leaf, _ in core.leaves(Setting({}, value_of))]
        return Buckets.of(self.table, self.sample, self.cluster, leaves)

    def _has_idle_buckets(self, core: Node, group: Group, leaves: Sequence[Leaf]) -> bool:
        """Whether a bucket without a row that counts may have the value of what is undefined: that is left open."""
        if not any("undefined" in leaf.params for leaf in leaves):
            return False
        buckets, _ = self._buckets(core)
        samples = oracle.keys_of(self.table.frame, self.roles.get("sample", "sample"))
        of_all = {buckets[place] for place in group.whole.places}
        for part in group.parts.values():
            known: set[Any] = set().union(*counting(core, part, self.roles))
            if {buckets[place] for place in part.places if samples[place] in known} != of_all:
                return True
        return False

    def _flag(
        self, core: Node, group: Group, model: Any, pairs: Sequence[Replicates], leaves: Sequence[Leaf]
    ) -> Answer:
        setting, few = Setting(self.roles, value_of), [jackknife.few_decide(pair) for pair in pairs]
        errors = [pair.se.value for pair in pairs]
        buckets = min((pair.n_buckets for pair in pairs), default=None)
        n_clusters = group.counted[model] if self.cluster in (None, tuple(self.sample)) else buckets
        of_models = [jackknife.few_positives(core, part, setting) for part in group.parts.values()]
        cases = {
            "undefined_replicates": None in errors,
            "degenerate": bool(errors) and not any(errors),
            "few_buckets": buckets is not None and buckets < 10,
            "few_decide": any(each.value for each in few),
            "few_positives": any(of_models),
            "biased": kind_of(core) == "biased",
            "few_pairs": group.counted[model] < group.n_left_out,
            "low_n": n_clusters is not None and n_clusters < 30,
        }
        flag = jackknife.flag_of(cases)
        is_open = any(each.unclear for each in few) or any("undefined" in leaf.params for leaf in leaves)
        # A model without a row that counts has no class that is rare; a label may be.
        is_open |= flag == "few_positives" and not all(group.counted.values())
        is_open |= flag == "ok" and any(leaf.grain == "label" for leaf in leaves)
        # Whether it is a share of counted rows is not said of the highest score of a sample.
        is_open |= flag in ("low_n", "few_pairs", "ok") and any(
            leaf.params.get("threshold") == "argmax" for leaf in leaves
        )
        return replace(word(flag), unclear=is_open)


def difference(one: Replicates, other: Replicates) -> Replicates:
    """The difference of two values. A bucket tells of it where it alone has both."""
    without = {b: added(one.without[b], negated(other.without[b])) for b in one.without}
    has_value = {b: one.has_value[b] and other.has_value[b] for b in one.without}
    whole = added(one.whole, negated(other.whole))
    return Replicates(whole, one.size + other.size, without, has_value, lost=False, of=one.of)


def p_of(pair: Replicates) -> Answer:
    """The p of a difference, on both sides; none where nothing varies."""
    if pair.whole.value is None or not pair.se.value:
        return NULL
    df = pair.df()
    return jackknife.varied(lambda d, s: p_value(d, s, df), pair.whole, pair.se)


def differing(ps: Mapping[Pair, float], tests: int, level: float) -> set[Pair]:
    """The pairs that Holm's method finds: the least p first, until one of them is too large for those that are left."""
    found: set[Pair] = set()
    for place, (pair, p) in enumerate(sorted(ps.items(), key=lambda of: of[1])):
        if p * (tests - place) >= level:
            break
        found.add(pair)
    return found


def places(won: int, lost: int, models: int) -> Row:
    numbers = {"rank_low": 1 + lost, "rank_high": models - won, "tied_with_best": lost == 0}
    return {name: Answer(number) for name, number in numbers.items()}


def direction(node: Node) -> str | None:
    """At which end a metric is good; a sum of two is where both are, and None is not ranked."""
    if isinstance(node, Applied):
        return direction(node.inner)
    if isinstance(node, Derived):
        ends = {direction(part) for part in node.parts()}
        return ends.pop() if len(ends) == 1 else None
    return best_of(node)


# --- random calls ---------------------------------------------------------------------------------------------------


USUAL = ("accuracy", "brier_score", "f1", "log_loss", "mae", "mse", "recall")


def rank(random: Random, table: Table) -> Call:
    """A call of `rank`, of a metric that is good at one end."""
    roles, by = (
        drawn.roles(random),
        tuple(name for name in some(random, ["day", "country"], 1) if random.random() < 0.3),
    )
    free = [name for name in ("day", "country") if name not in by]
    cut = ((random.choice(free),),) if random.random() < 0.3 else None
    if random.random() < 0.5:
        # Of the whole catalogue, with all of its parameters, few metrics have an interval in most groups.
        roles = {role: column for role, column in roles.items() if role not in ("score", "truth")}
        node: Node = Leaf(random.choice(USUAL), random.choice([{}, {}, {"average": "macro"}]))
    else:
        node = metric(Draw(random, roles))
    return Rank(
        "rank", table, (("m0", node),), by, cut, roles=roles, engine=random.choice(ENGINES),
        level=random.choice([0.95, 0.8, 0.5]), cluster=cluster_of(random, table, roles),
    )  # fmt: skip


def metric(draw: Draw) -> Node:
    while True:
        node: Node = draw.leaf()
        if draw.chance(0.15):
            node = Applied(node, *draw.random.choice([("round", (3,)), ("clip", (0, 1)), ("fill_null", (0.5,))]))
        elif draw.chance(0.2):
            node = Derived("+", node, draw.leaf())
        if direction(node) is not None:
            return node


LEAST = 16
"""Of so many samples differences may be found."""

SCORES = ("score", "logit", "margin", "estimate", "rate")


def table(random: Random) -> Table:
    """The rows of a table, scored by several models, of which some are better, and some lack a few of the rows."""
    made = tables.table(random).frame.drop("model")
    while made["sample"].n_unique() < LEAST:
        made = tables.table(random).frame.drop("model")
    frames = [scored(random, made, model) for model in MODELS[: random.randint(2, 4)]]
    found = pl.concat(frames)
    return Table(found[random.sample(range(found.height), found.height)])


def scored(random: Random, rows: pl.DataFrame, model: Any) -> pl.DataFrame:
    """The rows of one model, which may lack some of them."""
    lacks = random.choice([0.0, 0.0, 0.0, 0.0, 0.05, 0.3])
    kept = pl.Series([random.random() >= lacks for _ in range(rows.height)], dtype=pl.Boolean)
    found = rescored(random, rows).with_columns(pl.lit(model).alias("model")).filter(kept)
    return found.select("model", pl.exclude("model"))


def rescored(random: Random, rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with the scores of other rows: for a share of them a high one where the truth is."""
    skill, columns = random.choice([0.0, 0.6, 1.0]), []
    for name in SCORES:
        values = rows[name].to_list()
        known = sorted(value for value in values if value is not None)
        half = len(known) // 2
        found = [random.choice(values) for _ in values]
        for place, truth in enumerate(rows["truth"].to_list()):
            if known and random.random() < skill:
                found[place] = random.choice(known[half:] if truth else known[: half + 1])
        columns.append(pl.Series(name, found, dtype=rows[name].dtype))
    return rows.with_columns(columns)
