"""A comparison: models and their baseline in a log or in a state, grouping by grouping."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple

import polars as pl

from polars_mlmetrics.contrasts.differences import COLUMNS, UNCLEAR, Differences, DifferencesOfAllRows
from polars_mlmetrics.contrasts.pairing import (
    N_PAIRS,
    N_UNPAIRED,
    Pairing,
    SameRows,
    candidates_of,
    nothing_paired,
    only_pairs,
)
from polars_mlmetrics.contrasts.sides import PAIR, PairPlan, Pairs
from polars_mlmetrics.data.door import check_columns
from polars_mlmetrics.data.expressions import all_of
from polars_mlmetrics.data.roles import MODEL, Table
from polars_mlmetrics.engine.replicates import WITHOUT
from polars_mlmetrics.engine.sources import LogSource, Source
from polars_mlmetrics.errors import INTERNAL, MetricError
from polars_mlmetrics.formula.arithmetic import first_that_holds
from polars_mlmetrics.formula.measure import Measure, Node
from polars_mlmetrics.formula.over_targets import counts_in, samples_of
from polars_mlmetrics.formula.row_counts import RowCounts
from polars_mlmetrics.intervals.student_t import benjamini_hochberg
from polars_mlmetrics.query.query import Query
from polars_mlmetrics.query.question import Question
from polars_mlmetrics.query.reported_value import several_models
from polars_mlmetrics.query.results import stacked
from polars_mlmetrics.query.source import slices_of, source_of

ROWS = f"{INTERNAL}comparisons"

Adjust = Literal["bh"] | None


class Alike(NamedTuple):
    """Metrics to which the same rows count, and the counts of the samples that have such rows."""

    samples: list[Measure]
    metrics: list[Node]


class ComparedPart(NamedTuple):
    """Some candidates, the source of their values and of the baseline's, and the metrics that are worked out of it."""

    candidates: pl.Series
    source: Source
    groups: list[Alike]


