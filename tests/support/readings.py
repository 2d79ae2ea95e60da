"""The two readings of the package: one value asked by both, of tables of samples by labels."""

import math
from typing import Any

import numpy as np
import polars as pl

from tests.laws.oracle import Value

# --- tables of samples by labels ------------------------------------------------------------------------------------


def long(truth: Any, score: Any, weight: Any = None) -> pl.DataFrame:
    """The long table of a matrix of truths and one of scores; the weight is of the sample."""
    truth, score = np.asarray(truth), np.asarray(score)
    samples, labels = truth.shape
    columns = {
        "sample": np.repeat(np.arange(samples), labels),
        "label": [chr(ord("A") + label) for _ in range(samples) for label in range(labels)],
        "score": score.reshape(-1),
        "truth": truth.reshape(-1),
    }
    if weight is not None:
        columns["weight"] = np.repeat(np.asarray(weight), labels)
    return pl.DataFrame(columns)


# --- the two readings of the package --------------------------------------------------------------------------------

READINGS = 1e-12  # two orders of summation of a few numbers: some units in the last place


def same(left: Any, right: Any, tolerance: float = READINGS) -> bool:
    """Equal to a tolerance; null equals null only, NaN equals NaN only, an infinity itself only."""
    if left is None or right is None:
        return left is right
    if math.isnan(left) or math.isnan(right):
        return math.isnan(left) and math.isnan(right)
    return left == right or math.isclose(left, right, rel_tol=tolerance, abs_tol=tolerance)


def both(frame: pl.DataFrame, metric: Any, **roles: Any) -> Value:
    """The value of a metric on a frame by both readings, which must agree."""
    import polars_mlmetrics as mlm

    bound = metric.on(**roles) if roles else metric
    inline = frame.select(bound).to_series().item()
    staged = one_frame(mlm.evaluate(frame, metric, **roles)).to_series().item()
    assert same(inline, staged), f"expression {inline!r}, evaluate {staged!r}"
    return inline


def both_by_label(frame: pl.DataFrame, metric: Any, **roles: Any) -> dict[Any, Value]:
    """A metric of each label: a micro expression in group_by("label").agg, and evaluate(per="label")."""
    import polars_mlmetrics as mlm

    bound = metric.on(**roles) if roles else metric
    inline = dict(frame.group_by("label").agg(bound).rows())
    staged = dict(one_frame(mlm.evaluate(frame, metric, per="label", **roles)).rows())
    assert inline.keys() == staged.keys()
    for label, value in inline.items():
        assert same(value, staged[label]), f"{label}: expression {value!r}, evaluate {staged[label]!r}"
    return dict(sorted(inline.items()))


def one_frame(result: Any) -> pl.DataFrame:
    return result.collect() if isinstance(result, pl.LazyFrame) else result
