"""`with_truths`: what was returned gets its truths, and what should have been returned is there too."""

from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from polars_mlmetrics.adapters.truths import with_truths
from polars_mlmetrics.data.returned import LISTED
from tests.adapters.shop import MODELS, RETURNED, TRUTHS
from tests.support.plans import fallbacks, serialized

NEVER = float("-inf")
DECIMAL = pl.Decimal(5, 2)

# -- the rows ----------------------------------------------------------------------------------------------------------


def test_returned_labels_get_their_truth_and_true_labels_their_row() -> None:
    assert with_truths(RETURNED, TRUTHS).rows() == [
        (1, "a", 0.9, False, "returned"),
        (1, "b", 0.8, True, "returned"),
        (2, "a", 0.7, False, "returned"),
        (1, "c", NEVER, True, "not returned"),
        (2, "z", NEVER, True, "not returned"),
    ]


@pytest.mark.parametrize(
    "truths",
    [
        pl.concat([TRUTHS, pl.DataFrame({"sample": [3, 4], "label": ["a", "b"]})]),
        pl.concat([TRUTHS, TRUTHS]),
        TRUTHS.with_columns(score=pl.lit("sure")),
    ],
    ids=["samples that nobody asked for", "equal truths", "scores of their own"],
)
def test_what_changes_nothing(truths: pl.DataFrame) -> None:
    assert_frame_equal(with_truths(RETURNED, truths), with_truths(RETURNED, TRUTHS))


def test_columns_have_their_order_and_types() -> None:
    returned = RETURNED.select("score", place=pl.lit(1), sample="sample", label="label")
    assert list(with_truths(returned, TRUTHS).schema.items()) == [
        ("sample", pl.Int64),
        ("label", pl.String),
        ("score", pl.Float64),
        ("truth", pl.Boolean),
        ("place", pl.Int32),
        (LISTED, mlm.listed_type()),
    ]


def test_the_missed_count_in_the_recall() -> None:
    table = with_truths(RETURNED, TRUTHS)
    recalls = mlm.evaluate(table, mlm.recall_at(2), per="sample").sort("sample")["recall_at_2"]
    assert recalls.to_list() == [0.5, 0.0]  # of b and c one, of z none


def test_grades_are_taken_as_they_are_and_known_negatives_are_rows() -> None:
    truths = pl.DataFrame({"sample": [1, 1, 1, 2], "label": ["a", "c", "d", "e"], "truth": [2, 3, 0, 0]})
    rows = with_truths(RETURNED, truths).select("sample", "label", "truth").rows()
    assert rows == [(1, "a", 2), (1, "b", 0), (2, "a", 0), (1, "c", 3), (1, "d", 0), (2, "e", 0)]


@pytest.mark.parametrize("dtype", [pl.Boolean, pl.UInt8, pl.Int64, pl.Float32, pl.Float64, DECIMAL])
def test_a_truth_keeps_its_type(dtype: Any) -> None:
    truths = TRUTHS.with_columns(truth=pl.Series([True, False, True]) if dtype == pl.Boolean else pl.lit(1).cast(dtype))
    for n_labels in (None, 4):
        truth = with_truths(RETURNED, truths, n_labels=n_labels)["truth"]
        assert truth.dtype == dtype
        assert truth[:3].to_list() == [0, 1, 0]


def test_truths_that_are_all_unknown_stay_so() -> None:
    truth = with_truths(RETURNED, TRUTHS.with_columns(truth=None))["truth"]
    assert truth.dtype == pl.Boolean
    assert truth.to_list() == [False, None, False, None, None]


@pytest.mark.parametrize(
    ("given", "kept"),
    [(pl.Float32, pl.Float32), *((dtype, pl.Float64) for dtype in (pl.Float64, pl.Int8, pl.UInt64, DECIMAL, pl.Null))],
)
def test_a_score_can_hold_what_was_not_returned(given: Any, kept: Any) -> None:
    score = pl.lit(None) if given == pl.Null else pl.lit(3).cast(given)
    scores = with_truths(RETURNED.with_columns(score=score), TRUTHS)["score"]
    assert scores.dtype == kept
    assert scores.to_list() == [None if given == pl.Null else 3.0] * 3 + [NEVER] * 2


