"""The samples that every model has: a state of these knows the pairs of any two models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from polars_mlmetrics.data.door import check_key_columns
from polars_mlmetrics.data.expressions import any_of, check_no_pattern
from polars_mlmetrics.engine.folds import fold, matched
from polars_mlmetrics.engine.passes import Passes
from polars_mlmetrics.engine.ranking import code_of
from polars_mlmetrics.engine.sources import LogSource
from polars_mlmetrics.errors import INTERNAL, ParameterError, typed, unknown
from polars_mlmetrics.formula.measure import Measure
from polars_mlmetrics.formula.over_targets import samples_of_all
from polars_mlmetrics.query.query import Query
from polars_mlmetrics.query.source import source_of

COUNTED, LEFT_OUT = f"{INTERNAL}counted", f"{INTERNAL}left_out"
_ALIKE = f"{INTERNAL}alike"

BYTES_A_ROW = 60
"""Bytes that a row takes, about, while the samples of its part are looked up."""


def check_can_pair(query: Query, between: str) -> None:
    """Refuse a column of models that is no key of the query, or samples that are not in the table."""
    names = [key.name for key in query.by]
    check_no_pattern([between], what="between column")
    if between not in names:
        raise ParameterError(unknown(typed("between"), between, names, of="a by column of the state"))
    check_key_columns(query.roles.sample, query.schema, what="sample column")


def change_to_pairs(query: Query, between: str, passes: Passes | None) -> Callable[[pl.LazyFrame], pl.LazyFrame]:
    """A change of rows: without the samples that count to a metric for some models of their group, and not for all.

    A model is one of a group where a sample of it counts there. The samples are looked up now.
    """
    (model,) = (key.column for key in query.by if key.name == between)
    groups, sample = [key.column for key in query.by if key.column != model], query.roles.sample

    def with_samples(rows: pl.LazyFrame) -> pl.LazyFrame:
        return rows.filter(pl.col(column).is_not_null() for column in sample)

    log = source_of(query, passes).changed(with_samples)
    odd = CompleteSamples(log, groups, model, sample, samples_of_all(query.metrics)).odd()

    def to_pairs(rows: pl.LazyFrame) -> pl.LazyFrame:
        return with_samples(rows).join(odd.lazy(), on=odd.columns, how="anti", nulls_equal=True)

    return with_samples if odd.is_empty() else to_pairs


class Way:
    """A way in which rows count to a metric. One that is made of several metrics may have several."""

    def __init__(self, place: int, counts: pl.Expr) -> None:
        self.counts = counts
        self.rows, self.models, self.all_models, self.samples = (
            f"{INTERNAL}{name}_{place}" for name in ("rows", "models", "all_models", "samples")
        )
        self.codes = [f"{INTERNAL}codes_{place}_{seed}" for seed in range(2)]

    @property
    def is_odd(self) -> pl.Expr:
        """Whether a sample counts for some models of its group, and not for all."""
        return pl.col(self.models).is_between(1, pl.col(self.all_models) - 1)

    def sums_of_codes(self, sample: Sequence[str]) -> Iterator[pl.Expr]:
        """Two sums of hashes, which tell sets of samples apart."""
        # Of hashes of each column alone the sums would be those of any samples with the same values in each column.
        code = code_of(sample) if sample[1:] else pl.col(sample)
        for seed, name in enumerate(self.codes):
            yield pl.when(self.counts).then(code.hash(seed)).sum().alias(name)

    def is_alike(self) -> Iterator[pl.Expr]:
        """Whether the samples of all models of a group have the same sums, and as many rows."""
        # A model without a row that counts is none of its group.
        for name in (self.rows, *self.codes):
            total = pl.col(name).filter(pl.col(self.rows) > 0)
            yield (total.min() == total.max()).fill_null(True)


@dataclass
class CompleteSamples:
    """The samples of rows that count for all models of their group. A sample that counts for none is left alone."""

    log: LogSource
    groups: Sequence[str]
    model: str
    sample: Sequence[str]
    counts: Sequence[Measure]

    def __post_init__(self) -> None:
        self._keys = list(dict.fromkeys([*self.groups, *self.sample]))
        ways = (count.door().included(count.grain) for count in self.counts)
        self._ways = [Way(place, counts) for place, counts in enumerate(ways)]

    @property
    def _rows(self) -> pl.LazyFrame:
        return self.log.rows

    def counted(self) -> tuple[LogSource, pl.LazyFrame]:
        """The log of these rows; and one row a group and model, with the samples that it has, and how many others are.

        Where all models have the same samples, they are counted of one, and none is looked up.
        """
        by_model = self._by_model(self._codes()).collect().lazy()
        if self.are_alike(by_model):
            totals = [self._of_one_model(by_model, way) for way in self._ways]
            return self.log, self._named(by_model, totals, pl.lit(0))
        is_odd = any_of([way.is_odd for way in self._ways])
        pairs = [(~is_odd & (pl.col(way.models) > 0)).sum().alias(way.samples) for way in self._ways]

        def tables_of(rows: pl.LazyFrame) -> list[pl.LazyFrame]:
            seen = self._seen(rows, by_model).cache()
            return [self._odd(seen), fold(seen, self.groups, [is_odd.sum().alias(LEFT_OUT), *pairs])]

        odd, counts = self.log.gathered(BYTES_A_ROW, self.sample, tables_of)
        in_group = self._summed(counts)

        def without_odd(rows: pl.LazyFrame) -> pl.LazyFrame:
            return rows.join(odd, on=self._keys, how="anti", nulls_equal=True)

        # They are read more than once.
        return self.log.changed(without_odd).cached(), self._named(by_model, [in_group], pl.col(LEFT_OUT))

    def _summed(self, counts: pl.LazyFrame) -> pl.LazyFrame:
        """Counts of samples by group, of all parts of the log."""
        return fold(counts, self.groups, [pl.exclude(self.groups).sum()])

    def odd(self) -> pl.DataFrame:
        """The other samples, by group."""
        by_model = self._by_model(self._codes()).collect(engine="streaming").lazy()
        if self.are_alike(by_model):
            return self._rows.select(self._keys).clear().collect()
        [odd] = self.log.gathered(BYTES_A_ROW, self.sample, lambda rows: [self._odd(self._seen(rows, by_model))])
        return odd.collect(engine="streaming")

    def _codes(self) -> list[pl.Expr]:
        return [total for way in self._ways for total in way.sums_of_codes(self.sample)]

    def are_alike(self, by_model: pl.LazyFrame) -> bool:
        """Whether the same samples count for all models of each group, with as many rows.

        Others may be complete too.
        """
        is_alike = [is_alike for way in self._ways for is_alike in way.is_alike()]
        by_group = fold(by_model, self.groups, [pl.all_horizontal(is_alike).alias(_ALIKE)])
        found: bool = by_group.select(pl.col(_ALIKE).all()).collect().item()
        return found

    def _by_model(self, more: Sequence[pl.Expr]) -> pl.LazyFrame:
        """How many rows of each model of a group count, in each way."""
        counts = (way.counts.sum().alias(way.rows) for way in self._ways)
        return fold(self._rows, [*self.groups, self.model], [*counts, *more])

    def _seen(self, rows: pl.LazyFrame, by_model: pl.LazyFrame) -> pl.LazyFrame:
        """The samples that count for some model: for how many, in each way, and how many models their group has."""
        of_all = fold(by_model, self.groups, [(pl.col(w.rows) > 0).sum().alias(w.all_models) for w in self._ways])
        counting = rows.filter(any_of([way.counts for way in self._ways]))
        # Numbers are told apart faster than texts.
        model = pl.col(self.model).hash()
        # Polars counts models faster where none is left out first.
        is_left_out = bool(self._ways[1:])
        models = [model.filter(way.counts) if is_left_out else model for way in self._ways]
        named = [of.n_unique().alias(way.models) for of, way in zip(models, self._ways, strict=True)]
        return matched(fold(counting, self._keys, named), of_all, self.groups)

    def _odd(self, seen: pl.LazyFrame) -> pl.LazyFrame:
        return seen.filter(any_of([way.is_odd for way in self._ways])).select(self._keys)

    def _of_one_model(self, by_model: pl.LazyFrame, way: Way) -> pl.LazyFrame:
        """How many samples count in each group, of one of its models. As few models as can be are read."""
        counting = by_model.filter(pl.col(way.rows) > 0).select(*self.groups, self.model)
        often = counting.sort(pl.len().over(self.model), descending=True)
        chosen = fold(often, self.groups, [pl.col(self.model).first()], in_order=True).collect()
        is_chosen = pl.col(self.model).is_in(chosen[self.model].unique().implode(), nulls_equal=True)

        def tables_of(rows: pl.LazyFrame) -> list[pl.LazyFrame]:
            rows = rows.filter(is_chosen, way.counts)
            rows = rows.join(chosen.lazy(), on=chosen.columns, how="semi", nulls_equal=True)
            samples = rows.select(self._keys).unique()
            return [fold(samples, self.groups, [pl.len().alias(way.samples)])]

        [counts] = self.log.gathered(BYTES_A_ROW, self.sample, tables_of)
        return self._summed(counts)

    def _named(self, by_model: pl.LazyFrame, totals: Sequence[pl.LazyFrame], left_out: pl.Expr) -> pl.LazyFrame:
        """Totals of groups beside each of their models. One without a row that counts in some way has no sample."""
        for total in totals:
            by_model = matched(by_model, total, self.groups, how="left")
        samples = [pl.when(pl.col(way.rows) > 0).then(pl.col(way.samples)).fill_null(0) for way in self._ways]
        counted = pl.min_horizontal(samples).cast(pl.Int64).alias(COUNTED)
        return by_model.select(*self.groups, self.model, counted, left_out.fill_null(0).cast(pl.Int64).alias(LEFT_OUT))
