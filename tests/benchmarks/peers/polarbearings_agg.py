"""polarbearings, as expressions inside an aggregation."""

import polarbearings as pb
import polars as pl

from tests.benchmarks.data import Log

ROWS = {"target": "truth", "pos_label": True}


def log_loss(log: Log) -> pl.LazyFrame:
    return log.scan().group_by("segment").agg(pb.log_loss(prob="score", **ROWS).alias("log_loss"))


def three(log: Log) -> pl.LazyFrame:
    return (
        log.scan()
        .group_by("segment")
        .agg(
            pb.roc_auc(score="score", **ROWS).alias("roc_auc"),
            pb.log_loss(prob="score", **ROWS).alias("log_loss"),
            pb.brier_score(prob="score", **ROWS).alias("brier_score"),
        )
    )


WORK = {"three": three, "log loss by segment": log_loss}
