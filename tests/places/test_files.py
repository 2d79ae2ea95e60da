"""Which files a source stands for, and what is refused: names that are remote or odd, tables of other engines."""

import os
import re
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.places.made_files import ODD_NAMES, files_of, make, names_of

pytestmark = pytest.mark.usefixtures("folder")


def resolved(names: Sequence[str]) -> list[Path]:
    """Where files lie: one whose name begins with ~ comes as an absolute path, or Polars looked for it at home."""
    return sorted(Path(name).absolute() for name in names)


# -- which files a source stands for -----------------------------------------------------------------------------------


class Place:
    """A path, as other libraries have them."""

    def __fspath__(self) -> str:
        return "logs/a.parquet"

    def __repr__(self) -> str:
        return "Place()"


@pytest.mark.parametrize("source", ["logs/a.parquet", Path("logs/a.parquet"), Place(), "./logs/a.parquet"], ids=repr)
def test_a_path_is_its_file(source: Any) -> None:
    make("logs/a.parquet", "logs/b.parquet")
    assert names_of(source) == ["logs/a.parquet"]
    assert names_of([source]) == ["logs/a.parquet"]


def test_a_path_may_have_any_suffix_and_a_folder_is_asked_for_its_own() -> None:
    make("logs/a.parquet", "logs/b.txt", "logs/c")
    assert names_of(["logs/b.txt", "logs/c"]) == ["logs/b.txt", "logs/c"]
    assert [file.name for file in files_of("logs", suffixes=[".txt"])] == ["b.txt"]


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("logs", "a.parquet b.parquet"),
        ("logs/*.parquet", "a.parquet b.parquet"),
        ("logs/*", "a.parquet b.parquet notes.txt parquet"),
        ("logs/?.parquet", "a.parquet b.parquet"),
        ("logs/[b-z].parquet", "b.parquet"),
        ("logs/[!b].parquet", "a.parquet"),
        ("l*/b.parquet", "b.parquet"),
        ("logs/*/*.parquet", "deep/c.parquet"),
        ("logs/**/*.parquet", "a.parquet b.parquet deep/c.parquet deep/er/d.parquet"),
        ("**/d.parquet", "deep/er/d.parquet"),
    ],
)
def test_a_folder_or_a_pattern_is_its_files_in_the_order_of_their_names(source: str, names: str, folder: Path) -> None:
    """But those that hide, and folders, whatever their names."""
    make("logs/b.parquet", "logs/a.parquet", "logs/notes.txt", "logs/parquet")
    make("logs/deep/c.parquet", "logs/deep/er/d.parquet", "logs/folder.parquet/part-0")
    make("logs/.b.parquet", "logs/._a.parquet", "logs/.parquet", "logs/.a.parquet.17.draft")
    files = [f"logs/{name}" for name in names.split()]
    assert names_of(source) == names_of(Path(source)) == files
    assert files_of(folder / source) == [folder / name for name in files]


def test_a_list_keeps_its_order_and_may_mix_what_it_names() -> None:
    make("z.parquet", "logs/b.parquet", "logs/a.parquet", "old/2.parquet", "old/1.parquet")
    expected = ["z.parquet", "old/1.parquet", "old/2.parquet", "logs/a.parquet", "logs/b.parquet"]
    assert names_of(["z.parquet", Path("old"), "logs/*"]) == expected
    assert names_of(("z.parquet", "old/?.parquet", "logs")) == expected


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_file_of_an_odd_name_is_that_file_alone(name: str, folder: Path) -> None:
    make(name, "a1.parquet", "a.parquet", "ab.parquet", "1.parquet")
    assert resolved(names_of(name)) == resolved(names_of([name])) == resolved([name])
    assert files_of(folder / name) == [folder / name]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_folder_holds_files_of_odd_names_and_may_have_one(name: str) -> None:
    make(f"{name}/{name}", f"{name}/other.parquet")
    assert resolved(names_of(name)) == resolved([f"{name}/{name}", f"{name}/other.parquet"])


def test_an_odd_name_can_be_written_as_a_pattern() -> None:
    make("logs[1]/a.parquet", "logs1/b.parquet")
    assert names_of("logs[1]/*.parquet") == ["logs1/b.parquet"]
    assert names_of("logs[[]1]/*.parquet") == ["logs[1]/a.parquet"]


def test_an_ending_may_be_in_capitals() -> None:
    make("logs/a.parquet", "logs/b.PARQUET", "logs/c.Parquet", "logs/d.txt")
    assert names_of("logs") == ["logs/a.parquet", "logs/b.PARQUET", "logs/c.Parquet"]


def test_two_stars_beside_letters_are_one_as_in_glob() -> None:
    make("logs/a.parquet", "logs/deep/a.parquet")
    for pattern in ("***/a.parquet", "logs/a**", "logs**/a.parquet"):
        assert names_of(pattern) == ["logs/a.parquet"]


def test_a_pattern_finds_what_is_hidden_only_if_it_says_so() -> None:
    make("logs/a.parquet", "logs/.a.parquet", ".old/a.parquet")
    assert names_of("*/*.parquet") == names_of("**/*.parquet") == ["logs/a.parquet"]
    assert names_of("logs/.*.parquet") == ["logs/.a.parquet"]
    assert names_of(".old/*.parquet") == [".old/a.parquet"]


# -- sources that stand for no files -----------------------------------------------------------------------------------


NO_FILES = ["no.parquet", "no/a.parquet", "no/*.parquet", "logs/*.csv", "a[1].parquet", "**/no", "bare", "hidden"]


