"""The references against numbers worked by hand, where scikit-learn has none or means another thing."""

import math
from typing import Any

import polars as pl
import pytest
from scipy import special

from tests.laws.agreement import AGREE, agree
from tests.laws.oracle import expected, expected_counts, expected_units
from tests.support.readings import long, same


def test_curve_by_hand() -> None:
    """Four scores, of which the second holds a true and a false row; weights 1 and 2."""
    frame = pl.DataFrame({
        "score": [0.9, 0.6, 0.6, 0.3, 0.1], "truth": [0, 1, 0, 1, 0], "weight": [1.0, 2.0, 1.0, 1.0, 1.0],
    })  # fmt: skip

    def of(name: str, **params: Any) -> float | None:
        return expected(name, frame, params, {"weight": "weight"})

    # Points (recall, FPR, precision): (0, 0, -), (0, 1/3, 0), (2/3, 2/3, 1/2), (1, 2/3, 3/5), (1, 1, 1/2).
    assert of("ks") == pytest.approx(1 / 3)
    assert of("recall_at_precision", p=0.5) == 1.0
    assert of("recall_at_precision", p=0.61) == 0.0
    assert of("precision_at_recall", r=0.7) == 0.6
    assert of("precision_at_recall", r=0.0) == 0.6
    assert of("recall_at_fpr", f=0.66) == 0.0
    assert of("recall_at_fpr", f=2 / 3) == 1.0
    # The best third weighs 2: the first row, and 1 of the 3 at 0.6, of which 2/3 is true. Of all, 1/2 is true.
    assert of("lift_at", q=1 / 3) == pytest.approx((2 / 3 / 2) / (1 / 2))
    assert of("lift_at", q=1.0) == pytest.approx(1.0)
    assert expected("lift_at", frame.filter(truth=1), {"q": 0.5}) is None


ONE_SAMPLE = long([[1, 0, 1, 0]], [[0.5, 0.5, 0.2, 0.1]])
THREE_TIED = long([[0, 1, 0, 0]], [[0.3, 0.3, 0.3, 0.1]])


@pytest.mark.parametrize(
    ("frame", "name", "params", "value"),
    [  # each number comes with what scikit-learn gives
        (ONE_SAMPLE, "ndcg", {}, 0.806574),
        (ONE_SAMPLE, "ndcg", {"ties": "ignore"}, 0.919721),
        (ONE_SAMPLE, "dcg", {}, 1.315465),
        (ONE_SAMPLE, "ndcg", {"k": 2}, 0.5),
        (THREE_TIED, "ndcg", {}, 0.710310),
        (THREE_TIED, "ndcg", {"k": 2}, 0.543643),
        (long([[0, 0, 0, 0]], [[0.4, 0.3, 0.2, 0.1]]), "ndcg", {"undefined": 0.0}, 0),
        (long([[1, 1, 1, 1]], [[0.4, 0.3, 0.2, 0.1]]), "ndcg", {}, 1),
    ],
)
def test_gains_of_one_sample(frame: pl.DataFrame, name: str, params: dict[str, Any], value: float) -> None:
    found = expected(name, frame, params)
    assert same(found, value, 1e-6), found  # six digits are printed


LISTED = long([[1, 0, 1, 1, 0, 1]], [[0.9, 0.8, 0.7, 0.4, 0.3, 0.2]])  # true at 1, 3, 4, 6
TIED = long([[0, 1, 1, 0, 1]], [[0.9, 0.5, 0.5, 0.5, 0.1]])
MISSED = long([[0, 1, 1, 0, 1]], [[0.9, 0.5, -math.inf, -math.inf, -math.inf]])  # three were not returned
LATE = long([[0, 0, 1, 0]], [[0.9, 0.8, -math.inf, -math.inf]])
NOTHING = long([[0, 0]], [[0.4, 0.3]])


