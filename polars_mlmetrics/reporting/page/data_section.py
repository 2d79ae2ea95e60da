"""The section of data: the problems that `check` found."""

from __future__ import annotations

from typing import Any

from polars_mlmetrics.reporting.page.series import NOT_HELD
from polars_mlmetrics.reporting.verdicts import Told


def data_section(told: Told) -> dict[str, Any]:
    """The table of `check`, without what is no problem."""
    found = told.problems
    if found is None:
        return {"absent": NOT_HELD}
    if found.is_empty():
        return {"absent": "check found no problem"}
    return {"rows": found.to_dicts()}
