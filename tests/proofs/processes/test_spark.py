"""Spark gives what `evaluate` gives, on a real cluster of two executors that do not have this package."""

import math
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.laws.cases import CASES
from tests.support.differing import differing
from tests.support.folded_log import FEW, LOG, METRICS, differing_in, evaluated, has_no_state, parts_of, said
from tests.support.frames import KEYS, worlds
from tests.support.spark_cluster import ROWS, check, on_spark, sent

pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),  # of pyspark, about pandas 3
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # of the sockets of py4j
]


def state_on_spark(log: Any, *metrics: Any, **options: Any) -> pl.DataFrame:
    import polars_mlmetrics.spark

    return polars_mlmetrics.spark.state(log, *metrics, **options)


# -- the cluster -------------------------------------------------------------------------------------------------------


def test_executors_are_processes_of_their_own_without_this_package(session: Any) -> None:
    def who(batches: Iterator[Any]) -> Iterator[Any]:
        import importlib.util
        import os
        import time

        import pyarrow as pa

        list(batches)
        time.sleep(1)  # so that both executors have some
        found = importlib.util.find_spec("polars") is not None
        try:
            import polars_mlmetrics  # noqa: F401

            has_package = True
        except ImportError:
            has_package = False
        columns = {"pid": [os.getpid()], "parent": [os.getppid()], "polars": [found], "package": [has_package]}
        yield pa.RecordBatch.from_pydict(columns)

    rows = session.range(0, 4, 1, 4).mapInArrow(who, "pid long, parent long, polars boolean, package boolean").collect()
    assert len({row.parent for row in rows}) == 2
    assert os.getpid() not in {row.pid for row in rows} | {row.parent for row in rows}
    assert {(row.polars, row.package) for row in rows} == {(True, False)}


# -- the numbers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
def test_every_metric_that_merges_is_what_evaluate_gives(session: Any, weighted: bool) -> None:
    frame = worlds()
    rows = sent(session, frame, 3)
    cases = [case for case in CASES if not has_no_state(case)]
    assert len({case.name for case in cases}) > 70
    metrics = [case.metric(weighted=weighted) for case in (cases[::3] if weighted else cases)]
    for start in range(0, len(metrics), 120):
        check(rows, frame, metrics[start : start + 120], by=KEYS)


def test_the_state_is_that_of_the_rows(log: Any) -> None:
    by = ["model", pl.col("day").dt.truncate("1mo").alias("month")]
    found = state_on_spark(log, METRICS, by=by, cluster="fold")
    expected = mlm.state(ROWS, METRICS, by=by, cluster="fold")
    assert differing_in(found, expected) == []


def test_a_sample_in_several_slices_is_a_unit_in_each(log: Any) -> None:
    check(log, ROWS, METRICS, by="model", slices=["label", "day", ["fold", pl.col("label").alias("class")]])


@pytest.mark.usefixtures("buckets_of_states")
def test_intervals_and_all_counts(log: Any) -> None:
    options: dict[str, Any] = {"by": "model", "slices": ["label"], "ci": 0.9, "tidy": True}
    found, expected = on_spark(log, FEW, **options), mlm.evaluate(ROWS, FEW, **options)
    assert found["n_split"].null_count() == found.height
    assert differing(found.drop("n_split"), expected.drop("n_split")) == []
    few = [mlm.f1(), mlm.log_loss()]
    check(log, ROWS, few, by="model", ci="bootstrap", cluster="fold")


def test_small_slices(log: Any) -> None:
    check(log, ROWS, mlm.f1(), slices=["label", "day"], min_samples=40)


def test_means_over_targets(log: Any) -> None:
    metrics = [
        mlm.average_score(mlm.f1(), target="model"),
        mlm.average_score(mlm.recall()).alias("of labels"),
        mlm.f1(),
    ]
    check(log, ROWS, metrics, slices=["day"])


@pytest.mark.usefixtures("buckets_of_states")
def test_models_compare_as_those_of_a_state_do(session: Any) -> None:
    known = ROWS.filter(pl.col("sample").is_not_null())
    frame = pl.concat(
        [known.with_columns(model=pl.lit(m), score=pl.col("score") * f) for m, f in (("a", 1), ("b", 0.8))]
    )
    metrics = [mlm.log_loss(), mlm.ndcg()]
    found = state_on_spark(sent(session, frame), metrics, by="model")
    asked: dict[str, Any] = {"between": "model", "baseline": "a"}
    table = mlm.compare(found, metrics, **asked)
    assert differing(table, mlm.compare(mlm.state(frame, metrics, by="model"), metrics, **asked)) == []
    values = ["metric", "model", "value", "baseline_value", "difference", "low", "high"]
    assert differing(table.select(values), mlm.compare(frame, metrics, **asked).select(values)) == []


