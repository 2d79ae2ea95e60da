"""The folder of a Delta table as a log: the rows of one version, and no others."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from deltalake import DeltaTable
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from tests.support.tables import LOG, ROWS

KEYS = ["sample", "label"]
METRICS = [mlm.ranking_loss(), mlm.f1(), mlm.roc_auc()]
WRITTEN = [datetime(2026, 3, day, tzinfo=UTC) for day in (1, 2, 3)]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Of three versions: other rows, the rows of a log, and these without a sample."""
    LOG.with_columns(score=1 - pl.col("score")).write_delta(
        tmp_path / "log", delta_write_options={"partition_by": "label"}
    )
    LOG.write_delta(tmp_path / "log", mode="overwrite")
    DeltaTable(tmp_path / "log").delete("sample = 3")
    return tmp_path / "log"


@pytest.mark.parametrize("as_given", [str, Path])
def test_its_newest_version(table: Path, as_given: Any) -> None:
    rows = mlm.scan(as_given(table))
    assert_frame_equal(
        rows.collect().sort(KEYS), LOG.filter(pl.col("sample") != 3).sort(KEYS), check_column_order=False
    )
    expected = LOG.filter(pl.col("sample") != 3).mlm.evaluate(METRICS)
    for passes in (None, 2, "auto"):
        assert_frame_equal(rows.mlm.evaluate(METRICS, passes=passes, progress=False).collect(), expected)
    assert_frame_equal(rows.mlm.state(mlm.f1()).mlm.finish(mlm.f1()).collect(), expected.select("f1"))


@pytest.mark.parametrize("version", [1, WRITTEN[1].isoformat(), (WRITTEN[2] - timedelta(seconds=1)).isoformat()])
def test_an_older_version(table: Path, version: int | str) -> None:
    for number, time in enumerate(WRITTEN):  # Delta takes the time of this file for that of the version
        os.utime(table / "_delta_log" / f"{number:020}.json", (time.timestamp(), time.timestamp()))
    rows = mlm.scan(table, version=version).collect()
    assert_frame_equal(rows.sort(KEYS), LOG.sort(KEYS), check_column_order=False)


def test_it_stays_lazy(table: Path) -> None:
    plan = mlm.scan(table).filter(pl.col("label") == "x").select(mlm.n_rows()).explain()
    assert "label=x" in plan
    assert "label=y" not in plan  # whose files are not read


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"version": 9}, "cannot be read in version 9"),
        ({"version": "yesterday"}, "cannot be read in version 'yesterday'"),
        ({"version": 1.5}, "version is the number of a version, or a time, not 1.5"),
        ({"version": True}, "version is the number of a version, or a time, not True"),
        ({"format": "parquet"}, "apply to files only: this is a Delta table"),
        ({"missing": "null"}, "apply to files only: this is a Delta table"),
    ],
)
def test_what_is_refused(table: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(mlm.MetricError, match=said):
        mlm.scan(table, **options)


def test_a_version_of_what_has_none(tmp_path: Path) -> None:
    LOG.write_parquet(tmp_path / "log.parquet")
    with pytest.raises(mlm.ParameterError, match="version= applies to a table of Delta or Iceberg, and this is none"):
        mlm.scan(tmp_path / "log.parquet", version=1)
    with pytest.raises(mlm.ParameterError, match="apply to files only: this source is a table"):
        mlm.scan(pl.DataFrame(ROWS), version=1)
