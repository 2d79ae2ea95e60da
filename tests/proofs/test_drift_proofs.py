"""How often `drift` alarms: at the level that is asked where nothing has changed, and nearly always where much has.

A world is a log with two halves. Many worlds are one log, which is asked by world. The standard error of a share of
alarms near .05 is .009 in so many worlds.
"""

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_mlmetrics as mlm

WORLDS = 600
LEVEL = 0.05

Array = np.ndarray[Any, Any]
Sizes = Callable[[np.random.Generator, int], Array]
"""The rows of each of so many clusters."""


def single(_: np.random.Generator, clusters: int) -> Array:
    return np.ones(clusters, dtype=int)


def tens(_: np.random.Generator, clusters: int) -> Array:
    return np.full(clusters, 10)


def heavy(random: np.random.Generator, clusters: int) -> Array:
    return 1 + np.floor(2 * random.pareto(2.5, clusters)).astype(int)


def half(random: np.random.Generator, world: int, rows: int, sizes: Sizes) -> tuple[Array, Array]:
    """The clusters of the rows of one half, and what the rows of a cluster share."""
    size = sizes(random, rows)
    cluster = np.repeat(np.arange(rows), size)[:rows]
    return cluster + world * 10**6, random.normal(size=rows)[cluster]


def worlds(sizes: Sizes, rows: tuple[int, int], *, shift: float = 0.0, count: int = WORLDS) -> pl.DataFrame:
    """Worlds with so many rows in the baseline and in the other half, of which half of the variance is a cluster's."""
    random = np.random.default_rng(7)
    tables = []
    for world in range(count):
        for side, n in enumerate(rows):
            cluster, shared = half(random, 2 * world + side, n, sizes)
            score = sqrt(0.5) * (shared + random.normal(size=n)) + side * shift
            tables.append(pl.DataFrame({"world": world, "side": side, "user": cluster, "score": score}))
    return pl.concat(tables).with_columns(weight=1 + pl.col("user") % 3)


def asked(log: pl.DataFrame, **options: Any) -> pl.DataFrame:
    return mlm.drift(log, between="side", baseline=0, by="world", **{"sample": "user", **options})


def alarms(table: pl.DataFrame) -> float:
    """The share of worlds with p below the level; each has a p."""
    assert table["p"].null_count() == 0
    return (table["p"] < LEVEL).to_numpy().mean().item()


CASES: dict[str, tuple[Sizes, tuple[int, int], dict[str, Any]]] = {
    "rows": (single, (1_000, 1_000), {}),
    "few rows": (single, (100, 100), {}),
    "a large baseline": (single, (2_000, 200), {}),
    "a small baseline": (single, (200, 2_000), {}),
    "weighted rows": (single, (600, 600), {"weight": "weight"}),
    "samples of 10 labels": (tens, (1_000, 1_000), {}),
    "clusters": (heavy, (1_000, 1_000), {"cluster": "user", "sample": "row"}),
    "weighted clusters": (heavy, (1_000, 1_000), {"weight": "weight"}),
    "many equal scores": (tens, (600, 600), {"score": pl.col("score").clip(0.3)}),
    "zeros and ones": (tens, (600, 600), {"score": (pl.col("score") > 0.5).cast(pl.Int8)}),
    "classes": (tens, (600, 600), {"score": pl.col("score").round().cast(pl.Int8).cast(pl.String), "bins": 5}),
}


@pytest.mark.parametrize("name", CASES)
def test_two_halves_of_one_log_alarm_at_the_level_that_is_asked(name: str) -> None:
    sizes, rows, options = CASES[name]
    log = worlds(sizes, rows).with_row_index("row")
    found = asked(log, **options)
    assert 0.01 <= alarms(found) <= 0.07
    # What chance gives is foretold.
    assert found["psi_expected"].mean() == pytest.approx(found["psi"].mean(), rel=0.12)


def test_rows_of_one_cluster_are_no_samples() -> None:
    """The test sees: taken for independent, rows of samples of 10 labels alarm several times as often."""
    log = worlds(tens, (1_000, 1_000), count=300).with_row_index("row")
    assert alarms(asked(log, sample="row")) > 0.2


def test_a_shift_of_a_third_of_a_deviation_is_found() -> None:
    assert alarms(asked(worlds(single, (1_000, 1_000), shift=0.3, count=300))) > 0.99
    assert alarms(asked(worlds(tens, (1_000, 1_000), shift=0.3, count=300))) > 0.7
