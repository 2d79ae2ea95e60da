"""Numbers as other systems print them: right to the last digit."""

from typing import Any

import polars as pl
import pytest

from tests.laws.oracle import Value
from tests.support.readings import both_by_label

EXACT = 1e-12  # numbers that are known to all their digits, up to the order of a sum


def printed(value: Value, digits: str) -> bool:
    """Whether a value is the number that was printed: equal when rounded to as many decimals."""
    assert value is not None
    return f"{value:.{len(digits.partition('.')[2])}f}" == digits


def exact(known: Any) -> Any:
    return pytest.approx(known, rel=EXACT, abs=EXACT)


def of_labels(frame: pl.DataFrame, metric: Any, **roles: Any) -> list[Value]:
    """The values of the labels, in the order of their names, by both readings."""
    return list(both_by_label(frame, metric, **roles).values())


def binary(truth: list[int], score: list[float], dtype: Any = pl.Float64) -> pl.DataFrame:
    """No sample, no label: a group is one unit."""
    return pl.DataFrame({"score": pl.Series(score, dtype=dtype), "truth": truth})
