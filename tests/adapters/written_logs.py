"""A log as files of every format."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.adapters.scan import scan
from tests.support.refusals import raised

FORMATS = ["parquet", "ipc", "csv", "ndjson"]


every_format = pytest.mark.parametrize("kind", FORMATS)


def write(name: str, kind: str | None = None, **columns: Any) -> None:
    """Write columns to a file, in the format of its suffix or in the one given."""
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        getattr(pl.DataFrame(columns), f"write_{kind or path.suffix[1:]}")(file)


def total(source: Any, **options: Any) -> int:
    """The sum of x: the files of these tests hold powers of 2 or of 10, so that it tells which were read."""
    return scan(source, **options).select(pl.col("x").sum()).collect().item()


def rows(source: Any, **options: Any) -> list[tuple[Any, ...]]:
    return sorted(scan(source, **options).collect().rows(), key=repr)


def refused(source: Any, said: str, **options: Any) -> None:
    assert raised(mlm.FileError, scan, source, **options) == said
