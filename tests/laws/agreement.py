"""Whether a value agrees with numbers of others, on small random tables."""

from typing import Any

import numpy as np
import polars as pl
import pytest
import sklearn.metrics as sk

from tests.laws.oracle import expected
from tests.support.readings import long, same

AGREE = 1e-12  # both sides sum a few dozen float64 numbers
AVERAGES = ("micro", "macro", "weighted", "samples")

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


def several(seeds: int, quick: int) -> list[Any]:
    """The parameters of so many tables, each with weights and without; all but the first few are proofs."""
    return [
        pytest.param((seed, weighted), marks=[pytest.mark.proof] * (seed >= quick))
        for seed in range(seeds)
        for weighted in (False, True)
    ]


class Table:
    """A small random table with tied scores. With weights, or without."""

    def __init__(self, seed: int, weighted: bool) -> None:
        rng = np.random.default_rng(seed)
        shape = self.samples, self.labels = int(rng.integers(4, 9)), int(rng.integers(2, 6))
        self.truth: Matrix = rng.integers(0, 2, shape)
        self.score: Matrix = rng.choice([0.0, 0.1, 0.3, 0.5, 0.5, 0.6, 0.8, 1.0], shape)
        self.weight: Matrix | None = rng.choice([0.5, 1.0, 2.0, 3.25], self.samples) if weighted else None
        self.roles = {"weight": "weight"} if weighted else {}
        self.arrange()

    def arrange(self) -> None:
        """A sample of no positive, one of positives only, one of both, and a label that nothing predicts."""
        self.truth[0], self.truth[1] = 0, 1
        self.truth[2, 0], self.truth[2, 1] = 1, 0
        self.score[:, 0] = np.minimum(self.score[:, 0], 0.5)

    def of_classes(self) -> Matrix:
        """The one true class of each sample, which the truth says from now on."""
        classes = np.arange(self.samples) % self.labels
        self.truth = np.eye(self.labels, dtype=int)[classes]
        return classes

    def as_shares(self) -> Matrix:
        """Scores of a sample that sum to 1, which are the scores from now on."""
        self.score = (self.score + 0.1) / (self.score + 0.1).sum(axis=1, keepdims=True)
        return self.score

    @property
    def frame(self) -> pl.DataFrame:
        return long(self.truth, self.score, self.weight)

    @property
    def said(self) -> Matrix:
        return (self.score > 0.5).astype(int)

    @property
    def cells(self) -> tuple[Matrix, Matrix, Matrix | None]:
        """Truths, scores and weights as flat lists, for scores that know nothing of labels."""
        weight = None if self.weight is None else np.repeat(self.weight, self.labels)
        return self.truth.reshape(-1), self.score.reshape(-1), weight

    def expected(self, name: str, **params: Any) -> float | None:
        """By the reference."""
        return expected(name, self.frame, params, self.roles)


class EvenTable(Table):
    """Both classes in every label and in every sample: what scikit-learn needs for the area under a curve."""

    def arrange(self) -> None:
        super().arrange()
        self.truth[:, 0] = np.arange(self.samples) % 2
        self.truth[:, 1] = 1 - self.truth[:, 0]


def agree(ours: float | None, theirs: Any) -> None:
    assert same(ours, float(theirs), AGREE), f"{ours} is not {theirs}"
