"""Arrays become the long table: every cell in its row, whatever the shape, the type and the order in memory."""

import datetime
import re
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier

import polars_mlmetrics as mlm

SCORE = np.array([[0.9, 0.2], [0.4, 0.7], [0.1, 0.3]])
TRUTH = np.array([[1, 0], [0, 1], [1, 1]])
ROWS = [(0, 0, 0.9, 1), (0, 1, 0.2, 0), (1, 0, 0.4, 0), (1, 1, 0.7, 1), (2, 0, 0.1, 1), (2, 1, 0.3, 1)]
NAN = float("nan")


def from_arrays(score: Any, truth: Any, **more: Any) -> pl.DataFrame:
    """The long table; in these tests the score goes first."""
    return mlm.from_arrays(score=score, truth=truth, **more)


def refused(said: str, *given: Any, **more: Any) -> None:
    with pytest.raises(mlm.ParameterError, match=re.escape(said)):
        from_arrays(*given, **more)


def truths(*given: Any, **more: Any) -> list[bool | None]:
    return from_arrays(*given, **more)["truth"].to_list()


# -- shapes ------------------------------------------------------------------------------------------------------------


def test_a_row_for_each_cell_by_sample_and_label() -> None:
    long = from_arrays(SCORE, TRUTH)
    assert long.rows() == ROWS
    assert from_arrays([[0.1], [0.2]], [[0], [1]])["truth"].to_list() == [0, 1]
    assert long.schema == {"sample": pl.Int64, "label": pl.Int64, "score": pl.Float64, "truth": pl.Int64}


@pytest.mark.parametrize(
    "as_given",
    [
        np.asfortranarray,
        lambda values: np.repeat(values, 2, axis=0)[::2],
        lambda values: values[::-1].copy()[::-1],
        lambda values: values.T.copy().T,
        lambda values: values.astype(values.dtype.newbyteorder(">")),
        np.ndarray.tolist,
        lambda values: tuple(map(tuple, values.tolist())),
        lambda values: pl.DataFrame(values, schema=["a", "b"], orient="row"),
        np.asmatrix,
    ],
    ids=["fortran", "strided", "reversed", "transposed", "big-endian", "lists", "tuples", "frame", "matrix"],
)
@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")  # what is tested is an old class
def test_what_an_array_is_made_of_changes_nothing(as_given: Any) -> None:
    for score, truth in ((as_given(SCORE), TRUTH), (SCORE, as_given(TRUTH)), (as_given(SCORE), as_given(TRUTH))):
        assert from_arrays(score, truth).rows() == ROWS


def test_scores_and_truths_go_by_name() -> None:
    """Where both are 0 and 1, nothing would tell the order of scikit-learn from another."""
    made: Any = mlm.from_arrays
    with pytest.raises(TypeError, match="takes values by name only"):
        made([1, 0, 1], [1, 1, 0])
    assert made(truth=[1, 1, 0], score=[1, 0, 1])["score"].to_list() == [1, 0, 1]


def test_one_dimension_is_a_binary_table() -> None:
    long = from_arrays([0.8, 0.3], [True, False])
    assert long.columns == ["sample", "score", "truth"]
    assert long.rows() == [(0, 0.8, True), (1, 0.3, False)]


@pytest.mark.parametrize("as_given", [pl.Series, lambda values: np.repeat(values, 3)[::3]], ids=["series", "strided"])
def test_one_dimension_of_any_kind(as_given: Any) -> None:
    assert from_arrays(as_given([0.8, 0.3]), as_given([1, 0])).rows() == [(0, 0.8, 1), (1, 0.3, 0)]


