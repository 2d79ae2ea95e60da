"""The work: sets of metrics, and the one place where the library is called for them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import polars as pl

import polars_mlmetrics as mlm
from tests.benchmarks.data import SLICES, Log, wide_columns

BY = ("model", "fold")

GROUP = [mlm.log_loss(), mlm.brier_score(), mlm.f1()]
LABEL = [mlm.f1(average="macro"), mlm.precision(average="macro"), mlm.recall(average="macro")]
SAMPLE = [mlm.exact_match_prefix(), mlm.one_error(), mlm.subset_accuracy(), mlm.hamming_loss(average="samples")]
FUSED = [*GROUP, mlm.f1(average="macro"), mlm.calibration_error(), *SAMPLE[:3], mlm.hamming_loss()]
PAIRS = [mlm.label_ranking_average_precision(), mlm.ranking_loss(), mlm.coverage_error()]
SHORT = [*PAIRS, mlm.reciprocal_rank()]
RANKING = [*SHORT, mlm.precision_at(5), mlm.ndcg(k=10)]
AUC = [mlm.roc_auc(), mlm.average_precision()]
LABEL_AUC = [mlm.roc_auc(average="macro"), mlm.average_precision(average="macro")]
BINNED = [mlm.roc_auc(bins=4096), mlm.average_precision(bins=4096)]


@dataclass(frozen=True)
class Suite:
    """Metrics that are asked for together, and by what."""

    metrics: list[mlm.Metric]
    by: tuple[str, ...] = BY
    slices: tuple[tuple[str, ...], ...] = ()
    """Sets of these columns to group by, one after the other and the whole, instead of by all of them at once."""


FEW_FEATURES = list(SLICES)[:6]
"""Those that SliceLine is given, which takes long, and by which a page is sliced."""

LEAST = 100
"""How many samples a slice must have there."""

PAIRS_OF_SLICES = tuple(zip(list(SLICES)[::2], list(SLICES)[1::2], strict=True))
GROUPINGS = (*((name,) for name in SLICES), *PAIRS_OF_SLICES)

PAIRED = ("paired groups", "paired samples")
"""Suites of a log whose models have the same samples."""

NUMBERS = (25, 50, 100)
"""Of columns to slice by."""
SLICED = {
    "groups": GROUP,
    "labels": [mlm.f1(average="macro")],
    "samples": [mlm.label_ranking_average_precision(), mlm.subset_accuracy()],
}
"""What is asked for in slices."""


def of_columns(number: int) -> Suite:
    """The metrics of groups, by each of so many columns."""
    columns = tuple(wide_columns(number))
    return Suite(GROUP, columns, tuple((column,) for column in columns))


SUITES = {
    "group": Suite(GROUP),
    "log loss": Suite([mlm.log_loss()]),
    "label": Suite(LABEL),
    "sample": Suite(SAMPLE),
    "fused": Suite(FUSED),
    "ranking": Suite(RANKING),
    "short ranking": Suite(SHORT),
    "three rankings": Suite(PAIRS),
    "mixed": Suite([mlm.log_loss(), mlm.f1(), mlm.f1(average="macro"), mlm.label_ranking_average_precision()]),
    "auc": Suite(AUC),
    "label auc": Suite(LABEL_AUC),
    "binned auc": Suite(BINNED),
    "three": Suite([mlm.roc_auc(), mlm.log_loss(), mlm.brier_score()], by=("segment",)),
    "log loss by segment": Suite([mlm.log_loss()], by=("segment",)),
    "everything": Suite([*FUSED, *RANKING, *AUC]),
    "paired groups": Suite(GROUP, by=("model",)),
    "paired samples": Suite(SLICED["samples"], by=("model",)),
    "roc": Suite([mlm.roc_auc()]),
    "f1": Suite([mlm.f1()]),
    "label f1": Suite([mlm.f1(average="macro")]),
    "calibration": Suite([mlm.calibration_error()]),
    **{f"{name}, whole": Suite(metrics, by=()) for name, metrics in SLICED.items()},
    **{f"{name}, sliced": Suite(metrics, tuple(SLICES), GROUPINGS) for name, metrics in SLICED.items()},
    "samples, eight": Suite(SLICED["samples"], tuple(SLICES), GROUPINGS[: len(SLICES)]),
    **{f"{number} columns": of_columns(number) for number in NUMBERS},
    **{
        f"{name} by segment": Suite(metrics, by=("segment",))
        for name, metrics in {"group": GROUP, "sample": SAMPLE, "ranking": RANKING, "auc": AUC}.items()
    },
}
"""What is asked for, by name. The columns of an answer are those of `by` and one a metric."""


def names(work: str) -> list[str]:
    """The columns of an answer that hold numbers."""
    return [metric.output_name for metric in SUITES[work].metrics]


def asked(log: Log, work: str, **how: Any) -> Any:
    """The library's answer to a suite."""
    suite = SUITES[work]
    if suite.slices:
        return mlm.evaluate(log.given(), suite.metrics, slices=list(map(list, suite.slices)), **how)
    return mlm.evaluate(log.given(), suite.metrics, by=list(suite.by), **how)