class Comparison(ABC):
    """Models that are compared with a baseline. The last by column of the query is that of the models."""

    _differences = Differences
    _equal_is_no_change = True
    """Whether sides that differ in no bucket are alike: of pairs they are, and three rows of each tell little."""
    _where_samples_are_named = ""

    def __init__(self, question: Question, baseline: Any, margin: float | None, adjust: Adjust) -> None:
        assert question.confidence is not None
        self._question = question
        self._query_by_model = question.query
        *by, self._model = question.query.by
        self._query = replace(question.query, by=by)
        self._by = [key.column for key in by]
        self._confidence = question.confidence
        self._baseline = baseline
        self._margin = margin
        self._adjust = adjust
        self._query.check_names([self._model.name, *COLUMNS])
        for measure in self._query.measures:
            if measure.grain == "label" and measure.table.label == self._model.column:
                raise MetricError(
                    f"{measure.output_name} is an average over the labels, and {self._model.name!r} is their column: "
                    "the sides that are compared have none in common. Compare labels by a metric without average=."
                )

    def _models(self) -> pl.LazyFrame:
        """The column of the models."""
        return self._query.rows.select(self._model.column)

    def _parts(self, slicing: Sequence[str], query: Query) -> list[ComparedPart]:
        """The candidates, together where the same rows are compared: all of each, unless pairs are looked for."""
        return [ComparedPart(self._candidates, self._question.source, self._alike)]

    @abstractmethod
    def _with_pairs(self, plan: PairPlan, alike: Alike, part: ComparedPart) -> Callable[[pl.LazyFrame], pl.LazyFrame]:
        """A function that adds to a table of groups how many samples are pairs and how many are not; null if unknown.

        It adds to the plan what it needs at once.
        """

    def table(self, apart: Sequence[str] = (), of_whole: Sequence[str] = ()) -> pl.LazyFrame:
        """The differences of every candidate, in every group; metrics that are `of_whole` are not sliced.

        Slicings that stand `apart` are a family of their own: others have the verdicts that they have without them.
        """
        query = self._query
        sliced = [metric for metric in query.metrics if metric.output_name not in of_whole]
        whole = [metric for metric in query.metrics if metric.output_name in of_whole]
        parts = [replace(query, metrics=sliced)] if sliced else []
        parts += [replace(query, metrics=whole, slices=[], lists={})] if whole else []
        tables = [stacked(part, partial(self._of_grouping, part), [self._model.name, *COLUMNS]) for part in parts]
        return self._judged(pl.concat(tables, how="diagonal") if tables[1:] else tables[0], apart)

    def paired_table(self) -> pl.LazyFrame:
        """The same; an error where no group has a pair."""
        table = self.table().collect()
        if table.height and table["n_pairs"].eq_missing(0).all():
            sample = self._query.measures[0].table.sample
            raise nothing_paired(sample, self._model.name, self._baseline, self._where_samples_are_named)
        return table.lazy()

    def empty(self) -> pl.LazyFrame:
        """A table of the same columns, without rows."""
        return COLUMNS.empty(self._query.types_of_keys(self._model))

    @cached_property
    def _candidates(self) -> pl.Series:
        """The models that are compared with the baseline."""
        return candidates_of(self._models(), self._baseline, self._model.name)

    @cached_property
    def _alike(self) -> list[Alike]:
        """The metrics, those together to which the same rows count."""
        found: dict[tuple[object, ...], Alike] = {}
        for metric in self._query.metrics:
            samples = samples_of(metric)
            found.setdefault(tuple(samples), Alike([*samples.values()], [])).metrics.append(metric)
        return [*found.values()]

    def _of_grouping(self, query: Query, by: list[str]) -> pl.LazyFrame:
        parts = self._parts(by[len(self._by) :], query)
        wanted = {metric.output_name for metric in query.metrics}
        rows = [table for part in parts for table in self._of_part(part, by, wanted)]
        table = pl.concat(rows).explode(ROWS).unnest(ROWS)
        in_order = pl.col("metric").cast(pl.Enum([metric.output_name for metric in self._query.metrics]))
        return table.sort(PAIR, in_order, nulls_last=True).with_columns(pl.col(PAIR).alias(self._model.name))

    def _of_part(self, part: ComparedPart, by: list[str], wanted: set[str]) -> list[pl.LazyFrame]:
        """One row a group and candidate, with a list of the rows of the metrics; a table for those alike."""
        pairs = Pairs(part.source, self._by, self._model.column, self._baseline, part.candidates)
        plan = PairPlan(pairs, [*by, PAIR], self._query.readings)
        differences = self._differences(plan, self._confidence)
        kinds = []
        for alike in part.groups:
            metrics = [metric for metric in alike.metrics if metric.output_name in wanted]
            if not metrics:
                continue
            with_pairs = self._with_pairs(plan, alike, part)
            rows = pl.concat_list(self._row(differences, plan, metric) for metric in metrics)
            kinds.append((with_pairs, rows.alias(ROWS)))
        table = differences.table()
        table = table.cache() if kinds[1:] else table
        return [with_pairs(table).select(*plan.keys, rows) for with_pairs, rows in kinds]

    def _row(self, differences: Differences, plan: PairPlan, metric: Node) -> pl.Expr:
        # The sides may be days, and models no group.
        several = [] if self._model.column == MODEL else several_models(metric, plan)
        return differences.row(metric, self._n_clusters(plan, metric), several)

    def _n_clusters(self, plan: PairPlan, metric: Node) -> pl.Expr:
        """How many clusters the pairs of a group are in; null where that is not known."""
        return pl.col(N_PAIRS)

    def _judged(self, table: pl.LazyFrame, apart: Sequence[str]) -> pl.LazyFrame:
        """The table, with p adjusted and with verdicts."""
        family: list[str | pl.Expr] = ["metric", pl.col(self._model.name)]
        if self._query.slices is not None:
            family.append(pl.col("slice") == "")  # a column may be called "", and `sliced_by` is "" then too
            family.append(pl.col("sliced_by").is_in(list(apart)))
        adjusted = pl.col("p") if self._adjust is None else benjamini_hochberg(family)
        table = table.with_columns(adjusted.alias("p_adjusted"))
        can_be_judged = pl.col("verdict").is_not_null()
        return table.with_columns(pl.when(can_be_judged).then(self._verdict()).alias("verdict"))

    def _verdict(self) -> pl.Expr:
        best = {metric.output_name: metric.best for metric in self._query.metrics}
        ups = [name for name, end in best.items() if end == "max"]
        downs = [name for name, end in best.items() if end == "min"]
        metric, is_found = pl.col("metric"), pl.col("p_adjusted") < 1 - self._confidence.level
        is_good = pl.when(metric.is_in(downs)).then(pl.col("difference") < 0).otherwise(pl.col("difference") > 0)
        low_is_within, high_is_within = self._within_margin()
        # There is no difference, in no bucket, where a margin says how large it may be.
        is_always_equal = (pl.col("ci_flag") == "degenerate") & (pl.col("difference") == 0)
        cases = [
            (~metric.is_in([*ups, *downs]), pl.lit(None, dtype=pl.String)),
            (low_is_within & high_is_within, pl.lit("no change")),
            (is_always_equal & self._equal_is_no_change & (self._margin is not None), pl.lit("no change")),
            # Nothing says how far the difference may be off: that is not the same as a test that finds none.
            (pl.col("low").is_null(), pl.lit(None, dtype=pl.String)),
            (is_found & is_good, pl.lit("better")),
            (is_found & ~is_good, pl.lit("worse")),
            (metric.is_in(downs) & high_is_within, pl.lit("not worse")),
            (metric.is_in(ups) & low_is_within, pl.lit("not worse")),
        ]
        return first_that_holds(cases, pl.lit(UNCLEAR))

    def _within_margin(self) -> tuple[pl.Expr, pl.Expr]:
        """Whether each end of the interval, low and high, lies within the margin on its side of 0."""
        if self._margin is None:
            return pl.lit(False), pl.lit(False)
        return pl.col("low") >= -self._margin, pl.col("high") <= self._margin


