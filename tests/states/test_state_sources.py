"""The files that a state is made of: none counts twice, whatever it is called and wherever it lies."""

import shutil
from pathlib import Path

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.places import fingerprints
from polars_mlmetrics.places.files import FILES
from tests.states.days import DAYS, LOG
from tests.support.daily_logs import update, write_logs
from tests.support.differing import differing

METRICS = [mlm.f1(), mlm.ndcg(k=2)]


pytestmark = pytest.mark.usefixtures("folder")


def write_days(*days: int) -> None:
    for day in days:
        LOG.filter(day=DAYS[day]).write_parquet(f"{day}.parquet")


def state_of(path: str) -> pl.DataFrame:
    return mlm.state(pl.scan_parquet(path), METRICS, by="model").collect()


def names_in(state: pl.DataFrame) -> list[str]:
    return [source.partition(" ")[2] for source in state["source"].drop_nulls()]


def test_a_state_names_each_file_in_a_row_of_its_own() -> None:
    write_days(0, 1)
    state = state_of("*.parquet")
    assert names_in(state) == ["0.parquet", "1.parquet"]
    of_files = state.filter(pl.col("source").is_not_null()).drop("state", "source")
    assert of_files.null_count().row(0) == (2,) * of_files.width
    assert differing(mlm.finish(state, METRICS), mlm.evaluate(LOG.filter(pl.col("day") < DAYS[2]), METRICS)) == []


OF_NO_FILE = {
    "rows in memory": lambda: pl.read_parquet("0.parquet").lazy(),
    "a filter": lambda: pl.scan_parquet("0.parquet").filter(pl.col("model") == "x"),
    "some rows": lambda: pl.scan_parquet("0.parquet", n_rows=10),
    "a column more": lambda: pl.scan_parquet("0.parquet").with_columns(a=1),
    "another format": lambda: pl.scan_ndjson("0.ndjson"),
}


@pytest.mark.parametrize("frame", OF_NO_FILE.values(), ids=OF_NO_FILE)
def test_rows_that_are_not_whole_files_have_no_source(frame: object) -> None:
    write_days(0)
    LOG.filter(day=DAYS[0]).write_ndjson("0.ndjson")
    state = mlm.state(frame(), METRICS, buckets=0).collect()  # type: ignore[operator]
    assert names_in(state) == []
    mlm.compact(pl.concat([state, state]))


def test_a_state_is_kept_and_moved_with_its_sources() -> None:
    write_days(0, 1)
    both = mlm.compact(pl.concat([state_of("0.parquet"), state_of("1.parquet")]))
    assert names_in(both) == ["0.parquet", "1.parquet"]
    assert names_in(mlm.compact(both.lazy()).collect()) == ["0.parquet", "1.parquet"]
    both.mlm.write_state("both.parquet")
    assert sorted(names_in(mlm.scan_states("both.parquet").collect())) == ["0.parquet", "1.parquet"]


SAME = "0.parquet and again.parquet are the same file: its rows would count twice"


def test_a_file_that_is_there_twice_is_an_error() -> None:
    write_days(0)
    Path("elsewhere").mkdir()
    shutil.copy("0.parquet", "elsewhere/again.parquet")
    twice = pl.concat([state_of("0.parquet"), state_of("elsewhere/again.parquet")])
    for refused in (mlm.compact, mlm.finish, lambda state: mlm.write_state(state, "both.parquet")):
        with pytest.raises(mlm.StateError, match=SAME):
            refused(twice)
    assert not Path("both.parquet").exists()
    with pytest.raises(mlm.StateError, match=SAME):
        mlm.state(pl.scan_parquet(["0.parquet", "elsewhere/again.parquet"]), METRICS)
    with pytest.raises(mlm.StateError, match=SAME):
        mlm.write_state(mlm.compact(twice.lazy()), "both.parquet")


def test_files_of_one_name_are_told_apart_by_what_they_hold() -> None:
    for folder, day in (("a", 0), ("b", 0), ("c", 1)):
        Path(folder).mkdir()
        LOG.filter(day=DAYS[day]).write_parquet(f"{folder}/x")
    assert names_in(state_of("[ac]/x")) == ["x", "x"]
    with pytest.raises(mlm.StateError, match="x and x are the same file"):
        state_of("[ab]/x")


def test_states_of_one_file_are_not_read_together() -> None:
    write_days(0)
    state_of("0.parquet").mlm.write_state("one.state")
    Path("0.parquet").rename("renamed.parquet")
    state_of("renamed.parquet").mlm.write_state("other.state")
    said = "0.parquet of one.state and renamed.parquet of other.state are the same file"
    with pytest.raises(mlm.StateError, match=said):
        mlm.scan_states(["one.state", "other.state"])


def test_equal_files_of_two_folders_that_are_keys_are_two() -> None:
    for country in ("DE", "FR"):
        Path(f"country={country}").mkdir()
        LOG.write_parquet(f"country={country}/log.parquet")
    log = pl.scan_parquet(".", hive_partitioning=True)
    state = mlm.state(log, METRICS, by="country").collect()
    assert names_in(state) == ["log.parquet", "log.parquet"]
    assert mlm.finish(state, mlm.f1(), by="country")["country"].to_list() == ["DE", "FR"]
    with pytest.raises(mlm.StateError, match=r"log\.parquet and log\.parquet are the same file"):
        mlm.state(pl.scan_parquet(".", hive_partitioning=False), METRICS)


