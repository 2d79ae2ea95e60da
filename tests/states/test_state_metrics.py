"""Metrics as data: `finish` without metrics gives those that the state was made for."""

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.formula.declaration import CATALOGUE
from polars_mlmetrics.query.written import metrics_of, written
from tests.laws.cases import CASES
from tests.support.differing import differing
from tests.support.folded_log import LOG, contents


def read_again(metric: mlm.Metric) -> mlm.Metric:
    """A metric, written as JSON and read."""
    data = json.loads(json.dumps({metric.output_name: written(metric.tree, {})}))
    [found] = metrics_of(data)
    return found


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_every_metric_is_read_as_it_was_written(name: str) -> None:
    for metric in (case.metric() for case in CASES if case.name == name):
        assert read_again(metric).key == metric.key


MADE = {
    "a threshold": mlm.f1(threshold=0.3, inclusive=True),
    "thresholds by label": mlm.f1(threshold={"a": 0.1, None: 0.5}),
    "a threshold of NumPy": mlm.f1(threshold=np.float32(0.5)),
    "a threshold that is a column": mlm.f1(threshold=pl.col("limit")),
    "a threshold of a float that JSON lacks": mlm.f1(threshold=float("-inf")),
    "weights of labels": mlm.f1(average={"a": 1, "b": 2.5}),
    "weights of days": mlm.f1(average={dt.date(2026, 1, 30): 1, dt.date(2026, 1, 31): 2}),
    "labels": mlm.f1(labels=["a", "b"], average="macro"),
    "labels that are times": mlm.f1(labels=[dt.datetime(2026, 1, 30, 12), dt.datetime(2026, 1, 31)]),
    "labels that are decimals": mlm.f1(labels=[Decimal("0.1")]),
    "labels that are durations": mlm.f1(labels=[dt.timedelta(seconds=1.5), dt.timedelta(1)]),
    "labels that are times of a day": mlm.f1(labels=[dt.time(1, 2, 3, 4)]),
    "what is undefined": mlm.f1(undefined=0.0),
    "roles": mlm.f1().on(score="p", truth="clicked", sample=["user", "item"]),
    "a role that is worked out": mlm.f1().on(score=pl.col("p") * 2),
    "a filter": mlm.f1().filter(country="DE"),
    "filters": mlm.f1().filter(pl.col("age").is_between(20, 30), ~(pl.col("day") == dt.date(2026, 1, 30))),
    "a filter that chooses": mlm.f1().filter(pl.when("new").then(pl.col("a").cast(pl.Int8) == 1).otherwise(False)),
    "a filter of texts and times": mlm.f1().filter(pl.col("c").str.starts_with("D"), pl.col("t").dt.year() == 2026),
    "a name": mlm.f1().alias("mine"),
    "arithmetic": (2 * mlm.recall() - mlm.precision()) / float("inf") + mlm.f1() ** 0.5,
    "functions": mlm.log_loss().clip(0, 1).round(3).fill_null(0.5).log(10).cast(pl.Float32),
    "a mean over targets": mlm.average_score(mlm.mae(), target="day"),
    "a mean over labels": mlm.average_score(mlm.f1(), weights={"a": 1.0, "b": 3.0}),
    "metrics of targets": mlm.average_score({"a": mlm.f1(), "b": mlm.recall().filter(new=True)}, weights=[1, 2]),
    "all targets as one": mlm.flattened(mlm.mae(average="macro")),
}


@pytest.mark.parametrize("metric", MADE.values(), ids=MADE)
def test_a_metric_is_read_as_it_was_written(metric: mlm.Metric) -> None:
    assert read_again(metric).key == metric.key


def test_finish_gives_the_metrics_that_the_state_was_made_for() -> None:
    metrics = [mlm.recall(), mlm.f1(average="macro").alias("a"), (mlm.precision() - 1).alias("less"), mlm.ndcg(k=2)]
    state = mlm.state(LOG, metrics, by="model", weight="weight")
    found = mlm.finish(state, by="model")
    assert found.columns == ["model", "a", "less", "ndcg_2", "recall"]
    expected = mlm.evaluate(LOG, metrics, by="model", weight="weight")
    assert differing(found, expected.select(found.columns)) == []


def test_roles_of_the_state_are_those_of_its_metrics() -> None:
    log = LOG.rename({"score": "p"})
    state = mlm.state(log, mlm.f1(), mlm.recall().on(score=pl.col("p")), score="p")
    assert differing(mlm.finish(state), mlm.evaluate(log, mlm.f1(), mlm.recall(), score="p")) == []
    assert "roles" not in contents(state)["metrics"]["f1"]


def test_a_metric_declared_elsewhere_is_found_by_its_name() -> None:
    @mlm.metric(range=(0, 1), best="max", undefined_when="no positives")
    def share_scored_high(u: mlm.Unit, *, average: mlm.Average = "micro") -> pl.Expr:
        """The share of positives with a high score."""
        return mlm.ratio(u.sum("high", pl.when(u.truth).then(u.score > 0.5)), u.positives())

    state = mlm.state(LOG, share_scored_high())
    assert mlm.finish(state).item() == mlm.evaluate(LOG, share_scored_high()).item()
    del CATALOGUE["share_scored_high"]
    with pytest.raises(mlm.StateError, match="'share_scored_high', a metric that is not declared here: import the mod"):
        mlm.finish(state)


