"""`finish`: metrics from a state, as `evaluate` gives them from the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from polars_mlmetrics.analysis.evaluate import settled, unsettled
from polars_mlmetrics.analysis.intervals import Confidence, check_level
from polars_mlmetrics.data.frames import AnyFrame, as_given, check_frame
from polars_mlmetrics.data.roles import Grain
from polars_mlmetrics.engine.folds import BUCKET
from polars_mlmetrics.engine.replicates import WITHOUT
from polars_mlmetrics.engine.state import Contents
from polars_mlmetrics.engine.state_rows import StateRows
from polars_mlmetrics.errors import StateError
from polars_mlmetrics.query.query import Keys, Query
from polars_mlmetrics.query.written import metrics_of
from polars_mlmetrics.states.state import check_sources


def finish(
    frame: AnyFrame,
    *metrics: pl.Expr | Sequence[pl.Expr],
    by: Keys | None = None,
    slices: Sequence[Keys] | None = None,
    per: Grain | None = None,
    min_samples: int | None = None,
    tidy: bool = False,
    ci: float | None = None,
) -> AnyFrame:
    """Work out metrics from a state: what `evaluate` gives of the rows that it was made of.

    The state may be filtered by its by columns before. Roles are those that the state was made with.

    Parameters
    ----------
    frame
        A state, or several, one under the other.
    *metrics
        Metrics whose statistics the state holds, one by one or in lists. None gives those that it was made for.
    by, slices
        By columns of the state, or expressions of these. A metric that looks into samples is null where a group takes
        together what samples have several values of.
    per
        "label" stops before averaging.
    min_samples, tidy, ci
        As in `evaluate`. Intervals are made from the buckets of the state; a cluster is what it was made with.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> log = pl.DataFrame({"sample": [1, 2, 3], "day": ["06-30", "07-01", "07-02"], "score": [0.9, 0.2, 0.4],
    ...                     "truth": [1, 0, 1]})
    >>> days = mlm.state(log, mlm.accuracy(), by="day")
    >>> mlm.finish(days, mlm.accuracy(), by=pl.col("day").str.head(2).alias("month"))
    shape: (2, 2)
    ┌───────┬──────────┐
    │ month ┆ accuracy │
    │ ---   ┆ ---      │
    │ str   ┆ f64      │
    ╞═══════╪══════════╡
    │ 06    ┆ 1.0      │
    │ 07    ┆ 0.5      │
    └───────┴──────────┘
    """
    check_frame(frame)
    schema = frame.lazy().collect_schema()
    contents = Contents.of(schema)
    check_sources(frame)
    if per == "sample":
        raise StateError("a state has no samples: use `evaluate` for values per sample.")
    by_columns = {name: schema[name] for name in contents.by}
    # Of labels the very type is known.
    labels = {} if contents.label is None else {contents.label: schema["label"]}
    log = pl.Schema({**by_columns, **contents.log(), **labels})
    held = contents.held(frame.lazy())
    query = Query.read(
        held.held, metrics or metrics_of(contents.metrics), by, slices, contents.roles, log=log, keys=contents.by
    )
    if query.plain:
        raise StateError(
            f"{query.plain_names[0]!r} is a plain expression: a state has no rows. Use `evaluate` on the log."
        )

    confidence = None if ci is None else _confidence(ci, contents)
    source = replace(held, schema=query.schema, added=query.added)
    if confidence is not None:
        source = _by_bucket(source)
    if per is None:
        table = settled(query, source, min_samples, confidence, tidy=tidy)
    else:
        table = unsettled(query, source, per, min_samples, confidence, tidy=tidy)
    return as_given(frame, table)


def _by_bucket(source: StateRows) -> StateRows:
    """A state whose buckets can be a key."""
    schema = pl.Schema({**source.schema, WITHOUT: pl.Int64()})
    return replace(source, schema=schema, added=[*source.added, pl.col(BUCKET).alias(WITHOUT)])


def _confidence(ci: float, contents: Contents) -> Confidence:
    """What intervals can be made from the buckets of a state."""
    check_level(ci, None)
    if contents.buckets is None:
        raise StateError("this state has no buckets, so it has no intervals: make it with buckets=64 and its samples.")
    # Two versions of Polars put a cluster that has rows in two states into two buckets.
    are_whole = contents.buckets["hash"] != "polars" or contents.buckets["polars"] is not None
    return Confidence(ci, contents.buckets["count"], contents.buckets["cluster"], are_whole)
