"""Random small frames, full of ties, nulls, NaN and weights of 0: both readings against the reference.

An example is one question, put to several frames at once: they are the groups of one table, each drawn by itself.
Most of the time of a question goes into its plan, which all frames share.
"""

from collections.abc import Callable
from random import Random
from typing import Any

import polars as pl
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import polars_mlmetrics as mlm
from tests.cases import CASES, Case
from tests.frames import LABELS, SCHEMA
from tests.oracle import same

NAN, INFINITY = float("nan"), float("inf")
FRAMES = 10  # an example
EXAMPLES = 250
METRICS = 8  # a question

# What the cells of a column are drawn from. Tied nearly always; next to the ends of what is allowed, too.
# An edge of the grids with 64 bins is between 0.49 and 0.5.
FINE: dict[str, list[float]] = {
    "score": [0.0, -0.0, 0.1, 0.49, 0.5, 0.5, 0.5, 1.0, 5e-324, 1 - 1e-16],
    "logit": [-800.0, -1.0, 0.0, 0.0, 0.5, 0.5, 40.0],
    "margin": [-INFINITY, -0.5, -0.49, -0.0, 0.0, 0.49, 0.5, 0.5, 0.7, 3e9, INFINITY],
    "estimate": [-1.0, -0.0, 0.0, 0.1, 0.5, 0.5, 3.0],
    "rate": [0.125, 0.3, 1.0, 1.0, 7.0],
    "truth": [0.0, 1.0],
    "soft": [0.0, 0.25, 0.3, 1.0, 1.0],
    "real": [-1.0, 0.0, 0.1, 0.5, 0.5, 2.0],
    "gain": [0.0, 0.0, 0.3, 1.0, 1.0, 3.0, 10.0],
    "amount": [0.25, 0.3, 1.0, 1.0, 3.0],
    "weight": [0.0, 1.0, 1.0, 2.0, 0.1, 0.7],
    "limit": [0.1, 0.5, 0.5, 1.0],
}
BROKEN: dict[str, list[float]] = {
    "score": [NAN, 1.5, -0.1], "logit": [NAN, INFINITY], "margin": [NAN], "estimate": [NAN], "rate": [NAN, 0.0, -1.0],
    "truth": [NAN, 2.0, 0.5], "soft": [NAN, 1.5], "real": [NAN], "gain": [NAN, -1.0, INFINITY],
    "amount": [NAN, 0.0, -1.0], "weight": [NAN, -1.0], "limit": [NAN],
}  # fmt: skip
TRUTHS = ["truth", "soft", "real", "gain", "amount"]
NULLS = [0.0, 0.0, 0.05, 0.4]  # the share of nulls in a frame
BREAKS = 0.15  # the share of frames with a broken value


def grid(random: Random) -> list[tuple[Any, Any]]:
    """Samples by labels, some of them missing."""
    labels, missing = LABELS[: random.randint(1, 5)], random.choice([0.0, 0.2, 0.6])
    pairs = [(sample, label) for sample in range(random.randint(1, 6)) for label in labels]
    return [pair for pair in pairs if random.random() >= missing]


def scattered(random: Random) -> list[tuple[Any, Any]]:
    """Any samples and labels: pairs come twice, in no order."""
    return [(random.randint(0, 4), random.choice(LABELS)) for _ in range(random.choice([1, 5, 10, 20]))]


def one_class(random: Random, keys: list[tuple[Any, Any]]) -> list[float]:
    """One true label a sample, or none where that row is missing."""
    true = {sample: random.choice(LABELS) for sample, _ in keys}
    return [float(true[sample] == label) for sample, label in keys]


def degenerate(random: Random, keys: list[tuple[Any, Any]]) -> list[float]:
    """Samples of positives only or of negatives only."""
    truth = {sample: random.choice([0.0, 1.0]) for sample, _ in keys}
    return [truth[sample] for sample, _ in keys]


def mixed(random: Random, keys: list[tuple[Any, Any]]) -> list[float]:
    return [random.choice([0.0, 1.0]) for _ in keys]


def rare(random: Random, keys: list[tuple[Any, Any]]) -> list[float]:
    return [float(random.random() < 0.1) for _ in keys]


