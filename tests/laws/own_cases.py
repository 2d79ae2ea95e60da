"""A metric that reads a further column, and its value in plain Python."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

import polars_mlmetrics as mlm
from tests.laws.oracle import Value


@mlm.metric(range=(-math.inf, math.inf), best=None, undefined_when="no positive label")
def amount_of_positives(u: mlm.Unit, *, average: mlm.Average = "micro") -> pl.Expr:
    """The mean amount of true rows."""
    return mlm.ratio(u.sum("amount", pl.when(u.truth).then(pl.col("amount"))), u.positives())


del mlm.CATALOGUE["amount_of_positives"]  # the laws of the catalogue are not about it


@dataclass(frozen=True)
class OwnCase:
    """The metric with its average: micro or macro."""

    average: Literal["micro", "macro"]
    orders_labels = False

    def __str__(self) -> str:
        return f"amount_of_positives({self.average})"

    def metric(self, *, weighted: bool = False) -> mlm.Metric:
        metric = amount_of_positives(average=self.average)
        return (metric.on(weight="weight") if weighted else metric).alias(str(self))

    def expected(self, frame: pl.DataFrame, *, weighted: bool = False) -> Value:
        read = ["score", "truth", "amount"] + ["weight"] * weighted + ["label"] * (self.average == "macro")
        known = frame.drop_nulls(read).with_columns(weighs=pl.col("weight") if weighted else 1.0)
        units = [known] if self.average == "micro" else known.partition_by("label")
        values = [value for unit in units if (value := _value(unit.rows(named=True))) is not None]
        return sum(values) / len(values) if values else None


def _value(unit: list[dict[str, Any]]) -> float | None:
    if any(_is_broken(row) for row in unit):
        return math.nan
    true = [row for row in unit if row["truth"] == 1]
    positives = math.fsum(row["weighs"] for row in true)
    return math.fsum(row["amount"] * row["weighs"] for row in true) / positives if positives > 0 else None


def _is_broken(row: Mapping[str, Any]) -> bool:
    return row["truth"] not in (0.0, 1.0) or math.isnan(row["amount"]) or not row["weighs"] >= 0
