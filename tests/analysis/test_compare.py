"""Comparisons are differences on the samples that both models have, bucket by bucket."""

import re
from collections.abc import Callable
from functools import cache
from math import sqrt
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import stats

import polars_mlmetrics as mlm
from polars_mlmetrics.contrasts.differences import COLUMNS
from polars_mlmetrics.engine.buckets import bucket_of
from tests.analysis.pairs_log import log, rows_of
from tests.support.degrees import degrees_of_freedom
from tests.support.readings import same

LEVEL = 0.9
PAIRS = [mlm.ks(), mlm.n_samples()]  # no intervals: quick where only the pairs matter
FACTS = ["model", "metric", "value", "baseline_value", "n_pairs", "n_unpaired"]
SUITE = [
    mlm.f1(),
    mlm.log_loss(),
    mlm.ndcg(),
    mlm.mse(),
    mlm.n_excluded(),
    mlm.roc_auc(bins=8),
    mlm.labelwise_precision(undefined=0.0),
    (mlm.f1() - mlm.recall()).alias("derived"),
    mlm.recall().round(1).alias("rounded"),
]


def compared(*metrics: Any, rows: pl.DataFrame | None = None, **asked: Any) -> pl.DataFrame:
    return mlm.compare(log() if rows is None else rows, *(metrics or [mlm.f1()]), **{"baseline": "old", **asked})


def known(rows: pl.DataFrame) -> set[int]:
    return set(rows.drop_nulls(["score", "truth"])["sample"])


@cache
def expected(keys: tuple[tuple[str, Any], ...], candidate: str) -> dict[str, dict[str, Any]]:
    """The differences in a group, by their definition."""
    rows = log().filter(**dict(keys))
    ours, theirs = (known(rows.filter(model=model)) for model in (candidate, "old"))
    bucket = bucket_of(["sample"], rows.schema, 64)[0].alias("bucket")
    rows = rows.filter(pl.col("model").is_in([candidate, "old"]), pl.col("sample").is_in(list(ours & theirs)))
    rows = rows.with_columns(bucket)
    there = pl.DataFrame({"left_out": rows["bucket"].unique()})
    without = rows.join(there, how="cross").filter(pl.col("bucket") != pl.col("left_out"))
    metrics = [metric.alias(name) for name, metric in METRICS.items()]
    values = {row["model"]: row for row in mlm.evaluate(rows, metrics, by="model").to_dicts()}
    replicates = by_bucket(mlm.evaluate(without, metrics, by=["model", "left_out"]))
    alone = by_bucket(mlm.evaluate(rows, metrics, by=["model", "bucket"]))
    found = {}
    for name in METRICS:
        sides = [(each[candidate][name], each["old"][name]) for each in replicates]
        has = [None not in (each[candidate][name], each["old"][name]) for each in alone]
        found[name] = difference(values[candidate][name], values["old"][name], sides, has)
        found[name] |= {"n_pairs": len(ours & theirs), "n_unpaired": len(ours ^ theirs)}
    return found


def by_bucket(table: pl.DataFrame) -> list[dict[str, dict[str, Any]]]:
    """The values of each model, bucket after bucket."""
    key = table.columns[1]
    return [
        {row["model"]: row for row in part.to_dicts()}
        for part in table.sort(key).partition_by(key, maintain_order=True)
    ]


def difference(
    value: float, baseline: float, replicates: list[tuple[float, float]], has_value: list[bool]
) -> dict[str, float]:
    moved = [(one - other) - (value - baseline) for one, other in replicates]
    moved = [0.0 if abs(move) <= 1e-12 * (abs(value) + abs(baseline)) else move for move in moved]
    tell = sum(move != 0 or has for move, has in zip(moved, has_value, strict=True))
    se = sqrt((tell - 1) / tell * sum(move**2 for move in moved))
    df = degrees_of_freedom(tell, moved)
    t = stats.t.ppf((1 + LEVEL) / 2, df)
    return {
        "value": value,
        "baseline_value": baseline,
        "difference": value - baseline,
        "low": value - baseline - t * se,
        "high": value - baseline + t * se,
        "p": 2 * stats.t.sf(abs(value - baseline) / se, df),
        "mde": (t + stats.t.ppf(0.8, df)) * se,
    }


METRICS = {metric.output_name: metric for metric in SUITE if metric.output_name not in ("n_excluded", "rounded")}
SLICES: list[Any] = ["country", "side", ["country", "side"]]


