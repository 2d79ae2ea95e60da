"""`gap` of several metrics: the row of each, and that of the largest gap of all."""

import re
from collections.abc import Callable, Mapping, Sequence
from math import isfinite, isnan
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.io.plugins import register_io_source
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from polars_mlmetrics.intervals.intervals import FLAGS

LEVEL = 0.9
ODDS = [mlm.recall(), mlm.false_positive_rate()]
COARSE_AREA = mlm.roc_auc(bins=16).alias("area of bins")
MANY = [
    *ODDS,
    mlm.log_loss(),
    COARSE_AREA,
    mlm.f1() - mlm.recall(),
    mlm.f1(average="macro"),
    mlm.ndcg(),
    mlm.bias(),
    mlm.recall().round(1).alias("rounded"),
]
"""Metrics of all kinds that have an interval."""
WITHOUT = [mlm.calibration_error(), mlm.support(), mlm.roc_auc(), mlm.f1(average="min")]
"""Metrics that have none, each for another reason."""

PLACE = pl.int_range(4000)
LOG = pl.select(
    model=pl.when(PLACE < 2000).then(pl.lit("old")).otherwise(pl.lit("new")),
    sample=PLACE % 2000,
    user=PLACE % 2000 * 7919 % 211,
    country=PLACE % 2000 * 31 % 4,
    device=PLACE % 2000 * 17 % 2,
    weight=0.5 + PLACE * 13 % 7,
    score=(PLACE * 7919 % 1009 / 1009 * 0.7 + (PLACE * 104729 % 10007 % 3 == 0) * 0.25 + 0.01),
    truth=(PLACE * 104729 % 10007 % 3 == 0).cast(pl.Int8),
).with_columns(label="device")


def by_of(call: Mapping[str, Any]) -> list[str]:
    return ["model"] if "by" in call else []


def rows_of(table: pl.DataFrame, by: Sequence[str] = ()) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    """The rows of each group, in order."""
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in table.iter_rows(named=True):
        found.setdefault(tuple(row[name] for name in by), []).append(row)
    return found


