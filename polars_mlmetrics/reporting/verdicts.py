"""The verdicts of a report, or the reason where there is none: of models, of slices, and without the worst slice."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import polars as pl

from polars_mlmetrics.data.visible import visible
from polars_mlmetrics.errors import INTERNAL
from polars_mlmetrics.formula.arithmetic import first_that_holds, ratio
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.intervals.intervals import FLAGS
from polars_mlmetrics.reporting.answers import WEIGHT_OF_ROWS, Answers
from polars_mlmetrics.reporting.asked import MODEL, WHOLE, name_of
from polars_mlmetrics.reporting.findings import JUDGED, OF_DIFFERENCE, Row
from polars_mlmetrics.reporting.reasons import as_shown

FEWEST = 30
"""So many samples a slice needs to be judged."""

SHOWN = "shown"

DIFFERENCE = dict(zip(OF_DIFFERENCE, ("difference", "low", "high"), strict=True))
"""The numbers of a difference, and their columns in a table of `compare`."""

OF_SLICES = {
    "model": MODEL,
    "sliced_by": "sliced_by",
    "slice": "slice",
    "name": SHOWN,
    "samples": "n",
    "share": "share",
    "part": "part",
    "harm": "harm",
    "value": "model_value",
    "baseline": "baseline_value",
    "verdict": "verdict",
    "not_judged": "why",
}
"""The keys of the rows of slices, and their columns in the table of slices."""


def key_column(name: str) -> str:
    """The column of a key of slices in the tables of findings, whose other columns may have the name of the key."""
    return f"{INTERNAL}key_{name}"


def _why_not_judged(value: pl.Expr, of_rows: pl.Expr | bool = False) -> pl.Expr:
    flag = pl.col("ci_flag")
    cases = [
        (flag == "no_pairs", pl.lit(FLAGS["no_pairs"])),
        (value.is_null() | value.is_nan(), pl.lit("no value")),
        ((pl.col("n") < FEWEST) & of_rows, pl.lit(f"fewer than {FEWEST} rows")),
        (pl.col("n") < FEWEST, pl.lit(f"fewer than {FEWEST} samples")),
        *((flag == name, pl.lit(words)) for name, words in FLAGS.items() if words is not None),
        (pl.col("low").is_null(), pl.lit("no interval")),
    ]
    return first_that_holds(cases, pl.lit(None, dtype=pl.String))


def judged_differences(differences: pl.DataFrame) -> pl.DataFrame:
    """A table of `compare` with its verdicts where they are sure, and the reason where they are not."""
    table = differences.with_columns(n=pl.col("n_pairs"))
    table = table.with_columns(not_judged=_why_not_judged(pl.col("difference")), **DIFFERENCE)
    return table.with_columns(verdict=pl.when(pl.col("not_judged").is_null()).then("verdict"))


def judged_models(answers: Answers) -> pl.DataFrame:
    """Of every model and metric: value, interval, and the difference from the baseline with its verdict."""
    values = answers.values.filter(pl.col("slice") == WHOLE)
    flag = [] if "ci_flag" in values.columns else [pl.lit(None, pl.String).alias("ci_flag")]
    counts = ("n_samples", "n_rows", "n_excluded")
    values = values.with_columns(flag).select(MODEL, "metric", "value", "low", "high", "ci_flag", *counts, "reason")
    if answers.differences is None:
        values = values.with_columns(pl.lit(None, pl.Float64).alias(name) for name in (*DIFFERENCE, "baseline"))
        return values.with_columns(pl.lit(None, pl.String).alias(name) for name in JUDGED)
    judged = judged_differences(answers.differences.filter(pl.col("slice") == WHOLE))
    judged = judged.select(MODEL, "metric", *DIFFERENCE, *JUDGED)
    of_baseline = values.filter(pl.col(MODEL) == answers.models[0]).select("metric", baseline="value")
    values = values.join(of_baseline, on="metric", how="left", maintain_order="left")
    return values.join(judged, on=[MODEL, "metric"], how="left", maintain_order="left")


def judged_slices(answers: Answers, metric: Metric) -> pl.DataFrame:
    """The slices of a metric in each model, the most harm first; those that cannot be judged last.

    `value`, `low`, `high` are what the table shows: differences from the baseline, or values where there is none.
    `doubted` is the verdict of those that cannot be judged, where there is one.
    """
    table = pl.concat([_slices_of(answers, metric, model) for model in answers.searched])
    order = [pl.col("why").is_not_null(), pl.col("harm"), pl.col("n")]
    table = table.sort(order, descending=[False, True, True], nulls_last=True, maintain_order=True)
    return as_shown(table.with_columns(pl.col("slice").alias(SHOWN)), SHOWN)


def _slices_of(answers: Answers, metric: Metric, model: str) -> pl.DataFrame:
    """The slices of one model in a metric."""
    asked = answers.asked
    keys = {name: key_column(name) for each in asked.all_slices for name in map(name_of, each)}
    is_of = pl.col("metric") == metric.output_name, pl.col(MODEL) == model
    own = answers.values.filter(*is_of).rename(keys, strict=False)
    n_counted = pl.coalesce("n_samples", "n_clusters")
    sizes = own.select("slice", "sliced_by", n_counted=n_counted, size=pl.coalesce(n_counted, "n_rows"))
    if answers.differences is None:
        nothing = pl.lit(None, pl.Float64)
        table = own.with_columns(model_value="value", baseline_value=nothing, n_pairs="n_samples")
        middle = own.filter(pl.col("slice") == WHOLE)["value"].to_list()[0]
    else:
        table = answers.differences.filter(*is_of).rename(keys)
        table = table.rename({"value": "model_value", "difference": "value"})
        middle = 0.0
    wanted = [", ".join(map(name_of, keys)) for keys in asked.slices]
    table = table.filter((pl.col("slice") == WHOLE) | pl.col("sliced_by").is_in(wanted))
    table = table.join(sizes, on=["sliced_by", "slice"], how="left", maintain_order="left")
    table = table.with_columns(n=pl.coalesce("n_pairs", "size"), of_rows=pl.coalesce("n_pairs", "n_counted").is_null())
    table = table.with_columns(share=ratio(pl.col("n"), pl.col("n").filter(pl.col("slice") == WHOLE).first()))
    table = _with_part(table, answers.weights, model)
    table = table.with_columns(why=_why_not_judged(pl.col("value"), pl.col("of_rows")))
    verdict = pl.col("verdict") if "verdict" in table.columns else pl.lit(None, pl.String)
    is_judged = pl.col("why").is_null()
    table = table.with_columns(verdict=pl.when(is_judged).then(verdict), doubted=pl.when(~is_judged).then(verdict))
    table = _with_harm(table, metric.best, middle or 0.0)
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


class Outside(NamedTuple):
    """The candidate without its worst slice."""

    of: str
    """The worst slice, safe to show."""
    whole: Row
    """The difference of all other rows, its verdict, and why it is not judged."""
    explained: dict[tuple[str, str], str]
    """Other slices that are worse only by it: columns and slice, and the verdict outside of it."""


@dataclass(frozen=True)
class Told:
    """The answers of a report with their verdicts."""

    answers: Answers
    models: pl.DataFrame
    all_slices: pl.DataFrame
    """The slices of the headline, in every model that was searched."""
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
    def slices(self) -> pl.DataFrame:
        """The slices of the table."""
        return self._in_table(self.all_slices)

    def slices_in(self, metric: Metric) -> pl.DataFrame:
        """The slices of the table in another metric."""
        return self._in_table(judged_slices(self.answers, metric))

    def _in_table(self, slices: pl.DataFrame) -> pl.DataFrame:
        return slices.filter(pl.col(MODEL).is_in(self.in_table))

    @property
    def counted(self) -> str:
        """The word for what a slice has many of: rows, where nothing says how many samples they are of."""
        return "rows" if self.all_slices["of_rows"].all() else "samples"

    @property
    def judged(self) -> pl.DataFrame:
        """The slices of the table that can be judged."""
        return self.slices.filter(pl.col("why").is_null())

    def judged_of(self, model: str) -> pl.DataFrame:
        """The slices of a model that can be judged, the most harm first."""
        return self.all_slices.filter(pl.col("why").is_null(), pl.col(MODEL) == model)

    @property
    def problems(self) -> pl.DataFrame | None:
        """The problems that `check` found; None of a state."""
        found = self.answers.problems
        is_problem = pl.col("severity").is_in(["error", "warning"]) & (pl.col("count") > 0)
        return None if found is None else found.filter(is_problem)

    @property
    def metric(self) -> str:
        """The headline's name, safe to show."""
        return visible(self.answers.asked.headline.output_name)

    def of(self, model: str, metric: str | None = None) -> Row:
        """The values of a model in a metric: the headline, if none is named."""
        name = self.answers.asked.headline.output_name if metric is None else metric
        return self.models.filter(pl.col(MODEL) == model, pl.col("metric") == name).row(0, named=True)

    def outside_of(self, row: Row) -> str:
        """The verdict of a slice without the worst one, which alone makes it worse; empty of all others."""
        verdict = None if self.outside is None else self.outside.explained.get((row["sliced_by"], row["slice"]))
        return "" if verdict is None or self.outside is None else f"outside of {self.outside.of}: {verdict}"

    def rows_of(self, slices: pl.DataFrame) -> list[Row]:
        """Slices as plain data: an interval is that of the difference, where there is one."""
        ends = {"low": "low", "high": "high"}
        shown = {**DIFFERENCE, "difference": "value"} if self.baseline is not None else ends
        rows = slices.select(**OF_SLICES, **shown).to_dicts()
        return [{**dict.fromkeys((*DIFFERENCE, *ends)), **row, "outside": self.outside_of(row) or None} for row in rows]
