"""Candidates: the slices that a search chose, confirmed on other samples, and those that only repeat another."""

from __future__ import annotations

from typing import Any

import polars as pl

from polars_mlmetrics.analysis.intervals import FEW_BUCKETS
from polars_mlmetrics.analysis.lattice import CELL, COMBINATION, GROUP, SCORES, Lattice, code_column, counts_of, t_of
from polars_mlmetrics.engine.replicates import WITHOUT
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.query.buckets import BUCKETS

ROUNDS, EACH = 5, 4
"""How often slices are searched, and how many are taken each time."""

KEY = [GROUP, COMBINATION, CELL]
SURE = f"{INTERNAL}sure"
"""The t of a slice, rounded: slices of the same rows are in one order, however their rows were summed."""

ORDER = [SURE, COMBINATION, CELL]
PLACE, ASIDE, MEMBER, N_TESTED, SHARE = (
    f"{INTERNAL}{name}" for name in ("place", "aside", "member", "n_tested", "largest_share")
)
ENOUGH = 2.0
"""So many standard errors a gap must have without the rows of the slices that are shown, to be shown itself."""


class Candidates:
    """The slices that a search on half of the samples chose, in the order of how sure both halves are of them."""

    def __init__(self, lattice: Lattice) -> None:
        self._lattice = lattice
        is_even = pl.col(WITHOUT).is_in(range(0, BUCKETS, 2))
        self._first, self._second = lattice.rows.filter(is_even), lattice.rows.filter(~is_even)
        self.scores = lattice.search(self._first)
        """Every slice that was searched."""

    def table(self) -> pl.DataFrame:
        """One row a candidate, by group and place, with what the confirm half says of it."""
        taken = self._taken()
        of_search = taken.select(*KEY, pl.col("gap", "se", "t").name.suffix("_of_search"))
        confirmed = self._confirmed(taken).join(of_search, on=KEY)
        gap = pl.col("gap") + pl.col("gap_of_search")
        error = (pl.col("se") ** 2 + pl.col("se_of_search") ** 2).sqrt()
        tested = self.scores.group_by(GROUP).agg(pl.len().cast(pl.Int64).alias(N_TESTED))
        confirmed = _rounded(confirmed.with_columns(t_of(gap, error).alias("t"))).join(tested, on=GROUP)
        ordered = confirmed.sort([GROUP, *ORDER], descending=[False, True, False, False], nulls_last=True)
        return ordered.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).over(GROUP).alias(PLACE))

    def _taken(self) -> pl.DataFrame:
        """The candidates: some of each round. Then the rows of the worst are set aside, and all is searched again."""
        rows, scores = self._first, self.scores
        taken = scores.clear()
        for turn in range(ROUNDS):
            fresh = _rounded(scores.filter(pl.col("t") > 0)).join(taken, on=KEY, how="anti")
            fresh = fresh.sort(ORDER, descending=[True, False, False]).group_by(GROUP, maintain_order=True).head(EACH)
            of_all = fresh.select(KEY).join(self.scores.filter(pl.col("t") > 0), on=KEY)
            if not of_all.height:
                break
            taken = pl.concat([taken, of_all.select(taken.columns)])
            if turn + 1 < ROUNDS:
                worst = fresh.group_by(GROUP, maintain_order=True).first()
                rows = rows.filter(~self._is_in(worst))
                scores = self._lattice.search(rows)
        return taken

    def _confirmed(self, taken: pl.DataFrame) -> pl.DataFrame:
        """What the other samples say of the candidates, and how large these are."""
        found = [pl.DataFrame(schema=SCORES)]
        sizes = [pl.DataFrame(schema=dict.fromkeys((*KEY, "n_samples", "n_rows"), pl.Int64) | {SHARE: pl.Float64})]
        for (place,), part in taken.group_by(COMBINATION, maintain_order=True):
            named = pl.lit(place, dtype=pl.Int64).alias(COMBINATION)
            cell, cells = self._lattice.cell(place).alias(CELL), part.select(GROUP, CELL)
            rows = self._second.with_columns(cell).join(cells, on=[GROUP, CELL], how="semi")
            per_bucket = rows.group_by(GROUP, CELL, WITHOUT).len()
            share = ratio(pl.col("len").max(), pl.col("len").sum()).alias(SHARE)
            kept = counts_of(rows, [GROUP, CELL]).select(GROUP, CELL, "n_buckets")
            if kept.height:
                differences = self._lattice.differences(self._second.with_columns(cell), kept)
                found.append(differences.with_columns(named).select(*SCORES))
            whole = self._lattice.rows.with_columns(cell).join(cells, on=[GROUP, CELL], how="semi")
            size = counts_of(whole, [GROUP, CELL]).join(per_bucket.group_by(GROUP, CELL).agg(share), on=[GROUP, CELL])
            sizes.append(size.with_columns(named).select(sizes[0].columns))
        return pl.concat(found).join(pl.concat(sizes), on=KEY)

    def _is_in(self, slices: pl.DataFrame) -> pl.Expr:
        """Whether a row is in the slice of its group; at most one slice a group."""
        height = self._lattice.n_groups
        asked: list[dict[int, int]] = [{-1: -1}] * height
        for group, combination, cell in slices.select(KEY).iter_rows():
            asked[group] = self._lattice.codes_of(combination, cell)
        group = pl.col(GROUP)
        has_slice = pl.lit(pl.Series([-1 not in codes for codes in asked])).gather(group)
        conditions = [has_slice]
        for place in {place for codes in asked for place in codes if place >= 0}:
            code = pl.lit(pl.Series([codes.get(place) for codes in asked], dtype=pl.Int64)).gather(group)
            conditions.append(code.is_null() | (code == pl.col(code_column(place))))
        return pl.all_horizontal(conditions)

    def shown(self, table: pl.DataFrame, k: int) -> pl.DataFrame:
        """The candidates that are shown, k a group, with those that one of them hides (its place in `hidden_by`).

        The samples of the search decide it: else the intervals, of the others, would be of those that came out high.
        """
        rows = self._first.with_columns(pl.lit(False).alias(ASIDE))
        places: dict[int, list[int]] = {}
        kept: list[dict[str, Any]] = []
        for place in range(ROUNDS * EACH):
            full = [group for group, shown in places.items() if len(shown) >= k]
            turn = table.filter((pl.col(PLACE) == place) & ~pl.col(GROUP).is_in(full))
            if not turn.height:
                break
            rows = rows.with_columns(self._is_in(turn).alias(MEMBER))
            chosen = self._with_gap(rows)
            overlaps = self._overlaps(rows, [p for shown in places.values() for p in shown])
            for group, t in turn.select(GROUP, "t_of_search").iter_rows():
                if group in chosen:
                    places.setdefault(group, []).append(place)
                    kept.append({GROUP: group, PLACE: place, "hidden_by": None})
                elif t > ENOUGH and overlaps.get(group) is not None:
                    kept.append({GROUP: group, PLACE: place, "hidden_by": overlaps[group]})
            now = pl.col(MEMBER) & pl.col(GROUP).is_in(sorted(chosen))
            rows = rows.with_columns(now.alias(_in(place)), (pl.col(ASIDE) | now).alias(ASIDE))
        schema = {GROUP: pl.Int64, PLACE: pl.Int64, "hidden_by": pl.Int64}
        return table.join(pl.DataFrame(kept, schema=schema), on=[GROUP, PLACE]).sort(GROUP, PLACE)

    def _with_gap(self, rows: pl.DataFrame) -> set[int]:
        """The groups whose slice has a gap of its own, without the rows of those that are shown."""
        left = rows.filter(~pl.col(ASIDE)).with_columns(pl.col(MEMBER).cast(pl.Int64).alias(CELL))
        counts = counts_of(left.filter(MEMBER), [GROUP, CELL]).filter(pl.col("n_buckets") >= FEW_BUCKETS)
        if not counts.height:
            return set()
        gaps = self._lattice.differences(left, counts.select(GROUP, CELL, "n_buckets"))
        return set(gaps.filter(t_of(pl.col("gap"), pl.col("se")) > ENOUGH)[GROUP])

    def _overlaps(self, rows: pl.DataFrame, shown: list[int]) -> dict[int, int]:
        """The shown slice, by its place, that has most rows of the slice of each group."""
        columns = sorted(set(shown))
        if not columns:
            return {}
        counts = rows.filter(MEMBER).group_by(GROUP).agg(pl.col(_in(place)).sum() for place in columns)
        most = ((row[0], max(zip(row[1:], columns, strict=True), key=lambda pair: pair[0])) for row in counts.rows())
        return {group: place for group, (count, place) in most if count}


def _rounded(scores: pl.DataFrame) -> pl.DataFrame:
    t = pl.col("t")
    return scores.with_columns(pl.when(t.is_finite()).then(t.round_sig_figs(9)).otherwise(t).alias(SURE))


def _in(place: int) -> str:
    """The column that says whether a row is in a shown slice."""
    return f"{INTERNAL}in_{place}"
