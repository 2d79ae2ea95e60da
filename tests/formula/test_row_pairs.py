"""Sums over pairs of rows, held to all pairs one by one."""

from itertools import combinations, product

import numpy as np
import polars as pl
import pytest

from polars_mlmetrics.formula.row_pairs import discordant_pairs, gap_by_chance, weight_of_discordant_pairs

ONE, OTHER, WEIGHT = pl.col("one"), pl.col("other"), pl.col("weight")


def drawn(n: int, values: int, seed: int) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    columns = {"one": random.integers(0, values, n) * 1.0, "other": random.integers(0, values, n) * 1.0}
    weight = random.random(n)
    return pl.DataFrame({**columns, "weight": weight / weight.sum(), "group": random.integers(0, 4, n)})


FRAMES = [drawn(n, values, seed) for n, values in [(1, 2), (2, 2), (7, 3), (40, 4), (65, 1000)] for seed in range(4)]


def are_opposite(first: dict[str, float], second: dict[str, float]) -> bool:
    return (first["one"] - second["one"]) * (first["other"] - second["other"]) < 0


@pytest.mark.parametrize("frame", FRAMES, ids=str)
def test_pairs_in_opposite_orders(frame: pl.DataFrame) -> None:
    opposite = [pair for pair in combinations(frame.to_dicts(), 2) if are_opposite(*pair)]
    assert frame.select(discordant_pairs(ONE, OTHER)).item() == len(opposite)
    weights = sum(first["weight"] * second["weight"] for first, second in opposite)
    found = frame.select(weight_of_discordant_pairs(ONE, OTHER, WEIGHT)).item()
    assert found == pytest.approx(weights, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("frame", FRAMES, ids=str)
def test_gaps_of_all_pairs(frame: pl.DataFrame) -> None:
    pairs = product(frame.to_dicts(), repeat=2)
    gaps = sum(one["weight"] * other["weight"] * abs(one["one"] - other["other"]) for one, other in pairs)
    assert frame.select(gap_by_chance(ONE, OTHER, WEIGHT)).item() == pytest.approx(gaps, rel=1e-12, abs=1e-15)


def test_in_groups_and_windows() -> None:
    frame = FRAMES[-1]
    sums = {
        "pairs": discordant_pairs(ONE, OTHER),
        "weights": weight_of_discordant_pairs(ONE, OTHER, WEIGHT),
        "gaps": gap_by_chance(ONE, OTHER, WEIGHT),
    }
    by_group = frame.group_by("group").agg(**sums).sort("group")
    alone = pl.concat(part.select(**sums) for part in frame.sort("group").partition_by("group", maintain_order=True))
    assert by_group.drop("group").equals(alone)
    on_rows = frame.select("group", **{name: value.over("group") for name, value in sums.items()})
    assert on_rows.unique().sort("group").equals(by_group)


def test_many_rows() -> None:
    """Places need 17 binary digits; of a permutation that is turned round, all pairs are in opposite orders."""
    n = 100_000
    turned = pl.select(one=pl.int_range(n), other=-pl.int_range(n))
    assert turned.select(discordant_pairs(ONE, OTHER)).item() == n * (n - 1) // 2
