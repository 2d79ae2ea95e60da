"""Wide tables, tables of lists and hard predictions become the long table: every value in its place, none lost."""

import random
import re
import sys
from collections.abc import Callable
from typing import Any
from unittest import mock

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.adapters.wide import from_lists, from_predictions, from_wide
from tests.test_plan import fallbacks

INF = float("inf")
both_frames = pytest.mark.parametrize("as_frame", [pl.DataFrame, pl.LazyFrame])
EVERY: list[Callable[..., Any]] = [from_wide, from_lists, from_predictions]
every_shape = pytest.mark.parametrize("shape", EVERY, ids=lambda shape: shape.__name__)

# The smallest table of each shape, with two more columns.
SMALL: dict[Callable[..., Any], dict[str, list[Any]]] = {
    from_wide: {"score_a": [0.9, 0.1], "truth_a": [1, 0], "id": ["x", "y"], "day": [5, 6]},
    from_lists: {"score": [[0.9], [0.1]], "truth": [[1], [0]], "id": ["x", "y"], "day": [5, 6]},
    from_predictions: {"score": ["a", "a"], "truth": ["a", "a"], "id": ["x", "y"], "day": [5, 6]},
}


def refused(error: type[mlm.MetricError], said: str, shape: Callable[..., Any], *given: Any, **more: Any) -> None:
    with pytest.raises(error, match=re.escape(said)):
        shape(*given, **more)


def rows(frame: pl.DataFrame | pl.LazyFrame) -> list[tuple[Any, ...]]:
    return frame.lazy().collect().rows()


# -- samples and kept columns, of every shape --------------------------------------------------------------------------


@every_shape
@both_frames
def test_a_frame_gives_its_own_kind(shape: Callable[..., Any], as_frame: Any) -> None:
    assert type(shape(as_frame(SMALL[shape]))) is as_frame


@every_shape
@pytest.mark.parametrize("given", [None, [1], {"score": [1]}], ids=repr)
def test_what_is_no_frame_is_refused(shape: Callable[..., Any], given: Any) -> None:
    said = f"{shape.__name__} takes a DataFrame or a LazyFrame, not a {type(given).__name__}."
    refused(mlm.ParameterError, said, shape, given)


@every_shape
def test_rows_are_numbered_where_no_sample_is_named(shape: Callable[..., Any]) -> None:
    long = shape(pl.DataFrame(SMALL[shape]))
    assert long.columns == ["sample", "label", "score", "truth", "id", "day"]
    assert long["sample"].dtype == pl.Int64
    assert long.select("sample", "id", "day").rows() == [(0, "x", 5), (1, "y", 6)]


@every_shape
@pytest.mark.parametrize(
    ("sample", "keep", "columns"),
    [
        ("id", None, ["sample", "label", "score", "truth", "day"]),
        ("id", [], ["sample", "label", "score", "truth"]),
        ("id", "day", ["sample", "label", "score", "truth", "day"]),
        ("id", ["id"], ["sample", "label", "score", "truth", "id"]),
        (["id"], None, ["id", "label", "score", "truth", "day"]),
        (["day", "id"], None, ["day", "id", "label", "score", "truth"]),
        (["day", "id"], ["id"], ["day", "id", "label", "score", "truth"]),
        (None, ["day", "id"], ["sample", "label", "score", "truth", "day", "id"]),
    ],
)
def test_samples_and_kept_columns(shape: Callable[..., Any], sample: Any, keep: Any, columns: list[str]) -> None:
    long = shape(pl.DataFrame(SMALL[shape]), sample=sample, keep=keep)
    assert long.columns == columns
    values = {"sample": [0, 1] if sample is None else ["x", "y"], "id": ["x", "y"], "day": [5, 6]}
    for column in set(columns) & set(values):
        assert long[column].to_list() == values[column]


@every_shape
def test_a_sample_column_of_that_name_is_the_sample(shape: Callable[..., Any]) -> None:
    frame = pl.DataFrame(SMALL[shape]).rename({"id": "sample"})
    for keep in (None, ["sample", "day"]):
        long = shape(frame, sample="sample", keep=keep)
        assert long.columns == ["sample", "label", "score", "truth", "day"]


@every_shape
@pytest.mark.parametrize(
    ("renamed", "arguments"),
    [
        ("sample", {}),
        ("sample", {"sample": "id"}),
        ("sample", {"sample": "id", "keep": ["sample"]}),
        ("label", {}),
        ("label", {"keep": ["label"]}),
        ("label", {"sample": ["id", "label"]}),
    ],
)
def test_no_column_is_called_like_one_that_is_made(
    shape: Callable[..., Any], renamed: str, arguments: dict[str, Any]
) -> None:
    frame = pl.DataFrame(SMALL[shape]).rename({"day": renamed})
    refused(mlm.NameCollisionError, f"{renamed!r}", shape, frame, **arguments)


