"""Ranks: which places each of several models may have, from the differences of every two of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import polars as pl

from polars_mlmetrics.contrasts.comparison import has_pairs_alone
from polars_mlmetrics.contrasts.in_memory import (
    BUCKETS,
    DECIDING,
    DF,
    ERROR,
    HAS,
    HAS_OTHER,
    OF_ALL,
    SIZE,
    VALUE,
    are_numbered,
    replicated,
    two_by_two,
    without_each,
)
from polars_mlmetrics.data.door import check_columns
from polars_mlmetrics.data.expressions import all_of, any_of
from polars_mlmetrics.data.roles import MODEL
from polars_mlmetrics.engine.folds import fold, matched
from polars_mlmetrics.engine.plan import Plan
from polars_mlmetrics.engine.replicates import WITHOUT
from polars_mlmetrics.engine.sources import Source
from polars_mlmetrics.errors import INTERNAL, MetricError, TableError, typed
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.formula.over_targets import samples_of_all
from polars_mlmetrics.formula.tree import WITHOUT_INTERVAL
from polars_mlmetrics.intervals.interval import FEW_BUCKETS, FEW_CLUSTERS, few_decide
from polars_mlmetrics.intervals.intervals import Intervals, flag_of, flag_without_interval
from polars_mlmetrics.intervals.kinds import coarseness_of, core_of
from polars_mlmetrics.intervals.student_t import clusters_in, holm, p_value, t_at
from polars_mlmetrics.query.complete_samples import COUNTED, LEFT_OUT, CompleteSamples
from polars_mlmetrics.query.keys import KeyColumn
from polars_mlmetrics.query.question import Confidence, Question
from polars_mlmetrics.query.reported_value import several_models
from polars_mlmetrics.query.results import ResultColumns, stacked
from polars_mlmetrics.query.source import slices_of, source_of

COLUMNS = ResultColumns.of(
    (pl.String, "metric"),
    (pl.Float64, "value"),
    (pl.Int64, "rank_low", "rank_high"),
    (pl.Boolean, "tied_with_best"),
    (pl.Int64, "n_samples", "n_left_out", "n_buckets"),
    (pl.String, "ci_flag"),
)
"""The columns of each model."""

DIGITS = 12
"""The digits in which values that differ are two values."""

GROUP, ONE, OTHER, BOUND, SHOWN = (f"{INTERNAL}{name}" for name in ("group", "one", "other", "bound", "shown"))
POOLED, RARE, FEW, TAKES_PART, WON, LOST, N_MODELS = (
    f"{INTERNAL}{name}" for name in ("pooled", "rare", "few", "takes_part", "won", "lost", "n_models")
)
FEWEST, FEW_BEHIND, UNKNOWN, CONSTANT, COARSE, NUMBERED = (
    f"{INTERNAL}{name}" for name in ("fewest", "few_behind", "unknown", "constant", "coarse", "numbered")
)

MOST_CELLS = 8_000_000
"""So many values without a bucket, each beside those of all models of its group, are in memory at once."""


class Rows(NamedTuple):
    """The rows of one grouping, of the samples that all models have."""

    source: Source
    models: pl.LazyFrame | None = None
    """All models of each group, and how many samples count; None where the source has them all."""


class Ranks:
    """The ranks of models. Their column is the last by column of the query."""

    def __init__(self, question: Question) -> None:
        assert question.confidence is not None
        self._question = question
        *by, self._model = question.query.by
        self._query = replace(question.query, by=by)
        self._by = [key.column for key in by]
        self._confidence: Confidence = question.confidence
        (self._metric,) = question.query.metrics
        self._core, _ = core_of(self._metric)
        self._query.check_names([self._model.name, *COLUMNS])
        self._samples = samples_of_all([self._metric])

    def empty(self) -> pl.LazyFrame:
        """A table of the same columns, without rows."""
        return COLUMNS.empty(self._query.types_of_keys(self._model))

    def table(self) -> pl.LazyFrame:
        """One row a group, slice and model."""
        table = stacked(self._query, self._of_grouping, [self._model.name, *COLUMNS]).collect()
        if table.height and table[self._model.name].n_unique() > 1 and table["ci_flag"].eq_missing("no_pairs").all():
            raise TableError(
                f"there is nothing to rank: no sample counts for all values of {self._model.name!r}. Pass "
                f"{typed('sample')} for a column that has the same values for all of them."
            )
        return table.lazy()

    def _of_grouping(self, by: list[str]) -> pl.LazyFrame:
        rows, keys = self._rows_of(by), [*by, self._model.column]
        plan = Plan(rows.source, keys, self._query.readings)
        tables = [self._values(plan, rows)]
        if self._has_interval(plan):
            tables += without_each(plan, [self._core], by, self._confidence)
        values, *cells = pl.collect_all(tables)
        values = _numbered(values, by)
        ranks = self._ranks(values, *cells) if cells else None
        return self._named(values.lazy(), ranks)

    def _has_interval(self, plan: Plan) -> bool:
        is_judged = self._core.interval_kind not in WITHOUT_INTERVAL and self._confidence.are_whole
        return is_judged and plan.merges(self._core)

    # -- values -------------------------------------------------------------------------------------------------

    def _rows_of(self, by: list[str]) -> Rows:
        if self._question.is_of_state:
            return Rows(self._question.source)
        samples = {measure.table.sample for measure in self._query.measures}
        if len(samples) > 1:
            raise MetricError(f"rank needs one sample column, and {self._metric.output_name} has several.")
        (sample,) = samples
        model = self._model.column
        check_columns(sample, self._query.schema, what="sample column")
        has_sample = all_of([pl.col(column).is_not_null() for column in sample])
        log = source_of(self._question.query, self._question.passes).changed(lambda rows: rows.filter(has_sample))
        keys = [KeyColumn(column, column) for column in (*by, model)]
        query = replace(self._question.query, by=keys, slices=None)
        kept, models = CompleteSamples(log, by, model, sample, self._samples).counted()
        return Rows(slices_of(query, kept, [WITHOUT], is_collected=True), models)

    def _values(self, plan: Plan, rows: Rows) -> pl.LazyFrame:
        """The value of each model, and all that is known of it beside its replicates."""
        rare = Intervals(plan, self._confidence).rare(self._core)
        # The sides may be days, and models no group.
        several = [] if self._model.column == MODEL else several_models(self._metric, plan)
        columns = {
            VALUE: plan.value(self._core).cast(pl.Float64),
            SHOWN: plan.value(self._metric).cast(pl.Float64),
            POOLED: any_of([plan.value(each) > 0 for each in several]),
            RARE: rare["rare_labels"],
            FEW: rare["few_positives"],
            BOUND: pl.sum_horizontal([pl.lit(0.0), *map(plan.value, coarseness_of(self._core))]),
        }
        if rows.models is None:
            columns |= {COUNTED: self._counted(plan), LEFT_OUT: pl.lit(None, pl.Int64)}
        table = plan.groups().select(*plan.by, *(column.alias(name) for name, column in columns.items()))
        if rows.models is not None:
            table = matched(rows.models, table, plan.by, how="left")
        # A metric may have a value of no rows.
        takes_part = pl.col(VALUE).is_finite().fill_null(False) & (pl.col(COUNTED) > 0).fill_null(True)
        return table.with_columns(takes_part.alias(TAKES_PART)).with_row_index(ONE)

    def _counted(self, plan: Plan) -> pl.Expr:
        """How many samples count, of a state; null where it may hold samples that only some models have."""
        is_known = has_pairs_alone(self._question, self._model.name) and all(map(plan.can_answer, self._samples))
        counted = pl.min_horizontal(map(plan.value, self._samples)) if is_known else pl.lit(None)
        return counted.cast(pl.Int64)

    # -- ranks --------------------------------------------------------------------------------------------------

    def _ranks(self, values: pl.DataFrame, cells: pl.DataFrame) -> pl.LazyFrame:
        """One row a model that takes part: how many others are better and worse, and the worst of its pairs."""
        keys = [name for name in cells.columns if name not in (WITHOUT, VALUE, SIZE, HAS)]
        members = values.filter(TAKES_PART).select(*keys, GROUP, ONE)
        cells = cells.join(members, on=keys, nulls_equal=True).drop(keys)
        found = [
            replicated(_pairs(part), [GROUP, ONE, OTHER]).select(
                GROUP, ONE, OTHER, OF_ALL, ERROR, BUCKETS, DF, DECIDING
            )
            for part in _in_parts(cells, members)
        ]
        bounds = values.select(ONE, BOUND)
        pairs = pl.concat(found).join(bounds, on=ONE).join(bounds.rename({ONE: OTHER}), on=OTHER, suffix=OTHER)
        half = t_at(pl.col(DF), self._confidence.level) * pl.col(ERROR)
        pairs = pairs.with_columns(
            # Where nothing varies there is no test, and no difference is found.
            p_value(ratio(pl.col(OF_ALL), pl.col(ERROR)), pl.col(DF)).alias("p"),
            # Bins that may make all of a difference leave nothing to judge.
            (pl.col(BOUND) + pl.col(BOUND + OTHER) > half).fill_null(False).alias(COARSE),
        )
        is_found = (holm([GROUP]) < 1 - self._confidence.level).fill_null(False) & ~pl.col(COARSE)
        is_good = pl.col(OF_ALL) < 0 if self._metric.best == "min" else pl.col(OF_ALL) > 0
        pairs = pairs.with_columns((is_found & is_good).alias(WON), (is_found & ~is_good).alias(LOST))
        facts = [ERROR, BUCKETS, DECIDING, COARSE]
        both = pl.concat(
            [
                pairs.select(ONE, WON, LOST, *facts),
                pairs.select(pl.col(OTHER).alias(ONE), pl.col(LOST).alias(WON), pl.col(WON).alias(LOST), *facts),
            ]
        )
        columns = [
            pl.col(WON, LOST).sum().cast(pl.Int64),
            pl.col(BUCKETS).min().alias(FEWEST),
            few_decide(pl.col(DECIDING)).any().alias(FEW_BEHIND),
            pl.col(ERROR).is_null().any().alias(UNKNOWN),
            (pl.col(ERROR) == 0).all().alias(CONSTANT),
            pl.col(COARSE).any(),
        ]
        return fold(both.lazy(), [ONE], columns).with_columns(are_numbered(cells, self._confidence).alias(NUMBERED))

    def _named(self, table: pl.LazyFrame, ranks: pl.LazyFrame | None) -> pl.LazyFrame:
        """The columns of the result, under their public names; the best model of a group first."""
        takes_part, counted = pl.col(TAKES_PART), pl.col(COUNTED)
        is_same = counted.filter(takes_part).n_unique().over(GROUP) <= 1
        # A state of a file that one of the models lacks holds samples of the others alone.
        table = table.with_columns(
            pl.when(is_same | ~takes_part).then(counted).alias(COUNTED),
            takes_part.sum().over(GROUP).cast(pl.Int64).alias(N_MODELS),
            *(pl.col(name).any().over(GROUP) for name in (POOLED, RARE, FEW)),
        )
        if ranks is not None:
            table = table.join(ranks, on=ONE, how="left").with_columns(pl.col(WON, LOST).fill_null(0))
        else:
            table = table.with_columns(pl.lit(0).alias(WON), pl.lit(0).alias(LOST), pl.lit(None).alias(FEWEST))
        rank_low, rank_high = 1 + pl.col(LOST), pl.col(N_MODELS) - pl.col(WON)
        flag = flag_of(self._flags(has_interval=ranks is not None))
        apart = flag_of(
            {
                "no_pairs": (counted.max().over(GROUP) == 0).fill_null(False),
                "no_samples": (counted == 0).fill_null(False),
                "undefined_replicates": pl.lit(True),
            }
        )
        columns = {
            "metric": pl.lit(self._metric.output_name),
            "value": pl.when((counted > 0).fill_null(True)).then(pl.col(SHOWN)),
            "rank_low": pl.when(takes_part).then(rank_low),
            "rank_high": pl.when(takes_part).then(rank_high),
            "tied_with_best": pl.when(takes_part).then(rank_low == 1),
            "n_samples": counted,
            "n_left_out": pl.col(LEFT_OUT),
            "n_buckets": pl.when(takes_part).then(pl.col(FEWEST)),
            "ci_flag": pl.when(takes_part).then(flag).when(pl.col(VALUE).is_null() | (counted == 0)).then(apart),
        }
        is_max = self._metric.best == "max"
        # Equal values that were summed in another order come in the order of their models, not of their last digit.
        shown = pl.col(SHOWN).round_sig_figs(DIGITS)
        order = pl.when(takes_part).then(shown * (-1 if is_max else 1))
        table = table.sort(order, self._model.column, nulls_last=True)
        results = [column.cast(COLUMNS[name]).alias(name) for name, column in columns.items()]
        keys = pl.exclude([*COLUMNS, self._model.column])
        return table.select(keys, pl.col(self._model.column).alias(self._model.name), *results)

    def _flags(self, *, has_interval: bool) -> dict[str, pl.Expr]:
        pooled = pl.col(POOLED)
        if not has_interval:
            return {"pooled": pooled, flag_without_interval(self._core.interval_kind): pl.lit(True)}
        buckets = pl.col(FEWEST)
        seems = clusters_in(buckets, self._confidence.buckets, pl.col(NUMBERED))
        is_of_samples = all(list(each.table.sample) == list(self._confidence.cluster) for each in self._samples)
        clusters = pl.coalesce(pl.col(COUNTED), seems) if is_of_samples else seems
        return {
            "undefined_replicates": pl.col(UNKNOWN),
            "degenerate": pl.col(CONSTANT),
            "pooled": pooled,
            "few_buckets": buckets < FEW_BUCKETS,
            "few_decide": pl.col(FEW_BEHIND),
            "few_positives": pl.col(FEW),
            "biased": pl.lit(self._core.interval_kind == "biased"),
            "few_pairs": pl.col(COUNTED) < pl.col(LEFT_OUT),
            "coarse_bins": pl.col(COARSE),
            "low_n": clusters < FEW_CLUSTERS,
            "rare_labels": pl.col(RARE),
            "pairs_unknown": pl.col(COUNTED).is_null(),
        }


def _numbered(values: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """The values of models, with a number for each group."""
    if not by:
        return values.with_columns(pl.lit(0, pl.UInt32).alias(GROUP))
    return values.join(values.select(by).unique().with_row_index(GROUP), on=by, nulls_equal=True)


def _pairs(cells: pl.DataFrame) -> pl.DataFrame:
    """All pairs. A bucket tells of a difference where it alone has both values."""
    return two_by_two(cells, [GROUP], ONE, OTHER).with_columns(pl.col(HAS) & pl.col(HAS_OTHER))


def _in_parts(cells: pl.DataFrame, members: pl.DataFrame) -> Sequence[pl.DataFrame]:
    """The cells of groups, so many groups at once that their pairs fit into memory; at least one part."""
    pairs = (pl.len() * pl.col(ONE).n_unique()).alias(SIZE)
    largest: int = cells.group_by(GROUP).agg(pairs).select(pl.col(SIZE).max().fill_null(1)).item()
    step = max(divmod(MOST_CELLS, max(largest, 1))[0], 1)
    last: int = members.select(pl.col(GROUP).max().fill_null(0)).item()
    starts = range(0, last + 1, step)
    return [cells.filter(pl.col(GROUP).is_between(start, start + step - 1)) for start in starts]
