"""Numbers of a row, classes and labels that cannot be compared are errors."""

import math
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.support.refusals import either_frame, raised

# -- numbers for each row ----------------------------------------------------------------------------------------------

NOT_THERE = "is not in the table (sample, label, score, truth, name)."

CLASSES = pl.LazyFrame(
    {"sample": [1, 1], "label": ["a", "b"], "score": [0.5, 0.2], "truth": [1, 0], "name": ["x", "y"]}
)


NEEDS_A_LABEL = f"needs a label: label column 'class' {NOT_THERE}"

score = mlm.information_score


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (score(prior="priors"), f"prior column 'priors' {NOT_THERE}"),
        (score(prior="name"), "prior is String: it must be Boolean or a number. Cast or map 'name' first."),
        (score(prior={1: 0.5}), "information_score: label 1 is int, and the label column is String."),
        (score().on(label="class"), f"information_score {NEEDS_A_LABEL}"),
        (mlm.ndcg(ties="ignore").on(label="class"), f"ndcg {NEEDS_A_LABEL}"),
    ],
)
def test_a_number_of_the_row_that_is_not_there(metric: mlm.Metric, message: str) -> None:
    assert raised(mlm.ColumnError, mlm.evaluate, CLASSES, metric) == message


def test_a_prior_that_is_not_known_is_reported() -> None:
    (row,) = mlm.evaluate(CLASSES, mlm.information_score(prior={"b": 0.5}), tidy=True).collect().to_dicts()
    assert row["value"] is None
    assert row["reason"] == "rows without a prior: 1"


@pytest.mark.parametrize("prior", [-0.1, 1.5, float("nan")])
def test_a_prior_that_is_no_probability_is_broken(prior: float) -> None:
    frame = CLASSES.collect()
    metric = mlm.information_score(prior=pl.lit(prior))
    assert math.isnan(mlm.evaluate(frame, metric).item())
    assert math.isnan(frame.select(metric).item())
    elsewhere = pl.when(pl.col("label") == "b").then(prior).otherwise(0.5)
    assert mlm.evaluate(frame, mlm.information_score(prior=elsewhere)).item() == 0  # of the true label alone


def test_what_cannot_be_an_expression_says_so() -> None:
    """A formula that looks into other units and back at its rows, or into runs, has a plan and no inline form."""

    @mlm.metric(range=(0, 1), best=None, undefined_when="no rows", grain="label")
    def both_looks(u: mlm.Unit) -> pl.Expr:
        """A spread of places."""
        return u.variation("place", u.rank.cast(pl.Float64))

    @mlm.metric(range=(0, 1), best=None, undefined_when="no rows", grain="label")
    def runs_of_places(u: mlm.Unit) -> pl.Expr:
        """The number of places."""
        return u.runs(u.rank.alias("place"), pl.lit(1).alias("rows"))[0].count()

    del mlm.CATALOGUE["both_looks"], mlm.CATALOGUE["runs_of_places"]
    for metric, what in (
        (both_looks(), "both_looks: a value per row of its unit"),
        (runs_of_places(), "runs_of_places: runs"),
    ):
        message = raised(mlm.MetricError, lambda metric=metric: CLASSES.collect().select(metric))
        assert message == f"{what} with values of other units cannot be used as an expression: use evaluate."


# -- classes that cannot be compared, labels that cannot be ------------------------------------------------------------

PAIRS = [
    (pl.String, pl.Int64),
    (pl.Int64, pl.String),
    (pl.Enum(["a"]), pl.Enum(["a", "b"])),
    (pl.Enum(["a"]), pl.Categorical),
    (pl.Date, pl.Int64),
    (pl.Duration("us"), pl.Int64),
    (pl.Duration("us"), pl.String),
    (pl.Datetime("us"), pl.Datetime("us", "UTC")),
    (pl.Binary, pl.String),
    (pl.Boolean, pl.String),
    (pl.List(pl.String), pl.String),
    (pl.List(pl.String), pl.List(pl.Int64)),
    (pl.Struct({"x": pl.Int64}), pl.Int64),
    (pl.Struct({"x": pl.Int64}), pl.Struct({"y": pl.Int64})),
    (pl.Object, pl.Object),
]


