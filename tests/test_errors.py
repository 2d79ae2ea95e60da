"""What is wrong is said when the question is put, from facts, in words that help."""

import math
import re
from collections.abc import Callable
from datetime import date
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm

LOG = pl.DataFrame(
    {
        "sample": [1, 1, 2, 2],
        "label": ["a", "b", "a", "b"],
        "score": [0.9, 0.2, 0.4, 0.8],
        "truth": [1, 0, 1, 0],
        "country": ["DE", None, "DE", "FR"],
    }
)
either_frame = pytest.mark.parametrize("log", [LOG, LOG.lazy()], ids=["DataFrame", "LazyFrame"])

COLUMNS = "sample, label, score, truth, country"
ROLES = "sample, label, score, truth, weight"
AVERAGES = "'micro' or 'macro' or 'weighted' or 'samples' or 'min' or 'max' or {label: number}"
LABEL_AVERAGES = "'macro' or 'weighted' or 'min' or 'max' or {label: number}"
F1 = "threshold, average, inclusive, labels, undefined"
NO_COUNTRY = f"column 'contry' is not in the table ({COLUMNS}). Did you mean 'country'?"
NO_SCORE = f"score column 'scor' is not in the table ({COLUMNS}). Did you mean 'score'?"
NOT_A_NUMBER = "it must be Boolean or a number. Cast or map"


def raised(error: type[Exception], call: Callable[..., object], *args: Any, **kwargs: Any) -> str:
    """The message of the error, of this very class, that a call raises."""
    with pytest.raises(error) as caught:
        call(*args, **kwargs)
    assert type(caught.value) is error
    return str(caught.value)


# -- classes -----------------------------------------------------------------------------------------------------------


def test_every_error_is_a_metric_error_and_a_value_error() -> None:
    assert issubclass(mlm.MetricError, ValueError)
    for error in (mlm.ColumnError, mlm.ParameterError, mlm.NameCollisionError):
        assert issubclass(error, mlm.MetricError)
    assert issubclass(mlm.ParameterError, TypeError)


# -- parameters: said when the metric is made --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: mlm.f1(thresold=0.5),
            f"parameter 'thresold' is not one of f1's ({F1}). Did you mean 'threshold'?",
        ),
        (
            lambda: mlm.precision(k=5),
            f"parameter 'k' is not one of precision's ({F1}).",
        ),
        (lambda: mlm.one_error(average="macro"), "parameter 'average' is not one of one_error's (undefined)."),
        (
            lambda: mlm.f1(average="makro"),
            f"f1: average must be {AVERAGES}, not 'makro'. Did you mean 'macro'?",
        ),
        (lambda: mlm.f1(average=None), f"f1: average must be {AVERAGES}, not None."),
        (
            lambda: mlm.labelwise_precision(average="micro"),
            f"labelwise_precision: average must be {LABEL_AVERAGES}, not 'micro'. Did you mean 'macro'?",
        ),
        (lambda: mlm.coverage_error(base=2), "coverage_error: base must be 0 or 1, not 2."),
        (lambda: mlm.coverage_error(base=True), "coverage_error: base must be 0 or 1, not True."),
        (
            lambda: mlm.ranking_loss(ties="rigth"),
            "ranking_loss: ties must be 'wrong' or 'right' or 'half', not 'rigth'. Did you mean 'right'?",
        ),
        (
            lambda: mlm.f1(threshold="argmx"),
            "f1: threshold must be a number, {label: number}, an expression or 'argmax', not 'argmx'.",
        ),
        (
            lambda: mlm.f1(threshold=float("nan")),
            "f1: threshold must be a number, {label: number}, an expression or 'argmax', not nan.",
        ),
        (
            lambda: mlm.f1(threshold={}),
            "f1: threshold must be a number, {label: number}, an expression or 'argmax', not {}.",
        ),
        (
            lambda: mlm.f1(threshold={"a": "0.5"}),
            "f1: threshold must be a number, {label: number}, an expression or 'argmax', not {'a': '0.5'}.",
        ),
        (
            lambda: mlm.f1(threshold=pl.col("t").max()),
            'f1: a threshold must be computed row by row, and col("t").max() is not.',
        ),
        (lambda: mlm.f1(average={}), "f1: an average over labels takes {label: weight}, not {}."),
        (lambda: mlm.f1(average={"a": "x"}), "f1: an average over labels takes {label: weight}, not {'a': 'x'}."),
        (
            lambda: mlm.f1(average={"a": float("inf")}),
            "f1: an average over labels takes {label: weight}, not {'a': inf}.",
        ),
        (
            lambda: mlm.f1(average={"a": 1, "b": -1}),
            "f1: the weights of an average must not sum to 0: {'a': 1, 'b': -1}.",
        ),
        (lambda: mlm.f1(labels="abc"), "f1: labels takes a list of labels, not 'abc'."),
        (lambda: mlm.f1(labels=[]), "f1: labels takes a list of labels, not []."),
        (
            lambda: mlm.calibration_error(bins=0),
            "calibration_error: bins must be a whole number of at least 1, not 0.",
        ),
        (
            lambda: mlm.calibration_error(bins=1.5),
            "calibration_error: bins must be a whole number of at least 1, not 1.5.",
        ),
        (lambda: mlm.log_loss(eps=-1), "log_loss: eps must be a number of at least 0 or 'dtype', not -1."),
        (lambda: mlm.precision_at(0), "precision_at: k must be a whole number of at least 1, not 0."),
        (mlm.precision_at, "precision_at: missing a required argument: 'k' (parameters: k, undefined)."),
        (
            lambda: mlm.roc_auc(max_fpr=0),
            "roc_auc: max_fpr must be a number greater than 0 and at most 1 or None, not 0.",
        ),
        (
            lambda: mlm.recall_at_precision(1.2),
            "recall_at_precision: p must be a number of at least 0 and at most 1, not 1.2.",
        ),
        (
            lambda: mlm.information_score(prior=0.5),
            "information_score: prior must be a column name or an expression or {label: number} or None, not 0.5.",
        ),
        (
            lambda: mlm.information_score(prior=pl.col("x").sum()),
            'information_score: prior must be computed row by row, and col("x").sum() is not.',
        ),
        (
            lambda: mlm.information_score(prior={"a": "x"}),
            "information_score: prior takes {label: number}, not {'a': 'x'}.",
        ),
        (lambda: mlm.information_score(prior={}), "information_score: prior takes {label: number}, not {}."),
    ],
)
def test_a_parameter_that_is_not_right(make: Callable[[], object], message: str) -> None:
    assert raised(mlm.ParameterError, make) == message


