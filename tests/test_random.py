"""Random small frames, full of ties, nulls, NaN and weights of 0: both readings against the reference."""

from collections.abc import Mapping
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
EXAMPLES = 300


def mostly(values: list[Any], *rare: Any) -> st.SearchStrategy[Any]:
    """One of the values, or now and then something rare."""
    return st.integers(0, 29).flatmap(lambda n: st.sampled_from([*rare] if n == 7 else values))


@st.composite
def rows(draw: st.DrawFn) -> pl.DataFrame:
    cell = st.fixed_dictionaries(
        {
            "model": st.integers(0, 1),
            "sample": mostly(list(range(draw(st.integers(1, 6)))), None),
            "label": mostly(LABELS[: draw(st.integers(1, 8))], None),
            "score": mostly(SCORES, None, float("nan")),
            "truth": mostly([0.0, 1.0], None, 2.0),
            "weight": mostly(WEIGHTS, None),
            "limit": mostly([0.1, 0.5, 0.5, 1.0], None),
        }
    )
    return pl.DataFrame(draw(st.lists(cell, min_size=0, max_size=30)), schema=SCHEMA)


@st.composite
def asked(draw: st.DrawFn) -> list[Case]:
    """A few metrics, each with the parameters of two cases together."""
    cases = []
    for name in draw(st.lists(st.sampled_from(sorted(mlm.CATALOGUE)), min_size=3, max_size=3, unique=True)):
        of_name = st.sampled_from([case for case in CASES if case.name == name])
        one, other = draw(of_name), draw(of_name)
        cases.append(Case(name, {**other.params, **one.params}))
    return cases


def bound(case: Case, roles: Mapping[str, str]) -> mlm.Metric:
    return getattr(mlm, case.name)(**case.params).on(**roles).alias(str(case))


# Frames are small as they are drawn: to shrink one takes minutes, and tells little more.
@settings(max_examples=EXAMPLES, derandomize=True, database=None, phases=[Phase.generate])
@given(frame=rows(), cases=asked(), weighted=st.booleans(), engine=st.sampled_from(["in-memory", "streaming"]))
def test_random_frames(frame: pl.DataFrame, cases: list[Case], weighted: bool, engine: str) -> None:
    # One score and one truth for all: a broken truth or a probability is then one for every metric, by its own rule.
    roles = {"score": "score", "truth": "truth", **({"weight": "weight"} if weighted else {})}
    cases = list({str(case): case for case in cases}.values())
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
                assert same(got, expected), f"{case} by {reading}, {roles}: {got!r}, expected {expected!r}"


def test_every_case_can_be_drawn() -> None:
    assert {case.name for case in CASES} == set(mlm.CATALOGUE)
