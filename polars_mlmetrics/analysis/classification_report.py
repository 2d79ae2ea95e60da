"""`classification_report`: precision, recall and F1 of each label, and their averages."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, Unpack

import polars as pl

from polars_mlmetrics.analysis.evaluate import values_of
from polars_mlmetrics.data.frames import AnyFrame, Names, answer_as_given, as_given_later
from polars_mlmetrics.data.roles import Roles
from polars_mlmetrics.errors import INTERNAL, at_callers_line
from polars_mlmetrics.formula.averages import Average
from polars_mlmetrics.formula.metric import Metric
from polars_mlmetrics.formula.shared import Threshold
from polars_mlmetrics.metrics.decisions import f1, precision, recall, support
from polars_mlmetrics.query.keys import Keys
from polars_mlmetrics.query.query import check_names
from polars_mlmetrics.query.question import Level, Question
from polars_mlmetrics.query.results import names_of
from polars_mlmetrics.query.verb import Verb

CLASSIFICATION_REPORT = Verb("classification_report", takes_states=True)

RATES = {"precision": precision, "recall": recall, "f1": f1}
AVERAGES: tuple[Average, ...] = ("micro", "macro", "weighted")

PLACE = f"{INTERNAL}place"


@at_callers_line
def classification_report(
    frame: AnyFrame,
    by: Keys | None = None,
    *,
    threshold: Threshold = 0.5,
    undefined: float | None = None,
    ci: Level | None = None,
    cluster: Names = None,
    passes: int | Literal["auto", "files"] | None = None,
    memory: int | str | None = None,
    progress: bool = True,
    **roles: Unpack[Roles],
) -> AnyFrame:
    """Precision, recall, F1 and support of each label, and their averages, for every group.

    Parameters
    ----------
    frame
        The long table; or a state made for `f1` (with this threshold) and `support`, each with the averages "micro",
        "macro" and "weighted".
    by, ci, cluster, **roles
        As in `evaluate`; of a state, `by` and `ci` alone.
    threshold
        As in `f1`: a label is predicted where its score is above it. "argmax" predicts the best label of each sample,
        as of classes.
    undefined
        The value of a label for which a metric is undefined, such as the precision of a label that is never predicted.
        None leaves it out of the averages; scikit-learn takes 0.0.
    passes, memory, progress
        As in `evaluate`, of a log.

    Returns
    -------
    The by columns; `label`, and `average` of the rows that are about all labels, where `label` is null; `precision`,
    `recall` and `f1`, each with `_low` and `_high` if `ci` is given; and `support`, the true rows: beside averages, of
    all labels. The labels come first, in order, then "micro", "macro" and "weighted". Of classes, with
    threshold="argmax", "micro" is the accuracy.

    Examples
    --------
    >>> import polars as pl, polars_mlmetrics as mlm
    >>> log = pl.DataFrame({"sample": [1, 1, 2, 2, 3, 3], "label": ["cat", "dog"] * 3,
    ...                     "score": [0.9, 0.1, 0.7, 0.3, 0.2, 0.8], "truth": [1, 0, 0, 1, 0, 1]})
    >>> mlm.classification_report(log)
    shape: (5, 6)
    ┌───────┬──────────┬───────────┬──────────┬──────────┬─────────┐
    │ label ┆ average  ┆ precision ┆ recall   ┆ f1       ┆ support │
    │ ---   ┆ ---      ┆ ---       ┆ ---      ┆ ---      ┆ ---     │
    │ str   ┆ str      ┆ f64       ┆ f64      ┆ f64      ┆ f64     │
    ╞═══════╪══════════╪═══════════╪══════════╪══════════╪═════════╡
    │ cat   ┆ null     ┆ 0.5       ┆ 1.0      ┆ 0.666667 ┆ 1.0     │
    │ dog   ┆ null     ┆ 1.0       ┆ 0.5      ┆ 0.666667 ┆ 2.0     │
    │ null  ┆ micro    ┆ 0.666667  ┆ 0.666667 ┆ 0.666667 ┆ 3.0     │
    │ null  ┆ macro    ┆ 0.75      ┆ 0.75     ┆ 0.666667 ┆ 3.0     │
    │ null  ┆ weighted ┆ 0.833333  ┆ 0.666667 ┆ 0.666667 ┆ 3.0     │
    └───────┴──────────┴───────────┴──────────┴──────────┴─────────┘
    """
    metrics = metrics_of_report(threshold, undefined)
    question: Question = Question.read(CLASSIFICATION_REPORT, frame, metrics, by, ci=ci, cluster=cluster, roles=roles)
    check_names([*(key.name for key in question.query.by), "label", "average", *_columns(question)])
    split = question.with_passes(passes, memory, progress=progress)
    if not split.passes:
        return answer_as_given(frame, question.planned(_table), question.query.types_of_units())
    return as_given_later(frame, lambda: _table(split), lambda: _table(question))


def metrics_of_report(threshold: Threshold, undefined: float | None = None) -> list[Metric]:
    """The metrics of its columns, by each average."""
    found: list[Metric] = []
    for average in AVERAGES:
        rates = {name: make(threshold=threshold, average=average, undefined=undefined) for name, make in RATES.items()}
        metrics = {**rates, "support": support(average=average)}
        found += [metric.alias(f"{average} {name}") for name, metric in metrics.items()]
    return found


def _columns(question: Question) -> list[str]:
    """The columns of a row beside its keys."""
    return [*names_of(list(RATES), tidy=False, ci=question.confidence is not None), "support"]


def _table(question: Question) -> pl.LazyFrame:
    """The rows of labels, and those of averages."""
    query, by = question.query, [key.name for key in question.query.by]
    macro = [metric for metric in query.metrics if metric.output_name.startswith("macro ")]
    labels = values_of(replace(question, query=query.of_metrics(macro)), "label")
    label = pl.col(query.measures[0].table.label).alias("label")
    rows = [labels.select(*by, label, *_row(question, "macro", "macro", None, 0))]
    averages = values_of(question)
    # Beside each average stand all true rows.
    rows += [
        averages.select(*by, *_row(question, average, "micro", average, place))
        for place, average in enumerate(map(str, AVERAGES), start=1)
    ]
    table = pl.concat(rows, how="diagonal").sort(*by, PLACE, "label", maintain_order=True)
    return table.select(*by, "label", "average", *_columns(question))


def _row(question: Question, of_rates: str, of_support: str, average: str | None, place: int) -> list[pl.Expr]:
    """The columns of one kind of row, from those of the averages of these names."""
    *rates, _ = _columns(question)
    columns = [pl.col(f"{of_rates} {name}").alias(name) for name in rates]
    return [
        pl.lit(average, pl.String).alias("average"),
        pl.lit(place).alias(PLACE),
        *columns,
        pl.col(f"{of_support} support").alias("support"),
    ]
