"""A sorted flag that is no longer true changes no number: no verb and no adapter takes it at its word."""

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.data.sound_log import found, problems

SHUFFLED = pl.DataFrame(
    {
        "sample": [2, 1, 2, 1, 3, 3],
        "label": ["b", "a", "a", "b", "b", "a"],
        "score": [0.2, 0.9, 0.8, 0.1, 0.7, 0.3],
        "truth": [0, 1, 1, 0, 0, 1],
        "weight": [3.0, 1.0, 2.0, 1.0, 5.0, 1.0],
    }
)
"""Samples 1 and 2 rank their true label first, sample 3 last; of nine pairs the true one is above in eight."""

RANKED = [mlm.one_error(), mlm.ranking_loss(), mlm.label_ranking_average_precision(), mlm.precision_at(1)]

descending = pytest.mark.parametrize("descending", [False, True], ids=["ascending", "descending"])


def flagged(*columns: str, descending: bool) -> pl.DataFrame:
    """The rows as they are, with columns that are said to be sorted and are not.

    Of a DataFrame the flags are seen, and dropped. A LazyFrame does not show them, and Polars takes them at their word.
    """
    return SHUFFLED.with_columns(pl.col(column).set_sorted(descending=descending) for column in columns)


@descending
@pytest.mark.parametrize("scanned", [False, True], ids=["as it is", "by scan"])
def test_a_stale_sorted_flag_on_the_key_of_groups(scanned: bool, descending: bool) -> None:
    log = flagged(*SHUFFLED.columns, descending=descending)
    rows = mlm.scan(log) if scanned else log
    by_sample = mlm.evaluate(rows, mlm.n_rows(), mlm.accuracy(), mlm.recall(average="macro"), by="sample")
    assert by_sample.lazy().collect().rows() == [(1, 2, 1.0, 1.0), (2, 2, 1.0, 1.0), (3, 2, 0.0, 0.0)]
    assert mlm.evaluate(rows, mlm.n_rows(), by="label").lazy().collect().rows() == [("a", 3), ("b", 3)]
    assert mlm.evaluate(rows, mlm.recall(average="max")).lazy().collect().item() == pytest.approx(2 / 3, rel=1e-12)


@descending
def test_a_stale_sorted_flag_on_the_samples_of_ranks(descending: bool) -> None:
    got = mlm.evaluate(flagged("sample", "score", descending=descending), RANKED).row(0)
    third = pytest.approx(1 / 3, rel=1e-12)
    assert got == (third, third, pytest.approx(5 / 6, rel=1e-12), pytest.approx(2 / 3, rel=1e-12))


@descending
def test_a_stale_sorted_flag_on_the_weight_of_an_auc(descending: bool) -> None:
    """Of pairs that weigh 36 in all, the true one is above in 31."""
    log = flagged("score", "truth", "weight", descending=descending)
    assert mlm.evaluate(log, mlm.roc_auc(), weight="weight").item() == pytest.approx(31 / 36, rel=1e-12)


@descending
def test_a_stale_sorted_flag_on_what_is_decided(descending: bool) -> None:
    """Two true ones are predicted, one is missed, and one of the others is predicted."""
    log = flagged("score", "truth", descending=descending)
    metrics = [mlm.true_positives(), mlm.false_positives(), mlm.false_negatives()]
    assert mlm.evaluate(log, metrics).row(0) == (2, 1, 1)
    assert mlm.finish(mlm.state(log, metrics), metrics).row(0) == (2, 1, 1)


@descending
def test_a_stale_sorted_flag_beside_columns_of_any_type(descending: bool) -> None:
    log = flagged("sample", descending=descending).with_columns(
        pl.Series("*", [object()] * 6, dtype=pl.Object), pl.lit(None).alias("nothing"), pl.lit([1]).alias("list")
    )
    assert mlm.evaluate(log, mlm.n_rows(), by="sample").rows() == [(1, 2), (2, 2), (3, 2)]


@descending
def test_a_stale_sorted_flag_hides_no_duplicate(descending: bool) -> None:
    log = flagged("sample", "label", descending=descending)
    twice = pl.concat([SHUFFLED, SHUFFLED]).with_columns(pl.col("sample", "label").set_sorted(descending=descending))
    assert found(twice, "duplicate")[1] == 6
    assert mlm.dedupe(twice, keep="first").equals(SHUFFLED)
    assert "duplicate" not in problems(log)


def without_flags(table: pl.DataFrame) -> bool:
    return not any(any(column.flags.values()) for column in table)


@descending
def test_scan_gives_rows_without_flags(descending: bool) -> None:
    assert without_flags(mlm.scan(flagged("sample", "label", "score", descending=descending)).collect())


@descending
def test_truths_are_found_in_tables_of_stale_flags(descending: bool) -> None:
    log = flagged("sample", "label", descending=descending)
    truths = pl.DataFrame({"sample": [2, 1, 3], "label": "a"})
    joined = mlm.with_truths(log.drop("truth"), truths.with_columns(pl.all().set_sorted(descending=descending)))
    expected = SHUFFLED.sort("sample", "label")["truth"].cast(pl.Boolean)
    assert joined.sort("sample", "label")["truth"].to_list() == expected.to_list()


@descending
def test_wide_tables_of_stale_flags_become_the_same_rows(descending: bool) -> None:
    wide = pl.DataFrame({"sample": [3, 1, 2], "score_a": [0.9, 0.1, 0.5], "truth_a": [1, 0, 1]})
    of_flagged = wide.with_columns(pl.all().set_sorted(descending=descending))
    plain, long = (mlm.from_wide(table, sample="sample").lazy().collect() for table in (wide, of_flagged))
    assert long.equals(plain)
    assert without_flags(long)
