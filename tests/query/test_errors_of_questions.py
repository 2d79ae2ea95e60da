"""Questions that have no answer, units that are not there and misspelt names are errors."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.errors import METRICS_ELSEWHERE
from tests.support.refusals import LOG, either_frame, raised

# -- what is asked for -------------------------------------------------------------------------------------------------


NO_METRIC = "no metric is given: pass at least one, such as f1()."
MIN_SAMPLES = "evaluate: min_samples must be a whole number of at least 1 or None, not "
SIGNATURE = "signature= is a column of tidy tables: pass tidy=True too."
NO_VALUE = "these metrics have no value per"


@either_frame
@pytest.mark.parametrize(
    ("metrics", "options", "message"),
    [
        ([], {}, NO_METRIC),
        ([[]], {}, NO_METRIC),
        ([mlm.f1()], {"min_samples": 0}, f"{MIN_SAMPLES}0."),
        ([mlm.f1()], {"min_samples": 1.5}, f"{MIN_SAMPLES}1.5."),
        ([mlm.f1()], {"min_samples": True}, f"{MIN_SAMPLES}True."),
        ([mlm.f1()], {"per": "country"}, "evaluate: per must be 'label' or 'sample', not 'country'."),
        ([mlm.f1()], {"per": "label", "min_samples": 0}, f"{MIN_SAMPLES}0."),
        ([mlm.f1()], {"per": "label", "signature": True}, SIGNATURE),
    ],
    ids=str,
)
def test_a_question_that_is_not_right(log: Any, metrics: list[Any], options: dict[str, Any], message: str) -> None:
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
def test_what_is_not_a_metric(log: Any, given: Any, facts: list[str]) -> None:
    for metrics in ([given], [mlm.recall(), given]):
        message = raised(mlm.ParameterError, mlm.evaluate, log, metrics)
        assert [fact for fact in facts if fact not in message] == [], message
        assert " at 0x" not in message


@either_frame
@pytest.mark.parametrize(
    "expression", [pl.col("score"), pl.col("score") * 2, pl.col("score").unique(), pl.col("score").head(2)], ids=str
)
def test_a_plain_expression_that_is_not_one_value_a_group(log: Any, expression: pl.Expr) -> None:
    for options in ({}, {"by": "country"}, {"tidy": True}):
        message = raised(mlm.MetricError, mlm.evaluate, log, mlm.f1(), expression, **options)
        assert "score" in message
        assert "one value per group" in message


@either_frame
def test_a_plain_expression_of_many_columns(log: Any) -> None:
    with pytest.raises(mlm.ParameterError, match="several columns: name them one by one"):
        mlm.evaluate(log, pl.all().mean())


@either_frame
def test_a_plain_expression_that_is_no_number_has_no_tidy_value(log: Any) -> None:
    with pytest.raises(mlm.MetricError, match=r"country.*String"):
        mlm.evaluate(log, pl.col("country").first(), tidy=True)


@either_frame
@pytest.mark.parametrize(
    ("metrics", "per", "message"),
    [
        ([mlm.f1(), mlm.one_error(), mlm.ranking_loss().alias("loss")], "label", f"{NO_VALUE} label: one_error, loss."),
        ([mlm.labelwise_precision()], "sample", f"{NO_VALUE} sample: labelwise_precision_macro."),
        ([mlm.f1() + mlm.one_error()], "label", f"{NO_VALUE} label: one_error."),
        ([mlm.f1(), pl.len()], "label", "'len' is a plain expression, which has no value per label."),
    ],
)
def test_no_value_per_unit(log: Any, metrics: list[pl.Expr], per: str, message: str) -> None:
    assert raised(mlm.MetricError, mlm.evaluate, log, metrics, per=per) == message


@either_frame
def test_units_of_different_columns(log: Any) -> None:
    message = raised(mlm.MetricError, mlm.evaluate, log, mlm.f1().on(label="country"), mlm.recall(), per="label")
    assert "'country'" in message
    assert "'label'" in message


# -- worst -------------------------------------------------------------------------------------------------------------

F1 = mlm.f1()


@either_frame
@pytest.mark.parametrize("k", [0, -1, 1.5, True, None])
def test_k(log: Any, k: Any) -> None:
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
def test_worst_takes_a_metric(log: Any, given: Any, facts: list[str]) -> None:
    message = raised(mlm.ParameterError, mlm.worst, log, given)
    assert [fact for fact in facts if fact not in message] == [], message
    assert " at 0x" not in message


@either_frame
@pytest.mark.parametrize(
    "metric",
    [mlm.prevalence(), mlm.n_rows(), F1 + mlm.log_loss(), F1 * mlm.log_loss(), F1 - mlm.recall(), F1 / mlm.recall()],
    ids=repr,
)
def test_a_metric_without_a_worst_end(log: Any, metric: mlm.Metric) -> None:
    message = raised(mlm.MetricError, mlm.worst, log, metric)
    assert message.startswith(f"{metric.output_name} has no worst values")


# -- namespace ---------------------------------------------------------------------------------------------------------


def test_a_metric_that_is_not_in_the_catalogue() -> None:
    with pytest.raises(AttributeError, match=r"metric 'log_los' is not in the catalogue .*Did you mean 'log_loss'\?"):
        pl.col("p").mlm.log_los()


def test_a_metric_is_found_by_its_name_in_other_libraries() -> None:
    assert {*METRICS_ELSEWHERE.values()} <= {*mlm.__all__}
    assert not METRICS_ELSEWHERE.keys() & {*mlm.__all__}
    ours = {
        "mrr": "reciprocal_rank",
        "rank_biased_precision": "rbp",
        "pass_k": "pass_all",
        "mr": "mean_rank",
        "zzz": "",
    }
    for name, meant in ours.items():
        sentence = rf" Did you mean '{meant}'\?" if meant else ""
        with pytest.raises(AttributeError, match=rf"^polars_mlmetrics has no '{name}'\.{sentence}$"):
            getattr(mlm, name)
    with pytest.raises(AttributeError, match=r"Did you mean 'average_precision'\?"):
        pl.col("p").mlm.pr_auc()


def test_a_wrong_parameter_of_a_method() -> None:
    message = raised(mlm.ParameterError, pl.col("p").mlm.f1, treshold=0.5)
    assert re.search(r"'treshold'.*Did you mean 'threshold'\?", message)


def test_a_misspelt_keyword_of_evaluate_finds_its_match() -> None:
    for given, meant in {"slces": "slices", "min_sample": "min_samples", "scor": "score"}.items():
        message = raised(mlm.ParameterError, mlm.evaluate, pl.DataFrame({"score": [0.5]}), mlm.f1(), **{given: 3})
        assert message.endswith(f"Did you mean '{meant}'? help(evaluate) lists what it takes.")


@pytest.mark.parametrize("verb", [mlm.evaluate, mlm.worst])
def test_a_frame_that_is_none(verb: Callable[..., object]) -> None:
    message = raised(mlm.ParameterError, verb, {"score": [0.5]}, mlm.f1())
    assert message == f"{verb.__name__} takes a DataFrame or a LazyFrame, not a dict."


# -- declarations ------------------------------------------------------------------------------------------------------


def test_a_metric_of_a_name_that_is_taken() -> None:
    def f1(u: mlm.Unit) -> pl.Expr:
        return u.positives()

    declare = mlm.metric(range=(0, 1), best="max", undefined_when="never")
    message = raised(mlm.NameCollisionError, declare, f1)
    assert message == "a metric with the name 'f1' is already declared in polars_mlmetrics.metrics.decisions."


# -- calls as they are made elsewhere ----------------------------------------------------------------------------------

TWO = pl.DataFrame({"model": ["a", "b"] * 4, "sample": range(8), "score": [0.1, 0.9] * 4, "truth": [0, 1] * 4})
POSITIONAL = "f1: too many positional arguments (parameters: threshold, average, inclusive, labels, undefined)."
ANY: Any = mlm
"""The library as type checkers do not see it."""
CALLS: dict[str, Callable[[], object]] = {
    "evaluate takes a DataFrame or a LazyFrame, not a str: mlm.scan reads a file.": (
        lambda: ANY.evaluate("log.csv", mlm.f1())
    ),
    f"{POSITIONAL} A metric takes no rows: evaluate(from_arrays(score=..., truth=...), f1()) does.": (
        lambda: ANY.f1([1, 0], [0.9, 0.2])
    ),
    f"{POSITIONAL} Pass parameters by name, such as threshold=.": lambda: ANY.f1(0.3),
    "a key is a column, such as by='model', and f1() is a metric.": lambda: ANY.check(TWO, mlm.f1()),
    "kind 'roc_auc()' is not a kind of curve (roc, pr, det, gain, threshold, decision, calibration, scores).": (
        lambda: ANY.curve(TWO, mlm.roc_auc())
    ),
    "a single metric is expected, and [f1()] is a list.": lambda: ANY.worst(TWO, [mlm.f1()]),
    "plot takes the table of evaluate, finish, curve, compare, rank, gap, decompose, drift or find_slices, and this "
    "one has the columns severity, problem, count, share, of, examples and 2 more. Of a log, type "
    "mlm.plot(mlm.evaluate(log, mlm.f1(), by=...)).": (lambda: mlm.plot(mlm.check(TWO))),
    "two columns of the result would have the name 'model', by which compare tells the models apart: leave it out of "
    "by=.": lambda: mlm.compare(TWO, mlm.f1(), baseline="a", by="model"),
    **{
        f"{verb.__name__} takes a log, and this is a state, which has no rows of one: finish works out metrics from "
        "it.": partial(verb, mlm.state(TWO, mlm.f1()), *given)
        for verb, given in {
            mlm.evaluate: [mlm.f1()],
            mlm.worst: [mlm.f1()],
            mlm.confusion: [],
            mlm.state: [mlm.f1()],
            mlm.check: [],
            mlm.profile: [],
            mlm.dedupe: [],
        }.items()
    },
}


@pytest.mark.parametrize("message", CALLS)
def test_what_to_type_instead_is_said(message: str) -> None:
    with pytest.raises(mlm.MetricError) as caught:
        CALLS[message]()
    assert str(caught.value) == message
