"""Weights, thresholds and k: null, NaN, negative, 0, absent, or of an odd type."""

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.data.sound_log import (
    ENGINES,
    INF,
    LOG,
    NAN,
    OF_BROKEN_ROWS,
    READERS,
    breaks,
    by_state,
    found,
    problems,
    put,
    told,
    values,
)
from tests.support.refusals import raised

# -- null/NaN/inf/negative weight --------------------------------------------------------------------------------------


def test_null_weight_is_left_out_and_counted() -> None:
    log = put(weight=[1.0, 1.0, 1.0, None])
    found_values = values(log, mlm.accuracy(), mlm.n_rows(), mlm.n_excluded(), weight="weight")
    assert found_values == pytest.approx([2 / 3, 3, 1], rel=1e-12)
    where = ["sample=2, label=b, score=0.8, truth=1, weight=null"]
    assert found(log, "weight_null", weight="weight") == ("warning", 1, where)


WEIGHTS = {
    **dict.fromkeys([NAN, INF, 1e308, 1.1e280], "weight_not_finite"),
    **dict.fromkeys([-INF, -1.0], "weight_negative"),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("weight", "problem"), WEIGHTS.items(), ids=map(str, WEIGHTS))
def test_a_weight_that_is_none(weight: float, problem: str) -> None:
    log = put(weight=[1.0, 1.0, 1.0, weight])
    assert breaks(log, *READERS, weight="weight")
    assert told(log, mlm.f1(), weight="weight")["reason"] == OF_BROKEN_ROWS
    where = [f"sample=2, label=b, score=0.8, truth=1, weight={weight}"]
    assert found(log, problem, weight="weight") == ("error", 1, where)


def test_a_weight_that_is_none_and_not_named_is_not_read() -> None:
    assert values(put(weight=[NAN] * 4), mlm.f1()) == [0.8]


ZERO = put(weight=[0.0] * 4)

OF_ZERO = {
    mlm.f1(): "no positive and no predicted label",
    mlm.roc_auc(): "one class only",
    mlm.one_error(): "the weights of the samples sum to 0",
    mlm.accuracy(average="samples"): "the weights of the samples sum to 0",
}


@pytest.mark.parametrize(("metric", "reason"), OF_ZERO.items(), ids=repr)
def test_zero_total_weight_has_no_value_and_a_reason(metric: mlm.Metric, reason: str) -> None:
    assert values(ZERO, metric, weight="weight") == [None]
    row = told(ZERO, metric, weight="weight")
    assert (row["value"], row["n_rows"], row["reason"]) == (None, 4, reason)


@pytest.mark.parametrize("metric", [mlm.accuracy(), mlm.log_loss(), mlm.accuracy(average="macro")], ids=repr)
def test_zero_total_weight_is_not_taken_for_no_rows(metric: mlm.Metric) -> None:
    row = told(ZERO, metric, weight="weight")
    assert (row["value"], row["n_rows"]) == (None, 4)
    assert "no rows" not in row["reason"]


def test_zero_total_weight_is_named() -> None:
    severity, count, examples = found(ZERO, "weight_zero", weight="weight")
    assert (severity, count, len(examples)) == ("info", 4, 4)


# -- label weight/threshold missing ------------------------------------------------------------------------------------

OF_A = mlm.recall(threshold={"a": 0.5})


def test_a_label_without_a_threshold_is_refused_where_the_rows_are_at_hand() -> None:
    message = raised(mlm.ParameterError, mlm.evaluate, LOG, OF_A)
    assert message == "recall: no threshold for label 'b'. Add it, or use the key None for all other labels."


@pytest.mark.parametrize("engine", ENGINES)
def test_a_label_without_a_threshold_has_no_value_and_a_reason(engine: Any) -> None:
    row = mlm.evaluate(LOG.lazy(), OF_A, tidy=True).collect(engine=engine).row(0, named=True)
    assert (row["value"], row["reason"]) == (None, "rows without a threshold: 2")
    assert LOG.lazy().select(OF_A).collect(engine=engine).item() is None


def test_a_row_without_a_threshold_has_no_value_and_a_reason() -> None:
    log = LOG.with_columns(limit=pl.Series([0.5, 0.5, 0.5, None]))
    metric = mlm.recall(threshold=pl.col("limit"))
    assert values(log, metric) == [None]
    assert told(log, metric)["reason"] == "rows without a threshold: 1"


def test_a_label_without_a_weight_does_not_count() -> None:
    """The precision of a is 1/2, that of b 1."""
    weights = [{"a": 1}, {"a": 1, "b": 3}, {"a": 1, "z": 5}]
    metrics = [mlm.precision(average=each).alias(str(each)) for each in weights]
    assert values(LOG, *metrics) == [0.5, 0.875, 0.5]


def test_weights_of_no_label_have_a_reason() -> None:
    row = told(LOG, mlm.precision(average={"z": 1}))
    assert (row["value"], row["reason"]) == (None, "the weights of the labels sum to 0")


# -- k > labels, k=0, negative, threshold NaN --------------------------------------------------------------------------


def test_k_over_the_number_of_labels() -> None:
    """Precision still divides by k; the rest sees all labels."""
    assert values(LOG, mlm.precision_at(5), mlm.recall_at(5), mlm.ndcg(k=5)) == [0.2, 1.0, 1.0]


