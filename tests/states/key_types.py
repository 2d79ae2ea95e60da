"""Keys of every type that a column of a log may have, with values at the ends of what it can hold."""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import polars as pl

BERLIN = "Europe/Berlin"
TWICE = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)  # in Berlin, a night with one hour twice
ODD_TEXTS = [
    "", " ", "a\nb", "ä 日本", "\"'\\", "null", "NaN", "sha256:" + "0" * 64, "PAR1", "polars_mlmetrics", "\x00",
]  # fmt: skip
KEYS: dict[str, pl.Series] = {
    "Date": pl.Series([date(1, 1, 1), date(1969, 12, 31), date(9999, 12, 31), None]),
    "Datetime ms": pl.Series([datetime(1960, 1, 1), datetime(2026, 1, 1), None], dtype=pl.Datetime("ms")),
    "Datetime us": pl.Series([datetime(1960, 1, 1), datetime(2026, 1, 1, 1, 2, 3, 4), None]),
    "Datetime ns": pl.Series([1, -1, None]).cast(pl.Datetime("ns")),
    "UTC": pl.Series([TWICE, None]).dt.replace_time_zone("UTC"),
    "Berlin": pl.Series([TWICE, TWICE + timedelta(hours=1), None]).dt.convert_time_zone(BERLIN),
    "Time": pl.Series([time(0), time(23, 59, 59, 999_999), None]),
    "Duration": pl.Series([timedelta(0), timedelta(days=-1, microseconds=1), None]),
    "Enum": pl.Series(["z", "a", None], dtype=pl.Enum(["z", "a", "never"])),
    "Categorical": pl.Series(["z", "a", None], dtype=pl.Categorical()),
    "Boolean": pl.Series([True, False, None]),
    "Int8": pl.Series([-128, 127, 0, None], dtype=pl.Int8),
    "Int64": pl.Series([-(2**63), 2**63 - 1, None]),
    "UInt64": pl.Series([2**64 - 1, 0, None], dtype=pl.UInt64),
    "Int128": pl.Series([-(2**100), 2**100, None], dtype=pl.Int128),
    "Float32": pl.Series([0.1, float("inf"), float("nan"), None], dtype=pl.Float32),
    "Float64": pl.Series([0.1, -0.5, float("-inf"), float("nan"), 5e-324, None]),
    "zeros": pl.Series([0.0, -0.0, None]),
    "Decimal": pl.Series([Decimal("0.10"), Decimal("-12345.67"), None], dtype=pl.Decimal(20, 2)),
    "String": pl.Series([*ODD_TEXTS, None]),
    "Binary": pl.Series([b"", b"\xff\x00", None]),
    "all null": pl.Series([None, None], dtype=pl.String),
    "no type": pl.Series([None, None]),
}
