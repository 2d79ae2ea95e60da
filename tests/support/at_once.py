"""Several metrics by the two readings of the package, which must agree: asked at once, which is quicker."""

from collections.abc import Iterable
from typing import Any

import polars as pl

import polars_mlmetrics as mlm
from tests.laws.oracle import Value
from tests.support.readings import same


def each_by(frame: pl.DataFrame, metrics: Iterable[mlm.Metric], by: str | None, **roles: Any) -> dict[Any, list[Value]]:
    """The values of several metrics in each group."""
    asked = [metric.on(**roles).alias(f"{place} {metric.output_name}") for place, metric in enumerate(metrics)]
    inline = frame.select(pl.lit(None).alias("group"), *asked) if by is None else frame.group_by(by).agg(asked)
    staged = mlm.evaluate(frame, asked, by=[] if by is None else by)
    found = {key: values for key, *values in inline.rows()}
    assert len(found) == inline.height == staged.height
    for key, *values in [(None, *row) for row in staged.rows()] if by is None else staged.rows():
        for metric, one, other in zip(asked, found[key], values, strict=True):
            assert same(one, other), f"{metric.output_name} of {key}: expression {one!r}, evaluate {other!r}"
    return found


def each(frame: pl.DataFrame, metrics: Iterable[mlm.Metric], **roles: Any) -> list[Value]:
    """The values of several metrics on a frame."""
    return each_by(frame, metrics, None, **roles)[None]
