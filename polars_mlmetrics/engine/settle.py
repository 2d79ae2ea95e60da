"""Units -> group: the averages. A settled value is an aggregation over the values of a group's units."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from polars_mlmetrics.data.roles import Grain
from polars_mlmetrics.engine.arithmetic import ratio
from polars_mlmetrics.engine.unit import Unit

AverageName = Literal["micro", "macro", "weighted", "samples", "min", "max"]
LabelAverage = Literal["macro", "weighted", "min", "max"] | Mapping[Any, float]
Average = AverageName | Mapping[Any, float]

Best = Literal["max", "min"]

GRAIN_OF: dict[str, Grain] = {
    "micro": "group", "macro": "label", "weighted": "label", "min": "label", "max": "label", "samples": "sample",
}  # fmt: skip


def grain_of(average: Average) -> Grain:
    """The unit that an average is taken over."""
    return GRAIN_OF[average] if isinstance(average, str) else "label"


@dataclass(frozen=True)
class Settlement:
    """How the values of units become the value of their group.

    `average` is None for a metric of samples without one (their weighted mean) and "sum" for a count.
    `labels` is the vocabulary, where one is given: its absent labels are undefined units.
    """

    average: Average | Literal["sum"] | None
    undefined: float | None = None
    labels: Sequence[Any] | None = None

    def weight(self, unit: Unit) -> pl.Expr | None:
        """The weight of a unit in the average; None where all weigh the same, null where it has no part in it."""
        if isinstance(self.average, Mapping):
            return self.weight_of(unit.label())
        if self.average == "weighted":
            return unit.support()
        if unit.grain == "sample" and unit.door.table.weight is not None:
            return unit.max("sample_weight", unit.door.weight())
        return None

    def weight_of(self, label: pl.Expr) -> pl.Expr:
        """The weight that a mapping gives a label; null where it does not name it."""
        weights = self.average if isinstance(self.average, Mapping) else {}
        named = [label.eq_missing(name).cast(pl.Float64) * float(weight) for name, weight in weights.items()]
        return pl.when(label.is_in(list(weights))).then(pl.sum_horizontal(named))

    def value(self, value: pl.Expr, weight: pl.Expr | None, units: pl.Expr, unknown: pl.Expr | None = None) -> pl.Expr:
        """The group's value, from its units' values and weights, and from how many they are.

        `unknown` counts the rows of a unit that keep its value, and so the group's, from being known.
        """
        if self.average == "sum":
            return value.sum()
        settled = self._extreme(value, units) if self.average in ("min", "max") else self._mean(value, weight, units)
        if self.undefined is not None:
            settled = settled.fill_null(self.undefined)
        if unknown is None:
            return settled
        if weight is not None:
            unknown = pl.when(weight.is_not_null()).then(unknown)
        return pl.when((unknown.sum() == 0) | settled.is_nan()).then(settled)

    def undefined_units(self, value: pl.Expr, units: pl.Expr) -> pl.Expr:
        """How many units are undefined, absent labels of the vocabulary among them."""
        absent = self._absent(units) if self.undefined is None else 0
        return units - value.count().cast(pl.Int64) + absent

    @property
    def _adds_absent(self) -> bool:
        return self.undefined is not None and self.labels is not None

    def _mean(self, value: pl.Expr, weight: pl.Expr | None, units: pl.Expr) -> pl.Expr:
        if weight is None and not self._adds_absent:
            return value.mean()
        if weight is None:
            weight = pl.when(value.is_not_null()).then(1.0)
        if isinstance(self.average, Mapping):
            value = pl.when(weight.is_not_null()).then(value)
        # A unit of weight 0 is taken out, also where 0 times infinity would be NaN.
        total = (value * pl.when(weight != 0).then(weight)).sum()
        weights = pl.when(value.is_not_null()).then(weight).sum()
        if self._adds_absent:
            absent = self._absent_weight(weight, units)
            total, weights = total + absent * pl.lit(self.undefined), weights + absent
        return _unless_broken(value, ratio(total, weights))

    def _extreme(self, value: pl.Expr, units: pl.Expr) -> pl.Expr:
        extreme = value.min() if self.average == "min" else value.max()
        if self._adds_absent:
            both = (extreme, pl.when(self._absent(units) > 0).then(self.undefined))
            extreme = pl.min_horizontal(both) if self.average == "min" else pl.max_horizontal(both)
        return _unless_broken(value, extreme)

    def _absent(self, units: pl.Expr) -> pl.Expr:
        return pl.lit(0, dtype=pl.Int64) if self.labels is None else len(set(self.labels)) - units

    def _absent_weight(self, weight: pl.Expr, units: pl.Expr) -> pl.Expr:
        if self.average == "macro":
            return self._absent(units).cast(pl.Float64)
        if isinstance(self.average, Mapping):
            return sum(self.average.get(label, 0.0) for label in set(self.labels or ())) - weight.sum()
        return pl.lit(0.0)


def _unless_broken(value: pl.Expr, settled: pl.Expr) -> pl.Expr:
    # A broken unit is heard even where its weight is 0, and where Polars' own min and max would skip NaN.
    return pl.when(value.is_nan().any()).then(float("nan")).otherwise(settled)
