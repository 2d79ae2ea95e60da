"""A metric is read wherever Polars takes an expression."""

from datetime import date
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from tests.formula.small_log import LOG, A

ENGINES = ["in-memory", "streaming"]

VALUES: list[tuple[mlm.Metric, list[float]]] = [
    (mlm.f1(), [0.5, 1.0]),
    (mlm.recall(average="macro"), [0.5, 1.0]),
    (mlm.precision(average="samples"), [0.5, 1.0]),
    (mlm.one_error(), [0.5, 0.0]),
    (mlm.labelwise_precision(), [0.5, 1.0]),
    (mlm.roc_auc(), [0.75, 1.0]),
    (mlm.n_rows(), [4, 4]),
]
METRICS = [metric for metric, _ in VALUES]
BY_MODEL = pl.DataFrame({"model": ["a", "b"], **{metric.output_name: values for metric, values in VALUES}})
BY_DAY = BY_MODEL.select(pl.Series("day", [date(2026, 1, 1), date(2026, 1, 2)]), pl.exclude("model"))

QUERIES: dict[str, tuple[pl.LazyFrame, pl.DataFrame]] = {
    "group_by": (LOG.lazy().group_by("model").agg(METRICS).sort("model"), BY_MODEL),
    "select": (A.lazy().select(METRICS), BY_MODEL.drop("model").head(1)),
    "group_by_dynamic": (LOG.lazy().sort("day").group_by_dynamic("day", every="1d").agg(METRICS), BY_DAY),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("query", "expected"), QUERIES.values(), ids=QUERIES)
def test_in_a_query(query: pl.LazyFrame, expected: pl.DataFrame, engine: Any) -> None:
    assert_frame_equal(query.collect(engine=engine), expected)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("metric", METRICS, ids=repr)
def test_over(metric: mlm.Metric, engine: Any) -> None:
    table = LOG.lazy().select("model", metric.over("model")).unique().sort("model").collect(engine=engine)
    assert_frame_equal(table, BY_MODEL.select("model", metric.meta.output_name()))


@pytest.mark.parametrize(
    "metric", [mlm.recall(average="macro"), mlm.log_loss(average="weighted"), mlm.one_error()], ids=str
)
def test_an_average_says_its_formula_once(metric: mlm.Metric) -> None:
    """One window for all units: Polars plans twice what an expression says twice."""
    assert A.lazy().select(metric).explain(optimized=False).count(".over(") == 1


def test_the_namespace_over_a_column() -> None:
    rows = LOG.rename({"score": "p"})
    table = rows.with_columns(pl.col("p").mlm.f1(truth="truth").over("model"))
    assert table["f1"].to_list() == [0.5] * 4 + [1.0] * 4


def test_in_a_filter_of_groups() -> None:
    assert LOG.filter(mlm.f1().over("model") > 0.75)["model"].unique().to_list() == ["b"]
