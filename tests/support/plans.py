"""The plan of a query, as text and in its parts."""

import re
import sys
from pathlib import Path
from unittest import mock

import polars as pl


def wide_log(folder: Path) -> pl.LazyFrame:
    """A scan of a parquet file with many columns that no metric reads."""
    frame = pl.DataFrame(
        {
            "model": ["a", "a", "a", "a", "b", "b"],
            "country": ["DE", "DE", "FR", None, "DE", "FR"],
            "sample": [1, 1, 2, 2, 1, 2],
            "label": ["x", "y", "x", "y", "x", "x"],
            "score": [0.9, 0.2, 0.4, 0.8, 0.7, 0.1],
            "truth": [1, 0, 1, 0, 1, 0],
            "w": [1.0, 1.0, 2.0, 2.0, 1.0, 2.0],
            **{f"unused_{i}": [0] * 6 for i in range(20)},
        }
    )
    path = folder / "log.parquet"
    frame.write_parquet(path)
    return pl.scan_parquet(path)


def serialized(plan: pl.LazyFrame) -> bytes:
    """The plan as bytes; a plan with Python in it needs cloudpickle for that, and there is none here."""
    with mock.patch.dict(sys.modules, {"cloudpickle": None}):
        return plan.serialize()


def physical(plan: pl.LazyFrame) -> str:
    """The streaming engine's own graph of a plan."""
    graph = plan.show_graph(engine="streaming", plan_stage="physical", raw_output=True, show=False)
    assert graph is not None
    return graph


def fallbacks(plan: pl.LazyFrame) -> list[str]:
    """The steps of a plan that the streaming engine hands to the in-memory one; `explain()` does not tell."""
    graph = physical(plan)
    hue = re.search(r'COLOR="([^"]*)">⬤</FONT> in-memory engine fallback', graph)
    assert hue, "the legend is not what it was"
    nodes = re.findall(r'^\d+ \[label="(.*)",style=filled,fillcolor="([^"]*)"\];$', graph, flags=re.MULTILINE)
    return [label for label, colour in nodes if colour == hue[1]]
