"""`profile`: what a table holds, as a table."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Unpack

import polars as pl
import polars.selectors as cs

from polars_mlmetrics.checks.table import SCORE, LogTable
from polars_mlmetrics.data.door import check_alike
from polars_mlmetrics.data.expressions import all_of
from polars_mlmetrics.data.frames import Frame, schema_of
from polars_mlmetrics.data.roles import Roles, checked_roles
from polars_mlmetrics.engine.folds import fold
from polars_mlmetrics.errors import INTERNAL, at_callers_line, in_words
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.query.keys import KeyReader, Keys
from polars_mlmetrics.query.results import ResultColumns
from polars_mlmetrics.query.verb import Verb

PROFILE = Verb("profile")

TENTHS = (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Where the scores between 0 and 1 are cut."""

ROWS, SAMPLES = (f"{INTERNAL}{count}" for count in ("rows", "samples"))

COLUMNS = ResultColumns.of((pl.String, "what", "where"), (pl.Float64, "value", "share"))
"""The columns of the table that `profile` gives, with their types."""

Line = tuple[str, str, float | None, float | None]
"""A count: of which rows or samples, where, how many, and the share."""


@at_callers_line
def profile(frame: Frame, by: Keys | None = None, **roles: Unpack[Roles]) -> pl.DataFrame:
    """Show what a table holds: its sizes, the rows per sample, its nulls, the distribution of its scores, its groups.

    This reads the rows at once, also for a LazyFrame: each column once, and the keys of samples and groups once more.
    It holds one row per sample in memory.

    Parameters
    ----------
    frame
        The long table: one row per sample and label.
    by
        The columns (or row-wise expressions) of the groups, for their numbers and shares of rows and samples.
    **roles
        Which columns are the sample, label, score, truth and weight.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> log = pl.DataFrame({"sample": [1, 1, 2], "score": [0.9, 0.4, None], "truth": 1, "model": ["a", "a", "b"]})
    >>> with pl.Config(tbl_rows=20):
    ...     print(mlm.profile(log, by="model").filter(pl.col("value") > 0))
    shape: (13, 4)
    ┌──────────────────┬────────────┬───────┬──────────┐
    │ what             ┆ where      ┆ value ┆ share    │
    │ ---              ┆ ---        ┆ ---   ┆ ---      │
    │ str              ┆ str        ┆ f64   ┆ f64      │
    ╞══════════════════╪════════════╪═══════╪══════════╡
    │ rows             ┆            ┆ 3.0   ┆ null     │
    │ groups           ┆            ┆ 2.0   ┆ null     │
    │ samples          ┆            ┆ 2.0   ┆ null     │
    │ rows of a sample ┆ least      ┆ 1.0   ┆ null     │
    │ rows of a sample ┆ mean       ┆ 1.5   ┆ null     │
    │ rows of a sample ┆ most       ┆ 2.0   ┆ null     │
    │ null             ┆ score      ┆ 1.0   ┆ 0.333333 │
    │ score            ┆ [0.4, 0.5) ┆ 1.0   ┆ 0.333333 │
    │ score            ┆ [0.9, 1]   ┆ 1.0   ┆ 0.333333 │
    │ rows of group    ┆ model=a    ┆ 2.0   ┆ 0.666667 │
    │ rows of group    ┆ model=b    ┆ 1.0   ┆ 0.333333 │
    │ samples of group ┆ model=a    ┆ 1.0   ┆ 0.5      │
    │ samples of group ┆ model=b    ┆ 1.0   ┆ 0.5      │
    └──────────────────┴────────────┴───────┴──────────┘
    """
    columns_of_log = schema_of(frame, PROFILE.name)
    given, bound = PROFILE.rows(frame, columns_of_log), checked_roles(roles)
    reader = KeyReader(given, columns_of_log)
    keys = reader.read(by)
    rows = reader.rows()
    schema = reader.schema()
    check_alike(schema.names(), schema)
    log = LogTable(schema, keys, bound)
    columns = [name for name in schema.names() if not name.startswith(INTERNAL)]
    lines = pl.DataFrame(list(_lines(log, rows, columns)), schema=COLUMNS, orient="row")
    return lines.with_columns(share=ratio(pl.col("value"), pl.col("share")))


def _lines(log: LogTable, rows: pl.LazyFrame, columns: list[str]) -> Iterator[Line]:
    counts = {("null", name): cs.by_name(name).is_null() for name in columns} | _places_of_scores(log)
    names = [f"{INTERNAL}count_{number}" for number in range(len(counts))]
    marks = [where.cast(pl.Int64).alias(name) for name, where in zip(names, counts.values(), strict=True)]
    marked = log.with_roles(rows).select(*log.by, *marks)
    groups, *others = pl.collect_all(
        [
            fold(marked, log.by, [pl.len().alias(ROWS), pl.col(names).sum()]),
            *([] if log.label is None else [rows.select(pl.col(log.label).drop_nulls().n_unique())]),
            *(_of_samples(log, rows) if log.sample else []),
        ]
    )
    n_rows = int(groups[ROWS].sum())
    yield "rows", "", n_rows, None
    yield "groups", "", groups.height, None
    if log.label is not None:
        yield "labels", "", others.pop(0).item(), None
    if log.sample:
        n_samples, rows_of_a_sample, _ = others
        yield "samples", "", n_samples.item(), None
        yield from (("rows of a sample", where, value, None) for where, value in rows_of_a_sample.to_dicts()[0].items())
    for name, (what, where) in zip(names, counts, strict=True):
        yield what, where, int(groups[name].sum()), n_rows
    yield from _lines_of_groups(log, "rows of group", groups, ROWS, n_rows)
    if log.sample:
        yield from _lines_of_groups(log, "samples of group", others[-1], SAMPLES, n_samples.item())


def _of_samples(log: LogTable, rows: pl.LazyFrame) -> list[pl.LazyFrame]:
    """How many samples there are, how many rows these have, and how many of them each group has."""
    known = rows.filter(all_of([pl.col(name).is_not_null() for name in log.sample]))
    in_groups = fold(known, list(dict.fromkeys([*log.by, *log.sample])), [pl.len().alias(ROWS)])
    of_rows = pl.col(ROWS)
    return [
        fold(in_groups, log.sample, []).select(pl.len()),
        in_groups.select(least=of_rows.min(), mean=of_rows.mean(), most=of_rows.max()),
        fold(in_groups, log.by, [pl.len().alias(SAMPLES)]),
    ]


def _lines_of_groups(log: LogTable, what: str, groups: pl.DataFrame, column: str, total: int) -> Iterator[Line]:
    if log.by:
        groups = groups.sort(log.by)
        names = [log.names[key] for key in log.by]
        for keys, count in zip(groups.select(log.by).rows(), groups[column], strict=True):
            yield what, in_words(names, keys), count, total


def _places_of_scores(log: LogTable) -> dict[tuple[str, str], pl.Expr]:
    """Where the scores lie: a grid that needs no look at them before."""
    if not log.is_number("score"):
        return {}
    score = pl.col(SCORE)
    places = {
        "-inf": score == float("-inf"),
        "< 0": (score < 0) & score.is_finite(),
        **{f"[{low}, {high})": (score >= low) & (score < high) for low, high in pairwise(TENTHS)},
        "[0.9, 1]": score.is_between(0.9, 1),
        "> 1": (score > 1) & score.is_finite(),
        "inf": score == float("inf"),
        "NaN": score.is_nan(),
    }
    return {("score", place): where for place, where in places.items()}