@pytest.mark.parametrize(
    ("frame", "name", "params", "value"),
    [
        (ONE_SAMPLE, "one_error", {}, 0.5),
        (ONE_SAMPLE, "coverage_error", {}, 3),
        (ONE_SAMPLE, "coverage_error", {"base": 0}, 2),
        (ONE_SAMPLE, "ranking_loss", {}, 1 / 2),
        (ONE_SAMPLE, "ranking_loss", {"ties": "half"}, 3 / 8),
        (ONE_SAMPLE, "ranking_loss", {"ties": "right"}, 1 / 4),
        (ONE_SAMPLE, "ranking_loss", {"ties": "right", "pairs": "all"}, 1 / 6),
        (ONE_SAMPLE, "label_ranking_average_precision", {}, (1 / 2 + 2 / 3) / 2),
        (ONE_SAMPLE, "exact_match_prefix", {}, 0),
        (ONE_SAMPLE, "labelwise_precision", {}, 0),
        (ONE_SAMPLE, "subset_accuracy", {"threshold": "argmax"}, 0),
        (ONE_SAMPLE, "true_positives", {"threshold": "argmax"}, 0.5),
        (ONE_SAMPLE, "false_negatives", {"threshold": "argmax"}, 1.5),
        (ONE_SAMPLE, "true_negatives", {"threshold": "argmax"}, 1.5),
        (ONE_SAMPLE, "precision", {"inclusive": True}, 0.5),
        (ONE_SAMPLE, "precision", {}, None),
        (ONE_SAMPLE, "precision", {"undefined": 0.0}, 0),
        (ONE_SAMPLE, "multiclass_log_loss", {}, math.nan),
        (ONE_SAMPLE, "multilabel_cross_entropy", {"base": 2, "negatives": False}, 1 + math.log2(5)),
        (LISTED, "precision_at", {"k": 3}, 2 / 3),
        (LISTED, "precision_at", {"k": 10}, 4 / 10),
        (LISTED, "recall_at", {"k": 3}, 2 / 4),
        (LISTED, "hit_at", {"k": 1}, 1),
        (LISTED, "f1_at", {"k": 3}, 2 * (2 / 3) * (1 / 2) / (2 / 3 + 1 / 2)),
        (LISTED, "r_precision", {}, 3 / 4),
        (LISTED, "reciprocal_rank", {}, 1),
        (LISTED, "average_precision_at", {"k": 3}, (1 + 2 / 3) / 3),
        (LISTED, "average_precision_at", {"k": 3, "denominator": "positives"}, (1 + 2 / 3) / 4),
        (LISTED, "average_precision_at", {}, (1 + 2 / 3 + 3 / 4 + 4 / 6) / 4),
        (LISTED, "ndcg", {"k": 3}, (1 + 1 / 2) / (1 + 1 / math.log2(3) + 1 / 2)),
        # One of three tied labels is in, of which two are true.
        (TIED, "precision_at", {"k": 2}, (2 / 3) / 2),
        (TIED, "recall_at", {"k": 2}, (2 / 3) / 3),
        (TIED, "hit_at", {"k": 2}, 2 / 3),
        (TIED, "f1_at", {"k": 2}, 2 * (2 / 3) / (2 + 3)),
        (TIED, "r_precision", {}, (4 / 3) / 3),
        # Of three orders of the tie, the first true label is second in two and third in one.
        (TIED, "reciprocal_rank", {}, (1 / 2 + 1 / 2 + 1 / 3) / 3),
        (TIED, "reciprocal_rank", {"k": 2}, (1 / 2 + 1 / 2) / 3),
        (TIED, "average_precision_at", {"k": 2}, (1 / 2 + 1 / 2) / 3 / 2),
        (TIED, "average_precision_at", {}, ((1 / 2 + 2 / 3 + 1 / 2 + 2 / 4 + 1 / 3 + 2 / 4) / 3 + 3 / 5) / 3),
        (TIED, "dcg", {"k": 2}, 2 / 3 / math.log2(3)),
        (TIED, "dcg", {"k": 2, "ties": "ignore"}, 1 / math.log2(3)),
        # What was not returned is no hit, but it is a positive.
        (MISSED, "precision_at", {"k": 5}, 1 / 5),
        (MISSED, "recall_at", {"k": 5}, 1 / 3),
        (MISSED, "r_precision", {}, 1 / 3),
        (MISSED, "average_precision_at", {}, (1 / 2) / 3),
        (MISSED, "label_ranking_average_precision", {}, (1 / 2 + 2 * 3 / 5) / 3),
        (MISSED, "ndcg", {}, (1 / math.log2(3)) / (1 + 1 / math.log2(3) + 1 / 2)),
        (MISSED, "ndcg", {"ties": "ignore"}, (1 / math.log2(3)) / (1 + 1 / math.log2(3) + 1 / 2)),
        (LATE, "reciprocal_rank", {}, 0),
        (LATE, "hit_at", {"k": 4}, 0),
        (LATE, "top_k_accuracy", {"k": 4}, 0),
        (LATE, "top_k_accuracy", {"k": 1, "undefined": 1.0}, 0),
        (TIED, "top_k_accuracy", {"k": 2}, math.nan),
        (NOTHING, "precision_at", {"k": 1}, 0),
        (NOTHING, "hit_at", {"k": 1}, 0),
        (NOTHING, "f1_at", {"k": 1}, 0),
        (NOTHING, "dcg", {}, 0),
        *((NOTHING, name, {}, None) for name in ("r_precision", "reciprocal_rank", "average_precision_at", "ndcg")),
        *((NOTHING, name, {"k": 1}, None) for name in ("recall_at", "top_k_accuracy")),
    ],
)
def test_lists(frame: pl.DataFrame, name: str, params: dict[str, Any], value: float | None) -> None:
    found = expected(name, frame, params)
    assert same(found, value, AGREE), found


