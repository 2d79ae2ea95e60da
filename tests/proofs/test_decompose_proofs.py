"""The intervals of mix and rate hold the true ones about as often as they say, in logs drawn at random."""

from functools import cache
from itertools import product
from math import sqrt

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

import polars_mlmetrics as mlm

RUNS = 1_000
LOWEST = 0.93
"""How often an interval of 95 % should hold the true value at least."""
BY_CHANCE = 3 * sqrt(LOWEST * (1 - LOWEST) / RUNS)
"""How far the share of so many logs may be below by chance: three standard deviations, .024. The seeds are fixed."""

MONTHS, COUNTRIES = ("old", "new"), ("a", "b", "c", "d")
SHARES = {"old": (0.5, 0.3, 0.2, 0.0), "new": (0.3, 0.3, 0.25, 0.15)}
"""The last country is new."""
TRUE = {"old": (0.5, 0.3, 0.6, 0.4), "new": (0.5, 0.35, 0.6, 0.4)}
HIT = {"old": (0.9, 0.8, 0.7, 0.6), "new": (0.88, 0.7, 0.7, 0.6)}
WRONG = {"old": (0.1, 0.2, 0.3, 0.2), "new": (0.1, 0.25, 0.2, 0.2)}
"""How often a row is true, and predicted where it is true, or is not."""

METRICS = {"log_loss": mlm.log_loss(), "recall": mlm.recall(), "f1": mlm.f1(), "mcc": mlm.mcc()}
SCORES = (0.2, 0.8)


@cache
def population() -> pl.DataFrame:
    """Every kind of row once, with its chance as the weight."""
    rows = []
    for month, (place, country), truth, said in product(MONTHS, enumerate(COUNTRIES), (0, 1), (0, 1)):
        true, chance = TRUE[month][place], (HIT if truth else WRONG)[month][place]
        weight = SHARES[month][place] * (true if truth else 1 - true) * (chance if said else 1 - chance)
        rows.append((month, country, truth, SCORES[said], weight))
    frame = pl.DataFrame(rows, schema=["month", "country", "truth", "score", "weight"], orient="row")
    return frame.with_row_index("sample").filter(pl.col("weight") > 0)


@cache
def worlds(samples: int, users: bool) -> pl.DataFrame:
    """So many logs of so many clusters: rows; or users of up to nine rows, in both months, which are often alike."""
    random = np.random.default_rng(samples + users)
    of_user = np.arange(RUNS * samples)
    user = np.repeat(of_user, random.integers(1, 10, len(of_user))) if users else of_user
    month = random.integers(0, 2, len(user))

    def drawn(likeness: float) -> NDArray[np.float64]:
        """A number from 0 to 1 for each row: that of its user, or one of its own."""
        is_own = random.random(len(user)) > likeness
        return np.where(is_own, random.random(len(user)), random.random(len(of_user))[user])

    bounds = np.cumsum([SHARES[each] for each in MONTHS], axis=1)
    place = (drawn(1.0)[:, None] > bounds[month, :-1]).sum(axis=1)
    true, hit, wrong = (np.array([table[each] for each in MONTHS])[month, place] for table in (TRUE, HIT, WRONG))
    truth = drawn(0.3) < true
    said = drawn(0.3) < np.where(truth, hit, wrong)
    columns = {"sample": np.arange(len(user)), "user": user, "world": user // samples, "truth": truth}
    names = {"month": np.array(MONTHS)[month], "country": np.array(COUNTRIES)[place]}
    return pl.DataFrame({**columns, **names, "score": np.array(SCORES)[said.astype(np.int64)]})


@cache
def parts(samples: int, users: bool, name: str, level: float = 0.95) -> pl.DataFrame:
    """Mix and rate in each log, beside the true ones."""
    metric = METRICS[name]
    keys = {"over": "country", "between": "month", "baseline": "old"}
    right = mlm.decompose(population(), metric, weight="weight", **keys)
    right = right.select("slice", right_mix="mix", right_rate="rate")
    table = mlm.decompose(worlds(samples, users), metric, by="world", cluster="user", ci=level, **keys)
    return table.join(right, on="slice")


def held(table: pl.DataFrame) -> dict[str, float]:
    """How often the intervals hold the true mix, and the true rate."""
    parts = ("mix", "rate")
    is_held = (pl.col(f"right_{part}").is_between(f"{part}_low", f"{part}_high").alias(part) for part in parts)
    return table.select(is_held).mean().row(0, named=True)


@pytest.mark.parametrize("users", [False, True], ids=["rows", "users"])
@pytest.mark.parametrize("samples", [100, 300])
@pytest.mark.parametrize("name", METRICS)
def test_intervals_of_the_whole_hold_the_true_mix_and_rate(name: str, samples: int, users: bool) -> None:
    wholes = parts(samples, users, name).filter(slice="")
    assert wholes.height == RUNS
    assert min(held(wholes).values()) >= LOWEST - BY_CHANCE


@pytest.mark.parametrize("name", METRICS)
def test_intervals_of_slices_that_have_no_flag_hold_theirs(name: str) -> None:
    slices = parts(300, True, name).filter(pl.col("slice") != "", ci_flag="ok")
    assert slices.height > RUNS
    if name == "mcc":  # its slices have no mix
        slices = slices.with_columns(right_mix=0.0, mix_low=-1.0, mix_high=1.0)
    assert min(held(slices).values()) >= LOWEST - BY_CHANCE


def test_too_narrow_an_interval_is_seen() -> None:
    wholes = parts(100, False, "recall", 0.85).filter(slice="")
    assert max(held(wholes).values()) < LOWEST - BY_CHANCE
