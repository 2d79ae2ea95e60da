"""States as files: what is read is what was written, or one error that names the file."""

import hashlib
import inspect
import json
import os
import pickle
import re
import shutil
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import duckdb
import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from polars_mlmetrics.data import files
from polars_mlmetrics.engine import state as engine_state
from polars_mlmetrics.states import files as state_files
from polars_mlmetrics.states import folder, state
from tests.oracle import READINGS
from tests.test_passes import differing

METRICS = [
    mlm.f1(), mlm.f1(average="macro"), mlm.log_loss(), mlm.calibration_error(), mlm.roc_auc(bins=16), mlm.ndcg(k=2),
    mlm.r2(), mlm.max_error(), mlm.n_rows(), mlm.n_samples(), mlm.n_excluded(),
]  # fmt: skip
BY = ["model", "day"]
DAYS = [date(2026, 1, 30), date(2026, 1, 31), date(2026, 2, 1)]


def made_log() -> pl.DataFrame:
    """Samples of three labels, each of one model and day, with a null in each role."""
    random = np.random.default_rng(11)
    place, rows = np.arange(180), 180
    columns = {
        "sample": place // 3,
        "model": np.array(["x", "y"])[place // 3 % 2],
        "day": [DAYS[turn] for turn in (place // 6 % 3).tolist()],
        "label": np.array(list("abc"))[place % 3],
        "score": random.choice([0.1, 0.25, 0.5, 0.75, 0.9], rows),
        "truth": random.choice([0, 1], rows),
        "other": random.random(rows),
    }
    nulls = {"score": 41, "truth": 37, "label": 53, "sample": 59}
    is_null = [pl.when(pl.int_range(pl.len()) % n != 7).then(column).alias(column) for column, n in nulls.items()]
    return pl.DataFrame(columns).with_columns(is_null)


LOG = made_log()


@cache
def of_log() -> pl.DataFrame:
    return mlm.state(LOG, METRICS, by=BY, buckets=4)


def of_day(day: date, log: pl.DataFrame = LOG, metrics: Any = METRICS, **options: Any) -> pl.DataFrame:
    return mlm.state(log.filter(day=day), metrics, **{"by": BY, "buckets": 4, **options})


def contents(state: pl.DataFrame) -> dict[str, Any]:
    dtype = state.schema["state"]
    assert isinstance(dtype, pl.Enum)
    told: dict[str, Any] = json.loads(dtype.categories[0])
    return told


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def told_in(path: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(pl.read_parquet_metadata(path)["polars_mlmetrics"])
    return told


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where a state is to be written."""
    return tmp_path / "state.parquet"


@pytest.fixture
def good(place: Path) -> Path:
    """The file of a good state."""
    mlm.write_state(of_log(), place)
    return place


def refuses(source: Any, *said: str) -> str:
    """The error of a scan, which must name all this."""
    with pytest.raises(mlm.StateError) as caught:
        mlm.scan_states(source)
    assert [words for words in said if words not in str(caught.value)] == [], str(caught.value)
    return str(caught.value)


def is_read(path: Path) -> bool:
    """Whether a file is taken for a state, or not refused by its name."""
    try:
        mlm.scan_states(path).mlm.finish(mlm.f1()).collect()
    except mlm.StateError as error:
        return str(path) not in str(error)
    return True


# -- what is read is what was written ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [pl.DataFrame.clone, pl.DataFrame.lazy])
def test_a_state_comes_back_as_it_was(kind: Callable[[pl.DataFrame], Any], place: Path) -> None:
    mlm.write_state(kind(of_log()), place)
    scan = mlm.scan_states(place)
    assert isinstance(scan, pl.LazyFrame)
    assert scan.collect_schema() == of_log().schema
    assert_frame_equal(scan.collect(), of_log(), check_exact=True)
    assert names_in(place.parent) == [place.name]


@pytest.mark.parametrize("kind", [pl.DataFrame.clone, pl.DataFrame.lazy])
def test_a_frame_writes_itself(kind: Callable[[pl.DataFrame], Any], place: Path) -> None:
    kind(of_log()).mlm.write_state(str(place))
    assert_frame_equal(mlm.scan_states(str(place)).collect(), of_log(), check_exact=True)


def test_a_lazy_state_is_written_too(place: Path) -> None:
    mlm.write_state(mlm.state(LOG.lazy(), METRICS, by=BY, buckets=4, passes=3, progress=False), place)
    # Passes add up in another order.
    assert_frame_equal(mlm.scan_states(place).collect(), of_log(), rel_tol=READINGS, abs_tol=READINGS)


ODD_TEXTS = [
    "",
    " ",
    "a\nb",
    "ä 日本",
    "\"'\\",
    "null",
    "NaN",
    "sha256:" + "0" * 64,
    "PAR1",
    "polars_mlmetrics",
    "\x00",
]
BERLIN = "Europe/Berlin"
TWICE = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)  # in Berlin, a night with one hour twice
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
    "Float32": pl.Series([0.1, float("inf"), float("nan"), None], dtype=pl.Float32),
    "Float64": pl.Series([0.1, -0.5, float("-inf"), float("nan"), 5e-324, None]),
    "Decimal": pl.Series([Decimal("0.10"), Decimal("-12345.67"), None], dtype=pl.Decimal(20, 2)),
    "String": pl.Series([*ODD_TEXTS, None]),
    "Binary": pl.Series([b"", b"\xff\x00", None]),
    "all null": pl.Series([None, None], dtype=pl.String),
    "no type": pl.Series([None, None]),
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_a_key_of_any_type_comes_back(key: pl.Series, place: Path) -> None:
    log = LOG.with_columns(key.gather((pl.Series(range(LOG.height)) // 3 % len(key)).to_list()).alias("key"))
    metrics = [mlm.f1(average="macro"), mlm.ndcg(k=2), mlm.n_rows()]
    state = mlm.state(log, metrics, by=["key", "model"], buckets=4)
    mlm.write_state(state, place)
    scan = mlm.scan_states(place)
    assert scan.collect_schema() == state.schema
    assert_frame_equal(scan.collect(), state, check_exact=True)
    finished = scan.mlm.finish(metrics, by="key").collect()
    assert not differing(finished, mlm.evaluate(log, metrics, by="key"))


@pytest.mark.parametrize("name", ["a b", "ä", "a.b", "col[1]", "sha256:" + "0" * 64, "score", "label2", "'"])
def test_a_key_of_any_name_comes_back(name: str, place: Path) -> None:
    state = mlm.state(LOG, mlm.f1(), by=pl.col("model").alias(name))
    mlm.write_state(state, place)
    assert_frame_equal(mlm.scan_states(place).collect(), state, check_exact=True)


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("by", [None, BY], ids=str)
def test_a_state_of_hardly_any_rows_comes_back(rows: int, by: Any, place: Path) -> None:
    log = LOG.head(rows)
    mlm.write_state(mlm.state(log, METRICS, by=by), place)
    assert not differing(mlm.scan_states(place).mlm.finish(METRICS, by=by).collect(), mlm.evaluate(log, METRICS, by=by))


def test_what_is_not_known_of_a_log_is_not_asked_for(place: Path) -> None:
    log = LOG.select("score", "truth")
    mlm.write_state(mlm.state(log, mlm.log_loss(), mlm.roc_auc(bins=8)), place)
    finished = mlm.scan_states(place).mlm.finish(mlm.roc_auc(bins=8), mlm.log_loss()).collect()
    assert not differing(finished, mlm.evaluate(log, mlm.roc_auc(bins=8), mlm.log_loss()))


MONTH = pl.col("day").dt.truncate("1mo").alias("month")
QUESTIONS: dict[str, dict[str, Any]] = {
    "the whole": {},
    "a key": {"by": "model"},
    "all keys": {"by": BY},
    "a roll-up": {"by": ["model", MONTH]},
    "slices": {"by": "model", "slices": ["day", MONTH]},
    "small slices": {"slices": BY, "min_samples": 25},
    "tidy": {"by": "model", "slices": ["day"], "tidy": True},
}


@pytest.fixture
def days(tmp_path: Path) -> Path:
    """A folder with a state for each day."""
    folder = tmp_path / "days"
    folder.mkdir()
    for day in DAYS:
        mlm.write_state(of_day(day), folder / f"{day}.parquet")
    return folder


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_files_of_parts_give_what_the_rows_give(question: dict[str, Any], days: Path) -> None:
    finished = mlm.scan_states(days).mlm.finish(METRICS, **question).collect()
    assert not differing(finished, mlm.evaluate(LOG, METRICS, **question))


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
    months = mlm.scan_states(days).mlm.compact()
    mlm.write_state(months, place)
    assert not differing(mlm.scan_states(place).mlm.finish(METRICS).collect(), mlm.evaluate(LOG, METRICS))


ODD_NAMES = ["a[1].parquet", "*.parquet", "a?.parquet", "a#1.parquet", "a%20b.parquet", "a b.parquet", "ä 日本.parquet"]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_state_may_have_an_odd_name(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "odd [x]* %41 #"
    folder.mkdir()
    one, other = of_day(DAYS[0]), of_day(DAYS[1])
    mlm.write_state(one, folder / "a1.parquet")
    mlm.write_state(other, folder / name)
    assert_frame_equal(mlm.scan_states(folder / name).collect(), other, check_exact=True)
    assert mlm.scan_states(folder).collect().height == one.height + other.height


@pytest.mark.parametrize("name", ["day=2026-01-30/state.parquet", "model=z/state.parquet"])
def test_the_name_of_a_folder_is_no_key(name: str, tmp_path: Path) -> None:
    (tmp_path / name).parent.mkdir()
    mlm.write_state(of_log(), tmp_path / name)
    assert_frame_equal(mlm.scan_states(tmp_path / name).collect(), of_log(), check_exact=True)


# -- files that are not what was written -------------------------------------------------------------------------------


def test_every_flipped_byte_is_found(good: Path) -> None:
    data, random = good.read_bytes(), np.random.default_rng(3)
    digest = data.rfind(b"sha256:")
    places = [
        *random.choice(len(data), 60, replace=False).tolist(),
        0,
        4,
        digest,
        digest + 7,
        digest + 70,
        len(data) - 1,
    ]
    unseen = []
    for place in places:
        flipped = bytearray(data)
        flipped[place] ^= 1 << int(random.integers(8))
        good.write_bytes(flipped)
        if is_read(good):
            unseen.append(place)
    assert unseen == []
    good.write_bytes(data)
    assert is_read(good)


def test_every_cut_is_found(good: Path) -> None:
    data = good.read_bytes()
    lengths = np.random.default_rng(4).choice(range(1, len(data)), 20, replace=False).tolist()
    unseen = []
    for length in [1, 4, 8, 11, 12, len(data) - 1, *lengths]:
        good.write_bytes(data[:length])
        if is_read(good):
            unseen.append(length)
    assert unseen == []


@pytest.mark.parametrize("added", [b"\n", b"PAR1", bytes(8)])
def test_bytes_that_were_added_are_found(added: bytes, good: Path) -> None:
    data = good.read_bytes()
    for changed in (
        data + added,
        added + data,
        data[:4] + added + data[4:],
        data[:-4] + added + data[-4:],
        data + data,
    ):
        good.write_bytes(changed)
        assert not is_read(good)


def test_a_file_of_no_bytes_is_named(good: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.parquet"
    empty.touch()
    for source in (empty, [good, empty], tmp_path):
        with pytest.raises(mlm.FileError, match=rf"{re.escape(str(empty))} is empty"):
            mlm.scan_states(source)


NO_STATES: dict[str, Callable[[Path], Any]] = {
    "a text": lambda path: path.write_text("sample,score\n1,0.5\n"),
    "a text that begins and ends well": lambda path: path.write_text("PAR1 sha256: PAR1"),
    "a short text": lambda path: path.write_text("PAR1"),
    "bytes": lambda path: path.write_bytes(bytes(range(256)) * 40),
    "JSON": lambda path: path.write_text(json.dumps(contents(of_log()))),
    "a log": LOG.write_parquet,
    "a log that speaks of a digest": lambda path: LOG.with_columns(
        pl.lit("sha256:" + "0" * 64).alias("label")
    ).write_parquet(path, compression="uncompressed"),
    "a state of plain Polars": lambda path: of_log().write_parquet(path),
    "an arrow file": lambda path: of_log().write_ipc(path),
}


@pytest.mark.parametrize("write", NO_STATES.values(), ids=NO_STATES)
def test_a_file_that_is_no_state_is_named(write: Callable[[Path], Any], good: Path, tmp_path: Path) -> None:
    other = tmp_path / "z.parquet"
    write(other)
    for source in (other, [good, other], tmp_path):
        refuses(source, str(other))


def test_what_another_program_wrote_anew_is_found(good: Path) -> None:
    metadata = {key: value for key, value in pl.read_parquet_metadata(good).items() if key != "ARROW:schema"}
    of_log().filter(model="x").write_parquet(good, metadata=metadata)
    refuses(good, str(good), "is damaged")


def forge(path: Path, state: pl.DataFrame, told: Any) -> None:
    """A file with a right digest that tells this of itself."""
    state.write_parquet(path, metadata={"polars_mlmetrics": json.dumps(told)})
    blank, data = b"sha256:" + b"0" * 64, path.read_bytes()
    assert data.count(blank) == 1
    path.write_bytes(data.replace(blank, b"sha256:" + hashlib.sha256(data).hexdigest().encode()))


def as_told(path: Path, **changes: Any) -> dict[str, Any]:
    return {**told_in(path), "digest": "sha256:" + "0" * 64, **changes}


def test_the_digest_is_of_the_file_with_its_own_place_blank(good: Path) -> None:
    written = good.read_bytes()
    forge(good, of_log(), as_told(good))
    assert good.read_bytes() == written


def in_contents(**changes: Any) -> str:
    told = {**contents(of_log()), **changes}
    return json.dumps({name: value for name, value in told.items() if value is not None})


TOLD: dict[str, tuple[Any, str]] = {
    "a later format": (in_contents(format=3), "format 3"),
    "a later format with more in it": (in_contents(format=3, seeds=[1, 2]), "format 3"),
    "a format of another type": (in_contents(format="2"), "format '2'"),
    "no format": (in_contents(format=None), ""),
    "more than there is": (in_contents(seeds=[1, 2]), ""),
    "less than there is": (in_contents(metrics=None), ""),
    "no JSON": ("f1", ""),
    "a list": ("[]", ""),
    "a number": (1, ""),
    "nothing": (None, ""),
}


@pytest.mark.parametrize(("told", "said"), TOLD.values(), ids=TOLD)
def test_a_file_that_tells_what_is_not_known_is_named(told: Any, said: str, good: Path) -> None:
    forge(good, of_log(), as_told(good, contents=told))
    refuses(good, str(good), said)


def test_a_file_that_tells_nothing_but_its_digest_is_named(good: Path) -> None:
    forge(good, of_log(), {"digest": "sha256:" + "0" * 64})
    refuses(good, str(good))


@pytest.mark.parametrize("column", ["state", "day", "bucket", "label", "bin"])
def test_a_file_that_has_lost_a_column_is_named(column: str, good: Path) -> None:
    forge(good, of_log().drop(column), as_told(good))
    refuses(good, str(good), repr(column))


# -- parts that cannot be merged -------------------------------------------------------------------------------------

OTHER_METRICS = [metric for metric in METRICS if metric.meta.output_name() != "roc_auc"]
OTHERS: dict[str, tuple[Callable[[], pl.DataFrame], str]] = {
    "a metric more": (lambda: of_day(DAYS[1], metrics=[*METRICS, mlm.brier_score()]), "brier_score"),
    "a metric less": (lambda: of_day(DAYS[1], metrics=METRICS[1:]), "f1"),
    "another parameter": (lambda: of_day(DAYS[1], metrics=[mlm.roc_auc(bins=32), *OTHER_METRICS]), "bins=32"),
    "other keys": (lambda: of_day(DAYS[1], by="day"), "by"),
    "keys in another order": (lambda: of_day(DAYS[1], by=BY[::-1]), "by"),
    "another score": (lambda: of_day(DAYS[1], score="other"), "other"),
    "another sample": (lambda: of_day(DAYS[1], sample=["sample", "label"]), "sample"),
    "a weight": (lambda: of_day(DAYS[1], weight="other"), "other"),
    "other buckets": (lambda: of_day(DAYS[1], buckets=8), "buckets"),
    "no buckets": (lambda: of_day(DAYS[1], buckets=0), "buckets"),
    "samples that are texts": (lambda: of_day(DAYS[1], LOG.cast({"sample": pl.String})), "columns"),
    "a score of another type": (lambda: of_day(DAYS[1], LOG.cast({"score": pl.Float32})), "Float32"),
    "labels of another type": (lambda: of_day(DAYS[1], LOG.cast({"label": pl.Categorical()})), "Categorical"),
    "a key of another type": (lambda: of_day(DAYS[1], LOG.cast({"model": pl.Categorical()})), "'model'"),
    "a key in other steps": (lambda: of_day(DAYS[1]).cast({"day": pl.Datetime("ms")}), "'day'"),
}


@pytest.mark.parametrize(("other", "said"), OTHERS.values(), ids=OTHERS)
def test_parts_that_differ_are_named_with_what_differs(
    other: Callable[[], pl.DataFrame], said: str, tmp_path: Path
) -> None:
    paths = [tmp_path / "1.parquet", tmp_path / "2.parquet"]
    mlm.write_state(of_day(DAYS[0]), paths[0])
    mlm.write_state(other(), paths[1])
    for source in (paths, tmp_path, paths[::-1]):
        refuses(source, *map(str, paths), said)


def test_labels_of_two_enums_are_two_types(tmp_path: Path) -> None:
    for number, categories in enumerate([["a", "b", "c"], ["c", "b", "a"]]):
        state = of_day(DAYS[number], LOG.cast({"label": pl.Enum(categories)}))
        mlm.write_state(state, tmp_path / f"{number}.parquet")
    refuses(tmp_path, "0.parquet", "1.parquet", "label")


def test_metrics_in_another_order_are_the_same(days: Path) -> None:
    mlm.write_state(of_day(DAYS[2], metrics=[METRICS[3:], METRICS[:3]]), days / f"{DAYS[2]}.parquet", overwrite=True)
    assert not differing(mlm.scan_states(days).mlm.finish(METRICS).collect(), mlm.evaluate(LOG, METRICS))


def test_columns_in_another_order_change_nothing(days: Path) -> None:
    moved = of_day(DAYS[2]).select(pl.col("state"), *reversed(of_log().columns[1:]))
    mlm.write_state(moved, days / f"{DAYS[2]}.parquet", overwrite=True)
    assert not differing(mlm.scan_states(days).mlm.finish(METRICS).collect(), mlm.evaluate(LOG, METRICS))


@pytest.mark.parametrize("again", [shutil.copy, os.symlink, os.link])
def test_a_state_under_two_names_is_there_twice(again: Callable[[Path, Path], Any], days: Path) -> None:
    old, new = days / f"{DAYS[0]}.parquet", days / "again.parquet"
    again(old, new)
    for source in (days, [old, new], days / "*"):
        with pytest.raises(mlm.MetricError) as caught:
            mlm.scan_states(source)
        assert str(old) in str(caught.value)
        assert str(new) in str(caught.value)
        assert "twice" in str(caught.value)


@pytest.mark.parametrize("source", ["*.csv", "none/*.parquet", "none", "none.parquet"])
def test_a_source_of_no_files_is_named(source: str, days: Path) -> None:
    with pytest.raises(mlm.FileError, match=re.escape(str(days / source))):
        mlm.scan_states(days / source)


# -- what is written ---------------------------------------------------------------------------------------------------


COUNT, SUM = "n_rows", "log_loss@1e-15"
REFUSED: dict[str, tuple[Callable[[pl.DataFrame], pl.DataFrame], str]] = {
    "a log": (lambda state: LOG, "not a state"),
    "no columns": (lambda state: pl.DataFrame(), "not a state"),
    "a state that says so in a text": (lambda state: state.cast({"state": pl.String}), "not a state"),
    "a state that says nothing": (
        lambda state: state.with_columns(state=pl.lit("x", dtype=pl.Enum(["x"]))),
        "not a state",
    ),
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
    new = of_day(DAYS[0])
    mlm.write_state(new, good, overwrite=True)
    assert_frame_equal(mlm.scan_states(good).collect(), new, check_exact=True)


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_place_that_cannot_be_written_to_is_named(overwrite: bool, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    for name in ("folder", "link", "none/state.parquet"):
        with pytest.raises(mlm.FileError, match=name.split("/")[0]):
            mlm.write_state(of_log(), tmp_path / name, overwrite=overwrite)


def broken(_: pl.DataFrame) -> NoReturn:
    raise RuntimeError("midway")


def test_rows_that_fail_leave_the_old_file(good: Path) -> None:
    old = good.read_bytes()
    state = of_log().lazy().map_batches(broken, schema=of_log().schema)
    with pytest.raises(RuntimeError, match="midway"):
        mlm.write_state(state, good, overwrite=True)
    assert (good.read_bytes(), names_in(good.parent)) == (old, [good.name])


def test_a_disk_that_fails_leaves_the_old_file(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(_: pl.DataFrame, path: Path, **options: Any) -> NoReturn:
        path.write_bytes(old[: len(old) // 2])
        raise OSError("no space is left")

    old = good.read_bytes()
    monkeypatch.setattr(pl.DataFrame, "write_parquet", half)
    with pytest.raises(mlm.FileError, match=rf"^{re.escape(str(good))} cannot be written: no space is left\.$"):
        mlm.write_state(of_day(DAYS[0]), good, overwrite=True)
    assert (good.read_bytes(), names_in(good.parent)) == (old, [good.name])


def test_a_late_day_replaces_its_state(days: Path) -> None:
    """Of the last day the truths are not known; then they are."""
    path, told = days / f"{DAYS[2]}.parquet", []
    early = LOG.with_columns(truth=pl.when(pl.col("day") != DAYS[2]).then("truth"))
    for log in (early, LOG):
        mlm.write_state(of_day(DAYS[2], log), path, overwrite=True)
        finished = mlm.scan_states(days).mlm.finish(METRICS, by="day").collect()
        assert not differing(finished, mlm.evaluate(log, METRICS, by="day"))
        told.append(finished.filter(day=DAYS[2]).select("n_rows", "n_excluded").row(0))
    (early_rows, early_excluded), (rows, excluded) = told
    assert (early_rows, early_excluded) == (0, LOG.filter(day=DAYS[2]).height)
    assert 0 < rows == early_excluded - excluded


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


@pytest.mark.parametrize("module", [files, engine_state, state, state_files, folder], ids=lambda it: it.__name__)
def test_nothing_that_is_read_is_run(module: Any) -> None:
    assert RUNS_WHAT_IT_READS.findall(inspect.getsource(module)) == []


@pytest.mark.parametrize(
    "code",
    ["import pickle", "from pickle import loads", "pl.LazyFrame.deserialize(file)", "eval(text)", "dill.load(f)"],
)
def test_the_guard_sees_what_would_be_run(code: str) -> None:
    assert RUNS_WHAT_IT_READS.findall(code) != []


def test_reading_a_state_unpickles_nothing(days: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, broken)
    assert not differing(mlm.scan_states(days).mlm.finish(METRICS).collect(), mlm.evaluate(LOG, METRICS))
