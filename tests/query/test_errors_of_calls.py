"""Calls that Python refuses, and parameters of other libraries: errors of ours, at the caller's line."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm

LOG = pl.DataFrame(
    {
        "model": ["a"] * 4 + ["b"] * 4,
        "sample": [1, 2, 3, 4] * 2,
        "truth": [1, 0, 1, 0] * 2,
        "score": [0.9, 0.2, 0.4, 0.1, 0.8, 0.7, 0.6, 0.3],
    }
)
ONE = LOG.rename({"model": "system"})
STATE = mlm.state(LOG, mlm.f1(), by="model")
ANY: Any = mlm
"""The library as type checkers do not see it."""

ROLES = "sample, label, score, truth, weight"
CALLS: dict[str, Callable[[], object]] = {
    "compare needs baseline=. baseline= is the value that the others are compared with, such as baseline='old'.": (
        lambda: ANY.compare(LOG, mlm.f1())
    ),
    "flips needs baseline=.": lambda: ANY.flips(LOG, mlm.f1()),
    "gap needs over=.": lambda: ANY.gap(LOG, mlm.f1()),
    "gap: 'over' is given twice, at its place and by name. Pass several metrics as a list.": (
        lambda: ANY.gap(LOG, mlm.f1(), mlm.recall(), over="model")
    ),
    "gap: 'metrics' is given twice, at its place and by name.": lambda: ANY.gap(LOG, mlm.f1(), metrics=mlm.f1()),
    "evaluate needs frame=.": ANY.evaluate,
    "gate needs rules=.": lambda: ANY.gate(LOG),
    "parameter 'cluster' is not one of finish's (frame, by, slices,": lambda: ANY.finish(STATE, cluster="user"),
    "parameter 'score' is not one of finish's": lambda: ANY.finish(STATE, mlm.f1(), score="p"),
    "parameter 'seperator' is not one of scan's (source, format,": lambda: ANY.scan("log.csv", seperator=";"),
    "from_arrays takes values by name only, and 2 are given. Pass by name: score=, truth=, labels=,": (
        lambda: ANY.from_arrays([1, 0], [0.9, 0.2])
    ),
    "report takes at most 2 values without a name (frame, metrics), and 3 are given. Pass several metrics as a list": (
        lambda: ANY.report(LOG, mlm.f1(), mlm.recall())
    ),
    f"role 'per' is not one of the roles ({ROLES}). help(worst) lists what it takes.": (
        lambda: ANY.worst(LOG, mlm.f1(), per="label")
    ),
    f"role 'tidy' is not one of the roles ({ROLES}). help(flips) lists what it takes.": (
        lambda: ANY.flips(LOG, mlm.f1(), baseline="a", tidy=True)
    ),
    f"role 'metrics' is not one of the roles ({ROLES}). help(evaluate) lists what it takes.": (
        lambda: ANY.evaluate(LOG, metrics=[mlm.f1()])
    ),
    f"role 'fram' is not one of the roles ({ROLES}). help(evaluate)": lambda: ANY.evaluate(LOG, mlm.f1(), fram=LOG),
    f"role 'betwen' is not one of the roles ({ROLES}). Did you mean 'between'? help(flips)": (
        lambda: ANY.flips(LOG.rename({"model": "arm"}), mlm.f1(), betwen="arm", baseline="a")
    ),
    "kind 'treshold' is not a kind of curve (roc, pr, det, gain, threshold, decision, calibration, scores). Did you "
    "mean 'threshold'?": (lambda: ANY.curve(LOG, "treshold", "f1")),
    "plain takes a DataFrame or a LazyFrame, not a dict.": lambda: ANY.plain({"a": 1}),
    "best_threshold takes a DataFrame or a LazyFrame, not a dict.": (
        lambda: ANY.best_threshold({"a": 1}, mlm.f1(), where=pl.col("a") == 1)
    ),
    "finish: per must be 'label' or None, not 'x'.": lambda: ANY.finish(STATE, per="x"),
    "best_threshold: per must be 'label' or None, not recall().": lambda: ANY.best_threshold(
        LOG, mlm.f1(), mlm.recall()
    ),
}


@pytest.mark.parametrize("words", CALLS)
def test_a_call_that_python_refuses(words: str) -> None:
    with pytest.raises(mlm.ParameterError) as caught:
        CALLS[words]()
    assert str(caught.value).startswith(words)
    assert isinstance(caught.value, TypeError)
    assert [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)][-1] == "call"


def test_an_error_inside_is_no_error_of_the_call() -> None:
    class Wrong:
        def __getattr__(self, name: str) -> object:
            raise TypeError("wrong inside")

    with pytest.raises(TypeError, match="wrong inside"):
        ANY.scan(Wrong())


@pytest.mark.parametrize(
    ("given", "right"),
    [("groupby", "by"), ("group_by", "by"), ("y_true", "truth"), ("y_pred", "score"), ("sample_weight", "weight")],
)
def test_words_of_other_libraries(given: str, right: str) -> None:
    asked = {given: "model"}
    for call in (
        lambda: mlm.evaluate(LOG, mlm.f1(), **asked),
        lambda: mlm.state(LOG, mlm.f1(), **asked),
        lambda: mlm.check(LOG, **asked),
        lambda: ANY.worst(LOG, mlm.f1(), **asked),
    ):
        with pytest.raises(mlm.ParameterError, match=f"Did you mean '{right}'"):
            call()


@pytest.mark.parametrize(("given", "role"), [("truth", "truth"), ("y_true", "truth"), ("sample_weight", "weight")])
def test_a_metric_names_its_columns_by_on(given: str, role: str) -> None:
    with pytest.raises(mlm.ParameterError, match=rf"Columns are named by f1\(\.\.\.\)\.on\({role}=\.\.\.\)"):
        mlm.f1(**{given: "clicked"})  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["log", "lazy", "state"])
def test_models_of_another_name(kind: str) -> None:
    frame: Any = {"log": ONE, "lazy": ONE.lazy(), "state": mlm.state(ONE, mlm.f1(), by="system")}[kind]
    words = (
        "column 'model' is not (in the table|a by column of the state) .*system.* Pass between= with the column that "
        "tells the models apart"
    )
    with pytest.raises(mlm.ColumnError, match=words):
        mlm.compare(frame, mlm.f1(), baseline="a")
    if kind != "state":
        with pytest.raises(mlm.ColumnError, match=words):
            mlm.flips(frame, mlm.f1(), baseline="a")


def test_metrics_of_a_curve_may_be_a_list() -> None:
    metrics = [mlm.f1(), mlm.recall()]
    each = mlm.curve(LOG, "threshold", *metrics)
    assert mlm.curve(LOG, "threshold", metrics).equals(each)
    assert mlm.curve(LOG, "threshold", metrics[:1], [metrics[1:]]).equals(each)  # type: ignore[arg-type, list-item]