@every_shape
@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"sample": "ids"}, mlm.ColumnError, "sample column 'ids' is not in the table"),
        ({"keep": ["dya"]}, mlm.ColumnError, "Did you mean 'day'?"),
        ({"sample": []}, mlm.ParameterError, "sample is an empty list"),
        ({"sample": ["id", "id"]}, mlm.ParameterError, "sample names the column 'id' twice"),
        ({"keep": ["id", "id"]}, mlm.ParameterError, "keep names the column 'id' twice"),
        ({"sample": 3}, mlm.ParameterError, "sample takes a column name or a list of them, not 3"),
        ({"keep": [pl.col("id")]}, mlm.ParameterError, "keep takes a column name or a list of them"),
    ],
)
def test_a_wrong_sample_or_kept_column_is_told(
    shape: Callable[..., Any], arguments: dict[str, Any], error: type[mlm.MetricError], said: str
) -> None:
    refused(error, said, shape, pl.LazyFrame(SMALL[shape]), **arguments)


@every_shape
@pytest.mark.parametrize("name", ["*", "^.*$"])
def test_a_column_whose_name_is_a_pattern_is_not_taken_for_many(shape: Callable[..., Any], name: str) -> None:
    frame = pl.DataFrame(SMALL[shape]).rename({"day": name})
    refused(mlm.ColumnError, f"column {name!r}: Polars reads this name as a pattern", shape, frame)
    assert shape(frame, keep=["id"]).columns == ["sample", "label", "score", "truth", "id"]


@every_shape
def test_no_rows_give_no_rows_of_the_same_types(shape: Callable[..., Any]) -> None:
    frame = pl.DataFrame(SMALL[shape])
    assert shape(frame.clear()).schema == shape(frame).schema
    assert shape(frame.clear()).is_empty()


@every_shape
@pytest.mark.parametrize("engine", ["streaming", "in-memory"])
def test_a_lazy_table_is_the_same_in_the_same_order(shape: Callable[..., Any], engine: Any) -> None:
    frame = pl.concat([pl.DataFrame(SMALL[shape])] * 1000).with_columns(day=pl.int_range(2000))
    plan = shape(frame.lazy())
    assert plan.collect_schema() == shape(frame).schema
    assert plan.collect(engine=engine).equals(shape(frame))
    assert shape(frame)["day"].to_list() == list(range(2000))


def plans() -> dict[str, pl.LazyFrame]:
    lists = pl.LazyFrame({"score": [[0.9]], "label": [["a"]], "named": [["a", "b"]]})
    structs = pl.LazyFrame({"score": [[{"label": "a", "score": 2}]], "truth": [[1]]})
    return {
        "wide": from_wide(pl.LazyFrame(SMALL[from_wide])),
        "wide, of models": from_wide(pl.LazyFrame({"a_x": [0.1], "t_x": [1]}), "{model}_{label}", "t_{label}"),
        "lists": from_lists(pl.LazyFrame(SMALL[from_lists])),
        "lists of structs": from_lists(structs),
        "structs": from_lists(pl.LazyFrame({"score": [{"a": 0.5}], "truth": [{"a": 1}]})),
        "names of true labels": from_lists(lists, true_labels="named", label="label"),
        "predictions": from_predictions(pl.LazyFrame(SMALL[from_predictions])),
        "given classes": from_predictions(pl.LazyFrame(SMALL[from_predictions]), classes=["a", "b"]),
    }


@pytest.mark.parametrize("plan", plans().values(), ids=plans().keys())
def test_a_plan_is_pure_and_native(plan: pl.LazyFrame) -> None:
    assert fallbacks(plan) == []
    with mock.patch.dict(sys.modules, {"cloudpickle": None}):
        plan.serialize()


@pytest.mark.parametrize("plan", plans().values(), ids=plans().keys())
def test_a_plan_knows_its_types(plan: pl.LazyFrame) -> None:
    assert plan.collect_schema() == plan.collect().schema


# -- from_wide ---------------------------------------------------------------------------------------------------------

TWO_MODELS = {
    "id": [7], "old_cat": [0.9], "old_dog": [0.1], "new_cat": [0.8], "new_dog": [0.2], "y_cat": [1], "y_dog": [0],
}  # fmt: skip