@pytest.mark.parametrize(("score", "truth"), PAIRS, ids=str)
@pytest.mark.parametrize("name", ["classification_accuracy", "global_accuracy", "confusion"])
def test_classes_that_cannot_be_compared(name: str, score: pl.DataType, truth: pl.DataType) -> None:
    frame = pl.DataFrame(schema={"sample": pl.Int64, "score": score, "truth": truth})
    types = "score is {score}, truth is {truth}".format(**frame.schema)
    verb, *metrics = [mlm.confusion] if name == "confusion" else [mlm.evaluate, mlm.CATALOGUE[name]()]
    for given in (frame, frame.lazy()):
        assert raised(mlm.ColumnError, verb, given, *metrics) == (
            f"{name} compares classes, but {types}: these cannot be compared. Cast one to the type of the other."
        )


@either_frame
@pytest.mark.parametrize("name", ["classification_accuracy", "global_accuracy"])
def test_a_probability_is_no_class(name: str, log: Any) -> None:
    message = raised(mlm.ColumnError, mlm.evaluate, log, mlm.CATALOGUE[name]())
    assert message == (
        f"{name} compares classes, but score is Float64, truth is Int64. A probability needs a threshold: accuracy(), "
        "or confusion(threshold=0.5). If the scores are class numbers that became floats, cast them to integers."
    )
    cents = pl.col("score").cast(pl.Decimal(4, 2))
    assert "A probability needs a threshold" in raised(
        mlm.ColumnError, mlm.evaluate, log, mlm.CATALOGUE[name](), score=cents
    )


@either_frame
@pytest.mark.parametrize(
    "metric",
    [
        mlm.f1(labels=["a", "c"]),
        mlm.f1(average={"c": 1.0}).alias("f1"),
        mlm.f1(threshold={"c": 0.3, None: 0.5}),
        mlm.information_score(prior={"c": 0.5, "a": 0.5}).alias("f1"),
    ],
    ids=repr,
)
def test_a_label_that_an_enum_lacks(metric: mlm.Metric, log: Any) -> None:
    log = log.with_columns(pl.col("label").cast(pl.Enum(["a", "b"])))
    per = "label" if metric.key[0] == mlm.CATALOGUE["f1"].formula else None
    message = raised(mlm.ColumnError, mlm.evaluate, log, metric, per=per)
    assert message == "f1: label 'c' is not a category of the label column (a, b)."


@pytest.mark.parametrize(
    "parameters", [{"labels": [1, "a"]}, {"average": {1: 0.5, "a": 0.5}}, {"threshold": {1: 0.5, "a": 0.5, None: 0.1}}]
)
def test_labels_of_several_types(parameters: dict[str, Any]) -> None:
    message = raised(mlm.ParameterError, mlm.f1, **parameters)
    assert message == "f1: labels must have one type, but [1, 'a'] have several."


@either_frame
def test_python_objects_are_no_keys(log: Any) -> None:
    log = log.with_columns(pl.Series("who", [object()] * 4, dtype=pl.Object))
    no_key = "'who' is of type Object, and Python objects cannot be keys. Cast the column first."
    for keys in ({"by": "who"}, {"slices": ["who"]}, {"by": pl.col("who").is_null().alias("known")}):
        assert raised(mlm.ColumnError, mlm.evaluate, log, mlm.f1(), **keys) == no_key
    for metric in (mlm.one_error(), mlm.f1(threshold="argmax"), mlm.n_samples()):
        message = f"{metric.meta.output_name()} needs a sample: {no_key}"
        assert raised(mlm.ColumnError, mlm.evaluate, log, metric, sample="who") == message
    message = f"f1_macro needs a label: {no_key}"
    assert raised(mlm.ColumnError, mlm.evaluate, log, mlm.f1(average="macro"), label="who") == message
    assert raised(mlm.ColumnError, mlm.confusion, log, sample="who") == no_key


def test_a_metric_of_constants_reads_no_row() -> None:
    frame, metric = pl.DataFrame({"a": [1, 2, 3]}), mlm.n_rows().on(score=pl.lit(1.0), truth=pl.lit(True))
    for count in (lambda: mlm.evaluate(frame, metric), lambda: frame.select(metric), lambda: mlm.state(frame, metric)):
        with pytest.raises(mlm.MetricError, match="n_rows reads no column: its score and its truth are both constants"):
            count()
    assert frame.select(mlm.n_rows().on(score=pl.lit(1.0), truth="a")).item() == 3
