"""Tables of no rows, and counts that 32 bits do not hold."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_mlmetrics as mlm
from tests.data.sound_log import ENGINES, LOG, READERS, by_state, put, told, values

# -- empty frame, 0 slices, all filtered -------------------------------------------------------------------------------


def test_an_empty_frame_gives_one_row_without_values() -> None:
    counts = [mlm.n_rows(), mlm.n_samples(), mlm.n_excluded()]
    in_states = [metric for metric in READERS if metric.output_name not in ("roc_auc", "average_precision")]
    for road, metrics in ((values, READERS), (by_state, in_states)):
        assert road(LOG.clear(), *metrics, *counts) == [*[None] * len(metrics), 0, 0, 0]
    assert told(LOG.clear(), mlm.f1())["reason"] == "no rows"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "asked",
    [{}, {"by": "label"}, {"slices": ["label"]}, {"slices": []}, {"tidy": True}, {"by": "label", "tidy": True}],
    ids=str,
)
def test_an_empty_frame_keeps_the_schema(asked: dict[str, Any], engine: Any) -> None:
    full = mlm.evaluate(LOG.lazy(), READERS, **asked)
    empty = mlm.evaluate(LOG.clear().lazy(), READERS, **asked)
    assert empty.collect(engine=engine).schema == full.collect(engine=engine).schema == full.collect_schema()


@pytest.mark.parametrize("k", [3, 100])
def test_an_aggregation_without_groups_has_no_rows(k: int) -> None:
    """Polars looks up numbers without a type there."""
    looked_up = [mlm.average_precision_at(k=k), mlm.log_average_precision_at(k=k), mlm.hit_at(k), mlm.pass_at(k)]
    assert LOG.clear().group_by("label").agg(looked_up).schema == LOG.group_by("label").agg(looked_up).schema


def test_columns_of_no_rows_and_no_type_are_empty_too() -> None:
    untyped = pl.DataFrame({"sample": [], "label": [], "score": [], "truth": []})
    assert values(untyped, mlm.f1(), mlm.one_error(), mlm.n_rows()) == [None, None, 0]


def test_0_slices_are_the_whole() -> None:
    assert mlm.evaluate(LOG, mlm.f1(), slices=[]).rows() == [("", "", 0.8)]


def test_all_filtered_leaves_the_groups() -> None:
    nothing = mlm.f1().filter(pl.col("score") > 2)
    table = mlm.evaluate(LOG, nothing, mlm.n_rows(), by="sample")
    assert table.rows() == [(1, None, 2), (2, None, 2)]
    assert told(LOG, nothing)["reason"] == "no rows"
    assert values(LOG, nothing) == [None]


def test_an_empty_frame_is_checked_too() -> None:
    table = mlm.check(LOG.clear(), by="label", weight="weight")
    sizes = [("rows", 0), ("groups", 0), ("labels", 0), ("samples", 0)]
    assert table.select("problem", "count").rows() == [("no_rows", 1), *sizes]
    assert mlm.dedupe(LOG.clear()).equals(LOG.clear())


MODELS = LOG.with_columns(model=pl.col("sample").cast(pl.String)).clear()
ONE = LOG.clear()


JUDGED: dict[str, tuple[str, Callable[[], object]]] = {
    "compare": ("the table has no rows", lambda: mlm.compare(MODELS, mlm.f1(), baseline="1")),
    "drift": ("the table has no rows", lambda: mlm.drift(MODELS, between="model", baseline="1")),
    "flips": ("the table has no rows", lambda: mlm.flips(MODELS, mlm.log_loss(), baseline="1")),
    "find_slices": ("no feature has two values", lambda: mlm.find_slices(MODELS, mlm.log_loss(), ["label"])),
}

EMPTY: dict[str, Callable[[], pl.DataFrame]] = {
    "curve": lambda: mlm.curve(ONE, "roc", by="label"),
    "best_threshold": lambda: mlm.best_threshold(ONE, mlm.f1(), per="label"),
    "worst": lambda: mlm.worst(ONE, mlm.log_loss()),
    "confusion": lambda: mlm.confusion(ONE),
    "evaluate": lambda: mlm.evaluate(ONE, mlm.f1(), per="label", ci=0.95),
}


@pytest.mark.parametrize(("words", "ask"), JUDGED.values(), ids=JUDGED)
def test_a_judgement_of_no_rows_is_refused(words: str, ask: Callable[[], object]) -> None:
    with pytest.raises(mlm.MetricError, match=words):
        ask()


@pytest.mark.parametrize("ask", EMPTY.values(), ids=EMPTY)
def test_a_list_of_no_rows_is_empty(ask: Callable[[], pl.DataFrame]) -> None:
    assert ask().is_empty()


@pytest.mark.parametrize("kind", ["roc", "pr", "gain", "det", "decision", "calibration", "scores"])
def test_what_has_a_row_for_all_keeps_it_without_rows(kind: Any) -> None:
    assert mlm.curve(ONE, kind).height == mlm.gap(ONE, mlm.recall(), over="label").height == 1


# -- u32 overflow scale ------------------------------------------------------------------------------------------------

COUNTED = [mlm.f1(average="macro"), mlm.f1(), mlm.accuracy(), mlm.n_rows(), mlm.n_samples(), mlm.one_error()]


def enlarged(state: pl.DataFrame, times: int) -> pl.DataFrame:
    """A state of so many times the rows."""
    counts = [name for name, dtype in state.schema.items() if dtype in (pl.Int64, pl.Float64) and name != "bin"]
    return state.with_columns(pl.col(counts) * times)


def test_counts_beyond_32_bits_merge() -> None:
    """Two states of 3e9 logs each."""
    state = enlarged(mlm.state(LOG, COUNTED, mlm.roc_auc(bins=4), buckets=0), 3_000_000_000)
    merged = pl.concat([state, state])
    for frame in (merged, mlm.compact(merged)):
        table = mlm.finish(frame, mlm.n_rows(), mlm.n_samples(), mlm.true_positives(), mlm.f1(), mlm.accuracy())
        assert table.row(0) == (24_000_000_000, 12_000_000_000, 12_000_000_000.0, 0.8, 0.75)
        assert table.schema["n_rows"] == table.schema["n_samples"] == pl.Int64
        more = mlm.finish(frame, mlm.f1(average="macro"), mlm.one_error()).row(0)
        assert more == pytest.approx((5 / 6, 0.0), rel=1e-12)
        assert mlm.finish(frame, mlm.roc_auc(bins=4)).item() == mlm.evaluate(LOG, mlm.roc_auc(bins=4)).item()
        row = mlm.finish(frame, mlm.f1(), tidy=True).row(0, named=True)
        assert (row["n_rows"], row["support"]) == (24_000_000_000, 12_000_000_000.0)


def test_counts_beyond_32_bits_come_back_from_a_file(tmp_path: Path) -> None:
    state = enlarged(mlm.state(LOG, COUNTED, buckets=0), 3_000_000_000)
    mlm.write_state(state, tmp_path / "state.parquet")
    assert mlm.scan_states(tmp_path).mlm.finish(mlm.n_rows(), mlm.f1()).collect().row(0) == (12_000_000_000, 0.8)


@pytest.mark.parametrize("dtype", [pl.UInt32, pl.Int64, pl.UInt64, pl.Float32], ids=str)
def test_sums_of_weights_beyond_32_bits(dtype: Any) -> None:
    """Each fits in 32 bits, and no sum of two does."""
    log = put(weight=pl.Series([2**31 + 2**30] * 4).cast(dtype))
    expected = pytest.approx([2.0**32 + 2.0**31, 2 / 3], rel=1e-12)
    assert values(log, mlm.support(), mlm.precision(), weight="weight") == expected