def test_a_model_that_the_pattern_leaves_out_is_told() -> None:
    wide = pl.DataFrame(TWO_MODELS)
    said = (
        "columns 'new_cat', 'new_dog' have the labels of score='old_{label}' in their names, but no pattern matches "
        "them. If they are the scores of another model, write {model} in the patterns in place of the model name; or "
        "use keep= to list the columns to keep."
    )
    for frame in (wide, wide.lazy()):
        refused(mlm.ColumnError, said, from_wide, frame, "old_{label}", "y_{label}", sample="id")
    assert from_wide(wide, "{model}_{label}", "y_{label}", sample="id")["model"].to_list() == [
        "old",
        "old",
        "new",
        "new",
    ]
    assert from_wide(wide, "old_{label}", "y_{label}", sample="id", keep=[])["score"].to_list() == [0.9, 0.1]
    kept = from_wide(wide, "old_{label}", "y_{label}", sample="id", keep=["new_cat", "new_dog"])
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
def test_columns_that_have_every_label_in_their_names_are_told(beside: dict[str, Any], is_told: bool) -> None:
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


def test_models_come_in_order_and_need_not_have_all_labels() -> None:
    wide = pl.DataFrame({"m2_b": [0.1], "m1_a": [0.2], "m2_a": [0.3], "y_a": [1], "y_b": [0]})
    long = from_wide(wide, "{model}_{label}", "y_{label}")
    assert long.columns == ["model", "sample", "label", "score", "truth"]
    assert long.rows() == [("m2", 0, "b", 0.1, 0), ("m2", 0, "a", 0.3, 1), ("m1", 0, "a", 0.2, 1)]


def test_models_may_have_truths_of_their_own() -> None:
    wide = pl.DataFrame({"a@m": [0.1], "a@n": [0.2], "true a@n": [0], "true a@m": [1]})
    long = from_wide(wide, "{label}@{model}", "true {label}@{model}")
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


def test_a_column_of_both_patterns_goes_to_the_one_with_more_text() -> None:
    wide = pl.DataFrame({"a": [0.5], "y_a": [1], "b": [0.4], "y_b": [0], "id": [7], "day": [1]})
    expected = [(7, "a", 0.5, 1, 1), (7, "b", 0.4, 0, 1)]
    assert from_wide(wide, "{label}", "y_{label}", sample="id", keep=["day"]).rows() == expected
    more = wide.rename({"y_a": "a_true", "y_b": "b_true"})
    assert from_wide(more, "{label}", "{label}_true", sample="id", keep=["day"]).rows() == expected


def test_the_truths_may_be_the_ones_with_less_text() -> None:
    wide = pl.DataFrame({"a": [1], "p_a": [0.5], "id": [7]})
    assert from_wide(wide, "p_{label}", "{label}", sample="id").rows() == [(7, "a", 0.5, 1)]


def test_a_column_of_two_patterns_with_as_much_text_is_refused() -> None:
    wide = pl.DataFrame({"p_a": [0.5], "a_y": [1], "p_y": [1]})
    said = "column 'p_y' matches both score='p_{label}' and truth='{label}_y'"
    refused(mlm.ColumnError, said, from_wide, wide, "p_{label}", "{label}_y")
    refused(mlm.ColumnError, "column 'p_a' matches both", from_wide, wide, "p_{label}", "p_{label}")


def test_a_column_that_can_be_read_in_two_ways_is_refused() -> None:
    wide = pl.DataFrame({"p_a_b_c": [0.5], "y_c": [1], "y_b_c": [0]})
    said = "column 'p_a_b_c' can be read in 2 ways by score='p_{model}_{label}'"
    refused(mlm.ColumnError, said, from_wide, wide, "p_{model}_{label}", "y_{label}")


@pytest.mark.parametrize(("truth", "model", "label"), [("y_c", "a_b", "c"), ("y_b_c", "a", "b_c")])
def test_of_two_readings_the_one_with_a_truth_is_taken(truth: str, model: str, label: str) -> None:
    wide = pl.DataFrame({"p_a_b_c": [0.5], truth: [1]})
    assert from_wide(wide, "p_{model}_{label}", "y_{label}").rows() == [(model, 0, label, 0.5, 1)]


def test_truths_of_models_can_be_read_in_two_ways_too() -> None:
    wide = pl.DataFrame({"a|b_c": [0.5], "a_b|c": [0.4], "y_a_b_c": [1]})
    said = "column 'y_a_b_c' can be read in 2 ways by truth='y_{model}_{label}'"
    refused(mlm.ColumnError, said, from_wide, wide, "{model}|{label}", "y_{model}_{label}")


