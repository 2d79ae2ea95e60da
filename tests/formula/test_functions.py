"""Functions of a metric's value are metrics; anything else of one is a plain expression, which roles do not reach."""

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.support.refusals import raised

# Accuracy by hand: rows 1 and 3 are right of weights 1 and 3, and row 2 is wrong of weight 6. Group b is all right.
LOG = pl.DataFrame(
    {
        "model": ["a", "a", "a", "b"],
        "sample": [1, 2, 3, 1],
        "label": ["x", "y", "x", "y"],
        "score": [0.9, 0.8, 0.1, 0.7],
        "truth": [1, 0, 0, 1],
        "w": [1.0, 6.0, 3.0, 1.0],
    }
)
A = LOG.filter(model="a")
VALUE, WEIGHTED = 2 / 3, 0.4

FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[float], float]]] = {
    "round": (lambda m: m.round(2), lambda v: round(v, 2)),
    "round, mode": (lambda m: m.round(1, mode="half_away_from_zero"), lambda v: round(v, 1)),
    "clip": (lambda m: m.clip(0.5, 0.6), lambda v: min(max(v, 0.5), 0.6)),
    "clip below": (lambda m: m.clip(lower_bound=np.float64(0.5)), lambda v: max(v, 0.5)),
    "fill_null": (lambda m: m.fill_null(0), lambda v: v),
    "abs": (lambda m: (m - 1).abs(), lambda v: 1 - v),
    "builtin abs": (lambda m: abs(m - 1), lambda v: 1 - v),
    "sqrt": (lambda m: m.sqrt(), math.sqrt),
    "log": (lambda m: m.log(), math.log),
    "log to a base": (lambda m: m.log(2), math.log2),
    "log10": (lambda m: m.log10(), math.log10),
    "log1p": (lambda m: m.log1p(), math.log1p),
    "exp": (lambda m: m.exp(), math.exp),
    "floor": (lambda m: (3 * m).floor(), lambda v: math.floor(3 * v + 1e-9)),
    "ceil": (lambda m: (4 * m).ceil(), lambda v: math.ceil(4 * v)),
    "sign": (lambda m: (0.1 - m).sign(), lambda v: -1.0),
    "power": (lambda m: m**2, lambda v: v * v),
    "pow": (lambda m: m.pow(0.5), math.sqrt),
    "power of a number": (lambda m: 2**m, lambda v: 2**v),
    "power of a metric": (lambda m: m**m, lambda v: v**v),
    "cast": (lambda m: m.cast(pl.Float32).cast(float), lambda v: float(np.float32(v))),
    "cast to whole": (lambda m: (10 * m).cast(int), lambda v: float(int(10 * v + 1e-9))),
    "two": (lambda m: (1 - m).round(1).sqrt(), lambda v: math.sqrt(round(1 - v, 1))),
}
functions = pytest.mark.parametrize("name", FUNCTIONS)


def metric_of(name: str, inner: pl.Expr) -> mlm.Metric:
    metric = FUNCTIONS[name][0](inner)
    assert isinstance(metric, mlm.Metric)
    return metric


@functions
def test_a_function_of_a_value_is_a_metric_that_roles_reach(name: str) -> None:
    metric, of = metric_of(name, mlm.accuracy()), FUNCTIONS[name][1]
    for roles, value in (({}, VALUE), ({"weight": "w"}, WEIGHTED)):
        expected = pytest.approx(of(value), rel=1e-12)
        bound = metric.on(**roles)
        assert A.select(bound).item() == expected
        assert mlm.evaluate(A, metric, **roles).item() == expected
        assert mlm.evaluate(A, bound).item() == expected
        assert mlm.evaluate(A, metric, tidy=True, **roles)["value"].item() == expected
        assert mlm.evaluate(LOG, metric, by="model", **roles)[metric.output_name][0] == expected
        assert mlm.evaluate(A, metric, passes=2, **roles).item() == expected
        assert mlm.evaluate(LOG, metric, slices=["model"], **roles)[metric.output_name][1] == expected
        state = mlm.state(LOG, metric, by="model", **roles)
        assert mlm.finish(state.filter(model="a"), metric).item() == expected
    per_label = mlm.evaluate(A, metric, per="label", weight="w").sort("label")
    assert per_label[metric.output_name][0] == pytest.approx(of(1.0), rel=1e-12)


@functions
def test_it_stays_what_it_is(name: str) -> None:
    metric = metric_of(name, mlm.accuracy())
    assert metric.output_name == "accuracy"
    assert metric.alias("mine").output_name == "mine"
    assert metric == metric_of(name, mlm.accuracy())
    assert metric != metric.alias("mine")
    assert metric != metric_of(name, mlm.precision())
    for other in (pickle.loads(pickle.dumps(metric)), copy.copy(metric), copy.deepcopy(metric)):
        assert other == metric
        assert hash(other) == hash(metric)
        assert repr(other) == repr(metric)
        assert A.select(other).equals(A.select(metric))
    filtered = metric.filter(label="x")
    expected = pytest.approx(FUNCTIONS[name][1](1.0), rel=1e-12)
    assert A.select(filtered).item() == mlm.evaluate(A, filtered).item() == expected


