"""`decompose` splits the change of a whole into the mix of its slices and the rates inside them."""

import math
from collections.abc import Mapping

import numpy as np
import polars as pl
import pytest
from scipy import stats

import polars_mlmetrics as mlm
from polars_mlmetrics.engine.buckets import BUCKETS, OF_LOG, bucket_of
from polars_mlmetrics.query import question
from tests.analysis.months_log import AND, BASELINE, BY_HAND, by_hand, carried, log, small
from tests.support.degrees import degrees_of_freedom

pytestmark = pytest.mark.usefixtures("buckets_of_states")

LEVEL = 0.9


@pytest.mark.parametrize("carrier", ["log", "streaming", "state"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", BY_HAND)
def test_it_is_what_the_definition_says(name: str, weighted: bool, carrier: str) -> None:
    metric, of_rows = BY_HAND[name]
    metric = metric.on(weight="weight") if weighted else metric
    found = mlm.decompose(carried(log(), metric, carrier, ["side"]), metric, by="side", **AND)
    table = found.lazy().collect(engine="streaming" if carrier == "streaming" else "in-memory")
    for (side, month), part in table.group_by("side", "month"):
        right = by_hand(log().filter(side=side), of_rows, month, weighted=weighted)
        got = {row["slice"]: row for row in part.iter_rows(named=True)}
        assert got.keys() == right.keys()
        for text, row in right.items():
            cells = {column: math.nan if got[text][column] is None else got[text][column] for column in row}
            assert cells == pytest.approx(row, rel=1e-9, abs=1e-12, nan_ok=True), text


@pytest.mark.parametrize("name", BY_HAND)
def test_mix_and_rate_add_up_to_the_change(name: str) -> None:
    metric, _ = BY_HAND[name]
    table = mlm.decompose(log(), metric, by="side", **AND)
    wholes, slices = table.filter(slice=""), table.filter(pl.col("slice") != "")
    of_slices = slices.group_by("side", "month").agg(pl.col("mix", "rate").sum()).sort("side", "month")
    assert (wholes["mix"] + wholes["rate"]).to_list() == pytest.approx(
        (wholes["value"] - wholes["baseline_value"]).to_list(), abs=1e-12
    )
    for part in ("mix", "rate"):
        assert of_slices[part].to_list() == pytest.approx(wholes[part].to_list(), abs=1e-12)
    values = mlm.evaluate(log(), metric, by=["side", "month"], slices=["country"])
    by = ["side", "month", "slice"]
    shown = table.select(*by, "value").join(values, on=by).drop_nulls()
    assert shown["value"].to_list() == pytest.approx(shown[metric.output_name].to_list(), rel=1e-14)


def test_it_is_the_decomposition_of_oaxaca_and_blinder() -> None:
    """The twofold one with the mean of both coefficients (Reimers), by least squares on dummies of the slices."""
    rows = log().filter(pl.col("score").is_not_null(), pl.col("country").is_in(["DE", "FR", "XX"]))
    right = (rows["score"] > 0.5) == (rows["truth"] == 1)
    dummies = rows.select("country").to_dummies().to_numpy()
    means, coefficients = {}, {}
    for month in ("2026-12", BASELINE):
        of_month = (rows["month"] == month).to_numpy()
        means[month] = dummies[of_month].mean(axis=0)
        coefficients[month], *_ = np.linalg.lstsq(dummies[of_month], right.to_numpy()[of_month] * 1.0, rcond=None)
    shares, values = ((of["2026-12"], of[BASELINE]) for of in (means, coefficients))
    explained = (shares[0] - shares[1]) @ (values[0] + values[1]) / 2
    unexplained = (shares[0] + shares[1]) @ (values[0] - values[1]) / 2
    row = mlm.decompose(rows, mlm.accuracy(), **AND).filter(month="2026-12").row(0, named=True)
    assert (row["mix"], row["rate"]) == pytest.approx((explained, unexplained), rel=1e-9)


# -- intervals ---------------------------------------------------------------------------------------------------------


def ends_by_hand(found: Mapping[int | None, float], own: int) -> tuple[float, float]:
    """The interval of a value, from what it is without each bucket; `own` buckets have rows of it."""
    whole = found[None]
    moved = [value - whole for bucket, value in found.items() if bucket is not None]
    moved = [each if abs(each) > 1e-12 else 0.0 for each in moved]
    count = max(own, sum(each != 0 for each in moved))
    se = math.sqrt((count - 1) / count * math.fsum(each**2 for each in moved))
    half = stats.t.ppf((1 + LEVEL) / 2, degrees_of_freedom(count, moved)) * se
    return whole - half, whole + half


@pytest.mark.parametrize("carrier", ["log", "state"])
@pytest.mark.parametrize("cluster", [None, "user"])
@pytest.mark.parametrize("name", ["recall", "log_loss"])
def test_the_intervals_are_those_of_the_jackknife(name: str, cluster: str | None, carrier: str) -> None:
    metric, of_rows = BY_HAND[name]
    bucket, _ = bucket_of([cluster or "sample"], log().schema, BUCKETS)
    rows = log().with_columns(bucket.alias("bucket"))
    state = mlm.state(log(), metric, by=["month", "country"], cluster=cluster, buckets=BUCKETS)
    given, named = (state, {}) if carrier == "state" else (log(), {"cluster": cluster})
    table = mlm.decompose(given, metric, ci=LEVEL, **AND, **named)
    without = {None: rows, **{bucket: rows.filter(pl.col("bucket") != bucket) for bucket in rows["bucket"].unique()}}
    checked = 0
    for month in ("2026-11", "2026-12"):
        parts = {left: by_hand(part, of_rows, month, weighted=False) for left, part in without.items()}
        for row in table.filter(month=month).iter_rows(named=True):
            for part in ("mix", "rate"):
                values = {left: found[row["slice"]][part] for left, found in parts.items()}
                if row[f"{part}_low"] is None:
                    assert all(value == 0 for value in values.values())
                    continue
                ends = row[f"{part}_low"], row[f"{part}_high"]
                assert ends == pytest.approx(ends_by_hand(values, own=2), rel=1e-7), (row["slice"], part)
                checked += 1
    assert checked >= 15


@pytest.mark.parametrize(("size", "flag"), [(6, "few_buckets"), (20, "low_n"), (300, "ok")])
def test_buckets_are_those_of_the_side_that_has_fewer(size: int, flag: str) -> None:
    """A slice of so few clusters in one month that its interval is doubted, and of many in the other."""
    sizes = {(BASELINE, "DE"): 500, (BASELINE, "FR"): 500, ("2026-11", "DE"): 500, ("2026-11", "FR"): size}
    keys = [key for key, count in sizes.items() for _ in range(count)]
    rows = pl.DataFrame(keys, schema=["month", "country"], orient="row").with_row_index("sample")
    rows = rows.with_columns(truth=1, score=pl.col("sample") % 3 / 2)
    found = {row["slice"]: row for row in mlm.decompose(rows, mlm.recall(), **AND).iter_rows(named=True)}
    few = rows.filter(country="FR", month="2026-11").select(bucket_of(["sample"], rows.schema, BUCKETS)[0])
    assert found["country=FR"]["n_buckets"] == few.to_series().n_unique()
    assert (found["country=FR"]["ci_flag"], found["country=DE"]["ci_flag"]) == (flag, "ok")


# -- slices that a side lacks, and what is not known -------------------------------------------------------------------


def test_a_slice_of_one_side_is_all_mix_and_is_there() -> None:
    rows = small(
        (BASELINE, "DE", 0.9, 1), (BASELINE, "DE", 0.1, 1), ("2026-11", "DE", 0.9, 1), ("2026-11", "FR", 0.1, 1)
    )
    table = mlm.decompose(rows, mlm.recall(), **AND)
    shown = table.select("slice", "value", "baseline_value", "share", "baseline_share", "mix", "rate", "ci_flag").rows()
    assert shown == [
        ("", 0.5, 0.5, 1.0, 1.0, pytest.approx(-0.375), pytest.approx(0.375), "few_buckets"),
        ("country=DE", 1.0, 0.5, 0.5, 1.0, pytest.approx(-0.125), 0.375, "few_buckets"),
        ("country=FR", 0.0, None, 0.5, 0.0, pytest.approx(-0.25), 0.0, "one_side"),
    ]
    assert table.filter(country="FR")["rate_low"].item() is None


def test_a_slice_in_which_nothing_counts_adds_nothing() -> None:
    """No positives on either side, with `undefined=` or without: its value has no part in the whole."""
    rows = small(
        (BASELINE, "DE", 0.9, 1), (BASELINE, "XX", 0.9, 0), ("2026-11", "DE", 0.1, 1), ("2026-11", "XX", 0.9, 0),
    )  # fmt: skip
    for metric, value in ((mlm.recall(), None), (mlm.recall(undefined=0.5), 0.5)):
        table = mlm.decompose(rows, metric, **AND)
        shown = table.select("slice", "value", "share", "mix", "rate", "change", "ci_flag").rows()
        assert shown[0][:6] == ("", 0.0, 1.0, 0.0, -1.0, -1.0)
        assert shown[2] == ("country=XX", value, 0.0, 0.0, 0.0, 0.0, "one_side")


def test_a_group_of_one_side_has_a_row_and_its_reason() -> None:
    rows = small((BASELINE, "DE", 0.9, 1), ("2026-11", "DE", 0.1, 1)).with_columns(team=pl.lit("a"))
    rows = pl.concat([rows, rows.head(1).with_columns(team=pl.lit("b")), rows.tail(1).with_columns(team=pl.lit("c"))])
    table = mlm.decompose(rows, mlm.recall(), by="team", **AND)
    columns = ["team", "month", "slice", "value", "baseline_value", "mix", "ci_flag"]
    assert table.filter(pl.col("team") != "a").select(columns).rows() == [
        ("b", "2026-11", "", None, 1.0, None, "one_side"),
        ("b", "2026-11", "country=DE", None, 1.0, None, "one_side"),
        ("c", "2026-11", "", 0.0, None, None, "one_side"),
        ("c", "2026-11", "country=DE", 0.0, None, None, "one_side"),
    ]


def test_a_broken_row_breaks_what_it_is_in() -> None:
    is_broken = (pl.col("month") == "2026-11") & (pl.col("side") == 0) & (pl.col("sample") % 50 == 0)
    rows = log().with_columns(score=pl.when(is_broken).then(float("nan")).otherwise("score"))
    assert rows.filter(is_broken).height > 1
    table = mlm.decompose(rows, mlm.accuracy(), by="side", **AND).filter(slice="")
    broken = table.filter(month="2026-11", side=0)
    assert broken.select(pl.col("mix", "rate", "change").is_nan()).row(0) == (True, True, True)
    assert broken.select("mix_low", "rate_high", "ci_flag").row(0) == (None, None, None)
    assert table["change"].is_finite().to_list() == [False, True, True, True]


def test_rows_without_a_threshold_keep_the_whole_from_being_known() -> None:
    rows = log().with_columns(bound=pl.when(pl.col("country") != "FR").then(0.5))
    table = mlm.decompose(rows, mlm.f1(threshold=pl.col("bound")), **AND)
    assert table.filter(slice="").select("value", "mix", "rate", "change", "ci_flag").null_count().row(0) == (2,) * 5


@pytest.mark.parametrize(("users", "flag"), [(29, "low_n"), (30, "ok")])
def test_few_named_clusters_are_counted_one_by_one(users: int, flag: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the buckets of a hash 29 clusters would seem to be 31."""
    monkeypatch.setattr(question, "BUCKETS", OF_LOG)
    place, drawn = pl.int_range(users * 100), np.random.default_rng(1).integers(0, 1000, (3, users * 100))
    rows = pl.select(sample=place, user=place % users, month=pl.Series(drawn[0] % 2).cast(pl.String))
    rows = rows.with_columns(country=pl.Series(drawn[1] % 2), truth=1, score=pl.Series(drawn[2] > 400))
    table = mlm.decompose(rows, mlm.recall(), "country", between="month", baseline="0", cluster="user")
    assert set(table["ci_flag"]) == {flag}
