"""Problems that a log may have: the question that finds each, what it means for metrics, and the line that mends it.

One declaration each. The schema of the log answers a question with the condition under which a row, label, group or
sample has the problem; questions that take more than a condition are in `looks`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from polars_mlmetrics.checks.table import PLAIN_LABEL, SCORE, TRUTH, WEIGHT, Fact, LogTable
from polars_mlmetrics.data.door import MAX_WEIGHT
from polars_mlmetrics.data.returned import LISTED, RETURNED
from polars_mlmetrics.data.roles import RoleName

Severity = Literal["error", "warning", "info", "ignored", "skipped"]
"""Metrics are broken or wrong ("error"); some rows or groups have no value ("warning"); nothing is wrong, but good to
know ("info"); named in `ignore` ("ignored"); not looked for ("skipped")."""

Of = Literal["rows", "groups", "labels", "samples"]
"""The units in which a problem is counted."""


@dataclass(frozen=True)
class Problem:
    """A problem by its name."""

    name: str
    severity: Severity
    of: Of
    meaning: str
    fix: str
    """The line that mends it. The names of roles stand for their columns."""
    question: Callable[[Any], Any]
    """The question that finds it. The answer is None where the log cannot have it, or no metric reads its columns."""
    look: type = LogTable
    """The class of what answers the question: the schema of the log, or a look at its rows."""
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


def problem(of: Of, severity: Severity, **more: Any) -> Callable[[Callable[[Any], Any]], Problem]:
    """Declare a problem by its question. The docstring is what it means; its last paragraph, the line that mends it."""

    def declare(question: Callable[[Any], Any]) -> Problem:
        *meaning, fix = (" ".join(part.split()) for part in (question.__doc__ or "").split("\n\n"))
        found = Problem(question.__name__, severity, of, " ".join(meaning), fix, question, **more)
        return PROBLEMS.setdefault(found.name, found)

    return declare


def conditions(log: LogTable, of: Of) -> dict[Problem, pl.Expr]:
    """The problems that this log may have in its rows, samples, labels or groups, and where they are."""
    wanted = [each for each in PROBLEMS.values() if each.of == of and each.look is LogTable]
    found = {each: each.question(log) for each in wanted}
    return {each: condition for each, condition in found.items() if condition is not None}


# -- of rows -----------------------------------------------------------------------------------------------------------


@problem("rows", "error", seen="score", reads_text=True)
def score_is_no_number(log: LogTable) -> pl.Expr | None:
    """The score is not a number. The line reads texts if all are numbers; a predicted class is for from_predictions.

    log = log.with_columns({number_of_score}){seen}
    """
    return pl.col(SCORE).is_not_null() if log.is_no_number("score") and log.reads(*NUMBERS_OF_SCORE) else None


@problem("rows", "error", seen="truth")
def truth_is_no_number(log: LogTable) -> pl.Expr | None:
    """The truth is not a number. Say which of its values is the true one.

    log = log.with_columns({truth} == ...){seen}
    """
    return pl.col(TRUTH).is_not_null() if log.is_no_number("truth") and log.reads(*NUMBERS_OF_TRUTH) else None


@problem("rows", "error", seen="weight", reads_text=True)
def weight_is_no_number(log: LogTable) -> pl.Expr | None:
    """The weight is not a number.

    log = log.with_columns({number_of_weight}){seen}
    """
    return pl.col(WEIGHT).is_not_null() if log.is_no_number("weight") else None


@problem("rows", "error")
def score_nan(log: LogTable) -> pl.Expr | None:
    """The score is NaN: every metric that reads it is NaN. With fill_nan(None) the row is left out and counted.

    log = log.filter({score}.is_not_nan().fill_null(True))
    """
    return pl.col(SCORE).is_nan() if log.is_number("score") and log.reads(*NUMBERS_OF_SCORE, "prediction") else None


@problem("rows", "error")
def score_no_probability(log: LogTable) -> pl.Expr | None:
    """The score is outside 0 to 1, but a metric reads it as a probability: it is NaN.

    Divide percentages by 100, in all rows of the files that have them; for logits pass logits=True.

    log = log.with_columns({score} / ...)
    """
    if not (log.is_number("score") and log.is_read("probability")):
        return None
    return ~pl.col(SCORE).is_between(0, 1) & pl.col(SCORE).is_not_nan()


@problem("rows", "error", seen="truth")
def truth_not_binary(log: LogTable) -> pl.Expr | None:
    """The truth is neither 0 nor 1: metrics of two classes are NaN. For other metrics, name them in metrics=.

    log = log.with_columns({truth} > ...){seen}
    """
    return log.classes()[Fact.OTHERS] if log.has_other_truths and log.reads("truth") else None


@problem("rows", "error")
def truth_no_share(log: LogTable) -> pl.Expr | None:
    """The truth is outside 0 to 1: metrics that read it as a share are NaN.

    log = log.filter({truth}.is_between(0, 1).fill_null(True))
    """
    is_read = log.is_read("soft_truth") and not log.is_read("truth")
    return ~pl.col(TRUTH).is_between(0, 1) if is_read and log.is_number("truth") else None


@problem("rows", "error")
def truth_no_grade(log: LogTable) -> pl.Expr | None:
    """The truth is below 0, infinite or NaN: metrics of grades are NaN.

    log = log.filter((({truth} >= 0) & ({truth} < float('inf'))).fill_null(True))
    """
    is_read = log.is_read("gain") and not log.is_read("truth", "soft_truth")
    return ~((pl.col(TRUTH) >= 0) & pl.col(TRUTH).is_finite()) if is_read and log.is_number("truth") else None


@problem("rows", "error")
def truth_nan(log: LogTable) -> pl.Expr | None:
    """The truth is NaN: every metric that reads it is NaN.

    log = log.filter({truth}.is_not_nan().fill_null(True))
    """
    is_read = log.is_read("real", "actual") and not log.is_read("truth", "soft_truth", "gain")
    return pl.col(TRUTH).is_nan() if is_read and log.is_number("truth") else None


@problem("rows", "error")
def weight_negative(log: LogTable) -> pl.Expr | None:
    """The weight is below 0: metrics that use it are NaN.

    log = log.filter(({weight} >= 0).fill_null(True))
    """
    return pl.col(WEIGHT) < 0 if log.is_number("weight") else None


@problem("rows", "error")
def weight_not_finite(log: LogTable) -> pl.Expr | None:
    """The weight is NaN, infinite, or so large that sums are: metrics that use it are NaN.

    log = log.filter(({weight}.abs() <= {largest}).fill_null(True))
    """
    return ~(pl.col(WEIGHT).abs() <= MAX_WEIGHT) if log.is_number("weight") else None


@problem("rows", "error")
def missed_without_score(log: LogTable) -> pl.Expr | None:
    """Labels that were not returned have no score: NDJSON writes -inf as null. Rankings then ignore missed labels.

    log = log.with_columns(pl.when(pl.col('listed') !=
    'returned').then({score}.fill_null(float('-inf'))).otherwise({score}))
    """
    if log.listed is None or not log.has("score"):
        return None
    return pl.col(SCORE).is_null() & (pl.col(LISTED) != RETURNED)


@problem("rows", "error")
def sample_null(log: LogTable) -> pl.Expr | None:
    """The sample of the row is null: rankings and other metrics of samples leave it out.

    log = log.drop_nulls({sample})
    """
    is_read = log.sample and log.needs("sample")
    return pl.any_horizontal(pl.col(name).is_null() for name in log.sample) if is_read else None


@problem("rows", "warning")
def label_null(log: LogTable) -> pl.Expr | None:
    """The label of the row is null: averages over labels leave it out.

    log = log.filter({known_label})
    """
    if not log.label or not log.needs("label"):
        return None
    unknown = pl.col(log.label[0]).is_null()
    return unknown if log.not_filled_in is None else unknown & log.not_filled_in


@problem("rows", "warning")
def score_null(log: LogTable) -> pl.Expr | None:
    """The score is null: the row is left out, and counted in n_excluded. Or fill it with the score of a negative.

    log = log.filter({score}.is_not_null())
    """
    if not log.has("score"):
        return None
    without = pl.col(SCORE).is_null()
    return without if log.listed is None else without & (pl.col(LISTED) == RETURNED).fill_null(True)


@problem("rows", "warning")
def truth_null(log: LogTable) -> pl.Expr | None:
    """The truth is null: the row is left out, and counted in n_excluded. It may arrive later.

    log = log.filter({truth}.is_not_null())
    """
    return pl.col(TRUTH).is_null() if log.has("truth") else None


@problem("rows", "warning")
def missed_without_column(log: LogTable) -> pl.Expr | None:
    """An added row lacks a column of its sample, because the rows of its list differ in it or are null.

    returned = returned.with_columns(pl.col(...).first().over({sample}))
    """
    without = [pl.col(name).is_null() for name in log.of_added]
    return (pl.col(LISTED) != RETURNED) & pl.any_horizontal(without) if without else None


@problem("rows", "warning")
def weight_null(log: LogTable) -> pl.Expr | None:
    """The weight is null: the row is left out, and counted in n_excluded.

    log = log.filter({weight}.is_not_null())
    """
    return pl.col(WEIGHT).is_null() if "weight" in log.types else None


@problem("rows", "warning")
def score_infinite(log: LogTable) -> pl.Expr | None:
    """The score is infinite: rankings accept it, metrics of probabilities are NaN.

    log = log.filter(({score} != float('inf')).fill_null(True))
    """
    is_read = log.wanted.is_any or log.is_read("logit")
    return pl.col(SCORE) == float("inf") if is_read and log.is_number("score") else None


@problem("rows", "warning")
def score_out_of_range(log: LogTable) -> pl.Expr | None:
    """The score is outside 0 to 1: metrics of probabilities are NaN, and the usual threshold of 0.5 may mean nothing.

    Divide percentages by 100; for logits pass logits=True, and threshold=0.0 to metrics that have one.

    mlm.best_threshold(log, mlm.f1(){roles})
    """
    outside = pl.col(SCORE).is_finite() & ~pl.col(SCORE).is_between(0, 1)
    if log.is_read("probability"):  # then it is an error
        return None
    return outside if (log.wanted.is_any or log.wanted.has_usual_threshold) and log.is_number("score") else None


@problem("rows", "error", least=1)
def threshold_no_probability(log: LogTable) -> pl.Expr | None:
    """A metric has a threshold outside 0 to 1, and no score is: it decides alike in all rows.

    mlm.best_threshold(log, mlm.f1(){roles})
    """
    within = pl.col(SCORE).is_between(0, 1) | pl.col(SCORE).is_null()
    return within if log.wanted.has_threshold_beyond and log.is_number("score") else None


@problem("rows", "info")
def score_minus_infinite(log: LogTable) -> pl.Expr | None:
    """The score is -inf: a label that was not returned. It is never a hit, and it is not a probability.

    log = mlm.with_truths(returned, truths, n_labels=...)
    """
    return pl.col(SCORE) == float("-inf") if log.is_number("score") and log.not_filled_in is None else None


@problem("rows", "info")
def weight_zero(log: LogTable) -> pl.Expr | None:
    """The weight is 0: the row is in no sum, but it is counted in n_rows.

    log = log.filter(({weight} != 0).fill_null(True))
    """
    return pl.col(WEIGHT) == 0 if log.is_number("weight") else None


# -- of labels ---------------------------------------------------------------------------------------------------------


@problem("labels", "warning")
def labels_alike(log: LogTable) -> pl.Expr | None:
    r"""Labels differ only in case, blanks or Unicode form, and count as different labels.

    log = log.with_columns({label}.cast(pl.String).sort_by({label}.cast(pl.String).str.len_bytes(),
    {label}.cast(pl.String)).first().over({label}.cast(pl.String).str.replace_all(r'[\p{{Cf}}\p{{Cc}}]',
    '').str.normalize('NFKC').str.to_lowercase().str.strip_chars()))
    """
    return pl.col(PLAIN_LABEL).is_duplicated() if log.has_text_labels else None


@problem("labels", "warning")
def label_never_true(log: LogTable) -> pl.Expr | None:
    """A label is never true: recall and similar metrics are undefined for it, and averages over labels leave it out.

    mlm.evaluate(log, mlm.recall(average='macro', undefined=0.0){roles})
    """
    if not log.label or not (log.is_number("truth") and log.needs("label") and log.reads("truth")):
        return None
    return (pl.col(Fact.POSITIVES) == 0) & (pl.col(Fact.NEGATIVES) > 0)


# -- of groups ---------------------------------------------------------------------------------------------------------


@problem("groups", "warning")
def group_of_one_class(log: LogTable) -> pl.Expr | None:
    """All truths of a group are the same: roc_auc and similar metrics are null there.

    mlm.evaluate(log, mlm.roc_auc(), by={by}, tidy=True{roles})
    """
    if not (log.is_number("truth") and log.reads("truth")):
        return None
    return ((pl.col(Fact.POSITIVES) == 0) != (pl.col(Fact.NEGATIVES) == 0)) & (pl.col(Fact.OTHERS) == 0)


# -- of samples --------------------------------------------------------------------------------------------------------


@problem("samples", "warning")
def weight_varies(log: LogTable) -> pl.Expr | None:
    """The rows of a sample have different weights: when samples are averaged, the largest is used.

    log = log.with_columns(pl.when({weight}.is_between(-{largest}, {largest}) &
    {known_sample}).then(pl.when({weight}.is_between(-{largest},
    {largest})).then({weight}).max().over({keys})).otherwise({weight}))
    """
    return pl.col(Fact.LIGHTEST) != pl.col(Fact.HEAVIEST) if log.is_number("weight") else None


@problem("samples", "info", least=0.99)
def looks_multiclass(log: LogTable) -> pl.Expr | None:
    """Samples have one true label each and scores that sum to 1: they look like classes.

    mlm.evaluate(log, mlm.recall(threshold='argmax'), mlm.multiclass_log_loss(){roles})
    """
    return None if log.wanted.decides_labels else _one_of_classes(log)


@problem("samples", "warning", least=0.99)
def classes_as_labels(log: LogTable) -> pl.Expr | None:
    """Samples look like classes (one true label, scores sum to 1), but a metric decides each label: most are easy.

    mlm.evaluate(log, mlm.recall(threshold='argmax'), mlm.multiclass_log_loss(){roles})
    """
    return _one_of_classes(log) if log.wanted.decides_labels else None


def _one_of_classes(log: LogTable) -> pl.Expr | None:
    if not log.label or not (log.is_number("truth") and log.is_number("score")):
        return None
    return (
        (pl.col(Fact.POSITIVES) == 1) & (pl.col(Fact.NEGATIVES) > 0) & (pl.col(Fact.SCORES) - 1).is_between(-1e-3, 1e-3)
    )
