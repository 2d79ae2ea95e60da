"""`confusion`: how often each true class is predicted as each class, or the four cells of each label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import polars as pl

from polars_mlmetrics.analysis.evaluate import evaluate
from polars_mlmetrics.data.classes import check_classes
from polars_mlmetrics.data.door import Door, check_columns, check_key_types, check_role, types_of
from polars_mlmetrics.data.expressions import any_of
from polars_mlmetrics.data.frames import AnyFrame, as_given
from polars_mlmetrics.data.roles import Grain, Roles, Table, checked_roles
from polars_mlmetrics.errors import INTERNAL, ColumnError, NameCollisionError, ParameterError, TableError
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.formula.shared import NOT_RETURNED, Threshold
from polars_mlmetrics.metrics.decisions import (
    false_negatives,
    false_positives,
    n_rows,
    true_negatives,
    true_positives,
)
from polars_mlmetrics.query.query import KeyColumn, KeyReader, Keys, columns_of, rows_of
from polars_mlmetrics.query.requirements import check_keys

RESULTS = ["truth", "predicted", "n"]
TRUE, PREDICTED, N, BROKEN, BEST, OCCURS = (f"{INTERNAL}{name}" for name in (*RESULTS, "broken", "best", "occurs"))

CELLS = {
    "tp": (true_positives, True, True),
    "fp": (false_positives, False, True),
    "fn": (false_negatives, True, False),
    "tn": (true_negatives, False, False),
}
"""The cells of a decision: the metric that counts its rows, whether they are true, whether they are predicted."""

SEVERAL = "confusion of classes needs one true class per sample. Otherwise pass threshold=, e.g. 0.5"


def confusion(
    frame: AnyFrame,
    by: Keys | None = None,
    *,
    threshold: Threshold | None = None,
    inclusive: bool = False,
    **roles: Unpack[Roles],
) -> AnyFrame:
    """How often each true class is predicted as each class: a row for every pair that occurs, with its weight.

    A table with a label column has several rows per sample: a class, its score, and a truth that is 1 for the true
    class. The best class of a sample is the predicted one; if m classes are tied for best, each has the share 1/m. If
    nothing was returned (all scores are -inf), the predicted class is null. A sample without a true class is left out;
    a sample with several is an error. A table without a label column has one row per sample: the score is the predicted
    class, and the truth is the true class. One broken row makes every n of its group NaN.

    With a threshold there are four rows for each label instead (for each group, if the table has no label column): the
    cells "tp", "fp", "fn" and "tn". They equal `true_positives` and the other counts by label, so a broken row makes
    the four cells of its label NaN.

    Parameters
    ----------
    frame
        The table.
    by
        The columns (or row-wise expressions) of the groups: each combination of values has its own table.
    threshold
        A label is predicted if its score is greater: a number, {label: number}, or an expression. None is for classes.
    inclusive
        Whether a score that equals the threshold is predicted too.
    **roles
        Which columns are the sample, label, score, truth and weight.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> log = pl.DataFrame({"score": ["cat", "cat", "dog"], "truth": ["cat", "dog", "dog"]})
    >>> mlm.confusion(log)
    shape: (3, 3)
    ┌───────┬───────────┬─────┐
    │ truth ┆ predicted ┆ n   │
    │ ---   ┆ ---       ┆ --- │
    │ str   ┆ str       ┆ f64 │
    ╞═══════╪═══════════╪═════╡
    │ cat   ┆ cat       ┆ 1.0 │
    │ dog   ┆ cat       ┆ 1.0 │
    │ dog   ┆ dog       ┆ 1.0 │
    └───────┴───────────┴─────┘

    >>> log = pl.DataFrame({"score": [0.9, 0.8, 0.3], "truth": [1, 0, 0]})
    >>> mlm.confusion(log, threshold=0.5)
    shape: (4, 4)
    ┌──────┬───────┬───────────┬─────┐
    │ cell ┆ truth ┆ predicted ┆ n   │
    │ ---  ┆ ---   ┆ ---       ┆ --- │
    │ str  ┆ bool  ┆ bool      ┆ f64 │
    ╞══════╪═══════╪═══════════╪═════╡
    │ tp   ┆ true  ┆ true      ┆ 1.0 │
    │ fp   ┆ false ┆ true      ┆ 1.0 │
    │ fn   ┆ true  ┆ false     ┆ 0.0 │
    │ tn   ┆ false ┆ false     ┆ 1.0 │
    └──────┴───────┴───────────┴─────┘
    """
    table: Table = checked_roles(roles, others=("by", "threshold", "inclusive")).table
    reader: KeyReader = KeyReader(rows_of(frame))
    keys: list[KeyColumn] = [] if by is None else reader.read(by)
    rows = reader.rows()
    if "label" in roles:
        check_columns([table.label], rows.collect_schema(), what="label column")
    labels: list[str] = [table.label] if table.label in rows.collect_schema() else []
    if inclusive and threshold is None:
        raise ParameterError("confusion: inclusive works only with a threshold. Pass threshold= too.")
    if threshold is not None:
        _check_names([*(key.name for key in keys), *labels], ["cell", *RESULTS])
        result = _cells(_of_decision(frame, threshold, labels, by=by, inclusive=inclusive, **roles))
    else:
        _check_names([key.name for key in keys], RESULTS)
        _check(table, rows.collect_schema(), is_hard=not labels)
        check_keys("confusion", [*columns_of(keys, reader.added), *table.sample], rows.collect_schema())
        if labels and isinstance(frame, pl.DataFrame):
            _check_true_classes(rows, table, keys)
        result = _pairs(rows, table, keys, is_hard=not labels)
    return as_given(frame, result)


def _check_names(keys: Sequence[str], results: Sequence[str]) -> None:
    for name in keys:
        if [*results, *keys].count(name) > 1:
            raise NameCollisionError(
                f"two columns of the result would have the name {name!r}: use .alias(...) on one of them."
            )


# --- decisions --------------------------------------------------------------------------------------------------------


def _of_decision(
    frame: pl.DataFrame | pl.LazyFrame,
    threshold: Threshold,
    labels: Sequence[str],
    *,
    by: Keys | None,
    inclusive: bool,
    **roles: Unpack[Roles],
) -> pl.LazyFrame:
    """One row a group, or a label of it, with the four cells as columns."""
    if isinstance(threshold, str):
        raise ParameterError(
            f"without a threshold, confusion already takes the best class of a sample: leave out {threshold!r}."
        )
    cells = [count(threshold=threshold, inclusive=inclusive).alias(cell) for cell, (count, _, _) in CELLS.items()]
    per: Grain | None = "label" if labels else None
    table = evaluate(frame, *cells, n_rows().alias("n"), by=by, per=per, **roles).lazy()  # type: ignore[type-var]
    return table.filter(pl.col("n") > 0).drop("n")


def _cells(decisions: pl.LazyFrame) -> pl.LazyFrame:
    """The cells one under the other."""
    keys = [name for name in decisions.collect_schema() if name not in CELLS]
    rows = [
        pl.struct(pl.lit(cell).alias("cell"), pl.lit(truth).alias("truth"), pl.lit(said).alias("predicted"), n=cell)
        for cell, (_, truth, said) in CELLS.items()
    ]
    cell = f"{INTERNAL}cell"
    table = decisions.select(*keys, pl.concat_list(rows).alias(cell)).explode(cell).unnest(cell)
    return table.sort([*keys, "predicted", "truth"], descending=[*(False for _ in keys), True, True])


# --- classes ----------------------------------------------------------------------------------------------------------


def _check(table: Table, schema: pl.Schema, *, is_hard: bool) -> None:
    score = check_role("score", table.score, schema, any_type=is_hard)
    truth = check_role("truth", table.truth, schema, any_type=is_hard)
    if table.weight is not None:
        check_role("weight", table.weight, schema, any_type=False)
    if is_hard:
        check_classes("confusion", score, truth)
        return
    check_columns(table.sample, schema, what="sample column")
    check_key_types(table.sample, schema)
    if schema[table.label].is_nested() or schema[table.label] == pl.Object:
        raise ColumnError(f"label is {schema[table.label]}: a class must be a plain value.")


def _pairs(rows: pl.LazyFrame, table: Table, keys: Sequence[KeyColumn], *, is_hard: bool) -> pl.LazyFrame:
    """A row for every true and predicted class that go together."""
    names, columns = [key.name for key in keys], [key.column for key in keys]
    counted = _counted((_hard_pairs if is_hard else _scored_pairs)(rows, table, columns), columns)
    named = dict(zip([*columns, TRUE, PREDICTED, N], [*names, *RESULTS], strict=True))
    return counted.select(pl.col(column).alias(name) for column, name in named.items()).sort([*names, *RESULTS[:2]])


def _hard_pairs(rows: pl.LazyFrame, table: Table, by: Sequence[str]) -> pl.LazyFrame:
    door = Door(table, types=types_of(rows, table))
    pair = {TRUE: door.actual(), PREDICTED: door.prediction(), N: door.weight()}
    return rows.filter(door.included("group")).select(*by, **pair, **{BROKEN: _broken(door)})


def _scored_door(rows: pl.LazyFrame, table: Table) -> Door:
    return Door(table, reads=frozenset({"label"}), types=types_of(rows, table))


def _scored_pairs(rows: pl.LazyFrame, table: Table, by: Sequence[str]) -> pl.LazyFrame:
    door = _scored_door(rows, table)
    sample, label = [*by, *table.sample], pl.col(table.label)
    score, truth, weight = door.score(), door.truth(), door.weight()
    # A column of its own: the streaming engine has no window of what is a window already.
    best, is_best = pl.col(BEST), ((score == score.max().over(sample)) & (score > NOT_RETURNED)).alias(BEST)
    true_labels = truth.sum().over(sample)
    weight = weight if table.weight is None else weight.max().over(sample)
    n_best = best.sum().over(sample)
    pair = {
        TRUE: pl.when(truth).then(label).max().over(sample),
        PREDICTED: pl.when(best).then(label),
        # Where nothing was returned, the true label tells of its sample.
        N: pl.when(best & (true_labels > 0)).then(ratio(weight, n_best)).when(truth & (n_best == 0)).then(weight)
        + _only_one(true_labels, table),
    }
    included = rows.filter(door.included("sample")).with_columns(is_best)
    return included.select(*by, **pair, **{BROKEN: _broken(door)})


def _only_one(true_labels: pl.Expr, table: Table) -> pl.Expr:
    """Nothing, and an error where a sample has several true classes: a text that cannot be a number."""
    sample = pl.struct(table.sample).cast(pl.String, strict=False)
    said = pl.format("sample {} has several true classes, and " + SEVERAL, sample)
    return pl.when(true_labels > 1).then(said).otherwise(pl.lit("0")).cast(pl.Int64)


def _check_true_classes(rows: pl.LazyFrame, table: Table, keys: Sequence[KeyColumn]) -> None:
    """Raise an error at once that would come later: possible only for a DataFrame."""
    door = _scored_door(rows, table)
    groups = dict.fromkeys([*(key.column for key in keys), *table.sample])
    true = rows.filter(door.included("sample"), door.truth()).group_by(*groups, maintain_order=True)
    several = true.agg(pl.col(table.label).alias(TRUE)).filter(pl.col(TRUE).list.len() > 1).head(1).collect()
    if not several.is_empty():
        sample, classes = (", ".join(map(str, of)) for of in (several.select(table.sample).row(0), several[TRUE][0]))
        raise TableError(f"sample {sample} has several true classes ({classes}), and {SEVERAL}.")


def _broken(door: Door) -> pl.Expr:
    return any_of([pl.lit(False), *(rows for rows in door.guards.values() if rows is not None)])


def _counted(pairs: pl.LazyFrame, by: Sequence[str]) -> pl.LazyFrame:
    folded = pairs.group_by(*by, TRUE, PREDICTED).agg(
        pl.col(N).sum().cast(pl.Float64), pl.col(BROKEN).any(), pl.col(N).is_not_null().any().alias(OCCURS)
    )
    broken = pl.col(BROKEN).any()
    n = pl.when(broken.over(by) if by else broken).then(float("nan")).otherwise(pl.col(N)).alias(N)
    # Labels that are not predicted, and samples without a true one, have no pair; a broken row among them is heard.
    return folded.with_columns(n).filter(pl.col(TRUE).is_not_null() & pl.col(OCCURS))
