"""`with_truths`: what was returned gets its truths, and what should have been returned is there too."""

import inspect
import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from polars_mlmetrics.data.truths import LISTED, LISTED_TYPE, with_truths
from tests.test_plan import fallbacks, serialized

NEVER = float("-inf")
RETURNED = pl.DataFrame({"sample": [1, 1, 2], "label": ["a", "b", "a"], "score": [0.9, 0.8, 0.7]})
TRUTHS = pl.DataFrame({"sample": [1, 1, 3], "label": ["b", "c", "a"]})
MODELS = pl.DataFrame({"model": ["m", "n"], "sample": [1, 1], "label": ["a", "b"], "score": [0.9, 0.8]})

Row = dict[str, Any]


# -- the rows ----------------------------------------------------------------------------------------------------------


def test_returned_labels_get_their_truth_and_true_labels_their_row() -> None:
    assert with_truths(RETURNED, TRUTHS).rows() == [
        (1, "a", 0.9, False, "returned"),
        (1, "b", 0.8, True, "returned"),
        (2, "a", 0.7, False, "returned"),
        (1, "c", NEVER, True, "not returned"),
        (3, "a", NEVER, True, "not returned"),
    ]


def test_columns_have_their_order_and_types() -> None:
    returned = RETURNED.select("score", place=pl.lit(1), sample="sample", label="label")
    assert list(with_truths(returned, TRUTHS).schema.items()) == [
        ("sample", pl.Int64),
        ("label", pl.String),
        ("score", pl.Float64),
        ("truth", pl.Boolean),
        ("place", pl.Int32),
        (LISTED, LISTED_TYPE),
    ]


def test_the_missed_count_in_the_recall() -> None:
    table = with_truths(RETURNED, TRUTHS)
    recalls = mlm.evaluate(table, mlm.recall_at(2), per="sample").sort("sample")["recall_at_2"]
    assert recalls.to_list() == [0.5, None, 0.0]  # of b and c one, of nothing none, of a none


def test_grades_are_taken_as_they_are_and_known_negatives_are_rows() -> None:
    truths = pl.DataFrame({"sample": [1, 1, 1, 4], "label": ["a", "c", "d", "a"], "truth": [2, 3, 0, 0]})
    assert with_truths(RETURNED, truths).select("sample", "label", "truth").rows() == [
        (1, "a", 2),
        (1, "b", 0),
        (2, "a", 0),
        (1, "c", 3),
        (1, "d", 0),
        (4, "a", 0),
    ]


@pytest.mark.parametrize("dtype", [pl.Boolean, pl.UInt8, pl.Int64, pl.Float32, pl.Float64, pl.Decimal(5, 2)])
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
    [
        (pl.Float32, pl.Float32),
        (pl.Float64, pl.Float64),
        (pl.Int8, pl.Float64),
        (pl.UInt64, pl.Float64),
        (pl.Decimal(5, 2), pl.Float64),
        (pl.Null, pl.Float64),
    ],
)
def test_a_score_can_hold_what_was_not_returned(given: Any, kept: Any) -> None:
    score = pl.lit(None) if given == pl.Null else pl.lit(3).cast(given)
    scores = with_truths(RETURNED.with_columns(score=score), TRUTHS)["score"]
    assert scores.dtype == kept
    assert scores.to_list() == [None if given == pl.Null else 3.0] * 3 + [NEVER] * 2


def test_scores_of_truth_and_falsehood_are_numbers() -> None:
    returned = RETURNED.with_columns(score=pl.Series([True, False, True]))
    assert with_truths(returned, TRUTHS)["score"].to_list() == [1.0, 0.0, 1.0, NEVER, NEVER]


def test_nothing_returned_gives_all_truths() -> None:
    assert with_truths(RETURNED.clear(), TRUTHS).select("sample", "label", "score", "truth").rows() == [
        (1, "b", NEVER, True),
        (1, "c", NEVER, True),
        (3, "a", NEVER, True),
    ]


@pytest.mark.parametrize("truths", [TRUTHS.clear(), pl.DataFrame({"sample": [], "label": []})])
def test_no_truths_make_every_returned_label_false(truths: pl.DataFrame) -> None:
    table = with_truths(RETURNED, truths)
    assert table["truth"].to_list() == [False] * 3
    assert_frame_equal(table.select(RETURNED.columns), RETURNED)


