"""Arrays of predicted classes: what `from_predictions` makes of two columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import f1_score

import polars_mlmetrics as mlm
from polars_mlmetrics.errors import REDACT

NAMES = ["cat", "dog", "owl"]


@pytest.mark.parametrize("classes", [NAMES, [3, 7, 11], [0, 1, 2], [1.0, 2.0, 3.0], [b"a", b"b", b"c"]], ids=str)
@pytest.mark.parametrize("shape", ["list", "array", "series"])
def test_the_table_is_that_of_from_predictions(classes: list[Any], shape: str) -> None:
    rng = np.random.default_rng(3)
    predicted, true = ([classes[place] for place in rng.integers(0, 3, 40)] for _ in range(2))
    as_given = {"list": list, "array": np.asarray, "series": pl.Series}[shape]
    table = mlm.from_arrays(score=as_given(predicted), truth=as_given(true), labels=classes)
    frame = pl.DataFrame({"score": predicted, "truth": true})
    assert table.equals(mlm.from_predictions(frame, classes=classes))
    (value,) = mlm.evaluate(table, mlm.f1(average="macro")).row(0)
    texts = [list(map(str, each)) for each in (true, predicted)]
    assert value == pytest.approx(f1_score(*texts, average="macro"))


def test_texts_need_no_labels() -> None:
    table = mlm.from_arrays(score=np.array(["dog", "cat"]), truth=["dog", None], sample=[7, 8], sample_weight=[1, 2])
    assert table.rows() == [
        (7, "cat", 0.0, False, 1.0),
        (7, "dog", 1.0, True, 1.0),
        (8, "cat", 1.0, None, 2.0),
        (8, "dog", 0.0, None, 2.0),
    ]


@pytest.mark.parametrize("unknown", [None, float("nan")], ids=str)
def test_an_unknown_class_is_null(unknown: Any) -> None:
    table = mlm.from_arrays(score=[2, unknown], truth=[unknown, 2], labels=[1, 2])
    assert table.select("score", "truth").rows() == [(0.0, None), (1.0, None), (None, False), (None, True)]


def test_binary_numbers_stay_scores() -> None:
    assert mlm.from_arrays(score=[1, 0, 1], truth=[1, 0, 0]).columns == ["sample", "score", "truth"]
    assert mlm.from_arrays(score=[True, False], truth=[1, 0])["score"].to_list() == [True, False]
    assert mlm.from_arrays(score=[5, 9], truth=[1, 0])["score"].to_list() == [5, 9]
    assert mlm.from_arrays(score=[5.0, 9.0], truth=[4, 8])["truth"].to_list() == [4, 8]


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"score": [1, 2, 3], "truth": [1, 2, 2]}, "pass labels= with all classes, such as labels=np.union1d"),
        ({"score": [0, 1, None], "truth": [0, 2, 1]}, "pass labels= with all classes"),
        ({"score": [1, 2], "truth": [1, 2], "labels": [1, 3]}, r"the class 2 is not one of the labels \(1, 3\)"),
        ({"score": ["a", "c"], "truth": ["a", "b"], "labels": ["a", "b"]}, "the class 'c' is not one of the labels"),
        ({"score": ["a", "b"], "truth": [0, 1]}, "predicted and true classes must have one type"),
        ({"score": ["a", "b"], "truth": ["a"]}, "truth must have the shape of score"),
        ({"score": ["a", "b"], "truth": ["a", "b"], "sample": [1]}, "pass one value for each sample"),
        ({"score": [1, 2], "truth": [1, 2], "labels": ["a", "b"]}, "score has classes of type Int64, and labels are"),
    ],
)
def test_what_is_refused(arrays: dict[str, Any], words: str) -> None:
    with pytest.raises(mlm.MetricError, match=words):
        mlm.from_arrays(**arrays)


def test_an_error_can_leave_out_the_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(REDACT, "1")
    with pytest.raises(mlm.ParameterError, match="score has a class that is not one of the 1 labels"):
        mlm.from_arrays(score=["secret"], truth=["a"], labels=["a"])