@pytest.mark.usefixtures("buckets_of_states")
@pytest.mark.parametrize("road", [*(pytest.param(road, marks=pytest.mark.proof) for road in ("at once", "lazy")), "by"])
def test_a_difference_is_that_of_the_pairs(road: str) -> None:
    rows = log().filter(pl.col("model") != "other") if road == "by" else log()
    frame: Any = rows.lazy().filter(pl.col("sample") >= 0) if road == "lazy" else rows
    asked: dict[str, Any] = {"by": "country"} if road == "by" else {"slices": SLICES}
    table = mlm.compare(frame, SUITE, baseline="old", ci=LEVEL, **asked).lazy().collect()
    wrong = []
    for row in table.filter(pl.col("metric").is_in(list(METRICS))).iter_rows(named=True):
        keys = {key: row[key] for key in ("country", "side") if row.get(key) is not None}
        right = expected(tuple(keys.items()), row["model"])[row["metric"]]
        if not all(same(row[fact], value, 1e-7) for fact, value in right.items()):
            wrong.append((keys, row["model"], row["metric"], {fact: row[fact] for fact in right}, right))
    assert wrong == []
    assert table["model"].unique().sort().to_list() == (["new"] if road == "by" else ["new", "other"])


def test_label_averages_are_of_the_labels_that_both_have() -> None:
    rows = log().with_columns(truth=pl.when(label="d", model="new").then(0).otherwise("truth"))
    row = compared(mlm.recall(average="macro"), rows=rows).filter(model="new").row(0, named=True)
    pairs = known(rows.filter(model="new")) & known(rows.filter(model="old"))
    of_pairs = rows.filter(pl.col("sample").is_in(list(pairs)), pl.col("label") != "d")
    ours, theirs = (mlm.evaluate(of_pairs.filter(model=m), mlm.recall(average="macro")).item() for m in ("new", "old"))
    assert (row["value"], row["baseline_value"]) == pytest.approx((ours, theirs), rel=1e-12)
    assert (row["n_undefined"], row["n_undefined_baseline"]) == (1, 0)
    assert row["low"] is not None


of_some = pytest.mark.parametrize("metrics", [[mlm.f1(), mlm.log_loss()], [mlm.ndcg()]], ids=["sums", "samples"])


@pytest.mark.usefixtures("buckets_of_states")
@pytest.mark.one_in(2)
@of_some
def test_of_a_state_all_rows_count(metrics: list[mlm.Metric]) -> None:
    state = mlm.state(log(), metrics, by=["model", "country"])
    table = mlm.compare(state, metrics, baseline="old", slices=["country"], ci=LEVEL)
    assert table["ci_flag"].unique().to_list() == ["pairs_unknown"]
    assert table.select("n_pairs", "n_unpaired").null_count().row(0) == (table.height, table.height)
    # Where all samples are pairs there is nothing that a log knows better.
    rows = log().filter(pl.col("model") != "new", pl.col("sample") < 120)
    state = mlm.state(rows, metrics, by=["model", "country"])
    known_of_state = ["n_pairs", "n_unpaired", "ci_flag"]
    of_log, of_state = (mlm.compare(each, metrics, baseline="old", by="country") for each in (rows, state))
    assert_frame_equal(of_log.drop(known_of_state), of_state.drop(known_of_state), rel_tol=1e-9)


@pytest.mark.usefixtures("buckets_of_states")
@pytest.mark.one_in(2)
@of_some
def test_a_state_of_pairs_knows_them(metrics: list[mlm.Metric]) -> None:
    rows = log().filter(pl.col("model") != "other")
    state = mlm.state(rows, metrics, by=["model", "country"], between="model")
    of_log, of_state = (mlm.compare(each, metrics, baseline="old", slices=["country"]) for each in (rows, state))
    assert_frame_equal(of_log.drop("n_unpaired"), of_state.drop("n_unpaired"), rel_tol=1e-9)
    assert of_state["n_unpaired"].null_count() == of_state.height


def test_pairs_of_a_state_are_those_of_all_its_models(tmp_path: Path) -> None:
    # All models must have a sample, not only the two that are compared.
    state = mlm.state(log(), mlm.f1(), by=["model", "country"], between="model")
    of_three = mlm.compare(state, baseline="old")
    pairs = known(log().filter(model="new")) & known(log().filter(model="old")) & known(log().filter(model="other"))
    assert of_three["n_pairs"].to_list() == [len(pairs)] * 2
    # Of a file that one model lacks the samples are no pairs.
    lone = mlm.state(log().filter(model="old"), mlm.f1(), by=["model", "country"], between="model")
    both = mlm.compare(pl.concat([state, lone]), baseline="old")
    assert both.select("n_pairs", "ci_flag").row(0) == (None, "pairs_unknown")
    state.mlm.write_state(tmp_path / "state.parquet")
    read = mlm.scan_states(tmp_path / "state.parquet")
    assert mlm.compare(read, baseline="old").collect()["n_pairs"].null_count() == 0


