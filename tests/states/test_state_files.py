"""States as files: what is read is what was written, or one error that names the file."""

import inspect
import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from polars_mlmetrics.engine import contents as engine_state
from polars_mlmetrics.places import files, finding, stores
from polars_mlmetrics.states import folders, state, update
from polars_mlmetrics.states import state_files as state_files
from tests.states.days import BY, DAYS, LOG, METRICS, QUESTIONS, broken, check_answer, names_in, of_day, of_log, told_in
from tests.states.key_types import KEYS
from tests.support.differing import differing
from tests.support.folded_log import contents
from tests.support.readings import READINGS

# -- what is read is what was written ----------------------------------------------------------------------------------


@pytest.mark.parametrize("write", [mlm.write_state, lambda state, path: state.mlm.write_state(str(path))])
@pytest.mark.parametrize("kind", [pl.DataFrame.clone, pl.DataFrame.lazy])
def test_a_state_comes_back_as_it_was(kind: Callable[[pl.DataFrame], Any], write: Any, place: Path) -> None:
    write(kind(of_log()), place)
    scan = mlm.scan_states(place)
    assert isinstance(scan, pl.LazyFrame)
    assert scan.collect_schema() == of_log().schema
    for read in (scan, mlm.scan_states(str(place))):
        assert_frame_equal(read.collect(), of_log(), check_exact=True)
    assert names_in(place.parent) == [place.name]


def test_a_lazy_state_is_written_too(place: Path) -> None:
    mlm.write_state(mlm.state(LOG.lazy(), METRICS, by=BY, buckets=4, passes=3, progress=False), place)
    # Passes add up in another order.
    assert_frame_equal(mlm.scan_states(place).collect(), of_log(), rel_tol=READINGS, abs_tol=READINGS)


DIGEST = "sha256:" + "0" * 64


