"""The models that the charts of a page show, a series each."""

from __future__ import annotations

import polars as pl

from polars_mlmetrics.data.visible import visible
from polars_mlmetrics.reporting.asked import VALUES
from polars_mlmetrics.reporting.charts import Charts
from polars_mlmetrics.reporting.looks import MOST_SERIES, PAGE
from polars_mlmetrics.reporting.points import of_models
from polars_mlmetrics.reporting.verdicts import Told

NOT_HELD = "not in the state: made from the log"


def shown_models(told: Told) -> list[str]:
    """The models that charts show."""
    return told.names[:MOST_SERIES]


def series_of(told: Told) -> list[str]:
    """Their names, safe to show."""
    return [visible(name) for name in shown_models(told)]


def lines_of(told: Told, frame: pl.DataFrame) -> pl.DataFrame:
    """The rows of the models that charts show."""
    return of_models(frame, shown_models(told))


def charts_of(told: Told) -> Charts:
    """Charts of these models."""
    return Charts(PAGE, series_of(told))


def why_no_curves(told: Told, *, of_log: str, needed: str) -> str:
    """Why there is nothing to draw along the scores; empty where nothing has a score and a truth."""
    asked = told.answers.asked
    if len(asked.reads) < len(VALUES):
        return ""
    return of_log if asked.contents is None else f"not in the state: make it with {needed} among its metrics"
