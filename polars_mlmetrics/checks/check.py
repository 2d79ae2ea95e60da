"""`check`: what is wrong with a table, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Unpack, get_args

import polars as pl

from polars_mlmetrics.checks.problem_search import Found, ProblemSearch
from polars_mlmetrics.checks.problems import PROBLEMS, Problem, Severity
from polars_mlmetrics.checks.statuses import is_of_gate, raise_for_status
from polars_mlmetrics.checks.table import SEEN, LogTable
from polars_mlmetrics.data.frames import Frame, guessed_numbers, schema_of
from polars_mlmetrics.data.roles import Roles, checked_roles
from polars_mlmetrics.errors import ParameterError, TableError, at_callers_line, hides_values, unknown
from polars_mlmetrics.formula.arithmetic import ratio
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.formula.parameters import check_parameter
from polars_mlmetrics.query.keys import KeyReader, Keys, checked_slices, columns_of
from polars_mlmetrics.query.requirements import check_keys
from polars_mlmetrics.query.results import ResultColumns
from polars_mlmetrics.query.source import passes_over
from polars_mlmetrics.query.verb import Verb

CHECK = Verb("check")

MEMORY = "1 GB"
"""The default of `memory`."""

BYTES_A_ROW = 60
"""Bytes per row while samples are checked: numbers to sort, and the key of the sample."""

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
        The metrics that you want: then only problems of these metrics are listed. A truth of 3 is not a problem for
        `rmse`, and a score of 3 is not a problem for a ranking.
    ignore
        The names of problems that you know and accept: they come last, with the severity "ignored".
    skipped
        Whether to list also the problems that were not looked for, because the table lacks a column or no metric reads
        it: with the severity "skipped", and no count.
    thorough
        Whether to check samples too (duplicates, contradictions, samples in several groups). False checks only rows,
        groups and labels, in one scan that holds one row per group and label, and one more scan for examples.
    strict
        Whether to raise a `TableError` if a problem has the severity "error".
    passes, memory, progress
        As in `evaluate`, for the checks of `thorough`: but the default is "auto", which aims at 1 GB. None reads all
        samples at once.
    **roles
        Which columns are the sample, label, score, truth and weight.

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
    columns_of_log = schema_of(frame, CHECK.name)
    given, bound = CHECK.rows(frame, columns_of_log), checked_roles(roles)
    reader = KeyReader(given, columns_of_log)
    keys = reader.read(by)
    of_slices = [] if slices is None else [key for each in checked_slices(slices) for key in reader.read(each)]
    rows = reader.rows()
    _check_ignored(ignore)
    schema = reader.schema()
    check_keys("check", columns_of([*keys, *of_slices], reader.added), schema)
    log = LogTable(schema, keys, bound, CHECK.read_metrics([metrics]))
    limit = MEMORY if memory is None and passes == "auto" else memory
    split = passes_over(
        given, lambda part: part.with_columns(reader.added), log.sample, passes, limit, progress=progress
    )
    search = ProblemSearch(log)
    search.scan(rows)
    if of_slices:
        search.scan_slices(rows, list(dict.fromkeys(of_slices)), columns_of(of_slices, reader.added))
    if (numbers := guessed_numbers(given)) is not None:
        search.note_guessed(numbers)
    if thorough and log.sample:
        for part in [rows] if split is None else split.parts(BYTES_A_ROW, search.n_rows):
            search.scan_samples(part)
    table = _table(log, search.found(), set(ignore), search.skipped() if skipped else [])
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


def _table(
    log: LogTable, found: dict[tuple[Problem, str], Found], ignored: set[str], skipped: Sequence[Problem]
) -> pl.DataFrame:
    declared = list(PROBLEMS.values())
    rows = [
        {
            "severity": "ignored" if problem.name in ignored else problem.severity,
            "problem": problem.name,
            "count": each.count,
            "share": each.total,
            "of": problem.of,
            "examples": each.examples,
            "meaning": problem.meaning.format(column=about),
            "fix": log.line(problem.fix, about, each.seen, each.reading),
        }
        for (problem, about), each in sorted(found.items(), key=lambda item: declared.index(item[0][0]))
    ]
    # Of which column it would be is not known of a problem that was not looked for.
    unsaid = [(problem, problem.meaning.replace("{column!r}", "a column")) for problem in skipped]
    rows += [
        {"severity": "skipped", "problem": problem.name, "of": problem.of, "meaning": meaning[0].upper() + meaning[1:]}
        for problem, meaning in unsaid
    ]
    table = pl.DataFrame(rows, schema=COLUMNS)
    return table.with_columns(share=ratio(pl.col("count"), pl.col("share"))).sort("severity", maintain_order=True)
