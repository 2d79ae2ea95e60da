"""`update_states`: each file is folded once, and whatever happens to it or to the files, no number is wrong."""

import os
import re
import shutil
import sys
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.test_passes import differing

REPOSITORY = Path(__file__).parents[1]
METRICS = [mlm.f1(average="macro"), mlm.roc_auc(bins=16), mlm.ndcg(k=2), mlm.n_rows(), mlm.n_excluded()]
BY = ["day", "model"]
ON_POSIX = pytest.mark.skipif(sys.platform == "win32", reason="it sends signals")


def day_log(number: int, rows: int = 60, models: int = 2) -> pl.DataFrame:
    """The log of one day, whose samples are of that day and of one model each."""
    random = np.random.default_rng(number)
    place = np.arange(rows)
    columns = {
        "day": [date(2026, 1, 1) + timedelta(days=number)] * rows,
        "model": [f"model {turn}" for turn in (place // 3 % models).tolist()],
        "sample": number * 100_000 + place // 3,
        "label": np.array(list("abc"))[place % 3],
        "score": random.choice([0.1, 0.25, 0.5, 0.75, 0.9], rows),
        "truth": random.choice([0, 1], rows),
        "other": random.random(rows),
    }
    return pl.DataFrame(columns)


def write_logs(*numbers: int, **options: Any) -> pl.DataFrame:
    """The logs of some days, as files, and together."""
    logs = [day_log(number, **options) for number in numbers]
    for number, log in zip(numbers, logs, strict=True):
        log.write_parquet(f"logs/{number:02}.parquet", mkdir=True)
    return pl.concat(logs)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which the test works."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def update(source: Any = "logs/*.parquet", metrics: Any = METRICS, folder: Any = "states", **options: Any) -> Any:
    """Update the states, and the status of each file by its path."""
    table = mlm.update_states(source, folder, metrics, **{"by": BY, "progress": False, **options})
    assert table.schema == {"path": pl.String, "state": pl.String, "rows": pl.Int64, "status": pl.String}
    here = f"{Path.cwd()}{os.sep}"
    return {path and path.removeprefix(here): status for path, status in table.select("path", "status").rows()}


def files_in(folder: Any = "states") -> dict[str, tuple[int, bytes]]:
    """The states that are there: when they were written, and what."""
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in sorted(Path(folder).glob("*.parquet"))}


def drafts_in(folder: Any = "states") -> list[Path]:
    return [path for path in Path(folder).iterdir() if "draft" in path.name]


def check_answer(log: pl.DataFrame, folder: Any = "states") -> None:
    """The states give what the rows give."""
    finished = mlm.scan_states(folder).mlm.finish(METRICS, by="day").collect()
    assert not differing(finished, mlm.evaluate(log, METRICS, by="day"))


def refuses(*said: str, **options: Any) -> None:
    """It must name all this, and leave the states as they are."""
    before = files_in()
    with pytest.raises(mlm.MetricError) as caught:
        update(**options)
    assert [words for words in said if words not in str(caught.value)] == [], str(caught.value)
    assert files_in() == before
    assert not Path("states").is_dir() or not drafts_in()


# -- each file once ----------------------------------------------------------------------------------------------------


def test_each_file_is_folded_once() -> None:
    log = write_logs(1, 2, 3)
    assert update() == {f"logs/0{number}.parquet": "folded" for number in (1, 2, 3)}
    assert len(files_in()) == 3
    check_answer(log)
    before = files_in()
    assert update() == {f"logs/0{number}.parquet": "unchanged" for number in (1, 2, 3)}
    assert files_in() == before


def test_it_tells_of_each_file_where_its_state_is_and_how_many_rows_it_has(folder: Path) -> None:
    write_logs(1, 2, rows=30)
    table = mlm.update_states("logs", Path("states"), METRICS, by=BY, progress=False)
    assert table["path"].to_list() == [str(folder / "logs" / f"0{number}.parquet") for number in (1, 2)]
    assert table["rows"].to_list() == [30, 30]
    assert sorted(Path(path).resolve() for path in table["state"]) == sorted(
        Path(path).resolve() for path in files_in()
    )
    for number, state in zip((1, 2), table["state"], strict=True):
        finished = mlm.scan_states(state).mlm.finish(METRICS, by=BY).collect()
        assert not differing(finished, mlm.evaluate(day_log(number, rows=30), METRICS, by=BY))


@pytest.mark.parametrize("folder_of_states", ["states", "far/away/states", Path("states [1]* %41 ä")], ids=str)
def test_the_folder_is_made_where_there_is_none(folder_of_states: Any) -> None:
    log = write_logs(1, 2)
    update(folder=folder_of_states)
    check_answer(log, folder_of_states)
    assert set(update(folder=folder_of_states).values()) == {"unchanged"}


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
    assert update() == {
        "logs/01.parquet": "unchanged",
        "logs/02.parquet": "folded",
        "logs/03.parquet": "unchanged",
    }
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


@pytest.mark.parametrize("change", [more_rows, another_time, an_earlier_time, the_same_size, nothing_but_fewer_rows])
def test_a_changed_file_is_folded_again(change: Callable[[Path], pl.DataFrame]) -> None:
    write_logs(1, 3)
    path = Path("logs/02.parquet")
    padded(path, day_log(2))
    update()
    others = {name: file for name, file in files_in().items() if "02-" not in name}
    log = pl.concat([day_log(1), change(path), day_log(3)])
    assert update() == {
        "logs/01.parquet": "unchanged",
        "logs/02.parquet": "refolded",
        "logs/03.parquet": "unchanged",
    }
    assert len(files_in()) == 3
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


def test_a_file_that_is_there_and_was_not_asked_for_has_not_vanished() -> None:
    log = write_logs(1, 2)
    update()
    assert update("logs/02.parquet") == {"logs/02.parquet": "unchanged", "logs/01.parquet": "not asked for"}
    check_answer(log)


def test_sources_may_come_one_after_the_other() -> None:
    log = write_logs(1, 2)
    assert update("logs/01.parquet") == {"logs/01.parquet": "folded"}
    assert update("logs/02.parquet")["logs/02.parquet"] == "folded"
    check_answer(log)


def test_files_of_one_name_in_two_folders_have_a_state_each() -> None:
    for number in (1, 2):
        day_log(number).write_parquet(f"logs/day={number}/rows.parquet", mkdir=True)
    log = pl.concat([day_log(1), day_log(2)])
    for status in ("folded", "unchanged"):
        assert update("logs/*/*.parquet") == {f"logs/day={number}/rows.parquet": status for number in (1, 2)}
        check_answer(log)


ODD_NAMES = ["a[1].parquet", "*.parquet", "a?.parquet", "a#1.parquet", "a%20b.parquet", "a b.parquet", "ä 日本.parquet"]


@pytest.mark.parametrize("name", [*ODD_NAMES, "a\nb.parquet", "a'\"b.parquet", "no suffix"])
def test_a_file_may_have_an_odd_name(name: str) -> None:
    day_log(1).write_parquet(f"odd [x]* %41 #/{name}", mkdir=True)
    day_log(2).write_parquet("odd [x]* %41 #/a1.parquet")
    source = [f"odd [x]* %41 #/{name}", "odd [x]* %41 #/a1.parquet"]
    for status in ("folded", "unchanged"):
        assert update(source) == dict.fromkeys(source, status)
        check_answer(pl.concat([day_log(1), day_log(2)]))


@ON_POSIX
@pytest.mark.parametrize("name", ["sha256:", "sha256:" + "0" * 64])
def test_a_folder_may_have_the_name_of_a_digest(name: str) -> None:
    day_log(1).write_parquet(f"{name}/a.parquet", mkdir=True)
    for status in ("folded", "unchanged"):
        assert update(name) == {f"{name}/a.parquet": status}
        check_answer(day_log(1))


@pytest.mark.parametrize(
    "source", ["../logs/*.parquet", "../states/../logs", "../linked/*.parquet", "../elsewhere/../logs/*"]
)
def test_a_file_is_the_same_whichever_way_one_comes_to_it(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    log = write_logs(1, 2)
    update()
    Path("linked").symlink_to("logs")
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    assert set(update(source, folder="../states").values()) == {"unchanged"}
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


# -- files that cannot be merged -------------------------------------------------------------------------------------

DRIFTS: dict[str, tuple[Callable[[pl.DataFrame], pl.DataFrame], str]] = {
    "a score of another type": (lambda log: log.cast({"score": pl.Float32}), "Float32"),
    "a score that is a text": (lambda log: log.cast({"score": pl.String}), "score"),
    "no score": (lambda log: log.drop("score"), "score"),
    "a truth of another type": (lambda log: log.cast({"truth": pl.Boolean}), "Boolean"),
    "labels that are numbers": (lambda log: log.with_columns(label=pl.lit(1)), "label"),
    "samples that are texts": (lambda log: log.cast({"sample": pl.String}), "columns"),
    "no sample": (lambda log: log.drop("sample"), "sample"),
    "no key": (lambda log: log.drop("model"), "model"),
    "a key of another type": (lambda log: log.cast({"day": pl.String}), "day"),
    "a key in other steps": (lambda log: log.cast({"day": pl.Datetime("ms")}), "day"),
}


@pytest.mark.parametrize("seen", [False, True], ids=["at once", "later"])
@pytest.mark.parametrize(("change", "said"), DRIFTS.values(), ids=DRIFTS)
def test_a_file_of_another_schema_is_named_before_any_is_folded(
    change: Callable[[pl.DataFrame], pl.DataFrame], said: str, seen: bool
) -> None:
    write_logs(1, 2)
    if seen:
        update()
    change(day_log(4)).write_parquet("logs/04.parquet")
    write_logs(3)
    refuses("logs/04.parquet", said)


def test_columns_that_nobody_asks_for_may_come_and_go() -> None:
    log = write_logs(1, 2, 3)
    day_log(2).drop("other").write_parquet("logs/02.parquet")
    day_log(3).select(pl.lit("x").alias("new"), *reversed(log.columns)).write_parquet("logs/03.parquet")
    assert set(update().values()) == {"folded"}
    check_answer(log)


def test_metrics_may_come_in_another_order() -> None:
    log = write_logs(1)
    update()
    log = pl.concat([log, write_logs(2)])
    assert update(metrics=METRICS[::-1]) == {"logs/01.parquet": "unchanged", "logs/02.parquet": "folded"}
    check_answer(log)


OTHER_QUESTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "a metric more": ({"metrics": [*METRICS, mlm.brier_score()]}, "brier_score"),
    "a metric less": ({"metrics": METRICS[1:]}, "f1"),
    "another parameter": ({"metrics": [mlm.roc_auc(bins=32), *METRICS[:1], *METRICS[2:]]}, "bins=32"),
    "another score": ({"score": "other"}, "other"),
    "a weight": ({"weight": "other"}, "other"),
    "another key": ({"by": "day"}, "by"),
    "keys in another order": ({"by": BY[::-1]}, "by"),
    "other buckets": ({"buckets": 8}, "buckets"),
}


@pytest.mark.parametrize("new", [[], [2], [0]], ids=["nothing new", "a new file", "a new file before"])
@pytest.mark.parametrize(("question", "said"), OTHER_QUESTIONS.values(), ids=OTHER_QUESTIONS)
def test_a_folder_is_for_one_question(question: dict[str, Any], said: str, new: list[int]) -> None:
    write_logs(1)
    update()
    (state,) = files_in()
    for number in new:
        write_logs(number)
    refuses(Path(state).name, said, **question)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"metrics": []}, "no metric"),
        ({"metrics": [mlm.roc_auc()]}, "roc_auc"),
        ({"metrics": [pl.len()]}, "len"),
        ({"by": "no such"}, "no such"),
        ({"buckets": -1}, "buckets"),
        ({"truths": "truth"}, "truths"),
    ],
)
def test_what_cannot_be_asked_is_refused(options: dict[str, Any], said: str) -> None:
    write_logs(1, 2)
    refuses(said, **options)
    assert files_in() == {}


