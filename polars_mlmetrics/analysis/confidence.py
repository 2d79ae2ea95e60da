"""What intervals are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from polars_mlmetrics.analysis.bounds import (
    t_quantile,
)
from polars_mlmetrics.data.frames import Names
from polars_mlmetrics.errors import ParameterError

Level = float | Literal["bootstrap"]
"""A level of confidence; or "bootstrap", for intervals between values of buckets that are drawn with replacement."""

OF_DRAWS = 0.95
"""The level of the intervals of draws."""


@dataclass(frozen=True)
class Confidence:
    """What intervals are asked for."""

    level: float
    buckets: int
    """How many there are."""
    cluster: Sequence[str]
    """The columns that they are made of."""
    are_whole: bool = True
    """Whether each cluster is known to be in one bucket, whole."""
    is_bootstrap: bool = False
    """Whether the ends are those of draws."""

    @classmethod
    def of(cls, ci: Level, buckets: int, cluster: Sequence[str], *, are_whole: bool = True) -> Confidence:
        """What is asked for, of buckets."""
        level = OF_DRAWS if isinstance(ci, str) else ci
        return cls(level, buckets, cluster, are_whole, is_bootstrap=isinstance(ci, str))

    def quantiles(self) -> pl.Series:
        """Those of Student's t, by the number of buckets that tell something; null where that is below two."""
        quantiles = [t_quantile(self.level, df) for df in range(1, self.buckets)]
        return pl.Series([None, None, *quantiles], dtype=pl.Float64)


def check_number(caller: str, ci: Any) -> None:
    """Refuse what is no number: differences have no intervals without one, and draws would mislead about them."""
    if ci is None or isinstance(ci, str):
        raise ParameterError(f"{caller} takes a number between 0 and 1 as ci, such as 0.95, not {ci!r}.")


def check_level(ci: Any, cluster: Names) -> None:
    """Refuse what is no level of confidence."""
    if ci is None and cluster is not None:
        raise ParameterError("cluster= is for intervals: pass ci= too, such as ci=0.95.")
    if ci is None or ci == "bootstrap":
        return
    if isinstance(ci, str):
        raise ParameterError(f"ci must be a number between 0 and 1, such as 0.95, or 'bootstrap', not {ci!r}.")
    if isinstance(ci, bool) or not isinstance(ci, int | float) or not 0 < ci < 1:
        raise ParameterError(f"ci must be a number between 0 and 1, such as 0.95, not {ci!r}.")
