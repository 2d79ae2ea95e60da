"""ROC AUC and average precision by hand: one sort of packed keys, by group or by group and label.

A key is the code of the group, the score upside down, the truth: the rows of a group lie together, best first, and in a
tie the false ones come first.
"""

import polars as pl

from tests.benchmarks.data import Log
from tests.benchmarks.work import BY

U64, U128 = pl.UInt64, pl.UInt128
CELLS, FARTHEST = 4096, 16.0


PAIRS, PRECISIONS, TRUE, FALSE = map(pl.col, ("pairs", "precisions", "true", "false"))
AREAS = {"roc_auc": PAIRS / (TRUE * FALSE), "average_precision": PRECISIONS / TRUE}


def of_groups(log: Log) -> pl.LazyFrame:
    return _areas(log, list(BY)).select(*BY, **AREAS)


def of_labels(log: Log) -> pl.LazyFrame:
    means = [area.mean().alias(f"{name}_macro") for name, area in AREAS.items()]
    return _areas(log, [*BY, "label"]).group_by(BY).agg(means)


def _areas(log: Log, keys: list[str]) -> pl.LazyFrame:
    """One row a group: the pairs in the right order, the precisions at true rows, and the rows of both classes."""
    # A hash is cheaper than a join for codes, and of so few groups no two have one.
    code = pl.sum_horizontal(pl.col(key).hash(seed) for seed, key in enumerate(keys)).alias("code")
    groups = log.scan().select(keys).unique().with_columns(code)
    rows = _standing(_in_order(log.scan().with_columns(code)))
    true, place, counted = pl.col("low") % 2 == 1, pl.col("place"), pl.col("counted")
    areas = rows.group_by("code").agg(
        wrong=pl.when(true).then((place - counted + pl.col("false_above")) * 0.5).sum(),
        precisions=pl.when(true).then(pl.col("true_rank") / pl.col("rank")).sum(),
        true=true.sum().cast(pl.Float64),
        false=place.max() - true.sum().cast(pl.Float64),
    )
    return groups.join(areas, on="code").with_columns(pairs=TRUE * FALSE - pl.col("wrong"))


def _in_order(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Code, and the rest of the key, in the order of the keys. Scores are in [0, 1]: their bits are too."""
    score, key = pl.col("score").cast(pl.Float64), pl.col("key")
    bits = (2**62 - 1 - score.reinterpret(dtype=pl.Int64)).cast(U128)
    rows = rows.select(key=pl.col("code").cast(U128) * 2**64 + bits * 2 + pl.col("truth").cast(U128)).sort("key")
    return rows.select(code=(key // 2**64).cast(U64), low=key.cast(U64, strict=False, wrap_numerical=True))


def _standing(rows: pl.LazyFrame) -> pl.LazyFrame:
    """The true rows and the last of each group, with what is at or above them, their tie included."""
    code, low, row, trues, new = map(pl.col, ("code", "low", "row", "trues", "new"))
    true, last = (low % 2).cast(pl.Int64), pl.col("last")
    rows = rows.with_columns(
        row=pl.int_range(pl.len(), dtype=pl.Int64), trues=true.cum_sum(), new=code.ne_missing(code.shift(1))
    )
    tie = new | (low // 2 != (low // 2).shift(1))
    rows = rows.with_columns(
        first=pl.when(new).then(row).forward_fill(),
        before=pl.when(new).then(trues - true).forward_fill(),
        false_before_tie=pl.when(tie).then(row - trues + true).forward_fill(),
    )
    rows = rows.select(
        code,
        low,
        place=row - pl.col("first") + 1,
        counted=trues - pl.col("before"),
        false_above=pl.col("false_before_tie") - pl.col("first") + pl.col("before"),
        last=new.shift(-1, fill_value=True),
    ).filter((low % 2 == 1) | last)
    end = last | (low != low.shift(-1))
    return rows.with_columns(
        rank=pl.when(end).then("place").backward_fill(), true_rank=pl.when(end).then("counted").backward_fill()
    )


def binned(log: Log) -> pl.LazyFrame:
    """Counts by cell of the logit, then one pass over the cells."""
    score, truth = pl.col("score").cast(pl.Float64), pl.col("truth")
    cell = (((score / (1 - score)).log() + FARTHEST) / (2 * FARTHEST) * CELLS).floor().clip(0, CELLS - 1)
    cells = log.scan().group_by(*BY, cell.cast(pl.Int16).alias("cell"))
    counted = cells.agg(true=truth.sum().cast(pl.Float64), false=(~truth).sum().cast(pl.Float64))
    upto, false_upto = TRUE.cum_sum(), FALSE.cum_sum()
    return (
        counted.sort("cell", descending=True)
        .group_by(BY)
        .agg(
            roc_auc=(FALSE * (upto - TRUE * 0.5)).sum() / (TRUE.sum() * FALSE.sum()),
            average_precision=(TRUE * upto / (upto + false_upto)).sum() / TRUE.sum(),
        )
    )
