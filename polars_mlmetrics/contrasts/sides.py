"""Pairs: a source in which each candidate stands beside the baseline, and a plan of the differences of the two."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl

from polars_mlmetrics.engine.folds import fold, matched
from polars_mlmetrics.engine.partials import Partial, PartialTable, take_placements
from polars_mlmetrics.engine.placements import IS_NEEDED, MOVED, POSITIVES, ROWS, SIZE, VALUE
from polars_mlmetrics.engine.plan import Plan, ReadFormulas
from polars_mlmetrics.engine.sources import OfSource, Source
from polars_mlmetrics.engine.split_samples import Counts
from polars_mlmetrics.engine.values import Columns
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.measure import Measure, Node, Planned, is_mean_of_labels

PAIR = f"{INTERNAL}pair_of"
"""The key that says which candidate is compared with the baseline."""

IS_BASELINE = f"{INTERNAL}is_baseline"
"""The key that says which of the two a row is of."""

_IS_THERE = f"{INTERNAL}is_there"


def beside_baseline(model: str, baseline: Any, candidates: pl.Series) -> pl.LazyFrame:
    """The models, each with what a row of it is of: a candidate of its own pair, the baseline of every pair."""
    pairs = pl.LazyFrame({PAIR: candidates})
    sides = {False: pl.col(PAIR), True: pl.lit(baseline, dtype=candidates.dtype)}
    return pl.concat(
        pairs.with_columns(side.alias(model), pl.lit(is_it).alias(IS_BASELINE)) for is_it, side in sides.items()
    )


class Pairs(OfSource):
    """A source by model as one by candidate, in which the rows of the baseline are beside those of each candidate.

    The model comes after the by columns among the keys of the source.
    """

    def __init__(self, source: Source, by: Sequence[str], model: str, baseline: Any, candidates: pl.Series) -> None:
        self.source = source
        self.by = list(by)
        self._model = model
        self._beside = beside_baseline(model, baseline, candidates)
        self.schema = pl.Schema({**source.schema, PAIR: candidates.dtype, IS_BASELINE: pl.Boolean()})

    def partials(self, partials: Sequence[Partial], by: list[str]) -> list[PartialTable]:
        keys = self._keys(by)
        by_model = [partial.at(keys) for partial in partials]
        tables = [self._paired(table) for table, _ in self.source.partials(by_model, keys)]
        for partial, of_models in zip(partials, by_model, strict=True):
            take_placements(partial, of_models, self._paired)
        return [(table, by) for table in tables]

    def with_reasons(self, table: pl.LazyFrame, by: list[str], counts: Mapping[str, Counts]) -> pl.LazyFrame:
        # Why samples are not whole is told by group and model, as the state knows them.
        keys = self._keys(by)
        flagged = self.source.with_reasons(table.rename({PAIR: self._model}).select(keys).unique(), keys, counts)
        return matched(table, self._paired(flagged), by, how="left")

    def _keys(self, by: Sequence[str]) -> list[str]:
        """The keys of the source for those of a plan."""
        others = [key for key in by if key not in (*self.by, PAIR, IS_BASELINE)]
        return [*self.by, self._model, *others]

    def _paired(self, table: pl.LazyFrame) -> pl.LazyFrame:
        """Rows by model, as rows by candidate: its own, and those of the baseline."""
        return matched(table, self._beside, [self._model]).drop(self._model)


class PairPlan(Plan):
    """Differences of metrics between each candidate and the baseline, by group.

    To intervals it is a plan like any other, whose values are the differences. A row of its table has the columns of
    both sides: `add` gives those of the candidate, and `named_of_baseline` names the others.
    """

    def __init__(self, source: Source, by: Sequence[str], readings: ReadFormulas) -> None:
        keys = [key for key in by if key != IS_BASELINE]
        super().__init__(source, [*keys, IS_BASELINE], readings)
        self.keys = keys

    @property
    def is_there(self) -> list[pl.Expr]:
        """Whether the candidate, and whether the baseline, has rows in a group."""
        return [pl.col(name).is_not_null() for name in (_IS_THERE, named_of_baseline(_IS_THERE))]

    def value(self, metric: Node, read: Callable[[Planned, Columns], pl.Expr] | None = None) -> pl.Expr:
        """The difference: the candidate's value less that of the baseline. With `read` it is the value of a side."""
        if read is not None:
            return super().value(metric, read)
        ours, theirs = (value.cast(pl.Float64) for value in self.sides(metric))
        return ours - theirs

    def sides(self, metric: Node) -> list[pl.Expr]:
        """The values of the candidate and of the baseline."""
        return [super().value(metric), super().value(metric, self._of_baseline)]

    def _of_baseline(self, part: Planned, columns: Columns) -> pl.Expr:
        value = pl.col(named_of_baseline(columns.value))
        reasons = [pl.col(named_of_baseline(reason)) for reason in self.reasons_of([columns])]
        return pl.when(reason.is_null() for reason in reasons).then(value) if reasons else value

    def can_place(self, measure: Measure) -> bool:
        # An average is of the labels that both sides have: each side alone does not know these.
        return super().can_place(measure) and not is_mean_of_labels(measure)

    def moved(self, measure: Measure, bucket: str) -> pl.LazyFrame:
        """A bucket moves the difference by what it moves the candidate, less what it moves the baseline."""
        sides = super().moved(measure, bucket).cache()
        is_baseline, value = pl.col(IS_BASELINE), pl.col(VALUE)
        of_both = (value.filter(is_baseline == side).first() for side in (False, True))
        ours, theirs = of_both
        whole = fold(sides, self.keys, [(ours - theirs).alias(VALUE), (ours.abs() + theirs.abs()).alias(SIZE)])
        signed = pl.when(is_baseline).then(-pl.col(MOVED)).otherwise(MOVED)
        positives = pl.when(pl.len() == 2).then(pl.col(POSITIVES).min()).otherwise(0)
        of_bucket = [signed.sum().alias(MOVED), pl.col(ROWS).sum(), positives, pl.col(IS_NEEDED).any()]
        return matched(fold(sides, [*self.keys, bucket], of_bucket), whole, self.keys)

    def groups(self) -> pl.LazyFrame:
        """One row a group and candidate, with the columns of both. One of them may have no rows there."""
        table = super().groups().with_columns(pl.lit(True).alias(_IS_THERE)).cache()
        ours = table.filter(~pl.col(IS_BASELINE)).drop(IS_BASELINE)
        theirs = table.filter(IS_BASELINE).drop(IS_BASELINE)
        columns = [name for name in theirs.collect_schema() if name not in self.keys]
        theirs = theirs.rename({name: named_of_baseline(name) for name in columns})
        return ours.join(theirs, on=self.keys, how="full", nulls_equal=True, coalesce=True)

    def _units_of(self, partial: Partial, statistics: pl.LazyFrame) -> pl.LazyFrame:
        """The units of both sides. An average over labels is one over the labels that both have."""
        units = super()._units_of(partial, statistics)
        # With `undefined=` every label has a value.
        measured = [columns for reader, columns in partial.values.measures if reader.measure.undefined is None]
        if partial.grain != "label" or not measured:
            return units
        keys, units = [key for key in partial.unit_keys if key != IS_BASELINE], units.cache()
        counts = [pl.col(each.value).is_not_null().sum().alias(_sides_with(each)) for each in measured]
        units = matched(units, fold(units, keys, counts), keys)
        return units.with_columns(column for each in measured for column in _in_both(each))


def named_of_baseline(name: str) -> str:
    """The name of a column of the baseline beside that of the candidate."""
    return f"{name}_of_baseline"


def _sides_with(columns: Columns) -> str:
    return f"{columns.value}_sides"


def _in_both(columns: Columns) -> list[pl.Expr]:
    """A label that has a value on one side only is no unit of it there."""
    value = pl.col(columns.value)
    is_left_out = value.is_not_null() & (pl.col(_sides_with(columns)) < 2)
    return [
        pl.when(~is_left_out).then(value).alias(columns.value),
        (pl.col(columns.present) & ~is_left_out).alias(columns.present),
    ]
