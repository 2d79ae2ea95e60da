"""Problems that a condition finds: the schema of the log says where a row, label, group or sample has them."""

from __future__ import annotations

import polars as pl

from polars_mlmetrics.checks.problems import PROBLEMS, Of, Problem, problem
from polars_mlmetrics.checks.table import PLAIN_LABEL, SCORE, TRUTH, WEIGHT, Fact, LogTable
from polars_mlmetrics.data.door import MAX_WEIGHT
from polars_mlmetrics.data.returned import LISTED, RETURNED

NUMBERS_OF_SCORE = ("score", "probability", "logit")
NUMBERS_OF_TRUTH = ("truth", "soft_truth", "gain", "real")
"""How a metric reads a role that must be a number."""


def conditions(log: LogTable, of: Of) -> dict[Problem, pl.Expr]:
    """The problems that this log may have in its rows, samples, labels or groups, and where they are."""
    wanted = [each for each in PROBLEMS.values() if each.of == of and each.look is LogTable]
    able = [each for each in wanted if each.number is None or log.is_number(each.number)]
    found = {each: each.question(log) for each in able}
    return {each: condition for each, condition in found.items() if condition is not None}


# -- of rows -----------------------------------------------------------------------------------------------------------


@problem("rows", "error", seen="score", reads_text=True)
def score_is_no_number(log: LogTable) -> pl.Expr | None:
    """The score is not a number. The line reads texts if all are numbers; a predicted class is for from_predictions.

    log = log.with_columns({number_of_score}){seen}
    $ [prepare] cast = {{ {score_name} = "Float64" }}
    """
    return pl.col(SCORE).is_not_null() if log.is_no_number("score") and log.reads(*NUMBERS_OF_SCORE) else None


@problem("rows", "error", seen="truth")
def truth_is_no_number(log: LogTable) -> pl.Expr | None:
    """The truth is not a number. Say which of its values is the true one.

    log = log.with_columns({truth} == ...){seen}
    $ [prepare] map = {{ {truth_name} = {{ yes = 1, no = 0 }} }}{seen}
    """
    return pl.col(TRUTH).is_not_null() if log.is_no_number("truth") and log.reads(*NUMBERS_OF_TRUTH) else None


@problem("rows", "error", seen="weight", reads_text=True)
def weight_is_no_number(log: LogTable) -> pl.Expr | None:
    """The weight is not a number.

    log = log.with_columns({number_of_weight}){seen}
    $ [prepare] cast = {{ {weight_name} = "Float64" }}
    """
    return pl.col(WEIGHT).is_not_null() if log.is_no_number("weight") else None


@problem("rows", "error", number="score")
def score_nan(log: LogTable) -> pl.Expr | None:
    """The score is NaN: every metric that reads it is NaN. With fill_nan(None) the row is left out and counted.

    log = log.filter({score}.is_not_nan().fill_null(True))
    $ [prepare] where = ["{score_name}<=inf"]
    """
    return pl.col(SCORE).is_nan() if log.reads(*NUMBERS_OF_SCORE, "prediction") else None


@problem("rows", "error", number="score")
def score_no_probability(log: LogTable) -> pl.Expr | None:
    """The score is outside 0 to 1, but a metric reads it as a probability: it is NaN.

    Divide percentages by 100, in all rows of the files that have them; for logits pass logits=True.

    log = log.with_columns({score} / ...)
    $ [prepare] scale = {{ {score_name} = {{ by = 0.01, where = "day=..." }} }}
    """
    outside = ~pl.col(SCORE).is_between(0, 1) & pl.col(SCORE).is_not_nan()
    return outside if log.is_read("probability") else None


@problem("rows", "error", seen="truth")
def truth_not_binary(log: LogTable) -> pl.Expr | None:
    """The truth is neither 0 nor 1: metrics of two classes are NaN. For other metrics, name them in metrics=.

    log = log.with_columns({truth} > ...){seen}
    $ [prepare] map = {{ {truth_name} = {{ 2 = 1, 1 = 1, 0 = 0 }} }}{seen}
    """
    return log.classes()[Fact.OTHERS] if log.has_other_truths and log.reads("truth") else None


@problem("rows", "error", number="truth")
def truth_no_share(log: LogTable) -> pl.Expr | None:
    """The truth is outside 0 to 1: metrics that read it as a share are NaN.

    log = log.filter({truth}.is_between(0, 1).fill_null(True))
    $ [prepare] where = ["{truth_name}>=0", "{truth_name}<=1"]
    """
    is_read = log.is_read("soft_truth") and not log.is_read("truth")
    return ~pl.col(TRUTH).is_between(0, 1) if is_read else None


