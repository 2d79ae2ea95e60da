"""Columns, keys and names that are not right are errors when a verb is called."""

import re
from datetime import date
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.support.refusals import LOG, either_frame, raised

COLUMNS = "sample, label, score, truth, country"

WHICH_IS_TRUE = "pl.col('label') == '...' says which text is true (on the command line: --truth label=...)."
PREDICTED = "If it is the predicted class, mlm.from_predictions makes the long table."
NO_COUNTRY = f"column 'contry' is not in the table ({COLUMNS}). Did you mean 'country'?"

OF_LABEL_1 = [mlm.f1(labels=[1]), mlm.f1(average={1: 1.0}), mlm.f1(threshold={1: 0.5})]

NO_SCORE = f"score column 'scor' is not in the table ({COLUMNS}). Did you mean 'score'?"

NOT_A_NUMBER = "it must be Boolean or a number. Cast or map"


# -- columns: said when a verb is called -------------------------------------------------------------------------------


@either_frame
@pytest.mark.parametrize(
    ("metric", "roles", "message"),
    [
        (mlm.f1(), {"score": "scor"}, NO_SCORE),
        (mlm.f1(), {"truth": "Truth"}, f"truth column 'Truth' is not in the table ({COLUMNS}). Did you mean 'truth'?"),
        (mlm.f1(), {"weight": "w"}, f"weight column 'w' is not in the table ({COLUMNS})."),
        (mlm.f1().on(score=1 - pl.col("scor")), {}, NO_SCORE),
        (mlm.f1().filter(pl.col("contry") == "DE"), {}, NO_COUNTRY),
        (mlm.f1(), {"score": "country"}, f"score is String: {NOT_A_NUMBER} 'country' first. {PREDICTED}"),
        (mlm.f1(), {"truth": pl.col("label")}, f"truth is String: {NOT_A_NUMBER} 'label' first. {WHICH_IS_TRUE}"),
        (mlm.f1(), {"weight": "label"}, f"weight is String: {NOT_A_NUMBER} 'label' first."),
        *(
            (metric, {}, f"{metric.output_name}: label 1 is int, and the label column is String.")
            for metric in OF_LABEL_1
        ),
        (mlm.recall() - mlm.f1().on(score="scor"), {}, NO_SCORE),
    ],
)
def test_a_column_that_is_not_right(log: Any, metric: mlm.Metric, roles: dict[str, Any], message: str) -> None:
    for options in ({}, {"tidy": True}, {"slices": ["country"]}, {"min_samples": 2}):
        assert raised(mlm.ColumnError, mlm.evaluate, log, metric, **options, **roles) == message
    assert raised(mlm.ColumnError, log.mlm.evaluate, metric, **roles) == message


MISSPELT = pl.col("contry")
OF_COUNT = [MISSPELT.count(), mlm.f1().round(2) * MISSPELT.count()]


@either_frame
@pytest.mark.parametrize(
    "metric", [mlm.f1(threshold=MISSPELT), mlm.f1(average="macro", threshold=MISSPELT), *OF_COUNT], ids=str
)
def test_a_column_that_any_other_expression_reads(log: Any, metric: pl.Expr) -> None:
    message = raised(mlm.ColumnError, mlm.evaluate, log, metric)
    assert "'contry' is not in the table" in message
    assert message.endswith("Did you mean 'country'?")


@either_frame
def test_a_threshold_that_is_no_number(log: Any) -> None:
    message = raised(mlm.ColumnError, mlm.evaluate, log, mlm.f1(threshold=pl.col("country")))
    assert "threshold is String" in message


@either_frame
@pytest.mark.parametrize(
    ("metric", "role"),
    [
        *((metric, "sample") for metric in (mlm.one_error(), mlm.n_samples(), mlm.f1(average="samples"))),
        *((metric, "sample") for metric in (mlm.labelwise_precision(), mlm.f1(threshold="argmax"))),
        *((metric, "label") for metric in (mlm.labelwise_precision(), mlm.f1(average="macro"), mlm.f1(labels=["a"]))),
        (mlm.f1(threshold={"a": 0.5, None: 0.1}), "label"),
    ],
    ids=repr,
)
def test_a_metric_says_which_column_it_needs(log: Any, metric: mlm.Metric, role: str) -> None:
    message = raised(mlm.ColumnError, mlm.evaluate, log.drop(role), metric)
    assert message.startswith(f"{metric.output_name} needs a {role}: ")
    renamed = raised(mlm.ColumnError, mlm.evaluate, log, metric, **{role: f"{role}s"})
    assert renamed.endswith(f"'{role}s' is not in the table ({COLUMNS}). Did you mean '{role}'?")