@pytest.mark.parametrize(
    ("make", "facts"),
    [
        (lambda: mlm.f1(0.5), ["f1", "positional", "threshold"]),
        (mlm.fbeta, ["fbeta", "'beta'", "missing"]),
        (lambda: mlm.fbeta(2.0, beta=2.0), ["fbeta", "'beta'"]),
        (lambda: mlm.fbeta(0), ["fbeta", "beta", "number", "than 0", "not 0"]),
        (lambda: mlm.fbeta("2"), ["fbeta", "beta", "number", "'2'"]),
        (lambda: mlm.fbeta(float("nan")), ["fbeta", "beta", "number", "nan"]),
        (lambda: mlm.calibration_error(bins="15"), ["bins", "whole number", "'15'"]),
        (lambda: mlm.calibration_error(bins=True), ["bins", "whole number", "True"]),
        (lambda: mlm.f1(undefined="0"), ["f1", "undefined", "number", "'0'"]),
        (lambda: mlm.f1(undefined=float("nan")), ["f1", "undefined", "number", "nan"]),
        (lambda: mlm.log_loss(logits=1), ["log_loss", "logits", "True or False", "1"]),
        (lambda: mlm.f1(inclusive="yes"), ["f1", "inclusive", "True or False", "'yes'"]),
        (lambda: mlm.log_loss(eps="dtyp"), ["log_loss", "eps", "number", "'dtype'", "'dtyp'"]),
        (lambda: mlm.multiclass_log_loss(max_loss=0), ["multiclass_log_loss", "max_loss", "than 0", "not 0"]),
        (lambda: mlm.multilabel_cross_entropy(base=1), ["multilabel_cross_entropy", "base", "1"]),
    ],
)
def test_what_a_parameter_may_be_is_said(make: Callable[[], object], facts: list[str]) -> None:
    message = raised(mlm.ParameterError, make)
    assert [fact for fact in facts if fact not in message] == [], message


# -- roles: said when they are bound, by a metric or by a verb ---------------------------------------------------------


