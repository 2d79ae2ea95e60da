"""What a verb is asked, of a log or of a state: the query, and the intervals that are wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import polars as pl

from polars_mlmetrics.analysis.bounds import normal_quantile, t_quantile
from polars_mlmetrics.data.frames import Frame, Names, check_frame
from polars_mlmetrics.data.roles import checked_roles
from polars_mlmetrics.engine.folds import BUCKET
from polars_mlmetrics.engine.replicates import WITHOUT
from polars_mlmetrics.engine.sources import Source
from polars_mlmetrics.engine.state import Contents, is_state
from polars_mlmetrics.engine.state_rows import StateRows
from polars_mlmetrics.errors import ColumnError, ParameterError, StateError, TableError, some
from polars_mlmetrics.query.buckets import BUCKETS, buckets_of
from polars_mlmetrics.query.query import KEYWORDS, Keys, Query
from polars_mlmetrics.query.source import slices_of, source_of
from polars_mlmetrics.query.written import metrics_of, shown
from polars_mlmetrics.states.state import check_sources

Level = float | Literal["bootstrap"]
"""A level of confidence; or "bootstrap", for intervals between values of buckets that are drawn with replacement."""

OF_DRAWS = 0.95
"""The level of the intervals of draws."""

MOST_SHOWN = 4
"""How many metrics of a state an error names."""


@dataclass(frozen=True)
class Confidence:
    """What intervals are asked for."""

    level: float
    buckets: int
    """How many there are."""
    cluster: Sequence[str]
    """The columns that they are made of."""
    are_whole: bool = True
    """Whether each cluster is known to be in one bucket, whole."""
    is_bootstrap: bool = False
    """Whether the ends are those of draws."""

    @classmethod
    def of(cls, ci: Level, buckets: int, cluster: Sequence[str], *, are_whole: bool = True) -> Confidence:
        """What is asked for, of buckets."""
        level = OF_DRAWS if isinstance(ci, str) else ci
        return cls(level, buckets, cluster, are_whole, is_bootstrap=isinstance(ci, str))

    @property
    def z(self) -> float:
        """The quantile of a normal distribution."""
        return normal_quantile(self.level)

    def quantiles(self) -> pl.Series:
        """Those of Student's t, by the number of buckets that tell something; null where that is below two."""
        quantiles = [t_quantile(self.level, df) for df in range(1, self.buckets)]
        return pl.Series([None, None, *quantiles], dtype=pl.Float64)


def check_number(caller: str, ci: Any) -> None:
    """Refuse what is no number: differences have no intervals without one, and draws would mislead about them."""
    if ci is None or isinstance(ci, str):
        raise ParameterError(f"{caller} takes a number between 0 and 1 as ci, such as 0.95, not {ci!r}.")


def check_level(ci: Any, cluster: Names) -> None:
    """Refuse what is no level of confidence."""
    if ci is None and cluster is not None:
        raise ParameterError("cluster= is for intervals: pass ci= too, such as ci=0.95.")
    if ci is None or ci == "bootstrap":
        return
    if isinstance(ci, str):
        raise ParameterError(f"ci must be a number between 0 and 1, such as 0.95, or 'bootstrap', not {ci!r}.")
    if isinstance(ci, bool) or not isinstance(ci, int | float) or not 0 < ci < 1:
        raise ParameterError(f"ci must be a number between 0 and 1, such as 0.95, not {ci!r}.")


class Question(NamedTuple):
    """A query, the source that it is answered from, and the intervals that are wanted."""

    query: Query
    source: Source
    confidence: Confidence | None

    @classmethod
    def read(
        cls,
        frame: Frame,
        metrics: Sequence[Any],
        by: Keys | None,
        slices: Sequence[Keys] | None,
        ci: Level | None,
        cluster: Names,
        roles: Mapping[str, Any],
    ) -> Question:
        """Understand what is asked of a log or of a state."""
        check_frame(frame)
        if is_state(frame.lazy().collect_schema()):
            check_no_roles(cluster, roles)
            return cls(*of_state(frame, metrics, by, slices, ci))
        query, confidence = of_log(frame, metrics, by, slices, ci, cluster, roles)
        more = [] if confidence is None else [WITHOUT]
        return cls(query, slices_of(query, source_of(query, None), more), confidence)


def check_no_roles(cluster: Names, roles: Mapping[str, Any]) -> None:
    """Refuse what a state has decided."""
    given = [*roles, *(["cluster"] if cluster is not None else [])]
    if given:
        raise ParameterError(f"{given[0]}= cannot be given for a state: it has what it was made with.")


