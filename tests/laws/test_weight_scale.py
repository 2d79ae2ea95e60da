"""Weights in any unit: what is a mean, a share or an order knows only their ratios, from 1e-250 to 1e250."""

import math
from functools import cache

import polars as pl
import pytest
import sklearn.metrics as sk

import polars_mlmetrics as mlm
from tests.laws.cases import AVERAGES, NO_AVERAGE, Case, of_average, plain_cases
from tests.support.at_once import each, each_by
from tests.support.folded_log import has_no_state
from tests.support.frames import PLAIN, own_weights, plain
from tests.support.readings import both, same

FACTORS = [1e-250, 1e-170, 1e-82, 1e-30, 1e30, 1e80, 1e160, 1e250]
EXACT = 1e-12  # the order of a sum


@cache
def in_many_units() -> pl.DataFrame:
    """The plain worlds, each row with a weight of its own, in every unit of weight."""
    rows = pl.concat(own_weights(plain(kind)).with_columns(world=pl.lit(kind)) for kind in PLAIN)
    return pl.concat(rows.with_columns(pl.col("weight") * factor, factor=pl.lit(factor)) for factor in (1.0, *FACTORS))


def differing(answers: pl.DataFrame, cases: list[Case]) -> list[str]:
    rows = {(row["world"], row["factor"]): row for row in answers.iter_rows(named=True)}
    return [
        f"{case} in {world} x {factor}: {rows[world, factor][str(case)]!r}, expected {rows[world, 1.0][str(case)]!r}"
        for world in PLAIN
        for factor in FACTORS
        for case in cases
        if not same(rows[world, factor][str(case)], rows[world, 1.0][str(case)])
    ]


def shares(cases: list[Case]) -> tuple[list[Case], list[mlm.Metric]]:
    """The cases that are no sums, nor know how many rows there are, and their metrics."""
    found = [case for case in cases if case.degree == 0 and not case.knows_copies]
    assert len(found) > 20
    return found, [case.metric(weighted=True) for case in found]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("average", [*AVERAGES, NO_AVERAGE])
def test_by_evaluate(average: str) -> None:
    cases, metrics = shares(plain_cases(average))
    assert differing(mlm.evaluate(in_many_units(), metrics, by=["world", "factor"]), cases) == []


@pytest.mark.proof
def test_by_evaluate_with_other_parameters() -> None:
    cases, metrics = shares([case for case in of_average("micro") if not case.is_plain and not case.names_labels])
    assert differing(mlm.evaluate(in_many_units(), metrics, by=["world", "factor"]), cases) == []


@pytest.mark.one_in(3)
@pytest.mark.parametrize("average", ["micro", "macro", NO_AVERAGE])
def test_by_expression(average: str) -> None:
    cases, metrics = shares(plain_cases(average))
    assert differing(in_many_units().group_by("world", "factor").agg(metrics), cases) == []


def test_by_states() -> None:
    cases, metrics = shares([case for case in plain_cases("micro") if not has_no_state(case)])
    state = mlm.state(in_many_units(), metrics, by=["world", "factor", pl.col("label").alias("part")], buckets=2)
    assert differing(mlm.finish(state, metrics, by=["world", "factor"]), cases) == []


TRUTH, SCORE, WEIGHT = [1, 1, 0, 0, 0, 1], [0.9, 0.8, 0.3, 0.2, 0.7, 0.1], [1.0, 2.0, 3.0, 1.0, 2.0, 1.0]


def test_as_scikit_learn_has_it_of_the_same_ratios() -> None:
    log = pl.DataFrame({"score": SCORE, "truth": TRUTH, "weight": WEIGHT})
    scaled = pl.concat(log.with_columns(pl.col("weight") * factor, factor=factor) for factor in FACTORS)
    predicted = [score > 0.5 for score in SCORE]
    expected = {
        mlm.mcc(): sk.matthews_corrcoef(TRUTH, predicted, sample_weight=WEIGHT),
        mlm.cohen_kappa(): sk.cohen_kappa_score(TRUTH, predicted, sample_weight=WEIGHT),
        mlm.roc_auc(): sk.roc_auc_score(TRUTH, SCORE, sample_weight=WEIGHT),
        mlm.roc_auc(max_fpr=0.5): sk.roc_auc_score(TRUTH, SCORE, sample_weight=WEIGHT, max_fpr=0.5),
        mlm.average_precision(): sk.average_precision_score(TRUTH, SCORE, sample_weight=WEIGHT),
        mlm.r2(): sk.r2_score(TRUTH, SCORE, sample_weight=WEIGHT),
    }
    found = each_by(scaled, expected, "factor", weight="weight")
    assert found == {factor: pytest.approx(list(expected.values()), rel=EXACT) for factor in FACTORS}


