"""Which files a source stands for, and which of them are refused."""

import os
import re
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.adapters.scan import scan
from tests.adapters.written_logs import every_format, refused, total, write

pytestmark = pytest.mark.usefixtures("folder")


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


@pytest.mark.parametrize("name", ["_logs/a", ".logs/a", "_logs/.deep/a", "_a", ".a"])
def test_what_hides_can_be_given(name: str) -> None:
    write(f"{name}.parquet", x=[1])
    assert total(f"{name}.parquet") == 1
    folder = name.rpartition("/")[0]
    if folder:
        assert total(folder) == total(f"{folder}/*.parquet") == 1


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        *(("logs/*.parquet", 1), ("logs/*/*.parquet", 10), ("logs/**/*.parquet", 111), ("logs/**", 111)),
        *(("**/?.parquet", 111), ("logs/**/c/*", 100), ("logs/[!b]/*", 10), ("l*/b/**/*.parquet", 110)),
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


@pytest.mark.one_in(3)
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


def test_a_log_of_lists_that_breaks_off_late_is_named() -> None:
    """Its column `listed` is looked at, after the rows of which Polars guesses the types."""
    good = '{"x": 1, "listed": null}\n'
    Path("a.ndjson").write_text(f'{good * 150}{{"x": 2, "listed"')
    with pytest.raises(mlm.FileError, match=r"^a\.ndjson cannot be read as ndjson: ."):
        scan("a.ndjson")


def test_a_file_that_makes_polars_panic_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def panic(*_: Any) -> Any:
        raise pl.exceptions.PanicException("called unwrap on None\nat line 3")

    write("a.parquet", x=[1])
    monkeypatch.setattr(pl.LazyFrame, "collect_schema", panic)
    refused("a.parquet", "a.parquet cannot be read as parquet: called unwrap on None")
