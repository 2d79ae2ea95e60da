"""`find_slices` finds a bad slice, and what it says of a slice is what the rows of that slice give."""

import random
import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from itertools import combinations, product
from math import log as ln
from math import sqrt
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import stats

import polars_mlmetrics as mlm
from polars_mlmetrics.engine.buckets import bucket_of
from polars_mlmetrics.slice_search.features import Feature, counts_of, features_in, roundest
from tests.slice_search.bad_slice import log
from tests.support.degrees import degrees_of_freedom

FEATURES = ["country", "device", "age"]


@pytest.mark.parametrize("metric", [mlm.f1(), mlm.brier_score()], ids=str)
def test_a_bad_slice_stands_first(metric: mlm.Metric) -> None:
    first = [mlm.find_slices(log(seed), metric, FEATURES[:2], k=1).row(0, named=True) for seed in range(2)]
    assert [row["slice"] for row in first] == ["country=DE, device=phone"] * 2
    assert max(row["p_adjusted"] for row in first) < 0.01


@pytest.mark.filterwarnings("ignore:no slice is surely worse")
def test_where_nothing_is_bad_little_is_reported() -> None:
    found = [mlm.find_slices(log(seed, is_bad=False), mlm.brier_score(), FEATURES[:2]) for seed in range(3)]
    assert sum((table["p_adjusted"] <= 0.05).any() for table in found) <= 1


def error_of_end(n_buckets: int) -> float:
    """The error of a share of 0 or 1 that no bucket moves: by Wilson's end for the units of so many of 32 buckets."""
    units = ln(1 - min(n_buckets, 31.5) / 32) / ln(1 - 1 / 32)
    return float(1.96**2 / (units + 1.96**2) / 1.96)


def expected(rows: pl.DataFrame, metric: mlm.Metric, is_in: pl.Expr, sign: int, best: float | None) -> dict[str, float]:
    """What the confirm half says of a slice, by its definition."""
    rows = rows.with_columns(bucket_of(["sample"], rows.schema, 64)[0].alias("bucket"))
    half = rows.filter(pl.col("bucket") % 2 == 1).with_columns(is_in.alias("is_in"))
    rest, value = mlm.evaluate(half, metric, by="is_in")[metric.output_name]
    gap = sign * (rest - value)
    buckets = half["bucket"].unique()
    left = half.join(pl.DataFrame({"left_out": buckets}), how="cross").filter(pl.col("bucket") != pl.col("left_out"))
    values = mlm.evaluate(left, metric, by=["left_out", "is_in"])[metric.output_name].to_list()
    without = list(zip(values[1::2], values[::2], strict=True))
    moved = [sign * (other - own) - gap for own, other in without]
    se = sqrt((len(buckets) - 1) / len(buckets) * sum(move**2 for move in moved))
    for side, of_all, each in zip((True, False), (value, rest), zip(*without, strict=True), strict=True):
        if all(abs(one - of_all) < 1e-12 for one in each) and best == 1:
            n_buckets = half.filter(is_in=side)["bucket"].n_unique()
            se = sqrt(se**2 + error_of_end(n_buckets) ** 2)
    df = degrees_of_freedom(half.filter("is_in")["bucket"].n_unique(), moved)
    away = stats.t.ppf(0.975, df) * se
    p = stats.t.sf(gap / se, df)
    whole, ends = mlm.evaluate(half, metric).item(), {"low": gap - away, "high": gap + away}
    harm = {} if best is None else {"share_of_harm": min(max((rest - whole) / (best - whole), 0), 1)}
    return {"value": value, "rest": rest, "gap": gap, **ends, "p": p, **harm}


def with_labels(rows: pl.DataFrame) -> pl.DataFrame:
    """Three labels a sample, in each of which the score is another."""
    labels = pl.DataFrame({"label": ["a", "b", "c"], "shift": [0.0, 0.1, 0.2]})
    truth = (pl.col("truth") == 1) ^ (pl.col("label") == "b")
    rows = rows.join(labels, how="cross").with_columns(truth=truth.cast(pl.Int8))
    score = (pl.col("score") * 7.3 + pl.col("shift") * 5) % 1
    return rows.with_columns(score=score * 0.6 + pl.col("truth") * (pl.col("device") != "desk") * 0.4)