@problem("rows", "error", number="truth")
def truth_no_grade(log: LogTable) -> pl.Expr | None:
    """The truth is below 0, infinite or NaN: metrics of grades are NaN.

    log = log.filter((({truth} >= 0) & ({truth} < float('inf'))).fill_null(True))
    $ [prepare] where = ["{truth_name}>=0", "{truth_name}<inf"]
    """
    is_read = log.is_read("gain") and not log.is_read("truth", "soft_truth")
    return ~((pl.col(TRUTH) >= 0) & pl.col(TRUTH).is_finite()) if is_read else None


@problem("rows", "error", number="truth")
def truth_nan(log: LogTable) -> pl.Expr | None:
    """The truth is NaN: every metric that reads it is NaN.

    log = log.filter({truth}.is_not_nan().fill_null(True))
    $ [prepare] where = ["{truth_name}<=inf"]
    """
    is_read = log.is_read("real", "actual") and not log.is_read("truth", "soft_truth", "gain")
    return pl.col(TRUTH).is_nan() if is_read else None


@problem("rows", "error", number="weight")
def weight_negative(log: LogTable) -> pl.Expr:
    """The weight is below 0: metrics that use it are NaN.

    log = log.filter(({weight} >= 0).fill_null(True))
    $ [prepare] where = ["{weight_name}>=0"]
    """
    return pl.col(WEIGHT) < 0