@pytest.mark.parametrize("k", [0, -1, 1.5, True, "1"], ids=repr)
@pytest.mark.parametrize("make", [mlm.precision_at, mlm.recall_at, mlm.top_k_accuracy, lambda k: mlm.ndcg(k=k)])
def test_k_that_is_none(make: Callable[..., object], k: Any) -> None:
    message = raised(mlm.ParameterError, make, k)
    assert "k must be a whole number of at least 1" in message
    assert message.endswith(f"not {k!r}.")


@pytest.mark.parametrize("threshold", [NAN, {"a": NAN}, {"a": 0.5, None: NAN}, {"a": None}], ids=str)
def test_threshold_nan_is_refused(threshold: Any) -> None:
    message = raised(mlm.ParameterError, mlm.f1, threshold=threshold)
    assert message.startswith("f1: threshold must be a number")


@pytest.mark.parametrize("metric", [mlm.f1, mlm.precision, mlm.false_positives])
def test_threshold_nan_in_a_column_gives_no_plausible_number(metric: Callable[..., mlm.Metric]) -> None:
    log = LOG.with_columns(limit=pl.Series([0.5, 0.5, 0.5, NAN]))
    (value,) = values(log, metric(threshold=pl.col("limit")))
    assert value is None or math.isnan(value)


# -- Decimal/UInt8/Int8/Int128 weight ----------------------------------------------------------------------------------

UNITS: dict[str, tuple[Any, Any]] = {
    "UInt8": (pl.UInt8, 50),
    "Int8": (pl.Int8, 25),
    "UInt64": (pl.UInt64, 2**61),
    "Int128": (pl.Int128, 2**100),
    "Decimal": (pl.Decimal(10, 2), Decimal("0.25")),
    "long Decimal": (pl.Decimal(38, 1), Decimal("0.1")),
    "Float32": (pl.Float32, 0.25),
}


@pytest.mark.parametrize(("dtype", "unit"), UNITS.values(), ids=UNITS)
def test_a_weight_of_any_type_is_the_number_that_it_is(dtype: Any, unit: Any) -> None:
    """The true ones weigh 4 and 5 units, the falsely predicted one 3 and the last one 2; no sum fits in 8 bits."""
    log = put(weight=pl.Series([4 * unit, 2 * unit, 3 * unit, 5 * unit], dtype=dtype))
    metrics = [mlm.precision(), mlm.accuracy(), mlm.specificity(), mlm.roc_auc(), mlm.support()]
    expected = [pytest.approx(float(x), rel=1e-12) for x in (9 / 12, 11 / 14, 2 / 5, 1, 9 * unit)]
    assert values(log, *metrics, weight="weight") == expected
    in_state = [mlm.precision(), mlm.accuracy(), mlm.support()]
    assert by_state(log, *in_state, weight="weight") == [expected[0], expected[1], expected[4]]
    assert problems(log, weight="weight") == {"weight_varies": 2}


@pytest.mark.parametrize("dtype", [pl.Int8, pl.Int128, pl.Decimal(10, 2)], ids=str)
def test_a_weight_below_0_of_any_type_is_broken(dtype: Any) -> None:
    log = put(weight=pl.Series([-100, 100, 100, 100]).cast(dtype))
    assert breaks(log, mlm.precision(), mlm.support(), weight="weight")
    assert found(log, "weight_negative", weight="weight")[:2] == ("error", 1)


# -- a threshold of another unit than the score ------------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [50, -0.1, {"a": 0.3, "b": 1.5}], ids=str)
@pytest.mark.parametrize("reader", [mlm.log_loss(), mlm.calibration_error(), mlm.roc_auc(bins=8)], ids=repr)
@pytest.mark.parametrize("as_frame", [pl.DataFrame, pl.LazyFrame])
def test_a_threshold_is_a_probability_where_the_score_is(as_frame: Any, reader: mlm.Metric, threshold: Any) -> None:
    """Scores from 0 to 1 are all on one side of 50: f1 was 0.0, beside a log loss that said what the scores are."""
    log, f1 = as_frame(LOG), mlm.f1(threshold=threshold)
    message = rf"^f1: the threshold .* is outside 0 to 1, and {reader.tree.output_name} reads the same score as a prob"
    for metrics in ([f1, reader], [reader, f1 * 2]):
        for verb in (mlm.evaluate, mlm.state):
            with pytest.raises(mlm.ParameterError, match=message):
                verb(log, metrics)


def test_a_threshold_of_any_size_is_right_of_other_scores() -> None:
    """Logits and margins have thresholds of their own: nothing says that they are probabilities."""
    log = LOG.with_columns(margin=pl.Series([3.0, -1.0, 2.6, 2.4]), p=pl.lit(0.5))
    far, expected = mlm.f1(threshold=2.5).on(score="margin"), 0.5  # rows 1 and 3 are predicted, 1 and 4 are true
    unread = mlm.log_loss().on(score="margin").filter(pl.col("sample") < 0)
    others = [mlm.log_loss(logits=True).on(score="margin"), mlm.log_loss().on(score="p"), mlm.roc_auc(), unread]
    for beside in ([], *([metric] for metric in others)):
        assert mlm.evaluate(log, far, *beside).row(0)[0] == expected
    for fitting in (0.0, 1.0, INF, -INF):
        assert mlm.evaluate(LOG, mlm.f1(threshold=fitting), mlm.log_loss()).width == 2
