"""States of roles of any name, type and expression, and of metrics from elsewhere."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.support.differing import differing
from tests.support.folded_log import (
    COUNTS,
    FEW,
    LOG,
    METRICS,
    OF_LABELS,
    OF_SAMPLES,
    START,
    agrees,
    check,
    contents,
    evaluated,
    folded,
    said,
)
from tests.support.readings import same

RENAMED = {"sample": "query", "label": "document", "score": "p", "truth": "clicked"}


def test_roles_of_other_names() -> None:
    check(LOG, FEW, ["model", "day"], by="model", tidy=True)
    log = LOG.rename(RENAMED)
    states = [folded(part, FEW, by=["model", "day"], weight="own", **RENAMED) for part in log.partition_by("flag")]
    expected = evaluated(log, FEW, by="model", tidy=True, weight="own", **RENAMED)
    assert differing(mlm.finish(pl.concat(states), FEW, by="model", tidy=True), expected) == []


NAMES = [*product(["label", "sample", "score", "truth", "weight"], ["bucket", "state", "bin"])]


@pytest.mark.one_in(8)
@pytest.mark.parametrize(("role", "name"), [*NAMES, ("label", "label"), ("label", "n_rows of old")])
def test_a_role_may_be_of_any_name(role: str, name: str) -> None:
    """A column of the log may be called as one of the state's own."""
    check(LOG.rename({role: name}), FEW, "model", roles={role: name}, by="model")


OF_EXPRESSIONS: dict[str, dict[str, Any]] = {
    "score": {"score": 1 - pl.col("score")},
    "truth and weight": {"truth": pl.col("truth") == 1, "weight": pl.col("weight") * 2 + 1},
    "score of a column": {"truth": "amount", "score": pl.col("amount") + pl.col("other")},
    "literals": {"score": pl.lit(0.5), "weight": pl.lit(2)},
    "columns": {"score": pl.col("score"), "truth": pl.col("truth")},
    "one in two roles": {"score": 1 - pl.col("other"), "weight": 1 - pl.col("other")},
}


@pytest.mark.parametrize("roles", OF_EXPRESSIONS.values(), ids=OF_EXPRESSIONS)
def test_roles_may_be_expressions(roles: dict[str, Any]) -> None:
    metrics = [mlm.mae(), mlm.r2(average="macro"), mlm.mse(average="samples"), mlm.n_rows(), mlm.n_samples()]
    check(LOG, metrics, ["model", "day"], roles=roles, by="model")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("weight", ["own", "weight"])
def test_weights(weight: str) -> None:
    check(LOG, METRICS, ["model", "day"], roles={"weight": weight}, by="model", tidy=True)


def test_weighted_and_unweighted_metrics_share_a_state() -> None:
    metrics = [m for metric in FEW for m in (metric, metric.on(weight="own").alias(f"weighted {metric}"))]
    check(LOG, metrics, "model", by="model")


@pytest.mark.parametrize("sample", [["sample", "model"], ["model", "fold", "sample"]], ids=str)
def test_a_sample_may_be_several_columns(sample: list[str]) -> None:
    check(LOG, FEW, "model", roles={"sample": sample}, by="model", tidy=True)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "dtype", [pl.String, pl.Categorical, pl.Float64, pl.Int128, pl.Date, pl.Decimal(38, 2)], ids=str
)
def test_ids_may_be_of_any_type(dtype: Any) -> None:
    way = {pl.Date: pl.Int32, pl.Categorical: pl.String}.get(dtype, pl.Int64)
    log = LOG.with_columns(id=pl.col("sample").cast(way).cast(dtype))
    check(log, [*OF_SAMPLES, *COUNTS, mlm.f1(average="macro")], ["model", "day"], roles={"sample": "id"}, by="model")


def test_rows_without_a_sample_column_have_no_buckets() -> None:
    log = LOG.drop("sample")
    metrics = [*(m for m in OF_LABELS if not m.output_name.startswith(("best", "labelwise"))), mlm.f1(), mlm.pearson()]
    state = folded(log, metrics, by=["model", "day"])
    assert "bucket" not in state.columns
    assert contents(state)["buckets"] is None
    answer = check(log, metrics, ["model", "day"], by="model", tidy=True)
    assert answer["n_samples"].null_count() == answer.height


def test_rows_without_a_label_column_are_enough_for_metrics_of_groups() -> None:
    log = LOG.select("score", "truth", "model")
    state = folded(log, mlm.f1(), mlm.roc_auc(bins=8), mlm.log_loss(), by="model")
    assert not {"label", "bucket"} & set(state.columns)
    assert agrees(state, log, [mlm.f1(), mlm.roc_auc(bins=8), mlm.log_loss(), mlm.n_rows()], by="model")


@pytest.mark.parametrize("dtype", [pl.Categorical, pl.Enum(list("edcba"))], ids=str)
def test_labels_may_be_categories(dtype: Any) -> None:
    metrics = [*OF_LABELS, mlm.recall(labels=["a", "b"]), mlm.f1(average={"a": 1.0}).alias("of a")]
    check(LOG.with_columns(pl.col("label").cast(dtype)), metrics, "model", by="model")


