"""The answers that a report is made of: each verb is called once for what only it can say."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from polars_mlmetrics.analysis.compare import comparison_of
from polars_mlmetrics.analysis.evaluate import EVALUATE, values_of
from polars_mlmetrics.analysis.find_slices import NONE_WORSE, find_slices
from polars_mlmetrics.analysis.finish import finish
from polars_mlmetrics.checks.check import check
from polars_mlmetrics.curves.stored_bins import ENOUGH
from polars_mlmetrics.data.frames import scan_node, text_apart
from polars_mlmetrics.data.roles import MODEL as MODELS
from polars_mlmetrics.errors import MetricError, TableError
from polars_mlmetrics.formula.measure import Measure, of_rows_used_by
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.formula.row_counts import WEIGHT
from polars_mlmetrics.metrics.calibration import calibration_error
from polars_mlmetrics.metrics.decisions import f1
from polars_mlmetrics.metrics.graded_rankings import ndcg
from polars_mlmetrics.metrics.probabilities import log_loss, multiclass_log_loss
from polars_mlmetrics.metrics.rankings import (
    label_ranking_average_precision,
    recall_at,
    reciprocal_rank,
    top_k_accuracy,
)
from polars_mlmetrics.metrics.regression import mae, r2, rmse
from polars_mlmetrics.metrics.separation import average_precision, roc_auc
from polars_mlmetrics.query.keys import Keys, listed
from polars_mlmetrics.query.question import Question, check_clusters
from polars_mlmetrics.query.written import metrics_of
from polars_mlmetrics.reporting.asked import (
    MODEL,
    REPORT,
    WHOLE,
    ReportQuestion,
    dtype_of,
    if_held,
    name_of,
    values_of_models,
)
from polars_mlmetrics.reporting.chosen_metrics import JUDGED_KINDS, N_ROWS, rows_of, sliced_among, uses_rows_of
from polars_mlmetrics.reporting.curve_tables import DECISIONS, areas_of, best_of, curves_of, decisions_of
from polars_mlmetrics.reporting.label_tables import LabelTables, labels_of
from polars_mlmetrics.reporting.looks import MOST_SERIES

WEIGHT_OF_ROWS = "weight of the rows"


@dataclass(frozen=True)
class Answers:
    """The answers of the verbs."""

    asked: ReportQuestion
    problems: pl.DataFrame | None
    values: pl.DataFrame
    """Tidy: every metric of the whole, the headline by date, and the metrics of slices by slice."""
    models: list[str]
    """The baseline first, then from the best in the headline to the worst."""
    searched: list[str]
    """The models whose slices are looked at: all but the baseline."""
    differences: pl.DataFrame | None
    weights: pl.DataFrame | None
    """The weights of the rows of the headline, by model and slice; None where each counts as one."""
    labels: LabelTables | None
    """None where there is no column of labels, or no metric has a value for each."""
    sliced_labels: str
    """The slicing of labels; "" where there is none."""
    decisions: pl.DataFrame | None
    """The counts of a confusion matrix, at the threshold in use; None where there is none."""
    curves: dict[str, pl.DataFrame]
    areas: pl.DataFrame | None
    """Under the curves: a column for each kind that has an area."""
    best: pl.DataFrame | None
    """The best of all thresholds; None where the best point of the curve is all that is known."""
    found: dict[str, pl.DataFrame | str] | None
    """The slices that were found, by model; of one that could not be searched the reason."""
    n_pooled: int
    """How many models the numbers of one model of this page are of: those of a column that is not used."""


def answered(asked: ReportQuestion) -> Answers:
    """Ask all that the report says."""
    given, asked = asked.frame, asked.held()
    _check_rows(asked)
    # How ids are written in its files, only a scan can say.
    rows = given if scan_node(given) is not None else asked.frame
    problems, are_named = problems_of(asked, rows), bool(asked.metrics)
    asked = replace(asked, metrics=metrics_for(asked, problems))
    if problems is not None and _has_no_classes(problems) and not are_named:
        problems = problems_of(asked, rows)  # of these metrics: a truth that is an amount is no problem then
    if asked.cluster is not None:
        question = Question.read(REPORT, asked.frame, asked.metrics, asked.between, **asked.level, roles=asked.roles)
        check_clusters(question.query)
    values = _values(asked)
    decisions = _decisions(asked, values)
    if decisions is not None:
        values = values.filter(~pl.col("metric").is_in(list(DECISIONS)))
    models = _models(asked, values)
    # As many as charts show.
    searched = [model for model in models[:MOST_SERIES] if model != asked.baseline_text]
    differences = _differences(asked) if asked.has_baseline else None
    sliced = _slicing_of_labels(asked, values if differences is None else differences)
    curves = curves_of(asked)
    return Answers(
        asked=asked,
        problems=problems,
        values=values,
        models=models,
        searched=searched,
        differences=differences,
        weights=_weights(asked),
        labels=labels_of(asked, sliced),
        sliced_labels=sliced,
        decisions=decisions,
        curves=curves,
        areas=areas_of(asked, curves, values),
        best=best_of(asked) if "threshold" in curves else None,
        found=_found(asked, values, searched),
        n_pooled=_pooled(asked),
    )


def _check_rows(asked: ReportQuestion) -> None:
    """Refuse a log without rows, and a state of one: nothing can be said of them, neither good nor bad."""
    if asked.contents is None:
        is_empty = asked.frame.head(1).collect().is_empty()
    else:
        metrics = asked.metrics or metrics_of(asked.contents.metrics)
        counts = finish(asked.frame, metrics, tidy=True).select(pl.col("n_rows", "n_excluded").sum())
        is_empty = not any(counts.collect().row(0))
    if is_empty:
        what = "table" if asked.contents is None else "state"
        raise TableError(f"the {what} has no rows, and a report needs some: look at its files and filters.")


def _models(asked: ReportQuestion, values: pl.DataFrame) -> list[str]:
    """The models: the baseline first, then from the best in the headline to the worst."""
    whole = values.filter(pl.col("slice") == WHOLE, pl.col("metric") == asked.headline.output_name)
    descending = asked.headline.best == "max"
    # A value that is NaN is not the best, though Polars says that it is greater than any other.
    value = pl.col("value").fill_nan(None)
    ordered: list[str] = whole.sort(value, descending=descending, nulls_last=True, maintain_order=True)[MODEL].to_list()
    baseline = asked.baseline_text
    return ordered if baseline is None else [baseline, *(model for model in ordered if model != baseline)]


def _not_sliced(asked: ReportQuestion) -> list[Metric]:
    """The metrics that are not among those of slices."""
    sliced = {metric.output_name for metric in sliced_among(asked.metrics)}
    return [metric for metric in asked.metrics if metric.output_name not in sliced]


def _values(asked: ReportQuestion) -> pl.DataFrame:
    """Every metric of the whole, some by slice, and the headline by date; of a log the counts of decisions too."""
    headline, name = asked.headline, asked.headline.output_name
    counts = decisions_of(asked) if asked.contents is None else []
    if asked.contents is not None or not asked.has_baseline:
        of_whole, sliced = [*_not_sliced(asked), *counts], sliced_among(asked.metrics)
        parts = [values_of_models(asked, sliced, asked.all_slices, tidy=True, **asked.level)]
    else:
        # The values of slices, and their samples, are those of the comparison.
        of_whole, parts = [*asked.metrics, *counts], []
        if asked.by_date:
            days = values_of_models(asked, [headline, rows_of(headline)], asked.by_date, **asked.level)
            days = days.filter(pl.col("slice") != WHOLE)
            columns = {name: "value", f"{name}_low": "low", f"{name}_high": "high", N_ROWS: "n_rows"}
            parts = [days.rename(columns).with_columns(pl.lit(name).alias("metric"))]
    # The whole comes first: it has all columns.
    parts = [_of_whole(asked, of_whole), *parts] if of_whole else parts
    return pl.concat(parts, how="diagonal_relaxed")


def _of_whole(asked: ReportQuestion, metrics: Sequence[Metric]) -> pl.DataFrame:
    """The values of all rows. Of a log `check` counts the samples, which takes as long as the values."""
    if asked.contents is not None:
        return values_of_models(asked, metrics, tidy=True, **asked.level)
    question = Question.read(EVALUATE, asked.frame, metrics, asked.between, **asked.level, roles=asked.roles)
    count, memory, progress = (asked.passes.get(name) for name in ("passes", "memory", "progress"))
    split = question.with_passes(count, memory, progress=bool(progress))

    def table(question: Question) -> pl.LazyFrame:
        return values_of(question, tidy=True, counts_samples=False)

    return asked.with_model(table(split) if split.passes else question.planned(table))


def _decisions(asked: ReportQuestion, values: pl.DataFrame) -> pl.DataFrame | None:
    """The counts of decisions, a column each; None of a state that does not hold them."""
    counts = decisions_of(asked)
    if not counts:
        return None
    if asked.contents is None:
        found = [pl.col("value").filter(metric=each.output_name).first().alias(each.output_name) for each in counts]
        return values.group_by(MODEL, maintain_order=True).agg(found)
    return if_held(lambda: values_of_models(asked, counts))


def _differences(asked: ReportQuestion) -> pl.DataFrame:
    """The models against the baseline: in the metrics of slices by slice, in the others of the whole."""
    of_whole = [metric.output_name for metric in _not_sliced(asked)]
    # Those to which other truths count, such as grades above 1, are another comparison.
    alike = [metric for metric in asked.metrics if uses_rows_of(metric, asked.headline)]
    apart = [metric for metric in asked.metrics if not uses_rows_of(metric, asked.headline)]
    parts = [compared(asked, alike, asked.all_slices, of_whole)]
    parts += [compared(asked, apart, [])] if apart else []
    return pl.concat(parts, how="diagonal")


def compared(
    asked: ReportQuestion, metrics: Sequence[Metric], slices: Sequence[Keys], of_whole: Sequence[str] = ()
) -> pl.DataFrame:
    """The table of `compare`; of metrics `of_whole` without slices."""
    assert asked.between is not None
    given = asked.frame, list(metrics), asked.between, asked.baseline, asked.roles
    # Where nothing pairs, a page still has values to show, and says that there are no pairs.
    how = {**asked.level, **asked.passes}
    comparison = comparison_of(*given, slices=list(slices) or None, **how)
    # Days are no slices to choose among: verdicts of slices are as they were without them.
    table = comparison.table([name_of(key) for [key] in asked.days], of_whole if slices else ())
    return asked.with_model(table)


def _weights(asked: ReportQuestion) -> pl.DataFrame | None:
    """The weights by slice; None too of a state that has no sum of them."""
    like = asked.headline.tree.on_the_rest(asked.roles).measures()[0]
    is_weighted = like.table.weight is not None or asked.table.weight is not None
    if not is_weighted or like.grain == "sample" or not asked.slices:
        return None
    weight = Metric(of_rows_used_by(like, Measure(WEIGHT, {}))).alias(WEIGHT_OF_ROWS)
    return if_held(lambda: values_of_models(asked, [weight], asked.slices))


# -- labels ------------------------------------------------------------------------------------------------------------

FEWEST_COLUMNS, MOST_COLUMNS = 2, 40
"""How many slices a heat map may have."""


def _slicing_of_labels(asked: ReportQuestion, sliced: pl.DataFrame) -> str:
    """The first slicing by one column that fits a heat map."""
    sizes = dict(sliced.filter(pl.col("slice") != WHOLE).group_by("sliced_by").agg(pl.col("slice").n_unique()).rows())
    single = [name_of(keys[0]) for keys in asked.slices if len(keys) == 1]
    return next((name for name in single if FEWEST_COLUMNS <= sizes.get(name, 0) <= MOST_COLUMNS), "")


# -- slices that are searched for --------------------------------------------------------------------------------------


def _found(
    asked: ReportQuestion, values: pl.DataFrame, searched: Sequence[str]
) -> dict[str, pl.DataFrame | str] | None:
    """Where each model is worse than elsewhere, or why it cannot be searched; an error where none can."""
    if not asked.features:
        return None
    whole = values.filter(pl.col("slice") == WHOLE, pl.col("metric") == asked.headline.output_name)
    sound = whole.filter(pl.col("value").is_finite())[MODEL].to_list()
    found: dict[str, pl.DataFrame | str] = {}
    errors: list[MetricError] = []
    for model in searched:
        try:
            found[model] = _found_of(asked, model) if model in sound else "it has no value."
        except MetricError as error:
            # One model may have a feature of one value, and the others are searched all the same.
            errors.append(error)
            found[model] = str(error)
    if len(errors) == len(found):
        raise errors[0]
    return found


def _found_of(asked: ReportQuestion, model: str) -> pl.DataFrame:
    rows = asked.frame
    if asked.between is not None:
        key = pl.col(asked.between) if isinstance(asked.between, str) else asked.between
        rows = rows.filter(text_apart(key, dtype_of(asked.frame, asked.between)) == model)
    # Of the rows of one model the files are no bare scan: they are read in passes all the same, if they are many.
    is_by_file = asked.passes.get("passes") == "files"
    given: dict[str, Any] = {"cluster": asked.cluster, "progress": False, **asked.roles}
    given |= {} if is_by_file else asked.passes
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", NONE_WORSE)  # the page says so
        return find_slices(rows, asked.headline, asked.features, **given)


def _pooled(asked: ReportQuestion) -> int:
    """How many values of the column of models one group has, where another column tells models apart."""
    if asked.between is None or not asked.pools_models:
        return 1
    models = pl.col(MODELS).drop_nulls().n_unique().alias(MODELS)
    counts: list[int] = asked.frame.group_by(asked.between).agg(models).collect()[MODELS].to_list()
    return max([1, *counts])


# -- metrics that are not named ----------------------------------------------------------------------------------------

HIGHEST_GRADE = 100
"""Whole truths up to this are grades, where there are labels; with higher ones they are amounts."""

MOST_BROKEN = 0.05
"""Above this share of truths other than 0 and 1 they are no broken ones, but amounts or grades."""

OUTSIDE = ("score_out_of_range", "score_infinite", "score_nan", "score_is_no_number")
CLASSES = ("looks_multiclass", "classes_as_labels")


def problems_of(asked: ReportQuestion, frame: pl.LazyFrame) -> pl.DataFrame | None:
    """The table of `check`; None for a state, which has no rows."""
    if asked.contents is not None:
        return None
    by = listed(asked.between) or None
    # In which slices samples are no pairs, a comparison says.
    slices = None if asked.has_baseline else asked.slices or None
    given: dict[str, Any] = {"progress": False, **asked.of_log}
    found = check(frame, by=by, slices=slices, metrics=asked.metrics, **given)
    return found if asked.cluster is None else found.filter(pl.col("problem") != "cluster_unused")


def metrics_for(asked: ReportQuestion, problems: pl.DataFrame | None) -> list[Metric]:
    """Those that were named, or those that fit the log; of a state, those that it holds."""
    if asked.metrics:
        return asked.metrics
    if problems is None:
        assert asked.contents is not None
        held = metrics_of(asked.contents.metrics)
        # Counts, such as that of samples, are there for others. The headline is one whose differences are judged.
        held = [metric for metric in held if metric.best is not None] or held
        return sorted(held, key=lambda each: each.tree.interval_kind not in JUDGED_KINDS)
    found = set(problems.filter(pl.col("count") > 0)["problem"].to_list())
    if found & set(CLASSES) and asked.label is not None:
        return [
            multiclass_log_loss(),
            f1(threshold="argmax", average="macro"),
            *(top_k_accuracy(k=k) for k in (1, 5) if k < _count(problems, "labels")),
        ]
    if _has_no_classes(problems):
        if _are_grades(asked, problems):
            return [ndcg(k=10), reciprocal_rank(relevant=1), recall_at(k=10, relevant=1)]
        return [rmse(), mae(), r2()]
    is_probability = not found & set(OUTSIDE)
    metrics = [log_loss()] if is_probability else []
    metrics.append(f1() if asked.label is None else f1(average="macro"))
    # Exact ones: bins can be too coarse for a model that is too sure of itself, and say that it is worse. In passes
    # there are none.
    cells: dict[str, Any] = {"bins": ENOUGH, "grid": "logit" if is_probability else "float"} if asked.passes else {}
    metrics += [roc_auc(**cells), average_precision(**cells)]
    metrics += [calibration_error()] if is_probability else []
    if asked.label is not None and _count(problems, "labels") > 1:
        metrics.append(label_ranking_average_precision())
    return metrics


def _has_no_classes(problems: pl.DataFrame) -> bool:
    """Whether truths are amounts or grades."""
    shares = problems.filter(pl.col("problem") == "truth_not_binary")["share"].drop_nulls()
    return bool((shares > MOST_BROKEN).any())


def _are_grades(asked: ReportQuestion, problems: pl.DataFrame) -> bool:
    """Whether there are several labels, and their truths are small whole numbers: results, and how good each is."""
    if _count(problems, "labels") < 2:
        return False
    truth = asked.table.values()["truth"].cast(pl.Float64)
    is_grade = truth.is_between(0, HIGHEST_GRADE) & (truth.floor() == truth)
    return bool(asked.frame.select(is_grade.all()).collect(engine="streaming").item())


def _count(problems: pl.DataFrame, name: str) -> int:
    found = problems.filter(pl.col("problem") == name)["count"]
    return 0 if found.is_empty() else int(found[0] or 0)
