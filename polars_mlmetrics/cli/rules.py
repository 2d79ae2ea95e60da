"""The rules of a gate as they are written: `f1 >= 0.8`, `f1_low >= 0.75`, `f1 >= f1_baseline - 0.01`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from polars_mlmetrics.analysis.gate import warn
from polars_mlmetrics.cli.calls import COL, Call, Named, Node, Operation
from polars_mlmetrics.cli.settings import Settings
from polars_mlmetrics.errors import ParameterError, unknown

NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
COLUMN = r"[^\s<>=!+]+"
RULE = rf"\s*({COLUMN})\s*(>=|<=|==|!=|>|<)\s*(?:({NUMBER})|({COLUMN})(?:\s+([+-])\s+({NUMBER}))?)\s*"
SIDES = {"value": "", "low": "_low", "high": "_high", "difference": ""}
WARN = Named("mlm.warn", warn)
EXAMPLES = {"sliced_by": "country", "slice": "country=DE"}


class Written(NamedTuple):
    """A rule: how it is written, what it is, and which rows of the table it is about."""

    text: str
    node: Node
    place: tuple[tuple[str, str], ...] = ()
    """Columns and what they hold in these rows."""
    is_difference: bool = False
    """Whether it is about the difference of models, which is a table of its own."""

    @property
    def is_warning(self) -> bool:
        """Whether it closes no gate."""
        return isinstance(self.node, Call) and self.node.function == WARN


def rules_of(settings: Settings) -> list[Written]:
    """The rules of a gate: those of the command line, or else those of the file."""
    typed = [Written(text, _rule(text, is_warning=False)) for text in settings.get("rule") or []]
    typed += [Written(text, _rule(text, is_warning=True)) for text in settings.get("warn") or []]
    has_table = bool(settings.get("against"))
    written = typed or [_of_entry(entry, settings, of_table=has_table) for entry in settings.file.get("gate", [])]
    if not written:
        raise ParameterError("a gate needs a rule: --rule 'f1 >= 0.8', or [[gate]] in the file of -c.")
    rules: dict[str, Written] = {}
    for rule in written:
        # Of a rule that is given as a warning too, the gate keeps the one that closes it.
        if rule.text not in rules or not rule.is_warning:
            rules[rule.text] = rule
    return list(rules.values())


def _of_entry(entry: Mapping[str, Any], settings: Settings, *, of_table: bool) -> Written:
    """A rule of a file."""
    missing = [key for key in ("metric", "op", "bound") if key not in entry]
    if missing:
        raise ParameterError(f"[[gate]] lacks {missing[0]!r}, as in metric = 'f1', op = '>=', bound = 0.8.")
    metric, side, end = entry["metric"], entry.get("side", "value"), f"{entry['op']} {entry['bound']}"
    if side not in SIDES:
        raise ParameterError(f"[[gate]]: side is 'value', 'low', 'high' or 'difference', not {side!r}.")
    is_warning = bool(entry.get("warn", False))
    place = _place_of(entry, settings)
    words = _words_of(place)
    if side != "difference":
        text = f"{metric}{SIDES[side]} {end}"
        return Written(text + words, _rule(text, is_warning=is_warning), place)
    text = f"{metric} - baseline {end}"
    if of_table:
        return Written(text + words, _difference(entry, is_warning=is_warning), place)
    of_metric = (*place, ("metric", metric))
    return Written(text + words, _rule(f"difference {end}", is_warning=is_warning), of_metric, is_difference=True)


def _difference(entry: Mapping[str, Any], *, is_warning: bool) -> Node:
    """A rule on the difference of a column from that of an earlier table."""
    checked = _rule(f"{entry['metric']} {entry['op']} {entry['bound']}", is_warning=False)
    assert isinstance(checked, Operation)
    less = Operation(checked.left, "-", Call(COL, [f"{entry['metric']}_baseline"]))
    return _as_warning(Operation(less, checked.sign, checked.right), is_warning)


def _place_of(entry: Mapping[str, Any], settings: Settings) -> tuple[tuple[str, str], ...]:
    """The slicing or the slice that a rule is about."""
    place = tuple((key, entry[key]) for key in ("sliced_by", "slice") if key in entry)
    for key, value in place:
        if not isinstance(value, str):
            raise ParameterError(f"[[gate]]: {key} is a text such as {EXAMPLES[key]!r}, not {value!r}.")
        if settings.get("table_file"):
            continue
        slicings = [_slicing(each) for each in settings.slices().get("slices", [])]
        if not slicings:
            raise ParameterError(f"[[gate]]: {key} = {value!r} needs slices, such as slices = ['country'].")
        if key == "sliced_by" and value not in ("", *slicings):
            raise ParameterError(f"[[gate]]: {unknown('sliced_by', value, slicings, of='a slicing')}")
    return place


def _slicing(columns: Any) -> str:
    return columns if isinstance(columns, str) else ", ".join(map(str, columns))


def _words_of(place: Sequence[tuple[str, str]]) -> str:
    words = {"sliced_by": "by", "slice": "where"}
    return "".join(f" {words[key]} {value or 'all'}" for key, value in place)


def _rule(text: str, *, is_warning: bool) -> Node:
    found = re.fullmatch(RULE, text)
    if found is None:
        raise ParameterError(f"{text!r} is no rule: write 'f1 >= 0.8', 'f1_low >= 0.75' or 'f1 >= f1_baseline - 0.01'.")
    column, sign, number, other, plus, more = found.groups()
    bound: Any = _number(number) if other is None else Call(COL, [other])
    if plus:
        bound = Operation(bound, plus, _number(more))
    return _as_warning(Operation(Call(COL, [column]), sign, bound), is_warning)


def _as_warning(rule: Node, is_warning: bool) -> Node:
    return Call(WARN, [rule]) if is_warning else rule


def _number(text: str) -> float:
    return int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)
