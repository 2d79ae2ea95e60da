"""`confusion`: scored classes and hard predictions, ties, weights, broken rows."""

import math

import numpy as np
import polars as pl
import pytest
import sklearn.metrics as sk
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from tests.oracle import long

CLASSES = 4


def table(weighted: bool) -> tuple[pl.DataFrame, np.ndarray, np.ndarray, np.ndarray | None]:
    rng = np.random.default_rng(3)
    true, score = rng.integers(0, CLASSES, 50), rng.random((50, CLASSES))
    weight = rng.choice([0.5, 1.0, 2.0], 50) if weighted else None
    return long(np.eye(CLASSES, dtype=int)[true], score, weight), true, score.argmax(axis=1), weight


@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_the_matrix_of_scikit_learn(weighted: bool) -> None:
    frame, true, predicted, weight = table(weighted)
    pairs = mlm.confusion(frame, weight="weight" if weighted else None)
    names = [chr(ord("A") + c) for c in range(CLASSES)]
    matrix = {
        (names[t], names[p]): n
        for t, row in enumerate(sk.confusion_matrix(true, predicted, sample_weight=weight))
        for p, n in enumerate(row)
        if n
    }
    assert {(t, p): n for t, p, n in pairs.rows()} == pytest.approx(matrix, rel=1e-12)
    assert pairs.select("truth", "predicted").rows() == sorted(matrix)


def test_hard_predictions_are_counted_as_they_are() -> None:
    frame, true, predicted, _ = table(weighted=False)
    hard = pl.DataFrame({"truth": true, "score": predicted}).with_columns(
        pl.all().replace_strict(dict(enumerate("ABCD")))
    )
    assert_frame_equal(mlm.confusion(hard), mlm.confusion(frame))


def test_tied_best_classes_share_the_sample() -> None:
    pairs = mlm.confusion(long([[1, 0, 0], [0, 1, 0]], [[0.4, 0.4, 0.2], [0.1, 0.8, 0.1]], [3.0, 1.0]), weight="weight")
    assert pairs.rows() == [("A", "A", 1.5), ("A", "B", 1.5), ("B", "B", 1.0)]


def test_unknown_rows_and_samples_without_a_true_class_are_left_out() -> None:
    frame = long([[1, 0], [0, 0], [1, 0]], [[0.9, 0.1], [0.9, 0.1], [0.2, 0.8]])
    frame = frame.with_columns(score=pl.when(~((pl.col("sample") == 2) & (pl.col("label") == "B"))).then("score"))
    assert mlm.confusion(frame).rows() == [("A", "A", 2.0)]


def test_nothing_gives_nothing() -> None:
    frame = long([[1, 0]], [[0.9, 0.1]]).clear()
    assert mlm.confusion(frame).schema == {"truth": pl.String, "predicted": pl.String, "n": pl.Float64}
    assert mlm.confusion(frame).is_empty()


@pytest.mark.parametrize("column", ["score", "truth", "weight"])
def test_a_broken_row_breaks_its_group(column: str) -> None:
    frame = pl.concat(table(weighted=True)[0].with_columns(model=pl.lit(model)) for model in "ab")
    here = (pl.col("model") == "a") & (pl.col("sample") == 7) & (pl.col("label") == "B")
    broken = frame.with_columns(pl.when(here).then(math.nan).otherwise(pl.col(column)).alias(column))
    pairs, before = (mlm.confusion(f, by="model", weight="weight") for f in (broken, frame))
    assert pairs.filter(model="a")["n"].is_nan().all()
    assert_frame_equal(pairs.filter(model="b"), before.filter(model="b"))


def test_a_sample_of_two_true_classes_is_broken() -> None:
    assert mlm.confusion(long([[1, 1], [1, 0]], [[0.9, 0.1], [0.9, 0.1]]))["n"].is_nan().all()


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_a_lazy_frame_stays_lazy(engine: str) -> None:
    frame, *_ = table(weighted=True)
    by = [(pl.col("sample") % 2 == 0).alias("even"), "weight"]
    lazy = mlm.confusion(frame.lazy(), by=by)
    assert isinstance(lazy, pl.LazyFrame)
    collected = lazy.collect(engine=engine)
    assert collected.schema == lazy.collect_schema()
    assert_frame_equal(collected, frame.mlm.confusion(by=by))
    one = frame.filter((pl.col("sample") % 2 == 0) & (pl.col("weight") == 2.0))
    assert_frame_equal(collected.filter("even", weight=2.0).drop("even", "weight"), mlm.confusion(one))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"by": "modle"}, "column 'modle' is not in the table (sample, label, score, truth)."),
        ({"by": "truth"}, "two columns of the result would be called 'truth': give one an .alias(...)."),
        (
            {"scor": "p"},
            "role 'scor' is not one of the roles (sample, label, score, truth, weight). Did you mean 'score'?",
        ),
        ({"score": "label"}, "score is String: it must be Boolean or a number. Cast or map 'label' first."),
        ({"sample": "photo"}, "sample column 'photo' is not in the table (sample, label, score, truth)."),
        (
            {"label": "lable"},
            "label column 'lable' is not in the table (sample, label, score, truth, pair). Did you mean 'label'?",
        ),
        ({"label": "pair"}, "label is List(Int64): a class must be a plain value."),
        ({"weight": "w"}, "weight column 'w' is not in the table (sample, label, score, truth)."),
    ],
)
def test_what_cannot_be_is_said_at_once(arguments: dict[str, str], message: str) -> None:
    frame = long([[1, 0]], [[0.9, 0.1]]).lazy()
    frame = frame.with_columns(pair=pl.concat_list("truth")) if "label" in arguments else frame
    with pytest.raises(mlm.MetricError) as caught:
        mlm.confusion(frame, **arguments)
    assert str(caught.value) == message
