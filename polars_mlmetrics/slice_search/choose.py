"""Choose: the candidates of each group, in the samples of the search, and which of them only repeat others.

The surest slices are candidates, with few of their relatives. One more reading folds the rows by the candidates that
they are in. From that follows, in memory, which are still worse without the rows of others.
"""

from __future__ import annotations

from collections import Counter
from math import prod

import polars as pl

from polars_mlmetrics.contrasts.rest import Sides
from polars_mlmetrics.data.numpy_later import Numbers, np
from polars_mlmetrics.engine.replicates import WITHOUT
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.intervals.interval import FEW_BUCKETS
from polars_mlmetrics.slice_search.contrast import CELL, contrasts_of, refolded
from polars_mlmetrics.slice_search.count import PLACE, CellSums, Lattice, Sums
from polars_mlmetrics.slice_search.encode import CLUSTER, EVEN, EVERY, GROUP, N_ROWS, ODD, Tables, code_column

MOST, RELATIVES = 32, 4
"""How many candidates a group has: a bit each. Of the parents and children of each so many."""

WHOLE = MOST
"""The bit that all rows have: that of the whole group."""

ROUNDS, EACH = 5, 4
"""How often the worst slice is set aside, and how many are taken each time."""

ENOUGH = 2.0
"""So many standard errors a gap must have without the rows of the slices that are shown, to be shown itself."""

TURN = f"{INTERNAL}turn"
"""The place of a candidate in its group, by how sure all samples are of it."""

BIT, MARKS, SURE = f"{INTERNAL}bit", f"{INTERNAL}marks", f"{INTERNAL}sure"
"""The number of a candidate in its group; the candidates that a row is in, a bit each; and t, rounded: slices of the
same rows are in one order, however their rows were summed."""


def in_order(slices: pl.DataFrame) -> pl.DataFrame:
    """Slices by group, the surest first."""
    t = pl.col("t")
    sure = pl.when(t.is_finite()).then(t.round_sig_figs(9)).otherwise(t).alias(SURE)
    return slices.with_columns(sure).sort([GROUP, SURE, PLACE], descending=[False, True, False], nulls_last=True)


def candidates_of(scores: pl.DataFrame, lattice: Lattice) -> pl.DataFrame:
    """The surest slices of each group, each with few relatives, and a BIT each."""
    bits: dict[int, int] = {}
    for _, of_group in in_order(scores.filter(pl.col("t") > 0)).group_by(GROUP, maintain_order=True):
        chosen: dict[int, set[tuple[int, int]]] = {}
        n_relatives = Counter[int]()
        for place in of_group[PLACE]:
            mine = set(lattice.codes_of(place).items())
            relatives = [other for other, codes in chosen.items() if mine <= codes or codes <= mine]
            if all(n_relatives[other] < RELATIVES for other in relatives):
                n_relatives.update(relatives)
                bits[place] = len(chosen)
                chosen[place] = mine
            if len(chosen) == MOST:
                break
    found = pl.DataFrame([*bits.items()], schema={PLACE: pl.Int64, BIT: pl.Int64}, orient="row")
    return scores.join(found, on=PLACE)


