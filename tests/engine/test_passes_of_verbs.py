"""Verbs beside `evaluate` in passes: they give what they give of all rows at once."""

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any

import polars as pl
import pytest
from polars.exceptions import PolarsError
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm

# Sums of parts differ in their last digits, and a standard error, a difference of such sums, in some more.
CLOSE: dict[str, float] = {"rel_tol": 1e-9, "abs_tol": 1e-12}
OF_DECISIONS = [mlm.f1(), mlm.recall(average="macro"), mlm.cost(1, 2)]
METRICS = [mlm.f1(), mlm.ndcg(k=2), mlm.log_loss(average="samples"), mlm.roc_auc(), mlm.recall(average="macro")]
QUIET: dict[str, Any] = {"progress": False}


def log(seed: int) -> pl.DataFrame:
    """Three models, of which each lacks samples; some samples have rows in two countries, some rows no sample."""
    draw, rows = random.Random(seed), []
    for sample in range(120):
        country, user = draw.choice(["DE", "FR", None]), draw.randrange(40)
        for model in draw.sample(["old", "new", "other"], draw.choice([1, 2, 3, 3])):
            for label in "abc":
                place = draw.choice(["DE", "FR"]) if draw.random() < 0.1 else country
                score = None if draw.random() < 0.1 else draw.choice([0.1, 0.4, 0.4, 0.8])
                named = None if draw.random() < 0.02 else f"s{sample}"
                rows.append((model, named, user, place, label, score, draw.randrange(2), draw.choice([0.0, 1.0, 2.5])))
    names = ["model", "sample", "user", "country", "label", "score", "truth", "weight"]
    return pl.DataFrame(rows, schema=names, orient="row")


COMPARED: dict[str, dict[str, Any]] = {
    "whole": {},
    "slices": {"slices": ["country", ["country", "label"]]},
    "groups": {"by": "country"},
    "clusters": {"slices": ["country"], "cluster": "user"},
    "weights": {"slices": ["country"], "weight": "weight"},
    "every look": {"anytime": 1_000},
    "all rows": {"pairs": False, "slices": ["country"]},
    "between countries": {"between": pl.col("country").fill_null("XX").alias("place"), "pairs": False, "by": "model"},
}
ONE_CLASS = pl.col("label") == pl.lit(["a", "b", "c"]).list.get(pl.col("user") % 3)
"""A truth of classes: one label of each sample."""

OF_MONTHS: dict[str, Any] = {"between": "model", "baseline": "old"}