def as_expressions(work: str) -> Callable[[Log], pl.LazyFrame]:
    """A suite as expressions inside an aggregation."""
    return lambda log: log.scan().group_by(SUITES[work].by).agg(SUITES[work].metrics)


def state_of(work: str, buckets: int) -> Callable[[Log], pl.DataFrame]:
    """A state of the log that answers a suite."""
    suite = SUITES[work]
    asked_of = {"by": list(suite.by), "buckets": buckets}
    return lambda log: mlm.state(log.scan(), suite.metrics, **asked_of).collect(engine="streaming")


def by_state(work: str, buckets: int) -> Callable[[Log], pl.LazyFrame]:
    """A suite by a state of the log, which is made whole before it answers."""
    suite, state = SUITES[work], state_of(work, buckets)
    return lambda log: mlm.finish(state(log).lazy(), suite.metrics, by=list(suite.by))


def in_three_calls(log: Log) -> pl.LazyFrame:
    """The metrics of "everything", in three plans instead of one."""
    parts = (asked(log, work).collect(engine="streaming") for work in ("fused", "ranking", "auc"))
    return pl.concat([part.sort(BY) for part in parts], how="align").lazy()


def checked(log: Log, *, thorough: bool) -> pl.DataFrame:
    """What is wrong with a log."""
    return mlm.check(log.scan(), by=BY, weight="weight", thorough=thorough)


def without_copies(log: Log) -> pl.LazyFrame:
    """The length of a log that has no row twice, or an error."""
    return mlm.dedupe(log.scan(), keep="error", sample=[*BY, "sample"]).select(pl.len())


def worst_slices(log: Log) -> pl.DataFrame:
    """Where F1 is worse than elsewhere."""
    return mlm.find_slices(log.scan(), mlm.f1(), list(SLICES), progress=False)


def worst_of_few(log: Log) -> pl.DataFrame:
    """Where the Brier score is worse than elsewhere, in every value of few features."""
    asked = {"min_samples": LEAST, "top": 100}
    return mlm.find_slices(log.scan(), mlm.brier_score(), FEW_FEATURES, progress=False, **asked)


def whole(work: str, **how: Any) -> Callable[[Log], pl.LazyFrame]:
    """A suite, as a function of a log."""
    return lambda log: asked(log, work, **how)


def compared(metrics: list[mlm.Metric], **how: Any) -> Callable[[Log], pl.DataFrame]:
    """The models of a log with the same samples, against the first."""
    return lambda log: mlm.compare(log.scan(), metrics, baseline=BASELINE, **how).collect(engine="streaming")


def drawn(kind: str, *metrics: mlm.Metric, **how: Any) -> Callable[[Log], pl.LazyFrame]:
    """A curve of each model and fold."""
    return lambda log: mlm.curve(log.scan(), kind, *metrics, by=list(BY), **how)


def best(metric: mlm.Metric, **how: Any) -> Callable[[Log], pl.LazyFrame]:
    """The best threshold of each model and fold."""
    return lambda log: mlm.best_threshold(log.scan(), metric, by=list(BY), **how)


