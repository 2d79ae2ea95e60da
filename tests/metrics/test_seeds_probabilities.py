"""Log loss and the numbers of Orange, to the last printed digit, by both readings."""

import math
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.metrics.printed import EXACT, binary, exact, printed
from tests.support.at_once import each
from tests.support.readings import both, long

# --- 3. Log loss -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("score", "digits"), [(0.5, "0.69315"), (0.9, "0.10536"), (0.1, "2.3026")])
def test_log_loss_printed(score: float, digits: str) -> None:
    assert printed(both(binary([1], [score]), mlm.log_loss()), digits)


@pytest.mark.parametrize(
    ("params", "truth", "score", "number"),
    [
        ({}, [1, 0, 1], [0.9, 0.2, 0.7], 0.22839300363692283),
        ({}, [1], [0.0], 34.538776394910684),
        ({}, [0], [1.0], 34.53957599234088),  # 1 - (1 - 1e-15) is not 1e-15
        ({"eps": 0.0}, [1, 0], [1.0, 0.0], 0.0),
        ({"eps": 0.0}, [1, 0], [0.0, 0.0], math.inf),
        ({"eps": 2.220446e-16}, [1], [0.0], -math.log(2.220446e-16)),
    ],
)
def test_log_loss(params: dict[str, float], truth: list[int], score: list[float], number: float) -> None:
    assert both(binary(truth, score), mlm.log_loss(**params)) == exact(number)


def test_log_loss_of_a_sure_and_right_score_is_not_zero() -> None:
    assert both(binary([1], [1.0]), mlm.log_loss()) == pytest.approx(9.992007221626415e-16, rel=EXACT, abs=0)


@pytest.mark.parametrize(("dtype", "digits"), [("Float64", "36.0437"), ("Float32", "15.9424"), ("Float16", "6.9315")])
def test_log_loss_eps_of_the_type(dtype: str, digits: str) -> None:
    """Of float16 scikit-learn prints 6.9297: it takes the logarithm in float16 too."""
    frame = binary([1], [0.0], getattr(pl, dtype))
    assert printed(both(frame, mlm.log_loss(eps="dtype")), digits)


@pytest.mark.parametrize(
    ("params", "number"),
    [({"eps": 0.0}, math.log(2) / 2), ({}, (math.log(2) - math.log(1 - 1e-15)) / 2)],
)
def test_multiclass_log_loss(params: dict[str, float], number: float) -> None:
    frame = long([[0, 1, 0], [1, 0, 0]], [[0.2, 0.5, 0.3], [1.0, 0.0, 0.0]])
    assert both(frame, mlm.multiclass_log_loss(**params)) == exact(number)


def test_multiclass_log_loss_of_an_impossible_class() -> None:
    frame = long([[1, 0]], [[0.0, 1.0]])
    assert both(frame, mlm.multiclass_log_loss(eps=0.0)) == math.inf
    assert both(frame, mlm.multiclass_log_loss(eps=0.0, max_loss=math.log(3))) == exact(math.log(3))


# --- 4. Orange: three examples, two targets of two classes each -------------------------------------------------------


def orange(first: float = 0.9) -> pl.DataFrame:
    """A row for each example, target and class; `first` is what the true class of the first row is given."""
    columns = {
        "example": [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3],
        "target": ["one", "one", "two", "two"] * 3,
        "class": [0, 1, 0, 1] * 3,
        "score": [first, 1 - first, 0.4, 0.6, 0.6, 0.4, 0.2, 0.8, 1.0, 0.0, 0.7, 0.3],
        "truth": [1, 0, 0, 1, 0, 1, 0, 1, 1, 0, 1, 0],
        "predicted": [0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0],
        "actual": [0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0],
    }
    return pl.DataFrame(columns).with_columns(weight=pl.col("example").cast(pl.Float64))


ORANGE_ROLES: dict[str, Any] = {"sample": ["example", "target"], "label": "class"}
CA = mlm.classification_accuracy().on(score="predicted", truth="actual")
BRIER = mlm.multiclass_brier_score()
IS = mlm.information_score()
LOGLOSS = mlm.multiclass_log_loss(eps=1e-20, max_loss=math.log(3))


def test_orange() -> None:
    numbers = {
        mlm.average_score(CA, target="target"): 0.8333333333333333,
        mlm.average_score(BRIER): 0.22,
        mlm.average_score(IS): 0.3918909402870758,
        mlm.flattened(CA): 0.8333333333333334,
        mlm.average_score({"one": CA, "two": BRIER}, weights=[0.5, -1]): -0.28,
    }
    assert each(orange(), numbers, **ORANGE_ROLES) == exact(list(numbers.values()))
    whole = both(orange(), mlm.global_accuracy(), sample="example", score="predicted", truth="actual")
    assert whole == exact(2 / 3)


def test_orange_weights_that_sum_to_zero() -> None:
    with pytest.raises(mlm.ParameterError, match="must not sum to 0"):
        mlm.average_score({"one": CA, "two": CA}, weights=[1, -1])


def test_orange_with_weights_of_the_examples() -> None:
    """Their Brier score is 0.9733333333333333: only a part of the sum is weighted. By the definition it is this."""
    brier = ((0.02 + 2 * 0.72 + 3 * 0.0) / 6 + (0.32 + 2 * 0.08 + 3 * 0.18) / 6) / 2
    metrics = [mlm.average_score(CA, target="target"), mlm.average_score(IS), mlm.average_score(BRIER)]
    found = each(orange(), metrics, weight="weight", **ORANGE_ROLES)
    assert found == exact([0.8333333333333333, 0.48244786822307983, brier])


@pytest.mark.parametrize(("first", "number"), [(0.9, 0.3520492277584857), (0.0, 0.5175911899268663)])
def test_orange_log_loss(first: float, number: float) -> None:
    """No example costs more than ln n."""
    assert both(orange(first), mlm.average_score(LOGLOSS), **ORANGE_ROLES) == exact(number)


def test_orange_prior_of_a_class_that_is_always_true() -> None:
    """A prior of 1 is an error there. Here a probability below it costs all the bits there are, and 1 costs none."""
    frame = pl.DataFrame({"sample": [1, 1], "label": ["a", "b"], "score": [0.5, 0.5], "truth": [1, 0]})
    assert both(frame, mlm.information_score()) == -math.inf
    assert both(frame.with_columns(score=pl.col("truth") * 1.0), mlm.information_score()) == 0