def test_expressions_as_roles_and_a_metric_declared_here(log: Any) -> None:
    roles = {"score": pl.col("other") * 0.5, "truth": pl.col("truth") == 1, "weight": "weight"}
    found = on_spark(log, mlm.f1(threshold=0.2), by=pl.col("day").dt.weekday(), **roles)
    expected = mlm.evaluate(ROWS, mlm.f1(threshold=0.2), by=pl.col("day").dt.weekday(), **roles)
    assert differing(found, expected) == []
    try:

        @mlm.metric(range=(0, math.inf), best="min")
        def cost_of_errors(u: mlm.Unit) -> pl.Expr:
            return mlm.ratio(u.sum("amount of errors", pl.col("amount") * (u.score - u.real).abs()), u.rows())

        check(log, ROWS, cost_of_errors(), by="model")
    finally:
        del mlm.CATALOGUE["cost_of_errors"]


# -- whole samples -----------------------------------------------------------------------------------------------------


def test_rows_are_moved_only_where_a_metric_looks_into_samples(session: Any, log: Any) -> None:
    import polars_mlmetrics.spark as spark

    session.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")  # it makes one of small partitions

    def partitions(metric: mlm.Metric, column: str) -> dict[Any, int]:
        source = spark._Rows(log)
        rows, columns = source._rows([mlm.partial(source.schema, metric, buckets=0)], whole=False)
        place = spark.sf.spark_partition_id().alias("place")
        found = rows.select(f"c{list(ROWS.columns).index(column)}", place).toArrow()
        assert column in columns
        groups = pl.DataFrame(found).select(sample=pl.nth(0), place="place").group_by("sample")
        return dict(groups.agg(pl.col("place").n_unique()).rows())

    assert max(partitions(mlm.f1(), "score").values()) == 7
    of_samples = partitions(mlm.ndcg(), "sample")
    assert of_samples.pop(None) > 1  # rows of no sample are not one partition
    assert {*of_samples.values()} == {1}


def test_samples_that_are_whole_already_are_not_moved(session: Any) -> None:
    rows = sent(session, ROWS.filter(pl.col("sample").is_not_null()), 1)
    expected = mlm.evaluate(ROWS, mlm.ndcg(), by="model")
    assert differing(on_spark(rows, mlm.ndcg(), by="model", whole_samples=True), expected) == []
    wrong = on_spark(rows.repartition(5), mlm.ndcg(), by="model", whole_samples=True)
    assert differing(wrong, expected) == ["ndcg"]  # it is a promise


# -- what may surprise -------------------------------------------------------------------------------------------------


def times(session: Any) -> Any:
    """Two hours in which it is one day in Los Angeles, the zone of the session, and two in Greenwich."""
    text = "timestamp'2026-11-20 15:30:00 America/Los_Angeles' + make_dt_interval(0, id) as time"
    local = "timestamp_ntz'2026-11-20 23:30:00' + make_dt_interval(0, id) as local"
    return session.range(2).selectExpr("id as sample", text, local, "0.5D as score", "id = 0 as truth")


def test_days_do_not_depend_on_the_zone_of_the_session(session: Any) -> None:
    by = [pl.col("time").dt.date().alias("day"), pl.col("local").dt.date().alias("written")]
    days = ["2026-11-20", "2026-11-21"]
    for zone in ("America/Los_Angeles", "Asia/Tokyo"):
        session.conf.set("spark.sql.session.timeZone", zone)
        table = on_spark(times(session), mlm.n_rows(), by=by)
        assert table.cast(pl.String).rows() == [(day, day, "1") for day in days]
    table = on_spark(
        times(session), mlm.n_rows(), by=pl.col("time").dt.convert_time_zone("Asia/Tokyo").dt.date().alias("day")
    )
    assert table.cast(pl.String).rows() == [("2026-11-21", "2")]
    assert on_spark(times(session), mlm.n_rows(), by="time").schema["time"] == pl.Datetime("us", "UTC")


