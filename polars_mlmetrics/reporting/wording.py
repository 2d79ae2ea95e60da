"""How numbers are written for people: three decimals, a true minus, intervals as "a to b"."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

MINUS = "\u2212"
LONG = r"(\d+\.\d{6})\d+"
"""A number of more decimals than anyone reads; the last ones differ from run to run."""
NONE = "–"
"""The sign for a missing number; the reason stands beside it."""


def number(value: float | None) -> str:
    """A number with three decimals; a small one with two digits."""
    if value is None:
        return NONE
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{MINUS if value < 0 else ''}∞"
    size = abs(value)
    if size >= 1000:
        shown = f"{size:,.0f}" if size >= 100_000 else f"{size:,.1f}"
    else:
        shown = f"{size:.3f}" if size >= 0.001 or size == 0 else f"{size:.1e}".replace("e-0", "e-").replace("-", MINUS)
    return f"{MINUS if value < 0 else ''}{shown}"


def signed(value: float | None) -> str:
    """A difference, with its sign."""
    return f"+{number(value)}" if value is not None and value > 0 else number(value)


def interval(low: float | None, high: float | None, *, of_difference: bool = False) -> str:
    """The ends of an interval; nothing where there is none."""
    if low is None or high is None:
        return ""
    written = signed if of_difference else number
    return f"{written(low)} to {written(high)}"


def within(row: Mapping[str, Any], *, of_difference: bool = False) -> str:
    """The interval of a row, behind its value."""
    ends = interval(row["low"], row["high"], of_difference=of_difference)
    return f" ({ends})" if ends else ""


def percent(share: float | None) -> str:
    """A share in percent, as exact as it is of use."""
    if share is None:
        return NONE
    percents = 100 * share
    if 0 < percents < 0.1:
        return "less than 0.1 %"
    return f"{percents:.0f} %" if percents >= 10 or percents == 0 else f"{percents:.1f} %"


def count(number_of: int | None) -> str:
    """A whole number, in threes."""
    return NONE if number_of is None else f"{number_of:,}"


def amount(number_of: float | None) -> str:
    """A number of rows: with weights it need not be whole."""
    is_whole = number_of is not None and number_of == number_of and number_of == round(number_of)
    return count(round(number_of)) if is_whole and number_of is not None else number(number_of)


def many(number_of: int, one: str, more: str) -> str:
    """A number of things, in words."""
    return f"{number_of:,} {one if number_of == 1 else more}"


def listed(texts: list[str]) -> str:
    """Texts in a sentence."""
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def level_of(ci: float) -> str:
    """The level of an interval."""
    return f"{100 * ci:g} %"


def direction(best: str | None) -> str:
    """Which values of a metric are good."""
    return {"max": "higher is better", "min": "lower is better"}.get(best or "", "neither end is better")
