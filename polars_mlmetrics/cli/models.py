"""Models and the baseline that they are compared with, as they are typed."""

from __future__ import annotations

from typing import Any

from polars_mlmetrics.cli.calls import Node, done
from polars_mlmetrics.cli.logs import value_for
from polars_mlmetrics.cli.settings import Settings
from polars_mlmetrics.data.door import check_columns
from polars_mlmetrics.errors import ParameterError


def against(log: Node, settings: Settings, command: str) -> tuple[Node, dict[str, Any]]:
    """The log, and what says which models are compared with which baseline, in which groups and slices."""
    named = settings.given("between")
    between, baseline = named.get("between", "model"), settings.get("baseline")
    if baseline is None:
        raise ParameterError(f"{command} needs the model that the others are compared with: --baseline MODEL.")
    frame = log.run()
    schema = frame.collect_schema()
    check_columns([between], schema, what="column of models (--between)")
    named |= {"baseline": value_for(baseline, between, schema)} | groups_of(settings, between) | settings.slices()
    return done(log, frame), named


def groups_of(settings: Settings, between: str) -> dict[str, Any]:
    """The groups of a comparison. A file that serves other commands too may have the models among its groups."""
    named = settings.given("by")
    if settings.options.get("by") is not None or not named:
        return named
    by = [named["by"]] if isinstance(named["by"], str) else named["by"]
    groups = [name for name in by if name != between]
    return {"by": groups} if groups else {}
