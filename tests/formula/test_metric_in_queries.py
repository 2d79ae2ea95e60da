"""A metric is read wherever Polars takes an expression."""

from datetime import date

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from tests.formula.small_log import LOG, A

ENGINES = ["in-memory", "streaming"]

METRICS = [
    mlm.f1(),
    mlm.recall(average="macro"),
    mlm.precision(average="samples"),
    mlm.one_error(),
    mlm.labelwise_precision(),
    mlm.roc_auc(),
    mlm.n_rows(),
]

BY_MODEL = pl.DataFrame(
    {
        "model": ["a", "b"],
        "f1": [0.5, 1.0],
        "recall_macro": [0.5, 1.0],
        "precision_samples": [0.5, 1.0],
        "one_error": [0.5, 0.0],
        "labelwise_precision_macro": [0.5, 1.0],
        "roc_auc": [0.75, 1.0],
        "n_rows": [4, 4],
    }
)


@pytest.mark.parametrize("engine", ENGINES)
def test_in_group_by(engine: str) -> None:
    table = LOG.lazy().group_by("model").agg(METRICS).sort("model").collect(engine=engine)
    assert_frame_equal(table, BY_MODEL)


@pytest.mark.parametrize("engine", ENGINES)
def test_in_select(engine: str) -> None:
    table = A.lazy().select(METRICS).collect(engine=engine)
    assert_frame_equal(table, BY_MODEL.drop("model").head(1))


@pytest.mark.parametrize("engine", ENGINES)
def test_in_group_by_dynamic(engine: str) -> None:
    table = LOG.lazy().sort("day").group_by_dynamic("day", every="1d").agg(METRICS).collect(engine=engine)
    expected = BY_MODEL.select(pl.Series("day", [date(2026, 1, 1), date(2026, 1, 2)]), pl.exclude("model"))
    assert_frame_equal(table, expected)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("metric", METRICS, ids=repr)
def test_over(metric: mlm.Metric, engine: str) -> None:
    table = LOG.lazy().select("model", metric.over("model")).unique().sort("model").collect(engine=engine)
    assert_frame_equal(table, BY_MODEL.select("model", metric.meta.output_name()))


def test_the_namespace_over_a_column() -> None:
    rows = LOG.rename({"score": "p"})
    table = rows.with_columns(pl.col("p").mlm.f1(truth="truth").over("model"))
    assert table["f1"].to_list() == [0.5] * 4 + [1.0] * 4


def test_in_a_filter_of_groups() -> None:
    assert LOG.filter(mlm.f1().over("model") > 0.75)["model"].unique().to_list() == ["b"]
