"""A log from anywhere: tables, formats, and what comes of reading it."""

import re
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from polars_mlmetrics.adapters.scan import scan
from tests.adapters.written_logs import every_format, refused, total, write
from tests.support.plans import fallbacks

pytestmark = pytest.mark.usefixtures("folder")


# -- tables ------------------------------------------------------------------------------------------------------------

LOG = pl.DataFrame({"x": [1, 2], "score": [0.5, None]})


class Stream:
    """A table of another library."""

    def __init__(self, table: pl.DataFrame | pl.Series) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


class Lacking:
    """A table of a library that needs another one."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        raise ImportError("pyarrow is required")


class Wrong:
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return 5


@pytest.mark.parametrize("table", [LOG, LOG.lazy(), Stream(LOG)], ids=["DataFrame", "LazyFrame", "stream"])
def test_a_table_is_given_back_lazy(table: Any) -> None:
    frame = scan(table)
    assert isinstance(frame, pl.LazyFrame)
    assert_frame_equal(frame.collect(), LOG)


def test_a_relation_of_duckdb_is_a_table() -> None:
    with duckdb.connect() as connection:
        frame = scan(connection.sql("select 7::bigint as x, 0.5::double as score"))
    assert_frame_equal(frame.collect(), pl.DataFrame({"x": [7], "score": [0.5]}))


def test_a_table_that_needs_a_package_says_so() -> None:
    with pytest.raises(mlm.ParameterError, match=r"^this Lacking .* not installed: pyarrow is required"):
        scan(Lacking())


@pytest.mark.parametrize("table", [Wrong(), Stream(pl.Series([1, 2]))], ids=["no stream", "no table"])
def test_a_stream_that_is_no_table_is_refused(table: Any) -> None:
    with pytest.raises(mlm.ParameterError, match="cannot be read as a table"):
        scan(table)


NO_SOURCES: list[Any] = [None, 3, Stream, object(), {"a.parquet"}, iter(["a.parquet"]), [], b"a.parquet", [None], [LOG]]


@pytest.mark.parametrize("source", NO_SOURCES, ids=[f"{source!r}"[:20] for source in NO_SOURCES])
def test_what_is_no_source_is_refused(source: Any) -> None:
    with pytest.raises(mlm.ParameterError):
        scan(source)


@pytest.mark.parametrize(
    "options",
    [{"format": "parquet"}, {"hive": True}, {"hive": False}, {"schema": {"x": pl.Int8}}, {"missing": "null"}],
    ids=str,
)
@pytest.mark.parametrize("table", [LOG, LOG.lazy(), Stream(LOG)], ids=["DataFrame", "LazyFrame", "stream"])
def test_what_is_said_of_files_is_not_said_of_tables(table: Any, options: dict[str, Any]) -> None:
    with pytest.raises(mlm.ParameterError, match="this source is a table"):
        scan(table, **options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"format": "parket"}, "Did you mean 'parquet'"),
        ({"format": 1}, "format 1"),
        ({"hive": "yes"}, "not 'yes'"),
        ({"missing": "fill"}, "not 'fill'"),
        *(({"schema": it}, "schema is a dict") for it in ({}, ["x"], {"x": int}, {1: pl.Int8}, {"x": "Int8"})),
    ],
    ids=str,
)
def test_an_option_of_another_value_is_refused(options: dict[str, Any], said: str) -> None:
    write("a.parquet", x=[1])
    with pytest.raises(mlm.ParameterError, match=said):
        scan("a.parquet", **options)


# -- formats -----------------------------------------------------------------------------------------------------------

SUFFIXES = {
    ".parquet": "parquet", ".pq": "parquet", ".arrow": "ipc", ".ipc": "ipc", ".feather": "ipc", ".csv": "csv",
    ".ndjson": "ndjson", ".jsonl": "ndjson", ".PARQUET": "parquet", ".CSV": "csv",
}  # fmt: skip


@pytest.mark.parametrize(("suffix", "kind"), SUFFIXES.items(), ids=SUFFIXES)
def test_a_suffix_says_the_format(suffix: str, kind: str) -> None:
    write(f"logs/a{suffix}", kind, x=[1, 2])
    write(f"logs/b{suffix}", kind, x=[4])
    assert total(f"logs/a{suffix}") == 3
    assert total("logs") == total(f"logs/*{suffix}") == total([f"logs/a{suffix}", Path(f"logs/b{suffix}")]) == 7


@every_format
def test_a_format_that_is_said_goes_over_the_suffix(kind: Any) -> None:
    write("logs/part-0", kind, x=[1])
    write("logs/part-1.gz.tmp", kind, x=[2])
    write("logs/deep/part-2.csv", kind, x=[4])
    write("logs/_part-3", "csv", x=[8])
    write("logs/.part-4", "csv", x=[16])
    assert total("logs", format=kind) == total(["logs/part-0", "logs/*.tmp", "logs/deep"], format=kind) == 7


def test_suffixes_of_one_format_go_together() -> None:
    write("a.parquet", x=[1])
    write("b.pq", "parquet", x=[2])
    assert total(".") == 3


def test_two_formats_are_an_error_that_names_a_file_of_each() -> None:
    write("a.csv", x=[1])
    write("b.csv", x=[1])
    write("c.parquet", x=[1])
    said = (
        "a.csv is csv and c.parquet is parquet, but a log has one format: pass files of one format, or pass format= "
        "if a suffix is wrong."
    )
    refused(".", said)
    refused(["a.csv", "b.csv", "c.parquet"], said)


@pytest.mark.parametrize("name", ["a.parquets", "a", "a.parquet.gz"])
def test_an_unknown_suffix_is_named(name: str) -> None:
    write(name, "parquet", x=[1])
    write("b.parquet", x=[1])
    for source in (name, ["b.parquet", name], "*"):
        with pytest.raises(mlm.FileError, match=rf"^{re.escape(name)}: suffix .*\.ndjson, .*format='parquet'"):
            scan(source)


def test_files_of_unknown_suffixes_in_a_folder_are_passed_over() -> None:
    write("logs/a.parquet", x=[1])
    Path("logs/README.md").write_text("about")
    Path("logs/empty.txt").touch()
    assert total("logs") == 1


# -- what comes of it --------------------------------------------------------------------------------------------------


@every_format
def test_nothing_is_read_before_it_is_asked_for(kind: str) -> None:
    write(f"a.{kind}", x=[1])
    frame = scan(".")
    write(f"a.{kind}", x=[5])
    assert frame.collect().item() == 5


@every_format
@pytest.mark.parametrize("place", ["logs", "logs/k=1", "logs/k=a=b"])
def test_the_streaming_engine_runs_all_of_it(kind: str, place: str) -> None:
    write(f"{place}/a.{kind}", x=[1])
    assert fallbacks(scan("logs")) == []


def test_files_can_be_evaluated_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    write("logs/a.parquet", sample=[1, 2], score=[0.9, 0.2], truth=[1, 0])
    write("logs/deep/[b].parquet", truth=[1], score=[0.4], sample=[3])
    table = mlm.evaluate(scan("logs"), mlm.accuracy(), mlm.n_samples(), passes="files").collect()
    assert table.rows() == [(2 / 3, 3)]
    assert "pass 2 of 2" in capsys.readouterr().err


def test_files_that_folders_say_more_of_can_be_evaluated_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    write("logs/k=1/a.parquet", sample=[1, 2], score=[0.9, 0.2], truth=[1, 0])
    write("logs/k=2/b.parquet", sample=[3], score=[0.9], truth=[0])
    table = mlm.evaluate(scan("logs"), mlm.accuracy(), mlm.n_samples(), by="k", passes="files").collect()
    assert table.rows() == [(1, 1.0, 2), (2, 0.0, 1)]
    assert "pass 2 of 2" in capsys.readouterr().err


# -- what pandas has ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"truth": [1, "0"]}),
        pd.DataFrame({"truth": pd.Series([True, 1], dtype=object)}),
        pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]),
        pd.DataFrame({"score": [1j, 2]}),
    ],
    ids=["numbers and texts", "objects", "one name twice", "complex numbers"],
)
def test_what_arrow_does_not_hold_is_reported(frame: Any) -> None:
    with pytest.raises(mlm.ParameterError, match="this DataFrame cannot be read as a table: "):
        scan(frame)


def test_nan_of_pandas_is_null_and_an_index_does_not_come() -> None:
    frame = pd.DataFrame({"score": [float("nan"), 0.9]}, index=pd.Index([7, 8], name="sample"))
    assert scan(frame).collect().to_dict(as_series=False) == {"score": [None, 0.9]}
    assert scan(frame.reset_index()).collect()["sample"].to_list() == [7, 8]


@pytest.mark.parametrize("verb", [mlm.evaluate, mlm.check, mlm.dedupe, mlm.profile, mlm.from_wide])
def test_a_frame_of_pandas_is_sent_here(verb: Any) -> None:
    with pytest.raises(mlm.ParameterError, match=r"DataFrame of pandas: mlm\.scan turns it into a LazyFrame\.$"):
        verb(pd.DataFrame({"score": [0.9], "truth": [1]}))
