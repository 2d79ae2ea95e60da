"""A log of a few rows."""

from datetime import date

import polars as pl

# model a: TP 1, FP 1, FN 1, TN 1; model b: all right.
LOG = pl.DataFrame(
    {
        "model": ["a", "a", "a", "a", "b", "b", "b", "b"],
        "day": [date(2026, 1, 1)] * 4 + [date(2026, 1, 2)] * 4,
        "sample": [1, 1, 2, 2, 1, 1, 2, 2],
        "label": ["x", "y", "x", "y", "x", "y", "x", "y"],
        "score": [0.9, 0.2, 0.4, 0.8, 0.9, 0.2, 0.6, 0.1],
        "truth": [1, 0, 1, 0, 1, 0, 1, 0],
    }
)


# On model a: precision 1/2, recall 1/2, accuracy 1/2, 4 rows.
A = LOG.filter(pl.col("model") == "a")
