"""`update_states` twice at once, killed or interrupted: what is there is whole, and the next run makes the rest."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.places.files import beginning_of
from tests.support.daily_logs import ON_POSIX, check_answer, day_log, drafts_in, files_in, update, write_logs
from tests.support.differing import differing
from tests.support.folders import ROOT

pytestmark = pytest.mark.usefixtures("folder")


# -- two at once, and runs that end early ------------------------------------------------------------------------------

WORKER = """
import sys
import polars_mlmetrics as mlm
print("ready", file=sys.stderr, flush=True)
sys.stdin.readline()
mlm.update_states("logs/*.parquet", sys.argv[1], mlm.f1(average="macro"), mlm.n_rows(), by=["day", "model"])
"""
HOLDER = """
import fcntl, sys
with open(sys.argv[1], "a+b") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    print("held", file=sys.stderr, flush=True)
    sys.stdin.read()
"""
BUSY = "^another `update_states` is running in states"
MANY = range(12)
FEW = [mlm.f1(average="macro"), mlm.n_rows()]
"""What the worker folds."""


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a process, which ends with the test."""
    processes: list[subprocess.Popen[str]] = []

    def started(code: str, *arguments: str) -> subprocess.Popen[str]:
        command, pipe = [sys.executable, "-W", "error", "-c", code, *arguments], subprocess.PIPE
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        process = subprocess.Popen(command, env=environment, stdin=pipe, stderr=pipe, text=True)
        processes.append(process)
        return process

    yield started
    for process in processes:
        process.kill()
        process.communicate()


def wait_for(process: subprocess.Popen[str], said: str) -> None:
    assert process.stderr is not None
    assert any(said in line for line in process.stderr), f"it never said {said!r}"


def begin(process: subprocess.Popen[str]) -> None:
    wait_for(process, "ready")
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def write_many() -> pl.DataFrame:
    """Logs whose states are large enough to be caught while they are written."""
    return write_logs(*MANY, rows=2000, models=20)


def check_some(log: pl.DataFrame, folder: str) -> int:
    """How many states there are. They are whole, and give what their days give."""
    states = files_in(folder)
    if states:
        finished = mlm.scan_states(folder).mlm.finish(FEW, by="day").collect()
        days = log.filter(pl.col("day").is_in(finished["day"].to_list()))
        assert not differing(finished, mlm.evaluate(days, FEW, by="day"))
        assert finished.height == len(states)
    return len(states)


def check_rest(log: pl.DataFrame, folder: str) -> int:
    """How many states there are. What is missing is folded, and nothing is left over of a run that ended early."""
    there = check_some(log, folder)
    statuses = list(update(metrics=FEW, folder=folder).values())
    assert statuses == ["unchanged"] * there + ["folded"] * (len(MANY) - there)
    assert drafts_in(folder) == []
    assert check_some(log, folder) == len(MANY)
    return there


def test_a_draft_that_a_killed_run_has_left_is_taken_away() -> None:
    log = write_logs(1, 2)
    update("logs/01.parquet")
    (state,) = files_in()
    draft = Path("states") / f"{beginning_of(Path(state))}12345.draft"
    draft.write_bytes(Path(state).read_bytes()[:100])
    Path("states/notes.txt").write_text("mine")
    Path("states/.mine").write_text("mine")
    check_answer(day_log(1))
    update()
    assert not draft.exists()
    assert Path("states/notes.txt").exists()
    assert Path("states/.mine").exists()
    check_answer(log)


@ON_POSIX
@pytest.mark.parametrize("end", ["it ends", "it is killed"])
def test_one_that_is_at_work_keeps_others_out(end: str, start: Start) -> None:
    write_logs(1)
    update()
    log = pl.concat([day_log(1), write_logs(2)])
    process, before = start(HOLDER, "states/.lock"), files_in()
    wait_for(process, "held")
    for _ in range(2):
        with pytest.raises(mlm.StateError, match=BUSY):
            update()
        assert files_in() == before
    check_answer(day_log(1))  # who only reads is not kept out
    if end == "it is killed":
        process.kill()
    process.communicate()
    assert update() == {"logs/01.parquet": "unchanged", "logs/02.parquet": "folded"}
    check_answer(log)


@ON_POSIX
def test_a_folder_is_not_shared_with_a_run_that_is_in_the_middle(start: Start) -> None:
    log = write_many()
    process = start(WORKER, "states")
    begin(process)
    wait_for(process, "file 2 of 12")
    process.send_signal(signal.SIGSTOP)
    with pytest.raises(mlm.StateError, match=BUSY):
        update(metrics=FEW)
    update(metrics=FEW, folder="others")
    process.send_signal(signal.SIGCONT)
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert set(update(metrics=FEW).values()) == {"unchanged"}
    assert check_some(log, "states") == check_some(log, "others") == len(MANY)


@ON_POSIX
@pytest.mark.proof
def test_of_two_at_once_one_waits_for_no_one_and_no_state_is_there_twice(start: Start) -> None:
    log = write_many()
    processes = [start(WORKER, "states") for _ in range(2)]
    for process in processes:
        begin(process)
    told = [process.communicate(timeout=60)[1] for process in processes]
    assert 0 in [process.returncode for process in processes]
    for process, said in zip(processes, told, strict=True):
        assert process.returncode == 0 or re.search(BUSY.removeprefix("^"), said), said
    check_rest(log, "states")


@ON_POSIX
@pytest.mark.proof
def test_a_run_may_be_killed_at_any_moment(start: Start) -> None:
    """At 20 moments: after so many files, and a random while that is about as long as a file takes."""
    log, random = write_many(), np.random.default_rng()
    left = []
    following = start(WORKER, "states 0")
    for turn in range(20):
        process, folder, files = following, f"states {turn}", turn * len(MANY) // 20
        begin(process)
        following = start(WORKER, f"states {turn + 1}")  # it loads meanwhile
        if files:
            wait_for(process, f"file {files} of 12")
        time.sleep(random.uniform(0, 0.04))
        process.kill()
        process.communicate()
        Path(folder).mkdir(exist_ok=True)
        left.append(check_rest(log, folder))
    assert len({count for count in left if 0 < count < len(MANY)}) > 5, left


@pytest.mark.proof
@ON_POSIX
@pytest.mark.parametrize("files", [1, 5, 9])
def test_an_interrupt_leaves_no_draft(files: int, start: Start) -> None:
    log = write_many()
    process = start(WORKER, "states")
    begin(process)
    wait_for(process, f"file {files} of 12")
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "KeyboardInterrupt" in told
    assert drafts_in() == []
    assert files <= check_rest(log, "states") < len(MANY)
