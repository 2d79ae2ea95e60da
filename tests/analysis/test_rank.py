"""`rank`: places of models by Holm's method, against the paired t of plain numpy where no bucket has two samples."""

from itertools import combinations

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import stats

import polars_mlmetrics as mlm
from polars_mlmetrics.intervals.student_t import holm
from polars_mlmetrics.query.complete_samples import CompleteSamples

RANDOM = np.random.default_rng(5)
N, MODELS = 120, ["a", "b", "c", "d"]
SCORES = np.clip(0.5 + np.array([0.0, 0.02, 0.1, 0.25])[:, None] + 0.1 * RANDOM.normal(size=(4, N)), 0, 1)
LOG = pl.concat(
    pl.DataFrame({"model": model, "sample": range(N), "score": scores, "truth": 1.0, "side": np.arange(N) % 2})
    for model, scores in zip(MODELS, SCORES, strict=True)
)


def places(table: pl.DataFrame) -> dict[str, tuple[int, int]]:
    return {row["model"]: (row["rank_low"], row["rank_high"]) for row in table.rows(named=True)}


def test_places_are_those_of_paired_t_and_holm() -> None:
    errors = (SCORES - 1) ** 2
    pairs = list(combinations(range(4), 2))
    p = [stats.ttest_rel(errors[one], errors[other]).pvalue for one, other in pairs]
    better = dict.fromkeys(range(4), 0)
    worse = dict(better)
    for step, place in enumerate(np.argsort(p)):
        if p[place] * (len(p) - step) >= 0.05:
            break
        low, high = sorted(pairs[place], key=lambda model: errors[model].mean())
        worse[low] += 1
        better[high] += 1
    expected = {name: (1 + better[place], 4 - worse[place]) for place, name in enumerate(MODELS)}
    # Of few named clusters each has a bucket of its own.
    table = mlm.rank(LOG.with_columns(user="sample"), mlm.mse(), cluster="user")
    assert places(table) == expected
    assert table["model"][0] == "d"
    assert table["n_samples"].to_list() == [N] * 4


def test_holm() -> None:
    table = pl.DataFrame({"p": [0.01, 0.04, 0.01, None], "family": 1}).with_columns(q=holm(["family"]))
    assert table["q"].to_list() == pytest.approx([0.04, 0.08, 0.04, None])


@pytest.mark.parametrize("of", [["a", "b"], ["b", "a"]])
@pytest.mark.parametrize("metric", [mlm.mse(), mlm.log_loss()])
def test_two_models_agree_with_compare(of: list[str], metric: mlm.Metric) -> None:
    log = LOG.filter(pl.col("model").is_in(of)).with_columns(pl.col("score").clip(0.01, 0.99))
    p = mlm.compare(log, metric, baseline=of[0])["p"].item()
    assert mlm.rank(log, metric, ci=1 - p * 1.001)["rank_low"].to_list() == [1, 2]
    assert mlm.rank(log, metric, ci=1 - p * 0.999)["rank_low"].to_list() == [1, 1]


def test_equal_models_are_tied() -> None:
    log = pl.concat([LOG.filter(model="a").with_columns(model=pl.lit(name)) for name in "xyz"])
    table = mlm.rank(log, mlm.mse())
    assert places(table) == dict.fromkeys("xyz", (1, 3))
    assert table["ci_flag"].unique().to_list() == ["degenerate"]


def test_equal_models_come_by_name_whatever_their_last_digits_are() -> None:
    scores = {"a": [0.1, 0.2, 0.3], "b": [0.3, 0.2, 0.1]}
    assert sum(scores["a"]) > sum(scores["b"])  # though they are equal
    log = pl.DataFrame(
        {"model": name, "sample": range(3), "score": each, "truth": 0.0} for name, each in scores.items()
    )
    table = mlm.rank(log.explode("sample", "score"), mlm.mae())
    assert table["model"].to_list() == ["a", "b"]


def test_samples_that_some_lack_are_left_out() -> None:
    lacks = (pl.col("model") == "b") & (pl.col("sample") < 20)
    log = LOG.with_columns(score=pl.when(~lacks).then("score"))
    expected = mlm.rank(LOG.filter(pl.col("sample") >= 20), mlm.mse())
    found = mlm.rank(log, mlm.mse())
    assert_frame_equal(found.drop("n_left_out"), expected.drop("n_left_out"))
    assert found["n_left_out"].to_list() == [20] * 4


