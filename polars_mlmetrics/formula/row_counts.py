"""Counts of the rows of a measure: those it uses, those in its scope, those that keep its value from being known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import polars as pl

from polars_mlmetrics.data.expressions import is_one_of
from polars_mlmetrics.data.roles import MODEL, Grain
from polars_mlmetrics.formula.averages import Average
from polars_mlmetrics.formula.declaration import CATALOGUE, Declaration
from polars_mlmetrics.formula.measure import Measure, is_mean_of_labels, unweighted
from polars_mlmetrics.formula.unit import Unit


def rows_used(u: Unit) -> pl.Expr:
    """How many rows are included."""
    return u.included_rows()


def weight_used(u: Unit) -> pl.Expr:
    """The total weight of the included rows."""
    return u.rows()


def rows_in_scope(u: Unit) -> pl.Expr:
    """How many rows are asked about, also those that are left out for a null in a role."""
    return u.rows_in_scope()


def rows_unknown(u: Unit, *, measure: Measure) -> pl.Expr:
    """How many rows keep the value of a measure from being known: they lack a threshold, or a prior."""
    measure.declaration.formula(u, **measure.parameters)
    unknown = u.unknown_rows()
    return pl.lit(0) if unknown is None else unknown


def several_models(u: Unit) -> pl.Expr:
    """Whether rows of several models are included."""
    model = pl.when(pl.col(MODEL).is_not_null()).then(pl.col(MODEL).hash())
    return u.has_several("model", model)


def support_of_shares(u: Unit, *, average: Average = "micro") -> pl.Expr:
    """Σw·t of a truth that is a share."""
    return u.sum("soft_support", u.soft_truth)


USED: dict[Grain | None, Declaration] = {
    grain: Declaration(rows_used, grain, (0, float("inf")), None, counts=True) for grain in (None, "label", "sample")
}
WEIGHT = Declaration(weight_used, None, (0, float("inf")), None)
IN_SCOPE = Declaration(rows_in_scope, None, (0, float("inf")), None, counts=True)
UNKNOWN = Declaration(rows_unknown, None, (0, float("inf")), None, counts=True)
SEVERAL_MODELS = Declaration(several_models, None, (0, float("inf")), None, counts=True)
SOFT_SUPPORT = Declaration(support_of_shares, None, (0, float("inf")), None)


class RowCounts:
    """The counts of the rows of a measure, each a measure itself.

    With a target, a row must have one to count.
    """

    def __init__(self, measure: Measure, target: str | None = None) -> None:
        self.measure = measure
        self._target = [] if target is None else [pl.col(target).is_not_null()]

    def stored(self) -> list[Measure]:
        """The counts for which a state must hold more. The rows that a measure uses are counted with it."""
        uses_fewer = len(self.used.predicates) > len(self.measure.predicates)
        used = self.used if uses_fewer or self.measure.grain == "sample" else None
        counts = [used, self.in_scope, self.support, self.unknown]
        counts += [] if self.measure.table.weight is None else [self.weight, self.positives]
        return [count for count in counts if count is not None]

    @cached_property
    def used(self) -> Measure:
        """How many rows the measure uses."""
        measure = self.measure
        needs_more = measure.probe.reads - {measure.grain} or measure.own_columns.known
        if self._target or measure.per or measure.grain == "group" or needs_more:
            return self._counted(USED[None], self._known)
        # The units have keys anyway, so rows without a key are separate.
        return self._counted(USED[measure.grain])

    @cached_property
    def in_scope(self) -> Measure:
        """How many rows it is asked about, known or not."""
        return self._counted(IN_SCOPE)

    @cached_property
    def samples(self) -> Measure:
        """How many samples have a row that it uses."""
        sample = self.measure.table.sample
        keys = [pl.col(key).is_not_null() for key in self._needed_keys if key not in sample]
        return self._counted(CATALOGUE["n_samples"], [*keys, *self.measure.own_columns.known, *self._target])

    @cached_property
    def several_models(self) -> Measure:
        """Whether it uses rows of several models: 1 or 0."""
        return self._counted(SEVERAL_MODELS)

    def clusters(self, cluster: Sequence[str]) -> Measure:
        """How many clusters of samples, told apart by these columns, have a row that it uses."""
        return self.samples.bind({**self.samples.roles, "sample": tuple(cluster)})

    @cached_property
    def support(self) -> Measure | None:
        """Its true rows, weighted; None where it reads no truth that can be counted."""
        guards = self.measure.probe.door.guards
        if "soft_truth" in guards:
            return self._counted(SOFT_SUPPORT, self._known)
        return self._counted(CATALOGUE["support"], self._known) if "truth" in guards else None

    @cached_property
    def weight(self) -> Measure:
        """The weight of the rows it uses; how many they are, where they have none."""
        return self.used if self.measure.table.weight is None else self._counted(WEIGHT, self._known)

    @cached_property
    def positives(self) -> Measure | None:
        """How many of its rows are true, in an average those of the label that has fewest; None where no truth counts.

        A sample that is a unit has a few true rows, by its nature.
        """
        if self.measure.grain == "sample" or self.support is None:
            return None
        support, weight = self.support, self.measure.table.weight
        if weight is not None:
            support = unweighted(support).restrict(weight.is_not_null())
        return replace(support, parameters={"average": "min"}) if is_mean_of_labels(self.measure) else support

    @cached_property
    def unknown(self) -> Measure | None:
        """How many rows keep its value from being known, with a target or without; None where none can."""
        if not self.measure.probe.unknown:
            return None
        known, average = self._known_keys, self.measure.parameters.get("average")
        if isinstance(average, Mapping):
            known = [*known, is_one_of(pl.col(self.measure.table.label), average)]
        return replace(self._counted(UNKNOWN, known), parameters={"measure": self.measure})

    @cached_property
    def _needed_keys(self) -> list[str]:
        return self.measure.door().needed_keys(self.measure.grain)

    @property
    def _known_keys(self) -> list[pl.Expr]:
        """The conditions under which a row has the keys that the measure needs of it, and what else it reads."""
        return [*(pl.col(key).is_not_null() for key in self._needed_keys), *self.measure.own_columns.known]

    @property
    def _known(self) -> list[pl.Expr]:
        """The conditions under which it has its target too."""
        return [*self._known_keys, *self._target]

    def _counted(self, count: Declaration, known: Sequence[pl.Expr] = ()) -> Measure:
        """A count of the very rows that the measure reads, and of these such as are known in more ways."""
        measure = self.measure
        predicates = (*measure.predicates, *known)
        counted = Measure(count, {}, predicates=predicates, per=measure.per)
        return replace(counted, roles=measure.roles, labels=measure.labels, relevant=measure.relevant)
