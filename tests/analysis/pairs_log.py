"""A log of two models whose samples are paired."""

import polars as pl


def rows_of(model: str, factor: int, samples: range) -> pl.DataFrame:
    """A model's rows: samples of four labels, in a country, with sides that vary within samples."""
    rows = pl.DataFrame({"sample": samples}).join(pl.DataFrame({"label": ["a", "b", "c", "d"]}), how="cross")
    row = pl.col("sample") * 4 + pl.int_range(pl.len()) % 4
    return rows.with_columns(
        model=pl.lit(model),
        score=(row * factor % 1009 + 1) / 1011,
        truth=(row * 104729 % 13) % 2,
        country=pl.when(pl.col("sample") % 3 == 0).then(pl.lit("DE")).otherwise(pl.lit("FR")),
        side=row % 2,
    )


def log() -> pl.DataFrame:
    """A baseline and two models: `new` lacks some samples, and has no score in others; `other` has more."""
    new = rows_of("new", 6151, range(10, 120))
    is_unknown = (pl.col("sample") % 17 == 0) | ((pl.col("sample") % 11 == 0) & (pl.col("side") == 1))
    new = new.with_columns(score=pl.when(~is_unknown).then("score"))
    return pl.concat([rows_of("old", 7919, range(120)), new, rows_of("other", 3571, range(130))])