@pytest.mark.parametrize(
    ("roles", "error", "message"),
    [
        (
            {"scor": "p"},
            mlm.ParameterError,
            f"role 'scor' is not one of the roles ({ROLES}). Did you mean 'score'?",
        ),
        ({"y_true": "p"}, mlm.ParameterError, f"role 'y_true' is not one of the roles ({ROLES})."),
        (
            {"score": pl.col("p").sum()},
            mlm.MetricError,
            "role 'score' must be computed row by row, and col(\"p\").sum() is not. Add it as a column first.",
        ),
        (
            {"weight": pl.col("w").max()},
            mlm.MetricError,
            "role 'weight' must be computed row by row, and col(\"w\").max() is not. Add it as a column first.",
        ),
        (
            {"sample": []},
            mlm.ParameterError,
            "role 'sample' names no column: pass a name, or a list of different names.",
        ),
        ({"label": ["a", "b"]}, mlm.ParameterError, "role 'label' takes a column name, not ['a', 'b']."),
        ({"label": "^a$"}, mlm.ParameterError, "role 'label' takes one column, and '^a$' is a pattern."),
        ({"score": "*"}, mlm.ParameterError, "role 'score' takes one column, and '*' is a pattern."),
    ],
)
def test_a_role_that_is_not_right(roles: dict[str, Any], error: type[Exception], message: str) -> None:
    assert raised(error, mlm.f1().on, **roles) == message
    assert raised(error, mlm.evaluate, LOG, mlm.f1(), **roles) == message
    assert raised(error, mlm.worst, LOG, mlm.f1(), **roles) == message


@pytest.mark.parametrize(
    ("roles", "facts"),
    [
        ({"score": 3}, ["'score'", "column name", "expression", "not 3"]),
        ({"sample": 5}, ["'sample'", "column name", "list", "not 5"]),
        ({"sample": ["a", 5]}, ["'sample'", "column name", "not 5"]),
        ({"sample": pl.col("s")}, ["'sample'", "column name", 'col("s")', "only score, truth and weight"]),
        ({"score": pl.all()}, ["'score'", "one column"]),
    ],
)
def test_what_a_role_may_be_is_said(roles: dict[str, Any], facts: list[str]) -> None:
    message = raised(mlm.ParameterError, mlm.f1().on, **roles)
    assert [fact for fact in facts if fact not in message] == [], message


@pytest.mark.parametrize(
    ("predicate", "shown"),
    [(True, "True"), ("country", "'country'"), (pl.col("a").sum() > 1, 'col("a").sum()'), (mlm.f1() > 0.5, "")],
)
def test_a_filter_that_is_no_condition_of_a_row(predicate: Any, shown: str) -> None:
    message = raised(mlm.MetricError, mlm.f1().filter, predicate)
    assert message.startswith("filter takes conditions that are computed row by row")
    assert shown in message


# -- columns: said when a verb is called -------------------------------------------------------------------------------


@either_frame
@pytest.mark.parametrize(
    ("metric", "roles", "message"),
    [
        (mlm.f1(), {"score": "scor"}, NO_SCORE),
        (mlm.f1(), {"truth": "Truth"}, f"truth column 'Truth' is not in the table ({COLUMNS}). Did you mean 'truth'?"),
        (mlm.f1(), {"weight": "w"}, f"weight column 'w' is not in the table ({COLUMNS})."),
        (
            mlm.f1().on(score=1 - pl.col("scores")),
            {},
            f"score column 'scores' is not in the table ({COLUMNS}). Did you mean 'score'?",
        ),
        (
            mlm.f1().filter(pl.col("contry") == "DE"),
            {},
            NO_COUNTRY,
        ),
        (mlm.f1(), {"score": "country"}, f"score is String: {NOT_A_NUMBER} 'country' first."),
        (
            mlm.f1(),
            {"truth": pl.col("label")},
            f"truth is String: {NOT_A_NUMBER} 'label' first.",
        ),
        (mlm.f1(), {"weight": "label"}, f"weight is String: {NOT_A_NUMBER} 'label' first."),
        (mlm.f1(labels=[1]), {}, "f1: label 1 is int, and the label column is String."),
        (mlm.f1(average={1: 1.0}), {}, "f1_weights: label 1 is int, and the label column is String."),
        (mlm.f1(threshold={1: 0.5}), {}, "f1: label 1 is int, and the label column is String."),
        (mlm.recall() - mlm.f1().on(score="scor"), {}, NO_SCORE),
    ],
)
def test_a_column_that_is_not_right(
    log: pl.DataFrame | pl.LazyFrame, metric: mlm.Metric, roles: dict[str, Any], message: str
) -> None:
    for options in ({}, {"tidy": True}, {"slices": ["country"]}, {"min_samples": 2}):
        assert raised(mlm.ColumnError, mlm.evaluate, log, metric, **options, **roles) == message
    assert raised(mlm.ColumnError, log.mlm.evaluate, metric, **roles) == message


@either_frame
@pytest.mark.parametrize(
    "metric",
    [
        mlm.f1(threshold=pl.col("contry")),
        mlm.f1(average="macro", threshold=pl.col("contry")),
        pl.col("contry").count(),
        mlm.f1().round(2) * pl.col("contry").count(),
    ],
    ids=str,
)
def test_a_column_that_any_other_expression_reads(log: pl.DataFrame | pl.LazyFrame, metric: pl.Expr) -> None:
    message = raised(mlm.ColumnError, mlm.evaluate, log, metric)
    assert "'contry' is not in the table" in message
    assert message.endswith("Did you mean 'country'?")


