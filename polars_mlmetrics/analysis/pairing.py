"""Pairing: which samples the baseline and a candidate both have. Differences are of these alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import polars as pl

from polars_mlmetrics.data.expressions import any_of
from polars_mlmetrics.engine.folds import fold, matched
from polars_mlmetrics.engine.pairs import PAIR
from polars_mlmetrics.engine.ranking import code_of
from polars_mlmetrics.errors import INTERNAL

N_PAIRS, N_UNPAIRED = f"{INTERNAL}n_pairs", f"{INTERNAL}n_unpaired"
_LOWEST, _HIGHEST, _HAS_BASELINE = (f"{INTERNAL}{name}" for name in ("lowest_code", "highest_code", "has_baseline"))


class Part(NamedTuple):
    """Some candidates, and the rows of their pairs."""

    candidates: pl.Series
    rows: pl.LazyFrame


class Pairing:
    """The samples of a log, and which models have them.

    A model has a sample in a group where one of its rows there has a known score and truth.
    """

    def __init__(
        self,
        rows: pl.LazyFrame,
        known: pl.Expr,
        by: Sequence[str],
        sample: Sequence[str],
        slicings: Sequence[Sequence[str]],
        model: str,
        baseline: Any,
        candidates: pl.Series,
    ) -> None:
        self._rows = rows
        self._known = rows.filter(known)
        self._by = list(by)
        self._sample = list(sample)
        self._slicings = [tuple(slicing) for slicing in slicings]
        self._sliced_by = list(dict.fromkeys(column for slicing in slicings for column in slicing))
        self._model = model
        self._baseline = pl.lit(baseline, dtype=candidates.dtype)
        self._candidates = candidates

    def parts(self, slicing: Sequence[str]) -> list[Part]:
        """The rows of the pairs in the groups of a slicing: of all candidates together where they are the same."""
        found = []
        for part in self._of_whole:
            cut = [self._cut(candidate, slicing) for candidate in part.candidates]
            whole = part.candidates.filter([samples.is_empty() for samples in cut])
            found += [Part(whole, part.rows)] if len(whole) else []
            for candidate, samples in zip(part.candidates, cut, strict=True):
                if not samples.is_empty():
                    found.append(self._part(candidate, self._without(part.rows, samples)))
        return found

    def n_unpaired(self, slicing: Sequence[str]) -> pl.LazyFrame:
        """How many samples of each candidate and its baseline are no pair, by group; no row where all are."""
        keys, of_samples = [*self._by, *slicing], self._keys(slicing)
        tables = []
        for candidate in self._candidates:
            apart = self._apart(candidate)
            rows = self._rows_of(candidate).join(apart.lazy(), on=apart.columns, how="semi", nulls_equal=True)
            samples = pl.concat([rows.select(of_samples).unique(), self._cut(candidate, slicing).lazy()])
            counts = fold(samples, keys, [pl.len().cast(pl.Int64).alias(N_UNPAIRED)])
            tables.append(counts.with_columns(pl.lit(candidate, dtype=self._candidates.dtype).alias(PAIR)))
        return pl.concat(tables)

    @cached_property
    def _of_whole(self) -> list[Part]:
        """The rows of the pairs in the by groups."""
        apart = [self._apart(candidate) for candidate in self._candidates]
        if all(samples.is_empty() for samples in apart):
            return [Part(self._candidates, self._rows)]
        return [
            self._part(candidate, self._without(self._rows, samples))
            for candidate, samples in zip(self._candidates, apart, strict=True)
        ]

    def _part(self, candidate: Any, rows: pl.LazyFrame) -> Part:
        # They are read more than once.
        own = rows.filter(self._is(candidate) | self._is(self._baseline)).cache()
        return Part(pl.Series([candidate], dtype=self._candidates.dtype), own)

    def n_pairs(self, slicing: Sequence[str]) -> pl.LazyFrame:
        """How many pairs each candidate has, by group."""
        keys, found = [*self._by, *slicing], self._counts[tuple(slicing)]
        counts = [found]
        if slicing and not self._varied.is_empty():
            rows = matched(self._varied.lazy(), self._known, list(self._varied.columns))
            samples = fold(rows, self._keys(slicing), self._has_each())
            counts.append(fold(samples, keys, self._of_both()).collect())
        tables = []
        for place, candidate in enumerate(self._candidates):
            named = [pl.lit(candidate, dtype=self._candidates.dtype).alias(PAIR), pl.col(_has(place)).alias(N_PAIRS)]
            tables += [count.lazy().select(*keys, *named) for count in counts]
        return fold(pl.concat(tables), [*keys, PAIR], [pl.col(N_PAIRS).sum().cast(pl.Int64)])

    @cached_property
    def _seen(self) -> list[pl.DataFrame]:
        """The samples that are not alike, and how many pairs are in each group of each slicing."""
        columns = [column for column in self._sliced_by if column not in {*self._by, *self._sample}]
        code = code_of(columns) if columns else pl.lit(0)
        bounds = [code.min().alias(_LOWEST), code.max().alias(_HIGHEST)]
        told = [*self._has_each(), *bounds, *(pl.col(column).first() for column in columns)]
        samples = fold(self._known, self._keys(), told)
        lacks = [pl.col(_has(place)) != pl.col(_HAS_BASELINE) for place in range(len(self._candidates))]
        varies = pl.col(_LOWEST) != pl.col(_HIGHEST)
        alike = {slicing: samples.filter(~varies) if slicing else samples for slicing in self._slicings}
        counts = [fold(part, [*self._by, *slicing], self._of_both()) for slicing, part in alike.items()]
        return pl.collect_all([samples.filter(any_of([*lacks, varies])).drop(columns), *counts])

    @property
    def _odd(self) -> pl.DataFrame:
        """The samples that some model lacks, or that have several values of a column of slices."""
        return self._seen[0]

    @property
    def _counts(self) -> dict[tuple[str, ...], pl.DataFrame]:
        return dict(zip(self._slicings, self._seen[1:], strict=True))

    @cached_property
    def _varied(self) -> pl.DataFrame:
        """The samples that have several values of a column of slices."""
        return self._odd.filter(pl.col(_LOWEST) != pl.col(_HIGHEST)).select(self._keys())

    def _keys(self, slicing: Sequence[str] = ()) -> list[str]:
        """The columns that tell the samples of a slicing apart: one of a sample may be a key too."""
        return list(dict.fromkeys([*self._by, *slicing, *self._sample]))

    def _has_each(self) -> list[pl.Expr]:
        """Whether the baseline and each candidate have a row of a sample."""
        has = [self._is(candidate).any().alias(_has(place)) for place, candidate in enumerate(self._candidates)]
        return [self._is(self._baseline).any().alias(_HAS_BASELINE), *has]

    def _of_both(self) -> list[pl.Expr]:
        """How many samples each candidate shares with the baseline."""
        places = range(len(self._candidates))
        return [(pl.col(_has(place)) & pl.col(_HAS_BASELINE)).sum().alias(_has(place)) for place in places]

    def _apart(self, candidate: Any) -> pl.DataFrame:
        """The samples that the candidate or the baseline lacks in a by group."""
        (place,) = self._candidates.eq_missing(pl.Series([candidate], dtype=self._candidates.dtype)).arg_true()
        return self._odd.filter(pl.col(_has(place)) != pl.col(_HAS_BASELINE)).select(self._keys())

    def _cut(self, candidate: Any, slicing: Sequence[str]) -> pl.DataFrame:
        """The samples that both have, but one of them not in this slice."""
        keys = self._keys()
        varied = self._varied.join(self._apart(candidate), on=keys, how="anti", nulls_equal=True)
        rows = matched(varied.lazy(), self._rows_of(candidate), keys)
        sides = [self._is(self._baseline).any().alias(_HAS_BASELINE), self._is(candidate).any().alias(_has(0))]
        samples = fold(rows, self._keys(slicing), sides)
        found = samples.filter(pl.col(_has(0)) != pl.col(_HAS_BASELINE)).drop(_has(0), _HAS_BASELINE)
        return found.collect() if slicing and not varied.is_empty() else found.clear().collect()

    def _rows_of(self, candidate: Any) -> pl.LazyFrame:
        """The known rows of a candidate and of the baseline."""
        return self._known.filter(self._is(candidate) | self._is(self._baseline))

    def _is(self, model: Any) -> pl.Expr:
        return pl.col(self._model).eq_missing(model)

    def _without(self, rows: pl.LazyFrame, samples: pl.DataFrame) -> pl.LazyFrame:
        return rows.join(samples.lazy(), on=samples.columns, how="anti", nulls_equal=True)


def _has(place: int) -> str:
    return f"{INTERNAL}has_{place}"
