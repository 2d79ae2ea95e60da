"""Confirm and show: the candidates in the buckets that the search did not see, with tests, flags and words."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, isfinite

import polars as pl

from polars_mlmetrics.contrasts.rest import t_of, with_tests
from polars_mlmetrics.data.expressions import any_of
from polars_mlmetrics.data.numpy_later import Numbers, np
from polars_mlmetrics.data.roles import MODEL
from polars_mlmetrics.engine.folds import fold, matched
from polars_mlmetrics.engine.plan import Plan
from polars_mlmetrics.errors import INTERNAL, MetricError
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.intervals.interval import FEW_BUCKETS, FEW_CLUSTERS, few_decide
from polars_mlmetrics.intervals.intervals import DOMINANT, MANY_BUCKETS, SEEMS_FEW, flag_of
from polars_mlmetrics.intervals.kinds import range_of
from polars_mlmetrics.intervals.student_t import benjamini_hochberg
from polars_mlmetrics.query.reported_value import several_models
from polars_mlmetrics.query.results import ResultColumns
from polars_mlmetrics.slice_search.choose import BIT, TURN, Members, candidates_of, choose, hide_repeats, in_order
from polars_mlmetrics.slice_search.contrast import contrasts_at
from polars_mlmetrics.slice_search.count import PLACE, CellSums, Lattice
from polars_mlmetrics.slice_search.encode import GROUP, N_ROWS, ODD, Encoded
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

PARENT = f"{INTERNAL}parent"
"""The slice with one condition less."""

LARGEST = f"{INTERNAL}largest"
"""The most rows of a slice that are in one bucket."""

POOLED, FEW_PAIRS, LEFT_OUT = (f"{INTERNAL}{name}" for name in ("pooled", "few_pairs", "left_out"))


def worse_slices(cells: CellSums, scores: pl.DataFrame, k: int) -> pl.DataFrame:
    """The slices that are worse than the rest, of those that are large enough."""
    query, candidates = cells.encoded.query, candidates_of(scores, cells.lattice)
    if candidates.is_empty():
        return COLUMNS.empty(query.types_of(query.by)).collect()
    members = Members(cells, candidates)
    table = confirm(cells, scores, members, choose(members, candidates))
    table = tested(cells.encoded, table.join(facts_of_groups(cells), on=GROUP))
    return show(cells, scores, hide_repeats(members, table, k))


def check_values(cells: CellSums) -> None:
    """Refuse a metric that is broken, or without bounds, in a group: no slice of it can be compared."""
    encoded = cells.encoded
    values = encoded.values(cells.wholes, [GROUP]).select("value").collect().to_series()
    broken = values.filter(~values.is_finite())
    if broken.len():
        raise MetricError(
            f"{encoded.metric.output_name} is {broken[0]} in the whole log, or in a group of by=: no slice can be "
            "compared with the rest. `check` names the rows."
        )


def confirm(cells: CellSums, scores: pl.DataFrame, members: Members, chosen: pl.DataFrame) -> pl.DataFrame:
    """One row a candidate, by group and turn, with what the odd buckets say of it."""
    turns = {place: turn for turn, place in enumerate(in_order(scores)[PLACE])}
    parents = [_parent(cells.lattice, turns, *key) for key in chosen.select(GROUP, PLACE).iter_rows()]
    # A whole group is a cell too, without a rest.
    groups, known = range(cells.lattice.n_groups), [parent for parent in parents if parent is not None]
    every = np.unique([*groups, *chosen[PLACE], *known])
    found = contrasts_at(cells, every, ODD)
    values = dict(found.select(PLACE, "value").iter_rows())
    table = chosen.select(
        PLACE,
        BIT,
        pl.col("gap", "se", "t").name.suffix("_search"),
        pl.Series(PARENT, parents, dtype=pl.Int64),
        pl.Series("parent_value", [values.get(parent) for parent in parents], dtype=pl.Float64),
        pl.Series("whole", [values[group] for group in chosen[GROUP]], dtype=pl.Float64),
    )
    table = table.hstack(_counts(cells, members, chosen)).join(found, on=PLACE, maintain_order="left")
    # The search wanted half of them in its half.
    samples, rows, least = (_of_group(of) for of in (cells.n_samples, cells.n_rows, cells.least))
    n_others = ratio(rows - pl.col("n_rows"), rows) * samples
    table = table.filter(pl.col("n_samples") >= least, n_others >= least)
    gap, se = pl.col("gap") + pl.col("gap_search"), (pl.col("se") ** 2 + pl.col("se_search") ** 2).sqrt()
    ordered = in_order(table.with_columns(t_of(gap, se).alias("t")))
    return ordered.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).over(GROUP).alias(TURN))


def _parent(lattice: Lattice, turns: Mapping[int, int], group: int, place: int) -> int | None:
    """The slice with one condition less of which the search is surest: the first by its turn."""
    codes = lattice.codes_of(place)
    if len(codes) < 2:
        return None
    parents = [lattice.place_of(group, {f: c for f, c in codes.items() if f != left}) for left in codes]
    return min(parents, key=lambda parent: turns.get(parent, inf))


def _counts(cells: CellSums, members: Members, chosen: pl.DataFrame) -> pl.DataFrame:
    """How many samples and rows slices have; and in the odd buckets, how many clusters, buckets, and rows in one."""
    where = cells.find(chosen[PLACE].to_numpy())
    samples, rows = cells.samples[where], cells.rows[where]
    odd = rows[:, ODD].sum(axis=2)
    counts = {
        "n_samples": samples.sum(axis=1).min(axis=1),
        "n_rows": rows.sum(axis=(1, 2)),
        "n_clusters": members.n_clusters(chosen, samples[:, ODD].sum(axis=1).min(axis=1)),
        "n_buckets": (rows[:, ODD] > 0).sum(axis=1).min(axis=1),
        LARGEST: odd.max(axis=1),
        N_ROWS: odd.sum(axis=1),
    }
    return pl.DataFrame(counts).cast(pl.Int64)


def _of_group(numbers: Numbers) -> pl.Expr:
    """Of numbers by group, the one of a slice's own."""
    return pl.lit(pl.Series(numbers)).gather(pl.col(GROUP))


