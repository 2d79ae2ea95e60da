"""`check` of ids of CSV files that were read as numbers: what tells `01` from `1` is lost."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.io.plugins import register_io_source
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from tests.checks.check_cases import CLEAN, check, row_of, told

PROBLEM = "ids_read_as_numbers"
IDS = ["001", "01", "1", "2", "030"]


def write_csv(path: Path, ids: list[Any]) -> Path:
    of_ids = [
        CLEAN.head(2).with_columns(pl.lit(each).alias("sample"), score=0.1 + 0.1 * i) for i, each in enumerate(ids)
    ]
    pl.concat(of_ids).write_csv(path, quote_style="never")
    return path


def is_skipped(frame: Any) -> bool:
    table = check(frame, skipped=True)
    return PROBLEM in table.filter(severity="skipped")["problem"].to_list()


@pytest.mark.parametrize("thorough", [True, False])
@pytest.mark.parametrize("scan", [pl.scan_csv, mlm.scan])
def test_ids_of_csv_that_are_numbers(scan: Any, thorough: bool, tmp_path: Path) -> None:
    row = row_of(PROBLEM, scan(write_csv(tmp_path / "log.csv", IDS)), thorough=thorough)
    assert (row["severity"], row["count"], row["share"], row["of"]) == ("info", 10, 1, "rows")
    assert row["meaning"].startswith("'sample' is a whole-number id read from CSV: leading zeros are lost")
    assert row["examples"] == []


def test_the_line_reads_them_as_text_and_changes_nothing_else(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "log.csv", IDS)
    log = pl.scan_csv(path)
    assert "duplicate" in told(log)
    names: dict[str, Any] = {"log": log, "pl": pl, "path": path}
    line = row_of(PROBLEM, log)["fix"]
    with pytest.raises(TypeError):
        exec(line, names)
    exec(line.replace("...", "path"), names)
    mended = names["log"]
    assert mended.collect()["sample"].unique(maintain_order=True).to_list() == IDS
    assert_frame_equal(mended.drop("sample"), log.drop("sample"))
    assert told(mended).keys() == told(log).keys() - {PROBLEM, "duplicate"}


def test_labels_and_groups_are_looked_at_too(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("user,item,fold,visits,score,truth\n7,01,1,3,0.5,1\n7,1,01,4,0.4,0\n")
    found = check(pl.scan_csv(path), by="fold", sample="user", label="item").filter(problem=PROBLEM)
    assert [meaning.split()[0] for meaning in found["meaning"]] == ["'user'", "'item'", "'fold'"]


@pytest.mark.parametrize("ids", [["a", "01", "1"], ["1.5", "2"]], ids=str)
def test_ids_that_are_no_whole_numbers(ids: list[str], tmp_path: Path) -> None:
    log = pl.scan_csv(write_csv(tmp_path / "log.csv", ids))
    assert PROBLEM not in told(log)
    assert not is_skipped(log)


def test_what_is_not_guessed_is_no_problem(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "log.csv", IDS)
    logs = [pl.scan_csv(path, schema_overrides={"sample": dtype}) for dtype in (pl.Int64, pl.String)]
    logs.append(mlm.scan(path, schema={"sample": pl.Int64, "label": pl.String, "score": pl.Float64, "truth": pl.Int64}))
    logs.append(pl.scan_csv(path, row_index_name="row").drop("sample").rename({"row": "sample"}))
    for log in logs:
        assert PROBLEM not in told(log)
    assert PROBLEM not in told(pl.scan_csv(path, row_index_name="row"), sample="row")


def test_of_what_is_no_scan_of_csv_nobody_knows(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "log.csv", IDS)
    CLEAN.write_parquet(tmp_path / "log.parquet")
    assert is_skipped(CLEAN)
    assert is_skipped(CLEAN.lazy())
    assert is_skipped(pl.read_csv(path))
    assert is_skipped(pl.scan_csv(path).with_columns(fold=1))
    assert is_skipped(pl.scan_csv(path.read_bytes()))
    assert is_skipped(pl.scan_parquet(tmp_path / "log.parquet"))


def test_a_scan_that_asks_python_is_skipped_and_does_not_hang() -> None:
    assert is_skipped(register_io_source(lambda *_: iter([CLEAN]), schema=CLEAN.schema))
