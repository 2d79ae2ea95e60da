"""The rules of the oracle: averages, counts, what is broken, how a threshold is read."""

import math
from typing import Any

import polars as pl
import pytest

from tests.laws import oracle
from tests.laws.agreement import AGREE
from tests.laws.oracle import DECLARED, expected, expected_counts
from tests.laws.references.rows import MAY_BE
from tests.support.readings import same

RULES = pl.DataFrame(
    {
        "sample": [1, 1, 1, 2, 2, 2, 3, None],
        "label": ["a", "b", "c", "a", "b", "c", "a", "a"],
        "score": [0.9, 0.2, 0.7, 0.8, 0.6, None, 0.1, 0.9],
        "truth": [1, 0, 0, 0, 1, 1, 1, 1],
        "weight": [1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 4.0, 1.0],
    }
)


@pytest.mark.parametrize(
    ("params", "value"),
    [
        ({}, 3 / 5),
        ({"average": "macro"}, (2 / 3 + 1 + 0) / 3),
        ({"average": "weighted"}, (3 * 2 / 3 + 1 * 1 + 0 * 0) / 4),
        ({"average": "samples"}, (1 / 2 + 1 / 2) / 2),
        ({"average": "min"}, 0.0),
        ({"average": "max"}, 1.0),
        ({"average": {"a": 1, "b": 3}}, (2 / 3 + 3 * 1) / 4),
        ({"labels": ["b", "d"], "average": "macro"}, 1.0),
        ({"labels": ["b", "d"], "average": "macro", "undefined": 0.0}, 0.5),
        ({"labels": ["b", "d"], "average": "weighted", "undefined": 0.0}, 1.0),
        ({"labels": ["b", "d"], "average": {"b": 1, "d": 3}, "undefined": 0.0}, 0.25),
        ({"average": {"b": 1, "d": 3}, "undefined": 0.0}, 1.0),
        ({"labels": ["d"], "average": "macro"}, None),
    ],
)
def test_averages_of_precision(params: dict[str, Any], value: float | None) -> None:
    """Predicted: a in 1, 2 and the sample without a key, b in 2, c in 1. Right: a in 1, b in 2, and the last."""
    assert same(expected("precision", RULES, params), value, AGREE)


def test_counts() -> None:
    counts = expected_counts("precision", RULES, {"average": "samples"}, {"weight": "weight"})
    assert counts == {"n_rows": 6, "n_samples": 3, "n_excluded": 2, "support": 7.0, "n_undefined": 1}
    assert expected("n_rows", RULES) == 7
    assert expected("n_samples", RULES) == 3
    assert expected("n_excluded", RULES) == 1


@pytest.mark.parametrize("average", ["micro", "macro", "weighted", "samples", "min", "max"])
def test_a_broken_row_breaks_its_unit_and_every_average(average: str) -> None:
    for column, cell in (("score", math.nan), ("truth", 2), ("weight", -1.0)):
        broken = RULES.with_columns(pl.when(pl.col("score") == 0.2).then(cell).otherwise(column).alias(column))
        value = expected("f1", broken, {"average": average, "undefined": 0.0}, {"weight": "weight"})
        assert value is not None
        assert math.isnan(value)
        assert expected("f1", broken, {"average": {"a": 1.0}}, {"weight": "weight"}) == pytest.approx(2 / (2 + 6 / 2))


@pytest.mark.parametrize(
    ("kind", "fine", "broken"),
    [
        ("any", ["x", -5, math.inf], [math.nan]),
        ("real", [-math.inf, -5.0, 0.3], [math.nan]),
        ("probability", [0.0, 1.0, 0.3], [-0.1, 1.1, math.inf, math.nan]),
        ("logit", [-5.0, 800.0], [math.inf, -math.inf, math.nan]),
        ("binary", [0.0, 1.0, True], [0.5, -1.0, 2.0, math.nan]),
        ("soft", [0.0, 1.0, 0.5], [-0.1, 1.1, math.nan]),
        ("gain", [0.0, 2.5], [-0.1, math.inf, math.nan]),
        ("positive", [5e-324, 2.5], [0.0, -0.0, -1.0, math.nan]),
        ("above -1", [-0.999, 0.0, 3.0], [-1.0, -2.0, math.nan]),
    ],
)
def test_what_is_broken(kind: str, fine: list[Any], broken: list[float]) -> None:
    assert [value for value in fine if oracle.value_is_broken(value, kind)] == []
    assert [value for value in broken if not oracle.value_is_broken(value, kind)] == []


def test_kinds_have_a_rule() -> None:
    kinds = {kind for declared in DECLARED.values() for kind in (declared.score, declared.truth)}
    assert kinds | {"logit"} == MAY_BE.keys()


def test_a_threshold_is_rounded_to_the_type_of_the_score() -> None:
    for dtype in (pl.Float64, pl.Float32):
        table = pl.DataFrame({"score": pl.Series([0.7], dtype=dtype), "truth": [1]})
        assert expected("recall", table, {"threshold": 0.7}) == 0
        assert expected("recall", table, {"threshold": 0.7, "inclusive": True}) == 1


@pytest.mark.parametrize(
    ("threshold", "value"),
    [
        ({"a": 0.85, None: 0.5}, 3 / 4),  # a of sample 2 is not predicted any more
        ({"a": 0.85}, None),  # nobody knows of b
        (pl.col("weight") / 3, 2 / 4),  # 2/3 in sample 2: b is not predicted any more
        (pl.lit(0.5), 3 / 5),
    ],
)
def test_thresholds(threshold: Any, value: float | None) -> None:
    assert same(expected("precision", RULES, {"threshold": threshold}), value, AGREE)
