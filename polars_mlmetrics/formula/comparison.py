"""What it is to compare a metric with `==`: an expression to Polars, a truth value to Python."""

import polars as pl


class Comparison(pl.Expr):
    """What `==` and `!=` of a metric give: an expression, and as a truth value whether it is the same metric."""

    def __init__(self, expression: pl.Expr, truth: bool) -> None:
        self._pyexpr = expression._pyexpr
        self._truth = truth

    def __bool__(self) -> bool:  # type: ignore[override]
        return self._truth
