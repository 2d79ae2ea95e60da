"""Files whose columns differ: named where one is read, and read as one where `schema` and `missing` say how."""

import re
from datetime import date, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal, assert_series_equal

import polars_mlmetrics as mlm
from polars_mlmetrics.adapters.scan import scan
from tests.adapters.written_logs import every_format, refused, rows, total, write
from tests.support.plans import fallbacks

REMEDY = "schema= sets the columns and types for all files."
ENGINES = ("streaming", "in-memory")
FILLED = f"missing='null' fills missing columns with nulls, and {REMEDY}"


pytestmark = pytest.mark.usefixtures("folder")


def refused_where_read(column: str, said: str, **options: Any) -> None:
    """The files are a log: only who reads this column is told how it differs."""
    log = scan(".", **options)
    with pytest.raises(mlm.FileError, match=f"^{re.escape(said)}$"):
        mlm.evaluate(log, pl.col(column).count())
    for engine in ENGINES:
        with pytest.raises(pl.exceptions.InvalidOperationError, match=re.escape(said)):
            log.select(column).collect(engine=engine)


# -- columns and types -------------------------------------------------------------------------------------------------


@every_format
def test_a_column_that_is_missing_is_named(kind: str) -> None:
    write(f"a.{kind}", x=[1], score=[0.5])
    write(f"b.{kind}", x=[1])
    refused_where_read("score", f"b.{kind} has no column 'score' (Float64 in a.{kind}). {FILLED}")
    assert total(".") == 2


@every_format
def test_a_column_that_is_too_much_is_named(kind: str) -> None:
    write(f"a.{kind}", x=[1])
    write(f"b.{kind}", x=[1])
    write(f"c.{kind}", x=[1], score=[0.5])
    refused_where_read("score", f"c.{kind} has a column 'score' (Float64), which is not in a.{kind}. {FILLED}")


OTHER_TYPES = [pl.Int32, pl.Float64, pl.String, pl.UInt64, pl.Null, pl.Boolean, pl.Decimal(5, 2), pl.Categorical]


@pytest.mark.parametrize("kind", ["parquet", "ipc"])
@pytest.mark.parametrize("other", OTHER_TYPES, ids=str)
def test_a_column_of_another_type_is_named(kind: str, other: Any) -> None:
    write(f"a.{kind}", x=[1])
    write(f"b.{kind}", x=pl.Series([None], dtype=other))
    refused_where_read("x", f"column 'x' is {other} in b.{kind} and Int64 in a.{kind}. {REMEDY}")


@pytest.mark.parametrize("kind", ["csv", "ndjson"])
def test_types_that_are_guessed_apart_can_be_said(kind: str) -> None:
    write(f"a.{kind}", x=[1])
    write(f"b.{kind}", x=[1.5])
    guessed = f"Polars guesses the types of {kind} files."
    refused_where_read("x", f"column 'x' is Float64 in b.{kind} and Int64 in a.{kind}. {guessed} {REMEDY}")
    assert total(".", schema={"x": pl.Float64}) == 2.5


def test_a_csv_without_rows_has_no_types_to_agree_on() -> None:
    write("a.csv", x=[1])
    Path("b.csv").write_text("x\n")
    guessed = "Polars guesses the types of csv files."
    refused_where_read("x", f"column 'x' is String in b.csv and Int64 in a.csv. {guessed} {REMEDY}")


@every_format
def test_columns_in_another_order_are_read_by_name(kind: str) -> None:
    write(f"a.{kind}", x=[1], y=[10], z=["a"])
    write(f"b.{kind}", z=["b"], y=[20], x=[2])
    frame = scan(".")
    expected = pl.DataFrame({"x": [1, 2], "y": [10, 20], "z": ["a", "b"]})
    assert_frame_equal(frame.collect(), expected)
    assert_frame_equal(frame.select("y").collect(), expected.select("y"))
    assert_frame_equal(frame.filter(pl.col("x") == 2).collect(), expected[1:])
    assert_frame_equal(frame.collect(engine="in-memory"), expected)


def test_a_csv_without_its_header_is_refused() -> None:
    write("a.csv", x=[1], y=[10])
    Path("b.csv").write_text("2,20\n3,30\n")
    refused(".", f"b.csv has no column 'x' (Int64 in a.csv). {FILLED}")


