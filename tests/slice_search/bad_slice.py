"""A log with one bad slice."""

import random
from datetime import date, timedelta
from typing import Any

import polars as pl


def log(seed: int = 1, n: int = 3000, *, is_bad: bool = True) -> pl.DataFrame:
    """Rows whose score is a guess for the Germans on a phone, and good elsewhere; four samples a user."""
    draw = random.Random(seed)
    columns: dict[str, list[Any]] = {
        "sample": list(range(n)),
        "country": draw.choices(["DE", "FR", "US", None], k=n),
        "device": draw.choices(["phone", "tablet", "desk"], k=n),
        "day": [date(2025, 1, 1) + timedelta(days=draw.randrange(300)) for _ in range(n)],
        "truth": draw.choices([0, 1], k=n),
        "noise": [draw.random() for _ in range(n)],
        "age": [draw.gauss(40, 12) for _ in range(n)],
    }
    rows = pl.DataFrame(columns).with_columns(
        user=pl.col("sample") * 7919 % 750, good=pl.col("truth") * 0.4 + pl.col("noise") * 0.6
    )
    is_guess = pl.when(country="DE", device="phone").then(is_bad).otherwise(False)
    return rows.with_columns(score=pl.when(is_guess).then("noise").otherwise("good"))
