"""A log of two months that share a third of their samples."""

from functools import cache
from typing import Any

import numpy as np
import polars as pl

import polars_mlmetrics as mlm


@cache
def log() -> pl.DataFrame:
    """Two months. A third of the samples is in both; scores, truths and weights lack in other rows of each."""
    random = np.random.default_rng(5)
    months = []
    for month, ids in (("old", range(90)), ("new", range(60, 210))):
        rows = pl.DataFrame({"sample": list(ids)}).join(pl.DataFrame({"label": ["a", "b", "c"]}), how="cross")
        n, row = rows.height, pl.int_range(pl.len())
        rows = rows.with_columns(
            month=pl.lit(month),
            user=pl.col("sample") // 3,
            score=pl.Series(random.uniform(size=n)),
            truth=pl.Series(random.uniform(size=n) < 0.4),
            weight=pl.Series(random.uniform(0.5, 2.0, n)),
            country=pl.when(pl.col("sample") % 4 == 0).then(pl.lit("DE")).otherwise(pl.lit("FR")),
        )
        months.append(
            rows.with_columns(
                score=pl.when(row % 17 != 3).then("score"),
                truth=pl.when(row % 13 != len(ids) % 13).then("truth"),
                weight=pl.when(row % 11 != 5).then("weight"),
            )
        )
    return pl.concat(months)


def compared(rows: pl.DataFrame, *metrics: Any, **asked: Any) -> pl.DataFrame:
    return mlm.compare(rows, *metrics, **{"between": "month", "baseline": "old", "pairs": False, **asked})
