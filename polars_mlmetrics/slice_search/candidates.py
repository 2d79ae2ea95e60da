"""Candidates: the slices that a search chose, confirmed on other samples, and those that only repeat another."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from polars_mlmetrics.data.expressions import all_of
from polars_mlmetrics.engine.replicates import WITHOUT
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.intervals.intervals import FEW_BUCKETS
from polars_mlmetrics.slice_search.coded import CLUSTER, GROUP, N_ROWS, N_SAMPLES, Chunk, Coded, Wanted, code_column
from polars_mlmetrics.slice_search.contrasts import CELL, CONTRAST, Contrasts, Numbers
from polars_mlmetrics.slice_search.lattice import BUCKET, PLACE, Lattice
from polars_mlmetrics.slice_search.merged import Merged, t_of
from polars_mlmetrics.slice_search.search import SearchPart, SliceSearch, rows_by_bucket, whole_of, zeros

MARKS, BIT = f"{INTERNAL}marks", f"{INTERNAL}bit"
"""The slices that a row is in: a bit each, of the slices of its own group."""

SHARE = f"{INTERNAL}largest_share"

ROUNDS, EACH = 5, 4
"""How often slices are searched, and how many are taken each time."""

SURE = f"{INTERNAL}sure"
"""The t of a slice, rounded: slices of the same rows are in one order, however their rows were summed."""

TURN, N_TESTED = f"{INTERNAL}turn", f"{INTERNAL}n_tested"

ENOUGH = 2.0
"""So many standard errors a gap must have without the rows of the slices that are shown, to be shown itself."""

PARENT = f"{INTERNAL}parent"


def is_in(lattice: Lattice, slices: pl.DataFrame) -> pl.Expr:
    """Whether a row is in the slice of its group; at most one slice a group."""
    asked: list[dict[int, int]] = [{-1: -1}] * lattice.n_groups
    for place in slices[PLACE]:
        number, codes = lattice.codes_of(place)
        asked[number] = codes
    if not slices.height:
        return pl.lit(False)
    if lattice.n_groups == 1:
        return pl.all_horizontal(pl.col(code_column(place)) == code for place, code in asked[0].items())
    group = pl.col(GROUP)
    conditions = [pl.lit(pl.Series([-1 not in codes for codes in asked])).gather(group)]
    for feature in {feature for codes in asked for feature in codes if feature >= 0}:
        wanted = pl.Series([codes.get(feature) for codes in asked], dtype=pl.Int32)
        code = pl.lit(wanted).gather(group)
        conditions.append(code.is_null() | (code == pl.col(code_column(feature))))
    return pl.all_horizontal(conditions)


def hint_of(lattice: Lattice, slices: pl.DataFrame) -> pl.Expr | None:
    """The condition on columns of a log that the first slice is; None of several groups, and without slices."""
    if lattice.n_groups > 1 or not slices.height:
        return None
    _, codes = lattice.codes_of(slices[PLACE][0])
    return all_of([lattice.coded.features[place].conditions[code].holds() for place, code in codes.items()])


def marks_of(lattice: Lattice, slices: pl.DataFrame) -> pl.Expr:
    """The bits of the slices that a row is in. Each slice has a BIT, and is the only one of its group that has it."""
    by_bit = slices.partition_by(BIT, as_dict=True)
    bits = [pl.when(is_in(lattice, some)).then(2 ** int(str(bit))).otherwise(0) for (bit,), some in by_bit.items()]
    return pl.sum_horizontal(bits).cast(pl.Int64).alias(MARKS)


def has(bit: int) -> pl.Expr:
    """Whether a row is in the slice of this bit."""
    return (pl.col(MARKS) & pl.lit(2**bit, dtype=pl.Int64)) != 0


class Marked:
    """The rows of a part, folded by the slices that they are in."""

    def __init__(self, lattice: Lattice, part: SearchPart, marks: pl.Expr, bits: Sequence[int]) -> None:
        self._lattice = lattice
        self._part = part
        self._marks = marks
        self._bits = bits
        self._sizes: list[pl.DataFrame] = []
        self._clusters: list[pl.DataFrame] = []
        self._folded: Chunk | None = None

    def add(self, chunk: Chunk) -> None:
        """Take in those of some rows that are of the part."""
        chunk = self._part.of(chunk).each(lambda frame: frame.with_columns(self._marks))
        self._sizes += [self._sizes_in(chunk, bit) for bit in self._bits]
        if chunk.clusters is not None:
            clusters = [chunk.clusters.filter(has(bit)).select(GROUP, _number(bit), CLUSTER) for bit in self._bits]
            self._clusters = [pl.concat([*self._clusters, *clusters]).unique()]
        of_counts = chunk.counts.group_by(GROUP, BUCKET, MARKS).agg(pl.col(N_ROWS).sum())
        layouts, keys = self._lattice.coded.layouts, [GROUP, BUCKET, MARKS]
        tables = {kind: layouts[kind].folded([table], keys) for kind, table in chunk.tables.items()}
        if self._folded is not None:
            of_counts = pl.concat([self._folded.counts, of_counts]).group_by(GROUP, BUCKET, MARKS).sum()
            known = self._folded.tables
            tables = {kind: layouts[kind].folded([known[kind], table], keys) for kind, table in tables.items()}
        self._folded = Chunk(of_counts, tables)

    @property
    def counts(self) -> pl.DataFrame:
        """How many rows there are in the same slices."""
        return self._whole.counts

    @property
    def _whole(self) -> Chunk:
        assert self._folded is not None
        return self._folded

    def contrasts(
        self, contrasts: Contrasts, merged: Merged, slices: pl.DataFrame, aside: pl.Expr | None = None
    ) -> pl.DataFrame:
        """Measure slices, by GROUP and BIT, without the rows set aside."""
        rows = self._whole if aside is None else self._whole.filter(~aside)
        if not self._lattice.coded.is_of_sums:
            return self._merged(merged, rows, slices)
        groups, bits = slices[GROUP].to_numpy(), slices[BIT].to_numpy()
        own = zeros(self._lattice, slices.height)
        for bit in np.unique(bits):
            of_bit = whole_of(self._lattice, rows.filter(has(int(bit)))).of(groups[bits == bit])
            for sums, more in zip(own.sums, of_bit.sums, strict=True):
                for name, array in more.items():
                    sums[name][bits == bit] = array
        buckets = (rows_by_bucket(self._lattice, rows) > 0).sum(axis=1)
        again = partial(self._merged, merged, rows)
        table = contrasts.of(slices, own, whole_of(self._lattice, rows), groups, buckets, again)
        return in_order_of(slices, table).select(*slices.columns, *CONTRAST)

    def _merged(self, merged: Merged, rows: Chunk, slices: pl.DataFrame) -> pl.DataFrame:
        """The same, put together from the other parts."""
        found = []
        for bit in slices[BIT].unique():
            columns = [has(bit).cast(pl.Int64).alias(CELL), pl.col(BUCKET).alias(WITHOUT)]
            tables = {kind: table.with_columns(columns) for kind, table in rows.tables.items()}
            some = slices.filter(pl.col(BIT) == bit)
            kept = some.select(GROUP, pl.lit(1, dtype=pl.Int64).alias(CELL))
            said = merged.of(merged.added({}, tables, kept), kept).drop(CELL)
            found.append(some.join(said, on=GROUP))
        return in_order_of(slices, pl.concat(found)).select(*slices.columns, *CONTRAST)

    def sizes(self) -> pl.DataFrame:
        """How many buckets, samples, rows and clusters a slice has, and the largest share of its rows in one bucket."""
        by_bucket = pl.concat(self._sizes).group_by(GROUP, BIT, BUCKET).agg(pl.col(N_SAMPLES, N_ROWS).sum())
        share = ratio(pl.col(N_ROWS).max(), pl.col(N_ROWS).sum()).alias(SHARE)
        n_buckets = pl.len().cast(pl.Int64).alias("n_buckets")
        sizes = by_bucket.group_by(GROUP, BIT).agg(n_buckets, pl.col(N_SAMPLES, N_ROWS).sum(), share)
        if not self._clusters:
            return sizes.with_columns(pl.col(N_SAMPLES).alias("n_clusters"))
        clusters = self._clusters[0].group_by(GROUP, BIT).agg(pl.len().cast(pl.Int64).alias("n_clusters"))
        return sizes.join(clusters, on=[GROUP, BIT], how="left")

    def _sizes_in(self, chunk: Chunk, bit: int) -> pl.DataFrame:
        """How many rows and samples of a slice each bucket has."""
        rows = chunk.counts.filter(has(bit)).group_by(GROUP, BUCKET).agg(pl.col(N_ROWS).sum(), chunk.samples())
        return rows.with_columns(_number(bit))


def _number(bit: int) -> pl.Expr:
    return pl.lit(bit, dtype=pl.Int64).alias(BIT)


def in_order_of(slices: pl.DataFrame, table: pl.DataFrame) -> pl.DataFrame:
    """The table of slices, in their order."""
    return slices.select(GROUP, BIT).join(table, on=[GROUP, BIT], how="left", maintain_order="left")


class Candidates:
    """The slices that a search chose, in the order of how sure all samples together are of them."""

    def __init__(self, coded: Coded, places: list[int], depth: int, sign: int, min_samples: Numbers) -> None:
        self._coded = coded
        buckets = coded.totals.rows.shape[1]
        even, odd = list(range(0, buckets, 2)), list(range(1, buckets, 2))
        self.lattice = Lattice(coded, places, depth, len(even))
        self._contrasts, self._merged = coded.contrasts(sign), Merged(coded, sign, len(even))
        self._first, self._second = SearchPart(coded, even), SearchPart(coded, odd)
        self._least = min_samples
        self._search = SliceSearch(self.lattice, self._first, self._contrasts, self._merged, min_samples * 0.5)
        self.scores = self._search.scores
        self.said = (
            f"{len(self.lattice.combinations)} combinations of features; searched in {len(even)} of "
            f"{buckets} buckets, measured in the others"
        )
        """How it was searched, in words."""
        self._known = dict(self.scores.filter(pl.col("t").is_not_null()).select(PLACE, "t").iter_rows())

    def table(self) -> pl.DataFrame:
        """One row a candidate, by group and turn, with what the confirm half says of it."""
        taken = self._taken()
        tested = self.scores.group_by(GROUP).agg(pl.len().cast(pl.Int64).alias(N_TESTED))
        if not taken.height:
            return taken.with_columns(pl.lit(0, dtype=pl.Int64).alias(TURN))
        said = self._confirmed(taken).join(tested, on=GROUP)
        gap = pl.col("gap") + pl.col("gap_of_search")
        said = said.with_columns(t_of(gap, (pl.col("se") ** 2 + pl.col("se_of_search") ** 2).sqrt()).alias("t"))
        ordered = _rounded(said).sort([GROUP, SURE, PLACE], descending=[False, True, False], nulls_last=True)
        return ordered.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).over(GROUP).alias(TURN))

    def _taken(self) -> pl.DataFrame:
        """The candidates: some of each round. Then the rows of the worst are set aside, and all is searched again."""
        scores, taken = self.scores, self.scores.clear().select(PLACE)
        for turn in range(ROUNDS):
            fresh = _first(scores.filter(pl.col("t") > 0).join(taken, on=PLACE, how="anti"), EACH)
            if not fresh.height:
                break
            taken = pl.concat([taken, fresh.select(PLACE)])
            if turn + 1 < ROUNDS:
                worst = fresh.group_by(GROUP, maintain_order=True).first()
                scores = self._search.again(is_in(self.lattice, worst), hint_of(self.lattice, worst))
        return self._bitted(self.scores.join(taken, on=PLACE, how="semi"))

    def _bitted(self, scores: pl.DataFrame) -> pl.DataFrame:
        """The candidates, with a bit each, and a bit for the parent of each."""
        ordered = _rounded(scores).sort([GROUP, SURE, PLACE], descending=[False, True, False])
        bit = pl.int_range(pl.len(), dtype=pl.Int64).over(GROUP).alias(BIT)
        parents = pl.Series(PARENT, [self._parent(place) for place in ordered[PLACE]], dtype=pl.Int64)
        of_search = pl.col("gap", "se", "t").name.suffix("_of_search")
        return ordered.select(PLACE, GROUP, of_search).with_columns(bit, parents)

    def _parent(self, place: int) -> int | None:
        """The slice with one condition less of which the search is surest."""
        group, codes = self.lattice.codes_of(place)
        if len(codes) < 2:
            return None
        parents = [self.lattice.place_of(group, {f: c for f, c in codes.items() if f != left}) for left in codes]
        return max(parents, key=lambda parent: self._known.get(parent, float("-inf")))

    def _confirmed(self, taken: pl.DataFrame) -> pl.DataFrame:
        """Measure the candidates and their parents on the other samples, and count these."""
        bits = sorted(taken[BIT].unique())
        parents = taken.filter(pl.col(PARENT).is_not_null()).select(GROUP, pl.col(PARENT).alias(PLACE)).unique()
        parents = parents.sort(GROUP, PLACE).with_columns(
            (pl.int_range(pl.len(), dtype=pl.Int64).over(GROUP) + len(bits)).alias(BIT)
        )
        all_slices = pl.concat([taken.select(GROUP, PLACE, BIT), parents])
        halves = self._mark(marks_of(self.lattice, all_slices), bits)
        self._marked, second = halves
        said = second.contrasts(self._contrasts, self._merged, all_slices)
        sizes = second.sizes()
        confirm = sizes.select(GROUP, BIT, "n_buckets", SHARE, "n_clusters")
        whole = pl.concat([each.sizes().select(GROUP, BIT, N_SAMPLES, N_ROWS) for each in halves])
        whole = whole.group_by(GROUP, BIT).agg(pl.col(N_SAMPLES).sum().alias("n_samples"), pl.col(N_ROWS).sum())
        of_parents = said.select(pl.col(PLACE).alias(PARENT), pl.col("value").alias("parent_value")).unique(PARENT)
        found = taken.join(said.drop(PLACE), on=[GROUP, BIT]).join(confirm, on=[GROUP, BIT])
        found = found.join(whole, on=[GROUP, BIT]).join(of_parents, on=PARENT, how="left")
        return found.filter(self._is_large())

    def _is_large(self) -> pl.Expr:
        """Whether a slice, and the rest, have enough samples in all: the search asked for half of that in its half."""
        totals = self._coded.totals
        samples, rows, least = (
            pl.lit(pl.Series(of)).gather(pl.col(GROUP)) for of in (totals.samples, totals.rows.sum(axis=1), self._least)
        )
        rest = ratio(rows - pl.col(N_ROWS), rows) * samples
        return (pl.col("n_samples") >= least) & (rest >= least)

    def _mark(self, marks: pl.Expr, bits: Sequence[int]) -> list[Marked]:
        """The rows of the search, and those of the other samples, by the slices they are in."""
        halves = [Marked(self.lattice, part, marks, bits) for part in (self._first, self._second)]
        for chunk in self._coded.chunks(Wanted(samples=True, tables=True, clusters=True)):
            for half in halves:
                half.add(chunk)
        return halves

    def shown(self, table: pl.DataFrame, k: int) -> pl.DataFrame:
        """The candidates that are shown, k a group, with those that one of them hides (its place in `hidden_by`).

        The samples of the search decide it: else the intervals, of the others, would be of those that came out high.
        """
        kept: list[dict[str, Any]] = []
        masks: dict[int, int] = dict.fromkeys(range(self.lattice.n_groups), 0)
        places: dict[int, dict[int, int]] = {group: {} for group in masks}
        for turn in range(ROUNDS * EACH):
            full = [group for group, shown in places.items() if len(shown) >= k]
            asked = table.filter((pl.col(TURN) == turn) & ~pl.col(GROUP).is_in(full))
            if not asked.height:
                break
            aside = self._in_shown(masks)
            chosen = self._with_gap(asked, aside)
            overlaps = self._overlaps(asked, aside)
            for group, place, bit, t in asked.select(GROUP, PLACE, BIT, "t_of_search").iter_rows():
                row = {GROUP: group, PLACE: place, "hidden_by": None, "overlap": overlaps.get(group, 0.0)}
                if group in chosen:
                    kept.append(row)
                    masks[group] |= 2**bit
                    places[group][bit] = place
                elif (t or 0) > ENOUGH and (hidden_by := self._most_of(group, bit, places[group])) is not None:
                    kept.append({**row, "hidden_by": hidden_by})
        schema = {GROUP: pl.Int32, PLACE: pl.Int64, "hidden_by": pl.Int64, "overlap": pl.Float64}
        return table.join(pl.DataFrame(kept, schema=schema), on=[GROUP, PLACE]).sort(GROUP, TURN)

    def _in_shown(self, masks: dict[int, int]) -> pl.Expr:
        """Whether a row is in a slice of its group that is shown."""
        mask = pl.lit(pl.Series([*masks.values()], dtype=pl.Int64)).gather(pl.col(GROUP))
        return (pl.col(MARKS) & (mask if len(masks) > 1 else pl.lit(masks[0]))) != 0

    def _with_gap(self, asked: pl.DataFrame, aside: pl.Expr) -> set[int]:
        """The groups whose slice has a gap of its own, without the rows of those that are shown."""
        left = self._marked.counts.filter(~aside)
        bits = dict(asked.select(GROUP, BIT).iter_rows())
        of_group = pl.lit(
            pl.Series([2 ** bits[group] if group in bits else 0 for group in range(self.lattice.n_groups)])
        )
        is_member = (pl.col(MARKS) & of_group.gather(pl.col(GROUP))) != 0
        enough = left.filter(is_member).group_by(GROUP).agg(pl.col(BUCKET).n_unique().alias("n_buckets"))
        enough = enough.filter(pl.col("n_buckets") >= FEW_BUCKETS)
        slices = asked.join(enough, on=GROUP, how="semi").select(GROUP, BIT)
        if not slices.height:
            return set()
        said = self._marked.contrasts(self._contrasts, self._merged, slices, aside)
        return set(said.filter(t_of(pl.col("gap"), pl.col("se")) > ENOUGH)[GROUP])

    def _overlaps(self, asked: pl.DataFrame, aside: pl.Expr) -> dict[int, float]:
        """Which share of the rows of each group's slice lies in slices that are shown."""
        found: dict[int, float] = {}
        for bit in asked[BIT].unique():
            groups = asked.filter(pl.col(BIT) == bit)[GROUP]
            rows = self._marked.counts.filter(has(bit), pl.col(GROUP).is_in(groups.implode()))
            share = ratio(pl.col(N_ROWS).filter(aside).sum(), pl.col(N_ROWS).sum())
            found.update(rows.group_by(GROUP).agg(share).iter_rows())
        return found

    def _most_of(self, group: int, bit: int, shown: dict[int, int]) -> int | None:
        """The shown slice that has most rows of a slice of a group; None where none has any."""
        if not shown:
            return None
        rows = self._marked.counts.filter(pl.col(GROUP) == group, has(bit))
        counts = rows.select(pl.col(N_ROWS).filter(has(other)).sum().alias(str(other)) for other in shown).row(0)
        count, place = max(zip(counts, shown.values(), strict=True), key=lambda pair: int(pair[0]))
        return place if count else None


def _first(scores: pl.DataFrame, count: int) -> pl.DataFrame:
    """The surest slices of each group."""
    ordered = _rounded(scores).sort([GROUP, SURE, PLACE], descending=[False, True, False])
    return ordered.group_by(GROUP, maintain_order=True).head(count)


def _rounded(scores: pl.DataFrame) -> pl.DataFrame:
    t = pl.col("t")
    return scores.with_columns(pl.when(t.is_finite()).then(t.round_sig_figs(9)).otherwise(t).alias(SURE))
