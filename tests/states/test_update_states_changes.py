"""`update_states` where the files of a log change their form, their names or their places: no later run is blocked."""

import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.states.drifts import MENDED
from tests.support.daily_logs import BY, METRICS, check_answer, day_log, files_in, refuses, update, write_logs
from tests.support.differing import differing

pytestmark = pytest.mark.usefixtures("folder")


# -- files of another form ---------------------------------------------------------------------------------------------

REMEDY = "Make the files alike with prepare=, such as prepare=lambda log: log.cast({'score': pl.Float64})."
TYPES: dict[str, Any] = {
    "day": pl.Date, "model": pl.String, "sample": pl.Int64, "label": pl.String, "score": pl.Float64, "truth": pl.Int64,
}  # fmt: skip


def as_it_was(log: pl.LazyFrame) -> pl.LazyFrame:
    """All forms that files of this log had."""
    columns = log.collect_schema()
    if "probability" in columns:
        log = log.rename({"probability": "score"})
    if "model" not in columns:
        log = log.with_columns(model=pl.lit("model 0"))
    return log.cast(TYPES)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seen", [False, True], ids=["at once", "later"])
@pytest.mark.parametrize(("change", "said"), MENDED.values(), ids=MENDED)
def test_a_file_that_drifted_blocks_no_later_run(
    change: Callable[[pl.DataFrame], pl.DataFrame], said: str, seen: bool
) -> None:
    """The error names what helps. With it all files are folded, and those of before are not folded again in vain."""
    log = write_logs(1)
    if seen:
        update(prepare=as_it_was)
    drifted = change(day_log(2))
    drifted.write_parquet("logs/02.parquet")
    if not seen:
        refuses("logs/02.parquet", said, REMEDY)
    old = "unchanged" if seen else "folded"
    assert update(prepare=as_it_was) == {"logs/01.parquet": old, "logs/02.parquet": "folded"}
    check_answer(pl.concat([log, as_it_was(drifted.lazy()).collect().select(log.columns)]))
    write_logs(3)
    assert update(prepare=as_it_was)["logs/03.parquet"] == "folded"
    assert set(update(prepare=as_it_was).values()) == {"unchanged"}


def test_a_drift_after_the_first_run_names_the_remedy() -> None:
    write_logs(1)
    update()
    day_log(2).cast({"score": pl.Float32}).write_parquet("logs/02.parquet")
    refuses("logs/02.parquet", "Float32", REMEDY)


def test_another_question_is_not_a_matter_of_files() -> None:
    write_logs(1)
    update()
    write_logs(2)
    with pytest.raises(mlm.StateError) as caught:
        update(metrics=[*METRICS, mlm.brier_score()])
    assert "prepare" not in str(caught.value)


def test_what_is_done_to_a_file_counts() -> None:
    log = write_logs(1, 2)
    update(prepare=lambda rows: rows.filter(pl.col("label") != "a"))
    check_answer(log.filter(pl.col("label") != "a"))


def test_a_file_that_is_folded_is_not_folded_again_for_what_is_done_to_others() -> None:
    """A function says nothing of itself."""
    write_logs(1, 2)
    update()
    assert set(update(prepare=as_it_was).values()) == {"unchanged"}
    Path(next(iter(files_in()))).unlink()
    assert sorted(update(prepare=as_it_was).values()) == ["folded", "unchanged"]


@pytest.mark.parametrize(
    ("prepare", "said"),
    [
        ("score", "prepare must be a function that takes a LazyFrame, not 'score'."),
        (lambda rows: rows.collect(), "prepare must return a LazyFrame, not a DataFrame"),
        (lambda rows: None, "prepare must return a LazyFrame, not a NoneType"),
        (lambda rows: rows.rename({"no": "yes"}), "logs/01.parquet: its rows cannot be prepared: "),
        (lambda rows: rows.cast({"no": pl.Int64}), "logs/01.parquet: its rows cannot be prepared: "),
    ],
    ids=["no function", "no lazy frame", "nothing", "a name that is not there", "a type of what is not there"],
)
def test_what_does_not_prepare_is_refused(prepare: Any, said: str) -> None:
    write_logs(1)
    refuses(said, prepare=prepare)


# -- another version of what is done to files ------------------------------------------------------------------------


