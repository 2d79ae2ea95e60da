"""Means and shares of any number of a row, of tables with no score and no truth."""

from collections.abc import Callable
from math import inf, nan, sqrt
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm

SAMPLES = 400


def answers() -> pl.DataFrame:
    """Answers of two models to the same questions: how long each took, and whether it was right."""
    row = pl.int_range(pl.len())
    pairs = pl.DataFrame({"sample": range(SAMPLES)}).join(pl.DataFrame({"model": ["new", "old"]}), how="cross")
    is_old = pl.col("model") == "old"
    return pairs.with_columns(
        latency=(row * 7919 % 1009) / 500 + pl.when(is_old).then(0.5).otherwise(0.0),
        is_right=row * 104729 % 13 > 5,
        cost=1.0 + row % 3,
        topic=pl.when(pl.col("sample") % 4 == 0).then(pl.lit("law")).otherwise(pl.lit("art")),
    )


LATENCY = mlm.mean("latency", best="min")
IS_SLOW = mlm.share(pl.col("latency") > 1.5, best="min").alias("is_slow")


@pytest.mark.parametrize("weight", [None, "cost"])
def test_they_are_what_polars_gives(weight: str | None) -> None:
    w = pl.lit(1.0) if weight is None else pl.col(weight)
    right = answers().group_by("model", maintain_order=True).agg(
        mean_latency=(w * pl.col("latency")).sum() / (w + 0 * pl.col("latency")).sum(),
        is_slow=(w * (pl.col("latency") > 1.5)).sum() / (w + 0 * pl.col("latency")).sum(),
    )  # fmt: skip
    metrics = [LATENCY, IS_SLOW]
    if weight is not None:
        metrics = [metric.on(weight=weight) for metric in metrics]
    state = mlm.state(answers(), metrics, by="model")
    tables = {
        "evaluate": mlm.evaluate(answers(), metrics, by="model"),
        "agg": answers().group_by("model").agg(metrics),
        "over": answers().select("model", *(metric.over("model") for metric in metrics)).unique(),
        "state": mlm.finish(state, metrics, by="model"),
    }
    for reading, table in tables.items():
        assert_frame_equal(table, right, check_row_order=False, rel_tol=1e-12), reading


def test_the_interval_of_a_mean_of_samples_is_that_of_a_textbook() -> None:
    log = answers().filter(model="old").head(200)
    row = mlm.evaluate(log.with_columns(user=pl.col("sample")), LATENCY, ci=0.95, cluster="user", tidy=True)
    alone = log["latency"]
    # 200 named clusters are left out one by one.
    assert row["se"].item() == pytest.approx(alone.std() / sqrt(200), rel=1e-9)
    assert row["ci_method"].item() == "t"
    shares = mlm.evaluate(log, IS_SLOW, ci=0.95, tidy=True)
    assert shares["ci_method"].item() == "kg_wilson"


def test_best_says_what_is_better() -> None:
    table = mlm.compare(answers(), LATENCY, between="model", baseline="old")
    assert table["verdict"].item() == "better"
    other = mlm.compare(answers(), mlm.mean("latency", best="max"), between="model", baseline="old")
    assert other["verdict"].item() == "worse"
    worst = mlm.worst(answers().filter(model="old"), LATENCY, k=1)
    highest = answers().filter(model="old").sort("latency").tail(1)
    assert worst["sample"].item() == highest["sample"].item()
    assert mlm.mean("latency").best is None


