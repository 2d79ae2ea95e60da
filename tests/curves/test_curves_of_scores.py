"""How scores are spread, by truth: the histograms of numpy, for each class."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm

COLUMNS = ["bin", "bin_low", "bin_high", "negatives", "positives", "share_of_negatives", "share_of_positives"]
NAN = float("nan")


def log_of(seed: int, n: int = 400) -> pl.DataFrame:
    """Scores with ties, many of them on the edge of a bin, in groups of which each lacks a thing.

    Of "one" no row is true, of "none" none is known, "bad" has a NaN, and "light" weighs nothing.
    """
    random = np.random.default_rng(seed)
    scores = random.random(n) ** 2
    scores = np.where(random.random(n) < 0.5, np.round(scores, 2), scores)
    scores[:3] = 0.0, 1.0, 0.5
    log = pl.DataFrame({"sample": np.arange(n), "score": scores, "truth": random.random(n) < 0.3 + scores / 2})
    log = log.with_columns(model=pl.Series(random.choice(["many", "few", "one", "none", "bad", "light"], n)))
    model, unknown = pl.col("model"), pl.Series(random.random(n) < 0.1)
    return log.with_columns(
        score=pl.when(unknown | (model == "none")).then(None).when(model == "bad").then(NAN).otherwise("score"),
        truth=pl.col("truth") & (model != "one"),
        w=pl.when(model == "light").then(0.0).otherwise(pl.Series(random.exponential(size=n))),
        side=pl.Series(random.integers(0, 3, n)),
    )


def spread(rows: pl.DataFrame, bins: int, weight: str | None) -> list[tuple[Any, ...]]:
    """The rows of a curve of scores, by numpy."""
    rows = rows.drop_nulls("score")
    if rows.is_empty():
        return [(None,) * len(COLUMNS)]
    if rows["score"].is_nan().any():
        return [(None, None, None, NAN, NAN, NAN, NAN)]
    edges = [k / bins for k in range(bins + 1)]
    counts, shares = [], []
    for truth in (False, True):
        own = rows.filter(pl.col("truth") == truth)
        weights = own[weight].to_numpy() if weight else None
        heights = np.histogram(own["score"].to_numpy(), np.array(edges), weights=weights)[0].tolist()
        counts.append(heights)
        shares.append([height / sum(heights) if sum(heights) else None for height in heights])
    return list(zip(range(bins), edges[:-1], edges[1:], *counts, *shares, strict=True))


def expected_of(log: pl.DataFrame, bins: int, weight: str | None) -> pl.DataFrame:
    """The curve by model, by numpy."""
    schema = {"model": pl.String, "bin": pl.Int64, **dict.fromkeys(COLUMNS[1:], pl.Float64)}
    groups = sorted(log["model"].unique())
    rows = [(model, *row) for model in groups for row in spread(log.filter(model=model), bins, weight)]
    return pl.DataFrame(rows, schema, orient="row")


def in_memory(frame: pl.DataFrame, **options: Any) -> pl.DataFrame:
    return mlm.curve(frame, "scores", **options)


def streamed(frame: pl.DataFrame, **options: Any) -> pl.DataFrame:
    found = mlm.curve(frame.lazy(), "scores", **options)
    assert isinstance(found, pl.LazyFrame)
    return found.collect(engine="streaming")


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("bins", [1, 7, 20, 100])
@pytest.mark.parametrize("curve", [in_memory, streamed])
def test_bins_are_those_of_numpy(curve: Callable[..., pl.DataFrame], bins: int, weight: str | None, seed: int) -> None:
    log = log_of(seed)
    found, expected = curve(log, by="model", bins=bins, weight=weight), expected_of(log, bins, weight)
    # Without weights counts are exact.
    assert_frame_equal(found, expected, rel_tol=1e-12, abs_tol=0)
    if weight is None:
        assert_frame_equal(found[:, :6], expected[:, :6], check_exact=True)


@pytest.mark.parametrize("weight", [None, "w"])
def test_a_slice_has_the_bins_of_its_rows(weight: str | None) -> None:
    log = log_of(4)
    found = mlm.curve(log, "scores", by="model", slices=["side"], bins=5, weight=weight)
    assert found.columns == ["model", "sliced_by", "slice", "side", *COLUMNS]
    assert found["slice"].unique().sort().to_list() == ["", "side=0", "side=1", "side=2"]
    for (side,), rows in log.group_by("side"):
        of_slice = found.filter(slice=f"side={side}").drop("sliced_by", "slice", "side")
        assert_frame_equal(of_slice, expected_of(rows, 5, weight), rel_tol=1e-12, abs_tol=0)
    whole = found.filter(slice="").drop("sliced_by", "slice", "side")
    assert_frame_equal(whole, expected_of(log, 5, weight), rel_tol=1e-12, abs_tol=0)


def test_there_are_twenty_bins_unless_others_are_given() -> None:
    log = log_of(5).filter(model="many")
    assert_frame_equal(mlm.curve(log, "scores"), mlm.curve(log, "scores", bins=20))


@pytest.mark.parametrize("bins", [1, 3, 10, 22, 100, 127])
def test_a_bin_begins_at_its_edge_whatever_is_rounded(bins: int) -> None:
    edges = [k / bins for k in range(bins + 1)]
    below = [math.nextafter(edge, 0) for edge in edges[1:]]
    log = pl.DataFrame({"score": [*edges, *below], "truth": [1] * len(edges) + [0] * len(below)})
    found = mlm.curve(log, "scores", bins=bins)
    assert found.select("bin_low", "bin_high").rows() == list(itertools.pairwise(edges))
    assert found["negatives"].to_list() == [1] * bins
    assert found["positives"].to_list() == [1] * (bins - 1) + [2]  # 1 is in the last bin too


def test_the_cells_are_those_of_the_calibration_curve() -> None:
    log = log_of(6).filter(pl.col("model").is_in(["many", "few"]))
    scores = mlm.curve(log, "scores", by="model", bins=9)
    calibration = mlm.curve(log, "calibration", by="model", bins=9)
    both = scores.join(calibration, on=["model", "bin", "bin_low", "bin_high"], how="full", validate="1:1")
    assert both["n_rows"].fill_null(0).to_list() == (both["negatives"] + both["positives"]).to_list()


@pytest.mark.parametrize("scores", [[0.2, 1.5], [0.2, -3.0], [0.2, NAN]])
def test_a_score_that_is_no_probability_breaks_its_group(scores: list[float]) -> None:
    log = pl.DataFrame({"model": ["a", "a", "b"], "score": [*scores, 0.5], "truth": [1, 0, 1]})
    found = mlm.curve(log, "scores", by="model", bins=2)
    assert str(found.row(0)) == str(("a", None, None, None, NAN, NAN, NAN, NAN))
    assert found.rows()[1:] == [("b", 0, 0.0, 0.5, 0.0, 0.0, None, 0.0), ("b", 1, 0.5, 1.0, 0.0, 1.0, None, 1.0)]


def test_no_rows_are_one_row_without_a_bin_and_no_groups() -> None:
    nothing = log_of(7).clear()
    assert mlm.curve(nothing, "scores").rows() == [(None,) * len(COLUMNS)]
    assert mlm.curve(nothing, "scores", by="model").is_empty()


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("names", [["brier_resolution"], ["brier_resolution", "calibration_error", "roc_auc", "f1"]])
def test_a_state_has_the_bins_of_its_rows(names: list[str], weight: str | None) -> None:
    log = log_of(8)
    metrics = [mlm.CATALOGUE[name](**({} if name == "f1" else {"bins": 12})) for name in names]
    parts = [log.filter(pl.col("sample") < 150), log.filter(pl.col("sample") >= 150)]
    state = pl.concat([mlm.state(part, *metrics, by=["model", "side"], weight=weight) for part in parts])
    options: dict[str, Any] = {"by": "model", "slices": ["side"]}
    of_log = mlm.curve(log, "scores", bins=12, weight=weight, **options)
    # The rows that are not true are all less the true ones: a sum of weights is rounded.
    assert_frame_equal(mlm.curve(state, "scores", **options), of_log, rel_tol=1e-12, abs_tol=1e-12)
    lazy = mlm.curve(state.lazy(), "scores", bins=12, **options)
    assert isinstance(lazy, pl.LazyFrame)
    assert_frame_equal(lazy.collect(engine="streaming"), of_log, rel_tol=1e-12, abs_tol=1e-12)


def test_a_weight_that_is_next_to_nothing_is_not_lost_and_in_a_state_not_below_nothing() -> None:
    weights = [1e-20, 0.1, 0.2, 0.3, 0.7, 1e-20, 1e16, 1.0]
    log = pl.DataFrame({"sample": range(8), "score": 0.5, "truth": [0, 1, 1, 1, 1, 0, 1, 1], "w": weights})
    assert mlm.curve(log, "scores", bins=1, weight="w")["negatives"].item() == 2e-20
    states = [mlm.state(rows, mlm.brier_resolution(bins=1), weight="w") for rows in log.iter_slices(2)]
    found = mlm.curve(pl.concat(states), "scores")
    assert found["negatives"].item() >= 0
    assert found["share_of_positives"].item() == 1


@pytest.mark.parametrize(
    ("bins", "message"),
    [
        (None, r"holds no scores curve with 20 bins: make it with brier_resolution\(bins=20\) among its metrics"),
        (5, r"holds no scores curve with 5 bins: make it with brier_resolution\(bins=5\) among its metrics"),
    ],
)
def test_what_a_state_lacks_is_said(bins: int | None, message: str) -> None:
    state = mlm.state(log_of(9), mlm.calibration_error(bins=9), mlm.roc_auc(bins=9))
    with pytest.raises(mlm.StateError, match=message):
        mlm.curve(state, "scores", bins=bins)


def test_what_is_refused() -> None:
    log = log_of(10)
    with pytest.raises(mlm.ParameterError, match="kind 'scores' has no intervals: a row of it has two values"):
        mlm.curve(log, "scores", ci=0.9)
    with pytest.raises(mlm.ParameterError, match="kind 'scores' takes no metrics"):
        mlm.curve(log, "scores", mlm.f1())
    with pytest.raises(mlm.ParameterError, match="bins must be a whole number of at least 1"):
        mlm.curve(log, "scores", bins=0)
    with pytest.raises(mlm.NameCollisionError, match="would have the name 'negatives'"):
        mlm.curve(log, "scores", by=pl.col("side").alias("negatives"))
