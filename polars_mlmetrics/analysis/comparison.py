"""A comparison: models and their baseline in a log or in a state, grouping by grouping."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import polars as pl

from polars_mlmetrics.analysis.bounds import benjamini_hochberg
from polars_mlmetrics.analysis.confidence import Confidence
from polars_mlmetrics.analysis.differences import COLUMNS, Differences, row_of_nothing
from polars_mlmetrics.analysis.pairing import N_PAIRS, N_UNPAIRED, Pairing
from polars_mlmetrics.data.expressions import all_of
from polars_mlmetrics.data.roles import Table
from polars_mlmetrics.engine.folds import matched
from polars_mlmetrics.engine.pairs import PAIR, PairPlan, Pairs
from polars_mlmetrics.engine.replicates import WITHOUT
from polars_mlmetrics.engine.sources import Rows, Source
from polars_mlmetrics.engine.state_rows import StateRows
from polars_mlmetrics.errors import INTERNAL, MetricError, ParameterError, TableError
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.metrics.decisions import n_rows, n_samples
from polars_mlmetrics.query.account import first_that_holds
from polars_mlmetrics.query.groupings import stacked
from polars_mlmetrics.query.pairs import count_of_samples
from polars_mlmetrics.query.query import Query
from polars_mlmetrics.query.source import slices_of

ROWS = f"{INTERNAL}comparisons"

Adjust = Literal["bh"] | None


def candidates_of(models: pl.LazyFrame, baseline: Any, name: str) -> pl.Series:
    """The models that can be compared with a baseline, of a column with all of them; it must be one of them."""
    found = models.unique().collect().to_series()
    if found.is_empty():
        raise TableError("there is nothing to compare: no row has a sample.")
    known = pl.Series([baseline], dtype=found.dtype, strict=False)
    if known.null_count() or not found.eq_missing(known).any():
        shown = ", ".join(map(repr, found.drop_nulls().sort().head(10)))
        raise ParameterError(f"baseline={baseline!r} is no value of {name!r}, which has {shown}.")
    candidates = found.filter(found.ne_missing(known)).sort(nulls_last=True)
    if candidates.is_empty():
        raise ParameterError(f"{name!r} has no other value than baseline={baseline!r}.")
    return candidates


class Part(NamedTuple):
    """Some candidates, and the source of their values and of the baseline's."""

    candidates: pl.Series
    source: Source


