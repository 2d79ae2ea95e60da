"""Placements: how rows stand among those of their unit, and how far a part of them moves the unit's value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import polars as pl


class Placements(NamedTuple):
    """How rows stand in the order of their unit, summed: over all its rows, or over those of one bucket."""

    positives: pl.Expr
    negatives: pl.Expr
    lost: pl.Expr
    """Over the true rows: how many of the others score higher than each. A tie counts half."""
    won: pl.Expr
    """Over the others: how many true rows score higher than each. A tie counts half."""
    precision: pl.Expr
    """Over the true rows: the share of true ones among the rows at or above each."""
    added: pl.Expr
    """Over all rows: what each adds to the precisions of the true rows at or below it."""


@dataclass(frozen=True)
class Influence:
    """A value in closed form, and how far the rows of each bucket move it. All buckets together do not move it."""

    value: Callable[[Placements], pl.Expr]
    """The value of a unit; null where it is undefined."""
    moved: Callable[[Placements, Placements], pl.Expr]
    """How far the rows of a bucket move the value of its unit."""
