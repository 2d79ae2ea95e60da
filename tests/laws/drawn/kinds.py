"""Kinds of truths, scores and broken values in random tables."""

from collections.abc import Callable
from random import Random
from typing import Any

from tests.support.frames import LABELS

NAN, INFINITY = float("nan"), float("inf")

Keys = list[tuple[Any, Any]]
"""The sample and the label of each row."""


# What the cells of a column are drawn from. Tied nearly always; next to the ends of what is allowed, too.
# An edge of the grids with 64 bins is between 0.49 and 0.5.
FINE: dict[str, list[float]] = {
    "score": [0.0, -0.0, 0.1, 0.49, 0.5, 0.5, 0.5, 1.0, 5e-324, 1 - 1e-16],
    "logit": [-800.0, -1.0, 0.0, 0.0, 0.5, 0.5, 40.0],
    "margin": [-INFINITY, -0.5, -0.49, -0.0, 0.0, 0.49, 0.5, 0.5, 0.7, 3e9, INFINITY],
    "estimate": [-1.0, -0.0, 0.0, 0.1, 0.5, 0.5, 3.0],
    "rate": [0.125, 0.3, 1.0, 1.0, 7.0],
    "truth": [0.0, 1.0],
    "soft": [0.0, 0.25, 0.3, 1.0, 1.0],
    "real": [-1.0, 0.0, 0.1, 0.5, 0.5, 2.0],
    "gain": [0.0, 0.0, 0.3, 1.0, 1.0, 3.0, 10.0],
    "amount": [0.25, 0.3, 1.0, 1.0, 3.0],
    "weight": [0.0, 1.0, 1.0, 2.0, 0.1, 0.7],
    "limit": [0.1, 0.5, 0.5, 1.0],
}


BROKEN: dict[str, list[float]] = {
    "score": [NAN, 1.5, -0.1], "logit": [NAN, INFINITY], "margin": [NAN], "estimate": [NAN], "rate": [NAN, 0.0, -1.0],
    "truth": [NAN, 2.0, 0.5], "soft": [NAN, 1.5], "real": [NAN], "gain": [NAN, -1.0, INFINITY],
    "amount": [NAN, 0.0, -1.0], "weight": [NAN, -1.0], "limit": [NAN],
}  # fmt: skip


TRUTHS = ["truth", "soft", "real", "gain", "amount"]


def one_class(random: Random, keys: Keys) -> list[float]:
    """One true label a sample, or none where that row is missing."""
    true = {sample: random.choice(LABELS) for sample, _ in keys}
    return [float(true[sample] == label) for sample, label in keys]


def degenerate(random: Random, keys: Keys) -> list[float]:
    """Samples of positives only or of negatives only."""
    truth = {sample: random.choice([0.0, 1.0]) for sample, _ in keys}
    return [truth[sample] for sample, _ in keys]


def mixed(random: Random, keys: Keys) -> list[float]:
    return [random.choice([0.0, 1.0]) for _ in keys]


def rare(random: Random, keys: Keys) -> list[float]:
    return [float(random.random() < 0.1) for _ in keys]


ARRANGED: list[Callable[[Random, Keys], list[float]]] = [one_class, one_class, mixed, mixed, degenerate, rare]
