"""Lists of returned labels with the names of the true ones: what they lack, and that their log says so."""

from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.adapters.wide import from_lists
from tests.adapters.reshaped import INF, both_frames, lists, refused, rows

SEARCHES = pl.DataFrame({"query": ["q1", "q2"], "found": [["a", "b"], ["c"]], "score": [[0.9, 0.4], [0.7]]})
SEARCHES = SEARCHES.with_columns(clicked=pl.Series([["b"], ["c", "d"]]), country=pl.Series(["DE", None]))
RETURNED: dict[str, dict[str, Any]] = {"lists": {"label": "found"}, "structs": {"score": "pairs"}}


def searches(**arguments: Any) -> pl.DataFrame:
    pairs = [[{"label": "a", "score": 0.9}, {"label": "b", "score": 0.4}], [{"label": "c", "score": 0.7}]]
    frame = SEARCHES if "label" in arguments else SEARCHES.drop("found", "score").with_columns(pairs=pl.Series(pairs))
    return from_lists(frame, true_labels="clicked", sample="query", **arguments)


@pytest.mark.parametrize("kind", RETURNED)
def test_returned_lists_lack_negatives_and_say_so(kind: str) -> None:
    """The table of truths says the same of them, so both are one log."""
    log = searches(**RETURNED[kind])
    returned = SEARCHES.rename({"query": "sample", "found": "label"}).explode("label", "score")
    truths = SEARCHES.select(sample="query", label="clicked").explode("label")
    joined = mlm.with_truths(returned.drop("clicked"), truths, of_sample="country")
    columns = ["sample", "label", "score", "truth", "country"]
    text = pl.col("listed").cast(pl.String)
    assert log.select(*columns, text).sort(columns).rows() == joined.select(*columns, text).sort(columns).rows()
    for needy in (mlm.accuracy(), mlm.hamming_loss(), mlm.roc_auc(), mlm.log_loss()):
        refused(mlm.MetricError, "this log has only the returned labels (column 'listed')", mlm.evaluate, log, needy)
    # Of three positives one is first and d was not found; b is second.
    assert mlm.evaluate(log, mlm.recall(), mlm.recall_at(1), mlm.hit_at(1)).row(0) == (1 / 3, 1 / 4, 1 / 2)


@both_frames
def test_a_kept_column_is_known_in_every_row(as_frame: Any) -> None:
    frame = as_frame(SEARCHES.to_dict(as_series=False))
    log = from_lists(frame, true_labels="clicked", label="found", sample="query")
    assert rows(mlm.evaluate(log, mlm.recall(), by="country")) == [(None, 1 / 2), ("DE", 0.0)]
    problems = rows(mlm.check(log, progress=False))
    assert "missed_without_column" not in {problem for _, problem, *_ in problems}
    refused(mlm.MetricError, "by 'day': the added rows lack", mlm.evaluate, joined_later(log), mlm.recall(), by="day")
    restored = joined_later(log).cast({"listed": mlm.listed_type(of_sample=["country", "day"])})
    assert rows(mlm.evaluate(restored, mlm.recall(), by="day")) == [(1, 0.0), (2, 1 / 2)]


def joined_later(log: Any) -> Any:
    days = pl.DataFrame({"sample": ["q1", "q2"], "day": [1, 2]})
    return log.join(days.lazy() if isinstance(log, pl.LazyFrame) else days, on="sample")


def test_where_the_list_is_unknown_so_is_what_was_returned() -> None:
    frame = lists(score=[None, [0.5], None, []], label=[None, None, ["a"], []], true=[["a"], ["a"], ["a"], ["a"]])
    log = from_lists(frame, label="label", true_labels="true")
    assert log.select("sample", "label", "score", "listed").rows() == [
        (0, "a", None, None),
        (1, None, 0.5, "returned"),
        (1, "a", None, None),
        (2, "a", None, "returned"),
        (3, "a", -INF, "not returned"),
    ]
    found = mlm.check(log, progress=False).filter(problem="score_null")
    assert found["count"].to_list() == [3]


@pytest.mark.parametrize(
    ("score", "true", "label"),
    [([0.9, 0.2], "b", ["a", "b"]), ({"a": 0.9, "b": 0.2}, "b", None), ([0.9, 0.2], 1, None)],
    ids=["labels of all rows", "fields", "places"],
)
def test_lists_of_all_labels_lack_nothing(score: Any, true: Any, label: Any) -> None:
    log = from_lists(pl.DataFrame({"score": [score], "true": [[true]]}), true_labels="true", label=label)
    assert log.columns == ["sample", "label", "score", "truth"]
    assert mlm.evaluate(log, mlm.hamming_loss(), mlm.roc_auc()).row(0) == (1.0, 0.0)


@pytest.mark.parametrize("lazy", [False, True], ids=["DataFrame", "LazyFrame"])
def test_lists_that_are_all_empty_give_a_row_of_nulls_for_each_sample(lazy: bool) -> None:
    """Of a day on which nothing was returned, and nothing was true: no type of the labels is known."""
    frame = pl.DataFrame({"found": [[], None], "score": [[], None], "clicked": [None, []]})
    long = mlm.from_lists(frame.lazy() if lazy else frame, true_labels="clicked", label="found").lazy().collect()
    assert long.rows() == [(0, None, None, None, None), (1, None, None, None, None)]
    assert long.schema["label"] == pl.String


def test_lists_that_have_every_label_lose_the_column() -> None:
    frame = lists(score=[[0.9, 0.2], [0.8, 0.4]], label=[["a", "b"], ["b", "a"]], true=[["a"], ["b"]])
    log = from_lists(frame, label="label", true_labels="true")
    refused(mlm.MetricError, "If each list has every label, drop 'listed'", mlm.evaluate, log, mlm.accuracy())
    assert mlm.evaluate(log.drop("listed"), mlm.accuracy(), mlm.roc_auc()).row(0) == (1.0, 1.0)


def test_a_column_of_that_name_is_kept_or_refused() -> None:
    frame = lists(score=[[0.9]], truth=[[1]], label=[["a"]], true=[["a"]]).with_columns(listed=pl.lit("shop"))
    assert from_lists(frame, keep=["listed"])["listed"].to_list() == ["shop"]
    named = {"label": "label", "true_labels": "true"}
    refused(mlm.NameCollisionError, "'listed' is a column this", from_lists, frame.drop("truth"), **named)
