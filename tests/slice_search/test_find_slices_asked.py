"""What may be asked of `find_slices` beside the search itself: clusters, states, lists."""

import random
import re
from collections.abc import Callable
from datetime import date
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from tests.slice_search.bad_slice import log

FEATURES = ["country", "device"]

COLUMNS = [
    "rank", "slice", "conditions", "depth", "n_samples", "n_rows", "share", "value", "rest", "gap", "low", "high", "p",
    "p_adjusted", "share_of_harm", "t_search", "parent", "parent_value", "hidden_by", "overlap", "n_clusters",
    "ci_flag", "n_tested", "plan",
]  # fmt: skip


def test_the_columns() -> None:
    table = mlm.find_slices(log(), mlm.f1(), FEATURES, by=pl.lit("all").alias("group"))
    assert table.columns == ["group", *COLUMNS]
    said = "3 combinations of features; searched in 32 of 64 buckets, measured in the others"
    assert table["plan"].unique().to_list() == [f"rows as they are; {said}"]


def test_what_is_said_beside_the_gap() -> None:
    rows = log()
    table = mlm.find_slices(rows, mlm.accuracy(), FEATURES)
    first = table.row(0, named=True)
    assert (first["slice"], first["parent"], first["overlap"]) == ("country=DE, device=phone", "country=DE", 0)
    half = rows.filter(pl.col("sample").is_in(confirmed(rows)))
    [parent] = mlm.evaluate(half.filter(country="DE"), mlm.accuracy()).row(0)
    assert first["parent_value"] == pytest.approx(parent)
    whole = (half["truth"] == (half["score"] > 0.5)).mean()
    assert first["share_of_harm"] == pytest.approx((first["rest"] - whole) / (1 - whole), rel=1e-12)
    assert first["n_clusters"] == half.filter(mlm.slice_filter(first)).height
    second = table.filter(slice="device=phone").row(0, named=True)
    assert second["hidden_by"] == first["slice"]
    searched = rows.filter(~pl.col("sample").is_in(confirmed(rows)), device="phone")
    assert second["overlap"] == pytest.approx(searched.filter(mlm.slice_filter(first)).height / searched.height)


def weighted() -> pl.DataFrame:
    """A third of the rows is bad, and has about a hundredth of the weight of the others."""
    draw, n = random.Random(0), 3000
    is_bad = pl.col("sample") % 3 == 0
    rows = pl.DataFrame({"sample": range(n), "truth": [draw.random() for _ in range(n)]}).with_columns(
        device=pl.Series(draw.choices(["phone", "desk"], k=n)),
        error=pl.when(is_bad).then(0.5).otherwise(0.2) + pl.Series([draw.uniform(-0.1, 0.1) for _ in range(n)]),
        sign=pl.Series(draw.choices([-1.0, 1.0], k=n)),
    )
    return rows.with_columns(
        country=pl.when(is_bad).then(pl.lit("FR")).otherwise(pl.lit("DE")),
        score=pl.col("truth") + pl.col("sign") * pl.col("error"),
        w=pl.when(is_bad).then(0.01).otherwise(1.0) * (1 + pl.col("sample") % 4),
    )


def weighted_mean_error(rows: pl.DataFrame) -> float:
    return float(np.average(np.abs(rows["score"].to_numpy() - rows["truth"].to_numpy()), weights=rows["w"].to_numpy()))


def weighted_correlation(rows: pl.DataFrame) -> float:
    together = np.cov(rows["score"].to_numpy(), rows["truth"].to_numpy(), aweights=rows["w"].to_numpy())
    return float(together[0, 1] / np.sqrt(together[0, 0] * together[1, 1]))


OF_MEANS = mlm.mae().on(weight="w"), FEATURES, weighted_mean_error, 0
OF_WEIGHTS: dict[str, tuple[mlm.Metric, list[str], Callable[[pl.DataFrame], float], int, dict[str, Any]]] = {
    "half": (*OF_MEANS, {}),
    "passes": (*OF_MEANS, {"passes": 3}),
    "clusters": (*OF_MEANS, {"cluster": "sample"}),
    "state": (*OF_MEANS, {}),
    "deviations": (mlm.pearson().on(weight="w"), ["country"], weighted_correlation, 1, {}),
}