def test_files_that_do_not_say_their_zone_are_refused(session: Any, tmp_path: Path) -> None:
    for kind in ("INT96", "TIMESTAMP_MICROS"):
        session.conf.set("spark.sql.parquet.outputTimestampType", kind)
        times(session).write.parquet(str(tmp_path / kind))
    by = pl.col("time").dt.date().alias("day")
    message = said(mlm.FileError, on_spark, tmp_path / "INT96", mlm.n_rows(), by=by)
    assert "has 'time' as INT96, which says nothing of its time zone. Pass the DataFrame" in message
    assert on_spark(tmp_path / "INT96", mlm.n_rows()).item() == 2
    assert on_spark(tmp_path / "TIMESTAMP_MICROS", mlm.n_rows(), by=by)["n_rows"].to_list() == [1, 1]


def test_names_with_dots_and_capitals(session: Any) -> None:
    frame = ROWS.select(
        **{"a.b": "score", "a`b": "model", "x.*": "sample", "Label": "label", "truth": "truth", "Truth": "other"}
    )
    roles: dict[str, Any] = {"score": "a.b", "sample": "x.*", "label": "Label", "weight": "Truth"}
    rows = session.createDataFrame(frame.rename({"Truth": "c"}).to_arrow(compat_level=pl.CompatLevel.oldest()))
    rows = rows.repartition(3).toDF(*frame.columns)
    check(rows, frame, [mlm.ndcg(), mlm.f1(average="macro")], by="a`b", slices=["Label"], **roles)


def test_two_columns_of_one_name_are_refused(session: Any) -> None:
    rows = session.range(1).selectExpr("id as score", "id as truth", "id as score")
    message = "two columns of this DataFrame have the name 'score': rename one of them."
    assert said(mlm.ColumnError, on_spark, rows, mlm.f1()) == message


TYPES = """
    cast(id % 2 as {truth}) as truth, cast(id / 7 as {score}) as score, cast(id % 3 as string) as label, id as sample,
    map(1, id) as a_map, array(id) as a_list, named_struct('x', id) as a_struct, cast('x' as binary) as a_binary,
    make_ym_interval(1, 2) as months, make_dt_interval(1) as a_duration, date'2026-11-20' as a_date
"""


@pytest.mark.parametrize(
    ("score", "truth"),
    [("double", "boolean"), ("float", "tinyint"), ("decimal(9,4)", "decimal(3,0)"), ("double", "bigint")],
)
def test_types(session: Any, score: str, truth: str) -> None:
    rows = session.range(0, 60, 1, 3).selectExpr(*_split(TYPES.format(score=score, truth=truth)))
    read = rows.select("sample", "label", "score", "truth", "a_date", "a_binary", "a_duration").toArrow()
    metrics = [mlm.f1(average="macro"), mlm.brier_score(), mlm.ndcg()]
    frame = pl.DataFrame(pl.from_arrow(read))
    check(rows, frame, metrics, by=["a_date", "a_binary", "a_duration"], slices=["label"])


