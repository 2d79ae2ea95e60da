"""Findings of a report as plain data: cards of sentences, and the rows of models and slices that they are about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from polars_mlmetrics.reporting.wording import interval, number, signed


class Tone(StrEnum):
    """Whether what a card says is good news."""

    GOOD = "good"
    BAD = "bad"
    EVEN = "even"
    OPEN = "open"


SIGNS = {Tone.GOOD: "✓", Tone.BAD: "✗", Tone.EVEN: "~", Tone.OPEN: "?"}


class Strong(str):
    """A part of a sentence that catches the eye."""


Sentence = list[str]
Row = dict[str, Any]

OF_DIFFERENCE = ("difference", "difference_low", "difference_high")
JUDGED = ("verdict", "not_judged")
"""The keys of a difference in a row, and those of what is said of it."""

CHANGED = ("better", "worse")
"""The verdicts of what the comment shows."""

MOST_SLICES, MOST_CHANGED = 1000, 10
"""So many slices a page has, and so many that changed a comment."""


@dataclass(frozen=True)
class Card:
    """A heading and some sentences."""

    about: str
    """Its subject: "rules", "models", "slices" or "uncertain"."""
    tone: Tone
    heading: str
    sentences: list[Sentence] = field(default_factory=list)

    @property
    def sign(self) -> str:
        """The tone as a sign, for those who do not see its colour."""
        return SIGNS[self.tone]

    @property
    def lines(self) -> list[str]:
        """The sentences, as plain text."""
        return ["".join(sentence) for sentence in self.sentences]

    def text(self) -> str:
        """All it says, as plain text."""
        return "\n".join([self.heading, *self.lines])


@dataclass(frozen=True)
class Findings:
    """All that a report says. Names are those of the log: whatever shows them makes them safe."""

    title: str
    """Safe to show, as are the sizes, the sentences and `outside_of`."""
    sizes: list[str]
    dates: list[str]
    """From when to when the rows are; nothing where no key is a date."""
    names: list[str]
    """The models: the baseline first, if there is one, then the candidate."""
    candidate: str
    baseline: str | None
    metrics: Mapping[str, str | None]
    """The metrics, the headline first, and which end of each is good."""
    signature: str
    """Of the headline."""
    level: str | None
    """Of all intervals; None where there are none."""
    cards: list[Card]
    models: list[Row]
    """Of each model and metric: value, interval, and the difference from the baseline with its verdict."""
    slices: list[Row]
    """The first slices of the table. With a baseline an interval is that of the difference."""
    n_slices: int
    changed: list[Row]
    """The first slices that are better or worse, and repeat no larger one."""
    n_changed: int
    outside_of: str
    """The worst slice; empty where none is worse."""
    outside: Row
    """The difference without it."""
    pooled: str
    """That the numbers are of several models together, where they are."""

    @property
    def headline(self) -> str:
        """The metric that the summary and the slices are about."""
        return next(iter(self.metrics))

    def card(self, about: str) -> Card:
        """The card of a subject."""
        return next(card for card in self.cards if card.about == about)

    def of_metric(self, metric: str) -> dict[str, Row]:
        """The row of each model."""
        return {row["model"]: row for row in self.models if row["metric"] == metric}


# -- sentences ---------------------------------------------------------------------------------------------------------


def against(metric: str, row: Row) -> Sentence:
    """A value against that of the baseline, and the difference: the end of the sentence is still to come."""
    values = [f"{metric} ", Strong(number(row["value"])), f" against {number(row['baseline'])}: "]
    return [*values, *by_how_much(row, without_ends=f" ({row['not_judged'] or 'no interval'})")]


def by_how_much(row: Row, without_ends: str = "") -> Sentence:
    """A difference and its interval."""
    ends = ends_of(row)
    return [Strong(signed(row["difference"])), f" ({ends})" if ends else without_ends]


def ends_of(row: Row) -> str:
    """The interval of a difference; empty where there is none."""
    return interval(row["difference_low"], row["difference_high"], of_difference=True)


def verdict_of(row: Row) -> str:
    """The verdict of a difference, or why it has none."""
    return row["verdict"] or row["not_judged"] or "no verdict"
