"""Ratios of sums are found in the formulas: the whole is the mean of its parts, weighted by what is found."""

import math
from functools import cache

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.engine.plan import Plan, ReadFormulas
from polars_mlmetrics.engine.sources import LogSource
from polars_mlmetrics.formula.measure import Measure
from polars_mlmetrics.formula.ratio_of_sums import denominator_of
from tests.laws.cases import AVERAGES, NO_AVERAGE, plain_cases
from tests.support.frames import plain
from tests.support.readings import same

CASES = {str(case): case for average in (*AVERAGES, NO_AVERAGE) for case in plain_cases(average)}
RATIOS = {
    "accuracy", "bias", "brier_score", "calibration_bias", "calibration_ratio",
    "classification_accuracy", "cost", "expectile", "f1", "false_negative_rate", "false_positive_rate", "fbeta",
    "focal_loss", "gamma_deviance", "gamma_nll", "hamming_loss", "hinge_loss", "huber", "interval_coverage",
    "interval_score", "interval_width", "jaccard", "kl_divergence", "log_cosh", "log_loss", "mae", "mape", "mean",
    "mse", "msle", "negative_predictive_value", "net_benefit", "pinball", "poisson_deviance", "poisson_nll",
    "precision", "predicted_rate", "prevalence", "recall", "share", "smape", "specificity", "tweedie_deviance",
    "tweedie_nll", "wape", "wis",
}  # fmt: skip
"""The metrics whose micro average is a sum over rows divided by another."""


def measure_of(metric: mlm.Metric) -> Measure:
    (measure,) = metric.tree.measures()
    return measure


@cache
def rows() -> pl.DataFrame:
    """Samples of several labels in two parts."""
    both = pl.concat([plain("multi"), plain("single").with_columns(pl.col("sample") + 100)])
    return both.with_columns(part=pl.col("sample") % 3)


@pytest.mark.parametrize("weighted", [False, True])
def test_ratios_are_those_of_one_unit_whose_formula_divides_sums(weighted: bool) -> None:
    found = {name for name, case in CASES.items() if denominator_of(measure_of(case.metric(weighted=weighted)))}
    of_rows = {name for name in found if CASES[name].average == "micro"}
    assert {CASES[name].name for name in of_rows} == RATIOS
    assert of_rows == {name for name, case in CASES.items() if case.average == "micro" and case.name in RATIOS}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "name", [name for name, case in CASES.items() if case.average == "micro" and case.name in RATIOS]
)
def test_a_whole_is_the_mean_of_its_parts(name: str, weighted: bool) -> None:
    metric = CASES[name].metric(weighted=weighted)
    denominator = denominator_of(measure_of(metric))
    assert denominator is not None
    source, readings = (
        LogSource(rows().lazy(), "label", rows().schema),
        ReadFormulas(rows().schema, measure_of(metric).table),
    )

    def values(by: list[str]) -> list[tuple[float | None, float]]:
        plan = Plan(source, by, readings)
        columns = plan.value(measure_of(metric)).alias("value"), plan.value(denominator).alias("weight")
        return plan.groups().select(*columns).collect().rows()

    [(whole, weight)], parts = values([]), values(["part"])
    assert math.fsum(each for _, each in parts) == pytest.approx(weight, rel=1e-12)
    mean = math.fsum(value * each for value, each in parts if value is not None) / weight
    assert mean == pytest.approx(whole, rel=1e-12, nan_ok=True)


@mlm.metric(range=(0, 1), best="max")
def of_the_highest(u: mlm.Unit) -> pl.Expr:
    """A metric that divides what is no sum of rows: a highest score, deviations from a mean, ranks in its unit."""
    return mlm.ratio(u.max("highest", u.score), u.rows())


@mlm.metric(range=(0, 1), best="max")
def of_deviations(u: mlm.Unit) -> pl.Expr:
    """Sums of what a row is above the mean of its unit."""
    return mlm.ratio(u.sum("above mean", u.deviation("score", u.score).clip(lower_bound=0)), u.rows())


@mlm.metric(range=(0, 1), best="max")
def of_squares(u: mlm.Unit) -> pl.Expr:
    """A product of two sums."""
    return mlm.ratio(u.positives() * u.positives(), u.rows())


@mlm.metric(range=(0, 1), best="max")
def per_amount(u: mlm.Unit, *, times: float = 3.0) -> pl.Expr:
    """Sums with factors, which may stand on either side of a product."""
    return (times * u.positives() - u.sum("score", u.score) * 2) / (u.sum("amount", pl.col("amount")) * 0.5)


for own in ("of_the_highest", "of_deviations", "of_squares", "per_amount"):
    del mlm.CATALOGUE[own]  # the laws of the catalogue are not about them


def test_a_metric_of_ones_own_is_read_too() -> None:
    assert denominator_of(measure_of(per_amount())) is not None
    assert [denominator_of(measure_of(each())) for each in (of_the_highest, of_deviations, of_squares)] == [None] * 3


def test_classes_and_thresholds_are_read() -> None:
    kinds = [mlm.accuracy(threshold="argmax"), mlm.f1(threshold={"a": 0.3, None: 0.5}), mlm.recall().filter(label="a")]
    assert all(denominator_of(measure_of(metric)) for metric in kinds)
    others = [mlm.mcc(threshold="argmax"), mlm.average_precision(), mlm.rmse(), mlm.balanced_accuracy()]
    assert not any(denominator_of(measure_of(metric)) for metric in others)


@pytest.mark.one_in(8)
@pytest.mark.parametrize("name", CASES)
def test_every_metric_has_parts_that_add_up(name: str) -> None:
    """The law of decompose: mix and rate of the whole are its change, those of the slices of a mean too."""
    metric = CASES[name].metric(weighted=True).alias("value")
    log = rows().with_columns(month=pl.col("sample") // 100)
    values = dict(mlm.evaluate(log, metric, by="month").rows())
    if metric.tree.interval_kind == "total":
        return
    table = mlm.decompose(log, metric, over="part", between="month", baseline=0)
    whole, slices = table.row(0, named=True), table.slice(1)
    assert same(whole["value"], values[1])
    assert same(whole["baseline_value"], values[0])
    if whole["mix"] is None:
        return
    size = max(1.0, abs(values[1]), abs(values[0]))
    assert whole["mix"] + whole["rate"] == pytest.approx(values[1] - values[0], abs=1e-12 * size, nan_ok=True)
    if slices["mix"].null_count() == 0:
        for part in ("mix", "rate"):
            assert math.fsum(slices[part]) == pytest.approx(whole[part], abs=1e-12 * size, nan_ok=True)
