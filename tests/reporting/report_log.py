"""A log that a report has something to say of: models of different noise, one of which is worse in one country."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

LABELS = {"people": 0.5, "city": -0.3, "food": -0.9, "pet": -1.6}
"""How likely each is, in log odds."""

COUNTRIES = ("DE", "FR", "BR", "JP")
NOISE = {"champion": 1.2, "challenger": 0.6}


def made(
    samples: int = 600,
    noise: Mapping[str, float] = NOISE,
    *,
    bad: Mapping[str, float] | None = None,
    countries: Sequence[str] = COUNTRIES,
    labels: Sequence[str] = tuple(LABELS),
    seed: int = 7,
) -> pl.DataFrame:
    """Every model scores the same samples; `bad` is the noise of a model in the last country."""
    rng = np.random.default_rng(seed)
    bad = {} if bad is None else bad
    rows = pl.DataFrame({"sample": np.arange(samples)}).with_columns(
        country=pl.Series(rng.choice(list(countries), samples)),
        device=pl.Series(rng.choice(["phone", "web"], samples)),
        day=pl.Series([dt.date(2026, 11, 11) + dt.timedelta(days=int(d)) for d in rng.integers(0, 5, samples)]),
    )
    odds = dict(zip(labels, LABELS.values(), strict=False))
    rows = rows.join(pl.DataFrame({"label": list(odds), "usual": list(odds.values())}), how="cross")
    evidence = rows["usual"].to_numpy() + 2 * rng.normal(size=rows.height)
    truth = rng.random(rows.height) < 1 / (1 + np.exp(-evidence))
    parts = []
    for model, level in noise.items():
        is_bad = (rows["country"] == countries[-1]).to_numpy()
        logit = evidence + np.where(is_bad, bad.get(model, level), level) * rng.normal(size=rows.height)
        own = rows.with_columns(model=pl.lit(model), truth=pl.Series(truth), score=pl.Series(1 / (1 + np.exp(-logit))))
        parts.append(own.select("model", "sample", "country", "device", "day", "label", "truth", "score"))
    return pl.concat(parts)
