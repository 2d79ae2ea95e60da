"""A log with ties and nulls everywhere, and what a state of it must answer."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.laws.cases import Case
from tests.support.differing import differing

START = date(2024, 1, 29)  # the last days of a month, and the first of the next

KEYS_OF_LOG = ["model", "day", "fold", "share", "flag", "tier"]


def made_log(samples: int = 60, rows: int = 480) -> pl.DataFrame:
    """Rows in no order, with ties, and nulls in every role. What is a key, and the weight, is of the sample."""
    random = np.random.default_rng(17)
    sample = random.permutation(np.arange(rows) % samples)
    columns = {
        "sample": sample,
        "label": random.choice(list("abcde"), rows),
        "score": random.choice([0.1, 0.25, 0.5, 0.5, 0.75, 0.9], rows),
        "other": random.random(rows),
        "truth": random.choice([0, 1], rows),
        "amount": random.normal(1000, 1, rows),
        "model": np.array(["x", "y", "z"])[sample % 3],
        "day": [START + timedelta(int(s) % 5) for s in sample],
        "fold": sample % 4,
        "share": np.array([0.5, 0.0, float("nan"), -2.5, float("inf")])[sample % 5],
        "flag": sample % 2 == 0,
        "tier": np.array(["low", "high"])[sample // 3 % 2],
        "weight": np.array([1.0, 0.5, 0.0, 2.0])[sample % 4],
        "own": random.choice([0.0, 0.1, 0.7, 1.0], rows),
    }
    place, of_sample = pl.int_range(pl.len()), pl.col("sample")
    nulls = {"sample": 83, "label": 79, "score": 61, "truth": 59}
    no_key = {"model": 11, "day": 13, "fold": 17, "share": 19, "flag": 23, "tier": 29}
    return (
        pl.DataFrame(columns)
        .with_columns(pl.col("fold").cast(pl.Int8), pl.col("tier").cast(pl.Enum(["low", "high"])))
        .with_columns(pl.when(of_sample % every != 5).then(name).alias(name) for name, every in no_key.items())
        .with_columns(pl.when(place % every != 7).then(name).alias(name) for name, every in nulls.items())
    )


LOG = made_log()

OF_SAMPLES = [
    mlm.ndcg(),
    mlm.ranking_loss(),
    mlm.reciprocal_rank(),
    mlm.one_error(),
    mlm.f1(average="samples"),
    mlm.roc_auc(average="samples"),
]

OF_LABELS = [
    mlm.f1(average="macro"),
    mlm.recall(average="weighted"),
    mlm.labelwise_precision(),
    mlm.calibration_error(average="macro"),
    mlm.roc_auc(bins=16, average="min"),
    mlm.r2(average="macro").on(truth="amount", score="other"),
    mlm.f1(threshold="argmax", average="max").alias("best"),
]

OF_GROUPS = [
    mlm.f1(),
    mlm.mcc(),
    mlm.roc_auc(bins=64),
    mlm.calibration_error(),
    mlm.precision(threshold="argmax"),
    mlm.pearson().on(truth="amount"),
    mlm.explained_variance().on(truth="amount"),
    mlm.max_error(),
    mlm.log_loss(),
]

COUNTS = [mlm.n_rows(), mlm.n_samples(), mlm.n_excluded()]

METRICS = [*OF_SAMPLES, *OF_LABELS, *OF_GROUPS, *COUNTS]

FEW = [
    mlm.one_error(),
    mlm.f1(average="macro"),
    mlm.precision(threshold="argmax"),
    mlm.calibration_error(average="macro"),
    mlm.roc_auc(bins=64),
    mlm.pearson().on(truth="amount"),
    mlm.max_error(),
    *COUNTS,
]
"""A quick one of each kind of statistic: sums over samples, by label, in bins, about a mean, extremes."""


def evaluated(log: pl.DataFrame, *metrics: Any, **options: Any) -> pl.DataFrame:
    """What the rows give. As a lazy frame they may lack thresholds for some labels."""
    return as_a_state_knows(mlm.evaluate(log.lazy(), *metrics, progress=False, **options).collect())


def as_a_state_knows(table: pl.DataFrame) -> pl.DataFrame:
    """A table without the one count that a state does not hold: of samples that lie in other slices too."""
    return table.with_columns(n_split=pl.lit(None, dtype=pl.Int64)) if "n_split" in table.columns else table


def folded(log: pl.DataFrame, *metrics: Any, **options: Any) -> pl.DataFrame:
    return mlm.state(log.lazy(), *metrics, progress=False, **options).collect()


def parts_of(log: pl.DataFrame, count: int) -> list[pl.DataFrame]:
    """The rows in parts of whole samples; those without a sample are in the first."""
    part = pl.col("sample").fill_null(0) % count
    return [log.filter(part == number) for number in range(count)]


def check(
    log: pl.DataFrame,
    metrics: Sequence[Any],
    keys: Any = None,
    *,
    roles: Mapping[str, Any] | None = None,
    buckets: int = 3,
    parts: int = 1,
    **asked: Any,
) -> pl.DataFrame:
    """The answer of states, which must be that of the rows."""
    roles = roles or {}
    cut = parts_of(log, parts) if parts > 1 else [log]
    states = [folded(part, metrics, by=keys, buckets=buckets, **roles) for part in cut]
    answer = mlm.finish(pl.concat(states), metrics, **asked)
    assert differing(answer, evaluated(log, metrics, **asked, **roles)) == []
    return answer


def differing_in(one: pl.DataFrame, other: pl.DataFrame) -> list[str]:
    """The columns in which two states differ. What deviations sum to is nothing but rounding."""
    return [name for name in differing(one, other) if not name.startswith("deviation_")]


def contents(state: pl.DataFrame) -> dict[str, Any]:
    dtype = state.schema["state"]
    assert isinstance(dtype, pl.Enum)
    told: dict[str, Any] = json.loads(dtype.categories[0])
    return told


def said(error: type[Exception], call: Callable[..., object], *args: Any, **kwargs: Any) -> str:
    """The message of the error, of this very class, that a call raises."""
    with pytest.raises(error) as caught:
        call(*args, **kwargs)
    assert type(caught.value) is error
    return str(caught.value)


def numbered(refused: Sequence[tuple[Any, ...]]) -> list[str]:
    """Names of tests, by the messages of errors."""
    return [f"{place}: {message}" for place, (*_, message) in enumerate(refused)]


CURVES = {
    "roc_auc", "gini", "average_precision", "ks", "recall_at_precision", "precision_at_recall", "recall_at_fpr",
    "lift_at", "interpolated_pr_auc", "equal_error_rate", "calibration_ks", "calibration_kuiper",
}  # fmt: skip
"""Metrics of a curve, which is exact unless bins= are asked for."""


OF_ALL_ROWS = {
    "spearman", "kendall", "linear_kappa", "median_absolute_error", "relative_absolute_error", "d2_pinball",
    "d2_absolute_error",
}  # fmt: skip
"""Metrics of which the catalogue says that they do not merge."""


def has_no_state(case: Case) -> bool:
    if case.name == "information_score":
        return case.params.get("prior") is None
    return case.average != "samples" and (
        case.name in OF_ALL_ROWS
        or case.params.get("strategy") == "quantile"
        or (case.name in CURVES and case.params.get("bins") is None)
    )


def merged(*states: pl.DataFrame) -> pl.DataFrame:
    return mlm.compact(pl.concat(states))


@cache
def of_three_keys() -> pl.DataFrame:
    return pl.concat(folded(part, FEW, by=["model", "day", "fold"], buckets=2) for part in parts_of(LOG, 2))


def agrees(state: pl.DataFrame, log: pl.DataFrame, metrics: Sequence[Any] = FEW, **asked: Any) -> bool:
    return not differing(mlm.finish(state, metrics, **asked), evaluated(log, metrics, **asked))