OTHERS: dict[str, Callable[..., pl.DataFrame]] = {
    "gap": lambda rows, **how: mlm.gap(rows, METRICS, over="country", by="model", cluster="user", **how),
    "gap with weights": lambda rows, **how: mlm.gap(rows, mlm.ndcg(), over="label", weight="weight", **how),
    "worst samples": lambda rows, **how: mlm.worst(rows, mlm.ndcg(), 3, "model", ["country"], keep="user", **how),
    "worst labels": lambda rows, **how: mlm.worst(rows, mlm.f1(average="macro"), by="model", ci=0.9, **how),
    "flips": lambda rows, **how: mlm.flips(
        rows, mlm.log_loss(average="samples"), baseline="old", k=5, by="country", slices=["label"], **how
    ),
    "flips of a ranking": lambda rows, **how: mlm.flips(broken(rows), mlm.ndcg(k=2), baseline="new", k=5, **how),
    "rank": lambda rows, **how: mlm.rank(rows, mlm.ndcg(k=2), slices=["country"], cluster="user", **how),
    "rank of labels": lambda rows, **how: mlm.rank(rows, mlm.f1(average="macro"), by="label", weight="weight", **how),
    "rank of models with the same samples": lambda rows, **how: mlm.rank(
        rows.filter(pl.col("model").n_unique().over("sample") == 3), mlm.log_loss(average="samples"), **how
    ),
    "classification_report": lambda rows, **how: mlm.classification_report(
        broken(rows), by="model", ci=0.9, cluster="user", **how
    ),
    "classification_report of classes": lambda rows, **how: mlm.classification_report(
        rows, threshold="argmax", by=["model", "country"], weight="weight", **how
    ),
    "confusion of a threshold": lambda rows, **how: mlm.confusion(
        rows, by="model", threshold=0.4, ci=0.9, cluster="user", **how
    ),
    "confusion of classes": lambda rows, **how: mlm.confusion(
        rows, by=["model", pl.col("country").fill_null("XX").alias("place")], truth=ONE_CLASS, **how
    ),
    "confusion of classes with weights": lambda rows, **how: mlm.confusion(
        broken(rows), by="model", truth=ONE_CLASS, ci=0.9, cluster="user", weight="weight", **how
    ),
    "confusion of predicted classes": lambda rows, **how: mlm.confusion(
        rows.drop("label"), by="model", score="country", truth="country", ci=0.9, **how
    ),
    "decompose": lambda rows, **how: mlm.decompose(rows, mlm.recall(), "country", **OF_MONTHS, **how),
    "decompose of a ranking": lambda rows, **how: mlm.decompose(
        rows.filter(pl.col("country").n_unique().over("model", "sample") == 1),
        mlm.ndcg(k=2),
        "country",
        by="user",
        **OF_MONTHS,
        **how,
    ),
    "decompose of labels": lambda rows, **how: mlm.decompose(
        rows, mlm.f1(average="macro"), "country", cluster="user", weight="weight", **OF_MONTHS, **how
    ),
    "roc": lambda rows, **how: mlm.curve(rows, "roc", by="model", slices=["country"], bins=8, weight="weight", **how),
    "threshold": lambda rows, **how: mlm.curve(
        broken(rows), "threshold", OF_DECISIONS, by="model", slices=["country"], bins=8, ci=0.9, cluster="user", **how
    ),
    "threshold with weights": lambda rows, **how: mlm.curve(
        rows, "threshold", OF_DECISIONS, bins=16, points=5, weight="weight", **how
    ),
    "calibration": lambda rows, **how: mlm.curve(rows, "calibration", by="model", bins=4, ci=0.9, **how),
    "scores": lambda rows, **how: mlm.curve(rows, "scores", by="model", bins=4, **how),
    "best_threshold": lambda rows, **how: mlm.best_threshold(broken(rows), mlm.f1(), by="model", bins=8, **how),
    "best_threshold with folds": lambda rows, **how: mlm.best_threshold(
        rows, mlm.f1(), per="label", folds=3, bins=16, **how
    ),
    "best_threshold of an average": lambda rows, **how: mlm.best_threshold(
        rows, mlm.f1(average="macro"), by="model", folds=3, bins=16, weight="weight", **how
    ),
    "best_threshold of a point": lambda rows, **how: mlm.best_threshold(
        rows, mlm.recall_at_precision(0.5, bins=16), by="country", where=pl.col("user") > 3, **how
    ),
    "drift": lambda rows, **how: mlm.drift(rows, slices=["country"], cluster="user", **OF_MONTHS, **how),
    "drift of many scores": lambda rows, **how: mlm.drift(
        spread(rows), between="country", baseline="DE", by="model", weight="weight", bins=5, **how
    ),
    "drift with infinite scores": lambda rows, **how: mlm.drift(
        spread(rows, [0.0, -0.0, float("inf"), float("-inf")]), **OF_MONTHS, **how
    ),
    "drift of broken truths": lambda rows, **how: mlm.drift(
        rows, truth=pl.when(pl.col("user") == 3).then(float("nan")).otherwise("truth"), **OF_MONTHS, **how
    ),
    "profile": lambda rows, **how: mlm.profile(rows, by=["model", "country"], **how),
    "profile without labels": lambda rows, **how: mlm.profile(rows.drop("label"), **how),
    "profile of samples of two columns": lambda rows, **how: mlm.profile(rows, sample=["user", "sample"], **how),
    "dedupe": lambda rows, **how: mlm.dedupe(copied(rows), "first", by="model", **how),
    "dedupe by an order": lambda rows, **how: mlm.dedupe(
        copied(rows), "last", by=pl.col("model").str.head(1).alias("first"), order=["weight", "user"], **how
    ),
    "dedupe of samples": lambda rows, **how: mlm.dedupe(rows.drop("label"), "last", **how),
    "dedupe of no copies": lambda rows, **how: mlm.dedupe(rows, by="model", **how),
    "drift of classes": lambda rows, **how: mlm.drift(rows, score="label", **OF_MONTHS, **how),
}


