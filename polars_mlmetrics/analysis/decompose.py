"""`decompose`: how much of a change comes from other shares of the slices, and how much from their values."""

from __future__ import annotations

from typing import Any, Literal, Unpack

from polars_mlmetrics.contrasts.mix import MixAndRate, RatioMix, weight_in
from polars_mlmetrics.contrasts.reweighted import ReweightedMix
from polars_mlmetrics.data.frames import AnyFrame, Names, as_given_later
from polars_mlmetrics.data.roles import Roles
from polars_mlmetrics.errors import NameCollisionError, ParameterError, at_callers_line, typed
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.intervals.kinds import core_of
from polars_mlmetrics.query.keys import AnyKey, Key, Keys, listed
from polars_mlmetrics.query.question import Question
from polars_mlmetrics.query.verb import Verb

DECOMPOSE = Verb("decompose", takes_states=True, takes_several=False, needs_interval=True)


@at_callers_line
def decompose(
    frame: AnyFrame,
    metric: Metric,
    over: Keys,
    *,
    between: Key,
    baseline: Any,
    by: Keys | None = None,
    ci: float = 0.95,
    cluster: Names = None,
    passes: int | Literal["auto", "files"] | None = None,
    memory: int | str | None = None,
    progress: bool = True,
    **roles: Unpack[Roles],
) -> AnyFrame:
    """How much of a change comes from the mix of slices, and how much from the rates inside them.

    Did it get worse in the slices, or are there more of the bad ones? The value of a whole is the mean of those of its
    slices, by their shares of the metric's denominator: of the rows for an accuracy or a log loss, of the true rows for
    a recall. With p and v for the share and the value of a slice, V for the value of the whole, and 0 and 1 for the
    baseline and the other side, a slice adds to the change of the whole

    - `mix`: (p1 - p0) · ((v0 + v1) / 2 - (V0 + V1) / 2), as its share changed and it lies above the whole, or below;
    - `rate`: (p0 + p1) / 2 · (v1 - v0), as its value changed.

    Mix and rate of all slices add up to V1 - V0. A slice that one side lacks takes the value of the other side, so all
    that it adds is mix.

    A metric that is no such mean (roc_auc, mcc, rmse, an average over labels) has a mix and a rate of the whole alone:
    its sums are taken anew, as if the slices of each side had the shares (of the rows) of the other. A slice has its
    rate, and these do not add up.

    Parameters
    ----------
    frame
        The long table, or a state with these columns among its by columns.
    metric
        The metric; no total, such as a count. If it looks into samples, all rows of a sample must be in one slice.
    over
        The column (or row-wise expression) whose values are the slices, or several: then each slice is a combination.
    between
        The column (or row-wise expression) that tells the sides apart, such as the month.
    baseline
        The value of `between` that the others are compared with.
    by, cluster, **roles
        As in `evaluate`; of a state, `by` alone.
    ci
        The level of the intervals.
    passes, memory, progress
        As in `evaluate`, of a log.

    Returns
    -------
    One row for each group and each other value of `between`, whose `slice` is "": the whole. Then one row for each of
    its slices, named by `slice` and by the columns of `over`. `metric`; `value` and `baseline_value`, as `evaluate`
    gives them; `share` and `baseline_share`, the part of the whole that the slice is; `mix` and `rate` with their
    intervals, `mix_low`, `mix_high`, `rate_low` and `rate_high`; `change`, the sum of the two, of the whole the change
    of the metric; `n_buckets`, how many buckets have rows of the slice that count, on the side that has fewer; and
    `ci_flag`, one for both intervals. It is "one_side" where no row of one side counts: a slice is all mix then, and of
    a whole nothing is known. Where the metric cannot be computed from sums by bucket, as an exact roc_auc, the whole
    has its change alone.

    Raises
    ------
    MetricError
        The metric is a total.
    TableError
        The metric looks into samples, and some have rows in several slices.

    See Also
    --------
    compare : The differences of metrics in each slice, on the samples that both sides have.
    gap : How far apart the slices of one side are.
    find_slices : The slices that are worst, of all that the columns of a log give.

    References
    ----------
    Kitagawa, "Components of a difference between two rates" (1955). Blinder, "Wage discrimination: reduced form and
    structural estimates" (1973). Oaxaca, "Male-female wage differentials in urban labor markets" (1973).

    Examples
    --------
    No country got worse, and there are more rows of the worse one:

    >>> import polars as pl, polars_mlmetrics as mlm
    >>> log = pl.DataFrame({
    ...     "sample": range(400), "month": ["10"] * 200 + ["11"] * 200, "truth": 1,
    ...     "country": ["DE"] * 150 + ["FR"] * 50 + ["DE"] * 50 + ["FR"] * 150,
    ... }).with_columns(score=pl.col("sample") % pl.when(country="DE").then(5).otherwise(2) > 0)
    >>> table = mlm.decompose(log, mlm.recall(), over="country", between="month", baseline="10")
    >>> table.select("slice", pl.col("share", "baseline_share", "mix", "rate", "change").round(3))
    shape: (3, 6)
    ┌────────────┬───────┬────────────────┬────────┬──────┬────────┐
    │ slice      ┆ share ┆ baseline_share ┆ mix    ┆ rate ┆ change │
    │ ---        ┆ ---   ┆ ---            ┆ ---    ┆ ---  ┆ ---    │
    │ str        ┆ f64   ┆ f64            ┆ f64    ┆ f64  ┆ f64    │
    ╞════════════╪═══════╪════════════════╪════════╪══════╪════════╡
    │            ┆ 1.0   ┆ 1.0            ┆ -0.15  ┆ 0.0  ┆ -0.15  │
    │ country=DE ┆ 0.25  ┆ 0.75           ┆ -0.075 ┆ 0.0  ┆ -0.075 │
    │ country=FR ┆ 0.75  ┆ 0.25           ┆ -0.075 ┆ 0.0  ┆ -0.075 │
    └────────────┴───────┴────────────────┴────────┴──────┴────────┘
    """
    groups: list[AnyKey] = listed(by)
    slices: list[AnyKey] = listed(over)
    if not slices:
        raise ParameterError("decompose needs slices: pass over=, a column or a list of columns.")
    if isinstance(between, str) and between in [key for key in (*groups, *slices) if isinstance(key, str)]:
        raise NameCollisionError(
            f"{between!r} is {typed('between')}, the column that tells the sides apart: leave it out of "
            f"{typed('over')} and {typed('by')}."
        )
    keys = [*groups, between]
    question = Question.read(DECOMPOSE, frame, [metric], keys, [slices], ci=ci, cluster=cluster, roles=roles)
    weight = weight_in(core_of(question.query.metrics[0])[0])

    def found(question: Question) -> MixAndRate:
        return ReweightedMix(question, baseline) if weight is None else RatioMix(question, baseline, weight)

    split = question.with_passes(passes, memory, progress=progress)
    at_once = found(question)
    return as_given_later(frame, lambda: found(split).table() if split.passes else at_once.table(), at_once.empty)
