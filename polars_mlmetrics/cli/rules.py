"""The rules of a gate as they are written: `f1 >= 0.8`, `f1_low >= 0.75`, `f1 >= f1_baseline - 0.01`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import polars as pl

from polars_mlmetrics.analysis.rules import warn
from polars_mlmetrics.cli.calls import Call, Named, Node, Operation
from polars_mlmetrics.cli.settings import Settings
from polars_mlmetrics.errors import ParameterError

NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
COLUMN = r"[^\s<>=!+]+"
RULE = rf"\s*({COLUMN})\s*(>=|<=|==|!=|>|<)\s*(?:({NUMBER})|({COLUMN})(?:\s+([+-])\s+({NUMBER}))?)\s*"
SIDES = {"value": "", "low": "_low", "high": "_high"}
COL = Named("pl.col", pl.col)


def rules_of(settings: Settings) -> dict[str, Any]:
    """The rules of a gate, each under how it is written: those of the command line, or else those of the file."""
    typed = [(text, False) for text in settings.get("rule") or []] + [
        (text, True) for text in settings.get("warn") or []
    ]
    written = typed or [_written(entry) for entry in settings.file.get("gate", [])]
    if not written:
        raise ParameterError("a gate needs a rule: --rule 'f1 >= 0.8', or [[gate]] in the file of -c.")
    return {text: _rule(text, is_warning=is_warning) for text, is_warning in written}


def _written(entry: Mapping[str, Any]) -> tuple[str, bool]:
    """A rule of a file, and whether it only warns."""
    missing = [key for key in ("metric", "op", "bound") if key not in entry]
    if missing:
        raise ParameterError(f"[[gate]] lacks {missing[0]!r}, as in metric = 'f1', op = '>=', bound = 0.8.")
    side = entry.get("side", "value")
    if side not in SIDES:
        raise ParameterError(f"[[gate]]: side is 'value', 'low' or 'high', not {side!r}.")
    return f"{entry['metric']}{SIDES[side]} {entry['op']} {entry['bound']}", bool(entry.get("warn", False))


def _rule(text: str, *, is_warning: bool) -> Node:
    found = re.fullmatch(RULE, text)
    if found is None:
        raise ParameterError(f"{text!r} is no rule: write 'f1 >= 0.8', 'f1_low >= 0.75' or 'f1 >= f1_baseline - 0.01'.")
    column, sign, number, other, plus, more = found.groups()
    bound: Any = _number(number) if other is None else Call(COL, [other])
    if plus:
        bound = Operation(bound, plus, _number(more))
    rule = Operation(Call(COL, [column]), sign, bound)
    return Call(Named("mlm.warn", warn), [rule]) if is_warning else rule


def _number(text: str) -> float:
    return int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)
