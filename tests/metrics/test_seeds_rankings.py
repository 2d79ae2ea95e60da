"""The rankings of the systems the library grew from, to the last printed digit, by both readings."""

import math
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.laws.oracle import Value
from tests.metrics.printed import exact, printed
from tests.support.at_once import each
from tests.support.readings import both, long

# --- 1. LTN: rankings of four film genres, truth Action and Comedy ---------------------------------------------------

PREDICTIONS = [
    [0.9238, 0.1234, 0.5801, 0.0025],
    [0.3355, 0.2486, 0.8824, 0.1870],
    [0.7658, 0.8203, 0.5484, 0.1185],
    [0.7658, 0.5484, 0.8203, 0.1185],
]

LTN_RANKING_LOSS: dict[str, Any] = {"pairs": "all", "ties": "right", "undefined": 0.0}


def of_each_label(frame: pl.DataFrame) -> list[Value]:
    """By evaluate alone: a group of one label has no other labels for a true one to be above."""
    return mlm.evaluate(frame, mlm.labelwise_precision(), per="label").sort("label")["labelwise_precision"].to_list()


LTN = {
    mlm.one_error(): [0, 1, 0, 1],
    mlm.coverage_error(): [3, 3, 2, 3],
    mlm.ranking_loss(**LTN_RANKING_LOSS): [1 / 6, 1 / 3, 0, 1 / 3],
    mlm.ranking_loss(ties="right"): [1 / 4, 1 / 2, 0, 1 / 2],
    mlm.exact_match_prefix(): [0, 0, 1, 0],
    mlm.labelwise_precision(average="min"): [0, 0, 1, 0],
    mlm.labelwise_precision(): [0.5, 0, 1, 0],
}
LTN_PRINTED = {
    mlm.label_ranking_average_precision(): ["0.8333", "0.5833", "1.0000", "0.5833"],
    mlm.multilabel_cross_entropy(base=2): ["4.388427", "6.970430", "1.999587", "3.909965"],
    mlm.multilabel_cross_entropy(): ["3.041826", "4.831534", "1.386008", "2.710181"],
}


@pytest.mark.parametrize("place", range(4))
def test_ltn(place: int) -> None:
    frame = long([[1, 1, 0, 0]], [PREDICTIONS[place]])
    assert each(frame, LTN) == exact([numbers[place] for numbers in LTN.values()])
    for value, digits in zip(each(frame, LTN_PRINTED), LTN_PRINTED.values(), strict=True):
        assert printed(value, digits[place])
    action, comedy = [(1, 0), (0, 0), (1, 1), (0, 0)][place]
    assert of_each_label(frame) == [action, comedy, None, None]


def test_ltn_ties() -> None:
    numbers = {
        mlm.one_error(): 0.5,
        mlm.coverage_error(): 3,
        mlm.ranking_loss(ties="right"): 1 / 4,
        mlm.ranking_loss(**LTN_RANKING_LOSS): 1 / 6,
        mlm.ranking_loss(): 1 / 2,
        mlm.label_ranking_average_precision(): 7 / 12,
        mlm.exact_match_prefix(): 0,
        mlm.labelwise_precision(): 0,
    }
    assert each(long([[1, 0, 1, 0]], [[0.5, 0.5, 0.2, 0.1]]), numbers) == exact(list(numbers.values()))


AUTHORS_TEST = long(
    [[1, 0, 0, 0], [0, 1, 0, 0], [1, 0, 1, 0]],
    [[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 1.0, 0.0]],
)


def test_ltn_authors_test() -> None:
    numbers = {
        mlm.one_error(): 0.5,
        mlm.coverage_error(): 3,
        mlm.ranking_loss(ties="right"): 7 / 36,
        mlm.label_ranking_average_precision(): 7 / 12,
        mlm.exact_match_prefix(): 1 / 3,
        mlm.multilabel_cross_entropy(base=2, log_of_zero=-1000.0): 4000 / 3,
        mlm.multilabel_cross_entropy(base=2): math.inf,
        mlm.labelwise_precision(average="min"): 0,
        mlm.labelwise_precision(average="macro"): 1 / 6,
    }
    assert each(AUTHORS_TEST, numbers) == exact(list(numbers.values()))
    assert of_each_label(AUTHORS_TEST) == [0.5, 0, 0, None]


@pytest.mark.parametrize("truth", [[0, 0], [1, 1]])
def test_ltn_nothing_to_rank(truth: list[int]) -> None:
    """The text counts such a sample as 0, the author's code skips it, as we do by default."""
    frame = long([truth, [1, 0]], [[0.5, 0.4], [0.3, 0.6]])
    metrics = [mlm.ranking_loss(**LTN_RANKING_LOSS), mlm.ranking_loss(ties="right"), mlm.exact_match_prefix()]
    assert each(frame, metrics) == exact([0.5, 1, 0.5])


