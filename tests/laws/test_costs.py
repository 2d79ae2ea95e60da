"""Costs that each row has of its own, row by row in plain Python: as expressions, in plans, states and curves."""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.testing import check_metric


def log_of(n: int = 120) -> pl.DataFrame:
    random = np.random.default_rng(5)
    amount = [None if place % 17 == 3 else float(value) for place, value in enumerate(random.integers(1, 90, n))]
    return pl.DataFrame(
        {
            "sample": np.arange(n) // 2,
            "label": ["a", "b"] * (n // 2),
            "score": random.random(n).round(1),
            "truth": random.integers(0, 2, n),
            "weight": random.choice([0.0, 1.0, 3.0], n // 2).repeat(2),
            "amount": amount,
        }
    )


def by_hand(price: Callable[[dict[str, Any], bool], float]) -> Callable[[pl.DataFrame], float | None]:
    """The weighted mean of the price of each row and its decision; where an amount is not known, there is no row."""

    def mean(rows: pl.DataFrame) -> float | None:
        known = [row for row in rows.iter_rows(named=True) if row["amount"] is not None]
        weights = [row.get("weight", 1.0) for row in known]
        costs = [w * price(row, row["score"] > 0.5) for row, w in zip(known, weights, strict=True)]
        return sum(costs) / sum(weights) if sum(weights) else None

    return mean


def missed(row: dict[str, Any], predicted: bool) -> float:
    if row["truth"]:
        return 0.0 if predicted else row["amount"]
    return 5.0 if predicted else 0.0


def of_all_cells(row: dict[str, Any], predicted: bool) -> float:
    if row["truth"]:
        return -1.0 if predicted else 2 * row["amount"]
    return row["amount"] if predicted else -0.5


CASES = {
    "column": (mlm.cost(5, "amount"), missed),
    "expressions": (mlm.cost("amount", pl.col("amount") * 2, tp=-1, tn=pl.lit(-0.5)), of_all_cells),
}


@pytest.mark.parametrize("name", CASES)
def test_costs_of_rows_keep_the_laws(name: str) -> None:
    metric, price = CASES[name]
    unweighted = log_of().drop("weight")
    assert unweighted.select(metric).item() == pytest.approx(by_hand(price)(unweighted), rel=1e-12)
    weighted = log_of().select(metric.on(weight="weight")).item()
    assert weighted == pytest.approx(by_hand(price)(log_of()), rel=1e-12)
    check_metric(metric, frame=log_of().drop_nulls())


def test_a_row_without_its_cost_is_left_out_and_counted() -> None:
    row = mlm.evaluate(log_of(), mlm.cost(5, "amount"), tidy=True).row(0, named=True)
    unknown = log_of()["amount"].null_count()
    assert (row["n_rows"], row["n_excluded"]) == (120 - unknown, unknown) == (113, 7)


def test_costs_of_the_best_label_of_each_sample() -> None:
    """Of tied best labels each is predicted in part, and costs in part."""
    log = pl.DataFrame(
        {"sample": [1, 1, 2, 2], "label": ["a", "b"] * 2, "score": [0.5, 0.5, 0.9, 0.1], "truth": [1, 0, 0, 1]}
    ).with_columns(amount=pl.Series([10.0, 20.0, 30.0, 40.0]))
    metric = mlm.cost(5, "amount", threshold="argmax")
    assert log.select(metric).item() == (0.5 * 10 + 0.5 * 5 + 5 + 40) / 4
    assert mlm.evaluate(log, metric).item() == (0.5 * 10 + 0.5 * 5 + 5 + 40) / 4
    of_numbers = mlm.cost(5, 10, threshold="argmax")
    assert log.select(of_numbers).item() == (0.5 * 10 + 0.5 * 5 + 5 + 10) / 4


@pytest.mark.parametrize("name", CASES)
def test_states_and_curves_know_costs_of_rows(name: str) -> None:
    log, metric = log_of(), CASES[name][0]
    state = pl.concat([mlm.state(part, metric) for part in log.partition_by("label")])
    assert mlm.finish(state, metric).item() == pytest.approx(log.select(metric).item(), rel=1e-12)
    curve = mlm.curve(log, "threshold", metric)
    assert curve.filter(threshold=0.5)["value"].item() == pytest.approx(log.select(metric).item(), rel=1e-12)
    best = mlm.best_threshold(log, metric)
    assert best["value"].item() == curve["value"].min()


def test_a_state_of_other_decisions_knows_costs_that_are_numbers() -> None:
    log = log_of()
    state = mlm.state(log, mlm.f1())
    assert mlm.finish(state, mlm.cost(5, 2)).item() == pytest.approx(log.select(mlm.cost(5, 2)).item(), rel=1e-12)
    with pytest.raises(mlm.StateError, match=r"cost needs 'true_negatives@0.5'"):
        mlm.finish(state, mlm.cost(5, 2, tn=-1))


def test_errors_that_cost_1_are_counted() -> None:
    log = log_of()
    assert log.select(mlm.cost(1, 1)).item() == log.select(mlm.hamming_loss()).item()
    assert log.select(mlm.cost(0, 0)).item() == 0
    of_expressions = mlm.cost(pl.lit(1), pl.lit(1), average="macro")
    assert log.select(of_expressions).item() == log.select(mlm.hamming_loss(average="macro")).item()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda log: mlm.cost(1, {"a": 2.0}), "fn must be a number .* or a column name or an expression"),
        (lambda log: mlm.cost(1, float("inf")), "fn must be a number of at least"),
        (lambda log: mlm.cost(pl.col("amount").mean(), 1), "fp must be computed row by row"),
        (lambda log: mlm.evaluate(log, mlm.cost("label", 1)), "fp is String: it must be Boolean or a number"),
        (lambda log: mlm.evaluate(log, mlm.cost("amoun", 1)), "Did you mean 'amount'"),
    ],
)
def test_what_is_refused(call: Callable[[pl.DataFrame], Any], message: str) -> None:
    with pytest.raises(mlm.MetricError, match=message):
        call(log_of())