VERBS: dict[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "rank": lambda log: mlm.rank(log, LATENCY),
    "gap": lambda log: mlm.gap(log, LATENCY, over="topic"),
    "decompose": lambda log: mlm.decompose(log, LATENCY, over="topic", between="model", baseline="old"),
    "find_slices": lambda log: mlm.find_slices(log, LATENCY, features=["topic", "model"]),
    "slices": lambda log: mlm.evaluate(log, LATENCY, IS_SLOW, slices=["topic", "model"], ci=0.95, tidy=True),
    "passes": lambda log: mlm.evaluate(log, LATENCY, by="topic", passes=3, progress=False),
    "per": lambda log: mlm.evaluate(log, LATENCY, per="sample", by="model"),
    "unpaired": lambda log: mlm.compare(log, LATENCY, between="model", baseline="old", pairs=False),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_gives_what_it_gives_of_a_table_with_score_and_truth(verb: str) -> None:
    """The score that is null and the truth that is a text are not looked at."""
    bare = VERBS[verb](answers())
    whole = VERBS[verb](answers().with_columns(score=pl.lit(None, pl.Float64), truth=pl.lit("unknown")))
    assert bare.height > 0
    assert_frame_equal(bare, whole, check_row_order=False)


def test_nulls_are_left_out_and_nan_breaks() -> None:
    log = pl.DataFrame({"group": ["a", "a", "b", "b", "c"], "x": [1.0, None, 2.0, nan, None]})
    metrics = [mlm.mean("x"), mlm.share(pl.col("x") > 1), mlm.n_excluded().on(score="x", truth="x")]
    table = mlm.evaluate(log, metrics, by="group").sort("group")
    assert table["mean_x"].fill_nan(-1).to_list() == [1.0, -1.0, None]
    assert table["share_x"].fill_nan(-1).to_list() == [0.0, -1.0, None]
    tidy = mlm.evaluate(log, mlm.mean("x"), by="group", tidy=True).sort("group")
    assert tidy["n_rows"].to_list() == [1, 2, 0]
    assert tidy["n_excluded"].to_list() == [1, 0, 1]


def test_an_expression_that_sees_to_nulls_and_nan_counts_them() -> None:
    log = pl.DataFrame({"x": [1.0, None, 2.0, nan], "y": [1.0, None, None, 2.0]})
    x = pl.col("x")
    shares = [mlm.share(pl.col("y").is_null()), mlm.share(x.is_nan().fill_null(False))]
    table = mlm.evaluate(log, *shares, mlm.mean(x.fill_null(5.0).fill_nan(0.0)))
    assert table.row(0) == (0.5, 0.25, 2.0)


def test_a_value_outside_of_its_range_is_broken() -> None:
    log = pl.DataFrame({"fold": [1, 1, 2, 2], "mark": [1.0, 5.0, 3.0, 6.0]})
    table = mlm.evaluate(log, mlm.mean("mark", range=(1, 5)), by="fold").sort("fold")
    assert table["mean_mark"].fill_nan(-1).to_list() == [3.0, -1.0]


def test_an_interval_keeps_within_the_range() -> None:
    log = pl.DataFrame({"sample": range(50), "mark": [5.0] * 48 + [1.0, 2.0]})
    free, within, above = (
        mlm.evaluate(log, mlm.mean("mark", **given), ci=0.99, tidy=True).row(0, named=True)
        for given in ({}, {"range": (1, 5)}, {"range": (1, inf)})
    )
    assert free["high"] > 5 >= within["high"]
    assert [each["ci_method"] for each in (free, within, above)] == ["t", "kg_wilson", "t"]
    assert free["value"] == within["value"] == above["value"]


def test_names_and_the_namespace() -> None:
    log = answers()
    table = log.select(
        pl.col("latency").mlm.mean(best="min"), (pl.col("latency") > 1.5).mlm.share(), mlm.mean("cost").alias("cost")
    )
    assert table.columns == ["mean_latency", "share_latency", "cost"]
    assert pl.col("latency").mlm.mean() == mlm.mean(pl.col("latency"))
    cost_of_success = mlm.evaluate(log, (mlm.mean("cost") / mlm.mean("is_right")).alias("cost")).item()
    assert cost_of_success == pytest.approx(log["cost"].sum() / log["is_right"].sum())


def test_a_metric_that_reads_no_score_needs_none() -> None:
    trials = pl.DataFrame({"sample": [1, 1, 2, 2], "truth": [1, 0, 0, 0]})
    assert mlm.evaluate(trials, mlm.pass_at(1), mlm.pass_all(2)).row(0) == (0.25, 0.0)
    scored = trials.with_columns(score=pl.lit(None, pl.Float64))
    assert mlm.evaluate(scored, mlm.pass_at(1)).item() == 0.25
    ends = pl.DataFrame({"truth": [1.0, 2.0], "low": [0.0, 3.0], "high": [2.0, 4.0]})
    assert mlm.evaluate(ends, mlm.interval_coverage("low", "high")).item() == 0.5


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda log: mlm.mean(3), "value must be a column name or an expression, not 3"),
        (lambda log: mlm.mean("latency", range=(3, 1)), "range must be two numbers, the lower one first"),
        (lambda log: mlm.mean("latency", best="low"), "best must be 'max' or 'min' or None"),
        (lambda log: mlm.mean(pl.col("latency").mean()), "value must be computed row by row"),
        (lambda log: mlm.evaluate(log, mlm.mean("latenc")), "Did you mean 'latency'"),
        (lambda log: mlm.evaluate(log, mlm.mean("topic")), "value is String"),
        (lambda log: mlm.evaluate(log, mlm.share("topic")), "condition is String"),
        (lambda log: mlm.evaluate(log, mlm.mean(pl.lit(1))), "reads no column"),
        (lambda log: mlm.evaluate(log, mlm.mean("latency", average="macro")), "needs a label"),
        (lambda log: mlm.evaluate(log, mlm.mae(), LATENCY), "score column 'score' is not in the table"),
    ],
)
def test_refusals(call: Callable[[pl.DataFrame], Any], words: str) -> None:
    with pytest.raises(mlm.MetricError, match=words):
        call(answers())
