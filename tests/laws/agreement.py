"""Whether a reference agrees with numbers of others."""

from typing import Any

import numpy as np
import pytest
import sklearn.metrics as sk

from tests.laws.oracle import expected
from tests.support.readings import long, same

AGREE = 1e-12  # both sides sum a few dozen float64 numbers


SEEDS = range(8)


SEVERAL = [
    pytest.param((seed, weighted), marks=[pytest.mark.proof] if seed > 2 else [])
    for seed in SEEDS
    for weighted in (False, True)
]


OF_NUMBERS = {
    "mse": sk.mean_squared_error,
    "mae": sk.mean_absolute_error,
    "rmse": sk.root_mean_squared_error,
    "mape": sk.mean_absolute_percentage_error,
    "r2": sk.r2_score,
    "explained_variance": sk.explained_variance_score,
    "median_absolute_error": sk.median_absolute_error,
}
"""The metrics of numbers as scikit-learn has them."""

Matrix = np.ndarray[Any, Any]


class Table:
    """A small random table with tied scores, weights, and samples of no positive and of positives only."""

    def __init__(self, seed: int, weighted: bool) -> None:
        rng = np.random.default_rng(seed)
        self.samples, self.labels = int(rng.integers(4, 9)), int(rng.integers(2, 6))
        shape = (self.samples, self.labels)
        self.truth: Matrix = rng.integers(0, 2, shape)
        self.score: Matrix = rng.choice([0.0, 0.1, 0.3, 0.5, 0.5, 0.6, 0.8, 1.0], shape)
        self.truth[0], self.truth[1] = 0, 1
        self.truth[2, 0], self.truth[2, 1] = 1, 0
        self.weight: Matrix | None = rng.choice([0.5, 1.0, 2.0, 3.25], self.samples) if weighted else None
        self.frame = long(self.truth, self.score, self.weight)
        self.roles = {"weight": "weight"} if weighted else {}

    @property
    def said(self) -> Matrix:
        return (self.score > 0.5).astype(int)

    @property
    def cell_weight(self) -> Matrix | None:
        """The weights of the cells, for scores that know nothing of labels."""
        return None if self.weight is None else np.repeat(self.weight, self.labels)

    def expected(self, name: str, **params: Any) -> float | None:
        return expected(name, self.frame, params, self.roles)


def agree(ours: float | None, theirs: float) -> None:
    assert same(ours, float(theirs), AGREE), f"{ours} is not {theirs}"
