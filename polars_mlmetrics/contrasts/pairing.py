"""Pairing: the models that are compared, and the samples that a candidate and the baseline both have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import polars as pl

from polars_mlmetrics.contrasts.sides import PAIR
from polars_mlmetrics.data.expressions import any_of
from polars_mlmetrics.data.roles import MODEL
from polars_mlmetrics.engine.contents import Contents
from polars_mlmetrics.engine.folds import bounds_of, fold, has_several, rows_of_few
from polars_mlmetrics.engine.ranking import code_of
from polars_mlmetrics.engine.sources import LogSource
from polars_mlmetrics.errors import (
    INTERNAL,
    ColumnError,
    NameCollisionError,
    ParameterError,
    StateError,
    TableError,
    shown_values,
    typed,
    unknown,
)
from polars_mlmetrics.query.complete_samples import BYTES_A_ROW
from polars_mlmetrics.query.keys import AnyKey, Key, Keys, listed
from polars_mlmetrics.query.verb import Verb

N_PAIRS, N_UNPAIRED = f"{INTERNAL}n_pairs", f"{INTERNAL}n_unpaired"
_BASELINE = "baseline"

Slicing = tuple[str, ...]
"""The columns of a grouping beyond the by columns: none for the whole."""


def candidates_of(models: pl.LazyFrame, baseline: Any, name: str) -> pl.Series:
    """The models that can be compared with a baseline, of a column with all of them; it must be one of them."""
    found = models.unique().collect().to_series()
    if found.is_empty():
        raise TableError("there is nothing to compare: the table has no rows, or none with a sample.")
    known = pl.Series([baseline], dtype=found.dtype, strict=False)
    if known.null_count() or not found.eq_missing(known).any():
        shown = shown_values(found.drop_nulls().sort())
        raise ParameterError(f"baseline={baseline!r} is no value of {name!r}, which has {shown}.")
    candidates = found.filter(found.ne_missing(known)).sort(nulls_last=True)
    if candidates.is_empty():
        raise ParameterError(f"{name!r} has no other value than baseline={baseline!r}.")
    return candidates


def nothing_paired(sample: Sequence[str], model: str, baseline: Any, where: str = "") -> TableError:
    """The error where no sample is on both sides. `where` says where samples are named, if not in this call."""
    return TableError(
        f"there is nothing to compare: no sample is on both sides. No value of {', '.join(map(repr, sample))} has a "
        f"row that counts with {model!r} = {baseline!r} and one with another {model!r}. Pass {typed('sample')} {where}"
        f"for a column that has the same values on both sides. Pass {typed('pairs', False)} if the two sides are meant "
        "to have other samples, such as those of two months. A row counts if its score, its truth, its weight and all "
        "that the metric reads are known."
    )


def only_pairs(model: str) -> StateError:
    """The error where all rows of a state are wanted, and it was made of pairs."""
    return StateError(
        f"this state holds only the samples that all {model!r} have, and {typed('pairs', False)} compares all rows: "
        f"make it without {typed('between')}."
    )


def check_between(between: Key, columns: Iterable[str], of: str = "in the table") -> None:
    """Refuse a table without the column that tells models apart where none is named."""
    known = list(columns)
    if isinstance(between, str) and between == MODEL and MODEL not in known:
        lacking = unknown("column", MODEL, known, of=of)
        raise ColumnError(f"{lacking} Pass {typed('between')} with the column that tells the models apart.")


def keys_with(between: Key, by: Keys | None, verb: Verb, schema: pl.Schema) -> list[AnyKey]:
    """The keys of a log or a state, the column that tells models apart after those of `by`. Raise where they clash."""
    groups = listed(by)
    if isinstance(between, str) and between in [key for key in groups if isinstance(key, str)]:
        raise NameCollisionError(
            f"two columns of the result would have the name {between!r}, by which {verb.name} tells the models apart: "
            f"leave it out of {typed('by')}."
        )
    if verb.reads_state(schema):
        check_between(between, Contents.of(schema).by, of="a by column of the state")
    else:
        check_between(between, schema)
    return [*groups, between]


class SameRows:
    """Metrics to which the same rows count. To one that is made of several metrics, rows may count in several ways.

    A sample is odd where only one side has rows of it that count in some way: it would move the value of one side
    alone. A sample that is not odd is a pair where both sides have rows that count.
    """

    def __init__(self, place: int, ways: Sequence[pl.Expr]) -> None:
        self._name = f"{INTERNAL}kind_{place}"
        self._ways = {f"{self._name}_way_{way}": counts for way, counts in enumerate(ways)}

    def counts(self) -> pl.Expr:
        """Whether a row counts in any way."""
        return any_of(list(self._ways.values()))

    def has(self, side: str, is_side: pl.Expr) -> Iterator[pl.Expr]:
        """Whether a side has rows of a sample that count."""
        return ((is_side & counts).any().alias(f"{way}_{side}") for way, counts in self._ways.items())

    def is_odd(self, side: str) -> pl.Expr:
        """Whether a sample counts for the candidate alone, or for the baseline alone."""
        return any_of([pl.col(f"{way}_{side}") != pl.col(f"{way}_{_BASELINE}") for way in self._ways])

    def odd_in_whole(self, side: str) -> str:
        """The column that says of a sample in a slice whether it is odd in the by group."""
        return f"{self._name}_odd_in_whole_{side}"

    def sums(self, side: str) -> Iterator[pl.Expr]:
        """How many samples are pairs, in each way, and how many are odd."""
        for way in self._ways:
            is_pair = pl.col(f"{way}_{side}") & pl.col(f"{way}_{_BASELINE}") & ~self.is_odd(side)
            yield is_pair.sum().cast(pl.Int64).alias(f"{way}_{side}")
        yield self.is_odd(side).sum().cast(pl.Int64).alias(f"{self._name}_odd_{side}")

    def totals(self, side: str) -> list[pl.Expr]:
        """How many pairs there are, and how many odd samples, of these sums."""
        # As a tidy table counts the samples of a metric that is made of several.
        n_pairs = pl.min_horizontal(f"{way}_{side}" for way in self._ways)
        return [n_pairs.alias(N_PAIRS), pl.col(f"{self._name}_odd_{side}").alias(N_UNPAIRED)]


class PairedLog(NamedTuple):
    """Some candidates, and the log of the rows of their pairs."""

    candidates: pl.Series
    log: LogSource


class SlicedSamples(NamedTuple):
    """The samples of a log in the groups of one slicing."""

    counts: pl.DataFrame
    """How many are pairs, and how many are odd, by group."""
    odd: pl.DataFrame
    """Of samples with rows in several slices: those that are odd in their slice."""
    differs: pl.DataFrame
    """One row: for which kind and candidate such a sample is odd in a slice and not in the by group, or the reverse."""


@dataclass
class Pairing:
    """The samples of a log, and which models have rows of them that count for each kind of metric."""

    log: LogSource
    kinds: Sequence[SameRows]
    by: Sequence[str]
    sample: Sequence[str]
    slicings: Sequence[Sequence[str]]
    model: str
    baseline: Any
    candidates: pl.Series

    def __post_init__(self) -> None:
        self._keys = list(dict.fromkeys([*self.by, *self.sample]))
        self._baseline = pl.lit(self.baseline, dtype=self.candidates.dtype)
        self._candidates = {str(place): self.candidates.slice(place, 1) for place in range(len(self.candidates))}
        self._sides = [(kind, side) for kind in self.kinds for side in self._candidates]
        self._without: list[tuple[str, list[pl.DataFrame], LogSource]] = []

    def parts(self, kind: SameRows, slicing: Sequence[str]) -> list[PairedLog]:
        """The rows of the pairs in the groups of a slicing: of all candidates together where they are the same."""
        all_odd, sliced = self._seen[0], self._seen[1][tuple(slicing)]
        odd = {side: all_odd.filter(kind.is_odd(side)) for side in self._candidates}
        are_alike = all(samples.is_empty() for samples in odd.values())
        alike, found = [], []
        for side, samples in odd.items():
            if sliced.differs[kind.odd_in_whole(side)].item():
                in_one_slice = samples.filter(~has_several()).select(self._keys)
                keys = list(dict.fromkeys([*self.by, *slicing, *self._keys]))
                found.append(self._part(side, [in_one_slice, sliced.odd.filter(kind.is_odd(side)).select(keys)]))
            elif are_alike:
                alike.append(self._candidates[side])
            else:
                found.append(self._part(side, [samples.select(self._keys)]))
        return [*([PairedLog(pl.concat(alike), self.log)] if alike else []), *found]

    def counts(self, kind: SameRows, slicing: Sequence[str]) -> pl.LazyFrame:
        """How many samples of each candidate and the baseline are pairs, and how many are odd, by group."""
        sums = self._seen[1][tuple(slicing)].counts.lazy()
        tables = [
            sums.select(*self.by, *slicing, *kind.totals(side)).join(pl.LazyFrame({PAIR: candidate}), how="cross")
            for side, candidate in self._candidates.items()
        ]
        return pl.concat(tables).filter((pl.col(N_PAIRS) > 0) | (pl.col(N_UNPAIRED) > 0))

    def _part(self, side: str, odd: list[pl.DataFrame]) -> PairedLog:
        """The log of a candidate and the baseline without odd samples: the same one, where these are the same."""
        for of, without, known in self._without:
            if of == side and len(without) == len(odd) and all(map(pl.DataFrame.equals, without, odd)):
                return PairedLog(self._candidates[side], known)

        def of_pairs(rows: pl.LazyFrame) -> pl.LazyFrame:
            for samples in odd:
                rows = rows.join(samples.lazy(), on=samples.columns, how="anti", nulls_equal=True)
            return rows.filter(self._is(self._candidates[side][0]) | self._is(self._baseline))

        log = self.log.changed(of_pairs).cached()  # it is read more than once
        self._without.append((side, odd, log))
        return PairedLog(self._candidates[side], log)

    @cached_property
    def _seen(self) -> tuple[pl.DataFrame, dict[Slicing, SlicedSamples]]:
        """The samples that are odd in their by group, and the samples in the groups of each slicing."""
        sliced_by = dict.fromkeys(column for slicing in self.slicings for column in slicing)
        columns = [column for column in sliced_by if column not in self._keys]
        code = code_of(columns) if columns else pl.lit(0)
        values = [pl.col(column).first() for column in columns]

        def tables_of(rows: pl.LazyFrame) -> list[pl.LazyFrame]:
            counting = rows.filter(any_of([kind.counts() for kind in self.kinds]))
            samples = fold(counting, self._keys, [*self._has(), *bounds_of(code), *values]).cache()
            sliced = [table for slicing in self.slicings for table in self._in_slices(counting, samples, slicing)]
            return [samples.filter(self._is_odd()).drop(columns), *sliced]

        odd, *tables = pl.collect_all(self.log.gathered(BYTES_A_ROW, self.sample, tables_of))
        found = (
            self._merged(slicing, *tables[3 * place : 3 * place + 3]) for place, slicing in enumerate(self.slicings)
        )
        return odd, dict(zip(map(tuple, self.slicings), found, strict=True))

    def _merged(
        self, slicing: Sequence[str], counts: pl.DataFrame, odd: pl.DataFrame, differs: pl.DataFrame
    ) -> SlicedSamples:
        """The samples of all parts of a log."""
        groups = [*self.by, *slicing]
        return SlicedSamples(
            fold(counts.lazy(), groups, [pl.exclude(groups).sum()]).collect(), odd, differs.select(pl.all().any())
        )

    def _in_slices(self, counting: pl.LazyFrame, samples: pl.LazyFrame, slicing: Sequence[str]) -> list[pl.LazyFrame]:
        """The tables of `SlicedSamples`. A sample with rows in several slices is a smaller one in each of them."""
        groups = [*self.by, *slicing]
        in_whole = [kind.is_odd(side).alias(kind.odd_in_whole(side)) for kind, side in self._sides]
        several = samples.filter(has_several() & bool(slicing)).select(*self._keys, *in_whole)
        rows = rows_of_few(counting, several, self._keys)
        of_whole = [pl.col(kind.odd_in_whole(side)).first() for kind, side in self._sides]
        parts = fold(rows, list(dict.fromkeys([*groups, *self._keys])), [*self._has(), *of_whole])
        in_one = samples.filter(~has_several()) if slicing else samples
        has = [*groups, *(each.meta.output_name() for each in self._has())]
        sums = [total for kind, side in self._sides for total in kind.sums(side)]
        differs = [(pl.col(kind.odd_in_whole(side)) != kind.is_odd(side)).any() for kind, side in self._sides]
        counts = fold(pl.concat([in_one.select(has), parts.select(has)]), groups, sums)
        return [counts, parts.filter(self._is_odd()), parts.select(differs)]

    def _is_odd(self) -> pl.Expr:
        """Whether a sample is odd in some way, for some candidate."""
        return any_of([kind.is_odd(side) for kind, side in self._sides])

    def _has(self) -> list[pl.Expr]:
        """Whether the baseline and each candidate have rows of a sample that count."""
        sides = {_BASELINE: self._is(self._baseline)}
        sides |= {side: self._is(candidate[0]) for side, candidate in self._candidates.items()}
        return [has for kind in self.kinds for side, is_side in sides.items() for has in kind.has(side, is_side)]

    def _is(self, model: Any) -> pl.Expr:
        return pl.col(self.model).eq_missing(model)
