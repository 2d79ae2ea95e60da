"""A verb reads the schema of a frame once: of files in a store each read may be a request."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm

LOG = pl.DataFrame({"model": ["a", "b"], "sample": [1, 2], "country": ["x", "y"], "score": [0.1, 0.9], "truth": [1, 0]})
STATE = mlm.state(LOG, mlm.f1(), mlm.roc_auc(bins=4), by=["model", "country"], buckets=8)
CALLS: dict[str, Callable[[pl.LazyFrame], Any]] = {
    "evaluate": lambda log: mlm.evaluate(log, mlm.log_loss(), by="model"),
    "evaluate by an expression": lambda log: mlm.evaluate(
        log, mlm.log_loss(), by=pl.col("model").str.to_uppercase(), tidy=True
    ),
    "evaluate with slices and intervals": lambda log: mlm.evaluate(
        log, mlm.log_loss(), by="model", slices=["country"], ci=0.9
    ),
    "evaluate per sample": lambda log: mlm.evaluate(log, mlm.mse(), per="sample", slices=["country"]),
    "evaluate in passes": lambda log: mlm.evaluate(log, mlm.mse(), slices=["country"], passes=2, progress=False),
    "compare in passes": lambda log: mlm.compare(log, mlm.mse(), baseline="a", passes=2, progress=False),
    "worst in passes": lambda log: mlm.worst(log, mlm.mse(), by="model", passes=2, progress=False),
    "rank in passes": lambda log: mlm.rank(log, mlm.mse(), slices=["country"], passes=2, progress=False),
    "flips in passes": lambda log: mlm.flips(log, mlm.mse(), baseline="a", passes=2, progress=False),
    "decompose in passes": lambda log: mlm.decompose(
        log, mlm.mse(), over="country", between="model", baseline="a", passes=2, progress=False
    ),
    "drift in passes": lambda log: mlm.drift(log, between="model", baseline="a", passes=2, progress=False),
    "confusion in passes": lambda log: mlm.confusion(log, label="country", passes=2, progress=False),
    "curve in passes": lambda log: mlm.curve(log, "threshold", mlm.f1(), bins=4, ci=0.9, passes=2, progress=False),
    "best_threshold in passes": lambda log: mlm.best_threshold(log, mlm.f1(), bins=4, passes=2, progress=False),
    "gap": lambda log: mlm.gap(log, mlm.log_loss(), over="country"),
    "rank": lambda log: mlm.rank(log, mlm.log_loss(), slices=["country"]),
    "decompose": lambda log: mlm.decompose(log, mlm.log_loss(), over="country", between="model", baseline="a"),
    "compare": lambda log: mlm.compare(log, mlm.log_loss(), baseline="a", slices=["country"]),
    "drift": lambda log: mlm.drift(log, between="model", baseline="a", slices=["country"], weight=pl.col("score") * 2),
    "flips": lambda log: mlm.flips(log, mlm.log_loss(), baseline="a"),
    "worst": lambda log: mlm.worst(log, mlm.log_loss(), by="model", slices=["country"], keep="score"),
    "confusion of classes": lambda log: mlm.confusion(log, by="model", score="truth", ci=0.9),
    "confusion of a threshold": lambda log: mlm.confusion(log, by="model", threshold=0.5, ci=0.9),
    "curve": lambda log: mlm.curve(log, "roc", by="model", slices=["country"]),
    "curve of a metric": lambda log: mlm.curve(log, "threshold", mlm.f1(), ci=0.9),
    "best_threshold": lambda log: mlm.best_threshold(log, mlm.f1(), where=pl.col("score") > 0),
    "best_threshold with folds": lambda log: mlm.best_threshold(log, mlm.f1(), folds=2),
    "state": lambda log: mlm.state(log, mlm.f1(), by="model", buckets=8),
    "dedupe": lambda log: mlm.dedupe(log, keep="first", by="model"),
    "check": lambda log: mlm.check(log, by="model"),
    "profile": lambda log: mlm.profile(log, by="model"),
}
CALLS_OF_STATES: dict[str, Callable[[pl.LazyFrame], Any]] = {
    "finish": lambda state: mlm.finish(state, mlm.f1(), by="model", slices=["country"], ci=0.9),
    "gap of a state": lambda state: mlm.gap(state, mlm.f1(), over="country"),
    "rank of a state": lambda state: mlm.rank(state, mlm.f1()),
    "decompose of a state": lambda state: mlm.decompose(state, mlm.f1(), over="country", between="model", baseline="a"),
    "compare of a state": lambda state: mlm.compare(state, mlm.f1(), baseline="a"),
    "curve of a state": lambda state: mlm.curve(state, "roc", by="model"),
    "best_threshold of a state with folds": lambda state: mlm.best_threshold(state, mlm.f1(), folds=2),
    "best_threshold of a state": lambda state: mlm.best_threshold(state, mlm.f1(), where=pl.col("country") == "x"),
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
def test_the_schema_of_a_log_is_read_once(name: str, more: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = LOG.lazy().filter(pl.col("score") > 0) if more else LOG.lazy()
    with counted(rows, monkeypatch) as found:
        CALLS[name](rows)
    assert len(found) == 1


@pytest.mark.parametrize("name", CALLS_OF_STATES)
def test_the_schema_of_a_state_is_read_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    state = STATE.lazy()
    with counted(state, monkeypatch) as found:
        CALLS_OF_STATES[name](state)
    assert len(found) == 1
