"""The call of `mlm gate`: rules tried on a table that was saved, on what a log gives, and on differences of models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from polars_mlmetrics.adapters.scan import scan
from polars_mlmetrics.analysis.compare import compare
from polars_mlmetrics.analysis.evaluate import evaluate
from polars_mlmetrics.analysis.finish import finish
from polars_mlmetrics.analysis.gate import gate
from polars_mlmetrics.cli.calls import COL, Call, Function, Named, Node, Operation, done
from polars_mlmetrics.cli.logs import against, log_or_state, opened
from polars_mlmetrics.cli.metric_texts import metrics_of
from polars_mlmetrics.cli.rules import Written, rules_of
from polars_mlmetrics.cli.settings import Settings
from polars_mlmetrics.errors import ParameterError, unknown
from polars_mlmetrics.metrics.decisions import n_samples

Table = Callable[[], Node]


def gate_of(settings: Settings) -> Node:
    """The gates of all rules: one for each table, slicing and slice that rules are about."""
    rules = rules_of(settings)
    named = settings.given("on_undefined", "min_samples")
    earlier = _saved(settings.get("against"), settings) if settings.get("against") else None
    of_values = [rule for rule in rules if not rule.is_difference]
    of_differences = [rule for rule in rules if rule.is_difference]
    parts = []
    if of_values:
        parts.append(_gates(_table_of(settings), _by_place(of_values), named, earlier))
    if of_differences:
        parts.append(_gates(_differences(settings, of_differences), _by_place(of_differences), named, None))
    return parts[0] if len(parts) == 1 else _stacked(parts)


def _stacked(parts: Sequence[Node]) -> Node:
    """Several results as one; what they do not share comes last, and so the status is put there again."""
    stacked = Call(Named("pl.concat", pl.concat), [list(parts)], {"how": "diagonal_relaxed"})
    ends = ["status", "reason"]
    return stacked.method("select", Call(Named("pl.exclude", pl.exclude), ends), *ends)


def _by_place(rules: Sequence[Written]) -> list[list[Written]]:
    """The rules of each place, in the order of the first of each."""
    places = dict.fromkeys(rule.place for rule in rules)
    return [[rule for rule in rules if rule.place == place] for place in places]


def _gates(table: Node, places: Sequence[Sequence[Written]], named: dict[str, Any], earlier: Node | None) -> Node:
    """A gate of a table; where rules are about a part of it, the gates of these parts."""
    if len(places) == 1 and not places[0][0].place:
        return _gate(table, places[0], named, earlier)

    def body(rows: Node) -> Node:
        gates = [_gate(rows, rules, named, earlier) for rules in places]
        return gates[0] if len(gates) == 1 else Call(Named("pl.concat", pl.concat), [gates])

    if not isinstance(table, Named):
        table = table.method("collect")
    return table.method("pipe", Function(body, "table", lambda: None))


def _gate(table: Node, rules: Sequence[Written], named: dict[str, Any], earlier: Node | None) -> Node:
    place = rules[0].place
    given = {**named, **({} if earlier is None else {"baseline": _part(earlier, place)})}
    tried = {rule.text: rule.node for rule in rules}
    return Call(Named("mlm.gate", gate), [_part(table, place), tried], given)


def _part(table: Node, place: Sequence[tuple[str, str]]) -> Node:
    """The rows of a place."""
    for column, value in place:
        table = table.method("filter", Operation(Call(COL, [column]), "==", value))
    if any(column == "metric" for column, _ in place):
        table = table.method("drop", "metric")
    return table


# -- tables ------------------------------------------------------------------------------------------------------------


def _table_of(settings: Settings) -> Node:
    """The table of a gate: one that was saved, or what a log gives."""
    saved = settings.get("table_file")
    if saved and settings.get("logs"):
        raise ParameterError("a gate tries its rules on a log or on a table (--table): give one of them.")
    return _saved(saved, settings) if saved else _of_log_or_state(settings)


def _of_log_or_state(settings: Settings) -> Node:
    metrics = _metrics(settings)
    if settings.get("min_samples") is not None and "n_samples" not in [each.run().output_name for each in metrics]:
        metrics.insert(0, Call(Named("mlm.n_samples", n_samples)))
    named = settings.given("by") | settings.slices() | settings.given("ci")
    log, own = log_or_state(settings)
    if own is settings:
        named |= settings.given("cluster") | settings.passes() | settings.roles()
        return Call(Named("mlm.evaluate", evaluate), [log, *metrics], named)
    if own.given("cluster", "passes", "memory") or own.roles():
        raise ParameterError("a gate on states takes no --cluster, --passes or roles: the states hold theirs.")
    return Call(Named("mlm.finish", finish), [log, *metrics], named)


def _differences(settings: Settings, rules: Sequence[Written]) -> Node:
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
    named |= settings.given("ci") | own.given("cluster") | own.roles()
    return Call(Named("mlm.compare", compare), [log, *metrics], named)


def _metrics(settings: Settings) -> list[Node]:
    if not settings.get("logs"):
        raise ParameterError("gate needs a log, before the options, or a table: mlm gate LOG -m f1 --rule 'f1 >= 0.8'.")
    metrics = metrics_of(settings.get("metrics") or [])
    if not metrics:
        raise ParameterError("gate needs the metrics of its rules: -m f1, or metrics = ['f1'] in the file of -c.")
    return metrics


def _saved(path: str, settings: Settings) -> Node:
    """A table that was saved. Other forms than parquet do not keep the types of keys, nor what is null and NaN."""
    if Path(path).suffix.lower() != ".parquet":
        raise ParameterError(f"{path}: a gate reads tables of parquet: write them with -o FILE.parquet.")
    call = Call(Named("mlm.scan", scan), [path], opened(settings, path)).method("collect")
    return done(call, call.run())
