"""Encoding of a log or a state for the search of slices: a log once, or part by part as often as needed."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from typing import Any, Literal

import numpy as np
import polars as pl

from polars_mlmetrics.data.frames import Names, column_names
from polars_mlmetrics.engine.packing import place_in
from polars_mlmetrics.engine.partials import Partial
from polars_mlmetrics.engine.passes import Passes
from polars_mlmetrics.engine.plan import Plan
from polars_mlmetrics.engine.ranking import code_of
from polars_mlmetrics.engine.replicates import WITHOUT
from polars_mlmetrics.engine.sources import LogSource
from polars_mlmetrics.engine.state_rows import StateSource
from polars_mlmetrics.errors import INTERNAL, ColumnError, ParameterError, StateError, warn_at_callers_line
from polars_mlmetrics.formula.arithmetic import whole_times
from polars_mlmetrics.metrics.decisions import n_rows, n_samples
from polars_mlmetrics.query.query import Query
from polars_mlmetrics.query.source import passes_of
from polars_mlmetrics.slice_search.coded import (
    CLUSTER,
    GROUP,
    N_ROWS,
    N_SAMPLES,
    SAMPLE,
    Chunk,
    Coded,
    Wanted,
    again,
    code_column,
    in_groups,
    numbered,
    statistics_of,
    with_sums,
)
from polars_mlmetrics.slice_search.contrasts import FoldedTables, Numbers, PartialKind
from polars_mlmetrics.slice_search.features import COUNT, VALUE, Feature, counts_of, type_of

BYTES = 200
"""Bytes that a row takes, about, while its part of the log is searched."""

AT_ONCE = 1_000_000
"""A log of more rows is read in parts, where nothing else is asked for."""

PART = 500_000
"""How many rows such a part has, about."""

SHRINKS = 10
"""Rows are folded by all codes at once where there are so many rows for each combination of these, or more."""

ROOM = 2**62
"""The limit of a packed number of codes."""

ONE = pl.lit(1, dtype=pl.Int8).alias(N_ROWS)
"""How many rows a row is."""

Passing = tuple[int | Literal["auto", "files"] | None, int | str | None, bool]
"""The wanted passes, the memory that they aim at, and whether they say how far they are."""

FEWEST, THOUSANDTH = 60, 0.001
"""How many samples a slice has at least, where nothing is asked for: so many, or this share of its group."""

MANY, LOOKED = 100_000, 2_000_000
"""Of a column of more numbers than MANY, in a log of more rows than LOOKED, about so many rows give the ranges."""


class Packs:
    """Codes in few whole numbers."""

    def __init__(self, sizes: Sequence[tuple[str, int]]) -> None:
        self.places: list[tuple[str, str, int, int]] = []
        self.keys: list[str] = []
        step = ROOM
        for name, size in sizes:
            if step * size >= ROOM:
                self.keys.append(f"{INTERNAL}packed_{len(self.keys)}")
                step = 1
            self.places.append((name, self.keys[-1], step, size))
            step *= size

    @property
    def cells(self) -> int:
        """How many combinations of codes there can be."""
        cells = 1
        for *_, size in self.places:
            cells *= size
        return cells

    def packed(self) -> list[pl.Expr]:
        """The numbers, from the codes."""
        terms: dict[str, pl.Expr] = {}
        for name, key, step, _ in self.places:
            term = pl.col(name).cast(pl.Int64) * step
            terms[key] = terms[key] + term if key in terms else term
        return [term.alias(key) for key, term in terms.items()]

    def codes(self) -> list[pl.Expr]:
        """The codes again."""
        return [place_in(pl.col(key), step, size).cast(pl.Int32).alias(name) for name, key, step, size in self.places]


class CodedRows:
    """Reads a log into codes."""

    def __init__(self, query: Query, features: list[Feature], passes: Passing, buckets: int, cluster: Names) -> None:
        clusters = list(column_names("cluster", cluster))
        self._query = query
        self._features = features
        self._buckets = buckets
        self._sample = list(query.roles.sample)
        self._cluster = [] if clusters == self._sample else clusters
        self._by = [key.column for key in query.by]
        self._groups = numbered(query.rows.select(self._by).unique().collect(), self._by)
        self._codes = {code_column(place): each.code() for place, each in enumerate(features)}
        self._packs = Packs([(WITHOUT, buckets), *((code_column(i), each.size) for i, each in enumerate(features))])
        self._keys, self._cells = [GROUP, *self._packs.keys], [GROUP, WITHOUT, *self._codes]
        self._n_rows = int(query.frame.select(pl.len()).collect().item())
        part = self._n_rows if self._n_rows <= AT_ONCE else PART
        self._are_folded = part >= SHRINKS * self._packs.cells
        self._passes = self._passes_of(*passes)
        schema = pl.Schema({**query.schema, GROUP: pl.Int32(), **dict.fromkeys(self._packs.keys, pl.Int64())})
        # Of no source yet: what it is answered from comes later, chunk by chunk.
        self._plan = Plan(FoldedTables({}, self._keys, schema), self._keys, query.readings)
        self._plan.value(query.metrics[0])
        self._asked = {PartialKind.of(each, self._keys): each for each in self._plan.all_partials}
        self._statistics = {kind: statistics_of(each) for kind, each in self._asked.items()}
        self._has_several = False
        """Whether a sample was seen with several rows, or a row without a sample."""
        self._are_samples = False
        """Whether it is known that each row is a sample."""

    def read(self) -> tuple[Coded, str]:
        """The log, and how it is read, in words."""
        parts = self._passes.how_many(BYTES, self._n_rows) if self._passes else 1
        held = self._held() if parts == 1 or self._are_folded else None
        read = self._chunks if held is None else again(held)
        metric = self._query.metrics[0]
        coded = Coded(read, self._groups, self._features, self._statistics, self._plan, metric, self._buckets)
        self._are_samples = not self._has_several
        if held is None:
            return coded, f"rows read in {parts} passes for each step"
        rows = "rows folded by all features at once" if self._are_folded else "rows as they are"
        return coded, rows if parts == 1 else f"{rows}, in {parts} passes"

    def _passes_of(self, count: Any, memory: Any, progress: bool) -> Passes | None:
        if count is None and memory is None and self._n_rows > AT_ONCE:
            count = whole_times(PART, self._n_rows)
        return passes_of(self._query, count, memory, progress=progress)

    def _held(self) -> list[Chunk] | None:
        """All rows, where they are few or are folded to few; None where the samples of several parts are not."""
        held: list[Chunk] = []
        with closing(self._chunks(Wanted(samples=True, tables=True, clusters=True))) as chunks:
            for chunk in chunks:
                held.append(chunk)
                if len(held) > 1 and any(SAMPLE in each.counts.columns for each in held):
                    return None
        return held

    def _chunks(self, wanted: Wanted) -> Generator[Chunk]:
        """The rows, part by part."""
        if not self._passes:
            yield self._chunk(self._query.rows, wanted)
            return
        # To be closed where a pass fails: a bar would stay on the screen.
        with closing(self._passes.parts(BYTES, self._n_rows)) as parts:
            for rows in parts:
                yield self._chunk(rows, wanted)

    def _chunk(self, rows: pl.LazyFrame, wanted: Wanted) -> Chunk:
        """A part of the rows: as they are, or folded."""
        rows = self._coded(rows, wanted)
        asked = self._asked if wanted.tables else {}
        plain = {kind: each for kind, each in asked.items() if not self._are_folded and _is_plain(each)}
        others = {kind: self._folded(rows, each) for kind, each in asked.items() if kind not in plain}
        sample = [self._sample_code()] if wanted.samples and not self._are_samples else []
        columns = self._columns(rows, plain, sample)
        found, *more = pl.collect_all([columns, *others.values(), *self._clusters(rows, wanted)])
        tables = {kind: self._filled(kind, self._unpacked(table)) for kind, table in zip(others, more, strict=False)}
        tables |= {kind: self._of_rows(kind, found) for kind in plain}
        counts = self._counted(found.select(*self._cells, *(SAMPLE for _ in sample)))
        if wanted.samples and self._are_samples:
            counts = counts.with_columns(pl.col(N_ROWS).alias(N_SAMPLES))
        return Chunk(counts, tables, more[-1] if len(more) > len(others) else None)

    def _columns(
        self, rows: pl.LazyFrame, asked: Mapping[PartialKind, Partial], more: Sequence[pl.Expr]
    ) -> pl.LazyFrame:
        """Rows with what each of them adds to partials."""
        for each in asked.values():
            rows = each.fold.with_features(rows)
        added = {s.name: s.row.alias(s.name) for each in asked.values() for s in each.fold.statistics.values()}
        units = dict.fromkeys(unit for kind in asked for unit in kind.units)
        return rows.select(*self._cells, *units, *more, *added.values())

    def _coded(self, rows: pl.LazyFrame, wanted: Wanted) -> pl.LazyFrame:
        """The rows that are wanted, with their groups and codes."""
        if wanted.hint is not None:
            rows = rows.filter(wanted.hint)
        if wanted.buckets is not None:
            rows = rows.filter(pl.col(WITHOUT).is_in(wanted.buckets))
        # A number is a byte where it can be: there is one of each feature in every row.
        codes = [
            code.cast(pl.UInt8 if each.size <= 2**8 else pl.Int32).alias(name)
            for (name, code), each in zip(self._codes.items(), self._features, strict=True)
        ]
        rows = in_groups(rows, self._groups, self._by).with_columns(pl.col(WITHOUT).cast(pl.Int32), *codes)
        return rows if wanted.where is None else rows.filter(wanted.where)

    def _folded(self, rows: pl.LazyFrame, asked: Partial) -> pl.LazyFrame:
        """The table of a partial, at the codes of the rows."""
        by = [key for key in asked.by if key not in self._keys]
        source = LogSource(rows.with_columns(self._packs.packed()), self._query.roles.label, self._plan.schema)
        # A group stays a group, whatever stands for its keys.
        [(table, _)] = source.partials([asked.at([*self._keys, *by])], [*self._keys, *by])
        return table

    def _unpacked(self, table: pl.DataFrame) -> pl.DataFrame:
        return table.with_columns(self._packs.codes()).drop(self._packs.keys)

    def _filled(self, kind: PartialKind, table: pl.DataFrame) -> pl.DataFrame:
        """The columns of the table of a partial."""
        statistics = self._statistics[kind]
        return with_sums(table.select(*self._cells, *kind.units, *(each.name for each in statistics)), statistics)

    def _of_rows(self, kind: PartialKind, rows: pl.DataFrame) -> pl.DataFrame:
        """The same of rows as they are. Where the group is the unit, they are counted with what they add."""
        table = self._filled(kind, rows)
        return table if kind.units else table.with_columns(ONE)

    def _sample_code(self) -> pl.Expr:
        is_known = pl.all_horizontal(pl.col(column).is_not_null() for column in self._sample)
        return pl.when(is_known).then(code_of([*self._by, *self._sample])).alias(SAMPLE)

    def _counted(self, rows: pl.DataFrame) -> pl.DataFrame:
        """How many rows, and samples where rows have them, have the same codes."""
        counts = rows.with_columns(ONE)
        if SAMPLE in rows.columns:
            if rows[SAMPLE].null_count() or rows[SAMPLE].n_unique() < rows.height:
                self._has_several = True
                counts = self._by_sample(counts)
                if counts[SAMPLE].drop_nulls().is_duplicated().any():
                    self._check_whole(counts)
                    return counts
            counts = counts.with_columns(pl.col(SAMPLE).is_not_null().cast(pl.Int8).alias(N_SAMPLES)).drop(SAMPLE)
        if not self._are_folded:
            return counts
        sums = [pl.col(name).sum() for name in (N_ROWS, N_SAMPLES) if name in counts.columns]
        packed = counts.lazy().with_columns(self._packs.packed()).group_by(self._keys).agg(sums)
        return self._unpacked(packed.collect())

    def _by_sample(self, counts: pl.DataFrame) -> pl.DataFrame:
        """How many rows each sample has with the same codes."""
        packed = counts.lazy().with_columns(self._packs.packed())
        return self._unpacked(packed.group_by(*self._keys, SAMPLE).agg(pl.col(N_ROWS).sum()).collect())

    def _check_whole(self, by_sample: pl.DataFrame) -> None:
        """Refuse features that part a sample, where the metric looks at whole samples."""
        looking = [measure for measure in self._query.measures if measure.probe.looks_at_samples]
        if not looking:
            return
        known = by_sample.filter(pl.col(SAMPLE).is_not_null())
        table = known.group_by(SAMPLE).agg((pl.col(code).n_unique() > 1) for code in self._codes)
        parted = [each.name for code, each in zip(self._codes, self._features, strict=True) if table[code].any()]
        if parted:
            raise ColumnError(
                f"feature {parted[0]!r} has several values in one sample, and {looking[0].output_name} looks at whole "
                f"samples: see log.group_by({list(looking[0].table.sample)}).agg(pl.col({parted[0]!r}).n_unique())."
            )

    def _clusters(self, rows: pl.LazyFrame, wanted: Wanted) -> list[pl.LazyFrame]:
        """The clusters with the same codes; none where samples are the clusters."""
        if not self._cluster or not wanted.clusters:
            return []
        return [rows.select(*self._cells, code_of(self._cluster).alias(CLUSTER)).unique()]


def _is_plain(asked: Partial) -> bool:
    """Whether what each row adds to a partial is known from that row alone."""
    is_of_rows = asked.grain != "sample" and not (asked.rankings or asked.looks_back or asked.windows)
    return is_of_rows and all(each.monoid == "sum" and each.moment is None for each in asked.fold.statistics.values())


def read_log(
    query: Query, names: Sequence[str], top: int, bins: int, cluster: Names, buckets: int, passes: Passing
) -> tuple[Coded, str]:
    """A log, read into codes, and how it is read."""
    # One by one: together they would hold all these columns.
    counts = [_counts(query, name).collect(engine="streaming") for name in names]
    features = _features(query.schema, dict(zip(names, counts, strict=True)), top, bins)
    return CodedRows(query, features, passes, buckets, cluster).read()


def read_state(
    query: Query, source: StateSource, names: Sequence[str], top: int, bins: int, buckets: int
) -> tuple[Coded, str]:
    """A state, read into codes, and how it is read."""
    by, columns = [key.column for key in query.by], {key.column: key.name for key in query.slice_keys}
    keys = [*by, *columns, WITHOUT]
    (metric,) = query.metrics
    counts = _counts_of_state(query, source, by, keys).rename(columns)
    plan = Plan(source, keys, query.readings)
    plan.value(metric)
    asked = {PartialKind.of(each, keys): each for each in plan.all_partials}
    tables = pl.collect_all([table for table, _ in source.partials(list(asked.values()), keys)])
    counted = {name: counts_of(counts.lazy(), name, pl.col(N_ROWS)).collect() for name in names}
    features, groups = _features(counts.schema, counted, top, bins), numbered(counts, by)
    codes = [each.code().cast(pl.Int32).alias(code_column(place)) for place, each in enumerate(features)]

    def coded(table: pl.DataFrame) -> pl.DataFrame:
        return in_groups(table.lazy(), groups, by).with_columns(codes).drop(*names, *by).collect()

    found = {kind: coded(table.rename(columns)) for kind, table in zip(asked, tables, strict=True)}
    statistics = {kind: statistics_of(each) for kind, each in asked.items()}
    chunk = Chunk(coded(counts), {kind: with_sums(table, statistics[kind]) for kind, table in found.items()})
    return Coded(again([chunk]), groups, features, statistics, plan, metric, buckets), "a state"


def _counts_of_state(query: Query, source: StateSource, by: list[str], keys: list[str]) -> pl.DataFrame:
    """How many rows and samples a state has at its keys. Samples must be whole in every group, so in every slice."""
    (metric,) = query.metrics
    samples, rows = (each.tree.on_the_rest(query.bound) for each in (n_samples(), n_rows()))
    whole = Plan(source, by, query.readings)
    parts = [whole.add(measure) for node in (metric, samples) for measure in node.measures()]
    reasons = whole.reasons_of(parts)
    if reasons:
        why = whole.groups().select(pl.coalesce(reasons).drop_nulls().first()).collect().item()
        if why is not None:
            raise StateError(f"{why}: a slice of this state may hold a part of a sample. Use find_slices on the log.")
    plan = Plan(source, keys, query.readings)
    sizes = [plan.value(samples).alias(N_SAMPLES), plan.value(rows).alias(N_ROWS)]
    return plan.groups().select(*keys, *sizes).collect()


def least_of(coded: Coded, least: int | None) -> Numbers:
    """How many samples a slice of each group must have."""
    samples = coded.totals.samples
    if least is None:
        wanted: Numbers = np.maximum(float(FEWEST), samples * THOUSANDTH)
        return wanted
    return np.full(len(samples), float(least))


def without_small(coded: Coded, least: float) -> list[int]:
    """The places of the features with a value that is in enough rows and not in all; a warning names the others."""
    total = coded.totals.rows.sum()
    places, large = [], set()
    for place, feature in enumerate(coded.features):
        counts = coded.totals.by_code[place][: len(feature.conditions)]
        if ((counts >= least) & (counts < total)).any():
            places.append(place)
            large.add(feature.name)
    small = [feature.name for feature in coded.features if feature.name not in large]
    _warn(list(dict.fromkeys(small)), "have no value with enough samples, and are left out")
    return places


def _counts(query: Query, name: str) -> pl.LazyFrame:
    """The values of a column, and how many rows have each."""
    rows, dtype = query.rows, query.schema[name]
    kind = type_of(name, dtype)
    if isinstance(dtype, pl.List) or kind in ("text", "boolean"):
        return counts_of(rows, name)
    n_rows, n_values = rows.select(pl.len(), pl.col(name).approx_n_unique()).collect().row(0)
    if n_rows <= LOOKED or n_values <= MANY:
        return counts_of(rows, name)
    # Some rows give the ranges, into which any other value falls. What lies in none is counted in all.
    some = counts_of(rows.gather_every(whole_times(LOOKED, n_rows)), name)
    is_number = pl.col(name).is_not_nan() if kind == "number" else pl.col(name).is_not_null()
    lacking = counts_of(rows.filter(~is_number.fill_null(False)), name)
    return pl.concat([some, lacking]).group_by(VALUE).agg(pl.col(COUNT).sum())


def _features(schema: Mapping[str, Any], counted: Mapping[str, pl.DataFrame], top: int, bins: int) -> list[Feature]:
    """The features of more than one value; of the others a warning says that they are left out."""
    features: list[Feature] = []
    constant: list[str] = []
    for name, counts in counted.items():
        dtype = schema[name]
        is_list = isinstance(dtype, pl.List)
        found = Feature.of_lists(name, dtype, counts, top) if is_list else Feature.of(name, dtype, counts, top, bins)
        if sum(each.size for each in found) < 2:
            constant.append(name)
        else:
            features += found
    if not features:
        raise ParameterError(f"no feature has two values to compare: {', '.join(constant)}.")
    _warn(constant, "have one value only, and are left out")
    return features


def _warn(names: Sequence[str], what: str) -> None:
    if names:
        warn_at_callers_line(f"these features {what}: {', '.join(names)}.")
