"""A log from anywhere: which files are read, what is refused of them, and what their folders say."""

import os
import re
import sys
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from polars_mlmetrics.adapters.scan import scan
from tests.test_plan import fallbacks

FORMATS = ["parquet", "ipc", "csv", "ndjson"]
every_format = pytest.mark.parametrize("kind", FORMATS)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which the test works."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name: str, kind: str | None = None, **columns: Any) -> None:
    """Write columns to a file, in the format of its suffix or in the one given."""
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        getattr(pl.DataFrame(columns), f"write_{kind or path.suffix[1:]}")(file)


def total(source: Any, **options: Any) -> int:
    """The sum of x: the files of these tests hold powers of 2 or of 10, so that it tells which were read."""
    return scan(source, **options).select(pl.col("x").sum()).collect().item()


def rows(source: Any, **options: Any) -> list[tuple[Any, ...]]:
    return sorted(scan(source, **options).collect().rows(), key=repr)


def refused(source: Any, said: str, **options: Any) -> None:
    with pytest.raises(mlm.FileError) as caught:
        scan(source, **options)
    assert str(caught.value) == said


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


# -- which files a source stands for -----------------------------------------------------------------------------------


@every_format
def test_a_folder_is_looked_through_to_the_bottom(kind: str, folder: Path) -> None:
    for i, place in enumerate(["", "b/", "b/c/", "a/b/c/d/"]):
        write(f"logs/{place}f.{kind}", x=[10**i])
    assert total("logs") == total(folder / "logs") == 1111


@pytest.mark.parametrize(
    "name", [".a.parquet", "_a.parquet", "_metadata", ".git/a.parquet", "_temporary/0/a.parquet", "b/.c/a.parquet"]
)
def test_what_hides_in_a_folder_is_not_taken(name: str) -> None:
    write("logs/a.parquet", x=[1])
    write(f"logs/{name}", "parquet", x=[10], y=[1])
    Path("logs/_SUCCESS").touch()
    assert total("logs") == 1


@pytest.mark.parametrize("name", ["_logs", ".logs", "_logs/.deep"])
def test_a_folder_that_hides_can_be_given(name: str) -> None:
    write(f"{name}/a.parquet", x=[1])
    assert total(name) == total(f"{name}/*.parquet") == 1


@pytest.mark.parametrize("name", ["_a.parquet", ".a.parquet"])
def test_a_file_that_hides_can_be_given(name: str) -> None:
    write(name, x=[1])
    assert total(name) == 1


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("logs/*.parquet", 1),
        ("logs/*/*.parquet", 10),
        ("logs/**/*.parquet", 111),
        ("logs/**", 111),
        ("**/?.parquet", 111),
        ("logs/**/c/*", 100),
        ("logs/[!b]/*", 10),
        ("l*/b/**/*.parquet", 110),
    ],
)
def test_a_pattern_means_what_glob_means(pattern: str, expected: int, folder: Path) -> None:
    for i, name in enumerate(["a", "b/a", "b/c/a", ".h/a", "b/.h/a"]):
        write(f"logs/{name}.parquet", x=[10**i])
    if pattern == "logs/[!b]/*":
        Path("logs/b").rename("logs/d")
    assert total(pattern) == total(Path(pattern)) == total(folder / pattern) == expected


ODD_NAMES = [
    "a[1]", "[a]", "*", "**", "a?", "[!a]", "a#1", "a%20b", "100%", " a b ", "ä 日本", "~", "$HOME", "a\nb", "a'\"b",
    "a\\b", "-a", "day=1;c", "{a,b}", ".[a]",
]  # fmt: skip


@every_format
@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_file_or_folder_of_an_odd_name_is_that_one(name: str, kind: str, folder: Path) -> None:
    for other in ("a1", "a", "b", "ab", "1"):
        write(f"{other}.{kind}", x=[100])
        write(f"{other}/a.{kind}", x=[100])
    write(f"{name}.{kind}", x=[1])
    write(f"{name}/[a].{kind}", x=[2])
    assert total(f"{name}.{kind}") == total(folder / f"{name}.{kind}") == 1
    assert total(name) == total(Path(name)) == total(folder / name) == 2
    assert total([f"{name}.{kind}", name, f"a1.{kind}"]) == 103


def test_a_list_may_mix_what_it_names_and_keeps_its_order() -> None:
    for i, name in enumerate(["z", "logs/b", "logs/a", "old/1/a"]):
        write(f"{name}.parquet", x=[i])
    assert scan(["z.parquet", Path("old"), "logs/*"]).collect()["x"].to_list() == [0, 3, 2, 1]


def test_a_link_to_a_file_is_followed_and_one_to_a_folder_is_not() -> None:
    write("else/a.parquet", x=[1])
    write("else/deep/b.parquet", x=[10])
    write("logs/c.parquet", x=[100])
    Path("logs/a.parquet").symlink_to("../else/a.parquet")
    Path("logs/deep").symlink_to("../else/deep")
    Path("logs/round").symlink_to(".")
    Path("linked").symlink_to("else")
    assert total("logs") == 101
    assert total("linked") == 11