# -- rows of the truths that say the same, or not ----------------------------------------------------------------------


def test_equal_truths_count_once() -> None:
    assert_frame_equal(with_truths(RETURNED, pl.concat([TRUTHS, TRUTHS])), with_truths(RETURNED, TRUTHS))


@pytest.mark.parametrize(
    ("said", "truth"),
    [
        ([1.0, 1.0], 1.0),
        ([0.0, 1.0], None),
        ([2.0, 1.0], None),
        ([None, 1.0], 1.0),
        ([None, None], None),
    ],
)
@pytest.mark.parametrize("label", ["a", "z"])
def test_truths_that_contradict_each_other_are_unknown(said: list[float | None], truth: Any, label: str) -> None:
    truths = pl.DataFrame({"sample": [1, 1], "label": label, "truth": said}, schema_overrides={"truth": pl.Float64})
    table = with_truths(RETURNED, truths).filter(sample=1, label=label)
    assert table["truth"].to_list() == [truth]


def test_a_broken_truth_stays_broken() -> None:
    truths = TRUTHS.with_columns(truth=float("nan"))
    assert with_truths(RETURNED, truths)["truth"].is_nan().to_list() == [False, True, False, True, True]


# -- columns beside the roles ------------------------------------------------------------------------------------------


def test_other_columns_are_kept_and_taken_from_the_truths_where_these_have_them() -> None:
    returned = RETURNED.with_columns(place=pl.Series([1, 2, 1]), country=pl.Series(["DE", "DE", "FR"]))
    truths = TRUTHS.with_columns(country=pl.Series(["XX", "DE", "IT"]), annotator=pl.lit("x"))
    assert with_truths(returned, truths).select("sample", "label", "place", "country").rows() == [
        (1, "a", 1, "DE"),
        (1, "b", 2, "DE"),
        (2, "a", 1, "FR"),
        (1, "c", None, "DE"),
        (3, "a", None, "IT"),
    ]
    assert "annotator" not in with_truths(returned, truths)


def test_other_columns_of_equal_truths_that_differ_are_unknown() -> None:
    truths = pl.DataFrame({"sample": [5, 5, 6, 6], "label": "a", "country": ["DE", "FR", None, "IT"]})
    table = with_truths(RETURNED.with_columns(country=pl.lit("DE")), truths).filter(pl.col("sample") > 2)
    assert table.select("sample", "country").rows() == [(5, None), (6, "IT")]


def test_other_columns_may_be_nested_or_called_like_a_pattern() -> None:
    returned = RETURNED.with_columns(words=pl.Series([["u"], [], None], dtype=pl.List(pl.String)))
    returned = returned.with_columns(pl.lit(7).alias("^s.*$"), pl.lit(8).alias("*"))
    truths = TRUTHS.with_columns(pl.lit(9).alias("^s.*$"), words=pl.Series([["v"]] * 3))
    table = with_truths(returned, truths, n_labels=3)
    assert table["words"].to_list() == [["u"], [], None, ["v"], ["v"], *[None] * 4]
    assert table.get_column("^s.*$").to_list() == [7, 7, 7, 9, 9, *[None] * 4]
    assert table.get_column("*").to_list() == [8, 8, 8, *[None] * 6]


def test_scores_of_the_truths_are_not_taken() -> None:
    assert_frame_equal(with_truths(RETURNED, TRUTHS.with_columns(score=pl.lit("sure"))), with_truths(RETURNED, TRUTHS))


# -- which rows match --------------------------------------------------------------------------------------------------


def test_the_sample_may_be_several_columns_of_any_name() -> None:
    returned = pl.DataFrame({"day": [1, 2], "user": ["u", "u"], "item": [5, 5], "score": [0.9, 0.8]})
    truths = pl.DataFrame({"item": [5, 6], "user": ["u", "u"], "day": [2, 2]})
    assert with_truths(returned, truths, on=["day", "user", "item"]).rows() == [
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
        (None, "a", NEVER, None, "not returned"),
        (1, "a", NEVER, True, "not returned"),
    ]


TEXTS = [pl.String, pl.Categorical, pl.Enum(["a", "b"]), pl.Enum(["c", "b", "a"])]


