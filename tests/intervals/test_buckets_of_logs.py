"""A log has 256 buckets, or one for each of few clusters that are named; metrics of bins have 64."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import stats

import polars_mlmetrics as mlm
from polars_mlmetrics.engine.buckets import OF_LOG, bucket_of
from tests.support.degrees import degrees_of_freedom

METRICS = [
    mlm.accuracy(),
    mlm.log_loss(),
    mlm.f1(average="macro"),
    mlm.roc_auc().alias("exact"),
    mlm.calibration_bias(),
]
OF_BINS = [mlm.roc_auc(bins=100), mlm.average_precision(bins=1000), mlm.ks(bins=500)]
FACTS = ["se", "low", "high", "n_buckets", "ci_flag"]


def drawn(n: int, clusters: int, seed: int = 3) -> pl.DataFrame:
    """Samples of two labels in clusters, and two models that differ a little."""
    random = np.random.default_rng(seed)
    cluster = random.integers(0, clusters, n)
    logit = random.normal(size=n) + random.normal(size=clusters)[cluster]
    truth = (random.random(n) < 1 / (1 + np.exp(-logit))).astype(int)
    models = {"old": 1.0, "new": 0.6}
    table = pl.DataFrame(
        {"sample": np.arange(n), "user": cluster, "label": np.where(np.arange(n) % 2, "a", "b"), "truth": truth}
    )
    return pl.concat(
        table.with_columns(
            model=pl.lit(name), score=pl.Series(1 / (1 + np.exp(-logit - noise * random.normal(size=n))))
        )
        for name, noise in models.items()
    )


def renamed(log: pl.DataFrame, column: str, seed: int) -> pl.DataFrame:
    """The same log with other values of a column: as many of them."""
    values = log[column].unique(maintain_order=True)
    names = pl.Series(np.random.default_rng(seed).choice(10**9, len(values), replace=False))
    return log.with_columns(pl.col(column).replace_strict(values, names if seed % 2 else names.cast(pl.String)))


CLUSTERED, SINGLE = drawn(2_000, 50), drawn(600, 1).filter(model="new")


def intervals(log: Any, metrics: Sequence[mlm.Metric] = METRICS, **options: Any) -> pl.DataFrame:
    return mlm.evaluate(log, metrics, ci=0.95, tidy=True, **options).lazy().collect()


@pytest.mark.parametrize("seed", [0, 1])
def test_names_of_few_clusters_decide_nothing(seed: int) -> None:
    other = renamed(CLUSTERED, "user", seed)
    tables = [intervals(log, [*METRICS, *OF_BINS], by="model", cluster="user") for log in (CLUSTERED, other)]
    assert_frame_equal(*tables, rel_tol=1e-9)
    tables = [mlm.compare(log, METRICS, baseline="old", cluster="user") for log in (CLUSTERED, other)]
    assert_frame_equal(*tables, rel_tol=1e-9)


def test_names_of_samples_decide_little() -> None:
    tables = pl.concat(intervals(renamed(SINGLE, "sample", seed)) for seed in range(20))
    width = pl.col("high") - pl.col("low")
    spread = tables.group_by("metric").agg(width.std() / width.mean())
    # A standard error of G buckets varies by 1 / sqrt(2 G), which 20 draws tell to 1 / sqrt(2 x 19) of it.
    most = 1 / np.sqrt(2 * OF_LOG) * (1 + 2 / np.sqrt(2 * 19))
    assert most < 1 / np.sqrt(2 * 64)
    assert spread.filter(pl.col("high") > most).is_empty()


def test_of_few_clusters_one_is_left_out_at_a_time() -> None:
    log = CLUSTERED.filter(model="new")
    row = intervals(log, [mlm.mae()], cluster="user").row(0, named=True)
    errors = log.select("user", error=(pl.col("score") - pl.col("truth")).abs())
    value = errors["error"].mean()
    without = [errors.filter(pl.col("user") != user)["error"].mean() for user in range(50)]
    moved = (np.array(without) - np.array(value)).tolist()
    se = np.sqrt(49 / 50 * sum(each**2 for each in moved))
    away = stats.t.ppf(0.975, degrees_of_freedom(50, moved)) * se
    assert row["n_buckets"] == 50
    assert [row["se"], row["low"], row["high"]] == pytest.approx([se, value - away, value + away], rel=1e-9)


def test_where_nothing_varies_few_clusters_are_counted() -> None:
    """The end of Wilson's interval of a share of 50 clusters that is 1."""
    right = CLUSTERED.filter(model="new").with_columns(score="truth")
    row = intervals(right, [mlm.accuracy()], cluster="user").row(0, named=True)
    n = 50 * (stats.norm.ppf(0.975) / stats.t.ppf(0.975, 49)) ** 2
    z2 = stats.norm.ppf(0.975) ** 2
    assert row["low"] == pytest.approx(n / (n + z2), rel=1e-9)