class Members:
    """The rows of the even buckets, folded by the candidates that they are in."""

    def __init__(self, cells: CellSums, candidates: pl.DataFrame) -> None:
        self._cells = cells
        self._encoded = encoded = cells.encoded
        self.n_groups = cells.lattice.n_groups
        self._wanted: dict[int, list[tuple[int, dict[int, int]]]] = {}
        """The candidates of each group: their bits and codes."""
        for place, group, bit in candidates.select(PLACE, GROUP, BIT).iter_rows():
            self._wanted.setdefault(group, []).append((bit, cells.lattice.codes_of(place)))
        keys, is_clustered = [GROUP, WITHOUT, MARKS], bool(encoded.cluster)
        self.counts = pl.DataFrame(schema={GROUP: pl.Int32, WITHOUT: pl.Int64, MARKS: pl.Int64, N_ROWS: pl.Int64})
        """How many rows of each group have the same marks, by bucket."""
        clusters: list[pl.DataFrame] = []
        self._tables: Tables = {}
        for part in encoded.parts(EVERY if is_clustered else EVEN):
            even = (part.half(EVEN) if is_clustered else part).changed(self._marked)
            counts = even.rows.group_by(keys).agg(pl.col(N_ROWS).sum().cast(pl.Int64))
            self.counts = pl.concat([self.counts, counts]).group_by(keys).agg(pl.col(N_ROWS).sum())
            self._tables = encoded.folded([self._tables, encoded.folded([even.tables], keys)], keys)
            if is_clustered:
                odd = self._marked(part.half(ODD).rows).select(GROUP, MARKS, CLUSTER)
                clusters = [pl.concat([*clusters, odd]).unique()]
        self._clusters = clusters[0].partition_by(GROUP, as_dict=True) if clusters else None
        """The clusters of the odd buckets, by group; None where samples are the clusters."""

    def _marked(self, table: pl.DataFrame) -> pl.DataFrame:
        """A table with the MARKS of its rows."""
        group, marks = table[GROUP].to_numpy(), np.full(table.height, 1 << WHOLE)
        for each, wanted in self._wanted.items():
            rows = np.flatnonzero(group == each)
            columns = {i: table[code_column(i)].to_numpy()[rows] for i in {i for _, codes in wanted for i in codes}}
            own = marks[rows]
            for bit, codes in wanted:
                is_in = np.logical_and.reduce([columns[i] == code for i, code in codes.items()])
                np.bitwise_or(own, 1 << bit, out=own, where=is_in)
            marks[rows] = own
        return table.with_columns(pl.Series(MARKS, marks))

    def contrasts(self, slices: pl.DataFrame, aside: Numbers) -> pl.DataFrame:
        """Measure candidates without the rows that are in others of their group: their bits, by group."""
        groups, bits = slices[GROUP].to_numpy(), slices[BIT].to_numpy()
        left = {kind: table.filter(is_left(aside)) for kind, table in self._tables.items()}
        counts = self.counts.filter(is_left(aside)).unique([GROUP, WITHOUT])
        n_buckets = np.bincount(counts[GROUP].to_numpy(), minlength=self.n_groups)
        every = np.arange(self.n_groups)
        own, whole = self._sums(left, groups, bits), self._sums(left, every, np.full(self.n_groups, WHOLE))
        found = contrasts_of(
            self._cells, own, whole, groups, n_buckets, lambda some: self._refolded(left, groups[some], bits[some])
        )
        return slices.select(PLACE, GROUP, BIT).hstack(found)

    def n_clusters(self, slices: pl.DataFrame, samples: Numbers) -> Numbers | list[int]:
        """How many clusters candidates have in the odd buckets: as many as samples, where these are the clusters."""
        if self._clusters is None:
            return samples
        keys = slices.select(GROUP, BIT).iter_rows()
        return [self._clusters[(group,)].filter(has(bit))[CLUSTER].n_unique() for group, bit in keys]

    def _sums(self, tables: Tables, groups: Numbers, bits: Numbers) -> Sums:
        """The sums of candidates, where these are all that is needed of them."""
        found: Sums = {}
        for kind, units in self._cells.units.items():
            group, marks = tables[kind][GROUP].to_numpy(), tables[kind][MARKS].to_numpy()
            of_group = [np.flatnonzero(group == each) for each in range(self.n_groups)]
            inside = [of_group[g][(marks[of_group[g]] >> bit) & 1 == 1] for g, bit in zip(groups, bits, strict=True)]
            piece, shape = self._cells.piece_of(kind, tables[kind]), (len(bits), self._encoded.n_searched, units.height)
            for statistic in self._encoded.statistics[kind]:
                values = tables[kind][statistic.name].to_numpy()
                sums = [np.bincount(piece[rows], values[rows], prod(shape[1:])) for rows in inside]
                dtype = self._cells.sums[kind, statistic.name].dtype
                found[kind, statistic.name] = np.array(sums).reshape(shape).astype(dtype)
        return found

    def _refolded(self, tables: Tables, groups: Numbers, bits: Numbers) -> Sides:
        """Both sides of candidates, folded anew: each has a group of its own, with two cells."""
        copies = []
        for number, (group, bit) in enumerate(zip(groups, bits, strict=True)):
            keys = pl.lit(number, dtype=pl.Int64).alias(GROUP), has(bit).cast(pl.Int64).alias(CELL)
            copies.append({k: each.filter(pl.col(GROUP) == group).with_columns(keys) for k, each in tables.items()})
        folded = self._encoded.folded(copies, [GROUP, CELL, WITHOUT])
        return refolded(self._encoded, folded, np.arange(len(copies)), np.ones(len(copies), dtype=np.int64), EVEN)