def test_labels_samples_and_weights_have_their_columns() -> None:
    long = from_arrays(SCORE, TRUTH, labels=["b", "a"], sample=["x", "y", "x"], sample_weight=[1, 2, 3])
    assert long.columns == ["sample", "label", "score", "truth", "weight"]
    assert long["sample"].to_list() == ["x", "x", "y", "y", "x", "x"]
    assert long["label"].to_list() == ["b", "a"] * 3
    assert long["weight"].to_list() == [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]
    assert long["weight"].dtype == pl.Float64


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (np.array([3, 4, 5], dtype=np.int32), pl.Int32),
        (np.array(["x", "y", "z"]), pl.String),
        (np.array(["x", None, "z"], dtype=object), pl.String),
        (pl.Series(["x", "y", "z"], dtype=pl.Enum(["x", "y", "z"])), pl.Enum(["x", "y", "z"])),
        (np.array(["2026-01-01", "2026-01-02", "2026-01-03"], dtype="M8[D]"), pl.Date),
        ([datetime.date(2026, 1, 1)] * 3, pl.Date),
    ],
)
def test_samples_are_of_any_type(values: Any, dtype: Any) -> None:
    column = from_arrays(SCORE, TRUTH, sample=values)["sample"]
    assert column.dtype == dtype
    assert column.to_list() == pl.Series(values).repeat_by(2).explode().to_list()


def test_labels_keep_their_type() -> None:
    labels = pl.Series(["b", "a"], dtype=pl.Enum(["b", "a"]))
    assert from_arrays(SCORE, TRUTH, labels=labels)["label"].dtype == labels.dtype
    assert from_arrays(SCORE, TRUTH, labels=np.array([7, 3], dtype=np.int16))["label"].to_list() == [7, 3] * 3


def test_no_rows_give_no_rows() -> None:
    long = from_arrays(SCORE[:0], TRUTH[:0])
    assert long.schema == from_arrays(SCORE, TRUTH).schema
    assert long.is_empty()
    assert from_arrays(SCORE[:0], np.array([], dtype=int)).schema["truth"] == pl.Boolean


def test_the_table_does_not_change_with_the_arrays() -> None:
    score, truth, sample, weight = SCORE.copy(), TRUTH.copy(), np.arange(3), np.ones(3)
    long = from_arrays(score, truth, sample=sample, sample_weight=weight)
    binary = from_arrays(score[:, 0], truth[:, 0])
    for array in (score, truth, sample, weight):
        array[:] = 7
    assert long.drop("weight").rows() == ROWS
    assert long["weight"].to_list() == [1.0] * 6
    assert binary.rows() == [(0, 0.9, 1), (1, 0.4, 0), (2, 0.1, 1)]


# -- several outputs ---------------------------------------------------------------------------------------------------


def test_several_outputs_are_labels_whose_second_column_counts() -> None:
    outputs = [np.stack([1 - column, column], axis=1) for column in SCORE.T]
    assert from_arrays(outputs, TRUTH).rows() == ROWS
    of_lists = from_arrays(tuple(map(np.ndarray.tolist, outputs)), TRUTH, labels=["a", "b"])
    assert of_lists["label"].to_list() == ["a", "b"] * 3


def test_predict_proba_of_a_classifier_of_several_outputs() -> None:
    rng = np.random.default_rng(3)
    x, truth = rng.normal(size=(30, 2)), rng.integers(0, 2, (30, 3))
    model = MultiOutputClassifier(LogisticRegression()).fit(x, truth)
    long = from_arrays(model.predict_proba(x), truth)
    for label, one in enumerate(model.estimators_):
        column = long.filter(pl.col("label") == label)
        assert column["score"].to_list() == one.predict_proba(x)[:, 1].tolist()
        assert column["truth"].to_list() == truth[:, label].tolist()


@pytest.mark.parametrize(
    ("shapes", "said"),
    [
        ([(3, 2), (3, 1)], "score[1] has the shape (3, 1): it has one column, because training saw one class only"),
        ([(3, 2), (3, 3)], "must all have the shape (n, 2): score[0] has (3, 2), and score[1] has (3, 3)."),
        ([(3, 2), (4, 2)], "score[0] has (3, 2), and score[1] has (4, 2)."),
        ([(3, 2), (3,)], "score[1] has (3,)."),
        ([(2, 3), (2, 3)], "score[0] has (2, 3): each must be (n, 2)"),
    ],
)
def test_an_output_of_another_shape_is_reported(shapes: list[tuple[int, ...]], said: str) -> None:
    refused(said, [np.zeros(shape) for shape in shapes], TRUTH)


