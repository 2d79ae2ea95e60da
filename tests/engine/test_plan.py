"""The plan of an evaluation: pure, native and narrow."""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from tests.laws.cases import AVERAGES, NO_AVERAGE, averages_of, variants
from tests.support.plans import fallbacks, serialized, wide_log

OF_LABELS = ["macro", "weighted", "min", "max", "named"]

OF_CLASSES = ("classification_accuracy", "global_accuracy")
OF_BOTH = ("labelwise_precision", "information_score", "d2_multiclass_log_loss", "label_coverage", "exposure_gini")
"""Metrics that need the sample and the label of a row."""


def made(name: str, average: str = NO_AVERAGE) -> mlm.Metric:
    """A metric of the catalogue, with what it cannot do without."""
    given = {"average": AVERAGES[average]} if average in AVERAGES else {}
    parameters = next(variants(name))
    parameters |= {parameter: "score" for parameter in ("value", "quantile", "popularity") if parameter in parameters}
    metric = getattr(mlm, name)(**parameters, **given)
    # Of a float score a truth of whole numbers is no class.
    return metric.on(truth=pl.col("truth").cast(pl.Float64)) if name in OF_CLASSES else metric


CASES = [(name, average) for name in sorted(mlm.CATALOGUE) for average in averages_of(name)]


def is_quick(name: str, average: str) -> bool:
    """Averages of labels differ in how they settle, and in nothing else: each metric has one of them in turn."""
    turn = sorted(mlm.CATALOGUE).index(name) % len(OF_LABELS)
    return average not in OF_LABELS or average == OF_LABELS[turn]


QUICK = [case for case in CASES if is_quick(*case)]


every_metric = pytest.mark.parametrize(
    ("average", "names"),
    [
        pytest.param(average, names, marks=[] if quick else [pytest.mark.proof])
        for average in [*AVERAGES, NO_AVERAGE]
        for quick in (True, False)
        if (names := [name for name, other in CASES if other == average and is_quick(name, other) == quick])
    ],
)


