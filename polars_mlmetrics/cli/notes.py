"""Lines below a table on a terminal: that several models make one value, and why a value is null or NaN."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from polars_mlmetrics.cli.calls import Attribute, Call, Node, result_of
from polars_mlmetrics.cli.settings import Settings
from polars_mlmetrics.data.frames import is_text
from polars_mlmetrics.data.roles import MODEL
from polars_mlmetrics.errors import shown_values
from polars_mlmetrics.reporting.wording import first_reason, lacks_values

WITH_REASONS = ("evaluate", "finish")
OF_MODELS = (*WITH_REASONS, "curve", "slices", "compare")


def notes_of(call: Node, table: pl.DataFrame, settings: Settings) -> list[str]:
    """The notes on the table that a call has given."""
    return [note for note in (_pooled(call, settings), _reason(call, table, settings)) if note]


def _pooled(call: Node, settings: Settings) -> str:
    """What to type where rows of several models are pooled; empty where they are not, or nothing tells models apart."""
    if settings.get("command") not in OF_MODELS or MODEL in _keys(settings):
        return ""
    frame = result_of(_innermost(call).given[0]).lazy()
    if not is_text(frame.collect_schema().get(MODEL, pl.Null())):
        return ""
    models = frame.select(pl.col(MODEL).cast(pl.String).drop_nulls().unique().sort()).collect().to_series()
    if len(models) < 2:
        return ""
    return f"rows of {len(models):,} models ({shown_values(models)}) make one value: --by {MODEL} tells them apart"


def _keys(settings: Settings) -> list[str]:
    """The columns whose every value has a value of its own."""
    by = settings.given("by").get("by", [])
    models = [settings.get("between") or MODEL] if settings.get("command") == "compare" else []
    return [*([by] if isinstance(by, str) else by), *models]


def _reason(call: Node, table: pl.DataFrame, settings: Settings) -> str:
    """Why the first value that is null or NaN is so; empty where there is none, or its reason stands in the table."""
    if settings.get("command") not in WITH_REASONS or settings.get("tidy") or not lacks_values(table):
        return ""
    if settings.get("per") or settings.get("passes"):
        return "" if settings.get("per") else "--tidy says why a value is null or NaN"
    # Only a tidy table has reasons: the log is read once more, and without intervals, which take longest.
    verb = _innermost(call)
    named = {name: value for name, value in verb.named.items() if name not in ("ci", "cluster")}
    return first_reason(replace(verb, named={**named, "tidy": True}).method("collect").run())


def _innermost(call: Node) -> Call:
    """The call of the library, without that of `collect` on what it gives."""
    if isinstance(call, Call) and isinstance(call.function, Attribute):
        return _innermost(call.function.of)
    assert isinstance(call, Call)
    return call