@either_frame
def test_min_samples_needs_a_sample_column(log: Any) -> None:
    words = "min_samples counts samples: sample column 'sample' is not in the table (label, score, truth, country)."
    assert raised(mlm.ColumnError, mlm.evaluate, log.drop("sample"), mlm.f1(), min_samples=2) == words


@pytest.mark.parametrize(("known", "lacking"), [("a", "'b'"), ("z", "'a', 'b'")])
def test_a_label_without_a_threshold(known: str, lacking: str) -> None:
    message = raised(mlm.ParameterError, mlm.evaluate, LOG, mlm.f1(threshold={known: 0.5}))
    assert message == f"f1: no threshold for label {lacking}. Add it, or use the key None for all other labels."


# -- keys --------------------------------------------------------------------------------------------------------------

A_KEY = "a key is a column name or an expression"
NOT_BY_ROW = 'a key must be computed row by row, and col("score").max() is not. Add it as a column first.'
TWICE = "'country' is already in by=, so it cannot be a slice too."


@either_frame
@pytest.mark.parametrize(
    ("keys", "error", "message"),
    [
        ({"by": "contry"}, mlm.ColumnError, NO_COUNTRY),
        ({"slices": ["contry"]}, mlm.ColumnError, NO_COUNTRY),
        ({"slices": [["label", "contry"]]}, mlm.ColumnError, NO_COUNTRY),
        ({"by": pl.col("contry").str.head(1)}, mlm.ColumnError, NO_COUNTRY),
        ({"by": [["country"]]}, mlm.ParameterError, f"{A_KEY}, not ['country']."),
        ({"by": 3}, mlm.ParameterError, f"{A_KEY}, not 3."),
        ({"slices": [3]}, mlm.ParameterError, f"{A_KEY}, not 3."),
        ({"by": pl.col("score").max()}, mlm.MetricError, NOT_BY_ROW),
        ({"by": "country", "slices": ["country"]}, mlm.ParameterError, TWICE),
    ],
)
def test_a_key_that_is_not_right(log: Any, keys: dict[str, Any], error: type[Exception], message: str) -> None:
    assert raised(error, mlm.evaluate, log, mlm.f1(), **keys) == message
    if "slices" not in keys:
        assert raised(error, mlm.worst, log, mlm.f1(), **keys) == message


@either_frame
@pytest.mark.parametrize("slices", ["country", pl.col("country"), 3], ids=str)
def test_slices_are_a_list(log: Any, slices: Any) -> None:
    message = raised(mlm.ParameterError, mlm.evaluate, log, mlm.f1(), slices=slices)
    assert "slices" in message
    assert "list" in message


# -- names -------------------------------------------------------------------------------------------------------------


@either_frame
@pytest.mark.parametrize(
    ("metrics", "keys", "name"),
    [
        ([mlm.f1(), mlm.f1()], {}, "f1"),
        ([mlm.f1(), mlm.f1(threshold=0.3)], {}, "f1"),
        ([mlm.f1() - mlm.recall(), mlm.f1()], {}, "f1"),
        ([mlm.f1(), pl.len().alias("f1")], {}, "f1"),
        ([pl.len(), pl.len()], {}, "len"),
        ([mlm.f1().alias("country")], {"by": "country"}, "country"),
        ([mlm.f1().alias("country")], {"slices": ["label", "country"]}, "country"),
        ([mlm.f1()], {"by": pl.col("country").alias("f1")}, "f1"),
        ([mlm.f1()], {"by": ["label", pl.col("country").alias("label")]}, "label"),
        ([mlm.f1()], {"by": ["country", "country"]}, "country"),
        ([mlm.f1()], {"slices": [["country", "country"]]}, "country"),
        ([mlm.f1()], {"slices": ["label", pl.col("country").alias("label")]}, "label"),
        ([mlm.f1().alias("slice")], {"slices": ["country"]}, "slice"),
        ([mlm.f1().alias("sliced_by")], {"slices": ["country"]}, "sliced_by"),
        ([mlm.f1()], {"slices": [pl.col("country").alias("slice")]}, "slice"),
        ([mlm.f1()], {"by": pl.col("country").alias("slice"), "slices": ["label"]}, "slice"),
        ([mlm.f1()], {"by": pl.col("country").alias("metric"), "tidy": True}, "metric"),
        ([mlm.f1()], {"by": pl.col("country").alias("reason"), "tidy": True}, "reason"),
        ([mlm.f1()], {"slices": [pl.col("country").alias("value")], "tidy": True}, "value"),
        ([mlm.f1()], {"by": "label", "per": "label"}, "label"),
        ([mlm.f1()], {"by": pl.col("country").alias("label"), "per": "label"}, "label"),
        ([mlm.f1().alias("label")], {"per": "label"}, "label"),
        ([mlm.f1(), mlm.f1(threshold=0.3)], {"per": "label"}, "f1"),
        ([mlm.f1(), mlm.f1(average="macro", undefined=0.0)], {"per": "label"}, "f1"),
    ],
)
def test_two_columns_of_one_name(log: Any, metrics: list[pl.Expr], keys: dict[str, Any], name: str) -> None:
    message = raised(mlm.NameCollisionError, mlm.evaluate, log, metrics, **keys)
    assert f"'{name}'" in message
    assert "alias" in message or "twice" in message


