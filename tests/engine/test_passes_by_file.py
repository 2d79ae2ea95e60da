"""`passes="files"`: each file of a scan by itself gives what all of them give, or is refused."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.support.differing import FEW, LOG, asked, check, differing
from tests.support.refusals import raised

HINT = "Put row-wise expressions into roles, by= and .filter() of metrics; or use passes='auto'."
NO_SCAN = f"passes='files' needs a bare scan of parquet files, without further steps. {HINT}"
NOT_EACH = f"passes='files': read one by one, the files do not give the rows of this scan. {HINT}"
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


@pytest.mark.one_in(3)
@pytest.mark.parametrize("scan", SCANS.values(), ids=SCANS)
def test_file_by_file(scan: Scan, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for options in ({}, {"by": pl.col("model").str.to_uppercase(), "slices": ["country"], "weight": "weight"}):
        assert not differing(asked(scan(folder), FEW, passes="files", **options), asked(LOG, FEW, **options))
    mlm.evaluate(scan(folder), mlm.ndcg(), passes="files").collect()
    assert "pass 3 of 3" in capsys.readouterr().err


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("step", "said"), OF_SCANS.values(), ids=OF_SCANS)
def test_steps_on_a_scan(step: Callable[[pl.LazyFrame], pl.LazyFrame], said: tuple[str, ...], folder: Path) -> None:
    frame = step(pl.scan_parquet([folder / f"{i}.parquet" for i in range(3)]))
    check(frame, FEW, by="model", counts=[3, "auto"])
    assert raised(mlm.ParameterError, lambda: mlm.evaluate(frame, FEW, passes="files").collect()) in said


@pytest.mark.parametrize(("scan", "said"), NO_SCANS.values(), ids=NO_SCANS)
def test_scans_that_are_no_files_or_more(scan: Scan, said: str, folder: Path) -> None:
    check(scan(folder), FEW, counts=[3])
    assert raised(mlm.ParameterError, lambda: mlm.evaluate(scan(folder), FEW, passes="files").collect()) == said


# -- the scan that was given is the one that is read -------------------------------------------------------------------


def test_the_options_of_a_scan_hold_for_each_file(tmp_path: Path) -> None:
    """Types that are cast, columns that may be missing, and a key of a folder that goes over a column of that name."""
    for i in range(3):
        part = LOG.filter(pl.col("sample").fill_null(0) % 3 == i).with_columns(part=pl.lit("in the file"))
        if i:
            part = part.cast({"score": pl.Float32}).drop("weight")
        part.write_parquet(tmp_path / f"part={i}" / "rows.parquet", mkdir=True)
    frame = pl.scan_parquet(
        tmp_path, missing_columns="insert", cast_options=pl.ScanCastOptions(float_cast="upcast"), hive_partitioning=True
    )
    assert frame.select(pl.col("part").unique().sort()).collect()["part"].to_list() == ["0", "1", "2"]
    for options in ({"by": "part"}, {"by": ["part", "model"], "weight": "weight"}):
        assert not differing(asked(frame, FEW, passes="files", **options), asked(frame, FEW, **options))


def test_a_key_of_folders_can_be_asked_for(folder: Path) -> None:
    frame = pl.scan_parquet(folder / "hive")
    days = [pl.read_parquet(folder / f"{day}.parquet").with_columns(day=pl.lit(day, pl.Int64)) for day in range(3)]
    told = asked(frame, FEW, passes="files", by="day")
    assert not differing(told, asked(pl.concat(days), FEW, by="day"))


def test_state_and_check_read_file_by_file_too(folder: Path) -> None:
    frame = pl.scan_parquet(folder / "hive")
    finished = mlm.finish(mlm.state(frame, mlm.ndcg(), by="day", passes="files", progress=False), mlm.ndcg(), by="day")
    assert not differing(finished.collect(), mlm.evaluate(frame, mlm.ndcg(), by="day").collect())
    found = [mlm.check(frame, passes=passes, progress=False).drop("examples") for passes in ("files", None)]
    assert found[0].equals(found[1])  # of many examples a few are shown, from the part that has them first


def test_files_without_rows_are_parts_too(tmp_path: Path) -> None:
    for i, rows in enumerate([LOG.head(0), LOG, LOG.head(0)]):
        rows.write_parquet(tmp_path / f"{i}.parquet")
    frame = pl.scan_parquet(tmp_path)
    assert not differing(asked(frame, FEW, passes="files"), asked(LOG, FEW))


CHANGES: dict[str, Callable[[Path], Any]] = {
    "more rows": lambda folder: LOG.head(50).write_parquet(folder / "1.parquet"),
    "fewer rows": lambda folder: LOG.head(5).write_parquet(folder / "0.parquet"),
    "rows that moved": lambda folder: (folder / "0.parquet").rename(folder / "9.parquet"),
    "a new file": lambda folder: LOG.head(7).write_parquet(folder / "00.parquet"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_files_that_change_meanwhile_are_an_error_or_not_seen(change: Callable[[Path], Any], tmp_path: Path) -> None:
    """Never rows that were cut apart where no file ends."""
    for i in range(3):
        LOG.filter(pl.col("sample") % 3 == i).write_parquet(tmp_path / f"{i}.parquet")
    frame = pl.scan_parquet(tmp_path)
    before = asked(frame, FEW)
    table = mlm.evaluate(frame, FEW, passes="files", progress=False)
    change(tmp_path)
    with suppress(mlm.FileError, FileNotFoundError):
        assert not differing(table.collect(), before)


def test_a_file_of_more_rows_than_there_were_is_named(tmp_path: Path) -> None:
    def write(name: int, rows: int) -> None:
        file = pl.DataFrame({"sample": [name] * rows, "score": [0.5] * rows, "truth": [1] * rows})
        file.write_parquet(tmp_path / f"{name}.parquet")

    for name in range(3):
        write(name, 20)
    table = mlm.evaluate(pl.scan_parquet(tmp_path), mlm.n_samples(), passes="files", progress=False)
    assert table.collect().item() == 3
    write(1, 21)
    with pytest.raises(mlm.FileError, match=r"1\.parquet has changed while passes='files' read it: run it again\.$"):
        table.collect()


URL = "http://user:word@127.0.0.1:1/log.parquet?sig=secret"


def test_remote_files_are_refused_by_name_and_not_asked_for_in_another_way() -> None:
    frame = pl.scan_parquet(URL, schema=LOG.schema, glob=False, storage_options={"max_retries": 0})
    assert raised(mlm.ParameterError, mlm.evaluate, frame, mlm.f1(), passes="files") == (
        "passes='files' reads local files only, and http://…@127.0.0.1:1/log.parquet?… is remote: use passes='auto', "
        "which reads remote files too."
    )
