"""Two models of one log, of which the newer is worse in one slice; another slice is bad in both."""

import numpy as np
import polars as pl

FEATURES = ["country", "device", "age"]
WORSE = "country=FR, device=web"
ALWAYS_BAD = "device=tv"


def models(seed: int = 0, n: int = 2000, worse: float = 0.3) -> pl.DataFrame:
    """The rows of an old and a new model, which are wrong together more often than not.

    Where the old one errs in 15 % of the rows (40 % on a tv), the new one does too, and for the French on the web in
    so many more.
    """
    random = np.random.default_rng(seed)
    columns = {
        "country": random.choice(["DE", "FR", "US", "IT"], n),
        "device": random.choice(["web", "app", "tv"], n),
        "age": random.integers(18, 80, n),
        "truth": random.integers(0, 2, n),
        "user": random.integers(0, n // 4, n),
    }
    rows, shared = pl.DataFrame(columns).with_row_index("sample"), random.random(n)
    return pl.concat([_scored(rows, random, shared, name, by) for name, by in (("old", 0.0), ("new", worse))])


def _scored(
    rows: pl.DataFrame,
    random: np.random.Generator,
    shared: "np.ndarray[tuple[int], np.dtype[np.float64]]",
    name: str,
    worse: float,
) -> pl.DataFrame:
    is_worse = (pl.col("country") == "FR") & (pl.col("device") == "web")
    rate = pl.when(pl.col("device") == "tv").then(0.4).otherwise(0.15) + pl.when(is_worse).then(worse).otherwise(0)
    draw = np.where(random.random(len(shared)) < 0.7, shared, random.random(len(shared)))
    answer = pl.when(pl.Series("draw", draw) < rate).then(1 - pl.col("truth")).otherwise("truth")
    noise = pl.Series("noise", random.random(len(shared)))
    return rows.with_columns(model=pl.lit(name), score=answer * 0.6 + noise * 0.4)
