"""`gap`: the largest difference between two slices of one metric, or of several, and what its interval must be."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random
from typing import Any

import polars_mlmetrics as mlm
from tests.laws.oracle import is_nan
from tests.support.degrees import welch
from tests.sweep import drawn, jackknife
from tests.sweep.asked import Leaf, Node, Setting, value_of
from tests.sweep.calls import Call
from tests.sweep.derived import Applied
from tests.sweep.drawn import ENGINES, Draw, some
from tests.sweep.jackknife import NOISE, Replicates, bare, buckets_of, core_of, kind_of, quantile, replicates_of
from tests.sweep.own import Own
from tests.sweep.paired import cluster_of
from tests.sweep.settled import NULL, UNCLEAR, Answer, Row, Word, added, negated, quotient, word
from tests.sweep.tables import KEYS, Key, Part, Table

FEW, SURE, SURE_OF_SHARE, SEEMS_FEW = 10, 39, 20, 24
NO_ENDS = {"low": NULL, "high": NULL}


def is_sure(found: Replicates, *, is_share: bool) -> bool:
    """Whether the buckets of a slice are enough to say how far its value is off."""
    varies = any(found.moved(b) != 0 for b in found.without)
    few = SURE_OF_SHARE if is_share else SURE
    return found.n_buckets >= (few if varies else max(few, SEEMS_FEW + 1))


@dataclass(frozen=True)
class Gap(Call):
    """A call of `gap`."""

    over: tuple[str, ...] = ("country",)

    def own_options(self) -> dict[str, Any]:
        return {"over": list(self.over), "ci": self.level, "cluster": self.clusters}

    @property
    def keys(self) -> list[str]:
        return [*self.by, "metric"]

    def asked(self) -> list[str]:
        asked = super().asked()
        return asked if len(asked) == 1 else [f"[{', '.join(asked)}]"]

    def expected(self) -> Iterator[tuple[Key, Row | None]]:
        setting = Setting(self.roles, value_of)
        for key, group in self.table.whole.groups(self.by).items():
            parts = group.groups(self.over)
            values = {
                name: {values: node.answer(part, setting) for values, part in parts.items()}
                for name, node in self.metrics
            }
            rows = self._rows(values, group, parts)
            if len(rows) > 1:
                rows["largest"] = largest([*rows.values()])
            yield from (((*key, name), row) for name, row in rows.items())

    def _rows(self, values: dict[str, dict[Key, Answer]], group: Part, parts: dict[Key, Part]) -> dict[str, Row]:
        """The row of each metric. The level is shared among the pairs of all of them."""
        if any(answer.unclear for of_metric in values.values() for answer in of_metric.values()):
            return {name: {} for name in values}
        known = {
            name: {key: answer for key, answer in of_metric.items() if answer.value is not None}
            for name, of_metric in values.items()
        }
        pairs = sum(math.comb(len(of_metric), 2) for of_metric in known.values())
        return {name: self._row(node, group, known[name], parts, pairs) for name, node in self.metrics}

    def _row(self, node: Node, group: Part, known: dict[Key, Answer], parts: dict[Key, Part], pairs: int) -> Row:
        numbers = [answer.value for answer in known.values() if answer.value is not None]
        if any(math.isnan(number) for number in numbers):
            return {"gap": Answer(math.nan)} if len(known) > 1 else {}
        if not all(map(math.isfinite, numbers)):
            return {}
        counted = Answer(len(known))
        if len(known) < 2:
            names = ("gap", "low", "high", "ratio", "worst_value", "best_value")
            return {**dict.fromkeys(names, NULL), "worst": word(None), "best": word(None), "n_slices": counted}
        low, high = (end(known.values(), key=lambda answer: answer.value or 0.0) for end in (min, max))
        difference = added(high, negated(low))
        row = {"gap": difference, "ratio": quotient(low, high), "n_slices": counted}
        worst, best = (high, low) if direction(node) == "min" else (low, high)
        row |= {"worst_value": worst, "best_value": best}
        if direction(node) == "unknown":
            row |= {"worst_value": UNCLEAR, "best_value": UNCLEAR}
        else:
            row |= {"worst": self._named(worst, known), "best": self._named(best, known)}
        ends = self._ends(node, group, known, parts, pairs)
        leaves = [leaf for leaf, _ in node.leaves(Setting({}, value_of))]
        if jackknife.is_pooled(group, [*self.by, *self.over]) or jackknife.is_coarse(leaves):
            ends.pop("ci_flag", None)
        return {**row, **ends}

    def _named(self, end: Answer, known: dict[Key, Answer]) -> Answer:
        """The slice that has the value, where one alone has it."""
        assert end.value is not None
        names = [key for key, answer in known.items() if abs((answer.value or 0.0) - end.value) <= 10 * end.slack]
        return word(self._text(names[0])) if len(names) == 1 else UNCLEAR

    def _text(self, values: Key) -> str:
        shown = ["null" if value is None else str(value) for value in values]
        return ", ".join(f"{name}={value}" for name, value in zip(self.over, shown, strict=True))

    # -- the interval ------------------------------------------------------------------------------------------

    def _ends(self, node: Node, group: Part, known: dict[Key, Answer], parts: dict[Key, Part], pairs: int) -> Row:
        core, _ = core_of(node)
        kind, leaves = kind_of(core), [leaf for leaf, _ in core.leaves(Setting(self.roles, value_of))]
        if kind in jackknife.WITHOUT or not all(leaf.merges for leaf in leaves):
            flag = jackknife.WITHOUT.get(kind, "no_state")
            return {**NO_ENDS, "ci_flag": word(flag)}
        setting, buckets = Setting(self.roles, value_of), buckets_of(self.table, self.cluster or self.sample)
        slices = [replicates_of(core, setting, parts[key], buckets, among=group) for key in known]
        is_open = jackknife.is_cut(node) or any(each.whole.value is None or each.unclear for each in slices)
        low, high = jackknife.range_of(core)
        level = 1 - (1 - self.level) / pairs
        return {} if is_open else of_pairs(slices, level, high - low, is_share=jackknife.is_share(core, setting))


def of_pairs(slices: Sequence[Replicates], level: float, most: float, *, is_share: bool) -> Row:
    """Between what the largest of all differences lies: of every pair, with its share of the level."""
    lows, highs, errors = [0.0], [], []
    for one, other in combinations(slices, 2):
        difference, size = left(one.whole) - left(other.whole), one.size + other.size
        moved = {b: left(one.without[b]) - left(other.without[b]) - difference for b in one.without}
        moved = {b: 0.0 if abs(by) <= NOISE * size else by for b, by in moved.items()}
        count = sum(one.has_value[b] or other.has_value[b] or by != 0 for b, by in moved.items())
        if count < 2 or not all(map(math.isfinite, moved.values())):
            return {**NO_ENDS, "ci_flag": word("undefined_replicates")}
        errors.append(math.sqrt((count - 1) / count * math.fsum(by**2 for by in moved.values())))
        known = [(each.se.value, each.df()) for each in (one, other) if each.se.value is not None]
        df = (welch(known) if len(known) == 2 else None) or count - 1
        half = quantile(level, df) * errors[-1]
        highs.append(min(abs(difference) + half, most))
        if is_sure(one, is_share=is_share) and is_sure(other, is_share=is_share):
            lows.append(abs(difference) - half)
    if not any(errors):
        return {**NO_ENDS, "ci_flag": word("degenerate")}
    slack = 1e-9 * max(1.0, *highs)
    few_decide = [jackknife.few_decide(each) for each in slices]
    cases = {
        "few_buckets": min(each.n_buckets for each in slices) < FEW,
        "few_decide": any(each.value for each in few_decide),
    }
    flag = UNCLEAR if any(each.unclear for each in few_decide) else word(jackknife.flag_of(cases))
    return {"low": Answer(max(lows), slack), "high": Answer(max(highs), slack), "ci_flag": flag}


IN_ORDER = (
    "no_state",
    "totals",
    "extremes",
    "undefined_replicates",
    "degenerate",
    "few_buckets",
    "few_decide",
    "biased",
)
OF_GAP = ("gap", "ratio", "worst", "worst_value", "best", "best_value", "n_slices")


def largest(rows: Sequence[Row]) -> Row:
    """The row of the largest gap, as far as those of the metrics are settled."""
    gaps = [row.get("gap", UNCLEAR) for row in rows]
    if any(gap.unclear for gap in gaps):
        return {}
    if any(is_nan(gap.value) for gap in gaps):
        return {"gap": Answer(math.nan)}
    tops = [-math.inf if gap.value is None else gap.ends[1] for gap in gaps]
    first = rows[tops.index(max(tops))]
    alike = sum(gap.value is not None and gap.ends[1] >= left(first["gap"]) - first["gap"].slack for gap in gaps)
    found = {name: first[name] for name in (OF_GAP if alike == 1 else ("gap",)) if name in first}
    return {**found, **ends_of_all(rows)}


def ends_of_all(rows: Sequence[Row]) -> Row:
    """Between what the largest difference of all metrics lies."""
    if not all("low" in row for row in rows):
        return {}
    lacking = [row for row in rows if row["low"].value is None]
    found = dict(NO_ENDS) if lacking else {end: max_of([row[end] for row in rows]) for end in ("low", "high")}
    # A metric without a gap has no flag.
    flags = [row.get("ci_flag", UNCLEAR) for row in lacking or rows if row["gap"].value is not None]
    if any(flag.unclear for flag in flags):
        return found
    texts = {flag.text for flag in flags if isinstance(flag, Word)}
    first = next((flag for flag in (*IN_ORDER, "ok") if flag in texts), None)
    return {**found, "ci_flag": word(first)}


def max_of(ends: Sequence[Answer]) -> Answer:
    return Answer(max(map(left, ends)), max(end.slack for end in ends))


def left(answer: Answer) -> float:
    return math.nan if answer.value is None else answer.value


def direction(node: Node) -> str | None:
    """At which end a metric is good; of what is made of metrics that is not said here."""
    leaf = bare(node)
    return mlm.CATALOGUE[leaf.name].best if isinstance(leaf, Leaf) else None if isinstance(leaf, Own) else "unknown"


def node_of(random: Random, draw: Draw) -> Node:
    node: Node = draw.leaf()
    if random.random() < 0.15 and not draw.roles.keys() & {"score", "truth"}:
        node = Own(random.choice(["micro", "macro"]))
    elif random.random() < 0.2:
        node = Applied(node, *random.choice(drawn.FUNCTIONS))
    elif random.random() < 0.15:
        node = draw.derived(draw.leaf)
    return node


def gap(random: Random, table: Table) -> Call:
    roles, by = drawn.roles(random), some(random, list(KEYS), 1)
    count = random.choice([1, 1, 2, 3])
    metrics = tuple((f"m{place}", node_of(random, Draw(random, roles))) for place in range(count))
    free = [name for name in KEYS if name not in by]
    over = tuple(random.sample(free, random.choice([1, 1, 1, 2])))
    cluster = cluster_of(random, table, roles)
    return Gap(
        "gap", table, metrics, by, roles=roles, engine=random.choice(ENGINES), over=over, cluster=cluster,
        level=random.choice([0.95, 0.8, 0.5]),
    )  # fmt: skip
