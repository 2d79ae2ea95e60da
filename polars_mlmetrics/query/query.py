"""A query put to a frame: which metrics, in which groups. Read and checked against the schema before any work."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import polars as pl

from polars_mlmetrics.data.door import check_columns, check_key_columns, type_of
from polars_mlmetrics.data.expressions import check_no_pattern, is_pattern, is_row_wise, reserved
from polars_mlmetrics.data.frames import AnyFrame, Frame, is_at_hand, schema_of
from polars_mlmetrics.data.roles import Bound, Table, check_free, checked_roles
from polars_mlmetrics.engine.buckets import NumberedClusters
from polars_mlmetrics.engine.plan import ReadFormulas
from polars_mlmetrics.engine.replicates import WITHOUT, WITHOUT_COARSE
from polars_mlmetrics.errors import INTERNAL, ColumnError, MetricError, NameCollisionError, ParameterError
from polars_mlmetrics.formula.measure import Measure, Node, on_shown
from polars_mlmetrics.formula.metric import Metric, metrics_in
from polars_mlmetrics.query.requirements import check_measure, check_probabilities, check_targets, check_thresholds
from polars_mlmetrics.query.verb import Verb, flat, not_a_metric

OF_CLUSTERS = WITHOUT, WITHOUT_COARSE
"""The columns of rows for their buckets."""


class UnreadKey(ABC):
    """A key that the values of the log decide."""

    @abstractmethod
    def of(self, frame: AnyFrame) -> pl.Expr:
        """The key as an expression of each row."""


Key = str | pl.Expr
AnyKey = Key | UnreadKey
Keys = AnyKey | Sequence[AnyKey]


class KeyColumn(NamedTuple):
    """A key of the result: the name it is given, and the column of the rows in which it stands."""

    name: str
    column: str


@dataclass
class Query:
    """Rows with every key as a column, the keys of each grouping, and what to work out in them."""

    frame: pl.LazyFrame
    added: list[pl.Expr]
    schema: pl.Schema
    metrics: list[Node]
    plain: list[pl.Expr]
    order: list[str]
    by: list[KeyColumn]
    slices: list[list[KeyColumn]] | None
    bound: Bound
    """The roles as they were given."""
    n_rows: int | None
    """How many rows there are, where they are in memory."""
    holds_rows: bool = True
    """Whether Polars is to hold rows that are more than a scan."""
    clusters: NumberedClusters | None = None
    """The clusters of intervals, where each has a bucket if these are few."""
    with_sides: Callable[[pl.LazyFrame], pl.LazyFrame] | None = None
    """A function that makes of the rows those of both sides of a change."""

    @classmethod
    def read(
        cls,
        verb: Verb,
        frame: Frame,
        given: Iterable[Any],
        by: Keys | None,
        slices: Sequence[Keys] | None,
        roles: Mapping[str, Any],
        *,
        added: Sequence[pl.Expr] = (),
        clusters: NumberedClusters | None = None,
        schema: pl.Schema | None = None,
        log: pl.Schema | None = None,
        keys: Sequence[str] | None = None,
    ) -> Query:
        """Understand what was given, or say what is wrong with it.

        `added` are columns that the rows lack, as is that of numbered `clusters`; the `schema` is read where it is not
        known. A frame that is a state speaks of a `log`, and has but these `keys`.
        """
        schema = schema_of(frame, verb.name) if schema is None else schema
        rows = verb.rows(frame, schema) if log is None else frame.lazy()
        bound = checked_roles(roles)
        metrics, plain, order = _sorted_out(given, bound)
        reader = KeyReader(rows, schema, added, keys, frame)
        by_columns = reader.read(by)
        sets = None if slices is None else _each_once(reader.read(key) for key in checked_slices(slices))
        types = reader.types() if clusters is None else reader.types() | dict.fromkeys(OF_CLUSTERS, pl.Int64())
        schema = pl.Schema({**(schema if log is None else log), **types})
        n_rows = frame.height if isinstance(frame, pl.DataFrame) and log is None else None
        query = cls(
            rows, reader.added, schema, metrics, plain, order, by_columns, sets, bound, n_rows, clusters=clusters
        )
        query._check(frame)
        return query

    @property
    def roles(self) -> Table:
        """The roles, settled."""
        return self.bound.table

    @cached_property
    def measures(self) -> list[Measure]:
        """The measures of all its metrics."""
        return [measure for metric in self.metrics for measure in metric.measures()]

    @cached_property
    def readings(self) -> ReadFormulas:
        """The read formulas of its metrics: each is read once, however often the query is planned."""
        return ReadFormulas(self.schema, self.roles)

    @cached_property
    def is_at_hand(self) -> bool:
        """Whether its frame is no more than rows in memory, or a scan of files that are quick to read once more."""
        return is_at_hand(self.frame)

    @cached_property
    def rows(self) -> pl.LazyFrame:
        """The rows, with every key as a column.

        Polars holds them where they are read more than once and are more than a scan: a join or a Python source
        upstream then runs once.
        """
        rows = self.with_keys(self.frame)
        return rows.cache() if self.holds_rows and not self.is_at_hand else rows

    def with_keys(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Rows of the frame, with every key as a column."""
        rows = rows.with_columns(self.added) if self.added else rows
        rows = rows if self.clusters is None else self.clusters.with_buckets(rows, *OF_CLUSTERS)
        return rows if self.with_sides is None else self.with_sides(rows)

    @property
    def groupings(self) -> list[list[KeyColumn]]:
        """The keys of each grouping beyond by: none for the whole, which comes first, then those of each slicing."""
        return [[], *(keys for keys in self.slices or () if keys)]

    @property
    def slice_keys(self) -> list[KeyColumn]:
        """Every key of a slicing, each once."""
        return list(dict.fromkeys(key for keys in self.groupings for key in keys))

    @property
    def columns_of_keys(self) -> list[str]:
        """The columns of the log that keys are worked out of."""
        return columns_of([*self.by, *self.slice_keys], self.added)

    @property
    def plain_names(self) -> list[str]:
        """The names of the plain expressions."""
        return [expression.meta.output_name() for expression in self.plain]

    def key_names(self) -> list[str]:
        """The names of the result's columns that say which row is which."""
        labels = [] if self.slices is None else ["sliced_by", "slice"]
        return [*(key.name for key in self.by), *labels, *(key.name for key in self.slice_keys)]

    def types_of(self, keys: Iterable[KeyColumn]) -> dict[str, pl.DataType]:
        """The types of keys, by their names in the result."""
        return {key.name: self.schema[key.column] for key in keys}

    def types_of_keys(self, *more: KeyColumn) -> dict[str, pl.DataType]:
        """The types of all columns of the result that say which row is which, and of more keys."""
        texts: dict[str, pl.DataType] = {name: pl.String() for name in self.key_names()}
        return texts | self.types_of([*self.by, *self.slice_keys, *more])

    def check_names(self, results: Iterable[str]) -> None:
        """Refuse a result in which two columns would have one name."""
        check_names([*self.key_names(), *results])

    def _check(self, frame: Frame) -> None:
        self._check_slices()
        # The names of the results are known later; what is wrong with those of metrics is wrong in any result.
        self.check_names([])
        if len(set(self.order)) < len(self.order) or any(map(is_pattern, self.order)):
            self.check_names(self.order)
        for expression in self.plain:
            check_columns(expression.meta.root_names(), self.schema)
        for metric in self.metrics:
            check_targets(metric, self.schema, self.columns_of_keys)
        for measure in self.measures:
            check_measure(measure, self.schema, self.columns_of_keys)
            if isinstance(frame, pl.DataFrame):
                check_thresholds(measure, frame)
        check_probabilities(self.measures)
        own = [name for name in (*self.roles.sample, self.roles.label) if name in self.schema]
        check_key_columns(own, self.schema)

    def _check_slices(self) -> None:
        for keys in self.groupings:
            if len(set(keys)) < len(keys):
                raise NameCollisionError(f"{keys[0].name!r} is twice in one slice.")
            for key in keys:
                if key in self.by:
                    raise ParameterError(f"{key.name!r} is already in by=, so it cannot be a slice too.")
                if self.schema[key.column].is_nested():
                    raise ColumnError(f"{key.name!r} is {self.schema[key.column]}: a slice must have a plain value.")


