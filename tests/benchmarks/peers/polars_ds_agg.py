"""polars-ds, as expressions inside an aggregation."""

from collections.abc import Callable, Sequence

import polars as pl
import polars_ds as pds

from tests.benchmarks.data import Log
from tests.benchmarks.work import BY


def log_loss(by: Sequence[str]) -> Callable[[Log], pl.LazyFrame]:
    return lambda log: log.scan().group_by(by).agg(pds.query_log_loss("truth", "score").alias("log_loss"))


def three(log: Log) -> pl.LazyFrame:
    areas, losses = pds.query_roc_auc("truth", "score"), pds.query_log_loss("truth", "score")
    squares = pds.query_l2(pl.col("truth").cast(pl.Float64), "score")
    return log.scan().group_by("segment").agg(roc_auc=areas, log_loss=losses, brier_score=squares)


def auc(log: Log) -> pl.LazyFrame:
    """Both areas come from one call, which works out precision, recall and F1 as well."""
    values = log.scan().group_by(BY).agg(pds.query_binary_metrics("truth", "score").alias("values"))
    both = pl.col("values").struct
    return values.select(*BY, both.field("roc_auc"), both.field("avg_precision").alias("average_precision"))


WORK = {"log loss": log_loss(BY), "auc": auc, "three": three, "log loss by segment": log_loss(["segment"])}