def test_csv_files_of_any_ending_and_mark_are_read() -> None:
    Path("a.csv").write_bytes(b"x,y\n1,10")
    Path("b.csv").write_bytes(b"\xef\xbb\xbfx,y\r\n2,20\r\n")
    Path("c.csv").write_bytes(b'"x",y\n4,40\n')
    assert rows(".") == [(1, 10), (2, 20), (4, 40)]


@every_format
@pytest.mark.parametrize("engine", ENGINES)
def test_a_column_that_nobody_reads_may_differ(kind: str, engine: Any) -> None:
    write(f"a.{kind}", x=[1, 2], unread=[1, 2], first=[1, 2])
    write(f"b.{kind}", x=[3], unread=[0.5], second=["a"])
    log = scan(".")
    assert log.collect_schema().names() == ["x", "unread", "first", "second"]
    assert log.select("x").collect(engine=engine)["x"].to_list() == [1, 2, 3]
    assert log.filter(pl.col("x") > 1).group_by("x").len().sort("x").collect(engine=engine)["x"].to_list() == [2, 3]
    assert fallbacks(log.select("x")) == []


def test_a_log_of_lists_and_another_log_are_not_one() -> None:
    """The type of `listed` says what a log lacks, so it matters to metrics that do not read it."""
    write("a.parquet", sample=[1], label=["a"], score=[0.5], listed=pl.Series(["returned"], dtype=mlm.listed_type()))
    write("b.parquet", sample=[1], label=["b"], score=[0.5])
    with pytest.raises(mlm.FileError, match=r"^b\.parquet has no column 'listed' "):
        scan(".")


def test_a_differing_column_of_a_schema_stays_one() -> None:
    """So a schema can be handed on, with other types for some of its columns."""
    write("a.csv", x=[1], y=[1])
    write("b.csv", x=[2], y=[0.5])
    log = scan(".", schema={**scan(".").collect_schema(), "x": pl.String})
    assert log.select("x").collect()["x"].to_list() == ["1", "2"]
    with pytest.raises(mlm.FileError, match=r"^column 'y' is Float64 in b\.csv and Int64 in a\.csv\."):
        mlm.evaluate(log, mlm.n_rows(), by="y")


@every_format
def test_many_files_are_read_once_each(kind: str) -> None:
    for i in range(15):
        write(f"{i}.{kind}", x=[2**i])
    assert total(".") == 2**15 - 1


# -- read as one -------------------------------------------------------------------------------------------------------

SCHEMA = {"x": pl.Int64, "score": pl.Float64, "label": pl.String}


@every_format
@pytest.mark.parametrize("engine", ["streaming", "in-memory"])
def test_files_that_drifted_are_read_as_one(kind: str, engine: Any) -> None:
    """In the order of the files, whatever the order of their columns and what else they hold."""
    write(f"a.{kind}", x=[1], score=[1], label=["a"])
    write(f"b.{kind}", label=["b"], more=[1], x=[2], score=[0.5])
    write(f"c.{kind}", x=[4], score=[0.25], label=["c"])
    frame = scan(".", schema=SCHEMA)
    assert frame.collect_schema() == pl.Schema(SCHEMA)
    expected = pl.DataFrame({"x": [1, 2, 4], "score": [1.0, 0.5, 0.25], "label": ["a", "b", "c"]})
    assert_frame_equal(frame.collect(engine=engine), expected)
    assert_frame_equal(frame.filter(pl.col("score") < 1).select("x").collect(), expected[1:].select("x"))
    assert fallbacks(frame) == []


@every_format
def test_a_column_that_a_file_lacks_is_null_there_where_that_is_said(kind: str) -> None:
    write(f"a.{kind}", x=[1], label=["a"])
    write(f"b.{kind}", x=[2], score=[0.5])
    refused(".", f"a.{kind} has no column 'score'. missing='null' fills it with nulls.", schema=SCHEMA)
    expected = pl.DataFrame({"x": [1, 2], "score": [None, 0.5], "label": ["a", None]})
    assert_frame_equal(scan(".", schema=SCHEMA, missing="null").collect(), expected)
    assert_frame_equal(scan(".", missing="null").collect(), expected.select("x", "label", "score"))


