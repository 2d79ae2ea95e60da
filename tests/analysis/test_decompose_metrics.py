"""`decompose` of means over samples and of metrics that are no means of slices; what it takes and refuses."""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from polars.testing import assert_frame_equal

import polars_mlmetrics as mlm
from polars_mlmetrics.contrasts.mix import COLUMNS
from tests.analysis.months_log import AND, BASELINE, Columns, by_hand, carried, log, small

# -- samples -----------------------------------------------------------------------------------------------------------


def of_samples() -> pl.DataFrame:
    """Samples of three labels, in a month and a country; `side` varies in a sample."""
    labels = pl.DataFrame({"label": ["a", "b", "c"]})
    rows = log().drop("score", "truth", "side").filter(pl.col("country") != "XX").join(labels, how="cross")
    row = pl.int_range(pl.len())
    return rows.with_columns(score=row * 7919 % 1009 / 1009, truth=row * 104729 % 5 % 2, side=row % 2)


@pytest.mark.parametrize("carrier", ["log", "state"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "metric", [mlm.ndcg(k=2), mlm.f1(average="samples"), mlm.accuracy(threshold="argmax")], ids=str
)
def test_a_mean_over_samples_is_one_of_slices(metric: mlm.Metric, weighted: bool, carrier: str) -> None:
    """Each sample is a row with a value: by the values of `evaluate(per="sample")`, and their means."""
    metric = metric.on(weight="weight") if weighted else metric
    rows = of_samples()
    keys = ["sample", "month", "country", "weight"]
    if "argmax" in str(metric):
        one = rows.filter(pl.col("truth").sum().over("sample") == 1)
        values, rows = mlm.evaluate(one, metric.alias("v"), by=keys), one
    else:
        values = mlm.evaluate(rows, metric.alias("v"), by=keys)
    values = values.drop_nulls("v").select(*keys, score="v", truth=pl.lit(1))

    def of_values(found: Columns) -> tuple[NDArray[Any], NDArray[Any]]:
        return found["score"], np.ones_like(found["score"])

    table = mlm.decompose(carried(rows, metric, carrier, []), metric, **AND)
    right = by_hand(values, of_values, "2026-12", weighted=weighted)
    for row in table.filter(month="2026-12").iter_rows(named=True):
        assert {name: row[name] for name in ("share", "mix", "rate")} == pytest.approx(
            {name: right[row["slice"]][name] for name in ("share", "mix", "rate")}, rel=1e-9, abs=1e-12
        )


def test_slices_that_cut_through_samples_are_refused_where_a_metric_looks_into_them() -> None:
    rows, keys = of_samples(), {**AND, "over": "side"}
    words = "slices of whole samples for ndcg, .* several values of 'side'"
    with pytest.raises(mlm.TableError, match=words):
        mlm.decompose(rows, mlm.ndcg(), **keys)
    with pytest.raises(mlm.TableError, match=words):
        mlm.decompose(mlm.state(rows, mlm.ndcg(), by=["month", "side"]), mlm.ndcg(), **keys)
    assert mlm.decompose(rows, mlm.f1(), **keys).height == 6


# -- other metrics -----------------------------------------------------------------------------------------------------

OTHERS = [
    mlm.rmse(),
    mlm.mcc(),
    mlm.r2(),
    mlm.roc_auc(bins=32),
    mlm.f1(average="macro"),
    mlm.brier_resolution(),
    mlm.f1() - mlm.recall(),
    mlm.average_score(mlm.rmse()),
]


def composed(rows: pl.DataFrame, metric: mlm.Metric, slices: str, shares: str) -> float | None:
    """The value of the slices of one month in the shares of another, by weights of the rows."""
    known = rows.filter(pl.col("score").is_not_null())
    sizes = {month: dict(known.filter(month=month).group_by("country").len().rows()) for month in (slices, shares)}
    own, wanted = sizes[slices], sizes[shares]
    total, other_total = sum(own.values()), sum(wanted.values())
    parts = []
    for country, count in wanted.items():
        month = slices if country in own else shares
        part = known.filter(pl.col("month") == month, pl.col("country").eq_missing(country))
        parts.append(part.with_columns(factor=pl.lit(count / other_total * total / part.height)))
    return mlm.evaluate(pl.concat(parts), metric, weight="factor").item()


@pytest.mark.parametrize("carrier", ["log", "state"])
@pytest.mark.parametrize("metric", OTHERS, ids=str)
def test_other_metrics_have_a_mix_and_a_rate_of_the_whole(metric: mlm.Metric, carrier: str) -> None:
    rows = log().with_columns(label=pl.col("side"))
    table = mlm.decompose(carried(rows, metric, carrier, []), metric, **AND)
    for month in ("2026-11", "2026-12"):
        ours, theirs = (mlm.evaluate(rows.filter(month=each), metric).item() for each in (month, BASELINE))
        ours_in_theirs = composed(rows, metric, month, BASELINE)
        theirs_in_ours = composed(rows, metric, BASELINE, month)
        rate = ((ours_in_theirs - theirs) + (ours - theirs_in_ours)) / 2
        row = table.filter(month=month).row(0, named=True)
        assert (row["mix"], row["rate"]) == pytest.approx((ours - theirs - rate, rate), rel=1e-8, abs=1e-10)
        assert row["mix_low"] < row["mix"] < row["mix_high"]
    slices = table.filter(pl.col("slice") != "", baseline_share=0)
    assert slices["rate"].to_list() == [0.0] * slices.height
    both = table.filter(pl.col("slice") != "", pl.col("ci_flag") != "one_side").drop_nulls("rate")
    rates = both.select((pl.col("share") + pl.col("baseline_share")) / 2 * (pl.col("value") - pl.col("baseline_value")))
    assert both["rate"].to_list() == pytest.approx(rates.to_series().to_list(), abs=1e-12)
    assert table.filter(pl.col("slice") != "")["mix"].is_null().all()


def test_both_ways_are_one_where_the_denominator_is_the_rows() -> None:
    one, other = mlm.accuracy(), (mlm.accuracy() + 0 * mlm.f1()).alias("accuracy")
    columns = ["month", "value", "mix", "mix_low", "mix_high", "rate", "rate_low", "rate_high", "change", "ci_flag"]
    tables = [mlm.decompose(log(), metric, **AND).filter(slice="").select(columns) for metric in (one, other)]
    assert_frame_equal(*tables, rel_tol=1e-9, abs_tol=1e-12)


def test_a_composition_may_have_no_value() -> None:
    """Without its slice of negatives, which the baseline lacks, November has positives alone."""
    rows = small(
        (BASELINE, "DE", 0.9, 1), (BASELINE, "DE", 0.1, 0), ("2026-11", "DE", 0.9, 1), ("2026-11", "FR", 0.1, 0)
    )
    row = mlm.decompose(rows, mlm.mcc(), **AND).row(0, named=True)
    assert [row[name] for name in ("value", "baseline_value", "mix", "rate", "change")] == [1.0, 1.0, None, None, 0.0]
    assert row["ci_flag"] == "undefined_replicates"


def test_what_has_no_sums_has_its_change_alone() -> None:
    table = mlm.decompose(log(), mlm.roc_auc(), **AND)
    row = table.row(0, named=True)
    assert row["change"] == pytest.approx(row["value"] - row["baseline_value"])
    assert [row[name] for name in ("mix", "rate", "mix_low", "n_buckets")] == [None] * 4
    assert row["ci_flag"] == "no_state"
    assert table.filter(country="DE")["rate"].is_not_null().all()
    assert mlm.decompose(log(), mlm.max_error(), **AND)["ci_flag"][0] == "extremes"
    place = pl.col("label").replace_strict({"a": 0, "b": 1, "c": 2})
    of_one = of_samples().with_columns(truth=place == pl.col("sample") % 3, score=pl.col("score").clip(0.01, 0.99))
    of_shares = mlm.decompose(of_one, mlm.information_score(), **AND).row(0, named=True)
    assert of_shares["change"] == pytest.approx(of_shares["value"] - of_shares["baseline_value"])
    assert (of_shares["mix"], of_shares["ci_flag"]) == (None, "no_state")


# -- what is given -----------------------------------------------------------------------------------------------------


def test_joint_slices_and_expressions() -> None:
    table = mlm.decompose(
        log(), mlm.recall(), [pl.col("country").fill_null("?").alias("where"), "side"],
        between=pl.col("month").str.tail(2).alias("m"), baseline="10", by=pl.col("user") % 2,
    )  # fmt: skip
    assert table.columns == ["user", "m", "slice", "where", "side", *COLUMNS]
    assert table["slice"][:2].to_list() == ["", "where=?, side=0"]
    assert table.select("user", "m").unique().height == 4
    assert table.select("user", "m", "slice").is_duplicated().any() is False
    filled = log().with_columns(pl.col("country").fill_null("?").alias("where"), pl.col("user") % 2)
    plain = mlm.decompose(filled, mlm.recall(), ["where", "side"], between="month", baseline=BASELINE, by="user")
    assert_frame_equal(plain.select(COLUMNS.names()), table.select(COLUMNS.names()), rel_tol=1e-9)


def test_a_lazy_call_has_the_same_answer() -> None:
    lazy = mlm.decompose(log().lazy(), mlm.recall(), by="side", **AND)
    assert lazy.collect_schema() == lazy.collect().schema
    assert_frame_equal(lazy.collect(), log().mlm.decompose(mlm.recall(), by="side", **AND), rel_tol=1e-9)


@pytest.mark.parametrize(("metric", "times"), [(mlm.recall(), 1), (mlm.ndcg(), 1), (mlm.rmse(), 2)], ids=str)
def test_a_log_is_read_once_and_again_for_what_is_no_ratio(metric: mlm.Metric, times: int) -> None:
    read: list[int] = []

    def counted(rows: pl.DataFrame) -> pl.DataFrame:
        read.append(rows.height)
        return rows

    rows = log().lazy().map_batches(counted, schema=log().schema)
    mlm.decompose(rows, metric, by="side", **AND).collect()
    assert len(read) == times


def test_a_rounded_metric_has_the_parts_of_its_own() -> None:
    rounded, plain = (mlm.decompose(log(), metric, **AND) for metric in (mlm.f1().round(1), mlm.f1()))
    shown = ["value", "baseline_value", "change"]
    assert_frame_equal(rounded.drop(shown), plain.drop(shown))
    assert rounded["value"].to_list() == plain["value"].round(1).to_list()
    whole = rounded.row(0, named=True)
    assert whole["change"] == pytest.approx(whole["value"] - whole["baseline_value"])


def test_rows_of_several_models_are_flagged() -> None:
    rows = log().with_columns(model=pl.col("side"))
    flags = mlm.decompose(rows, mlm.accuracy(), **AND).filter(slice="")["ci_flag"]
    assert flags.to_list() == ["pooled", "pooled"]
    assert "pooled" not in mlm.decompose(rows, mlm.accuracy(), by="model", **AND)["ci_flag"]


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "a total": (lambda: mlm.decompose(log(), mlm.support(), **AND), mlm.MetricError, "no totals, and 'support' grows"),
    "no slices": (lambda: mlm.decompose(log(), mlm.f1(), **{**AND, "over": []}), mlm.ParameterError, "pass over="),
    "over is between": (
        lambda: mlm.decompose(log(), mlm.f1(), **{**AND, "over": ["side", "month"]}),
        mlm.NameCollisionError,
        "'month' is between=",
    ),
    "no such baseline": (
        lambda: mlm.decompose(log(), mlm.f1(), **{**AND, "baseline": "2026-09"}),
        mlm.ParameterError,
        "baseline='2026-09' is no value of 'month'",
    ),
    "a baseline alone": (
        lambda: mlm.decompose(log().filter(month=BASELINE), mlm.f1(), **AND),
        mlm.ParameterError,
        "no other value than baseline=",
    ),
    "a name of the result": (
        lambda: mlm.decompose(log(), mlm.f1(), **{**AND, "over": pl.col("country").alias("mix")}),
        mlm.NameCollisionError,
        "'mix'",
    ),
    "a slice twice": (
        lambda: mlm.decompose(log(), mlm.f1(), by="country", **AND), mlm.ParameterError, "already in by=",
    ),
    "no such column": (lambda: mlm.decompose(log(), mlm.f1(), **{**AND, "over": "contry"}), mlm.ColumnError, "contry"),
    "draws": (lambda: mlm.decompose(log(), mlm.f1(), ci="bootstrap", **AND), mlm.ParameterError, "a number between 0"),
    "no metric": (lambda: mlm.decompose(log(), pl.col("score").mean(), **AND), mlm.ParameterError, "takes a metric"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_a_wrong_call_says_what_to_do(what: str) -> None:
    call, error, words = REFUSED[what]
    with pytest.raises(error, match=words):
        call()
