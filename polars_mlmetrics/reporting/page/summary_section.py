"""The cards at the top of the page."""

from __future__ import annotations

from typing import Any

from polars_mlmetrics.reporting.findings import Findings


def summary_section(found: Findings) -> dict[str, Any]:
    """A card for each subject."""
    return {"cards": found.cards}
