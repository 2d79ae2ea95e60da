"""What scikit-learn says of real predictions, and what the library does."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl
import sklearn
import sklearn.metrics as sk

import polars_mlmetrics as mlm
from tests.adapters.predictions import AGREE, Array, Data, Part
from tests.support.readings import same

Theirs = Callable[..., Any]
"""A number of scikit-learn, of truths (0 and 1) and scores, and of sample_weight=."""


Pairs = dict[str, tuple[mlm.Metric, Theirs]]


def said(score: Array) -> Array:
    return (score > 0.5).astype(int)


def of_scores(theirs: Theirs, **more: Any) -> Theirs:
    return lambda truth, score, **weight: theirs(truth, score, **more, **weight)


def of_said(theirs: Theirs, **more: Any) -> Theirs:
    return lambda truth, score, **weight: theirs(truth, said(score), **more, **weight)


def of_class(theirs: Theirs, **more: Any) -> Theirs:
    return lambda truth, score, **weight: theirs(truth.argmax(axis=1), score, **more, **weight)


def of_cells(theirs: Theirs, decide: Callable[[Array], Array] = np.asarray) -> Theirs:
    """Of all cells as one list, which knows nothing of labels."""

    def number(truth: Array, score: Array, sample_weight: Array | None = None) -> Any:
        weight = None if sample_weight is None else np.repeat(sample_weight, truth.shape[1])
        return theirs(truth.ravel(), decide(score).ravel(), sample_weight=weight)

    return number


def averaged(names: Sequence[str], averages: Sequence[str], theirs: Callable[..., Theirs], **ours: Any) -> Pairs:
    """Metrics in each of these averages; where they are 0/0 they are 0."""
    return {
        f"{name}_{average}": (
            mlm.CATALOGUE[name](average=average, undefined=0.0, **ours),
            theirs(getattr(sk, f"{name}_score"), average=average, zero_division=0),
        )
        for name in names
        for average in averages
    }


DECISIONS = ["precision", "recall", "f1", "jaccard"]


LABELS = ["micro", "macro", "weighted"]

AP = sk.average_precision_score


OF_TOPICS: Pairs = {
    **averaged(DECISIONS, [*LABELS, "samples"], of_said),
    "whole": (mlm.subset_accuracy(), of_said(sk.accuracy_score)),
    "zero_one": (1 - mlm.subset_accuracy(), of_said(sk.zero_one_loss)),
    "hamming": (mlm.hamming_loss(), of_said(sk.hamming_loss)),
    "accuracy": (mlm.accuracy(), of_cells(sk.accuracy_score, said)),
    "balanced": (mlm.balanced_accuracy(), of_cells(sk.balanced_accuracy_score, said)),
    "mcc": (mlm.mcc(), of_cells(sk.matthews_corrcoef, said)),
    "kappa": (mlm.cohen_kappa(), of_cells(sk.cohen_kappa_score, said)),
    "log_loss": (mlm.log_loss(eps="dtype"), of_cells(sk.log_loss)),
    "brier": (mlm.brier_score(), of_cells(sk.brier_score_loss)),
    **{f"auc_{of}": (mlm.roc_auc(average=of), of_scores(sk.roc_auc_score, average=of)) for of in LABELS},
    **{f"ap_{of}": (mlm.average_precision(average=of), of_scores(AP, average=of)) for of in LABELS},
    # What scikit-learn says of a sample without topics.
    "loss": (mlm.ranking_loss(undefined=0.0), of_scores(sk.label_ranking_loss)),
    "lrap": (mlm.label_ranking_average_precision(undefined=1.0), of_scores(sk.label_ranking_average_precision_score)),
    "coverage": (mlm.coverage_error(undefined=0.0), of_scores(sk.coverage_error)),
    "ndcg": (mlm.ndcg(undefined=0.0), of_scores(sk.ndcg_score)),
    "ndcg_3": (mlm.ndcg(k=3, undefined=0.0), of_scores(sk.ndcg_score, k=3)),
}


Numbers = dict[tuple[Any, ...], dict[str, float]]


def theirs_of(data: Data, pairs: Pairs, truth: Array, score: Callable[[Part], Array]) -> Numbers:
    """The numbers of scikit-learn, weighted and not, of each model and fold, and of each model."""
    groups: dict[tuple[Any, ...], list[Part]] = {(part.model, part.fold): [part] for part in data.parts}
    groups |= {(model,): parts for model, parts in data.by_model.items()}
    numbers: Numbers = {}
    for key, parts in groups.items():
        samples = np.concatenate([part.test for part in parts])
        given = truth[samples], np.concatenate([score(part) for part in parts])
        weight = data.weight[samples]
        with sklearn.config_context(assume_finite=True, skip_parameter_validation=True):
            plain = {name: theirs(*given) for name, (_, theirs) in pairs.items()}
            heavy = {f"{name}, weighted": theirs(*given, sample_weight=weight) for name, (_, theirs) in pairs.items()}
        numbers[key] = plain | heavy
    return numbers


def ours_of(table: pl.DataFrame, pairs: Pairs) -> Numbers:
    """The same numbers of this library, all of a grouping from one plan."""
    metrics = [ours.alias(name) for name, (ours, _) in pairs.items()]
    metrics += [ours.on(weight="weight").alias(f"{name}, weighted") for name, (ours, _) in pairs.items()]
    numbers: Numbers = {}
    for by in (["model", "fold"], ["model"]):
        for row in mlm.evaluate(table, metrics, by=by).to_dicts():
            numbers[tuple(row.pop(key) for key in by)] = row
    return numbers


def differences(ours: Numbers, theirs: Numbers) -> list[str]:
    """Which of our numbers are not theirs."""
    assert ours.keys() == theirs.keys()
    return [
        f"{name} of {key}: {number} is not {theirs[key][name]}"
        for key, numbers in ours.items()
        for name, number in numbers.items()
        if not same(number, float(theirs[key][name]), AGREE)
    ]
