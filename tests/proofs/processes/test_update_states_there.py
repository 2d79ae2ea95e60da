"""`update_states` of logs and states in an object store: what a lock does on a disk, the store does by its answers."""

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.places.place import Address
from polars_mlmetrics.places.stores import Store
from polars_mlmetrics.states.folders import Log
from tests.support.daily_logs import BY, METRICS, ON_POSIX, day_log
from tests.support.differing import differing
from tests.support.s3_server import keys, options_of, put, taken_away

LOGS, STATES = "s3://bucket/logs/*.parquet", "s3://bucket/states"


@pytest.fixture
def options(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(tmp_path)
    Path("logs").mkdir()
    return options_of(server)


def put_log(options: dict[str, Any], source: str, number: int, log: pl.DataFrame | None = None) -> pl.DataFrame:
    """Write the log of a day to where a source looks for it."""
    log = day_log(number) if log is None else log
    if source == LOGS:
        put(options, f"logs/{number:02}.parquet", log)
    else:
        log.write_parquet(f"logs/{number:02}.parquet")
    return log


def update(options: dict[str, Any], source: Any = LOGS, folder: Any = STATES, **more: Any) -> dict[str, str]:
    """Update the states, and the status of each file by its name."""
    asked: dict[str, Any] = {"by": BY, "progress": False, "storage_options": options, **more}
    table = mlm.update_states(source, folder, asked.pop("metrics", METRICS), **asked)
    return {
        path.rpartition("/")[2].removesuffix(".parquet"): status
        for path, status in table.select("path", "status").rows()
    }


def check_answer(options: dict[str, Any], log: pl.DataFrame, folder: str = STATES) -> None:
    """The states give what the rows give: a row that is lost or there twice would show in `n_rows`."""
    opened = {"storage_options": options} if folder == STATES else {}
    finished = mlm.scan_states(folder, **opened).mlm.finish(METRICS, by="day").collect()
    assert not differing(finished, mlm.evaluate(log, METRICS, by="day"))


# -- each file once ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("source", "folder"), [(LOGS, STATES), ("logs/*.parquet", STATES), (LOGS, "states")], ids=str)
def test_the_promises_are_those_of_a_folder_here(options: dict[str, Any], source: str, folder: str) -> None:
    days = {number: put_log(options, source, number) for number in (1, 2, 3)}
    for status in ("folded", "unchanged"):
        assert update(options, source, folder) == dict.fromkeys(["01", "02", "03"], status)
        check_answer(options, pl.concat(days.values()), folder)
    days[2] = put_log(options, source, 2, days[2].with_columns(truth=1 - pl.col("truth")))
    days[4] = put_log(options, source, 4)
    assert update(options, source, folder) == {"01": "unchanged", "02": "refolded", "03": "unchanged", "04": "folded"}
    check_answer(options, pl.concat(days.values()), folder)
    if source == LOGS:
        taken_away(options, "logs/01.parquet")
    else:
        Path("logs/01.parquet").unlink()
    with pytest.raises(mlm.FileError, match=r"logs/01\.parquet is gone, but its state .* is still there"):
        update(options, source, folder, gone="raise")
    rest = dict.fromkeys(["02", "03", "04"], "unchanged")
    assert update(options, source, folder) == {**rest, "01": "vanished"}
    check_answer(options, pl.concat(days.values()), folder)
    assert update(options, source, folder, gone="drop") == {**rest, "01": "dropped"}
    del days[1]
    check_answer(options, pl.concat(days.values()), folder)
    assert update(options, source.replace("*", "02"), folder)["03"] == "not asked for"


def test_another_file_of_the_same_size_and_time_has_changed(options: dict[str, Any]) -> None:
    log = day_log(1).with_columns(score=pl.lit(0.25), truth=pl.lit(1))
    for truth in (1, 0):
        log = put_log(options, LOGS, 1, log.with_columns(truth=pl.lit(truth)))
        assert update(options) == {"01": "folded" if truth else "refolded"}
        check_answer(options, log)
    put_log(options, LOGS, 1, log)
    assert update(options) == {"01": "unchanged"}  # the same bytes again are the same file


def test_what_has_not_changed_is_not_opened(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (1, 2):
        put_log(options, LOGS, number)
    update(options)
    table = mlm.update_states(LOGS, STATES, METRICS, by=BY, progress=False, storage_options=options)

    monkeypatch.setattr(Store, "part", Mock(side_effect=AssertionError))
    monkeypatch.setattr(Log, "source", property(Mock(side_effect=AssertionError)))
    again = mlm.update_states(LOGS, STATES, METRICS, by=BY, progress=False, storage_options=options)
    assert again.equals(table)
    assert again["rows"].to_list() == [60, 60]
    assert again["path"].to_list() == ["s3://bucket/logs/01.parquet", "s3://bucket/logs/02.parquet"]


@pytest.mark.parametrize("other", ["s3://bucket/copies/*", "logs/*.parquet"], ids=["there", "here"])
def test_a_copy_is_known_wherever_it_lies(options: dict[str, Any], other: str) -> None:
    log = put_log(options, LOGS, 1)
    update(options)
    put(options, "copies/x.parquet", log)
    put_log(options, "logs/*.parquet", 1)
    before = keys(options)
    with pytest.raises(mlm.FileError, match=r"holds the rows of 01\.parquet, whose state is s3://bucket/states/01-"):
        update(options, other)
    assert keys(options) == before


def test_files_are_made_alike(options: dict[str, Any]) -> None:
    put_log(options, LOGS, 1)
    put_log(options, LOGS, 2, day_log(2).rename({"score": "p"}))
    with pytest.raises(mlm.ColumnError, match=r"^s3://bucket/logs/02\.parquet: .*score.*prepare="):
        update(options)
    update(options, prepare=lambda log: log.rename({"p": "score"}, strict=False))
    check_answer(options, pl.concat([day_log(1), day_log(2)]))


def test_what_prepare_reads_and_does_is_a_part_of_the_log(options: dict[str, Any], folder: Path) -> None:
    put_log(options, LOGS, 1)
    late = Path("late.parquet")
    named: Any = {"prepare": lambda log: log.filter(pl.col("label") != "a"), "reads": [late]}
    for place, status in enumerate(["folded", "refolded"]):
        pl.DataFrame({"sample": range(place)}).write_parquet(late)
        assert [*update(options, **named).values()] == [status]
        assert [*update(options, **named).values()] == ["unchanged"]
    assert [*update(options, prepare_version="2", **named).values()] == ["refolded"]


ODD_NAMES = ["a b", "a%20b", "a#1", "ä 日本", "s*r", "q?x", "b[1]"]


def test_odd_names(options: dict[str, Any]) -> None:
    for place, name in enumerate(ODD_NAMES):
        put(options, f"odd/{name}.parquet", day_log(place))
    for status in ("folded", "unchanged"):
        assert update(options, "s3://bucket/odd") == dict.fromkeys(ODD_NAMES, status)
        check_answer(options, pl.concat(map(day_log, range(len(ODD_NAMES)))))


@pytest.mark.parametrize(
    ("source", "folder", "said"),
    [
        (LOGS, "s3://bucket/states*", r"^s3://bucket/states\* is a pattern: pass a folder"),
        (LOGS, "s3://bucket/table", "^s3://bucket/table is a Delta table, and states are files"),
        (LOGS, "s3://bucket/logs/01.parquet", r"^s3://bucket/logs/01\.parquet is a file: pass a folder"),
        ("s3://bucket/nothing/*.parquet", STATES, "^no file matches s3://bucket/nothing/"),
        ("s3://bucket/broken.parquet", STATES, r"^s3://bucket/broken\.parquet cannot be read as parquet"),
        ("s3://bucket/table/a.parquet", STATES, "^s3://bucket/table/ is a Delta table"),
        (LOGS, "s3://bucket/logs", r"^s3://bucket/logs/01\.parquet is not a state"),
    ],
)
def test_what_is_refused(options: dict[str, Any], source: str, folder: str, said: str) -> None:
    put_log(options, LOGS, 1)
    put(options, "broken.parquet", b"PAR1 and more")
    put(options, "table/a.parquet", day_log(2))
    put(options, "table/_delta_log/0.json", b"{}")
    before = keys(options)
    with pytest.raises(mlm.MetricError, match=said):
        update(options, source, folder)
    assert keys(options) == before


def test_options_that_nothing_needs(options: dict[str, Any]) -> None:
    put_log(options, "logs/*.parquet", 1)
    with pytest.raises(mlm.ParameterError, match="apply to paths that begin with s3://"):
        update(options, "logs/*.parquet", "states")


# -- several runs ------------------------------------------------------------------------------------------------------


def meanwhile(monkeypatch: pytest.MonkeyPatch, done: Callable[[], object]) -> None:
    """Have something done after a state was made and before it is written."""
    write = Store.put

    def late(store: Store, *given: Any, **named: Any) -> None:
        monkeypatch.setattr(Store, "put", write)
        done()
        write(store, *given, **named)

    monkeypatch.setattr(Store, "put", late)


def states_in(options: dict[str, Any]) -> list[str]:
    return [key for key in keys(options) if key.startswith("states/")]


def test_another_run_has_made_the_state_meanwhile(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    log = put_log(options, LOGS, 1)
    meanwhile(monkeypatch, lambda: update(options))
    assert update(options) == {"01": "folded"}
    assert len(states_in(options)) == 1
    check_answer(options, log)


def test_an_older_state_does_not_replace_a_newer_one(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    put_log(options, LOGS, 1)
    newer = day_log(1).with_columns(truth=1 - pl.col("truth"))

    def change() -> None:
        put_log(options, LOGS, 1, newer)
        update(options)

    meanwhile(monkeypatch, change)
    with pytest.raises(mlm.FileError, match=r"01\.parquet has changed while it was folded: call update_states again"):
        update(options)
    check_answer(options, newer)
    assert update(options) == {"01": "unchanged"}


def test_a_newer_state_replaces_an_older_one(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The other run has folded the file as it was before."""
    put_log(options, LOGS, 1, day_log(1).head(30))
    update(options)
    (state,) = states_in(options)
    older = Store(options).get(Address("s3://bucket", state))[0]
    taken_away(options, state)
    log = put_log(options, LOGS, 1)
    meanwhile(monkeypatch, lambda: put(options, state, older))
    assert update(options) == {"01": "folded"}
    check_answer(options, log)


def test_a_state_that_was_deleted_meanwhile_is_made_again(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    put_log(options, LOGS, 1)
    update(options)
    log = put_log(options, LOGS, 1, day_log(1).head(30))
    (state,) = states_in(options)
    meanwhile(monkeypatch, lambda: taken_away(options, state))
    assert update(options) == {"01": "refolded"}
    check_answer(options, log)


def test_a_run_with_another_question_is_told(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    log = put_log(options, LOGS, 1)
    meanwhile(monkeypatch, lambda: update(options))
    with pytest.raises(mlm.StateError, match=r"^s3://bucket/states/01-.* cannot be merged: their metrics differ"):
        update(options, metrics=[mlm.recall()])
    check_answer(options, log)


def test_a_file_that_changes_while_it_is_folded(options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    put_log(options, LOGS, 1)
    fingerprint = Log.fingerprint.func

    def changing(log: Log) -> str:
        put_log(options, LOGS, 1, day_log(2))
        return fingerprint(log)

    monkeypatch.setattr(Log, "fingerprint", property(changing))
    with pytest.raises(mlm.FileError, match="has changed while it was folded"):
        update(options)
    assert states_in(options) == []


def test_several_writers_at_once(options: dict[str, Any]) -> None:
    """Four runs at a time, in five rounds: files come, change and go. Nothing is lost, and nothing is there twice."""
    days: dict[int, pl.DataFrame] = {}
    for turn in range(5):
        for number in range(2 * turn, 2 * turn + 6):
            days[number] = put_log(options, LOGS, number, day_log(number, rows=60 + 3 * turn))
        for number in [number for number in days if number < 2 * turn]:
            taken_away(options, f"logs/{number:02}.parquet")
            del days[number]
        with ThreadPoolExecutor(4) as pool:
            runs = [pool.submit(update, options, gone="drop") for _ in range(4)]
        for run in runs:
            statuses = run.result()
            assert {f"{number:02}" for number in days} <= statuses.keys()
        assert len(states_in(options)) == len(days)
        check_answer(options, pl.concat(days.values()))
        assert Counter(update(options).values()) == {"unchanged": len(days)}


WORKER = """
import json, sys
import obstore
import polars_mlmetrics as mlm
from tests.support.killing import killing
from tests.support.daily_logs import BY, METRICS

options, *moment = json.loads(sys.argv[1])
obstore.put = killing(obstore.put, *moment)
mlm.update_states("s3://bucket/logs", "s3://bucket/states", METRICS, by=BY, progress=False, storage_options=options)
"""


@ON_POSIX
def test_a_run_may_be_killed_at_any_moment(options: dict[str, Any]) -> None:
    """Before, while and after it writes a state, the first and a later one."""
    days = [put_log(options, LOGS, number, day_log(number, rows=600, models=20)) for number in range(6)]
    moments = [("before", 0.0), *(("during", seconds) for seconds in (0, 0.002, 0.01)), ("after", 0.0)]
    for turn in (0, 3):
        for moment, seconds in moments:
            for state in states_in(options):
                taken_away(options, state)
            given = json.dumps([options, moment, turn, seconds])
            run = subprocess.run([sys.executable, "-c", WORKER, given], cwd=Path(__file__).parents[3], check=False)
            assert run.returncode == -signal.SIGKILL
            there = len(states_in(options))
            assert there in {"before": {turn}, "during": {turn, turn + 1}, "after": {turn + 1}}[moment]
            if there:
                whole = mlm.scan_states(STATES, storage_options=options).mlm.finish(METRICS, by="day").collect()
                assert not differing(whole, mlm.evaluate(pl.concat(days[:there]), METRICS, by="day"))
            assert Counter(update(options).values()) == Counter(unchanged=there, folded=len(days) - there)
            check_answer(options, pl.concat(days))
            assert len(states_in(options)) == len(days)