def test_what_cannot_be_written_is_asked_for() -> None:
    metric = mlm.f1().filter(pl.col("tags").list.contains("new"))
    assert written(metric.tree, {}).keys() == {"text"}
    with pytest.raises(mlm.StateError, match=r"made for f1\(\)\.filter\(.*, which it cannot store as data\. Pass"):
        metrics_of({"f1": written(metric.tree, {})})


def function(it: Any) -> dict[str, Any]:
    return {"Function": {"input": [{"Column": "x"}], "function": it}}


def cast(dtype: Any) -> dict[str, Any]:
    return {"Cast": {"expr": {"Column": "x"}, "dtype": dtype, "options": "Strict"}}


ANONYMOUS = {"OfExpr": {"AnonymousFunction": {"input": [{"Column": "x"}], "function": [80, 76, 80, 89]}}}
"""The type of what a function of Python gives, with the function in it."""


HOSTILE: dict[str, dict[str, Any]] = {
    "code of Python": {"AnonymousFunction": {"input": [{"Column": "x"}], "function": [80, 76, 80, 89]}},
    "code of Python, inside": {"BinaryExpr": {"left": {"AnonymousFunction": {}}, "op": "Eq", "right": {"Column": "x"}}},
    "a library": function({"FfiPlugin": {"lib": "/tmp/x.so"}}),
    "a function by name alone": function("FfiPlugin"),
    "an unknown step": {"Selector": {}},
    "bytes": {"Literal": {"Series": [80, 76, 80, 89]}},
    "bytes of a list": {"Literal": {"Scalar": {"List": [255, 255, 255, 255]}}},
    "an object": {"Literal": {"Scalar": {"Object": [128, 4]}}},
    "a literal of another shape": {"Literal": 1},
    "a column of another shape": {"Column": 1},
    "code in the type of a cast": cast(ANONYMOUS),
    "code in a list of that type": cast({"Literal": {"List": ANONYMOUS}}),
    "code in the type of a text": function({"StringExpr": {"Strptime": [ANONYMOUS, {"strict": True}]}}),
    "code in the type of JSON": function({"StringExpr": {"JsonDecode": ANONYMOUS}}),
    "code in an option": function({"StringExpr": {"Strptime": [{"Literal": "Date"}, {"format": [80, 76, 80, 89]}]}}),
    "bytes as an argument": function({"StringExpr": {"Extract": [80, 76, 80, 89]}}),
    "bytes of a type": {"Cast": {"expr": {"Column": "x"}, "dtype": {"Literal": {"Enum": {"strings": [1]}}}}},
    "a step with more": {"BinaryExpr": {"left": {"Column": "x"}, "op": "Eq", "right": {"Column": "x"}, "more": 1}},
    "an operator that is none": {"BinaryExpr": {"left": {"Column": "x"}, "op": {}, "right": {"Column": "x"}}},
    "a function of two kinds": function({"Boolean": "IsNull", "StringExpr": "Lowercase"}),
    "infinity, which JSON lacks": {"Literal": {"Dyn": {"Float": None}}},
    "two steps": {"Column": "x", "Literal": 1},
    "no step": {},
}


PLAIN = (
    pl.col("x").cast(pl.Datetime("us", "UTC")) > dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
    pl.col("x").cast(pl.List(pl.Decimal(5, 2))).is_null(),
    pl.col("x").str.to_date("%Y-%m-%d", strict=False) == dt.date(2026, 1, 1),
    pl.col("x").str.to_integer(strict=False) == 1,
    pl.col("x").str.replace("a", "b").str.contains("b", literal=True),
    pl.col("x").dt.convert_time_zone("UTC").dt.truncate("1mo").dt.replace_time_zone(None).is_not_null(),
    pl.col("x").dt.total_days() > 1,
    pl.col("x").is_between(1, 2.5, closed="left"),
    pl.when(pl.col("x").is_nan()).then(None).otherwise(pl.lit(1, dtype=pl.Int8)) == 1,
)


@pytest.mark.parametrize("expression", PLAIN, ids=str)
def test_a_plain_expression_is_read_as_it_was_written(expression: pl.Expr) -> None:
    metric = mlm.f1().filter(expression)
    assert "text" not in written(metric.tree, {})
    assert read_again(metric).key == metric.key


@pytest.mark.parametrize("steps", HOSTILE.values(), ids=HOSTILE)
def test_an_expression_of_a_file_runs_no_code(steps: dict[str, Any]) -> None:
    data = {"metric": "f1", "parameters": {}, "rows": [{"expression": steps}]}
    with pytest.raises(mlm.StateError, match=r"has steps that are not read from files\. Pass the metrics"):
        metrics_of({"f1": data})


WRONG: dict[str, dict[str, Any]] = {
    "nothing": {},
    "no parameters": {"metric": "f1"},
    "a parameter it lacks": {"metric": "f1", "parameters": {"k": 1}},
    "a value of another kind": {"metric": "f1", "parameters": {"threshold": {"lambda": "x"}}},
    "a number that is none": {"metric": "f1", "parameters": {"threshold": {"float": "much"}}},
    "an operator": {"operator": "@", "of": [1, 2]},
    "a function that is none of a value": {"function": "map_elements", "of": {"metric": "f1", "parameters": {}}},
    "a role that is none": {"metric": "f1", "parameters": {}, "roles": {"model": "x"}},
}


@pytest.mark.parametrize("data", WRONG.values(), ids=WRONG)
def test_data_of_no_metric_are_refused(data: dict[str, Any]) -> None:
    with pytest.raises(mlm.StateError, match=r"the metric 'f1' of this state cannot be read: .*Pass the metrics"):
        metrics_of({"f1": data})
