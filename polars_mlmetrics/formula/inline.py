"""The inline reading: a metric as one Polars expression, for `agg`, `select`, `over` and wherever else one goes.

A group is folded by bare sums. Labels and samples are folded by one window round the whole formula, whose key is
null on rows that do not count; the first row of each unit is kept, and the kept values are settled.
"""

from __future__ import annotations

import polars as pl

from polars_mlmetrics.formula.measure import Measure, Node, Planned, check_reads
from polars_mlmetrics.formula.over_targets import OverTargets
from polars_mlmetrics.formula.readings import GroupReading, SortedReading, WindowReading, unit_keys

Units = tuple[pl.Expr, pl.Expr | None, pl.Expr | None]
"""The values, weights and unknown rows of the units of a group, one entry a unit."""


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
    value, weight, unknown = _sorted_units(measure) if measure.probe.looks_into else _window_units(measure)
    return measure.settlement.value(value, weight, value.len().cast(pl.Int64), unknown)


def _window_units(measure: Measure) -> Units:
    unit, answer = measure.read(WindowReading(measure.table))
    keys = unit_keys(unit)
    first = pl.struct(keys).is_first_distinct() & keys[0].is_not_null()

    def kept(expression: pl.Expr) -> pl.Expr:
        return expression.over(keys).filter(first)

    weight, unknown = (None if column is None else kept(column) for column in (answer.weight, answer.unknown))
    return kept(answer.value), weight, unknown


def _sorted_units(measure: Measure) -> Units:
    # A window of another grain cannot stand inside the unit's own window: Polars would compute it inside the outer
    # partition, which is silently wrong. So here the units are the runs of one sorted key at group level.
    _, answer = measure.read(SortedReading(measure.output_name, measure.door(), measure.grain))
    return answer.value, answer.weight, answer.unknown
