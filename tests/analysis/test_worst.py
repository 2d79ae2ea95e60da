"""`worst`: the samples, or the labels, to look at."""

from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm

# One row a sample; the cost falls from sample 1 to sample 4. Sample 5 is excluded, sample 6 broken.
LOG = pl.DataFrame(
    {
        "model": ["a", "a", "b", "b", "a", "b"],
        "sample": [1, 2, 3, 4, 5, 6],
        "label": ["x", "y", "x", "y", "x", "y"],
        "score": [0.1, 0.2, 0.3, 0.4, None, 1.5],
        "truth": [1, 1, 1, 1, 1, 1],
    }
)
WHOLE = LOG.head(4)
LOSS = mlm.log_loss()


def samples(table: pl.DataFrame) -> list[int]:
    return table["sample"].to_list()


def test_the_worst_samples_come_first() -> None:
    table = mlm.worst(WHOLE, mlm.log_loss())
    assert table.columns == ["sample", "log_loss", "n_undefined", "n_broken"]
    assert samples(table) == [1, 2, 3, 4]
    assert table["log_loss"].is_sorted(descending=True)


def test_the_worst_of_a_metric_to_maximise_is_its_lowest() -> None:
    assert samples(mlm.worst(WHOLE, mlm.recall(threshold=0.25, average="samples"), k=2)) == [1, 2]


@pytest.mark.parametrize("k", [1, 3, 4, 100])
def test_k_of_them(k: int) -> None:
    assert samples(mlm.worst(WHOLE, mlm.log_loss(), k=k)) == [1, 2, 3, 4][:k]


def test_k_is_fifty() -> None:
    log = pl.DataFrame({"sample": range(60), "score": [0.5] * 60, "truth": [1] * 60})
    assert mlm.worst(log, mlm.log_loss()).height == 50


def test_samples_that_are_equally_bad_come_in_the_order_of_their_keys() -> None:
    log = pl.DataFrame({"sample": [3, 1, 2], "score": [0.5] * 3, "truth": [1] * 3})
    assert samples(mlm.worst(log, mlm.log_loss(), k=2)) == [1, 2]
    assert samples(mlm.worst(log, mlm.brier_score(), k=2)) == [1, 2]


def test_of_each_group() -> None:
    table = mlm.worst(WHOLE, mlm.log_loss(), k=1, by="model")
    assert table.columns == ["model", "sample", "log_loss", "n_undefined", "n_broken"]
    assert table.select("model", "sample").rows() == [("a", 1), ("b", 3)]
    of_expression = mlm.worst(WHOLE, mlm.log_loss(), k=1, by=[pl.col("model").str.to_uppercase().alias("score")])
    assert of_expression.select("score", "sample").rows() == [("A", 1), ("B", 3)]
    of_null = WHOLE.with_columns(model=pl.when(pl.col("model") == "b").then("model"))
    table = mlm.worst(of_null, mlm.log_loss(), k=1, by="model")
    assert table.select("model", "sample").rows() == [(None, 1), ("b", 3)]


def test_of_each_slice_after_the_whole() -> None:
    table = mlm.worst(WHOLE, mlm.log_loss(), k=1, by="model", slices=["label"])
    slices = [("", "", None), ("label", "label=x", "x"), ("label", "label=y", "y")]
    of_slices = table.select("model", "sliced_by", "slice", "label").rows()
    assert of_slices == [(model, *of_slice) for model in "ab" for of_slice in slices]
    assert samples(table) == [1, 1, 2, 3, 3, 4]


def test_columns_are_kept_that_have_one_value_in_a_unit() -> None:
    log = pl.concat([WHOLE, WHOLE]).with_columns(url=pl.format("u{}", "sample"), row=pl.int_range(pl.len()))
    table = mlm.worst(log, mlm.log_loss(), k=2, by=pl.col("model").alias("url_of"), keep=["url", "row"])
    assert table.columns == ["url_of", "sample", "log_loss", "n_undefined", "n_broken", "url", "row"]
    expected = [("a", 1, "u1", None), ("a", 2, "u2", None), ("b", 3, "u3", None), ("b", 4, "u4", None)]
    assert table.select("url_of", "sample", "url", "row").rows() == expected
    sliced = mlm.worst(WHOLE, mlm.log_loss(), k=1, slices=["model"], keep="label")
    expected = [("", 1, "x"), ("model=a", 1, "x"), ("model=b", 3, "x")]
    assert sliced.select("slice", "sample", "label").rows() == expected