def test_overlapping_texts_are_all_readings() -> None:
    wide = pl.DataFrame({"a___b": [0.5], "true b": [1], "true _b": [0]})
    refused(mlm.ColumnError, "'a___b' can be read in 2 ways", from_wide, wide, "{model}__{label}", "true {label}")


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (["p_a", "p_b", "y_a"], "score column 'p_b' has no truth column 'y_b'. Use sample= or keep="),
        (["p_a", "y_b", "y_a"], "truth column 'y_b' has no score column 'p_b'."),
        (
            ["p_a", "y_a", *(f"p_{i}" for i in range(7))],
            "; score column 'p_4' has no truth column 'y_4'; and 2 more.",
        ),
    ],
)
def test_a_label_of_a_score_or_a_truth_alone_is_named(columns: list[str], said: str) -> None:
    wide = pl.DataFrame({column: [1] for column in columns})
    refused(mlm.ColumnError, said, from_wide, wide, "p_{label}", "y_{label}")


def test_all_columns_that_are_expected_are_named() -> None:
    wide = pl.DataFrame({"p_a_b_c": [0.5], "p_m_x": [0.5], "y_x": [1]})
    said = "score column 'p_a_b_c' has no truth column 'y_b_c' or 'y_c'"
    refused(mlm.ColumnError, said, from_wide, wide, "p_{model}_{label}", "y_{label}")


@pytest.mark.parametrize(
    ("score", "truth", "error", "said"),
    [
        (
            "q_{label}",
            "y_{label}",
            mlm.ColumnError,
            "score pattern 'q_{label}' is not matched by any column of the table",
        ),
        (
            "p_{label}",
            "z_{label}",
            mlm.ColumnError,
            "truth pattern 'z_{label}' is not matched by any column of the table",
        ),
        ("p_{labl}", "y_{label}", mlm.ParameterError, "Did you mean 'label'?"),
        ("p_{label}", "y_{modell}_{label}", mlm.ParameterError, "Did you mean 'model'?"),
        ("p_{}", "y_{label}", mlm.ParameterError, "field '' is not one of the fields (label, model)"),
        ("p_", "y_{label}", mlm.ParameterError, "score='p_' must hold {label} once"),
        ("p_{label}", "{model}", mlm.ParameterError, "truth='{model}' must hold {label} once"),
        ("p_{label}_{label}", "y_{label}", mlm.ParameterError, "must hold {label} once"),
        ("{model}{label}{model}", "y_{label}", mlm.ParameterError, "may hold {model} once only"),
        ("p_{label}", "{model}_{label}", mlm.ParameterError, "holds {model}, and score='p_{label}' does not"),
        (3, "y_{label}", mlm.ParameterError, "score takes a pattern of column names"),
    ],
)
def test_a_wrong_pattern_is_told(score: Any, truth: str, error: type[mlm.MetricError], said: str) -> None:
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
def test_types_that_do_not_go_together_are_told(values: list[Any], said: str) -> None:
    wide = pl.LazyFrame({"score_a": values[:1], "score_b": values[1:], "truth_a": [1], "truth_b": [0]})
    refused(mlm.ColumnError, said, from_wide, wide)


# -- from_lists --------------------------------------------------------------------------------------------------------

LISTS = {
    "score": pl.List(pl.Float64),
    "truth": pl.List(pl.Int64),
    "label": pl.List(pl.String),
    "true": pl.List(pl.String),
}


def lists(**columns: list[Any]) -> pl.DataFrame:
    return pl.DataFrame(columns, schema={name: LISTS[name] for name in columns})


def triples(frame: pl.DataFrame | pl.LazyFrame, **arguments: Any) -> list[tuple[Any, ...]]:
    return rows(from_lists(frame, keep=[], **arguments))


def test_places_are_labels_where_none_are_given() -> None:
    long = from_lists(lists(score=[[0.9, 0.2], [0.4]], truth=[[1, 0], [1]]))
    assert long.rows() == [(0, 0, 0.9, 1), (0, 1, 0.2, 0), (1, 0, 0.4, 1)]
    assert long["label"].dtype == pl.Int64


def test_labels_stand_beside_the_scores() -> None:
    frame = lists(score=[[0.9, 0.2], [0.4]], truth=[[1, 0], [1]], label=[["b", "a"], ["b"]])
    assert triples(frame, label="label") == [(0, "b", 0.9, 1), (0, "a", 0.2, 0), (1, "b", 0.4, 1)]


