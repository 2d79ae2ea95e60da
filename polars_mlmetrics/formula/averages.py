"""Units -> group: the averages. A settled value is an aggregation over the values of a group's units."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from polars_mlmetrics.data.expressions import is_one_of
from polars_mlmetrics.data.roles import Grain
from polars_mlmetrics.formula.arithmetic import ratio, unless_rounding
from polars_mlmetrics.formula.unit import Unit

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


COUNTS = ("units", "defined")
"""The numbers of units that settling needs."""


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
        return pl.when(is_one_of(label, weights)).then(pl.sum_horizontal(named))

    def value(self, value: pl.Expr, weight: pl.Expr | None, units: pl.Expr, unknown: pl.Expr | None = None) -> pl.Expr:
        """The group's value, from its units' values and weights, and from how many they are.

        `unknown` counts the rows of a unit that keep its value, and so the group's, from being known.
        """
        return self.settled(self.sums(value, weight, units, unknown))

    def sums(
        self, value: pl.Expr, weight: pl.Expr | None, units: pl.Expr, unknown: pl.Expr | None
    ) -> dict[str, pl.Expr]:
        """Sums over all units that settling needs. Of units in several parts these sums are added up once more."""
        sums = {"units": units, "defined": value.count().cast(pl.Int64)}
        if unknown is not None:
            of_average = unknown if weight is None else pl.when(weight.is_not_null()).then(unknown)
            sums["unknown"] = of_average.sum()
        if self.average == "sum":
            return sums | {"total": value.sum()}
        if isinstance(self.average, Mapping) and weight is not None:
            value = pl.when(weight.is_not_null()).then(value)
            of_defined = pl.when(value.is_not_null()).then(weight)
            sums["sizes"] = of_defined.abs().sum()
            sums["units_that_weigh"] = (of_defined != 0).sum().cast(pl.Int64)
        sums["broken"] = value.is_nan().sum().cast(pl.Int64)
        if self.average in ("min", "max"):
            return sums | {"extreme": value.min() if self.average == "min" else value.max()}
        if weight is None:
            return sums | {"total": value.sum(), "weight": value.count().cast(pl.Float64)}
        # A unit of weight 0 is taken out, also where 0 times infinity would be NaN.
        total = (value * pl.when(weight != 0).then(weight)).sum()
        return sums | {"total": total, "weight": pl.when(value.is_not_null()).then(weight).sum()}

    def settled(self, sums: Mapping[str, pl.Expr]) -> pl.Expr:
        """The group's value, from the sums over its units."""
        if self.average == "sum":
            return sums["total"]
        settled = self._extreme(sums) if self.average in ("min", "max") else self._mean(sums)
        # A broken unit counts even if its weight is 0, and where Polars' own min and max would skip NaN.
        settled = pl.when(sums["broken"] > 0).then(float("nan")).otherwise(settled)
        filled = settled if self.undefined is None else settled.fill_null(self.undefined)
        return filled if "unknown" not in sums else pl.when((sums["unknown"] == 0) | settled.is_nan()).then(filled)

    def weight_of_all(self, sums: Mapping[str, pl.Expr]) -> pl.Expr:
        """The weight of all units of a mean that have a value, absent labels of the vocabulary among them."""
        return sums["weight"] + self._absent_weight(sums) if self._adds_absent else sums["weight"]

    def undefined_units(self, sums: Mapping[str, pl.Expr]) -> pl.Expr:
        """How many units are undefined, absent labels of the vocabulary among them."""
        if self.average == "sum":  # a count is never undefined
            return pl.lit(0, dtype=pl.Int64)
        absent = self._absent(sums["units"]) if self.undefined is None else 0
        return sums["units"] - sums["defined"] + absent

    @property
    def _adds_absent(self) -> bool:
        return self.undefined is not None and self.labels is not None

    def _mean(self, sums: Mapping[str, pl.Expr]) -> pl.Expr:
        total, weight, sizes = sums["total"], self.weight_of_all(sums), sums.get("sizes")
        if self._adds_absent:
            absent = self._absent_weight(sums)
            # Without an absent label nothing is added, also where 0 times infinity would be NaN.
            total += pl.when(absent != 0).then(absent * pl.lit(self.undefined)).otherwise(0.0)
            sizes = None if sizes is None else pl.lit(math.fsum(map(abs, self._weights_of_vocabulary())))
        return ratio(total, weight if sizes is None else unless_rounding(weight, sizes))

    def _extreme(self, sums: Mapping[str, pl.Expr]) -> pl.Expr:
        if not self._adds_absent:
            return sums["extreme"]
        is_absent = self._absent(sums["units"]) > 0
        if self.undefined != self.undefined:  # NaN, which Polars would skip
            return pl.when(~is_absent).then(sums["extreme"]).otherwise(self.undefined)
        both = (sums["extreme"], pl.when(is_absent).then(self.undefined))
        return pl.min_horizontal(both) if self.average == "min" else pl.max_horizontal(both)

    def _absent(self, units: pl.Expr) -> pl.Expr:
        if self.labels is None:
            return pl.lit(0, dtype=pl.Int64)
        expected = set(self.labels)
        return len(expected & set(self.average) if isinstance(self.average, Mapping) else expected) - units

    def _absent_weight(self, sums: Mapping[str, pl.Expr]) -> pl.Expr:
        if self.average == "macro":
            return self._absent(sums["units"]).cast(pl.Float64)
        if not isinstance(self.average, Mapping):
            return pl.lit(0.0)
        # With `undefined=` all labels that are there are defined. They are counted, so that none absent is exactly 0.
        weights = self._weights_of_vocabulary()
        some_absent = sums["units_that_weigh"] < sum(weight != 0 for weight in weights)
        return pl.when(some_absent).then(math.fsum(weights) - sums["weight"]).otherwise(0.0)

    def _weights_of_vocabulary(self) -> list[float]:
        weights = self.average if isinstance(self.average, Mapping) else {}
        return [float(weights[label]) for label in set(self.labels or ()) & weights.keys()]
