"""fairlearn's MetricFrame, with the model as the control feature and the fold as the sensitive one."""

from functools import partial

import numpy as np
import polars as pl
from fairlearn.metrics import MetricFrame
from sklearn import metrics

from tests.benchmarks.data import SLICES, Log
from tests.benchmarks.work import GROUPINGS


def group(log: Log) -> pl.DataFrame:
    rows = log.scan().select("truth", "score", "model", "fold").collect()
    frame = MetricFrame(
        metrics={
            "log_loss": metrics.log_loss,
            "brier_score": metrics.brier_score_loss,
            "f1": lambda truth, score: metrics.f1_score(truth, score > 0.5),
        },
        y_true=rows["truth"].to_numpy(),
        y_pred=rows["score"].to_numpy(),
        sensitive_features={"fold": rows["fold"].to_numpy()},
        control_features={"model": rows["model"].to_numpy()},
    )
    return pl.DataFrame(frame.by_group.reset_index().to_dict("list"))


def sliced(log: Log) -> pl.DataFrame:
    """A frame for each grouping. Cells without rows are in it, with NaN."""
    rows = log.scan().select("truth", "score", *SLICES).collect()
    truth, score = rows["truth"].to_numpy(), rows["score"].to_numpy()
    frames = [
        MetricFrame(
            metrics={
                "log_loss": partial(metrics.log_loss, labels=[False, True]),
                "brier_score": metrics.brier_score_loss,
                "f1": lambda truth, score: metrics.f1_score(truth, score > 0.5, zero_division=np.nan),
            },
            y_true=truth,
            y_pred=score,
            sensitive_features={name: rows[name].to_numpy() for name in keys},
        )
        for keys in GROUPINGS
    ]
    tables = [pl.DataFrame(frame.by_group.reset_index().to_dict("list")) for frame in frames]
    whole = pl.DataFrame(frames[0].overall.to_dict())
    table = pl.concat([whole, *tables], how="diagonal").select(*SLICES, "log_loss", "brier_score", "f1")
    return table.with_columns(pl.col(pl.Float64).fill_nan(None)).drop_nulls("log_loss")


WORK = {"group": group, "groups, sliced": sliced}