@either_frame
def test_a_threshold_that_is_no_number(log: pl.DataFrame | pl.LazyFrame) -> None:
    message = raised(mlm.ColumnError, mlm.evaluate, log, mlm.f1(threshold=pl.col("country")))
    assert "threshold is String" in message


@either_frame
@pytest.mark.parametrize(
    ("metric", "role"),
    [
        (mlm.one_error(), "sample"),
        (mlm.n_samples(), "sample"),
        (mlm.f1(average="samples"), "sample"),
        (mlm.labelwise_precision(), "sample"),
        (mlm.f1(threshold="argmax"), "sample"),
        (mlm.labelwise_precision(), "label"),
        (mlm.f1(average="macro"), "label"),
        (mlm.f1(labels=["a"]), "label"),
        (mlm.f1(threshold={"a": 0.5, None: 0.1}), "label"),
    ],
    ids=repr,
)
def test_a_metric_says_which_column_it_needs(log: pl.DataFrame | pl.LazyFrame, metric: mlm.Metric, role: str) -> None:
    message = raised(mlm.ColumnError, mlm.evaluate, log.drop(role), metric)
    assert message.startswith(f"{metric.output_name} needs a {role}: ")
    renamed = raised(mlm.ColumnError, mlm.evaluate, log, metric, **{role: f"{role}s"})
    assert renamed.endswith(f"'{role}s' is not in the table ({COLUMNS}). Did you mean '{role}'?")


@either_frame
def test_min_samples_needs_a_sample_column(log: pl.DataFrame | pl.LazyFrame) -> None:
    message = raised(mlm.ColumnError, mlm.evaluate, log.drop("sample"), mlm.f1(), min_samples=2)
    assert message == (
        "min_samples counts samples: sample column 'sample' is not in the table (label, score, truth, country)."
    )


def test_a_label_without_a_threshold() -> None:
    assert raised(mlm.ParameterError, mlm.evaluate, LOG, mlm.f1(threshold={"a": 0.5})) == (
        "f1: no threshold for label 'b'. Add it, or use the key None for all other labels."
    )
    message = raised(mlm.ParameterError, mlm.evaluate, LOG, mlm.f1(threshold={"z": 0.5}))
    assert message == "f1: no threshold for label 'a' and 1 more. Add it, or use the key None for all other labels."


# -- keys --------------------------------------------------------------------------------------------------------------


@either_frame
@pytest.mark.parametrize(
    ("keys", "error", "message"),
    [
        ({"by": "contry"}, mlm.ColumnError, NO_COUNTRY),
        ({"slices": ["contry"]}, mlm.ColumnError, NO_COUNTRY),
        ({"slices": [["label", "contry"]]}, mlm.ColumnError, NO_COUNTRY),
        ({"by": pl.col("contry").str.head(1)}, mlm.ColumnError, NO_COUNTRY),
        ({"by": [["country"]]}, mlm.ParameterError, "a key is a column name or an expression, not ['country']."),
        ({"by": 3}, mlm.ParameterError, "a key is a column name or an expression, not 3."),
        ({"slices": [3]}, mlm.ParameterError, "a key is a column name or an expression, not 3."),
        (
            {"by": pl.col("score").max()},
            mlm.MetricError,
            'a key must be computed row by row, and col("score").max() is not. Add it as a column first.',
        ),
        (
            {"by": "country", "slices": ["country"]},
            mlm.ParameterError,
            "'country' is already in by=, so it cannot be a slice too.",
        ),
    ],
)
def test_a_key_that_is_not_right(
    log: pl.DataFrame | pl.LazyFrame, keys: dict[str, Any], error: type[Exception], message: str
) -> None:
    assert raised(error, mlm.evaluate, log, mlm.f1(), **keys) == message
    if "slices" not in keys:
        assert raised(error, mlm.worst, log, mlm.f1(), **keys) == message


