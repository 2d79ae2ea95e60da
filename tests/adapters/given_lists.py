"""Lists of labels and scores."""

from typing import Any

import polars as pl

INF = float("inf")


LISTS = {
    "score": pl.List(pl.Float64),
    "truth": pl.List(pl.Int64),
    "label": pl.List(pl.String),
    "true": pl.List(pl.String),
}


def lists(**columns: list[Any]) -> pl.DataFrame:
    return pl.DataFrame(columns, schema={name: LISTS[name] for name in columns})
