"""A metric as a value: named, compared, copied, combined, and declared elsewhere."""

import copy
import importlib
import pickle
import subprocess
import sys

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from polars_mlmetrics.formula.declaration import declared
from tests.formula.small_log import LOG, A

VALUES = [
    mlm.f1(),
    mlm.f1(average="macro", threshold=0.3, inclusive=True, labels=["x"], undefined=0.0),
    mlm.f1(threshold={"x": 0.2, None: 0.5}),
    mlm.f1(threshold=pl.col("score").clip(0.1, 0.2)),
    mlm.f1(average={"x": 1.0, "y": 2.0}),
    mlm.fbeta(2.0),
    mlm.log_loss().on(score="score", truth=pl.col("truth"), sample=["model", "sample"]),
    mlm.f1().filter(pl.col("model") == "a").alias("f1_a"),
    mlm.f1() - 2 * mlm.recall() / mlm.precision().filter(pl.col("label") == "x"),
    -mlm.log_loss().alias("gain"),
    mlm.n_samples(),
    mlm.f1().round(2),
    (mlm.f1() ** 2).cast(pl.Float32),
    mlm.average_score(mlm.f1(undefined=0.0)),
    mlm.average_score(mlm.f1() - mlm.recall(), target="day"),
    mlm.average_score({"x": mlm.f1(), "y": mlm.recall()}, [1, 2]),
]

value = pytest.mark.parametrize("metric", VALUES)


# -- names -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "name"),
    [
        (mlm.f1(), "f1"),
        (mlm.f1(average="macro"), "f1_macro"),
        (mlm.f1(average="samples", threshold=0.2), "f1_samples"),
        (mlm.f1(average={"x": 1.0}), "f1_weights"),
        (mlm.fbeta(2.0), "fbeta"),
        (mlm.calibration_error(bins=10, norm="l2"), "calibration_error"),
        (mlm.labelwise_precision(), "labelwise_precision_macro"),
        (mlm.labelwise_precision(average="min"), "labelwise_precision_min"),
        (mlm.label_ranking_average_precision(), "label_ranking_average_precision"),
        (mlm.f1().on(score="p"), "f1"),
        (mlm.f1().filter(pl.col("model") == "a"), "f1"),
        (mlm.f1().alias("mine"), "mine"),
        (mlm.f1().alias("mine").filter(pl.col("model") == "a").on(score="p"), "mine"),
        (1 - mlm.f1(average="macro"), "f1_macro"),
        (mlm.recall() / mlm.precision(), "recall"),
        ((mlm.recall() / mlm.precision()).alias("tilt"), "tilt"),
        (pl.col("p").mlm.roc_auc(), "roc_auc"),
        (mlm.f1().round(2), "f1"),
    ],
)
def test_a_metric_names_its_column(metric: pl.Expr, name: str) -> None:
    assert metric.meta.output_name() == name


@pytest.mark.parametrize(
    ("metric", "text"),
    [
        (mlm.f1(), "f1()"),
        (mlm.f1(threshold=0.5, average="micro"), "f1()"),
        (mlm.f1(average="macro", inclusive=True), "f1(average='macro', inclusive=True)"),
        (mlm.f1(threshold={"x": 0.2, None: 0.5}), "f1(threshold={'x': 0.2, None: 0.5})"),
        (mlm.fbeta(2.0), "fbeta(beta=2.0)"),
        (mlm.f1().on(score="p", truth=pl.col("t")), "f1().on(score='p', truth=col(\"t\"))"),
        (mlm.f1().alias("mine"), "f1().alias('mine')"),
        (1 - mlm.f1(), "(1 - f1())"),
        ((mlm.recall() / mlm.precision()).alias("tilt"), "(recall() / precision()).alias('tilt')"),
    ],
)
def test_a_metric_is_shown_as_it_is_written(metric: mlm.Metric, text: str) -> None:
    assert repr(metric) == str(metric) == text


# -- identity ----------------------------------------------------------------------------------------------------------


