"""States: `state` folds a log into a small table, `finish` answers from such tables, `compact` makes them smaller."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any, Literal, Unpack

import polars as pl

from polars_mlmetrics.data.expressions import text_of
from polars_mlmetrics.data.frames import (
    SOURCE,
    AnyFrame,
    Frame,
    Names,
    answer_as_given,
    as_given_later,
    is_state,
    schema_of,
)
from polars_mlmetrics.data.returned import Listed
from polars_mlmetrics.data.roles import Bound, Roles, Table, checked_roles
from polars_mlmetrics.engine.buckets import BUCKETS, buckets_of
from polars_mlmetrics.engine.contents import RESERVED, Contents, check_once, check_sources, described
from polars_mlmetrics.engine.folds import BIN, BUCKET, compacted
from polars_mlmetrics.engine.passes import Passes
from polars_mlmetrics.engine.state_table import StateTable
from polars_mlmetrics.errors import NameCollisionError, StateError, at_callers_line
from polars_mlmetrics.formula.over_targets import samples_of_all
from polars_mlmetrics.places.fingerprints import fingerprints_of, name_in
from polars_mlmetrics.query.complete_samples import change_to_pairs, check_can_pair
from polars_mlmetrics.query.keys import Keys
from polars_mlmetrics.query.query import Query
from polars_mlmetrics.query.reported_value import ask_counts
from polars_mlmetrics.query.source import passes_of, planned, source_of
from polars_mlmetrics.query.verb import Verb
from polars_mlmetrics.query.written import written

STATE = Verb("state", takes_expressions=True)


@at_callers_line
def state(
    frame: AnyFrame,
    *metrics: pl.Expr | Sequence[pl.Expr],
    by: Keys | None = None,
    buckets: int = BUCKETS,
    cluster: Names = None,
    between: str | None = None,
    passes: int | Literal["auto", "files"] | None = None,
    memory: int | str | None = None,
    progress: bool = True,
    **roles: Unpack[Roles],
) -> AnyFrame:
    """Fold a log into its statistics: a small table that answers for these metrics without the rows.

    To merge states of different rows, put them one under the other (`pl.concat`, or files in one folder). No sample may
    have rows in two of them: it would count as two. `finish` works out metrics from them.

    Parameters
    ----------
    frame
        The long table: one row per sample and label.
    *metrics
        Metrics, one by one or in lists. The state holds their statistics, and so answers for all metrics that are made
        of these.
    by
        The columns (or row-wise expressions) by which the state can be asked later.
    buckets
        Into how many parts the samples of each group are put, by a hash of their ids: intervals are made from these.
        0 for none; a table without samples has none.
    cluster
        The columns that say which samples depend on one another, such as the user: a cluster is in one bucket, whole.
        None is the sample.
    between
        The by column of the models, where `compare` is to know the pairs: then only samples that all models of a group
        have are kept, and counted. A model has a sample where a row of it counts to the metrics.
    passes, memory, progress
        As in `evaluate`.
    **roles
        Which columns are the sample, label, score, truth and weight of metrics that do not say so themselves.

    Returns
    -------
    A row for each combination of the by columns and bucket, with the statistics; `state` names its format and its
    roles.

    Raises
    ------
    StateError
        If a metric needs all rows of a group together, such as an exact `roc_auc`: take `bins=`.

    See Also
    --------
    finish : works out metrics from a state.
    write_state : writes one to a file, whole.
    update_states : keeps a folder up to date.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> log = pl.DataFrame({"sample": [1, 1, 2, 2], "model": ["a", "a", "b", "b"], "score": [0.9, 0.2, 0.4, 0.8],
    ...                     "truth": [1, 0, 1, 0]})
    >>> small = mlm.state(log, mlm.recall(), by="model")
    >>> mlm.finish(small, mlm.recall(), mlm.n_rows())
    shape: (1, 2)
    ┌────────┬────────┐
    │ recall ┆ n_rows │
    │ ---    ┆ ---    │
    │ f64    ┆ i64    │
    ╞════════╪════════╡
    │ 0.5    ┆ 4      │
    └────────┴────────┘
    """
    schema = schema_of(frame, STATE.name)
    STATE.reads_state(schema)
    sources = fingerprints_of(frame.lazy())
    made = StateOf.read(frame, metrics, by, buckets, cluster, between, roles, sources, schema)
    split = passes_of(made.query, passes, memory, progress=progress)
    if split is None and between is None:
        table = planned(made.query, lambda query: replace(made, query=query).table(None))
        return answer_as_given(frame, table, made.query.types_of_units())
    return as_given_later(frame, lambda: made.of_pairs(split).table(split), lambda: made.table(None))


@dataclass(frozen=True)
class StateOf:
    """A state that is asked for: its query and its buckets, checked, and the files that its rows are from."""

    query: Query
    buckets: dict[str, Any] | None
    between: str | None
    sources: Sequence[str]
    to_pairs: Callable[[pl.LazyFrame], pl.LazyFrame] | None = None
    """The change of the rows to those of pairs, where these are asked for and were looked up."""

    @classmethod
    def read(
        cls,
        frame: Frame,
        metrics: Sequence[Any],
        by: Keys | None,
        buckets: int,
        cluster: Names,
        between: str | None,
        roles: Mapping[str, Any],
        sources: Sequence[str],
        schema: pl.Schema | None = None,
    ) -> StateOf:
        """Read and check the parameters of a state. The schema of the frame is read where it is not known."""
        schema = schema_of(frame, STATE.name) if schema is None else schema
        bound, added = _as_columns(checked_roles(roles))
        scheme = buckets_of(schema, bound.table.sample, cluster, buckets)
        if scheme is not None:
            # A key of one byte is matched faster than a wide one.
            added.append(scheme.bucket.cast(pl.UInt8 if buckets <= 256 else pl.Int64).alias(BUCKET))
        query = Query.read(STATE, frame, metrics, by, None, bound, added=added, schema=schema)
        if query.plain:
            raise StateError(f"{query.plain_names[0]!r} is a plain expression: a state can hold metrics only.")
        check_once((source, name_in(source)) for source in sources)
        if between is not None:
            check_can_pair(query, between)
        return cls(query, None if scheme is None else scheme.description, between, sources)

    def of_pairs(self, passes: Passes | None) -> StateOf:
        """The same of the samples that all models have, which are looked up now, where pairs are asked for."""
        if self.between is None:
            return self
        query = replace(self.query, holds_rows=False)
        return replace(self, query=query, to_pairs=change_to_pairs(query, self.between, passes))

    def table(self, passes: Passes | None) -> pl.LazyFrame:
        """The plan of the state: its statistics by group, and a row for each file of the log."""
        plan, names = self.planned(passes), self._key_names()
        contents = self._contents(plan)
        _check_names(contents)
        table = plan.table()
        there = table.collect_schema()
        names = names | {BIN: "bin"} | ({} if contents.label is None else {contents.label: "label"})
        named = table.cast({BUCKET: pl.Int64} if self.buckets else {})
        named = named.rename({column: name for column, name in names.items() if column in there})
        return _in_order(with_sources(named, self.sources), contents)

    def planned(self, passes: Passes | None) -> StateTable:
        """The partials of the state, with all that its metrics need."""
        query = self.query
        cluster = self.buckets["cluster"] if self.buckets else ()
        source = source_of(query, passes)
        if self.to_pairs is not None:
            source = source.changed(self.to_pairs).cached()  # they are read more than once
        plan = StateTable(source, self._key_names(), query.readings, cluster)
        for metric in query.metrics:
            plan.add(metric)
        if self.between is not None:
            for count in samples_of_all(query.metrics):
                plan.add(count)
        # Samples are counted where they are folded anyway, which all metrics together decide.
        for metric in query.metrics:
            ask_counts(metric, plan)
        return plan

    def _key_names(self) -> dict[str, str]:
        """The names that the by columns and the bucket have in the state."""
        return {key.column: key.name for key in self.query.by} | ({BUCKET: "bucket"} if self.buckets else {})

    def _contents(self, plan: StateTable) -> Contents:
        """The contents of the state."""
        query = self.query
        log = Listed.of(query.schema)
        return Contents(
            by=[key.name for key in query.by],
            expressions=_expressions(query),
            label=plan.label,
            bins=plan.has_bins,
            buckets=self.buckets,
            between=self.between,
            roles=_written_roles(query.roles),
            columns=_columns_read(query),
            metrics={
                name: written(metric, query.bound) for name, metric in zip(query.order, query.metrics, strict=True)
            },
            listed=None if log is None else log.dtype.categories.to_list(),
            statistics=described(plan.statistics()),
            declared=plan.declared,
        )


def _as_columns(roles: Mapping[str, Any]) -> tuple[Bound, list[pl.Expr]]:
    """Roles that are expressions, as columns to be added: a state knows columns by their names alone."""
    texts = {role: text_of(column) for role, column in roles.items() if isinstance(column, pl.Expr)}
    added = {text: roles[role].alias(text) for role, text in texts.items()}
    return Bound({**roles, **texts}), list(added.values())


def with_sources(table: pl.LazyFrame, sources: Sequence[str]) -> pl.LazyFrame:
    """The rows of a state, and one that names each file of the log."""
    named = pl.LazyFrame({SOURCE: sources}, schema={SOURCE: pl.String})
    return pl.concat([table, named], how="diagonal")


def _expressions(query: Query) -> dict[str, str]:
    """The by columns that are expressions, and what they are."""
    added = {expression.meta.output_name(): expression for expression in query.added}
    return {key.name: text_of(added[key.column].meta.undo_aliases()) for key in query.by if key.column in added}


def _in_order(table: pl.LazyFrame, contents: Contents) -> pl.LazyFrame:
    """A state, its columns and rows as the format has them."""
    return table.select(contents.column(), *contents.names()[1:]).sort([SOURCE, *contents.keys()])


def _written_roles(roles: Table) -> dict[str, Any]:
    return roles.roles() | {role: column.meta.output_name() for role, column in roles.values().items()}


def _columns_read(query: Query) -> dict[str, str]:
    """The kinds of the columns that the metrics read."""
    names: set[str] = set()
    for measure in query.measures:
        table = measure.table
        columns = [*table.values().values(), *measure.predicates]
        read = {name for column in columns for name in column.meta.root_names()}
        read |= {*measure.probe.columns_read}
        for name in sorted(read & query.schema.keys() - {*table.sample, table.label}):
            if query.schema[name].is_nested():
                raise StateError(
                    f"{measure.output_name} reads inside {name!r}, which is {query.schema[name]}: a state cannot have "
                    "such a column. Add the value that it reads as a column first."
                )
        names |= {*table.sample, table.label, *read}
    return {name: type(query.schema[name]).__name__ for name in sorted(names) if name in query.schema}


def _check_names(contents: Contents) -> None:
    for name in contents.by:
        if name in RESERVED:
            raise NameCollisionError(f"{name!r} is a column this function creates: use .alias(...) on the key.")
        if name == contents.label:
            raise NameCollisionError(f"{name!r} holds the labels, which a state always keeps: leave it out of by=.")
        if name in contents.statistics:
            raise NameCollisionError(f"{name!r} is the name of a statistic: use .alias(...) on the key.")


@at_callers_line
def compact(frame: AnyFrame) -> AnyFrame:
    """Merge the rows of a state that have equal keys: of many days, or of many passes.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> log = pl.DataFrame({"sample": [1, 2, 3], "score": [0.9, 0.2, 0.4], "truth": [1, 0, 1]})
    >>> small = mlm.state(log, mlm.accuracy(), buckets=0)
    >>> mlm.compact(pl.concat([small, small])).height
    1
    """
    contents = Contents.of(schema_of(frame, "compact"))
    check_sources(frame)
    rows, is_source = frame.lazy(), pl.col(SOURCE).is_not_null()
    merged = compacted(rows.filter(~is_source), contents.keys(), contents.merged())
    named = rows.filter(is_source).select(SOURCE)
    table = _in_order(pl.concat([merged, named], how="diagonal"), contents)
    keys, schema = contents.keys(), rows.collect_schema()
    return answer_as_given(frame, table, [schema[key] for key in keys])


def join_states(states: Iterable[bytes], empty: bytes) -> pl.DataFrame:
    """The state of all rows, from the bytes of states of parts of them. `empty` is the state of none."""
    expected = pl.read_ipc(BytesIO(empty))
    found = [expected]
    for place, data in enumerate(states):
        found.append(_of_bytes(data, place))
        if found[-1].schema != expected.schema:
            raise StateError(f"the state at place {place} is not of this fold: it was made by another one.")
    return compact(pl.concat(found))


def _of_bytes(data: bytes, place: int) -> pl.DataFrame:
    if not isinstance(data, bytes | bytearray | memoryview):
        raise StateError(f"join takes the bytes of states, and at place {place} there is a {type(data).__name__}.")
    try:
        state = pl.read_ipc(BytesIO(data))
    except (pl.exceptions.PolarsError, OSError) as error:
        raise StateError(f"the bytes at place {place} are no state: {error}") from None
    if not is_state(state.schema):
        raise StateError(f"the bytes at place {place} are a table, and no state.")
    return state
