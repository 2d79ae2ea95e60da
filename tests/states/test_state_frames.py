"""States by any engine, of any kind of frame, in passes, and of hardly any rows."""

from itertools import product
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from tests.support.differing import ENGINES, broken, differing
from tests.support.folded_log import FEW, LOG, METRICS, agrees, check, differing_in, evaluated, folded

CHAINED = [mlm.f1(average="macro"), mlm.pearson().on(truth="amount"), mlm.n_samples()]
"""Few, for a plan from the rows to the answer takes long to optimize."""

# -- frames, engines, passes -------------------------------------------------------------------------------------------


@pytest.mark.one_in(2)
@pytest.mark.parametrize("engine", ENGINES)
def test_engines(engine: Any) -> None:
    state = mlm.state(LOG.lazy(), FEW, by=["model", "day"])
    collected = state.collect(engine=engine)
    assert collected.schema == state.collect_schema()
    assert differing_in(collected, mlm.state(LOG, FEW, by=["model", "day"])) == []
    answer = mlm.finish(state, CHAINED, by="model", slices=["day"])
    expected = evaluated(LOG, CHAINED, by="model", slices=["day"])
    assert answer.collect_schema() == expected.schema
    assert differing(answer.collect(engine=engine), expected) == []
    compacted = mlm.compact(pl.concat([state, state])).collect(engine=engine)
    assert differing_in(compacted, mlm.compact(pl.concat([collected, collected]))) == []
    assert compacted.schema == state.collect_schema()


def test_a_dataframe_gives_a_dataframe_and_a_lazyframe_a_lazyframe() -> None:
    for log in (LOG, LOG.lazy()):
        state = mlm.state(log, mlm.f1())
        assert type(state) is type(mlm.compact(state)) is type(mlm.finish(state, mlm.f1())) is type(log)


def test_the_verbs_stand_on_frames() -> None:
    state = mlm.state(LOG, CHAINED, by="model")
    assert_frame_equal(LOG.mlm.state(CHAINED, by="model"), state)
    assert_frame_equal(state.mlm.finish(CHAINED, by="model"), mlm.finish(state, CHAINED, by="model"))
    assert_frame_equal(pl.concat([state, state]).mlm.compact(), mlm.compact(pl.concat([state, state])))
    lazy = LOG.lazy().mlm.state(CHAINED, by="model").mlm.compact().mlm.finish(CHAINED).collect()
    assert differing(lazy, mlm.finish(state, CHAINED)) == []


@pytest.mark.parametrize("passes", [None, 3], ids=str)
def test_nothing_is_read_before_collect(passes: int | None) -> None:
    rows = LOG.lazy().map_batches(broken, schema=LOG.schema)
    state = mlm.state(rows, CHAINED, by="model", passes=passes, progress=False)
    answer = mlm.finish(mlm.compact(state), CHAINED, by="model", tidy=True)
    assert answer.collect_schema()["n_samples"] == pl.Int64
    for frame in (state, answer):
        with pytest.raises(RuntimeError, match=r"^the rows were read$"):
            frame.collect()


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("by", "passes", "weight"), [(None, 3, "own"), (None, 1, None), (["model", "day"], 3, None)])
def test_passes_give_the_same_state(by: list[str] | None, passes: int, weight: str | None) -> None:
    options: dict[str, Any] = {"by": by, "buckets": 3, "weight": weight}
    expected = folded(LOG, METRICS, **options)
    assert differing_in(folded(LOG, METRICS, passes=passes, **options), expected) == []


OF_KEYS: list[dict[str, Any]] = [{}, {"by": "model", "slices": ["day"], "tidy": True}]
OF_NO_KEYS: list[dict[str, Any]] = [{"slices": []}, {"tidy": True}]
HARDLY = [(["model", "day"], *case) for case in product([(0, 64), (0, 0), (1, 64), (2, 0)], OF_KEYS)]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("keys", "size", "asked"), [*HARDLY, *product([None], [(0, 0), (0, 64)], OF_NO_KEYS)], ids=str)
def test_hardly_any_rows(keys: Any, size: tuple[int, int], asked: dict[str, Any]) -> None:
    rows, buckets = size
    check(LOG.head(rows), FEW, keys, buckets=buckets, **asked)


@pytest.mark.parametrize("role", ["score", "truth", "sample", "label"])
def test_where_all_rows_are_excluded_the_groups_are_there(role: str) -> None:
    log = LOG.with_columns(pl.lit(None, dtype=LOG.schema[role]).alias(role))
    answer = check(log, FEW, ["model", "day"], by="model", tidy=True)
    assert answer["model"].n_unique() == 4


def test_a_group_whose_rows_are_all_excluded_is_there() -> None:
    log = LOG.with_columns(truth=pl.when(pl.col("model") != "x").then("truth"))
    answer = check(log, METRICS, ["model", "day"], parts=2, by="model")
    assert answer.filter(model="x").select("n_rows", "n_excluded", "f1").rows() == [
        (0, log.filter(model="x").height, None)
    ]


# -- a sample in two places --------------------------------------------------------------------------------------------


def test_a_sample_that_spans_two_states_counts_as_two() -> None:
    """Sample 1 has its true label on the second day, below the other: it is last of two, and alone first."""
    log = pl.DataFrame(
        {"sample": [1, 1, 2], "day": [1, 2, 2], "label": ["a", "b", "a"], "score": [0.9, 0.2, 0.5], "truth": [0, 1, 1]}
    )
    metrics = [mlm.n_samples(), mlm.reciprocal_rank(), mlm.n_rows(), mlm.recall()]
    by_day = folded(log, metrics, by="day")
    assert evaluated(log, metrics).row(0) == (2, 0.75, 3, 0.0)
    assert mlm.finish(by_day, metrics).row(0) == (None, None, 3, 0.0)
    assert agrees(by_day, log, metrics, by="day")
    assert agrees(folded(log, metrics), log, metrics)
    in_parts = pl.concat([folded(log.head(1), metrics), folded(log.tail(2), metrics)])
    assert mlm.finish(in_parts, metrics).row(0) == (3, 1.0, 3, 0.0)