@pytest.mark.parametrize("road", OF_WEIGHTS)
def test_the_share_of_harm_heeds_weights(road: str) -> None:
    rows, (metric, features, by_hand, best, asked) = weighted(), OF_WEIGHTS[road]
    source = mlm.state(rows, metric, mlm.n_samples(), by=FEATURES) if road == "state" else rows
    found = mlm.find_slices(source, metric, features, **asked)
    [row] = found.filter(slice="country=FR").to_dicts()
    seen = rows.filter(pl.col("sample").is_in(confirmed(rows)))
    whole, rest = by_hand(seen), by_hand(seen.filter(country="DE"))
    assert row["rest"] == pytest.approx(rest, rel=1e-12)
    assert row["share_of_harm"] == pytest.approx((rest - whole) / (best - whole), rel=1e-9)
    assert (row["share"], row["ci_flag"] == "leak?") == (pytest.approx(1 / 3), False)


def test_what_has_the_harm_by_weight_looks_like_a_leak() -> None:
    rows = weighted().with_columns(score=pl.col("truth") + pl.col("error") ** 5)
    small, large = (
        mlm.find_slices(rows.with_columns(w=w), mlm.mae(), FEATURES, weight="w").filter(slice="country=FR")
        for w in ("w", pl.when(country="FR").then(1.0).otherwise(0.1))
    )
    assert (small["ci_flag"].item(), large["ci_flag"].item()) == ("ok", "leak?")


def both_values(rows: pl.DataFrame, row: dict[str, Any]) -> tuple[float, float]:
    """The Brier score of a slice and of the rest."""
    is_in = mlm.slice_filter(row)
    value, rest = (mlm.evaluate(rows.filter(some), mlm.brier_score()).item() for some in (is_in, ~is_in))
    return value, rest


def confirmed(rows: pl.DataFrame, by: str = "sample") -> list[Any]:
    """The samples (or clusters) in odd buckets."""
    state = mlm.state(rows, mlm.n_rows(), by=pl.col(by).alias("id"), sample=by)
    return state.filter(pl.col("bucket") % 2 == 1)["id"].to_list()


def test_a_slice_that_knows_the_truth_is_flagged() -> None:
    rows = log().with_columns(is_wrong=pl.col("noise") < 0.1, truth=pl.col("truth").cast(pl.Float64))
    rows = rows.with_columns(score=pl.when("is_wrong").then(1 - pl.col("truth") * 0.9).otherwise("truth"))
    table = mlm.find_slices(rows, mlm.mae(), ["is_wrong", "device"])
    assert table.filter(slice="is_wrong=true").select("ci_flag", "share_of_harm").rows() == [("leak?", 1.0)]


def test_clusters_are_what_is_parted() -> None:
    rows = log()
    table = mlm.find_slices(rows, mlm.brier_score(), FEATURES, cluster="user")
    first = table.row(0, named=True)
    half = rows.filter(pl.col("user").is_in(confirmed(rows, "user")))
    inside = half.filter(mlm.slice_filter(first))
    assert first["n_clusters"] == inside["user"].n_unique()
    assert first["value"] == pytest.approx(mlm.evaluate(inside, mlm.brier_score()).item())


@pytest.mark.one_in(2)
@pytest.mark.parametrize("metric", [mlm.f1(), mlm.f1(average="macro"), mlm.roc_auc(bins=10)], ids=str)
def test_a_state_gives_what_its_log_gives(metric: mlm.Metric) -> None:
    rows = log().with_columns(model=pl.col("sample") % 2, label=pl.col("user") % 3)
    state = mlm.state(rows, metric, mlm.n_samples(), mlm.n_rows(), by=["model", *FEATURES])
    asked: dict[str, Any] = {"by": "model", "depth": 1}
    right = mlm.find_slices(rows, metric, FEATURES, **asked).drop("plan")
    assert_frame_equal(mlm.find_slices(state, metric, FEATURES, **asked).drop("plan"), right, rel_tol=1e-9)


@pytest.mark.parametrize("metric", [mlm.f1(), mlm.mae()], ids=str)
def test_an_odd_number_of_buckets_is_parted_too(metric: mlm.Metric) -> None:
    """The search sees one bucket more than the confirmation. A value is of the buckets that confirm."""
    state = mlm.state(log(), metric, mlm.n_samples(), by=FEATURES, buckets=33)
    first = mlm.find_slices(state, metric, FEATURES).row(0, named=True)
    assert first["slice"] == "country=DE, device=phone"
    assert first["plan"].endswith("searched in 17 of 33 buckets, measured in the others")


