"""A call on a LazyFrame reads the schema of its log, and no row before the answer is collected."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import polars_mlmetrics as mlm

PLACE = pl.int_range(600)
LOG = pl.select(
    model=pl.when(PLACE % 2 == 0).then(pl.lit("old")).otherwise(pl.lit("new")),
    sample=PLACE // 6,
    label=PLACE // 2 % 3,
    country=PLACE % 5,
    day=PLACE % 7,
    score=PLACE * 37 % 101 / 101,
    truth=PLACE // 2 % 2,
)

SLICES = ["country", ["country", "day"], "day"]
CALLS: dict[str, Callable[[pl.LazyFrame], pl.LazyFrame]] = {
    "evaluate": lambda log: mlm.evaluate(log, mlm.f1(), mlm.ndcg(), by="model", slices=SLICES, ci=0.9, tidy=True),
    "evaluate in passes": lambda log: mlm.evaluate(log, mlm.ndcg(), slices=SLICES, passes=3, progress=False),
    "evaluate per sample": lambda log: mlm.evaluate(log, mlm.ndcg(), by="model", slices=SLICES, per="sample"),
    "worst": lambda log: mlm.worst(log, mlm.ndcg(), k=3, by="model", slices=SLICES, keep="country"),
    "flips": lambda log: mlm.flips(log, mlm.ndcg(), baseline="old", slices=SLICES),
    "compare": lambda log: mlm.compare(log, mlm.f1(), baseline="old", slices=SLICES),
    "gap": lambda log: mlm.gap(log, mlm.f1(), over="country", by="model"),
    "confusion": lambda log: mlm.confusion(log, by="model"),
    "curve": lambda log: mlm.curve(log, "roc", by="model", slices=SLICES),
    "state": lambda log: mlm.state(log, mlm.f1(), by=["model", "country"]),
    "a namespace": lambda log: log.mlm.evaluate(mlm.f1(), slices=SLICES),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_lazy_call_reads_no_row(name: str, tmp_path: Path) -> None:
    sound, broken = tmp_path / "sound.parquet", tmp_path / "broken.parquet"
    LOG.write_parquet(sound)
    data = sound.read_bytes()
    footer = int.from_bytes(data[-8:-4], "little") + 8
    broken.write_bytes(data[:4] + bytes(len(data) - footer - 4) + data[-footer:])
    answer = CALLS[name](pl.scan_parquet(broken))
    with pytest.raises(pl.exceptions.PolarsError):
        answer.collect()
    assert CALLS[name](pl.scan_parquet(sound)).collect().schema == answer.collect_schema()
