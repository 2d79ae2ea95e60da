"""`confusion`: scored classes and hard predictions, ties, weights, broken rows."""

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
import sklearn.metrics as sk
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from tests.support.readings import long

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
    matrix = sk.confusion_matrix(true, predicted, sample_weight=weight)
    cells = [(names[t], names[p], pytest.approx(n, rel=1e-12)) for (t, p), n in np.ndenumerate(matrix) if n]
    assert pairs.rows() == cells


def test_hard_predictions_are_counted_as_they_are() -> None:
    frame, true, predicted, _ = table(weighted=False)
    numbers = pl.DataFrame({"truth": true, "score": predicted})
    hard = numbers.with_columns(pl.all().replace_strict(dict(enumerate("ABCD"))))
    assert_frame_equal(mlm.confusion(hard), mlm.confusion(frame))


def test_tied_best_classes_share_the_sample() -> None:
    pairs = mlm.confusion(long([[1, 0, 0], [0, 1, 0]], [[0.4, 0.4, 0.2], [0.1, 0.8, 0.1]], [3.0, 1.0]), weight="weight")
    assert pairs.rows() == [("A", "A", 1.5), ("A", "B", 1.5), ("B", "B", 1.0)]


def test_unknown_rows_and_samples_without_a_true_class_are_left_out() -> None:
    frame = long([[1, 0], [0, 0], [1, 0]], [[0.9, 0.1], [0.9, 0.1], [0.2, 0.8]])
    frame = frame.with_columns(score=pl.when(~((pl.col("sample") == 2) & (pl.col("label") == "B"))).then("score"))
    assert mlm.confusion(frame).rows() == [("A", "A", 2.0)]


@pytest.mark.parametrize("truth", [pl.Int64, pl.Boolean, pl.UInt8])
def test_probabilities_are_no_classes(truth: pl.DataType) -> None:
    frame = pl.DataFrame({"score": [0.9, 1e-24], "truth": pl.Series([1, 0]).cast(truth)})
    for given in (frame, frame.lazy()):
        with pytest.raises(mlm.ColumnError) as caught:
            mlm.confusion(given)
        assert str(caught.value) == (
            f"confusion compares classes, but score is Float64, truth is {truth()}. A probability needs a threshold: "
            "accuracy(), or confusion(threshold=0.5). If the scores are class numbers that became floats, cast them "
            "to integers."
        )
    # What is a number on both sides is a class, and so is a whole number.
    whole = frame.with_columns(pl.col("score").ceil().cast(pl.Int64))
    assert mlm.confusion(whole).height == 2
    assert mlm.confusion(frame.with_columns(pl.col("truth").cast(pl.Float64))).height == 2


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


SEVERAL = long([[1, 0], [1, 1]], [[0.9, 0.1], [0.9, 0.1]]).with_columns(sample=pl.format("photo {}", "sample"))


def test_a_sample_of_two_true_classes_is_an_error() -> None:
    with pytest.raises(mlm.TableError) as caught:
        mlm.confusion(SEVERAL)
    assert str(caught.value) == (
        "sample 'photo 1' has several true classes ('A', 'B'), and confusion of classes needs one true class per "
        "sample. Otherwise pass threshold=, e.g. 0.5."
    )
    with pytest.raises(mlm.TableError, match="sample 'photo 1' has several"):
        mlm.confusion(SEVERAL, by="sample")


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_a_lazy_frame_says_so_when_it_is_collected(engine: str) -> None:
    lazy = mlm.confusion(SEVERAL.lazy())
    with pytest.raises(pl.exceptions.PolarsError, match="sample photo 1 has several true classes"):
        lazy.collect(engine=engine)


def test_rows_that_are_left_out_make_no_second_class() -> None:
    is_used = (pl.col("sample") != "photo 1") | (pl.col("label") == "A")
    frame = SEVERAL.with_columns(score=pl.when(is_used).then("score"))
    assert mlm.confusion(frame).rows() == mlm.confusion(frame.lazy()).collect().rows() == [("A", "A", 2.0)]


# --- decisions --------------------------------------------------------------------------------------------------------

CELLS = {"tn": (0, 0), "fp": (0, 1), "fn": (1, 0), "tp": (1, 1)}  # where scikit-learn has them


def decided(weighted: bool) -> tuple[pl.DataFrame, np.ndarray, np.ndarray, np.ndarray | None]:
    """Several true labels a sample; nothing is predicted of the last label, and none of the first is true."""
    rng = np.random.default_rng(4)
    truth, score = rng.integers(0, 2, (30, CLASSES)), rng.choice([0.1, 0.3, 0.5, 0.7, 0.9], (30, CLASSES))
    truth[:, 0], score[:, -1] = 0, 0.2
    weight = rng.choice([0.5, 1.0, 2.0], 30) if weighted else None
    return long(truth, score, weight), truth, score, weight


