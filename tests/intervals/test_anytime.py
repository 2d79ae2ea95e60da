"""Intervals that are right at every look (`anytime=`): their ends and p by hand, and where there are none yet."""

from math import sqrt
from statistics import NormalDist
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal, assert_series_equal

import polars_mlmetrics as mlm
from polars_mlmetrics.intervals.student_t import at_every_look
from tests.intervals.users import users
from tests.support.every_look import away, p_of

TIGHTEST = 500
METRICS = [
    mlm.accuracy(),
    mlm.f1(),
    mlm.f1(average="macro"),
    mlm.log_loss(),
    mlm.mae(),
    mlm.ndcg(),
    (mlm.f1() - mlm.recall()).alias("difference"),
    (1 - mlm.recall()).alias("misses"),
]
WITH_AREAS = [*METRICS, mlm.roc_auc()]
WITH_BINS = [*METRICS, mlm.roc_auc(bins=16).alias("binned")]
RANGES = {"mae": (0.0, float("inf")), "log_loss": (0.0, float("inf")), "difference": (-float("inf"), float("inf"))}


def close(found: pl.Series, right: pl.Series) -> None:
    """Equal, but for rounding."""
    assert_series_equal(found, right, rel_tol=1e-9, abs_tol=0, check_names=False)


def checked(plain: pl.DataFrame, found: pl.DataFrame, alpha: float = 0.05, tightest: int = TIGHTEST) -> int:
    """How many rows of a tidy table have the ends that the standard errors of the other table give."""
    facts = ["metric", "value", "se", "n_rows", "n_buckets", "n_clusters"]
    assert_frame_equal(found.select(facts), plain.select(facts), rel_tol=1e-12, abs_tol=0)
    right = 0
    for row in found.filter(pl.col("ci_flag") != "too_early").to_dicts():
        low, high = RANGES.get(row["metric"], (0.0, 1.0))
        if row["metric"] == "misses":
            low, high = -float("inf"), float("inf")
        half = away(row["n_rows"], alpha, tightest) * row["se"]
        ends = max(low, row["value"] - half), min(high, row["value"] + half)
        assert [row["low"], row["high"]] == pytest.approx(ends, rel=1e-12), row
        assert row["ci_method"] == "anytime"
        right += 1
    return right


# -- ends --------------------------------------------------------------------------------------------------------------


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"by": "country"},
        {"slices": ["country", ["country", "side"]]},
        {"cluster": "user", "slices": ["country"]},
        {"weight": "weight", "cluster": "user"},
        {"per": "label"},
        {"passes": 3, "by": "country", "progress": False},
    ],
    ids=str,
)
def test_an_end_is_as_many_standard_errors_away_as_rows_say(asked: dict[str, Any]) -> None:
    rows = users().with_columns(weight=1.0 + pl.col("user") % 3)
    metrics = METRICS if "weight" in asked or "per" in asked else WITH_AREAS
    if "per" in asked:
        metrics = [mlm.f1(average="macro")]
    plain, found = (
        mlm.evaluate(rows, metrics, ci=0.95, tidy=True, **asked, **more) for more in ({}, {"anytime": TIGHTEST})
    )
    assert checked(plain, found) >= 0.8 * found.height
    if "per" not in asked:
        assert_wide_is_tidy(mlm.evaluate(rows, metrics, ci=0.95, anytime=TIGHTEST, **asked), found)


def assert_wide_is_tidy(wide: pl.DataFrame, tidy: pl.DataFrame) -> None:
    for name, rows in tidy.group_by("metric", maintain_order=True):
        for end in ("low", "high"):
            close(wide[f"{name[0]}_{end}"], rows[end])


@pytest.mark.parametrize(("level", "tightest"), [(0.9, 100), (0.99, 20_000), (0.5, 1)])
def test_the_level_and_the_number_of_rows_are_those_given(level: float, tightest: int) -> None:
    plain, found = (
        mlm.evaluate(users(), WITH_AREAS, ci=level, tidy=True, **more) for more in ({}, {"anytime": tightest})
    )
    assert checked(plain, found, 1 - level, tightest) == len(WITH_AREAS)


def test_the_streaming_engine_gives_the_same() -> None:
    found = mlm.evaluate(users().lazy(), WITH_AREAS, slices=["country"], ci=0.95, tidy=True, anytime=TIGHTEST)
    in_memory, streamed = (found.collect(engine=engine) for engine in ("in-memory", "streaming"))
    assert in_memory.drop("value", "se", "low", "high").equals(streamed.drop("value", "se", "low", "high"))
    for name in ("low", "high"):
        close(in_memory[name], streamed[name])


