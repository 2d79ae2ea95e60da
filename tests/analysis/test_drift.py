"""`drift`: numbers by hand and of scipy; what a row counts as; groups, slices and sides that lack rows."""

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import stats
from scipy.spatial.distance import jensenshannon

import polars_mlmetrics as mlm
from polars_mlmetrics.analysis.drift import COLUMNS
from polars_mlmetrics.engine.buckets import bucket_of
from tests.contrasts.by_hand import chance

TOLERANCE = 1e-12


def log_of(**sides: Sequence[Any]) -> pl.DataFrame:
    """A log of the scores of each side, each row a sample."""
    tables = [pl.DataFrame({"side": [side] * len(scores), "score": scores}) for side, scores in sides.items()]
    return pl.concat(tables).with_row_index("sample")


def drifted(log: Any, **options: Any) -> dict[str, Any]:
    """The one row of a log with two sides."""
    table = mlm.drift(log, between="side", baseline="old", **options)
    return table.lazy().collect().row(0, named=True)


def are_close(row: dict[str, Any], other: dict[str, Any], but: Sequence[str] = ()) -> bool:
    """Whether two rows are equal, floats to rounding."""
    pairs = [(row[name], other[name]) for name in row if name not in but]
    floats = [pair for pair in pairs if all(isinstance(each, float) for each in pair)]
    left, right = zip(*floats, strict=True)
    rest = [one == other for one, other in pairs if (one, other) not in floats]
    return row.keys() == other.keys() and all(rest) and left == pytest.approx(right, rel=1e-9, nan_ok=True)


# -- by hand -----------------------------------------------------------------------------------------------------------


