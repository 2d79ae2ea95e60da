"""What is chosen among samples and labels: `worst`, `flips`, `best_threshold`."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import polars_mlmetrics as mlm
from tests.laws import oracle
from tests.sweep import drawn
from tests.sweep.asked import Leaf, Setting, read_rows, value_of
from tests.sweep.calls import Call
from tests.sweep.drawn import ENGINES, Draw, some
from tests.sweep.settled import NULL, UNCLEAR, Answer, Row, word
from tests.sweep.tables import KEYS, Key, Part, Table


def ordered(found: Mapping[Key, float], slack: float, k: int) -> Iterator[tuple[Key, bool]]:
    """The keys of the k largest numbers, and whether each must be shown: not where it is about as large as the last."""
    sizes = sorted(found.values(), reverse=True)
    last = sizes[min(k, len(sizes)) - 1] if sizes else 0.0
    for key, size in found.items():
        if len(found) <= k or size > last + slack:
            yield key, True
        elif size >= last - slack:
            yield key, False


@dataclass(frozen=True)
class Chosen(Call):
    """A call that shows k samples (or labels) of each group."""

    k: int = 50

    def own_options(self) -> dict[str, Any]:
        return {"per": None, "k": self.k}

    def unit_values(self, part: Part, kept: tuple[str, ...]) -> dict[Key, Answer]:
        """The value of each unit that has a row."""
        return {key: row[self.metrics[0][0]] for key, row in self._units(part, kept)}


# --- worst ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Worst(Chosen):
    """A call of `worst`."""

    keep: tuple[str, ...] = ()

    def own_options(self) -> dict[str, Any]:
        return {**super().own_options(), "keep": list(self.keep) or None}

    def expected(self) -> Iterator[tuple[Key, Row | None]]:
        ((name, leaf),) = self.metrics
        assert isinstance(leaf, Leaf)
        named = leaf.params.get("average")
        for key, kept, part in self.groups():
            values = self.unit_values(part, kept)
            if isinstance(named, Mapping):
                values = {unit: answer for unit, answer in values.items() if unit[0] in named}
            if any(answer.unclear for answer in values.values()):
                yield from (((*key, *unit), None) for unit in values)
                continue
            known = {u: a.value for u, a in values.items() if a.value is not None and not math.isnan(a.value)}
            counts = {"n_undefined": sum(answer.value is None for answer in values.values())}
            counts["n_broken"] = len(values) - len(known) - counts["n_undefined"]
            sign = 1 if mlm.CATALOGUE[leaf.name].best == "min" else -1
            slack = max((answer.slack for answer in values.values()), default=0.0)
            of_row = {count: Answer(n) for count, n in counts.items()}
            for unit, is_sure in ordered({unit: sign * value for unit, value in known.items()}, slack, self.k):
                row = {name: values[unit], **of_row, **self._kept(key, unit)}
                yield (*key, *unit), row if is_sure else None

    def _kept(self, key: Key, unit: Key) -> Row:
        """The columns to keep: null where the unit has several values in its by group."""
        group = self.table.whole.groups(self.by)[key[: len(self.by)]]
        units = [self.roles.get("label", "label")] if self.per == "label" else self.sample
        rows = [row for row in group.rows if tuple(row[name] for name in units) == unit]
        found = {name: {row[name] for row in rows} for name in self.keep}
        return {name: word(next(iter(values)) if len(values) == 1 else None) for name, values in found.items()}


def worst(random: Random, table: Table) -> Call:
    roles, by = drawn.roles(random), some(random, list(KEYS), 1)
    leaf = ranked(Draw(random, roles))
    per = "label" if leaf.grain == "label" else "sample"
    free = [name for name in KEYS if name not in by]
    cut = ((random.choice(free),),) if random.random() < 0.3 else None
    keep = tuple(random.sample(["answer", "solution"], random.choice([0, 0, 1, 2])))
    return Worst(
        "worst", table, (("m0", leaf),), by, cut, per, roles=roles, engine=random.choice(ENGINES),
        k=random.choice([1, 3, 50]), keep=keep,
    )  # fmt: skip


def ranked(draw: Draw) -> Leaf:
    """A metric that is good at one end, and has a value of each sample or label."""

    def has_units(leaf: Leaf) -> bool:
        return leaf.name not in ("n_rows", "n_samples") and (leaf.has_averages or leaf.grain != "group")

    return draw.leaf(lambda leaf: mlm.CATALOGUE[leaf.name].best is not None and has_units(leaf))


# --- flips ----------------------------------------------------------------------------------------------------------

SAME = 1e-12
"""A value that changes by less than this share of its size is the same."""


@dataclass(frozen=True)
class Flips(Chosen):
    """A call of `flips`."""

    baseline: Any = None

    def own_options(self) -> dict[str, Any]:
        return {**super().own_options(), "between": "model", "baseline": self.baseline}

    @property
    def keys(self) -> list[str]:
        sliced = [] if self.slices is None else ["sliced_by"]
        return [*self.by, *sliced, *self.slice_keys, "model", *self.sample]

    def expected(self) -> Iterator[tuple[Key, Row | None]]:
        ((_, leaf),) = self.metrics
        assert isinstance(leaf, Leaf)
        sign = -1 if mlm.CATALOGUE[leaf.name].best == "min" else 1
        for key, kept, part in self.groups():
            of_model = part.groups(["model"])
            theirs = self._values(of_model.get((self.baseline,)), kept)
            for (model,), rows in of_model.items():
                if model != self.baseline:
                    for unit, row in self._changed(self._values(rows, kept), theirs, sign):
                        yield (*key, model, *unit), row

    def _values(self, part: Part | None, kept: tuple[str, ...]) -> dict[Key, Answer]:
        return {} if part is None else self.unit_values(part, kept)

    def _changed(
        self, ours: dict[Key, Answer], theirs: dict[Key, Answer], sign: int
    ) -> Iterator[tuple[Key, Row | None]]:
        """The samples that both have and whose value is not the same."""
        found: dict[Key, float] = {}
        for unit in ours.keys() & theirs.keys():
            value, before = ours[unit], theirs[unit]
            if value.unclear or before.unclear:
                yield from ((other, None) for other in ours)
                return
            if value.value is None or before.value is None:
                continue
            change = value.value - before.value
            if not math.isnan(change) and abs(change) > SAME * (abs(value.value) + abs(before.value)):
                found[unit] = change
        slack = max((answer.slack for answer in [*ours.values(), *theirs.values()]), default=0.0)
        if any(abs(change) <= 3 * slack for change in found.values()):  # rounding alone may have changed it
            yield from ((unit, None) for unit in found)
            return
        counts = {"n_better": sum(sign * c > 0 for c in found.values())}
        counts["n_worse"] = len(found) - counts["n_better"]
        for unit, is_sure in ordered({unit: abs(change) for unit, change in found.items()}, 3 * slack, self.k):
            row = {"value": ours[unit], "baseline_value": theirs[unit]}
            row["change"] = word("better" if sign * found[unit] > 0 else "worse")
            row |= {name: Answer(count) for name, count in counts.items()}
            yield unit, row if is_sure else None


def flips(random: Random, table: Table) -> Call:
    roles, by = drawn.roles(random), some(random, ["day", "country"], 1)
    leaf = ranked(Draw(random, roles, lambda leaf: leaf.has_averages or leaf.grain == "sample"))
    free = [name for name in ("day", "country") if name not in by]
    cut = ((random.choice(free),),) if random.random() < 0.3 else None
    models = sorted({row["model"] for row in table.rows} - {None})
    return Flips(
        "flips", table, (("m0", leaf),), by, cut, "sample", roles=roles, engine=random.choice(ENGINES),
        k=random.choice([1, 3, 50]), baseline=random.choice(models),
    )  # fmt: skip


# --- best_threshold -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BestThreshold(Call):
    """A call of `best_threshold`."""

    @property
    def keys(self) -> list[str]:
        return [*self.by, *(["label"] if self.per else [])]

    def expected(self) -> Iterator[tuple[Key, Row | None]]:
        ((_, leaf),) = self.metrics
        assert isinstance(leaf, Leaf)
        for key, group in self.table.whole.groups(self.keys).items():
            if not self.per or key[-1] is not None:
                yield key, self._best(leaf, group)

    def _best(self, leaf: Leaf, group: Part) -> Row:
        """The best of all thresholds, by trying each."""
        scores, n_rows, is_broken = candidates(leaf, group, self.roles)
        values = [(t, self._at(leaf, group, t)) for t in [*scores, -math.inf]]
        counted = {"n_rows": Answer(n_rows)}
        if any(answer.unclear for _, answer in values):
            return counted
        if is_broken or any(oracle.is_nan(answer.value) for _, answer in values):
            return {**counted, "value": Answer(math.nan), "threshold": NULL}
        known = [(t, answer) for t, answer in values if answer.value is not None]
        if not known or not scores:
            return {**counted, "value": NULL, "threshold": NULL}
        sign = 1 if mlm.CATALOGUE[leaf.name].best == "max" else -1
        best = max(sign * (answer.value or 0.0) for _, answer in known)
        near = [highest_within(known, sign, best, share) for share in (0.0, 1e-10)]
        threshold = Answer(near[0]) if near[0] == near[1] else UNCLEAR
        value = next(answer for t, answer in known if t == near[0])
        return {**counted, "value": value, "threshold": threshold}

    def _at(self, leaf: Leaf, group: Part, threshold: float) -> Answer:
        at = replace(leaf, params={**leaf.params, "threshold": threshold})
        return at.answer(group, Setting(self.roles, value_of))


def highest_within(known: list[tuple[float, Answer]], sign: int, best: float, share: float) -> float:
    """The highest threshold whose value is the best one, or less good by no more than a share of it."""
    least = best - share * abs(best) if math.isfinite(best) else best
    return max(t for t, answer in known if sign * (answer.value or 0.0) >= least)


def candidates(leaf: Leaf, group: Part, roles: Mapping[str, Any]) -> tuple[list[float], int, bool]:
    """The scores of the rows with a score and a truth, the highest first, how many these are, and if one is broken."""
    used = read_rows(leaf, *Setting(roles, value_of).of(leaf, group), "group")
    scores = {float(row.score) for row in used if not math.isnan(row.score)}
    return sorted(scores, reverse=True), len(used), any(row.broken for row in used)


def takes_a_threshold(leaf: Leaf) -> bool:
    """Whether it decides by a threshold that nobody has named."""
    return oracle.takes(leaf.name, "threshold") and "threshold" not in leaf.params


def best_threshold(random: Random, table: Table) -> Call:
    roles = {name: column for name, column in drawn.roles(random).items() if name != "sample"}
    roles["truth"] = roles.get("truth", "truth") if random.random() < 0.2 else "truth"
    per = "label" if random.random() < 0.4 else None
    by, grains = some(random, list(KEYS), 1), ("group",) if per else ("group", "label")
    draw = Draw(random, roles, lambda leaf: takes_a_threshold(leaf) and leaf.grain in grains)
    leaf = draw.leaf(lambda leaf: mlm.CATALOGUE[leaf.name].best is not None)
    return BestThreshold(
        "best_threshold", table, (("m0", leaf),), by, None, per, roles=roles, engine=random.choice(ENGINES)
    )
