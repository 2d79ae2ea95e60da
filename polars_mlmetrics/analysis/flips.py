"""`flips`: the samples that another model gets better or worse than the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Unpack

import polars as pl

from polars_mlmetrics.analysis.evaluate import values_of
from polars_mlmetrics.analysis.worst import first_of_groups
from polars_mlmetrics.contrasts.pairing import candidates_of, check_between
from polars_mlmetrics.data.frames import AnyFrame, as_given_later, schema_of
from polars_mlmetrics.data.roles import MODEL, Roles, checked_roles
from polars_mlmetrics.errors import INTERNAL, at_callers_line
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.formula.parameters import Count, check_parameter
from polars_mlmetrics.intervals.interval import NOISE
from polars_mlmetrics.query.keys import Key, Keys, listed
from polars_mlmetrics.query.query import check_names
from polars_mlmetrics.query.question import Question
from polars_mlmetrics.query.results import ResultColumns
from polars_mlmetrics.query.verb import Verb

FLIPS = Verb("flips", takes_several=False, needs_best=True)

COLUMNS = ResultColumns.of(
    (pl.Float64, "value", "baseline_value"), (pl.String, "change"), (pl.Int64, "n_better", "n_worse", "n_broken")
)
"""The columns of each sample, and of all samples of its group."""

SIZE = f"{INTERNAL}size"
"""How far a value has changed."""


@at_callers_line
def flips(
    frame: AnyFrame,
    metric: Metric,
    between: Key = MODEL,
    *,
    baseline: Any,
    k: int = 50,
    by: Keys | None = None,
    slices: Sequence[Keys] | None = None,
    passes: int | Literal["auto", "files"] | None = None,
    memory: int | str | None = None,
    progress: bool = True,
    **roles: Unpack[Roles],
) -> AnyFrame:
    """The k samples of each group, slice and model whose value has changed most, against the baseline.

    `change` is "better" or "worse", by the direction of the metric. `n_better` and `n_worse` count all samples of the
    group that have changed, those beyond the k too. Samples that one of the two lacks, or of which a value is null or
    NaN, are left out; `n_broken` counts those with a NaN.

    `passes`, `memory` and `progress` are those of `evaluate`: in memory are a value a sample and model, and the rows of
    one pass.

    Returns
    -------
    The by columns, the model and the slice, the sample, `value` and `baseline_value`, `change`, `n_better`, `n_worse`
    and `n_broken`.

    Raises
    ------
    ParameterError
        If the baseline is no value of `between`.
    ColumnError
        If a column that is named, or that a metric reads, is not in the frame or has another type.

    See Also
    --------
    compare : whether the difference of two models is chance.
    worst : the worst samples of one model.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> log = pl.DataFrame({"model": ["old"] * 3 + ["new"] * 3, "sample": [1, 2, 3] * 2, "truth": [1, 0, 1] * 2,
    ...                     "score": [0.9, 0.2, 0.4, 0.8, 0.7, 0.6]})
    >>> mlm.flips(log, mlm.accuracy(), baseline="old")
    shape: (2, 8)
    ┌───────┬────────┬───────┬────────────────┬────────┬──────────┬─────────┬──────────┐
    │ model ┆ sample ┆ value ┆ baseline_value ┆ change ┆ n_better ┆ n_worse ┆ n_broken │
    │ ---   ┆ ---    ┆ ---   ┆ ---            ┆ ---    ┆ ---      ┆ ---     ┆ ---      │
    │ str   ┆ i64    ┆ f64   ┆ f64            ┆ str    ┆ i64      ┆ i64     ┆ i64      │
    ╞═══════╪════════╪═══════╪════════════════╪════════╪══════════╪═════════╪══════════╡
    │ new   ┆ 2      ┆ 0.0   ┆ 1.0            ┆ worse  ┆ 1        ┆ 1       ┆ 0        │
    │ new   ┆ 3      ┆ 1.0   ┆ 0.0            ┆ better ┆ 1        ┆ 1       ┆ 0        │
    └───────┴────────┴───────┴────────────────┴────────┴──────────┴─────────┴──────────┘
    """
    schema = schema_of(frame, FLIPS.name)
    FLIPS.reads_state(schema)
    checked_roles(roles)
    check_between(between, schema)
    question = Question.read(FLIPS, frame, [metric], [*listed(by), between], slices, roles=roles, schema=schema)
    check_parameter("flips", "k", k, Count)
    split = question.with_passes(passes, memory, progress=progress)
    values = question.planned(lambda question: values_of(question, "sample"))
    *keys, name = values.collect_schema().names()
    model = between if isinstance(between, str) else between.meta.output_name()
    units = question.query.measures[0].table.keys("sample")
    check_names([*keys, *COLUMNS])

    def changed(values: pl.LazyFrame) -> pl.LazyFrame:
        is_baseline, numbers = pl.col(model).eq_missing(pl.lit(baseline)), pl.col(name).cast(pl.Float64)
        shared = [key for key in keys if key != model]
        theirs = values.filter(is_baseline).select(*shared, numbers.alias("baseline_value"))
        ours = values.filter(~is_baseline).select(*keys, numbers.alias("value"))
        both = ours.join(theirs, on=shared, how="inner", nulls_equal=True)
        return _changed(both, keys, units, k, is_loss=metric.best == "min")

    def checked() -> pl.LazyFrame:
        candidates_of(question.query.frame.select(between), baseline, model)
        return changed(values_of(split, "sample") if split.passes else values)

    return as_given_later(frame, checked, lambda: changed(values))


def _changed(both: pl.LazyFrame, keys: list[str], units: list[str], k: int, *, is_loss: bool) -> pl.LazyFrame:
    """The samples that have changed most in each group, those of a group counted."""
    value, baseline_value = pl.col("value"), pl.col("baseline_value")
    change = value - baseline_value
    groups = [key for key in keys if key not in units]
    is_better = change < 0 if is_loss else change > 0
    broken = value.is_nan() | baseline_value.is_nan()
    both = both.with_columns(broken.sum().over(groups).cast(pl.Int64).alias("n_broken"))
    changed = both.filter(change.abs() > NOISE * (value.abs() + baseline_value.abs()), change.is_not_nan())
    counted = changed.with_columns(
        pl.when(is_better).then(pl.lit("better")).otherwise(pl.lit("worse")).alias("change"),
        is_better.sum().over(groups).cast(pl.Int64).alias("n_better"),
        (~is_better).sum().over(groups).cast(pl.Int64).alias("n_worse"),
        change.abs().alias(SIZE),
    )
    return first_of_groups(counted, groups, SIZE, units, k, highest=True).select(*keys, *COLUMNS)
