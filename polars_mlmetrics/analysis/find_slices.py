"""`find_slices`: where a metric is worse than elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Literal, TypedDict, Unpack

import polars as pl

from polars_mlmetrics.analysis.asked_slices import (
    check_choices,
    check_features,
    check_query,
    names_of,
    query_of,
    score_and_role,
    sign_of,
)
from polars_mlmetrics.analysis.bounds import benjamini_hochberg, p_value
from polars_mlmetrics.analysis.candidates import N_TESTED, PARENT, TURN, Candidates, Confirm
from polars_mlmetrics.analysis.coded import GROUP, N_ROWS, Coded
from polars_mlmetrics.analysis.confidence import Confidence
from polars_mlmetrics.analysis.features import CONDITIONS, Condition
from polars_mlmetrics.analysis.intervals import DOMINANT, FEW_BUCKETS, FEW_CLUSTERS, MANY_BUCKETS, SEEMS_FEW
from polars_mlmetrics.analysis.lattice import PLACE
from polars_mlmetrics.analysis.marked import SHARE
from polars_mlmetrics.analysis.merged import Merged, t_of
from polars_mlmetrics.analysis.parts import core_of, range_of
from polars_mlmetrics.analysis.question import check_no_roles, of_state
from polars_mlmetrics.analysis.searched import least_of, read_log, read_state, without_small
from polars_mlmetrics.data.frames import Frame, Names, check_frame
from polars_mlmetrics.engine.state import is_state
from polars_mlmetrics.errors import INTERNAL, MetricError, ParameterError, StateError, at_callers_line
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.formula.parameters import Count, check_parameter
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
    "share_of_harm": pl.Float64(),
    "t_search": pl.Float64(),
    "parent": pl.String(),
    "parent_value": pl.Float64(),
    "hidden_by": pl.String(),
    "overlap": pl.Float64(),
    "n_clusters": pl.Int64(),
    "ci_flag": pl.String(),
    "n_tested": pl.Int64(),
    "plan": pl.String(),
}
"""What is said of each slice."""

LEAST_BUCKETS = 32
"""How many buckets a state must have: a half of fewer says little."""

NEARLY_ALL = 0.9
"""A slice with more of the harm than this looks like a feature that knows the truth."""

WHOLE, T, DF = (f"{INTERNAL}{name}" for name in ("whole", "t", "df"))


class OtherRoles(TypedDict, total=False):
    """The columns of the roles but the score, which is beside them."""

    sample: str | Sequence[str]
    label: str
    truth: str | pl.Expr
    weight: str | pl.Expr


@at_callers_line
def find_slices(
    frame: Frame,
    metric: Metric,
    features: str | Sequence[str],
    by: Keys | None = None,
    *,
    depth: int = 3,
    k: int = 10,
    min_samples: int | None = None,
    score: str | pl.Expr | None = None,
    alpha: float = 0.05,
    confirm: Confirm = "half",
    worse: Literal["low", "high"] | None = None,
    top: int = 10,
    bins: int = 5,
    cluster: Names = None,
    passes: int | Literal["auto", "files"] | None = None,
    memory: int | str | None = None,
    progress: bool = True,
    **roles: Unpack[OtherRoles],
) -> pl.DataFrame:
    """Find the slices of a log in which a metric is worse than in the rest of their group.

    It tries every combination of up to `depth` features on one half of the samples, takes up to 20 candidates a group
    (4 at a time; then the rows of the worst are set aside, and all is searched again), and measures these on the other
    half. So the values, intervals and p are not made too good by the search. It reads the log now, all of its columns,
    and gives a DataFrame, also for a LazyFrame: select the columns that you need first.

    Parameters
    ----------
    frame
        The long table; or a state, made with the features among its by columns, with `n_samples()` among its metrics
        and with 32 buckets or more.
    metric
        The metric.
    features
        The columns to look at: text, categories, Booleans, numbers, dates and times, and lists of these. Null and NaN
        are values too. A column with no more than `top` values is looked at value by value. Of more texts, the `top`
        most frequent ones count, and all others together; of more numbers, dates or times, `bins` ranges of about as
        many rows, and each value that would fill a range alone. Of lists the `top` most frequent values count: a row is
        in the slice of each value that it has.
    by, **roles
        As in `evaluate`. Each group is searched by itself.
    depth
        How many features a slice combines at most.
    k
        How many slices are shown at most, in each group.
    min_samples
        How many samples a slice, and the rest, must have. None is 60, or a thousandth of the group if that is more.
    score
        What slices are searched by: "gap" (how many standard errors they are worse), which None is too, or
        "sliceline", the score of SliceLine with its alpha of 0.6, which weighs the error of a slice against its size;
        then the 20 best are the candidates. Anything else is the column of the role, as in `evaluate`.
    alpha
        1 - alpha is the level of the intervals.
    confirm
        "half", or "all": search all samples, for small logs. Then there are no intervals, and `p_adjusted` comes from
        sign flips: how often the surest of all searched slices would be as sure if each bucket might as well have been
        better as worse. It is refused where one bucket has more than 20 % of the rows.
    worse
        "low" or "high": which values are bad. A metric that says so itself needs none.
    top, bins
        See `features`.
    cluster, passes, memory, progress
        As in `evaluate`. Passes keep what was read of each row in a few bytes, or less where many rows are alike.

    Returns
    -------
    One row a slice, the surest first (both halves together): the by columns, `rank`, `slice`, `conditions` (what
    `slice_filter` reads), `depth`, `n_samples`, `n_rows` and `share` of the samples of the group. Then, of the samples
    that the search did not see: `value`, the value of the `rest` of the group, their `gap` (positive is worse) with
    `low` and `high`, `p` (1 where the slice is not worse), `p_adjusted` for the number of candidates (Benjamini and
    Hochberg), and `share_of_harm`: how much of what the group lacks to the best value would be gone if the slice were
    like the rest. `t_search` is how many standard errors the search saw. `parent` is the slice with one condition less
    in which the search saw the surest gap, with its value. A slice that only repeats another has that in `hidden_by`,
    and does not count for `k`; `overlap` is the share of its rows that lie in slices shown above it. `ci_flag` is as in
    a tidy table, or "leak?" where a slice has more than 90 % of the harm, or the worst value there is. `n_tested` is
    the number of slices that were searched, and `plan` says how. A slice whose gap is less than two standard errors in
    the samples of the search is left out.

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
    check_frame(frame)
    searched_by, role = score_and_role(frame, metric, score)
    given = {**roles, **({} if role is None else {"score": role})}
    for name, value in {"depth": depth, "k": k, "top": top, "bins": bins}.items():
        check_parameter("find_slices", name, value, Count)
    check_parameter("find_slices", "min_samples", min_samples, Count | None)
    check_choices(alpha, confirm, worse)
    check_is_metric("find_slices", metric)
    sign = sign_of(metric, worse)
    names = names_of(features)
    if is_state(frame.lazy().collect_schema()):
        check_no_roles(cluster, given)
        if passes is not None:
            raise ParameterError("passes= is for a log: a state is small.")
        query, source, confidence = of_state(frame, [metric], by, names, 1 - alpha)
        assert confidence is not None
        if confidence.buckets < LEAST_BUCKETS:
            raise StateError(f"find_slices needs {LEAST_BUCKETS} buckets, and this state has {confidence.buckets}.")
        check_query(query)
        check_names([*(key.name for key in query.by), *COLUMNS])
        coded, how = read_state(query, source, names, top, bins, confidence.buckets)
    else:
        query, confidence = query_of(frame, metric, by, alpha, cluster, given, reads_now=not passes)
        check_features(query, names)
        check_names([*(key.name for key in query.by), *COLUMNS])
        coded, how = read_log(query, names, top, bins, cluster, confidence.buckets, (passes, memory, progress))
    _check_values(coded, sign)
    least = least_of(coded, min_samples)
    places = without_small(coded, float(least.min()) if least.size else 0.0)
    if not places:
        return _no_slices(query)
    core, _ = core_of(coded.metric)
    end = range_of(core)[1 if sign > 0 else 0]
    found = Candidates(coded, places, depth, sign, end, least, searched_by, confirm)
    return Table(query, coded, found, confidence, sign, how).of(k)


