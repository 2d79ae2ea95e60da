"""What no state holds (exact curves, medians, plain expressions) is on Spark what `evaluate` gives, group by group."""

import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.laws.cases import CASES
from tests.support.differing import differing
from tests.support.folded_log import has_no_state, said
from tests.support.frames import KEYS, worlds
from tests.support.spark_cluster import ROWS, check, on_spark, sent

pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),  # of pyspark, about pandas 3
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # of the sockets of py4j
]

EXACT = [mlm.roc_auc(), mlm.spearman(), mlm.median_absolute_error()]
MIXED = [*EXACT, mlm.f1(average="macro"), mlm.ndcg(), pl.col("score").median().alias("middle")]


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
def test_every_metric_that_has_no_state(session: Any, weighted: bool) -> None:
    cases = [case for case in CASES if has_no_state(case)]
    assert {"roc_auc", "ks", "spearman", "median_absolute_error"} <= {case.name for case in cases}
    metrics = [case.metric(weighted=weighted) for case in cases]
    rows = sent(session, worlds(), 3)
    for start in range(0, len(metrics), 120):
        check(rows, worlds(), metrics[start : start + 120], by=KEYS)


MONTH = pl.col("day").dt.truncate("1mo").alias("month")


@pytest.mark.parametrize(
    "options",
    [
        {"by": "model"},
        {"by": ["model", MONTH]},
        {"by": "model", "slices": ["label", ["flag", MONTH]]},
        {"by": "day", "slices": ["label"], "min_samples": 10},
    ],
    ids=["a column", "an expression beside it", "slices", "small slices"],
)
def test_beside_metrics_that_merge(log: Any, options: dict[str, Any]) -> None:
    check(log, ROWS, MIXED, **options)


def test_intervals_and_all_counts(log: Any) -> None:
    options: dict[str, Any] = {"by": "model", "slices": ["label"], "ci": 0.9, "tidy": True}
    metrics = [mlm.roc_auc(), mlm.average_precision(), mlm.f1()]
    found, expected = on_spark(log, metrics, **options), mlm.evaluate(ROWS, metrics, **options)
    assert found["n_split"].null_count() == found.height
    assert found.schema == expected.schema
    assert differing(found.drop("n_split"), expected.drop("n_split")) == []
    check(log, ROWS, metrics, by="model", ci="bootstrap")


def test_groups_are_in_one_partition_and_only_what_is_read_is_moved(
    session: Any, log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import polars_mlmetrics.spark as spark

    session.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")  # it makes one of small partitions
    seen: list[Any] = []
    run = spark._Rows._run

    def noted(self: Any, rows: Any, read: Any, plans: Any) -> Any:
        seen.append((rows, read))
        return run(self, rows, read, plans)

    monkeypatch.setattr(spark._Rows, "_run", noted)
    check(log, ROWS, EXACT, by=["model", MONTH])
    ((rows, read),) = seen
    assert sorted(read) == ["day", "model", "score", "truth"]
    placed = pl.DataFrame(rows.withColumn("place", spark.sf.spark_partition_id()).toArrow())
    groups = placed.group_by(pl.nth(read.index("model"))).agg(pl.col("place").n_unique())
    assert groups["place"].to_list() == [1] * 4  # three models, and null
    assert placed["place"].n_unique() > 1


def test_keys_that_are_floats(session: Any) -> None:
    """Zeros of both signs are one group to Polars, and all NaN are one."""
    keys = [0.0, -0.0, math.nan, -math.nan, None, 1.5]
    frame = pl.concat([ROWS.drop_nulls().with_columns(key=pl.lit(key, pl.Float64)) for key in keys])
    table = on_spark(sent(session, frame, 6), EXACT, by="key")
    assert table.height == 4
    assert differing(table, mlm.evaluate(frame, EXACT, by="key")) == []


def test_names_with_dots_and_capitals(session: Any) -> None:
    frame = ROWS.select(**{"a.b": "score", "a`b": "model", "Label": "label", "truth": "truth", "Truth": "other"})
    rows = session.createDataFrame(frame.rename({"Truth": "c"}).to_arrow(compat_level=pl.CompatLevel.oldest()))
    check(rows.repartition(3).toDF(*frame.columns), frame, mlm.roc_auc(), by="a`b", slices=["Label"], score="a.b")


def test_no_rows(log: Any) -> None:
    check(log.limit(0), ROWS.clear(), MIXED, by="model", slices=["day"])


BY_A_COLUMN = "so pass by= with one: log.withColumn(...) makes a column of an expression."


@pytest.mark.parametrize("by", [None, pl.col("model").str.to_uppercase()], ids=["no key", "an expression alone"])
@pytest.mark.parametrize(
    ("metric", "name"), [(mlm.roc_auc(), "roc_auc"), (MIXED[-1], "middle")], ids=["curve", "plain"]
)
def test_without_a_column_that_parts_the_rows(log: Any, by: Any, metric: Any, name: str) -> None:
    message = said(mlm.StateError, on_spark, log, mlm.f1(), metric, by=by)
    assert message.startswith(f"'{name}' needs all rows of a group together.")
    assert message.endswith(BY_A_COLUMN)


def test_files_are_not_moved(session: Any, tmp_path: Path) -> None:
    ROWS.write_parquet(tmp_path / "log.parquet")
    message = said(mlm.StateError, on_spark, tmp_path, mlm.roc_auc(), by="model")
    assert message.endswith("they may be in several files: pass the DataFrame, spark.read.parquet(...).")