def test_tied_labels_stand_in_the_order_of_their_names() -> None:
    frame = pl.DataFrame({"label": ["c", "a", "b", "b", None], "score": 0.5, "truth": [3, 1, 0, 2, 9], "sample": 1})
    value = 1 + 2 / math.log2(3) + 0 / 2 + 3 / math.log2(5)
    agree(expected("dcg", frame, {"ties": "ignore"}), value)
    agree(expected("dcg", frame.reverse(), {"ties": "ignore"}), value)
    assert expected_counts("dcg", frame, {"ties": "ignore"})["n_excluded"] == 1
    assert expected_counts("dcg", frame)["n_excluded"] == 0


# Three examples and two targets with the classes 0 and 1, as Orange reports them.
TARGETS = [
    long([[1, 0], [0, 1], [1, 0]], [[0.9, 0.1], [0.6, 0.4], [1.0, 0.0]], [1.0, 2.0, 3.0]),
    long([[0, 1], [0, 1], [1, 0]], [[0.4, 0.6], [0.2, 0.8], [0.7, 0.3]], [1.0, 2.0, 3.0]),
]


@pytest.mark.parametrize(
    ("name", "roles", "value"),
    [
        ("multiclass_brier_score", {}, 0.22),
        ("information_score", {}, 0.3918909402870758),
        ("information_score", {"weight": "weight"}, 0.48244786822307983),
        ("multiclass_log_loss", {}, 0.3520492277584857),
    ],
)
def test_targets_of_orange(name: str, roles: dict[str, str], value: float) -> None:
    one, two = (expected(name, target, {}, roles) or math.nan for target in TARGETS)
    agree((one + two) / 2, value)


