"""The section of time: the headline over each date, its difference from the baseline, and how many rows there were."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import polars as pl

from polars_mlmetrics.data.visible import visible
from polars_mlmetrics.reporting.asked import MODEL, name_of
from polars_mlmetrics.reporting.page.series import charts_of, lines_of, series_of
from polars_mlmetrics.reporting.verdicts import Told
from polars_mlmetrics.reporting.wording import direction

LAST_DAYS, FEWEST_DAYS = 7, 3
"""How many days before the last one are the usual ones, and how many of them there must be."""

Plot = tuple[dict[str, Any], str]
"""A chart and its caption."""


def time_section(told: Told) -> dict[str, Any]:
    """A chart of the values for each date, and one of the differences where there is a baseline."""
    plots, names = [], series_of(told)
    for date in dict.fromkeys(map(name_of, told.answers.asked.dates)):
        drawn = (_values(told, date), _differences(told, date), _rows(told, date))
        plots += [(*plot, names) for plot in drawn if plot]
    return {"plots": plots} if plots else {"absent": "no key is a date"}


def _of_dates(told: Told, table: pl.DataFrame, date: str) -> pl.DataFrame:
    """The rows of a table that are about the headline on one date."""
    is_there = pl.col("metric") == told.answers.asked.headline.output_name, pl.col(date).is_not_null()
    return lines_of(told, table.filter(pl.col("sliced_by") == date, *is_there, pl.col("value").is_finite()))


def _plot(told: Told, lines: pl.DataFrame, date: str, title: str, caption: str, **how: Any) -> Plot | None:
    if lines.is_empty():
        return None
    charts = charts_of(told)
    return charts.finished(charts.over_time(lines, date, title, **how)), caption


def _values(told: Told, date: str) -> Plot | None:
    lines = _of_dates(told, told.answers.values, date)
    usual = _usual(lines.filter(pl.col(MODEL) == told.candidate), date)
    title = f"{told.metric} ({direction(told.answers.asked.headline.best)})"
    caption = f"{told.metric} by {visible(date)}, with its intervals."
    if usual is not None:
        caption += f" The grey range is that of {visible(told.candidate)} on the {LAST_DAYS} days before the last one."
    return _plot(told, lines, date, title, caption, usual=usual)


def _differences(told: Told, date: str) -> Plot | None:
    if told.answers.differences is None:
        return None
    found = told.answers.differences.drop("value").rename({"difference": "value"})
    caption = f"{told.metric} less that of {visible(told.baseline or '')}, by {visible(date)}, with its intervals."
    lines = _of_dates(told, found, date)
    return _plot(told, lines, date, f"difference in {told.metric}", caption, zero=True)


def _rows(told: Told, date: str) -> Plot | None:
    lines, nothing = _of_dates(told, told.answers.values, date).drop_nulls("n_rows"), pl.lit(None, pl.Float64)
    lines = lines.with_columns(value=pl.col("n_rows"), low=nothing, high=nothing)
    return _plot(told, lines, date, "rows", f"Rows that count, by {visible(date)}.", zero=True, height=70)


def _usual(lines: pl.DataFrame, date: str) -> tuple[float, float] | None:
    """The lowest and the highest value of the days before the last; None where these are few."""
    last = pl.col(date).max()
    before = lines.filter(pl.col(date) < last, pl.col(date) >= last - timedelta(days=LAST_DAYS))["value"].to_list()
    return (min(before), max(before)) if len(before) >= FEWEST_DAYS else None
