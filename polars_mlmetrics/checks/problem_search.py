"""The search for problems: of rows, groups and labels in one scan, of samples in parts of the log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import polars as pl

from polars_mlmetrics.checks import problems
from polars_mlmetrics.checks.duplicates import N_ROWS, contradicted, repeated
from polars_mlmetrics.checks.problems import HEAVIEST, LIGHTEST, PROBLEMS, SCORES, SIZES, Of, Problem
from polars_mlmetrics.checks.slices_of_models import SLICES_DIFFER, SlicesOfModels, models_pooled
from polars_mlmetrics.checks.table import AS_IS, OTHERS, ROWS, SCORE, TRUTH, WEIGHT, LogTable
from polars_mlmetrics.checks.text_forms import PLAIN_LABEL, is_no_number, plain_label, reading_of
from polars_mlmetrics.data.expressions import all_of
from polars_mlmetrics.data.frames import is_text
from polars_mlmetrics.data.roles import MODEL, RoleName
from polars_mlmetrics.engine.folds import fold
from polars_mlmetrics.engine.ranking import code_of
from polars_mlmetrics.engine.unnamed_clusters import FIRST, N_SAMPLES, unnamed_clusters
from polars_mlmetrics.errors import INTERNAL, MOST_VALUES, hides_values, shown_row
from polars_mlmetrics.formula.arithmetic import bits_of
from polars_mlmetrics.query.keys import KeyColumn

FEW = 0.5
"""With more values than this share of the rows, the slices of a column have one or two rows each."""

SUSPECTS = 1000
"""How many labels of samples are looked at to see whether any at all is in two groups."""


@dataclass
class Found:
    """How often a problem was found, among how many, and where."""

    count: int = 0
    total: int = 0
    examples: list[str] = field(default_factory=list)
    seen: list[object] = field(default_factory=list)
    """Values of the role that it is about, where its line needs them."""
    reading: str = ""
    """The code that reads its texts as numbers, where its line needs that."""

    def add(self, count: int, total: int, examples: Sequence[str]) -> None:
        """Add what was found in other rows."""
        self.count += count
        self.total += total
        self.examples = [*self.examples, *examples][:MOST_VALUES]


class ProblemSearch:
    """The problems found in a table: by problem, and by the column that the problem is about, if it is about one."""

    def __init__(self, log: LogTable) -> None:
        self._log = log
        self._label = [] if log.label is None else [log.label]
        # Of the keys that tell samples or labels apart, a sample or a label has one value anyway.
        self._between = [key for key in log.by if key not in (*log.sample, *self._label)]
        self.n_rows = 0
        """How many rows there are: known when they were scanned."""
        self._found: dict[tuple[Problem, str], Found] = {}
        self._looked_for: set[Problem] = set()
        self._spread = {key: Found() for key in self._between}
        self._lacking = {key: Found() for key in self._between}
        self._values: dict[str, int] = {}
        self._shared: set[str] = set()
        self._slices: list[SlicesOfModels] = []

    def found(self) -> dict[tuple[Problem, str], Found]:
        """All problems that were found."""
        return {
            (problem, about): found
            for (problem, about), found in {**self._found, **self._spread_problems()}.items()
            if problem in SIZES.values() or (found.count and found.count >= problem.least * found.total)
        }

    def skipped(self) -> list[Problem]:
        """The problems that were not looked for: the table lacks their columns, or no wanted metric reads them."""
        return [problem for problem in PROBLEMS.values() if problem not in self._looked_for]

    def _conditions(self, of: Of) -> dict[Problem, pl.Expr]:
        found = problems.conditions(self._log, of)
        self._looked_for |= {SIZES[of], *found}
        return found

    def _add(self, problem: Problem, count: int, total: int, places: pl.DataFrame | None = None) -> None:
        """Add what was found in groups, labels or samples, and where."""
        self._found.setdefault((problem, ""), Found()).add(count, total, self._texts(places))

    def _add_rows(self, problem: Problem, count: int, places: pl.DataFrame | None = None, about: str = "") -> None:
        """Add what was found in rows, of all that there are."""
        found = self._found.setdefault((problem, about), Found(total=self.n_rows))
        found.add(count, 0, self._texts(places))

    # -- what rows, groups and labels tell -----------------------------------------------------------------------------

    def scan(self, rows: pl.LazyFrame) -> None:
        """Look at all rows, and once more for examples of what is found."""
        rows = self._log.with_roles(rows)
        conditions = self._conditions("rows")
        of_problems = {_column(problem): condition for problem, condition in conditions.items()}
        others = self._log.other_truths()
        classes = {**self._log.classes(), OTHERS: pl.lit(0) if others is None else others}
        counts = {ROWS: pl.lit(1), **classes, **of_problems}
        keys = list(dict.fromkeys([*self._log.by, *self._label]))
        columns = rows.select(*keys, *(each.cast(pl.Int64).alias(name) for name, each in counts.items()))
        units = fold(columns, keys, [pl.col(*counts).sum()]).collect()
        self._values = {key: units[key].n_unique() for key in self._between}
        sums: dict[str, int] = units.select(pl.col(*counts).sum()).row(0, named=True)
        self.n_rows = sums[ROWS]
        self._add_rows(SIZES["rows"], self.n_rows)
        found = {problem: condition for problem, condition in conditions.items() if sums[_column(problem)]}
        for problem, places in zip(found, self._places(rows, list(found.values())), strict=True):
            self._add_rows(problem, sums[_column(problem)], places)
            if problem.seen is not None:
                self._see_values(self._found[problem, ""], problem, problem.seen, rows.filter(found[problem]))
        self._looked_for.add(problems.weight_unused)
        if self._log.unused_weight is not None:
            self._add_rows(problems.weight_unused, self.n_rows, about=self._log.unused_weight)
        self._scan_units("groups", units, self._log.by, list(counts))
        if self._label:
            self._scan_units("labels", units.drop_nulls(self._label), self._label, list(counts))

    def _scan_units(self, of: Of, units: pl.DataFrame, keys: Sequence[str], counts: Sequence[str]) -> None:
        sums = fold(units.lazy(), keys, [pl.col(*counts).sum()])
        if of == "labels" and self._log.has_text_labels:
            sums = sums.with_columns(plain_label(pl.col(keys)).alias(PLAIN_LABEL)).sort(PLAIN_LABEL, *keys)
        elif keys:
            sums = sums.sort(keys)
        table = sums.collect()
        for problem, condition in self._conditions(of).items():
            found = table.filter(condition)
            self._add(problem, found.height, table.height, found.select(keys))
        self._add(SIZES[of], table.height, table.height)

    def _places(self, rows: pl.LazyFrame, conditions: Sequence[pl.Expr]) -> Sequence[pl.DataFrame | None]:
        """The first rows of each kind: their keys, and their roles as they stand in the table."""
        if hides_values():
            return [None] * len(conditions)
        as_is = [column.alias(f"{AS_IS}{role}") for role, column in self._log.table.values().items()]
        keys = dict.fromkeys([*self._log.by, *self._log.sample, *self._label])
        return pl.collect_all([rows.filter(where).select(*keys, *as_is).head(MOST_VALUES) for where in conditions])

    def _see_values(self, found: Found, problem: Problem, role: RoleName, rows: pl.LazyFrame) -> None:
        """Look at the values of a role, where the line of a problem needs them."""
        column = self._log.table.values()[role]
        if problem.reads_text:
            if not is_text(self._log.types[role]):
                return  # of a date, say, only its owner knows the number
            found.reading = reading_of(rows, column)
            rows = rows.filter(is_no_number(column))
        if not found.reading and not hides_values():
            found.seen = rows.select(column.unique().sort().head(MOST_VALUES)).collect().to_series().to_list()

    # -- what columns of slices tell -----------------------------------------------------------------------------------

    def scan_slices(self, rows: pl.LazyFrame, keys: Sequence[KeyColumn], read: Sequence[str]) -> None:
        """Look at how many values the columns of slices have, about; they are worked out of those that are `read`."""
        self._looked_for |= {problems.slices_of_few_rows, problems.slices_of_floats}
        schema = rows.collect_schema()
        values = {key: pl.col(key.column).hash().approx_n_unique() for key in keys}
        counts = rows.select(value.alias(key.column) for key, value in values.items()).collect()
        for key in keys:
            count = min(counts[key.column].item(), self.n_rows)
            if count > FEW * self.n_rows:
                self._add_rows(problems.slices_of_few_rows, count, about=key.name)
            elif schema[key.column].is_float():
                self._add_rows(problems.slices_of_floats, count, about=key.name)
        self._slices = SlicesOfModels.of(self._log, keys, schema)
        if self._log.sample:
            self._scan_clusters(rows, keys, self._log.free - {MODEL, *read})

    def _scan_clusters(self, rows: pl.LazyFrame, keys: Sequence[KeyColumn], free: set[str]) -> None:
        """Look for columns, such as the user, of which each value has samples of one slice."""
        self._looked_for.add(problems.cluster_unused)
        by, sample = self._log.by, self._log.sample
        names = {key.column: key.name for key in keys if key.column not in (*by, *sample, *self._label)}
        for each in unnamed_clusters(rows, self.n_rows, by, sample, [*names], free):
            n_samples, n_repeated = (int(table[N_SAMPLES].sum()) * each.parts for table in (each.values, each.repeated))
            places = each.repeated.sort(each.column, *by).head(MOST_VALUES)
            places = places.select(
                each.column, *(pl.col(f"{FIRST}{name}").alias(names[name]) for name in each.features)
            )
            self._found[problems.cluster_unused, each.column] = Found(n_repeated, n_samples, self._texts(places))

    # -- what the reader of files tells --------------------------------------------------------------------------------

    def note_guessed(self, numbers: Sequence[str]) -> None:
        """Look for the keys among the columns that a reader of texts took for whole numbers."""
        self._looked_for.add(problems.ids_read_as_numbers)
        for column in self._log.keys:
            if column in numbers:
                self._add_rows(problems.ids_read_as_numbers, self.n_rows, about=column)

    # -- what samples tell ---------------------------------------------------------------------------------------------

    def scan_samples(self, rows: pl.LazyFrame) -> None:
        """Look at rows that hold whole samples."""
        log = self._log
        rows = self._log.with_roles(rows).filter(all_of([pl.col(name).is_not_null() for name in log.sample]))
        keys = list(dict.fromkeys([*log.by, *log.sample]))
        samples = fold(rows, keys, self._of_sample())
        several = [pl.col(key).n_unique().alias(key) for key in self._between]
        across = fold(samples, log.sample, several)
        conditions = self._conditions("samples")
        found = [where.sum().alias(_column(problem)) for problem, where in conditions.items()]
        spreads = [each.sum() for key in self._between for each in self._spreads(key)]
        n_units = pl.len().alias(ROWS)
        counts, spread = pl.collect_all([samples.select(n_units, *found), across.select(n_units, *spreads)])
        for problem, condition in conditions.items():
            count = counts[_column(problem)].item()
            self._add(problem, count, counts[ROWS].item(), self._first(samples.filter(condition), keys, count))
        n_samples = spread[ROWS].item()
        self._add(SIZES["samples"], n_samples, n_samples)
        for key in self._between:
            self._looked_for |= {problems.sample_in_several, problems.sample_not_in_all, problems.samples_in_common}
            self._looked_for |= {problems.key_varies_in_sample} if log.needs("sample") else set()
            counted = [spread[condition.meta.output_name()].item() for condition in self._spreads(key)]
            for each, condition, count in zip((self._spread, self._lacking), self._spreads(key), counted, strict=True):
                # If no sample has several values, it is not a problem that each lacks some.
                places = self._first(across.filter(condition), log.sample, min(count, counted[0]))
                each[key].add(count, n_samples, self._texts(places))
            if self._spread[key].count and key not in self._shared and self._is_shared(rows, key):
                self._shared.add(key)
        self._scan_slices_of_models(rows)
        self._looked_for |= {problems.duplicate, problems.truth_contradicted}
        self._looked_for |= {models_pooled} if self._log.model else set()
        self._scan_repeats(rows)

    def _scan_slices_of_models(self, rows: pl.LazyFrame) -> None:
        """Look for samples that have another slice in one model than in another."""
        self._looked_for |= {SLICES_DIFFER} if self._slices else set()
        for slices in self._slices:
            for name, count, total, places in slices.differing(rows, MOST_VALUES):
                self._found.setdefault((SLICES_DIFFER, name), Found()).add(count, total, self._texts(places))

    def _of_sample(self) -> list[pl.Expr]:
        """The facts of a sample that the problems need."""
        folds = {name: rows.sum() for name, rows in self._log.classes().items()}
        if self._log.is_number("score"):
            folds[SCORES] = pl.col(SCORE).sum()
        if self._log.is_number("weight"):
            folds |= {LIGHTEST: pl.col(WEIGHT).min(), HEAVIEST: pl.col(WEIGHT).max()}
        return [each.alias(name) for name, each in folds.items()]

    def _first(self, units: pl.LazyFrame, keys: Sequence[str], count: int) -> pl.DataFrame | None:
        """The first units of a kind, if there are any to be shown."""
        if hides_values() or not count:
            return None
        return units.select(keys).bottom_k(MOST_VALUES, by=keys).sort(keys).collect()

    def _scan_repeats(self, rows: pl.LazyFrame) -> None:
        """Look for rows of one sample and label: in one group, and of other truth anywhere."""
        pair = [*self._log.sample, *self._label]
        keys = list(dict.fromkeys([*self._log.by, *pair]))
        labelled = rows.drop_nulls(self._label) if self._label else rows
        copies = repeated(labelled, [*keys, *self._log.model])
        n_copies = int(copies[N_ROWS].sum()) - copies.height
        self._add_rows(problems.duplicate, n_copies, copies.select(keys).sort(keys))
        again = repeated(labelled, keys) if self._log.model else copies
        if self._log.model:
            n_again = int(again[N_ROWS].sum()) - again.height
            self._add_rows(models_pooled, n_again - n_copies, again.select(keys).sort(keys), MODEL)
        if self._log.by or again.height:
            number = bits_of(pl.col(TRUTH)) if self._log.is_number("truth") else code_of([TRUTH])
            contrary = contradicted(labelled.drop_nulls(TRUTH), pair, TRUTH, number)
            self._add_rows(problems.truth_contradicted, int(contrary[N_ROWS].sum()), contrary.select(pair).sort(pair))

    def _is_shared(self, rows: pl.LazyFrame, key: str) -> bool:
        """Whether a label of a sample has rows in several values of a key, and not each label in one of them."""
        pair = [*self._log.sample, *self._label]
        return contradicted(rows, pair, key, code_of([key]), most=SUSPECTS).height > 0

    def _spreads(self, key: str) -> tuple[pl.Expr, pl.Expr]:
        """The samples that have several values of a key, and those that lack some, by how many they have."""
        values = pl.col(key)
        several, lacking = values > 1, values < self._values[key]
        return several.alias(f"{INTERNAL}several:{key}"), lacking.alias(f"{INTERNAL}lacking:{key}")

    def _spread_problems(self) -> dict[tuple[Problem, str], Found]:
        """The keys of groups of which samples have several values."""
        spread = {}
        for key in self._between:
            problem = self._spread_problem(key)
            if problem is not problems.key_varies_in_sample or self._log.needs("sample"):
                found = self._lacking if problem is problems.sample_not_in_all else self._spread
                spread[problem, self._log.names[key]] = found[key]
        return spread

    def _spread_problem(self, key: str) -> Problem:
        """How labels or samples lie in its values: a label in one; or samples in all, in some, or in one as a rule."""
        several = self._spread[key]
        if key not in self._shared:
            return problems.key_varies_in_sample
        if not self._lacking[key].count:
            return problems.samples_in_common
        return problems.sample_not_in_all if 2 * several.count > several.total else problems.sample_in_several

    def _texts(self, places: pl.DataFrame | None) -> list[str]:
        """Where something was found, in words."""
        if places is None or hides_values():
            return []
        names = [self._log.names.get(column, column.removeprefix(AS_IS)) for column in places.columns]
        return [shown_row(names, row) for row in places.head(MOST_VALUES).rows()]


def _column(problem: Problem) -> str:
    """The column of a plan that counts a problem."""
    return f"{INTERNAL}{problem.name}"
