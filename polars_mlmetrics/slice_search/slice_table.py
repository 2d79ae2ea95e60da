"""The slices that were found, as a table: with intervals, tests and their conditions in words."""

from __future__ import annotations

from math import isfinite

import polars as pl

from polars_mlmetrics.data.expressions import any_of
from polars_mlmetrics.data.roles import MODEL
from polars_mlmetrics.engine.folds import matched
from polars_mlmetrics.engine.plan import Plan
from polars_mlmetrics.engine.sources import Source
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.intervals.interval import range_of
from polars_mlmetrics.intervals.intervals import DOMINANT, FEW_BUCKETS, FEW_CLUSTERS, MANY_BUCKETS, SEEMS_FEW, flag_of
from polars_mlmetrics.intervals.student_t import benjamini_hochberg, p_value, t_at
from polars_mlmetrics.query.query import Query
from polars_mlmetrics.query.question import Confidence
from polars_mlmetrics.query.reported_value import several_models
from polars_mlmetrics.query.results import ResultColumns
from polars_mlmetrics.slice_search.candidates import N_TESTED, PARENT, SHARE, TURN, Candidates
from polars_mlmetrics.slice_search.coded import GROUP, N_ROWS, Coded
from polars_mlmetrics.slice_search.features import CONDITIONS, Condition
from polars_mlmetrics.slice_search.lattice import PLACE
from polars_mlmetrics.slice_search.merged import t_of

COLUMNS = ResultColumns.of(
    (pl.Int64, "rank"),
    (pl.String, "slice"),
    (CONDITIONS, "conditions"),
    (pl.Int64, "depth", "n_samples", "n_rows"),
    (pl.Float64, "share", "value", "rest", "gap", "low", "high", "p", "p_adjusted", "share_of_harm", "t_search"),
    (pl.String, "parent"),
    (pl.Float64, "parent_value"),
    (pl.String, "hidden_by"),
    (pl.Float64, "overlap"),
    (pl.Int64, "n_clusters"),
    (pl.String, "ci_flag"),
    (pl.Int64, "n_tested"),
    (pl.String, "plan"),
)
"""The columns of each slice."""

NEARLY_ALL = 0.9
"""A slice with more of the harm than this looks like a feature that knows the truth."""

WHOLE, T, DF, POOLED = (f"{INTERNAL}{name}" for name in ("whole", "t", "df", "pooled"))