def test_scores_of_truth_and_falsehood_are_numbers() -> None:
    returned = RETURNED.with_columns(score=pl.Series([True, False, True]))
    assert with_truths(returned, TRUTHS)["score"].to_list() == [1.0, 0.0, 1.0, NEVER, NEVER]


def test_nothing_returned_gives_all_truths_that_were_asked_for() -> None:
    table = with_truths(RETURNED.clear(), TRUTHS, asked=pl.DataFrame({"sample": [1]}))
    assert table.select("sample", "label", "score", "truth").rows() == [(1, "b", NEVER, True), (1, "c", NEVER, True)]
    assert with_truths(RETURNED.clear(), TRUTHS).is_empty()


@pytest.mark.parametrize("truths", [TRUTHS.clear(), pl.DataFrame({"sample": [], "label": []})])
def test_no_truths_make_every_returned_label_false(truths: pl.DataFrame) -> None:
    table = with_truths(RETURNED, truths)
    assert table["truth"].to_list() == [False] * 3
    assert_frame_equal(table.select(RETURNED.columns), RETURNED)


@pytest.mark.parametrize(
    ("said", "truth"),
    [([1.0, 1.0], 1.0), ([0.0, 1.0], None), ([2.0, 1.0], None), ([None, 1.0], 1.0), ([None, None], None)],
)
@pytest.mark.parametrize("label", ["a", "z"])
def test_truths_that_contradict_each_other_are_unknown(said: list[float | None], truth: Any, label: str) -> None:
    truths = pl.DataFrame({"sample": [1, 1], "label": label, "truth": said}, schema_overrides={"truth": pl.Float64})
    table = with_truths(RETURNED, truths).filter(sample=1, label=label)
    assert table["truth"].to_list() == [truth]


def test_a_broken_truth_stays_broken() -> None:
    truths = TRUTHS.with_columns(truth=float("nan"))
    assert with_truths(RETURNED, truths)["truth"].is_nan().to_list() == [False, True, False, True, True]


# -- further columns ---------------------------------------------------------------------------------------------------


def test_other_columns_are_kept_and_taken_from_the_truths_where_these_have_them() -> None:
    returned = RETURNED.with_columns(place=pl.Series([1, 2, 1]), country=pl.Series(["DE", "DE", "FR"]))
    truths = TRUTHS.with_columns(country=pl.Series(["XX", "DE", "IT"]), annotator=pl.lit("x"))
    assert with_truths(returned, truths).select("sample", "label", "place", "country").rows() == [
        (1, "a", 1, "DE"),
        (1, "b", 2, "DE"),
        (2, "a", 1, "FR"),
        (1, "c", None, "DE"),
        (2, "z", None, "IT"),
    ]
    assert "annotator" not in with_truths(returned, truths).columns


def test_other_columns_of_equal_truths_that_differ_are_unknown() -> None:
    truths = pl.DataFrame({"sample": [1, 1, 2, 2], "label": "y", "country": ["DE", "FR", None, "IT"]})
    table = with_truths(RETURNED.with_columns(country=pl.lit("DE")), truths).filter(label="y")
    assert table.select("sample", "country").rows() == [(1, None), (2, "IT")]


def test_other_columns_may_be_nested_or_called_like_a_pattern() -> None:
    returned = RETURNED.with_columns(words=pl.Series([["u"], [], None], dtype=pl.List(pl.String)))
    returned = returned.with_columns(pl.lit(7).alias("^s.*$"), pl.lit(8).alias("*"))
    truths = TRUTHS.with_columns(pl.lit(9).alias("^s.*$"), words=pl.Series([["v"]] * 3))
    table = with_truths(returned, truths, n_labels=3)
    assert table["words"].to_list() == [["u"], [], None, ["v"], ["v"], None]
    assert table.get_column("^s.*$").to_list() == [7, 7, 7, 9, 9, None]
    assert table.get_column("*").to_list() == [8, 8, 8, *[None] * 3]


# -- which rows match --------------------------------------------------------------------------------------------------


