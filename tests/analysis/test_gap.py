"""`gap` looks at every pair of slices, `flips` at every sample."""

import re
from collections import Counter
from collections.abc import Callable
from itertools import combinations
from math import inf, sqrt
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import stats

import polars_mlmetrics as mlm
from polars_mlmetrics.analysis.gap import COLUMNS
from polars_mlmetrics.engine.buckets import bucket_of
from tests.analysis.pairs_log import log, rows_of
from tests.support.degrees import degrees_of_freedom, welch

LEVEL = 0.9


def expected(rows: pl.DataFrame, metric: mlm.Metric) -> tuple[float, float, float]:
    """The largest difference and its interval, by their definition."""
    rows = rows.with_columns(bucket_of(["sample"], rows.schema, 64)[0].alias("bucket"))
    there = pl.DataFrame({"left_out": rows["bucket"].unique()})
    without = rows.join(there, how="cross").filter(pl.col("bucket") != pl.col("left_out"))
    replicates = mlm.evaluate(without, metric, by=["part", "left_out"]).rows()
    alone = {row[:2] for row in mlm.evaluate(rows, metric, by=["part", "bucket"]).rows() if row[2] is not None}
    values = dict(mlm.evaluate(rows, metric, by="part").rows())
    ends = []
    pairs = list(combinations(values, 2))
    for one, other in pairs:
        difference = values[one] - values[other]
        left = {(part, bucket): value for part, bucket, value in replicates}
        moved = {bucket: left[one, bucket] - left[other, bucket] - difference for bucket in there["left_out"]}
        moved = {bucket: move if abs(move) > 1e-12 else 0.0 for bucket, move in moved.items()}
        buckets = [b for b, move in moved.items() if move != 0 or (one, b) in alone or (other, b) in alone]
        n = len(buckets)
        se = sqrt((n - 1) / n * sum(move**2 for move in moved.values()))
        df = welch(of_slice(part, values[part], left, alone, list(there["left_out"])) for part in (one, other))
        half = stats.t.ppf(1 - (1 - LEVEL) / 2 / len(pairs), df) * se
        ends.append((abs(difference) - half, abs(difference) + half))
    gap = max(values.values()) - min(values.values())
    lowest, highest = metric.tree.measures()[0].range if len(metric.tree.measures()) == 1 else (-inf, inf)
    return gap, max(0.0, *(low for low, _ in ends)), min(max(high for _, high in ends), highest - lowest)


def of_slice(
    part: str, value: float, left: dict[tuple[str, int], float], alone: set[tuple[str, int]], buckets: list[int]
) -> tuple[float, float]:
    """The standard error of a slice, and its degrees of freedom."""
    moved = {bucket: left[part, bucket] - value for bucket in buckets}
    moved = {bucket: move if abs(move) > 1e-12 else 0.0 for bucket, move in moved.items()}
    n = sum(move != 0 or (part, bucket) in alone for bucket, move in moved.items())
    return sqrt((n - 1) / n * sum(move**2 for move in moved.values())), degrees_of_freedom(n, moved.values())


@pytest.mark.parametrize("metric", [mlm.recall(), mlm.log_loss(), mlm.f1() - mlm.recall()], ids=str)
@pytest.mark.parametrize("carrier", ["log", "state"])
def test_the_interval_is_of_all_pairs(metric: mlm.Metric, carrier: str) -> None:
    rows = log().with_columns(part="label")
    frame = rows if carrier == "log" else mlm.state(rows, metric, by=["model", "part"])
    table = mlm.gap(frame, metric, over="part", by="model", ci=LEVEL)
    assert table.columns == ["model", *COLUMNS]
    for row in table.iter_rows(named=True):
        right = expected(rows.filter(model=row["model"]), metric)
        assert (row["gap"], row["low"], row["high"]) == pytest.approx(right, rel=1e-7)


def test_it_names_the_worst_and_the_best_slice() -> None:
    rows = pl.DataFrame({"sample": range(40), "truth": 1, "country": ["DE", "FR", "US", None] * 10})
    rows = rows.with_columns(score=pl.col("country").replace_strict({"DE": 0.6, "FR": 0.9, "US": 0.7, None: 0.8}))
    told = ["worst", "worst_value", "best", "best_value", "n_slices"]
    as_loss = mlm.gap(rows, mlm.mae(), over="country").select(told).row(0)
    assert as_loss == pytest.approx(("country=DE", 0.4, "country=FR", 0.1, 4))
    assert mlm.gap(rows, mlm.bias(), over="country").select("worst", "best").row(0) == ("country=DE", "country=FR")
    row = mlm.gap(rows, mlm.mae(), over="country").row(0, named=True)
    assert (row["gap"], row["ratio"], row["ci_flag"]) == (pytest.approx(0.3), pytest.approx(0.25), "degenerate")


NAN = float("nan")