@pytest.mark.parametrize(
    ("score", "mcc", "auc"), [([1, 1, 0, 0], 1, 1), ([0, 0, 1, 1], -1, 0), ([1, 0, 0, 0], math.sqrt(0.5), 0.75)]
)
def test_weights_far_apart(score: list[int], mcc: float, auc: float) -> None:
    """One class, and one prediction, weigh next to nothing: all right is 1 still, all wrong -1, and half is half."""
    log, small = pl.DataFrame({"score": score, "truth": [1, 1, 0, 0]}), (1e-30, 1e-100, 1e-200, 1e-290)
    far = pl.concat(log.with_columns(weight=pl.Series([w, w, 1.0, 1.0]), small=w) for w in small)
    found = each_by(far, [mlm.mcc(), mlm.roc_auc(), mlm.gini()], "small", weight="weight")
    assert found == dict.fromkeys(small, pytest.approx([mcc, auc, 2 * auc - 1], rel=EXACT))


@pytest.mark.one_in(8)
@pytest.mark.parametrize("average", [*AVERAGES, NO_AVERAGE])
def test_weights_beyond_have_no_value_and_a_reason(average: str) -> None:
    """Their sums are infinite, and a share of infinity would be 0, or undefined: nothing but counts has a number."""
    cases = [case for case in plain_cases(average) if not case.name.startswith("n_")]
    metrics = [case.metric(weighted=True) for case in cases]
    rows = own_weights(plain("multi")).with_columns(pl.col("weight") * 1e307)
    assert set(mlm.evaluate(rows, metrics, tidy=True)["reason"]) == {"broken rows: a NaN, or a value out of range"}
    answers = rows.select(metrics).row(0, named=True)
    assert [name for name, value in answers.items() if value is None or not math.isnan(value)] == []


def test_counts_are_exact() -> None:
    """Nothing is rounded where there are no weights, nor where weights are counts."""
    right = {"score": [1, 1, 1, 0, 0, 0, 0], "truth": [1, 1, 1, 0, 0, 0, 0], "weight": [3] * 7}
    wrong = right | {"score": [0, 0, 0, 1, 1, 1, 1]}
    metrics = [mlm.mcc(), mlm.gini(), mlm.cohen_kappa(), mlm.roc_auc(), mlm.roc_auc(bins=8), mlm.f1()]
    for weight in (None, "weight"):
        assert each(pl.DataFrame(right), metrics, weight=weight) == [1.0] * 6
        assert each(pl.DataFrame(wrong), metrics[:2], weight=weight) == [-1.0] * 2


# --- a base rate next to 0 or 1 ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("rare", [1e-3, 1e-9, 1e-15, 1e-30, 1e-200])
@pytest.mark.parametrize("rare_truth", [0, 1])
def test_entropy_of_what_is_rare(rare_truth: int, rare: float) -> None:
    """By hand: two probabilities of 0.5 cost ln 2, and a base rate π costs about π - π·ln π."""
    log = pl.DataFrame({"score": [0.5, 0.5], "truth": [rare_truth, 1 - rare_truth], "weight": [rare, 1.0]})
    pi = rare / (1 + rare)
    expected = math.log(2) / (-pi * math.log(pi) - (1 - pi) * math.log1p(-pi))
    assert both(log, mlm.normalized_entropy(), weight="weight") == pytest.approx(expected, rel=EXACT)


@pytest.mark.parametrize("rare", [1e-3, 1e-9, 1e-14])
def test_whoever_knows_the_base_rate_alone_has_an_entropy_of_1(rare: float) -> None:
    log = pl.DataFrame({"truth": [1, 0], "weight": [rare, 1.0]}).with_columns(score=pl.lit(rare / (1 + rare)))
    for one in (log, log.with_columns(pl.col("truth") == 1)):
        assert both(one, mlm.normalized_entropy(), weight="weight") == pytest.approx(1, rel=EXACT)