def test_a_sample_may_be_several_columns() -> None:
    rows = log().with_columns(part=pl.col("sample") % 7, sample=pl.col("sample") // 7)
    of_one, of_two = (compared(PAIRS, **asked) for asked in ({}, {"rows": rows, "sample": ["sample", "part"]}))
    assert_frame_equal(of_one.select(FACTS), of_two.select(FACTS), rel_tol=1e-12)
    state = mlm.state(rows, mlm.f1(), by="model", between="model", sample=["sample", "part"])
    assert mlm.compare(state, baseline="old")["n_pairs"].null_count() == 0


@pytest.mark.parametrize("keys", [{"by": "part"}, {"slices": ["part"]}], ids=["by", "slices"])
def test_a_column_of_the_sample_may_be_a_key(keys: dict[str, Any]) -> None:
    """A sample has one part, so that it is the same sample with and without it."""
    rows = log().with_columns(part=pl.col("sample") % 2)
    of_one, of_two = (compared(PAIRS, rows=rows, sample=each, **keys) for each in ("sample", ["part", "sample"]))
    assert_frame_equal(of_one.select(FACTS), of_two.select(FACTS), rel_tol=1e-12)


def test_groups_may_be_expressions() -> None:
    is_de = pl.col("country") == "DE"
    of_names = compared(PAIRS, by="country", between="model")
    of_texts = compared(PAIRS, by=(~is_de).alias("country"), between=pl.col("model").str.slice(0))
    assert_frame_equal(of_names.drop("country"), of_texts.drop("country"), rel_tol=1e-12)


def test_models_may_be_structs() -> None:
    """Two columns that tell models apart together; their values have no hash."""
    of_structs = compared(PAIRS, between=pl.struct(name="model").alias("model"), baseline={"name": "old"})
    assert_frame_equal(of_structs.drop("model"), compared(PAIRS).drop("model"), rel_tol=1e-12)


@pytest.fixture(scope="module")
def sliced() -> pl.DataFrame:
    return compared(mlm.f1(), mlm.mse(), slices=["country", "label"])


def test_p_is_adjusted_within_a_metric_and_a_model(sliced: pl.DataFrame) -> None:
    for _, family in sliced.group_by("metric", "model", pl.col("sliced_by") == ""):
        p = family["p"].to_list()
        assert family["p_adjusted"].to_list() == pytest.approx(stats.false_discovery_control(p), rel=1e-12)
    table = compared(by="label", adjust=None)
    assert table["p"].equals(table["p_adjusted"])


def verdicts(metric: mlm.Metric, *shifts: float, margin: float | None = None) -> list[str | None]:
    """The verdicts on models whose errors are those of the baseline and a shift, give or take a little."""
    old = rows_of("old", 7919, range(200)).with_columns(truth=0.0)
    wobble = (pl.col("sample") % 5 - 2) / 1000
    new = [old.with_columns(model=pl.lit(f"by {s}"), score=pl.col("score") + s + wobble) for s in shifts]
    found = dict(compared(metric, rows=pl.concat([old, *new]), margin=margin).select("model", "verdict").rows())
    return [found[f"by {shift}"] for shift in shifts]


def test_a_verdict_goes_by_the_direction_of_the_metric() -> None:
    assert verdicts(mlm.mae(), -0.01, 0.0, 0.01) == ["better", "unclear", "worse"]
    assert verdicts((0 - mlm.mae()).alias("negative"), -0.01, 0.0, 0.01) == ["better", "unclear", "worse"]
    assert verdicts(mlm.bias(), 0.01) == [None]


def test_a_margin_tells_no_change_from_what_is_not_known() -> None:
    of_shifts = verdicts(mlm.mae(), -0.01, 0.0, 0.004, 0.01, margin=0.005)
    assert of_shifts == ["better", "no change", "no change", "worse"]
    assert compared(margin=10.0)["verdict"].unique().to_list() == ["no change"]


def test_equal_models_do_not_differ() -> None:
    both = pl.concat([rows_of("old", 7919, range(50)), rows_of("new", 7919, range(50))])
    # Without an interval nothing was tested: there is no verdict.
    assert compared(rows=both).select("difference", "verdict").row(0) == (0.0, None)
    assert compared(rows=both, margin=0.01)["verdict"].item() == "no change"
    row = compared(mlm.ndcg(), rows=both).row(0, named=True)
    assert (row["difference"], row["low"], row["p"], row["ci_flag"]) == (0.0, None, None, "degenerate")


def test_a_difference_of_what_is_broken_is_no_zero() -> None:
    broken = log().with_columns(score=pl.when(model="new", sample=40).then(-0.1).otherwise("score"))
    table = compared(mlm.log_loss(), rows=broken)
    assert table.select("model", pl.col("difference").is_nan()).rows() == [("new", True), ("other", False)]
    assert table.filter(model="other")["difference"].is_finite().all()
    # Nor is it null where the other side is undefined: the baseline predicts nothing.
    scores = {"old": pl.lit(0.1), "new": pl.lit(float("nan")), "other": pl.col("score")}
    broken = pl.concat([log().filter(model=model).with_columns(score=score) for model, score in scores.items()])
    table = compared(mlm.precision(), rows=broken).select("model", "difference", "verdict", "ci_flag")
    assert str(table.rows()) == str([("new", float("nan"), None, None), ("other", None, None, None)])


def test_few_clusters_are_told_though_pairs_are_many() -> None:
    rows = log().with_columns(user=pl.col("sample") // 6)
    for cluster, flag in (("user", "low_n"), (None, "ok")):
        table = compared(rows=rows, cluster=cluster, by="country").filter(model="other")
        assert table["ci_flag"].to_list() == [flag] * 2


def test_a_margin_that_harm_does_not_reach_is_not_worse(sliced: pl.DataFrame) -> None:
    unclear = sliced.filter(verdict="unclear")
    of_loss = unclear.filter(pl.col("high").abs() < pl.col("low").abs(), metric="mse")
    row = of_loss.row(0, named=True)
    table = compared(mlm.mse(), slices=["country", "label"], margin=row["high"] + 1e-9)
    assert table.filter(slice=row["slice"], model=row["model"])["verdict"].item() == "not worse"


def test_what_has_no_interval_says_why() -> None:
    table = compared(mlm.ks(), mlm.support()).filter(model="other")
    assert table["ci_flag"].to_list() == ["no_state", "totals"]
    assert table.select("difference", "verdict").null_count().row(0) == (0, 2)
    assert compared(mlm.ks(), margin=1.0)["verdict"].to_list() == [None, None]


def test_the_table_is_the_same_whatever_there_is_in_it() -> None:
    lazy = mlm.compare(log().lazy(), mlm.f1(), baseline="old", by="country", slices=["side"])
    assert lazy.collect_schema() == lazy.collect().schema
    assert [*lazy.collect_schema()] == ["country", "sliced_by", "slice", "side", "model", *COLUMNS]
    assert_frame_equal(log().mlm.compare(PAIRS, baseline="old"), compared(PAIRS), rel_tol=1e-12)


STATE = mlm.state(log(), mlm.f1(), by="model")
NO_SAMPLES = log().with_columns(sample=pl.lit(None, pl.Int64))
CALLS: dict[str, Callable[[], object]] = {
    "baseline='older' is no value of 'model', which has 'new', 'old', 'other'.": lambda: compared(baseline="older"),
    "baseline=3 is no value of 'model'": lambda: compared(baseline=3),
    "'model' has no other value than baseline='old'.": lambda: compared(rows=log().filter(model="old")),
    "'modle' is not in the table": lambda: compared(between="modle"),
    "two columns of the result would have the name 'model'": lambda: compared(by="model"),
    "'model' is already in by=": lambda: compared(slices=["model"]),
    "compare takes a metric, but len() is a plain expression.": lambda: compared(pl.len()),
    "sample column 'sample' is not in the table": lambda: compared(rows=log().drop("sample"), cluster="model"),
    "there is nothing to compare: the table has no rows, or none with a sample.": lambda: compared(rows=NO_SAMPLES),
    "f1_macro is an average over the labels, and 'label' is their column": lambda: compared(
        mlm.f1(average="macro"), between="label", baseline="x", pairs=False
    ),
    "margin must be a number of at least 0, not -1.": lambda: compared(margin=-1),
    "adjust must be 'bh' or None, not 'holm'.": lambda: compared(adjust="holm"),
    "as ci, such as 0.95, not None": lambda: compared(ci=None),
    "as ci, such as 0.95, not 'bootstrap'": lambda: compared(ci="bootstrap"),
    "one has score=side: call it once for each": lambda: compared(mlm.f1(), mlm.mse().on(score="side")),
    "this function takes no memory=. evaluate,": (
        lambda: mlm.partial(log().schema, mlm.f1(), memory="1 GB")  # type: ignore[call-arg]
    ),
    "role 'per' is not one of the roles (sample, label, score, truth, weight). help(compare) lists what it takes.": (
        lambda: compared(per="label")
    ),
    "score= cannot be given for a state": lambda: mlm.compare(STATE, baseline="old", score="p"),
    "between= 'modle' is not a by column of the state": lambda: mlm.state(log(), mlm.f1(), by="model", between="modle"),
    "'model' is not a by column of the state": lambda: mlm.compare(mlm.state(log(), mlm.f1()), baseline="old"),
}


@pytest.mark.parametrize("message", CALLS)
def test_what_is_wrong_is_said(message: str) -> None:
    with pytest.raises(mlm.MetricError, match=re.escape(message)):
        CALLS[message]()
