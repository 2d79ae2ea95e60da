"""Lists, arrays and structs become the long table: every value in its place, none lost."""

import random
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.adapters.wide import from_lists
from tests.adapters.reshaped import INF, both_frames, lists, refused, rows


def triples(frame: pl.DataFrame | pl.LazyFrame, **arguments: Any) -> list[tuple[Any, ...]]:
    return rows(from_lists(frame, keep=[], **arguments).drop("listed", strict=False))


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
    nothing = (2, None, None, None)
    assert triples(frame, true_labels="true") == [*expected, nothing]
    frame = pl.DataFrame({"score": found, "truth": [[1, 0], [1], []]})
    assert triples(frame) == [(0, "b", 0.9, 1), (0, None, None, 0), (1, None, None, 1), nothing]


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
        ([], [], [], [(None, None, None)]),
        (None, [], None, [(None, None, None)]),
    ],
)
@both_frames
def test_a_list_that_is_null_is_unknown(score: Any, truth: Any, label: Any, expected: list[Any], as_frame: Any) -> None:
    frame = as_frame(lists(score=[score], truth=[truth], label=[label]))
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
        ([], [], [], [(None, None, None)]),
        ([], [], None, [(None, None, None)]),
        (None, ["a"], ["a", "b"], [("a", None, True), ("b", -INF, True)]),
        ([0.9], None, ["a"], [(None, 0.9, None), ("a", None, True)]),
        (None, None, ["a"], [("a", None, True)]),
        (None, None, None, [(None, None, None)]),
        (None, None, [], [(None, None, None)]),
    ],
)
@both_frames
def test_true_labels_by_name(score: Any, label: Any, true: Any, expected: list[Any], as_frame: Any) -> None:
    frame = as_frame(lists(score=[score], label=[label], true=[true]))
    assert triples(frame, label="label", true_labels="true") == [(0, *row) for row in expected]


@both_frames
def test_a_sample_without_labels_changes_no_metric_and_is_counted(as_frame: Any) -> None:
    frame = as_frame(lists(score=[[0.9, 0.4], [], None], label=[["a", "b"], [], None], true=[["b"], [], []]))
    metrics = [mlm.precision_at(1), mlm.recall(), mlm.n_samples(), mlm.n_rows(), mlm.n_excluded()]
    whole, first = (
        mlm.evaluate(from_lists(each, label="label", true_labels="true"), metrics).lazy().collect().row(0)
        for each in (frame, frame.head(1))
    )
    assert whole[:-1] == first[:-1] == (0.0, 0.0, 1, 2)
    assert (whole[-1], first[-1]) == (2, 0)


# -- predicted labels without scores -----------------------------------------------------------------------------------

TAGS = pl.DataFrame({"said": [["a", "c"], ["b"], [], []], "is": [["a", "b"], ["b"], ["c"], []]})


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("kind", ["text", "numbers", "categories"])
def test_predicted_labels_have_the_score_1(kind: str, lazy: bool) -> None:
    tags = TAGS if kind == "text" else TAGS.cast(pl.List(pl.Enum(["a", "b", "c"])))
    if kind == "numbers":
        tags = tags.with_columns(pl.all().list.eval(pl.element().to_physical()))
    long = from_lists(tags.lazy() if lazy else tags, score=None, label="said", true_labels="is").lazy().collect()
    a, b, c = range(3) if kind == "numbers" else "abc"
    assert long.rows() == [
        (0, a, 1.0, True, "returned"),
        (0, c, 1.0, False, "returned"),
        (0, b, -INF, True, "not returned"),
        (1, b, 1.0, True, "returned"),
        (2, c, -INF, True, "not returned"),
        (3, None, None, None, None),
    ]
    assert mlm.evaluate(long, mlm.f1(), mlm.precision(), mlm.recall()).row(0) == pytest.approx((4 / 7, 2 / 3, 0.5))


