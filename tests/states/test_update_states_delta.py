"""`update_states` into a Delta table: nothing is lost or there twice, whoever else writes and whenever a run ends."""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from deltalake import DeltaTable

import polars_mlmetrics as mlm
from polars_mlmetrics.states import delta_table
from polars_mlmetrics.states.delta_table import DeltaTableHere
from tests.states.test_update_states import BY, METRICS, ON_POSIX, REPOSITORY, check_answer, day_log, update, write_logs


@pytest.fixture(autouse=True)
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DeltaTable:
    """An empty table of states, in the folder in which the test works."""
    monkeypatch.chdir(tmp_path)
    pl.DataFrame(schema={"state": pl.String}).write_delta("states")
    return DeltaTable("states")


def meanwhile(monkeypatch: pytest.MonkeyPatch, done: Callable[[], object]) -> None:
    """Have something done after a state was made and before it is written."""
    put = DeltaTableHere.put

    def late(*given: Any) -> None:
        monkeypatch.setattr(DeltaTableHere, "put", put)
        done()
        put(*given)

    monkeypatch.setattr(DeltaTableHere, "put", late)


def version() -> int:
    return DeltaTable("states").version()


# -- each file once ----------------------------------------------------------------------------------------------------


def test_the_promises_are_those_of_a_folder() -> None:
    write_logs(1, 2, 3, 7)
    Path("logs/07.parquet").rename("logs/it's \\ 日本.parquet")
    days = {number: day_log(number) for number in (1, 2, 3, 7)}
    for status in ("folded", "unchanged"):
        assert Counter(update().values()) == {status: 4}
        check_answer(pl.concat(days.values()))
    assert version() == 4  # one transaction for each file
    DeltaTable("states").optimize.compact()  # then the rows of several are in one file
    days |= {2: day_log(2).head(30), 4: day_log(4), 7: day_log(7).head(30)}
    days[2].write_parquet("logs/02.parquet")
    days[4].write_parquet("logs/04.parquet")
    days[7].write_parquet("logs/it's \\ 日本.parquet")
    assert list(update().values()) == ["unchanged", "refolded", "unchanged", "folded", "refolded"]
    check_answer(pl.concat(days.values()))
    Path("logs/01.parquet").unlink()
    with pytest.raises(mlm.FileError, match=r"01\.parquet is gone, but its state states where log_path is .*01\.parq"):
        update(gone="raise")
    assert update()["logs/01.parquet"] == "vanished"
    check_answer(pl.concat(days.values()))
    assert update(gone="drop")["logs/01.parquet"] == "dropped"
    del days[1]
    check_answer(pl.concat(days.values()))
    assert update("logs/02.parquet")["logs/03.parquet"] == "not asked for"


def test_what_the_table_says_of_a_state() -> None:
    log = write_logs(1)
    found = mlm.update_states("logs", "states", METRICS, by=BY, progress=False)
    assert found["rows"].to_list() == [log.height]
    rows = pl.read_delta("states")
    path = Path("logs/01.parquet").resolve()
    assert rows["log_path"].unique().to_list() == [str(path)]
    assert rows["log_size"].unique().to_list() == [path.stat().st_size]
    assert rows["log_rows"].unique().to_list() == [log.height]


def test_states_that_were_appended_count_too() -> None:
    """Rows that name no file of a log stay as they are, whatever is written or deleted beside them."""
    mlm.state(day_log(1), METRICS, by=BY).mlm.plain().write_delta(
        "states", mode="append", delta_write_options={"schema_mode": "merge"}
    )
    write_logs(2, 3)
    assert update() == {"logs/02.parquet": "folded", "logs/03.parquet": "folded", None: "not asked for"}
    DeltaTable("states").optimize.compact()
    day_log(2).head(30).write_parquet("logs/02.parquet")
    Path("logs/03.parquet").unlink()
    update(gone="drop")
    check_answer(pl.concat([day_log(1), day_log(2).head(30)]))


