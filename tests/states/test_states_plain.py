"""Plain states: what comes back from Delta, Arrow and pandas is what was kept there, or is refused."""

import json
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from tests.support.folded_log import FEW, LOG

N = 24
NAN = float("nan")
KEYS = {
    "a category": pl.Series(["x", "y"] * 12, dtype=pl.Categorical),
    "a named category": pl.Series(["x", "y"] * 12, dtype=pl.Categorical(pl.Categories("of a test", "here"))),
    "an enum": pl.Series(["v", None] * 12, dtype=pl.Enum(["v", "u", "t"])),
    "a duration": pl.Series([timedelta(days=1), timedelta(microseconds=-1)] * 12, dtype=pl.Duration("us")),
    "a time": pl.Series([time(3), None] * 12),
    "a date": pl.Series([date(2026, 11, 20), None] * 12),
    "a moment": pl.Series([datetime(2026, 11, 20, 1, 2, 3, 4)] * N, dtype=pl.Datetime("us")),
    "nanoseconds": pl.Series([1, 1700000000000000001] * 12).cast(pl.Datetime("ns", "Europe/Berlin")),
    "of a zone": pl.Series([1, None] * 12).cast(pl.Datetime("ms", "Asia/Tokyo")),
    "a decimal": pl.Series([Decimal("1.50"), None] * 12, dtype=pl.Decimal(10, 2)),
    "a Boolean": pl.Series([True, None] * 12),
    "nothing": pl.Series([None] * N),
    "small": pl.Series([255, None] * 12, dtype=pl.UInt8),
    "large": pl.Series([2**64 - 1, 2**53 + 1] * 12, dtype=pl.UInt64),
    "huge": pl.Series([-(2**100), None] * 12, dtype=pl.Int128),
    "a half": pl.Series([0.1, None] * 12, dtype=pl.Float32),
}
ROWS = {"sample": list(range(N)), "score": [0.1 * (i % 10) for i in range(N)], "truth": [i % 2 for i in range(N)]}
METRICS = [mlm.accuracy(), mlm.log_loss(), mlm.roc_auc(bins=10)]


KEPT: dict[str, Callable[[pl.DataFrame, Path], Any]] = {
    "as it is": lambda state, _: state,
    "delta": lambda state, folder: (state.write_delta(str(folder)), pl.read_delta(str(folder)))[1],
    "arrow": lambda state, _: state.to_arrow(),
    "pandas": lambda state, _: state.to_pandas(),
    "pandas of arrow": lambda state, _: state.to_pandas(use_pyarrow_extension_array=True),
}


@pytest.mark.parametrize("keep", KEPT.values(), ids=KEPT)
def test_what_comes_back_is_what_was_kept(keep: Callable[[pl.DataFrame, Path], Any], tmp_path: Path) -> None:
    state = mlm.state(pl.DataFrame(ROWS | KEYS), METRICS, by=list(KEYS))
    if keep is KEPT["pandas"]:  # which has no whole numbers with nulls, so that no number above 2^53 is safe there
        state = state.filter(pl.col("bin").is_null())
    again = mlm.as_state(keep(state.mlm.plain(), tmp_path))
    key = ["source", *KEYS, "bucket", "bin"]
    assert_frame_equal(again.sort(key), state.sort(key))


@cache
def finished() -> tuple[pl.DataFrame, pl.DataFrame]:
    """A state, and what it gives."""
    state = mlm.state(LOG, FEW, by=["model", "day"])
    return state, state.mlm.finish(FEW, by="model", slices=["day"], tidy=True)


@pytest.mark.parametrize("keep", KEPT.values(), ids=KEPT)
def test_it_finishes_to_the_same_numbers(keep: Callable[[pl.DataFrame, Path], Any], tmp_path: Path) -> None:
    state, expected = finished()
    again = mlm.as_state(keep(mlm.plain(state), tmp_path))
    assert_frame_equal(again.mlm.finish(FEW, by="model", slices=["day"], tidy=True), expected, rel_tol=1e-12)


def test_frames_stay_what_they_are() -> None:
    state = mlm.state(LOG, FEW, by="model")
    assert_frame_equal(state.lazy().mlm.plain().mlm.as_state().collect(), state)
    assert_frame_equal(state.mlm.plain().mlm.as_state(), state)
    assert_frame_equal(mlm.as_state(state), state)
    assert mlm.as_state(state.clear()).schema == state.schema
    assert isinstance(state.lazy().mlm.as_state(), pl.LazyFrame)


def test_states_that_were_appended_merge() -> None:
    days = [mlm.state(part, FEW, by="day").mlm.plain() for part in LOG.partition_by("day")]
    merged = mlm.as_state(pl.concat(days)).mlm.finish(FEW)
    assert_frame_equal(merged, mlm.state(LOG, FEW, by="day").mlm.finish(FEW), rel_tol=1e-12)


