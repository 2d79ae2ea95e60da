"""Questions of verbs about a log or a state: the query, and the wanted intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import polars as pl

from polars_mlmetrics.data.frames import Frame, Names, schema_of
from polars_mlmetrics.data.roles import checked_roles
from polars_mlmetrics.engine import buckets
from polars_mlmetrics.engine.buckets import NumberedClusters
from polars_mlmetrics.engine.contents import Contents, check_sources
from polars_mlmetrics.engine.folds import BUCKET
from polars_mlmetrics.engine.passes import Passes
from polars_mlmetrics.engine.replicates import WITHOUT, WITHOUT_COARSE
from polars_mlmetrics.engine.sources import Source
from polars_mlmetrics.engine.state_rows import StateSource
from polars_mlmetrics.errors import ColumnError, ParameterError, StateError, TableError, some, typed
from polars_mlmetrics.query.keys import Keys
from polars_mlmetrics.query.query import OF_CLUSTERS, Query
from polars_mlmetrics.query.source import LOOK, passes_of, planned, slices_of, source_of
from polars_mlmetrics.query.verb import Verb, check_no_roles
from polars_mlmetrics.query.written import metrics_of, shown

Level = float | Literal["bootstrap"]
"""A level of confidence; or "bootstrap", for intervals between values of buckets that are drawn with replacement."""

BUCKETS = buckets.OF_LOG
"""How many buckets a log has, where its intervals are not made of the fewer that a state has."""

OF_DRAWS = 0.95
"""The level of the intervals of draws."""

MOST_ROWS = 2**63 - 1
"""More rows than that nobody counts."""

MOST_SHOWN = 4
"""How many metrics of a state an error names."""


@dataclass(frozen=True)
class Confidence:
    """The intervals that are wanted."""

    level: float
    buckets: int
    """How many there are."""
    cluster: Sequence[str]
    """The columns that they are made of."""
    are_whole: bool = True
    """Whether each cluster is known to be in one bucket, whole."""
    is_bootstrap: bool = False
    """Whether the ends are those of draws."""
    is_fine: bool = False
    """Whether they are the buckets of a log, and not the fewer that a state has too."""
    anytime: int | None = None
    """With how many rows they are tightest, if they are right at every look at all rows so far; None if at one look."""

    @classmethod
    def of(
        cls, ci: Level, buckets: int, cluster: Sequence[str], *, are_whole: bool = True, is_fine: bool = False
    ) -> Confidence:
        """The wanted intervals, from buckets."""
        level = OF_DRAWS if isinstance(ci, str) else ci
        return cls(level, buckets, cluster, are_whole, is_bootstrap=isinstance(ci, str), is_fine=is_fine)

    @property
    def of_bins(self) -> Confidence:
        """The intervals of what is worked out of bins: there are many in each bucket."""
        return replace(self, buckets=buckets.BUCKETS, is_fine=False) if self.is_fine else self


class LogBuckets(NamedTuple):
    """The buckets of the rows of a log, in the column WITHOUT."""

    added: list[pl.Expr]
    clusters: NumberedClusters | None = None

    def of_rows(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Rows with the bucket of each, where intervals are wanted."""
        return (
            rows.with_columns(self.added) if self.clusters is None else self.clusters.with_buckets(rows, *OF_CLUSTERS)
        )


