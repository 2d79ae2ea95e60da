"""What takes a value per row of its unit: spreads far from 0, and values of a unit that go back to its rows."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.support.readings import both, same

EXACT = 1e-12  # the order of a sum

# --- spreads far from 0 -----------------------------------------------------------------------------------------------

METRICS = [mlm.r2(), mlm.relative_squared_error(), mlm.explained_variance(), mlm.pearson()]


def exactly(log: pl.DataFrame) -> list[float]:
    """The metrics, worked out of the very numbers that the floats are, without rounding."""
    score, truth, weight = ([Fraction(x) for x in log[name]] for name in ("score", "truth", "weight"))

    def together(one: Sequence[Fraction], other: Sequence[Fraction]) -> Fraction:
        means = [sum(w * x for w, x in zip(weight, values, strict=True)) / sum(weight) for values in (one, other)]
        return sum(w * (x - means[0]) * (y - means[1]) for w, x, y in zip(weight, one, other, strict=True))

    error = [s - t for s, t in zip(score, truth, strict=True)]
    squares = sum((w * e**2 for w, e in zip(weight, error, strict=True)), Fraction(0))
    of_truth = together(truth, truth)
    relative, unexplained = squares / of_truth, together(error, error) / of_truth
    # Rooted as a whole: this Fraction is near 1.
    squared = together(score, truth) ** 2 / (of_truth * together(score, score))
    return [float(1 - relative), float(relative), float(1 - unexplained), math.sqrt(squared)]


def far_log(offset: float, spread: float) -> pl.DataFrame:
    """Days whose means lie further apart than the values of a day, all far from 0."""
    random, size = np.random.default_rng(1), 300
    day = random.integers(0, 7, size)
    truth = offset + spread * (day + 0.1 * random.normal(size=size))
    return pl.DataFrame(
        {
            "day": day, "sample": range(size), "truth": truth, "score": truth + 0.3 * spread * random.normal(size=size),
            "weight": random.choice([0.1, 0.7, 3.3, 1e-30], size),
        }
    )  # fmt: skip


@pytest.mark.one_in(7)
@pytest.mark.parametrize(("offset", "spread"), [(1e8, 1e-2), (-1e9, 1e-3), (1e15, 40), (1e-100, 1e-108), (0, 1e-130)])
@pytest.mark.parametrize("weighted", [False, True])
def test_states_keep_all_digits(weighted: bool, offset: float, spread: float) -> None:
    """However often they are merged: by day and bucket, by day, in two parts, and all together."""
    log = far_log(offset, spread)
    roles = {"weight": "weight"} if weighted else {}
    expected = pytest.approx(exactly(log if weighted else log.with_columns(weight=pl.lit(1.0))), rel=EXACT)
    assert mlm.evaluate(log, METRICS, **roles).row(0) == expected
    halves = [mlm.state(half, METRICS, by="day", buckets=8, **roles) for half in (log[:100], log[100:])]
    merged = [mlm.compact(half.with_columns(bucket=pl.lit(0, dtype=pl.Int64))) for half in halves]
    by_day = mlm.compact(pl.concat([*merged, halves[0].clear()]))
    of_all = mlm.compact(by_day.with_columns(day=pl.lit(0)).cast({"day": pl.Int64}))
    for state in (pl.concat(halves), pl.concat(merged), by_day, of_all):
        assert mlm.finish(state, METRICS).row(0) == expected
    assert mlm.evaluate(log, METRICS, passes=3, progress=False, **roles).row(0) == expected


def test_a_part_of_no_weight_moves_nothing() -> None:
    log = far_log(1e8, 1e-2).with_columns(weight=pl.when(pl.col("day") < 3).then(0.0).otherwise("weight"))
    state = mlm.state(log, METRICS, by="day", weight="weight")
    expected = pytest.approx(exactly(log), rel=EXACT)
    assert mlm.finish(state, METRICS).row(0) == expected
    assert mlm.finish(mlm.compact(mlm.compact(state)), METRICS).row(0) == expected
    nothing = mlm.finish(state.filter(pl.col("day") < 3), METRICS, by="day")
    assert nothing.drop("day").rows() == [(None,) * len(METRICS)] * 3


# --- squares that no float holds --------------------------------------------------------------------------------------

SPREAD = pl.DataFrame({"score": [1.0, 2.0, 4.0, 3.0], "truth": [2.0, 1.0, 5.0, 3.0]})


@pytest.mark.parametrize("size", [1e-300, 1e-170, 1e-154, 1e154, 1e170, 1e300])
@pytest.mark.parametrize("columns", [["score"], ["truth"], ["score", "truth"]], ids=str)
def test_squares_that_no_float_holds_are_not_a_plausible_number(columns: list[str], size: float) -> None:
    """Of which the correlation was 0, or right to a few digits."""
    log = SPREAD.with_columns(pl.col(columns) * size)
    metrics = METRICS if "truth" in columns else [mlm.pearson()]
    state = mlm.finish(mlm.state(log, mlm.pearson()), mlm.pearson()).row(0)
    assert all(map(math.isnan, [*log.select(metrics).row(0), *mlm.evaluate(log, metrics).row(0), *state]))


@pytest.mark.parametrize("size", [1e-130, 1e-100, 1e100, 1e145])
def test_squares_that_a_float_holds(size: float) -> None:
    log = SPREAD.with_columns(pl.all() * size)
    expected = pytest.approx(mlm.evaluate(SPREAD, METRICS).row(0), rel=EXACT)
    assert log.select(METRICS).row(0) == expected
    assert mlm.evaluate(log, METRICS).row(0) == expected


def test_weights_decide_too() -> None:
    log = SPREAD.with_columns(pl.all() * 1e-40, weight=pl.lit(1e-250))
    assert math.isnan(both(log, mlm.r2(), weight="weight"))


# --- grades whose gains no float holds --------------------------------------------------------------------------------


@pytest.mark.parametrize("grades", [[1, 2000, 1999], [1, 1023.9, 1023.9], [3000, 3000, 3000]], ids=str)
@pytest.mark.parametrize("ties", ["average", "ignore"])
def test_gains_that_no_float_holds(ties: Any, grades: list[float]) -> None:
    """The dcg alone may be a number, as where the best are not returned: it is no share of infinity."""
    keys = {"sample": [1] * 3, "label": list("abc")}
    for score in ([3.0, 2.0, 1.0], [1.0, -math.inf, -math.inf], [1.0, 2.0, 2.0]):
        log = pl.DataFrame({**keys, "score": score, "truth": [float(grade) for grade in grades]})
        assert math.isnan(both(log, mlm.ndcg(gain="exponential", ties=ties)))


def test_gains_that_a_float_holds() -> None:
    """2^1000 - 1 is 2^1000, so the gains are to each other as 1 to 4."""
    log = pl.DataFrame({"sample": [1, 1], "label": ["a", "b"], "score": [2.0, 1.0], "truth": [998.0, 1000.0]})
    expected = (1 + 4 / math.log2(3)) / (4 + 1 / math.log2(3))
    assert both(log, mlm.ndcg(gain="exponential")) == pytest.approx(expected, rel=EXACT)


# --- a value of a unit, back on its rows ------------------------------------------------------------------------------

LOG = pl.DataFrame(
    {
        "label": ["a", "a", "b", "c", "c", None],
        "sample": [1, 2, 3, 4, 5, 6],
        "score": [0.9, 0.6, 0.2, 0.7, 0.8, 0.9],
        "truth": [1.0, 0.0, 0.0, 1.0, 2.0, 1.0],
    }
)


def mean_of_high(u: mlm.Unit) -> pl.Expr:
    """On each row the mean of the scores above 0.5: of a unit without such there is none."""
    high = u.score > 0.5
    mean = mlm.ratio(u.sum("high", pl.when(high).then(u.score)), u.count("n_high", high))
    return u.on_rows("mean_of_high", mean)


@mlm.metric(range=(0, math.inf), best="max", undefined_when="no rows")
def above_the_high(u: mlm.Unit, *, average: mlm.Average = "micro") -> pl.Expr:
    """How many rows score above the mean of the high scores."""
    return u.sum("above_the_high", u.score > mean_of_high(u))


@mlm.metric(range=(-math.inf, math.inf), best="max", undefined_when="no rows")
def highest_gap(u: mlm.Unit, *, average: mlm.Average = "micro") -> pl.Expr:
    """How far the highest score is from the mean of the high scores."""
    return u.max("highest_gap", u.score - mean_of_high(u))


del mlm.CATALOGUE["above_the_high"], mlm.CATALOGUE["highest_gap"]

OTHERS = {"alone": [], "with r2": [mlm.r2()], "with r2 by label": [mlm.r2(average="macro"), mlm.pearson()]}
others = pytest.mark.parametrize("others", OTHERS.values(), ids=OTHERS)

# Label b has no high score: 0 of its rows are above their mean, and its highest gap is none, whatever else is asked.
BY_LABEL = [(above_the_high(), {"a": 1, "b": 0, "c": 1}), (highest_gap(), {"a": 0.15, "b": None, "c": 0.05})]


@others
@pytest.mark.parametrize(("metric", "expected"), BY_LABEL, ids=["sum", "max"])
def test_a_unit_that_is_not_looked_at_again(metric: mlm.Metric, expected: dict[str, Any], others: list[Any]) -> None:
    known = LOG.drop_nulls()
    for table in (
        known.group_by("label").agg(metric),
        mlm.evaluate(known, metric, *others, by="label"),
        mlm.evaluate(LOG, metric, *others, per="label"),
    ):
        found = dict(table.select("label", metric.output_name).rows())
        assert found.keys() == expected.keys()
        assert all(same(found[label], value) for label, value in expected.items()), found


@others
def test_averages_of_units_that_are_not_looked_at_again(others: list[Any]) -> None:
    weights = {"a": 1.0, "b": 2.0, "c": 0.5}
    expected = {"macro": 2 / 3, "min": 0.0, "max": 1.0, "samples": 0.0, str(weights): 1.5 / 3.5}
    for average in ("macro", "min", "max", "samples", weights):
        metric = above_the_high(average=average).alias("it")
        found = mlm.evaluate(LOG, metric, *others)["it"].item()
        assert same(found, expected[str(average)]), average
        assert same(LOG.select(metric).item(), expected[str(average)]), average
