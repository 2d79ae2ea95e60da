"""`find_slices(baseline=)`: where a model, or a month, became worse. Both sides of a slice are taken by hand."""

from collections.abc import Callable
from math import sqrt
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import stats

import polars_mlmetrics as mlm
from polars_mlmetrics.engine.buckets import bucket_of
from tests.slice_search.changes import ALWAYS_BAD, FEATURES, WORSE, models
from tests.support.degrees import degrees_of_freedom

pytestmark = pytest.mark.filterwarnings("ignore:no slice is surely worse")

OLD: dict[str, Any] = {"between": "model", "baseline": "old"}


def found(rows: Any, metric: mlm.Metric | None = None, features: Any = FEATURES, **asked: Any) -> pl.DataFrame:
    return mlm.find_slices(rows, mlm.accuracy() if metric is None else metric, features, **{**OLD, **asked})


def same(one: pl.DataFrame, other: pl.DataFrame) -> None:
    assert one.height
    assert_frame_equal(one.drop("plan"), other.drop("plan"), rel_tol=1e-9, abs_tol=1e-12)


def with_labels(rows: pl.DataFrame) -> pl.DataFrame:
    """Three labels a sample, of which one is true where the others are not."""
    labels = pl.DataFrame({"label": ["a", "b", "c"], "shift": [0.0, 0.05, 0.1]})
    score = pl.when(pl.col("label") == "b").then(1 - pl.col("score")).otherwise("score") * 0.9 + pl.col("shift")
    truth = (pl.col("truth") == 1) ^ (pl.col("label") == "b")
    return rows.join(labels, how="cross").with_columns(score=score, truth=truth.cast(pl.Int8))


# -- what it finds -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", [mlm.accuracy(), mlm.log_loss()], ids=str)
def test_the_slice_that_became_worse_is_first_and_not_the_one_that_always_was(metric: mlm.Metric) -> None:
    for seed in range(2):
        table = found(models(seed), metric)
        first = table.row(0, named=True)
        assert (first["model"], first["slice"]) == ("new", WORSE)
        assert first["p_adjusted"] < 0.1
        alone = mlm.find_slices(models(seed).filter(model="new"), metric, FEATURES)
        assert alone.filter(slice=ALWAYS_BAD).height == 1
        assert table.filter(pl.col("p_adjusted") < 0.05, slice=ALWAYS_BAD).is_empty()


def test_where_nothing_changed_there_is_nothing() -> None:
    rows = models().filter(model="old")
    both = pl.concat([rows, rows.with_columns(model=pl.lit("new"))])
    with pytest.warns(UserWarning, match="no slice is surely worse than the rest: 119 slices tried, 59 of them"):
        assert found(both).is_empty()
    assert found(both).schema == found(models()).schema


def test_a_model_that_became_better_is_worse_than_nothing() -> None:
    assert WORSE not in found(models(), baseline="new")["slice"].to_list()


# -- what it says of a slice -------------------------------------------------------------------------------------------


def expected(
    rows: pl.DataFrame, metric: mlm.Metric, is_in: pl.Expr, sign: int, side: str = "model"
) -> dict[str, float]:
    """A slice in the half that confirms, by its definition: each side, each bucket, on their own."""
    rows = rows.with_columns(bucket_of(["sample"], rows.schema, 64)[0].alias("bucket"))
    half = rows.filter(pl.col("bucket") % 2 == 1).with_columns(is_in.alias("is_in"))

    def changes(left: pl.DataFrame, *by: str) -> pl.DataFrame:
        values = mlm.evaluate(left, metric.alias("v"), by=[*by, "is_in", side]).with_columns(
            pl.col(side).cast(pl.String)
        )
        values = values.with_columns(pl.col(side).replace({"new": "ours", "old": "theirs"}))
        return values.pivot(side, index=[*by, "is_in"], values="v").with_columns(
            change=pl.col("ours") - pl.col("theirs")
        )

    rest, value = changes(half).sort("is_in")["change"]
    gap, buckets = sign * (rest - value), half["bucket"].unique()
    left = half.join(pl.DataFrame({"left_out": buckets}), how="cross").filter(pl.col("bucket") != pl.col("left_out"))
    without = changes(left, "left_out").sort("left_out", "is_in")["change"].to_list()
    moved = [sign * (other - own) - gap for other, own in zip(without[::2], without[1::2], strict=True)]
    se = sqrt((len(buckets) - 1) / len(buckets) * sum(move**2 for move in moved))
    n_buckets = min(half.filter("is_in").group_by(side).agg(pl.col("bucket").n_unique())["bucket"])
    df = degrees_of_freedom(n_buckets, moved)
    away = stats.t.ppf(0.975, df) * se
    ends = {"low": gap - away, "high": gap + away}
    return {"value": value, "rest": rest, "gap": gap, **ends, "p": stats.t.sf(gap / se, df)}


