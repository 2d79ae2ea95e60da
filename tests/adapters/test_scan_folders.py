"""Folders such as day=2026-11-20 are columns of a log, of the right values and types."""

from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.adapters.scan import scan
from tests.adapters.written_logs import every_format, refused, rows, total, write

pytestmark = pytest.mark.usefixtures("folder")


def write_days(kind: str = "parquet") -> None:
    for i, (day, country) in enumerate([("2026-11-20", "DE"), ("2026-11-20", "FR"), ("2026-11-21", "DE")]):
        write(f"logs/day={day}/country={country}/a.{kind}", x=[10**i])


@every_format
def test_folders_are_columns(kind: str) -> None:
    write_days(kind)
    frame = scan("logs")
    assert frame.collect_schema() == {"x": pl.Int64, "day": pl.Date, "country": pl.String}
    expected = [(1, date(2026, 11, 20), "DE"), (10, date(2026, 11, 20), "FR"), (100, date(2026, 11, 21), "DE")]
    assert rows("logs") == rows("logs", hive=True) == rows("logs/**/*") == expected
    assert rows("logs", hive=False) == [(1,), (10,), (100,)]


@every_format
@pytest.mark.parametrize("engine", ["streaming", "in-memory"])
def test_folders_can_be_filtered_and_grouped_by(kind: str, engine: Any) -> None:
    write_days(kind)
    frame = scan("logs")
    de = frame.filter(pl.col("country") == "DE").select(pl.col("x").sum())
    later = frame.filter(pl.col("day") > date(2026, 11, 20), pl.col("x") > 0).select("x", "country")
    days = frame.group_by("day").agg(pl.col("x").sum()).sort("day")
    assert de.collect(engine=engine).item() == 101
    assert later.collect(engine=engine).rows() == [(100, "DE")]
    assert days.collect(engine=engine)["x"].to_list() == [11, 100]
    assert frame.select("day").unique().collect(engine=engine).height == 2


@pytest.mark.parametrize("kind", ["parquet", "ipc"])
def test_a_filter_spares_the_files_of_other_folders(kind: str) -> None:
    for day in (1, 2):
        write(f"logs/day={day}/a.{kind}", x=[day])
    frame = scan("logs")
    Path(f"logs/day=2/a.{kind}").write_bytes(b"spoilt")
    assert frame.filter(pl.col("day") == 1).select("x").collect().item() == 1
    with pytest.raises(pl.exceptions.PolarsError):  # so that the file is seen to be spoilt
        frame.filter(pl.col("day") == 2).collect()


@pytest.mark.parametrize(
    ("source", "keys"),
    [
        ("run=3/logs", ["day", "country"]),
        ("run=3/logs/day=1", ["country"]),
        ("run=3/logs/day=*/country=DE/*.parquet", ["day", "country"]),
        ("run=3/logs/day=1/*/*.parquet", ["country"]),
        ("run=3/logs/day=1/country=DE/*.parquet", []),
        ("run=3/logs/day=1/country=DE/a.parquet", []),
        ("run=3", ["day", "country"]),
        (".", ["run", "day", "country"]),
        ("**/*.parquet", ["run", "day", "country"]),
        (["run=3/logs/day=1", "run=3/logs/day=2"], ["country"]),
    ],
    ids=str,
)
def test_only_folders_below_the_one_given_count(source: Any, keys: list[str], folder: Path) -> None:
    values = {"run": 3, "day": 1, "country": "DE"}
    write("run=3/logs/day=1/country=DE/a.parquet", x=[1])
    if isinstance(source, list):
        write("run=3/logs/day=2/country=DE/a.parquet", x=[1])
    absolute = [folder / one for one in source] if isinstance(source, list) else folder / source
    for given in (source, absolute):
        frame = scan(given).collect()
        assert frame.columns == ["x", *keys]
        assert frame.row(0) == (1, *(values[key] for key in keys))


@every_format
def test_a_folder_above_may_say_the_same_key(kind: str) -> None:
    write(f"day=1/logs/day=2/a.{kind}", x=[1])
    write(f"day=1/logs/day=3/a.{kind}", x=[10])
    assert rows("day=1/logs") == [(1, 2), (10, 3)]
    assert rows("day=1/logs/day=2") == [(1,)]


VALUES: dict[str, tuple[list[str], list[Any]]] = {
    "whole numbers": (["1", "-5", "007", "0", "9223372036854775807"], [1, -5, 7, 0, 2**63 - 1]),
    "numbers and null": (["1", "__HIVE_DEFAULT_PARTITION__"], [1, None]),
    "numbers too large": (["1", "9223372036854775808"], ["1", "9223372036854775808"]),
    "numbers and none": (["1", ""], ["1", ""]),
    "floats": (["1", "0.5"], ["1", "0.5"]),
    "dates": (["2026-11-20", "1969-01-01", "0001-01-01"], [date(2026, 11, 20), date(1969, 1, 1), date(1, 1, 1)]),
    "dates and null": (["2026-11-20", "__HIVE_DEFAULT_PARTITION__"], [date(2026, 11, 20), None]),
    "dates and more": (["2026-11-20", "today"], ["2026-11-20", "today"]),
    "no dates": (["2026-11-20", "2026-02-30"], ["2026-11-20", "2026-02-30"]),
    "short dates": (["2026-11-2", "2026-1-1"], ["2026-11-2", "2026-1-1"]),
    "date and number": (["2026-11-20", "1"], ["2026-11-20", "1"]),
    "nulls": (["__HIVE_DEFAULT_PARTITION__"], [None]),
    "null in words": (["null", "None", "NaN", "true"], ["null", "None", "NaN", "true"]),
    "signs": (["+1", "1_000", " 1", "１"], ["+1", "1_000", " 1", "１"]),
    "encoded": (["x%2Fy", "100%25", "%C3%A4", "a%20b", "a%2520"], ["x/y", "100%", "ä", "a b", "a%20"]),
    "not encoded": (["100%", "a%zz", "x+y", "ä", "a b"], ["100%", "a%zz", "x+y", "ä", "a b"]),
    "equals": (["a=b", "=", "c"], ["a=b", "=", "c"]),
    "encoded equals": (["a%3Db"], ["a=b"]),
    "patterns": (["*", "[a]", "a?", "{a,b}"], ["*", "[a]", "a?", "{a,b}"]),
    "lines": (["a\nb", "a'\"b", "a\\b", "#"], ["a\nb", "a'\"b", "a\\b", "#"]),
}


