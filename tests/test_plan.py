"""The plan of an evaluation: pure, native, narrow, and without work done twice."""

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import polars as pl
import pytest

import polars_mlmetrics as mlm
from polars_mlmetrics.engine import sources
from polars_mlmetrics.engine.folds import CODE
from tests.cases import variants

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
every_metric = pytest.mark.parametrize(("name", "average"), CASES, ids=str)

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
    """A scan of a parquet file with many columns that no metric reads."""
    frame = pl.DataFrame(
        {
            "model": ["a", "a", "a", "a", "b", "b"],
            "country": ["DE", "DE", "FR", None, "DE", "FR"],
            "sample": [1, 1, 2, 2, 1, 2],
            "label": ["x", "y", "x", "y", "x", "x"],
            "score": [0.9, 0.2, 0.4, 0.8, 0.7, 0.1],
            "truth": [1, 0, 1, 0, 1, 0],
            "w": [1.0, 1.0, 2.0, 2.0, 1.0, 2.0],
            **{f"unused_{i}": [0] * 6 for i in range(20)},
        }
    )
    path: Path = tmp_path_factory.mktemp("plan") / "log.parquet"
    frame.write_parquet(path)
    return pl.scan_parquet(path)


# -- pure: no Python in the plan ---------------------------------------------------------------------------------------


def serialized(plan: pl.LazyFrame) -> bytes:
    """The plan as bytes; a plan with Python in it needs cloudpickle for that, and there is none here."""
    with mock.patch.dict(sys.modules, {"cloudpickle": None}):
        return plan.serialize()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"by": "model"},
        {"by": pl.col("model").str.to_uppercase(), "slices": ["country", ["country", "label"]], "weight": "w"},
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


def physical(plan: pl.LazyFrame) -> str:
    """The streaming engine's own graph of a plan."""
    graph = plan.show_graph(engine="streaming", plan_stage="physical", raw_output=True, show=False)
    assert graph is not None
    return graph


def fallbacks(plan: pl.LazyFrame) -> list[str]:
    """The steps of a plan that the streaming engine hands to the in-memory one; `explain()` does not tell."""
    graph = physical(plan)
    hue = re.search(r'COLOR="([^"]*)">⬤</FONT> in-memory engine fallback', graph)
    assert hue, "the legend is not what it was"
    nodes = re.findall(r'^\d+ \[label="(.*)",style=filled,fillcolor="([^"]*)"\];$', graph, flags=re.MULTILINE)
    return [label for label, colour in nodes if colour == hue[1]]


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
        {},
        {"slices": ["country", "label"]},
        {"by": "model", "slices": ["country"], "min_samples": 2},
        {"by": pl.col("score").round(1).alias("score")},
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


@pytest.mark.parametrize(("name", "average"), [case for case in CASES if case[0] not in CUMULATES], ids=str)
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


# -- without work done twice -------------------------------------------------------------------------------------------


def folds(plan: pl.LazyFrame, statistic: str) -> int:
    """How many times the rows are folded into a statistic of this name."""
    return plan.explain(optimized=False).count(f'col("{statistic}").sum()')


def group_bys(plan: pl.LazyFrame) -> int:
    return plan.explain(optimized=False).count("AGGREGATE")


def test_a_statistic_that_many_metrics_share_is_folded_once(log: pl.LazyFrame) -> None:
    plan = mlm.evaluate(log, mlm.f1(), mlm.precision(), mlm.mcc(), mlm.accuracy(), mlm.true_positives(), by="model")
    assert folds(plan, "true_positives@0.5") == 1
    assert folds(plan, "n_rows") == 1
    assert group_bys(plan) == 1


def test_thresholds_that_differ_are_statistics_that_differ(log: pl.LazyFrame) -> None:
    plan = mlm.evaluate(log, mlm.f1(), mlm.recall(threshold=0.3), by="model")
    assert (folds(plan, "true_positives@0.5"), folds(plan, "true_positives@0.3")) == (1, 1)
    assert group_bys(plan) == 1