def _split(text: str) -> list[str]:
    """Expressions of SQL, one by one: commas in brackets part none."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        parts = [*parts, ""] if letter == "," and not depth else [*parts[:-1], parts[-1] + letter]
    return parts


@pytest.mark.parametrize("column", ["months", "score"])
def test_a_type_that_arrow_has_not_is_refused_where_it_is_read(session: Any, column: str) -> None:
    rows = session.range(3).selectExpr(
        "id as sample", "1.0D as score", "true as truth", "make_ym_interval(1) as months"
    )
    if column == "score":
        assert on_spark(rows, mlm.f1()).item() == 1
    else:
        message = "'months' is of type Object, and Python objects cannot be keys. Cast the column first."
        assert said(mlm.ColumnError, on_spark, rows, mlm.f1(), by="months") == message


def test_no_rows(session: Any, log: Any) -> None:
    for rows in (log.limit(0), log.where("score > 7")):
        check(rows, ROWS.clear(), FEW, by="model", slices=["day"])
        check(rows, ROWS.clear(), [mlm.f1(), mlm.n_rows()])
    assert differing_in(state_on_spark(log.limit(0), FEW, by="model"), mlm.state(ROWS.clear(), FEW, by="model")) == []


def test_most_partitions_are_empty(session: Any) -> None:
    frame = ROWS.filter(pl.col("sample") == 3)
    check(sent(session, frame, 12), frame, FEW, by="model")


def test_a_task_has_the_threads_that_spark_gives_it(session: Any) -> None:
    import polars_mlmetrics.spark as spark

    def threads(batches: Iterator[Any]) -> Iterator[tuple[int, bytes]]:
        import polars as pl

        list(batches)
        yield pl.thread_pool_size(), b""

    rows = session.range(0, 2, 1, 2).mapInArrow(spark.checked(threads, pl.__version__), spark.CELLS)
    assert {row["number"] for row in rows.collect()} == {1}


def test_an_error_in_an_executor_names_the_partition(log: Any) -> None:
    message = said(mlm.MetricError, on_spark, log, mlm.f1(), by=pl.col("model").cast(pl.Int64))
    partition, _, rest = message.partition(": ")
    assert partition.startswith("partition ")
    assert rest.startswith("InvalidOperationError: conversion from `str` to `i64` failed in column 'model'")


def test_two_versions_of_polars_are_refused(log: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    there = pl.__version__
    monkeypatch.setattr(pl, "__version__", "9.9.9")
    message = said(mlm.MetricError, on_spark, log, mlm.f1())
    assert message.startswith("partition ")
    assert message.endswith(f": polars {there} there, 9.9.9 on the driver: install the same.")


@pytest.mark.parametrize(
    ("error", "options", "message"),
    [
        (mlm.ColumnError, {"by": "modle"}, "column 'modle' is not in the table"),
        (mlm.ColumnError, {"slices": ["modle"]}, "column 'modle' is not in the table"),
        (mlm.ParameterError, {"scroe": "score"}, "role 'scroe' is not one of the roles"),
        (mlm.ParameterError, {"ci": 95}, "ci"),
        (mlm.ParameterError, {"cluster": "fold"}, "cluster= "),
        (mlm.ParameterError, {"by": "day", "slices": ["day"]}, "'day' is already in by=, so it cannot be a slice too."),
    ],
)
def test_a_bad_question_starts_no_job(log: Any, error: type[Exception], options: dict[str, Any], message: str) -> None:
    assert said(error, on_spark, log, mlm.f1(), **options).startswith(message)


def test_what_does_not_merge_has_no_state(log: Any) -> None:
    assert said(mlm.StateError, state_on_spark, log, mlm.roc_auc(), by="model").startswith("roc_auc cannot be held in")


def test_a_polars_frame_is_not_for_spark() -> None:
    message = "mlm.spark takes a Spark DataFrame or paths, not a DataFrame: for a Polars frame use mlm.evaluate."
    assert said(mlm.ParameterError, on_spark, ROWS, mlm.f1()) == message


BEYOND_CONNECT = r"sparkContext|\b_jvm\b|\b_jdf\b|\b_sc\b|\brdd\b|broadcast"


def test_connect_has_all_that_is_asked_of_spark() -> None:
    """A session of Spark Connect has neither a context nor a JVM at hand."""
    code = (Path(mlm.__file__).parent / "spark.py").read_text()
    assert re.findall(BEYOND_CONNECT, code) == []
    assert re.findall(BEYOND_CONNECT, "rows.rdd.map(session.sparkContext.broadcast)") != []


# -- files -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    for place, part in enumerate(parts_of(LOG, 9)):
        part.write_parquet(folder / f"{place}.parquet")
    return folder


def test_files_are_read_by_the_executors(session: Any, files: Path) -> None:
    check(files, LOG, [mlm.f1(), mlm.log_loss(average="macro")], by=["model", "tier"], slices=["share", "label"])
    options: dict[str, Any] = {"by": ["model", "tier"], "whole_samples": True}
    found = state_on_spark(sorted(files.iterdir()), METRICS, **options)
    assert found["source"].drop_nulls().len() == 9
    assert differing(mlm.finish(found, METRICS, by="model"), evaluated(LOG, METRICS, by="model")) == []


def test_files_with_parts_of_samples_are_refused(session: Any, files: Path) -> None:
    message = "these metrics look into samples, and the rows of one sample may be in several files: "
    assert said(mlm.StateError, on_spark, files, mlm.ndcg()).startswith(message)


def test_a_file_that_is_there_twice_is_refused(session: Any, files: Path, tmp_path: Path) -> None:
    (tmp_path / "copy.parquet").write_bytes((files / "0.parquet").read_bytes())
    message = "0.parquet and copy.parquet are the same file: its rows would count twice."
    found = said(mlm.StateError, on_spark, [files / "0.parquet", tmp_path / "copy.parquet"], mlm.f1())
    assert found in (message, "copy.parquet and 0.parquet are the same file: its rows would count twice.")


def test_a_path_of_another_machine_is_refused(session: Any) -> None:
    message = "s3://bucket/log.parquet is a remote path that this function does not take. Read it with Spark: "
    assert said(mlm.FileError, on_spark, "s3://bucket/log.parquet", mlm.f1()).startswith(message)