@pytest.mark.parametrize("source", NO_FILES)
def test_a_source_of_no_files_is_named(source: str) -> None:
    make("logs/a.parquet", "hidden/.a.parquet", "bare/notes.txt")
    for given in (source, Path(source), ["logs", source]):
        with pytest.raises(mlm.FileError, match=re.escape(source)):
            files_of(given)


def test_a_link_to_nothing_is_named() -> None:
    make("logs/a.parquet")
    Path("logs/b.parquet").symlink_to("nowhere.parquet")
    for source in ("logs/b.parquet", ["logs/a.parquet", "logs/b.parquet"], "logs"):
        with pytest.raises(mlm.FileError, match=re.escape("b.parquet")):
            files_of(source)


@pytest.mark.parametrize("source", ["logs/b.parquet", "logs", "logs/*", ["logs/a.parquet", "logs/b.parquet"]], ids=str)
def test_a_file_of_no_bytes_is_named(source: Any) -> None:
    make("logs/a.parquet")
    Path("logs/b.parquet").touch()
    with pytest.raises(mlm.FileError, match=r"logs/b\.parquet is empty"):
        files_of(source)


@pytest.mark.parametrize(
    "sources",
    [
        ["logs/a.parquet", "logs/a.parquet"],
        ["logs/a.parquet", "./logs/a.parquet"],
        ["logs/a.parquet", "old/../logs/a.parquet"],
        ["logs/a.parquet", Path("logs/a.parquet").absolute],
        ["logs", "logs/a.parquet"],
        ["logs/*", "logs"],
        ["logs/a.parquet", "link.parquet"],
        ["link.parquet", "logs/a.parquet"],
        ["logs/b.parquet", "linked/b.parquet"],
        ["logs", "linked"],
    ],
    ids=str,
)
def test_a_file_that_is_named_twice_is_named(sources: list[Any]) -> None:
    make("logs/a.parquet", "logs/b.parquet", "old/c.parquet")
    Path("link.parquet").symlink_to("logs/a.parquet")
    Path("linked").symlink_to("logs")
    given = [source() if callable(source) else source for source in sources]
    with pytest.raises(mlm.FileError, match=r"(a|b|link)\.parquet is given twice"):
        files_of(given)


def test_two_names_of_one_file_are_both_reported() -> None:
    make("a.parquet")
    Path("b.parquet").symlink_to("a.parquet")
    with pytest.raises(mlm.FileError, match=r"^b\.parquet is given twice, also as a\.parquet\.$"):
        files_of(["a.parquet", "b.parquet"])


def test_files_of_one_name_in_two_folders_are_two() -> None:
    make("logs/a.parquet", "old/a.parquet")
    assert names_of(["logs", "old"]) == names_of("*/a.parquet") == ["logs/a.parquet", "old/a.parquet"]


NO_SOURCES: list[Any] = [
    None, 3, 2.5, True, b"a.parquet", {"a.parquet"}, {"a.parquet": 1}, iter(["a.parquet"]), open,
    [], (), [None], [3], [b"a.parquet"], ["a.parquet", None], [["a.parquet"]], ["a.parquet", ["b.parquet"]],
]  # fmt: skip


@pytest.mark.parametrize("source", NO_SOURCES, ids=[f"{source!r}"[:20] for source in NO_SOURCES])
def test_what_is_no_source_is_refused(source: Any) -> None:
    make("a.parquet", "b.parquet")
    said = "^pass (a path, a pattern or a list of them|the path of a file), not "
    with pytest.raises(mlm.ParameterError, match=said):
        files_of(source)


@pytest.mark.parametrize("source", ["", [""], ["a.parquet", ""]], ids=repr)
def test_an_empty_path_is_not_the_folder_one_is_in(source: Any) -> None:
    make("a.parquet", "b.parquet")
    with pytest.raises(mlm.MetricError):
        files_of(source)


# -- what has a name as files have, and is none ------------------------------------------------------------------------


def update(path: Path) -> None:
    folder = path if path.is_dir() else path.parent
    rows = pl.DataFrame({"model": ["a"], "sample": [1], "score": [0.7], "truth": [1]})
    rows.write_parquet(folder.parent / "log.parquet")
    mlm.update_states(folder.parent / "log.parquet", folder, mlm.f1(), by="model", progress=False)


def bind(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(os.fspath(path))


@pytest.mark.parametrize("by_folder", [False, True], ids=["alone", "in a folder"])
@pytest.mark.parametrize("read", [mlm.scan, mlm.scan_states, update])
def test_what_is_no_file_is_said(read: Any, by_folder: bool, tmp_path: Path) -> None:
    """Nothing waits for a pipe, and none of them is called empty."""
    folder = tmp_path / "folder"
    folder.mkdir()
    kinds: dict[str, Callable[[Path], None]] = {
        "is a pipe, not a file": os.mkfifo,
        "is a socket, not a file": bind,
        "a link that leads to itself": lambda path: path.symlink_to(path.name),
    }
    for said, make_at in kinds.items():
        path = folder / "odd.parquet"
        make_at(path)
        with pytest.raises(mlm.FileError, match=said):
            read(folder if by_folder else path)
        path.unlink()


def test_a_device_is_said() -> None:
    for read in (mlm.scan, mlm.scan_states):
        with pytest.raises(mlm.FileError, match=r"^/dev/zero is a device, not a file"):
            read("/dev/zero")
