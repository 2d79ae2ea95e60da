"""The lattice of slices: every combination of features, and what rows add up to in the cells of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import prod
from typing import NamedTuple

import numpy as np
import polars as pl

from polars_mlmetrics.engine.covers import Covers
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.slice_search.coded import GROUP, Coded, code_column
from polars_mlmetrics.slice_search.contrasts import Numbers

PLACE, BUCKET = f"{INTERNAL}place", f"{INTERNAL}of_bucket"
"""The number of a slice among all cells of all combinations, with its group; and of a bucket of the half."""

DENSE = 2_000_000
"""Up to so many cells and parts of cells are counted into an array."""


class Combination(NamedTuple):
    """Some features, and where their cells begin among all."""

    features: tuple[int, ...]
    sizes: tuple[int, ...]
    start: int

    def cell(self, n_groups: int) -> pl.Expr:
        """The number of a row's cell."""
        number, step = pl.col(GROUP).cast(pl.Int64) + self.start, n_groups
        for feature, size in zip(self.features, self.sizes, strict=True):
            number = number + pl.col(code_column(feature)).cast(pl.Int64) * step
            step *= size
        return number

    def height(self, n_groups: int) -> int:
        """How many cells it has."""
        return prod(self.sizes) * n_groups


class CellSums(NamedTuple):
    """Sums of rows in some cells of a combination: an array of cells x parts for each sum."""

    places: Numbers
    sums: dict[str, Numbers]


class Lattice:
    """Every combination of features. `buckets` is how many a half of the buckets are."""

    def __init__(self, coded: Coded, places: Sequence[int], depth: int, buckets: int) -> None:
        self.coded = coded
        self.buckets = buckets
        self.n_groups = coded.groups.height
        self.combinations: list[Combination] = []
        self._sizes = [each.size for each in coded.features]
        start = 0
        for features in _combinations(coded, places, depth):
            sizes = tuple(self._sizes[place] for place in features)
            self.combinations.append(Combination(features, sizes, start))
            start += self.combinations[-1].height(self.n_groups)
        names = {code_column(place): size for place, size in enumerate(self._sizes)}
        self._covers = Covers([], [[*map(code_column, each.features)] for each in self.combinations], names)
        self._features_of = {name: place for place, name in enumerate(names)}
        self._blocks_of: dict[int, dict[tuple[int, ...], list[Combination]]] = {}

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

    def cells(
        self, rows: pl.DataFrame, values: Sequence[str], part: Numbers | None, parts: int, asked: Numbers | None = None
    ) -> Iterator[CellSums]:
        """Sums of values in the cells of each combination, and in the parts (so many) of each cell.

        `asked` are the places that are needed, in order; None stands for all.
        """
        table = SummedColumns(rows, values, part, parts, self.n_groups)
        for features, inside in self._blocks(parts).items():
            sizes = [self._sizes[feature] for feature in features]
            if prod(sizes) * self.n_groups * parts <= DENSE:
                block = table.block(features, sizes)
                for each in inside:
                    yield self._of_block(each, features, block, asked)
            else:
                for each in inside:
                    yield table.sparse(each, self._asked_of(each, asked))

    def _blocks(self, parts: int) -> dict[tuple[int, ...], list[Combination]]:
        """Sets of features that are counted together, and the combinations that come from each.

        One look at the rows is then enough for many combinations.
        """
        if parts not in self._blocks_of:
            blocks: dict[tuple[int, ...], list[Combination]] = {}
            for each in self.combinations:
                cover = self._covers.of([*map(code_column, each.features)], parts * self.n_groups)
                blocks.setdefault(tuple(sorted(self._features_of[name] for name in cover)), []).append(each)
            self._blocks_of[parts] = blocks
        return self._blocks_of[parts]

    def _asked_of(self, combination: Combination, asked: Numbers | None) -> Numbers | None:
        if asked is None:
            return None
        end = combination.start + combination.height(self.n_groups)
        found: Numbers = asked[slice(*np.searchsorted(asked, [combination.start, end]))]
        return found

    def _of_block(
        self, combination: Combination, features: Sequence[int], block: Mapping[str, Numbers], asked: Numbers | None
    ) -> CellSums:
        """The cells of a combination, from those of more features: added up over the others."""
        height = combination.height(self.n_groups)
        places = self._asked_of(combination, asked)
        if places is None:
            places = np.arange(combination.start, combination.start + height)
        # The last feature comes first in an array, and the features of a combination are in order.
        shape = (*(self._sizes[feature] for feature in reversed(features)), self.n_groups, -1)
        others = tuple(i for i, feature in enumerate(reversed(features)) if feature not in combination.features)
        at = places - combination.start
        sums = {}
        for name, array in block.items():
            sums[name] = array.reshape(shape).sum(axis=others).reshape(height, -1)[at]
        return CellSums(places, sums)

    def is_real(self, places: Numbers) -> Numbers:
        """Where each feature has a condition: a list may lack the value of a feature."""
        found = np.ones(len(places), dtype=bool)
        for each in self.combinations:
            if any(self.coded.features[feature].is_partial for feature in each.features):
                start, end = np.searchsorted(places, [each.start, each.start + each.height(self.n_groups)])
                cell, _ = np.divmod(places[start:end] - each.start, self.n_groups)
                for feature, size in zip(each.features, each.sizes, strict=True):
                    cell, code = np.divmod(cell, size)
                    if self.coded.features[feature].is_partial:
                        found[start:end] &= code < size - 1
        return found


