"""Predicted classes, and the best few labels with their truths: the numbers of the whole table."""

from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest
import sklearn.metrics as sk
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from tests.adapters.predictions import AGREE, TOPICS, Data, digits, topics, truths_of, tumours
from tests.adapters.rivals import (
    DECISIONS,
    LABELS,
    OF_TOPICS,
    Pairs,
    averaged,
    differences,
    of_class,
    of_scores,
    ours_of,
    theirs_of,
)

# -- predicted classes -------------------------------------------------------------------------------------------------


def predictions_of(data: Data) -> pl.DataFrame:
    return pl.concat(
        data.beside(part).with_columns(said=pl.Series(part.said), answer=pl.Series(data.answer[part.test]))
        for part in data.parts
    )


@pytest.mark.parametrize("data", [digits, tumours])
@pytest.mark.parametrize("named", [True, False], ids=["classes named", "classes found"])
@pytest.mark.parametrize("as_frame", [pl.DataFrame, pl.LazyFrame])
def test_predicted_classes(data: Callable[[], Data], named: bool, as_frame: Any) -> None:
    it = data()
    rows = as_frame(predictions_of(it))
    classes = it.parts[0].classes.tolist()
    table = mlm.from_predictions(rows, "said", "answer", classes=classes if named else None, sample="sample")
    expected = [
        (part.model, part.fold, sample, label, float(label == said), int(label == it.answer[sample]))
        for part in it.parts
        for sample, said in zip(part.test.tolist(), part.said, strict=True)
        for label in classes
    ]
    columns = ["model", "fold", "sample", "label", "score", "truth"]
    found = table.lazy().select(*columns[:-1], pl.col("truth").cast(pl.Int64)).collect().sort(columns)
    assert found.rows() == sorted(expected)


OF_PREDICTIONS: Pairs = {
    **averaged(DECISIONS, LABELS, of_scores),
    "accuracy": (mlm.recall(), of_scores(sk.accuracy_score)),
    "whole": (mlm.subset_accuracy(), of_scores(sk.accuracy_score)),
    "zero_one": (1 - mlm.recall(), of_scores(sk.zero_one_loss)),
    "balanced": (mlm.recall(average="macro"), of_scores(sk.balanced_accuracy_score)),
}


@pytest.mark.parametrize("data", [digits, tumours])
def test_numbers_of_predicted_classes(data: Callable[[], Data]) -> None:
    """Each of two classes is a label too, as in the averages of scikit-learn."""
    table = mlm.from_predictions(predictions_of(data()), "said", "answer", sample="sample")
    theirs = theirs_of(data(), OF_PREDICTIONS, data().answer, lambda part: part.said)
    assert differences(ours_of(table, OF_PREDICTIONS), theirs) == []


def test_the_best_class_is_the_predicted_one() -> None:
    """Which class is taken for which: from the scores, from the predictions, and as scikit-learn counts."""
    it, counted = digits(), Counter[str]()
    for part in it.parts:
        counted[part.model] += sk.confusion_matrix(it.answer[part.test], part.said, labels=it.labels)
    expected = [
        (model, it.labels[answer], it.labels[said], float(matrix[answer, said]))
        for model, matrix in counted.items()
        for answer, said in np.argwhere(matrix)
    ]
    said = mlm.confusion(predictions_of(it), by="model", score="said", truth="answer")
    assert mlm.confusion(it.table, by="model").rows() == said.rows() == sorted(expected)


# -- the best few labels, and a table of truths ------------------------------------------------------------------------

FEWEST = 3


def returned_of(data: Data) -> pl.DataFrame:
    """The best three labels, with those that are level with the third, and all that are predicted."""
    place = pl.col("score").rank("min", descending=True).over("model", "sample")
    return data.table.drop("truth", "weight").filter((place <= FEWEST) | (pl.col("score") > 0.5))


def with_lost_scores(data: Data) -> pl.DataFrame:
    """The whole table, without the scores of what was not returned."""
    returned = returned_of(data).select(*data.keys, "score")
    table = data.table.drop("score", "weight").join(returned, on=data.keys, how="left")
    return table.with_columns(pl.col("score").fill_null(float("-inf")))


@cache
def judged(data: Callable[[], Data], n_labels: int | None = None) -> pl.DataFrame:
    return mlm.with_truths(returned_of(data()), truths_of(data()), by=["model", "fold"], n_labels=n_labels)


OF_RETURNED = [
    *(way(k) for way in (mlm.precision_at, mlm.recall_at, mlm.hit_at, mlm.f1_at) for k in (1, FEWEST)),
    *(way(k=k) for way in (mlm.reciprocal_rank, mlm.average_precision_at, mlm.dcg, mlm.ndcg) for k in (1, FEWEST)),
    *(way() for way in (mlm.true_positives, mlm.false_positives, mlm.false_negatives, mlm.support)),
    *(
        mlm.CATALOGUE[name](average=average)
        for name in (*DECISIONS, "false_negative_rate")
        for average in (*LABELS, "samples")
    ),
    *(mlm.fbeta(2, average=average) for average in LABELS),
    mlm.subset_accuracy(),
    mlm.n_samples(),
    mlm.n_excluded(),
]


