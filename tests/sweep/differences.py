"""`compare`: what the difference of two models is, on the samples that both have, and what is said of it."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, ClassVar

import polars_mlmetrics as mlm
from tests.laws import oracle, references
from tests.sweep import jackknife
from tests.sweep.asked import Leaf, Made, Node, Setting, as_answer, params_of, read_rows, roles_of, value_of
from tests.sweep.calls import Call
from tests.sweep.jackknife import (
    EXACT,
    Buckets,
    Interval,
    Replicates,
    core_of,
    kind_of,
    p_value,
    quantile,
)
from tests.sweep.own import Own
from tests.sweep.settled import NULL, UNCLEAR, Answer, Row, Word, added, negated, word
from tests.sweep.sides import Counted, Sides
from tests.sweep.tables import Key, Part

COLUMNS = (
    "value", "baseline_value", "difference", "low", "high", "p", "p_adjusted", "verdict", "n_pairs", "n_unpaired",
    "n_undefined", "n_undefined_baseline", "ci_flag", "mde",
)  # fmt: skip
POWER = 0.8


@dataclass(frozen=True)
class Compare(Call):
    """A call of `compare`."""

    between: str = "model"
    baseline: Any = None
    margin: float | None = None
    adjust: str | None = "bh"
    are_pairs: ClassVar[bool] = True

    def own_options(self) -> dict[str, Any]:
        of_pairs = {"between": self.between, "baseline": self.baseline, "ci": self.level, "margin": self.margin}
        return {**of_pairs, "cluster": self.clusters, "adjust": None if self.adjust else Made("None")}

    @property
    def keys(self) -> list[str]:
        return [*super().keys, self.between, "metric"]

    def may_refuse(self, error: str) -> bool:
        """Where no sample at all is a pair, that is an error."""
        has_pairs = any(row is not None and row["n_pairs"].value != 0 for _, row in self.expected())
        return "no sample is on both sides" in error and not has_pairs

    # -- the samples that both have ----------------------------------------------------------------------------

    def expected(self) -> Iterator[tuple[Key, Row | None]]:
        samples = oracle.keys_of(self.table.frame, self.roles.get("sample", "sample"))
        known = self.table.whole.where(lambda row: None not in (row[name] for name in self.sample))
        models = dict.fromkeys(row[self.between] for row in known.rows)
        rows = []
        for key, kept, group in self.groups():
            for model in models:
                if model != self.baseline:
                    sides = Sides(self._of(group, samples, model), self._of(group, samples, self.baseline))
                    found = {(*key, model, name): self._row(node, sides, samples) for name, node in self.metrics}
                    if any(row["n_pairs"].value or row["n_unpaired"].value for row in found.values()):
                        rows += [(name, bool(kept[len(self.by) :]), row) for name, row in found.items()]
                    else:  # no row of the two counts: whether the group is there is not said
                        yield from ((name, None) for name in found)
        yield from self._judged(rows)

    def _of(self, group: Part, samples: list[Any], model: Any) -> Part:
        """The rows of a model that have a sample."""
        rows = (p for p in group.places if samples[p] is not None and group.table.rows[p][self.between] == model)
        return Part(group.table, tuple(rows))

    def _row(self, node: Node, sides: Sides, samples: list[Any]) -> Row:
        """What is said of a metric."""
        each = list(zip(counting(node, sides.ours, self.roles), counting(node, sides.theirs, self.roles), strict=True))
        odd: set[Any] = set().union(*(ours ^ theirs for ours, theirs in each))
        counted = Counted(min(len((ours & theirs) - odd) for ours, theirs in each), len(odd))
        counts = {name: Answer(count) for name, count in counted._asdict().items()}
        if not counted.n_pairs:
            return {**dict.fromkeys(COLUMNS, NULL), "ci_flag": word("no_pairs"), **counts}
        return {**counts, **self._compared(node, sides.of(samples, set(samples) - odd), counted)}

    # -- the difference ----------------------------------------------------------------------------------------

    def value(self, node: Node, sides: Sides) -> Answer:
        """The value of the one side, over the labels that both define."""

        def of_leaf(leaf: Leaf, part: Part, roles: Mapping[str, Any]) -> Answer:
            if leaf.grain != "label" or leaf.params.get("undefined") is not None:
                return value_of(leaf, part, roles)
            theirs = sides.theirs
            for holds in leaf.where:
                theirs = theirs.where(holds)
            return in_both(leaf, part, theirs, roles)

        setting = Setting(self.roles, of_leaf)
        if isinstance(node, Own) and node.average == "macro":
            return node.answer(self._with_labels_of_both(node, sides, setting), setting)
        return node.answer(sides.ours, setting)

    def _with_labels_of_both(self, node: Own, sides: Sides, setting: Setting) -> Part:
        """The rows of the one side, of the labels that have a value on both."""
        micro = replace(node, average="micro")
        of_label = [side.groups(["label"]) for side in (sides.ours, sides.theirs)]
        defined = [
            {label for label, part in parts.items() if micro.answer(part, setting).value is not None}
            for parts in of_label
        ]
        return sides.ours.where(lambda row: (row["label"],) in defined[0] & defined[1])

    def difference(self, node: Node, sides: Sides) -> tuple[Answer, Answer, Answer]:
        ours, theirs = self.value(node, sides), self.value(node, sides.turned)
        if ours.unclear or theirs.unclear:
            return ours, theirs, UNCLEAR
        if any(each.value is not None and math.isnan(each.value) for each in (ours, theirs)):
            return ours, theirs, Answer(math.nan)  # a null never hides a NaN
        return ours, theirs, added(ours, negated(theirs))

    def _compared(self, node: Node, sides: Sides, counted: Counted) -> Row:
        ours, theirs, difference = self.difference(node, sides)
        size = abs(ours.value or 0.0) + abs(theirs.value or 0.0)
        found = {"value": ours, "baseline_value": theirs, "difference": difference}
        if isinstance(node, Own):
            undefined = {}
        else:
            numbers = [Answer(self._undefined(node, side)) for side in (sides, sides.turned)]
            undefined = dict(zip(("n_undefined", "n_undefined_baseline"), numbers, strict=True))
        if difference.unclear or math.isnan(size):
            rest = ("low", "high", "p", "mde", "ci_flag")
            known = NULL if difference.value is not None and math.isnan(difference.value) else UNCLEAR
            return {**found, **undefined, **dict.fromkeys(rest, known)}
        return {**found, **undefined, **self._interval(node, sides, counted, difference)}

    def _undefined(self, node: Node, sides: Sides) -> int:
        """How many units of the one side are undefined; of a vocabulary also those that only this side defines."""
        found = sum(node.counts(sides.ours, Setting(self.roles, value_of)).undefined.values())
        for leaf, setting in node.leaves(Setting(self.roles, value_of)):
            if leaf.grain == "label" and "labels" in leaf.params and leaf.params.get("undefined") is None:
                part, roles = setting.of(leaf, sides.ours)
                theirs, _ = setting.of(leaf, sides.theirs)
                found += len(defined_labels(leaf, part, roles, None) - defined_labels(leaf, theirs, roles, None))
        return found

    def _interval(self, node: Node, sides: Sides, counted: Counted, difference: Answer) -> Row:
        """The interval of a difference, its p and its flag."""
        nothing = dict.fromkeys(("low", "high", "p", "mde"), NULL)
        if difference.value is None or not math.isfinite(difference.value):
            return {**nothing, "ci_flag": NULL}
        core, _ = core_of(node)
        kind, leaves = kind_of(core), [leaf for leaf, _ in core.leaves(Setting({}, value_of))]
        if kind in jackknife.WITHOUT:
            return {**nothing, "ci_flag": word(jackknife.WITHOUT[kind])}
        if any(not leaf.merges and leaf.name in EXACT for leaf in leaves):
            return dict.fromkeys((*nothing, "ci_flag"), UNCLEAR)
        if not all(leaf.merges for leaf in leaves):
            return {**nothing, "ci_flag": word("no_state")}
        found = self._replicates(core, sides)
        if (
            jackknife.is_cut(node)
            or jackknife.is_infinite(leaves)
            or found.unclear
            or (self._has_idle_buckets(core, sides) and any("undefined" in leaf.params for leaf in leaves))
        ):
            return dict.fromkeys((*nothing, "ci_flag"), UNCLEAR)
        low, high = jackknife.range_of(core)
        low, high = Interval(found, self.level, "t", low - high, high - low).ends()
        flag, df, se = self._flag(found, core, kind, sides, counted, leaves), found.df(), found.se
        if found.whole.value is None or se.value is None or se.value == 0:
            p = mde = NULL
            if se.value == 0:
                p = UNCLEAR if found.whole.value else NULL
        else:
            more = quantile(2 * POWER - 1, df) + quantile(self.level, df)
            p = jackknife.varied(lambda d, s: p_value(d, s, df), found.whole, se)
            mde = jackknife.varied(lambda s: s * more, se)
        return {"low": low, "high": high, "p": p, "mde": mde, "ci_flag": flag}

    def _has_idle_buckets(self, core: Node, sides: Sides) -> bool:
        """Whether no row of a bucket counts: whether it tells something by its `undefined=` is left open."""
        buckets, _ = self._buckets(core)
        samples = oracle.keys_of(self.table.frame, self.roles.get("sample", "sample"))
        known: set[Any] = set().union(*counting(core, sides.ours, self.roles))
        of_counting = {buckets[place] for place in sides.ours.places if samples[place] in known}
        return {buckets[place] for place in sides.ours.places} != of_counting

    def _replicates(self, core: Node, sides: Sides) -> Replicates:
        buckets, count = self._buckets(core)
        ours, theirs, whole = self.difference(core, sides)
        each = sorted({buckets[place] for place in sides.ours.places})
        left_out = {b: sides.without(buckets, b) for b in each}
        values = {b: self.difference(core, of_rest)[2] for b, of_rest in left_out.items()}
        has = {b: self.difference(core, sides.alone(buckets, b))[2].value is not None for b in each}
        setting = Setting(self.roles, value_of)
        labels = n_labels(core, setting, sides.ours, sides.theirs)
        lost = any(answer.value is None for answer in values.values()) or any(
            n_labels(core, setting, rest.ours, rest.theirs) < labels for rest in left_out.values()
        )
        return Replicates(whole, abs(ours.value or 0.0) + abs(theirs.value or 0.0), values, has, lost, count)

    def _buckets(self, core: Node) -> Buckets:
        return Buckets.of(
            self.table, self.sample, self.cluster, [leaf for leaf, _ in core.leaves(Setting({}, value_of))]
        )

    def _flag(
        self, found: Replicates, core: Node, kind: str, sides: Sides, counted: Counted, leaves: list[Leaf]
    ) -> Answer:
        (buckets, _), se = self._buckets(core), found.se.value
        known = read_rows(Leaf("n_rows", {}), sides.ours, self._given(), "group")
        is_sample = self.cluster in (None, tuple(self.sample))
        n_clusters = (counted.n_pairs or 0) if is_sample else self._n_clusters(sides.ours)
        by_bucket = Counter(buckets[place] for place in sides.ours.places)
        share = max(by_bucket.values(), default=0) / max(len(known), 1)
        setting = Setting(self.roles, value_of)
        cases = {
            "undefined_replicates": found.lost,
            "degenerate": se == 0,
            "few_buckets": found.n_buckets < 10,
            "few_decide": jackknife.few_decide(found).value,
            "few_positives": any(jackknife.few_positives(core, side, setting) for side in (sides.ours, sides.theirs)),
            "few_pairs": counted.few_pairs,
            "low_n": n_clusters < 30,
            "dominant_cluster": share > 0.2,
            "biased": kind == "biased",
        }
        # Which labels a bucket takes away is not said where each has a value.
        is_filled = any(leaf.grain == "label" and "undefined" in leaf.params for leaf in leaves)
        is_late = kind == "biased" or jackknife.is_coarse(leaves)  # flags that stand among those of few samples
        is_open = (
            jackknife.few_decide(found).unclear
            or is_filled
            or is_own_of_labels(core)
            or (is_late and found.n_buckets >= 10)
            or (share > 0.2 and len(known) < len(sides.ours.places))
        )
        return replace(word(jackknife.flag_of(cases)), unclear=is_open)

    def _given(self) -> dict[str, Any]:
        return {role: column for role, column in self.roles.items() if role != "weight"}

    def _n_clusters(self, part: Part) -> int:
        given = {**self._given(), "sample": list(self.cluster or ())}
        return references.n_samples(read_rows(Leaf("n_samples", {}), part, given, "group"))

    # -- what is said of all differences together --------------------------------------------------------------

    def _judged(self, rows: list[tuple[Key, bool, Row]]) -> Iterator[tuple[Key, Row]]:
        """The rows, with p adjusted and with verdicts: slices together, wholes together."""

        def family(found: tuple[Key, bool, Row]) -> tuple[str, str, bool]:
            key, is_slice, _ = found
            return repr(key[-1]), repr(key[-2]), is_slice

        nodes = dict(self.metrics)
        for _, members in groupby(sorted(rows, key=family), family):
            of_family = list(members)
            ps = [row["p"] for _, _, row in of_family]
            known = [p.value for p in ps if p.value is not None]
            numbers = iter(jackknife.adjusted(known))
            for (key, _, row), p in zip(of_family, ps, strict=True):
                found = NULL if p.value is None else Answer(next(numbers), 1e-8)
                if any(each.unclear for each in ps):
                    found = UNCLEAR
                found = found if self.adjust else p
                yield key, {**row, "p_adjusted": found, "verdict": self._verdict(nodes[key[-1]], row, found)}

    def _verdict(self, node: Node, row: Row, p: Answer) -> Answer:
        best = best_of(node)
        if row["n_pairs"].value == 0:
            return word(None)
        if not isinstance(node, Leaf | Own):
            return UNCLEAR
        if best is None:
            return word(None)
        leaves = [leaf for leaf, _ in node.leaves(Setting({}, value_of))]
        if jackknife.is_coarse(leaves):  # bins that are too coarse for the difference have no verdict
            return UNCLEAR
        needed = [row[name] for name in ("difference", "low", "high", "ci_flag")]
        if p.unclear or any(answer.unclear for answer in needed):
            return UNCLEAR
        level, margin = 1 - self.level, self.margin
        close = p.value is not None and abs(p.value - level) < 1e-7
        if close or any(margin is not None and end.value is not None and abs(abs(end.value) - margin) < 1e-9
                        for end in (row["low"], row["high"])):  # fmt: skip
            return UNCLEAR
        difference, is_found = row["difference"].value, p.value is not None and p.value < level
        is_good = difference is not None and (difference < 0 if best == "min" else difference > 0)
        low, high = row["low"].value, row["high"].value
        above = margin is not None and low is not None and low >= -margin
        below = margin is not None and high is not None and high <= margin
        cases = {
            "no change": (above and below)
            or (
                self.are_pairs and margin is not None and flag_in(row) == "degenerate" and abs(difference or 0) <= 1e-12
            ),
            None: low is None,
            "better": is_found and is_good,
            "worse": is_found and not is_good,
            "not worse": below if best == "min" else above,
        }
        return word(next((verdict for verdict, holds in cases.items() if holds), "unclear"))


def counting(node: Node, part: Part, roles: Mapping[str, Any]) -> list[set[Any]]:
    """The samples with a row that counts, of each measure of a metric."""
    setting = Setting(roles, value_of)
    if isinstance(node, Own):
        rows, places = node.rows(part, setting)
        samples = oracle.keys_of(rows.frame, roles.get("sample", "sample"))
        return [{samples[place] for place in places}]
    leaves = list(node.leaves(setting))
    return [{row.sample for row in read_rows(leaf, *own.of(leaf, part), leaf.grain)} for leaf, own in leaves]


def is_own_of_labels(core: Node) -> bool:
    """Whether it is one's own average over labels, of which is not said how many have a value."""
    return isinstance(core, Own) and core.average == "macro"