METRICS: dict[str, tuple[mlm.Metric, int, float | None]] = {
    "f1": (mlm.f1(), 1, 1),
    "macro": (mlm.f1(average="macro"), 1, 1),
    "ranking": (mlm.label_ranking_average_precision(), 1, 1),
    "deviations": (mlm.pearson(), 1, 1),
    "two": (mlm.mae() + mlm.brier_score(), -1, None),
}
"""Each with which end is bad, and the best value, where there is one."""


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", METRICS)
def test_what_is_said_is_what_the_rows_give(name: str) -> None:
    metric, sign, best = METRICS[name]
    rows = with_labels(log(3, 1500)) if name in ("macro", "ranking") else log(3, 1500)
    features = {"f1": FEATURES, "deviations": ["device"]}.get(name, FEATURES[:2])
    table = mlm.find_slices(rows, metric, features, depth=2, k=3)
    assert table.height
    for row in table.iter_rows(named=True):
        is_in = mlm.slice_filter(row)
        right = expected(rows, metric, is_in, sign, best)
        assert {key: row[key] for key in right} == pytest.approx(right, rel=1e-7, abs=1e-12)
        inside = rows.filter(is_in)
        assert row["n_samples"] == inside["sample"].n_unique()
        assert (row["n_rows"], row["depth"]) == (inside.height, len(row["conditions"]))
        assert row["share"] == pytest.approx(row["n_samples"] / 1500)


@pytest.mark.filterwarnings("ignore:no slice is surely worse")
def test_a_group_is_searched_by_itself() -> None:
    rows = pl.concat([log(5).with_columns(model=pl.lit("new")), log(6, is_bad=False).with_columns(model=None)])
    table = mlm.find_slices(rows.lazy(), mlm.f1(), ["country", "device"], by="model", depth=1)
    assert isinstance(table, pl.DataFrame)
    for model in (None, "new"):
        is_own = pl.col("model").eq_missing(pl.lit(model))
        alone = mlm.find_slices(rows.filter(is_own), mlm.f1(), ["country", "device"], depth=1)
        assert_frame_equal(table.filter(is_own).drop("model"), alone, rel_tol=1e-9)


def test_what_repeats_a_slice_is_hidden() -> None:
    rows = log(1).with_columns(language=pl.col("country").replace({"DE": "de", "FR": "fr", "US": "en"}))
    table = rows.mlm.find_slices(mlm.brier_score(), ["country", "language", "device"], depth=2)
    assert table["rank"].to_list() == list(range(1, table.height + 1))
    first = table.row(0, named=True)
    assert (first["hidden_by"], first["parent"]) == (None, "country=DE")
    again = table.filter(slice="language=de, device=phone") if first["slice"].startswith("country") else table.clear()
    assert again["hidden_by"].to_list() in ([], [first["slice"]])
    assert table.filter(slice="country=DE")["hidden_by"].to_list() == [first["slice"]]
    assert table["hidden_by"].null_count() <= 10


def test_of_two_equal_features_the_first_is_the_parent_in_whichever_order_rows_are_added() -> None:
    rows = log(1).with_columns(language=pl.col("country").str.to_lowercase())
    for seed in range(6):
        shuffled = rows.sample(fraction=1, shuffle=True, seed=seed)
        table = mlm.find_slices(shuffled, mlm.brier_score(), ["country", "language"], depth=2)
        assert table.filter(slice="country=DE, language=de")["parent"].to_list() == ["country=DE"]


def test_a_value_that_no_bucket_moves_is_as_uncertain_as_its_few_units() -> None:
    """All of a slice is wrong, and all of the rest right: the interval is that of two shares of some 130 units each."""
    rows = log(1).with_columns(score=pl.when(pl.col("device") == "desk").then(1 - pl.col("truth")).otherwise("truth"))
    row = mlm.find_slices(rows, mlm.accuracy(), ["device"], k=1).row(0, named=True)
    assert (row["slice"], row["gap"], row["high"], row["ci_flag"]) == ("device=desk", 1.0, 1.0, "leak?")
    assert row["low"] == pytest.approx(1 - stats.t.ppf(0.975, 31) * sqrt(2) * error_of_end(32), rel=1e-9)


def test_what_never_varies_and_has_no_bounds_has_no_interval() -> None:
    rows = log(1).with_columns(truth=0.0, score=0.25 + (pl.col("device") == "desk") * 0.25)
    row = mlm.find_slices(rows, mlm.mae(), ["device"], k=1).row(0, named=True)
    assert (row["value"], row["rest"], row["low"], row["p"], row["ci_flag"]) == (0.5, 0.25, None, None, "degenerate")


