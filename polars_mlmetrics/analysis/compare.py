"""`compare`: models against a baseline, on the samples that both have, or on all rows of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Literal, Unpack

import polars as pl

from polars_mlmetrics.contrasts.comparison import Adjust, Comparison, OfAllRows, OfLog, OfState
from polars_mlmetrics.contrasts.pairing import keys_with
from polars_mlmetrics.data.frames import AnyFrame, Frame, Names, as_given_later, schema_of
from polars_mlmetrics.data.roles import MODEL, Roles, checked_roles
from polars_mlmetrics.errors import ParameterError, at_callers_line
from polars_mlmetrics.formula.parameters import check_parameter
from polars_mlmetrics.query.keys import Key, Keys
from polars_mlmetrics.query.question import Question
from polars_mlmetrics.query.verb import Verb

COMPARE = Verb("compare", takes_states=True, needs_interval=True)


@at_callers_line
def compare(
    frame: AnyFrame,
    *metrics: pl.Expr | Sequence[pl.Expr],
    between: Key = MODEL,
    baseline: Any,
    by: Keys | None = None,
    slices: Sequence[Keys] | None = None,
    ci: float = 0.95,
    margin: float | None = None,
    adjust: Adjust = "bh",
    pairs: bool = True,
    cluster: Names = None,
    anytime: int | None = None,
    passes: int | Literal["auto", "files"] | None = None,
    memory: int | str | None = None,
    progress: bool = True,
    **roles: Unpack[Roles],
) -> AnyFrame:
    """Compare models with a baseline: the differences of metrics, with intervals, on the samples that both have.

    One row a group, slice, model and metric. A sample is a pair where each of the two has a row in that group which
    counts to the metric: score, truth, the named weight and all that the metric reads are known, and `.filter(...)` and
    `labels=` keep it. The rows of a sample that counts on one side alone are left out; with `pairs=False` all rows
    count, as of two months. Of a state, which has no samples, all rows count too, and the flag says "pairs_unknown";
    make it with `state(between=)`, and it has pairs alone.

    Parameters
    ----------
    frame
        The long table, or a state with `between` among its by columns.
    *metrics
        Metrics, one by one or in lists. With pairs, all read the same sample, score and truth.
    between
        The column (or row-wise expression) that tells the models apart, or the months.
    baseline
        The value of `between` that the others are compared with.
    by, slices, cluster, **roles
        As in `evaluate`; of a state, `by` and `slices` alone.
    ci
        The level of the intervals; 1 - ci is also the level of the tests.
    margin
        The smallest difference that matters, in the units of the metric. The verdict can then be "no change" (the
        interval lies within the margin) or "not worse" (it does not reach below it).
    adjust
        "bh" adjusts p for the number of rows of one metric and model, with the method of Benjamini and Hochberg: those
        of slices together, and those of the whole together. None does not.
    pairs
        Whether only samples that both sides have are compared. False compares all rows of both, also samples that one
        side lacks: two months, or two countries. A bucket of clusters then leaves both sides at once, so that clusters
        on both sides are known to be; the degrees of freedom are at most those of Welch and Satterthwaite; and the flag
        is that of the side of which less is known. Where one side does not vary there is no interval ("degenerate").
    anytime
        As in `evaluate`: whether you may look as often as you like, at all pairs so far. `p`, `p_adjusted` and the
        verdict are then right at every look too, and there is no `mde`.
    passes, memory, progress
        As in `evaluate`, of a log. Samples that are no pairs stay in memory.

    Returns
    -------
    The keys, then `metric`, `value`, `baseline_value`, `difference`, its interval `low` and `high`, `p`, `p_adjusted`,
    `verdict`, `n_pairs` and `n_unpaired` (samples that count on both sides, and on one alone), the undefined units of
    each side (`n_undefined`, `n_undefined_baseline`), `ci_flag`, and `mde`: the smallest difference that these samples
    would show in 8 of 10 cases. An average over labels is of the labels that have a value in both, so it may differ
    from that of `evaluate`. The verdict is "better" or "worse" where `p_adjusted` is below 1 - ci, else "unclear"; null
    where there is no interval, and for a metric that is good at neither end. A group without a pair is a row with the
    flag "no_pairs", in which all else is null; where no group has one, that is an error. With fewer pairs than samples
    that only one side has, the flag is "few_pairs". With `pairs=False`, `n_pairs` and `n_unpaired` are null; a group in
    which one side has no rows is a row with the flag "one_side" and without a difference.

    Raises
    ------
    ParameterError
        If the baseline is no value of `between`. Of a LazyFrame, when it is collected.
    TableError
        If no group has a pair. Of a LazyFrame, when it is collected.
    ColumnError
        If a column that is named, or that a metric reads, is not in the frame or has another type.

    See Also
    --------
    rank : which of several models are tied with the best.
    find_slices : where a model or a month became worse.
    decompose : whether slices became worse, or there are more of the bad ones.
    flips : the samples that changed most.

    References
    ----------
    Benjamini and Hochberg, "Controlling the false discovery rate", 1995.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> rows = pl.DataFrame({"sample": range(100), "truth": [0, 1] * 50}).with_columns(
    ...     old=0.45 + pl.col("sample") % 7 / 100, new=(0.3 + pl.col("truth") * 0.4)
    ... )
    >>> log = rows.unpivot(["old", "new"], index=["sample", "truth"], variable_name="model", value_name="score")
    >>> table = mlm.compare(log, mlm.brier_score(), baseline="old")
    >>> table.select("model", pl.col("difference", "low", "high").round(3), "verdict", "n_pairs")
    shape: (1, 6)
    ┌───────┬────────────┬────────┬────────┬─────────┬─────────┐
    │ model ┆ difference ┆ low    ┆ high   ┆ verdict ┆ n_pairs │
    │ ---   ┆ ---        ┆ ---    ┆ ---    ┆ ---     ┆ ---     │
    │ str   ┆ f64        ┆ f64    ┆ f64    ┆ str     ┆ i64     │
    ╞═══════╪════════════╪════════╪════════╪═════════╪═════════╡
    │ new   ┆ -0.161     ┆ -0.166 ┆ -0.155 ┆ better  ┆ 100     │
    └───────┴────────────┴────────┴────────┴─────────┴─────────┘
    >>> month = pl.when(pl.col("sample") < 60).then(pl.lit("May")).otherwise(pl.lit("June")).alias("month")
    >>> old = log.filter(model="old")
    >>> table = mlm.compare(old, mlm.brier_score(), between=month, baseline="May", pairs=False)
    >>> table.select("month", pl.col("difference", "low", "high").round(3), "verdict", "n_pairs")
    shape: (1, 6)
    ┌───────┬────────────┬────────┬───────┬─────────┬─────────┐
    │ month ┆ difference ┆ low    ┆ high  ┆ verdict ┆ n_pairs │
    │ ---   ┆ ---        ┆ ---    ┆ ---   ┆ ---     ┆ ---     │
    │ str   ┆ f64        ┆ f64    ┆ f64   ┆ str     ┆ i64     │
    ╞═══════╪════════════╪════════╪═══════╪═════════╪═════════╡
    │ June  ┆ 0.001      ┆ -0.012 ┆ 0.013 ┆ unclear ┆ null    │
    └───────┴────────────┴────────┴───────┴─────────┴─────────┘
    """
    given = frame, metrics, between, baseline, roles
    comparison = comparison_of(
        *given,
        by=by,
        slices=slices,
        ci=ci,
        margin=margin,
        adjust=adjust,
        pairs=pairs,
        cluster=cluster,
        anytime=anytime,
        passes=passes,
        memory=memory,
        progress=progress,
    )
    return as_given_later(frame, comparison.paired_table if pairs else comparison.table, comparison.empty)


def comparison_of(
    frame: Frame,
    metrics: Sequence[Any],
    between: Key,
    baseline: Any,
    roles: Mapping[str, Any],
    *,
    by: Keys | None = None,
    slices: Sequence[Keys] | None = None,
    ci: float = 0.95,
    margin: float | None = None,
    adjust: Adjust = "bh",
    pairs: bool = True,
    cluster: Names = None,
    anytime: int | None = None,
    passes: int | Literal["auto", "files"] | None = None,
    memory: int | str | None = None,
    progress: bool = True,
) -> Comparison:
    """Read a comparison of models in a log or in a state."""
    checked_roles(roles)
    _check_options(margin, adjust, pairs)
    schema = schema_of(frame, COMPARE.name)
    keys = keys_with(between, by, COMPARE, schema)
    question = Question.read(COMPARE, frame, metrics, keys, slices, ci=ci, cluster=cluster, roles=roles, schema=schema)
    question = question.at_every_look(anytime).with_passes(passes, memory, progress=progress)
    if not pairs:
        return OfAllRows(question, baseline, margin, adjust)
    return (OfState if question.is_of_state else OfLog)(question, baseline, margin, adjust)


def _check_options(margin: Any, adjust: Any, pairs: Any) -> None:
    is_number = isinstance(margin, int | float) and not isinstance(margin, bool)
    if margin is not None and not (is_number and isfinite(margin) and margin >= 0):
        raise ParameterError(f"margin must be a number of at least 0, not {margin!r}.")
    check_parameter("compare", "adjust", adjust, Adjust)
    check_parameter("compare", "pairs", pairs, bool)
