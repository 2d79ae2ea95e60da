"""`evaluate(per=)`, tables of no rows, and what a label or a sample has of its own."""

from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from tests.analysis.champions import CHAMPION, LOG

# -- per -----------------------------------------------------------------------------------------------------------


def test_per_label() -> None:
    table = mlm.evaluate(LOG, mlm.f1(), mlm.n_rows(), mlm.labelwise_precision().alias("lwp"), by="model", per="label")
    assert table.columns == ["model", "label", "f1", "n_rows", "lwp"]
    assert table.sort("model", "label").rows() == [
        ("challenger", "x", 1.0, 2, 1.0),
        ("challenger", "y", None, 2, None),
        ("champion", "x", 2 / 3, 2, 0.5),
        ("champion", "y", 0.0, 2, None),
    ]


def test_per_sample() -> None:
    table = mlm.evaluate(CHAMPION, mlm.f1(average="samples"), mlm.one_error(), mlm.n_rows(), per="sample")
    assert table.columns == ["sample", "f1", "one_error", "n_rows"]
    assert table.sort("sample").rows() == [(1, 1.0, 0.0, 2), (2, 0.0, 1.0, 2)]


def test_per_sample_of_several_columns() -> None:
    table = mlm.evaluate(LOG, mlm.one_error(), per="sample", sample=["model", "sample"])
    expected = [("challenger", 1, 0.0), ("challenger", 2, 0.0), ("champion", 1, 0.0), ("champion", 2, 1.0)]
    assert table.sort("model", "sample").rows() == expected


def test_per_calls_the_unit_by_its_columns_real_name() -> None:
    log = CHAMPION.rename({"label": "topic", "sample": "doc"})
    assert mlm.evaluate(log, mlm.f1(), per="label", label="topic").columns == ["topic", "f1"]
    assert mlm.evaluate(log, mlm.f1(), per="sample", sample="doc").columns == ["doc", "f1"]


def test_per_with_slices() -> None:
    table = mlm.evaluate(CHAMPION, mlm.accuracy(), per="label", slices=["device"])
    assert table.columns == ["sliced_by", "slice", "device", "label", "accuracy"]
    slices = [("", "", None, 0.5), ("device", "device=ios", "ios", 1.0), ("device", "device=web", "web", 0.0)]
    expected = [(*keys, label, value) for *keys, value in slices for label in "xy"]
    assert table.sort("slice", "label").rows() == expected


def test_metrics_that_differ_in_their_average_alone_appear_once() -> None:
    averages = ["micro", "macro", "weighted", "samples", "min", "max", {"x": 1.0}]
    table = mlm.evaluate(CHAMPION, [mlm.f1(average=average) for average in averages], per="label")
    assert table.sort("label").rows() == [("x", 2 / 3), ("y", 0.0)]


def test_labels_that_are_absent_have_a_row() -> None:
    table = mlm.evaluate(CHAMPION, mlm.f1(labels=["x", "z"]), per="label")
    assert table.sort("label").rows() == [("x", 2 / 3), ("z", None)]
    table = mlm.evaluate(CHAMPION, mlm.f1(labels=["x", "z"], undefined=0.0), by="device", per="label")
    expected = [("ios", "x", 1.0), ("ios", "z", 0.0), ("web", "x", 0.0), ("web", "z", 0.0)]
    assert table.sort("device", "label").rows() == expected


def test_the_labels_of_one_metric_are_not_those_of_another() -> None:
    table = mlm.evaluate(CHAMPION, mlm.recall(labels=["x", "z"], undefined=0.0), mlm.n_rows(), per="label")
    assert table.sort("label").rows() == [("x", 0.5, 2), ("y", None, 2), ("z", 0.0, 0)]


@pytest.mark.parametrize("lacking", ["score", "label"])
def test_a_unit_without_a_used_row_is_not_there(lacking: str) -> None:
    log = CHAMPION.with_columns(pl.when(pl.col("label") == "x").then(lacking).alias(lacking))
    assert mlm.evaluate(log, mlm.accuracy(), per="label")["label"].to_list() == ["x"]


def test_arithmetic_per_unit() -> None:
    table = mlm.evaluate(CHAMPION, (1 - mlm.accuracy(average="macro")).alias("error"), per="label")
    assert table.sort("label").rows() == [("x", 0.5), ("y", 0.5)]


# -- tables of no rows -------------------------------------------------------------------------------------------------

ALL_KINDS = [
    mlm.f1(),
    mlm.f1(average="macro"),
    mlm.f1(average="min"),
    mlm.f1(average="samples"),
    mlm.one_error(),
    mlm.labelwise_precision(),
    mlm.roc_auc(),
    mlm.roc_auc(average="macro"),
    mlm.calibration_error(),
]


def test_no_rows_and_no_keys_give_one_row() -> None:
    table = mlm.evaluate(LOG.clear(), ALL_KINDS, mlm.n_rows(), mlm.n_samples(), mlm.n_excluded())
    assert table.rows() == [(*[None] * len(ALL_KINDS), 0, 0, 0)]


