"""One `group_by` for each combination of up to three features, and no more: what a search must cost at least.

The features are read once into one byte each, as the search does: the most frequent values, and all others.
"""

from collections.abc import Callable
from itertools import combinations

import polars as pl

from tests.benchmarks.data import SLICES, Log

TOP, DEPTH, BUCKETS = 10, 3, 32
BUCKET = "bucket"


def combined(keys: list[str]) -> Callable[[Log], pl.DataFrame]:
    """How many rows, and how many of F1's counts, there are in each cell of each combination."""

    def work(log: Log) -> pl.DataFrame:
        rows = coded(log)
        cells = 0
        for size in range(1, DEPTH + 1):
            for some in combinations(SLICES, size):
                counts = [pl.len(), pl.col("both", "predicted", "truth").sum()]
                cells += rows.lazy().group_by(*some, *keys).agg(counts).collect(engine="streaming").height
        return pl.DataFrame({"cells": [cells]})

    return work


def coded(log: Log) -> pl.DataFrame:
    """The rows, in bytes."""
    truth, predicted = pl.col("truth").cast(pl.Boolean), pl.col("score") > 0.5
    counted = {"both": truth & predicted, "predicted": predicted, "truth": truth}
    bytes_of = [each.cast(pl.UInt8).alias(name) for name, each in counted.items()]
    bucket = (pl.col("sample").hash() % BUCKETS).cast(pl.UInt8).alias(BUCKET)
    return log.scan().select(*(_code(log, name) for name in SLICES), bucket, *bytes_of).collect(engine="streaming")


def _code(log: Log, name: str) -> pl.Expr:
    counts = log.scan().group_by(name).len().collect(engine="streaming")
    values = counts.sort("len", descending=True).head(TOP)[name]
    return pl.col(name).cast(pl.Enum(values), strict=False).to_physical().fill_null(TOP).cast(pl.UInt8).alias(name)


WORK = {"finder": combined([]), "finder, buckets": combined([BUCKET])}
