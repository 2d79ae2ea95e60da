"""Curves and best thresholds from a state: those of the log with the same bins, and what a state must hold for them."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from tests.curves.thresholds import METRICS, by_trying, cost_at, is_close, log_of

pytestmark = pytest.mark.usefixtures("buckets_of_states")

BINS = 64
LOG = log_of(400).filter(pl.col("score").fill_null(1) >= 0)
PARTS = [LOG.filter(pl.col("sample") < 90), LOG.filter(pl.col("sample") >= 90)]
HELD = [
    mlm.roc_auc(bins=BINS, average="macro"),
    mlm.roc_auc(bins=BINS, average="macro", labels=["x", "z"]).alias("of_labels"),
    mlm.ks(bins=BINS).filter(pl.col("amount") > 3).alias("filtered"),
    mlm.lift_at(0.1, bins=BINS).on(weight="w").alias("weights"),
    mlm.calibration_error(),
    mlm.brier_resolution(),
    mlm.n_rows(),
]
NOT_TOLD = {"inclusive", "cost", "missed", "bound"}
TOLD: dict[str, Callable[..., mlm.Metric]] = {
    **{name: made for name, made in METRICS.items() if name not in NOT_TOLD},
    "share": lambda **t: mlm.false_negatives(**t) / mlm.n_rows(),
    "beside": lambda **t: mlm.f1(**t) - mlm.calibration_bias() - mlm.brier_uncertainty(),
}
KEYS: Mapping[str, Any] = {"by": "model", "slices": ["g"]}


def state_of(*metrics: mlm.Metric, **options: Any) -> pl.DataFrame:
    """A state of several files, one under the other."""
    return pl.concat([mlm.state(part, *metrics, **options) for part in PARTS])


@pytest.fixture(scope="module")
def state() -> pl.DataFrame:
    return state_of(*HELD, mlm.calibration_bias(), mlm.brier_uncertainty(), by=["model", "g"])


@pytest.fixture(scope="module")
def weighted() -> pl.DataFrame:
    return state_of(*HELD[:3], *HELD[4:], by=["model", "g"], weight="w")


def assert_same(found: pl.DataFrame, expected: pl.DataFrame) -> None:
    assert_frame_equal(found, expected, rel_tol=1e-12, abs_tol=1e-12)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", TOLD)
def test_the_values_at_thresholds_are_those_of_the_log(state: pl.DataFrame, name: str) -> None:
    metric = TOLD[name]().alias("m")
    found = mlm.curve(state, "threshold", metric, points=7, **KEYS)
    assert_same(found, mlm.curve(LOG, "threshold", metric, points=7, bins=BINS, **KEYS))
    assert found["value"].is_not_null().any()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", ["f1", "macro", "named", "share", "filtered"])
def test_their_intervals_are_those_of_the_log(state: pl.DataFrame, name: str) -> None:
    metric = TOLD[name]().alias("m")
    found = mlm.curve(state, "threshold", metric, points=3, ci=0.9, **KEYS)
    expected = mlm.curve(LOG, "threshold", metric, points=3, bins=BINS, ci=0.9, **KEYS)
    # A log counts its clusters, which are enough. A state has buckets alone, and few of them may tell something.
    seems_few = found["ci_flag"].eq_missing("low_n")
    assert seems_few.sum() < found.height / 2
    assert_same(found.drop("ci_flag"), expected.drop("ci_flag"))
    assert_same(found.filter(~seems_few), expected.filter(~seems_few))
    assert "low_n" not in expected["ci_flag"]
    assert found["low"].is_not_null().any()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["f1", "weighted", "difference"])
@pytest.mark.parametrize("ci", [None, 0.9])
def test_rows_with_weights_are_told_as_well(weighted: pl.DataFrame, name: str, ci: float | None) -> None:
    metric = TOLD[name]().alias("m")
    found = mlm.curve(weighted, "threshold", metric, points=3, ci=ci, by="model")
    assert_same(found, mlm.curve(LOG, "threshold", metric, points=3, bins=BINS, ci=ci, by="model", weight="w"))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", TOLD)
def test_the_value_at_a_threshold_is_that_of_the_metric_with_it(state: pl.DataFrame, name: str) -> None:
    made = TOLD[name]
    found = mlm.curve(state, "threshold", made().alias("m"), by="model", points=7)
    for (model,), rows in found.group_by("model"):
        group = LOG.filter(pl.col("model").eq_missing(pl.lit(model)))
        asked = [made(threshold=each).alias(str(place)) for place, each in enumerate(rows["threshold"])]
        expected = mlm.evaluate(group, asked).row(0)
        assert all(map(is_close, rows["value"], expected)), (rows, expected)


@pytest.mark.parametrize("ci", [None, 0.9])
def test_bins_of_calibration_are_those_of_the_log(state: pl.DataFrame, ci: float | None) -> None:
    assert_same(mlm.curve(state, "calibration", ci=ci, **KEYS), mlm.curve(LOG, "calibration", ci=ci, **KEYS))


@pytest.mark.parametrize("ci", [None, 0.9])
def test_of_weighted_bins_a_state_has_no_count_of_rows(weighted: pl.DataFrame, ci: float | None) -> None:
    of_log = mlm.curve(LOG, "calibration", ci=ci, by="model", weight="w")
    no_count = of_log.with_columns(n_rows=pl.lit(None, dtype=pl.Int64))
    assert_same(mlm.curve(weighted, "calibration", ci=ci, by="model"), no_count)


@pytest.mark.parametrize("name", ["f1", "macro", "filtered", "loss"])
def test_the_best_threshold_is_the_best_of_the_ends_of_cells(state: pl.DataFrame, name: str) -> None:
    made = TOLD.get(name, mlm.hamming_loss)
    found = mlm.best_threshold(state, made(), by="model")
    curve = mlm.curve(LOG, "threshold", made(), by="model", points=10**6, bins=BINS)
    for model, threshold, value, n_rows in found.rows():
        is_model = pl.col("model").eq_missing(pl.lit(model))
        expected = by_trying(LOG.filter(is_model), made, curve.filter(is_model)["threshold"].to_list())
        assert (threshold, value) == pytest.approx(expected, rel=1e-12)
        assert n_rows == LOG.filter(is_model, pl.col("amount") > (3 if name == "filtered" else 0))["score"].count()


def test_best_thresholds_of_labels_and_of_a_part() -> None:
    state = state_of(mlm.average_precision(bins=BINS, average="macro"), by=["model", "g"])
    found = mlm.best_threshold(state, mlm.f1(), per="label", where=pl.col("g") > 0)
    assert found.columns == ["label", "threshold", "value", "n_rows"]
    for label, threshold, value, n_rows in found.rows():
        rows = LOG.filter(pl.col("g") > 0, label=label)
        ends = mlm.curve(rows, "threshold", mlm.f1(), points=10**6, bins=BINS)["threshold"].to_list()
        assert (threshold, value) == pytest.approx(by_trying(rows, mlm.f1, ends), rel=1e-12)
        assert n_rows == rows["score"].count()


@pytest.mark.parametrize("bins", [None, BINS])
def test_the_point_of_a_metric_has_its_value(state: pl.DataFrame, bins: int | None) -> None:
    metric = mlm.recall_at_precision(0.45, bins=bins)
    found = mlm.best_threshold(state, metric, by="model")
    for model, threshold, value, _ in found.rows():
        rows = LOG.filter(pl.col("model").eq_missing(pl.lit(model)))
        told = rows.select(mlm.recall(threshold=threshold), mlm.precision(threshold=threshold)).row(0)
        assert told[0] == pytest.approx(value, rel=1e-12)
        assert value == 0 or told[1] >= 0.45
        assert value == pytest.approx(rows.select(mlm.recall_at_precision(0.45, bins=BINS)).item(), rel=1e-12)


def test_the_lowest_cell_of_any_score_is_not_told_apart_from_what_was_not_returned() -> None:
    random = np.random.default_rng(3)
    scores = np.where(random.random(300) < 0.2, -np.inf, random.normal(0, 50, 300))
    log = pl.DataFrame({"sample": range(300), "score": scores, "truth": random.random(300) < 0.4})
    state = mlm.state(log, mlm.roc_auc(bins=256, grid="float"))
    found = mlm.curve(state, "threshold", mlm.recall())
    for threshold, value in found.select("threshold", "value").rows():
        assert log.select(mlm.recall(threshold=threshold)).item() == pytest.approx(value, rel=1e-12)
    assert found["threshold"].is_finite().all()


def test_a_group_without_a_curve_has_one_row() -> None:
    nan = float("nan")
    log = pl.DataFrame(
        {"sample": [1, 2, 3], "model": ["bad", "bad", "none"], "score": [nan, 0.5, None], "truth": [True, False, True]}
    )
    state = mlm.state(log, mlm.roc_auc(bins=8), mlm.calibration_error(), mlm.brier_resolution(), by="model")
    for call in (
        lambda frame: mlm.curve(frame, "threshold", mlm.f1(), by="model"),
        lambda frame: mlm.curve(frame, "calibration", by="model"),
        lambda frame: mlm.best_threshold(frame, mlm.f1(), by="model"),
    ):
        assert str(call(state).rows()) == str(call(log).rows())


def test_a_lazy_state_gives_a_lazy_curve(state: pl.DataFrame) -> None:
    found = mlm.curve(state.lazy(), "threshold", mlm.f1(average="macro"), by="model", points=5)
    assert isinstance(found, pl.LazyFrame)
    assert_same(found.collect(), mlm.curve(state, "threshold", mlm.f1(average="macro"), by="model", points=5))


F1, OF_LABELS = mlm.f1(), mlm.f1(average="macro")
OF_FLOATS = mlm.ks(bins=BINS, grid="float")
OF_TRUE = F1.filter(pl.col("truth"))
AMOUNT = mlm.mae().on(score="amount").alias("amount")
PLAIN = mlm.state(LOG, mlm.roc_auc(bins=BINS), mlm.calibration_error(bins=9), AMOUNT, by="model")
GAP, PART = "'squared_gap@logits=False'", r"brier_resolution\(bins="
VERBS: dict[str, Callable[..., Any]] = {
    "none": partial(mlm.curve, mlm.state(LOG, F1), "threshold"),
    "curve": partial(mlm.curve, PLAIN, "threshold"),
    "bins": partial(mlm.curve, PLAIN, "calibration"),
    "best": partial(mlm.best_threshold, PLAIN),
}


@pytest.mark.parametrize(
    ("verb", "metrics", "asked", "message"),
    [
        ("none", [F1], {}, r"holds no curve: make it with roc_auc\(bins=4096\) among its metrics, or use the log"),
        ("curve", [F1], {"bins": 32}, r"holds no curve with bins=32: make it with roc_auc\(bins=32\) among"),
        ("curve", [OF_LABELS], {}, r"no curve by label: make it with roc_auc\(average='macro', bins=4096\) among"),
        ("curve", [F1 - mlm.prevalence(average="macro")], {}, "no curve by label"),
        ("curve", [OF_TRUE], {}, r"""make it with roc_auc\(bins=4096\).filter\(\[?\(?col\("truth"\).*\) among"""),
        ("curve", [F1.on(weight="amount")], {}, r"make it with roc_auc\(bins=4096\).on\(weight='amount'\) among"),
        ("bins", [], {}, rf"no calibration curve with 9 bins: make it with {PART}9\) among its metrics"),
        ("bins", [], {"bins": 5}, rf"5 bins: make it with calibration_error\(bins=5\) and {PART}5\) among"),
        ("curve", [mlm.f1(inclusive=True)], {}, "f1 predicts a score that is equal"),
        ("curve", [cost_at()], {}, "cost_at reads more of a row than its truth"),
        ("curve", [F1 - mlm.brier_score()], {}, f"brier_score needs {GAP}, which this state does not hold"),
        ("curve", [F1], {"score": "w"}, "score= cannot be given for a state"),
        ("best", [F1], {"per": "label"}, r"no curve by label: make it with roc_auc\(aver"),
        ("best", [mlm.ks(bins=7)], {}, r"no curve with bins=7: make it with roc_auc\(bins=7\)"),
        ("best", [OF_FLOATS], {}, r"no curve with bins=64: make it with roc_auc\(bins=64, grid='float'\)"),
        ("best", [F1], {"where": pl.col("label") == "x"}, "'label' is not a by column of the state"),
    ],
)
def test_what_a_state_lacks_is_said(verb: str, metrics: Any, asked: dict[str, Any], message: str) -> None:
    with pytest.raises(mlm.MetricError, match=message):
        VERBS[verb](*metrics, **asked)
