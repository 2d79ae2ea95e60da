"""Confirm and show: the candidates in the buckets that the search did not see, with tests, flags and words."""

from __future__ import annotations

from math import isfinite
from typing import NamedTuple

import numpy as np
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
from polars_mlmetrics.query.question import Confidence
from polars_mlmetrics.query.reported_value import several_models
from polars_mlmetrics.query.results import ResultColumns
from polars_mlmetrics.slice_search.choose import PARENT, TURN, Members, Search, in_order
from polars_mlmetrics.slice_search.contrast import t_of
from polars_mlmetrics.slice_search.count import PLACE
from polars_mlmetrics.slice_search.encode import GROUP, ODD, Encoded
from polars_mlmetrics.slice_search.features import CONDITIONS, Condition

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

LARGEST = f"{INTERNAL}largest_share"
"""The largest share of the rows of a slice that is in one bucket."""

T, DF, POOLED = (f"{INTERNAL}{name}" for name in ("t", "df", "pooled"))


def confirm(search: Search, members: Members, chosen: pl.DataFrame) -> pl.DataFrame:
    """One row a candidate, by group and turn, with what the odd buckets say of it."""
    cells, parents = search.cells, [_parent(search, place) for place in chosen[PLACE]]
    groups = cells.places[cells.of_groups]
    every = np.unique([*groups, *chosen[PLACE], *(parent for parent in parents if parent is not None)])
    found = search.of_places(every, ODD)
    # A whole group is a cell too, without a rest.
    wholes = found.filter(pl.col(PLACE).is_in(groups.tolist())).select(GROUP, pl.col("value").alias("whole"))
    of_parents = found.select(pl.col(PLACE).alias(PARENT), pl.col("value").alias("parent_value"))
    of_search = chosen.select(PLACE, pl.col("gap", "se", "t").name.suffix("_search"))
    table = chosen.drop("value", "rest", "gap", "se", "t", "bound").with_columns(pl.Series(PARENT, parents, pl.Int64))
    table = table.hstack(_counts(search, members, chosen))
    for other, key in ((found.drop(GROUP), PLACE), (of_search, PLACE), (wholes, GROUP), (of_parents, PARENT)):
        table = table.join(other, on=key, how="left", maintain_order="left")
    table = table.filter(_is_large(search))
    gap, se = pl.col("gap") + pl.col("gap_search"), (pl.col("se") ** 2 + pl.col("se_search") ** 2).sqrt()
    ordered = in_order(table.with_columns(t_of(gap, se).alias("t")))
    return ordered.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).over(GROUP).alias(TURN))


def _parent(search: Search, place: int) -> int | None:
    """The slice with one condition less of which the search is surest."""
    group, codes = search.lattice.codes_of(place)
    if len(codes) < 2:
        return None
    parents = [search.lattice.place_of(group, {f: c for f, c in codes.items() if f != left}) for left in codes]
    return max(parents, key=lambda parent: search.known.get(parent, float("-inf")))


def _counts(search: Search, members: Members, chosen: pl.DataFrame) -> pl.DataFrame:
    """How many samples and rows slices have; and in the odd buckets, how many clusters, buckets, and rows in one."""
    cells = search.cells
    where = cells.find(chosen[PLACE].to_numpy())
    rows, samples = cells.rows[where, :, 0], cells.samples[where, :, 0]
    n_clusters = members.n_clusters(chosen)
    counts = {"n_samples": samples.sum(axis=1), "n_rows": rows.sum(axis=1)}
    counts |= {"n_clusters": samples[:, ODD].sum(axis=1) if n_clusters is None else np.array(n_clusters)}
    counts |= {"n_buckets": (rows[:, ODD] > 0).sum(axis=1), "most": rows[:, ODD].max(axis=1)}
    found = pl.DataFrame({**counts, "of": rows[:, ODD].sum(axis=1)}).cast(pl.Int64)
    return found.with_columns(ratio(pl.col("most"), pl.col("of")).alias(LARGEST)).drop("most", "of")


def _is_large(search: Search) -> pl.Expr:
    """Whether a slice, and the rest, have enough samples in all: the search wanted half of that in its half."""
    totals = (search.cells.n_samples, search.cells.n_rows, search.cells.least)
    samples, rows, least = (pl.lit(pl.Series(of)).gather(pl.col(GROUP)) for of in totals)
    rest = ratio(rows - pl.col("n_rows"), rows) * samples
    return (pl.col("n_samples") >= least) & (rest >= least)