METRICS: dict[str, tuple[mlm.Metric, int]] = {
    "accuracy": (mlm.accuracy(), 1),
    "f1": (mlm.f1(), 1),
    "log loss": (mlm.log_loss(), -1),
    "macro": (mlm.f1(average="macro"), 1),
    "ranking": (mlm.label_ranking_average_precision(), 1),
    "deviations": (mlm.pearson(), 1),
    "bins": (mlm.roc_auc(bins=32), 1),
    "two": (mlm.mae() + mlm.brier_score(), -1),
}
"""Each with which end is bad."""


@pytest.mark.one_in(2)
@pytest.mark.parametrize("pairs", [True, False])
@pytest.mark.parametrize("name", METRICS)
def test_what_is_said_is_what_the_rows_give(name: str, pairs: bool) -> None:
    metric, sign = METRICS[name]
    rows = models(3, 1500)
    rows = with_labels(rows) if name in ("macro", "ranking") else rows
    if not pairs:
        # Other samples on each side.
        rows = rows.filter((pl.col("sample") % 3 > 0) | (pl.col("model") == "old"))
        rows = rows.filter((pl.col("sample") % 5 > 0) | (pl.col("model") == "new"))
        # And buckets that one side lacks.
        bucket, _ = bucket_of(["sample"], rows.schema, 64)
        rows = rows.filter((bucket % 8 != 3) | (pl.col("model") == "old"))
    table = found(rows, metric, FEATURES[:1] if name == "deviations" else FEATURES[:2], k=3, pairs=pairs)
    assert table.height
    for row in table.iter_rows(named=True):
        is_in = mlm.slice_filter(row)
        right = expected(rows, metric, is_in, sign)
        assert {key: row[key] for key in right} == pytest.approx(right, rel=1e-7, abs=1e-12)
        inside = rows.filter(is_in)
        sizes = inside.group_by("model").agg(pl.col("sample").n_unique())["sample"]
        assert (row["n_samples"], row["n_rows"]) == (min(sizes), inside.height)


def test_share_of_harm_is_the_part_of_the_change_that_the_rest_lacks() -> None:
    rows = models()
    first = found(rows).row(0, named=True)
    half = rows.filter(bucket_of(["sample"], rows.schema, 64)[0] % 2 == 1)
    values = dict(mlm.evaluate(half, mlm.accuracy(), by="model").iter_rows())
    whole = values["new"] - values["old"]
    assert first["share_of_harm"] == pytest.approx(min(1, (first["rest"] - whole) / (0 - whole)), rel=1e-12)
    better = models(worse=-0.1).with_columns(
        score=pl.when(model="new").then((pl.col("truth") + pl.col("score")) / 2).otherwise("score")
    )
    assert set(found(better)["share_of_harm"]) <= {None}


def test_it_is_the_search_of_a_metric_of_both_sides() -> None:
    """The difference of two metrics of parts of the rows, of a log without other samples."""
    rows = models(4).with_columns(model=pl.col("model").cast(pl.Enum(["old", "new"])))
    new, old = (mlm.log_loss().filter(pl.col("model") == model) for model in ("new", "old"))
    asked: dict[str, Any] = {"worse": "high", "min_samples": 100}
    by_hand = mlm.find_slices(rows, (new - old).alias("change"), FEATURES, **asked)
    shown = [
        "slice",
        "n_samples",
        "share",
        "value",
        "rest",
        "gap",
        "low",
        "high",
        "p",
        "p_adjusted",
        "hidden_by",
        "overlap",
    ]
    for pairs in (True, False):
        both = found(rows, mlm.log_loss(), min_samples=100, pairs=pairs)
        assert_frame_equal(both.select(shown), by_hand.select(shown), rel_tol=1e-9)