def metrics_of(cases: list[tuple[str, str]]) -> list[mlm.Metric]:
    """These in one table, and those whose formula takes another road with other parameters."""
    return [
        *(made(name, average).alias(f"{name} {average}") for name, average in cases),
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


PlanOf = Callable[[str, str, str | None], pl.LazyFrame]


@pytest.fixture(scope="module")
def plan_of(log: pl.LazyFrame) -> PlanOf:
    """The plan of a metric by model, made once for all that look at it."""
    return cache(lambda name, average, weight: mlm.evaluate(log, made(name, average), by="model", weight=weight))


# -- pure: no Python in the plan ---------------------------------------------------------------------------------------


def is_pure(plan: pl.LazyFrame) -> bool:
    try:
        return len(serialized(plan)) > 0
    except pl.exceptions.ComputeError:
        return False


def test_a_plan_with_python_in_it_is_noticed(log: pl.LazyFrame) -> None:
    assert is_pure(log.select(pl.col("score") * 2))
    plan = log.select(pl.col("score").map_batches(lambda column: column))
    assert not is_pure(plan)
    with pytest.raises(pl.exceptions.ComputeError, match="cloudpickle"):
        serialized(plan)


def test_plans_of_units_and_of_the_worst_are_pure(log: pl.LazyFrame) -> None:
    assert is_pure(mlm.evaluate(log, mlm.f1(), mlm.labelwise_precision(), per="label"))
    assert is_pure(mlm.evaluate(log, mlm.f1(), mlm.ranking_loss(), by="model", per="sample"))
    assert is_pure(mlm.worst(log, mlm.ranking_loss(), by="model"))


@every_metric
def test_an_inline_metric_is_pure(log: pl.LazyFrame, average: str, names: list[str]) -> None:
    assert [name for name in names if not is_pure(log.group_by("model").agg(made(name, average)))] == []


# -- native: the streaming engine runs all of it -----------------------------------------------------------------------

# These cumulate over the sorted runs of a group. The streaming engine has no native cum_sum inside an aggregation: it
# gathers the runs (one row for each distinct score, not the rows of the log) in memory for that one step.
CUMULATES = {
    "ks", "recall_at_precision", "precision_at_recall", "recall_at_fpr",
    "lift_at", "median_absolute_error", "d2_pinball", "d2_absolute_error",
    "interpolated_pr_auc", "equal_error_rate", "calibration_ks", "calibration_kuiper", "exposure_gini",
}  # fmt: skip


# This divides a sum of each label by that of all: the rows gathered are one for each group and label.
DIVIDES = {"d2_multiclass_log_loss"}

# Unweighted these come from the ranking pass; weights are cumulated.
CUMULATES_WEIGHTS = {"roc_auc", "gini", "average_precision"}


def test_a_fallback_is_noticed(log: pl.LazyFrame) -> None:
    (found,) = fallbacks(log.group_by("model").agg(pl.col("score").median()))
    assert found.startswith("in-memory-map")
    assert fallbacks(log.group_by("model").agg(pl.col("score").sum())) == []


@every_metric
@pytest.mark.parametrize("weight", [None, "w"])
def test_a_plan_is_native(plan_of: PlanOf, average: str, names: list[str], weight: str | None) -> None:
    for name in names:
        cumulates = name in CUMULATES or (name in CUMULATES_WEIGHTS and weight and average != "samples")
        found = fallbacks(plan_of(name, average, weight))
        gathers = ["AGGREGATE" in step and ("cum_sum" in step or name in DIVIDES) for step in found]
        assert gathers == [True] * bool(cumulates or name in DIVIDES), (name, found)


@every_metric
def test_a_tidy_plan_is_pure_and_native(log: pl.LazyFrame, average: str, names: list[str]) -> None:
    for name in names:
        plan = mlm.evaluate(log, made(name, average), pl.len(), by="model", min_samples=2, tidy=True)
        assert is_pure(plan), name
        assert name in CUMULATES | DIVIDES or fallbacks(plan) == [], name


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
        assert is_pure(plan)
        assert fallbacks(plan) == []


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("labels", [None, ["a", "b"]])
def test_a_plan_of_classes_is_pure_and_native(log: pl.LazyFrame, weight: str | None, labels: list[str] | None) -> None:
    metrics = [m(threshold="argmax", labels=labels) for m in (mlm.accuracy, mlm.mcc, mlm.cohen_kappa)]
    plan = mlm.evaluate(log, metrics, by="model", weight=weight)
    assert is_pure(plan)
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
def test_a_plan_reads_what_its_metric_needs(log: pl.LazyFrame, plan_of: PlanOf, average: str, names: list[str]) -> None:
    for name in names:
        needed = {*mlm.CATALOGUE[name].reads} or {"mean": {"score"}, "share": {"truth"}}[name]
        needed |= {"label"} if average in OF_LABELS else set()
        needed |= {"sample"} if average == "samples" or mlm.CATALOGUE[name].grain == "sample" else set()
        needed |= {"sample", "label"} if name in OF_BOTH else set()
        needed |= {"sample"} if name == "krippendorff_alpha" else set()
        assert columns_read(mlm.evaluate(log, made(name, average))) == len(needed), name
        assert columns_read(plan_of(name, average, "w")) == len(needed | {"model", "w"}), name


def test_tables_that_say_more_read_the_roles_and_the_keys(log: pl.LazyFrame) -> None:
    assert columns_read(mlm.evaluate(log, mlm.f1(), by="model", tidy=True)) == 4
    assert columns_read(mlm.worst(log, mlm.log_loss(), by="model")) == 4


# -- all metrics in one plan -------------------------------------------------------------------------------------------

UPPER = pl.col("model").str.to_uppercase()
OF_ALL: list[tuple[dict[str, Any], int]] = [
    ({"by": "model", "slices": ["country"], "min_samples": 2, "weight": "w"}, 7),
    ({}, 4),
    ({"by": "model"}, 5),
    ({"slices": ["country", "label"]}, 5),
    ({"by": UPPER, "slices": ["country", ["country", "label"]], "weight": "w"}, 7),
    ({"by": "model", "slices": ["country"], "min_samples": 2}, 6),
    ({"by": pl.col("score").round(1).alias("score")}, 4),
]


@pytest.mark.parametrize(
    ("cases", "options", "columns"),
    [(QUICK[::3], *OF_ALL[0]), *(pytest.param(CASES, *case, marks=pytest.mark.proof) for case in OF_ALL)],
)
def test_a_plan_of_all_metrics_is_pure_native_and_narrow(
    log: pl.LazyFrame, cases: list[tuple[str, str]], options: dict[str, Any], columns: int
) -> None:
    plan = mlm.evaluate(log, metrics_of([case for case in cases if case[0] not in DIVIDES]), **options)
    assert is_pure(plan)
    # Two by columns stand under one code while samples are folded. That no two groups share a code is checked where
    # the groups, a row each, get their names back: a checked join is the in-memory engine's. And where there is no by
    # column, spearman ranks one whole column, and kendall and linear_kappa put one in order: it has to be there whole.
    known = re.compile(
        r"in-memory-join\\nleft_on:\\n__mlm_code|columnar-function\\n\w+ = rank|.*AGGREGATE.*cum_sum"
        r"|in-memory-map\\nSELECT.*\.implode\(\)"
    )
    assert [step for step in fallbacks(plan) if not known.match(step)] == []
    assert columns_read(plan) == columns


@pytest.mark.proof
def test_a_tidy_plan_of_all_metrics_is_pure(log: pl.LazyFrame) -> None:
    assert is_pure(mlm.evaluate(log, metrics_of(CASES), by="model", slices=["country"], min_samples=2, tidy=True))


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