# -- what is refused ---------------------------------------------------------------------------------------------------

STATE = mlm.state(LOG, mlm.accuracy(), by="model")
PLAIN = STATE.mlm.plain()


OTHERS = {
    "their buckets are": mlm.state(LOG, mlm.accuracy(), by="model", buckets=7),
    "their metrics differ": mlm.state(LOG, mlm.recall(), by="model"),
    "their roles are": mlm.state(LOG, mlm.accuracy(), by="model", truth="score"),
    "their 'model' are": mlm.state(LOG.cast({"model": pl.Categorical}), mlm.accuracy(), by="model"),
}


@pytest.mark.parametrize(("said", "other"), OTHERS.items(), ids=OTHERS)
def test_rows_of_two_settings(said: str, other: pl.DataFrame) -> None:
    with pytest.raises(mlm.StateError, match=f"^rows of this table and other rows cannot be merged: {said}"):
        mlm.as_state(pl.concat([PLAIN, other.mlm.plain()], how="diagonal"))


def with_text(**changes: Any) -> pl.DataFrame:
    said = json.loads(PLAIN["state"][0])
    return PLAIN.with_columns(state=pl.lit(json.dumps({**said, **changes})))


TYPES = json.loads(PLAIN["state"][0])["types"]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (PLAIN.drop("state"), "it lacks the column 'state'"),
        (PLAIN.drop("model"), "lacks its column 'model'"),
        (PLAIN.drop("state_nans"), "lacks its column 'state_nans'"),
        (PLAIN.clear(), "this table has no rows"),
        (PLAIN.with_columns(state=pl.lit("{}")), "does not describe what it holds"),
        (PLAIN.with_columns(state=pl.lit(None, pl.String)), "rows whose 'state' is null"),
        (with_text(types=[]), "does not describe what it holds"),
        (with_text(types={**TYPES, "model": ["NoType"]}), "does not describe what it holds"),
        (with_text(types={**TYPES, "model": ["Time", 1]}), "does not describe what it holds"),
        (with_text(types={**TYPES, "other": ["Int64"]}), "does not describe what it holds"),
        (with_text(format=9), "this state has format 9"),
        (PLAIN.with_columns(pl.col("bucket") + 0.5), "column 'bucket' of this table is Float64, and was Int64"),
        (PLAIN.with_columns(pl.lit(2.0**53).alias("n_rows")), "column 'n_rows' of this table is Float64"),
        (PLAIN.with_columns(n_rows=-1), "'n_rows' is a count, but is below 0"),
    ],
)
def test_what_is_no_state(table: pl.DataFrame, said: str) -> None:
    with pytest.raises(mlm.StateError, match=said):
        mlm.as_state(table)


def test_without_types_columns_are_taken_as_they_are() -> None:
    """As a state has them whose first column alone was made a text, by another hand."""
    assert_frame_equal(mlm.as_state(STATE.cast({"state": pl.String})), STATE)


def test_a_nan_that_became_null() -> None:
    log = LOG.with_columns(score=pl.when(pl.col("sample") == 1).then(NAN).otherwise("score"))
    table = mlm.state(log.with_columns(half=pl.col("score")), mlm.accuracy(), by="half").mlm.plain()
    assert mlm.as_state(table.to_pandas(use_pyarrow_extension_array=True)).height == table.height
    with pytest.raises(mlm.StateError, match=r"NaN has become null on the way"):
        mlm.as_state(table.to_pandas())


def test_a_file_twice(tmp_path: Path) -> None:
    LOG.write_parquet(tmp_path / "log.parquet")
    state = mlm.state(pl.scan_parquet(tmp_path / "log.parquet"), mlm.accuracy()).collect().mlm.plain()
    with pytest.raises(mlm.StateError, match="are the same file: its rows would count twice"):
        mlm.as_state(pl.concat([state, state]))


def test_a_plain_state_is_no_state() -> None:
    for verb in (mlm.finish, mlm.compact, mlm.plain, lambda state: mlm.write_state(state, "never.parquet")):
        with pytest.raises(
            mlm.StateError, match=r"is not a state, but a plain one: make a state of it with `as_state`"
        ):
            verb(PLAIN)


def test_keys_without_a_plain_type() -> None:
    listed = LOG.with_columns(both=pl.concat_list("score", "truth"))
    with pytest.raises(mlm.StateError, match=r"'both' of this state is List\(Float64\), which has no plain type"):
        mlm.state(listed, mlm.accuracy(), by="both").mlm.plain()
    named = mlm.state(LOG.rename({"model": "state_nans"}), mlm.accuracy(), by="state_nans")
    with pytest.raises(mlm.NameCollisionError, match="'state_nans' is a column this function creates"):
        mlm.plain(named)