@value
def test_a_metric_is_the_same_after_pickle_and_copy(metric: mlm.Metric) -> None:
    LOG.select(metric)  # the expression inside is built by now, and must not get in the way
    for same in (pickle.loads(pickle.dumps(metric)), copy.copy(metric), copy.deepcopy(metric)):
        assert isinstance(same, mlm.Metric)
        assert same.key == metric.key
        assert hash(same) == hash(metric)
        assert repr(same) == repr(metric)
        assert_frame_equal(LOG.select(same), LOG.select(metric))
    assert " at 0x" not in repr(metric)


@pytest.mark.proof
def test_a_pickled_metric_opens_in_another_process() -> None:
    pickled = pickle.dumps(mlm.f1(average="macro").on(score="p") - mlm.one_error())
    code = "import pickle, sys; print(pickle.loads(bytes.fromhex(sys.argv[1])))"
    shown = subprocess.run([sys.executable, "-c", code, pickled.hex()], capture_output=True, text=True, check=True)
    assert shown.stdout == "(f1(average='macro').on(score='p') - one_error())\n"


def test_no_two_of_the_values_are_the_same() -> None:
    assert len({metric.key for metric in VALUES}) == len(VALUES)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (mlm.f1(), mlm.f1(average="micro", threshold=0.5)),
        (mlm.f1(labels=["x"]), mlm.f1(labels=pl.Series(["x"]))),
        (mlm.f1().on(score="p", truth="t"), mlm.f1().on(truth="t").on(score="p")),
        (pl.col("p").mlm.f1(truth="t"), mlm.f1().on(score=pl.col("p"), truth="t")),
        (mlm.f1() + 1, mlm.f1() + 1),
    ],
)
def test_equal_metrics(one: mlm.Metric, other: mlm.Metric) -> None:
    assert one == other
    assert one in [mlm.recall(), other]
    assert one in {mlm.recall(), other}
    assert [mlm.recall(), one].index(other) == 1
    assert len({one, other}) == 1


OTHERS = [
    *(mlm.f1(threshold=0.4), mlm.f1(inclusive=True), mlm.f1(average="macro"), mlm.f1(undefined=0.0)),
    *(mlm.f1(labels=["x"]), mlm.f1().filter(pl.col("label") == "x"), mlm.f1() + 1, mlm.recall()),
]
"""No two of these, nor one and f1(), are the same number."""


@pytest.mark.parametrize("other", [*OTHERS, mlm.f1().alias("mine"), mlm.f1().on(score="p")], ids=repr)
def test_different_metrics(other: mlm.Metric) -> None:
    assert mlm.f1() != other
    assert mlm.f1() not in [mlm.recall(threshold=0.9), other]
    assert mlm.f1() not in {mlm.recall(threshold=0.9), other}


def test_a_metric_is_found_in_a_list_that_holds_plain_expressions_too() -> None:
    assert mlm.f1() in [pl.len(), mlm.f1()]
    assert mlm.f1() not in [pl.len(), pl.col("score").mean()]


def test_comparing_a_metric_with_a_number_is_an_expression() -> None:
    assert LOG.select((mlm.f1() == 0.75).alias("same")).item() is True
    assert LOG.select((mlm.f1() == mlm.recall()).alias("same")).item() is True  # equal values of different metrics


# -- binding -----------------------------------------------------------------------------------------------------------


def test_on_binds_the_roles_it_names_and_leaves_the_others() -> None:
    other = LOG.rename({"score": "p", "truth": "t"}).with_columns(w=pl.lit(2.0))
    bound = mlm.true_positives().on(score="p").on(truth="t")
    assert other.select(bound).item() == 3
    assert other.select(bound.on(weight="w")).item() == 6
    assert other.select(bound.on(weight="w").on(weight=pl.lit(3))).item() == 9


def test_on_leaves_the_metric_as_it_was_and_by_none_what_was_bound() -> None:
    metric = mlm.f1()
    bound = metric.on(score="p")
    assert metric.key == mlm.f1().key
    assert bound.on(score=None) == bound