# -- classes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("classes", "labels"),
    [
        ([0, 1, 1], None),
        (np.array([0, 1, 1], dtype=np.uint8), None),
        ([False, True, True], None),
        ([0.0, 1.0, 1.0], None),
        ([7, 3, 3], [7, 3]),
        (["b", "a", "a"], ["b", "a"]),
        (np.array(["b", "a", "a"], dtype=object), np.array(["b", "a"])),
        (pl.Series(["b", "a", "a"], dtype=pl.Enum(["a", "b"])), pl.Series(["b", "a"], dtype=pl.Categorical)),
        ([True, False, False], np.array([True, False])),
        ([1, 0, 0], np.array([True, False])),
        ([2**53 + 1, 2**53, 2**53], [2**53 + 1, 2**53]),
        (np.array([2**53 + 1, 2**53, 2**53], dtype=np.uint64), [2**53 + 1, 2**53]),
        (np.array([2**63 + 1, 1, 1], dtype=np.uint64), np.array([2**63 + 1, 1], dtype=np.uint64)),
    ],
    ids=repr,
)
def test_a_class_is_true_in_its_column(classes: Any, labels: Any) -> None:
    assert truths(SCORE, classes, labels=labels) == [True, False, False, True, False, True]


@pytest.mark.parametrize(
    ("classes", "labels"),
    [
        ([0, None, 1], None),
        ([0.0, NAN, 1.0], None),
        ([0.0, NAN, 1.0], [0, 1]),
        (["b", None, "a"], ["b", "a"]),
        (["b", NAN, "a"], ["b", "a"]),
        (np.array(["b", NAN, "a"], dtype=object), ["b", "a"]),
        (pl.Series([0, None, 1]), None),
        (pl.Series(["b", None, "a"]), ["b", "a"]),
        ([False, None, True], None),
    ],
    ids=repr,
)
def test_an_unknown_class_has_unknown_truths(classes: Any, labels: Any) -> None:
    assert truths(SCORE, classes, labels=labels) == [True, False, None, None, False, True]


def test_no_class_is_known() -> None:
    assert truths(SCORE, [None] * 3, labels=["a", "b"]) == [None] * 6
    assert truths(SCORE, [None] * 3) == [None] * 6


def test_classes_of_a_classifier() -> None:
    rng = np.random.default_rng(5)
    x, names = rng.normal(size=(40, 2)), rng.choice(["owl", "cat", "dog"], 40)
    model = LogisticRegression().fit(x, names)
    long = from_arrays(model.predict_proba(x), names, labels=model.classes_)
    assert long.filter("truth")["label"].to_list() == names.tolist()
    assert long["score"].to_list() == [float(p) for row in model.predict_proba(x) for p in row]


TWO = np.array([[0.9, 0.1], [0.4, 0.6], [0.3, 0.7], [0.2, 0.8]])


@pytest.mark.parametrize("score", [TWO, TWO.astype(np.float32), TWO.round().astype(np.int8), TWO.tolist()], ids=repr)
@pytest.mark.parametrize(
    ("classes", "labels", "said"),
    [
        (["no", "no", "yes", "yes"], np.array(["no", "yes"]), "pass score=score[:, 1] and truth=(truth == labels[1])"),
        ([0, 0, 1, None], None, "pass score=score[:, 1] and truth=(truth == 1)"),
    ],
)
def test_both_probabilities_of_two_classes_are_refused(score: Any, classes: Any, labels: Any, said: str) -> None:
    """Of a table of both classes f1 is the accuracy, and nobody would know."""
    refused(said, score, classes, labels=labels)


