"""Classes are names of any type: what is the same name is the same class."""

import math
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm

NAN_TEXT = ["NaN", "b", "b", "NaN"]

CLASSES: dict[str, list[Any] | pl.Series] = {
    "String": NAN_TEXT,
    "Categorical": pl.Series(NAN_TEXT, dtype=pl.Categorical),
    "Enum": pl.Series(NAN_TEXT, dtype=pl.Enum(["b", "NaN"])),
    "Int64 with the bits of a NaN of 16 bits": [32256, 1, 1, 32256],
    "Int64 with the bits of a NaN of 32 bits": [2143289344, 1, 1, 2143289344],
    "UInt64 with the bits of a NaN of 64 bits": pl.Series([9221120237041090560, 1, 1, 9221120237041090560]),
    "Int128": pl.Series([2**100, 1, 1, 2**100], dtype=pl.Int128),
    "Boolean": [True, False, False, True],
    "Float32": pl.Series([0.5, 1.0, 1.0, 0.5], dtype=pl.Float32),
    "Decimal": pl.Series([Decimal("1.5"), Decimal(2), Decimal(2), Decimal("1.5")]),
    "Binary": [b"NaN", b"\xff", b"\xff", b"NaN"],
    "Date": [date(2026, 1, 1), date(2026, 1, 2), date(2026, 1, 2), date(2026, 1, 1)],
    "Duration": [timedelta(1), timedelta(2), timedelta(2), timedelta(1)],
    "Time": [time(1), time(2), time(2), time(1)],
    "List": [["a"], ["b", "c"], ["b", "c"], ["a"]],
    "List of floats": [[math.nan], [1.0, 2.0], [1.0, 2.0], [math.nan]],
    "Array": pl.Series([[1, 2], [3, 4], [3, 4], [1, 2]], dtype=pl.Array(pl.Int64, 2)),
    "Struct": [{"x": 1, "y": "NaN"}, {"x": 2, "y": "b"}, {"x": 2, "y": "b"}, {"x": 1, "y": "NaN"}],
}

OF_CLASSES = [mlm.classification_accuracy(), mlm.global_accuracy(), mlm.n_excluded()]


def readings_of_classes(frame: pl.DataFrame) -> list[tuple[Any, ...]]:
    lazy = frame.lazy()
    return [
        frame.select(OF_CLASSES).row(0),
        lazy.select(OF_CLASSES).collect(engine="streaming").row(0),
        lazy.group_by(pl.lit(1)).agg(OF_CLASSES).drop("literal").collect().row(0),
        mlm.evaluate(frame, OF_CLASSES).row(0),
        mlm.evaluate(lazy, OF_CLASSES).collect(engine="streaming").row(0),
    ]


@pytest.mark.parametrize("kind", CLASSES)
def test_classes(kind: str) -> None:
    """Of four classes the last two are wrong: a sample of one right and one wrong, then a row that is not known."""
    said = pl.Series("score", CLASSES[kind])
    frame = pl.DataFrame({"sample": [1, 1, 2, 3], "score": said, "truth": said.gather([0, 1, 0, 3])})
    frame = frame.with_columns(truth=pl.when(pl.col("sample") != 3).then("truth"))
    for row in readings_of_classes(frame):
        assert row == (2 / 3, 0.5, 1)
    assert mlm.confusion(frame)["n"].to_list() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("dtype", [pl.Float16, pl.Float32, pl.Float64])
@pytest.mark.parametrize("column", ["score", "truth"])
def test_a_class_that_is_nan(column: str, dtype: pl.DataType) -> None:
    frame = pl.DataFrame({"sample": [1, 2], "score": [1.0, 2.0], "truth": [1.0, 2.0]})
    frame = frame.cast({"score": dtype, "truth": dtype})
    broken = frame.with_columns(pl.Series(column, [math.nan, 2.0], dtype=dtype))
    assert set(readings_of_classes(frame)) == {(1.0, 1.0, 0)}
    for row in readings_of_classes(broken):
        assert row == pytest.approx((math.nan, math.nan, 0), nan_ok=True)
    assert mlm.confusion(broken)["n"].is_nan().all()


@pytest.mark.parametrize(
    ("score", "truth"),
    [
        (pl.Int8, pl.UInt64),
        (pl.Boolean, pl.Int64),
        (pl.Float32, pl.Float64),
        (pl.Decimal(4, 0), pl.Int64),
        (pl.String, pl.Categorical),
        (pl.String, pl.Enum(["0", "1"])),
    ],
)
def test_classes_of_two_types(score: pl.DataType, truth: pl.DataType) -> None:
    texts = score == pl.String
    numbers = pl.DataFrame({"sample": [1, 2, 3], "score": [0, 1, 1], "truth": [0, 1, 0]})
    names = numbers.cast({"score": pl.String, "truth": pl.String}) if texts else numbers
    for row in readings_of_classes(names.cast({"score": score, "truth": truth})):
        assert row == (2 / 3, 2 / 3, 0)