@pytest.mark.filterwarnings("ignore:no slice is surely worse")
@pytest.mark.one_in(3)
@pytest.mark.parametrize("metric", [mlm.recall(), mlm.f1(), mlm.precision(), mlm.f1(average="macro")], ids=str)
def test_a_slice_of_a_few_positives_that_were_missed_is_no_finding(metric: mlm.Metric) -> None:
    """One row in twenty is true, and no column has to do with it: each slice without a hit is as bad as can be."""
    random = np.random.default_rng(0)
    rows = pl.DataFrame({"truth": random.random(8000) < 0.05, "score": random.random(8000) * 0.52})
    of_chance = [pl.Series(name, random.integers(0, 6, 8000).astype(str)) for name in "ab"]
    rows = rows.with_row_index("sample").with_columns(*of_chance, label=pl.lit("x"))
    table = mlm.find_slices(rows, metric, ["a", "b"], depth=2)
    assert table.filter(pl.col("p_adjusted") <= 0.05).is_empty()


@pytest.mark.filterwarnings("ignore:no slice is surely worse")
def test_a_slice_has_as_many_samples_as_are_asked_for() -> None:
    """Half of them in the half that is searched is not enough: slices of 18 samples have 10 there."""
    for seed in (7, 11):
        rows = log(seed, 200).with_columns(day=pl.col("sample").hash(seed) % 4)
        table = mlm.find_slices(rows, mlm.accuracy(), ["country", "device", "day"], depth=2, min_samples=20)
        assert table.filter(pl.col("n_samples") < 20).is_empty()


def test_rows_of_several_models_and_coarse_bins_are_flagged() -> None:
    rows = log(1)
    both = pl.concat([rows.with_columns(model=pl.lit(model)) for model in ("new", "old")])
    asked: dict[str, Any] = {"features": ["device"], "k": 1}
    assert set(mlm.find_slices(both, mlm.f1(), **asked)["ci_flag"]) == {"pooled"}
    assert "pooled" not in mlm.find_slices(both, mlm.f1(), by="model", **asked)["ci_flag"]
    assert "pooled" not in mlm.find_slices(both, mlm.f1(), ["model", "device"], k=1)["ci_flag"]
    assert set(mlm.find_slices(rows, mlm.roc_auc(bins=4), **asked)["ci_flag"]) == {"coarse_bins"}
    assert "coarse_bins" not in mlm.find_slices(rows, mlm.roc_auc(bins=1024), **asked)["ci_flag"]


def test_worse_says_which_end_is_bad() -> None:
    rows = log(2).with_columns(score=pl.when(pl.col("device") == "desk").then(pl.col("score") + 1).otherwise("score"))
    high = mlm.find_slices(rows, mlm.bias(), ["device"], worse="high").row(0, named=True)
    assert (high["slice"], high["gap"]) == ("device=desk", pytest.approx(high["value"] - high["rest"]))
    low = mlm.find_slices(rows, mlm.bias(), ["device"], worse="low")
    assert "device=desk" not in low["slice"].to_list()


def test_of_metrics_of_groups_a_label_is_a_feature() -> None:
    rows = with_labels(log(4, 600, is_bad=False))
    rows = rows.with_columns(score=pl.when(pl.col("label") == "b").then(0.9).otherwise("truth"))
    first = mlm.find_slices(rows, mlm.mae(), ["label", "device"]).row(0, named=True)
    assert (first["slice"], first["n_samples"]) == ("label=b", 600)


def values() -> pl.DataFrame:
    """A column of each type that can be a feature."""
    draw, n = random.Random(0), 2000
    day, nan = date(2024, 1, 1), float("nan")
    rows = pl.DataFrame(
        {
            "text": draw.choices(["a", "it's", 'say "x"', "null", None], k=n),
            "many": [str(int(draw.paretovariate(1))) for _ in range(n)],
            "boolean": draw.choices([True, False, None], k=n),
            "zero": [0.0 if draw.random() < 0.7 else draw.uniform(0, 10) for _ in range(n)],
            "nan": draw.choices([nan, -0.0, 0.0, 1.5, None, float("inf")], k=n),
            "float": [nan if draw.random() < 0.1 else draw.gauss(0, 1e-3) for _ in range(n)],
            "integer": [draw.randrange(-500, 500) for _ in range(n)],
            "small": draw.choices([1, 2, None], k=n),
            "date": [day + timedelta(days=draw.randrange(900)) for _ in range(n)],
            "time": [datetime(2024, 1, 1) + timedelta(seconds=draw.randrange(10**7)) for _ in range(n)],
        }
    )
    return rows.with_columns(
        pl.col("text").cast(pl.Categorical).alias("category"),
        pl.col("float").cast(pl.Float32).alias("short"),
        pl.col("integer").cast(pl.Decimal(10, 2)).alias("decimal"),
        pl.col("time").cast(pl.Datetime("ns")).alias("nanoseconds"),
        pl.col("time").dt.replace_time_zone("Europe/Berlin", ambiguous="earliest", non_existent="null").alias("zone"),
    )


