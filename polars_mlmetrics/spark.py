"""Spark: states of the partitions of a DataFrame, or of parquet files, joined here.

What is sent out is the plan of a state as bytes, and code that needs Polars and pyarrow and not this package. What
comes back is one cell of bytes for each partition.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from typing import Any, NamedTuple, Unpack

import polars as pl

from polars_mlmetrics.analysis import evaluate as here
from polars_mlmetrics.analysis.finish import finish
from polars_mlmetrics.data.frames import Names
from polars_mlmetrics.data.roles import Roles
from polars_mlmetrics.engine.buckets import BUCKETS
from polars_mlmetrics.engine.contents import check_once
from polars_mlmetrics.engine.plan import Plan
from polars_mlmetrics.errors import (
    ColumnError,
    FileError,
    MetricError,
    ParameterError,
    StateError,
    at_callers_line,
    hides_values,
)
from polars_mlmetrics.formula.over_targets import OverTargets
from polars_mlmetrics.metrics.decisions import n_samples
from polars_mlmetrics.places.finding import found_files
from polars_mlmetrics.places.fingerprints import fingerprints_of, name_in
from polars_mlmetrics.query.keys import AnyKey, Keys, listed, settled
from polars_mlmetrics.query.query import Query
from polars_mlmetrics.query.question import Level, Question
from polars_mlmetrics.query.results import names_of, stacked
from polars_mlmetrics.query.source import source_of
from polars_mlmetrics.states.executors import checked, on_files, on_rows
from polars_mlmetrics.states.fold import ROWS, Fold
from polars_mlmetrics.states.partial import Ask, partial, plan_without_rows, whole_in
from polars_mlmetrics.states.state import compact, join_states, with_sources

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql import functions as sf
    from pyspark.sql.pandas.types import to_arrow_type
except ImportError as error:
    raise ImportError(f"{error}: pip install 'polars-mlmetrics[spark]'") from error

CELLS = "place string, number int, problem string, state binary"
"""The columns that come back: the partition, the fold, the problem there, and the state."""

REMOTE = "Read it with Spark: mlm.spark.evaluate(spark.read.parquet(url), ...)."


@at_callers_line
def state(
    log: Any,
    *metrics: pl.Expr | Sequence[pl.Expr],
    by: Keys | None = None,
    buckets: int = BUCKETS,
    cluster: Names = None,
    whole_samples: bool = False,
    **roles: Unpack[Roles],
) -> pl.DataFrame:
    """Fold a log in Spark into a state, as `polars_mlmetrics.state` does here.

    Parameters
    ----------
    log
        A Spark DataFrame (classic or Connect). Or parquet files that every executor has under the same path: a path, a
        folder, a pattern or a list of them; Polars then reads them there.
    *metrics, by, buckets, cluster, **roles
        As in `state`. A timestamp is in UTC, whatever the time zone of the session.
    whole_samples
        Whether all rows of a sample are in one partition, or one file, already. If not, and a metric looks into
        samples, the rows of a DataFrame are moved so that it is so; files are refused.
    """
    source = _source_of(log)
    [found] = source.states([SparkJob(metrics, by, buckets, cluster, roles)], whole=whole_samples)
    return found


@at_callers_line
def evaluate(
    log: Any,
    *metrics: pl.Expr | Sequence[pl.Expr],
    by: Keys | None = None,
    slices: Sequence[Keys] | None = None,
    min_samples: int | None = None,
    tidy: bool = False,
    ci: Level | None = None,
    cluster: Names = None,
    whole_samples: bool = False,
    **roles: Unpack[Roles],
) -> pl.DataFrame:
    """Work out metrics of a log in Spark, as `polars_mlmetrics.evaluate` does here.

    What needs all rows of a group at once (exact curves, medians, plain expressions) needs by= with a column of a
    DataFrame: then the rows of each of its values are moved to one partition, and worked out there. A tidy table has
    `n_samples` if a metric looks into samples, and no `n_split`.

    Parameters
    ----------
    log, whole_samples
        As in `state`.
    *metrics, by, slices, min_samples, tidy, ci, cluster, **roles
        As in `polars_mlmetrics.evaluate`.
    """
    source = _source_of(log)
    empty = pl.LazyFrame(schema=source.schema)
    query = Question.read(here.EVALUATE, empty, metrics, by, slices, ci=ci, cluster=cluster, roles=roles).query
    columns = names_of(query.order, tidy=tidy, ci=ci is not None)
    query.check_names(columns)
    options: dict[str, Any] = {"min_samples": min_samples, "tidy": tidy, "ci": ci}
    lone = _does_not_merge(query)
    if lone is None:
        asked = SparkJob(metrics, by, 0 if ci is None else BUCKETS, cluster, roles)
        table_of = _of_states(source, query, asked, slices, options, whole=whole_samples)
        return stacked(query, table_of, columns).collect()

    def ask(rows: pl.LazyFrame) -> pl.LazyFrame:
        return here.evaluate(rows, *metrics, by=by, slices=slices, cluster=cluster, **options, **roles)

    table = pl.concat(source.of_whole_groups(ask, query, lone))
    table = table.sort([key.name for key in query.by], maintain_order=True)
    # Samples that lie in groups of two partitions too are known to none of them.
    return table.with_columns(pl.lit(None, table.schema["n_split"]).alias("n_split")) if tidy else table


def _does_not_merge(query: Query) -> str | None:
    """The first of what needs all rows of a group at once."""
    plan = Plan(source_of(query, None), [], query.readings)
    names = [*query.plain_names, *(metric.output_name for metric in query.metrics if not plan.merges(metric))]
    return names[0] if names else None


def _of_states(
    source: _Rows | _Files,
    query: Query,
    asked: SparkJob,
    slices: Sequence[Keys] | None,
    options: Mapping[str, Any],
    *,
    whole: bool,
) -> Callable[[list[str]], pl.LazyFrame]:
    """The table of each grouping, of one state for each: a sample in several slices is a unit of its own in each."""
    groupings = [[], *(listed(keys) for keys in slices or () if listed(keys))]
    keys_of = [_as_keys([*listed(asked.by), *keys]) for keys in groupings]
    counts = [] if options["min_samples"] is None else [n_samples().alias("samples of a group")]
    metrics, targets = [*asked.metrics, *counts], _targets(query)
    states = source.states([asked._replace(metrics=metrics, by=[*keys, *targets]) for keys in keys_of], whole=whole)
    found = {tuple(key.column for key in keys): place for place, keys in enumerate(query.groupings)}

    def of_grouping(by: list[str]) -> pl.LazyFrame:
        place = found[tuple(by[len(query.by) :])]
        names = [key.meta.output_name() for key in keys_of[place]]
        table = finish(states[place], *asked.metrics, by=names, **options)
        return table.lazy().rename(dict(zip(names, by, strict=True)))

    return of_grouping


def _as_keys(keys: Sequence[AnyKey]) -> list[pl.Expr]:
    """Keys under names that a state can have, whatever their own."""
    columns = [pl.col(key) if isinstance(key, str) else key for key in (settled(each, None) for each in keys)]
    return [column.alias(f"key {place}") for place, column in enumerate(columns)]


def _targets(query: Query) -> list[str]:
    """The columns of targets, which a state must have as keys; of labels it has them anyway."""
    means = [mean for metric in query.metrics for mean in metric.walk() if isinstance(mean, OverTargets)]
    named = [mean for mean in means if any(m.table.label != mean.column for m in mean.measures())]
    return list(dict.fromkeys(mean.column for mean in named))


class SparkJob(NamedTuple):
    """A state that is asked for."""

    metrics: Sequence[Any]
    by: Keys | None
    buckets: int
    cluster: Names
    roles: Mapping[str, Any]

    def fold(self, schema: pl.Schema) -> Fold:
        """It as a fold."""
        return partial(schema, *self.metrics, by=self.by, buckets=self.buckets, cluster=self.cluster, **self.roles)


def _source_of(log: Any) -> _Rows | _Files:
    if isinstance(log, DataFrame):
        return _Rows(log)
    if isinstance(log, str | os.PathLike | list | tuple):
        return _Files([file.path.absolute().as_posix() for file in found_files(log, instead=REMOTE)])
    raise ParameterError(
        f"mlm.spark takes a Spark DataFrame or paths, not a {type(log).__name__}: for a Polars frame use mlm.evaluate."
    )


# -- a DataFrame -------------------------------------------------------------------------------------------------------


class _Rows:
    """The rows of a Spark DataFrame."""

    def __init__(self, log: DataFrame) -> None:
        self._log = log
        self._types = _arrow_types(log)
        # A type that Arrow lacks is not one to ask for; other columns can be read.
        readable = pa.schema([(name, dtype) for name, dtype in self._types.items() if dtype is not None])
        known = pl.DataFrame(readable.empty_table()).schema
        self.schema = pl.Schema({name: known.get(name, pl.Object()) for name in self._types})

    def states(self, asked: Sequence[SparkJob], *, whole: bool) -> list[pl.DataFrame]:
        folds = [each.fold(self.schema) for each in asked]
        rows, read = self._rows(folds, whole=whole)
        cells = self._run(rows, read, [(fold.plan, fold.place) for fold in folds])
        return [join_states(cells.get(number, []), fold.empty) for number, fold in enumerate(folds)]

    def _rows(self, folds: Sequence[Fold], *, whole: bool) -> tuple[DataFrame, list[str]]:
        """The columns that are read, and the samples whole in partitions where that is needed."""
        read = list(dict.fromkeys(name for fold in folds for name in fold.columns))
        rows, split = self._columns(read), whole_in([fold.whole for fold in folds if fold.whole])
        return rows.repartition(self._place_of_samples(split, read)) if split and not whole else rows, read

    def of_whole_groups(self, ask: Ask, query: Query, lone: str) -> list[pl.DataFrame]:
        """The answers to a question about rows, of each partition, into which groups are moved whole."""
        added = {expression.meta.output_name() for expression in query.added}
        # Where the rows of one country lie together, so do those of one country and day.
        keys = [key.column for key in query.by if key.column not in added and self._can_hash(key.column)]
        if not keys:
            raise StateError(
                f"{lone!r} needs all rows of a group together. Spark can move them together by a column of the "
                "DataFrame, so pass by= with one: log.withColumn(...) makes a column of an expression."
            )
        plan, place, columns, empty = plan_without_rows(self.schema, ask)
        read = list(dict.fromkeys([*columns, *keys]))
        rows = self._columns(read).repartition(sf.xxhash64(*map(self._named, keys)))
        cells = self._run(rows, read, [(plan, place)])
        return [pl.read_ipc(BytesIO(cell)) for cell in [empty, *cells.get(0, [])]]

    def _named(self, name: str) -> str:
        """The name of a column by its place: Spark takes a dot in a name for a path, and capitals for small letters."""
        return f"c{list(self._types).index(name)}"

    def _columns(self, read: Sequence[str]) -> DataFrame:
        return self._log.toDF(*map(self._named, self._types)).select(*map(self._named, read))

    def _place_of_samples(self, sample: Sequence[str], read: Sequence[str]) -> Column:
        """Where the rows of a sample are moved to."""
        columns = [sf.col(self._named(name)) for name in sample]
        known = sf.lit(True)
        for column in columns:
            known = known & column.isNotNull()
        # Rows without a sample are of none: together they would be one partition. A hash is the same at a second try.
        anywhere = sf.xxhash64(*(self._named(name) for name in read if self._can_hash(name)))
        return sf.when(known, sf.xxhash64(*columns)).otherwise(anywhere)

    def _run(self, rows: DataFrame, read: Sequence[str], plans: list[tuple[bytes, str]]) -> dict[int, list[bytes]]:
        target = pa.schema([(name, self._types[name]) for name in read])
        return _cells(rows.mapInArrow(checked(on_rows(plans, target, ROWS), pl.__version__), CELLS))

    def _can_hash(self, name: str) -> bool:
        return not pa.types.is_nested(self._types[name])


def _arrow_types(log: DataFrame) -> dict[str, pa.DataType | None]:
    """The types in which the columns of a DataFrame come; None where Arrow has none."""
    types: dict[str, pa.DataType | None] = {}
    for column in log.schema.fields:
        if column.name in types:
            raise ColumnError(f"two columns of this DataFrame have the name {column.name!r}: rename one of them.")
        try:
            types[column.name] = to_arrow_type(column.dataType, timezone="UTC")
        except Exception:  # noqa: BLE001 - pyspark has one class for this in each of its parts
            types[column.name] = None
    return types


# -- files -------------------------------------------------------------------------------------------------------------


class _Files:
    """The rows of parquet files that every executor can read."""

    def __init__(self, paths: list[str]) -> None:
        self._paths = paths
        self._scan = pl.scan_parquet(paths, glob=False)
        self.schema = self._scan.collect_schema()

    def of_whole_groups(self, ask: Ask, query: Query, lone: str) -> list[pl.DataFrame]:
        raise StateError(
            f"{lone!r} needs all rows of a group together, and they may be in several files: pass the DataFrame, "
            "spark.read.parquet(...)."
        )

    def states(self, asked: Sequence[SparkJob], *, whole: bool) -> list[pl.DataFrame]:
        session = SparkSession.active()
        folds = [each.fold(self.schema) for each in asked]
        split = whole_in([fold.whole for fold in folds if fold.whole])
        if split and not whole:
            raise StateError(
                f"these metrics look into samples, and the rows of one {'+'.join(split)} may be in several files: pass "
                "whole_samples=True if they are not, or the DataFrame: spark.read.parquet(...)."
            )
        self._check_times({name for fold in folds for name in fold.columns})
        sources = fingerprints_of(self._scan)
        check_once((source, name_in(source)) for source in sources)
        count = min(len(self._paths), int(str(session.conf.get("spark.sql.shuffle.partitions"))))
        parts = [self._paths[place::count] for place in range(count)]
        columns = list(dict.fromkeys(name for fold in folds for name in fold.columns))
        run = on_files(parts, columns, [(fold.plan, fold.place) for fold in folds], ROWS)
        cells = _cells(session.range(0, count, 1, count).mapInArrow(checked(run, pl.__version__), CELLS))
        states = [join_states(cells.get(number, []), fold.empty).lazy() for number, fold in enumerate(folds)]
        return [compact(with_sources(state, sources)).collect() for state in states]

    def _check_times(self, read: set[str]) -> None:
        for path in self._paths:
            schema = pq.ParquetFile(path).schema
            for place in range(len(schema)):
                column = schema.column(place)
                if column.path in read and column.physical_type == "INT96":
                    raise FileError(
                        f"{path} has {column.path!r} as INT96, which says nothing of its time zone. Pass the "
                        "DataFrame, spark.read.parquet(...), or write the files again with "
                        "spark.sql.parquet.outputTimestampType set to TIMESTAMP_MICROS."
                    )


def _cells(table: DataFrame) -> dict[int, list[bytes]]:
    """The states that have come back, by the number of their fold."""
    found: dict[int, list[bytes]] = {}
    for row in table.collect():
        if row["problem"] is not None:
            problem = row["problem"].partition(":")[0] if hides_values() else row["problem"]
            raise MetricError(f"{row['place']}: {problem}")
        found.setdefault(row["number"], []).append(bytes(row["state"]))
    return found