def test_groups_and_slices_are_ranked_alone() -> None:
    grouped, sliced = mlm.rank(LOG, mlm.mse(), by="side"), mlm.rank(LOG, mlm.mse(), slices=["side"])
    assert_frame_equal(sliced.filter(pl.col("slice") != "").select(grouped.columns), grouped)
    assert_frame_equal(mlm.rank(LOG.lazy(), mlm.mse(), slices=["side"]).collect(), sliced)


def test_a_model_without_a_value_has_no_place() -> None:
    log = LOG.with_columns(score=pl.when(pl.col("model") != "a").then("score"))
    table = mlm.rank(log, mlm.mse())
    assert places(table)["a"] == (None, None)
    assert table["rank_high"].max() == 3


def test_values_that_are_not_finite_have_no_place_and_are_no_error() -> None:
    table = mlm.rank(LOG, mlm.specificity(undefined=float("inf")))
    assert table.select("value", "rank_low", "n_samples", "ci_flag").unique().rows() == [(float("inf"), None, N, None)]


@pytest.mark.usefixtures("buckets_of_states")
def test_a_state_of_pairs_has_the_ranks_of_its_log() -> None:
    state = mlm.state(LOG, mlm.mse(), by="model", between="model", buckets=64)
    found, expected = mlm.rank(state, mlm.mse()), mlm.rank(LOG, mlm.mse())
    assert places(found) == places(expected)
    columns = ["model", "value", "rank_low", "rank_high", "n_samples", "n_buckets", "ci_flag"]
    assert_frame_equal(found.select(columns), expected.select(columns), rel_tol=1e-9)


def test_exact_areas_are_not_judged() -> None:
    table = mlm.rank(LOG.with_columns(truth=pl.col("sample") % 2), mlm.roc_auc())
    assert set(places(table).values()) == {(1, 4)}
    assert table["ci_flag"].unique().to_list() == ["no_state"]


OF_TWO_SCORES = (mlm.accuracy() + mlm.accuracy().on(score="other")).alias("both")


@pytest.mark.parametrize("metric", [mlm.log_loss(), OF_TWO_SCORES])
@pytest.mark.parametrize("lacking", ["nothing", "models", "scores", "other scores", "rows"])
def test_no_sample_is_looked_up_where_all_models_have_the_same(
    lacking: str, metric: mlm.Metric, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer is that of looking up each. Samples are of two rows, which may lie in two slices."""
    random = np.random.default_rng(3)
    rows = pl.DataFrame({"sample": np.arange(80) // 2, "truth": random.integers(0, 2, 80)})
    rows = rows.with_columns(country=pl.Series(random.choice(["a", "b"], 80)), day=pl.col("sample") % 3)
    scored = [rows.with_columns(model=pl.lit(model), score=pl.Series(random.random(80))) for model in "xyz"]
    table, place = pl.concat(scored).with_columns(other=1 - pl.col("score")), pl.int_range(pl.len())
    if lacking == "models":
        # No model is there on all days, and one has no other score on one of them.
        absent = pl.concat_str("model", "day").is_in(["x0", "y1", "z2"])
        other = pl.when(pl.concat_str("model", "day") != "x1").then("other")
        table = table.filter(~absent).with_columns(other=other)
    if lacking == "scores":
        table = table.with_columns(score=pl.when(place % 37 != 5).then("score"))
    if lacking == "other scores":
        table = table.with_columns(other=pl.when(place % 37 != 5).then("other"))
    if lacking == "rows":
        table = table.filter(place % 41 != 7)
    found = mlm.rank(table, metric, by="day", slices=["country"])
    monkeypatch.setattr(CompleteSamples, "are_alike", lambda *_: False)
    is_complete = lacking in ("nothing", "models") or (lacking == "other scores" and metric is not OF_TWO_SCORES)
    assert (found["n_left_out"].sum() == 0) is is_complete
    assert found["n_samples"].sum() > 0
    assert_frame_equal(found, mlm.rank(table, metric, by="day", slices=["country"]), rel_tol=1e-9)
