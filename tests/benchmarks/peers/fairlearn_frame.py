"""fairlearn's MetricFrame, with the model as the control feature and the fold as the sensitive one."""

import polars as pl
from fairlearn.metrics import MetricFrame
from sklearn import metrics

from tests.benchmarks.data import Log


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


WORK = {"group": group}