def features_of(rows: pl.DataFrame, name: str) -> list[Feature]:
    return features_in(name, rows.schema[name], counts_of(rows.lazy(), name).collect(), 10, 5)


@pytest.mark.parametrize("name", values().columns)
def test_the_conditions_of_a_feature_are_rows(name: str) -> None:
    rows = values()
    [feature] = features_of(rows, name)
    assert len(feature.conditions) >= 2
    asked = [{"conditions": [condition._asdict()]} for condition in feature.conditions]
    parts = [rows.filter(mlm.slice_filter(row)).height for row in asked]
    assert sum(parts) == rows.height
    counts = rows.select(feature.code().alias("code"))["code"].value_counts().sort("code")
    assert dict(counts.rows()) == {code: count for code, count in enumerate(parts) if count}


def test_the_way_back_to_rows() -> None:
    rows = values().with_columns(pl.col("text").is_null().alias("is_bad")).with_row_index("sample")
    rows = rows.with_columns(truth=1.0, score=pl.col("is_bad") * 3.0 + pl.col("sample") % 5)
    table = mlm.find_slices(rows, mlm.mae(), ["text", "boolean"], k=1)
    assert table["slice"].to_list()[0] == "text=null"
    for row in (table[:1], table.row(0, named=True)):
        assert rows.filter(mlm.slice_filter(row))["text"].to_list() == [None] * int(rows["is_bad"].sum())


def test_edges_are_round() -> None:
    asked = {(18.2, 21.3): 20, (26.9, 28.1): 27.5, (27.4, 27.6): 27.5, (-3.0, 2.0): 0}
    assert {(low, high): roundest(low, high) for low, high in asked} == asked
    assert roundest(0.1234567, 0.1234567) == 0.1234567
    assert roundest(date(2023, 11, 5), date(2024, 2, 3)) == date(2024, 1, 1)
    texts = [condition.text() for condition in features_of(values(), "zero")[0].conditions]
    assert texts[0] == "zero < 2 but not 0"
    assert texts[-1] == "zero=0"


def test_a_feature_of_one_value_is_left_out() -> None:
    rows = log(1).with_columns(same=1)
    with pytest.warns(UserWarning, match="have one value only, and are left out: same"):
        table = mlm.find_slices(rows, mlm.brier_score(), ["device", "same"])
    assert_frame_equal(table, mlm.find_slices(rows, mlm.brier_score(), ["device"]), rel_tol=1e-9)


def test_a_log_too_small_to_search_has_no_slices() -> None:
    with (
        pytest.warns(UserWarning, match="have no value with enough samples, and are left out: device"),
        pytest.warns(UserWarning, match="3 slices tried, 0 of them large enough"),
    ):
        table = mlm.find_slices(log(1, 50), mlm.f1(), ["device"])
    assert table.height == 0
    assert table.schema == mlm.find_slices(log(1), mlm.f1(), ["device"]).schema


def test_of_few_clusters_no_slice_is_large_enough() -> None:
    rows = log(1, 1200).with_columns(family=pl.col("sample") % 12)
    words = "0 of them large enough (60 samples of about 20 clusters or more, and so many in the rest)"
    with pytest.warns(UserWarning, match=re.escape(words)):
        assert mlm.find_slices(rows, mlm.brier_score(), ["device"], cluster="family").is_empty()