# --- 6. scikit-learn: samples with ties, without positives, without negatives -----------------------------------------

SKLEARN_RANKINGS = {
    "coverage": mlm.coverage_error(undefined=0.0),
    "loss": mlm.ranking_loss(undefined=0.0),
    "lrap": mlm.label_ranking_average_precision(undefined=1.0),
    "ndcg": mlm.ndcg(undefined=0.0),
    "ndcg at 2": mlm.ndcg(k=2, undefined=0.0),
    "ndcg in order": mlm.ndcg(ties="ignore", undefined=0.0),
    "dcg": mlm.dcg(),
}


@pytest.mark.parametrize(
    ("truth", "score", "numbers"),
    [
        (
            [1, 0, 1, 0],
            [0.5, 0.5, 0.2, 0.1],
            {"coverage": "3", "loss": "0.5", "lrap": "0.583333", "ndcg": "0.806574", "ndcg at 2": "0.5",
             "ndcg in order": "0.919721", "dcg": "1.315465"},
        ),
        (
            [0, 1, 0, 0],
            [0.3, 0.3, 0.3, 0.1],
            {"coverage": "3", "loss": "0.666667", "lrap": "0.333333", "ndcg": "0.710310", "ndcg at 2": "0.543643"},
        ),
        ([0, 0, 0, 0], [0.4, 0.3, 0.2, 0.1], {"coverage": "0", "loss": "0", "lrap": "1", "ndcg": "0"}),
        ([1, 1, 1, 1], [0.4, 0.3, 0.2, 0.1], {"coverage": "4", "loss": "0", "lrap": "1", "ndcg": "1"}),
        ([1, 0, 0], [0.5, 0.5, 0.5], {"loss": "1"}),
    ],
)  # fmt: skip
def test_sklearn_rankings(truth: list[int], score: list[float], numbers: dict[str, str]) -> None:
    values = each(long([truth], [score]), [SKLEARN_RANKINGS[name] for name in numbers])
    for value, (name, digits) in zip(values, numbers.items(), strict=True):
        assert printed(value, digits), name


def test_sklearn_top_k_at_a_tied_border() -> None:
    """Theirs takes the later class: 1 for class 1, 0 for class 0. Here each has half of the place."""
    for true in ([1, 0, 0], [0, 1, 0]):
        assert both(long([true], [[0.4, 0.4, 0.2]]), mlm.top_k_accuracy(1)) == 0.5


# --- 7. ranx: queries and documents, in the order of the scores -------------------------------------------------------


def test_ranx() -> None:
    numbers = {
        mlm.precision_at(2): 1 / 2,
        mlm.precision_at(10): 3 / 10,
        mlm.recall_at(2): 1 / 3,
        mlm.f1_at(2): 2 * (1 / 2) * (1 / 3) / (1 / 2 + 1 / 3),
        mlm.r_precision(): 2 / 3,
        mlm.average_precision_at(k=3, denominator="positives"): (1 + 2 / 3) / 3,
        mlm.average_precision_at(denominator="positives"): (1 + 2 / 3 + 3 / 5) / 3,
        mlm.hit_at(1): 1,
    }
    query = long([[1, 0, 1, 0, 1]], [[0.9, 0.8, 0.7, 0.6, 0.5]])
    assert each(query, numbers) == exact(list(numbers.values()))
    # As an expression it takes a second, and `laws/test_ties.py` has that.
    assert mlm.evaluate(query, mlm.reciprocal_rank()).item() == 1


def test_trec_eval() -> None:
    """Two queries: a judged document was not returned, and of the second more were relevant than not."""
    pool = long(
        [[1, 0, 0, 1, 0, 1, 0], [0, 1, 1, 1, 0, 1, 1]],
        [[0.9, 0.8, 0.7, 0.6, 0.5, 0.4, -math.inf], [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, -math.inf]],
    )
    assert mlm.evaluate(pool, mlm.bpref(), per="sample").sort("sample")["bpref"].to_list() == [4 / 9, 0.3]
    assert each(pool, [mlm.bpref(), mlm.rbp(p=0.5)]) == exact([(4 / 9 + 0.3) / 2, (0.578125 + 0.453125) / 2])


def test_ranx_graded() -> None:
    def discounted(gains: list[float]) -> float:
        return sum(gain / math.log2(place + 2) for place, gain in enumerate(gains))

    frame = long([[3, 0, 2, 0, 1]], [[0.9, 0.8, 0.7, 0.6, 0.5]])
    first_two = discounted([3, 0]) / discounted([3, 2])
    exponential = discounted([7, 0, 3, 0, 1]) / discounted([7, 3, 1])
    found = each(frame, [mlm.dcg(), mlm.ndcg(k=2), mlm.ndcg(gain="exponential")])
    assert found == exact([discounted([3, 0, 2, 0, 1]), first_two, exponential])
