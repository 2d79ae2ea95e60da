"""Where few rows or few clusters decide, intervals of 95 % still hold the true value, or their flag says no.

The seeds are fixed. Beside each bound stands the Monte Carlo error, which is one standard deviation of the share.
"""

from collections.abc import Iterable
from functools import cache
from math import sqrt

import numpy as np
import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.support.simulated import TwoClasses, equal, giant, holds, very_heavy

AREAS = (mlm.roc_auc(), mlm.average_precision())
LOSSES = (mlm.log_loss(), mlm.brier_score())


def error(share: float, runs: int) -> float:
    """The Monte Carlo error of a share."""
    return sqrt(share * (1 - share) / runs)


def held(logs: TwoClasses, metrics: Iterable[mlm.Metric], runs: int) -> dict[str, float]:
    table = logs.judged(list(metrics), runs)
    return dict(table.group_by("metric", maintain_order=True).agg(holds("right").mean()).rows())


@pytest.mark.parametrize("shared", [0.0, 0.25, 0.5])
@pytest.mark.parametrize("users", [20, 64])
def test_exact_areas_of_very_unequal_clusters(users: int, shared: float) -> None:
    """Sizes of Pareto(1.5). Error of 3,000 runs: ± .005; the bound allows none of it."""
    shares = held(TwoClasses(users, 0.3, sizes=very_heavy, shared=shared), AREAS, 3_000)
    assert min(shares.values()) >= 0.92, shares


@pytest.mark.parametrize("shared", [0.0, 0.25, 0.5])
def test_exact_areas_with_one_cluster_of_half_of_the_rows(shared: float) -> None:
    """Error of 2,000 runs: ± .006."""
    shares = held(TwoClasses(64, 0.3, sizes=giant, shared=shared), AREAS, 2_000)
    assert min(shares.values()) >= 0.92 - 2 * error(0.92, 2_000), shares


def test_an_interval_that_knows_nothing_of_clusters_is_seen() -> None:
    """It holds the true area in about .6 of the runs. Error of 500 runs: ± .022."""
    logs = TwoClasses(64, 0.3, sizes=very_heavy)
    assert logs.judged(AREAS, 500, cluster=None).select(holds("right").mean()).item() <= 0.85


@pytest.mark.parametrize(("rows", "positives", "runs"), [(10_000, 0.001, 500), (1_000, 0.01, 2_000)])
def test_losses_of_ten_positives(rows: int, positives: float, runs: int) -> None:
    """Error of 500 runs: ± .011; of 2,000: ± .006."""
    shares = held(TwoClasses(rows, positives), LOSSES, runs)
    assert min(shares.values()) >= 0.93 - 2 * error(0.93, runs), shares


BAD = {
    "1 % of 100 rows are positive": TwoClasses(100, 0.01),
    ".1 % of 1,000 rows are positive": TwoClasses(1_000, 0.001),
    "30 rows of a good model": TwoClasses(30, 0.5, 4.0),
    "100 rows of a good model": TwoClasses(100, 0.5, 4.0),
}
BARS_OF_BAD = dict(zip(BAD, (0.01, 0.01, 0.01, 0.14), strict=True))
"""How often each of them may say "ok". Measured: 0, 0, 0 and .11."""


@cache
def says_ok(name: str) -> float:
    """In which share of the runs a loss says "ok"."""
    return float((BAD[name].judged(LOSSES, 1_000)["ci_flag"] == "ok").mean())


@pytest.mark.parametrize("name", BAD)
def test_a_log_that_tells_little_seldom_says_ok(name: str) -> None:
    """Error of 1,000 runs: ± .01 where the share is .1, less where it is smaller."""
    assert says_ok(name) <= BARS_OF_BAD[name]


def test_logs_that_tell_little_seldom_say_ok() -> None:
    """Error of four times 1,000 runs: ± .005."""
    assert np.mean([says_ok(name) for name in BAD]) <= 0.10, {name: says_ok(name) for name in BAD}


