"""`check`: what is wrong with a table, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Unpack, get_args

import polars as pl

from polars_mlmetrics.checks.lines import SEEN, line_of
from polars_mlmetrics.checks.parts import LogParts
from polars_mlmetrics.checks.problem_search import ProblemSearch
from polars_mlmetrics.checks.problems import PROBLEMS, Finding, Problem, Severity
from polars_mlmetrics.checks.statuses import is_of_gate, raise_for_status
from polars_mlmetrics.checks.table import LogTable
from polars_mlmetrics.data.frames import Frame, guessed_numbers
from polars_mlmetrics.data.roles import MODEL, Roles
from polars_mlmetrics.errors import (
    ParameterError,
    TableError,
    at_callers_line,
    hides_values,
    typed,
    unknown,
)
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.formula.parameters import check_parameter
from polars_mlmetrics.query.keys import KeyColumn, Keys, columns_of
from polars_mlmetrics.query.requirements import check_keys
from polars_mlmetrics.query.results import ResultColumns
from polars_mlmetrics.query.verb import Verb

CHECK = Verb("check")

MEMORY = "1 GB"
"""The default of `memory`."""

COLUMNS = ResultColumns.of(
    (pl.Enum(get_args(Severity)), "severity"),
    (pl.String, "problem"),
    (pl.Int64, "count"),
    (pl.Float64, "share"),
    (pl.String, "of"),
    (pl.List(pl.String), "examples"),
    (pl.String, "meaning", "fix"),
)
"""The columns of the table that `check` gives, with their types."""


@at_callers_line
def check(
    frame: Frame,
    by: Keys | None = None,
    *,
    slices: Sequence[Keys] | None = None,
    metrics: Metric | Sequence[Metric] = (),
    ignore: Sequence[str] = (),
    skipped: bool = False,
    thorough: bool = True,
    strict: bool = False,
    passes: int | Literal["auto", "files"] | None = "auto",
    memory: int | str | None = None,
    progress: bool = True,
    **roles: Unpack[Roles],
) -> pl.DataFrame:
    """Find what is wrong with a table: a row for each problem, the worst first, and a row for each size.

    This reads the rows at once, also for a LazyFrame.

    Parameters
    ----------
    frame
        The long table: one row per sample and label.
    by
        The columns (or row-wise expressions) that you will pass to `evaluate` as `by`.
    slices
        The groupings that you will pass to `evaluate` as `slices`: columns of which each value is nearly a row of its
        own are listed, and those in which samples differ between models (the column "model", or those of `by`); and a
        column, such as the user, of which each value has several samples of one slice: it may be meant by `cluster=`.
    metrics
        The metrics that you want: then only problems of these metrics are listed, and of the score and the truth only
        those are read that one of them reads. A truth of 3 is not a problem for `rmse`, and a score of 3 is not a
        problem for a ranking.
    ignore
        The names of problems that you know and accept: they come last, with the severity "ignored".
    skipped
        Whether to list also the problems that were not looked for, because the table lacks a column or no metric reads
        it: with the severity "skipped", and no count.
    thorough
        Whether to check samples too (duplicates, contradictions, samples in several groups). False checks only rows and
        groups, in one scan that holds one row per group; labels, in another; and scans once more for examples.
    strict
        Whether to raise a `TableError` if a problem has the severity "error".
    passes, memory, progress
        As in `evaluate`, for labels and the checks of `thorough`: but the default is "auto", which aims at 1 GB. None
        reads all samples at once.
    **roles
        Which columns are the sample, label, score, truth and weight.

    Returns
    -------
    `severity`, `problem`, `count` and its `share` of how many (`of` rows, groups, labels or samples), `examples`, the
    `meaning` in words, and the `fix`: a line to type.

    Raises
    ------
    TableError
        With `strict`, if a problem has the severity "error".

    See Also
    --------
    raise_for : makes an error of problems.
    profile : what a table holds.
    dedupe : keeps one row of copies.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> log = pl.DataFrame({"sample": [1, 1, 2], "score": [0.9, 0.9, None], "truth": [1, 0, 1]})
    >>> mlm.check(log).select("severity", "problem", "count", "share", "of")
    shape: (6, 5)
    ┌──────────┬────────────────────┬───────┬──────────┬─────────┐
    │ severity ┆ problem            ┆ count ┆ share    ┆ of      │
    │ ---      ┆ ---                ┆ ---   ┆ ---      ┆ ---     │
    │ enum     ┆ str                ┆ i64   ┆ f64      ┆ str     │
    ╞══════════╪════════════════════╪═══════╪══════════╪═════════╡
    │ error    ┆ duplicate          ┆ 1     ┆ 0.333333 ┆ rows    │
    │ error    ┆ truth_contradicted ┆ 2     ┆ 0.666667 ┆ rows    │
    │ warning  ┆ score_null         ┆ 1     ┆ 0.333333 ┆ rows    │
    │ info     ┆ rows               ┆ 3     ┆ 1.0      ┆ rows    │
    │ info     ┆ groups             ┆ 1     ┆ 1.0      ┆ groups  │
    │ info     ┆ samples            ┆ 2     ┆ 1.0      ┆ samples │
    └──────────┴────────────────────┴───────┴──────────┴─────────┘
    >>> worst = mlm.check(log).row(0, named=True)
    >>> print(*worst["examples"], worst["fix"])
    sample=1 log = mlm.dedupe(log, keep='last', sample='sample')
    """
    _check_ignored(ignore)
    log = LogTable(CHECK, frame, by, roles, slices=slices, metrics=CHECK.read_metrics([metrics]))
    check_keys(
        "check", columns_of([*map(KeyColumn, log.names.values(), log.by), *log.slices], log.reader.added), log.schema
    )
    parts = LogParts(log, passes, MEMORY if memory is None and passes == "auto" else memory, progress=progress)
    search = ProblemSearch(log)
    search.scan(parts.rows, guessed_numbers(log.frame))
    for part in parts.of_labels(search.n_rows):
        search.scan_labels(part)
    if log.slices:
        search.scan_slices(parts.rows)
    for part in parts.of_samples(search.n_rows) if thorough else ():
        search.scan_samples(part)
    found = [_row(log, problem, each, ignore) for problem, each in search.found()]
    found += map(_skipped, search.skipped() if skipped else [])
    table = pl.DataFrame(found, schema=COLUMNS)
    table = table.with_columns(share=ratio(pl.col("count"), pl.col("share"))).sort("severity", maintain_order=True)
    return raise_for(table, "error") if strict else table


@at_callers_line
def raise_for(found: pl.DataFrame, severity: Literal["error", "warning", "fail", "warn"] = "error") -> pl.DataFrame:
    """Raise a `TableError` if `check` found a problem of this severity or worse; else return its table.

    It takes the table of `gate` too: then the severity is "fail" (also for a missing row) or "warn", and the default is
    "fail".

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> log = pl.DataFrame({"score": [0.9, 0.2], "truth": [1, 2]})
    >>> log.mlm.check().mlm.raise_for("error")
    Traceback (most recent call last):
      ...
    polars_mlmetrics.errors.TableError: there is 1 problem in the table.
    error: truth_not_binary in 1 of the rows (50.0%), such as score=0.2, truth=2.
      The truth is neither 0 nor 1: metrics of two classes are NaN. For other metrics, name them in metrics=.
      log = log.with_columns(pl.col('truth') > ...)  # seen: 2
    """
    if is_of_gate(found):
        return raise_for_status(found, severity)
    if not isinstance(found, pl.DataFrame) or found.schema != COLUMNS:
        raise ParameterError("raise_for takes the table that `check` returns, or the one that `gate` returns.")
    check_parameter("raise_for of a check", "severity", severity, Literal["error", "warning"])
    bad = found.filter(pl.col("severity").is_in(["error", severity]))
    if bad.is_empty():
        return found
    many = "is 1 problem" if bad.height == 1 else f"are {bad.height} problems"
    raise TableError("\n".join([f"there {many} in the table.", *map(_line, bad.to_dicts())]))


def _line(row: dict[str, Any]) -> str:
    such = f", such as {row['examples'][0]}" if row["examples"] and not hides_values() else ""
    fix = row["fix"].partition(SEEN)[0] if hides_values() else row["fix"]
    share = f"{row['share']:.3g}" if row["share"] < 0.001 else f"{row['share']:.1%}"
    found = f"{row['problem']} in {row['count']:,} of the {row['of']} ({share})"
    return f"{row['severity']}: {found}{such}.\n  {row['meaning']}\n  {fix}"


def _check_ignored(ignore: Sequence[str]) -> None:
    if isinstance(ignore, str) or not isinstance(ignore, Sequence):
        raise ParameterError(f"ignore takes a list of names of problems, not {ignore!r}.")
    for name in ignore:
        if name not in PROBLEMS:
            raise ParameterError(unknown("problem", name, PROBLEMS, of="one that check knows"))


def _row(log: LogTable, problem: Problem, found: Finding, ignored: Sequence[str]) -> dict[str, Any]:
    return {
        "severity": "ignored" if problem.name in ignored else problem.severity,
        "problem": problem.name,
        "count": found.count,
        "share": found.total,
        "of": problem.of,
        "examples": found.examples,
        "meaning": problem.meaning.format(column=found.about, between=found.between, by=typed("by", found.about)),
        "fix": line_of(log, problem, found),
    }


def _skipped(problem: Problem) -> dict[str, Any]:
    # Of which column it would be is not known of a problem that was not looked for.
    meaning = problem.meaning.replace("{column!r}", "a column").replace("{between}", MODEL)
    meaning = meaning[0].upper() + meaning[1:]
    return {"severity": "skipped", "problem": problem.name, "of": problem.of, "meaning": meaning}