def test_the_message_about_two_columns_of_one_name() -> None:
    message = raised(mlm.NameCollisionError, mlm.evaluate, LOG, mlm.f1(), mlm.f1(threshold=0.3))
    assert message == "two columns of the result would have the name 'f1': use .alias(...) on one of them."


def test_a_tidy_table_may_have_metrics_called_like_its_columns() -> None:
    table = mlm.evaluate(LOG, mlm.f1().alias("value"), mlm.f1().alias("metric"), tidy=True)
    assert table["metric"].to_list() == ["value", "metric"]


@either_frame
@pytest.mark.parametrize(
    ("name", "metric"),
    [("positives", mlm.prevalence()), ("ranks_of_positives", mlm.roc_auc()), ("positives by score", mlm.ks())],
)
def test_a_key_called_like_a_statistic(log: Any, name: str, metric: mlm.Metric) -> None:
    renamed = log.rename({"country": name})
    message = raised(mlm.NameCollisionError, mlm.evaluate, renamed, metric, by=name)
    assert message == f"'{name}' is the name of a statistic: use .alias(...) on the key."
    aliased = mlm.evaluate(renamed, metric, by=pl.col(name).cast(pl.String).alias(name))
    assert aliased.lazy().collect()[name].to_list() == [None, "DE", "FR"]


@either_frame
@pytest.mark.parametrize(
    ("name", "words"),
    [
        *((name, f"{re.escape(repr(name))}: .*pattern") for name in ("*", "^x.*$")),
        *((name, "__mlm_") for name in ("__mlm_place", "__mlm_value_0")),
    ],
)
def test_a_name_that_polars_expands_or_that_is_the_plans_own(log: Any, name: str, words: str) -> None:
    renamed = log.rename({"country": name})
    for metric, keys in [
        (mlm.f1(), {"by": name}),
        (mlm.f1(), {"slices": [name]}),
        (mlm.f1().alias(name), {"by": "label"}),
        (pl.len().alias(name), {"by": "label"}),
    ]:
        with pytest.raises(mlm.MetricError, match=words):
            mlm.evaluate(renamed, metric, **keys)


@either_frame
@pytest.mark.parametrize("key", [pl.struct("country", "label"), pl.concat_list(pl.struct("country", "label"))], ids=str)
def test_a_slice_that_has_no_text(log: Any, key: pl.Expr) -> None:
    with pytest.raises(mlm.MetricError, match="'place'"):
        mlm.evaluate(log, mlm.f1(), slices=[key.alias("place")])
    assert mlm.evaluate(log, mlm.n_rows(), by=key.alias("place")).lazy().collect()["n_rows"].sum() == 4


@either_frame
@pytest.mark.parametrize("per", [None, "label"])
@pytest.mark.parametrize(
    ("labels", "dtype"),
    [([1.5], pl.Int64), (["1"], pl.Int64), ([1], pl.Boolean), ([None], pl.Int64), ([date(2026, 1, 1)], pl.Int64)],
    ids=str,
)
def test_labels_that_the_column_cannot_hold(log: Any, labels: list[Any], dtype: pl.DataType, per: Any) -> None:
    numbered = log.with_columns(label=pl.col("truth").cast(dtype))
    for metric in (mlm.f1(labels=labels), mlm.f1(average=dict.fromkeys(labels, 1.0))):
        message = raised(mlm.ColumnError, mlm.evaluate, numbered, metric, per=per)
        assert f"label {labels[0]!r}" in message