def has(bit: int) -> pl.Expr:
    """Whether a row is in the candidate of this bit."""
    return (pl.col(MARKS) & pl.lit(2**bit, dtype=pl.Int64)) != 0


def is_left(aside: Numbers) -> pl.Expr:
    """Whether a row is in no candidate that is set aside: their bits, by group."""
    return (pl.col(MARKS) & pl.lit(pl.Series(aside)).gather(pl.col(GROUP))) == 0


def choose(members: Members, candidates: pl.DataFrame) -> pl.DataFrame:
    """The candidates that are measured: the surest, again and again without the rows of the worst before them."""
    aside, found, scores = np.zeros(members.n_groups, dtype=np.int64), candidates.clear(), candidates
    for _ in range(ROUNDS):
        fresh = in_order(scores.filter(pl.col("t") > 0)).group_by(GROUP, maintain_order=True).head(EACH)
        if not fresh.height:
            break
        found = pl.concat([found, candidates.join(fresh, on=[GROUP, BIT], how="semi")])
        for group, bit in fresh.group_by(GROUP, maintain_order=True).first().select(GROUP, BIT).iter_rows():
            aside[group] |= 1 << bit
        left = candidates.join(found, on=[GROUP, BIT], how="anti")
        scores = members.contrasts(left, aside) if left.height else left
    return found


def hide_repeats(members: Members, table: pl.DataFrame, k: int) -> pl.DataFrame:
    """The candidates that are shown, k a group, with those that one of them hides (its place in `hidden_by`).

    The samples of the search decide it: else the intervals, of the others, would be of those that came out high.
    """
    aside = np.zeros(members.n_groups, dtype=np.int64)
    shown: list[dict[int, int]] = [{} for _ in range(members.n_groups)]
    """The slices that are shown, of each group: their places by their bits."""
    rows: list[tuple[int, int | None, float]] = []
    for _, turn in table.group_by(TURN, maintain_order=True):
        slices = turn.filter(pl.Series([len(shown[group]) < k for group in turn[GROUP]], dtype=pl.Boolean))
        if not slices.height:
            break
        t_left = members.contrasts(slices, aside)["t"].fill_null(0.0).alias("t_left")
        for group, place, bit, t, left in slices.select(GROUP, PLACE, BIT, "t_search", t_left).iter_rows():
            own, above = members.counts.filter(pl.col(GROUP) == group, has(bit)), shown[group]
            n_rows, is_alone = pl.col(N_ROWS), is_left(aside)
            overlap = own.select(ratio(n_rows.filter(~is_alone).sum(), n_rows.sum())).item()
            if left > ENOUGH and own.filter(is_alone)[WITHOUT].n_unique() >= FEW_BUCKETS:
                rows.append((place, None, overlap))
                above[bit] = place
                aside[group] |= 1 << bit
            elif overlap and t > ENOUGH:
                counts = {other: own.filter(has(other))[N_ROWS].sum() for other in above}
                rows.append((place, above[max(counts, key=counts.__getitem__)], overlap))
    columns = {PLACE: pl.Int64, "hidden_by": pl.Int64, "overlap": pl.Float64}
    return table.join(pl.DataFrame(rows, schema=columns, orient="row"), on=PLACE).sort(GROUP, TURN)
