"""Wide tables become the long table: every column in its place, none lost, none guessed."""

from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.adapters.wide import from_wide
from tests.adapters.reshaped import both_frames, refused, rows

TWO_MODELS = {
    "id": [7], "old_cat": [0.9], "old_dog": [0.1], "new_cat": [0.8], "new_dog": [0.2], "is cat": [1], "is dog": [0],
}  # fmt: skip


def test_a_model_that_the_pattern_leaves_out_is_reported() -> None:
    wide = pl.DataFrame(TWO_MODELS)
    said = (
        "columns 'new_cat', 'new_dog' have the labels of score='old_{label}' in their names, but no pattern matches "
        "them. If they are the scores of another model, write {model} in the patterns in place of the model name; or "
        "use keep= to list the columns to keep."
    )
    for frame in (wide, wide.lazy()):
        refused(mlm.ColumnError, said, from_wide, frame, "old_{label}", "is {label}", sample="id")
    of_both = from_wide(wide, "{model}_{label}", "is {label}", sample="id")
    assert of_both["model"].to_list() == ["old", "old", "new", "new"]
    assert from_wide(wide, "old_{label}", "is {label}", sample="id", keep=[])["score"].to_list() == [0.9, 0.1]
    kept = from_wide(wide, "old_{label}", "is {label}", sample="id", keep=["new_cat", "new_dog"])
    assert kept["new_cat"].to_list() == [0.8, 0.8]


@pytest.mark.parametrize(
    ("beside", "is_told"),
    [
        ({"q_cat": [0.1]}, False), ({"q_cat": ["x"], "q_dog": ["y"]}, False), ({"catalogue": [1], "dog": [2]}, False),
        ({"cat": [0.1], "dog": [0.2]}, True), ({"cat_q": [1], "dog_q": [2]}, True),
        ({"cat_cat": [1], "cat_dog": [2]}, True), ({"w_cat": [True], "w_dog": [False], "v_cat": [1]}, True),
    ],
    ids=str,
)  # fmt: skip
def test_columns_that_have_every_label_in_their_names_are_reported(beside: dict[str, Any], is_told: bool) -> None:
    wide = pl.DataFrame({"id": [7], "p_cat": [0.9], "p_dog": [0.1], "y_cat": [1], "y_dog": [0], **beside})
    if is_told:
        with pytest.raises(mlm.ColumnError, match="but no pattern matches them"):
            from_wide(wide, "p_{label}", "y_{label}", sample="id")
    else:
        assert from_wide(wide, "p_{label}", "y_{label}", sample="id").columns[-len(beside) :] == [*beside]


@both_frames
def test_a_column_for_each_label(as_frame: Any) -> None:
    wide = as_frame({"p_b": [0.9, None], "p_a": [0.2, 0.7], "y_a": [0, 1], "y_b": [1, None], "id": [8, 7]})
    long = from_wide(wide, "p_{label}", "y_{label}", sample="id")
    assert rows(long) == [(8, "b", 0.9, 1), (8, "a", 0.2, 0), (7, "b", None, None), (7, "a", 0.7, 1)]


@both_frames
def test_a_column_for_each_model_and_no_label(as_frame: Any) -> None:
    """One truth for all, even where the pattern of scores would match it; or one for each model."""
    wide = as_frame({"id": [7, 8], "p_b": [0.9, None], "p_a": [0.2, 0.7], "p_true": [1, 0], "n": [3, 4]})
    long = from_wide(wide, "p_{model}", "p_true", sample="id")
    assert rows(long) == [("b", 7, 0.9, 1, 3), ("a", 7, 0.2, 1, 3), ("b", 8, None, 0, 4), ("a", 8, 0.7, 0, 4)]
    assert long.lazy().collect_schema().names() == ["model", "sample", "score", "truth", "n"]
    of_each = as_frame({"p_b": [0.9], "p_a": [0.2], "y_a": [1], "y_b": [0]})
    assert rows(from_wide(of_each, "p_{model}", "y_{model}")) == [("b", 0, 0.9, 0), ("a", 0, 0.2, 1)]


def test_models_come_in_order_and_need_not_have_all_labels() -> None:
    wide = pl.DataFrame({"p_m2_b": [0.1], "p_m1_a": [0.2], "p_m2_a": [0.3], "y_a": [1], "y_b": [0]})
    long = from_wide(wide, "p_{model}_{label}", "y_{label}")
    assert long.columns == ["model", "sample", "label", "score", "truth"]
    assert long.rows() == [("m2", 0, "b", 0.1, 0), ("m2", 0, "a", 0.3, 1), ("m1", 0, "a", 0.2, 1)]