def flag_in(row: Row) -> str | None:
    flag = row["ci_flag"]
    return flag.text if isinstance(flag, Word) else None


def best_of(node: Node) -> str | None:
    """At which end a metric is good."""
    return mlm.CATALOGUE[node.name].best if isinstance(node, Leaf) else None


def n_labels(core: Node, setting: Setting, ours: Part, theirs: Part | None = None) -> int:
    """How many labels have a value that counts, in all averages of a metric."""
    found = 0
    for leaf, own in core.leaves(setting):
        if leaf.grain == "label":
            part, roles = own.of(leaf, ours)
            other = None if theirs is None or "undefined" in leaf.params else own.of(leaf, theirs)[0]
            found += len(defined_labels(leaf, part, roles, other))
    return found


def defined_labels(leaf: Leaf, part: Part, roles: Mapping[str, Any], theirs: Part | None) -> set[Any]:
    """The labels that have a value, on both sides where there is another."""
    sides = [side for side in (part, theirs) if side]
    return set.intersection(*({u.key for u in units(leaf, side, roles) if u.value is not None} for side in sides))


def units(leaf: Leaf, part: Part, roles: Mapping[str, Any]) -> list[oracle.Settled]:
    """The units of a metric that count."""
    params = params_of(leaf)
    rows = oracle.rows_of(leaf.name, part.frame, params, roles_of(roles), leaf.grain)
    found = oracle.that_count(oracle.units_of(leaf.name, rows, params, leaf.grain), params)
    return [oracle.filled(unit, params) for unit in found]


def in_both(leaf: Leaf, part: Part, theirs: Part, roles: Mapping[str, Any]) -> Answer:
    """An average over the labels that have a value on both sides."""
    if leaf.params.get("ties") == "ignore" and part.table.frame["label"].dtype != "String":
        return UNCLEAR
    kept = defined_labels(leaf, part, roles, theirs)
    mine = [unit if unit.key in kept else replace(unit, value=None) for unit in units(leaf, part, roles)]
    if any(unit.unknown for unit in mine):
        return Answer(math.nan) if any(oracle.is_nan(unit.value) for unit in mine) else NULL
    return as_answer(leaf, oracle.settle(mine, leaf.name, params_of(leaf)))
