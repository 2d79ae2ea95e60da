"""`confusion(ci=)`: the share of each true class that is predicted as each class, between the ends of its interval."""

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from tests.intervals.users import users

CLASSES = ["x", "y", "z"]


def hard() -> pl.DataFrame:
    """A class predicted for each of 200 samples, of which "z" is rare; of users with four samples."""
    rng, n = np.random.default_rng(5), 200
    return pl.DataFrame(
        {
            "sample": range(n),
            "user": [sample // 4 for sample in range(n)],
            "model": rng.choice(["a", "b"], n),
            "truth": rng.choice(CLASSES, n, p=[0.6, 0.3, 0.1]),
            "score": rng.choice(CLASSES, n, p=[0.7, 0.2, 0.1]),
            "weight": rng.choice([0.5, 1.0, 2.0], n),
        }
    )


def scored(log: pl.DataFrame) -> pl.DataFrame:
    """The same as scores: the best class is the predicted one."""
    classes = pl.DataFrame({"label": CLASSES})
    is_said, is_true = (pl.col(column) == pl.col("label") for column in ("score", "truth"))
    return log.join(classes, how="cross").with_columns(score=is_said * 0.8, truth=is_true)


def expected(log: pl.DataFrame, truth: str, **asked: Any) -> dict[tuple[str, str], list[Any]]:
    """The share of the samples of one class that is predicted as each, by model: a metric of these samples alone."""
    metrics = []
    for said in log["score"].unique():
        is_said = pl.col("score") == said
        metrics.append(mlm.prevalence().on(score=is_said, truth=is_said).alias(said))
    table = mlm.evaluate(log.filter(truth=truth), metrics, by="model", tidy=True, **asked)
    rows = table.select("model", "metric", "value", "low", "high").rows()
    return {(model, said): shares for model, said, *shares in rows}


@pytest.mark.parametrize("of", [hard, lambda: scored(hard())], ids=["classes", "scores"])
@pytest.mark.parametrize("asked", [{}, {"cluster": "user"}, {"weight": "weight"}], ids=str)
def test_a_share_is_that_of_the_samples_of_its_class(of: Callable[[], pl.DataFrame], asked: dict[str, Any]) -> None:
    table = mlm.confusion(of(), by="model", ci=0.9, **asked)
    assert table.columns == ["model", "truth", "predicted", "n", "share", "share_low", "share_high"]
    right = {truth: expected(hard(), truth, ci=0.9, **asked) for truth in CLASSES}
    for model, truth, said, _, *shares in table.rows():
        assert shares == pytest.approx(right[truth][model, said], rel=1e-9, nan_ok=True)
    counts = mlm.confusion(of(), by="model", **{role: name for role, name in asked.items() if role != "cluster"})
    assert_frame_equal(table.select(counts.columns), counts, rel_tol=1e-12)
    sums = table.group_by("model", "truth").agg(pl.col("share").sum())
    assert sums["share"].to_list() == pytest.approx([1.0] * sums.height)
    assert table["share_low"].null_count() == 0


def test_a_share_of_tied_classes() -> None:
    log = hard().head(40)
    tied = scored(log).with_columns(score=pl.when(pl.col("sample") < 20).then(0.5).otherwise("score"))
    table = mlm.confusion(tied, ci=0.95).filter(truth="x", predicted="y")
    first, rest = log.filter(pl.col("sample") < 20, truth="x"), log.filter(pl.col("sample") >= 20, truth="x")
    right = (first.height / 3 + rest.filter(score="y").height) / (first.height + rest.height)
    assert table["share"].item() == pytest.approx(right)
    assert table["share_low"].item() < right < table["share_high"].item()


def test_a_class_that_is_never_returned() -> None:
    lost = scored(hard()).with_columns(score=pl.when(pl.col("sample") % 2 == 0).then(-math.inf).otherwise("score"))
    table = mlm.confusion(lost, ci=0.95).filter(pl.col("predicted").is_null())
    halves = hard().with_columns(score=pl.when(pl.col("sample") % 2 == 0).then(pl.lit("lost")).otherwise("score"))
    halves = halves.with_columns(model=pl.lit("a"))
    for truth, _, _, *shares in table.rows():
        assert shares == pytest.approx(expected(halves, truth, ci=0.95)["a", "lost"], rel=1e-9)
    assert table.height == 3


def test_a_broken_row_breaks_the_shares_of_its_group() -> None:
    weight = pl.when(pl.col("sample") == 7).then(math.nan).otherwise("weight").alias("weight")
    table = mlm.confusion(hard().with_columns(weight), by="user", ci=0.95, weight="weight").filter(user=1)
    assert table["share"].is_nan().all()
    assert table.select("share_low", "share_high").null_count().row(0) == (table.height, table.height)


def test_a_class_of_one_sample_has_no_interval() -> None:
    log = hard().with_columns(truth=pl.when(pl.col("sample") == 3).then(pl.lit("rare")).otherwise("truth"))
    table = mlm.confusion(log, ci=0.95)
    assert table.filter(truth="rare").select("share", "share_low", "share_high").rows() == [(1.0, None, None)]
    assert table.filter(pl.col("truth") != "rare")["share_low"].null_count() == 0


RATES = {"tp": mlm.recall, "fp": mlm.false_positive_rate, "fn": mlm.false_negative_rate, "tn": mlm.specificity}


@pytest.mark.parametrize("asked", [{}, {"cluster": "user"}, {"by": "country"}, {"inclusive": True}], ids=str)
def test_the_share_of_a_cell_is_a_rate(asked: dict[str, Any]) -> None:
    table = mlm.confusion(users(), threshold=0.4, ci=0.9, **asked)
    counts = mlm.confusion(users(), threshold=0.4, **{k: v for k, v in asked.items() if k != "cluster"})
    assert_frame_equal(table.drop("share", "share_low", "share_high"), counts)
    others = {**asked}
    inclusive = others.pop("inclusive", False)
    for cell, rate in RATES.items():
        metric = rate(threshold=0.4, inclusive=inclusive).alias("share")
        right = mlm.evaluate(users(), metric, per="label", ci=0.9, **others)
        keys = [key for key in right.columns if not key.startswith("share")]
        assert_frame_equal(table.filter(cell=cell).select(right.columns), right.sort(keys), rel_tol=1e-12)


def test_the_share_of_a_cell_without_labels() -> None:
    table = mlm.confusion(users().drop("label"), threshold=0.4, ci=0.9)
    assert table.columns == ["cell", "truth", "predicted", "n", "share", "share_low", "share_high"]
    right = mlm.evaluate(users(), mlm.recall(threshold=0.4), ci=0.9).row(0)
    assert table.select("share", "share_low", "share_high").row(0) == pytest.approx(right, rel=1e-12)


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("threshold", [None, 0.5])
def test_a_lazy_frame_gives_the_same(engine: Any, threshold: float | None) -> None:
    lazy = mlm.confusion(scored(hard()).lazy(), by="model", threshold=threshold, ci=0.95)
    collected = lazy.collect(engine=engine)
    assert collected.schema == lazy.collect_schema()
    assert_frame_equal(collected, scored(hard()).mlm.confusion("model", threshold=threshold, ci=0.95), rel_tol=1e-12)


def test_nothing_gives_nothing() -> None:
    table = mlm.confusion(hard().clear(), ci=0.95)
    assert table.columns == ["truth", "predicted", "n", "share", "share_low", "share_high"]
    assert table.is_empty()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mlm.confusion(hard(), ci=95), "ci must be a number between 0 and 1, such as 0.95, not 95."),
        (lambda: mlm.confusion(hard(), cluster="user"), "cluster= is for intervals: pass ci= too"),
        (lambda: mlm.confusion(hard(), ci=0.9, cluster="usr"), "Did you mean 'user'?"),
        (lambda: mlm.confusion(hard().drop("sample"), ci=0.9), "there is no sample column 'sample'"),
        (lambda: mlm.confusion(hard(), pl.col("model").alias("share"), ci=0.9), "would have the name 'share'"),
    ],
)
def test_what_is_wrong_is_said(call: Callable[[], object], message: str) -> None:
    with pytest.raises(mlm.MetricError, match=re.escape(message)):
        call()