@pytest.mark.parametrize("one", TEXTS, ids=str)
@pytest.mark.parametrize("other", TEXTS, ids=str)
def test_texts_of_any_kind_match(one: Any, other: Any) -> None:
    returned = RETURNED.with_columns(pl.col("label").cast(one))
    truths = TRUTHS.filter(pl.col("label") != "c").with_columns(pl.col("label").cast(other))
    table = with_truths(returned, truths)
    assert table["label"].dtype == (one if one == other else pl.String)
    assert table.select(pl.col("label").cast(pl.String), "truth").rows() == [
        ("a", False), ("b", True), ("a", False), ("a", True),
    ]  # fmt: skip


# -- several lists of one sample ---------------------------------------------------------------------------------------


def test_each_list_gets_the_true_labels_of_its_sample() -> None:
    truths = pl.DataFrame({"sample": [1, 1, 2], "label": ["b", "c", "a"]})
    assert with_truths(MODELS, truths, by="model").rows() == [
        ("m", 1, "a", 0.9, False, "returned"),
        ("n", 1, "b", 0.8, True, "returned"),
        ("m", 1, "b", NEVER, True, "not returned"),
        ("m", 1, "c", NEVER, True, "not returned"),
        ("n", 1, "c", NEVER, True, "not returned"),
        (None, 2, "a", NEVER, True, "not returned"),
    ]


def test_truths_of_a_list_are_for_that_list_alone() -> None:
    truths = pl.DataFrame({"sample": [1, 1, 2], "label": ["a", "c", "a"], "model": ["n", "m", "o"]})
    assert with_truths(MODELS, truths, by=["model"]).rows() == [
        ("m", 1, "a", 0.9, False, "returned"),
        ("n", 1, "b", 0.8, False, "returned"),
        ("n", 1, "a", NEVER, True, "not returned"),
        ("m", 1, "c", NEVER, True, "not returned"),
        ("o", 2, "a", NEVER, True, "not returned"),
    ]


def test_the_truths_may_know_some_of_what_tells_lists_apart() -> None:
    returned = MODELS.with_columns(fold=pl.Series([0, 1]))
    truths = pl.DataFrame({"sample": [1, 1, 1], "label": ["c", "d", "e"], "fold": [0, 1, 2]})
    table = with_truths(returned, truths, by=["model", "fold"])
    assert table.filter(listed="not returned").select("model", "fold", "label").rows() == [
        ("m", 0, "c"),
        ("n", 1, "d"),
        (None, 2, "e"),
    ]


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
    assert_frame_equal(table[:5].cast({LISTED: LISTED_TYPE}), with_truths(RETURNED, TRUTHS))
    assert table[5:].rows() == [(sample, None, NEVER, False, "filled in") for sample in (1, 2, 2, 2, 3, 3, 3)]


def test_full_lists_are_not_filled() -> None:
    table = with_truths(RETURNED.filter(sample=1), TRUTHS.filter(sample=1), n_labels=3)
    assert table["label"].to_list() == ["a", "b", "c"]


def test_lists_are_filled_by_what_tells_them_apart() -> None:
    truths = pl.DataFrame({"sample": [1, 2], "label": ["b", "a"]})
    table = with_truths(MODELS, truths, by="model", n_labels=3)
    assert table.filter(pl.col("label").is_null()).rows() == [
        ("m", 1, None, NEVER, False, "filled in"),
        ("n", 1, None, NEVER, False, "filled in"),
        ("n", 1, None, NEVER, False, "filled in"),
        (None, 2, None, NEVER, False, "filled in"),
        (None, 2, None, NEVER, False, "filled in"),
    ]


def test_an_unknown_sample_is_no_list() -> None:
    returned = RETURNED.with_columns(sample=pl.lit(None, pl.Int64))
    assert len(with_truths(returned, TRUTHS.clear(), n_labels=5)) == 3


# -- brute force -------------------------------------------------------------------------------------------------------


def drawn(rng: random.Random, columns: dict[str, Sequence[Any]], n_rows: int) -> list[Row]:
    return [{name: rng.choice(values) for name, values in columns.items()} for _ in range(n_rows)]


def one_value(values: list[Any]) -> Any:
    """The only value among these, or None."""
    distinct = {value for value in values if value is not None}
    return distinct.pop() if len(distinct) == 1 else None