def tested(encoded: Encoded, table: pl.DataFrame) -> pl.DataFrame:
    """Candidates with intervals, tests and flags."""
    low, high = range_of(encoded.metric)
    sign, is_change = encoded.search.sign, encoded.search.change is not None
    worst, best = (low, high) if sign > 0 else (high, low)
    harm = _harm_of_change(sign) if is_change else _harm(best)
    table = with_tests(table, encoded.metric, encoded.confidence, is_change=is_change)
    table = table.with_columns(harm.alias("share_of_harm"))
    flag, adjusted = flag_of(_flags(encoded, worst)), benjamini_hochberg([GROUP])
    return table.with_columns(flag.alias("ci_flag"), adjusted.alias("p_adjusted"))


def _harm(best: float) -> pl.Expr:
    """Which part of what the group lacks to the best value the rest lacks not; null where there is no best."""
    if not isfinite(best):
        return pl.lit(None, dtype=pl.Float64)
    lacks, rest_lacks = ((pl.col(name) - best).abs() for name in ("whole", "rest"))
    # What the metric is of the group has every weight in it, as shares of the samples have not.
    return ratio(lacks - rest_lacks, lacks).clip(0, 1)


def _harm_of_change(sign: int) -> pl.Expr:
    """Which part of what the group became worse by the rest did not; null where the group became no worse."""
    worse, rest_worse = (-sign * pl.col(name) for name in ("whole", "rest"))
    return pl.when(worse > 0).then(ratio(worse - rest_worse, worse).clip(0, 1))