def test_labels_may_be_numbers() -> None:
    codes = {letter: code for code, letter in enumerate("abcde")}
    log = LOG.with_columns(pl.col("label").replace_strict(codes, return_dtype=pl.Int16))
    check(log, [*OF_LABELS, mlm.recall(labels=[1, 2], average="macro", undefined=0.0)], "model", by="model")


KINDS: dict[str, list[mlm.Metric]] = {
    "on": [
        mlm.ndcg().on(score="other").alias("n"),
        mlm.ndcg(),
        mlm.f1().on(score="other", truth=pl.col("truth") == 0).alias("f"),
        mlm.r2(average="macro").on(truth="amount", weight="own"),
        mlm.mae().on(score=pl.col("other") * 2, weight=pl.col("own") + 1),
    ],
    "filter": [
        mlm.ndcg().filter(pl.col("model") == "x").alias("x"),
        mlm.ndcg(),
        mlm.f1().filter(model="no such"),
        mlm.f1(average="macro").filter(pl.col("other") > 0.5, pl.col("day") > START).alias("late"),
        mlm.roc_auc(bins=8, average="macro").filter(pl.col("tier") == "low").alias("low"),
        mlm.roc_auc(bins=8),
        mlm.n_samples().filter(pl.col("flag")).alias("flagged"),
    ],
    "vocabularies": [
        mlm.f1(average="samples", labels=["a", "q"]),
        mlm.f1(average="macro", threshold="argmax", labels=["a", "q"]).alias("best"),
        mlm.f1(average="macro", labels=["a", "q"], undefined=0.5).alias("half"),
        mlm.recall(labels=["a", "b"]),
        mlm.calibration_error(average="max", labels=["q", "r"]),
    ],
    "undefined": [
        mlm.f1(average="samples", undefined=0.25),
        mlm.f1(average="samples").alias("null"),
        mlm.average_precision(average="samples", undefined=1.0),
        mlm.precision(threshold=1.0, undefined=0.5),
        mlm.ndcg(undefined=0.0),
        mlm.ndcg().alias("n"),
    ],
    "thresholds": [
        mlm.f1(average="macro", threshold={"a": 0.1, None: 0.6}),
        mlm.f1(threshold={"a": 0.1, "b": 0.5}).alias("unknown"),
        mlm.f1(threshold={"a": 0.1, None: 0.6}, inclusive=True).alias("micro"),
        mlm.f1(average="samples", threshold=pl.col("other")),
        mlm.recall(threshold=pl.col("other").clip(0.2, 0.4), average="macro"),
        mlm.information_score(prior={"a": 0.1, "b": 0.5, "c": 0.2, "d": 0.1, "e": 0.1}),
        mlm.information_score(prior="other").alias("prior"),
    ],
    "derived": [
        (mlm.ndcg() - mlm.f1()).alias("gap"),
        (1 - mlm.f1(average="samples") * 2).alias("twice"),
        (mlm.recall() / mlm.precision()).alias("quotient"),
        (mlm.f1(average="macro").on(score="other") - mlm.f1(average="macro")).alias("gain"),
        -mlm.n_samples().alias("n"),
        (mlm.roc_auc(bins=8) + mlm.pearson() / mlm.recall(threshold=1.0)).alias("null"),
    ],
    "targets": [
        mlm.average_score(mlm.ranking_loss(), target="model"),
        mlm.average_score(mlm.f1(), {"x": 1, "z": 3}, target="model").alias("weights"),
        mlm.average_score(mlm.mae()).alias("labels"),
        mlm.average_score(mlm.mae(), target="label").alias("label"),
        mlm.average_score(mlm.calibration_error(), target="label").alias("bins"),
        mlm.average_score({"a": mlm.mae(), "b": mlm.rmse()}).alias("each"),
        mlm.average_score({"x": mlm.ndcg(), "y": mlm.f1()}, [3, 1], target="model").alias("each model"),
        mlm.flattened(mlm.mae(average="macro")),
        mlm.f1(average="macro"),
    ],
    "two aliases of one metric": [
        *(mlm.f1(average="macro").alias(name) for name in "fg"),
        *(mlm.ndcg(), mlm.ndcg().alias("n"), mlm.n_samples().alias("samples")),
    ],
}


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("asked", [{"by": "day", "tidy": True}, {"slices": ["model"]}], ids=str)
def test_kinds_of_metrics(name: str, asked: dict[str, Any]) -> None:
    check(LOG, KINDS[name], ["model", "day"], parts=2, **asked)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", KINDS)
def test_kinds_of_metrics_with_weights(name: str) -> None:
    check(LOG, KINDS[name], ["model", "day"], roles={"weight": "weight"}, by="model")


