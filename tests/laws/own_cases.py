"""A metric that reads a further column, and its value in plain Python."""

import math
from collections.abc import Iterator, Mapping
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
        rows = [row for row in frame.rows(named=True) if self._is_known(row, weighted)]
        units = [rows] if self.average == "micro" else self._by_label(rows)
        values = [value for unit in units if (value := _value(unit, weighted)) is not None]
        return sum(values) / len(values) if values else None

    def _is_known(self, row: Mapping[str, Any], weighted: bool) -> bool:
        read = ["score", "truth", "amount"] + ["weight"] * weighted + ["label"] * (self.average == "macro")
        return all(row[name] is not None for name in read)

    def _by_label(self, rows: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
        for label in {row["label"] for row in rows}:
            yield [row for row in rows if row["label"] == label]


def _value(unit: list[dict[str, Any]], weighted: bool) -> float | None:
    weights = [row["weight"] if weighted else 1.0 for row in unit]
    if any(_is_broken(row, weight) for row, weight in zip(unit, weights, strict=True)):
        return math.nan
    positives = math.fsum(weight for row, weight in zip(unit, weights, strict=True) if row["truth"] == 1)
    amount = math.fsum(row["amount"] * weight for row, weight in zip(unit, weights, strict=True) if row["truth"] == 1)
    return amount / positives if positives > 0 else None


def _is_broken(row: Mapping[str, Any], weight: float) -> bool:
    return row["truth"] not in (0.0, 1.0) or math.isnan(row["amount"]) or math.isnan(weight) or weight < 0
