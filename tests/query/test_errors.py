"""Parameters and roles that are not right are errors when they are given, in words that help."""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.support.refusals import LOG, raised

OPAQUE = "runs Python, looks into a list or a struct, or is several columns: add it as a column first."

AVERAGES = "'micro' or 'macro' or 'weighted' or 'samples' or 'min' or 'max' or {label: number}"

LABEL_AVERAGES = "'macro' or 'weighted' or 'min' or 'max' or {label: number}"

F1 = "threshold, average, inclusive, labels, undefined"


# -- classes -----------------------------------------------------------------------------------------------------------


def test_every_error_is_a_metric_error_and_a_value_error() -> None:
    assert issubclass(mlm.MetricError, ValueError)
    for error in (mlm.ColumnError, mlm.ParameterError, mlm.NameCollisionError):
        assert issubclass(error, mlm.MetricError)
    assert issubclass(mlm.ParameterError, TypeError)


# -- parameters: said when the metric is made --------------------------------------------------------------------------

MACRO = "Did you mean 'macro'?"
TIES = "'wrong' or 'right' or 'half'"
BY_ROW = 'must be computed row by row, and col("p").sum() is not.'
SUM = pl.col("p").sum()
THRESHOLDS = "a number, {label: number} (or a table), an expression or 'argmax'"
PRIORS = "a column name or an expression or {label: number} or None"
OF_LABELS = "an average over labels takes {label: weight}"


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("f1", {"average": "makro"}, f"average must be {AVERAGES}, not 'makro'. {MACRO}"),
        ("f1", {"average": None}, f"average must be {AVERAGES}, not None."),
        ("f1", {"average": pl.col("x")}, f'average must be {AVERAGES}, not col("x").'),
        ("f1", {"average": np.array([1, 2])}, f"average must be {AVERAGES}, not array([1, 2])."),
        ("f1", {"average": {}}, f"{OF_LABELS}, not {{}}."),
        ("f1", {"average": {"a": "x"}}, f"{OF_LABELS}, not {{'a': 'x'}}."),
        ("f1", {"average": {"a": float("inf")}}, f"{OF_LABELS}, not {{'a': inf}}."),
        ("f1", {"average": {"a": 1, "b": -1}}, "the weights of an average must not sum to 0: {'a': 1, 'b': -1}."),
        ("labelwise_precision", {"average": "micro"}, f"average must be {LABEL_AVERAGES}, not 'micro'. {MACRO}"),
        ("coverage_error", {"base": 2}, "base must be 0 or 1, not 2."),
        ("coverage_error", {"base": True}, "base must be 0 or 1, not True."),
        ("ranking_loss", {"ties": "rigth"}, f"ties must be {TIES}, not 'rigth'. Did you mean 'right'?"),
        ("f1", {"threshold": "argmx"}, f"threshold must be {THRESHOLDS}, not 'argmx'."),
        ("f1", {"threshold": float("nan")}, f"threshold must be {THRESHOLDS}, not nan."),
        ("f1", {"threshold": {}}, f"threshold must be {THRESHOLDS}, not {{}}."),
        ("f1", {"threshold": {"a": "1"}}, f"threshold must be {THRESHOLDS}, not {{'a': '1'}}."),
        ("f1", {"threshold": SUM}, f"a threshold {BY_ROW}"),
        ("f1", {"labels": "abc"}, "labels takes a list of labels, not 'abc'."),
        ("f1", {"labels": []}, "labels takes a list of labels, not []."),
        ("calibration_error", {"bins": 0}, "bins must be a whole number of at least 1, not 0."),
        ("calibration_error", {"bins": 1.5}, "bins must be a whole number of at least 1, not 1.5."),
        ("log_loss", {"eps": -1}, "eps must be a number of at least 0 and at most 0.5 or 'dtype', not -1."),
        ("precision_at", {"k": 0}, "k must be a whole number of at least 1, not 0."),
        ("precision_at", {}, "missing a required argument: 'k' (parameters: k, relevant, undefined)."),
        ("roc_auc", {"max_fpr": 0}, "max_fpr must be a number greater than 0 and at most 1 or None, not 0."),
        ("recall_at_precision", {"p": 1.2}, "p must be a number of at least 0 and at most 1, not 1.2."),
        ("information_score", {"prior": 0.5}, f"prior must be {PRIORS}, not 0.5."),
        ("information_score", {"prior": SUM}, f"prior {BY_ROW}"),
        ("information_score", {"prior": {"a": "x"}}, "prior takes {label: number}, not {'a': 'x'}."),
        ("information_score", {"prior": {}}, "prior takes {label: number}, not {}."),
    ],
)
def test_a_parameter_that_is_not_right(name: str, given: dict[str, Any], message: str) -> None:
    assert raised(mlm.ParameterError, getattr(mlm, name), **given) == f"{name}: {message}"


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("f1", {"thresold": 0.5}, f"'thresold' is not one of f1's ({F1}). Did you mean 'threshold'?"),
        ("precision", {"k": 5}, f"'k' is not one of precision's ({F1})."),
        ("one_error", {"average": "macro"}, "'average' is not one of one_error's (relevant, undefined)."),
    ],
)
def test_a_parameter_that_is_not_there(name: str, given: dict[str, Any], message: str) -> None:
    assert raised(mlm.ParameterError, getattr(mlm, name), **given) == f"parameter {message}"


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

