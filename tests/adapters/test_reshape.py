"""Every shape that becomes the long table: its samples, the columns that are kept, and its plan."""

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.adapters.wide import from_lists, from_predictions, from_wide
from tests.adapters.reshaped import both_frames, refused
from tests.support.plans import fallbacks, serialized

EVERY: list[Callable[..., Any]] = [from_wide, from_lists, from_predictions]

every_shape = pytest.mark.parametrize("shape", EVERY, ids=lambda shape: shape.__name__)


# The smallest table of each shape, with two more columns.
SMALL: dict[Callable[..., Any], dict[str, list[Any]]] = {
    from_wide: {"score_a": [0.9, 0.1], "truth_a": [1, 0], "id": ["x", "y"], "day": [5, 6]},
    from_lists: {"score": [[0.9], [0.1]], "truth": [[1], [0]], "id": ["x", "y"], "day": [5, 6]},
    from_predictions: {"score": ["a", "a"], "truth": ["a", "a"], "id": ["x", "y"], "day": [5, 6]},
}


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
def test_a_wrong_sample_or_kept_column_is_reported(
    shape: Callable[..., Any], arguments: dict[str, Any], error: type[mlm.MetricError], said: str
) -> None:
    refused(error, said, shape, pl.LazyFrame(SMALL[shape]), **arguments)


@every_shape
@pytest.mark.parametrize("name", ["*", "^.*$"])
def test_a_column_whose_name_is_a_pattern_is_not_taken_for_many(shape: Callable[..., Any], name: str) -> None:
    frame = pl.DataFrame(SMALL[shape]).rename({"day": name})
    refused(mlm.ParameterError, f"column {name!r}: Polars reads this name as a pattern", shape, frame)
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
        "wide, of models": from_wide(pl.LazyFrame({"p_a_x": [0.1], "t_x": [1]}), "p_{model}_{label}", "t_{label}"),
        "lists": from_lists(pl.LazyFrame(SMALL[from_lists])),
        "lists of structs": from_lists(structs),
        "structs": from_lists(pl.LazyFrame({"score": [{"a": 0.5}], "truth": [{"a": 1}]})),
        "names of true labels": from_lists(lists, true_labels="named", label="label"),
        "predictions": from_predictions(pl.LazyFrame(SMALL[from_predictions])),
        "given classes": from_predictions(pl.LazyFrame(SMALL[from_predictions]), classes=["a", "b"]),
    }


@pytest.mark.parametrize("plan", plans().values(), ids=plans().keys())
def test_a_plan_is_pure_and_native_and_knows_its_types(plan: pl.LazyFrame) -> None:
    assert serialized(plan)
    assert fallbacks(plan) == []
    assert plan.collect_schema() == plan.collect().schema