def ranked() -> pl.DataFrame:
    """Samples of two labels each."""
    rows = log().with_columns(sample=pl.col("sample") % 1500, label=pl.col("user"))
    return rows.with_columns(pl.col(FEATURES).first().over("sample"))


RANKING = mlm.label_ranking_average_precision()


def test_a_state_gives_what_its_log_gives_of_metrics_of_samples() -> None:
    state = mlm.state(ranked(), RANKING, mlm.n_samples(), by=FEATURES)
    found, right = (mlm.find_slices(frame, RANKING, ["device"], k=3).drop("plan") for frame in (state, ranked()))
    assert right.height
    assert_frame_equal(found, right, rel_tol=1e-9)


def test_groups_of_metrics_of_samples_are_searched_by_themselves() -> None:
    rows = ranked().with_columns(model=pl.lit("old"))
    newer = rows.with_columns(model=pl.lit("new"), score=pl.col("noise"))
    alone = mlm.find_slices(rows, RANKING, ["device"]).drop("plan")
    both = mlm.find_slices(pl.concat([rows, newer]), RANKING, ["device"], by="model").drop("plan")
    assert alone.height
    assert_frame_equal(both.filter(model="old").drop("model"), alone, rel_tol=1e-9)


def tagged() -> pl.DataFrame:
    tags = {"phone": ["mobile", "small", "mobile"], "tablet": ["mobile"], "desk": []}
    tagged = pl.col("device").replace_strict(tags, return_dtype=pl.List(pl.String))
    return log().with_columns(tags=pl.when(pl.col("sample") % 9 > 0).then(tagged))


def test_of_lists_each_value_is_a_slice() -> None:
    rows = tagged()
    table = mlm.find_slices(rows, mlm.brier_score(), ["tags", "country"])
    first = table.row(0, named=True)
    assert (first["slice"], first["hidden_by"]) == ("tags has small, country=DE", None)
    assert table.filter(slice="tags has mobile, country=DE").height == 1
    half = rows.filter(pl.col("sample").is_in(confirmed(rows)))
    for row in table.iter_rows(named=True):
        assert rows.filter(mlm.slice_filter(row)).height == row["n_rows"]
        assert (row["value"], row["rest"]) == pytest.approx(both_values(half, row))


def test_lists_may_be_empty_or_lacking() -> None:
    rows = tagged().with_columns(score=pl.when(pl.col("tags").list.len() == 0).then("noise").otherwise("good"))
    table = mlm.find_slices(rows, mlm.brier_score(), ["tags"], k=1)
    assert table["slice"][0] == "tags=[]"
    assert rows.filter(mlm.slice_filter(table[:1]))["tags"].list.len().unique().to_list() == [0]
    rows = rows.with_columns(score=pl.when(pl.col("tags").is_null()).then("noise").otherwise("good"))
    table = mlm.find_slices(rows, mlm.brier_score(), ["tags"], k=1)
    assert (table["slice"][0], rows.filter(mlm.slice_filter(table[:1]))["tags"].null_count()) == ("tags=null", 334)


def test_dates_are_ranges() -> None:
    rows = log().with_columns(score=pl.when(pl.col("day") >= date(2025, 9, 1)).then("noise").otherwise("good"))
    row = mlm.find_slices(rows, mlm.brier_score(), ["day"], k=1).row(0, named=True)
    assert row["slice"] == "day >= 2025-09-01"
    assert rows.filter(mlm.slice_filter(row))["day"].min() == date(2025, 9, 1)


def test_where_a_new_model_is_worse_than_an_old_one() -> None:
    older = log().with_columns(model=pl.lit("old"), score=pl.col("good"))
    pairs = pl.concat([log().with_columns(model=pl.lit("new")), older])
    new, old = (mlm.f1().filter(pl.col("model") == name) for name in ("new", "old"))
    first = mlm.find_slices(pairs, (new - old).alias("change"), FEATURES, worse="low").row(0, named=True)
    assert (first["slice"], first["n_samples"], first["n_rows"]) == ("country=DE, device=phone", 247, 494)


def test_a_feature_without_large_values_is_left_out() -> None:
    rows = log().with_columns(pl.col("sample").cast(pl.String).alias("id"))
    with pytest.warns(UserWarning, match="have no value with enough samples, and are left out: id"):
        table = mlm.find_slices(rows, mlm.brier_score(), ["device", "id"], top=100_000)
    assert_frame_equal(table.drop("plan"), mlm.find_slices(rows, mlm.brier_score(), ["device"]).drop("plan"))


