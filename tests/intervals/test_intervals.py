"""Intervals are what the definition gives, from the values of the rows without each bucket."""

import re
from collections.abc import Callable, Sequence
from functools import cache
from math import inf, isfinite, log, sqrt
from typing import Any, NamedTuple

import polars as pl
import pytest
from polars.testing import assert_frame_equal, assert_series_equal
from scipy import stats

import polars_mlmetrics as mlm
from polars_mlmetrics.engine.buckets import bucket_of
from polars_mlmetrics.formula.measure import Measure
from polars_mlmetrics.query import question
from tests.intervals.buckets import BUCKET_OF, BUCKETS, METRICS, expected
from tests.intervals.users import HALF, SUITE, users
from tests.support.degrees import SHARES, degrees_of_freedom
from tests.support.frames import KEYS, worlds
from tests.support.readings import same

LEVEL = 0.9
NOTHING = 1e-12
"""What rounding leaves of 0 is smaller, and so is what replicates of it differ by: by rounding alone."""

Row = dict[str, Any]


@cache
def alone(by: tuple[str, ...]) -> dict[tuple[Any, ...], Row]:
    """The values of the rows of each bucket."""
    metrics = [metric.alias(name) for name, metric in METRICS.items()]
    table = mlm.evaluate(worlds().with_columns(BUCKET_OF.alias("bucket")), metrics, by=[*by, "bucket"])
    return {tuple(row.pop(key) for key in (*by, "bucket")): row for row in table.to_dicts()}


@cache
def samples(by: tuple[str, ...]) -> dict[tuple[Any, ...], Row]:
    """How many samples have a value of each metric that is a mean over samples."""
    of_samples = [metric.alias(name) for name, metric in METRICS.items() if is_of_samples(metric)]
    table = mlm.evaluate(worlds(), of_samples, by=list(by), per="sample")
    counts = table.group_by(by).agg(pl.exclude("sample").count()) if by else table.select(pl.exclude("sample").count())
    return {tuple(row.pop(key) for key in by): row for row in counts.to_dicts()}


def is_of_samples(metric: mlm.Metric) -> bool:
    return metric.tree.measures()[0].grain == "sample"


class Expected(NamedTuple):
    """What a tidy table should say."""

    n_buckets: int
    se: float | None = None
    low: float | None = None
    high: float | None = None


Values = Sequence[float | None]


def reference(measure: Measure, value: float, without: Values, alone: Values, samples: int | None) -> Expected:
    """The interval by its definition, in plain Python."""
    moved = [0.0 if each is None or abs(each - value) <= 1e-12 * abs(value) else each - value for each in without]
    buckets = sum(move != 0 or each is not None for move, each in zip(moved, alone, strict=True))
    if buckets < 2 or any(each is None or not isfinite(each) for each in without):
        return Expected(buckets)
    se = sqrt((buckets - 1) / buckets * sum(move**2 for move in moved))
    is_share = measure.declaration.name in SHARES and measure.grain == "group" and measure.table.weight is None
    df = buckets - 1 if is_share else degrees_of_freedom(buckets, moved)
    t, z = stats.t.ppf((1 + LEVEL) / 2, df), stats.norm.ppf((1 + LEVEL) / 2)
    least, most = measure.declaration.range
    if not (isfinite(least) and isfinite(most)) or measure.declaration.name in BIASED:
        ends = (max(value - t * se, least), min(value + t * se, most)) if se > 0 else (None, None)
        return Expected(buckets, se, *ends)
    p, s = min(max((value - least) / (most - least), 0.0), 1.0), se / (most - least)
    n = log(1 - min(buckets, BUCKETS - 0.5) / BUCKETS) / log(1 - 1 / BUCKETS) if samples is None else samples
    if s > 0 and NOTHING <= p <= 1 - NOTHING:
        n = p * (1 - p) / s**2
    n *= (z / t) ** 2
    center, spread = (p + z**2 / (2 * n)) / (1 + z**2 / n), z / (1 + z**2 / n)
    half = spread * sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    return Expected(buckets, se, *(least + (most - least) * end for end in (center - half, center + half)))


BIASED = {
    "brier_reliability", "brier_resolution", "exposure_gini", "ks", "precision_at_recall", "recall_at_fpr",
    "recall_at_precision",
}  # fmt: skip
"""Bounded, and no shares: what is uneven in bins by chance alone moves them to one side."""

HAVE_NONE = {"true_positives", "false_positives", "true_negatives", "false_negatives", "support", "max_error"}
HAVE_NONE |= {"calibration_error", "calibration_ks", "calibration_kuiper", "spiegelhalter_z", "label_coverage"}