def test_a_folder_that_cannot_be_looked_through_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    write("logs/a.parquet", x=[1])
    write("logs/closed/b.parquet", x=[1])
    look = os.scandir

    def closed(path: str) -> Any:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return look(path)

    monkeypatch.setattr(os, "scandir", closed)
    refused("logs", "the folder logs/closed cannot be read: Permission denied.")


@every_format
def test_a_folder_may_be_called_as_a_url_begins(kind: str, folder: Path) -> None:
    write(f"s3:/a.{kind}", x=[1])
    assert total(f"s3:/a.{kind}") == total(folder / "s3:") == 1


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no file can have such a name")
@every_format
def test_a_name_that_is_no_text_is_refused(kind: str) -> None:
    write(os.fsdecode(b"logs/a\xff.") + kind, x=[1])
    refused("logs", rf"'logs/a\udcff.{kind}' is not valid UTF-8, and Polars cannot open such a name: rename the file.")


# -- what is refused of a file -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["no.parquet", "no/*.parquet", "logs/*.pq", "**/no", "~/no.csv"])
def test_a_source_of_no_files_is_named(source: str) -> None:
    write("logs/a.parquet", x=[1])
    for given in (source, Path(source), ["logs", source]):
        with pytest.raises(mlm.FileError, match=re.escape(source)):
            scan(given)


def test_a_folder_without_a_file_is_named() -> None:
    Path("bare/deep").mkdir(parents=True)
    Path("bare/notes.txt").touch()
    Path("bare/_a.csv").touch()
    known = ".parquet, .pq, .arrow, .ipc, .feather, .csv, .ndjson, .jsonl"
    refused("bare", f"there is no {known} file in the folder bare.")
    refused("bare/deep", "there is no file in the folder bare/deep.", format="csv")


@every_format
def test_a_file_of_no_bytes_is_named(kind: str) -> None:
    write(f"logs/a.{kind}", x=[1])
    Path(f"logs/b.{kind}").touch()
    for source in ("logs", "logs/*", f"logs/b.{kind}"):
        with pytest.raises(mlm.FileError, match=rf"^logs/b\.{kind} is empty"):
            scan(source)


def test_a_link_to_nothing_is_named() -> None:
    write("logs/a.parquet", x=[1])
    Path("logs/b.parquet").symlink_to("nowhere")
    refused("logs", "logs/b.parquet is a broken link.")


@pytest.mark.parametrize("again", ["logs/a.csv", "./logs/a.csv", "logs/deep/../a.csv", "link.csv", "logs", "l*/a.csv"])
def test_a_file_that_is_there_twice_is_named(again: str) -> None:
    write("logs/a.csv", x=[1])
    write("logs/deep/b.csv", x=[1])
    Path("link.csv").symlink_to("logs/a.csv")
    with pytest.raises(mlm.FileError, match=r"a\.csv is given twice|^link\.csv is given twice, also as logs/a\.csv"):
        scan(["logs/a.csv", again])


def test_two_names_of_one_file_in_a_folder_are_an_error() -> None:
    write("logs/a.csv", x=[1])
    Path("logs/b.csv").symlink_to("a.csv")
    refused("logs", "logs/b.csv is given twice, also as logs/a.csv.")


@pytest.mark.parametrize("kept", [1, 10, 0.5, -20, -1])
@pytest.mark.parametrize("kind", ["parquet", "ipc"])
def test_a_file_that_is_cut_off_is_named(kind: str, kept: float) -> None:
    write(f"a.{kind}", x=[1])
    write(f"b.{kind}", x=list(range(100)))
    data = Path(f"b.{kind}").read_bytes()
    Path(f"b.{kind}").write_bytes(data[: int(len(data) * kept) if kept == 0.5 else int(kept)])
    for source in (f"b.{kind}", "."):
        with pytest.raises(mlm.FileError, match=rf"^b\.{kind} cannot be read as {kind}: ."):
            scan(source)


@pytest.mark.parametrize(
    ("kind", "content"),
    [("parquet", b"x\n1\n"), ("ipc", b"x\n1\n"), ("ndjson", b"x\n1\n"), ("ndjson", b'{"x": 1}\n{"x":'), ("csv", b"\n")],
    ids=str,
)
def test_a_file_of_another_format_is_named(kind: Any, content: bytes) -> None:
    write(f"a.{kind}", x=[1])
    Path(f"b.{kind}").write_bytes(content)
    with pytest.raises(mlm.FileError, match=rf"^b\.{kind} cannot be read as {kind}: ."):
        scan(".")


def test_a_file_that_makes_polars_panic_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def panic(*_: Any) -> Any:
        raise pl.exceptions.PanicException("called unwrap on None\nat line 3")

    write("a.parquet", x=[1])
    monkeypatch.setattr(pl.LazyFrame, "collect_schema", panic)
    refused("a.parquet", "a.parquet cannot be read as parquet: called unwrap on None")


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
def test_what_arrow_does_not_hold_is_told(frame: Any) -> None:
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
