"""A metric of your own: declared in one function, and from then on like any other.

python examples/your_own_metric.py
"""

import polars as pl

import polars_mlmetrics as mlm
from polars_mlmetrics.testing import check_metric


@mlm.metric(range=(0, float("inf")), best="min")
def cost_of_errors(
    u: mlm.Unit, *, false_alarm: float = 1.0, threshold: mlm.Threshold = 0.5, average: mlm.Average = "micro"
) -> pl.Expr:
    """The mean cost of a row: a missed one costs its amount, a false alarm costs the same always.

    A row whose amount is null is left out and counted, as one without a score is.
    """
    predicted = u.decision(threshold)
    missed = pl.when(u.truth & ~predicted).then(pl.col("amount"))
    alarm = pl.when(~u.truth & predicted).then(false_alarm)
    cost = pl.coalesce(missed, alarm, 0.0)
    return mlm.ratio(u.sum(f"cost@{threshold},{false_alarm}", cost), u.rows())


def by_hand(rows: pl.DataFrame) -> float | None:
    """The same once more, slow and plain: what it is of the rows of one group."""
    costs = [
        row["amount"] if row["truth"] and row["score"] <= 0.5 else float(not row["truth"] and row["score"] > 0.5)
        for row in rows.iter_rows(named=True)
    ]
    return sum(costs) / len(costs) if costs else None


def main() -> None:
    # All laws of the library's own metrics, in every average, and the reference by hand: an AssertionError if not.
    check_metric(cost_of_errors(), reference=by_hand)

    payments = pl.DataFrame(
        {
            "model": ["old"] * 4 + ["new"] * 4,
            "label": ["card", "card", "bank", "bank"] * 2,
            "score": [0.9, 0.2, 0.4, 0.7, 0.8, 0.6, 0.3, 0.1],
            "truth": [1, 1, 0, 0] * 2,
            "amount": [20.0, 500.0, 80.0, 30.0] * 2,
        }
    )

    print("As an expression, and from the namespace:")
    dear = pl.col("score").mlm.cost_of_errors(false_alarm=10.0).alias("dear_alarms")
    print(payments.group_by("model", maintain_order=True).agg(cost_of_errors(), dear))

    print("In a plan, by model and label, with the averages of the library:")
    metrics = [cost_of_errors(), cost_of_errors(average="max"), mlm.recall()]
    print(mlm.evaluate(payments, metrics, by="model", slices=["label"]))

    print("An amount that is not known, and what is left:")
    partly = payments.with_columns(pl.when(pl.col("amount") != 500).then("amount"))
    counts = ["model", "metric", "value", "n_rows", "n_excluded"]
    print(mlm.evaluate(partly, metrics, by="model", tidy=True).select(counts))


if __name__ == "__main__":
    main()
