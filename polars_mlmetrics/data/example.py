"""`example_log`: a log to try things on."""

from __future__ import annotations

from datetime import date

import polars as pl

from polars_mlmetrics.data.numpy_later import np

USERS, DAYS, A_DAY = 400, 10, 300
PHOTOS = DAYS * A_DAY
FIRST_DAY = date(2026, 11, 1)
LOST = 50
"""One in so many photos has no score of the new model."""


def example_log() -> pl.DataFrame:
    """A log to try things on: what two models thought of 3,000 photos. Is there a cat? The same rows at every call.

    The model `new` is better than `old`, but far worse where the country is JP, and has no score for some photos. A
    user has several photos, so their rows depend on one another.

    Examples
    --------
    >>> import polars_mlmetrics as mlm
    >>> log = mlm.example_log()
    >>> log.head(2)
    shape: (2, 9)
    ┌───────┬────────┬──────┬────────────┬───┬────────┬─────┬───────┬──────────┐
    │ model ┆ sample ┆ user ┆ day        ┆ … ┆ device ┆ age ┆ truth ┆ score    │
    │ ---   ┆ ---    ┆ ---  ┆ ---        ┆   ┆ ---    ┆ --- ┆ ---   ┆ ---      │
    │ str   ┆ i64    ┆ i64  ┆ date       ┆   ┆ str    ┆ i64 ┆ i64   ┆ f64      │
    ╞═══════╪════════╪══════╪════════════╪═══╪════════╪═════╪═══════╪══════════╡
    │ old   ┆ 0      ┆ 377  ┆ 2026-11-01 ┆ … ┆ phone  ┆ 71  ┆ 1     ┆ 0.606782 │
    │ old   ┆ 1      ┆ 250  ┆ 2026-11-01 ┆ … ┆ web    ┆ 35  ┆ 0     ┆ 0.41831  │
    └───────┴────────┴──────┴────────────┴───┴────────┴─────┴───────┴──────────┘
    >>> mlm.evaluate(log, mlm.f1(), mlm.n_excluded(), by="model")
    shape: (2, 3)
    ┌───────┬──────────┬────────────┐
    │ model ┆ f1       ┆ n_excluded │
    │ ---   ┆ ---      ┆ ---        │
    │ str   ┆ f64      ┆ i64        │
    ╞═══════╪══════════╪════════════╡
    │ new   ┆ 0.858075 ┆ 60         │
    │ old   ┆ 0.822351 ┆ 0          │
    └───────┴──────────┴────────────┘
    """
    rng = np.random.default_rng(7)
    users = rng.integers(0, USERS, PHOTOS)
    photos = pl.DataFrame(
        {
            "sample": np.arange(PHOTOS),
            "user": users,
            "country": rng.choice(["DE", "FR", "JP"], PHOTOS, p=[0.5, 0.35, 0.15]),
            "device": rng.choice(["phone", "web"], PHOTOS),
            "truth": rng.integers(0, 2, PHOTOS),
            "noise": rng.random(PHOTOS),
        }
    ).with_columns(
        day=pl.lit(FIRST_DAY) + pl.duration(days=pl.lit(pl.Series(np.repeat(np.arange(DAYS), A_DAY)))),
        age=pl.Series(rng.integers(18, 80, USERS)[users]),
    )
    truth, noise = pl.col("truth"), pl.col("noise")
    better = pl.when(country="JP").then(0.1 * truth + 0.9 * noise).otherwise(0.45 * truth + 0.55 * noise)
    scores = {
        "old": 0.4 * truth + 0.6 * noise,
        "new": pl.when(~pl.col("sample").is_in(range(0, PHOTOS, LOST))).then(better),
    }
    columns = ["sample", "user", "day", "country", "device", "age", "truth"]
    return pl.concat(
        photos.select(pl.lit(model).alias("model"), *columns, score=score) for model, score in scores.items()
    )