def has_interval(measure: Measure) -> bool:
    counts = measure.declaration.name in HAVE_NONE or measure.declaration.counts
    return not counts and measure.parameters.get("average") not in ("min", "max")


def is_what_rounding_left(values: Values) -> bool:
    """Whether the values of all buckets, and without each, and how far these vary, are 0 but for rounding."""
    known = [abs(value) for value in values if value is not None]
    return any(0 < value < NOTHING for value in known) and all(value < NOTHING for value in known)


def differing(table: pl.DataFrame, by: tuple[str, ...]) -> list[Any]:
    """The rows of a tidy table that differ from the definition."""
    wrong = []
    for row in table.iter_rows(named=True):
        group, name = tuple(row[key] for key in by), row["metric"]
        measure = METRICS[name].tree.measures()[0]
        value, there = row["value"], [bucket for bucket in range(BUCKETS) if (*group, bucket) in expected(by, 1)]
        without = [expected(by, 1)[*group, bucket][name] for bucket in there]
        if is_what_rounding_left([value, row["se"], *without]):
            continue
        if value is None or not isfinite(value) or not has_interval(measure):
            right = Expected(row["n_buckets"])
        else:
            count = samples(by)[group][name] if is_of_samples(METRICS[name]) else None
            right = reference(measure, value, without, [alone(by)[*group, bucket][name] for bucket in there], count)
        for told, should in zip((row[fact] for fact in Expected._fields), right, strict=True):
            if not same(told, should, 1e-6):
                wrong.append((group, name, {fact: row[fact] for fact in Expected._fields}, right))
    return wrong


