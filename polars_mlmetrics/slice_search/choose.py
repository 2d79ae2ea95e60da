"""Choose: the candidates of each group, in the samples of the search, and which of them only repeat others.

The surest slices are candidates, with few of their relatives. One more reading folds the rows by the candidates that
they are in. From that follows, in memory, which are still worse without the rows of others.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from polars_mlmetrics.engine.replicates import WITHOUT
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.intervals.intervals import FEW_BUCKETS
from polars_mlmetrics.slice_search.contrast import CELL, Contrasts, Sides
from polars_mlmetrics.slice_search.count import PLACE, CellSums, Lattice, Sums
from polars_mlmetrics.slice_search.encode import (
    CLUSTER,
    EVEN,
    EVERY,
    GROUP,
    N_ROWS,
    ODD,
    Numbers,
    Tables,
    code_column,
    half_of,
)
from polars_mlmetrics.slice_search.refold import sides_of, sides_of_places

MOST, RELATIVES = 32, 4
"""How many candidates a group has: a bit each. Of the parents and children of each so many."""

ROUNDS, EACH = 5, 4
"""How often the worst slice is set aside, and how many are taken each time."""

ENOUGH = 2.0
"""So many standard errors a gap must have without the rows of the slices that are shown, to be shown itself."""

TURN = f"{INTERNAL}turn"
"""The place of a candidate in its group, by how sure all samples are of it."""

PARENT = f"{INTERNAL}parent"
"""The slice with one condition less."""

BIT, MARKS, SURE = f"{INTERNAL}bit", f"{INTERNAL}marks", f"{INTERNAL}sure"
"""The number of a candidate in its group; the candidates that a row is in, a bit each; and t, rounded: slices of the
same rows are in one order, however their rows were summed."""


class Search:
    """Every slice that is large enough, scored in the even buckets. `sign` is 1 where low values are bad."""

    def __init__(self, cells: CellSums, sign: int) -> None:
        self.cells = cells
        self.lattice = lattice = cells.lattice
        large = self._large_features()
        names = {lattice.features[i].name for i in large}
        self.small = list(dict.fromkeys(each.name for each in lattice.features if each.name not in names))
        """The features without a value in enough samples."""
        n_combinations, buckets = sum({*some} <= large for some in lattice.combinations[1:]), cells.encoded.buckets
        halves = f"searched in {len(range(buckets)[EVEN])} of {buckets} buckets, measured in the others"
        self.how = f"{cells.encoded.how}; {n_combinations} combinations of features; {halves}"
        """How it is searched, in words."""
        self.contrasts = Contrasts(cells, sign)
        self.scores = self.of_places(self._large(), EVEN)
        """Every slice that was searched."""
        self.known = dict(self.scores.filter(pl.col("t").is_not_null()).select(PLACE, "t").iter_rows())
        """The t of each."""

    def of_places(self, places: Numbers, buckets: slice) -> pl.DataFrame:
        """The contrasts of the cells at some places, with their PLACE and GROUP."""
        keys = pl.DataFrame({PLACE: places, GROUP: self.lattice.groups(places)}).cast({GROUP: pl.Int32})
        if not len(places):
            return keys.with_columns(pl.lit(0.0).alias(name) for name in ("value", "rest", "gap", "se", "t", "bound"))

        def refold(some: Numbers) -> Sides:
            return sides_of_places(self.cells.encoded, self.lattice, places[some], buckets)

        return keys.hstack(self.contrasts.of_places(places, buckets, refold))

    def _large_features(self) -> set[int]:
        """The features with a value that is in enough rows and not in all."""
        cells, lattice = self.cells, self.lattice
        rows, least = cells.rows.sum(axis=(1, 2)), cells.least.min(initial=np.inf)
        found = set()
        for at, some in enumerate(lattice.combinations):
            if len(some) == 1:
                own = slice(*np.searchsorted(cells.places, lattice.starts[at : at + 2]))
                codes, _ = np.divmod(cells.places[own] - lattice.starts[at], lattice.n_groups)
                counts = np.bincount(codes, rows[own])[: len(lattice.features[some[0]].conditions)]
                if ((counts >= least) & (counts < cells.n_rows.sum())).any():
                    found.add(some[0])
        return found

    def _large(self) -> Numbers:
        """The slices that have enough samples in the even buckets, as has the rest, in enough of these."""
        cells, groups = self.cells, self.lattice.groups(self.cells.places)
        rows, samples = cells.rows[:, EVEN, 0], cells.samples[:, EVEN, 0].sum(axis=1)
        n_rows, least = rows.sum(axis=1), cells.least[groups] * 0.5
        # A sample may have rows in a slice and in the rest: rows are what can be taken off.
        all_rows, all_samples = n_rows[cells.of_groups][groups], samples[cells.of_groups][groups]
        has_rest = (all_rows - n_rows) * all_samples >= least * all_rows
        is_large = (samples >= least) & has_rest & ((rows > 0).sum(axis=1) >= FEW_BUCKETS)
        large: Numbers = cells.places[is_large & self.lattice.are_slices(cells.places)]
        return large

    def candidates(self) -> pl.DataFrame:
        """The surest slices of each group, each with few relatives, and a BIT each."""
        kept: list[tuple[int, int]] = []
        ordered = in_order(self.scores.filter(pl.col("t") > 0))
        for _, of_group in ordered.group_by(GROUP, maintain_order=True):
            chosen: list[frozenset[tuple[int, int]]] = []
            n_relatives: list[int] = []
            for place in of_group[PLACE]:
                mine = frozenset(self.lattice.codes_of(place)[1].items())
                relatives = [at for at, other in enumerate(chosen) if mine <= other or other <= mine]
                if all(n_relatives[at] < RELATIVES for at in relatives):
                    for at in relatives:
                        n_relatives[at] += 1
                    kept.append((place, len(chosen)))
                    chosen.append(mine)
                    n_relatives.append(0)
                if len(chosen) == MOST:
                    break
        bits = pl.DataFrame(kept, schema={PLACE: pl.Int64, BIT: pl.Int64}, orient="row")
        return self.scores.join(bits, on=PLACE)


def in_order(slices: pl.DataFrame) -> pl.DataFrame:
    """Slices by group, the surest first."""
    t = pl.col("t")
    sure = pl.when(t.is_finite()).then(t.round_sig_figs(9)).otherwise(t).alias(SURE)
    return slices.with_columns(sure).sort([GROUP, SURE, PLACE], descending=[False, True, False], nulls_last=True)


class Members:
    """The rows of the even buckets, folded by the candidates that they are in."""

    def __init__(self, search: Search, candidates: pl.DataFrame) -> None:
        self._search = search
        self._encoded = encoded = search.cells.encoded
        self.n_groups = search.lattice.n_groups
        marks, keys = Marks(search.lattice, candidates), [GROUP, WITHOUT, MARKS]
        counts = pl.DataFrame(schema={GROUP: pl.Int32, WITHOUT: pl.Int64, MARKS: pl.Int64, N_ROWS: pl.Int64})
        clusters: list[pl.DataFrame] = []
        self._tables: Tables = {}
        for part in encoded.parts(EVERY if encoded.has_clusters else EVEN):
            rows = marks.of(half_of(part.rows, EVEN))
            more = rows.group_by(keys).agg(pl.col(N_ROWS).sum().cast(pl.Int64))
            counts = pl.concat([counts, more]).group_by(keys).agg(pl.col(N_ROWS).sum())
            own = {
                k: rows if table is part.rows else marks.of(half_of(table, EVEN)) for k, table in part.tables.items()
            }
            self._tables = encoded.folded([self._tables, encoded.folded([own], keys)], keys)
            if encoded.has_clusters:
                odd = marks.of(half_of(part.rows, ODD)).select(GROUP, MARKS, CLUSTER)
                clusters = [pl.concat([*clusters, odd]).unique()]
        self._clusters = clusters
        self._counts = counts

    def contrasts(self, slices: pl.DataFrame, aside: Numbers) -> pl.DataFrame:
        """Measure candidates without the rows that are in others of their group: their bits, by group."""
        groups, bits = slices[GROUP].to_numpy(), slices[BIT].to_numpy()
        left = {kind: table.filter(is_left(aside)) for kind, table in self._tables.items()}
        counts = self._counts.filter(is_left(aside)).unique([GROUP, WITHOUT])
        n_buckets = np.bincount(counts[GROUP].to_numpy(), minlength=self.n_groups)

        def refold(some: Numbers) -> Sides:
            return self._sides(left, groups[some], bits[some])

        own, whole = self._sums(left if self._encoded.is_of_sums else {}, groups, bits)
        found = self._search.contrasts.of(own, whole, groups, n_buckets, refold)
        return slices.select(PLACE, GROUP, BIT).hstack(found)

    def rows_of(self, group: int, bit: int) -> pl.DataFrame:
        """How many rows a candidate has, by bucket and MARKS."""
        return self._counts.filter(pl.col(GROUP) == group, has(bit))

    def n_clusters(self, slices: pl.DataFrame) -> list[int] | None:
        """How many clusters candidates have in the odd buckets; None where samples are the clusters."""
        if not self._clusters:
            return None
        of_groups = self._clusters[0].partition_by(GROUP, as_dict=True)
        keys = slices.select(GROUP, BIT).iter_rows()
        return [of_groups[(group,)].filter(has(bit))[CLUSTER].n_unique() for group, bit in keys]

    def _sums(self, tables: Tables, groups: Numbers, bits: Numbers) -> tuple[Sums, Sums]:
        """The sums of candidates, and of whole groups."""
        own: Sums = []
        whole: Sums = []
        for kind, table in tables.items():
            piece, shape = self._search.cells.piece_of(kind, table), (self._encoded.n_searched, -1)
            group, marks = table[GROUP].to_numpy(), table[MARKS].to_numpy()
            size = shape[0] * self._search.cells.units[kind].height
            rows = [np.flatnonzero(group == each) for each in range(self.n_groups)]
            inside = [rows[g][(marks[rows[g]] >> bit) & 1 == 1] for g, bit in zip(groups, bits, strict=True)]
            for found, some in ((own, inside), (whole, rows)):
                found.append({})
                for name in (each.name for each in self._encoded.statistics[kind]):
                    values = table[name].to_numpy()
                    sums = [np.bincount(piece[each], values[each], size).reshape(shape) for each in some]
                    found[-1][name] = np.array(sums).astype(np.float64 if values.dtype.kind == "f" else np.int64)
        return own, whole

    def _sides(self, tables: Tables, groups: Numbers, bits: Numbers) -> Sides:
        """Both sides of candidates, folded anew: each has a group of its own, with two cells."""
        copies = []
        for number, (group, bit) in enumerate(zip(groups, bits, strict=True)):
            keys = pl.lit(number, dtype=pl.Int64).alias(GROUP), has(bit).cast(pl.Int64).alias(CELL)
            copies.append({k: each.filter(pl.col(GROUP) == group).with_columns(keys) for k, each in tables.items()})
        kept = pl.DataFrame({GROUP: range(len(groups)), CELL: 1}, schema={GROUP: pl.Int64, CELL: pl.Int64})
        folded = self._encoded.folded(copies, [GROUP, CELL, WITHOUT])
        return sides_of(self._encoded, folded, kept, self._encoded.n_searched)


class Marks:
    """The bits of the candidates that rows are in."""

    def __init__(self, lattice: Lattice, candidates: pl.DataFrame) -> None:
        self._wanted: dict[int, list[tuple[int, dict[int, int]]]] = {}
        for place, bit in candidates.select(PLACE, BIT).iter_rows():
            group, codes = lattice.codes_of(place)
            self._wanted.setdefault(group, []).append((bit, codes))

    def of(self, table: pl.DataFrame) -> pl.DataFrame:
        """A table with the MARKS of its rows."""
        group, marks = table[GROUP].to_numpy(), np.zeros(table.height, dtype=np.int64)
        for each, wanted in self._wanted.items():
            rows = np.flatnonzero(group == each)
            columns = {i: table[code_column(i)].to_numpy()[rows] for i in {i for _, codes in wanted for i in codes}}
            own = np.zeros(len(rows), dtype=np.int64)
            for bit, codes in wanted:
                is_in = np.logical_and.reduce([columns[i] == code for i, code in codes.items()])
                np.bitwise_or(own, 1 << bit, out=own, where=is_in)
            marks[rows] = own
        return table.with_columns(pl.Series(MARKS, marks))


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
    aside, rows = np.zeros(members.n_groups, dtype=np.int64), []
    places: dict[int, dict[int, int]] = {group: {} for group in range(members.n_groups)}
    for _, turn in table.group_by(TURN, maintain_order=True):
        open_groups = [group for group, above in places.items() if len(above) < k]
        slices = turn.filter(pl.col(GROUP).is_in(open_groups))
        sure = _with_gap(members, slices, aside)
        for group, place, bit, t in slices.select(GROUP, PLACE, BIT, "t_search").iter_rows():
            own, above = members.rows_of(group, bit), places[group]
            in_shown = own.filter(~is_left(aside))[N_ROWS].sum()
            row = {PLACE: place, "hidden_by": None, "n_in_shown": in_shown, "n_in_search": own[N_ROWS].sum()}
            if group in sure:
                above[bit] = place
            elif not (in_shown and (t or 0) > ENOUGH):
                continue
            else:
                counts = {other: own.filter(has(bit_of))[N_ROWS].sum() for bit_of, other in above.items()}
                row["hidden_by"] = max(counts, key=lambda other: counts[other])
            rows.append(row)
        for group in sure:
            aside[group] = sum(1 << bit for bit in places[group])
    columns = dict.fromkeys((PLACE, "hidden_by", "n_in_shown", "n_in_search"), pl.Int64)
    kept = table.join(pl.DataFrame(rows, schema=columns, orient="row"), on=PLACE).sort(GROUP, TURN)
    return kept.with_columns(ratio(pl.col("n_in_shown"), pl.col("n_in_search")).fill_null(0.0).alias("overlap"))


def _with_gap(members: Members, slices: pl.DataFrame, aside: Numbers) -> set[int]:
    """The groups whose slice has a gap of its own, without the rows of those that are shown."""
    keys = slices.select(GROUP, BIT).iter_rows()
    n_buckets = [members.rows_of(*key).filter(is_left(aside))[WITHOUT].n_unique() for key in keys]
    slices = slices.filter(pl.Series(n_buckets, dtype=pl.Int64) >= FEW_BUCKETS)
    if not slices.height:
        return set()
    return set(members.contrasts(slices, aside).filter(pl.col("t") > ENOUGH)[GROUP])
