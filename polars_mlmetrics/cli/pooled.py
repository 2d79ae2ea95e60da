"""A line for a terminal where the rows of several models were made into one value."""

from __future__ import annotations

import polars as pl

from polars_mlmetrics.cli.calls import Attribute, Call, Node, result_of
from polars_mlmetrics.cli.settings import Settings
from polars_mlmetrics.data.frames import is_text
from polars_mlmetrics.data.roles import MODEL
from polars_mlmetrics.errors import shown_values

COMMANDS = ("evaluate", "finish", "curve", "slices", "compare")


def pooled_line(call: Node, settings: Settings) -> str:
    """What to type where rows of several models are pooled; empty where they are not, or nothing tells models apart."""
    if settings.get("command") not in COMMANDS or MODEL in _keys(settings):
        return ""
    frame = _frame_of(call)
    if not is_text(frame.collect_schema().get(MODEL, pl.Null())):
        return ""
    models = frame.select(pl.col(MODEL).cast(pl.String).drop_nulls().unique().sort()).collect().to_series()
    if len(models) < 2:
        return ""
    named = shown_values(models)
    return f"rows of {len(models):,} models ({named}) make one value: --by {MODEL} tells them apart"


def _keys(settings: Settings) -> list[str]:
    """The columns whose every value has a value of its own."""
    by = settings.given("by").get("by", [])
    models = [settings.get("between") or MODEL] if settings.get("command") == "compare" else []
    return [*([by] if isinstance(by, str) else by), *models]


def _frame_of(call: Node) -> pl.LazyFrame:
    """The log, or the states, that a call is about."""
    while isinstance(call, Call) and isinstance(call.function, Attribute):
        call = call.function.of
    assert isinstance(call, Call)
    frame: pl.LazyFrame = result_of(call.given[0]).lazy()
    return frame
