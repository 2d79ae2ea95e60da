"""`ci=` of evaluate: the ends of each value, and what a tidy table says of them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from tests.sweep import differences, drawn, jackknife
from tests.sweep.asked import Leaf, Node, Setting, value_of
from tests.sweep.calls import Call
from tests.sweep.derived import Averaged, inside
from tests.sweep.differences import n_labels
from tests.sweep.drawn import ENGINES, Draw, some
from tests.sweep.jackknife import (
    EXACT,
    Buckets,
    Interval,
    Replicates,
    alone,
    bare,
    core_of,
    kind_of,
    replicates_of,
    without,
)
from tests.sweep.own import Own
from tests.sweep.paired import cluster_of
from tests.sweep.settled import NULL, UNCLEAR, Answer, Row, word
from tests.sweep.tables import KEYS, Key, Part, Table

BEFORE_BINS = ("undefined_replicates", "degenerate", "few_buckets", "few_decide", "few_positives")
"""Flags that come before those of bins."""

NOTHING = {"se": NULL, "low": NULL, "high": NULL, "n_buckets": NULL}


@dataclass(frozen=True)
class WithIntervals(Call):
    """A call of `evaluate` with `ci=`."""

    def own_options(self) -> dict[str, Any]:
        return {"ci": self.level, "cluster": self.clusters}

    def expected(self) -> Iterator[tuple[Key, Row | None]]:
        nodes = dict(self.metrics)
        parts = {key: (part, kept) for key, kept, part in self.groups()}
        for key, row in super().expected():
            assert row is not None
            part, kept = parts[key[:-1] if self.tidy else key]
            if self.tidy:
                found = self._interval(nodes[key[-1]], part, row["value"])
                if jackknife.is_pooled(part, kept) and row["value"].value is not None:
                    found.pop("ci_flag", None)
                yield key, {**row, **found}
                continue
            ends: Row = {}
            for name, value in row.items():
                found = self._interval(nodes[name], part, value)
                ends |= {f"{name}_{end}": found[end] for end in ("low", "high") if end in found}
            yield key, {**row, **ends}

    def _interval(self, node: Node, part: Part, value: Answer) -> Row:
        """What is said of the interval of a value; nothing of draws, and of what other tests look at."""
        is_beyond = any(isinstance(each, Averaged) for each in inside(node)) or self.level == "bootstrap"
        is_beyond = is_beyond or jackknife.is_cut(node)
        core, functions = core_of(node)
        leaves = [leaf for leaf, _ in core.leaves(Setting(self.roles, value_of))]
        if is_beyond or value.unclear or any(not leaf.merges and leaf.name in EXACT for leaf in leaves):
            return {}
        is_number = value.value is not None and math.isfinite(value.value)
        kind = kind_of(core)
        none = jackknife.WITHOUT.get(kind)
        none = none or (None if all(leaf.merges for leaf in leaves) else "no_state")
        if none is not None:
            return {**NOTHING, "ci_method": word("none"), "ci_flag": word(none if is_number else None)}
        method = self._method(kind)
        found = self._replicates(core, part)
        filled = [leaf.params["undefined"] for leaf in leaves if leaf.params.get("undefined") is not None]
        n_samples = self._samples_with_value(core, part)
        if found.unclear or math.inf in filled or (filled and n_samples == 0):
            return {"ci_method": word(method)}
        if not is_number:
            return {**NOTHING, "n_buckets": UNCLEAR, "ci_flag": word(None), "ci_method": word(method)}
        is_share = jackknife.is_share(core, Setting(self.roles, value_of))
        counts_tell = is_share and method == "kg_wilson" and self.cluster in (None, tuple(self.sample))
        how = functions, n_samples, counts_tell
        interval = Interval(found, self.level, method, *jackknife.range_of(core), *how)
        low, high = self._ends(interval, core, part)
        flag = self._flag(found, core, part, kind, method, counts_tell=counts_tell)
        of_method = {"ci_flag": flag, "ci_method": word(method)}
        return {"se": found.se, "low": low, "high": high, "n_buckets": Answer(found.n_buckets), **of_method}

    def _method(self, kind: str) -> str:
        return "kg_wilson" if kind == "kg_wilson" else "t"

    def _ends(self, interval: Interval, core: Node, part: Part) -> tuple[Answer, Answer]:
        return interval.ends()

    def _replicates(self, core: Node, part: Part) -> Replicates:
        setting, (buckets, count) = Setting(self.roles, value_of), self._buckets(core)
        found, labels = replicates_of(core, setting, part, buckets, among=part), n_labels(core, setting, part)
        left_out = (without(part, buckets, b) for b in found.without)
        lost = labels > 0 and any(n_labels(core, setting, rest) < labels for rest in left_out)
        return replace(found, lost=found.lost or lost, of=count)

    def _buckets(self, core: Node) -> Buckets:
        leaves = [leaf for leaf, _ in core.leaves(Setting({}, value_of))]
        return Buckets.of(self.table, self.sample, self.cluster, leaves)

    def _samples_with_value(self, core: Node, part: Part) -> int | None:
        """How many samples a mean over the very clusters is of."""
        leaf = bare(core)
        if not isinstance(leaf, Leaf) or leaf.grain != "sample" or self.cluster not in (None, tuple(self.sample)):
            return None
        ((leaf, setting),) = core.leaves(Setting(self.roles, value_of))
        return sum(unit.value is not None for unit in differences.units(leaf, *setting.of(leaf, part)))

    def _flag(self, found: Replicates, core: Node, part: Part, kind: str, method: str, *, counts_tell: bool) -> Answer:
        leaves = [leaf for leaf, _ in core.leaves(Setting({}, value_of))]
        clusters = self._n_clusters(core, part)
        by_label = any(leaf.grain == "label" for leaf in leaves)
        if by_label and any("undefined" in leaf.params for leaf in leaves):
            return UNCLEAR  # which labels a bucket takes away is not said where each has a value
        few_decide = jackknife.few_decide(found)
        if few_decide.unclear:
            return UNCLEAR
        cases = {
            "undefined_replicates": found.lost,
            "degenerate": found.se.value == 0 and method == "t",
            "few_buckets": found.n_buckets < 10,
            "few_decide": few_decide.value and not counts_tell,
            "few_positives": jackknife.few_positives(core, part, Setting(self.roles, value_of)),
            "low_n": (found.n_units if clusters is None else clusters) < 30,
        }
        flag = jackknife.flag_of(cases)
        if kind == "biased" or jackknife.is_coarse(leaves):
            return word(flag) if flag in BEFORE_BINS else UNCLEAR
        if flag != "ok":
            return word(flag)
        buckets, _ = self._buckets(core)
        sizes = [len(alone(part, buckets, b).places) for b in found.without]
        if by_label or clusters is None or max(sizes) > 0.1 * len(part.places):
            return UNCLEAR
        return word("approx" if found.se.value == 0 else "ok")

    def _n_clusters(self, core: Node, part: Part) -> int | None:
        """How many clusters have a row that counts; None where it is not known here."""
        if isinstance(core, Own):
            return None
        if self.cluster not in (None, tuple(self.sample)):
            return self._most_clusters(part)
        return core.counts(part, Setting(self.roles, value_of)).n_samples

    def _most_clusters(self, part: Part) -> int | None:
        """How many clusters there are at most; None where these are enough for a flag to look closer."""
        most = len({tuple(row[name] for name in self.cluster or ()) for row in part.rows})
        return most if most < 30 else None


# --- random calls ---------------------------------------------------------------------------------------------------


def ci(random: Random, table: Table) -> Call:
    roles, by = drawn.roles(random), some(random, list(KEYS), 1)
    draw = Draw(random, roles)
    nodes: list[Node] = [draw.node(1) for _ in range(random.randint(1, 4))]
    if random.random() < 0.2 and not roles.keys() & {"score", "truth"}:
        nodes.append(Own(random.choice(["micro", "macro"])))
    tidy = random.random() < 0.6 and not any(isinstance(node, Own) for node in nodes)
    metrics = tuple((f"m{place}", node) for place, node in enumerate(nodes))
    cluster = cluster_of(random, table, roles)
    free = [name for name in KEYS if name not in by]
    cut = ((random.choice(free),),) if random.random() < 0.3 else None
    return WithIntervals(
        "ci", table, metrics, by, cut, roles=roles, tidy=tidy, engine=random.choice(ENGINES),
        level=random.choice([0.95, 0.95, 0.8, 0.5, "bootstrap"]), cluster=cluster,
        passes=random.choice([None, None, None, 2]),
    )  # fmt: skip
