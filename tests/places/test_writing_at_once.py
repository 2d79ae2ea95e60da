"""Of several writers none harms another; a full disk and a closed folder are errors."""

import errno
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Barrier, Event, Thread
from typing import Any
from unittest.mock import Mock

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.places.programs import lines_of
from tests.places.writers import names_here, write_whole, writer
from tests.support.folders import ROOT

pytestmark = pytest.mark.usefixtures("folder")


# -- several at once ---------------------------------------------------------------------------------------------------


def test_no_two_drafts_of_a_file_have_one_name() -> None:
    """Not in one process, and not where processes have the same number, as in two containers."""
    drafts: list[Path] = []

    def write(draft: Path) -> None:
        drafts.append(draft)
        if len(drafts) < 3:
            write_whole(Path("a.parquet"), write)
        draft.write_bytes(b"whole")

    write_whole(Path("a.parquet"), write)
    assert len(set(drafts)) == 3
    assert names_here() == ["a.parquet"]


def at_once(work: Callable[[int], Any], count: int) -> list[Any]:
    """What comes of work in as many threads, or the error of each."""
    barrier, told = Barrier(count), [None] * count

    def run(turn: int) -> None:
        barrier.wait()
        try:
            told[turn] = work(turn)
        except mlm.FileError as error:
            told[turn] = error  # type: ignore[call-overload]

    threads = [Thread(target=run, args=(turn,)) for turn in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return told


def slowly(content: bytes) -> Callable[[Path], None]:
    return writer(content, then=lambda: time.sleep(0.001))


def test_threads_that_write_one_file_never_show_half_of_it() -> None:
    path, seen, ended = Path("a.parquet"), set[bytes](), Event()
    contents = [bytes([turn]) * (turn + 1) * 5000 for turn in range(4)]
    path.write_bytes(contents[0])

    def read() -> None:
        while not ended.is_set():
            seen.add(path.read_bytes())

    reader = Thread(target=read)
    reader.start()
    for _ in range(25):
        assert at_once(lambda turn: write_whole(path, slowly(contents[turn])), 4) == [None] * 4
    ended.set()
    reader.join()
    assert seen
    assert seen <= set(contents)
    assert names_here() == ["a.parquet"]


@pytest.mark.parametrize("links", [True, False], ids=["links", "no links"])
def test_of_threads_that_write_a_new_file_one_wins(links: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not links:
        monkeypatch.setattr(Path, "hardlink_to", Mock(side_effect=OSError(errno.EPERM, "Operation not permitted")))
    contents = [bytes([turn]) * 5000 for turn in range(4)]
    for turn in range(25):
        path = Path(f"{turn}.parquet")

        def write(turn: int, path: Path = path) -> None:
            write_whole(path, slowly(contents[turn]), overwrite=False)

        told = at_once(write, 4)
        (winner,) = [turn for turn, error in enumerate(told) if error is None]
        assert path.read_bytes() == contents[winner]
        assert {str(error) for error in told if error} == {f"{path} already exists: pass overwrite=True to replace it."}
    assert len(names_here()) == 25


RACER = """
import sys
import polars as pl
import polars_mlmetrics as mlm

number = int(sys.argv[1])
rows = 10 ** (number + 1)
state = mlm.state(pl.DataFrame({"score": [0.9] * rows, "truth": [1] * rows}), mlm.n_rows())
print("ready", flush=True)
for turn in range(20):
    sys.stdin.readline()
    try:
        mlm.write_state(state, f"{turn}.parquet")
        print("written", flush=True)
    except mlm.FileError as error:
        print(error, flush=True)
"""


@pytest.mark.proof
def test_of_processes_that_write_a_new_state_one_wins() -> None:
    pipe = subprocess.PIPE
    told = {**os.environ, "PYTHONPATH": str(ROOT)}
    start = [sys.executable, "-c", RACER]
    racers = [subprocess.Popen([*start, f"{n}"], env=told, stdin=pipe, stdout=pipe, text=True) for n in range(3)]
    assert [line_of(racer) for racer in racers] == ["ready"] * 3
    for turn in range(20):
        for racer in racers:
            assert racer.stdin is not None
            racer.stdin.write("\n")
            racer.stdin.flush()
        lines = [line_of(racer) for racer in racers]
        winner = lines.index("written")
        lost = f"{turn}.parquet already exists: pass overwrite=True to replace it."
        assert sorted(lines) == sorted(["written", lost, lost])
        finished = mlm.scan_states(f"{turn}.parquet").mlm.finish(mlm.n_rows()).collect()
        assert finished.item() == 10 ** (winner + 1)
    for racer in racers:
        racer.communicate(timeout=60)
    assert names_here() == sorted(f"{turn}.parquet" for turn in range(20))


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


# -- a disk that is full, a folder that is closed ----------------------------------------------------------------------

FULL = """
import resource
import polars as pl
import polars_mlmetrics as mlm

log = pl.read_parquet("log.parquet")
state = mlm.state(log, mlm.accuracy(), by="key")
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
for write in (
    lambda: mlm.write_state(state, "new.parquet"),
    lambda: mlm.write_state(state, "old.parquet", overwrite=True),
    lambda: mlm.update_states("log.parquet", "states", mlm.accuracy(), by="key"),
):
    try:
        write()
    except mlm.FileError as error:
        print(error)
"""

CLOSED = """
import os
import polars as pl
import polars_mlmetrics as mlm

if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
log = pl.read_parquet("log.parquet")
for write in (
    lambda: mlm.write_state(mlm.state(log, mlm.accuracy()), "closed/new.parquet"),
    lambda: mlm.update_states("log.parquet", "closed", mlm.accuracy()),
    lambda: mlm.update_states("log.parquet", "closed/states", mlm.accuracy()),
    lambda: mlm.scan("secret"),
    lambda: mlm.scan("secret/log.parquet"),
    lambda: mlm.scan("secret.parquet"),
    lambda: mlm.update_states("secret", "closed", mlm.accuracy()),
    lambda: mlm.update_states("secret.parquet", "closed", mlm.accuracy()),
    lambda: mlm.scan_states("secret"),
    lambda: mlm.scan_states("secret.parquet"),
):
    try:
        write()
    except mlm.FileError as error:
        print(error)
"""


def made_log() -> pl.DataFrame:
    """Its state by key is of many bytes."""
    rows = 20_000
    return pl.DataFrame({"key": range(rows), "score": [0.9] * rows, "truth": [1] * rows})


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such limit")
def test_a_full_disk_is_reported_of_the_state_and_leaves_nothing_of_it() -> None:
    made_log().write_parquet("log.parquet")
    mlm.write_state(mlm.state(made_log(), mlm.accuracy()), "old.parquet")
    old = Path("old.parquet").read_bytes()
    new, replaced, folded = lines_of(FULL)
    for line, name in ((new, "new"), (replaced, "old"), (folded, "states/log-")):
        assert re.match(rf"\S*{name}\S*\.parquet cannot be written: .*File too large", line), line
    assert Path("old.parquet").read_bytes() == old
    assert names_here() == ["log.parquet", "old.parquet", "states"]
    assert [path.name for path in Path("states").iterdir()] == [".lock"]


REFUSED = """\
the folder closed cannot be written to.
closed/.lock cannot be written: Permission denied.
closed/states cannot be written: Permission denied.
the folder secret cannot be read: Permission denied.
secret/log.parquet cannot be read: Permission denied.
secret.parquet cannot be read as parquet: Permission denied (os error 13): secret.parquet
the folder secret cannot be read: Permission denied.
{here}/secret.parquet cannot be read as parquet: Permission denied (os error 13): {here}/secret.parquet
secret cannot be read: Permission denied.
secret.parquet cannot be read: Permission denied.
"""


@pytest.fixture
def open_folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that other users get to, as they do not to those of pytest."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        monkeypatch.chdir(name)
        yield Path(name).resolve()
        Path("secret").chmod(0o755)


@pytest.mark.skipif(sys.platform == "win32", reason="it has other rights")
def test_a_place_without_the_right_is_reported(open_folder: Path) -> None:
    made_log().write_parquet("log.parquet")
    made_log().write_parquet("secret.parquet")
    Path("secret.parquet").chmod(0)
    Path("closed").mkdir(mode=0o555)
    Path("secret").mkdir(mode=0)
    assert lines_of(CLOSED) == REFUSED.format(here=open_folder).splitlines()
    assert list(Path("closed").iterdir()) == []
