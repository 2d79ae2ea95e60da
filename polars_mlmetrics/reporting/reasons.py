"""Tables of verbs in words: a verdict or why there is none, why a value is missing, texts that are safe to show."""

from __future__ import annotations

import polars as pl

from polars_mlmetrics.checks.statuses import row_text
from polars_mlmetrics.data.visible import visible


def verdict_or_why() -> pl.Expr:
    """The verdict of a row of `compare`; where it has none, why, in two words."""
    is_empty = {"no_pairs": "no pairs", "one_side": "one side"}
    has_no_pairs = pl.col("ci_flag").replace_strict(is_empty, default=None, return_dtype=pl.String)
    has_no_interval = pl.when(pl.col("low").is_null()).then(pl.lit("no interval"))
    return pl.coalesce("verdict", has_no_pairs, has_no_interval, pl.lit("no verdict")).alias("verdict")


def lacks_values(table: pl.DataFrame) -> bool:
    """Whether a table of `evaluate` has a value that is null or NaN."""
    place = next((place for place, dtype in enumerate(table.dtypes) if dtype.is_float()), table.width)
    names = table.columns[place:]
    values = table.select(name for name in names if not name.endswith(("_low", "_high")) or name[:-4] not in names)
    return any(column.null_count() or (column.dtype.is_float() and column.is_nan().any()) for column in values)


def first_reason(tidy: pl.DataFrame) -> str:
    """Why the first value of a tidy table that is NaN, or else null, is so; empty where all are numbers."""
    lacking = tidy.filter(pl.col("reason").is_not_null()).sort(pl.col("value").is_null(), maintain_order=True)
    if lacking.is_empty():
        return ""
    row = lacking.row(0, named=True)
    place = row_text({name: row[name] for name in tidy.columns[: tidy.columns.index("metric")]})
    value = "null" if row["value"] is None else "NaN"
    where = "; check finds them" if "broken rows" in row["reason"] else ""
    more = f" ({lacking.height:,} values are null or NaN)" if lacking.height > 1 else ""
    return visible(f"{row['metric']}{place and f' at {place}'} is {value}: {row['reason']}{where}{more}")


def as_shown(frame: pl.DataFrame, column: str) -> pl.DataFrame:
    """A frame of which a column of texts is safe to show."""
    shown = {text: visible(text) for text in frame[column].unique().to_list() if text is not None}
    return frame.with_columns(pl.col(column).replace_strict(shown, return_dtype=pl.String)) if shown else frame