def test_two_classes_as_scikit_learn_counts_them() -> None:
    """The second class is predicted three times, twice rightly: f1 = 2 * 2 / (3 + 2), and the accuracy is 3 / 4."""
    names, classes = np.array(["no", "no", "yes", "yes"]), np.array(["no", "yes"])
    second = from_arrays(TWO[:, 1], names == classes[1])
    assert mlm.evaluate(second, mlm.f1(), mlm.accuracy()).row(0) == (4 / 5, 3 / 4)
    both = from_arrays(TWO, names[:, None] == classes, labels=classes)
    # Of "no" the one prediction is right, and one of two is found: f1 = 2 * 1 / (1 + 2).
    assert mlm.evaluate(both, mlm.f1(average="macro"), mlm.f1(labels=["yes"])).row(0) == ((4 / 5 + 2 / 3) / 2, 4 / 5)


@pytest.mark.parametrize("score", [TWO * 2, TWO[:, ::-1] + [0, 0.002], np.full((4, 2), NAN), [[None, 0.5]] * 4])
def test_two_columns_that_are_no_two_probabilities_are_labels(score: Any) -> None:
    assert from_arrays(score, [0, 0, 1, 1])["label"].to_list() == [0, 1] * 4


PETS = ["cat", "dog"]


@pytest.mark.parametrize(
    ("classes", "labels", "said"),
    [
        ([0, 1, 2], None, "the class 2 is not one of the labels (0, 1). Pass labels="),
        ([-1, 0, 1], None, "the class -1 is not one of the labels (0, 1)"),
        ([0, 0.5, 1], None, "the class 0.5 is not one of the labels"),
        (["cat", "dgo", "dog"], PETS, "the class 'dgo' is not one of the labels (cat, dog). Did you mean 'dog'?"),
        (["cat", "dog", "dog"], None, "truth has classes of type String, and score has 2 columns: pass labels="),
        (["0", "1", "1"], [0, 1], "truth has classes of type String, and labels are of type Int64"),
        ([1, "a", "a"], [1, 2], "truth holds values of different types"),
        ([0, 1, 1], ["a", "a"], "labels holds 'a' twice"),
        ([0, 1, 1], ["a", None], "labels holds a null"),
        ([0, 1, 1], ["a", 1], "labels holds values of different types"),
        ([0, 1, 1], ["a", "b", "c"], "labels has 3, and score has 2 columns"),
        ([0, 1, 1], [["a", "b"]], "labels has the shape (1, 2): it must have one dimension"),
    ],
)
def test_wrong_classes_and_labels_are_reported(classes: Any, labels: Any, said: str) -> None:
    refused(said, SCORE, classes, labels=labels)


def test_labels_of_a_binary_table_are_reported() -> None:
    said = "labels are the names of the columns of score, but score has the shape (2,)"
    refused(said, [0.1, 0.2], [0, 1], labels=["a", "b"])


# -- values ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "dtype"),
    [
        (np.float32, pl.Float32),
        (np.float64, pl.Float64),
        (np.float16, pl.Float32),
        (np.longdouble, pl.Float64),
        (np.int8, pl.Int8),
        (np.uint64, pl.UInt64),
        (np.bool_, pl.Boolean),
    ],
)
def test_numbers_keep_their_type_where_polars_has_it(given: Any, dtype: Any) -> None:
    values = np.array([[1, 0]], dtype=given)
    long = from_arrays(values, values)
    assert [long["score"].dtype, long["truth"].dtype] == [dtype, dtype]
    assert long["score"].to_list() == long["truth"].to_list() == [1, 0]


def test_nulls_stay_null_and_nan_stays_nan() -> None:
    long = from_arrays([[0.5, None], [1, NAN]], [[1, None], [None, 0]])
    assert long["score"].to_list() == pytest.approx([0.5, None, 1.0, NAN], nan_ok=True)
    assert long["score"].is_nan().to_list() == [False, None, False, True]
    assert long["truth"].to_list() == [1, None, None, 0]


def test_nulls_of_polars_stay_null() -> None:
    frame, series = pl.DataFrame({"a": [1, None], "b": [0, 1]}), pl.Series([0.5, None])
    assert from_arrays([[0.5, 0.4], [0.3, 0.2]], frame)["truth"].to_list() == [1, 0, None, 1]
    assert from_arrays(series, [1, 0], sample_weight=series).rows() == [(0, 0.5, 1, 0.5), (1, None, 0, None)]