@either_frame
@pytest.mark.parametrize("slices", ["country", pl.col("country"), 3], ids=str)
def test_slices_are_a_list(log: pl.DataFrame | pl.LazyFrame, slices: Any) -> None:
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
def test_two_columns_of_one_name(
    log: pl.DataFrame | pl.LazyFrame, metrics: list[pl.Expr], keys: dict[str, Any], name: str
) -> None:
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
def test_a_key_called_like_a_statistic(log: pl.DataFrame | pl.LazyFrame) -> None:
    renamed = log.rename({"country": "positives"})
    message = raised(mlm.NameCollisionError, mlm.evaluate, renamed, mlm.prevalence(), by="positives")
    assert message == "'positives' is the name of a statistic: use .alias(...) on the key."
    ranked = log.rename({"country": "pairs_lost"})
    assert raised(mlm.NameCollisionError, mlm.evaluate, ranked, mlm.roc_auc(), by="pairs_lost") == (
        "'pairs_lost' is the name of a statistic: use .alias(...) on the key."
    )
    of_runs = log.rename({"country": "positives by score"})
    assert raised(mlm.NameCollisionError, mlm.evaluate, of_runs, mlm.ks(), by="positives by score") == (
        "'positives by score' is the name of a statistic: use .alias(...) on the key."
    )
    aliased = mlm.evaluate(renamed, mlm.prevalence(), by=pl.col("positives").cast(pl.String).alias("positives"))
    assert aliased.lazy().collect()["positives"].to_list() == [None, "DE", "FR"]


@either_frame
@pytest.mark.parametrize("name", ["*", "^x.*$"])
def test_a_name_that_polars_expands(log: pl.DataFrame | pl.LazyFrame, name: str) -> None:
    renamed = log.rename({"country": name})
    for metric, keys in [
        (mlm.f1(), {"by": name}),
        (mlm.f1(), {"slices": [name]}),
        (mlm.f1().alias(name), {"by": "label"}),
        (pl.len().alias(name), {"by": "label"}),
    ]:
        message = raised(mlm.ParameterError, mlm.evaluate, renamed, metric, **keys)
        assert repr(name) in message
        assert "pattern" in message


@either_frame
@pytest.mark.parametrize("name", ["__mlm_place", "__mlm_value_0"])
def test_a_name_of_the_plans_own(log: pl.DataFrame | pl.LazyFrame, name: str) -> None:
    renamed = log.rename({"country": name})
    for metric, keys in [
        (mlm.f1(), {"by": name}),
        (mlm.f1(), {"slices": [name]}),
        (mlm.f1().alias(name), {"by": "label"}),
    ]:
        with pytest.raises(mlm.MetricError, match="__mlm_"):
            mlm.evaluate(renamed, metric, **keys)


@either_frame
@pytest.mark.parametrize("key", [pl.struct("country", "label"), pl.concat_list("country", "label")], ids=str)
def test_a_slice_that_has_no_text(log: pl.DataFrame | pl.LazyFrame, key: pl.Expr) -> None:
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
def test_labels_that_the_column_cannot_hold(
    log: pl.DataFrame | pl.LazyFrame, labels: list[Any], dtype: pl.DataType, per: Any
) -> None:
    numbered = log.with_columns(label=pl.col("truth").cast(dtype))
    for metric in (mlm.f1(labels=labels), mlm.f1(average=dict.fromkeys(labels, 1.0))):
        message = raised(mlm.ColumnError, mlm.evaluate, numbered, metric, per=per)
        assert f"label {labels[0]!r}" in message


# -- what is asked for -------------------------------------------------------------------------------------------------


@either_frame
@pytest.mark.parametrize(
    ("metrics", "options", "message"),
    [
        ([], {}, "no metric is given: pass at least one, such as f1()."),
        ([[]], {}, "no metric is given: pass at least one, such as f1()."),
        ([mlm.f1()], {"min_samples": 0}, "evaluate: min_samples must be a whole number of at least 1 or None, not 0."),
        (
            [mlm.f1()],
            {"min_samples": 1.5},
            "evaluate: min_samples must be a whole number of at least 1 or None, not 1.5.",
        ),
        (
            [mlm.f1()],
            {"min_samples": True},
            "evaluate: min_samples must be a whole number of at least 1 or None, not True.",
        ),
        ([mlm.f1()], {"per": "country"}, "per is 'label' or 'sample', not 'country'."),
        (
            [mlm.f1()],
            {"per": "label", "tidy": True},
            "per= cannot be used with tidy or min_samples.",
        ),
        (
            [mlm.f1()],
            {"per": "label", "min_samples": 2},
            "per= cannot be used with tidy or min_samples.",
        ),
    ],
    ids=str,
)
def test_a_question_that_is_not_right(
    log: pl.DataFrame | pl.LazyFrame, metrics: list[Any], options: dict[str, Any], message: str
) -> None:
    assert raised(mlm.ParameterError, mlm.evaluate, log, *metrics, **options) == message


@either_frame
@pytest.mark.parametrize(
    ("given", "facts"),
    [
        (mlm.f1, ["f1", "Call it", "f1()"]),
        (lambda u: u, ["not a metric"]),
        ("f1", ["'f1'", "not a metric", "f1()"]),
        (3, ["3 is not a metric"]),
        (None, ["None is not a metric"]),
        (LOG["score"], ["not a metric", "Series"]),
    ],
    ids=["factory", "function", "text", "number", "None", "Series"],
)
def test_what_is_not_a_metric(log: pl.DataFrame | pl.LazyFrame, given: Any, facts: list[str]) -> None:
    for metrics in ([given], [mlm.recall(), given]):
        message = raised(mlm.ParameterError, mlm.evaluate, log, metrics)
        assert [fact for fact in facts if fact not in message] == [], message
        assert " at 0x" not in message


