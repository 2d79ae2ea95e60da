"""How the values of units become that of their group: labels that are absent, weights that are 0 or sum to it."""

import math
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.support.readings import both, same

INFINITY = math.inf


def log_of(**scores: list[float | None]) -> pl.DataFrame:
    """Rows that are all true, by label: the recall of a label is the share of its scores above 0.5."""
    rows = [(label, score) for label, of_label in scores.items() for score in of_label]
    keys = {"sample": list(range(len(rows))), "label": [label for label, _ in rows]}
    return pl.DataFrame({**keys, "score": pl.Series([score for _, score in rows], dtype=pl.Float64)}).with_columns(
        truth=pl.lit(1), other=pl.lit(0.9)
    )


# --- labels of the vocabulary without a row that counts ---------------------------------------------------------------

EXCLUDED = log_of(a=[0.9], b=[None, None])  # all of b is excluded for a null, and c is not there
NAMED = {"labels": ["a", "b", "c"], "undefined": 0.25}


@pytest.mark.parametrize("others", [[], [mlm.accuracy().on(score="other")], [mlm.n_excluded(), mlm.support()]], ids=len)
@pytest.mark.parametrize("by_state", [False, True])
def test_a_label_without_rows_is_undefined_whatever_else_is_asked(by_state: bool, others: list[Any]) -> None:
    metrics = [mlm.recall(**NAMED), *others]
    if by_state:
        # The label averages say to a state that labels must be held apart.
        state = mlm.state(
            EXCLUDED, *metrics, mlm.recall(**NAMED, average="macro"), mlm.accuracy(average="macro").on(score="other")
        )
        table = mlm.finish(state, metrics, per="label")
    else:
        table = mlm.evaluate(EXCLUDED, metrics, per="label")
    assert dict(table.select("label", "recall").rows()) == {"a": 1.0, "b": 0.25, "c": 0.25}


@pytest.mark.parametrize("undefined", [INFINITY, -INFINITY])
@pytest.mark.parametrize(
    "average", ["macro", "weighted", "min", "max", {"a": 0.1, "b": 0.2, "c": 0.3}, {"a": 3, "b": -1, "c": 0.1}], ids=str
)
def test_no_label_is_absent(average: Any, undefined: float) -> None:
    """What `undefined=` says is of no label, and of none it is nothing: not 0 times infinity."""
    log = log_of(a=[0.9], b=[0.9], c=[0.9])
    assert both(log, mlm.recall(average=average, labels=["a", "b", "c"], undefined=undefined)) == pytest.approx(1)


@pytest.mark.parametrize("average", ["macro", {"a": 0.1, "b": 0.2, "c": 0.3}], ids=str)
def test_some_label_is_absent(average: Any) -> None:
    log, labels = log_of(a=[0.9], b=[0.1]), ["a", "b", "c"]
    for undefined in (INFINITY, -INFINITY):
        assert both(log, mlm.recall(average=average, labels=labels, undefined=undefined)) == undefined
    expected = 2 / 3 if average == "macro" else (0.1 * 1 + 0.3 * 1) / 0.6
    assert both(log, mlm.recall(average=average, labels=labels, undefined=1.0)) == pytest.approx(expected)


def test_an_absent_label_of_weight_0_is_nothing() -> None:
    """0.1 + 0.2 + 0.3 depends on the order: what is left of it is no label."""
    log, labels = log_of(a=[0.9], b=[0.9], c=[0.9]), ["a", "b", "c", "d", "e"]
    average = {"a": 0.3, "d": 0, "b": 0.2, "c": 0.1}
    assert both(log, mlm.recall(average=average, labels=labels, undefined=INFINITY)) == pytest.approx(1)


# --- weights that sum to 0 --------------------------------------------------------------------------------------------

TO_ZERO = [{"a": 0.1, "b": 0.2, "c": -0.3}, {"a": 1, "b": -1}, {"a": 1e-300, "b": 2e-300, "c": -3e-300}, {"a": 0}]


TOO_LARGE = [{"a": 1e308, "b": 1e308}, {"a": -1e300, "b": 1.0}]
REFUSED = [
    *((weights, "must not sum to 0") for weights in TO_ZERO),
    *((weights, "a weight of an average is at most 1e") for weights in TOO_LARGE),
]