@pytest.mark.parametrize("label", [["b", "a"], ("b", "a"), pl.Series(["b", "a"])], ids=repr)
def test_labels_of_all_rows(label: Any) -> None:
    frame = lists(score=[[0.9, 0.2], [0.4, 0.3]], truth=[[1, 0], [0, 1]])
    expected = [(0, "b", 0.9, 1), (0, "a", 0.2, 0), (1, "b", 0.4, 0), (1, "a", 0.3, 1)]
    assert triples(frame, label=label) == expected


@pytest.mark.parametrize("kind", ["score", "truth", "both"])
def test_arrays_are_read_like_lists(kind: str) -> None:
    frame = lists(score=[[0.9, 0.2], None], truth=[[1, 0], [0, 1]])
    arrays = ["score", "truth"] if kind == "both" else [kind]
    frame = frame.with_columns(pl.col(name).list.to_array(2) for name in arrays)
    assert triples(frame) == [(0, 0, 0.9, 1), (0, 1, 0.2, 0), (1, 0, None, 0), (1, 1, None, 1)]


def test_structs_have_a_field_for_each_label() -> None:
    frame = pl.DataFrame(
        {"score": [{"b": 0.9, "a": 1}, None], "truth": [{"a": 0, "b": 1}, {"a": None, "b": 0}]},
        schema_overrides={"score": pl.Struct({"b": pl.Float64, "a": pl.Int64})},
    )
    assert triples(frame) == [(0, "b", 0.9, 1), (0, "a", 1.0, 0), (1, "b", None, 0), (1, "a", None, None)]


def test_truths_of_structs_may_be_lists_in_the_order_of_the_fields() -> None:
    frame = pl.DataFrame({"score": [{"b": 0.9, "a": 0.1}], "truth": [[1, 0]]})
    assert triples(frame) == [(0, "b", 0.9, 1), (0, "a", 0.1, 0)]


def test_lists_of_structs_say_label_and_score() -> None:
    found = [[{"score": 0.9, "label": "b", "rank": 1}, None], None, []]
    frame = pl.DataFrame({"score": found, "true": [["b", "c"], ["d"], []]})
    expected = [(0, "b", 0.9, True), (0, None, None, None), (0, "c", -INF, True), (1, "d", None, True)]
    assert triples(frame, true_labels="true") == expected
    frame = pl.DataFrame({"score": found, "truth": [[1, 0], [1], []]})
    assert triples(frame) == [(0, "b", 0.9, 1), (0, None, None, 0), (1, None, None, 1)]


def test_the_truth_is_named_or_the_column_truth() -> None:
    frame = lists(score=[[0.9]], truth=[[1]]).rename({"truth": "clicked"})
    assert triples(frame, truth="clicked") == [(0, 0, 0.9, 1)]
    refused(mlm.ColumnError, "truth column 'truth' is not in the table", from_lists, frame)
    said = "truth and true_labels both give the truths"
    refused(mlm.ParameterError, said, from_lists, frame, truth="clicked", true_labels="clicked")


@pytest.mark.parametrize(
    ("score", "truth", "label", "expected"),
    [
        (None, [1, 0], ["a", "b"], [("a", None, 1), ("b", None, 0)]),
        ([0.5, None], None, ["a", "b"], [("a", 0.5, None), ("b", None, None)]),
        ([0.5], [None], None, [(None, 0.5, None)]),
        (None, None, ["a"], [("a", None, None)]),
        (None, None, None, [(None, None, None)]),
        ([], [], [], []),
        (None, [], None, []),
    ],
)
@both_frames
def test_a_list_that_is_null_is_unknown(score: Any, truth: Any, label: Any, expected: list[Any], as_frame: Any) -> None:
    frame = as_frame(
        {"score": [score], "truth": [truth], "label": [label]}, schema={k: LISTS[k] for k in list(LISTS)[:3]}
    )
    assert triples(frame, label="label") == [(0, *row) for row in expected]


@pytest.mark.parametrize(
    ("score", "truth", "expected"),
    [(None, [1, 0], [(0, None, 1), (1, None, 0)]), ([0.5], None, [(0, 0.5, None)]), (None, None, [(None, None, None)])],
)
def test_a_list_that_is_null_has_the_places_of_the_other(score: Any, truth: Any, expected: list[Any]) -> None:
    assert triples(lists(score=[score], truth=[truth])) == [(0, *row) for row in expected]


def test_each_given_label_has_a_null_score_where_the_list_is_null() -> None:
    frame = lists(score=[None, [0.5, 0.4]], truth=[None, [1, 0]])
    assert triples(frame, label=["a", "b"])[:2] == [(0, "a", None, None), (0, "b", None, None)]


