"""`classification_report` has the numbers of scikit-learn, in every group, and the intervals of `evaluate`."""

from typing import Any

import numpy as np
import polars as pl
import pytest
import sklearn.metrics as sk
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm

AVERAGES = ("micro", "macro", "weighted")


def classes(seed: int = 0, n: int = 200) -> pl.DataFrame:
    """Samples of four classes, of which the last is true in few and never predicted."""
    random = np.random.default_rng(seed)
    truth = random.choice(4, n, p=[0.3, 0.3, 0.35, 0.05])
    score = random.dirichlet([1, 1, 1, 0.2], n)
    score[np.arange(n), truth] += 0.3
    score[:, 3] = 0
    log = mlm.from_arrays(score=score, truth=np.eye(4)[truth])
    return log.with_columns(model=pl.when(pl.col("sample") % 3 == 0).then(pl.lit("b")).otherwise(pl.lit("a")))


def wide(rows: pl.DataFrame, column: str) -> "np.ndarray[Any, Any]":
    return rows.pivot("label", index="sample", values=column).sort("sample").drop("sample").to_numpy()


def rows_of(table: pl.DataFrame) -> dict[str, dict[str, float]]:
    """The rows by their names in scikit-learn."""
    names = ("precision", "recall", "f1", "support")
    return {
        str(row["label"] if row["average"] is None else row["average"]): {n: row[n] for n in names}
        for row in table.to_dicts()
    }


def right(rows: pl.DataFrame, answers: "np.ndarray[Any, Any]") -> dict[str, dict[str, float]]:
    """The report of scikit-learn, of labels that are each predicted or not."""
    report = sk.classification_report(wide(rows, "truth"), answers, output_dict=True, zero_division=0.0)
    found = {name.removesuffix(" avg"): each for name, each in report.items() if name != "samples avg"}
    return {
        name: {"f1" if key == "f1-score" else key: value for key, value in each.items()} for name, each in found.items()
    }


@pytest.mark.parametrize("threshold", [0.5, 0.3, "argmax"])
def test_its_numbers_are_those_of_scikit_learn(threshold: Any) -> None:
    rows = classes()
    score = wide(rows, "score")
    answers = score == score.max(axis=1, keepdims=True) if threshold == "argmax" else score > threshold
    table = mlm.classification_report(rows, threshold=threshold, undefined=0.0)
    found, expected = rows_of(table), right(rows, answers.astype(int))
    assert found.keys() == expected.keys()
    for name, row in expected.items():
        assert found[name] == pytest.approx(row, rel=1e-12), name


def test_of_classes_micro_is_the_accuracy() -> None:
    rows = classes()
    micro = rows_of(mlm.classification_report(rows, threshold="argmax"))["micro"]
    score, truth = wide(rows, "score"), wide(rows, "truth")
    accuracy = sk.accuracy_score(truth.argmax(axis=1), score.argmax(axis=1))
    assert [micro["precision"], micro["recall"], micro["f1"]] == pytest.approx([accuracy] * 3, rel=1e-12)


def test_each_group_has_a_report_of_its_own() -> None:
    rows = classes()
    table = rows.mlm.classification_report("model", ci=0.9, cluster="sample")
    assert table["model"].to_list() == ["a"] * 7 + ["b"] * 7
    assert table["average"].to_list() == [None, None, None, None, *AVERAGES] * 2
    for model in ("a", "b"):
        alone = mlm.classification_report(rows.filter(model=model), ci=0.9)
        assert_frame_equal(table.filter(model=model).drop("model"), alone, rel_tol=1e-12)


