"""polarbearings, as expressions inside an aggregation."""

import polarbearings as pb
import polars as pl

from tests.benchmarks.data import Log

ROWS = {"target": "truth", "pos_label": True}


def log_loss(log: Log) -> pl.LazyFrame:
    return log.scan().group_by("segment").agg(pb.log_loss(prob="score", **ROWS).alias("log_loss"))


def three(log: Log) -> pl.LazyFrame:
    areas, losses = pb.roc_auc(score="score", **ROWS), pb.log_loss(prob="score", **ROWS)
    squares = pb.brier_score(prob="score", **ROWS)
    return log.scan().group_by("segment").agg(roc_auc=areas, log_loss=losses, brier_score=squares)


WORK = {"three": three, "log loss by segment": log_loss}