ARRANGED: list[Callable[[Random, list[tuple[Any, Any]]], list[float]]] = [
    one_class,
    one_class,
    mixed,
    mixed,
    degenerate,
    rare,
]


def columns(random: Random, keys: list[tuple[Any, Any]]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {name: [random.choice(values) for _ in keys] for name, values in FINE.items()}
    found["truth"] = random.choice(ARRANGED)(random, keys)
    for name in random.choice([[], [], ["score", "margin", "estimate", "rate"], TRUTHS[1:]]):
        found[name] = [found[name][0]] * len(keys)  # a scorer or a truth that is always the same
    far = random.choice([0.0, 0.0, 0.0, 1e9, -1e3])
    for name in ("estimate", "real"):
        found[name] = [value + far for value in found[name]]
    if random.random() < 0.5:  # the weight is of the sample
        weight = {sample: random.choice(FINE["weight"]) for sample, _ in keys}
        found["weight"] = [weight[sample] for sample, _ in keys]
    return {"sample": [s for s, _ in keys], "label": [label for _, label in keys], **found,
            "answer": [random.choice("xy") for _ in keys], "solution": [random.choice("xy") for _ in keys]}  # fmt: skip


def rows(random: Random) -> pl.DataFrame:
    keys = random.choice([grid, scattered])(random) or [(0, "a")]
    cells = columns(random, keys)
    if random.random() < BREAKS:
        broken = random.choice(list(BROKEN))
        cells[broken][random.randrange(len(keys))] = random.choice(BROKEN[broken])
    share = random.choice(NULLS)
    for values in cells.values():
        for place in range(len(keys)):
            if random.random() < share / 4:
                values[place] = None
    return pl.DataFrame(cells, schema={name: SCHEMA[name] for name in cells})


def asked(random: Random) -> list[Case]:
    """A few metrics, each with the parameters of two cases together."""
    cases = []
    for name in random.sample(sorted(mlm.CATALOGUE), METRICS):
        one, other = random.choices([case for case in CASES if case.name == name], k=2)
        cases.append(Case(name, {**other.params, **one.params}))
    return cases


# Hypothesis draws the seed alone: what it draws of a frame by itself are a few rows, nearly all the same.
@settings(max_examples=EXAMPLES, derandomize=True, database=None, deadline=None, phases=[Phase.generate])
@given(random=st.randoms(use_true_random=True))
def test_random_frames(random: Random) -> None:
    parts, cases = [rows(random) for _ in range(FRAMES)], asked(random)
    weighted, engine = random.random() < 0.5, random.choice(["in-memory", "streaming"])
    frame = pl.concat([part.with_columns(model=pl.lit(model)) for model, part in enumerate(parts)])
    frame = frame[random.sample(range(frame.height), frame.height)]
    metrics = [case.metric(weighted=weighted) for case in cases]
    tables = {
        "evaluate": mlm.evaluate(frame.lazy(), metrics, by="model"),
        "expression": frame.lazy().group_by("model").agg(metrics),
    }
    expected = [{str(case): case.expected(part, weighted=weighted) for case in cases} for part in parts]
    for reading, lazy in tables.items():
        table = lazy.collect(engine=engine)
        assert table.schema == lazy.collect_schema()
        assert sorted(table["model"]) == list(range(FRAMES))
        for row in table.iter_rows(named=True):
            for case in cases:
                got, right = row[str(case)], expected[row["model"]][str(case)]
                where = f"by {reading}, {engine}, {case.roles(weighted)}, of\n{parts[row['model']].rows(named=True)}"
                assert same(got, right), f"{case}: {got!r}, expected {right!r} {where}"


def test_enough_values_are_numbers() -> None:
    """In a third of the frames or more: else the comparison would be of nulls and NaN."""
    random = Random(1)
    frames = [rows(random) for _ in range(60)]
    for name in mlm.CATALOGUE:
        case = next(case for case in CASES if case.name == name)
        values = [case.expected(frame) for frame in frames]
        assert sum(value is not None and value == value for value in values) >= 20, (name, values)


def test_every_metric_has_cases() -> None:
    assert {case.name for case in CASES} == set(mlm.CATALOGUE)