@pytest.mark.parametrize("carrier", ["log", "state", "lazy"])
def test_a_slice_that_is_nan_is_the_gap(carrier: str) -> None:
    """Of three countries one is broken, of two, or of one; a fourth is undefined, which hides nothing."""
    rows = pl.DataFrame({"sample": range(240), "country": ["DE", "FR", "IT", "XX"] * 60}).with_columns(
        truth=pl.when(pl.col("country") == "XX").then(0).otherwise(1),
        score=pl.when(pl.col("sample") % 5 == 0).then(0.2).otherwise(0.8),
        group=pl.col("sample") // 80,
    )
    nan = {0: ["IT"], 1: ["FR", "IT"], 2: ["DE", "FR", "IT"]}
    is_broken = pl.any_horizontal((pl.col("group") == g) & pl.col("country").is_in(names) for g, names in nan.items())
    rows = rows.with_columns(score=pl.when(is_broken & (pl.col("sample") % 80 < 20)).then(NAN).otherwise("score"))
    frames = {"log": rows, "state": mlm.state(rows, mlm.recall(), by=["group", "country"]), "lazy": rows.lazy()}
    table = mlm.gap(frames[carrier], mlm.recall(), over="country", by="group").lazy().collect()
    assert table["worst"].to_list() == ["country=IT", "country=FR", "country=DE"]
    assert table["best"].to_list() == ["country=DE", "country=DE", None]
    assert table["n_slices"].to_list() == [3, 3, 3]
    assert table.select(pl.col("gap", "ratio", "worst_value").is_nan().all()).row(0) == (True, True, True)
    assert table.select("low", "high", "ci_flag").null_count().row(0) == (3, 3, 3)
    assert table["best_value"].to_list() == [0.8, 0.8, None]
    alone = mlm.gap(rows.filter(pl.col("country").is_in(["IT", "XX"])), mlm.recall(), over="country", by="group")
    assert alone["gap"].is_nan().all()
    assert alone["n_slices"].to_list() == [1, 1, 1]


def test_a_text_that_reads_like_a_null_is_another_slice() -> None:
    """Nothing but its text says which slice is the worst."""
    log = pl.DataFrame({"sample": range(4), "score": [0.9, 0.9, 0.9, 0.1], "truth": [1, 0, 1, 1]})
    for names, expected in [
        ([None] * 2 + ["null"] * 2, ["g=null", 'g="null"']),
        (['"null"', '"null"', "null", "null"], ['g=""null""', 'g="null"']),
    ]:
        table = mlm.gap(log.with_columns(g=pl.Series(names)), mlm.precision(), over="g")
        assert table.select("worst", "best").row(0) == tuple(expected)


def test_a_lone_slice_has_no_gap() -> None:
    row = mlm.gap(log().filter(model="old", label="a"), mlm.recall(), over="label").row(0, named=True)
    assert (row["gap"], row["low"], row["worst"], row["n_slices"]) == (None, None, None, 1)


@pytest.mark.parametrize(("n", "flag", "raises"), [(6, "few_buckets", False), (18, "ok", False), (200, "ok", True)])
@pytest.mark.parametrize("hit", [0, 1])
def test_a_slice_of_few_samples_with_one_value_does_not_raise_low(n: int, flag: str, raises: bool, hit: int) -> None:
    """Of a slice that is hit always, or never, no bucket says how far its recall is off."""
    hits, part = [1, 1, 0, 1, 0] * 200 + [hit] * n, ["large"] * 1000 + ["small"] * n
    rows = pl.DataFrame({"sample": range(1000 + n), "truth": 1, "score": hits, "part": part})
    row = mlm.gap(rows, mlm.recall(), over="part").row(0, named=True)
    assert row["gap"] == pytest.approx(abs(hit - 0.6))
    assert (row["ci_flag"], row["low"] > 0) == (flag, raises)
    assert row["high"] > row["gap"]


def test_what_has_no_interval_has_a_gap() -> None:
    table = mlm.gap(log(), mlm.ks(), over="label")
    assert table.select("ci_flag", "low").row(0) == ("no_state", None)
    assert table["gap"].item() > 0
    assert mlm.gap(log(), mlm.support(), over="label")["ci_flag"].item() == "totals"


def test_a_lazy_gap_has_the_same_columns() -> None:
    lazy = mlm.gap(log().lazy(), mlm.recall(), over=["label", "country"], by="model")
    assert lazy.collect_schema() == lazy.collect().schema
    assert_frame_equal(lazy.collect(), log().mlm.gap(mlm.recall(), over=["label", "country"], by="model"), rel_tol=1e-9)


def changed(rows: pl.DataFrame, **asked: Any) -> pl.DataFrame:
    return mlm.flips(rows, mlm.accuracy(), baseline="old", **asked)