def largest_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The row of the largest gap, from those of the metrics, by its definition."""
    broken = [row for row in rows if row["gap"] is not None and isnan(row["gap"])]
    most = max((row["gap"] for row in rows if row["gap"] is not None and not isnan(row["gap"])), default=None)
    largest = [row for row in rows if most is not None and row["gap"] == pytest.approx(most, rel=1e-12)]
    first = [*broken, *largest, *rows][0]
    names = ("gap", "ratio", "worst", "worst_value", "best", "best_value", "n_slices")
    found = {"metric": "largest", "low": None, "high": None, **{name: first[name] for name in names}}
    lacking = [row["ci_flag"] for row in rows if row["low"] is None]
    if not lacking:
        found |= {end: max(row[end] for row in rows) for end in ("low", "high")}
    flags = [flag for flag in lacking or [row["ci_flag"] for row in rows] if flag is not None]
    is_number = first["gap"] is not None and isfinite(first["gap"])
    return {**found, "ci_flag": min(flags, key=list(FLAGS).index, default=None) if is_number else None}


def check_largest(table: pl.DataFrame, metrics: Sequence[mlm.Metric], by: Sequence[str] = ()) -> None:
    """Each group has a row for each metric, in order, and then one that follows from them."""
    for group, rows in rows_of(table, by).items():
        assert [row["metric"] for row in rows] == [*(metric.output_name for metric in metrics), "largest"]
        expected = {**dict(zip(by, group, strict=True)), **largest_of(rows[:-1])}
        last = pl.DataFrame(rows[-1:], schema=table.schema)
        assert_frame_equal(last, pl.DataFrame([expected], schema=table.schema), rel_tol=1e-12)


CALLS: dict[str, dict[str, Any]] = {
    "the whole": {"over": "country"},
    "by model": {"over": "country", "by": "model"},
    "over two columns, of users": {"over": ["country", "device"], "by": "model", "cluster": "user"},
    "weighted, by an expression": {
        "over": pl.col("country") % 3,
        "by": pl.col("model").str.head(1),
        "weight": "weight",
    },
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_each_metric_is_as_it_is_alone_at_the_level_of_its_share(call: dict[str, Any]) -> None:
    metrics = [*MANY, *WITHOUT]
    table = mlm.gap(LOG, metrics, ci=LEVEL, **call)
    check_largest(table, metrics, by_of(call))
    for metric in metrics:
        alone = mlm.gap(LOG, metric, ci=1 - (1 - LEVEL) / len(metrics), **call)
        assert_frame_equal(table.filter(metric=metric.output_name), alone, rel_tol=1e-9)


@pytest.mark.parametrize("one", [[ODDS[0]], [[ODDS[0]]], (ODDS[0],)], ids=["a list", "a list in a list", "a tuple"])
def test_one_metric_in_a_list_is_that_metric(one: Any) -> None:
    assert_frame_equal(mlm.gap(LOG, one, "country"), mlm.gap(LOG, ODDS[0], "country"), rel_tol=1e-12)


def test_each_group_shares_the_level_among_the_pairs_that_it_has() -> None:
    """The old model is in four countries, the new one in three: in one of them all truths are true."""
    is_new, country = pl.col("model") == "new", pl.col("country")
    all_true = pl.when(is_new & (country == 2)).then(1).otherwise("truth")
    rows = LOG.filter(~is_new | (country < 3)).with_columns(truth=all_true)
    table = mlm.gap(rows, ODDS, over="country", by="model", ci=LEVEL)
    check_largest(table, ODDS, ["model"])
    pairs = {"new": [3, 1], "old": [6, 6]}
    for model, of_metrics in pairs.items():
        for metric, own in zip(ODDS, of_metrics, strict=True):
            level = 1 - (1 - LEVEL) * own / sum(of_metrics)
            alone = mlm.gap(rows, metric, over="country", by="model", ci=level).filter(model=model)
            assert_frame_equal(table.filter(model=model, metric=metric.output_name), alone, rel_tol=1e-9)


BY = ["model", "country", "device"]
FRAMES: dict[str, Callable[[], pl.DataFrame | pl.LazyFrame]] = {
    "lazy": LOG.lazy,
    "state": lambda: mlm.state(LOG, MANY, by=BY),
    "two states": lambda: pl.concat(
        mlm.state(LOG.filter(pl.col("sample") % 2 == half), MANY, by=BY) for half in (0, 1)
    ),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_a_lazy_frame_and_a_state_give_the_same_on_both_engines(frame: Callable[[], Any], engine: Any) -> None:
    with pl.Config() as config:
        config.set_engine_affinity(engine)
        lazy = mlm.gap(frame().lazy(), MANY, over=["country", "device"], by="model")
        found = lazy.collect(engine=engine)
    expected = LOG.mlm.gap(MANY, over=["country", "device"], by="model")
    assert lazy.collect_schema() == expected.schema
    assert_frame_equal(found, expected, rel_tol=1e-9)


# -- the equalized odds ------------------------------------------------------------------------------------------------


def equalized_odds_difference(rows: pl.DataFrame) -> float:
    """As fairlearn has it, which docs/coming_from.md runs: of two rates, the larger of the largest differences."""
    truth, said, country = rows["truth"].to_numpy() == 1, rows["score"].to_numpy() > 0.5, rows["country"].to_numpy()

    def difference(of: Any) -> float:
        rates = [np.mean(said[of & (country == each)]) for each in np.unique(country)]
        return float(max(rates) - min(rates))

    return max(difference(truth), difference(~truth))


def test_the_largest_gap_is_the_difference_of_the_equalized_odds() -> None:
    rows = LOG.with_columns(
        score=pl.when((pl.col("country") == 3) & (pl.col("truth") == 0)).then(1 - pl.col("score")).otherwise("score")
    )
    table = mlm.gap(rows, ODDS, over="country", by="model").filter(metric="largest")
    expected = [equalized_odds_difference(rows.filter(model=model)) for model in table["model"]]
    assert table["gap"].to_list() == pytest.approx(expected, rel=1e-12)
    assert (table["gap"] > 0.2).all()


# -- what is undefined, broken, or has no interval ---------------------------------------------------------------------

OLD = LOG.filter(model="old")
IN_ONE, IS_TRUE = pl.col("country") == 1, pl.col("truth") == 1


CALIBRATION, TOTAL, LOSS, BINNED = mlm.calibration_error(), mlm.support(), mlm.log_loss(), mlm.roc_auc(bins=4)
ALWAYS_1, HIT = mlm.recall(threshold=0).alias("always 1"), mlm.recall(threshold=0.8).alias("hit")
MISSED = (1 - HIT).alias("missed")
"""Of this the gap is the same, but for rounding."""
OTHER = mlm.recall().on(score="other").alias("other")
"""A recall of a score that is unknown, or NaN, in some countries."""

IN_ALL_BUT_ONE = OLD.with_columns(other=pl.when(IN_ONE).then("score"))
BROKEN = OLD.with_columns(other=pl.when(IN_ONE & IS_TRUE).then(float("nan")).otherwise("score"))
ZERO = OLD.with_columns(score=pl.when(IN_ONE & IS_TRUE).then(0.0).otherwise("score"))
HUGE = (100 * mlm.log_loss()).exp().alias("huge")
"""Infinite where a score of 0 is true."""

CASES: dict[str, tuple[pl.DataFrame, list[mlm.Metric], tuple[str, bool, str | None]]] = {
    # The log, the metrics; whose gap is the largest, whether it has an interval, and the flag.
    "all is well": (OLD, ODDS, ("recall", True, "ok")),
    "the first of equals": (OLD, [HIT, MISSED], ("hit", True, "ok")),
    "the first of them the other way round": (OLD, [MISSED, HIT], ("missed", True, "ok")),
    "one has no state": (OLD, [*ODDS, mlm.roc_auc()], ("recall", False, "no_state")),
    "one never varies": (OLD, [ALWAYS_1, *ODDS], ("recall", False, "degenerate")),
    "what has no ends comes first": (OLD, [CALIBRATION, BINNED], ("roc_auc", False, "biased")),
    "of two without ends the first flag": (OLD, [CALIBRATION, TOTAL, *ODDS], ("support", False, "totals")),
    "bins are coarse": (OLD, [*ODDS, BINNED], ("recall", True, "coarse_bins")),
    "models are pooled": (LOG, [*ODDS, BINNED], ("recall", True, "pooled")),
    "few samples": (OLD.head(60), [LOSS, *ODDS], ("recall", True, "few_buckets")),
    "one is undefined but in one slice": (IN_ALL_BUT_ONE, [OTHER, *ODDS], ("recall", False, None)),
    "one has no gap, and one no state": (IN_ALL_BUT_ONE, [OTHER, LOSS, mlm.roc_auc()], ("log_loss", False, "no_state")),
    "all are undefined": (OLD.filter(IN_ONE), ODDS, ("recall", False, None)),
    "one is NaN": (BROKEN, [*ODDS, OTHER], ("other", False, None)),
    "one is NaN, and one has no state": (BROKEN, [mlm.roc_auc(), OTHER, TOTAL], ("other", False, None)),
    "one is infinite": (ZERO, [*ODDS, HUGE, mlm.roc_auc()], ("huge", False, None)),
    "there are no rows": (OLD.clear(), ODDS, ("recall", False, None)),
}


@pytest.mark.parametrize("case", CASES)
def test_what_the_largest_gap_says(case: str) -> None:
    rows, metrics, (name, has_ends, flag) = CASES[case]
    table = mlm.gap(rows, metrics, over="country")
    check_largest(table, metrics)
    *of_metrics, largest = table.rows(named=True)
    assert (largest["low"] is not None, largest["ci_flag"]) == (has_ends, flag)
    (of_name,) = (row for row in of_metrics if row["metric"] == name)
    told = ["gap", "worst", "best", "n_slices"]
    assert [repr(largest[column]) for column in told] == [repr(of_name[column]) for column in told]


# -- one read, and what is refused -------------------------------------------------------------------------------------


def test_one_plan_reads_the_log_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a file each metric would make a scan of its own; a source of Python would be asked for each."""
    plans, reads = [], []
    collect_all = pl.collect_all

    def collected(frames: list[pl.LazyFrame]) -> list[pl.DataFrame]:
        plans.append(pl.explain_all(frames))
        return collect_all(frames)

    def rows(columns: Any, predicate: Any, n_rows: Any, batch: Any) -> Any:
        reads.append(columns)
        yield LOG.select(columns or pl.all())

    monkeypatch.setattr(pl, "collect_all", collected)
    LOG.write_parquet(tmp_path / "log.parquet")
    metrics = [*ODDS, mlm.log_loss(), mlm.f1() - mlm.recall(), mlm.calibration_error()]
    mlm.gap(pl.scan_parquet(tmp_path / "log.parquet"), metrics, over="country", by="model").collect()
    assert [plan.count("Parquet SCAN") for plan in plans] == [1]
    mlm.gap(register_io_source(rows, schema=LOG.schema), metrics, over="country", by="model").collect()
    assert len(reads) == 1


