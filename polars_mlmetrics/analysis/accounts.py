"""A metric's value together with its account: how many rows, samples and units stand behind it, and why it is null."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from polars_mlmetrics.data.roles import check_columns
from polars_mlmetrics.engine.declaration import Declaration
from polars_mlmetrics.engine.lane import Columns
from polars_mlmetrics.engine.measure import Measure
from polars_mlmetrics.engine.metric import Metric
from polars_mlmetrics.engine.staged import Plan
from polars_mlmetrics.engine.unit import Unit
from polars_mlmetrics.errors import ColumnError
from polars_mlmetrics.metrics.decisions import n_excluded, n_rows, n_samples, support


def support_of_shares(u: Unit) -> pl.Expr:
    """Σw·t of a truth that is a share."""
    return u.sum("soft_support", u.soft_truth)


def rows_in_the_dark(u: Unit, *, measure: Measure) -> pl.Expr:
    """How many rows keep the value of a measure from being known: they lack a threshold, or a prior."""
    measure.declaration.formula(u, **measure.parameters)
    unknown = u.unknown_rows()
    return pl.lit(0) if unknown is None else unknown


UNKNOWN = Declaration(rows_in_the_dark, None, (0, float("inf")), None, "never", counts=True)
SOFT_SUPPORT = Declaration(support_of_shares, None, (0, float("inf")), None, "no rows", counts=False)


class Account:
    """What a plan must work out for one metric, and the columns in which it is told."""

    def __init__(self, metric: Metric, plan: Plan, min_samples: int | None = None, *, tidy: bool = False) -> None:
        self.metric = metric
        self.name = metric.output_name
        self._columns = {measure.key: plan.add(measure) for measure in metric.measures()}
        self._first = next(metric.measures())
        self._counts = all(measure.declaration.counts for measure in metric.measures())
        self._min_samples = None if self._counts else min_samples
        self._told: dict[str, str] = {}
        if tidy:
            self._tell(plan)
        elif self._min_samples is not None:
            self._tell_samples(plan)

    def value(self) -> pl.Expr:
        """The metric's value: null where there are too few samples."""
        value = self.metric.combined(lambda measure: pl.col(self._columns[measure.key].value))
        return value if self._min_samples is None else pl.when(~self._too_few()).then(value)

    def row(self) -> pl.Expr:
        """The tidy row: value, counts and reason, as a struct."""
        return pl.struct(
            pl.lit(self.name).alias("metric"),
            self.value().cast(pl.Float64).alias("value"),
            *(pl.lit(None, dtype=pl.Float64).alias(end) for end in ("low", "high")),
            *(self._count(name) for name in ("n_rows", "n_samples", "n_excluded")),
            self._support(),
            self._undefined_units().alias("n_undefined"),
            self._reason().alias("reason"),
        )

    def _tell(self, plan: Plan) -> None:
        measure = self._first
        known = [pl.col(key).is_not_null() for key in measure.door().needed_keys(measure.grain)]
        self._told["n_rows"] = plan.add(_counting_used(measure, known)).value
        self._told["n_rows_of_group"] = plan.add(_counting(n_rows(), measure)).value
        self._told["n_excluded_of_group"] = plan.add(_counting(n_excluded(), measure)).value
        if all(column in plan.schema for column in measure.table.sample) and plan.can_tell(self._n_samples()):
            self._tell_samples(plan)
        guards = measure.probe.door.guards
        if "soft_truth" in guards:
            self._told["support"] = plan.add(_counting(SOFT_SUPPORT(), measure, known)).value
        elif "truth" in guards:
            self._told["support"] = plan.add(_counting(support(), measure, known)).value
        if measure.probe.unknown:
            self._told["unknown"] = plan.add(_counting(Measure(UNKNOWN, {"measure": measure}), measure)).value

    def _tell_samples(self, plan: Plan) -> None:
        measure = self._first
        try:
            check_columns(measure.table.sample, plan.schema, what="sample column")
        except ColumnError as error:
            raise ColumnError(f"min_samples counts samples: {error}") from None
        self._told["n_samples"] = plan.add(self._n_samples()).value

    def _n_samples(self) -> Measure:
        measure = self._first
        keys = measure.table.keys(measure.grain) if measure.grain == "label" else []
        known = [pl.col(key).is_not_null() for key in (*keys, *measure.own_columns.to_be_known)]
        return _counting(n_samples(), measure, known)

    def _too_few(self) -> pl.Expr:
        return pl.col(self._told["n_samples"]) < self._min_samples

    def _count(self, name: str) -> pl.Expr:
        if name == "n_excluded":
            return self._excluded().alias(name)
        if name not in self._told:
            return pl.lit(None, dtype=pl.Int64).alias(name)
        return pl.col(self._told[name]).alias(name)

    def _excluded(self) -> pl.Expr:
        """The rows with a null in a role, and those without a key of the metric's own unit."""
        told = {name: pl.col(column) for name, column in self._told.items()}
        return told["n_excluded_of_group"] + told["n_rows_of_group"] - told["n_rows"]

    def _support(self) -> pl.Expr:
        support = self._told.get("support")
        return (pl.lit(None, dtype=pl.Float64) if support is None else pl.col(support)).alias("support")

    def _undefined_units(self) -> pl.Expr:
        return pl.max_horizontal(pl.col(columns.undefined_units) for columns in self._columns.values())

    def _reason(self) -> pl.Expr:
        """The first of the reasons that holds, in words; null where the value is a number."""
        value, n_rows = self.value(), pl.col(self._told["n_rows"])
        excluded = self._excluded()
        none_left = (
            pl.when(excluded == 0)
            .then(pl.lit("no rows"))
            .otherwise(pl.format("no rows: all {} are excluded for a null", excluded))
        )
        told = [(value.is_nan(), pl.lit("broken rows: a NaN, or a value out of range"))]
        told += [(value.is_not_null(), pl.lit(None, dtype=pl.String)), (n_rows == 0, none_left)]
        if self._min_samples is not None:
            told.append((self._too_few(), pl.lit(f"fewer than {self._min_samples} samples")))
        if "unknown" in self._told:
            unknown, (what, *_) = pl.col(self._told["unknown"]), self._first.probe.unknown
            told.append((unknown > 0, pl.format(f"rows without a {what.partition('@')[0]}: {{}}", unknown)))
        for measure in self.metric.measures():
            columns = self._columns[measure.key]
            told.append((pl.col(columns.value).is_null(), self._undefined(measure, columns)))
        return first_that_holds(told, pl.lit("division by 0"))

    def _undefined(self, measure: Measure, columns: Columns) -> pl.Expr:
        when = measure.declaration.undefined_when
        when = "no row has a weight above 0" if when == "no rows" else when  # rows there are, or this were not asked
        unit = measure.grain if measure.targets is None else "target"
        if unit == "group":
            return pl.lit(when)
        return (
            pl.when(pl.col(columns.undefined_units) == 0)
            .then(pl.lit(f"the weights of the {unit}s sum to 0"))
            .otherwise(pl.format("undefined in {} " + f"{unit}s: {when}", columns.undefined_units))
        )


