"""Shapes that become the long table, lists of labels and scores among them."""

import re
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm

INF = float("inf")

LISTS = {"score": pl.List(pl.Float64), "truth": pl.List(pl.Int64)}
LISTS |= dict.fromkeys(["label", "true"], pl.List(pl.String))

both_frames = pytest.mark.parametrize("as_frame", [pl.DataFrame, pl.LazyFrame])


def refused(error: type[mlm.MetricError], said: str, shape: Callable[..., Any], *given: Any, **more: Any) -> None:
    with pytest.raises(error, match=re.escape(said)):
        shape(*given, **more)


def rows(frame: pl.DataFrame | pl.LazyFrame) -> list[tuple[Any, ...]]:
    return frame.lazy().collect().rows()


def lists(**columns: list[Any]) -> pl.DataFrame:
    return pl.DataFrame(columns, schema={name: LISTS[name] for name in columns})
