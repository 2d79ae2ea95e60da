"""`update_states`: each file is folded once, and whatever happens to it or to the files, no number is wrong."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.support.daily_logs import (
    BY,
    METRICS,
    OF_SAMPLES,
    ON_POSIX,
    check_answer,
    day_log,
    files_in,
    update,
    write_logs,
)
from tests.support.differing import differing

pytestmark = pytest.mark.usefixtures("folder")


# -- each file once ----------------------------------------------------------------------------------------------------


def test_each_file_is_folded_once() -> None:
    log = write_logs(1, 2, 3)
    assert update(metrics=OF_SAMPLES) == {f"logs/0{number}.parquet": "folded" for number in (1, 2, 3)}
    assert len(files_in()) == 3
    check_answer(log, metrics=OF_SAMPLES)
    before = files_in()
    assert update(metrics=OF_SAMPLES) == {f"logs/0{number}.parquet": "unchanged" for number in (1, 2, 3)}
    assert files_in() == before


def test_it_tells_of_each_file_where_its_state_is_and_how_many_rows_it_has(folder: Path) -> None:
    write_logs(1, 2, rows=30)
    table = mlm.update_states("logs", Path("states"), METRICS, by=BY, progress=False)
    assert table["path"].to_list() == [str(folder / "logs" / f"0{number}.parquet") for number in (1, 2)]
    assert table["rows"].to_list() == [30, 30]
    assert {Path(path).resolve() for path in table["state"]} == {Path(path).resolve() for path in files_in()}
    for number, state in zip((1, 2), table["state"], strict=True):
        finished = mlm.scan_states(state).mlm.finish(METRICS, by=BY).collect()
        assert not differing(finished, mlm.evaluate(day_log(number, rows=30), METRICS, by=BY))


@pytest.mark.parametrize("folder_of_states", ["states", "far/away/states", Path("states [1]* %41 ä")], ids=str)
def test_the_folder_is_made_where_there_is_none(folder_of_states: Any) -> None:
    log = write_logs(1)
    update(folder=folder_of_states)
    check_answer(log, folder_of_states)
    assert set(update(folder=folder_of_states).values()) == {"unchanged"}


def test_a_hidden_file_among_the_states_is_no_state() -> None:
    """Neither to `update_states` nor to `scan_states`, as it is to them in a folder of logs."""
    log = write_logs(1)
    update()
    Path("states/._01.parquet").write_bytes(b"of a Mac")
    Path("logs/._01.parquet").write_bytes(b"of a Mac")
    assert update() == {"logs/01.parquet": "unchanged"}
    check_answer(log)


def test_metrics_come_one_by_one_too() -> None:
    write_logs(1)
    table = mlm.update_states("logs", "states", mlm.f1(), mlm.n_rows(), by="day", score="other", progress=False)
    assert table["status"].to_list() == ["folded"]
    finished = mlm.scan_states("states").mlm.finish(mlm.f1(), mlm.n_rows(), by="day").collect()
    assert not differing(finished, mlm.evaluate(day_log(1), mlm.f1(), mlm.n_rows(), by="day", score="other"))


def test_a_new_file_is_folded_alone() -> None:
    write_logs(1, 3)
    update()
    before = files_in()
    log = pl.concat([write_logs(2), day_log(1), day_log(3)])
    assert update() == {"logs/01.parquet": "unchanged", "logs/02.parquet": "folded", "logs/03.parquet": "unchanged"}
    assert before.items() < files_in().items()
    check_answer(log)


def more_rows(path: Path) -> pl.DataFrame:
    log = pl.concat([day_log(2), day_log(7)])
    log.write_parquet(path)
    return log


def another_time(path: Path) -> pl.DataFrame:
    seen = path.stat()
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns + 1_000_000_000))
    return day_log(2)


def an_earlier_time(path: Path) -> pl.DataFrame:
    os.utime(path, ns=(0, 0))
    return day_log(2)


def the_same_size(path: Path) -> pl.DataFrame:
    """Other truths in as many bytes."""
    log = day_log(2).with_columns(truth=1 - pl.col("truth"))
    padded(path, log, path.stat().st_size)
    os.utime(path, ns=(1, 1))
    return log


def nothing_but_fewer_rows(path: Path) -> pl.DataFrame:
    """As many bytes, written at the same time."""
    seen = path.stat()
    log = day_log(2).head(57)
    padded(path, log, seen.st_size)
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert path.stat().st_mtime_ns == seen.st_mtime_ns
    return log


def padded(path: Path, log: pl.DataFrame, size: int | None = None) -> None:
    """Written with so much beside it that it takes so many bytes."""
    log.write_parquet(path, compression="uncompressed", metadata={"beside": "x" * 4000})
    if size is not None:
        more = size - path.stat().st_size
        log.write_parquet(path, compression="uncompressed", metadata={"beside": "x" * (4000 + more)})
        assert path.stat().st_size == size


@pytest.mark.one_in(2)
@pytest.mark.parametrize("change", [more_rows, another_time, an_earlier_time, the_same_size, nothing_but_fewer_rows])
def test_a_changed_file_is_folded_again(change: Callable[[Path], pl.DataFrame]) -> None:
    write_logs(1)
    path = Path("logs/02.parquet")
    padded(path, day_log(2))
    update()
    others = {name: file for name, file in files_in().items() if "02-" not in name}
    log = pl.concat([day_log(1), change(path)])
    assert update() == {"logs/01.parquet": "unchanged", "logs/02.parquet": "refolded"}
    assert len(files_in()) == 2
    assert others.items() <= files_in().items()
    check_answer(log)
    assert set(update().values()) == {"unchanged"}


def test_a_state_that_was_taken_away_is_made_again() -> None:
    log = write_logs(1, 2)
    update()
    Path(next(iter(files_in()))).unlink()
    assert sorted(update().values()) == ["folded", "unchanged"]
    check_answer(log)


def test_a_vanished_file_is_told_and_its_state_is_left() -> None:
    log = write_logs(1, 2)
    update()
    before = files_in()
    Path("logs/01.parquet").unlink()
    for _ in range(2):
        assert update() == {"logs/02.parquet": "unchanged", "logs/01.parquet": "vanished"}
        assert files_in() == before
    check_answer(log)
    write_logs(1)
    assert update() == {"logs/01.parquet": "refolded", "logs/02.parquet": "unchanged"}
    check_answer(log)


def test_sources_may_come_one_after_the_other() -> None:
    """A file that is there and was not asked for has not vanished."""
    log = write_logs(1, 2)
    assert update("logs/01.parquet") == {"logs/01.parquet": "folded"}
    for status in ("folded", "unchanged"):
        assert update("logs/02.parquet") == {"logs/02.parquet": status, "logs/01.parquet": "not asked for"}
        check_answer(log)


ODD_NAMES = ["a[1].parquet", "*.parquet", "a?.parquet", "a#1.parquet", "a%20b.parquet", "a b.parquet", "ä 日本.parquet"]


def folded_once(source: Any, *names: str) -> None:
    for number, name in enumerate(names):
        day_log(number).write_parquet(name, mkdir=True)
    for status in ("folded", "unchanged"):
        assert update(source) == dict.fromkeys(names, status)
        check_answer(pl.concat(map(day_log, range(len(names)))))


def test_files_of_one_name_in_two_folders_have_a_state_each() -> None:
    folded_once("logs/*/*.parquet", "logs/day=1/rows.parquet", "logs/day=2/rows.parquet")


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", [*ODD_NAMES, "a\nb.parquet", "a'\"b.parquet", "no suffix"])
def test_a_file_may_have_an_odd_name(name: str) -> None:
    names = [f"odd [x]* %41 #/{name}", "odd [x]* %41 #/a1.parquet"]
    folded_once(names, *names)


@ON_POSIX
@pytest.mark.parametrize("name", ["sha256:", "sha256:" + "0" * 64])
def test_a_folder_may_have_the_name_of_a_digest(name: str) -> None:
    folded_once(name, f"{name}/a.parquet")


def test_a_file_is_the_same_whichever_way_one_comes_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    log = write_logs(1, 2)
    update()
    Path("linked").symlink_to("logs")
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    for source in ("../logs/*.parquet", "../states/../logs", "../linked/*.parquet", "../elsewhere/../logs/*"):
        assert list(update(source, folder="../states").values()) == ["unchanged"] * 2
    check_answer(log, "../states")


def test_a_log_without_rows_is_folded_too() -> None:
    log = write_logs(1)
    log.clear().write_parquet("logs/02.parquet")
    assert update() == {"logs/01.parquet": "folded", "logs/02.parquet": "folded"}
    check_answer(log)


# -- late truths -------------------------------------------------------------------------------------------------------


def test_counts_by_day_tell_which_truths_have_arrived() -> None:
    """The second day has no truth, then half of them, then all."""
    first, second = day_log(1), day_log(2)
    write_logs(1)
    told = []
    for known in (0, 30, 60):
        late = second.with_columns(truth=pl.when(pl.int_range(pl.len()) < known).then("truth"))
        late.write_parquet("logs/02.parquet")
        assert update()["logs/02.parquet"] == ("folded" if known == 0 else "refolded")
        check_answer(pl.concat([first, late]))
        by_day = mlm.scan_states("states").mlm.finish(mlm.n_rows(), mlm.n_excluded(), by="day").collect()
        told.append(by_day.select("n_rows", "n_excluded").rows())
    assert told == [[(60, 0), (0, 60)], [(60, 0), (30, 30)], [(60, 0), (60, 0)]]


# -- what it says ------------------------------------------------------------------------------------------------------


def test_it_says_on_stderr_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    write_logs(1, 2)
    update(progress=True)
    told = capsys.readouterr()
    assert told.out == ""
    assert re.sub(r"\d+ s", "0 s", told.err).splitlines() == [f"file {n} of 2 done, 0 s" for n in (1, 2)]
    write_logs(4, 5)
    update(progress=True)
    assert "file 2 of 2 done" in capsys.readouterr().err  # of those that it folds


def test_it_says_nothing_where_there_is_nothing_to_do_or_nobody_asks(capsys: pytest.CaptureFixture[str]) -> None:
    write_logs(1)
    update(progress=False)
    update(progress=True)
    assert capsys.readouterr() == ("", "")