@problem("rows", "error", number="weight")
def weight_not_finite(log: LogTable) -> pl.Expr:
    """The weight is NaN, infinite, or so large that sums are: metrics that use it are NaN.

    log = log.filter(({weight}.abs() <= {largest}).fill_null(True))
    $ [prepare] where = ["{weight_name}<={largest}", "{weight_name}>=-{largest}"]
    """
    return ~(pl.col(WEIGHT).abs() <= MAX_WEIGHT)


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
    $ [prepare] where = ["{sample_name}!=null"]
    """
    is_read = log.sample and log.needs("sample")
    return pl.any_horizontal(pl.col(name).is_null() for name in log.sample) if is_read else None


@problem("rows", "warning")
def label_null(log: LogTable) -> pl.Expr | None:
    """The label of the row is null: averages over labels leave it out.

    log = log.filter({known_label})
    $ [prepare] where = ["{label_name}!=null"]
    """
    if not log.label or not log.needs("label"):
        return None
    unknown = pl.col(log.label[0]).is_null()
    return unknown if log.not_filled_in is None else unknown & log.not_filled_in


@problem("rows", "warning")
def score_null(log: LogTable) -> pl.Expr | None:
    """The score is null: the row is left out, and counted in n_excluded. Or fill it with the score of a negative.

    log = log.filter({score}.is_not_null())
    $ [prepare] where = ["{score_name}!=null"]
    """
    if not log.has("score"):
        return None
    without = pl.col(SCORE).is_null()
    return without if log.listed is None else without & (pl.col(LISTED) == RETURNED).fill_null(True)


@problem("rows", "warning")
def truth_null(log: LogTable) -> pl.Expr | None:
    """The truth is null: the row is left out, and counted in n_excluded. It may arrive later.

    log = log.filter({truth}.is_not_null())
    $ [prepare] truths = "..."
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
    $ [prepare] where = ["{weight_name}!=null"]
    """
    return pl.col(WEIGHT).is_null() if "weight" in log.types else None


@problem("rows", "warning", number="score")
def score_infinite(log: LogTable) -> pl.Expr | None:
    """The score is infinite: rankings accept it, metrics of probabilities are NaN.

    log = log.filter(({score} != float('inf')).fill_null(True))
    $ [prepare] where = ["{score_name}<inf"]
    """
    return pl.col(SCORE) == float("inf") if log.reads("logit") else None


@problem("rows", "warning", number="score")
def score_out_of_range(log: LogTable) -> pl.Expr | None:
    """The score is outside 0 to 1: metrics of probabilities are NaN, and the usual threshold of 0.5 may mean nothing.

    Divide percentages by 100; for logits pass logits=True, and threshold=0.0 to metrics that have one.

    mlm.best_threshold(log, mlm.f1(){roles})
    $ [prepare] scale = {{ {score_name} = {{ by = 0.01, where = "day=..." }} }}
    """
    if log.is_read("probability"):  # then it is an error
        return None
    outside = pl.col(SCORE).is_finite() & ~pl.col(SCORE).is_between(0, 1)
    return outside if log.wanted.is_any or log.wanted.has_usual_threshold else None


@problem("rows", "error", least=1, number="score")
def threshold_no_probability(log: LogTable) -> pl.Expr | None:
    """A metric has a threshold outside 0 to 1, and no score is: it decides alike in all rows.

    mlm.best_threshold(log, mlm.f1(){roles})
    $ -m f1:threshold=0.5
    """
    within = pl.col(SCORE).is_between(0, 1) | pl.col(SCORE).is_null()
    return within if log.wanted.has_threshold_beyond else None


@problem("rows", "info", number="score")
def score_minus_infinite(log: LogTable) -> pl.Expr | None:
    """The score is -inf: a label that was not returned. It is never a hit, and it is not a probability.

    log = mlm.with_truths(returned, truths, n_labels=...)
    """
    return pl.col(SCORE) == float("-inf") if log.not_filled_in is None else None


@problem("rows", "info", number="weight")
def weight_zero(log: LogTable) -> pl.Expr:
    """The weight is 0: the row is in no sum, but it is counted in n_rows.

    log = log.filter(({weight} != 0).fill_null(True))
    $ [prepare] where = ["{weight_name}!=0"]
    """
    return pl.col(WEIGHT) == 0


# -- of labels ---------------------------------------------------------------------------------------------------------


@problem("labels", "warning")
def labels_alike(log: LogTable) -> pl.Expr | None:
    r"""Labels differ only in case, blanks or Unicode form, and count as different labels.

    log = log.with_columns({label}.cast(pl.String).sort_by({label}.cast(pl.String).str.len_bytes(),
    {label}.cast(pl.String)).first().over({label}.cast(pl.String).str.replace_all(r'[\p{{Cf}}\p{{Cc}}]',
    '').str.normalize('NFKC').str.to_lowercase().str.strip_chars()))
    $ [prepare] map = {{ {label_name} = {{ "Cat " = "cat" }} }}
    """
    return pl.col(PLAIN_LABEL).is_duplicated() if log.has_text_labels else None


@problem("labels", "warning", number="truth")
def label_never_true(log: LogTable) -> pl.Expr | None:
    """A label is never true: recall and similar metrics are undefined for it, and averages over labels leave it out.

    mlm.evaluate(log, mlm.recall(average='macro', undefined=0.0){roles})
    $ -m recall:average=macro,undefined=0.0
    """
    is_read = log.label and log.needs("label") and log.reads("truth")
    return (pl.col(Fact.POSITIVES) == 0) & (pl.col(Fact.NEGATIVES) > 0) if is_read else None


# -- of groups ---------------------------------------------------------------------------------------------------------


@problem("groups", "warning", number="truth")
def group_of_one_class(log: LogTable) -> pl.Expr | None:
    """All truths of a group are the same: roc_auc and similar metrics are null there.

    mlm.evaluate(log, mlm.roc_auc(), by={by}, tidy=True{roles})
    $ --tidy
    """
    of_one_class = (pl.col(Fact.POSITIVES) == 0) != (pl.col(Fact.NEGATIVES) == 0)
    return of_one_class & (pl.col(Fact.OTHERS) == 0) if log.reads("truth") else None


# -- of samples --------------------------------------------------------------------------------------------------------


@problem("samples", "warning", number="weight")
def weight_varies(log: LogTable) -> pl.Expr:
    """The rows of a sample have different weights: when samples are averaged, the largest is used.

    log = log.with_columns(pl.when({weight}.is_between(-{largest}, {largest}) &
    {known_sample}).then(pl.when({weight}.is_between(-{largest},
    {largest})).then({weight}).max().over({keys})).otherwise({weight}))
    """
    return pl.col(Fact.LIGHTEST) != pl.col(Fact.HEAVIEST)


@problem("samples", "info", least=0.99)
def looks_multiclass(log: LogTable) -> pl.Expr | None:
    """Samples have one true label each and scores that sum to 1: they look like classes.

    mlm.evaluate(log, mlm.recall(threshold='argmax'), mlm.multiclass_log_loss(){roles})
    $ -m recall:threshold=argmax multiclass_log_loss
    """
    return None if log.wanted.decides_labels else _one_of_classes(log)


@problem("samples", "warning", least=0.99)
def classes_as_labels(log: LogTable) -> pl.Expr | None:
    """Samples look like classes (one true label, scores sum to 1), but a metric decides each label: most are easy.

    mlm.evaluate(log, mlm.recall(threshold='argmax'), mlm.multiclass_log_loss(){roles})
    $ -m recall:threshold=argmax multiclass_log_loss
    """
    return _one_of_classes(log) if log.wanted.decides_labels else None


def _one_of_classes(log: LogTable) -> pl.Expr | None:
    if not log.label or not (log.is_number("truth") and log.is_number("score")):
        return None
    return (
        (pl.col(Fact.POSITIVES) == 1) & (pl.col(Fact.NEGATIVES) > 0) & (pl.col(Fact.SCORES) - 1).is_between(-1e-3, 1e-3)
    )