@dataclass(frozen=True)
class Question:
    """A query of a log or of a state, and the intervals that are wanted."""

    query: Query
    confidence: Confidence | None
    state: StateSource | None = None
    """The rows of a state; None of a log."""
    contents: Contents | None = None
    """The contents of a state."""
    passes: Passes | None = None
    """The passes in which a log is read; None where it is read at once."""

    @classmethod
    def read(
        cls,
        verb: Verb,
        frame: Frame,
        metrics: Sequence[Any],
        by: Keys | None = None,
        slices: Sequence[Keys] | None = None,
        *,
        ci: Level | None = None,
        cluster: Names = None,
        roles: Mapping[str, Any],
        schema: pl.Schema | None = None,
    ) -> Question:
        """Read and check the parameters of a verb. The schema of the frame is read where it is not known."""
        schema = schema_of(frame, verb.name) if schema is None else schema
        is_of_state, given = verb.reads_state(schema), verb.read_metrics(metrics)
        verb.check_level(ci, cluster)
        if is_of_state:
            check_no_roles(cluster, roles)
            # A call with an empty list of metrics names none, and is not one for those of the state.
            return cls._of_state(verb, frame, schema, given or metrics, by, slices, ci)
        confidence, (added, clusters) = confidence_of(verb, frame, schema, ci, cluster, roles)
        query = Query.read(verb, frame, given, by, slices, roles, added=added, clusters=clusters, schema=schema)
        question = cls(query, confidence)
        if cluster is not None and isinstance(frame, pl.DataFrame):
            check_clusters(question.query)
        return question

    @classmethod
    def _of_state(
        cls,
        verb: Verb,
        frame: Frame,
        schema: pl.Schema,
        metrics: Sequence[Any],
        by: Keys | None,
        slices: Sequence[Keys] | None,
        ci: Level | None,
    ) -> Question:
        """Read a question about a state. No metrics are those that it was made for."""
        contents = Contents.of(schema)
        check_sources(frame)
        by_columns = {name: schema[name] for name in contents.by}
        # Of labels the very type is known.
        labels = {} if contents.label is None else {contents.label: schema["label"]}
        log = pl.Schema({**by_columns, **contents.log(), **labels})
        stored = contents.rows_of(frame.lazy())
        wanted = metrics or metrics_of(contents.metrics)
        query = Query.read(verb, stored.table, wanted, by, slices, contents.roles, log=log, keys=contents.by)
        if query.plain:
            raise StateError(
                f"{query.plain_names[0]!r} is a plain expression: a state has no rows. Use `evaluate` on the log."
            )
        rows = replace(stored, schema=query.schema, added=query.added, made_for=lambda: _made_for(contents))
        if ci is None:
            return cls(query, None, rows, contents)
        return cls(query, _confidence(ci, contents), _by_bucket(rows), contents)

    def at_every_look(self, anytime: int | None) -> Question:
        """The same, with intervals that are right at every look at all rows so far; None leaves them as they are."""
        if anytime is None:
            return self
        if not isinstance(anytime, int) or isinstance(anytime, bool) or not 1 <= anytime <= MOST_ROWS:
            raise ParameterError(
                "anytime must be a whole number of at least 1: the number of rows at which the intervals are to be "
                f"tightest, such as 20_000, not {anytime!r}."
            )
        if self.confidence is None or self.confidence.is_bootstrap:
            given = "" if self.confidence is None else ", not 'bootstrap'"
            raise ParameterError(
                f"{typed('anytime')} is for intervals: pass a number as ci too, such as {typed('ci', 0.95)}{given}."
            )
        return replace(self, confidence=replace(self.confidence, anytime=anytime))

    def with_passes(
        self, count: int | Literal["auto", "files"] | None, memory: int | str | None, *, progress: bool
    ) -> Question:
        """The same, its log read in passes; None reads it at once."""
        if self.is_of_state:
            check_no_passes(count, memory)
            return self
        return replace(self, passes=passes_of(self.query, count, memory, progress=progress))

    @property
    def is_of_state(self) -> bool:
        """Whether it is about a state, and not about a log."""
        return self.contents is not None

    @cached_property
    def source(self) -> Source:
        """The source that answers it: of a log, its rows for all groupings, by bucket too where it wants intervals."""
        if self.state is not None:
            return self.state
        rows, more = source_of(self.query, self.passes), [] if self.confidence is None else [WITHOUT]
        return slices_of(self.query, rows, more, is_collected=self.passes is not None)

    def planned(self, plan: Callable[[Question], pl.LazyFrame]) -> pl.LazyFrame:
        """Plan the answer; of a log that is read once, without a cache of its rows."""
        if self.state is not None:
            return plan(self)
        return planned(self.query, lambda query: plan(replace(self, query=query)))