@pytest.mark.one_in(3)
@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_a_key_of_any_type_comes_back(key: pl.Series, place: Path) -> None:
    log = LOG.with_columns(key.gather((pl.Series(range(LOG.height)) // 3 % len(key)).to_list()).alias("key"))
    metrics = [mlm.f1(average="macro"), mlm.ndcg(k=2), mlm.n_rows()]
    state = mlm.state(log, metrics, by=["key", "model"], buckets=4)
    mlm.write_state(state, place)
    scan = mlm.scan_states(place)
    assert scan.collect_schema() == state.schema
    assert_frame_equal(scan.collect(), state, check_exact=True)
    assert not differing(scan.mlm.finish(metrics, by="key").collect(), mlm.evaluate(log, metrics, by="key"))


@pytest.mark.parametrize("name", ["a b", "ä", "a.b", "col[1]", DIGEST, "score", "label2", "'"])
def test_a_key_of_any_name_comes_back(name: str, place: Path) -> None:
    state = mlm.state(LOG, mlm.f1(), by=pl.col("model").alias(name))
    mlm.write_state(state, place)
    assert_frame_equal(mlm.scan_states(place).collect(), state, check_exact=True)


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("by", [None, BY], ids=str)
def test_a_state_of_hardly_any_rows_comes_back(rows: int, by: Any, place: Path) -> None:
    mlm.write_state(mlm.state(LOG.head(rows), METRICS, by=by), place)
    check_answer(place, LOG.head(rows), by=by)


def test_what_is_not_known_of_a_log_is_not_asked_for(place: Path) -> None:
    log, metrics = LOG.select("score", "truth"), [mlm.roc_auc(bins=8), mlm.log_loss()]
    mlm.write_state(mlm.state(log, metrics[::-1]), place)
    assert not differing(mlm.scan_states(place).mlm.finish(metrics).collect(), mlm.evaluate(log, metrics))


@pytest.mark.one_in(4)
@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_files_of_parts_give_what_the_rows_give(question: dict[str, Any], days: Path) -> None:
    check_answer(days, **question)


def test_files_are_named_as_a_folder_a_pattern_or_a_list(days: Path) -> None:
    names = [str(days / f"{day}.parquet") for day in reversed(DAYS)]
    one, *others = (mlm.scan_states(source).collect().sort(of_log().columns) for source in (days, days / "*", names))
    assert one.height > of_day(DAYS[0]).height
    for other in others:
        assert_frame_equal(other, one, check_exact=True)


@pytest.mark.parametrize(
    "predicate",
    [
        pl.col("day") == DAYS[1],
        pl.col("day") > DAYS[0],
        (pl.col("model") == "y") & (pl.col("day").dt.month() == 1),
        pl.col("model").is_null(),
        pl.lit(True),
    ],
    ids=str,
)
def test_a_scan_can_be_filtered_by_its_keys(predicate: pl.Expr, days: Path) -> None:
    finished = mlm.scan_states(days).filter(predicate).mlm.finish(METRICS, by="model")
    assert not differing(finished.collect(engine="streaming"), mlm.evaluate(LOG.filter(predicate), METRICS, by="model"))


def test_a_scan_can_be_compacted_and_written_again(days: Path, place: Path) -> None:
    mlm.write_state(mlm.scan_states(days).mlm.compact(), place)
    check_answer(place)


ODD_NAMES = ["a[1].parquet", "*.parquet", "a?.parquet", "a#1.parquet", "a%20b.parquet", "a b.parquet", "ä 日本.parquet"]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_state_may_have_an_odd_name(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "odd [x]* %41 #"
    folder.mkdir()
    mlm.write_state(of_log(), folder / "a1.parquet")
    mlm.write_state(of_log().head(7), folder / name)
    assert_frame_equal(mlm.scan_states(folder / name).collect(), of_log().head(7), check_exact=True)
    assert mlm.scan_states(folder).collect().height == of_log().height + 7


@pytest.mark.parametrize("name", ["day=2026-01-30/state.parquet", "model=z/state.parquet"])
def test_the_name_of_a_folder_is_no_key(name: str, tmp_path: Path) -> None:
    (tmp_path / name).parent.mkdir()
    mlm.write_state(of_log(), tmp_path / name)
    assert_frame_equal(mlm.scan_states(tmp_path / name).collect(), of_log(), check_exact=True)


# -- what a state is to others -----------------------------------------------------------------------------------------


def test_a_state_holds_texts_and_numbers() -> None:
    types = {type(dtype) for name, dtype in of_log().schema.items() if name not in ("state", *BY)}
    assert types == {pl.Int64, pl.Float64, pl.String}
    assert isinstance(of_log().schema["state"], pl.Enum)


def test_another_reader_sees_texts_and_numbers(good: Path) -> None:
    with duckdb.connect() as database:
        database.execute("select * from read_parquet($1)", [str(good)])
        types = {name: str(dtype) for name, dtype, *_ in database.description or ()}
        rows = database.fetchall()
    plain = {pl.Int64: "BIGINT", pl.Float64: "DOUBLE", pl.String: "VARCHAR", pl.Date: "DATE", pl.Enum: "VARCHAR"}
    assert types == {name: plain[type(dtype)] for name, dtype in of_log().schema.items()}
    assert rows == of_log().rows()


def test_the_file_says_what_the_column_says(good: Path) -> None:
    told = told_in(good)
    read = pl.read_parquet(good)["state"].cast(pl.String).unique().to_list()
    assert read == [told["contents"]]
    assert json.loads(told["contents"]) == contents(of_log())
    assert told["rows"] == of_log().height


RUNS_WHAT_IT_READS = re.compile(r"\b(pickle|cloudpickle|dill|marshal|joblib|shelve|deserialize|eval|exec)\b")


@pytest.mark.parametrize(
    "module", [files, finding, stores, engine_state, state, state_files, folders, update], ids=lambda it: it.__name__
)
def test_nothing_that_is_read_is_run(module: Any) -> None:
    assert RUNS_WHAT_IT_READS.findall(inspect.getsource(module)) == []


def test_the_guard_sees_what_would_be_run() -> None:
    runs = ["import pickle", "from pickle import loads", "pl.LazyFrame.deserialize(file)", "eval(text)", "dill.load(f)"]
    assert [code for code in runs if not RUNS_WHAT_IT_READS.findall(code)] == []


def test_reading_a_state_unpickles_nothing(days: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, broken)
    check_answer(days)