@pytest.mark.parametrize(("weights", "words"), REFUSED, ids=str)
def test_weights_whose_sum_is_0_or_that_no_float_holds_are_refused(weights: dict[str, float], words: str) -> None:
    """0.1 + 0.2 - 0.3 is 5.6e-17, and a mean over that is a number about rounding."""
    for of_weights in (
        lambda: mlm.recall(average=weights),
        lambda: mlm.average_score(mlm.mae(), weights, target="target"),
        lambda: mlm.average_score(dict.fromkeys(weights, mlm.mae()), weights),
    ):
        with pytest.raises(mlm.ParameterError, match=words):
            of_weights()


@pytest.mark.parametrize("weights", [{"a": 1e-300}, {"a": 1, "b": -1 + 1e-9}, {"a": 1e280, "b": 1}], ids=str)
def test_weights_that_do_not_sum_to_0_are_taken(weights: dict[str, float]) -> None:
    log = log_of(a=[0.9], b=[0.9])
    assert both(log, mlm.recall(average=weights)) == pytest.approx(1)


@pytest.mark.parametrize("scores", [{}, {"d": [None]}], ids=["absent", "excluded"])
def test_weights_that_are_left_and_sum_to_0_are_undefined(scores: dict[str, Any]) -> None:
    log = log_of(a=[0.9], b=[0.9], c=[0.1], **scores)
    average = {"a": 0.1, "b": 0.2, "c": -0.3, "d": 1.0}
    assert both(log, mlm.recall(average=average)) is None
    assert both(log, mlm.recall(average=average, undefined=0.5)) == 0.5
    every = ["a", "b", "c", "d"]
    # With a vocabulary the absent label has a value, and its weight counts: (0.1 + 0.2 - 0·0.3 + 0.5) / 1.
    assert both(log, mlm.recall(average=average, undefined=0.5, labels=every)) == pytest.approx(0.8)
    assert both(log, mlm.recall(average=average, undefined=0.5, labels=["a", "b", "c"])) == 0.5
    reason = mlm.evaluate(log, mlm.recall(average=average), tidy=True)["reason"].item()
    assert reason == "the weights of the labels sum to 0"


@pytest.mark.parametrize("weights", [[0.1, 0.2, -0.3, 1.0], [0.0, 0.0, 0.0, 1.0]], ids=str)
def test_targets_whose_weights_are_left_and_sum_to_0(weights: list[float]) -> None:
    """Of the target that weighs the rest no value is defined."""
    log = log_of(a=[0.9], b=[0.9], c=[0.1], d=[0.9]).with_columns(
        target=pl.col("label"), truth=pl.when(pl.col("label") == "d").then(0).otherwise(1)
    )
    named = dict(zip("abcd", weights, strict=True))
    assert both(log, mlm.average_score(mlm.recall(), named, target="target")) is None


def test_states_settle_alike() -> None:
    log = log_of(a=[0.9], b=[0.9], c=[0.1])
    metrics = [
        mlm.recall(average={"a": 0.1, "b": 0.2, "c": -0.3, "d": 1.0}).alias("to 0"),
        mlm.recall(average={"a": 0.1, "b": 0.2, "c": 0.3}, labels=["a", "b", "c"], undefined=INFINITY).alias("all"),
        mlm.recall(average={"a": 1, "d": 1}, labels=["a", "b", "c", "d"], undefined=INFINITY).alias("absent"),
    ]
    found, expected = mlm.finish(mlm.state(log, metrics), metrics).row(0), (None, 0.5, INFINITY)
    assert all(map(same, found, expected)), found


# --- one label is broken, another is not known ------------------------------------------------------------------------


@pytest.mark.parametrize("average", ["macro", "weighted", "min", {"a": 1, "b": 2}], ids=str)
def test_a_broken_label_is_heard_beside_one_that_is_not_known(average: Any) -> None:
    """Label b lacks a threshold, so its value is null, and so is the average; but one broken unit breaks it."""
    metric = mlm.recall(threshold=pl.col("bound"), average=average)
    of_a = pl.when(pl.col("label") == "a").then(0.5).alias("bound")
    assert both(log_of(a=[0.2, 0.9], b=[0.9]).with_columns(of_a), metric) is None
    assert same(both(log_of(a=[math.nan, 0.9], b=[0.9]).with_columns(of_a), metric), math.nan)


def test_a_broken_label_that_is_not_named_breaks_nothing() -> None:
    assert both(log_of(a=[0.2, 0.9], b=[math.nan]), mlm.recall(average={"a": 1})) == 0.5