def wanted(
    returned: list[Row], truths: list[Row], by: list[str], n_labels: int | None, truth_by: list[str]
) -> list[Row]:
    """What the result holds, worked out row by row."""
    same = ["sample", *truth_by]
    keys = [*truth_by, "sample", "label"]
    said: dict[Any, list[Row]] = {}
    for row in truths:
        said.setdefault(tuple(row[key] for key in keys), []).append(row)
    result = []
    for row in returned:
        equal = said.get(tuple(row[key] for key in keys))
        truth = one_value([other["truth"] for other in equal]) if equal else 0
        unknown = row["sample"] is None or row["label"] is None
        result.append({**row, "truth": None if unknown else truth, LISTED: "returned"})
    there = {tuple(row[key] for key in (*by, "sample", "label")) for row in returned}
    for rows in said.values():
        row = {**rows[0], "truth": one_value([r["truth"] for r in rows]), "day": one_value([r["day"] for r in rows])}
        unknown = row["sample"] is None or row["label"] is None
        lists = {
            tuple(other[key] for key in by)
            for other in returned
            if row["sample"] is not None and all(other[key] == row[key] for key in same)
        }
        for of_list in lists or {tuple(row.get(key) for key in by)}:
            if unknown or (*of_list, row["sample"], row["label"]) not in there:
                made = {**dict(zip(by, of_list, strict=True)), "sample": row["sample"], "label": row["label"]}
                truth = None if unknown else row["truth"]
                result.append({**made, "score": NEVER, "truth": truth, "day": row["day"], LISTED: "not returned"})
    if n_labels is None:
        return result
    sizes = Counter(tuple(row[key] for key in (*by, "sample")) for row in result if row["sample"] is not None)
    for of_list, size in sizes.items():
        of_sample = dict(zip((*by, "sample"), of_list, strict=True))
        filling = {**of_sample, "label": None, "score": NEVER, "truth": 0, "day": None, LISTED: "filled in"}
        result += [filling] * (n_labels - size)
    return result


def counted(rows: list[Row], columns: Sequence[str]) -> Counter[Any]:
    """The rows without their order."""
    return Counter(tuple(row[column] for column in columns) for row in rows)


BY = {"model": ["m", "n", None], "fold": [0, 1]}
RETURNED_TYPES = {"model": pl.String, "fold": pl.Int64, "sample": pl.Int64, "label": pl.String, "score": pl.Float64}


@pytest.mark.parametrize("n_labels", [None, 12])
@pytest.mark.parametrize(
    ("by", "truth_by"),
    [
        ([], []),
        (["model"], []),
        (["model"], ["model"]),
        (["model", "fold"], []),
        (["model", "fold"], ["model"]),
        (["model", "fold"], ["fold"]),
        (["model", "fold"], ["model", "fold"]),
    ],
    ids=str,
)
def test_small_tables_are_as_worked_out_row_by_row(by: list[str], truth_by: list[str], n_labels: int | None) -> None:
    rng = random.Random(f"{by} {truth_by} {n_labels}")
    for _ in range(40):
        key = {"sample": [1, 2, 3, None], "label": ["a", "b", "c", None]}
        columns = {**{name: BY[name] for name in by}, **key}
        rows = drawn(rng, {**columns, "score": [0.1, 0.5, None, NEVER], "day": [7, 8, None]}, rng.randint(0, 8))
        # No label twice in a list; what is unknown is no label.
        seen = {tuple(row[name] for name in columns): row for row in rows}
        returned = list(seen.values())
        said = drawn(
            rng, {**{name: BY[name] for name in truth_by}, **key, "truth": [0, 1, 1, 2, None], "day": [7, 8, None]},
            rng.randint(0, 8),
        )  # fmt: skip
        schema = {name: dtype for name, dtype in RETURNED_TYPES.items() if name in (*columns, "score")}
        given = pl.DataFrame(returned, schema={**schema, "day": pl.Int64})
        types = {name: RETURNED_TYPES[name] for name in (*truth_by, "sample", "label")}
        truths = pl.DataFrame(said, schema={**types, "truth": pl.Int64, "day": pl.Int64})
        expected = wanted(returned, said, by, n_labels, truth_by)
        table = with_truths(given, truths, by=by, n_labels=n_labels)
        names = [*by, "sample", "label", "score", "truth", "day", LISTED]
        assert table.columns == names
        assert counted(table.to_dicts(), names) == counted(expected, names), (given, truths)
        lazily = with_truths(given.lazy(), truths.lazy(), by=by, n_labels=n_labels)
        for engine in ("in-memory", "streaming"):
            found = lazily.collect(engine=engine)
            assert found.schema == table.schema == lazily.collect_schema()
            assert counted(found.to_dicts(), names) == counted(expected, names), (given, truths)