SOUND = [
    *(TwoClasses(rows, positives) for rows in (100, 300, 1_000, 3_000) for positives in (0.3, 0.5)),
    *(TwoClasses(rows, 0.1) for rows in (1_000, 3_000)),
    *(TwoClasses(300, positives, sizes=equal(size)) for size in (2, 5, 9) for positives in (0.3, 0.5)),
]
OF_ANY = (*AREAS, *LOSSES, mlm.accuracy(), mlm.recall(), mlm.precision(), mlm.f1(), mlm.mcc())
WEIGHTED = [
    metric.on(weight="weight").alias(f"{metric.output_name}, weighted")
    for metric in OF_ANY
    if metric.output_name not in ("roc_auc", "average_precision")  # without bins, weights leave them no interval
]


def flagged(logs: TwoClasses) -> float:
    """In which share of the intervals of sound logs there is something to say."""
    flags = logs.judged([*OF_ANY, *WEIGHTED], 100)["ci_flag"]
    return float((~flags.is_in(["ok", "approx"])).mean())


def test_a_sound_log_seldom_has_a_flag() -> None:
    """Error of the mean of 16 settings with 100 runs each: less than ± .004, though metrics of a run go together."""
    shares = {logs: flagged(logs) for logs in SOUND}
    assert np.mean(list(shares.values())) <= 0.03, shares


WORLDS, SLICES = 60, np.geomspace(20, 2_000, 50).astype(int)


@cache
def logs_without_a_gap() -> pl.DataFrame:
    """Logs of 50 slices of unequal size, none of which is better than another."""
    rows = int(SLICES.sum())
    log = TwoClasses(rows, 0.4, 1.3).drawn(1, WORLDS)
    return log.with_columns(slice=pl.Series(np.tile(np.repeat(np.arange(len(SLICES)), SLICES), WORLDS)))


@pytest.mark.parametrize("metric", [mlm.accuracy(), mlm.log_loss()], ids=repr)
def test_where_there_is_no_gap_the_low_end_is_0(metric: mlm.Metric) -> None:
    """Error of 60 runs: ± .032."""
    found = mlm.gap(logs_without_a_gap(), metric, over="slice", by="run")
    assert found.height == WORLDS
    assert (found["low"] > 0).mean() <= 0.065 + 2 * error(0.065, WORLDS)


ODDS = [mlm.recall(), mlm.false_positive_rate()]


@pytest.mark.parametrize("rows", [100, 300])
def test_where_ten_slices_have_equal_odds_the_low_end_of_the_largest_gap_is_0(rows: int) -> None:
    """Error of 2,000 runs: ± .005; the bound allows none of it. Measured with 5,000: .046 and .050, ± .003."""
    logs = TwoClasses(10 * rows, 0.4, 1.3)
    slices = [logs.drawn(seed, 1_000).with_columns(slice=pl.col("sample") % 10) for seed in (1, 2)]
    found = pl.concat(mlm.gap(log, ODDS, over="slice", by="run").filter(metric="largest") for log in slices)
    assert found.height == 2_000
    assert (found["low"] > 0).mean() <= 0.065


@pytest.mark.parametrize("rows", [100, 300])
def test_the_interval_of_the_largest_gap_holds_it(rows: int) -> None:
    """Recalls are .7 or .75, false positive rates from .3 to .45. Error of 1,000 runs: ± .007."""
    rates, runs = np.array([[0.3, 0.7], [0.35, 0.7], [0.3, 0.75], [0.45, 0.7]]), 1_000
    random = np.random.default_rng(3)
    of_slice = np.tile(np.repeat(np.arange(4), rows), runs)
    truth = (random.random(len(of_slice)) < 0.4).astype(int)
    score = (random.random(len(of_slice)) < rates[of_slice, truth]).astype(float)
    columns = {"run": np.repeat(np.arange(runs), 4 * rows), "sample": np.arange(len(of_slice)), "slice": of_slice}
    log = pl.DataFrame({**columns, "truth": truth, "score": score})
    found = mlm.gap(log, ODDS, over="slice", by="run").filter(metric="largest").with_columns(right=0.15)
    assert found.select(holds("right").mean()).item() >= 0.95