class Comparison(ABC):
    """Models that are compared with a baseline. The last by column of the query is that of the models."""

    def __init__(
        self, query: Query, confidence: Confidence | None, baseline: Any, margin: float | None, adjust: Adjust
    ) -> None:
        assert confidence is not None
        if query.plain:
            raise MetricError(f"{query.plain_names[0]!r} is a plain expression: compare takes metrics.")
        self._asked = query
        *by, self._model = query.by
        self._query = replace(query, by=by)
        self._by = [key.column for key in by]
        self._confidence = confidence
        self._baseline = baseline
        self._margin = margin
        self._adjust = adjust
        self._query.check_names([self._model.name, *COLUMNS])

    @abstractmethod
    def _models(self) -> pl.LazyFrame:
        """The column of the models."""

    @abstractmethod
    def _parts(self, slicing: Sequence[str]) -> list[Part]:
        """The candidates, together where they have the same pairs."""

    @abstractmethod
    def _n_rows(self, plan: PairPlan) -> pl.Expr | None:
        """How many rows of a candidate there are in a group; None where they are not counted."""

    @abstractmethod
    def _n_clusters(self, plan: PairPlan) -> pl.Expr:
        """How many clusters the pairs of a group are in; null where that is not known."""

    @abstractmethod
    def _with_pairs(self, plan: PairPlan, slicing: Sequence[str]) -> Callable[[pl.LazyFrame], pl.LazyFrame]:
        """What adds to a table of groups how many pairs there are; null where that is not known.

        What it needs of the plan is asked for at once.
        """

    @abstractmethod
    def _with_unpaired(self, table: pl.LazyFrame, keys: Sequence[str], slicing: Sequence[str]) -> pl.LazyFrame:
        """A table of groups, with how many samples are no pair."""

    def table(self) -> pl.LazyFrame:
        """The differences of every candidate, in every group."""
        return self._judged(stacked(self._query, self._of_grouping, [self._model.name, *COLUMNS], in_order=True))

    def empty(self) -> pl.LazyFrame:
        """A table of the same columns, without rows."""
        keys = {key.name: self._query.schema[key.column] for key in (*self._query.by, *self._query.slice_keys)}
        labels = dict.fromkeys(["sliced_by", "slice"], pl.String())
        types = {**keys, **labels, self._model.name: self._query.schema[self._model.column], **COLUMNS}
        names = [*self._query.key_names(), self._model.name, *COLUMNS]
        return pl.LazyFrame(schema={name: types[name] for name in names})

    @cached_property
    def _candidates(self) -> pl.Series:
        """The models that are compared with the baseline."""
        return candidates_of(self._models(), self._baseline, self._model.name)

    def _of_grouping(self, by: list[str]) -> pl.LazyFrame:
        slicing = by[len(self._by) :]
        rows = pl.concat(self._of_part(part, by) for part in self._parts(slicing))
        table = self._with_unpaired(rows, [*by, PAIR], slicing).sort(PAIR, nulls_last=True)
        named = [pl.col(PAIR).alias(self._model.name), pl.col(N_UNPAIRED).alias("n_unpaired")]
        return table.explode(ROWS).unnest(ROWS).with_columns(named)

    def _of_part(self, part: Part, by: list[str]) -> pl.LazyFrame:
        """One row a group and candidate, with a list of what is said of each metric."""
        pairs = Pairs(part.source, self._by, self._model.column, self._baseline, part.candidates)
        plan = PairPlan.of(pairs, by, self._query.readings)
        with_pairs = self._with_pairs(plan, by[len(self._by) :])
        differences = Differences(plan, self._confidence, self._n_rows(plan), self._n_clusters(plan))
        rows = [differences.row(metric) for metric in self._query.metrics]
        table = with_pairs(differences.table())
        return table.select(*plan.by, pl.concat_list(rows).alias(ROWS))

    def _judged(self, table: pl.LazyFrame) -> pl.LazyFrame:
        """The table, with p adjusted and with verdicts."""
        adjusted = pl.col("p") if self._adjust is None else self._by_benjamini_hochberg()
        table = table.with_columns(adjusted.alias("p_adjusted"))
        return table.with_columns(self._verdict().alias("verdict"))

    def _by_benjamini_hochberg(self) -> pl.Expr:
        family: list[str | pl.Expr] = ["metric", pl.col(self._model.name)]
        if self._query.slices is not None:
            family.append(pl.col("sliced_by") == "")
        return benjamini_hochberg("p", family)

    def _verdict(self) -> pl.Expr:
        best = {metric.output_name: metric.best for metric in self._query.metrics}
        ups = [name for name, end in best.items() if end == "max"]
        downs = [name for name, end in best.items() if end == "min"]
        metric, is_found = pl.col("metric"), pl.col("p_adjusted") < 1 - self._confidence.level
        is_good = pl.when(metric.is_in(downs)).then(pl.col("difference") < 0).otherwise(pl.col("difference") > 0)
        cases = [
            (~metric.is_in([*ups, *downs]), pl.lit(None, dtype=pl.String)),
            (self._is_in_margin("low") & self._is_in_margin("high"), pl.lit("no change")),
            (self._is_always_equal(), pl.lit("no change")),
            (is_found & is_good, pl.lit("better")),
            (is_found & ~is_good, pl.lit("worse")),
            (metric.is_in(downs) & self._is_in_margin("high"), pl.lit("not worse")),
            (metric.is_in(ups) & self._is_in_margin("low"), pl.lit("not worse")),
        ]
        return first_that_holds(cases, pl.lit("unclear"))

    def _is_always_equal(self) -> pl.Expr:
        """Whether there is no difference, in no bucket, where it is asked how large it may be."""
        return (pl.col("ci_flag") == "degenerate") & (pl.col("difference") == 0) & (self._margin is not None)

    def _is_in_margin(self, end: str) -> pl.Expr:
        """Whether an end of the interval lies within the margin, on its side of 0."""
        if self._margin is None:
            return pl.lit(False)
        return pl.col("low") >= -self._margin if end == "low" else pl.col("high") <= self._margin


