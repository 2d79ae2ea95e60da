"""A call on a LazyFrame reads the schema of its rows, and none of them before the answer is collected."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import polars_mlmetrics as mlm

PLACE = pl.int_range(600)
LOG = pl.select(
    model=pl.when(PLACE < 300).then(pl.lit("old")).otherwise(pl.lit("new")),
    sample=PLACE % 300 // 3,
    label=PLACE % 3,
    country=PLACE % 300 // 3 % 5,
    day=PLACE % 7,
    score=PLACE * 37 % 101 / 101,
    truth=(PLACE % 3 == PLACE // 3 % 3).cast(pl.Int8),
)
STATE = mlm.state(LOG, mlm.f1(), mlm.roc_auc(bins=16), by=["model", "country"], buckets=64)

SLICES = ["country", ["country", "day"], "day"]
CALLS: dict[str, Callable[[pl.LazyFrame], pl.LazyFrame]] = {
    "evaluate": lambda log: mlm.evaluate(log, mlm.f1(), mlm.ndcg(), by="model", slices=SLICES, ci=0.9, tidy=True),
    "evaluate of labels": lambda log: mlm.evaluate(log, mlm.f1(average="macro"), by="model", slices=SLICES),
    "evaluate per label": lambda log: mlm.evaluate(log, mlm.f1(), by="model", slices=SLICES, per="label"),
    "evaluate per sample": lambda log: mlm.evaluate(log, mlm.ndcg(), by="model", slices=SLICES, per="sample"),
    "evaluate in passes": lambda log: mlm.evaluate(log, mlm.ndcg(), slices=SLICES, passes=3, progress=False),
    "classification_report": lambda log: mlm.classification_report(log, by="model", ci=0.9),
    "worst": lambda log: mlm.worst(log, mlm.ndcg(), k=3, by="model", slices=SLICES, keep="score"),
    "flips": lambda log: mlm.flips(log, mlm.ndcg(), baseline="old", slices=SLICES),
    "compare": lambda log: mlm.compare(log, mlm.f1(), baseline="old", slices=SLICES),
    "worst in passes": lambda log: mlm.worst(log, mlm.ndcg(), k=3, by="model", passes=3, progress=False),
    "compare in passes": lambda log: mlm.compare(
        log, mlm.f1(), baseline="old", slices=SLICES, passes=3, progress=False
    ),
    "gap in passes": lambda log: mlm.gap(log, mlm.ndcg(), over="country", by="model", passes=3, progress=False),
    "rank in passes": lambda log: mlm.rank(log, mlm.ndcg(), slices=SLICES, passes=3, progress=False),
    "flips in passes": lambda log: mlm.flips(log, mlm.ndcg(), baseline="old", slices=SLICES, passes=3, progress=False),
    "decompose in passes": lambda log: mlm.decompose(
        log, mlm.f1(), over="country", between="model", baseline="old", passes=3, progress=False
    ),
    "drift in passes": lambda log: mlm.drift(
        log, between="model", baseline="old", by="label", passes=3, progress=False
    ),
    "classification_report in passes": lambda log: mlm.classification_report(
        log, by="model", threshold="argmax", passes=3, progress=False
    ),
    "confusion in passes": lambda log: mlm.confusion(log, by="model", ci=0.9, passes=3, progress=False),
    "curve in passes": lambda log: mlm.curve(
        log, "threshold", mlm.f1(average="macro"), slices=SLICES, bins=8, passes=3, progress=False
    ),
    "best_threshold in passes": lambda log: mlm.best_threshold(
        log, mlm.f1(average="macro"), bins=8, folds=2, passes=3, progress=False
    ),
    "drift": lambda log: mlm.drift(log, between="model", baseline="old", by="label", slices=["country"]),
    "gap": lambda log: mlm.gap(log, mlm.f1(), over="country", by="model"),
    "gap of several metrics": lambda log: mlm.gap(log, [mlm.f1(), mlm.recall()], over="country", by="model"),
    "rank": lambda log: mlm.rank(log, mlm.f1(), slices=SLICES),
    "decompose": lambda log: mlm.decompose(log, mlm.f1(), over="country", between="model", baseline="old"),
    "confusion of classes": lambda log: mlm.confusion(log, by="model", ci=0.9),
    "confusion of a threshold": lambda log: mlm.confusion(log, by="model", threshold=0.5, ci=0.9, cluster="country"),
    "curve": lambda log: mlm.curve(log, "roc", by="model", slices=SLICES),
    "curve of a metric": lambda log: mlm.curve(log, "threshold", mlm.f1(), slices=SLICES, ci=0.9),
    "calibration": lambda log: mlm.curve(log, "calibration", slices=SLICES, ci=0.9),
    "scores": lambda log: mlm.curve(log, "scores", slices=SLICES),
    "best_threshold with folds": lambda log: mlm.best_threshold(log, mlm.f1(), folds=2),
    "best_threshold": lambda log: mlm.best_threshold(log, mlm.f1(), per="label", where=pl.col("day") > 0),
    "state": lambda log: mlm.state(log, mlm.f1(), by=["model", "country"], buckets=64),
    "state in passes": lambda log: mlm.state(log, mlm.ndcg(), by="model", passes=2, progress=False),
    "dedupe": lambda log: mlm.dedupe(log, keep="first", by="model"),
    "the namespace": lambda log: log.mlm.evaluate(mlm.f1(), slices=SLICES),
}
CALLS_OF_STATES: dict[str, Callable[[pl.LazyFrame], pl.LazyFrame]] = {
    "finish": lambda state: mlm.finish(state, mlm.f1(), by="model", slices=["country"], ci=0.9),
    "compare states": lambda state: mlm.compare(state, mlm.f1(), baseline="old", by="country"),
    "gap of a state": lambda state: mlm.gap(state, mlm.f1(), over="country"),
    "rank of a state": lambda state: mlm.rank(state, mlm.f1(), slices=["country"]),
    "decompose a state": lambda state: mlm.decompose(
        state, mlm.roc_auc(bins=16), over="country", between="model", baseline="old"
    ),
    "curve of a state": lambda state: mlm.curve(state, "roc", by="model"),
    "compact": mlm.compact,
    "plain": mlm.plain,
}


def reads_no_row(call: Callable[[pl.LazyFrame], pl.LazyFrame], table: pl.DataFrame, folder: Path) -> bool:
    """Whether a call gives its plan for a file whose columns can be known, and whose rows cannot be read."""
    sound, broken = folder / "sound.parquet", folder / "broken.parquet"
    table.write_parquet(sound)
    data = sound.read_bytes()
    footer = int.from_bytes(data[-8:-4], "little") + 8
    broken.write_bytes(data[:4] + bytes(len(data) - footer - 4) + data[-footer:])
    try:
        answer = call(pl.scan_parquet(broken))
    except pl.exceptions.PolarsError:
        return False
    with pytest.raises(pl.exceptions.PolarsError):
        answer.collect()
    assert call(pl.scan_parquet(sound)).collect().schema == answer.collect_schema()
    return True


@pytest.mark.parametrize("name", CALLS)
def test_a_lazy_call_reads_no_row(name: str, tmp_path: Path) -> None:
    assert reads_no_row(CALLS[name], LOG, tmp_path)


@pytest.mark.parametrize("name", CALLS_OF_STATES)
def test_a_lazy_call_reads_no_row_of_a_state(name: str, tmp_path: Path) -> None:
    assert reads_no_row(CALLS_OF_STATES[name], STATE, tmp_path)


def test_a_call_that_reads_is_noticed(tmp_path: Path) -> None:
    assert not reads_no_row(lambda log: log.collect().lazy(), LOG, tmp_path)
