"""Counts of the rows that a measure reads: those that it uses, and those that keep its value from being known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from polars_mlmetrics.formula.declaration import CATALOGUE, Declaration
from polars_mlmetrics.formula.measure import Measure
from polars_mlmetrics.formula.unit import Unit


def rows_used(u: Unit) -> pl.Expr:
    """How many rows are included."""
    return u.included_rows()


def rows_unknown(u: Unit, *, measure: Measure) -> pl.Expr:
    """How many rows keep the value of a measure from being known: they lack a threshold, or a prior."""
    measure.declaration.formula(u, **measure.parameters)
    unknown = u.unknown_rows()
    return pl.lit(0) if unknown is None else unknown


USED = Declaration(rows_used, None, (0, float("inf")), None, "never", counts=True)
UNKNOWN = Declaration(rows_unknown, None, (0, float("inf")), None, "never", counts=True)


def counting(count: Declaration, measure: Measure, known: Sequence[pl.Expr] = ()) -> Measure:
    """A count of the very rows that a measure reads, and of these such as are known in more ways."""
    predicates = (*measure.predicates, *known)
    return Measure(count, {}, labels=measure.labels, roles=measure.roles, predicates=predicates, per=measure.per)


def known_keys(measure: Measure) -> list[pl.Expr]:
    """The conditions under which a row has the keys that a measure needs of it."""
    return [pl.col(key).is_not_null() for key in measure.door().needed_keys(measure.grain)]


def used_rows(measure: Measure, known: Sequence[pl.Expr] = ()) -> Measure:
    """How many rows a measure uses."""
    needs_more = measure.probe.reads - {measure.grain} or measure.own_columns.to_be_known
    if known or measure.per or measure.grain == "group" or needs_more:
        return counting(USED, measure, [*known_keys(measure), *known])
    # The units have keys anyway, so rows without a key are separate.
    return counting(replace(USED, grain=measure.grain), measure)


def samples_used(measure: Measure, known: Sequence[pl.Expr] = ()) -> Measure:
    """How many samples have a row that a measure uses."""
    keys = [key for key in measure.door().needed_keys(measure.grain) if key not in measure.table.sample]
    return counting(CATALOGUE["n_samples"], measure, [*(pl.col(key).is_not_null() for key in keys), *known])


def unknown_rows(measure: Measure, known: Sequence[pl.Expr] = ()) -> Measure | None:
    """How many rows keep the value of a measure from being known; None where none can."""
    if not measure.probe.unknown:
        return None
    known = [*known_keys(measure), *known]
    average = measure.parameters.get("average")
    if isinstance(average, Mapping):
        known.append(pl.col(measure.table.label).is_in(list(average)))
    return replace(counting(UNKNOWN, measure, known), parameters={"measure": measure})