def first_that_holds(cases: Sequence[tuple[pl.Expr, pl.Expr]], otherwise: pl.Expr) -> pl.Expr:
    """The value of the first case whose condition holds."""
    for condition, value in reversed(cases):
        otherwise = pl.when(condition).then(value).otherwise(otherwise)
    return otherwise


def plain_row(name: str) -> pl.Expr:
    """The tidy row of a plain expression, which has a value and nothing else to tell."""
    blank = {
        "low": pl.Float64, "high": pl.Float64, "n_rows": pl.Int64, "n_samples": pl.Int64, "n_excluded": pl.Int64,
        "support": pl.Float64, "n_undefined": pl.Int64, "reason": pl.String,
    }  # fmt: skip
    value = pl.col(name).cast(pl.Float64).alias("value")
    return pl.struct(pl.lit(name).alias("metric"), value, *(pl.lit(None, dtype=t).alias(n) for n, t in blank.items()))


TIDY = ["metric", "value", "low", "high", "n_rows", "n_samples", "n_excluded", "support", "n_undefined", "reason"]


def _counting_used(measure: Measure, known: Sequence[pl.Expr]) -> Measure:
    """A count of the rows that a measure uses: of those that it reads, all that have the key of a unit."""
    if measure.grain == "group" or measure.probe.reads - {measure.grain} or measure.own_columns.to_be_known:
        return _counting(n_rows(), measure, known)
    # The units are told from each other anyway, and then the rows that have no key are apart.
    counted = _counting(n_rows(), measure)
    return replace(counted, declaration=replace(counted.declaration, grain=measure.grain))


def _counting(count: Metric, measure: Measure, known: Sequence[pl.Expr] = ()) -> Measure:
    """A count of the very rows that a measure reads."""
    (counted,) = count.measures()
    return replace(counted, labels=measure.labels, roles=measure.roles, predicates=(*measure.predicates, *known))
