"""Metrics of a score and a truth that are both real numbers."""

from typing import Unpack

import polars as pl

from polars_mlmetrics.engine.arithmetic import ratio
from polars_mlmetrics.engine.declaration import metric
from polars_mlmetrics.engine.parameters import Averaged
from polars_mlmetrics.engine.settle import Average
from polars_mlmetrics.engine.unit import Unit


@metric(range=(0, float("inf")), best="min", undefined_when="no rows")
def rmse(u: Unit, *, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """The root of the mean squared difference of score and truth: √(Σw·(s-t)² / Σw)."""
    return ratio(u.sum("squared_error", (u.score - u.real) ** 2), u.rows()).sqrt()


@metric(range=(0, float("inf")), best="min", undefined_when="no rows")
def mae(u: Unit, *, average: Average = "micro", **options: Unpack[Averaged]) -> pl.Expr:
    """The mean absolute difference of score and truth: Σw·|s-t| / Σw."""
    return ratio(u.sum("absolute_error", (u.score - u.real).abs()), u.rows())