@pytest.mark.parametrize(
    ("p", "prior", "value"),
    [
        (0.5, 0.5, 0.0), (0.0, 0.0, 0.0), (1.0, 1.0, 0.0),
        (1.0, 0.25, 2.0), (0.5, 0.25, 1.0), (0.25, 0.5, -math.log2(1.5)), (0.0, 0.5, -1.0),
        (0.5, 0.0, math.inf), (0.5, 1.0, -math.inf), (0.0, 1.0, -math.inf),
        (0.5, None, None), (0.5, 1.5, math.nan), (0.5, math.nan, math.nan),
    ],
)  # fmt: skip
def test_information_in_bits(p: float, prior: float | None, value: float | None) -> None:
    frame = pl.DataFrame({
        "sample": 1, "label": ["a", "b"], "score": [p, 0.5], "truth": [1, 0], "prior": [prior, None],
    }, schema_overrides={"prior": pl.Float64})  # fmt: skip
    for given in ("prior", pl.col("prior"), {"a": prior} if prior is not None else {"b": 0.5}):
        assert same(expected("information_score", frame, {"prior": given, "undefined": 7.0}), value)


def test_shares_of_labels_as_priors() -> None:
    """Of the true rows a has 3 of 4 by weight; a row without a label has no share, and a broken row breaks all."""
    frame = pl.DataFrame({
        "sample": [1, 1, 2, 2, 3], "label": ["a", "b", "a", "b", None], "score": [0.75, 0.9, 0.5, 0.5, 0.5],
        "truth": [1, 0, 0, 1, 1], "weight": [3.0, 3.0, 1.0, 1.0, 9.0],
    })  # fmt: skip
    roles = {"weight": "weight"}
    found = expected_units("information_score", frame, {}, roles, per="sample")
    assert found == {1: 0.0, 2: 1.0}
    broken = frame.with_columns(score=pl.when(pl.col("score") == 0.9).then(1.5).otherwise("score"))
    values = expected_units("information_score", broken, {}, roles, per="sample").values()
    assert [math.isnan(value or 0) for value in values] == [True, True]
    values = expected_units("information_score", broken, {"prior": {"a": 0.75, "b": 0.25}}, roles, per="sample")
    assert math.isnan(values[1] or 0)
    assert values[2] == 1.0
    lone = frame.with_columns(weight=pl.when(pl.col("truth") == 0).then(1.0).otherwise(0.0))
    assert expected("information_score", lone, {}, roles) is None  # shares of nothing
    assert expected("information_score", lone, {"undefined": 0.5}, roles) == 0.5


@pytest.mark.parametrize(
    ("norm", "value"),
    [("l1", 0.25 * 0.5 + 0.5 * 0.275), ("l2", math.sqrt(0.25 * 0.5**2 + 0.5 * 0.275**2)), ("max", 0.5)],
)
def test_calibration_error(norm: str, value: float) -> None:
    """Four bins: 0.5 (gap 0.5) begins the third, 0.25 and 0.30 (gap 0.275) are in the second, 1 (gap 0) in the last."""
    frame = pl.DataFrame({"score": [0.5, 0.25, 0.30, 1.0], "truth": [1, 0, 0, 1]})
    agree(expected("calibration_error", frame, {"bins": 4, "norm": norm}), value)


def test_brier_reliability_debiased() -> None:
    """Two bins: gaps of -1/2, -1/2 and 1/2 (mean -1/6, of a variance of 1/3), and a single row, which counts 0.

    By chance the mean moves by 1/9 squared: 1/36 - 1/9 is below 0, and cut. With a third row of -1/2, 1/16 - 1/16 is 0;
    with four of them all but one on one side, 9/100 - 1/25 is left of 5 of 6 rows.
    """
    cases = {
        (1, 1, 0): 0.0,
        (1, 1, 1, 0): 0.0,
        (1, 1, 1, 1, 0): 5 / 6 * (9 / 100 - 1 / 25),
        (1,): 0.0,
        (1, 1): 2 / 3 / 4,
    }
    for truths, value in cases.items():
        frame = pl.DataFrame({"score": [*[0.5] * len(truths), 0.25], "truth": [*truths, 1]})
        agree(expected("brier_reliability", frame, {"bins": 2, "debiased": True}), value)