class OfLog(Comparison):
    """Models in a log: the samples of each pair are the same."""

    def _models(self) -> pl.LazyFrame:
        # Models without a sample are in no pair.
        return self._log.rows.select(self._model.column)

    @cached_property
    def _log(self) -> LogSource:
        check_columns(self._table.sample, self._query.schema, what="sample column")
        # A row without a sample is in no pair.
        has_sample = all_of([pl.col(column).is_not_null() for column in self._table.sample])
        return source_of(self._query, self._question.passes).changed(lambda rows: rows.filter(has_sample))

    @cached_property
    def _table(self) -> Table:
        """The roles of all metrics: a pair is one for all of them that read a score or a truth."""
        table, *others = [measure.table for measure in self._query.measures]
        for other in others:
            table = table.with_unread_of(other)
            differences = other.with_unread_of(table).differences(table)
            differing = [word for word in differences if not word.startswith(("weight=", "label="))]
            if differing:
                raise MetricError(
                    f"compare needs one sample, score and truth for all metrics, and one has {differing[0]}: call it "
                    "once for each."
                )
        return table

    @cached_property
    def _kinds(self) -> list[SameRows]:
        return [
            SameRows(place, [counts.door().included(counts.grain) for counts in alike.samples])
            for place, alike in enumerate(self._alike)
        ]

    @cached_property
    def _pairing(self) -> Pairing:
        slicings = [[key.column for key in keys] for keys in self._query.groupings]
        keys = self._by, self._table.sample, slicings, self._model.column
        return Pairing(self._log, self._kinds, *keys, self._baseline, self._candidates)

    def _parts(self, slicing: Sequence[str], query: Query) -> list[ComparedPart]:
        found: dict[tuple[int, str], ComparedPart] = {}
        for kind, alike in zip(self._kinds, self._alike, strict=True):
            for candidates, log in self._pairing.parts(kind, slicing):
                # Metrics of the same pairs are worked out together. A model may be a struct, which has no hash.
                name = id(log), repr(candidates.to_list())
                found.setdefault(name, ComparedPart(candidates, self._source_of(log, query), [])).groups.append(alike)
        return [*found.values()]

    def _source_of(self, log: LogSource, query: Query) -> Source:
        name = id(log), bool(query.slices)
        if name not in self._sources:
            by_model = replace(self._query_by_model, slices=query.slices, lists=query.lists)
            self._sources[name] = slices_of(by_model, log, [WITHOUT], is_collected=True)
        return self._sources[name]

    @cached_property
    def _sources(self) -> dict[tuple[int, bool], Source]:
        return {}

    def _n_clusters(self, plan: PairPlan, metric: Node) -> pl.Expr:
        cluster = tuple(self._confidence.cluster)
        is_sample = cluster == self._table.sample
        return pl.col(N_PAIRS) if is_sample else self._least(plan, metric, lambda counts: counts.clusters(cluster))

    def _least(self, plan: PairPlan, metric: Node, count: Callable[[RowCounts], Measure]) -> pl.Expr:
        """A count of the candidate's rows: the least of those of the parts of a metric, as in a tidy table."""
        return pl.min_horizontal(plan.sides(count(counts))[0] for counts in counts_in(metric))

    def _with_pairs(self, plan: PairPlan, alike: Alike, part: ComparedPart) -> Callable[[pl.LazyFrame], pl.LazyFrame]:
        slicing = [key for key in plan.keys if key not in (*self._by, PAIR)]
        counts = self._pairing.counts(self._kinds[self._alike.index(alike)], slicing)
        counts = counts.join(pl.LazyFrame({PAIR: part.candidates}), on=PAIR, how="semi", nulls_equal=True)

        def with_counts(table: pl.LazyFrame) -> pl.LazyFrame:
            # A group without a pair may have no rows to work with, and is there all the same.
            table = table.join(counts, on=plan.keys, how="full", nulls_equal=True, coalesce=True)
            return table.with_columns(pl.col(N_PAIRS, N_UNPAIRED).fill_null(0))

        return with_counts