class OfLog(Comparison):
    """Models in a log: the samples of each pair are the same."""

    def _models(self) -> pl.LazyFrame:
        return self._rows.select(self._model.column)

    @cached_property
    def _rows(self) -> pl.LazyFrame:
        # A row without a sample is in no pair.
        return self._query.rows.filter(pl.col(column).is_not_null() for column in self._table.sample)

    @cached_property
    def _table(self) -> Table:
        """The roles of all metrics: a pair is one for all of them."""
        tables = [measure.table for measure in self._query.measures]
        for other in tables[1:]:
            differing = [word for word in other.differences(tables[0]) if not word.startswith(("weight=", "label="))]
            if differing:
                raise MetricError(
                    f"compare needs one sample, score and truth for all metrics, and one has {differing[0]}: call it "
                    "once for each."
                )
        return tables[0]

    @cached_property
    def _pairing(self) -> Pairing:
        known = all_of([self._table.score.is_not_null(), self._table.truth.is_not_null()])
        slicings = [[key.column for key in keys] for keys in self._query.groupings]
        keys = self._by, self._table.sample, slicings, self._model.column
        return Pairing(self._rows, known, *keys, self._baseline, self._candidates)

    def _parts(self, slicing: Sequence[str]) -> list[Part]:
        return [Part(part.candidates, self._source_of(part.rows)) for part in self._pairing.parts(slicing)]

    def _source_of(self, rows: pl.LazyFrame) -> Source:
        if id(rows) not in self._sources:
            of_rows = Rows(rows, self._query.roles.label, self._query.schema)
            self._sources[id(rows)] = slices_of(self._asked, of_rows, [WITHOUT])
        return self._sources[id(rows)]

    @cached_property
    def _sources(self) -> dict[int, Source]:
        return {}

    def _n_rows(self, plan: PairPlan) -> pl.Expr:
        return self._count(plan, n_rows(), self._table.sample)

    def _n_clusters(self, plan: PairPlan) -> pl.Expr:
        cluster = tuple(self._confidence.cluster)
        return pl.col(N_PAIRS) if cluster == self._table.sample else self._count(plan, n_samples(), cluster)

    def _count(self, plan: PairPlan, count: Metric, sample: tuple[str, ...]) -> pl.Expr:
        (measure,) = count.tree.on_the_rest({**self._table.roles(), "sample": sample}).measures()
        return plan.values(measure)[0]

    def _with_pairs(self, plan: PairPlan, slicing: Sequence[str]) -> Callable[[pl.LazyFrame], pl.LazyFrame]:
        counts, filled = self._pairing.n_pairs(slicing), pl.col(N_PAIRS).fill_null(0)
        return lambda table: matched(table, counts, plan.by, how="left").with_columns(filled)

    def _with_unpaired(self, table: pl.LazyFrame, keys: Sequence[str], slicing: Sequence[str]) -> pl.LazyFrame:
        unpaired = self._pairing.n_unpaired(slicing)
        # A group without a pair has no rows to work with, and is there all the same.
        counted = table.join(unpaired, on=keys, how="full", nulls_equal=True, coalesce=True)
        nothing = pl.concat_list(row_of_nothing(metric) for metric in self._query.metrics)
        return counted.with_columns(pl.col(N_UNPAIRED).fill_null(0), pl.coalesce(ROWS, nothing))


class OfState(Comparison):
    """Models in a state, which has no samples: all rows of each, bucket by bucket."""

    def __init__(self, source: StateRows, *asked: Any) -> None:
        super().__init__(*asked)
        self._source = source

    def _models(self) -> pl.LazyFrame:
        return self._source.held.with_columns(self._source.added).select(self._model.column)

    def _parts(self, slicing: Sequence[str]) -> list[Part]:
        return [Part(self._candidates, self._source)]

    def _n_rows(self, plan: PairPlan) -> None:
        return None

    def _n_clusters(self, plan: PairPlan) -> pl.Expr:
        return pl.col(N_PAIRS)

    def _with_pairs(self, plan: PairPlan, slicing: Sequence[str]) -> Callable[[pl.LazyFrame], pl.LazyFrame]:
        n_pairs = pl.lit(None, dtype=pl.Int64)
        if self._source.between == self._model.name:
            ours, theirs = plan.values(count_of_samples(self._query))
            # A state of a file that one of the models lacks holds samples of the other alone.
            n_pairs = pl.when(ours == theirs).then(ours)
        return lambda table: table.with_columns(n_pairs.alias(N_PAIRS))

    def _with_unpaired(self, table: pl.LazyFrame, keys: Sequence[str], slicing: Sequence[str]) -> pl.LazyFrame:
        return table.with_columns(pl.lit(None, dtype=pl.Int64).alias(N_UNPAIRED))
