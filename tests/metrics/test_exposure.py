"""`surprisal`, by hand."""

import math

import polars as pl
import pytest

import polars_mlmetrics as mlm

LISTS = pl.DataFrame(
    {
        "sample": [1, 1, 1, 2, 2, 2],
        "label": ["a", "b", "c"] * 2,
        "score": [0.9, 0.5, 0.5, 0.1, 0.7, -math.inf],
        "popularity": [0.5, 0.25, 0.125] * 2,
    }
)


@pytest.mark.parametrize(
    ("k", "of_first", "of_second"),
    [(1, 1.0, 2.0), (2, (1 + 0.5 * 2 + 0.5 * 3) / 2, 1.5), (9, 2.0, 1.5)],
)
def test_bits_of_the_first_labels(k: int, of_first: float, of_second: float) -> None:
    """Tied labels are in by half, and a label that was not returned takes no place."""
    found = mlm.evaluate(LISTS, mlm.surprisal(k, "popularity"), per="sample").sort("sample")
    assert found[f"surprisal_{k}"].to_list() == pytest.approx([of_first, of_second], rel=1e-12)


def test_popularity_may_be_an_expression_and_of_a_join() -> None:
    shares = pl.DataFrame({"label": ["a", "b", "c"], "users": [50.0, 25.0, 12.5]})
    log = LISTS.drop("popularity").join(shares, on="label")
    value = mlm.evaluate(log, mlm.surprisal(2, pl.col("users") / 100)).item()
    assert value == pytest.approx((1.75 + 1.5) / 2, rel=1e-12)


@pytest.mark.parametrize("popularity", [0.0, -0.1, 1.5, math.nan])
def test_what_is_no_share_is_broken(popularity: float) -> None:
    assert math.isnan(mlm.evaluate(LISTS, mlm.surprisal(1, pl.lit(popularity))).item())


def test_an_unknown_popularity_leaves_the_row_out() -> None:
    log = LISTS.with_columns(popularity=pl.when(pl.col("label") != "a").then("popularity"))
    value, excluded = mlm.evaluate(log, mlm.surprisal(1, "popularity"), tidy=True).row(0, named=True), 2
    assert value["value"] == pytest.approx((2.5 + 2.0) / 2, rel=1e-12)
    assert value["n_excluded"] == excluded


def test_nothing_returned() -> None:
    log = LISTS.with_columns(score=pl.lit(-math.inf))
    assert mlm.evaluate(log, mlm.surprisal(2, "popularity")).item() is None