# -- files that are damaged --------------------------------------------------------------------------------------------


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def without_its_end(data: bytes) -> bytes:
    return data[:-1]


def no_bytes(_: bytes) -> bytes:
    return b""


def a_text(_: bytes) -> bytes:
    return b"sample,score\n1,0.5\n"


@pytest.mark.parametrize("damage", [cut, without_its_end, no_bytes, a_text])
def test_a_source_that_cannot_be_read_is_named_before_any_is_folded(damage: Callable[[bytes], bytes]) -> None:
    write_logs(1, 2, 3)
    path = Path("logs/02.parquet")
    path.write_bytes(damage(path.read_bytes()))
    refuses("logs/02.parquet")
    assert files_in() == {}
    write_logs(2)
    update()
    check_answer(pl.concat(map(day_log, (1, 2, 3))))


def test_a_source_whose_rows_cannot_be_read_is_named() -> None:
    """Its end is whole, which tells how many rows there are."""
    write_logs(1, 2, 3)
    path = Path("logs/02.parquet")
    data = path.read_bytes()
    end = 8 + int.from_bytes(data[-8:-4], "little")
    path.write_bytes(data[:4] + b"\xff" * (len(data) - end - 4) + data[-end:])
    with pytest.raises(mlm.MetricError, match=r"logs/02\.parquet"):
        update()
    assert drafts_in() == []
    write_logs(2)
    update()
    check_answer(pl.concat(map(day_log, (1, 2, 3))))


