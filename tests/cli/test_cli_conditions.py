"""Conditions as they are typed: times, days, zones and nulls; and groups by parts of a time."""

from datetime import datetime, timedelta

import polars as pl
import pytest

from tests.cli.commands import Printed, Refused, Table

HOURS = pl.datetime_range(datetime(2026, 11, 4, 12), datetime(2026, 11, 6, 12), timedelta(hours=6), eager=True)
LOG = pl.DataFrame(
    {"sample": range(9), "score": [0.9, 0.2, 0.4] * 3, "truth": [1, 0, 1] * 3, "ts": HOURS}
).with_columns(
    zoned=pl.col("ts").dt.replace_time_zone("Europe/Berlin"), views=pl.when(pl.col("sample") > 1).then("sample")
)


@pytest.mark.parametrize(
    ("conditions", "n_rows"),
    [
        ("ts>=2026-11-05T12:00", 5),
        ("'ts >= 2026-11-05 12:00:00'", 5),
        ("ts>=2026-11-05", 7),
        ("ts<=2026-11-05", 6),
        ("ts=2026-11-05", 4),
        ("ts!=2026-11-05", 5),
        ("ts>20261105T120000", 4),
        ("zoned>=2026-11-05T12:00", 5),
        ("zoned>=2026-11-05T11:00Z", 5),
        ("zoned>=2026-11-05T12:00+01:00", 5),
        ("zoned=2026-11-05", 4),
        ("ts>=2026-11-05T00:00 ts<2026-11-06", 4),
        ("views=null", 2),
        ("views!=null views<4", 2),
    ],
)
def test_times_and_nulls(conditions: str, n_rows: int, printed: Printed, of_shown_python: Table) -> None:
    line = f"evaluate log.parquet -m n_rows --where {conditions}"
    assert printed(line) == f"n_rows\n{n_rows}\n"
    assert of_shown_python(line).item() == n_rows


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("ts>=2026-11-05T12:00Z", "'2026-11-05T12:00Z' is no value of it (its times have no zone)"),
        ("ts>=noon", "'noon' is no value of it."),
    ],
)
def test_what_is_no_time(condition: str, said: str, refused: Refused) -> None:
    refused(f"evaluate log.parquet -m n_rows --where {condition}", 4, said)


def test_null_has_no_order(refused: Refused) -> None:
    refused("evaluate log.parquet -m n_rows --where views>null", 2, "null is compared with = or !=")


def test_groups_by_parts_of_a_time(printed: Printed, of_shown_python: Table) -> None:
    line = "evaluate log.parquet -m n_rows --by ts:day --slices zoned:month"
    rows = [row.split(",") for row in printed(line).splitlines()]
    assert rows[0] == ["day", "sliced_by", "slice", "month", "n_rows"]
    assert rows[1:3] == [
        ["2026-11-04", '""', '""', "", "2"],
        ["2026-11-04", "month", "month=2026-11-01", "2026-11-01", "2"],
    ]
    assert of_shown_python(line)["n_rows"].to_list() == [2, 2, 4, 4, 3, 3]
    assert "2026-11-06 12:00:00       1" in printed("evaluate log.parquet -m n_rows --by ts:hour -f table")
    assert printed("gap log.parquet -m accuracy --over ts:day -f table").split()[:3] == ["gap", "low", "high"]


def test_conditions_that_leave_no_row_are_named_below_the_table(printed: Printed) -> None:
    LOG.with_columns(country=pl.lit("DE")).write_parquet("countries.parquet")
    line = "evaluate countries.parquet -m f1 --by country -f table --where"
    hint = ": a condition takes one value"
    assert printed(f"{line} country=DE,FR").endswith(f"no row is left by --where country=DE,FR{hint}\n")
    assert printed(f"{line} country=XX").endswith("no row is left by --where country=XX\n")
    assert "no row is left" not in printed(f"{line} country=DE")
