"""The search for problems: of rows, groups and labels in one scan, of samples in parts of the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import polars as pl

from polars_mlmetrics.checks.looks import SIZES, Finding, KeyOfSamples, SliceColumns, WholeLog, WholeSamples
from polars_mlmetrics.checks.problems import PROBLEMS, Of, Problem, conditions
from polars_mlmetrics.checks.table import AS_IS, PLAIN_LABEL, Fact, LogTable
from polars_mlmetrics.data.expressions import all_of
from polars_mlmetrics.data.frames import is_text
from polars_mlmetrics.data.roles import RoleName
from polars_mlmetrics.engine.folds import fold
from polars_mlmetrics.errors import INTERNAL, MOST_VALUES, hides_values


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
        """Look at all rows, groups and labels, and once more for examples; `guessed` is what a `WholeLog` has."""
        log = self._log
        wanted = conditions(log, "rows")
        classes = log.classes()
        # Of the keys that tell samples or labels apart, a sample or a label has one value anyway.
        between = [key for key in log.by if key not in log.pair]
        known: dict[str, pl.Expr] = {Fact.KNOWN: log.has_known_sample} if between and log.sample else {}
        problems = {f"{INTERNAL}{problem.name}": condition for problem, condition in wanted.items()}
        keys = list(dict.fromkeys([*log.by, *log.label]))
        units = log.counts(rows, keys, classes | known | problems).collect()
        if known:
            values = units.filter(pl.col(Fact.KNOWN) > 0).select(pl.col(between).n_unique())
            self._values = values.row(0, named=True)
        sums: dict[str, int] = units.select(pl.exclude(keys).sum()).row(0, named=True)
        self.n_rows = sums[Fact.ROWS]
        self._add(SIZES["rows"], Finding(self.n_rows))
        self._scan_rows(log.with_roles(rows), wanted, sums)
        self._look(WholeLog(log, self.n_rows, guessed))
        sum_of_all = [pl.col(Fact.ROWS, *classes).sum()]
        self._judge("groups", fold(units.lazy(), log.by, sum_of_all), log.by)
        if log.label:
            labels = fold(units.lazy().drop_nulls(log.label), log.label, sum_of_all)
            plain = [plain_label(pl.col(log.label)).alias(PLAIN_LABEL)] if log.has_text_labels else []
            self._judge("labels", labels.with_columns(plain), log.label, [PLAIN_LABEL] if plain else [])

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
        spreads = [condition.sum() for key in self._keys for condition in key.conditions]
        counts = self._judge(
            "samples", samples, log.sample_keys, across=across.select(pl.len().alias(Fact.ROWS), *spreads)
        )
        for key in self._keys:
            key.add(part, across, counts)
        self._look(part)


# -- forms of text -----------------------------------------------------------------------------------------------------


def plain_label(label: pl.Expr) -> pl.Expr:
    """A label without characters of no width, in one form of Unicode, without case and blanks at its ends."""
    visible = label.cast(pl.String).str.replace_all(r"[\p{Cf}\p{Cc}]", "")
    return visible.str.normalize("NFKC").str.to_lowercase().str.strip_chars()


THOUSANDS = r"^\s*[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+\s*%?\s*$"
"""A text in which commas may separate thousands."""


class WrittenNumber(NamedTuple):
    """A way in which numbers are written."""

    is_percent: bool
    has_commas: bool

    def read(self, text: pl.Expr) -> pl.Expr:
        """The texts as Float64, or null: blanks go, so does % (5% is 5.0), and a comma is a point if has_commas."""
        text = text.str.strip_chars(" %" if self.is_percent else None)
        text = text.str.replace(",", ".", literal=True) if self.has_commas else text
        return text.cast(pl.Float64, strict=False)

    def is_in(self, text: pl.Expr) -> pl.Expr:
        """Whether all texts that are not blank can be read in this way, and one of them shows that it is this way."""
        text = text.filter(text.str.strip_chars() != "")
        ends = text.str.strip_chars_end().str.ends_with("%").all() if self.is_percent else pl.lit(True)
        # 1,234 is two numbers: a comma is read as a point only where some text shows that it is one.
        has_points = (text.str.contains(",", literal=True) & ~text.str.contains(THOUSANDS)).any()
        return all_of([ends, has_points if self.has_commas else pl.lit(True), self.read(text).is_not_null().all()])

    def line(self, *, has_blanks: bool) -> str:
        """The code after the column in a line that reads them; an empty text becomes null."""
        strip = ".str.strip_chars(' %')" if self.is_percent else ".str.strip_chars()"
        blanks = ".replace('', None)" if has_blanks else ""
        commas = ".str.replace(',', '.', literal=True)" if self.has_commas else ""
        return f"{strip}{blanks}{commas}.cast(pl.Float64){' / 100' if self.is_percent else ''}"


WAYS = [WrittenNumber(is_percent, has_commas) for is_percent in (False, True) for has_commas in (False, True)]


def reading_of(rows: pl.LazyFrame, column: pl.Expr) -> str:
    """The code that reads all texts of a column as numbers, after the column in a line; empty if no code does."""
    text = column.cast(pl.String)
    fits = [way.is_in(text).alias(str(place)) for place, way in enumerate(WAYS)]
    found = rows.select((text.str.strip_chars() == "").any().alias("blanks"), *fits).collect().row(0, named=True)
    return next((way.line(has_blanks=found["blanks"]) for place, way in enumerate(WAYS) if found[str(place)]), "")


def is_no_number(column: pl.Expr) -> pl.Expr:
    """Whether a text is not a number as Polars writes it."""
    return WAYS[0].read(column.cast(pl.String)).is_null()