def halved(log: pl.LazyFrame) -> pl.LazyFrame:
    return log.with_columns(pl.col("score") / 2)


def test_another_version_of_prepare_folds_all_files_again() -> None:
    log = write_logs(1, 2)
    update()
    for version, now in {"1": halved(log.lazy()).collect(), "2": log}.items():
        prepare = halved if version == "1" else as_it_was
        assert set(update(prepare=prepare, prepare_version=version).values()) == {"refolded"}
        check_answer(now)
        assert set(update(prepare=prepare, prepare_version=version).values()) == {"unchanged"}
    assert set(update().values()) == {"refolded"}


def test_another_version_may_give_other_types() -> None:
    log = write_logs(1, 2)
    update(prepare=lambda rows: rows.cast({"score": pl.Float32}), prepare_version="1")
    assert set(update(prepare=as_it_was, prepare_version="2").values()) == {"refolded"}
    check_answer(log)


def test_a_state_of_another_version_that_cannot_be_made_again_is_refused() -> None:
    write_logs(1, 2, 3)
    options: Any = {"prepare": as_it_was, "prepare_version": "1"}
    update(**options)
    others = {"prepare": halved, "prepare_version": "2"}
    again = "was made with another prepare_version=, and is not made again"
    not_named = "02.parquet is not one of these files. Take the change back, name that file too"
    refuses("(and 1 more)", again, not_named, source="logs/01.parquet", **others)
    Path("logs/02.parquet").unlink()
    refuses(again, "02.parquet is gone", "delete it (gone='drop')", "a folder of their own", **others)
    assert update(**options)["logs/02.parquet"] == "vanished"
    # In a folder of its own it is read beside the others.
    (gone,) = Path("states").glob("02-*")
    Path("old").mkdir()
    gone.rename(Path("old", gone.name))
    assert update(**others) == {"logs/01.parquet": "refolded", "logs/03.parquet": "refolded"}
    table = mlm.scan_states(["old", "states"]).mlm.finish(METRICS, by="day").collect()
    rows = pl.concat([day_log(2), halved(pl.concat([day_log(1), day_log(3)]).lazy()).collect()])
    assert not differing(table, mlm.evaluate(rows, METRICS, by="day"))


def test_a_state_of_another_version_is_dropped_with_its_file() -> None:
    write_logs(1, 2)
    update(prepare=halved, prepare_version="1")
    Path("logs/01.parquet").unlink()
    assert update(gone="drop") == {"logs/01.parquet": "dropped", "logs/02.parquet": "refolded"}


def test_a_state_that_was_written_by_hand_has_no_version() -> None:
    write_logs(1)
    update()
    mlm.write_state(mlm.state(day_log(4), METRICS, by=BY), "states/by hand.parquet")
    assert update(prepare=halved, prepare_version="1") == {"logs/01.parquet": "refolded", None: "not asked for"}


def test_states_of_two_versions_in_one_folder_are_not_read_as_one() -> None:
    def write(place: str, version: Any) -> None:
        Path(place).parent.mkdir(exist_ok=True)
        mlm.write_state(mlm.state(day_log(int(Path(place).stem)), METRICS, by=BY), place, prepare_version=version)

    for place, version in {"states/1.parquet": "1", "states/2.parquet": None, "new/3.parquet": "2"}.items():
        write(place, version)
    # A state without a version may be of any; those of another folder are wanted beside these.
    rows = pl.concat(map(day_log, (1, 2, 3)))
    table = mlm.scan_states(["states", "new"]).mlm.finish(METRICS, by="day").collect()
    assert not differing(table, mlm.evaluate(rows, METRICS, by="day"))
    write("states/4.parquet", "")
    said = "states/4.parquet was made with another prepare_version= than states/1.parquet: make one of them again"
    with pytest.raises(mlm.StateError, match=re.escape(said)):
        mlm.scan_states("states/*.parquet")
    write_logs(5)
    again = "states/1.parquet was made with another prepare_version=, and is not made again: `write_state` wrote it."
    refuses(again)
    with pytest.raises(mlm.ParameterError, match=r"^prepare_version is a text, such as '2', not 2\.$"):
        write("states/6.parquet", 2)