# -- pairs -------------------------------------------------------------------------------------------------------------


def test_samples_of_one_side_are_left_out() -> None:
    rows = models()
    lacking = rows.filter((pl.col("sample") % 7 > 0) | (pl.col("model") == "old"))
    unscored = rows.with_columns(score=pl.when((pl.col("sample") % 7 > 0) | (pl.col("model") == "old")).then("score"))
    unnamed = pl.concat([lacking, rows.head(50).with_columns(sample=None)])
    kept = found(rows.filter(pl.col("sample") % 7 > 0))
    for some in (lacking, unscored, unnamed):
        same(found(some), kept)


def test_a_sample_has_the_same_features_on_both_sides() -> None:
    rows = models()
    moves = (pl.col("sample") % 7 == 0) & (pl.col("model") == "new")
    moved = rows.with_columns(country=pl.when(moves).then(pl.lit("PT")).otherwise("country"))
    same(found(moved), found(rows.filter(pl.col("sample") % 7 > 0)))


def test_few_pairs_and_unknown_ones_are_flagged() -> None:
    rows = models(n=9000)
    few = rows.filter((pl.col("sample") % 3 == 0) | (pl.col("model") == "old"))
    assert set(found(few)["ci_flag"]) <= {"few_pairs", "few_decide"}
    assert "few_pairs" in found(few)["ci_flag"]
    assert "few_pairs" not in found(few, pairs=False)["ci_flag"]
    state = mlm.state(rows, [mlm.accuracy(), mlm.n_samples()], by=["model", *FEATURES[:2]])
    assert "pairs_unknown" in found(state, features=FEATURES[:2])["ci_flag"]


def test_rows_of_several_models_are_flagged_where_the_sides_are_months() -> None:
    rows = models().with_columns(month=pl.col("model"))
    months = {"between": "month"}
    several = rows.with_columns(model=pl.col("sample") % 2)
    assert set(found(several, **months)["ci_flag"]) == {"pooled"}
    assert "pooled" not in found(rows, **months)["ci_flag"]


# -- with what else may be given ---------------------------------------------------------------------------------------


def test_each_candidate_and_each_group_is_searched_by_itself() -> None:
    other = pl.when(pl.col("sample") % 9 == 0, pl.col("device") == "app").then(1 - pl.col("score")).otherwise("score")
    three = pl.concat([models(1), models(1).filter(model="new").with_columns(model=pl.lit("other"), score=other)])
    with_side = pl.concat([three.with_columns(side=pl.lit(None, pl.String)), models(4).with_columns(side=pl.lit("x"))])
    table = found(with_side, features=FEATURES[:2], by="side")
    assert table.columns[:3] == ["side", "model", "rank"]
    own = [("new", None, three), ("other", None, three), ("new", "x", with_side.filter(side="x").drop("side"))]
    for model, side, rows in own:
        alone = found(rows.filter(pl.col("model").is_in(["old", model])), features=FEATURES[:2])
        same(table.filter(pl.col("side").eq_missing(pl.lit(side)), model=model).drop("side"), alone)


@pytest.mark.parametrize("pairs", [True, False])
def test_a_state_says_what_its_log_says(pairs: bool) -> None:
    rows, metric = models(5), mlm.f1()
    made_of: dict[str, Any] = {"between": "model"} if pairs else {}
    state = mlm.state(rows, [metric, mlm.n_samples()], by=["model", *FEATURES], **made_of)
    same(found(state, metric, pairs=pairs), found(rows, metric, pairs=pairs))


@pytest.mark.parametrize("pairs", [True, False])
def test_passes_change_nothing(pairs: bool) -> None:
    rows = models(6).filter((pl.col("sample") % 7 > 0) | (pl.col("model") == "old"))
    kept = found(rows, pairs=pairs)
    for asked in ({"passes": 3}, {"passes": 2, "cluster": "sample"}):
        same(found(rows.lazy(), pairs=pairs, progress=False, **asked), kept)


