"""Scores that are NaN, infinite, no probabilities or null; single classes: what is broken, unknown or undefined."""

import math

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.data.sound_log import INF, LOG, NAN, OF_BROKEN_ROWS, READERS, breaks, by_state, found, put, told, values

# -- NaN score ---------------------------------------------------------------------------------------------------------

BROKEN = put(score=[0.9, NAN, 0.6, 0.8])


def test_nan_score_breaks_what_reads_it() -> None:
    assert breaks(BROKEN, *READERS)


def test_nan_score_breaks_its_own_group_alone() -> None:
    one, two = mlm.evaluate(BROKEN, mlm.accuracy(), by="sample")["accuracy"]
    assert math.isnan(one)
    assert two == 0.5


def test_nan_score_is_counted_and_named() -> None:
    row = told(BROKEN, mlm.f1())
    assert (row["n_rows"], row["n_excluded"], row["reason"]) == (4, 0, OF_BROKEN_ROWS)
    assert found(BROKEN, "score_nan") == ("error", 1, ["sample=1, label=b, score=nan, truth=0"])


def test_nan_score_can_be_left_out_and_is_counted() -> None:
    filled = pl.col("score").fill_nan(None)
    assert values(BROKEN, mlm.f1(), mlm.n_rows(), mlm.n_excluded(), score=filled) == [0.8, 3, 1]


# -- ±inf score --------------------------------------------------------------------------------------------------------


INFINITE = put(score=[INF, -INF, 0.6, 0.8])

OF_PROBABILITIES = [mlm.log_loss(), mlm.brier_score(), mlm.calibration_error()]


def test_infinite_score_has_its_place_in_a_ranking() -> None:
    """The true ones have inf and 0.8, the others -inf and 0.6."""
    assert values(INFINITE, mlm.f1(), mlm.roc_auc(), mlm.one_error(), mlm.ranking_loss()) == [0.8, 1.0, 0.0, 0.0]


@pytest.mark.parametrize("score", [INF, -INF])
def test_infinite_score_is_no_probability(score: float) -> None:
    log = put(score=[score, 0.2, 0.6, 0.8])
    assert breaks(log, *OF_PROBABILITIES)
    assert told(log, mlm.log_loss())["reason"] == OF_BROKEN_ROWS


def test_infinite_score_is_named() -> None:
    assert found(INFINITE, "score_infinite") == ("warning", 1, ["sample=1, label=a, score=inf, truth=1"])
    assert found(INFINITE, "score_minus_infinite") == ("info", 1, ["sample=1, label=b, score=-inf, truth=0"])


# -- score outside [0,1] -----------------------------------------------------------------------------------------------

MARGINS = put(score=[1.5, 0.2, 0.6, -3.0])


def test_score_outside_0_to_1_is_no_probability() -> None:
    assert breaks(MARGINS, *OF_PROBABILITIES)


def test_score_outside_0_to_1_is_ranked_and_decided() -> None:
    """Of the true ones, 1.5 is above both others and -3 above none."""
    assert values(MARGINS, mlm.roc_auc(), mlm.recall(), mlm.precision()) == [0.5, 0.5, 0.5]


def test_score_outside_0_to_1_may_be_a_logit() -> None:
    costs = [math.log1p(math.exp(-1.5)), math.log1p(math.exp(0.2)), math.log1p(math.exp(0.6)), math.log1p(math.exp(3))]
    assert values(MARGINS, mlm.log_loss(logits=True)) == [pytest.approx(sum(costs) / 4, rel=1e-12)]


def test_score_outside_0_to_1_is_named() -> None:
    examples = ["sample=1, label=a, score=1.5, truth=1", "sample=2, label=b, score=-3.0, truth=1"]
    assert found(MARGINS, "score_out_of_range") == ("warning", 2, examples)


# -- null score --------------------------------------------------------------------------------------------------------

UNSCORED = put(score=[0.9, 0.2, 0.6, None])


def test_null_score_is_left_out_and_counted() -> None:
    for road in (values, by_state):
        assert road(UNSCORED, mlm.recall(), mlm.n_rows(), mlm.n_excluded()) == [1.0, 3, 1]
    row = told(UNSCORED, mlm.recall())
    assert (row["n_rows"], row["n_excluded"], row["reason"]) == (3, 1, None)


def test_null_score_is_a_missed_positive_where_that_is_said() -> None:
    assert values(UNSCORED, mlm.recall(), mlm.n_excluded(), score=pl.col("score").fill_null(0)) == [0.5, 0]


def test_null_score_is_not_returned_where_that_is_said() -> None:
    """The true label of sample 2 is then missed; else that sample has no positive, and no recall."""
    assert values(UNSCORED, mlm.recall_at(1)) == [1.0]
    assert values(UNSCORED, mlm.recall_at(1), score=pl.col("score").fill_null(-INF)) == [0.5]


def test_null_score_of_all_rows_has_a_reason() -> None:
    row = told(put(score=pl.Series([None] * 4, dtype=pl.Float64)), mlm.f1())
    assert (row["value"], row["n_rows"], row["reason"]) == (None, 0, "no rows: all 4 are excluded for a null")


def test_null_score_is_named() -> None:
    assert found(UNSCORED, "score_null") == ("warning", 1, ["sample=2, label=b, score=null, truth=1"])


# -- single class ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("truth", [0, 1])
def test_a_single_class_has_no_auc_and_a_reason(truth: int) -> None:
    log = LOG.with_columns(truth=pl.lit(truth))
    assert values(log, mlm.roc_auc(), mlm.roc_auc(average="macro"), mlm.ks()) == [None, None, None]
    row = told(log, mlm.roc_auc())
    assert (row["value"], row["n_undefined"], row["reason"]) == (None, 1, "one class only")
    assert told(log, mlm.roc_auc(average="macro"))["reason"] == "undefined in 2 labels: one class only"


def test_a_single_class_has_the_value_that_is_said() -> None:
    assert values(LOG.with_columns(truth=pl.lit(1)), mlm.roc_auc(undefined=0.5)) == [0.5]


def test_a_single_class_in_one_group_is_named() -> None:
    log = put(truth=[1, 0, 1, 1])
    assert mlm.evaluate(log, mlm.roc_auc(), by="sample").rows() == [(1, 1.0), (2, None)]
    assert found(log, "group_of_one_class", by="sample") == ("warning", 1, ["sample=2"])
