"""Verbs beside `evaluate` in passes: they give what they give of all rows at once."""

import random
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm

# Sums of parts differ in their last digits, and a standard error, a difference of such sums, in some more.
CLOSE: dict[str, float] = {"rel_tol": 1e-9, "abs_tol": 1e-12}
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
OTHERS: dict[str, Callable[..., pl.DataFrame]] = {
    "gap": lambda rows, **how: mlm.gap(rows, METRICS, over="country", by="model", cluster="user", **how),
    "gap with weights": lambda rows, **how: mlm.gap(rows, mlm.ndcg(), over="label", weight="weight", **how),
    "worst samples": lambda rows, **how: mlm.worst(rows, mlm.ndcg(), 3, "model", ["country"], keep="user", **how),
    "worst labels": lambda rows, **how: mlm.worst(rows, mlm.f1(average="macro"), by="model", ci=0.9, **how),
}


@pytest.mark.parametrize("how", COMPARED.values(), ids=COMPARED)
@pytest.mark.parametrize("passes", [1, 3, "auto"])
def test_compare(how: dict[str, Any], passes: Any) -> None:
    for seed in range(2):
        named = {"baseline": "DE" if "between" in how else "old", **how}
        whole = mlm.compare(log(seed), METRICS, **named)
        parts = mlm.compare(log(seed).lazy(), METRICS, **named, passes=passes, **QUIET).collect()
        assert_frame_equal(parts, whole, **CLOSE)


@pytest.mark.parametrize("ask", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("passes", [3, "auto"])
def test_gap_and_worst(ask: Callable[..., pl.DataFrame], passes: Any) -> None:
    for seed in range(2):
        assert_frame_equal(ask(log(seed), passes=passes, **QUIET), ask(log(seed)), **CLOSE)


def test_files_that_share_no_sample(folder: Any) -> None:
    parts = log(3).drop_nulls("sample").partition_by("sample")
    pl.concat(parts[:50]).write_parquet("one.parquet")
    pl.concat(parts[50:]).write_parquet("two.parquet")
    scan = pl.scan_parquet("*.parquet")
    found = mlm.compare(scan, METRICS, baseline="old", slices=["country"], passes="files", **QUIET)
    assert_frame_equal(
        found.collect(), mlm.compare(scan, METRICS, baseline="old", slices=["country"]).collect(), rel_tol=1e-9
    )


@pytest.mark.parametrize("ask", [mlm.compare, mlm.gap])
def test_a_state_is_read_at_once(ask: Callable[..., pl.DataFrame]) -> None:
    state = mlm.state(log(1), mlm.f1(), by=["model", "country"])
    named = {"baseline": "old"} if ask is mlm.compare else {"over": "country"}
    with pytest.raises(mlm.ParameterError, match=r"^passes= is for a log: a state is small\.$"):
        ask(state, mlm.f1(), **named, passes=2)