def test_files_are_passes(tmp_path: Any) -> None:
    rows = models(6)
    for number in (0, 1):
        rows.filter(pl.col("sample") % 2 == number).write_parquet(tmp_path / f"{number}.parquet")
    scan = pl.scan_parquet(tmp_path / "*.parquet")
    same(found(scan, passes="files", progress=False), found(rows))


def test_clusters_weights_and_lists() -> None:
    rows = models(7).with_columns(w=1.0 + pl.col("sample") % 3, tags=pl.concat_list("country", "device"))
    table = found(rows, mlm.log_loss(), weight="w", cluster="user")
    assert table.row(0, named=True)["slice"] == WORSE
    twice = pl.concat([rows, rows.with_columns(sample=pl.col("sample") + 10_000)])
    # The same users twice are no more users.
    again = found(twice, mlm.log_loss(), weight="w", cluster="user", min_samples=120)
    once = found(rows, mlm.log_loss(), weight="w", cluster="user", min_samples=60)
    assert_frame_equal(again.select("slice", "gap", "low", "p"), once.select("slice", "gap", "low", "p"), rel_tol=1e-9)
    of_lists = found(rows, features=["tags", "age"])
    assert of_lists["slice"][0] in ("tags has FR", "tags has web")


def test_the_sides_may_be_what_an_expression_gives() -> None:
    rows = models(8).with_columns(day=pl.when(model="old").then(pl.date(2026, 10, 3)).otherwise(pl.date(2026, 11, 9)))
    month = pl.col("day").dt.truncate("1mo").alias("month")
    table = found(rows.drop("model"), between=month, baseline=pl.Series(["2026-10-01"]).str.to_date()[0])
    assert table.columns[0] == "month"
    same(table.drop("month"), found(rows).drop("model"))


def test_both_engines_and_scans_give_the_same(tmp_path: Any) -> None:
    rows = models(9)
    rows.write_parquet(tmp_path / "log.parquet")
    same(found(pl.scan_parquet(tmp_path / "log.parquet")), found(rows))
    with pl.Config():
        pl.Config.set_engine_affinity("streaming")
        same(found(rows.lazy()), found(rows))


# -- what is refused ---------------------------------------------------------------------------------------------------

REFUSED: dict[str, tuple[type[Exception], str, Callable[[], Any]]] = {
    "no baseline": (
        mlm.ParameterError,
        "between= is for a change: pass baseline= too",
        lambda: found(models(), baseline=None),
    ),
    "pairs alone": (
        mlm.ParameterError,
        "pairs=False is for a change",
        lambda: mlm.find_slices(models(), mlm.f1(), FEATURES, pairs=False),
    ),
    "no such baseline": (
        mlm.ParameterError,
        "is no value of 'model', which has",
        lambda: found(models(), baseline="odl"),
    ),
    "one model": (
        mlm.ParameterError,
        "'model' has no other value than baseline='old'",
        lambda: found(models().filter(model="old")),
    ),
    "no model": (
        mlm.ColumnError,
        "model",
        lambda: mlm.find_slices(models().drop("model"), mlm.f1(), FEATURES, baseline="old"),
    ),
    "in by": (
        mlm.NameCollisionError,
        "by which find_slices tells the models apart",
        lambda: found(models(), by="model"),
    ),
    "a feature": (
        mlm.ParameterError,
        "'model' cannot be a feature",
        lambda: found(models(), features=["model", "age"]),
    ),
    "no pairs": (
        mlm.TableError,
        "no sample is on both sides",
        lambda: found(models().with_columns(sample=pl.int_range(pl.len()))),
    ),
    "pairs of a state": (
        mlm.StateError,
        "pairs=False compares all rows",
        lambda: found(
            mlm.state(models(), [mlm.accuracy(), mlm.n_samples()], by=["model", "country"], between="model"),
            features="country",
            pairs=False,
        ),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    error, words, call = REFUSED[name]
    with pytest.raises(error, match=words):
        call()
