"""`check` of a table for the metrics that are wanted of it; what is ignored, and what is not looked for."""

import math
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.checks.check_cases import CLEAN, SIZES, check, of_score, of_truth, row_of, told

PRICES = pl.DataFrame({"sample": [1, 2, 3], "score": [12.5, -3.0, 7.0], "truth": [11.0, -2.5, 8.0]})


def test_numbers_are_no_problem_of_a_regression() -> None:
    assert told(PRICES) == {"truth_not_binary": 3, "score_out_of_range": 3}
    assert told(PRICES, metrics=[mlm.rmse(), mlm.pearson()]) == {}
    assert told(PRICES, metrics=mlm.rmse()) == {}
    assert told(PRICES, metrics=[mlm.rmse(), mlm.f1()]) == {"truth_not_binary": 3, "score_out_of_range": 3}
    assert told(PRICES, metrics=[mlm.rmse(), mlm.roc_auc()]) == {"truth_not_binary": 3}


def test_grades_are_no_problem_of_ndcg() -> None:
    graded = of_truth(3, 0, 1, 2)
    assert told(graded, metrics=[mlm.ndcg(), mlm.dcg(k=2)]) == {}
    assert told(graded, metrics=[mlm.ndcg(), mlm.recall_at(2)]) == {"truth_not_binary": 2}


def test_a_score_of_any_size_is_no_problem_of_a_ranking() -> None:
    log = of_score(7.5, -0.3, math.inf, 0.4)
    assert told(log, metrics=[mlm.ranking_loss(), mlm.roc_auc(), mlm.f1(threshold=0.0)]) == {}
    assert told(log, metrics=[mlm.brier_score()]) == {"score_no_probability": 3}
    assert told(log, metrics=[mlm.log_loss(logits=True)]) == {"score_infinite": 1}


PERCENT = of_score(90.0, 30.0, 20.0, 0.4)


def test_scores_that_the_usual_threshold_does_not_fit() -> None:
    """Percentages are all above 0.5: whoever names no threshold is warned; a threshold in their unit is right."""
    for metric in (mlm.f1(), mlm.accuracy(average="macro"), mlm.recall() - mlm.precision()):
        assert told(PERCENT, metrics=[metric]) == {"score_out_of_range": 3}
    for other in (mlm.f1(threshold=50), mlm.f1(threshold="argmax"), mlm.f1().on(score=pl.col("score") / 100)):
        assert told(PERCENT, metrics=[other]) == {}
    row = row_of("score_out_of_range", PERCENT, metrics=[mlm.f1()])
    assert "Divide percentages by 100" in row["meaning"]


@pytest.mark.parametrize("threshold", [50, -0.1, {"a": 0.3, "b": 1.5}], ids=str)
def test_a_threshold_that_no_score_can_be_near(threshold: Any) -> None:
    """All scores are from 0 to 1: nothing, or all, is predicted, and the number looks like any other."""
    metrics = [mlm.f1(threshold=threshold)]
    assert told(CLEAN, metrics=metrics) == {"threshold_no_probability": 4}
    assert told(of_score(0.9, None, 0.2, 0.4), metrics=metrics) == {"threshold_no_probability": 4, "score_null": 1}
    with pytest.raises(mlm.TableError, match="threshold_no_probability"):
        mlm.check(CLEAN, metrics=metrics, strict=True, progress=False)
    margins = of_score(2.6, -1.0, 0.2, 0.4)
    assert "threshold_no_probability" not in told(margins, metrics=metrics)
    for fitting in (0.0, 1.0, math.inf, -math.inf, pl.col("score") + 9):
        assert told(CLEAN, metrics=[mlm.f1(threshold=fitting)]) == {}


def test_class_names_are_no_problem_of_classes() -> None:
    log = pl.DataFrame({"sample": [1, 2], "score": ["cat", "dog"], "truth": ["cat", "cat"]})
    assert told(log) == {"score_is_no_number": 2, "truth_is_no_number": 2}
    assert told(log, metrics=[mlm.classification_accuracy()]) == {}


def test_unknown_keys_are_a_problem_of_metrics_that_need_them() -> None:
    log = CLEAN.with_columns(pl.Series("sample", [1, 1, None, 2]), pl.Series("label", ["a", None, "a", "b"]))
    assert told(log, metrics=[mlm.accuracy()]) == {}
    assert told(log, metrics=[mlm.accuracy(average="macro")]) == {"label_null": 1}
    assert told(log, metrics=[mlm.one_error()]) == {"sample_null": 1}
    assert told(log, metrics=[mlm.labelwise_precision()]) == {"sample_null": 1, "label_null": 1}


def test_a_key_that_varies_in_a_sample_is_a_problem_of_rankings() -> None:
    log = CLEAN.with_columns(category=pl.Series(["x", "y", "x", "y"]))
    assert told(log, by="category", metrics=[mlm.ndcg()]) == {"key_varies_in_sample": 2}
    assert told(log, by="category", metrics=[mlm.rmse()]) == {}


def test_accuracy_of_classes_is_a_warning() -> None:
    classes = of_score(0.7, 0.3, 0.4, 0.6)
    assert row_of("looks_multiclass", classes)["severity"] == "info"
    assert row_of("classes_as_labels", classes, metrics=[mlm.accuracy()])["severity"] == "warning"
    for metric in (mlm.recall(threshold="argmax"), mlm.multiclass_log_loss()):
        assert "classes_as_labels" not in told(classes, metrics=[metric])


