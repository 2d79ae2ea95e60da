"""Random tables: small, tied, with nulls in roles and keys, and a few broken rows. Their groups, by plain Python."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any

import polars as pl

from tests.laws.drawn.kinds import ARRANGED, BROKEN, FINE, TRUTHS
from tests.support.frames import LABELS, SCHEMA

Key = tuple[Any, ...]

TARGETS = ["t", "u", "v"]
VOCABULARY = [*LABELS, "yy", "zz"]  # what parameters name, too
KEYS: dict[str, list[Any]] = {"model": ["p", "q", "r"], "day": [1, 2, 3], "country": ["DE", "FR"]}
SAMPLE_OF_TWO = ["user", "query"]
NULLS = [0.0, 0.0, 0.02, 0.1]  # the share of nulls in a column
BREAKS = 0.15  # the share of tables with a broken value
WEIGHTS = [1.0, 1.0, 1.0, 1e-30, 1e30]


@dataclass(frozen=True)
class Table:
    """A frame, and its rows as Python has them."""

    frame: pl.DataFrame

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        return self.frame.rows(named=True)

    @cached_property
    def whole(self) -> "Part":
        return Part(self, tuple(range(self.frame.height)))

    @cached_property
    def settled(self) -> dict[Any, Any]:
        """What was settled before, by the rows and what was asked of them."""
        return {}


@dataclass(frozen=True)
class Part:
    """Some rows of a table."""

    table: Table
    places: tuple[int, ...]

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [self.table.rows[place] for place in self.places]

    @property
    def frame(self) -> pl.DataFrame:
        return self.table.frame[list(self.places)]

    def where(self, holds: Any) -> "Part":
        """The rows of which it holds; null is no yes."""
        return Part(self.table, tuple(place for place in self.places if holds(self.table.rows[place])))

    def groups(self, keys: Sequence[str]) -> dict[Key, "Part"]:
        """The rows of each combination of values that is there. Without keys all rows, were there none."""
        if not keys:
            return {(): self}
        found: dict[Key, list[int]] = {}
        for place in self.places:
            row = self.table.rows[place]
            found.setdefault(tuple(row[key] for key in keys), []).append(place)
        return {key: Part(self.table, tuple(places)) for key, places in found.items()}


def pairs(random: Random) -> list[tuple[int, str]]:
    """Samples and labels: a grid of them with holes, or any of them, twice too."""
    labels = LABELS[: random.randint(1, 5)]
    if random.random() < 0.3:
        return [(random.randint(0, 9), random.choice(labels)) for _ in range(random.randint(15, 45))]
    missing = random.choice([0.0, 0.0, 0.2, 0.5])
    samples = range(random.randint(20, 50) // len(labels))
    return [(sample, label) for sample in samples for label in labels if random.random() >= missing] or [(0, "a")]


def of_rows_or_samples(random: Random, values: Sequence[Any], samples: Sequence[Any], *, of_sample: float) -> list[Any]:
    """A value of each row, or one of each sample."""
    if random.random() < of_sample:
        chosen = {sample: random.choice(values) for sample in samples}
        return [chosen[sample] for sample in samples]
    return [random.choice(values) for _ in samples]


def weights(random: Random, samples: Sequence[Any]) -> list[float]:
    found = of_rows_or_samples(random, FINE["weight"], samples, of_sample=0.5)
    scale = random.choice(WEIGHTS)
    return [weight * scale for weight in found]


def columns(random: Random) -> dict[str, list[Any]]:
    """The columns of a table, all values known and few broken."""
    keys = pairs(random)
    samples = [sample for sample, _ in keys]
    found: dict[str, list[Any]] = {name: [random.choice(values) for _ in keys] for name, values in FINE.items()}
    found["truth"] = random.choice(ARRANGED)(random, keys)
    found["outcome"] = [float(sample % 3) for sample, _ in keys]
    for name in random.choice([[], [], [], ["score", "margin", "estimate", "rate"], TRUTHS[1:]]):
        found[name] = [found[name][0]] * len(keys)
    found["weight"] = weights(random, samples)
    found["heft"] = weights(random, samples)
    for name, values in KEYS.items():
        found[name] = of_rows_or_samples(random, values, samples, of_sample=0.6)
    found["target"] = of_rows_or_samples(random, TARGETS, samples, of_sample=0.3)
    found["answer"] = [random.choice("xy") for _ in keys]
    found["solution"] = [random.choice("xy") for _ in keys]
    found["user"] = [sample // 3 for sample in samples]
    found["query"] = [sample % 3 for sample in samples]
    if random.random() < BREAKS:
        broken = random.choice(list(BROKEN))
        found[broken][random.randrange(len(keys))] = random.choice(BROKEN[broken])
    return {"sample": samples, "label": [label for _, label in keys], **found}


def table(random: Random) -> Table:
    cells = columns(random)
    for values in cells.values():
        share = random.choice(NULLS)
        for place in range(len(values)):
            if random.random() < share:
                values[place] = None
    numbers = {"model": pl.String, "day": pl.Int64, "country": pl.String, "user": pl.Int64, "query": pl.Int64}
    types = {**SCHEMA, **numbers, "target": pl.String, "heft": pl.Float64}
    frame = pl.DataFrame(cells, schema={name: types[name] for name in cells})
    vocabulary = random.sample(VOCABULARY, len(VOCABULARY))  # in some other order than that of the alphabet
    changes = [pl.col("label").cast(random.choice([pl.String(), pl.Categorical(), pl.Enum(vocabulary)]))]
    if random.random() < 0.3:
        text = "s" + pl.col("sample").cast(pl.String)
        changes.append(text.cast(random.choice([pl.String, pl.Categorical])).alias("sample"))
    if random.random() < 0.2:
        changes.append(pl.col("score", "estimate").cast(pl.Float32))
    if random.random() < 0.3 and set(cells["truth"]) <= {0.0, 1.0, None}:
        changes.append(pl.col("truth").cast(random.choice([pl.Boolean, pl.Int8, pl.UInt8])))
    frame = frame[random.sample(range(frame.height), frame.height)]  # categories come in the order of the rows
    return Table(frame.with_columns(changes))