def cell_of(baseline: Sequence[float], bins: int) -> Any:
    """The cell of a score: how many edges lie below it, and which scores that stand alone it has reached."""
    ordered, counts = sorted(baseline), Counter(baseline)
    alone = sorted(score for score, n in counts.items() if n * bins >= len(baseline))
    quantiles = {ordered[-(-len(ordered) * i // bins) - 1] for i in range(1, bins)}
    edges = sorted((quantiles - {ordered[-1]}) | set(alone))
    return lambda score: (bisect_left(edges, score), bisect_right(alone, score))


def by_hand(new: Sequence[float], old: Sequence[float], bins: int = 10) -> tuple[float, float]:
    """PSI and the Jensen-Shannon distance."""
    cell = cell_of(old, bins)
    counts = [Counter(map(cell, side)) for side in (new, old)]
    cells = sorted(counts[0].keys() | counts[1].keys())
    a, b = ([count[cell] / count.total() for cell in cells] for count in counts)
    filled = [[share or 0.5 / len(side) for share in shares] for shares, side in zip((a, b), (new, old), strict=True)]
    psi = sum((one - other) * math.log(one / other) for one, other in zip(*filled, strict=True))
    return psi, float(jensenshannon(a, b, base=2))


def normal(seed: int, n: int, mean: float = 0.0) -> list[float]:
    return np.random.default_rng(seed).normal(mean, 1, n).tolist()


PAIRS = {
    "few rows": (normal(1, 23, 0.5), normal(2, 37)),
    "many rows": (normal(1, 900, 0.2), normal(2, 300)),
    "few digits": (np.round(normal(1, 500, 0.2), 1).tolist(), np.round(normal(2, 700), 1).tolist()),
    "many zeros": ([0.0] * 50 + [abs(x) for x in normal(3, 50)], [0.0] * 140 + [abs(x) for x in normal(4, 60)]),
    "zeros and ones": ([0.0, 1.0, 1.0] * 20, [0.0, 1.0] * 30),
    "another constant": ([0.25] * 30, [0.5] * 30),
    "a constant in the middle": ([0.1, 0.5, 0.9] * 10, [0.5] * 30),
    "without end": ([-math.inf] * 9 + normal(5, 20), [-math.inf, -math.inf, math.inf, *normal(6, 40)]),
    "apart": ([9.0, 8.0, 7.0, 6.0] * 5, [1.0, 2.0, 3.0, 4.0] * 5),
}


@pytest.mark.parametrize("bins", [2, 4, 10, 25])
@pytest.mark.parametrize("name", PAIRS)
def test_distances_are_those_by_hand_and_of_scipy(name: str, bins: int) -> None:
    new, old = PAIRS[name]
    row = drifted(log_of(old=old, new=new), bins=bins)
    psi, js = by_hand(new, old, bins)
    assert row["psi"] == pytest.approx(psi, rel=TOLERANCE, abs=TOLERANCE)
    assert row["js"] == pytest.approx(js, rel=1e-9, abs=1e-6)
    bound = 0 if min(Counter(old).values()) * 32 * bins >= len(old) else 1 / (32 * bins)
    assert -1e-12 <= stats.ks_2samp(new, old).statistic - row["ks"] <= bound + 1e-12
    assert (row["n"], row["n_baseline"]) == (len(new), len(old))


def test_the_largest_difference_of_many_scores_is_off_by_no_more_than_a_part_of_a_cell() -> None:
    for seed, mean in enumerate((0.0, 0.02, 0.3)):
        new, old = normal(seed, 6_000, mean), normal(seed + 50, 9_000)
        off = stats.ks_2samp(new, old).statistic - drifted(log_of(old=old, new=new), bins=5)["ks"]
        assert -1e-12 <= off <= 1 / (32 * 5)


def test_chance_is_that_of_the_buckets_of_samples() -> None:
    new, old = normal(1, 400, 0.2), normal(2, 600)
    log = log_of(old=old, new=new).with_columns(user=pl.col("sample") // 7)
    cell = cell_of(old, 10)
    for key in ("sample", "user"):
        buckets = log.select(bucket_of([key], log.schema, 64)[0]).to_series().to_list()
        cells = {"new": np.zeros((64, 30)), "old": np.zeros((64, 30))}
        for bucket, side, score in zip(buckets, log["side"], log["score"], strict=True):
            cells[side][bucket, sum(cell(score))] += 1
        expected, p, n_buckets = chance(cells["new"], cells["old"])
        row = drifted(log, cluster=key)
        assert (row["psi_expected"], row["p"]) == pytest.approx((expected, p), rel=1e-8)
        assert row["n_buckets"] == n_buckets
        assert are_close(drifted(log, sample=key), row)


# -- what a row counts as ----------------------------------------------------------------------------------------------


def test_weights_are_copies() -> None:
    new, old = PAIRS["few digits"]
    log = log_of(old=old, new=new).with_columns(weight=pl.col("sample") % 4)
    copies = log.select(pl.all().repeat_by("weight").explode()).drop_nulls("score")
    row = drifted(log, weight="weight")
    assert are_close(row, drifted(copies), but=["n", "n_baseline"])
    assert are_close(row, drifted(log.with_columns(pl.col("weight") * 7.3), weight="weight"))


def test_nulls_are_left_out_and_counted() -> None:
    new, old = PAIRS["few rows"]
    log = log_of(old=[*old, None], new=[*new, None, None])
    row, right = drifted(log), drifted(log.drop_nulls("score"))
    assert (row["null_share"], row["null_share_baseline"]) == (2 / 25, 1 / 38)
    assert right["null_share"] == right["null_share_baseline"] == 0
    assert are_close(row, right, but=["null_share", "null_share_baseline"])


@pytest.mark.parametrize("side", ["old", "new"])
def test_broken_rows_make_all_that_reads_scores_nan(side: str) -> None:
    log = log_of(old=[0.1, 0.2] * 20, new=[0.3, 0.4] * 20)
    broken = pl.concat([log, pl.DataFrame({"sample": 99, "side": side, "score": math.nan}, schema=log.schema)])
    row = drifted(broken)
    assert all(math.isnan(row[name]) for name in ("psi", "ks", "js"))
    assert math.isnan(row["score_mean"]) == (side == "new")
    assert math.isnan(row["score_mean_baseline"]) == (side == "old")
    assert (row["psi_expected"], row["p"], row["drift_flag"], row["n_broken"]) == (None, None, None, 1)
    assert (row["n"], row["n_baseline"]) == (40, 40)
    weighted = log.with_columns(weight=pl.when(pl.col("sample") == 3).then(-1.0).otherwise(1.0))
    assert math.isnan(drifted(weighted, weight="weight")["psi"])
    assert drifted(weighted, weight="weight")["n_broken"] == 1


def test_truths_are_shown_where_there_are_any() -> None:
    log = log_of(old=[0.1, 0.2] * 20, new=[0.3, 0.4] * 20)
    assert drifted(log)["truth_mean"] is None
    shown = log.with_columns(hit=pl.col("sample") % 4 == 0, truth=pl.when(pl.col("sample") < 45).then(0.5))
    row = drifted(shown)
    assert (row["truth_mean"], row["truth_mean_baseline"], row["n"]) == (0.5, 0.5, 40)
    assert drifted(shown, truth="hit")["truth_mean"] == 0.25
    assert drifted(shown.with_columns(truth=pl.lit("yes")))["truth_mean"] is None
    assert math.isnan(drifted(shown.with_columns(truth=math.nan))["truth_mean"])


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical, pl.Enum(["a", "b", "c", "d"])])
def test_texts_are_cells(dtype: Any) -> None:
    log = log_of(old=[*"aaaaabbbcd"] * 5, new=[*"aabbbbccdd"] * 5)
    row = drifted(log.with_columns(pl.col("score").cast(dtype)))
    a, b = [0.2, 0.4, 0.2, 0.2], [0.5, 0.3, 0.1, 0.1]
    assert row["psi"] == pytest.approx(sum((x - y) * math.log(x / y) for x, y in zip(a, b, strict=True)))
    assert row["js"] == pytest.approx(jensenshannon(a, b, base=2))
    assert (row["ks"], row["score_mean"]) == (None, None)
    assert 0 < row["p"] < 1
    # The most frequent one, and all others as one.
    pooled = drifted(log, bins=2)
    assert pooled["psi"] == pytest.approx((0.2 - 0.5) * math.log(0.2 / 0.5) + (0.8 - 0.5) * math.log(0.8 / 0.5))


def test_booleans_and_whole_numbers_are_numbers() -> None:
    log = log_of(old=[True, False] * 20, new=[True, True, True, False] * 10)
    row = drifted(log)
    assert (row["ks"], row["score_mean"]) == (0.25, 0.75)
    assert are_close(row, drifted(log.with_columns(pl.col("score").cast(pl.Int8))))


# -- groups, slices, sides ---------------------------------------------------------------------------------------------


def sliced_log() -> pl.DataFrame:
    random = np.random.default_rng(8)
    n = 4_000
    columns = {
        "model": random.choice(["a", "b"], n),
        "day": random.integers(1, 4, n),
        "country": random.choice(["DE", "FR", ""], n),
        "device": random.choice(["ios", "web"], n),
        "user": random.integers(0, 700, n),
        "score": random.normal(size=n),
    }
    return pl.DataFrame(columns).with_columns(
        country=pl.when(pl.col("country") != "").then("country"),
        score=pl.col("score") * pl.when(model="b").then(50).otherwise(1) + pl.col("day"),
    )


OPTIONS: dict[str, Any] = {"between": "day", "baseline": 1, "by": "model", "sample": "user"}
SLICES = ["country", ["country", "device"]]


def test_a_group_is_compared_as_if_it_were_alone() -> None:
    log = sliced_log()
    table = mlm.drift(log, **OPTIONS)
    for model in ("a", "b"):
        alone = mlm.drift(log.filter(model=model), between="day", baseline=1, sample="user")
        assert_frame_equal(table.filter(model=model).drop("model"), alone, rel_tol=1e-9)


def test_a_slice_has_the_cells_of_its_group() -> None:
    log = sliced_log()
    table = mlm.drift(log, **OPTIONS, slices=SLICES)
    assert table.columns == ["model", "sliced_by", "slice", "country", "device", "day", *COLUMNS]
    assert table.height == 2 * 2 * (1 + 3 + 6)
    whole = table.filter(sliced_by="").drop("sliced_by", "slice", "country", "device")
    assert_frame_equal(whole.drop("p_adjusted"), mlm.drift(log, **OPTIONS).drop("p_adjusted"), rel_tol=1e-9)
    row = table.filter(model="a", day=2, slice="country=null").row(0, named=True)
    rows = log.filter(pl.col("model") == "a", pl.col("country").is_null())
    old, new = (rows.filter(day=day)["score"].to_list() for day in (1, 2))
    cell = cell_of(log.filter(model="a", day=1)["score"].to_list(), 10)
    counts = [Counter(map(cell, side)) for side in (new, old)]
    pairs = [(counts[0][c] / len(new), counts[1][c] / len(old)) for c in counts[0].keys() | counts[1].keys()]
    assert row["psi"] == pytest.approx(sum((a - b) * math.log(a / b) for a, b in pairs))
    assert row["slice_share"] == pytest.approx(len(new) / log.filter(model="a", day=2).height)
    shares = table.filter(sliced_by="country, device").group_by("model", "day").agg(pl.col("slice_share").sum())
    assert shares["slice_share"].to_list() == pytest.approx([1] * 4)


def test_p_is_adjusted_over_the_slices_of_one_value() -> None:
    table = mlm.drift(sliced_log(), **OPTIONS, slices=SLICES)
    for day in (2, 3):
        for is_whole in (True, False):
            rows = table.filter(pl.col("day") == day, (pl.col("slice") == "") == is_whole)
            assert rows["p_adjusted"].to_list() == pytest.approx(stats.false_discovery_control(rows["p"]))


@pytest.mark.parametrize("slices", [None, SLICES, [*SLICES, "device", pl.col("user") % 3]], ids=["none", "two", "many"])
def test_a_lazy_log_gives_the_same(slices: Any) -> None:
    log = sliced_log()
    right = mlm.drift(log, **OPTIONS, slices=slices)
    rows = pl.concat([log[1000:], log[:1000]], rechunk=False).lazy().filter(pl.col("day") > 0)
    for engine in ("in-memory", "streaming"):
        lazy = mlm.drift(rows, **OPTIONS, slices=slices)
        assert lazy.collect_schema() == right.schema
        with pl.Config(engine_affinity=engine):
            assert_frame_equal(lazy.collect(), right, rel_tol=1e-9)


def test_a_side_without_rows_is_a_row_that_says_so() -> None:
    log = sliced_log().filter(~(pl.col("country").eq_missing("DE") & (pl.col("day") == 2)))
    log = log.filter(~((pl.col("device") == "web") & (pl.col("day") == 1)))
    table = mlm.drift(log, between="day", baseline=1, sample="user", slices=["country", "device"])
    assert table.filter(pl.col("slice") != "").height == 2 * (3 + 2)
    lacking = table.filter(drift_flag="one_side").select("slice", "day", "n", "psi", "p", "ks", "score_mean")
    assert lacking.select("slice", "day").rows() == [("country=DE", 2), ("device=web", 2), ("device=web", 3)]
    assert lacking["psi"].null_count() == lacking["p"].null_count() == lacking["ks"].null_count() == 3
    assert lacking["n"].to_list()[0] == 0
    assert lacking["score_mean"].null_count() == 1
    all_null = log.with_columns(score=pl.when(pl.col("day") != 3).then("score"))
    found = mlm.drift(all_null, between="day", baseline=1, sample="user").filter(day=3).row(0, named=True)
    assert (found["n"], found["null_share"], found["drift_flag"]) == (0, 1.0, "one_side")


def test_a_group_without_a_baseline_is_there_too() -> None:
    log = sliced_log().filter((pl.col("model") == "a") | (pl.col("day") == 3))
    table = mlm.drift(log, **OPTIONS)
    assert table.select("model", "day", "drift_flag").rows() == [("a", 2, "ok"), ("a", 3, "ok"), ("b", 3, "one_side")]


@pytest.mark.parametrize("scores", [pl.lit(None), pl.lit(None, dtype=pl.String), pl.lit(None, dtype=pl.Float64)])
def test_a_log_without_a_score_has_rows_that_say_so(scores: pl.Expr) -> None:
    log = sliced_log().with_columns(score=scores)
    table = mlm.drift(log, **OPTIONS, slices=["country"])
    assert table.height == 2 * 2 * 4
    assert set(table["drift_flag"]) == {"one_side"}
    assert set(table["null_share_baseline"]) == {1.0}
    lacking = mlm.drift(log.with_columns(score=pl.when(pl.col("day") > 1).then(0.5)), **OPTIONS)
    assert set(lacking["drift_flag"]) == {"one_side"}
    assert lacking["score_mean"].to_list() == [0.5] * 4


def test_a_baseline_without_weight_has_no_cells() -> None:
    log = log_of(old=[0.1], new=[0.2, 0.3]).with_columns(weight=pl.when(side="old").then(0.0).otherwise(1.0))
    assert drifted(log, weight="weight")["drift_flag"] == "one_side"


def test_a_key_may_have_any_name() -> None:
    names = {"model": "a", "country": "least", "device": "share", "day": "b", "user": "deciding"}
    right = mlm.drift(sliced_log(), **OPTIONS, slices=SLICES)
    log = sliced_log().rename(names)
    slices = ["least", ["least", "share"]]
    table = mlm.drift(log, between="b", baseline=1, by="a", sample="deciding", slices=slices)
    table = table.drop("sliced_by", "slice").rename({new: old for old, new in names.items() if new in table.columns})
    assert_frame_equal(table, right.drop("sliced_by", "slice"), rel_tol=1e-9)


def test_keys_may_be_worked_out() -> None:
    late = (pl.col("day") > 2).alias("late")
    log = sliced_log()
    right = mlm.drift(log.with_columns(late), between="late", baseline=False, sample="user", slices=["device"])
    keys = {"between": late, "slices": [pl.col("device").str.slice(0).alias("device")]}
    assert_frame_equal(mlm.drift(log, baseline=False, sample="user", **keys), right, rel_tol=1e-9)


# -- flags -------------------------------------------------------------------------------------------------------------

PLACE = pl.col("sample") % 400
OF_GIANT = pl.when(PLACE < 120).then(0).otherwise(PLACE)
FLAGGED: dict[str, Any] = {
    "no_samples": lambda: drifted(log_of(old=normal(1, 300), new=normal(2, 300)).drop("sample")),
    "undefined_replicates": lambda: drifted(log_of(old=normal(1, 300), new=[0.5])),
    "degenerate": lambda: drifted(log_of(old=[0.5] * 40, new=[0.7] * 40)),
    "few_buckets": lambda: drifted(
        log_of(old=normal(1, 300), new=normal(2, 300)).with_columns(user=pl.col("sample") % 8), cluster="user"
    ),
    "few_cells": lambda: drifted(log_of(old=normal(1, 300), new=normal(2, 40))),
    "low_n": lambda: drifted(
        log_of(old=normal(1, 300), new=normal(2, 300)).with_columns(user=pl.col("sample") % 20), cluster="user"
    ),
    "dominant_cluster": lambda: drifted(
        log_of(old=normal(1, 400), new=normal(2, 400)).with_columns(user=OF_GIANT), cluster="user"
    ),
    "ok": lambda: drifted(log_of(old=normal(1, 300), new=normal(2, 300))),
}


@pytest.mark.parametrize("flag", FLAGGED)
def test_a_flag(flag: str) -> None:
    row = FLAGGED[flag]()
    assert row["drift_flag"] == flag
    assert (row["p"] is None) == (flag in ("no_samples", "undefined_replicates", "degenerate"))
    assert row["psi"] >= 0


# -- what is refused ---------------------------------------------------------------------------------------------------

LOG = log_of(old=[0.1], new=[0.2]).with_columns(day=pl.col("side"), when=pl.date(2026, 1, 1))
REFUSED: dict[str, Any] = {
    "drift needs between=, baseline=": lambda: mlm.drift(LOG),
    "'weekday' is not in the table": lambda: mlm.drift(LOG, between="weekday", baseline="old"),
    "baseline='older' is no value of 'side'": lambda: mlm.drift(LOG, between="side", baseline="older"),
    "has no other value than baseline='old'": lambda: drifted(LOG.filter(side="old")),
    "the table has no rows": lambda: drifted(LOG.clear()),
    "would have the name 'side'": lambda: drifted(LOG, by="side"),
    "would have the name 'psi'": lambda: drifted(LOG.with_columns(psi=1), by="psi"),
    "score column 'p' is not in the table": lambda: drifted(LOG, score="p"),
    "truth column 'hit' is not in the table": lambda: drifted(LOG, truth="hit"),
    "weight column 'w' is not in the table": lambda: drifted(LOG, weight="w"),
    "sample column 'id' is not in the table": lambda: drifted(LOG, sample="id"),
    "cluster column 'user' is not in the table": lambda: drifted(LOG, cluster="user"),
    "score is Date: drift takes numbers, Booleans and texts": lambda: drifted(LOG, score="when"),
    "bins must be a whole number of at least 2 and at most 100, not 1": lambda: drifted(LOG, bins=1),
    "at most 100, not 101": lambda: drifted(LOG, bins=101),
    "role 'tidy' is not one of the roles": lambda: drifted(LOG, tidy=True),
    "drift takes a log, and this is a state": lambda: mlm.drift(
        mlm.state(LOG.with_columns(truth=1), mlm.f1()), between="side", baseline="old"
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_an_error_says_what_is_wrong(message: str) -> None:
    with pytest.raises(mlm.MetricError) as caught:
        REFUSED[message]()
    assert message in str(caught.value)


def test_a_lazy_log_without_the_baseline_is_refused_when_it_is_collected() -> None:
    lazy = mlm.drift(LOG.lazy(), between="side", baseline="older")
    with pytest.raises((mlm.ParameterError, pl.exceptions.ComputeError), match="is no value of 'side'"):
        lazy.collect()
