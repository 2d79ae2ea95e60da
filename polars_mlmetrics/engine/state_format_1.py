"""States of format 1, as states of today: what that format did not say is taken for unknown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from polars_mlmetrics.engine.folds import BUCKET
from polars_mlmetrics.engine.split_samples import counts_of

SHAPE = {
    "format": 1,
    "by": [str],
    "label": (None, str),
    "bins": bool,
    "buckets": (None, {"count": int, "hash": ("splitmix64", "polars")}),
    "roles": {str: (str, [str])},
    "columns": {str: str},
    "metrics": [str],
    "statistics": {str: object},
}

OF_SAMPLES = (": total", ": weight", ": units", ": defined", ": broken")
"""How the names of sums over samples end in that format, and of no other statistics."""


def as_today(said: Mapping[str, Any]) -> dict[str, Any]:
    """What a state of format 1 says of itself, said as today."""
    statistics = {name: {"merge": merge, **_grain(said, name)} for name, merge in said["statistics"].items()}
    statistics |= {name: {"merge": "count", "label": False, "bin": False} for name in _unknown_counts(said)}
    buckets = said["buckets"] and {**said["buckets"], "cluster": said["roles"]["sample"], "polars": None}
    return {
        **said,
        "format": 2,
        "expressions": {},
        "between": None,
        "buckets": buckets,
        "metrics": {text: {"text": text} for text in said["metrics"]},
        "listed": None,
        "statistics": statistics,
        "declared": {},
    }


def columns_of_today(said: Mapping[str, Any]) -> list[pl.Expr]:
    """The columns that a state of format 1 lacks. Any sample may lie in several groups: they were not counted."""
    counts = [pl.lit(1, dtype=pl.Int64).alias(name) for name in _unknown_counts(said)]
    return [pl.lit(None, dtype=pl.String).alias("source"), *counts]


def _unknown_counts(said: Mapping[str, Any]) -> list[str]:
    """The counts of samples that lie in several groups, where any statistic is of samples."""
    if not any(name.endswith(OF_SAMPLES) for name in said["statistics"]):
        return []
    sample = said["roles"]["sample"]
    by = {name: name for name in said["by"]} | ({BUCKET: "bucket"} if said["buckets"] else {})
    return list(counts_of(by, sample, sample, sample))


def _grain(said: Mapping[str, Any], name: str) -> dict[str, bool]:
    """At what grain a statistic is held, which its name says."""
    by_label = said["label"] is not None and not name.endswith(OF_SAMPLES)
    return {"label": by_label, "bin": " by bin@" in name or " by cell@" in name}