def test_parquet_files_that_drifted_are_one_scan() -> None:
    """What Polars' own scan of parquet does is left to it: other columns, columns that lack, wider numbers."""
    types = [pl.Int8, pl.Int64, pl.UInt32, pl.Int32]
    for i, dtype in enumerate(types):
        scores = pl.Series([i / 4], dtype=pl.Float64 if i % 2 else pl.Float32)
        write(f"{i}.parquet", **{f"own{i}": ["a"], "x": pl.Series([2**i], dtype=dtype), "score": scores})
    one = scan(".", schema={"x": pl.Int64, "score": pl.Float64})
    of_all = scan(".", schema={"score": pl.Float64, "own2": pl.String, "x": pl.Int64}, missing="null")
    for log in (one, of_all, scan(".").select("own0"), scan(".", missing="null").select("own0")):
        assert log.explain().count("Parquet SCAN") == 1
    expected = pl.DataFrame({"score": [0.0, 0.25, 0.5, 0.75], "own2": [None, None, "a", None], "x": [1, 2, 4, 8]})
    assert_frame_equal(of_all.collect(), expected)
    assert_frame_equal(one.collect(), expected.select("x", "score"))
    assert_frame_equal(one.filter(pl.col("x") > 3, pl.col("score") < 0.6).collect(), expected[2:3].select("x", "score"))


def test_files_that_are_alike_need_nothing_that_polars_calls_unstable() -> None:
    write("a.parquet", x=[1], score=[0.5])
    write("b.parquet", score=[0.5], x=[2])
    with pl.Config(warn_unstable=True):  # a warning is an error in tests
        assert total(".") == 3


def test_parquet_files_that_drifted_are_read_file_by_file_and_known_again(capsys: pytest.CaptureFixture[str]) -> None:
    """So the log is no more than a scan, as one whose files are alike."""
    write("a.parquet", sample=[1, 2], score=pl.Series([0.75, 0.25], dtype=pl.Float32), truth=[1, 0], more=["a", "b"])
    write("b.parquet", truth=[0], score=[0.75], sample=[3])
    log = scan(".", schema={"sample": pl.Int64, "score": pl.Float64, "truth": pl.Int64})
    table = mlm.evaluate(log, mlm.accuracy(), mlm.n_samples(), passes="files").collect()
    assert table.rows() == [(2 / 3, 3)]
    assert "pass 2 of 2" in capsys.readouterr().err
    sources = mlm.state(log, mlm.accuracy(), buckets=0).collect()["source"].drop_nulls()
    assert {source.partition(" ")[2] for source in sources} == {"a.parquet", "b.parquet"}


def test_a_file_that_loses_a_column_after_the_check_is_an_error() -> None:
    for name in "ab":
        write(f"{name}.parquet", x=[1], score=[0.5])
    log = scan(".")
    write("b.parquet", x=[1])
    with pytest.raises(pl.exceptions.PolarsError, match="score"):
        log.collect()


@every_format
def test_without_a_schema_a_column_is_of_one_type(kind: str) -> None:
    write(f"a.{kind}", x=[1])
    write(f"b.{kind}", y=[1])
    write(f"c.{kind}", x=[0.5])
    guessed = f" Polars guesses the types of {kind} files." if kind in ("csv", "ndjson") else ""
    said = f"column 'x' is Float64 in c.{kind} and Int64 in a.{kind}.{guessed} {REMEDY}"
    refused_where_read("x", said, missing="null")
    assert scan(".", missing="null").select("y").collect()["y"].to_list() == [None, 1, None]


@pytest.mark.parametrize("kind", ["csv", "ndjson"])
def test_a_text_is_read_as_the_type_that_is_said_and_not_guessed_first(kind: str) -> None:
    texts = {"csv": "x\n001\n1\n", "ndjson": '{"x": "001"}\n{"x": "1"}\n'}
    Path(f"a.{kind}").write_text(texts[kind])
    assert scan(".", schema={"x": pl.String}).collect()["x"].to_list() == ["001", "1"]


LOSSES: dict[str, tuple[pl.Series, Any]] = {
    "a fraction": (pl.Series([0.5]), pl.Int64),
    "a fraction that would be true": (pl.Series([0.5]), pl.Boolean),
    "a decimal": (pl.Series(["0.5"]).cast(pl.Decimal(5, 2)), pl.Int64),
    "a grade that would be true": (pl.Series([2]), pl.Boolean),
    "a time of the day": (pl.Series([datetime(2026, 1, 1, 12)]), pl.Date),
    "nanoseconds": (pl.Series([1], dtype=pl.Datetime("ns")), pl.Datetime("us")),
    "a list": (pl.Series([[1]]), pl.Float64),
    "a text that would be a time": (pl.Series(["12:00"]), pl.Time),
    "a number that would be a time": (pl.Series([0.5]), pl.Date),
}