def test_a_state_with_as_many_buckets_gives_the_same() -> None:
    state = mlm.state(users(), METRICS, by="country", buckets=256)
    of_state = mlm.finish(state, METRICS, by="country", ci=0.95, tidy=True, anytime=TIGHTEST)
    assert_alike(of_state, mlm.evaluate(users(), METRICS, by="country", ci=0.95, tidy=True, anytime=TIGHTEST))


@pytest.mark.usefixtures("buckets_of_states")
def test_a_state_gives_what_its_log_gives() -> None:
    state = mlm.state(users(), WITH_BINS, by="country")
    of_state = mlm.finish(state, WITH_BINS, slices=["country"], ci=0.95, tidy=True, anytime=TIGHTEST)
    assert_alike(of_state, mlm.evaluate(users(), WITH_BINS, slices=["country"], ci=0.95, tidy=True, anytime=TIGHTEST))


def assert_alike(of_state: pl.DataFrame, of_log: pl.DataFrame) -> None:
    assert of_state["ci_flag"].to_list() == of_log["ci_flag"].to_list()
    for name in ("low", "high"):
        assert of_state[name].null_count() < of_state.height / 2
        close(of_state[name], of_log[name])


@pytest.mark.parametrize("level", [1e-300, 0.01, 0.1, 0.5, 0.9, 0.95, 0.999])
def test_an_interval_is_tightest_with_so_many_rows(level: float) -> None:
    """Within 2 % of what any other number would give, but for levels that nobody asks for; always a number."""
    tightest = [2**power for power in range(20)]
    columns = {str(n): at_every_look(pl.lit(1024.0), level, n) for n in tightest}
    found = dict(zip(tightest, pl.select(**columns).row(0), strict=True))
    assert all(number >= 0 for number in found.values())
    assert level == 1e-300 or min(found.values()) > 0
    if level >= 0.5:
        assert found[1024] <= 1.02 * min(found.values())


# -- too early ---------------------------------------------------------------------------------------------------------


def some(n: int, errors: int, n_true: int | None = None) -> pl.DataFrame:
    """So many samples, each a cluster with a bucket of its own, so many of them wrong, so many true, or half."""
    sample = pl.col("sample")
    n_true = n // 2 if n_true is None else n_true
    table = pl.DataFrame({"sample": range(n)}).with_columns(user=sample, truth=sample < n_true)
    is_wrong = (sample * 37 % n).rank("ordinal") <= errors
    return table.with_columns(score=pl.when(is_wrong ^ pl.col("truth")).then(0.8).otherwise(0.2), label=pl.lit("a"))


def flag_of(rows: pl.DataFrame, *metrics: mlm.Metric, **asked: Any) -> list[str]:
    """The flags of some metrics. Those that it is too early for have no ends, and only those."""
    found = mlm.evaluate(rows, *metrics, ci=0.95, anytime=TIGHTEST, tidy=True, cluster="user", **asked)
    is_early = (found["ci_flag"] == "too_early").to_list()
    assert found["low"].is_null().to_list() == found["high"].is_null().to_list() == is_early
    return found["ci_flag"].to_list()


OF_CLASSES = [mlm.accuracy(), mlm.f1(), mlm.recall(), mlm.log_loss(), mlm.brier_score()]


