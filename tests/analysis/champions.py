"""A small log of two models."""

import polars as pl

# champion: sample 1 right, sample 2 wrong. challenger: all right.
LOG = pl.DataFrame(
    {
        "model": ["champion"] * 4 + ["challenger"] * 4,
        "country": ["DE", "DE", None, None] * 2,
        "device": ["ios", "ios", "web", "web"] * 2,
        "sample": [1, 1, 2, 2] * 2,
        "label": ["x", "y"] * 4,
        "score": [0.9, 0.2, 0.4, 0.8, 0.9, 0.2, 0.6, 0.1],
        "truth": [1, 0] * 4,
    }
)


CHAMPION = LOG.filter(pl.col("model") == "champion").drop("model")


def rows(table: pl.DataFrame, *columns: str) -> list[tuple]:
    return table.select(columns).rows()
