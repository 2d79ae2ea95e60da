"""Quantiles and p of Student's t, and tails of F, against scipy: for any degrees of freedom, whole or not."""

import numpy as np
import polars as pl
import pytest
from scipy import stats

from polars_mlmetrics.intervals.student_t import (
    beyond_f,
    deciding,
    degrees_of_freedom,
    p_value,
    shared_level,
    t_at,
)

DEGREES = [1.0, 1.002, 1.1, 1.5, 1.9, 2, 2.3, 2.8, 3, 3.1, 3.5, 4.3, 7, 12.3, 20.5, 31, 63, 127, 255, 5000]


@pytest.mark.parametrize("level", [0.01, 0.5, 0.6, 0.8, 0.9, 0.95, 0.99, 0.999, shared_level(0.95, 1225)])
def test_a_quantile(level: float) -> None:
    found = pl.DataFrame({"df": DEGREES}).select(t_at(pl.col("df"), level)).to_series().to_numpy()
    tolerance = 2e-10 if level <= 0.999 else 1e-7  # farther out, the polynomial is less near: a shared level has pairs
    assert found == pytest.approx(stats.t.isf((1 - level) / 2, DEGREES), rel=tolerance, abs=1e-10)


def test_p() -> None:
    t = pl.DataFrame({"t": [0.0, 1e-5, 0.3, 1, -2, 3, 7, -20, 1e3]})
    table = t.join(pl.DataFrame({"df": DEGREES}), how="cross")
    found = table.select(p_value(pl.col("t"), pl.col("df"))).to_series().to_numpy()
    right = 2 * stats.t.sf(np.abs(table["t"].to_numpy()), table["df"].to_numpy())
    assert found == pytest.approx(right, rel=1e-9, abs=1e-300)


def test_p_of_what_is_no_number() -> None:
    table = pl.DataFrame({"t": [float("inf"), float("nan"), None, 1.0], "df": [3.5, 3.0, 2.0, None]})
    found = table.select(p_value(pl.col("t"), pl.col("df"))).to_series().to_list()
    assert found[0] == 0
    assert np.isnan(found[1])
    assert found[2:] == [None, None]


def test_few_parts_that_decide_leave_few_degrees() -> None:
    moved = [[1.0] * 10, [3.0, *[0.0] * 9], [1.0, 1.0, 1.0, 1.0, 0.0], [1e-90] * 10, [0.0] * 10, [1.0]]
    powers = [(len(each), sum(d**2 for d in each), sum(d**4 for d in each)) for each in moved]
    table = pl.DataFrame(powers, schema=["n", "squares", "fourths"], orient="row")
    few = deciding(pl.col("squares"), pl.col("fourths"))
    found = table.select(few.alias("few"), degrees_of_freedom(pl.col("n"), few).alias("df"))
    assert found["few"].to_list() == pytest.approx([10, 1, 4, None, None, 1])
    assert found["df"].to_list() == [9, 3, 4, 9, 9, None]  # of powers too small to be numbers, all decide
    assert table.select(degrees_of_freedom(pl.col("n"), None)).to_series().to_list() == [9, 9, 4, 9, 9, None]


def test_the_tail_of_f() -> None:
    random = np.random.default_rng(0)
    value, df, df_below = np.exp(random.uniform([-6, -1, -1], [4, 5, 9], size=(5_000, 3))).T
    right = stats.f.sf(value, df, df_below)
    found = beyond_f(value, df, df_below)
    assert np.abs(found - right).max() < 1e-10
    is_large = right > 1e-280
    assert found[is_large] == pytest.approx(right[is_large], rel=1e-8)


def test_the_tail_of_f_at_its_ends() -> None:
    found = beyond_f(np.array([0.0, np.inf, np.nan, 1.0]), np.full(4, 3.5), np.array([50.0, 50.0, 50.0, np.nan]))
    assert found[:2].tolist() == [1, 0]
    assert np.isnan(found[2:]).all()