def test_intervals_are_those_of_evaluate() -> None:
    rows = classes()
    table = mlm.classification_report(rows, ci=0.95, weight="sample")
    ends = [f"{name}{end}" for name in ("precision", "recall", "f1") for end in ("", "_low", "_high")]
    assert table.columns == ["label", "average", *ends, "support"]
    for average in AVERAGES:
        metrics = [make(average=average).alias(make.__name__) for make in (mlm.precision, mlm.recall, mlm.f1)]
        same = mlm.evaluate(rows, metrics, ci=0.95, weight="sample")
        assert_frame_equal(table.filter(average=average).select(ends), same.select(ends), rel_tol=1e-12)
    macro = [make(average="macro").alias(make.__name__) for make in (mlm.precision, mlm.recall, mlm.f1)]
    labels = mlm.evaluate(rows, macro, per="label", ci=0.95, weight="sample")
    assert_frame_equal(table.head(4).select("label", *ends), labels.select("label", *ends), rel_tol=1e-12)


def test_a_label_without_a_value_is_left_out_of_the_averages_or_has_the_one_that_is_given() -> None:
    rows = classes()
    left_out, filled = (rows_of(mlm.classification_report(rows, undefined=value)) for value in (None, 0.0))
    assert left_out["3"]["precision"] is None
    assert filled["3"]["precision"] == 0
    assert filled["macro"]["precision"] == pytest.approx(0.75 * left_out["macro"]["precision"])


@pytest.mark.parametrize("threshold", [0.5, "argmax"])
def test_a_state_says_what_its_log_says(threshold: Any) -> None:
    rows = classes()
    averages: list[Any] = [*AVERAGES]
    metrics = [metric for a in averages for metric in (mlm.f1(average=a, threshold=threshold), mlm.support(average=a))]
    state = mlm.state(rows, metrics, by="model")
    of_state = mlm.classification_report(state, "model", threshold=threshold, undefined=0.0)
    assert_frame_equal(
        of_state, mlm.classification_report(rows, "model", threshold=threshold, undefined=0.0), rel_tol=1e-12
    )


def test_a_lazy_log_has_a_lazy_report() -> None:
    rows = classes()
    lazy = rows.lazy().mlm.classification_report(by="model")
    assert isinstance(lazy, pl.LazyFrame)
    eager = mlm.classification_report(rows, by="model")
    assert lazy.collect_schema() == eager.schema
    for engine in ("in-memory", "streaming"):
        assert_frame_equal(lazy.collect(engine=engine), eager, rel_tol=1e-12)


@pytest.mark.parametrize("options", [{}, {"ci": 0.95}], ids=["values", "intervals"])
def test_what_is_upstream_runs_once(options: dict[str, Any]) -> None:
    rows, runs = classes(), []

    def counted(part: pl.DataFrame) -> pl.DataFrame:
        runs.append(part.height)
        return part

    lazy = rows.lazy().map_batches(counted, schema=rows.schema)
    table = mlm.classification_report(lazy, **options).collect()
    assert runs == [rows.height]
    assert_frame_equal(table, mlm.classification_report(rows, **options), rel_tol=1e-12)


def test_other_names_and_no_rows() -> None:
    rows = classes().rename({"label": "class", "score": "p", "truth": "is"})
    roles: dict[str, Any] = {"label": "class", "score": "p", "truth": "is"}
    table = mlm.classification_report(rows, **roles)
    assert_frame_equal(table, mlm.classification_report(classes()))
    empty = mlm.classification_report(rows.clear(), **roles)
    assert empty.schema == table.schema
    assert empty["average"].to_list() == [*AVERAGES]


REFUSED = {
    "by a column of its own": ({"by": "average"}, mlm.NameCollisionError, "'average'"),
    "no label": ({"label": "class"}, mlm.ColumnError, "'class'"),
    "unknown role": ({"lable": "x"}, mlm.ParameterError, "Did you mean 'label'.*help\\(classification_report\\)"),
    "clusters without ci": ({"cluster": "sample"}, mlm.ParameterError, "pass ci= too"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    asked, error, words = REFUSED[name]
    rows = classes().with_columns(average=pl.lit(1))
    with pytest.raises(error, match=words):
        mlm.classification_report(rows, **asked)
