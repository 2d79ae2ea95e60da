"""Covers: a few sets of keys that hold all groupings between them, so that the rows are folded once for each set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, prod

CELLS = 20_000
"""How many cells a fold at several keys may have, as far as is known: more are slower than folding the rows again."""

FEW = 3
"""How many columns of slices are folded together where nothing is known of their values."""


class Covers:
    """The sets of keys at which rows are folded, from which every grouping can be merged.

    `sizes` says how many values a column has, about, and `n_rows` how many rows there are; None where that is not
    known. `always` are columns that every set has beside them.
    """

    def __init__(
        self,
        by: Sequence[str],
        slicings: Sequence[Sequence[str]],
        sizes: Mapping[str, int] | None,
        always: Sequence[str] = (),
        n_rows: int | None = None,
    ) -> None:
        self.by = list(by)
        self._always = list(always)
        self._slicings = slicings
        self._sizes = sizes
        self._n_rows = n_rows
        self._found: dict[int, list[list[str]]] = {}

    @property
    def has_slices(self) -> bool:
        """Whether there are columns of slices beside those that every set has."""
        return any(key not in self._always for slicing in self._slicings for key in slicing)

    def size_of(self, column: str) -> int:
        """How many values a column has, about; 1 where that is not known."""
        return 1 if self._sizes is None else self._sizes.get(column, 1)

    def of(self, slicing: Sequence[str], parts: int = 1) -> list[str]:
        """The keys, by columns first, from which a slicing is merged, where each group has so many parts."""
        if parts not in self._found:
            self._found[parts] = self._covering(parts)
        needed = [key for key in slicing if key not in self._always]
        cover = next((cover for cover in self._found[parts] if {*needed} <= {*cover}), needed)
        return [*self.by, *cover, *self._always]

    def _covering(self, parts: int) -> list[list[str]]:
        """Large slicings first, each added to the set that still has few cells with it, and the fewest."""
        covers: list[list[str]] = []
        for slicing in sorted(self._slicings, key=lambda keys: (self._cells(keys), len(keys)), reverse=True):
            if any({*slicing} <= {*cover} for cover in covers):
                continue
            both = [list(dict.fromkeys([*cover, *slicing])) for cover in covers]
            small = [place for place, keys in enumerate(both) if self._is_small(keys, parts)]
            if small:
                place = min(small, key=lambda place: self._cells(both[place]))
                covers[place] = both[place]
            else:
                covers.append(list(slicing))
        return covers

    def _is_small(self, keys: Sequence[str], parts: int) -> bool:
        if self._sizes is None:
            return len(keys) <= FEW
        # There are no more cells than rows.
        return min(parts * self._cells([*self.by, *keys]), self._n_rows or inf) <= CELLS

    def _cells(self, keys: Sequence[str]) -> int:
        return prod(map(self.size_of, keys))
