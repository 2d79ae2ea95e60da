"""The section of models: each metric of each of them, and the differences from the baseline."""

from __future__ import annotations

from typing import Any

from polars_mlmetrics.data.visible import visible
from polars_mlmetrics.reporting.findings import Findings, ends_of
from polars_mlmetrics.reporting.wording import direction, interval


def models_section(found: Findings) -> dict[str, Any]:
    """A row for each metric: the differences and values of the models, and the baseline last."""
    names = sorted(found.names, key=lambda name: name == found.baseline)
    notes = [f"Small figures are {found.level} intervals."] if found.level is not None else []
    notes += ["Bold is the best of a row."] if len(names) > 1 else []
    if found.baseline is not None:
        notes.append(
            "A difference is taken on the samples that both models have; it is called better or worse where chance "
            f"alone would seldom give it ({found.level})."
        )
    return {
        "names": names,
        "baseline": found.baseline,
        "rows": [_row(found, metric, names) for metric in found.metrics],
        "note": " ".join(notes),
    }


def _row(found: Findings, metric: str, names: list[str]) -> dict[str, Any]:
    of_models, best = found.of_metric(metric), found.metrics[metric]
    rows = [of_models[name] for name in names]
    values = [row["value"] for row in rows if row["value"] is not None and row["value"] == row["value"]]
    # Of a metric that is better by chance alone, the best number is not the best model.
    ends = {"max": max, "min": min} if all(row["ci_flag"] != "biased" for row in rows) else {}
    top = ends[best](values) if best in ends and len(values) > 1 else None
    cells = [
        {
            **row,
            "is_best": top is not None and row["value"] == top,
            "small": interval(row["low"], row["high"]) or visible(row["reason"] or ""),
            "ends": ends_of(row),
        }
        for row in rows
    ]
    return {"metric": metric, "direction": direction(best), "cells": cells}
