"""fairlearn's MetricFrame, with the model as the control feature and the fold as the sensitive one."""

from functools import partial
from typing import Any

import numpy as np
import polars as pl
from fairlearn.metrics import MetricFrame
from sklearn import metrics

from tests.benchmarks.data import SLICES, Log
from tests.benchmarks.work import GROUPINGS


def frame_of(rows: pl.DataFrame, keys: tuple[str, ...], **more: Any) -> MetricFrame:
    """Log loss, Brier score and F1 in the cells of some columns."""
    of_rows = {
        "log_loss": partial(metrics.log_loss, labels=[False, True]),
        "brier_score": metrics.brier_score_loss,
        "f1": lambda truth, score: metrics.f1_score(truth, score > 0.5, zero_division=np.nan),
    }
    truth, score = rows["truth"].to_numpy(), rows["score"].to_numpy()
    features = {name: rows[name].to_numpy() for name in keys}
    return MetricFrame(metrics=of_rows, y_true=truth, y_pred=score, sensitive_features=features, **more)


def table_of(frame: MetricFrame) -> pl.DataFrame:
    return pl.DataFrame(frame.by_group.reset_index().to_dict("list"))


def group(log: Log) -> pl.DataFrame:
    rows = log.scan().select("truth", "score", "model", "fold").collect()
    return table_of(frame_of(rows, ("fold",), control_features={"model": rows["model"].to_numpy()}))


def sliced(log: Log) -> pl.DataFrame:
    """A frame for each grouping. Cells without rows are in it, with NaN."""
    rows = log.scan().select("truth", "score", *SLICES).collect()
    frames = [frame_of(rows, keys) for keys in GROUPINGS]
    whole = pl.DataFrame(frames[0].overall.to_dict())
    table = pl.concat([whole, *map(table_of, frames)], how="diagonal")
    table = table.select(*SLICES, "log_loss", "brier_score", "f1")
    return table.with_columns(pl.col(pl.Float64).fill_nan(None)).drop_nulls("log_loss")


WORK = {"group": group, "groups, sliced": sliced}