@pytest.mark.parametrize(
    ("score", "label", "true", "expected"),
    [
        ([0.9, 0.4], ["a", "b"], ["b"], [("a", 0.9, False), ("b", 0.4, True)]),
        ([0.9], ["a"], ["d", "c", "d"], [("a", 0.9, False), ("c", -INF, True), ("d", -INF, True)]),
        ([0.9, 0.8], ["a", "a"], ["a", "a"], [("a", 0.9, True), ("a", 0.8, True)]),
        ([0.9], ["a"], [], [("a", 0.9, False)]),
        ([0.9], ["a"], None, [("a", 0.9, None)]),
        ([0.9, 0.4], ["a", "b"], [None, "b"], [("a", 0.9, None), ("b", 0.4, True)]),
        ([0.9, 0.4], [None, "b"], ["b"], [(None, 0.9, None), ("b", 0.4, True)]),
        ([None], ["a"], ["a"], [("a", None, True)]),
        ([], [], ["a"], [("a", -INF, True)]),
        ([], [], [], []),
        ([], [], None, []),
        (None, ["a"], ["a", "b"], [("a", None, True), ("b", -INF, True)]),
        ([0.9], None, ["a"], [(None, 0.9, None), ("a", None, True)]),
        (None, None, ["a"], [("a", None, True)]),
        (None, None, None, [(None, None, None)]),
        (None, None, [], [(None, None, None)]),
    ],
)
@both_frames
def test_true_labels_by_name(score: Any, label: Any, true: Any, expected: list[Any], as_frame: Any) -> None:
    columns = {"score": [score], "label": [label], "true": [true]}
    frame = as_frame(columns, schema={name: LISTS[name] for name in columns})
    assert triples(frame, label="label", true_labels="true") == [(0, *row) for row in expected]


def test_true_labels_may_be_places_and_those_that_are_not_there_follow() -> None:
    frame = pl.DataFrame(
        {"score": [[0.9, 0.4], None], "true": [[5, 1], [2]]}, schema_overrides={"true": pl.List(pl.UInt8)}
    )
    expected = [(0, 0, 0.9, False), (0, 1, 0.4, True), (0, 5, -INF, True), (1, 2, None, True)]
    assert triples(frame, true_labels="true") == expected


def test_true_labels_of_given_labels_and_of_structs() -> None:
    frame = lists(score=[[0.9, 0.4]], true=[["b", "c"]])
    expected = [(0, "a", 0.9, False), (0, "b", 0.4, True), (0, "c", -INF, True)]
    assert triples(frame, label=["a", "b"], true_labels="true") == expected
    structs = frame.with_columns(score=pl.struct(a=0.9, b=0.4))
    assert triples(structs, true_labels="true") == expected


@pytest.mark.parametrize(
    ("labels", "true", "dtype"),
    [
        (pl.String, pl.Enum(["a", "b"]), pl.String),
        (pl.Categorical, pl.String, pl.String),
        (pl.Enum(["a", "b"]), pl.Enum(["a", "b"]), pl.Enum(["a", "b"])),
        (pl.String, pl.Null, pl.String),
    ],
)
def test_texts_of_labels_go_together(labels: Any, true: Any, dtype: Any) -> None:
    named = [] if true == pl.Null else ["b"]
    frame = pl.DataFrame(
        {"score": [[0.9]], "label": [["a"]], "true": [named]},
        schema_overrides={"label": pl.List(labels), "true": pl.List(true)},
    )
    long = from_lists(frame, label="label", true_labels="true")
    assert long["label"].dtype == dtype
    assert long["label"].to_list() == ["a", *named]


@pytest.mark.parametrize(
    ("inner", "expected"), [(pl.Float32, pl.Float32), (pl.Int8, pl.Float64), (pl.Null, pl.Float64)]
)
def test_scores_can_hold_what_was_not_returned(inner: Any, expected: Any) -> None:
    frame = pl.DataFrame({"score": [[None]], "true": [[3]]}, schema_overrides={"score": pl.List(inner)})
    assert from_lists(frame, true_labels="true")["score"].dtype == expected


def test_scores_and_truths_keep_their_types() -> None:
    frame = pl.DataFrame({"score": [[1]], "truth": [[True]]}, schema_overrides={"score": pl.List(pl.Float32)})
    assert from_lists(frame).schema == {
        "sample": pl.Int64, "label": pl.Int64, "score": pl.Float32, "truth": pl.Boolean,
    }  # fmt: skip