def test_models_may_have_truths_of_their_own() -> None:
    wide = pl.DataFrame({"p a@m": [0.1], "p a@n": [0.2], "true a@n": [0], "true a@m": [1]})
    long = from_wide(wide, "p {label}@{model}", "true {label}@{model}")
    assert long.rows() == [("m", 0, "a", 0.1, 1), ("n", 0, "a", 0.2, 0)]


@pytest.mark.parametrize("text", [".*", "a+b", "(p", "p)", "[x]", "$", "^", "\\d", "|", "a\nb", "ä", " ", "{", "}"])
def test_the_text_of_a_pattern_stands_for_itself(text: str) -> None:
    wide = pl.DataFrame({f"{text}x{text}": [0.5], f"{text}x{text}y": [1], "other": [3]})
    long = from_wide(wide, f"{text}{{label}}{text}", f"{text}{{label}}{text}y")
    assert long.rows() == [(0, "x", 0.5, 1, 3)]


@pytest.mark.parametrize("label", ["a", "b_c", "_", "a b", "", "{label}", "^a.*$", "*", "p_", "a\nb", "日本"])
def test_a_label_is_whatever_stands_in_its_place_but_nothing(label: str) -> None:
    wide = pl.DataFrame({f"p_{label}": [0.5], f"y_{label}": [1]})
    if label:
        assert from_wide(wide, "p_{label}", "y_{label}").rows() == [(0, label, 0.5, 1)]
    else:
        refused(mlm.ColumnError, "score pattern 'p_{label}' is not", from_wide, wide, "p_{label}", "y_{label}")


@pytest.mark.parametrize(
    ("score", "truth", "column"),
    [
        ("p_{label}", "{label}_y", "p_y"), ("p_{label}", "p_{label}", "p_a"),
        ("{label}", "{label}_y", "a_y"), ("p_{label}", "{label}", "p_a"), ("{model}_{label}", "p_{label}", "p_a"),
    ],
)  # fmt: skip
def test_a_column_of_both_patterns_is_refused(score: str, truth: str, column: str) -> None:
    wide = pl.DataFrame({"p_a": [0.5], "a_y": [1], "p_y": [1]})
    said = (
        f"column '{column}' matches both score='{score}' and truth='{truth}': rename the columns of one of them, so "
        "that each pattern has a text of its own."
    )
    refused(mlm.ColumnError, said, from_wide, wide, score, truth)


@pytest.mark.parametrize(("truth", "model", "label"), [("y_c", "a_b", "c"), ("y_b_c", "a", "b_c")])
def test_of_two_readings_the_one_with_a_truth_is_taken(truth: str, model: str, label: str) -> None:
    wide = pl.DataFrame({"p_a_b_c": [0.5], truth: [1]})
    assert from_wide(wide, "p_{model}_{label}", "y_{label}").rows() == [(model, 0, label, 0.5, 1)]


COLUMN, PARAMETER = mlm.ColumnError, mlm.ParameterError
OF_TRUTHS = "column 'y_a_b_c' can be read in 2 ways by truth='y_{model}_{label}'"
OF_MODELS = "p_{model}_{label}", "y_{label}"
PLAIN = "p_{label}", "y_{label}"
SEVEN = [f"p_{i}" for i in range(7)]


@pytest.mark.parametrize(
    ("columns", "patterns", "said"),
    [
        (["p_a_b_c", "y_c", "y_b_c"], OF_MODELS, "column 'p_a_b_c' can be read in 2 ways by score='p_{model}_{label}'"),
        (["a|b_c", "a_b|c", "y_a_b_c"], ("{model}|{label}", "y_{model}_{label}"), OF_TRUTHS),
        (["a___b", "true b", "true _b"], ("{model}__{label}", "true {label}"), "'a___b' can be read in 2 ways"),
        (["p_a", "p_b", "y_a"], PLAIN, "score column 'p_b' has no truth column 'y_b'. Use sample= or keep="),
        (["p_a", "y_b", "y_a"], PLAIN, "truth column 'y_b' has no score column 'p_b'."),
        (["p_a", "y_a", *SEVEN], PLAIN, "; score column 'p_4' has no truth column 'y_4'; and 2 more."),
        (["p_a_b_c", "p_m_x", "y_x"], OF_MODELS, "score column 'p_a_b_c' has no truth column 'y_b_c' or 'y_c'"),
    ],
    ids=["two scores", "two truths", "texts that overlap", "no truth", "no score", "many without truth", "of models"],
)
def test_columns_that_do_not_pair_are_named(columns: list[str], patterns: tuple[str, str], said: str) -> None:
    refused(COLUMN, said, from_wide, pl.DataFrame({column: [1] for column in columns}), *patterns)