def test_net_benefit() -> None:
    """As dcurves works it out: test_pos_rate of the true less threshold / (1 - threshold) of that of the others."""
    frame = pl.DataFrame({"score": [0.9, 0.3, 0.3, 0.2, 0.1], "truth": [1, 0, 1, 1, 0]})
    agree(expected("net_benefit", frame, {"threshold": 0.25}), 2 / 5 - 1 / 5 * (0.25 / 0.75))
    agree(expected("net_benefit", frame, {"threshold": 0.5}), 1 / 5)
    agree(expected("net_benefit", frame, {"threshold": 0.2, "inclusive": True}), 3 / 5 - 1 / 5 * 0.25)
    weighted = frame.with_columns(weight=pl.Series([1.0, 4.0, 1.0, 1.0, 1.0]))
    agree(expected("net_benefit", weighted, {"threshold": 0.25}, {"weight": "weight"}), 2 / 8 - 4 / 8 / 3)


def test_cost() -> None:
    """One of each cell, of weights 1, 2, 3 and 4."""
    frame = pl.DataFrame({"score": [0.9, 0.8, 0.2, 0.1], "truth": [1, 0, 1, 0], "weight": [1.0, 2.0, 3.0, 4.0]})
    agree(expected("cost", frame, {"fp": 5, "fn": 20}), (5 + 20) / 4)
    of_all = {"fp": 5, "fn": 20, "tp": -2, "tn": -1}
    agree(expected("cost", frame, of_all), (5 + 20 - 2 - 1) / 4)
    agree(expected("cost", frame, of_all, {"weight": "weight"}), (2 * 5 + 3 * 20 - 1 * 2 - 4 * 1) / 10)
    agree(expected("cost", frame, {"fp": 5, "fn": 20, "threshold": 0.05}), 10 / 4)


def test_kl_divergence() -> None:
    """As scipy has it, of both answers of a row; 0 where the score is the truth."""
    frame = pl.DataFrame({"score": [0.3, 0.5, 1.0, 0.25], "truth": [0.6, 0.0, 1.0, 0.25]})
    of_rows = [special.rel_entr(t, s) + special.rel_entr(1 - t, 1 - s) for s, t in frame.rows()]
    agree(expected("kl_divergence", frame, {"eps": 0.0}), sum(of_rows) / 4)
    assert expected("kl_divergence", frame.tail(2), {"eps": 0.0}) == 0
    assert expected("kl_divergence", pl.DataFrame({"score": [0.0], "truth": [0.5]}), {"eps": 0.0}) == math.inf


def test_focal_loss() -> None:
    """As torchvision has it: alpha_t · (1 - p_t)^gamma · the cross entropy."""
    frame = pl.DataFrame({"score": [0.9, 0.2], "truth": [1, 0]})
    agree(expected("focal_loss", frame), (0.1**2 * -math.log(0.9) + 0.2**2 * -math.log(0.8)) / 2)
    of_true = 0.25 * 0.1**0.5 * -math.log(0.9)
    agree(
        expected("focal_loss", frame, {"gamma": 0.5, "alpha": 0.25}), (of_true + 0.75 * 0.2**0.5 * -math.log(0.8)) / 2
    )
    agree(expected("focal_loss", frame, {"gamma": 0.0}), expected("log_loss", frame) or math.nan)


def test_labelwise_precision() -> None:
    """A is above every false label once in two, B never, C whenever it is true, D is never true."""
    truth = [[1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0]]
    score = [[0.9, 0.1, 0.5, 0.2], [0.5, 0.5, 0.1, 0.1], [0.1, 0.2, 0.9, 0.3]]
    frame = long(truth, score)
    assert expected_units("labelwise_precision", frame) == {"A": 0.5, "B": 0.0, "C": 1.0, "D": None}
    assert expected("labelwise_precision", frame) == 0.5
    assert expected("labelwise_precision", frame, {"average": "min"}) == 0.0
