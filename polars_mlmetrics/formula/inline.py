"""The inline reading: a metric as one Polars expression, for `agg`, `select`, `over` and wherever else one goes.

A group is folded by bare sums. Labels and samples are folded by one window round the whole formula, whose key is
null on rows that do not count; the first row of each unit is kept, and the kept values are settled as one list.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from polars_mlmetrics.formula.measure import Answer, Measure, Node, Planned, check_reads
from polars_mlmetrics.formula.over_targets import OverTargets
from polars_mlmetrics.formula.readings import GroupReading, SortedReading, WindowReading, unit_keys

Units = tuple[Answer, Callable[[pl.Expr], pl.Expr]]
"""The expressions of units, and what keeps one row for each."""


def inline(node: Node) -> pl.Expr:
    """The metric as one expression over the rows of a group."""
    return node.combined(_of_planned)


def _of_planned(part: Planned) -> pl.Expr:
    if isinstance(part, OverTargets):
        return part.in_windows(_of_planned)
    assert isinstance(part, Measure)
    check_reads(part)
    return _of_measure(part)


def _of_measure(measure: Measure) -> pl.Expr:
    if measure.grain == "group":
        _, answer = measure.read(GroupReading(measure.table))
        return answer.value
    answer, keep = _sorted_units(measure) if measure.probe.looks_into else _window_units(measure)
    parts = {"value": answer.value, "weight": answer.weight, "unknown": answer.unknown}
    named = {name: column for name, column in parts.items() if column is not None}
    # One list of units, of which settling reads the fields: what is written twice, Polars plans twice.
    units = keep(pl.struct(column.alias(name) for name, column in named.items())).implode()
    of_unit = {name: pl.element().struct.field(name) for name in named}
    count = pl.element().len().cast(pl.Int64)
    value = measure.settlement.value(of_unit["value"], of_unit.get("weight"), count, of_unit.get("unknown"))
    return units.list.agg(value)


def _window_units(measure: Measure) -> Units:
    unit, answer = measure.read(WindowReading(measure.table))
    keys = unit_keys(unit)
    is_first = pl.struct(keys).is_first_distinct() & keys[0].is_not_null()
    return answer, lambda units: units.over(keys).filter(is_first)


def _sorted_units(measure: Measure) -> Units:
    # A window of another grain cannot stand inside the unit's own window: Polars would compute it inside the outer
    # partition, which is silently wrong. So here the units are the runs of one sorted key at group level.
    _, answer = measure.read(SortedReading(measure.output_name, measure.door(), measure.grain))
    return answer, lambda units: units
