"""What `find_slices` is asked: read, and refused where it cannot be answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from polars_mlmetrics.analysis.confidence import Confidence
from polars_mlmetrics.analysis.features import type_of
from polars_mlmetrics.analysis.question import check_clusters, of_log
from polars_mlmetrics.data.bare_scan import is_at_hand
from polars_mlmetrics.data.differing import to_hold
from polars_mlmetrics.data.door import check_columns
from polars_mlmetrics.data.frames import Frame, Names, column_names
from polars_mlmetrics.data.roles import check_free, checked_roles
from polars_mlmetrics.engine.plan import Plan
from polars_mlmetrics.engine.sources import Rows
from polars_mlmetrics.errors import ColumnError, MetricError, ParameterError
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.formula.tree import WITHOUT_INTERVAL
from polars_mlmetrics.query.query import Keys, Query

LEVEL = 0.95
"""The level of the intervals."""


def query_of(
    frame: Frame,
    metric: Metric,
    by: Keys | None,
    cluster: Names,
    roles: Mapping[str, Any],
    *,
    reads_now: bool,
) -> tuple[Query, Confidence]:
    """The query of a log, and the intervals that are wanted; what cannot be searched is refused."""
    schema = frame.lazy().collect_schema()
    check_free(schema)
    lacking = [column for column in checked_roles(roles).table.sample if column not in schema]
    if lacking:
        raise ColumnError(
            f"find_slices needs samples, and there is no sample column {lacking[0]!r}: pass sample=, or, if each row "
            "is a sample, add .with_row_index('sample')."
        )
    rows = frame if not reads_now or is_at_hand(frame.lazy()) else to_hold(frame.lazy()).collect()
    query, confidence = of_log(rows, [metric], by, None, LEVEL, cluster, roles)
    assert confidence is not None
    check_query(query)
    if cluster is not None:
        check_clusters(query)
    return query, confidence


def check_query(query: Query) -> None:
    """Refuse a metric without intervals."""
    (core,) = query.metrics
    plan = Plan(Rows(query.rows, query.roles.label, query.schema), [], query.readings)
    if core.interval_kind in WITHOUT_INTERVAL or not plan.merges(core):
        raise MetricError(
            f"{core.output_name} has no intervals, so its slices cannot be told from noise: choose another metric, or "
            "of a curve the one with bins=."
        )


def sign_of(metric: Metric, worse: Any) -> int:
    """1 where low values are bad, -1 where high ones are."""
    if worse not in ("low", "high", None):
        raise ParameterError(f"worse is 'low' or 'high', not {worse!r}.")
    if worse is None and metric.best is None:
        raise MetricError(f"{metric.output_name} has no direction: pass worse='low' or worse='high'.")
    return 1 if worse == "low" or (worse is None and metric.best == "max") else -1


def names_of(features: Any) -> list[str]:
    """The names of the features."""
    if isinstance(features, pl.Expr) or (not isinstance(features, str) and any(_are_expressions(features))):
        raise ParameterError("features are names of columns: add an expression as a column first.")
    names = column_names("features", features)
    if not names:
        raise ParameterError("find_slices needs features: pass a column or a list of columns.")
    return names


def check_features(query: Query, names: Sequence[str]) -> None:
    """Refuse columns that cannot be features."""
    check_columns(names, query.schema, what="feature")
    tables = [query.roles, *(measure.table for measure in query.measures)]
    grains = {grain for measure in query.measures for grain in (measure.grain, *measure.probe.looks_into)}
    taken = dict.fromkeys((*query.columns_of_keys, *(key.name for key in query.by)), "in by=")
    for table in tables:
        taken |= dict.fromkeys(table.score.meta.root_names(), "the score")
        taken |= dict.fromkeys(table.truth.meta.root_names(), "the truth")
        taken |= dict.fromkeys(table.sample, "the sample")
        if grains != {"group"}:
            taken[table.label] = f"the label, of which {query.metrics[0].output_name} needs all"
    for name in names:
        if name in taken:
            raise ParameterError(f"{name!r} cannot be a feature: it is {taken[name]}.")
        type_of(name, query.schema[name])


def _are_expressions(features: Any) -> list[bool]:
    return [isinstance(each, pl.Expr) for each in features] if isinstance(features, Sequence) else []