@pytest.mark.parametrize("source", ["none/*.parquet", "none", ["logs/01.parquet", "none.parquet"]], ids=str)
def test_a_source_of_no_files_is_named_and_nothing_is_made(source: Any) -> None:
    write_logs(1)
    with pytest.raises(mlm.FileError, match="none"):
        update(source)
    assert list(Path().iterdir()) == [Path("logs")]


def test_a_source_that_is_named_twice_is_refused() -> None:
    write_logs(1)
    refuses("logs/01.parquet", "twice", source=["logs", "logs/01.parquet"])


def flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


@pytest.mark.parametrize("damage", [cut, without_its_end, no_bytes, a_text, flipped])
@pytest.mark.parametrize("new", [False, True])
def test_a_damaged_state_is_named(damage: Callable[[bytes], bytes], new: bool) -> None:
    write_logs(1, 2)
    update()
    state = Path(list(files_in())[1])
    state.write_bytes(damage(state.read_bytes()))
    if new:
        write_logs(3)
    refuses(str(state))
    state.unlink()
    update()
    check_answer(pl.concat(map(day_log, (1, 2, 3) if new else (1, 2))))


def test_a_file_among_the_states_that_is_none_is_named() -> None:
    write_logs(1)
    update()
    day_log(2).write_parquet("states/log.parquet")
    refuses("states/log.parquet", "not a state")


