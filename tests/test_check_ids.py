"""`check` of ids that the files tell apart, and that became one number when they were read."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.io.plugins import register_io_source
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from tests.check_cases import CLEAN, check, row_of, told

PROBLEM = "ids_made_one"
IDS = ["001", "01", "1", "2", "030"]


def write_csv(path: Path, ids: list[Any], separator: str = ",") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    of_ids = [
        CLEAN.head(2).with_columns(pl.lit(each).alias("sample"), score=0.1 + 0.1 * i) for i, each in enumerate(ids)
    ]
    pl.concat(of_ids).write_csv(path, quote_style="never", separator=separator)
    return path


def write_folders(path: Path, folders: list[str]) -> Path:
    for i, folder in enumerate(folders):
        CLEAN.with_columns(pl.col("sample") + 10 * i).write_parquet(path / folder / "part.parquet", mkdir=True)
    return path


def is_skipped(frame: Any, **asked: Any) -> bool:
    table = check(frame, skipped=True, **asked)
    return PROBLEM in table.filter(severity="skipped")["problem"].to_list()


def mended(line: str, log: pl.LazyFrame, **asked: Any) -> pl.DataFrame:
    """The log after a line, as a reader would run it."""
    names: dict[str, Any] = {"log": log, "mlm": mlm, "pl": pl}
    exec(line, names)
    rows: pl.DataFrame = names["log"].collect()
    assert told(names["log"], **asked).keys() <= told(log, **asked).keys() - {PROBLEM}
    return rows


@pytest.mark.parametrize("passes", [None, "auto", 2])
@pytest.mark.parametrize("scan", [pl.scan_csv, mlm.scan])
def test_ids_of_csv_that_became_one(scan: Any, passes: Any, tmp_path: Path) -> None:
    log = scan(write_csv(tmp_path / "log.csv", IDS))
    row = row_of(PROBLEM, log, passes=passes)
    assert (row["severity"], row["count"], row["share"], row["of"]) == ("error", 6, 0.6, "rows")
    assert row["examples"] == ["sample=001 and 1"]
    assert row["meaning"].startswith("'sample' was read as a number")


def test_the_line_of_csv_mends_it_and_nothing_else(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "log.csv", IDS)
    log = pl.scan_csv(path)
    assert "duplicate" in told(log)
    after = mended(row_of(PROBLEM, log)["fix"], log)
    assert after["sample"].unique(maintain_order=True).to_list() == IDS
    assert_frame_equal(after.drop("sample"), log.drop("sample").collect())
    assert "duplicate" not in told(after)


def test_the_line_keeps_the_options_of_the_scan(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "log.csv", IDS, separator=";")
    told_too = {"score": pl.Float32, "truth": pl.String}
    log = pl.scan_csv(path, separator=";", comment_prefix="#", null_values=["0"], schema_overrides=told_too)
    line = row_of(PROBLEM, log)["fix"]
    assert "separator=';'" in line
    assert "comment_prefix='#'" in line
    assert "null_values=['0']" in line
    assert_frame_equal(mended(line, log).drop("sample"), log.drop("sample").collect())


def test_ids_of_several_files_and_names_that_look_like_patterns(tmp_path: Path) -> None:
    write_csv(tmp_path / "a[1].csv", ["1", "2"])
    write_csv(tmp_path / "b.csv", ["01", "3"])
    log = mlm.scan(tmp_path)
    assert row_of(PROBLEM, log)["count"] == 4
    assert mended(row_of(PROBLEM, log)["fix"], log)["sample"].n_unique() == 4


def test_of_many_files_the_line_has_a_hole(tmp_path: Path) -> None:
    for i in range(6):
        write_csv(tmp_path / f"{i}.csv", [str(i), f"0{i}"])
    log = mlm.scan(tmp_path)
    line = row_of(PROBLEM, log)["fix"]
    assert line == "log = pl.scan_csv(..., schema_overrides={**log.collect_schema(), 'sample': pl.String})"
    with pytest.raises(TypeError):
        exec(line, {"log": log, "pl": pl})


@pytest.mark.parametrize(
    "ids", [["1", "2"], ["-1", "1"], ["001", "002"], ["01", "2", "3"], ["a", "01", "1"], ["1.5", "2"]], ids=str
)
def test_ids_that_are_not_made_one(ids: list[str], tmp_path: Path) -> None:
    log = pl.scan_csv(write_csv(tmp_path / "log.csv", ids))
    assert PROBLEM not in told(log)


def test_a_sign_and_a_blank_are_other_spellings(tmp_path: Path) -> None:
    # Polars guesses from the first 100 rows, and reads these as numbers where it has.
    ids = [str(i) for i in range(1000, 1100)]
    log = pl.scan_csv(write_csv(tmp_path / "log.csv", [*ids, "+1000", " 1001", "1002"]))
    assert row_of(PROBLEM, log)["examples"] == ["sample=+1000 and 1000", "sample= 1001 and 1001"]


def test_an_unknown_id_is_of_no_other(tmp_path: Path) -> None:
    log = pl.scan_csv(write_csv(tmp_path / "log.csv", ["", "01", "2"]))
    assert PROBLEM not in told(log)
    assert not is_skipped(log)


def test_labels_and_groups_are_looked_at_too(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("user,item,fold,score,truth\n7,01,1,0.5,1\n7,1,01,0.4,0\n")
    found = check(pl.scan_csv(path), by="fold", sample="user", label="item").filter(problem=PROBLEM)
    assert found["examples"].to_list() == [["item=01 and 1"], ["fold=01 and 1"]]


@pytest.mark.parametrize("passes", [None, "auto", "files"])
@pytest.mark.parametrize("scan", [pl.scan_parquet, mlm.scan])
def test_folders_that_became_one(scan: Any, passes: Any, tmp_path: Path) -> None:
    log = scan(write_folders(tmp_path / "logs", ["k=01", "k=1", "k=2"]))
    row = row_of(PROBLEM, log, by="k", passes=passes)
    assert (row["count"], row["share"], row["examples"]) == (8, pytest.approx(2 / 3), ["k=01 and 1"])


@pytest.mark.parametrize("scan", [pl.scan_parquet, mlm.scan])
def test_the_line_of_folders_mends_it_and_nothing_else(scan: Any, tmp_path: Path) -> None:
    folders = ["k=01/day=2026-01-01", "k=1/day=2026-01-01", "k=1/day=2026-01-02"]
    log = scan(write_folders(tmp_path / "logs", folders))
    after = mended(row_of(PROBLEM, log, by="k")["fix"], log, by="k")
    assert after["k"].unique().sort().to_list() == ["01", "1"]
    assert_frame_equal(after.drop("k"), log.drop("k").collect())


def test_folders_that_are_not_made_one(tmp_path: Path) -> None:
    log = pl.scan_parquet(write_folders(tmp_path / "logs", ["k=01", "k=02"]))
    assert PROBLEM not in told(log, by="k")
    assert not is_skipped(log, by="k")
    assert is_skipped(log)


def test_what_is_not_guessed_is_not_looked_at(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "log.csv", IDS)
    folders = write_folders(tmp_path / "logs", ["k=01", "k=1"])
    for dtype in (pl.Int64, pl.String):
        assert is_skipped(pl.scan_csv(path, schema_overrides={"sample": dtype}))
    assert is_skipped(mlm.scan(path, schema={"sample": pl.Int64, "score": pl.Float64, "truth": pl.Int64}))
    assert is_skipped(pl.scan_parquet(folders, hive_schema={"k": pl.String}), by="k")


def test_what_cannot_be_read_again_is_skipped(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "log.csv", IDS)
    folders = write_folders(tmp_path / "x=1" / "logs", ["k=01", "k=1"])
    assert is_skipped(CLEAN)
    assert is_skipped(CLEAN.lazy())
    assert is_skipped(pl.read_csv(path))
    assert is_skipped(pl.scan_csv(path).with_columns(fold=1))
    assert is_skipped(pl.scan_csv(path, n_rows=5))
    assert is_skipped(pl.scan_csv(path.read_bytes()))
    assert is_skipped(pl.scan_csv(path), thorough=False)
    assert is_skipped(pl.scan_parquet(folders), by="k")
    assert is_skipped(pl.scan_parquet(folders, hive_partitioning=False))


def test_a_scan_that_asks_python_is_skipped_and_does_not_hang() -> None:
    log = register_io_source(lambda *_: iter([CLEAN]), schema=CLEAN.schema)
    assert is_skipped(log, thorough=True)


def test_no_id_is_in_what_is_redacted(tmp_path: Path) -> None:
    folders = write_folders(tmp_path / "logs", ["k=0077", "k=77"])
    for log, asked in (
        (pl.scan_csv(write_csv(tmp_path / "of_0077.csv", ["0077", "77"])), {}),
        (mlm.scan(folders), {"by": "k"}),
    ):
        row = row_of(PROBLEM, log, redact=True, **asked)
        assert row["examples"] == []
        assert "77" not in str(row)
