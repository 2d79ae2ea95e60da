"""`find_slices`: where a metric is worse than elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Unpack

import polars as pl

from polars_mlmetrics.contrasts.paired_log import Change
from polars_mlmetrics.contrasts.pairing import keys_with
from polars_mlmetrics.data.door import check_columns, to_hold
from polars_mlmetrics.data.frames import Frame, Names, column_names, is_at_hand, schema_of
from polars_mlmetrics.data.roles import MODEL, Roles, check_free, checked_roles
from polars_mlmetrics.engine.plan import Plan
from polars_mlmetrics.errors import (
    ColumnError,
    MetricError,
    ParameterError,
    StateError,
    at_callers_line,
    typed,
    warn_at_callers_line,
)
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.formula.parameters import Count, check_parameter
from polars_mlmetrics.formula.tree import WITHOUT_INTERVAL
from polars_mlmetrics.intervals.interval import FEW_BUCKETS
from polars_mlmetrics.query.keys import Key, Keys
from polars_mlmetrics.query.query import Query, check_names
from polars_mlmetrics.query.question import Question, check_clusters, check_no_passes
from polars_mlmetrics.query.verb import Verb
from polars_mlmetrics.slice_search.features import type_of, warn_of

FIND_SLICES = Verb("find_slices", takes_states=True, takes_several=False, needs_interval=True, has_grid=True)

LEAST_BUCKETS = 32
"""How many buckets a state must have: a half of fewer says little."""

LEVEL = 0.95
"""The level of the intervals."""

NONE_WORSE = "no slice is surely worse than the rest"
"""How the warning of an empty table begins."""


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
    worse: Literal["low", "high"] | None = None,
    top: int = 10,
    bins: int = 5,
    between: Key | None = None,
    baseline: Any = None,
    pairs: bool = True,
    cluster: Names = None,
    passes: int | Literal["auto", "files"] | None = None,
    memory: int | str | None = None,
    progress: bool = True,
    **roles: Unpack[Roles],
) -> pl.DataFrame:
    """Find the slices of a log in which a metric is worse than in the rest of their group; or became worse.

    It tries every combination of up to `depth` features on one half of the samples, takes up to 20 of the surest ones
    in each group (4 at a time; then the rows of the worst are set aside, and the others are looked at again), and
    measures these on the other half. So the values, intervals and p are not made too good by the search. It reads the
    log now, and gives a DataFrame, also for a LazyFrame. One that is more than a scan is collected first, with all of
    its columns: select those that you need.

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
    worse
        "low" or "high": which values are bad. A metric that says so itself needs none.
    top, bins
        See `features`.
    between, baseline
        The column (or row-wise expression) that tells models or months apart, "model" if none is named; and the value
        that the others are compared with. With a baseline, what is searched is how the metric changed: where the new
        model is worse than the old one by more than elsewhere. A slice that was always bad, and did not change, is
        none. Each other value is searched by itself.
    pairs
        As in `compare`: whether only samples that both sides have are compared, here with the same features on both.
        False compares all rows of both sides, such as those of two months.
    cluster, passes, memory, progress
        As in `evaluate`; but a log of more than a million rows is read in passes also where none are asked for, each
        time that the search needs its rows. What is held are sums of slices, and the rows of one pass.

    Returns
    -------
    One row a slice, the surest first (both halves together): the by columns, `rank`, `slice`, `conditions` (what
    `slice_filter` reads), `depth`, `n_samples`, `n_rows` and `share` of the samples of the group. Then, of the samples
    that the search did not see: `value`, the value of the `rest` of the group, their `gap` (positive is worse) with its
    95 % interval `low` and `high`, `p` (the chance of a gap as large if the slice were like the rest: one-sided, so
    above 0.5 where it is better), `p_adjusted` for the number of candidates (Benjamini and Hochberg), and
    `share_of_harm`: how much of what the group lacks to the best value would be gone if the slice were like the rest,
    (rest - whole) / (best - whole), by weight where rows have one. `t_search` is how many standard errors the search
    saw. `parent` is the slice with one condition less in which the search saw the surest gap, with its value
    (`parent_value`). A slice that only repeats another has that in `hidden_by`, and does not count for `k`; `overlap`
    is the share of its rows that lie in slices shown above it. `n_clusters` is the number of its clusters among the
    samples that the search did not see. `ci_flag` is as in a tidy table, or "leak?" where a slice has more than 90 % of
    the harm, or the worst value there is. `n_tested` is the number of slices that were searched. `plan` says how, and
    where no `cluster=` is given it names a column, such as the user, of which each value has several samples with the
    same features. A slice whose gap is less than two standard errors in the samples of the search is left out. Where
    none is left, a warning says how many slices were tried, and how many of them were large enough.

    With a baseline the column `between` comes after the by columns. `value`, `rest` and `parent_value` are changes, the
    value of the candidate less that of the baseline, and `gap` is how much worse the change of the slice is than that
    of the rest. `share_of_harm` is how much of the change of the group would be gone if the slice had changed like the
    rest; null where the group did not become worse, and no slice is flagged "leak?". `n_samples` are pairs, or the
    samples of the side that has fewer; `n_rows` are those of both sides. Flags are "few_pairs" and "pairs_unknown" too.

    Raises
    ------
    StateError
        If a state does not hold the features, `n_samples()` or 32 buckets.

    See Also
    --------
    slice_filter : the rows of slices that were found.
    evaluate : metrics of slices that you name.

    References
    ----------
    Chung et al., "Slice Finder: automated data slicing for model validation", 2019.
    Benjamini and Hochberg, "Controlling the false discovery rate", 1995.

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
    >>> old = log.with_columns(model=pl.lit("old"))
    >>> worse = pl.when(country="FR").then(pl.col("score") - 0.2).otherwise("score")
    >>> models = pl.concat([old, old.with_columns(model=pl.lit("new"), score=worse)])
    >>> table = mlm.find_slices(models, mlm.brier_score(), ["country", "age"], between="model", baseline="old", k=1)
    >>> table.select("model", "slice", "n_samples", pl.col("value", "rest", "gap").round(2))
    shape: (1, 6)
    ┌───────┬───────────────────────┬───────────┬───────┬──────┬──────┐
    │ model ┆ slice                 ┆ n_samples ┆ value ┆ rest ┆ gap  │
    │ ---   ┆ ---                   ┆ ---       ┆ ---   ┆ ---  ┆ ---  │
    │ str   ┆ str                   ┆ i64       ┆ f64   ┆ f64  ┆ f64  │
    ╞═══════╪═══════════════════════╪═══════════╪═══════╪══════╪══════╡
    │ new   ┆ country=FR, age >= 65 ┆ 200       ┆ 0.3   ┆ 0.03 ┆ 0.27 │
    └───────┴───────────────────────┴───────────┴───────┴──────┴──────┘
    """
    # Without them, `import polars_mlmetrics` is quicker.
    from polars_mlmetrics.slice_search.contrast import contrasts_at
    from polars_mlmetrics.slice_search.count import CellSums
    from polars_mlmetrics.slice_search.encode import EVEN, EncodedLog, EncodedState, Search, passes_for
    from polars_mlmetrics.slice_search.show import COLUMNS, check_values, worse_slices

    for name, value in {"depth": depth, "k": k, "top": top, "bins": bins}.items():
        check_parameter("find_slices", name, value, Count)
    check_parameter("find_slices", "min_samples", min_samples, Count | None)
    check_sides(between, baseline, pairs)
    schema = schema_of(frame, FIND_SLICES.name)
    is_of_state = FIND_SLICES.reads_state(schema)
    FIND_SLICES.read_metrics([metric])
    sign, names = sign_of(metric, worse), names_of(features)
    if is_of_state:
        check_no_passes(passes, memory)
    else:
        frame = searchable(frame, schema, roles, reads_now=not passes)
    slices = names if is_of_state else None
    keys = by if baseline is None else keys_with(MODEL if between is None else between, by, FIND_SLICES, schema)
    question = Question.read(
        FIND_SLICES, frame, [metric], keys, slices, ci=LEVEL, cluster=cluster, roles=roles, schema=schema
    )
    check_intervals(question)
    if cluster is not None and isinstance(frame, pl.LazyFrame):  # its rows are read now anyway
        check_clusters(question.query)
    if not is_of_state:
        check_features(question.query, names)
    check_names([*(key.name for key in question.query.by), *COLUMNS])
    change = None if baseline is None else Change.of(question, baseline, names, pairs=pairs)
    question = question if change is None else change.question
    if not is_of_state:
        question = replace(question, passes=passes_for(question.query, passes, memory, progress=progress))
    encode = EncodedState if is_of_state else EncodedLog
    cells = CellSums(encode(Search(question, sign, change), names, top, bins), depth, min_samples)
    encoded = cells.encoded
    check_values(cells)
    large = {encoded.features[i].name for i in cells.large_features}
    small = dict.fromkeys(feature.name for feature in encoded.features if feature.name not in large)
    warn_of([*small], "have no value with enough samples, and are left out")
    scores = contrasts_at(cells, cells.large_slices(), EVEN)
    table = worse_slices(cells, scores, k)
    if table.is_empty():
        # Each half of the log has about half of the samples, and of the clusters.
        least, few = cells.least.min(), 2 * FEW_BUCKETS
        in_buckets = f", in about {few} buckets or more" if least < 2 * few else ""
        of_clusters = in_buckets if cluster is None else f" of about {few} clusters or more"
        warn_at_callers_line(
            f"{NONE_WORSE}: {cells.lattice.n_slices:,} slices tried, {scores.height:,} of "
            f"them large enough ({least:,.0f} samples{of_clusters}, and so many in the rest)."
        )
    return table


def check_sides(between: Any, baseline: Any, pairs: Any) -> None:
    """Refuse what is for a change where there is no baseline."""
    check_parameter("find_slices", "pairs", pairs, bool)
    if baseline is None and (between is not None or not pairs):
        given = typed("pairs", False) if between is None else typed("between")
        raise ParameterError(
            f"{given} is for a change: pass {typed('baseline')} too, the value that the others are compared with."
        )


def searchable(log: Frame, schema: pl.Schema, roles: Mapping[str, Any], *, reads_now: bool) -> Frame:
    """A log that has samples. One that is more than a scan is collected, where it is not to be read in passes."""
    check_free(schema)
    lacking = [column for column in checked_roles(roles).table.sample if column not in schema]
    if lacking:
        raise ColumnError(
            f"find_slices needs samples, and there is no sample column {lacking[0]!r}: pass {typed('sample')}, or, if "
            "each row is a sample, add .with_row_index('sample')."
        )
    return log if not reads_now or is_at_hand(log.lazy()) else to_hold(log.lazy()).collect()


def check_intervals(question: Question) -> None:
    """Refuse a metric that has no intervals, and a state of few buckets."""
    query, confidence = question.query, question.confidence
    if confidence is not None and confidence.buckets < LEAST_BUCKETS:
        raise StateError(f"find_slices needs {LEAST_BUCKETS} buckets, and this state has {confidence.buckets}.")
    (core,) = query.metrics
    plan = Plan(question.source, [], query.readings)
    if core.interval_kind in WITHOUT_INTERVAL or not plan.merges(core):
        raise MetricError(
            f"{core.output_name} has no intervals, so its slices cannot be told from noise: choose another metric, of "
            "a curve the one with bins=, of calibration brier_reliability(debiased=True)."
        )


def sign_of(metric: Metric, worse: Any) -> int:
    """1 where low values are bad, -1 where high ones are."""
    check_parameter("find_slices", "worse", worse, Literal["low", "high"] | None)
    if worse is None and metric.best is None:
        raise MetricError(
            f"{metric.output_name} has no direction: pass {typed('worse', 'low')} or {typed('worse', 'high')}."
        )
    return 1 if worse == "low" or (worse is None and metric.best == "max") else -1


def names_of(features: Any) -> list[str]:
    """The names of the features."""
    several = features if isinstance(features, Sequence) else [features]
    if any(isinstance(each, pl.Expr) for each in several):
        raise ParameterError("features are names of columns: add an expression as a column first.")
    names = column_names("features", features)
    if not names:
        raise ParameterError("find_slices needs features: pass a column or a list of columns.")
    return names


def check_features(query: Query, names: Sequence[str]) -> None:
    """Refuse columns that cannot be features."""
    check_columns(names, query.schema, what="feature")
    tables = [query.roles, *(measure.table for measure in query.measures)]
    grains = {grain for measure in query.measures for grain in (measure.grain, *measure.probe.looks_into)}
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