UNEQUAL: list[tuple[dict[str, list[Any]], Any, str]] = [
    ({"score": [[0.5], [0.5, 0.1], [0.1]], "truth": [[1], [1], [1, 0]]}, None, "row 1 (sample 1): "),
    ({"score": [[], [0.5]], "truth": [[], []]}, None, "their lengths are: score 1, truth 0."),
    (
        {"score": [[0.5]], "truth": [[1]], "label": [["a", "b"]]},
        "label",
        "their lengths are: label 2, score 1, truth 1.",
    ),
    ({"score": [None, [0.5]], "truth": [[0, 1], [1]]}, ["a", "b"], "row 1 (sample 1): "),
    ({"score": [[]], "truth": [[]]}, ["a"], "their lengths are: label 1, score 0, truth 0."),
    ({"score": [[0.5]], "true": [["a"]], "label": [["a", "b"]]}, "label", "their lengths are: label 2, score 1."),
]


@pytest.mark.parametrize(("columns", "label", "said"), UNEQUAL)
def test_lists_of_different_lengths_in_a_row_are_told(columns: dict[str, list[Any]], label: Any, said: str) -> None:
    arguments = {"label": label, "true_labels": "true" if "true" in columns else None}
    refused(mlm.ColumnError, said, from_lists, lists(**columns), **arguments)
    for engine in ("streaming", "in-memory"):
        with pytest.raises(pl.exceptions.PolarsError):
            from_lists(lists(**columns).lazy(), **arguments).collect(engine=engine)


def test_the_sample_of_such_a_row_is_named() -> None:
    frame = lists(score=[[0.5]], truth=[[1, 0]]).with_columns(user=pl.lit("ann"), day=pl.lit(3))
    refused(mlm.ColumnError, "row 0 (user 'ann', day 3): ", from_lists, frame, sample=["user", "day"])


@pytest.mark.parametrize(
    ("score", "truth", "label"),
    [
        (pl.Array(pl.Float64, 2), pl.Array(pl.Int64, 3), None),
        (pl.Array(pl.Float64, 2), pl.List(pl.Int64), ["a"]),
        (pl.List(pl.Float64), pl.Array(pl.Int64, 3), ["a"]),
        (pl.Struct({"a": pl.Float64}), pl.Array(pl.Int64, 3), None),
    ],
)
def test_lengths_that_the_types_tell_are_told_at_the_call(score: Any, truth: Any, label: Any) -> None:
    frame = pl.LazyFrame(schema={"score": score, "truth": truth})
    refused(mlm.ColumnError, "the lists of a row must have one length", from_lists, frame, label=label)


@pytest.mark.parametrize(
    ("types", "arguments", "error", "said"),
    [
        ({"scores": "f"}, {}, mlm.ColumnError, "Did you mean 'scores'?"),
        ({"score": "f"}, {"true_labels": ["a"]}, mlm.ParameterError, "true_labels takes a column name, not ['a']."),
        ({"score": "f", "truth": "i"}, {"keep": ["score"]}, mlm.NameCollisionError, "'score' is a column this"),
        ({"score": pl.Struct({"*": pl.Int8}), "truth": "i"}, {}, mlm.ColumnError, "reads this name as a pattern"),
        ({"score": "f"}, {"true_labels": "scor"}, mlm.ColumnError, "true_labels column 'scor' is not in the table"),
        ({"score": "f", "truth": "i"}, {"label": "lable"}, mlm.ColumnError, "label column 'lable' is not in the table"),
        ({"score": pl.Float64, "truth": "i"}, {}, mlm.ColumnError, "score 'score' is Float64: it must be lists"),
        ({"score": "s", "truth": "i"}, {}, mlm.ColumnError, "score 'score' is List(String): its values must be"),
        ({"score": "f", "truth": "s"}, {}, mlm.ColumnError, "truth 'truth' is List(String): its values must be"),
        ({"score": "f", "truth": pl.List(pl.List(pl.Int8))}, {}, mlm.ColumnError, "its values must be numbers"),
        ({"score": "f", "truth": pl.Struct({"a": pl.Int8})}, {}, mlm.ColumnError, "both must be structs"),
        ({"score": "f", "t": pl.String}, {"true_labels": "t"}, mlm.ColumnError, "'t' is String: it must be lists"),
        ({"score": "f", "t": "f"}, {"true_labels": "t"}, mlm.ColumnError, "are Float64 and the labels Int64"),
        ({"score": "f", "t": "b"}, {"true_labels": "t"}, mlm.ColumnError, "cannot be Boolean"),
        ({"score": "f", "truth": "i"}, {"label": []}, mlm.ParameterError, "label takes a list of values, not []"),
        ({"score": "f", "truth": "i"}, {"label": ["a", "a"]}, mlm.ParameterError, "label holds 'a' twice"),
        ({"score": "f", "truth": "i"}, {"label": ["a", None]}, mlm.ParameterError, "label holds a null"),
        ({"score": "f", "truth": "i"}, {"label": ["a", 1]}, mlm.ParameterError, "label must have one type"),
        ({"score": "f", "truth": "i"}, {"label": 3}, mlm.ParameterError, "label takes a list of values, not 3"),
        ({"score": "ab", "truth": "ac"}, {}, mlm.ColumnError, "Only one of them has 'b', 'c'."),
        ({"score": "ab", "truth": "i"}, {"label": ["a", "b"]}, mlm.ParameterError, "already name the labels"),
        ({"score": pl.Struct([]), "truth": "i"}, {}, mlm.ColumnError, "a struct without fields"),
        ({"score": "ls", "truth": "i"}, {}, mlm.ColumnError, "'lable'?"),
        ({"score": pl.Struct({"a": pl.String}), "truth": "i"}, {}, mlm.ColumnError, "score field 'a' is String"),
    ],
)  # fmt: skip
def test_a_column_that_is_no_list_of_its_kind_is_told(
    types: dict[str, Any], arguments: dict[str, Any], error: type[mlm.MetricError], said: str
) -> None:
    short = {
        "f": pl.List(pl.Float64), "i": pl.List(pl.Int64), "s": pl.List(pl.String), "b": pl.List(pl.Boolean),
        "ls": pl.List(pl.Struct({"lable": pl.String, "score": pl.Int8})),
        "ab": pl.Struct({"a": pl.Float64, "b": pl.Float64}), "ac": pl.Struct({"a": pl.Int8, "c": pl.Int8}),
    }  # fmt: skip
    schema = {name: short[dtype] if isinstance(dtype, str) else dtype for name, dtype in types.items()}
    refused(error, said, from_lists, pl.LazyFrame(schema=schema), **arguments)


