"""Costs at thresholds, worked out row by row."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

import polars_mlmetrics as mlm


@mlm.metric(range=(0, float("inf")), best="min")
def cost_at(u: mlm.Unit, *, threshold: mlm.Threshold = 0.5, average: mlm.Average = "micro") -> pl.Expr:
    """What alarms cost, and what is missed."""
    costs = pl.when(u.decision(threshold)).then(pl.col("amount")).otherwise(u.truth * 3.0)
    return mlm.ratio(u.sum(f"cost_at@{threshold}", costs), u.rows())


@mlm.metric(range=(0, float("inf")), best="min")
def most_missed(u: mlm.Unit, *, threshold: mlm.Threshold = 0.5, average: mlm.Average = "micro") -> pl.Expr:
    """The largest amount that is not predicted."""
    return u.max(f"most_missed@{threshold}", pl.when(~u.decision(threshold)).then(pl.col("amount")))


del mlm.CATALOGUE["cost_at"], mlm.CATALOGUE["most_missed"]  # the laws of the catalogue are not about them


def log_of(n: int = 600) -> pl.DataFrame:
    random = np.random.default_rng(11)
    log = pl.DataFrame(
        {
            "sample": np.arange(n) >> 1,
            "label": random.choice(["x", "y", "z"], n),
            "g": random.integers(0, 3, n),
            "score": random.random(n).round(2),
            "truth": random.random(n) < 0.4,
            "w": random.random(n),
            "amount": random.integers(1, 9, n),
        }
    )
    rare = pl.when(pl.int_range(n) % 9 == 3).then(None).when(pl.int_range(n) % 7 == 1).then(-np.inf)
    groups = pl.DataFrame({"g": [0, 1, 2], "model": ["a", "b", None]})
    return log.with_columns(score=rare.otherwise("score")).join(groups, on="g")


METRICS: dict[str, Callable[..., mlm.Metric]] = {
    "f1": mlm.f1,
    "inclusive": lambda **t: mlm.f1(inclusive=True, **t),
    "macro": lambda **t: mlm.f1(average="macro", **t),
    "weighted": lambda **t: mlm.precision(average="weighted", **t),
    "least": lambda **t: mlm.recall(average="min", undefined=0.0, **t),
    "named": lambda **t: mlm.accuracy(average={"x": 1, "y": 3}, **t),
    "mcc": mlm.mcc,
    "counts": mlm.false_negatives,
    "cost": cost_at,
    "missed": most_missed,
    "difference": lambda **t: mlm.f1(**t) - mlm.prevalence(),
    "filtered": lambda **t: mlm.informedness(**t).filter(pl.col("amount") > 3),
    "of_labels": lambda **t: mlm.f1(labels=["x", "z"], **t),
    "bound": lambda **t: mlm.f1(**t).on(score=pl.col("score") * 0.5),
    "weights": lambda **t: mlm.f1(**t).on(weight="w"),
}


def by_trying(rows: pl.DataFrame, made: Callable[..., mlm.Metric], tried: Sequence[float]) -> tuple[float, float]:
    """The highest of some thresholds that has the best value, and this value."""
    values = mlm.evaluate(rows, [made(threshold=each).alias(str(place)) for place, each in enumerate(tried)]).row(0)
    known = [(value, threshold) for value, threshold in zip(values, tried, strict=True) if value is not None]
    best = (max if made().best == "max" else min)(value for value, _ in known)
    return max(threshold for value, threshold in known if math.isclose(value, best, rel_tol=1e-12)), best


def is_close(value: float | None, expected: float | None) -> bool:
    if value is None or expected is None:
        return value is expected
    return math.isclose(value, expected, rel_tol=1e-12, abs_tol=1e-12)
