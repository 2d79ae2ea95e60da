"""The findings of a report as plain data, and as lines of a terminal: the sentences of its page."""

from __future__ import annotations

from math import isfinite
from typing import Any

import polars as pl

from polars_mlmetrics.reporting.asked import MODEL
from polars_mlmetrics.reporting.findings import Told
from polars_mlmetrics.reporting.slice_section import MOST_ROWS
from polars_mlmetrics.reporting.summary import cards, sizes_of, title_of
from polars_mlmetrics.reporting.time_section import dates_of

KINDS = ("rules", "models", "slices", "uncertain")
"""The subjects of the cards; the first is there where a gate was tried."""

OF_MODELS = {"metric": "metric", "value": "value", "low": "low", "high": "high", "reason": "reason"}
OF_DIFFERENCES = {"difference": "difference", "difference_low": "d_low", "difference_high": "d_high"}
OF_SLICES = {"sliced_by": "sliced_by", "slice": "slice", "samples": "n", "value": "model_value"}
JUDGED = {"verdict": "verdict", "not_judged": "why"}


def data_of(told: Told, title: str | None) -> dict[str, Any]:
    """The findings as dicts and lists of numbers and texts; names are those of the log, and a NaN is None."""
    found = cards(told)
    said = [
        {"about": kind, "tone": card.tone, "heading": card.heading, "sentences": card.lines}
        for kind, card in zip(KINDS[-len(found) :], found, strict=True)
    ]
    differences = OF_DIFFERENCES | JUDGED if told.baseline is not None else {}
    of_slice = {"difference": "value", "difference_low": "low", "difference_high": "high", "baseline": "baseline_value"}
    columns = of_slice | JUDGED if told.baseline is not None else {"low": "low", "high": "high", "not_judged": "why"}
    slices = told.slices.head(MOST_ROWS)
    outside = [{"outside": told.outside_of(row) or None} if told.outside else {} for row in slices.to_dicts()]
    rows = _rows(slices, OF_SLICES | columns)
    return {
        "title": title_of(told, title),
        "sizes": sizes_of(told, dates_of(told)),
        "candidate": told.candidate,
        "baseline": told.baseline,
        "findings": said,
        "models": _rows(told.models, OF_MODELS | differences),
        "slices": [{**row, **more} for row, more in zip(rows, outside, strict=True)],
        "n_slices": told.slices.height,
    }


def _rows(table: pl.DataFrame, columns: dict[str, str]) -> list[dict[str, Any]]:
    rows = table.select(model=MODEL, **{name: pl.col(column) for name, column in columns.items()}).to_dicts()
    return [{name: _plain(value) for name, value in row.items()} for row in rows]


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not isfinite(value) else value


def text_of(told: Told, title: str | None) -> str:
    """The findings as lines, for a terminal."""
    lines = [title_of(told, title), " · ".join(sizes_of(told, dates_of(told)))]
    for card in cards(told):
        lines += ["", f"{card.sign} {card.heading}", *(f"  {line}" for line in card.lines if line)]
    return "\n".join(lines) + "\n"