@pytest.mark.parametrize(("column", "dtype"), LOSSES.values(), ids=LOSSES)
def test_a_type_that_would_change_values_is_refused(column: pl.Series, dtype: Any) -> None:
    write("a.parquet", x=column)
    said = f"column 'x' is {column.dtype} in a.parquet and cannot be read as {pl.Schema({'x': dtype})['x']}."
    refused(".", said, schema={"x": dtype})


DOUBTFUL: dict[str, tuple[list[Any], list[Any], Any]] = {
    "too large": ([1], [1, None, 300], pl.Int8),
    "no date": (["2026-11-24"], ["2026-11-24", "soon"], pl.Date),
    "no number": ([1], ["many", "2"], pl.Int64),
    "outside of an Enum": (["cat"], ["cat", "dog"], pl.Enum(["cat"])),
}


@every_format
@pytest.mark.parametrize(("good", "bad", "dtype"), DOUBTFUL.values(), ids=DOUBTFUL)
def test_a_value_that_does_not_fit_is_named_with_its_file(kind: str, good: Any, bad: Any, dtype: Any) -> None:
    write(f"a.{kind}", x=good, y=[1] * len(good))
    schema = {"x": dtype, "y": pl.Int16}
    days = dtype == pl.Date
    expected = pl.Series("x", [date.fromisoformat(day) for day in good] if days else good, dtype=dtype)
    assert_series_equal(scan(".", schema=schema).collect()["x"], expected)
    write(f"b.{kind}", x=bad, y=[1] * len(bad))
    said = rf"^column 'x' of b\.{kind} has a value that is no {re.escape(str(pl.Schema(schema)['x']))}"
    with pytest.raises(mlm.FileError, match=said) as error:
        scan(".", schema=schema)
    if kind in ("parquet", "ipc"):
        [shown] = [value for value in bad if value not in (None, *good, "2")]
        assert str(error.value).endswith(f", such as {shown!r}.")


def test_values_are_looked_at_only_if_their_type_may_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    write("a.parquet", x=pl.Series([1], dtype=pl.Int32), score=pl.Series([0.5], dtype=pl.Float32), label=["a"])
    monkeypatch.setattr(pl.LazyFrame, "collect", lambda *_, **__: pytest.fail("the rows were read"))
    scan(".", schema=SCHEMA)


@every_format
@pytest.mark.parametrize("place", ["", "é="], ids=["plain", "odd"])
def test_keys_of_folders_go_with_files_that_drifted(kind: str, place: str) -> None:
    write(f"k=1/{place}/a.{kind}", x=[1], score=[1])
    write(f"k=02/{place}/b.{kind}", x=[2], score=[0.5])
    for dtype, values in ((None, [2, 1]), (pl.Int64, [2, 1]), (pl.String, ["02", "1"])):
        schema = {"x": pl.Int64, "score": pl.Float64, **({} if dtype is None else {"k": dtype})}
        frame = scan(".", schema=schema).select("x", "score", "k").collect()
        assert frame.to_dict(as_series=False) == {"x": [2, 1], "score": [0.5, 1.0], "k": values}
    said = "the folders of 'k' are Int64: they can be read as that type or as String, not as Float64."
    refused(".", said, schema={"x": pl.Int64, "k": pl.Float64})


@pytest.mark.parametrize("name", ["^x$", "*", "a b", "x"])
def test_columns_of_any_name_are_read_as_one(name: str) -> None:
    write("a.parquet", **{name: [1], "y": [1]})
    write("b.parquet", **{name: [2.5], "y": [1]})
    assert scan(".", schema={name: pl.Float64}).collect().to_dict(as_series=False) == {name: [1.0, 2.5]}


@pytest.mark.parametrize("kind", ["parquet", "ipc", "csv", "ndjson"])
@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_a_file_keeps_its_rows_where_it_has_no_column_that_is_read(kind: str, engine: Any, tmp_path: Path) -> None:
    """Its only column has another type in other files, or is not wanted."""
    parts = [pl.DataFrame({"score": [0.5, 1.5, 2.5]}), pl.DataFrame({"score": [4, 5], "weight": [1.0, 2.0]})]
    for place, part in enumerate(parts):
        getattr(part, f"write_{kind}")(tmp_path / f"{place}.{kind}")
    expected = [None, None, None, 1.0, 2.0]
    for schema in (None, {"weight": pl.Float64}):
        rows = mlm.scan(tmp_path, missing="null", schema=schema)
        assert rows.select("weight").collect(engine=engine).to_series().to_list() == expected