@pytest.mark.one_in(3)
@every_format
@pytest.mark.parametrize(("texts", "values"), VALUES.values(), ids=VALUES)
def test_values_of_folders_are_right(texts: list[str], values: list[Any], kind: str) -> None:
    for i, text in enumerate(texts):
        write(f"logs/k={text}/a.{kind}", x=[i])
    frame = scan("logs")
    assert frame.sort("x").collect()["k"].to_list() == values
    for i, value in enumerate(values):  # and a filter by each finds its row
        assert frame.filter(pl.col("k").eq_missing(value)).collect()["x"].to_list() == [i]


@every_format
def test_rows_come_in_the_order_of_the_files(kind: str) -> None:
    for i in range(9):
        write(f"logs/k={8 - i}/a.{kind}", x=[i] * 1000)
    found = scan([f"logs/k={8 - i}/a.{kind}" for i in range(9)]).collect()["x"]
    assert found.to_list() == [i for i in range(9) for _ in range(1000)]
    assert scan("logs").collect()["k"].to_list() == [i for i in range(9) for _ in range(1000)]


def test_nulls_alone_are_text() -> None:
    write("logs/k=__HIVE_DEFAULT_PARTITION__/a.parquet", x=[1])
    assert scan("logs").collect_schema()["k"] == pl.String


@every_format
def test_keys_are_decoded_and_may_be_in_any_order(kind: str) -> None:
    write(f"logs/a%20b=1/c=2/f.{kind}", x=[1])
    write(f"logs/c=4/plain/a%20b=3/f.{kind}", x=[10])
    assert scan("logs").select("a b", "c").collect().rows() == [(1, 2), (3, 4)]


@pytest.mark.parametrize("kind", ["parquet", "ipc"])
def test_plain_keys_may_be_in_any_order(kind: str) -> None:
    write(f"logs/a=1/c=2/f.{kind}", x=[1])
    write(f"logs/c=4/plain/a=3/f.{kind}", x=[10])
    assert scan("logs").select("x", "a", "c").collect().rows() == [(1, 1, 2), (10, 3, 4)]


@pytest.mark.parametrize("kind", ["parquet", "ipc", "ndjson"])
def test_columns_in_another_order_go_with_folders(kind: str) -> None:
    write(f"logs/k=1/f.{kind}", x=[1], y=[10])
    write(f"logs/k=2/f.{kind}", y=[20], x=[2])
    assert rows("logs") == [(1, 10, 1), (2, 20, 2)]


@pytest.mark.parametrize("name", ["day=1.parquet", "=1/a.parquet", "day/a.parquet"])
def test_what_says_no_key_is_no_column(name: str) -> None:
    write(f"logs/{name}", x=[1])
    assert rows("logs") == [(1,)]
    with pytest.raises(mlm.FileError, match=rf"^hive=True: logs/{name} is not in a folder such as .* below logs\.$"):
        scan("logs", hive=True)


def test_a_folder_of_a_value_without_a_key_says_nothing_beside_one_that_does() -> None:
    write("logs/k=1/=5/a.parquet", x=[1])
    assert rows("logs") == [(1, 1)]


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ("logs/l=2/a.csv", "logs/l=2/a.csv lies in folders of l, and logs/k=1/a.csv in folders of k."),
        ("logs/k=2/l=2/a.csv", "logs/k=2/l=2/a.csv lies in folders of k, l, and logs/k=1/a.csv in folders of k."),
        ("logs/l/a.csv", "logs/l/a.csv lies in folders of no key, and logs/k=1/a.csv in folders of k."),
        ("logs/a.csv", "logs/k=1/a.csv lies in folders of k, and logs/a.csv in folders of no key."),
    ],
)
def test_all_files_have_the_same_keys(other: str, said: str) -> None:
    write("logs/k=1/a.csv", x=[1])
    write(other, x=[10])
    refused("logs", f"{said} hive=False ignores the folders.")
    assert total("logs", hive=False) == 11


def test_a_key_that_is_there_twice_is_an_error() -> None:
    write("logs/k=1/k=2/a.parquet", x=[1])
    refused("logs", "logs/k=1/k=2/a.parquet is in two folders with the key 'k'.")


def test_a_value_that_cannot_be_decoded_is_an_error() -> None:
    write("logs/k=%FF/a.parquet", x=[1])
    refused("logs", "logs/k=%FF/a.parquet: the percent signs in k=%FF are not valid UTF-8.")


@every_format
def test_a_key_that_is_a_column_too_is_an_error(kind: str) -> None:
    write(f"logs/x=5/a.{kind}", x=[1])
    said = f"logs/x=5/a.{kind} has a column 'x' and is in a folder with that key."
    refused("logs", f"{said} hive=False uses the column of the file.")
    assert total("logs", hive=False) == 1
