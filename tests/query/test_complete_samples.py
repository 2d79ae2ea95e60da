"""Samples that all models have: where several columns name a sample, and where rows are read in passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.errors import TableError

SAMPLE = ["user", "day"]


@pytest.fixture
def crossed() -> pl.DataFrame:
    """Two models with the same users and the same days, and no user on the day on which the other model has it."""
    rows = pl.DataFrame({"user": range(40), "place": [0, 1] * 20, "score": [0.1, 0.9, 0.8, 0.3] * 10})
    days = {"a": pl.col("place"), "b": 1 - pl.col("place")}
    models = [rows.with_columns(day=day, model=pl.lit(model)) for model, day in days.items()]
    return pl.concat(models).with_columns(label=pl.lit("x"), truth=pl.col("user") % 3 == 0)


def test_a_state_of_pairs_has_no_sample_of_which_each_column_alone_is_on_both_sides(crossed: pl.DataFrame) -> None:
    state = mlm.state(crossed, mlm.accuracy(), by="model", between="model", sample=SAMPLE)
    assert mlm.finish(state, mlm.accuracy(), by="model").is_empty()


def test_rank_has_none(crossed: pl.DataFrame) -> None:
    both = crossed.filter(pl.col("user") < 10).with_columns(day=pl.lit(2))
    ranked = mlm.rank(pl.concat([crossed, both.cast(crossed.schema)]), mlm.accuracy(), sample=SAMPLE)
    assert ranked["n_samples"].to_list() == [10, 10]
    assert ranked["n_left_out"].to_list() == [80, 80]


def test_find_slices_has_none(crossed: pl.DataFrame) -> None:
    with pytest.raises(TableError, match="no sample is on both sides"):
        mlm.find_slices(crossed, mlm.accuracy(), ["place"], baseline="a", sample=SAMPLE)


@pytest.mark.parametrize("passes", [None, 2, 5, "files"])
def test_a_state_of_pairs_in_passes_has_pairs_alone(tmp_path: Path, passes: Any) -> None:
    """A sample counts in all models of its group or in none, whatever its rows are read with."""
    rows = [
        {"model": model, "sample": sample, "label": label, "score": (sample * 7 + place) % 10 / 10, "truth": place == 0}
        for place, model in enumerate(["a", "b", "c"])
        for sample in range(60)
        for label in "xy"
        if (sample + place) % 4
    ]
    log = pl.DataFrame(rows)
    for part in range(3):
        log.filter(pl.col("sample") // 20 == part).write_parquet(tmp_path / f"{part}.parquet")
    metrics = [mlm.accuracy(), mlm.ranking_loss(), mlm.n_rows(), mlm.n_samples()]
    options: dict[str, Any] = {"by": "model", "between": "model", "passes": passes, "progress": False}
    state = mlm.state(pl.scan_parquet(tmp_path), metrics, **options).collect()

    pairs = log.filter(pl.col("model").n_unique().over("sample") == 3)
    assert 0 < pairs.height < log.height
    assert mlm.finish(state, metrics, by="model").rows() == mlm.evaluate(pairs, metrics, by="model").rows()
    compared = mlm.compare(state, mlm.accuracy(), between="model", baseline="a")
    assert compared["n_pairs"].to_list() == [pairs["sample"].n_unique()] * 2
