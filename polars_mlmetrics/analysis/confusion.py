"""`confusion`: which class is taken for which, as a table."""

from collections.abc import Sequence
from typing import TypeVar, Unpack

import polars as pl

from polars_mlmetrics.analysis.fitness import check_keys
from polars_mlmetrics.analysis.question import KeyColumn, KeyReader, Keys, columns_of, rows_of
from polars_mlmetrics.data.roles import Door, Roles, Table, any_of, check_columns, check_role, checked_roles
from polars_mlmetrics.engine.arithmetic import ratio
from polars_mlmetrics.engine.statistics import NOT_RETURNED
from polars_mlmetrics.errors import INTERNAL, ColumnError, NameCollisionError

AnyFrame = TypeVar("AnyFrame", pl.DataFrame, pl.LazyFrame)

RESULTS = ["truth", "predicted", "n"]
TRUE, PREDICTED, N, BROKEN, BEST, OCCURS = (f"{INTERNAL}{name}" for name in (*RESULTS, "broken", "best", "occurs"))


def confusion(frame: AnyFrame, by: Keys | None = None, **roles: Unpack[Roles]) -> AnyFrame:
    """How often each true class is predicted as each class: a row for every pair that occurs, with its weight.

    A table with a label column is one of several rows a sample: a class, its score, and a truth that is 1 for the true
    class. The best class of a sample is the predicted one; of m tied best ones each to the share 1/m. Where nothing was
    returned, all scores being -inf, it is null. A sample without a true class is left out. A table without a label
    column is one of hard predictions: the score is the predicted class, the truth the true one. One broken row makes
    every n of its group NaN.

    Parameters
    ----------
    frame
        The table.
    by
        The columns (or row-wise expressions) whose every combination has a table of its own.
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
    """
    given = rows_of(frame)
    table: Table = Table.of(checked_roles(roles, beside=("by",)))
    reader: KeyReader = KeyReader(given)
    keys: list[KeyColumn] = [] if by is None else reader.read(by)
    names: list[str] = [key.name for key in keys]
    for name in names:
        if [*RESULTS, *names].count(name) > 1:
            raise NameCollisionError(f"two columns of the result would be called {name!r}: give one an .alias(...).")
    columns: list[str] = [key.column for key in keys]
    rows = reader.rows()
    schema = rows.collect_schema()
    if "label" in roles:
        check_columns([table.label], schema, what="label column")
    is_hard = table.label not in schema
    _check(table, schema, is_hard=is_hard)
    check_keys("confusion", [*columns_of(keys, reader.added), *table.sample], schema)
    counted = _counted((_hard_pairs if is_hard else _scored_pairs)(rows, table, columns), columns)
    named = dict(zip([*columns, TRUE, PREDICTED, N], [*names, *RESULTS], strict=True))
    result = counted.select(pl.col(column).alias(name) for column, name in named.items())
    result = result.sort([*names, *RESULTS[:2]])
    return result.collect() if isinstance(frame, pl.DataFrame) else result


def _check(table: Table, schema: pl.Schema, *, is_hard: bool) -> None:
    check_role("score", table.score, schema, any_type=is_hard)
    check_role("truth", table.truth, schema, any_type=is_hard)
    if table.weight is not None:
        check_role("weight", table.weight, schema, any_type=False)
    if not is_hard:
        check_columns(table.sample, schema, what="sample column")
        if schema[table.label].is_nested():
            raise ColumnError(f"label is {schema[table.label]}: a class must be a plain value.")


def _hard_pairs(rows: pl.LazyFrame, table: Table, by: Sequence[str]) -> pl.LazyFrame:
    door = Door(table)
    pair = {TRUE: door.actual(), PREDICTED: door.prediction(), N: door.weight()}
    return rows.filter(door.included("group")).select(*by, **pair, **{BROKEN: _broken(door)})


def _scored_pairs(rows: pl.LazyFrame, table: Table, by: Sequence[str]) -> pl.LazyFrame:
    door = Door(table, reads=frozenset({"label"}))
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
        N: pl.when(best & (true_labels > 0)).then(ratio(weight, n_best)).when(truth & (n_best == 0)).then(weight),
    }
    included = rows.filter(door.included("sample")).with_columns(is_best)
    return included.select(*by, **pair, **{BROKEN: _broken(door) | (true_labels > 1)})


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
