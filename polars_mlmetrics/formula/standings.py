"""How a row stands in its unit: its rank by its score, its place, and what the rows of a tie share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal

import polars as pl

from polars_mlmetrics.data.door import Door
from polars_mlmetrics.data.roles import Grain
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.formula.chances import FEW
from polars_mlmetrics.formula.statistic import OfPlace, Reading, Share

Standing = Literal["rank", "above", "true_rank", "true_above"]
STANDS: dict[Standing, tuple[bool, bool]] = {
    "rank": (False, True),
    "above": (False, False),
    "true_rank": (True, True),
    "true_above": (True, False),
}
"""Whether a row is counted among the true rows alone, and whether the rows of its own tie are counted."""


class Standings(ABC):
    """Mixed into `Unit`, which says how a value of another unit comes back to the rows."""

    door: Door
    grain: Grain
    reads: set[Grain]
    looks_into: set[Grain]
    _reading: Reading
    _looks_at_any_label: bool

    @property
    @abstractmethod
    def score(self) -> pl.Expr: ...

    @property
    @abstractmethod
    def truth(self) -> pl.Expr: ...

    @property
    @abstractmethod
    def gain(self) -> pl.Expr: ...

    @abstractmethod
    def _of(self, grain: Grain, row: pl.Expr, *, any_label: bool = False) -> pl.Expr: ...

    @abstractmethod
    def _within(self, name: str, value: pl.Expr, grain: Grain) -> pl.Expr: ...

    @abstractmethod
    def _stands(self, name: str, value: pl.Expr, grain: Grain) -> pl.Expr: ...

    @property
    def rank(self) -> pl.Expr:
        """How many labels of the row's sample score at least as high."""
        return self.standing("rank")

    @property
    def above(self) -> pl.Expr:
        """How many labels of the row's sample score higher."""
        return self.standing("above")

    @property
    def true_rank(self) -> pl.Expr:
        """On a true row: how many true labels of its sample score at least as high."""
        return self.standing("true_rank")

    @property
    def true_above(self) -> pl.Expr:
        """On a true row: how many true labels of its sample score higher."""
        return self.standing("true_above")

    @property
    def trues_in_long_tie(self) -> pl.Expr:
        """How many true labels have the best score of any true label of the sample, on the labels of that score.

        It is null on other labels, and where few labels of that score are not true. A statistic of these rows alone is
        `pl.when(u.trues_in_long_tie.is_not_null()).then(...)`.
        """
        score, truth = self._of("sample", self.score), self._of("sample", self.truth)
        is_best = score == pl.when(truth).then(score).max()
        is_long = (is_best & ~truth).sum() >= FEW
        value = pl.when(is_best & is_long).then((is_best & truth).sum().cast(pl.Int64))
        return self._stands("trues_in_long_tie", value, "sample")

    @property
    def place_by_score(self) -> pl.Expr:
        """The place of a row in its sample by its score; of equal scores each has a place of its own, any."""
        return self._stands("place", self._ranked("sample", self.score, "ordinal"), "sample")

    @property
    def ideal_place(self) -> pl.Expr:
        """The place of a row in its sample by its grade; of equal grades each has a place of its own, any."""
        return self._stands("ideal_place", self._ranked("sample", self.gain, "ordinal"), "sample")

    def standing(self, name: Standing, grain: Grain = "sample") -> pl.Expr:
        """The rank of a row by its score among the rows, or the true rows, of its unit of a grain."""
        of_true, with_its_tie = STANDS[name]
        score = pl.when(self.truth).then(self.score) if of_true else self.score
        rank = self._ranked(grain, score, "max") if with_its_tie else self._ranked(grain, score, "min") - 1
        return self._stands(name, rank, grain)

    def rank_and_above(self, grain: Grain) -> pl.Expr:
        """How many rows of the row's unit score at least as high, and how many higher, added up."""
        mean_place = self._of(grain, -self.score).rank("average")  # Polars takes longer with descending=True
        return self._stands("rank_and_above", (2 * mean_place - 1).cast(pl.Int64), grain)

    def best_of_any_label(self) -> tuple[pl.Expr, pl.Expr]:
        """Whether a row has the best score of its sample among all labels, and how many labels of it have that."""
        any_label = self.door.labels is not None
        if self.grain == "sample" and not any_label:
            # The rows of a sample are ranked once for all that is asked of it.
            return self.above == 0, self.rank
        if any_label:
            # Rows of other labels decide, be the unit the sample itself.
            self._looks_at_any_label = True
            self.reads.add("sample")
            self.looks_into.add("sample")
        name = "best_of_any_label" if any_label else "best"
        best = self._within(name, self._of("sample", self.score, any_label=any_label).max(), "sample")
        is_best = self.score == best
        if self._reading.has_columns:
            # In a window Polars folds whole numbers faster than it ranks rows, or folds Booleans.
            tied = self._of("sample", is_best.cast(pl.UInt32), any_label=any_label).sum().cast(pl.Int64)
        else:
            tied = self._ranked("sample", self.score, "max", any_label=any_label)
        return is_best, self._within(f"tied_{name}", tied, "sample")

    def place(self, name: str, key: pl.Expr) -> pl.Expr:
        """The place of a row in its sample, lowest key first; of equal keys each has a place of its own, any."""
        return self._within(name, self._ranked("sample", key, "ordinal", descending=False), "sample")

    def sum_before(self, name: str, row: pl.Expr, key: pl.Expr) -> pl.Expr:
        """The sum of a number over the labels of the row's sample before it, lowest key first; of equal keys any order.

        Labels of equal keys must have equal numbers.
        """
        upto = self._of("sample", row).sort_by(self._of("sample", key), nulls_last=True).cum_sum()
        place = self._ranked("sample", key, "ordinal", descending=False)
        return self._within(name, pl.when(place > 1).then(upto.gather((place - 2).clip(0))).otherwise(0.0), "sample")

    def mean_of_tie(self, name: str, of_place: OfPlace, *, k: int | None = None) -> pl.Expr:
        """The worth of the places that the row's tie holds in its sample, shared equally by the rows of the tie.

        A place should be worth something of the order of 1, as a discount is: what a tie shares is right to 3e-14.
        With a k, places after the k first are worth nothing.
        """
        share = Share(of_place, k)
        above, rank = (self._ranked("sample", self.score, ties) for ties in ("min", "max"))
        upto = share.worth(pl.int_range(1, pl.len() + 1)).cum_sum()
        before = pl.when(above > 1).then(upto.gather((above - 2).clip(0))).otherwise(0.0)
        alone = rank == above
        mean = pl.when(alone).then(share.worth(rank)).otherwise(ratio(upto.gather(rank - 1) - before, rank - above + 1))
        return self._reading.shares(name, share, mean, "sample")

    def _ranked(
        self,
        grain: Grain,
        key: pl.Expr,
        ties: Literal["min", "max", "ordinal"],
        *,
        descending: bool = True,
        any_label: bool = False,
    ) -> pl.Expr:
        return self._of(grain, key, any_label=any_label).rank(ties, descending=descending).cast(pl.Int64)
