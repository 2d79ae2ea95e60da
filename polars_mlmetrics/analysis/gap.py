"""`gap`: how far apart the slices are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Unpack

import polars as pl

from polars_mlmetrics.contrasts.in_memory import (
    BUCKETS,
    DECIDING,
    DF,
    ERROR,
    HAS,
    HAS_OTHER,
    IS_KNOWN,
    OF_ALL,
    VALUE,
    replicated,
    two_by_two,
    without_each,
)
from polars_mlmetrics.data.expressions import any_of
from polars_mlmetrics.data.frames import AnyFrame, Names, as_given_later
from polars_mlmetrics.data.roles import Roles
from polars_mlmetrics.engine.folds import fold, matched
from polars_mlmetrics.engine.plan import Plan
from polars_mlmetrics.errors import INTERNAL, NameCollisionError, ParameterError, at_callers_line
from polars_mlmetrics.formula.arithmetic import ratio, reaches
from polars_mlmetrics.formula.measure import Node
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.formula.tree import WITHOUT_INTERVAL
from polars_mlmetrics.intervals.interval import FEW_BUCKETS, few_decide, unless_noise
from polars_mlmetrics.intervals.intervals import FLAGS, SEEMS_FEW, flag_of, flag_without_interval
from polars_mlmetrics.intervals.kinds import coarseness_of, core_of, is_share, range_of
from polars_mlmetrics.intervals.student_t import shared_level, t_at, welch
from polars_mlmetrics.query.keys import AnyKey, Keys, listed
from polars_mlmetrics.query.query import check_names, check_plain
from polars_mlmetrics.query.question import Confidence, Question
from polars_mlmetrics.query.reported_value import several_models
from polars_mlmetrics.query.results import ResultColumns, slice_text
from polars_mlmetrics.query.verb import Verb

GAP = Verb("gap", takes_states=True, needs_interval=True, has_grid=True)

COLUMNS = ResultColumns.of(
    (pl.String, "metric"),
    (pl.Float64, "gap", "low", "high", "ratio"),
    (pl.String, "worst"),
    (pl.Float64, "worst_value"),
    (pl.String, "best"),
    (pl.Float64, "best_value"),
    (pl.Int64, "n_slices"),
    (pl.String, "ci_flag"),
)
"""The columns of each group."""

LARGEST = "largest"
"""The word for a metric in the row of the largest gap of several metrics."""

SLICE, OTHER, TEXT, POOLED, BOUND, PLACE = (
    f"{INTERNAL}{name}" for name in ("slice", "other", "text", "pooled", "bound", "place")
)
PAIRS, QUANTILE, FEWEST, FEW, IS_SURE, OWN_ERROR, VARIES = (
    f"{INTERNAL}{name}" for name in ("pairs", "quantile", "fewest", "few", "is_sure", "own_error", "varies")
)

SURE_BUCKETS = 39
SURE_BUCKETS_OF_SHARE = 20
"""A slice of fewer buckets, the most extreme of many by chance, does not raise the low end. A value that is no share of
counts, such as a log loss, needs more: that of few samples is low, and seems to vary little, where no hard one is among
them."""


@at_callers_line
def gap(
    frame: AnyFrame,
    metrics: Metric | Sequence[Metric],
    over: Keys,
    by: Keys | None = None,
    *,
    ci: float = 0.95,
    cluster: Names = None,
    passes: int | Literal["auto", "files"] | None = None,
    memory: int | str | None = None,
    progress: bool = True,
    **roles: Unpack[Roles],
) -> AnyFrame:
    """The largest difference between two slices of each group, by one metric or by each of several, with an interval.

    The interval is that of the largest of all true differences. It looks at every pair of slices, with the level shared
    among the pairs (Bonferroni): a search for the largest difference finds one where there is none, and the interval of
    that one pair would not know of the search. So `low` is often 0. With several metrics the level is shared among the
    pairs of all of them, so that all intervals of a group are right at once. Each pair has the degrees of freedom of
    its two slices (Welch and Satterthwaite). A slice in fewer than 39 of the 64 buckets (some 60 clusters), or in fewer
    than 20 (some 24) of a share such as a recall, does not raise `low`: of many small slices, one is far off by chance.

    Parameters
    ----------
    frame
        The long table, or a state with these columns among its by columns.
    metrics
        The metric, or a list of several, such as recall and false positive rate for the equalized odds. The largest of
        their gaps says something where they have one unit.
    over
        The column (or row-wise expression), or several, whose values are the slices.
    by, cluster, **roles
        As in `evaluate`; of a state, `by` alone.
    ci
        The level of the interval.
    passes, memory, progress
        As in `evaluate`, of a log.

    Returns
    -------
    One row a group and metric: the `metric`; the difference (`gap`) with `low` and `high`; the lowest value divided by
    the highest (`ratio`); the `worst` and the `best` slice with their values, `worst_value` and `best_value` (of a
    metric without a direction, the lowest and the highest); how many slices have a value (`n_slices`); and `ci_flag`,
    as in a tidy table: "few_buckets" or "few_decide" if that is so in one slice. Where a slice is NaN, so is the gap,
    and the slice is the `worst`. An undefined slice, which is null, has no value.

    With several metrics each group has one row more, whose `metric` is "largest": the largest of their gaps, with the
    slices, values and `ratio` of its metric. The largest true difference by any of them lies between its `low` and
    `high`. Where one metric has no ends or no gap, this row has no ends, and the flag of that metric (null where there
    is no gap). Else its flag is the first of theirs, in the order in which the pages list the flags.

    Raises
    ------
    ColumnError
        If a column that is named, or that a metric reads, is not in the frame or has another type.

    See Also
    --------
    find_slices : slices of several columns.
    compare : differences of models.

    References
    ----------
    Hardt, Price and Srebro, "Equality of opportunity in supervised learning", 2016.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> log = pl.DataFrame({"sample": range(300), "country": ["DE", "FR", "US"] * 100}).with_columns(
    ...     truth=1, score=pl.when((pl.col("country") == "FR") & (pl.col("sample") % 2 == 0)).then(0.2).otherwise(0.8)
    ... )
    >>> mlm.gap(log, mlm.recall(), over="country").select(pl.col("gap", "low", "high").round(2), "worst", "best")
    shape: (1, 5)
    ┌─────┬──────┬──────┬────────────┬────────────┐
    │ gap ┆ low  ┆ high ┆ worst      ┆ best       │
    │ --- ┆ ---  ┆ ---  ┆ ---        ┆ ---        │
    │ f64 ┆ f64  ┆ f64  ┆ str        ┆ str        │
    ╞═════╪══════╪══════╪════════════╪════════════╡
    │ 0.5 ┆ 0.38 ┆ 0.62 ┆ country=FR ┆ country=DE │
    └─────┴──────┴──────┴────────────┴────────────┘

    The equalized odds:

    >>> log = log.with_columns(truth=pl.col("sample") % 7 > 2)
    >>> odds = mlm.gap(log, [mlm.recall(), mlm.false_positive_rate()], over="country")
    >>> odds.select("metric", pl.col("gap", "low", "high").round(2), "worst", "best")
    shape: (3, 6)
    ┌─────────────────────┬──────┬──────┬──────┬────────────┬────────────┐
    │ metric              ┆ gap  ┆ low  ┆ high ┆ worst      ┆ best       │
    │ ---                 ┆ ---  ┆ ---  ┆ ---  ┆ ---        ┆ ---        │
    │ str                 ┆ f64  ┆ f64  ┆ f64  ┆ str        ┆ str        │
    ╞═════════════════════╪══════╪══════╪══════╪════════════╪════════════╡
    │ recall              ┆ 0.51 ┆ 0.32 ┆ 0.69 ┆ country=FR ┆ country=DE │
    │ false_positive_rate ┆ 0.49 ┆ 0.28 ┆ 0.7  ┆ country=DE ┆ country=FR │
    │ largest             ┆ 0.51 ┆ 0.32 ┆ 0.7  ┆ country=FR ┆ country=DE │
    └─────────────────────┴──────┴──────┴──────┴────────────┴────────────┘
    """
    groups: list[AnyKey] = listed(by)
    question = Question.read(GAP, frame, [metrics], [*groups, *listed(over)], ci=ci, cluster=cluster, roles=roles)
    gaps = Gaps(question.with_passes(passes, memory, progress=progress), len(groups))
    return as_given_later(frame, gaps.table, gaps.empty)


class Gaps:
    """The gaps of each group, by metric."""

    def __init__(self, question: Question, n_groups: int) -> None:
        query = question.query
        self._query = query
        self._source = question.source
        assert question.confidence is not None
        self._confidence: Confidence = question.confidence
        self._groups, self._over = query.by[:n_groups], query.by[n_groups:]
        self._by = [key.column for key in self._groups]
        if not self._over:
            raise ParameterError("gap needs the slices to compare: pass over=, a column or a list of columns.")
        for key in self._over:
            check_plain(key, query.schema)
        check_names([*(key.name for key in self._groups), *COLUMNS])
        names = [metric.output_name for metric in query.metrics]
        if len(names) > 1 and LARGEST in names:
            raise NameCollisionError(
                f"of several metrics gap has a row {LARGEST!r}: use .alias(...) on the metric of that name."
            )

    def empty(self) -> pl.LazyFrame:
        """A table of the same columns, without rows."""
        return COLUMNS.empty(self._query.types_of(self._groups))

    def table(self) -> pl.LazyFrame:
        """One row a group and metric, and one for the largest gap where there are several metrics."""
        plan = Plan(self._source, [key.column for key in self._query.by], self._query.readings)
        metrics = [Between(metric, plan, self._by, self._confidence) for metric in self._query.metrics]
        judged = [between for between in metrics if between.has_interval]
        groups = plan.groups().with_columns(slice_text(self._query, self._over, apart=True).alias(TEXT))
        tables = [groups.select(*plan.by, TEXT, *between.columns) for between in metrics]
        if judged:
            tables += without_each(plan, [between.core for between in judged], self._by, self._confidence)
        collected = pl.collect_all(tables)
        values, cells = collected[: len(metrics)], dict(zip(judged, collected[len(metrics) :], strict=True))
        n_pairs = self._n_pairs(values)
        found = [
            between.table(of_slices, cells.get(between), n_pairs).with_columns(pl.lit(place).alias(PLACE))
            for place, (between, of_slices) in enumerate(zip(metrics, values, strict=True))
        ]
        table = pl.concat(found)
        if len(metrics) > 1:
            table = pl.concat([table, self._largest(table)], how="diagonal")
        keys = [pl.col(key.column).alias(key.name) for key in self._groups]
        return table.sort(*self._by, PLACE, nulls_last=False).select(*keys, *COLUMNS)

    def _n_pairs(self, values: Sequence[pl.DataFrame]) -> pl.LazyFrame:
        """How many pairs of slices each group has, of all metrics together: the level is shared among them."""
        n = pl.col(VALUE).count().cast(pl.Float64)
        tables = [fold(each.lazy(), self._by, [(0.5 * n * (n - 1)).alias(PAIRS)]) for each in values]
        return fold(pl.concat(tables), self._by, [pl.col(PAIRS).sum().cast(pl.Int64)])

    def _largest(self, table: pl.LazyFrame) -> pl.LazyFrame:
        """One row a group: the largest gap of all metrics, from the row of each."""
        gap, has_ends = pl.col("gap"), pl.col("low").is_not_null()
        # A gap that is NaN may be any, so none is larger.
        order = ~gap.is_nan(), ~reaches(gap, gap.max()), pl.col(PLACE)
        of_largest = ("gap", "ratio", "worst", "worst_value", "best", "best_value", "n_slices")
        # That one metric has no ends comes before what there is to say of ends.
        flag, in_order = pl.col("ci_flag"), pl.Enum([*FLAGS])
        columns = [
            pl.col(of_largest).sort_by(*order, nulls_last=True).first(),
            pl.when(has_ends.all()).then(pl.col("low", "high").max()),
            flag.sort_by(has_ends, flag.cast(in_order), nulls_last=True).first(),
            pl.col(PLACE).max() + 1,
        ]
        largest = fold(table, self._by, columns)
        return largest.with_columns(pl.when(gap.is_finite()).then("ci_flag"), metric=pl.lit(LARGEST))


class Between:
    """The slices of each group, two by two, by one metric."""

    def __init__(self, metric: Node, plan: Plan, by: Sequence[str], confidence: Confidence) -> None:
        self._metric = metric
        self._slice_keys = plan.by
        self._by = by
        self._confidence = confidence
        self.core, _ = core_of(metric)
        few = SURE_BUCKETS_OF_SHARE if is_share(self.core, plan) else SURE_BUCKETS
        self._sure_buckets = min(few, confidence.buckets)
        is_judged = self.core.interval_kind not in WITHOUT_INTERVAL and confidence.are_whole
        self.has_interval = is_judged and plan.merges(self.core)
        several = any_of([plan.value(each) > 0 for each in several_models(metric, plan)])
        bound = pl.sum_horizontal([pl.lit(0.0), *map(plan.value, coarseness_of(self.core))])
        value = plan.value(metric).cast(pl.Float64)
        self.columns = [value.alias(VALUE), several.alias(POOLED), bound.alias(BOUND)]
        """The columns of each slice."""

    def table(self, values: pl.DataFrame, cells: pl.DataFrame | None, n_pairs: pl.LazyFrame) -> pl.LazyFrame:
        """One row a group. Cells are the slices without each bucket, where these give an interval."""
        # A group in which no slice has a value is there all the same.
        groups = values.lazy().select(self._by).unique()
        values = (
            values.filter(pl.col(VALUE).is_not_null()).sort(self._slice_keys, nulls_last=True).with_row_index(SLICE)
        )
        table = self._extremes(values.lazy())
        table = matched(groups, table, self._by, how="left") if self._by else table
        table = table.with_columns(pl.col("n_slices").fill_null(0))
        return self._named(table, None if cells is None else self._ends(values, cells, n_pairs))

    def _named(self, table: pl.LazyFrame, ends: pl.LazyFrame | None) -> pl.LazyFrame:
        """The columns of the result, under their public names."""
        if ends is None:
            flags = {"pooled": pl.col(POOLED), flag_without_interval(self._metric.interval_kind): pl.lit(True)}
            table = table.with_columns(low=None, high=None, ci_flag=flag_of(flags))
        else:
            flags = {
                "undefined_replicates": ~pl.col(IS_KNOWN),
                "degenerate": ~pl.col(VARIES),
                "pooled": pl.col(POOLED),
                "few_buckets": pl.col(FEWEST) < FEW_BUCKETS,
                "few_decide": pl.col(FEW),
                "biased": pl.lit(self._metric.interval_kind == "biased"),
                "coarse_bins": pl.col(BOUND) > 0.5 * (pl.col("high") - pl.col("low")),
            }
            table = matched(table, ends, self._by, how="left").with_columns(ci_flag=flag_of(flags))
        of_interval = pl.when(pl.col("gap").is_finite()).then(pl.col("low", "high", "ci_flag"))
        table = table.with_columns(of_interval, metric=pl.lit(self._metric.output_name))
        return table.select(*self._by, *COLUMNS.cast())

    def _extremes(self, values: pl.LazyFrame) -> pl.LazyFrame:
        """The columns of each group, but for the interval."""
        text, nan = pl.col(TEXT), pl.lit(float("nan"))
        value = pl.col(VALUE).fill_nan(None)
        # Of equal values the first slice is named.
        ends = [
            (text.sort_by(order, text, nulls_last=True).first(), end)
            for order, end in ((value, value.min()), (-value, value.max()))
        ]
        (worst, worst_value), (best, best_value) = reversed(ends) if self._metric.best == "min" else ends
        difference = unless_noise(value.max() - value.min(), value.max().abs() + value.min().abs())
        # A value that is NaN may be any: nothing is worse, and nobody knows how far it is from the others.
        broken, is_broken = pl.col(VALUE).is_nan(), pl.col(VALUE).is_nan().any()
        named = {
            "worst": pl.when(is_broken).then(text.sort_by(~broken, text).first()).otherwise(worst),
            "best": pl.when(value.count() > 0).then(best),
            "best_value": best_value,
        }
        numbers = {"gap": difference, "ratio": ratio(value.min(), value.max()), "worst_value": worst_value}
        named |= {name: pl.when(is_broken).then(nan).otherwise(number) for name, number in numbers.items()}
        columns = [pl.when((pl.len() > 1) | is_broken).then(column).alias(name) for name, column in named.items()]
        # Of the two slices that are furthest apart each may be off by as much.
        facts = pl.col(POOLED).any(), pl.col(BOUND).top_k(2).sum()
        return fold(values, self._by, [*columns, pl.len().cast(pl.Int64).alias("n_slices"), *facts])

    def _ends(self, values: pl.DataFrame, cells: pl.DataFrame, n_pairs: pl.LazyFrame) -> pl.LazyFrame:
        """The ends of the interval of each group, from every pair of its slices."""
        keys = self._slice_keys
        cells = cells.join(values.select(*keys, SLICE), on=keys, nulls_equal=True)
        slices = replicated(cells, [SLICE])
        # A value that nothing moves, as a recall of 1, may stand on a few samples that were hit by chance.
        few = self._sure_buckets
        is_sure = pl.col(BUCKETS) >= pl.when(pl.col(ERROR) > 0).then(few).otherwise(max(few, SEEMS_FEW + 1))
        facts = (
            pl.col(BUCKETS).alias(FEWEST),
            few_decide(pl.col(DECIDING)).alias(FEW),
            is_sure.alias(IS_SURE),
        )
        slices = slices.select(SLICE, pl.col(ERROR).alias(OWN_ERROR), DF, *facts)
        pairs = two_by_two(cells, self._by, SLICE, OTHER).with_columns(pl.col(HAS) | pl.col(HAS_OTHER))
        pairs = replicated(pairs, [*self._by, SLICE, OTHER]).drop(DF)
        pairs = pairs.join(slices, on=SLICE).join(slices.rename({SLICE: OTHER}), on=OTHER, suffix=OTHER)
        pairs = matched(pairs.lazy(), n_pairs, self._by).collect()
        return self._over_pairs(self._with_quantiles(pairs).lazy())

    def _with_quantiles(self, pairs: pl.DataFrame) -> pl.DataFrame:
        """The pairs, with the quantile of each."""
        errors, of_sides = ([pl.col(name), pl.col(name + OTHER)] for name in (OWN_ERROR, DF))
        # Where neither slice varies, any will do.
        df = pl.coalesce(welch(errors, of_sides), pl.max_horizontal(pl.col(BUCKETS) - 1, pl.lit(1)).cast(pl.Float64))
        pairs = pairs.with_columns(pl.col(OF_ALL).abs(), df.alias(DF))
        level, parts = self._confidence.level, pairs.partition_by(PAIRS, as_dict=True).items()
        found = [part.with_columns(t_at(pl.col(DF), shared_level(level, n)).alias(QUANTILE)) for (n,), part in parts]
        return pl.concat(found) if found else pairs.with_columns(pl.lit(None, pl.Float64).alias(QUANTILE))

    def _over_pairs(self, pairs: pl.LazyFrame) -> pl.LazyFrame:
        """One row a group: between what the largest of all true differences lies."""
        half, is_known = pl.col(QUANTILE) * pl.col(ERROR), pl.col(ERROR).is_not_null().all()
        varies = (pl.col(ERROR) > 0).any()
        is_sure = pl.col(IS_SURE) & pl.col(IS_SURE + OTHER)
        low = (pl.col(OF_ALL) - half).filter(is_sure).max().fill_null(0).clip(lower_bound=0)
        lowest, highest = range_of(self._metric)
        high = (pl.col(OF_ALL) + half).max().clip(upper_bound=highest - lowest)
        ends = [
            pl.when(is_known & varies).then(low).alias("low"),
            pl.when(is_known & varies).then(high).alias("high"),
            is_known.alias(IS_KNOWN),
            varies.alias(VARIES),
            pl.min_horizontal(pl.col(FEWEST, FEWEST + OTHER).min()).alias(FEWEST),
            pl.any_horizontal(pl.col(FEW, FEW + OTHER).any()).alias(FEW),
        ]
        return fold(pairs, self._by, ends)