def test_other_arguments_are_other_metrics() -> None:
    metrics = [mlm.f1(), mlm.f1().round(), mlm.f1().round(2), mlm.f1().clip(0), mlm.f1().clip(0, 1), mlm.f1().log(2)]
    metrics += [mlm.f1().cast(pl.Float32), mlm.f1().cast(pl.Int64), mlm.f1() ** 2, mlm.f1() * 2]
    assert len(set(metrics)) == len(metrics)
    assert len({repr(metric) for metric in metrics}) == len(metrics)


@pytest.mark.parametrize(
    ("metric", "text"),
    [
        (mlm.f1().round(2), "f1().round(decimals=2)"),
        (mlm.f1().sqrt().alias("root"), "f1().sqrt().alias('root')"),
        ((1 - mlm.f1()).clip(0, 1), "(1 - f1()).clip(lower_bound=0, upper_bound=1)"),
        (mlm.f1().cast(pl.Float32), "f1().cast(dtype=Float32)"),
        (mlm.f1() ** 2, "(f1() ** 2)"),
    ],
)
def test_it_is_shown_as_it_is_written(metric: mlm.Metric, text: str) -> None:
    assert repr(metric) == text


def test_a_cast_has_its_type() -> None:
    metric = mlm.accuracy().cast(pl.Float32)
    assert A.select(metric).schema == mlm.evaluate(A, metric).schema == {"accuracy": pl.Float32}
    assert mlm.evaluate(A, metric, min_samples=2).schema == {"accuracy": pl.Float32}
    assert mlm.evaluate(A, metric, tidy=True).schema["value"] == pl.Float64
    decimal = mlm.accuracy().cast(pl.Decimal(10, 2))
    assert mlm.evaluate(A, decimal, tidy=True)["reason"].item() is None


def test_what_is_undefined_can_be_filled() -> None:
    metric = mlm.recall().fill_null(-1).filter(truth=0)
    assert A.select(metric).item() == mlm.evaluate(A, metric).item() == -1
    assert mlm.evaluate(A, metric, min_samples=4).item() is None


def test_a_power_of_a_count_is_a_float() -> None:
    metric = mlm.n_rows() ** 50
    assert A.select(metric).item() == mlm.evaluate(A, metric).item() == 3.0**50
    assert mlm.evaluate(A, mlm.n_rows() ** -1).item() == 1 / 3


@pytest.mark.parametrize("function", ["round", "clip", "fill_null", "sqrt", "log", "log1p", "log10", "exp", "floor"])
def test_an_increasing_function_keeps_the_good_end(function: str) -> None:
    arguments = {"clip": [0, 1], "fill_null": [0]}.get(function, [])
    assert getattr(mlm.f1(), function)(*arguments).best == "max"
    assert getattr(mlm.log_loss(), function)(*arguments).best == "min"
    assert getattr(-mlm.f1(), function)(*arguments).best == "min"


@pytest.mark.parametrize("metric", [mlm.f1().abs(), mlm.f1().sign(), mlm.f1() ** 2, 2 ** mlm.f1(), mlm.f1().log(0.5)])
def test_of_others_no_end_is_known(metric: mlm.Metric) -> None:
    assert metric.best is None


@pytest.mark.parametrize("metric", [mlm.f1() * 2, mlm.f1() / 2, -2 * -mlm.f1(), -2 / mlm.f1(), 2 / -mlm.f1()], ids=repr)
def test_a_number_keeps_the_good_end_or_turns_it(metric: mlm.Metric) -> None:
    """A negative factor turns it, and so does division by the metric; both together keep it."""
    assert metric.best == "max"
    assert (-1 * metric).best == (metric / -3).best == "min"


def test_division_by_a_metric_turns_the_good_end() -> None:
    assert ((2 / mlm.f1()).best, (2 / mlm.log_loss()).best) == ("min", "max")


def test_the_worst_by_a_function() -> None:
    metric = mlm.accuracy(average="samples").round(1).cast(pl.Int64)
    assert mlm.worst(A, metric, k=1).row(0) == (2, 0, 0, 0)


REFUSED: dict[str, Callable[[Any], object]] = {
    "no number of decimals": lambda f1: f1.round("x"),
    "decimals below 0": lambda f1: f1.round(-1),
    "no mode": lambda f1: f1.round(2, mode="up"),
    "nothing to fill in": lambda f1: f1.fill_null(),
    "an argument too many": lambda f1: f1.sqrt(2),
}


@pytest.mark.parametrize("make", REFUSED.values(), ids=REFUSED)
def test_what_polars_refuses_is_refused_at_once(make: Callable[[Any], object]) -> None:
    with pytest.raises((TypeError, ValueError, OverflowError)):
        make(mlm.f1())


# -- numbers of NumPy --------------------------------------------------------------------------------------------------

