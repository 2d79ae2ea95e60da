"""Numbers as other systems print them: right to the last digit."""

from typing import Any

import polars as pl
import pytest

from tests.laws.oracle import Value

EXACT = 1e-12  # numbers that are known to all their digits, up to the order of a sum


def printed(value: Value, digits: str) -> bool:
    """Whether a value is the number that was printed: equal when rounded to as many decimals."""
    assert value is not None
    return f"{value:.{len(digits.partition('.')[2])}f}" == digits


def close(value: Value, known: float) -> bool:
    return value == pytest.approx(known, rel=EXACT, abs=EXACT)


def all_close(values: dict[str, Value], known: list[float | None]) -> bool:
    return list(values.values()) == [None if k is None else pytest.approx(k, rel=EXACT, abs=EXACT) for k in known]


def binary(truth: list[int], score: list[float], dtype: Any = pl.Float64) -> pl.DataFrame:
    """No sample, no label: a group is one unit."""
    return pl.DataFrame({"score": pl.Series(score, dtype=dtype), "truth": truth})
