"""A log of users with several samples each."""

import polars as pl

import polars_mlmetrics as mlm


def users() -> pl.DataFrame:
    """Samples of four labels each, of users with three samples; `side` varies within samples."""
    row = pl.int_range(pl.len())
    rows = pl.DataFrame({"sample": range(240), "user": [sample // 3 for sample in range(240)]})
    rows = rows.join(pl.DataFrame({"label": ["a", "b", "c", "d"]}), how="cross")
    return rows.with_columns(
        score=(row * 7919 % 1009) / 1009,
        truth=(row * 104729 % 13) % 2,
        country=pl.when(pl.col("sample") % 3 == 0).then(pl.lit("DE")).otherwise(pl.lit("FR")),
        side=row % 2,
    )


SUITE = [
    mlm.f1(),
    mlm.f1(average="macro"),
    mlm.ndcg(),
    mlm.log_loss(),
    mlm.roc_auc(bins=16),
    mlm.labelwise_precision(),
    mlm.average_score(mlm.mse()),
    mlm.hamming_loss(threshold="argmax"),
    (mlm.f1() - mlm.recall()).alias("difference"),
]
HALF = SUITE[::2]
"""One of each grain, bins and arithmetic."""
