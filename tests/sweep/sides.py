"""Two sides of a comparison: the rows of each, and how many samples are pairs."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from tests.sweep.jackknife import alone, without
from tests.sweep.tables import Part


@dataclass(frozen=True)
class Sides:
    """The rows of a candidate and of the baseline, of the same samples."""

    ours: Part
    theirs: Part

    def without(self, buckets: list[int], bucket: int) -> "Sides":
        return Sides(without(self.ours, buckets, bucket), without(self.theirs, buckets, bucket))

    def alone(self, buckets: list[int], bucket: int) -> "Sides":
        return Sides(alone(self.ours, buckets, bucket), alone(self.theirs, buckets, bucket))

    def of(self, samples: list[Any], kept: set[Any]) -> "Sides":
        """The rows of some samples."""
        ours, theirs = (tuple(p for p in side.places if samples[p] in kept) for side in (self.ours, self.theirs))
        return Sides(Part(self.ours.table, ours), Part(self.theirs.table, theirs))

    @property
    def turned(self) -> "Sides":
        return Sides(self.theirs, self.ours)


class Counted(NamedTuple):
    """How many samples are pairs, and how many are on one side alone; None where that is not counted."""

    n_pairs: int | None
    n_unpaired: int | None

    @property
    def few_pairs(self) -> bool:
        return (self.n_pairs or 0) < (self.n_unpaired or 0)