class OfState(Comparison):
    """Models in a state, which has no samples: all rows of each, paired bucket by bucket."""

    _where_samples_are_named = "when the state is made, "

    def _with_pairs(self, plan: PairPlan, alike: Alike, part: ComparedPart) -> Callable[[pl.LazyFrame], pl.LazyFrame]:
        n_pairs = pl.when(plan.is_there).then(self._n_pairs(plan, alike)).otherwise(0)
        return lambda table: table.with_columns(
            n_pairs.cast(pl.Int64, strict=False).alias(N_PAIRS), pl.lit(None, dtype=pl.Int64).alias(N_UNPAIRED)
        )

    def _n_pairs(self, plan: PairPlan, alike: Alike) -> pl.Expr:
        """How many pairs there are in a group that both have; null where that is not known."""
        if not has_pairs_alone(self._question, self._model.name) or not all(map(plan.can_answer, alike.samples)):
            return pl.lit(None)
        sides = [plan.sides(count) for count in alike.samples]
        # A state of a file that one of the models lacks holds samples of the other alone.
        is_known = [(ours == theirs) | (ours == 0) | (theirs == 0) for ours, theirs in sides]
        return pl.when(is_known).then(pl.min_horizontal(count for counts in sides for count in counts))


class OfAllRows(Comparison):
    """Sides in a log or in a state that may have other samples: all rows of each."""

    _differences = DifferencesOfAllRows
    _equal_is_no_change = False

    def __init__(self, *comparison: Any) -> None:
        super().__init__(*comparison)
        if has_pairs_alone(self._question, self._model.name):
            raise only_pairs(self._model.name)

    def _with_pairs(self, plan: PairPlan, alike: Alike, part: ComparedPart) -> Callable[[pl.LazyFrame], pl.LazyFrame]:
        nothing = pl.lit(None, dtype=pl.Int64)
        return lambda table: table.with_columns(nothing.alias(N_PAIRS), nothing.alias(N_UNPAIRED))


def has_pairs_alone(question: Question, between: str) -> bool:
    """Whether it is about a state that was made of the pairs of these models."""
    return question.state is not None and question.state.between == between