def broken(rows: Any) -> Any:
    """The rows, of which those of one user have no number for a score."""
    return rows.with_columns(score=pl.when(pl.col("user") == 3).then(float("nan")).otherwise("score"))


def copied(rows: Any) -> Any:
    """The rows, and after them some once more, with other weights."""
    return pl.concat([rows, rows.filter(pl.col("user") % 3 > 0).with_columns(pl.col("weight").reverse())])


def spread(rows: Any, some: Sequence[float] = ()) -> Any:
    """The rows with scores that are nearly all different, beside some that many rows have."""
    given = pl.lit(pl.Series(some or [0.5]))
    code = pl.concat_str("model", "label", "user", "sample", ignore_nulls=True).hash(7)
    own = (code % 1009).cast(pl.Float64).sqrt() + pl.col("score")
    return rows.with_columns(score=pl.when(code % 3 == 0).then(given.get(code % max(len(some), 1))).otherwise(own))


@pytest.mark.one_in(5)  # in a row, each has another way and other passes
@pytest.mark.parametrize("how", COMPARED.values(), ids=COMPARED)
@pytest.mark.parametrize("passes", [1, 3, "auto"])
@pytest.mark.parametrize("seed", range(2))
def test_compare(how: dict[str, Any], passes: Any, seed: int) -> None:
    named = {"baseline": "DE" if "between" in how else "old", **how}
    metrics = METRICS[seed::2]
    whole = mlm.compare(log(seed), metrics, **named)
    parts = mlm.compare(log(seed).lazy(), metrics, **named, passes=passes, **QUIET).collect()
    assert_frame_equal(parts, whole, **CLOSE)