def expected_of(score: Any, label: Any, true: Any) -> list[tuple[Any, ...]]:
    """What a row of lists gives, by the rules and in plain Python."""
    size = len(label) if label is not None else len(score or [])
    labels, scores = label or [None] * size, score or [None] * size
    unsure = true is not None and None in true
    names = [name for name in dict.fromkeys(true or []) if name is not None]
    if label is None and score is None and not names:
        return [(None, None, None)]

    def is_true(name: Any) -> bool | None:
        if name is None or true is None:
            return None
        return True if name in names else None if unsure else False

    missed = sorted(name for name in names if name not in labels)
    found = [(name, value, is_true(name)) for name, value in zip(labels, scores, strict=True)]
    return found + [(name, None if label is None else -INF, True) for name in missed]


def test_random_lists_of_names_are_as_plain_python_has_them() -> None:
    rng = random.Random(5)
    table = []
    for _ in range(400):
        size = rng.randrange(4)
        score = rng.choice([None, *[[rng.choice([0.5, 1.0, None]) for _ in range(size)]] * 4])
        label = rng.choice([None, *[[rng.choice(["a", "b", "c", None]) for _ in range(size)]] * 4])
        true = rng.choice([None, *[[rng.choice(["a", "b", "c", "d", None]) for _ in range(rng.randrange(4))]] * 4])
        table.append((score, label, true))
    frame = lists(**{name: [row[place] for row in table] for place, name in enumerate(["score", "label", "true"])})
    expected = [(place, *row) for place, lists in enumerate(table) for row in expected_of(*lists)]
    assert triples(frame, label="label", true_labels="true") == expected
    assert triples(frame.lazy(), label="label", true_labels="true") == expected


# -- from_predictions --------------------------------------------------------------------------------------------------


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
        ({"score": [["a"]], "truth": [["a"]]}, {}, mlm.ColumnError, "'score' is List(String): a class must be a plain"),
        ({"score": ["a"], "truth": ["a"]}, {"classes": "a"}, mlm.ParameterError, "classes takes a list of values"),
        ({"score": ["a"], "truth": ["a"]}, {"classes": []}, mlm.ParameterError, "classes takes a list of values"),
        ({"score": ["a"], "truth": ["a"]}, {"classes": [1, 2]}, mlm.ParameterError, "must have the type String"),
        ({"score": ["a"], "truth": ["a"]}, {"classes": ["a", "b", "a"]}, mlm.ParameterError, "holds 'a' twice"),
        ({"score": ["a"], "truth": ["a"]}, {"classes": ["a", None]}, mlm.ParameterError, "classes holds a null"),
    ],
)
def test_wrong_classes_are_told(
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
