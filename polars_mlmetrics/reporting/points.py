"""What is drawn of a frame: rows of numbers and of texts that are safe to show, under fixed names."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

import polars as pl

from polars_mlmetrics.data.visible import text_of_key
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.query.results import TIDY
from polars_mlmetrics.reporting.wording import as_shown, interval, number, signed

SERIES = f"{INTERNAL}series"

AXES = {"roc": ("fpr", "tpr"), "pr": ("recall", "precision"), "det": ("fpr", "fnr"), "gain": ("share", "recall")}
"""The columns of each curve, across and up."""

TITLES = {
    "roc": ("false positive rate", "recall"),
    "pr": ("recall", "precision"),
    "det": ("false positive rate", "false negative rate"),
    "gain": ("share of the rows, highest scores first", "recall"),
}

RATES = (0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99, 0.999)
"""What the axes of a det curve name; they are those of a normal distribution."""


def with_series(frame: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """A frame with a text that names the group of each row."""
    if not keys:
        return frame.with_columns(pl.lit("all rows").alias(SERIES))
    texts = [text_of_key(pl.col(key), frame.schema[key]) for key in keys]
    return as_shown(frame.with_columns(pl.concat_str(texts, separator=", ").alias(SERIES)), SERIES)


def series_of(frame: pl.DataFrame) -> list[str]:
    """The groups of a frame, as they come."""
    return frame[SERIES].unique(maintain_order=True).to_list()


def curve_points(frame: pl.DataFrame, x: str, y: str) -> list[dict[str, Any]]:
    """The points of lines; those of one line in their order."""
    ends = [pl.col(end) for end in ("low", "high") if end in frame.columns]
    order = pl.int_range(pl.len()).over(SERIES).alias("order")
    points = frame.select(pl.col(x).alias("x"), pl.col(y).alias("y"), *ends, pl.col(SERIES).alias("series"), order)
    return points.filter(pl.col("x").is_finite(), pl.col("y").is_finite()).to_dicts()


def curve_dots(frame: pl.DataFrame, x: str, y: str, titles: tuple[str, str]) -> list[dict[str, Any]]:
    """The last point of each tenth of the threshold, and what is there in words."""
    tenth = (pl.col("threshold") * 10).floor()
    chosen = frame.filter(pl.col("threshold").is_finite(), pl.col(x).is_finite(), pl.col(y).is_finite())
    chosen = chosen.filter((tenth != tenth.shift(-1)).over(SERIES).fill_null(False))
    return [
        {
            "x": row[x],
            "y": row[y],
            "series": row[SERIES],
            "text": f"{row[SERIES]}, threshold {number(row['threshold'])}: "
            f"{titles[0]} {number(row[x])}, {titles[1]} {number(row[y])}",
        }
        for row in chosen.iter_rows(named=True)
    ]


def calibration_points(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """The bins of each series."""
    ends = {end: pl.col(end) if end in frame.columns else pl.lit(None, pl.Float64) for end in ("low", "high")}
    return [
        {
            "x": row["score"],
            "y": row["truth"],
            "low": row["low"],
            "high": row["high"],
            "n": row["n_rows"],
            "left": row["bin_low"],
            "right": row["bin_high"],
            "series": row[SERIES],
            "text": f"{row[SERIES]}: of {_rows(row['n_rows'])} with a mean score of {number(row['score'])}, "
            f"{number(row['truth'])} are true{_within(row)}",
        }
        for row in frame.with_columns(**ends).iter_rows(named=True)
        if row["score"] is not None and row["truth"] is not None
    ]


def _rows(n: int | None) -> str:
    """So many rows, where they are counted: of weighted ones a state knows their weight alone."""
    return "rows" if n is None else f"{n:,} rows"


def _within(row: dict[str, Any], *, of_difference: bool = False) -> str:
    ends = interval(row["low"], row["high"], of_difference=of_difference)
    return f" ({ends})" if ends else ""


def value_points(tidy: pl.DataFrame, name: str) -> list[dict[str, Any]]:
    """Values and their intervals, each under a name."""
    return [
        {
            "name": row[name],
            "x": row["value"],
            "low": row["low"],
            "high": row["high"],
            "series": row[SERIES],
            "text": f"{row[SERIES]}, {row[name]}: {number(row['value'])}{_within(row)}",
        }
        for row in tidy.iter_rows(named=True)
        if _is_number(row["value"])
    ]


def difference_points(frame: pl.DataFrame, name: str) -> list[dict[str, Any]]:
    """Differences and their intervals, each under a name."""
    return [
        {
            "name": row[name],
            "x": row["difference"],
            "low": row["low"],
            "high": row["high"],
            "verdict": row["verdict"] if row["verdict"] in ("better", "worse") else "no verdict",
            "text": f"{row[name]}: {signed(row['difference'])}{_within(row, of_difference=True)}, "
            f"{row['verdict'] or 'no verdict'}",
        }
        for row in frame.iter_rows(named=True)
        if _is_number(row["difference"])
    ]


def time_points(tidy: pl.DataFrame, day: str) -> list[dict[str, Any]]:
    """Values over time, in its order."""
    return [
        {
            "time": _local(row[day]),
            "order": place,
            "y": row["value"],
            "low": row["low"],
            "high": row["high"],
            "series": row[SERIES],
            "text": f"{row[SERIES]}, {row[day]}: {number(row['value'])}{_within(row)}",
        }
        for place, row in enumerate(tidy.sort(day).iter_rows(named=True))
        if row[day] is not None and _is_number(row["value"])
    ]


def _local(moment: date | datetime) -> str:
    """A moment as Vega reads it: a date without a time would be one of UTC, and the day before in the west."""
    return moment.isoformat() if isinstance(moment, datetime) else f"{moment.isoformat()}T00:00:00"


def _is_number(value: float | None) -> bool:
    return value is not None and value - value == 0


def tidied(frame: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """A wide table as one row for each value: `metric`, `value`, `low`, `high`."""
    if {"metric", "value"} <= set(frame.columns):
        ends = [end for end in ("low", "high") if end not in frame.columns]
        return frame.with_columns(pl.lit(None, TIDY[end]).alias(end) for end in ends)
    names = [name for name in frame.columns if name not in keys]
    metrics = [name for name in names if not _is_end(name, names)]
    return pl.concat(
        frame.select(
            *keys,
            pl.lit(name).alias("metric"),
            pl.col(name).cast(pl.Float64).alias("value"),
            *(_end(frame, name, end) for end in ("low", "high")),
        )
        for name in metrics
    )


def _is_end(name: str, names: Sequence[str]) -> bool:
    return any(name == f"{metric}_{end}" for metric in names for end in ("low", "high"))


def _end(frame: pl.DataFrame, name: str, end: str) -> pl.Expr:
    column = f"{name}_{end}"
    known = pl.col(column) if column in frame.columns else pl.lit(None)
    return known.cast(pl.Float64).alias(end)
