"""What `with_truths` refuses, and in which words."""

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.adapters.truths import with_truths
from polars_mlmetrics.data.returned import LISTED
from tests.adapters.shop import MODELS, RETURNED, TRUTHS

TWICE = (
    "returned has 2 rows of {}. If a sample has several lists (one for each model or fold), name that column in by=. "
    "Else keep one of the rows."
)
THREE = "n_labels is 2, and 3 labels are returned or true for"


def call(returned: Any = RETURNED, truths: Any = TRUTHS, **given: Any) -> Callable[[], object]:
    return lambda: with_truths(returned, truths, **given)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (call(returned=[1]), "with_truths takes a DataFrame or a LazyFrame, not a list."),
        (call(truths={"sample": [1]}), "with_truths takes a DataFrame or a LazyFrame, not a dict."),
        (call(sampel="sample"), "role 'sampel' is not one of the roles"),
        (call(on=["sample", "label"]), "role 'on' is not one of the roles"),
        (call(label=["label"]), "role 'label' takes a column name, not ['label']."),
        (call(label="sample"), "label: 'sample' is already in sample."),
        (call(sample=["sample", "score"]), "score: 'score' is already in sample."),
        (call(score=pl.col("score") * 2), 'score is [(col("score")) * (dyn int: 2)]: with_truths takes the name of a'),
        (call(by=0), "by takes a column name or a list of them, not 0."),
        (call(by=["sample"]), "by: 'sample' is already in sample."),
        (call(by=["^m.*$"]), "by column '^m.*$': Polars reads this name as a pattern"),
        (call(of_sample=["label"]), "of_sample: 'label' is already in label."),
        (call(returned=MODELS, by="model", of_sample="model"), "of_sample: 'model' is already in by."),
        (call(known=3), "known is a column, a condition or a table of samples, not 3."),
        (call(asked=(1,)), "with_truths takes a DataFrame or a LazyFrame, not a tuple."),
        (call(n_labels=0), "n_labels is a number of 1 or more, not 0."),
        (call(n_labels=True), "n_labels is a number of 1 or more, not True."),
        (call(n_labels=2.0), "n_labels is a number of 1 or more, not 2.0."),
        (call(RETURNED[[0, 2, 1, 1]]), TWICE.format("sample=1, label=b")),
        (call(MODELS[[0, 1, 1]], by="model"), TWICE.format("model=n, sample=1, label=b")),
        (call(RETURNED[[1, 1]], TRUTHS.lazy()), TWICE.format("sample=1, label=b")),
        (call(n_labels=2), f"{THREE} sample=1."),
        (call(MODELS, by="model", n_labels=2), f"{THREE} model=m, sample=1."),
    ],
)
def test_a_parameter_it_cannot_take_is_refused(bad: Callable[[], object], message: str) -> None:
    with pytest.raises(mlm.ParameterError) as caught:
        bad()
    assert str(caught.value).startswith(message)


SCORE_IS_TEXT = (
    "score is String: it must be Boolean or a number. Cast or map 'score' first. If it is the predicted class, "
    "mlm.from_predictions makes the long table."
)
TRUTH_IS_TEXT = (
    "truth is String: it must be Boolean or a number. Cast or map 'truth' first. pl.col('truth') == '...' says which "
    "text is true (on the command line: --truth truth=...)."
)
NO_LABEL, NO_SCORE = RETURNED.rename({"label": "labels"}), RETURNED.rename({"score": "scores"})
MONDAY, SHORT = TRUTHS.with_columns(day=pl.lit("Monday")), TRUTHS.cast({"sample": pl.Int32})
DAYS, LISTS = RETURNED.with_columns(day=1), RETURNED.with_columns(label=pl.lit([1]))


@pytest.mark.parametrize("lazily", [False, True])
@pytest.mark.parametrize(
    ("returned", "truths", "message"),
    [
        (NO_LABEL, TRUTHS, "column 'label' is not in returned (sample, labels, score). Did you mean 'labels'?"),
        (RETURNED, NO_LABEL.drop("score"), "column 'label' is not in truths (sample, labels). Did you mean 'labels'?"),
        (NO_SCORE, TRUTHS, "column 'score' is not in returned (sample, label, scores). Did you mean 'scores'?"),
        (RETURNED.with_columns(score=pl.lit("high")), TRUTHS, SCORE_IS_TEXT),
        (RETURNED, TRUTHS.with_columns(truth=pl.lit("yes")), TRUTH_IS_TEXT),
        (RETURNED, SHORT, "column 'sample' is Int64 in returned and Int32 in truths: cast one of them."),
        (DAYS, MONDAY, "column 'day' is Int32 in returned and String in truths: cast one of them."),
        (LISTS, LISTS.drop("score"), "column 'label' is List(Int64): a key must be a plain value."),
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


TEXT = pl.DataFrame({"sample": ["1"]})


@pytest.mark.parametrize("lazily", [False, True])
@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"of_sample": "day"}, "column 'day' is not in returned (sample, label, score)."),
        ({"known": "day"}, "column 'day' is not in returned (sample, label, score)."),
        ({"known": "score"}, "known is Float64: it must be Boolean, such as pl.col('day') < today."),
        ({"known": pl.DataFrame({"smaple": [1]})}, "column 'sample' is not in known (smaple). Did you mean 'smaple'?"),
        ({"asked": pl.DataFrame({"smaple": [1]})}, "column 'sample' is not in asked (smaple). Did you mean 'smaple'?"),
        ({"asked": TEXT}, "column 'sample' is Int64 in truths and String in asked: cast one of them."),
        ({"known": TEXT}, "column 'sample' is Int64 in truths and String in known: cast one of them."),
        ({"asked": TRUTHS, "known": pl.col("score") > 0}, "column 'score' is not in asked (sample, label)."),
        ({"truth": "clicked"}, "column 'clicked' is not in truths (sample, label)."),
        ({"weight": "w"}, "column 'w' is not in returned (sample, label, score)."),
        ({"weight": pl.col("w")}, "column 'w' is not in returned (sample, label, score)."),
    ],
)
def test_a_column_that_an_option_needs_is_asked_for(asked: dict[str, Any], message: str, lazily: bool) -> None:
    with pytest.raises(mlm.ColumnError) as caught:
        with_truths(RETURNED.lazy() if lazily else RETURNED, TRUTHS, **asked)
    assert str(caught.value) == message


def test_what_is_known_must_be_row_wise() -> None:
    with pytest.raises(mlm.MetricError, match="row by row"):
        with_truths(RETURNED, TRUTHS, known=pl.col("score").rank() > 1)
