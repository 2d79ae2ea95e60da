"""The plan of an evaluation: pure, native and narrow."""

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from tests.laws.cases import variants
from tests.support.plans import fallbacks, serialized, wide_log

LABEL_AVERAGES = ["macro", "weighted", "min", "max", {"x": 1.0, "y": 2.0}]

AVERAGES = ["micro", "samples", *LABEL_AVERAGES]

OF_CLASSES = ("classification_accuracy", "global_accuracy")


def averages_of(name: str) -> list[Any]:
    """Every average that a metric takes; None for one that takes none."""
    if name == "labelwise_precision":
        return ["macro", "min"]
    return AVERAGES if "average" in inspect.signature(getattr(mlm, name)).parameters else [None]


def made(name: str, average: Any = None, **parameters: Any) -> mlm.Metric:
    """A metric of the catalogue, with what it cannot do without."""
    if average is not None:
        parameters["average"] = average
    metric = getattr(mlm, name)(**next(variants(name)), **parameters)
    # Of a float score a truth of whole numbers is no class.
    return metric.on(truth=pl.col("truth").cast(pl.Float64)) if name in OF_CLASSES else metric


CASES = [(name, average) for name in sorted(mlm.CATALOGUE) for average in averages_of(name)]


def is_like_macro(name: str, average: Any) -> bool:
    """Whether only the settling of labels differs from macro: of these averages, each metric has one in turn."""
    turn = sorted(mlm.CATALOGUE).index(name) % 4
    return average in LABEL_AVERAGES[1:] and average != LABEL_AVERAGES[1 + turn] and name != "labelwise_precision"


def marked(cases: list[tuple[str, Any]]) -> list[Any]:
    return [pytest.param(*case, marks=[pytest.mark.proof] if is_like_macro(*case) else []) for case in cases]


every_metric = pytest.mark.parametrize(("name", "average"), marked(CASES), ids=str)


# One of each, and those whose formula takes another road with other parameters.
ALL_METRICS = [
    *(made(name, average).alias(f"{name} {average}") for name, average in CASES),
    mlm.f1(threshold="argmax").alias("argmax"),
    mlm.f1(threshold="argmax", average="macro").alias("argmax macro"),
    mlm.f1(threshold={"x": 0.2, None: 0.5}).alias("threshold of each label"),
    mlm.f1(threshold=pl.col("w")).alias("threshold of each row"),
    mlm.f1(average="macro", labels=["x", "z"], undefined=0.0).alias("labels"),
    mlm.log_loss(eps="dtype").alias("eps of the type"),
    mlm.log_loss(logits=True).on(score=pl.col("score") - 0.5).alias("logits"),
    mlm.f1().filter(pl.col("label") == "x").alias("filtered"),
    (mlm.f1() - mlm.recall() / 2).alias("arithmetic"),
]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> pl.LazyFrame:
    return wide_log(tmp_path_factory.mktemp("plan"))


# -- pure: no Python in the plan ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, marks=pytest.mark.proof),
        pytest.param({"by": "model"}, marks=pytest.mark.proof),
        pytest.param(
            {"by": pl.col("model").str.to_uppercase(), "slices": ["country", ["country", "label"]], "weight": "w"},
            marks=pytest.mark.proof,
        ),
        {"by": "model", "slices": ["country"], "min_samples": 2, "tidy": True},
    ],
)
def test_a_plan_of_all_metrics_is_pure(log: pl.LazyFrame, options: dict[str, Any]) -> None:
    assert serialized(mlm.evaluate(log, ALL_METRICS, **options))


def test_plans_of_units_and_of_the_worst_are_pure(log: pl.LazyFrame) -> None:
    assert serialized(mlm.evaluate(log, mlm.f1(), mlm.labelwise_precision(), per="label"))
    assert serialized(mlm.evaluate(log, mlm.f1(), mlm.ranking_loss(), by="model", per="sample"))
    assert serialized(mlm.worst(log, mlm.ranking_loss(), by="model"))


@every_metric
def test_an_inline_metric_is_pure(log: pl.LazyFrame, name: str, average: Any) -> None:
    assert serialized(log.group_by("model").agg(made(name, average)))


