"""A metric that reads no score and no truth has one answer, whatever stands there: nulls, NaN, or no such columns."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm

LATENCY, OK = mlm.mean("latency", best="min"), mlm.share(pl.col("ok"), best="max").alias("answered")
METRICS = [LATENCY, OK]
PAIRS: dict[str, Any] = {"between": "model", "baseline": "old"}
KEYS = ["model", "country"]


def drawn(samples: int = 240) -> pl.DataFrame:
    draw = random.Random(11)
    return pl.DataFrame(
        {
            "model": model,
            "sample": sample,
            "country": ("DE", "FR", "JP")[sample % 3],
            "user": sample // 3,
            "day": dt.date(2026, 11, 1) + dt.timedelta(days=sample % 4),
            "latency": None if sample % 40 == 7 else draw.gauss(130 if (model, sample % 3) == ("new", 2) else 100, 9),
            "ok": draw.random() < 0.8,
            "tokens": 1.0 + sample % 4,
        }
        for model in ("old", "new")
        for sample in range(samples)
    )


BARE = drawn()
SCORED = BARE.with_columns(
    score=pl.when(pl.col("sample") % 3 == 0).then(None).when(pl.col("sample") % 3 == 1).then(float("nan")).otherwise(7),
    truth=pl.when(pl.col("sample") % 2 == 0).then(None).otherwise(5),
)
"""The same rows with scores and truths of which no metric of these could have a number."""

Ask = Callable[..., Any]

CALLS: dict[str, Ask] = {
    "evaluate": lambda log, **w: mlm.evaluate(log, METRICS, by="model", slices=["country"], ci=0.95, **w),
    "evaluate tidy": lambda log, **w: mlm.evaluate(log, METRICS, by="model", tidy=True, ci=0.95, min_samples=5, **w),
    "evaluate clusters": lambda log, **w: mlm.evaluate(log, METRICS, by="model", ci=0.95, cluster="user", **w),
    "evaluate draws": lambda log, **w: mlm.evaluate(log, METRICS, by="model", ci="bootstrap", **w),
    "evaluate samples": lambda log, **w: mlm.evaluate(log, METRICS, by="model", per="sample", **w).sort(pl.all()),
    "compare": lambda log, **w: mlm.compare(log, METRICS, **PAIRS, slices=["country"], **w),
    "rank": lambda log, **w: mlm.rank(log, LATENCY, **w),
    "gap": lambda log, **w: mlm.gap(log, METRICS, over="country", by="model", **w),
    "worst": lambda log, **w: mlm.worst(log, LATENCY, 5, by="model", **w),
    "flips": lambda log, **w: mlm.flips(log, LATENCY, k=5, **PAIRS, **w),
    "decompose": lambda log, **w: mlm.decompose(log, OK, over="country", **PAIRS, **w),
    "find_slices": lambda log, **w: mlm.find_slices(log, LATENCY, ["country", "user"], by="model", progress=False, **w),
    "find_slices of changes": lambda log, **w: mlm.find_slices(log, LATENCY, "country", **PAIRS, progress=False, **w),
    "gate": lambda log, **w: mlm.gate(mlm.evaluate(log, METRICS, by="model", **w), {"slow": pl.col("answered") > 0.79}),
    "state": lambda log, **w: mlm.finish(mlm.state(log, METRICS, by=KEYS, **w), by="model", ci=0.95),
    "state of pairs": lambda log, **w: mlm.compare(mlm.state(log, METRICS, by=KEYS, between="model", **w), **PAIRS),
    "check": lambda log, **w: mlm.check(log, by="model", slices=["country"], metrics=METRICS, progress=False, **w),
}
IN_PASSES = ("evaluate", "compare", "gap", "worst", "find_slices", "state")


def answer(ask: Ask, log: Any, **given: Any) -> pl.DataFrame:
    table: pl.DataFrame = ask(log, **given).lazy().collect()
    return table


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("weight", [{}, {"weight": "tokens"}], ids=["plain", "weighted"])
def test_scores_and_truths_that_nobody_reads_change_nothing(name: str, weight: dict[str, Any], tmp_path: Path) -> None:
    ask = CALLS[name]
    expected = answer(ask, SCORED, **weight)
    assert expected.height
    BARE.write_parquet(tmp_path / "log.parquet")
    for log in (BARE, BARE.lazy(), pl.scan_parquet(tmp_path / "log.parquet")):
        assert_frame_equal(answer(ask, log, **weight), expected, rel_tol=1e-12)


@pytest.mark.parametrize("name", IN_PASSES)
def test_nor_in_passes(name: str) -> None:
    given = {"passes": 3, "progress": False}
    ask = {
        "state": lambda log, **given: mlm.finish(mlm.state(log, METRICS, by="model", **given), by="model", ci=0.95),
        "find_slices": lambda log, **given: mlm.find_slices(log, LATENCY, "country", by="model", **given),
    }.get(name, CALLS[name])
    assert_frame_equal(answer(ask, BARE.lazy(), **given), answer(ask, SCORED.lazy(), **given), rel_tol=1e-12)


def test_nor_in_a_folder_of_states(tmp_path: Path) -> None:
    found = []
    for name, log in {"bare": BARE, "scored": SCORED}.items():
        (tmp_path / name).mkdir()
        for (day,), part in log.group_by("day", maintain_order=True):
            part.write_parquet(tmp_path / name / f"{day}.parquet")
        statuses = mlm.update_states(tmp_path / name, tmp_path / f"{name}_states", METRICS, by=KEYS, progress=False)
        assert statuses["status"].to_list() == ["folded"] * 4
        found.append(mlm.finish(mlm.scan_states(tmp_path / f"{name}_states"), by=KEYS, ci=0.95).collect())
    assert_frame_equal(*found, rel_tol=1e-12)


def test_drift_is_of_scores() -> None:
    with pytest.raises(mlm.ColumnError, match="score column 'score' is not in the table"):
        mlm.drift(BARE, **PAIRS)
    moved = mlm.drift(BARE, **PAIRS, score="latency").row(0, named=True)
    known = BARE.drop_nulls("latency")
    means = dict(known.group_by("model").agg(pl.col("latency").mean()).rows())
    assert moved["score_mean"] == pytest.approx(means["new"], rel=1e-12)
    assert moved["score_mean_baseline"] == pytest.approx(means["old"], rel=1e-12)


# -- beside metrics that read a score and a truth ----------------------------------------------------------------------

MIXED = [
    LATENCY,
    mlm.f1(),
    mlm.pass_at(1),
    mlm.krippendorff_alpha(),
    mlm.brier_score(),
    OK,
    mlm.mean("latency").alias("weighed").on(weight="tokens"),
]


def some_unknown() -> pl.DataFrame:
    """A log in which rows lack a score, a truth or a latency, each in rows of its own."""
    draw = random.Random(3)
    number = pl.col("sample")
    rows = BARE.with_columns(
        score=pl.Series([draw.random() for _ in range(BARE.height)]),
        truth=pl.Series([int(draw.random() < 0.4) for _ in range(BARE.height)]),
    )
    is_new = pl.col("model") == "new"
    return rows.with_columns(
        score=pl.when(~(is_new & (number % 11 == 0))).then("score"),
        truth=pl.when(~(is_new & (number % 13 == 0))).then("truth"),
        latency=pl.when(~(is_new & (number % 17 == 0))).then("latency"),
    )


@pytest.mark.one_in(3)
@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("slices", [None, ["country"]])
def test_a_comparison_of_several_metrics_is_that_of_each(order: int, slices: list[str] | None) -> None:
    """Each has the pairs of its own rows: those of a latency are not those of a score."""
    log = some_unknown()
    together = mlm.compare(log, MIXED[::order], **PAIRS, slices=slices)
    for metric in MIXED:
        alone = mlm.compare(log, metric, **PAIRS, slices=slices)
        assert_frame_equal(together.filter(metric=metric.output_name), alone, rel_tol=1e-9, abs_tol=1e-12)
    whole = together if slices is None else together.filter(slice="")
    pairs = dict(whole.select("metric", "n_pairs").rows())
    lacking = {"mean_latency": ("latency",), "f1": ("score", "truth"), "pass_at_1": ("truth",), "answered": ()}
    for name, columns in lacking.items():
        counting = log.drop_nulls(columns) if columns else log
        both = counting.group_by("sample").agg(pl.col("model").n_unique() == 2)
        assert pairs[name] == both["model"].sum()


def test_two_scores_are_two_questions() -> None:
    log = some_unknown().with_columns(other=0.5)
    for metrics in ([mlm.f1(), LATENCY, mlm.mse().on(score="other")], [LATENCY, mlm.f1(), mlm.mse().on(score="other")]):
        with pytest.raises(mlm.MetricError, match="one has score=other: call it once for each"):
            mlm.compare(log, metrics, **PAIRS)