class Tests(NamedTuple):
    """How the gaps of slices are tested."""

    confidence: Confidence
    low: float
    high: float
    sign: int
    """1 where low values are bad, -1 where high ones are."""

    @classmethod
    def of(cls, encoded: Encoded, confidence: Confidence, sign: int) -> Tests:
        """Those of the metric that is searched for."""
        return cls(confidence, *range_of(encoded.metric), sign)

    def of_table(self, table: pl.DataFrame) -> pl.DataFrame:
        """Candidates with intervals, tests and flags."""
        buckets, gap, se = (pl.col(name) for name in ("n_buckets", "gap", "se"))
        varies = (se > 0) & (buckets >= 2)
        away = pl.when(varies).then(t_at(buckets, self.confidence.level, self.confidence.buckets) * se)
        df = pl.max_horizontal(buckets - 1, pl.lit(1)).cast(pl.Float64)
        # As columns: an expression would work them out for each of its terms.
        most = self.high - self.low
        ends = (gap - away).clip(-most, most).alias("low"), (gap + away).clip(-most, most).alias("high")
        table = table.with_columns(*ends, self._harm(), t_of(gap, se).alias(T), df.alias(DF))
        p = pl.when(gap > 0).then(p_value(pl.col(T), pl.col(DF), self.confidence.buckets - 1)).otherwise(1.0)
        table = table.with_columns(pl.when(varies).then(p).alias("p"))
        return table.with_columns(benjamini_hochberg([GROUP]).alias("p_adjusted"), self._flag().alias("ci_flag"))

    def _harm(self) -> pl.Expr:
        """Which part of what the group lacks to the best value the rest lacks not; null where there is no best."""
        best = self.high if self.sign > 0 else self.low
        if not isfinite(best):
            return pl.lit(None, dtype=pl.Float64).alias("share_of_harm")
        lacks, rest_lacks = ((pl.col(name) - best).abs() for name in ("whole", "rest"))
        # What the metric is of the group has every weight in it, as shares of the samples have not.
        return ratio(lacks - rest_lacks, lacks).clip(0, 1).alias("share_of_harm")

    def _flag(self) -> pl.Expr:
        """The flag of an interval: why not to trust it."""
        buckets, gap, se, value = (pl.col(name) for name in ("n_buckets", "gap", "se", "value"))
        worst = self.low if self.sign > 0 else self.high
        flags = {
            "leak?": (gap > 0) & ((pl.col("share_of_harm") > NEARLY_ALL) | (value == worst)),
            "undefined_replicates": se.is_null(),
            "degenerate": se == 0,
            "pooled": pl.col(POOLED),
            "few_buckets": buckets < FEW_BUCKETS,
            "coarse_bins": pl.col("bound") > 0.5 * (pl.col("high") - pl.col("low")),
            "low_n": pl.coalesce(pl.col("n_clusters") < FEW_CLUSTERS, buckets <= SEEMS_FEW),
            "dominant_cluster": (pl.col(LARGEST) > DOMINANT) & (self.confidence.buckets >= MANY_BUCKETS),
        }
        return flag_of(flags)


def pooled_groups(encoded: Encoded, source: Source) -> pl.DataFrame:
    """Whether a group has rows of several models, which no feature tells apart."""
    by = [key.column for key in encoded.query.by]
    plan = Plan(source, by, encoded.query.readings)
    counts = several_models(encoded.metric, plan)
    if not counts or MODEL in {feature.name for feature in encoded.features}:
        return encoded.groups.select(GROUP, pl.lit(False).alias(POOLED))
    several = any_of([plan.value(count) > 0 for count in counts])
    groups = plan.groups().select(*by, several.alias(POOLED))
    return matched(encoded.groups.lazy(), groups, by, how="left").select(GROUP, POOLED).collect()


def show(search: Search, table: pl.DataFrame) -> pl.DataFrame:
    """The result, from the candidates that are shown."""
    encoded, lattice = search.cells.encoded, search.lattice

    def conditions(place: int) -> list[Condition]:
        _, codes = lattice.codes_of(place)
        return [encoded.features[feature].conditions[code] for feature, code in codes.items()]

    def text(place: int | None) -> str | None:
        return None if place is None else ", ".join(condition.text() for condition in conditions(place))

    rows = [
        (text(place), [each._asdict() for each in conditions(place)], len(conditions(place)), text(parent), text(above))
        for place, parent, above in table.select(PLACE, PARENT, "hidden_by").iter_rows()
    ]
    names = ("slice", "conditions", "depth", "parent", "hidden_by")
    words = pl.DataFrame(rows, schema={name: COLUMNS[name] for name in names}, orient="row")
    samples = pl.lit(pl.Series(search.cells.n_samples)).gather(pl.col(GROUP))
    tested = search.scores.group_by(GROUP).agg(pl.len().alias("n_tested"))
    table = table.drop("hidden_by").hstack(words).join(tested, on=GROUP).join(encoded.groups, on=GROUP)
    table = table.sort(GROUP, TURN).with_columns(
        pl.int_range(1, pl.len() + 1).over(GROUP).alias("rank"),
        ratio(pl.col("n_samples"), samples).alias("share"),
        pl.lit(search.how).alias("plan"),
    )
    return table.select(*(pl.col(key.column).alias(key.name) for key in encoded.query.by), *COLUMNS.cast())
