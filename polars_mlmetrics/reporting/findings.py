"""Findings of a report: verdicts, or the reason where there is none, and the cards that show them."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, NamedTuple

import polars as pl

from polars_mlmetrics.data.visible import visible
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.arithmetic import first_that_holds, ratio
from polars_mlmetrics.intervals.intervals import FLAGS
from polars_mlmetrics.reporting.answers import WEIGHT_OF_ROWS, Answers
from polars_mlmetrics.reporting.asked import MODEL, WHOLE, name_of
from polars_mlmetrics.reporting.wording import as_shown

FEWEST = 30
"""So many samples a slice needs to be judged."""

SHOWN = "shown"


def key_column(name: str) -> str:
    """The column of a key of slices in the tables of findings, whose other columns may have the name of the key."""
    return f"{INTERNAL}key_{name}"


def _why_not_judged(value: pl.Expr) -> pl.Expr:
    flag = pl.col("ci_flag")
    cases = [
        (flag == "no_pairs", pl.lit(FLAGS["no_pairs"])),
        (value.is_null() | value.is_nan(), pl.lit("no value")),
        (pl.col("n") < FEWEST, pl.lit(f"fewer than {FEWEST} samples")),
        *((flag == name, pl.lit(words)) for name, words in FLAGS.items() if words is not None),
        (pl.col("low").is_null(), pl.lit("no interval")),
    ]
    return first_that_holds(cases, pl.lit(None, dtype=pl.String))


def judged_differences(differences: pl.DataFrame) -> pl.DataFrame:
    """A table of `compare` with its verdicts where they are sure, and the reason where they are not."""
    table = differences.with_columns(n=pl.col("n_pairs"))
    table = table.with_columns(why=_why_not_judged(pl.col("difference")))
    return table.with_columns(verdict=pl.when(pl.col("why").is_null()).then("verdict"))


def judged_models(answers: Answers) -> pl.DataFrame:
    """Of every model and metric: value, interval, and the difference from the baseline with its verdict."""
    values = answers.values.filter(pl.col("slice") == WHOLE)
    flag = [] if "ci_flag" in values.columns else [pl.lit(None, pl.String).alias("ci_flag")]
    values = values.with_columns(flag)
    counts = ("n_samples", "n_rows", "n_excluded")
    values = values.select(MODEL, "metric", "value", "low", "high", "ci_flag", *counts, "reason")
    if answers.differences is None:
        numbers, texts = ("difference", "d_low", "d_high"), ("verdict", "why")
        values = values.with_columns(pl.lit(None, pl.Float64).alias(name) for name in numbers)
        return values.with_columns(pl.lit(None, pl.String).alias(name) for name in texts)
    whole = judged_differences(answers.differences.filter(pl.col("slice") == WHOLE))
    judged = whole.select(MODEL, "metric", "difference", "why", "verdict", d_low="low", d_high="high")
    return values.join(judged, on=[MODEL, "metric"], how="left", maintain_order="left")


def judged_slices(answers: Answers) -> pl.DataFrame:
    """The slices of the headline in each model, the most harm first; those that cannot be judged last.

    `value`, `low`, `high` are what the table shows: differences from the baseline, or values where there is none.
    `doubted` is the verdict of those that cannot be judged, where there is one.
    """
    table = pl.concat([_slices_of(answers, model) for model in answers.searched])
    order = [pl.col("why").is_not_null(), pl.col("harm"), pl.col("n")]
    table = table.sort(order, descending=[False, True, True], nulls_last=True, maintain_order=True)
    return as_shown(table.with_columns(pl.col("slice").alias(SHOWN)), SHOWN)


def _slices_of(answers: Answers, model: str) -> pl.DataFrame:
    """The slices of one model."""
    asked = answers.asked
    keys = {name: key_column(name) for each in asked.all_slices for name in map(name_of, each)}
    is_headline = pl.col("metric") == asked.headline.output_name, pl.col(MODEL) == model
    own = answers.values.filter(*is_headline).rename(keys, strict=False)
    sizes = own.select("slice", "sliced_by", size=pl.coalesce("n_samples", "n_clusters", "n_rows"))
    if answers.differences is None:
        nothing = pl.lit(None, pl.Float64)
        table = own.with_columns(model_value="value", baseline_value=nothing, n_pairs="n_samples")
        middle = own.filter(pl.col("slice") == WHOLE)["value"].to_list()[0]
    else:
        table = answers.differences.filter(*is_headline).rename(keys)
        table = table.rename({"value": "model_value", "difference": "value"})
        middle = 0.0
    wanted = [", ".join(map(name_of, keys)) for keys in asked.slices]
    table = table.filter((pl.col("slice") == WHOLE) | pl.col("sliced_by").is_in(wanted))
    table = table.join(sizes, on=["sliced_by", "slice"], how="left", maintain_order="left")
    table = table.with_columns(n=pl.coalesce("n_pairs", "size"))
    table = table.with_columns(share=ratio(pl.col("n"), pl.col("n").filter(pl.col("slice") == WHOLE).first()))
    table = _with_part(table, answers.weights, model)
    table = table.with_columns(why=_why_not_judged(pl.col("value")))
    verdict = pl.col("verdict") if "verdict" in table.columns else pl.lit(None, pl.String)
    is_judged = pl.col("why").is_null()
    table = table.with_columns(verdict=pl.when(is_judged).then(verdict), doubted=pl.when(~is_judged).then(verdict))
    table = _with_harm(table, asked.headline.best, middle or 0.0)
    table = _with_repeats(table, [list(map(name_of, keys)) for keys in asked.slices])
    return table.filter(pl.col("slice") != WHOLE)


def _with_part(table: pl.DataFrame, weights: pl.DataFrame | None, model: str) -> pl.DataFrame:
    """The part of all that a slice is: its share of the weight, or of the samples where nothing weighs more."""
    if weights is None:
        return table.with_columns(part="share")
    weight, keys = pl.col(WEIGHT_OF_ROWS), ["sliced_by", "slice"]
    own = weights.filter(pl.col(MODEL) == model)
    part = ratio(weight, weight.filter(pl.col("slice") == WHOLE).first())
    return table.join(own.select(*keys, part=part), on=keys, how="left", maintain_order="left")


def _with_harm(table: pl.DataFrame, best: str | None, middle: float) -> pl.DataFrame:
    """How bad a slice is at least, and for how much: the near end of its interval times its part of all."""
    near = pl.col("low") - middle if best == "min" else middle - pl.col("high")
    return table.with_columns(harm=near * pl.col("part"))


def _with_repeats(table: pl.DataFrame, slicings: list[list[str]]) -> pl.DataFrame:
    """Which slices only repeat a larger one: its difference is in their interval, and no verdict says otherwise."""
    repeats = []
    for larger, smaller in combinations(sorted(slicings, key=len), 2):
        if not set(larger) < set(smaller):
            continue
        names = [", ".join(keys) for keys in (larger, smaller)]
        above, below = (table.filter(pl.col("sliced_by") == name, pl.col("verdict").is_not_null()) for name in names)
        pairs = below.join(above, on=list(map(key_column, larger)), nulls_equal=True, suffix="_above")
        is_same = pl.col("verdict").is_in(["unclear", "no change"]) | (pl.col("verdict") == pl.col("verdict_above"))
        same = pairs.filter(is_same, pl.col("value_above").is_between(pl.col("low"), pl.col("high")))
        repeats.append(same.select("sliced_by", "slice"))
    if not repeats:
        return table.with_columns(repeats=pl.lit(False))
    found = pl.concat(repeats).unique().with_columns(repeats=pl.lit(True))
    table = table.join(found, on=["sliced_by", "slice"], how="left", maintain_order="left")
    return table.with_columns(pl.col("repeats").fill_null(False))


GOOD, BAD, EVEN, OPEN = "good", "bad", "even", "open"
SIGNS = {GOOD: "✓", BAD: "✗", EVEN: "~", OPEN: "?"}


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

    @property
    def lines(self) -> list[str]:
        """The sentences, as plain text."""
        return ["".join(sentence) for sentence in self.sentences]

    def text(self) -> str:
        """All it says, as plain text."""
        return "\n".join([self.heading, *self.lines])


class Outside(NamedTuple):
    """The candidate without its worst slice."""

    of: str
    """The worst slice, safe to show."""
    whole: dict[str, Any]
    """The difference of all other rows: `difference`, `low`, `high`, `verdict`, and `why` where it is not judged."""
    explained: dict[tuple[str, str], str]
    """Other slices that are worse only by it: columns and slice, and the verdict outside of it."""


@dataclass(frozen=True)
class Told:
    """All findings of a report."""

    answers: Answers
    models: pl.DataFrame
    all_slices: pl.DataFrame
    """The slices of every model that was searched."""
    rules: pl.DataFrame | None = None
    """The table of a gate, where one was tried."""
    outside: Outside | None = None
    """The candidate without its worst slice; None where no slice is worse."""

    @property
    def names(self) -> list[str]:
        """The models: the baseline first, if there is one, then the candidate."""
        return self.answers.models

    @property
    def candidate(self) -> str:
        """The model that the report is about: the best one that is not the baseline."""
        return next(model for model in self.names if model != self.answers.asked.baseline_text)

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
    def metric(self) -> str:
        """The headline's name, safe to show."""
        return visible(self.answers.asked.headline.output_name)

    def of(self, model: str, metric: str | None = None) -> dict[str, Any]:
        """The values of a model in a metric: the headline, if none is named."""
        name = self.answers.asked.headline.output_name if metric is None else metric
        return self.models.filter(pl.col(MODEL) == model, pl.col("metric") == name).row(0, named=True)

    def outside_of(self, row: dict[str, Any]) -> str:
        """The verdict of a slice without the worst one, which alone makes it worse; empty of all others."""
        explained = {} if self.outside is None or row[MODEL] != self.candidate else self.outside.explained
        verdict = explained.get((row["sliced_by"], row["slice"]))
        return "" if verdict is None or self.outside is None else f"outside of {self.outside.of}: {verdict}"

    @property
    def judged(self) -> pl.DataFrame:
        """The slices that can be judged."""
        return self.slices.filter(pl.col("why").is_null())

    @property
    def doubted(self) -> list[dict[str, Any]]:
        """The slices in which the candidate is worse by a verdict that is doubted, the most harm first."""
        worse = self.all_slices.filter(pl.col(MODEL) == self.candidate, pl.col("doubted") == "worse")
        return worse.sort("harm", descending=True, nulls_last=True, maintain_order=True).to_dicts()

    def judged_of(self, model: str) -> pl.DataFrame:
        """The slices of a model that can be judged, the most harm first."""
        return self.all_slices.filter(pl.col("why").is_null(), pl.col(MODEL) == model)
