"""Points of charts: rows of numbers and of texts that are safe to show, under fixed names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime
from math import isinf
from statistics import median_low
from typing import Any

import polars as pl

from polars_mlmetrics.curves.calibration_curves import SHARES
from polars_mlmetrics.data.frames import text_apart
from polars_mlmetrics.data.visible import visible
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.query.results import TIDY
from polars_mlmetrics.reporting.asked import MODEL
from polars_mlmetrics.reporting.reasons import as_shown
from polars_mlmetrics.reporting.wording import number, signed, within

SERIES, ORDER = f"{INTERNAL}series", f"{INTERNAL}order"
NAME = "name"
ENDS = {"low": "low", "high": "high"}

AXES = {"roc": ("fpr", "tpr"), "pr": ("recall", "precision"), "det": ("fpr", "fnr"), "gain": ("share", "recall")}
"""The columns of each curve, across and up."""

TITLES = {
    "roc": ("false positive rate", "recall"),
    "pr": ("recall", "precision"),
    "det": ("false positive rate", "false negative rate"),
    "gain": ("share of the rows, highest scores first", "recall"),
}

MOST_ROOM = 3
"""So many times the room that most need, an axis is cut."""

RATES = (0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99, 0.999)
"""The ticks of the axes of a det curve; they are those of a normal distribution."""


def with_series(frame: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """A frame with a text that names the group of each row."""
    if not keys:
        return frame.with_columns(pl.lit("all rows").alias(SERIES))
    texts = [text_apart(pl.col(key), frame.schema[key], among_others=bool(keys[1:])) for key in keys]
    return as_shown(frame.with_columns(pl.concat_str(texts, separator=", ").alias(SERIES)), SERIES)


def of_models(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """The rows of these models of a report, with a text that names the model of each."""
    shown = {name: visible(name) for name in names}
    rows = frame.filter(pl.col(MODEL).is_in(list(names)))
    return rows.with_columns(pl.col(MODEL).replace_strict(shown, return_dtype=pl.String).alias(SERIES))


def series_of(frame: pl.DataFrame) -> list[str]:
    """The groups of a frame, as they come."""
    return frame[SERIES].unique(maintain_order=True).to_list()


def curve_points(frame: pl.DataFrame, x: str, y: str) -> list[dict[str, Any]]:
    """The points of lines; those of one line in their order."""
    ends = [pl.col(end) for end in ENDS if end in frame.columns]
    order = pl.int_range(pl.len()).over(SERIES).alias("order")
    points = frame.select(*ends, order, x=x, y=y, series=SERIES)
    return points.filter(pl.col("x").is_finite(), pl.col("y").is_finite()).to_dicts()


def curve_dots(frame: pl.DataFrame, x: str, y: str, titles: tuple[str, str]) -> list[dict[str, Any]]:
    """The last point of each tenth of the threshold, and what is there in words."""

    def text(row: dict[str, Any]) -> str:
        place = f"{titles[0]} {number(row[x])}, {titles[1]} {number(row[y])}"
        return f"{row[SERIES]}, threshold {number(row['threshold'])}: {place}"

    tenth = (pl.col("threshold") * 10).floor()
    chosen = frame.filter(pl.col("threshold").is_finite(), pl.col(x).is_finite(), pl.col(y).is_finite())
    chosen = chosen.filter((tenth != tenth.shift(-1)).over(SERIES).fill_null(False))
    return described(chosen, text, x=x, y=y, series=SERIES)


def joined_values(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A line for each name, from its least to its greatest value, in the colour of its last series."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        values = [row["x"], *(found[row["name"]][end] for end in ENDS if row["name"] in found)]
        found[row["name"]] = {**row, "low": min(values), "high": max(values)}
    return list(found.values())


def robust_ends(rows: Sequence[dict[str, Any]]) -> tuple[float, float] | None:
    """The ends of an axis on which a few very wide intervals do not flatten all others; None where none does.

    Every value is on it, and beside it as much room as the interval in the middle of all takes.
    """
    values = [row["x"] for row in rows]
    known = [(row["low"], row["high"]) for row in rows if row.get("low") is not None]
    if not known or any(isinf(end) for ends in known for end in ends):
        return None
    room = median_low(high - low for low, high in known)
    low, high = min(values) - room, max(values) + room
    widest = max(high for _, high in known) - min(low for low, _ in known)
    return (low, high) if widest > MOST_ROOM * (high - low) else None


def described(
    rows: pl.DataFrame, text: Callable[[dict[str, Any]], str], **columns: str | pl.Expr
) -> list[dict[str, Any]]:
    """Columns of rows under these names, and what is said of each row."""
    points = zip(rows.select(**columns).to_dicts(), rows.iter_rows(named=True), strict=True)
    return [{**point, "text": text(row)} for point, row in points]


def calibration_points(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """The bins of each series."""

    def text(row: dict[str, Any]) -> str:
        # Of weighted rows a state knows their weight alone.
        rows = "rows" if row["n_rows"] is None else f"{row['n_rows']:,} rows"
        are = f"{number(row['truth'])} are true{within(row)}"
        return f"{row[SERIES]}: of {rows} with a mean score of {number(row['score'])}, {are}"

    bins = _with_ends(frame.drop_nulls(["score", "truth"]))
    sides = {"left": "bin_low", "right": "bin_high"}
    trues = "trues" if "trues" in bins.columns else pl.lit(None, pl.Float64)
    return described(bins, text, x="score", y="truth", **ENDS, **sides, n="n_rows", trues=trues, series=SERIES)


def shares_of_classes(frame: pl.DataFrame) -> pl.DataFrame:
    """The bins of a group, from the highest score down, with the share of each class: a series for each."""
    sides = frame.sort("bin", descending=True).select("bin_low", "bin_high", *SHARES.values())
    classes = (sides.with_columns(pl.lit(name).alias(SERIES), share=column) for name, column in SHARES.items())
    return pl.concat(classes).filter(pl.col("share").is_finite())


def outline_points(classes: pl.DataFrame) -> list[dict[str, Any]]:
    """The outlines of classes, from the highest score down: at the end of the last bin nothing is left."""
    ends = classes.filter(pl.col("bin_low") == pl.col("bin_low").max()).with_columns(bin_low="bin_high", share=0.0)
    return curve_points(pl.concat([ends, classes]).with_columns(low=0.0, high="share"), "bin_low", "share")


def outline_dots(classes: pl.DataFrame) -> list[dict[str, Any]]:
    """A dot on each bin of a class, and what is there in words."""

    def text(row: dict[str, Any]) -> str:
        sides = f"{number(row['bin_low'])} to {number(row['bin_high'])}"
        return f"{number(row['share'])} of the {row[SERIES]} score {sides}"

    return described(classes, text, x=pl.mean_horizontal("bin_low", "bin_high"), y="share", series=SERIES)


def value_points(tidy: pl.DataFrame, name: str) -> list[dict[str, Any]]:
    """Values and their intervals, each under a name."""

    def text(row: dict[str, Any]) -> str:
        return f"{row[SERIES]}, {row[name]}: {number(row['value'])}{within(row)}"

    return described(tidy.filter(pl.col("value").is_finite()), text, name=name, x="value", **ENDS, series=SERIES)


def difference_points(frame: pl.DataFrame, name: str) -> list[dict[str, Any]]:
    """Differences and their intervals, each under a name."""

    def text(row: dict[str, Any]) -> str:
        difference = f"{signed(row['difference'])}{within(row, of_difference=True)}"
        return f"{row[name]}: {difference}, {row['verdict'] or 'no verdict'}"

    is_clear = pl.col("verdict").is_in(["better", "worse"])
    verdict = pl.when(is_clear).then("verdict").otherwise(pl.lit("no verdict"))
    rows = frame.filter(pl.col("difference").is_finite())
    return described(rows, text, name=name, x="difference", **ENDS, verdict=verdict)


def time_points(tidy: pl.DataFrame, day: str) -> list[dict[str, Any]]:
    """Values over time, in its order."""

    def text(row: dict[str, Any]) -> str:
        return f"{row[SERIES]}, {row[day]}: {number(row['value'])}{within(row)}"

    rows = tidy.sort(day).with_row_index(ORDER).filter(pl.col(day).is_not_null(), pl.col("value").is_finite())
    points = described(rows, text, time=day, order=ORDER, y="value", **ENDS, series=SERIES)
    return [{**point, "time": _local(point["time"])} for point in points]


def _local(moment: date | datetime) -> str:
    """A moment as Vega reads it: a date without a time would be one of UTC, and the day before in the west."""
    return moment.isoformat() if isinstance(moment, datetime) else f"{moment.isoformat()}T00:00:00"


def _with_ends(frame: pl.DataFrame) -> pl.DataFrame:
    """A frame with ends of intervals, which are null where there are none."""
    return frame.with_columns(pl.lit(None, TIDY[end]).alias(end) for end in ENDS if end not in frame.columns)


def tidied(frame: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """A wide table as one row for each value: `metric`, `value`, `low`, `high`."""
    if {"metric", "value"} <= set(frame.columns):
        return _with_ends(frame)
    names = [name for name in frame.columns if name not in keys]
    metrics = [name for name in names if not _is_end(name, names)]

    def ends(name: str) -> dict[str, pl.Expr]:
        return {end: _number(frame, f"{name}_{end}") for end in ENDS}

    return pl.concat(
        frame.select(*keys, metric=pl.lit(name), value=_number(frame, name), **ends(name)) for name in metrics
    )


def _is_end(name: str, names: Sequence[str]) -> bool:
    return any(name == f"{metric}_{end}" for metric in names for end in ENDS)


def _number(frame: pl.DataFrame, column: str) -> pl.Expr:
    """A column of numbers; null where there is none."""
    return (pl.col(column) if column in frame.columns else pl.lit(None)).cast(pl.Float64)