def print_of(name: str) -> str:
    return fingerprints.fingerprint_of(Path(name), Path(name).stat().st_size, FILES).split()[0]


def test_a_file_of_other_rows_has_another_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a small file every byte counts; of a large one its size and its end, where the footer is."""
    LOG.write_parquet("log.parquet", statistics=False, compression="uncompressed")
    flipped = LOG.with_columns(truth=1 - pl.col("truth"))
    flipped.write_parquet("flipped.parquet", statistics=False, compression="uncompressed")
    assert Path("log.parquet").stat().st_size == Path("flipped.parquet").stat().st_size
    assert print_of("log.parquet") != print_of("flipped.parquet")
    monkeypatch.setattr(fingerprints, "END", 2_000)
    LOG.head(100).write_parquet("head.parquet")
    LOG.tail(100).write_parquet("tail.parquet")
    assert print_of("head.parquet") != print_of("tail.parquet")


def test_a_source_is_no_by_column() -> None:
    with pytest.raises(mlm.NameCollisionError, match=r"'source' is a column this function creates: use \.alias"):
        mlm.state(LOG.with_columns(source=pl.lit("web")), METRICS, by="source")
    state = mlm.state(LOG.with_columns(source=pl.lit("web")), METRICS, by=pl.col("source").alias("from"))
    assert mlm.finish(state, METRICS, by="from")["from"].to_list() == ["web"]


def test_a_copy_in_a_folder_of_logs_is_refused_before_anything_is_folded() -> None:
    write_logs(1)
    shutil.copy("logs/01.parquet", "logs/copy.parquet")
    with pytest.raises(mlm.FileError, match=r"01\.parquet and .*copy\.parquet are the same file"):
        update()
    assert not list(Path("states").glob("*.parquet"))
    Path("logs/copy.parquet").unlink()
    assert set(update().values()) == {"folded"}
    assert names_in(mlm.scan_states("states").collect()) == ["01.parquet"]


# -- versions of Polars ------------------------------------------------------------------------------------------------


def test_states_whose_ids_other_versions_of_polars_hashed_still_merge(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = LOG.with_columns(pl.col("sample").cast(pl.String))
    states = []
    for number, version in enumerate((pl.__version__, "9.9.9")):
        monkeypatch.setattr(pl, "__version__", version)
        states.append(mlm.state(texts.filter(day=DAYS[number]), METRICS))
        states[-1].mlm.write_state(f"{number}.state")
    merged = mlm.scan_states("*.state")
    log = texts.filter(pl.col("day") < DAYS[2])
    assert differing(merged.mlm.finish(METRICS).collect(), mlm.evaluate(log, METRICS)) == []
    assert merged.collect_schema()["state"] not in [state.schema["state"] for state in states]
    mlm.write_state(mlm.compact(merged), "merged.state")
    with pytest.raises(pl.exceptions.PolarsError):
        pl.concat(states)


# -- clusters ----------------------------------------------------------------------------------------------------------


def test_a_cluster_is_in_one_bucket() -> None:
    log = LOG.with_columns(user=pl.col("sample") // 4, item=pl.col("sample"))
    state = mlm.state(log, mlm.f1(), by="user", cluster="user", buckets=8)
    told = buckets_by_user(state)
    assert told.height == log["user"].drop_nulls().n_unique()
    assert told["bucket"].n_unique() > 1
    assert told.equals(buckets_by_user(mlm.state(log, mlm.f1(), by="user", sample="user", buckets=8)))


def buckets_by_user(state: pl.DataFrame) -> pl.DataFrame:
    return state.filter(pl.col("user").is_not_null()).select("user", "bucket").unique().sort("user")


def test_metrics_of_samples_are_known_where_samples_lie_in_one_cluster() -> None:
    log = LOG.with_columns(user=pl.col("sample") // 4)
    whole = mlm.state(log, METRICS, cluster="user", buckets=8)
    assert differing(mlm.finish(whole, METRICS), mlm.evaluate(log, METRICS)) == []
    cut = mlm.state(log.with_columns(user=pl.col("label")), METRICS, cluster="user", buckets=8)
    tidy = mlm.finish(cut, METRICS, tidy=True)
    assert tidy["value"].is_null().to_list() == [False, True]
    assert tidy["reason"].to_list() == [None, "samples lie in several values of 'bucket'"]


def test_a_part_of_a_composite_sample_is_a_cluster() -> None:
    log = LOG.with_columns(target=pl.col("label"))
    roles = {"sample": ["sample", "target"]}
    state = mlm.state(log, METRICS, cluster="sample", **roles)  # type: ignore[arg-type]
    assert not [name for name in state.columns if "'bucket'" in name]
    assert differing(mlm.finish(state, METRICS), mlm.evaluate(log, METRICS, **roles)) == []  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"cluster": "usr"}, "cluster column 'usr' is not in the table"),
        ({"cluster": 1}, "cluster takes a column name or a list of them, not 1"),
        ({"cluster": "sample", "buckets": 0}, "cluster= says what buckets are made of, and buckets=0 asks for none"),
    ],
)
def test_a_cluster_that_is_none_is_refused(asked: dict[str, object], said: str) -> None:
    with pytest.raises(mlm.MetricError, match=said):
        mlm.state(LOG, METRICS, **asked)  # type: ignore[arg-type]