@pytest.mark.parametrize("road", ["DataFrame", "LazyFrame", "passes", "groups", "state"])
def test_an_empty_table_says_how_many_slices_were_tried_and_how_many_were_large_enough(road: str) -> None:
    """Counted by hand in the buckets of the search: half of `min_samples` there, in the rest too, in ten buckets."""
    rows = log(1, 1200, is_bad=False).with_columns(
        score=0.5, truth=1, rare=pl.when(pl.col("sample") < 30).then(pl.lit("yes"))
    )
    features = ["country", "device", "rare"]
    asked: dict[str, Any] = {"passes": {"passes": 2, "progress": False}, "groups": {"by": "half"}}.get(road, {})
    rows = rows.with_columns(half=pl.col("sample") // 2 % 2)
    frames = {"LazyFrame": rows.lazy(), "state": mlm.state(rows, mlm.accuracy(), mlm.n_samples(), by=features)}
    values = {name: rows[name].unique().to_list() for name in features}
    several = [some for size in (1, 2) for some in combinations(features, size)]
    slices = [each for some in several for each in product(*([(name, v) for v in values[name]] for name in some))]
    n_groups = rows["half"].n_unique() if road == "groups" else 1
    large = 0
    for part in rows.partition_by("half") if road == "groups" else [rows]:
        buckets = bucket_of(["sample"], part.schema, 64)[0].alias("bucket")
        searched = part.with_columns(buckets).filter(pl.col("bucket") % 2 == 0)
        for each in slices:
            own = searched.filter(pl.col(name).eq_missing(pl.lit(value)) for name, value in each)
            is_large = min(own.height, searched.height - own.height) >= 15 and own["bucket"].n_unique() >= 10
            large += is_large
    assert 0 < large < len(slices) * n_groups
    said = f"{len(slices) * n_groups:,} slices tried, {large:,} of them large enough (30 samples,"
    with pytest.warns(UserWarning, match=re.escape(said)):
        table = mlm.find_slices(frames.get(road, rows), mlm.accuracy(), features, depth=2, min_samples=30, **asked)
    assert table.is_empty()


FEW, LABELED = log(1, 200), with_labels(log(1, 200))
MACRO, RANKING = METRICS["macro"][0], METRICS["ranking"][0]


def find(metric: Any = METRICS["f1"][0], features: Any = "device", rows: Any = FEW, **asked: Any) -> object:
    return mlm.find_slices(rows, metric, features, **asked)


CALLS: dict[str, Callable[[], object]] = {
    "'device' is not a by column of the state": lambda: find(rows=mlm.state(FEW, mlm.f1())),
    "find_slices takes a metric, but": lambda: find(pl.len()),
    "not a dict": lambda: find(rows={}),
    "has no direction: pass worse='low' or worse='high'": lambda: find(mlm.bias()),
    "worse must be 'low' or 'high' or None, not 'max'": lambda: find(worse="max"),
    "n_rows has no intervals": lambda: find(mlm.n_rows(), worse="low"),
    "of calibration brier_reliability(debiased=True)": lambda: find(mlm.calibration_error()),
    "k must be": lambda: find(k=0),
    "feature 'devic' is not in the table": lambda: find(features="devic"),
    "Did you mean 'device'?": lambda: find(features=["devic"]),
    "pass a column or a list of columns": lambda: find(features=[]),
    "features are names of columns": lambda: find(features=[pl.col("device")]),
    "names the column 'device' twice": lambda: find(features=["device", "device"]),
    "'score' cannot be a feature: it is the score": lambda: find(features="score"),
    "'truth' cannot be a feature: it is the truth": lambda: find(features="truth"),
    "'sample' cannot be a feature: it is the sample": lambda: find(features="sample"),
    "'device' cannot be a feature: it is in by=": lambda: find(by="device"),
    "it is the label, of which f1_macro needs all": lambda: find(MACRO, "label", LABELED),
    "feature 'l' is Struct": lambda: find(features="l", rows=FEW.with_columns(l=pl.struct("device"))),
    "no feature has two values to compare: same": lambda: find(features="same", rows=FEW.with_columns(same=None)),
    "has several values in one sample, and": lambda: find(RANKING, "shift", LABELED),
    "there is no sample column 'id'": lambda: find(sample="id"),
    "no slice can be compared with the rest": lambda: find(mlm.mae(), rows=FEW.with_columns(score=float("nan"))),
    "the frame has 2": lambda: mlm.slice_filter(log(1, 2)),
    "takes a row of find_slices": lambda: mlm.slice_filter({"slice": "a=b"}),
}


@pytest.mark.parametrize("message", CALLS)
def test_what_is_wrong_is_said(message: str) -> None:
    with pytest.raises(mlm.MetricError, match=re.escape(message)):
        CALLS[message]()
