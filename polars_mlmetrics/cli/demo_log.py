"""The log of `mlm demo`: days of two models that suggest labels for photos, with what real logs have of trouble."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

LABELS = (
    "animal", "art", "baby", "beach", "bike", "bird", "boat", "bridge", "cake", "car", "cat", "city", "cloud", "coffee",
    "concert", "dog", "flower", "food", "garden", "horse", "lake", "mountain", "night", "people", "plane", "snow",
    "sport", "sunset", "train", "tree",
)  # fmt: skip
COUNTRIES = {"BR": 0.28, "DE": 0.24, "FR": 0.2, "JP": 0.16, "US": 0.117, "IS": 0.003}
DEVICES = {"phone": 0.65, "web": 0.33, "kiosk": 0.02}
FIRST = date(2026, 11, 1)
UNKNOWN, COPIES = 0.1, 0.02
NOISE = {"old": 1.4, "new": 1.0}
"""How little each model sees."""

BAD_NOISE = 2.2
"""How little the new one sees on phones in Japan."""


def write_day(folder: Path, number: int, photos: int) -> Path:
    """Write the file of a day; its name is the day."""
    day = FIRST + timedelta(days=number)
    file = folder.joinpath(f"{day.isoformat()}.parquet")
    _log_of(day, number, photos).write_parquet(file)
    return file


def _log_of(day: date, number: int, photos: int) -> pl.DataFrame:
    rng = np.random.default_rng(number)

    def pick(shares: dict[str, float]) -> pl.Series:
        return pl.Series(rng.choice(list(shares), photos, p=list(shares.values())))

    shown = pl.DataFrame(
        {
            "day": [day] * photos,
            "sample": number * photos + np.arange(photos),
            "country": pick(COUNTRIES),
            "device": pick(DEVICES),
        }
    ).join(pl.DataFrame({"label": LABELS, "usual": np.linspace(-3.5, -0.5, len(LABELS))}), how="cross")
    n = shown.height
    # What a photo shows, and what the truth is: in log odds.
    evidence = shown["usual"].to_numpy() + 2.5 * rng.normal(size=n)
    truth = pl.Series(rng.random(n)) < _probability(pl.Series(evidence))
    is_known = pl.Series(rng.random(n) >= UNKNOWN)
    shown = shown.with_columns(evidence=evidence, truth=pl.when(is_known).then(truth.cast(pl.Int8)))
    log = pl.concat(_scored(shown, model, rng.normal(size=n)) for model in NOISE)
    copies = log.sample(fraction=COPIES, seed=number)
    return pl.concat([log, copies]).sort("model", "sample", "label")


def _scored(shown: pl.DataFrame, model: str, blur: Any) -> pl.DataFrame:
    is_bad = (pl.col("country") == "JP") & (pl.col("device") == "phone") & (pl.lit(model) == "new")
    noise = pl.when(is_bad).then(BAD_NOISE).otherwise(NOISE[model])
    score = _probability(pl.col("evidence") + noise * pl.Series(blur))
    return shown.select(
        "day", pl.lit(model).alias("model"), "sample", "country", "device", "label", "truth", score=score
    )


def _probability(log_odds: Any) -> Any:
    half = 0.5 * log_odds
    return 0.5 + 0.5 * half.tanh()