def test_filter_is_the_metric_on_those_rows() -> None:
    mine, other = mlm.f1(average="macro"), LOG.filter(pl.col("model") == "a", pl.col("label") == "x")
    by_predicates = mine.filter(pl.col("model") == "a", pl.col("label") == "x")
    by_steps = mine.filter(pl.col("model") == "a").filter(label="x")
    by_list = mine.filter([pl.col("model") == "a", pl.col("label") == "x"])
    for filtered in (by_predicates, by_steps, by_list):
        assert isinstance(filtered, mlm.Metric)
        assert LOG.select(filtered).item() == other.select(mine).item()


def test_filter_takes_rows_out_before_they_are_ranked() -> None:
    rows = pl.DataFrame({"sample": [1, 1, 1], "label": ["x", "y", "z"], "score": [0.9, 0.8, 0.1], "truth": [0, 1, 0]})
    assert rows.select(mlm.one_error()).item() == 1.0
    assert rows.select(mlm.one_error().filter(pl.col("label") != "x")).item() == 0.0


def test_a_null_predicate_is_not_true() -> None:
    rows = LOG.with_columns(keep=pl.Series([True, None, True, None, None, None, None, None]))
    assert rows.select(mlm.n_rows().filter(pl.col("keep"))).item() == 2
    assert rows.select(mlm.n_excluded().filter(pl.col("keep"))).item() == 0


def test_alias_and_filter_of_arithmetic_reach_its_metrics() -> None:
    gap = (mlm.recall(threshold=0.7) - mlm.recall()).filter(pl.col("model") == "b").alias("gap")
    assert isinstance(gap, mlm.Metric)
    assert_frame_equal(LOG.select(gap), pl.DataFrame({"gap": [-0.5]}))


# -- arithmetic --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (mlm.recall() + 1, 1.5),
        (1 + mlm.recall(), 1.5),
        (mlm.recall() - 0.25, 0.25),
        (1 - mlm.recall(), 0.5),
        (mlm.recall() * 3, 1.5),
        (3 * mlm.recall(), 1.5),
        (mlm.recall() / 2, 0.25),
        (1 / mlm.recall(), 2.0),
        (-mlm.recall(), -0.5),
        (mlm.n_rows() * mlm.recall() - mlm.accuracy(), 1.5),
        (mlm.n_rows() / mlm.n_samples(), 2.0),
        (mlm.recall() / (mlm.recall() - mlm.precision()), None),
        (1 / (mlm.recall() * 0), None),
        (mlm.recall() / 0, None),
        (mlm.recall() + mlm.recall().filter(pl.col("label") == "none"), None),
    ],
    ids=repr,
)
def test_arithmetic_of_metrics_and_numbers_is_a_metric(metric: mlm.Metric, expected: float | None) -> None:
    assert isinstance(metric, mlm.Metric)
    assert A.select(metric).item() == mlm.evaluate(A, metric).item() == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (mlm.recall() * pl.col("truth").sum(), 1.0),
        (pl.col("truth").sum() * mlm.recall(), 1.0),
        (mlm.recall() > 0.25, True),
        (mlm.recall().is_null(), False),
        (mlm.recall() // 0.25, 2.0),
        (pl.max_horizontal(mlm.recall(), mlm.n_rows()), 4.0),
        (pl.when(mlm.n_rows() < 30).then(None).otherwise(mlm.recall()), None),
    ],
    ids=str,
)
def test_anything_else_is_a_plain_expression(expression: pl.Expr, expected: object) -> None:
    assert not isinstance(expression, mlm.Metric)
    value = expression.alias("value")
    assert A.select(value).item() == mlm.evaluate(A, value).item() == expected


# -- declared elsewhere ------------------------------------------------------------------------------------------------


