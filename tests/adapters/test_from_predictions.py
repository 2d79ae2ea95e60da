"""Hard predictions become the long table: a row for each class that occurs."""

from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.adapters.wide import from_predictions
from tests.adapters.reshaped import both_frames, refused, rows


@both_frames
def test_a_row_for_each_class_that_occurs(as_frame: Any) -> None:
    long = from_predictions(as_frame({"score": ["b", "a"], "truth": ["b", "c"]}))
    assert rows(long) == [
        (0, "a", 0.0, False), (0, "b", 1.0, True), (0, "c", 0.0, False),
        (1, "a", 1.0, False), (1, "b", 0.0, False), (1, "c", 0.0, True),
    ]  # fmt: skip


def test_classes_come_as_given() -> None:
    long = from_predictions(pl.DataFrame({"score": ["b"], "truth": ["a"]}), classes=["b", "z", "a"])
    assert long.rows() == [(0, "b", 1.0, False), (0, "z", 0.0, False), (0, "a", 0.0, True)]


@both_frames
def test_an_unknown_class_makes_its_column_unknown(as_frame: Any) -> None:
    frame = as_frame({"score": [None, 1, 1], "truth": [2, None, 2]})
    assert rows(from_predictions(frame)) == [
        (0, 1, None, False), (0, 2, None, True),
        (1, 1, 1.0, None), (1, 2, 0.0, None),
        (2, 1, 1.0, False), (2, 2, 0.0, True),
    ]  # fmt: skip


def test_a_class_that_is_not_given_is_unknown() -> None:
    frame = pl.DataFrame({"score": ["a", "x"], "truth": ["x", "a"]})
    assert from_predictions(frame, classes=["a"]).rows() == [(0, "a", 1.0, None), (1, "a", None, True)]


@both_frames
def test_a_sample_is_not_lost_where_no_class_occurs(as_frame: Any) -> None:
    frame = as_frame({"score": [None, None], "truth": [None, None]}, schema={"score": pl.String, "truth": pl.String})
    assert rows(from_predictions(frame)) == [(0, None, None, None), (1, None, None, None)]
    assert rows(from_predictions(frame, classes=["a"])) == [(0, "a", None, None), (1, "a", None, None)]


def test_nan_is_no_class() -> None:
    frame = pl.DataFrame({"score": [float("nan"), 1.0], "truth": [1.0, 2.0]})
    assert from_predictions(frame).rows()[:2] == [(0, 1.0, None, True), (0, 2.0, None, False)]


def test_a_column_of_nulls_alone_goes_with_any_class() -> None:
    assert from_predictions(pl.DataFrame({"score": [None], "truth": ["a"]})).rows() == [(0, "a", None, True)]


@pytest.mark.parametrize(
    ("one", "other", "dtype", "classes"),
    [
        (pl.String, pl.Categorical, pl.String, ["a", "b"]),
        (pl.Enum(["b", "a"]), pl.Enum(["a", "b"]), pl.String, ["a", "b"]),
        (pl.Enum(["b", "a"]), pl.Enum(["b", "a"]), pl.Enum(["b", "a"]), ["b", "a"]),
        (pl.Categorical, pl.Categorical, pl.Categorical, ["a", "b"]),
    ],
)
def test_texts_of_classes_go_together(one: Any, other: Any, dtype: Any, classes: list[str]) -> None:
    frame = pl.DataFrame({"score": ["b"], "truth": ["a"]}, schema={"score": one, "truth": other})
    for given in (None, classes):
        long = from_predictions(frame, classes=given)
        assert long["label"].dtype == dtype
        assert long.rows() == [(0, c, float(c == "b"), c == "a") for c in classes]


def test_booleans_are_classes() -> None:
    frame = pl.DataFrame({"score": [True], "truth": [False]})
    assert from_predictions(frame).rows() == [(0, False, 0.0, True), (0, True, 1.0, False)]


def test_other_columns_may_be_called_like_the_roles_where_they_are_not_kept() -> None:
    frame = pl.DataFrame({"said": ["a"], "is": ["a"], "label": ["x"], "truth": ["y"], "score": [3]})
    assert from_predictions(frame, "said", "is", keep=[]).rows() == [(0, "a", 1.0, True)]


@pytest.mark.parametrize(
    ("columns", "arguments", "error", "said"),
    [
        ({"score": ["a"], "is": ["a"]}, {}, mlm.ColumnError, "truth column 'truth' is not in the table"),
        ({"score": ["a"], "truth": ["a"]}, {"score": 3}, mlm.ParameterError, "score takes a column name, not 3."),
        ({"score": ["a"], "truth": ["a"]}, {"keep": ["truth"]}, mlm.NameCollisionError, "'truth' is a column this"),
        ({"score": ["a"], "truth": [1]}, {}, mlm.ColumnError, "'score' is String and 'truth' is Int64"),
        ({"score": [1.0], "truth": [1]}, {}, mlm.ColumnError, "must have one type"),
        ({"score": [[["a"]]], "truth": [[["a"]]]}, {}, mlm.ColumnError, "'score' is List(String): a class must be"),
        ({"score": ["a"], "truth": ["a"]}, {"classes": "a"}, mlm.ParameterError, "classes takes a list of values"),
        ({"score": ["a"], "truth": ["a"]}, {"classes": []}, mlm.ParameterError, "classes takes a list of values"),
        ({"score": ["a"], "truth": ["a"]}, {"classes": [1, 2]}, mlm.ParameterError, "must have the type String"),
        ({"score": ["a"], "truth": ["a"]}, {"classes": ["a", "b", "a"]}, mlm.ParameterError, "holds 'a' twice"),
        ({"score": ["a"], "truth": ["a"]}, {"classes": ["a", None]}, mlm.ParameterError, "classes holds a null"),
    ],
)
def test_wrong_classes_are_reported(
    columns: dict[str, list[Any]], arguments: dict[str, Any], error: type[mlm.MetricError], said: str
) -> None:
    refused(error, said, from_predictions, pl.LazyFrame(columns), **arguments)