@either_frame
@pytest.mark.parametrize(
    "expression", [pl.col("score"), pl.col("score") * 2, pl.col("score").unique(), pl.col("score").head(2)], ids=str
)
def test_a_plain_expression_that_is_not_one_value_a_group(
    log: pl.DataFrame | pl.LazyFrame, expression: pl.Expr
) -> None:
    for options in ({}, {"by": "country"}, {"tidy": True}):
        message = raised(mlm.MetricError, mlm.evaluate, log, mlm.f1(), expression, **options)
        assert "score" in message
        assert "one value per group" in message


@either_frame
def test_a_plain_expression_of_many_columns(log: pl.DataFrame | pl.LazyFrame) -> None:
    with pytest.raises(mlm.ParameterError, match="several columns: name them one by one"):
        mlm.evaluate(log, pl.all().mean())


@either_frame
def test_a_plain_expression_that_is_no_number_has_no_tidy_value(log: pl.DataFrame | pl.LazyFrame) -> None:
    with pytest.raises(mlm.MetricError, match=r"country.*String"):
        mlm.evaluate(log, pl.col("country").first(), tidy=True)


@either_frame
@pytest.mark.parametrize(
    ("metrics", "per", "message"),
    [
        (
            [mlm.f1(), mlm.one_error(), mlm.ranking_loss().alias("loss")],
            "label",
            "these metrics have no value per label: one_error, loss.",
        ),
        ([mlm.labelwise_precision()], "sample", "these metrics have no value per sample: labelwise_precision_macro."),
        ([mlm.f1() + mlm.one_error()], "label", "these metrics have no value per label: one_error."),
        ([mlm.f1(), pl.len()], "label", "'len' is a plain expression, which has no value per label."),
    ],
)
def test_no_value_per_unit(log: pl.DataFrame | pl.LazyFrame, metrics: list[pl.Expr], per: str, message: str) -> None:
    assert raised(mlm.MetricError, mlm.evaluate, log, metrics, per=per) == message


@either_frame
def test_units_of_different_columns(log: pl.DataFrame | pl.LazyFrame) -> None:
    message = raised(mlm.MetricError, mlm.evaluate, log, mlm.f1().on(label="country"), mlm.recall(), per="label")
    assert "'country'" in message
    assert "'label'" in message


# -- worst -------------------------------------------------------------------------------------------------------------


@either_frame
@pytest.mark.parametrize("k", [0, -1, 1.5, True, None])
def test_k(log: pl.DataFrame | pl.LazyFrame, k: Any) -> None:
    assert raised(mlm.ParameterError, mlm.worst, log, mlm.f1(), k=k) == (
        f"worst: k must be a whole number of at least 1, not {k!r}."
    )


@either_frame
@pytest.mark.parametrize(
    ("given", "facts"),
    [
        (mlm.f1, ["Call it: f1()."]),
        (pl.len(), ["len()", "plain expression"]),
        ("f1", ["Did you mean f1()?"]),
        (None, ["None is not a metric"]),
    ],
    ids=["factory", "plain expression", "text", "None"],
)
def test_worst_takes_a_metric(log: pl.DataFrame | pl.LazyFrame, given: Any, facts: list[str]) -> None:
    message = raised(mlm.ParameterError, mlm.worst, log, given)
    assert [fact for fact in facts if fact not in message] == [], message
    assert " at 0x" not in message


@either_frame
@pytest.mark.parametrize(
    "metric",
    [
        mlm.prevalence(),
        mlm.n_rows(),
        mlm.f1() + mlm.log_loss(),
        mlm.f1() * mlm.log_loss(),
        mlm.recall() - mlm.precision(),
        mlm.recall() / mlm.precision(),
    ],
    ids=repr,
)
def test_a_metric_without_a_worst_end(log: pl.DataFrame | pl.LazyFrame, metric: mlm.Metric) -> None:
    message = raised(mlm.MetricError, mlm.worst, log, metric)
    assert message.startswith(f"{metric.output_name} has no worst values")


# -- namespace ---------------------------------------------------------------------------------------------------------


def test_a_metric_that_is_not_in_the_catalogue() -> None:
    with pytest.raises(AttributeError, match=r"metric 'log_los' is not in the catalogue .*Did you mean 'log_loss'\?"):
        pl.col("p").mlm.log_los()