@pytest.mark.parametrize(("prepare", "version"), [(None, "2"), (halved, 2)], ids=["of nothing", "no text"])
def test_a_version_is_a_text_of_a_function(prepare: Any, version: Any) -> None:
    write_logs(1)
    said = f"prepare_version is a text beside prepare=, such as '2', not {version!r}."
    refuses(said, prepare=prepare, prepare_version=version)


# -- files that are gone -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gone", ["keep", "drop", "raise"])
def test_what_becomes_of_the_state_of_a_file_that_was_renamed(gone: Any) -> None:
    """Kept it would count twice."""
    log = write_logs(1, 2)
    update()
    Path("logs/02.parquet").rename("logs/second.parquet")
    if gone == "raise":
        refuses("logs/02.parquet is gone", "is still there.", "gone='drop' deletes such states", gone=gone)
        return
    if gone == "keep":
        refuses("logs/second.parquet holds the rows of 02.parquet", "count twice", "gone='drop' deletes", gone=gone)
        check_answer(log)
        return
    assert update(gone=gone) == {
        "logs/01.parquet": "unchanged", "logs/second.parquet": "folded", "logs/02.parquet": "dropped",
    }  # fmt: skip
    check_answer(log)
    assert update(gone=gone).keys() == {"logs/01.parquet", "logs/second.parquet"}


def test_more_files_that_are_gone_are_counted() -> None:
    write_logs(1, 2, 3)
    update()
    for number in (1, 2):
        Path(f"logs/0{number}.parquet").unlink()
    refuses("logs/01.parquet is gone", "(and so are those of 1 more)", gone="raise")


def test_nothing_is_dropped_where_a_run_fails() -> None:
    write_logs(1, 2)
    update()
    Path("logs/01.parquet").unlink()
    day_log(3).drop("score").write_parquet("logs/03.parquet")
    refuses("logs/03.parquet", gone="drop")


def test_what_is_there_or_was_written_by_hand_is_never_dropped() -> None:
    log = write_logs(1, 2, 3)
    update()
    mlm.write_state(mlm.state(day_log(4), METRICS, by=BY), "states/by hand.parquet")
    before = files_in()
    assert update("logs/01.parquet", gone="drop") == {
        "logs/01.parquet": "unchanged", "logs/02.parquet": "not asked for", "logs/03.parquet": "not asked for",
        None: "not asked for",
    }  # fmt: skip
    assert files_in() == before
    check_answer(pl.concat([log, day_log(4)]))


@pytest.mark.parametrize("gone", ["forget", None, True, ""])
def test_gone_is_one_of_three_words(gone: Any) -> None:
    write_logs(1)
    refuses(f"update_states: gone must be 'keep' or 'drop' or 'raise', not {gone!r}.", gone=gone)


def test_a_month_beside_its_days_is_told(folder: Path) -> None:
    """They count twice when they are read. The table names both."""
    write_logs(1, 2)
    update()
    pl.concat([day_log(1), day_log(2)]).write_parquet("logs/month.parquet")
    table = mlm.update_states("logs/month.parquet", "states", METRICS, by=BY, progress=False)
    assert table["status"].to_list() == ["folded", "not asked for", "not asked for"]
    assert table["path"].to_list() == [str(folder / "logs" / f"{name}.parquet") for name in ("month", "01", "02")]
    counted = mlm.scan_states("states").mlm.finish(mlm.n_rows()).collect().item()
    assert counted == 2 * (day_log(1).height + day_log(2).height)


# -- names that are no text --------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no file can have such a name")
@pytest.mark.parametrize("place", ["logs", "states"])
def test_a_name_that_is_no_utf_8_is_named(place: str) -> None:
    write_logs(1)
    odd = os.fsdecode(b"x\xff")
    if place == "logs":
        shutil.copy("logs/01.parquet", f"logs/{odd}.parquet")
    folder = f"{odd} states" if place == "states" else "states"
    shown = repr(f"logs/{odd}.parquet" if place == "logs" else folder)
    refuses(f"{shown} is not valid UTF-8, and Polars cannot open such a name: rename the file.", folder=folder)
    if place == "logs":
        Path(f"logs/{odd}.parquet").unlink()
        Path("logs").rename(odd)
        Path("link").symlink_to(odd)
        refuses("is not valid UTF-8, and Polars cannot open such a name: rename the file.", source="link")