def test_many_clusters_have_the_buckets_of_their_hash() -> None:
    log = drawn(2_000, 700).filter(model="new")
    by_user = intervals(log, cluster="user")
    buckets = log.select(bucket_of(["user"], log.schema, OF_LOG)[0]).n_unique()
    assert by_user["n_buckets"].max() == buckets
    by_name = intervals(log.rename({"user": "site"}), cluster="site")
    assert_frame_equal(by_user, by_name, rel_tol=1e-12)
    assert_frame_equal(intervals(log.lazy(), cluster="user"), by_user, rel_tol=1e-9)


def test_to_name_the_samples_as_clusters_changes_nothing() -> None:
    log = SINGLE.head(100)
    assert_frame_equal(intervals(log, cluster="sample"), intervals(log), rel_tol=1e-12)


@pytest.mark.parametrize("cluster", ["user", ["user", "site"]])
def test_null_is_a_cluster_of_its_own(cluster: Any) -> None:
    log = CLUSTERED.with_columns(site=pl.col("user") % 3, user=pl.when(pl.col("user") > 0).then("user") // 3)
    log = log.with_columns(user=pl.when(pl.col("user") != 1).then("user"))
    named = log.with_columns(user=pl.col("user").cast(pl.String).fill_null("none"))
    tables = [intervals(each, by="model", cluster=cluster) for each in (log, named)]
    assert tables[0]["n_buckets"].max() == log.select(cluster).n_unique()
    assert_frame_equal(*[table.drop("n_clusters") for table in tables], rel_tol=1e-9)


def test_rows_may_come_in_any_way(tmp_path: Path) -> None:
    CLUSTERED.write_parquet(tmp_path / "log.parquet", row_group_size=500)
    scan, shuffled = pl.scan_parquet(tmp_path / "log.parquet"), CLUSTERED.sample(fraction=1.0, shuffle=True, seed=1)
    options: dict[str, Any] = {"by": "model", "slices": ["label"], "cluster": "user"}
    metrics = [*METRICS, *OF_BINS, mlm.label_ranking_average_precision()]
    expected = intervals(CLUSTERED, metrics, **options)
    roads = [intervals(scan, metrics, **options), intervals(shuffled, metrics, **options)]
    roads += [intervals(scan, metrics, passes=passes, **options) for passes in (3, "files")]
    roads.append(mlm.evaluate(scan, metrics, ci=0.95, tidy=True, **options).collect(engine="streaming"))
    for table in roads:
        assert_frame_equal(table, expected, rel_tol=1e-9)


def test_a_state_of_as_many_buckets_gives_the_same() -> None:
    """Bins have fewer buckets in a log, whatever a state has."""
    log = drawn(3_000, 3_000)
    metrics = [metric for metric in METRICS if metric.output_name != "exact"]
    state = mlm.state(log, [*metrics, *OF_BINS], by="model", buckets=OF_LOG)
    facts = ["model", "metric", "value", *FACTS[:-1]]
    of_log, of_state = (
        table.select(facts)
        for table in (intervals(log, metrics, by="model"), mlm.finish(state, metrics, by="model", ci=0.95, tidy=True))
    )
    assert_frame_equal(of_log, of_state, rel_tol=1e-9)
    state = mlm.state(log, OF_BINS, by="model", buckets=64)
    finished = mlm.finish(state, OF_BINS, by="model", ci=0.95, tidy=True)
    assert_frame_equal(intervals(log, OF_BINS, by="model").select(facts), finished.select(facts), rel_tol=1e-9)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("others", [[], METRICS, [mlm.label_ranking_average_precision()]])
def test_the_interval_of_a_metric_is_the_same_beside_others(others: list[mlm.Metric]) -> None:
    """Also one that is made of bins and of rows: all of it has the buckets of bins."""
    mixed = (mlm.f1() - mlm.roc_auc(bins=300)).alias("mixed")
    for metric in (OF_BINS[1], mixed, mlm.brier_score()):
        alone = intervals(CLUSTERED, [metric], by="model", slices=["label"])
        table = intervals(
            CLUSTERED, [*others, metric, mlm.brier_reliability(), mlm.mse()], by="model", slices=["label"]
        )
        assert_frame_equal(table.filter(metric=metric.output_name), alone, rel_tol=1e-12)
        fewest, most = (1, 64) if metric.output_name != "brier_score" else (65, 256)
        assert alone["n_buckets"].is_between(fewest, most).all()


@pytest.mark.parametrize(("metric", "buckets"), [(mlm.roc_auc(bins=500), 64), (mlm.mcc(), OF_LOG)])
def test_so_it_is_of_the_parts_of_a_change(metric: mlm.Metric, buckets: int) -> None:
    log = drawn(2_000, 2_000).with_columns(side=pl.col("sample") % 3)
    state = mlm.state(log, metric, by=["model", "side"], buckets=buckets)
    of_log, of_state = (mlm.decompose(each, metric, "side", between="model", baseline="old") for each in (log, state))
    assert_frame_equal(of_log, of_state, rel_tol=1e-9)
