"""States of returned lists, and the type that says what a log lacks."""

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from polars_mlmetrics.adapters.truths import with_truths
from polars_mlmetrics.data.returned import LISTED
from tests.adapters.shop import SHOP, SOLD, judged, refusal


@pytest.mark.parametrize("n_labels", [None, 6])
def test_a_state_answers_as_the_rows_do(n_labels: int | None) -> None:
    log = judged(n_labels=n_labels)
    metrics = [mlm.recall_at(2), mlm.recall(), mlm.n_rows()]
    state = mlm.state(log, metrics, by=["model", "country"])
    for asked in ({}, {"by": "country"}, {"slices": ["country"]}):
        assert_frame_equal(mlm.finish(state, metrics, **asked), mlm.evaluate(log, metrics, **asked))


def test_a_state_knows_what_its_log_lacks() -> None:
    """The statistics of the positives and of all rows are there, and yet their share is none of the labels."""
    state = mlm.state(judged(), mlm.recall(), mlm.support(), mlm.n_rows(), by="model")
    assert "prevalence needs all negatives" in refusal(lambda: mlm.finish(state, mlm.prevalence()))
    filled = mlm.state(judged(n_labels=6), mlm.specificity(), mlm.f1(average="macro"), by="model")
    assert mlm.finish(filled, mlm.specificity(), by="model").rows() == [("m", pytest.approx(14 / 15, rel=1e-12))]
    assert "negatives without a label" in refusal(lambda: mlm.finish(filled, mlm.specificity(), per="label"))


def test_a_state_of_counts_has_groups_of_any_column() -> None:
    state = mlm.state(judged(), mlm.n_rows(), by=["place", LISTED])
    assert mlm.finish(state, mlm.n_rows(), by=LISTED).rows() == [("returned", 4), ("not returned", 2)]


def test_a_state_stays_with_what_it_knows_in_a_file(tmp_path: Path) -> None:
    mlm.write_state(mlm.state(judged(), mlm.recall(), mlm.support(), mlm.n_rows()), tmp_path / "state.parquet")
    states = mlm.scan_states(tmp_path)
    assert mlm.finish(states, mlm.recall()).collect().item() == 1 / 3
    assert "prevalence needs all negatives" in refusal(lambda: mlm.finish(states, mlm.prevalence()))


def test_the_type_can_be_said_again() -> None:
    assert judged().schema[LISTED] == mlm.listed_type(by="model", of_sample="country", of_label="kind")
    assert judged(n_labels=6).schema[LISTED] == mlm.listed_type(
        by=["model"], of_sample=["country"], of_label=["kind"], n_labels=6
    )
    names, roles = {"sample": "search", "label": "item"}, {"sample": "search", "label": "item", "score": "p"}
    renamed = with_truths(SHOP.rename({**names, "score": "p"}), SOLD.rename(names), **roles)
    assert renamed.schema[LISTED] == mlm.listed_type(of_label="kind", **roles)
    assert mlm.evaluate(renamed, mlm.recall_at(2), **roles).item() == 0.5


def test_columns_that_were_joined_later_are_said() -> None:
    days = pl.DataFrame({"sample": [1, 2, 3], "day": [1, 2, 2]})
    log = judged().join(days, on="sample", maintain_order="left")
    assert "by 'day'" in refusal(lambda: mlm.evaluate(log, mlm.recall(), by="day"))
    log = log.cast({LISTED: mlm.listed_type(by="model", of_sample=["country", "day"])})
    assert mlm.evaluate(log, mlm.recall(), by="day").rows() == [(1, 1.0), (2, 0.0)]


def test_a_renamed_column_is_another_one() -> None:
    assert "by 'land'" in refusal(lambda: mlm.evaluate(judged().rename({"country": "land"}), mlm.recall(), by="land"))


def test_logs_of_two_days_go_one_under_the_other() -> None:
    log = pl.concat([judged(), judged()])
    assert mlm.evaluate(log, mlm.recall(), by="country").rows() == [("DE", 1.0), ("FR", 0.0)]
    with pytest.raises(pl.exceptions.PolarsError):
        pl.concat([judged(), judged(of_sample=None)])


def test_nothing_is_left_of_it_where_the_column_is_dropped() -> None:
    assert mlm.evaluate(judged().drop(LISTED), mlm.n_rows(), mlm.hamming_loss()).row(0)[0] == 6
