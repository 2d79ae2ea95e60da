"""`profile`: what a table holds, as a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Literal, Unpack

import polars as pl
import polars.selectors as cs

from polars_mlmetrics.checks.parts import LogParts
from polars_mlmetrics.checks.table import SCORE, Fact, LogTable
from polars_mlmetrics.data.door import check_alike
from polars_mlmetrics.data.frames import Frame
from polars_mlmetrics.data.roles import Roles
from polars_mlmetrics.engine.folds import fold
from polars_mlmetrics.errors import INTERNAL, at_callers_line, in_words
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.query.keys import Keys
from polars_mlmetrics.query.results import ResultColumns
from polars_mlmetrics.query.verb import Verb

PROFILE = Verb("profile")

TENTHS = (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Where the scores between 0 and 1 are cut."""

COLUMNS = ResultColumns.of((pl.String, "what", "where"), (pl.Float64, "value", "share"))
"""The columns of the table that `profile` gives, with their types."""

N_SAMPLES = f"{INTERNAL}n_samples"
"""How many samples a group has."""

Line = tuple[str, str, float | None, float | None]
"""A count: of which rows or samples, where, how many, and the share."""


@at_callers_line
def profile(
    frame: Frame,
    by: Keys | None = None,
    *,
    passes: int | Literal["auto", "files"] | None = None,
    memory: int | str | None = None,
    progress: bool = True,
    **roles: Unpack[Roles],
) -> pl.DataFrame:
    """Show what a table holds: its sizes, the rows per sample, its nulls, the distribution of its scores, its groups.

    This reads the rows at once, also for a LazyFrame: each column once, and the label and the keys of samples and
    groups once more. It holds one row per label, and one per sample and group, in memory.

    Parameters
    ----------
    frame
        The long table: one row per sample and label.
    by
        The columns (or row-wise expressions) of the groups, for their numbers and shares of rows and samples.
    passes, memory, progress
        As in `evaluate`: in memory are the labels and samples of one pass.
    **roles
        Which columns are the sample, label, score, truth and weight. A table may lack any that is not named.

    Returns
    -------
    A row for each fact: `what` it is, `where` (the group, column or range), its `value` and its `share`.

    See Also
    --------
    check : what is wrong with a table.

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
    log = LogTable(PROFILE, frame, by, roles, may_lack=True)
    check_alike(log.columns, log.schema)
    parts = LogParts(log, passes, memory, progress=progress)
    lines = pl.DataFrame(list(_lines(log, parts)), schema=COLUMNS, orient="row")
    return lines.with_columns(share=ratio(pl.col("value"), pl.col("share")))


def _lines(log: LogTable, parts: LogParts) -> Iterator[Line]:
    counted = {("null", name): cs.by_name(name).is_null() for name in log.columns} | _places_of_scores(log)
    names = {place: f"{INTERNAL}{': '.join(place)}" for place in counted}
    conditions = {names[place]: condition for place, condition in counted.items()}
    groups = log.counts(parts.rows, log.by, conditions).collect()
    n_rows = int(groups[Fact.ROWS].sum())
    yield "rows", "", n_rows, None
    yield "groups", "", groups.height, None
    if log.label:
        labels = [log.labels(part).select(pl.len()).collect().item() for part in parts.of_labels(n_rows)]
        yield "labels", "", sum(labels), None
    if log.sample:
        n_samples, sizes, samples_of_groups = _samples(log, parts.of_samples(n_rows))
        yield "samples", "", n_samples, None
        yield from (("rows of a sample", where, value, None) for where, value in sizes.items())
    for (what, where), name in names.items():
        yield what, where, int(groups[name].sum()), n_rows
    yield from _lines_of_groups(log, "rows of group", groups, n_rows)
    if log.sample:
        yield from _lines_of_groups(log, "samples of group", samples_of_groups, n_samples)


def _samples(log: LogTable, parts: Iterable[pl.LazyFrame]) -> tuple[int, dict[str, float | None], pl.DataFrame]:
    """How many samples there are; the least, mean and most rows of one in a group; and the samples of each group."""
    units, groups, n_samples = pl.col(Fact.ROWS), [], 0
    for part in parts:
        samples = fold(part.filter(log.has_known_sample), log.sample_keys, [pl.len().alias(Fact.ROWS)])
        facts = [pl.len().alias(N_SAMPLES), units.sum(), units.min().alias("least"), units.max().alias("most")]
        plans = [fold(samples, log.sample, []).select(pl.len()), fold(samples, log.by, facts)]
        across, of_groups = pl.collect_all(plans)
        groups.append(of_groups)
        n_samples += across.item()
    of_all = pl.concat(groups).lazy()
    mean = ratio(units.sum(), pl.col(N_SAMPLES).sum()).alias("mean")
    [sizes] = of_all.select(pl.col("least").min(), mean, pl.col("most").max()).collect().rows(named=True)
    return n_samples, sizes, fold(of_all, log.by, [pl.col(N_SAMPLES).sum().alias(Fact.ROWS)]).collect()


def _lines_of_groups(log: LogTable, what: str, groups: pl.DataFrame, total: int) -> Iterator[Line]:
    names = [log.names[key] for key in log.by]
    for *keys, count in groups.sort(log.by).select(*log.by, Fact.ROWS).rows() if names else ():
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
