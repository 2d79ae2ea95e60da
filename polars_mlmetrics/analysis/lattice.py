"""The lattice of slices: every combination of features, folded from the rows once, and how each slice does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from polars_mlmetrics.analysis.coded import GROUP, Coded, code_column
from polars_mlmetrics.analysis.contrasts import UNIT
from polars_mlmetrics.errors import INTERNAL

if TYPE_CHECKING:
    from polars_mlmetrics.analysis.contrasts import Numbers

PLACE, BUCKET = f"{INTERNAL}place", f"{INTERNAL}of_bucket"
"""The number of a slice among all cells of all combinations, with its group; and of a bucket of the half."""

DENSE = 2_000_000
"""Up to so many cells, buckets and units are counted into an array."""


class Combination(NamedTuple):
    """Some features, and where their cells begin among all."""

    features: tuple[int, ...]
    sizes: tuple[int, ...]
    start: int

    def cell(self, n_groups: int) -> pl.Expr:
        """The number of a row's cell."""
        columns = {code_column(feature): pl.col(code_column(feature)).cast(pl.Int64) for feature in self.features}
        number: pl.Expr = self.number(columns, pl.col(GROUP).cast(pl.Int64), n_groups)
        return number

    def number(self, codes: Mapping[str, Any], group: Any, n_groups: int) -> Any:
        """The same from the codes of rows, expressions or arrays."""
        number, step = group + self.start, n_groups
        for feature, size in zip(self.features, self.sizes, strict=True):
            number = number + codes[code_column(feature)] * step
            step *= size
        return number

    def height(self, n_groups: int) -> int:
        """How many cells it has."""
        return prod(self.sizes) * n_groups


class Lattice:
    """Every combination of features. `buckets` is how many a half (or all) of the buckets are."""

    def __init__(self, coded: Coded, places: Sequence[int], depth: int, buckets: int) -> None:
        self.coded = coded
        self.buckets = buckets
        self.n_groups = coded.groups.height
        self.combinations: list[Combination] = []
        start = 0
        for features in _combinations(coded, places, depth):
            sizes = tuple(coded.features[place].size for place in features)
            self.combinations.append(Combination(features, sizes, start))
            start += self.combinations[-1].height(self.n_groups)

    def codes_of(self, place: int) -> tuple[int, dict[int, int]]:
        """The group of a slice, and the place of the condition that it asks of each of its features."""
        combination = self.combination_of(place)
        cell, group = divmod(place - combination.start, self.n_groups)
        codes = {}
        for feature, size in zip(combination.features, combination.sizes, strict=True):
            cell, codes[feature] = divmod(cell, size)
        return group, codes

    def place_of(self, group: int, codes: Mapping[int, int]) -> int:
        """The number of the slice with these codes."""
        features = tuple(sorted(codes))
        combination = next(each for each in self.combinations if each.features == features)
        cell = 0
        for feature, size in reversed([*zip(features, combination.sizes, strict=True)]):
            cell = cell * size + codes[feature]
        return combination.start + cell * self.n_groups + group

    def combination_of(self, place: int) -> Combination:
        """The combination that has a slice."""
        return next(each for each in reversed(self.combinations) if each.start <= place)

    def folded(self, rows: pl.DataFrame, sums: Sequence[str], units: int = 1) -> tuple[Numbers, dict[str, Numbers]]:
        """The sums of some rows in each cell, bucket and unit that has any: their numbers, and an array of each sum."""
        import numpy as np

        used = sorted({code_column(feature) for each in self.combinations for feature in each.features})
        codes = {name: rows[name].to_numpy() for name in used}
        small = rows[BUCKET].to_numpy().astype(np.int64)
        small = small * units + rows[UNIT].to_numpy() if units > 1 else small
        group, values = rows[GROUP].to_numpy().astype(np.int64), {name: rows[name].to_numpy() for name in sums}
        found = [self._of_one(each, codes, group, small, values, units) for each in self.combinations]
        numbers = np.concatenate([number for number, _ in found])
        return numbers, {name: np.concatenate([each[name] for _, each in found]) for name in sums}

    def _of_one(
        self, combination: Combination, codes: dict[str, Numbers], group: Numbers, small: Numbers,
        values: dict[str, Numbers], units: int,
    ) -> tuple[Numbers, dict[str, Numbers]]:  # fmt: skip
        """The sums in the cells of one combination."""
        import numpy as np

        step = self.buckets * units
        start, height = combination.start * step, combination.height(self.n_groups) * step
        number = combination.number(codes, group, self.n_groups) * step + small
        if height <= DENSE:
            # To count into an array is several times as fast as to group.
            number = number - start
            at = np.flatnonzero(np.bincount(number, minlength=height))
            summed = {name: counted(number, value, height)[at] for name, value in values.items()}
            at = at + start
        else:
            table = pl.DataFrame({PLACE: number, **values}).group_by(PLACE).agg(pl.col(list(values)).sum())
            at, summed = table[PLACE].to_numpy(), {name: table[name].to_numpy() for name in values}
        is_real = self._is_real(at, combination, step)
        return (
            (at, summed) if is_real is None else (at[is_real], {name: each[is_real] for name, each in summed.items()})
        )

    def _is_real(self, numbers: Numbers, combination: Combination, step: int) -> Numbers | None:
        """Where each feature has a condition; None where it always has."""
        import numpy as np

        partial = [self.coded.features[feature].is_partial for feature in combination.features]
        if not any(partial):
            return None
        cell, _ = np.divmod(numbers - combination.start * step, self.n_groups * step)
        is_real = np.ones(len(numbers), dtype=bool)
        for size, may_lack in zip(combination.sizes, partial, strict=True):
            cell, code = np.divmod(cell, size)
            is_real &= (code < size - 1) | (not may_lack)
        return is_real


def counted(number: Numbers, value: Numbers, height: int) -> Numbers:
    """The sum of the values of rows with each number from 0 on. Those of whole numbers are whole below 2^53."""
    import numpy as np

    sums: Numbers = np.bincount(number, weights=value, minlength=height)
    return sums if value.dtype.kind == "f" else sums.astype(np.int64)


def _combinations(coded: Coded, places: Sequence[int], depth: int) -> Iterator[tuple[int, ...]]:
    """Those of different columns: of one list a slice asks one thing."""
    names = {place: coded.features[place].name for place in places}
    for size in range(1, min(depth, len(set(names.values()))) + 1):
        for some in combinations(places, size):
            if len({names[place] for place in some}) == size:
                yield some
