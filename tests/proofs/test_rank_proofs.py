"""Of equal models all have all places, in about as many worlds as the level says."""

from math import sqrt

import numpy as np
import polars as pl
import pytest

import polars_mlmetrics as mlm

WORLDS, LOWEST = 200, 0.93


@pytest.mark.parametrize("n", [100, 1_000])
@pytest.mark.parametrize("models", [2, 5, 20])
def test_equal_models_have_all_places(models: int, n: int) -> None:
    random, shape = np.random.default_rng(models + n), (models, WORLDS, n)
    model, world, sample = (index.ravel() for index in np.indices(shape))
    score = (0.3 * random.normal(size=shape[1:]) + 0.3 * random.normal(size=shape)).ravel()
    log = pl.DataFrame({"model": model, "world": world, "sample": sample, "score": score, "truth": 0.0})
    table = mlm.rank(log, mlm.mae(), by="world")
    of_all = (pl.col("rank_low") == 1) & (pl.col("rank_high") == models)
    share = table.group_by("world").agg(of_all.all().alias("held"))["held"].mean()
    assert share >= LOWEST - 2 * sqrt(LOWEST * (1 - LOWEST) / WORLDS)