def test_logs_are_not_taken_for_states() -> None:
    write_logs(1)
    before = files_in("logs")
    with pytest.raises(mlm.MetricError, match=r"logs/01\.parquet"):
        update(folder="logs")
    assert files_in("logs") == before


def test_a_state_that_was_written_by_hand_may_lie_beside_them() -> None:
    log = write_logs(1, 2)
    mlm.write_state(mlm.state(day_log(3), METRICS, by=BY), "states.parquet")
    update()
    shutil.move("states.parquet", "states/by hand.parquet")
    assert update() == {"logs/01.parquet": "unchanged", "logs/02.parquet": "unchanged", None: "not asked for"}
    check_answer(pl.concat([log, day_log(3)]))


def test_a_folder_that_is_a_file_is_named() -> None:
    write_logs(1)
    Path("states").write_text("here")
    with pytest.raises(mlm.FileError, match="states"):
        update()
    assert Path("states").read_text() == "here"


# -- what it says ------------------------------------------------------------------------------------------------------


def test_it_says_on_stderr_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    write_logs(1, 2, 3)
    update(progress=True)
    told = capsys.readouterr()
    assert told.out == ""
    assert re.sub(r"\d+ s", "0 s", told.err).splitlines() == [f"file {n} of 3 done, 0 s" for n in (1, 2, 3)]
    write_logs(4, 5)
    update(progress=True)
    assert "file 2 of 2 done" in capsys.readouterr().err  # of those that it folds


def test_it_says_nothing_where_there_is_nothing_to_do_or_nobody_asks(capsys: pytest.CaptureFixture[str]) -> None:
    write_logs(1, 2, 3)
    update(progress=False)
    update(progress=True)
    assert capsys.readouterr() == ("", "")