@pytest.mark.parametrize("inclusive", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_cells_of_labels_are_those_of_scikit_learn(weighted: bool, inclusive: bool) -> None:
    frame, truth, score, weight = decided(weighted)
    said = (score >= 0.5 if inclusive else score > 0.5).astype(int)
    roles = {"weight": "weight"} if weighted else {}
    table = mlm.confusion(frame, threshold=0.5, inclusive=inclusive, **roles)
    texts, flags = dict.fromkeys(("label", "cell"), pl.String), dict.fromkeys(("truth", "predicted"), pl.Boolean)
    assert table.schema == {**texts, **flags, "n": pl.Float64}
    matrices = sk.multilabel_confusion_matrix(truth, said, sample_weight=weight)
    expected = [
        (label, cell, bool(CELLS[cell][0]), bool(CELLS[cell][1]), pytest.approx(matrix[CELLS[cell]], rel=1e-12))
        for label, matrix in zip("ABCD", matrices, strict=True)
        for cell in ("tp", "fp", "fn", "tn")
    ]
    assert table.rows() == expected
    assert 0.0 in table["n"].to_list()


def test_cells_of_one_decision_are_those_of_scikit_learn() -> None:
    frame, truth, score, _ = decided(weighted=False)
    table = mlm.confusion(frame.drop("label", "sample"), threshold=0.5)
    matrix = sk.confusion_matrix(truth.reshape(-1), (score > 0.5).reshape(-1))
    assert dict(table.select("cell", "n").rows()) == {cell: matrix[place] for cell, place in CELLS.items()}
    assert table.columns == ["cell", "truth", "predicted", "n"]


def test_thresholds_by_label_and_by_row() -> None:
    frame, *_ = decided(weighted=False)
    bounds = {"A": 0.2, "B": 0.5, "C": 0.8, "D": 0.1}
    by_label = mlm.confusion(frame, threshold=bounds)
    parts = [mlm.confusion(frame.filter(label=label), threshold=bound) for label, bound in bounds.items()]
    assert_frame_equal(by_label, pl.concat(parts))
    by_row = frame.with_columns(bound=pl.col("label").replace_strict(bounds))
    assert_frame_equal(mlm.confusion(by_row, threshold=pl.col("bound")), by_label)
    of_c = mlm.confusion(frame, threshold={"C": 0.8, None: 0.5}).filter(label="C")
    assert_frame_equal(of_c, by_label.filter(label="C"))
    with pytest.raises(mlm.ParameterError, match="no threshold for label 'A', "):
        mlm.confusion(frame, threshold={"C": 0.8})
    lazily = mlm.confusion(frame.lazy(), threshold={"C": 0.8}).collect()
    assert lazily.filter(pl.col("label") != "C")["n"].is_null().all()
    assert_frame_equal(lazily.filter(label="C"), by_label.filter(label="C"))


def test_what_cells_leave_out_and_what_breaks_them() -> None:
    frame = pl.DataFrame(
        {
            "model": ["a"] * 5 + ["b"] * 3,
            "label": ["x", "x", "x", "y", "z", "x", "x", "y"],
            "score": [0.9, None, 0.1, 0.9, None, math.nan, 0.9, 0.9],
            "truth": [1, 1, 1, None, 1, 1, 1, 0],
        }
    )
    for given in (frame, frame.lazy()):
        cells = mlm.confusion(given, by="model", threshold=0.5).lazy().collect()
        found = {key: group["n"].to_list() for key, group in cells.group_by("model", "label", maintain_order=True)}
        assert list(found) == [("a", "x"), ("b", "x"), ("b", "y")]
        assert found["a", "x"] == [1, 0, 1, 0]
        assert found["b", "y"] == [0, 1, 0, 0]
        assert all(map(math.isnan, found["b", "x"]))
    assert mlm.confusion(frame.clear(), threshold=0.5).is_empty()
    assert mlm.confusion(frame.clear().drop("label"), threshold=0.5).is_empty()


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_lazy_cells(engine: str) -> None:
    frame, *_ = decided(weighted=True)
    by = [(pl.col("sample") % 2 == 0).alias("even")]
    lazy = mlm.confusion(frame.lazy(), by, threshold=0.5, weight="weight")
    collected = lazy.collect(engine=engine)
    assert collected.schema == lazy.collect_schema()
    assert_frame_equal(collected, frame.mlm.confusion(by, threshold=0.5, weight="weight"))
    odd = mlm.confusion(frame.filter(pl.col("sample") % 2 == 1), threshold=0.5, weight="weight")
    assert_frame_equal(collected.filter(~pl.col("even")).drop("even"), odd)


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


ROLES = "sample, label, score, truth"
LACKS = f"is not in the table ({ROLES})"
NO_NUMBER = (
    "score is String: it must be Boolean or a number. Cast or map 'label' first. If it is the predicted class, "
    "mlm.from_predictions makes the long table."
)
CELL = pl.lit(1).alias("cell")
TWO = "two columns of the result would have the name '{}': use .alias(...) on one of them."
HELP = "help(confusion) lists what it takes."
ARGMAX = "without a threshold, confusion already takes the best class of a sample: leave out 'argmax'."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"by": "modle"}, f"column 'modle' {LACKS}."),
        ({"by": "truth"}, TWO.format("truth")),
        ({"scor": "p"}, f"role 'scor' is not one of the roles ({ROLES}, weight). Did you mean 'score'? {HELP}"),
        ({"score": "label"}, NO_NUMBER),
        ({"sample": "photo"}, f"sample column 'photo' {LACKS}."),
        ({"label": "lable"}, f"label column 'lable' is not in the table ({ROLES}, pair). Did you mean 'label'?"),
        ({"label": "pair"}, "label is List(Int64): a class must be a plain value."),
        ({"by": "cell", "threshold": 0.5}, f"column 'cell' {LACKS}."),
        ({"by": CELL, "threshold": 0.5}, TWO.format("cell")),
        ({"threshold": "argmax"}, ARGMAX),
        ({"inclusive": True}, "confusion: inclusive works only with a threshold. Pass threshold= too."),
        ({"weight": "w"}, f"weight column 'w' {LACKS}."),
    ],
)
def test_what_cannot_be_is_said_at_once(arguments: dict[str, Any], message: str) -> None:
    frame = long([[1, 0]], [[0.9, 0.1]]).lazy()
    frame = frame.with_columns(pair=pl.concat_list("truth")) if "label" in arguments else frame
    with pytest.raises(mlm.MetricError) as caught:
        mlm.confusion(frame, **arguments)
    assert str(caught.value) == message
