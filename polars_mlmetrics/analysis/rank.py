"""`rank`: which models are tied with the best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Unpack

from polars_mlmetrics.contrasts.pairing import keys_with
from polars_mlmetrics.contrasts.ranks import Ranks
from polars_mlmetrics.data.frames import AnyFrame, Names, as_given_later, schema_of
from polars_mlmetrics.data.roles import MODEL, Roles
from polars_mlmetrics.errors import at_callers_line
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.query.keys import Key, Keys
from polars_mlmetrics.query.question import Question
from polars_mlmetrics.query.verb import Verb

RANK = Verb("rank", takes_states=True, takes_several=False, needs_best=True, needs_interval=True)


@at_callers_line
def rank(
    frame: AnyFrame,
    metric: Metric,
    *,
    between: Key = MODEL,
    by: Keys | None = None,
    slices: Sequence[Keys] | None = None,
    ci: float = 0.95,
    cluster: Names = None,
    passes: int | Literal["auto", "files"] | None = None,
    memory: int | str | None = None,
    progress: bool = True,
    **roles: Unpack[Roles],
) -> AnyFrame:
    """Which models are tied with the best, on the samples that all of them have.

    Every two models of a group are compared, with the test of `compare`, and the p of all pairs are adjusted by Holm's
    method. A model has as many places as it is not significantly better or worse than others: `rank_low` is 1 and how
    many are significantly better, `rank_high` is the number of models less how many are significantly worse. With
    `ci=0.95` all true places lie in these sets in at least 95 of 100 cases, for all models of a group together.

    A sample takes part where it counts for all models that have rows which count in the group, or in the slice; see
    `compare` for when a row counts. Of a state, which has no samples, all rows take part, and the flag says
    "pairs_unknown"; make it with `state(between=)`, and it has the samples of all models alone.
    An average over labels is that of `evaluate` on these samples; `compare` takes the labels that both sides have.

    Parameters
    ----------
    frame
        The long table, or a state with `between` among its by columns.
    metric
        The metric, with a best value.
    between
        The column (or row-wise expression) that tells the models apart.
    by, slices, cluster, **roles
        As in `evaluate`; of a state, `by` and `slices` alone.
    ci
        How sure the places of all models of a group are together.
    passes, memory, progress
        As in `evaluate`, of a log. Samples that only some models have stay in memory.

    Returns
    -------
    One row a group, slice and model, the best value first: the keys, then `metric`; its `value`; `rank_low` and
    `rank_high`, between which its place is; `tied_with_best`, where no other is significantly better; `n_samples` and
    `n_left_out`, the samples that all models have, and those that only some have; `n_buckets`, of the pair that has
    fewest; and `ci_flag`, the worst of its pairs. A difference that no bucket moves is not significant ("degenerate" if
    that is so in all pairs of a model). A model without a value, or with one that is not finite, takes no part: its
    places are null. Where the metric has no interval from sums by bucket, as an exact roc_auc ("no_state"), every model
    has all places; `roc_auc(bins=)` is judged.

    Raises
    ------
    MetricError
        Neither high nor low values of the metric are always bad.
    TableError
        No sample counts for all models, in any group.

    See Also
    --------
    compare : The difference of each model from one baseline, with its interval.
    gap : How far apart the slices of one model are.

    References
    ----------
    Holm, "A simple sequentially rejective multiple test procedure" (1979). Mogstad, Romano, Shaikh and Wilhelm,
    "Inference for ranks" (2024).

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> rows = pl.DataFrame({"sample": range(200), "truth": [0, 1] * 100}).with_columns(
    ...     old=pl.col("sample") % 3 > 0, new=pl.col("sample") % 8 != 3, next=pl.col("sample") % 8 != 5
    ... )
    >>> right = pl.when(pl.col("score")).then("truth").otherwise(1 - pl.col("truth")).alias("score")
    >>> log = rows.unpivot(["old", "new", "next"], index=["sample", "truth"], variable_name="model", value_name="score")
    >>> table = mlm.rank(log.with_columns(right), mlm.accuracy())
    >>> table.select("model", pl.col("value").round(3), "rank_low", "rank_high", "tied_with_best", "n_samples")
    shape: (3, 6)
    ┌───────┬───────┬──────────┬───────────┬────────────────┬───────────┐
    │ model ┆ value ┆ rank_low ┆ rank_high ┆ tied_with_best ┆ n_samples │
    │ ---   ┆ ---   ┆ ---      ┆ ---       ┆ ---            ┆ ---       │
    │ str   ┆ f64   ┆ i64      ┆ i64       ┆ bool           ┆ i64       │
    ╞═══════╪═══════╪══════════╪═══════════╪════════════════╪═══════════╡
    │ new   ┆ 0.875 ┆ 1        ┆ 2         ┆ true           ┆ 200       │
    │ next  ┆ 0.875 ┆ 1        ┆ 2         ┆ true           ┆ 200       │
    │ old   ┆ 0.665 ┆ 3        ┆ 3         ┆ false          ┆ 200       │
    └───────┴───────┴──────────┴───────────┴────────────────┴───────────┘
    """
    schema = schema_of(frame, RANK.name)
    keys = keys_with(between, by, RANK, schema)
    question = Question.read(RANK, frame, [metric], keys, slices, ci=ci, cluster=cluster, roles=roles, schema=schema)
    ranks = Ranks(question.with_passes(passes, memory, progress=progress))
    return as_given_later(frame, ranks.table, ranks.empty)
