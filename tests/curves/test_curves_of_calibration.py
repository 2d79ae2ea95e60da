"""Calibration curves: the bins of `calibration_error`, by numpy."""

import itertools
import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm

RNG = np.random.default_rng(13)


def log_of(n: int = 500) -> pl.DataFrame:
    scores = np.concatenate([[0.0, 1.0, 0.25, 0.5], RNG.random(n - 4) ** 2])
    log = pl.DataFrame(
        {"sample": np.arange(n), "score": scores, "truth": RNG.random(n) < scores, "w": RNG.random(n) + 0.1}
    )
    unknown = pl.int_range(n) % 13 == 5
    return log.with_columns(score=pl.when(~unknown).then("score"), model=pl.int_range(n) % 3)


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("bins", [4, 15])
def test_bins_are_those_of_numpy(weight: str | None, bins: int) -> None:
    log = log_of()
    found = mlm.curve(log, "calibration", by="model", bins=bins, weight=weight)
    assert found.columns == ["model", "bin", "score", "truth", "n_rows", "bin_low", "bin_high"]
    for (model,), rows in found.group_by("model"):
        group = log.filter(pl.col("score").is_not_null(), model=model)
        scores, truth = group["score"].to_numpy(), group["truth"].to_numpy()
        weights = group[weight].to_numpy() if weight else np.ones(len(scores))
        numbers = np.minimum(np.floor(scores * bins), bins - 1).astype(int)
        assert rows["bin"].to_list() == sorted(set(numbers.tolist()))
        for number, score, share, n_rows, low, high in rows.drop("model").rows():
            own = numbers == number
            assert n_rows == own.sum()
            assert score == pytest.approx(np.average(scores[own], weights=weights[own]), rel=1e-12)
            assert share == pytest.approx(np.average(truth[own], weights=weights[own]), rel=1e-12)
            assert (low, high) == pytest.approx((number / bins, (number + 1) / bins))


def test_the_default_is_that_of_calibration_error() -> None:
    log = log_of()
    found = mlm.curve(log, "calibration")
    gaps = (found["score"] - found["truth"]).abs() * found["n_rows"]
    assert gaps.sum() / found["n_rows"].sum() == pytest.approx(log.select(mlm.calibration_error()).item())


def test_intervals_are_those_of_the_share_of_true_rows_in_a_bin() -> None:
    log = log_of()
    found = mlm.curve(log, "calibration", by="model", bins=3, ci=0.9)
    for model, number, *told in found.select("model", "bin", "truth", "low", "high").rows():
        rows = log.filter(((pl.col("score") * 3).floor().clip(0, 2) == number), model=model)
        assert told == pytest.approx(mlm.evaluate(rows, mlm.prevalence(), ci=0.9).row(0))


def test_a_slice_has_the_bins_of_its_rows() -> None:
    log = log_of()
    found = mlm.curve(log, "calibration", slices=["model"], bins=5)
    of_rows = mlm.curve(log.filter(model=1), "calibration", bins=5)
    assert_frame_equal(found.filter(slice="model=1")[:, 3:], of_rows, rel_tol=1e-12)
    assert_frame_equal(found.filter(slice="")[:, 3:], mlm.curve(log, "calibration", bins=5), rel_tol=1e-12)


def test_a_group_without_a_curve_has_one_row() -> None:
    nan = float("nan")
    log = pl.DataFrame(
        {"model": ["bad", "bad", "far", "none"], "score": [nan, 0.5, 1.5, None], "truth": [True, False, True, True]}
    )
    found = mlm.curve(log, "calibration", by="model", bins=2)
    expected = [("bad", nan, 2), ("far", nan, 1), ("none", None, 0)]
    assert str(found.rows()) == str([(model, None, value, value, n, None, None) for model, value, n in expected])
    assert mlm.curve(log.filter(model="none"), "calibration").rows() == [(None, None, None, 0, None, None)]


@pytest.mark.parametrize("weight", [None, "w"])
def test_the_parts_of_a_brier_score_are_those_of_the_bins(weight: str | None) -> None:
    known = log_of().filter(pl.col("score").is_not_null())
    scores, truth = known["score"].to_numpy(), known["truth"].to_numpy().astype(float)
    weights = known[weight].to_numpy() if weight else np.ones(len(scores))
    numbers = np.minimum(np.floor(scores * 15), 14)
    of_all = np.average(truth, weights=weights)
    reliability = resolution = 0.0
    for number in np.unique(numbers):
        own = numbers == number
        share = weights[own].sum() / weights.sum()
        promised, held = (np.average(values[own], weights=weights[own]) for values in (scores, truth))
        reliability += share * (promised - held) ** 2
        resolution += share * (held - of_all) ** 2
    uncertainty = np.average((truth - of_all) ** 2, weights=weights)
    parts = [mlm.brier_reliability(), mlm.brier_resolution(), mlm.brier_uncertainty()]
    found = mlm.evaluate(known, parts, weight=weight).row(0)
    assert found == pytest.approx((reliability, resolution, uncertainty), rel=1e-12)


@pytest.mark.parametrize("bins", [1, 3, 10, 22, 100, 127])
@pytest.mark.parametrize("lazy", [False, True], ids=["DataFrame", "LazyFrame"])
@pytest.mark.parametrize("held", [False, True], ids=["log", "state"])
def test_a_bin_begins_at_its_edge_whatever_is_rounded(bins: int, lazy: bool, held: bool) -> None:
    """An edge is k / bins as Python has it: 0.3, not 0.30000000000000004. A score at it is in, the one below is not."""
    edges = [k / bins for k in range(bins + 1)]
    scores = [*edges, *(math.nextafter(edge, 0) for edge in edges[1:])]
    log = pl.DataFrame({"sample": range(len(scores)), "score": scores, "truth": [True] * len(scores)})
    frame: Any = log.lazy() if lazy else log
    if held:
        frame = mlm.state(frame, mlm.calibration_error(bins=bins), mlm.brier_resolution(bins=bins))
    found = mlm.curve(frame, "calibration", bins=bins).lazy().collect()
    assert found.select("bin", "bin_low", "bin_high").rows() == list(
        zip(range(bins), edges[:-1], edges[1:], strict=True)
    )
    # Of each bin its edge and the score below the next; 1 is in the last bin too.
    assert found["n_rows"].to_list() == [2] * (bins - 1) + [3]
    means = [(low + math.nextafter(high, 0)) / 2 for low, high in itertools.pairwise(edges)]
    assert found["score"].to_list()[:-1] == pytest.approx(means[:-1], rel=1e-12)


def test_the_error_of_calibration_has_the_bins_of_these_edges() -> None:
    """0.29 and 0.295 are one bin of a hundred: gaps of 0.29 - 1 and of 0.295 - 0 cancel in part, as by hand."""
    log = pl.DataFrame({"score": [0.29, 0.295, 0.285], "truth": [1, 0, 1]})
    expected = (abs(0.29 + 0.295 - 1) + abs(0.285 - 1)) / 3
    assert log.select(mlm.calibration_error(bins=100)).item() == pytest.approx(expected, rel=1e-12)
    assert mlm.evaluate(log, mlm.calibration_error(bins=100)).item() == pytest.approx(expected, rel=1e-12)
