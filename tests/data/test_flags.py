"""Columns that were flagged as sorted and are not: no verb and no adapter takes the flag at its word."""

import polars as pl
import pytest

import polars_mlmetrics as mlm

LOG = pl.DataFrame(
    {"sample": [2, 1, 2, 1], "label": ["b", "b", "a", "a"], "score": [0.9, 0.2, 0.8, 0.7], "truth": [1, 1, 0, 1]}
)
"""Recall is 1/2 of label b and 1 of label a."""


def flagged(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.all().set_sorted())


@pytest.mark.parametrize("scanned", [False, True], ids=["as it is", "by scan"])
def test_a_false_flag_changes_no_number(scanned: bool) -> None:
    rows = mlm.scan(flagged(LOG)) if scanned else flagged(LOG)
    assert mlm.evaluate(rows, mlm.recall(average="macro")).lazy().collect().item() == 0.75
    assert mlm.evaluate(rows, mlm.n_rows(), by="label").lazy().collect()["n_rows"].to_list() == [2, 2]


def test_scan_gives_rows_without_flags() -> None:
    table = mlm.scan(flagged(LOG)).collect()
    assert not any(any(column.flags.values()) for column in table)


def test_truths_are_found_in_tables_of_false_flags() -> None:
    returned = LOG.drop("truth")
    truths = pl.DataFrame({"sample": [2, 1, 1], "label": ["b", "b", "a"]})
    joined = mlm.with_truths(flagged(returned), flagged(truths))
    assert joined.sort("sample", "label")["truth"].to_list() == [True, True, False, True]


def test_wide_tables_of_false_flags_become_the_same_rows() -> None:
    wide = pl.DataFrame({"sample": [3, 1, 2], "score_a": [0.9, 0.1, 0.5], "truth_a": [1, 0, 1]})
    plain, of_flagged = (mlm.from_wide(table, sample="sample") for table in (wide, flagged(wide)))
    assert of_flagged.lazy().collect().equals(plain.lazy().collect())
    assert not any(any(column.flags.values()) for column in of_flagged.lazy().collect())
