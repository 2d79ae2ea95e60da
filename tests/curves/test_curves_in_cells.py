"""A curve of metrics with `bins=`: at each threshold it has the value of the metric with that threshold."""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_mlmetrics as mlm

AMOUNT = pl.col("amount")

METRICS: dict[str, Callable[..., mlm.Metric]] = {
    "micro": mlm.f1,
    "macro": lambda **given: mlm.f1(average="macro", **given),
    "weighted": lambda **given: mlm.f1(average="weighted", **given),
    "min": lambda **given: mlm.recall(average="min", **given),
    "weights of labels": lambda **given: mlm.f1(average={"x": 1.0, "y": 2.0}, **given),
    "some labels": lambda **given: mlm.f1(average="macro", labels=["x", "y"], **given),
    "weights": lambda **given: mlm.f1(average="macro", **given).on(weight="w"),
    "some rows": lambda **given: mlm.f1(average="macro", **given).filter(pl.col("part") == 1),
    "undefined": lambda **given: mlm.specificity(average="macro", undefined=0.0, **given),
    "a difference": lambda **given: mlm.f1(average="macro", **given) - mlm.recall(**given),
    "inclusive": lambda **given: mlm.f1(average="macro", inclusive=True, **given),
    "cost of rows": lambda **given: mlm.cost(fp=AMOUNT, fn=1, **given),
    "targets": lambda **given: mlm.average_score(mlm.f1(**given)),
}


def log_of(seed: int, rows: int = 120) -> pl.DataFrame:
    """Rows of three models and labels, with nulls in the columns that may have some; of odd seeds scores are tied."""
    random = np.random.default_rng(seed)
    tied = random.choice([0, 0.1, 0.25, 0.5, 0.5, 0.75, 1], rows)
    columns = {
        "sample": random.integers(0, rows // 3, rows),
        "model": random.choice(["a", "b", "c"], rows),
        "label": random.choice(["x", "y", "z"], rows),
        "score": tied if seed % 2 else random.random(rows),
        "truth": random.integers(0, 2, rows),
        "w": random.choice([0.0, 1.0, 2.5], rows),
        "amount": random.random(rows),
        "part": random.choice([1, 2], rows),
    }
    place, nulls = pl.int_range(pl.len()), {"score": 17, "truth": 19, "label": 13}
    return pl.DataFrame(columns).with_columns(
        pl.when(place % n != 7).then(name).alias(name) for name, n in nulls.items()
    )


@pytest.mark.one_in(4)
@pytest.mark.parametrize("given", [{}, {"ci": 0.9}, {"passes": 2, "progress": False}], ids=["", "ci", "passes"])
@pytest.mark.parametrize("by", [None, "model", ["model", "part"]], ids=str)
@pytest.mark.parametrize("name", METRICS)
def test_each_value_is_that_of_the_metric_at_its_threshold(name: str, by: Any, given: dict[str, Any]) -> None:
    metric, keys = METRICS[name], [] if by is None else [by] if isinstance(by, str) else by
    for seed in range(2):
        log = log_of(seed)
        found = mlm.curve(log, "threshold", metric(), bins=8, by=by, **given).drop_nulls("threshold")
        assert found.height > 3
        for row in found.iter_rows(named=True):
            rows = log.filter(pl.lit(True), *(pl.col(key) == row[key] for key in keys))
            expected = mlm.evaluate(rows, metric(threshold=row["threshold"])).item()
            assert row["value"] == pytest.approx(expected, rel=1e-12), row


@pytest.mark.one_in(5)
@pytest.mark.parametrize("folds", [None, 3])
@pytest.mark.parametrize("by", [None, "model"])
@pytest.mark.parametrize("name", [name for name in METRICS if name != "a difference"])
def test_the_best_threshold_has_the_best_of_these_values(name: str, by: str | None, folds: int | None) -> None:
    metric, log = METRICS[name](), log_of(0)
    keys = [] if by is None else [by]
    best = mlm.best_threshold(log, metric, bins=8, by=by, folds=folds)
    values = mlm.curve(log, "threshold", metric, bins=8, by=by, points=100)
    end = pl.col("value").max() if metric.best == "max" else pl.col("value").min()
    expected = values.group_by(pl.lit(0).alias("all"), *keys).agg(end).sort(keys or "all")["value"].to_list()
    assert best.sort(keys or "value")["value"].to_list() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("of", ["log", "state"])
@pytest.mark.parametrize("dtype", [pl.Float64, pl.Float32, pl.Float16])
@pytest.mark.parametrize("kind", ["roc", "threshold"])
def test_a_threshold_is_a_number_of_the_type_of_the_score(kind: Any, dtype: Any, of: str) -> None:
    """A half is where a cell begins: the one below ends so near to it that a short float does not tell them apart."""
    log = log_of(1).cast({"score": dtype})
    asked = log if of == "log" else mlm.state(log, [mlm.f1(), mlm.roc_auc(bins=8)])
    metric, value = (mlm.recall, "tpr") if kind == "roc" else (mlm.f1, "value")
    found = mlm.curve(asked, kind, *([] if kind == "roc" else [mlm.f1()]), bins=8)
    assert found["threshold"].cast(dtype).cast(pl.Float64).equals(found["threshold"])
    for threshold, at in found.select("threshold", value).rows():
        assert mlm.evaluate(log, metric(threshold=threshold)).item() == pytest.approx(at, rel=1e-12)
    best = mlm.best_threshold(asked, mlm.f1(), bins=8)
    assert mlm.evaluate(log, mlm.f1(threshold=best["threshold"].item())).item() == best["value"].item()
