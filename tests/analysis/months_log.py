"""A log of months and countries, and how its changes are taken apart by hand."""

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import polars_mlmetrics as mlm
from polars_mlmetrics.engine.buckets import BUCKETS

BASELINE, AND = "2026-10", {"over": "country", "between": "month", "baseline": "2026-10"}

Columns = Mapping[str, NDArray[Any]]


@cache
def log() -> pl.DataFrame:
    """Users with rows in several months, some without a country or a score.

    The baseline lacks a country, November lacks another one, and one has no positives.
    """
    random = np.random.default_rng(5)
    size = 1500
    rows = pl.DataFrame(
        {
            "sample": np.arange(size),
            "user": random.integers(0, 300, size),
            "month": random.choice(["2026-10", "2026-11", "2026-12"], size, p=[0.4, 0.35, 0.25]),
            "country": random.choice(["DE", "FR", "IT", "US", "none", "XX"], size),
            "side": random.integers(0, 2, size),
            "truth": random.integers(0, 2, size),
            "weight": random.choice([0.5, 1.0, 2.5], size),
        }
    )
    score = np.clip(0.3 + 0.4 * rows["truth"].to_numpy() + random.normal(0, 0.3, size), 0.01, 0.99)
    month, country = pl.col("month"), pl.col("country")
    lacks = ((month == BASELINE) & (country == "IT")) | ((month == "2026-11") & (country == "US"))
    return rows.with_columns(
        country=pl.when(country != "none").then(country),
        truth=pl.when(country == "XX").then(0).otherwise("truth"),
        score=pl.when(pl.col("sample") % 23 != 0).then(pl.Series(score)),
    ).filter(~lacks.fill_null(False))


def small(*rows: tuple[str, str, float | None, int | None]) -> pl.DataFrame:
    frame = pl.DataFrame(rows, schema=["month", "country", "score", "truth"], orient="row")
    return frame.with_row_index("sample")


# -- by hand -----------------------------------------------------------------------------------------------------------

OfRows = Callable[[Columns], tuple[NDArray[Any], NDArray[Any]]]
"""The numerator and the denominator that each row adds."""


def predicted(rows: Columns) -> NDArray[Any]:
    return np.asarray(rows["score"] > 0.5)


def log_loss(rows: Columns) -> tuple[NDArray[Any], NDArray[Any]]:
    score, truth = rows["score"], rows["truth"]
    return -(truth * np.log(score) + (1 - truth) * np.log(1 - score)), np.ones_like(score)


def f1(rows: Columns) -> tuple[NDArray[Any], NDArray[Any]]:
    return 2 * (predicted(rows) & (rows["truth"] == 1)), predicted(rows) * 1 + rows["truth"]


def one_less_twice_f1(rows: Columns) -> tuple[NDArray[Any], NDArray[Any]]:
    above, below = f1(rows)
    return below - 2 * above, below


BY_HAND: dict[str, tuple[mlm.Metric, OfRows]] = {
    "accuracy": (mlm.accuracy(), lambda r: (predicted(r) == r["truth"], np.ones_like(r["score"]))),
    "precision": (mlm.precision(), lambda r: (predicted(r) & (r["truth"] == 1), predicted(r))),
    "recall": (mlm.recall(), lambda r: (predicted(r) & (r["truth"] == 1), r["truth"])),
    "f1": (mlm.f1(), f1),
    "log_loss": (mlm.log_loss(), log_loss),
    "1 - 2 f1": (1 - 2 * mlm.f1(), one_less_twice_f1),
}

Parts = dict[str, dict[str, float]]
"""By slice ("" is the whole): the two values, the two shares, mix and rate."""


def by_hand(rows: pl.DataFrame, of_rows: OfRows, month: str, *, weighted: bool) -> Parts:
    """The parts of a change of one candidate, by the definition of `decompose`."""
    known = rows.filter(pl.col("score").is_not_null())
    sums: dict[str, dict[str, tuple[float, float]]] = {}
    for side, value in (("1", month), ("0", BASELINE)):
        sums[side] = {}
        for (country,), part in known.filter(pl.col("month") == value).group_by("country"):
            columns = {name: part[name].to_numpy() for name in ("score", "truth", "weight")}
            weight = columns["weight"] if weighted else np.ones(part.height)
            above, below = of_rows(columns)
            sums[side][f"country={'null' if country is None else country}"] = (
                math.fsum(weight * above), math.fsum(weight * below),
            )  # fmt: skip
    whole = {side: np.sum(list(found.values()), axis=0) for side, found in sums.items()}
    of_whole = {side: above / below for side, (above, below) in whole.items()}
    found: Parts = {}
    for name in sorted({*sums["1"], *sums["0"]}):
        pairs = {side: sums[side].get(name, (0.0, 0.0)) for side in "10"}
        share = {side: below / whole[side][1] for side, (_, below) in pairs.items()}
        value = {side: above / below if below else math.nan for side, (above, below) in pairs.items()}
        filled = {side: value[other] if math.isnan(value[side]) else value[side] for side, other in ("10", "01")}
        above = (filled["1"] + filled["0"]) / 2 - (of_whole["1"] + of_whole["0"]) / 2
        mix, rate = (share["1"] - share["0"]) * above, (share["1"] + share["0"]) / 2 * (filled["1"] - filled["0"])
        both = {"mix": 0.0, "rate": 0.0} if math.isnan(above) else {"mix": mix, "rate": rate}
        values = {"value": value["1"], "baseline_value": value["0"]}
        found[name] = {**values, "share": share["1"], "baseline_share": share["0"], **both}
    total = {part: math.fsum(each[part] for each in found.values()) for part in ("mix", "rate")}
    values = {"value": of_whole["1"], "baseline_value": of_whole["0"], "share": 1.0, "baseline_share": 1.0}
    return {"": {**values, **total}, **found}


def carried(rows: pl.DataFrame, metric: mlm.Metric, carrier: str, by: list[str]) -> pl.DataFrame | pl.LazyFrame:
    if carrier != "state":
        return rows if carrier == "log" else rows.lazy()
    return mlm.state(rows, metric, by=["month", "country", *by], buckets=BUCKETS)
