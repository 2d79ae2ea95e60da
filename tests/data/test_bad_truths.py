"""Truths that are null, no truths, or not of the rows that were scored; models of other samples."""

import math

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.adapters.truths import with_truths
from tests.data.sound_log import (
    ENGINES,
    LOG,
    OF_BROKEN_ROWS,
    READERS,
    RETURNED,
    TRUTHS,
    breaks,
    found,
    put,
    told,
    values,
)
from tests.support.refusals import raised

# -- null truth --------------------------------------------------------------------------------------------------------

UNLABELLED = put(truth=[1, 0, 0, None])


def test_null_truth_is_left_out_and_counted() -> None:
    found = values(UNLABELLED, mlm.accuracy(), mlm.prevalence(), mlm.n_rows(), mlm.n_excluded())
    assert found == pytest.approx([2 / 3, 1 / 3, 3, 1], rel=1e-12)
    assert told(UNLABELLED, mlm.accuracy())["n_excluded"] == 1


def test_null_truth_is_named() -> None:
    assert found(UNLABELLED, "truth_null") == ("warning", 1, ["sample=2, label=b, score=0.8, truth=null"])


# -- truth 2/-1/255/.3/"yes" -------------------------------------------------------------------------------------------

NO_TRUTHS = {
    "2": pl.Series([1, 0, 0, 2]),
    "-1": pl.Series([1, 0, 0, -1], dtype=pl.Int8),
    "255": pl.Series([1, 0, 0, 255], dtype=pl.UInt8),
    "0.3": pl.Series([1.0, 0.0, 0.0, 0.3]),
    "nan": pl.Series([1.0, 0.0, 0.0, math.nan]),
}

BINARY = [metric for metric in READERS if metric.output_name not in ("ndcg", "log_loss", "brier_score")]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("shown", "truth"), NO_TRUTHS.items(), ids=NO_TRUTHS)
def test_a_truth_that_is_neither_0_nor_1(shown: str, truth: pl.Series) -> None:
    log = put(truth=truth)
    assert breaks(log, *BINARY)
    assert told(log, mlm.f1())["reason"] == OF_BROKEN_ROWS
    where = [f"sample=2, label=b, score=0.8, truth={shown}"]
    assert found(log, "truth_not_binary") == ("error", 1, where)


def test_a_row_that_does_not_count_breaks_nothing() -> None:
    """The last one, which has no score, or a label that nobody asks about."""
    broken, rest = put(truth=[1, 0, 0, 2]), LOG.head(3)
    assert values(broken.with_columns(score=pl.Series([0.9, 0.2, 0.6, None])), *READERS) == values(rest, *READERS)
    of_a = [mlm.f1(labels=["a"]), mlm.log_loss(labels=["a"]), mlm.roc_auc(labels=["a"])]
    assert values(broken, *of_a) == values(rest, *of_a)


def test_a_truth_that_is_a_grade_or_a_share_is_read_by_some() -> None:
    """The gains are 0 and 2: those of sample 2 stand in the ideal order, and so do those of sample 1."""
    assert values(put(truth=[1, 0, 0, 2]), mlm.ndcg()) == [1.0]
    costs = [-math.log(0.9), -math.log(0.8), -math.log(0.4), -0.3 * math.log(0.8) - 0.7 * math.log(0.2)]
    shares = put(truth=[1.0, 0.0, 0.0, 0.3])
    assert values(shares, mlm.log_loss()) == [pytest.approx(sum(costs) / 4, rel=1e-12)]


def test_a_truth_in_words() -> None:
    log = put(truth=["yes", "no", "no", "yes"])
    for frame in (log, log.lazy()):
        assert raised(mlm.ColumnError, mlm.evaluate, frame, mlm.f1()).startswith("truth is String")
    for engine in ENGINES:
        with pytest.raises(pl.exceptions.PolarsError):
            log.lazy().select(mlm.f1()).collect(engine=engine)
    severity, count, examples = found(log, "truth_is_no_number")
    assert (severity, count, examples[0]) == ("error", 4, "sample=1, label=a, score=0.9, truth=yes")
    assert values(log, mlm.f1(), truth=pl.col("truth") == "yes") == [0.8]


# -- label in truth table absent in scores / reverse -------------------------------------------------------------------


def test_a_true_label_that_was_not_scored_is_missed() -> None:
    """Of b and c one was found; the rows that were not returned are not counted as found."""
    table = with_truths(RETURNED, TRUTHS.head(2))
    assert table.filter(listed="not returned").select("label", "score", "truth").rows() == [("c", -math.inf, True)]
    assert values(table, mlm.recall_at(2)) == [0.5]
    where = ["sample=1, label=c, score=-inf, truth=True"]
    assert found(table, "score_minus_infinite") == ("info", 1, where)


def test_a_scored_label_that_is_not_among_the_truths_is_false() -> None:
    table = with_truths(RETURNED, TRUTHS.head(1))
    assert table.select("label", "truth").rows() == [("a", False), ("b", True)]
    assert values(table, mlm.precision_at(2)) == [0.5]


# -- sample in truth without any score rows ----------------------------------------------------------------------------


@pytest.mark.parametrize("n_labels", [None, 3])
def test_a_sample_without_scores_is_not_lost(n_labels: int | None) -> None:
    """Sample 1 finds one of two, sample 9 none of one."""
    table = with_truths(RETURNED, TRUTHS, n_labels=n_labels, asked=pl.DataFrame({"sample": [1, 9]}))
    assert values(table, mlm.n_samples(), mlm.recall_at(2), mlm.n_excluded()) == [2, 0.25, 0]


# -- two models with different sample sets -----------------------------------------------------------------------------

MODELS = pl.DataFrame(
    {
        "model": ["a", "a", "a", "b", "b"],
        "sample": [1, 2, 3, 2, 3],
        "label": "x",
        "score": [0.9, 0.2, 0.4, 0.8, 0.1],
        "truth": [1, 0, 1, 0, 1],
    }
)


def test_samples_that_one_model_lacks_are_counted() -> None:
    table = mlm.evaluate(MODELS, mlm.n_samples(), mlm.accuracy(), by="model")
    assert table.rows() == [("a", 3, pytest.approx(2 / 3, rel=1e-12)), ("b", 2, 0.0)]


def test_samples_that_all_models_have_are_named() -> None:
    assert found(MODELS, "sample_not_in_all", by="model") == ("warning", 1, ["sample=1"])


def test_samples_that_all_models_have_can_be_compared() -> None:
    """As `check` says to do it."""
    common = MODELS.filter(pl.col("model").n_unique().over("sample") > 1)
    assert found(common, "samples_in_common", by="model")[:2] == ("info", 2)
    table = mlm.evaluate(common, mlm.n_samples(), mlm.accuracy(), by="model")
    assert table.rows() == [("a", 2, 0.5), ("b", 2, 0.0)]
