"""The meaning of statistics of metrics that are declared outside the package: their names alone do not define them.

A statistic of the catalogue is its name. A metric from elsewhere may be declared again with another formula, or give
one name to rows that depend on a parameter. So a state holds a digest of what such a metric asked for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, cast

import polars as pl

from polars_mlmetrics.data.expressions import text_of
from polars_mlmetrics.data.roles import Table
from polars_mlmetrics.formula.measure import Measure
from polars_mlmetrics.formula.readings import GroupReading
from polars_mlmetrics.formula.unit import Unit

OF_ONE_NAME = {
    "sum", "count", "tally", "min", "max", "deviation", "variation", "absolute_variation", "breaks_on", "needs_known",
}  # fmt: skip
"""The functions of a unit that take a name and a row expression."""


def digests_of(measure: Measure, roles: Table) -> dict[str, str]:
    """A digest of each statistic that a formula from elsewhere asks for itself, and not by way of a shared one.

    Sums over samples have that of the whole formula. It is read as one expression, without the types and the keys of a
    log, on which no digest may depend.
    """
    if not measure.is_from_elsewhere:
        return {}
    asked: dict[str, set[str]] = {}
    # A count reads its rows without guards, and is of the same rows as its metric: both are told in the same words.
    door = replace(measure.door(), asks_guards=False)
    unit = _Asking(Unit(door, measure.grain, GroupReading(measure.table)), asked)
    value = measure.declaration.formula(cast(Unit, unit), **measure.parameters)
    suffix = measure.suffix(roles)
    if measure.grain == "sample":
        return {
            measure.call + suffix: _digest(text_of(value), *sorted(text for texts in asked.values() for text in texts))
        }
    return {name + suffix: _digest(*sorted(texts)) for name, texts in asked.items()}


def _digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


class _Asking:
    """A unit that notes which rows a formula asks for by name."""

    def __init__(self, unit: Unit, asked: dict[str, set[str]]) -> None:
        self._unit = unit
        self._asked = asked

    def __getattr__(self, name: str) -> Any:
        asked = getattr(self._unit, name)
        return partial(self._of_one_name, asked) if name in OF_ONE_NAME else asked

    def _of_one_name(self, ask: Callable[..., Any], name: str, *row: pl.Expr, **named: Any) -> Any:
        [rows] = (given for given in (*row, *named.values()) if isinstance(given, pl.Expr))
        self._note(name, rows)
        return ask(name, *row, **named)

    def _note(self, name: str, rows: pl.Expr) -> None:
        # A name may be that of rows, and of a key of runs too.
        self._asked.setdefault(name, set()).add(text_of(rows))

    def covariation(self, name: str, one: tuple[str, pl.Expr], other: tuple[str, pl.Expr]) -> pl.Expr:
        for value in (one, other):
            self._note(*value)
        return self._unit.covariation(name, one, other)

    def runs(self, key: pl.Expr, *rows: pl.Expr, cells: int | None = None) -> tuple[pl.Expr, ...]:
        by = key.meta.output_name()
        self._note(by, key)
        for row in rows:
            self._note(f"{row.meta.output_name()} by {by}", row)
        return self._unit.runs(key, *rows, cells=cells)
