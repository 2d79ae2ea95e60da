"""`find_slices`: where a metric is worse than elsewhere."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal, Unpack

import polars as pl

from polars_mlmetrics.analysis.bounds import benjamini_hochberg, p_value
from polars_mlmetrics.analysis.candidates import N_TESTED, PLACE, SHARE, Candidates
from polars_mlmetrics.analysis.confidence import Confidence
from polars_mlmetrics.analysis.features import CONDITIONS, Condition, Feature, type_of
from polars_mlmetrics.analysis.intervals import DOMINANT, FEW_BUCKETS, SEEMS_FEW
from polars_mlmetrics.analysis.lattice import (
    CELL,
    COMBINATION,
    GROUP,
    LEAST,
    SAMPLE,
    Lattice,
    code_column,
    codes_of_features,
    counts_of,
    sample_code,
    t_of,
)
from polars_mlmetrics.analysis.question import of_log
from polars_mlmetrics.data.door import check_columns
from polars_mlmetrics.data.frames import Frame, check_frame, column_names
from polars_mlmetrics.data.roles import Roles, checked_roles
from polars_mlmetrics.engine.plan import Plan
from polars_mlmetrics.engine.sources import Rows
from polars_mlmetrics.engine.state import is_state
from polars_mlmetrics.errors import ColumnError, MetricError, ParameterError, StateError
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.formula.parameters import Count, check_parameter
from polars_mlmetrics.formula.tree import WITHOUT_INTERVAL
from polars_mlmetrics.query.account import first_that_holds
from polars_mlmetrics.query.query import Keys, Query, check_is_metric, check_names

COLUMNS = {
    "rank": pl.Int64(),
    "slice": pl.String(),
    "conditions": CONDITIONS,
    "depth": pl.Int64(),
    "n_samples": pl.Int64(),
    "n_rows": pl.Int64(),
    "share": pl.Float64(),
    "value": pl.Float64(),
    "rest": pl.Float64(),
    "gap": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "p": pl.Float64(),
    "p_adjusted": pl.Float64(),
    "parent": pl.String(),
    "hidden_by": pl.String(),
    "ci_flag": pl.String(),
    "n_tested": pl.Int64(),
}
"""What is said of each slice."""

FEWEST, THOUSANDTH = 60, 0.001
"""How many samples a slice has at least, where nothing is asked for: so many, or this share of its group."""

WHOLE = "whole"
"""How many samples a group has."""


def find_slices(
    frame: Frame,
    metric: Metric,
    features: str | Sequence[str],
    by: Keys | None = None,
    *,
    depth: int = 3,
    k: int = 10,
    min_samples: int | None = None,
    alpha: float = 0.05,
    worse: Literal["low", "high"] | None = None,
    top: int = 10,
    bins: int = 5,
    **roles: Unpack[Roles],
) -> pl.DataFrame:
    """Find the slices of a log in which a metric is worse than in the rest of their group.

    It tries every combination of up to `depth` features on one half of the samples, takes up to 20 candidates a group
    (4 at a time; then the rows of the worst are set aside, and all is searched again), and measures these on the other
    half. So the values, intervals and p are not made too good by the search. It reads the log now, all of its columns,
    and gives a DataFrame, also for a LazyFrame: select the columns that you need first.

    Parameters
    ----------
    frame
        The long table.
    metric
        The metric.
    features
        The columns to look at: text, categories, Booleans, numbers, dates and times. Null and NaN are values too. A
        column with no more than `top` values is looked at value by value. Of more texts, the `top` most frequent ones
        count, and all others together; of more numbers, dates or times, `bins` ranges of about as many rows, and each
        value that would fill a range alone.
    by, **roles
        As in `evaluate`. Each group is searched by itself.
    depth
        How many features a slice combines at most.
    k
        How many slices are shown at most, in each group.
    min_samples
        How many samples a slice, and the rest, must have. None is 60, or a thousandth of the group if that is more.
    alpha
        1 - alpha is the level of the intervals.
    worse
        "low" or "high": which values are bad. A metric that says so itself needs none.
    top, bins
        See `features`.

    Returns
    -------
    One row a slice, the surest first (both halves together): the by columns, `rank`, `slice`, `conditions` (what
    `slice_filter` reads), `depth`, `n_samples`, `n_rows` and `share` of the samples of the group. Then, of the samples
    that the search did not see: `value`, the value of the `rest` of the group, their `gap` (positive is worse) with
    `low` and `high`, `p` (1 where the slice is not worse) and `p_adjusted` for the number of candidates (Benjamini and
    Hochberg). `parent` is the slice with one condition less in which the search saw the surest gap. A slice that only
    repeats another has that in `hidden_by`, and does not count for `k`. `ci_flag` is as in a tidy table, and
    `n_tested` the number of slices that were searched. A slice whose gap is less than two standard errors in the
    samples of the search is left out.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> log = pl.DataFrame({"sample": range(3000)}).with_columns(
    ...     country=pl.when(pl.col("sample") % 3 == 0).then(pl.lit("FR")).otherwise(pl.lit("DE")),
    ...     age=pl.col("sample") * 7919 % 60 + 18,
    ...     truth=1,
    ... )
    >>> is_bad = (pl.col("country") == "FR") & (pl.col("age") >= 65)
    >>> log = log.with_columns(score=pl.when(is_bad).then(0.3).otherwise(0.8) + pl.col("sample") % 11 / 100)
    >>> table = mlm.find_slices(log, mlm.log_loss(), ["country", "age"])
    >>> table.filter(pl.col("hidden_by").is_null()).select("slice", "n_samples", pl.col("gap", "low").round(2))
    shape: (1, 4)
    ┌───────────────────────┬───────────┬──────┬──────┐
    │ slice                 ┆ n_samples ┆ gap  ┆ low  │
    │ ---                   ┆ ---       ┆ ---  ┆ ---  │
    │ str                   ┆ i64       ┆ f64  ┆ f64  │
    ╞═══════════════════════╪═══════════╪══════╪══════╡
    │ country=FR, age >= 65 ┆ 200       ┆ 0.89 ┆ 0.88 │
    └───────────────────────┴───────────┴──────┴──────┘
    """
    query, confidence = _read(frame, metric, by, roles, alpha)
    for name, value in {"depth": depth, "k": k, "top": top, "bins": bins}.items():
        check_parameter("find_slices", name, value, Count)
    check_parameter("find_slices", "min_samples", min_samples, Count | None)
    names = _checked_features(query, features)
    sign = _sign(metric, worse)
    found = Found(query, names, depth, min_samples, sign, top, bins)
    return found.table(k, confidence)


def _read(frame: Any, metric: Any, by: Keys | None, roles: Any, alpha: Any) -> tuple[Query, Confidence]:
    """The query, and the intervals that are wanted; what cannot be searched is refused."""
    check_frame(frame)
    schema = frame.lazy().collect_schema()
    if is_state(schema):
        raise StateError("find_slices looks at rows, and a state has none: use it on the log.")
    check_is_metric("find_slices", metric)
    if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 < alpha < 1:
        raise ParameterError(f"alpha must be a number between 0 and 1, such as 0.05, not {alpha!r}.")
    lacking = [column for column in checked_roles(roles).table.sample if column not in schema]
    if lacking:
        raise ColumnError(
            f"find_slices needs samples, and there is no sample column {lacking[0]!r}: pass sample=, or, if each row "
            "is a sample, add .with_row_index('sample')."
        )
    query, confidence = of_log(frame, [metric], by, None, 1 - alpha, None, roles)
    assert confidence is not None
    (core,) = query.metrics
    plan = Plan(Rows(query.rows, query.roles.label, query.schema), [], query.readings)
    if core.interval_kind in WITHOUT_INTERVAL or not plan.merges(core):
        raise MetricError(
            f"{core.output_name} has no intervals, so its slices cannot be told from noise: choose another metric, or "
            "of a curve the one with bins=."
        )
    check_names([*(key.name for key in query.by), *COLUMNS])
    return query, confidence


def _sign(metric: Metric, worse: Any) -> int:
    """1 where low values are bad, -1 where high ones are."""
    if worse not in ("low", "high", None):
        raise ParameterError(f"worse is 'low' or 'high', not {worse!r}.")
    if worse is None and metric.best is None:
        raise MetricError(f"{metric.output_name} has no direction: pass worse='low' or worse='high'.")
    return 1 if worse == "low" or (worse is None and metric.best == "max") else -1


def _checked_features(query: Query, features: Any) -> list[str]:
    """The names of the features; a column that cannot be one is refused."""
    if isinstance(features, pl.Expr) or (not isinstance(features, str) and any(_are_expressions(features))):
        raise ParameterError("features are names of columns: add an expression as a column first.")
    names = column_names("features", features)
    if not names:
        raise ParameterError("find_slices needs features: pass a column or a list of columns.")
    check_columns(names, query.schema, what="feature")
    measures = [measure for metric in query.metrics for measure in metric.measures()]
    tables = [query.roles, *(measure.table for measure in measures)]
    grains = {grain for measure in measures for grain in (measure.grain, *measure.probe.looks_into)}
    taken = dict.fromkeys((*query.columns_of_keys, *(key.name for key in query.by)), "in by=")
    for table in tables:
        taken |= dict.fromkeys(table.score.meta.root_names(), "the score")
        taken |= dict.fromkeys(table.truth.meta.root_names(), "the truth")
        taken |= dict.fromkeys(table.sample, "the sample")
        if grains != {"group"}:
            taken[table.label] = f"the label, of which {query.metrics[0].output_name} needs all"
    for name in names:
        if name in taken:
            raise ParameterError(f"{name!r} cannot be a feature: it is {taken[name]}.")
        type_of(name, query.schema[name])
    return names


def _are_expressions(features: Any) -> list[bool]:
    return [isinstance(each, pl.Expr) for each in features] if isinstance(features, Sequence) else []


class Found:
    """The slices of a log that were found."""

    def __init__(
        self, query: Query, names: list[str], depth: int, min_samples: int | None, sign: int, top: int, bins: int
    ) -> None:
        self._query = query
        rows = query.rows.collect()
        by = [key.column for key in query.by]
        self._groups = rows.select(by).unique().sort(by, nulls_last=False) if by else pl.DataFrame([{}])
        self._groups = self._groups.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias(GROUP))
        self._features = _features_of(rows, names, top, bins)
        rows = self._with_groups(rows, by).with_columns(
            sample_code(query.roles.sample), *codes_of_features(self._features)
        )
        self._check_whole(rows)
        self._check_values(rows)
        self._sizes = counts_of(rows, [GROUP]).select(GROUP, pl.col("n_samples").alias(WHOLE))
        least = pl.max_horizontal(pl.lit(FEWEST), pl.col(WHOLE) * THOUSANDTH) if min_samples is None else min_samples
        # In each half of the samples.
        halves = self._sizes.select(GROUP, (pl.lit(0.5) * least).alias(LEAST))
        self._lattice = Lattice(query, rows, self._features, min(depth, len(self._features)), sign, halves)

    def table(self, k: int, confidence: Confidence) -> pl.DataFrame:
        """The table of slices."""
        candidates = Candidates(self._lattice)
        table = _with_tests(candidates.table(), confidence)
        table = self._with_names(candidates.shown(table, k), self._parents(candidates.scores))
        keys = [pl.col(key.column).alias(key.name) for key in self._query.by]
        table = table.join(self._groups, on=GROUP).join(self._sizes, on=GROUP).sort(GROUP, PLACE)
        rank = pl.int_range(1, pl.len() + 1).over(GROUP).alias("rank")
        share = ratio(pl.col("n_samples"), pl.col(WHOLE)).alias("share")
        table = table.with_columns(rank, share, pl.col(N_TESTED).alias("n_tested"))
        return table.select(*keys, *(pl.col(name).cast(dtype) for name, dtype in COLUMNS.items()))

    def _with_groups(self, rows: pl.DataFrame, by: list[str]) -> pl.DataFrame:
        if not by:
            return rows.with_columns(pl.lit(0, dtype=pl.Int64).alias(GROUP))
        return rows.join(self._groups, on=by, how="left", nulls_equal=True, maintain_order="left")

    def _check_whole(self, rows: pl.DataFrame) -> None:
        """Refuse features that part a sample, where the metric looks at whole samples."""
        measures = [measure for metric in self._query.metrics for measure in metric.measures()]
        for measure in measures:
            if "sample" not in (measure.grain, *measure.probe.looks_into):
                continue
            codes = {feature.name: pl.col(code_column(place)) for place, feature in enumerate(self._features)}
            varies = [(code.n_unique() > 1).alias(name) for name, code in codes.items()]
            per_sample = rows.filter(pl.col(SAMPLE).is_not_null()).group_by(GROUP, SAMPLE).agg(varies)
            parted = [name for name in codes if per_sample[name].any()]
            if parted:
                sample = list(measure.table.sample)
                raise ColumnError(
                    f"feature {parted[0]!r} has several values in one sample, and {measure.output_name} looks at whole "
                    f"samples: see log.group_by({sample}).agg(pl.col({parted[0]!r}).n_unique())."
                )

    def _check_values(self, rows: pl.DataFrame) -> None:
        """Refuse a metric that is broken, or without bounds, in a group: no slice of it can be compared."""
        plan = Plan(Rows(rows.lazy(), self._query.roles.label, rows.schema), [GROUP], self._query.readings)
        value = plan.value(self._query.metrics[0]).cast(pl.Float64)
        broken = plan.groups().select(value.alias("value")).filter(~pl.col("value").is_finite()).collect()
        if broken.height:
            name = self._query.metrics[0].output_name
            raise MetricError(
                f"{name} is {broken['value'][0]} in the whole log, or in a group of by=: no slice can be compared with "
                "the rest. `check` names the rows."
            )

    def _conditions(self, combination: int, cell: int) -> list[Condition]:
        codes = self._lattice.codes_of(combination, cell)
        return [self._features[place].conditions[code] for place, code in codes.items()]

    def _parents(self, scores: pl.DataFrame) -> dict[tuple[int, frozenset[Condition]], float]:
        """How sure the search was of each slice."""
        return {
            (group, _key(self._conditions(combination, cell))): t
            for group, combination, cell, t in scores.select(GROUP, COMBINATION, CELL, "t").iter_rows()
            if t is not None
        }

    def _with_names(self, table: pl.DataFrame, known: dict[tuple[int, frozenset[Condition]], float]) -> pl.DataFrame:
        """The table with the slices in words."""
        slices = [self._conditions(*cell) for cell in table.select(COMBINATION, CELL).iter_rows()]
        places = dict(zip(table.select(GROUP, PLACE).iter_rows(), slices, strict=True))
        rows = []
        for group, hidden_by, conditions in zip(table[GROUP], table["hidden_by"], slices, strict=True):
            parents = [[c for c in conditions if c is not left_out] for left_out in conditions]
            surest = max(parents, key=lambda parent: known.get((group, _key(parent)), float("-inf")))
            rows.append(
                {
                    "slice": _text(conditions),
                    "conditions": [condition._asdict() for condition in conditions],
                    "depth": len(conditions),
                    "parent": _text(surest) if surest else None,
                    "hidden_by": None if hidden_by is None else _text(places[group, hidden_by]),
                }
            )
        schema = {name: COLUMNS[name] for name in ("slice", "conditions", "depth", "parent", "hidden_by")}
        return table.drop("hidden_by").hstack(pl.DataFrame(rows, schema=schema))


def _features_of(rows: pl.DataFrame, names: list[str], top: int, bins: int) -> list[Feature]:
    """The features of more than one value; of the others a warning says that they are left out."""
    features = [Feature.of(rows, name, top, bins) for name in names]
    constant = [feature.name for feature in features if len(feature.conditions) < 2]
    if len(constant) == len(features):
        raise ParameterError(f"no feature has two values to compare: {', '.join(constant)}.")
    if constant:
        left_out = f"these features have one value only, and are left out: {', '.join(constant)}."
        warnings.warn(left_out, UserWarning, stacklevel=4)
    return [feature for feature in features if feature.name not in constant]


def _with_tests(table: pl.DataFrame, confidence: Confidence) -> pl.DataFrame:
    """The candidates with intervals and tests."""
    buckets, gap, se = pl.col("n_buckets"), pl.col("gap"), pl.col("se")
    varies = (se > 0) & (buckets >= 2)
    half = pl.when(varies).then(pl.lit(confidence.quantiles()).gather(buckets) * se)
    df = pl.max_horizontal(buckets - 1, pl.lit(1)).cast(pl.Float64)
    p = pl.when(gap > 0).then(p_value(t_of(gap, se), df, confidence.buckets - 1)).otherwise(1.0)
    flags = {
        "undefined_replicates": se.is_null(),
        "degenerate": se == 0,
        "few_buckets": buckets < FEW_BUCKETS,
        "low_n": buckets <= SEEMS_FEW,
        "dominant_cluster": pl.col(SHARE) > DOMINANT,
    }
    flag = first_that_holds([(holds, pl.lit(flag)) for flag, holds in flags.items()], pl.lit("ok"))
    told = [(gap - half).alias("low"), (gap + half).alias("high"), flag.alias("ci_flag")]
    table = table.with_columns(*told, pl.when(varies).then(p).alias("p"))
    return table.with_columns(benjamini_hochberg("p", [GROUP]).alias("p_adjusted"))


def _key(conditions: Sequence[Condition]) -> frozenset[Any]:
    return frozenset(condition._replace(values=tuple(condition.values)) for condition in conditions)


def _text(conditions: Sequence[Condition]) -> str:
    return ", ".join(condition.text() for condition in conditions)