def check_no_passes(passes: Any, memory: Any) -> None:
    """Refuse passes over a state."""
    for name, given in {"passes": passes, "memory": memory}.items():
        if given is not None:
            raise ParameterError(f"{name}= is for a log: a state is small.")


def confidence_of(
    verb: Verb, frame: Frame, schema: pl.Schema, ci: Level | None, cluster: Names, roles: Mapping[str, Any]
) -> tuple[Confidence | None, LogBuckets]:
    """The wanted intervals of a log, and the buckets that its rows need for them."""
    if ci is None:
        return None, LogBuckets([])
    sample = checked_roles(roles).table.sample
    is_fine = BUCKETS > buckets.BUCKETS and not (verb.has_grid or isinstance(ci, str))
    count = BUCKETS if is_fine else min(BUCKETS, buckets.BUCKETS)
    found = buckets.buckets_of(schema, sample, cluster, count)
    if found is None:
        lacking = next(column for column in sample if column not in schema)
        needed = f"{verb.name} needs samples" if verb.needs_interval else "intervals need samples"
        raise ColumnError(
            f"{needed}, and there is no sample column {lacking!r}: pass {typed('sample')}, or {typed('cluster')} for "
            "the column that says which rows depend on one another. If each row is a sample of its own, add a column: "
            ".with_row_index('sample')."
        )
    columns = found.description["cluster"]
    confidence = Confidence.of(ci, count, columns, is_fine=is_fine)
    # To name the samples as clusters changes nothing.
    if not is_fine or columns == list(sample) or _are_many(frame, columns):
        coarse = [buckets.coarse(found.bucket).alias(WITHOUT_COARSE)] if is_fine else []
        return confidence, LogBuckets([found.bucket.alias(WITHOUT), *coarse])
    return confidence, LogBuckets([], NumberedClusters.of(verb.rows(frame, schema), columns, schema))


def _are_many(frame: Frame, cluster: Sequence[str]) -> bool:
    """Whether rows in memory have more clusters than can be numbered, as the first of them say."""
    return isinstance(frame, pl.DataFrame) and frame.head(LOOK).select(cluster).n_unique() > buckets.OF_LOG


def check_clusters(query: Query) -> None:
    """Refuse clusters that cut through samples into which a metric looks: a part of a sample has another value."""
    samples = {measure.table.sample: measure for measure in query.measures if measure.probe.looks_at_samples}
    for sample, measure in samples.items():
        check_whole(query.rows, [key.column for key in query.by], sample, measure.output_name)


def check_whole(rows: pl.LazyFrame, by: Sequence[str], sample: Sequence[str], name: str) -> None:
    """Refuse clusters of which one holds a part of a sample, where what has this name looks into samples."""
    keys, bucket = list(dict.fromkeys([*by, *sample])), pl.col(WITHOUT)
    known = rows.filter(pl.col(column).is_not_null() for column in sample)
    if known.group_by(keys).agg(bucket.min() != bucket.max()).select(pl.col(WITHOUT).any()).collect().item():
        raise TableError(
            f"cluster= has several values in one sample, and {name} looks into samples: a cluster must hold them whole."
        )


def _made_for(contents: Contents) -> str:
    """The first metrics that a state was made for, and its roles."""
    metrics = some(map(shown, contents.metrics.values()), MOST_SHOWN)
    roles = {**contents.roles, "sample": "+".join(contents.roles["sample"])}
    return f"{metrics}, with {', '.join(f'{role}={column}' for role, column in roles.items())}"


def _by_bucket(source: StateSource) -> StateSource:
    """A state whose buckets can be a key."""
    schema = pl.Schema({**source.schema, WITHOUT: pl.Int64()})
    return replace(source, schema=schema, added=[*source.added, pl.col(BUCKET).alias(WITHOUT)])


def _confidence(ci: Level, contents: Contents) -> Confidence:
    """The intervals that the buckets of a state can give."""
    if contents.buckets is None:
        raise StateError("this state has no buckets, so it has no intervals: make it with buckets=64 and its samples.")
    buckets, are_whole = contents.buckets, contents.has_whole_clusters
    return Confidence.of(ci, buckets["count"], buckets["cluster"], are_whole=are_whole)
