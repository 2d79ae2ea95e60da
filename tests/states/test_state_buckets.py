"""Buckets of samples: the published hash, and counts that are those of the whole."""

from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.support.differing import ENGINES
from tests.support.folded_log import COUNTS, FEW, LOG, agrees, check, contents, evaluated, folded


def splitmix64(number: int) -> int:
    """What the generator SplitMix64 gives from this state (Steele, Lea and Flood 2014)."""
    mixed = (number + 0x9E3779B97F4A7C15) % 2**64
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB % 2**64
    return mixed ^ (mixed >> 31)


def test_splitmix64_is_the_published_one() -> None:
    """The first numbers of its seeds 0 and 1234567, as other libraries test them."""
    assert splitmix64(0) == 0xE220A8397B1DCDAF
    assert splitmix64(1234567) == 6457827717110365317


def buckets_of(ids: pl.DataFrame, buckets: int, engine: Any = "auto") -> dict[tuple[Any, ...], int]:
    """The bucket of each sample; it may be in one alone."""
    log = ids.with_columns(score=0.7, truth=1).lazy()
    state = mlm.state(log, mlm.f1(), by=ids.columns, sample=ids.columns, buckets=buckets).collect(engine=engine)
    told = state.select(*ids.columns, "bucket").rows()
    assert len({row[:-1] for row in told}) == len(told)
    return {row[:-1]: row[-1] for row in told}


IDS: dict[str, pl.Series] = {
    "Int64": pl.Series([0, 1, 2, -1, 12345, -(2**63), 2**63 - 1, None], dtype=pl.Int64),
    "UInt64": pl.Series([0, 1, 2**63, 2**64 - 1, None], dtype=pl.UInt64),
    "Int8": pl.Series(list(range(-128, 128)), dtype=pl.Int8),
    "UInt32": pl.Series([0, 7, 2**32 - 1], dtype=pl.UInt32),
}


@pytest.mark.parametrize("buckets", [1, 2, 64, 1000])
@pytest.mark.parametrize("name", IDS)
def test_the_bucket_of_a_whole_number_is_its_splitmix64(name: str, buckets: int) -> None:
    expected = {(number,): splitmix64((number or 0) % 2**64) % buckets for number in IDS[name].to_list()}
    assert buckets_of(IDS[name].alias("id").to_frame(), buckets) == expected


def test_the_bucket_of_several_whole_numbers_is_made_of_each_in_turn() -> None:
    ids = pl.DataFrame({"day": [1, 1, 2, None], "id": [-5, 2**62, 2**62, 3]})
    expected = {
        (day, number): splitmix64((splitmix64(day or 0) + number) % 2**64) % 64 for day, number in ids.iter_rows()
    }
    assert buckets_of(ids, 64) == expected


@pytest.mark.parametrize("dtype", [pl.Int64, pl.String, pl.Float64], ids=str)
def test_a_sample_is_in_one_bucket(dtype: Any) -> None:
    log = LOG.with_columns(pl.col("sample").cast(dtype), where=pl.col("sample"))
    state = folded(log, FEW, by="where", buckets=5)
    held = state.filter(pl.col("where").is_not_null()).group_by("where").agg(pl.col("bucket").n_unique())
    assert held["bucket"].to_list() == [1] * LOG["sample"].drop_nulls().n_unique()
    assert state["bucket"].is_between(0, 4).all()
    assert state["bucket"].n_unique() == 5
    own = {"hash": "splitmix64", "polars": None}
    hashed = own if dtype == pl.Int64 else {"hash": "polars", "polars": pl.__version__}
    assert contents(state)["buckets"] == {"count": 5, "cluster": ["sample"], **hashed}


def test_without_buckets_there_is_no_column_of_them() -> None:
    state = folded(LOG, FEW, by="model", buckets=0)
    assert "bucket" not in state.columns
    assert contents(state)["buckets"] is None


@pytest.mark.one_in(3)
@pytest.mark.parametrize("buckets", [7, 1, 1000, 0, 64])
def test_buckets_change_no_answer(buckets: int) -> None:
    check(LOG, FEW, ["model", "day"], buckets=buckets, by="model")
    check(LOG, FEW, buckets=buckets)


def test_counts_of_the_buckets_sum_to_the_whole() -> None:
    counts = [*COUNTS, mlm.true_positives(), mlm.support(average="micro")]
    state = folded(LOG, counts, by="model", buckets=6)
    parts = [mlm.finish(state.filter(bucket=bucket), counts).fill_null(0) for bucket in range(6)]
    assert all(part["n_rows"].item() > 0 for part in parts)
    assert pl.concat(parts).sum().row(0) == evaluated(LOG, counts).row(0)


def test_a_bucket_answers_for_its_samples() -> None:
    state = folded(LOG, FEW, by="model", buckets=4)
    for bucket in range(4):
        mine = pl.col("sample").map_elements(lambda s: splitmix64(s) % 4, return_dtype=pl.Int64, skip_nulls=True)
        log = LOG.filter(mine.fill_null(splitmix64(0) % 4) == bucket)
        assert agrees(state.filter(bucket=bucket), log, by="model")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("dtype", [pl.Int64, pl.String], ids=str)
def test_buckets_are_the_same_on_any_engine(engine: Any, dtype: Any) -> None:
    ids = pl.DataFrame({"id": pl.Series(range(500)).cast(dtype)})
    assert buckets_of(ids, 64, engine) == buckets_of(ids.reverse(), 64)