class SliceTable:
    """The slices that were found, as a table."""

    def __init__(
        self, query: Query, source: Source, coded: Coded, found: Candidates, confidence: Confidence, sign: int, how: str
    ) -> None:
        self._query = query
        self._source = source
        self._coded = coded
        self._found = found
        self._confidence = confidence
        self._low, self._high = range_of(coded.metric)
        self._best, self._worst = (self._high, self._low) if sign > 0 else (self._low, self._high)
        self._said = f"{how}; {found.said}"

    def of(self, k: int) -> pl.DataFrame:
        """The table, of k shown slices a group."""
        candidates = self._found.table()
        keys = [pl.col(key.column).alias(key.name) for key in self._query.by]
        if not candidates.height:
            return COLUMNS.empty(self._query.types_of(self._query.by)).collect()
        samples = pl.lit(pl.Series(self._coded.totals.samples)).gather(pl.col(GROUP))
        candidates = candidates.join(self._pooled(), on=GROUP)
        table = self._with_tests(candidates.with_columns(samples.alias(WHOLE)).with_columns(self._harm()))
        table = self._with_names(self._found.shown(table, k))
        table = table.join(self._coded.groups, on=GROUP).sort(GROUP, TURN)
        table = table.with_columns(
            pl.int_range(1, pl.len() + 1).over(GROUP).alias("rank"),
            ratio(pl.col("n_samples"), pl.col(WHOLE)).alias("share"),
            pl.col("t_of_search").alias("t_search"),
            pl.col(N_ROWS).alias("n_rows"),
            pl.col(N_TESTED).alias("n_tested"),
            pl.lit(self._said).alias("plan"),
        )
        return table.select(*keys, *COLUMNS.cast())

    def _pooled(self) -> pl.DataFrame:
        """Whether a group has rows of several models, which no feature tells apart."""
        by = [key.column for key in self._query.by]
        plan = Plan(self._source, by, self._query.readings)
        counts = several_models(self._coded.metric, plan)
        if not counts or MODEL in {feature.name for feature in self._coded.features}:
            return self._coded.groups.select(GROUP, pl.lit(False).alias(POOLED))
        several = any_of([plan.value(count) > 0 for count in counts])
        groups = plan.groups().select(*by, several.alias(POOLED))
        return matched(self._coded.groups.lazy(), groups, by, how="left").select(GROUP, POOLED).collect()

    def _harm(self) -> pl.Expr:
        """Which part of what the group lacks to the best value the rest lacks not; null where there is no best."""
        if not isfinite(self._best):
            return pl.lit(None, dtype=pl.Float64).alias("share_of_harm")
        lacks, rest_lacks = ((pl.col(name) - self._best).abs() for name in ("whole", "rest"))
        # What the metric is of the group has every weight in it, as shares of the samples have not.
        return ratio(lacks - rest_lacks, lacks).clip(0, 1).alias("share_of_harm")

    def _with_tests(self, table: pl.DataFrame) -> pl.DataFrame:
        """The candidates with intervals and tests."""
        buckets, gap, se = (pl.col(name) for name in ("n_buckets", "gap", "se"))
        varies = (se > 0) & (buckets >= 2)
        away = pl.when(varies).then(t_at(buckets, self._confidence.level, self._confidence.buckets) * se)
        df = pl.max_horizontal(buckets - 1, pl.lit(1)).cast(pl.Float64)
        # As columns: an expression would work them out for each of its terms.
        most = self._high - self._low
        ends = (gap - away).clip(-most, most).alias("low"), (gap + away).clip(-most, most).alias("high")
        table = table.with_columns(*ends, t_of(gap, se).alias(T), df.alias(DF))
        p = pl.when(gap > 0).then(p_value(pl.col(T), pl.col(DF), self._confidence.buckets - 1)).otherwise(1.0)
        table = table.with_columns(pl.when(varies).then(p).alias("p"))
        adjusted = benjamini_hochberg([GROUP]).alias("p_adjusted")
        return table.with_columns(adjusted, self._flag().alias("ci_flag"))

    def _flag(self) -> pl.Expr:
        """The flag of an interval: why not to trust it."""
        buckets, gap, se, value = (pl.col(name) for name in ("n_buckets", "gap", "se", "value"))
        flags = {
            "leak?": (gap > 0) & ((pl.col("share_of_harm") > NEARLY_ALL) | (value == self._worst)),
            "undefined_replicates": se.is_null(),
            "degenerate": se == 0,
            "pooled": pl.col(POOLED),
            "few_buckets": buckets < FEW_BUCKETS,
            "coarse_bins": pl.col("bound") > 0.5 * (pl.col("high") - pl.col("low")),
            "low_n": pl.coalesce(pl.col("n_clusters") < FEW_CLUSTERS, buckets <= SEEMS_FEW),
            "dominant_cluster": (pl.col(SHARE) > DOMINANT) & (self._confidence.buckets >= MANY_BUCKETS),
        }
        return flag_of(flags)

    def _conditions(self, place: int) -> list[Condition]:
        _, codes = self._found.lattice.codes_of(place)
        return [self._coded.features[feature].conditions[code] for feature, code in codes.items()]

    def _text(self, place: int | None) -> str | None:
        return None if place is None else ", ".join(condition.text() for condition in self._conditions(place))

    def _with_names(self, table: pl.DataFrame) -> pl.DataFrame:
        """The table with the slices in words."""
        rows = [
            {
                "slice": self._text(place),
                "conditions": [condition._asdict() for condition in self._conditions(place)],
                "depth": len(self._conditions(place)),
                "parent": self._text(parent),
                "hidden_by": self._text(hidden_by),
            }
            for place, parent, hidden_by in table.select(PLACE, PARENT, "hidden_by").iter_rows()
        ]
        schema = {name: COLUMNS[name] for name in ("slice", "conditions", "depth", "parent", "hidden_by")}
        return table.drop("hidden_by").hstack(pl.DataFrame(rows, schema=schema))
