"""What `update_states` refuses: files that do not go together, and files that are damaged."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.states.drifts import DRIFTS
from tests.support.daily_logs import (
    BY,
    METRICS,
    check_answer,
    day_log,
    drafts_in,
    files_in,
    refuses,
    update,
    write_logs,
)

pytestmark = pytest.mark.usefixtures("folder")


# -- files that cannot be merged -------------------------------------------------------------------------------------


@pytest.mark.one_in(2)
@pytest.mark.parametrize("seen", [False, True], ids=["at once", "later"])
def test_a_file_of_another_schema_is_named_before_any_is_folded(seen: bool) -> None:
    write_logs(1, 2)
    if seen:
        update()
    write_logs(3)
    for change, said in DRIFTS.values():
        change(day_log(4)).write_parquet("logs/04.parquet")
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


OTHER_QUESTIONS: list[tuple[str, dict[str, Any]]] = [
    ("brier_score", {"metrics": [*METRICS, mlm.brier_score()]}),
    ("f1", {"metrics": METRICS[1:]}),
    ("bins=32", {"metrics": [mlm.roc_auc(bins=32), *METRICS[:1], *METRICS[2:]]}),
    *(("other", {role: "other"}) for role in ("score", "weight")),
    *(("by", {"by": keys}) for keys in ("day", BY[::-1])),
    ("buckets", {"buckets": 8}),
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("new", [[], [2], [0]], ids=["nothing new", "a new file", "a new file before"])
def test_a_folder_is_for_one_question(new: list[int]) -> None:
    write_logs(1)
    update()
    (state,) = files_in()
    for number in new:
        write_logs(number)
    for said, question in OTHER_QUESTIONS:
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


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda data: data[: len(data) // 2],
    "without its end": lambda data: data[:-1],
    "no bytes": lambda _: b"",
    "a text": lambda _: b"sample,score\n1,0.5\n",
}


def test_a_source_that_cannot_be_read_is_named() -> None:
    """Before any is folded, but for one whose end is whole, which tells how many rows there are."""
    log = write_logs(1, 2, 3)
    path = Path("logs/02.parquet")
    data = path.read_bytes()
    for damage in DAMAGES.values():
        path.write_bytes(damage(data))
        refuses("logs/02.parquet")
        assert files_in() == {}
    end = 8 + int.from_bytes(data[-8:-4], "little")
    path.write_bytes(data[:4] + b"\xff" * (len(data) - end - 4) + data[-end:])
    with pytest.raises(mlm.MetricError, match=r"logs/02\.parquet"):
        update()
    assert drafts_in() == []
    path.write_bytes(data)
    update()
    check_answer(log)


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


@pytest.mark.one_in(2)
@pytest.mark.parametrize("new", [False, True])
def test_a_damaged_state_is_named(new: bool) -> None:
    log = write_logs(1, 2)
    update()
    state = Path(list(files_in())[1])
    data = state.read_bytes()
    if new:
        log = pl.concat([log, write_logs(3)])
    for damage in (*DAMAGES.values(), flipped):
        state.write_bytes(damage(data))
        refuses(str(state))
    state.unlink()
    update()
    check_answer(log)


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


def test_a_file_that_changes_while_it_is_folded() -> None:
    write_logs(1)

    def prepare(log: pl.LazyFrame) -> pl.LazyFrame:
        os.utime("logs/01.parquet", ns=(1, 1))
        return log

    refuses("logs/01.parquet has changed while it was folded: call update_states again.", prepare=prepare)