def page(log: Log, **how: Any) -> pl.DataFrame:
    """A page about the models of a log."""
    made = mlm.report(log.scan(), PAGE, baseline=BASELINE, slices=FEW_FEATURES, **how)
    return pl.DataFrame({"length": len(made.html)})


def of_states(log: Log) -> pl.DataFrame:
    """Metrics with intervals, of a state of each file."""
    metrics = SUITES["mixed"].metrics
    made = [mlm.state(part, metrics, by=list(BY)).collect(engine="streaming") for part in log.parts()]
    return mlm.finish(pl.concat(made), by=list(BY), ci=0.95)


BASELINE = "model-0"
PAGE = [mlm.f1(), mlm.log_loss(), mlm.brier_score(), mlm.f1(average="macro")]
EIGHT = {"slices": list(SLICES)}
CELLS = {"bins": 4096}
STATES = ("label", "fused", "mixed")
AUTO = {"passes": "auto", "progress": False}
BOUNDED = {**AUTO, "memory": "1 GB"}

WORK: dict[str, Callable[[Log], pl.LazyFrame | pl.DataFrame]] = {
    **{work: whole(work) for work in SUITES},
    **{f"{work}, passes": whole(work, **AUTO) for work in ("group", "label", "ranking")},
    **{f"{work}, 1 GB": whole(work, **BOUNDED) for work in ("group", "label", "ranking")},
    "group, slices": lambda log: mlm.evaluate(log.scan(), GROUP, ci=0.95, **EIGHT, **BOUNDED),
    "ranking, intervals": whole("ranking", ci=0.95, **BOUNDED),
    "states, merged": of_states,
    **{f"{work}, state": by_state(work, 0) for work in STATES},
    **{f"{work}, 64 buckets": by_state(work, 64) for work in STATES},
    **{f"state of {work}": state_of(work, 0) for work in STATES},
    **{f"state of {work}, 64 buckets": state_of(work, 64) for work in STATES},
    **{f"{work}, expressions": as_expressions(work) for work in ("three", "log loss by segment")},
    "everything, three calls": in_three_calls,
    "check, rows": lambda log: checked(log, thorough=False),
    "check": lambda log: checked(log, thorough=True),
    "copies": without_copies,
    **{f"intervals of {name}": whole(name, ci=0.95) for name in PAIRED},
    **{f"compare of {name}": compared(SUITES[name].metrics) for name in PAIRED},
    **{f"all rows of {name}": compared(SUITES[name].metrics, pairs=False) for name in PAIRED},
    "intervals of slices": lambda log: mlm.evaluate(log.scan(), GROUP, by="model", ci=0.95, **EIGHT),
    "compare of slices": compared(GROUP, **EIGHT),
    "state of all": lambda log: mlm.state(log.scan(), GROUP, by="model", buckets=64),
    "state of pairs": lambda log: mlm.state(log.scan(), GROUP, by="model", between="model", buckets=64),
    "curve of roc": drawn("roc"),
    "curve of roc, cells": drawn("roc", **CELLS),
    "curve of f1": drawn("threshold", mlm.f1()),
    "curve of f1, cells": drawn("threshold", mlm.f1(), **CELLS),
    "curve of label f1, cells": drawn("threshold", mlm.f1(average="macro"), **CELLS),
    "curve of calibration": drawn("calibration"),
    "best of f1": best(mlm.f1()),
    "best of f1, cells": best(mlm.f1(), **CELLS),
    "best of f1, labels": best(mlm.f1(), per="label"),
    "best of f1, cells of labels": best(mlm.f1(), per="label", **CELLS),
    "best of f1, folds": best(mlm.f1(), folds=5, **CELLS),
    "best of label f1, cells": best(mlm.f1(average="macro"), **CELLS),
    "page": page,
    "page, passes": lambda log: page(log, **AUTO),
    "check of models": lambda log: mlm.check(log.scan(), by="model"),
    "intervals of a page": lambda log: mlm.evaluate(log.scan(), PAGE, by="model", slices=FEW_FEATURES, ci=0.95),
    "finder": worst_slices,
    "finder, few": worst_of_few,
}
"""What the library does, by name."""
