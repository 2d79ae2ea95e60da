"""The section of slices that were searched for."""

from __future__ import annotations

from typing import Any

import polars as pl

from polars_mlmetrics.data.visible import visible
from polars_mlmetrics.reporting.verdicts import Told
from polars_mlmetrics.reporting.where_worse import not_searched
from polars_mlmetrics.reporting.wording import interval, many


def found_section(told: Told) -> dict[str, Any]:
    """The slices that were searched for."""
    found = told.answers.found
    if found is None:
        return {"absent": ""}
    rows = [
        {
            **row,
            "model": model if len(told.searched) > 1 else "",
            "ends": interval(row["low"], row["high"], of_difference=True),
        }
        for model, table in found.items()
        if isinstance(table, pl.DataFrame)
        for row in table.filter(pl.col("hidden_by").is_null()).iter_rows(named=True)
    ]
    left = not_searched(told)
    searched = [*map(_searched, found.items()), *([left] if left else [])]
    return {"rows": rows, "searched": searched, "features": visible(", ".join(told.answers.asked.features))}


def _searched(found: tuple[str, pl.DataFrame | str]) -> str:
    """How a model was searched."""
    model, table = visible(found[0]), found[1]
    if isinstance(table, str):
        return f"{model} was not searched: {visible(table)}"
    if table.is_empty():
        return f"No slice of {model} is worse than the rest."
    n_tested = many(table["n_tested"].item(0), "slice", "slices")
    return f"find_slices tried {n_tested} of {model} on one half of the samples and measured these on the other half."