def test_a_wrong_parameter_of_a_method() -> None:
    message = raised(mlm.ParameterError, pl.col("p").mlm.f1, treshold=0.5)
    assert re.search(r"'treshold'.*Did you mean 'threshold'\?", message)


def test_a_misspelt_keyword_of_evaluate_finds_its_match() -> None:
    for given, meant in {"slces": "slices", "min_sample": "min_samples", "scor": "score"}.items():
        message = raised(mlm.ParameterError, mlm.evaluate, pl.DataFrame({"score": [0.5]}), mlm.f1(), **{given: 3})
        assert message.endswith(f"Did you mean '{meant}'?")


@pytest.mark.parametrize("verb", [mlm.evaluate, mlm.worst])
def test_a_frame_that_is_none(verb: Callable[..., object]) -> None:
    message = raised(mlm.ParameterError, verb, {"score": [0.5]}, mlm.f1())
    assert message == "metrics need a DataFrame or a LazyFrame, not a dict."


# -- declarations ------------------------------------------------------------------------------------------------------


def test_a_metric_of_a_name_that_is_taken() -> None:
    def f1(u: mlm.Unit) -> pl.Expr:
        return u.positives()

    declare = mlm.metric(range=(0, 1), best="max", undefined_when="never")
    message = raised(mlm.NameCollisionError, declare, f1)
    assert message == "a metric with the name 'f1' is already declared in polars_mlmetrics.metrics.decisions."


# -- numbers for each row ----------------------------------------------------------------------------------------------

NO_CLASS = "label column 'class' is not in the table (sample, label, score, truth, name)."
CLASSES = pl.LazyFrame(
    {"sample": [1, 1], "label": ["a", "b"], "score": [0.5, 0.2], "truth": [1, 0], "name": ["x", "y"]}
)


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (
            mlm.information_score(prior="priors"),
            "prior column 'priors' is not in the table (sample, label, score, truth, name).",
        ),
        (
            mlm.information_score(prior="name"),
            "prior is String: it must be Boolean or a number. Cast or map 'name' first.",
        ),
        (
            mlm.information_score(prior={1: 0.5}),
            "information_score: label 1 is int, and the label column is String.",
        ),
        (
            mlm.information_score().on(label="class"),
            f"information_score needs a label: {NO_CLASS}",
        ),
        (
            mlm.ndcg(ties="ignore").on(label="class"),
            f"ndcg needs a label: {NO_CLASS}",
        ),
    ],
)
def test_a_number_of_the_row_that_is_not_there(metric: mlm.Metric, message: str) -> None:
    assert raised(mlm.ColumnError, lambda: mlm.evaluate(CLASSES, metric)) == message


def test_a_prior_that_is_not_known_is_told() -> None:
    (row,) = mlm.evaluate(CLASSES, mlm.information_score(prior={"b": 0.5}), tidy=True).collect().to_dicts()
    assert row["value"] is None
    assert row["reason"] == "rows without a prior: 1"


@pytest.mark.parametrize("prior", [-0.1, 1.5, float("nan")])
def test_a_prior_that_is_no_probability_is_broken(prior: float) -> None:
    frame = CLASSES.collect()
    metric = mlm.information_score(prior=pl.lit(prior))
    assert math.isnan(mlm.evaluate(frame, metric).item())
    assert math.isnan(frame.select(metric).item())
    elsewhere = pl.when(pl.col("label") == "b").then(prior).otherwise(0.5)
    assert mlm.evaluate(frame, mlm.information_score(prior=elsewhere)).item() == 0  # of the true label alone


def test_what_cannot_be_an_expression_says_so() -> None:
    """A formula that looks into other units and back at its rows, or into runs, has a plan and no inline form."""

    @mlm.metric(range=(0, 1), best=None, undefined_when="no rows", grain="label")
    def both_looks(u: mlm.Unit) -> pl.Expr:
        """A spread of places."""
        return u.variation("place", u.rank.cast(pl.Float64))

    @mlm.metric(range=(0, 1), best=None, undefined_when="no rows", grain="label")
    def runs_of_places(u: mlm.Unit) -> pl.Expr:
        """The number of places."""
        return u.runs(u.rank.alias("place"), pl.lit(1).alias("rows"))[0].count()

    frame = CLASSES.collect()
    try:
        for metric, what in ((both_looks(), "a value per row of its unit"), (runs_of_places(), "runs")):
            name = metric.output_name
            assert raised(mlm.MetricError, lambda metric=metric: frame.select(metric)) == (
                f"{name}: {what} with values of other units cannot be used as an expression: use evaluate."
            )
    finally:
        del mlm.CATALOGUE["both_looks"], mlm.CATALOGUE["runs_of_places"]


