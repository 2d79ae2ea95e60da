"""Problems that a table may have: of each the condition, what it means for metrics, and the line that fixes it.

One declaration each. `check` finds out how often they occur, and where.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import polars as pl

from polars_mlmetrics.checks.table import NEGATIVES, OTHERS, POSITIVES, SCORE, TRUTH, WEIGHT, Look
from polars_mlmetrics.data.returned import LISTED, RETURNED
from polars_mlmetrics.data.roles import RoleName
from polars_mlmetrics.errors import INTERNAL

Severity = Literal["error", "warning", "info", "ignored", "skipped"]
"""Metrics are broken or wrong; some rows or groups have none; nothing is wrong, and yet it is good to know; the caller
named it in `ignore`; it was not looked for."""

Of = Literal["rows", "groups", "labels", "samples"]
"""What a problem is counted in."""

SCORES, LIGHTEST, HEAVIEST = (f"{INTERNAL}{fold}" for fold in ("scores", "lightest", "heaviest"))
"""Of a sample: the sum of its scores, and its smallest and largest weight."""


Condition = Callable[[Look], pl.Expr | None]
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


PROBLEMS: dict[str, Problem] = {}

NUMBERS_OF_SCORE = ("score", "probability", "logit")
NUMBERS_OF_TRUTH = ("truth", "soft_truth", "gain", "real")
"""How a metric reads a role that must be a number."""

ASK_CLASSES = "mlm.evaluate(log, mlm.recall(threshold='argmax'), mlm.multiclass_log_loss(){roles})"


def problem(
    of: Of, severity: Severity, fix: str, least: float = 0, seen: RoleName | None = None
) -> Callable[[Condition], Problem]:
    """Declare a problem by its condition, whose docstring says what it means."""

    def declare(condition: Condition) -> Problem:
        meaning = " ".join((condition.__doc__ or "").split())
        return _declared(Problem(condition.__name__, severity, of, meaning, fix, condition, least, seen))

    return declare


def _declared(problem: Problem) -> Problem:
    return PROBLEMS.setdefault(problem.name, problem)


def conditions(look: Look, of: Of) -> dict[Problem, pl.Expr]:
    """The problems that this table may have in its rows, samples, labels or groups, and where they are."""
    found = {each: each.condition(look) for each in PROBLEMS.values() if each.of == of and each.condition is not None}
    return {each: condition for each, condition in found.items() if condition is not None}


# -- of rows -----------------------------------------------------------------------------------------------------------


@problem("rows", "error", "log = log.with_columns({number_of_score})")
def score_is_no_number(look: Look) -> pl.Expr | None:
    """The score is not a number. A predicted class is for from_predictions; what a cast cannot read becomes unknown."""
    return pl.col(SCORE).is_not_null() if look.is_text("score") and look.reads(*NUMBERS_OF_SCORE) else None


@problem("rows", "error", "log = log.with_columns({truth} == ...){seen}", seen="truth")
def truth_is_no_number(look: Look) -> pl.Expr | None:
    """The truth is not a number. Say which of its values is the true one."""
    return pl.col(TRUTH).is_not_null() if look.is_text("truth") and look.reads(*NUMBERS_OF_TRUTH) else None


@problem("rows", "error", "log = log.with_columns({number_of_weight})")
def weight_is_no_number(look: Look) -> pl.Expr | None:
    """The weight is not a number."""
    return pl.col(WEIGHT).is_not_null() if look.is_text("weight") else None


@problem("rows", "error", "log = log.filter({score}.is_not_nan().fill_null(True))")
def score_nan(look: Look) -> pl.Expr | None:
    """The score is NaN, and so is every metric that reads it. With fill_nan(None) it is left out and counted."""
    return pl.col(SCORE).is_nan() if look.is_number("score") and look.reads(*NUMBERS_OF_SCORE, "prediction") else None


@problem("rows", "error", "log = log.filter(({score}.is_between(0, 1) | {score}.is_nan()).fill_null(True))")
def score_no_probability(look: Look) -> pl.Expr | None:
    """The score is outside of 0 to 1, and a metric reads it as a probability: it is NaN. Of logits say logits=True."""
    if not (look.is_number("score") and look.is_asked("probability")):
        return None
    return ~pl.col(SCORE).is_between(0, 1) & pl.col(SCORE).is_not_nan()


@problem("rows", "error", "log = log.with_columns({truth} > ...){seen}", seen="truth")
def truth_not_binary(look: Look) -> pl.Expr | None:
    """The truth is neither 0 nor 1: metrics of two classes are NaN. If you want others, name them in metrics=."""
    return look.other_truths() if look.reads("truth") else None


@problem("rows", "error", "log = log.filter({truth}.is_between(0, 1).fill_null(True))")
def truth_no_share(look: Look) -> pl.Expr | None:
    """The truth is outside of 0 to 1: metrics that take a share of the truth are NaN."""
    is_read = look.is_asked("soft_truth") and not look.is_asked("truth")
    return ~pl.col(TRUTH).is_between(0, 1) if is_read and look.is_number("truth") else None


@problem("rows", "error", "log = log.filter((({truth} >= 0) & {truth}.is_finite()).fill_null(True))")
def truth_no_grade(look: Look) -> pl.Expr | None:
    """The truth is below 0, infinite or NaN: metrics of grades are NaN."""
    is_read = look.is_asked("gain") and not look.is_asked("truth", "soft_truth")
    return ~((pl.col(TRUTH) >= 0) & pl.col(TRUTH).is_finite()) if is_read and look.is_number("truth") else None


@problem("rows", "error", "log = log.filter({truth}.is_not_nan().fill_null(True))")
def truth_nan(look: Look) -> pl.Expr | None:
    """The truth is NaN, and so is every metric that reads it."""
    is_read = look.is_asked("real", "actual") and not look.is_asked("truth", "soft_truth", "gain")
    return pl.col(TRUTH).is_nan() if is_read and look.is_number("truth") else None


@problem("rows", "error", "log = log.filter(({weight} >= 0).fill_null(True))")
def weight_negative(look: Look) -> pl.Expr | None:
    """The weight is below 0: metrics that are weighted by it are NaN."""
    return pl.col(WEIGHT) < 0 if look.is_number("weight") else None


@problem("rows", "error", "log = log.filter({weight}.is_finite().fill_null(True))")
def weight_not_finite(look: Look) -> pl.Expr | None:
    """The weight is NaN or infinite: metrics that are weighted by it are NaN."""
    return ~pl.col(WEIGHT).is_finite() if look.is_number("weight") else None


@problem(
    "rows",
    "error",
    "log = log.with_columns("
    "pl.when(pl.col('listed') != 'returned').then({score}.fill_null(float('-inf'))).otherwise({score}))",
)
def missed_without_score(look: Look) -> pl.Expr | None:
    """What was not returned has no score: NDJSON writes -inf as null. Rankings then leave out what was missed."""
    return None if look.listed is None else pl.col(SCORE).is_null() & (pl.col(LISTED) != RETURNED)


@problem("rows", "error", "log = log.drop_nulls({sample})")
def sample_null(look: Look) -> pl.Expr | None:
    """It is not known which sample the row is of: rankings and all else that looks at samples leave it out."""
    is_read = look.sample and look.needs("sample")
    return pl.any_horizontal(pl.col(name).is_null() for name in look.sample) if is_read else None


@problem("rows", "warning", "log = log.filter({known_label})")
def label_null(look: Look) -> pl.Expr | None:
    """It is not known which label the row is of: averages over labels leave it out."""
    if look.label is None or not look.needs("label"):
        return None
    unknown = pl.col(look.label).is_null()
    return unknown if look.not_filled_in is None else unknown & look.not_filled_in


@problem("rows", "warning", "log = log.filter({score}.is_not_null())")
def score_null(look: Look) -> pl.Expr | None:
    """The score is unknown: the row is left out, and counted in n_excluded. Or give it the score of a negative."""
    without = pl.col(SCORE).is_null()
    return without if look.listed is None else without & (pl.col(LISTED) == RETURNED)


@problem("rows", "warning", "log = log.filter({truth}.is_not_null())")
def truth_null(look: Look) -> pl.Expr | None:
    """The truth is unknown: the row is left out, and counted in n_excluded. It may come later."""
    return pl.col(TRUTH).is_null()


@problem("rows", "warning", "returned = returned.with_columns(pl.col(...).first().over({sample}))")
def missed_without_column(look: Look) -> pl.Expr | None:
    """What was not returned lacks a column of its sample: in it the rows of its list differ, or are null too."""
    without = [pl.col(name).is_null() for name in look.of_added]
    return (pl.col(LISTED) != RETURNED) & pl.any_horizontal(without) if without else None


@problem("rows", "warning", "log = log.filter({weight}.is_not_null())")
def weight_null(look: Look) -> pl.Expr | None:
    """The weight is unknown: the row is left out, and counted in n_excluded."""
    return pl.col(WEIGHT).is_null() if "weight" in look.types else None


@problem("rows", "warning", "log = log.filter(({score} != float('inf')).fill_null(True))")
def score_infinite(look: Look) -> pl.Expr | None:
    """The score is infinite: rankings take it, metrics of probabilities are NaN."""
    is_read = look.asked is None or look.is_asked("logit")
    return pl.col(SCORE) == float("inf") if is_read and look.is_number("score") else None


@problem("rows", "warning", "mlm.evaluate(log, mlm.log_loss(logits=True){roles})")
def score_out_of_range(look: Look) -> pl.Expr | None:
    """The score is outside of 0 to 1: metrics of probabilities are NaN. If it is a logit, say so to each of them."""
    outside = pl.col(SCORE).is_finite() & ~pl.col(SCORE).is_between(0, 1)
    return outside if look.asked is None and look.is_number("score") else None


@problem("rows", "info", "log = mlm.with_truths(returned, truths, n_labels=...)")
def score_minus_infinite(look: Look) -> pl.Expr | None:
    """The score is -inf: a label that was not returned. It is never a hit, and a probability neither."""
    return pl.col(SCORE) == float("-inf") if look.is_number("score") and look.not_filled_in is None else None


@problem("rows", "info", "log = log.filter(({weight} != 0).fill_null(True))")
def weight_zero(look: Look) -> pl.Expr | None:
    """The weight is 0: the row is in no sum, and in n_rows all the same."""
    return pl.col(WEIGHT) == 0 if look.is_number("weight") else None


# -- of labels ---------------------------------------------------------------------------------------------------------

PLAIN_LABEL = f"{INTERNAL}plain_label"
"""A label without what people neither see nor hear."""


def plain_label(label: pl.Expr) -> pl.Expr:
    """A label without characters of no width, in one form of Unicode, without case and blanks at its ends."""
    visible = label.cast(pl.String).str.replace_all(r"[\p{Cf}\p{Cc}]", "")
    return visible.str.normalize("NFKC").str.to_lowercase().str.strip_chars()


PLAIN_WRITTEN = (
    r"{label}.cast(pl.String).str.replace_all(r'[\p{{Cf}}\p{{Cc}}]', '')"
    ".str.normalize('NFKC').str.to_lowercase().str.strip_chars()"
)


@problem("labels", "warning", f"log = log.with_columns({{label}}.cast(pl.String).min().over({PLAIN_WRITTEN}))")
def labels_alike(look: Look) -> pl.Expr | None:
    """Labels differ in nothing but case, blanks or the form of their Unicode, and count as several."""
    return pl.col(PLAIN_LABEL).is_duplicated() if look.has_text_labels else None


@problem("labels", "warning", "mlm.evaluate(log, mlm.recall(average='macro', undefined=0.0){roles})")
def label_never_true(look: Look) -> pl.Expr | None:
    """A label is never true: recall and its like are undefined for it, and their averages over labels leave it out."""
    if look.label is None or not (look.is_number("truth") and look.needs("label") and look.reads("truth")):
        return None
    return (pl.col(POSITIVES) == 0) & (pl.col(NEGATIVES) > 0)


# -- of groups ---------------------------------------------------------------------------------------------------------


@problem("groups", "warning", "mlm.evaluate(log, mlm.roc_auc(), by={by}, tidy=True{roles})")
def group_of_one_class(look: Look) -> pl.Expr | None:
    """All truths of a group are the same: roc_auc and the like are null there."""
    if not (look.is_number("truth") and look.reads("truth")):
        return None
    return ((pl.col(POSITIVES) == 0) != (pl.col(NEGATIVES) == 0)) & (pl.col(OTHERS) == 0)


# -- of samples --------------------------------------------------------------------------------------------------------


@problem(
    "samples",
    "warning",
    "log = log.with_columns(pl.when({weight}.is_finite() & {known_sample})"
    ".then(pl.when({weight}.is_finite()).then({weight}).max().over({keys})).otherwise({weight}))",
)
def weight_varies(look: Look) -> pl.Expr | None:
    """The rows of a sample differ in weight: where samples are averaged, the largest counts."""
    return pl.col(LIGHTEST) != pl.col(HEAVIEST) if look.is_number("weight") else None


@problem("samples", "info", ASK_CLASSES, least=0.99)
def looks_multiclass(look: Look) -> pl.Expr | None:
    """Samples have one true label each and scores that sum to 1: classes of which one is true."""
    return None if look.decides_labels else _one_of_classes(look)


@problem("samples", "warning", ASK_CLASSES, least=0.99)
def classes_as_labels(look: Look) -> pl.Expr | None:
    """Samples have one true label each and scores that sum to 1, and a metric decides label by label: most are easy."""
    return _one_of_classes(look) if look.decides_labels else None


def _one_of_classes(look: Look) -> pl.Expr | None:
    if look.label is None or not (look.is_number("truth") and look.is_number("score")):
        return None
    return (pl.col(POSITIVES) == 1) & (pl.col(NEGATIVES) > 0) & (pl.col(SCORES) - 1).is_between(-1e-3, 1e-3)


# -- that take more than a condition -----------------------------------------------------------------------------------

MADE_ONE = _declared(
    Problem(
        "ids_made_one",
        "error",
        "rows",
        "{column!r} was read as a number, and ids that the files tell apart, such as 01 and 1, became one: read text.",
        "log = {scan}",
    )
)
DUPLICATE = _declared(
    Problem(
        "duplicate",
        "error",
        "rows",
        "Another row has the same sample and label, in the same group: it counts twice. Several models need by=.",
        "log = mlm.dedupe(log, keep='last'{by_role}, sample={sample}{label_role})",
    )
)
TRUTH_CONTRADICTED = _declared(
    Problem(
        "truth_contradicted",
        "error",
        "rows",
        "Rows of one sample and label, here or in another group, have different truths: one of them is wrong.",
        "log = log.filter(({truth}.drop_nulls().n_unique().over({pair}) < 2) | {truth}.is_null() | {unknown_pair})",
    )
)
KEY_VARIES = _declared(
    Problem(
        "key_varies_in_sample",
        "warning",
        "samples",
        "The rows of a sample differ in {column!r}: by it, rankings see a part of the sample at a time.",
        "log = log.with_columns(pl.when({known_sample}).then(pl.col({column!r}).first().over({sample}))"
        ".otherwise(pl.col({column!r})))",
    )
)
IN_SEVERAL = _declared(
    Problem(
        "sample_in_several",
        "warning",
        "samples",
        "Some samples have rows in several values of {column!r}, and most in one: of a fold, they leak.",
        "log = log.filter((pl.col({column!r}).n_unique().over({sample}) == 1) | {unknown_sample})",
    )
)
NOT_IN_ALL = _declared(
    Problem(
        "sample_not_in_all",
        "warning",
        "samples",
        "Samples lack values of {column!r} that others have: of models, only samples that all have can be compared.",
        "log = log.filter((pl.col({column!r}).n_unique().over({sample}) == pl.col({column!r}).n_unique())"
        " | {unknown_sample})",
    )
)
IN_COMMON = _declared(
    Problem(
        "samples_in_common",
        "info",
        "samples",
        "Every sample has rows in all values of {column!r}: as it should be of models, and should not of folds.",
        "mlm.evaluate(log, mlm.n_samples(), by={column!r}{roles})",
    )
)
UNUSED_WEIGHT = _declared(
    Problem(
        "weight_unused",
        "info",
        "rows",
        "There is a column {column!r}, and no weight is named: all rows count alike.",
        "mlm.evaluate(log, mlm.accuracy(){roles}, weight={column!r})",
    )
)
SIZES = {of: _declared(Problem(of, "info", of, f"How many {of} there are.", "mlm.profile(log)")) for of in get_args(Of)}
