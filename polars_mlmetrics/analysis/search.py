"""The search: every slice of some buckets, scored; and scored again without the rows that are set aside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import polars as pl

from polars_mlmetrics.analysis.coded import GROUP, N_ROWS, N_SAMPLES, SAMPLE, Coded
from polars_mlmetrics.analysis.contrasts import CELL, UNIT, Contrasts, Grid, Kind
from polars_mlmetrics.analysis.intervals import FEW_BUCKETS
from polars_mlmetrics.analysis.lattice import BUCKET, PLACE, Lattice, counted
from polars_mlmetrics.analysis.merged import Merged, t_of
from polars_mlmetrics.engine.packing import place_in
from polars_mlmetrics.engine.replicates import WITHOUT
from polars_mlmetrics.errors import INTERNAL, ParameterError
from polars_mlmetrics.formula.arithmetic import ratio

if TYPE_CHECKING:
    from polars_mlmetrics.analysis.contrasts import Numbers

Score = Literal["gap", "sliceline"]

ALPHA = 0.6
"""How much SliceLine's score heeds the error of a slice, beside its size: what its authors take."""

MOST_SUMS = 60_000_000
"""How many sums of slices, buckets and units are held at once."""

SCORES: dict[str, pl.DataType] = {
    PLACE: pl.Int64(),
    GROUP: pl.Int32(),
    "n_buckets": pl.Int64(),
    "n_samples": pl.Int64(),
    **dict.fromkeys(("value", "rest", "gap", "se", "t", "score"), pl.Float64()),
}
"""What is known of a slice in some rows."""

WHOLE, ROWS_OF_WHOLE = f"{INTERNAL}whole", f"{INTERNAL}rows_of_whole"


@dataclass
class Part:
    """The rows of some buckets, as they are searched."""

    counts: pl.DataFrame
    told: dict[Kind, pl.DataFrame]

    @classmethod
    def of(cls, coded: Coded, buckets: list[int], *, are_half: bool) -> Part:
        """The rows of these buckets, numbered from 0: of every second one, or of all."""
        bucket = place_in(pl.col(WITHOUT), 2, 2**20) if are_half else pl.col(WITHOUT)

        def some(frame: pl.DataFrame) -> pl.DataFrame:
            frame = frame.filter(pl.col(WITHOUT).is_in(buckets)) if are_half else frame
            return frame.with_columns(bucket.alias(BUCKET))

        return cls(some(coded.counts), {kind: some(told.frame) for kind, told in coded.told.items()})

    def filter(self, condition: pl.Expr) -> Part:
        """Some of the rows."""
        return Part(self.counts.filter(condition), {kind: frame.filter(condition) for kind, frame in self.told.items()})

    @property
    def sums_of_counts(self) -> list[pl.Expr]:
        """How many rows and samples there are."""
        samples = pl.col(SAMPLE).drop_nulls().n_unique() if SAMPLE in self.counts.columns else pl.col(N_SAMPLES).sum()
        return [pl.col(N_ROWS).sum(), samples.cast(pl.Int64).alias(N_SAMPLES)]


