"""Files whose columns differ: named where they do, and read as one where `schema` and `missing` say how."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from polars_mlmetrics.data.scan import scan
from tests.test_scan import every_format, refused, rows, total, write

REMEDY = "schema= gives the columns and types to read all files as."
FILLED = f"missing='null' fills what a file lacks, and {REMEDY}"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which the test works."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


# -- columns and types -------------------------------------------------------------------------------------------------


@every_format
def test_a_column_that_is_missing_is_named(kind: str) -> None:
    write(f"a.{kind}", x=[1], score=[0.5])
    write(f"b.{kind}", x=[1])
    refused(".", f"b.{kind} has no column 'score', which is Float64 in a.{kind}. {FILLED}")


@every_format
def test_a_column_that_is_too_much_is_named(kind: str) -> None:
    write(f"a.{kind}", x=[1])
    write(f"b.{kind}", x=[1])
    write(f"c.{kind}", score=[0.5], x=[1])
    refused(".", f"c.{kind} has a column 'score', which is Float64 there and is not in a.{kind}. {FILLED}")


@pytest.mark.parametrize("kind", ["parquet", "ipc"])
@pytest.mark.parametrize(
    "other",
    [pl.Int32, pl.Float64, pl.String, pl.UInt64, pl.Null, pl.Boolean, pl.Decimal(5, 2), pl.Categorical],
    ids=str,
)
def test_a_column_of_another_type_is_named(kind: str, other: Any) -> None:
    write(f"a.{kind}", x=[1])
    write(f"b.{kind}", x=pl.Series([None], dtype=other))
    refused(".", f"column 'x' is {other} in b.{kind} and Int64 in a.{kind}. {REMEDY}")


@pytest.mark.parametrize("kind", ["csv", "ndjson"])
def test_types_that_are_guessed_apart_can_be_said(kind: str) -> None:
    write(f"a.{kind}", x=[1])
    write(f"b.{kind}", x=[1.5])
    refused(
        ".",
        f"column 'x' is Float64 in b.{kind} and Int64 in a.{kind}. The types of {kind} are guessed. {REMEDY}",
    )
    assert total(".", schema={"x": pl.Float64}) == 2.5


def test_a_csv_without_rows_has_no_types_to_agree_on() -> None:
    write("a.csv", x=[1])
    Path("b.csv").write_text("x\n")
    with pytest.raises(mlm.FileError, match=r"^column 'x' is String in b\.csv and Int64 in a\.csv\. .*schema="):
        scan(".")


@pytest.mark.parametrize("kind", ["parquet", "ipc", "ndjson"])
def test_columns_in_another_order_are_read_by_name(kind: str) -> None:
    write(f"a.{kind}", x=[1], y=[10], z=["a"])
    write(f"b.{kind}", z=["b"], y=[20], x=[2])
    frame = scan(".")
    expected = pl.DataFrame({"x": [1, 2], "y": [10, 20], "z": ["a", "b"]})
    assert_frame_equal(frame.collect(), expected)
    assert_frame_equal(frame.select("y").collect(), expected.select("y"))
    assert_frame_equal(frame.filter(pl.col("x") == 2).collect(), expected[1:])
    assert_frame_equal(frame.collect(engine="in-memory"), expected)


def test_columns_of_csv_in_another_order_are_refused() -> None:
    write("a.csv", x=[1], y=[10])
    write("b.csv", y=[20], x=[2])
    with pytest.raises(mlm.FileError, match=r"^b\.csv has .* another order than a\.csv: y, x and x, y\. .*schema="):
        scan(".")


def test_a_csv_without_its_header_is_refused() -> None:
    write("a.csv", x=[1], y=[10])
    Path("b.csv").write_text("2,20\n3,30\n")
    refused(".", f"b.csv has no column 'x', which is Int64 in a.csv. {FILLED}")


def test_csv_files_of_any_ending_and_mark_are_read() -> None:
    Path("a.csv").write_bytes(b"x,y\n1,10")
    Path("b.csv").write_bytes(b"\xef\xbb\xbfx,y\r\n2,20\r\n")
    Path("c.csv").write_bytes(b'"x",y\n4,40\n')
    assert rows(".") == [(1, 10), (2, 20), (4, 40)]


@every_format
def test_many_files_are_read_once_each(kind: str) -> None:
    for i in range(15):
        write(f"{i}.{kind}", x=[2**i])
    assert total(".") == 2**15 - 1