@pytest.mark.parametrize("metric", [mlm.n_samples(), mlm.ndcg(), mlm.f1(average="samples")], ids=repr)
def test_a_metric_of_samples_under_a_name_of_its_own(metric: mlm.Metric) -> None:
    check(LOG, [metric.alias("mine")], "model", by="model", tidy=True)


NESTED = LOG.with_columns(
    pair=pl.struct("score", "other"), list=pl.concat_list("other", "score"), text=pl.col("score").cast(pl.String)
)

INSIDE = [pl.col("pair").struct.field("score"), pl.col("list").list.get(1)]


@pytest.mark.parametrize("score", [*INSIDE, pl.col("text").str.to_decimal(scale=2)], ids=str)
def test_a_role_may_read_inside_a_column(score: pl.Expr) -> None:
    check(NESTED, [mlm.f1(), mlm.ndcg()], "model", roles={"score": score}, by="model")


@pytest.mark.parametrize(
    "metric",
    [
        *(mlm.ndcg().on(score=score) for score in INSIDE),
        mlm.f1().filter(pl.col("list").list.len() > 1),
        mlm.f1(threshold=pl.col("pair").struct.field("other")),
        mlm.information_score(prior=pl.col("list").list.get(0)),
    ],
    ids=repr,
)
def test_a_metric_that_reads_inside_a_column_says_so(metric: mlm.Metric) -> None:
    name = "list" if "list" in str(metric) else "pair"
    message = (
        f"{metric.output_name} reads inside {name!r}, which is {NESTED.schema[name]}: a state cannot have such a "
        "column. Add the value that it reads as a column first."
    )
    assert said(mlm.StateError, mlm.state, NESTED, metric) == message


def test_a_metric_may_read_a_column_of_another_type() -> None:
    score = pl.col("text").str.to_decimal(scale=2)
    check(NESTED, [mlm.f1().on(score=score), mlm.ndcg().on(score=score)], "model", by="model")


def declare(factor: float, grain: Any) -> mlm.Metric:
    """A metric of one name and formulas of several, as a cell of a notebook that was changed and run again."""

    @mlm.metric(range=(0, 9), best=None, undefined_when="no rows", grain=grain)
    def mine(u: mlm.Unit) -> pl.Expr:
        """A multiple of the mean score."""
        return mlm.ratio(u.sum(f"score times {factor}", u.score * factor), u.included_rows())

    return mine()


@pytest.fixture
def declared() -> Iterator[None]:
    yield
    mlm.CATALOGUE.pop("mine", None)


@pytest.mark.parametrize("grain", ["group", "label", "sample"])
def test_metrics_of_ones_own(declared: None, grain: str) -> None:
    check(LOG, [declare(2.0, grain), mlm.f1(), mlm.ndcg()], ["model", "day"], by="model", tidy=True)


@pytest.mark.parametrize("grain", ["group", "label", "sample"])
def test_two_formulas_of_one_name_are_not_taken_for_each_other(declared: None, grain: str) -> None:
    old, new = declare(2.0, grain).alias("old"), declare(3.0, grain).alias("new")
    with suppress(mlm.NameCollisionError):
        answer = mlm.finish(folded(LOG, old, new), old, new)
        assert same(answer["new"].item(), answer["old"].item() * 1.5)


LISTS = [["x", "y", "z", "w"], ["x", "y", "u", "w"]]  # the text of an expression shows the ends of a list


@pytest.mark.parametrize("metric", [mlm.ndcg(), mlm.f1(), mlm.f1(average="macro")], ids=repr)
def test_conditions_of_one_text_are_not_taken_for_each_other(metric: mlm.Metric) -> None:
    one, other = (metric.filter(pl.col("model").is_in(names)) for names in LISTS)
    state = folded(LOG, one.alias("it"), by="day")
    assert same(mlm.finish(state, one)[0, 0], evaluated(LOG, one)[0, 0])
    assert not same(evaluated(LOG, one)[0, 0], evaluated(LOG, other)[0, 0])
    with pytest.raises(mlm.StateError):
        mlm.finish(state, other)
    with suppress(mlm.NameCollisionError):  # of both in one state
        check(LOG, [one.alias("one"), other.alias("other")], "day")


def test_conditions_with_options_that_their_text_does_not_show_are_not_taken_for_each_other() -> None:
    one, other = (mlm.f1().filter(pl.col("score").round(digits) > 0.8) for digits in (0, 1))
    assert str(pl.col("score").round(0)) == str(pl.col("score").round(1))
    with pytest.raises(mlm.StateError):
        mlm.finish(folded(LOG, one), other)


def test_states_of_conditions_and_roles_of_one_text_do_not_go_one_under_the_other() -> None:
    texts = [pl.col("model").is_in(names) for names in LISTS]
    filtered = [folded(LOG, mlm.f1().filter(text), by="day") for text in texts]
    for states in (filtered, [folded(LOG, mlm.f1(), by="day", truth=text) for text in texts]):
        with pytest.raises(pl.exceptions.PolarsError):
            pl.concat(states)