def _check_values(coded: Coded, sign: int) -> None:
    """Refuse a metric that is broken, or without bounds, in a group: no slice of it can be compared."""
    values = Merged(coded, sign).of_groups()
    broken = values.filter(~values.is_finite())
    if broken.len():
        name = coded.metric.output_name
        raise MetricError(
            f"{name} is {broken[0]} in the whole log, or in a group of by=: no slice can be compared with the rest. "
            "`check` names the rows."
        )


def _no_slices(query: Query) -> pl.DataFrame:
    types = {key.name: query.schema[key.column] for key in query.by}
    return pl.DataFrame(schema={**types, **COLUMNS})


class Table:
    """The slices that were found, as a table."""

    def __init__(
        self, query: Query, coded: Coded, found: Candidates, confidence: Confidence, sign: int, how: str
    ) -> None:
        self._query = query
        self._coded = coded
        self._found = found
        self._confidence = confidence
        self._low, self._high = range_of(core_of(coded.metric)[0])
        self._best, self._worst = (self._high, self._low) if sign > 0 else (self._low, self._high)
        self._said = f"{how}; {found.said}"

    def of(self, k: int) -> pl.DataFrame:
        """The table, of k shown slices a group."""
        candidates = self._found.table()
        keys = [pl.col(key.column).alias(key.name) for key in self._query.by]
        if not candidates.height:
            return _no_slices(self._query)
        samples = pl.lit(pl.Series(self._coded.totals.samples)).gather(pl.col(GROUP))
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
        return table.select(*keys, *(pl.col(name).cast(dtype) for name, dtype in COLUMNS.items()))

    def _harm(self) -> pl.Expr:
        """Which part of what the group lacks to the best value the gap of the slice is; null where there is no best."""
        if not isfinite(self._best):
            return pl.lit(None, dtype=pl.Float64).alias("share_of_harm")
        share = ratio(pl.col("n_samples"), pl.col(WHOLE))
        lacks, rest_lacks = ((pl.col(name) - self._best).abs() for name in ("value", "rest"))
        harm = ratio(share * (lacks - rest_lacks), share * lacks + (1 - share) * rest_lacks)
        return harm.clip(0, 1).alias("share_of_harm")

    def _with_tests(self, table: pl.DataFrame) -> pl.DataFrame:
        """The candidates with intervals and tests."""
        confidence = self._confidence
        buckets, gap, se, value = (pl.col(name) for name in ("n_buckets", "gap", "se", "value"))
        varies = (se > 0) & (buckets >= 2)
        half = pl.when(varies).then(pl.lit(confidence.quantiles()).gather(buckets) * se)
        df = pl.max_horizontal(buckets - 1, pl.lit(1)).cast(pl.Float64)
        # As columns: an expression would work them out for each of its terms.
        table = table.with_columns(t_of(gap, se).alias(T), df.alias(DF))
        p = pl.when(gap > 0).then(p_value(pl.col(T), pl.col(DF), confidence.buckets - 1)).otherwise(1.0)
        is_dominant = (pl.col(SHARE) > DOMINANT) & (confidence.buckets >= MANY_BUCKETS)
        flags = {
            "leak?": (gap > 0) & ((pl.col("share_of_harm") > NEARLY_ALL) | (value == self._worst)),
            "undefined_replicates": se.is_null(),
            "degenerate": se == 0,
            "few_buckets": buckets < FEW_BUCKETS,
            "low_n": pl.coalesce(pl.col("n_clusters") < FEW_CLUSTERS, buckets <= SEEMS_FEW),
            "dominant_cluster": is_dominant,
        }
        flag = first_that_holds([(holds.fill_null(False), pl.lit(flag)) for flag, holds in flags.items()], pl.lit("ok"))
        if not self._found.are_half:
            unknown = pl.lit(None, dtype=pl.Float64)
            adjusted = pl.when(~is_dominant).then(pl.col("p_adjusted"))
            return table.with_columns(
                unknown.alias("low"), unknown.alias("high"), unknown.alias("p"), adjusted.alias("p_adjusted"),
                flag.alias("ci_flag"),
            )  # fmt: skip
        table = table.with_columns((gap - half).alias("low"), (gap + half).alias("high"), flag.alias("ci_flag"))
        table = table.with_columns(pl.when(varies).then(p).alias("p"))
        return table.with_columns(benjamini_hochberg("p", [GROUP]).alias("p_adjusted"))

    def _conditions(self, place: int) -> list[Condition]:
        _, codes = self._found.lattice.codes_of(place)
        return [self._coded.features[feature].conditions[code] for feature, code in codes.items()]

    def _text(self, place: int | None) -> str | None:
        return None if place is None else ", ".join(condition.text() for condition in self._conditions(place))

    def _with_names(self, table: pl.DataFrame) -> pl.DataFrame:
        """The table with the slices in words."""
        rows = []
        for place, parent, hidden_by in table.select(PLACE, PARENT, "hidden_by").iter_rows():
            conditions = self._conditions(place)
            rows.append(
                {
                    "slice": self._text(place),
                    "conditions": [condition._asdict() for condition in conditions],
                    "depth": len(conditions),
                    "parent": self._text(parent),
                    "hidden_by": self._text(hidden_by),
                }
            )
        schema = {name: COLUMNS[name] for name in ("slice", "conditions", "depth", "parent", "hidden_by")}
        return table.drop("hidden_by").hstack(pl.DataFrame(rows, schema=schema))