def test_order_is_kept_in_many_rows() -> None:
    n = 200_000
    returned = pl.DataFrame({"sample": range(n, 0, -1), "label": 0, "score": 0.5})
    truths = pl.DataFrame({"sample": range(n, 0, -1), "label": 1})
    table = with_truths(returned, truths, n_labels=3)
    assert table["sample"].equals(pl.concat([returned["sample"]] * 3))


# -- lazy --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("returned", "truths", "kind"),
    [
        (RETURNED, TRUTHS, pl.DataFrame),
        (RETURNED.lazy(), TRUTHS, pl.LazyFrame),
        (RETURNED, TRUTHS.lazy(), pl.LazyFrame),
        (RETURNED.lazy(), TRUTHS.lazy(), pl.LazyFrame),
    ],
)
@pytest.mark.parametrize("n_labels", [None, 4])
def test_one_lazy_frame_makes_the_result_lazy(returned: Any, truths: Any, kind: type, n_labels: int | None) -> None:
    table = with_truths(returned, truths, n_labels=n_labels)
    assert isinstance(table, kind)
    assert_frame_equal(table.lazy().collect(), with_truths(RETURNED, TRUTHS, n_labels=n_labels), check_row_order=False)


@pytest.mark.parametrize("truths", [TRUTHS, TRUTHS.with_columns(truth=2, fold=0)], ids=["names", "grades"])
@pytest.mark.parametrize("by", [None, ["model", "fold"]])
@pytest.mark.parametrize("n_labels", [None, 9])
def test_a_lazy_result_is_pure_and_native(truths: pl.DataFrame, by: Any, n_labels: int | None) -> None:
    returned = RETURNED.with_columns(model=pl.lit("m"), fold=0)
    plan = with_truths(returned.lazy(), truths.lazy(), by=by, n_labels=n_labels)
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


# -- what is refused ---------------------------------------------------------------------------------------------------


TWICE = (
    "returned has 2 rows of sample=1, label='b'. Name in by what tells the lists of a sample apart (model, fold), or "
    "keep one of the rows."
)