def _each_once(slicings: Iterable[list[KeyColumn]]) -> list[list[KeyColumn]]:
    """Slicings, each of the same columns once: `cube` has those that may be named beside it."""
    found: dict[frozenset[KeyColumn], list[KeyColumn]] = {}
    for keys in slicings:
        found.setdefault(frozenset(keys), keys)
    return list(found.values())


def check_names(names: Sequence[str]) -> None:
    """Refuse names that the columns of a result cannot have together."""
    refused = reserved(names)
    for name in names:
        if name in refused:
            kind = (
                "is a pattern"
                if is_pattern(name)
                else f"begins with {INTERNAL!r}, which is reserved for internal columns"
            )
            raise ParameterError(f"no column of the result can have the name {name!r}: it {kind}. Use .alias(...).")
        if names.count(name) > 1:
            raise NameCollisionError(
                f"two columns of the result would have the name {name!r}: use .alias(...) on one of them."
            )


def listed(keys: Keys | None) -> list[AnyKey]:
    """Keys that may be one, or none, as a list."""
    if keys is None:
        return []
    return [keys] if isinstance(keys, str | pl.Expr | UnreadKey) else list(keys)


def settled(key: AnyKey, frame: pl.DataFrame | None) -> Key:
    """A key as a column or an expression: the values of a DataFrame decide those that are not known yet."""
    if not isinstance(key, UnreadKey):
        return key
    if frame is None:
        raise ParameterError(
            f"{key!r} looks at the values, and a call on a LazyFrame or a state reads none. Pass the edges, or the log "
            f"that decides them: {repr(key).removesuffix(')')}, of=log)."
        )
    return key.of(frame)


