"""A query put to a frame: which metrics, in which groups. Read and checked against the schema before any work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import polars as pl

from polars_mlmetrics.data.door import check_columns, check_key_columns
from polars_mlmetrics.data.expressions import is_pattern, reserved
from polars_mlmetrics.data.frames import Frame, is_at_hand, schema_of
from polars_mlmetrics.data.roles import Bound, Table, checked_roles
from polars_mlmetrics.engine.buckets import NumberedClusters
from polars_mlmetrics.engine.list_slices import for_each_value
from polars_mlmetrics.engine.plan import ReadFormulas
from polars_mlmetrics.engine.replicates import WITHOUT, WITHOUT_COARSE
from polars_mlmetrics.errors import INTERNAL, ColumnError, MetricError, NameCollisionError, ParameterError, typed
from polars_mlmetrics.formula.measure import Measure, Node, on_shown
from polars_mlmetrics.formula.metric import Metric, metrics_in
from polars_mlmetrics.query.keys import (
    KeyColumn,
    KeyReader,
    Keys,
    checked_slices,
    columns_of,
    each_once,
    keys_of_lists,
    one_output,
)
from polars_mlmetrics.query.requirements import check_measure, check_probabilities, check_targets, check_thresholds
from polars_mlmetrics.query.verb import Verb, flat, not_a_metric

OF_CLUSTERS = WITHOUT, WITHOUT_COARSE
"""The columns of rows for their buckets."""


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
    lists: Mapping[str, str]
    """The list columns of which each value is a slice, by the keys of these values."""
    holds_rows: bool = True
    """Whether Polars is to hold rows that are more than a scan."""
    clusters: NumberedClusters | None = None
    """The clusters of intervals, where each has a bucket if these are few."""
    with_sides: Callable[[pl.LazyFrame], pl.LazyFrame] | None = None
    """A function that makes of the rows those of both sides of a change."""
    code: pl.Expr | None = None
    """A number of each group in place of its keys, once these are columns."""

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
        sets = None if slices is None else each_once(reader.read(key) for key in checked_slices(slices))
        lists, of_values = keys_of_lists(sets or [], reader.schema()) if verb.takes_lists else ({}, {})
        sets = sets and [[lists.get(key, key) for key in keys] for keys in sets]
        types = reader.types() if clusters is None else reader.types() | dict.fromkeys(OF_CLUSTERS, pl.Int64())
        schema = pl.Schema({**(schema if log is None else log), **types, **of_values})
        n_rows = frame.height if isinstance(frame, pl.DataFrame) and log is None else None
        query = cls(
            rows,
            reader.added,
            schema,
            metrics,
            plain,
            order,
            by_columns,
            sets,
            bound,
            n_rows,
            {key.column: column for (_, column), key in lists.items()},
            clusters=clusters,
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

    def of_metrics(self, metrics: list[Node]) -> Query:
        """The same query of some of its metrics, and of the same rows: those that Polars holds it holds once."""
        query = replace(self, metrics=metrics, order=[metric.output_name for metric in metrics])
        vars(query)["rows"] = self.rows
        return query

    def rows_for(self, by: Sequence[str]) -> pl.LazyFrame:
        """The rows for groups by these keys: once for each value, where one is a value of a list."""
        return for_each_value(self.rows, {key: column for key, column in self.lists.items() if key in by})

    def with_keys(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Rows of the frame, with every key as a column."""
        rows = rows.with_columns(self.added) if self.added else rows
        rows = rows if self.code is None else rows.with_columns(self.code)
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
        keys = [key._replace(column=self.lists.get(key.column, key.column)) for key in self.slice_keys]
        return columns_of([*self.by, *keys], self.added)

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

    def types_of_units(self) -> list[pl.DataType]:
        """The types of the columns that tell groups, labels and samples apart, each that is there."""
        names = [key.column for key in (*self.by, *self.slice_keys)]
        for measure in self.measures:
            names += [measure.table.label, *measure.table.sample]
        return [self.schema[name] for name in dict.fromkeys(names) if name in self.schema]

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
                    raise ParameterError(f"{key.name!r} is already in {typed('by')}, so it cannot be a slice too.")
                check_plain(key, self.schema)


def check_plain(key: KeyColumn, schema: pl.Schema) -> None:
    """Refuse a slice whose values have no words."""
    if schema[key.column].is_nested():
        raise ColumnError(f"{key.name!r} is {schema[key.column]}: a slice must have a plain value.")


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


def _sorted_out(given: Iterable[Any], roles: Mapping[str, Any]) -> tuple[list[Node], list[pl.Expr], list[str]]:
    metrics: list[Node] = []
    plain, order = [], []
    for metric in flat(given):
        if isinstance(metric, Metric):
            metrics.append(metric.tree.on_the_rest(roles))
            order.append(metric.output_name)
        elif isinstance(metric, pl.Expr):
            plain.append(_aggregating(one_output(metric)))
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