@pytest.mark.parametrize(
    ("keep", "error", "said"),
    [
        ("urls", mlm.ColumnError, "column to keep 'urls' is not in the table"),
        (["label", "label"], mlm.ParameterError, "keep names the column 'label' twice"),
        ("sample", mlm.NameCollisionError, "two columns of the result would have the name 'sample'"),
        (1, mlm.ParameterError, "keep takes a column name or a list of them, not 1"),
    ],
)
def test_what_cannot_be_kept_is_refused(keep: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        mlm.worst(WHOLE, mlm.log_loss(), keep=keep)


@pytest.mark.parametrize("average", ["macro", "weighted", "min", {"x": 1.0, "y": 2.0}])
def test_a_metric_of_labels_gives_labels(average: object) -> None:
    table = mlm.worst(WHOLE, mlm.brier_score(average=average))
    assert table.columns == ["label", "brier_score", "n_undefined", "n_broken"]
    assert table["label"].to_list() == ["x", "y"]
    assert mlm.worst(WHOLE, mlm.labelwise_precision()).columns[0] == "label"


def test_what_is_undefined_or_broken_is_left_out_and_counted() -> None:
    log = pl.concat([LOG, LOG.tail(1).with_columns(sample=pl.lit(7, pl.Int64), truth=pl.lit(0, pl.Int64), score=0.2)])
    table = mlm.worst(log, mlm.recall(threshold=0.25, average="samples"))
    assert samples(table) == [1, 2, 3, 4, 6]
    assert table.select("n_undefined", "n_broken").unique().rows() == [(1, 0)]
    table = mlm.worst(log, mlm.log_loss(), by="model")
    assert table.select("model", "n_undefined", "n_broken").unique().sort("model").rows() == [("a", 0, 0), ("b", 0, 1)]


def test_roles() -> None:
    log = WHOLE.rename({"sample": "doc", "score": "p", "truth": "t"})
    table = mlm.worst(log, mlm.log_loss().on(score="p"), k=1, sample="doc", truth="t")
    assert table["doc"].to_list() == [1]


def test_samples_of_several_columns() -> None:
    table = mlm.worst(WHOLE, mlm.log_loss(), k=1, sample=["model", "sample"])
    assert table.columns == ["model", "sample", "log_loss", "n_undefined", "n_broken"]


def test_an_alias_and_a_filter() -> None:
    table = mlm.worst(WHOLE, mlm.log_loss().filter(pl.col("model") == "b").alias("cost"), k=1)
    assert table.select("sample", "cost").rows() == [(3, pytest.approx(-pl.Series([0.3]).log().item()))]


@pytest.mark.parametrize(
    "metric", [-LOSS, 1 - LOSS, 2 * LOSS + 1, LOSS + mlm.brier_score(), LOSS / 2, LOSS * -1], ids=repr
)
def test_arithmetic_keeps_the_worst_end_or_turns_it(metric: mlm.Metric) -> None:
    assert samples(mlm.worst(WHOLE, metric.alias("cost"))) == [1, 2, 3, 4]


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_lazy_in_lazy_out(engine: str) -> None:
    lazy = mlm.worst(LOG.lazy(), mlm.log_loss(), k=2, by="model")
    assert isinstance(lazy, pl.LazyFrame)
    assert_frame_equal(lazy.collect(engine=engine), mlm.worst(LOG, mlm.log_loss(), k=2, by="model"))


def test_namespace_and_pipe() -> None:
    expected = mlm.worst(LOG, mlm.log_loss(), k=2)
    assert_frame_equal(LOG.mlm.worst(mlm.log_loss(), k=2), expected)
    assert_frame_equal(LOG.lazy().mlm.worst(mlm.log_loss(), k=2).collect(), expected)
    assert_frame_equal(LOG.pipe(mlm.worst, mlm.log_loss(), k=2), expected)


def test_no_rows() -> None:
    assert mlm.worst(LOG.clear(), mlm.log_loss(), by="model").rows() == []


@pytest.mark.parametrize("name", ["n_undefined", "n_broken", "sample"])
def test_a_name_that_the_table_has_already_is_an_error(name: str) -> None:
    message = f"two columns of the result would have the name '{name}'"
    with pytest.raises(mlm.NameCollisionError, match=message):
        mlm.worst(LOG, LOSS.alias(name))
    with pytest.raises(mlm.NameCollisionError, match=message):
        mlm.worst(LOG, LOSS, by=pl.col("model").alias(name))


def test_labels_that_an_average_does_not_name_have_no_place_in_the_order() -> None:
    log = pl.DataFrame(
        {"label": ["a", "b", "c"] * 2, "score": [0.9, 0.2, 0.3, 0.4, 0.5, 0.6], "truth": [1, 1, 0, 0, 1, 1]}
    )
    of_two = mlm.recall(average={"a": 1.0, "b": 2.0})
    assert mlm.worst(log, of_two).select("label", "recall").rows() == [("b", 0.0), ("a", 1.0)]
    assert mlm.worst(log, of_two + mlm.recall(average={"c": 1.0}))["label"].to_list() == ["b", "a", "c"]
    assert mlm.worst(log, mlm.recall(average="macro"))["label"].to_list() == ["b", "a", "c"]