def test_metrics_of_other_columns_say_nothing_of_these() -> None:
    log = PRICES.with_columns(p=0.5, clicked=1)
    other = mlm.log_loss().on(score="p", truth="clicked")
    assert told(log, metrics=[mlm.rmse(), other]) == {}
    assert told(log, metrics=[mlm.rmse(), mlm.log_loss().on(score="p")]) == {"truth_no_share": 3}


def test_what_is_ignored_comes_last_and_raises_nothing() -> None:
    log = of_score(0.9, math.nan, None, 0.4)
    table = check(log, ignore=["score_nan", "score_null"])
    assert table["problem"].to_list() == [*SIZES, "score_nan", "score_null"]
    assert table["severity"].to_list() == ["info"] * 4 + ["ignored"] * 2
    assert table.filter(severity="ignored")["count"].to_list() == [1, 1]
    mlm.raise_for(table, "warning")
    mlm.check(log, ignore=["score_nan"], strict=True)
    with pytest.raises(mlm.TableError, match="score_null"):
        mlm.raise_for(check(log, ignore=["score_nan"]), "warning")


def test_what_was_not_looked_for_can_be_listed() -> None:
    log = CLEAN.drop("sample", "label")
    assert "skipped" not in check(log)["severity"].to_list()
    skipped = check(log, skipped=True).filter(severity="skipped")
    assert {"duplicate", "sample_null", "label_never_true", "weight_null", "samples"} <= {*skipped["problem"]}
    assert {"score_nan", "truth_not_binary", "rows", "groups"}.isdisjoint(skipped["problem"])
    assert skipped.select("count", "share", "fix").unique().rows() == [(None, None, None)]
    of_prices = check(PRICES, metrics=[mlm.rmse()], skipped=True).filter(severity="skipped")["problem"]
    assert {"truth_not_binary", "score_out_of_range", "looks_multiclass"} <= {*of_prices}


# -- metrics that read neither the score nor the truth -----------------------------------------------------------------

SAMPLES = [number for number in range(6) for _ in ("old", "new")]
LATENCIES = pl.DataFrame(
    {
        "sample": [*SAMPLES, 5],
        "model": ["old", "new"] * 6 + ["new"],
        "latency": [float(number) for number in range(12)] + [11.0],
        "ok": [True] * 12 + [False],
        "heavy": [1.0, 2.0] * 5 + [None, 1.0, -1.0],
        "country": ["DE", "FR"] * 6 + ["FR"],
    }
)
"""A log without scores and truths, with a sample that is there twice."""

OWN = [mlm.mean("latency"), mlm.share(pl.col("ok"))]


@pytest.mark.parametrize("rows", [LATENCIES, LATENCIES.lazy()], ids=["DataFrame", "LazyFrame"])
def test_a_table_without_scores_and_truths_is_checked_for_what_it_has(rows: Any) -> None:
    assert told(rows, by="model", metrics=OWN) == {"duplicate": 1, "samples_in_common": 6}
    assert told(rows, metrics=OWN[0]) == {"models_pooled": 6, "duplicate": 1}
    weighted = told(rows, by="model", metrics=OWN, weight="heavy")
    of_weights = {"weight_null": 1, "weight_negative": 1, "weight_varies": 1}
    assert weighted == of_weights | {"duplicate": 1, "samples_in_common": 6}
    found = told(rows, by="model", slices=["country"], metrics=OWN)
    assert found["slices_differ_between_models"] == 6


def test_a_table_without_keys_has_its_rows() -> None:
    """Nothing but the number of rows is read of it."""
    alone = LATENCIES.select("latency")
    sizes = dict(check(alone, metrics=OWN[0]).select("problem", "count").rows())
    assert sizes == {"rows": 13, "groups": 1}


def test_roles_that_no_metric_reads_are_not_looked_at() -> None:
    log = of_score(0.9, math.nan, None, 7.0).with_columns(latency=1.0)
    assert {"score_nan", "score_null", "score_out_of_range"} <= told(log).keys()
    assert told(log, metrics=mlm.mean("latency")) == {}
    skipped = check(log, metrics=mlm.mean("latency"), skipped=True).filter(severity="skipped")["problem"]
    assert {"score_nan", "score_null", "truth_null", "truth_contradicted"} <= {*skipped}
    # One of the metrics is enough.
    assert told(log, metrics=[mlm.mean("latency"), mlm.roc_auc()]) == {"score_nan": 1, "score_null": 1}


def test_only_what_is_read_must_be_there() -> None:
    trials = CLEAN.drop("score")
    assert told(trials, metrics=mlm.pass_at(1)) == {}
    judges = CLEAN.drop("truth")
    assert told(judges, metrics=mlm.krippendorff_alpha()) == {}
    with pytest.raises(mlm.ColumnError, match=r"\(sample, label, truth\)\. If it has another name, pass score=\.$"):
        check(trials, metrics=[mlm.pass_at(1), mlm.recall()])
    with pytest.raises(mlm.ColumnError, match="score column 'scroe' is not in the table"):
        check(judges, metrics=mlm.krippendorff_alpha(), score="scroe")
    with pytest.raises(mlm.ColumnError, match="Name the metrics that you want, if none of them reads it"):
        check(trials)
    moved = CLEAN.rename({"score": "p", "truth": "clicked"})
    assert told(moved, metrics=mlm.recall().on(score="p", truth="clicked")) == {}


def test_lines_of_such_a_table_name_no_metric_of_scores() -> None:
    row = row_of("weight_unused", LATENCIES.rename({"heavy": "weight"}), by="model", metrics=OWN)
    assert row["fix"] == "mlm.evaluate(log, ..., weight='weight')"
    scored = CLEAN.with_columns(weight=1.0)
    assert row_of("weight_unused", scored)["fix"] == "mlm.evaluate(log, mlm.accuracy(), weight='weight')"
