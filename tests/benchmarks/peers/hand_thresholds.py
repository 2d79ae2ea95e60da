"""The best threshold of F1 by hand: of one sort of packed keys, or of the counts of cells of scores.

The rows above a threshold are counted by its place in the order, where no two scores are equal.
"""

import polars as pl

from tests.benchmarks.data import Log
from tests.benchmarks.peers.hand_separation import CELLS, FALSE, FARTHEST, TRUE, Areas
from tests.benchmarks.work import BY

CODE, SCORE = pl.col("code"), pl.col("score").cast(pl.Float64)


def of_rows(log: Log) -> pl.LazyFrame:
    """Every score tried: the rows of a group in order, and their codes as groups until the best is found."""
    low = pl.col("low")
    rows = Areas()._in_order(log.scan()).with_columns(true=low % 2 == 1)
    score = (2**62 - 1 - low // 2).cast(pl.Int64).reinterpret(dtype=pl.Float64)
    f1 = 2 * TRUE.cum_sum() / (pl.int_range(1, pl.len() + 1) + TRUE.sum())
    best = rows.group_by("code", maintain_order=True).agg(value=f1.max(), threshold=score.get(f1.arg_max() + 1))
    names = log.scan().select(BY).unique().with_columns(code=Areas()._sample())
    return names.join(best, on="code").select(*BY, "threshold", "value")


def of_cells(log: Log, *more: str) -> pl.LazyFrame:
    """Every cell tried: the counts of each by one number for the keys."""
    keys = (*BY, *more)
    code = Areas(keys=keys)._sample()
    cell = (((SCORE / (1 - SCORE)).log() + FARTHEST) / (2 * FARTHEST) * CELLS).floor().clip(0, CELLS - 1)
    rows = log.scan().select("truth", code=code, cell=cell)
    counted = rows.group_by("code", "cell").agg(true=pl.col("truth").sum(), false=(~pl.col("truth")).sum())
    f1 = 2 * TRUE.cum_sum() / ((TRUE + FALSE).cum_sum() + TRUE.sum())
    best = counted.sort("cell", descending=True).group_by("code").agg(value=f1.max())
    return log.scan().select(keys).unique().with_columns(code=code).join(best, on="code").select(*keys, "value")


WORK = {
    "best of f1": of_rows,
    "best of f1, cells": of_cells,
    "best of f1, cells of labels": lambda log: of_cells(log, "label"),
}
