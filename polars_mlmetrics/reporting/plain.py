"""The findings of a report as plain dicts and lists, and as lines of a terminal."""

from __future__ import annotations

from math import isfinite
from typing import Any

from polars_mlmetrics.reporting.findings import JUDGED, OF_DIFFERENCE, Findings, Row

OF_MODELS = ("model", "metric", "value", "low", "high", "reason")
OF_SLICES = ("model", "sliced_by", "slice", "samples", "value")


def data_of(found: Findings) -> dict[str, Any]:
    """The findings as dicts and lists of numbers and texts; names are those of the log, and a NaN is None."""
    of_models = (*OF_DIFFERENCE, *JUDGED) if found.baseline is not None else ()
    of_slices = (*OF_DIFFERENCE, "baseline", *JUDGED) if found.baseline is not None else ("low", "high", "not_judged")
    outside = ("outside",) if found.outside else ()
    return {
        "title": found.title,
        "sizes": [*found.sizes, *found.dates],
        "candidate": found.candidate,
        "baseline": found.baseline,
        "findings": [
            {"about": card.about, "tone": str(card.tone), "heading": card.heading, "sentences": card.lines}
            for card in found.cards
        ],
        "models": _rows(found.models, (*OF_MODELS, *of_models)),
        "slices": _rows(found.slices, (*OF_SLICES, *of_slices, *outside)),
        "n_slices": found.n_slices,
    }


def _rows(rows: list[Row], columns: tuple[str, ...]) -> list[Row]:
    return [{name: _plain(row[name]) for name in columns} for row in rows]


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not isfinite(value) else value


def text_of(found: Findings) -> str:
    """The findings as lines, for a terminal."""
    lines = [found.title, " · ".join([*found.sizes, *found.dates])]
    for card in found.cards:
        lines += ["", f"{card.sign} {card.heading}", *(f"  {line}" for line in card.lines)]
    return "\n".join(lines) + "\n"
