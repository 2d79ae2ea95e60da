"""What is timed: queries over a log, each a function of the log's path."""

from collections.abc import Callable
from pathlib import Path

import polars as pl

import polars_mlmetrics as mlm

BY = ["model", "fold"]
FUSED = [
    mlm.log_loss(),
    mlm.brier_score(),
    mlm.f1(),
    mlm.f1(average="macro"),
    mlm.calibration_error(),
    mlm.one_error(),
    mlm.exact_match_prefix(),
    mlm.subset_accuracy(),
    mlm.hamming_loss(),
]
INLINE = {
    "f1 macro": mlm.f1(average="macro"),
    "calibration error": mlm.calibration_error(),
    "LRAP": mlm.label_ranking_average_precision(),
    "AUC": mlm.roc_auc(),
}


def floor(log: Path) -> pl.LazyFrame:
    """Read and add up three columns by model and fold: less than this no metric can cost."""
    return pl.scan_parquet(log).group_by(BY).agg(pl.col("score", "truth", "weight").sum())


def fused(log: Path) -> pl.LazyFrame:
    """Nine metrics of four grains in one plan."""
    return mlm.evaluate(pl.scan_parquet(log), FUSED, by=BY)


def inline(metric: mlm.Metric) -> Callable[[Path], pl.LazyFrame]:
    """One metric as an expression inside `agg`."""
    return lambda log: pl.read_parquet(log).lazy().group_by(BY).agg(metric)


def forty_metrics() -> list[mlm.Metric]:
    """Forty metrics, for the time it takes to plan them."""
    averages = ("micro", "macro", "weighted", "samples")
    makers = (mlm.f1, mlm.precision, mlm.recall, mlm.jaccard, mlm.accuracy, mlm.log_loss, mlm.brier_score)
    decided = [make(average=average) for make in makers for average in averages]
    others = (mlm.one_error, mlm.coverage_error, mlm.ranking_loss, mlm.exact_match_prefix, mlm.subset_accuracy)
    more = (mlm.mcc, mlm.cohen_kappa, mlm.roc_auc, mlm.average_precision, mlm.n_rows, mlm.n_samples, mlm.prevalence)
    return decided + [make() for make in (*others, *more)]


QUERIES: dict[str, Callable[[Path], pl.LazyFrame]] = {
    "floor": floor,
    "fused": fused,
    **{f"inline {name}": inline(metric) for name, metric in INLINE.items()},
}
