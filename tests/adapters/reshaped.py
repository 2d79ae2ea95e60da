"""Shapes that become the long table."""

import re
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm

both_frames = pytest.mark.parametrize("as_frame", [pl.DataFrame, pl.LazyFrame])


def refused(error: type[mlm.MetricError], said: str, shape: Callable[..., Any], *given: Any, **more: Any) -> None:
    with pytest.raises(error, match=re.escape(said)):
        shape(*given, **more)


def rows(frame: pl.DataFrame | pl.LazyFrame) -> list[tuple[Any, ...]]:
    return frame.lazy().collect().rows()