def test_what_is_refused() -> None:
    write_logs(1)
    update()
    before = version()
    with pytest.raises(mlm.StateError, match="cannot be merged: their metrics differ"):
        update(metrics=[mlm.recall()])
    Path("copies").mkdir()
    day_log(1).write_parquet("copies/x.parquet")
    with pytest.raises(mlm.FileError, match=r"holds the rows of 01\.parquet, whose state is states where log_path is"):
        update("copies")
    assert version() == before
    day_log(1).write_delta("table")
    with pytest.raises(mlm.StateError, match=r"^table is a Delta table, but not of states: it lacks"):
        update(folder="table")
    pl.DataFrame(schema={"state": pl.String}).write_delta("empty")
    with pytest.raises(mlm.NameCollisionError, match="'log_size' is a column of the Delta table itself"):
        update(folder="empty", by=[pl.col("model").alias("log_size")])
    with pytest.raises(mlm.StateError, match="this table has no rows"):
        mlm.scan_states("empty")


def test_rows_that_something_else_has_written() -> None:
    write_logs(1)
    update()
    rows = pl.read_delta("states")
    rows.with_columns(pl.col("log_size") + 1, source=pl.lit(None, pl.String)).write_delta("states", mode="append")
    with pytest.raises(mlm.StateError, match="did not write these rows, or they are there twice"):
        update()
    rows.write_delta("states", mode="overwrite")
    rows.write_delta("states", mode="append")
    with pytest.raises(mlm.MetricError, match=r"01\.parquet"):
        update()
    with pytest.raises(mlm.MetricError, match=r"01\.parquet"):
        mlm.scan_states("states")


# -- several runs ------------------------------------------------------------------------------------------------------


def test_another_run_has_made_the_state_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    log = write_logs(1, 2)
    meanwhile(monkeypatch, update)
    assert Counter(update().values()) == {"folded": 2}
    assert version() == 2
    check_answer(log)


def test_another_run_writes_after_the_table_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Delta itself sees no conflict in two transactions that only add rows."""
    log = write_logs(1)
    update()
    log = pl.concat([log, write_logs(2)])
    write = delta_table._write

    def late(*given: Any) -> None:
        monkeypatch.setattr(delta_table, "_write", write)
        update()
        write(*given)

    monkeypatch.setattr(delta_table, "_write", late)
    assert update() == {"logs/01.parquet": "unchanged", "logs/02.parquet": "folded"}
    assert version() == 2
    check_answer(log)


def test_an_older_state_does_not_replace_a_newer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    write_logs(1)
    newer = day_log(1).head(30)

    def change() -> None:
        newer.write_parquet("logs/01.parquet")
        update()

    meanwhile(monkeypatch, change)
    with pytest.raises(mlm.FileError, match=r"01\.parquet has changed while it was folded: call update_states again"):
        update()
    check_answer(newer)
    assert update() == {"logs/01.parquet": "unchanged"}


def test_a_run_with_another_question_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    log = write_logs(1)
    meanwhile(monkeypatch, update)
    with pytest.raises(mlm.StateError, match=r"01\.parquet cannot be merged: their metrics differ"):
        update(metrics=[mlm.recall()])
    check_answer(log)


def test_the_state_of_a_file_that_has_come_back_is_not_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    write_logs(1, 2)
    update()
    Path("logs/02.parquet").unlink()
    drop = DeltaTableHere.drop
    back = day_log(2).head(30)

    def late(*given: Any) -> None:
        back.write_parquet("logs/02.parquet")
        update()
        drop(*given)

    monkeypatch.setattr(DeltaTableHere, "drop", late)
    update(gone="drop")
    check_answer(pl.concat([day_log(1), back]))


def test_it_gives_up_where_others_never_stop_writing(monkeypatch: pytest.MonkeyPatch) -> None:
    log = write_logs(1)
    update()
    write_logs(2)
    write = delta_table._write

    def late(*given: Any) -> None:
        DeltaTable("states").alter.set_table_properties({"delta.logRetentionDuration": "interval 30 days"})
        write(*given)

    monkeypatch.setattr(delta_table, "_write", late)
    monkeypatch.setattr(delta_table, "TRIES", 3)
    with pytest.raises(mlm.StateError, match=r"^states: another run wrote to this table first, 3 times in a row"):
        update()
    check_answer(log)


# -- processes ---------------------------------------------------------------------------------------------------------

RUN = """
import sys
import polars_mlmetrics as mlm
from tests.states.test_update_states import BY, METRICS