def test_two_columns_of_labels_are_shown_the_way() -> None:
    way = "If 'said' has predicted labels without scores, pass score=None."
    refused(mlm.ColumnError, way, from_lists, TAGS, label="said", true_labels="is")
    way = "pass score=None, label='said'"
    refused(mlm.ColumnError, way, from_lists, TAGS, score="said", true_labels="is")
    way = "If it names the true labels, pass true_labels='is'."
    refused(mlm.ColumnError, way, from_lists, TAGS, score=None, label="said", truth="is")
    way = "score=None is for lists of predicted labels: pass label= with their column."
    refused(mlm.ParameterError, way, from_lists, TAGS, score=None, true_labels="is", label=["a", "b"])
    way = "One class for each sample is for from_predictions."
    refused(mlm.ColumnError, way, from_lists, pl.DataFrame({"score": ["a"], "truth": ["b"]}))


# -- true labels by name -----------------------------------------------------------------------------------------------


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
    assert from_lists(frame).dtypes == [pl.Int64, pl.Int64, pl.Float32, pl.Boolean]


AB = [["a", "b"]]
UNEQUAL: list[tuple[dict[str, list[Any]], Any, str]] = [
    ({"score": [[0.5], [0.5, 0.1], [0.1]], "truth": [[1], [1], [1, 0]]}, None, "row 1 (sample=1): "),
    ({"score": [[], [0.5]], "truth": [[], []]}, None, "their lengths are: score 1, truth 0."),
    ({"score": [[0.5]], "truth": [[1]], "label": AB}, "label", "their lengths are: label 2, score 1, truth 1."),
    ({"score": [None, [0.5]], "truth": [[0, 1], [1]]}, ["a", "b"], "row 1 (sample=1): "),
    ({"score": [[]], "truth": [[]]}, ["a"], "their lengths are: label 1, score 0, truth 0."),
    ({"score": [[0.5]], "true": [["a"]], "label": AB}, "label", "their lengths are: label 2, score 1."),
]


@pytest.mark.parametrize(("columns", "label", "said"), UNEQUAL)
def test_lists_of_different_lengths_in_a_row_are_reported(columns: dict[str, list[Any]], label: Any, said: str) -> None:
    arguments = {"label": label, "true_labels": "true" if "true" in columns else None}
    refused(mlm.ColumnError, said, from_lists, lists(**columns), **arguments)
    for engine in ("streaming", "in-memory"):
        with pytest.raises(pl.exceptions.PolarsError):
            from_lists(lists(**columns).lazy(), **arguments).collect(engine=engine)


def test_the_sample_of_such_a_row_is_named() -> None:
    frame = lists(score=[[0.5]], truth=[[1, 0]]).with_columns(user=pl.lit("ann"), day=pl.lit(3))
    refused(mlm.ColumnError, "row 0 (user=ann, day=3): ", from_lists, frame, sample=["user", "day"])


@pytest.mark.parametrize(
    ("score", "truth", "label"),
    [
        (pl.Array(pl.Float64, 2), pl.Array(pl.Int64, 3), None),
        (pl.Array(pl.Float64, 2), pl.List(pl.Int64), ["a"]),
        (pl.List(pl.Float64), pl.Array(pl.Int64, 3), ["a"]),
        (pl.Struct({"a": pl.Float64}), pl.Array(pl.Int64, 3), None),
    ],
)
def test_lengths_that_the_types_show_are_compared_at_the_call(score: Any, truth: Any, label: Any) -> None:
    frame = pl.LazyFrame(schema={"score": score, "truth": truth})
    refused(mlm.ColumnError, "the lists of a row must have one length", from_lists, frame, label=label)


@pytest.mark.parametrize(
    ("types", "arguments", "error", "said"),
    [
        ({"scores": "f"}, {}, mlm.ColumnError, "Did you mean 'scores'?"),
        ({"score": "f"}, {"true_labels": ["a"]}, mlm.ParameterError, "true_labels takes a column name, not ['a']."),
        ({"score": "f", "truth": "i"}, {"keep": ["score"]}, mlm.NameCollisionError, "'score' is a column this"),
        ({"score": pl.Struct({"*": pl.Int8}), "truth": "i"}, {}, mlm.ParameterError, "reads this name as a pattern"),
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
def test_a_column_that_is_no_list_of_its_kind_is_reported(
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

    def is_true(name: Any) -> bool | None:
        if name is None or true is None:
            return None
        return True if name in names else None if unsure else False

    missed = sorted(name for name in names if name not in labels)
    found = [(name, value, is_true(name)) for name, value in zip(labels, scores, strict=True)]
    rows = found + [(name, None if label is None else -INF, True) for name in missed]
    return rows or [(None, None, None)]


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