@mlm.metric(range=(0, 1), best=None, undefined_when="no rows")
def share_over(u, *, bound=0.5, average="micro", **options):  # type: ignore[no-untyped-def]  # as written in a notebook
    """The share of rows whose score is over a bound."""
    return mlm.ratio(u.sum(f"over@{bound}", u.score > bound), u.rows())


@mlm.metric(range=(0, float("inf")), best="min", undefined_when="no rows", grain="sample")
def cost_of_errors(u: mlm.Unit, price: float = 1.0) -> pl.Expr:
    """What the errors of a sample cost."""
    return price * u.sum("cost_of_errors", pl.when((u.score > 0.5) != u.truth).then(pl.col("amount")))


del mlm.CATALOGUE["share_over"], mlm.CATALOGUE["cost_of_errors"]


def test_a_metric_declared_without_annotations() -> None:
    metrics = [share_over(bound=0.85), share_over(average="macro"), share_over(undefined=0.0, labels=["y"]).alias("y")]
    assert A.select(metrics).row(0) == mlm.evaluate(A, metrics).row(0) == (0.25, 0.5, 0.5)
    assert repr(metrics[0]) == "share_over(bound=0.85)"


def test_a_metric_of_a_column_of_its_own() -> None:
    log = A.with_columns(amount=pl.Series([1, 10, 100, 1000]))
    assert log.select(cost_of_errors()).item() == 550
    assert mlm.evaluate(log, cost_of_errors(2.0)).item() == 1100
    assert mlm.evaluate(log, cost_of_errors(), per="sample").sort("sample").rows() == [(1, 0), (2, 1100)]


def test_a_notebook_shows_the_call() -> None:
    assert mlm.f1(average="macro")._repr_html_() == "<code>f1(average='macro')</code>"
    assert "label" in repr(mlm.f1().filter(pl.col("label") == "x"))
    assert "<img" not in mlm.f1().filter(pl.col("<img src=x onerror=alert(1)>") > 0)._repr_html_()


def test_a_declaration_is_found_where_its_module_is_not_imported_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    f1, known = mlm.CATALOGUE["f1"], dict(mlm.CATALOGUE)

    def imported(module: str) -> None:
        assert module == "polars_mlmetrics.metrics.decisions"
        mlm.CATALOGUE["f1"] = f1

    monkeypatch.setattr(importlib, "import_module", imported)
    try:
        del mlm.CATALOGUE["f1"]
        assert declared("polars_mlmetrics.metrics.decisions", "f1") is f1
    finally:
        # In the order in which it was, which pages are made in.
        mlm.CATALOGUE.clear()
        mlm.CATALOGUE.update(known)


def test_a_metric_that_is_declared_again_is_another() -> None:
    def declare(factor: float) -> mlm.Metric:
        @mlm.metric(range=(0, 9), best="max", undefined_when="no rows")
        def mine(u: mlm.Unit) -> pl.Expr:
            """A multiple of the mean score."""
            return mlm.ratio(u.sum(f"score times {factor}", u.score * factor), u.rows())

        return mine()

    one, other = declare(1.0), declare(2.0)
    del mlm.CATALOGUE["mine"]
    assert one != other
    assert mlm.evaluate(pl.DataFrame({"score": [0.5, 0.9], "truth": [1, 0]}), other - one).item() == pytest.approx(0.7)


def test_a_signature_says_what_two_numbers_differ_in() -> None:
    bound = [mlm.f1().on(weight="w"), mlm.f1().on(sample="user")]
    others = [mlm.f1() - mlm.recall(), mlm.f1().round(2), mlm.ndcg(ties="ignore"), mlm.ndcg()]
    lines = [metric.signature for metric in (mlm.f1(), *OTHERS, *bound, *others)]
    assert len(set(lines)) == len(lines)
    assert all(line.isprintable() and f"version:{mlm.__version__}" in line for line in lines)
    assert mlm.f1(threshold=0.5).alias("x").signature == mlm.f1().signature
    assert mlm.f1().filter(pl.col("a\nb") > 1).signature.isprintable()