FEW = log(1, 300)
COUNTED = [mlm.f1(), mlm.n_samples()]
STATE = mlm.state(FEW, COUNTED, by="device")
SPREAD = mlm.state(FEW.with_columns(pl.col("sample") // 2), COUNTED, by="device")


def find(metric: Any = COUNTED[0], features: Any = "device", rows: Any = FEW, **asked: Any) -> object:
    return mlm.find_slices(rows, metric, features, **asked)


def find_of_state(**made: Any) -> object:
    return find(rows=mlm.state(FEW, COUNTED, **{"by": "device", **made}))


MACRO = mlm.f1(average="macro")
CALLS: dict[str, Callable[[], object]] = {
    "put mlm.n_samples() among its metrics": lambda: find(rows=mlm.state(FEW, mlm.f1(), by="device")),
    "needs 32 buckets, and this state has 16": lambda: find_of_state(buckets=16),
    "this state has no buckets": lambda: find_of_state(buckets=0),
    "'device' is not a by column of the state": lambda: find_of_state(by="country"),
    "samples lie in several values of 'device': a slice of this state": lambda: find(rows=SPREAD),
    "sample= cannot be given for a state": lambda: find(rows=STATE, sample="user"),
    "memory= is for a log": lambda: find(rows=STATE, memory="1 GB"),
    "passes= is for a log": lambda: find(rows=STATE, passes=2),
    "pass worse='low' or worse='high'": lambda: find(mlm.f1() - mlm.accuracy()),
    "memory= works only with passes='auto'": lambda: find(memory="1 GB"),
    "cluster column 'usr' is not in the table": lambda: find(cluster="usr"),
    "feature 'deep' is List(List(Int64))": lambda: find(features="deep", rows=FEW.with_columns(deep=pl.lit([[1]]))),
    "too many: look at fewer features, or pass a smaller depth=": lambda: find(MACRO, ["a", "b"], many_labels()),
}


def many_labels() -> pl.DataFrame:
    ids = pl.int_range(pl.len())
    rows = log(1, 40_000).with_columns(label=ids * 7919 % 5000)
    return rows.with_columns(a=(ids * 31 % 97 % 10).cast(pl.String), b=(ids * 17 % 89 % 10).cast(pl.String))


@pytest.mark.parametrize("message", CALLS)
def test_what_is_wrong_is_said(message: str) -> None:
    with pytest.raises(mlm.MetricError, match=re.escape(message)):
        CALLS[message]()


def test_three_slices_that_are_planted_are_found() -> None:
    """Of texts, of a null with a range, and of a list with a text."""
    draw, n = random.Random(7), 12_000
    names = ["news", "sports", "music", "health", "travel"]
    rows = pl.DataFrame(
        {
            "sample": list(range(n)),
            "country": draw.choices(["DE", "FR", "JP", "US", None], k=n),
            "device": draw.choices(["phone", "tablet", "desk"], k=n),
            "age": [round(draw.triangular(16, 85, 35)) for _ in range(n)],
            "topics": [draw.sample(names, draw.randrange(4)) for _ in range(n)],
            "truth": draw.choices([0, 1], k=n),
            "noise": [draw.random() for _ in range(n)],
        },
        schema_overrides={"topics": pl.List(pl.String)},
    )
    planted = {
        "country=JP, device=phone": (pl.col("country") == "JP") & (pl.col("device") == "phone"),
        "country=null, age >= 60": pl.col("country").is_null() & (pl.col("age") >= 60),
        "device=tablet, topics has health": pl.col("topics").list.contains("health") & (pl.col("device") == "tablet"),
    }
    guessed = pl.any_horizontal(each.fill_null(False) for each in planted.values())
    good = pl.col("truth") * 0.45 + pl.col("noise") * 0.55
    rows = rows.with_columns(score=pl.when(guessed).then("noise").otherwise(good))
    table = mlm.find_slices(rows, mlm.f1(), ["country", "device", "age", "topics"])
    sure = table.filter(pl.col("hidden_by").is_null(), pl.col("p_adjusted") <= 0.05).head(3)
    assert sorted(sure["slice"]) == list(planted)
    for name, conditions in planted.items():
        found = rows.filter(mlm.slice_filter(sure.filter(slice=name)))
        assert_frame_equal(found, rows.filter(conditions.fill_null(False)))
