"""`compare`: models against a baseline, on the samples that both have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Unpack

import polars as pl

from polars_mlmetrics.contrasts.comparison import Adjust, Comparison, OfLog, OfState
from polars_mlmetrics.contrasts.pairing import check_between
from polars_mlmetrics.data.frames import AnyFrame, Frame, Names, as_given_later, schema_of
from polars_mlmetrics.data.roles import MODEL, Roles, checked_roles
from polars_mlmetrics.engine.contents import Contents
from polars_mlmetrics.errors import NameCollisionError, ParameterError, at_callers_line
from polars_mlmetrics.formula.parameters import check_parameter
from polars_mlmetrics.query.query import Key, Keys, listed
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
    cluster: Names = None,
    **roles: Unpack[Roles],
) -> AnyFrame:
    """Compare models with a baseline: the differences of metrics, with intervals, on the samples that both have.

    One row a group, slice, model and metric. A sample is a pair where each of the two has a row in that group which
    counts to the metric: score, truth, the named weight and all that the metric reads are known, and `.filter(...)` and
    `labels=` keep it. The rows of a sample that counts on one side alone are left out. Of a state, which has no
    samples, all rows count, and the flag says "pairs_unknown"; make it with `state(between=)`, and it has pairs alone.

    Parameters
    ----------
    frame
        The long table, or a state with `between` among its by columns.
    *metrics
        Metrics, one by one or in lists. All read the same sample, score and truth.
    between
        The column (or row-wise expression) that tells the models apart.
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

    Returns
    -------
    The keys, then `metric`, `value`, `baseline_value`, `difference`, its interval `low` and `high`, `p`, `p_adjusted`,
    `verdict`, `n_pairs` and `n_unpaired` (samples that count on both sides, and on one alone), the undefined units of
    each side (`n_undefined`, `n_undefined_baseline`), `ci_flag`, and `mde`: the smallest difference that these samples
    would show in 8 of 10 cases. An average over labels is of the labels that have a value in both, so it may differ
    from that of `evaluate`. The verdict is "better" or "worse" where `p_adjusted` is below 1 - ci, else "unclear"; null
    where there is no interval, and for a metric that is good at neither end. A group without a pair is a row with the
    flag "no_pairs", in which all else is null; where no group has one, that is an error.

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
    """
    given = frame, metrics, between, baseline, roles
    comparison = comparison_of(*given, by=by, slices=slices, ci=ci, margin=margin, adjust=adjust, cluster=cluster)
    return as_given_later(frame, comparison.paired_table, comparison.empty)


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
    cluster: Names = None,
) -> Comparison:
    """Read a comparison of models in a log or in a state."""
    checked_roles(roles)
    _check_options(margin, adjust)
    groups: list[Key] = listed(by)
    if isinstance(between, str) and between in [key for key in groups if isinstance(key, str)]:
        raise NameCollisionError(
            f"two columns of the result would have the name {between!r}, by which compare tells the models apart: "
            "leave it out of by=."
        )
    schema = schema_of(frame, COMPARE.name)
    if COMPARE.reads_state(schema):
        check_between(between, Contents.of(schema).by, of="a by column of the state")
    else:
        check_between(between, schema)
    keys = [*groups, between]
    question = Question.read(COMPARE, frame, metrics, keys, slices, ci=ci, cluster=cluster, roles=roles, schema=schema)
    if question.state is not None:
        return OfState(question.state, question, baseline, margin, adjust)
    return OfLog(question, baseline, margin, adjust)


def _check_options(margin: Any, adjust: Any) -> None:
    is_number = isinstance(margin, int | float) and not isinstance(margin, bool)
    if margin is not None and not (is_number and isfinite(margin) and margin >= 0):
        raise ParameterError(f"margin must be a number of at least 0, not {margin!r}.")
    check_parameter("compare", "adjust", adjust, Adjust)