class Search:
    """The slices of a part of the log. `least` is how many samples a slice must have, by group."""

    def __init__(
        self, lattice: Lattice, part: Part, contrasts: Contrasts, merged: Merged, least: pl.Series, score: Score,
        best: float,
    ) -> None:  # fmt: skip
        self._lattice = lattice
        self._part = part
        self._contrasts = contrasts
        self._merged = merged
        self._least = least
        self._score = score
        self._best = best
        self._own = Grid([])
        self._is_of_sums = all(told.is_of_sums for told in lattice.coded.told.values())
        self.moved: Numbers | None = None
        """How far each bucket moves the gaps of all slices; none of what is put together from other parts."""
        self._places, self._counts = self._counted()
        slices = self._large()
        self._keep(slices[PLACE].to_numpy())
        self._check_size()
        self._own = self._grid(part)
        self.scores = self._scored(slices)
        """Every slice that was searched."""
        is_bad = (self.scores["t"] > 0).fill_null(False) if score == "gap" else self.scores["score"] > 0
        self._keep(self.scores.filter(is_bad)[PLACE].to_numpy())

    def again(self, aside: pl.Expr) -> pl.DataFrame:
        """The slices that are worse than the rest, scored without these rows."""
        head, self._part = self._part.filter(aside), self._part.filter(~aside)
        if self._is_of_sums:
            self._own = self._own - self._grid(head)
        if SAMPLE in self._part.counts.columns:
            places, counts = self._counted()
            self._counts = _at(places, counts, self._places)
        else:
            self._counts = self._counts - self._grid_of_counts(head)
        return self._scored(self._large())

    def _keep(self, places: Numbers) -> None:
        import numpy as np

        is_kept = np.isin(self._places, places)
        self._own, self._counts, self._places = self._own.of(is_kept), self._counts[is_kept], self._places[is_kept]

    def _check_size(self) -> None:
        units = sum(max(1, told.units.height) * len(told.statistics) for told in self._lattice.coded.told.values())
        size = len(self._places) * self._lattice.buckets * units
        if size > MOST_SUMS:
            raise ParameterError(
                f"{len(self._places):,} slices have {size:,} sums by bucket and label, which is too many: look at "
                "fewer features, or pass a smaller depth= or a larger min_samples=."
            )

    def _counted(self) -> tuple[Numbers, Numbers]:
        """The slices that have rows, and how many rows and samples each has in each bucket."""
        import numpy as np

        part, lattice = self._part, self._lattice
        numbers, sums = lattice.folded(part.counts, [N_ROWS, *([] if SAMPLE in part.counts.columns else [N_SAMPLES])])
        if N_SAMPLES not in sums:
            sums[N_SAMPLES] = self._samples(numbers)
        place, _ = np.divmod(numbers, lattice.buckets)
        places = np.unique(place)
        dense = _dense(numbers, sums, places, lattice.buckets, 1)
        return places, np.stack([dense[N_ROWS][:, :, 0], dense[N_SAMPLES][:, :, 0]], axis=1)

    def _samples(self, numbers: Numbers) -> Numbers:
        """How many samples there are in cells and buckets, where a sample may be in several."""
        found = []
        for each in self._lattice.combinations:
            number = each.cell(self._lattice.n_groups) * self._lattice.buckets + pl.col(BUCKET)
            counts = self._part.counts.lazy().group_by(number.alias(PLACE)).agg(pl.col(SAMPLE).drop_nulls().n_unique())
            found.append(counts)
        table = pl.DataFrame({PLACE: numbers}).lazy().join(pl.concat(found), on=PLACE, how="left").collect()
        return table[SAMPLE].fill_null(0).cast(pl.Int64).to_numpy()

    def _large(self) -> pl.DataFrame:
        """The slices that have enough samples, as has the rest."""
        counted = {
            PLACE: self._places,
            N_ROWS: self._counts[:, 0].sum(axis=1),
            N_SAMPLES: self._counts[:, 1].sum(axis=1),
        }
        slices = pl.DataFrame({**counted, "n_buckets": (self._counts[:, 0] > 0).sum(axis=1)})
        slices = slices.with_columns(place_in(pl.col(PLACE), 1, self._lattice.n_groups).cast(pl.Int32).alias(GROUP))
        whole = self._part.counts.group_by(GROUP).agg(self._part.sums_of_counts)
        slices = slices.join(whole.rename({N_SAMPLES: WHOLE, N_ROWS: ROWS_OF_WHOLE}), on=GROUP, maintain_order="left")
        # A sample may have rows in a slice and in the rest: rows are what can be taken off.
        rows, of_whole = pl.col(N_ROWS), pl.col(ROWS_OF_WHOLE)
        rest = ratio(of_whole - rows, of_whole) * pl.col(WHOLE)
        least = pl.lit(self._least).gather(pl.col(GROUP))
        if self._score == "sliceline":
            return slices.filter(pl.col(N_SAMPLES) >= least, rest > 0)
        is_large = pl.min_horizontal(pl.col(N_SAMPLES), rest) >= least
        return slices.filter(is_large, pl.col("n_buckets") >= FEW_BUCKETS)

    def _grid(self, part: Part) -> Grid:
        """The sums of the slices in some rows."""
        if not self._is_of_sums:
            return Grid([])
        found = []
        for kind, frame in part.told.items():
            told = self._lattice.coded.told[kind]
            units = max(1, told.units.height)
            numbers, sums = self._lattice.folded(frame, [each.name for each in told.statistics], units)
            found.append(_dense(numbers, sums, self._places, self._lattice.buckets, units))
        return Grid(found)

    def _grid_of_counts(self, part: Part) -> Numbers:
        import numpy as np

        numbers, sums = self._lattice.folded(part.counts, [N_ROWS, N_SAMPLES])
        dense = _dense(numbers, sums, self._places, self._lattice.buckets, 1)
        return np.stack([dense[N_ROWS][:, :, 0], dense[N_SAMPLES][:, :, 0]], axis=1)

    def _scored(self, slices: pl.DataFrame) -> pl.DataFrame:
        import numpy as np

        if not slices.height:
            return pl.DataFrame(schema=SCORES)
        if not self._is_of_sums:
            said = self._of_merged(slices)
        else:
            at = np.searchsorted(self._places, slices[PLACE].to_numpy())
            whole, buckets = whole_of(self._part, self._lattice)
            found = self._contrasts.of(self._own.of(at), whole, slices[GROUP].to_numpy(), buckets)
            said = slices.hstack(found.table)
            self.moved = found.moved if self.moved is None else self.moved
            if not found.is_right.all():
                lost = pl.Series(~found.is_right)
                said = pl.concat([said.filter(~lost), self._of_merged(slices.filter(lost)).select(said.columns)])
        said = said.with_columns(t_of(pl.col("gap"), pl.col("se")).alias("t"), pl.col(N_SAMPLES).alias("n_samples"))
        return said.with_columns(self._scores().alias("score")).select(*SCORES).cast(pl.Schema(SCORES)).sort(PLACE)

    def _scores(self) -> pl.Expr:
        """What slices are ranked by."""
        if self._score == "gap":
            return pl.col("t")
        error = (pl.col("value") - self._best).abs()
        # The mean of the group is the one of its two parts.
        size = ratio(pl.col(N_SAMPLES), pl.col(WHOLE))
        of_all = size * error + (1 - size) * (pl.col("rest") - self._best).abs()
        return ALPHA * (ratio(error, of_all) - 1) - (1 - ALPHA) * (ratio(pl.col(WHOLE), pl.col(N_SAMPLES)) - 1)

    def _of_merged(self, slices: pl.DataFrame) -> pl.DataFrame:
        """What slices are, from the other parts put together."""
        found = []
        starts = pl.Series([each.start for each in self._lattice.combinations])
        number = starts.search_sorted(slices[PLACE], side="right") - 1
        for (at,), some in slices.with_columns(number.alias(CELL)).group_by(CELL, maintain_order=True):
            cell = self._lattice.combinations[int(str(at))].cell(self._lattice.n_groups).alias(CELL)
            frames = {kind: frame.with_columns(cell) for kind, frame in self._part.told.items()}
            said = self._merged.of(frames, some.select(GROUP, pl.col(PLACE).alias(CELL)))
            found.append(some.drop(CELL).join(said.rename({CELL: PLACE}), on=[GROUP, PLACE]))
        return pl.concat(found)


