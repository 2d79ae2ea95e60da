"""Problems that a table may have: of each the condition, what it means for metrics, and the line that fixes it.

One declaration each. `check` finds out how often they occur, and where.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import polars as pl

from polars_mlmetrics.checks.table import NEGATIVES, OTHERS, POSITIVES, SCORE, TRUTH, WEIGHT, LogTable
from polars_mlmetrics.checks.text_forms import ONE_SPELLING, PLAIN_LABEL
from polars_mlmetrics.data.door import MAX_WEIGHT
from polars_mlmetrics.data.returned import LISTED, RETURNED
from polars_mlmetrics.data.roles import RoleName
from polars_mlmetrics.errors import INTERNAL

Severity = Literal["error", "warning", "info", "ignored", "skipped"]
"""Metrics are broken or wrong ("error"); some rows or groups have no value ("warning"); nothing is wrong, but good to
know ("info"); named in `ignore` ("ignored"); not looked for ("skipped")."""

Of = Literal["rows", "groups", "labels", "samples"]
"""The units in which a problem is counted."""

SCORES, LIGHTEST, HEAVIEST = (f"{INTERNAL}{fold}" for fold in ("scores", "lightest", "heaviest"))
"""Of a sample: the sum of its scores, and its smallest and largest weight."""


Condition = Callable[[LogTable], pl.Expr | None]
"""Where a problem is; None where the table cannot have it."""


@dataclass(frozen=True)
class Problem:
    """A problem by its name."""

    name: str
    severity: Severity
    of: Of
    meaning: str
    fix: str
    """The line that fixes it. The names of roles stand for their columns."""
    condition: Condition | None = None
    """Where it is among the rows, samples, labels or groups; None where it takes more to find it."""
    least: float = 0
    """The share that must have it before it is reported."""
    seen: RoleName | None = None
    """The role of which some values are shown with the line."""
    reads_text: bool = False
    """Whether the line reads the texts of that role as numbers, if it can. Then no values are shown."""


PROBLEMS: dict[str, Problem] = {}

NUMBERS_OF_SCORE = ("score", "probability", "logit")
NUMBERS_OF_TRUTH = ("truth", "soft_truth", "gain", "real")
"""How a metric reads a role that must be a number."""

INTO_BINS = "mlm.find_slices(log, mlm.accuracy(), {column!r}{roles})"
ASK_CLASSES = "mlm.evaluate(log, mlm.recall(threshold='argmax'), mlm.multiclass_log_loss(){roles})"


def problem(
    of: Of, severity: Severity, fix: str, least: float = 0, seen: RoleName | None = None, *, reads_text: bool = False
) -> Callable[[Condition], Problem]:
    """Declare a problem by its condition, whose docstring says what it means. `ProblemSearch` finds what has none."""

    def declare(condition: Condition) -> Problem:
        meaning = " ".join((condition.__doc__ or "").split())
        return _declared(Problem(condition.__name__, severity, of, meaning, fix, condition, least, seen, reads_text))

    return declare


def _declared(problem: Problem) -> Problem:
    return PROBLEMS.setdefault(problem.name, problem)


def conditions(log: LogTable, of: Of) -> dict[Problem, pl.Expr]:
    """The problems that this table may have in its rows, samples, labels or groups, and where they are."""
    found = {each: each.condition(log) for each in PROBLEMS.values() if each.of == of and each.condition is not None}
    return {each: condition for each, condition in found.items() if condition is not None}


# -- of rows -----------------------------------------------------------------------------------------------------------


@problem("rows", "error", "log = log.with_columns({number_of_score}){seen}", seen="score", reads_text=True)
def score_is_no_number(log: LogTable) -> pl.Expr | None:
    """The score is not a number. The line reads texts if all are numbers; a predicted class is for from_predictions."""
    return pl.col(SCORE).is_not_null() if log.is_text("score") and log.reads(*NUMBERS_OF_SCORE) else None


@problem("rows", "error", "log = log.with_columns({truth} == ...){seen}", seen="truth")
def truth_is_no_number(log: LogTable) -> pl.Expr | None:
    """The truth is not a number. Say which of its values is the true one."""
    return pl.col(TRUTH).is_not_null() if log.is_text("truth") and log.reads(*NUMBERS_OF_TRUTH) else None


@problem("rows", "error", "log = log.with_columns({number_of_weight}){seen}", seen="weight", reads_text=True)
def weight_is_no_number(log: LogTable) -> pl.Expr | None:
    """The weight is not a number."""
    return pl.col(WEIGHT).is_not_null() if log.is_text("weight") else None


@problem("rows", "error", "log = log.filter({score}.is_not_nan().fill_null(True))")
def score_nan(log: LogTable) -> pl.Expr | None:
    """The score is NaN: every metric that reads it is NaN. With fill_nan(None) the row is left out and counted."""
    return pl.col(SCORE).is_nan() if log.is_number("score") and log.reads(*NUMBERS_OF_SCORE, "prediction") else None


@problem("rows", "error", "log = log.filter(({score}.is_between(0, 1) | {score}.is_nan()).fill_null(True))")
def score_no_probability(log: LogTable) -> pl.Expr | None:
    """The score is outside 0 to 1, but a metric reads it as a probability: it is NaN. The line drops these rows.

    Divide percentages by 100; for logits pass logits=True.
    """
    if not (log.is_number("score") and log.is_read("probability")):
        return None
    return ~pl.col(SCORE).is_between(0, 1) & pl.col(SCORE).is_not_nan()


@problem("rows", "error", "log = log.with_columns({truth} > ...){seen}", seen="truth")
def truth_not_binary(log: LogTable) -> pl.Expr | None:
    """The truth is neither 0 nor 1: metrics of two classes are NaN. For other metrics, name them in metrics=."""
    return log.other_truths() if log.reads("truth") else None


@problem("rows", "error", "log = log.filter({truth}.is_between(0, 1).fill_null(True))")
def truth_no_share(log: LogTable) -> pl.Expr | None:
    """The truth is outside 0 to 1: metrics that read it as a share are NaN."""
    is_read = log.is_read("soft_truth") and not log.is_read("truth")
    return ~pl.col(TRUTH).is_between(0, 1) if is_read and log.is_number("truth") else None


@problem("rows", "error", "log = log.filter((({truth} >= 0) & {truth}.is_finite()).fill_null(True))")
def truth_no_grade(log: LogTable) -> pl.Expr | None:
    """The truth is below 0, infinite or NaN: metrics of grades are NaN."""
    is_read = log.is_read("gain") and not log.is_read("truth", "soft_truth")
    return ~((pl.col(TRUTH) >= 0) & pl.col(TRUTH).is_finite()) if is_read and log.is_number("truth") else None


@problem("rows", "error", "log = log.filter({truth}.is_not_nan().fill_null(True))")
def truth_nan(log: LogTable) -> pl.Expr | None:
    """The truth is NaN: every metric that reads it is NaN."""
    is_read = log.is_read("real", "actual") and not log.is_read("truth", "soft_truth", "gain")
    return pl.col(TRUTH).is_nan() if is_read and log.is_number("truth") else None


@problem("rows", "error", "log = log.filter(({weight} >= 0).fill_null(True))")
def weight_negative(log: LogTable) -> pl.Expr | None:
    """The weight is below 0: metrics that use it are NaN."""
    return pl.col(WEIGHT) < 0 if log.is_number("weight") else None


@problem("rows", "error", f"log = log.filter(({{weight}}.abs() <= {MAX_WEIGHT}).fill_null(True))")
def weight_not_finite(log: LogTable) -> pl.Expr | None:
    """The weight is NaN, infinite, or so large that sums are: metrics that use it are NaN."""
    return ~(pl.col(WEIGHT).abs() <= MAX_WEIGHT) if log.is_number("weight") else None


@problem(
    "rows",
    "error",
    "log = log.with_columns("
    "pl.when(pl.col('listed') != 'returned').then({score}.fill_null(float('-inf'))).otherwise({score}))",
)
def missed_without_score(log: LogTable) -> pl.Expr | None:
    """Labels that were not returned have no score: NDJSON writes -inf as null. Rankings then ignore missed labels."""
    return None if log.listed is None else pl.col(SCORE).is_null() & (pl.col(LISTED) != RETURNED)


@problem("rows", "error", "log = log.drop_nulls({sample})")
def sample_null(log: LogTable) -> pl.Expr | None:
    """The sample of the row is null: rankings and other metrics of samples leave it out."""
    is_read = log.sample and log.needs("sample")
    return pl.any_horizontal(pl.col(name).is_null() for name in log.sample) if is_read else None


@problem("rows", "warning", "log = log.filter({known_label})")
def label_null(log: LogTable) -> pl.Expr | None:
    """The label of the row is null: averages over labels leave it out."""
    if log.label is None or not log.needs("label"):
        return None
    unknown = pl.col(log.label).is_null()
    return unknown if log.not_filled_in is None else unknown & log.not_filled_in


@problem("rows", "warning", "log = log.filter({score}.is_not_null())")
def score_null(log: LogTable) -> pl.Expr | None:
    """The score is null: the row is left out, and counted in n_excluded. Or fill it with the score of a negative."""
    without = pl.col(SCORE).is_null()
    return without if log.listed is None else without & (pl.col(LISTED) == RETURNED).fill_null(True)


@problem("rows", "warning", "log = log.filter({truth}.is_not_null())")
def truth_null(log: LogTable) -> pl.Expr | None:
    """The truth is null: the row is left out, and counted in n_excluded. It may arrive later."""
    return pl.col(TRUTH).is_null()


@problem("rows", "warning", "returned = returned.with_columns(pl.col(...).first().over({sample}))")
def missed_without_column(log: LogTable) -> pl.Expr | None:
    """An added row lacks a column of its sample, because the rows of its list differ in it or are null."""
    without = [pl.col(name).is_null() for name in log.of_added]
    return (pl.col(LISTED) != RETURNED) & pl.any_horizontal(without) if without else None


@problem("rows", "warning", "log = log.filter({weight}.is_not_null())")
def weight_null(log: LogTable) -> pl.Expr | None:
    """The weight is null: the row is left out, and counted in n_excluded."""
    return pl.col(WEIGHT).is_null() if "weight" in log.types else None


@problem("rows", "warning", "log = log.filter(({score} != float('inf')).fill_null(True))")
def score_infinite(log: LogTable) -> pl.Expr | None:
    """The score is infinite: rankings accept it, metrics of probabilities are NaN."""
    is_read = log.wanted.is_any or log.is_read("logit")
    return pl.col(SCORE) == float("inf") if is_read and log.is_number("score") else None


@problem("rows", "warning", "mlm.best_threshold(log, mlm.f1(){roles})")
def score_out_of_range(log: LogTable) -> pl.Expr | None:
    """The score is outside 0 to 1: metrics of probabilities are NaN, and the usual threshold of 0.5 may mean nothing.

    Divide percentages by 100; for logits pass logits=True, and threshold=0.0 to metrics that have one.
    """
    outside = pl.col(SCORE).is_finite() & ~pl.col(SCORE).is_between(0, 1)
    return outside if (log.wanted.is_any or log.wanted.has_usual_threshold) and log.is_number("score") else None


@problem("rows", "error", "mlm.best_threshold(log, mlm.f1(){roles})", least=1)
def threshold_no_probability(log: LogTable) -> pl.Expr | None:
    """A metric has a threshold outside 0 to 1, and no score is: it decides alike in all rows."""
    within = pl.col(SCORE).is_between(0, 1) | pl.col(SCORE).is_null()
    return within if log.wanted.has_threshold_beyond and log.is_number("score") else None


@problem("rows", "info", "log = mlm.with_truths(returned, truths, n_labels=...)")
def score_minus_infinite(log: LogTable) -> pl.Expr | None:
    """The score is -inf: a label that was not returned. It is never a hit, and it is not a probability."""
    return pl.col(SCORE) == float("-inf") if log.is_number("score") and log.not_filled_in is None else None


@problem("rows", "info", "log = log.filter(({weight} != 0).fill_null(True))")
def weight_zero(log: LogTable) -> pl.Expr | None:
    """The weight is 0: the row is in no sum, but it is counted in n_rows."""
    return pl.col(WEIGHT) == 0 if log.is_number("weight") else None


# -- of labels ---------------------------------------------------------------------------------------------------------


@problem("labels", "warning", f"log = log.with_columns({ONE_SPELLING})")
def labels_alike(log: LogTable) -> pl.Expr | None:
    """Labels differ only in case, blanks or Unicode form, and count as different labels."""
    return pl.col(PLAIN_LABEL).is_duplicated() if log.has_text_labels else None


@problem("labels", "warning", "mlm.evaluate(log, mlm.recall(average='macro', undefined=0.0){roles})")
def label_never_true(log: LogTable) -> pl.Expr | None:
    """A label is never true: recall and similar metrics are undefined for it, and averages over labels leave it out."""
    if log.label is None or not (log.is_number("truth") and log.needs("label") and log.reads("truth")):
        return None
    return (pl.col(POSITIVES) == 0) & (pl.col(NEGATIVES) > 0)


# -- of groups ---------------------------------------------------------------------------------------------------------


@problem("groups", "warning", "mlm.evaluate(log, mlm.roc_auc(), by={by}, tidy=True{roles})")
def group_of_one_class(log: LogTable) -> pl.Expr | None:
    """All truths of a group are the same: roc_auc and similar metrics are null there."""
    if not (log.is_number("truth") and log.reads("truth")):
        return None
    return ((pl.col(POSITIVES) == 0) != (pl.col(NEGATIVES) == 0)) & (pl.col(OTHERS) == 0)


# -- of samples --------------------------------------------------------------------------------------------------------


@problem(
    "samples",
    "warning",
    "log = log.with_columns(pl.when({weight}.is_finite() & {known_sample})"
    ".then(pl.when({weight}.is_finite()).then({weight}).max().over({keys})).otherwise({weight}))",
)
def weight_varies(log: LogTable) -> pl.Expr | None:
    """The rows of a sample have different weights: when samples are averaged, the largest is used."""
    return pl.col(LIGHTEST) != pl.col(HEAVIEST) if log.is_number("weight") else None


@problem("samples", "info", ASK_CLASSES, least=0.99)
def looks_multiclass(log: LogTable) -> pl.Expr | None:
    """Samples have one true label each and scores that sum to 1: they look like classes."""
    return None if log.wanted.decides_labels else _one_of_classes(log)


@problem("samples", "warning", ASK_CLASSES, least=0.99)
def classes_as_labels(log: LogTable) -> pl.Expr | None:
    """Samples look like classes (one true label, scores sum to 1), but a metric decides each label: most are easy."""
    return _one_of_classes(log) if log.wanted.decides_labels else None


def _one_of_classes(log: LogTable) -> pl.Expr | None:
    if log.label is None or not (log.is_number("truth") and log.is_number("score")):
        return None
    return (pl.col(POSITIVES) == 1) & (pl.col(NEGATIVES) > 0) & (pl.col(SCORES) - 1).is_between(-1e-3, 1e-3)


# -- that take more than a condition -----------------------------------------------------------------------------------


@problem("rows", "error", "log = mlm.dedupe(log, keep='last'{by_role}, sample={sample}{label_role})")
def duplicate(log: LogTable) -> None:
    """Another row has the same sample, label and group: it counts twice."""


@problem(
    "rows",
    "error",
    "log = log.filter(({truth}.drop_nulls().n_unique().over({pair}) < 2) | {truth}.is_null() | {unknown_pair})",
)
def truth_contradicted(log: LogTable) -> None:
    """Rows of one sample and label have different truths, in one group or across groups: one of them is wrong."""


@problem(
    "samples",
    "warning",
    "log = log.with_columns(pl.when({known_sample}).then(pl.col({column!r}).first().over({sample}))"
    ".otherwise(pl.col({column!r})))",
)
def key_varies_in_sample(log: LogTable) -> None:
    """The rows of a sample differ in {column!r}: by this column, rankings see only parts of the sample."""


@problem(
    "samples", "warning", "log = log.filter((pl.col({column!r}).n_unique().over({sample}) == 1) | {unknown_sample})"
)
def sample_in_several(log: LogTable) -> None:
    """Some samples have rows in several values of {column!r}, but most in one: if it is a fold, they leak."""


@problem(
    "samples",
    "warning",
    "log = log.filter((pl.col({column!r}).n_unique().over({sample}) == pl.col({column!r}).n_unique())"
    " | {unknown_sample})",
)
def sample_not_in_all(log: LogTable) -> None:
    """Samples lack values of {column!r} that others have: compare models only on samples that all models have."""


@problem("samples", "info", "mlm.evaluate(log, mlm.n_samples(), by={column!r}{roles})")
def samples_in_common(log: LogTable) -> None:
    """Every sample has rows in all values of {column!r}: right if it is a model, wrong if it is a fold."""


@problem("rows", "info", "mlm.evaluate(log, mlm.accuracy(){roles}, weight={column!r})")
def weight_unused(log: LogTable) -> None:
    """There is a column {column!r}, but no weight is named: all rows have the same weight."""


@problem("samples", "warning", "mlm.evaluate(log, mlm.accuracy(), ci=0.95, cluster={column!r}{roles})")
def cluster_unused(log: LogTable) -> None:
    """Samples of one {column!r} have the same slice: intervals are too narrow, unless cluster={column!r} is given."""


@problem("rows", "info", "log = pl.scan_csv(..., schema_overrides={{**log.collect_schema(), {column!r}: pl.String}})")
def ids_read_as_numbers(log: LogTable) -> None:
    """{column!r} is a whole-number id read from CSV: leading zeros are lost. The line reads it as text."""


@problem("rows", "warning", INTO_BINS)
def slices_of_few_rows(log: LogTable) -> None:
    """{column!r} has nearly a value a row, each a slice."""


@problem("rows", "info", INTO_BINS)
def slices_of_floats(log: LogTable) -> None:
    """{column!r} is Float: 0.1 + 0.2 and 0.3 are two slices."""


SIZES = {
    of: _declared(Problem(of, "info", of, f"How many {of} there are.", "mlm.profile(log{roles})"))
    for of in get_args(Of)
}
