"""The search of `find_slices` knows of every slice what others find: SQL, DivExplorer's definition."""

import random
from itertools import combinations, product
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.engine.buckets import bucket_of
from tests.slice_search.searched_slices import searched


def table(seed: int) -> tuple[pl.DataFrame, list[str]]:
    """A small log of two to four features with few values, null among them. Its samples are those that are searched."""
    draw = random.Random(seed)
    n, names = draw.randrange(300, 1000), [f"f{i}" for i in range(draw.randrange(2, 5))]
    values: dict[str, list[Any]] = {name: draw.choices([*"abcd"[: draw.randrange(2, 5)], None], k=n) for name in names}
    rows = pl.DataFrame({"sample": range(n), **values, "truth": draw.choices([0, 1], k=n)})
    rows = rows.with_columns(score=pl.Series([draw.random() for _ in range(n)]))
    return rows.filter(bucket_of(["sample"], rows.schema, 64)[0] % 2 == 0), names


def mostly_proofs(count: int, stay: int) -> list[Any]:
    """Seeds, of which some stay in `make test`."""
    return [seed if seed < stay else pytest.param(seed, marks=pytest.mark.proof) for seed in range(count)]


Slices = dict[frozenset[Any], tuple[int, float, float]]


def by_cube(rows: pl.DataFrame, names: list[str], depth: int, least: int) -> Slices:
    """By SQL: how many samples each slice has, its mean loss and that of the rest, where both are large enough."""
    log = rows.with_columns(
        bucket_of(["sample"], rows.schema, 64)[0].alias("bucket"), loss=(pl.col("score") - pl.col("truth")).abs()
    )
    columns = ", ".join(names)
    flags = ", ".join(f"grouping({name})" for name in names)
    query = f"select {columns}, {flags}, count(*), sum(loss), count(distinct bucket) from log group by cube ({columns})"
    found = duckdb.sql(query).fetchall()
    k = len(names)
    [(n, total)] = [row[2 * k : 2 * k + 2] for row in found if all(row[k : 2 * k])]
    assert log.height == n
    slices = {}
    for row in found:
        size, loss, buckets = row[2 * k :]
        told = frozenset((name, row[i]) for i, name in enumerate(names) if not row[k + i])
        if 1 <= len(told) <= depth and min(size, n - size) >= least and buckets >= 10:
            slices[told] = (size, loss / size, (total - loss) / (n - size))
    return slices


def told(row: dict[str, Any]) -> frozenset[Any]:
    return frozenset((name, each.values[0] if each.kind == "is" else None) for name, each in row["conditions"].items())


@pytest.mark.parametrize("seed", mostly_proofs(200, 8))
def test_every_slice_is_what_sql_says(seed: int) -> None:
    rows, names = table(seed)
    depth, least = 1 + seed % 3, 10 + seed % 7
    found = {told(row): row for row in searched(rows, mlm.mae(), names, depth, least)}
    right = by_cube(rows, names, depth, least)
    assert found.keys() == right.keys()
    for key, (size, value, rest) in right.items():
        assert found[key]["n_samples"] == size
        # Sums in another order.
        assert (found[key]["value"], found[key]["rest"]) == pytest.approx((value, rest), rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_support_and_divergence_are_those_of_the_definition(seed: int) -> None:
    """DivExplorer's: the share of the rows, and the value less that of all rows."""
    rows, names = table(1000 + seed)
    correct = (rows["score"] > 0.5).to_numpy() == rows["truth"].to_numpy().astype(bool)
    found = {told(row): row for row in searched(rows, mlm.accuracy(), names, 2, 20)}
    assert found
    values = {name: rows[name].to_list() for name in names}
    seen = 0
    for some in [each for size in (1, 2) for each in combinations(names, size)]:
        for items in product(*(dict.fromkeys(values[name]) for name in some)):
            asked = list(zip(some, items, strict=True))
            is_in = np.array([all(values[name][i] == value for name, value in asked) for i in range(rows.height)])
            row = found.get(frozenset(asked))
            if row is not None:
                seen += 1
                assert row["n_samples"] / rows.height == pytest.approx(is_in.mean(), abs=1e-9)
                divergence = correct[is_in].mean() - correct.mean()
                assert row["value"] - correct.mean() == pytest.approx(divergence, abs=1e-9)
    assert seen == len(found)