def whole_of(part: Part, lattice: Lattice) -> tuple[Grid, Numbers]:
    """The sums of whole groups, and how many buckets have rows in each."""
    import numpy as np

    found = []
    for kind, frame in part.told.items():
        told = lattice.coded.told[kind]
        units = max(1, told.units.height)
        number = frame[GROUP].to_numpy().astype(np.int64) * lattice.buckets + frame[BUCKET].to_numpy()
        number = number * units + frame[UNIT].to_numpy() if units > 1 else number
        height, sums = lattice.n_groups * lattice.buckets * units, {}
        for each in told.statistics:
            summed = counted(number, frame[each.name].to_numpy(), height)
            sums[each.name] = summed.reshape(lattice.n_groups, lattice.buckets, units)
        found.append(sums)
    counts = part.counts.group_by(GROUP).agg(pl.col(BUCKET).n_unique().alias(WHOLE))
    buckets = np.zeros(lattice.n_groups, dtype=np.int64)
    buckets[counts[GROUP].to_numpy()] = counts[WHOLE].to_numpy()
    return Grid(found), buckets


def _dense(
    numbers: Numbers, sums: Mapping[str, Numbers], places: Numbers, buckets: int, units: int
) -> dict[str, Numbers]:
    """Sums by the numbers of slices, buckets and units as arrays, of some slices."""
    import numpy as np

    size = buckets * units
    place, more = np.divmod(numbers, size)
    at = np.searchsorted(places, place).clip(max=max(len(places) - 1, 0))
    is_asked = places[at] == place if len(places) else np.zeros(len(place), dtype=bool)
    at = (at * size + more)[is_asked]
    found: dict[str, Numbers] = {}
    for name, column in sums.items():
        array = np.zeros(len(places) * size, dtype=column.dtype)
        array[at] = column[is_asked]
        found[name] = array.reshape(len(places), buckets, units)
    return found


def _at(places: Numbers, counts: Numbers, asked: Numbers) -> Numbers:
    """The counts of the slices that are asked for; 0 where one has no rows any more."""
    import numpy as np

    found = np.zeros((len(asked), *counts.shape[1:]), dtype=counts.dtype)
    is_there = np.isin(asked, places)
    found[is_there] = counts[np.searchsorted(places, asked[is_there])]
    return found