def test_a_plan_with_python_in_it_is_noticed(log: pl.LazyFrame) -> None:
    with pytest.raises(pl.exceptions.ComputeError, match="cloudpickle"):
        serialized(log.select(pl.col("score").map_batches(lambda column: column)))


# -- native: the streaming engine runs all of it -----------------------------------------------------------------------

# These cumulate over the sorted runs of a group. The streaming engine has no native cum_sum inside an aggregation: it
# gathers the runs (one row for each distinct score, not the rows of the log) in memory for that one step.
CUMULATES = {
    "ks", "recall_at_precision", "precision_at_recall", "recall_at_fpr",
    "lift_at", "median_absolute_error",
}  # fmt: skip


# Unweighted these come from the ranking pass; weights are cumulated.
CUMULATES_WEIGHTS = {"roc_auc", "gini", "average_precision"}


def test_a_fallback_is_noticed(log: pl.LazyFrame) -> None:
    (found,) = fallbacks(log.group_by("model").agg(pl.col("score").median()))
    assert found.startswith("in-memory-map")
    assert fallbacks(log.group_by("model").agg(pl.col("score").sum())) == []


@every_metric
@pytest.mark.parametrize("weight", [None, "w"])
def test_a_plan_is_native(log: pl.LazyFrame, name: str, average: Any, weight: str | None) -> None:
    found = fallbacks(mlm.evaluate(log, made(name, average), by="model", weight=weight))
    if name in CUMULATES or (name in CUMULATES_WEIGHTS and weight and average != "samples"):
        (step,) = found
        assert "AGGREGATE" in step
        assert "cum_sum" in step
    else:
        assert found == []


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, marks=pytest.mark.proof),
        pytest.param({"slices": ["country", "label"]}, marks=pytest.mark.proof),
        {"by": "model", "slices": ["country"], "min_samples": 2},
        pytest.param({"by": pl.col("score").round(1).alias("score")}, marks=pytest.mark.proof),
    ],
)
def test_a_plan_of_many_metrics_is_native(log: pl.LazyFrame, options: dict[str, Any]) -> None:
    metrics = [metric for metric in ALL_METRICS if metric.output_name.split()[0] not in CUMULATES]
    left = fallbacks(mlm.evaluate(log, metrics, **options))
    # Two by columns stand under one code while samples are folded. That no two groups share a code is checked where
    # the groups, a row each, get their names back: a checked join is the in-memory engine's. And where there is no by
    # column, spearman ranks one whole column, which has to be there as a whole.
    known = re.compile(r"in-memory-join\\nleft_on:\\n__mlm_code|columnar-function\\n\w+ = rank")
    assert [step for step in left if not known.match(step)] == []


@pytest.mark.parametrize(("name", "average"), marked([case for case in CASES if case[0] not in CUMULATES]), ids=str)
def test_a_tidy_plan_is_native(log: pl.LazyFrame, name: str, average: Any) -> None:
    assert fallbacks(mlm.evaluate(log, made(name, average), pl.len(), by="model", min_samples=2, tidy=True)) == []


@pytest.mark.parametrize("per", ["label", "sample"])
def test_a_plan_of_units_is_native(log: pl.LazyFrame, per: Any) -> None:
    names = [name for name, declared in mlm.CATALOGUE.items() if declared.grain in (None, per)]
    metrics = [made(name) for name in names if name not in CUMULATES]
    assert len(metrics) > 20
    assert fallbacks(mlm.evaluate(log, metrics, by="model", per=per)) == []


@pytest.mark.parametrize("weight", [None, "w"])
def test_plans_of_targets_and_of_confusion_are_pure_and_native(log: pl.LazyFrame, weight: str | None) -> None:
    of_column = mlm.average_score(mlm.mae(), target="country").alias("column")
    of_each = mlm.average_score({"x": mlm.mae(), "y": mlm.rmse()}).alias("each")
    for plan in (
        mlm.evaluate(log, of_column, of_each, by="model", weight=weight),
        mlm.confusion(log, by="model", weight=weight),
    ):
        assert serialized(plan)
        assert fallbacks(plan) == []


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("labels", [None, ["a", "b"]])
def test_a_plan_of_classes_is_pure_and_native(log: pl.LazyFrame, weight: str | None, labels: list[str] | None) -> None:
    metrics = [m(threshold="argmax", labels=labels) for m in (mlm.accuracy, mlm.mcc, mlm.cohen_kappa)]
    plan = mlm.evaluate(log, metrics, by="model", weight=weight)
    assert serialized(plan)
    # Weights are brought to parts of their whole before they are multiplied: in a table of one row a group and label.
    assert all(step.startswith("in-memory-map\\nAGGREGATE") for step in fallbacks(plan))
    assert len(fallbacks(plan)) == (0 if weight is None else 1)


