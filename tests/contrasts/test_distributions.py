"""The part of chance in the difference of two distributions, against its definition in loops and scipy's F."""

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from polars_mlmetrics.contrasts.distributions import OURS, PAIR, THEIRS, chances
from polars_mlmetrics.contrasts.score_cells import CELL
from polars_mlmetrics.engine.folds import BUCKET
from tests.contrasts.by_hand import Array, chance


def cells_of(sides: Array) -> pl.DataFrame:
    """The cells of an array by pair, side, bucket and cell that have rows."""
    rows = [
        (pair, bucket, cell, *sides[pair, :, bucket, cell])
        for pair, bucket, cell in np.ndindex(sides.shape[0], *sides.shape[2:])
        if sides[pair, :, bucket, cell].any()
    ]
    return pl.DataFrame(rows, schema=[PAIR, BUCKET, CELL, OURS, THEIRS], orient="row")


@pytest.fixture(scope="module")
def sides() -> Array:
    """Twelve pairs over 64 buckets and 6 cells: one cell of all is empty, and some buckets."""
    random = np.random.default_rng(5)
    drawn = random.poisson(0.8, size=(12, 2, 64, 6)) * random.choice([0.5, 1.0, 2.5], size=(12, 2, 64, 1))
    drawn[:, :, :, 4] = 0
    drawn[:, :, 20:25] = 0
    drawn[3, 0, :, 1] *= 4
    return drawn


def test_chance_is_as_defined(sides: Array) -> None:
    found = chances(cells_of(sides), len(sides))
    right = [chance(*pair) for pair in sides]
    for row, (expected, p, n_buckets) in zip(found.iter_rows(named=True), right, strict=True):
        assert row["psi_expected"] == pytest.approx(expected, rel=1e-10)
        assert row["p"] == pytest.approx(p, rel=1e-8)
        assert row["n_buckets"] == n_buckets <= 59


def test_many_pairs_are_worked_out_in_parts(sides: Array, monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = chances(cells_of(sides), len(sides))
    monkeypatch.setattr("polars_mlmetrics.contrasts.distributions.AT_ONCE", 5 * 6 * 64)
    assert_frame_equal(chances(cells_of(sides), len(sides)), at_once, rel_tol=1e-12)


def test_no_p_where_a_bucket_is_all_that_a_side_has(sides: Array) -> None:
    alone = sides[:2].copy()
    alone[0, 0, 1:] = 0
    found = chances(cells_of(alone), 2)
    assert found["p"].is_null().to_list() == found["psi_expected"].is_null().to_list() == [True, False]


def test_no_p_where_nothing_varies(sides: Array) -> None:
    same = sides[:1].copy()
    same[:, :, :, 1:] = 0
    assert chances(cells_of(same), 1).select("psi_expected", "p").row(0) == (0.0, None)
