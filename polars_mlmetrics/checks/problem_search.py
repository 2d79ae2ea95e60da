"""The search for problems: of rows and groups in one scan, of labels and samples in parts of the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import polars as pl

from polars_mlmetrics.checks.by_condition import conditions
from polars_mlmetrics.checks.lines import is_no_number, reading_of
from polars_mlmetrics.checks.looks import KeyOfSamples, SliceColumns, WholeLog, WholeSamples
from polars_mlmetrics.checks.problems import PROBLEMS, Finding, Of, Problem
from polars_mlmetrics.checks.table import AS_IS, PLAIN_LABEL, Fact, LogTable
from polars_mlmetrics.data.frames import is_text
from polars_mlmetrics.data.roles import RoleName
from polars_mlmetrics.engine.folds import fold
from polars_mlmetrics.errors import INTERNAL, MOST_VALUES, hides_values

SIZES = {
    of: Problem(of, "info", of, f"How many {of} there are.", "mlm.profile(log{roles})", "", lambda _: None)
    for of in get_args(Of)
}
"""How many of each unit there are: no problem, and always reported."""
PROBLEMS.update((size.name, size) for size in SIZES.values())


class ProblemSearch:
    """The problems found in a log: by problem, and by the columns that the problem is about, if it is about any."""

    def __init__(self, log: LogTable) -> None:
        self._log = log
        self.n_rows = 0
        """How many rows there are: known when they were scanned."""
        self._found: dict[tuple[Problem, str, str], Finding] = {}
        self._values: dict[str, int] = {}
        self._keys: list[KeyOfSamples] = []

    def found(self) -> list[tuple[Problem, Finding]]:
        """All problems that were found, in the order of their declarations."""
        for key in self._keys:
            self._look(key)
        for (problem, *_), finding in self._found.items():
            finding.total = self.n_rows if problem.of == "rows" else finding.total
        declared = list(PROBLEMS.values())
        found = sorted(self._found.items(), key=lambda item: declared.index(item[0][0]))
        return [
            (problem, each)
            for (problem, *_), each in found
            if problem in SIZES.values() or (each.count and each.count >= problem.least * each.total)
        ]

    def skipped(self) -> list[Problem]:
        """The problems that were not looked for: the log lacks their columns, or no wanted metric reads them."""
        looked_for = {problem for problem, *_ in self._found}
        return [problem for problem in PROBLEMS.values() if problem not in looked_for]

    def _add(self, problem: Problem, finding: Finding) -> None:
        known = self._found.setdefault((problem, finding.about, finding.between), finding)
        if known is not finding:
            known.add(finding)

    def _look(self, look: Any) -> None:
        """Put to a look the questions that it answers."""
        for problem in PROBLEMS.values():
            if isinstance(look, problem.look):
                findings = problem.question(look)
                # Where nothing was found, it was looked for.
                for finding in [] if findings is None else findings or [Finding()]:
                    self._add(problem, finding)

    def scan(self, rows: pl.LazyFrame, guessed: Sequence[str] | None) -> None:
        """Look at all rows and groups, and once more for examples; `guessed` is what a `WholeLog` has."""
        log = self._log
        wanted = conditions(log, "rows")
        # Of the keys that tell samples or labels apart, a sample or a label has one value anyway.
        between = [key for key in log.by if key not in log.pair]
        known: dict[str, pl.Expr] = {Fact.KNOWN: log.has_known_sample} if between and log.sample else {}
        problems = {f"{INTERNAL}{problem.name}": condition for problem, condition in wanted.items()}
        groups = log.counts(rows, log.by, log.classes() | known | problems).collect()
        if known:
            values = groups.filter(pl.col(Fact.KNOWN) > 0).select(pl.col(between).n_unique())
            self._values = values.row(0, named=True)
        sums: dict[str, int] = groups.select(pl.exclude(log.by).sum()).row(0, named=True)
        self.n_rows = sums[Fact.ROWS]
        self._add(SIZES["rows"], Finding(self.n_rows))
        self._scan_rows(log.with_roles(rows), wanted, sums)
        self._look(WholeLog(log, self.n_rows, guessed))
        self._judge("groups", groups.lazy(), log.by)

    def scan_labels(self, rows: pl.LazyFrame) -> None:
        """Look at rows that hold whole labels, and all that look like them."""
        log = self._log
        plain = [log.plain_label.alias(PLAIN_LABEL)] if log.has_text_labels else []
        labels = log.labels(rows).with_columns(plain).collect()
        self._judge("labels", labels.lazy(), log.label, [PLAIN_LABEL] if plain else [])

    def _scan_rows(self, rows: pl.LazyFrame, wanted: dict[Problem, pl.Expr], sums: dict[str, int]) -> None:
        """Add the problems of rows, with the first rows of each: their keys, and their roles as they stand there."""
        log = self._log
        counts = {problem: sums[f"{INTERNAL}{problem.name}"] for problem in wanted}
        as_is = [column.alias(f"{AS_IS}{role}") for role, column in log.values.items()]
        first = [
            rows.filter(condition).select(*log.pair_keys, *as_is).head(0 if hides_values() else MOST_VALUES)
            for problem, condition in wanted.items()
            if counts[problem]
        ]
        places = iter(pl.collect_all(first))
        for problem, condition in wanted.items():
            finding = Finding(counts[problem])
            if finding.count:
                finding.examples = log.examples(next(places))
                if problem.seen is not None:
                    self._see_values(finding, problem, problem.seen, rows.filter(condition))
            self._add(problem, finding)

    def _see_values(self, finding: Finding, problem: Problem, role: RoleName, rows: pl.LazyFrame) -> None:
        """Look at the values of a role, where the line of a problem needs them."""
        column = self._log.values[role]
        if problem.reads_text:
            if not is_text(self._log.types[role]):
                return  # of a date, say, only its owner knows the number
            finding.reading = reading_of(rows, column)
            rows = rows.filter(is_no_number(column))
        if not finding.reading and not hides_values():
            finding.seen = rows.select(column.unique().sort().head(MOST_VALUES)).collect().to_series().to_list()

    def _judge(
        self,
        of: Of,
        units: pl.LazyFrame,
        keys: Sequence[str],
        order: Sequence[str] = (),
        across: pl.LazyFrame | None = None,
    ) -> pl.DataFrame:
        """Look for problems in groups, labels or samples, and count them; `across` counts those of all groups."""
        wanted = conditions(self._log, of)
        found = [condition.sum().alias(problem.name) for problem, condition in wanted.items()]
        counts, *of_all = pl.collect_all(
            [units.select(pl.len().alias(Fact.ROWS), *found), *([] if across is None else [across])]
        )
        for problem, condition in wanted.items():
            count = counts[problem.name].item()
            first = self._log.first_examples(units.filter(condition), keys, count, order)
            self._add(problem, Finding(count, first, counts[Fact.ROWS].item()))
        whole = (of_all or [counts])[0]
        self._add(SIZES[of], Finding(whole[Fact.ROWS].item(), total=whole[Fact.ROWS].item()))
        return whole

    def scan_slices(self, rows: pl.LazyFrame) -> None:
        """Look at the columns of slices."""
        self._look(SliceColumns(self._log, rows, self.n_rows))

    def scan_samples(self, rows: pl.LazyFrame) -> None:
        """Look at rows that hold whole samples."""
        log, part = self._log, WholeSamples(self._log, rows)
        self._keys = self._keys or [KeyOfSamples(log, key, n_values) for key, n_values in self._values.items()]
        samples = fold(part.rows, log.sample_keys, log.of_sample())
        across = fold(samples, log.sample, [pl.col(key).n_unique().alias(key) for key in self._values])
        spreads = [total for key in self._keys for total in key.sums()]
        counts = self._judge(
            "samples", samples, log.sample_keys, across=across.select(pl.len().alias(Fact.ROWS), *spreads)
        )
        for key in self._keys:
            key.add(part, counts)
        self._look(part)