@pytest.mark.parametrize(("clusters", "flag"), [(2, "too_early"), (29, "too_early"), (30, "ok")])
def test_there_are_no_ends_before_30_clusters(clusters: int, flag: str) -> None:
    rows = some(clusters, clusters // 2)
    # Each cluster has rows enough of either class.
    many = pl.concat([rows.with_columns(sample=pl.col("sample") + 1_000 * copy) for copy in range(20)])
    assert flag_of(many, mlm.accuracy(), mlm.brier_score()) == [flag] * 2


@pytest.mark.parametrize("n_true", [29, 30, 220, 221])
def test_there_are_no_ends_before_30_rows_of_each_class(n_true: int) -> None:
    flags = flag_of(some(250, 100, n_true), *OF_CLASSES, mlm.mae())
    expected = "ok" if 30 <= n_true <= 220 else "too_early"
    assert flags[:3] == [expected] * 3
    assert ("too_early" in flags[3:5]) == (expected == "too_early")
    assert flags[5] == "ok"  # of numbers, not of classes


@pytest.mark.parametrize(("errors", "flag"), [(0, "too_early"), (1, "too_early"), (9, "too_early"), (11, "ok")])
def test_there_are_no_ends_while_few_errors_decide(errors: int, flag: str) -> None:
    assert flag_of(some(250, errors), mlm.accuracy(), mlm.log_loss()) == [flag] * 2


def test_there_are_no_ends_of_an_average_before_30_true_rows_of_each_label() -> None:
    for n_true, flag in ((29, "too_early"), (30, "ok")):
        rows = pl.concat([some(250, 100), some(250, 100, n_true).with_columns(label=pl.lit("b"))])
        assert flag_of(rows, mlm.f1(average="macro")) == [flag]
        by_label = mlm.evaluate(rows, mlm.f1(average="macro"), per="label", ci=0.95, anytime=TIGHTEST)
        assert by_label["f1_low"].is_null().to_list() == [False, flag == "too_early"]


def test_exact_areas_wait_for_the_rarer_class_too() -> None:
    found = [flag_of(some(250, 100, n_true), mlm.roc_auc(), by="label") for n_true in (29, 60)]
    assert found == [["too_early"], ["ok"]]


def two_classes(n: int, apart: float) -> pl.DataFrame:
    """So many rows of each class, whose scores lie so many standard deviations apart."""
    quantile = [NormalDist().inv_cdf((place + 0.5) / n) for place in range(n)]
    scores = [*quantile, *(value + apart for value in quantile)]
    rows = pl.DataFrame({"score": scores, "truth": [False] * n + [True] * n}).with_row_index("sample")
    return rows.with_columns(user="sample", label=pl.lit("a"), score=1 / (1 + (-pl.col("score")).exp()))


AREAS = [
    mlm.roc_auc(),
    mlm.gini(),
    mlm.average_precision(),
    mlm.roc_auc(bins=64).alias("binned"),
    mlm.roc_auc(average="macro").alias("averaged"),
    mlm.roc_auc().round(3).alias("rounded"),
]


@pytest.mark.parametrize(("n", "apart"), [(60, 1.0), (200, 2.5), (200, 3.0), (800, 3.0), (800, 3.5)])
def test_areas_near_an_end_of_their_range_wait_for_what_30_errors_would_tell(n: int, apart: float) -> None:
    rows = two_classes(n, apart)
    plain = mlm.evaluate(rows, AREAS, ci=0.95, cluster="user", tidy=True)
    flags = dict(zip(plain["metric"], flag_of(rows, *AREAS), strict=True))
    for metric, value, se in plain.select("metric", "value", "se").rows():
        low = -1.0 if metric == "gini" else 0.0
        share, error = (value - low) / (1 - low), se / (1 - low)
        units = share * (1 - share) / error**2
        is_skewed = abs(1 - 2 * share) / sqrt(units * share * (1 - share)) > 1 / sqrt(30)
        assert flags[metric] == ("too_early" if is_skewed else "ok"), (metric, value, se)
    assert set(flags.values()) == {"ok" if apart == 1.0 or (n, apart) == (800, 3.0) else "too_early"}, flags


def test_other_shares_near_an_end_of_their_range_wait_for_less() -> None:
    rows = some(1_000, 12)
    assert flag_of(rows, mlm.accuracy(), mlm.f1(), mlm.roc_auc(bins=64)) == ["ok", "ok", "too_early"]


@pytest.mark.parametrize(("rows", "is_early"), [(some(20, 10), True), (some(250, 100, 29), True), (some(250, 5), True),
                                                (some(250, 100), False)])  # fmt: skip
def test_a_state_waits_too(rows: pl.DataFrame, is_early: bool) -> None:
    of_state = mlm.finish(mlm.state(rows, OF_CLASSES), ci=0.95, anytime=TIGHTEST, tidy=True)
    assert set(of_state["ci_flag"] == "too_early") == {is_early}
    assert set(of_state["low"].is_null()) == {is_early}


def test_a_gate_lets_what_is_too_early_through_as_insufficient() -> None:
    table = mlm.evaluate(some(250, 5), mlm.accuracy(), ci=0.95, anytime=TIGHTEST, tidy=True)
    assert mlm.gate(table, {"sure": pl.col("low") >= 0.5})["status"].to_list() == ["insufficient"]


# -- differences -------------------------------------------------------------------------------------------------------


def models(rows: pl.DataFrame) -> pl.DataFrame:
    """Three models; the second is better, the third is as good as the first."""
    row = pl.int_range(pl.len())
    better = pl.col("score") * 0.7 + pl.col("truth") * 0.3
    same = pl.col("score") + (row * 31 % 101 - 50) / 400
    return pl.concat(
        rows.with_columns(score=score.clip(0.01, 0.99), model=pl.lit(name))
        for name, score in {"a": pl.col("score"), "b": better, "c": same}.items()
    )


COMPARED = [mlm.accuracy(), mlm.f1(), mlm.f1(average="macro"), mlm.log_loss(), mlm.roc_auc(bins=16)]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("is_state", [False, True])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_p_and_ends_agree(level: float, is_state: bool) -> None:
    log_ = models(users())
    frame = mlm.state(log_, COMPARED, by=["model", "country"], between="model") if is_state else log_
    asked: dict[str, Any] = {"baseline": "a", "slices": ["country"], "ci": level, "adjust": None}
    plain, found = (mlm.compare(frame, COMPARED, **asked, **more) for more in ({}, {"anytime": TIGHTEST}))
    excludes = (found["low"] > 0) | (found["high"] < 0)
    assert (found["p"] < 1 - level).to_list() == excludes.to_list()
    assert {True, False} <= set(excludes)
    close(found["difference"], plain["difference"])
    assert found["mde"].is_null().all()
    is_judged = found["verdict"].is_in(["better", "worse"]) | (found["ci_flag"] == "coarse_bins")
    assert (excludes & ~is_judged).any() is False
    assert (~excludes & found["verdict"].is_in(["better", "worse"])).any() is False
    assert found["p_adjusted"].equals(found["p"])


def test_p_is_the_level_at_which_an_end_is_0() -> None:
    log_ = models(users())
    found = mlm.compare(log_, COMPARED, baseline="a", anytime=TIGHTEST, adjust=None)
    for row in found.to_dicts():
        rows = users().height
        se = (row["high"] - row["low"]) / 2 / away(rows, 0.05, TIGHTEST)
        assert row["p"] == pytest.approx(p_of(row["difference"] / se, rows, 0.05, TIGHTEST), rel=1e-9, abs=1e-300)


def test_rows_of_a_difference_are_those_of_the_smaller_side() -> None:
    rows = models(users())
    fewer = rows.filter((pl.col("model") == "a") | (pl.col("sample") % 2 == 0))
    state = mlm.state(fewer, mlm.log_loss(), by="model")
    found, other = (
        mlm.compare(state, mlm.log_loss(), baseline="a", anytime=anytime).filter(model="b")
        for anytime in (TIGHTEST, 50)
    )
    widths = [(table["high"] - table["low"]).item() for table in (found, other)]
    assert widths[0] / widths[1] == pytest.approx(away(480, 0.05, TIGHTEST) / away(480, 0.05, 50), rel=1e-9)


def test_nothing_is_judged_while_it_is_too_early() -> None:
    found = mlm.compare(models(users()).filter(pl.col("sample") < 29), COMPARED, baseline="a", anytime=9, margin=1.0)
    assert set(found["ci_flag"]) == {"too_early"}
    for name in ("low", "high", "p", "p_adjusted", "verdict", "mde"):
        assert found[name].is_null().all()


def test_models_that_are_equal_so_far_are_not_known_to_be_equal() -> None:
    same = pl.concat([users().with_columns(model=pl.lit(name)) for name in ("a", "b")])
    found = mlm.compare(same, mlm.f1(), baseline="a", margin=0.1, anytime=TIGHTEST)
    assert found.select("difference", "verdict", "ci_flag").row(0) == (0.0, None, "too_early")
    assert mlm.compare(same, mlm.f1(), baseline="a", margin=0.1)["verdict"].item() == "no change"


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [0, -3, 1.5, 20_000.0, True, "20_000", 2**63, 10**400])
def test_anytime_is_a_number_of_rows(given: Any) -> None:
    state = mlm.state(users(), mlm.f1())
    calls = [
        lambda: mlm.evaluate(users(), mlm.f1(), ci=0.95, anytime=given),
        lambda: mlm.finish(state, ci=0.95, anytime=given),
        lambda: mlm.compare(models(users()), mlm.f1(), baseline="a", anytime=given),
    ]
    for call in calls:
        with pytest.raises(mlm.ParameterError, match=f"whole number of at least 1: .* 20_000, not {given!r}"):
            call()


@pytest.mark.parametrize(("ci", "words"), [(None, r"ci=0\.95\.$"), ("bootstrap", r"ci=0\.95, not 'bootstrap'\.$")])
def test_anytime_needs_a_level(ci: Any, words: str) -> None:
    with pytest.raises(mlm.ParameterError, match=f"pass a number as ci too, such as {words}"):
        mlm.evaluate(users(), mlm.f1(), ci=ci, anytime=TIGHTEST)
    with pytest.raises(mlm.ParameterError, match=f"pass a number as ci too, such as {words}"):
        mlm.finish(mlm.state(users(), mlm.f1()), ci=ci, anytime=TIGHTEST)