def test_the_sample_may_be_several_columns_of_any_name() -> None:
    returned = pl.DataFrame({"day": [1, 2], "user": ["u", "u"], "item": [5, 5], "score": [0.9, 0.8]})
    truths = pl.DataFrame({"item": [5, 6], "user": ["u", "u"], "day": [2, 2]})
    assert with_truths(returned, truths, sample=["day", "user"], label="item").rows() == [
        (1, "u", 5, 0.9, False, "returned"),
        (2, "u", 5, 0.8, True, "returned"),
        (2, "u", 6, NEVER, True, "not returned"),
    ]


def test_an_unknown_sample_or_label_matches_nothing_and_is_kept() -> None:
    returned = pl.DataFrame({"sample": [1, None], "label": [None, "a"], "score": [0.9, 0.8]})
    truths = pl.DataFrame({"sample": [1, None, 1], "label": [None, "a", "a"]})
    assert with_truths(returned, truths).rows() == [
        (1, None, 0.9, None, "returned"),
        (None, "a", 0.8, None, "returned"),
        (1, None, NEVER, None, "not returned"),
        (1, "a", NEVER, True, "not returned"),
    ]


def test_unknown_labels_are_no_labels_twice() -> None:
    returned = pl.DataFrame({"sample": [1, 1], "label": pl.Series([None, None], dtype=pl.String), "score": [0.9, 0.8]})
    assert with_truths(returned, TRUTHS)["truth"].to_list() == [None, None, True, True]


TEXTS = [pl.String, pl.Categorical, pl.Enum(["a", "b"]), pl.Enum(["c", "b", "a"])]


@pytest.mark.parametrize("one", TEXTS, ids=str)
@pytest.mark.parametrize("other", TEXTS, ids=str)
def test_texts_of_any_kind_match(one: Any, other: Any) -> None:
    returned = RETURNED.with_columns(pl.col("label").cast(one))
    truths = pl.DataFrame({"sample": [1, 2], "label": ["b", "b"]}).with_columns(pl.col("label").cast(other))
    table = with_truths(returned, truths)
    assert table["label"].dtype == (one if one == other else pl.String)
    assert table.select(pl.col("label").cast(pl.String), "truth").rows() == [("a", False), ("b", True)] * 2


# -- several lists of one sample ---------------------------------------------------------------------------------------


def test_each_list_gets_the_true_labels_of_its_sample() -> None:
    truths = pl.DataFrame({"sample": [1, 1, 2], "label": ["b", "c", "a"]})
    assert with_truths(MODELS, truths, by="model").rows() == [
        ("m", 1, "a", 0.9, False, "returned"),
        ("n", 1, "b", 0.8, True, "returned"),
        ("m", 1, "b", NEVER, True, "not returned"),
        ("m", 1, "c", NEVER, True, "not returned"),
        ("n", 1, "c", NEVER, True, "not returned"),
    ]


def test_truths_of_a_list_are_for_that_list_alone() -> None:
    truths = pl.DataFrame({"sample": [1, 1, 2], "label": ["a", "c", "a"], "model": ["n", "m", "o"]})
    assert with_truths(MODELS, truths, by=["model"]).rows() == [
        ("m", 1, "a", 0.9, False, "returned"),
        ("n", 1, "b", 0.8, False, "returned"),
        ("n", 1, "a", NEVER, True, "not returned"),
        ("m", 1, "c", NEVER, True, "not returned"),
    ]


def test_the_truths_may_know_some_of_what_tells_lists_apart() -> None:
    returned = MODELS.with_columns(fold=pl.Series([0, 1]))
    truths = pl.DataFrame({"sample": [1, 1, 1], "label": ["c", "d", "e"], "fold": [0, 1, 2]})
    table = with_truths(returned, truths, by=["model", "fold"])
    assert table.filter(listed="not returned").select("model", "fold", "label").rows() == [("m", 0, "c"), ("n", 1, "d")]


def test_a_null_key_is_a_list_of_its_own() -> None:
    returned = MODELS.with_columns(model=pl.Series(["m", None]))
    truths = pl.DataFrame({"sample": [1], "label": ["c"]})
    missed = with_truths(returned, truths, by="model").filter(listed="not returned")
    assert missed["model"].to_list() == ["m", None]
    missed = with_truths(returned, truths.with_columns(model=pl.lit(None, pl.String)), by="model")[2:]
    assert missed["model"].to_list() == [None]


