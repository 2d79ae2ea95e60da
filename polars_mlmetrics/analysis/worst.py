"""`worst`: the samples, or the labels, that a metric says are worst."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Literal, Unpack

import polars as pl

from polars_mlmetrics.analysis.evaluate import values_of
from polars_mlmetrics.data.door import check_columns
from polars_mlmetrics.data.expressions import is_one_of
from polars_mlmetrics.data.frames import AnyFrame, Names, answer_as_given, as_given_later, column_names
from polars_mlmetrics.data.roles import Roles
from polars_mlmetrics.errors import INTERNAL, ParameterError, at_callers_line
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.formula.parameters import Count, check_parameter
from polars_mlmetrics.query.keys import Keys
from polars_mlmetrics.query.query import Query, check_names
from polars_mlmetrics.query.question import Level, Question
from polars_mlmetrics.query.results import ResultColumns
from polars_mlmetrics.query.verb import Verb

WORST = Verb("worst", takes_several=False, needs_best=True)

COUNTS = ResultColumns.of((pl.Int64, "n_undefined", "n_broken"))
"""The other columns: how many units have no place in the order."""

FLAG, SELECTED = "ci_flag", "selected"
"""The flag of the intervals of units that were chosen by their values."""


@at_callers_line
def worst(
    frame: AnyFrame,
    metric: Metric,
    k: int = 50,
    by: Keys | None = None,
    slices: Sequence[Keys] | None = None,
    keep: Names = None,
    ci: Level | None = None,
    cluster: Names = None,
    passes: int | Literal["auto", "files"] | None = None,
    memory: int | str | None = None,
    progress: bool = True,
    **roles: Unpack[Roles],
) -> AnyFrame:
    """The k samples (or labels) of each group, and of each slice, on which a metric is worst, the worst first.

    For a metric averaged over labels the rows are labels (for {label: weight}, the labels it names); for any other
    metric they are samples. Rows of several models make one value, unless `by` has the column of the models. Undefined
    (null) and broken (NaN) values have no order: they are left out, and counted in `n_undefined` and `n_broken` of
    their group.

    `keep` names columns that you want to see beside them, such as `["url", "text"]`. Each is null for a sample (or
    label) in which it has several values.

    `ci` is the level of confidence intervals of labels, and `cluster` what they are made from, as in `evaluate`:
    `{metric}_low` and `{metric}_high` stand beside the metric. Labels that were chosen because they are worst would
    often look better on other samples, and their intervals do not know of the choice: their `ci_flag` is "selected".
    For an honest interval choose the labels on some samples, and evaluate them on others.

    `passes`, `memory` and `progress` are those of `evaluate`: in memory are a value a unit, and the rows of one pass.

    Returns
    -------
    The by columns and the slice, the sample or the label, a column of the metric, those of `keep`, and `n_undefined`
    and `n_broken`. With `ci` also the ends of the interval and `ci_flag`.

    Raises
    ------
    MetricError
        If neither end of the metric is good: then no value is the worst.
    ColumnError
        If a column that is named, or that a metric reads, is not in the frame or has another type.

    See Also
    --------
    flips : the samples that changed most between models.
    find_slices : slices that are worse than the rest.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> log = pl.DataFrame({"sample": [1, 1, 2, 2], "score": [0.9, 0.2, 0.4, 0.8], "truth": [1, 0, 1, 0]})
    >>> mlm.worst(log, mlm.log_loss(), k=1)
    shape: (1, 4)
    ┌────────┬──────────┬─────────────┬──────────┐
    │ sample ┆ log_loss ┆ n_undefined ┆ n_broken │
    │ ---    ┆ ---      ┆ ---         ┆ ---      │
    │ i64    ┆ f64      ┆ i64         ┆ i64      │
    ╞════════╪══════════╪═════════════╪══════════╡
    │ 2      ┆ 1.262864 ┆ 0           ┆ 0        │
    └────────┴──────────┴─────────────┴──────────┘
    """
    WORST.read_metrics([metric])
    per: Literal["label", "sample"] = "label" if metric.tree.measures()[0].grain == "label" else "sample"
    if ci is not None and per == "sample":
        raise ParameterError(
            "ci= is for metrics averaged over labels: one sample is one cluster, and a single cluster has no interval."
        )
    question = Question.read(WORST, frame, [metric], by, slices, ci=ci, cluster=cluster, roles=roles)
    query: Query = question.query
    kept: list[str] = column_names("keep", keep)
    check_columns(kept, query.schema, what="column to keep")
    check_parameter("worst", "k", k, Count)
    measures = query.measures
    values = question.planned(lambda question: values_of(question, per))
    units: list[str] = measures[0].table.keys(per)
    columns: list[str] = values.collect_schema().names()
    place = columns.index(units[-1]) + 1
    keys: list[str] = columns[:place]
    name: str = columns[place]
    ends: list[str] = columns[place + 1 :]
    shown: list[str] = [*keys, name, *ends, *([FLAG] if ends else []), *COUNTS]
    check_names([*shown, *kept])
    groups: list[str] = keys[: -len(units)]

    def chosen(values: pl.LazyFrame) -> pl.LazyFrame:
        named = [average for measure in measures if isinstance(average := measure.parameters.get("average"), Mapping)]
        if len(named) == len(measures):
            # A label that an average by label does not name has no part in the metric.
            values = values.filter(is_one_of(pl.col(units), dict.fromkeys(chain.from_iterable(named))))
        table = first_of_groups(_counted(values, groups, name), groups, name, units, k, highest=metric.best == "min")
        if ends:
            table = table.with_columns(pl.when(pl.col(ends[0]).is_not_null()).then(pl.lit(SELECTED)).alias(FLAG))
        table = table.select(shown)
        if not kept:
            return table
        on = [*(key.name for key in query.by), *units]
        return table.join(_kept(query, units, kept), on=on, how="left", nulls_equal=True, maintain_order="left")

    split = question.with_passes(passes, memory, progress=progress)
    if not split.passes:
        return answer_as_given(frame, chosen(values), query.types_of_units())
    return as_given_later(frame, lambda: chosen(values_of(split, per)), lambda: chosen(values))


def _counted(values: pl.LazyFrame, groups: Sequence[str], name: str) -> pl.LazyFrame:
    """The values that have a place in the order, with the counts of those of their group that have none."""
    value = pl.col(name).cast(pl.Float64)
    undefined, broken = value.is_null().sum(), value.is_nan().sum()
    apart = [count.cast(pl.Int64).alias(column) for count, column in zip((undefined, broken), COUNTS, strict=True)]
    return values.with_columns(count.over(groups) if groups else count for count in apart).filter(value.is_not_nan())


def first_of_groups(
    values: pl.LazyFrame, groups: Sequence[str], name: str, units: Sequence[str], k: int, *, highest: bool
) -> pl.LazyFrame:
    """The k highest, or lowest, values of each group."""
    order = [*groups, name, *units]
    ordered = values.sort(order, descending=[highest and key == name for key in order])
    return ordered.group_by(groups, maintain_order=True).head(k) if groups else ordered.head(k)


def _kept(query: Query, units: Sequence[str], columns: Sequence[str]) -> pl.LazyFrame:
    """The values of columns, one row a unit of each group: null where a unit has several."""
    named = [pl.col(key.column).alias(key.name) for key in query.by]
    keys = [*(key.name for key in query.by), *units]
    # Under other names: a key may be called like a column.
    values = {column: pl.col(f"{INTERNAL}keep:{column}") for column in columns}
    rows = query.rows.select(*named, *units, *(pl.col(c).alias(v.meta.output_name()) for c, v in values.items()))
    only = [pl.when(value.n_unique() == 1).then(value.first()).alias(column) for column, value in values.items()]
    return rows.group_by(keys).agg(only)
