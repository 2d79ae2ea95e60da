"""The section of calibration: how often scores are right."""

from __future__ import annotations

from typing import Any

import polars as pl

from polars_mlmetrics.reporting.page.series import charts_of, lines_of, series_of, why_no_curves
from polars_mlmetrics.reporting.points import SERIES
from polars_mlmetrics.reporting.verdicts import Told
from polars_mlmetrics.reporting.wording import level_of


def calibration_section(told: Told) -> dict[str, Any]:
    """A panel for each model, their counts on one scale: how often scores are right."""
    asked, table = told.answers.asked, told.answers.curves.get("calibration", pl.DataFrame())
    bins = table if table.is_empty() else lines_of(told, table.drop_nulls(["score", "truth"]))
    if bins.is_empty():
        needed = "calibration_error() and brier_resolution()"
        return {"absent": why_no_curves(told, of_log="the scores are not probabilities", needed=needed)}
    said = ["How often a score is right: on the dotted line scores are probabilities."]
    said += [] if asked.ci is None else [f"Lines are {level_of(asked.ci)} intervals."]
    if asked.table.weight is None:
        bins = bins.with_columns(trues=pl.col("truth") * pl.col("n_rows"))
        said += ["Below is the number of rows; the dark part is true."]
    elif table["n_rows"].is_not_null().any():
        said += ["Below is the number of rows."]
    charts, there = charts_of(told), set(bins[SERIES])
    panels = charts.calibrations(bins, [name for name in series_of(told) if name in there])
    return {"plots": [charts.finished(panel) for panel in panels], "note": " ".join(said)}
