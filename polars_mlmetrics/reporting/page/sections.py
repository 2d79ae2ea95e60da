"""The parts of the page, section by section."""

from __future__ import annotations

from polars_mlmetrics.reporting.findings import Findings
from polars_mlmetrics.reporting.page.calibration_section import calibration_section
from polars_mlmetrics.reporting.page.curves_section import curves_section
from polars_mlmetrics.reporting.page.data_section import data_section
from polars_mlmetrics.reporting.page.found_section import found_section
from polars_mlmetrics.reporting.page.labels_section import labels_section
from polars_mlmetrics.reporting.page.made_section import made_section
from polars_mlmetrics.reporting.page.models_section import models_section
from polars_mlmetrics.reporting.page.page import Parts
from polars_mlmetrics.reporting.page.slices_section import slices_section
from polars_mlmetrics.reporting.page.time_section import time_section
from polars_mlmetrics.reporting.verdicts import Told


def parts_of(told: Told, found: Findings) -> dict[str, Parts]:
    """The parts of each section, or why it is not there."""
    return {
        "summary": {"cards": found.cards},
        "models": models_section(found),
        "slices": slices_section(told),
        "found": found_section(told),
        "labels": labels_section(told),
        "curves": curves_section(told),
        "calibration": calibration_section(told),
        "time": time_section(told),
        "data": data_section(told),
        "made": made_section(told),
    }