def test_the_worst_of_the_whole_is_native(log: pl.LazyFrame) -> None:
    assert fallbacks(mlm.worst(log, mlm.ranking_loss())) == []


# -- narrow: only the columns that are needed are read -----------------------------------------------------------------


def columns_read(plan: pl.LazyFrame) -> int:
    """How many columns the widest scan of the plan reads."""
    counts = re.findall(r"PROJECT (\S+)/(\d+) COLUMNS", plan.explain())
    assert counts
    return max(int(total if count == "*" else count) for count, total in counts)


def test_a_wide_scan_is_noticed(log: pl.LazyFrame) -> None:
    assert columns_read(log) == 27
    assert columns_read(log.select(pl.col("score").sum())) == 1


@every_metric
def test_a_plan_reads_what_its_metric_needs(log: pl.LazyFrame, name: str, average: Any) -> None:
    needed = {"score", "truth"}
    needed |= {"label"} if average in LABEL_AVERAGES else set()
    needed |= {"sample"} if average == "samples" or mlm.CATALOGUE[name].grain == "sample" else set()
    needed |= {"sample", "label"} if name in ("labelwise_precision", "information_score") else set()
    assert columns_read(mlm.evaluate(log, made(name, average))) == len(needed)
    assert columns_read(mlm.evaluate(log, made(name, average), by="model", weight="w")) == len(needed | {"model", "w"})


def test_a_plan_of_all_metrics_reads_the_roles_and_the_keys(log: pl.LazyFrame) -> None:
    assert columns_read(mlm.evaluate(log, ALL_METRICS, by="model", slices=["country"], weight="w")) == 7
    assert columns_read(mlm.evaluate(log, mlm.f1(), by="model", tidy=True)) == 4
    assert columns_read(mlm.worst(log, mlm.log_loss(), by="model")) == 4


ASKED_OF_ONE_DAY: dict[str, Callable[[pl.LazyFrame], pl.LazyFrame]] = {
    "group": lambda log: mlm.evaluate(log, mlm.f1()),
    "labels by": lambda log: mlm.evaluate(log, mlm.f1(average="macro"), mlm.log_loss(), by="day", tidy=True),
    "of each label": lambda log: mlm.evaluate(log, mlm.f1(), per="label"),
    "samples": lambda log: mlm.evaluate(log, mlm.ranking_loss()),
    "of all kinds": lambda log: mlm.evaluate(log, mlm.f1(), mlm.roc_auc(), mlm.one_error(), slices=["label"], ci=0.95),
    "state": lambda log: mlm.state(log, mlm.f1()),
}


@pytest.mark.parametrize("asked", ASKED_OF_ONE_DAY.values(), ids=ASKED_OF_ONE_DAY)
def test_a_filter_of_the_log_is_the_scans_own(asked: Callable[[pl.LazyFrame], pl.LazyFrame], tmp_path: Path) -> None:
    """So that parts of files are left out by what their statistics say."""
    rows = {"sample": [1, 1, 2, 2], "label": ["x", "y"] * 2, "score": [0.9, 0.2, 0.4, 0.8], "truth": [1, 0, 1, 0]}
    pl.DataFrame({"day": [1, 1, 2, 2], **rows}).write_parquet(tmp_path / "log.parquet")
    one_day = pl.scan_parquet(tmp_path / "log.parquet").filter(pl.col("day") == 2)
    plan = asked(one_day)
    shown = plan.explain()
    assert shown.count("SELECTION:") == shown.count("SCAN [") == 1
    expected = asked(one_day.collect().lazy()).collect()
    assert_frame_equal(plan.collect(), expected, rel_tol=1e-12, check_row_order=False)