@pytest.mark.one_in(3)  # likewise
@pytest.mark.parametrize("ask", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("passes", [3, "auto"])
@pytest.mark.parametrize("seed", range(2))
def test_other_verbs(ask: Callable[..., pl.DataFrame], passes: Any, seed: int) -> None:
    assert_frame_equal(ask(log(seed), passes=passes, **QUIET), ask(log(seed)), **CLOSE)


def test_files_that_share_no_sample(folder: Any) -> None:
    parts = log(3).drop_nulls("sample").partition_by("sample")
    pl.concat(parts[:50]).write_parquet("one.parquet")
    pl.concat(parts[50:]).write_parquet("two.parquet")
    scan = pl.scan_parquet("*.parquet")
    named: dict[str, Any] = {"baseline": "old", "slices": ["country"]}
    found = mlm.compare(scan, METRICS[::2], **named, passes="files", **QUIET)
    assert_frame_equal(found.collect(), mlm.compare(scan, METRICS[::2], **named).collect(), rel_tol=1e-9)


REFUSED: dict[str, Callable[[pl.LazyFrame], Any]] = {
    "curve: passes= needs bins=, such as bins=4096: without it, all rows are sorted at once.": lambda rows: mlm.curve(
        rows, "threshold", mlm.f1(), passes=2
    ),
    "best_threshold: passes= needs bins=, such as bins=4096: without it, all rows are sorted at once.": (
        lambda rows: mlm.best_threshold(rows, mlm.f1(), passes="auto")
    ),
    "best_threshold: passes= needs bins=, such as recall_at_precision(..., bins=4096): without it, all rows are sorted "
    "at once.": lambda rows: mlm.best_threshold(rows, mlm.recall_at_precision(0.5), passes=2),
    "best_threshold: recall_at_precision has bins of its own: pass recall_at_precision(..., bins=8).": (
        lambda rows: mlm.best_threshold(rows, mlm.recall_at_precision(0.5), bins=8)
    ),
    "drift: parts are ranges of scores, and 'files' are none: pass passes='auto'.": lambda rows: mlm.drift(
        rows, **OF_MONTHS, passes="files"
    ),
    "dedupe: passes='files' works only with keep='error': pass passes='auto'.": lambda rows: mlm.dedupe(
        rows, "last", by="model", passes="files"
    ),
    "memory= works only with passes='auto', and passes is 3.": lambda rows: mlm.rank(
        rows, mlm.f1(), passes=3, memory="1 GB"
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_has_no_passes_is_refused_when_it_is_called(message: str) -> None:
    with pytest.raises(mlm.ParameterError) as error:
        REFUSED[message](log(0).lazy())
    assert str(error.value) == message
    *_, caller, _ = error.traceback
    assert caller.path.samefile(__file__)


def test_rows_without_a_sample_are_split_by_none() -> None:
    rows = log(0).drop("sample")
    for metric in (mlm.f1(), mlm.f1(average="macro")):  # of cells
        plain = mlm.best_threshold(rows.lazy(), metric, bins=8, passes=3, **QUIET).collect()
        assert_frame_equal(plain, mlm.best_threshold(rows, metric, bins=8))
    with pytest.raises(
        mlm.ColumnError, match="passes split the rows by sample, and there is no sample column 'sample'"
    ):
        mlm.best_threshold(rows, mlm.cost(fp=pl.col("score"), fn=1), bins=8, passes=3, **QUIET)


def test_copies_that_several_passes_have() -> None:
    rows, messages = copied(log(1)), []
    for how in ({}, {"passes": 3, **QUIET}, {"passes": "auto", **QUIET}):
        with pytest.raises(mlm.TableError, match="rows are copies by model and sample and label") as error:
            mlm.dedupe(rows.lazy(), by="model", **how)
        messages.append(str(error.value))
    assert len({*messages}) == 1


def test_a_row_is_left_out_of_a_lazy_log_in_passes() -> None:
    whole = mlm.dedupe(copied(log(1)), "last", by="model")
    parts = mlm.dedupe(copied(log(1)).lazy(), "last", by="model", passes=3, **QUIET)
    assert_frame_equal(parts.collect(), whole)
    assert parts.select(pl.len()).collect().item() == whole.height


def test_a_log_without_its_copies_is_read_in_passes() -> None:
    once = mlm.dedupe(copied(log(1)).lazy(), "last", by="model", passes=2, **QUIET)
    table = mlm.evaluate(once, mlm.ndcg(), by="model", passes=2, **QUIET).collect()
    assert_frame_equal(table, mlm.evaluate(mlm.dedupe(copied(log(1)), "last", by="model"), mlm.ndcg(), by="model"))


def test_rows_that_come_in_another_order_when_they_are_read_again() -> None:
    seeds = itertools.count()
    rows = pl.defer(lambda: copied(log(1)).sample(fraction=1, shuffle=True, seed=next(seeds)), schema=log(1).schema)
    once = mlm.dedupe(rows, "last", by="model", passes=1, **QUIET)
    with pytest.raises(PolarsError, match="the rows came in another order when they were read again"):
        once.collect()


@pytest.mark.parametrize("ask", [mlm.compare, mlm.gap])
def test_a_state_is_read_at_once(ask: Callable[..., pl.DataFrame]) -> None:
    state = mlm.state(log(1), mlm.f1(), by=["model", "country"])
    named = {"baseline": "old"} if ask is mlm.compare else {"over": "country"}
    with pytest.raises(mlm.ParameterError, match=r"^passes= is for a log: a state is small\.$"):
        ask(state, mlm.f1(), **named, passes=2)
