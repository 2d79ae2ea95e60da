"""What a report knows once all is judged, and the cards that say it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import polars as pl

from polars_mlmetrics.data.visible import visible
from polars_mlmetrics.reporting.answers import MODEL, Answers

GOOD, BAD, OPEN = "good", "bad", "open"
SIGNS = {GOOD: "✓", BAD: "✗", OPEN: "?"}


class Strong(str):
    """A part of a sentence that catches the eye."""


Sentence = list[str]


@dataclass(frozen=True)
class Card:
    """A heading and some sentences."""

    tone: str
    heading: str
    sentences: list[Sentence] = field(default_factory=list)

    @property
    def sign(self) -> str:
        """The tone as a sign, for those who do not see its colour."""
        return SIGNS[self.tone]

    def text(self) -> str:
        """All it says, as plain text."""
        return "\n".join([self.heading, *("".join(sentence) for sentence in self.sentences)])


@dataclass(frozen=True)
class Told:
    """What the report knows once all is judged."""

    answers: Answers
    models: pl.DataFrame
    all_slices: pl.DataFrame
    """The slices of every model that was searched."""
    names: list[str]
    """The models: the baseline first, if there is one, then the candidate."""
    candidate: str

    @property
    def baseline(self) -> str | None:
        """The model that the others are compared with."""
        return self.names[0] if self.answers.differences is not None else None

    @property
    def searched(self) -> list[str]:
        """The models whose slices are looked at."""
        return self.answers.searched

    @property
    def in_table(self) -> list[str]:
        """The models whose slices are in the table: with a baseline the page is about one."""
        return self.searched if self.baseline is None else [self.candidate]

    @property
    def compared(self) -> list[str]:
        """The same, after the baseline where there is one."""
        return self.in_table if self.baseline is None else [self.baseline, *self.in_table]

    @property
    def slices(self) -> pl.DataFrame:
        """The slices of the table."""
        return self.all_slices.filter(pl.col(MODEL).is_in(self.in_table))

    @property
    def counted(self) -> str:
        """What the size of a slice is, for the harm that it does."""
        return "samples" if self.answers.weights is None else "weight"

    @property
    def others(self) -> list[str]:
        """The models that are neither the baseline nor the candidate."""
        return [name for name in self.names if name not in (self.baseline, self.candidate)]

    @property
    def metric(self) -> str:
        """The headline's name, safe to show."""
        return visible(self.answers.asked.headline.output_name)

    def of(self, model: str, metric: str | None = None) -> dict[str, Any]:
        """What is known of a model in a metric: the headline, if none is named."""
        name = self.answers.asked.headline.output_name if metric is None else metric
        return self.models.filter(pl.col(MODEL) == model, pl.col("metric") == name).row(0, named=True)

    def verdicts(self, model: str) -> dict[str, int]:
        """How often a model has each verdict."""
        return dict(self.models.filter(pl.col(MODEL) == model).group_by("verdict").agg(pl.len()).rows())

    @property
    def judged(self) -> pl.DataFrame:
        """The slices that can be judged."""
        return self.slices.filter(pl.col("why").is_null())

    def judged_of(self, model: str) -> pl.DataFrame:
        """The slices of a model that can be judged, the most harm first."""
        return self.all_slices.filter(pl.col("why").is_null(), pl.col(MODEL) == model)
