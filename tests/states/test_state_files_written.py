"""What is written as a state, where it may go, and what is left when that fails."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from tests.states.days import DAYS, LOG, broken, check_answer, names_in, of_day, of_log

# -- what is written ---------------------------------------------------------------------------------------------------

COUNT, SUM = "n_rows", "log_loss@1e-15"

REFUSED: dict[str, tuple[Callable[[pl.DataFrame], pl.DataFrame], str]] = {
    "a log": (lambda state: LOG, "not a state"),
    "no columns": (lambda state: pl.DataFrame(), "not a state"),
    "a state that says so in a text": (lambda state: state.cast({"state": pl.String}), "not a state"),
    "a state that says nothing": (lambda state: state.with_columns(state=pl.lit("x", pl.Enum(["x"]))), "not a state"),
    "a lost key": (lambda state: state.drop("day"), "'day'"),
    "a lost bucket": (lambda state: state.drop("bucket"), "'bucket'"),
    "a lost statistic": (lambda state: state.drop(COUNT), COUNT),
    "a renamed statistic": (lambda state: state.rename({COUNT: "rows"}), COUNT),
    "a text for a count": (lambda state: state.cast({COUNT: pl.String}), COUNT),
    "a text for a sum": (lambda state: state.cast({SUM: pl.String}), SUM),
    "Booleans": (lambda state: state.cast({COUNT: pl.Boolean}), COUNT),
    "counts below 0": (lambda state: state.with_columns(pl.col(COUNT) * -1), COUNT),
    "half a count": (lambda state: state.with_columns(pl.col(COUNT) / 2), COUNT),
    "all of it twice": (lambda state: pl.concat([state, state]), "compact"),
    "one row twice": (lambda state: pl.concat([state, state.head(1)]), "compact"),
    "the whole twice": (lambda state: pl.concat([mlm.state(LOG, mlm.accuracy(), buckets=0)] * 2), "compact"),
}


@pytest.mark.parametrize(("change", "said"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_sound_state_is_not_written(
    change: Callable[[pl.DataFrame], pl.DataFrame], said: str, place: Path
) -> None:
    for frame in (change(of_log()), change(of_log()).lazy()):
        with pytest.raises(mlm.StateError, match=re.escape(said)):
            mlm.write_state(frame, place)
    assert names_in(place.parent) == []


def test_one_count_below_0_among_many_is_found(place: Path) -> None:
    wrong = pl.when(pl.int_range(pl.len()) == of_log()[COUNT].arg_max()).then(-1).otherwise(COUNT).alias(COUNT)
    with pytest.raises(mlm.StateError, match=re.escape(COUNT)):
        mlm.write_state(of_log().with_columns(wrong), place)


def test_an_old_file_is_replaced_where_that_is_said(good: Path) -> None:
    old = good.read_bytes()
    with pytest.raises(mlm.FileError, match=rf"{re.escape(str(good))} already exists: pass overwrite=True"):
        mlm.write_state(of_day(DAYS[0]), good)
    assert good.read_bytes() == old
    mlm.write_state(of_day(DAYS[0]), good, overwrite=True)
    assert_frame_equal(mlm.scan_states(good).collect(), of_day(DAYS[0]), check_exact=True)


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_place_that_cannot_be_written_to_is_named(overwrite: bool, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    for name in ("folder", "link", "none/state.parquet"):
        with pytest.raises(mlm.FileError, match=name.split("/")[0]):
            mlm.write_state(of_log(), tmp_path / name, overwrite=overwrite)


def test_rows_that_fail_leave_the_old_file(good: Path) -> None:
    old = good.read_bytes()
    state = of_log().lazy().map_batches(broken, schema=of_log().schema)
    with pytest.raises(RuntimeError, match="midway"):
        mlm.write_state(state, good, overwrite=True)
    assert (good.read_bytes(), names_in(good.parent)) == (old, [good.name])


def test_a_disk_that_fails_leaves_the_old_file(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(path: Path, _: bytes) -> NoReturn:
        path.write_text("half")
        raise OSError("no space is left")

    old = good.read_bytes()
    monkeypatch.setattr(Path, "write_bytes", half)
    with pytest.raises(mlm.FileError, match=rf"^{re.escape(str(good))} cannot be written: no space is left\.$"):
        mlm.write_state(of_day(DAYS[0]), good, overwrite=True)
    assert (good.read_bytes(), names_in(good.parent)) == (old, [good.name])


def test_a_late_day_replaces_its_state(days: Path) -> None:
    """Of the last day the truths are not known; then they are."""
    path, told = days / f"{DAYS[2]}.parquet", []
    early = LOG.with_columns(truth=pl.when(pl.col("day") != DAYS[2]).then("truth"))
    for log in (early, LOG):
        mlm.write_state(of_day(DAYS[2], log), path, overwrite=True)
        told.append(check_answer(days, log, by="day").filter(day=DAYS[2]).select("n_rows", "n_excluded").row(0))
    (early_rows, early_excluded), (rows, excluded) = told
    assert (early_rows, early_excluded) == (0, LOG.filter(day=DAYS[2]).height)
    assert 0 < rows == early_excluded - excluded