def test_metrics_read_what_comes_out() -> None:
    hard = pl.DataFrame({"score": ["cat", "cat", "owl"], "truth": ["cat", "dog", "owl"]})
    # By hand: the f1 of cat is 2/3, of dog 0, of owl 1.
    assert mlm.evaluate(from_predictions(hard), mlm.f1(average="macro")).item() == pytest.approx(5 / 9, rel=1e-12)


def test_a_sample_column_that_is_not_named_is_pointed_to() -> None:
    wide = pl.DataFrame({"sample": [70, 80], "p_a": [0.1, 0.2], "y_a": [1, 0]})
    with pytest.raises(mlm.NameCollisionError, match="the table has a column 'sample': pass sample='sample'"):
        mlm.from_wide(wide, score="p_{label}", truth="y_{label}")


# -- lists of tags -----------------------------------------------------------------------------------------------------

TAGS = pl.DataFrame(
    {
        "said": [["a", "b"], [], None, ["a", None], ["z"], ["b", "b"]],
        "is": [["a"], ["b"], ["a"], ["c"], ["a", "b"], []],
        "day": [1, 2, 3, 4, 5, 6],
    }
)


def has(tags: list[Any] | None, tag: str, known: list[str] | None) -> bool | None:
    """Whether a list has a tag, in plain Python."""
    if tags is None or (known is not None and any(each not in (*known, None) for each in tags)):
        return None
    return True if tag in tags else None if None in tags else False


@both_frames
@pytest.mark.parametrize("classes", [None, ["c", "b", "a"], ["a", "b", "c", "z", "q"]])
def test_each_tag_of_a_list_is_predicted_or_true(as_frame: Any, classes: list[str] | None) -> None:
    long = from_predictions(as_frame(TAGS), "said", "is", classes=classes).lazy().collect()
    right = [
        (sample, tag, None if said is None else float(said), true, row["day"])
        for sample, row in enumerate(TAGS.to_dicts())
        for tag in classes or ["a", "b", "c", "z"]
        for said, true in [(has(row["said"], tag, classes), has(row["is"], tag, classes))]
    ]
    assert long.rows() == right
    assert long.schema["score"] == pl.Float64


def test_the_numbers_of_tags_are_those_of_scikit_learn() -> None:
    from sklearn.metrics import f1_score, precision_score
    from sklearn.preprocessing import MultiLabelBinarizer

    whole = TAGS.filter(pl.col("said").is_not_null(), pl.col("day") != 4)
    log = from_predictions(whole, "said", "is", classes=["a", "b", "z"])
    found = mlm.evaluate(log, mlm.f1(), mlm.f1(average="macro", undefined=0.0), mlm.precision(average="samples")).row(0)
    binary = MultiLabelBinarizer(classes=["a", "b", "z"])
    said, true = (binary.fit_transform(whole[name].to_list()) for name in ("said", "is"))
    of_samples = precision_score(true[said.any(axis=1)], said[said.any(axis=1)], average="samples")
    assert found == pytest.approx(
        (f1_score(true, said, average="micro"), f1_score(true, said, average="macro"), of_samples)
    )


def test_lists_of_other_kinds() -> None:
    of_arrays = TAGS.head(1).select(said=pl.col("said").cast(pl.Array(pl.Categorical, 2)), true="is")
    assert from_predictions(of_arrays, "said", "true").select("score", "truth").rows() == [(1.0, True), (1.0, False)]
    numbers = pl.DataFrame({"said": [[1.0, float("nan")]], "true": [[2.0]]})
    assert from_predictions(numbers, "said", "true").rows() == [(0, 1.0, 1.0, False), (0, 2.0, None, True)]
    nothing = TAGS.select(said=pl.lit(None), true="is").head(2)
    assert from_predictions(nothing, "said", "true")["score"].null_count() == 4


def test_a_sample_without_tags_is_not_lost_where_none_occurs() -> None:
    empty = TAGS.select("day", said=pl.col("said").list.head(0), true=pl.col("is").list.head(0)).head(2)
    assert from_predictions(empty, "said", "true").rows() == [(0, None, None, None, 1), (1, None, None, None, 2)]


def test_lists_and_plain_classes_do_not_go_together() -> None:
    mixed = TAGS.with_columns(pl.col("is").list.first())
    refused(mlm.ColumnError, "'said' has lists of tags, and 'is' has not", from_predictions, mixed, "said", "is")
    nested = TAGS.select(said=pl.concat_list("said").list.eval(pl.struct(x=pl.element())), true="is")
    refused(mlm.ColumnError, "a class must be a plain value", from_predictions, nested, "said", "true")


@pytest.mark.parametrize("given", [pl.Series(["a"]), pl.Series(["a"]).to_numpy()])
def test_arrays_are_pointed_to_from_arrays(given: Any) -> None:
    with pytest.raises(mlm.ParameterError, match=r"Of arrays use from_arrays\(score=predicted, truth=true\)"):
        mlm.from_predictions(given, given)