# -- classes that cannot be compared, labels that cannot be ------------------------------------------------------------

PAIRS = [
    (pl.String, pl.Int64),
    (pl.Int64, pl.String),
    (pl.Enum(["a"]), pl.Enum(["a", "b"])),
    (pl.Enum(["a"]), pl.Categorical),
    (pl.Date, pl.Int64),
    (pl.Duration("us"), pl.Int64),
    (pl.Duration("us"), pl.String),
    (pl.Datetime("us"), pl.Datetime("us", "UTC")),
    (pl.Binary, pl.String),
    (pl.Boolean, pl.String),
    (pl.List(pl.String), pl.String),
    (pl.List(pl.String), pl.List(pl.Int64)),
    (pl.Struct({"x": pl.Int64}), pl.Int64),
    (pl.Struct({"x": pl.Int64}), pl.Struct({"y": pl.Int64})),
    (pl.Object, pl.Object),
]


@pytest.mark.parametrize(("score", "truth"), PAIRS, ids=str)
@pytest.mark.parametrize("name", ["classification_accuracy", "global_accuracy", "confusion"])
def test_classes_that_cannot_be_compared(name: str, score: pl.DataType, truth: pl.DataType) -> None:
    frame = pl.DataFrame(schema={"sample": pl.Int64, "score": score, "truth": truth})
    for given in (frame, frame.lazy()):
        if name == "confusion":
            message = raised(mlm.ColumnError, mlm.confusion, given)
        else:
            message = raised(mlm.ColumnError, mlm.evaluate, given, mlm.CATALOGUE[name]())
        shown = (frame.schema["score"], frame.schema["truth"])
        assert message == "{} compares classes, but score is {}, truth is {}: these cannot be compared. {}".format(
            name, *shown, "Cast one to the type of the other."
        )


@either_frame
@pytest.mark.parametrize("name", ["classification_accuracy", "global_accuracy"])
def test_a_probability_is_no_class(name: str, log: Any) -> None:
    message = raised(mlm.ColumnError, mlm.evaluate, log, mlm.CATALOGUE[name]())
    assert message == (
        f"{name} compares classes, but score is Float64, truth is Int64. A probability needs a threshold: accuracy(), "
        "or confusion(threshold=0.5). If the scores are class numbers that became floats, cast them to integers."
    )
    cents = pl.col("score").cast(pl.Decimal(4, 2))
    assert "A probability needs a threshold" in raised(
        mlm.ColumnError, mlm.evaluate, log, mlm.CATALOGUE[name](), score=cents
    )


@either_frame
@pytest.mark.parametrize(
    "metric",
    [
        mlm.f1(labels=["a", "c"]),
        mlm.f1(average={"c": 1.0}).alias("f1"),
        mlm.f1(threshold={"c": 0.3, None: 0.5}),
        mlm.information_score(prior={"c": 0.5, "a": 0.5}).alias("f1"),
    ],
    ids=repr,
)
def test_a_label_that_an_enum_lacks(metric: mlm.Metric, log: Any) -> None:
    log = log.with_columns(pl.col("label").cast(pl.Enum(["a", "b"])))
    per = "label" if metric.key[0] == mlm.CATALOGUE["f1"].formula else None
    message = raised(mlm.ColumnError, mlm.evaluate, log, metric, per=per)
    assert message == "f1: label 'c' is not a category of the label column (a, b)."


@pytest.mark.parametrize(
    "parameters", [{"labels": [1, "a"]}, {"average": {1: 0.5, "a": 0.5}}, {"threshold": {1: 0.5, "a": 0.5, None: 0.1}}]
)
def test_labels_of_several_types(parameters: dict[str, Any]) -> None:
    message = raised(mlm.ParameterError, mlm.f1, **parameters)
    assert message == "f1: labels must have one type, but [1, 'a'] have several."


@either_frame
def test_python_objects_are_no_keys(log: Any) -> None:
    log = log.with_columns(pl.Series("who", [object()] * 4, dtype=pl.Object))
    no_key = "'who' is of type Object, and Python objects cannot be keys. Cast the column first."
    for keys in ({"by": "who"}, {"slices": ["who"]}, {"by": pl.col("who").is_null().alias("known")}):
        assert raised(mlm.ColumnError, mlm.evaluate, log, mlm.f1(), **keys) == no_key
    for metric in (mlm.one_error(), mlm.f1(threshold="argmax"), mlm.n_samples()):
        assert raised(mlm.ColumnError, mlm.evaluate, log, metric, sample="who") == no_key
    assert raised(mlm.ColumnError, mlm.evaluate, log, mlm.f1(average="macro"), label="who") == no_key
    assert raised(mlm.ColumnError, mlm.confusion, log, sample="who") == no_key
