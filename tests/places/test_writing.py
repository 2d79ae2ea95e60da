"""A file is written whole or not at all, and of several writers none harms another."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.places import files
from polars_mlmetrics.places.files import FILES
from tests.places.made_files import ODD_NAMES, make, names_of
from tests.places.writers import names_here, write_whole, writer
from tests.support.folders import ROOT

pytestmark = pytest.mark.usefixtures("folder")


# -- where a file can be written ---------------------------------------------------------------------------------------


def refused(path: str, said: str, *, overwrite: bool) -> None:
    with pytest.raises(mlm.FileError, match=said):
        FILES.check_free(Path(path), overwrite=overwrite)


def test_a_new_file_can_be_written_and_an_old_one_where_that_is_said(folder: Path) -> None:
    make("old.parquet")
    for path in (Path("new.parquet"), folder / "new.parquet"):
        FILES.check_free(path, overwrite=False)
        FILES.check_free(path, overwrite=True)
    FILES.check_free(Path("old.parquet"), overwrite=True)
    refused("old.parquet", r"^old\.parquet already exists: pass overwrite=True", overwrite=False)
    assert names_here() == ["old.parquet"]  # nothing is tried out


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("path", ["no/a.parquet", "no/deeper/a.parquet", "file/a.parquet", "nowhere/a.parquet"])
def test_the_folder_must_be_there(path: str, overwrite: bool) -> None:
    make("file")
    Path("nowhere").symlink_to("no")
    refused(path, f"^there is no folder {Path(path).parent} ", overwrite=overwrite)


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("name", ["a folder", "a link to a file", "a link to a folder", "a broken link", "a pipe"])
def test_only_a_plain_file_is_written_over(name: str, overwrite: bool) -> None:
    make("a folder/a.parquet", "a file")
    Path("a link to a file").symlink_to("a file")
    Path("a link to a folder").symlink_to("a folder")
    Path("a broken link").symlink_to("nothing")
    os.mkfifo("a pipe")
    refused(name, f"^{name} is not a plain file", overwrite=overwrite)


@pytest.mark.parametrize("by", ["hand", "the system"])
def test_a_folder_that_is_closed_is_said_to_be(by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("closed").mkdir(mode=0o555)
    if by == "hand":
        monkeypatch.setattr(os, "access", lambda path, mode: (str(path), mode) != ("closed", os.W_OK))
    elif os.access("closed", os.W_OK):
        pytest.skip("this user may write everywhere")
    refused("closed/a.parquet", "^the folder closed cannot be written to", overwrite=by != "hand")


# -- whole or not at all -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.parquet", "no suffix", *ODD_NAMES])
def test_a_file_is_written_and_nothing_beside_it(name: str, folder: Path) -> None:
    for path in (Path(name), folder / name):
        for content in (b"old" * 1000, b"new"):
            write_whole(path, writer(content))
            assert path.read_bytes() == content
            assert names_here() == [name]


@pytest.mark.parametrize("old", [b"old", None])
def test_the_old_file_or_none_is_there_until_the_new_one_is_whole(old: bytes | None) -> None:
    path, seen = Path("a.parquet"), list[bytes | None]()
    if old is not None:
        path.write_bytes(old)
    write_whole(path, writer(b"new", then=lambda: seen.append(path.read_bytes() if path.exists() else None)))
    assert (seen, path.read_bytes()) == ([old], b"new")


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit, OSError, pl.exceptions.ComputeError])
@pytest.mark.parametrize("old", [b"old", None])
def test_a_writer_that_fails_midway_leaves_all_as_it_was(error: type[BaseException], old: bytes | None) -> None:
    def fail() -> NoReturn:
        raise error("midway")

    path = Path("a.parquet")
    if old is not None:
        path.write_bytes(old)
    named = error in (OSError, pl.exceptions.ComputeError)
    with pytest.raises(mlm.FileError if named else error, match="midway") as caught:
        write_whole(path, writer(b"new", then=fail))
    assert not named or str(caught.value) == "a.parquet cannot be written: midway."
    assert names_here() == ([] if old is None else ["a.parquet"])
    assert old is None or path.read_bytes() == old


def test_a_draft_lies_in_the_same_folder_and_is_no_file_of_it() -> None:
    make("logs/old.parquet")
    drafts: list[Path] = []

    def write(draft: Path) -> None:
        draft.write_bytes(b"new")
        drafts.append(draft)
        assert names_of("logs") == ["logs/old.parquet"]
        assert names_of("logs/*.parquet") == ["logs/old.parquet"]

    write_whole(Path("logs/new.parquet"), write)
    assert [draft.parent for draft in drafts] == [Path("logs")]
    assert names_of("logs") == ["logs/new.parquet", "logs/old.parquet"]


def abandoned(name: str, *, seconds: float) -> Path:
    """What a killed writer of a file has left."""
    draft = Path(f"{files.beginning_of(Path(name))}0123456789abcdef.draft")
    draft.write_bytes(b"half")
    os.utime(draft, (time.time() - seconds,) * 2)
    return draft


def test_the_draft_of_a_killed_writer_goes_with_the_next_write_of_that_file() -> None:
    other = abandoned("b.parquet", seconds=61)
    young = abandoned("a.parquet", seconds=1)
    young = young.rename(young.name.replace("0", "1"))
    abandoned("a.parquet", seconds=61)
    write_whole(Path("a.parquet"), writer(b"new"))
    assert names_here() == sorted([other.name, young.name, "a.parquet"])


def test_the_draft_of_a_writer_at_work_stays_however_old_it_is() -> None:
    def write(draft: Path) -> None:
        draft.write_bytes(b"slow")
        os.utime(draft, (0, 0))
        write_whole(Path("a.parquet"), writer(b"quick"))
        assert draft.exists()

    write_whole(Path("a.parquet"), write)
    assert Path("a.parquet").read_bytes() == b"slow"
    assert names_here() == ["a.parquet"]


def test_the_bytes_are_on_the_disk_before_they_get_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def tell(owner: Any, what: str) -> None:
        do = getattr(owner, what)
        monkeypatch.setattr(owner, what, lambda *given: (done.append(what), do(*given))[1])

    tell(os, "fsync")
    tell(Path, "replace")
    write_whole(Path("a.parquet"), writer(b"new"))
    assert done == ["fsync", "replace", "fsync"]  # and the name itself after


KILLED = """
import os, signal
from pathlib import Path
from polars_mlmetrics.places.files import write_whole

def write(draft):
    draft.write_bytes(b"ne")
    os.kill(os.getpid(), signal.SIGKILL)

write_whole(Path("a.parquet"), write, overwrite=True)
"""


def test_a_process_that_is_killed_midway_leaves_the_old_file() -> None:
    path, told = Path("a.parquet"), {**os.environ, "PYTHONPATH": str(ROOT)}
    path.write_bytes(b"old")
    ended = subprocess.run([sys.executable, "-c", KILLED], env=told, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"
    assert names_of(".") == ["a.parquet"]
    write_whole(path, writer(b"new"))
    assert path.read_bytes() == b"new"
