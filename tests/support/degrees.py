"""The degrees of freedom of a standard error, by their definition."""

from collections.abc import Iterable
from math import fsum, inf

SHARES = (
    "accuracy", "balanced_accuracy", "brier_uncertainty", "f1", "false_negative_rate", "false_positive_rate", "fbeta",
    "hamming_loss", "jaccard", "negative_predictive_value", "precision", "prevalence", "recall", "specificity",
)  # fmt: skip
"""Metrics that are shares of counted rows. Where samples are the clusters, they keep all degrees of freedom."""


def deciding(moved: Iterable[float]) -> float:
    """About how many buckets decide the standard error: Σ d² squared over Σ d⁴."""
    squares = [each**2 for each in moved]
    fourths = fsum(square**2 for square in squares)
    return fsum(squares) ** 2 / fourths if fourths else inf


def degrees_of_freedom(buckets: int, moved: Iterable[float]) -> float:
    """One less than the buckets; fewer where few of them decide."""
    return min(buckets - 1, max(3.0, 3 * deciding(moved) - 2))


def welch(parts: Iterable[tuple[float, float]]) -> float | None:
    """Those of a difference, from the standard error and the degrees of freedom of each side; None if both are 0."""
    squares = [(error**2, df) for error, df in parts]
    below = fsum(square**2 / df for square, df in squares if square)
    return fsum(square for square, _ in squares) ** 2 / below if below else None