@pytest.mark.parametrize("tidy", [False, True])
def test_no_rows_by_a_key_give_no_rows_and_the_same_columns(tidy: bool) -> None:
    empty = mlm.evaluate(LOG.clear(), ALL_KINDS, by="model", tidy=tidy)
    assert empty.height == 0
    assert empty.schema == mlm.evaluate(LOG, ALL_KINDS, by="model", tidy=tidy).schema


def test_no_rows_and_slices_give_the_whole() -> None:
    table = mlm.evaluate(LOG.clear(), mlm.f1(), mlm.one_error(), slices=["country"])
    assert table.rows() == [("", "", None, None, None)]


def test_no_rows_per_unit() -> None:
    assert mlm.evaluate(LOG.clear(), mlm.f1(), by="model", per="label").rows() == []
    table = mlm.evaluate(LOG.clear(), mlm.f1(labels=["x", "z"]), per="label")
    assert table.sort("label").rows() == [("x", None), ("z", None)]


def test_counts_of_a_unit_are_never_null() -> None:
    """A unit that another metric has: of the rows of a filter there are none, and those left out are counted."""
    log = pl.DataFrame({"sample": [1, 1, 2, 2], "label": ["x", "y"] * 2, "score": [0.9, 0.2, 0.4, None], "truth": 1})
    first = mlm.n_rows().filter(pl.col("sample") == 1).alias("first")
    known = mlm.n_rows().on(score=pl.col("score").fill_null(0)).alias("known")
    table = mlm.evaluate(log.filter(pl.col("label") == "x"), first, mlm.n_rows(), per="sample")
    assert table.sort("sample").rows() == [(1, 1, 1), (2, 0, 1)]
    second = log.filter(pl.col("sample") == 2)
    table = mlm.evaluate(second, known, mlm.n_rows(), mlm.n_excluded(), mlm.recall(labels=["z"]), per="label")
    assert table.sort("label").rows() == [("x", 1, 1, 0, None), ("y", 1, 0, 1, None), ("z", 0, 0, 0, None)]


# -- roles of each metric its own --------------------------------------------------------------------------------------


def test_thresholds_by_label() -> None:
    metrics = mlm.true_positives(threshold={"x": 0.3, "y": 0.9}), mlm.false_positives(threshold={"x": 0.3, None: 0.9})
    assert mlm.evaluate(CHAMPION, metrics).row(0) == (2, 0)


def test_a_label_that_the_average_does_not_name_needs_no_threshold() -> None:
    metric = mlm.f1(threshold={"x": 0.3}, average={"x": 1.0})
    assert mlm.evaluate(CHAMPION, metric).item() == mlm.evaluate(CHAMPION.lazy(), metric).collect().item() == 1.0
    with pytest.raises(mlm.ParameterError, match="no threshold for label 'y'"):
        mlm.evaluate(CHAMPION, mlm.f1(threshold={"x": 0.3}, average={"x": 1.0, "y": 1.0}))


def test_a_label_without_a_threshold_is_not_known_lazily() -> None:
    table = mlm.evaluate(CHAMPION.lazy(), mlm.f1(threshold={"x": 0.3}), mlm.n_rows(), by="label").collect()
    assert table.rows() == [("x", 1.0, 2), ("y", None, 2)]


@pytest.mark.parametrize("name", ["count", "sum", "n_rows", "positives", "value", "rows", "literal", "len"])
def test_key_columns_may_have_any_name(name: str) -> None:
    log = LOG.rename({"model": name})
    metrics = [mlm.f1(), mlm.recall(average="macro"), mlm.one_error(), mlm.roc_auc()]
    table = mlm.evaluate(log, metrics, by=pl.col(name).str.to_uppercase())
    assert table[name].to_list() == ["CHALLENGER", "CHAMPION"]


def test_a_key_may_be_called_like_a_column_of_slices() -> None:
    frame = pl.DataFrame({"slice": ["a", "b"], "sliced_by": ["c", "c"], "score": [0.9, 0.2], "truth": [1, 1]})
    table = mlm.evaluate(frame, mlm.recall(), by=["slice", "sliced_by"])
    assert table.rows() == [("a", "c", 1.0), ("b", "c", 0.0)]


@pytest.mark.parametrize("passes", [None, 3])
@pytest.mark.parametrize("options", [{"by": "part"}, {"slices": ["part"]}, {"by": "part", "ci": 0.9}])
def test_a_sample_may_be_the_label_too(options: dict[str, Any], passes: int | None) -> None:
    """As in an average over users whose column is also that of the samples."""
    rows = pl.DataFrame({"sample": range(90)}).select(pl.all().repeat_by(2).explode())
    rows = rows.with_row_index("row").with_columns(part=pl.col("sample") % 3, truth=pl.col("row") % 5 < 2)
    rows = rows.with_columns(score=pl.col("row") * 7 % 10 / 10)
    metrics = [mlm.f1(average="macro"), mlm.f1(average="samples"), mlm.ndcg(k=2), mlm.n_samples(), mlm.f1()]
    expected = mlm.evaluate(rows.with_columns(label="sample"), metrics, tidy=True, **options)
    asked: dict[str, Any] = {} if passes is None else {"passes": passes, "progress": False}
    found = mlm.evaluate(rows.lazy(), metrics, tidy=True, label="sample", **options, **asked).collect()
    assert_frame_equal(found, expected)