def call(returned: Any = RETURNED, truths: Any = TRUTHS, **given: Any) -> Callable[[], object]:
    return lambda: with_truths(returned, truths, **given)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (call(returned=[1]), "with_truths takes a DataFrame or a LazyFrame, not a list."),
        (call(truths={"sample": [1]}), "with_truths takes a DataFrame or a LazyFrame, not a dict."),
        (call(on="label"), "on takes a list of column names, not 'label'."),
        (call(on=[]), "on takes a list of column names, not []."),
        (call(on=["label"]), "on names the columns of the sample, then the one of the label, and is ['label']."),
        (call(on=["sample", pl.col("label")]), "on takes column names, and "),
        (call(on=["sample", "^l.*$"]), "on takes column names, and '^l.*$' is none."),
        (call(on=["sample", "score"]), "on: 'score' is the score of a label, and tells nothing apart."),
        (call(on=["sample", "sample", "label"]), "on names 'sample' twice."),
        (call(by=0), "by takes a list of column names, not 0."),
        (call(by=["sample"]), "by: 'sample' is in on already."),
        (call(n_labels=0), "n_labels is a number of 1 or more, not 0."),
        (call(n_labels=True), "n_labels is a number of 1 or more, not True."),
        (call(n_labels=2.0), "n_labels is a number of 1 or more, not 2.0."),
        (
            call(returned=RETURNED[[0, 2, 1, 1]]),
            TWICE,
        ),
        (
            call(returned=MODELS[[0, 1, 1]], by="model"),
            "returned has 2 rows of model='n', sample=1, label='b'. Name in by",
        ),
        (call(returned=RETURNED[[1, 1]], truths=TRUTHS.lazy()), "returned has 2 rows of sample=1, label='b'."),
        (call(n_labels=2), "n_labels is 2, and 3 labels are returned or true for sample=1."),
        (
            call(returned=MODELS, by="model", n_labels=2),
            "n_labels is 2, and 3 labels are returned or true for model='m', sample=1.",
        ),
    ],
)
def test_a_parameter_it_cannot_take_is_refused(bad: Callable[[], object], message: str) -> None:
    with pytest.raises(mlm.ParameterError) as caught:
        bad()
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("lazily", [False, True])
@pytest.mark.parametrize(
    ("returned", "truths", "message"),
    [
        (
            RETURNED.rename({"label": "labels"}),
            TRUTHS,
            "column 'label' is not in returned (sample, labels, score). Did you mean 'labels'?",
        ),
        (
            RETURNED,
            TRUTHS.rename({"label": "labels"}),
            "column 'label' is not in truths (sample, labels). Did you mean 'labels'?",
        ),
        (
            RETURNED.rename({"score": "scores"}),
            TRUTHS,
            "column 'score' is not in returned (sample, label, scores). Did you mean 'scores'?",
        ),
        (
            RETURNED.with_columns(score=pl.lit("high")),
            TRUTHS,
            "score is String: it must be Boolean or a number. Cast or map 'score' first.",
        ),
        (
            RETURNED,
            TRUTHS.with_columns(truth=pl.lit("yes")),
            "truth is String: it must be Boolean or a number. Cast or map 'truth' first.",
        ),
        (
            RETURNED,
            TRUTHS.cast({"sample": pl.Int32}),
            "column 'sample' is Int64 in returned and Int32 in truths: cast one of them.",
        ),
        (
            RETURNED.with_columns(day=1),
            TRUTHS.with_columns(day=pl.lit("Monday")),
            "column 'day' is Int32 in returned and String in truths: cast one of them.",
        ),
        (
            RETURNED.with_columns(label=pl.lit([1])),
            TRUTHS.with_columns(label=pl.lit([1])),
            "column 'label' is List(Int64): a key must be a plain value.",
        ),
    ],
)
def test_a_column_that_cannot_be_read_is_refused(
    returned: pl.DataFrame, truths: pl.DataFrame, message: str, lazily: bool
) -> None:
    with pytest.raises(mlm.ColumnError) as caught:
        with_truths(returned.lazy() if lazily else returned, truths)
    assert str(caught.value) == message


def test_a_list_column_that_is_not_there_is_refused() -> None:
    with pytest.raises(mlm.ColumnError, match=r"column 'modle' is not in returned .* Did you mean 'model'\?"):
        with_truths(MODELS, TRUTHS, by="modle")


def test_a_list_column_of_nested_values_is_refused() -> None:
    with pytest.raises(mlm.ColumnError, match=r"column 'model' is List\(String\): a key must be a plain value\."):
        with_truths(MODELS.with_columns(model=pl.lit(["m"])), TRUTHS, by="model")


@pytest.mark.parametrize("name", ["truth", LISTED])
@pytest.mark.parametrize("n_labels", [None, 4])
def test_a_column_that_would_be_written_over_is_refused(name: str, n_labels: int | None) -> None:
    with pytest.raises(mlm.NameCollisionError, match=f"returned has a column '{name}'"):
        with_truths(RETURNED.with_columns(pl.lit(1).alias(name)), TRUTHS, n_labels=n_labels)


def test_unknown_labels_are_no_labels_twice() -> None:
    returned = pl.DataFrame({"sample": [1, 1], "label": pl.Series([None, None], dtype=pl.String), "score": [0.9, 0.8]})
    assert with_truths(returned, TRUTHS)["truth"].to_list() == [None, None, True, True, True]


# -- what metrics make of it -------------------------------------------------------------------------------------------

LABELS = list("abcdef")


def lists_of_the_best(rng: random.Random) -> tuple[pl.DataFrame, pl.DataFrame]:
    """What was returned for some samples, and what was true: a few labels of six each, sometimes none."""
    returned = [
        {"sample": sample, "label": label, "score": rng.choice([0.1, 0.3, 0.5, 0.6, 0.9])}
        for sample in range(6)
        for label in rng.sample(LABELS, rng.randint(0, 3) if sample else 3)
    ]
    true = [
        {"sample": sample, "label": label} for sample in range(6) for label in rng.sample(LABELS, rng.randint(0, 3))
    ]
    types = {"sample": pl.Int64, "label": pl.String}
    return pl.DataFrame(returned, schema={**types, "score": pl.Float64}), pl.DataFrame(true, schema=types)