ANY: Any = mlm
CALLS_THAT_ARE_REFUSED: dict[str, Callable[[], object]] = {
    "of several metrics gap has a row 'largest': use .alias(...)": lambda: mlm.gap(
        LOG, [mlm.f1(), mlm.recall().alias("largest")], over="country"
    ),
    "two columns of the result would have the name 'recall'": lambda: mlm.gap(
        LOG, [mlm.recall(), mlm.recall(threshold=0.7)], over="country"
    ),
    "no metric is given": lambda: mlm.gap(LOG, [], over="country"),
    "gap takes a metric, but": lambda: ANY.gap(LOG, [mlm.f1(), pl.len()], over="country"),
    "'f1' is a str, not a metric. Did you mean f1()?": lambda: ANY.gap(LOG, [mlm.recall(), "f1"], over="country"),
    "Pass several metrics as a list": lambda: ANY.gap(LOG, mlm.recall(), mlm.f1(), "country", "model"),
}


@pytest.mark.parametrize("message", CALLS_THAT_ARE_REFUSED)
def test_what_is_wrong_is_said(message: str) -> None:
    with pytest.raises(mlm.MetricError, match=re.escape(message)):
        CALLS_THAT_ARE_REFUSED[message]()


def test_a_metric_alone_may_be_called_largest() -> None:
    assert mlm.gap(LOG, [mlm.f1().alias("largest")], over="country")["metric"].to_list() == ["largest"]
