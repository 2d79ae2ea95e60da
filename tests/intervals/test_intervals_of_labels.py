"""`worst(ci=)`: the labels it selects have the intervals that `evaluate` gives them."""

import re
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from tests.intervals.users import users

ENDS = ["recall", "recall_low", "recall_high"]
ONE = "one sample is one cluster, and a single cluster has no interval"
MACRO = mlm.recall(average="macro")


@pytest.mark.parametrize("asked", [{}, {"cluster": "user"}, {"by": "country"}, {"slices": ["side"]}], ids=str)
def test_the_ends_are_those_of_the_label(asked: dict[str, Any]) -> None:
    table = mlm.worst(users(), MACRO, k=2, ci=0.9, **asked)
    every = mlm.evaluate(users(), mlm.recall(), per="label", ci=0.9, **asked)
    keys = [key for key in every.columns if key not in ENDS]
    assert table.columns == [*keys, *ENDS, "ci_flag", "n_undefined", "n_broken"]
    right = table.select(keys).join(every, on=keys, nulls_equal=True, maintain_order="left")
    assert_frame_equal(table.select(right.columns), right, rel_tol=1e-12)
    assert table["recall_low"].null_count() == 0
    assert set(table["ci_flag"]) == {"selected"}
    bare = mlm.worst(users(), MACRO, k=2, **{name: given for name, given in asked.items() if name != "cluster"})
    assert_frame_equal(table.select(bare.columns), bare)


def test_an_interval_is_that_of_the_rows_of_the_label() -> None:
    table = mlm.worst(users(), MACRO, ci=0.95)
    for row in table.iter_rows(named=True):
        alone = mlm.evaluate(users().filter(label=row["label"]), mlm.recall(), ci=0.95)
        assert [row[end] for end in ENDS] == pytest.approx(alone.row(0), rel=1e-12)


def test_only_what_has_an_interval_is_flagged() -> None:
    # Label d has two samples, one of them with a positive: without it there is no recall.
    rare = users().filter((pl.col("label") != "d") | (pl.col("sample") < 2))
    rare = rare.with_columns(truth=pl.when(label="d").then(pl.col("sample") == 0).otherwise(pl.col("truth") == 1))
    table = mlm.worst(rare, MACRO, ci=0.95)
    assert dict(table.select("label", "ci_flag").rows())["d"] is None
    assert dict(table.select("label", "recall_low").rows())["d"] is None
    assert table["ci_flag"].null_count() == 1
    exact = mlm.worst(users(), mlm.ks(average="macro"), ci=0.95)
    assert exact.select("ks_low", "ci_flag").null_count().row(0) == (4, 4)


def test_columns_are_kept_beside_intervals() -> None:
    table = mlm.worst(users(), MACRO.alias("found"), k=1, by="country", ci=0.95, keep="user")
    assert table.columns[2:7] == ["found", "found_low", "found_high", "ci_flag", "n_undefined"]


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_a_lazy_frame_gives_the_same(engine: str) -> None:
    lazy = mlm.worst(users().lazy(), MACRO, k=2, ci=0.95)
    assert isinstance(lazy, pl.LazyFrame)
    assert_frame_equal(lazy.collect(engine=engine), users().mlm.worst(MACRO, k=2, ci=0.95), rel_tol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mlm.worst(users(), mlm.log_loss(), ci=0.95), f"ci= is for metrics averaged over labels: {ONE}."),
        (lambda: mlm.worst(users(), MACRO, ci=95), "ci must be a number between 0 and 1, such as 0.95, not 95."),
        (lambda: mlm.worst(users(), MACRO, cluster="user"), "cluster= is for intervals: pass ci= too"),
        (lambda: mlm.worst(users(), MACRO, ci=0.9, cluster="usr"), "Did you mean 'user'?"),
        (lambda: mlm.worst(users(), MACRO.alias("ci_flag"), ci=0.9), "would have the name 'ci_flag'"),
    ],
)
def test_what_is_wrong_is_said(call: Callable[[], object], message: str) -> None:
    with pytest.raises(mlm.MetricError, match=re.escape(message)):
        call()
