"""A verb reads the schema of a frame once: of files in a store each read may be a request."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm

LOG = pl.DataFrame({"model": ["a", "b"], "sample": [1, 2], "country": ["x", "y"], "score": [0.1, 0.9], "truth": [1, 0]})
CALLS: dict[str, tuple[Callable[..., pl.LazyFrame], dict[str, Any]]] = {
    "evaluate": (mlm.evaluate, {"by": "model"}),
    "evaluate by an expression": (mlm.evaluate, {"by": pl.col("model").str.to_uppercase(), "tidy": True}),
    "evaluate with slices and intervals": (mlm.evaluate, {"by": "model", "slices": ["country"], "ci": 0.9}),
    "gap": (mlm.gap, {"over": "country"}),
}


@contextmanager
def counted(rows: pl.LazyFrame, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[pl.Schema]]:
    """How often the schema of these rows is read: an entry for each time."""
    found: list[pl.Schema] = []
    read = pl.LazyFrame.collect_schema

    def collect_schema(self: pl.LazyFrame) -> pl.Schema:
        schema = read(self)
        if self is rows:
            found.append(schema)
        return schema

    with monkeypatch.context() as patch:
        patch.setattr(pl.LazyFrame, "collect_schema", collect_schema)
        yield found


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("more", [False, True], ids=["bare", "filtered"])
def test_the_schema_of_a_frame_is_read_once(name: str, more: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    verb, options = CALLS[name]
    rows = LOG.lazy().filter(pl.col("score") > 0) if more else LOG.lazy()
    with counted(rows, monkeypatch) as found:
        verb(rows, mlm.log_loss(), **options)
    assert len(found) == 1
