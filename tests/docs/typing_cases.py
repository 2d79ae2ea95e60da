"""What type checkers must accept and what they must refuse. Checked by test_typing.py, never run.

A line that ends in `# wrong` must be reported, and no other line. `# wrong to mypy` is a fault of mypy's: it refuses
what is right. (Its ParamSpec loses the keyword-only parameters of a generic function that has `*args`.)
"""

from typing import assert_type

import polars as pl

import polars_mlmetrics as mlm

frame = pl.DataFrame()
lazy = pl.LazyFrame()

# -- metrics -----------------------------------------------------------------------------------------------------------

assert_type(mlm.f1(), mlm.Metric)
mlm.f1(threshold=0.5, average="macro", inclusive=True, labels=["a", "b"], undefined=0.0)
mlm.f1(threshold=1, undefined=0)
mlm.f1(threshold="argmax")
mlm.f1(threshold={"a": 0.2, None: 0.5})
mlm.f1(threshold=pl.col("threshold"))
mlm.f1(average={"a": 1.0, "b": 2})
mlm.fbeta(2.0, average="samples")
mlm.fbeta(beta=2)
mlm.calibration_error(bins=10, norm="l2", logits=True)
mlm.log_loss(eps="dtype")
mlm.multilabel_cross_entropy(base=2, log_of_zero=-1000.0, undefined=None)
mlm.ranking_loss(pairs="all", ties="half")
mlm.labelwise_precision(average="min", labels=[1, 2])
mlm.n_rows()

mlm.f1(thresold=0.5)  # wrong
mlm.f1(0.5)  # wrong
mlm.f1(average="makro")  # wrong
mlm.f1(average=None)  # wrong
mlm.f1(threshold="0.5")  # wrong
mlm.f1(undefined="0")  # wrong
mlm.f1(inclusive="yes")  # wrong
mlm.f1(labels=3)  # wrong
mlm.fbeta()  # wrong
mlm.fbeta("2")  # wrong
mlm.log_loss(eps="dtyp")  # wrong
mlm.log_loss(threshold=0.5)  # wrong
mlm.calibration_error(norm="l3")  # wrong
mlm.coverage_error(base=2)  # wrong
mlm.labelwise_precision(average="micro")  # wrong
mlm.one_error(average="macro")  # wrong
mlm.one_error(labels=["a"])  # wrong

# -- a metric as a value -----------------------------------------------------------------------------------------------

assert_type(mlm.f1().on(score="p", truth=pl.col("t"), sample=["model", "sample"]), mlm.Metric)
assert_type(mlm.f1().alias("mine"), mlm.Metric)
assert_type(mlm.f1().filter(pl.col("country") == "DE"), mlm.Metric)
assert_type(-mlm.f1(), mlm.Metric)
assert_type(mlm.f1() - mlm.recall(), mlm.Metric)
assert_type(1 - mlm.f1() * 2, mlm.Metric)
assert_type(mlm.f1() ** 2 / 3, mlm.Metric)
assert_type(mlm.f1() + pl.col("bonus"), pl.Expr)
expression: pl.Expr = mlm.f1()
rounded: pl.Expr = mlm.f1().round(2)
arithmetic: pl.Expr = 1 - mlm.f1() * 2 / mlm.recall()
frame.select(mlm.f1(), mlm.f1().over("model"))
lazy.group_by("model").agg(mlm.f1(), recall=mlm.recall())

mlm.f1().alias(3)  # wrong
mlm.f1().bind(score="p")  # wrong
(mlm.f1() + pl.col("bonus")).on(score="p")  # wrong
number: float = mlm.f1()  # wrong

# -- verbs -------------------------------------------------------------------------------------------------------------

assert_type(mlm.evaluate(frame, mlm.f1()), pl.DataFrame)
assert_type(mlm.evaluate(lazy, mlm.f1()), pl.LazyFrame)
mlm.evaluate(frame, mlm.f1(), [mlm.recall(), pl.len()], by=["model", pl.col("day").dt.year()])
mlm.evaluate(frame, mlm.f1(), by="model", slices=["country", ["country", "device"], pl.col("age") // 10])
mlm.evaluate(frame, mlm.f1(), per="label", score="p", truth="t", sample=("doc", "part"), label="topic")
mlm.evaluate(frame, mlm.f1(), min_samples=30, tidy=True, weight=pl.col("w") * 2)
assert_type(mlm.worst(lazy, mlm.f1(), k=5, by="model", score="p"), pl.LazyFrame)
assert_type(mlm.gap(frame, mlm.f1(), "country"), pl.DataFrame)
assert_type(mlm.gap(lazy, [mlm.recall(), mlm.f1()], over=["country", "device"]), pl.LazyFrame)
assert_type(frame.pipe(mlm.evaluate, mlm.f1()), pl.DataFrame)
assert_type(lazy.pipe(mlm.evaluate, mlm.f1(), mlm.recall()), pl.LazyFrame)
lazy.pipe(mlm.evaluate, mlm.f1(), by="model", score="p")  # wrong to mypy
assert_type(lazy.pipe(mlm.worst, mlm.f1(), 5), pl.LazyFrame)

mlm.evaluate(frame, mlm.f1(), scor="p")  # wrong
mlm.evaluate(frame, mlm.f1(), score=3)  # wrong
mlm.evaluate(frame, mlm.f1(), label=pl.col("topic"))  # wrong
mlm.evaluate(frame, mlm.f1)  # wrong
mlm.evaluate(frame, "f1")  # wrong
mlm.evaluate(frame, mlm.f1(), per="country")  # wrong
mlm.evaluate(frame, mlm.f1(), by=3)  # wrong
mlm.evaluate(frame, mlm.f1(), min_samples="30")  # wrong
mlm.evaluate({"score": [0.5]}, mlm.f1())  # wrong
mlm.gap(frame, [mlm.f1(), pl.len()], over="country")  # wrong
mlm.worst(frame, pl.len())  # wrong
mlm.worst(frame, mlm.f1(), k="5")  # wrong
mlm.worst(frame, mlm.f1(), slices=3)  # wrong
frame.pipe(mlm.evaluate, mlm.f1(), scor="p")  # wrong

# -- roles -------------------------------------------------------------------------------------------------------------

roles: mlm.Roles = {"score": "p", "truth": pl.col("t"), "sample": ["model", "sample"]}
mlm.evaluate(frame, mlm.f1(), **roles)

misspelt: mlm.Roles = {"scor": "p"}  # wrong
not_a_column: mlm.Roles = {"label": 3}  # wrong

# -- declarations ------------------------------------------------------------------------------------------------------


@mlm.metric(range=(0, float("inf")), best="min", undefined_when="no rows")
def cost(u: mlm.Unit, price: float, *, column: str = "amount") -> pl.Expr:
    """What the errors cost."""
    return mlm.ratio(u.sum(f"cost@{price}", price * pl.col(column)), u.rows())


assert_type(cost(2.0), mlm.Metric)
cost(2.0, column="fee")
cost(price=2)

cost()  # wrong
cost("2")  # wrong
cost(2.0, colum="fee")  # wrong


@mlm.metric(range=(0, 1), best="high", undefined_when="no rows")  # wrong
def other(u: mlm.Unit) -> pl.Expr:
    """A direction that there is not."""
    return u.rows()