def test_metrics_of_one_unit_share_one_fold(log: pl.LazyFrame) -> None:
    averages = ("macro", "weighted", "min", "max")
    by_label = [mlm.f1(average=average) for average in averages] + [mlm.log_loss(average="macro")]
    assert group_bys(mlm.evaluate(log, by_label, by="model")) == 2  # rows -> labels -> groups
    by_sample = [mlm.exact_match_prefix(), mlm.one_error(), mlm.f1(average="samples"), mlm.n_samples()]
    assert group_bys(mlm.evaluate(log, by_sample[:1] + by_sample[2:], by="model")) == 2  # rows -> samples -> groups


def test_all_rankings_of_one_unit_share_one_sort(log: pl.LazyFrame) -> None:
    ranked = [mlm.ranking_loss(), mlm.coverage_error(), mlm.ndcg(k=2), mlm.precision_at(1), mlm.reciprocal_rank()]
    known = log.with_columns(pl.col("truth").cast(pl.Boolean))
    plan = mlm.evaluate(known, ranked, mlm.exact_match_prefix(), by="model")
    assert group_bys(plan) == 3  # rows -> samples, rows in order -> samples, samples -> groups
    assert len(re.findall(r"SORT BY.*__mlm_pass:key", plan.explain(engine="streaming"))) == 1
    assert scans(plan) == 1


def scans(plan: pl.LazyFrame) -> int:
    """How many times the streaming engine reads the source."""
    return len(re.findall(r'label="(?:multi-scan|in-memory-source)', physical(plan)))


def test_a_group_its_labels_and_its_bins_are_folded_in_one_reading(log: pl.LazyFrame) -> None:
    metrics = [make(average=average) for make in (mlm.f1, mlm.calibration_error) for average in ("micro", "macro")]
    for by in ("model", None):
        assert scans(mlm.evaluate(log, *metrics, mlm.n_rows(), by=by)) == 1
        assert scans(mlm.evaluate(log, *metrics, mlm.subset_accuracy(), by=by)) == 2  # one more, for the samples


def test_metrics_in_arithmetic_are_folded_with_the_others(log: pl.LazyFrame) -> None:
    plan = mlm.evaluate(log, mlm.f1(), (mlm.f1() - mlm.recall()).alias("gap"), -mlm.precision(), by="model")
    assert folds(plan, "true_positives@0.5") == 1
    assert group_bys(plan) == 1


def test_the_account_of_a_tidy_table_costs_no_fold_of_the_rows_but_that_of_the_samples(log: pl.LazyFrame) -> None:
    assert group_bys(mlm.evaluate(log.drop("sample"), mlm.f1(), mlm.prevalence(), by="model", tidy=True)) == 1
    assert group_bys(mlm.evaluate(log, mlm.f1(), mlm.prevalence(), by="model", tidy=True)) == 3


@pytest.mark.parametrize(
    ("metric", "name"),
    [
        (mlm.prevalence().on(score="w"), "positives[score=w]"),
        (mlm.prevalence().on(score=pl.col("w") * 2), 'positives[score=[(col("w")) * (dyn int: 2)]]'),
        (mlm.prevalence().on(weight="w"), "positives[weight=w]"),
        (mlm.prevalence(labels=["x"]), "positives[labels=['x']]"),
        (mlm.prevalence().filter(pl.col("country") == "DE"), 'positives[where [(col("country")) == ("DE")]]'),
        (mlm.prevalence(average="macro").on(label="country"), "positives[label=country]"),
    ],
    ids=repr,
)
def test_what_a_statistic_is_bound_to_beyond_the_plans_roles_is_in_its_name(
    log: pl.LazyFrame, metric: mlm.Metric, name: str
) -> None:
    plan = mlm.evaluate(log, mlm.prevalence().alias("plain"), metric, by="model")
    written = plan.explain(optimized=False).replace('\\"', '"')
    assert f'.alias("{name}")' in written
    assert '.alias("positives")' in written