def of_log(
    frame: Frame,
    metrics: Sequence[Any],
    by: Keys | None,
    slices: Sequence[Keys] | None,
    ci: Level | None,
    cluster: Names,
    roles: Mapping[str, Any],
) -> tuple[Query, Confidence | None]:
    """The query of a log; where intervals are wanted, its rows say in which bucket they are."""
    check_frame(frame)
    if is_state(frame.collect_schema()):
        raise StateError("this is a state, which has no rows of a log: finish works out metrics from it.")
    confidence, added = confidence_of(frame, ci, cluster, roles)
    return Query.read(frame, metrics, by, slices, roles, added=added), confidence


def confidence_of(
    frame: Frame, ci: Level | None, cluster: Names, roles: Mapping[str, Any]
) -> tuple[Confidence | None, list[pl.Expr]]:
    """What intervals are asked for of a log, and the columns that its rows need for them: the bucket of each."""
    check_level(ci, cluster)
    if ci is None:
        return None, []
    sample = checked_roles(roles, others=KEYWORDS).table.sample
    schema = frame.lazy().collect_schema()
    buckets = buckets_of(schema, sample, cluster, BUCKETS)
    if buckets is None:
        lacking = next(column for column in sample if column not in schema)
        raise ColumnError(
            f"intervals need samples, and there is no sample column {lacking!r}: pass sample=, or cluster= for the "
            "column that says which rows depend on one another. If each row is a sample of its own, add a column: "
            ".with_row_index('sample')."
        )
    return Confidence.of(ci, BUCKETS, buckets.said["cluster"]), [buckets.bucket.alias(WITHOUT)]


def check_clusters(query: Query) -> None:
    """Refuse clusters that cut through samples into which a metric looks: a part of a sample has another value."""
    samples = {measure.table.sample: measure for measure in query.measures if measure.probe.looks_at_samples}
    for sample, measure in samples.items():
        keys, bucket = list(dict.fromkeys([*(key.column for key in query.by), *sample])), pl.col(WITHOUT)
        rows = query.rows.filter(pl.col(column).is_not_null() for column in sample)
        cut = rows.group_by(keys).agg(bucket.min() != bucket.max()).select(pl.col(WITHOUT).any())
        if cut.collect().item():
            raise TableError(
                f"cluster= has several values in one sample, and {measure.output_name} looks into samples: a cluster "
                "must hold them whole."
            )


def of_state(
    frame: Frame, metrics: Sequence[Any], by: Keys | None, slices: Sequence[Keys] | None, ci: Level | None
) -> tuple[Query, StateRows, Confidence | None]:
    """The query of a state, and its rows; where intervals are wanted, by bucket."""
    check_frame(frame)
    schema = frame.lazy().collect_schema()
    contents = Contents.of(schema)
    check_sources(frame)
    by_columns = {name: schema[name] for name in contents.by}
    # Of labels the very type is known.
    labels = {} if contents.label is None else {contents.label: schema["label"]}
    log = pl.Schema({**by_columns, **contents.log(), **labels})
    held = contents.held(frame.lazy())
    asked = metrics or metrics_of(contents.metrics)
    query = Query.read(held.held, asked, by, slices, contents.roles, log=log, keys=contents.by)
    if query.plain:
        raise StateError(
            f"{query.plain_names[0]!r} is a plain expression: a state has no rows. Use `evaluate` on the log."
        )
    source = replace(held, schema=query.schema, added=query.added, made_for=lambda: _made_for(contents))
    return (query, source, None) if ci is None else (query, _by_bucket(source), _confidence(ci, contents))


def _made_for(contents: Contents) -> str:
    """The first metrics that a state was made for, and its roles."""
    metrics = some(map(shown, contents.metrics.values()), MOST_SHOWN)
    roles = {**contents.roles, "sample": "+".join(contents.roles["sample"])}
    return f"{metrics}, with {', '.join(f'{role}={column}' for role, column in roles.items())}"


def _by_bucket(source: StateRows) -> StateRows:
    """A state whose buckets can be a key."""
    schema = pl.Schema({**source.schema, WITHOUT: pl.Int64()})
    return replace(source, schema=schema, added=[*source.added, pl.col(BUCKET).alias(WITHOUT)])


def _confidence(ci: Level, contents: Contents) -> Confidence:
    """What intervals can be made from the buckets of a state."""
    check_level(ci, None)
    if contents.buckets is None:
        raise StateError("this state has no buckets, so it has no intervals: make it with buckets=64 and its samples.")
    # Two versions of Polars put a cluster that has rows in two states into two buckets.
    are_whole = contents.buckets["hash"] != "polars" or contents.buckets["polars"] is not None
    return Confidence.of(ci, contents.buckets["count"], contents.buckets["cluster"], are_whole=are_whole)