@pytest.mark.parametrize(
    ("score", "truth", "error", "said"),
    [
        ("q_{label}", "y_{label}", COLUMN, "score pattern 'q_{label}' is not matched by any column of the table"),
        ("p_{label}", "z_{label}", COLUMN, "truth pattern 'z_{label}' is not matched by any column of the table"),
        ("p_{labl}", "y_{label}", PARAMETER, "Did you mean 'label'?"),
        ("p_{label}", "y_{modell}_{label}", PARAMETER, "Did you mean 'model'?"),
        ("p_{}", "y_{label}", PARAMETER, "field '' is not one of the fields (label, model)"),
        ("p_", "y_{label}", PARAMETER, "score='p_' must hold {label}, or {model} where a model has one column of"),
        ("p_{label}", "{model}", PARAMETER, "truth='{model}' holds {model}, and score='p_{label}' does not: add it"),
        ("p_{label}", "y", PARAMETER, "score='p_{label}' and truth='y': both must hold {label}, or neither"),
        ("p_{model}", "y_{label}", PARAMETER, "score='p_{model}' and truth='y_{label}': both must hold {label}, or"),
        ("p_{label}_{label}", "y_{label}", PARAMETER, "may hold {label} once only"),
        ("p_{model}", "z", COLUMN, "truth pattern 'z' is not matched by any column of the table"),
        ("{model}{label}{model}", "y_{label}", PARAMETER, "may hold {model} once only"),
        ("p_{label}", "{model}_{label}", PARAMETER, "holds {model}, and score='p_{label}' does not"),
        (3, "y_{label}", PARAMETER, "score takes a pattern of column names"),
    ],
)
def test_a_wrong_pattern_is_reported(score: Any, truth: str, error: type[mlm.MetricError], said: str) -> None:
    refused(error, said, from_wide, pl.LazyFrame({"p_a": [0.5], "y_a": [1]}), score, truth)


@pytest.mark.parametrize(
    ("scores", "truths", "types"),
    [
        ((pl.Float32, pl.Float32), (pl.Int8, pl.Int8), (pl.Float32, pl.Int8)),
        ((pl.Float32, pl.Float64), (pl.Boolean, pl.Boolean), (pl.Float64, pl.Boolean)),
        ((pl.Int64, pl.Int32), (pl.Boolean, pl.UInt8), (pl.Float64, pl.Int64)),
        ((pl.Boolean, pl.Float32), (pl.Int64, pl.Float64), (pl.Float64, pl.Float64)),
        ((pl.Decimal(9, 2), pl.Decimal(9, 3)), (pl.Boolean, pl.Float32), (pl.Float64, pl.Float64)),
        ((pl.Int64, pl.Int64), (pl.UInt64, pl.UInt64), (pl.Int64, pl.UInt64)),
    ],
)
def test_types_that_go_together_become_one(scores: Any, truths: Any, types: Any) -> None:
    columns = dict(zip(["score_a", "score_b", "truth_a", "truth_b"], [*scores, *truths], strict=True))
    long = from_wide(pl.DataFrame({name: [0, 1] for name in columns}).cast(columns))
    assert (long["score"].dtype, long["truth"].dtype) == types
    assert long["score"].cast(pl.Float64).to_list() == long["truth"].cast(pl.Float64).to_list() == [0, 0, 1, 1]


def test_a_column_of_nulls_goes_with_any_type() -> None:
    wide = pl.DataFrame({"score_a": [None], "score_b": [0.5], "truth_a": [True], "truth_b": [None]})
    assert from_wide(wide).rows() == [(0, "a", None, True), (0, "b", 0.5, None)]
    nulls = pl.DataFrame({"score_a": [None], "truth_a": [None]})
    assert from_wide(nulls).rows() == [(0, "a", None, None)]


def test_texts_stay_texts() -> None:
    wide = pl.DataFrame({"score_a": ["x"], "score_b": ["y"], "truth_a": ["x"], "truth_b": ["z"]})
    wide = wide.cast({"score_a": pl.Enum(["x"]), "truth_b": pl.Categorical})
    assert from_wide(wide).rows() == [(0, "a", "x", "x"), (0, "b", "y", "z")]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([0.5, "x"], "scores must have compatible types: 'score_a' is Float64, and 'score_b' is String"),
        ([[0.5], [0.5]], "score 'score_a' is List(Float64): it must be a plain value."),
    ],
)
def test_types_that_do_not_go_together_are_reported(values: list[Any], said: str) -> None:
    wide = pl.LazyFrame({"score_a": values[:1], "score_b": values[1:], "truth_a": [1], "truth_b": [0]})
    refused(mlm.ColumnError, said, from_wide, wide)
