"""`find_slices`: the numbers of each slice that is shown, from the rows of it and of the rest of its group."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import polars as pl

import polars_mlmetrics as mlm
from tests.support.degrees import degrees_of_freedom
from tests.support.readings import READINGS
from tests.sweep import jackknife
from tests.sweep.asked import Leaf, Setting, value_of
from tests.sweep.calls import Call
from tests.sweep.jackknife import NOISE, Replicates, buckets_of, quantile, without
from tests.sweep.settled import NULL, Answer, Row, added, negated
from tests.sweep.tables import Key, Part, Table

FEATURES = {"country": ["DE", "FR", "US"], "device": ["ios", "web"], "day": [1, 2, 3, 4]}
MODELS = ["p", "q"]
NAMES = ("accuracy", "f1", "precision", "recall", "log_loss", "brier_score", "balanced_accuracy", "mcc", "specificity")

HALF = 32
"""The buckets in which a slice is measured."""

Z = 1.96
"""The end of Wilson's interval that stands for the error of a value which nothing moves."""


@dataclass(frozen=True)
class FindSlices(Call):
    """A call of `find_slices`, on all rows of samples with odd buckets: it searches in the others."""

    @property
    def keys(self) -> list[str]:
        return [*self.by, "slice"]

    def expected(self) -> Iterator[tuple[Key, Row | None]]:
        ((_, leaf),) = self.metrics
        assert isinstance(leaf, Leaf)
        buckets = buckets_of(self.table, ["sample"])
        groups = self._groups()
        for row in self.answered().iter_rows(named=True):
            key = tuple(row[name] for name in self.keys)
            found = self._slice(leaf, groups[key[:-1]], row, buckets)
            if found is not None:
                yield key, found

    def _groups(self) -> dict[Key, Part]:
        """The rows that are searched together."""
        return self.table.whole.groups(self.by)

    def _answer(self, leaf: Leaf, part: Part) -> Answer:
        """The value of some rows."""
        return leaf.answer(part, Setting(self.roles, value_of))

    def _sides(self, part: Part) -> list[Part]:
        """The rows of each side of a change; all rows where values are searched."""
        return [part]

    def _slice(self, leaf: Leaf, group: Part, shown: dict[str, Any], buckets: list[int]) -> Row | None:
        """What a slice must be; None where it is too small to be one."""
        own, rest = split(group, shown["slice"])
        n_samples, n_of_group, n_of_rest = (
            min(len({row["sample"] for row in side.rows}) for side in self._sides(part)) for part in (own, group, rest)
        )
        if min(n_samples, n_of_rest) < self.options["min_samples"]:
            return None
        counts = {
            "n_samples": Answer(n_samples),
            "n_rows": Answer(len(own.places)),
            "share": Answer(n_samples / n_of_group, READINGS),
            "depth": Answer(len(shown["slice"].split(", "))),
        }
        own, rest, group = (self._unseen(part, buckets) for part in (own, rest, group))
        found = {**counts, **self._contrast(leaf, own, rest, group, buckets)}
        if shown["parent"] is not None:
            parent = split(group, shown["parent"])[0]
            found["parent_value"] = self._answer(leaf, parent)
        return found

    def _unseen(self, part: Part, buckets: list[int]) -> Part:
        """The rows that the search did not see."""
        return Part(part.table, tuple(place for place in part.places if buckets[place] % 2))

    def _contrast(self, leaf: Leaf, own: Part, rest: Part, group: Part, buckets: list[int]) -> Row:
        """The slice against the rest of its group, and the interval of that."""
        sign = 1 if mlm.CATALOGUE[leaf.name].best == "max" else -1

        def gap(one: Part, other: Part) -> Answer:
            answers = [self._answer(leaf, part) for part in (one, other)]
            found = added(answers[1], negated(answers[0]))
            return found if sign > 0 else negated(found)

        value, other = self._answer(leaf, own), self._answer(leaf, rest)
        found = {"value": value, "rest": other}
        if value.value is None or other.value is None:
            return found
        each = sorted({buckets[place] for place in group.places})
        values = {b: gap(without(own, buckets, b), without(rest, buckets, b)) for b in each}
        size = abs(value.value) + abs(other.value)
        replicates = Replicates(gap(own, rest), size, values, dict.fromkeys(each, True), lost=False)
        found["gap"] = replicates.whole
        found |= self._harm(leaf, group, other, sign)
        constant = [self._error_if_constant(leaf, part, buckets) for part in (own, rest)]
        if replicates.unclear or any(error is None for error in constant):
            return found
        se = replicates.se
        if se.value is not None:
            se = jackknife.varied(lambda s: math.hypot(s, *(error or 0.0 for error in constant)), se)
        if se.value is None or not se.value:
            return {**found, "low": NULL, "high": NULL, "p": NULL}
        n_buckets = min(len({buckets[place] for place in side.places}) for side in self._sides(own))
        df = degrees_of_freedom(n_buckets, map(replicates.moved, values))
        t = quantile(0.95, df)
        low, high = self._range(leaf)
        most = high - low
        for name, side in (("low", -1), ("high", 1)):
            found[name] = jackknife.varied(
                lambda g, s, side=side: min(max(g + side * t * s, -most), most), replicates.whole, se
            )
        return {**found, "p": jackknife.varied(lambda g, s: jackknife.p_above(g, s, df), replicates.whole, se)}

    def _error_if_constant(self, leaf: Leaf, part: Part, buckets: list[int]) -> float | None:
        """The error of a value that no bucket moves, by the units of as many buckets; None where rounding decides."""
        each = sorted({buckets[place] for place in part.places})
        value = self._answer(leaf, part).value or 0.0
        moved = [self._answer(leaf, without(part, buckets, b)).value for b in each]
        away = max(math.inf if other is None else abs(other - value) for other in moved)
        low, high = jackknife.range_of(leaf)
        if away > jackknife.UNSURE * abs(value) or not math.isfinite(high - low):
            return 0.0
        if away > NOISE / 100 * abs(value):
            return None
        n = sum(self._answer(leaf, jackknife.alone(part, buckets, b)).value is not None for b in each)
        units = math.log(1 - min(max(n, 1), HALF - 0.5) / HALF) / math.log(1 - 1 / HALF)
        share = self._share(value, low, high)
        ends = [
            (share + Z**2 / (2 * units) + side * Z * math.sqrt(share * (1 - share) / units + (Z / (2 * units)) ** 2))
            / (1 + Z**2 / units)
            for side in (-1, 1)
        ]
        return max(share - max(ends[0], 0.0), min(ends[1], 1.0) - share) * (high - low) / Z

    def _range(self, leaf: Leaf) -> tuple[float, float]:
        """Between what the values, or their changes, lie."""
        return jackknife.range_of(leaf)

    def _share(self, value: float, low: float, high: float) -> float:
        """Where a value lies in the range of the metric."""
        return (value - low) / (high - low)

    def _harm(self, leaf: Leaf, group: Part, rest: Answer, sign: int) -> Row:
        """How much of what the group lacks to the best value the rest does not lack."""
        whole, best = self._answer(leaf, group), jackknife.range_of(leaf)[sign > 0]
        if not math.isfinite(best):
            return {"share_of_harm": NULL}
        assert whole.value is not None
        assert rest.value is not None
        lacks = best - whole.value
        if abs(lacks) < 1e-9:
            return {}
        return {"share_of_harm": Answer(min(max((rest.value - whole.value) / lacks, 0.0), 1.0), 1e-11 / abs(lacks))}