def test_roles_that_are_the_plans_own_are_not_in_the_name(log: pl.LazyFrame) -> None:
    plan = mlm.evaluate(log, mlm.prevalence().on(score="w"), by="model", score="w")
    assert folds(plan, "positives") == 1


# -- names are identities ----------------------------------------------------------------------------------------------


@pytest.fixture
def clash() -> Iterator[Any]:
    """A metric with a statistic that has the name of another."""

    @mlm.metric(range=(0, 1), best="max", undefined_when="no rows")
    def clashing(u: mlm.Unit) -> pl.Expr:
        """Not what it says."""
        return mlm.ratio(u.sum("positives", u.score), u.rows())

    yield clashing
    del mlm.CATALOGUE["clashing"]


def test_two_statistics_of_one_name(log: pl.LazyFrame, clash: Any) -> None:
    message = "two different statistics have the name 'positives': give one of them another name."
    for metrics in ([clash(), mlm.prevalence()], [mlm.prevalence(), clash()], [clash() - mlm.prevalence()]):
        with pytest.raises(mlm.NameCollisionError) as caught:
            mlm.evaluate(log, metrics, by="model")
        assert str(caught.value) == message


def test_one_name_in_two_units_is_no_clash(log: pl.LazyFrame, clash: Any) -> None:
    table = mlm.evaluate(log, clash(), mlm.prevalence(average="samples"), by="model").collect()
    assert table.columns == ["model", "clashing", "prevalence_samples"]


def test_two_monoids_under_one_name(log: pl.LazyFrame) -> None:
    @mlm.metric(range=(0, 1), best="max", undefined_when="no rows")
    def two_monoids(u: mlm.Unit) -> pl.Expr:
        """The spread of the score."""
        return u.max("score", u.score) - u.min("score", u.score)

    try:
        with pytest.raises(mlm.NameCollisionError, match="'score'"):
            mlm.evaluate(log, two_monoids())
    finally:
        del mlm.CATALOGUE["two_monoids"]


@pytest.mark.parametrize("what", ["feature", "look back", "key"])
def test_other_things_of_one_name(log: pl.LazyFrame, what: str) -> None:
    """Columns of rows, values that go back to rows, and keys clash as statistics do."""

    @mlm.metric(range=(0, 1), best="max", undefined_when="no rows", grain="sample")
    def first_meaning(u: mlm.Unit) -> pl.Expr:
        """One thing under a name."""
        if what == "feature":
            return u.sum("one", u.within("thing", u.score, "max"))
        return u.sum("one", u.deviation("thing", u.score))

    @mlm.metric(range=(0, 1), best="max", undefined_when="no rows", grain="sample")
    def second_meaning(u: mlm.Unit) -> pl.Expr:
        """Another thing under the same name."""
        if what == "feature":
            return u.sum("other", u.within("thing", u.score, "min"))
        return u.sum("other", u.on_rows("mean_thing", u.rows()) - u.score)

    name, others = ("one", []) if what == "key" else ("country", [second_meaning()])
    try:
        with pytest.raises(mlm.NameCollisionError, match="'one'" if what == "key" else "thing"):
            mlm.evaluate(log.rename({"country": name}), first_meaning(), *others, by=name)
    finally:
        del mlm.CATALOGUE["first_meaning"], mlm.CATALOGUE["second_meaning"]


def test_two_groups_of_one_code_are_an_error(log: pl.LazyFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_code", lambda by: pl.lit(7, dtype=pl.UInt64).alias(CODE))
    for metrics in ([mlm.one_error()], [mlm.one_error(), mlm.f1()]):
        with pytest.raises(pl.exceptions.ComputeError, match="1:1"):
            mlm.evaluate(log, *metrics, by=["model", "country"]).collect()