@pytest.mark.proof
@pytest.mark.parametrize("by", [("fold",), ("world",), tuple(KEYS)], ids=str)
@pytest.mark.parametrize("verb", ["evaluate", "finish"])
def test_an_interval_is_what_the_definition_gives(by: Any, verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(question, "BUCKETS", BUCKETS)
    metrics = [metric.alias(name) for name, metric in METRICS.items()]
    source = worlds() if verb == "evaluate" else mlm.state(worlds(), metrics, by=by, buckets=BUCKETS)
    table = getattr(mlm, verb)(source, metrics, by=by, ci=LEVEL, tidy=True)
    assert table.filter(pl.col("low").is_not_null()).height > 100
    assert differing(table, by) == []


SLICES = [["country"], ["side"], ["country", "side"]]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("road", ["at once", "a query", "in passes"])
def test_the_interval_of_a_slice_is_that_of_its_rows(road: str) -> None:
    frame: Any = users().lazy().filter(pl.col("score") >= 0) if road == "a query" else users()
    passes = 3 if road == "in passes" else None
    asked: dict[str, Any] = {"ci": 0.95, "tidy": True, "passes": passes, "progress": False}
    metrics = HALF if road == "at once" else SUITE
    table = mlm.evaluate(frame, metrics, slices=SLICES, **asked).lazy().collect()
    assert table["low"].null_count() == 0
    for keys in SLICES:
        alone = mlm.evaluate(users(), metrics, by=keys, ci=0.95, tidy=True).drop("n_split")
        assert_frame_equal(table.filter(sliced_by=", ".join(keys)).select(alone.columns), alone, rel_tol=1e-9)


def test_a_wide_table_has_the_ends_beside_each_metric() -> None:
    table = mlm.evaluate(users(), SUITE[:2], by="country", ci=0.95)
    assert table.columns == ["country", "f1", "f1_low", "f1_high", "f1_macro", "f1_macro_low", "f1_macro_high"]
    tidy = mlm.evaluate(users(), SUITE[:2], by="country", ci=0.95, tidy=True)
    assert_series_equal(table["f1_low"], tidy.filter(metric="f1")["low"], check_names=False)
    values = mlm.evaluate(users(), SUITE[:2], by="country")
    assert_frame_equal(table.drop("^.*_(low|high)$"), values, rel_tol=1e-12)


OF_EACH = {"a": mlm.lift_at(q=0.5, average="samples", undefined=0.0), "b": mlm.f1()}


@pytest.mark.parametrize("metric", [*SUITE, mlm.average_score(OF_EACH).alias("of_each")], ids=str)
def test_a_metric_alone_has_the_interval_that_it_has_among_others(metric: mlm.Metric) -> None:
    """Alone, no table is worked out anew for another metric."""
    metrics = list({each.tree.output_name: each for each in (*SUITE, metric)}.values())
    among_others = mlm.evaluate(users(), metrics, by="country", ci=0.95).sort("country")
    alone = mlm.evaluate(users(), metric, by="country", ci=0.95).sort("country")
    assert_frame_equal(alone, among_others.select(alone.columns), rel_tol=1e-12)


@pytest.mark.usefixtures("buckets_of_states")
def test_labels_have_intervals_of_their_own() -> None:
    table = mlm.evaluate(users(), mlm.recall(), mlm.labelwise_precision(), per="label", ci=0.95).sort("label")
    alone = mlm.evaluate(users(), mlm.recall(), by="label", ci=0.95)
    assert_frame_equal(table.select(alone.columns), alone, rel_tol=1e-12)
    assert table["labelwise_precision_low"].null_count() == 0
    state = mlm.state(users(), mlm.recall(average="macro"))
    assert_frame_equal(state.mlm.finish(mlm.recall(), per="label", ci=0.95).sort("label"), alone, rel_tol=1e-12)


def test_a_label_that_is_not_there_has_no_interval() -> None:
    table = mlm.evaluate(users(), mlm.recall(labels=["a", "z"]), per="label", ci=0.95).sort("label")
    assert table.select("label", pl.exclude("label").is_null()).rows() == [("a", *[False] * 3), ("z", *[True] * 3)]


@pytest.mark.usefixtures("buckets_of_states")
def test_rows_of_one_cluster_stay_together() -> None:
    by_user = mlm.evaluate(users(), SUITE, ci=0.95, cluster="user", tidy=True)
    as_sample = mlm.evaluate(users().with_columns(sample="user", old="sample"), SUITE[:2], ci=0.95, tidy=True)
    assert by_user["n_clusters"].to_list() == [80] * len(SUITE)
    facts = ["value", "se", "low", "high", "n_buckets", "n_clusters"]
    assert_frame_equal(by_user.select(facts)[:2], as_sample.select(facts), rel_tol=1e-12)
    state = mlm.state(users(), SUITE, cluster="user")
    finished = mlm.finish(state, SUITE, ci=0.95, tidy=True).select(facts[:-1])
    assert_frame_equal(finished, by_user.select(facts[:-1]), rel_tol=1e-9)


def test_one_cluster_a_bucket_is_the_jackknife() -> None:
    buckets = users().select("sample", bucket_of(["sample"], users().schema, 256)[0].alias("bucket")).unique("bucket")
    rows = users().join(buckets, on="sample", how="semi")
    table = mlm.evaluate(rows, mlm.mae(), ci=0.95, tidy=True).row(0, named=True)
    means = rows.group_by("sample").agg((pl.col("score") - pl.col("truth")).abs().mean())["score"].to_list()
    n = len(means)
    mean = sum(means) / n
    se = sqrt(sum((each - mean) ** 2 for each in means) / (n - 1) / n)
    t = stats.t.ppf(0.975, degrees_of_freedom(n, (each - mean for each in means)))
    assert table["n_buckets"] == n
    assert [table["se"], table["low"], table["high"]] == pytest.approx([se, mean - t * se, mean + t * se], rel=1e-12)


FUNCTIONS = {
    "round": (mlm.f1().round(2), lambda end: round(end, 2)),
    "clip": (mlm.f1().clip(0.5, 0.51), lambda end: min(max(end, 0.5), 0.51)),
    "fill_null": (mlm.f1().fill_null(0), lambda end: end),
    "alias": (mlm.f1().alias("named"), lambda end: end),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_that_is_not_smooth_is_applied_to_the_ends(name: str) -> None:
    metric, function = FUNCTIONS[name]
    plain = mlm.evaluate(users(), mlm.f1(), ci=0.95).row(0)
    assert mlm.evaluate(users(), metric, ci=0.95).row(0) == pytest.approx([function(each) for each in plain])


WHY_NONE = {"no_state", "totals", "extremes", "biased", "undefined_replicates", "degenerate", "few_buckets"}


def flags(frame: pl.DataFrame, *metrics: mlm.Metric, **asked: Any) -> list[str | None]:
    table = mlm.evaluate(frame, list(metrics), ci=0.95, tidy=True, **asked)
    lacking = table.filter(pl.col("low").is_null() & pl.col("value").is_not_null())
    assert set(lacking["ci_flag"]) <= WHY_NONE
    return table["ci_flag"].to_list()


def test_a_flag_says_what_to_know_of_an_interval() -> None:
    few, eight = users().filter(pl.col("sample") < 25), users().filter(pl.col("sample") < 8)
    heavy = users().with_columns(user=pl.when(pl.col("user") < 40).then(0).otherwise("user"))
    perfect = users().with_columns(score=pl.col("truth") * 0.9)
    rare = users().with_columns(truth=pl.col("truth") * (pl.col("sample") == 5))
    assert flags(users(), mlm.f1(), mlm.ks()) == ["ok", "no_state"]
    assert flags(users(), mlm.support(), mlm.n_rows(), mlm.max_error()) == ["totals", "totals", "extremes"]
    assert flags(users(), mlm.f1(average="min"), mlm.calibration_error()) == ["extremes", "biased"]
    assert flags(few, mlm.f1()) == ["low_n"]
    assert flags(eight, mlm.f1()) == ["few_buckets"]
    assert flags(heavy, mlm.f1(), cluster="user") == ["dominant_cluster"]
    assert flags(perfect, mlm.f1(), mlm.mae(), mlm.rmse()) == ["approx", "ok", "ok"]
    assert flags(users().with_columns(score=0.3, truth=1), mlm.mae()) == ["degenerate"]
    assert flags(rare, mlm.recall(), mlm.recall(average="macro")) == ["undefined_replicates", "undefined_replicates"]
    assert flags(users().with_columns(truth=0), mlm.recall()) == [None]
    is_few = pl.col("truth") * (pl.col("sample") < 50)
    few = users().with_columns(truth=pl.when(label="d").then(is_few).otherwise("truth"))
    assert flags(few, mlm.f1(), mlm.f1(average="macro"), mlm.f1(average="weighted")) == [
        "ok",
        "rare_labels",
        "rare_labels",
    ]
    assert flags(few, (mlm.f1(average="macro") - mlm.recall()).alias("difference")) == ["rare_labels"]


def test_a_state_of_several_versions_of_polars_has_no_intervals() -> None:
    rows = users().with_columns(pl.col("sample").cast(pl.String))
    state = mlm.state(rows, mlm.f1())
    text = str(state.schema["state"].categories[0]).replace(f'"polars": "{pl.__version__}"', '"polars": null')
    state = state.with_columns(state=pl.lit(text, dtype=pl.Enum([text])))
    row = mlm.finish(state, mlm.f1(), ci=0.95, tidy=True).row(0, named=True)
    assert (row["low"], row["ci_flag"], row["value"]) == (None, "no_state", mlm.evaluate(rows, mlm.f1()).item())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mlm.evaluate(users(), mlm.f1(), ci=95), "ci must be a number between 0 and 1, such as 0.95, not 95"),
        (lambda: mlm.evaluate(users(), mlm.f1(), ci=True), "not True"),
        (lambda: mlm.evaluate(users(), mlm.f1(), cluster="user"), "cluster= is for intervals: pass ci= too"),
        (lambda: mlm.evaluate(users(), mlm.f1(), ci=0.9, cluster="usr"), "Did you mean 'user'?"),
        (lambda: mlm.evaluate(users(), mlm.f1(), ci=0.9, per="sample"), "a single sample has no interval"),
        (lambda: mlm.evaluate(users(), mlm.ndcg(), ci=0.9, cluster="side"), "has several values in one sample"),
        (lambda: mlm.evaluate(users().drop("sample"), mlm.f1(), ci=0.9), "there is no sample column 'sample'"),
        (lambda: mlm.evaluate(users(), pl.len(), ci=0.9), "'len' is a plain expression, which has no interval"),
        (lambda: mlm.evaluate(users(), mlm.f1(), mlm.f1().alias("f1_low"), ci=0.9), "the name 'f1_low'"),
        (lambda: mlm.finish(mlm.state(users(), mlm.f1(), buckets=0), ci=0.9), "this state has no buckets"),
        (lambda: mlm.finish(mlm.state(users(), mlm.f1()), min_samples=9), "put mlm.n_samples() among its metrics."),
    ],
)
def test_what_is_wrong_is_said(call: Callable[[], object], message: str) -> None:
    with pytest.raises(mlm.MetricError, match=re.escape(message)):
        call()


@pytest.mark.usefixtures("buckets_of_states")
def test_an_infinite_value_of_undefined_units_leaves_the_interval_of_the_others() -> None:
    """No label of these is undefined, so the ends lie around the value: by t, as the range has no end any more."""
    metric = mlm.recall(undefined=inf)
    row = mlm.evaluate(users(), metric, ci=0.95, tidy=True).row(0, named=True)
    plain = mlm.evaluate(users(), mlm.recall(), ci=0.95, tidy=True).row(0, named=True)
    quantile = stats.t.ppf(0.975, plain["n_buckets"] - 1)
    ends = [plain["value"] - quantile * plain["se"], plain["value"] + quantile * plain["se"]]
    assert row["ci_method"] == "t"
    assert [row["low"], row["high"]] == pytest.approx(ends, rel=1e-12)