# -- all labels --------------------------------------------------------------------------------------------------------


def test_each_list_is_filled_with_negatives() -> None:
    table = with_truths(RETURNED, TRUTHS, n_labels=4)
    assert table.schema[LISTED] == mlm.listed_type(n_labels=4)
    assert_frame_equal(table[:5].cast({LISTED: mlm.listed_type()}), with_truths(RETURNED, TRUTHS))
    assert table[5:].rows() == [(sample, None, NEVER, False, "filled in") for sample in (1, 2, 2)]


def test_full_lists_are_not_filled() -> None:
    table = with_truths(RETURNED.filter(sample=1), TRUTHS.filter(sample=1), n_labels=3)
    assert table["label"].to_list() == ["a", "b", "c"]


def test_lists_are_filled_by_what_tells_them_apart() -> None:
    truths = pl.DataFrame({"sample": [1, 2], "label": ["b", "a"]})
    filled = with_truths(MODELS, truths, by="model", n_labels=3).filter(pl.col("label").is_null())
    assert filled.rows() == [(model, 1, None, NEVER, False, "filled in") for model in ("m", "n", "n")]


def test_an_unknown_sample_is_no_list() -> None:
    returned = RETURNED.with_columns(sample=pl.lit(None, pl.Int64))
    assert len(with_truths(returned, TRUTHS.clear(), n_labels=5)) == 3


def test_order_is_kept_in_many_rows() -> None:
    n = 50_000
    returned = pl.DataFrame({"sample": range(n, 0, -1), "label": 0, "score": 0.5})
    truths = pl.DataFrame({"sample": range(n, 0, -1), "label": 1})
    table = with_truths(returned, truths, n_labels=3)
    assert table["sample"].equals(pl.concat([returned["sample"]] * 3))


@pytest.mark.parametrize(
    ("returned", "truths"),
    [(RETURNED, TRUTHS), (RETURNED.lazy(), TRUTHS), (RETURNED, TRUTHS.lazy()), (RETURNED.lazy(), TRUTHS.lazy())],
)
@pytest.mark.parametrize("n_labels", [None, 4])
def test_one_lazy_frame_makes_the_result_lazy(returned: Any, truths: Any, n_labels: int | None) -> None:
    table = with_truths(returned, truths, n_labels=n_labels)
    assert isinstance(table, pl.LazyFrame if pl.LazyFrame in (type(returned), type(truths)) else pl.DataFrame)
    assert_frame_equal(table.lazy().collect(), with_truths(RETURNED, TRUTHS, n_labels=n_labels), check_row_order=False)


@pytest.mark.parametrize("truths", [TRUTHS, TRUTHS.with_columns(truth=2, fold=0)], ids=["names", "grades"])
@pytest.mark.parametrize("by", [None, ["model", "fold"]])
@pytest.mark.parametrize("n_labels", [None, 9])
@pytest.mark.parametrize("of_sample", [None, "day"])
@pytest.mark.parametrize(
    "known", [None, pl.col("day") < 3, pl.LazyFrame({"sample": [1]})], ids=["all", "some", "table"]
)
def test_a_lazy_result_is_pure_and_native(
    truths: pl.DataFrame, by: Any, n_labels: int | None, of_sample: Any, known: Any
) -> None:
    returned = RETURNED.with_columns(model=pl.lit("m"), fold=0, day=pl.lit(1))
    plan = with_truths(returned.lazy(), truths.lazy(), by=by, n_labels=n_labels, of_sample=of_sample, known=known)
    assert serialized(plan)
    assert fallbacks(plan) == []


def test_a_label_returned_twice_gets_its_truth_twice_where_nobody_looked() -> None:
    table = with_truths(pl.concat([RETURNED, RETURNED]).lazy(), TRUTHS).collect()
    assert table.filter(sample=1, label="b")["truth"].to_list() == [True, True]
    assert len(table) == 8


def test_a_list_that_is_too_long_raises_when_it_is_collected() -> None:
    plan = with_truths(RETURNED.lazy(), TRUTHS, n_labels=2)
    with pytest.raises(pl.exceptions.InvalidOperationError):
        plan.collect()
