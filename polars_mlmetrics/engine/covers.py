"""Covers: a few sets of keys that hold all groupings between them, so that the rows are folded once for each set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, prod

CELLS = 4_000
"""How many cells a fold at several keys may have, as far as is known: more are slower than folding the rows again."""

USUAL = 15
"""How many values a column of slices or of units has where nothing is known: so three are folded together."""


@dataclass
class Covers:
    """The sets of keys at which rows are folded, from which every grouping can be merged."""

    by: Sequence[str]
    slicings: Sequence[Sequence[str]]
    sizes: Mapping[str, int] | None
    """How many values a column has, about; None where nothing is known."""
    always: Sequence[str] = ()
    """Columns that every set has beside them."""
    n_rows: int | None = None
    """How many rows there are; None where that is not known."""
    most: int = CELLS
    """How many cells a fold at several keys may have."""
    buckets: int = 1
    """How many values the columns have that every set has, where their cells count too."""
    _found: dict[tuple[object, ...], list[list[str]]] = field(default_factory=dict)

    @property
    def has_slices(self) -> bool:
        """Whether there are columns of slices beside those that every set has."""
        return any(key not in self.always for slicing in self.slicings for key in slicing)

    def of(self, slicing: Sequence[str], units: Sequence[str] = (), cells: int = 1) -> list[str]:
        """The keys, by columns first, from which a slicing is merged.

        Its groups are folded by the keys of `units` too, or in so many `cells`.
        """
        name = (*units, cells)
        if name not in self._found:
            self._found[name] = self._covering(units, cells)
        needed = [key for key in slicing if key not in self.always]
        cover = next((cover for cover in self._found[name] if {*needed} <= {*cover}), needed)
        return [*self.by, *cover, *self.always]

    def _covering(self, units: Sequence[str], cells: int) -> list[list[str]]:
        """Large slicings first, each added to the set that still has few cells with it, and the fewest."""
        covers: list[list[str]] = []
        for slicing in sorted(self.slicings, key=lambda keys: (self._cells(keys), len(keys)), reverse=True):
            if any({*slicing} <= {*cover} for cover in covers):
                continue
            both = [list(dict.fromkeys([*cover, *slicing])) for cover in covers]
            small = [place for place, keys in enumerate(both) if self._is_small(keys, units, cells)]
            if small:
                place = min(small, key=lambda place: self._cells(both[place]))
                covers[place] = both[place]
            else:
                covers.append(list(slicing))
        return covers

    def _is_small(self, keys: Sequence[str], units: Sequence[str], cells: int) -> bool:
        if self.sizes is not None:
            # There are no more cells than rows.
            n_cells = self.buckets * cells * self._cells([*self.by, *keys, *units])
            return min(n_cells, self.n_rows or inf) <= self.most
        # Every unit of a group has all buckets: few columns, or there are as many cells as rows.
        beside = [*self.always, *units] if self.always and units else []
        return self.buckets * cells * self._cells([*keys, *beside]) <= self.most

    def _cells(self, keys: Sequence[str]) -> int:
        return prod(USUAL if self.sizes is None else self.sizes.get(key, 1) for key in keys)