NO_ROLE = "is not one of the roles (sample, label, score, truth, weight)."
NO_NAME = "names no column: pass a name, or a list of different names."
A_PATTERN = "Polars reads this name as a pattern for several columns. Rename the column."


@pytest.mark.parametrize(
    ("roles", "error", "message"),
    [
        ({"scor": "p"}, mlm.ParameterError, f"role 'scor' {NO_ROLE} Did you mean 'score'?"),
        ({"y_true": "p"}, mlm.ParameterError, f"role 'y_true' {NO_ROLE} Did you mean 'truth'?"),
        ({"score": SUM}, mlm.MetricError, f"role 'score' {BY_ROW} Add it as a column first."),
        ({"weight": SUM}, mlm.MetricError, f"role 'weight' {BY_ROW} Add it as a column first."),
        ({"sample": []}, mlm.ParameterError, f"role 'sample' {NO_NAME}"),
        ({"label": ["a", "b"]}, mlm.ParameterError, "role 'label' takes a column name, not ['a', 'b']."),
        ({"label": "^a$"}, mlm.ParameterError, f"label column '^a$': {A_PATTERN}"),
    ],
)
def test_a_role_that_is_not_right(roles: dict[str, Any], error: type[Exception], message: str) -> None:
    assert raised(error, mlm.f1().on, **roles) == message
    for verb in (mlm.evaluate, mlm.worst):
        help_of_verb = f" help({verb.__name__}) lists what it takes." if "is not one of the roles" in message else ""
        assert raised(error, verb, LOG, mlm.f1(), **roles) == message + help_of_verb


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


@pytest.mark.parametrize(
    "opaque",
    [
        pl.col("p").map_batches(abs),
        pl.col("p").map_elements(abs, return_dtype=pl.Float64),
        pl.col("p").map_batches(abs, is_elementwise=True) + 1,
        pl.col("p").list.eval(pl.element() + 1).list.sum(),
    ],
    ids=["map_batches", "map_elements", "arithmetic", "list"],
)
def test_what_polars_cannot_tell_of_an_expression_must_be_a_column(opaque: pl.Expr) -> None:
    message = f"{opaque} {OPAQUE}"
    for role in ("score", "truth", "weight"):
        assert raised(mlm.MetricError, mlm.f1().on, **{role: opaque}) == message
        for verb in (mlm.evaluate, mlm.state):
            assert raised(mlm.MetricError, verb, LOG, mlm.f1(), **{role: opaque}) == message
    assert raised(mlm.MetricError, mlm.f1, threshold=opaque) == message
    for predicate in (opaque > 0, pl.all() > 0):
        assert raised(mlm.MetricError, mlm.f1().filter, predicate) == f"{predicate} {OPAQUE}"


# -- declarations ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"range": (0, None)}, "range is two numbers, such as (0, 1) or (0, float('inf')), not (0, None)."),
        ({"range": [0, 1]}, "range is two numbers, such as (0, 1) or (0, float('inf')), not [0, 1]."),
        ({"best": "low"}, "best is 'max', 'min' or None, not 'low'."),
    ],
)
def test_a_declaration_that_does_not_say_where_values_lie(given: dict[str, Any], message: str) -> None:
    def not_declared(u: mlm.Unit) -> pl.Expr:
        return u.rows()

    declare = mlm.metric(**{"range": (0, 1), "best": "max", **given})
    assert raised(mlm.ParameterError, declare, not_declared) == message
    assert "not_declared" not in mlm.CATALOGUE


@pytest.mark.parametrize("letters", ["x", "x y"])
def test_a_long_name_is_cut_in_messages(letters: str) -> None:
    name = letters * 100_000
    log: Any = pl.DataFrame({name: [0.5], "truth": [1], "b": [1]})
    f1: Any = mlm.f1
    calls: list[Callable[[], Any]] = [
        lambda: mlm.evaluate(log, f1(), score="p"),
        lambda: mlm.evaluate(log, f1(), score=name[:-1]),
        lambda: mlm.evaluate(log, f1(), by=[name, name], score=name),
        lambda: mlm.evaluate(log, f1(threshold=name), score=name),
        lambda: mlm.scan(f"{name}.parquet"),
        lambda: mlm.finish(log, f1(), by=name),
        lambda: f1(average=name),
    ]
    for call in calls:
        with pytest.raises(mlm.MetricError) as caught:
            call()
        assert len(str(caught.value)) <= 2000
