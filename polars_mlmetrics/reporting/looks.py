"""The colours and dashes of charts: as numbers for a notebook, as variables of CSS for a page."""

from __future__ import annotations

from dataclasses import dataclass

FONT = "Helvetica Neue, Helvetica, Arial, Liberation Sans, sans-serif"
"""Fonts of one width. No quotes: what draws the charts ends the process at a quoted name."""

DASHES = ((5, 3), (1, 0), (2, 2), (8, 3, 2, 3), (10, 4))
MOST_SERIES = 5
"""So many models can be told apart; more are in tables alone."""


@dataclass(frozen=True)
class Look:
    """The colours of a chart."""

    series: tuple[str, ...]
    better: str
    worse: str
    ink: str
    soft: str
    rule: str
    steps: tuple[str, ...]
    """Of a heat map, from much better to much worse."""
    for_page: bool = False
    """Whether the page adds the legend, and shows what a mark describes."""


LIGHT = Look(
    series=("#5b6470", "#0b66c3", "#a96704", "#7f06f9", "#240b50"),
    better="#0f6e5c",
    worse="#b3400b",
    ink="#16181d",
    soft="#5b6470",
    rule="#d9dde3",
    steps=("#0f6e5c", "#5fa596", "#b7d8d0", "#eceef0", "#f3ccb3", "#dd8a58", "#b3400b"),
)
PAGE = Look(
    series=tuple(f"var(--m{place})" for place in range(1, MOST_SERIES + 1)),
    better="var(--better)",
    worse="var(--worse)",
    ink="var(--ink)",
    soft="var(--soft)",
    rule="var(--rule)",
    steps=tuple(f"var(--h{place})" for place in range(1, 8)),
    for_page=True,
)
