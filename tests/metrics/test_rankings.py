"""The area under ROC of the k best labels, and the geometric mean of average precision, held to scikit-learn."""

import math

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

import polars_mlmetrics as mlm


def lists_of(seed: int, lists: int = 40, size: int = 8) -> pl.DataFrame:
    """Lists without ties."""
    random = np.random.default_rng(seed)
    score = np.concatenate([random.permutation(size) / size for _ in range(lists)])
    truth = random.random(lists * size) < 0.4
    sample, label = np.arange(lists).repeat(size), [*range(size)] * lists
    return pl.DataFrame({"sample": sample, "label": label, "score": score, "truth": truth})


@pytest.mark.parametrize("k", [2, 5, 8, 30])
def test_the_area_of_the_best_is_that_of_scikit_learn(k: int) -> None:
    log = lists_of(3)
    found = mlm.evaluate(log, mlm.roc_auc_at(k), per="sample").sort("sample")
    for (sample,), rows in log.group_by("sample"):
        best = rows.sort("score", descending=True).head(k)
        value = found.filter(sample=sample)[f"roc_auc_at_{k}"].item()
        if best["truth"].n_unique() < 2:
            assert value is None
        else:
            assert value == pytest.approx(roc_auc_score(best["truth"], best["score"]), rel=1e-12)


def test_of_all_labels_it_is_the_area_of_samples() -> None:
    log = lists_of(4).with_columns((pl.col("score") * 3).round())  # and ties
    whole = mlm.roc_auc(average="samples").alias("whole")
    of_best, of_all = mlm.evaluate(log, mlm.roc_auc_at(8), whole).row(0)
    assert of_best == pytest.approx(of_all, rel=1e-12)


def test_a_tie_across_the_border_is_in_by_its_share() -> None:
    """One true label above, then a true and a false one for a single place: half of each, and half a pair is level."""
    log = pl.DataFrame({"sample": 1, "label": [*"abcd"], "score": [0.9, 0.5, 0.5, 0.1], "truth": [1, 1, 0, 0]})
    # Pairs: the first with half of the false one, in order; half of the second with it, level.
    assert mlm.evaluate(log, mlm.roc_auc_at(2)).item() == pytest.approx((0.5 + 0.25 * 0.5) / (0.5 + 0.25))


def test_the_geometric_mean_is_that_of_scikit_learn() -> None:
    log = lists_of(5)
    by_sample = [rows for _, rows in log.group_by("sample") if rows["truth"].any()]
    precisions = [average_precision_score(rows["truth"], rows["score"]) for rows in by_sample]
    found = mlm.evaluate(log, mlm.log_average_precision_at().exp().alias("gmap"), ci=0.9).row(0)
    assert found[0] == pytest.approx(math.exp(np.mean(np.log(precisions))), rel=1e-12)
    assert found[1] < found[0] < found[2]


def test_a_list_that_finds_nothing_counts_as_the_floor() -> None:
    log = pl.DataFrame({"sample": [1, 1, 2], "label": [*"aba"], "score": [0.9, -math.inf, 0.5], "truth": [0, 1, 1]})
    assert mlm.evaluate(log, mlm.log_average_precision_at()).item() == pytest.approx(math.log(1e-5) / 2)
    assert mlm.evaluate(log, mlm.log_average_precision_at(floor=0.25)).item() == pytest.approx(math.log(0.25) / 2)
