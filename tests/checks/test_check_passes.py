"""`check` finds the same in passes, in files and in one look."""

import random
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from tests.checks.check_cases import INF, NAN, check, of_columns, told

RANDOM = random.Random(17)
LOG = pl.DataFrame(
    {
        "model": RANDOM.choices(["x", "y", None], k=400),
        "fold": RANDOM.choices([1, 2], k=400),
        "sample": RANDOM.choices([None, *range(-20, 60)], k=400),
        "label": RANDOM.choices([None, "a", "b", "B", "c"], k=400),
        "score": [RANDOM.choice([None, NAN, INF, -INF, 1.5, *[RANDOM.random()] * 20]) for _ in range(400)],
        "truth": RANDOM.choices([None, 2, *[0, 1] * 20], k=400),
        "w": RANDOM.choices([None, NAN, -1.0, 0.0, *[1.0] * 30], k=400),
    }
)
"""Rows with all that can be wrong with them."""

OPTIONS: dict[str, dict[str, Any]] = {
    "the whole": {},
    "weights": {"weight": "w"},
    "a group": {"by": "model", "weight": "w"},
    "two keys": {"by": ["model", "fold"]},
    "keys of rows": {"by": ["model", "label", "sample"]},
    "an expression": {"by": (pl.col("sample") % 7).alias("week")},
    "a sample of two columns": {"sample": ["sample", "fold"], "by": "model"},
    "a sample of text": {"sample": "label", "label": "sample"},
    "a sample of floats": {"sample": "w"},
    "no samples": {"sample": None, "label": "label"},
}


def alike(one: pl.DataFrame, other: pl.DataFrame) -> None:
    """Two answers are the same but for which examples are shown."""
    shown = pl.col("examples").list.len()
    assert_frame_equal(one.with_columns(shown), other.with_columns(shown))


def found_in(log: Any, **options: Any) -> pl.DataFrame:
    frame = log.drop("sample") if options.get("sample", "") is None else log
    return check(frame, **options)


@cache
def whole(options: str, **more: Any) -> pl.DataFrame:
    """What is found in one look."""
    return found_in(LOG, **OPTIONS[options], **more)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("options", OPTIONS)
def test_passes_change_no_number(options: str) -> None:
    asked, expected = OPTIONS[options], whole(options)
    assert expected.height > 10
    for passes in (2, 7):
        alike(found_in(LOG, **asked, passes=passes), expected)
    alike(found_in(LOG.lazy(), **asked, passes="auto", memory="1 GB"), expected)
    assert_frame_equal(found_in(LOG, **asked, passes=1), expected)


def test_a_sample_is_shared_in_one_pass_and_varies_in_another() -> None:
    # Sample 1 is in two folds as a whole; of sample 2 each label is in one.
    log = pl.DataFrame({"sample": [1, 1, 1, 1, 2, 2], "label": ["a", "b"] * 3, "fold": [1, 1, 2, 2, 1, 2]})
    log = log.with_columns(score=0.4, truth=pl.Series([1, 0, 1, 0, 0, 1]))
    assert of_columns(log, "fold") == {"fold": ("samples_in_common", 2)}
    for passes in (2, 3):
        alike(check(log, by="fold", passes=passes), check(log, by="fold"))


ZEROS = pl.when(pl.col("truth") == 1).then(0.0).otherwise(-0.0)
"""Two numbers that are equal."""


@pytest.mark.parametrize("label", [pl.col("label"), pl.col("truth"), ZEROS])
def test_labels_that_look_alike_are_in_one_part(label: pl.Expr, monkeypatch: pytest.MonkeyPatch) -> None:
    log = LOG.with_columns(item=label)
    expected = found_in(log, label="item", by="model")
    monkeypatch.setattr("polars_mlmetrics.checks.parts.BYTES_A_LABEL", 10**9)
    for passes in ("auto", 2):
        alike(found_in(log, label="item", by="model", passes=passes), expected)


def test_a_copy_of_a_float_is_found_in_any_pass() -> None:
    log = pl.DataFrame({"sample": [0.0, -0.0, 0.5, -0.5, NAN, NAN], "label": "a", "score": 0.5, "truth": [1, 1, 0] * 2})
    for passes in (None, 2, 5):
        assert told(log, passes=passes) == {"duplicate": 2, "truth_contradicted": 2}


def test_files_that_share_no_sample_are_passes(tmp_path: Path) -> None:
    halves = [LOG.filter(pl.col("sample") < 17), LOG.filter((pl.col("sample") >= 17) | pl.col("sample").is_null())]
    for number, half in enumerate(halves):
        half.write_parquet(tmp_path / f"{number}.parquet")
    scan = pl.scan_parquet(tmp_path / "*.parquet")
    for options in ("weights", "a group", "two keys", "an expression", "a sample of two columns"):
        alike(found_in(scan, **OPTIONS[options], passes="files"), whole(options))


def test_a_scan_is_the_table_in_its_file(tmp_path: Path) -> None:
    LOG.write_parquet(tmp_path / "log.parquet", row_group_size=50)
    scan = pl.scan_parquet(tmp_path / "log.parquet")
    for name, options in OPTIONS.items():
        assert_frame_equal(found_in(scan, **options), whole(name))
        assert_frame_equal(found_in(scan, **options, thorough=False), whole(name, thorough=False))


def test_progress_is_reported_where_there_are_several_passes(capfd: pytest.CaptureFixture[str]) -> None:
    mlm.check(LOG, passes=2)
    said = capfd.readouterr()
    assert said.out == ""
    assert "pass 2 of 2 done" in said.err
    for options in ({"passes": 2, "progress": False}, {"passes": 1}, {}, {"passes": 3, "thorough": False}):
        mlm.check(LOG, **options)
        assert capfd.readouterr() == ("", ""), options
