"""polars-ds, as expressions inside an aggregation."""

import polars as pl
import polars_ds as pds

from tests.benchmarks.data import Log
from tests.benchmarks.work import BY


def log_loss(log: Log) -> pl.LazyFrame:
    return log.scan().group_by(BY).agg(pds.query_log_loss("truth", "score").alias("log_loss"))


def log_loss_by_segment(log: Log) -> pl.LazyFrame:
    return log.scan().group_by("segment").agg(pds.query_log_loss("truth", "score").alias("log_loss"))


def three(log: Log) -> pl.LazyFrame:
    return (
        log.scan()
        .group_by("segment")
        .agg(
            pds.query_roc_auc("truth", "score").alias("roc_auc"),
            pds.query_log_loss("truth", "score").alias("log_loss"),
            pds.query_l2(pl.col("truth").cast(pl.Float64), "score").alias("brier_score"),
        )
    )


def auc(log: Log) -> pl.LazyFrame:
    """Both areas come from one call, which works out precision, recall and F1 as well."""
    values = log.scan().group_by(BY).agg(pds.query_binary_metrics("truth", "score").alias("values"))
    both = pl.col("values").struct
    return values.select(*BY, both.field("roc_auc"), both.field("avg_precision").alias("average_precision"))


WORK = {"log loss": log_loss, "auc": auc, "three": three, "log loss by segment": log_loss_by_segment}
