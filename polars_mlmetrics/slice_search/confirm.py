"""Confirm: the candidates that were taken and their parents, measured in the buckets that the search did not see."""

from __future__ import annotations

import numpy as np
import polars as pl

from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.slice_search.choose import PARENT, TURN, Members, Search, in_order
from polars_mlmetrics.slice_search.contrast import t_of
from polars_mlmetrics.slice_search.count import PLACE
from polars_mlmetrics.slice_search.encode import GROUP, ODD

LARGEST = f"{INTERNAL}largest_share"
"""The largest share of the rows of a slice that is in one bucket."""


def confirmed(search: Search, members: Members, taken: pl.DataFrame) -> pl.DataFrame:
    """One row a candidate, by group and turn, with what the odd buckets say of it."""
    cells, parents = search.cells, [_parent(search, place) for place in taken[PLACE]]
    groups = cells.places[cells.of_groups]
    every = np.unique([*groups, *taken[PLACE], *(parent for parent in parents if parent is not None)])
    found = search.of_places(every, ODD)
    # A whole group is a cell too, without a rest.
    wholes = found.filter(pl.col(PLACE).is_in(groups.tolist())).select(GROUP, pl.col("value").alias("whole"))
    of_parents = found.select(pl.col(PLACE).alias(PARENT), pl.col("value").alias("parent_value"))
    of_search = taken.select(PLACE, pl.col("gap", "se", "t").name.suffix("_search"))
    table = taken.drop("value", "rest", "gap", "se", "t", "bound").with_columns(pl.Series(PARENT, parents, pl.Int64))
    table = table.hstack(_counts(search, members, taken))
    for other, key in ((found.drop(GROUP), PLACE), (of_search, PLACE), (wholes, GROUP), (of_parents, PARENT)):
        table = table.join(other, on=key, how="left", maintain_order="left")
    table = table.filter(_is_large(search))
    gap, se = pl.col("gap") + pl.col("gap_search"), (pl.col("se") ** 2 + pl.col("se_search") ** 2).sqrt()
    ordered = in_order(table.with_columns(t_of(gap, se).alias("t")))
    return ordered.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).over(GROUP).alias(TURN))


def _parent(search: Search, place: int) -> int | None:
    """The slice with one condition less of which the search is surest."""
    group, codes = search.lattice.codes_of(place)
    if len(codes) < 2:
        return None
    parents = [search.lattice.place_of(group, {f: c for f, c in codes.items() if f != left}) for left in codes]
    return max(parents, key=lambda parent: search.known.get(parent, float("-inf")))


def _counts(search: Search, members: Members, taken: pl.DataFrame) -> pl.DataFrame:
    """How many samples and rows slices have; and in the odd buckets, how many clusters, buckets, and rows in one."""
    cells = search.cells
    where = cells.find(taken[PLACE].to_numpy())
    rows, samples = cells.rows[where, :, 0], cells.samples[where, :, 0]
    n_clusters = members.n_clusters(taken)
    counts = {"n_samples": samples.sum(axis=1), "n_rows": rows.sum(axis=1)}
    counts |= {"n_clusters": samples[:, ODD].sum(axis=1) if n_clusters is None else np.array(n_clusters)}
    counts |= {"n_buckets": (rows[:, ODD] > 0).sum(axis=1), "most": rows[:, ODD].max(axis=1)}
    found = pl.DataFrame({**counts, "of": rows[:, ODD].sum(axis=1)}).cast(pl.Int64)
    return found.with_columns(ratio(pl.col("most"), pl.col("of")).alias(LARGEST)).drop("most", "of")


def _is_large(search: Search) -> pl.Expr:
    """Whether a slice, and the rest, have enough samples in all: the search wanted half of that in its half."""
    totals = (search.n_samples, search.n_rows, search.least)
    samples, rows, least = (pl.lit(pl.Series(of)).gather(pl.col(GROUP)) for of in totals)
    rest = ratio(rows - pl.col("n_rows"), rows) * samples
    return (pl.col("n_samples") >= least) & (rest >= least)