class KeyReader:
    """Turns keys, names or expressions, into columns of the rows."""

    def __init__(
        self,
        rows: pl.LazyFrame,
        schema: pl.Schema,
        added: Sequence[pl.Expr] = (),
        keys: Sequence[str] | None = None,
        frame: Frame | None = None,
    ) -> None:
        self._rows = rows
        self._frame = frame if isinstance(frame, pl.DataFrame) else None
        self._schema = schema
        self._known = schema if keys is None else {name: schema[name] for name in keys}
        self._keeps_names = keys is None
        self._of = "in the table" if keys is None else "a by column of the state"
        self.added = list(added)
        self._read: list[tuple[pl.Expr, str]] = []

    def read(self, keys: Keys | None) -> list[KeyColumn]:
        """The columns of one grouping: none for the whole."""
        if keys is None:
            return []
        several = isinstance(keys, Sequence) and not isinstance(keys, str)
        return [self._column(key) for key in (keys if several else [keys])]  # type: ignore[union-attr]

    def rows(self) -> pl.LazyFrame:
        """The rows, with every key as a column."""
        return self._rows.with_columns(self.added) if self.added else self._rows

    def types(self) -> dict[str, pl.DataType]:
        """The types of the added columns."""
        return {_name_of(column): type_of(column, self._schema) for column in self.added}

    def schema(self) -> pl.Schema:
        """The schema of the rows, with every key as a column."""
        return pl.Schema({**self._schema, **self.types()})

    def _column(self, key: Any) -> KeyColumn:
        if isinstance(key, str):
            check_key_columns([key], self._known, of=self._of)
            _check_key([key])
            return KeyColumn(key, key) if self._keeps_names else self._added(key, pl.col(key))
        key = settled(key, self._frame if self._keeps_names else None)
        if not isinstance(key, pl.Expr):
            raise ParameterError(f"a key is a column name or an expression, not {key!r}.")
        check_key_columns(_one_output(key).meta.root_names(), self._known, of=self._of)
        name = key.meta.output_name()
        _check_key([name, *key.meta.root_names()])
        if key.meta.is_column() and self._keeps_names:
            return KeyColumn(name, name)
        if isinstance(key, Metric):
            raise MetricError(f"a key is a column, such as by='model', and {key} is a metric.")
        if not is_row_wise(key):
            raise MetricError(f"a key must be computed row by row, and {key} is not. Add it as a column first.")
        return self._added(name, key)

    def _added(self, name: str, key: pl.Expr) -> KeyColumn:
        # Under a name of its own: an alias may shadow a column that a role still needs. So may a key of a state.
        for known, column in self._read:
            if known.meta.eq(key):
                return KeyColumn(name, column)
        column = f"{INTERNAL}key_{len(self.added)}"
        self._read.append((key, column))
        self.added.append(key.alias(column))
        return KeyColumn(name, column)


def columns_of(keys: Iterable[KeyColumn], added: Sequence[pl.Expr]) -> list[str]:
    """The columns that keys are worked out of, where those that are no columns of the rows are added."""
    worked_out = {_name_of(column): column.meta.root_names() for column in added}
    return [name for key in keys for name in worked_out.get(key.column, [key.column])]


def _check_key(names: Sequence[str]) -> None:
    check_free(names)
    check_no_pattern(names, what="key")


def checked_slices(slices: Sequence[Keys]) -> Sequence[Keys]:
    """The groupings of slices=, or an error where it is one column."""
    if isinstance(slices, str | pl.Expr | UnreadKey) or not isinstance(slices, Sequence):
        raise ParameterError(f"slices takes a list, each entry a column or a list of columns, not {slices!r}.")
    return slices


def _name_of(column: pl.Expr) -> str:
    return column.meta.output_name()


def _one_output(expression: pl.Expr) -> pl.Expr:
    if expression.meta.has_multiple_outputs():
        raise ParameterError(f"{expression} stands for several columns: name them one by one.")
    return expression


def _sorted_out(given: Iterable[Any], roles: Mapping[str, Any]) -> tuple[list[Node], list[pl.Expr], list[str]]:
    metrics: list[Node] = []
    plain, order = [], []
    for metric in flat(given):
        if isinstance(metric, Metric):
            metrics.append(metric.tree.on_the_rest(roles))
            order.append(metric.output_name)
        elif isinstance(metric, pl.Expr):
            plain.append(_aggregating(_one_output(metric)))
            order.append(metric.meta.output_name())
        else:
            raise not_a_metric(metric)
    if not order:
        raise ParameterError("no metric is given: pass at least one, such as f1().")
    return metrics, plain, order


def check_reached(plain: Sequence[pl.Expr], roles: Mapping[str, Any]) -> None:
    """Refuse a plain expression of a metric, which roles that are given do not reach."""
    for expression in plain:
        for metric, bound in metrics_in(expression):
            free = {role: column for role, column in roles.items() if role not in bound}
            if free:
                raise MetricError(
                    f"{expression.meta.output_name()!r} is an expression that contains a metric, so the roles passed "
                    f"to evaluate do not apply to it: bind them first, {metric}{on_shown(free)}."
                )


def _aggregating(expression: pl.Expr) -> pl.Expr:
    if not expression.meta.is_scalar():
        name = expression.meta.output_name()
        raise MetricError(f"{name!r} must return one value per group, e.g. .mean().")
    return expression
