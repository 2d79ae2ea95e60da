"""A log with a bad slice."""

import polars as pl

sample = pl.col("sample")

IS_BAD = (pl.col("country") == "FR") & (pl.col("device") == "phone")

GOOD = pl.col("truth") * 0.5 + sample * 7873 % 101 / 250

ROWS = pl.DataFrame({"sample": range(1500)}).with_columns(
    country=pl.when(sample % 5 < 3).then(pl.lit("DE")).otherwise(pl.lit("FR")),
    device=pl.when(sample % 7 < 3).then(pl.lit("phone")).otherwise(pl.lit("desk")),
    truth=(sample * 6151 % 97 < 40).cast(pl.Int8),
)

NEW = ROWS.with_columns(model=pl.lit("new"), score=pl.when(IS_BAD).then(0.5 - GOOD / 2).otherwise(GOOD))

LOG = pl.concat([NEW, ROWS.with_columns(model=pl.lit("old"), score=GOOD)])