def with_every_negative(table: pl.DataFrame) -> pl.DataFrame:
    """The same, with a row for each label that occurs at all, of each sample."""
    every = table.select(pl.col("sample").unique()).join(table.select(pl.col("label").unique()), how="cross")
    joined = every.join(table.drop(LISTED), on=["sample", "label"], how="left")
    return joined.with_columns(pl.col("score").fill_null(NEVER), pl.col("truth").fill_null(False))


def parameters_of(name: str) -> list[dict[str, Any]]:
    """Calls of a metric: each average, and a k or another number where one is needed."""
    signature = inspect.signature(getattr(mlm, name)).parameters
    needed = {p.name: 2 for p in signature.values() if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD}
    needed = {parameter: 0.5 if parameter in ("alpha", "p", "q", "r", "f") else 2 for parameter in needed}
    averages = ("micro", "macro", "weighted", "samples") if signature.get("average") is not None else (None,)
    if name == "labelwise_precision":
        averages = ("macro",)
    return [needed if average is None else {**needed, "average": average} for average in averages]


def same(one: float | None, other: float | None) -> bool:
    return one == other or (one is not None and other is not None and math.isclose(one, other, rel_tol=1e-12))


@pytest.mark.parametrize("name", sorted(mlm.CATALOGUE))
def test_a_metric_is_declared_to_take_what_was_returned_if_and_only_if_the_other_negatives_change_nothing(
    name: str,
) -> None:
    rng = random.Random(name)
    changed = False
    for _ in range(6):
        table = with_truths(*lists_of_the_best(rng))
        whole = with_every_negative(table)
        for parameters in parameters_of(name):
            if name == "n_rows":
                continue  # which is the number of rows, whatever they are
            metric = getattr(mlm, name)(**parameters)
            if not mlm.CATALOGUE[name].of_returned:
                with pytest.raises(mlm.MetricError, match="needs every negative"):
                    mlm.evaluate(table, metric)
            of_returned = mlm.evaluate(table.drop(LISTED), metric).item()
            # A probability of -inf is broken, and its metric says so by itself; real numbers have no negatives.
            broken = of_returned is not None and not math.isfinite(of_returned)
            changed |= broken or not same(of_returned, mlm.evaluate(whole, metric).item())
    if mlm.CATALOGUE[name].of_returned:
        assert mlm.evaluate(table, getattr(mlm, name)(**parameters_of(name)[0])).height == 1
        assert not changed or name == "top_k_accuracy"  # which is broken by a sample of several true labels
    else:
        assert changed or name in ("classification_accuracy", "global_accuracy")  # which compare classes, not labels


def test_the_best_label_of_a_sample_may_be_one_that_was_not_returned() -> None:
    table = with_truths(RETURNED, TRUTHS)
    with pytest.raises(mlm.MetricError, match="f1 needs every negative"):
        mlm.evaluate(table, mlm.f1(threshold="argmax"))


def test_a_metric_that_needs_negatives_can_have_those_of_the_rows_alone() -> None:
    table = with_truths(RETURNED, TRUTHS)
    assert mlm.evaluate(table.drop(LISTED), mlm.n_rows(), mlm.hamming_loss()).row(0)[0] == table.height


@pytest.mark.parametrize("metric", [mlm.specificity(average="macro"), mlm.accuracy(labels=["a", "b"])], ids=repr)
def test_filled_in_negatives_have_no_label(metric: mlm.Metric) -> None:
    table = with_truths(RETURNED, TRUTHS, n_labels=4)
    assert mlm.evaluate(table, mlm.specificity(), mlm.f1(average="macro")).height == 1
    with pytest.raises(mlm.MetricError, match="does not know the labels of some"):
        mlm.evaluate(table, metric)


def test_a_state_refuses_what_evaluate_refuses() -> None:
    with pytest.raises(mlm.MetricError, match="hamming_loss needs every negative"):
        mlm.state(with_truths(RETURNED, TRUTHS), mlm.hamming_loss())
