"""Predictions of real models, out of fold, through every adapter: one table, and scikit-learn's numbers of its arrays.

Three data sets: `digits` (ten classes), `tumours` (two) and `topics` (several labels, or none). Two models each.
"""

import runpy
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest
import sklearn.metrics as sk
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from tests.adapters.predictions import (
    AGREE,
    DATA,
    EXAMPLE,
    FILES,
    WAYS,
    Data,
    digits,
    every_data,
    from_parts,
    topics,
    tumours,
)
from tests.adapters.rivals import (
    AP,
    DECISIONS,
    LABELS,
    OF_TOPICS,
    Numbers,
    Pairs,
    Theirs,
    averaged,
    differences,
    of_class,
    of_said,
    of_scores,
    ours_of,
    theirs_of,
)


def test_the_data_have_what_they_are_for() -> None:
    assert {len(data().table) for data in DATA.values()} == {200 * 10 * 2, 569 * 2, 200 * 6 * 2}
    assert (topics().truth.sum(axis=1) == 0).any()
    for data in (tumours(), topics()):
        assert data.table["score"].is_in([0.0, 1.0]).any()  # which log loss clips
        assert data.table.select("model", "fold", "score").is_duplicated().any()
    # scikit-learn does not share a place among tied classes, as this library does.
    for part in digits().parts:
        best = np.sort(part.score, axis=1)[:, ::-1]
        assert all((best[:, k] < best[:, k - 1]).all() for k in (1, 2, 3))


# -- the adapters ------------------------------------------------------------------------------------------------------


CASES = [(data.__name__, way) for way, (fitting, _) in WAYS.items() for data in fitting]
CASES += [(data, way) for way in FILES for data in DATA]


@pytest.fixture(scope="module", params=CASES, ids="-".join)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Data, pl.DataFrame]:
    data, way = DATA[request.param[0]](), request.param[1]
    return data, FILES[way](data, tmp_path_factory.mktemp(way)) if way in FILES else WAYS[way][1](data)


def test_all_ways_lead_to_one_table(case: tuple[Data, pl.DataFrame]) -> None:
    data, table = case
    assert_frame_equal(data.ordered(table), data.table, check_exact=True)


@pytest.mark.one_in(6)
def test_a_clean_table_has_no_errors(case: tuple[Data, pl.DataFrame]) -> None:
    data, table = case
    found = mlm.check(table, by=["model", "fold"], weight="weight")
    assert found.filter(severity="error").is_empty()
    sizes = dict(found.select("problem", "count").rows())
    assert sizes["rows"] == len(data.table)
    assert sizes["samples"] == len(data.answer)


# -- the numbers of scikit-learn ---------------------------------------------------------------------------------------


def of_best_class(theirs: Theirs, **more: Any) -> Theirs:
    return lambda truth, score, **weight: theirs(truth.argmax(axis=1), score.argmax(axis=1), **more, **weight)


OF_DIGITS: Pairs = {
    **averaged(DECISIONS, LABELS, of_best_class, threshold="argmax"),
    "accuracy": (mlm.recall(threshold="argmax"), of_best_class(sk.accuracy_score)),
    "whole": (mlm.subset_accuracy(threshold="argmax"), of_best_class(sk.accuracy_score)),
    "zero_one": (1 - mlm.recall(threshold="argmax"), of_best_class(sk.zero_one_loss)),
    # A wrong class is two wrong cells of ten.
    "hamming": (5 * mlm.hamming_loss(threshold="argmax"), of_best_class(sk.hamming_loss)),
    "balanced": (mlm.recall(threshold="argmax", average="macro"), of_best_class(sk.balanced_accuracy_score)),
    "log_loss": (mlm.multiclass_log_loss(eps="dtype"), of_class(sk.log_loss)),
    "brier": (mlm.multiclass_brier_score(), of_class(sk.brier_score_loss)),
    **{f"auc_{of}": (mlm.roc_auc(average=of), of_scores(sk.roc_auc_score, average=of)) for of in LABELS},
    "auc_ovr": (mlm.roc_auc(average="macro"), of_class(sk.roc_auc_score, multi_class="ovr")),
    **{f"ap_{of}": (mlm.average_precision(average=of), of_class(AP, average=of)) for of in LABELS},
    **{f"top_{k}": (mlm.top_k_accuracy(k), of_class(sk.top_k_accuracy_score, k=k)) for k in (1, 2, 3)},
    "lrap": (mlm.label_ranking_average_precision(), of_scores(sk.label_ranking_average_precision_score)),
    "ndcg_3": (mlm.ndcg(k=3), of_scores(sk.ndcg_score, k=3)),
}