F1 = mlm.f1()


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (np.float64(2) * F1, 2 * F1),
        (F1 * np.float64(2), F1 * 2),
        (np.int64(2) * F1, 2 * F1),
        (F1 * np.int64(2), F1 * 2),
        (np.float32(0.5) + F1, 0.5 + F1),
        (np.int8(1) - F1, 1 - F1),
        (F1 - np.uint16(1), F1 - 1),
        (np.float64(1) / F1, 1 / F1),
        (F1 / np.int32(4), F1 / 4),
        (F1 ** np.int64(2), F1**2),
        (np.float64(2) ** F1, 2**F1),
        (np.multiply(F1, 5), F1 * 5),
        (np.subtract(F1, mlm.recall()), F1 - mlm.recall()),
    ],
    ids=repr,
)
def test_numbers_of_numpy_are_numbers(metric: object, expected: mlm.Metric) -> None:
    assert isinstance(metric, mlm.Metric)
    assert metric == expected
    assert repr(metric).replace(".0", "") == repr(expected)


@pytest.mark.parametrize(
    "other",
    [True, np.True_, float("nan"), np.float64("nan"), pl.col("w").sum()],
    ids=["bool", "bool of NumPy", "NaN", "NaN of NumPy", "expression"],
)
def test_what_is_no_number_makes_a_plain_expression(other: Any) -> None:
    for combined in (F1 * other, other * F1):
        assert isinstance(combined, pl.Expr)
        assert not isinstance(combined, mlm.Metric)


# -- plain expressions -------------------------------------------------------------------------------------------------

PLAIN: dict[str, Callable[[pl.Expr], pl.Expr]] = {
    "comparison": lambda m: m > 0.6,
    "equality": lambda m: m == 0.4,
    "suffix": lambda m: m.name.suffix("_of_a"),
    "clip by a column": lambda m: m.clip(pl.col("w").min()),
    "clip by a name": lambda m: m.clip("w").first(),
    "filled by a strategy": lambda m: m.fill_null(strategy="zero"),
    "text": lambda m: m.cast(pl.String),
    "over": lambda m: m.over("model").first(),
    "when": lambda m: pl.when(pl.len() > 1).then(m),
    "condition": lambda m: pl.when(m > 0.5).then(1).otherwise(0),
    "horizontal": lambda m: pl.max_horizontal(m, 0.1),
    "struct": lambda m: pl.struct(m, pl.len()).struct.field("accuracy"),
    "times a sum": lambda m: pl.col("w").sum() * m,
    "of a function": lambda m: m.round(2) >= 0.5,
    "of arithmetic": lambda m: (1 - m).is_null(),
}


@pytest.mark.parametrize("name", PLAIN)
def test_roles_do_not_reach_a_plain_expression(name: str) -> None:
    plain = PLAIN[name](mlm.accuracy())
    assert not isinstance(plain, mlm.Metric)
    expected = A.select(PLAIN[name](mlm.accuracy().on(weight="w"))).item()
    words = r"so the roles passed to evaluate do not apply to it: bind them first, .*\.on\(weight='w'\)\.$"
    for frame in (A, A.lazy()):
        with pytest.raises(mlm.MetricError, match=words):
            mlm.evaluate(frame, mlm.f1().alias("f"), plain.alias("value"), weight="w")
    assert mlm.evaluate(A, plain.alias("value")).item() == A.select(plain).item()
    bound = PLAIN[name](mlm.accuracy().on(weight="w")).alias("value")
    assert mlm.evaluate(A, bound, weight="w").item() == expected


def test_the_line_to_write_is_shown() -> None:
    good = (mlm.accuracy().on(score="score", weight="w").filter(label="x") > 0.5).alias("good")
    roles = {"score": "score", "truth": pl.col("truth"), "weight": "w"}
    assert raised(mlm.MetricError, mlm.evaluate, A, good, **roles) == (
        "'good' is an expression that contains a metric, so the roles passed to evaluate do not apply to it: bind "
        "them first, "
        'accuracy().on(score=\'score\', weight=\'w\').filter([(col("label")) == ("x")]).on(truth=col("truth")).'
    )


def test_plain_expressions_without_a_metric_take_no_roles() -> None:
    assert mlm.evaluate(A, pl.len(), pl.col("score").max(), weight="w").row(0) == (3, 0.9)


@pytest.mark.parametrize("number", [np.int64(2), np.float32(0.5), np.float16(0.5), np.uint8(1)], ids=repr)
@pytest.mark.parametrize("make", [mlm.fbeta, mlm.huber, lambda number: mlm.lift_at(min(number, 1))])
def test_a_number_of_numpy_is_a_number(make: Any, number: Any) -> None:
    log = pl.DataFrame({"sample": range(4), "score": [0.9, 0.2, 0.6, 0.4], "truth": [1, 0, 1, 1]})
    given, plain = make(number), make(number.item())
    assert log.select(given).item() == mlm.evaluate(log, given).item() == mlm.evaluate(log, plain).item()
    assert given.signature == plain.signature