def test_a_flip_is_a_sample_whose_value_changed() -> None:
    rows = pl.concat([rows_of("old", 7919, range(60)), rows_of("new", 6151, range(10, 80))])
    values = mlm.evaluate(rows, mlm.accuracy(), by=["model", "sample"]).pivot("model", index="sample")
    of_both = {sample: (new, old) for sample, new, old in values.drop_nulls().select("sample", "new", "old").rows()}
    changes = {s: "better" if new > old else "worse" for s, (new, old) in of_both.items() if new != old}
    table = changed(rows, k=1000)
    right = [(sample, *of_both[sample], change) for sample, change in changes.items()]
    assert sorted(table.select("sample", "value", "baseline_value", "change").rows()) == sorted(right)
    counts = Counter(changes.values())
    assert table.select("n_better", "n_worse").unique().rows() == [(counts["better"], counts["worse"])]
    sizes = (table["value"] - table["baseline_value"]).abs().to_list()
    assert sizes == sorted(sizes, reverse=True)


def test_the_k_most_changed_of_each_slice_and_model() -> None:
    table = changed(log(), k=3, slices=["country"])
    assert table.group_by("slice", "model").len()["len"].unique().to_list() == [3]
    lazy = mlm.flips(log().lazy(), mlm.accuracy(), baseline="old", k=3, slices=["country"])
    assert_frame_equal(lazy.collect(), table)
    losses = mlm.flips(log(), mlm.log_loss(), baseline="old", k=5)
    is_better = losses["value"] < losses["baseline_value"]
    assert losses["change"].to_list() == ["better" if better else "worse" for better in is_better]


def test_samples_that_are_broken_are_counted() -> None:
    """Five samples are broken for one of the two, one for both, and one that the new model does not have."""
    rows = pl.concat([rows_of("old", 7919, range(60)), rows_of("new", 6151, range(50))])
    lacks = {"new": [0, 1, 2, 3, 20], "old": [4, 20, 55]}
    broken = pl.any_horizontal((pl.col("model") == m) & pl.col("sample").is_in(each) for m, each in lacks.items())
    table = changed(rows.with_columns(score=pl.when(broken & (pl.col("label") == "a")).then(NAN).otherwise("score")))
    assert table["n_broken"].unique().to_list() == [6]
    assert set(table["sample"]).isdisjoint([0, 1, 2, 3, 4, 20])
    assert changed(rows)["n_broken"].unique().to_list() == [0]


def test_a_baseline_that_is_not_there_is_an_error_of_a_lazy_frame_too() -> None:
    lazy = mlm.flips(log().lazy(), mlm.accuracy(), baseline="older")
    with pytest.raises(mlm.ParameterError, match="baseline='older' is no value of 'model', which has 'new', 'old'"):
        lazy.collect()


CALLS: dict[str, Callable[[], object]] = {
    "gap takes a metric, but": lambda: mlm.gap(log(), pl.len(), over="label"),  # type: ignore[arg-type]
    "pass over=, a column or a list of columns": lambda: mlm.gap(log(), mlm.f1(), over=[]),
    "as ci, such as 0.95, not None": lambda: mlm.gap(log(), mlm.f1(), over="label", ci=None),  # type: ignore[arg-type]
    "'labl' is not in the table": lambda: mlm.gap(log(), mlm.f1(), over="labl"),
    "baseline='older' is no value of 'model'": lambda: mlm.flips(log(), mlm.f1(), baseline="older"),
    "bias has no worst values": lambda: mlm.flips(log(), mlm.bias(), baseline="old"),
    "flips takes a metric, but": lambda: mlm.flips(log(), pl.len(), baseline="old"),  # type: ignore[arg-type]
    "no value per sample: labelwise_precision": lambda: mlm.flips(log(), mlm.labelwise_precision(), baseline="old"),
}


@pytest.mark.parametrize("message", CALLS)
def test_what_is_wrong_is_said(message: str) -> None:
    with pytest.raises(mlm.MetricError, match=re.escape(message)):
        CALLS[message]()


def test_a_group_without_a_value_is_there() -> None:
    """The truth of day 3 is never true: no slice has a recall, and the day is a row all the same."""
    rows = {"sample": range(4), "day": [3, 3, 4, 4], "country": ["DE", "FR"] * 2, "truth": [0, 0, 1, 1]}
    table = mlm.gap(pl.DataFrame(rows).with_columns(score=0.7), mlm.recall(), over="country", by="day")
    assert table.select("day", "gap", "n_slices", "worst", "ci_flag").row(0) == (3, None, 0, None, None)
    assert table["day"].to_list() == [3, 4]


@pytest.mark.parametrize("day", ["buckets", "squares", "is_known"])
def test_a_group_may_be_called_like_what_an_interval_is_made_of(day: str) -> None:
    table = mlm.gap(log().with_columns(pl.lit(1).alias(day)), mlm.accuracy(), over="country", by=day)
    expected = mlm.gap(log(), mlm.accuracy(), over="country")
    assert_frame_equal(table.drop(day), expected)