@dataclass(frozen=True)
class FindChanges(FindSlices):
    """A call of `find_slices` with a baseline: the new rows are of the model q, the old ones of p."""

    @property
    def keys(self) -> list[str]:
        return [*self.by, "model", "slice"]

    def _groups(self) -> dict[Key, Part]:
        return {(*key, "q"): self._paired(part) for key, part in self.table.whole.groups(self.by).items()}

    def _paired(self, part: Part) -> Part:
        """The rows of samples, each with its features, that count on both sides or on none."""
        if not self.options.get("pairs", True):
            return part
        reads = ["score", "truth", *self.roles.values()]
        unit = ["sample", *self.options["features"]]
        counting: dict[Key, set[str]] = {}
        for row in part.rows:
            if None not in (row[name] for name in reads):
                counting.setdefault(tuple(row[name] for name in unit), set()).add(row["model"])
        return part.where(lambda row: len(counting.get(tuple(row[name] for name in unit), ())) != 1)

    def _sides(self, part: Part) -> list[Part]:
        return [part.where(lambda row, model=model: row["model"] == model) for model in ("q", "p")]

    def _answer(self, leaf: Leaf, part: Part) -> Answer:
        new, old = (leaf.answer(side, Setting(self.roles, value_of)) for side in self._sides(part))
        return added(new, negated(old))

    def _range(self, leaf: Leaf) -> tuple[float, float]:
        low, high = jackknife.range_of(leaf)
        return low - high, high - low

    def _share(self, value: float, low: float, high: float) -> float:
        return abs(value) / (high - low)

    def _harm(self, leaf: Leaf, group: Part, rest: Answer, sign: int) -> Row:
        """How much of what the group became worse by the rest did not."""
        whole = self._answer(leaf, group).value
        assert whole is not None
        assert rest.value is not None
        if abs(whole) < 1e-9:
            return {}
        if sign * whole > 0:
            return {"share_of_harm": NULL}
        return {"share_of_harm": Answer(min(max((whole - rest.value) / whole, 0.0), 1.0), 1e-11 / abs(whole))}


