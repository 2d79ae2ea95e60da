"""A line for a terminal where a value is null or NaN: why the first one is."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from polars_mlmetrics.cli.calls import Attribute, Call, Node
from polars_mlmetrics.cli.settings import Settings
from polars_mlmetrics.reporting.wording import first_reason, lacks_values

COMMANDS = ("evaluate", "finish")


def reason_line(call: Node, table: pl.DataFrame, settings: Settings) -> str:
    """Why the first value that is null or NaN is so; empty where there is none, or its reason stands in the table."""
    if settings.get("command") not in COMMANDS or settings.get("tidy") or not lacks_values(table):
        return ""
    if settings.get("per") or settings.get("passes"):
        return "" if settings.get("per") else "--tidy says why a value is null or NaN"
    # Only a tidy table has reasons: the log is read once more, and without intervals, which take longest.
    return first_reason(_tidy(call).run())


def _tidy(call: Node) -> Node:
    if isinstance(call, Call) and isinstance(call.function, Attribute):
        return replace(call, function=replace(call.function, of=_tidy(call.function.of)))
    assert isinstance(call, Call)
    named = {name: value for name, value in call.named.items() if name not in ("ci", "cluster")}
    return replace(call, named={**named, "tidy": True})