def test_what_is_left_of_the_best_few() -> None:
    """Each case that a cut list can have is among them."""
    table = judged(topics)
    lengths = table.filter(listed="returned").group_by("model", "sample").len()["len"]
    assert set(lengths) >= {FEWEST, FEWEST + 1}
    assert table.filter(listed="not returned").height > 0
    assert table.height < topics().table.height


def test_a_cut_list_and_its_true_labels_are_the_same_by_two_ways() -> None:
    """From a row for each label and a table of truths, and from lists of both."""
    it = topics()
    lists = returned_of(it).group_by("model", "fold", "sample").agg("label", "score")
    names = truths_of(it).group_by("sample").agg(names="label")
    rows = lists.join(names, on="sample", how="left").with_columns(pl.col("names").fill_null([]))
    of_lists = mlm.from_lists(rows, true_labels="names", label="label", sample="sample")
    ours, others = (table.select(*it.keys, "score", "truth") for table in (judged(topics), of_lists))
    assert_frame_equal(ours, others, check_row_order=False, check_exact=True)


@pytest.mark.parametrize("n_labels", [None, len(TOPICS)])
@pytest.mark.parametrize("as_frame", [pl.DataFrame, pl.LazyFrame])
def test_metrics_of_what_was_returned_are_those_of_the_whole_table(as_frame: Any, n_labels: int | None) -> None:
    """Nothing that they look at is cut off: lists are as long as k, and hold all that is predicted."""
    returned, truths = as_frame(returned_of(topics())), as_frame(truths_of(topics()))
    table = mlm.with_truths(returned, truths, by=["model", "fold"], n_labels=n_labels)
    ours = mlm.evaluate(table, OF_RETURNED, by=["model", "fold"]).lazy().collect()
    whole = mlm.evaluate(topics().table, OF_RETURNED, by=["model", "fold"])
    # Sums of a few hundred units, in another order.
    assert_frame_equal(ours, whole, rel_tol=AGREE, abs_tol=0)


def test_r_precision_of_lists_that_are_long_enough() -> None:
    """It looks at as many places as there are true labels."""
    few = pl.col("truth").cast(pl.Int64).sum().over("model", "sample") <= FEWEST
    tables = (judged(topics), topics().table)
    ours, whole = (mlm.evaluate(table.filter(few), mlm.r_precision(), by="model") for table in tables)
    assert_frame_equal(ours, whole, rel_tol=AGREE, abs_tol=0)


@pytest.mark.parametrize("k", [1, 2, FEWEST])
def test_the_best_few_of_many_classes(k: int) -> None:
    it, metric = digits(), mlm.top_k_accuracy(k)
    theirs = theirs_of(it, {"top": (metric, of_class(sk.top_k_accuracy_score, k=k))}, it.truth, lambda part: part.score)
    for *key, value in mlm.evaluate(judged(digits), metric, by=["model", "fold"]).iter_rows():
        assert value == pytest.approx(theirs[tuple(key)]["top"], rel=AGREE)


NEEDY = [
    mlm.hamming_loss(), mlm.accuracy(), mlm.balanced_accuracy(), mlm.specificity(), mlm.false_positive_rate(),
    mlm.negative_predictive_value(), mlm.mcc(), mlm.cohen_kappa(), mlm.informedness(), mlm.roc_auc(), mlm.gini(),
    mlm.average_precision(), mlm.ks(), mlm.ranking_loss(), mlm.coverage_error(), mlm.one_error(),
    mlm.label_ranking_average_precision(), mlm.prevalence(), mlm.hamming_loss(average="samples"),
    mlm.accuracy(average="samples"),
]  # fmt: skip


@pytest.mark.parametrize("metric", [*NEEDY, mlm.log_loss(), mlm.brier_score()], ids=repr)
def test_a_metric_that_needs_all_negatives_is_refused(metric: mlm.Metric) -> None:
    with pytest.raises(mlm.MetricError, match="needs all negatives"):
        mlm.evaluate(judged(topics).lazy(), metric, by="model")


OF_LOST = {
    name: OF_TOPICS[name]
    for name in ("hamming", "accuracy", "balanced", "mcc", "kappa", "loss", "lrap", "coverage", "auc_micro", "ap_micro")
}


def test_with_all_negatives_it_is_that_of_the_whole_table() -> None:
    ours = mlm.evaluate(judged(topics, len(TOPICS)), NEEDY, by=["model", "fold"])
    whole = mlm.evaluate(with_lost_scores(topics()), NEEDY, by=["model", "fold"])
    assert_frame_equal(ours, whole, rel_tol=AGREE, abs_tol=0)


def test_with_all_negatives_it_is_that_of_scikit_learn() -> None:
    """Where a score was lost, its array holds one below all others."""
    it = topics()
    lost = with_lost_scores(it).with_columns(pl.col("score").clip(lower_bound=-1.0))
    metrics = [metric.alias(name) for name, (metric, _) in OF_LOST.items()]
    ours = mlm.evaluate(judged(topics, len(TOPICS)), metrics, by="model")
    for model, *numbers in ours.iter_rows():
        rows = lost.filter(model=model).sort(it.keys)
        truth, score = (rows[column].to_numpy().reshape(-1, len(TOPICS)) for column in ("truth", "score"))
        theirs = [theirs(truth, score) for _, theirs in OF_LOST.values()]
        assert numbers == pytest.approx(theirs, rel=AGREE)