def _flags(encoded: Encoded, worst: float) -> dict[str, pl.Expr]:
    """The faults that an interval may have, by flag."""
    buckets, gap, se, value = (pl.col(name) for name in ("n_buckets", "gap", "se", "value"))
    largest = ratio(pl.col(LARGEST), pl.col(N_ROWS))
    change = encoded.search.change
    # That one slice makes all of a change is what is looked for.
    of_change = {} if change is None else {"pairs_unknown": pl.lit(not change.is_known), "few_pairs": pl.col(FEW_PAIRS)}
    leak = {"leak?": (gap > 0) & ((pl.col("share_of_harm") > NEARLY_ALL) | (value == worst))}
    return (leak if change is None else of_change) | {
        "undefined_replicates": se.is_null(),
        "degenerate": se == 0,
        "pooled": pl.col(POOLED),
        "few_buckets": buckets < FEW_BUCKETS,
        "few_decide": few_decide(pl.col("deciding")),
        "coarse_bins": pl.col("bound") > 0.5 * (pl.col("high") - pl.col("low")),
        "low_n": pl.coalesce(pl.col("n_clusters") < FEW_CLUSTERS, buckets <= SEEMS_FEW),
        "dominant_cluster": (largest > DOMINANT) & (encoded.buckets >= MANY_BUCKETS),
    }


def facts_of_groups(cells: CellSums) -> pl.DataFrame:
    """Whether a group has rows of several models, which no feature tells apart; and fewer pairs than other samples."""
    encoded = cells.encoded
    change, few_pairs = encoded.search.change, pl.lit(False)
    groups = encoded.groups.lazy()
    if change is not None and change.left_out is not None:
        n_left_out = fold(change.left_out.lazy(), encoded.by, [pl.len().alias(LEFT_OUT)])
        groups = matched(groups, n_left_out, encoded.by, how="left")
        few_pairs = (_of_group(cells.n_samples) < pl.col(LEFT_OUT)).fill_null(False)
    plan = Plan(encoded.search.source, [*encoded.by, *encoded.search.sides], encoded.query.readings)
    counts = several_models(encoded.metric, plan)
    # The sides may be models, or each be one.
    are_apart = MODEL in {*(feature.name for feature in encoded.features), *(key.name for key in encoded.query.by)}
    pooled = pl.lit(False)
    if counts and not are_apart:
        several = any_of([plan.value(count) > 0 for count in counts])
        found = fold(plan.groups(), encoded.by, [several.any().alias(POOLED)])
        groups, pooled = matched(groups, found, encoded.by, how="left"), pl.col(POOLED)
    return groups.select(GROUP, pooled.alias(POOLED), few_pairs.alias(FEW_PAIRS)).collect()


def show(cells: CellSums, scores: pl.DataFrame, table: pl.DataFrame) -> pl.DataFrame:
    """The result, from the candidates that are shown."""
    encoded, lattice = cells.encoded, cells.lattice

    def conditions(place: int) -> list[Condition]:
        return [encoded.features[feature].conditions[code] for feature, code in lattice.codes_of(place).items()]

    def text(place: int | None) -> str | None:
        return None if place is None else ", ".join(condition.text() for condition in conditions(place))

    words = {
        "slice": map(text, table[PLACE]),
        "conditions": ([each._asdict() for each in conditions(place)] for place in table[PLACE]),
        "parent": map(text, table[PARENT]),
        "hidden_by": map(text, table["hidden_by"]),
    }
    table = table.with_columns(pl.Series(name, list(values), COLUMNS[name]) for name, values in words.items())
    n_tested = scores.group_by(GROUP).agg(pl.len().alias("n_tested"))
    table = table.join(n_tested, on=GROUP).join(encoded.groups, on=GROUP).sort(GROUP, TURN)
    table = table.with_columns(
        pl.col("conditions").list.len().alias("depth"),
        pl.int_range(1, pl.len() + 1).over(GROUP).alias("rank"),
        ratio(pl.col("n_samples"), _of_group(cells.n_samples)).alias("share"),
        pl.lit(_plan(cells)).alias("plan"),
    )
    return table.select(*(pl.col(key.column).alias(key.name) for key in encoded.query.by), *COLUMNS.cast())


def _plan(cells: CellSums) -> str:
    """How the slices were searched, in words, and of which clusters nothing is known."""
    encoded, large = cells.encoded, {*cells.large_features}
    n_combinations = sum({*some} <= large for some in cells.lattice.combinations[1:])
    halves = f"searched in {encoded.n_searched} of {encoded.buckets} buckets, measured in the others"
    words = [encoded.how, f"{n_combinations} combinations of features", halves]
    for found in encoded.unnamed_clusters():
        shared = ", ".join(map(repr, found.features))
        words.append(f"samples of one {found.column!r} have the same {shared}, and no cluster= is given")
    return "; ".join(words)