@pytest.mark.parametrize(
    ("score", "truth", "said"),
    [
        (SCORE, TRUTH[:2], "score has the shape (3, 2), and truth (2, 2): truth must have the shape of score, or"),
        (SCORE, TRUTH[:2, 0], "score has the shape (3, 2), and truth (2,): "),
        (SCORE, TRUTH[:, :1], "score has the shape (3, 2), and truth (3, 1): "),
        (SCORE[:, 0], TRUTH, "score has the shape (3,), and truth (3, 2): truth must have the shape of score."),
        (SCORE[:, 0], [1, 0], "score has the shape (3,), and truth (2,): truth must have the shape of score."),
        (0.5, 1, "score has the shape (), and truth (): score must have one or two dimensions."),
        (np.zeros((2, 2, 2)), TRUTH, "score has the shape (2, 2, 2), and truth (3, 2): score must have one or two"),
        ([[0.1, 0.2], [0.3]], TRUTH, "score is not an array: its rows have different lengths."),
        (SCORE, [[1, 0], [1]], "truth is not an array: its rows have different lengths."),
        (sparse.csr_matrix(SCORE), TRUTH, "score is a sparse csr_matrix: pass .toarray()."),
        (SCORE, sparse.coo_array(TRUTH), "truth is a sparse coo_array: pass .toarray()."),
        (np.ma.masked_array(SCORE, SCORE > 0.5), TRUTH, "score is a masked array, and its mask would be lost"),
        (pl.LazyFrame({"a": [1]}), TRUTH, "score is a LazyFrame: pass .collect()"),
        ([["a", "b"]], [[1, 0]], "score holds object: it must be numbers or Booleans."),
        (np.array([["a", "b"]]), [[1, 0]], "score holds <U1: it must be numbers or Booleans."),
        (SCORE.astype(complex), TRUTH, "score holds complex128: it must be numbers or Booleans."),
        ([0.5, 0.4], ["yes", "no"], "of more, the scores have the shape (n, k)."),
        ([0.5, "x"], [1, 0], "score holds values of different types."),
        ([[0.1], [0.2]], [0, 0], "score has the shape (2, 1): for a binary table, pass score[:, 0]"),
        (np.zeros((2, 3)), [True, False], "truth has classes of type Boolean, and score has 3 columns"),
    ],
)  # fmt: skip
def test_wrong_arrays_are_reported(score: Any, truth: Any, said: str) -> None:
    refused(said, score, truth)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"sample": [1, 2]}, "sample has the shape (2,), and score has 3 samples: pass one value for each sample."),
        ({"sample": [[1], [2], [3]]}, "sample has the shape (3, 1): it must have one dimension."),
        ({"sample": "abc"}, "sample has the shape (): it must have one dimension."),
        ({"sample": [1, "a", 2]}, "sample holds values of different types."),
        ({"sample_weight": [1, 2]}, "sample_weight has the shape (2,), and score has 3 samples"),
        ({"sample_weight": [[1], [2], [3]]}, "sample_weight has the shape (3, 1), and score has 3 samples"),
        ({"sample_weight": ["1", "2", "3"]}, "sample_weight holds object: it must be numbers or Booleans."),
        ({"sample_weight": 2.0}, "sample_weight has the shape (), and score has 3 samples"),
    ],
)
def test_wrong_samples_and_weights_are_reported(arguments: dict[str, Any], said: str) -> None:
    refused(said, SCORE, TRUTH, **arguments)


def test_a_large_table_is_in_order() -> None:
    n, k = 20_000, 7
    score = np.arange(n * k, dtype=float).reshape(n, k)
    classes = np.arange(n) % k
    long = from_arrays(np.asfortranarray(score), classes)
    assert (long["sample"] * k + long["label"]).equals(long["score"].cast(pl.Int64).alias("sample"))
    assert long.filter("truth")["label"].to_list() == classes.tolist()