OF_TUMOURS: Pairs = {
    **{name: (mlm.CATALOGUE[name](), of_said(getattr(sk, f"{name}_score"))) for name in DECISIONS},
    "specificity": (mlm.specificity(), of_said(sk.recall_score, pos_label=0)),
    "accuracy": (mlm.accuracy(), of_said(sk.accuracy_score)),
    "zero_one": (1 - mlm.accuracy(), of_said(sk.zero_one_loss)),
    "hamming": (mlm.hamming_loss(), of_said(sk.hamming_loss)),
    "balanced": (mlm.balanced_accuracy(), of_said(sk.balanced_accuracy_score)),
    "mcc": (mlm.mcc(), of_said(sk.matthews_corrcoef)),
    "kappa": (mlm.cohen_kappa(), of_said(sk.cohen_kappa_score)),
    "log_loss": (mlm.log_loss(eps="dtype"), of_scores(sk.log_loss)),
    "brier": (mlm.brier_score(), of_scores(sk.brier_score_loss)),
    "auc": (mlm.roc_auc(), of_scores(sk.roc_auc_score)),
    "auc_part": (mlm.roc_auc(max_fpr=0.1), of_scores(sk.roc_auc_score, max_fpr=0.1)),
    "ap": (mlm.average_precision(), of_scores(sk.average_precision_score)),
}


PAIRS = {"digits": OF_DIGITS, "tumours": OF_TUMOURS, "topics": OF_TOPICS}

FEW = ["f1", "f1_macro", "log_loss", "brier", "auc", "auc_macro", "lrap"]


@cache
def all_of(data: Callable[[], Data]) -> Numbers:
    return theirs_of(data(), PAIRS[data.__name__], data().truth, lambda part: part.score)


@every_data
def test_all_numbers_are_those_of_scikit_learn(data: Callable[[], Data]) -> None:
    ours = ours_of(data().table, PAIRS[data.__name__])
    assert differences(ours, all_of(data)) == []
    assert {len(numbers) for numbers in ours.values()} == {2 * len(PAIRS[data.__name__])}


@pytest.mark.one_in(34)
def test_whatever_the_way_the_numbers_are_those_of_scikit_learn(case: tuple[Data, pl.DataFrame]) -> None:
    """A few of all grains: the types of the columns differ from way to way, and their values do not."""
    data, table = case
    few = {name: pair for name, pair in PAIRS[data.name].items() if name in FEW}
    assert len(few) >= 4
    assert differences(ours_of(table, few), all_of(DATA[data.name])) == []


@every_data
def test_a_wrong_number_is_seen(data: Callable[[], Data]) -> None:
    """One row of one fold has another score."""
    first = pl.int_range(pl.len()) == 0
    table = data().table.with_columns(score=pl.when(first).then(0.501).otherwise("score"))
    found = differences(ours_of(table, {"brier": PAIRS[data.__name__]["brier"]}), all_of(data))
    (group, *_) = data().table.select("model", "fold").rows()
    of = [f"{name} of {key}" for key in (group, group[:1]) for name in ("brier", "brier, weighted")]
    assert [text.split(":")[0] for text in found] == of


@every_data
def test_scores_of_32_bits_stay_what_they_are(data: Callable[[], Data]) -> None:
    it = data()
    labels = it.labels if it.labels[1:] else None
    table = from_parts(it, lambda part: part.score.astype(np.float32), it.truth, labels=labels)
    assert table["score"].dtype == pl.Float32
    assert_frame_equal(it.ordered(table), it.table.with_columns(pl.col("score").cast(pl.Float32)), check_exact=True)


@pytest.mark.filterwarnings("ignore:The y_prob values do not sum to one:UserWarning")  # they do, to 24 bits
@every_data
def test_numbers_of_32_bits_are_those_of_the_same_scores_in_64(data: Callable[[], Data]) -> None:
    """scikit-learn is given the wider ones: it would sum up in 32 bits."""
    it = data()
    pairs = {name: pair for name, pair in PAIRS[it.name].items() if name in FEW and name != "log_loss"}
    theirs = theirs_of(it, pairs, it.truth, lambda part: part.score.astype(np.float32).astype(np.float64))
    assert differences(ours_of(it.table.with_columns(pl.col("score").cast(pl.Float32)), pairs), theirs) == []


@every_data
def test_log_loss_of_32_bits_is_clipped_by_their_epsilon(data: Callable[[], Data]) -> None:
    it, pairs = data(), {"log_loss": PAIRS[data.__name__]["log_loss"]}
    ours = ours_of(it.table.with_columns(pl.col("score").cast(pl.Float32)), pairs)
    theirs = theirs_of(it, pairs, it.truth, lambda part: part.score.astype(np.float32))
    assert ours.keys() == theirs.keys()
    for key, numbers in ours.items():
        # Their logarithms have the 24 bits of their scores.
        assert numbers == pytest.approx(theirs[key], rel=1e-6)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("part", ["tumours", "digits", "topics"])
def test_the_example_says_what_scikit_learn_says(part: str, capsys: pytest.CaptureFixture[str]) -> None:
    numbers = runpy.run_path(str(EXAMPLE))[part]()
    assert capsys.readouterr().out
    assert numbers.columns == ["metric", "ours", "theirs"]
    assert numbers.height >= 2
    assert numbers["ours"].to_list() == pytest.approx(numbers["theirs"].to_list(), rel=AGREE)
