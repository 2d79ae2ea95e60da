"""Random small frames, full of ties, nulls, NaN and weights of 0: both readings against the reference."""

from collections.abc import Mapping
from random import Random
from typing import Any

import polars as pl
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import polars_mlmetrics as mlm
from tests import oracle
from tests.cases import CASES, Case
from tests.oracle import same

LABELS = list("abcdefgh")
SCORES = [0.0, -0.0, 0.1, 0.5, 0.5, 0.5, 1.0, 5e-324, 1 - 1e-16]
WEIGHTS = [0.0, 1.0, 2.0, 0.1]
SCHEMA = {
    "model": pl.Int64, "sample": pl.Int64, "label": pl.String, "score": pl.Float64, "truth": pl.Float64,
    "weight": pl.Float64, "limit": pl.Float64,
}  # fmt: skip
RARE = 0.03
METRICS = 6  # a frame
EXAMPLES = 300


def mostly(random: Random, values: list[Any], *rare: Any) -> Any:
    """One of the values, or now and then something rare."""
    return random.choice(rare) if random.random() < RARE else random.choice(values)


def rows(random: Random) -> pl.DataFrame:
    samples, labels = random.randint(1, 6), LABELS[: random.randint(1, 8)]
    cells = [
        {
            "model": random.randint(0, 1),
            "sample": mostly(random, list(range(samples)), None),
            "label": mostly(random, labels, None),
            "score": mostly(random, SCORES, None, None, float("nan")),
            "truth": mostly(random, [0.0, 1.0], None, None, 2.0),
            "weight": mostly(random, WEIGHTS, None),
            "limit": mostly(random, [0.1, 0.5, 0.5, 1.0], None),
        }
        for _ in range(random.choice([0, 1, 5, 10, 20, 30]))
    ]
    return pl.DataFrame(cells, schema=SCHEMA)


def asked(random: Random) -> list[Case]:
    """A few metrics, each with the parameters of two cases together."""
    cases = []
    for name in random.sample(sorted(mlm.CATALOGUE), METRICS):
        one, other = random.choices([case for case in CASES if case.name == name], k=2)
        cases.append(Case(name, {**other.params, **one.params}))
    return cases


def bound(case: Case, roles: Mapping[str, str]) -> mlm.Metric:
    return getattr(mlm, case.name)(**case.params).on(**roles).alias(str(case))


# Hypothesis draws the seed alone: what it draws of a frame by itself are a few rows, nearly all the same.
@settings(max_examples=EXAMPLES, derandomize=True, database=None, deadline=None, phases=[Phase.generate])
@given(random=st.randoms(use_true_random=True))
def test_random_frames(random: Random) -> None:
    frame, cases = rows(random), asked(random)
    weighted, engine = random.random() < 0.5, random.choice(["in-memory", "streaming"])
    # One score and one truth for all: a broken truth or a probability is then one for every metric, by its own rule.
    roles = {"score": "score", "truth": "truth", **({"weight": "weight"} if weighted else {})}
    metrics = [bound(case, roles) for case in cases]
    parts = {key: part for (key,), part in frame.group_by("model")}
    tables = {
        "evaluate": mlm.evaluate(frame.lazy(), metrics, by="model"),
        "expression": frame.lazy().group_by("model").agg(metrics),
    }
    for reading, lazy in tables.items():
        table = lazy.collect(engine=engine)
        assert table.schema == lazy.collect_schema()
        assert set(table["model"]) == parts.keys()
        for row in table.iter_rows(named=True):
            for case in cases:
                expected = oracle.expected(case.name, parts[row["model"]], case.params, roles)
                got = row[str(case)]
                where = f"by {reading}, {engine}, {roles}, of\n{parts[row['model']].rows()}"
                assert same(got, expected), f"{case}: {got!r}, expected {expected!r} {where}"


def test_every_metric_has_cases() -> None:
    assert {case.name for case in CASES} == set(mlm.CATALOGUE)
