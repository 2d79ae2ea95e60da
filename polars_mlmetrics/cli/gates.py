"""The call of `mlm gate`: rules tried on a table that was saved, on what a log gives, and on differences of models."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from polars_mlmetrics.adapters.scan import scan
from polars_mlmetrics.analysis.compare import compare
from polars_mlmetrics.analysis.evaluate import evaluate
from polars_mlmetrics.analysis.finish import finish
from polars_mlmetrics.analysis.gate import gate
from polars_mlmetrics.analysis.rules import warn
from polars_mlmetrics.cli.calls import COL, Call, CallNode, Function, NamedValue, Operation, done
from polars_mlmetrics.cli.logs import against, log_or_state, opened
from polars_mlmetrics.cli.metric_texts import metrics_of
from polars_mlmetrics.cli.settings import Settings
from polars_mlmetrics.errors import ParameterError, unknown
from polars_mlmetrics.metrics.decisions import n_samples


def gate_of(settings: Settings) -> CallNode:
    """The gates of all rules: one for each table, slicing and slice that rules are about."""
    rules = rules_of(settings)
    named = settings.given("on_undefined", "on_flag", "min_samples")
    earlier = _saved(settings.get("against"), settings) if settings.get("against") else None
    of_values = [rule for rule in rules if not rule.is_difference]
    of_differences = [rule for rule in rules if rule.is_difference]
    parts = []
    if of_values:
        parts.append(_gates(_table_of(settings), _by_place(of_values), named, earlier))
    if of_differences:
        parts.append(_gates(_differences(settings, of_differences), _by_place(of_differences), named, None))
    return parts[0] if len(parts) == 1 else _stacked(parts)


def _stacked(parts: Sequence[CallNode]) -> CallNode:
    """Several results as one; what they do not share comes last, and so the status is put there again."""
    stacked = Call(NamedValue("pl.concat", pl.concat), [list(parts)], {"how": "diagonal_relaxed"})
    ends = ["status", "reason"]
    return stacked.method("select", Call(NamedValue("pl.exclude", pl.exclude), ends), *ends)


def _by_place(rules: Sequence[Written]) -> list[list[Written]]:
    """The rules of each place, in the order of the first of each."""
    places = dict.fromkeys(rule.place for rule in rules)
    return [[rule for rule in rules if rule.place == place] for place in places]


def _gates(
    table: CallNode, places: Sequence[Sequence[Written]], named: dict[str, Any], earlier: CallNode | None
) -> CallNode:
    """A gate of a table; where rules are about a part of it, the gates of these parts."""
    if len(places) == 1 and not places[0][0].place:
        return _gate(table, places[0], named, earlier)

    def body(rows: CallNode) -> CallNode:
        gates = [_gate(rows, rules, named, earlier) for rules in places]
        return gates[0] if len(gates) == 1 else Call(NamedValue("pl.concat", pl.concat), [gates])

    if not isinstance(table, NamedValue):
        table = table.method("collect")
    return table.method("pipe", Function(body, "table", lambda: None))


def _gate(table: CallNode, rules: Sequence[Written], named: dict[str, Any], earlier: CallNode | None) -> CallNode:
    place = rules[0].place
    given = {**named, **({} if earlier is None else {"baseline": _part(earlier, place)})}
    tried = {rule.text: rule.node for rule in rules}
    return Call(NamedValue("mlm.gate", gate), [_part(table, place), tried], given)


def _part(table: CallNode, place: Sequence[tuple[str, str]]) -> CallNode:
    """The rows of a place."""
    for column, value in place:
        table = table.method("filter", Operation(Call(COL, [column]), "==", value))
    if any(column == "metric" for column, _ in place):
        table = table.method("drop", "metric")
    return table


# -- tables ------------------------------------------------------------------------------------------------------------


def _table_of(settings: Settings) -> CallNode:
    """The table of a gate: one that was saved, or what a log gives."""
    saved = settings.get("table_file")
    if saved and settings.get("logs"):
        raise ParameterError("a gate tries its rules on a log or on a table (--table): give one of them.")
    return _saved(saved, settings) if saved else _of_log_or_state(settings)


def _of_log_or_state(settings: Settings) -> CallNode:
    metrics = _metrics(settings)
    if settings.get("min_samples") is not None and "n_samples" not in [each.run().output_name for each in metrics]:
        metrics.insert(0, Call(NamedValue("mlm.n_samples", n_samples)))
    named = settings.given("by") | settings.slices() | settings.given("ci", "anytime")
    log, own = log_or_state(settings)
    if own is settings:
        named |= settings.given("cluster") | settings.passes() | settings.roles()
        return Call(NamedValue("mlm.evaluate", evaluate), [log, *metrics], named)
    if own.given("cluster", "passes", "memory") or own.roles():
        raise ParameterError("a gate on states takes no --cluster, --passes or roles: the states hold theirs.")
    return Call(NamedValue("mlm.finish", finish), [log, *metrics], named)


def _differences(settings: Settings, rules: Sequence[Written]) -> CallNode:
    """The differences of models from the baseline, a row for each metric."""
    if settings.get("table_file"):
        raise ParameterError("side = 'difference' needs a log, or a table of an earlier run: --against FILE.")
    metrics = _metrics(settings)
    names = [metric.run().output_name for metric in metrics]
    for rule in rules:
        asked = dict(rule.place)["metric"]
        if asked not in names:
            raise ParameterError(f"[[gate]]: {unknown('metric', asked, names, of='one of -m')}")
    log, own = log_or_state(settings)
    log, named = against(log, settings, "gate")
    named |= settings.given("ci", "anytime") | own.given("cluster") | own.roles()
    return Call(NamedValue("mlm.compare", compare), [log, *metrics], named)


def _metrics(settings: Settings) -> list[CallNode]:
    if not settings.get("logs"):
        raise ParameterError("gate needs a log, before the options, or a table: mlm gate LOG -m f1 --rule 'f1 >= 0.8'.")
    metrics = metrics_of(settings.get("metrics") or [])
    if not metrics:
        raise ParameterError("gate needs the metrics of its rules: -m f1, or metrics = ['f1'] in the file of -c.")
    return metrics


def _saved(path: str, settings: Settings) -> CallNode:
    """A table that was saved. Other forms than parquet do not keep the types of keys, nor what is null and NaN."""
    if Path(path).suffix.lower() != ".parquet":
        raise ParameterError(f"{path}: a gate reads tables of parquet: write them with -o FILE.parquet.")
    call = Call(NamedValue("mlm.scan", scan), [path], opened(settings, path)).method("collect")
    return done(call, call.run())


# -- rules -------------------------------------------------------------------------------------------------------------

NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
COLUMN = r"[^\s<>=!+]+"
RULE = rf"\s*({COLUMN})\s*(>=|<=|==|!=|>|<)\s*(?:({NUMBER})|({COLUMN})(?:\s+([+-])\s+({NUMBER}))?)\s*"
SIDES = {"value": "", "low": "_low", "high": "_high", "difference": ""}
WARN = NamedValue("mlm.warn", warn)
EXAMPLES = {"sliced_by": "country", "slice": "country=DE"}


class Written(NamedTuple):
    """A rule: how it is written, what it is, and which rows of the table it is about."""

    text: str
    node: CallNode
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
        raise ParameterError(f"[[gate]]: {unknown('side', side, SIDES, of='one of the sides')}")
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


def _difference(entry: Mapping[str, Any], *, is_warning: bool) -> CallNode:
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


def _rule(text: str, *, is_warning: bool) -> CallNode:
    found = re.fullmatch(RULE, text)
    if found is None:
        raise ParameterError(f"{text!r} is no rule: write 'f1 >= 0.8', 'f1_low >= 0.75' or 'f1 >= f1_baseline - 0.01'.")
    column, sign, number, other, plus, more = found.groups()
    bound: Any = _number(number) if other is None else Call(COL, [other])
    if plus:
        bound = Operation(bound, plus, _number(more))
    return _as_warning(Operation(Call(COL, [column]), sign, bound), is_warning)


def _as_warning(rule: CallNode, is_warning: bool) -> CallNode:
    return Call(WARN, [rule]) if is_warning else rule


def _number(text: str) -> float:
    return int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)
