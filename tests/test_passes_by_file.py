"""`passes="files"`: each file of a scan by itself gives what all of them give, or is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.test_passes import LOG, METRICS, asked, check, differing

HINT = "Steps row by row go into roles, by and filters; or use passes='auto', which takes any lazy frame."
NO_SCAN = f"passes='files' takes a scan of parquet files, with nothing done to it. {HINT}"
NOT_EACH = f"passes='files': the files do not hold, one by one, what this scan gives. {HINT}"
Scan = Callable[[Path], Any]
SCANS: dict[str, Scan] = {
    "pattern": lambda folder: pl.scan_parquet(folder / "*.parquet"),
    "list": lambda folder: pl.scan_parquet([folder / f"{i}.parquet" for i in (2, 0, 1)]),
    "folder": lambda folder: pl.scan_parquet(folder / "alone"),
    "odd names": lambda folder: pl.scan_parquet([folder / "alone" / f"[{i}]*.parquet" for i in range(3)], glob=False),
    "hive": lambda folder: pl.scan_parquet(folder / "hive"),
    "row_index_name": lambda folder: pl.scan_parquet(folder / "*.parquet", row_index_name="i"),
    "with_row_index": lambda folder: pl.scan_parquet(folder / "*.parquet").with_row_index(),
    "include_file_paths": lambda folder: pl.scan_parquet(folder / "*.parquet", include_file_paths="path"),
    "url": lambda folder: pl.scan_parquet(f"file://{folder}/*.parquet"),
}
OF_SCANS: dict[str, tuple[Callable[[pl.LazyFrame], pl.LazyFrame], tuple[str, ...]]] = {
    "head": (lambda rows: rows.head(50), (NO_SCAN, NOT_EACH)),
    "sorted": (lambda rows: rows.sort("score", "other").tail(50), (NO_SCAN,)),
    "above the mean": (lambda rows: rows.filter(pl.col("score") > pl.col("score").mean()), (NO_SCAN,)),
    "filter": (lambda rows: rows.filter(pl.col("score") < float("inf")), (NO_SCAN, NOT_EACH)),
    "with_columns": (lambda rows: rows.with_columns(score=pl.col("score") * 2), (NO_SCAN,)),
    "join": (lambda rows: rows.join(pl.LazyFrame({"model": ["x", "y"], "kind": [1, 2]}), on="model"), (NO_SCAN,)),
    "unique": (lambda rows: rows.unique("label", keep="first", maintain_order=True), (NO_SCAN,)),
    "Python": (lambda rows: rows.map_batches(lambda frame: frame), (NO_SCAN,)),
    "two scans": (lambda rows: pl.concat([rows, rows]), (NO_SCAN,)),
    "DataFrame": (lambda rows: rows.collect().lazy(), (NO_SCAN,)),
}
NO_SCANS: dict[str, tuple[Scan, str]] = {
    "csv": (lambda folder: pl.scan_csv(folder / "*.csv"), NO_SCAN),
    "ipc": (lambda folder: pl.scan_ipc(folder / "*.arrow"), NO_SCAN),
    "ndjson": (lambda folder: pl.scan_ndjson(folder / "*.ndjson"), NO_SCAN),
    "n_rows": (lambda folder: pl.scan_parquet(folder / "*.parquet", n_rows=300), NOT_EACH),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log in three files of each format, no sample in two of them."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "alone").mkdir()
    for i, file in enumerate(LOG.with_columns(part=pl.col("sample").fill_null(0) % 3).partition_by("part")):
        rows = file.drop("part")
        rows.write_parquet(folder / f"{i}.parquet")
        rows.write_parquet(folder / "alone" / f"[{i}]*.parquet")
        rows.write_parquet(folder / "hive" / f"day={i}" / "rows.parquet", mkdir=True)
        rows.write_ipc(folder / f"{i}.arrow")
        rows.write_csv(folder / f"{i}.csv")
        rows.write_ndjson(folder / f"{i}.ndjson")
    (folder / "alone" / "_SUCCESS").touch()
    return folder


@pytest.mark.parametrize("scan", SCANS.values(), ids=SCANS)
def test_file_by_file(scan: Scan, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for options in ({}, {"by": pl.col("model").str.to_uppercase(), "slices": ["country"], "weight": "weight"}):
        assert not differing(asked(scan(folder), METRICS, passes="files", **options), asked(LOG, METRICS, **options))
    mlm.evaluate(scan(folder), METRICS, passes="files").collect()
    assert "pass 3 of 3" in capsys.readouterr().err


@pytest.mark.parametrize(("step", "said"), OF_SCANS.values(), ids=OF_SCANS)
def test_steps_on_a_scan(step: Callable[[pl.LazyFrame], pl.LazyFrame], said: tuple[str, ...], folder: Path) -> None:
    frame = step(pl.scan_parquet([folder / f"{i}.parquet" for i in range(3)]))
    check(frame, METRICS, by="model", counts=[3, "auto"])
    with pytest.raises(mlm.ParameterError) as caught:
        mlm.evaluate(frame, METRICS, passes="files").collect()
    assert str(caught.value) in said


@pytest.mark.parametrize(("scan", "said"), NO_SCANS.values(), ids=NO_SCANS)
def test_scans_that_are_no_files_or_more(scan: Scan, said: str, folder: Path) -> None:
    check(scan(folder), METRICS, counts=[3])
    with pytest.raises(mlm.ParameterError) as caught:
        mlm.evaluate(scan(folder), METRICS, passes="files").collect()
    assert str(caught.value) == said
