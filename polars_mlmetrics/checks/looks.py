"""Problems that take more than a condition, and what is looked at to find them.

One look answers each question: at the log as a whole, at the columns of its slices, at rows that hold whole samples, or
at a column of `by` when all samples were seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import polars as pl

from polars_mlmetrics.checks.duplicates import N_ROWS, contradicted, repeated, surplus
from polars_mlmetrics.checks.problems import Finding, problem
from polars_mlmetrics.checks.table import AS_IS, ROLE_COLUMNS, TRUTH, Fact, LogTable
from polars_mlmetrics.data.expressions import text_of_key
from polars_mlmetrics.data.roles import MODEL
from polars_mlmetrics.engine.folds import fold, matched
from polars_mlmetrics.engine.ranking import code_of
from polars_mlmetrics.engine.unnamed_clusters import FIRST, N_SAMPLES, unnamed_clusters
from polars_mlmetrics.errors import INTERNAL, MOST_VALUES
from polars_mlmetrics.formula.arithmetic import bits_of
from polars_mlmetrics.query.keys import KeyColumn, columns_of

FEW = 0.5
"""With more values than this share of the rows, the slices of a column have one or two rows each."""

COUNTED = 1_000_000
"""Of so many rows the values of a column of slices are counted; of more, their number is an estimate."""

SUSPECTS = 1000
"""How many labels of samples are looked at to see whether any at all is in two groups."""


# -- the log as a whole ------------------------------------------------------------------------------------------------


class WholeLog(NamedTuple):
    """A log whose rows are counted."""

    table: LogTable
    n_rows: int
    guessed: Sequence[str] | None
    """The columns that a reader of texts took for whole numbers; None where nobody knows."""


@problem("groups", "error", look=WholeLog)
def no_rows(log: WholeLog) -> list[Finding]:
    """The log has no rows: every value is null, and nothing else can be looked for. Look at its files and filters.

    mlm.profile(log{roles})
    """
    return [] if log.n_rows else [Finding(1, total=1)]


@problem("rows", "info", look=WholeLog)
def weight_unused(log: WholeLog) -> list[Finding]:
    """There is a column {column!r}, but no weight is named: all rows have the same weight.

    mlm.evaluate(log, {metric}{roles}, weight={column!r})
    $ --weight {column}
    """
    name = log.table.unused_weight
    return [] if name is None else [Finding(log.n_rows, about=name)]


@problem("rows", "info", look=WholeLog)
def ids_read_as_numbers(log: WholeLog) -> list[Finding] | None:
    """{column!r} is a whole-number id read from CSV: leading zeros are lost. The line reads it as text.

    log = pl.scan_csv(..., schema_overrides={{**log.collect_schema(), {column!r}: pl.String}})
    $ [prepare] cast = {{ {column} = "String" }}
    """
    ids = dict.fromkeys([*log.table.pair, *log.table.by])
    return None if log.guessed is None else [Finding(log.n_rows, about=name) for name in ids if name in log.guessed]


# -- columns of slices -------------------------------------------------------------------------------------------------


class SliceColumns:
    """The columns of slices, and how many values they have."""

    def __init__(self, log: LogTable, rows: pl.LazyFrame, n_rows: int) -> None:
        self.log, self.rows, self.n_rows = log, rows, n_rows
        columns = {key: pl.col(key.column) for key in log.slices}
        few = n_rows <= COUNTED
        values = [each.n_unique() if few else each.hash().approx_n_unique() for each in columns.values()]
        counts = rows.select(each.alias(key.column) for key, each in zip(columns, values, strict=True)).collect()
        self.n_values = {key: min(counts[key.column].item(), n_rows) for key in columns}

    def findings(self, *, few_rows: bool) -> list[Finding]:
        """The columns with nearly a value a row, or the others."""
        found = {key: count for key, count in self.n_values.items() if (count > FEW * self.n_rows) == few_rows}
        floats = [key for key in found if few_rows or self.log.schema[key.column].is_float()]
        return [Finding(found[key], about=key.name) for key in floats]


@problem("rows", "warning", look=SliceColumns)
def slices_of_few_rows(slices: SliceColumns) -> list[Finding]:
    """{column!r} has nearly a value a row, each a slice.

    mlm.find_slices({log}, {metric}, {column!r}{roles})
    $ mlm slices ... --features {column}
    """
    return slices.findings(few_rows=True)


@problem("rows", "info", look=SliceColumns)
def slices_of_floats(slices: SliceColumns) -> list[Finding]:
    """{column!r} is Float: 0.1 + 0.2 and 0.3 are two slices.

    mlm.find_slices({log}, {metric}, {column!r}{roles})
    $ mlm slices ... --features {column}
    """
    return slices.findings(few_rows=False)


@problem("samples", "warning", look=SliceColumns)
def cluster_unused(slices: SliceColumns) -> list[Finding] | None:
    """Samples of one {column!r} have the same slice: intervals are too narrow, unless cluster={column!r} is given.

    mlm.evaluate(log, {metric}, ci=0.95, cluster={column!r}{roles})
    $ --ci --cluster {column}
    """
    log = slices.log
    names = {key.column: key.name for key in log.slices if key.column not in log.pair_keys}
    free = log.free - {MODEL, *columns_of(log.slices, log.reader.added)}
    found = []
    for each in unnamed_clusters(slices.rows, slices.n_rows, log.by, log.sample, [*names], free) if log.sample else ():
        n_samples, n_repeated = (int(table[N_SAMPLES].sum()) * each.parts for table in (each.values, each.repeated))
        first = [pl.col(f"{FIRST}{name}").alias(f"{AS_IS}{names[name]}") for name in each.features]
        places = each.repeated.sort(each.column, *log.by).head(MOST_VALUES).select(each.column, *first)
        found.append(Finding(n_repeated, log.examples(places), n_samples, each.column))
    return found if log.sample else None


# -- rows that hold whole samples --------------------------------------------------------------------------------------


class WholeSamples:
    """Rows that hold whole samples, without those of unknown samples."""

    def __init__(self, log: LogTable, rows: pl.LazyFrame) -> None:
        self.log, self.rows = log, log.with_roles(rows).filter(log.has_known_sample)
        self._labelled = self.rows.drop_nulls(log.label) if log.label else self.rows

    @property
    def has_trials(self) -> bool:
        """Whether several rows of a sample are its trials, of metrics such as `pass_at`, and no copies."""
        return self.log.wanted.are_of_samples and not self.log.label

    @cached_property
    def copies(self) -> pl.DataFrame:
        """The keys that several rows have, of one model where these are told apart."""
        return repeated(self._labelled, [*self.log.pair_keys, *self.log.model])

    @cached_property
    def again(self) -> pl.DataFrame:
        """The keys that several rows have, of whatever model."""
        return repeated(self._labelled, self.log.pair_keys) if self.log.model else self.copies

    def contradicted(self, value: str, number: pl.Expr, most: int | None = None) -> pl.DataFrame:
        """The samples and labels whose rows have several values."""
        known = self._labelled.drop_nulls(value) if value == TRUTH else self.rows
        return contradicted(known, self.log.pair, value, number, most=most)

    def are_shared(self, value: str, first: pl.DataFrame) -> bool:
        """Whether rows of one sample and label have several values. The first samples mostly say so already."""
        log, several = self.log, pl.col(value).n_unique() > 1
        rows = self.rows.join(first.lazy(), on=log.sample, how="semi", nulls_equal=True)
        if rows.group_by(log.pair).agg(several).select(pl.col(value).any()).collect().item():
            return True
        return self.contradicted(value, code_of([value]), SUSPECTS).height > 0

    def finding(self, count: int, places: pl.DataFrame, keys: Sequence[str], about: str = "") -> Finding:
        """A finding in places of these keys."""
        return Finding(count, self.log.examples(places.select(keys).sort(keys)), about=about)


@problem("rows", "error", look=WholeSamples)
def duplicate(part: WholeSamples) -> list[Finding] | None:
    """Another row has the same sample, label and group: it counts twice.

    log = mlm.dedupe(log, keep='last'{by_role}, sample={sample}{label_role})
    $ [prepare] dedupe = {{ keep = "last", by = {by_names} }}
    """
    if part.has_trials:
        return None
    return [part.finding(surplus(part.copies), part.copies, part.log.pair_keys)]


@problem("rows", "error", look=WholeSamples)
def truth_contradicted(part: WholeSamples) -> list[Finding] | None:
    """Rows of one sample and label have different truths, in one group or across groups: one of them is wrong.

    log = log.filter(({truth}.drop_nulls().n_unique().over({pair}) < 2) | {truth}.is_null() | {unknown_pair})
    """
    if not part.log.has("truth") or part.has_trials:
        return None
    if not part.log.by and part.again.is_empty():
        return []
    found = part.contradicted(TRUTH, bits_of(pl.col(TRUTH)) if part.log.is_number("truth") else code_of([TRUTH]))
    return [part.finding(int(found[N_ROWS].sum()), found, part.log.pair)]


@problem("rows", "error", look=WholeSamples)
def models_pooled(part: WholeSamples) -> list[Finding] | None:
    """Several models have a row of this sample and label, and each number is of all of them: pass {by}.

    mlm.check(log{by_role}{roles})
    $ --by {column}
    """
    keys = part.log.pair_keys
    if not part.log.model:
        return None
    own = fold(part.copies.lazy(), keys, [(pl.col(N_ROWS) - 1).sum().alias(Fact.ROWS)])
    models = pl.col(N_ROWS) - pl.col(Fact.ROWS).fill_null(0)
    pooled = matched(part.again.lazy(), own, keys, how="left").with_columns(models).filter(pl.col(N_ROWS) > 1).collect()
    return [part.finding(surplus(pooled), pooled, keys, MODEL)]


@problem("samples", "warning", look=WholeSamples)
def slices_differ_between_models(part: WholeSamples) -> list[Finding] | None:
    """Samples have other values of {column!r} in one {between} than in another: no pairs of compare in its slices.

    A slice is a fact of the sample: join it from one table, the same for all models.

    log = log.drop({column!r}).join(..., on={sample}, how='left')
    $ [prepare] drop = ["{column}"]
    """
    looks = _slices_of_models(part.log)
    return [finding for look in looks for finding in look.findings(part.rows)] if looks else None


@dataclass
class SlicesOfModel:
    """Columns of slices, and a column of models in each of which a sample should have the same values."""

    log: LogTable
    model: KeyColumn
    columns: list[KeyColumn]
    keys: list[str]

    def findings(self, rows: pl.LazyFrame) -> Iterator[Finding]:
        """Search rows that hold whole samples."""
        # Rows without a score or a truth are in no pair, where these are read.
        read = [column for role, column in ROLE_COLUMNS.items() if role != "weight" and role in self.log.values]
        known = rows.drop_nulls(read) if read else rows
        columns = [column.column for column in self.columns]
        # Most samples have one value, which is soon seen: only of the others each model has its own set of values.
        values = {column: pl.col(column).hash() for column in columns}
        several = fold(known, self.keys, [(value.min() != value.max()).alias(name) for name, value in values.items()])
        # One row to fold for all: rows that are counted and rows that are summed come apart in a stream of none.
        counted = several.with_columns(pl.lit(1).alias(Fact.ROWS))
        n_samples, *with_several = fold(counted, [], [pl.col(Fact.ROWS, *columns).sum()]).collect().row(0)
        if not any(with_several):
            return
        some = several.filter(pl.any_horizontal(columns)).select(self.keys)
        rows_of_some = known.join(some, on=self.keys, how="semi", nulls_equal=True)
        sets = [value.unique().sum().alias(name) for name, value in values.items()]
        of_models = fold(rows_of_some, [*self.keys, self.model.column], sets)
        differs = fold(of_models, self.keys, [pl.col(columns).min() != pl.col(columns).max()])
        counts = differs.select(pl.col(columns).sum()).collect()
        for column in self.columns:
            if count := counts[column.column].item():
                samples = differs.filter(column.column).select(self.keys).sort(self.keys).head(MOST_VALUES).collect()
                places = self.log.examples(self._places(known, samples, column))
                yield Finding(count, places, n_samples, column.name, self.model.name)

    def _places(self, rows: pl.LazyFrame, samples: pl.DataFrame, column: KeyColumn) -> pl.DataFrame:
        """The values that some samples have, each with its model."""
        texts = [text_of_key(pl.col(each.column), self.log.schema[each.column]) for each in (column, self.model)]
        shown = pl.concat_str(texts[0], pl.lit(" ("), texts[1], pl.lit(")")).alias(f"{AS_IS}{column.name}")
        found = rows.join(samples.lazy(), on=self.keys, how="semi", nulls_equal=True).select(*self.keys, shown)
        joined = fold(found.unique(), self.keys, [pl.exclude(self.keys).sort().str.join(", ")])
        return joined.sort(self.keys).collect()


def _slices_of_models(log: LogTable) -> list[SlicesOfModel]:
    """The column that tells models apart: the one called "model", or else each column of by."""
    by = [KeyColumn(log.names[column], column) for column in log.by if column not in log.pair]
    models = [key for key in by if key.name == MODEL] or [KeyColumn(MODEL, MODEL)] * (MODEL in log.schema)
    found = []
    for model in models or by:
        keys = [key for key in log.sample_keys if key != model.column]
        no_slices = {*keys, model.column, *log.label}
        no_slices |= {name for name, dtype in log.schema.items() if dtype.is_nested()}
        columns = [each for each in log.slices if each.column not in no_slices]
        found += [SlicesOfModel(log, model, columns, keys)] if columns else []
    return found


# -- columns of by, when all samples were seen -------------------------------------------------------------------------


class KeyOfSamples:
    """A column of `by`: how many samples have several of its values, and how many lack some."""

    def __init__(self, log: LogTable, column: str, n_values: int) -> None:
        self.log, self._column = log, column
        self.several, self.lacking = Finding(about=log.names[column]), Finding(about=log.names[column])
        self._is_shared = False
        self._conditions = {"several": pl.col(column) > 1, "lacking": pl.col(column) < n_values}
        """Where samples have several values, and where they lack some, by how many they have."""

    def sums(self) -> Iterator[pl.Expr]:
        """How many samples have several values and how many lack some, and the first of them."""
        for name, where in self._conditions.items():
            yield where.sum().alias(self._count(name))
            yield self.log.first_of(self.log.sample, where).alias(self._first(name))

    def _count(self, name: str) -> str:
        return f"{INTERNAL}{name}:{self._column}"

    def _first(self, name: str) -> str:
        return f"{INTERNAL}first_{name}:{self._column}"

    def add(self, part: WholeSamples, counts: pl.DataFrame) -> None:
        """Add the samples of a part, which are counted."""
        n_several, n_lacking = (counts[self._count(name)].item() for name in self._conditions)
        firsts = [counts[self._first(name)].explode().struct.unnest() for name in self._conditions]
        # If no sample has several values, it is not a problem that each lacks some.
        shown = (self.several, n_several, n_several), (self.lacking, n_lacking, min(n_lacking, n_several))
        for (finding, count, some), first in zip(shown, firsts, strict=True):
            finding.add(Finding(count, self.log.examples(first) if some else [], counts[Fact.ROWS].item()))
        if self.several.count and not self._is_shared:
            self._is_shared = part.are_shared(self._column, firsts[0])

    @property
    def spread(self) -> Literal["varies", "in all", "in most", "in few"]:
        """How samples lie in its values: each of their labels in one of them; or in all, in most or in few of them."""
        if not self._is_shared:
            return "varies"
        if not self.lacking.count:
            return "in all"
        return "in most" if 2 * self.several.count > self.several.total else "in few"


@problem("samples", "warning", look=KeyOfSamples)
def key_varies_in_sample(key: KeyOfSamples) -> list[Finding] | None:
    """The rows of a sample differ in {column!r}: by this column, rankings see only parts of the sample.

    log =
    log.with_columns(pl.when({known_sample}).then(pl.col({column!r}).first().over({sample})).otherwise(pl.col({column!r})))
    """
    if not key.log.needs("sample"):
        return None
    return [key.several] if key.spread == "varies" else []


@problem("samples", "warning", look=KeyOfSamples)
def sample_in_several(key: KeyOfSamples) -> list[Finding]:
    """Some samples have rows in several values of {column!r}, but most in one: if it is a fold, they leak.

    log = log.filter((pl.col({column!r}).n_unique().over({sample}) == 1) | {unknown_sample})
    """
    return [key.several] if key.spread == "in few" else []


@problem("samples", "warning", look=KeyOfSamples)
def sample_not_in_all(key: KeyOfSamples) -> list[Finding]:
    """Samples lack values of {column!r} that others have: compare models only on samples that all models have.

    log = log.filter((pl.col({column!r}).n_unique().over({sample}) ==
    pl.col({column!r}).filter({known_sample}).n_unique()) | {unknown_sample})
    """
    return [key.lacking] if key.spread == "in most" else []


@problem("samples", "info", look=KeyOfSamples)
def samples_in_common(key: KeyOfSamples) -> list[Finding]:
    """Every sample has rows in all values of {column!r}: right if it is a model, wrong if it is a fold.

    mlm.evaluate(log, mlm.n_samples(), by={column!r}{roles})
    """
    return [key.several] if key.spread == "in all" else []