sys.stdin.readline()
mlm.update_states("logs", "states", METRICS, by=BY, gone="drop", progress=False)
"""

KILLED = """
import sys
import deltalake
import polars_mlmetrics as mlm
from tests.support.killing import killing
from tests.states.test_update_states import BY, METRICS

deltalake.write_deltalake = killing(deltalake.write_deltalake, sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
mlm.update_states("logs", "states", METRICS, by=BY, progress=False)
"""


def started(code: str, *arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    return subprocess.Popen([sys.executable, "-c", code, *arguments], env=environment, text=True, stdin=subprocess.PIPE)


@pytest.mark.proof
def test_several_writers_at_once() -> None:
    """Three runs at a time, in four rounds: files come, change and go. Nothing is lost, and nothing is there twice."""
    days: dict[int, pl.DataFrame] = {}
    for turn in range(4):
        for number in range(2 * turn, 2 * turn + 6):
            days[number] = day_log(number, rows=60 + 3 * turn)
            days[number].write_parquet(f"logs/{number:02}.parquet", mkdir=True)
        for number in [number for number in days if number < 2 * turn]:
            Path(f"logs/{number:02}.parquet").unlink()
            del days[number]
        runs = [started(RUN) for _ in range(3)]
        for run in runs:
            assert run.stdin is not None
            run.stdin.write("\n")
            run.stdin.flush()
        for run in runs:
            run.communicate()
        assert [run.returncode for run in runs] == [0, 0, 0]
        assert pl.read_delta("states")["log_path"].n_unique() == len(days)
        check_answer(pl.concat(days.values()))
        assert Counter(update().values()) == {"unchanged": len(days)}


@pytest.mark.proof
@ON_POSIX
@pytest.mark.parametrize("turn", [0, 2])
@pytest.mark.parametrize(
    ("moment", "seconds"), [("before", 0), ("during", 0), ("during", 0.003), ("during", 0.01), ("after", 0)]
)
def test_a_run_may_be_killed_at_any_moment(turn: int, moment: str, seconds: float) -> None:
    """Before, while and after it writes a state, the first and a later one; of files that are new or have changed."""
    days = [day_log(number, rows=600, models=20) for number in range(4)]
    for is_new in (True, False):
        known = [] if is_new else [log.head(300) for log in days]
        if known:
            DeltaTable("states").delete()
            write_days(known)
            update()
        write_days(days)
        run = started(KILLED, moment, str(turn), str(seconds))
        run.communicate()
        assert run.returncode == -signal.SIGKILL
        rows = pl.read_delta("states")
        done = rows.filter(log_rows=600)["log_path"].n_unique() if "log_rows" in rows.columns else 0
        assert done in {"before": {turn}, "during": {turn, turn + 1}, "after": {turn + 1}}[moment]
        there = [*days[:done], *known[done:]]
        if there:
            check_answer(pl.concat(there))
        assert Counter(update().values()) == Counter(
            {"unchanged": done, ("folded" if is_new else "refolded"): 4 - done}
        )
        check_answer(pl.concat(days))


def write_days(days: list[pl.DataFrame]) -> None:
    for number, log in enumerate(days):
        log.write_parquet(f"logs/{number:02}.parquet", mkdir=True)
