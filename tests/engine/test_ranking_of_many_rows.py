"""Ranking many rows, ties that go far down, two units of one code, and small ids."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from polars_mlmetrics.engine import ranking, ranking_by_id, sources
from tests.engine.ranked import ENGINES, FEW, GRADED, NAN, TIED, check

# -- many rows ---------------------------------------------------------------------------------------------------------

SAMPLES, LABELS, MODELS = 99_999, 20, 3


def matrices() -> Any:
    """Truths, grades and scores of two million rows, full of ties; a score of -1 stands for one that is not known."""
    rng, shape = np.random.default_rng(17), (SAMPLES, LABELS)
    score = np.where(rng.random(shape) < 0.1, -1, rng.integers(0, 40, shape))
    return rng.random(shape) < 0.2, rng.integers(0, 4, shape), score


def of_many_rows() -> list[Any]:
    """What the package says of them, by model, their rows in no order."""
    truth, gain, score = (matrix.ravel() for matrix in matrices())
    sample, label = np.divmod(np.arange(SAMPLES * LABELS), LABELS)
    rows = pl.DataFrame({"sample": sample, "label": label, "truth": truth, "gain": gain})
    rows = rows.with_columns(model=sample % MODELS, score=pl.Series(score / 8 - 2.5).set(pl.Series(score) < 0, None))
    metrics = [mlm.label_ranking_average_precision(), mlm.ranking_loss(ties="half"), mlm.ndcg(k=5).on(truth="gain")]
    metrics += [mlm.roc_auc(), mlm.roc_auc(average="macro")]
    return mlm.evaluate(rows.sample(fraction=1, shuffle=True, seed=1), metrics, by="model").drop("model").rows()


def auc(truth: Any, score: Any) -> float:
    """By counts of each score, the one that is not known left out."""
    true, false = (np.bincount(score[of] + 1, minlength=41)[1:] for of in (truth, ~truth))
    return float((true * (false.cumsum() - 0.5 * false)).sum() / (true.sum() * false.sum()))


@cache
def of_matrices(model: int) -> list[Any]:
    """What they are, of one model: every pair of labels of a sample is looked at."""
    truth, gain, score = (matrix[model::MODELS] for matrix in matrices())
    known, true = score >= 0, truth & (score >= 0)
    pairs = [than(score[:, None, :], score[:, :, None]) for than in (np.greater_equal, np.greater)]
    rank, above, true_rank, true_above = ((pair & of[:, None, :]).sum(2) for of in (known, true) for pair in pairs)
    discounts = 1 / np.log2(np.arange(2, 7))
    upto = np.concatenate([[0], discounts.cumsum(), np.full(LABELS, discounts.sum())])
    with np.errstate(invalid="ignore"):
        precision = np.where(true, true_rank / rank, 0).sum(1) / true.sum(1)
        wrong = (true * (rank - true_rank + above - true_above)).sum(1) / 2
        gained = np.where(known, gain * (upto[rank] - upto[above]) / (rank - above), 0).sum(1)
        loss, ideal = wrong / (true.sum(1) * (known & ~true).sum(1)), np.sort(known * gain)[:, :-6:-1] @ discounts
        means = map(np.nanmean, (precision, loss, gained / ideal))
    return [*means, auc(truth, score), np.mean([auc(truth[:, n], score[:, n]) for n in range(LABELS)])]


@pytest.mark.proof
@pytest.mark.parametrize(("threads", "morsel"), [("1", ""), ("2", ""), ("8", ""), ("2", "1001")])
def test_many_rows(threads: str, morsel: str) -> None:
    settings = {"POLARS_MAX_THREADS": threads, **({"POLARS_IDEAL_MORSEL_SIZE": morsel} if morsel else {})}
    code = f"import json, {__name__} as t; print(json.dumps([t.pl.thread_pool_size(), t.of_many_rows()]))"
    command, root = [sys.executable, "-W", "error", "-c", code], Path(__file__).parents[2]
    pool, got = json.loads(subprocess.check_output(command, env={**os.environ, **settings}, cwd=root))
    assert pool == int(threads), "the setting had no effect"
    np.testing.assert_allclose(got, [of_matrices(model) for model in range(MODELS)], rtol=1e-12)


def test_a_tie_far_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a tie shares is a difference of sums from the first row of all, however many rows are before."""
    monkeypatch.setattr(ranking, "code_of", lambda columns: pl.col("sample").cast(pl.UInt64) * 2)
    near, far = 200_000, 200_000
    place = pl.int_range(-near, far)
    graded = pl.when(place >= far - 20).then(place % 5).otherwise(0)
    rows = pl.select(sample=place.clip(-near, 0) // 10 + near, score=-(place // 3), truth=graded)
    grades, discounts = rows["truth"][near:].to_list(), (1 / np.log2(np.arange(far) + 2)).tolist()
    ties = [slice(start, start + 3) for start in range(0, far, 3)]
    told = math.fsum(sum(grades[tie]) * math.fsum(discounts[tie]) / len(grades[tie]) for tie in ties)
    for engine in ENGINES:
        table = mlm.evaluate(rows.lazy(), mlm.dcg(), per="sample").collect(engine=engine)
        assert table.filter(sample=near)["dcg"].item() == pytest.approx(told, rel=1e-12)


def test_worths_of_places_along_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a k that is too great for a table."""
    monkeypatch.setattr(ranking, "TABLE", 0)
    check(TIED, GRADED)


# -- two units of one code ---------------------------------------------------------------------------------------------

OF_SAMPLES = [mlm.ranking_loss(), mlm.ndcg(k=3).on(truth="gain"), mlm.r_precision(), mlm.roc_auc(average="samples")]

OF_GROUPS, OF_LABELS = [mlm.roc_auc(), mlm.average_precision()], [mlm.gini(average="macro")]

CODED = [
    *((ranking, OF_SAMPLES, by) for by in (None, "model", ["model", "label"])),
    *((ranking, OF_GROUPS, by) for by in ("label", ["model", "label"])),
    *((ranking, OF_LABELS, by) for by in (None, "model")),
    (sources, OF_SAMPLES, ["model", "label"]),
]

FAR = 2**40
"""Samples from it on are looked up, since their ids are not small."""


def codes(other: int) -> Callable[..., pl.Expr]:
    """Of what is 3 in the last column, be it a sample from afar: those of another number."""

    def code_of(columns: Sequence[str], among: Sequence[str] = ()) -> pl.Expr:
        assert list(among or columns) == list(columns)  # no key follows from a sample
        known = [*map(pl.col, columns[:-1]), pl.col(columns[-1]).replace({3: other, FAR + 3: FAR + other})]
        return pl.sum_horizontal(column.hash(seed) for seed, column in enumerate(known))

    return code_of


@pytest.mark.parametrize(("module", "metrics", "by"), CODED)
def test_two_units_of_one_code(module: Any, metrics: Any, by: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    log = TIED.with_columns(pl.col("sample") + FAR)
    right = mlm.evaluate(log, metrics, by=by)
    for engine in ENGINES:
        monkeypatch.setattr(module, "code_of", codes(99))
        assert_frame_equal(mlm.evaluate(log.lazy(), metrics, by=by).collect(engine=engine), right, rel_tol=1e-12)
        monkeypatch.setattr(module, "code_of", codes(4))
        for some in (metrics, *([metric] for metric in metrics)):
            with pytest.raises(pl.exceptions.PolarsError, match=ranking.SAME_CODE if module is ranking else "1:1"):
                mlm.evaluate(log.lazy(), some, by=by).collect(engine=engine)


# -- small ids ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [pl.Int64, pl.UInt64, pl.UInt32, pl.Int8])
def test_ids_that_are_small_and_others(dtype: Any) -> None:
    """Among them the last that is small, the first that is not, and none."""
    ids = [0, 1, 2**32 - 1, 2**32, 2**63 - 1, -1, None]
    types = {pl.UInt64: [0, 1, 2**32 - 1, 2**32, 2**63, 2**64 - 1, None], pl.UInt32: [*range(5), 2**32 - 1, None]}
    named = types.get(dtype, ids if dtype == pl.Int64 else [0, 1, 127, -1, -128, 5, None])
    asked = TIED.with_columns(pl.Series("sample", [named[sample] for sample in TIED["sample"]], dtype=dtype))
    told = TIED.with_columns(pl.when(pl.col("sample") < 6).then("sample"))
    for by in ("model", None):
        check(asked, FEW, told=told, by=by)
        check(asked, FEW, told=told, by=by, where=pl.col("label") != 2)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("shared", [1, 2, 9])
@pytest.mark.parametrize("by", ["label", ["model", "label"]])
def test_groups_that_share_a_number(shared: int, by: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them, half, or none."""
    log = TIED.with_columns(pl.when(pl.col("label") == 5).then(None).otherwise("score").alias("score"))
    some = [mlm.ranking_loss(), mlm.ndcg(k=3).on(truth="gain"), mlm.recall_at(2), mlm.reciprocal_rank()]
    right = mlm.evaluate(log.with_columns(pl.col("sample") + FAR), some, by=by)
    monkeypatch.setattr(ranking_by_id, "number_of_group", lambda code: pl.col("label").cast(pl.UInt64) % shared)
    for engine in ENGINES:
        for asked in (some, *([metric] for metric in some)):
            table = mlm.evaluate(log.lazy(), asked, by=by).collect(engine=engine)
            assert_frame_equal(table, right.select(table.columns), rel_tol=1e-12)


@pytest.mark.parametrize("first", [0, FAR])
def test_a_broken_row_is_found_wherever_it_lies(first: int) -> None:
    """Rows of a sample lie together, and of those with nothing to count only the first is looked at."""
    log = TIED.with_columns(pl.col("sample") + first).sort("model", "sample", nulls_last=True)
    for broken in (0, 1, 3, log.height // 2, log.height - 1):
        check(
            log.with_columns(pl.when(pl.int_range(pl.len()) == broken).then(NAN).otherwise("score").alias("score")), FEW
        )


def test_only_a_source_that_is_at_hand_is_read_once_more() -> None:
    """Others would have to be held, or worked out again."""
    few = [mlm.ranking_loss(), mlm.recall_at(2)]
    for rows, is_at_hand in ((TIED.lazy(), True), (TIED.lazy().filter(pl.col("label") > 0), False)):
        assert ("CROSS JOIN" in mlm.evaluate(rows, few, by="model").explain()) == is_at_hand


def test_a_row_is_ranked_in_one_way() -> None:
    """Ids from 0 to below 2^32 have room in a code, all others are looked up, and none is both."""
    ids = [-(2**63), -1, 0, 1, 2**32 - 1, 2**32, 2**32 + 1, 2**63 - 1]
    rows = pl.LazyFrame({"sample": ids, "model": ["a", "b"] * 4})
    for groups in (None, rows.select("model").unique()):
        split = ranking_by_id.split_by_id(rows, groups, "sample")
        small = rows.filter(split.code.is_not_null()).collect()["sample"].to_list()
        others = split.others.collect()["sample"].to_list()
        assert (small, others) == ([0, 1, 2**32 - 1], [-(2**63), -1, 2**32, 2**32 + 1, 2**63 - 1])


ASKED = {"with a truth": [mlm.ranking_loss()], "with grades": [mlm.dcg()], "both": [mlm.ranking_loss(), mlm.dcg()]}


@pytest.mark.parametrize("metrics", ASKED.values(), ids=ASKED)
def test_small_ids_are_not_looked_up_whatever_is_ranked(metrics: list[mlm.Metric]) -> None:
    """Of two orders one counts the rows: then no table of all samples is needed."""
    log = TIED.drop_nulls().with_columns(pl.col("sample").cast(pl.Int64))
    assert ranking_by_id.NUMBER in mlm.evaluate(log.lazy(), metrics, by="model").explain(optimized=False)
