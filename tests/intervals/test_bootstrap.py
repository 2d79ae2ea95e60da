"""`ci="bootstrap"`: the ends are quantiles of the values of draws, as NumPy has them."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from polars_mlmetrics.engine.buckets import bucket_of
from tests.intervals.buckets import times
from tests.intervals.users import HALF, SUITE, users

Numbers = NDArray[Any]


def small(samples: int = 40) -> pl.DataFrame:
    """Samples of three rows each."""
    rng, n = np.random.default_rng(9), samples * 3
    truth = rng.integers(0, 2, n)
    score = np.clip(0.3 + 0.3 * truth + 0.2 * rng.normal(size=n), 0.01, 0.99)
    label = np.tile(["a", "b", "c"], samples)
    return pl.DataFrame({"sample": np.repeat(np.arange(samples), 3), "label": label, "score": score, "truth": truth})


def correlation(s: Numbers, t: Numbers, w: Numbers) -> float:
    s, t = (each - np.average(each, weights=w) for each in (s, t))
    return float((w * s * t).sum() / np.sqrt((w * s * s).sum() * (w * t * t).sum()))


def mae(s: Numbers, t: Numbers, w: Numbers) -> float:
    return float((w * abs(s - t)).sum() / w.sum())


def mse(s: Numbers, t: Numbers, w: Numbers) -> float:
    return float((w * (s - t) ** 2).sum() / w.sum())


# What each metric is of rows that are there so often.
PLAIN: dict[str, tuple[mlm.Metric, Callable[[Numbers, Numbers, Numbers], float]]] = {
    "mae": (mlm.mae(), mae),
    "recall": (mlm.recall(), lambda s, t, w: (w * t * (s > 0.5)).sum() / (w * t).sum()),
    "r2": (mlm.r2(), lambda s, t, w: 1 - mse(s, t, w) / mse((w * t).sum() / w.sum(), t, w)),
    "pearson": (mlm.pearson(), correlation),
    "support": (mlm.support(), lambda s, t, w: (w * t).sum()),
    "difference": (mlm.rmse() - mlm.mae(), lambda s, t, w: np.sqrt(mse(s, t, w)) - mae(s, t, w)),
}


@pytest.mark.parametrize("verb", ["evaluate", "finish"])
def test_the_ends_are_quantiles_of_the_draws(verb: str) -> None:
    log = small()
    metrics = [metric.alias(name) for name, (metric, _) in PLAIN.items()]
    source = log if verb == "evaluate" else mlm.state(log, metrics)
    table = getattr(mlm, verb)(source, metrics, ci="bootstrap", tidy=True)
    bucket = log.select(bucket_of(["sample"], log.schema, 64)[0]).to_series().to_numpy()
    score, truth = log["score"].to_numpy(), log["truth"].to_numpy()
    for row in table.iter_rows(named=True):
        of_rows = PLAIN[row["metric"]][1]
        values = [of_rows(score, truth, each[bucket]) for each in times(64)]
        right = [np.std(values, ddof=1), *np.quantile(values, [0.025, 0.975])]
        assert [row["se"], row["low"], row["high"]] == pytest.approx(right, rel=1e-9)
        assert row["value"] == pytest.approx(of_rows(score, truth, np.ones(len(bucket))), rel=1e-9)
        assert row["ci_method"] == "bootstrap"
        # Without a positive a bucket tells nothing of the recall.
        assert row["n_buckets"] == len(set(bucket)) or row["metric"] == "recall"


@pytest.mark.usefixtures("buckets_of_states")
def test_it_is_near_the_other_interval() -> None:
    drawn, other = (mlm.evaluate(users(), SUITE, ci=ci, tidy=True) for ci in ("bootstrap", 0.95))
    same = ["metric", "value", "n_buckets", "n_clusters", "ci_flag"]
    assert_frame_equal(drawn.select(same), other.select(same), rel_tol=1e-12)
    widths = [table["high"] - table["low"] for table in (drawn, other)]
    assert (widths[0] / widths[1]).is_between(0.75, 1.25).all()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("asked", [{"cluster": "user"}, {"slices": ["country", "side"]}, {"by": "country"}], ids=str)
def test_it_is_the_same_every_time(asked: dict[str, Any]) -> None:
    table = mlm.evaluate(users(), HALF, ci="bootstrap", **asked)
    assert table.select(pl.col("^.*_low$").null_count()).sum_horizontal().item() == 0
    for again in (
        mlm.evaluate(users().lazy(), HALF, ci="bootstrap", **asked).collect(engine="streaming"),
        mlm.evaluate(users(), HALF, ci="bootstrap", passes=3, progress=False, **asked),
    ):
        assert_frame_equal(again, table, rel_tol=1e-9)


def test_a_slice_has_the_interval_of_its_rows() -> None:
    table = mlm.evaluate(users(), HALF, slices=["side"], ci="bootstrap").filter(sliced_by="side")
    for side in (0, 1):
        alone = mlm.evaluate(users().filter(side=side), HALF, ci="bootstrap")
        assert_frame_equal(table.filter(side=side).select(alone.columns), alone, rel_tol=1e-9)


def test_labels_and_cells_have_intervals_of_their_own() -> None:
    right = mlm.evaluate(users(), mlm.recall(), mlm.support(), by="label", ci="bootstrap")
    table = mlm.evaluate(users(), mlm.recall(), mlm.support(), per="label", ci="bootstrap").sort("label")
    assert_frame_equal(table, right, rel_tol=1e-12)
    worst = mlm.worst(users(), mlm.recall(average="macro"), ci="bootstrap").sort("label")
    assert_frame_equal(worst.select("label", "recall", "recall_low"), right.select("label", "recall", "recall_low"))
    cells = mlm.confusion(users(), threshold=0.5, ci="bootstrap").filter(cell="tp")
    assert cells["share_high"].to_list() == pytest.approx(right["recall_high"].to_list())


def test_a_function_that_is_not_smooth_is_applied_to_the_ends() -> None:
    plain = mlm.evaluate(small(), mlm.f1(), ci="bootstrap").row(0)
    assert mlm.evaluate(small(), mlm.f1().round(2), ci="bootstrap").row(0) == tuple(round(each, 2) for each in plain)


def said(frame: pl.DataFrame, *metrics: mlm.Metric, **asked: Any) -> list[tuple[Any, bool]]:
    """The flag of each metric, and whether it has an interval."""
    table = mlm.evaluate(frame, list(metrics), ci="bootstrap", tidy=True, **asked)
    return table.select("ci_flag", pl.col("low").is_not_null()).rows()


def test_a_flag_says_what_to_know_of_an_interval() -> None:
    extremes = mlm.max_error(), mlm.f1(average="min"), mlm.max_error() + mlm.support(), mlm.max_error() / mlm.rmse()
    named = [metric.alias(str(number)) for number, metric in enumerate(extremes)]
    assert said(users(), *named) == [("extremes", False)] * 4
    assert said(users(), mlm.roc_auc(), mlm.calibration_error()) == [("no_state", False), ("biased", False)]
    assert said(users().with_columns(score=0.3, truth=1), mlm.mae(), mlm.recall()) == [("degenerate", False)] * 2
    # In a third of the draws the only sample is missing in which label d is true.
    is_only = (pl.col("sample") == 5).cast(pl.Int64)
    rare = users().with_columns(truth=pl.when(label="d").then(is_only).otherwise("truth"))
    assert said(rare, mlm.recall(average="macro"), mlm.recall()) == [("undefined_replicates", True), ("ok", True)]
    assert said(users().filter(pl.col("sample") < 8), mlm.mae()) == [("few_buckets", True)]
    assert said(users().filter(sample=3), mlm.mae()) == [("undefined_replicates", False)]
    assert said(users().with_columns(truth=0), mlm.recall()) == [(None, False)]


def test_a_total_of_what_is_drawn_in_part() -> None:
    # In some draws neither of two samples is there: the total is 0 then.
    few = users().filter(pl.col("sample") < 2)
    row = mlm.evaluate(few, mlm.n_rows(), ci="bootstrap", tidy=True).row(0, named=True)
    assert (row["low"], row["ci_flag"]) == (0.0, "few_buckets")
    # A label has no row in such a draw that says so.
    labels = mlm.evaluate(few, mlm.n_rows(), per="label", ci="bootstrap")
    assert labels["n_rows_low"].null_count() == 4


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: mlm.evaluate(users(), mlm.f1(), ci="boot"),  # type: ignore[call-overload]
            "ci must be a number between 0 and 1, such as 0.95, or 'bootstrap', not 'boot'.",
        ),
        (lambda: mlm.evaluate(users(), mlm.f1(), ci="bootstrap", per="sample"), "a single sample has no interval"),
        (lambda: mlm.finish(mlm.state(users(), mlm.f1(), buckets=0), ci="bootstrap"), "this state has no buckets"),
    ],
)
def test_what_is_wrong_is_said(call: Callable[[], object], message: str) -> None:
    with pytest.raises(mlm.MetricError, match=re.escape(message)):
        call()
