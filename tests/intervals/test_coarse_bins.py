"""Areas of merged scores: how far the cells may put them off, and that a flag says so."""

from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_mlmetrics as mlm

BINS = 64


def log(seed: int, n: int, power: float, *, weighted: bool = False) -> pl.DataFrame:
    """Scores that tell true rows from others a little; a high power crowds them into few cells."""
    random = np.random.default_rng(seed)
    truth = random.integers(0, 2, n)
    score = (1 / (1 + np.exp(-truth - random.normal(size=n)))) ** power
    weight = random.integers(1, 4, n) if weighted else np.ones(n)
    return pl.DataFrame({"sample": range(n), "truth": truth, "score": score, "weight": weight.astype(float)})


def metrics_of(bins: int | None) -> list[mlm.Metric]:
    return [mlm.roc_auc(bins=bins), mlm.gini(bins=bins), mlm.average_precision(bins=bins)]


def cells(frame: pl.DataFrame, bins: int) -> list[tuple[float, float]]:
    """The weight of true rows and of others in each cell that has any, the highest scores first."""
    found: dict[int, list[float]] = {}
    for truth, score, weight in frame.select("truth", "score", "weight").rows():
        logit = np.log(score) - np.log1p(-score)
        cell = int(np.clip(np.floor((logit + 16) / 32 * bins), 0, bins - 1))
        found.setdefault(cell, [0.0, 0.0])[1 - truth] += weight
    return [(found[cell][0], found[cell][1]) for cell in sorted(found, reverse=True)]


def bound_of_auc(frame: pl.DataFrame, bins: int) -> float:
    steps = cells(frame, bins)
    positives, negatives = (sum(step[place] for step in steps) for place in (0, 1))
    return sum(p * n for p, n in steps) / (2 * positives * negatives)


def bound_of_precision(frame: pl.DataFrame, bins: int, *, weighted: bool) -> float:
    """Σ p/P · how far the mean precision of a cell's true rows may lie from that of the cell as one step."""
    total, above, others = 0.0, 0.0, 0.0
    for p, n in cells(frame, bins):
        upto, all_others, first = above + p, others + n, above + (0.0 if weighted else 1.0)
        as_one = upto / (upto + all_others)
        best = upto / (upto + others) if upto else 0.0
        worst = (as_one + (first / (first + all_others) if all_others else 1.0)) / 2
        total += p * max(best - as_one, as_one - worst) if p else 0.0
        above, others = upto, all_others
    return total / above


def bounds_of(frame: pl.DataFrame, bins: int, *, weighted: bool) -> list[float]:
    auc = bound_of_auc(frame, bins)
    return [auc, 2 * auc, bound_of_precision(frame, bins, weighted=weighted)]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("power", [1, 8])
def test_an_area_is_never_further_off_than_its_bound(power: float, weighted: bool) -> None:
    roles = {"weight": "weight"} if weighted else {}
    for seed in range(10):
        frame = log(seed, 12 + 8 * seed, power, weighted=weighted)
        exact, binned = (mlm.evaluate(frame, metrics_of(bins), **roles).row(0) for bins in (None, BINS))
        for one, other, bound in zip(exact, binned, bounds_of(frame, BINS, weighted=weighted), strict=True):
            assert abs(one - other) <= bound + 1e-12  # rounding


def said(frame: pl.DataFrame, *metrics: mlm.Metric, **roles: Any) -> list[tuple[str, float]]:
    """The flag of each metric, and half the width of its interval."""
    table = mlm.evaluate(frame, list(metrics), ci=0.95, tidy=True, **roles)
    return table.select("ci_flag", (pl.col("high") - pl.col("low")) / 2).rows()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("bins", "power", "expected"),
    [(4096, 1, {"ok"}), (4096, 8, {"ok"}), (64, 1, {"coarse_bins"}), (4096, 40, {"coarse_bins"})],
)
def test_the_flag_is_there_where_the_bound_exceeds_half_the_width(
    bins: int, power: float, expected: set[str], weighted: bool
) -> None:
    roles = {"weight": "weight"} if weighted else {}
    frame = log(7, 2000, power, weighted=weighted)
    found = said(frame, *metrics_of(bins), **roles)
    for (flag, half), bound in zip(found, bounds_of(frame, bins, weighted=weighted), strict=True):
        assert flag == ("coarse_bins" if bound > half else "ok")
    assert {flag for flag, _ in found} == expected


def test_a_part_of_the_curve_is_judged_by_the_cells_within_it() -> None:
    """The low scores share the lowest cell, and lie beyond the part; the high ones are apart."""
    frame = log(7, 2000, 1).with_columns(score=pl.when(pl.col("score") < 0.6).then(1e-9).otherwise("score"))
    metrics = mlm.roc_auc(bins=4096), mlm.roc_auc(bins=4096, max_fpr=0.1).alias("part")
    flags = [flag for flag, _ in said(frame, *metrics)]
    # Exact areas merge equal scores too: bins add nothing to that, but the cells alone cannot tell.
    assert flags == ["coarse_bins", "ok"]


def of_two() -> pl.DataFrame:
    scores = {"fine": log(7, 2000, 1), "crowded": log(7, 2000, 40)}
    return pl.concat(rows.with_columns(model=pl.lit(name)) for name, rows in scores.items())


@pytest.mark.one_in(2)
@pytest.mark.parametrize("source", ["log", "state", "state of pairs"])
def test_differences_of_crowded_scores_have_no_verdict(source: str) -> None:
    """The same order of scores: the area is the same, and its bins say that it is worse."""
    both, binned, between = of_two(), mlm.roc_auc(bins=4096), "model" if source == "state of pairs" else None
    asked = both if source == "log" else mlm.state(both, binned, by="model", between=between)
    table = mlm.compare(asked, binned, baseline="fine")
    assert table["high"].item() < 0  # what a verdict would stand on
    assert table.select("verdict", "ci_flag").rows() == [(None, "coarse_bins")]
    assert mlm.compare(asked, binned, baseline="fine", margin=0.5)["verdict"].item() is None


def test_bins_decide_where_a_difference_is_small_and_of_a_gap() -> None:
    binned = mlm.roc_auc(bins=4096)
    assert mlm.gap(of_two(), binned, over="model")["ci_flag"].item() == "coarse_bins"
    fine = of_two().filter(model="fine")
    again = fine.with_columns(model=pl.lit("again"), score=pl.col("score") * 0.99)
    table = mlm.compare(pl.concat([fine, again]), binned, baseline="fine")
    assert table["ci_flag"].item() == "coarse_bins"  # the two are nearly equal: their bins decide


def test_the_bound_goes_where_the_metric_goes() -> None:
    """Through averages, filters, arithmetic, functions of the value, states; not without bins."""
    crowded = log(7, 2000, 40).with_columns(label=(pl.col("sample") % 2).cast(pl.String))
    binned = mlm.roc_auc(bins=BINS)
    metrics = [
        mlm.roc_auc(average="macro", bins=BINS),
        mlm.roc_auc(undefined=0.5, bins=BINS).alias("filled"),
        binned.filter(pl.col("label") == "0").alias("of_one"),
        binned.round(3).alias("rounded"),
        (1 - binned).alias("rest"),
    ]
    assert [flag for flag, _ in said(crowded, *metrics)] == ["coarse_bins"] * len(metrics)
    assert said(crowded, mlm.roc_auc())[0][0] == "ok"
    state = mlm.state(crowded, binned)
    assert mlm.finish(state, binned, ci=0.95, tidy=True)["ci_flag"].to_list() == ["coarse_bins"]