class SummedColumns:
    """The columns of some rows, as they are added up."""

    def __init__(
        self, rows: pl.DataFrame, values: Sequence[str], part: Numbers | None, parts: int, n_groups: int
    ) -> None:
        self._rows = rows
        self._part = part
        self._parts = parts
        self._n_groups = n_groups
        self._codes: dict[int, Numbers] = {}
        self._values = {name: rows[name].to_numpy() for name in values}
        # Many statistics are 1 in every row, or 0: such as how many rows there are, and how many are broken.
        self._ones = {name for name, value in self._values.items() if value.dtype.kind != "f" and (value == 1).all()}
        zeros = {name for name, value in self._values.items() if not value.any()}
        weighted = self._values.keys() - self._ones - zeros
        self._weights = {name: self._values[name].astype(np.float64) for name in weighted}

    def block(self, features: Sequence[int], sizes: Sequence[int]) -> dict[str, Numbers]:
        """The sums in all cells of some features, and in the parts of each."""
        number = self._code(features[-1]).copy()
        for feature, size in reversed([*zip(features[:-1], sizes[:-1], strict=True)]):
            number *= size
            number += self._code(feature)
        if self._n_groups > 1:
            number *= self._n_groups
            number += self._rows[GROUP].to_numpy()
        if self._part is not None:
            number *= self._parts
            number += self._part
        return self._summed(number, prod(sizes) * self._n_groups * self._parts)

    def sparse(self, combination: Combination, asked: Numbers | None) -> CellSums:
        """The sums in those cells of a combination that have rows (or are asked for), of very many cells."""
        place = self._rows.select(combination.cell(self._n_groups)).to_series().to_numpy()
        if asked is None:
            places, number = np.unique(place, return_inverse=True)
            is_asked: Numbers | slice = slice(None)
        else:
            places, is_asked = asked, np.isin(place, asked)
            number = np.searchsorted(asked, place[is_asked])
        if self._part is not None:
            number = number * self._parts + self._part[is_asked]
        sums = self._summed(number, len(places) * self._parts, is_asked)
        return CellSums(places, {name: array.reshape(len(places), -1) for name, array in sums.items()})

    def _code(self, feature: int) -> Numbers:
        if feature not in self._codes:
            # A number of a cell of a block is below DENSE.
            self._codes[feature] = self._rows[code_column(feature)].to_numpy().astype(np.int32)
        return self._codes[feature]

    def _summed(self, number: Numbers, height: int, some: Numbers | slice = slice(None)) -> dict[str, Numbers]:
        """The sums of some rows, by number. Those of whole numbers are whole below 2^53."""
        counts = np.bincount(number, minlength=height) if self._ones else np.zeros(0)
        found: dict[str, Numbers] = {}
        for name, value in self._values.items():
            dtype = np.float64 if value.dtype.kind == "f" else np.int64
            if name in self._ones:
                found[name] = counts
            elif name in self._weights:
                found[name] = np.bincount(number, weights=self._weights[name][some], minlength=height).astype(dtype)
            else:
                found[name] = np.zeros(height, dtype=dtype)
        return found


def _combinations(coded: Coded, places: Sequence[int], depth: int) -> Iterator[tuple[int, ...]]:
    """Those of different columns: of one list a slice asks one thing."""
    names = {place: coded.features[place].name for place in places}
    for size in range(1, min(depth, len(set(names.values()))) + 1):
        for some in combinations(places, size):
            if len({names[place] for place in some}) == size:
                yield some