def split(group: Part, text: str) -> tuple[Part, Part]:
    """The rows of a slice, by its conditions as they are shown, and the rest of its group."""
    wanted = dict(condition.split("=") for condition in text.split(", "))

    def holds(place: int) -> bool:
        row = group.table.rows[place]
        return all(("null" if row[name] is None else str(row[name])) == value for name, value in wanted.items())

    own = tuple(place for place in group.places if holds(place))
    left = set(own)
    rest = tuple(place for place in group.places if place not in left)
    return Part(group.table, own), Part(group.table, rest)


# --- random calls ---------------------------------------------------------------------------------------------------


def table(random: Random) -> Table:
    """A log of some hundred samples, in which the scores of one slice are worse than elsewhere."""
    bad = {name: random.choice(values) for name, values in random.sample(list(FEATURES.items()), random.choice([1, 2]))}
    share, nulls, rows = random.uniform(0.3, 0.9), random.choice([0.0, 0.0, 0.03]), []
    for sample in range(random.randint(120, 240)):
        of_sample = {name: random.choice(values) for name, values in FEATURES.items()}
        of_sample |= {name: None for name in FEATURES if random.random() < nulls}
        for label in ["a", "b"][: random.choice([1, 1, 2])]:
            truth = float(random.random() < 0.4)
            is_worse = all(of_sample[name] == value for name, value in bad.items()) and random.random() < share
            right = random.random() < (0.3 if is_worse else 0.85)
            score = random.choice([0.6, 0.7, 0.9] if (truth == 1) == right else [0.1, 0.3, 0.4])
            row = {"sample": sample, "label": label, "score": score, "truth": truth, **of_sample}
            row |= {"weight": random.choice([1.0, 2.0, 0.5]), "model": random.choice(MODELS)}
            rows.append({k: None if k in ("score", "truth", "weight") and random.random() < nulls else v
                         for k, v in row.items()})  # fmt: skip
    types = {"sample": pl.Int64, "label": pl.String, "score": pl.Float64, "truth": pl.Float64, "country": pl.String}
    return Table(pl.DataFrame(rows, schema={**types, "device": pl.String, "day": pl.Int64, "weight": pl.Float64,
                                            "model": pl.String}))  # fmt: skip


def with_a_second_model(random: Random, table: Table) -> Table:
    """The rows of a model p, most of them again of a model q, which is worse in one slice and lacks some."""
    first = table.frame.with_columns(model=pl.lit("p"))
    name = random.choice(list(FEATURES))
    worse = [random.random() < (0.5 if value == FEATURES[name][0] else 0.1) for value in first[name]]
    second = first.with_columns(
        model=pl.lit("q"),
        score=pl.when(pl.Series(worse, dtype=pl.Boolean)).then(1 - pl.col("score")).otherwise("score"),
    )
    lacks, moves = ([random.random() < 0.05 for _ in range(first.height)] for _ in range(2))
    country = pl.when(pl.Series(moves)).then(pl.lit("DE")).otherwise("country") if random.random() < 0.3 else "country"
    return Table(pl.concat([first, second.with_columns(country=country).filter(~pl.Series(lacks))]))


def find_slices(random: Random, table: Table) -> Call:
    roles = {"weight": "weight"} if random.random() < 0.5 else {}
    average = random.choice([{}, {}, {"average": "macro"}])
    leaf = Leaf(random.choice(NAMES), average)
    options: dict[str, Any] = {
        "features": random.sample(list(FEATURES), random.choice([2, 3, 3])),
        "depth": random.choice([1, 2, 2]),
        "min_samples": random.choice([10, 20]),
    }
    options |= {"progress": False, "passes": 2} if random.random() < 0.2 else {}
    if random.random() < 0.3:
        options |= {"baseline": "p"} | ({} if random.random() < 0.6 else {"pairs": False})
        leaf, table = Leaf(leaf.name, {}), with_a_second_model(random, table)
        return FindChanges("find_slices", table, (("m0", leaf),), (), roles=roles, lazy=False, options=options)
    by = ("model",) if random.random() < 0.2 else ()
    return FindSlices("find_slices", table, (("m0", leaf),), by, roles=roles, lazy=False, options=options)
