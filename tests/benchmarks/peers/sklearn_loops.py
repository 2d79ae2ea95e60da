"""scikit-learn in a loop over the groups. Polars reads the log and cuts it into arrays."""

from collections.abc import Callable, Iterator

import numpy as np
import polars as pl
from sklearn import metrics

from tests.benchmarks.data import Log
from tests.benchmarks.work import BY

Values = dict[str, float]


def groups(log: Log, by: list[str], *columns: str) -> Iterator[tuple[dict[str, str], pl.DataFrame]]:
    """The rows of each group, and what the group is called."""
    rows = log.scan().select(*by, *columns).collect()
    for key, group in rows.partition_by(by, as_dict=True, include_key=False).items():
        yield dict(zip(by, key, strict=True)), group


def of_rows(values: Callable[[np.ndarray, np.ndarray], Values], by: list[str]) -> Callable[[Log], pl.DataFrame]:
    """A function of truth and score, of each group."""

    def answer(log: Log) -> pl.DataFrame:
        split = groups(log, by, "truth", "score")
        return pl.DataFrame([key | values(rows["truth"].to_numpy(), rows["score"].to_numpy()) for key, rows in split])

    return answer


def group_values(truth: np.ndarray, score: np.ndarray) -> Values:
    return {
        "log_loss": metrics.log_loss(truth, score),
        "brier_score": metrics.brier_score_loss(truth, score),
        "f1": metrics.f1_score(truth, score > 0.5),
    }


def auc_values(truth: np.ndarray, score: np.ndarray) -> Values:
    return {
        "roc_auc": metrics.roc_auc_score(truth, score),
        "average_precision": metrics.average_precision_score(truth, score),
    }


def label_auc(log: Log) -> pl.DataFrame:
    labels = of_rows(auc_values, [*BY, "label"])(log)
    return labels.group_by(BY).agg(pl.col("roc_auc", "average_precision").mean().name.suffix("_macro"))


def three_rankings(log: Log) -> pl.DataFrame:
    """Of wide tables, one row a sample. The samples in which a metric is undefined are taken out of it first."""
    answers = []
    for key, group in groups(log, list(BY), "sample", "label", "truth", "score"):
        rows = group.sort("sample", "label")
        labels = rows["label"].n_unique()
        truth, score = (rows[name].to_numpy().reshape(-1, labels) for name in ("truth", "score"))
        some = truth.any(axis=1)
        both = some & ~truth.all(axis=1)
        values = {
            "label_ranking_average_precision": metrics.label_ranking_average_precision_score(truth[some], score[some]),
            "ranking_loss": metrics.label_ranking_loss(truth[both], score[both]),
            "coverage_error": metrics.coverage_error(truth[some], score[some]),
        }
        answers.append(key | values)
    return pl.DataFrame(answers)


def roc_curves(log: Log) -> pl.DataFrame:
    """Every point of the ROC curve of each group."""
    drawn = []
    for key, rows in groups(log, list(BY), "truth", "score"):
        false, true, at = metrics.roc_curve(rows["truth"].to_numpy(), rows["score"].to_numpy(), drop_intermediate=False)
        drawn.append(pl.DataFrame({"threshold": at, "fpr": false, "tpr": true}).with_columns(**key_columns(key)))
    return pl.concat(drawn)


def f1_curves(log: Log) -> pl.DataFrame:
    """F1 at every threshold, of precision and recall."""
    drawn = []
    for key, rows in groups(log, list(BY), "truth", "score"):
        found = metrics.precision_recall_curve(rows["truth"].to_numpy(), rows["score"].to_numpy())
        precision, recall, at = found[0][:-1], found[1][:-1], found[2]
        with np.errstate(invalid="ignore"):
            f1 = 2 * precision * recall / (precision + recall)
        drawn.append(pl.DataFrame({"threshold": at, "value": f1}).with_columns(**key_columns(key)))
    return pl.concat(drawn)


def best_of_f1(log: Log) -> pl.DataFrame:
    """The threshold at which F1 is best. scikit-learn predicts the rows at a threshold too."""
    curves = f1_curves(log).filter(pl.col("value").is_not_nan())
    return curves.group_by(BY).agg(pl.col("threshold", "value").get(pl.col("value").arg_max()))


def key_columns(key: dict[str, str]) -> dict[str, pl.Expr]:
    return {name: pl.lit(value) for name, value in key.items()}


WORK = {
    "curve of roc": roc_curves,
    "curve of f1": f1_curves,
    "best of f1": best_of_f1,
    "group": of_rows(group_values, list(BY)),
    "three rankings": three_rankings,
    "auc": of_rows(auc_values, list(BY)),
    "label auc": label_auc,
}
